/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of hvd's buffers keeps to a memory limit; a limit that is too small is
 * rejected with the minimum. */
#include "collectives/core/memory.h"

#include <stdio.h>
#include <string.h>

#include "gpu_binding/base/error.h"
#include "tests/tap.h"

static const int64_t mib = 1 << 20;

static bool keeps(int64_t limit, int nodes)
{
    struct hvd_geometry geometry;
    int64_t bytes;

    if (hvd_memory_plan(limit, nodes, &geometry, NULL) != 0) {
        return false;
    }
    bytes = hvd_memory_bytes(&geometry, nodes);
    return bytes <= limit && bytes > limit * 9 / 10 && geometry.slot_bytes % 64 == 0 &&
           geometry.recv_bytes >= geometry.slot_bytes;
}

static bool is_usual(int64_t limit, int nodes)
{
    struct hvd_geometry geometry;

    return hvd_memory_plan(limit, nodes, &geometry, NULL) == 0 &&
           memcmp(&geometry, &hvd_usual_geometry, sizeof(geometry)) == 0;
}

static bool refuses(int64_t limit, int nodes, const char *need)
{
    struct hvd_geometry geometry;
    struct hvd_error error = {0};
    int status = hvd_memory_plan(limit, nodes, &geometry, &error);

    return status == HVD_ERR_ARG && strstr(error.text, "HVD_MEMORY_LIMIT") != NULL &&
           strstr(error.text, need) != NULL;
}

/* Whether a limit of `bytes` is accepted, and one byte less is rejected with an error
 * that asks for `bytes`. */
static bool is_enough(int64_t bytes, int nodes)
{
    char need[32];

    snprintf(need, sizeof(need), "at least %lld bytes", (long long)bytes);
    return refuses(bytes - 1, nodes, need) && keeps(bytes, nodes);
}

int main(void)
{
    tap_ok(hvd_memory_bytes(&hvd_usual_geometry, 1) == 6 * mib &&
               hvd_memory_bytes(&hvd_usual_geometry, 2) == 15 * mib &&
               hvd_memory_bytes(&hvd_usual_geometry, 100) == 15 * mib,
           "a rank takes 6 MiB, and 9 MiB more in a job of several nodes");
    tap_ok(is_usual(0, 1) && is_usual(6 * mib, 1) && is_usual(15 * mib, 2),
           "a limit above the usual size changes nothing");
    tap_ok(keeps(6 * mib - 1, 1) && keeps(mib, 1) && keeps(7 * mib, 2) && keeps(mib, 2),
           "the geometry stays below the limit, and uses it");
    tap_ok(is_enough(24 * 16384, 1) && is_enough(60 * 16384, 2),
           "a limit that is too small is refused with the minimum");
    tap_ok(hvd_memory_stricter(0, 5) == 5 && hvd_memory_stricter(5, 0) == 5 &&
               hvd_memory_stricter(7, 5) == 5 && hvd_memory_stricter(0, 0) == 0,
           "the strictest of several limits holds");
    return tap_done();
}
