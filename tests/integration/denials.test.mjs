// What the sandbox refused, told alike by each front end: what was seen, what is inferred, and
// what only looks like it (A32, C04, C05, P24, P25).
import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { once } from 'node:events';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { eachFront, execCli, has, makeYard, mustRun, program } from './lib/client.mjs';

const FULL = { settings: { 'sandbox.report': 'full' } };
const UNSANDBOXED = { settings: { 'sandbox.mode': 'danger-full-access' } };
const runProgram = (argv, { cwd, env }) => {
  const r = spawnSync(argv[0], argv.slice(1), { cwd, env, encoding: 'utf8', timeout: 60_000 });
  return { code: r.status, stdout: r.stdout, stderr: r.stderr };
};
/** Who refuses paths: in a file tree of its own, mounts stand in front of Landlock. */
const wall = (r) => (r.sandbox.tier === 'full' ? 'mount' : 'landlock');
const denials = (r) => r.raw.denials ?? [];

eachFront('A32 an ordinary failure is no denial, a real one is told', async (t, { name, yard, open }) => {
  const front = await open();
  fs.mkdirSync(path.join(yard.ws, 'sandbox'));
  fs.writeFileSync(path.join(yard.ws, 'sandbox/p.json'), '{}');
  fs.writeFileSync(path.join(yard.ws, 'x.sh'), '#!/bin/sh\necho no\n');

  const found = await front.run('find . -name p.json; exit 1');
  assert.equal(found.output, './sandbox/p.json\n');
  assert.equal(found.exitCode, 1);
  assert.deepEqual(denials(found), []);

  const unfit = await front.run('chmod 644 x.sh; ./x.sh');
  assert.equal(unfit.exitCode, 126);
  assert.deepEqual(denials(unfit), []);

  const missing = await front.run('nosuchcmd_x');
  assert.equal(missing.exitCode, 127);
  assert.deepEqual(denials(missing), []);

  const target = path.join(yard.outside, 'f');
  const refused = await front.run(`touch ${target}`);
  assert.notEqual(refused.exitCode, 0);
  assert.deepEqual(denials(refused), [{
    operation: 'write', object: target, layer: wall(refused), confidence: 'inferred',
    rule: 'workspace-write: it is below no writable root',
    fix: `sandbox.writable_roots: ["${yard.outside}"]`,
  }]);
  if (name === 'mcp') {
    assert.ok(refused.text.includes(`[sandbox: write ${target} was refused by ${wall(refused)} (inferred); to allow it: `),
      refused.text);
    assert.match(refused.raw.escalation, /require_escalated/);
    assert.match(refused.text, /require_escalated/);
    assert.equal(found.raw.escalation, undefined);
  }

  const free = await open(UNSANDBOXED);
  const done = await free.run(`touch ${target}`);
  assert.equal(done.exitCode, 0, 'without the sandbox it works');
  assert.deepEqual(denials(done), []);
});

eachFront('the line that a denial names does allow it', async (t, { yard, open }) => {
  const target = path.join(yard.outside, 'f');
  const front = await open({ settings: { 'sandbox.writable_roots': yard.outside } });
  const r = await front.run(`touch ${target}`);

  assert.equal(r.exitCode, 0, r.text);
  assert.deepEqual(denials(r), []);
});

eachFront('P24 words alone are no denial', async (t, { open }) => {
  const front = await open();
  const r = await front.run('echo "permission denied / sandbox / seccomp: Operation not permitted" >&2; exit 1');

  assert.equal(r.exitCode, 1);
  assert.deepEqual(denials(r), []);
  assert.equal(r.note, '');
});

eachFront('C05 what plain permissions refuse is told as not ours, without a remedy', async (t, { yard, open }) => {
  const front = await open();
  const locked = path.join(yard.outside, 'locked');
  const inside = path.join(yard.ws, 'sealed');
  fs.writeFileSync(locked, 'x');
  fs.chmodSync(locked, 0);
  fs.writeFileSync(inside, 'x');
  fs.chmodSync(inside, 0);

  for (const file of [locked, inside]) {
    const r = await front.run(`echo y >> ${file}`);
    assert.notEqual(r.exitCode, 0, file);
    assert.deepEqual(denials(r), [], file);
    assert.doesNotMatch(r.text, /writable_roots/, file);
  }
  const other = await front.run(`echo y >> ${locked}`);
  assert.ok(other.note.startsWith(`not the sandbox: ${locked} `), other.note);

  fs.chmodSync(locked, 0o600);
  const ours = await front.run(`echo y >> ${locked}`);
  assert.equal(denials(ours).length, 1, 'the control: now the sandbox is the one');
});

