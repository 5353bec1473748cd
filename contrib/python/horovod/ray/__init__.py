# SPDX-License-Identifier: Apache-2.0
"""Ranks in Ray's actors: ``horovod.ray.RayExecutor``."""

from horovod.ray.elastic import ElasticRayExecutor
from horovod.ray.runner import RayExecutor
from horovod.ray.worker import BaseHorovodWorker

__all__ = ['BaseHorovodWorker', 'ElasticRayExecutor', 'RayExecutor']
