// The small program in front and the full one behind it (docs/adr/0009): both must
// answer alike, byte for byte, and nobody must notice which of them did.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { isSanitized, makeYard, mustRun, processesOf, program, waitFor } from './lib/client.mjs';

const full = path.join(path.dirname(program), 'libexec/shellyard/shellyard');
const limit = { timeout: 120_000 };

/** Sanitized builds are one program by design; any other has to have both here. */
const areTwo = (t) => !isSanitized && mustRun(t, fs.existsSync(full), 'built without a program in front (musl-gcc)');

/** One program to its end, as much of it as somebody can see. */
function see(file, yard, args, { env = {}, cwd = yard.ws, shell = null } = {}) {
  const [command, words] = shell === null ? [file, args] : ['sh', ['-c', shell, 'sh', file, ...args]];
  const r = spawnSync(command, words, { cwd, env: { ...yard.env, ...env }, input: '', timeout: 60_000, maxBuffer: 1 << 28 });
  return { status: r.status, signal: r.signal, stdout: r.stdout.toString('latin1'), stderr: r.stderr.toString('latin1') };
}

/** What differs between any two runs: the clock. */
function same(seen) {
  return { ...seen,
    stdout: seen.stdout.replace(/"duration_ms":[\d.]+/, '"duration_ms":N'),
    stderr: seen.stderr.replace(/killed after [\d.]+ m?s/, 'killed after N s') };
}

const sh = (script) => ['exec', '--', 'sh', '-c', script];

// name, arguments, the status that both must end with, options
const table = [
  ['a command', ['exec', '--', 'echo', 'hello'], 0],
  ['streams and bytes', sh("printf 'a\\000\\377'; echo err >&2; exit 7"), 7],
  ['its environment', sh('env | grep -v -e ^TEST_MARK= | sort'), 0],
  ['status 255', sh('exit 255'), 255],
  ['death by a signal', sh('kill -KILL $$'), 137],
  ['SIGSEGV', sh('kill -SEGV $$'), 139],
  ['signals that are ignored inside', sh('grep -e ^SigIgn -e ^SigBlk /proc/self/status'), 0],
  ['limits and rights inside', sh('grep -e ^Cap -e ^NoNew -e ^Seccomp: /proc/self/status; ulimit -a'), 0],
  ['descriptors inside', sh('ls /proc/self/fd | wc -l'), 0],
  ['a program that is not there', ['exec', '--', 'no-such-program'], 127],
  ['a path that is not there', ['exec', '--', './no/such'], 127],
  ['a file without the right', ['exec', '--', './plain'], 126],
  ['a directory as program', ['exec', '--', './sub'], 126],
  ['a file that is no program', ['exec', '--', './empty.bin'], null],
  ['an empty command', ['exec', '--', ''], 2],
  ['a long path', ['exec', '-C', `/${'d'.repeat(300)}`, '--', 'true'], 125],
  ['a loop of links', ['exec', '-C', 'loop', '--', 'true'], 125],
  ['a timeout', ['exec', '-t', '2s', '--', 'sh', '-c', 'echo kept; exec sleep 300'], 124],
  ['a wrong timeout', ['exec', '-t', 'soon', '--', 'true'], 2],
  ['an unknown option', ['exec', '--jsom', '--', 'true'], 2],
  ['an option without its value', ['exec', '-s'], 2],
  ['a wrong mode', ['exec', '-s', 'read', '--', 'true'], 2],
  ['no command', ['exec'], 2],
  ['help', ['exec', '--help'], 0],
  ['help after an option', ['exec', '-s', 'read-only', '-h'], 0],
  ['words behind the command', ['exec', 'echo', '--help', '-s', '--'], 0],
  ['json', ['exec', '--json', '--', 'sh', '-c', 'printf "é\\377"; exit 3'], 3],
  ['json of a signal', ['exec', '--json', '--', 'sh', '-c', 'kill -USR1 $$'], 138],
  ['json of a failure', ['exec', '--json', '--', 'no-such-program'], 127],
  ['login', ['exec', '--login', '-c', 'shell.path=/bin/sh', '--', 'echo', 'in'], 0],
  ['read-only', ['exec', '-s', 'read-only', '--', 'sh', '-c', 'echo x > here'], 2],
  ['a write outside', ['exec', '--', 'sh', '-c', 'echo x > ../outside/there'], 2],
  ['no network', sh('exec 2>&1; cat < /dev/null > /dev/tcp/127.0.0.1/9; echo ran'), null],
  ['a directory', ['exec', '-C', 'sub', '--', 'pwd'], 0],
  ['a directory and YAML', ['exec', '-C', 'sub', '-c', 'sandbox.writable_roots=[/opt]', '--', 'pwd'], 0],
  ['a directory and wrong YAML', ['exec', '-C', 'sub', '-c', 'sandbox.writable_roots=[/var', '--', 'pwd'], 2],
  ['a directory that is not there', ['exec', '-C', 'gone', '--', 'pwd'], 125],
  ['a plain setting', ['exec', '-c', 'sandbox.mode=read-only', '--', 'sh', '-c', 'echo x > here'], 2],
  ['a setting that is unknown', ['exec', '-c', 'sandbox.mod=read-only', '--', 'true'], 2],
  ['a root that is not there', ['exec', '-c', 'sandbox.writable_roots=/nowhere/at/all', '--', 'true'], 125],
  ['a variable', ['exec', '--', 'sh', '-c', 'echo x > here'], 2, { env: { SHELLYARD_SANDBOX_MODE: 'read-only' } }],
  ['a variable in YAML', ['exec', '--', 'pwd'], 0, { env: { SHELLYARD_SANDBOX_WRITABLE_ROOTS: '@yaml' } }],
  ['a wrong variable', ['exec', '--', 'true'], 2, { env: { SHELLYARD_SANDBOX_MODES: 'x' } }],
  ['a configuration', ['exec', '--', 'sh', '-c', 'echo x > here'], 2, { env: { XDG_CONFIG_HOME: '@config' } }],
  ['a wrong configuration', ['exec', '--', 'true'], 2, { env: { XDG_CONFIG_HOME: '@wrong' } }],
  ['a configuration and a directory', ['exec', '-C', 'sub', '--', 'pwd'], 0, { env: { XDG_CONFIG_HOME: '@config' } }],
  ['no home', ['exec', '--', 'true'], 0, { env: { HOME: '' } }],
  ['a directory with a newline', ['exec', '--', 'pwd'], 0, { cwd: '@newline' }],
  ['a closed output', ['exec', '--', 'echo', 'x'], 125, { shell: 'exec "$@" >&-' }],
  ['a closed input', sh('cat'), 0, { shell: 'exec "$@" <&-' }],
  ['closed errors', sh('echo x >&2'), 125, { shell: 'exec "$@" 2>&-' }],
  ['all closed', sh('echo x'), 125, { shell: 'exec "$@" <&- >&- 2>&-' }],
  ['a full device', ['exec', '--', 'echo', 'x'], 125, { shell: 'exec "$@" >/dev/full' }],
  ['a signal that the parent ignores', sh('grep ^SigIgn /proc/self/status'), 0, { shell: 'trap "" HUP; exec "$@"' }],
  ['nothing', [], 2],
  ['the version', ['--version'], 0],
  ['the program\'s help', ['--help'], 0],
  ['an unknown verb', ['exce', '--', 'true'], 2],
  ['an option for a verb', ['-s', 'read-only', 'exec'], 2],
  ['another verb', ['sandbox', 'check', '--json'], null],
  ['another verb\'s settings', ['config', 'show'], 0],
  ['a client\'s set-up', ['setup', 'codex', '--json'], 0],
  ['completions', ['completions', 'bash'], 0],
];

