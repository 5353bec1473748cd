# SPDX-License-Identifier: Apache-2.0
"""Starts ranks in the tasks of a Spark job, and calls a function on all of them.

The tasks are one barrier stage, so Spark starts all of them or none. Each keeps a connection to the
driver while its rank runs: its end without an answer is the death of the rank.
"""

import contextlib
import functools
import itertools
import os
import pickle
import secrets
import sys
import threading
import time

import pyspark

from horovod.common.arguments import wrong_type
from horovod.runner import numbering
from horovod.runner.interfaces import first_address, listed
from horovod.runner.keyed_server import KeyedServer
from horovod.runner.rank_store import StoreServer
from horovod.spark.rank import Start, run_task

# After the first failure of a rank, the seconds that the others have to end. They learn of it in
# their next collective; the tasks of ranks that compute longer are cancelled.
_GRACE_S = 10
_CANCEL_S = 60  # how long Spark may take to end the tasks of a job

_numbers = itertools.count()


class _Output:
    """Prints the lines of the ranks, each with its rank, as ``[0]<stdout>:``. Lines that cannot be
    printed are lost: that is no reason to end a training."""

    def __init__(self, stdout, stderr, has_time):
        self._streams = {'stdout': stdout or sys.stdout, 'stderr': stderr or sys.stderr}
        self._has_time = has_time
        self._parts = {}  # {(rank, stream): a line without its end}
        self._lock = threading.Lock()

    def write(self, rank, name, text):
        with self._lock:
            *lines, rest = (self._parts.get((rank, name), '') + text).split('\n')
            self._parts[rank, name] = rest
            for line in lines:
                when = f'{time.ctime()}' if self._has_time else ''
                with contextlib.suppress(OSError, ValueError):  # closed, or not of its encoding
                    self._streams[name].write(f'{when}[{rank}]<{name}>:{line}\n')

    def finish(self, rank):
        """Prints the last line of a rank if it has no end."""
        for name in self._streams:
            if self._parts.get((rank, name)):
                self.write(rank, name, '\n')


class _Run:
    """The driver's side of the tasks."""

    def __init__(self, size, variables, output, host, address):
        """Listens at ``address``; the tasks connect to ``host``."""
        self._size, self._variables, self._output = size, variables, output
        self._tasks = {}  # {index: (node, gpus)}
        self._starts = {}  # {index: Start}
        self._answers = {}  # {rank: last message}, in the order of their arrival
        self._hosts = {}  # {rank: host}
        self._failed_at = None  # when the first rank failed
        self._has_ended = False
        self._changed = threading.Condition()
        self._store = StoreServer(address)
        self._server = KeyedServer(address, self._talk)
        self._store_place = host, self._store.port
        self.store_key = self._store.key
        self.place, self.key = (host, self._server.port), self._server.key

    def __enter__(self):
        self._store.start()
        self._server.start()
        return self

    def __exit__(self, *failure):
        self.end()
        self._server.stop()
        self._store.stop()

    def _talk(self, channel):
        index, node, gpus = channel.recv()
        with self._changed:
            if self._has_ended or index in self._tasks:  # Spark starts a failed stage again
                channel.send(None)
                self._failed_at = self._failed_at or time.monotonic()
                self._changed.notify_all()
                return
            self._tasks[index] = node, gpus
            if len(self._tasks) == self._size:
                self._number_ranks()
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._starts or self._has_ended)
            start = self._starts.get(index)
        channel.send(start)
        if start is not None:
            self._listen(channel, start.rank)

    def _number_ranks(self):
        """Gives adjacent ranks to the tasks of one node."""
        nodes, gpus = zip(*(self._tasks[index] for index in range(self._size)))
        order = numbering.adjacent(nodes)
        nodes, gpus = [nodes[index] for index in order], [gpus[index] for index in order]
        numbered = numbering.variables(nodes)
        for own, seen in zip(numbered, numbering.visible_gpus(nodes, gpus)):
            own.update({'CUDA_VISIBLE_DEVICES': seen} if seen else {})
        for rank, index in enumerate(order):
            self._hosts[rank] = nodes[rank].split()[0]
            variables = {**numbered[rank], 'HOROVOD_HOSTNAME': self._hosts[rank],
                         **self._variables}
            self._starts[index] = Start(rank, self._size, variables, self._store_place)

    def _listen(self, channel, rank):
        try:
            while True:
                kind, *rest = channel.recv()
                if kind in ('result', 'failure'):
                    break
                self._output.write(rank, kind, *rest)
        except (EOFError, OSError):
            kind, rest = 'death', []
        self._output.finish(rank)
        with self._changed:
            self._answers[rank] = kind, *rest
            if kind != 'result':
                self._failed_at = self._failed_at or time.monotonic()
            self._changed.notify_all()

    def end(self):
        """Refuses all later tasks."""
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    def note_end_of_job(self):
        """Makes the waits return after Spark's job has ended."""
        with self._changed:
            self._failed_at = self._failed_at or time.monotonic()
            self._changed.notify_all()

    def await_start(self, timeout_s):
        """Returns how many tasks have started: all, or fewer after the time or a failure."""
        with self._changed:
            self._changed.wait_for(lambda: self._starts or self._failed_at, timeout_s)
            return len(self._tasks)

    def await_end(self):
        """Returns whether all ranks have given their results. After a failure, waits for the others
        to end."""
        def is_over():
            return len(self._answers) == self._size

        with self._changed:
            self._changed.wait_for(lambda: is_over() or self._failed_at)
            self._changed.wait_for(is_over, _GRACE_S)
            return is_over() and all(kind == 'result' for kind, *_ in self._answers.values())

    def results(self):
        return [pickle.loads(self._answers[rank][1]) for rank in range(self._size)]

    def failure(self):
        """Returns the text of the failure that caused the others: the first exception that is not
        the error of a collective, or else a rank that died. None if no rank has failed."""
        failed = [(rank, *answer) for rank, answer in self._answers.items()
                  if answer[0] != 'result']
        dead = [each for each in failed if each[1] == 'death']
        causes = [each for each in failed if each[1] == 'failure' and not each[3]]
        for rank, kind, *rest in [*causes, *dead, *failed][:1]:
            if kind == 'death':
                return (f'rank {rank} on {self._hosts[rank]} died: Spark has lost its Python '
                        'process or its executor; see the log of the executor')
            return f'rank {rank} on {self._hosts[rank]} failed: {rest[0]}'
        return None


