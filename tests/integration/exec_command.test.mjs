// Sessions: commands that outlive the call that started them (A09, A10, A14, A18, A22, A23).
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { call, has, makeYard, mustRun, processesOf, waitFor } from './lib/client.mjs';
import { open, readUntil } from './lib/live.mjs';
import { openProto } from './lib/proto.mjs';

test('a shell keeps its state from call to call', async (t) => {
  const s = await open(t);
  const first = await s.tool('exec_command', { command: ['bash', '--norc', '-i'], process_id: '1001', tty: true, idle_ms: 200 });

  assert.equal(first.status, 'running');
  assert.equal(first.process_id, '1001');
  assert.equal('exit_code' in first, false);
  await s.tool('write_stdin', { process_id: '1001', input: 'export FOO=bar\n', yield_time_ms: 1000, idle_ms: 100 });

  const r = await s.tool('write_stdin', { process_id: '1001', input: 'echo $FOO\n', yield_time_ms: 1000, idle_ms: 100 });

  assert.match(await readUntil(s, '1001', /^bar\n/m, r.output), /^bar\n/m);

  const end = await s.type('1001', 'exit 3\n', { yield_time_ms: 10_000 });

  assert.equal(end.status, 'exited');
  assert.equal(end.exit_code, 3);
  assert.equal(end.reason, 'exit');
});

test('a command that ends within its yield is answered at once, and known afterwards (A09)', async (t) => {
  const s = await open(t);
  const r = await s.exec("python3 -c 'import nope_mod'", { session_id: 'short' });

  assert.equal(r.status, 'exited');
  assert.equal(r.exit_code, 1);
  assert.match(r.output, /ModuleNotFoundError/);

  for (let i = 0; i < 2; i++) {
    const again = await s.tool('write_stdin', { session_id: 'short', since_seq: 0 });

    assert.equal(again.exit_code, 1);
    assert.match(again.output, /ModuleNotFoundError/);
  }

  const killed = await s.tool('kill_session', { session_id: 'short' });

  assert.equal(killed.isError, false);
  assert.equal(killed.exit_code, 1);
});

test('only what is left out of an answer makes it truncated', async (t) => {
  const s = await open(t);

  for (const tty of [false, true]) {
    const whole = await s.exec("printf '\\033[31mred\\033[0m\\nok\\n'", { tty });

    assert.equal(whole.output, 'red\nok\n');
    assert.equal(whole.truncated ?? false, false, `tty ${tty}`);
    assert.doesNotMatch(whole.text, /truncated/);

    const cut = await s.exec('seq 20000', { tty, max_output_tokens: 100, yield_time_ms: 20_000 });

    assert.equal(cut.truncated, true);
    assert.match(cut.text, /\(truncated\)/);
    assert.match(cut.output, /bytes \(\d+ lines\) omitted of/);
  }
});

test('an unknown session is an error that says so', async (t) => {
  const s = await open(t);
  const r = await s.type('99', 'x');

  assert.equal(r.isError, true);
  assert.match(r.text, /no session 99/);
});

test('a character that is split in time is whole in the answer (A10)', async (t) => {
  const s = await open(t);

  for (const tty of [false, true]) {
    let r = await s.exec("printf '\\xf0'; sleep 0.4; printf '\\x9f\\x9a\\x80 ok\\n'", { tty, yield_time_ms: 250 });
    let all = r.output;

    while (r.status === 'running') {
      r = await s.type(r.session_id, '');
      all += r.output;
    }
    assert.equal(all, '🚀 ok\n');
  }
});

test('nothing that a terminal shows at the end is lost (A14)', async (t) => {
  const s = await open(t);

  for (let i = 0; i < 50; i++) {
    const r = await s.tool('exec_command', {
      command: ['bash', '-c', "head -c 20480 /dev/zero | tr '\\0' h"], tty: true, yield_time_ms: 30_000, max_output_tokens: 10_000 });

    assert.equal(r.exit_code, 0);
    assert.equal(r.output, 'h'.repeat(20480));
  }
});

