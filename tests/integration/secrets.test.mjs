// What can't be read (P02, P25), through `shellyard proto`: no line of it has the secret, and its
// event and its answer tell what was refused. deny.test.mjs does the same for mcp and exec.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { hasFull, makeYard } from './lib/client.mjs';
import { openProto } from './lib/proto.mjs';

const SECRET = 'the-secret-bytes';

/** Each way, and what its denial names, where its own output or the open of the file itself says so. */
const ways = [
  ['cat ~/.ssh/id', '.ssh/id'],
  ['cat ~/.netrc', '.netrc'],
  ['cat link', '.ssh/id'],
  ['cat /proc/self/root$HOME/.ssh/id'],
  ['cd ~/.ssh && cat id'],
  ['cp ~/.netrc copy && cat copy', '.netrc'],
  ['ln ~/.ssh/id hard && cat hard'],
  ['mv ~/.netrc moved && cat moved'],
  ['tar cf - -C ~ .ssh .netrc'],
  ['while read -r l; do echo "$l"; done < ~/.ssh/id; read -r l < ~/.ssh/id || echo "$l"', '.ssh/id'],
];

function fill(yard) {
  fs.mkdirSync(path.join(yard.home, '.ssh'), { recursive: true });
  for (const name of ['.ssh/id', '.netrc']) {
    fs.writeFileSync(path.join(yard.home, name), SECRET);
  }
  fs.rmSync(yard.ws, { recursive: true });
  fs.mkdirSync(yard.ws);
  fs.symlinkSync(path.join(yard.home, '.ssh/id'), path.join(yard.ws, 'link'));
}

let calls = 0;

/** One script: {end, answer}, with the event of its end. */
async function run(proto, command) {
  calls += 1;
  const id = `s${calls}`;
  proto.send({ type: 'function_call', name: 'shell_command', call_id: id, arguments: JSON.stringify({ command, timeout_ms: 20_000 }) });
  const answer = await proto.next((m) => m.type === 'function_call_output' && m.call_id === id);
  return { end: await proto.next((m) => m.type === 'exec_command_end' && m.call_id === id), answer: answer.output };
}

const said = (proto, text) => proto.lines.some((line) => line.includes(text));

for (const tier of ['full', 'no-namespace']) {
  test(`P02 no line of proto has a secret, and refusals are told (${tier})`, { timeout: 120_000 }, async (t) => {
    const yard = makeYard();
    if (tier === 'full' && !hasFull(t, yard)) {
      return;
    }
    fill(yard);
    const proto = openProto(t, yard, { 'sandbox.tier': tier });
    for (const [way, object] of ways) {
      const { end, answer } = await run(proto, way);
      if (object === undefined || (tier !== 'full' && end.exit_code === 0)) {
        continue; // where nobody sees an open, only what fails is looked into
      }
      assert.ok(answer.includes(`(${tier})`), answer);
      const file = path.join(yard.home, object);
      const told = (end.denials ?? []).find((d) => d.object === file || d.object === path.join(yard.ws, 'link'));
      assert.ok(told, `${way}: ${JSON.stringify(end)}`);
      assert.deepEqual([told.operation, told.layer, told.confidence],
        tier === 'full' ? ['read', 'mount', 'exact'] : ['read', 'landlock', 'inferred'], way);
      const hidden = object === '.netrc' ? file : path.dirname(file);
      assert.equal(told.fix, `sandbox.allow_read: ["${hidden}"]`, way);
      assert.ok(answer.includes(`[sandbox: read ${told.object} was refused by ${told.layer} (${told.confidence}); to allow it: ${told.fix}]`), answer);
    }
    assert.ok(!said(proto, SECRET));

    // The controls: without the sandbox each way shows it, and the line lets it out.
    for (const [way] of ways) {
      fill(yard);
      const free = openProto(t, yard, { 'sandbox.mode': 'danger-full-access' });
      await run(free, way);
      assert.ok(said(free, SECRET), way);
      free.child.kill('SIGKILL');
    }
    const granted = openProto(t, yard, { 'sandbox.tier': tier, 'sandbox.allow_read': JSON.stringify([path.join(yard.home, '.ssh')]) });
    const read = await run(granted, 'cat ~/.ssh/id; cat ~/.netrc');
    assert.match(read.answer, new RegExp(`${SECRET}`));
    assert.deepEqual(read.end.denials.map((d) => d.object), [path.join(yard.home, '.netrc')]);
  });
}

test('P25 proto tells what a command opened and hid', { timeout: 60_000 }, async (t) => {
  const yard = makeYard();
  if (!hasFull(t, yard)) {
    return;
  }
  fill(yard);
  const proto = openProto(t, yard, { 'sandbox.tier': 'full' });
  const { end, answer } = await run(proto, 'cat ~/.ssh/id 2>/dev/null || true');
  assert.equal(end.exit_code, 0);
  assert.deepEqual(end.denials.map((d) => [d.object, d.confidence]), [[path.join(yard.home, '.ssh/id'), 'exact']]);
  assert.match(answer, /\[sandbox: read .*\/\.ssh\/id was refused by mount \(exact\)/);
  assert.equal((await run(proto, 'true')).end.denials, undefined);
});

test('proto gives the login environment with secrets hidden', { timeout: 60_000 }, async (t) => {
  const yard = makeYard();
  fill(yard);
  fs.writeFileSync(path.join(yard.home, '.bash_profile'), 'export FROM_PROFILE=yes FROM_SECRET="$(cat ~/.netrc 2>/dev/null)"\n');
  const proto = openProto(t, yard);
  proto.send({ type: 'function_call', name: 'shell_command', call_id: 'login', arguments: { command: 'echo $FROM_PROFILE-$FROM_SECRET-', login: true } });
  const answer = await proto.next((m) => m.type === 'function_call_output' && m.call_id === 'login');
  assert.match(answer.output, /yes--\n$/);
});
