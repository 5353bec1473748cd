/* SPDX-License-Identifier: Apache-2.0 */
/* Executes the steps of a run's schedule. */
#include <string.h>

#include "collectives/run/run_state.h"
#include "collectives/reduce/stream.h"
#include "collectives/transport/net/net_flow.h"
#include "collectives/transport/shm/shm_reach.h"
#include "gpu_binding/base/log.h"

_Static_assert((size_t)HVD_SCHEDULE_MESSAGE_BYTES == HVD_NET_FRAGMENT_BYTES,
               "schedules know how long the network's messages are");

enum {
    /* Bytes on the stack to which a part of a message is copied if it is not aligned for
     * its elements; they stay in the L1 cache. */
    ALIGNED_BYTES = 4096,
};

/* The minimum cost of a step, as bytes touched. */
static const int64_t least_work = 512;

/* Before a step that costs more than this, the run wakes sleeping local ranks that this
 * rank has signalled, so that they need not wait for the step. */
static const int64_t brief_work = 8192;

/* The number of times that a WAIT reads a counter before the run is left: a signal
 * usually arrives sooner than the run would be resumed. */
static const int looks = 64;

static int run_put(struct hvd_run *run, const struct hvd_step *step)
{
    hvd_segments_read(&run->input, step->put.input, step->bytes, run->reduction.dtype,
                      run->prescale, hvd_team_address(run->team, &step->put.to));
    return 0;
}

static int run_get(struct hvd_run *run, const struct hvd_step *step)
{
    hvd_segments_write(&run->output, step->get.output, step->bytes,
                       hvd_team_address(run->team, &step->get.from));
    return 0;
}

/* Sets run->sources to the elements of each local rank from byte `at` on, at most `most`
 * bytes of each. Returns the number of bytes of each, which is less than `most` if the
 * segment of the input ends before. */
static size_t find_sources(struct hvd_run *run, const struct hvd_local_sources *sources,
                           size_t at, size_t most)
{
    struct hvd_location location = sources->from;
    int count = run->team->local_size, own = run->team->local_rank;
    int64_t begin = sources->input + (int64_t)at;
    struct hvd_piece input = hvd_segments_at(&run->input, begin, most);
    bool is_direct = input.data != NULL && run->prescale == 1.0;

    location.offset += at;
    for (int i = 0; i < count; i++) {
        location.local_rank = i;
        run->sources[i] =
            i == own && is_direct ? input.data : hvd_team_address(run->team, &location);
    }
    if (!is_direct && !sources->is_put) {
        hvd_segments_read(&run->input, begin, input.bytes, run->reduction.dtype,
                          run->prescale, (char *)run->sources[own]);
    }
    return input.bytes;
}

static int reduce_local(struct hvd_run *run, const struct hvd_step *step)
{
    struct hvd_reduction reduction = run->reduction;
    size_t in_bytes = reduction.element_bytes;
    bool is_partial = step->reduce_local.is_partial;
    size_t out_bytes = is_partial ? hvd_partial_bytes(reduction.dtype) : in_bytes;
    char *to = hvd_team_address(run->team, &step->reduce_local.to);
    size_t total = step->count * in_bytes, at = 0;

    reduction.to_partial = is_partial;
    while (at < total) {
        size_t bytes = find_sources(run, &step->reduce_local.sources, at, total - at);

        hvd_reduce(&reduction, run->sources, run->team->local_size, bytes / in_bytes,
                   to + at / in_bytes * out_bytes);
        at += bytes;
    }
    return 0;
}

static int reduce_out(struct hvd_run *run, const struct hvd_step *step)
{
    size_t element = run->reduction.element_bytes;
    int count = run->team->local_size;
    size_t total = step->count * element, at = 0;

    while (at < total) {
        struct hvd_piece out = hvd_segments_at(
            &run->output, step->reduce_out.output + (int64_t)at, total - at);
        size_t bytes = find_sources(run, &step->reduce_out.sources, at, out.bytes);

        if (out.data != NULL && out.is_streamed) {
            hvd_reduce_stream(&run->reduction, run->sources, count, bytes / element,
                              out.data);
        } else if (out.data != NULL) {
            hvd_reduce(&run->reduction, run->sources, count, bytes / element, out.data);
        }
        at += bytes;
    }
    return 0;
}

