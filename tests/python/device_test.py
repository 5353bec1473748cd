# SPDX-License-Identifier: Apache-2.0
"""Collectives on torch tensors on this machine's GPUs, with HVD_TEST_DEVICE=cuda. Several ranks
share a GPU if there are fewer GPUs than ranks."""

import unittest

import torch

import horovod.torch as hvd
from case import Case
from device import DEVICE, assert_no_waiting
from horovod.common.exceptions import HorovodInternalError
from inputs import ALL, FLOATS, NUMBERS, stacked, values
from ranks import own_part
from optimizer_test import batch, loss_of, make_model, own

SHAPES = [(), (0,), (5,), (3, 4), (1031,), (700000,)]


def here(*arguments):
    """Returns this rank's values, on its GPU."""
    return values(hvd.rank(), *arguments).to(DEVICE)


def late(tensor):
    """Returns a copy that the current stream computes only after a delay."""
    torch.cuda._sleep(2000000)
    return tensor * 1


def reduced(op, shape, dtype, salt=0):
    """Returns the expected result of a reduction with ``op``."""
    everything = stacked(hvd.size(), shape, dtype, salt)
    wide = everything.to(torch.float64 if dtype.is_floating_point else torch.int64)
    if op == hvd.Average:
        total = wide.sum(0)
        if dtype.is_floating_point:
            return (total / hvd.size()).to(dtype)
        return (total.double() * (1.0 / hvd.size())).trunc().to(dtype)
    return {hvd.Sum: lambda: wide.sum(0), hvd.Product: lambda: wide.prod(0),
            hvd.Min: lambda: wide.amin(0), hvd.Max: lambda: wide.amax(0)}[op]().to(dtype)


@unittest.skipUnless(DEVICE == 'cuda', 'is for GPUs: HVD_TEST_DEVICE=cuda')
class Device(Case):

    def check_there(self, result, expected):
        self.assertTrue(result.is_cuda)
        self.check(result.cpu(), expected)

    def test_every_dtype_and_op_is_reduced_as_on_the_host(self):
        for dtype in NUMBERS:
            for op in (hvd.Average, hvd.Sum, hvd.Min, hvd.Max, hvd.Product):
                for shape in SHAPES[:-1]:
                    with self.subTest(dtype=dtype, op=op, shape=shape):
                        self.check_there(hvd.allreduce(here(shape, dtype), op=op),
                                         reduced(op, shape, dtype))

    def test_results_are_the_hosts_bits(self):
        for dtype in FLOATS:
            for shape in SHAPES:
                mine = values(hvd.rank(), shape, dtype)
                self.check_same(hvd.allreduce(mine.to(DEVICE), op=hvd.Sum).cpu(),
                                hvd.allreduce(mine, op=hvd.Sum))

    def test_a_group_of_small_and_large_tensors_is_reduced(self):
        shapes = [(3,), (700000,), (1,), (0,), (1031,)]
        mine = [here(shape, torch.float32, salt) for salt, shape in enumerate(shapes)]
        for salt, result in enumerate(hvd.grouped_allreduce(mine, op=hvd.Sum)):
            self.check_there(result, reduced(hvd.Sum, shapes[salt], torch.float32, salt))

    def test_every_dtype_is_moved(self):
        size = hvd.size()
        for dtype in ALL:
            with self.subTest(dtype=dtype):
                rows = [values(rank, (rank + 1, 2), torch.int32, 1).to(dtype)
                        for rank in range(size)]
                self.check_there(hvd.allgather(rows[hvd.rank()].to(DEVICE)), torch.cat(rows))
                mine = here((3,), torch.int32).to(dtype)
                self.check_there(hvd.broadcast(mine, size - 1),
                                 values(size - 1, (3,), torch.int32).to(dtype))
                everything = stacked(size, (2 * size,), torch.int32, 2).to(dtype)
                begin = 2 * hvd.rank()
                self.check_there(hvd.alltoall(everything[hvd.rank()].to(DEVICE)),
                                 everything[:, begin:begin + 2].reshape(-1))

    def test_reducescatter_gives_each_rank_its_part(self):
        for rows in (hvd.size(), 2 * hvd.size() + 1):
            result = hvd.reducescatter(here((rows, 3)), op=hvd.Sum)
            self.check_there(result, own_part(reduced(hvd.Sum, (rows, 3), torch.float32)))

    def test_streams_of_the_caller_are_followed(self):
        side = torch.cuda.Stream()
        for step in range(10):
            tensor = torch.full((5000,), float(hvd.rank() + step), device=DEVICE)
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                total = hvd.allreduce(late(tensor), op=hvd.Sum, name='side') + 1
            torch.cuda.current_stream().wait_stream(side)
            right = sum(range(hvd.size())) + step * hvd.size() + 1
            self.assertTrue((total == right).all())

    def test_training_waits_for_no_value(self):
        model = make_model(torch.float32)
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), 0.1),
                                             model.named_parameters())
        rows = own(batch(0, torch.float32))

        def step():
            optimizer.zero_grad()
            loss_of(model, rows).backward()
            optimizer.step()

        step()
        with assert_no_waiting():
            for _ in range(3):
                step()

    def test_an_optimizer_may_have_parameters_on_host_and_gpu(self):
        torch.manual_seed(1)
        first, second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 2).to(DEVICE)
        parameters = [*first.named_parameters('first'), *second.named_parameters('second')]
        optimizer = hvd.DistributedOptimizer(
            torch.optim.SGD([parameter for _, parameter in parameters], 0.1), parameters)
        for step in range(3):
            optimizer.zero_grad()
            rows = torch.randn(4, 4) * (hvd.rank() + 1)
            second(first(rows).to(DEVICE)).pow(2).mean().backward()
            optimizer.step()
        mine = torch.cat([each.detach().flatten().cpu() for _, each in parameters])
        for other in hvd.allgather(mine[None]):
            self.check_same(other, mine)

    def test_host_and_gpu_tensors_do_not_match(self):
        if hvd.size() == 1:
            self.skipTest('needs two ranks')
        tensor = values(hvd.rank(), (3,)).to('cpu' if hvd.rank() == 0 else DEVICE)
        with self.assertRaisesRegex(HorovodInternalError, 'Mismatched ALLREDUCE CPU/GPU device '
                                                          'selection: One rank specified'):
            hvd.allreduce(tensor, name='where')

    def test_list_on_several_devices_is_refused(self):
        with self.assertRaisesRegex(hvd.HorovodInternalError, 'must be on same device'):
            hvd.grouped_allreduce([here((3,)), values(0, (3,))])

    def test_half_precision_training(self):
        """Trains in float16 with a dynamic loss scale, and sends gradients as float16."""
        model = make_model(torch.float32)
        optimizer = hvd.DistributedOptimizer(
            torch.optim.Adam(model.parameters(), 0.01), model.named_parameters(),
            compression=hvd.Compression.fp16)
        scaler = torch.cuda.amp.GradScaler(init_scale=2.0 ** 24)  # too large at first
        losses = []
        for step in range(60):
            optimizer.zero_grad()
            with torch.autocast('cuda', torch.float16):
                loss = loss_of(model, own(batch(0, torch.float32)))
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())
        self.assertLess(losses[-1], 0.7 * losses[0])
        self.assertLess(scaler.get_scale(), 2.0 ** 24)
        mine = torch.cat([each.detach().flatten() for each in model.parameters()])
        for other in hvd.allgather(mine[None]):
            self.check_same(other, mine)
