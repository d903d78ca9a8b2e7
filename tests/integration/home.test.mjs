// A home that is not there, or none at all: commands run in the same walls, and what can't be had
// without a state directory is told and not claimed.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { eachTier, execCli, makeYard } from './lib/client.mjs';
import { test } from 'node:test';

const homes = (yard) => ({
  'one that is not there': path.join(yard.dir, 'none'),
  'a file': path.join(yard.dir, 'file'),
  'a relative path': 'home',
  'an empty word': '',
});

const left = (yard) => fs.readdirSync(yard.ws).sort();

function empty(yard) {
  for (const name of left(yard)) {
    fs.rmSync(path.join(yard.ws, name), { recursive: true });
  }
}

eachTier('without a home commands run, and what is not held is told', async (t, { name, tier, yard, open }) => {
  fs.writeFileSync(path.join(yard.dir, 'file'), 'mine');
  const script = 'touch done; echo x > .envrc; echo "[$HOME]"; exit 0';
  const file = path.join(yard.ws, '.envrc');
  for (const [what, HOME] of Object.entries(homes(yard))) {
    const front = await open({ env: { HOME } });
    const r = await front.run(script, { timeoutMs: 60_000 });
    assert.equal(r.output, `[${HOME}]\n`, what);
    assert.equal(r.sandbox.tier, tier, what);
    assert.equal(r.sandbox.features.deny_read, 'enforced', 'other homes have the defaults still');
    assert.equal(r.sandbox.features.protected_names, 'emulated', what);
    assert.match(r.sandbox.protected_names_reason, /there is no state directory/);
    // Neither kept from being made nor moved away: said so, with its line.
    assert.match(r.note, /\.envrc is protected and was changed, and could not be put back: there is no state directory/, what);
    assert.deepEqual(r.raw.denials.map((d) => [d.operation, d.object, d.layer, d.fix]),
      [['create', file, 'guard', 'sandbox.unprotected_names: [.envrc]']], what);
    assert.deepEqual(left(yard), ['.envrc', 'done'], what);
    await front.close();
    empty(yard);
  }
  assert.equal(fs.existsSync(path.join(yard.dir, 'none')), false, 'a home is not ours to make');
  assert.equal(fs.readFileSync(path.join(yard.dir, 'file'), 'utf8'), 'mine');

  // The control: a state directory elsewhere is all that was missing.
  const front = await open({ env: { HOME: path.join(yard.dir, 'none'), XDG_STATE_HOME: path.join(yard.home, 'state') } });
  const r = await front.run(script, { timeoutMs: 60_000 });
  assert.ok(r.output.includes(`[${path.join(yard.dir, 'none')}]\n`), r.output);
  assert.doesNotMatch(r.sandbox.protected_names_reason ?? '', /state directory/);
  if (tier === 'full') {
    assert.equal(r.sandbox.features.protected_names, name === 'exec' ? 'emulated' : 'enforced');
    assert.match(r.output, /\.envrc: Is a directory/);
  } else {
    assert.match(r.note, /\.envrc is protected .*was moved to /);
  }
  await front.close();
  assert.equal(fs.existsSync(file) && fs.statSync(file).isFile(), false);
});

test('a home that leads nowhere is an error of the configuration, not an empty one', async (t) => {
  const yard = makeYard(t);
  const loop = path.join(yard.dir, 'loop');
  fs.symlinkSync(loop, loop);
  const r = await execCli(['--', 'touch', 'ran'], { cwd: yard.ws, env: { ...yard.env, HOME: loop } });
  assert.notEqual(r.code, 0);
  assert.match(r.stderr, /loop\/\.config\/shellyard\/config\.yaml: cannot be opened: Too many levels/);
  assert.deepEqual(left(yard), []);
  const none = await execCli(['--', 'touch', 'ran'], { cwd: yard.ws, env: { ...yard.env, HOME: undefined } });
  assert.equal(none.code, 0, none.stderr);
  assert.deepEqual(left(yard), ['ran'], 'without the variable there is none to read');
});
