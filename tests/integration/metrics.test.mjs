// What is counted: by calls over MCP and proto, by all processes of a user together, as Prometheus
// text, and exported to collectors that answer well, badly and not at all.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { once } from 'node:events';
import { spawn, spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { call, listen, makeYard, program, STUCK_MS, waitFor } from './lib/client.mjs';
import { says, startAsked as open } from './lib/person.mjs';

const limit = { timeout: STUCK_MS };

function metricsText(yard, args = []) {
  const r = spawnSync(program, ['metrics', ...args], { cwd: yard.dir, env: yard.env, encoding: 'utf8' });
  assert.equal(r.status, 0, r.stderr);
  assert.equal(r.stderr, '');
  return r.stdout;
}

/** The labels between braces, strictly: name="value" with the three escapes and nothing else. */
function parseLabels(text) {
  const labels = {};
  let rest = text;
  while (rest !== '') {
    const m = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(,|$)/.exec(rest);
    assert.ok(m, `labels: ${text}`);
    assert.ok(!(m[1] in labels), `a label twice: ${text}`);
    labels[m[1]] = m[2].replace(/\\(.)/g, (_, c) => (c === 'n' ? '\n' : c));
    assert.ok(m[3] !== ',' || rest.length > m[0].length, `a comma at the end: ${text}`);
    rest = rest.slice(m[0].length);
  }
  return labels;
}

/**
 * Prometheus' text format 0.0.4, strictly: each family has one HELP and one TYPE before its
 * samples, no series stands twice, buckets ascend and end with +Inf, which equals the count.
 */
function parsePrometheus(text) {
  assert.ok(text.endsWith('\n'));
  const families = new Map();
  const seen = new Set();
  let current = null;
  let help = null;
  for (const line of text.slice(0, -1).split('\n')) {
    const meta = /^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$/.exec(line);
    if (meta !== null && meta[1] === 'HELP') {
      assert.ok(!families.has(meta[2]), `HELP twice: ${line}`);
      assert.doesNotMatch(meta[3], /\\(?![\\n])/);
      help = meta[2];
    } else if (meta !== null) {
      assert.equal(meta[2], help, `TYPE without HELP before it: ${line}`);
      assert.ok(['counter', 'gauge', 'histogram'].includes(meta[3]), line);
      current = { name: meta[2], type: meta[3], samples: [] };
      families.set(current.name, current);
    } else {
      const m = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.+)\})? (-?[0-9.e+-]+|\+Inf|NaN)$/.exec(line);
      assert.ok(m, `no sample: ${line}`);
      assert.ok(current, line);
      const suffix = current.type === 'histogram' ? '(_bucket|_sum|_count)' : '()';
      const own = new RegExp(`^${current.name}${suffix}$`).exec(m[1]);
      assert.ok(own, `${m[1]} below the TYPE of ${current.name}`);
      assert.ok(!seen.has(line.slice(0, line.lastIndexOf(' '))), `twice: ${line}`);
      seen.add(line.slice(0, line.lastIndexOf(' ')));
      assert.ok(Number.isFinite(Number(m[3])), line);
      current.samples.push({ part: own[1], labels: parseLabels(m[2] ?? ''), value: Number(m[3]) });
    }
  }
  for (const family of families.values()) {
    if (family.type === 'counter') {
      assert.match(family.name, /_total$/);
    }
    if (family.type === 'histogram') {
      checkHistogram(family);
    }
  }
  return families;
}

function checkHistogram(family) {
  const series = new Map();
  for (const { part, labels: { le, ...labels }, value } of family.samples) {
    const key = JSON.stringify(labels);
    const s = series.get(key) ?? { bounds: [], counts: [] };
    series.set(key, s);
    if (part === '_bucket') {
      s.bounds.push(le === '+Inf' ? Infinity : Number(le));
      s.counts.push(value);
    } else {
      s[part] = value;
    }
  }
  for (const s of series.values()) {
    assert.equal(s.bounds.at(-1), Infinity);
    assert.ok(s.bounds.every((b, i) => i === 0 || b > s.bounds[i - 1]), family.name);
    assert.ok(s.counts.every((c, i) => i === 0 || c >= s.counts[i - 1]), family.name);
    assert.equal(s.counts.at(-1), s._count);
    assert.ok(s._sum >= 0);
  }
}