eachFront('C05 what is missing, or lies on a read-only file system, is no denial of ours', async (t, { yard, open }) => {
  const front = await open();
  const missing = await front.run(`touch ${yard.outside}/no/f; cat /no-such-file; exit 1`);
  assert.deepEqual(denials(missing), []);

  const fixed = await front.run('echo x > /proc/version');
  assert.notEqual(fixed.exitCode, 0);
  assert.deepEqual(denials(fixed), []);
});

eachFront('C05 a namespace that is refused names no path to grant', async (t, { open }) => {
  if (!mustRun(t, has('unshare'), 'no unshare')) {
    return;
  }
  const front = await open();
  const r = await front.run('unshare -Ur true');

  assert.notEqual(r.exitCode, 0);
  assert.deepEqual(denials(r).filter((d) => d.fix !== undefined), []);
});

eachFront('a host that can not be reached is told while the network is off', async (t, { open }) => {
  if (!mustRun(t, has('curl'), 'no curl')) {
    return;
  }
  const front = await open();
  const r = await front.run('curl -sS http://192.0.2.1/');
  // In a network of its own a connection is tried, and so refused by us.
  const isFull = r.sandbox.tier === 'full';
  const seen = isFull ? ['broker', 'exact'] : ['seccomp', 'inferred'];
  // From a text without a host, as of curl 7.81, none can be inferred.
  const isNamed = isFull || r.output.includes('192.0.2.1');

  assert.notEqual(r.exitCode, 0);
  assert.match(r.output, /connect to/);
  assert.deepEqual(denials(r).map((d) => [d.operation, d.object, d.layer, d.confidence, d.fix]),
    isNamed ? [['connect', '192.0.2.1:80', ...seen, 'sandbox.network_access: true']] : []);
  const named = await front.run('curl -sS http://name.invalid/');
  assert.notEqual(named.exitCode, 0);
  assert.deepEqual(denials(named).filter((d) => d.object.startsWith('name.invalid')).map((d) => [d.layer, d.confidence]),
    [[r.sandbox.tier === 'full' ? 'namespace' : 'seccomp', 'inferred']]);

  const on = await open({ settings: { 'sandbox.network_access': true } });
  const tried = await on.run('curl -sS http://127.0.0.1:9/');
  assert.notEqual(tried.exitCode, 0);
  assert.deepEqual(denials(tried), [], 'nobody listens there: not ours');
});

eachFront('a socket of somebody else that is refused is told exactly', async (t, { yard, open }) => {
  if (!mustRun(t, has('python3'), 'no python3')) {
    return;
  }
  const at = path.join(yard.outside, 's');
  const server = net.createServer((socket) => socket.destroy());
  server.listen(at);
  await once(server, 'listening');
  t.after(() => server.close());
  fs.chmodSync(at, 0o666);
  const front = await open();
  const code = `import socket; s = socket.socket(socket.AF_UNIX)\ntry: s.connect("${at}")\nexcept OSError: pass`;
  const r = await front.run(`python3 -c '${code}'`, { timeoutMs: 60_000 });

  assert.equal(r.exitCode, 0, 'the command hid it');
  assert.deepEqual(denials(r).map((d) => [d.operation, d.object, d.layer, d.confidence]),
    [['connect', `unix:${at}`, 'broker', 'exact']]);

  const on = await open({ settings: { 'sandbox.network_access': true } });
  assert.deepEqual(denials(await on.run(`python3 -c '${code}'`, { timeoutMs: 60_000 })), []);
});

