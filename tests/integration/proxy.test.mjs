// The network proxy under real programs (curl above all) and real sockets, against
// servers of the test on loopback. Its names are resolved by the test.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import path from 'node:path';
import readline from 'node:readline';
import { test } from 'node:test';
import { has, isSanitized, makeYard, mustRun, program, statusKb, waitFor } from './lib/client.mjs';

const driver = path.join(path.dirname(program), 'tests/integration/proxy_driver');

/** A server on a free port: {port, requests, close()}. `key` makes it TLS. */
async function startServer(t, { key, cert } = {}) {
  const requests = [];
  const listener = (req, res) => {
    requests.push({ url: req.url, host: req.headers.host, headers: req.headers, method: req.method });
    req.resume();
    req.on('end', () => {
      if (req.url.endsWith('/tool')) { // npm asks for this package
        res.setHeader('Content-Type', 'application/json');
        res.end(JSON.stringify({ name: 'tool', 'dist-tags': { latest: '7.7.7' }, versions: { '7.7.7': { name: 'tool', version: '7.7.7', dist: { tarball: 'http://web.test/x.tgz' } } } }));
      } else {
        res.end(`hello from ${req.url}\n`);
      }
    });
  };
  const server = key ? https.createServer({ key, cert }, listener) : http.createServer(listener);
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: server.address().port, requests };
}

/** The proxy: {port, url, verdicts, stat(), close()}. */
async function startProxy(t, args) {
  const child = spawn(driver, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  const verdicts = [];
  const answers = [];
  const lines = readline.createInterface({ input: child.stdout });
  lines.on('line', (line) => {
    const [kind, ...rest] = line.split('\t');
    if (kind === 'verdict') {
      const [outcome, protocol, method, host, port, address, rule, why, hint, content] = rest;
      verdicts.push({ outcome, protocol, method, host, port: Number(port), address, rule, why, hint, content });
    } else {
      answers.push([kind, ...rest.map(Number)]);
    }
  });
  const answer = (kind) => waitFor(() => {
    const at = answers.findIndex((a) => a[0] === kind);
    return at >= 0 && answers.splice(at, 1)[0].slice(1);
  }, `the driver's '${kind}'`);
  const [port] = await answer('port');
  return {
    port,
    pid: child.pid,
    url: `http://127.0.0.1:${port}`,
    socks: `socks5h://127.0.0.1:${port}`,
    verdicts,
    async stat() {
      child.stdin.write('s');
      const [connections, fds, blocks, lookups] = await answer('stat');
      return { connections, fds, blocks, lookups };
    },
    /** Clean: nothing is allocated any more, and the loop has no handle left. */
    async close() {
      const exited = once(child, 'exit');
      child.stdin.end();
      assert.deepEqual(await answer('end'), [0], 'blocks left');
      assert.equal((await exited)[0], 0);
    },
  };
}

/** A program to its end: {code, stdout, stderr}. */
async function run(argv, { env, cwd } = {}) {
  const child = spawn(argv[0], argv.slice(1), { env, cwd, stdio: ['ignore', 'pipe', 'pipe'] });
  const out = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk) => { out.stdout += chunk; });
  child.stderr.on('data', (chunk) => { out.stderr += chunk; });
  const [code] = await once(child, 'close');
  return { code, ...out };
}

/** curl with an environment that names no other proxy. */
function curl(yard, ...args) {
  return run(['curl', '-sS', '--max-time', '20', ...args], { env: yard.env });
}

function makeCertificate(dir) {
  const key = path.join(dir, 'key.pem');
  const cert = path.join(dir, 'cert.pem');
  execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes',
    '-keyout', key, '-out', cert, '-days', '2', '-subj', '/CN=web.test',
    '-addext', 'subjectAltName=DNS:web.test,DNS:other.test,IP:127.0.0.1'], { stdio: 'pipe' });
  return { key: fs.readFileSync(key), cert: fs.readFileSync(cert), file: cert };
}

