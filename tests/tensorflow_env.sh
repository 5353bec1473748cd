#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tensorflow_env.sh [VERSION]: makes a Python environment with TensorFlow of PyPI, for the CPU, and
# prints the path of its python. VERSION is "newest" (the default: Keras 3) or one such as 2.15,
# the last with Keras 2. Kept in ${XDG_CACHE_HOME:-~/.cache}/hvd-tests and used again; remove that
# directory to get a newer one. Status 3 and one line on stderr: it cannot be had here (no PyPI).
set -euo pipefail

# shellcheck source=contrib/python_environment.sh
. "$(dirname "${BASH_SOURCE[0]}")/../contrib/python_environment.sh"
version=${1:-newest}
what="TensorFlow ($version)"
environment=$cache/hvd-tests/tensorflow-$version-$(python_version)

case $version in
newest) wanted=tensorflow-cpu ;;
*) wanted="tensorflow-cpu~=$version.0" ;;
esac

# What the tests need besides TensorFlow, at any version.
others='cloudpickle scikit-learn'

fill_environment()
{
    empty_environment
    # shellcheck disable=SC2086
    pip_install "$wanted" $others
    must_run 'import tensorflow' 'import tensorflow'
}

use_environment
