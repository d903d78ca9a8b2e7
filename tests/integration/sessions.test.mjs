// Subagents: sessions below the main one, over `shellyard proto`.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { spawnSync } from 'node:child_process';
import test from 'node:test';

import { makeYard, program, waitFor } from './lib/client.mjs';
import { openProto } from './lib/proto.mjs';

const limit = { timeout: 60_000 };

/** A talk with helpers: call, open, and waits for what belongs to a session. */
function talk(t, yard, settings) {
  const proto = openProto(t, yard, settings);
  const seen = () => proto.lines.map((line) => JSON.parse(line));
  const call = (session, id, command) => proto.send({
    type: 'function_call', name: 'shell', call_id: id, session, arguments: JSON.stringify({ command }),
  });
  const next = (type, session, id) => proto.next((m) => m.type === type && m.session === session && (id === undefined || m.call_id === id));
  const openSession = (id, more = {}) => {
    proto.send({ type: 'session', action: 'open', id, ...more });
    return proto.next((m) => (m.type === 'session_opened' && m.id === id) || (m.type === 'error' && m.message.startsWith('session not opened')));
  };
  return { ...proto, find: proto.next, seen, call, next, openSession };
}

const approvals = (yard, ...args) => {
  const r = spawnSync(program, ['approvals', ...args], { cwd: yard.ws, env: yard.env, encoding: 'utf8' });
  assert.equal(r.status, 0, r.stderr);
  return r.stdout;
};
const closed = (proto, id) => proto.find((m) => m.type === 'session_closed' && m.id === id);
const output = 'function_call_output';
const request = 'exec_approval_request';

test('a child has calls of its own, named in all that is told of them', limit, async (t) => {
  const proto = talk(t, makeYard());
  const opened = await proto.openSession('child-1', { name: 'run the tests' });
  assert.equal(opened.type, 'session_opened');
  assert.equal(opened.name, 'run the tests');
  assert.equal(opened.sandbox_mode, 'workspace-write');
  assert.equal(opened.parent, undefined);
  assert.equal((await proto.openSession('grand-1', { parent: 'child-1' })).parent, 'child-1');
  // The same call_id in three sessions at a time: models number their calls by themselves.
  for (const [session, word] of [[undefined, 'main'], ['child-1', 'child'], ['grand-1', 'grand']]) {
    proto.call(session, 'c1', ['echo', word]);
  }
  for (const [session, word] of [[undefined, 'main'], ['child-1', 'child'], ['grand-1', 'grand']]) {
    assert.equal((await proto.next(output, session, 'c1')).output, `${word}\n`);
    const told = proto.seen().filter((m) => m.call_id === 'c1' && m.session === session).map((m) => m.type);
    assert.deepEqual(told, ['exec_command_begin', 'exec_command_output_delta', 'exec_command_end', output]);
  }
});

test('a child asks the person of its parent, who sees which one it is', limit, async (t) => {
  const yard = makeYard();
  const proto = talk(t, yard);
  await proto.openSession('child-1', { name: 'tidy\u001b[2J up' });
  await proto.openSession('grand-1', { parent: 'child-1' });
  proto.call('child-1', 'a', ['rm', '-rf', 'x']);
  const asked = await proto.next(request, 'child-1', 'a');
  assert.deepEqual(asked.subagent, { id: 'child-1', name: 'tidy\u001b[2J up', of: [] });
  const shown = approvals(yard, 'show', asked.id);
  assert.match(shown, /^Asked by: {3}subagent child-1, called: tidy.*up$/m);
  assert.ok(!shown.includes('\u001b'), 'controls are made visible');
  assert.match(approvals(yard, 'list'), /subagent child-1: rm -rf x/);
  proto.send({ type: 'exec_approval', id: asked.id, decision: 'approved' });
  assert.doesNotMatch((await proto.next(output, 'child-1', 'a')).output, /denied/);

  proto.call('grand-1', 'b', ['rm', '-rf', 'y']);
  const deeper = await proto.next(request, 'grand-1', 'b');
  assert.match(approvals(yard, 'show', deeper.id), /^Asked by: {3}subagent grand-1 of child-1$/m);
  approvals(yard, 'approve', deeper.id);
  assert.doesNotMatch((await proto.next(output, 'grand-1', 'b')).output, /denied/);
  const decided = await proto.next('exec_approval_decided', 'grand-1', 'b');
  assert.match(decided.decided_by, /^uid \d+/);

  // Control: the main agent's request names no subagent.
  proto.call(undefined, 'c', ['rm', '-rf', 'z']);
  const own = await proto.next(request, undefined, 'c');
  assert.equal(own.subagent, undefined);
  assert.doesNotMatch(approvals(yard, 'show', own.id), /Asked by/);
  proto.send({ type: 'exec_approval', id: own.id, decision: 'denied' });
  await proto.next(output, undefined, 'c');
});

