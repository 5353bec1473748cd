# SPDX-License-Identifier: Apache-2.0
"""The life of the job with Keras."""

from basics_cases import Basics
from keras_case import Case, hvd


class OfKeras(Basics, Case):
    hvd = hvd
