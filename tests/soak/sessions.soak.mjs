// Long runs of sessions (`make soak`): what short versions in tests/integration/exec_command.test.mjs
// look at for a moment. SOAK_RUNS and SOAK_SESSIONS are how many of each, in each tier.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import test from 'node:test';
import { call, makeYard, startMcp, statusKb, waitFor } from '../integration/lib/client.mjs';

const runs = Number(process.env.SOAK_RUNS ?? 1000);
const sessions = Number(process.env.SOAK_SESSIONS ?? 10_000);
const AT_ONCE = 4;
const lines = Array.from({ length: 3000 }, (_, i) => `${i + 1}\n`).join('');

/** Commands that end with their last byte: what they write, and how they end. */
const ends = [
  { argv: ['bash', '-c', "head -c 20480 /dev/zero | tr '\\0' h"], output: 'h'.repeat(20480), code: 0 },
  { argv: ['bash', '-c', 'printf "first\\nLAST"; exit 3'], output: 'first\nLAST', code: 3 },
  { argv: ['bash', '-c', 'printf LAST; kill -9 $$'], output: 'LAST', code: 137 },
  { argv: ['seq', '1', '3000'], output: lines, code: 0 },
  { argv: ['bash', '-c', '(sleep 0.01; printf LAST) & wait'], output: 'LAST', code: 0 },
];

async function open(t, tier) {
  const yard = makeYard();
  const server = await startMcp({ cwd: yard.ws, env: yard.env, args: ['-c', `sandbox.tier=${tier}`] });

  t.after(() => server.close());
  return { server, exec: async (args) => (await call(server.client, 'exec_command', { yield_time_ms: 30_000, ...args })).structuredContent };
}

/** `work` for each number below n, AT_ONCE at a time. */
async function each(n, work) {
  let next = 0;

  await Promise.all(Array.from({ length: AT_ONCE }, async () => {
    while (next < n) {
      next += 1;
      await work(next - 1);
    }
  }));
}

/** What a server has of the kernel's, and its own memory. */
function holdings(pid) {
  const children = [];

  for (const name of fs.readdirSync('/proc').filter((n) => /^\d+$/.test(n))) {
    try {
      const [, state, parent] = fs.readFileSync(`/proc/${name}/stat`, 'latin1').match(/^\d+ \(.*\) (.) (\d+) /s);

      if (Number(parent) === pid) {
        children.push(state);
      }
    } catch {
      // Ended meanwhile.
    }
  }
  return {
    fds: fs.readdirSync(`/proc/${pid}/fd`).length,
    children: children.length,
    zombies: children.filter((s) => s === 'Z').length,
    kb: statusKb(pid, 'VmRSS'),
  };
}

for (const tier of ['full', 'no-namespace']) {
  test(`${runs} runs lose nothing of what they write before they end (A14), ${tier} tier`, async (t) => {
    const s = await open(t, tier);
    const lost = [];

    await each(runs, async (i) => {
      const end = ends[i % ends.length];
      const r = await s.exec({ command: end.argv, tty: i % 10 < 8, max_output_tokens: 10_000 });

      if (r.output !== end.output || r.exit_code !== end.code) {
        lost.push({ run: i, argv: end.argv, code: r.exit_code, bytes: r.output?.length, tail: r.output?.slice(-80), note: r.note });
      }
    });
    t.diagnostic(`${runs} runs, ${lost.length} of them lost something`);
    assert.deepEqual(lost, []);
  });

  test(`${sessions} short sessions leave neither descriptors nor zombies (A18), ${tier} tier`, async (t) => {
    const s = await open(t, tier);
    const links = () => fs.readdirSync(`/proc/${s.server.pid}/fd`).map((fd) => {
      try {
        return fs.readlinkSync(`/proc/${s.server.pid}/fd/${fd}`);
      } catch {
        return ''; // closed meanwhile
      }
    });

    await each(300, () => s.exec({ command: ['true'], tty: true }));
    await waitFor(() => links().some((l) => l.endsWith('/shellyard.db')), 'the database is open, which comes last', 60_000);
    await each(300, () => s.exec({ command: ['true'], tty: true }));

    const before = holdings(s.server.pid);

    await each(sessions, async (i) => {
      const r = await s.exec({ command: ['true'], tty: i % 4 !== 0 });

      assert.equal(r.exit_code, 0);
    });

    const after = holdings(s.server.pid);

    t.diagnostic(`before ${JSON.stringify(before)}, after ${JSON.stringify(after)}`);
    assert.ok(after.fds <= before.fds + 10, 'descriptors');
    assert.ok(after.children <= before.children + 2, 'processes');
    assert.equal(after.zombies, 0);
    assert.ok(after.kb <= before.kb + 4096, 'memory');
  });
}
