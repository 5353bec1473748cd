/* SPDX-License-Identifier: Apache-2.0 */
/* Executes each kind of step in ordinary memory. */
#include "tests/collectives/schedule/sim_internal.h"

#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

static struct player *local_player(const struct sim *sim, int node, int local_rank)
{
    return &sim->players[hvd_layout_rank(sim->layout, node, local_rank)];
}

/* --- locations --- */

size_t sim_slot_bytes(const struct sim *sim, enum hvd_location_kind kind)
{
    return kind == HVD_LOCATION_RECV   ? sim->geometry->recv_bytes
           : kind == HVD_LOCATION_LINE ? HVD_LINE_BYTES
                                       : sim->geometry->slot_bytes;
}

char *sim_memory(const struct sim *sim, const struct player *player,
                 const struct hvd_location *location, size_t bytes, bool is_written)
{
    bool is_shared = location->kind <= HVD_LOCATION_LINE;
    int slots = location->kind == HVD_LOCATION_LINE ? 2 : sim->geometry->slots;
    size_t room = sim_slot_bytes(sim, location->kind);
    size_t slot = (size_t)location->slot;
    const struct player *owner = player;

    if (is_shared) {
        if (location->local_rank < 0 ||
            location->local_rank >= hvd_layout_local_size(sim->layout, player->node)) {
            return NULL;
        }
        owner = local_player(sim, player->node, location->local_rank);
        slot = (size_t)(((uint64_t)slot + player->turn) % (uint64_t)slots);
    }
    if (location->slot < 0 || location->slot >= slots || location->offset > room ||
        bytes > room - location->offset || (is_written && owner != player)) {
        return NULL;
    }
    return owner->locations[location->kind] + slot * room + location->offset;
}

enum outcome sim_fail(const struct player *player, const char *reason)
{
    tap_note("rank %d, job %d, tick %lld, step %d: %s", player->rank, player->job,
             (long long)player->tick - 1, player->step, reason);
    return FAILED;
}

/* --- steps that move data --- */

/* Called twice for each step: first writes garbage and returns true, then returns
 * false. */
static bool spoils(struct player *player, char *to, size_t bytes)
{
    player->is_writing = !player->is_writing;
    if (player->is_writing) {
        memset(to, GARBAGE, bytes);
    }
    return player->is_writing;
}

static enum outcome put(struct sim *sim, struct player *player,
                        const struct hvd_step *step)
{
    const struct sim_job *job = &sim->jobs[player->job];
    char *to = sim_memory(sim, player, &step->put.to, step->bytes, true);
    int64_t end = step->put.input + (int64_t)step->bytes;

    if (to == NULL || step->put.input < 0 || end > job->input_bytes[player->rank]) {
        return sim_fail(player, "PUT out of bounds");
    }
    if (!spoils(player, to, step->bytes)) {
        memcpy(to, job->inputs[player->rank] + step->put.input, step->bytes);
    }
    return MOVED;
}

static enum outcome get(struct sim *sim, struct player *player,
                        const struct hvd_step *step)
{
    const struct sim_job *job = &sim->jobs[player->job];
    const char *from = sim_memory(sim, player, &step->get.from, step->bytes, false);
    int64_t end = step->get.output + (int64_t)step->bytes;

    if (from == NULL || step->get.output < 0 || end > job->output_bytes[player->rank]) {
        return sim_fail(player, "GET out of bounds");
    }
    memcpy(job->outputs[player->rank] + step->get.output, from, step->bytes);
    return MOVED;
}

/* Returns where a reduction writes its result of `bytes` bytes; NULL if that is out of
 * bounds. */
static char *target(const struct sim *sim, const struct player *player,
                    const struct hvd_step *step, size_t bytes)
{
    const struct sim_job *job = &sim->jobs[player->job];

    int64_t output;

    if (step->kind == HVD_STEP_REDUCE_LOCAL) {
        return sim_memory(sim, player, &step->reduce_local.to, bytes, true);
    }
    if (step->kind == HVD_STEP_REDUCE_NODES) {
        return sim_memory(sim, player, &step->reduce_nodes.to, bytes, true);
    }
    output = step->reduce_out.output;
    return output >= 0 && output + (int64_t)bytes <= job->output_bytes[player->rank]
               ? job->outputs[player->rank] + output
               : NULL;
}

static bool writes_partials(const struct hvd_step *step)
{
    return (step->kind == HVD_STEP_REDUCE_LOCAL && step->reduce_local.is_partial) ||
           (step->kind == HVD_STEP_REDUCE_NODES && step->reduce_nodes.is_partial);
}

