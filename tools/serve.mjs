#!/usr/bin/env node
// `make serve`: starts the daemon of the given program, unless one is up, and has it serve the
// official SDK client, as an agent would; shows what a first sandboxed command gives and that
// a write outside is refused, and prints how the daemon is stopped and what the common clients need.
//
//     tools/serve.mjs build/shellyard
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const CALL_MS = 30_000;
const top = path.dirname(path.dirname(new URL(import.meta.url).pathname));
const require = createRequire(path.join(top, 'tests/integration/package.json'));

// Whatever the user's configuration says. Without /tmp, so that the folder beside
// the workspace is outside.
const settings = [
  'sandbox.mode=workspace-write', 'sandbox.required=true', 'sandbox.exclude_slash_tmp=true',
  'sandbox.exclude_tmpdir_env_var=true', 'tools.shell_type=all',
];

class Failure extends Error {}

function load() {
  try {
    return {
      ...require('@modelcontextprotocol/sdk/client/index.js'),
      ...require('@modelcontextprotocol/sdk/client/stdio.js'),
    };
  } catch {
    throw new Failure('the MCP SDK is not installed: run tools/setup.sh node');
  }
}

const CLIENTS = ['claude-code', 'codex', 'cursor', 'vscode', 'zed', 'gemini-cli'];

/** What each client needs, as `shellyard setup` has it: {title, file, snippet}. */
function clientSetups(program) {
  return CLIENTS.map((client) => {
    const done = spawnSync(program, ['setup', client, '--json'], { encoding: 'utf8', timeout: CALL_MS });
    if (done.status !== 0) {
      throw new Failure(`shellyard setup ${client} failed: ${(done.stderr || String(done.error ?? '')).trim()}`);
    }
    return { client, ...JSON.parse(done.stdout) };
  });
}

function textOf(result) {
  return (result.content ?? []).filter((c) => c.type === 'text').map((c) => c.text).join('\n');
}

function show(title, text) {
  console.log(`\n${title}`);
  for (const line of text.replace(/\n+$/, '').split('\n')) {
    console.log(`  ${line}`);
  }
}

/** How it ended and what held it, on one line. */
function facts(result) {
  const { status, exit_code: code, wall_ms: ms, sandbox } = result.structuredContent ?? {};
  const held = sandbox
    ? `sandbox ${sandbox.mode}, held by ${sandbox.tier}, network ${sandbox.network}`
    : 'no sandbox reported';
  return `${status}, exit code ${code}, ${ms} ms; ${held}`;
}

async function call(client, command, workdir) {
  return client.callTool({ name: 'shell_command', arguments: { command, workdir } }, undefined, { timeout: CALL_MS });
}

function verb(program, ...words) {
  return spawnSync(program, words, { encoding: 'utf8', timeout: CALL_MS });
}

/** A daemon of this very build; another one that is up has work of its own and stays. */
function startDaemon(program) {
  if (!fs.existsSync(program)) {
    throw new Failure(`${program} is not built`);
  }
  const up = verb(program, 'serve', '--status');
  if (up.status === 0) {
    return `a daemon was up already: ${up.stdout.trim()}`;
  }
  const started = verb(program, 'serve', '--background');
  if (started.status !== 0) {
    throw new Failure(`the daemon did not start: ${(started.stderr || String(started.error ?? '')).trim()}`);
  }
  return verb(program, 'serve', '--status').stdout.trim();
}

async function demo(program, daemon) {
  show('The daemon:', daemon);
  const { Client, StdioClientTransport } = load();
  const folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'shellyard-serve-')));
  const workspace = path.join(folder, 'workspace');
  const outside = path.join(folder, 'outside');
  fs.mkdirSync(workspace);
  let log = '';
  const transport = new StdioClientTransport({
    command: program,
    args: ['mcp', ...settings.flatMap((setting) => ['-c', setting])],
    cwd: workspace,
    env: process.env,
    stderr: 'pipe',
  });
  transport.stderr?.on('data', (chunk) => { log = (log + chunk).slice(-4000); });
  const client = new Client({ name: 'make-serve', version: '1' }, { capabilities: {} });

  try {
    await client.connect(transport, { timeout: CALL_MS });
    const { name, version } = client.getServerVersion();
    const { tools } = await client.listTools();
    const served = verb(program, 'list').stdout.split('\n').find((line) => line.includes(`process ${transport.pid} `));
    show('What it serves now (`shellyard list`):', served ?? `not this client: ${log.trim() || 'no word about why'}`);
    show(`${name} ${version} answers over MCP; its tools:`,
      tools.map((t) => `${t.name.padEnd(16)} ${(t.description ?? '').split(/(?<=\.)\s/)[0]}`).join('\n'));

    const first = 'echo "hello from $(uname -sr)"; pwd; touch inside && ls';
    const good = await call(client, first, workspace);
    show(`$ ${first}`, textOf(good));
    console.log(`  (${facts(good)})`);
    if (good.isError || (good.structuredContent?.sandbox?.tier ?? 'none') === 'none') {
      throw new Failure('the first command did not run in a sandbox; `build/shellyard sandbox check` tells '
        + 'what this kernel lacks');
    }
    if (!fs.existsSync(path.join(workspace, 'inside'))) {
      throw new Failure('the first command could not write into its workspace');
    }

    const second = 'echo harm > ../outside';
    const refused = await call(client, second, workspace);
    show(`$ ${second}`, textOf(refused));
    console.log(`  (${facts(refused)})`);
    if (fs.existsSync(outside) || refused.structuredContent?.exit_code === 0) {
      throw new Failure(`the sandbox did not hold: ${outside} was written`);
    }
    console.log('  A write outside the workspace was refused, as it must be.');
  } catch (error) {
    if (!(error instanceof Failure)) {
      error = new Failure(`${error.message}${log ? `\nwhat the server logged:\n${log}` : ''}`);
    }
    throw error;
  } finally {
    await client.close().catch(() => {});
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

async function main() {
  const program = path.resolve(process.argv[2] ?? 'build/shellyard');
  await demo(program, startDaemon(program));
  console.log(`\nThe daemon goes on, for all clients; \`${path.relative(process.cwd(), program)} serve --stop\` ends it.`);
  console.log('\nTo use it, add to your client (or let `shellyard setup CLIENT --write` do it):');
  for (const { client, title, file, snippet } of clientSetups(program)) {
    show(`${title} (${client}): ${file}`, snippet);
  }
}

main().catch((error) => {
  console.error(`make serve: ${error.message}`);
  process.exitCode = 1;
});
