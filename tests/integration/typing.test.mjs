// What is typed to a session: signals, keys, pastes, lines that are judged (A15-A17, A31).
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { SOON_MS, waitFor } from './lib/client.mjs';
import { open, readUntil } from './lib/live.mjs';

test('Ctrl-C reaches what is in the foreground, of a terminal and without one (A15)', async (t) => {
  const s = await open(t);
  const of = await s.tool('exec_command', { command: ['bash', '-c', 'sleep 300; echo SURVIVED'], tty: true, yield_time_ms: 250 });
  const end = await s.type(of.session_id, '\u0003', { yield_time_ms: 10_000 });

  assert.equal(end.exit_code, 130);
  assert.equal(end.signal_name, 'SIGINT');
  assert.doesNotMatch(end.output, /SURVIVED/);

  const pipe = await s.tool('exec_command', { command: ['sleep', '300'], yield_time_ms: 250 });

  assert.equal((await s.type(pipe.session_id, '\u0003', { yield_time_ms: 10_000 })).exit_code, 130);

  const tty = await s.exec('tty; tty </dev/tty; readlink /proc/self/fd/0', { tty: true });
  const names = tty.output.trim().split('\n');

  assert.equal(names.length, 3, tty.output);
  assert.match(names[0], /^\/dev\/pts\/\d+$/);
  assert.equal(names[2], names[0]);
});

test('a big write holds nobody up and arrives whole (A17)', async (t) => {
  const s = await open(t);
  const r = await s.tool('exec_command', { command: ['bash', '-c', 'stty -icanon -echo min 1; echo RDY; cat'], tty: true, idle_ms: 200 });

  await readUntil(s, r.session_id, /RDY/, r.output);

  const began = performance.now();
  const [wrote, other] = await Promise.all([
    s.type(r.session_id, 'q'.repeat(200_000)),
    s.tool('shell_command', { command: 'echo ok' }),
  ]);

  assert.equal(other.output, 'ok\n');
  assert.equal(wrote.status, 'running');
  assert.ok(performance.now() - began < SOON_MS);
  await waitFor(async () => {
    const now = await s.tool('write_stdin', { session_id: r.session_id, since_seq: 0, idle_ms: 100, yield_time_ms: 500 });

    return now.next_seq >= 200_005;
  }, '200000 bytes coming back');

  const all = await s.tool('write_stdin', { session_id: r.session_id, since_seq: 5, idle_ms: 100, max_output_tokens: 10_000 });

  assert.equal(all.total_bytes, 200_000);
  assert.match(all.output, /^q+/);
});

// None of these is a command that is whole: each is read again, with those before it, and in pieces.
// A word that is not plain ends them, so that they are not known to be a here-document.
const slow = Array.from({ length: 1000 }, (_, i) => `    if (value[${i}] != 'x${i}') { it's("${i}); }`).join('\n');

test('a paste that takes long to be judged holds nobody up', async (t) => {
  const s = await open(t);
  const of = { tty: true, until: 'prompt', yield_time_ms: 20_000 };
  const shell = await s.tool('exec_command', { command: ['bash', '--norc', '-i'], ...of });
  const other = await s.tool('exec_command', { command: ['bash', '--norc', '-i'], ...of });
  const paste = s.type(shell.session_id, `cat >/dev/null <<'E-O-F'\n${slow}\nE-O-F\necho ar""rived\n`, { pattern: 'arrived', yield_time_ms: 60_000 });

  assert.equal((await s.tool('shell_command', { command: 'echo ok' })).output, 'ok\n');
  assert.equal((await s.type(other.session_id, 'echo he""re\n', { pattern: 'here' })).reason, 'pattern');

  // It is still being judged: nothing of it has been typed.
  const log = await s.server.client.readResource({ uri: `shellyard://session/${shell.session_id}/log` });

  assert.doesNotMatch(log.contents[0].text, /cat/);
  assert.equal((await paste).reason, 'pattern');
});

