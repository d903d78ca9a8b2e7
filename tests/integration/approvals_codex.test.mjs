// A client that calls itself as Codex does is asked by the prompt that Codex has for approvals. What
// comes back from there passes what every answer passes, and a little more, for its first choice is yes.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { spawnSync } from 'node:child_process';
import { describe, test } from 'node:test';
import { makeYard, program, STUCK_MS, waitFor } from './lib/client.mjs';
import { says, startAsked } from './lib/person.mjs';

const limit = { timeout: STUCK_MS };
const READS_MS = 1000; // longer than nobody's answer, by what a loaded machine needs

const later = (value) => new Promise((resolve) => {
  setTimeout(() => resolve(value), READS_MS);
});
const codex = (t, answer, options = {}) => startAsked(t, { clientName: 'codex-mcp-client', answer, ...options });
const ESCALATE = { sandbox_permissions: 'require_escalated' };
/** Of Codex's prompt: allowed, and for how long. */
const allows = (persist, more = {}) => () => later({ action: 'accept', content: {}, _meta: persist === undefined ? {} : { persist }, ...more });
const made = (yard, name) => fs.existsSync(path.join(yard.ws, name));

// They mostly wait for their person: side by side.
describe('the prompt of Codex', { concurrency: true }, () => {
  test('the prompt of Codex says what would run, and offers what the form offers', limit, async (t) => {
    const { run, asked, yard } = await codex(t, allows());
    fs.writeFileSync(path.join(yard.ws, 'file'), 'text\n');
    const r = await run('rm -rf file \u202e');
    assert.equal(r.exit_code, 0, r.text);
    assert.equal(r.approval.decision, 'approved');
    assert.equal(r.approval.decided_by, 'the prompt of codex-mcp-client');
    assert.ok(!made(yard, 'file'));
    const [q] = asked;
    assert.match(q.message, /^Shellyard/);
    assert.match(q.message, /rm -rf file/);
    assert.deepEqual(q.requestedSchema, { type: 'object', properties: {} });
    assert.deepEqual(q._meta, {
      codex_approval_kind: 'mcp_tool_call',
      persist: ['session'], // no rule is made of what removes
      tool_params_display: [{ name: 'command', display_name: 'Command', value: 'rm -rf file \\u{202E}' }],
    });
    assert.equal((await run('rm -rf file \u202e')).exit_code, 0);
    assert.equal(asked.length, 2, 'once is once, and bound to what was shown');
    const other = await startAsked(t, { clientName: 'codex', answer: says('once') });
    assert.equal((await other.run('rm -rf file')).exit_code, 0);
    assert.deepEqual(other.asked[0].requestedSchema.properties.decision.enum, ['deny', 'once', 'session'], 'whoever does not say it is Codex has the form');
    assert.equal(other.asked[0]._meta, undefined);
  });

  test('for the session, by a rule, and no', limit, async (t) => {
    const yard = makeYard();
    const answers = [allows('session'), allows('always'), () => later({ action: 'cancel' }), () => later({ action: 'decline' })];
    const { run, asked } = await codex(t, () => answers[asked.length - 1](), { yard });
    const touch = (name) => run(`touch ../outside/${name}`, ESCALATE);
    const results = [await touch('a'), await touch('b'), await touch('c'), await touch('d')];
    assert.deepEqual(results.map((r) => r.approval.decision), ['approved_for_session', 'approved_with_rule', 'denied', 'denied']);
    assert.deepEqual(asked[0]._meta.persist, ['session', 'always']);
    for (const name of ['a', 'b']) {
      assert.equal((await touch(name)).exit_code, 0);
    }
    for (const name of ['c', 'd']) {
      assert.match((await touch(name)).text, /a person denied it/);
    }
    assert.equal(asked.length, 4, 'nobody is asked twice');
    assert.deepEqual(fs.readdirSync(yard.outside).sort(), ['a', 'b']);
  });

  test('what is no answer of a person: at once, a model, another choice than was offered', limit, async (t) => {
    const cases = [
      () => ({ action: 'accept', content: {} }), // as Codex does where approvals are given up
      () => ({ action: 'cancel' }),
      () => later({ action: 'accept', _meta: { approvals_reviewer: 'auto_review' } }),
      allows('forever'),
      allows(undefined, { content: { decision: 'once' } }),
      allows('always'), // no rule is made of what removes
    ];
    await Promise.all(cases.map(async (answer) => {
      const { run, asked, yard } = await codex(t, answer);
      fs.writeFileSync(path.join(yard.ws, 'x'), '');
      const r = await run('rm -rf x');
      assert.equal(r.status, 'pending_approval', `${answer}: ${r.text}`);
      assert.ok(made(yard, 'x'));
      assert.equal(asked.length, 1);
      const yes = spawnSync(program, ['approvals', 'approve', r.approval.id], { env: yard.env, encoding: 'utf8' });
      assert.equal(yes.status, 0, yes.stderr);
      assert.equal((await run('rm -rf x')).exit_code, 0, 'it can still be answered');
    }));
  });

  test('time counts from when the client is seen to read', limit, async (t) => {
    // A client that is held up takes its yes by itself later than nobody's answer comes: the ping behind it tells.
    const { run, client, asked, yard } = await codex(t, allows());
    fs.writeFileSync(path.join(yard.ws, 'x'), '');
    client.removeRequestHandler('ping');
    client.fallbackRequestHandler = () => new Promise(() => {});
    assert.equal((await run('rm -rf x')).status, 'pending_approval');
    assert.equal(asked.length, 1);
    assert.ok(made(yard, 'x'));
  });

  test('what destroys a home is asked by the form that stands on no', limit, async (t) => {
    const { run, asked } = await codex(t, () => later({ action: 'accept', content: {} }), { settings: { 'sandbox.mode': 'danger-full-access' } });
    assert.equal((await run('rm -rf "$NOTHING"/*')).status, 'pending_approval', 'an accept without its field is none');
    assert.equal(asked[0]._meta?.codex_approval_kind, undefined);
    assert.equal(asked[0].requestedSchema.properties.decision.default, 'deny');
  });

  test('a prompt whose call is over does nothing', limit, async (t) => {
    let answer;
    const { run, yard } = await codex(t, () => new Promise((resolve) => {
      answer = resolve;
    }), { settings: { 'approval.hold_ms': 300 } });
    fs.writeFileSync(path.join(yard.ws, 'x'), '');
    const r = await run('rm -rf x');
    assert.equal(r.status, 'pending_approval');
    answer({ action: 'accept', content: {} });
    assert.equal((await run('echo on')).output, 'on\n');
    const left = () => JSON.parse(spawnSync(program, ['approvals', 'list', '--json'], { env: yard.env, encoding: 'utf8' }).stdout).requests;
    await waitFor(() => left().some((q) => q.id === r.approval.id), 'it waits on');
    assert.ok(made(yard, 'x'));
  });
});
