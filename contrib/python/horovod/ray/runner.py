# SPDX-License-Identifier: Apache-2.0
"""Starts ranks in Ray's actors, and calls functions on all of them.

An executor is elastic if it has ``min_workers``: when a worker dies, the whole call starts again from
the beginning of the function, with as many workers as Ray then has room for. The function continues
from the checkpoint that it has written. Ranks neither join nor leave while the function runs.
"""

import dataclasses
import functools
import os
import secrets
import time
from typing import Optional

import ray

from horovod.common.exceptions import HorovodInternalError
from horovod.ray.strategy import Placement
from horovod.ray.worker import BaseHorovodWorker
from horovod.runner import numbering
from horovod.runner.common.util.timeout import Timeout
from horovod.runner.interfaces import listed

# After the first failure of a rank, the seconds that the others have to end. They learn of it in
# their next collective; a rank that computes longer is killed.
_GRACE_S = 10


@dataclasses.dataclass
class MiniSettings:
    """The settings of an executor, made by ``RayExecutor.create_settings``."""
    nics: Optional[set] = None
    verbose: int = 1
    key: Optional[str] = None  # without effect: each store has a key of its own
    ssh_port: Optional[int] = None  # without effect: Ray starts the ranks
    ssh_identity_file: Optional[str] = None
    timeout_s: int = 30
    placement_group_timeout_s: int = 100
    elastic: bool = False

    @property
    def start_timeout(self):
        """Returns the time limit of ``hvd.init()``, from now on."""
        return Timeout(self.timeout_s, 'Timed out waiting for {activity}')


class WorkerDiedError(RuntimeError):
    """A worker has died, so its executor has none any more."""


@dataclasses.dataclass
class _Elastic:
    """How an elastic executor starts again. ``resets`` counts how often it did."""
    min_workers: int
    max_workers: Optional[int] = None
    reset_limit: Optional[int] = None
    timeout_s: float = 600
    resets: int = 0

    def may_reset(self):
        """Counts a reset, if another one is allowed."""
        if self.reset_limit is not None and self.resets >= self.reset_limit:
            return False
        self.resets += 1
        return True

    def count(self, params, deadline, most):
        """Waits until Ray has room for the fewest workers; returns how many to start. most: the
        number for which there may be room beside others that use the cluster; None: all."""
        while True:
            room = slots(params)
            if room >= self.min_workers:
                room = min(room, self.max_workers or room)
                return room if most is None else max(self.min_workers, min(room, most))
            if time.monotonic() > deadline:
                raise TimeoutError(f'Ray has room for {room} workers, but min_workers is '
                                   f'{self.min_workers}, after {self.timeout_s} s: add nodes, or '
                                   'raise elastic_timeout')
            time.sleep(1)


@dataclasses.dataclass
class _Params:
    """The arguments of an executor that say which workers it starts."""
    num_workers: Optional[int] = None
    num_hosts: Optional[int] = None
    num_workers_per_host: Optional[int] = 1
    cpus_per_worker: int = 1
    use_gpu: bool = False
    gpus_per_worker: Optional[int] = None
    use_current_placement_group: bool = True

    def __post_init__(self):
        if self.gpus_per_worker and not self.use_gpu:
            raise ValueError(f'gpus_per_worker is {self.gpus_per_worker}, but use_gpu is False: '
                             'set use_gpu=True')
        if self.use_gpu and self.gpus_per_worker is not None and self.gpus_per_worker < 1:
            raise ValueError(f'gpus_per_worker is {self.gpus_per_worker}: expected 1 or more')
        self.gpus_per_worker = self.gpus_per_worker or int(self.use_gpu)
        if bool(self.num_workers) == bool(self.num_hosts):
            raise ValueError(f'num_workers is {self.num_workers} and num_hosts is '
                             f'{self.num_hosts}: set one of them')