test('any legal directory, and no letter is changed (A22, A23)', async (t) => {
  const s = await open(t);

  for (const name of ['a b', "it's $(id)", '-n', '日本語', 'x;y&z', '[br]*']) {
    const dir = path.join(s.yard.ws, name);

    fs.mkdirSync(dir);
    fs.chmodSync(dir, 0o777);

    const r = await s.exec('pwd; touch here', { workdir: dir, tty: true });

    assert.equal(r.output, `${dir}\n`);
    assert.ok(fs.existsSync(path.join(dir, 'here')));
  }

  const r = await s.exec('[ ! -e /nonexist ] && x=5 && echo "a!b ${x} $((x!=4)) \\\\! {q}"', { tty: true });

  assert.equal(r.output, 'a!b 5 1 \\! {q}\n');
  assert.equal(r.exit_code, 0);
});

test('arguments of a wait that are none are told as what they are', async (t) => {
  const s = await open(t);

  for (const [args, says] of [
    [{ pattern: 'a'.repeat(30_000) }, /'pattern' is a regular expression of 30000 bytes; it may have 4096/],
    [{ yield_time_ms: 300.5 }, /'yield_time_ms' must be a whole number, not 300\.5/],
    [{ yield_time_ms: '300' }, /'yield_time_ms' must be a whole number, not string/],
    [{ until: [] }, /'until' is an empty list.*or leave it out/],
    [{ until: '' }, /'until' names what ends the wait/],
    [{ view: 'diff', since_seq: 0 }, /'view' diff.*leave out 'since_seq', or give another 'view'/],
  ]) {
    const wrong = await s.exec('touch ran', args);

    assert.equal(wrong.isError, true, wrong.text);
    assert.match(wrong.text, says);
  }
  assert.equal(fs.existsSync(path.join(s.yard.ws, 'ran')), false);
});

test('what had ended before it was given anything says so, whatever it was', async (t) => {
  const s = await open(t);

  await s.exec('exit 3', { session_id: 'gone', tty: true });
  for (const args of [{ chars: 'x' }, { keys: ['Up'] }, { enter: true }, { eof: true }, { rows: 30 }, { cols: 90 }, { signal: 'INT' }]) {
    const late = await s.tool('write_stdin', { session_id: 'gone', ...args });

    assert.equal(late.exit_code, 3);
    assert.match(late.note ?? '', /it had ended before it was given anything/, JSON.stringify(args));
  }
  assert.equal((await s.type('gone', '')).note, undefined);

  // A signal that ends it was given.
  await s.exec('sleep 300', { session_id: 'ended', yield_time_ms: 250 });

  const end = await s.tool('write_stdin', { session_id: 'ended', signal: 'TERM', yield_time_ms: 30_000 });

  assert.equal(end.signal_name, 'SIGTERM');
  assert.doesNotMatch(end.note ?? '', /before it was given/);
});

test('a screen that is asked for is shown with since_seq, too', async (t) => {
  const s = await open(t);
  const r = await s.exec("printf 'one\\ntwo\\033[1;1HXX'; sleep 300", { tty: true, pattern: 'XX', yield_time_ms: 30_000 });
  const screen = await s.type(r.session_id, '', { view: 'screen', since_seq: 0, pattern: 'one', yield_time_ms: 30_000 });

  assert.equal(screen.reason, 'pattern');
  assert.equal(screen.output, 'XXe\ntwo\n');
  assert.equal(screen.screen.rows, 24);
  assert.match((await s.type(r.session_id, '', { since_seq: 0 })).output, /^one\r?\ntwo/);
});

test('what a session can not do, or has not reached, is an error that says what to do', async (t) => {
  const s = await open(t);
  const cat = await s.exec(['cat'], { tty: true, yield_time_ms: 250 });
  const typed = await s.type(cat.session_id, 'one\n', { pattern: 'one\\s+one\\s', yield_time_ms: 30_000 });
  const again = await s.type(cat.session_id, '', { since_seq: 0, pattern: '^one', yield_time_ms: 30_000 });

  assert.equal(again.reason, 'pattern');
  assert.equal(again.output, 'one\none\n');
  assert.equal(again.next_seq, typed.next_seq);

  const beyond = await s.type(cat.session_id, 'lost\n', { since_seq: typed.next_seq + 1 });

  assert.match(beyond.text, /'since_seq' is 11, but session \S+ has written 10 bytes.*next_seq/);

  const end = await s.type(cat.session_id, 'lost\n', { eof: true });

  assert.match(end.text, /terminal.*Ctrl-D.*u0004/);
  assert.equal((await s.type(cat.session_id, '\u0004', { yield_time_ms: 30_000, idle_ms: 10_000 })).exit_code, 0);
  assert.equal((await s.type(cat.session_id, '', { since_seq: 0 })).output, 'one\none\n');

  const plain = await s.exec('sleep 300', { yield_time_ms: 250, until: 'prompt', view: 'screen' });

  assert.equal(plain.reason, 'timeout');
  assert.match(plain.note, /no terminal.*tty true/);
  assert.equal((await s.exec('sleep 0.3', { yield_time_ms: 5000, until: 'prompt' })).note, undefined);
});

