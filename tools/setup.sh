#!/bin/bash
# Installs what is missing on Debian and Ubuntu; elsewhere lists it.
#
#   tools/setup.sh [--list] PROFILE...
#
# PROFILE: build (compile; brings the script parser's C sources from npm), front (the small
# program on musl), node (MCP client and integration tests), check (tests and lint), fuzz,
# cover. --list only tells what is missing and
# fails if anything is. Nothing missing: silent, and quick.
set -euo pipefail
cd "$(dirname "$0")/.."

# profile | how to look | what | apt | dnf | pacman
needs='
build|compiler|cc|build-essential|gcc make glibc-static|base-devel
build|command|make|build-essential|make|base-devel
build|command|python3|python3|python3|python
build|command|meson|meson|meson|meson
build|command|ninja|ninja-build|ninja-build|ninja
build|command|pkg-config|pkg-config|pkgconf-pkg-config|pkgconf
build|library|libuv|libuv1-dev|libuv-devel libuv-static|libuv
build|library|jansson|libjansson-dev|jansson-devel|jansson
build|library|yaml-0.1|libyaml-dev|libyaml-devel|libyaml
build|library|sqlite3|libsqlite3-dev|sqlite-devel|sqlite
build|library|zlib|zlib1g-dev|zlib-devel zlib-static|zlib
build|library|libsodium|libsodium-dev|libsodium-devel|libsodium
build|library|libcurl|libcurl4-openssl-dev|libcurl-devel|curl
build|library|libseccomp|libseccomp-dev|libseccomp-devel|libseccomp
build|library|vterm|libvterm-dev|libvterm-devel|libvterm
build|library|libpcre2-8|libpcre2-dev|pcre2-devel pcre2-static|pcre2
build|library|cmocka|libcmocka-dev|libcmocka-devel|cmocka
build|grammars|npm|npm|nodejs-npm|npm
front|command|musl-gcc|musl-tools|musl-gcc|musl
node|command|npm|npm|nodejs-npm|npm
node|node|node|nodejs|nodejs|nodejs
check|command|git|git|git|git
check|command|curl|curl|curl|curl
check|command|less|less|less|less
check|command|vim|vim|vim-enhanced|vim
check|command|htop|htop|htop|htop
check|command|top|procps|procps-ng|procps-ng
check|command|tmux|tmux|tmux|tmux
check|command|fzf|fzf|fzf|fzf
check|command|bwrap|bubblewrap|bubblewrap|bubblewrap
check|command|strace|strace|strace|strace
check|command|openssl|openssl|openssl|openssl
check|command|zsh|zsh|zsh|zsh
check|command|fish|fish|fish|fish
check|command|clang|clang|clang|clang
check|command|clang-format|clang-format|clang-tools-extra|clang
check|command|clang-tidy|clang-tidy|clang-tools-extra|clang
check|command|shellcheck|shellcheck|ShellCheck|shellcheck
check|command|groff|groff-base|groff-base|groff
fuzz|command|clang|clang|clang|clang
fuzz|fuzzer|libFuzzer|@fuzzer|compiler-rt|compiler-rt
cover|command|gcovr|gcovr|gcovr|gcovr
'

only_list=false
if [ "${1:-}" = --list ]; then
    only_list=true
    shift
fi
profiles=" $* "
for p in "$@"; do
    case $p in
    build | front | node | check | fuzz | cover) ;;
    *)
        echo "setup.sh: unknown profile '$p'; known: build front node check fuzz cover" >&2
        exit 2
        ;;
    esac
done

npm_sum() { sha256sum <"$1/package-lock.json"; }

npm_is_done() { # directory
    [ "$(cat "$1/node_modules/.shellyard-lock" 2>/dev/null)" = "$(npm_sum "$1")" ]
}

has() { # how what
    case $1 in
    command) command -v "$2" >/dev/null ;;
    compiler) echo '#include <stdio.h>' | cc -E - >/dev/null 2>&1 ;;
    library) pkg-config --exists "$2" 2>/dev/null ;;
    node) tools/node.sh --path >/dev/null 2>&1 ;;
    grammars) npm_is_done grammars || command -v "$2" >/dev/null ;; # npm only where they are not there yet
    fuzzer)
        command -v clang >/dev/null &&
            [ -f "$(clang -print-file-name="libclang_rt.fuzzer-$(uname -m).a")" ]
        ;;
    esac
}

