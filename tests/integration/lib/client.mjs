// What the integration tests share: the program as an MCP server under the
// official SDK client, the program as `shellyard exec`, a workspace with an
// outside, and waiting for events. Nothing here waits for a fixed time.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { after, test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const top = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../..');

export const program = process.env.SHELLYARD ?? path.join(top, 'build/shellyard');

// Files of trust that tests write are theirs alone to write. Ordinary users of Ubuntu have 002.
process.umask(0o022);

/** Under a sanitizer everything is slower, and memory is not ours to judge. */
export const isSanitized = Boolean(process.env.TESTS_SANITIZER);

/** How long an answer may take that should come at once. Far below the time for
 * which the commands of the tests hang when something is wrong. */
export const SOON_MS = isSanitized ? 20_000 : 8_000;

/** A limit for what no test should ever reach. */
export const STUCK_MS = 120_000;

/**
 * For what a machine may lack. True if `condition` holds; else skips the test
 * with the reason, or fails it where a skip does not count (continuous
 * integration sets SHELLYARD_TESTS_MUST_RUN=1).
 */
export function mustRun(t, condition, why) {
  if (condition) {
    return true;
  }
  if (process.env.SHELLYARD_TESTS_MUST_RUN === '1') {
    throw new Error(`this test must run here, but: ${why}`);
  }
  t.skip(why);
  return false;
}

/** A server of this test, until its end; its port. */
export async function listen(t, server, host = '127.0.0.1') {
  server.listen(0, host);
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections?.();
    server.close();
  });
  return server.address().port;
}

