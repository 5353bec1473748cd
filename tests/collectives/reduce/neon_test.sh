#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# neon_test.sh SOURCE_ROOT: what the tests of the kernels promise also holds on 64-bit ARM. Compiles
# both for it and runs them in an emulator: aarch64-linux-gnu-gcc and qemu-aarch64, of
# Debian's gcc-aarch64-linux-gnu and qemu-user.
set -u

cd "$1" || exit 1
# shellcheck source=tests/tap.sh
. tests/tap.sh
for tool in aarch64-linux-gnu-gcc qemu-aarch64; do
    command -v "$tool" >/dev/null || tap_skip_all "there is no $tool"
done
tap_begin

# compile OUTPUT SOURCE...
compile()
{
    output=$1
    shift
    # -O1: quick to compile, and the instructions of intrinsics are the same
    aarch64-linux-gnu-gcc -std=c11 -D_GNU_SOURCE -O1 -Wall -Wextra -Werror -static -I. -Igpu_binding \
        -o "$output" "$@" -lm >"$work/out" 2>&1
}

kernels=
for file in convert dtype float_env reduce reduce_levels reduce_portable reduce_neon scale stream; do
    object=$work/$file.o
    compile "$object" -c "collectives/reduce/$file.c" || sed 's/^/# /' "$work/out"
    kernels="$kernels $object"
done
compile "$work/float_modes.o" -c tests/collectives/reduce/float_modes.c || sed 's/^/# /' "$work/out"
kernels="$kernels $work/float_modes.o"
for name in convert float_env half reduce_levels reduce_nan stream; do
    # shellcheck disable=SC2086
    compile "$work/$name" "tests/collectives/reduce/${name}_test.c" $kernels &&
        qemu-aarch64 "$work/$name" >"$work/out" 2>&1
    report $? "$name"
done
qemu-aarch64 "$work/reduce_levels" | grep -q '^ok.*neon: scaled sum of bfloat16'
report $? 'the kernels for ARM were among them'
tap_done