/** The value of one series; 0: it is not there. */
function value(families, name, labels, part = '') {
  const family = families.get(`shellyard_${name}`);
  assert.ok(family, `no family ${name}`);
  return family.samples.find((s) => s.part === part && Object.keys(labels).length === Object.keys(s.labels).length &&
    Object.entries(labels).every(([k, v]) => s.labels[k] === v))?.value ?? 0;
}

const counted = (yard) => parsePrometheus(metricsText(yard));
const calls = (yard, status, tool = 'shell_command') => value(counted(yard), 'tool_calls_total', { tool, status });

test('before anything was counted there are families, and no store is made', limit, async (t) => {
  const yard = makeYard();
  const families = counted(yard);
  assert.ok(families.size > 5);
  assert.equal(value(families, 'build_info', { version: JSON.parse(metricsText(yard, ['--json'])).version }), 1);
  const server = await open(t, { yard });
  await server.client.listTools();
  await server.close();
  const state = path.join(yard.env.XDG_STATE_HOME ?? path.join(yard.env.HOME, '.local/state'), 'shellyard');
  assert.equal(fs.existsSync(path.join(state, 'shellyard.db')), false);
  const { run, close } = await open(t, { yard });
  await run('true');
  await close();
  assert.equal(fs.existsSync(path.join(state, 'shellyard.db')), true); // the place is the right one
});

test('calls, refusals, failures, times and denials of an MCP server are counted', limit, async (t) => {
  const { run, yard, close } = await open(t);
  await run('true');
  await run('exit 3');
  await run('sleep 1000', { timeout_ms: 300 });
  await run('true', { timeout_ms: 'never' });
  const denied = await run(`echo x > ${yard.outside}/f`);
  await close();
  const families = counted(yard);
  const tool = 'shell_command';
  assert.equal(value(families, 'tool_calls_total', { tool, status: 'exited' }), 3);
  assert.equal(value(families, 'tool_calls_total', { tool, status: 'timed_out' }), 1);
  assert.equal(value(families, 'tool_calls_total', { tool, status: 'rejected' }), 1);
  assert.equal(value(families, 'commands_timed_out_total', { tool }), 1);
  assert.equal(value(families, 'command_limits_total', { limit: 'wall_clock' }), 1);
  assert.ok(value(families, 'commands_failed_total', { tool }) >= 2);
  assert.equal(value(families, 'command_duration_seconds', { tool }, '_count'), 4);
  assert.equal(value(families, 'tool_call_duration_seconds', { tool }, '_count'), 5);
  assert.ok(value(families, 'command_duration_seconds', { tool }, '_sum') >= 0.3);
  const { denials } = denied;
  assert.ok(denials.length > 0);
  assert.equal(value(families, 'sandbox_denials_total', { layer: denials[0].layer, operation: denials[0].operation }), denials[0].count ?? 1);
  const json = JSON.parse(metricsText(yard, ['--json']));
  const series = json.metrics.find((m) => m.name === 'shellyard_tool_calls_total').series;
  assert.equal(series.find((s) => s.labels.status === 'exited').value, 3);
  assert.ok(json.since_ms <= Date.now());
});

test('requests for approval are counted once, by what was decided', limit, async (t) => {
  const decisions = ['once', 'deny'];
  const { run, yard, close } = await open(t, { answer: () => says(decisions.shift())() });
  await run('rm -rf a');
  await run('rm -rf b');
  await run('rm -rf b'); // remembered: nobody is asked
  await close();
  const families = counted(yard);
  const tool = 'shell_command';
  assert.equal(value(families, 'approval_asked_total', { tool }), 2);
  assert.equal(value(families, 'approval_requested_total', { tool, decision: 'approved' }), 1);
  assert.equal(value(families, 'approval_requested_total', { tool, decision: 'denied' }), 1);
  assert.equal(value(families, 'approval_wait_seconds', { tool }, '_count'), 2);
  assert.ok(value(families, 'approval_wait_seconds', { tool }, '_sum') >= 0.4);
});

