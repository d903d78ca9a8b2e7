// The command line itself: what its verbs print, how they end, and that the manual pages tell all of
// it. exec.test.mjs has `exec`.
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';
import { execCli, has, makeYard, mustRun, processesOf, program, waitFor } from './lib/client.mjs';
import { hasSystem, underYama } from './lib/system.mjs';

const top = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const limit = { timeout: 120_000 };

/** Any verb, to its end. */
function run(yard, args, { input = '', env = {}, cwd = yard.ws } = {}) {
  return spawnSync(program, args, {
    cwd, env: { ...yard.env, ...env }, input, encoding: 'utf8', timeout: 60_000, maxBuffer: 1 << 28,
  });
}

const exec = (yard, args, options) => execCli(args, { cwd: yard.ws, env: yard.env, ...options });

test('with few descriptors servers say so, and are not aborted', limit, () => {
  const yard = makeYard();
  let refused = 0;
  for (const verb of ['mcp', 'proto']) {
    for (let n = 5; n <= 16; n++) {
      const r = spawnSync('sh', ['-c', `ulimit -n ${n}; exec "$0" ${verb}`, program],
        { cwd: yard.ws, env: yard.env, input: '', encoding: 'utf8' });
      assert.equal(r.signal, null, `${verb} with ${n}`);
      if (r.status !== 0) {
        refused++;
        assert.match(r.stderr, /Too many open files/);
      }
    }
  }
  assert.ok(refused > 0);
});

test('without a command it says how to use it, and fails', limit, (t) => {
  const yard = makeYard();
  const bare = run(yard, []);
  assert.equal(bare.status, 2);
  assert.match(bare.stdout, /^Usage: shellyard COMMAND/);
  assert.match(run(yard, ['--version']).stdout, /^shellyard \d+\.\d+\.\d+\n$/);
  assert.equal(run(yard, ['--help']).status, 0);
  const wrong = run(yard, ['docter']);
  assert.equal(wrong.status, 2);
  assert.match(wrong.stderr, /unknown command 'docter'; did you mean 'doctor'\?/);
  const sub = run(yard, ['sandbox', 'chek']);
  assert.equal(sub.status, 2);
  assert.match(sub.stderr, /did you mean 'check'\?/);
});

test('an error quotes what it was given visibly, in one line', limit, (t) => {
  const yard = makeYard();
  for (const [args, shown] of [
    [['a\u001b[31mb'], /unknown command 'a\\x1b\[31mb'/],
    [['exec', '--\u202ex'], /unknown option '--\\u\{202E\}x'/],
    [['exec', '-C', '/no\nshellyard: all is well', '--', 'true'], /'\/no\\x0ashellyard: all is well': No such file/],
    [['exec', '-C', '/né', '--', 'true'], /'\/né': No such file/],
    [['approvals', 'approve', 'a\u0007'], /begins with 'a\\x07'/],
    [['rules', 'import', '\u200b.rules'], /no file '\\u\{200B\}\.rules'/],
  ]) {
    const { status, stderr } = run(yard, args);
    assert.notEqual(status, 0, args.join(' '));
    assert.match(stderr, shown);
    assert.match(stderr, /^shellyard: [^\n]*\n$/);
  }
});

test('sandbox check tells every feature and ends with 0 where the policy holds', limit, (t) => {
  const yard = makeYard();
  const r = run(yard, ['sandbox', 'check', '--json']);
  const o = JSON.parse(r.stdout);
  assert.equal(o.can_hold_workspace_write, r.status === 0);
  assert.ok(o.landlock_abi >= 1);
  for (const [name, feature] of Object.entries(o.features)) {
    assert.match(feature.state, /^(enforced|emulated|absent)$/, name);
  }
  const text = run(yard, ['sandbox', 'check']);
  assert.match(text.stdout, /fs_write\s+enforced/);
  for (const missing of o.missing_landlock) {
    assert.ok(text.stdout.includes(`missing: ${missing.adds} (Landlock ABI ${missing.abi}, Linux ${missing.kernel})`));
  }
});

