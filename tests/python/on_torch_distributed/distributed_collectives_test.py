# SPDX-License-Identifier: Apache-2.0
"""Every collective of torch.distributed over hvd gives the right result in all dtypes and
layouts."""

import torch
import torch.distributed as dist

from distributed_case import Case, gather_into_one, reduced, scatter_from_one
from inputs import ALL, FLOATS, NUMBERS, values

WHOLE = [dtype for dtype in NUMBERS if not dtype.is_floating_point]
MOVED = ALL + [getattr(torch, name) for name in
               ('complex64', 'complex128', 'float8_e4m3fn', 'float8_e5m2') if hasattr(torch, name)]


def strided(tensor):
    """Returns the same numbers in memory that is not dense."""
    wide = torch.zeros(*tensor.shape, 2, dtype=tensor.dtype)
    wide[..., 0] = tensor
    return wide[..., 0]


def columns(count, length, dtype):
    """Returns tensors that are not dense."""
    return list(torch.zeros(length, count, dtype=dtype).unbind(1))


def apart(count, length, dtype):
    """Returns dense tensors that are not adjacent in memory."""
    return [torch.zeros(length + 1, dtype=dtype)[1:] for _ in range(count)]


def following(count, length, dtype):
    """Returns the parts of one dense tensor."""
    return list(torch.zeros(count, length, dtype=dtype).unbind(0))


LAYOUTS = (following, apart, columns)


def filled(tensors, contents):
    for each, content in zip(tensors, contents):
        each.copy_(content)
    return tensors


