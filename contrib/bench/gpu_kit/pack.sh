#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# pack.sh CHECKOUT OUT [BUILD]: packs the hvd of CHECKOUT for a machine with a GPU, into the folder OUT.
#
# OUT takes about 9 MiB and runs on any x86-64 Linux with glibc 2.34 or later and a python3 with PyTorch for
# CUDA: it contains all other libraries, and needs no package, no compiler and no network. Run device.sh in OUT
# there.
#
# BUILD is a build folder of CHECKOUT, configured with -Dbench=true, whose programs are packed as they are.
# Without it, pack.sh builds in OUT-build. Kernels are packed if nvcc was there when hvd was built.
#
#   PACK_FAKE=1       also packs the stand-ins of CUDA and NCCL, to rehearse without a GPU (KIT_FAKE=1)
#   PACK_NCCL=FILE    also packs this libnccl.so.2, of 2.30 or later, for two ranks that share a GPU and a host
set -euo pipefail

kit=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
case ${1---help} in --help | -h) sed -n '3,/^set/{/^set/d;s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" && exit ;; esac

fail()
{
    echo "pack.sh: $*" >&2
    exit 1
}

case $# in 2 | 3) ;; *) fail 'expected CHECKOUT OUT [BUILD]; --help tells more' ;; esac
[ -e "$1/contrib/bench/gpu_kit/pack.sh" ] || fail "$1 is no checkout of hvd: it has no contrib/bench/gpu_kit"
checkout=$(cd "$1" && pwd)
out=$(realpath -m "$2")
build=$(realpath -m "${3:-$out-build}")

programs=(collectives/gpu/module/hvd_gpu.so pmix_boot/hvdrun/hvdrun pmix_boot/rendezvous/hvd-rendezvous
    contrib/info/hvd-info contrib/bench/gpu_kernels tests/collectives/gpu/module/gpu_kernels_test)
for name in api collectives join mix wire; do
    programs+=("tests/collectives/gpu/gpu_${name}_test")
done
fakes=()
if [ "${PACK_FAKE:-0}" != 0 ]; then
    fakes=(libcuda.so.1 libnccl.so.2 hvd_gpu_with_kernels.so)
fi

# --- build ---

library=$build/collectives/libhvd.so.0
if [ $# = 2 ]; then
    [ -e "$build/build.ninja" ] ||
        meson setup "$build" "$checkout" -Dpmix=disabled -Ducx=disabled -Dslurm=disabled -Dwerror=false \
            -Dbench=true -Dtests=true
    ninja -C "$build" "${programs[@]}" "${fakes[@]/#/tests/fake_gpu/}"
fi
for file in "$library" "${programs[@]/#/$build/}" "${fakes[@]/#/$build/tests/fake_gpu/}"; do
    [ -e "$file" ] || fail "$build lacks ${file#"$build"/}: build there with -Dbench=true -Dtests=true, or name no BUILD"
done

# --- pack ---

[ ! -e "$out" ] || [ -e "$out/PACKED" ] || [ -z "$(ls -A "$out")" ] ||
    fail "$out has files that pack.sh has not made: name another folder"
rm -rf "$out"
mkdir -p "$out/lib"
touch "$out/PACKED"
for file in "${programs[@]}"; do
    install -D -m 755 -s "$build/$file" "$out/build/$file"
done
# Copied under the two names that Python and the programs look for, because a copy to another machine may drop links.
install -D -m 755 -s "$library" "$out/build/collectives/libhvd.so.0"
cp "$out/build/collectives/libhvd.so.0" "$out/build/collectives/libhvd.so"
for file in "${fakes[@]}"; do
    install -D -m 755 -s "$build/tests/fake_gpu/$file" "$out/fake/$file"
done
if [ -n "${PACK_NCCL-}" ]; then
    install -D -m 755 -s "$PACK_NCCL" "$out/nccl/libnccl.so.2"
fi

# Libraries that a bare machine lacks: those that hvd needs, and their dependencies.
find "$out/build" -type f -print0 | xargs -0 ldd 2>/dev/null | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | sort -u |
    grep -vE '/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*|libhvd|libcuda|libnccl)\.so' |
    while read -r needed; do
        cp -L "$needed" "$out/lib/"
    done

mkdir -p "$out/src"
(cd "$checkout" && find contrib/bench/gpu_kit contrib/examples/pytorch contrib/python tests/python -type f \
    -regex '.*\.\(py\|json\)' -print0 | tar --null -cf - -T -) | tar -C "$out/src" -xf -
cp "$kit/device.sh" "$checkout/contrib/bench/on_nodes.sh" "$out/"

{
    git -C "$checkout" log -1 --format='hvd %h of %cd' --date=short 2>/dev/null || echo 'hvd, not from git'
    echo "packed on $(. /etc/os-release && echo "$PRETTY_NAME"), glibc $(ldd --version | sed -n '1s/.* //p')"
    echo "kernels: $(strings "$out/build/collectives/gpu/module/hvd_gpu.so" | sed -n '/sm_.*by nvcc/{p;q}')"
} >"$out/PACKED"
cat "$out/PACKED"
echo "$out: $(($(du -sb "$out" | cut -f 1) >> 20)) MiB"