/* Reduces sources into the target; fails if one of them is NULL. */
static enum outcome reduce(struct sim *sim, struct player *player,
                           const struct hvd_step *step, const void *const *sources,
                           int count)
{
    const struct sim_job *job = &sim->jobs[player->job];
    struct hvd_reduction reduction = hvd_reduction_of(job->dtype, job->op);
    bool is_partial = writes_partials(step);
    size_t bytes =
        is_partial ? hvd_partial_bytes(job->dtype) : hvd_dtype_bytes(job->dtype);
    char *to = target(sim, player, step, step->count * bytes);

    reduction.postscale = job->postscale;
    reduction.from_partial = step->kind == HVD_STEP_REDUCE_NODES;
    reduction.to_partial = is_partial;
    for (int i = 0; i < count; i++) {
        if (sources[i] == NULL || to == NULL) {
            return sim_fail(player, "REDUCE out of bounds");
        }
    }
    if (step->kind == HVD_STEP_REDUCE_OUT || !spoils(player, to, step->count * bytes)) {
        hvd_reduce(&reduction, sources, count, step->count, to);
    }
    return MOVED;
}

/* Reduces the elements of all local ranks. This rank's elements come from its input or,
 * if they were also put into its IN, from one of the two at random. */
static enum outcome reduce_local(struct sim *sim, struct player *player,
                                 const struct hvd_step *step)
{
    const struct sim_job *job = &sim->jobs[player->job];
    const struct hvd_local_sources *local = step->kind == HVD_STEP_REDUCE_OUT
                                                ? &step->reduce_out.sources
                                                : &step->reduce_local.sources;
    size_t bytes = step->count * hvd_dtype_bytes(job->dtype);
    int count = hvd_layout_local_size(sim->layout, player->node);
    const void **sources = calloc((size_t)count, sizeof(*sources));
    enum outcome outcome;

    for (int i = 0; i < count; i++) {
        struct hvd_location location = local->from;

        location.local_rank = i;
        sources[i] = sim_memory(sim, player, &location, bytes, false);
    }
    if (!local->is_put || sim_random_below(sim, 2) == 0) {
        bool is_inside = local->input >= 0 &&
                         local->input + (int64_t)bytes <= job->input_bytes[player->rank];

        sources[player->local_rank] =
            is_inside ? job->inputs[player->rank] + local->input : NULL;
    }
    outcome = reduce(sim, player, step, sources, count);
    free(sources);
    return outcome;
}

static enum outcome reduce_nodes(struct sim *sim, struct player *player,
                                 const struct hvd_step *step)
{
    size_t bytes = step->count * hvd_partial_bytes(sim->jobs[player->job].dtype);
    const struct hvd_node_sources *nodes = &step->reduce_nodes.sources;
    int count = nodes->count;
    const void **sources = calloc((size_t)count, sizeof(*sources));
    enum outcome outcome;

    for (int i = 0; i < count; i++) {
        struct hvd_location location = nodes->from;

        location.offset += (size_t)i * nodes->stride;
        location = i == nodes->own_number ? nodes->own : location;
        sources[i] = sim_memory(sim, player, &location, bytes, false);
    }
    outcome = reduce(sim, player, step, sources, count);
    free(sources);
    return outcome;
}

/* --- steps that send, receive or wait --- */

static void remember(struct messages *messages, struct sim_message *message)
{
    if (messages->count == messages->room) {
        messages->room = 2 * messages->room + 16;
        messages->all =
            realloc(messages->all, messages->room * sizeof(struct sim_message *));
    }
    messages->all[messages->count++] = message;
}

static enum outcome talk(struct sim *sim, struct player *player,
                         const struct hvd_step *step)
{
    bool is_send = step->kind == HVD_STEP_SEND;
    const struct hvd_location *location = is_send ? &step->send.from : &step->recv.to;
    int peer = is_send ? step->send.peer : step->recv.peer;
    char *data = sim_memory(sim, player, location, step->bytes, true);
    bool is_eager = sim->options->has_eager_sends && sim_random_below(sim, 2) == 0;

    if (data == NULL || step->bytes == 0 || peer < 0 || peer >= sim->layout->size ||
        peer == player->rank) {
        return sim_fail(player, is_send ? "impossible SEND" : "impossible RECV");
    }
    if (is_send) {
        remember(&player->sends, sim_network_send(sim->network, player->rank, peer, data,
                                                  step->bytes, is_eager));
    } else {
        memset(data, GARBAGE, step->bytes);
        remember(&player->recvs,
                 sim_network_recv(sim->network, peer, player->rank, data, step->bytes));
    }
    return MOVED;
}