test('sandbox check never calls missing what it says is enforced', limit, (t) => {
  const yard = makeYard();
  const look = (...words) => {
    const o = JSON.parse(run(yard, ['sandbox', 'check', '--json', ...words]).stdout);
    const text = run(yard, ['sandbox', 'check', ...words]).stdout;
    const missing = o.missing_landlock.map((m) => m.adds);
    for (const [abi, feature, adds] of [
      [3, 'fs_truncate', 'truncate(2)'], [4, 'network', 'TCP'], [5, 'device_ioctl', 'ioctl'], [6, 'signal_scope', 'signals'],
      [6, 'unix_abstract', 'abstract Unix sockets'], [9, 'unix_path', 'named Unix sockets'],
    ]) {
      const isMissing = o.landlock_abi < abi && o.features[feature].state === 'absent';
      assert.equal(missing.some((m) => m.startsWith(adds)), isMissing, `${feature} is ${o.features[feature].state}`);
      assert.equal(text.includes(`missing: ${adds}`), isMissing, text);
    }
  };
  look();
  // With the network on nothing stands in for the newer Landlock.
  look('-c', 'sandbox.network_access=true');
});

test('sandbox check says one thing of what can not be denied to read, and what nobody tells', limit, (t) => {
  const yard = makeYard();
  const secret = path.join(yard.ws, 'secret');
  fs.writeFileSync(secret, 'x');
  const look = (...words) => run(yard, ['sandbox', 'check', '-c', 'sandbox.tier=no-namespace', ...words]);
  const denied = ['-c', `sandbox.deny_read=["${secret}"]`];
  const text = look(...denied);
  assert.equal(text.status === 0, false);
  assert.match(text.stdout, /can NOT be held: '.*secret' lies below a writable root/);
  assert.match(text.stdout, /so no command runs here/);
  assert.match(text.stdout, /^ {2}deny_read +absent/m);
  assert.match(text.stdout, /^ {2}fs_write +enforced/m, 'the control: what is not to blame');
  assert.doesNotMatch(text.stdout, /see 'error'/);
  assert.equal(JSON.parse(look('--json', ...denied).stdout).features.deny_read.state, 'absent');
  assert.match(look().stdout, /^ {2}deny_read +enforced/m, 'the control: without it');
  // A refusal that the command hides is told by mounts, by the audit log, or with report: full.
  assert.equal(/hidden refusals are not told/.test(look().stdout), /audit_records are not read/.test(look().stdout));
  assert.doesNotMatch(look('-c', 'sandbox.report=full').stdout, /hidden refusals/);
});

test('sandbox plan prints the plan of each platform', limit, (t) => {
  const yard = makeYard();
  const plan = (...words) => run(yard, ['sandbox', 'plan', ...words]);
  const linux = plan('--json');
  const told = JSON.parse(linux.stdout);
  assert.equal(told.platform, 'linux');
  assert.equal(linux.status, told.refused ? 1 : 0);

  const mac = plan('--platform', 'macos', '--json', '-C', '/tmp/w (1)', '--', 'make', '-j2');
  const seatbelt = JSON.parse(mac.stdout);
  assert.equal(mac.status, 0);
  assert.deepEqual(Object.keys(seatbelt.features), Object.keys(told.features));
  assert.ok(seatbelt.parameters.includes('CWD=/private/tmp/w (1)'));
  assert.match(seatbelt.profile, /^\(version 1\)\n\(deny default\)\n/);
  assert.ok(!seatbelt.profile.includes('w (1)'));
  assert.deepEqual(seatbelt.command.slice(0, 3), ['/usr/bin/sandbox-exec', '-p', seatbelt.profile]);
  assert.deepEqual(seatbelt.command.slice(-2), ['make', '-j2']);
  assert.ok(seatbelt.command_env.includes('CODEX_SANDBOX=seatbelt'));

  const windows = ['--platform', 'windows', '--json', '-C', 'C:\\w'];
  const refused = plan(...windows);
  assert.equal(refused.status, 1);
  assert.match(JSON.parse(refused.stdout).refused, /network off/);
  const open = plan(...windows, '-c', 'sandbox.network_access=true');
  const token = JSON.parse(open.stdout);
  assert.equal(open.status, 0);
  assert.ok(token.token.flags.includes('WRITE_RESTRICTED'));
  assert.equal(token.acl_edits[0].path, 'C:\\w');
  assert.deepEqual(Object.keys(token.features), Object.keys(told.features));

  assert.match(plan('--platform', 'macos').stdout, /^platform: macos\n[^]*\nprofile:\n\(version 1\)\n/);
  assert.equal(plan('--platform', 'plan9').status, 2);
  assert.equal(plan('true').status, 2);
  assert.equal(plan('--platform', 'windows', '-C', 'w').status, 2);
});

