// What commands have of a network where none is let out: in the full tier a loopback of their own, on
// which servers and clients of one command meet and nobody else; without namespaces nothing. Each
// refusal has a control that shows the sandbox is what refuses.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { eachTier, has, hasFull, listen, makeYard, mustRun, openFront, program, waitFor } from './lib/client.mjs';

const build = path.dirname(program);
const mask = path.join(build, 'tests/adversary/mask');
const launch = [path.join(build, 'libexec/shellyard/shellyard-launch'), path.join(build, 'shellyard-launch')]
  .find((p) => fs.existsSync(p));

const allow = (...entries) => ({ 'network.allow': `[${entries.map((e) => JSON.stringify(e)).join(', ')}]` });

const OWN = `import socket, sys
def tcp(family, address):
    s = socket.socket(family)
    s.bind(address)
    s.listen()
    c = socket.create_connection(s.getsockname()[:2], 5)
    a, _ = s.accept()
    a.sendall(b"through")
    return c.recv(10).decode()

def udp():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("127.0.0.1", 0))
    c = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    c.connect(s.getsockname())
    c.send(b"through")
    return s.recv(10).decode()

def way(name, fn):
    try:
        print(name, fn())
    except OSError as error:
        print(name, "failed", error.errno)

way("tcp4", lambda: tcp(socket.AF_INET, ("127.0.0.1", 0)))
way("tcp6", lambda: tcp(socket.AF_INET6, ("::1", 0)))
way("udp", udp)
way("icmp", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1))
way("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
way("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
way("netfilter", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12))
way("interfaces", lambda: ",".join(name for _, name in socket.if_nameindex()))
`;

eachTier('with the network off a server and its client in one command have a loopback of their own, or none', async (t, { isFull, yard, open }) => {
  mustRun(t, has('python3') && has('curl'), 'no python3 or no curl');
  fs.writeFileSync(path.join(yard.ws, 'own.py'), OWN);
  const refused = 'icmp failed 1\nraw failed 1\npacket failed 1\nnetfilter failed 1\n';
  const script = 'python3 own.py';
  for (const settings of [{}, allow('name.invalid')]) {
    const front = await open({ settings });
    const r = await front.run(script, { timeoutMs: 60_000 });
    if (isFull) {
      assert.equal(r.output, `tcp4 through\ntcp6 through\nudp through\n${refused}interfaces lo\n`);
      assert.equal(r.sandbox.features.network, 'enforced');
      assert.equal(r.raw.denials, undefined);
    } else {
      assert.match(r.output, /^tcp4 failed \d+\ntcp6 failed \d+\nudp failed 1\n/);
    }
    // The everyday form of it, with and without proxy variables.
    const web = await front.run('python3 -u -m http.server --bind 127.0.0.1 0 > port 2>/dev/null & '
      + 'until [ -s port ] || ! kill -0 $! 2>/dev/null; do sleep 0.05; done; '
      + 'port=$(sed -n "s/.* port \\([0-9]*\\).*/\\1/p" port); [ -n "$port" ] && curl -sS "http://localhost:$port/own.py" | head -1; rm port', { timeoutMs: 60_000 });
    assert.equal(web.output, isFull ? 'import socket, sys\n' : '', web.text);
  }
  const on = await open({ settings: { 'sandbox.network_access': true } });
  const control = await on.run(script, { timeoutMs: 60_000 });
  assert.match(control.output, /^tcp4 through\ntcp6 .*\nudp through\n/);
  assert.doesNotMatch(control.output, /interfaces lo$/m, 'outside there is more than a loopback');
});

