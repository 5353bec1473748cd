/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the schedule of a batch by NCCL. */
#include "collectives/gpu/gpu_schedule.h"

/* Alignment of memory for NCCL, and of each tensor in the pack: a multiple of the unit
 * that kernels read and write. It also applies without kernels, because other ranks may
 * have them. */
static const size_t alignment = 256, packed_alignment = 16;

static size_t align_up(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

static int64_t bytes_of(const struct hvd_entry *entry)
{
    return hvd_descriptor_bytes(&entry->descriptor);
}

static struct hvd_gpu_reduction reduction_of(const struct hvd_gpu_schedule *schedule)
{
    struct hvd_gpu_reduction reduction;

    hvd_gpu_reduction_find(&schedule->entries[0]->descriptor, schedule->size,
                           schedule->nccl_version, schedule->all_have_kernels,
                           &reduction);
    return schedule->may_switch_add && schedule->kind == HVD_KIND_ALLREDUCE
               ? hvd_gpu_reduction_of_packed(&reduction, schedule->all_have_kernels)
               : reduction;
}

static bool is_converted(const struct hvd_entry *entry,
                         const struct hvd_gpu_reduction *reduction)
{
    return hvd_dtype_bytes(reduction->dtype) != hvd_dtype_bytes(entry->descriptor.dtype);
}

/* Bytes of a tensor after conversion to NCCL's type. */
static size_t converted_bytes(const struct hvd_entry *entry,
                              const struct hvd_gpu_reduction *reduction, int64_t bytes)
{
    return (size_t)bytes / hvd_dtype_bytes(entry->descriptor.dtype) *
           hvd_dtype_bytes(reduction->dtype);
}

/* --- moving --- */

/* Adds a move of `bytes` bytes of a tensor; writes zeros if `from` is NULL. */
static void add_move(const struct hvd_gpu_schedule *schedule, struct hvd_gpu_step move,
                     int64_t bytes, struct hvd_gpu_steps *steps)
{
    size_t size = hvd_dtype_bytes(schedule->entries[0]->descriptor.dtype);
    bool is_plain = hvd_gpu_step_is_plain(&move);

    move.count = bytes / (int64_t)size;
    if (is_plain) {
        move.kind = schedule->has_kernels ? HVD_GPU_MOVE
                    : move.from != NULL   ? HVD_GPU_COPY
                                          : HVD_GPU_ZERO;
        move.count = bytes;
        move.dtype = move.to_dtype = HVD_UINT8;
    }
    if (bytes > 0 && !(is_plain && move.from == move.to)) {
        hvd_gpu_steps_add(steps, &move);
    }
}

/* Converts to NCCL's type; all tensors of a batch have one type. */
static void add_move_in(const struct hvd_gpu_schedule *schedule,
                        const struct hvd_gpu_reduction *reduction, const void *from,
                        void *to, int64_t bytes, struct hvd_gpu_steps *steps)
{
    struct hvd_gpu_step move =
        hvd_gpu_reduction_move_in(reduction, schedule->entries[0]->descriptor.dtype);

    move.from = from;
    move.to = to;
    add_move(schedule, move, bytes, steps);
}

/* Converts from NCCL's type. */
static void add_move_out(const struct hvd_gpu_schedule *schedule,
                         const struct hvd_gpu_reduction *reduction, const void *from,
                         void *to, int64_t bytes, struct hvd_gpu_steps *steps)
{
    struct hvd_gpu_step move =
        hvd_gpu_reduction_move_out(reduction, schedule->entries[0]->descriptor.dtype);

    move.from = from;
    move.to = to;
    add_move(schedule, move, bytes, steps);
}

/* --- allreduce --- */

/* The reduction of packed tensors, and that of all others. */
struct ways {
    struct hvd_gpu_reduction packed;
    struct hvd_gpu_reduction apart;
};

static struct ways ways_of(const struct hvd_gpu_schedule *schedule)
{
    const struct hvd_gpu_reduction apart = reduction_of(schedule);

    return (struct ways){
        .packed = hvd_gpu_reduction_of_packed(&apart, schedule->all_have_kernels),
        .apart = apart};
}

/* Where NCCL reads and writes a tensor. */
struct place {
    const void *from;
    void *to;
    size_t bytes; /* bytes in NCCL's type */
    bool is_packed; /* from and to are in the pack */
};

/* Positions in the memory of a batch: of the next packed tensor in the pack, and, in the
 * scratch memory, of the next zeros for a tensor that this rank lacks. */
struct walk {
    char *packed;
    char *apart;
};

static bool is_packed(const struct hvd_gpu_schedule *schedule,
                      const struct hvd_gpu_reduction *reduction, int i)
{
    return is_converted(schedule->entries[i], reduction) ||
           (schedule->count > 1 && bytes_of(schedule->entries[i]) < schedule->pack_below);
}

static size_t packed_bytes(const struct hvd_gpu_schedule *schedule,
                           const struct hvd_gpu_reduction *reduction)
{
    size_t bytes = 0;

    for (int i = 0; i < schedule->count; i++) {
        const struct hvd_entry *entry = schedule->entries[i];

        if (is_packed(schedule, reduction, i)) {
            bytes += align_up(converted_bytes(entry, reduction, bytes_of(entry)),
                              packed_alignment);
        }
    }
    return bytes;
}

static struct walk begin_walk(const struct hvd_gpu_schedule *schedule)
{
    return (struct walk){.packed = schedule->pack, .apart = schedule->scratch};
}

static struct place next_place(const struct hvd_gpu_schedule *schedule,
                               const struct hvd_gpu_reduction *reduction, int i,
                               struct walk *walk)
{
    const struct hvd_entry *entry = schedule->entries[i];
    struct place place = {.bytes = converted_bytes(entry, reduction, bytes_of(entry)),
                          .is_packed = is_packed(schedule, reduction, i)};

    if (place.is_packed) {
        place.from = place.to = walk->packed;
        walk->packed += align_up(place.bytes, packed_alignment);
    } else if (entry->is_zeros) {
        place.from = place.to = walk->apart;
        walk->apart += align_up(place.bytes, alignment);
    } else {
        place.from = reduction->before == 1.0 ? entry->input : entry->output;
        place.to = entry->output;
    }
    return place;
}

static size_t allreduce_scratch(const struct hvd_gpu_schedule *schedule,
                                const struct hvd_gpu_reduction *reduction)
{
    size_t bytes = 0;

    for (int i = 0; i < schedule->count; i++) {
        if (!is_packed(schedule, reduction, i) && schedule->entries[i]->is_zeros) {
            bytes += align_up((size_t)bytes_of(schedule->entries[i]), alignment);
        }
    }
    return bytes;
}

static void add_zeros(char *to, size_t bytes, struct hvd_gpu_steps *steps)
{
    if (bytes > 0) {
        hvd_gpu_steps_add(steps, &(struct hvd_gpu_step){.kind = HVD_GPU_ZERO,
                                                        .to = to,
                                                        .count = (int64_t)bytes});
    }
}

/* Zeroes the memory for tensors that a joined rank lacks. Without kernels this takes one
 * step; with kernels each tensor is zeroed separately, by its own move. */
static bool zero_scratch(const struct hvd_gpu_schedule *schedule,
                         const struct hvd_gpu_reduction *reduction,
                         struct hvd_gpu_steps *steps)
{
    bool has_zeros = false;

    for (int i = 0; i < schedule->count; i++) {
        has_zeros |= schedule->entries[i]->is_zeros;
    }
    if (has_zeros && !schedule->has_kernels) {
        add_zeros(schedule->pack, packed_bytes(schedule, reduction), steps);
        add_zeros(schedule->scratch, allreduce_scratch(schedule, reduction), steps);
    }
    return has_zeros && !schedule->has_kernels;
}

static void move_in(const struct hvd_gpu_schedule *schedule, const struct ways *ways,
                    struct hvd_gpu_steps *steps)
{
    struct walk walk = begin_walk(schedule);
    bool is_zero = zero_scratch(schedule, &ways->apart, steps);

    for (int i = 0; i < schedule->count; i++) {
        const struct hvd_entry *entry = schedule->entries[i];
        struct place place = next_place(schedule, &ways->apart, i, &walk);
        const struct hvd_gpu_reduction *reduction =
            place.is_packed ? &ways->packed : &ways->apart;

        if (!entry->is_zeros &&
            (place.from != entry->input || reduction->before != 1.0)) {
            add_move_in(schedule, reduction, entry->input, place.to, bytes_of(entry),
                        steps);
        } else if (entry->is_zeros && !is_zero) {
            add_move_in(schedule, reduction, NULL, place.to, bytes_of(entry), steps);
        }
    }
}

static void move_out(const struct hvd_gpu_schedule *schedule,
                     const struct hvd_gpu_reduction *reduction,
                     struct hvd_gpu_steps *steps)
{
    struct walk walk = begin_walk(schedule);

    for (int i = 0; i < schedule->count; i++) {
        const struct hvd_entry *entry = schedule->entries[i];
        struct place place = next_place(schedule, reduction, i, &walk);

        if (!entry->is_zeros) {
            add_move_out(schedule, reduction, place.to, entry->output, bytes_of(entry),
                         steps);
        }
    }
}

static void add_allreduce(const struct hvd_gpu_reduction *reduction, const void *from,
                          void *to, size_t bytes, struct hvd_gpu_steps *steps)
{
    struct hvd_gpu_step step = hvd_gpu_reduction_step(reduction, HVD_GPU_ALLREDUCE);

    step.from = from;
    step.to = to;
    step.count = (int64_t)(bytes / hvd_dtype_bytes(step.dtype));
    if (step.count > 0) {
        hvd_gpu_steps_add(steps, &step);
    }
}

static void reduce_all(const struct hvd_gpu_schedule *schedule, const struct ways *ways,
                       struct hvd_gpu_steps *steps)
{
    struct walk walk = begin_walk(schedule);

    add_allreduce(&ways->packed, schedule->pack, schedule->pack,
                  packed_bytes(schedule, &ways->packed), steps);
    for (int i = 0; i < schedule->count; i++) {
        struct place place = next_place(schedule, &ways->apart, i, &walk);

        if (!place.is_packed) {
            add_allreduce(&ways->apart, place.from, place.to, place.bytes, steps);
        }
    }
}

static void schedule_allreduce(const struct hvd_gpu_schedule *schedule,
                               struct hvd_gpu_steps *steps)
{
    const struct ways ways = ways_of(schedule);

    move_in(schedule, &ways, steps);
    hvd_gpu_steps_add_kind(steps, HVD_GPU_GROUP);
    reduce_all(schedule, &ways, steps);
    hvd_gpu_steps_add_kind(steps, HVD_GPU_GROUP_END);
    move_out(schedule, &ways.apart, steps); /* the same for both reductions */
}

/* --- reducescatter --- */

/* Bytes of the input that go to a rank. */
static int64_t slice_of(const struct hvd_gpu_schedule *schedule, int rank)
{
    const struct hvd_entry *entry = schedule->entries[0];

    return hvd_entry_share(entry, schedule->size, rank).rows * hvd_entry_row_bytes(entry);
}

static bool is_moved_in(const struct hvd_gpu_schedule *schedule,
                        const struct hvd_gpu_reduction *reduction)
{
    return reduction->before != 1.0 || is_converted(schedule->entries[0], reduction);
}

/* The scratch memory holds the converted input, followed by this rank's converted
 * output. */
static size_t reducescatter_scratch(const struct hvd_gpu_schedule *schedule,
                                    const struct hvd_gpu_reduction *reduction)
{
    const struct hvd_entry *entry = schedule->entries[0];
    size_t bytes = 0;

    if (is_moved_in(schedule, reduction)) {
        bytes = align_up(converted_bytes(entry, reduction, bytes_of(entry)), alignment);
    }
    return is_converted(entry, reduction)
               ? bytes +
                     converted_bytes(entry, reduction, slice_of(schedule, schedule->rank))
               : bytes;
}

static void add_slices(const struct hvd_gpu_schedule *schedule,
                       const struct hvd_gpu_reduction *reduction, const char *from,
                       char *to, struct hvd_gpu_steps *steps)
{
    const struct hvd_entry *entry = schedule->entries[0];
    bool is_even = entry->descriptor.shape[0] % schedule->size == 0;
    struct hvd_gpu_step step = hvd_gpu_reduction_step(
        reduction, is_even ? HVD_GPU_REDUCESCATTER : HVD_GPU_REDUCE);
    int last = is_even ? 1 : schedule->size;

    for (int i = 0; i < last; i++) {
        size_t bytes = converted_bytes(entry, reduction, slice_of(schedule, i));

        step.peer = i;
        step.from = from;
        step.to = is_even || i == schedule->rank ? to : NULL;
        step.count = (int64_t)(bytes / hvd_dtype_bytes(reduction->dtype));
        if (step.count > 0) {
            hvd_gpu_steps_add(steps, &step);
        }
        from += bytes;
    }
}

static void schedule_reducescatter(const struct hvd_gpu_schedule *schedule,
                                   struct hvd_gpu_steps *steps)
{
    const struct hvd_gpu_reduction reduction = reduction_of(schedule);
    const struct hvd_entry *entry = schedule->entries[0];
    const char *from = entry->input;
    char *to = entry->output;

    if (is_moved_in(schedule, &reduction)) {
        add_move_in(schedule, &reduction, from, schedule->scratch, bytes_of(entry),
                    steps);
        from = schedule->scratch;
    }
    if (is_converted(entry, &reduction)) {
        to = schedule->scratch +
             align_up(converted_bytes(entry, &reduction, bytes_of(entry)), alignment);
    }
    hvd_gpu_steps_add_kind(steps, HVD_GPU_GROUP);
    add_slices(schedule, &reduction, from, to, steps);
    hvd_gpu_steps_add_kind(steps, HVD_GPU_GROUP_END);
    add_move_out(schedule, &reduction, to, entry->output,
                 slice_of(schedule, schedule->rank), steps);
}

/* --- reduce --- */

static size_t rooted_reduce_scratch(const struct hvd_gpu_schedule *schedule,
                                    const struct hvd_gpu_reduction *reduction)
{
    const struct hvd_entry *entry = schedule->entries[0];

    return is_moved_in(schedule, reduction)
               ? converted_bytes(entry, reduction, bytes_of(entry))
               : 0;
}

/* Only the root has an output, so the other ranks scale and convert their input in the
 * scratch memory. */
static void schedule_reduce(const struct hvd_gpu_schedule *schedule,
                            struct hvd_gpu_steps *steps)
{
    const struct hvd_gpu_reduction reduction = reduction_of(schedule);
    const struct hvd_entry *entry = schedule->entries[0];
    struct hvd_gpu_step step = hvd_gpu_reduction_step(&reduction, HVD_GPU_REDUCE);
    bool is_root = schedule->rank == schedule->root;

    step.peer = schedule->root;
    step.count = hvd_entry_count(entry);
    step.from = entry->input;
    if (is_moved_in(schedule, &reduction)) {
        add_move_in(schedule, &reduction, entry->input, schedule->scratch,
                    bytes_of(entry), steps);
        step.from = schedule->scratch;
    }
    if (is_root) {
        step.to = is_converted(entry, &reduction) ? schedule->scratch : entry->output;
    }
    if (step.count > 0) {
        hvd_gpu_steps_add(steps, &step);
    }
    if (is_root) {
        add_move_out(schedule, &reduction, step.to, entry->output, bytes_of(entry),
                     steps);
    }
}

/* --- broadcast and allgather --- */

static void schedule_broadcast(const struct hvd_gpu_schedule *schedule,
                               struct hvd_gpu_steps *steps)
{
    const struct hvd_entry *entry = schedule->entries[0];
    struct hvd_gpu_step step = {
        .kind = HVD_GPU_BROADCAST,
        .from = schedule->rank == schedule->root ? entry->input : entry->output,
        .to = entry->output,
        .count = hvd_descriptor_bytes(&entry->descriptor),
        .dtype = HVD_INT8,
        .peer = schedule->root,
    };

    if (step.count > 0) {
        hvd_gpu_steps_add(steps, &step);
    }
}

static bool are_equal(const int64_t *rows, int size)
{
    for (int i = 1; i < size; i++) {
        if (rows[i] != rows[0]) {
            return false;
        }
    }
    return true;
}

static void schedule_allgather(const struct hvd_gpu_schedule *schedule,
                               struct hvd_gpu_steps *steps)
{
    const struct hvd_entry *entry = schedule->entries[0];
    int64_t row_bytes = hvd_entry_row_bytes(entry);
    char *to = schedule->result;
    struct hvd_gpu_step step = {.kind = HVD_GPU_ALLGATHER,
                                .from = entry->input,
                                .to = to,
                                .count = schedule->rows[0] * row_bytes,
                                .dtype = HVD_INT8};

    if (are_equal(schedule->rows, schedule->size)) {
        if (step.count > 0) {
            hvd_gpu_steps_add(steps, &step);
        }
        return;
    }
    step.kind = HVD_GPU_BROADCAST;
    hvd_gpu_steps_add_kind(steps, HVD_GPU_GROUP);
    for (int i = 0; i < schedule->size; i++) {
        step.peer = i;
        step.to = to;
        step.from = i == schedule->rank ? entry->input : to;
        step.count = schedule->rows[i] * row_bytes;
        if (step.count > 0) {
            hvd_gpu_steps_add(steps, &step);
        }
        to += step.count;
    }
    hvd_gpu_steps_add_kind(steps, HVD_GPU_GROUP_END);
}

/* --- alltoall, gather and scatter --- */

/* These send blocks from rank to rank. Empty blocks are left out, and a rank copies its
 * block for itself. */

static void add_send(const struct hvd_gpu_schedule *schedule, const void *from,
                     int64_t bytes, int peer, struct hvd_gpu_steps *steps)
{
    const struct hvd_gpu_step step = {.kind = HVD_GPU_SEND,
                                      .from = from,
                                      .count = bytes,
                                      .dtype = HVD_INT8,
                                      .peer = peer};

    if (bytes > 0 && peer != schedule->rank) {
        hvd_gpu_steps_add(steps, &step);
    }
}

static void add_recv(const struct hvd_gpu_schedule *schedule, void *to, int64_t bytes,
                     int peer, struct hvd_gpu_steps *steps)
{
    const struct hvd_gpu_step step = {
        .kind = HVD_GPU_RECV, .to = to, .count = bytes, .dtype = HVD_INT8, .peer = peer};

    if (bytes > 0 && peer != schedule->rank) {
        hvd_gpu_steps_add(steps, &step);
    }
}

static void schedule_alltoall(const struct hvd_gpu_schedule *schedule,
                              struct hvd_gpu_steps *steps)
{
    const struct hvd_entry *entry = schedule->entries[0];
    int64_t row_bytes = hvd_entry_row_bytes(entry);
    const char *from = entry->input;
    char *to = schedule->result;
    const char *own_from = NULL;
    char *own_to = NULL;

    hvd_gpu_steps_add_kind(steps, HVD_GPU_GROUP);
    for (int i = 0; i < schedule->size; i++) {
        int64_t sent = schedule->sent[i] * row_bytes;
        int64_t received = schedule->rows[i] * row_bytes;

        if (i == schedule->rank) {
            own_from = from;
            own_to = to;
        }
        add_send(schedule, from, sent, i, steps);
        add_recv(schedule, to, received, i, steps);
        from += sent;
        to += received;
    }
    hvd_gpu_steps_add_kind(steps, HVD_GPU_GROUP_END);
    hvd_gpu_steps_add_copy(steps, own_from, own_to,
                           schedule->sent[schedule->rank] * row_bytes);
}

static void schedule_gather(const struct hvd_gpu_schedule *schedule,
                            struct hvd_gpu_steps *steps)
{
    const struct hvd_entry *entry = schedule->entries[0];
    int64_t own_bytes = bytes_of(entry), row_bytes = hvd_entry_row_bytes(entry);
    bool is_root = schedule->rank == schedule->root;
    char *to = schedule->result, *own_to = NULL;

    hvd_gpu_steps_add_kind(steps, HVD_GPU_GROUP);
    add_send(schedule, entry->input, own_bytes, schedule->root, steps);
    for (int i = 0; is_root && i < schedule->size; i++) {
        own_to = i == schedule->rank ? to : own_to;
        add_recv(schedule, to, schedule->rows[i] * row_bytes, i, steps);
        to += schedule->rows[i] * row_bytes;
    }
    hvd_gpu_steps_add_kind(steps, HVD_GPU_GROUP_END);
    if (is_root) {
        hvd_gpu_steps_add_copy(steps, entry->input, own_to, own_bytes);
    }
}

static void schedule_scatter(const struct hvd_gpu_schedule *schedule,
                             struct hvd_gpu_steps *steps)
{
    const struct hvd_entry *entry = schedule->entries[0];
    int64_t own_bytes = slice_of(schedule, schedule->rank);
    bool is_root = schedule->rank == schedule->root;
    const char *from = entry->input, *own_from = NULL;

    hvd_gpu_steps_add_kind(steps, HVD_GPU_GROUP);
    for (int i = 0; is_root && i < schedule->size; i++) {
        own_from = i == schedule->rank ? from : own_from;
        add_send(schedule, from, slice_of(schedule, i), i, steps);
        from += slice_of(schedule, i);
    }
    add_recv(schedule, entry->output, own_bytes, schedule->root, steps);
    hvd_gpu_steps_add_kind(steps, HVD_GPU_GROUP_END);
    if (is_root) {
        hvd_gpu_steps_add_copy(steps, own_from, entry->output, own_bytes);
    }
}

/* --- all collectives --- */

static bool is_reduction(enum hvd_kind kind)
{
    return kind == HVD_KIND_ALLREDUCE || kind == HVD_KIND_ADASUM ||
           kind == HVD_KIND_REDUCESCATTER || kind == HVD_KIND_REDUCE;
}

bool hvd_gpu_schedule_fits(const struct hvd_descriptor *descriptor, int size,
                           int nccl_version, bool all_have_kernels)
{
    struct hvd_gpu_reduction reduction;

    return !is_reduction(descriptor->kind) ||
           hvd_gpu_reduction_find(descriptor, size, nccl_version, all_have_kernels,
                                  &reduction);
}

static size_t reduce_pack(const struct hvd_gpu_schedule *schedule)
{
    const struct hvd_gpu_reduction reduction = reduction_of(schedule);

    return align_up(packed_bytes(schedule, &reduction), alignment);
}

static size_t reduce_scratch(const struct hvd_gpu_schedule *schedule)
{
    const struct hvd_gpu_reduction reduction = reduction_of(schedule);

    switch (schedule->kind) {
    case HVD_KIND_REDUCESCATTER:
        return reducescatter_scratch(schedule, &reduction);
    case HVD_KIND_REDUCE:
        return rooted_reduce_scratch(schedule, &reduction);
    default:
        return allreduce_scratch(schedule, &reduction);
    }
}

size_t hvd_gpu_schedule_scratch_bytes(const struct hvd_gpu_schedule *schedule)
{
    return is_reduction(schedule->kind) ? reduce_scratch(schedule) : 0;
}

size_t hvd_gpu_schedule_pack_bytes(const struct hvd_gpu_schedule *schedule)
{
    return schedule->kind == HVD_KIND_ALLREDUCE ? reduce_pack(schedule) : 0;
}

/* Bytes of the result on this rank. */
static int64_t result_bytes(const struct hvd_gpu_schedule *schedule,
                            const struct hvd_entry *entry)
{
    bool is_root = schedule->rank == schedule->root;

    switch (schedule->kind) {
    case HVD_KIND_REDUCESCATTER:
        return slice_of(schedule, schedule->rank);
    case HVD_KIND_ALLGATHER:
    case HVD_KIND_ALLTOALL:
    case HVD_KIND_GATHER:
        return entry->result_rows * hvd_entry_row_bytes(entry);
    case HVD_KIND_BROADCAST:
        return is_root ? 0 : bytes_of(entry);
    case HVD_KIND_SCATTER:
        return is_root ? 0 : slice_of(schedule, schedule->rank);
    case HVD_KIND_REDUCE:
        return is_root ? bytes_of(entry) : 0;
    default:
        return bytes_of(entry);
    }
}

static void poison_results(const struct hvd_gpu_schedule *schedule,
                           struct hvd_gpu_steps *steps)
{
    for (int i = 0; schedule->has_kernels && i < schedule->count; i++) {
        const struct hvd_entry *entry = schedule->entries[i];
        void *result = schedule->result != NULL ? schedule->result : entry->output;

        if (!entry->is_zeros) {
            hvd_gpu_steps_add_poison(steps, entry->descriptor.dtype, result,
                                     result_bytes(schedule, entry));
        }
    }
}

void hvd_gpu_schedule_steps(const struct hvd_gpu_schedule *schedule,
                            struct hvd_gpu_steps *steps)
{
    switch (schedule->kind) {
    case HVD_KIND_ALLREDUCE:
        schedule_allreduce(schedule, steps);
        break;
    case HVD_KIND_REDUCESCATTER:
        schedule_reducescatter(schedule, steps);
        break;
    case HVD_KIND_BROADCAST:
        schedule_broadcast(schedule, steps);
        break;
    case HVD_KIND_ALLGATHER:
        schedule_allgather(schedule, steps);
        break;
    case HVD_KIND_REDUCE:
        schedule_reduce(schedule, steps);
        break;
    case HVD_KIND_GATHER:
        schedule_gather(schedule, steps);
        break;
    case HVD_KIND_SCATTER:
        schedule_scatter(schedule, steps);
        break;
    default:
        schedule_alltoall(schedule, steps);
    }
    poison_results(schedule, steps);
}
