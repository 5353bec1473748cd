# SPDX-License-Identifier: Apache-2.0
"""Distributes the samples of an epoch when ranks change during the epoch."""

import random

import torch


class ElasticSampler(torch.utils.data.Sampler):
    """Divides an epoch's samples among the ranks; those recorded as processed are not drawn again
    when the ranks change. Pass it to TorchState; call ``record_batch`` after each batch and
    ``set_epoch`` at the end of each epoch.

    ``processed_indices``: what this rank processed in this epoch, and what all ranks had when they
    last changed. ``remaining_indices``: what the epoch had left then, in the order of the epoch.
    ``processed_num``: how many samples all ranks have processed if they made the same batches.
    """

    def __init__(self, dataset, shuffle=True, seed=0):
        self.dataset = dataset
        self.shuffle = shuffle
        self.seed = seed
        self.epoch = 0
        self.processed_indices = set()
        self.reset()

    def set_epoch(self, epoch):
        """Begins a new epoch, in which nothing is processed yet."""
        self.epoch = epoch
        self.processed_indices = set()
        self.reset()

    def record_batch(self, batch_idx, batch_size):
        """Records this rank's batch with this number as processed. Batches are counted from the
        last change of ranks, or from the beginning of the epoch."""
        self._recorded.update(self._positions(batch_idx, batch_size))
        self.record_indices(self.get_indices(batch_idx, batch_size))

    def record_indices(self, indices):
        """Records these samples of this rank as processed."""
        self.processed_indices.update(indices)

    def get_indices(self, batch_idx, batch_size):
        """The samples of this rank's batch with this number."""
        return [self._order[position * self.num_replicas + self.rank]
                for position in self._positions(batch_idx, batch_size)]

    def _positions(self, batch_idx, batch_size):
        begin = batch_idx * batch_size
        return range(begin, min(begin + batch_size, self.num_samples))

    @property
    def processed_num(self):
        count = len(self._recorded) * self.num_replicas
        return len(self.dataset) - len(self.remaining_indices[count:])

    def state_dict(self):
        """``processed_num`` is for Horovod's sampler, to which the first so many samples of the
        epoch's order are the processed ones."""
        return {'epoch': self.epoch, 'processed_num': self.processed_num,
                'processed_indices': set(self.processed_indices)}

    def load_state_dict(self, state_dict):
        """Goes on with the epoch where all those samples are processed: those of one rank's state
        and what the others had processed by then. The state may be of Horovod's sampler."""
        self.epoch = state_dict['epoch']
        own = set(state_dict.get('processed_indices', ()))
        everyones = set(self._epoch_order()[:state_dict.get('processed_num', 0)])
        # Not where the ranks have changed after unequal numbers of batches.
        self.processed_indices = everyones if own <= everyones else own
        self.reset()

    def _epoch_order(self):
        """All samples, in the same order on all ranks."""
        order = list(range(len(self.dataset)))
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(order)
        return order

    def reset(self):
        """Divides the remaining samples among the present ranks."""
        from horovod.torch.mpi_ops import rank, size
        self.num_replicas, self.rank = size(), rank()
        self.remaining_indices = [index for index in self._epoch_order()
                                  if index not in self.processed_indices]
        self.num_samples = -(-len(self.remaining_indices) // self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas
        order = list(self.remaining_indices)
        # All ranks make equally many steps: some samples are drawn twice where they do not divide.
        while order and len(order) < self.total_size:
            order += order[:self.total_size - len(order)]
        self._order = order
        self._recorded = set()  # positions in this rank's part

    def processed_by(self, rank):
        """What another rank of the same division has processed if it made the same batches as this
        one: for ranks that died and cannot say."""
        return {self._order[position * self.num_replicas + rank] for position in self._recorded}

    def __iter__(self):
        return iter(self._order[self.rank::self.num_replicas])

    def __len__(self):
        return self.num_samples
