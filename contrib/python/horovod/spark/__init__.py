# SPDX-License-Identifier: Apache-2.0
"""Ranks in Spark's tasks: ``horovod.spark.run``."""

from horovod.spark.runner import run, run_elastic

__all__ = ['run', 'run_elastic']
