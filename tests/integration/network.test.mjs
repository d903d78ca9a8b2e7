// network.allow end to end: what the list names is reached through the proxy, under its real
// clients; everything else, and every way past the proxy, is not. With the network off nothing is, but
// in the full tier a command has a loopback of its own. Each refusal has a control that shows the
// sandbox is what refuses.
import assert from 'node:assert/strict';
import dgram from 'node:dgram';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { once } from 'node:events';
import { test } from 'node:test';
import {
  eachTier, execCli, hasFull, has, listen, makeYard, mustRun, openFront, processesOf, program, waitFor,
} from './lib/client.mjs';

/** Answers "hello from URL"; `/hang` never ends. Counts requests and open connections. */
async function webServer(t) {
  const seen = { requests: [], open: 0 };
  const server = http.createServer((req, res) => {
    seen.requests.push(req.url);
    if (req.url === '/hang') {
      res.write('begun\n');
    } else {
      res.end(`hello from ${req.url}\n`);
    }
  });
  server.on('connection', (socket) => {
    seen.open += 1;
    socket.on('close', () => {
      seen.open -= 1;
    });
    socket.on('error', () => {});
  });
  seen.port = await listen(t, server);
  return seen;
}

const allow = (...entries) => ({ 'network.allow': `[${entries.map((e) => JSON.stringify(e)).join(', ')}]` });

eachTier('P17 a named host is reached through the proxy, others are not, and the answer tells', async (t, { tier, open }) => {
  mustRun(t, has('curl'), 'no curl');
  const web = await webServer(t);
  const other = await webServer(t);
  const front = await open({ settings: allow(`127.0.0.1:${web.port}`) });
  const r = await front.run([
    `curl -sS http://127.0.0.1:${web.port}/plain`,
    `curl -sS -p http://127.0.0.1:${web.port}/tunnel`,
    `curl -sS -x "$ALL_PROXY" http://127.0.0.1:${web.port}/socks`,
    `curl -s -o /dev/null -w '%{http_code}\\n' http://127.0.0.1:${other.port}/no`,
    `curl -s -o /dev/null -w '%{http_connect}\\n' -p http://127.0.0.1:${other.port}/no`,
    'curl -s -o /dev/null -w "%{http_code}\\n" http://name.invalid/',
  ].join('; '), { timeoutMs: 60_000 });

  assert.equal(r.output, 'hello from /plain\nhello from /tunnel\nhello from /socks\n403\n403\n403\n', r.text);
  assert.deepEqual(web.requests, ['/plain', '/tunnel', '/socks']);
  assert.deepEqual(other.requests, []);
  assert.equal(r.sandbox.tier, tier);
  assert.equal(r.sandbox.network, 'allow-list');
  assert.equal(r.sandbox.features.network, 'enforced');
  assert.deepEqual(r.raw.network_hosts, [`127.0.0.1:${web.port}`]);
  const denials = r.raw.denials.filter((d) => d.layer === 'proxy');
  assert.deepEqual(denials.map((d) => [d.operation, d.object, d.confidence, d.count ?? 1, d.fix]), [
    ['connect', `127.0.0.1:${other.port}`, 'exact', 2, `network.allow: [127.0.0.1:${other.port}]`],
    ['connect', 'name.invalid:80', 'exact', 1, 'network.allow: [name.invalid]'],
  ]);
});

eachTier('the proxy variables are there for an allow list only', async (t, { isFull, open }) => {
  const names = '${HTTP_PROXY:+1}${https_proxy:+1}${ALL_PROXY:+1}${NODE_USE_ENV_PROXY:+1}${NO_PROXY-unset}';
  const list = await open({ settings: allow('name.invalid') });
  // Servers of the command itself are reached without the proxy, where it can have any.
  assert.equal((await list.run(`echo ${names}`)).output, isFull ? '1111localhost,127.0.0.1,::1\n' : '1111\n');
  const named = await open({ settings: allow('name.invalid', '127.0.0.1:1') });
  assert.equal((await named.run(`echo ${names}`)).output, '1111\n');
  const off = await open();
  assert.equal((await off.run(`echo ${names}`)).output, 'unset\n');
  const on = await open({ settings: { ...allow('name.invalid'), 'sandbox.network_access': true } });
  const r = await on.run(`echo ${names}`);
  assert.equal(r.output, 'unset\n');
  assert.equal(r.sandbox.network, 'on');
});

