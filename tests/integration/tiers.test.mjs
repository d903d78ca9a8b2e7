// Which walls stand, in which setting, and that every answer says so. `mask` runs a
// program where the kernel seems to lack something.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { spawnSync } from 'node:child_process';
import test from 'node:test';
import {
  call, eachFront, execCli, isSanitized, makeYard, mustRun, openFront, processesOf, program, readProc, startMcp, textOf, waitFor,
} from './lib/client.mjs';

const build = path.dirname(program);
const mask = path.join(build, 'tests/adversary/mask');
const isRoot = process.getuid() === 0;
const FULL = { 'sandbox.tier': 'full' };

function check(yard, wrap = [], ...words) {
  const [first, ...rest] = [...wrap, program, 'sandbox', 'check', '--json', ...words];
  const r = spawnSync(first, rest, { cwd: yard.ws, env: yard.env, encoding: 'utf8' });
  return JSON.parse(r.stdout);
}

/** Is the full tier there at all on this machine? */
function hasFull(t, yard) {
  return mustRun(t, check(yard).full_tier, 'no sandbox of the full tier here');
}

test('sandbox check tells the tier and, where it is not the full one, why', (t) => {
  const yard = makeYard();
  if (!hasFull(t, yard)) {
    return;
  }
  const here = check(yard);
  assert.equal(here.tier, 'full');
  assert.equal(here.full_tier_reason, undefined);
  for (const name of ['fs_metadata', 'pid_namespace', 'private_tmp', 'signal_scope', 'tree_kill', 'network']) {
    assert.equal(here.features[name].state, 'enforced', name);
  }

  const none = check(yard, [mask, 'namespaces']);
  assert.equal(none.tier, 'no-namespace');
  assert.match(none.full_tier_reason, /making namespaces failed: Operation not permitted/);
  assert.equal(none.features.pid_namespace.state, 'absent');
  assert.equal(none.features.fs_metadata.state, 'absent');

  // Where they are used up the kernel says "No space left on device".
  const spent = check(yard, ['unshare', '-Ur', 'sh', '-c', 'echo 0 >/proc/sys/user/max_mnt_namespaces; exec "$0" "$@"']);
  assert.match(spent.full_tier_reason, /user\.max_user_namespaces and user\.max_mnt_namespaces allow no more/);
  const noUsers = check(yard, [mask, 'userns']);
  assert.equal(noUsers.tier, isRoot ? 'full' : 'no-namespace', 'real root needs no user namespace');

  const noLandlock = check(yard, [mask, 'landlock']);
  assert.equal(noLandlock.can_hold_workspace_write, false);
  assert.equal(noLandlock.tier, 'none');
  assert.match(noLandlock.error, /Landlock is not available/);
  assert.equal(noLandlock.full_tier_reason, 'no tier can be had without Landlock');
});

test('without a usable /proc programs are found, as sandbox check says they can be run', async (t) => {
  const yard = makeYard();
  // A sanitizer looks for leaks, and reads its own options, by /proc.
  if (!hasFull(t, yard) || !isRoot || isSanitized) {
    return;
  }
  for (const none of ['umount -l /proc', 'mount -t tmpfs none /proc']) {
    const wrap = ['unshare', '-m', 'sh', '-c', `${none} && exec "$0" "$@"`];
    assert.equal(check(yard, wrap).tier, 'full');
    for (const [words, code, said] of [
      [['echo', 'hi'], 0, /^hi$/m], [['no-such-program'], 127, /not found: no-such-program/],
      [['/etc/passwd'], 126, /no execute permission/], [['/etc'], 126, /is a directory/],
    ]) {
      const r = spawnSync(wrap[0], [...wrap.slice(1), program, 'exec', '-c', 'sandbox.min_tier=full', '--', ...words],
        { cwd: yard.ws, env: yard.env, encoding: 'utf8' });
      assert.equal(r.status, code, r.stderr);
      assert.match(r.stdout + r.stderr, said);
    }
    const server = await startMcp({ cwd: yard.ws, env: yard.env, wrap });
    const r = await call(server.client, 'shell_command', { command: 'echo hi' });
    await server.close();
    assert.match(textOf(r), /^hi$/m);
  }
});

