// Working directories, quoting, login profiles, the environment (A21-A25).
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { SOON_MS, eachFront, testPath, waitFor } from './lib/client.mjs';

eachFront('A21 a working directory that is gone is named, and the next call works', async (t, { yard, open }) => {
  const front = await open();
  const gone = path.join(yard.ws, 'gone');
  const first = await front.run(`mkdir -p ${gone} && cd ${gone} && rmdir ${gone}`);
  assert.equal(first.exitCode, 0);

  const second = await front.run(`touch ${yard.ws}/ran`, { cwd: gone });
  assert.ok(second.isError || second.status === 'failed');
  assert.notEqual(second.exitCode, 0);
  assert.ok(second.text.includes(gone), second.text);
  assert.doesNotMatch(second.text, /bash.*not found/i);
  assert.equal(fs.existsSync(path.join(yard.ws, 'ran')), false, 'nothing ran');

  const third = await front.run('echo back', { cwd: yard.ws });
  assert.equal(third.output, 'back\n');
});

eachFront('A21 a working directory that is a file is named', async (t, { yard, open }) => {
  const front = await open();
  const file = path.join(yard.ws, 'file');
  fs.writeFileSync(file, '');
  const r = await front.run('echo x', { cwd: file });

  assert.ok(r.isError || r.status === 'failed');
  assert.ok(r.text.includes(file), r.text);
});

const NAMES = ['a b', "it's $(id)", '-n', '日本語', 'x;y&z', '[br]*', 'new\nline'];

for (const mode of ['workspace-write', 'danger-full-access']) {
  eachFront(`A22 any legal name works as a working directory, ${mode}`, async (t, { yard, open }) => {
    const front = await open({ settings: { 'sandbox.mode': mode } });
    for (const name of NAMES) {
      const dir = path.join(yard.ws, name);
      fs.mkdirSync(dir);
      const r = await front.run('pwd; touch here', { cwd: dir });
      assert.equal(r.output, `${dir}\n`);
      assert.equal(r.exitCode, 0);
      assert.deepEqual(fs.readdirSync(dir), ['here']);
    }
    // What holds protected names stays a moment for the next command.
    await waitFor(() => !fs.existsSync(path.join(yard.ws, '.agents')), 'nothing holds names any more');
    assert.deepEqual(fs.readdirSync(yard.ws).filter((name) => !name.startsWith('.')).sort(), [...NAMES].sort(), 'nothing was expanded');
  });
}

eachFront('PWD names the working directory to programs that no shell starts', async (t, { yard, open }) => {
  const front = await open({ env: { PWD: yard.ws } });
  const dir = path.join(yard.ws, 'sub');
  fs.mkdirSync(dir);
  const r = await front.run("tr '\\0' '\\n' </proc/$$/environ | grep ^PWD=", { cwd: dir });

  assert.equal(r.output, `PWD=${dir}\n`);
});

eachFront('A23 an exclamation mark arrives as it was sent', async (t, { open }) => {
  const front = await open();
  const r = await front.run('[ ! -e /nonexist ] && x=5 && echo "a!b ${x} $((x!=4)) \\\\! {q}"');

  assert.equal(r.output, 'a!b 5 1 \\! {q}\n');
  assert.equal(r.exitCode, 0);
});

/** A home whose login profile is `text`. */
function writeProfile(yard, text) {
  fs.writeFileSync(path.join(yard.home, '.bash_profile'), text);
}

eachFront('A24 a profile that resets PATH does not touch a call without login', async (t, { yard, open }) => {
  const bin = path.join(yard.dir, 'bin');
  const tool = path.join(bin, 'mytool');
  fs.mkdirSync(bin);
  fs.writeFileSync(tool, '#!/bin/sh\necho MYTOOL\n', { mode: 0o755 });
  writeProfile(yard, 'export PATH=/usr/bin:/bin\n');
  const front = await open({ env: { PATH: `${bin}:${testPath}` } });

  const plain = await front.run('command -v mytool', { login: false });
  assert.equal(plain.output, `${tool}\n`);
  const login = await front.run('mytool; command -v ls', { login: true });
  assert.match(login.output, /^MYTOOL\n/, 'a login call still finds what the profile dropped');
  assert.equal(login.exitCode, 0);
});

