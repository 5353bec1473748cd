# SPDX-License-Identifier: Apache-2.0
"""Converts objects to text and back."""

import base64

from horovod.common.objects import pickle


def dumps_base64(obj, to_ascii=True):
    """Returns the pickled object in base64, as str or, without to_ascii, as bytes."""
    encoded = base64.b64encode(pickle.dumps(obj))
    return encoded.decode('ascii') if to_ascii else encoded


def loads_base64(encoded):
    """Returns the object of dumps_base64. Unpickling can run code: use this only for trusted
    text."""
    return pickle.loads(base64.b64decode(encoded))
