# SPDX-License-Identifier: Apache-2.0
"""Functions of all front ends that join and leave the job and return this rank's numbers."""

import atexit
import contextlib
import operator
import os
import sys
import traceback
from ctypes import c_int

from horovod.common import alone, membership, mpi, requests, stacks, stores, uncaught
from horovod.common import process_sets as sets
from horovod.common import requeue as requeueing
from horovod.common.arguments import wrong_type
from horovod.common.exceptions import HorovodInternalError
from horovod.common.library import ERR_DISMISSED, Error, check_submitted, lib

Average, Sum, Adasum, Min, Max, Product = range(6)


@contextlib.contextmanager
def _section(name):
    has_begun = lib.hvd_section_begin(name) == 0
    try:
        yield
    finally:
        if has_begun:
            lib.hvd_section_end()


class HorovodBasics:
    """This process's membership in the job; ``basics`` is the one instance."""

    Average, Sum, Adasum, Min, Max, Product = Average, Sum, Adasum, Min, Max, Product

    def init(self, comm=None, process_sets=None, store=None, rank=None, size=None):
        """Joins the job and returns once all its ranks have called init. Further calls have no
        effect until shutdown().

        comm: the ranks of the job, as a list of the launcher's rank numbers or as an mpi4py
            communicator. Only these ranks call init, and their order is that of the list or the
            communicator. None (the default): all ranks that the launcher started.
        process_sets: a list of ProcessSet objects to register, the same on all ranks; or
            "dynamic", which allows add_process_set(). Sets made from communicators need a
            communicator as ``comm``.
        store: for processes that no launcher of hvd started: the store through which the ranks
            find each other. A store of torch.distributed, or an object with the same methods
            set, get, add and wait. The default is the store of the last start; under torchrun,
            torchrun's own store; with HVD_STORE, that folder.
        rank, size: with a store, the rank of this process and the number of ranks. The defaults
            are the environment variables RANK and WORLD_SIZE, or those of another launcher that
            tells both: see launchers.md.

        Raises ValueError, with the reason, if the job cannot start or an argument is wrong.
        """
        if comm is not None and store is not None:
            raise ValueError('hvd.init() takes comm or store, not both: the ranks of a store are '
                             'numbered by rank and size')
        wanted = sets.listed(process_sets)
        communicator = comm if mpi.is_communicator(comm) else None
        if communicator is None and any(each.ranks is None for each in wanted):
            raise NotImplementedError('process sets given as MPI communicators need '
                                      'hvd.init(comm=...) with the communicator of all ranks')
        if not self.is_initialized():
            _join_job(comm, store, rank, size)
            try:
                sets.begin(wanted, communicator)
            except BaseException as failure:
                self.shutdown()
                if isinstance(failure, HorovodInternalError):  # the ranks disagree about the sets
                    raise ValueError(f'hvd.init() failed: {failure}') from None
                raise
        if wanted:
            sets.resolve(wanted, communicator)

    def shutdown(self):
        """Leaves the job, which ends it: collectives of other ranks that need this rank fail.
        init() works again once every rank has left."""
        if sys.exc_info()[0] is None:
            requeueing.leave()
            alone.warn_if_alone()
        _leave_job(None)

    def is_initialized(self):
        """Whether this process is part of a job: after init(), before shutdown()."""
        return membership.exists()

    def rank(self):
        """The number of this process in the job, from 0 to size() - 1. ValueError before init."""
        return membership.numbers().rank

    def size(self):
        """The number of ranks in the job. ValueError before init."""
        return membership.numbers().size

    def local_rank(self):
        """The number of this process on its node, from 0 to local_size() - 1: the usual index of
        its GPU. ValueError before init."""
        return membership.numbers().local_rank

    def local_size(self):
        """The number of ranks on this node. ValueError before init."""
        return membership.numbers().local_size

    def cross_rank(self):
        """The index of this node among the nodes that have a rank with this local_rank().
        ValueError before init."""
        return membership.numbers().cross_rank

    def cross_size(self):
        """The number of nodes that have a rank with this local_rank(). ValueError before init."""
        return membership.numbers().cross_size

    def is_homogeneous(self):
        """Whether all nodes have the same number of ranks. ValueError before init."""
        return membership.numbers().is_homogeneous

    def start_timeline(self, file_path, mark_cycles=False):
        """Starts to record the phases of each tensor. Rank 0 writes the file, for Perfetto or
        chrome://tracing. HOROVOD_TIMELINE must have been DYNAMIC when init was called."""
        membership.must_be_rank()
        if not isinstance(file_path, (str, bytes, os.PathLike)):
            raise wrong_type('file_path', file_path, 'the path of a file')
        error = Error()
        check_submitted(
            lib.hvd_timeline_start(os.fsencode(file_path), bool(mark_cycles), error), error)

    def stop_timeline(self):
        """Ends the recording that start_timeline() started."""
        membership.must_be_rank()
        error = Error()
        check_submitted(lib.hvd_timeline_stop(error), error)

    def section(self, name):
        """Marks a part of the training, such as reading data, for the straggler report:

            with hvd.section('data'):
                batch = next(batches)

        The report (``srun --hvd=report``) tells how long each rank was in each section, and in
        which one a late rank lost its time. Without a report, or before init(), this has no effect.
        Time in nested sections counts for the innermost. Names are cut after 31 bytes; of more than
        16 names, the last stands for all others. Sections are for one thread at a time."""
        if not isinstance(name, str) or not name:
            raise wrong_type('name', name, 'a string that is not empty')
        return _section(name.encode()[:31].decode(errors='ignore').encode())

    def stop_on_signals(self, requeue=False):
        """Makes SIGTERM and SIGUSR1 set a flag that should_stop() reads, instead of ending the
        process. should_stop() does this at its first call, too. A handler that the script set
        before is still called; a handler that it sets later replaces this one.

        requeue: after SIGUSR1 has stopped the training, rank 0 requeues the Slurm job, once all
            ranks have called shutdown() or come to the end of the script, unless an exception has
            ended one of them. ``srun --hvd=requeue`` is the same. If the first should_stop() is
            true already, the job ends with exit code 93 instead.
        """
        if requeue:
            requeueing.want()
        if lib.hvd_stop_on_signals() != 0:
            raise OSError('SIGTERM and SIGUSR1 cannot be watched')

    def should_stop(self):
        """Whether any rank has received SIGTERM or SIGUSR1. Collective: all ranks call it after the
        same step and get the same answer. So they can write a checkpoint of that step and end
        before the job is preempted or reaches its time limit."""
        membership.must_be_rank()
        return requeueing.should_stop()

    def _get_process_set_ids_and_ranks(self):
        """{number: ranks} of all process sets. Private, but Horovod's tests call it."""
        return sets.registered()

    # Scripts ask which transports Horovod was built with, to decide what they may call. hvd has
    # transports of its own (shared memory, UCX, TCP). They can do everything that Gloo does, so the
    # answer for Gloo is True. The answer for MPI is True if mpi4py is installed, because init()
    # then accepts communicators.

    def mpi_threads_supported(self):
        """Whether several threads may call MPI at the same time. ValueError if the script has not
        started MPI with mpi4py on the ranks of the job."""
        if not self.mpi_enabled():
            raise ValueError('Horovod MPI is not enabled: hvd does not use MPI, and this script '
                             'has not started it with mpi4py on the ranks of the job')
        membership.numbers()
        return mpi.threads_supported()

    def mpi_enabled(self):
        """Whether the script has started MPI with mpi4py, on the same ranks as this job."""
        return mpi.is_shared()

    def mpi_built(self):
        """Whether mpi4py is installed, so that scripts can start MPI."""
        return mpi.is_installed()

    def gloo_enabled(self):
        """True: hvd can do everything that Gloo does in Horovod."""
        return True

    def gloo_built(self):
        """True: hvd can do everything that Gloo does in Horovod."""
        return True

    def nccl_built(self):
        """The version code of the NCCL library that GPU tensors use, such as 22304, or 0 if there
        is no usable one. hvd-info --check shows the reason."""
        return lib.hvd_nccl_version() if self.cuda_built() else 0

    def ddl_built(self):
        """False: hvd does not use DDL."""
        return False

    def ccl_built(self):
        """False: hvd does not use oneCCL."""
        return False

    def cuda_built(self):
        """Whether a CUDA driver was found, so that hvd uses GPU tensors in place."""
        return lib.hvd_cuda_version() > 0

    def rocm_built(self):
        """False: hvd does not support GPUs from AMD."""
        return False


