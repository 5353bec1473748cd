# SPDX-License-Identifier: Apache-2.0
"""Collectives as calls of a compiled program.

A call waits until its collective has ended, and holds a thread of JAX. If two ranks made their calls
in different orders, they could wait for each other for ever. So all calls of a process are ordered,
across programs, too:

    begin (ordered) ──> collective ──> end (ordered) ──> begin of the next

begin and end are ordered callbacks of JAX without data. The collective itself is a buffer callback,
which reads and writes the memory of the program. An ordered callback with data would be simpler, but
JAX copies its arguments in the threads that also wait for the callback: with large arrays and few
cores it never returns.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback
from jax.experimental.buffer_callback import buffer_callback

_SIGN = jax.ShapeDtypeStruct((), jnp.int32)  # orders two calls; its value has no meaning


def _begin():
    return np.int32(0)


def _end(_):
    pass


def add_call(collective, leaves, shapes):
    """Adds ``collective(sources, targets)`` to the program that JAX traces; returns the results.
    ``targets`` will be memory for results of these shapes. Raises NotImplementedError if JAX
    computes on an accelerator, or within jax.grad and jax.vmap."""
    if jax.default_backend() != 'cpu':
        raise NotImplementedError(
            f'a program that JAX compiles for {jax.default_backend()} cannot call hvd: use the '
            'collectives of JAX there (hvd.initialize()), or call hvd outside jax.jit')

    def call(_, outputs, begin, *inputs):
        *targets, _ = map(np.asarray, outputs)
        collective([np.asarray(each) for each in inputs], targets)

    results = [jax.ShapeDtypeStruct(shape, leaf.dtype) for shape, leaf in zip(shapes, leaves)]
    begin = io_callback(_begin, _SIGN, ordered=True)
    try:
        *results, end = buffer_callback(call, [*results, _SIGN], has_side_effect=True)(begin,
                                                                                      *leaves)
    except (ValueError, NotImplementedError) as error:
        raise NotImplementedError(
            'the collectives of hvd have neither derivatives (jax.grad) nor batches (jax.vmap): '
            f'call them outside, for example on the gradients; JAX says: {error}') from None
    io_callback(_end, None, end, ordered=True)
    return results
