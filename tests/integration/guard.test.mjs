// Protected names: what a command leaves that others would run goes away after it; each has a
// control with sandbox.protect off, where the same act stays.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { execFileSync } from 'node:child_process';
import { eachFront, has, hasFull, mustRun, waitFor } from './lib/client.mjs';

const OFF = { settings: { 'sandbox.protect': false } };

function git(yard, ...args) {
  return execFileSync('git', args, { cwd: yard.ws, env: { ...yard.env, GIT_CONFIG_NOSYSTEM: '1' }, encoding: 'utf8' });
}

/** All files of the quarantine, by what they hold. */
function quarantine(yard) {
  const top = path.join(yard.home, '.local/state/shellyard/quarantine');
  if (!fs.existsSync(top)) {
    return [];
  }
  return fs.readdirSync(top, { recursive: true, withFileTypes: true })
    .filter((e) => e.isFile()).map((e) => fs.readFileSync(path.join(e.parentPath ?? e.path, e.name), 'utf8'));
}

const canary = (yard) => path.join(yard.dir, 'canary');
const plants = (yard) => [
  ['an executable hook', '.git/hooks/post-checkout',
    `printf '#!/bin/sh\\ntouch ${canary(yard)}\\n' > .git/hooks/post-checkout && chmod +x .git/hooks/post-checkout`],
  ['core.fsmonitor', '.git/config', `git config core.fsmonitor 'touch ${canary(yard)} #'`],
  ['direnv', '.envrc', 'echo evil > .envrc'],
];

for (const index of [0, 1, 2]) {
  eachFront(`what would run later is moved away: ${['hook', 'configuration', 'a new name'][index]}`, async (t, { yard, open }) => {
    if (!mustRun(t, has('git'), 'no git')) {
      return;
    }
    const [why, name, script] = plants(yard)[index];
    const file = path.join(yard.ws, name);
    git(yard, 'init', '-q');
    const before = fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : null;

    const free = await open(OFF);
    assert.equal((await free.run(script)).exitCode, 0);
    assert.notEqual(fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : null, before, 'without protection it stays');
    if (before === null) {
      fs.rmSync(file);
    } else {
      fs.writeFileSync(file, before);
    }

    // Where mounts hold the names, nothing gets as far as this.
    const front = await open({ settings: { 'sandbox.tier': 'no-namespace' } });
    const r = await front.run(script);
    assert.equal(r.exitCode, 0, why);
    assert.deepEqual(r.raw.denials.map((d) => [d.operation, d.object, d.layer, d.confidence, d.fix]),
      [[before === null ? 'create' : 'write', file, 'guard', 'exact', `sandbox.unprotected_names: [${name.replace(/hooks.*/, 'hooks')}]`]]);
    assert.equal(fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : null, before);
    assert.equal(quarantine(yard).length, 1, 'nothing is lost');
    git(yard, 'status');
    git(yard, 'checkout', '-q', '-b', 'x');
    assert.equal(fs.existsSync(canary(yard)), false, 'a later git runs nothing of the command');
  });
}

eachFront('in the full tier no depth hides a repository from the guard', async (t, { yard, open }) => {
  if (!mustRun(t, has('git'), 'no git') || !hasFull(t, yard)) {
    return;
  }
  const commit = ['-c', 'user.name=n', '-c', 'user.email=e@example.com', 'commit', '-q', '--allow-empty', '-m', 'm'];
  git(yard, 'init', '-q');
  fs.mkdirSync(path.join(yard.ws, '.git/modules'));
  fs.mkdirSync(path.join(yard.ws, 'a/b'), { recursive: true });
  git(yard, 'init', '-q', '--separate-git-dir', path.join(yard.ws, '.git/modules/sub'), 'a/b/sub');
  git(yard, '-C', 'a/b/sub', ...commit);
  const pointer = path.join(yard.ws, 'a/b/sub/.git');
  const was = fs.readFileSync(pointer, 'utf8');
  const evil = `git init -q --bare a/evil; printf '[core]\\n\\tbare = false\\n\\tfsmonitor = touch ${canary(yard)}\\n' > a/evil/config; echo 'gitdir: ../../evil' > a/b/sub/.git`;
  const settings = { 'sandbox.tier': 'full' };
  const status = () => {
    try {
      git(yard, '-C', 'a/b/sub', 'status');
    } catch {
      // What the command has left may be no repository.
    }
    return fs.existsSync(canary(yard));
  };

  const front = await open({ settings });
  await front.run(evil, { timeoutMs: 60_000 });
  assert.equal(fs.readFileSync(pointer, 'utf8'), was);
  assert.equal(status(), false);
  fs.rmSync(path.join(yard.ws, 'a/evil'), { recursive: true, force: true });
  await front.close();

  const free = await open({ settings: { ...settings, ...OFF.settings } });
  await free.run(evil, { timeoutMs: 60_000 });
  assert.equal(status(), true, 'the control: without protection it runs');
});

