/* SPDX-License-Identifier: Apache-2.0 */
/* libpmix does the serving; what it hands up concerns other nodes, of which there are none,
 * so nearly every answer is "done". */
#include "pmix_boot/hvdrun/server.h"

#include <pmix.h>
#include <pmix_server.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "pmix_boot/launch_env.h"

/* One job per process. The name keeps strangers out: libpmix listens on 127.0.0.1 and believes
 * the user id that a client claims, so who knew the name could speak as any rank. */
static char job_name[sizeof("hvdrun-") + 32];

/* The ranks have ended by then, so that nothing is lost with a server that does not end: libpmix
 * 4.2.2 once waited for ever for a lock of its own. */
static const time_t most_seconds_to_stop = 3;

/* --- job, node and rank facts in PMIx's keys. hvd itself asks only for the job's size and host
 * names; other clients of PMIx ask for the rest. --- */

enum {
    JOB_FACTS = 14,
    RANK_FACTS = 9
};

/* An array that is filled from the front. */
struct facts {
    pmix_info_t *info;
    size_t count;
};

static void add(struct facts *facts, const char *key, const void *value,
                pmix_data_type_t type)
{
    PMIX_INFO_LOAD(&facts->info[facts->count], key, value, type);
    facts->count++;
}

static void add_number(struct facts *facts, const char *key, int value)
{
    uint32_t number = (uint32_t)value;

    add(facts, key, &number, PMIX_UINT32);
}

static void add_rank(struct facts *facts, const char *key, int value)
{
    pmix_rank_t rank = (pmix_rank_t)value;

    add(facts, key, &rank, PMIX_PROC_RANK);
}

/* "0,1,2"; NULL when memory is short. */
static char *list_ranks(int ranks)
{
    size_t room = (size_t)ranks * 11 + 1;
    char *text = malloc(room);
    size_t used = 0;

    for (int rank = 0; text != NULL && rank < ranks; rank++) {
        used += (size_t)snprintf(text + used, room - used, rank > 0 ? ",%d" : "%d", rank);
    }
    return text;
}

static void add_rank_facts(struct facts *facts, const struct hvdrun_job *job, int rank)
{
    pmix_data_array_t *array;
    struct facts own = {NULL, 0};
    uint16_t local = (uint16_t)rank;

    PMIX_DATA_ARRAY_CREATE(array, RANK_FACTS, PMIX_INFO);
    own.info = array->array;
    add_rank(&own, PMIX_RANK, rank);
    add_rank(&own, PMIX_GLOBAL_RANK, rank);
    add_rank(&own, PMIX_APP_RANK, rank);
    add(&own, PMIX_LOCAL_RANK, &local, PMIX_UINT16);
    add(&own, PMIX_NODE_RANK, &local, PMIX_UINT16);
    add_number(&own, PMIX_APPNUM, 0);
    add_number(&own, PMIX_NODEID, 0);
    add(&own, PMIX_HOSTNAME, job->host, PMIX_STRING);
    add_rank(&own, PMIX_NPROC_OFFSET, 0);
    PMIX_LOAD_KEY(facts->info[facts->count].key, PMIX_PROC_DATA);
    facts->info[facts->count].value.type = PMIX_DATA_ARRAY;
    facts->info[facts->count].value.data.darray = array;
    facts->count++;
}

static int add_maps(struct facts *facts, const struct hvdrun_job *job, const char *ranks,
                    struct hvd_error *err)
{
    char *nodes = NULL;
    char *places = NULL;
    pmix_status_t status = PMIx_generate_regex(job->host, &nodes);

    if (status == PMIX_SUCCESS) {
        status = PMIx_generate_ppn(ranks, &places);
    }
    if (status == PMIX_SUCCESS) {
        add(facts, PMIX_NODE_MAP, nodes, PMIX_REGEX);
        add(facts, PMIX_PROC_MAP, places, PMIX_REGEX);
    }
    free(nodes);
    free(places);
    return status == PMIX_SUCCESS
               ? 0
               : hvd_fail(err, HVD_ERR_NET, "PMIx cannot encode the map of ranks: %s",
                          PMIx_Error_string(status));
}