test('sandbox explain says what exec then does', limit, async (t) => {
  const yard = makeYard();
  for (const [file, mode] of [[yard.outside, 'workspace-write'], [yard.ws, 'workspace-write'], [yard.ws, 'read-only']]) {
    const target = path.join(file, 'probe');
    const told = run(yard, ['sandbox', 'explain', '--json', '-s', mode, 'write', target]);
    const o = JSON.parse(told.stdout);
    const done = await exec(yard, ['-s', mode, '--', 'sh', '-c', 'echo x > "$1"', 'sh', target]);
    assert.equal(o.allowed, done.code === 0, target);
    assert.equal(told.status, o.allowed ? 0 : 1);
    assert.ok(o.rule.length > 0);
  }
  assert.equal(run(yard, ['sandbox', 'explain', 'connect', 'example.com:443']).status, 1);
  assert.equal(run(yard, ['sandbox', 'explain', 'read', '/etc/hosts']).status, 0);
  // Where nothing runs, nothing is allowed: it says what exec says.
  const missing = ['-c', 'sandbox.writable_roots=["/no-such"]'];
  const nothing = run(yard, ['sandbox', 'explain', ...missing, 'write', 'f']);
  assert.equal(nothing.status, 125);
  assert.equal(nothing.stderr, (await exec(yard, [...missing, '--', 'true'])).stderr);
  for (const words of [['sandbox', 'explain', '-C', '/no-such', 'write', 'f'], ['explain', '-C', '/no-such', 'true']]) {
    const lost = run(yard, words);
    assert.equal(lost.status, 2, lost.stderr);
    assert.match(lost.stderr, /'\/no-such'/);
  }
  const wrong = run(yard, ['sandbox', 'explain', 'exec', '/bin/true']);
  assert.equal(wrong.status, 2);
  assert.match(wrong.stderr, /right are read, write, create, delete, rename, truncate, chmod, connect/);
});

