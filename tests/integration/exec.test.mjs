// `shellyard exec` itself: its streams and status, its arguments, what signals and readers do to it.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { SOON_MS, execCli, has, makeYard, mustRun, processesOf, program, waitFor } from './lib/client.mjs';

const limit = { timeout: 120_000 };

const exec = (yard, args, options) => execCli(args, { cwd: yard.ws, env: yard.env, ...options });

test('exec hands through streams and status, byte for byte', limit, async (t) => {
  const yard = makeYard();
  const r = await exec(yard, ['--', 'sh', '-c', "printf 'a\\000\\377b'; echo err >&2; exit 7"]);
  assert.equal(r.code, 7);
  assert.deepEqual(r.bytes, Buffer.from([0x61, 0x00, 0xff, 0x62]));
  assert.equal(r.stderr, 'err\n');
});

test('exec tells signals, timeouts and programs that can not run', limit, async (t) => {
  const yard = makeYard();
  assert.equal((await exec(yard, ['--', 'sh', '-c', 'kill -9 $$'])).code, 137);
  const slow = await exec(yard, ['-t', '300ms', '--', 'sh', '-c', 'echo kept; sleep 300']);
  assert.equal(slow.code, 124);
  assert.equal(slow.stdout, 'kept\n');
  assert.match(slow.stderr, /^shellyard: .*did not end in time.* after [1-9]\d* ms\n$|after \d+\.\d s\n$/);
  const short = await exec(yard, ['-t', '1ms', '--', 'sleep', '300']);
  assert.match(short.stderr, /killed after [1-9]\d* ms\n$|after \d+\.\d s\n$/);
  assert.doesNotMatch(short.stderr, /after 0/);
  assert.ok(slow.elapsedMs < SOON_MS);
  const missing = await exec(yard, ['--', 'no-such-program-here']);
  assert.equal(missing.code, 127);
  assert.match(missing.stderr, /^shellyard: .*no-such-program-here.*\n$/);
  fs.writeFileSync(path.join(yard.ws, 'plain'), 'text\n', { mode: 0o644 });
  assert.equal((await exec(yard, ['--', './plain'])).code, 126);
});

