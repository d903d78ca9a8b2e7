// apply_patch: as a tool over MCP and JSON Lines, and as a command of a model that calls it through a shell.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import readline from 'node:readline';
import test from 'node:test';
import { call, hasFull, makeYard, program, startMcp, textOf } from './lib/client.mjs';

const limit = { timeout: 120_000 };
const patch = (...lines) => ['*** Begin Patch', ...lines, '*** End Patch', ''].join('\n');
const addition = (name, text = 'hi') => patch(`*** Add File: ${name}`, `+${text}`);

async function open(t, settings = {}) {
  const yard = makeYard();
  const server = await startMcp({
    cwd: yard.ws, env: yard.env,
    settings: { 'sandbox.mode': 'workspace-write', 'shell.path': '/bin/bash', ...settings },
  });
  t.after(() => server.close());
  return { yard, apply: (input, more = {}) => call(server.client, 'apply_patch', { input, ...more }), ...server };
}

const write = (yard, name, text) => {
  fs.mkdirSync(path.dirname(path.join(yard.ws, name)), { recursive: true });
  fs.writeFileSync(path.join(yard.ws, name), text);
};
const read = (yard, name) => fs.readFileSync(path.join(yard.ws, name), 'utf8');
const exists = (yard, name) => fs.existsSync(path.join(yard.ws, name));

/** What an answer says was refused: "operation object layer confidence", and the line that would allow each. */
const refusals = (result) => (result.structuredContent.denials ?? []).map((d) => ({
  what: [d.operation, d.object, d.layer, d.confidence].join(' '), fix: d.fix, rule: d.rule,
}));

/** All below a directory, with what the files hold. */
function tree(dir) {
  return fs.readdirSync(dir, { recursive: true, withFileTypes: true }).map((e) => {
    const full = path.join(e.parentPath ?? e.path, e.name);
    return `${full} ${e.isFile() ? `${fs.statSync(full).mode} ${fs.readFileSync(full, 'latin1')}` : e.isSymbolicLink() ? fs.readlinkSync(full) : ''}`;
  }).sort().join('\n');
}

test('a patch adds, changes, moves and deletes, and the answer says what', limit, async (t) => {
  const { yard, apply } = await open(t);
  write(yard, 'a.txt', 'one\r\ntwo\r\nthree');
  write(yard, 'old/b.sh', 'echo b\n');
  fs.chmodSync(path.join(yard.ws, 'old/b.sh'), 0o755);
  write(yard, 'c.txt', 'gone\n');
  const result = await apply(patch(
    '*** Add File: new/dir/d.txt', '+hello', '*** Update File: a.txt', '@@', '-two', '+TWO',
    '*** Update File: old/b.sh', '*** Move to: bin/b.sh', '@@', '-echo b', '+echo B', '*** Delete File: c.txt',
  ));
  assert.notEqual(result.isError, true, textOf(result));
  assert.equal(textOf(result), 'Success. Updated the following files:\nA new/dir/d.txt\nM a.txt\nM bin/b.sh\nD c.txt\n');
  assert.deepEqual(result.structuredContent.changes, [
    { action: 'add', path: 'new/dir/d.txt' }, { action: 'update', path: 'a.txt' },
    { action: 'move', path: 'bin/b.sh', from: 'old/b.sh' }, { action: 'delete', path: 'c.txt' },
  ]);
  assert.equal(result.structuredContent.exit_code, 0);
  assert.equal(result.structuredContent.sandbox.mode, 'workspace-write');
  assert.equal(read(yard, 'a.txt'), 'one\r\nTWO\r\nthree');
  assert.equal(fs.statSync(path.join(yard.ws, 'bin/b.sh')).mode & 0o777, 0o755);
  assert.equal(read(yard, 'new/dir/d.txt'), 'hello\n');
  assert.deepEqual([exists(yard, 'old/b.sh'), exists(yard, 'c.txt')], [false, false]);
});

