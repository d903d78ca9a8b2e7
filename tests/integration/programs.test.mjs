// Programs of every day at a terminal, driven as a person would, and seen as one would see them.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { STUCK_MS, has, mustRun } from './lib/client.mjs';
import { openDrive } from './lib/drive.mjs';
import { open } from './lib/live.mjs';

/** A test that needs these programs. */
function drives(title, programs, body) {
  test(title, { timeout: STUCK_MS }, async (t) => {
    if (programs.every((name) => mustRun(t, has(name), `no ${name}`))) {
      await body(t);
    }
  });
}

drives('vim: a text is written, changed and saved', ['vim'], async (t) => {
  const s = await openDrive(t);
  const vim = await s.run('vim -u NONE -n notes.txt', { rows: 12, cols: 60 });

  await vim.see((r) => r.screen?.alt_screen && /^~$/m.test(r.output), 'an empty text');
  await vim.type('ione\rtwo\rthree');
  await vim.see(/^one\ntwo\nthree\n/);
  await vim.press('Escape', 'Up', 'Up');
  await vim.see((r) => r.screen.cursor.row === 0, 'the cursor in the first row');
  await vim.type('ddGp');
  await vim.see(/^two\nthree\none\n/);
  assert.deepEqual([vim.last.screen.cursor.row, vim.last.screen.cursor.col], [2, 0], vim.show());
  await vim.type(':wq\r');
  await vim.ends();
  assert.equal(fs.readFileSync(path.join(s.yard.ws, 'notes.txt'), 'utf8'), 'two\nthree\none\n');
});

drives('vim: a smaller terminal is drawn anew', ['vim'], async (t) => {
  const s = await openDrive(t);
  const vim = await s.run('seq 1 50 >n.txt; vim -u NONE -n -c "set number laststatus=2" n.txt', { rows: 24, cols: 80 });

  await vim.see(/^ +22 22$/m);
  await vim.send({ rows: 10, cols: 30 });
  await vim.see((r) => r.screen.rows === 10 && !/^ +9 9$/m.test(r.output) && /^ +8 8$/m.test(r.output) && /n\.txt/.test(r.output), '8 lines');
  assert.ok(vim.rows().length <= 11 && vim.rows().every((row) => row.length <= 30), vim.show());
  await vim.send({ rows: 30, cols: 100 });
  await vim.see((r) => r.screen.cols === 100 && /^ +28 28$/m.test(r.output), '28 lines');
  // What it draws until it leaves is no text.
  await vim.type('G\u0002:q!\r', { view: 'auto', yield_time_ms: 30_000 });
  assert.deepEqual([vim.last.exit_code, vim.last.output, vim.last.truncated], [0, '', undefined]);
});

drives('less: pages, a search and its highlight', ['less'], async (t) => {
  const s = await openDrive(t);
  const less = await s.run('seq 1 300 | less', { rows: 11, cols: 40, env: { LESS: '' } });

  await less.see((r) => r.screen?.alt_screen && /^1\n2\n/.test(r.output), 'the first page');
  await less.press('PageDown');
  await less.see(/^11\n/);
  await less.press('PageUp');
  await less.see(/^1\n/);
  await less.press('Down');
  await less.see(/^2\n/);
  await less.type('/25[07]\r');
  await less.see((r) => /^250\n/.test(r.output) && r.screen.highlighted?.some((h) => h.text === '250'), 'what was found, highlighted');
  await less.type('n');
  await less.see(/^257\n/);
  await less.press('End');
  await less.see(/^300$/m);
  await less.type('q');
  await less.ends();
});

drives('htop: draws, and F10 leaves the screen as it was', ['htop'], async (t) => {
  const s = await openDrive(t);
  const htop = await s.run("PS1='here$ ' bash --norc -i");

  await htop.see(/^here\$$/m);
  await htop.type('htop\r');
  await htop.see((r) => r.screen?.alt_screen && /F1 ?Help/.test(r.output) && /PID/.test(r.output), 'the menu');
  await htop.press('F10');
  await htop.see((r) => !r.screen.alt_screen && /here\$ htop/.test(r.output), 'the shell');
  await htop.type('htop\r');
  await htop.see((r) => r.screen.alt_screen && /F10 ?Quit/.test(r.output), 'the menu again');
  await htop.press('F1');
  await htop.see(/Arrows|press any key/i);
  await htop.press('Escape');
  await htop.see(/F10 ?Quit/);
  await htop.type('q');
  await htop.see((r) => !r.screen.alt_screen, 'the shell');
  await htop.type('exit 0\r');
  await htop.ends();
});

