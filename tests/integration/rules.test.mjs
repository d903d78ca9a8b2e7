// `shellyard rules`: reading, testing and importing rules as a person does it.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { makeYard, program } from './lib/client.mjs';

const limit = { timeout: 60_000 };

/** A yard with its own home, outside of the workspace. */
function makeHome(t) {
  const yard = makeYard();
  const home = fs.mkdtempSync(path.join(path.dirname(yard.ws), 'rules-home-'));
  const env = { ...yard.env, HOME: home };
  delete env.XDG_CONFIG_HOME;
  t.after(() => fs.rmSync(home, { recursive: true, force: true }));
  const rules = path.join(home, '.config/shellyard/rules.yaml');
  return {
    ...yard,
    home,
    rules,
    write(text, mode = 0o600) {
      fs.mkdirSync(path.dirname(rules), { recursive: true });
      fs.writeFileSync(rules, text, { mode });
      fs.chmodSync(rules, mode);
    },
    run: (args, cwd = yard.ws) => spawnSync(program, ['rules', ...args],
      { cwd, env, encoding: 'utf8', timeout: 60_000 }),
  };
}

const codex = `
# one line each
prefix_rule(pattern=["git", ["status", "log"]], match=["git status"])
prefix_rule(pattern=["rm"], decision="forbidden", justification="use trash")
host_executable(name="git", paths=["/usr/bin/git"])
network_rule(host="example.com", protocol="https", decision="deny")
`;

test('rules that decide are found and named, the strictest first', limit, (t) => {
  const yard = makeHome(t);
  yard.write('rules:\n'
    + '  - {program: git, decision: allow, outside_sandbox: true}\n'
    + '  - {program: git, args: [push], decision: forbid, reason: ask first}\n'
    + `  - {program: make, cwd: ${fs.realpathSync(yard.ws)}, decision: allow}\n`);
  const allowed = yard.run(['test', '--', 'git', 'status']);
  assert.equal(allowed.status, 0);
  assert.match(allowed.stdout, /^allow\n.*rules\.yaml:2\)/);
  const forbidden = yard.run(['test', '--json', 'git', 'push', 'origin']);
  assert.equal(forbidden.status, 1);
  const verdict = JSON.parse(forbidden.stdout);
  assert.equal(verdict.decision, 'forbid');
  assert.match(verdict.reason, /ask first/);
  assert.equal(verdict.rule.line, 3);
  assert.equal(verdict.rule.file, yard.rules);
  assert.equal(yard.run(['test', 'make', 'all']).status, 0);
  assert.equal(yard.run(['test', '-C', '/usr', 'make', 'all']).status, 1);
  const open = yard.run(['test', 'ls']);
  assert.equal(open.status, 1);
  assert.match(open.stdout, /^none\n/);
  const list = JSON.parse(yard.run(['list', '--json']).stdout);
  assert.deepEqual(list.rules.map((r) => r.decision), ['allow', 'forbid', 'allow']);
  assert.match(yard.run(['list']).stdout, /^forbid {2}git push {2}\(.*rules\.yaml:3\) ask first$/m);
});

test('a rule that forbids holds inside of other programs, one that allows does not', limit, (t) => {
  const yard = makeHome(t);
  yard.write('rules:\n'
    + '  - {program: git, args: [push], decision: forbid, reason: ask first}\n'
    + '  - {program: make, decision: allow}\n');
  for (const words of [['sudo', 'git', 'push'], ['env', 'X=1', 'git', 'push'], ['timeout', '5', 'git', 'push'], ['bash', '-c', 'git push']]) {
    const r = yard.run(['test', '--json', '--', ...words]);
    assert.equal(JSON.parse(r.stdout).decision, 'forbid', words.join(' '));
    assert.match(JSON.parse(r.stdout).reason, /ask first/);
  }
  assert.equal(yard.run(['test', 'make', 'all']).status, 0, 'the control');
  assert.equal(JSON.parse(yard.run(['test', '--json', '--', 'sudo', 'make', 'all']).stdout).decision, 'none');
});

