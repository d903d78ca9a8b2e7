// JSON Lines for people who build an agent: shellyard proto.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';

import { makeYard, processesOf, program } from './lib/client.mjs';
import { openProto as open } from './lib/proto.mjs';

const limit = { timeout: 60_000 };

const output = (id) => (m) => m.type === 'function_call_output' && m.call_id === id;

test('the worked example of the specification gives its bytes', limit, async (t) => {
  const yard = makeYard();
  fs.mkdirSync(path.join(yard.ws, 'src'));
  fs.writeFileSync(path.join(yard.ws, 'src/main.rs'), `${'\n'.repeat(41)}    // TODO: refactor this\n`);
  const proto = open(t, yard);
  proto.send({
    type: 'function_call', name: 'shell_command', call_id: 'call_abc123',
    arguments: '{"command": "grep -rn \'TODO\' src/", "timeout_ms": 5000}',
  });
  await proto.next(output('call_abc123'));
  assert.ok(proto.lines.includes(
    '{"type":"function_call_output","call_id":"call_abc123","output":"src/main.rs:42:    // TODO: refactor this\\n"}',
  ), proto.lines.join('\n'));
});

test('events come as begin, deltas, end, then the output', limit, async (t) => {
  const proto = open(t, makeYard());
  proto.send({ type: 'function_call', name: 'shell_command', call_id: 'c1', arguments: '{"command":"echo a; echo b >&2; exit 2"}' });
  const answer = await proto.next(output('c1'));
  const types = proto.lines.map((line) => JSON.parse(line)).filter((m) => m.call_id === 'c1').map((m) => m.type);
  assert.equal(types[0], 'exec_command_begin');
  assert.equal(types.at(-2), 'exec_command_end');
  assert.equal(types.at(-1), 'function_call_output');
  assert.ok(types.slice(1, -2).every((type) => type === 'exec_command_output_delta') && types.length >= 5);
  assert.match(answer.output, /^Exit code: 2$/m);
});

test('deltas beyond those of a call are counted, and the next call of a session is sent its own', limit, async (t) => {
  const proto = open(t, makeYard());
  const send = (name, id, args) => proto.send({ type: 'function_call', name, call_id: id, arguments: JSON.stringify(args) });
  const flood = 'head -c 100000000 /dev/zero | tr "\\0" x; echo';
  const messages = () => proto.lines.map((line) => JSON.parse(line));
  const counted = () => messages().filter((m) => m.type === 'exec_command_output_delta' && m.call_id === 's1');

  send('shell_command', 'c1', { command: flood });
  const end = await proto.next((m) => m.type === 'exec_command_end' && m.call_id === 'c1');
  assert.ok(end.deltas_dropped > 2000, `${end.deltas_dropped} dropped`);
  proto.lines.length = 0;

  send('exec_command', 's1', { cmd: `read x; ${flood}; echo flooded; read x; echo told; read x`, stdin: 'pipe', process_id: '7001', yield_time_ms: 250 });
  await proto.next(output('s1'));
  send('write_stdin', 's2', { process_id: '7001', input: 'go\n', pattern: 'flooded', yield_time_ms: 30_000 });
  await proto.next(output('s2'));
  const before = counted();
  assert.ok(before.length <= 10_000);
  send('write_stdin', 's3', { process_id: '7001', input: 'go\n', pattern: 'told', yield_time_ms: 30_000 });
  await proto.next(output('s3'));
  const told = counted().slice(before.length);
  assert.equal(told.map((m) => m.chunk).join(''), 'told\n');
  assert.ok(told[0].deltas_dropped > 2000 && told[0].seq > 100_000_000, JSON.stringify(told[0]));
  send('write_stdin', 's4', { process_id: '7001', input: 'go\n' });
  assert.equal((await proto.next((m) => m.type === 'exec_command_end' && m.call_id === 's1')).deltas_dropped, told[0].deltas_dropped);
});

