# SPDX-License-Identifier: Apache-2.0
"""The backend "hvd" of torch.distributed: DDP, FSDP and what is built on them, over libhvd.

Importing this makes it known to torch, which otherwise finds it by itself from release 2.5 on.
"""

from horovod.backend import register

register()
