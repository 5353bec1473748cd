/* SPDX-License-Identifier: Apache-2.0 */
/* Named ranges of time for NVIDIA's profilers (NVTX). */
#include "collectives/trace/ranges.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/trace/nvtx.h"
#include "gpu_binding/base/env.h"

static const char *const domain_names[HVD_RANGE_DOMAINS] = {
    [HVD_RANGES_OPS] = "HorovodOps",
    [HVD_RANGES_TIMELINE] = "HorovodTimeline",
    [HVD_RANGES_ACTIVITIES] = "HorovodTimelineActivities",
};

/* Number of entries of each table; entry 0 is unused. */
static const unsigned module_sizes[NVTX_MODULES] = {0, 16, 9, 15, 7, 16, 7};

/* These tables exist once in the process, as the profiler does. */
static nvtx_function *functions[NVTX_MODULES][NVTX_MOST_FUNCTIONS];
static nvtx_function **places[NVTX_MODULES][NVTX_MOST_FUNCTIONS];
static void *domains[HVD_RANGE_DOMAINS];
static char profiler[256]; /* path of the profiler's library; "": no profiler */
static char problem[256];
static bool is_attached;
static atomic_bool is_on;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int get_functions(int module, nvtx_function ****out, unsigned *count)
{
    if (module < 1 || module >= NVTX_MODULES) {
        return 0;
    }
    if (out != NULL) {
        *out = places[module];
    }
    if (count != NULL) {
        *count = module_sizes[module];
    }
    return 1;
}

static void set_version(uint32_t version)
{
    (void)version;
}

static const void *get_table(uint32_t table)
{
    static const struct nvtx_callbacks callbacks = {sizeof(callbacks), get_functions};
    static const struct nvtx_version version = {.bytes = sizeof(version),
                                                .version = NVTX_API_VERSION,
                                                .set_version = set_version};

    return table == NVTX_TABLE_CALLBACKS ? (const void *)&callbacks
           : table == NVTX_TABLE_VERSION ? (const void *)&version
                                         : NULL;
}

static void open_places(void)
{
    for (int i = 1; i < NVTX_MODULES; i++) {
        for (unsigned j = 1; j < module_sizes[i]; j++) {
            places[i][j] = &functions[i][j];
        }
    }
}

/* Whether the profiler has set the functions that ranges need. */
static bool has_ranges(void)
{
    nvtx_function **core = functions[NVTX_MODULE_CORE2];

    return core[NVTX_RANGE_START] != NULL && core[NVTX_RANGE_END] != NULL &&
           core[NVTX_DOMAIN_CREATE] != NULL;
}

static bool load_profiler(const char *file)
{
    void *handle = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
    void *symbol = handle != NULL ? dlsym(handle, HVD_NVTX_INIT) : NULL;
    nvtx_init *init;

    if (symbol == NULL) {
        snprintf(problem, sizeof(problem), "%.200s", dlerror());
        return false;
    }
    memcpy(&init, &symbol, sizeof(symbol)); /* POSIX: both pointers have the same form */
    open_places();
    if (init(get_table) == 0 || !has_ranges()) {
        snprintf(problem, sizeof(problem), "%.200s does not support ranges", file);
        return false;
    }
    snprintf(profiler, sizeof(profiler), "%s", file);
    return true;
}

static void attach_nvtx(void)
{
    const char *file = getenv(HVD_ENV_NVTX_INJECTION);
    nvtx_domain_create *create;

    if (file == NULL || file[0] == '\0') {
        snprintf(problem, sizeof(problem),
                 "no profiler has set " HVD_ENV_NVTX_INJECTION
                 ", which nsys profile sets for the programs that it runs");
        return;
    }
    is_attached = load_profiler(file);
    if (is_attached) {
        create = (nvtx_domain_create *)functions[NVTX_MODULE_CORE2][NVTX_DOMAIN_CREATE];
        for (int i = 0; i < HVD_RANGE_DOMAINS; i++) {
            domains[i] = create(domain_names[i]);
        }
    }
}

void hvd_ranges_open(bool is_wanted)
{
    if (is_wanted) {
        pthread_once(&once, attach_nvtx);
    }
    atomic_store(&is_on, is_wanted && is_attached);
}

bool hvd_ranges_are_on(void)
{
    return atomic_load_explicit(&is_on, memory_order_relaxed);
}

uint64_t hvd_range_begin(enum hvd_range_domain domain, const char *what, const char *name,
                         int64_t bytes)
{
    char message[512];
    struct nvtx_attributes attributes = {.version = NVTX_API_VERSION,
                                         .bytes = sizeof(attributes),
                                         .message_kind = NVTX_MESSAGE_ASCII,
                                         .message = message};
    nvtx_range_start *start;

    if (!hvd_ranges_are_on()) {
        return 0;
    }
    snprintf(message, sizeof(message), "%s%s%s", what, name != NULL ? " " : "",
             name != NULL ? name : "");
    if (bytes >= 0) {
        attributes.payload_kind = NVTX_PAYLOAD_INT64;
        attributes.payload = bytes;
    }
    start = (nvtx_range_start *)functions[NVTX_MODULE_CORE2][NVTX_RANGE_START];
    /* add 1, because profilers number ranges from 0, which means "no range" here */
    return start(domains[domain], &attributes) + 1;
}

/* Ends a range even if ranges have been turned off meanwhile. */
void hvd_range_end(enum hvd_range_domain domain, uint64_t range)
{
    if (range != 0) {
        nvtx_range_end *end =
            (nvtx_range_end *)functions[NVTX_MODULE_CORE2][NVTX_RANGE_END];

        end(domains[domain], range - 1);
    }
}

int hvd_ranges_describe(char *text, size_t size)
{
    const char *disabled = getenv(HVD_ENV_DISABLE_NVTX);

    if (disabled != NULL && strtol(disabled, NULL, 10) != 0) {
        return snprintf(text, size, "NVTX ranges: off, " HVD_ENV_DISABLE_NVTX "=%.32s\n",
                        disabled);
    }
    pthread_once(&once, attach_nvtx);
    return is_attached ? snprintf(text, size, "NVTX ranges: to %s\n", profiler)
                       : snprintf(text, size, "NVTX ranges: none, %s\n", problem);
}