def _room(params, has):
    """Returns for how many workers these resources suffice."""
    rooms = [has.get('CPU', 0) // params.cpus_per_worker] if params.cpus_per_worker else []
    rooms += [has.get('GPU', 0) // params.gpus_per_worker] if params.use_gpu else []
    return int(min(rooms))


def slots(params):
    """Returns for how many workers the living nodes of the cluster have CPUs and GPUs, in use or
    not."""
    return sum(_room(params, node['Resources']) for node in ray.nodes() if node['Alive'])


class Coordinator:
    """Collects the node of each rank, and numbers the ranks of a node."""

    def __init__(self, settings):
        self.settings = settings
        self.hostnames = set()
        self.node_id_by_rank = {}

    @property
    def world_size(self):
        return sum(map(len, self.node_id_by_rank.values()))

    @property
    def node_id_string(self):
        return ','.join(f'{node}:{len(ranks)}' for node, ranks in self.node_id_by_rank.items())

    def register(self, hostname, node_id, world_rank):
        """Adds a rank, on the node with this text."""
        self.hostnames.add(hostname)
        self.node_id_by_rank.setdefault(node_id, []).append(world_rank)

    def finalize_registration(self):
        """Returns {rank: {variable: number on the node}}."""
        node_of = {rank: node for node, ranks in self.node_id_by_rank.items() for rank in ranks}
        numbered = numbering.variables([node_of[rank] for rank in sorted(node_of)])
        return {rank: {name: int(number) for name, number in variables.items()
                       if name not in ('HOROVOD_RANK', 'HOROVOD_SIZE')}
                for rank, variables in zip(sorted(node_of), numbered)}


class RayExecutor:
    """Ranks in Ray's actors: ``start`` starts them, ``run`` and ``execute`` call functions on all
    of them, ``shutdown`` ends them. The functions call ``hvd.init()`` without arguments.

    settings: the result of create_settings().
    num_workers: the number of ranks, packed on few nodes; or
    num_hosts, num_workers_per_host: the number of nodes, and of ranks on each.
    cpus_per_worker: the CPUs that Ray reserves for a rank.
    use_gpu, gpus_per_worker: whether ranks have GPUs, and how many; the default is one. Each rank
        sees the GPUs of all ranks on its node, and ``hvd.local_rank()`` is the index of its own.
    use_current_placement_group: in an actor or task that runs in a placement group, place the
        ranks there.
    min_workers, max_workers: makes the executor elastic, in place of num_workers: it starts as many
        workers as the cluster has room for, and starts again if one dies.
    reset_limit, elastic_timeout: how often an elastic executor starts again, and how many seconds
        it waits for the resources of min_workers.
    cooldown_range, override_discovery: without effect, because Ray itself chooses the nodes.
    """

    @classmethod
    def create_settings(cls, timeout_s=30, ssh_identity_file=None, ssh_str=None,
                        placement_group_timeout_s=100, nics=None):
        """Returns settings for an executor.

        timeout_s: how many seconds ``hvd.init()`` waits for the other ranks.
        placement_group_timeout_s: how many seconds ``start`` waits for the resources.
        nics: names of network interfaces, which the ranks use; each node has them.
        ssh_identity_file, ssh_str: without effect, because Ray starts the ranks.
        """
        del ssh_str
        return MiniSettings(nics, timeout_s=timeout_s, ssh_identity_file=ssh_identity_file,
                            placement_group_timeout_s=placement_group_timeout_s)

    def __init__(self, settings, num_workers=None, num_hosts=None, num_workers_per_host=1,
                 cpus_per_worker=1, use_gpu=False, gpus_per_worker=None,
                 use_current_placement_group=True, min_workers=None, max_workers=None,
                 reset_limit=None, cooldown_range=None, elastic_timeout=600,
                 override_discovery=True):
        if max_workers and not min_workers:
            raise ValueError(f'max_workers is {max_workers}, but min_workers is {min_workers}: an '
                             'elastic executor needs both')
        if min_workers and num_workers:
            raise ValueError(f'num_workers is {num_workers} and min_workers is {min_workers}: set '
                             'one of them')
        self.settings = settings
        self._elastic = None
        if min_workers:
            self._elastic = _Elastic(min_workers, max_workers, reset_limit, elastic_timeout)
            num_workers = min_workers
        self.params = _Params(num_workers, num_hosts, num_workers_per_host, cpus_per_worker,
                              use_gpu, gpus_per_worker, use_current_placement_group)
        self._placement = None
        self._workers = []  # in rank order
        self._hosts = []  # the host names of the workers
        self._start_again = None  # start() with the arguments of its last call
        self._why_none = 'start() was not called'

    def start(self, executable_cls=None, executable_args=None, executable_kwargs=None,
              extra_env_vars=None):
        """Starts the workers. TimeoutError if Ray does not have the resources in time.

        executable_cls: a class of which each worker makes an object, for ``execute``, from the
            arguments executable_args and executable_kwargs.
        extra_env_vars: variables of the ranks.
        """
        if self._workers:
            raise RuntimeError('this executor is running: call shutdown() before start()')
        self._start_again = functools.partial(self.start, executable_cls, executable_args,
                                              executable_kwargs, extra_env_vars)
        start = functools.partial(self._start, executable_cls, executable_args,
                                  executable_kwargs, extra_env_vars or {})
        if not self._elastic:
            return start()
        deadline = time.monotonic() + self._elastic.timeout_s
        most = None
        while True:
            count = self._elastic.count(self.params, deadline, most)
            self.params.num_workers = count
            try:
                return start()
            except TimeoutError:  # others use the cluster, or a node has left after the count
                if time.monotonic() > deadline:
                    raise
                most = min(_room(self.params, ray.available_resources()), count - 1)

    def _start(self, executable_cls, executable_args, executable_kwargs, extra_env_vars):
        try:
            self._placement = Placement(self.params, self.settings.placement_group_timeout_s)
            self._place_ranks(self._placement.create_workers(BaseHorovodWorker))
            self._set_variables(extra_env_vars)
            self._share_store()
            self._gather([worker.start_executable.remote(
                executable_cls, executable_args, executable_kwargs) for worker in self._workers])
        except BaseException as failure:
            self._end('start() failed')
            if _has_died(failure):
                raise WorkerDiedError('a worker died while it started: '
                                      f'{_reason(failure)}') from failure
            raise

    def _place_ranks(self, workers):
        """Waits for the workers, and numbers them: those of one node get adjacent ranks."""
        self._workers = workers
        timeout_s = self.settings.placement_group_timeout_s
        try:
            nodes = ray.get([worker.node.remote() for worker in workers], timeout=timeout_s)
        except ray.exceptions.GetTimeoutError:
            raise TimeoutError(f'Ray did not start {len(workers)} workers within {timeout_s} s: '
                               'start fewer, or raise placement_group_timeout_s') from None
        order = numbering.adjacent(nodes)
        self._workers = [workers[index] for index in order]
        self._nodes = [nodes[index] for index in order]
        self._hosts = [node.split()[0] for node in self._nodes]

    def _set_variables(self, extra):
        # The store's messages are authenticated, but not encrypted. The secret travels through Ray.
        common = {'HVD_SECRET': os.environ.get('HVD_SECRET') or secrets.token_hex(32),
                  'HVD_START_TIMEOUT': self.settings.timeout_s}
        if self.settings.nics:
            common['HVD_IFACE'] = ','.join(listed(self.settings.nics))
        numbered = numbering.variables(self._nodes)
        if self.params.use_gpu:
            gpus = ray.get([worker.get_gpu_ids.remote() for worker in self._workers])
            for own, seen in zip(numbered, numbering.visible_gpus(self._nodes, gpus)):
                own['CUDA_VISIBLE_DEVICES'] = seen
        ray.get([worker.update_env_vars.remote(
            {**common, **own, 'HOROVOD_HOSTNAME': host, **extra})
            for worker, own, host in zip(self._workers, numbered, self._hosts)])

    def _share_store(self):
        place, key = ray.get(self._workers[0].serve_store.remote())
        ray.get([worker.use_store.remote(place, key, rank, len(self._workers))
                 for rank, worker in enumerate(self._workers)])

    def execute(self, fn, callbacks=None):
        """Calls ``fn(executable)`` on all ranks; returns the list of results in rank order.
        RuntimeError, with rank, host and traceback, if it fails on one: see ``run``."""
        _refuse(callbacks)
        return self._complete(lambda: self._call(fn))

    def run(self, fn, args=None, kwargs=None, callbacks=None):
        """Calls ``fn(*args, **kwargs)`` on all ranks; returns the list of results in rank order.

        RuntimeError, with rank, host and traceback, if it fails on one or a worker dies. The others
        then have 10 seconds to end; if one does not, or a worker has died, all workers end, and
        ``start`` starts new ones.
        """
        _refuse(callbacks)
        return self._complete(lambda: self.run_remote(fn, args, kwargs))

    def run_remote(self, fn, args=None, kwargs=None):
        """Calls ``fn(*args, **kwargs)`` on all ranks without waiting; returns the list of Ray's
        references to the results in rank order."""
        args, kwargs = args or [], kwargs or {}
        return self._call(lambda _: fn(*args, **kwargs))

    def execute_single(self, fn):
        """Calls ``fn(executable)`` on rank 0 alone; returns its result."""
        return self._gather(self._call(fn, 1))[0]

    def shutdown(self):
        """Ends the workers, and gives back what Ray has reserved for them."""
        self._end('shutdown() was called')

    def _end(self, why):
        for worker in self._workers:
            ray.kill(worker)
        self._workers, self._why_none = [], why
        if self._placement:
            self._placement.remove()
            self._placement = None

    def _end_job(self, why):
        """Makes all ranks leave their job, so that the next ``hvd.init()`` starts a new one: the
        failed ranks have left it, the others have not. Ends the workers if one does not answer."""
        try:
            ray.get([worker.leave.remote() for worker in self._workers], timeout=_GRACE_S)
            self._share_store()
        except ray.exceptions.RayError:
            self._end(why)

    def _call(self, fn, count=None):
        if not self._workers:
            raise RuntimeError(f'the executor has no workers, because {self._why_none}: call '
                               'start()')
        return [worker.execute.remote(fn) for worker in self._workers[:count]]

    def _complete(self, call):
        """Makes the call, which returns references, and returns its results. Starts again if a
        worker dies and the executor is elastic."""
        has_died = False
        while True:
            try:
                if has_died:
                    self._start_again()
                return self._gather(call())
            except WorkerDiedError:
                if not (self._elastic and self._elastic.may_reset()):
                    raise
                has_died = True

    def _gather(self, references):
        """Returns the results. An interrupt, such as that of Ctrl-C, ends the workers."""
        try:
            return self._await(references)
        except KeyboardInterrupt:
            self._end('the last call was interrupted')
            raise

    def _await(self, references):
        """Returns the results. After a failure, waits for the other ranks to end."""
        waiting = {reference: rank for rank, reference in enumerate(references)}
        results, failures, deadline = {}, {}, None
        while waiting and (deadline is None or time.monotonic() < deadline):
            ready, _ = ray.wait(list(waiting), timeout=1)
            for reference in ready:
                rank = waiting.pop(reference)
                try:
                    results[rank] = ray.get(reference)
                except Exception as failure:
                    failures[rank] = failure
                    deadline = deadline or time.monotonic() + _GRACE_S
        if failures:
            self._fail(failures, list(waiting.values()))
        return [results[rank] for rank in sorted(results)]

    def _fail(self, failures, running):
        """Raises the failure that is the cause of the others: a worker that died, or the first
        exception that is not the error of a collective."""
        dead = [rank for rank, failure in failures.items() if _has_died(failure)]
        causes = [rank for rank, failure in failures.items()
                  if not isinstance(_cause(failure), HorovodInternalError)]
        rank = [*dead, *causes, *failures][0]
        failure, host = failures[rank], self._hosts[rank]
        if dead or running:
            self._end(f'rank {rank} on {host} failed')
        else:
            self._end_job(f'rank {rank} on {host} failed')
        if _has_died(failure):
            raise WorkerDiedError(f'rank {rank} on {host} died: {_reason(failure)}') from failure
        raise RuntimeError(f'rank {rank} on {host} failed: {_text(failure)}') from failure


def _refuse(callbacks):
    if callbacks:
        raise NotImplementedError('callbacks are not supported: return values from the function, '
                                  'or write them to a file on rank 0')


def _has_died(failure):
    return isinstance(failure, ray.exceptions.RayActorError)


def _reason(failure):
    """Returns Ray's text about a death in one line."""
    return ' '.join(str(failure).split()).split(' Some common causes')[0]


def _cause(failure):
    """Returns the exception that the function raised."""
    return getattr(failure, 'cause', None) or failure


def _text(failure):
    """Returns the exception in one line, and the traceback of the rank."""
    cause = _cause(failure)
    return f'{type(cause).__name__}: {cause}\n{failure}'
