# SPDX-License-Identifier: Apache-2.0
"""send and recv of a process group. Arguments that are ranks count within the group."""

from ctypes import c_int64

from horovod.common.library import ANY_SOURCE, lib, quick
from horovod.torch.collectives.tensors import usable
from horovod.torch.distributed.memory import Memory, seen, write
from horovod.torch.dynamo import uncompiled


@uncompiled
class Messages:
    """Sends and receives of a group, as a mix-in; Collectives.begin sets ``calls`` and
    ``ranks``."""

    def send(self, tensors, dst, tag=0):
        [tensor] = tensors
        elements = seen(usable(tensor))
        return self.calls.start_message(
            f'send to {dst} of the group, tag {tag}', quick.send_start, Memory(elements, elements),
            (self.ranks[dst], c_int64(tag), self.calls.set_id), [tensor])

    def recv(self, tensors, src, tag=0):
        return self._receive(tensors, self.ranks[src], tag, f'receive from {src} of the group')

    def recv_anysource(self, tensors, tag=0, tell=None):
        """Receives from any rank. ``tell``: a function to call with the sender's rank when the
        message has arrived, or None."""
        return self._receive(tensors, ANY_SOURCE, tag, 'receive from any rank of the group', tell)

    def _receive(self, tensors, source, tag, what, tell=None):
        [tensor] = tensors
        dense = usable(tensor)
        elements = seen(dense)

        def finish():
            work.source = self.ranks.index(lib.hvd_request_source(work.pointer()))
            if dense is not tensor:
                write(tensor, dense)
            if tell is not None:
                tell(work.source)

        work = self.calls.start_message(
            f'{what}, tag {tag}', quick.recv_start, Memory(elements, elements),
            (source, c_int64(tag), self.calls.set_id), [tensor], finish)
        return work
