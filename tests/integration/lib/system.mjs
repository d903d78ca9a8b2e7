// An administrator's configuration and another kernel's settings, without touching the machine's.
import fs from 'node:fs';
import path from 'node:path';
import { spawnSync } from 'node:child_process';
import { program } from './client.mjs';

const namespace = process.getuid() === 0 ? ['-m'] : ['-rm'];

export function hasSystem() {
  return spawnSync('unshare', [...namespace, 'mount', '-t', 'tmpfs', 'none', '/mnt']).status === 0;
}

/** Runs Shellyard where /etc is a copy with this system configuration. */
export function underSystem(yard, config, args, input = '') {
  const etc = path.join(yard.dir, 'etc');
  fs.mkdirSync(path.join(etc, 'shellyard'), { recursive: true });
  for (const name of ['passwd', 'group', 'nsswitch.conf', 'ld.so.cache', 'hosts', 'localtime']) {
    if (fs.existsSync(`/etc/${name}`)) {
      fs.copyFileSync(`/etc/${name}`, path.join(etc, name));
    }
  }
  fs.writeFileSync(path.join(etc, 'shellyard/config.yaml'), config, { mode: 0o644 });
  return spawnSync('unshare', [...namespace, 'sh', '-c', 'mount --bind "$0" /etc && exec "$@"', etc, program, ...args], {
    cwd: yard.ws, env: yard.env, encoding: 'utf8', input,
  });
}

/** Runs Shellyard where Yama (Linux) says this ptrace_scope. */
export function underYama(yard, scope, args) {
  const script = 'mount -t tmpfs none /proc/sys/kernel && mkdir /proc/sys/kernel/yama && '
    + 'echo "$0" >/proc/sys/kernel/yama/ptrace_scope && exec "$@"';
  return spawnSync('unshare', [...namespace, 'sh', '-c', script, `${scope}`, program, ...args], {
    cwd: yard.ws, env: yard.env, encoding: 'utf8',
  });
}
