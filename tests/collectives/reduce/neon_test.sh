#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# neon_test.sh SOURCE_ROOT: the tests of the kernels also pass on 64-bit ARM. Compiles kernels and
# tests with aarch64-linux-gnu-gcc and runs them in the emulator qemu-aarch64 (Debian's packages
# gcc-aarch64-linux-gnu and qemu-user).
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
    # -O1 compiles fast, and intrinsics become the same instructions
    aarch64-linux-gnu-gcc -std=c11 -D_GNU_SOURCE -O1 -Wall -Wextra -Werror -static -I. -Igpu_binding/base \
        -o "$output" "$@" -lm >"$work/out" 2>&1
}

kernels=
for file in collectives/core/float_env.c collectives/reduce/dtype.c collectives/reduce/reduce.c \
    collectives/reduce/reduce_levels.c collectives/reduce/reduce_neon.c \
    collectives/reduce/reduce_portable.c collectives/reduce/stream.c \
    tests/collectives/reduce/float_modes.c; do
    object=$work/$(basename "$file" .c).o
    compile "$object" -c "$file" || sed 's/^/# /' "$work/out"
    kernels="$kernels $object"
done
for test in core/float_env reduce/convert reduce/half reduce/reduce_levels reduce/reduce_nan reduce/stream; do
    name=$(basename "$test")
    # shellcheck disable=SC2086
    compile "$work/$name" "tests/collectives/${test}_test.c" $kernels &&
        qemu-aarch64 "$work/$name" >"$work/out" 2>&1
    report $? "$name"
done
qemu-aarch64 "$work/reduce_levels" | grep -q '^ok.*neon: scaled sum of bfloat16'
report $? 'the kernels for ARM were tested'
tap_done