static int reduce_nodes(struct hvd_run *run, const struct hvd_step *step)
{
    const struct hvd_node_sources *sources = &step->reduce_nodes.sources;
    struct hvd_reduction reduction = run->reduction;
    const char *from = hvd_team_address(run->team, &sources->from);

    for (int n = 0; n < sources->count; n++) {
        run->sources[n] = n == sources->own_number
                              ? hvd_team_address(run->team, &sources->own)
                              : from + (size_t)n * sources->stride;
    }
    reduction.from_partial = true;
    reduction.to_partial = step->reduce_nodes.is_partial;
    hvd_reduce(&reduction, run->sources, sources->count, step->count,
               hvd_team_address(run->team, &step->reduce_nodes.to));
    return 0;
}

/* Whether all data are floats, so that a bit flipped in the network could only make a
 * number wrong. In other data it could change an index, a length, or an object that will
 * be unpickled, so the whole message is authenticated. */
static bool is_for_numbers_only(const struct hvd_run *run)
{
    return hvd_dtype_is_float(run->reduction.dtype) && !run->is_counting;
}

static int run_send(struct hvd_run *run, const struct hvd_step *step)
{
    struct hvd_net_flow *flow = hvd_team_flow(run->team, step->send.peer);
    struct hvd_op_item *item = hvd_op_queue_next(&run->sends);

    if (flow == NULL || item == NULL) {
        return HVD_ERR_NOMEM;
    }
    item->op.data = hvd_team_address(run->team, &step->send.from);
    item->op.bytes = step->bytes;
    item->op.covered = is_for_numbers_only(run) ? 0 : SIZE_MAX;
    hvd_net_send(flow, &item->op);
    return 0;
}

static int run_receive(struct hvd_run *run, const struct hvd_step *step)
{
    struct hvd_net_flow *flow = hvd_team_flow(run->team, step->recv.peer);
    struct hvd_op_item *item = hvd_op_queue_next(&run->recvs);

    if (flow == NULL || item == NULL) {
        return HVD_ERR_NOMEM;
    }
    item->op.data = hvd_team_address(run->team, &step->recv.to);
    item->op.bytes = step->bytes;
    hvd_net_recv(flow, &item->op);
    return 0;
}

static int await_signal(struct hvd_run *run, const struct hvd_step *step)
{
    const struct hvd_team *team = run->team;
    int local_rank = step->wait.local_rank;
    int next = local_rank < 0 ? 0 : local_rank;
    int end = local_rank < 0 ? team->local_size : local_rank + 1;

    /* this rank's own signals are steps that came before */
    while (next < end && (next == team->local_rank ||
                          hvd_team_await(team, next, step->wait.value, looks))) {
        next++;
    }
    return next < end ? HVD_INPROGRESS : 0;
}

/* --- reducing another node's data as it arrives, in the network's receive buffer --- */

/* Elements that arrived together, and this node's elements for the same positions. */
struct arrived {
    const char *data;
    const char *own;
    size_t count;
    bool is_streamed; /* the sum bypasses the caches */
};

static void add_aligned(const struct hvd_run *run, const struct hvd_reduction *reduction,
                        const struct arrived *piece, char *to)
{
    bool is_first = run->team->node == 0;
    const void *sources[2] = {is_first ? piece->own : piece->data,
                              is_first ? piece->data : piece->own};

    if (piece->is_streamed) {
        hvd_reduce_stream(reduction, sources, 2, piece->count, to);
    } else {
        hvd_reduce(reduction, sources, 2, piece->count, to);
    }
}