test('a request that is answered while no call waits is counted when the call comes back', limit, async (t) => {
  const { run, yard, close } = await open(t);
  assert.equal((await run('rm -rf a')).status, 'pending_approval');
  assert.equal((await run('rm -rf a')).status, 'pending_approval');
  const { requests } = JSON.parse(spawnSync(program, ['approvals', 'list', '--json'], { env: yard.env, encoding: 'utf8' }).stdout);
  assert.equal(requests.length, 1);
  assert.equal(spawnSync(program, ['approvals', 'approve', requests[0].id], { env: yard.env }).status, 0);
  assert.equal((await run('rm -rf a')).status, 'exited');
  await close();
  const families = counted(yard);
  const tool = 'shell_command';
  assert.equal(value(families, 'approval_asked_total', { tool }), 1);
  assert.equal(value(families, 'approval_requested_total', { tool, decision: 'approved' }), 1);
  assert.equal(value(families, 'tool_calls_total', { tool, status: 'pending_approval' }), 2);
});

test('proto tells requests and decisions as events, once each', limit, async (t) => {
  const yard = makeYard();
  const child = spawn(program, ['proto'], { cwd: yard.ws, env: yard.env, stdio: ['pipe', 'pipe', 'inherit'] });
  const seen = [];
  let rest = '';
  child.stdout.on('data', (chunk) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop();
    seen.push(...lines.map((line) => JSON.parse(line)));
  });
  const send = (message) => child.stdin.write(`${JSON.stringify(message)}\n`);
  const find = (type, id) => seen.find((m) => m.type === type && m.call_id === id);
  const item = (id, command) => ({ type: 'function_call', call_id: id, name: 'shell', arguments: JSON.stringify({ command }) });

  send(item('a', ['rm', '-rf', 'x']));
  await waitFor(() => find('exec_approval_request', 'a'), 'the request');
  const request = find('exec_approval_request', 'a');
  send({ type: 'exec_approval', id: request.id, decision: 'denied', reason: 'not x' });
  await waitFor(() => find('function_call_output', 'a'), 'the answer');
  const decided = find('exec_approval_decided', 'a');
  assert.equal(decided.id, request.id);
  assert.equal(decided.tool, 'shell');
  assert.equal(decided.decision, 'denied');
  assert.equal(decided.reason, 'not x');
  assert.ok(decided.waited_ms >= 0);

  send(item('b', ['rm', '-rf', 'y']));
  await waitFor(() => find('exec_approval_request', 'b'), 'the second request');
  send({ type: 'interrupt', call_id: 'b' });
  await waitFor(() => find('function_call_output', 'b'), 'the second answer');
  assert.equal(find('exec_approval_decided', 'b').decision, 'cancelled');
  for (const type of ['exec_approval_request', 'exec_approval_decided']) {
    assert.equal(seen.filter((m) => m.type === type).length, 2);
  }
  child.stdin.end();
  assert.deepEqual(await once(child, 'close'), [0, null]);
  const families = counted(yard);
  assert.equal(value(families, 'approval_requested_total', { tool: 'shell', decision: 'denied' }), 1);
  assert.equal(value(families, 'approval_requested_total', { tool: 'shell', decision: 'cancelled' }), 1);
});

test('servers that run at once add up, and one that is killed loses its last seconds at most', limit, async (t) => {
  const yard = makeYard();
  const [a, b] = [await open(t, { yard }), await open(t, { yard })];
  await Promise.all([a.run('true'), b.run('true'), a.run('true'), b.run('true')]);
  await waitFor(() => calls(yard, 'exited') === 4, 'the counts of both, while both run', 30_000);
  await a.run('true');
  process.kill(b.pid, 'SIGKILL');
  await a.close();
  assert.equal(calls(yard, 'exited'), 5);
});

test('without telemetry.metrics nothing is stored', limit, async (t) => {
  const yard = makeYard();
  const { run, close } = await open(t, { yard, settings: { 'telemetry.metrics': false } });
  await run('true');
  await close();
  assert.equal(calls(yard, 'exited'), 0);
});

test('a store that cannot be used costs no call anything', limit, async (t) => {
  const yard = makeYard();
  const state = path.join(yard.dir, 'no-state');
  fs.mkdirSync(state);
  fs.writeFileSync(path.join(state, 'shellyard'), 'a file where the directory should be');
  const { run, close } = await open(t, { yard, env: { XDG_STATE_HOME: state } });
  for (let i = 0; i < 3; i += 1) {
    assert.equal((await run('true')).exit_code, 0);
  }
  await close();
});

