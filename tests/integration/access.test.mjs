// request_access: the narrowest widening, seen by a person before they answer, in force when the
// answer says so, and no wider and no longer than that. Each thing that works afterwards was refused
// before, and what is beside it still is.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { call, has, hasFull, listen, makeYard, mustRun, program, STUCK_MS } from './lib/client.mjs';
import { says, startAsked } from './lib/person.mjs';
import { openProto } from './lib/proto.mjs';
import { hasSystem, underSystem } from './lib/system.mjs';

const limit = { timeout: STUCK_MS };

/** A server, and `ask(access, object)` for its tool. */
async function open(t, options) {
  const server = await startAsked(t, options);
  return {
    ...server,
    ask: (access, object, more = {}) => server.tool('request_access', { access, object, justification: 'the test wants it', ...more }),
  };
}

function cli(yard, args) {
  const r = spawnSync(program, args, { cwd: yard.dir, env: yard.env, encoding: 'utf8' });
  return { code: r.status, out: r.stdout, err: r.stderr };
}

function inTiers(name, fn) {
  for (const tier of ['no-namespace', 'full']) {
    test(`${name} (${tier})`, limit, async (t) => {
      if (tier !== 'full' || hasFull(t, makeYard())) {
        await fn(t, { 'sandbox.tier': tier });
      }
    });
  }
}

inTiers('a directory: for the session, that one and none beside it', async (t, settings) => {
  const { run, ask, asked, yard } = await open(t, { answer: says('session'), settings });
  const dir = path.join(yard.outside, 'wanted');
  const beside = path.join(yard.outside, 'beside');
  fs.mkdirSync(dir);
  fs.mkdirSync(beside);
  assert.notEqual((await run(`echo 1 > ${dir}/a`)).exit_code, 0, 'the control: refused before');
  const r = await ask('write', dir, { scope: 'once' });
  assert.equal(r.status, 'exited', r.text);
  assert.equal(r.applied, true);
  assert.equal(r.scope, 'session', 'the person decides, not the wish');
  assert.deepEqual(r.access.gains, [{ right: 'write', object: dir }]);
  assert.ok(r.access.kept.includes('.git'), JSON.stringify(r.access));
  assert.match(asked[0].message, new RegExp(`\\+ write ${dir}, and all below`));
  assert.match(asked[0].message, /Stay protected below: .*\.git/);
  assert.match(asked[0].message, /the test wants it/);
  assert.deepEqual(asked[0].requestedSchema.properties.decision.enum, ['deny', 'once', 'session', 'rule']);
  for (let i = 0; i < 2; i += 1) {
    assert.equal((await run(`echo ${i} > ${dir}/a && mkdir -p ${dir}/sub && touch ${dir}/sub/b`)).exit_code, 0, 'in force');
  }
  assert.equal(fs.readFileSync(`${dir}/a`, 'utf8'), '1\n');
  assert.notEqual((await run(`touch ${beside}/a`)).exit_code, 0, 'not beside it');
  assert.notEqual((await run(`touch ${yard.outside}/a`)).exit_code, 0, 'not above it');
  assert.notEqual((await run(`mkdir ${dir}/.vscode && touch ${dir}/.vscode/x; test -e ${dir}/.vscode/x`)).exit_code === 0
    && fs.existsSync(`${dir}/.vscode/x`), true, 'protected names stay');
  const again = await ask('write', dir);
  assert.equal(again.already_allowed, true, again.text);
  assert.equal(again.applied, false);
  assert.equal(asked.length, 1, 'nobody is asked for what is allowed');
});

