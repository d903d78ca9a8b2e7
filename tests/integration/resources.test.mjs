// Sessions as resources of MCP, and progress: what a client reads without a call, and is told meanwhile.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import {
  ResourceListChangedNotificationSchema, ResourceUpdatedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { STUCK_MS, call, makeYard, processesOf, program, startMcp, waitFor } from './lib/client.mjs';

const limit = { timeout: STUCK_MS };
const uriOf = (id, part) => `shellyard://session/${id}/${part}`;

/** A server, what it tells of resources, and short words for what is asked of it. */
async function open(t, options = {}) {
  const yard = makeYard();
  const server = await startMcp({ cwd: yard.ws, env: yard.env, ...options });
  const { client } = server;
  const told = [];

  t.after(() => server.close());
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, (n) => told.push(n.params.uri));
  client.setNotificationHandler(ResourceListChangedNotificationSchema, () => told.push('list'));

  return {
    yard,
    client,
    told,
    exec: async (cmd, args = {}, more = {}) => (await call(client, 'exec_command', { cmd, yield_time_ms: 250, ...args }, more)).structuredContent,
    type: async (session_id, chars, args = {}, more = {}) => (await call(client, 'write_stdin', { session_id, chars, ...args }, more)).structuredContent,
    read: async (uri) => {
      const { contents } = await client.readResource({ uri });

      assert.equal(contents.length, 1);
      assert.equal(contents[0].uri, uri);
      assert.equal(contents[0].mimeType, 'text/plain');
      return contents[0].text;
    },
    names: async () => (await client.listResources()).resources.map((r) => r.uri),
  };
}

test('resources are declared, listed with their templates, and go with their sessions', limit, async (t) => {
  const s = await open(t, { settings: { 'sessions.max': 9 } });

  assert.deepEqual(s.client.getServerCapabilities().resources, { subscribe: true, listChanged: true });
  assert.deepEqual(await s.names(), []);
  assert.deepEqual((await s.client.listResourceTemplates()).resourceTemplates.map((r) => r.uriTemplate),
    [uriOf('{session_id}', 'screen'), uriOf('{session_id}', 'log')]);
  await s.exec('cat', { tty: true, session_id: 'a' });
  await s.exec('echo over', { session_id: 'b' });

  const { resources } = await s.client.listResources();

  assert.deepEqual(resources.map((r) => r.uri), [uriOf('a', 'screen'), uriOf('a', 'log'), uriOf('b', 'log')]);
  assert.equal(resources[0].description, 'cat (runs)');
  assert.equal(resources[2].description, 'echo over (exited with code 0)');
  await waitFor(() => s.told.includes('list'), 'the list is told to have changed');

  for (let i = 0; i < 9; i += 1) {
    await s.exec('true', { session_id: `n${i}`, yield_time_ms: 10_000 });
  }
  assert.equal((await s.names()).includes(uriOf('b', 'log')), false, 'it made room');
  await assert.rejects(s.read(uriOf('b', 'log')), (e) => e.code === -32002 && e.data.uri === uriOf('b', 'log')
    && /exited with code 0, and made room/.test(e.message));
});

test('the screen is what a person sees, the log what was written, and neither counts as read', limit, async (t) => {
  const s = await open(t);
  const r = await s.exec("printf 'one\\033[31m red\\033[0m\\ntwo'; sleep 300", { tty: true, session_id: 'a', pattern: 'two', yield_time_ms: 30_000 });

  assert.equal(r.reason, 'pattern');
  await s.type('a', 'typed');
  await waitFor(async () => /two.*typed/.test(await s.read(uriOf('a', 'screen'))), 'the echo');
  assert.equal(await s.read(uriOf('a', 'screen')), 'one red\ntwotyped\n');
  assert.equal(await s.read(uriOf('a', 'log')), 'one red\ntwotyped');

  const plain = await s.exec('echo here; sleep 300', { session_id: 'b', pattern: 'nothing' });

  assert.equal(plain.output, 'here\n');
  await s.exec('sleep 1; echo unread', { session_id: 'c' });
  await waitFor(async () => /unread/.test(await s.read(uriOf('c', 'log'))), 'its output');
  assert.equal((await s.type('c', '', { yield_time_ms: 10_000 })).output, 'unread\n');
  assert.equal(await s.read(uriOf('c', 'log')), 'unread\n', 'it is kept after the end');
  await assert.rejects(s.read(uriOf('b', 'screen')), /-32002.*no terminal/);
});

