// Commands that hang others' tools: open standard input, background children,
// timeouts that miss grandchildren, output lost at a timeout (A01-A04).
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import {
  SOON_MS, STUCK_MS, call, eachFront, has, makeYard, mustRun, processesOf, startMcp, waitFor,
} from './lib/client.mjs';

/** Nothing of the run is left, besides the server itself. */
async function assertTreeIsGone(yard, front) {
  await waitFor(() => processesOf(yard.mark, [front.pid]).length === 0, 'the end of the processes of the run')
    .catch((error) => {
      const left = processesOf(yard.mark, [front.pid]).map((p) => `${p.pid} ${p.cmdline}`).join('; ');
      assert.fail(`${error.message}: ${left}`);
    });
}

eachFront('A01 a command that reads its standard input gets the end of the file', async (t, { open }) => {
  if (!mustRun(t, has('python3'), 'no python3')) {
    return;
  }
  const front = await open();
  const r = await front.run("python3 -c 'import sys; print(len(sys.stdin.read()))'; cat | wc -c", { timeoutMs: 30_000 });

  assert.equal(r.output, '0\n0\n');
  assert.equal(r.exitCode, 0);
  assert.equal(r.timedOut, false);
});

eachFront('A01 standard input is /dev/null, never that of the server', async (t, { open }) => {
  const front = await open();
  const r = await front.run('readlink /proc/self/fd/0');

  assert.equal(r.output, '/dev/null\n');
});

eachFront('A02 a chatty background job does not hold the answer', async (t, { yard, open }) => {
  const front = await open();
  const script = '(for i in $(seq 200); do echo tick; sleep 0.2; done) & sleep 0.5; echo FG_DONE';
  const r = await front.run(script, { timeoutMs: 30_000 });

  assert.equal(r.status, 'exited');
  assert.equal(r.exitCode, 0);
  assert.equal(r.timedOut, false);
  assert.match(r.output, /^FG_DONE$/m);
  assert.match(r.output, /^tick$/m, 'what the job wrote up to then is kept');
  assert.ok(r.elapsedMs < SOON_MS, `answered after ${r.elapsedMs} ms; the job runs for 40 s`);
  assert.ok(r.endedBackground >= 1, 'the answer counts what was ended');
  assert.match(r.note, /background/, 'and says so');
  await assertTreeIsGone(yard, front);
});

for (const [type, tool, way] of [
  ['all', 'shell_command', /; to keep one, start it by exec_command, without '&'/],
  ['unified_exec', 'shell_command', /; to keep one, start it by exec_command, without '&'/],
  ['default', 'shell', /; to keep one, start it by shell with the action spawn, without '&'/],
  ['shell_command', 'shell_command', /; to keep one, run it in the foreground of a call of its own with a long enough timeout/],
]) {
  test(`what ended in the background can be kept by a tool that is there: ${type}`, { timeout: STUCK_MS }, async (t) => {
    const yard = makeYard();
    const server = await startMcp({ cwd: yard.ws, env: yard.env, settings: { 'shell.path': '/bin/bash', 'tools.shell_type': type } });
    t.after(() => server.close());
    const script = 'sleep 1000 >/dev/null 2>&1 & echo x';
    const r = await call(server.client, tool, { command: tool === 'shell' ? ['bash', '-c', script] : script });
    assert.match(r.structuredContent.note, way);
  });
}

eachFront('A03 a timeout ends the grandchildren too', async (t, { yard, open }) => {
  const front = await open();
  const canary = path.join(yard.ws, 'canary');
  const r = await front.run(`(sleep 20; touch ${canary}) & sleep 300`, { timeoutMs: 1000 });

  assert.equal(r.status, 'timed_out');
  assert.equal(r.timedOut, true);
  assert.equal(r.exitCode, 124);
  assert.equal(r.endedBackground, 0, 'nothing was left by a command that did not end by itself');
  assert.ok(r.elapsedMs >= 1000 && r.elapsedMs < 1000 + SOON_MS, `answered after ${r.elapsedMs} ms`);
  await assertTreeIsGone(yard, front);
  assert.equal(fs.existsSync(canary), false);
});

eachFront('A03 a timeout ends what has left its session and its parent', async (t, { yard, open }) => {
  const front = await open();
  const started = path.join(yard.ws, 'started');
  const r = await front.run(`setsid sh -c '(touch ${started}; exec sleep 300) &' & sleep 300`, { timeoutMs: 1500 });

  assert.equal(r.status, 'timed_out');
  assert.ok(fs.existsSync(started), 'the daemon did run');
  await assertTreeIsGone(yard, front);
});

eachFront('A04 output before a timeout is kept', async (t, { name, open }) => {
  const front = await open();
  const r = await front.run('echo STEP-1; echo STEP-2 >&2; sleep 300', { timeoutMs: 1000 });

  assert.equal(r.timedOut, true);
  assert.equal(r.exitCode, 124);
  assert.match(r.output, /STEP-1\n/);
  assert.match(r.output, /STEP-2\n/);
  assert.match(r.text, /STEP-1[^]*STEP-2|STEP-2[^]*STEP-1/);
  if (name === 'exec') {
    assert.equal(r.raw.stdout, 'STEP-1\n');
    assert.equal(r.raw.stderr, 'STEP-2\n');
    assert.equal(r.cliStatus, 124);
  }
});
