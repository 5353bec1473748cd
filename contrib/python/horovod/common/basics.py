# SPDX-License-Identifier: Apache-2.0
"""Joining and leaving the job, and this rank's numbers. All front ends share them."""

import atexit
import operator
import os
import sys
import traceback
from ctypes import c_int

from horovod.common import membership, mpi, requests, stores
from horovod.common import process_sets as sets
from horovod.common.arguments import wrong_type
from horovod.common.exceptions import HorovodInternalError
from horovod.common.library import ERR_DISMISSED, Error, check_submitted, lib

Average, Sum, Adasum, Min, Max, Product = range(6)


class HorovodBasics:
    """This process's membership in the job; ``basics`` is the one instance."""

    Average, Sum, Adasum, Min, Max, Product = Average, Sum, Adasum, Min, Max, Product

    def init(self, comm=None, process_sets=None, store=None, rank=None, size=None):
        """Joins the job. Further calls have no effect.

        comm: the ranks that the job is made of, as a list of the launcher's numbers or as an
            mpi4py communicator, whose order is the order of the ranks; these alone call init.
            None: all ranks that the launcher started.
        process_sets: ProcessSet objects to register, the same on all ranks; or "dynamic", which
            allows add_process_set(). Sets of communicators need a communicator as ``comm``.
        store: where the ranks find each other without a launcher of hvd: a store of
            torch.distributed, or an object with its methods set, get, add and wait. Under torchrun
            its own store is the default.
        rank, size: who this process is, with a store; the default is RANK and WORLD_SIZE.
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
                if isinstance(failure, HorovodInternalError):  # the ranks disagree about them
                    raise ValueError(f'hvd.init() failed: {failure}') from None
                raise
        if wanted:
            sets.resolve(wanted, communicator)

    def shutdown(self):
        """Leaves the job; ``init`` works again once every rank has left."""
        _leave_job(None)

    def is_initialized(self):
        return membership.exists()

    def rank(self):
        """This process's number in the job."""
        return membership.numbers().rank

    def size(self):
        """The number of processes in the job."""
        return membership.numbers().size

    def local_rank(self):
        """This process's number on its node."""
        return membership.numbers().local_rank

    def local_size(self):
        """The number of processes on this node."""
        return membership.numbers().local_size

    def cross_rank(self):
        """The number of this node among those that have this local rank."""
        return membership.numbers().cross_rank

    def cross_size(self):
        """The number of nodes that have this local rank."""
        return membership.numbers().cross_size

    def is_homogeneous(self):
        """Whether all nodes have the same number of processes."""
        return membership.numbers().is_homogeneous

    def start_timeline(self, file_path, mark_cycles=False):
        """Starts to record the phases of each tensor in a file that rank 0 writes. HOROVOD_TIMELINE
        must be DYNAMIC when init is called."""
        membership.must_be_rank()
        if not isinstance(file_path, (str, bytes, os.PathLike)):
            raise wrong_type('file_path', file_path, 'the path of a file')
        error = Error()
        check_submitted(
            lib.hvd_timeline_start(os.fsencode(file_path), bool(mark_cycles), error), error)

    def stop_timeline(self):
        """Ends the recording."""
        membership.must_be_rank()
        error = Error()
        check_submitted(lib.hvd_timeline_stop(error), error)

    def stop_on_signals(self):
        """From now on SIGTERM and SIGUSR1 are only noted, for should_stop(), which includes this.
        A handler that the script has set before is called as well; one that it sets later takes
        the place of this."""
        if lib.hvd_stop_on_signals() != 0:
            raise OSError('SIGTERM and SIGUSR1 cannot be watched')

    def should_stop(self):
        """Whether any rank has got SIGTERM or SIGUSR1, the same on all of them: a job that is
        about to be preempted or to reach its time limit writes one checkpoint of one step. All
        ranks call it, once a step or every so many steps."""
        membership.must_be_rank()
        error = Error()
        answer = lib.hvd_should_stop(error)
        check_submitted(min(answer, 0), error)
        return answer == 1

    def _get_process_set_ids_and_ranks(self):
        """{number: ranks} of all process sets. Private, but Horovod's tests call it."""
        return sets.registered()

    # hvd has its own transports: shared memory, UCX and TCP. Scripts ask for Horovod's,
    # to learn what they may call: whatever Gloo can do, and communicators where mpi4py is
    # there.

    def mpi_threads_supported(self):
        """Whether any thread may call the MPI that the script has started with mpi4py."""
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
        return True

    def nccl_built(self):
        """The version code of the NCCL that GPU tensors use here. 0 if there is no usable one;
        hvd-info --check shows the reason."""
        return lib.hvd_nccl_version() if self.cuda_built() else 0

    def ddl_built(self):
        return False

    def ccl_built(self):
        return False

    def cuda_built(self):
        """Whether GPU tensors are used in place, that is, whether a CUDA driver was found."""
        return lib.hvd_cuda_version() > 0

    def rocm_built(self):
        return False


basics = HorovodBasics()

# As every front end has them.
init = basics.init
shutdown = basics.shutdown
is_initialized = basics.is_initialized
start_timeline = basics.start_timeline
stop_timeline = basics.stop_timeline
should_stop = basics.should_stop
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
    """The launcher's numbers of the ranks in init's argument; an empty list stands for all
    ranks."""
    try:
        return [] if comm is None else [operator.index(rank) for rank in comm]
    except TypeError:
        raise ValueError('Invalid type of argument comm. Expected list of rank integers or '
                         'mpi4py.MPI.Comm object.') from None


def _start(comm, store, rank, size, error):
    """Starts by what init was given, in libhvd; returns its status."""
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
    error = Error()
    status = _start(comm, store, rank, size, error)
    if status == ERR_DISMISSED:
        print(f'hvd: {error.message()}', file=sys.stderr)
        raise SystemExit(0)
    if status != 0:
        raise ValueError(f'hvd.init() failed: {error.message()}')
    membership.begin()
    requests.restart_all_names()


def _leave_job(why):
    if not membership.is_inherited():
        lib.hvd_shutdown_because(why)
        membership.end()
        sets.end()


def _last_words():
    """The exception that ends the script, in a line; None if it ends otherwise. An interpreter
    that a person types into goes on after one."""
    kind = getattr(sys, 'last_type', None)
    if kind is None or hasattr(sys, 'ps1'):
        return None
    lines = traceback.format_exception_only(kind, getattr(sys, 'last_value', None))
    return ' '.join(lines[-1].split()).encode()


@atexit.register
def end_script():
    """Leaves the job with the script's last words; a second call has no effect."""
    _leave_job(_last_words() or b'')
    requests.forget_pending()