test('config show tells values and sources; config keys are all in the manual page', limit, (t) => {
  const yard = makeYard();
  const dir = path.join(yard.home, '.config/shellyard');
  fs.mkdirSync(dir, { recursive: true });
  fs.writeFileSync(path.join(dir, 'config.yaml'), 'log:\n  level: debug\n');
  const shown = run(yard, ['config', 'show', '-c', 'sandbox.mode=read-only']);
  assert.match(shown.stdout, /^sandbox\.mode: read-only\s+# .*-c/m);
  assert.match(shown.stdout, /^log\.level: debug\s+# .*config\.yaml/m);
  const page = fs.readFileSync(path.join(top, 'docs/man/shellyard-config.5'), 'utf8');
  const keys = JSON.parse(run(yard, ['config', 'keys', '--json']).stdout);
  assert.ok(keys.length > 15);
  for (const { key } of keys) {
    assert.match(page, new RegExp(`^\\.BR? ${key.replaceAll('.', '\\.')}\\b`, 'm'), key);
    assert.ok(run(yard, ['config', 'keys']).stdout.includes(key));
  }
  for (const word of page.match(/^\.BR? [a-z]+\.[a-z_]+\b/gm)) {
    assert.ok(keys.some((k) => k.key === word.split(' ')[1]), `${word} is no key`);
  }
});

test('doctor finds the sandbox, runs a command, and fails where the sandbox fails', limit, (t) => {
  const yard = makeYard();
  const r = run(yard, ['doctor', '--json']);
  const o = JSON.parse(r.stdout);
  const of = (name) => o.checks.find((c) => c.name === name);
  assert.equal(r.status, 0, r.stdout);
  assert.equal(o.ok, true);
  for (const name of ['program', 'configuration', 'sandbox', 'shell', 'a command', 'TMPDIR', 'rules', 'approvals']) {
    assert.equal(of(name).level, 'ok', name);
  }
  assert.equal(of('clients').level, 'warn');
  // What is said of the sandbox is what held the command.
  const tier = of('sandbox').text.split(',')[0];
  assert.ok(['full', 'no-namespace'].includes(tier), tier);
  assert.match(of('a command').text, new RegExp(`^'true' ran, ${tier}, `));
  const broken = run(yard, ['doctor'], { env: { TMPDIR: '/nonexistent' } });
  assert.equal(broken.status, 1);
  assert.match(broken.stdout, /^fail\s+TMPDIR/m);
  assert.match(broken.stdout, /fix: point TMPDIR/);
  fs.mkdirSync(path.join(yard.home, '.config/shellyard'), { recursive: true, mode: 0o700 });
  fs.writeFileSync(path.join(yard.home, '.config/shellyard/rules.yaml'), 'rules: [{}]\n', { mode: 0o600 });
  fs.mkdirSync(path.join(yard.home, '.local/state/shellyard'), { recursive: true });
  fs.chmodSync(path.join(yard.home, '.local/state/shellyard'), 0o755);
  fs.writeFileSync(path.join(yard.home, '.local/state/shellyard/shellyard.db'), '', { mode: 0o600 });
  const kept = run(yard, ['doctor']);
  assert.equal(kept.status, 1);
  assert.match(kept.stdout, /^fail\s+rules\s+.*rules\.yaml:1/m);
  assert.match(kept.stdout, /^fail\s+approvals\s+.*0755/m);
  const config = run(yard, ['doctor', '-c', 'sandbox.mode=no']);
  assert.equal(config.status, 1);
  assert.match(config.stdout, /^fail\s+configuration/m);
});

test('doctor fails where the state directory can not be made', limit, (t) => {
  const yard = makeYard();
  const file = path.join(yard.dir, 'file');
  fs.writeFileSync(file, '');
  const r = run(yard, ['doctor', '--json'], { env: { XDG_STATE_HOME: file } });
  const found = JSON.parse(r.stdout).checks.find((c) => c.name === 'approvals');
  assert.equal(r.status, 1);
  assert.equal(found.level, 'fail');
  assert.match(found.text, /the state directory '.*file\/shellyard'/);
});

test('doctor tells what Yama keeps from commands', limit, (t) => {
  if (!mustRun(t, hasSystem(), 'no mount namespaces here')) {
    return;
  }
  const yard = makeYard();
  const yama = (scope, args = []) => JSON.parse(underYama(yard, scope, ['doctor', '--json', ...args]).stdout)
    .checks.find((c) => c.name === 'yama');
  assert.match(yama(3).text, /^ptrace_scope is 3: commands can connect to no Unix socket of their own/);
  assert.equal(yama(3).level, 'warn');
  for (const scope of ['0', '1', '2']) {
    assert.equal(yama(scope), undefined, scope); // user 0 may do with 2 what others may not
  }
});

test('a workspace or TMPDIR as wide as the home is told, by doctor and at the start of a server', limit, (t) => {
  const yard = makeYard();
  const link = path.join(yard.dir, 'link');
  fs.symlinkSync(yard.home, link);
  const cases = [
    [{ cwd: yard.ws }, null, null],
    [{ cwd: '/' }, 'the whole file system', '-C DIR'],
    [{ cwd: yard.home }, 'your whole home directory', 'sandbox.mode'],
    [{ cwd: yard.dir }, 'all that your home directory is in', '-C DIR'],
    [{ cwd: yard.ws, env: { TMPDIR: '/' } }, null, null], // which is no writable root
    [{ cwd: yard.ws, env: { TMPDIR: link } }, 'your whole home directory', 'sandbox.exclude_tmpdir_env_var'],
  ];
  for (const [options, extent, fix] of cases) {
    for (const verb of ['mcp', 'proto']) {
      const r = run(yard, [verb], options);
      assert.equal(r.status, 0, r.stderr);
      assert.equal(r.stdout, '');
      if (extent === null) {
        assert.equal(r.stderr, '');
      } else {
        assert.match(r.stderr, /^[^\n]*level=warn[^\n]*\n$/);
        assert.ok(r.stderr.includes(extent) && r.stderr.includes(fix), r.stderr);
      }
    }
    const found = JSON.parse(run(yard, ['doctor', '--json'], options).stdout).checks.filter((c) => c.name === 'writable roots');
    assert.deepEqual(found.map((c) => c.level), extent === null ? [] : ['warn']);
    assert.ok(extent === null || (found[0].text.includes(extent) && found[0].fix.includes(fix)));
  }
  // What narrows it ends the warning.
  for (const words of [['-c', 'sandbox.exclude_tmpdir_env_var=true'], ['-s', 'read-only'], ['-c', 'log.level=error']]) {
    assert.equal(run(yard, ['mcp', ...words], { env: { TMPDIR: link } }).stderr, '');
  }
  assert.equal(run(yard, ['proto', '-C', yard.ws], { cwd: '/' }).stderr, '');
});

test('config show refuses a protected name that is none', limit, (t) => {
  const yard = makeYard();
  const r = run(yard, ['config', 'show', '-c', 'sandbox.unprotected_names=[.git/confg]']);
  assert.deepEqual([r.status, r.stdout], [2, '']);
  assert.equal(r.stderr, "shellyard: sandbox.unprotected_names: '.git/confg' is no protected name; did you mean '.git/config'? (docs/sandbox.md lists them)\n");
  assert.equal(run(yard, ['config', 'show', '-c', 'sandbox.unprotected_names=[.git/config]']).status, 0);
});

test('without HOME doctor and setup look in the home of passwd(5)', limit, (t) => {
  const yard = makeYard();
  const bare = { HOME: undefined };
  const passwd = os.userInfo().homedir;
  const r = run(yard, ['doctor', '--json'], { env: bare });
  const checks = JSON.parse(r.stdout).checks;
  assert.deepEqual(checks.filter((c) => /HOME/.test(c.text)), []);
  const about = JSON.parse(run(yard, ['setup', 'cursor', '--json'], { env: bare }).stdout);
  assert.equal(about.file, fs.existsSync(`${passwd}/.cursor/mcp.json`) ? fs.realpathSync(`${passwd}/.cursor/mcp.json`) : `${passwd}/.cursor/mcp.json`);
  // An empty or relative one is none.
  assert.equal(JSON.parse(run(yard, ['setup', 'cursor', '--json'], { env: { HOME: '' } }).stdout).file, about.file);
});

const clients = ['claude-code', 'codex', 'cursor', 'vscode', 'zed', 'gemini-cli', 'claude-desktop', 'opencode',
  'goose', 'cline', 'copilot-cli', 'jetbrains'];

for (const client of clients) {
  test(`setup ${client} prints, writes once, and doctor sees it`, limit, (t) => {
    const yard = makeYard();
    const printed = run(yard, ['setup', client]);
    assert.equal(printed.status, 0, printed.stderr);
    assert.ok(printed.stdout.includes(fs.realpathSync(program)));
    const about = JSON.parse(run(yard, ['setup', client, '--json']).stdout);
    assert.equal(about.state, 'printed');
    assert.ok(about.file.startsWith(`${yard.home}/`));
    assert.equal(fs.existsSync(about.file), false);
    const first = JSON.parse(run(yard, ['setup', client, '--write', '--json']).stdout);
    assert.equal(first.state, 'added');
    assert.equal('backup' in first, false);
    const text = fs.readFileSync(about.file, 'utf8');
    assert.equal(text, about.snippet);
    const second = JSON.parse(run(yard, ['setup', client, '--write', '--json']).stdout);
    assert.equal(second.state, 'already set');
    assert.equal(fs.readFileSync(about.file, 'utf8'), text);
    const found = () => JSON.parse(run(yard, ['doctor', '--json']).stdout).checks.find((c) => c.name === about.title);
    assert.equal(found().level, 'ok');
    // A sandbox that the person pinned behind "mcp" is his, with another program's path too.
    const pinned = text.replace(/"mcp"(?=\])/, '"mcp", "-s", "read-only"');
    assert.notEqual(pinned, text);
    fs.writeFileSync(about.file, pinned);
    assert.equal(found().level, 'ok');
    assert.equal(JSON.parse(run(yard, ['setup', client, '--write', '--json']).stdout).state, 'already set');
    fs.writeFileSync(about.file, pinned.replace(JSON.stringify(fs.realpathSync(program)), '"/old/shellyard"'));
    assert.match(found().text, /another program/);
    assert.equal(JSON.parse(run(yard, ['setup', client, '--write', '--json']).stdout).state, 'changed');
    assert.equal(fs.readFileSync(about.file, 'utf8'), pinned);
  });
}

test('setup says in JSON too what is no file that it could edit', limit, (t) => {
  const yard = makeYard();
  const file = path.join(yard.home, '.cursor/mcp.json');
  const makers = [
    [() => fs.symlinkSync('nowhere', file), /symbolic link to a file that is not there/],
    [() => fs.symlinkSync('mcp.json', file), /symbolic links/],
    [() => fs.mkdirSync(file), /not a regular file/],
    [() => execFileSync('mkfifo', [file]), /not a regular file/],
  ];
  fs.mkdirSync(path.dirname(file));
  for (const [make, why] of makers) {
    make();
    const plain = run(yard, ['setup', 'cursor', '--write']);
    assert.deepEqual([plain.status, plain.stdout.includes(`Add to ${file}:`)], [1, true]);
    assert.match(plain.stderr, why);
    const r = run(yard, ['setup', 'cursor', '--write', '--json']);
    const said = JSON.parse(r.stdout);
    assert.deepEqual([r.status, said.state, said.file], [1, 'failed', file]);
    assert.match(said.error, why);
    assert.match(said.snippet, /"mcpServers"/);
    fs.rmSync(file, { recursive: true });
  }
});

test('setup keeps the rest of a file, makes a backup, and refuses what it can not edit', limit, (t) => {
  const yard = makeYard();
  const file = path.join(yard.home, '.cursor/mcp.json');
  const before = '{\n    "mcpServers": {\n        "other": {"command": "x",  "args": []}\n    },\n    "n": 1.50\n}\n';
  fs.mkdirSync(path.dirname(file));
  fs.writeFileSync(file, before, { mode: 0o640 });
  const r = JSON.parse(run(yard, ['setup', 'cursor', '--write', '--json']).stdout);
  assert.equal(r.state, 'added');
  assert.equal(r.backup, `${file}.bak-1`);
  assert.equal(fs.readFileSync(r.backup, 'utf8'), before);
  assert.equal(fs.statSync(file).mode & 0o777, 0o640);
  const after = fs.readFileSync(file, 'utf8');
  const parsed = JSON.parse(after);
  assert.deepEqual(parsed.mcpServers.other, { command: 'x', args: [] });
  assert.deepEqual(parsed.mcpServers.shellyard.args, ['mcp']);
  assert.ok(after.includes('"other": {"command": "x",  "args": []}') && after.includes('"n": 1.50'));

  const junie = path.join(yard.home, '.junie/mcp/mcp.json');
  fs.mkdirSync(path.dirname(junie), { recursive: true });
  fs.writeFileSync(junie, '// mine\n{ "theme": "One", }\n');
  const refused = run(yard, ['setup', 'jetbrains', '--write']);
  assert.equal(refused.status, 1);
  assert.match(refused.stderr, /was left as it is: line 1: a comment or a trailing comma/);
  assert.match(refused.stdout, /"mcpServers"/);
  assert.equal(fs.readFileSync(junie, 'utf8'), '// mine\n{ "theme": "One", }\n');
  const unknown = run(yard, ['setup', 'emacs']);
  assert.deepEqual([unknown.status, /right are claude-code, codex, .*jetbrains/.test(unknown.stderr)], [2, true]);
});

test('setup writes the line ends that a file has', limit, (t) => {
  const yard = makeYard();
  for (const [client, before] of [['cursor', '{\r\n  "a": 1\r\n}\r\n'], ['codex', 'a = """\r\nb\r\n"""\r\n'],
    ['goose', 'a: 1 # c\r\nextensions:\r\n  b:\r\n    c: 2\r\n'], ['zed', '// c\r\n{\r\n}\r\n']]) {
    const { file } = JSON.parse(run(yard, ['setup', client, '--json']).stdout);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, before);
    assert.equal(JSON.parse(run(yard, ['setup', client, '--write', '--json']).stdout).state, 'added', client);
    const after = fs.readFileSync(file, 'utf8');
    assert.doesNotMatch(after, /[^\r]\n/, `${client}: ${JSON.stringify(after)}`);
    assert.doesNotMatch(after, /\r\r/);
    assert.equal(JSON.parse(run(yard, ['setup', client, '--write', '--json']).stdout).state, 'already set');
  }
});

