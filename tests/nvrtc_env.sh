#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# nvrtc_env.sh: installs NVRTC of CUDA 12, NVIDIA's compiler as a library and the last that supports sm_70,
# from PyPI into a Python environment of its own, and prints the path of libnvrtc.so.12. The environment
# is kept in ${XDG_CACHE_HOME:-~/.cache}/hvd-tests and reused. Status 3 and one line on stderr: it cannot
# be made here (no PyPI, or not for this CPU). Needs 90 MB of download and 230 MB of disk; the packages of
# CUDA 12 have no nvcc.
set -euo pipefail

tests_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=contrib/python_environment.sh
. "$tests_dir/../contrib/python_environment.sh"
what='NVRTC of CUDA 12'
environment=$cache/hvd-tests/nvrtc-12.9
requirements=$tests_dir/requirements/nvrtc.txt
contents=$(sha256sum <"$requirements")

fill_environment()
{
    empty_environment
    pip_install_pinned "$requirements"
    find "$environment" -name libnvrtc.so.12 | grep -q . || impossible 'its package has no libnvrtc.so.12'
}

use_environment >/dev/null
find "$environment" -name libnvrtc.so.12
