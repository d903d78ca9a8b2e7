// Who may run what: commands are judged, people asked by a form, by proto and by the command line;
// what was answered holds for exactly that, once, and no longer than it should.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { spawn, spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { call, followApprovals, has, makeYard, mustRun, program, STUCK_MS, textOf, waitFor } from './lib/client.mjs';
import { later, says, startAsked as open } from './lib/person.mjs';

const limit = { timeout: STUCK_MS };

/** `shellyard approvals ...` of the same user. */
function approvals(yard, args, env = {}) {
  const r = spawnSync(program, ['approvals', ...args], { cwd: yard.dir, env: { ...yard.env, ...env }, encoding: 'utf8' });
  return { code: r.status, out: r.stdout, err: r.stderr };
}
const waiting = (yard) => JSON.parse(approvals(yard, ['list', '--json']).out).requests;

const ESCALATE = { sandbox_permissions: 'require_escalated', justification: 'the test wants it' };

test('safe and ordinary commands run unasked, a dangerous one waits for a person', limit, async (t) => {
  const { run, asked, yard } = await open(t, { answer: says('once') });
  fs.writeFileSync(path.join(yard.ws, 'file'), 'text\n');
  assert.equal((await run('cat file | wc -l')).output.trim(), '1');
  assert.equal((await run('touch made')).exit_code, 0);
  assert.equal(asked.length, 0);
  const r = await run('rm -rf file');
  assert.equal(r.status, 'exited');
  assert.equal(r.approval.decision, 'approved');
  assert.match(r.approval.decided_by, /shellyard-tests/);
  assert.equal(fs.existsSync(path.join(yard.ws, 'file')), false);
  assert.equal(asked.length, 1);
  assert.match(asked[0].message, /^Shellyard/);
  assert.match(asked[0].message, /rm -rf file/);
  assert.deepEqual(asked[0].requestedSchema.properties.decision.enum.slice(0, 2), ['deny', 'once']);
  assert.equal(asked[0].requestedSchema.properties.decision.default, 'deny');
});

test('a person says no: nothing runs, and the same again is not asked again', limit, async (t) => {
  const { run, asked, yard } = await open(t, { answer: says('deny') });
  fs.mkdirSync(path.join(yard.ws, 'kept'));
  for (let i = 0; i < 2; i += 1) {
    const r = await run('rm -rf kept');
    assert.equal(r.status, 'denied');
    assert.equal(r.isError, true);
    assert.match(r.text, /a person denied it/);
  }
  assert.equal(asked.length, 1);
  assert.ok(fs.existsSync(path.join(yard.ws, 'kept')));
});

test('approval of leaving the sandbox holds for that command alone, and once', limit, async (t) => {
  const { run, asked, yard } = await open(t, { answer: says('once') });
  const target = path.join(yard.outside, 'made');
  const inside = await run(`touch ${target}`);
  assert.notEqual(inside.exit_code, 0, 'the control: the sandbox refuses it');
  const r = await run(`touch ${target}`, ESCALATE);
  assert.equal(r.exit_code, 0);
  assert.ok(fs.existsSync(target));
  assert.match(asked[0].message, /NONE/);
  assert.match(asked[0].message, /the test wants it/);
  assert.notEqual((await run(`touch ${target}2`)).exit_code, 0, 'the next one is inside again');
  await run(`touch ${target}`, ESCALATE);
  assert.equal(asked.length, 2, 'once is once');
});

test('for the session means the same command in the same directory', limit, async (t) => {
  const { run, asked, yard } = await open(t, { answer: says('session') });
  fs.mkdirSync(path.join(yard.ws, 'sub'));
  for (let i = 0; i < 3; i += 1) {
    assert.equal((await run('rm -rf gone')).exit_code, 0);
  }
  assert.equal(asked.length, 1);
  await run('rm -rf gone', { workdir: path.join(yard.ws, 'sub') });
  assert.equal(asked.length, 2, 'another directory');
  await run('rm -rf gone2');
  assert.equal(asked.length, 3, 'another command');
});

