# SPDX-License-Identifier: Apache-2.0
"""Registers the backend "hvd" of torch.distributed, for ``init_process_group('hvd')``.

torch calls ``register`` through an entry point of this package: since 2.14 when a script asks for
the backend, since 2.5 whenever torch is imported. For that reason this module imports the rest of
hvd only when a group is created. With older releases the script must import
horovod.torch.distributed.
"""

NAME = 'hvd'


def _create(options, _=None):
    from horovod.torch.distributed.group import make
    return make(options)


def register():
    """Adds the backend to torch. Further calls have no effect."""
    import torch.distributed as dist
    if not dist.is_available() or hasattr(dist.Backend, NAME.upper()):
        return
    try:
        dist.Backend.register_backend(NAME, _create, extended_api=True, devices=['cpu', 'cuda'])
    except TypeError:  # before torch 2.1 there is no argument devices
        dist.Backend.register_backend(NAME, _create, extended_api=True)
