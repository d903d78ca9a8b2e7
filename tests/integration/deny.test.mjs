// What can't be read (P02): by every way, with the neighbour and the same act outside as controls.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { eachFront, has, hasFull, mustRun } from './lib/client.mjs';

const SECRET = 'the-secret-bytes';
// Landlock's way; where mounts do it, the tier is another one.
const HELD = { 'sandbox.tier': 'no-namespace' };
const UNSANDBOXED = { settings: { 'sandbox.mode': 'danger-full-access' } };

// A home as people have it, and links to it in the workspace.
function fill(yard) {
  const write = (name, text, mode = 0o600) => {
    const file = path.join(yard.home, name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, text, { mode });
  };

  write('.ssh/id', SECRET);
  write('.ssh/run', `#!/bin/sh\necho ${SECRET}\n`, 0o700);
  write('.netrc', SECRET);
  write('.config/gh/hosts.yml', SECRET);
  write('.config/git/config', '[core]\n\tabbrev = 11\n');
  write('.gitconfig', '[user]\n\tname = Somebody\n');
  write('.bash_history', SECRET);
  write('.local/state/shellyard/state', SECRET);
  write('notes/page', 'a neighbour');
  fs.symlinkSync(path.join(yard.home, '.ssh/id'), path.join(yard.ws, 'link'));
  fs.symlinkSync(path.join(yard.home, 'notes/page'), path.join(yard.ws, 'page'));
}

const ways = [
  'cat ~/.ssh/id',
  'cat ~/.netrc',
  'cat ~/.config/gh/hosts.yml',
  'cat ~/.bash_history',
  'cat ~/.local/state/shellyard/state',
  'cat link',
  'cat /proc/self/root$HOME/.ssh/id',
  'cat /proc/self/cwd/../home/.ssh/id',
  'cat ../home/notes/../.ssh/id',
  'cd ~/.ssh && cat id',
  'cp ~/.ssh/id copy && cat copy',
  'cp -a ~/.ssh copies && cat copies/id',
  'tar cf - -C ~ .ssh | tr -d "\\0"',
  'dd if=$HOME/.ssh/id 2>/dev/null',
  '~/.ssh/run',
  'sh ~/.ssh/run',
  'ln ~/.ssh/id hard && cat hard',
  'mv ~/.netrc moved && cat moved',
  'while read -r l; do echo "$l"; done < ~/.ssh/id; read -r l < ~/.ssh/id || echo "$l"',
];

eachFront('P02 a secret is read by no way, though it is outside', async (t, { yard, open }) => {
  fill(yard);
  const front = await open({ settings: HELD });
  for (const way of ways) {
    const r = await front.run(way);
    assert.ok(!r.output.includes(SECRET), `${way}: ${r.output}`);
    assert.equal(r.sandbox.features.deny_read, 'enforced');
    assert.equal(r.sandbox.deny_read_unheld, undefined);
  }
  const free = await open(UNSANDBOXED);
  for (const way of ways) {
    fs.rmSync(yard.ws, { recursive: true });
    fs.mkdirSync(yard.ws);
    fill(yard);
    assert.ok((await free.run(way)).output.includes(SECRET), `${way} shows it without the sandbox`);
  }
});

eachFront('what is no secret is read as ever', async (t, { yard, open }) => {
  fill(yard);
  const front = await open({ settings: HELD });
  const read = await front.run('cat page ~/notes/page /proc/self/root$HOME/notes/page && head -c1 /etc/passwd /proc/self/stat /sys/kernel/mm/transparent_hugepage/enabled /dev/zero >/dev/null && ls -a ~ | grep -c ssh');
  assert.equal(read.output, 'a neighbour'.repeat(3) + '1\n');
  if (mustRun(t, has('git'), 'no git')) {
    const git = await front.run('git config user.name && git config core.abbrev');
    assert.equal(git.output, 'Somebody\n11\n');
  }
  const made = await front.run('echo mine > made && cat made && mkdir d && mv made d && cat d/made');
  assert.equal(made.output, 'mine\nmine\n');
});

eachFront('the login environment is had with secrets hidden', async (t, { yard, open }) => {
  fill(yard);
  fs.writeFileSync(path.join(yard.home, '.bash_profile'), `export FROM_PROFILE=yes\nexport FROM_SECRET="$(cat ~/.netrc 2>/dev/null)"\n`);
  const front = await open({ settings: HELD });
  const r = await front.run('echo $FROM_PROFILE-$FROM_SECRET', { login: true });
  assert.equal(r.output, 'yes-\n');
});

eachFront('one line lets a default out, one line hides more', async (t, { yard, open }) => {
  fill(yard);
  const front = await open({ settings: {
    ...HELD,
    'sandbox.allow_read': JSON.stringify([path.join(yard.home, '.ssh')]),
    'sandbox.deny_read': JSON.stringify([path.join(yard.home, 'n*s/page')]),
  } });
  assert.equal((await front.run('cat ~/.ssh/id')).output, SECRET);
  assert.ok(!(await front.run('cat ~/.netrc')).output.includes(SECRET));
  assert.notEqual((await front.run('cat ~/notes/page')).exitCode, 0);
  const none = await open({ settings: { ...HELD, 'sandbox.default_deny_read': false } });
  const r = await none.run('cat ~/.netrc');
  assert.equal(r.output, SECRET);
  assert.equal(r.sandbox.features.deny_read, 'absent');
});

