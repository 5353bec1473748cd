# SPDX-License-Identifier: Apache-2.0
"""Collectives on pytrees, within and outside jax.jit, and what they refuse."""

import time

import jax
import jax.numpy as jnp
import numpy as np

import horovod.jax as hvd
from jax_case import Case, mine, total, values

DTYPES = ('uint8', 'int8', 'uint16', 'int16', 'int32', 'uint32', 'float16', 'bfloat16', 'float32')


class Allreduce(Case):

    def check_all(self, function):
        for dtype in DTYPES:
            with self.subTest(dtype=dtype):
                self.check(function(mine((3, 2), dtype)), total((3, 2), dtype))

    def test_sum_in_every_dtype(self):
        self.check_all(lambda array: hvd.allreduce(array, op=hvd.Sum))

    def test_sum_in_every_dtype_within_jit(self):
        self.check_all(jax.jit(lambda array: hvd.allreduce(array, op=hvd.Sum)))

    def check_tree(self, function):
        tree = {'w': mine((4, 2)), 'b': [mine((), 'bfloat16'), None]}
        result = function(tree)
        self.assertEqual(jax.tree.structure(result), jax.tree.structure(tree))
        self.check(result['w'], (total((4, 2)) / hvd.size()).astype('float32'))
        self.check(result['b'][0], (total((), 'bfloat16') / hvd.size()).astype(jnp.bfloat16))

    def test_a_pytree_of_mixed_dtypes_is_averaged_as_a_group(self):
        self.check_tree(hvd.allreduce)

    def test_a_pytree_of_mixed_dtypes_is_averaged_as_a_group_within_jit(self):
        self.check_tree(jax.jit(hvd.allreduce))

    def test_numpys_arrays_stay_numpys_and_numbers_become_jaxs(self):
        result = hvd.allreduce({'a': values(hvd.rank(), (3,), 'float64'), 'b': 2.5})
        self.assertIsInstance(result['a'], np.ndarray)
        self.check(result['a'], total((3,), 'float64') / hvd.size())
        self.assertIsInstance(result['b'], jax.Array)
        self.assertEqual(result['b'], 2.5)

    def test_an_empty_pytree_is_returned(self):
        self.assertEqual(hvd.allreduce({}), {})

    def test_large_arrays_within_jit(self):
        # JAX's ordered callbacks with data hang with such an array.
        count = 1 << 20
        reduce = jax.jit(lambda array: hvd.allreduce(array, op=hvd.Sum))
        for _ in range(3):
            result = reduce(jnp.full((count,), 1.0 + hvd.rank()))
        self.assertEqual(result[-1], hvd.size() * (hvd.size() + 1) / 2)

    def test_collectives_of_several_programs_and_of_the_script_keep_their_order(self):
        double = jax.jit(lambda array: hvd.allreduce(hvd.allreduce(array, op=hvd.Sum)))
        other = jax.jit(lambda array: hvd.allreduce(array - 1, op=hvd.Sum))
        for _ in range(5):
            first, second = double(mine((5,))), other(mine((5,)))
            third = hvd.allreduce(mine((5,)), op=hvd.Sum)
            self.check(first, total((5,)))
            self.check(second, total((5,)) - hvd.size())
            self.check(third, total((5,)))

    def test_loops_of_a_program_call_collectives(self):
        def step(carry, row):
            return carry + hvd.allreduce(row, op=hvd.Sum), None
        result, _ = jax.jit(lambda rows: jax.lax.scan(step, jnp.zeros(2), rows))(mine((4, 2)))
        self.check(result, total((4, 2)).sum(0))

    def test_compression_keeps_the_dtype(self):
        for compression in (hvd.Compression.fp16, hvd.Compression.bf16):
            for function in (hvd.allreduce, jax.jit(hvd.allreduce, static_argnames=('op', 'compression'))):
                self.check(function(mine((4,)), op=hvd.Sum, compression=compression), total((4,)))


class Others(Case):

    def test_allgather_concatenates_different_numbers_of_rows(self):
        self.check(hvd.allgather(mine((hvd.rank() + 1, 2))),
                   np.concatenate([values(rank, (rank + 1, 2)) for rank in range(hvd.size())]))

    def test_allgather_within_jit(self):
        self.check(jax.jit(hvd.allgather)({'x': mine((3, 2))})['x'],
                   np.concatenate([values(rank, (3, 2)) for rank in range(hvd.size())]))

    def test_broadcast_gives_the_arrays_of_the_root(self):
        root = hvd.size() - 1
        for function in (hvd.broadcast, jax.jit(hvd.broadcast, static_argnums=1)):
            result = function({'a': mine((3,)), 'b': mine((2, 2), 'int32')}, root)
            self.check(result['a'], values(root, (3,)))
            self.check(result['b'], values(root, (2, 2), 'int32'))

    def test_broadcast_parameters_leaves_the_arguments_as_they_are(self):
        own = mine((3,))
        self.check(hvd.broadcast_parameters([own])[0], values(0, (3,)))
        self.check(own, values(hvd.rank(), (3,)))

    def test_objects(self):
        self.assertEqual(hvd.broadcast_object({'rank': hvd.rank()}), {'rank': 0})
        self.assertEqual(hvd.allgather_object(hvd.rank()), list(range(hvd.size())))

    def test_barrier(self):
        before = time.monotonic()
        hvd.barrier()
        moments = hvd.allgather_object((before, time.monotonic()))
        self.assertLessEqual(max(begin for begin, _ in moments), min(end for _, end in moments))


class Refused(Case):

    def test_dtypes_that_libhvd_lacks(self):
        for function in (hvd.allreduce, jax.jit(hvd.allreduce)):
            with self.assertRaisesRegex(ValueError, r"leaf \['w'\] has the dtype complex64.*cast it"):
                function({'w': jnp.ones(2, jnp.complex64)})

    def test_leaves_that_are_no_arrays(self):
        with self.assertRaisesRegex(TypeError, r"leaf \['w'\] is of type str.*broadcast_object"):
            hvd.broadcast_parameters({'w': 'text'})

    def test_derivatives_and_batches(self):
        for transform in (jax.grad, jax.vmap):
            with self.assertRaisesRegex(NotImplementedError, 'neither derivatives .* nor batches'):
                transform(lambda x: hvd.allreduce(x).sum())(jnp.ones((2,)))

    def test_gathered_scalars(self):
        for function in (hvd.allgather, jax.jit(hvd.allgather)):
            with self.assertRaisesRegex(ValueError, 'no rows to concatenate'):
                function(jnp.ones(()))

    def test_wrong_arguments_are_refused_while_jax_traces(self):
        with self.assertRaisesRegex(ValueError, 'op is 9'):
            jax.jit(lambda x: hvd.allreduce(x, op=9))(1.0)

    def test_ranks_that_disagree(self):
        if hvd.size() == 1:
            self.skipTest('needs two ranks')
        array = jnp.ones((hvd.rank() + 1,))
        with self.assertRaisesRegex(hvd.HorovodInternalError, 'differ'):
            hvd.allreduce(array, name='differ')
        with self.assertRaisesRegex(jax.errors.JaxRuntimeError, 'HorovodInternalError|RanksDisagree'):
            jax.jit(lambda x: hvd.allreduce(x, name='differ'))(array).block_until_ready()