test('with a rule: what begins so runs from now on, in other sessions too, until it is taken back', limit, async (t) => {
  const yard = makeYard();
  const first = await open(t, { answer: says('rule'), yard });
  const r = await first.run('touch ../outside/a', ESCALATE);
  assert.equal(r.approval.decision, 'approved_with_rule');
  const second = await open(t, { yard });
  assert.equal((await second.run('touch ../outside/a')).exit_code, 0, 'outside, unasked');
  const rules = JSON.parse(spawnSync(program, ['rules', 'list', '--json'], { cwd: yard.dir, env: yard.env, encoding: 'utf8' }).stdout);
  assert.deepEqual(rules.answers.map((a) => [a.prefix, a.outside_sandbox]), [[['touch', '../outside/a'], true]]);
  const gone = spawnSync(program, ['rules', 'remove', rules.answers[0].id], { cwd: yard.dir, env: yard.env, encoding: 'utf8' });
  assert.equal(gone.status, 0, gone.stderr);
  assert.notEqual((await second.run('touch ../outside/a')).exit_code, 0, 'inside again');
});

test('no rule is offered for what runs anything', limit, async (t) => {
  const { run, asked } = await open(t, { answer: says('deny') });
  for (const command of ['python3 -c 1', 'bash x', 'sudo ls', 'ls && touch x', 'touch x > y']) {
    await run(command, ESCALATE);
  }
  assert.equal(asked.length, 5);
  for (const a of asked) {
    assert.equal(a.requestedSchema.properties.decision.enum.includes('rule'), false, a.message);
  }
});

test('what destroys a home or the system can only be allowed once', limit, async (t) => {
  const { run, asked } = await open(t, { answer: says('deny'), settings: { 'sandbox.mode': 'danger-full-access' } });
  const r = await run('rm -rf "$NOTHING"/*');
  assert.equal(r.status, 'denied');
  assert.deepEqual(asked[0].requestedSchema.properties.decision.enum, ['deny', 'once']);
});

test('a form that is filled in by a machine is no answer', limit, async (t) => {
  const yard = makeYard();
  for (const answer of [
    () => ({ action: 'accept', content: { decision: 'once' } }), // at once
    () => ({ action: 'decline' }),
    () => later({ action: 'accept', content: {} }),
    () => later({ action: 'cancel' }),
    () => later({ action: 'accept', content: { decision: 'always' } }),
  ]) {
    const { run, close } = await open(t, { answer, yard });
    const r = await run('rm -rf x');
    assert.equal(r.status, 'pending_approval', String(answer));
    assert.match(r.text, new RegExp(`shellyard approvals approve ${r.approval.id}`));
    assert.ok(waiting(yard).some((q) => q.id === r.approval.id), 'it can still be answered');
    await close();
  }
});

test('what no form has room for is pending, and shown whole in a terminal', limit, async (t) => {
  const { run, asked, yard } = await open(t, { answer: says('once') });
  const justification = `begin ${'y'.repeat(20_000)} end`;
  const r = await run('echo out', { sandbox_permissions: 'require_escalated', justification });
  assert.equal(r.status, 'pending_approval', r.text);
  assert.equal(asked.length, 0);
  assert.match(approvals(yard, ['show', r.approval.id]).out, /begin y{20000} end/);
  assert.equal(approvals(yard, ['approve', r.approval.id]).code, 0);
  assert.equal((await run('echo out', { sandbox_permissions: 'require_escalated', justification })).output, 'out\n');
});