test('a paste that is being judged can be cancelled, and then nothing of it is typed', async (t) => {
  const s = await open(t);
  const shell = await s.tool('exec_command', { command: ['bash', '--norc', '-i'], tty: true, until: 'prompt', yield_time_ms: 20_000 });
  const stop = new AbortController();
  const typed = { session_id: shell.session_id, chars: `cat >/dev/null <<'E-O-F'\n${slow}\nE-O-F\n` };
  const paste = s.server.client.callTool({ name: 'write_stdin', arguments: typed }, undefined, { signal: stop.signal });

  stop.abort();
  await assert.rejects(paste);
  assert.doesNotMatch((await s.type(shell.session_id, 'echo cle""an\n', { pattern: 'clean' })).output, /cat/);
});

test('a shell at its prompt again has left behind what was no whole command', async (t) => {
  const s = await open(t, { rules: [{ program: 'touch', decision: 'forbid' }] });
  const shell = await s.tool('exec_command', { command: ['bash', '--norc', '-i'], tty: true, until: 'prompt', yield_time_ms: 20_000 });
  const type = (chars) => s.type(shell.session_id, chars, { until: 'prompt', yield_time_ms: 60_000 });
  const harmless = `echo 'one (touch x) "two"'\n`;

  assert.equal((await type(harmless)).reason, 'prompt');
  assert.equal((await type(`cat >/dev/null <<'E-O-F'\n${slow}\nE-O-F\n`)).reason, 'prompt');
  assert.equal((await type(harmless)).reason, 'prompt');
  // And what is typed to a program that has ended is no beginning of a command.
  await s.type(shell.session_id, `cat >/dev/null\n`, { until: 'input' });
  await s.type(shell.session_id, `I don't know\n`, { until: 'input' });
  assert.equal((await type('\u0004')).reason, 'prompt');
  assert.equal((await type(harmless)).reason, 'prompt');
  assert.match((await type('touch x\n')).text, /forbidden/);
});

test('Ctrl-C is not behind what nobody reads, and says what it drops', async (t) => {
  const s = await open(t);
  const r = await s.exec('sleep 300; echo rest', { tty: true, yield_time_ms: 250 });
  const paste = await s.type(r.session_id, 'some line\n'.repeat(30_000));

  assert.ok(paste.pending_input > 200_000, paste.text);

  const end = await s.type(r.session_id, '\u0003', { yield_time_ms: 30_000 });

  assert.equal(end.signal_name ?? end.exit_code, 'SIGINT', end.text);
  assert.match(end.note, /^2\d{5} bytes .*dropped$/);

  const raw = await s.exec('stty raw -echo; echo set; sleep 300', { tty: true, pattern: 'set' });

  await s.type(raw.session_id, 'x'.repeat(100_000));

  const key = await s.type(raw.session_id, '\u0003');

  assert.equal(key.note, undefined);
  assert.ok(key.pending_input > 50_000, key.text);
});

test('a line that is too long for a terminal is warned about', async (t) => {
  const s = await open(t);
  const r = await s.exec('echo here; cat >/dev/null; sleep 300', { tty: true, pattern: 'here' });

  assert.match((await s.type(r.session_id, `${'x'.repeat(5000)}\n`)).note, /longer than a terminal takes/);
  assert.equal((await s.type(r.session_id, `${'x'.repeat(4000)}\n`)).note, undefined);
});

test('a line that is too long for a terminal is warned about in whatever pieces it comes', async (t) => {
  const s = await open(t);
  const r = await s.exec('cat > x.txt; wc x.txt; stty raw; echo set; sleep 300', { tty: true, until: 'input', yield_time_ms: 30_000 });
  const long = /longer than a terminal takes/;

  assert.equal((await s.type(r.session_id, 'y'.repeat(3000))).note, undefined);
  assert.match((await s.type(r.session_id, `${'z'.repeat(3000)}\n`)).note, long);
  // What ends a line, or drops it, makes room.
  for (const end of ['\n', '\u0004', '\u0015']) {
    assert.equal((await s.type(r.session_id, 'a'.repeat(3000))).note, undefined, JSON.stringify(end));
    assert.equal((await s.type(r.session_id, `${end}${'b'.repeat(3000)}`)).note, undefined, JSON.stringify(end));
    await s.type(r.session_id, '\u0015');
  }
  assert.equal((await s.type(r.session_id, 'c'.repeat(4095))).note, undefined);
  assert.match((await s.type(r.session_id, 'd')).note, long);
  assert.equal((await s.type(r.session_id, '\u007f\u007f')).note, undefined);
  assert.equal((await s.type(r.session_id, 'd')).note, undefined);

  const end = await s.type(r.session_id, '\n\u0004', { pattern: 'set', yield_time_ms: 30_000 });

  assert.match(end.output, /\d x\.txt/);
  // Where keys are read no line is too long.
  assert.equal((await s.type(r.session_id, 'e'.repeat(3000))).note, undefined);
  assert.equal((await s.type(r.session_id, 'f'.repeat(3000))).note, undefined);
});