test('a long log is cut in the middle, with a marker that says how much is missing', limit, async (t) => {
  const s = await open(t);

  await s.exec('seq 1 300000', { session_id: 'a', yield_time_ms: 30_000 });

  const text = await s.read(uriOf('a', 'log'));

  assert.ok(Buffer.byteLength(text) <= 262_144 + 4096, `${text.length}`);
  assert.match(text, /^1\n2\n/);
  assert.match(text, /\n300000\n$/);
  assert.match(text, /omitted/);
});

for (const uri of ['shellyard://session/nope/log', 'shellyard://session/a/other', 'file:///etc/passwd', 'shellyard://session/../log']) {
  test(`${uri} is no resource`, limit, async (t) => {
    const { client } = await open(t);
    const isUnknown = (e) => e.code === -32002 && e.data.uri === uri;

    await assert.rejects(client.readResource({ uri }), isUnknown);
    await assert.rejects(client.subscribeResource({ uri }), isUnknown);
  });
}

test('changes of what is subscribed to are told, few while much is written, and the last one', limit, async (t) => {
  const s = await open(t);

  await s.exec('stty -echo; while read -r n; do for ((i = 0; i < n; i++)); do echo "$i"; done; echo "done $n"; done', {
    tty: true, session_id: 'a', shell: 'bash', until: 'input', yield_time_ms: 30_000 });
  await s.exec('cat', { tty: true, session_id: 'other' });
  await s.client.subscribeResource({ uri: uriOf('a', 'screen') });
  await s.client.subscribeResource({ uri: uriOf('a', 'log') });
  s.told.length = 0;

  const began = performance.now();
  const end = await s.type('a', '100000\n', { pattern: 'done 100000', yield_time_ms: 30_000 });

  assert.equal(end.reason, 'pattern');
  await s.type('other', 'x\n');
  // The last change is told: whoever reads after it sees the end.
  await waitFor(async () => s.told.at(-1) !== undefined && /done 100000/.test(await s.read(uriOf('a', 'screen'))), 'a notification');

  const each = 2 + (performance.now() - began) / 100;

  for (const part of ['screen', 'log']) {
    const n = s.told.filter((uri) => uri === uriOf('a', part)).length;

    assert.ok(n >= 1 && n <= each, `${n} of the ${part}, at most ${each}`);
  }
  assert.equal(s.told.some((uri) => uri.includes('other')), false);
  await s.client.unsubscribeResource({ uri: uriOf('a', 'screen') });
  s.told.length = 0;
  await s.type('a', '1\n', { pattern: 'done 1', yield_time_ms: 30_000 });
  await waitFor(() => s.told.includes(uriOf('a', 'log')), 'the log is told');
  assert.equal(s.told.includes(uriOf('a', 'screen')), false);
  s.told.length = 0;
  await call(s.client, 'kill_session', { session_id: 'a' });
  await waitFor(() => s.told.includes(uriOf('a', 'log')) && s.told.includes('list'), 'its end is told');
});

