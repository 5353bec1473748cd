#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The plugin compiles without a warning against the headers of each Slurm release that is available:
# this machine's, and those of newer releases of Debian. The latter come from the roots of
# tests/distros.sh, or are downloaded once from this machine's mirror to
# ${XDG_CACHE_HOME:-~/.cache}/hvd-tests/slurm-NAME.
# usage: releases_test.sh SOURCE_ROOT COMPILER...
set -uo pipefail

root=$1
shift
compiler=("$@")
cache=${XDG_CACHE_HOME:-$HOME/.cache}/hvd-tests
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
tap_begin
# shellcheck disable=SC2207 # split the flags at blanks
flags=(-std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
    -Wformat=2 -Werror -fsyntax-only "-I$root" "-I$root/gpu_binding" $(pkg-config --cflags hwloc)
    '-DHVD_RENDEZVOUS_PROGRAM="elastic"' '-DHVD_PYTHON_DIR="python"' '-DHVD_PLUGIN_PATH="plugin"' '-DHVD_VERSION="0.1.0"')
# Prints the mirror from which this machine installs packages.
mirror()
{
    cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
        grep -oE 'https?://[^ ]+/debian/?( |$)' | head -n 1
}

# fetch NAME DIR: unpacks the libslurm-dev of Debian NAME to DIR, without changing the system's lists.
fetch()
{
    local apt from
    from=$(mirror)
    [ -n "$from" ] && command -v apt-get dpkg-deb >/dev/null || return
    mkdir -p "$work/$1"/{lists,cache}/partial "$work/$1/cache/archives/partial" "$2.$$"
    : >"$work/$1/status"
    echo "deb $from $1 main" >"$work/$1/sources"
    apt=(apt-get --quiet=2 -o "Dir::State::Lists=$work/$1/lists" -o "Dir::Cache=$work/$1/cache"
        -o "Dir::State::status=$work/$1/status" -o "Dir::Etc::SourceList=$work/$1/sources"
        -o Dir::Etc::SourceParts=-)
    "${apt[@]}" update && (cd "$work/$1" && "${apt[@]}" download libslurm-dev) &&
        dpkg-deb -x "$work/$1"/libslurm-dev_*.deb "$2.$$" && mv -T "$2.$$" "$2"
}

# Prints the directory above slurm/spank.h for a release of Debian.
headers_of()
{
    local dir
    for dir in "$cache/debian-$1" "$cache/slurm-$1"; do
        [ ! -e "$dir/usr/include/slurm/spank.h" ] || { echo "$dir/usr/include" && return; }
    done
    mkdir -p "$cache" && fetch "$1" "$dir" >"$work/fetch.log" 2>&1 && echo "$dir/usr/include"
}

# Compiles the plugin with Slurm's headers from $2. The other headers there belong to another C
# library, so a link makes only Slurm's visible.
compile()
{
    local file
    mkdir "$work/$1.include" && ln -s "$2/slurm" "$work/$1.include/slurm"
    for file in "$root"/spank/*.c; do
        "${compiler[@]}" -isystem "$work/$1.include" "${flags[@]}" "$file" || return
    done
}

# Prints the release of Slurm's headers in a directory: 0x180b05 is 24.11.5.
version_of()
{
    local number
    number=$(awk '$2 == "SLURM_VERSION_NUMBER" { print $3 }' "$1/slurm/slurm_version.h")
    printf '%d.%02d.%d' $((number >> 16)) $((number >> 8 & 255)) $((number & 255))
}

check()
{
    local promise
    promise="the plugin compiles for Slurm $(version_of "$2") ($1)"
    compile "$1" "$2" >"$work/out" 2>&1
    report $? "$promise"
}

check here /usr/include
for name in trixie sid; do
    if headers=$(headers_of "$name"); then
        check "$name" "$headers"
    else
        tap_skip "the plugin compiles for Slurm of $name" "no headers: $(tail -n 1 "$work/fetch.log")"
    fi
done
tap_done