drives('what is shown by itself: of top its screen, of shells and REPLs their text', ['top', 'python3'], async (t) => {
  const s = await open(t);
  const begin = (command, args) => s.tool('exec_command', { command, tty: true, term: 'xterm-256color', until: 'prompt', yield_time_ms: 30_000, ...args });
  const top = await begin(['top', '-d', '60'], { pattern: 'PID', until: 'stable' });
  const page = await s.type(top.session_id, ' ', { pattern: 'COMMAND', until: 'stable', yield_time_ms: 30_000 });

  assert.equal(page.screen?.alt_screen, false, page.text);
  assert.match(page.output, /^top - [\s\S]*PID +USER/);

  // Nothing new is no reason to show nothing. What is shown first may be half of a drawing.
  const still = (id) => s.tool('write_stdin', { session_id: id, idle_ms: 250, yield_time_ms: 30_000 });
  let shown = page;
  let same = await still(top.session_id);

  for (let i = 0; i < 20 && same.screen?.seq !== shown.screen.seq; i += 1) {
    shown = same;
    assert.ok(shown.screen, shown.text);
    same = await still(top.session_id);
  }
  assert.equal(same.screen?.seq, shown.screen.seq, same.text);
  assert.equal(same.output, shown.output);
  assert.match(same.output, /^top - [\s\S]*PID +USER/);

  for (const [command, line, says] of [[['bash', '--norc'], 'printf "%s\\n" 4{1..2}', /41\r?\n42/], [['python3'], 'print(6 * 7)', /42/],
    [[process.execPath], '6 * 7', /42/]]) {
    const r = await begin(command);
    const next = await s.type(r.session_id, `${line}\n`, { until: 'prompt', yield_time_ms: 30_000 });
    const again = await s.tool('write_stdin', { session_id: r.session_id, keys: ['Up', 'Enter'], until: 'prompt', yield_time_ms: 30_000 });

    const rest = await still(r.session_id);

    assert.equal(rest.output, '');
    for (const answer of [r, next, again, rest]) {
      assert.equal(answer.screen, undefined, `${command[0]}: ${answer.text}`);
    }
    assert.match(next.output, says);
    assert.match(again.output, says);
  }
});

drives('top: one page, and q', ['top'], async (t) => {
  const s = await openDrive(t);
  const top = await s.run('top -d 60', { rows: 24, cols: 80 });

  await top.see(/^top - [\s\S]*PID +USER/);
  await top.type('q');
  await top.ends();
});

drives('tmux: a session, a second pane, and detached', ['tmux'], async (t) => {
  const s = await openDrive(t);
  const tmux = await s.run('tmux -f /dev/null -L t new-session -s yard "PS1=one: bash --norc"', { rows: 24, cols: 80 });

  await tmux.see((r) => r.screen?.alt_screen && /^one:/.test(r.output) && /\[yard\]/.test(r.output), 'the first pane');
  await tmux.press('C-b', '"');
  await tmux.see(/^─{80}$/m);
  await tmux.type('echo $((6 * 7))-in-two\r');
  await tmux.see(/^42-in-two$/m);
  assert.ok(tmux.rows().findIndex((row) => row === '42-in-two') > tmux.rows().findIndex((row) => /^─+$/.test(row)), tmux.show());
  await tmux.press('C-b', 'd');
  await tmux.ends();
  assert.match(tmux.last.output, /\[detached \(from session yard\)\]/);
});

drives('fzf: a word narrows the list, Enter chooses', ['fzf'], async (t) => {
  const s = await openDrive(t);
  const fzf = await s.run("printf '%s\\n' apple banana cherry blueberry | fzf --no-mouse >chosen; echo rc=$?", { rows: 12, cols: 40 });

  await fzf.see(/4\/4/);
  await fzf.type('berry');
  await fzf.see((r) => /1\/4/.test(r.output) && /blueberry/.test(r.output) && !/apple/.test(r.output), 'one left');
  await fzf.press('C-u');
  await fzf.see(/4\/4/);
  await fzf.press('Up');
  await fzf.see(/^[>▌] banana$/m); // 0.56 draws a bar
  await fzf.press('Enter');
  await fzf.ends();
  assert.equal(fs.readFileSync(path.join(s.yard.ws, 'chosen'), 'utf8'), 'banana\n');
});

