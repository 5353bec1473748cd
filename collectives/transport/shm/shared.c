/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of this process that the node's other ranks may map. */
#include "collectives/transport/shm/shared.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "collectives/transport/shm/shm_pages.h"
#include "gpu_binding/base/fork_close.h"
#include "gpu_binding/base/log.h"

/* What is there twice for a moment. */
static const size_t withdrawn_at_once = 64 << 20;

struct piece {
    struct piece *next;
    uint64_t number; /* 0: withdrawn */
    pid_t owner; /* a forked child has the mapping, and no part in it */
    int fd;
    char *map; /* the first page, then the memory */
    size_t map_bytes;
    size_t first; /* of that page */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct piece *pieces;
static _Atomic int piece_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork, after_fork);
}

static int map_piece(struct piece *piece, struct hvd_error *err)
{
    int status = hvd_shm_back(piece->fd, 0, piece->map_bytes, err);

    if (status != 0) {
        return status;
    }
    piece->map =
        mmap(NULL, piece->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, piece->fd, 0);
    if (piece->map == MAP_FAILED) {
        piece->map = NULL;
        return hvd_fail(err, HVD_ERR_NOMEM, "cannot map %zu bytes of shared memory: %m",
                        piece->map_bytes);
    }
    *(uint64_t *)piece->map = piece->number;
    return 0;
}

static int open_piece(struct piece *piece, struct hvd_error *err)
{
    if (getrandom(&piece->number, sizeof(piece->number), GRND_NONBLOCK) !=
        (ssize_t)sizeof(piece->number)) {
        return hvd_fail(err, HVD_ERR_SYS, "no random numbers for shared memory: %m");
    }
    piece->number |= 1;
    piece->fd = memfd_create("hvd-shared", MFD_CLOEXEC);
    if (piece->fd < 0 || hvd_fork_close_add(piece->fd) != 0) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot create shared memory: %m");
    }
    return map_piece(piece, err);
}

static void close_piece(struct piece *piece)
{
    if (piece->map != NULL) {
        munmap(piece->map, piece->map_bytes);
    }
    if (piece->fd >= 0 && piece->owner == getpid()) {
        /* Who still maps it would keep its memory. */
        hvd_shm_unback(piece->fd, 0, piece->map_bytes);
        hvd_fork_close_now(piece->fd);
    }
    free(piece);
}

/* To back more than there is would make the kernel kill processes until it is. */
static size_t memory_of_machine(void)
{
    return (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
}

int hvd_shared_create(size_t bytes, void **out, struct hvd_error *err)
{
    struct piece *piece;
    int status;

    if (bytes > memory_of_machine()) {
        return hvd_fail(err, HVD_ERR_NOMEM,
                        "%zu bytes of shared memory are more than the %zu that this "
                        "machine has",
                        bytes, memory_of_machine());
    }
    piece = calloc(1, sizeof(*piece));
    if (piece == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for shared memory");
    }
    pthread_once(&once, watch_forks);
    piece->owner = getpid();
    piece->first = hvd_shm_round_to_page(1);
    piece->map_bytes = piece->first + hvd_shm_round_to_page(bytes > 0 ? bytes : 1);
    status = open_piece(piece, err);
    if (status != 0) {
        close_piece(piece);
        return status;
    }
    pthread_mutex_lock(&lock);
    piece->next = pieces;
    pieces = piece;
    atomic_fetch_add(&piece_count, 1);
    pthread_mutex_unlock(&lock);
    *out = piece->map + piece->first;
    return 0;
}

static struct piece *take_out(const void *memory)
{
    struct piece **at = &pieces, *piece;

    while (*at != NULL && (*at)->map + (*at)->first != memory) {
        at = &(*at)->next;
    }
    piece = *at;
    if (piece != NULL) {
        *at = piece->next;
        atomic_fetch_sub(&piece_count, 1);
    }
    return piece;
}

bool hvd_shared_destroy(void *memory)
{
    struct piece *piece;

    if (memory == NULL) {
        return true;
    }
    pthread_mutex_lock(&lock);
    piece = take_out(memory);
    pthread_mutex_unlock(&lock);
    if (piece == NULL) {
        return false;
    }
    close_piece(piece);
    return true;
}

/* --- withdrawing --- */

/* Writes to each page what is there, in one go with what other threads write: the kernel gives this
 * process a copy of its own. (A compiler may make a mere load of adding 0.) */
static void copy_pages(char *at, size_t bytes)
{
    const size_t page = hvd_shm_round_to_page(1);

    for (size_t done = 0; done < bytes; done += page) {
        _Atomic char *byte = (_Atomic char *)(at + done);
        char seen = atomic_load(byte);

        while (!atomic_compare_exchange_weak(byte, &seen, seen)) {
        }
    }
}

/* One mapping takes the other's place in one go, too: no thread finds nothing there, and no store
 * of this process is lost. */
static int withdraw_range(const struct piece *piece, size_t at, size_t bytes)
{
    if (mmap(piece->map + at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
             piece->fd, (off_t)at) == MAP_FAILED) {
        return HVD_ERR_SYS;
    }
    copy_pages(piece->map + at, bytes);
    hvd_shm_unback(piece->fd, at, bytes); /* copies stay */
    return 0;
}

static int withdraw(struct piece *piece)
{
    int status = 0;

    piece->number = 0;
    for (size_t at = 0; status == 0 && at < piece->map_bytes; at += withdrawn_at_once) {
        size_t left = piece->map_bytes - at;

        status = withdraw_range(piece, at,
                                left < withdrawn_at_once ? left : withdrawn_at_once);
    }
    return status;
}

bool hvd_shared_withdraw(void)
{
    bool is_done = true;

    pthread_mutex_lock(&lock);
    for (struct piece *piece = pieces; piece != NULL; piece = piece->next) {
        if (piece->number != 0 && piece->owner == getpid() && withdraw(piece) != 0) {
            hvd_log(HVD_LOG_ERROR, "cannot take shared memory back from other ranks: %m");
            is_done = false;
        }
    }
    pthread_mutex_unlock(&lock);
    return is_done;
}

static bool is_within(const struct piece *piece, uintptr_t at, size_t bytes)
{
    uintptr_t begin = (uintptr_t)piece->map + piece->first;
    size_t size = piece->map_bytes - piece->first;

    return at >= begin && at - begin < size && bytes <= size - (at - begin);
}

bool hvd_shared_find(const void *memory, size_t bytes, struct hvd_shared_place *place)
{
    const struct piece *piece;

    if (atomic_load_explicit(&piece_count, memory_order_relaxed) == 0) {
        return false;
    }
    pthread_mutex_lock(&lock);
    piece = pieces;
    while (piece != NULL && (piece->number == 0 || piece->owner != getpid() ||
                             !is_within(piece, (uintptr_t)memory, bytes))) {
        piece = piece->next;
    }
    if (piece != NULL) {
        *place = (struct hvd_shared_place){
            .number = piece->number,
            .offset = (uint64_t)((const char *)memory - piece->map),
            .fd = piece->fd,
        };
    }
    pthread_mutex_unlock(&lock);
    return piece != NULL;
}
