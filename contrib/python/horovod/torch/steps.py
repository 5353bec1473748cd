# SPDX-License-Identifier: Apache-2.0
"""Notes the steps of all optimizers of torch, for the warning of horovod.common.alone."""

import importlib

import torch

from horovod.common import alone


def _is_distributed():
    """Whether DDP, FSDP and the like can share gradients."""
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def _on_step(*_):
    alone.trained(_is_distributed)


def watch():
    """Watches all optimizers."""
    module = importlib.import_module('torch.optim.optimizer')
    register = getattr(module, 'register_optimizer_step_post_hook', None)
    if register is not None:
        register(_on_step)
    else:
        _watch_profiled(module.Optimizer)


def _watch_profiled(kind):
    """Watches all optimizers of an older torch, 1.13 among them. It has no such hook, but calls a
    method after each step, which does nothing but show torch.profiler the optimizer."""
    profiled = kind._optimizer_step_code

    def note(self):
        _on_step()
        return profiled(self)

    kind._optimizer_step_code = note