class Reductions(Case):

    def check_reduction(self, op, dtype, shape=(3, 2), layout=torch.clone):
        tensor = layout(self.mine(shape, dtype))
        dist.all_reduce(tensor, getattr(dist.ReduceOp, op))
        self.check(tensor, reduced(self.whole(shape, dtype), op))

    def test_all_reduce_computes_every_op_in_every_dtype(self):
        for dtype in NUMBERS:
            for op in ('SUM', 'PRODUCT', 'MIN', 'MAX'):
                with self.subTest(op=op, dtype=dtype):
                    self.check_reduction(op, dtype)

    def test_all_reduce_averages_floats(self):
        for dtype in FLOATS:
            with self.subTest(dtype=dtype):
                self.check_reduction('AVG', dtype)

    def test_all_reduce_has_bitwise_ops_of_whole_numbers(self):
        for dtype in WHOLE:
            for op in ('BAND', 'BOR', 'BXOR'):
                with self.subTest(op=op, dtype=dtype):
                    self.check_reduction(op, dtype)

    def test_a_sum_may_have_a_factor(self):
        times_half = self.op_with_factor(0.5)
        for shape, dtype in (((3, 2), torch.float32), ((5,), torch.float64)):
            total = self.whole(shape, dtype).sum(0) / 2
            tensor = self.mine(shape, dtype)
            dist.all_reduce(tensor, times_half)
            self.check_same(tensor, total)
            tensor = self.mine(shape, dtype)
            dist.reduce(tensor, 0, times_half)
            if self.rank == 0:
                self.check_same(tensor, total)
        output = torch.zeros(3)
        scatter_from_one(output, self.mine((3 * self.size,)), op=times_half)
        total = self.whole((3 * self.size,)).sum(0) / 2
        self.check_same(output, total[3 * self.rank:3 * self.rank + 3])

    def test_premul_sum_is_rejected_if_torch_hides_the_factor(self):
        make = self.maker_of_factors()
        if make(0.5).__getstate__() is not None:
            self.skipTest('this torch tells the factor of PREMUL_SUM')
        with self.assertRaisesRegex(NotImplementedError, 'PREMUL_SUM to NCCL only.* multiply the tensor'):
            dist.all_reduce(torch.zeros(3), make(0.5))

    def maker_of_factors(self):
        make = getattr(dist, '_make_nccl_premul_sum', None)
        if make is None:
            self.skipTest('this torch has no PREMUL_SUM')
        return make

    def op_with_factor(self, factor):
        op = self.maker_of_factors()(factor)
        if op.__getstate__() is None:
            self.skipTest('this torch does not tell the factor of PREMUL_SUM')
        return op

    def test_all_reduce_takes_any_shape_and_layout(self):
        for shape in ((), (0,), (1,), (4, 0, 2), (7, 5), (100003,)):
            for layout in (torch.clone, strided):
                with self.subTest(shape=shape, layout=layout.__name__):
                    self.check_reduction('SUM', torch.float32, shape, layout)

    def test_all_reduce_takes_a_transposed_tensor(self):
        tensor = self.mine((4, 3)).t()
        dist.all_reduce(tensor)
        self.check_same(tensor, self.whole((4, 3)).sum(0).t())

    def test_all_reduce_takes_a_parameter(self):
        parameter = torch.nn.Parameter(self.mine((3,)))
        with torch.no_grad():
            dist.all_reduce(parameter)
        self.check_same(parameter.detach(), self.whole((3,)).sum(0))

    def test_complex_numbers_are_added(self):
        for dtype in (torch.complex64, torch.complex128):
            tensor = self.mine((3,), dtype) + 2j * self.mine((3,), dtype, salt=1)
            dist.all_reduce(tensor)
            self.check_same(tensor, self.whole((3,), dtype).sum(0)
                            + 2j * self.whole((3,), dtype, salt=1).sum(0))

    def test_reduce_gives_the_result_to_the_root_alone(self):
        for root in range(self.size):
            for layout in (torch.clone, strided):
                for op in ('SUM', 'MAX'):
                    tensor = layout(self.mine((3, 2)))
                    dist.reduce(tensor, root, getattr(dist.ReduceOp, op))
                    if self.rank == root:
                        self.check_same(tensor, reduced(self.whole((3, 2)), op))

    def test_reduce_scatter_gives_each_rank_its_part(self):
        whole = self.whole((self.size, 3))
        for op in ('SUM', 'AVG', 'MIN', 'MAX', 'PRODUCT'):
            for layout in LAYOUTS:
                for layout_of_output in (torch.clone, strided):
                    inputs = filled(layout(self.size, 3, torch.float32),
                                    self.mine((self.size, 3)))
                    output = layout_of_output(torch.zeros(3))
                    dist.reduce_scatter(output, inputs, getattr(dist.ReduceOp, op))
                    self.check(output, reduced(whole, op)[self.rank])

    def test_reduce_scatter_has_bitwise_ops(self):
        for op in ('BAND', 'BOR', 'BXOR'):
            output = torch.zeros(3, dtype=torch.int32)
            dist.reduce_scatter(output, list(self.mine((self.size, 3), torch.int32)),
                                getattr(dist.ReduceOp, op))
            self.check_same(output, reduced(self.whole((self.size, 3), torch.int32), op)[self.rank])

    def test_reduce_scatter_takes_parts_of_different_sizes(self):
        inputs = [self.mine((part + 1,), salt=part) for part in range(self.size)]
        output = torch.zeros(self.rank + 1)
        dist.reduce_scatter(output, inputs)
        self.check_same(output, self.whole((self.rank + 1,), salt=self.rank).sum(0))

    def test_reduce_scatter_takes_complex_parts_of_different_sizes(self):
        def numbers(of, shape, salt):
            return of(shape, torch.complex64, salt) + 2j * of(shape, torch.complex64, salt + 1)

        inputs = [numbers(self.mine, (part + 1, 2), part) for part in range(self.size)]
        output = torch.zeros_like(inputs[self.rank])
        dist.reduce_scatter(output, inputs)
        self.check_same(output, numbers(self.whole, (self.rank + 1, 2), self.rank).sum(0))

    def test_reduce_scatter_of_one_tensor(self):
        for dtype in NUMBERS:
            for layout in (torch.clone, strided):
                output = torch.zeros(2, 2, dtype=dtype)
                scatter_from_one(output, layout(self.mine((2 * self.size, 2), dtype)))
                whole = reduced(self.whole((2 * self.size, 2), dtype), 'SUM')
                self.check(output, whole[2 * self.rank:2 * self.rank + 2])