eachFront('a note that no sandbox could be had says in full what would mend it', async (t, { open }) => {
  const front = await open({ settings: { 'sandbox.required': false }, wrap: [mask, 'landlock'] });
  const r = await front.run('echo ran');

  assert.equal(r.output, 'ran\n');
  if (front.name === 'mcp') { // What is told at the start agrees with the results.
    assert.match(front.server.client.getInstructions(), / Commands run without a sandbox\. /);
  }
  assert.match(r.note, /^run WITHOUT a sandbox \(sandbox\.required is false\): Landlock is not available .*CONFIG_SECURITY_LANDLOCK and 'landlock' in lsm=($|; )/);
});

eachFront('a command in the full tier says so and has its walls', async (t, { yard, open }) => {
  if (!hasFull(t, yard)) {
    return;
  }
  const front = await open({ settings: FULL });
  const r = await front.run('echo $$ > pid; cat pid; cat /proc/1/comm; chmod 700 /etc/hostname 2>&1; echo x > /tmp/t; ls /tmp');

  assert.equal(r.sandbox.tier, 'full');
  assert.equal(r.sandbox.tier_reason, undefined);
  assert.match(r.output, /^2\nsy-keeper\n.*Read-only file system\nt\n$/);
  assert.equal(fs.readFileSync(path.join(yard.ws, 'pid'), 'utf8'), '2\n');
});