static void add_job_facts(struct facts *facts, const struct hvdrun_job *job,
                          const char *ranks)
{
    add(facts, PMIX_JOBID, job_name, PMIX_STRING);
    add_number(facts, PMIX_UNIV_SIZE, job->ranks);
    add_number(facts, PMIX_MAX_PROCS, job->ranks);
    add_number(facts, PMIX_JOB_SIZE, job->ranks);
    add_number(facts, PMIX_JOB_NUM_APPS, 1);
    add_number(facts, PMIX_NUM_NODES, 1);
    add_number(facts, PMIX_NODE_SIZE, job->ranks);
    add_number(facts, PMIX_LOCAL_SIZE, job->ranks);
    add(facts, PMIX_LOCAL_PEERS, ranks, PMIX_STRING);
    add_rank(facts, PMIX_LOCALLDR, 0);
    add(facts, PMIX_TMPDIR, job->directory, PMIX_STRING);
    add(facts, PMIX_NSDIR, job->directory, PMIX_STRING);
}

/* *info is the caller's, to end with PMIX_INFO_FREE(*info, *count). */
static int make_job_info(const struct hvdrun_job *job, pmix_info_t **info, size_t *count,
                         struct hvd_error *err)
{
    struct facts facts = {NULL, 0};
    size_t room = JOB_FACTS + (size_t)job->ranks;
    char *ranks = list_ranks(job->ranks);
    int status;

    PMIX_INFO_CREATE(facts.info, room);
    if (facts.info == NULL || ranks == NULL) {
        PMIX_INFO_FREE(facts.info, room);
        free(ranks);
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory to describe %d ranks", job->ranks);
    }
    status = add_maps(&facts, job, ranks, err);
    add_job_facts(&facts, job, ranks);
    free(ranks);
    for (int rank = 0; rank < job->ranks; rank++) {
        add_rank_facts(&facts, job, rank);
    }
    if (status < 0) {
        PMIX_INFO_FREE(facts.info, room);
        return status;
    }
    *info = facts.info;
    *count = facts.count;
    return 0;
}

/* --- what libpmix asks of a server -------------------------------------------------------- */

static pmix_status_t on_finalized(const pmix_proc_t *proc, void *object,
                                  pmix_op_cbfunc_t answer, void *context)
{
    (void)proc;
    (void)object;
    answer(PMIX_SUCCESS, context);
    return PMIX_SUCCESS;
}

/* The client stays in PMIx_Abort until the answer; by then the supervisor knows. */
static pmix_status_t on_abort(const pmix_proc_t *proc, void *object, int status,
                              const char *text, pmix_proc_t *procs, size_t count,
                              pmix_op_cbfunc_t answer, void *context)
{
    const struct hvdrun_job *job = object;
    struct hvdrun_abort message = {.rank = (int)proc->rank, .status = status};

    (void)procs;
    (void)count;
    if (job != NULL && PMIX_CHECK_NSPACE(proc->nspace, job_name)) {
        snprintf(message.text, sizeof(message.text), "%s", text != NULL ? text : "");
        (void)!write(job->abort_fd, &message, sizeof(message));
    }
    answer(PMIX_SUCCESS, context);
    return PMIX_SUCCESS;
}

/* All local ranks are in the fence, and there are no others. Their values are in libpmix's
 * store already. */
static pmix_status_t on_fence(const pmix_proc_t *procs, size_t procs_count,
                              const pmix_info_t *info, size_t info_count, char *data,
                              size_t bytes, pmix_modex_cbfunc_t answer, void *context)
{
    (void)procs;
    (void)procs_count;
    (void)info;
    (void)info_count;
    answer(PMIX_SUCCESS, data, bytes, context, NULL, NULL);
    return PMIX_SUCCESS;
}

static pmix_status_t on_remote_value(const pmix_proc_t *proc, const pmix_info_t *info,
                                     size_t count, pmix_modex_cbfunc_t answer,
                                     void *context)
{
    (void)proc;
    (void)info;
    (void)count;
    (void)answer;
    (void)context;
    return PMIX_ERR_NOT_FOUND;
}

static int fail_pmix(const char *what, pmix_status_t status, struct hvd_error *err)
{
    return hvd_fail(err, HVD_ERR_NET, "PMIx cannot %s: %s", what,
                    PMIx_Error_string(status));
}