eachFront('A24 a profile that executes another shell does not swallow the command', async (t, { yard, open }) => {
  writeProfile(yard, 'exec sh\n');
  const front = await open();
  const r = await front.run('echo hi; exit 3', { login: true });

  assert.equal(r.output, 'hi\n');
  assert.equal(r.exitCode, 3);
});

eachFront('A24 what a profile prints is not in the output, what it sets is in the environment', async (t, ctx) => {
  writeProfile(ctx.yard, 'echo NOISE; echo NOISE >&2; export FROM_PROFILE=yes\n');
  const front = await ctx.open();
  const r = await front.run('echo "got $FROM_PROFILE"', { login: true });

  assert.equal(r.output, 'got yes\n');
});

eachFront('A24 a profile that hangs does not hang the call', async (t, { yard, open }) => {
  writeProfile(yard, 'sleep 1000\n');
  const front = await open({ settings: { 'shell.snapshot_timeout_ms': 1000 } });
  const r = await front.run('echo hi', { login: true, timeoutMs: 30_000 });

  assert.equal(r.output, 'hi\n');
  assert.ok(r.elapsedMs < 1000 + SOON_MS, `answered after ${r.elapsedMs} ms`);
});

const SECRETS = {
  OPENAI_API_KEY: 'sk-test-0000', GH_TOKEN: 'ghvalue-1111', AWS_SECRET_ACCESS_KEY: 'awsvalue-2222', DB_PASSWORD: 'dbvalue-3333',
};

eachFront('A25 secrets of the environment stay with the server', async (t, { yard, open }) => {
  const front = await open({ env: { ...SECRETS, MY_PLAIN: 'keepme' } });
  const r = await front.run("env; cat /proc/self/environ | tr '\\0' '\\n'");

  for (const [key, value] of Object.entries(SECRETS)) {
    assert.ok(!r.text.includes(key), `${key} is there`);
    assert.ok(!r.text.includes(value), `the value of ${key} is there`);
  }
  assert.match(r.output, /^PATH=/m);
  assert.match(r.output, new RegExp(`^HOME=${yard.home}$`, 'm'));
  assert.match(r.output, /^LANG=C.UTF-8$/m);
  assert.match(r.output, /^MY_PLAIN=keepme$/m);
});

eachFront('A25 the secrets are in reach if the user says so', async (t, { open }) => {
  const front = await open({ env: SECRETS, settings: { 'environment.default_excludes': false } });
  const r = await front.run('echo "$GH_TOKEN"');

  assert.equal(r.output, `${SECRETS.GH_TOKEN}\n`);
});

eachFront('A25 what changes how programs are loaded or shells start never passes', async (t, { yard, open }) => {
  const rc = path.join(yard.ws, 'rc');
  fs.writeFileSync(rc, 'echo STARTED\n');
  const front = await open({ env: { BASH_ENV: rc, ENV: rc, PROMPT_COMMAND: 'echo P', LD_BIND_NOT: '1' } });
  const r = await front.run("bash -c true; env | grep -E '^(BASH_ENV|ENV|PROMPT_COMMAND|LD_.*)=' ; echo end");

  assert.equal(r.output, 'end\n');
  if (front.name === 'mcp') {
    const asked = await front.run("env | grep -E '^(LD_.*|A)='", { env: { A: 'b', LD_BIND_NOT: '1' } });

    assert.equal(asked.output, 'A=b\n');
    assert.equal(asked.note, "variable 'LD_BIND_NOT' is never passed to commands: set it within the command");
    const several = Object.fromEntries(['ENV', 'BASH_ENV', 'LD_A'].map((name) => [name, 'x']));
    assert.equal((await front.run('true', { env: { A: 'b', ...several } })).note,
      "variables 'ENV', 'BASH_ENV', 'LD_A' are never passed to commands: set them within the command");
    const many = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`LD_${i}`, 'x']));
    assert.match((await front.run('true', { env: many })).note,
      /^variables 'LD_0', .*, 'LD_7' and 22 more are never passed to commands: set them within the command$/);
  }
});
