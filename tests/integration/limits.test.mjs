// Timeouts that mean nothing, and a full disk (A48).
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { spawnSync } from 'node:child_process';
import { eachFront, execCli, makeYard, mustRun } from './lib/client.mjs';
import { test } from 'node:test';

const BAD_TIMEOUTS = [0, -1, 86_400_001];

for (const timeoutMs of BAD_TIMEOUTS) {
  eachFront(`A48 a timeout of ${timeoutMs} ms is refused and nothing runs`, async (t, { name, yard, open }) => {
    const front = await open();
    const r = await front.run('touch ran; sleep 2; echo done', { timeoutMs });

    assert.ok(r.isError, r.text);
    assert.match(r.text, /timeout/, 'it says what was wrong');
    assert.ok(r.text.includes(String(timeoutMs)), `and what it got: ${r.text}`);
    assert.match(r.text, /\b1\b|86400000|24 ?h|500ms/, 'and what would be right');
    if (name === 'exec') {
      assert.equal(r.cliStatus, 2);
    }
    const after = await front.run('echo alive');
    assert.equal(after.output, 'alive\n');
    assert.equal(fs.existsSync(path.join(yard.ws, 'ran')), false);
  });
}

test('A48 exec without a timeout lets a command run longer than the default of the tools', { timeout: 60_000 }, async (t) => {
  const yard = makeYard(t);
  const r = await execCli(['-c', 'tools.timeout_ms=500', '--', 'bash', '-c', 'sleep 1; echo done'], {
    cwd: yard.ws, env: yard.env,
  });

  assert.equal(r.stdout, 'done\n');
  assert.equal(r.code, 0);
});

/** A mount namespace of its own: as root at once, else with a user namespace. */
const UNSHARE = process.getuid() === 0 ? ['unshare', '-m'] : ['unshare', '-rm'];

/** Mounts a small file system on the directory $0, fills it, then runs the rest. */
const FULL_DISK = 'mount -t tmpfs -o size=64k none "$0" && { cat /dev/zero > "$0/fill" 2>/dev/null; '
  + '[ -s "$0/fill" ]; } && exec "$@"';

function canMount() {
  return spawnSync(UNSHARE[0], [...UNSHARE.slice(1), 'mount', '-t', 'tmpfs', 'none', '/mnt']).status === 0;
}

eachFront('A48 with a full temporary directory a result is still whole', async (t, { yard, open }) => {
  if (!mustRun(t, canMount(), 'no mount namespaces here')) {
    return;
  }
  const full = path.join(yard.dir, 'full');
  fs.mkdirSync(full);
  const front = await open({ env: { TMPDIR: full }, wrap: [...UNSHARE, 'sh', '-c', FULL_DISK, full] });
  const r = await front.run('df -k "$TMPDIR" | tail -1; echo hello; exit 4', { login: true });

  assert.match(r.output, /100% .*full\nhello\n$/);
  assert.equal(r.exitCode, 4);
});
