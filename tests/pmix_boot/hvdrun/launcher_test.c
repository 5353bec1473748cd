/* SPDX-License-Identifier: Apache-2.0 */
/* Which launcher starts the ranks, and the command lines of srun and mpirun. */
#include "pmix_boot/hvdrun/launcher.h"

#include <stdlib.h>
#include <string.h>

#include "pmix_boot/hvdrun/hosts.h"
#include "tests/tap.h"

#define OWN_NAME "n1.cluster"

static const char *const no_slurm[] = {"PATH=/bin", NULL};
static const char *const in_job[] = {"SLURM_JOB_ID=7", NULL};
static const char *const in_shell[] = {"SLURM_JOB_ID=7", "SLURM_STEP_ID=4294967290",
                                       NULL};
static const char *const in_task[] = {"SLURM_JOB_ID=7", "SLURM_STEP_ID=0", NULL};

struct choice_case {
    const char *name;
    int ranks;
    const char *hosts;
    const char *const *environment;
    int status;
    enum hvdrun_launcher launcher;
    const char *text;
};

static const struct choice_case choices[] = {
    {"no hosts", 2, NULL, no_slurm, 0, HVDRUN_LAUNCHER_LOCAL, NULL},
    {"localhost", 2, "localhost:2", no_slurm, 0, HVDRUN_LAUNCHER_LOCAL, NULL},
    {"this machine, short", 2, "n1:2", no_slurm, 0, HVDRUN_LAUNCHER_LOCAL, NULL},
    {"this machine, long", 2, "N1.cluster:2", no_slurm, 0, HVDRUN_LAUNCHER_LOCAL, NULL},
    {"a machine of another domain", 2, "n1.other:2", no_slurm, 0, HVDRUN_LAUNCHER_MPIRUN,
     NULL},
    {"another machine", 2, "n10:2", no_slurm, 0, HVDRUN_LAUNCHER_MPIRUN, NULL},
    {"this and another", 2, "n1,n2", no_slurm, 0, HVDRUN_LAUNCHER_MPIRUN, NULL},
    {"a batch job", 2, NULL, in_job, 0, HVDRUN_LAUNCHER_SRUN, NULL},
    {"a batch job without a number of ranks", 0, NULL, in_job, 0, HVDRUN_LAUNCHER_SRUN,
     NULL},
    {"salloc's shell", 2, NULL, in_shell, 0, HVDRUN_LAUNCHER_SRUN, NULL},
    {"a task of srun", 2, NULL, in_task, 0, HVDRUN_LAUNCHER_LOCAL, NULL},
    {"no number of ranks", 0, NULL, no_slurm, HVD_ERR_ARG, 0,
     "the number of ranks is missing"},
    {"too few slots", 3, "n1:1,n2", no_slurm, HVD_ERR_ARG, 0, "only 2 slots"},
    {"a host without a name", 1, "n1,:2", no_slurm, HVD_ERR_ARG, 0, "host :2: expected"},
    {"slots that are not a number", 1, "n1:many", no_slurm, HVD_ERR_ARG, 0,
     "host n1:many"},
    {"no slots", 1, "n1:0", no_slurm, HVD_ERR_ARG, 0, "host n1:0"},
    {"an empty list", 1, "", no_slurm, HVD_ERR_ARG, 0, "expected HOST"},
};

static char *const command[] = {(char *)"python", (char *)"a b.py", NULL};

static void test_choice(const struct choice_case *expected)
{
    struct hvdrun_options options = {
        .ranks = expected->ranks,
        .hosts = (char *)expected->hosts,
        .command = command,
    };
    struct hvd_error err = {0};
    enum hvdrun_launcher launcher = HVDRUN_LAUNCHER_LOCAL;
    int status = hvdrun_launcher_choose(&options, expected->environment, OWN_NAME,
                                        &launcher, &err);
    bool passed = status == expected->status &&
                  (status == 0 ? launcher == expected->launcher
                               : strstr(err.text, expected->text) != NULL);

    if (!tap_ok(passed, "%s", expected->name)) {
        tap_note("status %d, launcher %d, text: %s", status, (int)launcher, err.text);
    }
}

static void expect_words(const char *name, struct hvdrun_string_list *words, int status,
                         const char *expected)
{
    char text[1024] = "";
    size_t used = 0;

    for (int i = 0; i < words->count; i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
                                 i > 0 ? "|" : "", words->items[i]);
    }
    if (!tap_ok(status == 0 && strcmp(text, expected) == 0, "%s", name)) {
        tap_note("status %d: %s", status, text);
    }
    hvdrun_string_list_finish(words);
}

