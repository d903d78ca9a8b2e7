// What the sandbox refused, in each tier: the right object, the right layer, the line that lifts
// it, and no cost where nobody asked for more (A32, P24, P25, C05).
import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { execFile, spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { eachFront, has, isSanitized, listen, makeYard, mustRun, program } from './lib/client.mjs';

const TIERS = ['full', 'no-namespace'];
const denials = (r) => r.raw.denials ?? [];
const told = (r) => denials(r).map((d) => [d.operation, d.object, d.layer, d.confidence]);

/** Is that tier there at all on this machine? */
function hasTier(t, yard, tier) {
  const r = spawnSync(program, ['sandbox', 'check', '--json'], { cwd: yard.ws, env: yard.env, encoding: 'utf8' });
  return mustRun(t, tier !== 'full' || JSON.parse(r.stdout).full_tier, 'no sandbox of the full tier here');
}

/** What `script` calls the kernel for: {programs: {file: [calls of each process that became it]}, asked}. */
function trace(yard, script, ...settings) {
  const log = path.join(yard.dir, 'trace');
  // A sanitizer's leak checker wants to be the tracer.
  const env = isSanitized ? { ...yard.env, ASAN_OPTIONS: `${process.env.ASAN_OPTIONS ?? ''}:detect_leaks=0` } : yard.env;
  const r = spawnSync('strace', ['-f', '-qq', '-o', log, program, 'exec', ...settings, '--', 'sh', '-c', script],
    { cwd: yard.ws, env, encoding: 'utf8', timeout: 100_000 });
  assert.equal(r.status, 0, r.stderr);
  const counts = new Map();
  const programs = {};
  let asked = 0;
  for (const line of fs.readFileSync(log, 'latin1').split('\n')) {
    const [, pid, what] = line.match(/^(\d+) +(.*)$/) ?? [];
    if (pid === undefined) {
      continue;
    }
    asked += /SECCOMP_IOCTL_NOTIF_RECV|\bptrace\(/.test(what) ? 1 : 0;
    const file = what.match(/^execve\("([^"]*)"/)?.[1];
    if (['/bin/true', '/usr/bin/git'].includes(file)) {
      counts.set(pid, { calls: 0 });
      (programs[file] ??= []).push(counts.get(pid));
    } else if (counts.has(pid) && /^\w+\(/.test(what)) {
      counts.get(pid).calls += 1;
    }
  }
  return { asked, programs: Object.fromEntries(Object.entries(programs).map(([k, v]) => [k, v.map((p) => p.calls)])) };
}

const FREE = ['-c', 'sandbox.mode=danger-full-access'];

for (const tier of TIERS) {
  const settings = { 'sandbox.tier': tier };
  const wall = tier === 'full' ? 'mount' : 'landlock';

  eachFront(`A32, P24, P25 (${tier}): words are no denial, a refusal is one, a hidden one too`, async (t, { yard, open }) => {
    if (!hasTier(t, yard, tier)) {
      return;
    }
    const target = path.join(yard.outside, 'f');
    const front = await open({ settings });
    const words = await front.run('echo "permission denied / sandbox / seccomp: Operation not permitted" >&2; exit 1');
    assert.equal(words.exitCode, 1);
    assert.deepEqual(denials(words), []);
    assert.equal(words.note, '');
    assert.equal(words.raw.escalation, undefined);
    fs.writeFileSync(path.join(yard.ws, 'x.sh'), '#!/bin/sh\n', { mode: 0o644 });
    for (const [script, code] of [['./x.sh', 126], ['nosuchcmd_x', 127], ['find . -name x.sh; exit 1', 1]]) {
      const plain = await front.run(script);
      assert.equal(plain.exitCode, code, script);
      assert.deepEqual(denials(plain), [], script);
    }
    const refused = await front.run(`touch ${target}`);
    assert.equal(refused.sandbox.tier, tier);
    assert.deepEqual(told(refused), [['write', target, wall, 'inferred']]);
    assert.equal(denials(refused)[0].fix, `sandbox.writable_roots: ["${yard.outside}"]`);

    const seen = await open({ settings: { ...settings, 'sandbox.report': 'full' } });
    const hidden = await seen.run(`touch ${target} 2>/dev/null || true`);
    assert.equal(hidden.exitCode, 0);
    assert.deepEqual(told(hidden), [['write', target, wall, 'exact']]);

    const key = path.join(yard.home, '.ssh/id');
    fs.mkdirSync(path.dirname(key), { recursive: true });
    fs.writeFileSync(key, 'the secret');
    fs.symlinkSync(key, path.join(yard.ws, 'link'));
    const read = await seen.run(`cat ${key} 2>/dev/null || true; cat /proc/self/cwd/link 2>/dev/null || true; cat x.sh`);
    assert.equal(read.exitCode, 0);
    assert.ok(!read.output.includes('secret'));
    assert.deepEqual(told(read), [['read', key, wall, 'exact']]);
    assert.equal(denials(read)[0].fix, `sandbox.allow_read: ["${path.dirname(key)}"]`);

    const granted = await open({ settings: { ...settings, 'sandbox.writable_roots': yard.outside } });
    const done = await granted.run(`touch ${target}`);
    assert.equal(done.exitCode, 0, 'the line allows it');
    assert.deepEqual(denials(done), []);
  });

  eachFront(`C05 (${tier}): modes are not ours, and no grant is suggested`, async (t, { yard, open }) => {
    if (!hasTier(t, yard, tier)) {
      return;
    }
    const front = await open({ settings });
    const sealed = path.join(yard.ws, 'sealed');
    fs.writeFileSync(sealed, 'x');
    fs.chmodSync(sealed, 0);
    const r = await front.run('echo y >> sealed');
    assert.notEqual(r.exitCode, 0);
    assert.deepEqual(denials(r), []);
    assert.ok(r.note.startsWith(`not the sandbox: ${sealed} `), r.note);
  });

  test(`learn (${tier}): standard input goes through, refusals come together, nothing runs outside`, (t) => {
    const yard = makeYard();
    if (!hasTier(t, yard, tier)) {
      return;
    }
    const script = `read x; echo got $x; touch ${yard.outside}/a ${yard.outside}/b; touch in; exit 5`;
    const learn = (...settings) => spawnSync(program, ['sandbox', 'learn', '--json', '-c', `sandbox.tier=${tier}`, ...settings,
      '--', 'sh', '-c', script], { cwd: yard.ws, env: { ...yard.env, HOME: '/nonexistent' }, input: 'word\n', encoding: 'utf8', timeout: 60_000 });
    const r = learn();
    assert.equal(r.status, 5, r.stderr);
    assert.match(r.stderr, /got word/);
    const learned = JSON.parse(r.stdout);
    assert.deepEqual(learned.denials.map((d) => [d.layer, d.confidence]), [[wall, 'exact'], [wall, 'exact']]);
    assert.equal(learned.needed, `sandbox:\n  writable_roots: ["${yard.outside}"]\n`);
    assert.deepEqual(fs.readdirSync(yard.outside), []);
    assert.deepEqual(fs.readdirSync(yard.ws), ['in']);
    const again = learn('-c', `sandbox.writable_roots=${yard.outside}`);
    assert.deepEqual(JSON.parse(again.stdout).denials ?? [], [], 'the line is enough');
    assert.deepEqual(fs.readdirSync(yard.outside).sort(), ['a', 'b']);
  });

  test(`by default nothing is asked and no system call is added (${tier})`, (t) => {
    const yard = makeYard();
    if (!mustRun(t, has('strace') && has('git'), 'no strace or git') || !hasTier(t, yard, tier)) {
      return;
    }
    for (let i = 0; i < 400; i++) {
      fs.mkdirSync(path.join(yard.ws, `d${i % 40}`), { recursive: true });
      fs.writeFileSync(path.join(yard.ws, `d${i % 40}`, `f${i}`), String(i));
    }
    for (const line of [['init', '-q'], ['add', '.'], ['-c', 'user.name=n', '-c', 'user.email=e@x.invalid', 'commit', '-q', '-m', 'm']]) {
      assert.equal(spawnSync('git', line, { cwd: yard.ws, env: yard.env }).status, 0, line[0]);
    }
    const script = 'git status >/dev/null; for i in 1 2 3 4 5; do /bin/true; done; touch f';
    const free = trace(yard, script, ...FREE);
    const held = trace(yard, script, '-c', `sandbox.tier=${tier}`);
    const watched = trace(yard, script, '-c', `sandbox.tier=${tier}`, '-c', 'sandbox.report=full');
    assert.equal(held.asked, 0);
    assert.ok(watched.asked > 0, 'the control: report: full asks');
    assert.equal(held.programs['/bin/true'].length, 5);
    assert.deepEqual(held.programs['/bin/true'], free.programs['/bin/true']);
    assert.equal(held.programs['/usr/bin/git'].length, 1);
    const [[inside], [outside]] = [held, free].map((r) => r.programs['/usr/bin/git']);
    assert.ok(inside <= 1.1 * outside, `git status: ${inside} calls, ${outside} without`);
  });

  test(`git status looks into what holds missing names, and into nothing else of ours (${tier})`, (t) => {
    const yard = makeYard();
    if (!mustRun(t, has('strace') && has('git'), 'no strace or git') || !hasTier(t, yard, tier)) {
      return;
    }
    const more = () => {
      const [[inside], [outside]] = [['-c', `sandbox.tier=${tier}`], FREE].map((settings) => trace(yard, 'git status >/dev/null', ...settings).programs['/usr/bin/git']);
      return inside - outside;
    };
    const git = (...line) => assert.equal(spawnSync('git', ['-c', 'user.name=n', '-c', 'user.email=e@x.invalid', ...line], { cwd: yard.ws, env: yard.env }).status, 0, line[0]);
    git('init', '-q');
    const ofEmpty = more();
    for (const name of ['one', 'two', 'd/three']) {
      fs.mkdirSync(path.dirname(path.join(yard.ws, name)), { recursive: true });
      fs.writeFileSync(path.join(yard.ws, name), name);
      fs.utimesSync(path.join(yard.ws, name), 1e9, 1e9); // git reads files that are as young as its index
    }
    git('add', '.');
    git('commit', '-q', '-m', 'm');
    git('status'); // and writes the index, once
    const ofSmall = more();
    // Seven calls for each of eight names, and a look for .gitignore.
    const most = tier === 'full' ? 8 * 7 + 1 : 0;
    assert.ok(ofEmpty <= most && ofSmall <= most, `${ofEmpty} calls more in an empty repository, ${ofSmall} in a small one`);
    if (tier === 'full') {
      assert.ok(ofEmpty > 0, 'the control: they are there');
    }
    const seen = spawnSync(program, ['exec', '-c', `sandbox.tier=${tier}`, '--', 'git', 'status', '--porcelain', '--ignored'], { cwd: yard.ws, env: yard.env, encoding: 'utf8' });
    assert.deepEqual([seen.status, seen.stdout, seen.stderr], [0, '', ''], 'and says nothing of them');
    assert.deepEqual(fs.readdirSync(yard.ws).sort(), ['.git', 'd', 'one', 'two']);
  });
}

eachFront('a protected name that mounts hold is told as such, with its line', async (t, { yard, open }) => {
  if (!mustRun(t, has('git'), 'no git') || !hasTier(t, yard, 'full')) {
    return;
  }
  const settings = { 'sandbox.tier': 'full' };
  const front = await open({ settings });
  const repository = path.join(yard.ws, '.git');
  const init = await front.run('git init', { timeoutMs: 60_000 });
  assert.notEqual(init.exitCode, 0);
  assert.equal(denials(init).length, 1, init.output);
  assert.ok(denials(init)[0].object.startsWith(`${repository}/`), denials(init)[0].object);
  assert.deepEqual([denials(init)[0].layer, denials(init)[0].fix], ['guard', 'sandbox.unprotected_names: [.git]']);
  await front.close(); // what it keeps goes with it

  const lifted = await open({ settings: { ...settings, 'sandbox.unprotected_names': ['.git'] } });
  assert.equal((await lifted.run('git init', { timeoutMs: 60_000 })).exitCode, 0, 'the line allows it');

  const again = await open({ settings });
  for (const [script, object, name] of [
    ['git config a.b c', '.git/config', '.git/config'],
    ['echo x >> .git/config', '.git/config', '.git/config'],
    ['ln .git/config c', '.git/config', '.git/config'],
    ['echo x > .git/hooks/h', '.git/hooks/h', '.git/hooks'],
    ['mkdir .vscode', '.vscode', '.vscode'],
  ]) {
    const r = await again.run(script);
    assert.notEqual(r.exitCode, 0, script);
    assert.deepEqual(denials(r).map((d) => [d.object, d.layer, d.confidence, d.fix]),
      [[path.join(yard.ws, object), 'guard', 'inferred', `sandbox.unprotected_names: [${name}]`]], script);
  }
  // Named, git asks no name server who it is. It goes on after it, and says that it did it. Other words are none where nothing failed.
  for (const [script, objects] of [
    ['export GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e@example.com GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e@example.com; git commit -q --allow-empty -m m && git branch -t b HEAD 2>&1; git branch -q -t c "$(git branch --show-current)"', ['.git/config']],
    ['echo "error: could not write config file .git/config: Permission denied" >&2', []],
    ['echo "x: f: Device or resource busy" >&2', []],
  ]) {
    const r = await again.run(script, { timeoutMs: 60_000 });
    assert.equal(r.exitCode, 0, r.output);
    assert.deepEqual(denials(r).map((d) => [d.object, d.layer]), objects.map((name) => [path.join(yard.ws, name), 'guard']), script);
  }
  const free = await open({ settings: { ...settings, 'sandbox.unprotected_names': ['.git/config'] } });
  assert.equal((await free.run('git branch -q -u c b', { timeoutMs: 60_000 })).exitCode, 0);
  assert.match(fs.readFileSync(path.join(repository, 'config'), 'utf8'), /\[branch "b"\]/, 'allowed, it is written');

  // A whole git directory: one line names all of it, 'explain' the same, and it is enough.
  const [moved] = denials(await again.run('mv .git g'));
  const why = spawnSync(program, ['sandbox', 'explain', 'rename', '.git', '-c', 'sandbox.tier=full'], { cwd: yard.ws, env: yard.env, encoding: 'utf8' });
  assert.ok(why.stdout.includes(`fix:  ${moved.fix}\n`), why.stdout + why.stderr);
  const whole = await open({ settings: { ...settings, 'sandbox.unprotected_names': moved.fix.match(/\[(.*)\]/)[1].split(', ') } });
  assert.equal((await whole.run('mv .git g && mv g .git')).output, '');
});

eachFront('a name without a directory is told where the command was', async (t, { yard, open }) => {
  if (!mustRun(t, has('git'), 'no git') || !hasTier(t, yard, 'full')) {
    return;
  }
  const inner = path.join(yard.ws, 'a b/inner');
  spawnSync('git', ['init', '-q', inner], { env: yard.env });
  fs.writeFileSync(path.join(yard.outside, 'out.txt'), '');
  const front = await open({ settings: { 'sandbox.tier': 'full' } });
  const config = path.join(inner, '.git/config');
  for (const [script, object, layer] of [
    ['cd "a b/inner" && git remote add o https://example.invalid/r', config, 'guard'],
    ['git -C "a b/inner" config a.b c', config, 'guard'],
    ['(cd "a b" && cd inner/.git/hooks && echo x > pre-push)', path.join(inner, '.git/hooks/pre-push'), 'guard'],
    [`cd ${yard.outside} && echo x > out.txt`, path.join(yard.outside, 'out.txt'), 'mount'],
    // It went there, and what it could not do is in the workspace.
    [`cd ${yard.outside}; cd "$OLDPWD" && mkdir .vscode`, path.join(yard.ws, '.vscode'), 'guard'],
  ]) {
    const r = await front.run(script);
    assert.notEqual(r.exitCode, 0, script);
    assert.deepEqual(denials(r).map((d) => [d.object, d.layer, d.confidence]), [[object, layer, 'inferred']], script);
  }
  const act = await front.run('kill -9 1');
  assert.notEqual(act.exitCode, 0);
  assert.deepEqual([denials(act), act.raw.notes ?? []], [[], []], 'a process is no file, nor the shell that speaks of it');
});

eachFront('P25 a secret that mounts hide and a command opens is told, whatever it says', async (t, { yard, open }) => {
  if (!hasTier(t, yard, 'full')) {
    return;
  }
  const secret = path.join(yard.home, '.netrc');
  const keys = path.join(yard.home, '.ssh');
  fs.writeFileSync(secret, 'SECRET');
  fs.mkdirSync(keys);
  fs.writeFileSync(path.join(keys, 'id'), 'SECRET');
  fs.mkdirSync(path.join(keys, 'more'));
  fs.writeFileSync(path.join(keys, 'more/deep'), 'SECRET');
  const stored = path.join(yard.home, '.password-store');
  fs.mkdirSync(stored);
  fs.writeFileSync(path.join(stored, 'bank.gpg'), 'SECRET');
  const front = await open({ settings: { 'sandbox.tier': 'full' } });
  const quiet = await front.run('ls -la "$HOME"; test -e "$HOME/.netrc"');
  assert.deepEqual(denials(quiet), [], 'a look at its name is no open');
  const r = await front.run(`cat ${secret} 2>/dev/null || true`);
  assert.equal(r.exitCode, 0);
  assert.doesNotMatch(r.output, /SECRET/);
  assert.deepEqual(told(r), [['read', secret, 'mount', 'exact']]);
  assert.match(denials(r)[0].fix, /^sandbox\.allow_read: /);
  assert.deepEqual(told(await front.run(`ls ${keys}`)), [['read', keys, 'mount', 'exact']]);
  const below = await front.run(`cat ${keys}/id 2>/dev/null || true`);
  assert.equal(below.exitCode, 0);
  assert.doesNotMatch(below.output, /SECRET/);
  assert.deepEqual(told(below), [['read', path.join(keys, 'id'), 'mount', 'exact']]);
  assert.equal(denials(below)[0].fix, `sandbox.allow_read: ["${keys}"]`, 'what can be let out is the whole');
  assert.deepEqual(denials(await front.run(`cat ${keys}/none; test -e ${keys}/id`)), [], 'what is not there is not refused');
  assert.deepEqual(denials(await front.run('true')), [], 'each call has its own');

  // Names are shown where they say nothing; elsewhere only what complains can be inferred.
  assert.equal((await front.run(`cd ${keys}; ls; ls more; ls ${stored}; cat id`)).output, 'id\nmore\n');
  const deeper = await front.run(`cat ${keys}/more/deep`);
  assert.deepEqual(told(deeper), [['read', path.join(keys, 'more/deep'), 'mount', 'inferred']]);
  const named = await front.run(`cat ${stored}/bank.gpg`);
  assert.deepEqual(told(named), [['read', path.join(stored, 'bank.gpg'), 'mount', 'inferred']]);

  const granted = await open({ settings: { 'sandbox.tier': 'full', 'sandbox.allow_read': secret } });
  const read = await granted.run(`cat ${secret}`);
  assert.match(read.output, /SECRET/, 'the line allows it');
  assert.deepEqual(denials(read), []);
});

test('learn sees what protected names refuse, and puts it with the rest', (t) => {
  const yard = makeYard();
  if (!mustRun(t, has('git'), 'no git') || !hasTier(t, yard, 'full')) {
    return;
  }
  assert.equal(spawnSync('git', ['init', '-q'], { cwd: yard.ws, env: yard.env }).status, 0);
  const script = `git config a.b c; echo x > .git/hooks/h; mkdir .vscode; echo x > .envrc; touch ${yard.outside}/a in; exit 0`;
  const learn = (...settings) => JSON.parse(spawnSync(program, ['sandbox', 'learn', '--json', '-c', 'sandbox.tier=full', ...settings,
    '--', 'sh', '-c', script], { cwd: yard.ws, env: yard.env, encoding: 'utf8', timeout: 60_000 }).stdout);
  const learned = learn();
  assert.deepEqual(learned.denials.filter((d) => d.layer === 'guard').map((d) => [path.relative(yard.ws, d.object), d.confidence]).sort(),
    [['.envrc', 'exact'], ['.git/config', 'exact'], ['.git/hooks/h', 'exact'], ['.vscode', 'exact']]);
  assert.equal(learned.needed, `sandbox:\n  writable_roots: ["${yard.outside}"]\n`
    + '  unprotected_names: [".git/config",".git/hooks",".vscode",".envrc"]\n');
  assert.deepEqual(learned.never, []);
  const again = learn('-c', `sandbox.writable_roots=${yard.outside}`, '-c', 'sandbox.unprotected_names=[.git/config, .git/hooks, .vscode, .envrc]');
  assert.deepEqual(again.denials ?? [], [], 'the lines are enough');
  assert.deepEqual([fs.existsSync(path.join(yard.ws, '.git/hooks/h')), fs.existsSync(path.join(yard.outside, 'a'))], [true, true]);
});

test('what learn prints is enough as it stands: secrets, hosts, odd names, roots to be made first', async (t) => {
  const yard = makeYard();
  if (!hasTier(t, yard, 'full')) {
    return;
  }
  const server = net.createServer((socket) => socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')).on('error', () => {}));
  const port = await listen(t, server);
  const odd = path.join(yard.outside, `we"ird\\dir: [x] # ${'long'.repeat(50)}`);
  const secret = path.join(yard.home, '.ssh/id');
  const fresh = path.join(yard.home, 'fresh');
  fs.mkdirSync(odd);
  fs.mkdirSync(path.dirname(secret));
  fs.writeFileSync(secret, 'SECRET\n');
  const asks = `printf 'GET http://127.0.0.1:${port}/ HTTP/1.1\\r\\nHost: 127.0.0.1:${port}\\r\\n\\r\\n'`;
  const script = `cat "$HOME/.ssh/id"; echo x > "$HOME/fresh"; echo x > "$1/f"; echo x > "$1/../"$'\\x1b[31m'
    exec 3<>/dev/tcp/127.0.0.1/3128; ${asks} >&3; head -n 1 <&3`;
  // Not waited for in place: the server is ours.
  const learn = (...settings) => new Promise((resolve) => {
    execFile(program, ['sandbox', 'learn', ...settings, '--', 'bash', '-c', script, 'bash', odd],
      { cwd: yard.ws, env: yard.env, timeout: 60_000 }, (error, stdout, stderr) => resolve({ status: error?.code ?? 0, stdout, stderr }));
  });
  const learned = JSON.parse((await learn('--json', '-c', 'network.allow=192.0.2.1')).stdout);
  assert.deepEqual(learned.never, [], 'each of them has a line');
  assert.deepEqual(learned.make_first, [fresh]);
  assert.match(learned.needed, /allow_read: \[".*\/\.ssh"\]\nnetwork:\n {2}allow: \["192\.0\.2\.1","127\.0\.0\.1:\d+"\]\n$/);

  const said = (await learn('-c', 'network.allow=192.0.2.1')).stderr;
  assert.ok(said.includes(`# make it first, since a root has to exist: ${fresh}\n`), said);
  assert.ok(said.includes('\\x1b[31m (mount, exact)\n'), said);

  learned.make_first.forEach((file) => fs.writeFileSync(file, ''));
  fs.mkdirSync(path.join(yard.home, '.config/shellyard'), { recursive: true });
  fs.writeFileSync(path.join(yard.home, '.config/shellyard/config.yaml'), learned.needed, { mode: 0o600 });
  const again = await learn('--json');
  assert.equal(again.status, 0, again.stderr);
  assert.deepEqual(JSON.parse(again.stdout).denials ?? [], [], 'the lines are enough');
  assert.match(again.stderr, /SECRET\n/);
  assert.match(again.stderr, /200 OK/);
  assert.deepEqual([fs.readFileSync(fresh, 'utf8'), fs.existsSync(path.join(odd, 'f'))], ['x\n', true]);
});

test('learn out of read-only names no root that workspace-write has by itself', (t) => {
  const yard = makeYard();
  const r = spawnSync(program, ['sandbox', 'learn', '--json', '-s', 'read-only', '--', 'sh', '-c',
    `echo x > in; echo x > /tmp/${yard.mark}; echo x > /dev/shm/${yard.mark}; echo x > ${yard.outside}/out; exit 0`],
  { cwd: yard.ws, env: yard.env, encoding: 'utf8', timeout: 60_000 });
  const learned = JSON.parse(r.stdout);
  assert.equal(learned.denials.length, 4, r.stdout);
  assert.equal(learned.needed, `sandbox:\n  mode: workspace-write\n  writable_roots: ["${yard.outside}"]\n`);
});

test('learn tells the limit that a command met, and does not call the policy enough', (t) => {
  const yard = makeYard();
  const learn = (...flags) => spawnSync(program, ['sandbox', 'learn', ...flags, '-c', 'limits.file_bytes=4K', '--', 'sh', '-c', 'head -c 10000 /dev/zero > f'],
    { cwd: yard.ws, env: yard.env, encoding: 'utf8', timeout: 60_000 });
  assert.match(learn().stderr, /^limit: .*limits\.file_bytes.*\nnothing else was refused\n/m);
  assert.equal(JSON.parse(learn('--json').stdout).limit.key, 'limits.file_bytes');
});
