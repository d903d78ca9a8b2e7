// Terminals that commands make, those of others, and a session's own.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { STUCK_MS, call, eachTier, hasFull, makeYard, startMcp } from './lib/client.mjs';

const script = path.join(path.dirname(fileURLToPath(import.meta.url)), 'lib/terminals.py');

/** A terminal of somebody else of the same user: its name, and its device. */
async function someTerminal(t) {
  const child = spawn('python3', ['-c',
    'import os, pty, sys\nm, s = pty.openpty()\nsys.stdout.write(f"{os.ttyname(s)} {os.fstat(s).st_dev}\\n")\nsys.stdout.flush()\nsys.stdin.read()'],
  { stdio: ['pipe', 'pipe', 'inherit'] });

  t.after(() => child.kill('SIGKILL'));

  const [text] = await once(child.stdout, 'data');
  const [name, device] = text.toString().trim().split(' ');

  // Commands of root run as the owner of the workspace, who may not be root.
  fs.chmodSync(name, 0o666);
  return { name, device };
}

function judge(found) {
  assert.equal(found.made, 'through');
  assert.equal(found['by name'], true);
  assert.equal(found['of child'], 0);
  assert.match(found.session, /^\d+ \d+\r\ntyped\r\n$/);
}

eachTier('a command makes terminals, and opens none of others', async (t, { tier, yard, open }) => {
  const other = await someTerminal(t);
  const control = spawnSync('python3', [script, other.name, other.device], { encoding: 'utf8' });

  assert.equal(control.status, 0, control.stderr);

  const outside = JSON.parse(control.stdout);


  judge(outside);
  assert.deepEqual(outside.others, [0, 0, 0, 0, 0]);
  fs.copyFileSync(script, path.join(yard.ws, 't.py'));
  for (const network of [false, true]) {
    const front = await open({ settings: { 'sandbox.network_access': network } });
    const r = await front.run(`python3 t.py ${other.name} ${other.device}`);

    assert.equal(r.sandbox.tier, tier);
    assert.equal(r.exitCode, 0, r.text);

    const found = JSON.parse(r.output.split('\n')[0]);

    judge(found);
    for (const got of found.others) {
      assert.ok(tier === 'full' ? got === 2 || got === 'another' : got === 13, `${network}: ${JSON.stringify(found.others)}`);
    }
  }
});

for (const tier of ['full', 'no-namespace']) {
  test(`a session opens its own terminal by its name, and that of no other session, ${tier}`, { timeout: STUCK_MS }, async (t) => {
    const yard = makeYard();

    if (tier === 'full' && !hasFull(t, yard)) {
      return;
    }

    const server = await startMcp({ cwd: yard.ws, env: yard.env, settings: { 'sandbox.tier': tier } });

    t.after(() => server.close());

    const exec = async (cmd, more = {}) => (await call(server.client, 'exec_command', { cmd, tty: true, yield_time_ms: 30_000, ...more })).structuredContent;
    const first = await exec('tty; exec cat', { idle_ms: 200 });
    const name = first.output.trim();
    const own = await exec('for f in /dev/stdout /dev/stderr /proc/self/fd/0 $(tty); do echo "to $f" >$f || echo "not $f"; done; [ -r $(tty) ] && stty size <$(tty)');

    assert.match(name, /^\/dev\/pts\/\d+$/);
    assert.match(own.output, /^to \/dev\/stdout\r?\nto \/dev\/stderr\r?\nto \/proc\/self\/fd\/0\r?\nto \/dev\/pts\/\d+\r?\n24 80/);

    const other = await exec(`tty; (echo x >${name}) && echo written; (read -r -t 1 y <${name}) && echo read; [ $? -ge 128 ] && echo waited; echo done`);

    assert.equal(other.exit_code, 0);
    if (other.output.startsWith(`${name}\r`) || other.output.startsWith(`${name}\n`)) {
      // In trees of their own both have the same name.
      assert.equal(tier, 'full');
    } else {
      assert.doesNotMatch(other.output, /^(written|read|waited)/m);
      assert.match(other.output, /(denied|No such file).*\r?\n.*(denied|No such file)/);
    }
    assert.match(other.output, /done/);
  });
}
