# SPDX-License-Identifier: Apache-2.0
"""hvd.initialize() starts JAX's own collectives on the ranks; hvd's results equal them. It has to
come before all computations, so this module is the first of its job."""

import jax
import jax.numpy as jnp
import numpy as np

import horovod.jax as hvd
from jax_case import Case


class Distributed(Case):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        hvd.initialize()

    @classmethod
    def tearDownClass(cls):
        jax.distributed.shutdown()

    def test_jax_has_the_ranks_of_hvd(self):
        self.assertEqual(jax.process_index(), hvd.rank())
        self.assertEqual(jax.process_count(), hvd.size())

    def test_an_allreduce_equals_psum(self):
        devices = np.array([each for each in jax.devices()])
        mesh = jax.sharding.Mesh(devices, 'ranks')
        spec = jax.sharding.PartitionSpec('ranks')
        own = np.random.RandomState(hvd.rank()).standard_normal((1, 1000)).astype('float32')
        spread = jax.make_array_from_process_local_data(jax.sharding.NamedSharding(mesh, spec), own)
        psum = jax.jit(jax.shard_map(lambda rows: jax.lax.psum(rows, 'ranks'), mesh=mesh,
                                     in_specs=spec, out_specs=jax.sharding.PartitionSpec()))
        expected = np.asarray(psum(spread).addressable_data(0))
        for function in (hvd.allreduce, jax.jit(hvd.allreduce, static_argnames='op')):
            result = function(jnp.asarray(own), op=hvd.Sum)
            np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-6)
        if hvd.size() > 1:
            with self.assertRaisesRegex(ValueError, 'spread over several processes'):
                hvd.allreduce(spread)
