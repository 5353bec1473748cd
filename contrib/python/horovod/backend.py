# SPDX-License-Identifier: Apache-2.0
"""Tells torch.distributed of its backend "hvd": ``torch.distributed.init_process_group('hvd')``.

torch finds ``register`` by the entry points of this package: from 2.14 on when a script asks for the
backend, from 2.5 on whenever torch is imported. So nothing is loaded here before a group is made.
For older releases the script imports horovod.torch.distributed.
"""

NAME = 'hvd'


def _create(options, _=None):
    from horovod.torch.distributed.group import make
    return make(options)


def register():
    """Further calls have no effect."""
    import torch.distributed as dist
    if not dist.is_available() or hasattr(dist.Backend, NAME.upper()):
        return
    try:
        dist.Backend.register_backend(NAME, _create, extended_api=True, devices=['cpu', 'cuda'])
    except TypeError:  # before 2.1 no devices are asked for
        dist.Backend.register_backend(NAME, _create, extended_api=True)
