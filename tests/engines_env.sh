#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# engines_env.sh: makes a Python environment with Ray and Spark of PyPI on top of Debian's PyTorch, and prints
# the path of its python. The environment is kept in ${XDG_CACHE_HOME:-~/.cache}/hvd-tests and reused;
# remove that directory to get newer ones. Status 3 and one line on stderr: it cannot be made here (no PyPI).
#
# Measured: a minute and 0.8 GiB of disk on two cores, with a nearby mirror.
set -euo pipefail

tests_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=contrib/python_environment.sh
. "$tests_dir/../contrib/python_environment.sh"
what='Ray and Spark'
environment=$cache/hvd-tests/engines-$(python_version)
# shellcheck disable=SC2034 # read by use_environment
venv_option=--system-site-packages contents='ray pyspark'

fill_environment()
{
    empty_environment
    # shellcheck disable=SC2086
    pip_install $contents
    must_run 'import ray' 'import ray'
    must_run 'import pyspark' 'import pyspark'
    must_run 'import torch' 'import sklearn, torch'
}

use_environment
