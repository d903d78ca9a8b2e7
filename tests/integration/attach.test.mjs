// People who join sessions: what they see and type, how they leave, and who is refused.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import test from 'node:test';

import { call, has, isSanitized, makeYard, mustRun, startMcp, statusKb, STUCK_MS, waitFor } from './lib/client.mjs';
import { ask, clientsOf, frame, say, socketOf, startDaemon } from './lib/daemon.mjs';
import { openProto } from './lib/proto.mjs';
import { joinSession } from './lib/terminal.mjs';

const limit = { timeout: STUCK_MS };
const LEAVE = '\x1c';

/** A client of a daemon with a shell in a terminal, session 1234. */
async function open(t, { yard = makeYard(), command = ['bash', '--norc', '-i'], daemon = true, ...more } = {}) {
  if (daemon) {
    await startDaemon(t, yard);
  }
  const server = await startMcp({ cwd: yard.ws, env: { ...yard.env, PS1: '> ' } });
  t.after(() => server.close());
  const tool = async (name, args) => (await call(server.client, name, args)).structuredContent;
  await tool('exec_command', { command, process_id: '1234', tty: true, term: 'xterm-256color', idle_ms: 100, yield_time_ms: 3000, ...more });
  return {
    yard, server, tool,
    type: (input, args = {}) => tool('write_stdin', { process_id: '1234', input, yield_time_ms: 2000, idle_ms: 200, ...args }),
  };
}

test('a person sees the screen, types, and leaves a session that goes on', limit, async (t) => {
  const s = await open(t);
  await s.type('echo from the agent\n');
  const person = joinSession(t, s.yard, ['1234']);
  await person.shows(/^from the agent$/m);
  person.type('echo $((40 + 2)) from the person\r');
  await person.shows(/^42 from the person$/m);
  // The agent reads what the person did.
  assert.match((await s.type('echo both\n')).output, /42 from the person[\s\S]*both/);
  await person.shows(/^both$/m);
  person.type(LEAVE);
  const end = await person.ended;
  assert.deepEqual([end.status, end.modes, end.last], [0, 'kept', '[detached from 1234]\n']);
  assert.match((await s.type('echo goes on\n')).output, /^goes on$/m);
});

