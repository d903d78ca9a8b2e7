// Which commands a person is asked about under unless-trusted, and what is never run unasked: the same
// through the SDK's client and through JSON Lines.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { call, makeYard, startMcp, STUCK_MS, textOf } from './lib/client.mjs';
import { openProto } from './lib/proto.mjs';

const settings = { 'approval.policy': 'unless-trusted', 'shell.path': '/bin/bash' };

/** Without forms: what needs a person is pending at once. */
async function byMcp(t, yard) {
  const server = await startMcp({ cwd: yard.ws, env: yard.env, settings });
  t.after(() => server.close());
  return async (tool, args) => {
    const r = await call(server.client, tool, args);
    return { asked: r.structuredContent?.status === 'pending_approval', text: textOf(r) };
  };
}

/** The person says no, or what `answer` says. */
async function byProto(t, yard) {
  const proto = openProto(t, yard, settings);
  let n = 0;
  return async (tool, args, answer = 'denied') => {
    const id = `c${n += 1}`;
    const of = (type) => proto.next((m) => m.type === type && m.call_id === id);
    proto.send({ type: 'function_call', name: tool, call_id: id, arguments: JSON.stringify(args) });
    const output = of('function_call_output');
    const first = await Promise.race([of('exec_approval_request'), of('apply_patch_approval_request'), output]);
    if (first.type !== 'function_call_output') {
      proto.send({ type: first.type.replace('_request', ''), id: first.id, decision: answer });
    }
    return { asked: first.type !== 'function_call_output', text: (await output).output };
  };
}

/** body(judged, yard) for each front: judged(command) → {asked, text}; call(tool, args) the same of any tool. */
function eachWay(title, body) {
  for (const [name, open] of [['SDK client', byMcp], ['JSON Lines', byProto]]) {
    test(`${title} [${name}]`, { timeout: STUCK_MS }, async (t) => {
      const yard = makeYard();
      const use = await open(t, yard);
      await body((command, ...rest) => use('shell_command', { command, login: false }, ...rest), yard, use, name);
    });
  }
}

function git(yard, ...args) {
  const r = spawnSync('git', ['-c', 'user.name=n', '-c', 'user.email=e@example.com', ...args],
    { cwd: yard.ws, env: yard.env, encoding: 'utf8' });
  assert.equal(r.status, 0, r.stderr);
}

function putFiles(yard) {
  fs.mkdirSync(path.join(yard.ws, 'src'));
  fs.writeFileSync(path.join(yard.ws, 'src/x'), 'TODO\n');
  fs.writeFileSync(path.join(yard.ws, 'a.txt'), 'a;b|c>d\n');
  git(yard, 'init', '-q');
  for (const text of ['one', 'two']) {
    fs.writeFileSync(path.join(yard.ws, 'b.md'), `${text}\n`);
    git(yard, 'add', '.');
    git(yard, 'commit', '-q', '-m', text);
  }
}

async function areAsked(judged, yard, commands) {
  for (const command of commands) {
    const r = await judged(command);
    assert.equal(r.asked, true, `${command}\n${r.text}`);
    assert.equal(fs.existsSync(path.join(yard.ws, 'pwn')), false, command);
  }
}

async function areNot(judged, commands) {
  for (const command of commands) {
    const r = await judged(command);
    assert.equal(r.asked, false, `${command}\n${r.text}`);
  }
}

eachWay('A26 the file that would run decides, not its name', async (judged, yard) => {
  putFiles(yard);
  fs.writeFileSync(path.join(yard.ws, 'cat'), `#!/bin/sh\ntouch ${path.join(yard.ws, 'pwn')}\n`, { mode: 0o755 });
  await areAsked(judged, yard, ['./cat a.txt', `${yard.ws}/cat a.txt`, '../ws/cat a.txt']);
  await areNot(judged, ['cat a.txt', '/bin/cat a.txt']);
});

