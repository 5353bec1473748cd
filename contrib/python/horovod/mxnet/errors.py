# SPDX-License-Identifier: Apache-2.0
"""The errors of collectives on MXNet's arrays. They are MXNet's own errors, which scripts catch,
and also those of the other front ends."""

import functools

import mxnet as mx
from mxnet.base import MXNetError

from horovod.common.exceptions import HorovodInternalError


class CollectiveError(MXNetError, HorovodInternalError):
    """A collective failed: ranks disagree, a rank died, or the job was shut down."""


class ArgumentError(MXNetError, ValueError):
    """A collective was refused because of its arguments."""


# The names by which contrib/python/native/mxnet/operation.c has MXNet raise them.
mx.error.register('HorovodInternalError', CollectiveError)
mx.error.register('HorovodArgumentError', ArgumentError)


def raises_mxnets(function):
    """Wraps the function so that it raises these errors instead of their base classes."""
    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except MXNetError:
            raise
        except HorovodInternalError as error:
            raise CollectiveError(str(error)) from None
        except ValueError as error:
            raise ArgumentError(str(error)) from None

    return call