/** A client that reads when it wants to, with a session that floods what it is subscribed to. */
async function openRaw(t, cmd) {
  const yard = makeYard();
  const child = spawn(program, ['mcp'], { cwd: yard.ws, env: yard.env, stdio: ['pipe', 'pipe', 'inherit'] });
  let id = 0;
  let text = '';

  t.after(() => child.kill('SIGKILL'));
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    text += chunk;
  });

  const say = (method, params, isNotification = false) => {
    id += 1;
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...(isNotification ? {} : { id }), method, params })}\n`);
    return id;
  };
  const lines = () => text.split('\n').slice(0, -1).map((line) => JSON.parse(line));
  const seen = (test) => waitFor(() => lines().find(test), String(test));

  say('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } });
  say('notifications/initialized', {}, true);

  const begun = say('tools/call', { name: 'exec_command', arguments: { cmd, session_id: 'a', yield_time_ms: 250 } });

  await seen((m) => m.id === begun);

  const subscribed = say('resources/subscribe', { uri: uriOf('a', 'log') });

  await seen((m) => m.id === subscribed);
  return { yard, child, say, seen };
}

test('a client that does not read is no burden, and is told once it reads again', limit, async (t) => {
  const { yard, child, say, seen } = await openRaw(t,
    'for i in $(seq 50); do seq 2000; sleep 0.02; done; touch over; echo the-end; sleep 300');

  child.stdout.pause();
  // Its answers fill the pipe, and then wait.
  for (let i = 0; i < 20; i += 1) {
    say('resources/read', { uri: uriOf('a', 'log') });
  }
  await waitFor(() => fs.existsSync(path.join(yard.ws, 'over')), 'the command goes on');
  child.stdout.resume();

  // What the file says the terminal may still be on its way to say.
  await waitFor(async () => {
    const last = say('resources/read', { uri: uriOf('a', 'log') });
    const answer = await seen((m) => m.id === last);

    return /the-end/.test(answer.result.contents[0].text);
  }, 'the end of the log');
  await seen((m) => m.method === 'notifications/resources/updated');
});

test('a client that closes its end while it is told of changes is gone', limit, async (t) => {
  const { yard, child, seen } = await openRaw(t, 'while :; do seq 1000; sleep 0.01; done');
  const ended = once(child, 'exit');

  await seen((m) => m.method === 'notifications/resources/updated');
  child.stdout.destroy();
  await ended;
  await waitFor(() => processesOf(yard.mark).length === 0, 'the end of its session');
});

/** Each is one call that waits while this is written. */
const script = "for i in 1 2 3 4 5 6; do printf 'line \\033[1m%s\\033[0m\\n' $i; sleep 0.3; done";

for (const [name, run] of Object.entries({
  shell: (s, more) => call(s.client, 'shell', { command: ['bash', '-c', script] }, more),
  shell_command: (s, more) => call(s.client, 'shell_command', { command: script }, more),
  exec_command: (s, more) => call(s.client, 'exec_command', { cmd: script, tty: true, yield_time_ms: 30_000 }, more),
  write_stdin: async (s, more) => {
    const { session_id } = await s.exec(`read -r x; ${script}`, { tty: true });

    return call(s.client, 'write_stdin', { session_id, chars: '\n', yield_time_ms: 30_000 }, more);
  },
  'shell wait': async (s, more) => {
    const { session_id } = await s.exec(script, { tty: true });

    return call(s.client, 'shell', { action: 'wait', session_id, yield_time_ms: 30_000 }, more);
  },
})) {
  test(`progress of ${name} shows the last line as it comes, and nothing after the answer`, limit, async (t) => {
    const s = await open(t);
    const seen = [];
    const result = await run(s, { onprogress: (p) => seen.push(p) });
    const n = seen.length;

    assert.equal(result.structuredContent.exit_code, 0, JSON.stringify(result));
    assert.ok(n >= 2 && n <= 20, `${n} notifications`);
    for (let i = 0; i < n; i += 1) {
      assert.match(seen[i].message ?? 'line 0', /^line \d$/);
      assert.ok(i === 0 || seen[i].progress > seen[i - 1].progress);
    }
    assert.ok(new Set(seen.map((p) => p.message)).size >= 2);
    await s.client.ping();
    assert.equal(seen.length, n);
  });
}

test('progress of a program that draws shows its lowest row', limit, async (t) => {
  const s = await open(t);
  const seen = [];

  await s.exec("printf '\\033[?1049h\\033[2J\\033[5;3Hstatus here'; sleep 1; printf '\\033[?1049l'", { tty: true, yield_time_ms: 30_000 },
    { onprogress: (p) => seen.push(p) });
  assert.ok(seen.some((p) => p.message === '  status here'), JSON.stringify(seen));
});
