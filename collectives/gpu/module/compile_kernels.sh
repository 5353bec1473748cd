#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# compile_kernels.sh NVCC SOURCE_ROOT OUTPUT.c DEPENDENCIES WORK: compiles kernels.cu for the GPUs that this
# nvcc knows, as a fat binary in an array of a C file. Of the newest there is PTX too, which drivers compile
# for GPUs that came later. Until CUDA 12 the oldest is sm_70 (V100), from 13 on sm_75 (T4).
set -eu
nvcc=$1 root=$2 output=$3 dependencies=$4 work=$5
kernels=$root/collectives/gpu/module/kernels.cu
release=$("$nvcc" --version | sed -n 's/.*release \([0-9]*\.[0-9]*\).*/\1/p')
major=${release%.*}
minor=${release#*.}

architectures='75 80'
[ "$major" -gt 12 ] || architectures="70 $architectures"
# sm_90 (H100) came with 11.8; sm_100 and sm_120 (Blackwell) with 12.8. Each also serves later minor versions.
[ "$((major * 100 + minor))" -lt 1108 ] || architectures="$architectures 90"
[ "$((major * 100 + minor))" -lt 1208 ] || architectures="$architectures 100 120"

set --
built=''
for number in $architectures; do
    set -- "$@" -gencode "arch=compute_$number,code=sm_$number"
    built="${built}sm_$number, "
done
set -- "$@" -gencode "arch=compute_$number,code=compute_$number"

# Newer ones compress in ways that an older driver cannot read. All of it is 0.7 MB.
! "$nvcc" --help | grep -q -e --no-compress || set -- "$@" --no-compress

mkdir -p "$work"
# A product is rounded before anything is added to it, as on the host: no multiply-add.
# Only device code is wanted: whether nvcc supports the host's compiler is of no matter.
# shellcheck disable=SC2086
"$nvcc" --fatbin -O3 --fmad=false -std=c++17 --allow-unsupported-compiler -Wno-deprecated-gpu-targets ${NVCC_FLAGS-} \
    -I "$root" "$@" -MD -MF "$dependencies" -MT "$output" -o "$work/kernels.fatbin" "$kernels"
{
    echo '/* Made by compile_kernels.sh of kernels.cu. */'
    echo '#include "collectives/gpu/module/kernel_image.h"'
    echo 'static const _Alignas(16) unsigned char data[] = {'
    od -An -v -tu1 "$work/kernels.fatbin" | sed 's/[0-9][0-9]*/&,/g'
    echo '};'
    echo "const struct hvd_kernel_image hvd_kernel_image = {data, \"${built}PTX of sm_$number, by nvcc $release\"};"
} >"$output"
