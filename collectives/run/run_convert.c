/* SPDX-License-Identifier: Apache-2.0 */
/* Runs an allreduce of float32 tensors that travel as 16-bit floats (hvd_tensor.wire).
 *
 *   load    tensors times prescale, rounded into one array of 16-bit floats
 *   reduce  an allreduce of that array, in place
 *   store   the array into the outputs
 *
 * The result is that of an allreduce of 16-bit tensors with these elements, and has the
 * same bits on all ranks, because a rank's own output comes from the array, too. For the
 * schedule the array is one tensor, however many the batch has. */
#include <stdlib.h>
#include <string.h>

#include "collectives/run/run_state.h"
#include "collectives/reduce/stream.h"

enum {
    /* Elements that are converted between two checks of the work done: about a fifth of a
     * team's turn. */
    PIECE_ELEMENTS = 16384,
    /* Additional cost of a piece, as bytes touched. */
    PIECE_WORK = 256,
    /* Elements converted in the L1 cache at a time, for outputs that bypass the
     * caches. */
    BLOCK_ELEMENTS = 1024,
    HALF_BYTES = 2,
    /* The longest array that is kept between batches: the size of a slot. */
    MOST_KEPT = 256 << 10,
};

enum stage {
    LOAD,
    REDUCE,
    STORE,
};

struct hvd_run_convert {
    enum stage stage;
    int64_t at; /* elements that this stage has converted */
    int64_t count; /* elements of all tensors */
    char *halves; /* [count] 16-bit floats; NULL if count is 0 */
    struct hvd_segments input; /* the tensors */
    struct hvd_segments output;
    double prescale;
};

int hvd_run_convert_prepare(struct hvd_run *run)
{
    const struct hvd_descriptor *first = &run->entries[0]->descriptor;
    struct hvd_run_convert *convert = calloc(1, sizeof(*convert));
    struct hvd_reduction reduction;
    int64_t bytes;

    if (convert == NULL) {
        return HVD_ERR_NOMEM;
    }
    run->convert = convert;
    convert->input = run->input;
    convert->output = run->output;
    convert->prescale = run->prescale;
    convert->count = run->input.begin[run->input.count] / (int64_t)sizeof(float);
    run->input = run->output = (struct hvd_segments){0};
    run->prescale = 1.0;
    reduction = hvd_reduction_of((enum hvd_dtype)first->wire, first->op);
    reduction.postscale = run->reduction.postscale;
    reduction.divisor = run->reduction.divisor;
    run->reduction = reduction;
    run->is_computing = true;
    bytes = convert->count * HALF_BYTES;
    if (bytes > 0) {
        convert->halves = hvd_run_memory((size_t)bytes);
    }
    return (bytes > 0 && convert->halves == NULL) ||
                   hvd_segments_init_one(&run->input, convert->halves, bytes) != 0 ||
                   hvd_segments_init_one(&run->output, convert->halves, bytes) != 0
               ? HVD_ERR_NOMEM
               : 0;
}

void hvd_run_convert_tensors(struct hvd_run_convert *convert, struct hvd_segments **input,
                             struct hvd_segments **output)
{
    *input = &convert->input;
    *output = &convert->output;
}

bool hvd_run_convert_is_small(const struct hvd_run_convert *convert)
{
    return convert->count * HALF_BYTES <= MOST_KEPT;
}

static void begin_stage(struct hvd_run *run, enum stage stage)
{
    run->convert->stage = stage;
    run->convert->at = 0;
    run->is_computing = stage != REDUCE;
}

void hvd_run_convert_next(struct hvd_run *run)
{
    switch (run->convert->stage) {
    case LOAD:
        begin_stage(run, REDUCE);
        break;
    case REDUCE:
        begin_stage(run, STORE);
        break;
    case STORE:
        run->is_done = true;
        break;
    }
}

void hvd_run_convert_again(struct hvd_run *run)
{
    run->is_done = false;
    begin_stage(run, LOAD);
}

/* --- converting --- */

static void store_past_caches(enum hvd_dtype dtype, const char *from, float *to,
                              size_t count)
{
    _Alignas(64) float block[BLOCK_ELEMENTS];

    while (count > 0) {
        size_t part = count < BLOCK_ELEMENTS ? count : BLOCK_ELEMENTS;

        hvd_widen(dtype, from, block, part);
        hvd_copy_stream(to, block, part * sizeof(block[0]));
        from += part * HALF_BYTES;
        to += part;
        count -= part;
    }
}

static void load_halves(const struct hvd_run *run, const char *tensor, char *halves,
                        size_t count)
{
    if (tensor == NULL) {
        memset(halves, 0, count * HALF_BYTES);
    } else {
        hvd_narrow(run->reduction.dtype, run->convert->prescale, (const float *)tensor,
                   halves, count);
    }
}

static void store_halves(const struct hvd_run *run, const char *halves,
                         struct hvd_piece tensor)
{
    enum hvd_dtype dtype = run->reduction.dtype;
    size_t count = tensor.bytes / sizeof(float);

    if (tensor.data == NULL) {
        return;
    }
    if (tensor.is_streamed) {
        store_past_caches(dtype, halves, (float *)tensor.data, count);
    } else {
        hvd_widen(dtype, halves, (float *)tensor.data, count);
    }
}

/* Converts the next elements that lie in one tensor, up to PIECE_ELEMENTS. Returns the
 * cost. */
static int64_t convert_piece(const struct hvd_run *run)
{
    struct hvd_run_convert *convert = run->convert;
    bool is_load = convert->stage == LOAD;
    int64_t left = convert->count - convert->at;
    size_t most = (size_t)(left < PIECE_ELEMENTS ? left : PIECE_ELEMENTS) * sizeof(float);
    struct hvd_piece tensor =
        hvd_segments_at(is_load ? &convert->input : &convert->output,
                        convert->at * (int64_t)sizeof(float), most);
    char *halves = convert->halves + convert->at * HALF_BYTES;
    size_t count = tensor.bytes / sizeof(float);

    if (is_load) {
        load_halves(run, tensor.data, halves, count);
    } else {
        store_halves(run, halves, tensor);
    }
    convert->at += (int64_t)count;
    return PIECE_WORK + (int64_t)(tensor.bytes + count * HALF_BYTES);
}

int hvd_run_convert_compute(struct hvd_run *run, int64_t *work, bool *moved)
{
    const struct hvd_run_convert *convert = run->convert;

    /* Wake the other ranks first, so that they go on while this rank converts. */
    hvd_shm_region_ring(run->team->region);
    while (convert->at < convert->count) {
        if (*work <= 0) {
            return HVD_INPROGRESS;
        }
        *work -= convert_piece(run);
        *moved = true;
    }
    return 0;
}

/* --- the end --- */

void hvd_run_convert_forget(struct hvd_run_convert *convert)
{
    hvd_segments_forget(&convert->input);
    hvd_segments_forget(&convert->output);
}

void hvd_run_convert_destroy(struct hvd_run_convert *convert)
{
    if (convert != NULL) {
        hvd_segments_finish(&convert->input);
        hvd_segments_finish(&convert->output);
        free(convert->halves);
        free(convert);
    }
}