/** Resolves to the first truthy value of `probe`, asked again and again; `what` (text, or a function) tells what never came. */
export async function waitFor(probe, what, limitMs = SOON_MS) {
  const end = performance.now() + limitMs;
  for (;;) {
    const value = await probe();
    if (value) {
      return value;
    }
    if (performance.now() > end) {
      throw new Error(`not within ${limitMs} ms: ${typeof what === 'function' ? what() : what}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** The PATH of the tests: the system's, and the Node.js that runs them. */
export const testPath = `/usr/local/bin:/usr/bin:/bin:${path.dirname(process.execPath)}`;

/** Is `name` on the PATH that the commands get? */
export function has(name) {
  return testPath.split(':').some((dir) => {
    try {
      fs.accessSync(path.join(dir, name), fs.constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

let marks = 0;

// A test's hooks run in the order in which they were registered, so that a yard would go before the
// servers that work in it: all of them go when the file's tests have ended.
const yards = [];
const daemons = []; // of yards whose tests go through one (TESTS_DAEMON=1)
after(() => {
  const served = daemons.map(({ env, home }) => {
    const stop = spawnSync(program, ['serve', '--stop'], { env, encoding: 'utf8' });
    const log = fs.readFileSync(path.join(home, '.local/state/shellyard/daemon.log'), 'utf8');
    return stop.status === 0 && log.includes('a client is served') ? 1 : 0;
  });
  yards.forEach((dir) => fs.rmSync(dir, { recursive: true, force: true, maxRetries: 5 }));
  if (served.includes(0)) {
    throw new Error(`${served.filter((n) => n === 0).length} of ${served.length} daemons have served nobody, or are gone`);
  }
});

/** All of the yard's clients are served by a daemon, until the file's tests have ended. */
function startYardDaemon(yard) {
  const { TEST_MARK, ...env } = yard.env;
  const started = spawnSync(program, ['serve', '--background', '-c', 'log.level=info'], { env, encoding: 'utf8' });
  if (started.status !== 0) {
    throw new Error(`no daemon: ${started.stderr}`);
  }
  daemons.push({ env, home: yard.home });
}

/**
 * A fresh directory below /var/tmp (so not below /tmp, which commands may
 * write): `ws` the workspace, `outside`, and `home` with no profile in it.
 * `env` is a whole environment that says nothing of the machine's user; its
 * TEST_MARK is unique, for processesOf. Removed when all tests have ended.
 */
export function makeYard() {
  const dir = fs.realpathSync(fs.mkdtempSync('/var/tmp/shellyard-test-'));
  yards.push(dir);
  const yard = { dir, ws: path.join(dir, 'ws'), outside: path.join(dir, 'outside'), home: path.join(dir, 'home') };
  for (const sub of [yard.ws, yard.outside, yard.home]) {
    fs.mkdirSync(sub);
  }
  marks += 1;
  yard.mark = `mark-${process.pid}-${marks}-${path.basename(dir)}`;
  yard.env = { PATH: testPath, HOME: yard.home, LANG: 'C.UTF-8', TEST_MARK: yard.mark };
  if (process.env.TESTS_DAEMON === '1') {
    startYardDaemon(yard);
  }
  return yard;
}

/**
 * Less what each server holds ready: the templates that make its processes, and
 * one process for its next command: its keeper, and below that one what has not
 * become a command yet.
 */
function withoutSpares(all, servers) {
  const found = all.filter((p) => !(p.comm === 'sy-template' && servers.includes(p.parent)));
  const isKeeper = (p) => p !== undefined && p.comm === 'sy-keeper';
  const spares = new Set();
  for (const server of servers) {
    const spare = found.find((p) => isKeeper(p) && p.parent === server
      && found.every((child) => child.parent !== p.pid || isKeeper(child)));
    if (spare !== undefined) {
      spares.add(spare.pid);
      found.filter((p) => p.parent === spare.pid).forEach((p) => spares.add(p.pid));
    }
  }
  return found.filter((p) => !spares.has(p.pid));
}

/** A file of a process in /proc, or '' where that is gone or, not being root, we may not look. */
export function readProc(pid, name) {
  try {
    return fs.readFileSync(`/proc/${pid}/${name}`, 'latin1');
  } catch {
    return '';
  }
}

/** Resolves when a process has ended, whoever has yet to wait for it. */
export function hasEnded(pid) {
  return waitFor(() => /^(?:$|.*\) [ZX] )/s.test(readProc(pid, 'stat')), `process ${pid} has ended`);
}

/**
 * Live processes that have TEST_MARK=`mark` in their environment, as
 * [{pid, cmdline, comm, parent}]; `except` are process ids that don't count
 * (servers, whose one spare does not count either).
 */
export function processesOf(mark, except = []) {
  const found = [];
  for (const name of fs.readdirSync('/proc')) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || except.includes(pid)) {
      continue;
    }
    try {
      const environ = fs.readFileSync(`/proc/${name}/environ`, 'latin1').split('\0');
      const [, comm, state, parent] = fs.readFileSync(`/proc/${name}/stat`, 'latin1').match(/^\d+ \((.*)\) (.) (\d+) /s);
      if (environ.includes(`TEST_MARK=${mark}`) && state !== 'Z' && state !== 'X') {
        const cmdline = fs.readFileSync(`/proc/${name}/cmdline`, 'latin1').replaceAll('\0', ' ').trim();
        found.push({ pid, cmdline, comm, parent: Number(parent) });
      }
    } catch {
      // Ended meanwhile, or another user's.
    }
  }
  return withoutSpares(found, except);
}

/** A member of /proc/<pid>/status in kB. */
export function statusKb(pid, field) {
  const match = fs.readFileSync(`/proc/${pid}/status`, 'latin1').match(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm'));
  return match ? Number(match[1]) : 0;
}

const config = (settings) => Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`]);

/**
 * The program as an MCP server: {client, transport, pid, stderr(), close()}.
 * `settings` are configuration keys for the command line, `wrap` a command to
 * put in front (its process id is then `pid`).
 */
export async function startMcp({ cwd, env, args = [], settings = {}, wrap = [], clientOptions = {}, clientName = 'shellyard-tests' }) {
  const argv = [...wrap, program, 'mcp', ...config(settings), ...args];
  const transport = new StdioClientTransport({ command: argv[0], args: argv.slice(1), cwd, env, stderr: 'pipe' });
  let stderr = '';
  transport.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  const client = new Client({ name: clientName, version: '1' }, { capabilities: {}, ...clientOptions });
  try {
    await client.connect(transport);
  } catch (error) {
    throw new Error(`'${argv.join(' ')}' did not start: ${error.message}\n${stderr}`);
  }
  return { client, transport, pid: transport.pid, stderr: () => stderr, close: () => client.close() };
}

export function textOf(result) {
  return (result.content ?? []).filter((c) => c.type === 'text').map((c) => c.text).join('\n');
}

/** A tool call by the SDK, which also checks the result against the tool's schema. */
export async function call(client, name, args, options = {}) {
  return client.callTool({ name, arguments: args }, undefined, { timeout: STUCK_MS, ...options });
}

/**
 * `shellyard exec` with these arguments, to its end: {code, signal, stdout,
 * stderr, bytes, elapsedMs}; `onStart(child)` sees the process. Killed with an
 * error after `timeoutMs`. Standard input: `input` if given, else a pipe that
 * stays open and silent, so that a command that reads it would hang.
 */
export async function execCli(args, { cwd, env, input, timeoutMs = STUCK_MS, wrap = [], onStart } = {}) {
  const argv = [...wrap, program, 'exec', ...args];
  const start = performance.now();
  const child = spawn(argv[0], argv.slice(1), { cwd, env, stdio: ['pipe', 'pipe', 'pipe'] });
  const chunks = { stdout: [], stderr: [] };
  for (const name of ['stdout', 'stderr']) {
    child[name].on('data', (chunk) => chunks[name].push(chunk));
  }
  child.stdin.on('error', () => {}); // it may end without reading
  if (input !== undefined) {
    child.stdin.end(input);
  }
  onStart?.(child);
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      reject(new Error(`not over within ${timeoutMs} ms: ${argv.join(' ')}`));
    }, timeoutMs);
    child.on('error', reject);
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      child.stdin.destroy();
      const bytes = Buffer.concat(chunks.stdout);
      resolve({
        code, signal, bytes, stdout: bytes.toString(), stderr: Buffer.concat(chunks.stderr).toString(),
        elapsedMs: performance.now() - start,
      });
    });
  });
}

