#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# compile_kernels.sh NVCC NVRTC_COMPILE NVRTC SOURCE_ROOT OUTPUT.c DEPENDENCIES WORK: compiles kernels.cu for all GPUs
# that hvd supports and this nvcc knows, and writes the fat binary as an array of a C file. It also contains PTX of the
# newest architecture, which drivers compile for later GPUs. CUDA 12 and earlier compile for sm_70 (V100); from 13 on the
# oldest is sm_75 (T4), so sm_70 is then compiled by NVRTC of CUDA 12, if it is found. NVRTC is the path of its
# libnvrtc.so.12; empty: search for it.
set -eu
nvcc=$1 nvrtc_compile=$2 nvrtc=$3 root=$4 output=$5 dependencies=$6 work=$7
kernels=$root/collectives/gpu/module/kernels.cu
release=$("$nvcc" --version | sed -n 's/.*release \([0-9]*\.[0-9]*\).*/\1/p')
major=${release%.*}
minor=${release#*.}

# Prints the first libnvrtc.so.12 found in CUDA 12, in the distribution, or in the PyPI package that PyTorch for CUDA 12
# depends on.
find_nvrtc()
{
    for candidate in /usr/local/cuda-12*/lib64/libnvrtc.so.12 /usr/lib/*/libnvrtc.so.12 $(python3 -c '
import glob, nvidia
print(*[file for place in nvidia.__path__ for file in glob.glob(place + "/cuda_nvrtc/lib/libnvrtc.so.12")])' 2>/dev/null); do
        [ ! -e "$candidate" ] || { echo "$candidate" && break; }
    done
}

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
built="${built}PTX of sm_$number, by nvcc $release"

# Newer nvcc compress the binary in ways that older drivers cannot read. Uncompressed it is 3.5 MB.
! "$nvcc" --help | grep -q -e --no-compress || set -- "$@" --no-compress

mkdir -p "$work"
rm -f "$work"/*.cubin "$work"/*.ptx
# No fused multiply-add: products are rounded before they are added, as on the host.
# Only device code is compiled, so nvcc need not support the host's compiler.
# shellcheck disable=SC2086
"$nvcc" --fatbin -O3 --fmad=false -std=c++17 --allow-unsupported-compiler -Wno-deprecated-gpu-targets ${NVCC_FLAGS-} \
    -I "$root" "$@" -MD -MF "$dependencies" -MT "$output" --keep --keep-dir "$work" -o "$work/kernels.fatbin" "$kernels"

[ "$major" -le 12 ] || [ -n "$nvrtc" ] || nvrtc=$(find_nvrtc)
if [ "$major" -gt 12 ] && [ -n "$nvrtc" ]; then
    "$nvrtc_compile" "$nvrtc" "$root" sm_70 "$work/kernels.compute_70.cubin"
    set -- "--image3=kind=ptx,sm=$number,file=$work/kernels.compute_$number.ptx"
    for number in 70 $architectures; do # the cubin of the last one is compiled from its PTX
        set -- "$@" "--image3=kind=elf,sm=$number,file=$(echo "$work/kernels.compute_$number."*cubin)"
    done
    "${nvcc%/*}/fatbinary" --create="$work/kernels.fatbin" -64 -compress=false "$@"
    built="sm_70, $built, sm_70 by NVRTC of CUDA 12"
fi
{
    echo '/* Made by compile_kernels.sh from kernels.cu. */'
    echo '#include "collectives/gpu/module/kernel_image.h"'
    echo 'static const _Alignas(16) unsigned char data[] = {'
    od -An -v -tu1 "$work/kernels.fatbin" | sed 's/[0-9][0-9]*/&,/g'
    echo '};'
    echo "const struct hvd_kernel_image hvd_kernel_image = {data, \"$built\"};"
} >"$output"
