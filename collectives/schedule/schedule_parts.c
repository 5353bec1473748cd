/* SPDX-License-Identifier: Apache-2.0 */
/* Rank and range arithmetic that the algorithms share. */
#include "collectives/schedule/schedule_parts.h"

/* Parts start on cache lines, whatever the type of the element, if this makes them at
 * most 1/16 larger. */
enum {
    ALIGNED_ELEMENTS = 64,
    LEAST_ALIGNED_PART = 16 * ALIGNED_ELEMENTS,
};

enum {
    CHUNKS_THAT_OVERLAP = 4
};

int hvd_slices_widest(const struct hvd_layout *layout)
{
    int widest = 1;

    for (int node = 0; node < layout->nodes; node++) {
        int local_size = hvd_layout_local_size(layout, node);

        widest = local_size > widest ? local_size : widest;
    }
    return widest;
}

int hvd_slices_each(const struct hvd_layout *layout, int slices)
{
    int most = 1;

    for (int node = 0; node < layout->nodes; node++) {
        int each = (int)hvd_divide_up(slices, hvd_layout_local_size(layout, node));

        most = each > most ? each : most;
    }
    return most;
}

int hvd_slice_owner(const struct hvd_layout *layout, int node, int slice)
{
    return hvd_layout_rank(layout, node, slice % hvd_layout_local_size(layout, node));
}

int64_t hvd_part_most(int64_t count, int parts)
{
    int64_t most = hvd_divide_up(count, parts);

    if (parts > 1 && most >= LEAST_ALIGNED_PART) {
        most = hvd_divide_up(most, ALIGNED_ELEMENTS) * ALIGNED_ELEMENTS;
    }
    return most;
}

struct hvd_range hvd_part_of(struct hvd_range whole, int parts, int part)
{
    int64_t most = hvd_part_most(whole.count, parts);
    struct hvd_range slice = {whole.begin + part * most, most};

    return hvd_range_common(whole, slice);
}

struct hvd_range hvd_range_common(struct hvd_range a, struct hvd_range b)
{
    int64_t a_end = a.begin + a.count;
    int64_t b_end = b.begin + b.count;
    int64_t begin = a.begin > b.begin ? a.begin : b.begin;
    int64_t end = a_end < b_end ? a_end : b_end;

    return (struct hvd_range){begin, end > begin ? end - begin : 0};
}

int64_t hvd_chunk_count(int64_t units, size_t unit_bytes, int64_t most,
                        size_t least_bytes, size_t chunk_bytes)
{
    int64_t least = (int64_t)(least_bytes / unit_bytes);
    int64_t overlapping = hvd_divide_up(units, CHUNKS_THAT_OVERLAP);
    int64_t wish = overlapping > least ? overlapping : least;

    if (chunk_bytes > 0) {
        wish = chunk_bytes > unit_bytes ? (int64_t)(chunk_bytes / unit_bytes) : 1;
    }
    return hvd_divide_up(units, wish < most ? wish : most);
}

int64_t hvd_divide_up(int64_t a, int64_t b)
{
    return a / b + (a % b != 0 ? 1 : 0);
}
