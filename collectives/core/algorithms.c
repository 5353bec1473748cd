/* SPDX-License-Identifier: Apache-2.0 */
/* The table of algorithms that all ranks share. */
#include "collectives/core/algorithms.h"

#include "collectives/core/card.h"
#include "collectives/run/algorithm_file.h"
#include "collectives/schedule/algorithm_table.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/base/log.h"

void hvd_algorithms_read(struct hvd_algorithms *algorithms, const char *setting)
{
    hvd_algorithm_file_read(setting, &algorithms->table, &algorithms->failure);
}

void hvd_algorithms_finish(struct hvd_algorithms *algorithms)
{
    hvd_algorithm_table_destroy(algorithms->table);
}

uint64_t hvd_algorithms_digest(const struct hvd_algorithms *algorithms)
{
    return algorithms->failure.status != 0
               ? HVD_CARD_NO_ALGORITHMS
               : hvd_algorithm_table_digest(algorithms->table);
}

static const char *name_of(const struct hvd_algorithms *algorithms)
{
    return algorithms->table != NULL ? algorithms->table->name : "the built-in one";
}

static void say_section(const struct hvd_algorithms *algorithms,
                        const struct hvd_boot *boot)
{
    struct hvd_job_shape shape = hvd_job_shape_of(&boot->layout);
    const struct hvd_algorithm_section *section =
        hvd_algorithm_table_find(algorithms->table, shape);

    if (algorithms->table == NULL || boot->rank != 0) {
        return;
    }
    if (section != NULL) {
        hvd_log(HVD_LOG_INFO, "algorithms: table %s, section on line %d",
                algorithms->table->name, section->line);
    } else {
        hvd_log(
            HVD_LOG_INFO,
            "algorithms: built-in table, since %s has no section for %d nodes with up to "
            "%d ranks",
            algorithms->table->name, shape.nodes, shape.ranks);
    }
}

int hvd_algorithms_compare(const struct hvd_algorithms *algorithms,
                           const struct hvd_boot *boot, struct hvd_error *err)
{
    if (algorithms->failure.status != 0) {
        return hvd_fail(err, algorithms->failure.status, "%s", algorithms->failure.text);
    }
    for (int rank = 0; rank < boot->size; rank++) {
        uint64_t digest = hvd_card_of(&boot->peers[rank]).algorithms;

        if (digest == HVD_CARD_NO_ALGORITHMS) {
            return hvd_fail(err, HVD_ERR_MISMATCH,
                            "rank %d on %s cannot read its table of algorithms; this "
                            "rank's table is %s",
                            rank, boot->peers[rank].host, name_of(algorithms));
        }
        if (digest != hvd_card_of(&boot->peers[0]).algorithms) {
            return hvd_fail(err, HVD_ERR_MISMATCH,
                            "rank %d on %s has another table of algorithms than rank 0 "
                            "on %s: give all ranks the same table, by %s or in %s; "
                            "rank %d has %s",
                            rank, boot->peers[rank].host, boot->peers[0].host,
                            HVD_ENV_TUNE_TABLE, hvd_algorithm_file_path(), boot->rank,
                            name_of(algorithms));
        }
    }
    say_section(algorithms, boot);
    return 0;
}
