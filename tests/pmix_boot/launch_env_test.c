/* SPDX-License-Identifier: Apache-2.0 */
/* A table: which environment means that a process runs alone, or that it boots by PMIx or
 * by hvd's service, or that boot must fail. */
#include "pmix_boot/launch_env.h"

#include <string.h>

#include "tests/tap.h"

enum {
    MOST_VARIABLES = 9
};

struct launch_case {
    const char *name;
    bool lacks_pmix; /* this installation cannot speak PMIx */
    int status;
    enum hvd_launch_kind launch; /* when status is 0 */
    const char *text; /* a part of the error message, when status is not 0 */
    const char *environment[MOST_VARIABLES];
};

#define ALONE .launch = HVD_LAUNCH_SINGLE
#define PMIX .launch = HVD_LAUNCH_PMIX
#define RENDEZVOUS .launch = HVD_LAUNCH_RENDEZVOUS
#define REFUSED(words) .status = HVD_ERR_UNSUPPORTED, .text = (words)

static const struct launch_case cases[] = {
    {"no launcher", ALONE, .environment = {"HOME=/root", NULL}},
    {"a batch shell of many tasks", ALONE,
     .environment = {"SLURM_JOB_ID=7", "SLURM_NTASKS=4", "SLURM_PROCID=0", NULL}},
    {"the shell of salloc's interactive step", ALONE,
     .environment = {"SLURM_JOB_ID=7", "SLURM_STEP_ID=4294967290", "SLURM_NTASKS=4",
                     NULL}},
    {"a step of one task without PMIx", ALONE,
     .environment = {"SLURM_STEP_ID=0", "SLURM_NTASKS=1", NULL}},
    {"a step of one task in a job of four", ALONE,
     .environment = {"SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=1", "SLURM_NTASKS=4",
                     NULL}},
    {"mpirun -np 1 without PMIx", ALONE, .environment = {"OMPI_COMM_WORLD_SIZE=1", NULL}},
    {"a size that is not a number", ALONE, .environment = {"PMI_SIZE=many", NULL}},
    {"a name that only begins like a known one", ALONE,
     .environment = {"PMI_SIZE_LIMIT=4", NULL}},

    {"PMIx", PMIX, .environment = {"PMIX_NAMESPACE=prterun-1@1", "PMIX_RANK=3", NULL}},
    {"Slurm's PMIx", PMIX,
     .environment = {"PMIX_NAMESPACE=slurm.pmix.7.2", "PMIX_RANK=0", "SLURM_STEP_ID=2",
                     "SLURM_NTASKS=4", NULL}},
    {"PMIx wins over Open MPI's size", PMIX,
     .environment = {"OMPI_COMM_WORLD_SIZE=4", "PMIX_NAMESPACE=1234", "PMIX_RANK=0",
                     NULL}},
    {"mpirun in a task of srun", PMIX,
     .environment = {"PMIX_NAMESPACE=1234", "PMIX_RANK=0", "SLURM_STEP_ID=2",
                     "SLURM_NTASKS=2", NULL}},
    {"the plugin's launch with PMIx", PMIX,
     .environment = {"SLURM_SPANK__SLURM_SPANK_OPTION_hvd_hvd=(null)", "HVD_LAUNCH=1",
                     "PMIX_NAMESPACE=slurm.pmix.7.0", "PMIX_RANK=0", "SLURM_STEP_ID=0",
                     NULL}},

    {"four tasks of srun without PMIx", REFUSED("srun --hvd"),
     .environment = {"SLURM_STEP_ID=0", "SLURM_NTASKS=4", NULL}},
    {"PMIx variables of an outer step", REFUSED("4 tasks but no PMIx"),
     .environment = {"PMIX_NAMESPACE=slurm.pmix.7.0", "PMIX_RANK=0", "SLURM_STEP_ID=1",
                     "SLURM_NTASKS=4", NULL}},
    {"PMIx variables in a batch job submitted by a task", ALONE,
     .environment = {"PMIX_NAMESPACE=slurm.pmix.7.0", "PMIX_RANK=0", NULL}},
    {"srun --mpi=pmi2", REFUSED("2 tasks"),
     .environment = {"SLURM_STEP_ID=0", "SLURM_NTASKS=2", "PMI_SIZE=2", NULL}},
    {"Open MPI without PMIx", REFUSED("OMPI_COMM_WORLD_SIZE is 4"),
     .environment = {"OMPI_COMM_WORLD_SIZE=4", NULL}},
    {"MPICH", REFUSED("hvdrun -np 3"), .environment = {"PMI_RANK=0", "PMI_SIZE=3", NULL}},
    {"Intel MPI, ranks of this node only", REFUSED("MPI_LOCALNRANKS is 2"),
     .environment = {"MPI_LOCALNRANKS=2", NULL}},
    {"a PMI rank that does not tell the size", REFUSED("PMI_RANK is 5"),
     .environment = {"PMI_RANK=5", NULL}},
    {"PALS", REFUSED("PALS_RANKID is 1"), .environment = {"PALS_RANKID=1", NULL}},
    {"MVAPICH", REFUSED("MVAPICH"), .environment = {"MV2_COMM_WORLD_SIZE=2", NULL}},
    {"jsrun", REFUSED("jsrun"), .environment = {"JSM_NAMESPACE_SIZE=2", NULL}},
    {"Flux", REFUSED("flux"), .environment = {"FLUX_JOB_SIZE=2", NULL}},
    {"torchrun on one node", REFUSED("torchrun"),
     .environment = {"LOCAL_WORLD_SIZE=2", "GROUP_WORLD_SIZE=1", NULL}},
    {"torchrun with one rank a node", REFUSED("torchrun"),
     .environment = {"LOCAL_WORLD_SIZE=1", "GROUP_WORLD_SIZE=2", NULL}},
    {"Horovod's own horovodrun", REFUSED("HOROVOD_SIZE is 4"),
     .environment = {"HOROVOD_SIZE=4", "HOROVOD_RANK=0", NULL}},
    {"a launcher that sets torch's variables, too", REFUSED("HOROVOD_SIZE is 4"),
     .environment = {"LOCAL_WORLD_SIZE=4", "WORLD_SIZE=4", "HOROVOD_SIZE=4", NULL}},
    {"mpiexec inside a step of one task", REFUSED("PMI_SIZE is 4"),
     .environment = {"SLURM_STEP_ID=0", "SLURM_NTASKS=1", "PMI_SIZE=4", NULL}},

    {"an elastic job", .launch = HVD_LAUNCH_ELASTIC,
     .environment = {"HVD_RENDEZVOUS=host:1:key", "HOROVOD_ELASTIC=1", "PMIX_NAMESPACE=x",
                     "PMIX_RANK=0", "HOROVOD_SIZE=4", NULL}},
    {"an elastic job whose launch failed", .status = HVD_ERR_STATE, .text = "because",
     .environment = {"HVD_RENDEZVOUS=host:1:key", "HOROVOD_ELASTIC=1",
                     "SLURM_HVD_ERROR=because", NULL}},
    {"a job without a service whose user sets HOROVOD_ELASTIC", PMIX,
     .environment = {"HOROVOD_ELASTIC=1", "PMIX_NAMESPACE=x", "PMIX_RANK=0", NULL}},
    {"a task of srun --hvd=elastic,meet=FILE", .launch = HVD_LAUNCH_ELASTIC,
     .environment = {"HVD_RENDEZVOUS=host:1:key", "SLURM_HVD_RENDEZVOUS=host:1:key",
                     "HOROVOD_ELASTIC=1", "SLURM_STEP_ID=0", NULL}},
    {"a batch job submitted by such a task", ALONE,
     .environment = {"HVD_RENDEZVOUS=host:1:key", "SLURM_HVD_RENDEZVOUS=host:1:key",
                     "HOROVOD_ELASTIC=1", "SLURM_JOB_ID=8", "HVD_LAUNCH_VERSION=9.8.7",
                     NULL}},

    {"srun --hvd without PMIx", RENDEZVOUS,
     .environment = {"HVD_RENDEZVOUS=host:1:key", "SLURM_STEP_ID=0", "SLURM_NTASKS=4",
                     "HVD_LAUNCH=1", NULL}},
    {"srun --hvd --mpi=pmi2", RENDEZVOUS,
     .environment = {"HVD_RENDEZVOUS=host:1:key", "SLURM_STEP_ID=0", "SLURM_NTASKS=4",
                     "PMI_SIZE=4", "PMI_RANK=1", NULL}},
    {"hvd's own service is preferred to Slurm's PMIx", RENDEZVOUS,
     .environment = {"HVD_RENDEZVOUS=host:1:key", "PMIX_NAMESPACE=slurm.pmix.7.0",
                     "PMIX_RANK=0", "SLURM_STEP_ID=0", NULL}},
    {"HVD_START_BY=service is the default", RENDEZVOUS,
     .environment = {"HVD_START_BY=service", "HVD_RENDEZVOUS=host:1:key",
                     "PMIX_NAMESPACE=slurm.pmix.7.0", "PMIX_RANK=0", "SLURM_STEP_ID=0",
                     NULL}},
    {"HVD_START_BY=pmix", PMIX,
     .environment = {"HVD_START_BY=pmix", "HVD_RENDEZVOUS=host:1:key",
                     "PMIX_NAMESPACE=slurm.pmix.7.0", "PMIX_RANK=0", "SLURM_STEP_ID=0",
                     NULL}},
    {"an empty HVD_START_BY is none", RENDEZVOUS,
     .environment = {"HVD_START_BY=", "HVD_RENDEZVOUS=host:1:key",
                     "PMIX_NAMESPACE=slurm.pmix.7.0", "PMIX_RANK=0", "SLURM_STEP_ID=0",
                     NULL}},
    {"srun --hvd of 2048 ranks", RENDEZVOUS,
     .environment = {"HOROVOD_SIZE=2048", "HVD_RENDEZVOUS=host:1:key",
                     "PMIX_NAMESPACE=slurm.pmix.7.0", "PMIX_RANK=0", "SLURM_STEP_ID=0",
                     NULL}},
    {"srun --hvd of more ranks: PMIx is preferred", PMIX,
     .environment = {"HOROVOD_SIZE=2049", "HVD_RENDEZVOUS=host:1:key",
                     "PMIX_NAMESPACE=slurm.pmix.7.0", "PMIX_RANK=0", "SLURM_STEP_ID=0",
                     NULL}},
    {"HVD_START_BY=service with more ranks", RENDEZVOUS,
     .environment = {"HVD_START_BY=service", "HOROVOD_SIZE=2049",
                     "HVD_RENDEZVOUS=host:1:key", "PMIX_NAMESPACE=slurm.pmix.7.0",
                     "PMIX_RANK=0", "SLURM_STEP_ID=0", NULL}},
    {"more ranks where there is no PMIx", RENDEZVOUS,
     .environment = {"HOROVOD_SIZE=2049", "HVD_RENDEZVOUS=host:1:key", "SLURM_STEP_ID=0",
                     NULL}},
    {"HVD_START_BY=pmix where there is no PMIx", RENDEZVOUS,
     .environment = {"HVD_START_BY=pmix", "HVD_RENDEZVOUS=host:1:key", "SLURM_STEP_ID=0",
                     NULL}},
    {"HVD_START_BY with another value", .status = HVD_ERR_ARG,
     .text = "HVD_START_BY is 'mpi': expected service or pmix",
     .environment = {"HVD_START_BY=mpi", NULL}},
    {"mpirun in a task of srun --hvd", PMIX,
     .environment = {"HVD_RENDEZVOUS=host:1:key", "HOROVOD_SIZE=4", "HOROVOD_RANK=0",
                     "PMIX_NAMESPACE=1234", "PMIX_RANK=1", "SLURM_STEP_ID=0",
                     "SLURM_NTASKS=4", NULL}},
    {"the only task of srun --hvd does not need PMIx", ALONE,
     .environment = {"HVD_LAUNCH=1", "HOROVOD_SIZE=1", "SLURM_STEP_ID=0",
                     "SLURM_NTASKS=1", "PMIX_NAMESPACE=slurm.pmix.7.0", "PMIX_RANK=0",
                     NULL}},
    {"one task for each component of a step without a service", PMIX,
     .environment = {"HVD_LAUNCH=1", "HOROVOD_SIZE=2", "SLURM_STEP_ID=0",
                     "SLURM_NTASKS=1", "PMIX_NAMESPACE=slurm.pmix.7.0", "PMIX_RANK=0",
                     NULL}},
    {"PMIx variables of an outer step, and hvd's own service", RENDEZVOUS,
     .environment = {"HVD_RENDEZVOUS=host:1:key", "PMIX_NAMESPACE=slurm.pmix.7.0",
                     "PMIX_RANK=0", "SLURM_STEP_ID=1", "SLURM_NTASKS=4", NULL}},
    {"no PMIx here, but hvd's own service", .lacks_pmix = true, RENDEZVOUS,
     .environment = {"HVD_RENDEZVOUS=host:1:key", "PMIX_NAMESPACE=x", "PMIX_RANK=0",
                     NULL}},
    {"a batch job submitted by a task of srun --hvd", ALONE,
     .environment = {"HVD_RENDEZVOUS=host:1:key", "SLURM_HVD_RENDEZVOUS=1:key",
                     "SLURM_JOB_ID=8", NULL}},
    {"hvdrun in such a job", RENDEZVOUS,
     .environment = {"HVD_RENDEZVOUS=127.0.0.1:2:key", "SLURM_HVD_RENDEZVOUS=1:key",
                     "SLURM_JOB_ID=8", NULL}},
    {"HOROVOD_ELASTIC=0 is not an elastic job", RENDEZVOUS,
     .environment = {"HVD_RENDEZVOUS=host:1:key", "HOROVOD_ELASTIC=0", NULL}},

    {"the launcher's own reason", .status = HVD_ERR_STATE, .text = "n2: 4 tasks, 2 GPUs",
     .environment = {"SLURM_HVD_ERROR=n2: 4 tasks, 2 GPUs",
                     "PMIX_NAMESPACE=slurm.pmix.7.0", "PMIX_RANK=0", "SLURM_STEP_ID=0",
                     NULL}},
    {"--hvd, but no plugin on the node", REFUSED("not installed on node n2"),
     .environment = {"SLURM_SPANK__SLURM_SPANK_OPTION_hvd_hvd=(null)",
                     "SLURMD_NODENAME=n2", "SLURM_STEP_ID=0", "SLURM_NTASKS=1", NULL}},
    {"--hvd=off in the job", ALONE,
     .environment = {"SLURM_SPANK__SLURM_SPANK_OPTION_hvd_hvd=off", "SLURM_STEP_ID=0",
                     "SLURM_NTASKS=1", NULL}},
    {"the batch shell of a job with --hvd", ALONE,
     .environment = {"SLURM_SPANK__SLURM_SPANK_OPTION_hvd_hvd=(null)", "SLURM_JOB_ID=7",
                     NULL}},

    {"no PMIx here: many tasks", .lacks_pmix = true, REFUSED("hvd-boot"),
     .environment = {"PMIX_NAMESPACE=x", "PMIX_RANK=0", NULL}},
    {"no PMIx here: mpirun -np 2", .lacks_pmix = true, REFUSED("hvd-boot"),
     .environment = {"PMIX_NAMESPACE=x", "PMIX_RANK=0", "OMPI_COMM_WORLD_SIZE=2", NULL}},
    {"no PMIx here: one task of srun", .lacks_pmix = true, ALONE,
     .environment = {"PMIX_NAMESPACE=slurm.pmix.7.0", "PMIX_RANK=0", "SLURM_STEP_ID=0",
                     "SLURM_NTASKS=1", NULL}},
    {"a plugin of another version", .status = HVD_ERR_MISMATCH,
     .text = " was started by hvd 9.8.7, the plugin on this node, but has hvd ",
     .environment = {"HVD_LAUNCH_VERSION=9.8.7", "HOROVOD_RANK=3", "SLURM_STEP_ID=0",
                     "HVD_RENDEZVOUS=host:1:key", NULL}},
    {"an hvdrun of another version", .status = HVD_ERR_MISMATCH,
     .text = " was started by hvd 9.8.7, hvdrun, but has hvd ",
     .environment = {"HVD_LAUNCH_VERSION=9.8.7", "HOROVOD_RANK=3",
                     "HVD_RENDEZVOUS=host:1:key", NULL}},
    {"no PMIx here: mpirun -np 1", .lacks_pmix = true, ALONE,
     .environment = {"PMIX_NAMESPACE=x", "PMIX_RANK=0", "OMPI_COMM_WORLD_SIZE=1", NULL}},
    {"no PMIx here: no launcher", .lacks_pmix = true, ALONE, .environment = {NULL}},
};