eachFront('ordinary work is left alone, and a name can be lifted', async (t, { yard, open }) => {
  if (!mustRun(t, has('git'), 'no git')) {
    return;
  }
  git(yard, 'init', '-q');
  const front = await open({ settings: { 'sandbox.unprotected_names': ['.envrc'], 'sandbox.tier': 'no-namespace' } });
  const r = await front.run('echo 1 > f && git add f && git -c user.name=a -c user.email=a@b commit -qm 1 && git branch b '
    + '&& git config branch.b.remote o && echo x > .envrc && git status --porcelain', { timeoutMs: 60_000 });

  assert.equal(r.exitCode, 0, r.output);
  assert.equal(r.output, '?? .envrc\n');
  assert.equal(fs.readFileSync(path.join(yard.ws, '.envrc'), 'utf8'), 'x\n');
  assert.match(git(yard, 'config', 'branch.b.remote'), /^o$/m);
  assert.deepEqual(quarantine(yard), []);
  // No state, no litter, where nothing was found.
  assert.equal(fs.existsSync(path.join(yard.home, '.local/state/shellyard')), false);
});

for (const tier of ['full', 'no-namespace']) {
  eachFront(`A34 a linked worktree commits, and its repository's protected names stay (${tier})`, async (t, { yard, open }) => {
    if (!mustRun(t, has('git'), 'no git') || (tier === 'full' && !hasFull(t, yard))) {
      return;
    }
    const main = path.join(yard.outside, 'main');
    const who = ['-c', 'user.name=n', '-c', 'user.email=e@example.com'];
    git(yard, 'init', '-q', main);
    git(yard, '-C', main, ...who, 'commit', '-q', '--allow-empty', '-m', 'm');
    git(yard, '-C', main, 'worktree', 'add', '-q', yard.ws);
    const script = `echo x > f && git add f && git ${who.join(' ')} commit -qm w && git log --oneline | wc -l`;
    const settings = { 'sandbox.tier': tier };

    // What the repository does not know of is a forgery, and the refusal says what would allow it.
    const pointer = path.join(main, '.git/worktrees', path.basename(yard.ws), 'gitdir');
    fs.writeFileSync(pointer, `${yard.outside}/.git\n`);
    const before = await open({ settings });
    const refused = await before.run(script, { timeoutMs: 60_000 });
    assert.notEqual(refused.exitCode, 0);
    assert.deepEqual(refused.raw.denials.map((d) => d.fix), [`sandbox.writable_roots: ["${main}/.git"]`]);
    await before.close();
    fs.writeFileSync(pointer, `${yard.ws}/.git\n`);

    const front = await open({ settings });
    assert.equal((await front.run(script, { timeoutMs: 60_000 })).output.trim(), '2');
    for (const file of ['config', 'hooks/pre-commit']) {
      const was = fs.existsSync(path.join(main, '.git', file)) ? fs.readFileSync(path.join(main, '.git', file), 'utf8') : null;
      await front.run(`printf '[core]\\nfsmonitor = x\\n' >> ${main}/.git/${file}; chmod +x ${main}/.git/${file}`, { timeoutMs: 60_000 });
      assert.equal(fs.existsSync(path.join(main, '.git', file)) ? fs.readFileSync(path.join(main, '.git', file), 'utf8') : null, was, file);
    }
  });
}

eachFront('a repository at the top of a workspace is refused', async (t, { yard, open }) => {
  if (!mustRun(t, has('git'), 'no git')) {
    return;
  }
  const front = await open();
  await front.run('git init -q', { timeoutMs: 60_000 });
  assert.equal(fs.existsSync(path.join(yard.ws, '.git/HEAD')), false);
  // What held the name stays a moment for the next command.
  await waitFor(() => !fs.existsSync(path.join(yard.ws, '.git')), 'nothing is left');

  const lifted = await open({ settings: { 'sandbox.unprotected_names': ['.git'] } });
  await lifted.run('git init -q', { timeoutMs: 60_000 });
  assert.equal(fs.existsSync(path.join(yard.ws, '.git')), true);
});
