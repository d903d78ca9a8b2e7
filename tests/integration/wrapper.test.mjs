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
  const yard = makeYard(t);
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
  const yard = makeYard(t);
  const r = wrap(yard, { version: 1, mode: 'workspace-write', cwd: yard.ws }, 'sh', '-c', 'setsid sleep 1000 & echo bg');
  assert.equal(r.status, 0, r.stderr);
  assert.equal(r.stdout, 'bg\n');
  await waitFor(() => processesOf(yard.mark).length === 0, 'nothing is left', 2000);
});

test('a policy that is not understood whole runs nothing', (t) => {
  const yard = makeYard(t);
  const policy = { version: 1, mode: 'workspace-write', cwd: yard.ws };
  for (const [bad, why] of [[{ ...policy, cwd: undefined }, /"cwd" are needed/], [{ ...policy, roots: [] }, /unknown member "roots"/],
    [{ ...policy, cwd: 'relative' }, /an absolute path/], [[], /not a JSON object/], [{ ...policy, mode: 'danger-full-access' }, /needs no launcher/]]) {
    const r = wrap(yard, bad, 'touch', 'ran');
    assert.equal(r.status, 125);
    assert.match(r.stderr, why);
    assert.equal(fs.existsSync(path.join(yard.ws, 'ran')), false);
  }
  assert.equal(spawnSync(launch, ['--policy', '2', '--', 'true']).status, 2);
});
