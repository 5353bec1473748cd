/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the stand-in for the CUDA driver: device memory, and pinned memory of the
 * host. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpu_binding/base/attr.h"
#include "tests/fake_gpu/fake_state.h"

enum {
    ON_DEVICE,
    ON_HOST,
};

/* Device memory is mapped twice: the program gets `address`, where it can neither read
 * nor write, and the stand-in uses `own`, which has one more page: it tells the processes
 * that have opened the memory when it is freed. For pinned memory, both are the same
 * mapping. */
struct piece {
    struct piece *next;
    char *address;
    char *own;
    size_t bytes;
    int fd; /* of device memory */
    bool is_peer; /* it belongs to another process */
    /* NULL: pinned memory, which belongs to no context */
    const struct fake_context *context;
};

static struct piece *pieces;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t used[2],
    limits[2]; /* bytes of the device and of pinned memory; limit 0: none */
static const size_t usual_bytes = (size_t)16 << 30;

HVD_EXPORT void fake_gpu_limit(size_t device_bytes, size_t host_bytes)
{
    pthread_mutex_lock(&lock);
    limits[ON_DEVICE] = device_bytes == 0 ? 0 : used[ON_DEVICE] + device_bytes;
    limits[ON_HOST] = host_bytes == 0 ? 0 : used[ON_HOST] + host_bytes;
    pthread_mutex_unlock(&lock);
}

/* Whether that much memory is left; if so, counts it as used. */
static bool spend(int memory_kind, size_t bytes)
{
    bool is_there;

    pthread_mutex_lock(&lock);
    is_there =
        limits[memory_kind] == 0 || used[memory_kind] + bytes <= limits[memory_kind];
    used[memory_kind] += is_there ? bytes : 0;
    pthread_mutex_unlock(&lock);
    return is_there;
}

static void give_back(int memory_kind, size_t bytes)
{
    pthread_mutex_lock(&lock);
    used[memory_kind] -= bytes;
    pthread_mutex_unlock(&lock);
}

/* Never made to fail: hvd calls it only for the text of another error. */
HVD_EXPORT int cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    if (fake_current() == NULL) {
        return FAKE_INVALID_CONTEXT;
    }
    pthread_mutex_lock(&lock);
    *total = limits[ON_DEVICE] != 0 ? limits[ON_DEVICE] : usual_bytes;
    *free_bytes = *total > used[ON_DEVICE] ? *total - used[ON_DEVICE] : 0;
    pthread_mutex_unlock(&lock);
    return FAKE_SUCCESS;
}

/* --- addresses --- */

/* Returns the first piece that has some of these bytes, NULL if there is none. The lock
 * is held. */
static const struct piece *find(const char *at, size_t bytes)
{
    const struct piece *piece = pieces;

    while (piece != NULL &&
           (at + bytes <= piece->address || at >= piece->address + piece->bytes)) {
        piece = piece->next;
    }
    return piece;
}

static bool is_inside(const struct piece *piece, const char *at, size_t bytes)
{
    return at >= piece->address && at + bytes <= piece->address + piece->bytes;
}

/* Whether a piece of device memory has been freed. */
static _Atomic bool *end_of(const struct piece *piece)
{
    return (_Atomic bool *)(void *)(piece->own + piece->bytes);
}

HVD_EXPORT void *fake_gpu_reach(const void *address, size_t bytes)
{
    const struct piece *piece;
    const char *at = address;
    void *reached = (void *)(uintptr_t)address;

    pthread_mutex_lock(&lock);
    piece = find(at, bytes);
    if (piece != NULL && piece->context != NULL) {
        reached = is_inside(piece, at, bytes) ? piece->own + (at - piece->address) : NULL;
    }
    pthread_mutex_unlock(&lock);
    return reached;
}

bool fake_takes_pageable(void)
{
    const char *chosen = getenv("FAKE_GPU_PAGEABLE");

    return chosen != NULL && strcmp(chosen, "1") == 0;
}

HVD_EXPORT void *fake_gpu_touch(const char *who, const void *address, size_t bytes)
{
    const struct piece *piece;
    const char *at = address, *wrong = NULL;
    void *reached = NULL;

    pthread_mutex_lock(&lock);
    piece = find(at, bytes);
    if (piece == NULL && (bytes == 0 || fake_takes_pageable())) {
        reached = (void *)(uintptr_t)address;
    } else if (piece == NULL) {
        wrong = "touches pageable memory of the host";
    } else if (!is_inside(piece, at, bytes)) {
        wrong = "goes beyond its memory";
    } else if (piece->context != NULL && piece->context != fake_acting()) {
        wrong = "touches the memory of another device";
    } else if (piece->is_peer && atomic_load(end_of(piece))) {
        wrong = "touches memory that another process has freed";
    } else {
        reached = piece->own + (at - piece->address);
    }
    pthread_mutex_unlock(&lock);
    if (wrong != NULL) {
        fprintf(stderr, "fake GPU: %s %s\n", who, wrong);
        abort();
    }
    return reached;
}

