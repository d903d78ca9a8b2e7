// The daemon: one of a user, who is served, and what the end of a side does to the other.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';

import {
  call, has, hasEnded, hasFull, makeYard, mustRun, openFront, processesOf, program, startMcp, STUCK_MS, testPath, waitFor,
} from './lib/client.mjs';
import { ask, clientsOf, daemonEnv, frame, hostsOf, knocker, say, socketOf, startDaemon } from './lib/daemon.mjs';

const limit = { timeout: STUCK_MS };
const isRoot = process.getuid() === 0;
const BASH = { 'shell.path': '/bin/bash' };

const open = (yard, options = {}) => startMcp({ cwd: yard.ws, env: yard.env, ...options, settings: { ...BASH, ...options.settings } });
const run = async (server, command, more = {}) => (await call(server.client, 'shell_command', { command, ...more })).structuredContent;
const LONG = 'setsid sleep 1000 & sleep 1000';

/** A call that is not answered any more. */
const begin = (server) => call(server.client, 'shell_command', { command: LONG, timeout_ms: 600_000 }).catch(() => {});

/** Waits until the long command of that mark runs (`but` are its server's processes). */
const runs = (mark, but) => waitFor(() => processesOf(mark, but).length >= 3, 'the command runs');
const isGone = (mark, but) => waitFor(() => processesOf(mark, but).length === 0, 'nothing of the command is left');

function proto(yard, { args = [], stdio = ['pipe', 'pipe', 'pipe'], env = yard.env, wrap = [] } = {}) {
  const argv = [...wrap, program, 'proto', '-c', 'shell.path=/bin/bash', ...args];
  const child = spawn(argv[0], argv.slice(1), { cwd: yard.ws, env, stdio });
  const got = { stdout: '', stderr: '' };
  child.stdout?.on('data', (chunk) => { got.stdout += chunk; });
  child.stderr?.on('data', (chunk) => { got.stderr += chunk; });
  child.stdin?.on('error', () => {});
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal, ...got }));
  return { child, got, ended, pid: child.pid };
}

const isThere = (pid) => fs.existsSync(`/proc/${pid}`);
const callOf = (command) => `${JSON.stringify({
  type: 'function_call', name: 'shell_command', call_id: 'c', arguments: JSON.stringify({ command, timeout_ms: 600_000 }),
})}\n`;

for (const verb of ['proto', 'mcp']) {
  const message = verb === 'proto' ? callOf('true') : `${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })}\n`;
  for (const [what, redirected, pattern] of [
    ['a full device for its output', '> /dev/full', /^shellyard: standard output: writing \d+ bytes: No space left on device\n$/],
    ['its output closed', '>&-', /^shellyard: standard output: writing \d+ bytes: Bad file descriptor\n$/],
    ['its input closed', '<&-', /^shellyard: reading standard input: Bad file descriptor\n$/],
    ['both closed', '<&- >&-', /^shellyard: reading standard input: Bad file descriptor\n$/],
    ['a directory as its input', '< .', /^shellyard: reading standard input: Is a directory\n$/],
  ]) {
    test(`${verb} through the daemon ends with 125 and a sentence with ${what}`, limit, async (t) => {
      const yard = makeYard();
      await startDaemon(t, yard);
      const r = spawnSync('sh', ['-c', `exec "$0" ${verb} -c shell.path=/bin/bash ${redirected}`, program], {
        cwd: yard.ws, env: yard.env, encoding: 'utf8', input: message, timeout: STUCK_MS,
      });
      assert.match(r.stderr, pattern);
      assert.equal(r.status, 125);
      assert.deepEqual(clientsOf(yard), []);
    });
  }
}