eachTier('no server of this machine is reached with the network off, and the answer says whose it is', async (t, { isFull, open }) => {
  mustRun(t, has('python3'), 'no python3');
  let reached = 0;
  const port = await listen(t, net.createServer((socket) => {
    reached += 1;
    socket.on('error', () => {});
    socket.destroy();
  }));
  const script = (p) => `python3 -c 'import socket; socket.create_connection(("127.0.0.1", ${p}), 5)' 2>/dev/null; echo $?`;
  const off = await open();
  const r = await off.run(script(port), { timeoutMs: 60_000 });
  assert.equal(r.output, '1\n');
  assert.equal(reached, 0);
  if (isFull) {
    assert.deepEqual(r.raw.denials, [{
      operation: 'connect', object: `127.0.0.1:${port}`, layer: 'namespace', confidence: 'exact',
      rule: 'the command has a loopback of its own, which servers of this machine are not on', fix: 'sandbox.network_access: true',
    }]);
    // Nobody is there, outside either: nothing was refused.
    const unused = net.createServer().listen(0, '127.0.0.1');
    await once(unused, 'listening');
    const free = unused.address().port;
    unused.close();
    await once(unused, 'close');
    assert.equal((await off.run(script(free), { timeoutMs: 60_000 })).raw.denials, undefined);
    const list = await open({ settings: allow('name.invalid') });
    const d = (await list.run(script(port), { timeoutMs: 60_000 })).raw.denials;
    assert.deepEqual(d.map((one) => one.fix), [`network.allow: [127.0.0.1:${port}]`]);
  }
  const on = await open({ settings: { 'sandbox.network_access': true } });
  assert.equal((await on.run(script(port), { timeoutMs: 60_000 })).output, '0\n');
  assert.equal(reached, 1);
});

/** An address of this machine that is none of its loopback's, or undefined. */
const ownAddress = () => Object.values(os.networkInterfaces()).flat()
  .find((a) => a.family === 'IPv4' && !a.internal)?.address;

eachTier('beyond the loopback nothing is reached, metadata and name servers neither', async (t, { isFull, open }) => {
  mustRun(t, has('python3'), 'no python3');
  const address = ownAddress();
  if (!mustRun(t, address, 'this machine has no network')) {
    return;
  }
  let reached = 0;
  const port = await listen(t, net.createServer((socket) => {
    reached += 1;
    socket.on('error', () => {});
    socket.destroy();
  }), address);
  const script = `python3 -c '
import socket
def way(name, kind, to):
    s = socket.socket(socket.AF_INET, kind)
    s.settimeout(5)
    try:
        s.connect(to)
        print(name, "REACHED")
    except OSError as error:
        print(name, error.errno)
way("own", socket.SOCK_STREAM, ("${address}", ${port}))
METADATA
way("dns", socket.SOCK_DGRAM, ("192.0.2.53", 53))
' 2>/dev/null`;
  const inside = script.replace('METADATA', 'way("metadata", socket.SOCK_STREAM, ("169.254.169.254", 80))');
  if (isFull) {
    for (const [settings, fix] of [[{}, () => 'sandbox.network_access: true'], [allow('name.invalid'), (host) => host && `network.allow: [${host}]`]]) {
      const front = await open({ settings });
      const r = await front.run(inside, { timeoutMs: 60_000 });
      assert.equal(r.output, 'own 101\nmetadata 101\ndns 101\n');
      assert.deepEqual(r.raw.denials.map((d) => [d.object, d.layer, d.confidence, d.fix]), [
        [`${address}:${port}`, 'broker', 'exact', fix(`${address}:${port}`)],
        // Nobody is led to what a metadata service gives away.
        ['169.254.169.254:80', 'broker', 'exact', fix()],
        ['192.0.2.53:53', 'broker', 'exact', 'sandbox.network_access: true'],
      ]);
    }
  } else {
    assert.equal((await (await open()).run(inside, { timeoutMs: 60_000 })).output, '');
  }
  assert.equal(reached, 0);
  const on = await open({ settings: { 'sandbox.network_access': true } });
  const control = await on.run(script.replace('METADATA', ''), { timeoutMs: 60_000 });
  assert.match(control.output, /^own REACHED$/m);
});

