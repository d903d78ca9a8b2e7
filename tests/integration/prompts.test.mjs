// What asks: passwords, questions, progress, long pastes, and what the answer says of them.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { STUCK_MS, has, mustRun, program, waitFor } from './lib/client.mjs';
import { openDrive } from './lib/drive.mjs';

/** All files below a directory, as [name, text]. */
function filesBelow(dir) {
  return fs.readdirSync(dir, { recursive: true, withFileTypes: true }).filter((e) => e.isFile())
    .map((e) => path.join(e.parentPath ?? e.path, e.name)).map((file) => [file, fs.readFileSync(file, 'latin1')]);
}

const asks = {
  'stty -echo': "stty -echo; printf 'Password: '; read -r p; stty echo; echo; echo \"${#p} letters\"; read -r -p 'ready? ' x; echo \"x=$x\"",
  'getpass at /dev/tty': "/usr/bin/python3 -c \"import getpass; p = getpass.getpass(); print(len(p), 'letters'); x = input('ready? '); print('x=' + x)\" ",
  'sudo-like, with stars': '/usr/bin/python3 stars.py',
};
const STARS = `import os, termios
fd = os.open('/dev/tty', os.O_RDWR)
old = termios.tcgetattr(fd)
new = termios.tcgetattr(fd)
new[3] &= ~(termios.ECHO | termios.ICANON)
termios.tcsetattr(fd, termios.TCSANOW, new)
os.write(fd, b'[sudo] password for me: ')
got = b''
while True:
    c = os.read(fd, 1)
    if c in (b'\\r', b'\\n'):
        break
    got += c
    os.write(fd, b'*')
termios.tcsetattr(fd, termios.TCSANOW, old)
os.write(fd, b'\\n%d letters\\n' % len(got))
x = input('ready? ')
print('x=' + x)
`;

for (const [how, cmd] of Object.entries(asks)) {
  test(`a password (${how}) is asked for, taken, and kept nowhere`, { timeout: STUCK_MS }, async (t) => {
    const secret = `Kw${crypto.randomBytes(6).toString('hex')}`;
    const s = await openDrive(t);

    fs.writeFileSync(path.join(s.yard.ws, 'stars.py'), STARS);
    const p = await s.run(cmd, { until: 'input', yield_time_ms: 30_000 });

    await p.see(/assword/);
    assert.equal(p.last.reason, 'input', p.show());
    assert.equal(p.last.waiting_for_input, true, p.show());
    assert.equal(p.last.echo_off, true, p.show());
    await p.type(`${secret}\r`, { pattern: 'ready', yield_time_ms: 30_000 });
    await p.see(/14 letters\nready\? ?$/m);
    assert.notEqual(p.last.echo_off, true, p.show());
    await p.type('yes\r');
    await p.ends();
    assert.match(p.last.output, /x=yes/);
    assert.doesNotMatch(p.last.output, new RegExp(secret));
    await s.server.close();
    assert.doesNotMatch(s.server.stderr(), new RegExp(secret));

    const found = filesBelow(s.yard.dir).filter(([, text]) => text.includes(secret)).map(([file]) => file);

    assert.deepEqual(found, []);
  });
}

test('a question of read -p is seen as one, with and without a terminal of its own', { timeout: STUCK_MS }, async (t) => {
  const s = await openDrive(t);

  for (const from of ['', ' </dev/tty']) {
    const p = await s.run(`read -r -p 'Go on? [y/N] ' a${from}; echo "a=$a"`, { until: 'input', yield_time_ms: 10_000 });

    assert.equal(p.last.reason, 'input', p.show());
    assert.match(p.last.output, /^Go on\? \[y\/N\]/);
    assert.equal(p.last.waiting_for_input, true, p.show());
    assert.notEqual(p.last.echo_off, true, p.show());
    await p.type('y\r');
    await p.ends();
    assert.match(p.last.output, /\na=y\n/);
  }
});

