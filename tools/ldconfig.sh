#!/bin/sh
# At the end of an installation: programs find the library by the dynamic linker's cache. Below
# DESTDIR nothing is in its place yet, and only root may write the cache.
set -eu

if [ -n "${DESTDIR:-}" ] || [ "$(id -u)" -ne 0 ]; then
    exit 0
fi
PATH=$PATH:/usr/sbin:/sbin
if command -v ldconfig >/dev/null; then
    ldconfig || echo "ldconfig failed: programs may not find libshellyard.so.0" >&2
fi
