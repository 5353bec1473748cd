/* SPDX-License-Identifier: Apache-2.0 */
/* The hosts of LSF, PBS and Grid Engine: their lists, and what becomes of the options. */
#include "pmix_boot/hvdrun/allocation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmix_boot/hvdrun/batch_hosts.h"
#include "tests/tap.h"

struct list_case {
    const char *name;
    enum hvdrun_batch_form form;
    const char *text;
    const char *expected; /* hosts and slots, or the error */
};

#define GRID_LINE "n1.cluster 4 all.q@n1.cluster UNDEFINED\n"

static const struct list_case lists[] = {
    {"a line for each slot", HVDRUN_HOST_PER_SLOT, "n1\nn1\nn2\nn2\n", "n1:2 n2:2"},
    {"slots in turns", HVDRUN_HOST_PER_SLOT, "n1\nn2\nn1\nn2\nn1", "n1:3 n2:2"},
    {"empty lines and carriage returns", HVDRUN_HOST_PER_SLOT, "\nn1\r\n\n n2 \n",
     "n1:1 n2:1"},
    {"lines of Grid Engine", HVDRUN_HOST_AND_SLOTS,
     GRID_LINE "n2.cluster 2 all.q@n2.cluster <NULL>\n", "n1.cluster:4 n2.cluster:2"},
    {"a host in two queues", HVDRUN_HOST_AND_SLOTS,
     GRID_LINE "n1.cluster 3 fast.q@n1.cluster UNDEFINED\n", "n1.cluster:7"},
    {"pairs of LSF", HVDRUN_HOST_SLOT_PAIRS, "n1 4 n2 2 n1 1", "n1:5 n2:2"},
    {"two words where one host is expected", HVDRUN_HOST_PER_SLOT, "n1\nn2 4\n",
     "LIST line 2: expected a host name, found 'n2 4'"},
    {"a host without slots", HVDRUN_HOST_AND_SLOTS, GRID_LINE "n2\n",
     "LIST line 2: expected a host name and its number of slots, found 'n2'"},
    {"slots that are not a number", HVDRUN_HOST_AND_SLOTS, "n1 4x q\n",
     "found 'n1 4x q'"},
    {"no slots", HVDRUN_HOST_SLOT_PAIRS, "n1 0",
     "LIST line 1: expected host names, each followed by its number of slots"},
    {"a pair that is cut off", HVDRUN_HOST_SLOT_PAIRS, "n1 4 n2", "found 'n1 4 n2'"},
    {"a host name that -H would read as two", HVDRUN_HOST_PER_SLOT, "n1,n2\n",
     "expected a host name"},
    {"more slots than a host has", HVDRUN_HOST_SLOT_PAIRS, "n1 65536 n1 1", "line 1"},
    {"an empty list", HVDRUN_HOST_PER_SLOT, "\n", "LIST names no host"},
};

static void test_list(const struct list_case *list)
{
    struct hvdrun_host *hosts = NULL;
    struct hvd_error err = {0};
    int count = hvdrun_batch_hosts_parse("LIST", list->text, list->form, &hosts, &err);
    char text[256] = "";
    size_t used = 0;

    for (int i = 0; i < count; i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s:%d",
                                 i > 0 ? " " : "", hosts[i].name, hosts[i].slots);
    }
    if (!tap_ok(count > 0 ? strcmp(text, list->expected) == 0
                          : strstr(err.text, list->expected) != NULL,
                "%s", list->name)) {
        tap_note("count %d, hosts %s, text %s", count, text, err.text);
    }
    if (count > 0) {
        free(hosts);
    }
}

struct option_case {
    const char *name;
    const char *environment[5];
    const char *given; /* the value of -H */
    int ranks;
    int ranks_expected;
    const char *hosts; /* expected; NULL: none */
    const char *error; /* NULL: none */
};

