/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for the CUDA driver: devices, contexts and memory. Streams: fake_stream.c. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpu_binding/base/attr.h"
#include "tests/fake_gpu/fake_state.h"

/* Device memory is two views of the same pages: the program gets the address of one that it
 * can neither read nor write. */
struct piece {
    struct piece *next;
    char *address;
    char *own;
    size_t bytes;
};

static struct piece *pieces;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fake_live live;
static size_t used[2],
    limits[2]; /* bytes of the device and of pinned memory; limit 0: none */

/* --- counts --- */

HVD_EXPORT void fake_gpu_live(struct fake_live *out)
{
    pthread_mutex_lock(&lock);
    *out = live;
    pthread_mutex_unlock(&lock);
}

void fake_count(int *counter, int change)
{
    pthread_mutex_lock(&lock);
    *counter += change;
    pthread_mutex_unlock(&lock);
}

struct fake_live *fake_counters(void)
{
    return &live;
}

HVD_EXPORT void fake_gpu_count_comm(int change)
{
    fake_count(&live.comms, change);
}

/* --- memory --- */

enum {
    ON_DEVICE,
    ON_HOST,
    HOST_HEAD = 256, /* in front of pinned memory: its size */
};

static const size_t usual_bytes = (size_t)16 << 30;

HVD_EXPORT void fake_gpu_limit(size_t device_bytes, size_t host_bytes)
{
    pthread_mutex_lock(&lock);
    limits[ON_DEVICE] = device_bytes == 0 ? 0 : used[ON_DEVICE] + device_bytes;
    limits[ON_HOST] = host_bytes == 0 ? 0 : used[ON_HOST] + host_bytes;
    pthread_mutex_unlock(&lock);
}

/* Whether there is so much left; if so, it is counted. */
static bool spend(int place, size_t bytes)
{
    bool is_there;

    pthread_mutex_lock(&lock);
    is_there = limits[place] == 0 || used[place] + bytes <= limits[place];
    used[place] += is_there ? bytes : 0;
    pthread_mutex_unlock(&lock);
    return is_there;
}

static void give_back(int place, size_t bytes)
{
    pthread_mutex_lock(&lock);
    used[place] -= bytes;
    pthread_mutex_unlock(&lock);
}

/* Never has to fail: it is asked only for the words of another failure. */
HVD_EXPORT int cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    if (!fake_has_context()) {
        return FAKE_INVALID_VALUE;
    }
    pthread_mutex_lock(&lock);
    *total = limits[ON_DEVICE] != 0 ? limits[ON_DEVICE] : usual_bytes;
    *free_bytes = *total > used[ON_DEVICE] ? *total - used[ON_DEVICE] : 0;
    pthread_mutex_unlock(&lock);
    return FAKE_SUCCESS;
}