basics = HorovodBasics()

# Every front end exports these functions, for example as hvd.init().
init = basics.init
shutdown = basics.shutdown
is_initialized = basics.is_initialized
start_timeline = basics.start_timeline
stop_timeline = basics.stop_timeline
should_stop = basics.should_stop
section = basics.section
stop_on_signals = basics.stop_on_signals
size = basics.size
local_size = basics.local_size
cross_size = basics.cross_size
rank = basics.rank
local_rank = basics.local_rank
cross_rank = basics.cross_rank
is_homogeneous = basics.is_homogeneous
mpi_threads_supported = basics.mpi_threads_supported
mpi_enabled = basics.mpi_enabled
mpi_built = basics.mpi_built
gloo_enabled = basics.gloo_enabled
gloo_built = basics.gloo_built
nccl_built = basics.nccl_built
ddl_built = basics.ddl_built
ccl_built = basics.ccl_built
cuda_built = basics.cuda_built
rocm_built = basics.rocm_built


def _chosen_ranks(comm):
    """Returns the argument comm of init as a list of the launcher's rank numbers; an empty list
    stands for all ranks."""
    try:
        return [] if comm is None else [operator.index(rank) for rank in comm]
    except TypeError:
        raise ValueError('Invalid type of argument comm. Expected list of rank integers or '
                         'mpi4py.MPI.Comm object.') from None


