# SPDX-License-Identifier: Apache-2.0
"""The state of a torch training, in memory. A handler saves and restores each kind of value."""

import copy

import torch

from horovod.common import requests
from horovod.common.elastic import ObjectState
from horovod.torch.elastic.sampler import ElasticSampler
from horovod.torch.functions import (allgather_object, broadcast_object,
                                     broadcast_optimizer_state, broadcast_parameters)
from horovod.torch.mpi_ops import rank


class StateHandler:
    """Saves, restores and synchronises one value. Scripts may derive their own handlers and
    register them with set_handler_registry()."""

    def __init__(self, value):
        self.value = value

    def save(self):
        """Saves the current state of the value."""
        raise NotImplementedError()

    def restore(self):
        """Returns the value to the saved state."""
        raise NotImplementedError()

    def sync(self):
        """Takes over rank 0's state and saves it. Collective."""
        raise NotImplementedError()

    def set_value(self, value):
        """Replaces the value and saves its state."""
        self.value = value
        self.save()


class StateDictHandler(StateHandler):
    """A handler for values that have state_dict() and load_state_dict()."""

    def __init__(self, value):
        super().__init__(value)
        self.save()

    def save(self):
        self._saved = copy.deepcopy(self.value.state_dict())

    def restore(self):
        self.value.load_state_dict(copy.deepcopy(self._saved))


class ModelStateHandler(StateDictHandler):
    """A handler for torch.nn.Module."""

    def sync(self):
        broadcast_parameters(self.value.state_dict(), root_rank=0)
        requests.must_have_landed()
        self.save()


class OptimizerStateHandler(StateDictHandler):
    """A handler for torch.optim.Optimizer."""

    def sync(self):
        broadcast_optimizer_state(self.value, root_rank=0)
        requests.must_have_landed()
        self.save()


class SamplerStateHandler(StateDictHandler):
    """A handler for ElasticSampler. sync() combines the processed samples of all ranks. Each rank
    reports its own. For a rank that has died, rank 0 computes them: it had made the same
    batches."""

    def __init__(self, sampler):
        self._saved_sampler = None
        self._division = 0  # how often the ranks have divided the samples anew, in sync()
        super().__init__(sampler)

    def save(self):
        super().save()
        self._recorded = set(self.value._recorded)

    def restore(self):
        """Returns to the saved state, but keeps the division of the samples among the old ranks
        until sync(), which needs it."""
        self.value.epoch = self._saved['epoch']
        self.value.processed_indices = set(self._saved['processed_indices'])
        self.value._recorded = set(self._recorded)

    def sync(self):
        sampler = self.value
        everyone = allgather_object((self._division, sampler.epoch, sampler.rank,
                                     sampler.processed_indices))
        division, epoch, _, _ = everyone[0]  # rank 0 has the saved state; new ranks do not
        peers = [each for each in everyone if each[:2] == (division, epoch)]
        processed = set().union(*(each[3] for each in peers))
        gone = set(range(sampler.num_replicas)) - {each[2] for each in peers}
        lost = [sampler.processed_by(rank) for rank in gone] if rank() == 0 else None
        processed.update(*broadcast_object(lost))
        sampler.load_state_dict({'epoch': epoch, 'processed_indices': processed})
        self._division = division + 1
        self.save()


_registry = [(ElasticSampler, SamplerStateHandler), (torch.nn.Module, ModelStateHandler),
             (torch.optim.Optimizer, OptimizerStateHandler)]


def get_handler_registry():
    """Returns the list of pairs (type, StateHandler for values of this type)."""
    return _registry


def set_handler_registry(registry):
    """Replaces the list of handlers, for TorchState objects that are made afterwards."""
    global _registry
    _registry = registry


def _handler_for(value):
    for kind, handler in get_handler_registry():
        if isinstance(value, kind):
            return handler(value)
    return None


class TorchState(ObjectState):
    """The state of an elastic training: a model, an optimizer and the keyword arguments, as
    attributes. Keyword arguments may be samplers, further models and optimizers, and picklable
    values such as the epoch.

    Make it after the model and the optimizer, update its attributes during the training, and call
    commit() to save all of them.
    """

    def __init__(self, model=None, optimizer=None, **kwargs):
        kwargs.update(model=model, optimizer=optimizer)
        handlers = {name: _handler_for(value) for name, value in kwargs.items()}
        self._handlers = {name: handler for name, handler in handlers.items() if handler}
        plain = {name: value for name, value in kwargs.items() if name not in self._handlers}
        for name, handler in self._handlers.items():
            super().__setattr__(name, handler.value)
        super().__init__(broadcast_object, rank, **plain)

    def _keep(self):
        for handler in self._handlers.values():
            handler.save()
        super()._keep()

    def restore(self):
        for handler in self._handlers.values():
            handler.restore()
        super().restore()

    def sync(self):
        for handler in self._handlers.values():
            handler.sync()
        super().sync()

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name in self.__dict__.get('_handlers', ()):
            self._handlers[name].set_value(value)
