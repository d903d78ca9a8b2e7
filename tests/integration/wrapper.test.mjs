// shellyard-launch --policy FD -- COMMAND, as a program uses it that has no engine.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { spawnSync } from 'node:child_process';
import test from 'node:test';
import { makeYard, mustRun, processesOf, program, waitFor } from './lib/client.mjs';

const launch = [path.join(path.dirname(program), 'libexec/shellyard/shellyard-launch'), path.join(path.dirname(program), 'shellyard-launch')]
  .find((p) => fs.existsSync(p));

function wrap(yard, policy, ...command) {
  const file = path.join(yard.dir, 'policy.json');
  fs.writeFileSync(file, JSON.stringify(policy));
  const fd = fs.openSync(file);
  const r = spawnSync(launch, ['--policy', '3', '--', ...command],
    { cwd: yard.ws, env: yard.env, encoding: 'utf8', input: 'from outside\n', stdio: ['pipe', 'pipe', 'pipe', fd], timeout: 20_000 });
  fs.closeSync(fd);
  return r;
}

test('the wrapper runs a command in its policy and gives back how it ended', async (t) => {
  const yard = makeYard();
  const policy = { version: 1, mode: 'workspace-write', cwd: yard.ws };
  const check = spawnSync(program, ['sandbox', 'check', '--json'], { cwd: yard.ws, env: yard.env, encoding: 'utf8' });
  if (!mustRun(t, JSON.parse(check.stdout).full_tier, 'no sandbox of the full tier here')) {
    return;
  }
  const target = path.join(yard.outside, 'f');
  const r = wrap(yard, policy, 'sh', '-c', `cat; echo x > in && echo inside; echo x > ${target}; exit 7`);
  assert.equal(r.status, 7, r.stderr);
  assert.equal(r.stdout, 'from outside\ninside\n');
  assert.equal(fs.existsSync(target), false);
  const wide = wrap(yard, { ...policy, writable_roots: [yard.outside] }, 'sh', '-c', `echo x > ${target}`);
  assert.equal(wide.status, 0, 'where the policy allows it, it works');
  assert.equal(fs.readFileSync(target, 'utf8'), 'x\n');

  assert.equal(wrap(yard, policy, 'sh', '-c', 'kill -9 $$').status, 137);
  assert.equal(wrap(yard, policy, 'no-such-program').status, 127);
  assert.equal(wrap(yard, policy, './in').status, 126);
});

test('the wrapper does not wait for what a command leaves behind, and ends it', async (t) => {
  const yard = makeYard();
  const r = wrap(yard, { version: 1, mode: 'workspace-write', cwd: yard.ws }, 'sh', '-c', 'setsid sleep 1000 & echo bg');
  assert.equal(r.status, 0, r.stderr);
  assert.equal(r.stdout, 'bg\n');
  await waitFor(() => processesOf(yard.mark).length === 0, 'nothing is left', 2000);
});

const hasFull = (t, yard) => {
  const check = spawnSync(program, ['sandbox', 'check', '--json'], { cwd: yard.ws, env: yard.env, encoding: 'utf8' });
  return mustRun(t, JSON.parse(check.stdout).full_tier, 'no sandbox of the full tier here');
};

test('the wrapper hides what the policy denies to read', (t) => {
  const yard = makeYard();
  if (!hasFull(t, yard)) {
    return;
  }
  fs.mkdirSync(path.join(yard.outside, 'keys'));
  fs.mkdirSync(path.join(yard.ws, 'a/b'), { recursive: true });
  const files = [path.join(yard.outside, 'keys/k'), path.join(yard.outside, 'one'), path.join(yard.ws, 'a/b/.env'), path.join(yard.ws, '.env')];
  files.forEach((file) => fs.writeFileSync(file, 'the secret\n'));
  const policy = { version: 1, mode: 'workspace-write', cwd: yard.ws };
  const script = `cat ${files.join(' ')}; mv a c; cat c/b/.env; mv c a; cp a/b/.env copy; cat copy; rm -f copy; echo end`;
  const r = wrap(yard, { ...policy, deny_read: [`${yard.outside}/keys`, `${yard.outside}/on?`, `${yard.ws}/**/.env`] }, 'sh', '-c', script);
  assert.ok(!r.stdout.includes('the secret'), r.stdout);
  assert.match(r.stdout, /end\n$/, r.stderr);
  const open = wrap(yard, { ...policy, deny_read: [] }, 'sh', '-c', script);
  assert.equal(open.stdout.match(/the secret/g)?.length, 6, 'what is not denied is read');
});