/**
 * One way to run a script, the same for both front ends:
 *
 *   run(script, {cwd, timeoutMs, login, env, tokens}) →
 *     {status, exitCode, signal, timedOut, output, truncated, totalBytes, note,
 *      endedBackground, error, isError, elapsedMs, text, raw}
 *
 * `output` is both streams as they came; `text` all that the caller is told;
 * `raw` the structured result or the JSON of exec. An answer that is an error
 * (bad arguments, refusal) has isError and no status.
 */
class McpFront {
  constructor(server) {
    this.name = 'mcp';
    this.server = server;
    this.pid = server.pid;
  }

  async run(script, { cwd, timeoutMs, login, env, tokens } = {}) {
    const args = { command: script };
    const options = { workdir: cwd, timeout_ms: timeoutMs, login, env, max_output_tokens: tokens };
    for (const [key, value] of Object.entries(options)) {
      if (value !== undefined) {
        args[key] = value;
      }
    }
    const start = performance.now();
    const result = await call(this.server.client, 'shell_command', args);
    const raw = result.structuredContent ?? {};
    return {
      ...normal(raw), output: raw.output, isError: result.isError === true, text: textOf(result),
      elapsedMs: performance.now() - start, raw,
    };
  }

  async close() {
    await this.server.close();
  }
}

class ExecFront {
  constructor(yard, options) {
    this.name = 'exec';
    this.yard = yard;
    this.options = options;
  }

  async run(script, { cwd, timeoutMs = 10_000, login = false, env = {} } = {}) {
    const args = ['--json', '-C', cwd ?? this.yard.ws, '-t', `${timeoutMs}ms`, ...config(this.options.settings)];
    const done = await execCli([...args, ...(login ? ['--login'] : []), '--', 'bash', '-c', script], {
      cwd: this.yard.ws, env: { ...this.options.env, ...env }, wrap: this.options.wrap,
      onStart: (child) => {
        this.pid = child.pid;
        this.onStart?.(child);
      },
    });
    let raw = {};
    if (done.stdout.trim() !== '') {
      raw = JSON.parse(done.stdout);
    }
    return {
      ...normal(raw), output: raw.aggregated_output, isError: raw.status === undefined || (raw.status === 'failed' && raw.sandbox.mode === undefined), cliStatus: done.code,
      text: done.stderr + done.stdout, elapsedMs: done.elapsedMs, raw,
    };
  }