for (const [what, end] of [
  ['its subagent is closed', (proto) => proto.send({ type: 'session', action: 'close', id: 'a' })],
  ['proto is shut down', (proto) => proto.send({ type: 'shutdown' })],
  ['proto is ended by SIGTERM', (proto) => proto.child.kill('SIGTERM')],
  ['the input ends', (proto) => proto.child.stdin.end()],
]) {
  test(`the end of a session's command is told when ${what}`, limit, async (t) => {
    const proto = open(t, makeYard(), { 'sessions.outlive': 'never' });
    const begin = (id, command, more) => proto.send({
      type: 'function_call', name: 'exec_command', call_id: id, arguments: JSON.stringify({ cmd: command, pattern: 'ready', yield_time_ms: 30_000, ...more }), session: 'a',
    });
    proto.send({ type: 'session', action: 'open', id: 'a' });
    begin('t', 'echo ready; sleep 1000', { tty: true });
    await proto.next(output('t'));
    begin('p', 'echo ready; exec sleep 1000');
    await proto.next(output('p'));
    end(proto);
    for (const id of ['t', 'p']) {
      const told = await proto.next((m) => m.type === 'exec_command_end' && m.call_id === id);
      assert.deepEqual([told.session, told.exit_code === 0], ['a', false]);
    }
    if (what.startsWith('its subagent')) {
      await proto.next((m) => m.type === 'session_closed');
      assert.equal(JSON.parse(proto.lines.at(-1)).type, 'session_closed');
    } else if (proto.child.exitCode === null) {
      assert.deepEqual(await once(proto.child, 'exit'), [0, null]);
    }
  });
}

