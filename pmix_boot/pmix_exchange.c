/* SPDX-License-Identifier: Apache-2.0 */
/* Init, put, commit, collect, finalize; and the names of those who did not come. */
#include "pmix_boot/pmix_exchange.h"

#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/env.h"
#include "pmix_boot/pmix_collect.h"

static int fail_open(pmix_status_t status, struct hvd_error *err)
{
    const char *rank = getenv(HVD_ENV_PMIX_RANK);

    return hvd_fail(err, HVD_ERR_NET,
                    "rank %s cannot reach the PMIx server of its launcher (%s): the "
                    "launcher may be gone, or its directory is not visible in this "
                    "container",
                    rank != NULL ? rank : "?", PMIx_Error_string(status));
}

/* A number that the launcher tells about the job; fallback when it does not. */
static int get_number(const pmix_proc_t *self, const char *key, int fallback)
{
    pmix_proc_t job = *self;
    pmix_value_t *value = NULL;
    int number = fallback;

    job.rank = PMIX_RANK_WILDCARD;
    if (PMIx_Get(&job, key, NULL, 0, &value) != PMIX_SUCCESS) {
        return fallback;
    }
    if (value->type == PMIX_UINT32) {
        number = (int)value->data.uint32;
    }
    PMIX_VALUE_RELEASE(value);
    return number;
}

static int publish(const char *key, const struct hvd_blob *mine, struct hvd_error *err)
{
    pmix_value_t value = {.type = PMIX_BYTE_OBJECT};
    pmix_status_t status;

    value.data.bo.bytes = mine->data;
    value.data.bo.size = mine->bytes;
    status = PMIx_Put(PMIX_GLOBAL, key, &value);
    if (status == PMIX_SUCCESS) {
        status = PMIx_Commit();
    }
    return status == PMIX_SUCCESS
               ? 0
               : hvd_fail(err, HVD_ERR_NET, "cannot publish %zu bytes through PMIx: %s",
                          mine->bytes, PMIx_Error_string(status));
}

/* " (on n2)", or nothing when the launcher does not say where rank is. */
static void append_host(const pmix_proc_t *self, int rank, char *text, size_t bytes)
{
    pmix_proc_t peer = *self;
    pmix_value_t *value = NULL;
    size_t used = strlen(text);

    peer.rank = (pmix_rank_t)rank;
    if (PMIx_Get(&peer, PMIX_HOSTNAME, NULL, 0, &value) != PMIX_SUCCESS) {
        return;
    }
    if (value->type == PMIX_STRING) {
        snprintf(text + used, bytes - used, " (on %s)", value->data.string);
    }
    PMIX_VALUE_RELEASE(value);
}

/* "rank 1 (on n2), rank 3 (on n2) and 5 more"; room for names is limited by the error. */
static void list_missing(const struct hvd_collect *collect, const pmix_proc_t *self,
                         int size, int missing, char *text, size_t bytes)
{
    enum {
        MOST_NAMED = 6
    };
    int named = 0;

    text[0] = '\0';
    for (int rank = 0; rank < size && named < MOST_NAMED; rank++) {
        size_t used = strlen(text);

        if (hvd_collect_has(collect, rank)) {
            continue;
        }
        snprintf(text + used, bytes - used, "%srank %d", named > 0 ? ", " : "", rank);
        append_host(self, rank, text, bytes);
        named++;
    }
    if (missing > named) {
        size_t used = strlen(text);

        snprintf(text + used, bytes - used, " and %d more", missing - named);
    }
}

static int fail_missing(const struct hvd_collect *collect, const pmix_proc_t *self,
                        int size, int missing, int timeout_ms, struct hvd_error *err)
{
    char names[320];

    if (hvd_collect_status(collect, (int)self->rank) != PMIX_SUCCESS) {
        return hvd_fail(err, HVD_ERR_NET,
                        "rank %d lost the PMIx server of its launcher: %s",
                        (int)self->rank,
                        PMIx_Error_string(hvd_collect_status(collect, (int)self->rank)));
    }
    list_missing(collect, self, size, missing, names, sizeof(names));
    return hvd_fail(
        err, HVD_ERR_TIMEOUT,
        "%d of %d ranks did not start within %g s: %s; they have ended, hang, "
        "or never call init",
        missing, size, timeout_ms / 1000.0, names);
}

/* *collect outlives a failure: PMIx may still answer until it is finalized. */
static int gather(const pmix_proc_t *self, const char *key, int timeout_ms,
                  struct hvd_collect **collect, struct hvd_exchange *out,
                  struct hvd_error *err)
{
    int size = get_number(self, PMIX_JOB_SIZE, 0);
    struct hvd_blob *blobs;
    int missing;

    if (size <= 0) {
        return hvd_fail(err, HVD_ERR_NET, "the launcher does not tell the job's size");
    }
    *collect = hvd_collect_create(self, key, size);
    if (*collect == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for %d ranks", size);
    }
    missing = hvd_collect_run(*collect, get_number(self, PMIX_LOCAL_SIZE, 0) == size,
                              timeout_ms);
    if (missing > 0) {
        return fail_missing(*collect, self, size, missing, timeout_ms, err);
    }
    blobs = hvd_collect_take(*collect);
    if (blobs == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for %d ranks", size);
    }
    *out = (struct hvd_exchange){(int)self->rank, size, blobs};
    return 0;
}

int hvd_pmix_exchange(const struct hvd_blob *mine, unsigned cycle, int timeout_ms,
                      struct hvd_exchange *out, struct hvd_error *err)
{
    struct hvd_collect *collect = NULL;
    pmix_proc_t self;
    pmix_status_t opened = PMIx_Init(&self, NULL, 0);
    char key[32];
    int status;

    if (opened != PMIX_SUCCESS) {
        return fail_open(opened, err);
    }
    snprintf(key, sizeof(key), "hvd.card.%u", cycle);
    status = publish(key, mine, err);
    if (status == 0) {
        status = gather(&self, key, timeout_ms, &collect, out, err);
    }
    PMIx_Finalize(NULL, 0);
    hvd_collect_destroy(collect);
    return status;
}
