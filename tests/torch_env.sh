#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# torch_env.sh: makes a Python environment with the current PyTorch of PyPI, for the CPU, and prints
# the path of its python. The environment is kept in ${XDG_CACHE_HOME:-~/.cache}/hvd-tests and reused;
# remove that directory to get a newer one. Status 3 and one line on stderr: it cannot be made here (no
# PyPI).
#
# Only the wheel itself (about 0.5 GiB) and its small dependencies are downloaded: torch_stubs.py explains
# how torch works without the gigabytes of CUDA libraries that pip would add. Measured: 25 s and 1.5 GiB
# of disk on two cores, with a nearby mirror.
set -euo pipefail

tests_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=contrib/python_environment.sh
. "$tests_dir/../contrib/python_environment.sh"
what='current PyTorch'
environment=$cache/hvd-tests/torch-$(python_version)

# Other packages that the tests need, in any version, and frameworks on top of torch. pip would install CUDA's libraries
# with a package that requires torch, so the second list comes without its requirements, which are in the first.
others='numpy cloudpickle scikit-learn keras fsspec huggingface-hub packaging psutil pyyaml regex requests safetensors
    tokenizers tqdm'
frameworks='accelerate lightning lightning-utilities pytorch-lightning torchmetrics transformers'
contents="$others $frameworks"

# Prints the wheel's requirements without CUDA, except CUDA's small runtime in the required version.
small_requirements()
{
    "$environment/bin/python" - <<'PYTHON'
import importlib.metadata
import re

for line in importlib.metadata.requires('torch'):
    requirement, _, condition = line.partition(';')
    name = re.match(r'[\w-]+', requirement)[0]
    if 'extra' in condition:
        continue
    if name == 'cuda-toolkit':
        print(re.sub(r'\[.*\]', '[cudart]', requirement).strip())
    elif name.startswith('nvidia-cuda-runtime'):
        print(requirement.strip())
    elif not re.match('nvidia|cuda|triton|setuptools', name):
        print(requirement.strip())
PYTHON
}

fill_environment()
{
    empty_environment
    pip_install --no-deps torch
    local requirements
    mapfile -t requirements < <(small_requirements)
    # shellcheck disable=SC2086
    pip_install "${requirements[@]}" $others
    # shellcheck disable=SC2086
    pip_install --no-deps $frameworks
    "$python" "$tests_dir/torch_stubs.py" "$("$environment/bin/python" -c \
        'import sysconfig; print(sysconfig.get_path("purelib"))')" >>"$environment.log" 2>&1
    must_run 'import torch' 'import torch; torch.ones(2).sum()'
}

use_environment
# A small package for one test, which is skipped without it: not worth making the environment again.
if ! "$environment/bin/python" -c 'import expecttest' 2>/dev/null; then
    (pip_install_pinned "$tests_dir/requirements/torch_suite.txt") || true
fi
