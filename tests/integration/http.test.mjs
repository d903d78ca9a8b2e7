// The HTTP client (src/http) with its program shellyard-http against servers of the test that
// answer well, badly, too much, slowly and not at all.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import path from 'node:path';
import { test } from 'node:test';
import { has, listen, makeYard, mustRun, program, readProc, waitFor } from './lib/client.mjs';

const top = path.dirname(program);
const driver = path.join(top, 'tests/integration/http_driver');
const helper = path.join(top, 'libexec/shellyard/shellyard-http');

/** One exchange: {code, status, type, why, body, ms}. */
async function post(url, { body = '{}', timeout = 20_000, max = 10_000, headers = [], env = {} } = {}) {
  const start = performance.now();
  const child = spawn(driver, [helper, url, String(timeout), String(max), ...headers],
    { stdio: ['pipe', 'pipe', 'inherit'], env: { PATH: process.env.PATH, ...env } });
  const chunks = [];
  child.stdout.on('data', (chunk) => chunks.push(chunk));
  child.stdin.end(body);
  const [exit] = await once(child, 'close');
  assert.equal(exit, 0);
  const all = Buffer.concat(chunks);
  const end = all.indexOf('\n');
  const [code, status, type, why] = all.subarray(0, end).toString().split('\t');
  return { code, status: Number(status), type, why, body: all.subarray(end + 1), ms: performance.now() - start };
}

/** A server that runs `answer(request, response, body)`; its URL. */
async function serve(t, answer, tls) {
  const listener = async (req, res) => {
    const chunks = [];
    for await (const chunk of req) {
      chunks.push(chunk);
    }
    answer(req, res, Buffer.concat(chunks));
  };
  const server = tls ? https.createServer(tls, listener) : http.createServer(listener);
  server.on('tlsClientError', () => {});
  return `${tls ? 'https' : 'http'}://127.0.0.1:${await listen(t, server)}/`;
}

/** A server of bytes: `talk(socket)` once a request has come; its URL. */
async function serveBytes(t, talk) {
  const sockets = [];
  const server = net.createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
    socket.once('data', () => talk(socket));
  });
  t.after(() => sockets.forEach((socket) => socket.destroy()));
  return `http://127.0.0.1:${await listen(t, server)}/`;
}

test('a request arrives as it was asked for, and so does its answer', async (t) => {
  const seen = [];
  const url = await serve(t, (req, res, body) => {
    seen.push({ req, body });
    res.writeHead(200, { 'Content-Type': 'application/json; charset=utf-8' });
    res.end(Buffer.from([0x7b, 0, 0xff, 0x0a, 0x7d]));
  });
  const body = Buffer.from([1, 0, 2, 0xff, 0x0a]);
  const got = await post(`${url}v1/x?y=z`, { body, headers: ['Authorization: Bearer k', 'Content-Type: a/b'] });
  assert.deepEqual({ code: got.code, status: got.status, type: got.type, why: got.why },
    { code: 'SY_E_OK', status: 200, type: 'application/json; charset=utf-8', why: '' });
  assert.deepEqual([...got.body], [0x7b, 0, 0xff, 0x0a, 0x7d]);
  assert.equal(seen.length, 1);
  assert.equal(seen[0].req.method, 'POST');
  assert.equal(seen[0].req.url, '/v1/x?y=z');
  assert.equal(seen[0].req.headers.authorization, 'Bearer k');
  assert.equal(seen[0].req.headers['content-type'], 'a/b');
  assert.deepEqual([...seen[0].body], [...body]);
});

test('a server\'s own errors are answers', async (t) => {
  const url = await serve(t, (req, res) => {
    res.statusCode = 500;
    res.end('broken');
  });
  const got = await post(url);
  assert.equal(got.status, 500);
  assert.equal(got.body.toString(), 'broken');
});

test('no redirect is followed', async (t) => {
  let asked = 0;
  const other = await serve(t, (req, res) => {
    asked++;
    res.end('secret kept');
  });
  const url = await serve(t, (req, res) => {
    res.writeHead(307, { Location: other });
    res.end();
  });
  const got = await post(url, { headers: ['x-api-key: k'] });
  assert.equal(got.status, 307);
  assert.equal(asked, 0);
  assert.equal((await post(other)).body.toString(), 'secret kept');
});

test('an answer that is none is told', async (t) => {
  for (const [bytes, what] of [['garbage\r\n\r\n', /HTTP\/0\.9/], ['', /[Ee]mpty reply/], ['HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf', /.../]]) {
    const url = await serveBytes(t, (socket) => socket.end(bytes));
    const got = await post(url);
    assert.ok(['SY_E_PARSE', 'SY_E_NOTFOUND'].includes(got.code), `${got.code} ${got.why}`);
    assert.match(got.why, what);
    assert.equal(got.body.length, 0);
  }
});

test('an answer may be as long as was asked for and no longer', async (t) => {
  const url = await serve(t, (req, res) => res.end('x'.repeat(5000)));
  assert.equal((await post(url, { max: 5000 })).body.length, 5000);
  const got = await post(url, { max: 4999 });
  assert.equal(got.code, 'SY_E_LIMIT');
  assert.match(got.why, /longer/);
});