test('setup keeps comments and trailing commas where the client reads them', limit, (t) => {
  const yard = makeYard();
  for (const client of ['zed', 'vscode', 'opencode', 'gemini-cli']) {
    const { file } = JSON.parse(run(yard, ['setup', client, '--json']).stdout);
    const before = '\uFEFF// mine\n{\n  "theme": "One", // the first\n}\n';
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, before);
    const r = JSON.parse(run(yard, ['setup', client, '--write', '--json']).stdout);
    assert.equal(r.state, 'added', client);
    const after = fs.readFileSync(file, 'utf8');
    assert.ok(after.startsWith('\uFEFF// mine\n{\n  "theme": "One", // the first\n  "') && after.endsWith('\n}\n'), after);
    assert.ok(JSON.parse(after.replace(/^\uFEFF/, '').replace(/\/\/.*$/gm, '')), after);
    assert.equal(JSON.parse(run(yard, ['setup', client, '--write', '--json']).stdout).state, 'already set');
  }
});

test('setup takes the file that OpenCode reads by its other name, where that one is there alone', limit, (t) => {
  const yard = makeYard();
  const file = (...more) => JSON.parse(run(yard, ['setup', 'opencode', '--json', ...more]).stdout).file;
  const json = file();
  assert.ok(json.endsWith('/opencode/opencode.json'), json);
  fs.mkdirSync(path.dirname(json), { recursive: true });
  fs.writeFileSync(`${json}c`, '{\n  // mine\n}\n');
  assert.equal(file('--write'), `${json}c`);
  assert.match(fs.readFileSync(`${json}c`, 'utf8'), /\/\/ mine[^]*"shellyard"/);
  assert.equal(fs.existsSync(json), false);
  fs.writeFileSync(json, '{}');
  assert.equal(file(), json);
});

