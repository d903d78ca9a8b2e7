// `shellyard explain`: what a command would run, safe or not, dangerous or not, and why.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { spawnSync } from 'node:child_process';
import test from 'node:test';
import { has, makeYard, mustRun, program } from './lib/client.mjs';

const limit = { timeout: 60_000 };

function explain(yard, args, options = {}) {
  const r = spawnSync(program, ['explain', '--json', ...args], { cwd: yard.ws, env: { ...yard.env, ...options.env }, encoding: 'utf8' });
  assert.equal(r.status, 0, r.stderr);
  return JSON.parse(r.stdout);
}

test('a script is told as commands, with a verdict and its rule for each', limit, (t) => {
  const yard = makeYard();
  const told = explain(yard, ['--script', "ls -la 'a b' 2>/dev/null | head; find . -name x -delete"]);
  assert.equal(told.form, 'plain');
  assert.deepEqual(told.commands, [['ls', '-la', 'a b'], ['head'], ['find', '.', '-name', 'x', '-delete']]);
  assert.equal(told.safe, false);
  assert.deepEqual(told.verdicts.map((v) => [v.verdict, v.rule, v.argument]),
    [['safe', 'safe.listed', ''], ['safe', 'safe.listed', ''], ['not safe', 'find.action', '-delete']]);
  assert.equal(told.danger, 'dangerous');
  assert.deepEqual(told.findings.map((f) => [f.level, f.rule]), [['dangerous', 'find.delete']]);
});

test('the file that would run decides, and nothing runs', limit, (t) => {
  const yard = makeYard();
  const bin = path.join(yard.ws, 'bin');
  fs.mkdirSync(bin);
  for (const file of [path.join(yard.ws, 'cat'), path.join(bin, 'cat')]) {
    fs.writeFileSync(file, `#!/bin/sh\ntouch ${yard.ws}/pwn\n`, { mode: 0o755 });
  }
  assert.equal(explain(yard, ['--', 'cat', 'a']).safe, true);
  assert.equal(explain(yard, ['--', '/bin/cat', 'a']).safe, true);
  assert.equal(explain(yard, ['--', './cat', 'a']).verdicts[0].rule, 'program.untrusted');
  assert.equal(explain(yard, ['--', path.join(yard.ws, 'cat')]).safe, false);
  assert.equal(explain(yard, ['--', 'cat', 'a'], { env: { PATH: `${bin}:${yard.env.PATH}` } }).safe, false);
  assert.equal(explain(yard, ['--script', 'echo $(./cat) `./cat`; ./cat']).safe, false);
  assert.equal(fs.existsSync(path.join(yard.ws, 'pwn')), false);
});

test('what would lose the workspace, a home or the system is a catastrophe', limit, (t) => {
  const yard = makeYard();
  const level = (script) => explain(yard, ['--script', script]).danger;
  for (const script of ['rm -rf /', 'rm -rf ~', 'rm -rf "$HOME"/*', 'rm -rf *', `rm -rf ${yard.ws}`, 'rm -rf $X',
    'cd / && rm -rf *', "sudo sh -c 'rm -rf /'", 'find . -delete', 'cat x > /dev/sda']) {
    assert.equal(level(script), 'catastrophic', script);
  }
  for (const script of ['rm -rf build', 'cd build && rm -rf *', 'git reset --hard', 'echo > /etc/passwd']) {
    assert.equal(level(script), 'dangerous', script);
  }
  for (const script of ['rm -r build', 'ls', "echo 'rm -rf /'", 'echo > new']) {
    assert.equal(level(script), 'none', script);
  }
});

test('git is safe in a repository that starts nothing, with its environment', limit, (t) => {
  if (!mustRun(t, has('git'), 'no git here')) {
    return;
  }
  const yard = makeYard();
  const git = (...args) => assert.equal(spawnSync('git', args, { cwd: yard.ws, env: yard.env }).status, 0);
  git('init', '-q');
  const tame = explain(yard, ['--', 'git', 'status']);
  assert.equal(tame.safe, true);
  assert.ok(tame.environment.includes('GIT_OPTIONAL_LOCKS=0'));
  git('config', 'filter.x.clean', 'touch pwn');
  const wild = explain(yard, ['--', 'git', 'status']);
  assert.equal(wild.safe, false);
  assert.equal(wild.verdicts[0].rule, 'git.repository');
  assert.deepEqual(wild.environment, []);
});

test('what cannot be read is unknown, and the text shows no control characters', limit, (t) => {
  const yard = makeYard();
  const deep = explain(yard, ['--script', `${'('.repeat(10000)}ls${')'.repeat(10000)}`]);
  assert.equal(deep.safe, false);
  assert.equal(deep.danger, 'unknown');
  assert.match(deep.verdicts[0].why, /512 levels/);
  const r = spawnSync(program, ['explain', '--', 'rm', '-f', '\u202e\x1b[2J'], { cwd: yard.ws, env: yard.env, encoding: 'utf8' });
  assert.equal(r.status, 0);
  assert.doesNotMatch(r.stdout, /[\u202e\x1b]/);
  assert.match(r.stdout, /\[\\u\{202E\}\\x1b\[2J\]/);
  const two = spawnSync(program, ['explain', '--script', 'ls', 'x'], { cwd: yard.ws, env: yard.env, encoding: 'utf8' });
  assert.equal(two.status, 2);
  assert.match(two.stderr, /--script takes one word/);
});
