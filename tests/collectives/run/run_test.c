/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the error of a run that cannot be created. */
#include "collectives/run/run.h"

#include <string.h>

#include "tests/tap.h"

/* Creates a batch whose list of entries does not fit into memory. */
static void test_no_memory(void)
{
    const char *const hosts[] = {"a"};
    struct hvd_layout layout = {0};
    struct hvd_team team = {.layout = &layout};
    struct hvd_entry entry = {.descriptor = {.name = "much"}};
    struct hvd_entry *entries[] = {&entry};
    const struct hvd_batch_header header = {.kind = HVD_KIND_ALLREDUCE,
                                            .count = INT64_MAX};
    struct hvd_run *run = NULL;
    struct hvd_error err = {0};
    int status = hvd_layout_init(&layout, hosts, 1, &err);

    hvd_algorithm_choices_builtin((struct hvd_job_shape){.nodes = 1, .ranks = 1},
                                  &team.choices);
    status =
        status != 0 ? status : hvd_run_create(&team, &header, entries, NULL, &run, &err);
    tap_ok(status == HVD_ERR_NOMEM && err.status == HVD_ERR_NOMEM && run == NULL &&
               strcmp(err.text, "no memory for tensor much") == 0,
           "a run that has no memory for its lists fails with status and text");
    hvd_layout_finish(&layout);
}

int main(void)
{
    test_no_memory();
    return tap_done();
}