test('the program in front answers as the full one does', limit, async (t) => {
  if (!areTwo(t)) {
    return;
  }
  const yard = makeYard();
  fs.mkdirSync(path.join(yard.ws, 'sub'));
  fs.symlinkSync('loop', path.join(yard.ws, 'loop'));
  fs.writeFileSync(path.join(yard.ws, 'plain'), 'text\n', { mode: 0o644 });
  fs.writeFileSync(path.join(yard.ws, 'empty.bin'), Buffer.from([0x7f, 0x45]), { mode: 0o755 });
  const at = { '@newline': path.join(yard.outside, 'new\nline') };
  fs.mkdirSync(at['@newline']);
  // A root of this test's own: what other tests make in /var/tmp meanwhile would be guarded too.
  at['@yaml'] = JSON.stringify([yard.outside]);
  for (const [name, text] of [['config', 'sandbox: {mode: read-only}\n'], ['wrong', 'sandbox: {mode: [}\n']]) {
    at[`@${name}`] = path.join(yard.home, name);
    fs.mkdirSync(path.join(at[`@${name}`], 'shellyard'), { recursive: true });
    fs.writeFileSync(path.join(at[`@${name}`], 'shellyard/config.yaml'), text);
  }
  for (const [name, args, status, { env = {}, cwd, shell } = {}] of table) {
    const options = { shell: shell ?? null, cwd: at[cwd] ?? yard.ws,
      env: Object.fromEntries(Object.entries(env).map(([key, value]) => [key, at[value] ?? value])) };
    const front = same(see(program, yard, args, options));
    const behind = same(see(full, yard, args, options));
    assert.deepEqual(front, behind, name);
    if (status !== null) {
      assert.equal(front.status, status, `${name}: ${front.stderr}`);
    }
  }
});

