// The truth about how a command ended and what it wrote (A07, A08, A10-A13).
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { eachFront, execCli, isSanitized, makeYard, statusKb } from './lib/client.mjs';

const REPLACEMENT = '\ufffd';

/** What `exec` passes through, byte for byte. */
async function streamed(yard, script) {
  return execCli(['-s', 'workspace-write', '-C', yard.ws, '--', 'bash', '-c', script], { cwd: yard.ws, env: yard.env });
}

eachFront('A07 death by a signal is no success', async (t, { name, open }) => {
  const front = await open();
  const r = await front.run('echo before; kill -9 $$');

  assert.equal(r.status, 'signaled');
  assert.equal(r.exitCode, 137);
  assert.equal(r.signal, 9);
  assert.equal(r.output, 'before\n');
  assert.equal(r.isError, false, 'the command failed, not the tool');
  if (name === 'exec') {
    assert.equal(r.cliStatus, 137);
  } else {
    assert.match(r.text, /137/);
    assert.match(r.text, /SIGKILL/);
  }
});

eachFront('a limit of file sizes ends nobody but the command that meets it', async (t, { yard, open }) => {
  // 10 KiB: neither the database nor this command's file has room.
  const front = await open({ wrap: ['bash', '-c', 'ulimit -f 10; exec "$@"', 'bash'] });
  const met = await front.run('head -c 100000 /dev/zero > big');
  assert.equal(met.exitCode, 128 + 25, met.output);
  assert.equal(fs.statSync(path.join(yard.ws, 'big')).size, 10 * 1024);
  const next = await front.run('echo still; grep SigIgn /proc/self/status');
  assert.match(next.output, /^still\nSigIgn:\t0+$/m, 'and commands ignore no signal');
});

eachFront('A07 how a command ends is known also where SIGCHLD was ignored from the start', async (t, { open }) => {
  const front = await open({ wrap: ['env', '--ignore-signal=CHLD'] });

  const failed = await front.run('true | cat; exit 3', { timeoutMs: 5000 });
  assert.equal(failed.status, 'exited');
  assert.equal(failed.exitCode, 3);
  const killed = await front.run('kill -9 $$', { timeoutMs: 5000 });
  assert.equal(killed.status, 'signaled');
  assert.equal(killed.exitCode, 137);
  const ignored = await front.run('grep SigIgn /proc/self/status', { timeoutMs: 5000 });
  assert.match(ignored.output, /^SigIgn:\t0+$/m, 'the command ignores no signal');
});

eachFront('A08 a pipeline has the status of its last command, and nobody claims more', async (t, { open }) => {
  const front = await open();
  const r = await front.run("sh -c 'echo FAIL; exit 3' | tail -1");

  assert.equal(r.exitCode, 0);
  assert.equal(r.output, 'FAIL\n');
  assert.doesNotMatch(r.text, /succe/i);
});

eachFront('A08 pipefail is not switched on behind the back', async (t, { open }) => {
  const front = await open();
  const r = await front.run('yes | head -1');

  assert.equal(r.exitCode, 0);
  assert.equal(r.output, 'y\n');
});

eachFront('A10 a character that comes in two writes stays whole', async (t, { open }) => {
  const front = await open();
  const r = await front.run("printf '\\xf0'; sleep 0.3; printf '\\x9f\\x9a\\x80 ok\\n'");

  assert.equal(r.output, '🚀 ok\n');
  assert.ok(!r.text.includes(REPLACEMENT));
});

test('A10 exec passes a split character through', async (t) => {
  const r = await streamed(makeYard(), "printf '\\xf0'; sleep 0.3; printf '\\x9f\\x9a\\x80 ok\\n'");

  assert.equal(r.code, 0);
  assert.deepEqual(r.bytes, Buffer.from('🚀 ok\n'));
});

eachFront('A11 bytes that are not UTF-8 are replaced, and it is said', async (t, { name, open }) => {
  const front = await open();
  const r = await front.run("printf 'a\\377\\376b\\n'");

  assert.equal(r.exitCode, 0);
  assert.match(r.output, /^a.*b\n$/u);
  assert.ok(r.output.includes(REPLACEMENT));
  assert.equal(r.totalBytes, 5);
  assert.equal(r.raw.invalid_utf8, true);
  if (name === 'mcp') {
    assert.match(r.text, /invalid/i);
  }
});

eachFront('A11 one NUL does not hide the rest', async (t, { open }) => {
  const front = await open();
  const r = await front.run("printf '\\0hello\\n'");

  assert.equal(r.exitCode, 0);
  assert.match(r.output, /hello/);
  assert.equal(r.totalBytes, 7);
});

eachFront('A11 a binary file gives bounded text and a note', async (t, { name, open }) => {
  const front = await open();
  const r = await front.run('cat /bin/true');

  assert.equal(r.exitCode, 0);
  assert.equal(r.raw.binary, true);
  assert.ok(r.totalBytes > 10_000);
  if (name === 'mcp') {
    assert.ok(Buffer.byteLength(r.text) <= 16_384, `${Buffer.byteLength(r.text)} bytes of text`);
    assert.match(r.text, /binary/i);
  }
});

test('A11 exec passes any bytes through', async (t) => {
  const r = await streamed(makeYard(), "printf 'a\\377\\376b\\n\\0hello\\n'");

  assert.deepEqual(r.bytes, Buffer.from('61fffe620a0068656c6c6f0a', 'hex'));
});

eachFront('A12 a carriage return never joins two texts', async (t, { name, open }) => {
  const front = await open();
  const r = await front.run("printf 'start\\rone\\rtwo\\n'");

  assert.doesNotMatch(r.output, /startone|onetwo/);
  assert.match(r.output, name === 'mcp' ? /^(twort|two)\n$/ : /^start\rone\rtwo\n$/);
  assert.equal(r.totalBytes, 14);
});

eachFront('A13 memory does not grow with output', async (t, { name, open }) => {
  const front = await open();
  let peakKb = 0;
  let sampler;
  let beforeKb = 2048; // of a fresh `exec`
  if (name === 'mcp') {
    beforeKb = statusKb(front.pid, 'VmHWM');
  } else {
    front.onStart = (child) => {
      sampler = setInterval(() => {
        try {
          peakKb = Math.max(peakKb, statusKb(child.pid, 'VmHWM'));
        } catch {
          // It has ended.
        }
      }, 20);
    };
  }
  t.after(() => clearInterval(sampler));
  const r = await front.run('seq 1 20000000', { timeoutMs: 100_000 });

  if (name === 'mcp') {
    peakKb = statusKb(front.pid, 'VmHWM');
  }
  assert.equal(r.exitCode, 0);
  assert.equal(r.totalBytes, 168_888_897);
  assert.equal(r.truncated, true);
  assert.ok(r.output.startsWith('1\n2\n'), 'the beginning is kept');
  assert.ok(r.output.endsWith('20000000\n'), 'the end is kept');
  assert.ok(peakKb > 0);
  if (!isSanitized) {
    assert.ok(peakKb - beforeKb < 16 * 1024, `grew from ${beforeKb} to ${peakKb} kB`);
  }
});