eachWay('A27 all that a script would do decides', async (judged, yard) => {
  putFiles(yard);
  await areAsked(judged, yard, [
    'git log -1; touch pwn', 'git log -1 & touch pwn', 'git log -1 |& tee pwn', 'ls\ntouch pwn', 'echo $(touch pwn)',
    'echo "`touch pwn`"', 'ls <(touch pwn)', 'echo hi > pwn', 'echo hi >| pwn', 'echo hi &> pwn', 'echo hi >& pwn',
    'cat a.txt #\ntouch pwn', '{ touch pwn; }', '! touch pwn', 'if ls; then touch pwn; fi',
    'find . -maxdepth 0 -exec touch pwn {} +', 'find . -fprintf pwn x', 'find . -fls pwn -maxdepth 0', 'find . -delete',
    'echo ${x:=$(touch pwn)}',
  ]);
  assert.ok(fs.existsSync(path.join(yard.ws, 'a.txt')));
});

eachWay('A28 options by which git runs or writes something', async (judged, yard) => {
  putFiles(yard);
  await areAsked(judged, yard, [
    "git -c core.pager='touch pwn; cat' log", "git -p -c core.pager='touch pwn; cat' log", "git -c alias.z='!touch pwn' z",
    'git diff --output=pwn HEAD', 'git log --output=pwn', "git grep --open-files-in-pager='touch pwn;:' hi", 'git branch pwn',
    'git archive -o pwn HEAD', 'git config core.x y', "GIT_PAGER='touch pwn' git -p log",
  ]);
  await areNot(judged, ['git log -p -2', 'git status --short', 'git diff HEAD~1 -- a.txt', 'git show HEAD:a.txt', 'git branch --list']);
});

eachWay('A29 what is harmless is not asked about', async (judged, yard) => {
  putFiles(yard);
  await areNot(judged, [
    'ls -la 2>/dev/null', 'grep -rn TODO src 2>&1 | head -20', 'git diff --stat | grep md', 'cat a.txt && wc -l a.txt',
    "grep 'a;b|c>d' a.txt", 'echo "x > y"', 'cd src && ls', "bash -lc 'ls && pwd'", 'head -c 10 /dev/null',
  ]);
});

eachWay('A40 no patch leaves the workspace', async (judged, yard, use, way) => {
  const victim = path.join(yard.outside, 'victim');
  fs.writeFileSync(victim, 'kept\n');
  fs.symlinkSync(victim, path.join(yard.ws, 'notes.md'));
  fs.symlinkSync(yard.outside, path.join(yard.ws, 'link'));
  for (const part of [`*** Add File: ${yard.outside}/p1\n+x`, '*** Add File: ../outside/p2\n+x', '*** Update File: notes.md\n@@\n-kept\n+lost',
    '*** Add File: link/newdir/p3\n+x', '*** Delete File: link/victim']) {
    const r = await use('apply_patch', { patch: `*** Begin Patch\n*** Add File: good\n+x\n${part}\n*** End Patch\n` });
    assert.match(r.text, way === 'SDK client' ? /^patch not applied: a person has to approve it/ : /^patch rejected: a person denied it/, part);
    assert.deepEqual([fs.readdirSync(yard.outside), fs.readFileSync(victim, 'utf8'), fs.existsSync(path.join(yard.ws, 'good'))],
      [['victim'], 'kept\n', false], part);
  }
});

test('A30 "for this session" means the same command in the same directory [JSON Lines]', { timeout: STUCK_MS }, async (t) => {
  const yard = makeYard();
  const use = await byProto(t, yard);
  const run = (command, dir, more = {}, answer = 'denied') =>
    use('shell_command', { command, login: false, workdir: path.join(yard.ws, dir), ...more }, answer);
  for (const dir of ['p1', 'p2']) {
    fs.mkdirSync(path.join(yard.ws, dir));
    fs.writeFileSync(path.join(yard.ws, dir, 'Makefile'), 'test:\n\t@echo made\n');
  }
  assert.equal((await run('make test', 'p1', {}, 'approved_for_session')).asked, true);
  assert.equal((await run('make test', 'p1')).asked, false);
  assert.equal((await run('make test', 'p2')).asked, true);
  assert.equal((await run('make test && rm -rf x', 'p1')).asked, true);
});
