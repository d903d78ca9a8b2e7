import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { startMcp, call, program, makeYard } from './lib/client.mjs';
const sw = path.join(path.dirname(program), 'tests/integration/auditing');
const cleanup = []; const t = { after: (f) => cleanup.push(f) };
const yard = makeYard(t);
spawnSync(sw, ['on']);
const base = { 'sandbox.mode': 'workspace-write', 'shell.path': '/bin/bash', 'sandbox.tier': 'no-namespace' };
const on = await startMcp({ cwd: yard.ws, env: yard.env, settings: { ...base, 'sandbox.read_audit': true } });
const off = await startMcp({ cwd: yard.ws, env: yard.env, settings: { ...base, 'sandbox.read_audit': false } });
const res = {};
for (const script of ['true', 'exit 1', `mkdir ${yard.outside}/x 2>/dev/null; exit 1`]) {
  for (let i = 0; i < 300; i++) for (const [n, s] of [['on', on], ['off', off]]) {
    const a = performance.now(); const r = await call(s.client, 'shell_command', { command: script, login: false }); const d = performance.now() - a;
    if (i >= 20) (res[script.slice(0, 8) + ' ' + n] ??= []).push(d);
  }
}
for (const [k, v] of Object.entries(res)) { v.sort((a, b) => a - b); console.log(k, 'median', v[v.length >> 1].toFixed(3), 'p25', v[v.length >> 2].toFixed(3), 'p95', v[Math.floor(v.length * 0.95)].toFixed(3)); }
await on.close(); await off.close(); spawnSync(sw, ['off']); cleanup.forEach((f) => f());
