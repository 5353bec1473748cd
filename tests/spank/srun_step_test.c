/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the plugin inside a stand-in for srun: the launch of a step, and steps inside
 * steps. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"
#include "tests/spank/srun_side.h"
#include "tests/tap.h"

static const char *service_path;
static const char *unsettable; /* the variable for which setenv fails; NULL: none */

/* Replaces the C library's function: the plugin's symbols are looked up in this program
 * first. */
int setenv(const char *name, const char *value, int overwrite)
{
    int (*real)(const char *, const char *, int) =
        (int (*)(const char *, const char *, int))dlsym(RTLD_NEXT, "setenv");

    if (unsettable != NULL && strcmp(name, unsettable) == 0) {
        errno = ENOMEM;
        return -1;
    }
    return real(name, value, overwrite);
}

static int launch(struct fake_plugin *plugin, const char *mpi, unsigned tasks)
{
    side_enter_job();
    side_start(plugin, NULL);
    side_type_hvd(NULL);
    plugin->init_post_opt(NULL, 0, NULL);
    setenv("SLURM_MPI_TYPE", mpi, 1);
    fake_step.tasks = tasks;
    return plugin->local_user_init(NULL, 0, NULL);
}

/* Needs a plugin that has launched a step. */
static void test_key(struct fake_plugin *plugin)
{
    const char *now = getenv(HVD_ENV_STEP_KEY);
    char key[65] = "";

    if (now != NULL) {
        snprintf(key, sizeof(key), "%s", now);
    }
    tap_ok(strlen(key) == 64 && strspn(key, "0123456789abcdef") == 64,
           "the tasks of a step get its key");
    plugin->local_user_init(NULL, 0, NULL);
    tap_ok(side_has_variable(HVD_ENV_STEP_KEY, key),
           "all components of a step get the same key");
    fake_unload(plugin);
    (void)launch(plugin, "pmix", 8);
    tap_ok(!side_has_variable(HVD_ENV_STEP_KEY, key), "another step gets another key");
}

/* True if the tasks get the address of a service, "PORT:KEY", with the key in hexadecimal
 * digits. */
static bool has_service(void)
{
    const char *service = getenv(HVD_ENV_RENDEZVOUS_STEP);
    const char *key = service != NULL ? strchr(service, ':') : NULL;

    return key != NULL && atoi(service) > 0 && strlen(key + 1) == 64;
}

/* If the service's program is not installed yet, the test expects the errors that say
 * so. */
static void test_service(struct fake_plugin *plugin)
{
    const bool is_installed = access(service_path, X_OK) == 0;
    const char *now;
    char service[128] = "";
    int status = launch(plugin, "none", 8);

    tap_ok(
        is_installed ? status == 0 && has_service()
                     : status < 0 && strstr(fake_messages, "cannot start ") &&
                           strstr(getenv(HVD_ENV_LAUNCH_ERROR), "hvd-rendezvous"),
        "a step without PMIx gets hvd's service, or is refused and its tasks are told");
    now = getenv(HVD_ENV_RENDEZVOUS_STEP);
    snprintf(service, sizeof(service), "%s", now != NULL ? now : "");
    plugin->local_user_init(NULL, 0, NULL);
    tap_ok(!is_installed || side_has_variable(HVD_ENV_RENDEZVOUS_STEP, service),
           "all components of a step get the same service");
    plugin->exit(NULL, 0, NULL);
    fake_unload(plugin);
    tap_ok(launch(plugin, "pmix", 8) == 0 && has_service() == is_installed,
           "a step with PMIx gets the service, too, if it is installed");
    tap_ok(is_installed == (strstr(fake_messages, "MASTER_ADDR") == NULL),
           "without the service, srun names the variables that torch.distributed lacks, "
           "and the reason");
    plugin->exit(NULL, 0, NULL);
    fake_unload(plugin);
}

/* Returns a socket on which this process listens, as a service would, and writes its
 * address to the file of --hvd=elastic,meet=FILE. */
static int serve(int file)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t bytes = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, bytes) != 0 ||
        listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &bytes) != 0 ||
        dprintf(file, "127.0.0.1:%u:key\n", (unsigned)ntohs(address.sin_port)) < 0) {
        printf("Bail out! cannot listen on 127.0.0.1\n");
        exit(EXIT_FAILURE);
    }
    return listener;
}

