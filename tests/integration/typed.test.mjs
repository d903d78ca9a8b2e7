// What is typed to a real shell comes before the rules, however it is handed over (A31).
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { makeYard, waitFor } from './lib/client.mjs';
import { open, readUntil } from './lib/live.mjs';
import { openProto } from './lib/proto.mjs';

const forbidden = { rules: [{ program: 'touch', decision: 'forbid', reason: 'no new files here' }] };
const refusal = /not typed: .*no new files here/;
const unquoted = /not typed: what the terminal hides .*it is not quoted here/;
const LONG = { yield_time_ms: 30_000 };
const SHELLS = {
  bash: ['bash', '--norc', '-i'],
  'bash without an editor': ['bash', '--norc', '--noediting', '-i'],
  sh: ['sh', '-i'],
  zsh: ['zsh', '-f', '-i'],
};

const made = (s) => fs.readdirSync(s.yard.ws).filter((name) => name.startsWith('f'));

test('the end of input submits what stands in the line', async (t) => {
  const s = await open(t, forbidden);
  const shell = async () => (await s.tool('exec_command', { command: ['bash'], stdin: 'pipe', yield_time_ms: 250 })).session_id;

  for (const chars of ['touch f1', 'echo a\ntouch f1', 'touch f1\\', 'cat <<E; touch f1', ': "a\n"; touch f1']) {
    const id = await shell();

    assert.match((await s.type(id, chars, { eof: true })).text, refusal, JSON.stringify(chars));
    assert.equal((await s.type(id, 'echo on\n', { eof: true, ...LONG })).output, 'on\n', 'nothing was typed, nor ended');
  }

  // And in a call of its own.
  const id = await shell();

  await s.type(id, 'touch f1');
  assert.match((await s.type(id, '', { eof: true })).text, /no new files here.*; 8 bytes of it stand there already/);
  assert.match((await s.type(id, ' f2', { eof: true })).text, refusal);
  // What is dangerous is not asked about there.
  assert.match((await s.type(await shell(), 'rm -rf ~', { eof: true })).text, /not typed: .*by a call of its own/);
  assert.deepEqual(made(s), []);
});

test('Ctrl-D hands over what stands in the line of a shell without an editor', async (t) => {
  const s = await open(t, forbidden);

  for (const name of ['bash without an editor', 'sh']) {
    const { session_id: id } = await s.tool('exec_command', { command: SHELLS[name], tty: true, until: 'prompt', ...LONG });

    assert.match((await s.type(id, 'touch f1\u0004\u0004')).text, refusal, name);
    await s.type(id, 'to\u0004');
    assert.match((await s.type(id, '\u0015uch f1\n')).text, refusal, name);
    assert.match((await s.tool('write_stdin', { session_id: id, chars: 'uch f1', keys: ['C-d', 'C-d'] })).text, refusal, name);

    const end = await s.type(id, ' \u0003', { until: 'prompt', ...LONG });

    assert.equal(end.status, 'running', end.text);
    // Other characters than Ctrl-D can be set.
    await s.type(id, 'stty eof x kill k\n', { until: 'prompt', ...LONG });
    assert.match((await s.type(id, 'touch fxx')).text, refusal, name);
    assert.match((await s.type(id, '#ktouch f1\n')).text, refusal, name);
  }
  assert.deepEqual(made(s), []);
});

test('the beginning of an escape sequence hides no command', async (t) => {
  const s = await open(t, forbidden);
  const heads = ['\u001b', '\u001b[', '\u001b[;', '\u001b[1;', '\u001b[A', '\u001bO', '\u001bO;', '\u001bx', '\u001b1', '\u001b01', '\u001b0z', '\u001b-', '\u0001x;',
    '\u0018#', '0\u0007', ';'];

  for (const [name, command] of Object.entries(SHELLS)) {
    const { session_id: id } = await s.tool('exec_command', { command, tty: true, term: 'xterm-256color', until: 'prompt', ...LONG });

    for (const head of heads) {
      assert.match((await s.type(id, `${head}touch f1\n`)).text, refusal, `${name} ${JSON.stringify(head)}`);
    }

    const ok = await s.type(id, 'echo "no ne""w"\n', { pattern: 'no new', ...LONG });

    assert.equal(ok.reason, 'pattern', name);
  }
  assert.deepEqual(made(s), []);
});