test('a signal from outside ends both alike', limit, async (t) => {
  if (!areTwo(t)) {
    return;
  }
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGKILL']) {
    const ends = [];
    for (const file of [program, full]) {
      const yard = makeYard();
      const child = spawn(file, sh('echo up; exec sleep 300'), { cwd: yard.ws, env: yard.env, stdio: ['ignore', 'pipe', 'pipe'] });
      let told = '';
      child.stderr.on('data', (chunk) => {
        told += chunk;
      });
      child.stdout.once('data', () => child.kill(name));
      const [code, signal] = await new Promise((resolve) => child.on('close', (...end) => resolve(end)));
      ends.push({ code, signal, told });
      await waitFor(() => processesOf(yard.mark).length === 0, 'all processes are gone');
    }
    assert.deepEqual(ends[0], ends[1], name);
  }
});

/** A copy of both, as `meson install` lays them out or as a build directory does. */
function layOut(yard, { front, behind }) {
  for (const [from, to] of [[program, front], [full, behind]]) {
    if (to !== null) {
      fs.mkdirSync(path.dirname(path.join(yard.dir, to)), { recursive: true });
      fs.copyFileSync(from, path.join(yard.dir, to));
    }
  }
  return path.join(yard.dir, front);
}

for (const front of ['bin/shellyard', 'shellyard']) {
  test(`from ${front} the full program is found, and prints the path of the front`, limit, (t) => {
    if (!areTwo(t)) {
      return;
    }
    const yard = makeYard();
    const file = layOut(yard, { front, behind: 'libexec/shellyard/shellyard' });
    assert.equal(see(file, yard, ['--version']).status, 0);
    for (const one of [file, path.join(yard.dir, 'libexec/shellyard/shellyard')]) {
      const setup = see(one, yard, ['setup', 'claude-code', '--json']);
      assert.equal(setup.status, 0, setup.stderr);
      assert.ok(setup.stdout.includes(JSON.stringify(file)) || setup.stdout.includes(file), setup.stdout);
      assert.ok(!setup.stdout.includes('libexec'), setup.stdout);
    }
    // By a link from elsewhere, and as another name.
    const link = path.join(yard.home, 'sy');
    fs.symlinkSync(file, link);
    assert.equal(see(link, yard, ['--version']).status, 0);
  });
}

test('without /proc the full program is found by the name of the call', limit, (t) => {
  if (!areTwo(t)) {
    return;
  }
  const bare = ['-r', '-m', 'sh', '-c', 'mount -t tmpfs none /proc && exec "$@"', 'sh'];
  const isPossible = spawnSync('unshare', [...bare, 'test', '!', '-e', '/proc/self/exe']).status === 0;
  if (!mustRun(t, isPossible, 'a mount namespace of our own can not be made here')) {
    return;
  }
  const yard = makeYard();
  const file = layOut(yard, { front: 'bin/shellyard', behind: 'libexec/shellyard/shellyard' });
  const link = path.join(yard.home, 'sy');
  fs.symlinkSync(file, link);
  for (const [name, cwd] of [[file, yard.ws], ['./shellyard', path.dirname(file)], ['home/sy', yard.dir], [link, '/']]) {
    const r = spawnSync('unshare', [...bare, name, 'setup', 'codex', '--json'], { cwd, env: yard.env, encoding: 'utf8' });
    assert.equal(r.status, 0, `${name}: ${r.stderr}`);
    assert.ok(JSON.parse(r.stdout).snippet.includes(JSON.stringify(file)), r.stdout);
  }
  fs.rmSync(path.join(yard.dir, 'libexec'), { recursive: true });
  const r = spawnSync('unshare', [...bare, file, '--version'], { cwd: yard.ws, env: yard.env, encoding: 'utf8' });
  assert.equal(r.status, 125);
  assert.match(r.stderr, /^shellyard: the rest of the program is missing: [^\n]*beside the name[^\n]*no \/proc[^\n]*\n$/);
  assert.ok(r.stderr.includes(`${path.dirname(file)}/libexec/shellyard/shellyard`), r.stderr);
});

