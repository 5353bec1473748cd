#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# oneccl_env.sh: installs Intel's oneCCL for CPUs, of PyPI, into a Python environment of its own, and
# prints the path of that, for hvd-bench --vs oneccl=PATH. Kept in ${XDG_CACHE_HOME:-~/.cache}/hvd-bench
# and used again. Takes 350 MB. The package has Intel's licence (Intel Simplified Software License).
#
# oneccl alone has the C interface, but its own core is for GPUs and wants 1.5 GB of SYCL; the core
# of oneccl-cpu, laid over it, does not.
set -euo pipefail

version=2022.1.2
cache=${XDG_CACHE_HOME:-$HOME/.cache}/hvd-bench
env=$cache/oneccl-$version
if [ ! -e "$env/complete" ]; then
    mkdir -p "$cache"
    rm -rf "$env"
    /usr/bin/python3 -m venv "$env" >&2
    for part in oneccl oneccl-cpu; do
        "$env/bin/pip" install --quiet --no-deps --require-hashes --only-binary :all: \
            --requirement "$(dirname "${BASH_SOURCE[0]}")/requirements/$part.txt" >&2
    done
    touch "$env/complete"
fi
echo "$env"