test('without a form: pending at once, answered in another terminal, then the same call runs', limit, async (t) => {
  const { run, yard } = await open(t);
  fs.mkdirSync(path.join(yard.ws, 'old'));
  const r = await run('rm -rf old');
  assert.equal(r.status, 'pending_approval');
  assert.equal((await run('rm -rf old')).approval.id, r.approval.id, 'one question for the same thing');
  const shown = approvals(yard, ['show', r.approval.id.slice(0, 8)]);
  assert.match(shown.out, /rm -rf old/);
  assert.match(shown.out, /Danger:/);
  assert.deepEqual(waiting(yard).map((q) => q.question.script), ['rm -rf old']);
  const yes = approvals(yard, ['approve', r.approval.id]);
  assert.equal(yes.code, 0, yes.err);
  assert.ok(fs.existsSync(path.join(yard.ws, 'old')), 'nothing runs by itself');
  assert.equal((await run('rm -rf old2')).status, 'pending_approval', 'another command is another question');
  assert.equal((await run('rm -rf old')).status, 'exited');
  assert.equal(fs.existsSync(path.join(yard.ws, 'old')), false);
  assert.equal((await run('rm -rf old')).status, 'pending_approval', 'it was for once');
  assert.notEqual(approvals(yard, ['deny', r.approval.id]).code, 0, 'it is decided');
});

test('a terminal answers a call that waits, with the reason it was denied for', limit, async (t) => {
  let form;
  const { run, yard } = await open(t, { answer: () => new Promise((resolve) => {
    form = resolve;
  }) });
  const running = run('rm -rf x');
  await waitFor(() => waiting(yard).length === 1, 'it can be answered');
  const [q] = waiting(yard);
  assert.equal(q.question.cwd, yard.ws);
  assert.equal(q.question.client, 'shellyard-tests');
  assert.equal(approvals(yard, ['deny', q.id, '-m', 'use trash instead']).code, 0);
  const r = await running;
  assert.equal(r.status, 'denied');
  assert.match(r.text, /use trash instead/);
  form({ action: 'accept', content: { decision: 'once' } }); // too late: a dead form
  assert.equal((await run('rm -rf x')).status, 'denied');
});

test('a person who is slow gets a handle for the agent, not a call that hangs', limit, async (t) => {
  let form;
  const { run, yard } = await open(t, { answer: () => new Promise((resolve) => {
    form = resolve;
  }), settings: { 'approval.hold_ms': 300 } });
  const r = await run('rm -rf x');
  assert.equal(r.status, 'pending_approval');
  form({ action: 'accept', content: { decision: 'once' } });
  assert.equal((await run('echo on')).output, 'on\n');
  assert.equal(waiting(yard).length, 1, 'the late form changed nothing');
  assert.equal(approvals(yard, ['approve', r.approval.id]).code, 0);
  assert.equal((await run('rm -rf x')).exit_code, 0);
});

test('others go on while a person thinks, and a cancelled call takes its question back', limit, async (t) => {
  const { client, run, yard } = await open(t, { answer: () => new Promise(() => {}) });
  const abort = new AbortController();
  const running = call(client, 'shell_command', { command: 'rm -rf x' }, { signal: abort.signal });
  await waitFor(() => waiting(yard).length === 1, 'it waits');
  assert.equal((await run('touch made; echo done')).output, 'done\n');
  abort.abort();
  await assert.rejects(running);
  await waitFor(() => waiting(yard).length === 0, 'the question is taken back');
});

test('a request nobody answers ends as a no', limit, async (t) => {
  const { run, yard } = await open(t, { settings: { 'approval.expires_ms': 1000 } });
  const r = await run('rm -rf x');
  assert.equal(r.status, 'pending_approval');
  await waitFor(() => waiting(yard).length === 0, 'it is over');
  const late = approvals(yard, ['approve', r.approval.id]);
  assert.notEqual(late.code, 0);
  assert.match(late.err, /too late/);
  assert.equal((await run('rm -rf x')).status, 'pending_approval', 'a new question');
});