def _start(comm, store, rank, size, error):
    """Starts libhvd with the arguments of init; returns libhvd's status."""
    if mpi.is_communicator(comm):
        return stores.join(mpi.place(comm), error)
    ranks = _chosen_ranks(comm)
    given = None if ranks else stores.chosen(store, rank, size)
    place = given or mpi.place_in_world(ranks)
    if place is None:
        return (lib.hvd_init_ranks((c_int * len(ranks))(*ranks), len(ranks), error) if ranks
                else lib.hvd_init(error))
    status = stores.join(place, error)
    if status == 0 and given:
        stores.keep(given)
    return status


def _join_job(comm, store, rank, size):
    uncaught.install()
    error = Error()
    status = _start(comm, store, rank, size, error)
    if status == ERR_DISMISSED:
        print(f'hvd: {error.message()}', file=sys.stderr)
        raise SystemExit(0)
    if status != 0:
        raise ValueError(f'hvd.init() failed: {error.message()}')
    stacks.offer()
    membership.begin()
    requests.restart_all_names()


def _leave_job(why):
    if not membership.is_inherited():
        lib.hvd_shutdown_because(why)
        membership.end()
        sets.end()


def _last_words():
    """Returns the uncaught exception that ends the script, as one line of text, or None if there is
    none. Always None in an interactive interpreter, which an exception does not end."""
    kind = getattr(sys, 'last_type', None)
    if kind is None or hasattr(sys, 'ps1'):
        return None
    return _in_one_line(kind, getattr(sys, 'last_value', None))


def _in_one_line(kind, failure):
    return ' '.join(traceback.format_exception_only(kind, failure)[-1].split()).encode()


def leave_after(failure):
    """Leaves the job after an exception that ends the training, but not the process. The other
    ranks' errors quote it."""
    _leave_job(_in_one_line(type(failure), failure))
    requests.forget_pending()


@atexit.register
def end_script():
    """Leaves the job at the end of the script, and tells the other ranks the exception that ended
    it, if any. A second call has no effect."""
    words = _last_words()
    if words is None and not membership.is_inherited():
        requeueing.leave()
        alone.warn_if_alone()
    _leave_job(words or b'')
    requests.forget_pending()
