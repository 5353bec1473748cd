/* SPDX-License-Identifier: Apache-2.0 */
/* hvd-info --check loads libhvd and the libraries that it needs; other options do not. */
#include "contrib/info/check/check.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectives/hvd.h"
#include "contrib/info/check/fold.h"
#include "contrib/info/check/variables.h"
#include "gpu_binding/base/env.h"

/* The functions of hvd.h that this program looks up. */
typedef int describe_function(char *text, size_t size);
typedef int gather_function(const char *text, int timeout_ms,
                            struct hvd_start_facts **texts, struct hvd_error *err);
typedef void free_function(void *data);

enum {
    TEXT_BYTES = 4096,
    START_S = 60, /* the default of HVD_START_TIMEOUT */
};

/* The fact that decides about the verdict. */
static const char usable[] = "GPU tensors: can be used\n";
static const char unneeded[] =
    "GPU tensors: cannot be used, but no GPU is here and none was asked for\n";
static const char broken[] = "GPU tensors: cannot be used\n";

/* The facts about this rank and its node. */
struct facts {
    char *text; /* one fact a line */
    size_t bytes;
    int start_status; /* 0, or the status with which hvd_init would fail */
};

/* Paths of libhvd relative to the folder of this program: as installed, and in a
 * build. */
static const char *const places[] = {HVD_INFO_LIBHVD, "../../collectives/libhvd.so"};

static void *open_beside(void)
{
    char self[2048], file[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *slash;
    void *handle = NULL;

    if (length < 0) {
        return NULL;
    }
    self[length] = '\0';
    slash = strrchr(self, '/');
    if (slash == NULL) {
        return NULL;
    }
    *slash = '\0';
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && handle == NULL; i++) {
        snprintf(file, sizeof(file), "%s/%s", self, places[i]);
        if (access(file, R_OK) == 0) {
            handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
        }
    }
    return handle;
}

static void *open_library(void)
{
    const char *chosen = getenv(HVD_ENV_LIBRARY);
    void *handle;

    if (chosen != NULL && chosen[0] != '\0') {
        return dlopen(chosen, RTLD_NOW | RTLD_LOCAL);
    }
    handle = open_beside();
    return handle != NULL ? handle : dlopen("libhvd.so", RTLD_NOW | RTLD_LOCAL);
}

/* Looks up a function of libhvd, and copies its address to *function, which is a pointer
 * to a function. */
static int find_function(void *handle, const char *name, void *function,
                         struct hvd_error *err)
{
    void *symbol = handle != NULL ? dlsym(handle, name) : NULL;

    if (symbol == NULL) {
        return hvd_fail(
            err, HVD_ERR_UNSUPPORTED,
            "cannot load libhvd.so (%.300s): install all of hvd, or set %s to "
            "its path",
            dlerror(), HVD_ENV_LIBRARY);
    }
    /* POSIX: symbols and functions have the same representation */
    memcpy(function, &symbol, sizeof(symbol));
    return 0;
}

/* Calls one of libhvd's functions that write a description to text[TEXT_BYTES]; *status
 * is what the function returns. */
static int ask_function(void *handle, const char *name, char *text, int *status,
                        struct hvd_error *err)
{
    describe_function *describe = NULL;
    int found = find_function(handle, name, &describe, err);

    if (found == 0) {
        *status = describe(text, TEXT_BYTES);
    }
    return found;
}

/* --- the facts of this rank --- */

/* Writes how PMIx checks who connects. If it offers several modes, the client chooses
 * one; an attacker would choose native, which is not secure. */
static void write_pmix_security(FILE *out)
{
    const char *modes = getenv(HVD_ENV_PMIX_SECURITY);

    if (modes == NULL) {
        return;
    }
    if (strcmp(modes, "munge") == 0) {
        fputs("PMIx: asks munge for the user of each process that connects\n", out);
    } else {
        fprintf(out,
                "PMIx: believes the user id that a process claims (" HVD_ENV_PMIX_SECURITY
                "=%.60s), so any user of this node can end a step: an administrator "
                "can change that in mpi.conf, see security.md\n",
                modes);
    }
}

/* Chooses the fact about GPU tensors. They have to be usable only where there is a GPU,
 * or where the job has asked for one. */
static int judge_gpus(hvd_info_lookup lookup, int gpu_status, const char **fact,
                      struct hvd_error *err)
{
    struct hvd_topology_source source = {0};
    struct hvd_topology topology;
    struct hvd_info_job job;
    int status;

    hvd_info_job_read(lookup, &job);
    if (gpu_status == 0 || hvd_info_job_has_gpus(&job)) {
        *fact = gpu_status == 0 ? usable : broken;
        return 0;
    }
    status = hvd_topology_load(&topology, &source, err);
    if (status < 0) {
        return status;
    }
    *fact = topology.gpu_count > 0 ? broken : unneeded;
    hvd_topology_finish(&topology);
    return 0;
}

static int collect_facts(void *handle, hvd_info_lookup lookup, struct facts *facts,
                         struct hvd_error *err)
{
    char start[TEXT_BYTES] = "";
    char gpus[TEXT_BYTES] = "";
    const char *gpu_fact = NULL;
    int gpu_status = 0;
    FILE *out;
    int status =
        ask_function(handle, "hvd_start_describe", start, &facts->start_status, err);

