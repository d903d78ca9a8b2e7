// What a call of a session waits for: input, wherever it is read, patterns over what was answered before, and screens that are whole; and what it leaves out.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { STUCK_MS } from './lib/client.mjs';
import { openDrive } from './lib/drive.mjs';

// Goes on once the file is there.
const WAITS = 'until [ -e go ]; do sleep .05; done';

// Reads below as many shells as its argument says.
const DEEP = `if [ $1 -gt 0 ]; then bash deep.sh $(($1 - 1)); exit; fi
read -p 'go? ' x; echo got $x
`;

for (const [how, cmd] of [
  ['by another thread', "/usr/bin/python3 -c \"import threading; threading.Thread(target=lambda: print('got', input('go? '))).start()\""],
  ['as the last of many', "for i in $(seq 20); do sleep 300 & done; bash -c 'read -p \"go? \" x; echo got $x; :'; kill $(jobs -p)"],
  ['far below others', 'bash deep.sh 8'],
]) {
  test(`a program that reads its terminal ${how} waits for input`, { timeout: STUCK_MS }, async (t) => {
    const s = await openDrive(t);

    fs.writeFileSync(path.join(s.yard.ws, 'deep.sh'), DEEP);
    const p = await s.run(cmd, { until: 'input', yield_time_ms: 30_000 });

    assert.deepEqual([p.last.reason, p.last.waiting_for_input], ['input', true], p.show());
    await p.type('on\r', { pattern: 'got on', yield_time_ms: 30_000 });
    await p.ends();
  });
}

// Has what it asks next from somebody else, soon after an answer.
const QUESTIONS = `import os, select, threading
r, w = os.pipe()
n = 0
print('q0:', flush=True)
while True:
    ready = select.select([0, r], [], [])[0]
    if 0 in ready:
        os.read(0, 100)
        threading.Timer(0.01, lambda: os.write(w, b'x')).start()
    if r in ready:
        os.read(r, 1)
        n += 1
        print(f'q{n}:', flush=True)
`;

test('a program that waits for more than its terminal is given a silence to ask on', { timeout: STUCK_MS }, async (t) => {
  const s = await openDrive(t);
  let early = 0;

  fs.writeFileSync(path.join(s.yard.ws, 'ask.py'), QUESTIONS);
  const p = await s.run('/usr/bin/python3 ask.py', { until: 'input', yield_time_ms: 30_000 });

  await p.see(/q0:/);
  for (let i = 1; i <= 20; i += 1) {
    await p.type('a\r', { until: 'input', yield_time_ms: 30_000 });
    early += p.last.output.includes(`q${i}:`) ? 0 : 1;
    await p.see((r) => r.output.includes(`q${i}:`), `question ${i}`);
  }
  // All of them were, without one. A machine may be so busy that the silence is over before.
  assert.ok(early <= 10, `${early} of 20 answers came before the question`);
});

const FORMATS = `import os, sys, tty
print('at work', flush=True)
tty.setraw(0)
print(end=open('page').read(), flush=True)
os.read(0, 1)
`;

test('a program that reads keys is not waiting before it reads', { timeout: STUCK_MS }, async (t) => {
  const s = await openDrive(t);
  const page = path.join(s.yard.ws, 'page');

  assert.equal(spawnSync('mkfifo', [page]).status, 0);
  fs.writeFileSync(path.join(s.yard.ws, 'formats.py'), FORMATS);
  const p = await s.run('/usr/bin/python3 formats.py', { pattern: 'at work', yield_time_ms: 30_000 });
  const written = s.tool('exec_command', { cmd: 'sleep .1; echo the page >page', until: 'exit' });

  assert.match((await p.type('', { until: 'input', yield_time_ms: 30_000 })).output, /the page/);
  assert.equal(p.last.reason, 'input', p.show());
  assert.equal((await written).exit_code, 0);
});

for (const tty of [false, true]) {
  test(`a pattern goes on with the line that an earlier answer began (tty ${tty})`, { timeout: STUCK_MS }, async (t) => {
    const { yard, tool } = await openDrive(t);
    const begin = (cmd) => tool('exec_command', { cmd, tty, pattern: '\\.\\.\\. $', yield_time_ms: 30_000 });
    const go = (args) => tool('write_stdin', { yield_time_ms: 30_000, ...args });
    const first = await begin(`printf 'Compiling foo... '; ${WAITS}; echo done; exec sleep 300`);
    assert.equal(first.reason, 'pattern', first.text);

    // What the earlier answer gave is no news.
    const same = await go({ session_id: first.session_id, pattern: 'Compiling', yield_time_ms: 300 });
    assert.equal(same.reason, 'timeout', same.text);
    fs.writeFileSync(path.join(yard.ws, 'go'), '');
    const rest = await go({ session_id: first.session_id, pattern: 'Compiling foo\\.\\.\\. done' });
    assert.equal(rest.reason, 'pattern', rest.text);
    assert.equal(rest.output.trim(), 'done');
    fs.rmSync(path.join(yard.ws, 'go'));

    const second = await begin(`printf 'abc... '; ${WAITS}; printf 'def\\ndef\\n'; exec sleep 300`);
    const line = go({ session_id: second.session_id, pattern: '^def' });
    fs.writeFileSync(path.join(yard.ws, 'go'), '');
    assert.equal((await line).output.replaceAll('\r', ''), 'def\ndef\n');
  });
}