/** Sends bytes, reads to the end. */
async function raw(port, bytes) {
  const socket = net.connect(port, '127.0.0.1');
  socket.on('error', () => {});
  socket.write(bytes);
  let got = '';
  socket.setEncoding('latin1');
  socket.on('data', (chunk) => { got += chunk; });
  await once(socket, 'close');
  return got;
}

test('curl gets 200 from an allowed host and 403 with the reason from another, in the clear', async (t) => {
  if (!mustRun(t, has('curl'), 'curl is missing')) {
    return;
  }
  const yard = makeYard();
  const web = await startServer(t);
  const proxy = await startProxy(t, ['web.test=127.0.0.1', `allow=web.test:${web.port} local`]);
  const allowed = await curl(yard, '-x', proxy.url, '-w', '%{http_code}', `http://web.test:${web.port}/a?b`);
  assert.deepEqual([allowed.code, allowed.stdout], [0, 'hello from /a?b\n200']);
  assert.equal(web.requests[0].host, `web.test:${web.port}`);
  assert.equal(web.requests[0].headers['proxy-connection'], undefined);
  assert.equal(web.requests[0].headers.connection, 'close');

  const denied = await curl(yard, '-x', proxy.url, '-w', '%{http_code}', 'http://evil.test/');
  assert.match(denied.stdout, /evil\.test:80 is not in network\.allow/);
  assert.match(denied.stdout, /\nnetwork\.allow: \[\.\.\., "evil\.test"\]\n403$/);

  const posted = await curl(yard, '-x', proxy.url, '-d', 'x'.repeat(100_000), `http://web.test:${web.port}/post`);
  assert.equal(posted.stdout, 'hello from /post\n');
  assert.deepEqual(proxy.verdicts.map((v) => [v.outcome, v.method, v.host]), [
    ['allowed', 'GET', 'web.test'], ['denied', 'GET', 'evil.test'], ['allowed', 'POST', 'web.test']]);
  await proxy.close();
});

test('curl through a CONNECT tunnel: TLS to the allowed host, 403 for another', async (t) => {
  if (!mustRun(t, has('curl') && has('openssl'), 'curl or openssl is missing')) {
    return;
  }
  const yard = makeYard();
  const certificate = makeCertificate(yard.dir);
  const web = await startServer(t, certificate);
  const proxy = await startProxy(t, [`tls=${web.port}`, 'web.test=127.0.0.1', `allow=web.test:${web.port} local`]);
  const allowed = await curl(yard, '--cacert', certificate.file, '-x', proxy.url, `https://web.test:${web.port}/s`);
  assert.deepEqual([allowed.code, allowed.stdout], [0, 'hello from /s\n'], allowed.stderr);
  const denied = await curl(yard, '-v', '-x', proxy.url, '-w', '%{http_connect}', 'https://evil.test/');
  assert.notEqual(denied.code, 0);
  assert.equal(denied.stdout, '403');
  assert.match(denied.stderr, /403 Forbidden by Shellyard: evil\.test:443 is not in network\.allow/);
  assert.deepEqual(proxy.verdicts.map((v) => [v.outcome, v.protocol, v.host]), [
    ['allowed', 'connect', 'web.test'], ['denied', 'connect', 'evil.test']]);
  assert.equal(proxy.verdicts[0].content, '1'); // TLS, whose name was checked
  await proxy.close();
});