/** Tries every way past the proxy; one line each. */
const REACH = `import os, socket, struct, sys
tcp, tcp6, udp, web = (int(a) for a in sys.argv[1:5])
FASTOPEN, FASTOPEN_CONNECT = 0x20000000, 30

def way(name, fn):
    try:
        fn()
        print(name, "REACHED")
    except OSError as error:
        print(name, "failed", error.errno)

def stream(family=socket.AF_INET):
    return socket.socket(family, socket.SOCK_STREAM)

def datagram(to):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.sendto(b"x", to)

def fast_sendto():
    stream().sendto(b"GET / HTTP/1.0\\r\\n\\r\\n", FASTOPEN, ("127.0.0.1", tcp))

def fast_sendmsg():
    stream().sendmsg([b"GET / HTTP/1.0\\r\\n\\r\\n"], [], FASTOPEN, ("127.0.0.1", tcp))

def fast_connect():
    s = stream()
    s.setsockopt(socket.IPPROTO_TCP, FASTOPEN_CONNECT, 1)
    s.connect(("127.0.0.1", tcp))
    s.sendall(b"x")

def plain_sendto():
    stream().sendto(b"x", ("127.0.0.1", tcp))

def nonblocking():
    s = stream()
    s.setblocking(False)
    error = s.connect_ex(("127.0.0.1", tcp))
    if error not in (0, 115):
        raise OSError(error, "")

way("tcp4", lambda: socket.create_connection(("127.0.0.1", tcp), 5))
way("tcp6", lambda: socket.create_connection(("::1", tcp6), 5))
way("mapped", lambda: socket.create_connection(("::ffff:127.0.0.1", tcp), 5))
way("nonblocking", nonblocking)
way("udp", lambda: datagram(("127.0.0.1", udp)))
way("icmp", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1))
way("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
way("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
way("mptcp", lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262).connect(("127.0.0.1", tcp)))
way("sctp", lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132))
way("smc", lambda: socket.socket(43, socket.SOCK_STREAM, 0))
way("fast_sendto", fast_sendto)
way("fast_sendmsg", fast_sendmsg)
way("fast_connect", fast_connect)
way("plain_sendto", plain_sendto)
# The host of the list itself, but past the proxy.
way("direct", lambda: socket.create_connection(("127.0.0.1", web), 5))
`;

eachTier('P14 P15 nothing is reached past the proxy', async (t, { isFull, yard, open }) => {
  mustRun(t, has('python3'), 'no python3');
  let reached = 0;
  const count = (socket) => {
    reached += 1;
    socket.on('error', () => {});
    socket.destroy();
  };
  const tcp = await listen(t, net.createServer(count));
  const tcp6 = await listen(t, net.createServer(count), '::1');
  const web = await listen(t, net.createServer(count));
  const udp = dgram.createSocket('udp4');
  udp.on('message', () => {
    reached += 1;
  });
  udp.bind(0, '127.0.0.1');
  await once(udp, 'listening');
  t.after(() => udp.close());
  fs.writeFileSync(path.join(yard.ws, 'reach.py'), REACH);
  const script = `python3 reach.py ${tcp} ${tcp6} ${udp.address().port} ${web}`;

  const list = await open({ settings: allow(`127.0.0.1:${web}`) });
  const r = await list.run(script, { timeoutMs: 60_000 });
  assert.equal(r.exitCode, 0, r.text);
  // On a loopback of its own it has begun to connect to nobody, and sent to nobody.
  const nowhere = isFull ? ['nonblocking', 'udp'] : [];
  assert.deepEqual([...r.output.matchAll(/^(.*) REACHED$/gm)].map((m) => m[1]), nowhere);
  assert.equal(r.output.match(/ failed /g)?.length, 16 - nowhere.length, r.output);
  assert.equal(reached, 0, r.output);
  const told = r.raw.denials.filter((d) => d.layer === (isFull ? 'namespace' : 'broker') && d.confidence === 'exact').map((d) => d.object);
  for (const object of [`127.0.0.1:${tcp}`, `[::1]:${tcp6}`, `127.0.0.1:${web}`]) {
    assert.ok(told.includes(object), `${object} is not among ${told}`);
  }

  const full = await open({ settings: { ...allow(`127.0.0.1:${web}`), 'sandbox.report': 'full' } });
  const observed = await full.run(script, { timeoutMs: 60_000 });
  assert.equal(observed.output, r.output, 'an observer changes no answer');
  assert.equal(reached, 0, observed.output);
  const calls = observed.raw.denials.filter((d) => d.layer === 'seccomp').map((d) => [d.object, d.confidence, d.rule]);
  const rule = isFull
    ? 'a network of its own has TCP and UDP and nothing else'
    : 'network.allow: TCP through the proxy and nothing else';
  for (const object of isFull ? ['socket (AF_INET)'] : ['socket (AF_INET)', 'sendto', 'sendmsg']) {
    assert.deepEqual(calls.find((c) => c[0] === object), [object, 'exact', rule]);
  }

  const on = await open({ settings: { 'sandbox.network_access': true } });
  const control = await on.run(script, { timeoutMs: 60_000 });
  for (const way of ['tcp4', 'tcp6', 'mapped', 'nonblocking', 'udp', 'fast_sendto', 'fast_sendmsg', 'fast_connect', 'direct']) {
    assert.match(control.output, new RegExp(`^${way} REACHED$`, 'm'), 'with the network on it is reached');
  }
});

