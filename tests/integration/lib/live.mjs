// Sessions as a model has them, by the tools of a server.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { call, makeYard, startMcp, textOf, waitFor } from './client.mjs';

/** A server, and short words for what is asked of it. */
export async function open(t, { rules, ...options } = {}) {
  const yard = makeYard();

  if (rules !== undefined) {
    const dir = path.join(yard.home, '.config/shellyard');

    fs.mkdirSync(dir, { recursive: true });
    fs.writeFileSync(path.join(dir, 'rules.yaml'), JSON.stringify({ rules }));
  }

  const server = await startMcp({ cwd: yard.ws, env: yard.env, ...options });

  t.after(() => server.close());

  const tool = async (name, args) => {
    const r = await call(server.client, name, args);

    return { ...r.structuredContent, isError: r.isError ?? false, text: textOf(r) };
  };

  return {
    yard,
    server,
    tool,
    exec: (cmd, args = {}) => tool('exec_command', { cmd, ...args }),
    type: (id, chars, args = {}) => tool('write_stdin', { session_id: id, chars, ...args }),
  };
}

/** Reads on until the session has written that, and gives all that it wrote. */
export async function readUntil(s, id, pattern, first = '') {
  let all = first;

  await waitFor(async () => {
    if (!pattern.test(all)) {
      all += (await s.type(id, '', { idle_ms: 50, yield_time_ms: 1000 })).output;
    }
    return pattern.test(all);
  }, `output like ${pattern}`).catch((error) => assert.fail(`${error.message}: ${JSON.stringify(all)}`));
  return all;
}