test('what is wrong in a file is told with its place', limit, (t) => {
  const yard = makeHome(t);
  yard.write('rules:\n  - program: git\n    decison: allow\n');
  for (const args of [['list'], ['check'], ['test', 'ls']]) {
    const r = yard.run(args);
    assert.equal(r.status, 2);
    assert.match(r.stderr, /rules\.yaml:3:5: unknown key 'decison' \(did you mean 'decision'\?\)\n$/);
    assert.equal(r.stdout, '');
  }
  yard.write('rules:\n  - {program: bash, decision: allow}\n');
  assert.match(yard.run(['check']).stdout, /:2: note: to allow 'bash' is to allow whatever it runs\n/);
  const other = path.join(yard.ws, 'other.yaml');
  fs.writeFileSync(other, 'rules:\n- {program: a, decision: ask, match: [b]}\n');
  assert.match(yard.run(['check', other]).stderr, /other\.yaml:2:39: example 'b' is not matched/);
  assert.match(yard.run(['check', '/no/such/file']).stderr, /no file '\/no\/such\/file'/);
});

test('rules that others could write, or in the workspace, do not count', limit, (t) => {
  const yard = makeHome(t);
  yard.write('rules: []\n', 0o666);
  assert.match(yard.run(['list']).stderr, /others may write it/);
  yard.write('rules: []\n');
  assert.equal(yard.run(['test', 'ls']).stdout.startsWith('none'), true);
  const inside = yard.run(['test', 'ls'], yard.home);
  assert.equal(inside.status, 2);
  assert.match(inside.stderr, /lies in the workspace/);
});

test('an import prints what it would add, and adds it once', limit, (t) => {
  const yard = makeHome(t);
  const file = path.join(yard.home, 'default.rules');
  fs.writeFileSync(file, codex);
  const shown = yard.run(['import', file]);
  assert.equal(shown.status, 0);
  assert.match(shown.stdout, /^rules:\n {2}- program: git\n {4}args: \[\[status, log\]\]\n {4}decision: allow\n/);
  assert.doesNotMatch(shown.stdout, /outside_sandbox/);
  assert.match(shown.stderr, /4 new, 0 there already/);
  assert.equal(fs.existsSync(yard.rules), false);

  assert.equal(yard.run(['import', '--write', file]).status, 0);
  assert.equal(fs.readFileSync(yard.rules, 'utf8'), shown.stdout);
  assert.equal(fs.statSync(yard.rules).mode & 0o7777, 0o600);
  assert.match(yard.run(['import', '--write', file]).stdout, /0 added, 4 there already/);
  assert.equal(yard.run(['test', 'git', 'log']).status, 0);
  assert.match(yard.run(['test', 'rm', 'x']).stdout, /^forbid\n.*use trash/);

  // A person's own file keeps its comments, and gets mode 0600.
  const own = '# mine\nrules:\n- program: ls # often\n  decision: allow\n\n# the end\n';
  yard.write(own, 0o644);
  const added = yard.run(['import', '--write', '--outside-sandbox', file]);
  assert.equal(added.status, 0, added.stderr);
  const text = fs.readFileSync(yard.rules, 'utf8');
  assert.ok(text.startsWith('# mine\nrules:\n- program: ls # often\n  decision: allow\n- program: git\n'));
  assert.ok(text.includes('\n\n# the end\nprograms:\n'));
  assert.ok(text.includes('outside_sandbox: true'));
  assert.equal(fs.statSync(yard.rules).mode & 0o7777, 0o600);
  const backup = /the old file is (.*)\n/.exec(added.stdout)[1];
  assert.equal(fs.readFileSync(backup, 'utf8'), own);
  assert.equal(yard.run(['check']).status, 0);
});

test('an import that is not whole changes nothing', limit, (t) => {
  const yard = makeHome(t);
  const file = path.join(yard.home, 'a.rules');
  const cases = [
    [`${codex}for x in [1]: pass\n`, /a\.rules:7:1: 'for' is no call/],
    [`${codex}prefix_rule(pattern=["./x"])\n`, /a\.rules:7:1: '.\/x' is another program in each directory/],
    ['prefix_rule(pattern=["ls"], decision="forbidden")', /example 'ls -l' is decided by the rule at line/],
  ];
  const own = 'rules:\n- program: ls\n  decision: allow\n  match: [ls -l]\n';
  for (const [text, sentence] of cases) {
    yard.write(own);
    fs.writeFileSync(file, text);
    const r = yard.run(['import', '--write', file]);
    assert.equal(r.status, 2);
    assert.match(r.stderr, sentence);
    assert.equal(fs.readFileSync(yard.rules, 'utf8'), own);
  }
  yard.write('rules: [{program: ls, decision: allow}]\n');
  fs.writeFileSync(file, codex);
  const flow = yard.run(['import', '--write', file]);
  assert.equal(flow.status, 2);
  assert.match(flow.stderr, /the list 'rules' is not written with one entry a line/);
  assert.equal(fs.readdirSync(path.dirname(yard.rules)).length, 1);
});
