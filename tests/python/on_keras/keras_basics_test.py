# SPDX-License-Identifier: Apache-2.0
"""init, shutdown and ranks with Keras."""

from basics_cases import Basics
from keras_case import Case, hvd


class OfKeras(Basics, Case):
    hvd = hvd