static int init(const struct hvdrun_job *job, struct hvd_error *err)
{
    pmix_server_module_t module = {
        .client_finalized = on_finalized,
        .abort = on_abort,
        .fence_nb = on_fence,
        .direct_modex = on_remote_value,
    };
    pmix_info_t info[2];
    pmix_status_t status;

    PMIX_INFO_LOAD(&info[0], PMIX_SERVER_TMPDIR, job->directory, PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], PMIX_SYSTEM_TMPDIR, job->directory, PMIX_STRING);
    hvd_launch_need_home();
    status = PMIx_server_init(&module, info, 2);
    PMIX_INFO_DESTRUCT(&info[0]);
    PMIX_INFO_DESTRUCT(&info[1]);
    return status == PMIX_SUCCESS ? 0 : fail_pmix("start a server", status, err);
}

/* Without a callback libpmix answers at once: done, or why not. */
static bool is_done(pmix_status_t status)
{
    return status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED;
}

/* "hvdrun-" and 128 random bits. */
static int choose_name(struct hvd_error *err)
{
    unsigned char random[16];
    size_t used = (size_t)snprintf(job_name, sizeof(job_name), "hvdrun-");

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot choose a random name: %m");
    }
    for (size_t i = 0; i < sizeof(random); i++) {
        used +=
            (size_t)snprintf(job_name + used, sizeof(job_name) - used, "%02x", random[i]);
    }
    return 0;
}

static int register_job(const struct hvdrun_job *job, struct hvd_error *err)
{
    pmix_info_t *info = NULL;
    size_t count = 0;
    pmix_nspace_t name;
    pmix_status_t done;
    int status = make_job_info(job, &info, &count, err);

    if (status < 0) {
        return status;
    }
    PMIX_LOAD_NSPACE(name, job_name);
    done = PMIx_server_register_nspace(name, job->ranks, info, count, NULL, NULL);
    PMIX_INFO_FREE(info, count);
    return is_done(done) ? 0 : fail_pmix("register the job", done, err);
}

static int register_ranks(const struct hvdrun_job *job, struct hvd_error *err)
{
    for (int rank = 0; rank < job->ranks; rank++) {
        pmix_proc_t proc;
        pmix_status_t done;

        PMIX_LOAD_PROCID(&proc, job_name, (pmix_rank_t)rank);
        done = PMIx_server_register_client(&proc, geteuid(), getegid(), (void *)job, NULL,
                                           NULL);
        if (!is_done(done)) {
            return fail_pmix("register a rank", done, err);
        }
    }
    return 0;
}

int hvdrun_server_start(const struct hvdrun_job *job, struct hvd_error *err)
{
    int status = choose_name(err);

    if (status == 0) {
        status = init(job, err);
    }
    if (status < 0) {
        return status;
    }
    status = register_job(job, err);
    if (status == 0) {
        status = register_ranks(job, err);
    }
    if (status < 0) {
        hvdrun_server_stop();
    }
    return status;
}

int hvdrun_server_export(int rank, struct hvdrun_string_list *environment,
                         struct hvd_error *err)
{
    char **items = NULL;
    pmix_proc_t proc;
    pmix_status_t done;
    int status = 0;

    PMIX_LOAD_PROCID(&proc, job_name, (pmix_rank_t)rank);
    done = PMIx_server_setup_fork(&proc, &items);
    if (done != PMIX_SUCCESS) {
        return fail_pmix("prepare a rank's environment", done, err);
    }
    for (int i = 0; items[i] != NULL; i++) {
        char *value = strchr(items[i], '=');

        if (value != NULL && status == 0) {
            *value = '\0';
            status = hvdrun_string_list_set_variable(environment, items[i], value + 1,
                                                     true, err);
        }
        free(items[i]);
    }
    free(items);
    return status;
}

static void *finalize(void *nothing)
{
    PMIx_server_finalize();
    return nothing;
}

void hvdrun_server_stop(void)
{
    struct timespec until;
    pthread_t thread;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += most_seconds_to_stop;
    if (pthread_create(&thread, NULL, finalize, NULL) == 0 &&
        pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until) != 0) {
        pthread_detach(thread);
    }
}