test('a command finds the files of a patch, and a patch those of a command', limit, async (t) => {
  const { yard, client, apply } = await open(t);
  await apply(addition('x', 'from a patch'));
  const seen = await call(client, 'shell_command', { command: 'cat x && echo "from a command" > y && echo more >> x' });
  assert.equal(seen.structuredContent.output, 'from a patch\n');
  assert.notEqual((await apply(patch('*** Update File: y', '@@', '-from a command', '+both'))).isError, true);
  assert.deepEqual([read(yard, 'x'), read(yard, 'y')], ['from a patch\nmore\n', 'both\n']);
});

test('nothing changes when any part does not fit, and the whole reason is told', limit, async (t) => {
  const { yard, apply } = await open(t);
  write(yard, 'a.txt', 'one\n');
  const before = tree(yard.ws);
  for (const [lines, reason] of [
    [['*** Update File: a.txt', '@@', '-zwei', '+drei'], /Failed to find expected lines in a\.txt:\nzwei\n/],
    [['*** Update File: a.txt', '@@ nowhere', '-one', '+drei'], /Failed to find context 'nowhere' in a\.txt/],
    [['*** Update File: none.txt', '@@', '-one'], /Failed to read file to update none\.txt: No such file/],
    [['*** Frobnicate File: a.txt'], /invalid hunk at line 4, '\*\*\* Frobnicate File: a\.txt' is not a valid hunk header/],
  ]) {
    const result = await apply(patch('*** Add File: good.txt', '+x', ...lines));
    assert.equal(result.isError, true);
    assert.match(textOf(result), /apply_patch verification failed: /);
    assert.match(textOf(result), reason);
    assert.equal(tree(yard.ws), before);
  }
  for (const [args, reason] of [
    [{}, /'input' must be a string with the patch.* not absent/],
    [{ input: 7 }, /'input' must be a string/],
    [{ input: '' }, /first line of the patch must be '\*\*\* Begin Patch'/],
    [{ input: addition('x\u0000y') }, /NUL byte/],
    [{ input: addition('x'), dryrun: true }, /unknown argument 'dryrun': did you mean 'dry_run'/],
    [{ input: addition('x'), dry_run: 'yes' }, /'dry_run' must be true or false/],
    [{ input: addition('x'), workdir: 'none' }, /does not exist/],
  ]) {
    const result = await apply(undefined, args);
    assert.equal(result.isError, true);
    assert.match(textOf(result), reason);
  }
  assert.equal(tree(yard.ws), before);
});

test('dry_run changes nothing and shows the difference', limit, async (t) => {
  const { yard, apply } = await open(t);
  write(yard, 'a.txt', 'one\ntwo\n');
  const before = tree(yard.ws);
  const input = patch('*** Update File: a.txt', '@@', '-two', '+TWO', '*** Add File: b.txt', '+new');
  const dry = await apply(input, { dry_run: true });
  assert.equal(tree(yard.ws), before);
  assert.equal(dry.structuredContent.dry_run, true);
  assert.match(textOf(dry), /^Nothing was changed \(dry_run\)/);
  assert.ok(textOf(dry).endsWith([
    'diff --git a/a.txt b/a.txt', '--- a/a.txt', '+++ b/a.txt', '@@ -1,2 +1,2 @@', ' one', '-two', '+TWO',
    'diff --git a/b.txt b/b.txt', 'new file mode 100644', '--- /dev/null', '+++ b/b.txt', '@@ -0,0 +1,1 @@', '+new', '',
  ].join('\n')), textOf(dry));
  assert.notEqual((await apply(input)).isError, true, 'the control: without it they change');
  assert.equal(read(yard, 'a.txt'), 'one\nTWO\n');
});

