// Timeouts that mean nothing, and a full disk (A48).
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { spawnSync } from 'node:child_process';
import { eachFront, execCli, makeYard, mustRun, program } from './lib/client.mjs';
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
  const yard = makeYard();
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
  // A private temporary directory would not be full.
  const settings = { 'sandbox.tier': 'no-namespace' };
  const front = await open({ settings, env: { TMPDIR: full }, wrap: [...UNSHARE, 'sh', '-c', FULL_DISK, full] });
  const r = await front.run('df -k "$TMPDIR" | tail -1; echo hello; exit 4', { login: true });

  assert.match(r.output, /100% .*full\nhello\n$/);
  assert.equal(r.exitCode, 4);
});

const LIMITS = {
  'limits.cpu_seconds': 1, 'limits.file_bytes': '64K', 'limits.output_bytes': '1M', 'limits.open_files': 64, 'limits.processes': 30,
};

eachFront('what fits into the limits runs as if there were none', async (t, { open }) => {
  const front = await open({ settings: LIMITS });
  const r = await front.run('head -c 60000 /dev/zero > f && wc -c < f; sleep 0.3 & sleep 0.3 & wait; echo done');

  assert.equal(r.output, '60000\ndone\n');
  assert.equal(r.raw.limit, undefined);
});

eachFront('a limit that ends a command is named, in words too', async (t, { open }) => {
  const front = await open({ settings: LIMITS });
  const cases = [
    ['exec head -c 70000 /dev/zero > f', 'file_size', 153, 'exact', 'rlimit'],
    ['while :; do :; done', 'cpu', 152, 'exact', 'rlimit'],
    ['yes', 'output', 137, 'exact', 'engine'],
  ];

  for (const [script, name, code, confidence, by] of cases) {
    const r = await front.run(script);

    assert.equal(r.exitCode, code, r.text);
    assert.equal(r.status, 'signaled');
    assert.equal(r.isError, false, 'it is a result, not a failure of ours');
    assert.deepEqual({ ...r.raw.limit, most: 0, unit: '' }, {
      name, ended: true, most: 0, unit: '', key: r.raw.limit.key, by, confidence,
    });
    assert.match(r.raw.limit.key, /^limits\./);
    if (front.name === 'mcp') {
      assert.match(r.text, new RegExp(`^Limit: ${name} ended the command \\(at most \\d+ .*limits\\.`, 'm'));
    }
  }
});

eachFront('a limit that was only met is inferred and the command goes on', async (t, { open }) => {
  const front = await open({ settings: LIMITS });
  const script = 'for i in $(seq 3 100); do eval "exec $i</dev/null" || exit 1; done';
  const r = await front.run(script);

  assert.equal(r.exitCode, 1, r.text);
  assert.equal(r.raw.limit.name, 'open_files');
  assert.equal(r.raw.limit.ended, false);
  assert.equal(r.raw.limit.confidence, 'inferred');
  const words = await front.run('echo "Too many open files"');
  assert.equal(words.raw.limit, undefined, 'words of a command that succeeded are no evidence');
  const without = await (await open()).run('echo "Too many open files" >&2; exit 1');
  assert.equal(without.raw.limit, undefined, 'nor are they where no limit is set');
});

eachFront('a timeout is the limit of the clock', async (t, { open }) => {
  const front = await open();
  const r = await front.run('sleep 30', { timeoutMs: 300 });

  assert.equal(r.exitCode, 124);
  assert.equal(r.raw.limit.name, 'wall_clock');
  assert.equal(r.raw.limit.most, 300);
});

eachFront('too many processes are refused or ended, and that is told exactly', async (t, { open }) => {
  const front = await open({ settings: LIMITS });
  const r = await front.run('for i in $(seq 60); do sleep 5 & done; wait', { timeoutMs: 20_000 });

  assert.equal(r.raw.limit?.name, 'processes', r.text);
  assert.equal(r.raw.limit.confidence, 'exact');
  assert.equal(r.raw.limit.ended, r.raw.limit.by === 'sampling', r.text);
});