def run(fn, args=(), kwargs=None, num_proc=None, start_timeout=None, use_mpi=None, use_gloo=None,
        extra_mpi_args=None, env=None, stdout=None, stderr=None, verbose=1, nics=None,
        prefix_output_with_timestamp=False, executable=None):
    """Calls ``fn(*args, **kwargs)`` on each rank, in a task of Spark, and returns the list of
    results in rank order. The function calls ``hvd.init()`` without arguments.

    num_proc: the number of ranks; the default is spark.default.parallelism.
    start_timeout: how many seconds Spark has to start all tasks; the default is
        HOROVOD_SPARK_START_TIMEOUT, or 600.
    env: variables of the ranks, beside those of Spark's executors.
    stdout, stderr: where to print what the ranks print; the default is that of this process.
    nics: names of network interfaces, which the ranks use; the driver uses the first that it has.
    prefix_output_with_timestamp: whether each line of the ranks begins with the time.
    use_mpi, use_gloo, extra_mpi_args, verbose: without effect.

    RuntimeError, with rank, host and traceback, if the function fails on a rank or a task dies;
    TimeoutError if not all tasks start in time. All tasks of the run have ended then.
    """
    del use_mpi, use_gloo, extra_mpi_args, verbose
    if not callable(fn):
        raise wrong_type('fn', fn, 'a function')
    if executable is not None:
        raise NotImplementedError('executable is not supported: Spark starts the ranks, with the '
                                  'Python of PYSPARK_PYTHON or spark.pyspark.python')
    context = pyspark.SparkContext._active_spark_context
    if context is None:
        raise RuntimeError('horovod.spark.run() found no SparkContext: call it in a PySpark '
                           'session')
    if start_timeout is None:
        start_timeout = int(os.environ.get('HOROVOD_SPARK_START_TIMEOUT', 600))
    variables = {'HVD_START_TIMEOUT': str(max(1, int(start_timeout)))}
    if nics:
        variables['HVD_IFACE'] = ','.join(listed(nics))
    variables.update({name: str(value) for name, value in (env or {}).items()})
    secret = variables.pop('HVD_SECRET', '') or os.environ.get('HVD_SECRET')
    address = first_address(listed(nics))
    size = num_proc or context.defaultParallelism
    started = _Run(size, variables,
                   _Output(stdout, stderr, prefix_output_with_timestamp),
                   address or context.getConf().get('spark.driver.host'), address)
    with started:
        # Spark ships the secrets with the function, encrypted if it is configured so. The messages
        # of the servers are authenticated, but not encrypted.
        task = functools.partial(run_task, started.place, started.key, started.store_key,
                                 secret or secrets.token_hex(32),
                                 functools.partial(fn, *args, **(kwargs or {})))
        return _run_job(context, started, size, task, start_timeout)


def _run_job(context, started, size, task, start_timeout):
    group = f'horovod.spark.run {os.getpid()}.{next(_numbers)}'
    problems = []  # the exception of Spark's job, if there is one
    job = threading.Thread(target=_run_stage, daemon=True, args=(
        context, group, size, task, problems, started.note_end_of_job))
    job.start()
    is_good = False
    try:
        count = started.await_start(start_timeout)
        if count < size and not problems:
            raise TimeoutError(
                f'Timed out waiting for Spark tasks to start. {count} of {size} started within '
                f'{start_timeout} s: the executors have too few free cores (or GPUs) for all at '
                'the same time; use a smaller num_proc, or raise start_timeout')
        is_good = started.await_end() if count == size else False
    finally:
        started.end()
        if not is_good:
            context.cancelJobGroup(group)
        job.join(_CANCEL_S)
    if is_good:
        return started.results()
    if started.failure():
        raise RuntimeError(started.failure())
    # The text of a Java exception, without its stack.
    reason = str(problems[0]).split('\n\tat ')[0] if problems else 'a task was lost'
    raise RuntimeError(f"Spark's job has failed: {reason}")


def _run_stage(context, group, size, task, problems, note_end):
    """Runs Spark's job, in a thread."""
    try:
        context.setJobGroup(group, 'horovod.spark.run', interruptOnCancel=True)
        context.parallelize(range(size), size).barrier().mapPartitions(
            lambda _: iter([task()])).collect()
    except Exception as problem:
        problems.append(problem)
    finally:
        note_end()


def run_elastic(fn, args=(), kwargs=None, num_proc=None, min_num_proc=None, max_num_proc=None,
                start_timeout=None, elastic_timeout=None, reset_limit=None, env=None, stdout=None,
                stderr=None, verbose=1, nics=None, prefix_output_with_timestamp=False, min_np=None,
                max_np=None):
    """Raises NotImplementedError, with the replacement."""
    raise NotImplementedError('horovod.spark.run_elastic is not supported: call horovod.spark.run '
                              'again after a failure, with a function that loads its checkpoint')
