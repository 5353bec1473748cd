# SPDX-License-Identifier: Apache-2.0
"""One module for each collective. ``horovod.tensorflow.mpi_ops`` has the functions of all of
them."""