test('a wait ends with what it waits for, and says which', async (t) => {
  const s = await open(t);
  const pattern = await s.exec('sleep 0.3; printf "\\033[1mready\\033[0m on 80"; sleep 300', { pattern: 'ready on \\d+$', yield_time_ms: 30_000 });

  assert.equal(pattern.reason, 'pattern');
  assert.equal(pattern.output, 'ready on 80');
  assert.match((await s.exec('true', { pattern: '(' })).text, /'pattern'.*parenthesis/);

  const shell = await s.tool('exec_command', { command: ['bash', '--norc', '-i'], tty: true, until: 'prompt', yield_time_ms: 30_000 });

  assert.equal(shell.reason, 'prompt');
  assert.equal(shell.waiting_for_input, true);

  const done = await s.type(shell.session_id, 'sleep 0.4; echo done\n', { until: 'prompt', yield_time_ms: 30_000 });

  assert.equal(done.reason, 'prompt');
  assert.match(done.output, /^done$/m);

  const secret = await s.type(shell.session_id, 'read -rs x\n', { until: 'input', yield_time_ms: 30_000 });

  assert.equal(secret.reason, 'input');
  assert.equal(secret.echo_off, true);

  // The first of several.
  const asked = await s.type(shell.session_id, '\n', { until: 'prompt, idle,exit', idle_ms: 20_000, pattern: 'nowhere', yield_time_ms: 30_000 });

  assert.equal(asked.reason, 'prompt');

  const line = await s.type(shell.session_id, 'read -r x\n', { until: ['prompt', 'input'], yield_time_ms: 30_000 });

  assert.equal(line.reason, 'input');
  assert.equal((await s.exec('sleep 300', { until: 'idle', yield_time_ms: 30_000 })).reason, 'idle');
  assert.equal((await s.exec('sleep 0.6', { until: 'exit', yield_time_ms: 30_000 })).reason, 'exit');
  for (const [until, says] of [['prompt,now', /prompt, input, stable, idle, pattern, exit.*not "now"/], ['prompt,', /not ""/],
    [['prompt', 7], /not integer/], ['pattern', /give 'pattern'/]]) {
    assert.match((await s.exec('true', { until })).text, says);
  }
});

test('a shell that waits to be typed to holds no other call up', async (t) => {
  const s = await open(t);
  let isAnswered = false;
  const first = s.exec(['bash', '--norc', '-i'], { session_id: 'sh', tty: true, pattern: 'never', yield_time_ms: 30_000 })
    .finally(() => { isAnswered = true; });
  const other = await s.exec(['touch', 'here']);

  assert.equal(other.exit_code, 0);
  assert.equal(isAnswered, false);
  await s.tool('kill_session', { session_id: 'sh' });
  assert.equal((await first).reason, 'exit');
});

for (const [name, cmd, mark] of [['less', 'seq 1 200 | less', /^1$/m], ['vim', 'vim -u NONE -n', /VIM|~/]]) {
  test(`the screen of ${name} is shown as a person sees it`, async (t) => {
    if (!mustRun(t, has(name), `no ${name}`)) {
      return;
    }
    const s = await open(t);
    const r = await s.exec(cmd, { tty: true, term: 'xterm-256color', env: { PAGER: '' }, idle_ms: 400, rows: 12, cols: 60, yield_time_ms: 30_000 });

    assert.equal(r.screen?.alt_screen, true, JSON.stringify(r));
    assert.deepEqual([r.screen.rows, r.screen.cols], [12, 60]);
    assert.match(r.output, mark);

    if (name === 'less') {
      const next = await s.tool('write_stdin', { session_id: r.session_id, keys: ['Space'], idle_ms: 300, yield_time_ms: 10_000 });

      assert.match(next.output, /^12$/m);
      assert.doesNotMatch(next.output, /^1$/m);
      assert.equal((await s.type(r.session_id, 'q', { yield_time_ms: 30_000 })).exit_code, 0);
      return;
    }
    await s.tool('write_stdin', { session_id: r.session_id, chars: 'ihello there', keys: ['Escape'], idle_ms: 300, yield_time_ms: 10_000 });

    const diff = await s.type(r.session_id, 'yyp', { view: 'diff', idle_ms: 300, yield_time_ms: 10_000 });

    assert.match(diff.output, /^1: hello there$/m);

    const end = await s.tool('write_stdin', { session_id: r.session_id, chars: ':q!', keys: ['Enter'], yield_time_ms: 30_000 });

    assert.equal(end.exit_code, 0);
  });
}