// The daemon's socket would answer for the person, its database tells of all other agents.
eachFront("Shellyard's own state is hidden whatever is allowed to be read", async (t, { yard, open }) => {
  const wide = [
    { 'sandbox.allow_read': JSON.stringify([path.join(yard.home, '.local')]) },
    { 'sandbox.allow_read': JSON.stringify([yard.home]) },
    { 'sandbox.default_deny_read': false },
  ];
  const ring = path.join(yard.home, '.local/share/keyrings/ring');
  fill(yard);
  fs.mkdirSync(path.dirname(ring), { recursive: true });
  fs.writeFileSync(ring, 'a default');
  for (const tier of hasFull(t, yard) ? ['full', 'no-namespace'] : ['no-namespace']) {
    for (const mode of ['read-only', 'workspace-write']) {
      for (const settings of wide) {
        const front = await open({ settings: { ...settings, 'sandbox.mode': mode, 'sandbox.tier': tier } });
        const r = await front.run('cat ~/.local/state/shellyard/state ~/.local/share/keyrings/ring');
        assert.ok(!r.output.includes(SECRET), r.text);
        assert.ok(r.output.includes('a default'), r.text);
        assert.ok(!r.text.includes('allow_read'), r.text);
      }
    }
  }
});

eachFront("Shellyard's own socket answers no command of the full tier", async (t, { yard, open }) => {
  if (!hasFull(t, yard)) {
    return;
  }
  const socket = path.join(yard.home, '.local/state/shellyard/own.sock');
  fill(yard);
  const server = net.createServer((c) => c.end('reached'));
  await new Promise((resolve) => server.listen(socket, resolve));
  const settings = { 'sandbox.tier': 'full', 'sandbox.network_access': true, 'sandbox.default_deny_read': false };
  const way = `python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.connect("${socket}"); print(s.recv(9))'`;
  try {
    assert.ok(!(await (await open({ settings })).run(way)).output.includes('reached'));
    assert.ok((await (await open(UNSANDBOXED)).run(way)).output.includes('reached'));
  } finally {
    server.close();
  }
});

eachFront('a secret that appears between two calls is hidden in the second', async (t, { yard, open }) => {
  const front = await open({ settings: HELD });
  assert.notEqual((await front.run('cat ~/.netrc')).exitCode, 0);
  fs.writeFileSync(path.join(yard.home, '.netrc'), SECRET);
  fs.writeFileSync(path.join(yard.home, 'open'), 'readable');
  assert.ok(!(await front.run('cat ~/.netrc')).output.includes(SECRET));
  assert.equal((await front.run('cat ~/open')).output, 'readable');
  fs.writeFileSync(path.join(yard.home, 'open2'), 'readable too');
  assert.equal((await front.run('cat ~/open2')).output, 'readable too');
});

eachFront('what lies in the workspace is held by mounts, and without them nothing runs', async (t, { yard, open }) => {
  fill(yard);
  const env = path.join(yard.ws, '.env');
  const deep = path.join(yard.ws, '**/.env');
  fs.writeFileSync(env, SECRET);
  for (const pattern of [env, deep]) {
    const held = await open({ settings: { ...HELD, 'sandbox.deny_read': JSON.stringify([pattern]) } });
    const r = await held.run('cat .env');
    assert.ok(!r.text.includes(SECRET), r.text);
    assert.match(r.text, /lies below a writable root, where only the full tier can hold it.*take it out of sandbox\.deny_read/);
  }
  if (!hasFull(t, yard)) {
    return;
  }
  // exec takes it by itself where it is needed.
  for (const pattern of [env, deep]) {
    const r = await (await open({ settings: { 'sandbox.deny_read': JSON.stringify([pattern]) } })).run('cat .env; cat page');
    assert.equal(r.sandbox.tier, 'full');
    assert.equal(r.sandbox.features.deny_read, 'enforced');
    assert.ok(!r.output.includes(SECRET), r.output);
    assert.match(r.output, /a neighbour/);
  }
});

eachFront('a pattern that can not be exact stops the command and says what is right', async (t, { yard, name, open }) => {
  if (name === 'mcp') {
    return; // a server with a bad setting does not start
  }
  const front = await open({ settings: { ...HELD, 'sandbox.deny_read': JSON.stringify([`${yard.home}/../x`]) } });
  assert.match((await front.run('echo ran')).text, /'\.\.' leads elsewhere behind a symbolic link/);
  const deep = await open({ settings: { ...HELD, 'sandbox.deny_read': JSON.stringify([`${yard.home}/**/x`]) } });
  const r = await deep.run('echo ran');
  assert.match(r.text, /searches whole trees outside of the writable roots/);
  assert.ok(!r.text.includes('ran\n'));
});