const SERVE = `import socket, sys
def serve(name, s, address):
    try:
        if address is not None:
            s.bind(address)
        s.listen()
        print(name, "LISTENS")
    except OSError as error:
        print(name, "failed", error.errno)
serve("bound", socket.socket(), ("127.0.0.1", 0))
serve("unbound", socket.socket(), None)
serve("v6", socket.socket(socket.AF_INET6), ("::1", 0))
u = socket.socket(socket.AF_UNIX)
serve("unix", u, "serve.sock")
c = socket.socket(socket.AF_UNIX)
c.connect("serve.sock")
a, _ = u.accept()
a.sendall(b"through")
print(c.recv(10).decode())
`;

eachTier('no server is made that others would reach, but on Unix sockets', async (t, { isFull, yard, open }) => {
  mustRun(t, has('python3'), 'no python3');
  fs.writeFileSync(path.join(yard.ws, 'serve.py'), SERVE);
  const list = await open({ settings: allow('name.invalid') });
  const r = await list.run('python3 serve.py; rm serve.sock', { timeoutMs: 60_000 });
  const anywhere = 'bound LISTENS\nunbound LISTENS\nv6 LISTENS\nunix LISTENS\nthrough\n';
  if (isFull) {
    assert.equal(r.output, anywhere); // on its own loopback: see below
  } else {
    assert.equal(r.output, 'bound failed 13\nunbound failed 13\nv6 failed 13\nunix LISTENS\nthrough\n');
    assert.ok(r.raw.denials.some((d) => d.operation === 'listen' && d.layer === 'broker' && d.confidence === 'exact'));
  }
  const on = await open({ settings: { 'sandbox.network_access': true } });
  const control = await on.run('python3 serve.py; rm serve.sock', { timeoutMs: 60_000 });
  assert.equal(control.output, anywhere);
});

/** What the proxy says to a connection from this process; '' if it hangs up. */
const askAsStranger = (port, request) => new Promise((resolve) => {
  let got = '';
  const socket = net.connect(port, '127.0.0.1', () => socket.write(request));
  socket.on('data', (chunk) => {
    got += chunk;
  });
  socket.on('error', () => {});
  socket.on('close', () => resolve(got));
});

test('without namespaces the engine alone holds all of it', async (t) => {
  mustRun(t, has('python3') && has('curl'), 'no python3 or no curl');
  const yard = makeYard();
  const web = await webServer(t);
  const other = await listen(t, net.createServer((socket) => socket.destroy()));
  fs.writeFileSync(path.join(yard.ws, 'reach.py'), REACH);
  const settings = { ...allow(`127.0.0.1:${web.port}`), 'sandbox.tier': 'no-namespace' };
  const front = await openFront(t, 'mcp', yard, { settings });
  const r = await front.run(`curl -sS http://127.0.0.1:${web.port}/tier; python3 reach.py ${other} ${other} ${other} ${web.port}`,
    { timeoutMs: 60_000 });

  assert.equal(r.sandbox.tier, 'no-namespace');
  assert.match(r.output, /^hello from \/tier$/m);
  assert.equal(r.output.match(/ failed /g)?.length, 16, r.output);
});

/** Ports of this machine on which a process listens by TCP. */
function portsOf(pid) {
  const mine = fs.readdirSync(`/proc/${pid}/fd`).map((fd) => {
    try {
      return fs.readlinkSync(`/proc/${pid}/fd/${fd}`);
    } catch {
      return '';
    }
  });
  return fs.readFileSync('/proc/net/tcp', 'utf8').split('\n').slice(1).map((line) => line.trim().split(/\s+/))
    .filter((f) => f[3] === '0A' && mine.includes(`socket:[${f[9]}]`))
    .map((f) => parseInt(f[1].split(':')[1], 16));
}

