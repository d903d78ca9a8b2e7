// MCP through the official SDK: what a client lists, calls, cancels and waits for.
import assert from 'node:assert/strict';
import test from 'node:test';

import { call, makeYard, processesOf, startMcp, textOf } from './lib/client.mjs';

const limit = { timeout: 60_000 };

async function open(t, settings = {}, options = {}) {
  const yard = makeYard();
  const server = await startMcp({
    cwd: yard.ws, env: yard.env, settings: { 'shell.path': '/bin/bash', ...settings }, ...options,
  });
  t.after(() => server.close());
  return { yard, ...server };
}

/** Resolves once `condition` holds, which something else is about to make true. */
async function until(condition, what) {
  const end = performance.now() + 20_000;
  while (!condition()) {
    assert.ok(performance.now() < end, `not within 20 s: ${what}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const sessions = ['exec_command', 'write_stdin', 'list_sessions', 'kill_session'];

test('the list of tools is small, flat and fully annotated', limit, async (t) => {
  const { client } = await open(t);
  const list = await client.listTools();
  assert.deepEqual(list.tools.map((tool) => tool.name), ['shell', 'shell_command', ...sessions.slice(0, 2), 'apply_patch', 'request_access',
    ...sessions.slice(2)]);
  const line = `${JSON.stringify({ jsonrpc: '2.0', id: 1, result: list })}\n`;
  assert.ok(Buffer.byteLength(line) <= 12_000, `${Buffer.byteLength(line)} bytes`);
  for (const tool of list.tools) {
    assert.equal(tool.inputSchema.type, 'object');
    assert.equal(tool.outputSchema.type, 'object');
    for (const word of ['oneOf', 'anyOf', 'allOf', 'if', '$ref']) {
      assert.ok(!(word in tool.inputSchema), `${tool.name} has ${word}`);
    }
    const looks = tool.name === 'list_sessions';
    const asks = tool.name === 'request_access'; // changes nothing, and twice is once
    const ends = tool.name === 'kill_session';
    assert.deepEqual(tool.annotations, {
      readOnlyHint: looks, destructiveHint: !asks && !looks, idempotentHint: asks || looks || ends,
      openWorldHint: !asks && !looks && !ends && tool.name !== 'apply_patch',
      ...(tool.annotations.title ? { title: tool.annotations.title } : {}),
    });
  }
  assert.equal(client.getInstructions(), 'shell_command: one command line. shell: one program with its arguments. '
    + 'exec_command: also what runs on or asks (REPLs; tty). apply_patch: edit files. '
    + 'Calls end with the command or after timeout_ms (default 10000): give builds more. '
    + 'exec_command answers when it has ended or yield_time_ms is over; then write_stdin types and waits (until: prompt, input, stable; pattern). '
    + 'A non-zero exit_code is no error. Commands run in a sandbox: what it denies fails inside them, e.g. "Permission denied". '
    + "isError: it did not run, or not to its end; change the call as the text says, don't repeat it.");
  assert.equal(client.getServerVersion().name, 'shellyard');
});

for (const [type, names] of Object.entries({
  default: ['shell', 'apply_patch', 'request_access'], shell_command: ['shell_command', 'apply_patch', 'request_access'],
  all: ['shell', 'shell_command', 'exec_command', 'write_stdin', 'apply_patch', 'request_access', 'list_sessions', 'kill_session'],
  unified_exec: ['exec_command', 'write_stdin', 'apply_patch', 'request_access', 'list_sessions', 'kill_session'], disabled: [],
})) {
  test(`tools.shell_type ${type} lists [${names}]`, limit, async (t) => {
    const { client } = await open(t, { 'tools.shell_type': type });
    const { tools } = await client.listTools();
    assert.deepEqual(tools.map((tool) => tool.name), names);
    const aliased = call(client, 'container.exec', { command: ['echo', 'hi'] });
    if (type === 'disabled') {
      await assert.rejects(aliased, /unknown tool/);
    } else {
      assert.equal((await aliased).structuredContent.output, 'hi\n');
    }
  });
}

for (const type of ['default', 'shell_command', 'unified_exec', 'all', 'disabled']) {
  test(`the instructions have at most 600 bytes in every configuration, tools.shell_type ${type}`, limit, async (t) => {
    for (const mode of ['read-only', 'workspace-write', 'external-sandbox', 'danger-full-access']) {
      for (const policy of ['unless-trusted', 'on-request', 'on-failure', 'never']) {
        const { client } = await open(t, {
          'tools.shell_type': type, 'tools.timeout_ms': 86_400_000, 'sandbox.mode': mode, 'approval.policy': policy,
        });
        const text = client.getInstructions();
        assert.ok(Buffer.byteLength(text) <= 600, `${Buffer.byteLength(text)} bytes: ${text}`);
        await client.close();
      }
    }
  });
}

test('what a client is told is true under its configuration', limit, async (t) => {
  const { client } = await open(t, {
    'sandbox.mode': 'danger-full-access', 'tools.shell_type': 'shell_command', 'tools.timeout_ms': 30_000, 'shell.login': false,
    'output.max_bytes': 1000, 'output.max_tokens': 300,
  });
  const { tools } = await client.listTools();
  const { description, inputSchema: { properties } } = tools.find((tool) => tool.name === 'shell_command');
  assert.doesNotMatch(description, /sandbox/);
  assert.match(properties.timeout_ms.description, /Default 30000\./);
  assert.match(properties.login.description, /Default false\./);
  assert.equal(properties.max_output_tokens.description, 'Default 250, at most 300 (of 4 bytes).');
  assert.match(client.getInstructions(), /timeout_ms \(default 30000\).* Commands run without a sandbox\. /);

  const sessionsOnly = await open(t, { 'tools.shell_type': 'unified_exec' });
  assert.match(sessionsOnly.client.getInstructions(), /exec_command answers when .* yield_time_ms is over.*write_stdin.*\(until: prompt/);
  assert.doesNotMatch(sessionsOnly.client.getInstructions(), /shell/);
  const shellOnly = await open(t, { 'tools.shell_type': 'default' });
  assert.match(shellOnly.client.getInstructions(), /asks: action spawn, then wait or send_text \(until: prompt, input; pattern\)/);
  assert.doesNotMatch(shellOnly.client.getInstructions(), /exec_command|write_stdin/);
  const none = await open(t, { 'tools.shell_type': 'disabled' });
  assert.match(none.client.getInstructions(), /^There are no tools here: /);
});

test('shell runs an argument list that no shell reads, by each of its names', limit, async (t) => {
  const { client } = await open(t);
  for (const name of ['shell', 'container.exec', 'local_shell']) {
    const result = await call(client, name, { command: ['printf', '%s|', 'a b', '$HOME', '*', ';'] });
    assert.equal(result.structuredContent.output, 'a b|$HOME|*|;|');
  }
});

test('both forms of an answer carry the same facts, the output once in each', limit, async (t) => {
  const { client } = await open(t);
  const result = await call(client, 'shell_command', { command: 'echo needle; exit 3' });
  assert.notEqual(result.isError, true, 'a non-zero exit is a result');
  assert.equal(result.structuredContent.exit_code, 3);
  assert.equal(JSON.stringify(result.structuredContent).split('needle').length, 2);
  const text = textOf(result);
  assert.equal(text.split('needle').length, 2);
  assert.match(text, /^Exit code: 3$/m);
  assert.match(text, /^Sandbox: workspace-write/m);
  assert.equal(result.structuredContent.sandbox.features.fs_write, 'enforced');
});

test('wrong arguments are errors that the model can mend, unknown tools protocol errors', limit, async (t) => {
  const { client } = await open(t);
  const result = await call(client, 'shell_command', { command: 'true', timeout_ms: 0 });
  assert.equal(result.isError, true);
  assert.match(textOf(result), /'timeout_ms' is 0: it must be from 1 to 86400000/);
  await assert.rejects(call(client, 'nope', {}), (error) => error.code === -32602 && /nope/.test(error.message));
  assert.equal((await call(client, 'shell_command', { command: 'echo ok' })).structuredContent.output, 'ok\n');
});

test('asking to leave the sandbox is refused where nobody may be asked, and the text says why', limit, async (t) => {
  for (const [policy, reason] of [['never', /on-request/], ['on-failure', /on-request/]]) {
    const { client, yard } = await open(t, { 'approval.policy': policy });
    const result = await call(client, 'shell_command', {
      command: `touch ${yard.outside}/x`, sandbox_permissions: 'require_escalated', justification: 'please',
    });
    assert.equal(result.isError, true);
    assert.equal(result.structuredContent.status, 'denied');
    assert.match(textOf(result), reason);
  }
});

test('ping is answered while a call runs, and progress shows the last line', { timeout: 60_000 }, async (t) => {
  const { client } = await open(t);
  const seen = [];
  const running = call(client, 'shell_command', { command: 'echo first; echo now-here; sleep 6; echo end', timeout_ms: 30_000 }, {
    onprogress: (progress) => seen.push(progress),
  });
  await client.ping();
  const result = await running;
  assert.equal(result.structuredContent.exit_code, 0);
  assert.ok(seen.length >= 1, 'one notification in six seconds');
  assert.match(seen[0].message, /now-here/);
  for (let i = 1; i < seen.length; i += 1) {
    assert.ok(seen[i].progress > seen[i - 1].progress);
  }
});

test('a cancelled call is ended with its tree and not answered; the server lives on', limit, async (t) => {
  const { client, yard, pid } = await open(t);
  const abort = new AbortController();
  const running = call(client, 'shell_command', {
    command: 'setsid sleep 1000 & sleep 1000', timeout_ms: 600_000,
  }, { signal: abort.signal });
  const rejected = assert.rejects(running);
  await until(() => processesOf(yard.mark, [pid]).length >= 3, 'the command runs');
  abort.abort('enough');
  await rejected;
  await until(() => processesOf(yard.mark, [pid]).length === 0, 'nothing of it is left');
  assert.equal((await call(client, 'shell_command', { command: 'echo ok' })).structuredContent.output, 'ok\n');
});

test('kill -9 of the server ends what it ran, setsid or not', limit, async (t) => {
  const { client, yard, pid } = await open(t);
  call(client, 'shell_command', { command: '(setsid sleep 1000 &); setsid setsid sleep 1000 & sleep 1000', timeout_ms: 600_000 }).catch(() => {});
  await until(() => processesOf(yard.mark, [pid]).length >= 4, 'the command runs');
  process.kill(pid, 'SIGKILL');
  await until(() => processesOf(yard.mark, [pid]).length === 0, 'nothing of it is left');
});

test('fifty calls at once are all answered with their own output', limit, async (t) => {
  const { client } = await open(t);
  const results = await Promise.all(Array.from({ length: 50 }, (_, i) => call(client, 'shell', { command: ['echo', `n${i}`] })));
  assert.deepEqual(results.map((r) => r.structuredContent.output), Array.from({ length: 50 }, (_, i) => `n${i}\n`));
});

test('an answer stays within 10,000 bytes unless more is asked for', limit, async (t) => {
  const { client } = await open(t);
  const small = await call(client, 'shell_command', { command: 'seq 1 200000' });
  assert.ok(Buffer.byteLength(small.structuredContent.output) <= 10_000);
  assert.equal(small.structuredContent.truncated, true);
  assert.equal(small.structuredContent.total_bytes, 1_288_895);
  assert.match(small.structuredContent.output, /^1\n2\n[^]*\n200000\n$/);
  const least = await call(client, 'shell_command', { command: 'seq 1 1000', max_output_tokens: 1 });
  assert.match(least.structuredContent.output, /bytes \(\d+ lines\) omitted of 3893 bytes, 1000 lines/);
  assert.ok(least.structuredContent.output.length <= 192);
  const large = await call(client, 'shell_command', { command: 'seq 1 200000', max_output_tokens: 10_000 });
  assert.ok(Buffer.byteLength(large.structuredContent.output) > 39_000);
});

test('A05 A06 nothing waits for a person: pagers, editors, prompts', limit, async (t) => {
  // A repository at the top of the workspace can't be made by a command otherwise.
  const { client } = await open(t, { 'sandbox.unprotected_names': ['.git', '.git/config'] });
  const run = async (command) => (await call(client, 'shell_command', { command, timeout_ms: 20_000 })).structuredContent;
  const setup = await run('git init -q . && git config user.name t && git config user.email t@example.invalid && '
    + 'for i in 1 2 3; do echo $i > f && git add f && git commit -qm c$i || exit 1; done; git rev-parse HEAD');
  assert.equal(setup.exit_code, 0, setup.output);
  const head = setup.output.trim();
  const log = await run('git log -p');
  assert.equal(log.exit_code, 0);
  assert.match(log.output, /c1/);
  // Through one pipe: of two, nobody can tell what came first.
  const commit = await run('exec 2>&1; echo x > f && git add f && git commit; echo rc=$?; git rev-parse HEAD');
  assert.match(commit.output, /rc=[1-9]/);
  assert.ok(commit.output.trim().endsWith(head), 'HEAD is where it was');
  const rebase = await run('exec 2>&1; git stash -q; git rebase -i HEAD~2; echo rc=$?; git rebase --abort 2>/dev/null; git rev-parse HEAD');
  assert.match(rebase.output, /rc=[1-9]/, 'rebase -i fails, it does not succeed by itself');
  assert.ok(rebase.output.trim().endsWith(head));
  const prompt = await run('read -r x </dev/tty; echo rc=$?');
  assert.match(prompt.output, /rc=1/);
});

test('a request that is no JSON is answered under its id, and the next one as ever', limit, async (t) => {
  const { client } = await open(t);
  // What JavaScript makes of half a surrogate pair is no text, and no JSON therefore.
  await assert.rejects(call(client, 'shell_command', { command: 'echo \ud800' }), (error) => error.code === -32700);
  assert.equal((await call(client, 'shell_command', { command: 'echo on' })).structuredContent.output, 'on\n');
});