test('a TLS hello for another name than the tunnel, for none, and no TLS at all are refused', async (t) => {
  if (!mustRun(t, has('curl') && has('openssl'), 'curl or openssl is missing')) {
    return;
  }
  const yard = makeYard();
  const certificate = makeCertificate(yard.dir);
  const web = await startServer(t, certificate);
  const proxy = await startProxy(t, [`tls=${web.port}`, 'web.test=127.0.0.1', `allow=web.test:${web.port} local`,
    `allow=127.0.0.1:${web.port}`]);
  const flags = ['--cacert', certificate.file, '-x', proxy.url];
  // curl asks for a tunnel to web.test and speaks to other.test inside it.
  const fronted = await curl(yard, ...flags, '--connect-to', `other.test:${web.port}:web.test:${web.port}`, `https://other.test:${web.port}/`);
  assert.equal(fronted.code, 35, fronted.stderr); // a TLS handshake that failed
  assert.match(fronted.stderr, /access denied/i);
  // To an address there is no name in the hello: allowed, as the address is.
  const address = await curl(yard, ...flags, `https://127.0.0.1:${web.port}/ip`);
  assert.equal(address.stdout, 'hello from /ip\n', address.stderr);
  const nameless = await curl(yard, '-k', '-x', proxy.url, '--connect-to', `127.0.0.1:${web.port}:web.test:${web.port}`, `https://127.0.0.1:${web.port}/`);
  assert.equal(nameless.code, 35, nameless.stderr);
  const plain = await raw(proxy.port, `CONNECT web.test:${web.port} HTTP/1.1\r\nHost: web.test\r\n\r\nGET / HTTP/1.1\r\n\r\n`);
  assert.match(plain, /^HTTP\/1\.1 200 .*\r\n\r\n\x15\x03\x03/s);
  assert.deepEqual(web.requests.map((r) => r.url), ['/ip']);
  assert.deepEqual(proxy.verdicts.map((v) => v.outcome), ['denied', 'allowed', 'denied', 'denied']);
  assert.match(proxy.verdicts[0].why, /names other\.test, the tunnel is for web\.test/);
  assert.match(proxy.verdicts[2].why, /names no server/);
  assert.match(proxy.verdicts[3].why, /not TLS/);
  await proxy.close();
});

test('a name that is rebound to loopback, a private or the metadata address is denied', async (t) => {
  if (!mustRun(t, has('curl'), 'curl is missing')) {
    return;
  }
  const yard = makeYard();
  const web = await startServer(t);
  const answers = { rebound: '127.0.0.1', private: '10.0.0.1,192.168.0.1', nat: '64:ff9b::7f00:1', mixed: '10.0.0.1,::1' };
  const names = Object.entries(answers).flatMap(([name, addresses]) => [`${name}.example=${addresses}`, `allow=${name}.example:${web.port}`]);
  const proxy = await startProxy(t, [...names, 'meta.test=169.254.169.254', 'local.test=127.0.0.1', `allow=*.test:${web.port} local`]);
  for (const name of Object.keys(answers)) {
    const denied = await curl(yard, '-x', proxy.url, '-w', '%{http_code}', `http://${name}.example:${web.port}/`);
    assert.match(denied.stdout, /resolves to .* a (loopback|private) address[\s\S]*403$/, name);
    assert.ok(denied.stdout.includes(`\nnetwork.allow: [..., "${name}.example:${web.port} local"]\n`), denied.stdout);
  }
  const metadata = await curl(yard, '-x', proxy.url, '-w', '%{http_code}', `http://meta.test:${web.port}/`);
  assert.match(metadata.stdout, /a cloud metadata address[\s\S]*403$/);
  assert.doesNotMatch(metadata.stdout, /network\.allow: /);
  assert.equal(web.requests.length, 0);
  // The control: the same address under an entry marked local; one look-up.
  const before = await proxy.stat();
  const local = await curl(yard, '-x', proxy.url, `http://local.test:${web.port}/ok`);
  assert.equal(local.stdout, 'hello from /ok\n');
  assert.equal((await proxy.stat()).lookups, before.lookups + 1);
  assert.equal(proxy.verdicts.at(-1).address, '127.0.0.1');
  await proxy.close();
});

