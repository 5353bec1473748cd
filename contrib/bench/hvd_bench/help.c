/* SPDX-License-Identifier: Apache-2.0 */
/* --help. */
#include "contrib/bench/hvd_bench/options.h"

static const char usage[] =
    "Usage: hvd-bench [COLLECTIVE ...] [options]        as the ranks of a job:\n"
    "\n"
    "  hvdrun -np 4 hvd-bench                           4 ranks on this machine\n"
    "  srun --hvd -N2 --ntasks-per-node=4 hvd-bench     8 ranks on 2 nodes\n"
    "  mpirun -np 2 hvd-bench --vs mpi,gloo,limit      hvd and other libraries\n"
    "  hvd-bench --explain allreduce 64M --layout 4,4   each rank's steps; no job\n"
    "  srun --hvd -N2 --ntasks-per-node=4 hvd-bench --tune tune.table\n"
    "                                                   the best algorithms by size\n"
    "  hvd-bench --simulate nodes=128,gpus=4,model=vgg16 predicted scaling\n"
    "\n"
    "Measures the time of hvd's collectives on the ranks of this job, and that of\n"
    "other libraries (peers) in the same run. COLLECTIVE: allreduce (default),\n"
    "allgather, broadcast, alltoall, reducescatter, reduce, gather, scatter, barrier;\n"
    "rank 0 is the root. Or messages: sendrecv (each rank sends to the next one and\n"
    "receives from the one before), pingpong (between ranks 0 and 1, 2 and 3, ...).\n";

static const char work[] =
    "\n"
    "What to run\n"
    "  --sizes LIST     bytes: 8,64K,1M, or MIN:MAX[:FACTOR], e.g. 8:64M:8. Default:\n"
    "                   8,64,1K,16K,256K,4M,64M. As in nccl-tests, the size of the\n"
    "                   whole buffer: output of allgather and gather, input of\n"
    "                   reducescatter, alltoall and scatter\n"
    "  --dtype LIST     float32 (default), float16, bfloat16, float64, int32, ...\n"
    "  --op LIST        sum (default), average, min, max, product\n"
    "  --level LIST     runtime: by hvd.h: submit, agree, run, wait.\n"
    "                   team: the calling thread runs the same schedule at once,\n"
    "                   without agreement, like an MPI call; broadcast makes no copy\n"
    "                   on the root, barrier is an allreduce of one byte.\n"
    "                   Default: both\n"
    "  --vs LIST        peers that do the same work, in turns with hvd:\n"
    "    mpi              Open MPI, in the same processes; start the job by mpirun\n"
    "                     or srun --mpi=pmix\n"
    "    gloo[=PYTHON]    Gloo through torch.distributed of that Python, in children;\n"
    "                     default: Debian's (python3-torch)\n"
    "    limit            a hand-written schedule in shared memory (one node)\n"
    "    ucx-limit        the same between two nodes, by messages of UCX\n"
    "    builtin          level team with the built-in table of algorithms\n"
    "                   A peer that is not installed is left out; a line says why\n";

static const char how[] =
    "\n"
    "How to measure (results are checked before and after each size)\n"
    "  --time SECONDS   time for each row of the table, default 0.2\n"
    "  --blocks N       blocks in that time, default 11; contenders take turns\n"
    "\n"
    "What to write\n"
    "  --format NAME    table (the default); osu or nccl-tests: as these programs\n"
    "                   print, with one level (default: runtime)\n"
    "  --json FILE      the table, with a description of the machine\n"
    "  --plot BASENAME  BASENAME.png and .svg, made from the --json file, default\n"
    "                   BASENAME.json (needs python3-matplotlib)\n"
    "\n"
    "Other modes\n"
    "  --tune FILE      measure each algorithm that hvd can use on this job (level\n"
    "                   team), by size, in turns; print the times, and add a section\n"
    "                   with the fastest ones to FILE. The built-in choice stays\n"
    "                   unless another algorithm is faster in every turn.\n"
    "                   HVD_TUNE_TABLE=FILE uses the table. Not for alltoall, barrier\n"
    "  --explain        with a collective and a size: print the steps of each rank,\n"
    "                   for this job or for --layout RANKS,RANKS,... (ranks per node)\n"
    "  --explain --list all algorithms, with a sentence about each\n"
    "  --lab            without a job, as the first option: train and reduce with\n"
    "                   each backend on several layouts, and print a table\n"
    "                   (--lab --help)\n"
    "  --simulate WHAT  without a job, as the first option: run the schedules on a\n"
    "                   model of a machine (--simulate --help; --simulate --tables)\n"
    "  --help, --version\n";

static const char columns[] =
    "\n"
    "The table\n"
    "  A block is a series of back-to-back calls; its time is that of the slowest\n"
    "  rank, divided by the calls.\n"
    "  time       median of the blocks; q1 and q3: their quartiles\n"
    "  algbw      bytes / time in GB/s (10^9)\n"
    "  busbw      comparable with the bandwidth of the hardware, as in nccl-tests:\n"
    "             algbw times 2(n-1)/n for allreduce, (n-1)/n for allgather,\n"
    "             reducescatter and alltoall, 1 for broadcast and sendrecv, 2 for\n"
    "             pingpong, with n ranks\n"
    "  / hvd      time divided by that of hvd's first level, median over the rounds:\n"
    "             2.00 means twice as slow\n"
    "\n"
    "Exit status: 0; 1 when a result was wrong or the job failed; 2 for a wrong\n"
    "option.\n";

void bench_help_print(FILE *out)
{
    fputs(usage, out);
    fputs(work, out);
    fputs(how, out);
    fputs(columns, out);
}