test('standard input by a pipe, with its end', async (t) => {
  const s = await open(t);
  const r = await s.exec('while read -r l; do echo "<$l>"; done; echo over', { stdin: 'pipe', yield_time_ms: 250 });

  assert.match((await s.type(r.session_id, 'one\n', { idle_ms: 200, yield_time_ms: 10_000 })).output, /<one>/);

  const end = await s.type(r.session_id, 'two\n', { eof: true, yield_time_ms: 10_000 });

  assert.equal(end.output, '<two>\nover\n');
  assert.equal(end.exit_code, 0);

  const closed = await s.exec('cat; sleep 300', { yield_time_ms: 250 });
  const refused = await s.type(closed.session_id, 'x');

  assert.equal(refused.isError, true);
  assert.match(refused.text, /^Error \(invalid argument\): its standard input is closed.*tty/);

  // A size is that of a terminal, and a terminal is no pipe: nothing runs.
  for (const [args, says] of [[{ rows: 10 }, /'rows' and 'cols'.*tty true/], [{ cols: 10, tty: false }, /'rows' and 'cols'.*tty true/],
    [{ tty: true, stdin: 'pipe' }, /terminal.*pipe.*not both/]]) {
    const wrong = await s.exec('touch ran', args);

    assert.equal(wrong.isError, true);
    assert.match(wrong.text, says);
  }
  assert.equal(fs.existsSync(path.join(s.yard.ws, 'ran')), false);

  // What never ran is an error, as it is of the other tools.
  const gone = await s.exec('true', { workdir: 'gone' });

  assert.equal(gone.isError, true);
  assert.match(gone.error, /working directory '.*\/gone'/);
});

test('without a terminal each Ctrl-C is a signal, and the rest is typed', async (t) => {
  const s = await open(t);
  const script = ['import os, signal', 'signal.signal(signal.SIGINT, lambda *a: os.write(1, b"INT\\n"))', 'os.write(1, b"set\\n")',
    'while True: os.write(1, b"<" + os.read(0, 100) + b">\\n")'].join('\n');
  const { session_id: id } = await s.tool('exec_command', { command: ['python3', '-c', script], stdin: 'pipe', pattern: 'set', yield_time_ms: 30_000 });
  const says = async (args, pattern) => {
    const r = await s.tool('write_stdin', { session_id: id, pattern, yield_time_ms: 30_000, ...args });

    assert.equal(r.reason, 'pattern', r.text);
    assert.doesNotMatch(r.output, /\x03|\u0003/, r.text);
    return r.output;
  };

  assert.equal(await says({ keys: ['C-c'] }, 'INT'), 'INT\n');
  assert.match(await says({ keys: ['C-c', 'C-c'] }, 'INT'), /^(INT\n)+$/); // two that nobody has looked at are one
  await s.type(id, '', { idle_ms: 300, yield_time_ms: 10_000 });
  assert.match(await says({ chars: '\u0003\u0003one\n' }, '(?s)(INT.*<one\n>|<one\n>.*INT)'), /<one\n>/);
  assert.match(await says({ chars: 'two\n\u0003' }, '(?s)(INT.*<two\n>|<two\n>.*INT)'), /<two\n>/);
  await s.type(id, '', { idle_ms: 300, yield_time_ms: 10_000 });
  assert.equal(await says({ chars: 'three', keys: ['Enter', 'f', 'Return'] }, '>'), '<three\nf\n>\n');
  assert.equal(await says({ chars: 'four', enter: true }, '>'), '<four\n>\n');

  // Of one that reads nothing they are all that can be given, and text is told before anything is sent.
  const closed = await s.exec('trap "echo INT" INT; echo set; while :; do sleep 0.05; done', { pattern: 'set', yield_time_ms: 30_000 });
  const signals = await s.tool('write_stdin', { session_id: closed.session_id, keys: ['C-c', 'C-c'], pattern: 'INT', yield_time_ms: 30_000 });

  assert.equal(signals.reason, 'pattern', signals.text);
  await s.type(closed.session_id, '', { idle_ms: 300, yield_time_ms: 10_000 });
  for (const chars of ['x\u0003', '\u0003x']) {
    const refused = await s.type(closed.session_id, chars);

    assert.match(refused.text, /its standard input is closed/);
  }
  assert.equal((await s.type(closed.session_id, '', { idle_ms: 300, yield_time_ms: 10_000 })).output, '');
});