inTiers('what would be refused all the same is not asked about, with the reason', async (t, settings) => {
  const yard = makeYard();
  const [hidden, plain] = ['hidden', 'plain'].map((name) => path.join(yard.outside, name));
  fs.mkdirSync(hidden);
  fs.mkdirSync(plain);
  fs.writeFileSync(path.join(plain, 'secret'), 'x');
  const denied = [hidden, path.join(plain, 'secret')];
  const { ask, asked } = await open(t, { yard, answer: says('session'), settings: { ...settings, 'sandbox.deny_read': JSON.stringify(denied) } });
  for (const object of denied) {
    const r = await ask('write', object);
    assert.equal(r.status, 'denied', r.text);
    assert.equal(r.applied, false);
    assert.match(r.error, /the sandbox would refuse it all the same \(sandbox\.deny_read|lies below a writable root/);
  }
  // Without mounts a root can't hold something hidden at all.
  const around = await ask('write', plain);
  assert.equal(around.applied, settings['sandbox.tier'] === 'full', around.text);
  assert.equal(asked.length, around.applied ? 1 : 0, 'who was asked was asked about what is applied');
  const other = path.join(yard.outside, 'other');
  fs.mkdirSync(other);
  assert.equal((await ask('write', other)).applied, true, 'the control');
});

inTiers('one file: its content, not its neighbours', async (t, settings) => {
  const { run, ask, yard } = await open(t, { answer: says('session'), settings });
  const file = path.join(yard.outside, 'file');
  fs.writeFileSync(file, 'old\n');
  fs.writeFileSync(`${file}2`, 'old\n');
  assert.notEqual((await run(`echo new > ${file}`)).exit_code, 0);
  const r = await ask('write', file);
  assert.equal(r.applied, true, r.text);
  assert.equal((await run(`echo new > ${file}`)).exit_code, 0);
  assert.notEqual((await run(`echo new > ${file}2`)).exit_code, 0);
  assert.equal(fs.readFileSync(file, 'utf8'), 'new\n');
  assert.equal(fs.readFileSync(`${file}2`, 'utf8'), 'old\n');
});

inTiers('once is for the next command that begins', async (t, settings) => {
  const { run, ask, asked, yard } = await open(t, { answer: says('once'), settings });
  const r = await ask('write', yard.outside, { scope: 'rule' });
  assert.equal(r.applied, true, r.text);
  assert.equal(r.scope, 'once');
  assert.equal((await run('no-such-shell-here', { workdir: `${yard.ws}/none` })).status, 'failed', 'one that does not begin');
  assert.equal((await run(`touch ${yard.outside}/a`)).exit_code, 0, 'the next one');
  assert.notEqual((await run(`touch ${yard.outside}/b`)).exit_code, 0, 'it is used up');
  assert.equal((await ask('write', yard.outside)).applied, true);
  assert.equal(asked.length, 2, 'asked anew');
});

inTiers('a rule holds in later sessions of that workspace, until it is taken back', async (t, settings) => {
  const yard = makeYard();
  const first = await open(t, { answer: says('rule'), settings, yard });
  const r = await first.ask('write', yard.outside, { scope: 'rule' });
  assert.equal(r.approval.decision, 'approved_with_rule', r.text);
  assert.equal(r.applied, true);
  assert.equal((await first.run(`touch ${yard.outside}/a`)).exit_code, 0);
  await first.close();
  const second = await open(t, { settings, yard });
  assert.equal((await second.run(`touch ${yard.outside}/b`)).exit_code, 0, 'after a restart');
  const elsewhere = await open(t, { settings, yard: { ...yard, ws: yard.home } });
  assert.notEqual((await elsewhere.run(`touch ${yard.outside}/c`)).exit_code, 0, 'another workspace');
  const narrow = await open(t, { settings: { ...settings, 'sandbox.mode': 'read-only' }, yard });
  assert.notEqual((await narrow.run(`touch ${yard.outside}/c`)).exit_code, 0, 'a narrower mode');
  assert.match(cli(yard, ['rules', 'list']).out, new RegExp(`access  write ${yard.outside}, in ${yard.ws}`));
  const [rule] = JSON.parse(cli(yard, ['rules', 'list', '--json']).out).accesses;
  assert.deepEqual([rule.kind, rule.object, rule.workspace, rule.mode], ['write', yard.outside, yard.ws, 'workspace-write']);
  const gone = cli(yard, ['rules', 'remove', rule.id]);
  assert.equal(gone.code, 0, gone.err);
  assert.notEqual((await second.run(`touch ${yard.outside}/d`)).exit_code, 0, 'taken back at once');
});

inTiers('what a rule names and is not there any more, or is a link now, widens nothing and stops nobody', async (t, settings) => {
  const { run, ask, yard } = await open(t, { answer: says('session'), settings });
  const dir = path.join(yard.outside, 'wanted');
  const other = path.join(yard.outside, 'other');
  fs.mkdirSync(dir);
  fs.mkdirSync(other);
  assert.equal((await ask('write', dir)).applied, true);
  assert.equal((await run(`touch ${dir}/a`)).exit_code, 0);
  fs.rmSync(dir, { recursive: true });
  assert.equal((await run('echo on')).output, 'on\n');
  fs.symlinkSync(other, dir);
  assert.notEqual((await run(`touch ${dir}/b`)).exit_code, 0);
  assert.deepEqual(fs.readdirSync(other), []);
});

inTiers('a hidden file can be read after a warning, its neighbours can not', async (t, settings) => {
  const { run, ask, asked, yard } = await open(t, { answer: says('once'), settings });
  for (const name of ['.netrc', '.pgpass']) {
    fs.writeFileSync(path.join(yard.home, name), `secret of ${name}\n`);
  }
  const cat = (name) => run(`cat ${yard.home}/${name}`);
  assert.doesNotMatch((await cat('.netrc')).output, /secret of/, 'the control: hidden');
  const r = await ask('read', `${yard.home}/.netrc`, { scope: 'session' });
  assert.equal(r.applied, true, r.text);
  assert.deepEqual(r.access.gains, [{ right: 'read', object: `${yard.home}/.netrc`, secret: true }]);
  assert.match(asked[0].message, /WARNING: +SECRETS/);
  assert.equal(asked[0].requestedSchema.properties.decision.enum.includes('rule'), false);
  assert.doesNotMatch((await run(`cat ${yard.home}/.pgpass`)).output, /secret of/);
  await ask('read', `${yard.home}/.netrc`, { scope: 'session' });
  assert.match((await cat('.netrc')).output, /secret of \.netrc/);
  assert.doesNotMatch((await cat('.netrc')).output, /secret of/, 'once');
  const plain = await ask('read', `${yard.outside}`);
  assert.equal(plain.already_allowed, true);
});

inTiers('what is in a hidden directory comes with all of it, and the person sees that', async (t, settings) => {
  const { run, ask, asked, yard } = await open(t, { answer: says('session'), settings });
  const tool = path.join(yard.home, '.aws/tool');
  fs.mkdirSync(path.dirname(tool));
  fs.writeFileSync(tool, '#!/bin/sh\necho ran\n', { mode: 0o755 });
  assert.notEqual((await run(tool)).output, 'ran\n');
  const r = await ask('run', tool);
  assert.equal(r.applied, true, r.text);
  assert.deepEqual(r.access.gains.map((g) => g.object), [`${yard.home}/.aws`]);
  assert.match(asked[0].message, new RegExp(`\\+ read ${yard.home}/.aws \\(SECRETS\\), and all below`));
  assert.equal((await run(tool)).output, 'ran\n');
  assert.equal((await ask('run', 'cat')).already_allowed, true);
  assert.match((await ask('run', 'no-such-program')).text, /not in PATH/);
});

inTiers('a host and a port, through the proxy, and no other', async (t, settings) => {
  if (!mustRun(t, has('curl'), 'no curl')) {
    return;
  }
  const { run, ask, asked, yard } = await open(t, { answer: says('session'), settings });
  const port = await listen(t, http.createServer((req, res) => res.end('hello\n')));
  const other = await listen(t, http.createServer((req, res) => res.end('other\n')));
  const get = async (p) => (await run(`curl -sS http://127.0.0.1:${p}/`)).output;
  assert.doesNotMatch(await get(port), /hello/, 'the control: off');
  const r = await ask('connect', `127.0.0.1:${port}`);
  assert.equal(r.applied, true, r.text);
  assert.deepEqual(r.access.gains, [{ right: 'connect', object: `127.0.0.1:${port}` }]);
  assert.match(asked[0].message, /NOT ON THE INTERNET: a loopback address/);
  assert.equal(await get(port), 'hello\n');
  assert.doesNotMatch(await get(other), /^other/);
  assert.equal((await ask('connect', `127.0.0.1:${port}`)).already_allowed, true);
  assert.notEqual((await run(`touch ${yard.outside}/a`)).exit_code, 0, 'nothing else');
});

test('without a form: pending at once, shown and approved in a terminal, then the same call applies it', limit, async (t) => {
  const { run, ask, yard } = await open(t);
  const r = await ask('write', yard.outside);
  assert.equal(r.status, 'pending_approval');
  assert.equal(r.applied, false);
  const shown = cli(yard, ['approvals', 'show', r.approval.id.slice(0, 8)]);
  assert.match(shown.out, new RegExp(`\\+ write ${yard.outside}, and all below`));
  assert.match(shown.out, /Wished for: once/);
  assert.notEqual((await run(`touch ${yard.outside}/a`)).exit_code, 0, 'not yet');
  const yes = cli(yard, ['approvals', 'approve', '--session', r.approval.id]);
  assert.equal(yes.code, 0, yes.err);
  assert.notEqual((await run(`touch ${yard.outside}/a`)).exit_code, 0, 'approved is not applied');
  const done = await ask('write', yard.outside);
  assert.equal(done.applied, true, done.text);
  assert.equal(done.scope, 'session');
  assert.equal((await run(`touch ${yard.outside}/a`)).exit_code, 0);
});

test('an answer is for the place that the person saw', limit, async (t) => {
  const { run, ask, yard } = await open(t);
  const link = path.join(yard.outside, 'link');
  for (const name of ['a', 'b']) {
    fs.mkdirSync(path.join(yard.outside, name));
  }
  fs.symlinkSync('a', link);
  const r = await ask('write', link);
  assert.match(cli(yard, ['approvals', 'show', r.approval.id]).out, new RegExp(`write ${yard.outside}/a\nAsked for: +${link}`));
  assert.equal(cli(yard, ['approvals', 'approve', r.approval.id]).code, 0);
  fs.rmSync(link);
  fs.symlinkSync('b', link);
  const moved = await ask('write', link);
  assert.equal(moved.status, 'pending_approval', 'another question');
  assert.notEqual(moved.approval.id, r.approval.id);
  assert.notEqual((await run(`touch ${yard.outside}/b/x`)).exit_code, 0);
  fs.rmSync(link);
  fs.symlinkSync('a', link);
  assert.equal((await ask('write', link)).applied, true, 'the control: the very same is approved');
});

test('a person says no, and what is never granted is not asked about', limit, async (t) => {
  const yard = makeYard();
  const state = path.join(yard.home, '.local/state/shellyard');
  fs.mkdirSync(path.join(yard.ws, '.git/hooks'), { recursive: true });
  fs.mkdirSync(path.join(yard.outside, '.vscode'));
  fs.mkdirSync(state, { recursive: true, mode: 0o700 });
  const { ask, asked } = await open(t, { answer: says('deny'), yard });
  const no = await ask('write', yard.outside);
  assert.equal(no.status, 'denied');
  assert.match(no.text, /a person denied it/);
  assert.equal(no.applied, false);
  assert.equal(asked.length, 1);
  for (const [access, object, why] of [
    ['write', '/', /everything/],
    ['write', '/etc', /whole directory of the system/],
    ['write', '/proc/sys', /kernel/],
    ['write', yard.home, /whole home/],
    ['write', yard.dir, /whole home/],
    ['write', state, /granted to nobody/],
    ['read', state, /Shellyard's own, which no sandbox shows/],
    ['write', path.dirname(program), /granted to nobody|protected/],
    ['write', path.join(yard.ws, '.git/hooks'), /protected/],
    ['write', path.join(yard.outside, '.vscode'), /protected name/],
    ['write', path.join(yard.outside, 'none/none'), /can't be found/],
    ['write', 'relative', /absolute/],
    ['connect', '*.example.com', /one host/],
    ['connect', 'unix:/run/x', /one host/],
  ]) {
    const r = await ask(access, object);
    assert.equal(r.status, 'denied', `${access} ${object}: ${r.text}`);
    assert.match(r.text, why);
    assert.equal(r.applied, false);
  }
  assert.equal(asked.length, 1, 'nobody was asked');
  await ask('write', '/etc/ssl');
  assert.match(asked[1].message, /WARNING: +SYSTEM FILES/);
  assert.equal(asked[1].requestedSchema.properties.decision.enum.includes('rule'), false);
});

test('who asks to write a hook, or a link on the way to it, asks for what speaks for the person', limit, async (t) => {
  const yard = makeYard();
  const dirs = ['hooks', 'way'].map((name) => path.join(yard.dir, name));
  dirs.forEach((dir) => fs.mkdirSync(dir));
  const program_ = path.join(dirs[0], 'hook');
  fs.writeFileSync(program_, '#!/bin/sh\n', { mode: 0o755 });
  fs.symlinkSync(program_, path.join(dirs[1], 'link'));
  fs.mkdirSync(path.join(yard.home, '.config/shellyard'), { recursive: true });
  fs.writeFileSync(path.join(yard.home, '.config/shellyard/config.yaml'), `hooks:\n  permission_request: ["${dirs[1]}/link"]\n`);
  const { ask, asked } = await open(t, { yard, answer: says('once') });
  for (const object of [program_, ...dirs, path.join(dirs[1], 'new')]) {
    const r = await ask('write', object);
    assert.equal(r.status, 'denied', r.text);
    assert.match(r.text, /granted to nobody: Shellyard's own programs or hooks/);
  }
  assert.equal(asked.length, 0);
  assert.equal((await ask('write', yard.outside)).applied, true, 'the control');
});

test('what a person has hidden, and a read-only sandbox, are theirs to change', limit, async (t) => {
  const yard = makeYard();
  fs.writeFileSync(path.join(yard.outside, 'key'), 'secret\n');
  const hidden = await open(t, { yard, answer: says('once'), settings: { 'sandbox.deny_read': `[${yard.outside}/key]` } });
  assert.match((await hidden.ask('read', `${yard.outside}/key`)).text, /only a person changes that/);
  const narrow = await open(t, { yard, answer: says('once'), settings: { 'sandbox.mode': 'read-only' } });
  assert.match((await narrow.ask('write', yard.outside)).text, /read-only/);
  assert.equal(hidden.asked.length + narrow.asked.length, 0);
});

test('where nobody may be asked the tool is not listed, and says so', limit, async (t) => {
  const never = await open(t, { settings: { 'approval.policy': 'never' } });
  const names = async (s) => (await s.client.listTools()).tools.map((tool) => tool.name);
  assert.equal((await names(never)).includes('request_access'), false);
  const r = await never.ask('write', never.yard.outside);
  assert.equal(r.status, 'denied');
  assert.match(r.text, /approval\.policy is never/);
  const asks = await open(t);
  assert.ok((await names(asks)).includes('request_access'));
  const free = await open(t, { settings: { 'sandbox.mode': 'danger-full-access' } });
  assert.equal((await free.ask('write', free.yard.outside)).already_allowed, true);
  const wrong = await asks.ask('own', '/srv');
  assert.equal(wrong.isError, true);
  assert.match(wrong.text, /'access' must be/);
});

test('a turn that leaves out roots has no rule for writing, nor is one offered that would not hold', limit, async (t) => {
  const yard = makeYard();
  const [extra, other] = ['extra', 'other'].map((name) => path.join(yard.dir, name));
  [extra, other, path.join(yard.ws, 'part')].forEach((dir) => fs.mkdirSync(dir));
  const p = openProto(t, yard, { 'sandbox.writable_roots': JSON.stringify([extra]) });
  const send = (id, name, args, session) => p.send({ type: 'function_call', call_id: id, session, name, arguments: JSON.stringify(args) });
  const ask = (id, object, session) => {
    send(id, 'request_access', { access: 'write', object, justification: 'x', scope: 'rule' }, session);
    return p.next((m) => m.type === 'exec_approval_request' && m.call_id === id);
  };
  const run = async (id, session) => {
    send(id, 'shell_command', { command: `touch ${yard.outside}/${id}` }, session);
    await p.next((m) => m.type === 'function_call_output' && m.call_id === id);
    return fs.existsSync(path.join(yard.outside, id));
  };
  const q = await ask('r1', yard.outside);
  assert.ok(q.prefix.length > 0, 'the control: a rule is offered');
  p.send({ type: 'exec_approval', id: q.id, decision: 'approved_with_rule' });
  await p.next((m) => m.type === 'function_call_output' && m.call_id === 'r1');
  assert.equal(await run('by-rule'), true);
  p.send({ type: 'session', action: 'open', id: 'few', sandbox_policy: { mode: 'workspace-write', writable_roots: [] } });
  p.send({ type: 'session', action: 'open', id: 'part', cwd: path.join(yard.ws, 'part') });
  p.send({ type: 'session', action: 'open', id: 'same', sandbox_policy: { mode: 'workspace-write', writable_roots: [extra] } });
  assert.equal(await run('few', 'few'), false);
  assert.equal(await run('same', 'same'), true, 'the control: nothing is left out');
  for (const session of ['few', 'part']) {
    assert.deepEqual((await ask(`r-${session}`, other, session)).prefix, [], session);
  }
  p.send({ type: 'turn', sandbox_policy: { mode: 'workspace-write', writable_roots: [] } });
  assert.equal(await run('narrow'), false);
  p.send({ type: 'turn' });
  assert.equal(await run('wide'), true);
});

test('proto: asked by an event, bound to the policy of the turn', limit, async (t) => {
  const yard = makeYard();
  const p = openProto(t, yard);
  const ask = (id, extra = {}) => p.send({ type: 'function_call', call_id: id, name: 'request_access',
    arguments: JSON.stringify({ access: 'write', object: yard.outside, justification: 'x', ...extra }) });
  const run = async (id) => {
    p.send({ type: 'function_call', call_id: id, name: 'shell_command', arguments: JSON.stringify({ command: `touch ${yard.outside}/${id}` }) });
    await p.next((m) => m.type === 'function_call_output' && m.call_id === id);
    return fs.existsSync(path.join(yard.outside, id));
  };
  ask('r1');
  const q = await p.next((m) => m.type === 'exec_approval_request' && m.call_id === 'r1');
  assert.equal(q.access.object, yard.outside);
  assert.deepEqual(q.access.gains, [{ right: 'write', object: yard.outside }]);
  assert.equal(await run('before'), false, 'the control: others go on, and can not');
  p.send({ type: 'exec_approval', id: q.id, decision: 'approved_for_session' });
  const r = await p.next((m) => m.type === 'function_call_output' && m.call_id === 'r1');
  assert.match(r.output, /^Applied/);
  assert.equal(await run('after'), true);
  p.send({ type: 'turn', turn_id: 't2', sandbox_mode: 'read-only' });
  assert.equal(await run('narrow'), false, 'a narrower turn wins');
  p.send({ type: 'turn', turn_id: 't3', sandbox_policy: { mode: 'workspace-write', exclude_slash_tmp: true } });
  assert.equal(await run('other'), false, 'another policy is another question');
  ask('r2', { scope: 'session' });
  const q2 = await p.next((m) => m.type === 'exec_approval_request' && m.call_id === 'r2');
  p.send({ type: 'exec_approval', id: q2.id, decision: 'denied' });
  assert.match((await p.next((m) => m.type === 'function_call_output' && m.call_id === 'r2')).output, /^Not applied/);
  p.send({ type: 'turn', turn_id: 't4' });
  assert.equal(await run('again'), true, 'the control: under its policy it holds');
});

test('what an administrator requires is asked of nobody', limit, (t) => {
  const yard = makeYard();
  if (!mustRun(t, hasSystem(), 'no mount namespaces here')) {
    return;
  }
  fs.writeFileSync(path.join(yard.home, '.netrc'), 'x');
  const wants = [['sandbox.writable_roots', 'write', yard.outside], ['network.allow', 'connect', 'example.com:443'],
    ['sandbox.allow_read', 'read', path.join(yard.home, '.netrc')]];
  for (const [key, access, object] of wants) {
    const input = `${JSON.stringify({ type: 'function_call', call_id: 'a', name: 'request_access', arguments: JSON.stringify({ access, object, justification: 'x' }) })}\n`;
    for (const [requirements, right] of [[key, new RegExp(`an administrator requires ${key.replace('.', '\\.')}`)], ['log.level', /a person has to approve it first|Applied/]]) {
      const r = underSystem(yard, `requirements: [${requirements}]\n`, ['proto', '--no-daemon', '-c', 'approval.policy=on-request'], input);
      const out = r.stdout.split('\n').filter(Boolean).map((line) => JSON.parse(line)).find((m) => m.type === 'function_call_output');
      assert.match(out?.output ?? r.stderr, right, `${requirements}: ${access}`);
    }
  }
});