static void test_case(const struct launch_case *expected)
{
    enum hvd_launch_kind launch = HVD_LAUNCH_SINGLE;
    struct hvd_error err = {0};
    int status =
        hvd_launch_decide(expected->environment, !expected->lacks_pmix, &launch, &err);
    bool passed = status == expected->status;

    if (passed && status == 0) {
        passed = launch == expected->launch;
    } else if (passed) {
        passed = err.status == status && strstr(err.text, expected->text) != NULL;
    }
    if (!tap_ok(passed, "%s", expected->name)) {
        tap_note("status %d, launch %d, text: %s", status, (int)launch, err.text);
    }
}

/* --- a process that is alone in a job of many --- */

struct alone_case {
    const char *name;
    const char *text; /* a part of the warning; NULL: there is none */
    const char *environment[MOST_VARIABLES];
};

static const struct alone_case alone_cases[] = {
    {"a batch script of four tasks",
     "has 4 tasks",
     {"SLURM_JOB_ID=7", "SLURM_NTASKS=4", "SLURM_JOB_NUM_NODES=2", NULL}},
    {"a batch script with --hvd",
     "srun --hvd",
     {"SLURM_SPANK__SLURM_SPANK_OPTION_hvd_hvd=(null)", "SLURM_JOB_ID=7",
      "SLURM_NTASKS=4", NULL}},
    {"a batch script of two nodes without a number of tasks",
     "has 2 nodes",
     {"SLURM_JOB_ID=7", "SLURM_JOB_NUM_NODES=2", NULL}},
    {"a batch script of a heterogeneous job with one task for each component",
     "has 2 components",
     {"SLURM_JOB_ID=7", "SLURM_HET_SIZE=2", "SLURM_NTASKS=1", "SLURM_JOB_NUM_NODES=1",
      NULL}},
    {"the shell of salloc -n 4",
     "has 4 tasks",
     {"SLURM_JOB_ID=7", "SLURM_STEP_ID=4294967290", "SLURM_NTASKS=4", NULL}},
    {"no Slurm", NULL, {"SLURM_NTASKS=4", NULL}},
    {"the shell of salloc -n 1",
     NULL,
     {"SLURM_JOB_ID=7", "SLURM_NTASKS=1", "SLURM_JOB_NUM_NODES=1", NULL}},
    {"a notebook on one node", NULL, {"SLURM_JOB_ID=7", "SLURM_JOB_NUM_NODES=1", NULL}},
    {"a step of one task in a job of four",
     NULL,
     {"SLURM_JOB_ID=7", "SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=1", "SLURM_NTASKS=4",
      NULL}},
    {"torchrun with one rank",
     NULL,
     {"SLURM_JOB_ID=7", "SLURM_NTASKS=4", "LOCAL_WORLD_SIZE=1", "GROUP_WORLD_SIZE=1",
      NULL}},
    {"mpirun -np 1 without PMIx",
     NULL,
     {"SLURM_JOB_ID=7", "SLURM_NTASKS=4", "OMPI_COMM_WORLD_SIZE=1", NULL}},
    {"mpirun -np 1 with PMIx, which this installation lacks",
     NULL,
     {"SLURM_JOB_ID=7", "SLURM_NTASKS=4", "PMIX_NAMESPACE=x", "PMIX_RANK=0", NULL}},
};

static void test_alone(const struct alone_case *expected)
{
    char text[160] = "";
    bool is_told = hvd_launch_lacks_srun(expected->environment, text, sizeof(text));
    bool passed = is_told == (expected->text != NULL);

    if (passed && is_told) {
        passed = strstr(text, expected->text) != NULL;
    }
    if (!tap_ok(passed, "%s: %s", expected->name, is_told ? "a warning" : "no warning")) {
        tap_note("text: %s", text);
    }
}

int main(void)
{
    for (size_t i = 0; i < sizeof(alone_cases) / sizeof(alone_cases[0]); i++) {
        test_alone(&alone_cases[i]);
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        test_case(&cases[i]);
    }
    return tap_done();
}