test('the sandbox of a session holds for what is typed (A31)', async (t) => {
  const s = await open(t);
  const outside = path.join(s.yard.outside, 'pwn');
  const r = await s.tool('exec_command', { command: ['bash', '--norc', '-i'], tty: true, idle_ms: 200 });
  const out = await s.type(r.session_id, `touch ${outside}; echo rc=$?; touch mine; echo rc=$?\n`, { idle_ms: 300, yield_time_ms: 5000 });
  const all = await readUntil(s, r.session_id, /rc=0/, out.output);

  assert.match(all, /rc=1/);
  assert.equal(fs.existsSync(outside), false);
  assert.ok(fs.existsSync(path.join(s.yard.ws, 'mine')));
});

test('what is typed is judged by the rules, line by line (A31)', async (t) => {
  const s = await open(t, { rules: [{ program: 'shutdown', decision: 'forbid', reason: 'nobody stops this machine' },
    { program: 'git', args: ['push'], decision: 'ask' }] });
  const r = await s.tool('exec_command', { command: ['bash', '--norc', '-i'], tty: true, term: 'xterm-256color', until: 'prompt', yield_time_ms: 30_000 });
  const id = r.session_id;

  for (const chars of ['shutdown now\n', 'echo a; shutdown now\r', 'shutdonw\u007f\u007fwn now\n', 'shut\\\ndown now\n',
    'echo first\nshutdown now\n']) {
    const refused = await s.type(id, chars);

    assert.equal(refused.isError, true, chars);
    assert.match(refused.text, /not typed: .*nobody stops this machine/, chars);
  }
  // In a paste no character edits, and so none hides anything.
  for (const chars of ['shutdown now #\u0015\n', '\u001b[;shutdown now\n', 'shutdown now #\u007f\u001b[20\u0003\n', 'x\nshutdown now\n']) {
    const refused = await s.type(id, chars, { paste: true });

    assert.match(refused.text, /not typed: .*nobody stops this machine/, chars);
  }

  // Whoever only says that it knows pastes edits in them all the same.
  const sh = await s.tool('exec_command', { command: ['sh', '-i'], tty: true, term: 'xterm-256color', until: 'prompt', yield_time_ms: 30_000 });

  await s.type(sh.session_id, "printf '\\033[?2004h'\n", { until: 'prompt', yield_time_ms: 30_000 });
  for (const chars of ['\u001b[200~x\u0015shutdown now\n', '\u001b[200~shutdown now\u001b[201~\n']) {
    assert.match((await s.type(sh.session_id, chars)).text, /not typed: .*nobody stops this machine/, JSON.stringify(chars));
  }

  const asked = await s.type(id, 'git push origin\n');

  assert.match(asked.text, /not typed: .*by a call of its own/);
  await s.type(id, 'shutdown n');

  const parts = await s.type(id, 'ow\n');

  assert.match(parts.text, /not typed.*; 10 bytes of it stand there already \(Ctrl-U clears\)/, 'in parts');
  await s.type(id, '\u0015');

  const ok = await s.type(id, 'echo "no shut""down"\n', { idle_ms: 200, yield_time_ms: 5000 });
  const all = await readUntil(s, id, /^no shutdown$/m, ok.output);

  assert.doesNotMatch(all, /command not found|first/, 'nothing of what was refused was typed');
});

