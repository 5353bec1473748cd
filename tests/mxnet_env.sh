#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# mxnet_env.sh: makes a Python environment with MXNet 1.9.1 of PyPI, its last release, for the CPU,
# and prints the path of its python. The environment is kept in ${XDG_CACHE_HOME:-~/.cache}/hvd-tests and
# reused. Status 3 and one line on stderr: it cannot be made here (no PyPI, or no libquadmath).
#
# MXNet uses names that NumPy removed in 1.24 (np.bool), and is not compiled for one version of Python:
# with the last NumPy before 1.24, it runs on Python 3.8 to 3.11. Its dependencies requests and graphviz
# are only for downloads and drawings.
set -euo pipefail

tests_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=contrib/python_environment.sh
. "$tests_dir/../contrib/python_environment.sh"
what=MXNet
environment=$cache/hvd-tests/mxnet-1.9.1-$(python_version)
requirements=$tests_dir/requirements/mxnet.txt
contents=$(sha256sum <"$requirements")

fill_environment()
{
    empty_environment
    pip_install_pinned "$requirements"
    must_run 'import mxnet' 'import mxnet; mxnet.nd.ones(2).sum().asscalar()'
}

use_environment