    if (status == 0) {
        status = ask_function(handle, "hvd_gpu_describe", gpus, &gpu_status, err);
    }
    if (status == 0) {
        status = judge_gpus(lookup, gpu_status, &gpu_fact, err);
    }
    if (status != 0) {
        return status;
    }
    out = open_memstream(&facts->text, &facts->bytes);
    if (out == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the facts of this node");
    }
    fprintf(out, "start: %s%s\n",
            facts->start_status == 0 ? "by " : "impossible: ", start);
    write_pmix_security(out);
    hvd_info_variables_print(lookup, out);
    fprintf(out, "%s%s", gpus, gpu_fact);
    return fclose(out) == 0
               ? 0
               : hvd_fail(err, HVD_ERR_NOMEM, "no memory for the facts of this node");
}

/* --- the facts of all ranks --- */

static int print_facts(const struct hvd_info_nodes *nodes, const char *const *texts,
                       struct hvd_error *err)
{
    int status = hvd_info_fold_print(nodes, texts, stdout, err);

    return status < 0 || fflush(stdout) == 0
               ? status
               : hvd_fail(err, HVD_ERR_SYS, "cannot write to standard output: %m");
}

/* Prints the facts of this rank, each with the node's name, where ranks do not find each
 * other. */
static int print_own(const struct facts *facts, struct hvd_error *err)
{
    char host[256] = "";
    const char *const hosts[] = {host};
    const char *const texts[] = {facts->text};
    struct hvd_info_nodes nodes = {0};
    int status;

    if (gethostname(host, sizeof(host) - 1) < 0) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot find the name of this node: %m");
    }
    status = hvd_info_nodes_init(&nodes, hosts, 1, err);
    if (status == 0) {
        status = print_facts(&nodes, texts, err);
    }
    hvd_info_nodes_finish(&nodes);
    return status;
}

/* Fails if GPU tensors cannot be used on some nodes although they should, with a sentence
 * that names these nodes. */
static int check_gpus(const struct hvd_info_nodes *nodes, const char *const *texts,
                      struct hvd_error *err)
{
    int *ranks = calloc((size_t)nodes->ranks, sizeof(*ranks));
    char *where = NULL;
    size_t bytes;
    FILE *out = open_memstream(&where, &bytes);
    int count = 0;
    int status = 0;

    for (int rank = 0; ranks != NULL && rank < nodes->ranks; rank++) {
        if (strstr(texts[rank], broken) != NULL) {
            ranks[count++] = rank;
        }
    }
    if (ranks == NULL || out == NULL) {
        status = hvd_fail(err, HVD_ERR_NOMEM, "no memory for %d ranks", nodes->ranks);
    } else if (count > 0) {
        status = hvd_info_nodes_print(nodes, ranks, count, out, err);
    }
    if (out != NULL) {
        fclose(out);
    }
    if (status == 0 && count > 0) {
        status =
            hvd_fail(err, HVD_ERR_UNSUPPORTED, "GPU tensors cannot be used on %s", where);
    }
    free(where);
    free(ranks);
    return status;
}

/* Prints the facts and the verdict on rank 0; those of a lone rank without its node. */
static int report(const struct hvd_start_facts *all, struct hvd_error *err)
{
    struct hvd_info_nodes nodes = {0};
    int status;

    if (all->rank > 0) {
        return 0;
    }
    status = hvd_info_nodes_init(&nodes, all->hosts, all->size, err);
    if (status == 0 && all->size == 1) {
        fputs(all->texts[0], stdout);
    } else if (status == 0) {
        status = print_facts(&nodes, all->texts, err);
    }
    if (status == 0) {
        status = check_gpus(&nodes, all->texts, err);
    }
    if (status != 0) {
        printf("verdict: bad\n");
    } else {
        printf("verdict: good, %d rank%s\n", all->size,
               all->size == 1 ? " starts" : "s find each other");
    }
    hvd_info_nodes_finish(&nodes);
    return status;
}

/* The time limit for finding the other ranks, in ms, as in hvd_init. */
static int read_limit(hvd_info_lookup lookup)
{
    const char *text = lookup(HVD_ENV_START_TIMEOUT);
    long seconds = text != NULL ? strtol(text, NULL, 10) : 0;

    return 1000 * (int)(seconds > 0 && seconds <= INT_MAX / 1000 ? seconds : START_S);
}

/* Gives the facts to the other ranks and reports those of all ranks. If that fails,
 * prints the facts of this rank alone. */
static int exchange_facts(void *handle, const struct facts *facts, int timeout_ms,
                          struct hvd_error *err)
{
    gather_function *gather = NULL;
    free_function *free_texts = NULL;
    struct hvd_start_facts *all = NULL;
    struct hvd_error cause = {0};
    int status = find_function(handle, "hvd_start_gather", &gather, err);

    if (status == 0) {
        status = find_function(handle, "hvd_free", &free_texts, err);
    }
    if (status != 0) {
        return status;
    }
    status = gather(facts->text, timeout_ms, &all, &cause);
    if (status == 0) {
        status = report(all, err);
        free_texts(all);
        return status;
    }
    status = print_own(facts, err);
    return status == 0 ? hvd_fail(err, HVD_ERR_STATE, "hvd.init() would fail here: %s",
                                  cause.text)
                       : status;
}

int hvd_info_check(hvd_info_lookup lookup, struct hvd_error *err)
{
    void *handle = open_library();
    struct facts facts = {0};
    int status = collect_facts(handle, lookup, &facts, err);

    if (status == 0 && facts.start_status == 0) {
        status = exchange_facts(handle, &facts, read_limit(lookup), err);
    } else if (status == 0) {
        status = print_own(&facts, err);
        status = status == 0 ? hvd_fail(err, HVD_ERR_STATE, "hvd.init() would fail here")
                             : status;
    }
    free(facts.text);
    return status;
}