eachFront('P25 with report: full a refusal that the command hides is told', async (t, { yard, open }) => {
  const target = path.join(yard.outside, 'f');
  const script = `touch ${target} 2>/dev/null || true`;
  const plain = await open();
  const hidden = await plain.run(script);
  assert.equal(hidden.exitCode, 0);
  assert.deepEqual(denials(hidden), [], 'by default nobody sees it');

  const front = await open(FULL);
  const r = await front.run(script);
  assert.equal(r.exitCode, 0);
  assert.equal(r.sandbox.report, 'full');
  assert.deepEqual(denials(r).map((d) => [d.operation, d.object, d.layer, d.confidence]),
    [['write', target, wall(r), 'exact']]);
  assert.equal(fs.existsSync(target), false);
  const quiet = await front.run('touch f; mkdir d; mv f d/; rm -r d; echo x > /dev/null');
  assert.equal(quiet.exitCode, 0, quiet.text);
  assert.deepEqual(denials(quiet), [], 'what works is not told');
});

eachFront('report: full tells each kind of change, and nothing twice', async (t, { yard, open }) => {
  if (!mustRun(t, has('python3'), 'no python3')) {
    return;
  }
  const old = path.join(yard.outside, 'old');
  const fresh = path.join(yard.outside, 'new');
  fs.writeFileSync(old, 'x');
  fs.writeFileSync(path.join(yard.ws, 'mine'), 'x');
  fs.writeFileSync(path.join(yard.ws, 'acts.py'), `import os, socket
old, new = "${old}", "${fresh}"
def refused(act):
    try:
        act()
        print("DONE")
    except OSError as e:
        print(e.errno)
refused(lambda: os.mkdir(new))
refused(lambda: os.unlink(old))
refused(lambda: os.truncate(old, 0))
refused(lambda: os.rename("mine", new))
refused(lambda: os.symlink("x", new))
refused(lambda: open(old, "a"))
refused(lambda: os.open("../outside/old", os.O_WRONLY))
refused(lambda: os.open("old", os.O_WRONLY, dir_fd=os.open("${yard.outside}", os.O_RDONLY)))
refused(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW))
refused(lambda: os.mkdir("/"))
refused(lambda: os.unlink(new))
`);
  const front = await open(FULL);
  const r = await front.run('python3 acts.py', { timeoutMs: 60_000 });

  // Before Linux 6.2 nothing but mounts can refuse that, and answers say so.
  const truncates = r.sandbox.features.fs_truncate === 'absent';
  assert.equal(r.output.includes('DONE'), truncates, r.output);
  assert.equal(fs.readFileSync(old, 'utf8'), truncates ? '' : 'x');
  assert.deepEqual(denials(r).map((d) => [d.operation, d.object, d.confidence, d.count ?? 1]), [
    ['create', fresh, 'exact', 3],
    ['delete', old, 'exact', 1],
    ...(truncates ? [] : [['truncate', old, 'exact', 1]]),
    ['write', old, 'exact', 3],
    ['call', 'socket (AF_INET)', 'exact', 1],
  ]);
});

eachFront('report: full stops nothing that works', async (t, { open }) => {
  if (!mustRun(t, has('git') && has('python3'), 'no git or python3')) {
    return;
  }
  const front = await open(FULL);
  const git = 'git -c user.name=n -c user.email=e@example.org';
  const r = await front.run(`git init -q r && cd r && echo 1 > f && git add f && ${git} commit -qm m && git status --short && `
    + `${git} commit -q --amend -m n && git gc -q && git log --format=%s`, { timeoutMs: 60_000 });
  assert.equal(r.output, 'n\n', r.text);
  const threads = 'import subprocess, threading\n'
    + 'ts = [threading.Thread(target=lambda: [subprocess.run(["true"], check=True) for _ in range(10)]) for _ in range(4)]\n'
    + '[t.start() for t in ts]\n[t.join() for t in ts]\nprint("ok")';
  const many = await front.run(`python3 -c '${threads}'`, { timeoutMs: 60_000 });
  assert.equal(many.output, 'ok\n', many.text);
  assert.deepEqual(denials(many), []);
  const pipe = await front.run('mkfifo p; echo hi > p & cat p; wait', { timeoutMs: 60_000 });
  assert.equal(pipe.output, 'hi\n');
});

test('report: full inside of another sandbox says that it is not to be had', { timeout: 60_000 }, async (t) => {
  const yard = makeYard();
  const r = await execCli(['-c', `sandbox.writable_roots=${yard.home}`, '--', program, 'exec', '--json', '-c',
    'sandbox.report=full', '--', 'touch', path.join(yard.outside, 'f')], { cwd: yard.ws, env: yard.env });
  const inner = JSON.parse(r.stdout);

  assert.match(inner.note, /report: full is not possible here/);
  assert.deepEqual(inner.denials ?? [], [], 'the outer sandbox refuses it too: no grant of ours helps');
});