test('a second daemon says who is up, and of ten at once one serves', limit, async (t) => {
  const yard = makeYard();
  const first = await startDaemon(t, yard);
  for (const words of [['serve'], ['serve', '--background']]) {
    const second = ask(yard, words);
    assert.equal(second.status, 125);
    assert.match(second.stderr, new RegExp(`a daemon is up already, process ${first.pid}\\b`));
  }
  assert.equal(ask(yard, ['serve', '--stop']).status, 0);
  assert.equal((await first.ended).code, 0);
  assert.equal(fs.existsSync(socketOf(yard)), false);

  const ten = Array.from({ length: 10 }, () => spawn(program, ['serve'], { env: daemonEnv(yard), stdio: ['ignore', 'ignore', 'pipe'] }));
  t.after(() => ten.forEach((child) => child.kill('SIGKILL')));
  const codes = [];
  ten.forEach((child) => child.on('exit', (code) => codes.push(code)));
  await waitFor(() => codes.length === 9, 'nine have ended');
  assert.deepEqual(codes, Array(9).fill(125));
  const [winner] = ten.filter((child) => child.exitCode === null);
  const status = await waitFor(() => {
    const r = ask(yard, ['serve', '--status']);
    return r.status === 0 && r.stdout;
  }, 'one serves');
  assert.match(status, new RegExp(`process ${winner.pid}, version `));
});

test('clients outlive a daemon that is killed by -9, and the next one finds and ends them', limit, async (t) => {
  const yard = makeYard();
  const daemon = await startDaemon(t, yard);
  const server = await open(yard);
  assert.equal((await run(server, 'echo before')).output, 'before\n');
  const [before] = clientsOf(yard);
  daemon.child.kill('SIGKILL');
  await daemon.ended;
  assert.equal((await run(server, 'echo without')).output, 'without\n');
  assert.ok(fs.existsSync(socketOf(yard)), 'a socket that nobody listens at');
  // Without a daemon all is as it ever was.
  const alone = await open(yard);
  assert.equal((await run(alone, 'echo alone')).output, 'alone\n');
  assert.equal(alone.stderr(), '');
  await alone.close();
  const next = await startDaemon(t, yard);
  const [found] = clientsOf(yard);
  assert.deepEqual({ ...found, age_ms: 0 }, { ...before, age_ms: 0 });
  assert.ok(found.age_ms >= before.age_ms);
  const again = await open(yard);
  assert.equal((await run(again, 'echo again')).output, 'again\n');
  assert.deepEqual(clientsOf(yard).map((c) => [c.id, c.pid]), [[found.id, server.pid], ['c2', again.pid]]);
  begin(server);
  await runs(yard.mark, [server.pid, again.pid]);
  assert.equal(ask(yard, ['kill', found.id]).status, 0);
  await waitFor(() => clientsOf(yard).length === 1, 'the old client has ended');
  await isGone(yard.mark, [again.pid]);
  assert.equal(ask(yard, ['serve', '--stop']).status, 0);
  assert.equal((await next.ended).code, 0);
  await Promise.all([server.close(), again.close()]);
});

test('without a daemon a host ends with its last client', limit, async (t) => {
  const yard = makeYard();
  const daemon = await startDaemon(t, yard);
  const server = await open(yard);
  const { host } = clientsOf(yard)[0];
  daemon.child.kill('SIGKILL');
  await daemon.ended;
  await server.close();
  await hasEnded(host);
  assert.deepEqual(fs.readdirSync(path.dirname(socketOf(yard))).filter((name) => name.startsWith('host.')), []);
});

test('a daemon that is asked to end ends the calls first, then its clients end in order', limit, async (t) => {
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) {
    const yard = makeYard();
    const daemon = await startDaemon(t, yard);
    const client = proto(yard);
    client.child.stdin.write(callOf(LONG));
    await runs(yard.mark, [client.pid, daemon.pid]);
    daemon.child.kill(signal);
    const ended = await client.ended;
    assert.equal(ended.code, 0, ended.stderr);
    assert.match(ended.stderr, /the daemon was stopped/);
    assert.equal((await daemon.ended).code, 0);
    await isGone(yard.mark, []);
    assert.equal(fs.existsSync(socketOf(yard)), false);
  }
});

