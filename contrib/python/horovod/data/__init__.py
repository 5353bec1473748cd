# SPDX-License-Identifier: Apache-2.0
"""Data loaders on which other projects build theirs."""

from horovod.data.data_loader_base import AsyncDataLoaderMixin, BaseDataLoader
