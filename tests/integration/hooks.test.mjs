// Programs of the user's that have a say in what runs: what they may and may not do, and what
// becomes of a call when one of them fails.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { call, makeYard, mustRun, program, readProc, STUCK_MS, waitFor } from './lib/client.mjs';
import { says, startAsked } from './lib/person.mjs';
import { openProto } from './lib/proto.mjs';
import { hasSystem, underSystem } from './lib/system.mjs';

const limit = { timeout: STUCK_MS };

/** A hook of the yard that is a shell script; its input lies in `<name>.json` afterwards. */
function makeHook(yard, name, body, mode = 0o755) {
  const dir = path.join(yard.dir, 'hooks');
  fs.mkdirSync(dir, { recursive: true });
  const file = path.join(dir, name);
  fs.writeFileSync(file, `#!/bin/sh\ncat > '${file}.json'\necho x >> '${file}.runs'\n${body}\n`);
  fs.chmodSync(file, mode);
  return file;
}
const told = (hook) => JSON.parse(fs.readFileSync(`${hook}.json`, 'utf8'));
const runs = (hook) => (fs.existsSync(`${hook}.runs`) ? fs.readFileSync(`${hook}.runs`, 'utf8').length / 2 : 0);
const answers = (answer) => `cat <<'END'\n${JSON.stringify(answer)}\nEND`;

function configure(yard, hooks, more = '') {
  const dir = path.join(yard.home, '.config/shellyard');
  fs.mkdirSync(dir, { recursive: true });
  fs.writeFileSync(path.join(dir, 'config.yaml'), `hooks:\n${Object.entries(hooks).map(([k, v]) => `  ${k}: ${JSON.stringify(v)}\n`).join('')}${more}`);
}

/** A server with these hooks. */
async function open(t, { hooks, more, ...options }) {
  configure(options.yard, hooks, more);
  return startAsked(t, options);
}

/** Processes of any environment that wait for that many seconds: a number nobody else has. */
function sleepers(seconds) {
  return fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name)).filter((name) => readProc(name, 'cmdline') === `sleep\0${seconds}\0`);
}
let naps = 0;
function nap() {
  naps += 1;
  return `${1000 + naps}.${process.pid}`;
}

test('a hook without an opinion changes nothing, and is told what would run', limit, async (t) => {
  const yard = makeYard();
  const silent = makeHook(yard, 'silent', 'env > "$0.env"');
  const { run } = await open(t, { yard, hooks: { pre_exec: [silent] } });
  const r = await run('echo "a b"; touch made', { env: { PYTHONPATH: '/evil', API_TOKEN: 'secret' } });
  assert.equal(r.output, 'a b\n');
  assert.equal(r.hooks, undefined);
  const seen = told(silent);
  assert.equal(seen.event, 'pre_exec');
  assert.equal(seen.version, 1);
  assert.equal(seen.script, 'echo "a b"; touch made');
  assert.equal(seen.cwd, yard.ws);
  assert.equal(seen.sandbox, 'workspace-write');
  assert.equal(seen.requirement.kind, 'skip');
  assert.equal(seen.tool, 'shell_command');
  const env = fs.readFileSync(`${silent}.env`, 'utf8');
  assert.match(env, /^PATH=/m);
  assert.doesNotMatch(env, /evil|secret/, 'nothing of what the agent asks for reaches a hook');
  assert.doesNotMatch(fs.readFileSync(`${silent}.json`, 'utf8'), /evil|secret/);
  assert.ok(fs.existsSync(path.join(yard.ws, 'made')));
});