for (const tier of ['full', 'no-namespace']) {
  test(`no path leads out of the workspace, ${tier}`, limit, async (t) => {
    const { yard, apply } = await open(t, { 'sandbox.tier': tier });
    if (tier === 'full' && !hasFull(t, yard)) {
      return;
    }
    const victim = path.join(yard.outside, 'victim');
    fs.writeFileSync(victim, 'precious\n');
    fs.symlinkSync(victim, path.join(yard.ws, 'notes.md'));
    fs.symlinkSync(yard.outside, path.join(yard.ws, 'link'));
    write(yard, 'mine', 'mine\n');
    const all = () => tree(yard.ws) + tree(yard.outside);
    const before = all();
    for (const [what, ...lines] of [
      ['write p1', `*** Add File: ${yard.outside}/p1`, '+x'],
      ['write p2', '*** Add File: ../outside/p2', '+x'],
      ['write victim', '*** Update File: notes.md', '@@', '-precious', '+x'],
      ['write newdir/p3', '*** Add File: link/newdir/p3', '+x'],
      ['delete victim', '*** Delete File: link/victim'],
      ['write p4', '*** Update File: mine', '*** Move to: link/p4', '@@', '-mine', '+x'],
    ]) {
      const result = await apply(patch('*** Add File: fine.txt', '+x', ...lines));
      assert.equal(result.isError, true);
      assert.equal(result.structuredContent.status, 'denied');
      assert.match(textOf(result), /writing outside of the project; rejected by user approval settings/);
      assert.equal(all(), before);
      assert.deepEqual(refusals(result), [{
        what: `${what.replace(' ', ` ${yard.outside}/`)} policy exact`, fix: `sandbox.writable_roots: ["${yard.outside}"]`,
        rule: 'workspace-write: it is below no writable root',
      }]);
      assert.match(textOf(result), /\[sandbox: \S+ \S+ was refused by policy \(exact\); to allow it: sandbox\.writable_roots: /);
      assert.match(result.structuredContent.escalation, /request_access/);
    }
    assert.notEqual((await apply(addition('fine.txt'))).isError, true, 'the control');
  });

  test(`what commands may not touch patches may not, ${tier}`, limit, async (t) => {
    const { yard, apply } = await open(t, { 'sandbox.tier': tier });
    if (tier === 'full' && !hasFull(t, yard)) {
      return;
    }
    write(yard, '.git/HEAD', 'ref: refs/heads/main\n');
    write(yard, '.git/config', '[core]\n');
    fs.mkdirSync(path.join(yard.ws, '.git/objects'));
    fs.mkdirSync(path.join(yard.ws, '.git/refs'));
    for (const [lines, rule] of [
      [['*** Add File: .git/hooks/pre-commit', '+#!/bin/sh'], /\.git\/hooks/],
      [['*** Update File: .git/config', '@@', '-[core]', '+[alias]'], /\.git\/config/],
      [['*** Add File: sub/.vscode/tasks.json', '+{}'], /\.vscode/],
      [['*** Add File: .envrc', '+evil'], /\.envrc/],
      [['*** Add File: deep/.git', '+gitdir: /x'], /\.git-file/],
    ]) {
      const result = await apply(patch('*** Add File: fine.txt', '+x', ...lines));
      assert.equal(result.isError, true, `${lines[0]}: ${textOf(result)}`);
      assert.equal(result.structuredContent.status, 'denied');
      assert.match(textOf(result), rule);
      assert.match(textOf(result), /sandbox\.unprotected_names/);
      const [found, ...more] = refusals(result);
      assert.match(found.what, new RegExp(`^write ${yard.ws}/${lines[0].split(': ')[1]} guard exact$`));
      assert.match(found.fix, new RegExp(`^sandbox\\.unprotected_names: \\[.*${rule.source}`));
      assert.equal(more.length, 0);
      assert.equal(result.structuredContent.escalation, undefined, 'nobody may grant that');
      assert.equal(exists(yard, 'fine.txt'), false);
    }
    assert.equal(read(yard, '.git/config'), '[core]\n');
    assert.notEqual((await apply(addition('.gitignore'))).isError, true, 'the control');
  });
}

test('secrets are neither shown nor changed', limit, async (t) => {
  const yard = makeYard();
  write(yard, 'key.secret', 'hunter2\n');
  for (const denied of [true, false]) {
    const settings = { 'sandbox.mode': 'workspace-write', ...(denied ? { 'sandbox.deny_read': `["${yard.ws}/key.secret"]` } : {}) };
    const server = await startMcp({ cwd: yard.ws, env: yard.env, settings });
    const result = await call(server.client, 'apply_patch', { input: patch('*** Delete File: key.secret'), dry_run: true });
    assert.equal(result.isError === true, denied, textOf(result));
    assert.equal(textOf(result).includes('hunter2'), !denied);
    assert.deepEqual(refusals(result).map((r) => r.what), denied ? [`read ${yard.ws}/key.secret policy exact`] : []);
    await server.close();
  }
});

test('one answer tells all that was refused, in whatever form the patch came, and its line allows it', limit, async (t) => {
  const { yard, apply, client } = await open(t);
  const file = path.join(yard.outside, 'there');
  fs.writeFileSync(file, 'old\n');
  fs.mkdirSync(path.join(yard.ws, '.git/hooks'), { recursive: true });
  const input = patch(`*** Update File: ${file}`, '@@', '-old', '+new', '*** Add File: fine', '+x', '*** Add File: .git/hooks/post-commit', '+x',
    '*** Add File: /tmp/not-here', '+x', '*** Delete File: nowhere');
  const wanted = [
    `write ${file} policy exact`, '/tmp/not-here', `write ${yard.ws}/.git/hooks/post-commit guard exact`,
  ];
  for (const result of [
    await apply(input),
    await call(client, 'shell', { command: ['apply_patch', input] }),
    await call(client, 'shell_command', { command: `apply_patch <<'EOF'\n${input}EOF` }),
    await call(client, 'exec_command', { cmd: `apply_patch <<'EOF'\n${input}EOF` }),
  ]) {
    assert.equal(result.structuredContent.status, 'denied', textOf(result));
    const found = refusals(result);
    assert.deepEqual(found.map((r, i) => r.what.includes(wanted[i])), [true, true, true], textOf(result));
    assert.deepEqual([found[1].fix, found[1].rule.startsWith('no place for patches: ')], [undefined, true], 'no line makes /tmp one');
    assert.match(textOf(result), /there: writing outside of the project/, 'the first is the error');
    assert.equal(fs.readFileSync(file, 'utf8') + exists(yard, 'fine'), 'old\nfalse');
  }
  const [key, value] = refusals(await apply(input))[0].fix.split(': ');
  const wider = await startMcp({ cwd: yard.ws, env: yard.env, settings: { 'sandbox.mode': 'workspace-write', [key]: value } });
  t.after(() => wider.close());
  const done = await call(wider.client, 'apply_patch', { input: patch(`*** Update File: ${file}`, '@@', '-old', '+new') });
  assert.notEqual(done.isError, true, textOf(done));
  assert.equal(fs.readFileSync(file, 'utf8'), 'new\n');
});

test('the mode of the sandbox decides', limit, async (t) => {
  for (const [mode, inside, outside] of [
    ['read-only', false, false], ['workspace-write', true, false], ['danger-full-access', true, true],
  ]) {
    const { yard, apply } = await open(t, { 'sandbox.mode': mode });
    const a = await apply(addition('a'));
    const b = await apply(addition(`${yard.outside}/b`));
    assert.deepEqual([a.isError !== true, b.isError !== true], [inside, outside], `${mode}: ${textOf(a)} ${textOf(b)}`);
    assert.deepEqual([exists(yard, 'a'), fs.existsSync(path.join(yard.outside, 'b'))], [inside, outside]);
    if (mode === 'read-only') {
      assert.match(textOf(a), /writing is blocked by read-only sandbox/);
      assert.deepEqual(refusals(a).map((r) => [r.what, r.fix]), [[`write ${yard.ws}/a policy exact`, 'sandbox.mode: workspace-write']]);
      assert.match(refusals(b)[0].fix, /^sandbox\.writable_roots: .*sandbox\.mode: workspace-write$/);
      assert.equal((await apply(addition('a'), { dry_run: true })).isError, true);
    }
  }
});

test('where a person must be asked nothing is changed before they say yes', limit, async (t) => {
  const { yard, apply } = await open(t, { 'approval.policy': 'unless-trusted' });
  const asked = await apply(addition('a'));
  assert.equal(asked.isError, true);
  assert.equal(asked.structuredContent.status, 'pending_approval');
  assert.match(textOf(asked), /a person has to approve it first.*\nNothing was changed\.\n$/s);
  assert.equal(exists(yard, 'a'), false);
  execFileSync(program, ['approvals', 'approve', asked.structuredContent.approval.id], { cwd: yard.ws, env: yard.env });
  const other = await apply(addition('b'));
  assert.equal(other.structuredContent.status, 'pending_approval', 'the yes was for that patch alone');
  const result = await apply(addition('a'));
  assert.notEqual(result.isError, true, textOf(result));
  assert.deepEqual([exists(yard, 'a'), exists(yard, 'b')], [true, false]);
});

test('what was ambiguous or fitted loosely is said', limit, async (t) => {
  const { yard, apply } = await open(t);
  write(yard, 'a.txt', '}\nx\n}\n  y \n');
  const result = await apply(patch('*** Update File: a.txt', '@@', '-}', '+]', '@@', '-y', '+z'));
  assert.match(textOf(result), /Note: a\.txt: ambiguous: the chunk at line 3 of the patch fits at line 1, which was used, and at 3;/);
  assert.match(textOf(result), /Note: a\.txt: the chunk at line 6 of the patch fits at line 4 but for blanks around lines/);
  assert.equal(result.structuredContent.notes.length, 2);
});

const here = (word, body, quote = "'") => `<<${quote}${word}${quote}\n${body}${word}\n`;

test('a patch in a command is applied without a shell', limit, async (t) => {
  const { yard, client } = await open(t);
  fs.mkdirSync(path.join(yard.ws, 'sub'));
  fs.mkdirSync(path.join(yard.ws, 'a b'));
  const bash = (script) => ['shell', { command: ['bash', '-lc', script] }];
  const script = (command) => ['shell_command', { command }];
  for (const [[tool, args], name] of [
    [bash(`apply_patch ${here('PATCH-1', addition('f1'))}`), 'f1'],
    [bash(`applypatch ${here('E.O.F', addition('f2'), '"')}`), 'f2'],
    [bash(`cd sub && apply_patch ${here('EOF', addition('x.txt'))}`), 'sub/x.txt'],
    [['shell', { command: ['apply_patch', addition('f4')] }], 'f4'],
    [script(`apply_patch ${here('EOF', addition('f5', '$HOME `id`'), '')}`), 'f5'],
    [script(`cd 'a b' && apply_patch ${here('EOF', addition('f6'))}`), 'a b/f6'],
    [['shell', { command: ['apply_patch', addition('f7')], workdir: 'sub' }], 'sub/f7'],
    [['container.exec', { command: ['bash', '-lc', `apply_patch ${here('EOF', addition('f8'))}`] }], 'f8'],
  ]) {
    const result = await call(client, tool, args);
    assert.notEqual(result.isError, true, textOf(result));
    assert.equal(textOf(result), `Success. Updated the following files:\nA ${path.basename(name)}\n`);
    assert.equal(result.structuredContent.exit_code, 0);
    assert.equal(read(yard, name), name === 'f5' ? '$HOME `id`\n' : 'hi\n');
  }
});

test('a patch in a command that does not fit changes nothing; beside other words it is a command', limit, async (t) => {
  const { yard, client } = await open(t);
  write(yard, 'a.txt', 'one\n');
  const bad = await call(client, 'shell_command', { command: `apply_patch ${here('EOF', patch('*** Update File: a.txt', '@@', '-two', '+x'))}` });
  assert.equal(bad.isError, true);
  assert.match(textOf(bad), /apply_patch verification failed: Failed to find expected lines in a\.txt:\ntwo/);
  const rubbish = await call(client, 'shell', { command: ['apply_patch', 'rubbish'] });
  assert.equal(rubbish.isError, true);
  assert.match(textOf(rubbish), /apply_patch verification failed: Invalid patch: The first line/);
  const bare = await call(client, 'shell', { command: ['bash', '-lc', addition('x')] });
  assert.equal(bare.isError, true);
  assert.match(textOf(bare), /patch detected without explicit call to apply_patch\. Rerun as \["apply_patch", "<patch>"\]/);
  const escalated = await call(client, 'shell', { command: ['apply_patch', addition('x')], sandbox_permissions: 'require_escalated' });
  assert.equal(escalated.isError, true);
  const beside = await call(client, 'shell_command', { command: `echo first; apply_patch ${here('EOF', addition('x'))}` });
  assert.notEqual(beside.isError, true);
  assert.match(beside.structuredContent.output, /^first\n.*not found/s, 'a shell ran it, where there is no such program');
  assert.equal(exists(yard, 'x'), false);
  assert.equal(read(yard, 'a.txt'), 'one\n');
});

test('JSON Lines: as a custom tool call, a function call and a command, with events', limit, async (t) => {
  const yard = makeYard();
  const child = spawn(program, ['proto', '-c', 'shell.path=/bin/bash'], { cwd: yard.ws, env: yard.env, stdio: ['pipe', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  const seen = [];
  const lines = readline.createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const answer = async (id) => {
    for (;;) {
      const { value, done } = await lines.next();
      assert.ok(!done, 'it ended');
      seen.push(JSON.parse(value));
      if (/_output$/.test(seen.at(-1).type) && seen.at(-1).call_id === id && !/delta/.test(seen.at(-1).type)) {
        return seen.at(-1);
      }
    }
  };
  const send = (message) => child.stdin.write(`${JSON.stringify(message)}\n`);
  send({ type: 'custom_tool_call', name: 'apply_patch', call_id: 'c1', input: addition('one') });
  assert.deepEqual(await answer('c1'), { type: 'custom_tool_call_output', call_id: 'c1', output: 'Success. Updated the following files:\nA one\n' });
  assert.equal(read(yard, 'one'), 'hi\n');
  const events = seen.filter((m) => m.call_id === 'c1').map((m) => m.type);
  assert.deepEqual([events.at(0), events.at(-1)], ['exec_command_begin', 'custom_tool_call_output']);
  assert.equal(seen.find((m) => m.type === 'exec_command_begin').command[0], 'apply_patch');
  send({ type: 'function_call', name: 'apply_patch', call_id: 'c2', arguments: JSON.stringify({ input: addition('two') }) });
  assert.equal((await answer('c2')).output, 'Success. Updated the following files:\nA two\n');
  send({ type: 'local_shell_call', call_id: 'c3', action: { type: 'exec', command: ['bash', '-lc', `apply_patch ${here('EOF', addition('three'))}`] } });
  assert.equal((await answer('c3')).output, 'Success. Updated the following files:\nA three\n');
  send({ type: 'custom_tool_call', name: 'apply_patch', call_id: 'c4', input: 'rubbish' });
  assert.match((await answer('c4')).output, /apply_patch verification failed: Invalid patch/);
});

test('files are the workspace owner\'s, also when made by root', limit, async (t) => {
  const isRoot = process.getuid() === 0;
  const yard = makeYard();
  write(yard, 'roots', 'one\n');
  fs.chmodSync(path.join(yard.ws, 'roots'), 0o644);
  if (isRoot) {
    fs.chmodSync(yard.dir, 0o755);
    fs.chownSync(yard.ws, 12345, 12346);
  }
  const server = await startMcp({ cwd: yard.ws, env: yard.env, settings: { 'sandbox.mode': 'workspace-write' } });
  t.after(() => server.close());
  const made = await call(server.client, 'apply_patch', { input: addition('d/f') });
  assert.notEqual(made.isError, true, textOf(made));
  assert.equal(fs.statSync(path.join(yard.ws, 'd/f')).uid, isRoot ? 12345 : process.getuid());
  const other = await call(server.client, 'apply_patch', { input: patch('*** Update File: roots', '@@', '-one', '+two') });
  assert.equal(other.isError ?? false, isRoot, textOf(other));
  assert.match(textOf(other), isRoot ? /Permission denied/ : /Success/);
});