test('proto answers what it was asked before its input ended', limit, (t) => {
  const yard = makeYard();
  const ask = (id, command) => JSON.stringify({
    type: 'function_call', name: 'shell_command', call_id: id, arguments: JSON.stringify({ command }),
  });
  const r = run(yard, ['proto'], { input: `${ask('c1', 'echo one')}\n${ask('c2', 'echo two')}\n` });
  assert.equal(r.status, 0, r.stderr);
  const lines = r.stdout.trimEnd().split('\n').map((line) => JSON.parse(line));
  const outputs = lines.filter((m) => m.type === 'function_call_output');
  assert.deepEqual(outputs.map((m) => [m.call_id, m.output]).sort(), [['c1', 'one\n'], ['c2', 'two\n']]);
});

for (const verb of ['mcp', 'proto']) {
  test(`${verb} ends at a signal, and all that runs with it`, limit, async (t) => {
    const yard = makeYard();
    const child = spawn(program, [verb], { cwd: yard.ws, env: yard.env, stdio: ['pipe', 'pipe', 'pipe'] });
    const say = (o) => child.stdin.write(`${JSON.stringify(o)}\n`);
    const args = { command: 'sleep 300 & setsid sleep 300', timeout_ms: 300_000 };
    child.stdout.resume();
    if (verb === 'mcp') {
      say({ jsonrpc: '2.0', id: 1, method: 'initialize', params: {
        protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 't', version: '1' } } });
      say({ jsonrpc: '2.0', method: 'notifications/initialized' });
      say({ jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'shell_command', arguments: args } });
    } else {
      say({ type: 'function_call', name: 'shell_command', call_id: 'c', arguments: JSON.stringify(args) });
    }
    await waitFor(() => processesOf(yard.mark, [child.pid]).filter((p) => p.cmdline.startsWith('sleep')).length === 2,
      'both sleep');
    child.kill('SIGTERM');
    const code = await new Promise((resolve) => child.on('close', resolve));
    assert.equal(code, 0);
    await waitFor(() => processesOf(yard.mark).length === 0, 'all processes are gone');
  });
}