enum fake_place fake_place_of(const void *address)
{
    const struct piece *piece;
    enum fake_place memory_kind;

    pthread_mutex_lock(&lock);
    piece = find(address, 1);
    memory_kind = piece == NULL            ? FAKE_PAGEABLE
                  : piece->context == NULL ? FAKE_PINNED
                                           : FAKE_ON_DEVICE;
    pthread_mutex_unlock(&lock);
    return memory_kind;
}

/* --- creation and end --- */

static size_t whole_pages(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return (bytes + page - 1) / page * page;
}

static bool map_device(struct piece *piece)
{
    piece->own = mmap(NULL, piece->bytes + whole_pages(1), PROT_READ | PROT_WRITE,
                      MAP_SHARED, piece->fd, 0);
    piece->address = mmap(NULL, piece->bytes, PROT_NONE, MAP_SHARED, piece->fd, 0);
    return piece->own != MAP_FAILED && piece->address != MAP_FAILED;
}

static bool make_device(struct piece *piece)
{
    piece->fd = memfd_create("fake device memory", MFD_CLOEXEC);
    return piece->fd >= 0 &&
           ftruncate(piece->fd, (off_t)(piece->bytes + whole_pages(1))) == 0 &&
           map_device(piece);
}

static void add_piece(struct piece *piece)
{
    pthread_mutex_lock(&lock);
    piece->next = pieces;
    pieces = piece;
    pthread_mutex_unlock(&lock);
}

