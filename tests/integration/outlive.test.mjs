// Sessions that outlive their client, and the daemon.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import test from 'node:test';

import { call, hasEnded, makeYard, startMcp, STUCK_MS, waitFor } from './lib/client.mjs';
import { ask, clientsOf, hostsOf, startDaemon } from './lib/daemon.mjs';

const limit = { timeout: STUCK_MS };
const open = (yard, options = {}) => startMcp({ cwd: yard.ws, env: yard.env, ...options, settings: { 'shell.path': '/bin/bash', ...options.settings } });
const tool = async (server, name, args) => (await call(server.client, name, args)).structuredContent;
const sessionsOf = (yard) => JSON.parse(ask(yard, ['list', '--json']).stdout).sessions;
const start = (server, more = {}) => tool(server, 'exec_command', {
  cmd: 'bash --norc -i', tty: true, session_id: 'work', until: 'prompt', ...more,
});
const type = (server, chars, until = 'prompt') => tool(server, 'write_stdin', { session_id: 'work', chars, until });

test('a terminal outlives its client, and the next client of the place goes on with it', limit, async (t) => {
  const yard = makeYard();
  const daemon = await startDaemon(t, yard);
  const first = await open(yard);
  assert.equal((await start(first)).session_id, 'work');
  await type(first, 'export LEFT=behind; echo before-$LEFT\n');
  await first.close();
  const [kept] = await waitFor(() => {
    const list = sessionsOf(yard);
    return list.length === 1 && list[0].kept && list;
  }, 'the session is kept');
  assert.equal(kept.id, 'work');
  assert.equal(kept.kind, 'terminal');
  assert.equal(kept.running, true);
  assert.match(ask(yard, ['list']).stdout, /^no clients\nc1\/work +terminal +runs +\d+ s +bash --norc -i\n$/);

  const second = await open(yard);
  t.after(() => second.close());
  assert.equal(clientsOf(yard)[0].host, kept.host, 'the same host serves it');
  const { sessions } = await tool(second, 'list_sessions', {});
  assert.deepEqual(sessions.map((s) => s.session_id), ['work']);
  const screen = await tool(second, 'write_stdin', { session_id: 'work', view: 'screen' });
  assert.match(screen.output, /before-behind/);
  assert.match((await type(second, 'echo again-$LEFT\n')).output, /again-behind/);
  // It ends as any other, and is told to whoever has it now.
  const ended = await tool(second, 'write_stdin', { session_id: 'work', chars: 'exit 7\n', yield_time_ms: 10_000 });
  assert.equal(ended.exit_code, 7);
  assert.equal(daemon.child.exitCode, null);
});

test('a terminal outlives the daemon killed by -9: listed, its screen there, typed to, ended', limit, async (t) => {
  const yard = makeYard();
  const one = await startDaemon(t, yard);
  const first = await open(yard);
  await start(first);
  await type(first, 'echo on the screen; (trap "" HUP; read -r line < /dev/tty; echo "late $line") \n', 'input');
  await first.close();
  await waitFor(() => sessionsOf(yard)[0]?.kept, 'the session is kept');
  one.child.kill('SIGKILL');
  await one.ended;
  const [host] = hostsOf(yard).filter((pid) => fs.existsSync(`/proc/${pid}`));
  const two = await startDaemon(t, yard);
  const [found] = sessionsOf(yard);
  assert.equal(found.id, 'work');
  assert.equal(found.running, true);
  assert.ok(hostsOf(yard).includes(host));
  const second = await open(yard);
  t.after(() => second.close());
  const screen = await tool(second, 'write_stdin', { session_id: 'work', view: 'screen' });
  assert.match(screen.output, /^on the screen$/m);
  assert.match((await type(second, 'words\n')).output, /late words/);
  assert.equal(ask(yard, ['kill', 'work']).status, 0);
  const dead = await tool(second, 'write_stdin', { session_id: 'work', chars: '', yield_time_ms: 10_000 });
  assert.equal(dead.status, 'cancelled');
  assert.equal(ask(yard, ['serve', '--stop']).status, 0);
  assert.equal((await two.ended).code, 0);
  await hasEnded(found.host);
});

