// A peer of the terminal suites, as its users would call it; it measures by itself:
//
//     node pty_peer.mjs node-pty MODULE PROGRAM [ARG...]
//     node pty_peer.mjs codex CODEX PROGRAM [ARG...]
//
// Says "ready", or in one line what it lacks; then answers lines of its standard input: "trip FIRST
// COUNT" by as many microseconds, "drain" by the seconds from PROGRAM's first byte to its end, and bytes.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import readline from 'node:readline';

const [kind, where, program, ...args] = process.argv.slice(2);
const isShell = program.endsWith('/bash');
const env = { ...process.env, PS1: 'ready> ', TERM: 'dumb' };
const say = (text) => process.stdout.write(`${text}\n`);

/** Terminals of node-pty: start(onData, onEnd) gives something to write to. */
function nodePty() {
  const pty = createRequire(import.meta.url)(where);

  return async (onData, onEnd) => {
    const child = pty.spawn(program, args, { name: 'dumb', cols: 80, rows: 24, env });

    child.onData(onData);
    child.onExit(onEnd);
    return (text) => child.write(text);
  };
}

/** Terminals of `codex app-server`: command/exec with a tty, outside of its sandbox. */
async function codex() {
  const server = spawn(where, ['app-server'], { stdio: ['pipe', 'pipe', 'ignore'] });
  const waiting = new Map();
  let next = 0;
  let onDelta = () => {};
  const send = (method, params) => new Promise((resolve, reject) => {
    next += 1;
    waiting.set(next, { resolve, reject });
    server.stdin.write(`${JSON.stringify({ id: next, method, params })}\n`);
  });

  readline.createInterface({ input: server.stdout }).on('line', (line) => {
    const m = JSON.parse(line);

    if (m.method === 'command/exec/outputDelta') {
      onDelta(m.params);
    } else if (waiting.has(m.id)) {
      const { resolve, reject } = waiting.get(m.id);

      waiting.delete(m.id);
      if (m.error) {
        reject(new Error(m.error.message));
      } else {
        resolve(m.result);
      }
    }
  });
  server.on('exit', () => process.exit(0));
  await send('initialize', { clientInfo: { name: 'bench', title: 'bench', version: '1' } });
  server.stdin.write(`${JSON.stringify({ method: 'initialized' })}\n`);

  let n = 0;

  return async (onData, onEnd) => {
    n += 1;

    const processId = `bench-${n}`;

    onDelta = (p) => p.processId === processId && onData(Buffer.from(p.deltaBase64, 'base64').toString('latin1'));
    send('command/exec', {
      command: [program, ...args], processId, tty: true, streamStdin: true, streamStdoutStderr: true, disableTimeout: true,
      disableOutputCap: true, env, sandboxPolicy: { type: 'dangerFullAccess' },
    }).then(onEnd, (error) => say(`codex: ${error.message}`));
    return (text) => send('command/exec/write', { processId, deltaBase64: Buffer.from(text).toString('base64') }).catch(() => {});
  };
}

const start = kind === 'codex' ? await codex() : nodePty();
let text = '';
let seen = () => {};
let write;

/** Resolves when that has come, of what came since the last time. */
function until(wanted) {
  return new Promise((resolve) => {
    seen = () => {
      const at = text.indexOf(wanted);

      if (at >= 0) {
        text = text.slice(at + wanted.length);
        seen = () => {};
        resolve();
      }
    };
    seen();
  });
}

async function trip(first, count) {
  const us = [];

  if (write === undefined) {
    write = await start((data) => {
      text += data;
      seen();
    }, () => {});
    await until('ready');
  }
  for (let i = first; i < first + count; i++) {
    const begun = process.hrtime.bigint();

    write(isShell ? `echo R$((${i}))Z\n` : `${i}\n`);
    await until(`R${i}Z`);
    us.push(Number(process.hrtime.bigint() - begun) / 1e3);
  }
  return us.join(' ');
}

function drain() {
  return new Promise((resolve) => {
    let begun;
    let bytes = 0;

    start((data) => {
      begun ??= process.hrtime.bigint();
      bytes += data.length;
    }, () => resolve(`${Number(process.hrtime.bigint() - begun) / 1e9} ${bytes}`));
  });
}

say('ready');
for await (const line of readline.createInterface({ input: process.stdin })) {
  const [word, first, count] = line.split(' ');

  say(word === 'drain' ? await drain() : await trip(Number(first), Number(count)));
}
process.exit(0);
