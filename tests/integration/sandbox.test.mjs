// What must go on in the sandbox (A33, A35-A37), beside what must not: each
// refusal has a control that shows the sandbox is what refuses.
import assert from 'node:assert/strict';
import dgram from 'node:dgram';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import readline from 'node:readline';
import { once } from 'node:events';
import { spawn } from 'node:child_process';
import { eachFront, eachTier, has, mustRun } from './lib/client.mjs';

const UNSANDBOXED = { settings: { 'sandbox.mode': 'danger-full-access' } };

eachFront('writes stay in the workspace', async (t, { yard, open }) => {
  const front = await open();
  const target = path.join(yard.outside, 'f');
  const inside = await front.run('echo x > f && cat f');
  assert.equal(inside.output, 'x\n');
  const r = await front.run(`echo x > ${target}`);
  assert.notEqual(r.exitCode, 0);
  assert.equal(fs.existsSync(target), false);
  assert.equal(r.sandbox.mode, 'workspace-write');

  const free = await open(UNSANDBOXED);
  assert.equal((await free.run(`echo x > ${target}`)).exitCode, 0, 'without the sandbox it works');
  assert.equal(fs.readFileSync(target, 'utf8'), 'x\n');
});

eachFront('a link in the workspace does not lead a write outside', async (t, { yard, open }) => {
  const front = await open();
  fs.symlinkSync(yard.outside, path.join(yard.ws, 'link'));
  const r = await front.run('echo x > link/f');

  assert.notEqual(r.exitCode, 0);
  assert.deepEqual(fs.readdirSync(yard.outside), []);
});

eachFront('A33 semaphores work', async (t, { open }) => {
  if (!mustRun(t, has('python3'), 'no python3')) {
    return;
  }
  const front = await open();
  // With `with`: Python's own clean-up at exit has a race that writes a traceback now and then.
  const code = 'from concurrent.futures import ProcessPoolExecutor as P\nwith P(2) as p:\n print(list(p.map(abs,[-1,-2])))';
  const r = await front.run(`python3 -c '${code}'`, { timeoutMs: 60_000 });

  assert.equal(r.output, '[1, 2]\n');
  assert.equal(r.exitCode, 0);
});

for (const network of [false, true]) {
  eachFront(`A35 links and renames across directories work, network ${network ? 'on' : 'off'}`, async (t, { yard, open }) => {
    if (!mustRun(t, has('python3'), 'no python3')) {
      return;
    }
    const front = await open({ settings: { 'sandbox.network_access': network } });
    const r = await front.run('mkdir -p a b c/d; echo 1 > a/f; ln a/f b/f && '
      + `python3 -c "import os; os.rename('a/f','c/d/f')" && mv b c/ && echo OK`, { timeoutMs: 60_000 });

    assert.equal(r.output, 'OK\n');
    assert.equal(fs.readFileSync(path.join(yard.ws, 'c/b/f'), 'utf8'), '1\n');
    assert.equal(fs.readFileSync(path.join(yard.ws, 'c/d/f'), 'utf8'), '1\n');
  });
}

eachFront('A36 sockets within the sandbox work', async (t, { yard, open }) => {
  if (!mustRun(t, has('python3'), 'no python3')) {
    return;
  }
  const front = await open();
  const pair = await front.run(`python3 -c 'import socket; a,b=socket.socketpair(); a.setsockopt(1,16,1); print("ok")'`,
    { timeoutMs: 60_000 });
  assert.equal(pair.output, 'ok\n');

  fs.writeFileSync(path.join(yard.ws, 'unix.py'), `import socket
s = socket.socket(socket.AF_UNIX)
s.bind("s.sock")
s.listen()
c = socket.socket(socket.AF_UNIX)
c.connect("s.sock")
a, _ = s.accept()
c.sendall(b"ok")
print(a.recv(2).decode())
`);
  const unix = await front.run('python3 unix.py', { timeoutMs: 60_000 });
  assert.equal(unix.output, 'ok\n');

  const links = await front.run(`node -e 'console.log(Object.keys(require("os").networkInterfaces()).length>=0)'`,
    { timeoutMs: 60_000 });
  assert.equal(links.output, 'true\n');
});