test('Ctrl-C and Ctrl-Z go to the session, and a key of choice leaves', limit, async (t) => {
  const s = await open(t);
  const person = joinSession(t, s.yard, ['--detach-key', 'F12', '1234']);
  // The terminal is the job's when it speaks, not when its line is there: a key before that is the shell's.
  fs.writeFileSync(path.join(s.yard.ws, 'job.py'), `import os, signal
signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.signal(signal.SIGCONT, lambda *_: os.write(1, b'goes on\\n'))
os.write(1, b'is up\\n')
while True: signal.pause()
`);
  await person.shows(/>/);
  person.type('python3 job.py\r');
  await person.shows(/^is up$/m);
  person.type('\x1a');
  await person.shows(/Stopped/);
  person.type('fg\r');
  await person.shows(/> fg\npython3 job\.py\ngoes on$/);
  person.type('\x03');
  await person.shows(/\^C\n+>$/);
  person.type('echo status $?\r');
  await person.shows(/^status 130$/m);
  // What may begin that key and is another one arrives, and that key leaves in pieces too.
  person.type("echo rea''dy; cat\r");
  await person.shows(/^ready$/m);
  person.type('\x1b');
  await person.shows(/^\^\[$/m);
  let end;
  person.ended.then((e) => { end = e; });
  await waitFor(() => {
    person.type('\x1b[2');
    setImmediate(() => person.type('4~'));
    return end;
  }, 'F12 in two pieces leaves');
  // What was typed behind it is the person's own terminal's, which echoes it.
  assert.match(end.last, /^\[detached from 1234\]\n/);
});

test('the session has the size of the terminal that has joined, of two the smaller, and keeps it', limit, async (t) => {
  const s = await open(t);
  const size = async () => (await s.type('stty size\n')).output.match(/^(\d+ \d+)\s*$/m)?.[1];
  const first = joinSession(t, s.yard, ['1234'], { rows: 30, cols: 100 });
  await first.shows(/>/);
  assert.equal(await size(), '30 100');
  const second = joinSession(t, s.yard, ['1234'], { rows: 40, cols: 70 });
  await second.shows(/30 100/);
  assert.equal(await size(), '30 70');
  const watcher = joinSession(t, s.yard, ['-r', '1234'], { rows: 5, cols: 20 });
  await watcher.shows(/30 70/);
  assert.equal(await size(), '30 70');
  first.resize(20, 60);
  await waitFor(async () => await size() === '20 60', 'the smaller size');
  first.type(LEAVE);
  await first.ended;
  await waitFor(async () => await size() === '40 70', 'the size of the one that stays');
  second.type(LEAVE);
  await second.ended;
  assert.equal(await size(), '40 70');
  watcher.type(LEAVE);
  assert.equal((await watcher.ended).status, 0);
});

test('a terminal that knows no size of its own is one of 24 by 80', limit, async (t) => {
  const s = await open(t);
  await s.type('', { rows: 30, cols: 100 });
  const person = joinSession(t, s.yard, ['1234'], { rows: 0, cols: 0 });
  await person.shows(/>/);
  person.type('stty size\r');
  await person.shows(/^24 80$/m);
});

test('two who have joined see what either types, and one who watches types nothing', limit, async (t) => {
  const s = await open(t);
  const people = [joinSession(t, s.yard, ['1234']), joinSession(t, s.yard, ['1234']), joinSession(t, s.yard, ['--read-only', '1234'])];
  await Promise.all(people.map((p) => p.shows(/>/)));
  people[2].type('echo never\r');
  people[0].type('echo one\r');
  await Promise.all(people.map((p) => p.shows(/^one$/m)));
  people[1].type('echo two\r');
  await Promise.all(people.map((p) => p.shows(/^one[\s\S]*^two$/m)));
  people.forEach((p) => p.type(LEAVE));
  const ends = await Promise.all(people.map((p) => p.ended));
  assert.deepEqual(ends.map((e) => e.status), [0, 0, 0]);
  assert.equal(ends.some((e) => e.raw.includes('never')), false);
});

const words = ['1234', 'ro', '24', '80', 'PATH=/usr/bin'];
const hello = (args) => frame(['attach', 'another build', '/', String(args.length - 1), ...args]);
const bytesOf = (kind, body) => Buffer.concat([Buffer.from(kind), Buffer.from([body.length, 0, 0, 0]), Buffer.from(body)]);

/** Says hello, then these bytes once it is answered; all that comes back. */
async function talk(yard, args, bytes) {
  const socket = net.connect(socketOf(yard));
  let answer = '';
  socket.write(hello(args));
  socket.on('data', (chunk) => {
    if (answer === '') {
      socket.write(bytes);
    }
    answer += chunk;
  });
  await once(socket, 'close');
  return answer;
}

test('the daemon itself refuses what one who watches types, and frames that are none', limit, async (t) => {
  const s = await open(t);
  const answer = await talk(s.yard, words, Buffer.concat([bytesOf('i', 'echo never\r'), bytesOf('d', '')]));
  assert.match(answer, /^ok \d+/);
  assert.match(answer, /what was typed is not taken: this one only watches/);
  const bad = await talk(s.yard, ['1234', 'rw', '24', '80', 'A=b'], Buffer.from('nonsense'));
  assert.match(bad, /a frame of the kind 0x6e, which is none/);
  assert.match(await say(socketOf(s.yard), hello(['1234', 'all', '24', '80', 'A=b'])), /^error 2 attach takes a session, rw or ro, rows and columns$/m);
  assert.doesNotMatch((await s.type('echo still here\n')).output, /never/);
});

test('a terminal that takes nothing costs a piece of the screen, and is shown the last one', limit, async (t) => {
  const yard = makeYard();
  const daemon = await startDaemon(t, yard);
  const s = await open(t, { yard, daemon: false });
  const socket = net.connect(socketOf(yard));
  t.after(() => socket.destroy());
  socket.write(hello(['1234', 'ro', '24', '80', 'A=b']));
  await once(socket, 'data');
  socket.pause();
  const before = statusKb(daemon.pid, 'VmRSS');
  await s.type('yes "$(seq -s. 60)" | head -c 60000000; echo the end\n', { yield_time_ms: 30_000, idle_ms: 2000 });
  await waitFor(async () => (await s.tool('write_stdin', { process_id: '1234', input: '', view: 'screen', yield_time_ms: 500 })).output.includes('the end\n'),
    'the program has ended', STUCK_MS / 2);
  if (!isSanitized) {
    assert.ok(statusKb(daemon.pid, 'VmRSS') - before < 16_384, 'nothing piles up');
  }
  let shown = '';
  socket.on('data', (chunk) => { shown += chunk; }).resume();
  await waitFor(() => /the end\x1b/.test(shown), 'the last screen comes');
  assert.ok(shown.length < 2_000_000, `${shown.length} bytes for what nobody saw`);
});

test('the end of the session is told, and the terminal is given back', limit, async (t) => {
  const s = await open(t);
  const person = joinSession(t, s.yard, ['1234']);
  await person.shows(/>/);
  person.type('exit 3\r');
  const end = await person.ended;
  assert.deepEqual([end.status, end.modes, end.last], [0, 'kept', '[session 1234 exited with code 3]\n']);
  const late = joinSession(t, s.yard, ['1234']);
  const over = await late.ended;
  assert.equal(over.status, 127);
  assert.match(over.raw, /session 1234 exited with code 3: there is nothing to join/);
});

test('signals and the end of the daemon give the terminal back too', limit, async (t) => {
  const yard = makeYard();
  const daemon = await startDaemon(t, yard);
  await open(t, { yard, daemon: false });
  for (const [number, status] of [[15, 143], [1, 129]]) {
    const person = joinSession(t, yard, ['1234']);
    await person.shows(/>/);
    person.signal(number);
    const end = await person.ended;
    assert.deepEqual([end.status, end.modes, end.last], [status, 'kept', '[detached from 1234]\n']);
  }
  const crashed = joinSession(t, yard, ['1234']);
  await crashed.shows(/>/);
  crashed.signal(11);
  assert.deepEqual((({ status, modes }) => [status, modes])(await crashed.ended), [139, 'kept']);
  const person = joinSession(t, yard, ['1234']);
  await person.shows(/>/);
  assert.match(ask(yard, ['list']).stdout, /^c\d+ +attach /m);
  const [{ host }] = JSON.parse(ask(yard, ['list', '--json']).stdout).sessions;
  daemon.child.kill('SIGKILL');
  await daemon.ended;
  person.type('echo still here\r');
  await person.shows(/^still here$/m);
  process.kill(host, 'SIGKILL');
  const end = await person.ended;
  assert.deepEqual([end.status, end.modes], [125, 'kept']);
  assert.match(end.last, /^shellyard: the daemon, or its host for the session, has ended without a word$/m);
});

test('one who has joined is ended by kill and by the stop of the daemon', limit, async (t) => {
  const s = await open(t);
  const killed = joinSession(t, s.yard, ['1234']);
  await killed.shows(/>/);
  const { id } = clientsOf(s.yard).find((c) => c.kind === 'attach');
  assert.equal(ask(s.yard, ['kill', id]).status, 0);
  assert.equal((await killed.ended).last, '[detached from 1234]\n');
  const stopped = joinSession(t, s.yard, ['1234']);
  await stopped.shows(/>/);
  assert.equal(ask(s.yard, ['serve', '--stop']).status, 0);
  const end = await stopped.ended;
  assert.equal(end.status, 0);
  assert.match(end.last, /^\[(the daemon was stopped|session 1234 was (killed|ended by signal).*)\]$/m);
});

test('programs that draw are joined as they are', limit, async (t) => {
  if (!mustRun(t, has('vim') && has('less'), 'vim and less are missing')) {
    return;
  }
  const yard = makeYard();
  fs.writeFileSync(path.join(yard.ws, 'text'), Array.from({ length: 200 }, (_, i) => `line ${i + 1} \u6f22\u5b57`).join('\n'));
  const s = await open(t, { yard });
  await s.type('less text\n');
  const person = joinSession(t, yard, ['1234']);
  await person.shows(/^line 1 \u6f22/m);
  person.type(' ');
  await person.shows(/^line 40 /m);
  person.type('q');
  await person.shows(/less text/);
  person.type('vim -u NONE -N text\r');
  await person.shows(/^~?line 1 [\s\S]*"text"/m);
  person.type('ihello \x1b');
  await person.shows(/^hello line 1/m);
  const late = joinSession(t, yard, ['-r', '1234']);
  await late.shows(/^hello line 1 /m);
  person.type(':q!\r');
  await late.shows(/> vim -u NONE/);
  person.type(LEAVE);
  assert.equal((await person.ended).modes, 'kept');
});

test('nothing that asks or tells reaches the terminal of a person', limit, async (t) => {
  const s = await open(t);
  const person = joinSession(t, s.yard, ['1234']);
  await person.shows(/>/);
  person.type("printf '\\033[c\\033[6n\\033]52;c;aGk=\\007\\033]11;?\\007\\033[>q\\033[21t'; read -rs -d R -t 5 x; echo sa\"\"id\r");
  await person.shows(/said$/m);
  // What was typed and echoed is there as text, and no such sequence.
  assert.doesNotMatch(person.raw(), /\x1b\[c|\x1b\[6n|\x1b\]52|\x1b\]11|\x1b\[>q|\x1b\[21t/);
});

test('what a person types is told as theirs, no password is, and a line of two is judged whole', limit, async (t) => {
  const yard = makeYard();
  const dir = path.join(yard.home, '.config/shellyard');
  fs.mkdirSync(dir, { recursive: true });
  fs.writeFileSync(path.join(dir, 'rules.yaml'), JSON.stringify({ rules: [{ program: 'shutdown', decision: 'forbid', reason: 'the machine stays up' }] }));
  await startDaemon(t, yard);
  const proto = openProto(t, { ...yard, env: { ...yard.env, PS1: '> ' } });
  const send = (name, id, args) => proto.send({ type: 'function_call', call_id: id, name, arguments: JSON.stringify(args) });
  const answer = (id) => proto.next((m) => m.type === 'function_call_output' && m.call_id === id);
  const typed = () => proto.lines.map((line) => JSON.parse(line)).filter((m) => m.type === 'terminal_interaction');
  send('exec_command', 'c1', { command: ['bash', '--norc', '-i'], process_id: '1234', tty: true, idle_ms: 100, yield_time_ms: 2000 });
  await answer('c1');
  const person = joinSession(t, yard, ['1234']);
  await person.shows(/>/);
  person.type("read -rsp 'secret? ' x; echo; echo got it\r");
  await waitFor(() => typed().map((m) => m.stdin).join('').endsWith('\r'), 'the line is told');
  assert.equal(typed().every((m) => m.by === 'person' && m.call_id === 'c1'), true);
  await person.shows(/^secret\?/m); // Bash asks when the echo is off.
  person.type('hunter2\r');
  await person.shows(/^got it$/m);
  assert.equal(proto.lines.some((line) => line.includes('hunter2')), false);
  person.type('shut');
  await person.shows(/> shut$/m);
  send('write_stdin', 'c2', { process_id: '1234', input: 'down now\n', yield_time_ms: 500 });
  assert.match((await answer('c2')).output, /the machine stays up/);
  person.type('\x15');
  await waitFor(() => typed().at(-1).stdin === '\x15', 'the line is gone');
  send('write_stdin', 'c3', { process_id: '1234', input: 'echo agent\n', yield_time_ms: 1000, idle_ms: 100 });
  await answer('c3');
  assert.equal(typed().at(-1).by, 'agent');
});

test('a name of several owners is said with its owners, and joined by one of them', limit, async (t) => {
  const s = await open(t);
  await open(t, { yard: s.yard, daemon: false });
  const unclear = await joinSession(t, s.yard, ['1234']).ended;
  assert.equal(unclear.status, 2);
  const [, owner] = unclear.raw.match(/several clients have a session 1234: name one of (c\d+\/1234), c\d+\/1234/);
  const person = joinSession(t, s.yard, [owner]);
  await person.shows(/>/);
  person.type(LEAVE);
  assert.equal((await person.ended).last, `[detached from ${owner}]\n`);
});

test('what can not be joined is said plainly', limit, async (t) => {
  const yard = makeYard();
  const none = await joinSession(t, yard, ['1234']).ended;
  assert.deepEqual([none.status, none.modes], [127, 'kept']);
  assert.match(none.raw, /^shellyard: .*daemon/m);
  await startDaemon(t, yard);
  assert.match((await joinSession(t, yard, ['1234']).ended).raw, /there is no session 1234/);
  const s = await open(t, { yard, daemon: false, command: ['sleep', '1000'], tty: false });
  assert.match((await joinSession(t, yard, ['1234']).ended).raw, /session 1234 has no terminal/);
  const other = await joinSession(t, yard, ['99']).ended;
  assert.equal(other.status, 127);
  assert.match(other.raw, /99/);
  const piped = ask(yard, ['attach', '1234']);
  assert.equal(piped.status, 2);
  assert.match(piped.stderr, /standard input is no terminal: attach needs one/);
  for (const [key, said] of [['a', /could not be typed any more/], ['C-nonsense', /--detach-key/]]) {
    const wrong = ask(yard, ['attach', '--detach-key', key, '1234']);
    assert.equal(wrong.status, 2);
    assert.match(wrong.stderr, said);
  }
  await s.tool('kill_session', { session_id: '1234' });
});
