// What a person's shell reads first is no part of a command.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { STUCK_MS, call, has, makeYard, mustRun, program, startMcp, textOf } from './lib/client.mjs';
import { openDrive } from './lib/drive.mjs';

const ZSHENVS = {
  'executes another shell': 'exec sh\n',
  'ends the shell': 'exit 5\n',
  prints: 'echo NOISE; echo NOISE >&2\n',
  'resets PATH': 'export PATH=/nowhere\n',
  'stops the shell': 'kill -STOP $$\n',
  'leaves a job': 'sleep 1000 &\n',
  'makes an alias': 'alias echo=false\n',
  'sets options': 'setopt err_exit; set -- x; false\n',
};

for (const [what, text] of Object.entries(ZSHENVS)) {
  test(`a .zshenv that ${what} does not touch a command`, { timeout: STUCK_MS }, async (t) => {
    if (!mustRun(t, has('zsh'), 'no zsh here')) {
      return;
    }
    const { yard, tool } = await openDrive(t, { settings: { 'shell.path': '/usr/bin/zsh', 'shell.snapshot_timeout_ms': 500, 'tools.shell_type': 'all' } });
    fs.writeFileSync(path.join(yard.home, '.zshenv'), text);
    for (const login of [true, false]) {
      for (const [name, args] of [
        ['shell_command', { command: 'echo "hi $# $ZSH_NAME"; ls -d /; exit 3' }],
        ['exec_command', { cmd: 'echo "hi $# $ZSH_NAME"; ls -d /; exit 3', yield_time_ms: 10_000 }],
      ]) {
        const r = await tool(name, { ...args, login });

        assert.equal(r.output, 'hi 0 zsh\n/\n', `${name}, login ${login}: ${r.text}`);
        assert.equal(r.exit_code, 3);
        assert.equal(r.ended_background ?? 0, 0);
      }
    }
    // Also where the caller names it.
    for (const login of [true, false]) {
      const named = await tool('exec_command', { cmd: 'echo hi; exit 3', shell: 'zsh', login, yield_time_ms: 10_000 });
      assert.equal(named.output, 'hi\n', named.text);
      assert.equal(named.exit_code, 3);
    }
  });
}

test('what a .zshenv exports is there, and read where the caller runs zsh', { timeout: STUCK_MS }, async (t) => {
  if (!mustRun(t, has('zsh'), 'no zsh here')) {
    return;
  }
  const { yard, tool } = await openDrive(t, { settings: { 'shell.path': '/usr/bin/zsh', 'tools.shell_type': 'all' } });
  fs.writeFileSync(path.join(yard.home, '.zshenv'), 'export FROM_ENV=one; mine() { echo "ran $FROM_ENV"; }\n');

  assert.equal((await tool('shell_command', { command: 'echo "<$FROM_ENV>"', login: true })).output, '<one>\n');
  assert.equal((await tool('shell_command', { command: 'echo "<$FROM_ENV>"', login: false })).output, '<>\n');
  assert.equal((await tool('shell_command', { command: 'zsh -c mine', login: true })).output, 'ran one\n');
  assert.equal((await tool('shell', { command: ['zsh', '-c', 'mine'] })).output, 'ran one\n');
});

test('a server that ssh started keeps ~/.bashrc out of commands', { timeout: STUCK_MS }, async (t) => {
  const env = { SSH_CLIENT: '127.0.0.1 40000 22', SHLVL: '0' };
  const { yard, tool } = await openDrive(t, { env, settings: { 'shell.path': '/bin/bash', 'tools.shell_type': 'all' } });
  fs.writeFileSync(path.join(yard.home, '.bashrc'), 'echo NOISE; exit 5\n');

  for (const login of [true, false]) {
    assert.equal((await tool('shell_command', { command: 'echo hi; exit 3', login })).output, 'hi\n');
    assert.equal((await tool('exec_command', { cmd: 'echo hi; exit 3', login, yield_time_ms: 10_000 })).output, 'hi\n');
  }
  assert.equal((await tool('shell', { command: ['bash', '-c', 'echo hi'], env: { SHLVL: '0' } })).output, 'hi\n');
});

test('a configured shell that can not be one is told with its key, and where that is set', { timeout: STUCK_MS }, async (t) => {
  const yard = makeYard();
  const dir = path.join(yard.home, '.config/shellyard');
  fs.mkdirSync(dir, { recursive: true, mode: 0o700 });
  fs.writeFileSync(path.join(dir, 'config.yaml'), 'tools:\n  shell_type: all\nshell:\n  path: /nope\n', { mode: 0o600 });
  const told = /shell\.path \(.*shellyard\/config\.yaml:4\): '\/nope' is no shell .*it knows bash.*; give the path of one/;
  const server = await startMcp({ cwd: yard.ws, env: yard.env });
  t.after(() => server.close());
  assert.match(textOf(await call(server.client, 'shell_command', { command: 'true' })), told);
  const args = { cwd: yard.ws, env: yard.env, encoding: 'utf8' };
  assert.match(spawnSync(program, ['doctor'], args).stdout, told);
  assert.match(spawnSync(program, ['explain', '--script', 'true'], args).stderr, told);
  assert.match(spawnSync(program, ['explain', '-c', 'shell.path=/x/bash', '--script', 'true'], args).stderr,
    /shell\.path \(-c shell\.path\): the configured shell '\/x\/bash' is no executable file; give the path of one/);
});

test('another shell than the user has reads its own files with a login alone', { timeout: STUCK_MS }, async (t) => {
  if (!mustRun(t, has('zsh'), 'no zsh here')) {
    return;
  }
  const { yard, tool } = await openDrive(t, { settings: { 'shell.path': '/bin/bash' } });
  fs.writeFileSync(path.join(yard.home, '.zshenv'), 'echo ENV\n');
  const ask = (login) => tool('exec_command', { cmd: 'echo $ZSH_NAME', shell: 'zsh', login, yield_time_ms: 10_000 });
  assert.equal((await ask(false)).output, 'zsh\n');
  assert.equal((await ask(true)).output, 'ENV\nzsh\n');
});
