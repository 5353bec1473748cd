/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives that the calling thread runs at once. */
#include "contrib/bench/direct/direct.h"

#include <stdlib.h>

#include "contrib/bench/direct/direct_run.h"

struct hvd_direct {
    struct hvd_request *request;
    struct hvd_direct_run *run;
};

static struct hvd_engine *opened;
static const struct hvd_algorithm_choices *forced;

int hvd_direct_open(struct hvd_error *err)
{
    opened = hvd_job_enter(err);
    if (opened == NULL) {
        return HVD_ERR_STATE;
    }
    hvd_direct_begin(opened);
    return 0;
}

void hvd_direct_close(void)
{
    hvd_direct_end(opened);
    opened = NULL;
    hvd_job_exit();
}

void hvd_direct_choose(const struct hvd_algorithm_choices *choices)
{
    forced = choices;
}

int hvd_direct_plan(struct hvd_start *start, const struct hvd_tensor *tensors, int count,
                    struct hvd_direct **out, struct hvd_error *err)
{
    struct hvd_direct *direct;
    int status;

    if (count != 1 && start->kind != HVD_KIND_ALLREDUCE) {
        return hvd_fail(err, HVD_ERR_ARG, "%s of %d tensors at once: one is needed",
                        start->word, count);
    }
    direct = calloc(1, sizeof(*direct));
    if (direct == NULL || (direct->request = hvd_request_create(count)) == NULL) {
        free(direct);
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for %s", start->word);
    }
    status = hvd_start_check(opened, start, err);
    for (int i = 0; status == 0 && i < count; i++) {
        status =
            hvd_start_fill_entry(start, &tensors[i], &direct->request->entries[i], err);
    }
    if (status == 0) {
        status = hvd_direct_run_create(opened, start->kind, start->word, direct->request,
                                       forced, &direct->run, err);
    }
    if (status != 0) {
        hvd_request_destroy(direct->request);
        free(direct);
        return status;
    }
    *out = direct;
    return 0;
}

int hvd_direct_run(struct hvd_direct *direct, struct hvd_error *err)
{
    return hvd_direct_run_go(direct->run, err);
}

const void *hvd_direct_result(const struct hvd_direct *direct)
{
    const struct hvd_entry *entry = &direct->request->entries[0];

    return entry->output_bytes > 0 ? entry->output : entry->result;
}

void hvd_direct_destroy(struct hvd_direct *direct)
{
    if (direct != NULL && hvd_direct_run_destroy(direct->run)) {
        hvd_request_destroy(direct->request);
        free(direct);
    }
}