test('a line is judged as the shell reads it that waits for one', async (t) => {
  const s = await open(t, forbidden);
  const shell = async (command) => (await s.tool('exec_command', { command, tty: true, until: 'prompt', ...LONG })).session_id;
  const refused = async (id, lines) => {
    for (const line of lines) {
      assert.match((await s.type(id, `${line}\n`)).text, refusal, line);
    }
  };
  const runs = async (id, line, wanted) => assert.match((await s.type(id, `${line}\n`, { until: 'prompt', ...LONG })).text, wanted, line);

  const bash = await shell(SHELLS.bash);

  await runs(bash, '# see docs; touch f1', /running/);
  await runs(bash, 'echo o""k # touch; touch f1', /ok/);
  await refused(bash, ['{touch,f1}', "sh -c ': &>/dev/null touch f1'"]);
  // Who reads the second line is up to the first.
  assert.match((await s.type(bash, 'exec zsh -f -i\n# see docs; touch f1\n')).text, refusal);
  await runs(bash, 'shopt -u interactive_comments; echo o""ff', /off/);
  await refused(bash, ['# see docs; touch f1']);

  const zsh = await shell(SHELLS.zsh);

  await runs(zsh, '# touch f1', /command not found/);
  await refused(zsh, ['# see docs; touch f1', ': # ; touch f1', 'ls # list | touch f1', '=touch f1', '- touch f1']);

  const fish = await shell(['fish', '-N', '-i']);

  await refused(fish, ['true; and touch f1', 'begin touch f1; end', 't\\x6fuch f1']);
  await refused(await shell(SHELLS.sh), [": $'\\'; touch f1 #'", ': &>/dev/null touch f1']);
  assert.deepEqual(made(s), []);
});

test('a line to a shell that is too long to be judged is refused, to others it goes on', async (t) => {
  const s = await open(t, forbidden);
  const long = `: ${'a'.repeat(66_000)}; touch f1\n`;
  const refused = /not typed: the line has more than 65536 bytes/;
  const pipe = await s.tool('exec_command', { command: ['bash'], stdin: 'pipe', yield_time_ms: 250 });

  assert.match((await s.type(pipe.session_id, long)).text, refused);
  assert.match((await s.type(pipe.session_id, long.trimEnd(), { eof: true })).text, refused);

  const inner = await s.exec('echo set; bash; true', { stdin: 'pipe', pattern: 'set', ...LONG });

  assert.match((await s.type(inner.session_id, long)).text, refused);

  const { session_id: id } = await s.tool('exec_command', { command: SHELLS.bash, tty: true, term: 'xterm-256color', until: 'prompt', ...LONG });

  assert.match((await s.type(id, long)).text, refused);
  assert.match((await s.type(id, 'echo "o""n"\n', { until: 'prompt', ...LONG })).output, /^on$/m);

  // Programs take what they always took.
  const text = 'b'.repeat(299_999);
  const cat = await s.exec('cat >got; wc -c got', { stdin: 'pipe', yield_time_ms: 250 });

  await waitFor(async () => !(await s.type(cat.session_id, `${text}\n`)).isError, 'a long line being taken');
  assert.match((await s.type(cat.session_id, '', { eof: true, ...LONG })).output, /^300000 got/);

  const raw = await s.exec('stty raw -echo; echo set; head -c 300000 >got2; stty sane; wc -c got2', { tty: true, pattern: 'set', ...LONG });

  // Once it reads: before, the script could start a shell instead.
  let wrote;

  await waitFor(async () => !(wrote = await s.type(raw.session_id, `${text}\n`)).isError, 'a long line being taken');
  await readUntil(s, raw.session_id, /^300000 got2/m, wrote.output);
  assert.equal(fs.readFileSync(path.join(s.yard.ws, 'got'), 'latin1'), `${text}\n`);
  assert.equal(fs.readFileSync(path.join(s.yard.ws, 'got2'), 'latin1'), `${text}\n`);

  // So does a shell that is given a text of short lines (and does not take LIMIT_TYPED_MS to judge, which sanitizers might).
  const lines = "it's a line of text, and touches nothing\n".repeat(2000);

  assert.match((await s.type(pipe.session_id, `cat >got3 <<'END'\n${lines}END\nwc -c got3\n`, { pattern: 'got3', ...LONG })).output,
    new RegExp(`^${lines.length} got3`));
  assert.deepEqual(made(s), []);
});

