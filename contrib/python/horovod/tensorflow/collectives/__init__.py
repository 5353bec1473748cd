# SPDX-License-Identifier: Apache-2.0
"""A module for each collective. ``horovod.tensorflow.mpi_ops`` collects their functions."""