test('what only runs is not taken for one that asks', { timeout: STUCK_MS }, async (t) => {
  const s = await openDrive(t);
  const p = await s.run("echo 'Password:'; sleep 300", { until: 'input', yield_time_ms: 1500 });

  assert.equal(p.last.reason, 'timeout', p.show());
  assert.notEqual(p.last.waiting_for_input, true, p.show());
  await p.press('C-c');
  await p.ends(130);
});

test('a progress bar is one line of the screen', { timeout: STUCK_MS }, async (t) => {
  const s = await openDrive(t);
  const p = await s.run("for i in $(seq 0 20 100); do printf '\\r[%-10s] %3d%%' \"$(printf '%*s' $((i / 10)) '' | tr ' ' '#')\" $i; done; read -r x; printf '\\rdone\\033[K\\n'");

  await p.see(/^\[#{10}\] 100%$/m);
  assert.equal(p.rows().filter((row) => row.includes('%')).length, 1, p.show());
  await p.type('\r');
  await p.ends();
  assert.doesNotMatch(p.last.output.split('\n').find((row) => row.includes('done')) ?? '', /%/);
});

test('a paste of 300000 bytes arrives byte for byte', { timeout: STUCK_MS }, async (t) => {
  const s = await openDrive(t);
  const text = Array.from({ length: 6000 }, (_, i) => `${String(i).padStart(6, '0')} ${'äbc–'.repeat(6)} ${'x'.repeat(6)}\n`).join('').slice(0, 250_000);
  const whole = Buffer.concat([Buffer.from(text), Buffer.alloc(300_000, 'z')]).subarray(0, 300_000);

  await t.test('to one that reads keys', async () => {
    const p = await s.run('stty raw -echo; echo ready; head -c 300000 | sha256sum >sum; stty sane', { pattern: 'ready', yield_time_ms: 30_000 });

    await p.type(whole.toString());
    await p.ends();
    assert.equal(fs.readFileSync(path.join(s.yard.ws, 'sum'), 'utf8').slice(0, 64), crypto.createHash('sha256').update(whole.toString()).digest('hex').slice(0, 64));
  });
});

test('a full screen program hears of each new size', { timeout: STUCK_MS }, async (t) => {
  const s = await openDrive(t);

  fs.writeFileSync(path.join(s.yard.ws, 'size.py'), `import curses
def main(w):
    while True:
        w.erase()
        y, x = w.getmaxyx()
        w.addstr(0, 0, 'top %dx%d' % (y, x))
        w.addstr(y - 1, 0, 'bottom')
        w.refresh()
        if w.getch() == ord('q'):
            return
curses.wrapper(main)
`);

  const p = await s.run('/usr/bin/python3 size.py', { rows: 20, cols: 60 });

  await p.see((r) => r.screen?.alt_screen && /^top 20x60/.test(r.output), '20x60');
  for (const [args, rows, cols] of [[{ rows: 9, cols: 33 }, 9, 33], [{ cols: 90 }, 9, 90], [{ rows: 40 }, 40, 90]]) {
    await p.send(args);
    await p.see((r) => r.output.startsWith(`top ${rows}x${cols}\n`) && r.screen.rows === rows && r.screen.cols === cols, `${rows}x${cols}`);
    assert.equal(p.rows()[rows - 1], 'bottom', p.show());
  }
  await p.type('q');
  await p.ends();

  const pipe = await s.tool('exec_command', { cmd: 'cat', stdin: 'pipe', yield_time_ms: 250 });
  const refused = await s.tool('write_stdin', { session_id: pipe.session_id, rows: 10, cols: 20 });

  assert.equal(refused.isError, true);
  assert.match(refused.text, /no terminal.*tty/);
});

test('ssh and its like ask on the terminal', { timeout: STUCK_MS }, async (t) => {
  const s = await openDrive(t);
  const p = await s.run('echo $SSH_ASKPASS_REQUIRE', { yield_time_ms: 30_000 });

  assert.match(p.last.output, /^never$/m);
  if (has('ssh-keygen')) {
    const key = await s.run('ssh-keygen -q -t ed25519 -f key', { until: 'input', yield_time_ms: 30_000 });

    assert.deepEqual([key.last.reason, key.last.echo_off], ['input', true], key.show());
    await key.type('a long phrase\n', { until: 'input', yield_time_ms: 30_000 });
    await key.type('a long phrase\n', { yield_time_ms: 30_000 });
    assert.equal(key.last.exit_code, 0, key.show());

    const open = await s.run("ssh-keygen -y -P '' -f key", { yield_time_ms: 30_000 });

    assert.equal(open.last.exit_code, 255, open.show());
  }
});

test('a screen is stable once it shows the same, however often that is drawn', { timeout: STUCK_MS }, async (t) => {
  const s = await openDrive(t);

  fs.writeFileSync(path.join(s.yard.ws, 'spin.py'), `import sys, time
for i in range(12):
    sys.stdout.write('\\r%d  ' % i)
    sys.stdout.flush()
    time.sleep(0.05)
while True:
    sys.stdout.write('\\r\\033[1mready\\033[0m')
    sys.stdout.flush()
    time.sleep(0.02)
`);

  const p = await s.run('/usr/bin/python3 spin.py', { until: 'stable', idle_ms: 400, yield_time_ms: 30_000 });

  assert.equal(p.last.reason, 'stable', p.show());
  assert.match(p.last.output, /^ready$/m);

  const moving = await p.send({ until: 'stable', idle_ms: 100, yield_time_ms: 30_000 });

  assert.equal(moving.reason, 'stable');
  assert.equal((await p.send({ idle_ms: 2000, yield_time_ms: 3000 })).reason, 'timeout', 'bytes still come');
  await p.press('C-c');
  await p.ends(130);

  // Before it has drawn anything it has still to begin.
  const slow = await s.run('sleep 0.4; echo drawn; exec sleep 300', { until: 'stable', yield_time_ms: 30_000 });

  assert.deepEqual([slow.last.reason, slow.last.output.trim()], ['stable', 'drawn']);

  const blank = await s.run('sleep 300', { until: 'stable', yield_time_ms: 30_000 });

  assert.deepEqual([blank.last.reason, blank.last.output.trim()], ['stable', '']);

  const pipe = await s.tool('exec_command', { cmd: 'echo one; exec sleep 300', until: 'stable', yield_time_ms: 30_000 });

  assert.equal(pipe.reason, 'stable');
  assert.match((await s.tool('exec_command', { cmd: 'true', until: 'still' })).text, /prompt.*input.*stable/);
});

test('a bash of ours marks its prompt, and leaves nothing to its children', { timeout: STUCK_MS }, async (t) => {
  const s = await openDrive(t);

  for (const cmd of ['bash --norc -i', ['bash', '--norc', '-i']]) {
    const p = await s.run(cmd, { until: 'prompt', yield_time_ms: 30_000 });

    assert.equal(p.last.reason, 'prompt', p.show());
    assert.match(p.last.output, /^\S*[#$] ?$/m);
    await p.type('echo "${PS1@Q}"; env | grep -c PROMPT_COMMAND; echo "<${PROMPT_COMMAND-gone}>"; (exit 7)\r', { until: 'prompt', yield_time_ms: 30_000 });
    assert.equal(p.last.reason, 'prompt', p.show());
    assert.match(p.last.output, /133;B;sy=[0-9a-f]{8}/);
    assert.match(p.last.output, /^0\n<gone>$/m);
    await p.type('echo "rc=$?"\r', { until: 'prompt', yield_time_ms: 30_000 });
    assert.match(p.last.output, /^rc=7$/m);
    await p.type('exit\r');
    await p.ends();
  }
});

test('several lines are answered at the prompt behind the last', { timeout: STUCK_MS }, async (t) => {
  const s = await openDrive(t);
  const cases = [
    ['bash --norc -i', 'cd /; sleep 0.3\rpwd\r(exit 4)\recho "rc=$?"\r', /^\/\n(.*\n)*rc=4\n.*[#$] ?$/m],
    ['/usr/bin/python3 -q', 'x = 41\nimport time; time.sleep(0.3)\nfor i in range(2):\n  print(x + i)\n\nprint("last", x)\n', /^41\n42\n(.*\n)*last 41\n>>> ?$/m],
  ];

  for (const [cmd, text, answer] of cases) {
    const p = await s.run(cmd, { until: 'prompt', yield_time_ms: 30_000 });

    assert.equal(p.last.reason, 'prompt', p.show());
    await p.type(text, { until: 'prompt', yield_time_ms: 30_000 });
    assert.equal(p.last.reason, 'prompt', p.show());
    assert.match(p.last.output, answer, cmd);
    await p.press('C-d');
    await p.ends();
  }
});

// It has read what was typed, has shown it, and is at work with its terminal set as at a prompt: bash
// on a busy machine between the end of a line and its command.
const WORKS_RAW = `import ctypes, os, sys, time, tty
ctypes.CDLL(None).prctl(15, sys.argv[1].encode(), 0, 0, 0)
tty.setraw(0)
os.write(1, b'$ ')
while os.read(0, 100) != b'q':
    os.write(1, b'typed\\r\\n')
    end = time.monotonic() + 0.4
    while time.monotonic() < end:
        pass
    os.write(1, b'done\\r\\n$ ')
`;

test('a program that works with its terminal set as at a prompt does not wait yet', { timeout: STUCK_MS }, async (t) => {
  if (!mustRun(t, has('python3'), 'no python3')) {
    return;
  }
  const s = await openDrive(t);

  fs.writeFileSync(path.join(s.yard.ws, 'works.py'), WORKS_RAW);
  for (const [name, until] of [['bash', 'prompt'], ['bash', 'input'], ['editor', 'input']]) {
    const p = await s.run(`/usr/bin/python3 works.py ${name}`, { until, yield_time_ms: 30_000 });

    assert.match(p.last.output, /^\$/, p.show());
    await p.type('x', { until, yield_time_ms: 30_000 });
    assert.equal(p.last.reason, until, p.show());
    assert.match(p.last.output, /typed\ndone\n\$/, name + until);
    await p.type('q');
    await p.ends();
  }
});

// As a line editor of a program does, only slower: the terminal is set before the prompt is whole.
const PIECES = `import os, termios, time
old = termios.tcgetattr(0)
keys = termios.tcgetattr(0)
keys[3] &= ~(termios.ECHO | termios.ICANON)
def work(s):
    end = time.monotonic() + s
    while time.monotonic() < end:
        pass
got = ''
while got != 'q':
    termios.tcsetattr(0, termios.TCSANOW, old)
    os.write(1, b'no newline')
    termios.tcsetattr(0, termios.TCSANOW, keys)
    work(0.01)
    os.write(1, b' >>')
    work(0.01)
    os.write(1, b'> ')
    got = os.read(0, 100).decode()
`;

test('a prompt is whole however a program writes it', { timeout: STUCK_MS }, async (t) => {
  if (!mustRun(t, has('python3'), 'no python3')) {
    return;
  }
  const s = await openDrive(t);

  fs.writeFileSync(path.join(s.yard.ws, 'pieces.py'), PIECES);
  const p = await s.run('/usr/bin/python3 pieces.py', { until: 'prompt', yield_time_ms: 30_000 });

  for (let i = 0; i < 10; i++) {
    assert.equal(p.last.reason, 'prompt', p.show());
    assert.match(p.last.output, /no newline >>> ?\n?$/, p.show());
    await p.type('x', { view: 'stream', until: 'prompt', yield_time_ms: 30_000 });
  }
  await p.type('q');
  await p.ends();
});

test('a server that was held up reads what was written meanwhile before it says that nothing was', { timeout: STUCK_MS }, async (t) => {
  const s = await openDrive(t);
  const { pid } = s.server;
  const is = (name) => waitFor(() => fs.existsSync(path.join(s.yard.ws, name)), name);

  fs.writeFileSync(path.join(s.yard.ws, 'works.sh'), `mkfifo go; printf '> '; read -r x; echo typed; touch begun
read -r y < go; sleep 0.3; printf 'done\n> '; touch over; read -r z`);
  const p = await s.run('sh works.sh', { until: 'input', yield_time_ms: 30_000 });
  const typed = p.type('x\n', { view: 'stream', until: 'input', yield_time_ms: 30_000 });

  await is('begun');
  process.kill(pid, 'SIGSTOP');
  try {
    fs.writeFileSync(path.join(s.yard.ws, 'go'), 'on\n');
    await is('over');
  } finally {
    process.kill(pid, 'SIGCONT');
  }
  await typed;
  assert.deepEqual([p.last.reason, p.last.output.replaceAll('\r', '')], ['input', 'x\ntyped\ndone\n> ']);
  await p.type('z\n');
  await p.ends();
});

test('a prompt that is only drawn anew is none: readline takes the mark off what was pasted', { timeout: STUCK_MS }, async (t) => {
  const s = await openDrive(t);
  const p = await s.run(['bash', '--norc', '-i'], { until: 'prompt', term: 'xterm-256color', yield_time_ms: 30_000 });

  for (const [text, made] of [['sleep 0.4; touch one', 'one'], ['sleep 0.4\ntouch two', 'two']]) {
    await p.type(text, { paste: true, idle_ms: 100 });
    await p.type('', { enter: true, until: 'prompt', yield_time_ms: 30_000 });
    assert.equal(p.last.reason, 'prompt', p.show());
    assert.equal(fs.existsSync(path.join(s.yard.ws, made)), true, JSON.stringify(p.last));
  }
  await p.type('clear\r', { until: 'prompt', yield_time_ms: 30_000 });
  assert.equal(p.last.reason, 'prompt');
  await p.type('\r', { until: 'prompt', yield_time_ms: 30_000 });
  assert.equal(p.last.reason, 'prompt');
  await p.type('sleep 300', { enter: true, idle_ms: 100 });
  await p.send({ keys: ['C-c'], until: 'prompt', yield_time_ms: 30_000 });
  assert.equal(p.last.reason, 'prompt');
});

test('rc files have their way with the prompt, and a script has no mark', { timeout: STUCK_MS }, async (t) => {
  const s = await openDrive(t);

  fs.writeFileSync(path.join(s.yard.ws, 'own'), "PS1='own> '; PROMPT_COMMAND=:\n");
  fs.writeFileSync(path.join(s.yard.ws, 'more'), "PS1='more> '; PROMPT_COMMAND=\"$PROMPT_COMMAND; n=\\$((n + 1))\"\n");
  for (const [file, marks] of [['own', 0], ['more', 1]]) {
    const p = await s.run(`bash --rcfile ${file} -i`, { until: 'prompt', yield_time_ms: 30_000 });

    assert.equal(p.last.reason, 'prompt', p.show());
    await p.type('echo "marks:$(grep -o sy= <<<"$PS1" | wc -l) n=$n"\r', { until: 'prompt', yield_time_ms: 30_000 });
    await p.see(new RegExp(`^marks:${marks} n=${marks ? 1 : ''}$`, 'm'));
    assert.equal(p.rows().filter((row) => row.startsWith(`${file}> `) || row === `${file}>`).length, 2, p.show());
    await p.type('exit\r');
    await p.ends();
  }

  const script = await s.run("bash -c 'env | grep -c PROMPT_COMMAND'; env | grep -c PROMPT_COMMAND", { yield_time_ms: 30_000 });

  assert.match(script.last.output, /^0\n0$/m);
});

const LEFT = 'env | grep -c -e SHELLYARD_MARK -e SHELLYARD_ZDOTDIR -e ^ENV= -e sy=';

/** At its prompt, whose mark is its own: nothing is left for its children, and nobody else's counts. */
async function isMarked(p, prompt) {
  const ask = (line, args = {}) => p.type(`${line}\r`, { until: 'prompt', yield_time_ms: 30_000, ...args });

  assert.equal(p.last.reason, 'prompt', p.show());
  await ask('(exit 7)');
  await ask(`echo "rc=$?"; case $PS1 in *133\\;B\\;sy=*) echo marked; esac; ${LEFT}`);
  assert.equal(p.last.reason, 'prompt', p.show());
  assert.match(p.last.output, /^rc=7\nmarked\n0$/m, p.show());
  assert.equal(p.rows().filter((row) => row.startsWith(prompt)).length, 3, p.show());
  await ask(`printf '\\033]133;B;sy=%032d\\007\\033]133;B\\007${prompt}' 0; read -r x`, { yield_time_ms: 500 });
  assert.equal(p.last.reason, 'timeout', p.show());
  await ask('');
  assert.equal(p.last.reason, 'prompt', p.show());
}

test('a zsh marks its prompt, and reads the files of its person', { timeout: STUCK_MS }, async (t) => {
  if (!mustRun(t, has('zsh'), 'no zsh here')) {
    return;
  }
  const s = await openDrive(t);
  const at = (name, text) => fs.writeFileSync(path.join(s.yard.home, name), text);

  at('.zshenv', 'from=env\n');
  at('.zshrc', "precmd_functions+=(mine)\nmine() { PS1='own> '; n=$((n + 1)) }\nHISTFILE=$ZDOTDIR/x\n");
  const p = await s.run('zsh', { until: 'prompt', yield_time_ms: 30_000 });

  await isMarked(p, 'own>');
  await p.type('echo "<$from $n ${ZDOTDIR-none} $HISTFILE>"\r', { until: 'prompt', yield_time_ms: 30_000 });
  assert.match(p.last.output, /^<env 4 none \/x>$/m);
  await p.type('exit\r');
  await p.ends();

  await t.test('also where they are elsewhere, and a zsh starts it', async (u) => {
    const other = await openDrive(u, { settings: { 'shell.path': '/usr/bin/zsh', 'shell.snapshot': false }, env: { ZDOTDIR: path.join(s.yard.home, 'dots') } });

    fs.mkdirSync(path.join(s.yard.home, 'dots'));
    at('dots/.zshenv', 'from=$((from + 1))\n');
    at('dots/.zprofile', 'from+=profile\n');
    at('dots/.zshrc', "PROMPT='dots> '\n");
    const q = await other.run('zsh -l', { until: 'prompt', yield_time_ms: 30_000 });

    await isMarked(q, 'dots>');
    await q.type('echo "<$from $ZDOTDIR>"\r', { until: 'prompt', yield_time_ms: 30_000 });
    assert.match(q.last.output.replaceAll('\n', ''), /<1profile \S+\/home\/dots>/);
    await q.type('exit\r');
    await q.ends();
  });
});

test('where a zsh could not read our file it reads its own alone', { timeout: STUCK_MS }, async (t) => {
  if (!mustRun(t, has('zsh'), 'no zsh here')) {
    return;
  }
  const ours = path.join(fs.realpathSync(path.dirname(program)), 'libexec/shellyard/prompt');

  assert.ok(fs.existsSync(path.join(ours, '.zshenv')));

  const s = await openDrive(t, { settings: { 'sandbox.deny_read': ours } });

  fs.writeFileSync(path.join(s.yard.home, '.zshrc'), "PS1='own> '\n");
  const p = await s.run('zsh', { until: 'prompt', yield_time_ms: 30_000 });

  await p.type('echo "<$PS1 ${ZDOTDIR-none}>"\r', { until: 'prompt', yield_time_ms: 30_000 });
  assert.match(p.last.output, /^<own> {2}none>$/m);
  await p.type('exit\r');
  await p.ends();
});

test('a sh marks its prompt, the only thing that tells of it, and reads the profile of its person', { timeout: STUCK_MS }, async (t) => {
  const s = await openDrive(t);

  fs.writeFileSync(path.join(s.yard.home, '.profile'), "PS1='mine> '; n=5\n");
  for (const [cmd, prompt, n] of [['sh -i', '', ''], [['dash', '-l'], 'mine>', '5']]) {
    const p = await s.run(cmd, { until: 'prompt', yield_time_ms: 30_000 });

    await isMarked(p, prompt || p.rows()[0].trim());
    await p.type('echo "<$n ${ENV-none}>"\r', { until: 'prompt', yield_time_ms: 30_000 });
    assert.match(p.last.output, new RegExp(`^<${n} none>$`, 'm'));
    await p.type('exit\r');
    await p.ends();
  }
});

test('a line typed while a shell is busy is answered at its own prompt', { timeout: STUCK_MS }, async (t) => {
  const s = await openDrive(t);

  for (const cmd of ['bash --norc -i', 'sh -i', '/usr/bin/python3 -q']) {
    const [busy, line] = cmd.includes('python')
      ? ['import time; time.sleep(0.4)\n', 'time.sleep(0.05); print("own" + str(1))\n'] : ['sleep 0.4\n', 'sleep 0.05; echo own$((1))\n'];
    const p = await s.run(cmd, { until: 'prompt', yield_time_ms: 30_000 });

    await p.type(busy, { view: 'stream' });
    await p.type(line, { view: 'stream', until: 'prompt', yield_time_ms: 30_000 });
    assert.match(p.last.output, /own1$/m, `${cmd}\n${p.show()}`);
    await p.press('C-d');
    await p.ends();
  }
});

test('a program that is at work with its terminal set for keys is not at its prompt', { timeout: STUCK_MS }, async (t) => {
  const s = await openDrive(t);
  // The one of the tests: the system's may be too old to await.
  const p = await s.run([process.execPath], { until: 'prompt', yield_time_ms: 30_000 });

  await p.type('await new Promise((r) => setTimeout(r, 400)); "o" + "ver"\n', { view: 'stream', until: 'prompt', yield_time_ms: 30_000 });
  assert.equal(p.last.reason, 'prompt', p.show());
  assert.match(p.last.output, /^'over'\n> $/m);
  await p.type('.exit\n');
  await p.ends();
  // An empty prompt of a shell is one.
  const bash = await s.run('bash --norc -i', { until: 'prompt', yield_time_ms: 30_000 });

  await bash.type("PS1=''\n", { until: 'prompt', yield_time_ms: 30_000 });
  await bash.type('echo $((40 + 2))\n', { view: 'stream', until: 'prompt', yield_time_ms: 30_000 });
  assert.deepEqual([bash.last.reason, bash.last.output], ['prompt', 'echo $((40 + 2))\n42\n']);
  await bash.press('C-d');
  await bash.ends();
});

test('a shell in a shell has a prompt too, and read is none', { timeout: STUCK_MS }, async (t) => {
  const s = await openDrive(t);
  const outer = { bash: 'bash --norc -i', plain: 'bash --norc --noediting -i', sh: 'sh -i', 'sh that marks nothing': 'sh -e' };
  const prompted = { view: 'stream', until: 'prompt', yield_time_ms: 30_000 };

  for (const [name, cmd] of Object.entries(outer)) {
    const p = await s.run(cmd, { until: 'prompt', yield_time_ms: 30_000 });

    assert.equal(p.last.reason, 'prompt', `${name}\n${p.show()}`);
    await p.send({ until: 'prompt', yield_time_ms: 30_000 });
    assert.equal(p.last.reason, 'prompt', `there already: ${name}\n${p.show()}`);
    for (const inner of ['bash --norc', 'sh']) {
      await p.type(`${inner}\n`, prompted);
      assert.equal(p.last.reason, 'prompt', `${inner} in ${name}\n${p.show()}`);
      await p.type('sleep 0.05; echo i$((1))n\n', prompted);
      assert.match(p.last.output, /^i1n$/m, `${inner} in ${name}\n${p.show()}`);
      await p.type('exit\n', prompted);
      assert.equal(p.last.reason, 'prompt', `${name} behind ${inner}\n${p.show()}`);
    }
    await p.type('echo a\nread x\n', { view: 'stream', until: 'prompt', yield_time_ms: 250 });
    assert.equal(p.last.reason, 'timeout', `read in ${name}\n${p.show()}`);
    await p.type('v\n', prompted);
    assert.equal(p.last.reason, 'prompt', `${name} behind read\n${p.show()}`);
    await p.press('C-d');
    await p.ends();
  }
});

for (const [shell, cmd, slow, mark] of [
  ['zsh', 'zsh -f', "precmd() { PS1=\"at $(sleep 0.3; echo it)> \" }", process.getuid() === 0 ? '#' : '%'],
  ['fish', 'fish --no-config', "function fish_prompt; sleep 0.3; echo -n 'at it> '; end", '⏎'],
]) {
  test(`of ${shell} the end of an output without a newline is kept, and its prompt is waited for`, { timeout: STUCK_MS }, async (t) => {
    if (!mustRun(t, has(shell), `no ${shell} here`)) {
      return;
    }
    const s = await openDrive(t);
    const p = await s.run(cmd, { until: 'prompt', yield_time_ms: 30_000 });
    const ask = async (line) => {
      await p.type(`${line}\r`, { until: 'prompt', yield_time_ms: 30_000 });
      assert.equal(p.last.reason, 'prompt', p.show());
    };
    await ask(slow);
    assert.match(p.last.output, /^at it> ?$/m, p.show());
    await ask("printf 'one\\nhello'");
    const lines = p.last.output.trimEnd().split('\n');
    assert.deepEqual(lines.slice(-3).map((line) => line.trimEnd()), ['one', `hello${mark}`, 'at it>'], p.show());
    await ask("printf 'ended\\n'");
    assert.deepEqual(p.last.output.trimEnd().split('\n').slice(-2).map((line) => line.trimEnd()), ['ended', 'at it>'], p.show());
    await p.type('exit\r');
    await p.ends();
  });
}

const SELECTS = `import select, sys, time
print('go? ', end='', flush=True)
select.select([sys.stdin], [], [], 300)
print('got', sys.stdin.readline())
`;
const waits = {
  'read -t (select)': "read -t 300 -p 'go? ' x; echo got $x",
  'select of python': '/usr/bin/python3 selects.py',
  'epoll of python': "/usr/bin/python3 -c \"import select, sys; print('go? ', end='', flush=True); e = select.epoll(); e.register(0, select.EPOLLIN); e.poll(300); print('got', sys.stdin.readline())\"",
};

for (const [how, cmd] of Object.entries(waits)) {
  test(`a program that waits for its terminal among others (${how}) waits for input`, { timeout: STUCK_MS }, async (t) => {
    const s = await openDrive(t);

    fs.writeFileSync(path.join(s.yard.ws, 'selects.py'), SELECTS);
    const p = await s.run(cmd, { until: 'input', yield_time_ms: 30_000 });

    assert.deepEqual([p.last.reason, p.last.waiting_for_input], ['input', true], p.show());
    await p.type('on\r', { pattern: 'got on', yield_time_ms: 30_000 });
    await p.ends();
  });
}

test('a server that waits for others than its terminal does not wait for input', { timeout: STUCK_MS }, async (t) => {
  const s = await openDrive(t);
  const p = await s.run("/usr/bin/python3 -c \"import os, select; r, w = os.pipe(); print('up', flush=True); select.select([r], [], [], 300)\"",
    { until: 'input', yield_time_ms: 1500 });

  assert.equal(p.last.reason, 'timeout', p.show());
  assert.notEqual(p.last.waiting_for_input, true, p.show());
});

test('a program that is known to read is waited for no longer than that', { timeout: STUCK_MS }, async (t) => {
  const s = await openDrive(t);
  const p = await s.run("while read -r x; do echo got $x; done", { until: 'input', yield_time_ms: 30_000 });
  const times = [];

  // So often, since a look while the line is being read and answered may take the echo for all.
  for (let i = 0; i < 500; i += 1) {
    const began = process.hrtime.bigint();

    await p.type(`${i}\r`, { until: 'input', yield_time_ms: 30_000 });
    times.push(Number(process.hrtime.bigint() - began) / 1e6);
    assert.equal(p.last.reason, 'input', p.show());
    assert.match(p.last.output, new RegExp(`got ${i}\\b`), p.show());
  }
  // A silence of 30 ms is what others need.
  assert.ok(Math.min(...times) < 25, `${times}`);

  const pipe = await s.run('cat | while read -r x; do echo got $x; done', { until: 'input', yield_time_ms: 30_000 });

  for (let i = 0; i < 5; i += 1) {
    await pipe.type(`${i}\r`, { until: 'input', yield_time_ms: 30_000 });
    assert.match(pipe.last.output, new RegExp(`got ${i}`), pipe.show());
  }
});
