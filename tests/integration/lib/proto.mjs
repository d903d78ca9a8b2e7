// The program as `shellyard proto`, which speaks JSON Lines, or as `shellyard mcp` without an SDK.
import { spawn } from 'node:child_process';
import readline from 'node:readline';
import { program } from './client.mjs';

/** A running `shellyard proto` (or another verb): send(object), next(predicate) and all lines so far. */
export function openProto(t, yard, settings = {}, verb = 'proto') {
  const flags = Object.entries({ 'shell.path': '/bin/bash', ...settings }).flatMap(([k, v]) => ['-c', `${k}=${v}`]);
  const child = spawn(program, [verb, ...flags], { cwd: yard.ws, env: yard.env, stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = [];
  const waiting = [];
  readline.createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(line);
    for (const w of [...waiting]) {
      if (w.wants(JSON.parse(line))) {
        waiting.splice(waiting.indexOf(w), 1);
        w.resolve(JSON.parse(line));
      }
    }
  });
  t.after(() => child.kill('SIGKILL'));
  return {
    child, lines,
    send: (message) => child.stdin.write(`${typeof message === 'string' ? message : JSON.stringify(message)}\n`),
    next: (wants) => {
      const had = lines.map((line) => JSON.parse(line)).find(wants);
      return had ? Promise.resolve(had) : new Promise((resolve) => waiting.push({ wants, resolve }));
    },
  };
}
