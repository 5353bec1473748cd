/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the size below which packing a tensor is faster.
 *
 * The time to pack and unpack a tensor is proportional to its size; another allreduce in
 * a group costs the same for each tensor. So the limit is
 *
 *     measured size  *  time of one more allreduce  /  time to move one tensor */
#include "collectives/gpu/gpu_packing_limit.h"

enum {
    /* parts of a round: pack, allreduce of the pack, unpack, allreduce of each tensor */
    PARTS = 4,
};

struct hvd_gpu_packing_times hvd_gpu_packing_read(const struct hvd_gpu_span *spans,
                                                  int count)
{
    int64_t least[PARTS] = {0};
    int at = 0;

    for (int i = 0; i < count; i++) {
        int64_t ns = spans[i].end_ns - spans[i].begin_ns;

        if (spans[i].kind == HVD_GPU_CONNECTS || spans[i].kind == HVD_GPU_AWAITS) {
            continue;
        }
        if (spans[i].kind != (at % 2 == 0 ? HVD_GPU_MOVES : HVD_GPU_COLLECTS)) {
            return (struct hvd_gpu_packing_times){0};
        }
        if (at < PARTS || ns < least[at % PARTS]) {
            least[at % PARTS] = ns;
        }
        at++;
    }
    return (struct hvd_gpu_packing_times){.is_known = at >= PARTS ? 1 : 0,
                                          .moves_ns = least[0] + least[2],
                                          .packed_ns = least[1],
                                          .apart_ns = least[3]};
}

/* For packing, the slowest rank counts, because all others wait for it. For an allreduce,
 * the fastest time counts: it is that of the rank that arrives last and waits for no
 * other. */
static struct hvd_gpu_packing_times agree_times(const struct hvd_gpu_packing_times *told,
                                                int size)
{
    struct hvd_gpu_packing_times all = told[0];

    for (int i = 0; i < size; i++) {
        const struct hvd_gpu_packing_times *one = &told[i];

        /* Times that are negative, or 0 for packing, are not valid measurements. */
        if (!one->is_known || one->moves_ns <= 0 || one->packed_ns < 0 ||
            one->apart_ns < 0) {
            all.is_known = 0;
        }
        all.moves_ns = one->moves_ns > all.moves_ns ? one->moves_ns : all.moves_ns;
        all.packed_ns = one->packed_ns < all.packed_ns ? one->packed_ns : all.packed_ns;
        all.apart_ns = one->apart_ns < all.apart_ns ? one->apart_ns : all.apart_ns;
    }
    return all;
}

int64_t hvd_gpu_packing_limit(const struct hvd_gpu_packing_times *told, int size,
                              struct hvd_gpu_packing_times *agreed)
{
    const double tensors = HVD_GPU_PACKING_TENSORS;
    double call_ns, move_ns, bytes;

    *agreed = agree_times(told, size);
    if (!agreed->is_known) {
        return HVD_GPU_PACKING_USUAL;
    }
    call_ns = ((double)agreed->apart_ns - (double)agreed->packed_ns) / (tensors - 1);
    move_ns = (double)agreed->moves_ns / tensors;
    bytes = HVD_GPU_PACKING_BYTES * (call_ns / move_ns);
    return bytes < HVD_GPU_PACKING_LEAST  ? HVD_GPU_PACKING_LEAST
           : bytes > HVD_GPU_PACKING_MOST ? HVD_GPU_PACKING_MOST
                                          : (int64_t)bytes;
}