test('another engine, or another policy of one, has another loopback', async (t) => {
  mustRun(t, has('python3') && has('bash'), 'no python3 or no bash');
  const yard = makeYard();
  if (!hasFull(t, yard)) {
    return;
  }
  const settings = { 'sandbox.tier': 'full' };
  const open = () => openFront(t, 'mcp', yard, { settings });
  const [first, second] = [await open(), await open()];
  const put = (name, text) => fs.writeFileSync(path.join(yard.ws, name), text);
  put('server.py', 'import os, socket\ns = socket.create_server(("127.0.0.1", 0))\nwith open("new", "w") as f:\n    print(s.getsockname()[1], file=f)\n'
    + 'os.rename("new", "port")\ns.accept()[0].sendall(b"hello\\n")\n');
  put('client.sh', 'exec 3<>/dev/tcp/127.0.0.1/$1 && read -r x <&3 && echo got $x\n');
  const client = (port) => `bash client.sh ${port} 2>&1`;
  const running = first.run('python3 server.py', { timeoutMs: 60_000 });
  const port = await waitFor(() => fs.existsSync(path.join(yard.ws, 'port')) && fs.readFileSync(path.join(yard.ws, 'port'), 'utf8').trim(), 'the server listens');
  const other = await second.run(client(port));
  assert.match(other.output, /Connection refused/);
  assert.deepEqual(other.raw.denials ?? [], [], 'nobody of this machine listens there, so nothing was refused');
  const narrower = await openFront(t, 'exec', yard, { settings: { ...settings, 'sandbox.mode': 'read-only' } });
  assert.match((await narrower.run(client(port))).output, /Connection refused/);
  await assert.rejects(fetch(`http://127.0.0.1:${port}/`), 'nor does this machine reach it');
  await first.close();
  await running.catch(() => {});
  fs.rmSync(path.join(yard.ws, 'port'));
  const control = await second.run(`python3 server.py & until [ -e port ]; do :; done; ${client('$(cat port)')}`, { timeoutMs: 60_000 });
  assert.match(control.output, /got hello/, 'the control: in one command they meet');
});

test('where nobody can be asked about connect(2), a network of its own needs nobody', async (t) => {
  mustRun(t, has('curl') && has('python3'), 'no curl or no python3');
  const yard = makeYard();
  if (!hasFull(t, yard)) {
    return;
  }
  const web = { port: await listen(t, http.createServer((req, res) => res.end(`hello from ${req.url}\n`))) };
  fs.writeFileSync(path.join(yard.ws, 'own.py'), OWN);
  const settings = { ...allow(`127.0.0.1:${web.port}`), 'sandbox.tier': 'full' };
  const front = await openFront(t, 'mcp', yard, { settings, wrap: [mask, 'notify'] });
  const r = await front.run(`curl -sS http://127.0.0.1:${web.port}/list; curl -s -o /dev/null http://no.invalid/; python3 own.py; `
    + 'python3 -u -c "import socket; socket.socketpair(); print(\'pair\'); socket.socket(socket.AF_UNIX)" 2>&1 | grep -o -e pair -e "Operation not permitted"', { timeoutMs: 60_000 });
  assert.match(r.output, /^hello from \/list\ntcp4 through\ntcp6 through\nudp through\n/);
  assert.match(r.output, /pair\nOperation not permitted\n$/, 'Unix sockets come in pairs alone');
  assert.deepEqual(r.raw.denials.filter((d) => d.layer === 'proxy').map((d) => [d.object, d.confidence]), [['no.invalid:80', 'exact']]);
  assert.equal(r.sandbox.features.unix_path, 'enforced');

  const light = await openFront(t, 'mcp', yard, { settings: { ...settings, 'sandbox.tier': 'no-namespace' }, wrap: [mask, 'notify'] });
  const off = await light.run(`curl -sS http://127.0.0.1:${web.port}/light`, { timeoutMs: 60_000 });
  assert.match(off.note, /network\.allow has no effect here, the network is off/, 'without a namespace there is none');
});

test('the wrapper, which asks nobody either, gives a command its own loopback', async (t) => {
  mustRun(t, has('python3'), 'no python3');
  const yard = makeYard();
  if (!hasFull(t, yard)) {
    return;
  }
  const reached = [];
  const port = await listen(t, http.createServer((req, res) => {
    reached.push(req.url);
    res.end();
  }));
  const file = path.join(yard.dir, 'policy.json');
  const run = (policy) => {
    fs.writeFileSync(file, JSON.stringify({ version: 1, mode: 'workspace-write', cwd: yard.ws, ...policy }));
    const fd = fs.openSync(file);
    const child = spawn(launch, ['--policy', '3', '--', 'sh', '-c',
      `python3 own.py; python3 -c 'import urllib.request as u; u.urlopen("http://127.0.0.1:${port}/")' 2>/dev/null; echo $?`],
    { cwd: yard.ws, env: yard.env, stdio: ['ignore', 'pipe', 'inherit', fd] });
    fs.closeSync(fd);
    return text(child.stdout);
  };
  fs.writeFileSync(path.join(yard.ws, 'own.py'), OWN);
  assert.match(await run({}), /^tcp4 through\ntcp6 through\nudp through\n[^]*interfaces lo\n1\n$/);
  assert.deepEqual(reached, []);
  assert.match(await run({ network_access: true }), /\n0\n$/);
  assert.deepEqual(reached, ['/']);
});