test('sandbox check tells who holds each limit, and exec bears it out', { timeout: 60_000 }, async (t) => {
  const yard = makeYard();
  const check = JSON.parse(spawnSync(program, ['sandbox', 'check', '--json'], { cwd: yard.ws, env: yard.env }).stdout);
  const r = await execCli(['--json', '-c', 'limits.processes=10', '--', 'bash', '-c', 'for i in $(seq 30); do sleep 3 & done; wait'], {
    cwd: yard.ws, env: yard.env,
  });

  assert.deepEqual(Object.keys(check.limits), [
    'memory', 'processes', 'open_files', 'file_size', 'cpu', 'output', 'wall_clock', 'temp',
  ]);
  assert.equal(check.limits.temp.by, check.tier === 'full' ? 'tmpfs' : 'absent');
  assert.equal(JSON.parse(r.stdout).limit.by, check.limits.processes.by);
});

test('a slow reader and a limit that is looked at do not make exec read on', { timeout: 60_000 }, async (t) => {
  const yard = makeYard();
  const script = `'${program}' exec -c limits.cpu_seconds=20 -t 3s -- yes | { sleep 2.5; wc -c; }`;
  const r = spawnSync('sh', ['-c', script], { cwd: yard.ws, env: yard.env, encoding: 'utf8' });

  assert.ok(Number(r.stdout) > 100_000, r.stdout + r.stderr);
  assert.match(r.stderr, /did not end in time/);
  assert.doesNotMatch(r.stderr, /output/);
});

const TEMP = { 'sandbox.tier': 'full', 'limits.temp_bytes': '1M' };

/** Is the full tier there at all on this machine? */
function hasFull(t, yard) {
  const r = spawnSync(program, ['sandbox', 'check', '--json'], { cwd: yard.ws, env: yard.env, encoding: 'utf8' });
  return mustRun(t, JSON.parse(r.stdout).full_tier, 'no sandbox of the full tier here');
}

eachFront('private temporary directories hold no more than their limit, and the answer says so', async (t, { yard, open }) => {
  if (!hasFull(t, yard)) {
    return;
  }
  for (const [place, rest] of [['/tmp', ''], ['/dev/shm', 'true'], ['/tmp', 'rm /tmp/x; exit 1']]) {
    const front = await open({ settings: TEMP });
    const r = await front.run(`head -c 1000000 /dev/zero > ${place}/x && echo fits; head -c 2M /dev/zero >> ${place}/x; ${rest || 'exit 3'}`);
    assert.match(r.output, /^fits\n/);
    assert.match(r.output, /No space left on device/);
    assert.equal(r.sandbox.features?.temp_limit ?? 'enforced', 'enforced');
    assert.deepEqual(r.raw.limit, {
      name: 'temp', ended: false, most: 1 << 20, unit: 'bytes of temporary files', key: 'limits.temp_bytes', by: 'tmpfs', confidence: 'inferred',
    }, place + rest);
  }

  const small = await open({ settings: TEMP });
  assert.equal((await small.run('head -c 1000000 /dev/zero > /tmp/x')).raw.limit, undefined, 'what fits meets no limit');
  const words = await small.run('rm -f /tmp/x; echo "No space left on device"');
  assert.equal(words.raw.limit, undefined, 'words of a command that succeeded are no evidence');
  const wide = await open({ settings: { ...TEMP, 'limits.temp_bytes': '16M' } });
  const r = await wide.run('head -c 3M /dev/zero > /tmp/x && wc -c < /tmp/x');
  assert.equal(r.output, '3145728\n', 'where the limit allows it, it works');
  const files = await wide.run('mkdir /tmp/d; cd /tmp/d; seq 10000 | xargs touch', { timeoutMs: 60_000 });
  assert.match(files.output, /No space left on device/, 'files without a byte count, too');
});

eachFront('without private temporary directories their limit is told not to hold', async (t, { open }) => {
  const front = await open({ settings: { ...TEMP, 'sandbox.tier': 'no-namespace' } });
  const r = await front.run('f=$(mktemp /tmp/sy-XXXXXX); head -c 2M /dev/zero > $f && wc -c < $f; rm $f');
  assert.equal(r.output, '2097152\n');
  assert.equal(r.sandbox.features.temp_limit, 'absent');
});