test('what the person allows for the session goes down, and not up', limit, async (t) => {
  const proto = talk(t, makeYard());
  for (const id of ['child-1', 'child-2']) {
    await proto.openSession(id);
  }
  await proto.openSession('grand-1', { parent: 'child-1' });
  const answer = async (session, id, command, decision) => {
    proto.call(session, id, command);
    const asked = await proto.next(request, session, id);
    proto.send({ type: 'exec_approval', id: asked.id, decision });
    return proto.next(output, session, id);
  };
  const wasAsked = (session, id) => proto.seen().some((m) => m.type === request && m.session === session && m.call_id === id);

  await answer('child-1', 'a1', ['rm', '-rf', 'x'], 'approved_for_session');
  proto.call('child-1', 'a2', ['rm', '-rf', 'x']);
  await proto.next(output, 'child-1', 'a2');
  proto.call('grand-1', 'a3', ['rm', '-rf', 'x']);
  await proto.next(output, 'grand-1', 'a3');
  assert.ok(!wasAsked('child-1', 'a2') && !wasAsked('grand-1', 'a3'));
  await answer(undefined, 'a4', ['rm', '-rf', 'x'], 'approved'); // the parent is asked all the same
  await answer('child-2', 'a5', ['rm', '-rf', 'x'], 'approved'); // and the other child

  await answer(undefined, 'b1', ['rm', '-rf', 'y'], 'approved_for_session');
  proto.call('grand-1', 'b2', ['rm', '-rf', 'y']);
  await proto.next(output, 'grand-1', 'b2');
  assert.ok(!wasAsked('grand-1', 'b2'), 'what the main session may goes down to all');

  await answer(undefined, 'c1', ['rm', '-rf', 'z'], 'denied');
  proto.call('child-2', 'c2', ['rm', '-rf', 'z']);
  assert.match((await proto.next(output, 'child-2', 'c2')).output, /a person denied it/);
  assert.ok(!wasAsked('child-2', 'c2'), 'a no is not asked around');
});

test('a turn of a child narrows, and what would widen says what its parent allows', limit, async (t) => {
  const yard = makeYard();
  fs.mkdirSync(path.join(yard.ws, 'part'));
  const proto = talk(t, yard);
  await proto.openSession('child-1');
  const turn = async (session, members) => {
    const before = proto.lines.length;
    proto.send({ type: 'turn', session, ...members });
    await waitFor(() => proto.lines.length > before, 'an answer');
    return JSON.parse(proto.lines[before]);
  };
  const told = await turn('child-1', { turn_id: 't', cwd: path.join(yard.ws, 'part') });
  assert.deepEqual(told, {
    type: 'turn_started', session: 'child-1', turn_id: 't', cwd: path.join(yard.ws, 'part'),
    sandbox_mode: 'workspace-write', network_access: false, approval_policy: 'on-request',
  });
  proto.call('child-1', 'w1', ['touch', 'made']);
  await proto.next(output, 'child-1', 'w1');
  assert.ok(fs.existsSync(path.join(yard.ws, 'part/made')));
  proto.call('child-1', 'w2', ['touch', path.join(yard.ws, 'beside')]);
  await proto.next(output, 'child-1', 'w2');
  assert.ok(!fs.existsSync(path.join(yard.ws, 'beside')), 'the rest of the workspace is out of its reach');
  proto.call(undefined, 'w3', ['touch', path.join(yard.ws, 'beside')]);
  await proto.next(output, undefined, 'w3');
  assert.ok(fs.existsSync(path.join(yard.ws, 'beside')), 'and in that of the parent');

  assert.match((await turn('child-1', { cwd: yard.outside })).message, /is not in '.*', the directory of/);
  proto.call('child-1', 'n1', ['touch', 'other']);
  assert.match((await proto.next(output, 'child-1', 'n1')).output, /not run: the turn/);
  assert.match((await turn('child-1', { sandbox_mode: 'danger-full-access' })).message, /wider than workspace-write/);
  assert.match((await turn('child-1', { approval_policy: 'never' })).message, /asks less than on-request/);
  assert.equal((await turn('child-1', {})).type, 'turn_started');

  // A narrower turn of the parent holds below, whatever the child was allowed before.
  await turn(undefined, { sandbox_mode: 'read-only' });
  proto.call('child-1', 'r1', ['touch', 'late']);
  await proto.next(output, 'child-1', 'r1');
  assert.ok(!fs.existsSync(path.join(yard.ws, 'late')));
  assert.match((await turn('child-1', { sandbox_mode: 'workspace-write' })).message, /wider than read-only/);
});