test('SOCKS with names: allowed, denied by reply 2; SOCKS4 is refused', async (t) => {
  if (!mustRun(t, has('curl'), 'curl is missing')) {
    return;
  }
  const yard = makeYard();
  const web = await startServer(t);
  const proxy = await startProxy(t, ['web.test=127.0.0.1', `allow=web.test:${web.port} local`]);
  const allowed = await curl(yard, '-x', proxy.socks, `http://web.test:${web.port}/socks`);
  assert.deepEqual([allowed.code, allowed.stdout], [0, 'hello from /socks\n'], allowed.stderr);
  const denied = await curl(yard, '-x', proxy.socks, `http://evil.test:${web.port}/`);
  assert.equal(denied.code, 97, denied.stderr);
  assert.match(denied.stderr, /\(2\)|ruleset/);
  const old = await curl(yard, '-x', `socks4a://127.0.0.1:${proxy.port}`, `http://web.test:${web.port}/`);
  assert.equal(old.code, 97, old.stderr);
  assert.deepEqual(proxy.verdicts.map((v) => [v.outcome, v.protocol, v.host]), [
    ['allowed', 'socks5', 'web.test'], ['denied', 'socks5', 'evil.test'], ['malformed', 'socks5', '']]);
  await proxy.close();
});

test('nothing is inherited from one request to the next on a connection', async (t) => {
  if (!mustRun(t, has('curl'), 'curl is missing')) {
    return;
  }
  const yard = makeYard();
  const web = await startServer(t);
  const proxy = await startProxy(t, ['web.test=127.0.0.1', `allow=web.test:${web.port} local`]);
  // One curl, two URLs: it would keep the connection to the proxy if it could.
  const both = await curl(yard, '-x', proxy.url, '-w', '%{http_code}\n', `http://web.test:${web.port}/1`, `http://evil.test:${web.port}/2`, `http://web.test:${web.port}/3`);
  assert.match(both.stdout, /^hello from \/1\n200\n.*evil\.test[\s\S]*403\nhello from \/3\n200\n$/);
  const one = `GET http://web.test:${web.port}/4 HTTP/1.1\r\nHost: web.test:${web.port}\r\n`;
  const pipelined = await raw(proxy.port, `${one}\r\nGET http://evil.test/5 HTTP/1.1\r\nHost: evil.test\r\n\r\n${one}\r\n`);
  assert.equal(pipelined.match(/HTTP\/1\.1 200/g).length, 1);
  const smuggled = await raw(proxy.port, `${one}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`);
  assert.match(smuggled, /^HTTP\/1\.1 400 .*both Content-Length and Transfer-Encoding/);
  const switched = await raw(proxy.port, one.replace('Host: web', 'Host: evil') + '\r\n');
  assert.match(switched, /^HTTP\/1\.1 400 .*another host/);
  assert.deepEqual(web.requests.map((r) => r.url), ['/1', '/3', '/4']);
  assert.deepEqual(proxy.verdicts.map((v) => v.outcome), ['allowed', 'denied', 'allowed', 'allowed', 'malformed', 'malformed']);
  await proxy.close();
});

test('a request inside a tunnel to the HTTP port is judged, by CONNECT and by SOCKS', async (t) => {
  if (!mustRun(t, has('curl'), 'curl is missing')) {
    return;
  }
  const yard = makeYard();
  const web = await startServer(t);
  const proxy = await startProxy(t, [`http=${web.port}`, 'web.test=127.0.0.1', `allow=web.test:${web.port} local`]);
  for (const flags of [['-x', proxy.socks], ['-p', '-x', proxy.url]]) {
    const allowed = await curl(yard, ...flags, `http://web.test:${web.port}/in`);
    assert.deepEqual([allowed.code, allowed.stdout], [0, 'hello from /in\n'], allowed.stderr);
    const fronted = await curl(yard, ...flags, '-H', 'Host: evil.test', '-w', '%{http_code}', `http://web.test:${web.port}/fronted`);
    assert.match(fronted.stdout, /the Host header names another host[\s\S]*400$/);
  }
  assert.deepEqual(web.requests.map((r) => r.url), ['/in', '/in']);
  assert.deepEqual(proxy.verdicts.map((v) => [v.outcome, v.protocol, v.content]), [
    ['allowed', 'socks5', '0'], ['malformed', 'socks5', '0'], ['allowed', 'connect', '0'], ['malformed', 'connect', '0']]);
  await proxy.close();
});

