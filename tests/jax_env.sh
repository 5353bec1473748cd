#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# jax_env.sh: makes a Python environment with JAX and optax of PyPI, for the CPU, and prints the path of
# its python. The environment is kept in ${XDG_CACHE_HOME:-~/.cache}/hvd-tests and reused. Status 3 and one
# line on stderr: it cannot be made here (no PyPI).
set -euo pipefail

tests_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=contrib/python_environment.sh
. "$tests_dir/../contrib/python_environment.sh"
what=JAX
environment=$cache/hvd-tests/jax-$(python_version)
requirements=$tests_dir/requirements/jax.txt
contents=$(sha256sum <"$requirements")

fill_environment()
{
    empty_environment
    pip_install_pinned "$requirements"
    must_run 'import jax' 'import optax, jax; jax.numpy.ones(2).sum().item()'
}

use_environment