static const struct option_case options_of[] = {
    {"no batch system", {"PATH=/bin"}, NULL, 2, 2, NULL, NULL},
    {"LSF", {"LSB_JOBID=7", "LSB_MCPU_HOSTS=n1 4 n2 4 "}, NULL, 8, 8, "n1:4,n2:4", NULL},
    {"only the hosts that the ranks need",
     {"LSB_MCPU_HOSTS=n1 4 n2 4"},
     NULL,
     4,
     4,
     "n1:4",
     NULL},
    {"all slots without -np",
     {"LSB_MCPU_HOSTS=n1 4 n2 2"},
     NULL,
     0,
     6,
     "n1:4,n2:2",
     NULL},
    {"one host takes any number of ranks",
     {"LSB_MCPU_HOSTS=n1 1"},
     NULL,
     4,
     4,
     "n1:4",
     NULL},
    {"several hosts have no more ranks than slots",
     {"LSB_MCPU_HOSTS=n1 1 n2 1"},
     NULL,
     4,
     4,
     NULL,
     "-np 4: LSB_MCPU_HOSTS has only 2 slots on 2 hosts"},
    {"the user's hosts", {"LSB_MCPU_HOSTS=n1 4"}, "n7:2", 2, 2, "n7:2", NULL},
    {"an empty variable", {"PBS_NODEFILE="}, NULL, 2, 2, NULL, NULL},
    {"Slurm's job", {"SLURM_JOB_ID=7", "LSB_MCPU_HOSTS=n1 4"}, NULL, 2, 2, NULL, NULL},
    {"a rank of mpirun",
     {"OMPI_COMM_WORLD_SIZE=2", "LSB_MCPU_HOSTS=n1 4 n2 4"},
     NULL,
     8,
     8,
     NULL,
     NULL},
    {"a file that a container lacks",
     {"PBS_NODEFILE=/nonexistent/nodes"},
     NULL,
     2,
     2,
     NULL,
     NULL},
    {"a file that is not there, without -np",
     {"PBS_NODEFILE=/nonexistent/nodes"},
     NULL,
     0,
     0,
     NULL,
     "cannot read PBS_NODEFILE /nonexistent/nodes, which lists the hosts of this job: No "
     "such file"},
};

static char *const command[] = {(char *)"train", NULL};

static void test_options(const struct option_case *expected)
{
    struct hvdrun_options options = {
        .ranks = expected->ranks,
        .hosts = expected->given != NULL ? strdup(expected->given) : NULL,
        .command = command,
    };
    struct hvd_error err = {0};
    int status = hvdrun_allocation_apply(&options, expected->environment, &err);
    bool has_hosts = options.hosts != NULL && expected->hosts != NULL &&
                     strcmp(options.hosts, expected->hosts) == 0;
    bool passed =
        (has_hosts || (options.hosts == NULL && expected->hosts == NULL)) &&
        options.ranks == expected->ranks_expected &&
        (expected->error != NULL ? status < 0 && strstr(err.text, expected->error) != NULL
                                 : status == 0);

    if (!tap_ok(passed, "%s", expected->name)) {
        tap_note("status %d, hosts %s, ranks %d, text %s", status, options.hosts,
                 options.ranks, err.text);
    }
    free(options.hosts);
}

static void test_file(const char *variable, const char *text, const char *hosts)
{
    char path[] = "/tmp/hvd-allocation-XXXXXX";
    char item[64];
    const char *const environment[] = {item, NULL};
    struct hvdrun_options options = {.ranks = 3, .command = command};
    struct hvd_error err = {0};
    int fd = mkstemp(path);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    int status;

    if (file == NULL) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    fputs(text, file);
    fclose(file);
    snprintf(item, sizeof(item), "%s=%s", variable, path);
    status = hvdrun_allocation_apply(&options, environment, &err);
    if (!tap_ok(hosts != NULL ? status == 0 && strcmp(options.hosts, hosts) == 0
                              : status < 0 && strstr(err.text, item) == NULL &&
                                    strstr(err.text, path) != NULL,
                "%s: %s", variable, hosts != NULL ? hosts : "an error with the file")) {
        tap_note("status %d, hosts %s, text %s", status, options.hosts, err.text);
    }
    free(options.hosts);
    remove(path);
}

int main(void)
{
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        test_list(&lists[i]);
    }
    for (size_t i = 0; i < sizeof(options_of) / sizeof(options_of[0]); i++) {
        test_options(&options_of[i]);
    }
    test_file("LSB_DJOB_HOSTFILE", "n1\nn1\nn2\n", "n1:2,n2:1");
    test_file("PBS_NODEFILE", "n1\nn2\nn1\nn2\n", "n1:2,n2:2");
    test_file("PE_HOSTFILE", GRID_LINE, "n1.cluster:4");
    test_file("PBS_NODEFILE", "n1\nn2 4\n", NULL);
    test_file("PBS_NODEFILE", "", NULL);
    return tap_done();
}