for (const tier of ['full', 'no-namespace']) {
  test(`no process but those of the command can use its proxy, ${tier}`, async (t) => {
    mustRun(t, has('curl'), 'no curl');
    const yard = makeYard();
    if (tier === 'full' && !hasFull(t, yard)) {
      return;
    }
    const web = await webServer(t);
    const front = await openFront(t, 'mcp', yard, { settings: { ...allow(`127.0.0.1:${web.port}`), 'sandbox.tier': tier } });
    const running = front.run('echo "${HTTP_PROXY##*:}" > port; until [ -e go ]; do sleep 0.05; done; '
      + `curl -sS http://127.0.0.1:${web.port}/mine`, { timeoutMs: 60_000 });
    const file = path.join(yard.ws, 'port');
    const port = await waitFor(() => fs.existsSync(file) && Number(fs.readFileSync(file, 'utf8')), 'the port');
    const request = `GET http://127.0.0.1:${web.port}/stranger HTTP/1.1\r\nHost: 127.0.0.1:${web.port}\r\n\r\n`;

    // In the full tier it is not on this machine's loopback at all.
    assert.deepEqual(portsOf(front.pid), tier === 'full' ? [] : [port]);
    for (let i = 0; i < 20 && tier !== 'full'; i++) {
      assert.equal(await askAsStranger(port, request), '');
    }
    fs.writeFileSync(path.join(yard.ws, 'go'), '');
    assert.equal((await running).output, 'hello from /mine\n');
    assert.deepEqual(web.requests, ['/mine']);
  });
}

for (const tier of ['full', 'no-namespace']) {
  test(`calls at the same time each hear of their own refusals, ${tier}`, async (t) => {
    mustRun(t, has('curl'), 'no curl');
    const yard = makeYard();
    if (tier === 'full' && !hasFull(t, yard)) {
      return;
    }
    const web = await webServer(t);
    const front = await openFront(t, 'mcp', yard, { settings: { ...allow(`127.0.0.1:${web.port}`), 'sandbox.tier': tier } });
    const answers = await Promise.all([1, 2, 3, 4].map((i) => front.run(
      `for k in 1 2 3; do curl -s -o /dev/null http://host${i}.invalid/; done; curl -sS http://127.0.0.1:${web.port}/${i}`,
      { timeoutMs: 60_000 })));

    answers.forEach((r, i) => {
      assert.equal(r.output, `hello from /${i + 1}\n`);
      assert.deepEqual(r.raw.denials.map((d) => [d.object, d.count, d.confidence]), [[`host${i + 1}.invalid:80`, 3, 'exact']]);
    });
  });
}

eachTier('the connections of a call end with it', async (t, { open }) => {
  mustRun(t, has('curl'), 'no curl');
  const web = await webServer(t);
  const front = await open({ settings: allow(`127.0.0.1:${web.port}`) });
  const r = await front.run(`curl -sSN http://127.0.0.1:${web.port}/hang`, { timeoutMs: 1500 });

  assert.equal(r.timedOut, true);
  assert.equal(r.output, 'begun\n');
  await waitFor(() => web.open === 0, 'the server sees the end of the connection');
});

test('an engine that is killed takes commands and connections with it', async (t) => {
  mustRun(t, has('curl'), 'no curl');
  const yard = makeYard();
  const web = await webServer(t);
  const front = await openFront(t, 'mcp', yard, { settings: allow(`127.0.0.1:${web.port}`) });

  front.run(`(setsid curl -sSN http://127.0.0.1:${web.port}/hang &) ; sleep 100`, { timeoutMs: 100_000 }).catch(() => {});
  await waitFor(() => web.open > 0, 'the connection is there');
  process.kill(front.pid, 'SIGKILL');
  await waitFor(() => web.open === 0, 'the connection is gone');
  await waitFor(() => processesOf(yard.mark).length === 0, 'the processes are gone');
});

test('inside another sandbox the list falls back to nothing, and it is said', async (t) => {
  mustRun(t, has('curl'), 'no curl');
  const yard = makeYard();
  const web = await webServer(t);
  const list = `network.allow=[127.0.0.1:${web.port}]`;
  const settings = ['-C', yard.ws, '-c', list];
  const inner = [program, 'exec', '--json', ...settings, '--', 'curl', '-sS', '-m', '5', `http://127.0.0.1:${web.port}/inner`];
  const outer = await execCli(['--json', ...settings, '--', ...inner], { cwd: yard.ws, env: yard.env });
  const r = JSON.parse(JSON.parse(outer.stdout).stdout);

  assert.notEqual(r.exit_code, 0);
  assert.match(r.note, /network\.allow has no effect here, the network is off/);
  assert.deepEqual(web.requests, []);
});