/** A collector: what it was sent, and `answer(request, response, body)`. */
async function collect(t, answer) {
  const seen = [];
  const server = http.createServer(async (req, res) => {
    const chunks = [];
    for await (const chunk of req) {
      chunks.push(chunk);
    }
    const body = Buffer.concat(chunks).toString();
    seen.push({ method: req.method, url: req.url, headers: req.headers, body });
    answer(req, res, body);
  });
  return { seen, url: `http://127.0.0.1:${await listen(t, server)}` };
}

const well = (req, res) => {
  res.writeHead(200, { 'Content-Type': 'application/json' });
  res.end('{}');
};

const keysOf = (object) => Object.keys(object).sort();
const isU64 = (text) => typeof text === 'string' && /^(0|[1-9][0-9]*)$/.test(text);

/** One attribute list as an object; each value is a string value and nothing else. */
function attributes(list) {
  const all = {};
  for (const a of list) {
    assert.deepEqual(keysOf(a), ['key', 'value']);
    assert.deepEqual(keysOf(a.value), ['stringValue']);
    assert.ok(!(a.key in all));
    all[a.key] = a.value.stringValue;
  }
  return all;
}

/** ExportMetricsServiceRequest in JSON, strictly; the metrics by name. */
function parseOtlp(text) {
  const request = JSON.parse(text);
  assert.deepEqual(keysOf(request), ['resourceMetrics']);
  assert.equal(request.resourceMetrics.length, 1);
  const [resource] = request.resourceMetrics;
  assert.deepEqual(keysOf(resource), ['resource', 'scopeMetrics']);
  assert.deepEqual(keysOf(resource.resource), ['attributes']);
  const about = attributes(resource.resource.attributes);
  assert.equal(about['service.name'], 'shellyard');
  assert.match(about['service.version'], /^\d+\.\d+\.\d+/);
  assert.match(about['service.instance.id'], /^[0-9a-f]{32}$/);
  const [scope] = resource.scopeMetrics;
  assert.deepEqual(keysOf(scope), ['metrics', 'scope']);
  const byName = new Map();
  for (const m of scope.metrics) {
    const kind = 'sum' in m ? 'sum' : 'histogram';
    assert.deepEqual(keysOf(m), ['description', 'name', 'unit', kind].sort());
    assert.equal(m[kind].aggregationTemporality, 2);
    assert.deepEqual(keysOf(m[kind]), (kind === 'sum' ? ['aggregationTemporality', 'dataPoints', 'isMonotonic'] : ['aggregationTemporality', 'dataPoints']));
    for (const p of m[kind].dataPoints) {
      checkPoint(p, kind);
    }
    byName.set(m.name, m[kind].dataPoints.map((p) => ({ ...p, attributes: attributes(p.attributes) })));
  }
  return { about, byName };
}

function checkPoint(p, kind) {
  const own = kind === 'sum' ? ['asInt'] : ['bucketCounts', 'count', 'explicitBounds', 'sum'];
  assert.deepEqual(keysOf(p), [...own, 'attributes', 'startTimeUnixNano', 'timeUnixNano'].sort());
  assert.ok(isU64(p.startTimeUnixNano) && isU64(p.timeUnixNano));
  assert.ok(BigInt(p.startTimeUnixNano) <= BigInt(p.timeUnixNano));
  assert.ok(Math.abs(Number(BigInt(p.timeUnixNano) / 1_000_000n) - Date.now()) < 3_600_000);
  if (kind === 'sum') {
    assert.ok(isU64(p.asInt));
    return;
  }
  assert.ok(isU64(p.count) && typeof p.sum === 'number');
  assert.ok(p.bucketCounts.every(isU64));
  assert.equal(p.bucketCounts.length, p.explicitBounds.length + 1);
  assert.ok(p.explicitBounds.every((b, i) => typeof b === 'number' && (i === 0 || b > p.explicitBounds[i - 1])));
  assert.equal(p.bucketCounts.reduce((sum, n) => sum + Number(n), 0), Number(p.count));
}

const exported = (one, status) => Number(parseOtlp(one.body).byName.get('shellyard_tool_calls_total')
  .find((p) => p.attributes.status === status)?.asInt ?? 0);