test('wrong configuration stops a server with one line and no output', limit, (t) => {
  const yard = makeYard();
  for (const verb of ['mcp', 'proto']) {
    const r = run(yard, [verb, '-c', 'sandbox.moed=read-only']);
    assert.equal(r.status, 2);
    assert.equal(r.stdout, '');
    assert.match(r.stderr, /^shellyard: .*sandbox\.mode.*\n$/);
  }
});

/** The text of a page without its fonts. */
function manText(page) {
  return fs.readFileSync(path.join(top, 'docs/man', page), 'utf8').replace(/\\f[A-Z]/g, '').replaceAll('\\-', '-');
}

test('help and manual pages tell of the same verbs and options', limit, (t) => {
  const yard = makeYard();
  const about = JSON.parse(run(yard, ['help', '--json']).stdout);
  const names = (options) => options.map((o) => `--${o.name}`);
  const all = new Set(names([...about.program_options, ...about.common_options]));
  const ofPage = new Map(); // the options of all verbs of a page
  for (const verb of about.verbs) {
    const text = manText(verb.page);
    assert.ok(text.includes(verb.name), `${verb.name} is not in ${verb.page}`);
    if (!ofPage.has(verb.page)) {
      ofPage.set(verb.page, new Set(names(about.common_options)));
    }
    for (const option of verb.options) {
      all.add(`--${option.name}`);
      ofPage.get(verb.page).add(`--${option.name}`);
      assert.match(text, new RegExp(`--${option.name}\\b`), `--${option.name} of ${verb.name}`);
      if (option.letter) {
        assert.match(text, new RegExp(`(^|[ "])-${option.letter}\\b`, 'm'), `-${option.letter} of ${verb.name}`);
      }
    }
    const help = run(yard, ['help', ...verb.name.split(' ')]);
    assert.equal(help.status, 0);
    assert.match(help.stdout, /^Usage: shellyard /);
    assert.equal(run(yard, [...verb.name.split(' '), '--help']).stdout, help.stdout);
  }
  names(about.program_options).forEach((name) => ofPage.get('shellyard.1').add(name));
  for (const [page, options] of ofPage) {
    const text = manText(page);
    for (const word of text.match(/--[a-z][a-z-]*/g)) {
      assert.ok(all.has(word), `${page} tells of ${word}, which no command takes`);
    }
    // What has an entry of its own under OPTIONS is an option of this page.
    for (const [, word] of text.matchAll(/^\.TP\n\.BR? (?:-[a-zA-Z] ", " )?(--[a-z-]+)/gm)) {
      assert.ok(options.has(word), `${page} explains ${word}, which its commands do not take`);
    }
  }
});