test('a link made by a command leads no child out of its parent', limit, async (t) => {
  const yard = makeYard();
  const dirs = ['part', 'same'].map((name) => path.join(yard.ws, name));
  dirs.forEach((dir) => fs.mkdirSync(dir));
  const proto = talk(t, yard);
  await proto.openSession('child-1', { cwd: dirs[0] });
  await proto.openSession('child-2', { cwd: dirs[1] });
  proto.call(undefined, 'swap', ['/bin/sh', '-c', `mv part was && ln -s ${yard.outside} part`]);
  await proto.next(output, undefined, 'swap');
  assert.ok(fs.lstatSync(dirs[0]).isSymbolicLink(), 'control: the parent can do that');
  proto.call('child-2', 'a', ['touch', 'one']);
  await proto.next(output, 'child-2', 'a');
  assert.ok(fs.existsSync(path.join(dirs[1], 'one')), 'control: a directory that is still itself');
  proto.call('child-1', 'b', ['touch', 'two']);
  assert.match((await proto.next(output, 'child-1', 'b')).output, /symbolic link/);
  assert.ok(!fs.existsSync(path.join(yard.outside, 'two')));
  assert.match((await proto.openSession('child-3', { cwd: dirs[0] })).message, /is not in/);
});

test('to cancel a parent aborts the calls and open requests of all below it', limit, async (t) => {
  const yard = makeYard();
  const proto = talk(t, yard);
  await proto.openSession('child-1');
  await proto.openSession('grand-1', { parent: 'child-1' });
  await proto.openSession('child-2');
  proto.call('child-1', 'run', ['sleep', '1000']);
  proto.call('grand-1', 'ask', ['rm', '-rf', 'x']);
  proto.call('child-2', 'other', ['sleep', '2000']);
  await proto.next('exec_command_begin', 'child-1', 'run');
  await proto.next('exec_command_begin', 'child-2', 'other');
  const asked = await proto.next(request, 'grand-1', 'ask');
  assert.match(approvals(yard, 'list'), /subagent grand-1/, 'control: it waits');
  proto.send({ type: 'interrupt', session: 'child-1' });
  await proto.next(output, 'child-1', 'run');
  await proto.next(output, 'grand-1', 'ask');
  assert.equal((await proto.next('exec_approval_decided', 'grand-1', 'ask')).decision, 'cancelled');
  await waitFor(() => approvals(yard, 'list').startsWith('nothing waits'), 'the request is taken back');
  const late = spawnSync(program, ['approvals', 'approve', asked.id], { env: yard.env, encoding: 'utf8' });
  assert.notEqual(late.status, 0, 'a late answer changes nothing');
  assert.ok(!proto.seen().some((m) => m.type === output && m.session === 'child-2'), 'the other child goes on');

  // The sessions are still open; closing the other one ends its call and says so.
  proto.call('grand-1', 'again', ['echo', 'there']);
  assert.equal((await proto.next(output, 'grand-1', 'again')).output, 'there\n');
  proto.send({ type: 'session', action: 'close', id: 'child-2' });
  await proto.next(output, 'child-2', 'other');
  await closed(proto, 'child-2');
});

test('closing a parent closes its children first, and takes back what they had', limit, async (t) => {
  const yard = makeYard();
  const proto = talk(t, yard);
  await proto.openSession('child-1');
  await proto.openSession('grand-1', { parent: 'child-1' });
  proto.call('grand-1', 'ask', ['rm', '-rf', 'x']);
  await proto.next(request, 'grand-1', 'ask');
  proto.send({ type: 'session', action: 'close', id: 'child-1' });
  await closed(proto, 'child-1');
  const order = proto.seen().filter((m) => m.type === 'session_closed' || m.type === output).map((m) => m.id ?? m.call_id);
  assert.deepEqual(order, ['ask', 'grand-1', 'child-1']);
  proto.call('child-1', 'late', ['echo', 'x']);
  const error = await proto.find((m) => m.type === 'error' && m.call_id === 'late');
  assert.match(error.message, /session 'child-1' is not open/);
  // The id may be had again, and nothing of the old one holds for it.
  assert.equal((await proto.openSession('child-1')).type, 'session_opened');
  proto.call('child-1', 'new', ['echo', 'x']);
  assert.equal((await proto.next(output, 'child-1', 'new')).output, 'x\n');
});

test('hooks are told whose call it is', limit, async (t) => {
  const yard = makeYard();
  const hook = path.join(yard.dir, 'told.sh');
  fs.writeFileSync(hook, '#!/bin/sh\ncat > "$0.json"\n');
  fs.chmodSync(hook, 0o755);
  const config = path.join(yard.home, '.config/shellyard');
  fs.mkdirSync(config, { recursive: true });
  fs.writeFileSync(path.join(config, 'config.yaml'), `hooks:\n  pre_exec: ["${hook}"]\n`);
  const proto = talk(t, yard);
  await proto.openSession('child-1', { name: 'tests' });
  proto.call('child-1', 'a', ['echo', 'x']);
  await proto.next(output, 'child-1', 'a');
  assert.deepEqual(JSON.parse(fs.readFileSync(`${hook}.json`, 'utf8')).subagent, { id: 'child-1', name: 'tests', of: [] });
  proto.call(undefined, 'b', ['echo', 'y']);
  await proto.next(output, undefined, 'b');
  assert.equal(JSON.parse(fs.readFileSync(`${hook}.json`, 'utf8')).subagent, undefined);
});
