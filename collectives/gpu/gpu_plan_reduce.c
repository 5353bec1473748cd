/* SPDX-License-Identifier: Apache-2.0 */
/* What an allreduce and a reducescatter of GPU tensors come to for NCCL and the kernels. */
#include "collectives/gpu/gpu_plan_reduce.h"

/* Of what goes to NCCL by itself, and of each tensor among those moved together: what the
 * kernels read and write at once. That is so without kernels too, for other ranks may
 * have them. */
static const size_t alignment = 256, packed_alignment = 16;

static size_t align(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

static int64_t bytes_of(const struct hvd_entry *entry)
{
    return hvd_proposal_bytes(&entry->proposal);
}

static struct hvd_gpu_way way_of(const struct hvd_gpu_plan *plan)
{
    struct hvd_gpu_way way;

    hvd_gpu_way_find(&plan->entries[0]->proposal, plan->size, plan->nccl_version,
                     plan->all_have_kernels, &way);
    return way;
}

static bool is_converted(const struct hvd_entry *entry, const struct hvd_gpu_way *way)
{
    return hvd_dtype_bytes(way->dtype) != hvd_dtype_bytes(entry->proposal.dtype);
}

/* What so many bytes of a tensor come to in NCCL's type. */
static size_t bytes_by_way(const struct hvd_entry *entry, const struct hvd_gpu_way *way,
                           int64_t bytes)
{
    return (size_t)bytes / hvd_dtype_bytes(entry->proposal.dtype) *
           hvd_dtype_bytes(way->dtype);
}

/* --- moving --- */

/* Fills in how a tensor's bytes are moved. from NULL: zeros. */
static void add_move(const struct hvd_gpu_plan *plan, struct hvd_gpu_step move,
                     int64_t bytes, struct hvd_gpu_steps *steps)
{
    size_t size = hvd_dtype_bytes(plan->entries[0]->proposal.dtype);
    bool is_plain = move.factor == 1.0 && move.divisor <= 1 &&
                    hvd_dtype_bytes(move.dtype) == hvd_dtype_bytes(move.to_dtype);

    move.kind = HVD_GPU_MOVE;
    move.count = bytes / (int64_t)size;
    if (is_plain) {
        move.kind = plan->has_kernels   ? HVD_GPU_MOVE
                    : move.from != NULL ? HVD_GPU_COPY
                                        : HVD_GPU_ZERO;
        move.count = bytes;
        move.dtype = move.to_dtype = HVD_UINT8;
    }
    if (bytes > 0 && !(is_plain && move.from == move.to)) {
        hvd_gpu_steps_add(steps, &move);
    }
}

/* Bytes of a tensor into NCCL's type; all tensors are of one type. */
static void add_move_in(const struct hvd_gpu_plan *plan, const struct hvd_gpu_way *way,
                        const void *from, void *to, int64_t bytes,
                        struct hvd_gpu_steps *steps)
{
    const struct hvd_gpu_step move = {.from = from,
                                      .to = to,
                                      .dtype = plan->entries[0]->proposal.dtype,
                                      .to_dtype = way->dtype,
                                      .factor = way->before};

    add_move(plan, move, bytes, steps);
}

/* And out of it. */
static void add_move_out(const struct hvd_gpu_plan *plan, const struct hvd_gpu_way *way,
                         const void *from, void *to, int64_t bytes,
                         struct hvd_gpu_steps *steps)
{
    const struct hvd_gpu_step move = {.from = from,
                                      .to = to,
                                      .dtype = way->dtype,
                                      .to_dtype = plan->entries[0]->proposal.dtype,
                                      .factor = way->after,
                                      .divisor = way->divisor};

    add_move(plan, move, bytes, steps);
}

/* --- allreduce --- */

/* Where a tensor is on its way through NCCL. */
struct place {
    const void *from;
    void *to;
    size_t bytes; /* in NCCL's type */
    bool is_packed; /* it goes with others, from and to in the pack */
};

/* Walks over the places of a batch: those packed are one behind the other in the pack,
 * what is absent besides in the room. */
struct walk {
    char *packed;
    char *apart;
};

static bool is_packed(const struct hvd_gpu_plan *plan, const struct hvd_gpu_way *way,
                      int i)
{
    return is_converted(plan->entries[i], way) ||
           (plan->count > 1 && bytes_of(plan->entries[i]) < plan->pack_below);
}

static size_t packed_bytes(const struct hvd_gpu_plan *plan, const struct hvd_gpu_way *way)
{
    size_t bytes = 0;

    for (int i = 0; i < plan->count; i++) {
        const struct hvd_entry *entry = plan->entries[i];

        if (is_packed(plan, way, i)) {
            bytes += align(bytes_by_way(entry, way, bytes_of(entry)), packed_alignment);
        }
    }
    return bytes;
}

static struct walk begin_walk(const struct hvd_gpu_plan *plan)
{
    return (struct walk){.packed = plan->pack, .apart = plan->room};
}

static struct place next_place(const struct hvd_gpu_plan *plan,
                               const struct hvd_gpu_way *way, int i, struct walk *walk)
{
    const struct hvd_entry *entry = plan->entries[i];
    struct place place = {.bytes = bytes_by_way(entry, way, bytes_of(entry)),
                          .is_packed = is_packed(plan, way, i)};

    if (place.is_packed) {
        place.from = place.to = walk->packed;
        walk->packed += align(place.bytes, packed_alignment);
    } else if (entry->is_absent) {
        place.from = place.to = walk->apart;
        walk->apart += align(place.bytes, alignment);
    } else {
        place.from = way->before == 1.0 ? entry->input : entry->output;
        place.to = entry->output;
    }
    return place;
}

static size_t allreduce_room(const struct hvd_gpu_plan *plan,
                             const struct hvd_gpu_way *way)
{
    size_t bytes = 0;

    for (int i = 0; i < plan->count; i++) {
        if (!is_packed(plan, way, i) && plan->entries[i]->is_absent) {
            bytes += align((size_t)bytes_of(plan->entries[i]), alignment);
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

/* What comes from a joined rank, which may still have some of the tensors: zeros. Without
 * kernels in one go. */
static bool zero_room(const struct hvd_gpu_plan *plan, const struct hvd_gpu_way *way,
                      struct hvd_gpu_steps *steps)
{
    bool has_absent = false;

    for (int i = 0; i < plan->count; i++) {
        has_absent |= plan->entries[i]->is_absent;
    }
    if (has_absent && !plan->has_kernels) {
        add_zeros(plan->pack, packed_bytes(plan, way), steps);
        add_zeros(plan->room, allreduce_room(plan, way), steps);
    }
    return has_absent && !plan->has_kernels;
}

static void move_in(const struct hvd_gpu_plan *plan, const struct hvd_gpu_way *way,
                    struct hvd_gpu_steps *steps)
{
    struct walk walk = begin_walk(plan);
    bool is_zero = zero_room(plan, way, steps);

    for (int i = 0; i < plan->count; i++) {
        const struct hvd_entry *entry = plan->entries[i];
        struct place place = next_place(plan, way, i, &walk);

        if (!entry->is_absent && (place.from != entry->input || way->before != 1.0)) {
            add_move_in(plan, way, entry->input, place.to, bytes_of(entry), steps);
        } else if (entry->is_absent && !is_zero) {
            add_move_in(plan, way, NULL, place.to, bytes_of(entry), steps);
        }
    }
}

static void move_out(const struct hvd_gpu_plan *plan, const struct hvd_gpu_way *way,
                     struct hvd_gpu_steps *steps)
{
    struct walk walk = begin_walk(plan);

    for (int i = 0; i < plan->count; i++) {
        const struct hvd_entry *entry = plan->entries[i];
        struct place place = next_place(plan, way, i, &walk);

        if (!entry->is_absent) {
            add_move_out(plan, way, place.to, entry->output, bytes_of(entry), steps);
        }
    }
}

struct hvd_gpu_step hvd_gpu_plan_reduction(const struct hvd_gpu_way *way,
                                           enum hvd_gpu_step_kind kind)
{
    return (struct hvd_gpu_step){
        .kind = kind, .dtype = way->dtype, .op = way->op, .factor = way->within};
}

static void add_allreduce(const struct hvd_gpu_way *way, const void *from, void *to,
                          size_t bytes, struct hvd_gpu_steps *steps)
{
    struct hvd_gpu_step step = hvd_gpu_plan_reduction(way, HVD_GPU_ALLREDUCE);

    step.from = from;
    step.to = to;
    step.count = (int64_t)(bytes / hvd_dtype_bytes(step.dtype));
    if (step.count > 0) {
        hvd_gpu_steps_add(steps, &step);
    }
}

static void reduce_all(const struct hvd_gpu_plan *plan, const struct hvd_gpu_way *way,
                       struct hvd_gpu_steps *steps)
{
    struct walk walk = begin_walk(plan);

    add_allreduce(way, plan->pack, plan->pack, packed_bytes(plan, way), steps);
    for (int i = 0; i < plan->count; i++) {
        struct place place = next_place(plan, way, i, &walk);

        if (!place.is_packed) {
            add_allreduce(way, place.from, place.to, place.bytes, steps);
        }
    }
}

void hvd_gpu_plan_allreduce(const struct hvd_gpu_plan *plan, struct hvd_gpu_steps *steps)
{
    const struct hvd_gpu_way way = way_of(plan);

    move_in(plan, &way, steps);
    hvd_gpu_steps_add_kind(steps, HVD_GPU_GROUP);
    reduce_all(plan, &way, steps);
    hvd_gpu_steps_add_kind(steps, HVD_GPU_GROUP_END);
    move_out(plan, &way, steps);
}

/* --- reducescatter --- */

/* How many bytes of the input are a rank's. */
static int64_t part_of(const struct hvd_gpu_plan *plan, int rank)
{
    const struct hvd_entry *entry = plan->entries[0];
    int64_t rows = entry->proposal.shape[0];

    return (rows / plan->size + (rank < rows % plan->size ? 1 : 0)) *
           hvd_entry_row_bytes(entry);
}

static bool is_moved_in(const struct hvd_gpu_plan *plan, const struct hvd_gpu_way *way)
{
    return way->before != 1.0 || is_converted(plan->entries[0], way);
}

/* The input in the room, and behind it, converted, this rank's output. */
static size_t reducescatter_room(const struct hvd_gpu_plan *plan,
                                 const struct hvd_gpu_way *way)
{
    const struct hvd_entry *entry = plan->entries[0];
    size_t bytes = 0;

    if (is_moved_in(plan, way)) {
        bytes = align(bytes_by_way(entry, way, bytes_of(entry)), alignment);
    }
    return is_converted(entry, way)
               ? bytes + bytes_by_way(entry, way, part_of(plan, plan->rank))
               : bytes;
}

static void add_parts(const struct hvd_gpu_plan *plan, const struct hvd_gpu_way *way,
                      const char *from, char *to, struct hvd_gpu_steps *steps)
{
    const struct hvd_entry *entry = plan->entries[0];
    bool is_even = entry->proposal.shape[0] % plan->size == 0;
    struct hvd_gpu_step step =
        hvd_gpu_plan_reduction(way, is_even ? HVD_GPU_REDUCESCATTER : HVD_GPU_REDUCE);
    int last = is_even ? 1 : plan->size;

    for (int i = 0; i < last; i++) {
        size_t bytes = bytes_by_way(entry, way, part_of(plan, i));

        step.peer = i;
        step.from = from;
        step.to = is_even || i == plan->rank ? to : NULL;
        step.count = (int64_t)(bytes / hvd_dtype_bytes(way->dtype));
        if (step.count > 0) {
            hvd_gpu_steps_add(steps, &step);
        }
        from += bytes;
    }
}

void hvd_gpu_plan_reducescatter(const struct hvd_gpu_plan *plan,
                                struct hvd_gpu_steps *steps)
{
    const struct hvd_gpu_way way = way_of(plan);
    const struct hvd_entry *entry = plan->entries[0];
    const char *from = entry->input;
    char *to = entry->output;

    if (is_moved_in(plan, &way)) {
        add_move_in(plan, &way, from, plan->room, bytes_of(entry), steps);
        from = plan->room;
    }
    if (is_converted(entry, &way)) {
        to = plan->room + align(bytes_by_way(entry, &way, bytes_of(entry)), alignment);
    }
    hvd_gpu_steps_add_kind(steps, HVD_GPU_GROUP);
    add_parts(plan, &way, from, to, steps);
    hvd_gpu_steps_add_kind(steps, HVD_GPU_GROUP_END);
    add_move_out(plan, &way, to, entry->output, part_of(plan, plan->rank), steps);
}

size_t hvd_gpu_plan_reduce_pack(const struct hvd_gpu_plan *plan)
{
    const struct hvd_gpu_way way = way_of(plan);

    return align(packed_bytes(plan, &way), alignment);
}

size_t hvd_gpu_plan_reduce_room(const struct hvd_gpu_plan *plan)
{
    const struct hvd_gpu_way way = way_of(plan);

    return plan->kind == HVD_KIND_REDUCESCATTER ? reducescatter_room(plan, &way)
                                                : allreduce_room(plan, &way);
}