test('exec tells refusals on standard error', { timeout: 60_000 }, async (t) => {
  const yard = makeYard();
  const target = path.join(yard.outside, 'f');
  const r = await execCli(['--', 'touch', target], { cwd: yard.ws, env: yard.env });

  assert.ok(r.stderr.includes(`shellyard: sandbox: write ${target} was refused by landlock (inferred); to allow it: `
    + `sandbox.writable_roots: ["${yard.outside}"]\n`), r.stderr);
});

test('what is refused, but not by the sandbox and not to be written, is no denial', { timeout: 60_000 }, async () => {
  const yard = makeYard();
  const tool = path.join(yard.outside, 'tool');
  fs.writeFileSync(tool, 'no program\n', { mode: 0o644 });
  for (const script of [`sh -c ${yard.outside}`, `sh -c ${tool}`, `node -e 'require("child_process").execFileSync("${tool}")'`,
    `printf 'all:\\n\\t@${tool}\\n' | make -f -`, `echo ${tool} | xargs -I{} {}`, `mount -t tmpfs none ${yard.outside}`, `chroot ${yard.outside} true`,
    'echo "Failed to connect to bus: Host is down" >&2; exit 1']) {
    const r = await execCli(['--json', '--', 'sh', '-c', script], { cwd: yard.ws, env: yard.env });
    const said = JSON.parse(r.stdout);
    assert.notEqual(said.exit_code, 0, script);
    assert.deepEqual(said.denials ?? [], [], `${script}: ${said.stderr}`);
  }
});

test('learn puts the refusals of a run together and runs nothing outside', { timeout: 60_000 }, async (t) => {
  const yard = makeYard();
  const script = `touch ${yard.outside}/a ${yard.outside}/b; mkdir ${yard.home}/x; touch inside; exit 5`;
  const r = runProgram([program, 'sandbox', 'learn', '--json', '--', 'sh', '-c', script],
    { cwd: yard.ws, env: { ...yard.env, HOME: '/nonexistent' } });
  assert.equal(r.code, 5, r.stderr);
  const learned = JSON.parse(r.stdout);
  assert.equal(learned.exit_code, 5);
  assert.equal(learned.denials.length, 3);
  assert.equal(learned.today, 'sandbox:\n  mode: workspace-write\n  writable_roots: []\n  network_access: false\n');
  assert.equal(learned.needed, `sandbox:\n  writable_roots: ["${yard.outside}","${yard.home}"]\n`);
  assert.deepEqual(fs.readdirSync(yard.outside), []);
  assert.deepEqual(fs.readdirSync(yard.ws), ['inside']);

  const again = runProgram([program, 'sandbox', 'learn', '-c', `sandbox.writable_roots=${yard.outside}`,
    '-c', `sandbox.writable_roots=${yard.outside},${yard.home}`, '--', 'sh', '-c', script],
  { cwd: yard.ws, env: { ...yard.env, HOME: '/nonexistent' } });
  assert.match(again.stderr, /nothing was refused/, 'the lines are enough');
  assert.deepEqual(fs.readdirSync(yard.outside).sort(), ['a', 'b']);
});

test('learn gives the command our standard input and output', { timeout: 60_000 }, async (t) => {
  const yard = makeYard();
  const r = runProgram(['sh', '-c', `echo word | "$0" sandbox learn -- sh -c 'read x; echo got $x'`, program],
    { cwd: yard.ws, env: yard.env });

  assert.equal(r.stdout, 'got word\n');
  assert.match(r.stderr, /nothing was refused/);
});

test('learn refuses to run without a sandbox', { timeout: 60_000 }, async (t) => {
  const yard = makeYard();
  for (const key of ['sandbox.mode=danger-full-access', 'sandbox.mode=external-sandbox']) {
    const r = runProgram([program, 'sandbox', 'learn', '-c', key, '--', 'touch', 'ran'],
      { cwd: yard.ws, env: yard.env });
    assert.equal(r.code, 2);
    assert.match(r.stderr, /in a sandbox only/);
  }
  assert.deepEqual(fs.readdirSync(yard.ws), []);
});