/** Tries to reach our listeners every way; prints one line a way. */
const REACH = `import socket, sys
tcp, udp = int(sys.argv[1]), int(sys.argv[2])

def way(name, fn):
    try:
        fn()
        print(name, "REACHED")
    except OSError as error:
        print(name, "failed", error.errno)

def datagram():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.sendto(b"x", ("127.0.0.1", udp))

way("tcp4", lambda: socket.create_connection(("127.0.0.1", tcp), 5))
way("tcp6", lambda: socket.create_connection(("::1", tcp), 5))
way("mapped", lambda: socket.create_connection(("::ffff:127.0.0.1", tcp), 5))
way("udp", datagram)
way("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
way("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
`;

eachFront('A36 no socket reaches beyond the sandbox while the network is off', async (t, { yard, open }) => {
  if (!mustRun(t, has('python3'), 'no python3')) {
    return;
  }
  let reached = 0;
  const tcp = net.createServer((socket) => {
    reached += 1;
    socket.destroy();
  });
  tcp.listen(0, '127.0.0.1');
  await once(tcp, 'listening');
  const udp = dgram.createSocket('udp4');
  udp.on('message', () => {
    reached += 1;
  });
  udp.bind(0, '127.0.0.1');
  await once(udp, 'listening');
  t.after(() => {
    tcp.close();
    udp.close();
  });
  fs.writeFileSync(path.join(yard.ws, 'reach.py'), REACH);
  const script = `python3 reach.py ${tcp.address().port} ${udp.address().port}`;

  const off = await open();
  const r = await off.run(script, { timeoutMs: 60_000 });
  assert.equal(r.exitCode, 0, r.text);
  // In the full tier a datagram is sent to a loopback on which nobody is.
  assert.equal(r.output.match(/ failed /g)?.length, r.sandbox.tier === 'full' ? 5 : 6, r.output);
  assert.equal(reached, 0);

  const on = await open({ settings: { 'sandbox.network_access': true } });
  const control = await on.run(script, { timeoutMs: 60_000 });
  assert.match(control.output, /^tcp4 REACHED$/m, 'with the network on it is reached');
  assert.match(control.output, /^udp REACHED$/m);
});

eachFront('A37 the temporary directory can be written', async (t, { yard, open }) => {
  const scratch = path.join(yard.home, 'scratch');
  fs.mkdirSync(scratch);
  const front = await open({ env: { TMPDIR: scratch } });
  const r = await front.run(`mktemp -d && cat > out.txt <<'X'\n${'a'.repeat(100_000)}\nX\nwc -c out.txt; echo "$TMPDIR"`);

  assert.equal(r.exitCode, 0);
  assert.match(r.output, new RegExp(`^${scratch}/tmp\\.\\w+\n100001 out.txt\n${scratch}\n$`));
  assert.equal(fs.statSync(path.join(yard.ws, 'out.txt')).size, 100_001);
});

eachFront('A37 under read-only an error names the temporary directory', async (t, { yard, open }) => {
  const scratch = path.join(yard.home, 'scratch');
  fs.mkdirSync(scratch);
  const front = await open({ env: { TMPDIR: scratch }, settings: { 'sandbox.mode': 'read-only' } });
  const r = await front.run('mktemp -d');

  assert.notEqual(r.exitCode, 0);
  assert.ok(r.output.includes(scratch), r.output);
  assert.deepEqual(fs.readdirSync(scratch), []);
});

/** Listens outside every sandbox; `seen` tells how many came. Not in Node.js: 18 with libuv 1.48 makes no abstract name. */
async function listenOutside(t, name) {
  const server = spawn('python3', ['-c', `import socket, sys
name, came = sys.argv[1], 0
l = socket.socket(socket.AF_UNIX); l.bind(name.replace('@', chr(0))); l.listen(8); l.setblocking(False)
print('listens', flush=True)
for line in sys.stdin:
    try:
        while l.accept(): came += 1
    except BlockingIOError:
        print(came, flush=True)`, name], { stdio: ['pipe', 'pipe', 'inherit'] });
  t.after(() => {
    server.stdin.end();
    fs.rmSync(name, { force: true });
  });
  const lines = readline.createInterface({ input: server.stdout })[Symbol.asyncIterator]();
  assert.equal((await lines.next()).value, 'listens');
  return {
    seen: async () => {
      server.stdin.write('\n');
      return Number((await lines.next()).value);
    },
  };
}