test('an endless answer, and an endless head, are cut short', async (t) => {
  const endless = (head, more) => serveBytes(t, (socket) => {
    socket.write(head);
    const go = () => {
      while (socket.writable && socket.write(more)) { /* as fast as it takes them */ }
    };
    socket.on('drain', go);
    go();
  });
  const body = await post(await endless('HTTP/1.1 200 OK\r\n\r\n', 'y'.repeat(65536)));
  assert.equal(body.code, 'SY_E_LIMIT');
  const head = await post(await endless('HTTP/1.1 200 OK\r\n', `X: ${'y'.repeat(5000)}\r\n`));
  assert.equal(head.code, 'SY_E_LIMIT');
});

test('who says nothing, or too slowly, is not waited for', async (t) => {
  const silent = await serveBytes(t, () => {});
  const slow = await serveBytes(t, (socket) => {
    socket.write('HTTP/1.1 200 OK\r\n\r\n');
    const timer = setInterval(() => socket.write('.'), 20);
    socket.on('close', () => clearInterval(timer));
  });
  for (const url of [silent, slow]) {
    const got = await post(url, { timeout: 300 });
    assert.equal(got.code, 'SY_E_LIMIT');
    assert.match(got.why, /300 ms|timed out/);
    assert.ok(got.ms >= 290, `${got.ms} ms`);
  }
});

test('nobody there, no such host and no such URL have their sentences', async (t) => {
  const server = net.createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  assert.equal((await post(`http://127.0.0.1:${port}/`)).code, 'SY_E_NOTFOUND');
  assert.equal((await post('http://name.invalid/')).code, 'SY_E_NOTFOUND');
  for (const url of ['file:///etc/passwd', 'ftp://127.0.0.1/', 'http://user:word@127.0.0.1/', 'nonsense', 'gopher://127.0.0.1/']) {
    const got = await post(url);
    assert.equal(got.code, 'SY_E_ARG', url);
    assert.match(got.why, /http or https/);
  }
});

test('certificates are verified', async (t) => {
  if (!mustRun(t, has('openssl'), 'needs openssl')) {
    return;
  }
  const { ws } = makeYard();
  const make = (name, host) => {
    const files = { key: path.join(ws, `${name}.key`), cert: path.join(ws, `${name}.crt`) };
    execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=test',
      '-addext', `subjectAltName=${host}`, '-keyout', files.key, '-out', files.cert], { stdio: 'ignore' });
    return { file: files.cert, key: fs.readFileSync(files.key), cert: fs.readFileSync(files.cert) };
  };
  let asked = 0;
  const answer = (req, res) => {
    asked++;
    res.end('fine');
  };
  const good = make('good', 'IP:127.0.0.1');
  const url = await serve(t, answer, good);
  const refused = await post(url);
  assert.equal(refused.code, 'SY_E_DENIED');
  assert.match(refused.why, /certificate/i);
  assert.equal(asked, 0);
  const trusted = await post(url, { env: { SSL_CERT_FILE: good.file } });
  assert.equal(trusted.code, 'SY_E_OK', trusted.why);
  assert.equal(asked, 1);
  const other = make('other', 'DNS:example.org');
  const wrong = await post(await serve(t, answer, other), { env: { SSL_CERT_FILE: other.file } });
  assert.equal(wrong.code, 'SY_E_DENIED');
  assert.equal(asked, 1);
});

test('the proxy is the one of the usual variables, and no other', async (t) => {
  const urls = [];
  const proxy = await serve(t, (req, res) => {
    urls.push(req.url);
    res.end('by proxy');
  });
  const target = await serve(t, (req, res) => res.end('directly'));
  assert.equal((await post(target, { env: { http_proxy: proxy } })).body.toString(), 'by proxy');
  assert.deepEqual(urls, [target]);
  assert.equal((await post(target, { env: { http_proxy: proxy, no_proxy: '127.0.0.1' } })).body.toString(), 'directly');
  assert.equal((await post(target, { env: { HTTP_PROXY: proxy } })).body.toString(), 'directly');
});

test('no secret stands in the program\'s arguments or environment', async (t) => {
  const seen = [];
  const url = await serve(t, (req, res) => {
    for (const pid of fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
      const args = readProc(pid, 'cmdline');
      if (args.startsWith(helper)) {
        seen.push(args, readProc(pid, 'environ'));
      }
    }
    res.end();
  });
  await post(url, { headers: ['x-api-key: hidden-word'], body: 'hidden-body', env: { SECRET: 'hidden-env', no_proxy: 'x.test' } });
  assert.ok(seen.length >= 2);
  if (process.getuid() === 0) {
    assert.match(seen.join(), /no_proxy=x\.test/); // we can look
  }
  assert.doesNotMatch(seen.join(), /hidden/);
});

test('the program goes with whoever started it', async (t) => {
  let reached;
  const url = await serveBytes(t, (socket) => {
    reached = socket;
  });
  const child = spawn(driver, [helper, url, '60000', '100'], { stdio: ['pipe', 'ignore', 'inherit'] });
  child.stdin.end('{}');
  const socket = await waitFor(() => reached, 'the connection');
  const closed = once(socket, 'close');
  socket.resume();
  child.kill('SIGKILL');
  await closed;
});

test('a missing program is told at once', () => {
  try {
    execFileSync(driver, ['/nonexistent/shellyard-http', 'http://127.0.0.1/', '1000', '10'], { input: '', stdio: ['pipe', 'pipe', 'pipe'] });
    assert.fail('it should have failed');
  } catch (error) {
    assert.equal(error.status, 3);
    assert.match(error.stderr.toString(), /SY_E_NOTFOUND\tthe program shellyard-http is missing/);
  }
});