static void test_srun(void)
{
    struct hvdrun_options plain = {.ranks = 4, .command = command};
    struct hvdrun_options unnumbered = {.command = command};
    struct hvdrun_options full = {
        .ranks = 3,
        .hosts = (char *)"n1:2,n2:2",
        .output_directory = (char *)"logs",
        .has_prefix = true,
        .is_verbose = true,
        .bind = HVD_BIND_CORES,
        .command = command,
    };
    struct hvdrun_options elastic = {
        .ranks = 3,
        .elastic = {.min = 2, .max = 5, .has_reset_limit = true, .reset_limit = 7},
        .command = command,
    };
    struct hvdrun_string_list words = {0};
    int status = hvdrun_launcher_srun(&plain, &words, NULL);

    expect_words("srun", &words, status, "srun|--hvd=on|--ntasks=4|python|a b.py");
    status = hvdrun_launcher_srun(&unnumbered, &words, NULL);
    expect_words("srun chooses the number itself", &words, status,
                 "srun|--hvd=on|python|a b.py");
    status = hvdrun_launcher_srun(&full, &words, NULL);
    expect_words("srun with everything", &words, status,
                 "srun|--hvd=on,verbose,bind=cores|--ntasks=3|--nodelist=n1,n1,n2|"
                 "--distribution=arbitrary|--output=logs/rank.%t/stdout|"
                 "--error=logs/rank.%t/stderr|--label|python|a b.py");
    status = hvdrun_launcher_srun(&elastic, &words, NULL);
    expect_words("srun of an elastic job", &words, status,
                 "srun|--hvd=on,elastic,min=2,max=5,resets=7|--ntasks=3|python|a b.py");
    elastic.elastic.spares = 1;
    status = hvdrun_launcher_srun(&elastic, &words, NULL);
    expect_words(
        "srun of an elastic job with spares", &words, status,
        "srun|--hvd=on,elastic,min=2,spares=1,resets=7|--ntasks=3|python|a b.py");
    elastic.elastic.cooldown_max_s = 1;
    tap_ok(hvdrun_launcher_srun(&elastic, &words, NULL) == HVD_ERR_UNSUPPORTED,
           "srun cannot restart ranks: the option is rejected");
    hvdrun_string_list_finish(&words);
}

static void test_mpirun(void)
{
    static const char *const environment[] = {"HOME=/root", "HVD_IFACE=eth0", "PATH=/bin",
                                              "PATHS=x",    "UCX_TLS=tcp=1",  NULL};
    struct hvdrun_options options = {
        .ranks = 4,
        .hosts = (char *)"n1:2,n2:2",
        .output_directory = (char *)"logs",
        .has_prefix = true,
        .has_time = true,
        .ssh_arguments = (char *)"-p 2222",
        .mpi_arguments = (char *)"  --allow-run-as-root  -q ",
        .command = command,
    };
    struct hvdrun_string_list words = {0};
    int status =
        hvdrun_launcher_mpirun(&options, environment, "/usr/bin/mpirun", &words, NULL);

    expect_words("mpirun", &words, status,
                 "/usr/bin/mpirun|-np|4|--host|n1:2,n2:2|--bind-to|none|-x|HVD_IFACE|-x|"
                 "PATH|-x|UCX_TLS|--tag-output|--timestamp-output|--output-filename|logs|"
                 "--mca|plm_rsh_args|-p 2222|--allow-run-as-root|-q|python|a b.py");
    status =
        hvdrun_launcher_mpirun(&options, environment, "/opt/bin/prterun", &words, NULL);
    expect_words("prterun", &words, status,
                 "/opt/bin/prterun|-np|4|--host|n1:2,n2:2|--bind-to|none|-x|HVD_IFACE|-x|"
                 "PATH|-x|UCX_TLS|--output|tag|--output|timestamp|--output|file=logs|"
                 "--prtemca|plm_ssh_args|-p 2222|--allow-run-as-root|-q|python|a b.py");
}

static void test_hostfile(const char *name, const char *text, const char *expected)
{
    char path[] = "/tmp/hvd-hosts-XXXXXX";
    int fd = mkstemp(path);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    char *hosts = NULL;
    struct hvd_error err = {0};
    int status;

    if (file == NULL) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    fputs(text, file);
    fclose(file);
    status = hvdrun_hostfile_read(path, &hosts, &err);
    if (!tap_ok(status == 0 ? strcmp(hosts, expected) == 0
                            : strstr(err.text, expected) != NULL,
                "host file: %s", name)) {
        tap_note("status %d, hosts %s, text %s", status, hosts, err.text);
    }
    free(hosts);
    remove(path);
}

int main(void)
{
    for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
        test_choice(&choices[i]);
    }
    test_srun();
    test_mpirun();
    test_hostfile("slots", "# ours\nn1 slots=4\n\n  n2  slots=2 # slow\nn3\n",
                  "n1:4,n2:2,n3");
    test_hostfile("colons", "n1:4\nn2:2\n", "n1:4,n2:2");
    test_hostfile("another word", "n1 slots=4\nn2 cores=2\n",
                  "line 2: expected `HOST slots=N`");
    test_hostfile("nothing in it", "# none\n", "names no host");
    return tap_done();
}