  async close() {}
}

function normal(raw) {
  return {
    status: raw.status, exitCode: raw.exit_code, signal: raw.signal, timedOut: raw.timed_out,
    truncated: raw.truncated ?? false, totalBytes: raw.total_bytes, note: raw.note ?? '', error: raw.error,
    endedBackground: raw.ended_background ?? 0, sandbox: raw.sandbox,
  };
}

/**
 * Opens one front end in the yard; closed when the test ends. The shell of
 * scripts is bash in both, whatever the passwd file says.
 */
export async function openFront(t, name, yard, { settings = {}, env = {}, wrap = [] } = {}) {
  const options = {
    // Whether this machine's kernel audits is for no test to depend on (audit.alone.test.mjs).
    settings: { 'sandbox.mode': 'workspace-write', 'sandbox.read_audit': false, 'shell.path': '/bin/bash', ...settings },
    env: { ...yard.env, ...env },
    wrap,
  };
  const front = name === 'mcp'
    ? new McpFront(await startMcp({ cwd: yard.ws, ...options }))
    : new ExecFront(yard, options);
  t.after(() => front.close());
  return front;
}

/**
 * Registers a test for each front end: body(t, {name, yard, open}), where
 * open(options) is openFront in the test's yard.
 */
export function eachFront(title, body) {
  for (const name of ['mcp', 'exec']) {
    test(`${title} [${name}]`, { timeout: STUCK_MS }, async (t) => {
      const yard = makeYard();
      await body(t, { name, yard, open: (options) => openFront(t, name, yard, options) });
    });
  }
}

let fullTier;

/** Is the full tier there at all on this machine? Else the test is skipped, or fails (mustRun). */
export function hasFull(t, yard) {
  fullTier ??= JSON.parse(spawnSync(program, ['sandbox', 'check', '--json'], { cwd: yard.ws, env: yard.env, encoding: 'utf8' }).stdout).full_tier;
  return mustRun(t, fullTier, 'no sandbox of the full tier here');
}

/**
 * Registers a test for each tier and front end: body(t, {name, tier, isFull, yard, open}), where
 * `open` asks for that tier.
 */
export function eachTier(title, body) {
  for (const tier of ['full', 'no-namespace']) {
    eachFront(`${title}, ${tier}`, async (t, { name, yard, open }) => {
      if (tier === 'full' && !hasFull(t, yard)) {
        return;
      }
      await body(t, {
        name, tier, isFull: tier === 'full', yard,
        open: ({ settings = {}, ...others } = {}) => open({ settings: { 'sandbox.tier': tier, ...settings }, ...others }),
      });
    });
  }
}

/** `approvals follow` at a terminal of its own: what it shows so far, and typing. */
export function followApprovals(t, yard) {
  const child = spawn('python3', ['-c', FOLLOW, program], { cwd: yard.dir, env: yard.env, stdio: ['pipe', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  const seen = { text: '', code: undefined };
  child.stdout.on('data', (chunk) => {
    seen.text += chunk;
  });
  child.on('close', (code) => {
    seen.code = code;
  });
  return { seen, type: (line) => child.stdin.write(`${line}\n`) };
}
const FOLLOW = `
import os, pty, select, sys
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], [sys.argv[1], 'approvals', 'follow'])
while True:
    ready = select.select([fd, 0], [], [])[0]
    try:
        if fd in ready:
            data = os.read(fd, 65536)
            if not data:
                break
            os.write(1, data)
        if 0 in ready:
            os.write(fd, os.read(0, 65536))
    except OSError:
        break
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
`;
