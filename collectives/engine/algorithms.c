/* SPDX-License-Identifier: Apache-2.0 */
/* The table of algorithms: read before the ranks know each other, compared as soon as they do. A
 * rank that cannot read its own says so in its card, so that all ranks end at once and none waits
 * for it. */
#include "collectives/engine/card.h"
#include "collectives/engine/engine_state.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/base/log.h"

void hvd_algorithms_read(struct hvd_engine *engine)
{
    hvd_choice_file_read(engine->settings.tune_table, &engine->algorithms,
                         &engine->algorithms_failure);
}

uint64_t hvd_algorithms_digest(const struct hvd_engine *engine)
{
    return engine->algorithms_failure.status != 0
               ? HVD_CARD_NO_ALGORITHMS
               : hvd_choice_table_digest(engine->algorithms);
}

static const char *name_of(const struct hvd_engine *engine)
{
    return engine->algorithms != NULL ? engine->algorithms->name : "the built-in one";
}

static void say_section(const struct hvd_engine *engine)
{
    struct hvd_shape shape = hvd_shape_of(&engine->boot->layout);
    const struct hvd_choice_section *section =
        hvd_choice_table_find(engine->algorithms, shape);

    if (engine->algorithms == NULL || engine->boot->rank != 0) {
        return;
    }
    if (section != NULL) {
        hvd_log(HVD_LOG_INFO, "algorithms by %s, the section on line %d",
                engine->algorithms->name, section->line);
    } else {
        hvd_log(
            HVD_LOG_INFO,
            "algorithms by the built-in table: %s has no section for %d nodes with up "
            "to %d ranks",
            engine->algorithms->name, shape.nodes, shape.ranks);
    }
}

int hvd_algorithms_compare(struct hvd_engine *engine, struct hvd_error *err)
{
    const struct hvd_boot *boot = engine->boot;

    if (engine->algorithms_failure.status != 0) {
        return hvd_fail(err, engine->algorithms_failure.status, "%s",
                        engine->algorithms_failure.text);
    }
    for (int rank = 0; rank < boot->size; rank++) {
        uint64_t digest = hvd_card_of(&boot->peers[rank]).algorithms;

        if (digest == HVD_CARD_NO_ALGORITHMS) {
            return hvd_fail(err, HVD_ERR_MISMATCH,
                            "rank %d on %s cannot read its table of algorithms; that of "
                            "this rank is %s",
                            rank, boot->peers[rank].host, name_of(engine));
        }
        if (digest != hvd_card_of(&boot->peers[0]).algorithms) {
            return hvd_fail(err, HVD_ERR_MISMATCH,
                            "rank %d on %s has another table of algorithms than rank 0 "
                            "on %s; that of this rank is %s: all ranks need the same "
                            "(%s, else %s)",
                            rank, boot->peers[rank].host, boot->peers[0].host,
                            name_of(engine), HVD_ENV_TUNE_TABLE, hvd_choice_file_place());
        }
    }
    say_section(engine);
    return 0;
}
