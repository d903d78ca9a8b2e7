// The two forms of an answer over MCP: what the structured one tells, the text tells too.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';

import { call, makeYard, startMcp } from './lib/client.mjs';

const limit = { timeout: 60_000 };

const line = (label, value = '') => `\n${label}: ${value}`;
const whole = (label, value) => `${line(label, value)}\n`;

/** What stands in the text for each member of an answer; a member that is not here fails the test. */
const LINES = {
  status: (v) => (v === 'exited' || v === 'running' ? '' : whole('Status', v)),
  exit_code: (v) => whole('Exit code', v),
  signal: (v, all) => whole('Signal', `${v} (${all.signal_name})`),
  timed_out: (v) => (v ? '\ncommand timed out after ' : ''),
  output: (v, all) => (all.timed_out ? `\n${v}` : `\nOutput:\n${v}`),
  session_id: (v) => `\nProcess running with session ID ${v}\n`,
  reason: (v) => whole('Reason', v),
  next_seq: (v) => whole('Next seq', v),
  omitted_bytes: (v) => whole('Omitted', `${v} bytes`),
  screen: (v) => `${line('Screen', `${v.rows} rows, ${v.cols} columns${v.alt_screen ? ', alternate screen' : ''}, seq ${v.seq}\n`)}`
    + `Cursor: row ${v.cursor.row}, column ${v.cursor.col}${v.cursor.visible ? '' : ', hidden'}\n`
    + (v.title ? `Title: ${v.title}\n` : '')
    + (v.highlighted ?? []).map((h) => `Highlighted: row ${h.row}, column ${h.col}, ${h.text}\n`).join(''),
  waiting_for_input: () => whole('Waiting for input', 'yes'),
  echo_off: () => '\nIt waits for something that is not shown: a password?\n',
  pending_input: (v) => whole('Pending input', `${v} bytes`),
  next: (v) => whole('Next', v),
  truncated: (v, all) => whole('Total output', `${all.total_bytes} bytes, ${all.total_lines} lines (truncated)`),
  wall_ms: () => line('Wall time'),
  invalid_utf8: () => '\nInvalid UTF-8 was replaced\n',
  binary: () => '\nThe output is binary\n',
  ended_background: (v) => whole('Ended in the background', v),
  limit: (v, all) => (all.timed_out ? '' : line('Limit')), // the timeout has its line
  denials: (v) => v.map((d) => d.object),
  escalation: (v) => `\n[sandbox: ${v}]\n`,
  approval: (v) => line('Approval', v.decision) + (v.id ? `, id ${v.id}` : ''),
  network_hosts: (v) => whole('Network hosts', v.join(' ')),
  hooks: (v) => [v.rewritten_by ? whole('Rewritten by hook', v.rewritten_by) : '', v.allowed_by ? whole('Allowed by hook', v.allowed_by) : ''],
  note: (v) => whole('Note', v),
  error: (v) => whole('Error', v),
  sandbox: (v) => line('Sandbox', v.mode),
};
/** Names of these, or told by them. */
const NEED_NONE = ['process_id', 'signal_name', 'total_bytes', 'total_lines'];

const seen = new Set();

function compare(answer) {
  const text = `\n${answer.content[0].text}`;
  for (const [key, value] of Object.entries(answer.structuredContent)) {
    if (!NEED_NONE.includes(key)) {
      assert.ok(key in LINES, `the text has no line for '${key}'`);
      [LINES[key](value, answer.structuredContent)].flat().forEach((wanted) => assert.ok(text.includes(wanted), `${key}: ${JSON.stringify(wanted)} is not in ${text}`));
    }
    seen.add(key);
  }
  return answer.structuredContent;
}

test('whatever the structured form of an answer tells, its text tells', limit, async (t) => {
  const yard = makeYard();
  const server = await startMcp({ cwd: yard.ws, env: yard.env, settings: { 'shell.path': '/bin/bash', 'tools.shell_type': 'all', 'approval.hold_ms': 0 } });
  t.after(() => server.close());
  const tool = async (name, args) => compare(await call(server.client, name, args));
  const run = (command, more) => tool('shell_command', { command, ...more });
  const typed = (id, input, more) => tool('write_stdin', { session_id: id, chars: input, yield_time_ms: 30_000, ...more });

  fs.mkdirSync(path.join(yard.ws, 'kept'));
  await run('echo hi');
  await run('kill -9 $$');
  await run('echo before; sleep 1000', { timeout_ms: 300 });
  await run('seq 1 5000; printf "\\377"', { max_output_tokens: 100 });
  await run('printf "\\0\\1\\2"; sleep 1000 & echo');
  assert.ok((await run(`touch ${path.join(yard.outside, 'f')}`)).denials.length === 1);
  assert.equal((await run('rm -rf kept')).status, 'pending_approval');
  await run('true', { workdir: path.join(yard.ws, 'gone') });

  const shell = await tool('exec_command', { command: ['bash', '--norc', '-i'], tty: true, until: ['prompt'], yield_time_ms: 30_000 });
  const id = shell.session_id;
  assert.ok(shell.waiting_for_input);
  await typed(id, 'printf "\\033]0;a title\\007\\033[7mbar\\033[m\\n"\n', { until: ['prompt'] });
  const screen = await typed(id, '', { view: 'screen', until: ['prompt'] });
  assert.deepEqual([screen.screen.title, screen.screen.highlighted.length], ['a title', 1]);
  assert.equal(screen.total_lines, screen.output.split('\n').filter((row, i, all) => row !== '' || i < all.length - 1).length);
  await typed(id, 'printf "\\033[?1049h\\033[?25l\\033[5;6Hx"; read -s -p ask y\n', { view: 'screen', pattern: 'xask' });
  await typed(id, '\nprintf "\\033[?1049l\\033[?25h"; exit 3\n', { until: ['exit'] });
  const asleep = await tool('exec_command', { cmd: 'echo ready; sleep 1000', stdin: 'pipe', pattern: 'ready', yield_time_ms: 30_000 });
  await typed(asleep.session_id, 'x'.repeat(100_000), { yield_time_ms: 250 });
  await tool('kill_session', { session_id: asleep.session_id });

  // All that the schemas promise was there, but for what has a test of its own.
  const { tools } = await server.client.listTools();
  const promised = new Set(['exec_command', 'write_stdin', 'kill_session', 'shell_command', 'shell'].flatMap((name) => Object.keys(tools.find((x) => x.name === name).outputSchema.properties)));
  promised.delete('sessions'); // of the action list alone, whose text is the list
  assert.deepEqual([...promised].filter((key) => !seen.has(key)), []);
  assert.deepEqual(['screen', 'echo_off', 'pending_input', 'ended_background', 'binary', 'truncated'].filter((key) => !seen.has(key)), []);
});
