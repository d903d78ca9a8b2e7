#!/bin/sh
# tools/fuzz.sh BUILD-DIR TARGET SECONDS: builds the fuzzers with clang and runs
# fuzz_TARGET on its corpus. New inputs stay in the build directory: add the
# few that reach new code to tests/fuzz/corpus/TARGET by hand.
# TARGET --build-only: compiles all of them, runs none.
set -eu
cd "$(dirname "$0")/.."

build=$1
target=$2
seconds=$3

CC=clang tools/build.sh "$build" -Dfuzz=true -Dstatic=false -Db_lundef=false
names=$(ninja -C "$build" -t targets all | sed -n 's|^tests/fuzz/fuzz_\([a-z0-9_]*\): .*|\1|p' | sort -u)
if [ "$target" = --build-only ]; then
    # shellcheck disable=SC2046 # names hold no spaces
    exec ninja -C "$build" $(printf '%s\n' "$names" | sed 's|^|tests/fuzz/fuzz_|')
fi
if [ -z "$target" ]; then
    echo "usage: make fuzz F=NAME [SECONDS=60], NAME one of:"
    printf '%s\n' "$names" | sed 's/^/  /'
    exit 2
fi
if ! printf '%s\n' "$names" | grep -qx "$target"; then
    echo "fuzz.sh: no fuzzer '$target'; there are: $(printf '%s' "$names" | tr '\n' ' ')" >&2
    exit 2
fi
ninja -C "$build" "tests/fuzz/fuzz_$target"

found=$build/corpus/$target
mkdir -p "$found" "$build/findings"
exec "$build/tests/fuzz/fuzz_$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 \
    -print_final_stats=1 -artifact_prefix="$build/findings/$target-" "$found" "tests/fuzz/corpus/$target"