/* Adds elements of `bytes` bytes; if they are not aligned, it copies them to the stack
 * first. */
static void add_up(const struct hvd_run *run, const struct hvd_reduction *reduction,
                   struct arrived piece, size_t bytes, char *to)
{
    size_t out_bytes = reduction->element_bytes;
    _Alignas(64) char block[ALIGNED_BYTES];
    size_t most = sizeof(block) / bytes;

    if ((uintptr_t)piece.data % bytes == 0) {
        add_aligned(run, reduction, &piece, to);
        return;
    }
    for (size_t left = piece.count; left > 0; left -= most < left ? most : left) {
        size_t count = left < most ? left : most;
        size_t first = piece.count - left;
        struct arrived part = {block, piece.own + first * bytes, count,
                               piece.is_streamed};

        memcpy(block, piece.data + first * bytes, count * bytes);
        add_aligned(run, reduction, &part, to + first * out_bytes);
    }
}

/* Adds a fragment of a message: to a location, or to the output, which may be several
 * tensors. */
static void take_fragment(struct hvd_net_op *op, const void *data, size_t bytes)
{
    const struct hvd_op_sum *sum = &((struct hvd_op_item *)op)->sum;
    struct hvd_run *run = sum->run;
    struct hvd_reduction reduction = run->reduction;
    size_t out_bytes = reduction.element_bytes;
    size_t in_bytes = sum->is_partial ? hvd_partial_bytes(reduction.dtype) : out_bytes;
    size_t first = op->done / in_bytes * out_bytes;
    struct arrived piece = {.data = data, .own = sum->own + op->done};

    reduction.from_partial = sum->is_partial;
    for (size_t left = bytes / in_bytes; left > 0; left -= piece.count) {
        struct hvd_piece out = {.bytes = left * out_bytes};

        if (sum->to != NULL) {
            out.data = sum->to + first;
        } else {
            out = hvd_segments_at(&run->output, sum->output + (int64_t)first, out.bytes);
        }
        piece.count = out.bytes / out_bytes;
        piece.is_streamed = out.is_streamed;
        if (out.data != NULL) {
            add_up(run, &reduction, piece, in_bytes, out.data);
        }
        piece.data += piece.count * in_bytes;
        piece.own += piece.count * in_bytes;
        first += out.bytes;
    }
}

static int receive_reduce(struct hvd_run *run, const struct hvd_step *step)
{
    struct hvd_net_flow *flow = hvd_team_flow(run->team, step->recv_reduce.peer);
    struct hvd_op_item *item = hvd_op_queue_next(&run->recvs);

    if (flow == NULL || item == NULL) {
        return HVD_ERR_NOMEM;
    }
    item->sum = (struct hvd_op_sum){
        .run = run,
        .own = hvd_team_address(run->team, &step->recv_reduce.own),
        .to = step->recv_reduce.to_output
                  ? NULL
                  : hvd_team_address(run->team, &step->recv_reduce.to),
        .output = step->recv_reduce.output,
        .is_partial = step->recv_reduce.is_partial,
    };
    item->op.take = take_fragment;
    item->op.bytes = step->bytes;
    hvd_net_recv(flow, &item->op);
    return 0;
}

/* --- access to the memory of other local ranks, in place ---
 *
 * Input and output are one segment each. Its data is NULL after a failure and in a
 * cancelled batch. */

static char *input_at(struct hvd_run *run, int64_t begin)
{
    return hvd_segments_at(&run->input, begin, 1).data;
}

static char *output_at(struct hvd_run *run, int64_t begin)
{
    return hvd_segments_at(&run->output, begin, 1).data;
}

static void copy_piece(struct hvd_piece to, const char *from)
{
    if (to.data == NULL || to.data == from) {
        return;
    }
    if (from == NULL) {
        memset(to.data, 0, to.bytes);
    } else if (to.is_streamed) {
        hvd_copy_stream(to.data, from, to.bytes);
    } else {
        memcpy(to.data, from, to.bytes);
    }
}