test('without the full program exec works, and the rest says where it was looked for', limit, (t) => {
  if (!areTwo(t)) {
    return;
  }
  const yard = makeYard();
  const file = layOut(yard, { front: 'alone/shellyard', behind: null });
  const dir = path.dirname(file);
  assert.equal(see(file, yard, ['exec', '--', 'true']).status, 0);
  for (const args of [['--version'], ['doctor'], ['exec', '--help'], ['exec', '-c', 'log.level=[x]', '--', 'true'], []]) {
    const r = see(file, yard, args);
    assert.equal(r.status, 125, r.stderr);
    assert.equal(r.stdout, '');
    assert.match(r.stderr, /^shellyard: the rest of the program is missing: [^\n]*\n$/);
    for (const place of [`${dir}/libexec/shellyard/shellyard`, `${dir}/../libexec/shellyard/shellyard`]) {
      assert.ok(r.stderr.includes(place), r.stderr);
    }
  }
  fs.mkdirSync(path.join(dir, 'libexec/shellyard'), { recursive: true });
  fs.writeFileSync(path.join(dir, 'libexec/shellyard/shellyard'), 'text\n', { mode: 0o755 });
  const broken = see(file, yard, ['--version']);
  assert.equal(broken.status, 125);
  assert.match(broken.stderr, /^shellyard: can't execute [^\n]*: Exec format error\n$/);
});

test('exec leaves no process behind when it hands over', limit, async (t) => {
  if (!areTwo(t)) {
    return;
  }
  const yard = makeYard();
  // The process that was made ready is gone before the other program begins.
  const r = see(program, yard, ['exec', '-c', `sandbox.writable_roots=${JSON.stringify([yard.outside])}`, '--', 'sh', '-c',
    'for p in /proc/[0-9]*; do tr "\\0" "\\n" 2>/dev/null < $p/environ | grep -qx "TEST_MARK=$TEST_MARK" && '
      + 'grep -q "^State:.Z" $p/status && echo zombie; done; echo done']);
  assert.equal(r.stdout, 'done\n', r.stderr);
});

test('what `make install` puts in place is found there, and works', limit, (t) => {
  // The program may be a copy that other users reach.
  const build = process.env.TESTS_BUILD ?? path.dirname(program);
  if (!mustRun(t, fs.existsSync(path.join(build, 'build.ninja')), `${build} is no build directory`)) {
    return;
  }
  const yard = makeYard();
  const root = path.join(yard.dir, 'root');
  const installed = spawnSync('meson', ['install', '-C', build, '--no-rebuild', '--quiet', '--destdir', root], { encoding: 'utf8' });
  assert.equal(installed.status, 0, installed.stdout + installed.stderr);
  const files = fs.readdirSync(root, { recursive: true, withFileTypes: true }).filter((f) => f.isFile()).map((f) => path.join(f.parentPath ?? f.path, f.name));
  const find = (end) => {
    const found = files.filter((f) => f.endsWith(`/${end}`));
    assert.equal(found.length, 1, `${end} in ${files.join(' ')}`);
    return found[0];
  };
  const there = find('bin/shellyard');
  const ran = see(there, yard, ['exec', '--', 'echo', 'there']);
  assert.deepEqual([ran.status, ran.stdout], [0, 'there\n'], ran.stderr);
  assert.equal(see(there, yard, ['sandbox', 'check']).stdout, see(program, yard, ['sandbox', 'check']).stdout);
  for (const [shell, end] of [['bash', 'bash-completion/completions/shellyard.bash'], ['zsh', 'zsh/site-functions/_shellyard'], ['fish', 'fish/vendor_completions.d/shellyard.fish']]) {
    assert.equal(fs.readFileSync(find(end), 'utf8'), see(program, yard, ['completions', shell]).stdout);
  }
  // The pages, with all that they link to.
  for (const page of files.filter((f) => f.endsWith('.md'))) {
    for (const [, to] of fs.readFileSync(page, 'utf8').matchAll(/\]\(([^)#\s]+)/g)) {
      assert.ok(to.includes('://') || fs.existsSync(path.join(path.dirname(page), to)), `${page} links to ${to}`);
    }
  }
  for (const end of ['man1/shellyard.1', 'man5/shellyard-config.5', 'include/shellyard/shellyard.h', 'pkgconfig/shellyard.pc', 'doc/shellyard/LICENSE']) {
    find(end);
  }
});

test('an installation by root tells the dynamic linker of the library, one below DESTDIR does not', limit, (t) => {
  const script = path.join(path.dirname(fileURLToPath(import.meta.url)), '../../tools/ldconfig.sh');
  const yard = makeYard();
  const bin = path.join(yard.dir, 'bin');
  const tell = (uid, env = {}) => {
    fs.mkdirSync(bin, { recursive: true });
    for (const [name, text] of [['ldconfig', 'echo ran'], ['id', `echo ${uid}`]]) {
      fs.writeFileSync(path.join(bin, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
    }
    const r = spawnSync(script, { env: { PATH: `${bin}:/usr/bin:/bin`, ...env }, encoding: 'utf8' });
    assert.deepEqual([r.status, r.stderr], [0, '']);
    return r.stdout;
  };
  assert.equal(tell(0), 'ran\n');
  assert.equal(tell(0, { DESTDIR: yard.dir }), '');
  assert.equal(tell(1000), '');
});