test('many short sessions leave neither descriptors nor processes (A18)', async (t) => {
  const s = await open(t);
  const fds = () => fs.readdirSync(`/proc/${s.server.pid}/fd`).length;

  await s.tool('exec_command', { command: ['true'], tty: true });

  const before = fds();

  for (let i = 0; i < 300; i++) {
    const r = await s.tool('exec_command', { command: ['true'], tty: true });

    assert.equal(r.exit_code, 0, r.text);
  }
  // What the last ones still hold goes a moment after their answers; the store, and what keeps the counts,
  // may have come meanwhile. One of each session would be 300.
  await waitFor(() => fds() <= before + 30, () => `${before} descriptors, then ${fds()}`);
});

test('sessions end with the server', async (t) => {
  const s = await open(t);
  const r = await s.exec(`exec sleep 300 #${s.yard.mark}`, { tty: true, yield_time_ms: 250 });

  await s.exec(`trap '' TERM HUP INT; (setsid sleep 301 &) ; sleep 302 #${s.yard.mark}`, { yield_time_ms: 250 });
  assert.equal(r.status, 'running');

  const list = await s.tool('list_sessions', {});

  assert.equal(list.sessions.filter((x) => x.status === 'running').length, 2);
  assert.equal(list.running, 2);
  await s.server.close();
  await waitFor(() => processesOf(s.yard.mark).length === 0, 'the end of both');
});

test('a list of many sessions has a bound, and says what it leaves out', async (t) => {
  const s = await open(t);
  const running = await s.exec('exec sleep 300', { tty: true, yield_time_ms: 250 });

  for (let i = 0; i < 50; i++) {
    await s.tool('exec_command', { cmd: `cat >/dev/null <<'E'\n${'line of äöü\n'.repeat(200)}E\n` });
  }

  const { structuredContent, content } = await call(s.server.client, 'list_sessions', {});
  const { sessions, omitted } = structuredContent;

  assert.ok(Buffer.byteLength(JSON.stringify(structuredContent)) < 10_500);
  assert.ok(Buffer.byteLength(content[0].text) < 10_500);
  assert.equal(sessions[0].session_id, running.session_id);
  assert.ok(sessions.length > 20 && sessions.length + omitted === 51, `${sessions.length} and ${omitted}`);
  assert.ok(sessions.every((one) => Buffer.byteLength(one.command) <= 100));
  assert.ok(sessions[1].command.startsWith('cat >/dev/null') && sessions[1].command.endsWith('...'));
  assert.match(content[0].text, new RegExp(`\\.\\.\\. and ${omitted} more`));
});

test('a session can be ended, and is told as ended afterwards', async (t) => {
  const s = await open(t);
  const r = await s.exec('echo begin; sleep 300', { yield_time_ms: 250 });
  const poll = s.type(r.session_id, '', { yield_time_ms: 60_000 });
  const killed = await s.tool('kill_session', { session_id: r.session_id });

  assert.equal(killed.status, 'cancelled');
  assert.match(killed.note, /it was killed/);
  assert.equal(killed.error, undefined);
  assert.equal((await poll).status, 'cancelled');

  const late = await s.type(r.session_id, 'x\n');

  assert.equal(late.isError, false);
  assert.match(late.note, /had ended/);

  const gentle = await s.exec("trap 'echo bye; exit 5' TERM; echo ready; sleep 300 & wait", { idle_ms: 200 });
  const end = await s.tool('kill_session', { session_id: gentle.session_id, signal: 'TERM' });

  assert.equal(end.exit_code, 5);
  assert.match(end.output, /bye/);
});