test('metrics are exported as OTLP in JSON, cumulative, with the configured headers', limit, async (t) => {
  const yard = makeYard();
  const headers = path.join(yard.dir, 'headers');
  fs.writeFileSync(headers, '# of the collector\nAuthorization: Bearer sesame\n', { mode: 0o600 });
  const { seen, url } = await collect(t, well);
  const { run, close } = await open(t, {
    yard, settings: { 'telemetry.otlp_endpoint': `${url}/base/`, 'telemetry.otlp_interval_ms': 1000, 'telemetry.otlp_headers_file': headers },
  });
  await run('true');
  await waitFor(() => seen.length > 0, 'the first export', 30_000);
  await run('true');
  await waitFor(() => exported(seen.at(-1), 'exited') === 2, 'the second call', 30_000);
  await run('exit 1');
  await close();
  assert.equal(exported(seen.at(-1), 'exited'), 3); // the last one is sent at the end
  const instances = new Set();
  for (const one of seen) {
    assert.equal(one.method, 'POST');
    assert.equal(one.url, '/base/v1/metrics');
    assert.equal(one.headers['content-type'], 'application/json');
    assert.equal(one.headers.authorization, 'Bearer sesame');
    instances.add(parseOtlp(one.body).about['service.instance.id']);
    assert.doesNotMatch(one.body, /sesame/);
  }
  assert.equal(instances.size, 1);
  assert.equal(parseOtlp(seen.at(-1).body).byName.get('shellyard_command_duration_seconds')[0].attributes.tool, 'shell_command');
});

test('headers come from a variable as well', limit, async (t) => {
  const { seen, url } = await collect(t, well);
  const { run, close } = await open(t, {
    env: { COLLECTOR: 'api-key=a%20b,x-scope=1' },
    settings: { 'telemetry.otlp_endpoint': url, 'telemetry.otlp_headers_env': 'COLLECTOR' },
  });
  const r = await run('echo "[$COLLECTOR]"');
  assert.equal(r.output.trim(), '[]'); // commands do not get it
  await close();
  assert.equal(seen.length, 1);
  assert.equal(seen[0].headers['api-key'], 'a b');
  assert.equal(seen[0].headers['x-scope'], '1');
});

test('a collector that fails is tried again, and its failures are told once', limit, async (t) => {
  let fails = true;
  const { seen, url } = await collect(t, (req, res) => {
    res.writeHead(fails ? 503 : 200);
    res.end(fails ? 'not now' : '');
  });
  const server = await open(t, { settings: { 'telemetry.otlp_endpoint': url, 'telemetry.otlp_interval_ms': 1000 } });
  await server.run('true');
  await waitFor(() => seen.length >= 3, 'three tries', 30_000);
  const told = server.stderr().match(/metrics are not exported/g) ?? [];
  // Another failure is told as well: on a busy machine this collector may answer too late.
  assert.equal(told.length === 1 || /no answer within 1000 ms/.test(server.stderr()), true, server.stderr());
  assert.match(server.stderr(), /status 503 of HTTP: not now/);
  fails = false;
  const before = seen.length;
  await waitFor(() => seen.length > before + 1, 'exports that go well', 30_000);
  await server.close();
  const results = parseOtlp(seen.at(-1).body).byName.get('shellyard_otlp_exports_total');
  assert.ok(results.some((p) => p.attributes.result === 'failed'));
  assert.ok(results.some((p) => p.attributes.result === 'ok'));
});

test('a collector that hangs slows no call, and the end of the server little', limit, async (t) => {
  const sockets = [];
  const server = net.createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
  });
  t.after(() => sockets.forEach((s) => s.destroy()));
  const url = `http://127.0.0.1:${await listen(t, server)}`;
  const { run, close } = await open(t, { settings: { 'telemetry.otlp_endpoint': url, 'telemetry.otlp_interval_ms': 1000 } });
  await run('true');
  await waitFor(() => sockets.length > 0, 'a connection', 30_000);
  for (let i = 0; i < 5; i += 1) {
    assert.equal((await run('true')).exit_code, 0);
  }
  const start = performance.now();
  await close();
  assert.ok(performance.now() - start < 15_000, 'it ends'); // 2 s by itself; machines may be busy
  assert.ok(sockets.length >= 2, 'and tried a last time');
});