test('rules forbid, ask and allow in every mode; a broken file refuses everything', limit, async (t) => {
  const yard = makeYard();
  const dir = path.join(yard.home, '.config/shellyard');
  const file = path.join(dir, 'rules.yaml');
  fs.mkdirSync(dir, { recursive: true, mode: 0o700 });
  fs.writeFileSync(file, [
    'rules:',
    '  - {program: touch, args: [no], decision: forbid, reason: not that one}',
    '  - {program: touch, args: [maybe], decision: ask}',
    '  - {program: rm, args: ["-rf", junk], decision: allow}',
    '',
  ].join('\n'), { mode: 0o600 });
  for (const mode of ['workspace-write', 'danger-full-access']) {
    const { run, close } = await open(t, { yard, settings: { 'sandbox.mode': mode } });
    const no = await run('touch no');
    assert.equal(no.status, 'denied', mode);
    assert.match(no.text, /not that one/);
    assert.equal((await run('true; touch no')).status, 'denied');
    assert.equal((await run('touch maybe')).status, 'pending_approval');
    assert.equal((await run('touch yes')).exit_code, 0);
    assert.equal((await run('rm -rf junk')).exit_code, 0, 'allowed though dangerous');
    await close();
  }
  const { run } = await open(t, { yard });
  assert.equal((await run('echo good')).output, 'good\n');
  fs.writeFileSync(file, 'rules:\n  - {program: [\n');
  const broken = await run('echo bad');
  assert.equal(broken.isError, true);
  assert.match(broken.text, /rules\.yaml/);
  fs.rmSync(file);
  assert.equal((await run('echo good')).output, 'good\n', 'read again at once');
});

test('policies: never refuses what is dangerous, unless-trusted asks for all that is not known', limit, async (t) => {
  const never = await open(t, { settings: { 'approval.policy': 'never' }, answer: says('once') });
  assert.equal((await never.run('rm -rf x')).status, 'denied');
  assert.equal((await never.run('touch x')).exit_code, 0);
  assert.equal(never.asked.length, 0);
  const trusted = await open(t, { settings: { 'approval.policy': 'unless-trusted' }, answer: says('once') });
  assert.equal((await trusted.run('ls')).exit_code, 0);
  assert.equal(trusted.asked.length, 0);
  assert.equal((await trusted.run('touch x')).exit_code, 0);
  assert.equal(trusted.asked.length, 1);
  const all = await open(t, { settings: { 'approval.on_request': 'all' }, answer: says('once') });
  await all.run('ls');
  assert.equal(all.asked.length, 1);
});

test('what could deceive the reader is made visible', limit, async (t) => {
  const { run, asked, yard } = await open(t, { answer: says('deny') });
  await run('rm -rf "a\u202Etxt.exe" # \u001b[2K\u200b', { ...ESCALATE, justification: 'ok\r\u001b[1Ahidden' });
  assert.doesNotMatch(asked[0].message, /[\u0000-\u0009\u000b-\u001f\u202e\u200b]/);
  assert.match(asked[0].message, /u\{202E\}/);
  const r = await (await open(t, { yard })).run('rm -rf "\u202E"');
  assert.doesNotMatch(approvals(yard, ['show', r.approval.id]).out, /\u202e/);
  assert.doesNotMatch(approvals(yard, ['list']).out, /\u202e/);
});