test('who comes before the host knows that its client was killed has its terminal as well', limit, async (t) => {
  const yard = makeYard();
  const daemon = await startDaemon(t, yard, { args: ['-c', 'log.level=debug'] });
  const asked = () => daemon.stderr().split('hosts of clients like it are asked').length - 1;
  for (let i = 0; i < 3; i += 1) {
    const id = `work${i}`;
    const first = await open(yard);
    await tool(first, 'exec_command', { cmd: 'sleep 1000', tty: true, session_id: id, yield_time_ms: 250 });
    const [{ host }] = clientsOf(yard);
    process.kill(host, 'SIGSTOP');
    process.kill(first.pid, 'SIGKILL');
    await hasEnded(first.pid);
    const before = asked();
    const opening = open(yard);
    await waitFor(() => asked() > before, 'the daemon asks');
    process.kill(host, 'SIGCONT');
    const second = await opening;
    assert.deepEqual(clientsOf(yard).map((c) => c.host), [host], 'the same host serves it');
    await waitFor(() => sessionsOf(yard).some((s) => s.id === id && !s.kept), `the second client has ${id}`);
    assert.ok((await tool(second, 'list_sessions', {})).sessions.some((s) => s.session_id === id));
    await second.close();
    await waitFor(() => clientsOf(yard).length === 0, 'it has gone');
    assert.equal(ask(yard, ['kill', id]).status, 0);
    await waitFor(() => sessionsOf(yard).every((s) => !s.running), 'its terminal too');
  }
});

test('a client beside another of its place has a host of its own, also where that one hangs', limit, async (t) => {
  const yard = makeYard();
  await startDaemon(t, yard);
  const first = await open(yard);
  t.after(() => first.close());
  const second = await open(yard);
  t.after(() => second.close());
  const hosts = clientsOf(yard).map((c) => c.host);
  assert.equal(new Set(hosts).size, 2);
  process.kill(hosts[0], 'SIGSTOP');
  const third = await open(yard);
  t.after(() => third.close());
  assert.equal((await tool(third, 'shell_command', { command: 'echo up' })).output, 'up\n');
  process.kill(hosts[0], 'SIGCONT');
  assert.equal(clientsOf(yard).length, 3);
});

test('what writes while nobody is there is buffered, and how it ended is known an hour', limit, async (t) => {
  const yard = makeYard();
  await startDaemon(t, yard);
  const first = await open(yard);
  const go = `${yard.ws}/go`;
  assert.equal((await tool(first, 'exec_command', {
    cmd: `until test -e ${go}; do sleep 0.01; done; seq 1 5000; exit 3`, tty: true, session_id: 'work', yield_time_ms: 250,
  })).session_id, 'work');
  await first.close();
  await waitFor(() => sessionsOf(yard).every((s) => s.kept), 'it is kept');
  fs.writeFileSync(go, '');
  await waitFor(() => sessionsOf(yard).some((s) => s.state === 'exited with code 3'), 'it has ended');
  const second = await open(yard);
  t.after(() => second.close());
  const rest = await tool(second, 'write_stdin', { session_id: 'work', chars: '' });
  assert.equal(rest.exit_code, 3);
  assert.match(rest.output, /4999\r?\n5000/);
});

test('pipes end with their client, unless all is to outlive it; with never, terminals do too', limit, async (t) => {
  for (const [outlive, expected] of [['terminals', ['tty']], ['all', ['pipe', 'tty']], ['never', []]]) {
    const yard = makeYard();
    await startDaemon(t, yard);
    const server = await open(yard, { settings: { 'sessions.outlive': outlive } });
    await tool(server, 'exec_command', { cmd: 'sleep 1000', session_id: 'pipe', yield_time_ms: 250 });
    await tool(server, 'exec_command', { cmd: 'sleep 1000', tty: true, session_id: 'tty', yield_time_ms: 250 });
    await server.close();
    await waitFor(() => clientsOf(yard).length === 0, 'the client has gone');
    const left = await waitFor(() => {
      const ids = sessionsOf(yard).map((s) => s.id).sort();
      return ids.length === expected.length && ids;
    }, `what outlives it with ${outlive}`);
    assert.deepEqual(left, expected);
  }
});

test('another policy or another place does not get at what was left', limit, async (t) => {
  const yard = makeYard();
  await startDaemon(t, yard);
  fs.mkdirSync(`${yard.ws}/sub`);
  const first = await open(yard);
  await start(first);
  await first.close();
  await waitFor(() => sessionsOf(yard)[0]?.kept, 'the session is kept');
  const others = [{ settings: { 'sandbox.mode': 'read-only' } }, { args: ['-C', 'sub'] }, { env: { ...yard.env, SHELLYARD_OUTPUT_MAX_BYTES: '2000' } }];
  for (const options of others) {
    const other = await open(yard, options);
    assert.deepEqual((await tool(other, 'list_sessions', {})).sessions, []);
    await other.close();
  }
  assert.equal(sessionsOf(yard).length, 1);
  // Of two at once the first has it.
  const [a, b] = [await open(yard), await open(yard)];
  assert.equal((await tool(a, 'list_sessions', {})).sessions.length, 1);
  assert.deepEqual((await tool(b, 'list_sessions', {})).sessions, []);
  await Promise.all([a.close(), b.close()]);
});
