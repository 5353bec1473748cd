#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# lmod_env.sh: unpacks Debian's package lmod, which cannot be installed beside environment-modules, and prints the path
# of its program lmod. An installed Lmod is used as it is. The files are kept in ${XDG_CACHE_HOME:-~/.cache}/hvd-tests
# and reused. Status 3 and one line on stderr: there is no Lmod, and it cannot be had here.
set -euo pipefail

program=usr/share/lmod/lmod/libexec/lmod
environment=${XDG_CACHE_HOME:-$HOME/.cache}/hvd-tests/lmod

impossible()
{
    echo "no Lmod: $*" >&2
    exit 3
}

unpack()
{
    mkdir -p "$(dirname "$environment")"
    new=$(mktemp -d "$environment.XXXXXX")
    trap 'rm -rf "$new"' EXIT
    (cd "$new" && apt-get download lmod && dpkg -x lmod_*.deb .) >"$new/log" 2>&1 ||
        impossible "$(tail -n 1 "$new/log")"
    rm -rf "$environment"
    mv -T "$new" "$environment" 2>/dev/null || [ -x "$environment/$program" ] || # another process may have been faster
        impossible "$environment cannot be written"
}

root=
if [ ! -x "/$program" ]; then
    root=$environment
    [ -x "$root/$program" ] || unpack
fi
"$root/$program" bash --version >/dev/null 2>&1 ||
    impossible "$root/$program does not run; on Debian: apt-get install lua5.3 lua-filesystem lua-json lua-posix lua-term"
echo "$root/$program"
