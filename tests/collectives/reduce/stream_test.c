/* SPDX-License-Identifier: Apache-2.0 */
/* Tests copies that bypass the caches: every alignment and length, and that nothing is
 * written around them. */
#include "collectives/reduce/stream.h"

#include <stdint.h>
#include <string.h>

#include "collectives/reduce/reduce_levels.h"
#include "tests/tap.h"

enum {
    LINE = 64,
    MOST_SHORT = 3 * LINE,
    ARRAY_BYTES = 1 << 20,
};

static _Alignas(LINE) unsigned char from[ARRAY_BYTES + 2 * LINE];
static _Alignas(LINE) unsigned char to[ARRAY_BYTES + 2 * LINE];

static void fill(unsigned char *array, unsigned step)
{
    for (size_t i = 0; i < ARRAY_BYTES + 2 * LINE; i++) {
        array[i] = (unsigned char)(i * step + (i >> 8));
    }
}

static bool copies(enum hvd_kernel_level level, size_t source, size_t place, size_t bytes)
{
    size_t end = place + bytes;

    memset(to, 0x55, end + LINE);
    hvd_copy_stream_at(level, to + place, from + source, bytes);
    for (size_t i = 0; i < end + LINE; i++) {
        unsigned char expected = i < place || i >= end ? 0x55 : from[source + i - place];

        if (to[i] != expected) {
            tap_note("%zu bytes from offset %zu to %zu: wrong at %zd", bytes, source,
                     place, (ssize_t)i - (ssize_t)place);
            return false;
        }
    }
    return true;
}

static bool copies_short(enum hvd_kernel_level level)
{
    for (size_t bytes = 0; bytes <= MOST_SHORT; bytes++) {
        for (size_t place = 0; place < LINE; place++) {
            if (!copies(level, (place * 7 + bytes) % LINE, place, bytes)) {
                return false;
            }
        }
    }
    return true;
}

static bool copies_long(enum hvd_kernel_level level)
{
    return copies(level, 0, 0, ARRAY_BYTES) && copies(level, 3, 20, ARRAY_BYTES - 1) &&
           copies(level, 63, 1, ARRAY_BYTES - 100);
}

int main(void)
{
    fill(from, 37);
    for (int i = 0; i <= (int)hvd_kernel_level(); i++) {
        enum hvd_kernel_level level = (enum hvd_kernel_level)i;

        tap_ok(copies_short(level), "%s: copies every short length with every alignment",
               hvd_kernel_level_name(level));
        tap_ok(copies_long(level), "%s: copies a megabyte", hvd_kernel_level_name(level));
    }
    return tap_done();
}
