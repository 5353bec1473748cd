# SPDX-License-Identifier: Apache-2.0
"""Loaders of batches that other projects build theirs on."""

from horovod.data.data_loader_base import AsyncDataLoaderMixin, BaseDataLoader
