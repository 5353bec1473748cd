/* SPDX-License-Identifier: Apache-2.0 */
/* The part of NVTX's interface to profilers (version 3) that is used here. A profiler's
 * library gets our function, asks it for tables of pointers, and sets those of the
 * functions that it wants to be called. */
#ifndef HVD_NVTX_H
#define HVD_NVTX_H

#include <stddef.h>
#include <stdint.h>

#define HVD_NVTX_INIT "InitializeInjectionNvtx2"

/* Tables that the profiler may ask for. */
enum {
    NVTX_TABLE_CALLBACKS = 1,
    NVTX_TABLE_VERSION = 3,
};

/* The tables of functions, and the used entries of the table CORE2. */
enum {
    NVTX_MODULE_CORE2 = 5,
    NVTX_MODULES = 7,
    NVTX_MOST_FUNCTIONS = 17, /* including a NULL at the end */

    NVTX_RANGE_START = 2,
    NVTX_RANGE_END = 3,
    NVTX_DOMAIN_CREATE = 12,
};

enum {
    NVTX_API_VERSION = 3,
    NVTX_PAYLOAD_INT64 = 2,
    NVTX_MESSAGE_ASCII = 1,
};

typedef void nvtx_function(void);
typedef const void *nvtx_get_table(uint32_t table);
typedef int nvtx_init(nvtx_get_table *get); /* returns 0 if the profiler refuses */

struct nvtx_callbacks {
    size_t bytes;
    int (*get_functions)(int module, nvtx_function ****functions, unsigned *count);
};

struct nvtx_version {
    size_t bytes;
    uint32_t version;
    uint32_t reserved;
    void (*set_version)(uint32_t version);
};

struct nvtx_attributes {
    uint16_t version;
    uint16_t bytes;
    uint32_t category;
    int32_t color_kind;
    uint32_t color;
    int32_t payload_kind;
    int32_t reserved;
    int64_t payload;
    int32_t message_kind;
    const char *message; /* borrowed */
};

typedef uint64_t nvtx_range_start(void *domain, const struct nvtx_attributes *attributes);
typedef int nvtx_range_end(void *domain, uint64_t range);
typedef void *nvtx_domain_create(const char *name);

#endif