class Movements(Case):
    """Collectives that only move data, in all dtypes, also in those that libhvd does not know."""

    def check_moved(self, results, rows, dtype):
        """Checks the results. ``rows``: the expected numbers as float32."""
        for result, row in zip(results, rows):
            self.assertEqual(result.dtype, dtype)
            expected = row.to(dtype)
            same = torch.equal(result.to(torch.complex128), expected.to(torch.complex128))
            self.assertTrue(same, f'{result} is not {expected}')

    def test_broadcast(self):
        for dtype in MOVED:
            for root in range(self.size):
                with self.subTest(dtype=dtype, root=root):
                    tensor = self.mine((3, 2)).to(dtype)
                    dist.broadcast(tensor, root)
                    self.check_moved([tensor], [values(root, (3, 2))], dtype)

    def test_broadcast_of_any_shape_and_layout(self):
        for shape in ((), (0,), (4, 0, 2), (100003,)):
            for layout in (torch.clone, strided):
                with self.subTest(shape=shape, layout=layout.__name__):
                    tensor = layout(self.mine(shape))
                    dist.broadcast(tensor, 0)
                    self.check_same(tensor, values(0, shape))

    def test_all_gather(self):
        for dtype in MOVED:
            for layout in LAYOUTS:
                with self.subTest(dtype=dtype, layout=layout.__name__):
                    outputs = layout(self.size, 3, dtype)
                    dist.all_gather(outputs, self.mine((3,)).to(dtype))
                    self.check_moved(outputs, self.whole((3,)), dtype)

    def test_all_gather_of_inputs_that_are_not_dense(self):
        for tensor in (strided(self.mine((3,))), self.mine((1,)).expand(3)):
            outputs = apart(self.size, 3, torch.float32)
            dist.all_gather(outputs, tensor)
            all_of_them = torch.zeros(self.size, 3)
            gather_into_one(all_of_them, tensor)
            self.check_same(all_of_them[self.rank], tensor)
            self.check_same(torch.stack(outputs), all_of_them)

    def test_all_gather_of_nothing_and_of_a_number(self):
        outputs = [torch.zeros(0, 3) for _ in range(self.size)]
        dist.all_gather(outputs, torch.zeros(0, 3))
        outputs = [torch.zeros(()) for _ in range(self.size)]
        dist.all_gather(outputs, torch.tensor(float(self.rank)))
        self.assertEqual([each.item() for each in outputs], list(range(self.size)))

    def test_all_gather_into_one_tensor(self):
        for dtype in MOVED:
            with self.subTest(dtype=dtype):
                stack = torch.zeros(self.size, 3, dtype=dtype)
                joined = torch.zeros(self.size * 3, dtype=dtype)
                gather_into_one(stack, self.mine((3,)).to(dtype))
                gather_into_one(joined, self.mine((3,)).to(dtype))
                self.check_moved(stack, self.whole((3,)), dtype)
                self.check_moved(joined.view(self.size, 3), self.whole((3,)), dtype)

    def test_all_gather_into_a_tensor_that_is_not_dense(self):
        output = strided(torch.zeros(self.size * 3))
        gather_into_one(output, self.mine((3,)))
        self.check_same(output, self.whole((3,)).flatten())

    def test_gather(self):
        for dtype in MOVED:
            for root in range(self.size):
                for layout in LAYOUTS:
                    is_root = self.rank == root
                    outputs = layout(self.size, 3, dtype) if is_root else None
                    dist.gather(self.mine((3,)).to(dtype), outputs, root)
                    if is_root:
                        self.check_moved(outputs, self.whole((3,)), dtype)

    def test_scatter(self):
        for dtype in MOVED:
            for root in range(self.size):
                for layout in LAYOUTS:
                    inputs = None
                    if self.rank == root:
                        inputs = filled(layout(self.size, 3, dtype),
                                        values(root, (self.size, 3)).to(dtype))
                    output = torch.zeros(3, dtype=dtype)
                    dist.scatter(output, inputs, root)
                    self.check_moved([output], [values(root, (self.size, 3))[self.rank]], dtype)

    def test_scatter_to_a_tensor_that_is_not_dense(self):
        output = strided(torch.zeros(3))
        inputs = list(values(0, (self.size, 3))) if self.rank == 0 else None
        dist.scatter(output, inputs, 0)
        self.check_same(output, values(0, (self.size, 3))[self.rank])

    def test_all_to_all_single_in_even_parts(self):
        for dtype in MOVED:
            for layout in (torch.clone, strided):
                output = layout(torch.zeros(2 * self.size, 2, dtype=dtype))
                dist.all_to_all_single(output,
                                       layout(self.mine((2 * self.size, 2)).to(dtype)))
                begin = 2 * self.rank
                expected = self.whole((2 * self.size, 2))[:, begin:begin + 2].reshape(-1, 2)
                self.check_moved([output], [expected], dtype)

    def test_all_to_all_single_in_uneven_parts(self):
        """Rank r sends (r + i) % 3 rows to rank i: some parts, and some tensors, are empty."""
        def rows(source, target):
            return (source + target) % 3

        sent = [rows(self.rank, other) for other in range(self.size)]
        got = [rows(other, self.rank) for other in range(self.size)]
        for dtype in (torch.float32, torch.complex64, torch.int64):
            output = torch.zeros(sum(got), 2, dtype=dtype)
            dist.all_to_all_single(output, self.mine((sum(sent), 2)).to(dtype), got, sent)
            expected = []
            for source in range(self.size):
                counts = [rows(source, other) for other in range(self.size)]
                begin = sum(counts[:self.rank])
                expected.append(values(source, (sum(counts), 2))[begin:begin + counts[self.rank]])
            self.check_moved([output], [torch.cat(expected)], dtype)

    def test_all_to_all_of_lists(self):
        for dtype in (torch.float32, torch.int16, torch.bool, torch.complex64):
            for layout in LAYOUTS:
                inputs = filled(layout(self.size, 3, dtype), self.mine((self.size, 3)).to(dtype))
                outputs = layout(self.size, 3, dtype)
                dist.all_to_all(outputs, inputs)
                self.check_moved(outputs, self.whole((self.size, 3))[:, self.rank], dtype)

    def test_all_to_all_of_lists_of_different_sizes(self):
        def sizes(source, target):
            return 2 * source + target

        inputs = [self.mine((sizes(self.rank, other),), salt=other) for other in range(self.size)]
        outputs = [torch.zeros(sizes(other, self.rank)) for other in range(self.size)]
        dist.all_to_all(outputs, inputs)
        for other, output in enumerate(outputs):
            self.check_same(output, values(other, (sizes(other, self.rank),), salt=self.rank))