find_missing() { # fills missing (names), packages (of column $1)
    local profile how what apt dnf pacman column
    missing=()
    packages=()
    while IFS='|' read -r profile how what apt dnf pacman; do
        if [ -z "$profile" ] || [ "${profiles/ $profile /}" = "$profiles" ] || has "$how" "$what"; then
            continue
        fi
        case $1 in
        dnf) column=$dnf ;;
        pacman) column=$pacman ;;
        *) column=$apt ;;
        esac
        missing+=("$what")
        # shellcheck disable=SC2206 # a row may name several packages
        packages+=($column)
    done <<<"$needs"
}

unique() { printf '%s\n' "$@" | sort -u | tr '\n' ' '; }

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif ! command -v sudo >/dev/null; then
        echo "setup.sh: not root and no sudo here. As root, run: $*" >&2
        exit 1
    elif [ -t 0 ]; then
        sudo "$@"
    else
        sudo -n "$@" || {
            echo "setup.sh: sudo needs a password and there is no terminal. Run: sudo $*" >&2
            exit 1
        }
    fi
}

apt_lists_are_old() {
    [ -z "$(find /var/lib/apt/lists -maxdepth 1 -name '*Packages*' -mtime -1 -print -quit 2>/dev/null)" ]
}

# libFuzzer comes with clang on Ubuntu 22.04, in a package of its own elsewhere.
fuzzer_package() {
    local major
    major=$(clang -dumpversion 2>/dev/null || apt-cache depends clang | sed -n 's/.*Depends: clang-\([0-9]*\).*/\1/p')
    major=${major%%.*}
    if apt-cache show "libclang-rt-$major-dev" >/dev/null 2>&1; then
        echo "libclang-rt-$major-dev"
    else
        echo "libclang-common-$major-dev"
    fi
}

apt_install() {
    local list=() p
    if apt_lists_are_old; then
        as_root apt-get update -q
    fi
    for p in "$@"; do
        if [ "$p" = @fuzzer ]; then
            p=$(fuzzer_package)
        fi
        list+=("$p")
    done
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${list[@]}"
}

# Ubuntu 22.04 has Node.js 12: npm has newer ones as packages.
npm_node() {
    local arch
    case $(uname -m) in
    x86_64) arch=x64 ;;
    aarch64) arch=arm64 ;;
    *) return 1 ;;
    esac
    echo "setup.sh: this system's Node.js is too old; taking one from npm into build-node/"
    npm install --prefix build-node --ignore-scripts --no-save --no-audit --no-fund "node-linux-$arch@20"
}

npm_packages() { # directory what
    npm_is_done "$1" && return 0
    echo "setup.sh: $2"
    (cd "$1" && npm ci --ignore-scripts --no-audit --no-fund)
    npm_sum "$1" >"$1/node_modules/.shellyard-lock"
}

if command -v apt-get >/dev/null; then
    kind=apt
elif command -v dnf >/dev/null; then
    kind=dnf
elif command -v pacman >/dev/null; then
    kind=pacman
else
    kind=none
fi

find_missing $kind
if [ ${#missing[@]} -gt 0 ]; then
    echo "setup.sh: missing: $(unique "${missing[@]}")"
    if $only_list; then
        echo "setup.sh: 'tools/setup.sh$profiles' installs it on Debian and Ubuntu" >&2
        exit 1
    fi
    case $kind in
    apt)
        # shellcheck disable=SC2046 # package names hold no spaces
        apt_install $(unique "${packages[@]}")
        ;;
    dnf | pacman)
        echo "setup.sh: only Debian and Ubuntu are set up by this script. Here, install:" >&2
        echo "  $(unique "${packages[@]}")" >&2
        ;;
    none)
        echo "setup.sh: only Debian and Ubuntu are set up by this script. Install the above" >&2
        echo "(libraries by their pkg-config names, with headers and static archives);" >&2
        echo "without static archives build with MESON_ARGS=-Dstatic=false" >&2
        ;;
    esac
    if [ $kind = apt ] && ! has node node && [ "${profiles/ node /}" != "$profiles" ]; then
        npm_node || true
    fi
    find_missing $kind
    if [ ${#missing[@]} -gt 0 ]; then
        echo "setup.sh: still missing: $(unique "${missing[@]}")" >&2
        exit 1
    fi
fi
if $only_list; then
    exit 0
fi
if [ "${profiles/ build /}" != "$profiles" ]; then
    npm_packages grammars "npm packages: C sources of the script parser"
fi
if [ "${profiles/ node /}" != "$profiles" ]; then
    npm_packages tests/integration "npm packages of the integration tests"
fi
