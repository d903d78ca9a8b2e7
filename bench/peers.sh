#!/bin/sh
# Installs the programs that the bench compares with, outside the tree:
#
#   bench/peers.sh [NAME...]      names: bubblewrap tmux codex srt desktop-commander node-pty
#
# Directory: $SHELLYARD_BENCH_PEERS, else ${XDG_CACHE_HOME:-$HOME/.cache}/shellyard-bench-peers,
# one folder a package, so that one that fails does not disturb the others. Nothing of the project
# needs them; bench/bench.py measures those that it finds and names those that are absent.
# Versions are those of docs/bench.md; *_VERSION in the environment overrides one.
set -u

dir=${SHELLYARD_BENCH_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/shellyard-bench-peers}
codex_version=${CODEX_VERSION:-0.171.0}
srt_version=${SRT_VERSION:-0.0.83}
desktop_commander_version=${DESKTOP_COMMANDER_VERSION:-0.2.52}
node_pty_version=${NODE_PTY_VERSION:-1.1.0}
# Seconds for one step. Native builds are known to loop for ever when the wall clock jumps back
# (make sees files of the future), so nothing here runs without a limit.
limit=${SHELLYARD_BENCH_PEERS_TIMEOUT:-300}

failed=''

say() {
    printf 'peers: %s\n' "$*"
}

run() {
    timeout --kill-after=10 "$limit" "$@" </dev/null
}

# apt_install PACKAGE... : as root, or by sudo where that asks for no password.
apt_install() {
    if ! command -v apt-get >/dev/null 2>&1; then
        say "no apt-get here: install $* with this system's package manager"
        return 1
    fi
    if [ "$(id -u)" -eq 0 ]; then
        run env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
    elif sudo -n true 2>/dev/null; then
        run sudo -n env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y --no-install-recommends "$@"
    else
        say "not root and no sudo without a password: run 'apt-get install $*' as root"
        return 1
    fi
}

# npm_install FOLDER PACKAGE@VERSION : without install scripts.
npm_install() {
    mkdir -p "$dir/$1" || return 1
    [ -e "$dir/$1/package.json" ] || printf '{"private": true}\n' >"$dir/$1/package.json"
    run npm install --prefix "$dir/$1" --ignore-scripts --no-audit --no-fund --loglevel=error "$2"
}

install_tmux() {
    command -v tmux >/dev/null 2>&1 || apt_install tmux
}

install_bubblewrap() {
    command -v bwrap >/dev/null 2>&1 || apt_install bubblewrap
}

install_codex() {
    npm_install codex "@openai/codex@$codex_version"
}

# srt will not start without ripgrep, socat and bwrap.
install_srt() {
    missing=''
    command -v rg >/dev/null 2>&1 || missing="$missing ripgrep"
    command -v socat >/dev/null 2>&1 || missing="$missing socat"
    command -v bwrap >/dev/null 2>&1 || missing="$missing bubblewrap"
    # shellcheck disable=SC2086 # a list of package names
    if [ -n "$missing" ] && ! apt_install $missing; then
        say "srt is installed but will not run without:$missing"
    fi
    npm_install srt "@anthropic-ai/sandbox-runtime@$srt_version"
}

install_desktop_commander() {
    npm_install desktop-commander "@wonderwhy-er/desktop-commander@$desktop_commander_version"
}

# Has no Linux binary in its package: built against the headers of the node that is installed.
install_node_pty() {
    npm_install node-pty "node-pty@$node_pty_version" || return 1
    node_dir=$(dirname "$(dirname "$(command -v node)")")
    if [ ! -e "$node_dir/include/node/node_api.h" ]; then
        say "node-pty: no headers of node below $node_dir/include/node; not built"
        return 1
    fi
    (cd "$dir/node-pty/node_modules/node-pty" &&
        run npm rebuild --foreground-scripts --loglevel=error --nodedir="$node_dir" >build.log 2>&1)
    # The build may be cut by the limit after it has made what is needed.
    [ -e "$dir/node-pty/node_modules/node-pty/build/Release/pty.node" ]
}

try() {
    say "$1"
    if "install_$(printf %s "$1" | tr - _)"; then
        say "$1: installed"
    else
        say "$1: FAILED (limit $limit s a step); the bench goes on without it"
        failed="$failed $1"
    fi
}

[ $# -gt 0 ] || set -- bubblewrap tmux codex srt desktop-commander node-pty
for name in "$@"; do
    case $name in
    bubblewrap | tmux | codex | srt | desktop-commander | node-pty) ;;
    *)
        say "unknown peer '$name' (bubblewrap tmux codex srt desktop-commander node-pty)"
        exit 2
        ;;
    esac
done
if ! command -v npm >/dev/null 2>&1; then
    say "npm is missing: only bubblewrap and tmux can be installed"
fi
mkdir -p "$dir" || exit 1
for name in "$@"; do
    try "$name"
done
say "directory: $dir"
if [ -n "$failed" ]; then
    say "not installed:$failed"
    exit 1
fi
