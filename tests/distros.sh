#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests this checkout on other releases of Debian, with their compilers, Slurm, PMIx, UCX and Python.
#
# usage: distros.sh LOGS [SUITE...]
# debootstrap makes a root directory for each release. It is kept as debian-NAME in
# ${XDG_CACHE_HOME:-~/.cache}/hvd-tests (about 5 GB) and reused; remove it to get a newer one. On a copy of
# the checkout in it, `tests/run.sh SUITE...` (default: unit, processes, cluster) and then contrib/demo.sh
# run. Each of the two is one promise of TAP; outputs and a table of versions go to the directory LOGS.
#
# HVD_TEST_DISTROS="NAME..."  the releases, default "trixie sid"
set -uo pipefail

checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
roots=${XDG_CACHE_HOME:-$HOME/.cache}/hvd-tests
distros=${HVD_TEST_DISTROS:-trixie sid}
logs=${1:?no directory for logs}
shift
suites=${*:-unit processes cluster}
promises=0
# shellcheck source=tests/roots.sh
. "$checkout/tests/roots.sh"

report()
{
    promises=$((promises + 1))
    echo "$1 $promises - $2"
}

# show_end LOG: prints the end of an output as comments of TAP.
show_end()
{
    tail -n 100 "$1" | sed 's/^/# /'
}

# --- this checkout there ---

# Prints the files that git tracks or would add; for an unpacked archive, all files outside builds.
sources()
{
    cd "$checkout" || return
    if git ls-files >/dev/null 2>&1; then
        git ls-files -z --cached --others --exclude-standard --deduplicate
    else
        find . -path './build*' -prune -o -type f -print0
    fi | while IFS= read -r -d '' file; do
        [ ! -e "$file" ] || printf '%s\0' "$file" # git also lists deleted files
    done
}

# Copies the checkout. Earlier builds stay, and unchanged files keep their times in the copy, so that only changed
# files are compiled, whichever checkout they come from.
copy_checkout()
{
    local old=$1/hvd new=$1/hvd.new file
    rm -rf "$new"
    mkdir -p "$old" "$new"
    sources | tar -C "$checkout" --null --files-from=- -c | tar -C "$new" --touch -x
    while IFS= read -r -d '' file; do
        ! cmp -s "$old/$file" "$new/$file" || touch -r "$old/$file" "$new/$file"
    done < <(cd "$new" && find . -type f -print0)
    find "$old" -mindepth 1 -maxdepth 1 -name 'build-*' -exec mv {} "$new" \;
    rm -rf "$old"
    mv "$new" "$old"
    cp -L /etc/resolv.conf /etc/hosts "$1/etc/"
}

# Prints upstream's version of the package, as in "4:14.2.0-1" or "2.6.0+dfsg-7".
version()
{
    in_root "$1" dpkg-query -Wf '${Version}' "$2" 2>/dev/null | sed -E 's/^[0-9]+://; s/[-+].*//'
}

print_versions()
{
    local root=$1 package
    printf '%-10s' "$2"
    for package in gcc clang libslurm-dev libpmix-dev libucx-dev libhwloc-dev libopenmpi-dev python3 \
        python3-torch; do
        printf ' %-10s' "$(version "$root" "$package")"
    done
    printf '\n'
}

# --- promises ---

test_suites()
{
    local name=$1 root=$2 log=$logs/distros-$1.log verdict=ok
    # shellcheck disable=SC2086 # several suites
    in_root "$root" /hvd/tests/run.sh $suites >"$log" 2>&1 || verdict='not ok'
    report "$verdict" "$name: $suites: $(tail -n 1 "$log")"
    [ "$verdict" = ok ] || show_end "$log"
}

run_demo()
{
    local name=$1 root=$2 log=$logs/distros-$1-demo.log
    if in_root "$root" /hvd/contrib/demo.sh >"$log" 2>&1; then
        report ok "$name: contrib/demo.sh: $(grep '^[0-9]* rank.* images/s' "$log" | tail -n 1 | tr -s ' ')"
    else
        report 'not ok' "$name: contrib/demo.sh"
        show_end "$log"
    fi
}

test_distro()
{
    local name=$1 root=$roots/debian-$1 log=$logs/distros-$1-root.log
    exec 8>"$root.lock"
    flock --nonblock 8 || { report ok "$name # SKIP another run works in $root" && return; }
    if [ ! -d "$root" ] && ! make_root "$root" "$name" >"$log" 2>&1; then
        report ok "$name # SKIP debootstrap: $(tail -n 1 "$log")"
        return
    fi
    copy_checkout "$root" || { report 'not ok' "$name: a copy of the checkout" && return; }
    test_suites "$name" "$root"
    run_demo "$name" "$root"
    print_versions "$root" "$name" >>"$logs/distros.versions"
}

main()
{
    local distro reason
    mkdir -p "$roots" "$logs"
    rm -f "$logs/distros.versions"
    reason=$(obstacle)
    for distro in $distros; do
        if [ -n "$reason" ]; then
            report ok "$distro # SKIP $reason"
        else
            test_distro "$distro"
        fi
    done
    [ ! -e "$logs/distros.versions" ] || {
        printf '# %-10s %-10s %-10s %-10s %-10s %-10s %-10s %-10s %-10s %s\n' '' gcc clang Slurm PMIx UCX \
            hwloc 'Open MPI' Python torch
        sed 's/^/# /' "$logs/distros.versions"
    }
    echo "1..$promises"
}

main
