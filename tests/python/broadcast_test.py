# SPDX-License-Identifier: Apache-2.0
"""broadcast from any root, and its gradient."""

import torch

import horovod.torch as hvd
from case import Case
from inputs import ALL, values


class Broadcast(Case):

    def test_every_dtype_comes_from_every_root(self):
        for dtype in ALL:
            for root in range(hvd.size()):
                for shape in ((), (0, 2), (3, 4)):
                    with self.subTest(dtype=dtype, root=root, shape=shape):
                        mine = values(hvd.rank(), shape, dtype)
                        result = hvd.broadcast(mine, root)
                        self.assertEqual(result.tolist(), values(root, shape, dtype).tolist())
                        self.assertEqual(result.dtype, dtype)
                        self.assertEqual(mine.tolist(),
                                         values(hvd.rank(), shape, dtype).tolist())

    def test_in_place_changes_and_returns_the_tensor(self):
        root = hvd.size() - 1
        for mine in (values(hvd.rank(), (3, 4)), values(hvd.rank(), (4, 3)).t()):
            self.assertIs(hvd.broadcast_(mine, root), mine)
            handle = hvd.broadcast_async_(mine, root)
            self.assertIs(hvd.synchronize(handle), mine)
            root_shape = (3, 4) if mine.is_contiguous() else (4, 3)
            right = values(root, root_shape)
            right = right if mine.is_contiguous() else right.t()
            self.assertTrue(torch.equal(mine, right))

    def test_root_that_does_not_exist_is_refused(self):
        with self.assertRaisesRegex(ValueError, 'root'):
            hvd.broadcast(torch.ones(2), hvd.size())
        with self.assertRaisesRegex(ValueError, 'root'):
            hvd.broadcast(torch.ones(2), -1)

    def test_gradient_is_the_average_on_the_root_and_zero_elsewhere(self):
        root = hvd.size() - 1
        mine = values(hvd.rank(), (5,)).requires_grad_()
        hvd.broadcast(mine, root).backward(torch.full((5,), hvd.rank() + 1.0))
        mean = (hvd.size() + 1) / 2
        right = torch.full((5,), mean if hvd.rank() == root else 0.0)
        self.assertTrue(torch.allclose(mine.grad, right))
