# SPDX-License-Identifier: Apache-2.0
"""With pretended_gpu.py hvd really treats host tensors as tensors on a GPU. Other tests rely on
that."""

import unittest

import torch
import torch.distributed as dist

import pretended_gpu
from distributed_case import IS_ON_GPU, Case


@unittest.skipUnless(IS_ON_GPU, 'tensors are on the host')
class Pretence(Case):

    def check_follows(self, call):
        before = pretended_gpu.waits()
        call()
        self.assertGreater(pretended_gpu.waits(), before)

    def test_callers_stream_waits_for_hvd(self):
        tensor = torch.ones(3)
        self.check_follows(lambda: dist.all_reduce(tensor))
        self.check_same(tensor, torch.full((3,), float(self.size)))

    def test_tensors_stay_where_torch_sees_them(self):
        tensor = torch.ones(3)
        self.assertEqual(tensor.device, torch.device('cpu'))
        self.check_follows(lambda: dist.broadcast(tensor, 0))
