// A daemon for a yard, and who talks to its socket by hand.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { program, STUCK_MS, waitFor } from './client.mjs';

export const socketOf = (yard) => path.join(yard.env.XDG_STATE_HOME ?? path.join(yard.home, '.local/state'), 'shellyard/daemon.sock');

/** The environment of a daemon: what it runs for clients has theirs, and their mark. */
export function daemonEnv(yard, env = {}) {
  const { TEST_MARK, ...rest } = yard.env;
  return { ...rest, ...env };
}

/** The processes that serve clients, with those that a dead daemon left. */
export function hostsOf(yard) {
  const dir = path.dirname(socketOf(yard));
  const names = fs.existsSync(dir) ? fs.readdirSync(dir) : [];
  return names.filter((name) => name.startsWith('host.')).map((name) => Number(name.slice('host.'.length)));
}

function signalIfThere(pid, signal) {
  try {
    process.kill(pid, signal);
  } catch (e) {
    if (e.code !== 'ESRCH') {
      throw e;
    }
  }
}

/**
 * A daemon in the foreground, once it serves: {child, pid, stderr(), ended}; `ended` resolves to
 * {code, signal}. It is killed when the test has ended.
 */
export async function startDaemon(t, yard, { args = [], env = {}, wrap = [] } = {}) {
  const argv = [...wrap, program, 'serve', ...args];
  const child = spawn(argv[0], argv.slice(1), { cwd: yard.ws, env: daemonEnv(yard, env), stdio: ['ignore', 'ignore', 'pipe'] });
  let stderr = '';
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  // Its hosts have its standard error too.
  const ended = once(child, 'exit').then(([code, signal]) => ({ code, signal, stderr }));
  t.after(async () => {
    child.kill('SIGKILL');
    await ended;
    hostsOf(yard).forEach((pid) => signalIfThere(pid, 'SIGKILL'));
    child.stderr.destroy();
  });
  await waitFor(() => stderr.includes('serving at') || child.exitCode !== null, `the daemon serves: ${stderr}`);
  return { child, pid: child.pid, stderr: () => stderr, ended };
}

/** A verb that asks, to its end: {status, stdout, stderr}. */
export function ask(yard, args, { env = yard.env, wrap = [] } = {}) {
  const argv = [...wrap, program, ...args];
  return spawnSync(argv[0], argv.slice(1), { cwd: yard.ws, env, encoding: 'utf8', timeout: STUCK_MS });
}

/** The clients that the daemon of the yard serves. */
export const clientsOf = (yard) => JSON.parse(ask(yard, ['list', '--json']).stdout).clients;

export const knocker = path.join(path.dirname(fileURLToPath(import.meta.url)), 'knock.py');

/** Says `bytes` to the socket and resolves to all that comes back. */
export async function say(file, bytes) {
  const child = spawn('python3', [knocker, file, 'raw'], { stdio: ['pipe', 'pipe', 'inherit'] });
  let answer = '';
  child.stdout.on('data', (chunk) => {
    answer += chunk;
  });
  child.stdin.end(bytes);
  await once(child, 'close');
  return answer;
}

/** A frame of these texts. */
export function frame(texts, { version = '1', bytes } = {}) {
  const body = Buffer.from(texts.map((text) => `${text}\0`).join(''), 'latin1');
  return Buffer.concat([Buffer.from(`shellyard ${version} ${bytes ?? body.length}\n`), body]);
}
