#!/bin/sh
# Configures a build directory: tools/build.sh DIR [meson options].
# Does nothing when the directory was configured with the same options, so that
# ninja alone decides what to do.
set -eu
cd "$(dirname "$0")/.."

dir=$1
shift
stamp=$dir/.shellyard-options
want="$*"

if [ -f "$dir/build.ninja" ]; then
    if [ "$(cat "$stamp" 2>/dev/null)" = "$want" ]; then
        exit 0
    fi
    # Options may have been given before that are not now: start from defaults.
    set -- --wipe "$@"
fi
meson setup "$dir" "$@"
printf '%s\n' "$want" >"$stamp"
