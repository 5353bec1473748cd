/* SPDX-License-Identifier: Apache-2.0 */
/* Compares several arrays seen as one with one array. */
#include "collectives/run/segments.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/collectives/rank_values.h"
#include "tests/tap.h"

enum {
    MOST_BYTES = 4000,
    MOST_SEGMENTS = 300,
    LARGE_BYTES = 17 << 20,
};

static uint32_t seed;
static char whole[MOST_BYTES], parts[MOST_BYTES];

static uint32_t draw(uint32_t below)
{
    static int64_t drawn;

    return value_random(seed, 0, drawn++) % below;
}

/* Cuts the parts into segments, many of them empty. */
static struct hvd_segments cut(void)
{
    int count = 1 + (int)draw(MOST_SEGMENTS);
    int64_t most = 2 * MOST_BYTES / count + 1;
    struct hvd_segments segments;

    if (hvd_segments_init(&segments, count) != 0) {
        printf("Bail out! no memory\n");
        exit(99);
    }
    for (int i = 0; i < count; i++) {
        int64_t left = MOST_BYTES - segments.begin[i];
        int64_t bytes = draw(3) == 0 ? 0 : draw((uint32_t)most);

        segments.data[i] = parts + segments.begin[i];
        segments.begin[i + 1] = segments.begin[i] + (bytes < left ? bytes : left);
    }
    return segments;
}

/* Whether the segments always have the same content as one array. Writes to both, to
 * random ranges or, if in_order, to consecutive ones. */
static bool equals_whole(struct hvd_segments *segments, bool in_order)
{
    int64_t total = segments->begin[segments->count];
    int64_t begin = 0;
    char out[MOST_BYTES], in[MOST_BYTES];

    for (int i = 0; i < 200 && total > 0; i++) {
        size_t bytes;

        if (!in_order || begin == total) {
            begin = draw((uint32_t)total);
        }
        bytes = draw((uint32_t)(total - begin) + 1);
        memset(in, (int)draw(256), bytes);
        hvd_segments_write(segments, begin, bytes, in);
        memcpy(whole + begin, in, bytes);
        begin += in_order ? (int64_t)bytes : 0;
        hvd_segments_read(segments, 0, (size_t)total, HVD_UINT8, 1.0, out);
        if (memcmp(out, whole, (size_t)total) != 0) {
            return false;
        }
    }
    return true;
}

/* Tests some ranges of an array so large that writes bypass the caches. */
static bool is_written_at_large(void)
{
    struct hvd_segments segments;
    char *expected = calloc(3, LARGE_BYTES), *in = expected + LARGE_BYTES;
    char *data = in + LARGE_BYTES;
    bool is_good;

    if (expected == NULL || hvd_segments_init(&segments, 3) != 0) {
        printf("Bail out! no memory\n");
        exit(99);
    }
    for (int i = 0; i < 3; i++) {
        segments.data[i] = data + segments.begin[i];
        segments.begin[i + 1] =
            i == 2 ? LARGE_BYTES : segments.begin[i] + draw(LARGE_BYTES / 2);
    }
    for (int i = 0; i < LARGE_BYTES; i++) {
        in[i] = (char)(i * 7 + i / 256);
    }
    for (int i = 0; i < 20; i++) {
        size_t begin = draw(LARGE_BYTES), from = draw(LARGE_BYTES);
        size_t most = LARGE_BYTES - (begin > from ? begin : from);
        size_t bytes = draw(i % 2 == 0 ? 10000 : (uint32_t)most + 1);

        bytes = bytes < most ? bytes : most;
        hvd_segments_write(&segments, (int64_t)begin, bytes, in + from);
        memcpy(expected + begin, in + from, bytes);
    }
    is_good = hvd_segments_at(&segments, segments.begin[2], LARGE_BYTES).is_streamed &&
              !hvd_segments_at(&segments, segments.begin[2], 64).is_streamed &&
              memcmp(data, expected, LARGE_BYTES) == 0;
    hvd_segments_finish(&segments);
    free(expected);
    return is_good;
}

/* Whether forgotten segments read as zeros and drop writes. */
static bool forgets_all(void)
{
    struct hvd_segments segments;
    char data[8] = "abcdefg", read[8] = "1234567";
    static const char zeros[8];
    bool is_good;

    if (hvd_segments_init(&segments, 2) != 0) {
        printf("Bail out! no memory\n");
        exit(99);
    }
    for (int i = 0; i < 2; i++) {
        segments.data[i] = data + 4 * i;
        segments.begin[i + 1] = 4 * (i + 1);
    }
    hvd_segments_forget(&segments);
    hvd_segments_write(&segments, 0, sizeof(zeros), zeros);
    hvd_segments_read(&segments, 0, sizeof(read), HVD_UINT8, 1, read);
    is_good = strcmp(data, "abcdefg") == 0 && memcmp(read, zeros, sizeof(zeros)) == 0;
    hvd_segments_finish(&segments);
    return is_good;
}

int main(void)
{
    bool is_good = true;

    seed = tap_seed((unsigned)time(NULL));
    for (int i = 0; i < 200; i++) {
        struct hvd_segments segments = cut();

        memset(whole, 0, sizeof(whole));
        memset(parts, 0, sizeof(parts));
        is_good = is_good && equals_whole(&segments, i % 2 == 0);
        hvd_segments_finish(&segments);
    }
    tap_ok(is_good, "segments are read and written as one array");
    tap_ok(is_written_at_large(), "large segments are read and written as one array");
    tap_ok(forgets_all(), "forgotten data is neither read nor written");
    return tap_done();
}
