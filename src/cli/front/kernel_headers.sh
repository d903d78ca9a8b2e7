#!/bin/sh
# The kernel's headers without those of the C library beside them, for musl-gcc,
# which sees neither: kernel_headers.sh DIR CC... makes DIR with a link to each of
# their directories, found by the compiler CC.
set -eu

dir=$1
shift
mkdir -p "$dir"
for name in linux asm asm-generic; do
    # -M prints the files that are read.
    header=$(printf '#include <%s/types.h>\n' "$name" | "$@" -M -x c - | tr -s ' ' '\n' |
        grep "/$name/types\.h\$" | head -n 1)
    ln -sfn "${header%/types.h}" "$dir/$name"
done