test('a screen that is not whole yet is not stable', { timeout: STUCK_MS }, async (t) => {
  const s = await openDrive(t);
  const frame = (text) => `printf '\\033[?2026h${text}'; sleep .5; printf ' whole\\033[?2026l'`;
  const p = await s.run(`${frame('half')}; exec sleep 300`, { until: 'stable', idle_ms: 100, yield_time_ms: 30_000 });

  assert.equal(p.last.reason, 'stable', p.show());
  assert.match(p.last.output, /half whole/, p.show());

  // A program that never ends its frame keeps nobody waiting.
  const stuck = await s.run("printf '\\033[?2026hhalf'; exec sleep 300", { until: 'stable', idle_ms: 100, yield_time_ms: 30_000 });
  assert.equal(stuck.last.reason, 'stable', stuck.show());
});

for (const [how, cmd, args] of [
  ['of one that has ended', 'seq 6000', {}],
  ['of one that runs', 'seq 6000; echo end; exec sleep 300', { pattern: '^end' }],
  ['of a terminal', "seq 6000 | sed 's/.*/\\x1b[32m&\\x1b[0m/'; echo end; exec sleep 300", { tty: true, pattern: '^end' }],
  ['without lines', "printf '%s ' $(seq 6000)", {}],
  ['without lines and in colours', "printf '\\033[32m%s\\033[m ' $(seq 6000)", { tty: true, cols: 1000 }],
]) {
  test(`what was left out in the middle is read by following the hints, ${how}`, { timeout: STUCK_MS }, async (t) => {
    const { tool } = await openDrive(t);
    let r = await tool('exec_command', { cmd, yield_time_ms: 30_000, ...args });
    let text = '';

    for (let i = 0; i < 30; i++) {
      // Where it has no lines, a word may be cut.
      text += r.output.split(/\n?\[\.\.\. /)[0] + (cmd.startsWith('seq') ? '\n' : '');
      const next = r.next?.match(/"session_id":"([^"]+)".*"since_seq":(\d+)/);
      if (!next) {
        break;
      }
      assert.match(r.text, /^Next: write_stdin .*"since_seq":\d+.* reads what was left out$/m);
      r = await tool('write_stdin', { session_id: next[1], since_seq: Number(next[2]), yield_time_ms: 250 });
    }
    assert.ok(!r.output.includes('omitted of'), r.output);
    const seen = new Set(text.split(/\s+/));
    assert.deepEqual(Array.from({ length: 6000 }, (_, i) => String(i + 1)).filter((n) => !seen.has(n)), []);
  });
}

for (const [how, cmd, args] of [
  ['of one that has ended', 'seq 120000', {}],
  ['of a terminal', 'seq 120000; echo end; exec sleep 300', { tty: true, pattern: '^end' }],
]) {
  test(`following the hints leads over what was not kept, ${how}`, { timeout: STUCK_MS }, async (t) => {
    const { tool } = await openDrive(t, { args: ['-c', 'sessions.keep_bytes=131072'] });
    let r = await tool('exec_command', { cmd, yield_time_ms: 30_000, max_output_tokens: 5000, ...args });
    const seen = new Set();
    let from = 0;

    for (let i = 0; i < 40; i++) {
      r.output.split(/\n?\[\.\.\. /)[0].split(/\s+/).forEach((n) => seen.add(Number(n)));
      const next = r.next?.match(/"session_id":"([^"]+)".*"since_seq":(\d+)/);
      if (!next) {
        break;
      }
      assert.ok(Number(next[2]) > from, `${next[2]} behind ${from}`);
      from = Number(next[2]);
      r = await tool('write_stdin', { session_id: next[1], since_seq: from, yield_time_ms: 250, max_output_tokens: 5000 });
    }
    assert.ok(!r.output.includes('omitted of'), r.output);
    for (let i = 0; i < 3000; i++) {
      assert.ok(seen.has(i + 1), `${i + 1} is not there`);
      assert.ok(seen.has(120000 - i), `${120000 - i} is not there`);
    }
    assert.ok(!seen.has(60000));
  });
}
