// Programs at a terminal of exec_command, driven as a person would: look at the screen, press keys.
import assert from 'node:assert/strict';
import { SOON_MS, call, makeYard, startMcp, textOf, waitFor } from './client.mjs';

/** One program. Whatever goes wrong is told with the screen as text. */
class Driven {
  constructor(tool, id) {
    this.tool = tool;
    this.id = id;
  }

  /** Types, presses or resizes (arguments of write_stdin), and looks at the screen. */
  async send(args) {
    this.last = await this.tool('write_stdin', { session_id: this.id, view: 'screen', ...args });
    assert.equal(this.last.isError, false, this.last.text);
    return this.last;
  }

  type(chars, args = {}) {
    return this.send({ chars, ...args });
  }

  press(...keys) {
    return this.send({ keys });
  }

  rows() {
    return this.last.output.split('\n');
  }

  show() {
    const { screen, output, status } = this.last;
    return `${status}, ${JSON.stringify(screen)}\n${'-'.repeat(40)}\n${output}${'-'.repeat(40)}`;
  }

  /** Looks until the screen is so: a pattern of its text, or a function of the answer. */
  async see(wants, what = String(wants)) {
    const fits = wants instanceof RegExp ? (r) => wants.test(r.output) : wants;
    const look = async () => (this.last !== undefined && fits(this.last))
      || fits(await this.send({ idle_ms: 20, yield_time_ms: 250 }));
    await waitFor(look, what, SOON_MS * 2).catch((error) => assert.fail(`${error.message}\n${this.show()}`));
    return this.last;
  }

  /** Waits for its end, and how it ended. */
  async ends(code = 0) {
    for (let i = 0; i < 20 && this.last?.status === 'running'; i++) {
      this.last = await this.tool('write_stdin', { session_id: this.id, view: 'screen', yield_time_ms: 2000 });
    }
    assert.equal(this.last.exit_code, code, this.show());
    return this.last;
  }
}

/** A server in a yard: {yard, server, tool(name, args), run(cmd, args)}, the last starts a program. */
export async function openDrive(t, { env = {}, ...options } = {}) {
  const yard = makeYard();
  const server = await startMcp({ cwd: yard.ws, env: { ...yard.env, ...env }, ...options });
  t.after(() => server.close());
  const tool = async (name, args) => {
    const r = await call(server.client, name, args);
    return { ...r.structuredContent, isError: r.isError ?? false, text: textOf(r) };
  };
  const run = async (cmd, args = {}) => {
    const first = await tool('exec_command', { cmd, tty: true, term: 'xterm-256color', view: 'screen', yield_time_ms: 250, ...args });
    assert.equal(first.isError, false, first.text);
    const driven = new Driven(tool, first.session_id);
    driven.last = first;
    return driven;
  };
  return { yard, server, tool, run };
}
