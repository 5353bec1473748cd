# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer reduces gradients in place if their parameters have torch's memory formats
channels_last or channels_last_3d."""

from unittest import mock

import torch

import horovod.torch as hvd
from case import Case
from device import DEVICE
from horovod.torch.collectives import tensors as memory

LAST = {4: torch.channels_last, 5: torch.channels_last_3d}
SHAPES = ((4, 3, 2, 2), (3, 3, 3, 3), (2, 3, 2, 4, 2), (5, 6, 1, 1), (5, 1, 3, 3), (7,))


def lay_out(tensor, last=True):
    last = last and tensor.dim() in LAST
    return tensor.contiguous(memory_format=LAST[tensor.dim()]) if last else tensor


def values_of(index, shape, rank):
    """Returns a tensor whose elements are all different."""
    numbers = torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape)
    return numbers + rank * 100 + index


class ChannelsLastTest(Case):

    def parameters(self, last=True):
        return [torch.nn.Parameter(lay_out(torch.ones(shape), last).to(DEVICE)) for shape in SHAPES]

    def wrap(self, parameters, **options):
        named = [(f'{self.id()}.{i}', each) for i, each in enumerate(parameters)]
        return hvd.DistributedOptimizer(torch.optim.SGD(parameters, 1.0), named, op=hvd.Sum,
                                        **options)

    def backward(self, parameters):
        terms = [(each * values_of(i, each.shape, hvd.rank()).to(DEVICE)).sum()
                 for i, each in enumerate(parameters)]
        torch.stack(terms).sum().backward()

    def check(self, parameters):
        for i, each in enumerate(parameters):
            right = sum(values_of(i, each.shape, rank) for rank in range(hvd.size()))
            self.assertEqual(each.grad.tolist(), right.tolist())

    def test_gradients_are_not_copied(self):
        for options in ({}, {'groups': 2}):
            parameters = self.parameters()
            optimizer = self.wrap(parameters, **options)
            for _ in range(3):
                with self.subTest(options), \
                        mock.patch.object(memory, 'write_back', wraps=memory.write_back) as back:
                    optimizer.zero_grad(set_to_none=False)
                    self.backward(parameters)
                    optimizer.synchronize()
                    self.assertTrue(all(a is b for (a, b), _ in back.call_args_list))
                    self.check(parameters)
                    for each in parameters:
                        self.assertEqual(each.grad.stride(), each.stride())

    def test_options_do_not_change_the_result(self):
        for options in ({'compression': hvd.Compression.fp16}, {'backward_passes_per_step': 2}):
            with self.subTest(options):
                parameters = self.parameters()
                optimizer = self.wrap(parameters, **options)
                for _ in range(options.get('backward_passes_per_step', 1) - 1):
                    sum(0 * each.sum() for each in parameters).backward()
                self.backward(parameters)
                optimizer.synchronize()
                self.check(parameters)

    def test_a_gradient_in_another_layout_gives_the_same_result(self):
        parameters = self.parameters()
        optimizer = self.wrap(parameters)
        self.backward(parameters)
        optimizer.synchronize()
        for each in parameters:
            each.grad = torch.zeros(each.shape, device=DEVICE) if hvd.rank() == 0 else \
                torch.zeros_like(each)
        self.backward(parameters)
        optimizer.synchronize()
        self.check(parameters)

    def test_rank_without_gradient_gets_the_sum(self):
        parameters = self.parameters()
        optimizer = self.wrap(parameters)
        if hvd.rank() == 0:
            self.backward(parameters)
        optimizer.synchronize()
        for i, each in enumerate(parameters):
            self.assertEqual(each.grad.tolist(), values_of(i, each.shape, 0).tolist())

    def test_ranks_with_different_formats_get_an_error(self):
        if hvd.size() == 1:
            self.skipTest('needs two ranks')
        parameters = self.parameters(last=hvd.rank() == 0)[1:2]
        optimizer = self.wrap(parameters)
        self.backward(parameters)
        with self.assertRaisesRegex(hvd.HorovodInternalError,
                                    r'ranks_with_different_formats.*rank 0 has \[1, 3, 3, 3, 3\]'):
            optimizer.synchronize()