drives('the Python REPL: a definition over several lines, history, and its end', ['python3'], async (t) => {
  const s = await openDrive(t);
  const py = await s.run('/usr/bin/python3 -q', { until: 'prompt', yield_time_ms: 30_000 });

  assert.equal(py.last.reason, 'prompt', py.show());
  await py.type('def twice(x):\r    return x * 2\r\rtwice(21)\r');
  await py.see(/^42\n>>>/m);

  const slow = await py.type('import time; time.sleep(0.3); print("slept")\r', { until: 'prompt', yield_time_ms: 30_000 });

  assert.equal(slow.reason, 'prompt');
  assert.match(slow.output, /^slept\n>>>/m);
  await py.press('Up', 'Up', 'Enter');
  await py.see(/^42\n>>>[^]*^42\n>>>/m);
  await py.type('while True: pass\r\r');
  await py.press('C-c');
  await py.see(/KeyboardInterrupt\n>>>/);
  await py.type('exit(3)\r');
  await py.ends(3);
});

drives('the Node REPL: a value, and .exit', [], async (t) => {
  const s = await openDrive(t);
  const node = await s.run(`"${process.execPath}" -i`, { until: 'prompt', yield_time_ms: 30_000 });

  await node.see(/^> ?$/m);
  await node.type('[1, 2, 3].map((x) =>\r');
  await node.see(/^\.\.\./m);
  await node.type('x * 7)\r');
  await node.see(/\[ 7, 14, 21 \]/);
  await node.type('.exit\r');
  await node.ends();
});

drives('git add -p: one hunk yes, one no', ['git'], async (t) => {
  const s = await openDrive(t);
  const file = path.join(s.yard.ws, 'f');
  const lines = Array.from({ length: 30 }, (_, i) => `line ${i + 1}`);
  const git = (...args) => execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.org', ...args], { cwd: s.yard.ws, env: s.yard.env, encoding: 'utf8' });

  git('init', '-q');
  fs.writeFileSync(file, `${lines.join('\n')}\n`);
  git('add', 'f');
  git('commit', '-qm', 'first');
  lines[0] = 'FIRST';
  lines[29] = 'LAST';
  fs.writeFileSync(file, `${lines.join('\n')}\n`);
  if (process.getuid() === 0) {
    execFileSync('chown', ['-R', '--reference', s.yard.ws, s.yard.ws]);
  }

  const add = await s.run('git add -p', { env: { GIT_PAGER: 'cat' } });

  await add.see(/\(1\/2\) Stage this hunk/);
  assert.match(add.last.output, /^\+FIRST$/m);
  await add.type('y\r');
  await add.see(/\(2\/2\) Stage this hunk/);
  assert.match(add.last.output, /^\+LAST$/m);
  await add.type('n\r');
  await add.ends();

  const staged = git('diff', '--cached');

  assert.match(staged, /^\+FIRST$/m);
  assert.doesNotMatch(staged, /LAST/);
});

// A white box on a blue screen; what is chosen there is as blue as the screen.
const MENU = `import curses
def main(screen):
    blue, white = [(curses.init_pair(i, curses.COLOR_BLACK, c), curses.color_pair(i))[1] for i, c in ((1, curses.COLOR_BLUE), (2, curses.COLOR_WHITE))]
    screen.bkgd(' ', blue)
    screen.refresh()
    box = curses.newwin(7, 30, 5, 20)
    box.bkgd(' ', white)
    box.keypad(True)
    box.box()
    curses.curs_set(0)
    chosen, key = 0, 0
    while key != ord('q'):
        chosen = (chosen + (key == curses.KEY_DOWN)) % 3
        for i, item in enumerate(('Apple', 'Banana', 'Cherry')):
            box.addstr(2 + i, 8, item.ljust(10), blue if i == chosen else white)
        key = box.getch()
curses.wrapper(main)
`;

drives('a coloured menu: what is chosen is highlighted, and moves', ['python3'], async (t) => {
  const s = await openDrive(t);
  fs.writeFileSync(path.join(s.yard.ws, 'menu.py'), MENU);
  const menu = await s.run(['/usr/bin/python3', 'menu.py'], { until: 'input', yield_time_ms: 30_000 });
  const chosen = () => menu.last.screen.highlighted?.map((h) => [h.row, h.col, h.text.trim()]);

  await menu.see(/Cherry/);
  assert.deepEqual(chosen(), [[7, 28, 'Apple']], menu.show());
  await menu.send({ view: 'diff' });
  await menu.press('Down');
  await menu.see((r) => r.screen.highlighted?.[0]?.row === 8, 'the next one chosen');
  assert.deepEqual(chosen(), [[8, 28, 'Banana']], menu.show());
  await menu.send({ keys: ['Down'], view: 'diff', until: 'input', yield_time_ms: 30_000 });
  assert.equal(menu.last.reason, 'input', menu.show());
  assert.match(menu.last.output, /^8: .*Banana.*\n9: .*Cherry/m, menu.show());
  assert.deepEqual(chosen(), [[9, 28, 'Cherry']], menu.show());
  await menu.type('q');
  await menu.ends();
});