const connectTo = (name) => `python3 - <<'PY'
import socket
c = socket.socket(socket.AF_UNIX)
try:
    c.connect(${JSON.stringify(name)}.replace('@', chr(0)))  # as /proc/net/unix writes it
    print('REACHED')
except OSError as e:
    print('refused', e.errno)
PY`;

eachFront('A39 Unix sockets of other processes are out of reach, wherever they lie', async (t, { yard, open }) => {
  mustRun(t, has('python3'), 'no python3');
  const front = await open({ settings: { 'sandbox.network_access': false } });
  const names = [path.join(yard.ws, 'host.sock'), path.join(yard.outside, 'host.sock'), `/tmp/host-${process.pid}-${front.name}.sock`,
    `@host-${process.pid}-${front.name}`];
  for (const name of names) {
    const server = await listenOutside(t, name);
    const r = await front.run(connectTo(name));
    // 2: where temporary directories are private, nothing is there.
    assert.match(r.output, /^refused (1|2|13)$/m, name);
    assert.equal(await server.seen(), 0, `${name}: somebody came`);
    fs.symlinkSync(name, path.join(yard.ws, 'link'));
    if (!name.startsWith('@')) {
      assert.match((await front.run(connectTo('link'))).output, /^refused (1|2|13)$/m);
    }
    fs.unlinkSync(path.join(yard.ws, 'link'));
    assert.equal(await server.seen(), 0);
  }
  const on = await open({ settings: { 'sandbox.network_access': true } });
  const server = await listenOutside(t, path.join(yard.ws, 'control.sock'));
  assert.match((await on.run(connectTo(path.join(yard.ws, 'control.sock')))).output, /^REACHED$/m, 'with the network on it is reached');
  assert.equal(await server.seen(), 1, 'the listener sees it');
});

eachTier('A36 Unix sockets of the command are its user\'s, also where nobody else may go', async (t, { yard, tier, open }) => {
  mustRun(t, has('python3'), 'no python3');
  if (tier === 'full' && process.getuid() === 0) {
    // Commands of root run as the owner of the workspace.
    fs.chmodSync(yard.dir, 0o711);
    fs.chownSync(yard.ws, 12345, 12346);
  }
  const front = await open();
  const r = await front.run(`python3 - <<'PY'
import os, socket, struct
os.mkdir('closed', 0o700)
for name in ('closed/s', chr(0) + 'own-' + str(os.getpid())):
    l = socket.socket(socket.AF_UNIX); l.bind(name); l.listen(1)
    c = socket.socket(socket.AF_UNIX); c.connect(name); a, _ = l.accept()
    pid, uid, gid = struct.unpack('3i', a.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    assert (uid, gid) == (os.getuid(), os.getgid()), (uid, gid)
print('user', os.getuid())
PY`);
  assert.equal(r.output, `user ${tier === 'full' ? fs.statSync(yard.ws).uid : process.getuid()}\n`, r.text);
});

