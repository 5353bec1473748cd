# SPDX-License-Identifier: Apache-2.0
"""JAX's and NumPy's arrays as libhvd needs them: dense row-major memory of the host.

An array on an accelerator is copied to the host, and the result back to its devices.
"""

import ctypes
import numbers

import jax
import jax.numpy as jnp
import numpy as np

from horovod.common.library import DEVICE_CPU, DTYPES, lib


def is_traced(leaf):
    """Whether JAX is tracing the function that computes this array: it has no value yet."""
    return isinstance(leaf, jax.core.Tracer)


def flatten(tree, operation):
    """Returns the arrays of a pytree, and its structure. TypeError or ValueError, which names the
    operation and the path in the tree, for a leaf that libhvd cannot send."""
    paths, structure = jax.tree_util.tree_flatten_with_path(tree)
    return [_checked(leaf, f'{operation}: the leaf {jax.tree_util.keystr(path) or "itself"}')
            for path, leaf in paths], structure


def _checked(leaf, where):
    if isinstance(leaf, (numbers.Number, np.generic)):
        leaf = jnp.asarray(leaf)
    if not isinstance(leaf, (jax.Array, np.ndarray)):
        raise TypeError(f'{where} is of type {type(leaf).__name__}: expected an array or a number; '
                        'hvd.broadcast_object() and hvd.allgather_object() send other objects')
    if leaf.dtype.name not in DTYPES:
        raise ValueError(f'{where} has the dtype {leaf.dtype.name}, which hvd cannot send: cast it '
                         f'to one of {", ".join(DTYPES)}')
    if isinstance(leaf, jax.Array) and not is_traced(leaf) and not leaf.is_fully_addressable:
        raise ValueError(f'{where} is spread over several processes, which only the collectives of '
                         'JAX itself can reduce: expected an array of this process')
    return leaf


def on_host(array):
    """Returns the array as a row-major NumPy array, after JAX has computed it."""
    return np.asarray(array, order='C')


def placed(result, leaf):
    """Returns a NumPy array as an array of the leaf's kind, on the leaf's devices."""
    return jax.device_put(result, leaf.sharding) if isinstance(leaf, jax.Array) else result


def describe(name, source, target=None, wire=0):
    """Returns the description of a NumPy array for horovod.common.requests. Without a target,
    libhvd allocates the output."""
    return (name, source.ctypes.data, None if target is None else target.ctypes.data, source.shape,
            DTYPES[source.dtype.name], DEVICE_CPU, wire)


def taken(request, index, source):
    """Returns output ``index``, which libhvd allocated, as a new NumPy array."""
    address, rows = request.take(index)
    result = np.empty((rows, *source.shape[1:]), source.dtype)
    if address:
        try:
            ctypes.memmove(result.ctypes.data, address, result.nbytes)
        finally:
            lib.hvd_free(address)
    return result