test('common tools find the proxy by themselves', async (t) => {
  const yard = makeYard();
  const web = await webServer(t);
  const front = await openFront(t, 'exec', yard, { settings: allow(`127.0.0.1:${web.port}`) });
  const base = `http://127.0.0.1:${web.port}`;
  const tools = {
    curl: `curl -sS ${base}/curl`,
    wget: `wget -qO- ${base}/wget`,
    git: `git ls-remote ${base}/git`,
    python3: `python3 -c 'import urllib.request as u; u.urlopen("${base}/python3").read()'`,
    npm: `npm view left --registry ${base}/npm/ --fetch-retries=0`,
  };
  for (const [tool, command] of Object.entries(tools)) {
    if (!has(tool)) {
      assert.ok(tool !== 'curl' && tool !== 'git', `${tool} must be there`);
      continue;
    }
    const r = await front.run(command, { timeoutMs: 60_000 });
    assert.ok(web.requests.some((url) => url.startsWith(`/${tool}`)), `${tool}: ${r.text}`);
    assert.deepEqual(r.raw.network_hosts, [`127.0.0.1:${web.port}`]);
  }
});

test('an entry that is none is an error that names it', async (t) => {
  const yard = makeYard();
  const bad = await execCli(['-c', 'network.allow=[https://example.com]', '--', 'true'], { cwd: yard.ws, env: yard.env });
  assert.equal(bad.code, 2);
  assert.match(bad.stderr, /-c network\.allow.*is a URL: write the host alone/);
  const dir = path.join(yard.home, '.config/shellyard');
  fs.mkdirSync(dir, { recursive: true });
  fs.writeFileSync(path.join(dir, 'config.yaml'), 'network:\n  allow:\n    - example.com\n    - "*"\n');
  const file = await execCli(['--', 'true'], { cwd: yard.ws, env: yard.env });
  assert.equal(file.code, 2);
  assert.match(file.stderr, /config\.yaml:4:7: .*would allow every host/);
});

test('network rules have a second word on each host', { timeout: 60_000 }, async (t) => {
  mustRun(t, has('curl'), 'no curl');
  const yard = makeYard();
  const web = await webServer(t);
  const dir = path.join(yard.home, '.config/shellyard');
  const write = (text) => fs.writeFileSync(path.join(dir, 'rules.yaml'), text, { mode: 0o600 });
  fs.mkdirSync(dir, { recursive: true, mode: 0o700 });
  write('network: []\n');
  const front = await openFront(t, 'mcp', yard, { settings: { 'network.allow': `["127.0.0.1:${web.port}", "localhost:${web.port} local"]` } });
  const get = (host, how = '') => front.run(`curl -sS -o out -w '%{http_code} %{http_connect}' ${how} http://${host}:${web.port}/x; cat out`, { timeoutMs: 60_000 });

  assert.match((await get('127.0.0.1')).output, /^200 000hello/);
  write('network:\n  - {host: 127.0.0.1, protocol: https, decision: forbid, reason: not that one}\n  - {host: localhost, protocol: http, decision: ask}\n');
  for (const how of ['', '-p', '-x "$ALL_PROXY"']) {
    const r = await get('127.0.0.1', how);
    assert.ok(!r.output.includes('hello'), `${how}: ${r.output}`);
    const denial = r.raw.denials.find((d) => d.layer === 'proxy');
    assert.match(denial.rule ?? r.text, /127\.0\.0\.1 is forbidden by a rule \(rules\.yaml:2\): not that one/);
    assert.equal(denial.fix, undefined, 'no line of configuration lifts a rule');
  }
  assert.match((await get('localhost')).text, /localhost is to be asked about, for which a connection can't wait, by a rule/);
  // What a rule allows need not be in the list; that an address is private counts all the same.
  write('network:\n  - {host: name.invalid, protocol: http, decision: allow}\n  - {host: 127.0.0.2, protocol: http, decision: allow}\n');
  const unknown = await front.run(`curl -s -o /dev/null -w '%{http_code} ' http://name.invalid/; curl -s -o /dev/null -w '%{http_code} ' http://127.0.0.2/; curl -s -o /dev/null -w '%{http_code}' http://other.invalid/`, { timeoutMs: 60_000 });
  assert.match(unknown.output, /^50\d 403 403$/);
});