static void test_no_memory(void)
{
    char path[] = "/tmp/hvd-meet.XXXXXX";
    char words[64];
    struct fake_plugin plugin;
    int file = mkstemp(path);
    int listener = serve(file);

    snprintf(words, sizeof(words), "elastic,meet=%s", path);
    side_enter_job();
    side_start(&plugin, NULL);
    side_type_hvd(words);
    plugin.init_post_opt(NULL, 0, NULL);
    unsettable = HVD_ENV_RENDEZVOUS_STEP;
    tap_ok(plugin.local_user_init(NULL, 0, NULL) < 0 &&
               strstr(fake_messages, "cannot set " HVD_ENV_RENDEZVOUS_STEP
                                     " for the tasks of this step: Cannot allocate "
                                     "memory: free memory"),
           "a step whose tasks cannot learn the service's address is refused with the "
           "reason");
    unsettable = NULL;
    fake_unload(&plugin);
    close(listener);
    close(file);
    unlink(path);
}

static void test_launch(void)
{
    struct fake_plugin plugin;

    tap_ok(launch(&plugin, "pmix", 8) == 0 &&
               side_has_variable(HVD_ENV_LAUNCH_ERROR, NULL),
           "a step with PMIx starts");
    test_key(&plugin);
    fake_unload(&plugin);
    test_service(&plugin);
    side_enter_job();
    fake_type_option("ntasks", "1");
    side_start(&plugin, NULL);
    side_type_hvd(NULL);
    fake_step.tasks = 1;
    tap_ok(plugin.local_user_init(NULL, 0, NULL) == 0 &&
               side_has_variable(HVD_ENV_RENDEZVOUS_STEP, NULL),
           "a single task needs no PMIx and no service");
    fake_unload(&plugin);
    tap_ok(launch(&plugin, "pmix", 9) < 0 && strstr(fake_messages, "--ntasks-per-node=4"),
           "a step with more tasks than GPUs is refused");
    fake_unload(&plugin);
    tap_ok(launch(&plugin, "pmix", 2) < 0 && strstr(fake_messages, "--ntasks-per-node=4"),
           "a step with another number of tasks than hvd requested is refused");
    fake_unload(&plugin);
    side_enter_job();
    fake_type_option("gres", "none");
    side_start(&plugin, NULL);
    side_type_hvd(NULL);
    setenv("SLURM_MPI_TYPE", "pmix", 1);
    fake_step.tasks = 64;
    tap_ok(plugin.local_user_init(NULL, 0, NULL) == 0,
           "a step without GPUs may have any number of tasks");
    fake_unload(&plugin);
}

static void test_inherited_layout(void)
{
    struct fake_plugin plugin;

    side_enter_job();
    setenv("SLURM_NTASKS_PER_NODE", "4", 1);
    setenv(HVD_ENV_DEFAULTS, "OMP_NUM_THREADS,SLURM_NTASKS_PER_NODE", 1);
    setenv("SLURM_STEP_ID", "4294967291", 1);
    side_start(&plugin, NULL);
    tap_ok(side_has_variable("SLURM_NTASKS_PER_NODE", "4"),
           "a batch script that a task submitted keeps its own number of tasks per node");
    fake_unload(&plugin);
    setenv("SLURM_STEP_ID", "3", 1);
    setenv(HVD_ENV_DEFAULTS, "OMP_NUM_THREADS", 1);
    side_start(&plugin, NULL);
    tap_ok(side_has_variable("SLURM_NTASKS_PER_NODE", "4"),
           "an srun inside a rank keeps a number of tasks per node that the user chose");
    fake_unload(&plugin);
    setenv(HVD_ENV_DEFAULTS, "OMP_NUM_THREADS,SLURM_NTASKS_PER_NODE", 1);
    side_start(&plugin, NULL);
    tap_ok(side_has_variable("SLURM_NTASKS_PER_NODE", NULL),
           "an srun inside a rank drops the one that hvd set, before it reads options");
    fake_unload(&plugin);
}