static bool map_host(struct piece *piece)
{
    piece->own = mmap(NULL, piece->bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    piece->address = piece->own;
    return piece->own != MAP_FAILED;
}

/* Allocates a piece; NULL if there is no memory. Fresh memory is never zero, so that no
 * code can rely on zeros. */
static struct piece *make_piece(int memory_kind, size_t bytes,
                                const struct fake_context *context)
{
    struct piece *piece = calloc(1, sizeof(*piece));

    if (piece == NULL || bytes == 0) {
        free(piece);
        return NULL;
    }
    piece->bytes = whole_pages(bytes);
    piece->context = context;
    if (!spend(memory_kind, piece->bytes)) {
        free(piece);
        return NULL;
    }
    if (!(memory_kind == ON_DEVICE ? make_device(piece) : map_host(piece))) {
        give_back(memory_kind, piece->bytes);
        free(piece);
        return NULL;
    }
    memset(piece->own, memory_kind == ON_DEVICE ? 0xa5 : 0x5a, piece->bytes);
    add_piece(piece);
    return piece;
}

/* Takes a piece of memory out of the list. Returns NULL if no piece of this kind begins
 * at the address. */
static struct piece *take_piece(int memory_kind, const void *address, bool is_peer)
{
    struct piece *found = NULL;

    pthread_mutex_lock(&lock);
    for (struct piece **at = &pieces; *at != NULL; at = &(*at)->next) {
        if ((*at)->address == address &&
            ((*at)->context != NULL) == (memory_kind == ON_DEVICE) &&
            (*at)->is_peer == is_peer) {
            found = *at;
            *at = found->next;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static void unmap_device(struct piece *piece)
{
    munmap(piece->own, piece->bytes + whole_pages(1));
    munmap(piece->address, piece->bytes);
    close(piece->fd);
}

/* Frees a piece of memory. Returns false if no piece of this kind begins at the
 * address. */
static bool end_piece(int memory_kind, const void *address)
{
    struct piece *found = take_piece(memory_kind, address, false);

    if (found == NULL) {
        return false;
    }
    give_back(memory_kind, found->bytes);
    if (memory_kind == ON_DEVICE) {
        atomic_store(end_of(found), true);
        unmap_device(found);
    } else {
        munmap(found->own, found->bytes);
    }
    free(found);
    return true;
}

HVD_EXPORT int cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
    const struct piece *piece;
    int error;

    if (fake_capture_forbids("cuMemAlloc")) {
        return FAKE_CAPTURE_UNSUPPORTED;
    }
    error = fake_begin("cuMemAlloc");
    if (error != FAKE_SUCCESS) {
        return error == FAKE_INVALID_VALUE ? FAKE_OUT_OF_MEMORY : error;
    }
    piece = make_piece(ON_DEVICE, bytes, fake_current());
    if (piece == NULL) {
        return FAKE_OUT_OF_MEMORY;
    }
    *address = (uint64_t)(uintptr_t)piece->address;
    fake_count(&fake_counters()->device_memory, 1);
    return FAKE_SUCCESS;
}

HVD_EXPORT int cuMemFree_v2(uint64_t address)
{
    bool was_there;

    if (fake_capture_forbids("cuMemFree")) {
        return FAKE_CAPTURE_UNSUPPORTED;
    }
    fake_begin_end("cuMemFree");
    fake_drain_streams(NULL);
    was_there = end_piece(ON_DEVICE, (const void *)(uintptr_t)address);
    fake_count(&fake_counters()->device_memory, was_there ? -1 : 0);
    return was_there && !fake_gpu_fails("cuMemFree") ? FAKE_SUCCESS : FAKE_INVALID_VALUE;
}

HVD_EXPORT int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    const struct piece *piece;
    int error;

    (void)flags;
    if (fake_capture_forbids("cuMemHostAlloc")) {
        return FAKE_CAPTURE_UNSUPPORTED;
    }
    error = fake_begin("cuMemHostAlloc");
    if (error != FAKE_SUCCESS) {
        return error == FAKE_INVALID_VALUE ? FAKE_OUT_OF_MEMORY : error;
    }
    piece = make_piece(ON_HOST, bytes, NULL);
    if (piece == NULL) {
        return FAKE_OUT_OF_MEMORY;
    }
    *memory = piece->address;
    fake_count(&fake_counters()->host_memory, 1);
    return FAKE_SUCCESS;
}

HVD_EXPORT int cuMemFreeHost(void *memory)
{
    bool was_there;

    if (fake_capture_forbids("cuMemFreeHost")) {
        return FAKE_CAPTURE_UNSUPPORTED;
    }
    fake_begin_end("cuMemFreeHost");
    fake_drain_streams(NULL);
    was_there = end_piece(ON_HOST, memory);
    fake_count(&fake_counters()->host_memory, was_there ? -1 : 0);
    return was_there && !fake_gpu_fails("cuMemFreeHost") ? FAKE_SUCCESS
                                                         : FAKE_INVALID_VALUE;
}

/* --- memory of other processes --- */

/* CUipcMemHandle */
struct fake_handle {
    int process;
    int fd;
    size_t bytes;
    char reserved[48];
};

HVD_EXPORT int cuIpcGetMemHandle(struct fake_handle *handle, uint64_t address)
{
    const struct piece *piece;
    int error = fake_begin("cuIpcGetMemHandle");

    if (error != FAKE_SUCCESS) {
        return error;
    }
    pthread_mutex_lock(&lock);
    piece = find((const char *)(uintptr_t)address, 1);
    *handle = (struct fake_handle){.process = getpid()};
    if (piece == NULL || piece->context == NULL || piece->is_peer ||
        piece->address != (const char *)(uintptr_t)address) {
        error = FAKE_INVALID_VALUE;
    } else {
        handle->fd = piece->fd;
        handle->bytes = piece->bytes;
    }
    pthread_mutex_unlock(&lock);
    return error;
}

/* Opens the memory as the file of the process that allocated it. */
static struct piece *open_peer(const struct fake_handle *handle)
{
    struct piece *piece = calloc(1, sizeof(*piece));
    char path[64];

    if (piece == NULL) {
        return NULL;
    }
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", handle->process, handle->fd);
    piece->bytes = handle->bytes;
    piece->context = fake_current();
    piece->is_peer = true;
    piece->fd = open(path, O_RDWR | O_CLOEXEC);
    if (piece->fd < 0 || !map_device(piece)) {
        free(piece);
        return NULL;
    }
    return piece;
}

HVD_EXPORT int cuIpcOpenMemHandle_v2(uint64_t *address, struct fake_handle handle,
                                     unsigned flags)
{
    const char *offered = getenv("FAKE_GPU_IPC");
    const unsigned lazy = 1;
    struct piece *piece;
    int error = fake_begin("cuIpcOpenMemHandle");

    if (error != FAKE_SUCCESS || flags != lazy || handle.process == getpid()) {
        return error != FAKE_SUCCESS ? error : FAKE_INVALID_VALUE;
    }
    fake_drain_streams(NULL);
    if (offered != NULL && strcmp(offered, "0") == 0) {
        return FAKE_PEER_UNSUPPORTED;
    }
    piece = open_peer(&handle);
    if (piece == NULL) {
        return FAKE_INVALID_HANDLE;
    }
    add_piece(piece);
    *address = (uint64_t)(uintptr_t)piece->address;
    fake_count(&fake_counters()->peer_memory, 1);
    return FAKE_SUCCESS;
}

HVD_EXPORT int cuIpcCloseMemHandle(uint64_t address)
{
    struct piece *piece;

    fake_begin_end("cuIpcCloseMemHandle");
    fake_drain_streams(NULL);
    piece = take_piece(ON_DEVICE, (const void *)(uintptr_t)address, true);
    if (piece == NULL) {
        return FAKE_INVALID_VALUE;
    }
    unmap_device(piece);
    free(piece);
    fake_count(&fake_counters()->peer_memory, -1);
    return fake_gpu_fails("cuIpcCloseMemHandle") ? FAKE_INVALID_VALUE : FAKE_SUCCESS;
}