/* Context of a RECV_REDUCE, until its message arrives. */
struct arrival {
    struct hvd_reduction reduction;
    const void *own;
    void *to;
    size_t count;
    bool own_is_first;
};

static void add_up(struct sim_message *message)
{
    const struct arrival *arrival = message->context;
    const void *sources[2] = {
        arrival->own_is_first ? arrival->own : message->data,
        arrival->own_is_first ? message->data : arrival->own,
    };

    hvd_reduce(&arrival->reduction, sources, 2, arrival->count, arrival->to);
}

static enum outcome recv_reduce(struct sim *sim, struct player *player,
                                const struct hvd_step *step)
{
    const struct sim_job *job = &sim->jobs[player->job];
    struct arrival *arrival = calloc(1, sizeof(*arrival));
    size_t out_bytes = step->count * hvd_dtype_bytes(job->dtype);
    int64_t end = step->recv_reduce.output + (int64_t)out_bytes;

    arrival->reduction = hvd_reduction_of(job->dtype, job->op);
    arrival->reduction.postscale = job->postscale;
    arrival->reduction.from_partial = step->recv_reduce.is_partial;
    arrival->own = sim_memory(sim, player, &step->recv_reduce.own, step->bytes, false);
    arrival->to = sim_memory(sim, player, &step->recv_reduce.to, out_bytes, true);
    if (step->recv_reduce.to_output) {
        bool fits =
            step->recv_reduce.output >= 0 && end <= job->output_bytes[player->rank];

        arrival->to = fits ? job->outputs[player->rank] + step->recv_reduce.output : NULL;
    }
    arrival->count = step->count;
    arrival->own_is_first = player->node == 0;
    if (sim->layout->nodes != 2 || arrival->own == NULL || arrival->to == NULL) {
        free(arrival);
        return sim_fail(player, "impossible RECV_REDUCE");
    }
    memset(arrival->to, GARBAGE, out_bytes);
    remember(&player->recvs,
             sim_network_recv_by(sim->network, step->recv_reduce.peer, player->rank,
                                 step->bytes, add_up, arrival));
    return MOVED;
}

enum outcome sim_await_messages(const struct player *player, struct messages *messages,
                                uint64_t value)
{
    if (value > messages->count) {
        return sim_fail(player, "waits for a message that was not posted");
    }
    while (messages->done < messages->count && messages->all[messages->done]->is_done) {
        messages->done++;
    }
    return messages->done >= value ? MOVED : WAITS;
}

static enum outcome await_counters(const struct sim *sim, const struct player *player,
                                   const struct hvd_step *step)
{
    int local_size = hvd_layout_local_size(sim->layout, player->node);
    int64_t awaited = (int64_t)(player->counter_base + step->wait.value);
    int64_t least = (int64_t)player->counter_floor;

    least = awaited > least ? awaited : least;
    for (int i = 0; i < local_size; i++) {
        bool is_meant = step->wait.local_rank == -1 || step->wait.local_rank == i;

        if (is_meant && (int64_t)local_player(sim, player->node, i)->counter < least) {
            return WAITS;
        }
    }
    return MOVED;
}

enum outcome sim_execute(struct sim *sim, struct player *player,
                         const struct hvd_step *step)
{
    switch (step->kind) {
    case HVD_STEP_PUT:
        return put(sim, player, step);
    case HVD_STEP_GET:
        return get(sim, player, step);
    case HVD_STEP_REDUCE_LOCAL:
    case HVD_STEP_REDUCE_OUT:
        return reduce_local(sim, player, step);
    case HVD_STEP_REDUCE_NODES:
        return reduce_nodes(sim, player, step);
    case HVD_STEP_COPY:
    case HVD_STEP_OFFER:
    case HVD_STEP_FETCH:
    case HVD_STEP_FETCH_REDUCE:
    case HVD_STEP_STORE:
        return sim_reach(sim, player, step);
    case HVD_STEP_SIGNAL:
        player->counter++;
        return MOVED;
    case HVD_STEP_WAIT:
        return await_counters(sim, player, step);
    case HVD_STEP_SEND:
    case HVD_STEP_RECV:
        return talk(sim, player, step);
    case HVD_STEP_RECV_REDUCE:
        return recv_reduce(sim, player, step);
    case HVD_STEP_WAIT_SEND:
        return sim_await_messages(player, &player->sends, step->messages);
    case HVD_STEP_WAIT_RECV:
        return sim_await_messages(player, &player->recvs, step->messages);
    }
    return sim_fail(player, "unknown step");
}
