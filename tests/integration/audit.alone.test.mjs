// What Landlock refused, out of the kernel's audit log, where that can be read; and what is said
// where it can't. Auditing is the machine's: it is switched on for the time of this file
// alone, by root alone, and back. Wherever it can't be had, that is what is tested: nothing here is
// skipped.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { spawnSync } from 'node:child_process';
import { after, before, test } from 'node:test';
import { makeYard, openFront, program } from './lib/client.mjs';

const build = path.dirname(program);
const switcher = path.join(build, 'tests/integration/auditing');
const limit = { timeout: 120_000 };
const READS = { 'sandbox.tier': 'no-namespace', 'sandbox.read_audit': true };

/** "on", "off", or "closed": not ours to ask. */
function auditing(...to) {
  const r = spawnSync(switcher, to, { encoding: 'utf8' });
  assert.equal(r.status, 0, r.stderr);
  return r.stdout.trim();
}

let was;
before(() => {
  was = auditing();
  if (was === 'off') {
    assert.equal(auditing('on'), 'on');
  }
});
after(() => {
  if (was === 'off') {
    assert.equal(auditing('off'), 'off');
  }
});

function check(yard, settings = READS) {
  const flags = Object.entries(settings).flatMap(([k, v]) => ['-c', `${k}=${v}`]);
  const [json, text] = [['--json'], []].map((as) => spawnSync(program, ['sandbox', 'check', ...as, ...flags],
    { cwd: yard.ws, env: yard.env, encoding: 'utf8' }).stdout);
  const told = JSON.parse(json);
  return { state: told.features.audit_records.state, why: told.audit_records_reason, told, text };
}

/** Can the log be read here, by all that the machine itself says? */
function isReadable(yard) {
  return auditing() === 'on' && check(yard).told.landlock_abi >= 7;
}

const denials = (r) => (r.raw.denials ?? []).map((d) => [d.operation, d.object, d.layer, d.confidence, d.count ?? 1]);

test('sandbox check tells whether the log is read and, where it is not, why', limit, (t) => {
  const yard = makeYard();
  const here = check(yard);

  if (isReadable(yard)) {
    assert.deepEqual([here.state, here.why], ['enforced', undefined]);
    assert.match(here.text, /^ {2}audit_records +enforced /m);
    assert.doesNotMatch(here.text, /are not read/);
  } else {
    assert.equal(here.state, 'absent');
    assert.match(here.why, here.told.landlock_abi < 7 ? /ABI 7/ : /auditing is o(n|ff)|audit log/);
    assert.ok(here.text.includes(`  audit_records are not read: ${here.why}\n`), here.text);
  }
  const unwanted = check(yard, { ...READS, 'sandbox.read_audit': false });
  assert.deepEqual([unwanted.state, unwanted.why], ['absent', 'sandbox.read_audit is false']);
});

test('where mounts refuse, or auditing is off, the log is not read', limit, (t) => {
  const yard = makeYard();
  const full = check(yard, { 'sandbox.read_audit': true });

  if (full.told.tier === 'full' && isReadable(yard)) {
    assert.equal(full.state, 'absent');
    assert.match(full.why, /in the full tier mounts refuse/);
  }
  if (was === 'off') {
    assert.equal(auditing('off'), 'off');
    try {
      const off = check(yard);
      assert.equal(off.state, 'absent');
      assert.match(off.why, off.told.landlock_abi < 7 ? /ABI 7/ : /^auditing is off on this machine/);
    } finally {
      assert.equal(auditing('on'), 'on');
    }
  }
});

