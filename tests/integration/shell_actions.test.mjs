// The actions of the tool `shell`: sessions by one tool, with the same answers as by their own tools.
import assert from 'node:assert/strict';
import test from 'node:test';
import { STUCK_MS, call, makeYard, startMcp, textOf } from './lib/client.mjs';

const limit = { timeout: STUCK_MS };

async function open(t, options = {}) {
  const yard = makeYard();
  const server = await startMcp({ cwd: yard.ws, env: yard.env, ...options });

  t.after(() => server.close());

  return async (action, args = {}, tool = 'shell') => {
    const r = await call(server.client, tool, { ...(action === undefined ? {} : { action }), ...args });

    return { ...r.structuredContent, isError: r.isError ?? false, text: textOf(r) };
  };
}

test('without an action, and with "run", a program runs to its end', limit, async (t) => {
  const shell = await open(t);

  for (const action of [undefined, null, 'run']) {
    const r = await shell(action, { command: ['echo', 'hi'] });

    assert.equal(r.output, 'hi\n');
    assert.equal(r.exit_code, 0);
    assert.equal('next' in r, false);
  }
});

test('a session from its beginning to its end', limit, async (t) => {
  const shell = await open(t);
  const first = await shell('spawn', { command: ['bash', '--norc', '-i'], tty: true, session_id: 's1', until: 'prompt', yield_time_ms: 30_000 });

  assert.equal(first.status, 'running', first.text);
  assert.equal(first.session_id, 's1');
  assert.equal(first.reason, 'prompt');
  assert.match(first.next, /^shell \{"action":"wait","session_id":"s1"\}/);
  for (const [key, value] of Object.entries(first)) {
    assert.notEqual(value, null, `${key} is left out where it says nothing`);
  }

  const typed = await shell('send_text', { session_id: 's1', text: 'echo $((6*7))', enter: true, pattern: '^42', yield_time_ms: 30_000 });

  assert.equal(typed.reason, 'pattern', typed.text);
  await shell('send_keys', { session_id: 's1', text: 'sleep 3', keys: ['0', '0', 'Enter'], idle_ms: 200 });

  const stopped = await shell('send', { session_id: 's1', keys: ['C-c'], until: 'prompt', yield_time_ms: 30_000 });

  assert.equal(stopped.reason, 'prompt', stopped.text);

  const sized = await shell('resize', { session_id: 's1', rows: 30, cols: 100, idle_ms: 100 });

  assert.equal(sized.status, 'running', sized.text);
  assert.match((await shell('send_text', { session_id: 's1', text: 'stty size\r', pattern: '30 100', yield_time_ms: 30_000 })).output, /30 100/);

  const list = await shell('list');

  assert.deepEqual(list.sessions.map((s) => [s.session_id, s.status, s.tty]), [['s1', 'running', true]]);

  const killed = await shell('kill', { session_id: 's1' });

  assert.equal(killed.status, 'cancelled');
  assert.equal('next' in killed, false);
});

test('poll answers at once, wait until something is there', limit, async (t) => {
  const shell = await open(t);
  const { session_id } = await shell('spawn', { command: ['bash', '-c', 'read -r x; echo "got $x"; read -r y; exit 7'], stdin: 'pipe' });
  const nothing = await shell('poll', { session_id });

  assert.equal(nothing.output, '');
  assert.equal(nothing.reason, 'timeout');
  assert.equal(nothing.status, 'running');

  assert.equal((await shell('wait', { session_id, idle_ms: 100 })).reason, 'idle');
  assert.equal((await shell('send_text', { session_id, text: 'one', enter: true, pattern: 'got one', yield_time_ms: 30_000 })).reason, 'pattern');

  const end = await shell('send_text', { session_id, eof: true, yield_time_ms: 30_000 });

  assert.equal(end.exit_code, 7);
  assert.match((await shell('read', { session_id, since_seq: 0 })).output, /got one/);
});

test('what one tool began the other goes on with', limit, async (t) => {
  const shell = await open(t);
  const a = await shell('start', { command: ['cat'], pty: true });
  const b = await shell(undefined, { session_id: a.session_id, text: 'x', enter: true, pattern: 'x\\s+x', yield_time_ms: 30_000 }, 'write_stdin');

  assert.equal(b.reason, 'pattern', b.text);
  assert.match(b.next, /^write_stdin/);
  assert.match((await shell(undefined, { cmd: 'sleep 300', session_id: 'other', yield_time_ms: 250 }, 'exec_command')).next, /^write_stdin/);
  assert.match((await shell('poll', { session_id: 'other' })).next, /^shell/);
  assert.equal((await shell('kill', { session_id: 'other', signal: 'TERM', yield_time_ms: 30_000 })).signal_name, 'SIGTERM');
});

for (const [title, action, args, message] of [
  ['an unknown action', 'sing', {}, /'action' must be one of run, spawn, poll/],
  ['an argument of another action', 'poll', { session_id: 'x', keys: ['Up'] }, /'keys' belongs to action "send_text" or "send_keys", not to "poll"/],
  ['an argument of an action that was not named', undefined, { command: ['ls'], session_id: 'x' },
    /'session_id' belongs to action "spawn", "poll", "wait", "send_text", "send_keys", "resize" or "kill", not to "run", which is meant if none is named/],
  ['an unknown argument', 'poll', { session_id: 'x', yield_time: 5 }, /unknown argument 'yield_time'.*'yield_time_ms'/],
  ['no id', 'send_keys', { keys: ['Up'] }, /'session_id' is missing/],
  ['an id that is unknown', 'wait', { session_id: 'nope' }, /no session nope/],
  ['a key that is none', 'send_keys', { session_id: 'x', keys: ['Entr'] }, /Entr.*Enter/],
  ['no size', 'resize', { session_id: 'x' }, /needs 'rows' or 'cols'/],
  ['an id that means a directory', 'spawn', { command: ['true'], session_id: '..' }, /is neither '\.' nor '\.\.'/],
  ['no command', 'spawn', {}, /'command' must be/],
]) {
  test(`${title} is an error that says what would be right`, limit, async (t) => {
    const shell = await open(t);
    const r = await shell(action, args);

    assert.equal(r.isError, true);
    assert.match(r.text, message);
  });
}

test('null is as if not given, also of another action', limit, async (t) => {
  const shell = await open(t);
  const r = await shell(null, { command: ['echo', 'hi'], session_id: null, keys: null, rows: null, signal: null });

  assert.equal(r.output, 'hi\n');
});

test('a session that has gone says how, and one without a terminal has no size', limit, async (t) => {
  const shell = await open(t, { settings: { 'sessions.max': 9 } });

  for (let i = 0; i < 10; i += 1) {
    await shell('spawn', { command: ['true'], session_id: `n${i}`, yield_time_ms: 10_000 });
  }

  const gone = await shell('poll', { session_id: 'n0' });

  assert.equal(gone.isError, true);
  assert.match(gone.text, /session n0 exited with code 0, and made room/);

  for (const [command, says] of [['', /'command' must be a script.*not empty/], [[], /'command'.*not an empty one/], [undefined, /'command'.*not absent/], [['a', 1], /'command/]]) {
    assert.match((await shell('spawn', { command })).text, says);
  }

  const plain = await shell('spawn', { command: ['sleep', '300'] });
  const sized = await shell('resize', { session_id: plain.session_id, rows: 10, cols: 20 });

  assert.equal(sized.isError, true);
  assert.match(sized.text, /has no terminal/);
});