const forbidden = { rules: [{ program: 'shutdown', decision: 'forbid', reason: 'nobody stops this machine' }] };
const refusal = /not typed: .*nobody stops this machine/;

test('what another program has read of a line hides no command from the rules', async (t) => {
  const s = await open(t, forbidden);
  const r = await s.tool('exec_command', { command: ['bash', '--norc', '-i'], tty: true, term: 'xterm-256color', until: 'prompt', yield_time_ms: 30_000 });
  const id = r.session_id;
  const again = (chars) => s.type(id, chars, { until: 'prompt', yield_time_ms: 30_000 });

  await s.type(id, 'read -n1 -p "sure? " answer\n', { until: 'input', yield_time_ms: 30_000 });
  await again('y');
  assert.match((await s.type(id, 'shutdown now\n')).text, refusal);
  assert.match((await again('echo still here\n')).output, /still here\n/);
  await s.type(id, 'cat\n', { until: 'input', yield_time_ms: 30_000 });
  for (const chars of ['abc', '\u0004', '\u0004']) {
    await s.type(id, chars);
  }
  await s.type(id, 'shut');
  assert.match((await s.type(id, 'down now\n')).text, refusal, 'in parts');
});

test('a command that is typed in several lines is judged as one', async (t) => {
  const s = await open(t, forbidden);
  const r = await s.tool('exec_command', { command: ['bash', '--norc', '-i'], tty: true, term: 'xterm-256color', until: 'prompt', yield_time_ms: 30_000 });
  const pipe = await s.tool('exec_command', { command: ['bash'], stdin: 'pipe', yield_time_ms: 250 });

  for (const id of [r.session_id, pipe.session_id]) {
    for (const chars of ['echo "a\n"; shutdown now\n', 'f() { shutdown now\n}\nf\n', 'case a in\na) shutdown now;;\nesac\n',
      '# x \\\nshutdown now\n', 'echo \\\\\nshutdown now\n']) {
      assert.match((await s.type(id, chars)).text, refusal, JSON.stringify(chars));
    }
  }
  // In two calls; and what was refused has left the first line as it was.
  await s.type(r.session_id, 'echo "a\n');
  assert.match((await s.type(r.session_id, '"; shutdown now\n')).text, refusal);
  assert.match((await s.type(r.session_id, 'b"; echo harmless\n', { until: 'prompt', yield_time_ms: 30_000 })).output, /^a\nb\nharmless$/m);
});

test('a here-document of a whole file is typed at once, and judged with what ends it', async (t) => {
  const s = await open(t, forbidden);
  const shell = await s.tool('exec_command', { command: ['bash', '--norc', '-i'], tty: true, until: 'prompt', yield_time_ms: 20_000 });
  const type = (chars) => s.type(shell.session_id, chars, { until: 'prompt', yield_time_ms: 60_000 });
  // It took more than the 5 s that there are when each line was judged with all before it.
  const text = Array.from({ length: 2200 }, (_, i) => `if (v["${i}"] > (int)'x') {`).join('\n');

  for (const head of ["<<'EOF'", '<<-"EOF"', '<< EOF']) {
    assert.equal((await type(`cat >text ${head}\n${text}\nEOF\n`)).reason, 'prompt', head);
    assert.equal(fs.readFileSync(path.join(s.yard.ws, 'text'), 'utf8'), `${text}\n`, head);
    fs.rmSync(path.join(s.yard.ws, 'text'));
  }
  for (const chars of ['cat <<EOF\n$(a; shutdown now)\nEOF\n', 'cat <<EOF\na\nEOF\nshutdown now\n',
    'cat <<EOF\n$(echo "a\n"; shutdown now\n)\nEOF\n', 'cat <<EOF\na\n\tEOF\nEOF\necho "a\n"; shutdown now\n']) {
    assert.match((await type(chars)).text, refusal, JSON.stringify(chars));
  }
});