test('manual pages are well-formed', limit, (t) => {
  if (!mustRun(t, has('groff'), 'groff is not installed')) {
    return;
  }
  for (const page of fs.readdirSync(path.join(top, 'docs/man'))) {
    const r = spawnSync('groff', ['-man', '-ww', '-z', '-Tutf8', path.join(top, 'docs/man', page)], { encoding: 'utf8' });
    assert.equal(r.status, 0);
    assert.equal(r.stderr, '', page);
  }
});

test('the bash completion completes verbs, options and values', limit, (t) => {
  const yard = makeYard();
  const script = run(yard, ['completions', 'bash']).stdout;
  const complete = (...words) => {
    const list = words.map((w) => `'${w}'`).join(' ');
    const r = spawnSync('bash', ['-c',
      `${script}\nCOMP_WORDS=(${list}); COMP_CWORD=${words.length - 1}; _shellyard; echo "\${COMPREPLY[*]}"`],
    { encoding: 'utf8', env: yard.env });
    assert.equal(r.stderr, '');
    return r.stdout.trim().split(' ');
  };
  assert.deepEqual(complete('shellyard', 'do'), ['doctor']);
  assert.deepEqual(complete('shellyard', 'sandbox', ''), ['check', 'explain', 'learn', 'plan']);
  assert.deepEqual(complete('shellyard', 'sandbox', 'plan', '--platform', 'm'), ['macos']);
  assert.deepEqual(complete('shellyard', 'exec', '-s', 'w'), ['workspace-write']);
  assert.deepEqual(complete('shellyard', 'exec', '--lo'), ['--login']);
  // What begins with no dash is the command, with or without `--` in front.
  for (const words of [[], ['--'], ['--login'], ['-s', 'read-only'], ['--timeout', '=', '5s', '--'],
    ['-c', 'log.level', '=', 'info'], ['-c', 'log.level', '=', 'info', '-C', '/tmp', '--json']]) {
    assert.ok(complete('shellyard', 'exec', ...words, 'unshar').includes('unshare'), words.join(' '));
    assert.ok(complete('shellyard', 'exec', ...words, 'ls', '/etc/passw').includes('/etc/passwd'), words.join(' '));
  }
  assert.deepEqual(complete('shellyard', 'exec', '-t', 'unshar'), ['']);
  assert.deepEqual(complete('shellyard', 'setup', 'co'), ['codex', 'copilot-cli']);
  assert.deepEqual(complete('shellyard', 'sandbox', 'explain', 'co'), ['connect']);
  assert.deepEqual(complete('shellyard', 'exec', '-c', 'sandbox.mo'), ['sandbox.mode=']);
  assert.deepEqual(complete('shellyard', 'mcp', '--config', 'log.'), ['log.level=', 'log.format=']);
  // bash makes three words of KEY=VALUE.
  assert.deepEqual(complete('shellyard', 'mcp', '-c', 'log.format', '='), ['logfmt', 'json']);
  assert.deepEqual(complete('shellyard', 'exec', '-c', 'sandbox.mode', '=', 'w'), ['workspace-write']);
  assert.deepEqual(complete('shellyard', 'exec', '-c', 'sandbox.required', '=', 'f'), ['false']);
  assert.deepEqual(complete('shellyard', 'exec', '-c', 'shell.path', '=', '/'), ['']);
  assert.deepEqual(complete('shellyard', 'help', 'sa'), ['sandbox']);
  assert.deepEqual(complete('shellyard', 'help', 'sandbox', 'ex'), ['explain']);
  assert.deepEqual(complete('shellyard', 'help', 'exec', 'do'), ['']);
  for (const shell of ['zsh', 'fish']) {
    const made = run(yard, ['completions', shell]);
    assert.equal(made.status, 0);
    assert.match(made.stdout, / sandbox\.writable_roots=/);
    assert.match(made.stdout, / doctor /);
    if (has(shell)) {
      // From a file: fish reads no script from what is neither a terminal nor a file.
      const file = path.join(yard.dir, `completions.${shell}`);
      fs.writeFileSync(file, made.stdout);
      const checked = spawnSync(shell, ['-n', file], { encoding: 'utf8' });
      assert.equal(checked.status, 0, checked.stderr);
    }
  }
  assert.equal(run(yard, ['completions', 'tcsh']).status, 2);
});