/** One CONNECT and one request through it; resolves to the answer's body. */
async function throughTunnel(proxyPort, webPort) {
  const got = await raw(proxyPort, `CONNECT web.test:${webPort} HTTP/1.1\r\nHost: web.test\r\n\r\n`
    + 'GET /n HTTP/1.0\r\n\r\n');
  assert.match(got, /^HTTP\/1\.1 200 Connection Established\r\n\r\nHTTP\/1\.1 200 OK[\s\S]*hello from \/n\n$/);
}

test('1,000 connections one after the other and 200 at once leave no descriptor and no memory', async (t) => {
  const web = await startServer(t);
  const proxy = await startProxy(t, ['web.test=127.0.0.1', `allow=web.test:${web.port} local`]);
  await throughTunnel(proxy.port, web.port);
  await waitFor(async () => (await proxy.stat()).connections === 0, 'the first connection is gone');
  const before = await proxy.stat();
  for (let i = 0; i < 1000; i += 1) {
    await throughTunnel(proxy.port, web.port);
  }
  const rss = statusKb(proxy.pid, 'VmRSS');
  for (let round = 0; round < 3; round += 1) {
    await Promise.all(Array.from({ length: 200 }, () => throughTunnel(proxy.port, web.port)));
  }
  await waitFor(async () => (await proxy.stat()).connections === 0, 'all connections are gone');
  const after = await proxy.stat();
  assert.deepEqual([after.fds, after.blocks], [before.fds, before.blocks]);
  assert.equal(proxy.verdicts.filter((v) => v.outcome === 'allowed').length, 1601);
  if (!isSanitized) { // 200 connections may keep their 64 KiB each in the allocator
    assert.ok(statusKb(proxy.pid, 'VmRSS') - rss < 24 * 1024, 'memory grew');
  }
  await proxy.close();
});

test('the tools find the proxy by the variables that are set for them', async (t) => {
  const yard = makeYard();
  const web = await startServer(t);
  const proxy = await startProxy(t, ['web.test=127.0.0.1', `allow=web.test:${web.port} local`]);
  // A configuration of the user's that would lead elsewhere.
  fs.writeFileSync(path.join(yard.home, '.gitconfig'), '[http]\n\tproxy = http://127.0.0.1:1\n');
  const lead = { ...yard.env, no_proxy: '*', HTTP_PROXY: 'http://127.0.0.1:1', npm_config_cache: path.join(yard.home, 'npm'),
    npm_config_update_notifier: 'false', npm_config_fetch_retries: '0', PIP_DISABLE_PIP_VERSION_CHECK: '1', PIP_RETRIES: '0', GIT_TERMINAL_PROMPT: '0' };
  const { stdout } = await run([driver, 'environment', String(proxy.port)], { env: lead });
  const env = Object.fromEntries(stdout.split('\0').filter(Boolean).map((v) => [v.slice(0, v.indexOf('=')), v.slice(v.indexOf('=') + 1)]));
  const url = `http://web.test:${web.port}`;
  const tools = {
    curl: { argv: ['curl', '-sS', `${url}/curl`], asks: '/curl' },
    wget: { argv: ['wget', '-q', '-O', '-', `${url}/wget`], asks: '/wget' },
    git: { argv: ['git', 'ls-remote', `${url}/repo.git`], asks: '/repo.git/info/refs?service=git-upload-pack', fails: true },
    npm: { argv: ['npm', 'view', 'tool', 'version', '--registry', url], asks: '/tool' },
    python3: { argv: ['python3', '-c', `import urllib.request; urllib.request.urlopen("${url}/python").read()`], asks: '/python' },
  };
  let tried = 0;
  for (const [name, tool] of Object.entries(tools)) {
    if (has(name)) {
      const done = await run(tool.argv, { env, cwd: yard.ws });
      const asked = web.requests.map((r) => r.url);
      assert.ok(asked.includes(tool.asks), `${name}: ${done.stderr} ${asked}`);
      assert.ok(tool.fails || done.code === 0, `${name}: ${done.stderr}`);
      assert.doesNotMatch(done.stderr, /warn/i);
      tried += 1;
    }
  }
  assert.ok(tried > 0);
  assert.ok(proxy.verdicts.length >= tried);
  await proxy.close();
});
