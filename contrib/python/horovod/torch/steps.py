# SPDX-License-Identifier: Apache-2.0
"""Notes the steps of all optimizers of torch, for the warning of horovod.common.alone."""

import importlib

import torch

from horovod.common import alone


def _is_distributed():
    """Whether DDP, FSDP and the like can share gradients."""
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def _on_step(optimizer, arguments, options):
    alone.trained(_is_distributed)


def watch():
    """Watches all optimizers. Does nothing with torch before 2.1, which has no hook for that."""
    module = importlib.import_module('torch.optim.optimizer')
    register = getattr(module, 'register_optimizer_step_post_hook', None)
    if register is not None:
        register(_on_step)
