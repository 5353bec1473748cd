#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# horovod_env.sh: makes a Python environment with Horovod 0.28.1 for the benchmarks, and prints the path
# of its python. The environment is kept in ${XDG_CACHE_HOME:-~/.cache}/hvd-bench and used again.
# Status 3 and one line on stderr: it cannot be made here (no PyPI, a package is missing).
#
# Horovod is compiled from PyPI's source package against Debian's PyTorch, so that both sides of a
# benchmark call the same torch; with the Gloo controller only, as `pip install horovod` does on a
# machine without MPI. CMAKE_BUILD_PARALLEL_LEVEL=N: compile N files at a time, default all cores.
# Measured: 3 minutes and 15 seconds one file at a time, 83 MiB of disk.
set -euo pipefail

version=0.28.1
bench_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=contrib/python_environment.sh
. "$bench_dir/../python_environment.sh"
what=Horovod
environment=$cache/hvd-bench/horovod-$version
venv_option=--system-site-packages

need_packages()
{
    local missing
    missing=$("$bench_dir/../packages.sh" missing torch bench | tr '\n' ' ')
    [ -z "$missing" ] || impossible "missing packages; as root: apt-get install $missing"
}

# The first line that names an error says more than pip's last line.
first_error()
{
    grep -iE 'error:|could not' "$environment.log" | head -n 1
}

# Horovod passes MAKEFLAGS to make; without it, make compiles eight files at a time.
build_horovod()
{
    HOROVOD_WITH_GLOO=1 HOROVOD_WITH_PYTORCH=1 HOROVOD_WITHOUT_MPI=1 HOROVOD_WITHOUT_NVTX=1 \
        HOROVOD_WITHOUT_TENSORFLOW=1 HOROVOD_WITHOUT_MXNET=1 \
        MAKEFLAGS=-j${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)} \
        nice "$environment/bin/python" -m pip install --no-build-isolation --no-deps \
        --no-binary horovod --no-cache-dir --retries 2 --disable-pip-version-check \
        --require-hashes --requirement "$bench_dir/requirements/horovod.txt" >>"$environment.log" 2>&1
}

fill_environment()
{
    need_packages
    empty_environment
    build_horovod || impossible "the build failed ($environment.log): $(first_error)"
    must_run 'import fails' 'import horovod.torch as hvd; assert hvd.gloo_built()'
}

use_environment
