#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tensorflow_env.sh [VERSION]: makes a Python environment with TensorFlow of PyPI, for the CPU, and
# prints the path of its python. VERSION is "newest" (the default: Keras 3) or one such as 2.15,
# the last with Keras 2. Kept in ${XDG_CACHE_HOME:-~/.cache}/hvd-tests and used again; remove that
# directory to get a newer one. Status 3 and one line on stderr: it cannot be had here (no PyPI).
set -euo pipefail

version=${1:-newest}
python=/usr/bin/python3
cache=${XDG_CACHE_HOME:-$HOME/.cache}/hvd-tests
environment=$cache/tensorflow-$version-$("$python" -c \
    'import sys; print("%d.%d" % sys.version_info[:2])')

case $version in
newest) wanted=tensorflow-cpu ;;
*) wanted="tensorflow-cpu~=$version.0" ;;
esac

# What the tests need besides TensorFlow, at any version.
others='cloudpickle scikit-learn'

impossible()
{
    echo "no TensorFlow ($version): $*" >&2
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
        --disable-pip-version-check "$wanted" $others >>"$environment.log" 2>&1 ||
        impossible "pip: $(grep -v '^ ' "$environment.log" | tail -n 1)"
    "$environment/bin/python" -c 'import tensorflow' >>"$environment.log" 2>&1 ||
        impossible "import tensorflow: $(tail -n 1 "$environment.log")"
    touch "$environment/complete"
}

mkdir -p "$cache"
exec 9>"$environment.lock"
flock 9
[ -e "$environment/complete" ] || make_environment
echo "$environment/bin/python"