async function answersNothing(t, tier) {
  const { run, yard } = await open(t, { settings: { 'sandbox.tier': tier } });
  assert.equal((await run('echo first')).output, 'first\n', 'the sandbox is there before the state directory is');
  const r = await run('rm -rf x');
  const asked = await run(`${program} approvals approve ${r.approval.id}`);
  assert.equal(asked.status, 'pending_approval', 'a person decides about that too');
  // The same, so that nobody sees what it is.
  const hidden = await run(`a=approv; p=${program}; $p "$a"als $(echo $a)e ${r.approval.id}`);
  assert.notEqual(hidden.exit_code, 0);
  assert.ok(waiting(yard).some((q) => q.id === r.approval.id), 'it waits on');
  const state = path.join(yard.home, '.local/state/shellyard');
  assert.ok(fs.existsSync(path.join(state, 'shellyard.db')), 'the control');
  assert.notEqual((await run(`cat ${state}/shellyard.db`)).exit_code, 0);
  const marked = approvals(yard, ['approve', r.approval.id], { SHELLYARD: '1' });
  assert.notEqual(marked.code, 0);
  assert.match(marked.err, /can't answer for a person/);
}

test('a command that an agent runs can neither answer nor read what waits', limit, async (t) => {
  for (const tier of ['auto', 'no-namespace']) {
    await answersNothing(t, tier);
  }
});

test('where commands could write the answers nothing runs, and nobody is asked in vain', limit, async (t) => {
  const yard = makeYard();
  yard.ws = yard.home; // the workspace holds the state directory
  const settings = { 'sandbox.tier': 'no-namespace' };
  const { run, asked } = await open(t, { yard, answer: says('once'), settings });
  for (const command of ['rm -rf x', 'touch made']) {
    const r = await run(command);
    assert.equal(r.status, 'failed');
    assert.match(r.text, /lies below a writable root/);
    assert.match(r.text, /XDG_STATE_HOME/);
  }
  assert.equal(asked.length, 0);
  assert.ok(!fs.existsSync(path.join(yard.home, 'made')));
});

test('a rule runs the better command, says so, and that one is judged too', limit, async (t) => {
  const yard = makeYard();
  const dir = path.join(yard.home, '.config/shellyard');
  fs.mkdirSync(dir, { recursive: true, mode: 0o700 });
  fs.writeFileSync(path.join(dir, 'rules.yaml'), `rules:
  - {program: touch, args: [old], decision: forbid, reason: this project makes it anew, steer: {command: [touch, new, "{rest}"], run: true}}
  - {program: touch, args: [told], decision: forbid, steer: {command: [touch, new]}}
  - {program: touch, args: [bad], decision: forbid, steer: {command: [rm, -rf, "{rest}"], run: true}}
  - {program: touch, args: [worse], decision: forbid, steer: {command: [mkdir, "{rest}"], run: true}}
  - {program: mkdir, args: [no], decision: forbid}
`, { mode: 0o600 });
  const { client, run, asked } = await open(t, { yard, answer: says('deny') });
  const r = await run('touch old more "a b"');
  assert.equal(r.exit_code, 0, r.text);
  assert.match(r.text, /'touch old more[^;]*' is forbidden by the rule.*run instead: touch new more a b/s);
  assert.deepEqual(fs.readdirSync(yard.ws).filter((name) => name[0] !== '.').sort(), ['a b', 'more', 'new']);
  const argv = await call(client, 'shell', { command: ['touch', 'old', 'third'] });
  assert.equal(argv.structuredContent.exit_code, 0, textOf(argv));
  assert.ok(fs.existsSync(path.join(yard.ws, 'third')));
  // Told alone, in a longer script, or with more around it: nothing runs.
  for (const command of ['touch told', 'touch old x && echo on', 'touch old x > f', 'echo $(touch old x)']) {
    const said = await run(command);
    assert.equal(said.status, 'denied', `${command}: ${said.text}`);
  }
  assert.ok(!fs.existsSync(path.join(yard.ws, 'x')) && !fs.existsSync(path.join(yard.ws, 'old')));
  assert.equal(asked.length, 0);
  // The better one is dangerous: asked about, as what will run. Or forbidden.
  assert.equal((await run('touch bad more')).status, 'denied');
  assert.match(asked[0].message, /rm -rf more/);
  assert.ok(!asked[0].message.includes('touch bad'), asked[0].message);
  assert.ok(fs.existsSync(path.join(yard.ws, 'more')));
  const worse = await run('touch worse no');
  assert.equal(worse.status, 'denied');
  assert.match(worse.text, /'mkdir no' is forbidden/);
});

test('granular: by parts, and what no part lets through is refused', limit, async (t) => {
  const granular = { 'approval.policy': 'granular' };
  const none = await open(t, { answer: says('once'), settings: granular });
  const refused = await none.run('rm -rf x');
  assert.equal(refused.status, 'denied');
  assert.match(refused.text, /the granular approval\.policy lets nobody be asked about it/);
  assert.equal(none.asked.length, 0);
  assert.equal((await none.run('echo on')).output, 'on\n');
  const some = await open(t, { answer: says('once'), settings: { ...granular, 'approval.granular_sandbox_approval': true } });
  assert.equal((await some.run('rm -rf x')).exit_code, 0);
  assert.equal(some.asked.length, 1);
  const yard = makeYard();
  fs.mkdirSync(path.join(yard.home, '.config/shellyard'), { recursive: true });
  fs.writeFileSync(path.join(yard.home, '.config/shellyard/rules.yaml'), 'rules:\n  - {program: uname, decision: ask}\n');
  const ruled = await open(t, { yard, answer: says('once'), settings: { ...granular, 'approval.granular_rules': true } });
  assert.equal((await ruled.run('uname')).exit_code, 0);
  assert.equal(ruled.asked.length, 1);
  assert.equal((await ruled.run('rm -rf x')).status, 'denied');
});

test('a store that is moved away while the server runs is made anew', limit, async (t) => {
  const yard = makeYard();
  const state = path.join(yard.home, '.local/state/shellyard');
  const { run } = await open(t, { yard });
  const first = await run('rm -rf x');
  assert.equal(first.status, 'pending_approval');
  for (const gone of [['shellyard.db', 'shellyard.db-wal', 'shellyard.db-shm'], ['shellyard.changes'], null]) {
    if (gone === null) {
      fs.renameSync(state, `${state}-old`);
    }
    for (const name of gone ?? []) {
      fs.rmSync(path.join(state, name), { force: true });
    }
    const asked = await run(`rm -rf x-${gone?.[0] ?? 'all'}`);
    assert.equal(asked.status, 'pending_approval', asked.text);
    const said = await approvals(yard, ['approve', asked.approval.id]);
    assert.equal(said.code, 0, said.stderr);
    assert.equal((await run(`rm -rf x-${gone?.[0] ?? 'all'}`)).exit_code, 0);
  }
});

test('a store that cannot be used: what needs a person is refused, the rest runs', limit, async (t) => {
  const yard = makeYard();
  const state = path.join(yard.home, '.local/state/shellyard');
  fs.mkdirSync(state, { recursive: true, mode: 0o700 });
  fs.writeFileSync(path.join(state, 'shellyard.db'), 'this is no database, however long it may be\n'.repeat(200), { mode: 0o600 });
  const { run } = await open(t, { yard });
  const r = await run('rm -rf x');
  assert.equal(r.status, 'denied');
  assert.match(r.text, /shellyard\.db/);
  assert.equal((await run('touch made')).exit_code, 0);
});

test('A30 a patch is remembered for the session by its files, one by one', limit, async (t) => {
  const { client, asked, yard } = await open(t, { answer: says('session'), settings: { 'approval.policy': 'unless-trusted' } });
  const patch = (files, extra = {}) => call(client, 'apply_patch', {
    input: `*** Begin Patch\n${files.map((f) => `*** Update File: ${f}\n@@\n-${fs.readFileSync(path.join(yard.ws, f), 'utf8')}+more of ${f}${'x'.repeat(asked.length)}\n`).join('')}*** End Patch\n`,
    ...extra,
  });
  for (const f of ['a', 'b', 'c']) {
    fs.writeFileSync(path.join(yard.ws, f), 'text\n');
  }
  const dry = await patch(['a'], { dry_run: true });
  assert.equal(dry.isError ?? false, false, textOf(dry));
  assert.equal(asked.length, 0, 'what changes nothing needs nobody');
  await patch(['a', 'b']);
  assert.equal(asked.length, 1);
  assert.match(asked[0].message, /\*\*\* Update File: a\n/);
  assert.match(asked[0].message, /\+more of b/);
  assert.match(fs.readFileSync(path.join(yard.ws, 'b'), 'utf8'), /more of b/);
  await patch(['b']);
  await patch(['a']);
  assert.equal(asked.length, 1, 'each of its files by itself');
  await patch(['b', 'c']);
  assert.equal(asked.length, 2, 'c is new');
  await patch(['c']);
  assert.equal(asked.length, 2);
});

test('what the sandbox refused runs once more outside of it, if a person says so', limit, async (t) => {
  const yard = makeYard();
  const target = path.join(yard.outside, 'made');
  for (const settings of [{ 'approval.policy': 'on-failure' }, { 'approval.policy': 'on-request', 'approval.retry_on_request': true }]) {
    const yes = await open(t, { yard, settings, answer: says('once') });
    const r = await yes.run(`echo tried; touch ${target}`);
    assert.equal(r.exit_code, 0, r.text);
    assert.equal(r.output, 'tried\n', 'of the second attempt alone');
    assert.match(r.note, /a person approved this one, outside the sandbox/);
    assert.equal(r.sandbox.mode, 'danger-full-access');
    assert.ok(fs.existsSync(target));
    fs.rmSync(target);
    assert.equal(yes.asked.length, 1);
    assert.match(yes.asked[0].message, /first attempt/);
    assert.match(yes.asked[0].message, /> sandbox: .*made/);
    assert.match(yes.asked[0].message, /> touch: cannot touch/);
    await yes.run('false');
    await yes.run('ls /nonexistent');
    assert.equal(yes.asked.length, 1, 'a failure that is not the sandbox asks nobody');
    await yes.close();
  }
  const no = await open(t, { yard, settings: { 'approval.policy': 'on-failure' }, answer: says('deny') });
  const r = await no.run(`touch ${target}`);
  assert.equal(r.status, 'exited');
  assert.notEqual(r.exit_code, 0);
  assert.ok(r.denials.length > 0);
  assert.match(r.note, /said no/);
  assert.equal(r.approval.decision, 'denied');
  assert.equal(r.sandbox.mode, 'workspace-write');
  assert.equal(fs.existsSync(target), false);

  const nobody = await open(t, { yard, settings: { 'approval.policy': 'on-failure' } });
  const pending = await nobody.run(`touch ${target}`);
  assert.equal(pending.status, 'exited');
  assert.equal(pending.approval.decision, 'pending');
  assert.equal(approvals(yard, ['approve', pending.approval.id]).code, 0);
  assert.equal((await nobody.run(`touch ${target}`)).exit_code, 0, 'the same call again');
  assert.ok(fs.existsSync(target));

  const asks = await open(t, { yard, answer: says('once') });
  fs.rmSync(target);
  assert.notEqual((await asks.run(`touch ${target}`)).exit_code, 0);
  assert.equal(asks.asked.length, 0, 'on-request does not ask by itself');
});

test('what changes nothing runs side by side, what may change something alone', limit, async (t) => {
  const { run, yard } = await open(t);
  const fifo = path.join(yard.ws, 'fifo');
  assert.equal(spawnSync('mkfifo', [fifo]).status, 0);
  const order = [];
  const note = (name) => (r) => {
    order.push(name);
    return r;
  };
  const reader = run('cat fifo', { timeout_ms: 60_000 }).then(note('cat'));
  const beside = run('ls').then(note('ls'));
  const writer = run('touch made').then(note('touch'));
  const behind = run('wc -c fifo2; pwd').then(note('pwd'));
  assert.match((await beside).output, /fifo/, 'beside one that still reads');
  fs.writeFileSync(fifo, 'through\n');
  assert.equal((await reader).output, 'through\n');
  await Promise.all([writer, behind]);
  assert.deepEqual(order, ['ls', 'cat', 'touch', 'pwd'], 'nobody overtakes the one that writes');
});

test('approvals follow shows each request at a terminal and takes its answer', limit, async (t) => {
  mustRun(t, has('python3'), 'no python3');
  const { run, yard } = await open(t, { answer: () => new Promise(() => {}) });
  const terminal = followApprovals(t, yard);
  await waitFor(() => terminal.seen.text.includes('q ends'), 'it is there');
  terminal.type('y'); // answers nothing
  const first = run('rm -rf x');
  await waitFor(() => terminal.seen.text.includes('rm -rf x') && terminal.seen.text.includes('[q]uit'), 'the question');
  terminal.type('what');
  await waitFor(() => terminal.seen.text.split('[q]uit').length === 3, 'asked again');
  terminal.type('d not this one');
  const r = await first;
  assert.equal(r.status, 'denied');
  assert.match(r.text, /not this one/);
  assert.match(r.approval.decided_by, /at \/dev\/pts/);

  const grave = run('rm -rf "$UNSET"/*');
  await waitFor(() => terminal.seen.text.includes('UNSET'), 'the next question');
  const prompts = () => terminal.seen.text.split('[q]uit').length;
  const before = prompts();
  terminal.type('y');
  await waitFor(() => prompts() > before, 'a single letter does not do');
  terminal.type('n');
  assert.equal((await grave).status, 'denied');
  terminal.type('q');
  await waitFor(() => terminal.seen.code !== undefined, 'it ends');
  assert.equal(terminal.seen.code, 0);
});

test('proto: the request goes out, the answer comes in, abort ends the turn', limit, async (t) => {
  const yard = makeYard();
  const child = spawn(program, ['proto'], { cwd: yard.ws, env: yard.env, stdio: ['pipe', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  const seen = [];
  let rest = '';
  child.stdout.on('data', (chunk) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop();
    seen.push(...lines.map((line) => JSON.parse(line)));
  });
  const send = (message) => child.stdin.write(`${JSON.stringify(message)}\n`);
  const item = (id, command) => ({ type: 'function_call', call_id: id, name: 'shell', arguments: JSON.stringify({ command }) });
  const find = async (type, id) => {
    await waitFor(() => seen.some((m) => m.type === type && m.call_id === id), `${type} of ${id}`);
    return seen.find((m) => m.type === type && m.call_id === id);
  };

  send(item('a', ['rm', '-rf', 'x']));
  const request = await find('exec_approval_request', 'a');
  assert.deepEqual(request.command, ['rm', '-rf', 'x']);
  assert.equal(request.cwd, yard.ws);
  send({ type: 'exec_approval', id: 'ffff', decision: 'approved' });
  send({ type: 'exec_approval', id: request.id, decision: 'perhaps' });
  send({ type: 'exec_approval', id: request.id, decision: 'approved' });
  const output = await find('function_call_output', 'a');
  assert.doesNotMatch(output.output, /denied/);
  assert.equal(seen.filter((m) => m.type === 'error').length, 2);

  // What its request did not offer is no answer either.
  send({ ...item('g', []), name: 'shell_command', arguments: JSON.stringify({ command: 'rm -rf "$UNSET"/nothing-is-here' }) });
  const grave = await find('exec_approval_request', 'g');
  assert.deepEqual([grave.may_remember, grave.prefix], [false, []]);
  for (const decision of ['approved_for_session', 'approved_with_rule']) {
    seen.splice(0, seen.length, ...seen.filter((m) => m.type !== 'error'));
    send({ type: 'exec_approval', id: grave.id, decision });
    assert.match((await find('error', 'g')).message, new RegExp(`can't be ${decision} .*: the request stays open$`));
  }
  send({ type: 'exec_approval', id: grave.id, decision: 'approved' });
  assert.doesNotMatch((await find('function_call_output', 'g')).output, /denied/);
  assert.equal((await find('exec_approval_decided', 'g')).decision, 'approved');

  send(item('b', ['rm', '-rf', 'y']));
  const second = await find('exec_approval_request', 'b');
  send({ type: 'exec_approval', id: second.id, decision: 'denied', reason: 'y is needed' });
  assert.match((await find('function_call_output', 'b')).output, /y is needed/);

  send(item('c', ['sleep', '1000']));
  await find('exec_command_begin', 'c');
  send(item('d', ['rm', '-rf', 'z']));
  const third = await find('exec_approval_request', 'd');
  send({ type: 'exec_approval', id: third.id, decision: 'abort' });
  assert.match((await find('function_call_output', 'd')).output, /ended the turn/);
  await find('function_call_output', 'c');

  send(item('e', ['rm', '-rf', 'w']));
  await find('exec_approval_request', 'e');
  child.stdin.end();
  assert.match((await find('function_call_output', 'e')).output, /approvals approve/);
});
