#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# configure_test.sh SOURCE_ROOT: `meson setup` rejects compilers, libraries and a Slurm that are too old; the error
# has the name, the version that was found, the oldest that is accepted, and the remedy. Stand-ins replace all of
# them, so the test does not depend on what is installed.
source=$1
# shellcheck source=tests/tap.sh
. "$source/tests/tap.sh"
tap_begin

# pretend DIRECTORY LIBRARY VERSION: makes a stand-in that pkg-config finds in DIRECTORY.
pretend()
{
    mkdir -p "$work/$1"
    printf 'Name: %s\nDescription: stand-in\nVersion: %s\n' "$2" "$3" >"$work/$1/$2.pc"
}

# slurm_headers DIRECTORY NUMBER: makes headers as of Slurm up to 20.11, without slurm_version.h.
slurm_headers()
{
    mkdir -p "$work/$1/slurm"
    : >"$work/$1/slurm/spank.h"
    echo "#define SLURM_VERSION_NUMBER $2" >"$work/$1/slurm/slurm.h"
}

# configure OPTION...: runs meson setup; its output is in $work/out.
configure()
{
    rm -rf "$work/build"
    PKG_CONFIG_PATH=$work/$first:$work/good meson setup -Dcuda=disabled "$@" "$work/build" \
        "$source" >"$work/out" 2>&1
}

# refuses MESSAGE OPTION...: meson setup fails with MESSAGE.
refuses()
{
    message=$1
    shift
    ! configure "$@" && grep -q "ERROR: .*$message" "$work/out"
    report $? "rejected: $message"
}

# The oldest accepted versions; each case differs from these in one version.
pretend good hwloc 2.1.0
pretend good pmix 3.2.0
pretend good ucx 1.12.0
pretend good libsodium 1.0.14
pretend good yaml-0.1 0.2.1
slurm_headers slurm-20.11 0x140b07

first=good
configure -Dman=disabled -Dslurm=enabled "-Dc_args=-I$work/slurm-20.11" && grep -q 'for Slurm *: 20\.11$' "$work/out"
report $? 'the oldest versions are accepted'
! grep -q '^build tests/' "$work/build/build.ninja"
report $? 'no test is built unless it is asked for'
# meson install fails at a link to a page that is not installed.
meson introspect --installed "$work/build" >"$work/out" && ! grep -q "share/man/" "$work/out"
report $? 'without man pages, no link to one is installed'

while read -r first name version oldest; do
    pretend "$first" "$name" "$version"
    refuses "$name $version is too old, hvd needs $oldest or newer: .* PKG_CONFIG_PATH" -Dslurm=disabled
done <<CASES
old-hwloc hwloc 2.0.4 2.1
old-pmix pmix 3.1.5 3.2
old-ucx ucx 1.11.2 1.12
old-libsodium libsodium 1.0.13 1.0.14
CASES

first=good
slurm_headers slurm-20.02 0x140207
refuses 'Slurm 20.02 is too old, hvd needs 20.11 or newer: .* -Dslurm=disabled' "-Dc_args=-I$work/slurm-20.02"

# meson trusts the version that clang prints; it asks gcc for its macros.
printf '#!/bin/sh\ncase $1 in --version) echo "clang version 8.0.1" ;; *) exec cc "$@" ;; esac\n' >"$work/clang"
chmod +x "$work/clang"
CC=$work/clang refuses 'clang 8.0.1 is too old, hvd needs 9 or newer: .* CC='
CC='gcc -U__GNUC__ -D__GNUC__=7 -U__GNUC_MINOR__ -D__GNUC_MINOR__=5' refuses \
    'gcc 7.5.[0-9]* is too old, hvd needs 8 or newer: .* CC='

tap_done
