/* SPDX-License-Identifier: Apache-2.0 */
/* Job, node and rank facts in PMIx's keys. hvd itself asks only for the job's size and host
 * names; other clients of PMIx ask for the rest. */
#include "pmix_boot/hvdrun/job_info.h"

#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
                          const char *name_space, const char *ranks)
{
    add(facts, PMIX_JOBID, name_space, PMIX_STRING);
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

int hvdrun_job_info_make(const struct hvdrun_job *job, const char *name_space,
                         pmix_info_t **info, size_t *count, struct hvd_error *err)
{
    struct facts facts = {NULL, 0};
    size_t room = JOB_FACTS + (size_t)job->ranks;
    char *ranks = list_ranks(job->ranks);
    int status;

    PMIX_INFO_CREATE(facts.info, room);
    if (facts.info == NULL || ranks == NULL) {
        free(ranks);
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory to describe %d ranks", job->ranks);
    }
    status = add_maps(&facts, job, ranks, err);
    add_job_facts(&facts, job, name_space, ranks);
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
