#!/bin/sh
# Runs a Node.js that is new enough: the one on PATH, or the one that
# tools/setup.sh brought through npm where the distribution's is too old.
# `tools/node.sh --path` prints which, or fails.
set -eu

min=18
top=$(cd "$(dirname "$0")/.." && pwd)

is_new_enough() {
    major=$("$1" -p 'process.versions.node.split(".")[0]' 2>/dev/null) || return 1
    [ "$major" -ge "$min" ] 2>/dev/null
}

find_node() {
    for node in "$(command -v node || true)" "$(command -v nodejs || true)" \
        "$top"/build-node/node_modules/node-linux-*/bin/node; do
        if [ -n "$node" ] && [ -x "$node" ] && is_new_enough "$node"; then
            printf '%s\n' "$node"
            return 0
        fi
    done
    return 1
}

if ! node=$(find_node); then
    echo "node.sh: no Node.js $min or newer; run tools/setup.sh node" >&2
    exit 1
fi
if [ "${1:-}" = --path ]; then
    printf '%s\n' "$node"
    exit 0
fi
exec "$node" "$@"
