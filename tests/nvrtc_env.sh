#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# nvrtc_env.sh: installs NVRTC of CUDA 12, NVIDIA's compiler as a library and the last that knows sm_70,
# from PyPI into a Python environment of its own, and prints the path of libnvrtc.so.12. Kept in
# ${XDG_CACHE_HOME:-~/.cache}/hvd-tests and used again. Status 3 and one line on stderr: it cannot be had
# here (no PyPI, or not this CPU). Takes 90 MB to fetch and 230 MB of disk; there is no nvcc in the
# packages of CUDA 12.
set -euo pipefail

cache=${XDG_CACHE_HOME:-$HOME/.cache}/hvd-tests
environment=$cache/nvrtc-12

impossible()
{
    echo "no NVRTC of CUDA 12: $*" >&2
    exit 3
}

make_environment()
{
    rm -rf "$environment"
    : >"$environment.log"
    /usr/bin/python3 -m venv "$environment" >>"$environment.log" 2>&1 ||
        impossible "python3 -m venv failed; on Debian: apt-get install python3-venv"
    "$environment/bin/python" -m pip install --quiet --no-cache-dir --retries 2 --no-deps \
        --disable-pip-version-check 'nvidia-cuda-nvrtc-cu12>=12.8,<13' >>"$environment.log" 2>&1 ||
        impossible "pip: $(grep -v '^ ' "$environment.log" | tail -n 1)"
    touch "$environment/complete"
}

mkdir -p "$cache"
exec 9>"$environment.lock"
flock 9
[ -e "$environment/complete" ] || make_environment
find "$environment" -name libnvrtc.so.12 | grep . || impossible "there is no libnvrtc.so.12 in the package"
