// A home directory as the workspace: its secrets, and what Shellyard itself believes (its state
// and configuration), lie below a writable root. Mounts hold that; without them nothing runs.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { eachFront, hasFull } from './lib/client.mjs';

const SECRET = 'the-secret-bytes';
const STATE = '.local/state/shellyard';
const CONFIG = '.config/shellyard';

/** The yard's home is the workspace from now on. */
function liveAtHome(yard) {
  fs.mkdirSync(path.join(yard.home, '.ssh'), { mode: 0o700 });
  fs.writeFileSync(path.join(yard.home, '.ssh/id'), SECRET);
  fs.mkdirSync(path.join(yard.home, '.config/gh'), { recursive: true });
  fs.writeFileSync(path.join(yard.home, '.config/gh/hosts.yml'), SECRET);
  fs.writeFileSync(path.join(yard.home, 'notes'), 'a neighbour\n');
  yard.ws = yard.home;
}

// Each says "planted" or shows the secret where nothing holds it.
const acts = [
  `mkdir -p ~/${STATE} && echo x > ~/${STATE}/shellyard.db && echo planted`,
  `mkdir -p ~/${CONFIG} && echo x > ~/${CONFIG}/config.yaml && echo planted`,
  `mkdir -p ~/${CONFIG} && ln -s /dev/null ~/${CONFIG}/rules.yaml && echo planted`,
  `mv ~/.local ~/elsewhere && mkdir -p ~/${STATE} && echo x > ~/${STATE}/shellyard.db && echo planted`,
  `mv ~/.config ~/elsewhere && mkdir -p ~/${CONFIG} && echo x > ~/${CONFIG}/config.yaml && echo planted`,
  `mv ~/.config ~/elsewhere; cat ~/elsewhere/gh/hosts.yml`,
  `mv ~/.local/state ~/elsewhere && mkdir -p ~/${STATE} && echo x > ~/${STATE}/shellyard.db && echo planted`,
  `rmdir ~/${CONFIG}; mkdir -p ~/${CONFIG} && echo x > ~/${CONFIG}/config.yaml && echo planted`,
  'mv ~/.ssh ~/elsewhere; cat ~/elsewhere/id ~/.ssh/id',
  'cat ~/.ssh/id',
];

/** Whatever acts left behind; a database that Shellyard itself has made is none of it. */
function planted(yard) {
  return [`${STATE}/shellyard.db`, `${CONFIG}/config.yaml`, `${CONFIG}/rules.yaml`].filter((name) => {
    const file = path.join(yard.home, name);
    const st = fs.lstatSync(file, { throwIfNoEntry: false });
    return st?.isSymbolicLink() || (st?.isFile() && fs.readFileSync(file, 'utf8') === 'x\n');
  });
}

function clean(yard) {
  for (const name of ['.local', '.config/shellyard', 'elsewhere', '.ssh', '.config']) {
    fs.rmSync(path.join(yard.home, name), { recursive: true, force: true });
  }
}

eachFront('at home neither secrets nor what Shellyard believes are in reach', async (t, { yard, open }) => {
  liveAtHome(yard);
  if (!hasFull(t, yard)) {
    return; // the next test
  }
  const front = await open();
  for (const act of acts) {
    const r = await front.run(act);
    assert.equal(r.sandbox?.tier, 'full', `${act}: ${r.text}`);
    assert.ok(!r.output.includes('planted') && !r.output.includes(SECRET), `${act}: ${r.output}`);
    assert.deepEqual(planted(yard), [], act);
    assert.equal(fs.readFileSync(path.join(yard.home, '.ssh/id'), 'utf8'), SECRET);
    assert.equal(fs.readFileSync(path.join(yard.home, '.config/gh/hosts.yml'), 'utf8'), SECRET);
  }
  const work = await front.run('cat notes && echo new > made && mkdir -p ~/.config/other && echo 1 > ~/.config/other/f && mv made moved && cat moved && rm -r moved ~/.config/other');
  assert.equal(work.output, 'a neighbour\nnew\n');
  // Each of them succeeds where nothing holds it.
  const free = await open({ settings: { 'sandbox.mode': 'danger-full-access' } });
  for (const act of acts) {
    clean(yard);
    liveAtHome(yard);
    fs.mkdirSync(path.join(yard.home, STATE), { recursive: true, mode: 0o700 });
    const r = await free.run(act);
    assert.match(r.output, /planted|the-secret-bytes/, act);
  }
});

eachFront('without namespaces nothing runs at home, and the way out is told', async (t, { yard, open }) => {
  liveAtHome(yard);
  const held = { 'sandbox.tier': 'no-namespace' };
  const ssh = await (await open({ settings: held })).run('echo ran');
  assert.ok(!ssh.text.includes('ran\n'), ssh.text);
  assert.match(ssh.text, /home\/\.(ssh|config\/gh)[^ ]*' lies below a writable root, where only the full tier can hold it: work in another directory, or name it in sandbox\.allow_read/);
  // No secret is there, and what is not there yet could be made.
  clean(yard);
  const own = await (await open({ settings: held })).run('echo ran');
  assert.ok(!own.text.includes('ran\n'), own.text);
  assert.match(own.text, /shellyard' lies below a writable root.*XDG_STATE_HOME/);
  // Read-only there is no such root, and a directory in it is as good as any.
  const reads = await (await open({ settings: { ...held, 'sandbox.mode': 'read-only' } })).run('cat notes');
  assert.equal(reads.output, 'a neighbour\n');
  fs.mkdirSync(path.join(yard.home, 'project'));
  yard.ws = path.join(yard.home, 'project');
  const project = await (await open({ settings: held })).run('echo ran > f && cat f');
  assert.equal(project.output, 'ran\n');
});

eachFront('a link below the workspace leads to nothing that Shellyard believes', async (t, { yard, open }) => {
  fs.mkdirSync(path.join(yard.ws, 'dots'));
  fs.symlinkSync(path.join(yard.ws, 'dots'), path.join(yard.home, '.config'));
  if (!hasFull(t, yard)) {
    return;
  }
  // ~/.config/shellyard lies in the workspace: it is made, and held there.
  const full = { 'sandbox.tier': 'full' };
  const r = await (await open({ settings: full })).run('exec 2>&1; echo x > dots/shellyard/config.yaml && echo planted; mv dots other && echo moved; echo done');
  assert.match(r.output, /^(?!.*(planted|moved)).*done\n$/s);
  assert.deepEqual(fs.readdirSync(path.join(yard.ws, 'dots/shellyard')), []);
  // Through a link that commands could turn: refused.
  fs.rmSync(path.join(yard.home, '.config'));
  fs.symlinkSync(path.join(yard.outside), path.join(yard.ws, 'turn'));
  fs.symlinkSync(path.join(yard.ws, 'turn'), path.join(yard.home, '.config'));
  const turned = await (await open({ settings: full })).run('echo ran');
  assert.ok(!turned.text.includes('ran\n'), turned.text);
  assert.match(turned.text, /is reached through '[^']*', a symbolic link that commands could change/);
});
