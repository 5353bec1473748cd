/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and windows of the stand-in for NCCL. A registration is a collective: the ranks
 * compare size, flags and number. */
#include "tests/fake_gpu/fake_nccl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/attr.h"

static const int window_version = 22700;
static const int symmetric = 1; /* NCCL_WIN_COLL_SYMMETRIC */

/* A piece of memory of ncclMemAlloc. */
struct piece {
    struct piece *next;
    char *address;
    size_t bytes;
    int windows; /* that it is registered in */
};

struct fake_window {
    struct fake_window *next;
    struct fake_comm *comm;
    struct piece *piece;
    size_t bytes;
    unsigned number; /* of the communicator's registrations */
    struct fake_window **out; /* until it is registered */
};

static struct piece *pieces;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int cuMemAlloc_v2(uint64_t *address, size_t bytes);
int cuMemFree_v2(uint64_t address);

static void end_wrongly(const char *why)
{
    fprintf(stderr, "fake NCCL: %s\n", why);
    abort();
}

/* --- memory --- */

HVD_EXPORT int ncclMemAlloc(void **out, size_t bytes)
{
    struct piece *piece;
    uint64_t address = 0;

    if (fake_nccl_result("ncclMemAlloc") != FAKE_NCCL_SUCCESS) {
        return FAKE_SYSTEM_ERROR;
    }
    piece = calloc(1, sizeof(*piece));
    if (piece == NULL || cuMemAlloc_v2(&address, bytes) != 0) {
        free(piece);
        return FAKE_CUDA_ERROR;
    }
    piece->address = (char *)(uintptr_t)address;
    piece->bytes = bytes;
    pthread_mutex_lock(&lock);
    piece->next = pieces;
    pieces = piece;
    pthread_mutex_unlock(&lock);
    *out = piece->address;
    return FAKE_NCCL_SUCCESS;
}

/* The lock is held. */
static struct piece *find_piece(const char *at)
{
    struct piece *piece = pieces;

    while (piece != NULL &&
           (at < piece->address || at >= piece->address + piece->bytes)) {
        piece = piece->next;
    }
    return piece;
}

HVD_EXPORT int ncclMemFree(void *memory)
{
    struct piece **at = &pieces, *piece;

    pthread_mutex_lock(&lock);
    while (*at != NULL && (*at)->address != memory) {
        at = &(*at)->next;
    }
    piece = *at;
    if (piece == NULL || piece->windows > 0) {
        end_wrongly(piece == NULL ? "ncclMemFree of other memory"
                                  : "ncclMemFree before the window has ended");
    }
    *at = piece->next;
    pthread_mutex_unlock(&lock);
    cuMemFree_v2((uint64_t)(uintptr_t)memory);
    free(piece);
    return fake_nccl_result("ncclMemFree");
}

/* --- windows --- */

uint64_t fake_window_place(const struct fake_comm *comm, const void *address)
{
    const struct fake_window *window;
    const char *at = address;
    uint64_t place = 0;

    pthread_mutex_lock(&lock);
    window = comm->windows;
    while (window != NULL && (at < window->piece->address ||
                              at >= window->piece->address + window->bytes)) {
        window = window->next;
    }
    if (window != NULL) {
        place = ((uint64_t)window->number << 40) +
                (uint64_t)(at - window->piece->address) + 1;
    } else if (find_piece(at) != NULL) {
        end_wrongly("a collective in memory of ncclMemAlloc that is in no window");
    }
    pthread_mutex_unlock(&lock);
    return place;
}

void fake_windows_drop(struct fake_comm *comm)
{
    pthread_mutex_lock(&lock);
    while (comm->windows != NULL) {
        struct fake_window *window = comm->windows;

        comm->windows = window->next;
        window->piece->windows--;
        free(window);
    }
    pthread_mutex_unlock(&lock);
}

/* Registers together with the other ranks. A rank on which it fails takes part, so that
 * the others succeed. */
static int register_window(struct fake_comm *comm)
{
    struct fake_window *window = comm->registering;
    const char *offered = getenv("FAKE_NCCL_WINDOWS");
    bool is_offered = offered == NULL || atoi(offered) != 0;
    int result =
        fake_gpu_fails("ncclCommWindowRegister") ? FAKE_SYSTEM_ERROR : FAKE_NCCL_SUCCESS;

    for (unsigned turn = 0; atomic_load(&comm->under_way) > 0; turn++) {
        fake_link_pause(turn);
    }
    if (!fake_link_agree(&comm->link, (uint64_t)window->bytes * 31 + window->number)) {
        result = FAKE_INVALID_USAGE;
        if (!atomic_load(&comm->link.is_aborted)) {
            fprintf(stderr, "fake NCCL: the ranks register different windows\n");
        }
    }
    pthread_mutex_lock(&lock);
    *window->out = NULL;
    if (result != FAKE_NCCL_SUCCESS || !is_offered) {
        free(window);
    } else {
        window->piece->windows++;
        window->next = comm->windows;
        comm->windows = window;
        *window->out = window;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static void *register_late(void *argument)
{
    struct fake_comm *comm = argument;

    atomic_store(&comm->state, register_window(comm));
    return NULL;
}

HVD_EXPORT int ncclCommWindowRegister(struct fake_comm *comm, void *memory, size_t bytes,
                                      struct fake_window **out, int flags)
{
    struct fake_window *window = calloc(1, sizeof(*window));
    const char *failing = getenv("FAKE_NCCL_FAILS");

    if (window == NULL || fake_nccl_version() < window_version || flags != symmetric ||
        !fake_comm_is_ready(comm) || comm->is_finalized) {
        free(window);
        return FAKE_INVALID_ARGUMENT;
    }
    pthread_mutex_lock(&lock);
    window->piece = find_piece(memory);
    pthread_mutex_unlock(&lock);
    if (window->piece == NULL || window->piece->address != memory ||
        window->piece->bytes < bytes || window->piece->windows > 0) {
        end_wrongly("a window that is not memory of ncclMemAlloc, or registered twice");
    }
    if (failing != NULL && strcmp(failing, "ncclCommWindowRegister") == 0) {
        free(window);
        return FAKE_SYSTEM_ERROR; /* the other ranks wait */
    }
    window->comm = comm;
    window->bytes = bytes;
    window->number = ++comm->registrations;
    window->out = out;
    comm->registering = window;
    return comm->may_block ? register_window(comm)
                           : fake_comm_begin_job(comm, register_late);
}

HVD_EXPORT int ncclCommWindowDeregister(struct fake_comm *comm,
                                        struct fake_window *window)
{
    struct fake_window **at = &comm->windows;

    if (!fake_comm_is_ready(comm)) {
        return FAKE_INVALID_ARGUMENT;
    }
    if (atomic_load(&comm->under_way) > 0 || comm->is_finalized) {
        end_wrongly("a window ends while its communicator is in use, or too late");
    }
    pthread_mutex_lock(&lock);
    while (*at != NULL && *at != window) {
        at = &(*at)->next;
    }
    if (*at == NULL) {
        end_wrongly("a window of another communicator, or that has ended");
    }
    *at = window->next;
    window->piece->windows--;
    pthread_mutex_unlock(&lock);
    free(window);
    return fake_nccl_result("ncclCommWindowDeregister");
}
