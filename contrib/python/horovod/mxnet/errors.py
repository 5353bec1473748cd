# SPDX-License-Identifier: Apache-2.0
"""The exceptions of collectives on MXNet's arrays. They are derived from MXNetError, which scripts
catch, and from the exceptions of the other front ends."""

import functools

import mxnet as mx
from mxnet.base import MXNetError

from horovod.common.exceptions import HorovodInternalError


class CollectiveError(MXNetError, HorovodInternalError):
    """A collective failed: ranks disagree, a rank died, or the job was shut down."""


class ArgumentError(MXNetError, ValueError):
    """The arguments of a collective are wrong."""


# contrib/python/native/mxnet/operation.c makes MXNet raise them by these names.
mx.error.register('HorovodInternalError', CollectiveError)
mx.error.register('HorovodArgumentError', ArgumentError)


def raises_mxnets(function):
    """Decorator: turns HorovodInternalError and ValueError of the function into the exceptions of
    this module."""
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