eachFront('A36 Unix sockets of the command itself work in every form', async (t, { open }) => {
  mustRun(t, has('python3'), 'no python3');
  const front = await open({ settings: { 'sandbox.network_access': false } });
  const r = await front.run(`python3 - <<'PY'
import asyncio, os, socket, threading
def serve(family_type, name):
    l = socket.socket(socket.AF_UNIX, family_type); l.bind(name); l.listen(64); return l
def once(l, name, family_type=socket.SOCK_STREAM):
    c = socket.socket(socket.AF_UNIX, family_type); c.connect(name)
    a, _ = l.accept(); c.send(b'hi'); got = a.recv(9); c.close(); a.close(); return got
os.makedirs('deep/er', exist_ok=True)
for name in ('rel.sock', os.getcwd() + '/abs.sock', 'deep/er/../s.sock', chr(0) + 'own-' + str(os.getpid())):
    l = serve(socket.SOCK_STREAM, name); assert once(l, name) == b'hi'; l.close()
l = serve(socket.SOCK_SEQPACKET, 'seq.sock'); assert once(l, 'seq.sock', socket.SOCK_SEQPACKET) == b'hi'; l.close()
l = serve(socket.SOCK_STREAM, 'target.sock'); os.symlink('target.sock', 'via'); assert once(l, 'via') == b'hi'
pid = os.fork()
if pid == 0:
    c = socket.socket(socket.AF_UNIX); c.connect('target.sock'); c.send(b'child'); os._exit(0)
a, _ = l.accept(); assert a.recv(9) == b'child'; os.waitpid(pid, 0); a.close()
done = []
def client():
    c = socket.socket(socket.AF_UNIX); c.connect('target.sock'); done.append(c.recv(1)); c.close()
threads = [threading.Thread(target=client) for _ in range(40)]
[x.start() for x in threads]
for _ in threads:
    a, _ = l.accept(); a.send(b'!'); a.close()
[x.join() for x in threads]; assert len(done) == 40
async def main():
    async def handle(r, w):
        w.write(await r.readline()); await w.drain(); w.close()
    s = await asyncio.start_unix_server(handle, 'aio.sock')
    r, w = await asyncio.open_unix_connection('aio.sock')
    w.write(b'line' + bytes([10])); assert await r.readline() == b'line' + bytes([10]); s.close()
asyncio.run(main())
for bad, err in (('missing', 2), ('deep', 111)):
    try: socket.socket(socket.AF_UNIX).connect(bad); raise SystemExit('connected to ' + bad)
    except OSError as e: assert e.errno == err, (bad, e)
print('all ok')
PY
node -e 'const net=require("net");const s=net.createServer(c=>c.end("node"));s.listen("n.sock",()=>net.connect("n.sock").on("data",d=>{console.log(String(d));s.close()}))'`, { timeoutMs: 20_000 });
  assert.equal(r.exitCode, 0, r.output);
  assert.match(r.output, /all ok\nnode\n/);
});

eachFront('A39 a name that changes during the call leads nowhere', async (t, { yard, open }) => {
  mustRun(t, has('python3'), 'no python3');
  const host = path.join(yard.outside, 'host.sock');
  const server = await listenOutside(t, host);
  const front = await open({ settings: { 'sandbox.network_access': false } });
  const r = await front.run(`python3 - ${host} <<'PY'
import ctypes, os, socket, sys, threading, time
host = sys.argv[1]
l = socket.socket(socket.AF_UNIX); l.bind('own.sock'); l.listen(128)
os.symlink('own.sock', 'name'); os.symlink(host, 'evil')
stop = False
def swap():
    while not stop:
        for target in ('own.sock', host):
            try: os.symlink(target, 'tmp'); os.rename('tmp', 'name')
            except OSError: pass
libc = ctypes.CDLL(None, use_errno=True)
def sockaddr(p): return (socket.AF_UNIX).to_bytes(2, 'little') + p.encode() + bytes(108 - len(p))
buffer = ctypes.create_string_buffer(sockaddr(os.getcwd() + '/own.sock'), 110)
def scribble():
    own, evil = sockaddr(os.getcwd() + '/own.sock'), sockaddr(host)
    while not stop:
        buffer[0:110] = evil; buffer[0:110] = own
threads = [threading.Thread(target=swap), threading.Thread(target=scribble)]
[x.start() for x in threads]
good = bad = 0
end = time.monotonic() + 2
while time.monotonic() < end:
    for raw in (False, True):
        c = socket.socket(socket.AF_UNIX)
        rc = libc.connect(c.fileno(), buffer, 110) if raw else c.connect_ex('name')
        if rc == 0:
            good += 1; a, _ = l.accept(); a.close()
        else: bad += 1
        c.close()
stop = True
[x.join() for x in threads]
print('own', good > 0, 'refused', bad > 0)
PY`, { timeoutMs: 30_000 });
  assert.equal(r.exitCode, 0, r.output);
  assert.match(r.output, /own True refused True/);
  assert.equal(await server.seen(), 0);
});