// Node can't name such a directory: a shell enters it.
for (const tier of ['full', 'no-namespace']) {
  test(`a workspace whose name is no UTF-8 is the one that is writable, ${tier}`, async (t) => {
    const yard = makeYard();
    if (tier === 'full' && !hasFull(t, yard)) {
      return;
    }
    const enter = ['sh', '-c', 'mkdir -p "$(printf "lat\\351")" "$(printf "lat\\357\\277\\275")" && cd "$(printf "lat\\351")" && exec "$@"', 'sh'];
    const script = 'touch own && echo own; touch "../$(printf "lat\\357\\277\\275")/sibling" 2>/dev/null && echo sibling; cat ~/.ssh/id 2>/dev/null; true';
    const settings = { 'sandbox.tier': tier, 'sandbox.read_audit': false, 'shell.path': '/bin/bash' };
    const flags = Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`]);
    const done = await execCli(['--json', ...flags, '--', 'bash', '-c', script], { cwd: yard.ws, env: yard.env, wrap: enter });

    const r = JSON.parse(done.stdout);
    assert.equal(r.aggregated_output, 'own\n', done.stderr + done.stdout);
    assert.equal(r.sandbox.tier, tier);

    const server = await startMcp({ cwd: yard.ws, env: yard.env, settings, wrap: enter });
    t.after(() => server.close());
    const again = await call(server.client, 'shell_command', { command: script });
    assert.equal(again.structuredContent.output, 'own\n', textOf(again));
    assert.equal(again.structuredContent.sandbox.tier, tier);
    const found = spawnSync('ls', ['-RA', '--quoting-style=escape', '.'], { cwd: yard.ws, env: yard.env, encoding: 'utf8' }).stdout;
    assert.match(found, /lat\\351:\n(\..*\n)*own\n/);
    assert.doesNotMatch(found, /sibling/);
  });
}

/** A command of a server above may make a link of another server's workspace. */
for (const tier of ['full', 'no-namespace']) {
  test(`a workspace that somebody swaps for a link is refused, ${tier}`, async (t) => {
    const yard = makeYard();
    if (tier === 'full' && !hasFull(t, yard)) {
      return;
    }
    const pkg = path.join(yard.ws, 'pkg');
    const victim = path.join(yard.dir, 'victim');
    fs.mkdirSync(pkg);
    fs.mkdirSync(victim);
    const settings = { 'sandbox.tier': tier, 'sandbox.read_audit': false, 'shell.path': '/bin/bash' };
    const above = await startMcp({ cwd: yard.ws, env: yard.env, settings });
    const inside = await startMcp({ cwd: pkg, env: yard.env, settings });
    t.after(() => Promise.all([above.close(), inside.close()]));
    const run = async (server, command) => (await call(server.client, 'shell_command', { command })).structuredContent;

    const swap = await run(above, `mv pkg was && ln -s ${victim} pkg && echo swapped`);
    assert.equal(swap.output, 'swapped\n');
    for (let i = 0; i < 2; i += 1) {
      const r = await run(inside, 'touch here');
      assert.equal(r.status, 'failed');
      assert.match(r.error, /ws\/pkg' is reached by the symbolic link '.*\/ws\/pkg' now.*start anew/);
    }
    const patched = await call(inside.client, 'apply_patch', { input: '*** Begin Patch\n*** Add File: new\n+x\n*** End Patch\n' });
    assert.notEqual(patched.structuredContent?.status, 'completed');
    assert.deepEqual(fs.readdirSync(victim), []);

    // A directory that was made again under its name is the workspace as before.
    assert.equal((await run(above, 'rm pkg && mkdir pkg && echo made')).output, 'made\n');
    const again = await run(inside, 'touch here && pwd');
    assert.equal(again.output, `${pkg}\n`, again.error);
    assert.deepEqual(fs.readdirSync(pkg).filter((name) => !name.startsWith('.')), ['here']);
  });
}

eachFront('a workspace may be named by a link of yours, which is looked at once', async (t, { yard, open }) => {
  fs.symlinkSync(yard.ws, path.join(yard.dir, 'mine'));
  const front = await open({ wrap: ['sh', '-c', 'cd ../mine && exec "$@"', 'sh'] });
  const r = await front.run('touch here && pwd -P');

  assert.equal(r.output, `${yard.ws}\n`);
});

eachFront('the tier that can be had is taken, and the answer says why it is not more', async (t, { open }) => {
  const front = await open({ settings: { 'sandbox.min_tier': 'no-namespace' }, wrap: [mask, 'namespaces'] });
  const r = await front.run('echo ran');

  assert.equal(r.output, 'ran\n');
  assert.equal(r.sandbox.tier, 'no-namespace');
  if (front.name === 'mcp') { // exec does not try for more by itself
    assert.match(r.sandbox.tier_reason, /making namespaces failed/);
  }
});

eachFront('where the tier that is asked for can not be had, nothing runs', async (t, { yard, open }) => {
  for (const settings of [FULL, { 'sandbox.min_tier': 'full' }]) {
    const front = await open({ settings, wrap: [mask, 'namespaces'] });
    const r = await front.run('touch ran');

    assert.ok(r.isError || r.status === 'failed', JSON.stringify(r.raw));
    assert.match(r.text, /tier 'full' can't be made here: making namespaces failed/);
    assert.equal(fs.existsSync(path.join(yard.ws, 'ran')), false);
  }
});

eachFront('as root, commands run as the owner of the workspace', async (t, { yard, open }) => {
  if (!isRoot || !hasFull(t, yard)) {
    return;
  }
  for (const name of ['.', 'a']) {
    fs.mkdirSync(path.join(yard.ws, name), { recursive: true });
    fs.chownSync(path.join(yard.ws, name), 12345, 23456);
  }
  fs.chmodSync(yard.dir, 0o755);
  const front = await open({ settings: FULL });
  const r = await front.run('id -u; id -g; id -G; echo x > a/f; wc -c 2>/dev/null < /etc/shadow || echo refused');
  // Hidden, which an empty file shows, or closed by its own mode.
  assert.match(r.output, /^12345\n23456\n23456\n(0|.*refused)\n$/);
  assert.equal(fs.statSync(path.join(yard.ws, 'a/f')).uid, 12345);

  const self = await open({ settings: { ...FULL, 'sandbox.run_as': 'self' } });
  assert.equal((await self.run('id -u')).output, '0\n');
});

eachFront('as root, commands have the home and the name of the owner', async (t, { yard, open }) => {
  const ci = fs.readFileSync('/etc/passwd', 'utf8').split('\n').map((l) => l.split(':')).find((f) => Number(f[2]) >= 1 && f[5]?.startsWith('/'));
  if (!isRoot || !hasFull(t, yard) || ci === undefined) {
    return;
  }
  fs.chownSync(yard.ws, Number(ci[2]), Number(ci[3]));
  fs.chmodSync(yard.dir, 0o755);
  const script = 'echo "$HOME $USER $LOGNAME"';
  const env = { USER: 'root', LOGNAME: 'root' };
  const said = async (settings) => (await (await open({ settings, env })).run(script)).output;
  assert.equal(await said(FULL), `${ci[5]} ${ci[0]} ${ci[0]}\n`);
  assert.equal(await said({ ...FULL, 'environment.set': 'HOME=/h' }), `/h ${ci[0]} ${ci[0]}\n`, 'what is configured wins');
  assert.equal(await said({ ...FULL, 'sandbox.run_as': 'self' }), `${yard.home} root root\n`);
});

test('a program that a command made in the session\'s /tmp can be run', async (t) => {
  const yard = makeYard();
  if (!hasFull(t, yard)) {
    return;
  }
  const name = `sy-made-${process.pid}`;
  const server = await startMcp({ cwd: yard.ws, env: yard.env, settings: FULL });
  t.after(() => server.close());
  const made = await call(server.client, 'shell_command', { command: `mkdir -p /tmp/bin && cp /bin/echo /tmp/bin/${name} && touch /tmp/bin/plain` });
  assert.equal(made.structuredContent.exit_code, 0, textOf(made));
  const run = async (...command) => (await call(server.client, 'shell', { command })).structuredContent;
  assert.equal((await run(`/tmp/bin/${name}`, 'ran')).output, 'ran\n');
  assert.equal((await run('/tmp/bin/plain')).exit_code, 126);
  assert.equal((await run('/tmp/bin/none')).exit_code, 127);
  assert.equal(fs.existsSync(`/tmp/bin/${name}`), false, 'it is not there outside');
  const outside = `/tmp/${name}`;
  fs.copyFileSync('/bin/echo', outside);
  t.after(() => fs.rmSync(outside, { force: true }));
  assert.equal((await run(outside, 'x')).exit_code, 127, 'nor what is outside inside');
});

eachFront('git works in the full tier', async (t, { yard, open }) => {
  if (!hasFull(t, yard)) {
    return;
  }
  const front = await open({ settings: FULL });
  const r = await front.run('set -e; git init -q r; cd r; git config user.email a@b; git config user.name n; echo 1 > f; git add f;'
    + 'git commit -qm one; git branch b; git stash list; echo 2 > f; git stash -q; git stash pop -q; git commit -qam two;'
    + 'git rebase -q b; git worktree add -q ../w b; cd ../w; echo 3 > g; git add g; git commit -qm three; git gc -q; git log --oneline | wc -l',
  { timeoutMs: 60_000 });

  assert.equal(r.exitCode, 0, r.output);
  assert.match(r.output, /2\n$/);

  // Where .git is a link it leads where it led, and stays.
  fs.renameSync(path.join(yard.ws, 'r/.git'), path.join(yard.ws, 'store'));
  fs.symlinkSync('../store', path.join(yard.ws, 'r/.git'));
  const linked = await front.run('cd r && git log --format=%s -1 && readlink .git && ! mv .git moved 2>/dev/null && ! rm .git 2>/dev/null && ! git config a.b c 2>/dev/null');
  assert.deepEqual([linked.exitCode, linked.output], [0, 'two\n../store\n']);
});

const ATTACK = '(echo x >> .git/config) 2>/dev/null && echo config; (echo x > .git/hooks/post-checkout) 2>/dev/null && echo hook;'
  + 'mv .git g 2>/dev/null && echo moved && mv g .git; mkdir -p .claude/x 2>/dev/null && echo claude; (echo x > .envrc) 2>/dev/null && echo envrc;'
  + 'ln .git/config c 2>/dev/null && echo x >> c && echo link; (echo x > n && mv -f n .git/config) 2>/dev/null && echo replaced; true';

eachFront('protected names hold in the full tier, and nothing is left of what holds them', async (t, { yard, open }) => {
  if (!hasFull(t, yard)) {
    return;
  }
  const git = (...words) => assert.equal(spawnSync('git', words, { cwd: yard.ws, env: yard.env }).status, 0, words.join(' '));
  git('init', '-q');
  const config = fs.readFileSync(path.join(yard.ws, '.git/config'), 'utf8');
  const before = fs.readdirSync(yard.ws, { recursive: true }).sort();
  const tops = () => ['.', '.git', '.git/info'].map((dir) => fs.readdirSync(path.join(yard.ws, dir)).length).join();
  const few = tops();
  const front = await open({ settings: FULL });
  assert.equal((await front.run(ATTACK)).output, '');
  assert.equal(fs.readFileSync(path.join(yard.ws, '.git/config'), 'utf8'), config);
  fs.rmSync(path.join(yard.ws, 'n'), { force: true });
  // What holds names that are not there yet stays a moment for the next command.
  await waitFor(() => tops() === few, 'what held the names is gone');
  assert.deepEqual(fs.readdirSync(yard.ws, { recursive: true }).sort(), before);

  // The person's own git replaces the file while a command runs; it is held again.
  const other = front.run('touch started; while [ ! -e go ]; do sleep 0.01; done; (echo x >> .git/config) 2>&1; cat .git/config', { timeoutMs: 60_000 });
  await waitFor(() => fs.existsSync(path.join(yard.ws, 'started')), 'the command runs');
  git('config', 'user.name', 'somebody');
  const isHeld = ({ pid }) => readProc(pid, 'mountinfo').includes(`${yard.ws}/.git/config `);
  await waitFor(() => processesOf(yard.mark).filter((p) => p.cmdline.includes('started')).some(isHeld), 'it is held again');
  fs.writeFileSync(path.join(yard.ws, 'go'), '');
  assert.match((await other).output, /Read-only file system[^]*name = somebody/);

  await waitFor(() => ['.envrc', '.claude'].every((name) => !fs.existsSync(path.join(yard.ws, name))), 'the names are free');
  const free = await open({ settings: { ...FULL, 'sandbox.protect': false } });
  assert.equal((await free.run(ATTACK)).output, 'config\nhook\nmoved\nclaude\nenvrc\nlink\nreplaced\n', 'without protection all of it works');
});

eachFront('answers tell how far protected names are held', async (t, { name, yard, open }) => {
  const state = async (settings) => {
    const r = await (await open({ settings })).run('true');
    return [r.sandbox.features.protected_names, r.sandbox.protected_names_reason];
  };
  const isWhole = name !== 'exec'; // which looks at little, since it starts for one command
  const [none, why] = await state({ 'sandbox.tier': 'no-namespace' });
  assert.equal(none, 'emulated');
  assert.equal(why === undefined, isWhole, why);
  assert.deepEqual(await state({ 'sandbox.tier': 'no-namespace', 'sandbox.protect': false }), ['absent', undefined]);
  assert.deepEqual(await state({ 'sandbox.mode': 'danger-full-access' }), ['absent', undefined]);
  if (!hasFull(t, yard)) {
    return;
  }
  const [full, reason] = await state(FULL);
  assert.equal(full, 'enforced');
  assert.equal(reason, undefined);
  assert.deepEqual(await state({ ...FULL, 'sandbox.protect': false }), ['absent', undefined]);
});

eachFront('secrets are hidden in the full tier', async (t, { yard, open }) => {
  if (!hasFull(t, yard)) {
    return;
  }
  const key = path.join(yard.home, '.ssh/id_test');
  fs.mkdirSync(path.dirname(key), { recursive: true });
  fs.writeFileSync(key, 'the secret\n');
  fs.symlinkSync(key, path.join(yard.ws, 'link'));
  const script = `cat ${key}; cat link; cat /proc/self/root${key}; cd /proc/self/cwd/; cat ${path.relative(yard.ws, key)}; true`;
  const front = await open({ settings: FULL });
  const r = await front.run(script);
  assert.ok(!r.output.includes('the secret'), r.output);
  assert.equal(r.sandbox.features?.deny_read ?? 'enforced', 'enforced');
  const allowed = await open({ settings: { ...FULL, 'sandbox.allow_read': [path.dirname(key)] } });
  assert.equal((await allowed.run(script)).output.match(/the secret/g)?.length, 4, 'where it is allowed it is read');
});

test('an engine that is killed leaves nothing of a sandbox in the full tier', async (t) => {
  const yard = makeYard();
  if (!hasFull(t, yard)) {
    return;
  }
  const front = await openFront(t, 'mcp', yard, { settings: FULL });
  const run = front.run("for i in 1 2 3 4 5; do setsid sh -c 'trap : TERM; sleep 1000; :' & done; sleep 1000", { timeoutMs: 60_000 })
    .catch(() => {});
  const sleeps = () => processesOf(yard.mark).filter((p) => p.cmdline.startsWith('sleep'));
  await waitFor(() => sleeps().length === 6, 'the daemons live');
  process.kill(front.pid, 'SIGKILL');
  await waitFor(() => processesOf(yard.mark).length === 0, 'all are gone', 2000);
  await run;
});
