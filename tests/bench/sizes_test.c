/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes as users write them. */
#include "contrib/bench/hvd_bench/sizes.h"

#include <string.h>

#include "collectives/schedule/algorithm_table.h"
#include "tests/tap.h"

static bool reads(const char *text, int64_t bytes)
{
    int64_t found = 0;

    return bench_size_parse(text, &found, NULL) == 0 && found == bytes;
}

static bool refuses(const char *text)
{
    struct hvd_error err = {0};
    struct bench_sizes sizes;

    return bench_sizes_parse(text, &sizes, &err) == HVD_ERR_ARG && err.text[0] != '\0';
}

/* Whether the list parses to these sizes; 0 ends them. */
static bool lists(const char *text, const int64_t *wanted)
{
    struct bench_sizes sizes;
    int count = 0;

    if (bench_sizes_parse(text, &sizes, NULL) != 0) {
        return false;
    }
    while (wanted[count] != 0 && count < sizes.count &&
           wanted[count] == sizes.bytes[count]) {
        count++;
    }
    return wanted[count] == 0 && count == sizes.count;
}

static bool writes(int64_t bytes, const char *wanted)
{
    char text[32];

    return strcmp(hvd_algorithm_size_write(bytes, text, sizeof(text)), wanted) == 0;
}

int main(void)
{
    tap_ok(reads("8", 8) && reads("1500", 1500), "plain bytes");
    tap_ok(reads("64K", 65536) && reads("3m", 3 << 20) && reads("2G", (int64_t)2 << 30),
           "K, M and G are powers of 1024");
    tap_ok(reads("64KB", 65536) && reads("64KiB", 65536), "a B or iB changes nothing");
    tap_ok(refuses("") && refuses("0") && refuses("-8") && refuses("8X") &&
               refuses("K") && refuses("8KX") && refuses("9000000000G"),
           "invalid sizes are refused");
    tap_ok(lists("8,1K,64M", (const int64_t[]){8, 1024, 64 << 20, 0}), "a list");
    tap_ok(lists("8:64", (const int64_t[]){8, 16, 32, 64, 0}), "a range doubles");
    tap_ok(lists("8:100:4", (const int64_t[]){8, 32, 0}),
           "a range ends with the last step that is not above its maximum");
    tap_ok(lists("4:4,2:8:3", (const int64_t[]){4, 2, 6, 0}), "ranges in a list");
    tap_ok(refuses("64:8") && refuses("8:64:1") && refuses("8:64:x"),
           "ranges that are empty or do not grow are refused");
    tap_ok(refuses("1:9000000000000000000,1:9000000000000000000,1:9000000000000000000,"
                   "1:9000000000000000000,1:9000000000000000000"),
           "more sizes than there is room for are refused");
    tap_ok(writes(8, "8") && writes(1500, "1500") && writes(65536, "64K") &&
               writes(3 << 20, "3M") && writes((int64_t)2 << 30, "2G"),
           "sizes are written in the shortest exact form");
    return tap_done();
}
