#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tensorflow_env.sh [VERSION]: makes a Python environment with TensorFlow of PyPI, for the CPU, and
# prints the path of its python. VERSION is "newest" (the default: Keras 3) or one that has a file in
# requirements/: 2.15, the last with Keras 2. The environment is kept in
# ${XDG_CACHE_HOME:-~/.cache}/hvd-tests and reused; remove that directory to get a newer one. Status 3 and
# one line on stderr: it cannot be made here (no PyPI).
set -euo pipefail

tests_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=contrib/python_environment.sh
. "$tests_dir/../contrib/python_environment.sh"
version=${1:-newest}
what="TensorFlow ($version)"
requirements=$tests_dir/requirements/tensorflow-$version.txt
if [ "$version" = newest ]; then
    environment=$cache/hvd-tests/tensorflow-newest-$(python_version)
elif [ -e "$requirements" ]; then
    environment=$cache/hvd-tests/tensorflow-pinned-$version-$(python_version)
    contents=$(sha256sum <"$requirements")
else
    impossible "there is no $requirements"
fi

fill_environment()
{
    empty_environment
    if [ "$version" = newest ]; then
        pip_install tensorflow-cpu cloudpickle scikit-learn
    else
        pip_install_pinned "$requirements"
    fi
    must_run 'import tensorflow' 'import tensorflow'
}

use_environment
