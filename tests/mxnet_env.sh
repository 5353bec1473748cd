#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# mxnet_env.sh: makes a Python environment with MXNet 1.9.1 of PyPI, its last release, for the CPU,
# and prints the path of its python. Kept in ${XDG_CACHE_HOME:-~/.cache}/hvd-tests and used again.
# Status 3 and one line on stderr: it cannot be had here (no PyPI, or no libquadmath).
#
# MXNet uses names that NumPy dropped in 1.24 (np.bool), and has no code of its own per version of
# Python: with the last NumPy before, it runs on Python 3.11 as well as on 3.8. Of its dependencies,
# requests and graphviz serve downloads and drawings only.
set -euo pipefail

python=/usr/bin/python3
cache=${XDG_CACHE_HOME:-$HOME/.cache}/hvd-tests
environment=$cache/mxnet-$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
packages='mxnet==1.9.1 numpy==1.23.5 cloudpickle scikit-learn<1.6'

impossible()
{
    echo "no MXNet: $*" >&2
    exit 3
}

make_environment()
{
    rm -rf "$environment"
    : >"$environment.log"
    "$python" -m venv "$environment" >>"$environment.log" 2>&1 ||
        impossible "python3 -m venv failed; on Debian: apt-get install python3-venv"
    # shellcheck disable=SC2086
    "$environment/bin/python" -m pip install --quiet --no-cache-dir --retries 2 \
        --disable-pip-version-check $packages >>"$environment.log" 2>&1 ||
        impossible "pip: $(grep -v '^ ' "$environment.log" | tail -n 1)"
    "$environment/bin/python" -c 'import mxnet; mxnet.nd.ones(2).sum().asscalar()' \
        >>"$environment.log" 2>&1 || impossible "import mxnet: $(tail -n 1 "$environment.log")"
    touch "$environment/complete"
}

mkdir -p "$cache"
exec 9>"$environment.lock"
flock 9
[ -e "$environment/complete" ] || make_environment
echo "$environment/bin/python"