test('a text without "#!" is a shell script, a program of another machine is none', limit, async (t) => {
  const yard = makeYard();
  const other = fs.readFileSync('/bin/true');

  other.writeUInt16LE(0xF00, 18); // e_machine (elf(5)): none has this number
  fs.writeFileSync(path.join(yard.ws, 'other'), other, { mode: 0o755 });
  fs.writeFileSync(path.join(yard.ws, 'script'), 'echo as a script: "$1"\n', { mode: 0o755 });
  for (const tier of ['no-namespace', 'auto']) {
    const words = ['-c', `sandbox.tier=${tier}`, '--'];
    const r = await exec(yard, [...words, './other']);

    assert.equal(r.code, 126, tier);
    assert.match(r.stderr, /^shellyard: .*can't run '.*other': Exec format error\n$/);
    assert.equal((await exec(yard, [...words, './script', 'yes'])).stdout, 'as a script: yes\n');
  }
});

test('TMPDIR is a place to write to only where it is a directory', limit, async (t) => {
  const yard = makeYard();
  const file = path.join(yard.outside, 'file');
  const dir = path.join(yard.outside, 'dir');
  const write = (tmpdir) => exec(yard, ['-c', 'sandbox.tier=no-namespace', '--', 'sh', '-c', 'echo x >>"$0"', tmpdir === dir ? `${dir}/x` : file],
    { env: { ...yard.env, TMPDIR: tmpdir } });

  fs.mkdirSync(dir);
  fs.writeFileSync(file, 'kept\n');
  assert.notEqual((await write(file)).code, 0);
  assert.equal(fs.readFileSync(file, 'utf8'), 'kept\n');
  assert.equal((await write(dir)).code, 0);
});

test('TMPDIR makes / no writable root', limit, async (t) => {
  const yard = makeYard();
  const file = path.join(yard.outside, 'file');
  for (const tmpdir of ['/', '/tmp/..', '/proc/self/root']) {
    for (const tier of ['auto', 'no-namespace']) {
      const options = { env: { ...yard.env, TMPDIR: tmpdir } };
      const done = await exec(yard, ['-c', `sandbox.tier=${tier}`, '--', 'sh', '-c', 'echo x >"$0"', file], options);
      assert.equal(done.code, 2, done.stderr);
      assert.ok(!fs.existsSync(file));
      const told = spawnSync(program, ['sandbox', 'explain', '-c', `sandbox.tier=${tier}`, 'write', file], { cwd: yard.ws, ...options, encoding: 'utf8' });
      assert.match(told.stdout, /^denied: /);
    }
  }
});

test('exec refuses wrong arguments before anything runs', limit, async (t) => {
  const yard = makeYard();
  for (const [args, sentence, code] of [
    [['-t', '0', '--', 'true'], /timeout '0'/, 2],
    [['-t', '25h', '--', 'true'], /at most 24h/, 2],
    [['-t', '-5', '--', 'true'], /timeout '-5'/, 2],
    [['-s', 'workspace-wirte', '--', 'true'], /workspace-write/, 2],
    [['--jsom', '--', 'true'], /did you mean '--json'/, 2],
    [['-c', 'sandbox.mod=read-only', '--', 'true'], /sandbox\.mode/, 2],
    [['-C', path.join(yard.ws, 'gone'), '--', 'true'], /gone/, 125],
    [[], /expected/, 2],
  ]) {
    const r = await exec(yard, args);
    assert.equal(r.code, code, `${args.join(' ')}: ${r.stderr}`);
    assert.match(r.stderr, sentence);
    assert.match(r.stderr, /^shellyard: .*\n$/);
    assert.equal(r.stdout, '');
  }
});

test('exec --json is one object with all facts', limit, async (t) => {
  const yard = makeYard();
  const r = await exec(yard, ['--json', '--', 'sh', '-c', 'echo out; echo err >&2; exit 3']);
  assert.equal(r.code, 3);
  const o = JSON.parse(r.stdout);
  assert.equal(o.status, 'exited');
  assert.equal(o.exit_code, 3);
  assert.equal(o.timed_out, false);
  assert.equal(o.stdout, 'out\n');
  assert.equal(o.stderr, 'err\n');
  assert.equal(o.total_bytes, 8);
  assert.equal(o.truncated, false);
  assert.equal(o.ended_background, 0);
  assert.ok(o.duration_ms > 0);
  assert.equal(o.sandbox.mode, 'workspace-write');
  assert.equal(o.sandbox.features.fs_write, 'enforced');
  assert.equal('error' in o, false);
  const failed = JSON.parse((await exec(yard, ['--json', '--', 'no-such-program-here'])).stdout);
  assert.equal(failed.status, 'failed');
  assert.equal(failed.error.code, 'SY_E_NOTFOUND');
  // Also where the command was never reached.
  for (const [args, code, status, message] of [
    [['-C', '/nonexistent'], 'SY_E_CWD', 125, /'\/nonexistent'/],
    [['-t', '0'], 'SY_E_ARG', 2, /timeout '0'/],
    [['-s', 'bogus'], 'SY_E_CONFIG', 2, /^-s: expected one of .*, got 'bogus'$/],
    [['-c', 'sandbox.unprotected_names=[.vscod]'], 'SY_E_CONFIG', 2, /'\.vscod' is no protected name; did you mean '\.vscode'/],
  ]) {
    const refused = await exec(yard, ['--json', ...args, '--', 'true']);
    const said = JSON.parse(refused.stdout);
    assert.deepEqual([refused.code, refused.stderr, said.status, said.exit_code, said.error.code], [status, '', 'failed', status, code]);
    assert.match(said.error.message, message);
  }
  // And where the command line itself is wrong.
  for (const [args, message] of [
    [['--json', '--jsom', '--', 'true'], /unknown option '--jsom'/],
    [['--jsom', '--json', '--', 'true'], /unknown option '--jsom'/],
    [['--json'], /expected \[--\] COMMAND/],
    [['--json', '--'], /expected \[--\] COMMAND/],
    [['--json', '-C'], /needs a value/],
  ]) {
    const refused = await exec(yard, args);
    const said = JSON.parse(refused.stdout);
    assert.deepEqual([refused.code, refused.stderr, said.status, said.exit_code, said.error.code], [2, '', 'failed', 2, 'SY_E_ARG']);
    assert.match(said.error.message, message);
  }
  // A word of the command is none of ours.
  const plain = await exec(yard, ['--jsom', '--', 'echo', '--json']);
  assert.deepEqual([plain.code, plain.stdout], [2, '']);
});

test('a working directory that is gone is named, with what to do', limit, (t) => {
  const yard = makeYard();
  const at = (...words) => spawnSync('sh', ['-c', 'mkdir gone && cd gone && rmdir ../gone && exec "$@"', 'sh', ...words],
    { cwd: yard.ws, env: yard.env, encoding: 'utf8' });
  const r = at(program, 'exec', '--', 'true');
  assert.equal(r.status, 125);
  assert.ok(r.stderr.startsWith(`shellyard: the working directory, '${yard.ws}/gone' by PWD, is gone`), r.stderr);
  assert.match(r.stderr, /: cd to one that is there\n$/);
  assert.match(at('env', '-u', 'PWD', program, 'exec', '--', 'true').stderr, /the working directory is gone .*: cd to one that is there\n$/);
  const check = JSON.parse(at(program, 'doctor', '--json').stdout).checks.find((c) => c.name === 'working directory');
  assert.equal(check.fix, 'go to a directory that is there');
});

test('exec holds the policy that is asked for', limit, async (t) => {
  const yard = makeYard();
  const inside = path.join(yard.ws, 'in');
  const outside = path.join(yard.outside, 'out');
  assert.equal((await exec(yard, ['-s', 'workspace-write', '--', 'touch', inside])).code, 0);
  assert.notEqual((await exec(yard, ['-s', 'workspace-write', '--', 'touch', outside])).code, 0);
  assert.notEqual((await exec(yard, ['-s', 'read-only', '--', 'touch', `${inside}2`])).code, 0);
  assert.equal((await exec(yard, ['-s', 'danger-full-access', '--', 'touch', outside])).code, 0);
  assert.equal(fs.existsSync(`${inside}2`), false);
  const other = path.join(yard.outside, 'other dir\n');
  fs.mkdirSync(other);
  assert.equal((await exec(yard, ['-C', other, '--', 'touch', 'here'])).code, 0);
  assert.ok(fs.existsSync(path.join(other, 'here')));
});

test('exec --login gives the environment of the login shell', limit, async (t) => {
  const yard = makeYard();
  fs.writeFileSync(path.join(yard.home, '.bash_profile'), 'export FROM_PROFILE=yes\necho noise\n');
  const args = ['-c', 'shell.path=/bin/bash'];
  const with_login = await exec(yard, ['--login', ...args, '--', 'sh', '-c', 'echo $FROM_PROFILE']);
  assert.equal(with_login.stdout, 'yes\n');
  const without = await exec(yard, [...args, '--', 'sh', '-c', 'echo $FROM_PROFILE']);
  assert.equal(without.stdout, '\n');
});

for (const [name, number] of [['SIGINT', 2], ['SIGTERM', 15], ['SIGHUP', 1]]) {
  test(`exec hands ${name} to the command and ends with its status`, limit, async (t) => {
    const yard = makeYard();
    const plain = await exec(yard, ['--', 'sh', '-c', 'echo up; exec sleep 300'], {
      onStart: (child) => child.stdout.once('data', () => child.kill(name)),
    });
    assert.equal(plain.code, 128 + number);
    const script = `trap 'echo caught; exit 5' ${name.slice(3)}; echo up; while :; do sleep 0.05; done`;
    const trapping = await exec(yard, ['--', 'bash', '-c', script], {
      onStart: (child) => child.stdout.once('data', () => child.kill(name)),
    });
    assert.equal(trapping.stdout, 'up\ncaught\n');
    assert.equal(trapping.code, 5);
  });
}

test('a command that ignores the signal is killed with its tree, at once by a second one', limit, async (t) => {
  const yard = makeYard();
  const script = "trap '' INT TERM; setsid sleep 300 & echo up; while :; do sleep 0.05; done";
  const once = await exec(yard, ['--', 'bash', '-c', script], {
    onStart: (child) => child.stdout.once('data', () => child.kill('SIGTERM')),
  });
  assert.equal(once.code, 143);
  assert.ok(once.elapsedMs >= 2000);
  // The second signal must not wait out the grace of the first. A busy machine may be late once.
  let fastest = Infinity;
  for (let i = 0; i < 3 && fastest >= 1900; i++) {
    let first = 0;
    const twice = await exec(yard, ['--', 'bash', '-c', script], {
      onStart: (child) => child.stdout.once('data', () => {
        first = performance.now();
        child.kill('SIGTERM');
        // Two at once may count as one: go on until it has ended.
        const again = setInterval(() => child.kill('SIGTERM'), 50);
        child.once('exit', () => clearInterval(again));
      }),
    });
    assert.equal(twice.code, 143);
    fastest = Math.min(fastest, performance.now() - first);
  }
  assert.ok(fastest < 1900, `${fastest} ms after the first signal`);
  await waitFor(() => processesOf(yard.mark).length === 0, 'all processes are gone');
});

test('a signal that the parent ignores stays ignored', limit, async (t) => {
  const yard = makeYard();
  const r = await exec(yard, ['--', 'sh', '-c', 'echo up; until [ -e go ]; do sleep 0.02; done; echo done'], {
    wrap: ['sh', '-c', 'trap "" HUP; exec "$@"', 'sh'],
    onStart: (child) => child.stdout.once('data', () => {
      child.kill('SIGHUP');
      fs.writeFileSync(path.join(yard.ws, 'go'), '');
    }),
  });
  assert.equal(r.code, 0);
  assert.equal(r.stdout, 'up\ndone\n');
});

test('when the reader goes away the command is ended, status 141', limit, async (t) => {
  const yard = makeYard();
  const r = await exec(yard, ['--', 'yes'], {
    onStart: (child) => child.stdout.once('data', () => child.stdout.destroy()),
  });
  assert.equal(r.code, 141);
  assert.equal(r.stderr, '');
  await waitFor(() => processesOf(yard.mark).length === 0, 'all processes are gone');
});

test('a command whose output waits for its reader still reaches its own sockets', limit, async (t) => {
  mustRun(t, has('python3'), 'no python3');
  const yard = makeYard();
  const script = `import socket, sys
sys.stdout.write('x' * 400000); sys.stdout.flush()
l = socket.socket(socket.AF_UNIX); l.bind('own.sock'); l.listen(8)
for i in range(3):
    c = socket.socket(socket.AF_UNIX); c.connect('own.sock')
open('reached', 'w').close()`;
  const child = spawn(program, ['exec', '--', 'python3', '-c', script], { cwd: yard.ws, env: yard.env, stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  child.stdout.pause(); // the reader waits for what the command does after its connections
  await waitFor(() => fs.existsSync(path.join(yard.ws, 'reached')), 'the connections are made');
  let got = 0;
  child.stdout.on('data', (d) => { got += d.length; });
  child.stdout.resume();
  const code = await new Promise((resolve) => { child.on('close', resolve); });
  assert.equal(code, 0);
  assert.equal(got, 400000);
});

test('a reader that sleeps stops neither the clock nor signals, and loses nothing', limit, async (t) => {
  const yard = makeYard();
  const argv = ['exec', '-t', '1', '--', 'sh', '-c', 'yes | head -c 3000000; sleep 300'];
  const child = spawn(program, argv, { cwd: yard.ws, env: yard.env, stdio: ['ignore', 'pipe', 'pipe'] });
  child.stdout.pause(); // nobody reads while the time runs out
  await waitFor(() => processesOf(yard.mark, [child.pid]).length > 0, 'it runs');
  await waitFor(() => processesOf(yard.mark, [child.pid]).length === 0, 'the time is over');
  let bytes = 0;
  child.stdout.on('data', (chunk) => {
    bytes += chunk.length;
  });
  child.stdout.resume();
  const code = await new Promise((resolve) => child.on('close', resolve));
  assert.equal(code, 124);
  assert.ok(bytes > 0 && bytes <= 3_000_000);
});

test('much output passes through whole', limit, async (t) => {
  const yard = makeYard();
  const r = await exec(yard, ['--', 'sh', '-c', 'seq 1000000; echo end >&2']);
  assert.equal(r.code, 0);
  assert.equal(r.bytes.length, 6888896);
  assert.ok(r.stdout.endsWith('999999\n1000000\n'));
  assert.equal(r.stderr, 'end\n');
});

test('a closed standard output is an error, not a file that is overwritten', limit, (t) => {
  const yard = makeYard();
  const r = spawnSync('sh', ['-c', '"$1" exec -- echo hello >&-', 'sh', program],
    { cwd: yard.ws, env: yard.env, encoding: 'utf8' });
  assert.equal(r.status, 125);
  assert.match(r.stderr, /writing the command's output failed: Bad file descriptor/);
});