test('a shell that shows nothing of what is typed is judged, and its log has none of it', async (t) => {
  const s = await open(t, forbidden);

  for (const name of ['bash without an editor', 'sh']) {
    const { session_id: id } = await s.tool('exec_command', { command: SHELLS[name], tty: true, until: 'prompt', ...LONG });

    await s.type(id, 'stty -echo\n', { until: 'input', ...LONG });
    assert.match((await s.type(id, 'touch f1\n')).text, unquoted, name);
    await s.type(id, 'echo set; read -r p; echo "<$p>"\n', { until: 'input', pattern: 'set', ...LONG });
    assert.match((await s.type(id, 'x\ntouch f1\n')).text, unquoted, name);
    await s.type(id, '', { until: 'input', ...LONG });
    // What it may do with a line by eval nobody knows.
    assert.match((await s.type(id, 'touch f1\n')).text, unquoted, name);
    // A quote in a password opens none in the commands behind it.
    assert.match((await s.type(id, "it's\n", { pattern: '>', ...LONG })).output, /<it's>/, name);
    await s.type(id, 'stty echo\n', { until: 'prompt', ...LONG });
    assert.match((await s.type(id, 'echo "; touch" 1\n', { pattern: '; touch 1', ...LONG })).output, /; touch 1/, name);
  }
  assert.deepEqual(made(s), []);
});

test('a line that is hidden is judged whoever seems to read it', async (t) => {
  const s = await open(t, forbidden);
  const ways = ['cat | sh', '. /dev/stdin', '. /dev/tty', '. /dev/tty <&-', 'sh ./lt', 'xargs -I{} sh -c "{}"', './foo', 'bash 2>/dev/null', './rdr --norc --noediting',
    'sh <p & cat >p', 'sh p & cat >p', "awk '{system($0)}'", "python3 -c 'import os; [os.system(line) for line in open(0)]'", 'while read -r x; do eval "$x"; done'];

  fs.symlinkSync('/dev/tty', path.join(s.yard.ws, 'lt'));
  fs.symlinkSync('/bin/bash', path.join(s.yard.ws, 'rdr'));
  fs.copyFileSync('/bin/dash', path.join(s.yard.ws, 'foo'));
  execFileSync('mkfifo', [path.join(s.yard.ws, 'p')]);
  for (const name of ['bash', 'sh']) {
    for (const way of [...ways, ...(name === 'bash' ? ['tee >(sh)'] : [])]) {
      const { session_id: id } = await s.tool('exec_command', { command: SHELLS[name], tty: true, term: 'xterm', until: 'prompt', ...LONG });
      const began = await s.type(id, `stty -echo; echo "s""et"; ${way}\n`, { pattern: 'set', ...LONG });

      assert.equal(began.reason, 'pattern', `${name} ${way} ${began.text}`);
      await s.type(id, '', { until: 'input', ...LONG });
      assert.match((await s.type(id, 'touch f1\n')).text, unquoted, `${name} ${way}`);
      // Nor in pieces.
      await s.type(id, 'to\\\n', { idle_ms: 50, yield_time_ms: 1000 });
      assert.match((await s.type(id, 'uch f1\n')).text, unquoted, `${name} ${way}`);
      await s.tool('kill_session', { session_id: id });
    }
  }
  assert.deepEqual(made(s).filter((name) => name !== 'foo'), []);
});

// Each asks for a password by keys, and shows stars.
const ASKS = `import os, termios, tty
old = termios.tcgetattr(0)
tty.setraw(0)
os.write(1, b'Enter passphrase: ')
n = 0
while os.read(0, 1) not in b'\\r\\n':
    n += 1
    os.write(1, b'*')
termios.tcsetattr(0, 0, old)
print('\\r\\n%d letters' % n)
`;
const STARS = `printf 'Password: '
while IFS= read -r -s -n1 c; do [[ -z $c ]] && break; pw+=$c; printf '*'; done
echo; echo "\${#pw} letters"
`;

/** A yard, and `proto` in it: send(tool, arguments) is its answer, typed() the last event of what was typed. */
function openTyped(t, rules) {
  const yard = makeYard();

  if (rules !== undefined) {
    fs.mkdirSync(path.join(yard.home, '.config/shellyard'), { recursive: true });
    fs.writeFileSync(path.join(yard.home, '.config/shellyard/rules.yaml'), JSON.stringify(rules));
  }

  const proto = openProto(t, yard);
  let calls = 0;
  const send = async (name, args) => {
    const id = `c${calls += 1}`;

    proto.send({ type: 'function_call', name, call_id: id, arguments: JSON.stringify({ yield_time_ms: 30_000, ...args }) });

    const { output } = await proto.next((m) => m.type === 'function_call_output' && m.call_id === id);

    return output.startsWith('{') ? JSON.parse(output) : output;
  };
  const typed = () => proto.lines.map((line) => JSON.parse(line)).filter((m) => m.type === 'terminal_interaction').at(-1);

  return { yard, proto, send, typed };
}

test('what is typed and refused is told with the reason, but for what is hidden', async (t) => {
  const { proto, send, typed } = openTyped(t, forbidden);
  const { process_id: id } = await send('exec_command', { command: SHELLS['bash without an editor'], tty: true, until: 'prompt' });

  await send('write_stdin', { process_id: id, input: 'touch f1\r' });
  assert.deepEqual([typed().stdin, typed().hidden, typed().by], ['touch f1\r', undefined, 'agent']);
  assert.match(typed().refused, refusal);
  await send('write_stdin', { process_id: id, input: 'stty -echo\r', until: 'input' });
  assert.equal(typed().refused, undefined);
  await send('write_stdin', { process_id: id, input: 'touch f1\r' });
  assert.deepEqual([typed().stdin, typed().hidden], ['', true]);
  assert.match(typed().refused, unquoted);
  assert.equal(proto.lines.map((line) => JSON.parse(line)).filter((m) => m.refused !== undefined).length, 2);

  // Without a terminal.
  const pipe = await send('exec_command', { command: ['bash'], stdin: 'pipe', yield_time_ms: 250 });

  await send('write_stdin', { process_id: pipe.process_id, input: 'touch f1\n' });
  assert.match(typed().refused, refusal);
});

test('a password that a shell waits for, or asks for itself, is in no event', async (t) => {
  const { yard, proto, send, typed } = openTyped(t);

  fs.writeFileSync(path.join(yard.ws, 'asks.py'), ASKS);
  fs.writeFileSync(path.join(yard.ws, 'stars.sh'), STARS);
  for (const command of ['python3 asks.py; echo rc=$?', 'bash stars.sh', ['bash', 'stars.sh'], "exec fish -N -c 'read -s -P \"Password: \" x; string length $x; echo letters'"]) {
    const asked = await send('exec_command', { ...(Array.isArray(command) ? { command } : { cmd: command }), tty: true, pattern: 'pass(phrase|word): ' , until: 'input' });
    const waits = await send('write_stdin', { process_id: asked.process_id, until: 'input' });

    assert.equal(waits.echo_off, true, `${command} ${JSON.stringify(waits)}`);

    const end = await send('write_stdin', { process_id: asked.process_id, input: 'hunter2\r', pattern: 'letters' });

    assert.match(end.output, /letters/, String(command));
    assert.deepEqual([typed().stdin, typed().hidden], ['', true], String(command));
  }

  // In a shell that is typed to, whoever asks; and what is typed at its prompt is told.
  const shell = await send('exec_command', { command: ['bash', '--norc', '-i'], tty: true, until: 'prompt' });

  await send('write_stdin', { process_id: shell.process_id, input: 'source stars.sh\r', pattern: 'Password: ' });
  await send('write_stdin', { process_id: shell.process_id, until: 'input' }); // else the answer counts as a line typed ahead
  await send('write_stdin', { process_id: shell.process_id, input: 'hunter2\r', until: 'prompt' });
  assert.deepEqual([typed().stdin, typed().hidden], ['', true]);
  await send('write_stdin', { process_id: shell.process_id, input: 'echo Password:', pattern: 'word:' });
  await send('write_stdin', { process_id: shell.process_id, input: ' x\r', until: 'prompt' });
  assert.equal(typed().stdin, ' x\r');
  assert.equal(proto.lines.some((line) => line.includes('hunter2')), false);
});

test('a password that a program asks for on the whole screen is in no event', async (t) => {
  const { yard, proto, send, typed } = openTyped(t);
  const asks = "printf 'Password: '; read -rs x; echo; echo \"${#x} letters\"; cat";
  const ways = { "printf '\\033[?1049h'": `printf '\\033[?1049h'; stty raw -echo; printf 'Password: '; head -c 8 | wc -c; echo letters; cat` };

  fs.writeFileSync(path.join(yard.ws, 'asks.sh'), asks);
  if (spawnSync('tmux', ['-V']).status === 0) {
    ways.tmux = 'SHELL=/bin/bash tmux -L "$TMUX_NAME" -f /dev/null new "bash asks.sh"';
  }
  if (/\+cryptv/.test(spawnSync('vim', ['--version'], { encoding: 'utf8' }).stdout ?? '')) {
    ways['vim -x'] = 'vim -u NONE -x enc.txt';
  }
  for (const [name, cmd] of Object.entries(ways)) {
    const env = { TMUX_NAME: `yard${process.pid}` };
    const asked = await send('exec_command', { cmd, env, tty: true, term: 'xterm', pattern: 'Password: |key: ', view: 'screen' });

    assert.equal(asked.reason, 'pattern', `${name} ${JSON.stringify(asked)}`);

    const waits = await send('write_stdin', { process_id: asked.process_id, until: 'input' });

    assert.equal(waits.echo_off, true, `${name} ${JSON.stringify(waits)}`);
    await send('write_stdin', { process_id: asked.process_id, input: 'hunter2\r', pattern: 'letters|again' });
    assert.deepEqual([typed().stdin, typed().hidden], ['', true], name);
    await send('kill_session', { process_id: asked.process_id });
  }
  assert.equal(proto.lines.some((line) => line.includes('hunter2')), false);
});

test('a refusal names the line and what was found in it', async (t) => {
  const s = await open(t);
  const pipe = await s.exec('cat; true', { stdin: 'pipe', yield_time_ms: 250 });
  const long = `: ${'a'.repeat(100)}; rm -rf b`;

  for (const [chars, words] of [
    ['ok\nreboot = 1\nok\n', /reboot = 1: it stops the machine.*by a call of its own.*; the line: reboot = 1\n.*apply_patch/],
    [`${long}\n`, /rm -rf b: -rf: it removes without asking.*; the line: : a{4,80}(\.\.\.)?\n/],
    ['rm -rf "\u0007"\n', /; the line: rm -rf "\\x07"\n/],
  ]) {
    assert.match((await s.type(pipe.session_id, chars)).text, words);
  }

  // What was typed before stands in the line of a shell, but not of one that draws.
  const draws = await s.exec("printf '\\033[?1049h'; stty raw -echo; echo set; cat", { tty: true, pattern: 'set', ...LONG });

  for (const id of [pipe.session_id, draws.session_id]) {
    await s.type(id, 'true;');
    const { text } = await s.type(id, 'reboot\n');

    assert.match(text, /; the line: reboot/);
    assert.equal(/bytes of it stand there already/.test(text), id === pipe.session_id, text);
  }
});

test('what goes into a file by cat alone is text, and no command', async (t) => {
  const s = await open(t, forbidden);

  for (const cmd of ['cat > text', 'cat >>text']) {
    const { session_id: id } = await s.exec(cmd, { stdin: 'pipe', yield_time_ms: 250 });

    // Once it is there.
    await waitFor(async () => !(await s.type(id, 'touch f1\n')).isError, 'text being taken');
    assert.equal((await s.type(id, 'touch f1', { eof: true, ...LONG })).exit_code, 0, cmd);
  }
  assert.equal(fs.readFileSync(path.join(s.yard.ws, 'text'), 'latin1'), 'touch f1\ntouch f1touch f1\ntouch f1');

  // Where anything else may read it, it is judged.
  execFileSync('mkfifo', [path.join(s.yard.ws, 'pipe')]);
  for (const [cmd, args] of [['cat > text; sh'], ['cat > text & sh'], ['cat | sh'], ['exec 3<>pipe; cat > pipe'], ['cat <>pipe >&0'], ['cat > text', { env: { A: 'b' } }], ['cat > "$(sh)"'],
    ['cat > text', { tty: true, stdin: undefined }]]) {
    const { session_id: id } = await s.exec(cmd, { stdin: 'pipe', yield_time_ms: 500, ...args });

    assert.match((await s.type(id, 'touch f1\n')).text, refusal, cmd);
  }

  const fifo = await s.exec('sh < pipe', { yield_time_ms: 250 });
  const { session_id: id } = await s.exec('cat > pipe', { stdin: 'pipe', yield_time_ms: 500 });

  assert.match((await s.type(id, 'touch f1\n')).text, refusal);
  await s.tool('kill_session', { session_id: fifo.session_id });
  assert.deepEqual(made(s), []);
});
