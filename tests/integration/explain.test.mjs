// In the full tier, too, the kernel does what `sandbox explain` says: random paths are asked
// about and then used by a command of a server.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { spawn, spawnSync } from 'node:child_process';
import test from 'node:test';
import { STUCK_MS, has, hasFull, makeYard, mustRun, openFront, program } from './lib/client.mjs';

const FULL = { 'sandbox.tier': 'full' };
const PAIRS = 500;
const OPERATIONS = ['read', 'write', 'create', 'delete', 'rename', 'truncate', 'chmod'];

/** Each act is undone at once; prints the errno of each, 0 for none. */
const DOER = `
import errno, json, os, sys
def rename(p):
    p = p.rstrip('/')
    if os.path.basename(p) not in ('', '.', '..'):
        p = os.path.join(os.path.realpath(os.path.dirname(p)), os.path.basename(p))
    os.rename(p, p + '~'); os.rename(p + '~', p)
def read(p): # what is hidden is empty
    if not (os.listdir(p) if os.path.isdir(p) else open(p, 'rb').read(1)): raise OSError(errno.EACCES, 'hidden')
def create(p):
    os.close(os.open(p, os.O_WRONLY | os.O_CREAT | os.O_EXCL)); os.unlink(p)
def write(p):
    if os.path.exists(p): os.close(os.open(p, os.O_WRONLY))
    else: create(os.path.realpath(p))
acts = {'read': read,
        'write': write, 'create': create, 'delete': rename, 'rename': rename,
        'truncate': lambda p: os.truncate(p, os.stat(p).st_size), 'chmod': lambda p: os.chmod(p, os.stat(p).st_mode & 0o7777)}
out = []
for op, p in json.load(open(sys.argv[1])):
    try:
        acts[op](p); out.append(0)
    except OSError as e:
        out.append(e.errno)
print(json.dumps(out))
`;

function build(yard) {
  const { ws, outside } = yard;
  const dirs = [ws, `${ws}/d1`, `${ws}/d1/d2`, outside, `${outside}/d1`, `${outside}/root`, `${outside}/root/sub`];
  for (const dir of dirs) {
    fs.mkdirSync(dir, { recursive: true });
    for (const name of ['f', 'g', '.env']) {
      fs.writeFileSync(path.join(dir, name), '1');
    }
    fs.mkdirSync(path.join(dir, 'keys'));
    fs.writeFileSync(path.join(dir, 'keys/k'), '1');
  }
  for (const repo of [ws, `${ws}/d1`, outside]) {
    fs.mkdirSync(path.join(repo, '.git/objects'), { recursive: true });
    fs.mkdirSync(path.join(repo, '.git/refs'));
    fs.mkdirSync(path.join(repo, '.git/hooks'));
    fs.writeFileSync(path.join(repo, '.git/HEAD'), 'ref: refs/heads/main\n');
    fs.writeFileSync(path.join(repo, '.git/config'), '[core]\n');
    fs.writeFileSync(path.join(repo, '.git/hooks/h'), '1');
  }
  fs.writeFileSync(`${ws}/d1/.envrc`, '1');
  fs.mkdirSync(`${ws}/.git/info`);
  fs.mkdirSync(`${ws}/conf`);
  fs.writeFileSync(`${ws}/conf/x`, '1');
  fs.symlinkSync('conf', `${ws}/.idea`);
  fs.symlinkSync('../../g', `${ws}/d1/.git/hooks/link`);
  fs.writeFileSync(`${outside}/alone`, '1');
  fs.linkSync(`${outside}/alone`, `${outside}/twin`);
  fs.linkSync(`${outside}/f`, `${ws}/hard`);
  fs.linkSync(`${ws}/keys/k`, `${ws}/copy`);
  fs.symlinkSync(outside, `${ws}/to_out`);
  fs.symlinkSync(`${ws}/d1`, `${outside}/to_in`);
  fs.symlinkSync('../keys', `${ws}/d1/to_keys`);
  fs.symlinkSync(`${outside}/root`, `${yard.dir}/link`);
  return [...dirs, `${ws}/to_out`, `${outside}/to_in`, `${ws}/to_out/d1`, `/proc/self/root${ws}`, `/proc/self/root${outside}`, `${ws}/d1/..`, yard.dir];
}

const NAMES = ['', 'f', 'g', 'new', '.env', 'keys', 'keys/k', 'd1', 'd2/f', 'hard', 'copy', 'alone', 'twin', 'root', 'root/sub', 'sub/new', 'to_keys/k',
  'to_keys', '.git', '.git/HEAD', '.git/config', '.git/new', '.git/hooks', '.git/hooks/h', '.git/hooks/new', '.envrc', '.vscode/x', '..', 'to_out', 'link/f',
  '.git/config.worktree', '.git/info/attributes', '.idea', '.idea/x', '.idea/new', 'conf', 'conf/x', '.git/hooks/link'];

function* randomly(seed) {
  let x = seed;
  for (;;) {
    x ^= x << 13; x ^= x >>> 17; x ^= x << 5;
    yield x >>> 0;
  }
}