test('twenty clients at a time have each their own directory, environment and configuration', limit, async (t) => {
  const yard = makeYard();
  await startDaemon(t, yard, { env: { WHO: 'the daemon' } });
  const servers = await Promise.all(Array.from({ length: 20 }, (_, i) => {
    const cwd = path.join(yard.ws, `d${i}`);
    fs.mkdirSync(cwd);
    return startMcp({
      cwd: yard.ws, args: ['-C', `d${i}`], env: { ...yard.env, WHO: `client ${i}`, SHELLYARD_OUTPUT_MAX_BYTES: String(1000 + i) },
      settings: { ...BASH, 'tools.shell_type': i % 2 ? 'all' : 'shell_command' },
    });
  }));
  t.after(() => Promise.all(servers.map((s) => s.close())));
  const answers = await Promise.all(servers.map((s) => run(s, 'echo "$WHO in $PWD"; touch mine; seq 1 9999')));
  answers.forEach((a, i) => {
    assert.ok(a.output.startsWith(`client ${i} in ${yard.ws}/d${i}\n`), a.output.slice(0, 200));
    assert.ok(Buffer.byteLength(a.output) <= 1000 + i);
    assert.ok(fs.existsSync(path.join(yard.ws, `d${i}/mine`)));
  });
  const hasShell = await Promise.all(servers.map(async (s) => (await s.client.listTools()).tools.some((tool) => tool.name === 'shell')));
  assert.deepEqual(hasShell, servers.map((_, i) => i % 2 === 1));
  const clients = clientsOf(yard);
  assert.equal(clients.length, 20);
  assert.deepEqual(new Set(clients.map((c) => c.pid)), new Set(servers.map((s) => s.pid)));
  assert.deepEqual(new Set(clients.map((c) => c.cwd)), new Set(servers.map((_, i) => `${yard.ws}/d${i}`)));
});

test('a client killed in the middle of a call takes its tree along, and the others go on', limit, async (t) => {
  const yard = makeYard();
  const other = makeYard();
  const daemon = await startDaemon(t, yard);
  const doomed = await open(yard);
  const lives = await open(yard, { env: { ...yard.env, TEST_MARK: other.mark } });
  t.after(() => lives.close());
  begin(doomed);
  begin(lives);
  await runs(yard.mark, [doomed.pid, daemon.pid]);
  await runs(other.mark, [lives.pid, daemon.pid]);
  process.kill(doomed.pid, 'SIGKILL');
  await isGone(yard.mark, [daemon.pid]);
  assert.ok(processesOf(other.mark, [lives.pid, daemon.pid]).length >= 3);
  await waitFor(() => clientsOf(yard).length === 1, 'the dead client is forgotten');
});

test('a signal to the client ends its calls and then itself, with 0', limit, async (t) => {
  const yard = makeYard();
  const daemon = await startDaemon(t, yard);
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) {
    const client = proto(yard);
    client.child.stdin.write(callOf(LONG));
    await runs(yard.mark, [client.pid, daemon.pid]);
    client.child.kill(signal);
    const ended = await client.ended;
    assert.equal(ended.code, 0, `${signal}: ${ended.signal} ${ended.stderr}`);
    await isGone(yard.mark, [daemon.pid]);
  }
});

test('who has no state directory is told why', limit, async () => {
  const yard = makeYard();
  const { XDG_STATE_HOME, HOME, ...env } = yard.env;
  for (const [home, says] of [
    ['/nonexistent', /since HOME is '\/nonexistent': No such file or directory\n$/],
    ['/dev/null', /since HOME is '\/dev\/null': Not a directory\n$/],
    ['here', /HOME is 'here', which is not absolute/],
    [undefined, /there is no state directory: set HOME or XDG_STATE_HOME\n$/],
  ]) {
    for (const words of [['serve'], ['list'], ['approvals', 'list']]) {
      const r = ask(yard, words, { env: home === undefined ? env : { ...env, HOME: home } });
      assert.match(r.stderr, says, words.join(' '));
      assert.notEqual(r.status, 0);
    }
  }
});

test('who does not answer is not told as not being there', limit, async (t) => {
  const yard = makeYard();
  await startDaemon(t, yard);
  proto(yard);
  const [one] = await waitFor(() => clientsOf(yard).length === 1 && clientsOf(yard), 'the client is there');
  const hosts = hostsOf(yard);
  hosts.forEach((pid) => process.kill(pid, 'SIGSTOP'));
  assert.match(ask(yard, ['list']).stdout, /^\d+ hosts? ha(s|ve) not answered within 3 s: what is there is not listed\n$/);
  const r = ask(yard, ['kill', one.id]);
  assert.equal(r.status, 125, r.stderr);
  assert.match(r.stderr, new RegExp(`'${one.id}' is not among what answers, and \\d+ hosts? ha(s|ve) not answered`));
  hosts.forEach((pid) => process.kill(pid, 'SIGCONT'));
  await waitFor(() => ask(yard, ['list']).stdout.startsWith(one.id), 'it answers again');
  assert.doesNotMatch(ask(yard, ['list']).stdout, /answered/);
});

