# SPDX-License-Identifier: Apache-2.0
"""The backend "hvd" of torch.distributed, so that DDP, FSDP and libraries on top of them use
libhvd.

The import of this module registers the backend. Only torch before 2.5 needs the import; newer
releases find the backend without it.
"""

from horovod.backend import register

register()
