/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that reach into the memory of other ranks of the node, and COPY. For all but COPY
 * input and output are one tensor each, of which NULL is left after a failure and in a
 * batch that is void. */
#include "collectives/execute/run_reach.h"

#include <string.h>

#include "collectives/reduce/stream.h"
#include "gpu_binding/base/log.h"

static char *input_at(struct hvd_run *run, int64_t begin)
{
    size_t bytes = 1;

    return hvd_segments_at(&run->input, begin, &bytes);
}

static char *output_at(struct hvd_run *run, int64_t begin)
{
    size_t bytes = 1;

    return hvd_segments_at(&run->output, begin, &bytes);
}

static void copy_piece(const struct hvd_run *run, char *to, const char *from,
                       size_t bytes)
{
    if (to == NULL || to == from) {
        return;
    }
    if (from == NULL) {
        memset(to, 0, bytes);
    } else if (hvd_segments_streams(&run->output, bytes)) {
        hvd_copy_stream(to, from, bytes);
    } else {
        memcpy(to, from, bytes);
    }
}

void hvd_run_copy(struct hvd_run *run, const struct hvd_step *step)
{
    for (size_t done = 0; done < step->bytes;) {
        size_t piece = step->bytes - done;
        const char *from =
            hvd_segments_at(&run->input, step->input + (int64_t)done, &piece);
        char *to = hvd_segments_at(&run->output, step->begin + (int64_t)done, &piece);

        copy_piece(run, to, from, piece);
        done += piece;
    }
}

void hvd_run_offer(struct hvd_run *run, const struct hvd_step *step)
{
    const char *at =
        step->to_output ? output_at(run, step->begin) : input_at(run, step->begin);
    uint64_t address = (uint64_t)(uintptr_t)at;

    memcpy(hvd_team_place(run->team, &step->to), &address, sizeof(address));
}

static uint64_t offered_in(const struct hvd_run *run, struct hvd_place place,
                           const struct hvd_step *step)
{
    uint64_t address;

    memcpy(&address, hvd_team_place(run->team, &place), sizeof(address));
    return address + (uint64_t)step->input;
}

static int judge(int status, int local_rank, uint64_t address)
{
    if (status != HVD_ERR_ARG) {
        return status;
    }
    hvd_log(HVD_LOG_ERROR, "local rank %d has no memory at %#llx, where it offers some",
            local_rank, (unsigned long long)address);
    return HVD_ERR_SYS;
}

/* What is read for a batch that is void may be gone: those who began it have taken it back. */
static int read_offer(const struct hvd_run *run, const struct hvd_step *step,
                      struct hvd_place place, char *to)
{
    uint64_t address = offered_in(run, place, step);
    int status = hvd_team_read(run->team, place.local_rank, address, to, step->bytes);

    return status == HVD_ERR_ARG && run->entries[0]->is_void
               ? 0
               : judge(status, place.local_rank, address);
}

int hvd_run_fetch(struct hvd_run *run, const struct hvd_step *step)
{
    char *to = output_at(run, step->begin);

    return to == NULL ? 0 : read_offer(run, step, step->from, to);
}

/* Each source is in one piece, for so is the input. */
int hvd_run_fetch_reduce(struct hvd_run *run, const struct hvd_step *step)
{
    char *to = output_at(run, step->begin), *scratch;
    struct hvd_place place = step->from;
    int count = run->team->local_size;
    int status = 0;
    /* The others read my share of an allreduce at once. */
    bool is_streamed =
        run->kind == HVD_KIND_REDUCESCATTER &&
        hvd_segments_streams(&run->output,
                             step->count * hvd_dtype_bytes(run->reduction.dtype));

    if (to == NULL) {
        return 0;
    }
    scratch = hvd_team_place(run->team, &step->to);
    for (int i = 0; i < count && status == 0; i++) {
        if (i == run->team->local_rank) {
            run->sources[i] = input_at(run, step->input);
            continue;
        }
        place.local_rank = i;
        status = read_offer(run, step, place, scratch);
        run->sources[i] = scratch;
        scratch += step->stride;
    }
    if (status == 0 && is_streamed) {
        hvd_reduce_stream(&run->reduction, run->sources, count, step->count, to);
    } else if (status == 0) {
        hvd_reduce(&run->reduction, run->sources, count, step->count, to);
    }
    return status;
}

int hvd_run_store(struct hvd_run *run, const struct hvd_step *step)
{
    const char *from = input_at(run, step->begin);
    uint64_t address = offered_in(run, step->from, step);
    int status = from == NULL ? 0
                              : hvd_team_write(run->team, step->from.local_rank, address,
                                               from, step->bytes);

    return judge(status, step->from.local_rank, address);
}