class SeveralTensors(Case):

    def setUp(self):
        super().setUp()
        self.shapes = [(3,), (2, 2), (), (0,), (5,)]

    def test_all_reduce_coalesced(self):
        if not hasattr(dist, 'all_reduce_coalesced'):
            self.skipTest('this torch has no all_reduce_coalesced')
        tensors = [self.mine(shape, salt=salt) for salt, shape in enumerate(self.shapes)]
        dist.all_reduce_coalesced(tensors)
        for salt, (tensor, shape) in enumerate(zip(tensors, self.shapes)):
            self.check_same(tensor, self.whole(shape, salt=salt).sum(0))

    def test_all_gather_coalesced(self):
        if not hasattr(dist, 'all_gather_coalesced'):
            self.skipTest('this torch has no all_gather_coalesced')
        tensors = [self.mine(shape, salt=salt) for salt, shape in enumerate(self.shapes)]
        outputs = [[torch.zeros(shape) for shape in self.shapes] for _ in range(self.size)]
        dist.all_gather_coalesced(outputs, tensors)
        for rank, row in enumerate(outputs):
            for salt, (output, shape) in enumerate(zip(row, self.shapes)):
                self.check_same(output, values(rank, shape, salt=salt))

    def manager(self):
        manager = getattr(dist, '_coalescing_manager', None)
        if manager is None:
            self.skipTest('this torch coalesces nothing on CPUs')
        return manager()

    def test_a_coalescing_manager_has_all_reductions(self):
        tensors = [self.mine(shape, salt=salt) for salt, shape in enumerate(self.shapes)]
        with self.manager():
            for tensor in tensors:
                dist.all_reduce(tensor)
        for salt, (tensor, shape) in enumerate(zip(tensors, self.shapes)):
            self.check_same(tensor, self.whole(shape, salt=salt).sum(0))

    def test_a_coalescing_manager_has_gathers_and_scatters(self):
        outputs = [torch.zeros(self.size, length) for length in (3, 4)]
        with self.manager():
            for output in outputs:
                gather_into_one(output, self.mine((output.shape[1],)))
        for output in outputs:
            self.check_same(output, self.whole((output.shape[1],)))
        parts = [torch.zeros(length) for length in (3, 4)]
        with self.manager():
            for part in parts:
                scatter_from_one(part, self.mine((self.size, len(part))))
        for part in parts:
            self.check_same(part, self.whole((self.size, len(part))).sum(0)[self.rank])