static void test_nested(void)
{
    struct fake_plugin plugin;

    side_enter_job();
    setenv(HVD_ENV_LAUNCH, "1", 1);
    setenv(HVD_ENV_LAUNCH_VERSION, "9.8.7", 1);
    setenv(HVD_ENV_RANK, "3", 1);
    setenv(HVD_ENV_NIC, "mlx5_0:1", 1);
    setenv(HVD_ENV_UCX_NET_DEVICES, "mlx5_0:1", 1);
    setenv("RANK", "3", 1);
    setenv(HVD_ENV_AGENT_PLAN, "1.0 0;0 - -", 1);
    setenv("OMP_NUM_THREADS", "10", 1);
    setenv("MASTER_PORT", "29500", 1);
    setenv(HVD_ENV_DEFAULTS, "RANK,OMP_NUM_THREADS,MKL_NUM_THREADS", 1);
    setenv(HVD_ENV_EXPORTED, "RANK:330ca589", 1);
    setenv(HVD_ENV_RENDEZVOUS, "n1:1:key", 1);
    setenv(HVD_ENV_RENDEZVOUS_STEP, "1:key", 1);
    setenv("SLURM_STEP_ID", "0", 1);
    setenv("SLURM_CPU_BIND", "quiet,mask_cpu:0x1", 1);
    fake_type_option("cpu-bind", "quiet,mask_cpu:0x1");
    setenv("SLURM_MPI_TYPE", "none", 1);
    fake_type_option("mpi", "none");
    side_start(&plugin, NULL);
    tap_ok(side_has_variable(HVD_ENV_RENDEZVOUS, NULL) &&
               side_has_variable(HVD_ENV_RENDEZVOUS_STEP, NULL) &&
               side_has_variable(HVD_ENV_EXPORTED, NULL) &&
               side_has_variable(HVD_ENV_LAUNCH_VERSION, NULL) &&
               side_has_variable(HVD_ENV_RANK, "3"),
           "an srun without --hvd inside a rank does not use that rank's service");
    side_type_hvd(NULL);
    tap_ok(side_has_variable(HVD_ENV_RANK, NULL) &&
               side_has_variable(HVD_ENV_LAUNCH, NULL) &&
               side_has_variable(HVD_ENV_AGENT_PLAN, NULL) &&
               side_has_variable(HVD_ENV_UCX_NET_DEVICES, NULL),
           "an srun inside a rank drops that rank's variables");
    tap_ok(
        side_has_variable("RANK", NULL) && side_has_variable("OMP_NUM_THREADS", NULL) &&
            side_has_variable(HVD_ENV_DEFAULTS, NULL) &&
            side_has_variable("MASTER_PORT", "29500"),
        "an srun inside a rank drops torch's variables, except those that the user set");
    tap_ok(side_has_option("cpu-bind", NULL) && side_has_variable("SLURM_CPU_BIND", NULL),
           "an srun inside a rank drops the CPU mask that slurmstepd gave to that rank");
    tap_ok(side_has_option("mpi", "pmix"),
           "an srun inside a rank drops the MPI type that Slurm chose for that rank");
    fake_unload(&plugin);

    side_enter_job();
    setenv(HVD_ENV_LAUNCH, "1", 1);
    setenv(HVD_ENV_NIC, "mlx5_0:1", 1);
    setenv(HVD_ENV_UCX_NET_DEVICES, "mlx5_3:1", 1);
    side_start(&plugin, NULL);
    side_type_hvd(NULL);
    tap_ok(side_has_variable(HVD_ENV_NIC, NULL) &&
               side_has_variable(HVD_ENV_UCX_NET_DEVICES, "mlx5_3:1"),
           "an srun inside a rank keeps a network card that the user chose");
    fake_unload(&plugin);

    side_enter_job();
    setenv(HVD_ENV_RANK, "3", 1);
    setenv("SLURM_STEP_ID", "0", 1);
    setenv("SLURM_CPU_BIND", "quiet,mask_cpu:0x1", 1);
    setenv("SLURM_MPI_TYPE", "none", 1);
    fake_type_option("cpu-bind", "cores");
    fake_type_option("mpi", "pmi2");
    side_start(&plugin, NULL);
    side_type_hvd(NULL);
    tap_ok(side_has_variable(HVD_ENV_RANK, "3") && side_has_option("cpu-bind", "cores") &&
               side_has_option("mpi", "pmi2"),
           "options that the user set inside a step are kept");
    fake_unload(&plugin);
}