test('list, kill, status and stop tell what they did, and what is missing', limit, async (t) => {
  const yard = makeYard();
  for (const words of [['list'], ['kill', 'c1'], ['serve', '--status'], ['serve', '--stop']]) {
    const r = ask(yard, words);
    assert.equal(r.status, 127, words.join(' '));
    assert.match(r.stderr, /no daemon is up: 'shellyard serve' starts one/);
  }
  const started = ask(yard, ['serve', '-b'], { env: daemonEnv(yard) });
  assert.equal(started.status, 0, started.stderr);
  const pid = Number(started.stderr.match(/in the background, process (\d+)/)[1]);
  t.after(() => ask(yard, ['serve', '--stop']));
  assert.equal(ask(yard, ['list']).stdout, 'no clients\n');
  const client = proto(yard);
  const [one] = await waitFor(() => clientsOf(yard).length === 1 && clientsOf(yard), 'the client is there');
  assert.equal(one.kind, 'proto');
  assert.match(ask(yard, ['list']).stdout, new RegExp(`^${one.id} +proto +process ${client.pid} +\\d+ s +${yard.ws}\\n$`));
  for (const id of ['c999', 'x1', 'c', 'c1x', '']) {
    const r = ask(yard, ['kill', id]);
    assert.equal(r.status, 127, id);
    assert.match(r.stderr, /there is no '/);
  }
  client.child.stdin.write(callOf(LONG));
  await runs(yard.mark, [client.pid, pid]);
  assert.equal(ask(yard, ['kill', one.id]).status, 0);
  assert.equal((await client.ended).code, 0);
  await isGone(yard.mark, [pid]);
  assert.match(ask(yard, ['serve', '--stop']).stdout, new RegExp(`^stopping: process ${pid}, version \\d`));
  await hasEnded(pid);
});

test('with --exit-empty the daemon ends with its last client', limit, async (t) => {
  const yard = makeYard();
  const daemon = await startDaemon(t, yard, { args: ['--exit-empty'] });
  const one = await open(yard);
  const two = await open(yard);
  await one.close();
  await waitFor(() => clientsOf(yard).length === 1, 'one is left');
  assert.equal((await run(two, 'echo here')).output, 'here\n');
  await two.close();
  assert.equal((await daemon.ended).code, 0);
});

test('with daemon.start the first clients start one daemon, which ends with the last', limit, async (t) => {
  const yard = makeYard();
  fs.mkdirSync(path.join(yard.ws, 'sub'));
  const settings = { 'daemon.start': 'auto' };
  const servers = await Promise.all(Array.from({ length: 5 }, () => startMcp({
    cwd: yard.ws, env: yard.env, args: ['-C', 'sub'], settings: { ...BASH, ...settings },
  })));
  const clients = clientsOf(yard);
  assert.equal(clients.length, 5);
  assert.deepEqual(new Set(clients.map((c) => c.cwd)), new Set([path.join(yard.ws, 'sub')]));
  const answers = await Promise.all(servers.map((s) => run(s, 'pwd')));
  assert.deepEqual(answers.map((a) => a.output), Array(5).fill(`${yard.ws}/sub\n`));
  assert.deepEqual(servers.map((s) => s.stderr()), Array(5).fill(''));
  await Promise.all(servers.map((s) => s.close()));
  await waitFor(() => !fs.existsSync(socketOf(yard)), 'the daemon has ended');
  for (const more of [{ args: ['--no-daemon'] }, { settings: { ...settings, 'daemon.use': 'never' } }]) {
    const alone = await open(yard, { settings, ...more });
    assert.equal((await run(alone, 'echo alone')).output, 'alone\n');
    assert.equal(fs.existsSync(socketOf(yard)), false);
    await alone.close();
  }
});

test('files and terminals as input and output work as ever', limit, async (t) => {
  const yard = makeYard();
  await startDaemon(t, yard);
  const input = path.join(yard.dir, 'calls.jsonl');
  const output = path.join(yard.dir, 'answers.jsonl');
  fs.writeFileSync(input, callOf('echo "from a file"; seq 1 2000') + callOf('echo second').replace('"c"', '"d"'));
  const done = spawnSync('sh', ['-c', `"$0" proto -c shell.path=/bin/bash < ${input} > ${output}`, program], { cwd: yard.ws, env: yard.env, encoding: 'utf8' });
  assert.equal(done.status, 0, done.stderr);
  assert.equal(done.stderr, '');
  const lines = fs.readFileSync(output, 'utf8').trim().split('\n').map((line) => JSON.parse(line));
  const answer = (id) => lines.find((l) => l.type === 'function_call_output' && l.call_id === id).output;
  assert.match(answer('c'), /^from a file\n1\n2\n/);
  assert.equal(answer('d'), 'second\n');
  const silent = spawnSync('sh', ['-c', '"$0" proto < /dev/null', program], { cwd: yard.ws, env: yard.env, encoding: 'utf8' });
  assert.equal(silent.status, 0, silent.stderr);
  // A reader that goes ends the client, and what runs for it.
  const gone = spawnSync('bash', ['-c', `"$0" proto -c shell.path=/bin/bash < ${input} | head -c 1 > /dev/null; echo "\${PIPESTATUS[0]}"`, program],
    { cwd: yard.ws, env: yard.env, encoding: 'utf8', timeout: STUCK_MS });
  assert.equal(gone.error, undefined);
});

test('whoever would be served differently does the work by itself, and says why', limit, async (t) => {
  const yard = makeYard();
  await startDaemon(t, yard);
  const note = (why) => new RegExp(`^shellyard: not served by the daemon: ${why}`, 'm');
  const cases = [
    [{ wrap: ['sh', '-c', 'umask 077; exec "$0" "$@"'] }, note('its umask differs')],
    [{ wrap: ['setpriv', '--no-new-privs'] }, note('its confinement \\(no_new_privs\\) differ')],
    [{ wrap: ['unshare', isRoot ? '-m' : '-rm'] }, note(isRoot ? 'its namespaces differ' : 'its ')],
    [{ settings: { 'daemon.use': 'never' } }, note('daemon\\.use is never')],
    [{ env: { ...yard.env, SHELLYARD_DAEMON_USE: 'never' } }, note('daemon\\.use is never')],
    [{ args: ['--no-daemon'] }, /^$/],
    [{ env: { ...yard.env, ...Object.fromEntries(Array.from({ length: 12 }, (_, i) => [`BIG${i}`, 'x'.repeat(100_000)])) } },
      note('environment and arguments are larger')],
  ];
  for (const [options, why] of cases) {
    const server = await open(yard, options);
    assert.equal((await run(server, 'echo works')).output, 'works\n');
    assert.match(server.stderr(), why);
    assert.deepEqual(clientsOf(yard), []);
    await server.close();
  }
  // Another build: the same program, copied.
  const copy = path.join(yard.dir, 'copy');
  fs.cpSync(path.dirname(program), copy, { recursive: true, filter: (src) => !/\/(src|tests|subprojects|grammars|meson-|bench|docs|\.)|\.p$|\.a$/.test(src.slice(path.dirname(program).length)) });
  const other = spawnSync(path.join(copy, path.basename(program)), ['proto'], { cwd: yard.ws, env: yard.env, input: callOf('echo copied'), encoding: 'utf8' });
  assert.match(other.stderr, note('it is of another build \\(process \\d+; \'shellyard serve --stop\' ends it\\)'));
  assert.equal(other.status, 0, other.stderr);
  const asked = spawnSync(path.join(copy, path.basename(program)), ['serve', '--status'], { env: yard.env, encoding: 'utf8' });
  assert.equal(asked.status, 0, `another build can still ask: ${asked.stderr}`);
});

test('forty clients at work fit into a daemon whose commands may open 256 files', limit, async (t) => {
  const yard = makeYard();
  await startDaemon(t, yard, { wrap: ['sh', '-c', 'ulimit -Sn 256; exec "$0" "$@"'] });
  const servers = await Promise.all(Array.from({ length: 40 }, () => open(yard)));
  t.after(() => Promise.all(servers.map((s) => s.close())));
  const answers = await Promise.all(servers.map((s) => run(s, 'ulimit -Sn', { timeout_ms: 100_000 })));
  assert.deepEqual(answers.map((a) => a.output), Array(40).fill('256\n'));
  assert.equal((await run(servers[0], 'ulimit -Sn 64; ulimit -Sn')).output, '64\n');
});

test('wrong flags and configuration are errors of the client, with their status', limit, async (t) => {
  const yard = makeYard();
  await startDaemon(t, yard);
  const alone = makeYard();
  for (const args of [['-c', 'no.such=1'], ['-s', 'wild'], ['-C', '/no/such/place'], ['--frobnicate'], ['extra']]) {
    const through = spawnSync(program, ['proto', ...args], { cwd: yard.ws, env: yard.env, input: '', encoding: 'utf8' });
    const by = spawnSync(program, ['proto', ...args], { cwd: alone.ws, env: alone.env, input: '', encoding: 'utf8' });
    assert.equal(through.status, by.status, args.join(' '));
    assert.notEqual(through.status, 0);
    assert.equal(through.stderr, by.stderr, 'the same words');
  }
});

test('a state directory with a long path serves as well', limit, async (t) => {
  const yard = makeYard();
  yard.env.XDG_STATE_HOME = path.join(yard.dir, 'long'.repeat(40), 'long'.repeat(40));
  assert.ok(socketOf(yard).length > 300);
  await startDaemon(t, yard);
  const server = await open(yard);
  assert.equal((await run(server, 'echo far')).output, 'far\n');
  assert.equal(clientsOf(yard).length, 1);
  await server.close();
});

test('a hello that is none is refused with a sentence, and nobody else notices', limit, async (t) => {
  if (!mustRun(t, has('python3'), 'no python3')) {
    return;
  }
  const yard = makeYard();
  const daemon = await startDaemon(t, yard);
  const server = await open(yard);
  t.after(() => server.close());
  const file = socketOf(yard);
  const malformed = /^error 2 the hello is malformed: /;
  const cases = [
    ['GET / HTTP/1.1\r\n\r\n', malformed],
    [Buffer.alloc(1 << 20, 0xff), malformed],
    [Buffer.alloc(1 << 20, 'shellyard 1 1048544\n'), malformed],
    ['shellyard 1 99999999999\n', malformed],
    ['shellyard 1 0\n', malformed],
    ['shellyard 1 -1\n', malformed],
    ['shellyard 2 5\n', /^own 0 the client speaks another version than 1/],
    [frame(['mcp']), malformed],
    [frame(['mcp', 'b', 'not/absolute', '0']), malformed],
    [frame(['mcp', 'b', '/', '7', 'x']), malformed],
    [Buffer.concat([frame(['mcp', 'b', '/', '0']), Buffer.from('more')]), malformed],
    [frame(['mcp', 'another build', '/', '0']), /^own 0 it is of another build/],
    [frame(['smtp', 'b', '/', '0']), /^error 2 the hello names a protocol that the daemon lacks/],
    [frame(['ctl', 'b', '/', '1', 'format']), /^error 2 the daemon takes status, list, kill ID and stop/],
    [frame(['ctl', 'b', '/', '1', 'status']), /^ok \d+ \n\{"pid":/],
    [frame(['ctl', 'b', '/', '0', ...Array(20_000).fill('A=b')]), malformed],
  ];
  for (const [bytes, answer] of cases) {
    assert.match(await say(file, bytes), answer, String(bytes).slice(0, 60));
  }
  // One that says nothing has five seconds.
  const start = performance.now();
  assert.match(await say(file, 'shell'), /^error \d+ its hello did not come within 5000 ms/);
  assert.ok(performance.now() - start >= 4_900);
  assert.equal((await run(server, 'echo still here')).output, 'still here\n');
  assert.equal(daemon.child.exitCode, null);
});

/** What a client of the program's own says that it is. */
function buildOfProgram() {
  const real = fs.statSync(path.join(path.dirname(program), 'libexec/shellyard/shellyard'), { bigint: true, throwIfNoEntry: false })
    ?? fs.statSync(program, { bigint: true });
  const version = spawnSync(program, ['--version'], { encoding: 'utf8' }).stdout.trim().split(' ')[1];
  const hex = (n) => n.toString(16);
  return `${version} ${hex(real.dev)}:${hex(real.ino)}:${hex(real.mtimeNs / 1_000_000_000n)}.${hex(real.mtimeNs % 1_000_000_000n)}`;
}

test('a client whose directory somebody has swapped for a link meanwhile is refused', limit, async (t) => {
  if (!mustRun(t, has('python3'), 'no python3')) {
    return;
  }
  const yard = makeYard();
  await startDaemon(t, yard);
  const link = path.join(yard.dir, 'swapped');
  fs.symlinkSync(yard.outside, link);
  const answer = (...words) => spawnSync('python3', [knocker, socketOf(yard), 'hold', buildOfProgram(), ...words], { cwd: yard.ws, env: yard.env, encoding: 'utf8', input: '' }).stdout;
  assert.match(answer(link), /^error \d+ can't enter the working directory '.*\/swapped': Too many levels of symbolic links/);
  assert.match(answer(), /^ok /, 'the control');
});

test('clients that do not read, and one that makes its pipes block, hold up nobody', limit, async (t) => {
  if (!mustRun(t, has('python3'), 'no python3')) {
    return;
  }
  const yard = makeYard();
  const daemon = await startDaemon(t, yard);
  const flood = callOf('for i in 1 2 3 4 5 6 7 8; do head -c 400000 /dev/zero | tr "\\0" x; echo; done');
  const silent = proto(yard, { stdio: ['pipe', 'pipe', 'inherit'] });
  silent.child.stdout.pause();
  silent.child.stdout.removeAllListeners('data');
  silent.child.stdin.write(flood.repeat(4));
  const hold = spawn('python3', [knocker, socketOf(yard), 'hold', buildOfProgram()], { cwd: yard.ws, env: yard.env, stdio: ['pipe', 'pipe', 'inherit'] });
  let held = '';
  hold.stdout.on('data', (chunk) => { held += chunk; });
  t.after(() => [silent.child, hold].forEach((child) => child.kill('SIGKILL')));
  await waitFor(() => held.startsWith('ok '), `it is served: ${held}`);
  for (let i = 0; i < 4; i += 1) {
    hold.stdin.write(flood);
  }
  await waitFor(() => held.split('sent').length === 5, 'its calls are there');
  const server = await open(yard);
  for (let i = 0; i < 20; i += 1) {
    assert.equal((await run(server, `echo ${i}`)).output, `${i}\n`);
  }
  assert.equal(clientsOf(yard).length, 3);
  await server.close();
  assert.equal(daemon.child.exitCode, null);
});

test('no sandbox of any tier lets a command use the daemon', limit, async (t) => {
  if (!mustRun(t, has('python3'), 'no python3')) {
    return;
  }
  const yard = makeYard();
  const script = path.join(yard.ws, 'knock.py');
  fs.copyFileSync(knocker, script);
  const daemon = await startDaemon(t, yard);
  const knock = (...words) => `python3 ${script} ${socketOf(yard)} ${words.join(' ')}`;
  const outside = spawnSync('sh', ['-c', knock('ctl', 'status')], { env: yard.env, encoding: 'utf8' });
  assert.match(outside.stdout, new RegExp(`^ok ${daemon.pid} \n\\{"pid":${daemon.pid},`), 'from outside it answers');
  const tiers = ['no-namespace', ...(hasFull(t, yard) ? ['full'] : [])];
  for (const name of ['mcp', 'exec']) {
    for (const tier of tiers) {
      for (const mode of ['read-only', 'workspace-write']) {
        for (const network of [false, true]) {
          const front = await openFront(t, name, yard, { settings: { ...BASH, 'sandbox.tier': tier, 'sandbox.mode': mode, 'sandbox.network_access': network } });
          const where = `${name}, ${tier}, ${mode}, network ${network ? 'on' : 'off'}`;
          for (const [kind, ...words] of [['ctl', 'stop'], ['left', 'stop'], ['attach', '1234', 'rw', '24', '80']]) {
            const r = await front.run(knock(kind, ...words), { timeoutMs: 60_000 });
            assert.equal(r.sandbox?.tier, tier, `${where}: ${r.text}`);
            assert.match(r.output, /^(failed: |own 0 |error )/, `${where}, ${kind}: ${r.output}`);
            assert.doesNotMatch(r.output, /no session/, `${where}: none is looked for`);
          }
          const [host] = hostsOf(yard).filter(isThere);
          const adopted = await front.run(`python3 ${script} ${path.dirname(socketOf(yard))}/host.${host} host`, { timeoutMs: 60_000 });
          assert.match(adopted.output, /^(failed: |closed)/, `${where}, a host: ${adopted.output}`);
          const names = await front.run(`ls ${path.dirname(socketOf(yard))}; cat ${path.dirname(socketOf(yard))}/daemon.lock`, { timeoutMs: 60_000 });
          // Without a file tree of its own a directory shows its names, and nothing else.
          assert.equal(names.output.includes('daemon.sock\n'), tier === 'no-namespace', `${where}: ${names.output}`);
          assert.match(names.output, /daemon\.lock'?: (Permission denied|No such file)/, where);
          await front.close();
        }
      }
    }
  }
  assert.equal(daemon.child.exitCode, null, 'nobody has ended it');
  const [host] = hostsOf(yard).filter(isThere);
  const taken = spawnSync('python3', [script, `${path.dirname(socketOf(yard))}/host.${host}`, 'host'], { env: yard.env, encoding: 'utf8' });
  assert.equal(taken.stdout, 'it speaks\n', 'from outside a host answers');
  assert.match(ask(yard, ['serve', '--status']).stdout, /^serving/);
  // The same words end it from outside.
  spawnSync('sh', ['-c', knock('ctl', 'stop')], { env: yard.env });
  assert.equal((await daemon.ended).code, 0);
});

if (isRoot) {
  test('another user is refused, root by an ordinary user\'s daemon and the other way round', limit, async (t) => {
    if (!mustRun(t, has('python3'), 'no python3')) {
      return;
    }
    const yard = makeYard();
    const user = ['setpriv', '--reuid=12345', '--regid=12345', '--clear-groups'];
    for (const dir of [yard.dir, yard.ws, yard.home]) {
      fs.chmodSync(dir, 0o755);
      fs.chownSync(dir, 12345, 12345);
    }
    await startDaemon(t, yard, { wrap: user });
    // By hand: the directory is closed to all but root, who is refused.
    assert.match(await say(socketOf(yard), frame(['ctl', 'b', '/', '1', 'stop'])), /^error 125 this daemon serves user 12345 alone, not user 0$/m);
    const root = ask(yard, ['list']);
    assert.notEqual(root.status, 0);
    assert.match(root.stderr, /is another user's/);
    assert.match(ask(yard, ['list'], { wrap: user }).stdout, /^no clients/);
    // An ordinary user at root's.
    const roots = makeYard();
    fs.chmodSync(roots.dir, 0o755);
    await startDaemon(t, roots);
    const stranger = ask(roots, ['list'], { wrap: user });
    assert.notEqual(stranger.status, 0);
    assert.match(stranger.stderr, /no daemon is up|another user's|Permission denied/);
  });
}

test('what the daemon keeps in the state directory is closed to others', limit, async (t) => {
  const yard = makeYard();
  assert.equal(ask(yard, ['serve', '-b'], { env: { ...daemonEnv(yard), PATH: testPath } }).status, 0);
  t.after(() => ask(yard, ['serve', '--stop']));
  const dir = path.dirname(socketOf(yard));
  assert.equal(fs.statSync(dir).mode & 0o777, 0o700);
  for (const name of ['daemon.sock', 'daemon.lock', 'daemon.log']) {
    assert.equal(fs.statSync(path.join(dir, name)).mode & 0o777, 0o600, name);
  }
});
