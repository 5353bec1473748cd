/* SPDX-License-Identifier: Apache-2.0 */
/* The messages between libhvd and its helper hvd-boot, sent once, over one socket:
 *
 *   libhvd   --- request, my blob, list of ranks ---------------->   hvd-boot
 *            <-- answer, then (bytes, blob) of each rank if status 0 ---
 *
 * If libhvd closes its direction meanwhile, the helper gives up and answers at once.
 * Both come from the same build, so structs are sent as they are. */
#ifndef HVD_HELPER_PROTOCOL_H
#define HVD_HELPER_PROTOCOL_H

#include <stdint.h>

#include "gpu_binding/base/error.h"
#include "pmix_boot/modex_key.h"

/* The helper's end of the socket. */
#define HVD_HELPER_FD 0

struct hvd_helper_request {
    uint64_t bytes;
    struct hvd_modex_key key;
    int32_t timeout_ms;
    int32_t count; /* length of the list of ranks; 0: all ranks */
    int32_t parent; /* pid of the requesting process */
};

struct hvd_helper_answer {
    int32_t rank;
    int32_t size;
    struct hvd_error error; /* status 0: no error */
};

#endif