test('what is refused is told exactly, once, with the line that allows it', limit, async (t) => {
  const yard = makeYard();
  const target = path.join(yard.outside, 'f');
  const front = await openFront(t, 'mcp', yard, { settings: READS });
  const isRead = isReadable(yard);
  const r = await front.run(`touch ${target}`);

  assert.notEqual(r.exitCode, 0);
  assert.equal(r.sandbox.features.audit_records, isRead ? 'enforced' : 'absent');
  assert.deepEqual(denials(r), [['write', target, 'landlock', isRead ? 'exact' : 'inferred', 1]]);
  assert.equal(r.raw.denials[0].fix, `sandbox.writable_roots: ["${yard.outside}"]`);

  const unwanted = await openFront(t, 'mcp', yard, { settings: { ...READS, 'sandbox.read_audit': false } });
  const plain = await unwanted.run(`touch ${target}`);
  assert.equal(plain.sandbox.features.audit_records, 'absent');
  assert.deepEqual(denials(plain), [['write', target, 'landlock', 'inferred', 1]]);
});

test('a refusal that the command says nothing of is told by its directory', limit, async (t) => {
  const yard = makeYard();
  const old = path.join(yard.outside, 'old');
  fs.writeFileSync(old, 'x');
  const front = await openFront(t, 'mcp', yard, { settings: READS });
  const r = await front.run(`mkdir ${yard.outside}/d 2>/dev/null; { echo y >> ${old}; } 2>/dev/null; exit 3`);

  assert.equal(r.exitCode, 3);
  assert.deepEqual(denials(r), isReadable(yard)
    ? [['create', yard.outside, 'landlock', 'exact', 1], ['write', old, 'landlock', 'exact', 1]] : []);
  for (const d of r.raw.denials ?? []) {
    assert.equal(d.fix, `sandbox.writable_roots: ["${d.object}"]`);
  }
  assert.equal(fs.readFileSync(old, 'utf8'), 'x');
});

test('of many refusals none is missing, run after run', limit, async (t) => {
  const yard = makeYard();
  const front = await openFront(t, 'mcp', yard, { settings: READS });
  const isRead = isReadable(yard);

  for (let round = 0; round < 10; round += 1) {
    const r = await front.run(`for i in 1 2 3 4 5 6 7 8 9; do mkdir ${yard.outside}/$i 2>/dev/null; done; exit 1`);
    assert.deepEqual(denials(r), isRead ? [['create', yard.outside, 'landlock', 'exact', 9]] : [], `round ${round}`);
  }
});

test('a command that is refused nothing is told nothing of, whatever others are refused meanwhile', limit, async (t) => {
  const yard = makeYard();
  const other = makeYard();
  const front = await openFront(t, 'mcp', yard, { settings: READS });
  const busy = await openFront(t, 'mcp', other, { settings: READS });
  const flag = path.join(other.ws, 'stop');
  const noise = busy.run(`until [ -e ${flag} ]; do mkdir ${other.outside}/d 2>/dev/null; done; exit 1`, { timeoutMs: 60_000 });

  try {
    for (let round = 0; round < 10; round += 1) {
      for (const script of ['exit 1', 'true', 'touch made; ls /nonexistent']) {
        const r = await front.run(script);
        assert.deepEqual(denials(r), [], script);
      }
    }
  } finally {
    fs.writeFileSync(flag, '');
  }
  const told = denials(await noise);
  assert.ok(told.every(([, object]) => object === other.outside), JSON.stringify(told));
  assert.equal(told.length, isReadable(yard) ? 1 : 0);
});

test('servers that run commands at a time get their own refusals', limit, async (t) => {
  const yard = makeYard();
  const dirs = ['a', 'b', 'c', 'd'].map((name) => path.join(yard.outside, name));
  dirs.forEach((dir) => fs.mkdirSync(dir));
  const fronts = await Promise.all(dirs.map(() => openFront(t, 'mcp', yard, { settings: READS })));
  const isRead = isReadable(yard);

  for (let round = 0; round < 5; round += 1) {
    const answers = await Promise.all(fronts.map((front, i) => front.run(`mkdir ${dirs[i]}/x 2>/dev/null; exit 1`)));
    answers.forEach((answer, i) => {
      assert.deepEqual(denials(answer), isRead ? [['create', dirs[i], 'landlock', 'exact', 1]] : []);
    });
  }
});
