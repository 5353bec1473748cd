/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for NCCL: memory of its own, and what is registered with communicators. Whoever breaks
 * a rule that NCCL does not check is told, and ended. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/attr.h"
#include "tests/fake_gpu/fake_nccl.h"

static const int first_version = 21900;

struct registration {
    struct registration *next;
    const struct fake_comm *comm;
    const char *begin;
    size_t bytes;
};

static struct registration *registrations;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void break_off(const char *what)
{
    fprintf(stderr, "fake NCCL: %s\n", what);
    abort();
}

HVD_EXPORT int ncclMemAlloc(void **out, size_t bytes)
{
    if (fake_gpu_fails("ncclMemAlloc")) {
        return FAKE_SYSTEM_ERROR;
    }
    *out = fake_nccl_version() < first_version ? NULL : fake_gpu_alloc(bytes);
    return *out != NULL ? FAKE_NCCL_SUCCESS : FAKE_INVALID_ARGUMENT;
}

HVD_EXPORT int ncclMemFree(void *memory)
{
    if (fake_gpu_fails("ncclMemFree")) {
        return FAKE_SYSTEM_ERROR;
    }
    pthread_mutex_lock(&lock);
    for (struct registration *at = registrations; at != NULL; at = at->next) {
        if (at->begin == memory) {
            break_off("memory is freed while it is registered");
        }
    }
    pthread_mutex_unlock(&lock);
    return fake_gpu_free(memory) ? FAKE_NCCL_SUCCESS : FAKE_INVALID_ARGUMENT;
}

HVD_EXPORT int ncclCommRegister(struct fake_comm *comm, void *memory, size_t bytes,
                                void **handle)
{
    struct registration *made = calloc(1, sizeof(*made));

    if (fake_gpu_fails("ncclCommRegister")) {
        free(made);
        return FAKE_SYSTEM_ERROR;
    }
    if (!fake_comm_is_ready(comm) || fake_gpu_reach(memory, bytes) == NULL ||
        fake_nccl_version() < first_version) {
        free(made);
        return FAKE_INVALID_ARGUMENT;
    }
    *handle = NULL;
    if (getenv("FAKE_NCCL_REGISTERS_NOTHING") != NULL) {
        free(made);
        return FAKE_NCCL_SUCCESS;
    }
    *made = (struct registration){.comm = comm, .begin = memory, .bytes = bytes};
    pthread_mutex_lock(&lock);
    made->next = registrations;
    registrations = made;
    pthread_mutex_unlock(&lock);
    *handle = made;
    return FAKE_NCCL_SUCCESS;
}

/* Returns whether it was there. handle: NULL for any of the communicator's. */
static bool forget(const struct fake_comm *comm, const void *handle)
{
    struct registration *found = NULL;

    pthread_mutex_lock(&lock);
    for (struct registration **at = &registrations; *at != NULL; at = &(*at)->next) {
        if ((*at)->comm == comm && (handle == NULL || *at == handle)) {
            found = *at;
            *at = found->next;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    free(found);
    return found != NULL;
}

HVD_EXPORT int ncclCommDeregister(struct fake_comm *comm, void *handle)
{
    if (fake_gpu_fails("ncclCommDeregister")) {
        return FAKE_SYSTEM_ERROR;
    }
    if (!fake_comm_is_ready(comm) || handle == NULL) {
        return FAKE_INVALID_ARGUMENT;
    }
    if (atomic_load(&comm->under_way) > 0) {
        break_off("memory is deregistered while the communicator is in use");
    }
    return forget(comm, handle) ? FAKE_NCCL_SUCCESS : FAKE_INVALID_ARGUMENT;
}

void fake_register_end(const struct fake_comm *comm, bool is_aborted)
{
    const char *failed = fake_gpu_failed();
    bool may_have =
        is_aborted || (failed != NULL && strcmp(failed, "ncclCommDeregister") == 0);

    while (forget(comm, NULL)) {
        if (!may_have) {
            break_off("a communicator is destroyed before its memory is deregistered");
        }
    }
}

/* Where in registered memory something is, counted from 1; 0: it is in none. */
static uint64_t place_in(const struct fake_comm *comm, const void *address, size_t bytes)
{
    const char *at = address;
    uint64_t place = 0;

    pthread_mutex_lock(&lock);
    for (struct registration *of = registrations; of != NULL; of = of->next) {
        if (of->comm == comm && at + bytes > of->begin && at < of->begin + of->bytes) {
            if (at < of->begin || at + bytes > of->begin + of->bytes) {
                break_off("a call goes beyond registered memory");
            }
            place = (uint64_t)(at - of->begin) + 1;
        }
    }
    pthread_mutex_unlock(&lock);
    return place;
}

bool fake_register_look(struct fake_call *call)
{
    size_t ranks = (size_t)call->comm->link.size;
    size_t bytes = call->count * fake_dtype_bytes(call->dtype);
    uint64_t from =
        call->from == NULL
            ? 0
            : place_in(call->comm, call->from,
                       call->kind == FAKE_REDUCE_SCATTER ? ranks * bytes : bytes);
    uint64_t to = call->to == NULL
                      ? 0
                      : place_in(call->comm, call->to,
                                 call->kind == FAKE_ALL_GATHER ? ranks * bytes : bytes);

    if ((from == 0) != (to == 0)) {
        fprintf(stderr, "fake NCCL: only one of input and output is registered\n");
        return false;
    }
    call->places = from * 0x9e3779b97f4a7c15u + to;
    if (call->places != 0) {
        fake_gpu_count_registered();
    }
    return true;
}
