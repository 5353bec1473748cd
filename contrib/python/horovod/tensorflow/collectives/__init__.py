# SPDX-License-Identifier: Apache-2.0
"""One collective a module; ``horovod.tensorflow.mpi_ops`` collects what they offer."""