test('where there are too many the one goes that was used least recently', async (t) => {
  const s = await open(t, { settings: { 'sessions.max': 10 } });
  const ids = [];

  for (let i = 0; i < 10; i++) {
    const r = await s.exec('sleep 300', { session_id: `n${i}`, yield_time_ms: 250 });

    ids.push(r.session_id);
    assert.equal(/sessions run/.test(r.note ?? ''), i >= 5, `${i}: ${r.note}`);
  }
  await s.type('n0', '', { yield_time_ms: 250 });

  const one = await s.exec('sleep 300', { session_id: 'more', yield_time_ms: 250 });

  assert.equal(one.status, 'running');

  const [, running, most] = one.note.match(/(\d+) of at most (\d+) sessions run/);

  assert.equal(running, most, 'the one that makes room counts no more');

  const gone = await s.type('n1', '');

  assert.equal(gone.isError, true);
  assert.match(gone.text, /used least recently.*sessions\.max/);
  assert.equal((await s.type('n0', '', { yield_time_ms: 250 })).status, 'running');
});

test('over proto: the worked example, and events that go on after the answer', async (t) => {
  const yard = makeYard();
  const proto = openProto(t, yard);
  const send = (name, id, args) => proto.send({ type: 'function_call', name, call_id: id, arguments: JSON.stringify(args) });
  const answer = async (id) => JSON.parse((await proto.next((m) => m.type === 'function_call_output' && m.call_id === id)).output);

  send('exec_command', 'c1', { command: ['bash', '--norc', '-i'], process_id: '1001', yield_time_ms: 2500, idle_ms: 300, tty: true });
  assert.equal((await answer('c1')).process_id, '1001');
  send('write_stdin', 'c2', { process_id: '1001', input: 'export FOO=bar\n', yield_time_ms: 1000, idle_ms: 200 });
  await answer('c2');
  send('write_stdin', 'c3', { process_id: '1001', input: 'echo $FOO\n', yield_time_ms: 1000, idle_ms: 300 });

  const third = await answer('c3');

  assert.match(third.output, /^bar\n/m);
  assert.equal(third.process_id, '1001');
  assert.equal(third.exit_code, null);

  const typed = proto.lines.map((line) => JSON.parse(line)).filter((m) => m.type === 'terminal_interaction');

  assert.deepEqual(typed.map((m) => [m.call_id, m.stdin]), [['c1', 'export FOO=bar\n'], ['c1', 'echo $FOO\n']]);
  send('write_stdin', 'c4', { process_id: '1001', input: 'read -rs secret; echo done\n', yield_time_ms: 1000, idle_ms: 300 });
  await answer('c4');
  send('write_stdin', 'c5', { process_id: '1001', input: 'hunter2\n', yield_time_ms: 1000, idle_ms: 300 });
  assert.match((await answer('c5')).output, /done/);

  const hidden = proto.lines.map((line) => JSON.parse(line)).filter((m) => m.type === 'terminal_interaction').at(-1);

  assert.deepEqual([hidden.stdin, hidden.hidden], ['', true]);
  assert.equal(proto.lines.some((line) => line.includes('hunter2')), false);
  send('write_stdin', 'c6', { process_id: '1001', input: 'sleep 0.5; exit 4\n', yield_time_ms: 250 });
  assert.equal((await answer('c6')).exit_code, null);

  const end = await proto.next((m) => m.type === 'exec_command_end' && m.call_id === 'c1');

  assert.equal(end.exit_code, 4);
  send('write_stdin', 'c7', { process_id: '1001' });
  assert.equal((await answer('c7')).exit_code, 4);

  // What the specification's answer has no place for is there where it says something, or is asked for.
  send('exec_command', 'c8', { cmd: 'true', workdir: 'gone' });
  assert.match((await answer('c8')).error, /working directory '.*\/gone'/);
  send('exec_command', 'c9', { cmd: 'echo ready; sleep 300', pattern: 'ready', yield_time_ms: 30_000 });

  const ready = await answer('c9');

  assert.deepEqual([ready.reason, ready.next_seq, ready.exit_code], ['pattern', 6, null]);
  send('exec_command', 'c10', { cmd: 'sleep 300', timeout_ms: 100, yield_time_ms: 30_000 });

  const late = await answer('c10');

  assert.deepEqual([late.exit_code, late.timed_out, late.limit.name], [124, true, 'wall_clock']);
});

