/* SPDX-License-Identifier: Apache-2.0 */
/* A fake profiler, which NVTX loads from the path in NVTX_INJECTION64_PATH. It appends a
 * line to the file FAKE_NVTX_LOG when a range begins, "+ID DOMAIN PAYLOAD MESSAGE", and
 * when it ends, "-ID DOMAIN". It implements NVTX from its documentation and not from
 * hvd's source. With FAKE_NVTX_REFUSES it refuses to initialize. */
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/attr.h"

typedef void function(void);
typedef const void *get_table(uint32_t table);

struct callbacks {
    size_t bytes;
    int (*get_functions)(int module, function ****functions, unsigned *count);
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t last;
static FILE *out;

static uint64_t begin(void *domain, const char *attributes)
{
    uint16_t version, bytes;
    int32_t payload_kind, message_kind;
    int64_t payload;
    const char *message;
    uint64_t id;

    memcpy(&version, attributes, 2);
    memcpy(&bytes, attributes + 2, 2);
    memcpy(&payload_kind, attributes + 16, 4);
    memcpy(&payload, attributes + 24, 8);
    memcpy(&message_kind, attributes + 32, 4);
    memcpy(&message, attributes + 40, 8);
    pthread_mutex_lock(&lock);
    id = last++;
    fprintf(out, "+%" PRIu64 " %s %" PRId64 " %s\n", id, (const char *)domain,
            payload_kind == 2 ? payload : -1,
            version == 3 && bytes == 48 && message_kind == 1 ? message : "?");
    fflush(out);
    pthread_mutex_unlock(&lock);
    return id;
}

static int end(void *domain, uint64_t id)
{
    pthread_mutex_lock(&lock);
    fprintf(out, "-%" PRIu64 " %s\n", id, (const char *)domain);
    fflush(out);
    pthread_mutex_unlock(&lock);
    return 0;
}

static void *create_domain(const char *name)
{
    return strdup(name);
}

HVD_EXPORT int InitializeInjectionNvtx2(get_table *get);
HVD_EXPORT int InitializeInjectionNvtx2(get_table *get)
{
    const struct callbacks *callbacks = get(1);
    const char *path = getenv("FAKE_NVTX_LOG");
    function ***table = NULL;
    unsigned count = 0;

    if (getenv("FAKE_NVTX_REFUSES") != NULL || callbacks == NULL || path == NULL ||
        callbacks->bytes < sizeof(*callbacks) ||
        callbacks->get_functions(5, &table, &count) == 0 || count != 16) {
        return 0;
    }
    out = fopen(path, "a");
    *table[2] = (function *)begin;
    *table[3] = (function *)end;
    *table[12] = (function *)create_domain;
    return out != NULL;
}
