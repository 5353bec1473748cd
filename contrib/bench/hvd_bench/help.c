/* SPDX-License-Identifier: Apache-2.0 */
/* --help. */
#include "contrib/bench/hvd_bench/options.h"

static const char usage[] =
    "Usage: hvd-bench [COLLECTIVE ...] [options]        as the ranks of a job:\n"
    "\n"
    "  hvdrun -np 4 hvd-bench                           4 ranks on this machine\n"
    "  srun --hvd -N2 -n8 hvd-bench allreduce           8 ranks on 2 nodes\n"
    "  mpirun -np 2 hvd-bench --vs mpi,mpich,gloo,limit hvd and others in turns\n"
    "  hvd-bench --explain allreduce 64M --layout 4,4   what would run; needs no job\n"
    "  srun --hvd -N2 -n8 hvd-bench --tune tune.table   the best algorithms by size\n"
    "  hvd-bench --simulate nodes=128,gpus=4,model=vgg16 how it would scale\n"
    "\n"
    "Measures what hvd's collectives cost on the ranks it is started as, and what\n"
    "those of other libraries cost in the same run. COLLECTIVE: allreduce (default),\n"
    "allgather, broadcast, alltoall, reducescatter, barrier.\n";

static const char work[] =
    "\n"
    "What to run\n"
    "  --sizes LIST     bytes: 8,64K,1M, or MIN:MAX[:FACTOR] as 8:64M:8. Default:\n"
    "                   8,64,1K,16K,256K,4M,64M. As in nccl-tests, of a whole buffer:\n"
    "                   of allgather what comes out, of reducescatter and alltoall\n"
    "                   what goes in\n"
    "  --dtype LIST     float32 (default), float16, bfloat16, float64, int32, ...\n"
    "  --op LIST        sum (default), average, min, max, product\n"
    "  --wire TYPE      hvd sends float32 as float16 or bfloat16 (allreduce); peers\n"
    "                   send it as it is\n"
    "  --inplace        output = input (allreduce, broadcast)\n"
    "  --shared         likewise, in memory of hvd_shared_alloc, which all ranks of\n"
    "                   a node map (allreduce)\n"
    "  --list LIST      all gradients of a model: resnet50, resnet101, inception3,\n"
    "                   vgg16, bert_base; instead of sizes, or after those that are\n"
    "                   given (allreduce, broadcast)\n"
    "  --level LIST     runtime: through hvd.h: submit, agree, run, wait; the tensors\n"
    "                   of a list one by one, then wait for all.\n"
    "                   team: the same schedule run at once by the caller, without\n"
    "                   agreement, as MPI calls are; broadcast without a copy on\n"
    "                   the root, barrier by an allreduce of one byte.\n"
    "                   Default: both\n"
    "  --vs LIST        peers that run the same work, block by block in turns:\n"
    "    mpi              Open MPI, in the same processes; the job is to be started\n"
    "                     by mpirun or srun --mpi=pmix\n"
    "    mpich[=LIBRARY]  MPICH, Debian's libmpich12, in children of the ranks;\n"
    "                     LIBRARY: another one with its binary interface, as\n"
    "                     libmpi.so.12 of Intel MPI\n"
    "    oneccl[=DIR]     oneCCL, likewise. DIR: a Python environment that has it;\n"
    "                     contrib/bench/oneccl_env.sh makes one\n"
    "    gloo[=PYTHON]    Gloo through torch.distributed of that Python, default\n"
    "                     Debian's (python3-torch), likewise; also as torch\n"
    "    limit            hand-written sum through shared memory (one node)\n"
    "    ucx-limit        nothing but UCX messages, both ways (two nodes)\n"
    "    one              hvd itself, on one tensor of the bytes of a --list\n"
    "    builtin          level team by the built-in table of algorithms (--tune)\n"
    "    horovod=PYTHON   the Horovod of that Python, likewise\n"
    "                   A peer that is not there is left out, and why is printed\n";

static const char how[] =
    "\n"
    "How to measure\n"
    "  --time SECONDS   of each line of the table, default 0.2\n"
    "  --blocks N       blocks in that time, default 11; contenders take turns\n"
    "  --iterations N   calls of a block, instead of --time\n"
    "  --warmup N       calls before, default 5\n"
    "  --no-check       do not compare results; else that is done at each size before\n"
    "                   and after its blocks, and a wrong one ends with status 1\n"
    "  --progress       a line now and then of what is done and what is left; a\n"
    "                   terminal shows that anyway, but behind srun nobody knows\n"
    "                   that there is one\n"
    "\n"
    "What to write\n"
    "  --csv FILE       the table, with more columns\n"
    "  --json FILE      the same, and the machine\n"
    "  --plot BASENAME  BASENAME.png and .svg, of BASENAME.json where --json is not\n"
    "                   given (needs python3-matplotlib)\n"
    "  --tune FILE      instead of all that: times each algorithm that hvd could\n"
    "                   take on this job (level team), by size, in turns; prints the\n"
    "                   times and writes into FILE, beside what it has for other\n"
    "                   shapes of job, which is to be taken from which size on: that\n"
    "                   of the built-in table where none was faster in every turn.\n"
    "                   Jobs take it by HVD_TUNE_TABLE=FILE. Not of alltoall, barrier\n"
    "  --explain        with a collective and a size: the steps of each rank, for\n"
    "                   this job or for --layout RANKS,RANKS,... (ranks of each node)\n"
    "  --lab            first, without a job: trains and reduces by each backend on\n"
    "                   several layouts, and makes the table (--lab --help)\n"
    "  --simulate WHAT  first, without a job: runs the schedules on a model of a\n"
    "                   machine (--simulate --help; --simulate --tables)\n"
    "  --help, --version\n";

static const char columns[] =
    "\n"
    "The table\n"
    "  A block is a row of back-to-back calls; its time is that of the slowest rank,\n"
    "  divided by the calls. \"time\" is the median of the blocks, q1 and q3 are their\n"
    "  quartiles. algbw = bytes / time in GB/s (10^9). busbw makes it comparable with\n"
    "  what wires can do, as in nccl-tests: algbw * 2(n-1)/n for allreduce, (n-1)/n\n"
    "  for allgather, reducescatter and alltoall, 1 for broadcast, with n ranks.\n"
    "  \"/ hvd\" is the time over that of hvd's first level in the table, median over\n"
    "  the rounds: 2.00 means twice as slow.\n"
    "  \"line\" is what it takes to hand a cache line from one rank of a node to\n"
    "  another, in ns, after the row; a virtual machine can change that from second\n"
    "  to second. A row during which it changed by more than half has a \"!\": repeat.\n"
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