test('the wrapper follows no link to where the policy says that none may lead', (t) => {
  const yard = makeYard();
  if (!hasFull(t, yard)) {
    return;
  }
  const link = path.join(yard.dir, 'link');
  fs.symlinkSync(yard.outside, link);
  const policy = { version: 1, mode: 'workspace-write', cwd: yard.ws };
  const target = path.join(yard.outside, 'made');
  for (const [wrong, right] of [[{ granted_roots: [link] }, { granted_roots: [yard.outside] }],
    [{ linked_roots: [link] }, { linked_roots: [yard.outside] }],
    [{ cwd: link, cwd_without_links: true }, { cwd: yard.outside, cwd_without_links: true }]]) {
    const r = wrap(yard, { ...policy, ...wrong }, 'touch', target);
    assert.notEqual(r.status, 0);
    assert.match(r.stderr, /symbolic link/);
    assert.equal(fs.existsSync(target), false);
    assert.equal(wrap(yard, { ...policy, ...right }, 'touch', target).status, 0, 'the control');
    fs.rmSync(target);
  }
});

test('the wrapper keeps protected names that exist, at any depth', (t) => {
  const yard = makeYard();
  if (!hasFull(t, yard)) {
    return;
  }
  const other = path.join(yard.dir, 'other');
  const link = path.join(yard.dir, 'link');
  fs.mkdirSync(other);
  fs.symlinkSync(other, link);
  const repos = ['', 'x/y/', `${other}/deep/`];
  for (const repo of repos) {
    const git = path.resolve(yard.ws, repo, '.git');
    fs.mkdirSync(path.join(git, 'hooks'), { recursive: true });
    fs.writeFileSync(path.join(git, 'config'), 'mine\n');
    fs.writeFileSync(path.join(git, '../.EnvRC'), 'mine\n');
  }
  const policy = {
    version: 1, mode: 'workspace-write', cwd: yard.ws, writable_roots: [link], protected_names: ['.git/hooks', '.git/config*', '.envrc'],
  };
  const script = repos.map((repo) => `(echo x > ${repo}.git/config) 2>/dev/null && echo config; (echo x > ${repo}.git/hooks/h) 2>/dev/null && echo hook;`
    + `(echo x > ${repo}.EnvRC) 2>/dev/null && echo envrc; rm -f ${repo}.git/config 2>/dev/null && echo removed;`
    + `mv ${repo}.git ${repo}g 2>/dev/null && echo moved; chmod 700 ${repo}.git/hooks 2>/dev/null && echo mode;`).join('')
    + 'mv x z 2>/dev/null && echo above; echo y > .git/index && echo y > x/y/f && echo work';
  const held = wrap(yard, policy, 'sh', '-c', script);
  assert.equal(held.stdout, 'work\n', held.stderr);
  for (const repo of repos) {
    assert.equal(fs.readFileSync(path.resolve(yard.ws, repo, '.git/config'), 'utf8'), 'mine\n');
  }
  const free = wrap(yard, { ...policy, protected_names: [] }, 'sh', '-c', script);
  assert.match(free.stdout, /^(config\nhook\nenvrc\nremoved\nmoved\n){3}above\n$/, 'without the member all of it works');
});

test('a policy that is not understood whole runs nothing', (t) => {
  const yard = makeYard();
  const policy = { version: 1, mode: 'workspace-write', cwd: yard.ws };
  for (const [bad, why] of [[{ ...policy, cwd: undefined }, /"cwd" are needed/], [{ ...policy, roots: [] }, /unknown member "roots"/],
    [{ ...policy, deny_read: 'x' }, /"deny_read" must be a list/], [{ ...policy, deny_read: ['x'] }, /deny_read: 'x'/],
    [{ ...policy, protected_names: ['../x'] }, /protected name '..\/x' is not one/], [{ ...policy, protected_names: [1] }, /a list of names/],
    [{ ...policy, cwd: 'relative' }, /an absolute path/], [[], /not a JSON object/], [{ ...policy, mode: 'danger-full-access' }, /needs no launcher/]]) {
    const r = wrap(yard, bad, 'touch', 'ran');
    assert.equal(r.status, 125);
    assert.match(r.stderr, why);
    assert.equal(fs.existsSync(path.join(yard.ws, 'ran')), false);
  }
  assert.equal(spawnSync(launch, ['--policy', '2', '--', 'true']).status, 2);
});