static int run_copy(struct hvd_run *run, const struct hvd_step *step)
{
    for (size_t done = 0; done < step->bytes;) {
        struct hvd_piece from = hvd_segments_at(
            &run->input, step->copy.input + (int64_t)done, step->bytes - done);
        struct hvd_piece to =
            hvd_segments_at(&run->output, step->copy.output + (int64_t)done, from.bytes);

        copy_piece(to, from.data);
        done += to.bytes;
    }
    return 0;
}

static int run_offer(struct hvd_run *run, const struct hvd_step *step)
{
    const char *at = step->offer.is_output ? output_at(run, step->offer.begin)
                                           : input_at(run, step->offer.begin);
    uint64_t address = (uint64_t)(uintptr_t)at;

    memcpy(hvd_team_address(run->team, &step->offer.to), &address, sizeof(address));
    return 0;
}

static uint64_t address_of(const struct hvd_run *run, const struct hvd_reach *reach)
{
    uint64_t address;

    memcpy(&address, hvd_team_address(run->team, &reach->offer), sizeof(address));
    return address + (uint64_t)reach->at;
}

static int judge_access(int status, int local_rank, uint64_t address)
{
    if (status != HVD_ERR_ARG) {
        return status;
    }
    hvd_log(HVD_LOG_ERROR, "local rank %d offered memory at %#llx, but has none there",
            local_rank, (unsigned long long)address);
    return HVD_ERR_SYS;
}

/* Reads memory that another rank offers. In a cancelled batch that memory may be gone,
 * because the caller of that rank has taken it back: this is no failure. */
static int read_offer(const struct hvd_run *run, const struct hvd_reach *reach,
                      size_t bytes, char *to)
{
    uint64_t address = address_of(run, reach);
    int local_rank = reach->offer.local_rank;
    int status = hvd_shm_read(run->team->shm, run->team->local_ranks[local_rank], address,
                              to, bytes);

    return status == HVD_ERR_ARG && run->entries[0]->is_cancelled
               ? 0
               : judge_access(status, local_rank, address);
}

static int run_fetch(struct hvd_run *run, const struct hvd_step *step)
{
    char *to = output_at(run, step->fetch.output);

    return to == NULL ? 0 : read_offer(run, &step->fetch.from, step->bytes, to);
}

/* Reduces the elements that all local ranks offer. Each source is contiguous, because the
 * input is one segment. */
static int fetch_reduce(struct hvd_run *run, const struct hvd_step *step)
{
    struct hvd_piece out =
        hvd_segments_at(&run->output, step->fetch_reduce.output, step->bytes);
    struct hvd_reach from = step->fetch_reduce.from;
    int count = run->team->local_size;
    int status = 0;
    char *scratch;

    if (out.data == NULL) {
        return 0;
    }
    scratch = hvd_team_address(run->team, &step->fetch_reduce.scratch);
    for (int i = 0; i < count && status == 0; i++) {
        if (i == run->team->local_rank) {
            run->sources[i] = input_at(run, from.at);
            continue;
        }
        from.offer.local_rank = i;
        status = read_offer(run, &from, step->bytes, scratch);
        run->sources[i] = scratch;
        scratch += step->fetch_reduce.stride;
    }
    if (status != 0) {
        return status;
    }
    /* The others read this rank's share of an allreduce at once, so it must stay in the
     * caches. */
    if (out.is_streamed && run->kind != HVD_KIND_ALLREDUCE) {
        hvd_reduce_stream(&run->reduction, run->sources, count, step->count, out.data);
    } else {
        hvd_reduce(&run->reduction, run->sources, count, step->count, out.data);
    }
    return 0;
}

