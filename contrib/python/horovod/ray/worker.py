# SPDX-License-Identifier: Apache-2.0
"""The Ray actor of one rank."""

import os
import socket

import ray

from horovod.common import basics, stores
from horovod.runner import numbering
from horovod.runner.interfaces import chosen_address
from horovod.runner.rank_store import RankStore, StoreServer


class BaseHorovodWorker:
    """One rank. ``executable`` is the object that ``start_executable`` made, None without it."""

    executable = None
    _server = None

    def node_id(self):
        """The number of this actor's node in Ray."""
        return ray.get_runtime_context().get_node_id()

    def hostname(self):
        return socket.gethostname()

    def node(self):
        """The text that stands for this node in horovod.runner.numbering."""
        return numbering.this_node()

    def get_gpu_ids(self):
        """The numbers of the GPUs that Ray has given to this actor."""
        return ray.get_gpu_ids()

    def update_env_vars(self, env_vars):
        """Sets variables of this process."""
        os.environ.update({name: str(value) for name, value in env_vars.items()})

    def env_vars(self):
        """The variables of this process."""
        return dict(os.environ)

    def serve_store(self):
        """Starts the store by which the ranks find each other; returns its address and key. It
        ends with this actor, or when the next one starts."""
        if self._server:
            self._server.stop()
        self._server = StoreServer(chosen_address())
        self._server.start()
        host = chosen_address() or ray.util.get_node_ip_address()
        return (host, self._server.port), self._server.key

    def use_store(self, place, key, rank, size):
        """Makes ``hvd.init()`` in this process join the job of this store."""
        stores.keep(stores.Place(RankStore(place, key), rank, size))

    def leave(self):
        """Leaves the job, if this process is in one: the next ``hvd.init()`` starts a new one."""
        if basics.is_initialized():
            basics.leave_after(RuntimeError('another rank has failed'))

    def start_executable(self, executable_cls=None, executable_args=None, executable_kwargs=None):
        """Makes the object that ``execute`` hands to functions."""
        if executable_cls:
            self.execute(lambda _: setattr(self, 'executable', executable_cls(
                *(executable_args or []), **(executable_kwargs or {}))))

    def execute(self, func):
        """Returns ``func(executable)``. After an exception this rank leaves the job: the others
        would wait for it, because its process lives on."""
        try:
            return func(self.executable)
        except (Exception, SystemExit) as failure:
            if basics.is_initialized():
                basics.leave_after(failure)
            if isinstance(failure, SystemExit):  # would end this actor, as if it had died
                raise RuntimeError(f'SystemExit: {failure}') from failure
            raise