test('other keys that run a line count, and what edits none does not', async (t) => {
  const s = await open(t, forbidden);
  const r = await s.tool('exec_command', { command: ['bash', '--norc', '-i'], tty: true, term: 'xterm-256color', until: 'prompt', yield_time_ms: 30_000 });
  const pipe = await s.tool('exec_command', { command: ['bash'], stdin: 'pipe', yield_time_ms: 250 });

  for (const chars of ['shutdown now\u000f', 'shutdown now\u001ba', 'shutdown now #\u0016\u0015\n']) {
    assert.match((await s.type(r.session_id, chars)).text, refusal, JSON.stringify(chars));
  }
  for (const chars of ['\u0003shutdown now\n', 'shut\u0003down now\n', 'shutdown now #\u0015\n', `shutdown now #${'\u007f'.repeat(20)}\n`, 'shut\u0000down now\n']) {
    assert.match((await s.type(pipe.session_id, chars)).text, refusal, JSON.stringify(chars));
  }
  assert.match((await s.type(pipe.session_id, 'echo "no shut""down"\n', { idle_ms: 200, yield_time_ms: 5000 })).output, /no shutdown/);
});

test('the byte behind Ctrl-C counts and does not: bash and zsh may drop it', async (t) => {
  const s = await open(t, forbidden);
  const r = await s.tool('exec_command', { command: ['bash', '--norc', '-i'], tty: true, term: 'xterm-256color', until: 'prompt', yield_time_ms: 30_000 });
  const again = (chars) => s.type(r.session_id, chars, { view: 'stream', until: 'prompt', yield_time_ms: 30_000 });

  for (const chars of ['\u0003shutdown now\n', '\u0003xshutdown now\n', 'ls\u0003\u0003xshutdown now\n', '\u0003\u001bshutdown now\n', '\u0003\u0016\u0015shutdown now\n',
    '\u0003xecho "a\n"; shutdown now\n']) {
    assert.match((await again(chars)).text, refusal, JSON.stringify(chars));
  }
  // In two calls: the second may come before bash has come to the signal.
  await s.type(r.session_id, '\u0003');
  assert.match((await again('xshutdown now\n')).text, refusal);
  // What comes later on is judged as it is.
  await again(' echo one\n');
  assert.match((await again('echo xshutdown; echo two\n')).output, /^xshutdown\ntwo$/m);
});

test('what a program asks its terminal is answered (A16)', async (t) => {
  const s = await open(t);
  const file = path.join(s.yard.ws, 'dsr.py');

  fs.writeFileSync(file, `import os, select, tty
tty.setraw(0)
os.write(1, b'ab\\x1b[6n')
got = os.read(0, 64) if select.select([0], [], [], 20)[0] else b'NO-REPLY'
print('REPLY', repr(got), end='\\r\\n')
`);

  const r = await s.exec(`python3 ${file}`, { tty: true, yield_time_ms: 30_000 });

  assert.match(r.output, /REPLY b'\\x1b\[1;3R'/);
  assert.equal(r.output.match(/REPLY/g).length, 1);
});

test('keys are pressed as the program wants them; one that is none is told', async (t) => {
  const s = await open(t);
  const wrong = await s.tool('write_stdin', { session_id: 'any', keys: ['Entr'] });

  assert.equal(wrong.isError, true);
  assert.match(wrong.text, /Entr.*Enter/);

  const r = await s.exec("printf '\\033[?1h'; stty raw -echo; echo ready; head -c 5 | od -An -c", { tty: true, pattern: 'ready' });
  const end = await s.tool('write_stdin', { session_id: r.session_id, keys: ['Up', 'C-c', 'Enter'], yield_time_ms: 30_000 });

  assert.match(end.output, /033\s+O\s+A\s+003\s+\\r/);
});