/** What explain says of each, two at a time. */
async function explain(yard, pairs, words) {
  const said = [];
  let next = 0;
  const worker = async () => {
    while (next < pairs.length) {
      const i = next++;
      said[i] = await new Promise((resolve, reject) => {
        const child = spawn(program, ['sandbox', 'explain', '--json', ...words, ...pairs[i]], { cwd: yard.ws, env: yard.env });
        let text = '';
        let why = '';
        child.stdout.on('data', (d) => { text += d; });
        child.stderr.on('data', (d) => { why += d; });
        child.on('error', reject);
        child.on('close', (code, signal) => { try { resolve(JSON.parse(text)); } catch { reject(new Error(`${pairs[i]}: ${code} ${signal} ${text}${why}`)); } });
      });
    }
  };
  await Promise.all([worker(), worker()]);
  return said;
}

test('the kernel does in the full tier what explain says', { timeout: 300_000 }, async (t) => {
  const yard = makeYard();
  const check = spawnSync(program, ['sandbox', 'check', '--json'], { cwd: yard.ws, env: yard.env, encoding: 'utf8' });
  if (!mustRun(t, has('python3'), 'no python3') || !mustRun(t, JSON.parse(check.stdout).full_tier, 'no sandbox of the full tier here')) {
    return;
  }
  const dirs = build(yard);
  const settings = {
    ...FULL,
    'sandbox.writable_roots': [`${yard.dir}/link`, `${yard.outside}/alone`],
    'sandbox.deny_read': [`${yard.ws}/**/keys`, `${yard.outside}/.env`, `${yard.outside}/d1/keys`],
  };
  const seed = Date.now() & 0x7fffffff || 1;
  t.diagnostic(`seed ${seed}`);
  const random = randomly(seed);
  const pick = (list) => list[random.next().value % list.length];
  const script = path.join(yard.dir, 'doer.py');
  const file = path.join(yard.dir, 'pairs.json');
  fs.writeFileSync(script, DOER);

  // What would not work without a sandbox says nothing about one.
  const seen = new Set();
  const all = [];
  for (let i = 0; i < 5000; i++) {
    const pair = [pick(OPERATIONS), `${pick(dirs)}/${pick(NAMES)}`];
    if (!seen.has(String(pair))) {
      seen.add(String(pair));
      all.push(pair);
    }
  }
  fs.writeFileSync(file, JSON.stringify(all));
  const outside = spawnSync('python3', [script, file], { cwd: yard.ws, env: yard.env, encoding: 'utf8' });
  assert.equal(outside.status, 0, outside.stderr);
  const control = JSON.parse(outside.stdout);
  const pairs = all.filter((_, i) => control[i] === 0).slice(0, PAIRS);
  assert.equal(pairs.length, PAIRS);
  fs.writeFileSync(file, JSON.stringify(pairs));

  const front = await openFront(t, 'mcp', yard, { settings });
  const r = await front.run(`python3 ${script} ${file}`, { timeoutMs: 60_000 });
  assert.equal(r.exitCode, 0, r.text);
  const done = JSON.parse(r.output);
  const words = Object.entries(settings).flatMap(([k, v]) => ['-c', `${k}=${Array.isArray(v) ? JSON.stringify(v) : v}`]);
  const said = await explain(yard, pairs, words);
  const wrong = pairs.map((pair, i) => ({ pair, allowed: said[i].allowed, errno: done[i], rule: said[i].rule }))
    .filter(({ allowed, errno }) => allowed !== (errno === 0));
  assert.deepEqual(wrong, []);
  for (const kind of [true, false]) {
    assert.ok(said.filter((e) => e.allowed === kind).length > PAIRS / 10, 'both are met');
  }
});

// To another user / is shut anyway.
const rootTest = process.getuid() === 0 ? test : () => {};

rootTest('where / is the workspace, what the sandbox has of its own is explained as it is', { timeout: STUCK_MS }, (t) => {
  const yard = makeYard();

  if (!hasFull(t, yard)) {
    return;
  }
  const paths = ['/run/sy-x', '/dev/sy-x', '/proc/sy-x', '/dev/shm/sy-x', '/dev/null'];
  // Nothing is held: what other tests do meanwhile, below the same root, is not this command's.
  const env = { ...yard.env, SHELLYARD_SANDBOX_TIER: 'full', SHELLYARD_SANDBOX_PROTECT: 'false' };
  const cli = (args) => spawnSync(program, args, { cwd: '/', env, encoding: 'utf8' });
  const done = cli(['exec', '--', 'sh', '-c', paths.map((p) => `if (echo x >${p}) 2>/dev/null; then echo yes; else echo no; fi`).join(';')]);

  assert.deepEqual(done.stdout.split('\n').slice(0, -1), ['no', 'no', 'no', 'yes', 'yes'], done.stderr);
  for (const [i, p] of paths.entries()) {
    const said = JSON.parse(cli(['sandbox', 'explain', '--json', 'write', p]).stdout);

    assert.equal(said.allowed, i >= 3, p);
    assert.ok(i >= 3 || /has its own/.test(said.rule), said.rule);
  }
});