test('a subagent has its own sessions, which end with it', async (t) => {
  const yard = makeYard();
  const proto = openProto(t, yard);
  const send = (session, name, id, args) => proto.send({ type: 'function_call', name, call_id: id, session, arguments: JSON.stringify(args) });
  const answer = (id) => proto.next((m) => m.type === 'function_call_output' && m.call_id === id);

  for (const id of ['child', 'other']) {
    proto.send({ type: 'session', action: 'open', id });
    await proto.next((m) => m.type === 'session_opened' && m.id === id);
  }
  send('child', 'exec_command', 'c1', { cmd: 'sleep 300', session_id: 'mine', yield_time_ms: 250 });
  await answer('c1');
  send('other', 'write_stdin', 'c2', { session_id: 'mine' });
  assert.match((await answer('c2')).output, /no session mine/);
  send(undefined, 'write_stdin', 'c3', { session_id: 'mine', yield_time_ms: 250, idle_ms: 1 });
  assert.match((await answer('c3')).output, /"process_id":"mine"/);
  proto.send({ type: 'session', action: 'close', id: 'child' });
  await proto.next((m) => m.type === 'session_closed' && m.id === 'child');
  send(undefined, 'list_sessions', 'c4', {});
  assert.match((await answer('c4')).output, /no sessions/);
});

test('what a terminal leaves running is told at its end, and nothing is awaited', async (t) => {
  const s = await open(t);
  const ended = async (cmd) => {
    const r = await s.exec(`${cmd}\necho early`, { tty: true, yield_time_ms: 30_000 });

    assert.equal(r.exit_code, 0, r.text);
    assert.match(r.output, /^early$/m);
    assert.equal(r.ended_background, 1, `${cmd}: ${r.text}`);
    assert.match(r.note, /^1 background process was still running when the command exited and was ended;/, cmd);
  };

  for (let i = 0; i < 5; i += 1) {
    await ended('sleep 305 &');
    await ended('setsid sleep 304 >/dev/null 2>&1 </dev/null & read -r -t 0.1 x');
    await ended('setsid -f sleep 303');
    await ended('(sleep 302 &)');
  }

  // Not those that the session's own signal has ended.
  const r = await s.exec('sleep 305 & echo set; wait', { tty: true, pattern: 'set', yield_time_ms: 30_000 });
  const hung = await s.tool('write_stdin', { session_id: r.session_id, signal: 'HUP', yield_time_ms: 30_000 });

  assert.equal(hung.signal_name, 'SIGHUP', hung.text);
  assert.equal(hung.ended_background, undefined, hung.text);
});

test('a prompt behind which a job in the background has written is one', async (t) => {
  const s = await open(t);
  const of = { tty: true, until: 'prompt', yield_time_ms: 20_000 };
  const shell = await s.tool('exec_command', { command: ['bash', '--norc', '-i'], ...of });

  await s.type(shell.session_id, 'mkfifo go; (read -r x <go; echo LATE) &\n', { until: 'prompt', yield_time_ms: 20_000 });
  await s.type(shell.session_id, 'echo >go\n', { pattern: '(?m)^LATE', yield_time_ms: 20_000 });
  assert.equal((await s.type(shell.session_id, '', { until: 'prompt', idle_ms: 600, yield_time_ms: 20_000 })).reason, 'prompt');
});

test('a session that never began tells why, later too', async (t) => {
  const s = await open(t);

  for (const [id, args, why] of [['nowhere', { cmd: 'true', workdir: 'gone' }, /can't enter working directory '.*\/gone'/],
    ['nothing', { command: ['/no/such/program'] }, /command not found: \/no\/such\/program/]]) {
    assert.match((await s.tool('exec_command', { ...args, session_id: id, tty: true })).error, why);
    for (const tool of ['write_stdin', 'kill_session']) {
      const r = await s.tool(tool, { session_id: id });

      assert.equal(r.isError, true, tool);
      assert.match(r.error, why, tool);
    }
  }

  const listed = (await s.tool('list_sessions', {})).sessions.find((one) => one.session_id === 'nowhere');

  assert.match(listed.error, /can't enter working directory/);
});