static int run_store(struct hvd_run *run, const struct hvd_step *step)
{
    const char *from = input_at(run, step->store.input);
    uint64_t address = address_of(run, &step->store.to);
    int local_rank = step->store.to.offer.local_rank;
    int status = from == NULL
                     ? 0
                     : hvd_shm_write(run->team->shm, run->team->local_ranks[local_rank],
                                     address, from, step->bytes);

    return judge_access(status, local_rank, address);
}

/* --- the table of steps --- */

static int signal_others(struct hvd_run *run, const struct hvd_step *step)
{
    (void)step;
    hvd_shm_region_signal(run->team->region);
    return 0;
}

static int await_messages(struct hvd_run *run, const struct hvd_step *step)
{
    bool is_send = step->kind == HVD_STEP_WAIT_SEND;

    return hvd_op_queue_wait(is_send ? &run->sends : &run->recvs, step->messages);
}

static int (*const step_kinds[])(struct hvd_run *run, const struct hvd_step *step) = {
    [HVD_STEP_PUT] = run_put,
    [HVD_STEP_GET] = run_get,
    [HVD_STEP_REDUCE_LOCAL] = reduce_local,
    [HVD_STEP_REDUCE_OUT] = reduce_out,
    [HVD_STEP_REDUCE_NODES] = reduce_nodes,
    [HVD_STEP_SIGNAL] = signal_others,
    [HVD_STEP_WAIT] = await_signal,
    [HVD_STEP_SEND] = run_send,
    [HVD_STEP_RECV] = run_receive,
    [HVD_STEP_RECV_REDUCE] = receive_reduce,
    [HVD_STEP_COPY] = run_copy,
    [HVD_STEP_OFFER] = run_offer,
    [HVD_STEP_FETCH] = run_fetch,
    [HVD_STEP_FETCH_REDUCE] = fetch_reduce,
    [HVD_STEP_STORE] = run_store,
    [HVD_STEP_WAIT_SEND] = await_messages,
    [HVD_STEP_WAIT_RECV] = await_messages,
};

/* --- the schedule --- */

int hvd_run_schedule(struct hvd_run *run, const struct hvd_schedule_query *query,
                     struct hvd_error *err)
{
    int status = hvd_schedule_create(query, &run->schedule, err);

    if (status == 0) {
        run->facts = hvd_schedule_facts(run->schedule);
    }
    return status;
}

/* Returns the cost of a step, as bytes touched. */
static int64_t step_work(const struct hvd_run *run, const struct hvd_step *step)
{
    size_t sources =
        (size_t)(step->kind == HVD_STEP_REDUCE_NODES ? step->reduce_nodes.sources.count
                                                     : run->team->local_size);

    return least_work +
           (int64_t)(step->bytes + step->count * run->reduction.element_bytes * sources);
}

/* Ends the current schedule: waits for its messages between nodes. */
static int finish_schedule(struct hvd_run *run)
{
    int status = run->team->net != NULL ? hvd_op_queue_drain(&run->sends) : 0;

    if (status == 0 && run->team->net != NULL) {
        status = hvd_op_queue_drain(&run->recvs);
    }
    if (status == 0) {
        hvd_team_end(run->team, run->facts);
    }
    return status;
}

int hvd_run_steps(struct hvd_run *run, int64_t *work, bool *moved)
{
    while (*work > 0) {
        const struct hvd_step *step;
        int64_t cost;
        int status;

        if (run->step == run->step_count) {
            if (run->tick == 0) {
                hvd_team_begin(run->team, run->facts);
            }
            if (run->tick == run->facts->ticks) {
                return finish_schedule(run);
            }
            run->step_count = hvd_schedule_tick(run->schedule, run->tick++, &run->steps);
            run->step = 0;
            continue;
        }
        step = &run->steps[run->step];
        cost = step_work(run, step);
        if (cost > brief_work) {
            hvd_shm_region_ring(run->team->region);
        }
        status = step_kinds[step->kind](run, step);
        if (status != 0) {
            return status;
        }
        *work -= cost;
        run->step++;
        *moved = true;
    }
    return HVD_INPROGRESS;
}