test('all that can be said to it is in its help, its manual and its page', limit, async (t) => {
  const docs = path.join(path.dirname(fileURLToPath(import.meta.url)), '../../docs');
  const [, table] = fs.readFileSync(path.join(docs, 'protocol/proto.md'), 'utf8').match(/^## In\n\n((\|.*\n)+)/m);
  const types = [...table.matchAll(/^\| `([a-z_]+)` /gm)].map((m) => m[1]);
  const yard = makeYard();
  const help = spawnSync(program, ['help', 'proto'], { env: yard.env, encoding: 'utf8' }).stdout;
  const manual = fs.readFileSync(path.join(docs, 'man/shellyard-proto.1'), 'utf8').split('Out:')[0];
  for (const type of types) {
    assert.match(help, new RegExp(`\\b${type}\\b`));
    assert.match(manual, new RegExp(`\\b${type}\\b`));
  }
  const proto = open(t, yard);
  for (const type of ['function_call', 'custom_tool_call', 'local_shell_call', 'batch', 'session', 'turn', 'interrupt', 'exec_approval', 'tools', 'shutdown']) {
    assert.ok(types.includes(type), `${type} is not in the table`);
    proto.send({ type: `${type}x` });
    await proto.next((m) => m.type === 'error' && m.message.includes(`did you mean '${type}'?`));
  }
});

test('at the end of the input nobody is waited for, also by calls that ask later', limit, async (t) => {
  const yard = makeYard();
  const proto = open(t, yard);
  const call = (id, command) => ({ type: 'function_call', name: 'shell_command', call_id: id, arguments: JSON.stringify({ command, login: false }) });
  fs.mkdirSync(path.join(yard.ws, 'old'));
  proto.send(call('p1', 'rm -rf old'));
  proto.send({ type: 'batch', calls: [call('p2', 'touch first'), call('p3', 'rm -rf old')] });
  proto.child.stdin.end();
  for (const id of ['p1', 'p3']) {
    assert.match((await proto.next(output(id))).output, /approv/, id);
  }
  assert.deepEqual(['first', 'old'].map((name) => fs.existsSync(path.join(yard.ws, name))), [true, true]);
});

test('the end of a call tells what the sandbox refused', limit, async (t) => {
  const yard = makeYard();
  const target = path.join(yard.outside, 'f');
  const proto = open(t, yard, { 'sandbox.read_audit': false });
  proto.send({
    type: 'function_call', name: 'shell_command', call_id: 'd1', arguments: JSON.stringify({ command: `touch ${target}` }),
  });
  const end = await proto.next((m) => m.type === 'exec_command_end');
  assert.deepEqual(end.denials.map((d) => [d.operation, d.object, d.confidence]), [['write', target, 'inferred']]);
  const answer = await proto.next(output('d1'));
  assert.ok(answer.output.includes(`[sandbox: write ${target} was refused by ${end.denials[0].layer} (inferred)`), answer.output);

  proto.send({ type: 'function_call', name: 'shell_command', call_id: 'd2', arguments: '{"command":"touch f; exit 1"}' });
  const fine = await proto.next((m) => m.type === 'exec_command_end' && m.call_id === 'd2');
  assert.equal(fine.denials, undefined);
});

test('local_shell_call runs an argument list', limit, async (t) => {
  const proto = open(t, makeYard());
  proto.send({ type: 'local_shell_call', call_id: 'l1', action: { type: 'exec', command: ['echo', 'a  b'], env: { X: '1' }, timeout_ms: 5000 } });
  const answer = await proto.next((m) => m.type === 'local_shell_call_output');
  assert.equal(answer.output, 'a  b\n');
});

test('bad lines are told and the process lives on', limit, async (t) => {
  const proto = open(t, makeYard());
  for (const bad of ['{', '[]', '{"type":"nope"}', '{"type":"function_call"}', '\u0000', '{"type":1}', `{"type":"${'x'.repeat(100_000)}"}`]) {
    proto.send(bad);
  }
  proto.send({ type: 'function_call', name: 'shell', call_id: 'ok', arguments: { command: ['echo', 'ok'] } });
  assert.equal((await proto.next(output('ok'))).output, 'ok\n');
  assert.ok(proto.lines.filter((line) => JSON.parse(line).type === 'error').length >= 6);
});

test('a turn may narrow the policy but not widen it', limit, async (t) => {
  const yard = makeYard();
  const proto = open(t, yard);
  proto.send({ type: 'turn', sandbox_mode: 'read-only' });
  proto.send({ type: 'function_call', name: 'shell_command', call_id: 'ro', arguments: { command: 'touch f; echo rc=$?' } });
  assert.match((await proto.next(output('ro'))).output, /rc=1/);
  proto.send({ type: 'turn', sandbox_mode: 'danger-full-access' });
  await proto.next((m) => m.type === 'error' && /danger-full-access|wide|narrow/.test(m.message));
});

test('the directory of a turn is where its link led when it came', limit, async (t) => {
  const yard = makeYard();
  const proto = open(t, yard);
  const link = path.join(yard.dir, 'project');
  fs.symlinkSync(yard.ws, link);
  proto.send({ type: 'turn', cwd: link });
  const run = async (id) => {
    proto.send({ type: 'function_call', name: 'shell_command', call_id: id, arguments: { command: 'echo x >>here; pwd' } });
    return (await proto.next(output(id))).output;
  };
  assert.equal(await run('one'), `${yard.ws}\n`);
  fs.unlinkSync(link);
  fs.symlinkSync(yard.outside, link);
  assert.equal(await run('two'), `${yard.ws}\n`);
  assert.equal(fs.readFileSync(path.join(yard.ws, 'here'), 'utf8'), 'x\nx\n');
  assert.deepEqual(fs.readdirSync(yard.outside), []);
});

test('interrupt ends what runs, shutdown ends the process', limit, async (t) => {
  const yard = makeYard();
  const proto = open(t, yard);
  proto.send({ type: 'function_call', name: 'shell_command', call_id: 'long', arguments: { command: 'echo up; setsid sleep 1000 & sleep 1000', timeout_ms: 600_000 } });
  await proto.next((m) => m.type === 'exec_command_output_delta');
  proto.send({ type: 'interrupt' });
  await proto.next(output('long'));
  const end = await proto.next((m) => m.type === 'exec_command_end' && m.call_id === 'long');
  assert.equal(end.status, 'cancelled');
  assert.deepEqual(processesOf(yard.mark, [proto.child.pid]), []);
  const closed = new Promise((resolve) => proto.child.once('close', resolve));
  proto.send({ type: 'shutdown' });
  assert.equal(await closed, 0);
});

test('a batch is answered in its order', limit, async (t) => {
  const proto = open(t, makeYard());
  proto.send({ type: 'batch', calls: [
    { type: 'function_call', name: 'shell_command', call_id: 'b1', arguments: '{"command":"sleep 0.3; echo 1"}' },
    { type: 'function_call', name: 'shell_command', call_id: 'b2', arguments: '{"command":"echo 2"}' },
  ] });
  await proto.next(output('b2'));
  const order = proto.lines.map((line) => JSON.parse(line)).filter((m) => m.type === 'function_call_output').map((m) => m.call_id);
  assert.deepEqual(order, ['b1', 'b2']);
});

test('the end event tells the limit that a command met, and so does the output', limit, async (t) => {
  const proto = open(t, makeYard(), { 'limits.output_bytes': '64K' });
  proto.send({ type: 'function_call', name: 'shell_command', call_id: 'c1', arguments: '{"command":"yes"}' });
  proto.send({ type: 'function_call', name: 'shell_command', call_id: 'c2', arguments: '{"command":"echo hi"}' });
  const end = await proto.next((m) => m.type === 'exec_command_end' && m.call_id === 'c1');
  const other = await proto.next((m) => m.type === 'exec_command_end' && m.call_id === 'c2');

  assert.deepEqual(end.limit, {
    name: 'output', ended: true, most: 65536, unit: 'bytes of output', key: 'limits.output_bytes', by: 'engine', confidence: 'exact',
  });
  assert.match((await proto.next(output('c1'))).output, /^Limit: output ended the command/m);
  assert.equal(other.limit, undefined);
});