test('a hook denies, and its reason is told with its controls made visible', limit, async (t) => {
  const yard = makeYard();
  const no = makeHook(yard, 'no', answers({ decision: 'deny', reason: 'not on a Friday\u001b[2J' }));
  const { run } = await open(t, { yard, hooks: { pre_exec: [no] } });
  const r = await run('touch made');
  assert.equal(r.status, 'denied');
  assert.match(r.error, /hook '.*\/no' denied it: not on a Friday\\x1b\[2J/);
  assert.equal(fs.existsSync(path.join(yard.ws, 'made')), false);
  makeHook(yard, 'no', answers({ decision: 'deny', reason: `.${'日'.repeat(70)}` }));
  assert.match((await run('touch made')).error, /denied it: \.日{39}$/, 'a long one is cut between characters');
});

test('a hook asks: a person answers, and under never nobody can', limit, async (t) => {
  const yard = makeYard();
  const wary = makeHook(yard, 'wary', answers({ decision: 'ask', reason: 'look twice' }));
  const first = await open(t, { yard, hooks: { pre_exec: [wary] }, answer: says('once') });
  const r = await first.run('touch made');
  assert.equal(r.exit_code, 0);
  assert.match(first.asked[0].message, /look twice/);
  const second = await open(t, { yard, hooks: { pre_exec: [wary] }, settings: { 'approval.policy': 'never' } });
  const never = await second.run('touch made2');
  assert.equal(never.status, 'denied');
  assert.match(never.error, /look twice/);
  assert.equal(fs.existsSync(path.join(yard.ws, 'made2')), false);
});

test('what a hook rewrites is judged anew: run, asked about or refused', limit, async (t) => {
  const yard = makeYard();
  const change = (command) => makeHook(yard, 'change', answers({ decision: 'rewrite', command }));
  let hook = change(['touch', 'other']);
  const { run, asked } = await open(t, { yard, hooks: { pre_exec: [hook] }, answer: says('deny') });
  const r = await run('touch made');
  assert.equal(r.exit_code, 0);
  assert.deepEqual(r.hooks, { rewritten_by: hook, command: ['touch', 'other'] });
  assert.match(r.note, /rewrote the command to: touch other/);
  assert.ok(fs.existsSync(path.join(yard.ws, 'other')));
  assert.equal(fs.existsSync(path.join(yard.ws, 'made')), false);
  assert.equal(asked.length, 0);

  hook = change(['rm', '-rf', 'other']);
  const dangerous = await run('echo harmless');
  assert.equal(dangerous.status, 'denied');
  assert.equal(asked.length, 1);
  assert.match(asked[0].message, /rm -rf other/);
  assert.doesNotMatch(asked[0].message, /harmless/);
  assert.ok(fs.existsSync(path.join(yard.ws, 'other')));

  fs.writeFileSync(path.join(yard.home, '.config/shellyard/rules.yaml'), 'rules:\n  - {program: touch, args: [never], decision: forbid, reason: it is the rule}\n');
  hook = change(['touch', 'never']);
  const forbidden = await run('echo harmless');
  assert.equal(forbidden.status, 'denied');
  assert.match(forbidden.error, /it is the rule/);
  assert.equal(fs.existsSync(path.join(yard.ws, 'never')), false);
});

test('after a rewrite all hooks see the new command, and nobody rewrites twice', limit, async (t) => {
  const yard = makeYard();
  const guard = makeHook(yard, 'guard', `grep -q '"touch","bad"' "$0.json" && ${answers({ decision: 'deny', reason: 'bad' })}\ntrue`);
  const change = makeHook(yard, 'change', answers({ decision: 'rewrite', command: ['touch', 'bad'] }));
  const { run } = await open(t, { yard, hooks: { pre_exec: [guard, change] } });
  const r = await run('touch good');
  assert.equal(r.status, 'denied');
  assert.match(r.error, /\/guard' denied it: bad/);
  assert.equal(runs(guard), 2);

  const count = makeHook(yard, 'count', 'echo "{\\"decision\\":\\"rewrite\\",\\"command\\":[\\"echo\\",\\"$(wc -l < "$0.runs")\\"]}"');
  const again = await open(t, { yard, hooks: { pre_exec: [count] }, settings: { 'approval.policy': 'never' } });
  const twice = await again.run('echo start');
  assert.equal(twice.status, 'denied');
  assert.match(twice.error, /second time/);
  assert.equal(runs(count), 2);
});

test('a hook that fails asks, and says how', limit, async (t) => {
  const yard = makeYard();
  const endless = nap();
  const cases = [
    ['die', 'kill -9 $$', /ended by signal 9/],
    ['status', 'exit 3', /ended with status 3/],
    ['allow-and-fail', `${answers({ decision: 'allow' })}\nexit 1`, /ended with status 1/],
    ['garbage', 'echo Traceback', /gave no answer that can be read/],
    ['unknown', answers({ decision: 'allow', sandbox: 'off' }), /unknown key/],
    ['binary', "printf '\\377\\000'", /gave no answer that can be read/],
    ['huge', 'head -c 1000000 /dev/zero', /printed more than 65536 bytes/],
    ['endless', 'while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done', /printed more than/],
    ['hang', `sleep ${endless}`, /did not end within 1000 ms/],
    ['interpreter', '', /ended with status|could not run/],
  ];
  for (const [name, body, says_] of cases) {
    const hook = makeHook(yard, name, body);
    if (name === 'interpreter') {
      fs.writeFileSync(hook, '#!/nonexistent/interpreter\n');
    }
    const { run, asked, close } = await open(t, { yard, hooks: { pre_exec: [hook], timeout_ms: 1000 }, answer: says('once') });
    const r = await run('touch made');
    assert.equal(r.exit_code, 0, `${name}: ${r.text}`);
    assert.equal(asked.length, 1, name);
    assert.match(asked[0].message, says_, name);
    assert.match(r.note, says_, name);
    assert.deepEqual(sleepers(endless), [], name);
    await close();
  }
});

test('what a hook leaves behind is ended with it', limit, async (t) => {
  const yard = makeYard();
  const seconds = nap();
  const daemon = makeHook(yard, 'daemon', `(setsid sleep ${seconds} >/dev/null 2>&1 &)\n${answers({ decision: 'none' })}`);
  const holder = makeHook(yard, 'holder', `(setsid sleep ${seconds} &)`);
  const { run } = await open(t, { yard, hooks: { pre_exec: [daemon, holder] } });
  const r = await run('echo ran');
  assert.equal(r.output, 'ran\n');
  assert.deepEqual(sleepers(seconds), []);
});

test('a call is cancelled while its hook runs, which is ended', limit, async (t) => {
  const yard = makeYard();
  const seconds = nap();
  const hook = makeHook(yard, 'slow', `sleep ${seconds} & wait`);
  const { run } = await open(t, { yard, hooks: { pre_exec: [hook], timeout_ms: 60000 } });
  const abort = new AbortController();
  const answer = run('touch made', {}, { signal: abort.signal });
  await waitFor(() => sleepers(seconds).length > 0, 'the hook');
  abort.abort();
  await assert.rejects(answer);
  await waitFor(() => sleepers(seconds).length === 0, 'the end of the hook');
  makeHook(yard, 'slow', 'true');
  assert.equal((await run('echo on')).output, 'on\n', 'the lock is free again');
  assert.equal(fs.existsSync(path.join(yard.ws, 'made')), false);
});

test('a program that others could write is not run, nor is the command', limit, async (t) => {
  const yard = makeYard();
  const good = makeHook(yard, 'good', 'true');
  const open1 = makeHook(yard, 'open', answers({ decision: 'allow' }), 0o777);
  const plain = makeHook(yard, 'plain', 'true', 0o644);
  const inside = path.join(yard.ws, 'inside');
  fs.copyFileSync(good, inside);
  fs.chmodSync(inside, 0o755);
  const link = path.join(yard.dir, 'hooks/link');
  fs.symlinkSync(inside, link);
  const loose = path.join(yard.dir, 'loose');
  fs.mkdirSync(loose);
  fs.chmodSync(loose, 0o777);
  fs.copyFileSync(good, path.join(loose, 'h'));
  // Links on the way to one that is good itself: in the workspace, and where others may write.
  const ways = [yard.ws, loose].map((dir) => {
    fs.symlinkSync(good, path.join(dir, 'way'));
    const first = path.join(yard.dir, 'hooks', `to-${path.basename(dir)}`);
    fs.symlinkSync(path.join(dir, 'way'), first);
    return first;
  });
  for (const [hook, why] of [[ways[0], /could rewrite it/], [ways[1], /put another program there/], [open1, /others may write it/], [plain, /no executable file/], [inside, /could rewrite it/],
    [link, /could rewrite it/], [path.join(loose, 'h'), /put another program there/], [`${good}-none`, /No such file/i]]) {
    const { run, close } = await open(t, { yard, hooks: { pre_exec: [hook] } });
    const r = await run('touch made');
    assert.equal(r.status, 'denied', hook);
    assert.match(r.error, why, hook);
    assert.equal(fs.existsSync(path.join(yard.ws, 'made')), false);
    await close();
  }
  assert.equal(runs(open1), 0);
  const { run } = await open(t, { yard, hooks: { pre_exec: [good] } });
  assert.equal((await run('touch made')).exit_code, 0, 'the control');
});

test('before a person is asked: a hook answers for the policy, and for nothing else', limit, async (t) => {
  const yard = makeYard();
  const yes = makeHook(yard, 'yes', answers({ decision: 'allow' }));
  fs.mkdirSync(path.join(yard.home, '.config/shellyard'), { recursive: true });
  fs.writeFileSync(path.join(yard.home, '.config/shellyard/rules.yaml'), 'rules:\n  - {program: touch, args: [ruled], decision: ask, reason: a rule asks}\n');
  const { run, asked } = await open(t, { yard, hooks: { permission_request: [yes] }, answer: says('deny') });
  assert.equal((await run('touch unasked')).exit_code, 0);
  assert.equal(runs(yes), 0, 'nobody would have been asked');
  fs.mkdirSync(path.join(yard.ws, 'gone'));
  const r = await run('rm -rf gone');
  assert.equal(r.exit_code, 0, r.text);
  assert.equal(r.hooks.allowed_by, yes);
  assert.equal(asked.length, 0);
  assert.equal(told(yes).event, 'permission_request');
  assert.equal(told(yes).danger.class, 'dangerous');
  assert.equal((await run('touch ruled')).status, 'denied', 'a rule asks a person');
  assert.equal((await run('rm -rf *')).status, 'denied', 'a catastrophe stays a question');
  assert.equal((await run('touch ../outside/x', { sandbox_permissions: 'require_escalated', justification: 'j' })).status, 'denied', 'the sandbox stays');
  assert.equal(asked.length, 3);
  assert.equal(fs.existsSync(path.join(yard.outside, 'x')), false);
});

test('a hook that asks or denies is stronger than one that allows', limit, async (t) => {
  const yard = makeYard();
  const yes = makeHook(yard, 'yes', answers({ decision: 'allow' }));
  const wary = makeHook(yard, 'wary', answers({ decision: 'ask' }));
  const no = makeHook(yard, 'no', answers({ decision: 'deny', reason: 'no' }));
  const first = await open(t, { yard, hooks: { permission_request: [yes, wary] }, answer: says('deny') });
  assert.equal((await first.run('rm -rf gone')).status, 'denied');
  assert.equal(first.asked.length, 1);
  const second = await open(t, { yard, hooks: { permission_request: [yes, no] }, answer: says('once') });
  assert.match((await second.run('rm -rf gone2')).error, /\/no' denied it/);
  assert.equal(second.asked.length, 0);
  const third = await open(t, { yard, hooks: { pre_exec: [yes] }, answer: says('deny') });
  assert.equal((await third.run('rm -rf gone3')).status, 'denied', 'before a command it lifts nothing');
});

test('a patch is told to hooks, which can deny it and not rewrite it', limit, async (t) => {
  const yard = makeYard();
  const patch = '*** Begin Patch\n*** Add File: new\n+text\n*** End Patch\n';
  const no = makeHook(yard, 'no', answers({ decision: 'deny', reason: 'no files' }));
  const first = await open(t, { yard, hooks: { pre_exec: [no] } });
  const r = await first.tool('apply_patch', { patch });
  assert.equal(r.isError, true);
  assert.match(r.text, /no files/);
  assert.equal(told(no).patch, patch);
  assert.equal(fs.existsSync(path.join(yard.ws, 'new')), false);
  const change = makeHook(yard, 'change', answers({ decision: 'rewrite', command: ['true'] }));
  const second = await open(t, { yard, hooks: { pre_exec: [change] }, settings: { 'approval.policy': 'never' } });
  assert.match((await second.tool('apply_patch', { patch })).text, /another patch/);
  const silent = makeHook(yard, 'silent', 'true');
  const third = await open(t, { yard, hooks: { pre_exec: [silent] } });
  assert.equal((await third.tool('apply_patch', { patch })).isError, false);
  assert.ok(fs.existsSync(path.join(yard.ws, 'new')), 'the control');
});

test('what asks for a wider sandbox is told to hooks, which can deny it and allow nothing', limit, async (t) => {
  const yard = makeYard();
  let hook;
  const becomes = (answer) => {
    hook = makeHook(yard, 'h', answers(answer));
  };
  becomes({ decision: 'deny', reason: 'no wider' });
  const { tool, asked, run } = await open(t, { yard, hooks: { permission_request: [hook] }, answer: says('deny') });
  // Of scopes their own: what a person denied is not asked again.
  const ask = (scope) => tool('request_access', { access: 'write', object: yard.outside, scope, justification: 'j' });
  const r = await ask('once');
  assert.equal(r.status, 'denied');
  assert.match(r.text, /\/h' denied it: no wider/);
  assert.equal(asked.length, 0);
  assert.equal(told(hook).patch, undefined);
  assert.equal(told(hook).tool, 'request_access');
  assert.deepEqual(told(hook).access.gains, [{ right: 'write', object: yard.outside }]);
  becomes({ decision: 'allow' });
  assert.equal((await ask('once')).status, 'denied', 'the person says no');
  assert.equal(asked.length, 1);
  becomes({ decision: 'ask', reason: 'look twice' });
  await ask('session');
  assert.match(asked.at(-1).message, /look twice/);
  becomes({ decision: 'rewrite', command: ['touch', 'x'] });
  await ask('rule');
  assert.match(asked.at(-1).message, /other access, which no hook can ask for/);
  assert.notEqual((await run(`touch ${yard.outside}/x`)).exit_code, 0);
});

test('over proto too: denied, and asked', limit, async (t) => {
  const yard = makeYard();
  const hook = makeHook(yard, 'h', `grep -q made "$0.json" && ${answers({ decision: 'deny', reason: 'not that' })}\ntrue`);
  configure(yard, { pre_exec: [hook] });
  const proto = openProto(t, yard);
  const output = (id) => (m) => m.type === 'function_call_output' && m.call_id === id;
  proto.send({ type: 'function_call', name: 'shell_command', call_id: 'a', arguments: '{"command":"touch made"}' });
  assert.match((await proto.next(output('a'))).output, /denied it: not that/);
  proto.send({ type: 'function_call', name: 'shell_command', call_id: 'b', arguments: '{"command":"echo fine"}' });
  assert.match((await proto.next(output('b'))).output, /fine/);
  assert.equal(told(hook).call_id, 'b');
});

test('hooks come from the files of the user and the system alone', limit, (t) => {
  const yard = makeYard();
  const hook = makeHook(yard, 'h', 'true');
  const show = (args, env = {}) => spawnSync(program, ['config', 'show', ...args], { cwd: yard.ws, env: { ...yard.env, ...env }, encoding: 'utf8' });
  const flag = show(['-c', `hooks.pre_exec=${hook}`]);
  assert.notEqual(flag.status, 0);
  assert.match(flag.stderr, /hooks\.pre_exec is read from the configuration files alone/);
  assert.notEqual(show(['-c', 'hooks.pre_exec=']).status, 0, 'nor taken away');
  assert.match(show([], { SHELLYARD_HOOKS_PERMISSION_REQUEST: hook }).stderr, /configuration files alone/);
  configure(yard, { pre_exec: [hook] });
  const fine = show([]);
  assert.equal(fine.status, 0, fine.stderr);
  assert.ok(fine.stdout.includes(hook));
});

test('doctor tells which hooks there are, and which can not be trusted', limit, (t) => {
  const yard = makeYard();
  const hook = makeHook(yard, 'h', 'true');
  const doctor = () => JSON.parse(spawnSync(program, ['doctor', '--json'], { cwd: yard.ws, env: yard.env, encoding: 'utf8' }).stdout)
    .checks.filter((c) => c.name === 'hooks');
  configure(yard, { pre_exec: [hook] });
  assert.deepEqual(doctor().map((c) => c.level), ['ok']);
  fs.chmodSync(hook, 0o777);
  assert.deepEqual(doctor().map((c) => c.level), ['fail']);
});

const rules = (yard, text) => {
  fs.mkdirSync(path.join(yard.home, '.config/shellyard'), { recursive: true });
  fs.writeFileSync(path.join(yard.home, '.config/shellyard/rules.yaml'), text);
};

test('what a rule steers to is told to hooks, and what they make of it is judged anew', limit, async (t) => {
  const yard = makeYard();
  // It speaks of the better command alone: the first one never gets here, since a rule forbids it.
  const change = (to) => makeHook(yard, 'change', `grep -q '"new"' "$0.json" || exit 0\n${answers({ decision: 'rewrite', command: to })}`);
  const steer = '  - {program: touch, args: [old], decision: forbid, reason: made anew, steer: {command: [touch, new], run: true}}\n';
  rules(yard, `rules:\n${steer}  - {program: touch, args: [never], decision: forbid, reason: it is the rule}\n`);
  let hook = change(['touch', 'other']);
  const { run, asked } = await open(t, { yard, hooks: { pre_exec: [hook] }, answer: says('deny') });
  const r = await run('touch old');
  assert.equal(r.exit_code, 0, r.text);
  assert.match(r.note, /run instead: touch new/);
  assert.deepEqual(r.hooks, { rewritten_by: hook, command: ['touch', 'other'] });
  const made = () => fs.readdirSync(yard.ws).filter((name) => name[0] !== '.').sort();
  assert.deepEqual(made(), ['other'], 'neither the first nor the second ran');
  // The control: without an opinion the better command runs.
  hook = makeHook(yard, 'change', '');
  assert.equal((await run('touch old')).hooks, undefined);
  assert.deepEqual(made(), ['new', 'other']);
  assert.deepEqual(told(hook).argv.slice(-2), ['touch', 'new']);
  // What it became is a rule's again, and a danger's.
  hook = change(['touch', 'never']);
  const forbidden = await run('touch old');
  assert.equal(forbidden.status, 'denied');
  assert.match(forbidden.error, /it is the rule/);
  hook = change(['rm', '-rf', 'other']);
  assert.equal((await run('touch old')).status, 'denied');
  assert.match(asked[0].message, /rm -rf other/);
  assert.deepEqual(made(), ['new', 'other']);
});

test('what a hook rewrites to is steered by a rule too', limit, async (t) => {
  const yard = makeYard();
  rules(yard, 'rules:\n  - {program: touch, args: [old], decision: forbid, reason: made anew, steer: {command: [touch, new], run: true}}\n');
  const hook = makeHook(yard, 'change', `grep -q 'touch first' "$0.json" || exit 0\n${answers({ decision: 'rewrite', command: ['touch', 'old'] })}`);
  const { run } = await open(t, { yard, hooks: { pre_exec: [hook] }, answer: says('deny') });
  const r = await run('touch first');
  assert.equal(r.exit_code, 0, r.text);
  assert.match(r.note, /run instead: touch new/);
  assert.ok(fs.existsSync(path.join(yard.ws, 'new')));
  assert.ok(!fs.existsSync(path.join(yard.ws, 'old')) && !fs.existsSync(path.join(yard.ws, 'first')));
});

test('under granular a hook asks only where rules may be asked about, and answers only what may be asked', limit, async (t) => {
  const granular = { 'approval.policy': 'granular' };
  const asking = async (settings) => {
    const yard = makeYard();
    const hook = makeHook(yard, 'ask', answers({ decision: 'ask', reason: 'a look, please' }));
    const server = await open(t, { yard, hooks: { pre_exec: [hook] }, answer: says('once'), settings: { ...granular, ...settings } });
    return { r: await server.run('touch made'), asked: server.asked, isMade: () => fs.existsSync(path.join(yard.ws, 'made')) };
  };
  const none = await asking({});
  assert.equal(none.r.status, 'denied');
  assert.equal(none.asked.length, 0);
  assert.ok(!none.isMade());
  const sandboxOnly = await asking({ 'approval.granular_sandbox_approval': true });
  assert.equal(sandboxOnly.r.status, 'denied', 'a hook is no question of the sandbox');
  const some = await asking({ 'approval.granular_rules': true });
  assert.equal(some.r.exit_code, 0, some.r.text);
  assert.equal(some.asked.length, 1);
  assert.match(some.asked[0].message, /a look, please/);
  assert.ok(some.isMade());

  const allowing = async (settings) => {
    const yard = makeYard();
    fs.mkdirSync(path.join(yard.ws, 'gone'));
    const hook = makeHook(yard, 'yes', answers({ decision: 'allow' }));
    const server = await open(t, { yard, hooks: { permission_request: [hook] }, answer: says('deny'), settings: { ...granular, ...settings } });
    return { r: await server.run('rm -rf gone'), asked: server.asked, hook };
  };
  const refused = await allowing({});
  assert.equal(refused.r.status, 'denied', 'a hook is not a person more than there is');
  assert.equal(runs(refused.hook), 0);
  const allowed = await allowing({ 'approval.granular_sandbox_approval': true });
  assert.equal(allowed.r.exit_code, 0, allowed.r.text);
  assert.equal(allowed.r.hooks.allowed_by, allowed.hook);
  assert.equal(allowed.asked.length, 0);
});

test('an administrator pins the hooks: whoever has others gets an error, and nothing runs', limit, (t) => {
  const yard = makeYard();
  if (!mustRun(t, hasSystem(), 'no mount namespaces here')) {
    return;
  }
  const theirs = '/usr/bin/true';
  const system = `requirements: [hooks.pre_exec, hooks.permission_request, hooks.timeout_ms]\nhooks:\n  pre_exec: [${theirs}]\n  timeout_ms: 1000\n`;
  const show = () => underSystem(yard, system, ['config', 'show', '--json']);
  const value = (r, key) => JSON.parse(r.stdout)[key] ?? JSON.parse(r.stdout).config?.[key];
  const alone = show();
  assert.equal(alone.status, 0, alone.stderr);
  assert.deepEqual(value(alone, 'hooks.pre_exec').value, [theirs], alone.stdout);
  configure(yard, { pre_exec: [theirs] });
  assert.equal(show().status, 0, 'the same is fine');
  configure(yard, { pre_exec: [theirs, '/usr/bin/false'], timeout_ms: 500 });
  assert.equal(show().status, 0, 'and more of them, with less time');
  for (const [key, other] of [['pre_exec', ['/usr/bin/false']], ['pre_exec', []], ['permission_request', [theirs]], ['timeout_ms', 5000]]) {
    configure(yard, { [key]: other });
    const r = show();
    assert.notEqual(r.status, 0, `${key}: ${JSON.stringify(other)}`);
    assert.match(r.stderr, new RegExp(`hooks\\.${key} .*config\\.yaml:\\d+\\)`), r.stderr);
    const talk = underSystem(yard, system, ['proto'], '{"type":"function_call","name":"shell_command","call_id":"a","arguments":"{\\"command\\":\\"touch made\\"}"}\n');
    assert.notEqual(talk.status, 0);
    assert.ok(!fs.existsSync(path.join(yard.ws, 'made')));
  }
});