HVD_EXPORT void *fake_gpu_reach(const void *address, size_t bytes)
{
    const char *at = address;
    void *reached = (void *)(uintptr_t)address;

    pthread_mutex_lock(&lock);
    for (struct piece *piece = pieces; piece != NULL; piece = piece->next) {
        if (at + bytes > piece->address && at < piece->address + piece->bytes) {
            bool is_inside =
                at >= piece->address && at + bytes <= piece->address + piece->bytes;

            reached = is_inside ? piece->own + (at - piece->address) : NULL;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    return reached;
}

static int map_piece(struct piece *piece)
{
    int fd = memfd_create("fake device memory", MFD_CLOEXEC);

    if (fd < 0 || ftruncate(fd, (off_t)piece->bytes) != 0) {
        return FAKE_OUT_OF_MEMORY;
    }
    piece->own = mmap(NULL, piece->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    piece->address = mmap(NULL, piece->bytes, PROT_NONE, MAP_SHARED, fd, 0);
    close(fd);
    if (piece->own == MAP_FAILED || piece->address == MAP_FAILED) {
        return FAKE_OUT_OF_MEMORY;
    }
    memset(piece->own, 0xa5, piece->bytes); /* nobody may count on zeros */
    return FAKE_SUCCESS;
}

static void *alloc(size_t bytes)
{
    struct piece *piece = calloc(1, sizeof(*piece));
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    if (piece == NULL || bytes == 0 || !fake_has_context()) {
        free(piece);
        return NULL;
    }
    piece->bytes = (bytes + page - 1) / page * page;
    if (!spend(ON_DEVICE, piece->bytes)) {
        free(piece);
        return NULL;
    }
    if (map_piece(piece) != FAKE_SUCCESS) {
        give_back(ON_DEVICE, piece->bytes);
        free(piece);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    piece->next = pieces;
    pieces = piece;
    live.device_memory++;
    pthread_mutex_unlock(&lock);
    return piece->address;
}

HVD_EXPORT int cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
    void *memory;

    if (fake_capture_forbids("cuMemAlloc")) {
        return FAKE_CAPTURE_UNSUPPORTED;
    }
    memory = fake_gpu_fails("cuMemAlloc") ? NULL : alloc(bytes);
    *address = (uint64_t)(uintptr_t)memory;
    return memory != NULL ? FAKE_SUCCESS : FAKE_OUT_OF_MEMORY;
}

static bool release(const void *memory)
{
    struct piece *found = NULL;

    pthread_mutex_lock(&lock);
    for (struct piece **at = &pieces; *at != NULL; at = &(*at)->next) {
        if ((*at)->address == memory) {
            found = *at;
            *at = found->next;
            live.device_memory--;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    if (found == NULL) {
        return false;
    }
    give_back(ON_DEVICE, found->bytes);
    munmap(found->own, found->bytes);
    munmap(found->address, found->bytes);
    free(found);
    return true;
}

HVD_EXPORT int cuMemFree_v2(uint64_t address)
{
    bool was_there;

    if (fake_capture_forbids("cuMemFree")) {
        return FAKE_CAPTURE_UNSUPPORTED;
    }
    fake_drain_streams();
    was_there = release((const void *)(uintptr_t)address);
    return was_there && !fake_gpu_fails("cuMemFree") ? FAKE_SUCCESS : FAKE_INVALID_VALUE;
}

HVD_EXPORT int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    size_t *whole;

    (void)flags;
    if (fake_capture_forbids("cuMemHostAlloc")) {
        return FAKE_CAPTURE_UNSUPPORTED;
    }
    if (fake_gpu_fails("cuMemHostAlloc") || !fake_has_context() ||
        !spend(ON_HOST, bytes)) {
        return FAKE_OUT_OF_MEMORY;
    }
    whole = aligned_alloc(HOST_HEAD,
                          (HOST_HEAD + bytes + HOST_HEAD - 1) / HOST_HEAD * HOST_HEAD);
    if (whole == NULL) {
        give_back(ON_HOST, bytes);
        return FAKE_OUT_OF_MEMORY;
    }
    *whole = bytes;
    *memory = (char *)whole + HOST_HEAD;
    memset(*memory, 0x5a, bytes);
    fake_count(&live.host_memory, 1);
    return FAKE_SUCCESS;
}

HVD_EXPORT int cuMemFreeHost(void *memory)
{
    size_t *whole = (size_t *)((char *)memory - HOST_HEAD);

    if (fake_capture_forbids("cuMemFreeHost")) {
        return FAKE_CAPTURE_UNSUPPORTED;
    }
    fake_drain_streams();
    give_back(ON_HOST, *whole);
    free(whole);
    fake_count(&live.host_memory, -1);
    return fake_gpu_fails("cuMemFreeHost") ? FAKE_INVALID_VALUE : FAKE_SUCCESS;
}

/* --- devices and contexts --- */

static _Thread_local int depth; /* of the stack of contexts */
static char context;

bool fake_has_context(void)
{
    return depth > 0;
}

HVD_EXPORT bool fake_gpu_has_context(void)
{
    return fake_has_context();
}

static int device_count(void)
{
    const char *text = getenv("FAKE_GPU_COUNT");

    return text != NULL ? atoi(text) : 1;
}

HVD_EXPORT int cuInit(unsigned flags)
{
    (void)flags;
    return fake_gpu_fails("cuInit") ? FAKE_NO_DEVICE
           : device_count() > 0     ? FAKE_SUCCESS
                                    : FAKE_NO_DEVICE;
}

HVD_EXPORT int cuDriverGetVersion(int *version)
{
    *version = 12040;
    return fake_gpu_fails("cuDriverGetVersion") ? FAKE_INVALID_VALUE : FAKE_SUCCESS;
}

HVD_EXPORT int cuDeviceGetCount(int *count)
{
    *count = device_count();
    return fake_gpu_fails("cuDeviceGetCount") ? FAKE_INVALID_VALUE : FAKE_SUCCESS;
}

HVD_EXPORT int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return fake_gpu_fails("cuDeviceGet") || ordinal >= device_count() ? FAKE_INVALID_VALUE
                                                                      : FAKE_SUCCESS;
}

/* Each process has GPUs of its own, unless they are to share one. */
HVD_EXPORT int cuDeviceGetUuid_v2(void *uuid, int device)
{
    int words[4] = {getenv("FAKE_GPU_SHARED") != NULL ? 1 : (int)getpid(), device, 7, 7};

    memcpy(uuid, words, sizeof(words));
    return fake_gpu_fails("cuDeviceGetUuid") ? FAKE_INVALID_VALUE : FAKE_SUCCESS;
}

/* As with uuids, but all devices with FAKE_GPU_MIG are slices of one. */
static void bus_id(char *id, size_t bytes, int device)
{
    unsigned owner = getenv("FAKE_GPU_SHARED") != NULL ? 1 : (unsigned)getpid();

    if (getenv("FAKE_GPU_MIG") != NULL) {
        owner = 0;
        device = 0;
    }
    snprintf(id, bytes, "%04x:%02x:%02x.0", owner & 0xffff, owner >> 16 & 0xff,
             (unsigned)device & 0xff);
}

HVD_EXPORT int cuDeviceGetPCIBusId(char *id, int bytes, int device)
{
    bus_id(id, (size_t)bytes, device);
    return fake_gpu_fails("cuDeviceGetPCIBusId") ? FAKE_INVALID_VALUE : FAKE_SUCCESS;
}

static _Atomic int retained; /* the last device */

HVD_EXPORT void fake_gpu_bus_id(char *id, size_t bytes)
{
    bus_id(id, bytes, retained);
}

HVD_EXPORT bool fake_gpu_is_on_switch(void)
{
    const char *chosen = getenv("FAKE_GPU_MULTICAST");

    return chosen != NULL && strcmp(chosen, "1") == 0;
}

/* Never has to fail: what older drivers do not know is nobody's failure. */
HVD_EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    const char *order = getenv("FAKE_GPU_ORDERING");

    (void)device;
    switch (attribute) {
    case 118: /* order of RDMA writes */
        *value = order != NULL ? atoi(order) : 100;
        return FAKE_SUCCESS;
    case 124: /* dma-buf */
        *value = 0;
        return FAKE_SUCCESS;
    case 132: /* multicast */
        *value = fake_gpu_is_on_switch() ? 1 : 0;
        return FAKE_SUCCESS;
    default:
        return FAKE_INVALID_VALUE;
    }
}

/* FAKE_GPU_P2P: "0-1:nvlink,0-2:pcie". Returns what is behind the colon; NULL: nothing. */
static const char *find_pair(int one, int other)
{
    const char *text = getenv("FAKE_GPU_P2P");
    char wanted[64];
    const char *found;

    snprintf(wanted, sizeof(wanted), "%d-%d:", one < other ? one : other,
             one < other ? other : one);
    found = text != NULL ? strstr(text, wanted) : NULL;
    return found != NULL ? found + strlen(wanted) : NULL;
}

HVD_EXPORT int cuDeviceCanAccessPeer(int *can, int device, int peer)
{
    *can = find_pair(device, peer) != NULL;
    return fake_gpu_fails("cuDeviceCanAccessPeer") ? FAKE_INVALID_VALUE : FAKE_SUCCESS;
}

HVD_EXPORT int cuDeviceGetP2PAttribute(int *value, int attribute, int device, int peer)
{
    const char *pair = find_pair(device, peer);

    *value = attribute == 3 && pair != NULL && strncmp(pair, "nvlink", 6) == 0;
    return fake_gpu_fails("cuDeviceGetP2PAttribute") ? FAKE_INVALID_VALUE : FAKE_SUCCESS;
}

HVD_EXPORT int cuDevicePrimaryCtxRetain(void **out, int device)
{
    if (fake_gpu_fails("cuDevicePrimaryCtxRetain")) {
        return FAKE_OUT_OF_MEMORY;
    }
    retained = device;
    *out = &context;
    fake_count(&live.contexts, 1);
    return FAKE_SUCCESS;
}

HVD_EXPORT int cuDevicePrimaryCtxRelease_v2(int device)
{
    (void)device;
    fake_count(&live.contexts, -1);
    return fake_gpu_fails("cuDevicePrimaryCtxRelease") ? FAKE_INVALID_VALUE
                                                       : FAKE_SUCCESS;
}

HVD_EXPORT int cuCtxPushCurrent_v2(void *pushed)
{
    if (fake_gpu_fails("cuCtxPushCurrent") || pushed != &context) {
        return FAKE_INVALID_VALUE;
    }
    depth++;
    return FAKE_SUCCESS;
}

HVD_EXPORT int cuCtxPopCurrent_v2(void **popped)
{
    *popped = &context;
    depth--;
    return fake_gpu_fails("cuCtxPopCurrent") ? FAKE_INVALID_VALUE : FAKE_SUCCESS;
}

HVD_EXPORT int cuCtxGetCurrent(void **current)
{
    *current = fake_has_context() ? &context : NULL;
    return fake_gpu_fails("cuCtxGetCurrent") ? FAKE_INVALID_VALUE : FAKE_SUCCESS;
}

HVD_EXPORT int cuCtxGetDevice(int *device)
{
    *device = 0;
    return fake_gpu_fails("cuCtxGetDevice") || !fake_has_context() ? FAKE_INVALID_VALUE
                                                                   : FAKE_SUCCESS;
}

HVD_EXPORT int cuCtxSynchronize(void)
{
    if (fake_gpu_fails("cuCtxSynchronize") || !fake_has_context()) {
        return FAKE_INVALID_VALUE;
    }
    fake_drain_streams();
    return FAKE_SUCCESS;
}

HVD_EXPORT int cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return fake_gpu_fails("cuCtxGetStreamPriorityRange") ? FAKE_INVALID_VALUE
                                                         : FAKE_SUCCESS;
}

HVD_EXPORT int cuGetErrorName(int error, const char **name)
{
    *name = error == FAKE_OUT_OF_MEMORY   ? "CUDA_ERROR_OUT_OF_MEMORY"
            : error == FAKE_INVALID_VALUE ? "CUDA_ERROR_INVALID_VALUE"
            : error == FAKE_NO_DEVICE     ? "CUDA_ERROR_NO_DEVICE"
            : error == FAKE_NO_BINARY     ? "CUDA_ERROR_NO_BINARY_FOR_GPU"
                                          : "CUDA_ERROR_UNKNOWN";
    return FAKE_SUCCESS;
}

HVD_EXPORT int cuGetErrorString(int error, const char **text)
{
    *text = error == FAKE_OUT_OF_MEMORY ? "out of memory" : "made up for a test";
    return FAKE_SUCCESS;
}
