# SPDX-License-Identifier: Apache-2.0
"""Life of the job and this rank's numbers, the same in every front end."""

import atexit

from horovod.common import membership, requests
from horovod.common.library import Error, lib
from horovod.common.process_sets import global_process_set

Average, Sum, Adasum, Min, Max, Product = range(6)


class HorovodBasics:
    """This process's membership in the job; ``basics`` is the one instance."""

    Average, Sum, Adasum, Min, Max, Product = Average, Sum, Adasum, Min, Max, Product

    def init(self, comm=None, process_sets=None):
        """Joins the job: all ranks that the launcher started. A second call does nothing."""
        if self.is_initialized():
            return
        if comm:
            raise NotImplementedError(
                'hvd.init(comm=...) is not supported: hvd takes its ranks from the launcher; '
                'start only the ranks that take part, with srun --hvd, hvdrun or mpirun')
        if process_sets:
            raise NotImplementedError(
                'hvd.init(process_sets=...) is not supported by this version of hvd: it has '
                'the global process set only')
        error = Error()
        if lib.hvd_init(error) != 0:
            raise ValueError(f'hvd.init() failed: {error.message()}')
        membership.begin()
        requests.restart_names()
        global_process_set.ranks = list(range(self.size()))

    def shutdown(self):
        """Leaves the job; ``init`` works again once every rank has left."""
        if not membership.is_inherited():
            lib.hvd_shutdown()
            membership.end()

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
        """Not available."""
        raise NotImplementedError('hvd.start_timeline() is not supported by this version of hvd')

    def stop_timeline(self):
        """Not available."""
        raise NotImplementedError('hvd.stop_timeline() is not supported by this version of hvd')

    # hvd has its own transports: shared memory and UCX. Scripts ask for Horovod's.

    def mpi_threads_supported(self):
        raise ValueError('hvd does not use MPI, so it knows nothing of MPI threads')

    def mpi_enabled(self):
        return False

    def mpi_built(self):
        return False

    def gloo_enabled(self):
        return False

    def gloo_built(self):
        return False

    def nccl_built(self):
        """NCCL's version code; 0: collectives do not run on GPUs in this version."""
        return 0

    def ddl_built(self):
        return False

    def ccl_built(self):
        return False

    def cuda_built(self):
        return False

    def rocm_built(self):
        return False


basics = HorovodBasics()


@atexit.register
def _leave_job():
    basics.shutdown()
    requests.forget_pending()