test('a paste is one, for a program that knows pastes, and lines for any other', async (t) => {
  const s = await open(t);
  const show = (modes) => s.exec(`stty raw -echo; printf '${modes}set'; cat -v`, { tty: true, pattern: 'set', yield_time_ms: 30_000 });
  const text = 'a\nb\u001b[201~c\n';
  const seen = async (modes, end, args) => {
    const r = await show(modes);

    return (await s.type(r.session_id, text, { pattern: end, yield_time_ms: 30_000, ...args })).output;
  };

  assert.equal(await seen('\\033[?2004h', '~\\^M', { paste: true, keys: ['Enter'] }), '^[[200~a\nbc\n^[[201~^M');
  assert.equal(await seen('', 'c\\^M', { paste: true }), 'a^Mb^[[201~c^M');
  assert.equal(await seen('\\033[?2004h', 'c\\n', {}), 'a\nb^[[201~c\n');

  const bash = await s.exec(['bash', '--norc', '-i'], { tty: true, term: 'xterm-256color', until: 'prompt', yield_time_ms: 30_000 });
  const waits = await s.type(bash.session_id, 'touch one\ntouch two', { paste: true, pattern: 'touch two', yield_time_ms: 30_000 });

  assert.equal(waits.waiting_for_input, true);
  assert.equal(fs.existsSync(path.join(s.yard.ws, 'one')), false);
  await s.type(bash.session_id, '', { enter: true, until: 'prompt', yield_time_ms: 30_000 });
  assert.deepEqual(fs.readdirSync(s.yard.ws).filter((name) => /^(one|two)$/.test(name)), ['one', 'two']);
  assert.match((await s.type(bash.session_id, '', { paste: 'yes' })).text, /'paste' must be true or false/);
});

test('a control character that comes with the line before it is told of', async (t) => {
  const s = await open(t);
  const shell = await s.tool('exec_command', { command: ['bash', '--norc', '-i'], tty: true, until: 'prompt', yield_time_ms: 20_000 });
  const told = async (args, id = shell.session_id) => {
    const r = await s.tool('write_stdin', { session_id: id, yield_time_ms: 250, ...args });
    await s.type(id, '\u0003', { until: 'prompt', yield_time_ms: 20_000 });
    return r.note?.match(/^(\S+) came in one call with the line before it: .* a call of its own/m)?.[1];
  };

  for (const [args, want] of [
    [{ chars: 'cat\n\u0004' }, 'Ctrl-D'],
    [{ chars: 'cat\n', keys: ['C-d'] }, 'Ctrl-D'],
    [{ chars: 'cat', keys: ['Enter', 'C-d'] }, 'Ctrl-D'],
    [{ chars: 'sleep 5\n\u001a' }, 'Ctrl-Z'],
    [{ chars: 'echo hi; sleep 5\n\u0003' }, 'Ctrl-C'],
    [{ chars: 'sleep 5\r\u001c' }, 'Ctrl-\\'],
    [{ chars: 'echo one\n' }, undefined],
    [{ chars: 'not this\u0003echo two\n' }, undefined],
  ]) {
    assert.equal(await told(args), want, JSON.stringify(args));
  }

  // What keeps the order: lines for one program, a pipe, keys on the whole screen.
  const cat = await s.exec('exec cat', { tty: true, yield_time_ms: 250, until: 'input' });
  const end = await s.type(cat.session_id, 'one\n\u0004', { until: 'exit', yield_time_ms: 20_000 });
  assert.deepEqual([end.exit_code, end.note], [0, undefined], end.text);
  const pipe = await s.tool('exec_command', { command: ['cat'], stdin: 'pipe', yield_time_ms: 250 });
  const closed = await s.tool('write_stdin', { session_id: pipe.session_id, chars: 'one\n', eof: true, yield_time_ms: 20_000 });
  assert.deepEqual([closed.exit_code, closed.note], [0, undefined], closed.text);
  const whole = await s.exec("stty raw -echo; printf '\\033[?1049hdrawn'; exec sleep 300", { tty: true, pattern: 'drawn', yield_time_ms: 20_000 });
  assert.equal((await s.type(whole.session_id, 'one\n\u0004')).note, undefined);
});
