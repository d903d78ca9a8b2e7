// Many sessions at once: what they cost while nothing happens, and who watches for all of them.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { STUCK_MS, call, has, hasFull, makeYard, mustRun, startMcp, waitFor } from './lib/client.mjs';

const SESSIONS = 8;

async function start(t, tier) {
  const yard = makeYard();

  if (tier === 'full' && !hasFull(t, yard)) {
    return {};
  }

  const server = await startMcp({ cwd: yard.ws, env: yard.env, settings: { 'sandbox.tier': tier } });

  t.after(() => server.close());
  return { yard, server, ask: async (name, args) => (await call(server.client, name, args)).structuredContent };
}

/** How often a process has slept and been roused. */
function switches(pid) {
  const text = fs.readFileSync(`/proc/${pid}/status`, 'latin1');

  return Number(text.match(/^voluntary_ctxt_switches:\s+(\d+)/m)[1]);
}

for (const tier of ['full', 'no-namespace']) {
  test(`sessions in which nothing happens leave the engine asleep, ${tier}`, { timeout: STUCK_MS }, async (t) => {
    const { server, ask } = await start(t, tier);

    if (server === undefined) {
      return;
    }
    for (let i = 0; i < SESSIONS; i++) {
      const s = await ask('exec_command', { cmd: 'echo here; exec cat', tty: true, pattern: 'here', yield_time_ms: 30_000 });

      assert.match(s.output, /here/);
      assert.equal(s.sandbox.tier, tier);
    }

    const quiet = async () => {
      const before = switches(server.pid);

      await ask('exec_command', { cmd: 'sleep 2', yield_time_ms: 30_000 });
      return switches(server.pid) - before;
    };

    await quiet(); // what the last session left behind is over after this
    const n = await quiet();

    // Looking after them by a clock of 10 ms would be 200.
    assert.ok(n < 100, `${n} times`);
  });
}

test('what a person replaces is held in every session, also when the first one has ended', { timeout: STUCK_MS }, async (t) => {
  if (!mustRun(t, has('git'), 'no git')) {
    return;
  }

  const { yard, server, ask } = await start(t, 'full');

  if (server === undefined) {
    return;
  }
  execFileSync('git', ['init', '-q'], { cwd: yard.ws, env: yard.env });

  const config = path.join(yard.ws, '.git/config');
  const replace = () => {
    fs.writeFileSync(`${config}.new`, fs.readFileSync(config));
    fs.chmodSync(`${config}.new`, 0o666); // nothing but the hold keeps a command of another user from writing
    fs.renameSync(`${config}.new`, config);
  };
  const shell = async () => (await ask('exec_command', {
    cmd: 'bash --norc --noprofile', tty: true, env: { PS1: 'ready> ' }, pattern: 'ready> ', yield_time_ms: 30_000 })).session_id;
  const go = path.join(yard.ws, 'go');
  // Nothing else happens to it than this: what it shows, and each call, would have it looked after anyway.
  const begin = async (id, held) => {
    const r = await ask('write_stdin', {
      session_id: id, pattern: 'begun 42', yield_time_ms: 30_000,
      chars: 'echo begun $((6 * 7)); until [ -e go ]; do sleep 0.05; done;'
        + ` while : >>.git/config; do :; done 2>/dev/null; : >${held}\n` });

    assert.match(r.output, /begun 42/);
  };
  const isHeld = (name) => waitFor(() => fs.existsSync(path.join(yard.ws, name)), `${name}: .git/config can be written`);
  const first = await shell();
  const second = await shell();

  await begin(first, 'one');
  await begin(second, 'two');
  replace();
  fs.writeFileSync(go, '');
  await isHeld('one');
  await isHeld('two');
  fs.unlinkSync(go);
  await begin(second, 'three');
  await ask('kill_session', { session_id: first });
  replace();
  fs.writeFileSync(go, '');
  await isHeld('three');
});