static void test_slurm_without_pmix(void)
{
    struct fake_plugin plugin;

    side_install_pmix(false);
    tap_ok((launch(&plugin, "none", 8) == 0) == (access(service_path, X_OK) == 0) &&
               side_has_option("mpi", NULL),
           "a Slurm without PMIx is not asked for it");
    side_install_pmix(true);
    plugin.exit(NULL, 0, NULL);
    fake_unload(&plugin);
}

static void test_async(void)
{
    static const struct {
        char *words, *mpi, *tasks;
        const char *text; /* a part of the message; NULL: no message */
        bool is_refused;
        const char *promise;
    } cases[] = {
        {"elastic", NULL, "8", "of --hvd=elastic with it: leave out --async", true,
         "an elastic step with --async is refused"},
        {"on", "none", "8", "leave out --async, or use --mpi=pmix", true,
         "a step with --async and without PMIx is refused"},
        {"on", "pmix", "8", "MASTER_PORT stay unset in this step, because --async", false,
         "with --async and PMIx, srun says that MASTER_ADDR is unset"},
        {"on", "none", "1", NULL, false, "a single task with --async needs no service"},
    };
    struct fake_plugin plugin;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int status;

        side_enter_job();
        fake_type_option("async", "set");
        fake_type_option("ntasks", cases[i].tasks);
        if (cases[i].mpi != NULL) {
            fake_type_option("mpi", cases[i].mpi);
        }
        side_start(&plugin, NULL);
        side_type_hvd(cases[i].words);
        status = side_status_of_check(&plugin);
        tap_ok(status == (cases[i].is_refused ? EXIT_FAILURE : -1) &&
                   (cases[i].text != NULL ? strstr(fake_messages, cases[i].text) != NULL
                                          : fake_messages[0] == '\0'),
               "%s", cases[i].promise);
        tap_ok(plugin.local_user_init(NULL, 0, NULL) == 0 &&
                   side_has_variable(HVD_ENV_RENDEZVOUS_STEP, NULL),
               "and no service is started");
        fake_unload(&plugin);
    }
}

static void test_components(void)
{
    static const struct {
        const char *first, *second;
        bool is_refused;
        const char *promise;
    } cases[] = {
        {NULL, "on", true, "--hvd in the second component alone is refused"},
        {"on", "off", true, "--hvd=off in the second component alone is refused"},
        {"on", NULL, false, "--hvd in the first component holds for the second, too"},
        {"off", NULL, false, "so does --hvd=off"},
        {NULL, NULL, false, "a heterogeneous step without --hvd is not refused"},
    };
    struct fake_plugin plugin;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int status;

        side_enter_job();
        side_start(&plugin, NULL);
        if (cases[i].first != NULL) {
            side_type_hvd(cases[i].first);
        }
        plugin.init_post_opt(NULL, 0, NULL);
        if (cases[i].second != NULL) {
            side_type_hvd(cases[i].second);
        }
        status = side_status_of_check(&plugin);
        tap_ok(cases[i].is_refused
                   ? status == EXIT_FAILURE &&
                         strstr(fake_messages, "holds for all components") != NULL
                   : status == -1 && fake_messages[0] == '\0',
               "%s", cases[i].promise);
        plugin.exit(NULL, 0, NULL);
        fake_unload(&plugin);
    }
}

static void test_hint(void)
{
    struct fake_plugin plugin;

    side_enter_job();
    side_start(&plugin, NULL);
    side_type_hvd(NULL);
    plugin.init_post_opt(NULL, 0, NULL);
    plugin.exit(NULL, 0, NULL);
    tap_ok(
        strstr(fake_messages, "4 tasks per node") != NULL,
        "if Slurm refuses a step, a hint names the number of tasks that hvd requested");
    fake_unload(&plugin);
}

int main(int count, char **arguments)
{
    side_begin(count, arguments);
    service_path = count > 3 ? arguments[3] : "";
    test_launch();
    test_no_memory();
    test_nested();
    test_inherited_layout();
    test_slurm_without_pmix();
    test_async();
    test_components();
    test_hint();
    side_install_pmix(false);
    return tap_done();
}
