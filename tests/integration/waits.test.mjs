// What a call of a session waits for: patterns over what was answered before, and screens that are whole.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { STUCK_MS } from './lib/client.mjs';
import { openDrive } from './lib/drive.mjs';

// Goes on once the file is there.
const WAITS = 'until [ -e go ]; do sleep .05; done';

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
