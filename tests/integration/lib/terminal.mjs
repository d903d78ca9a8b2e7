// A person's terminal: `shellyard attach` on a PTY, and what that terminal shows.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { program, waitFor } from './client.mjs';

const driver = path.join(path.dirname(fileURLToPath(import.meta.url)), 'terminal.py');

/** Rows of text, made of the few sequences with which a screen is painted. */
class Screen {
  rows = [];

  row = 0;

  col = 0;

  left = '';

  feed(text) {
    const all = this.left + text;
    // What is not whole waits.
    const open = all.match(/\x1b(\[[0-9;:?> ]*|\][^\x07\x1b]*\x1b?)?$/);
    this.left = open ? open[0] : '';
    const whole = open ? all.slice(0, open.index) : all;
    for (const [piece, csi, final] of whole.matchAll(/\x1b\[([0-9;:?> ]*)([@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()].|\x1b.|[\s\S]/gu)) {
      if (final !== undefined) {
        this.control(final, csi);
      } else if (piece === '\r') {
        this.col = 0;
      } else if (piece === '\n') {
        this.row += 1;
      } else if (piece.length > 0 && piece >= ' ') {
        this.rows[this.row] ??= [];
        this.rows[this.row][this.col] = piece;
        this.col += 1;
      }
    }
  }

  control(final, csi) {
    const [a, b] = csi.split(';').map((n) => Number(n) || 1);
    if (final === 'H') {
      [this.row, this.col] = [a - 1, (b ?? 1) - 1];
    } else if (final === 'G') {
      this.col = a - 1;
    } else if (final === 'K') {
      this.rows[this.row]?.splice(this.col);
    } else if (final === 'J') {
      this.rows = [];
    }
  }

  text() {
    return Array.from(this.rows, (row) => Array.from(row ?? [], (c) => c ?? ' ').join('').trimEnd()).join('\n').trimEnd();
  }
}

/** `shellyard attach ARGS` as a person has it: {type, resize, signal, text(), raw(), shows(regex), ended}. */
export function joinSession(t, yard, args, { rows = 24, cols = 80, env = yard.env } = {}) {
  const child = spawn('python3', [driver, String(rows), String(cols), program, 'attach', ...args], {
    cwd: yard.ws, env: { ...env, TERM: 'xterm-256color' }, stdio: ['pipe', 'pipe', 'inherit', 'pipe', 'pipe'],
  });
  const screen = new Screen();
  let raw = '';
  let last = '';
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    raw += chunk;
    screen.feed(chunk);
  });
  child.stdio[4].on('data', (chunk) => { last += chunk; });
  child.stdin.on('error', () => {});
  const ended = once(child, 'close').then(() => {
    const [status, modes] = last.trim().split(' ');
    return { status: Number(status), modes, raw, last: raw.slice(raw.lastIndexOf('\x1b[?1049l') + 8).replaceAll('\r', '') };
  });
  t.after(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const order = (line) => child.stdio[3].write(`${line}\n`);
  return {
    ended,
    type: (text) => child.stdin.write(text),
    resize: (r, c) => order(`size ${r} ${c}`),
    signal: (number) => order(`signal ${number}`),
    raw: () => raw,
    text: () => screen.text(),
    shows: (pattern) => waitFor(() => pattern.test(screen.text()), `the terminal shows ${pattern}`).catch((error) => {
      throw new Error(`${error.message}:\n${screen.text()}\n${JSON.stringify(raw.slice(-800))}`);
    }),
  };
}
