# SPDX-License-Identifier: Apache-2.0
"""Base classes for the data loaders of other projects."""

from horovod.data.data_loader_base import AsyncDataLoaderMixin, BaseDataLoader
