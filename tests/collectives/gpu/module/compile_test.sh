#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# compile_test.sh SOURCE_ROOT NVCC NVRTC_COMPILE: the kernels compile without a warning, with
# nvcc, if there is one, for all GPUs that hvd supports, and with NVRTC of CUDA 12 also for
# V100, which nvcc 13 no longer supports.
root=$1 nvcc=$2 nvrtc_compile=$3
tests_dir=$(cd "$(dirname "$0")/../../.." && pwd)
# shellcheck source=tests/tap.sh
. "$tests_dir/tap.sh" || exit
tap_begin

kernel_names()
{
    echo hvd_copy
    sed -n 's/^ *X(\([a-z0-9_]*\),.*/hvd_\1/p' "$root/collectives/gpu/module/kernel_work.h"
}

# number_at OFFSET BYTES: prints a number in the fat binary.
number_at()
{
    od -An -v -tu"$2" -j "$1" -N "$2" "$work/kernels.fatbin" | tr -d ' '
}

# Prints the kind (1: PTX, 2: binary) and GPU of each part of the fat binary. The header holds
# its own size and the total size.
parts()
{
    at=$(number_at 6 2)
    end=$((at + $(number_at 8 8)))
    while [ "$at" -lt "$end" ]; do
        echo "$(number_at "$at" 2) $(number_at $((at + 28)) 4)"
        at=$((at + $(number_at $((at + 4)) 4) + $(number_at $((at + 8)) 8)))
    done
}

# compile NVRTC: runs compile_kernels.sh, which writes $work/kernels.fatbin.
compile()
{
    NVCC_FLAGS='-Werror all-warnings -Xptxas -warn-spills,-warn-lmem-usage,-Werror' \
        "$root/collectives/gpu/module/compile_kernels.sh" "$nvcc" "$nvrtc_compile" "$1" "$root" "$work/image.c" \
        "$work/image.d" "$work" >"$work/out" 2>&1 && [ ! -s "$work/out" ]
}

# Prints the expected parts: binaries for all supported GPUs, and PTX for the last.
promised()
{
    release=$("$nvcc" --version | sed -n 's/.*release \([0-9]*\)\.\([0-9]*\).*/\1 \2/p')
    number=$((${release% *} * 100 + ${release#* }))
    [ "$number" -ge 1300 ] && ! grep -q 'sm_70 by NVRTC' "$work/image.c" || echo 2 70
    printf '2 75\n2 80\n2 90\n'
    if [ "$number" -ge 1208 ]; then
        printf '2 100\n2 120\n1 120\n'
    else
        echo 1 90
    fi
}

nvcc_tests()
{
    compile ''
    report $? 'the kernels compile without a warning and without spilling registers'
    parts | sort >"$work/parts"
    promised | sort | diff - "$work/parts" >"$work/out" 2>&1
    report $? 'the fat binary has all supported GPUs'
    "$nvcc" --ptx -arch=compute_80 -std=c++17 --allow-unsupported-compiler -I "$root" -o "$work/kernels.ptx" \
        "$root/collectives/gpu/module/kernels.cu" >"$work/out" 2>&1
    for name in $(kernel_names); do
        grep -q "\.entry $name(" "$work/kernels.ptx" || echo "there is no $name" >>"$work/out"
    done
    [ ! -s "$work/out" ] && [ "$(kernel_names | wc -l)" -gt 10 ]
    report $? 'the kernels have the names by which hvd finds them'
    grep -q 'ld\.global[.a-z]*\.v4\.u32' "$work/kernels.ptx" && grep -q 'st\.global[.a-z]*\.v4\.u32' "$work/kernels.ptx"
    report $? 'the kernels access 16 bytes at a time'
}

if [ -x "$nvcc" ]; then
    nvcc_tests
else
    tap_skip 'the kernels compile with nvcc' 'there is no nvcc'
fi
if library=$("$tests_dir/nvrtc_env.sh" 2>"$work/out"); then
    for architecture in sm_70 sm_75 sm_80 sm_90; do
        "$nvrtc_compile" "$library" "$root" "$architecture" "$work/kernels.cubin" >"$work/out" 2>&1
        report $? "the kernels compile for $architecture with NVRTC of CUDA 12"
    done
    if [ -x "$nvcc" ]; then
        compile "$library" && parts | sort >"$work/parts" && grep -q '^2 70$' "$work/parts" &&
            promised | sort | diff - "$work/parts" >"$work/out" 2>&1
        report $? 'with NVRTC, a build by any nvcc has kernels for V100'
    fi
else
    tap_skip 'the kernels compile for sm_70 with NVRTC of CUDA 12' "$(tail -n 1 "$work/out")"
fi
tap_done