class Objects(Case):

    def test_all_ranks_get_the_objects_of_all_ranks(self):
        objects = [None] * self.size
        dist.all_gather_object(objects, {'rank': self.rank, 'long': 'x' * 1000 * self.rank})
        self.assertEqual(objects, [{'rank': rank, 'long': 'x' * 1000 * rank}
                                   for rank in range(self.size)])

    def test_the_list_of_the_root_is_broadcast(self):
        for root in range(self.size):
            objects = [('of', root), None] if self.rank == root else [None, 7]
            dist.broadcast_object_list(objects, root)
            self.assertEqual(objects, [('of', root), None])

    def test_the_root_gathers_all_objects_and_scatters_them(self):
        root = self.size - 1
        is_root = self.rank == root
        objects = [None] * self.size if is_root else None
        dist.gather_object({self.rank}, objects, root)
        if is_root:
            self.assertEqual(objects, [{rank} for rank in range(self.size)])
        given = [None]
        dist.scatter_object_list(given, [f'for {rank}' for rank in range(self.size)], root)
        self.assertEqual(given, [f'for {self.rank}'])


class Functions(Case):
    """The functional collectives of torch, which return their result."""

    def setUp(self):
        super().setUp()
        try:
            import torch.distributed._functional_collectives as functions
            functions.all_gather_tensor
        except (ImportError, AttributeError):
            self.skipTest('this torch has no functional collectives')
        self.functions = functions

    def group(self):
        return dist.group.WORLD

    def test_reductions(self):
        tensor = self.mine((2 * self.size, 3))
        whole = self.whole((2 * self.size, 3))
        result = self.functions.all_reduce(tensor, 'sum', self.group())
        self.check_same(result + 0, whole.sum(0))
        self.check_same(tensor, whole[self.rank])
        result = self.functions.all_reduce(tensor, 'avg', self.group())
        self.check(result + 0, reduced(whole, 'AVG'))
        result = self.functions.reduce_scatter_tensor(tensor, 'sum', 0, self.group())
        self.check_same(result + 0, whole.sum(0)[2 * self.rank:2 * self.rank + 2])

    def test_movements(self):
        tensor = self.mine((self.size, 3))
        whole = self.whole((self.size, 3))
        result = self.functions.all_gather_tensor(tensor, 0, self.group())
        self.check_same(result + 0, whole.reshape(-1, 3))
        result = self.functions.all_gather_tensor(tensor, 1, self.group())
        self.check_same(result + 0, torch.cat(list(whole), 1))
        result = self.functions.all_to_all_single(tensor, None, None, self.group())
        self.check_same(result + 0, whole[:, self.rank])

    def test_several_tensors(self):
        tensors = [self.mine((self.size, 3)), self.mine((self.size, 2), salt=1)]
        wholes = [self.whole((self.size, 3)), self.whole((self.size, 2), salt=1)]
        for result, whole in zip(
                self.functions.all_reduce_coalesced(tensors, 'sum', self.group()), wholes):
            self.check_same(result + 0, whole.sum(0))
        for result, whole in zip(
                self.functions.all_gather_into_tensor_coalesced(tensors, self.group()), wholes):
            self.check_same(result + 0, whole.flatten(0, 1))
        for result, whole in zip(self.functions.reduce_scatter_tensor_coalesced(
                tensors, 'sum', [0, 0], self.group()), wholes):
            self.check_same(result + 0, whole.sum(0)[self.rank:self.rank + 1])

    def test_gradients_pass_through(self):
        from torch.distributed.nn import functional
        tensor = self.mine((3,)).requires_grad_()
        (functional.all_reduce(tensor).sum() * (self.rank + 1)).backward()
        self.assertEqual(tensor.grad.tolist(), [self.size * (self.size + 1) / 2] * 3)
