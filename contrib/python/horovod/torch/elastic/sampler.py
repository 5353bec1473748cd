# SPDX-License-Identifier: Apache-2.0
"""A sampler that distributes an epoch's samples anew when the ranks change during the epoch."""

import random

import torch


class ElasticSampler(torch.utils.data.Sampler):
    """Divides the samples of an epoch among the ranks. Samples recorded as processed are not drawn
    again when the ranks change. Pass the sampler to TorchState, call ``record_batch`` after each
    batch and ``set_epoch`` at the end of each epoch.

    ``processed_indices``: the samples that this rank has processed in this epoch, and those that
    all ranks had processed at the last change of the ranks.
    ``remaining_indices``: the samples that were left at that change, in the order of the epoch.
    ``processed_num``: how many samples all ranks have processed, if each has made as many batches
    as this rank.
    """

    def __init__(self, dataset, shuffle=True, seed=0):
        self.dataset = dataset
        self.shuffle = shuffle
        self.seed = seed
        self.epoch = 0
        self.processed_indices = set()
        self.reset()

    def set_epoch(self, epoch):
        """Begins a new epoch, in which no sample is processed yet."""
        self.epoch = epoch
        self.processed_indices = set()
        self.reset()

    def record_batch(self, batch_idx, batch_size):
        """Records batch number ``batch_idx`` of this rank as processed. Batches are counted from
        the last change of the ranks, or from the beginning of the epoch."""
        self._recorded.update(self._positions(batch_idx, batch_size))
        self.record_indices(self.get_indices(batch_idx, batch_size))

    def record_indices(self, indices):
        """Records samples that this rank has processed."""
        self.processed_indices.update(indices)

    def get_indices(self, batch_idx, batch_size):
        """Returns the samples in batch number ``batch_idx`` of this rank."""
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
        """Returns the state of the epoch. ``processed_num`` is for Horovod's sampler, which takes
        that many samples from the beginning of the epoch as processed."""
        return {'epoch': self.epoch, 'processed_num': self.processed_num,
                'processed_indices': set(self.processed_indices)}

    def load_state_dict(self, state_dict):
        """Continues the epoch of a saved state. Samples that any rank had processed by then are not
        drawn again. The state may come from Horovod's sampler."""
        self.epoch = state_dict['epoch']
        own = set(state_dict.get('processed_indices', ()))
        everyones = set(self._epoch_order()[:state_dict.get('processed_num', 0)])
        # Usually the processed samples of all ranks are the first ones of the epoch. They are not
        # after a change of ranks that had made unequal numbers of batches. Then the state tells
        # only which samples its own rank has processed.
        self.processed_indices = everyones if own <= everyones else own
        self.reset()

    def _epoch_order(self):
        """Returns all samples of the epoch, in the same order on all ranks."""
        order = list(range(len(self.dataset)))
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(order)
        return order

    def reset(self):
        """Divides the remaining samples among the current ranks."""
        from horovod.torch.mpi_ops import rank, size
        self.num_replicas, self.rank = size(), rank()
        self.remaining_indices = [index for index in self._epoch_order()
                                  if index not in self.processed_indices]
        self.num_samples = -(-len(self.remaining_indices) // self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas
        order = list(self.remaining_indices)
        # All ranks must make the same number of steps. If the samples cannot be divided equally,
        # some are drawn twice.
        while order and len(order) < self.total_size:
            order += order[:self.total_size - len(order)]
        self._order = order
        self._recorded = set()  # processed positions in this rank's part

    def processed_by(self, rank):
        """Returns the samples that another rank has processed, if it made the same batches as this
        rank. Used for ranks that have died."""
        return {self._order[position * self.num_replicas + rank] for position in self._recorded}

    def __iter__(self):
        return iter(self._order[self.rank::self.num_replicas])

    def __len__(self):
        return self.num_samples
