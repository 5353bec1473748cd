/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory as its owner and as another rank see it: here they are in one process. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collectives/transport/shm/shared.h"
#include "collectives/transport/shm/shared_peers.h"
#include "collectives/transport/shm/shm_reach.h"
#include "collectives/transport/shm/shm_state.h"
#include "tests/tap.h"

enum {
    RANKS = 2,
    BYTES = 10000,
    PAGE = 4096,
    MANY = 50, /* more than are kept mapped */
};

static struct hvd_shm *ranks[RANKS];
static int bells[RANKS];

static void open_ranks(void)
{
    const struct hvd_shm_sizes sizes = {
        .local_size = RANKS,
        .geometry = {.slots = 2, .slot_bytes = PAGE, .recv_bytes = PAGE},
        .reaches = true,
    };
    struct hvd_error err = {0};
    int file = hvd_shm_open(&sizes, &err);

    for (int i = 0; i < RANKS; i++) {
        bells[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (file < 0 ||
            hvd_shm_create(dup(file), i, &sizes, bells, &ranks[i], &err) != 0) {
            printf("Bail out! %s\n", err.text);
            exit(99);
        }
    }
    close(file);
}

static void close_ranks(void)
{
    for (int i = 0; i < RANKS; i++) {
        hvd_shm_destroy(ranks[i]);
        close(bells[i]);
    }
}

static char *create(size_t bytes)
{
    struct hvd_error err = {0};
    void *memory = NULL;

    if (hvd_shared_create(bytes, &memory, &err) != 0) {
        printf("Bail out! %s\n", err.text);
        exit(99);
    }
    return memory;
}

static bool is_zero(const char *data, size_t bytes)
{
    size_t i = 0;

    while (i < bytes && data[i] == 0) {
        i++;
    }
    return i == bytes;
}

static void test_owner(void)
{
    struct hvd_shared_place place, other;
    struct hvd_error err = {0};
    void *memory = NULL;
    char byte = 0, *one, *two;

    tap_ok(!hvd_shared_find(&byte, 1, &place), "without any, nothing is shared");
    one = create(BYTES);
    two = create(0);
    tap_ok(is_zero(one, BYTES) && (uintptr_t)one % PAGE == 0 && two != NULL,
           "it is zero, and on a page");
    tap_ok(hvd_shared_find(one, BYTES, &place) && hvd_shared_find(one + 17, 1, &other) &&
               place.number != 0 && other.number == place.number &&
               other.offset == place.offset + 17,
           "what lies in it is found");
    tap_ok(hvd_shared_find(two, 1, &other) && other.number != place.number,
           "pieces are told apart");
    tap_ok(!hvd_shared_find(&byte, 1, &place) && !hvd_shared_find(one - 1, 2, &place) &&
               !hvd_shared_find(one + 3 * PAGE - 1, 2, &place) &&
               hvd_shared_find(one + 3 * PAGE - 1, 1, &place) &&
               !hvd_shared_find(one, SIZE_MAX, &place),
           "what lies beside it, or only in part in it, is not");
    tap_ok(!hvd_shared_destroy(one + 1) && !hvd_shared_destroy(&byte) &&
               hvd_shared_destroy(NULL),
           "what was not given out is not taken back");
    tap_ok(hvd_shared_destroy(one) && !hvd_shared_find(one, 1, &place) &&
               !hvd_shared_destroy(one) && hvd_shared_find(two, 1, &place),
           "what was taken back is not shared any more");
    hvd_shared_destroy(two);
    tap_ok(hvd_shared_create(SIZE_MAX - PAGE, &memory, &err) == HVD_ERR_NOMEM &&
               hvd_shared_create((size_t)1 << 60, &memory, &err) == HVD_ERR_NOMEM &&
               strstr(err.text, "memory") != NULL && memory == NULL,
           "too much is an error: %s", err.text);
}

static char *map(const void *memory, int *status)
{
    struct hvd_shared_place place;
    char *mapped = NULL;

    hvd_shared_find(memory, 1, &place);
    *status = hvd_shared_map(ranks[0], 1, &place, 1, &mapped);
    return mapped;
}

static void test_peer(void)
{
    char *own = create(BYTES), *mapped, *many[MANY];
    bool is_good = true;
    int status;

    mapped = map(own + 5, &status);
    tap_ok(status == 0 && mapped != own + 5, "another rank maps it elsewhere");
    mapped[0] = 'x';
    tap_ok(own[5] == 'x' && map(own + 5, &status) == mapped, "the same memory, once");
    for (int i = 0; i < MANY; i++) {
        many[i] = create(BYTES);
        many[i][0] = (char)i;
    }
    for (int i = 0; i < 2 * MANY; i++) {
        mapped = map(many[i % MANY], &status);
        is_good = is_good && status == 0 && mapped[0] == (char)(i % MANY);
    }
    tap_ok(is_good, "of many pieces each is found, in turn");
    mapped = map(many[0], &status);
    hvd_shared_destroy(many[0]);
    tap_ok(is_zero(mapped, BYTES), "of what was freed no memory is left to others");
    for (int i = 1; i < MANY; i++) {
        hvd_shared_destroy(many[i]);
    }
    hvd_shared_destroy(own);
}

/* The place of a piece is what its owner says, which another rank does not believe. */
static void test_outside(void)
{
    const size_t whole = 4 * PAGE; /* of the file, with its first page */
    char *own = create(BYTES), *mapped = NULL;
    struct hvd_shared_place place, far;
    bool is_refused = true;

    hvd_shared_find(own, BYTES, &place);
    tap_ok(hvd_shared_map(ranks[0], 1, &place, BYTES, &mapped) == 0 && mapped != NULL,
           "all bytes of a piece are mapped");
    mapped = NULL;
    is_refused =
        hvd_shared_map(ranks[0], 1, &place, 3 * PAGE + 1, &mapped) == HVD_ERR_SYS;
    far = place;
    far.offset = whole - 1;
    is_refused =
        is_refused && hvd_shared_map(ranks[0], 1, &far, 2, &mapped) == HVD_ERR_SYS;
    far.offset = whole + 1;
    is_refused =
        is_refused && hvd_shared_map(ranks[0], 1, &far, 1, &mapped) == HVD_ERR_SYS;
    far.offset = UINT64_MAX;
    is_refused =
        is_refused && hvd_shared_map(ranks[0], 1, &far, 2, &mapped) == HVD_ERR_SYS;
    tap_ok(is_refused && mapped == NULL, "bytes outside of it are refused");
    hvd_shared_destroy(own);
}

/* Another file has taken the place of a piece that a rank has offered. */
static void test_freed(void)
{
    char *own = create(BYTES), *mapped = NULL;
    struct hvd_shared_place place, nowhere = {0};
    int other = memfd_create("other", MFD_CLOEXEC);
    uint64_t number;
    struct stat facts;

    hvd_shared_find(own, 1, &place);
    dup2(other, (int)place.fd);
    tap_ok(hvd_shared_map(ranks[0], 1, &place, 1, &mapped) == HVD_ERR_SYS &&
               mapped == NULL && fstat(other, &facts) == 0 && facts.st_size == 0,
           "no other file is taken for a piece");
    number = place.number + 1;
    tap_ok(pwrite(other, &number, sizeof(number), 0) == (ssize_t)sizeof(number) &&
               hvd_shared_map(ranks[0], 1, &place, 1, &mapped) == HVD_ERR_SYS &&
               mapped == NULL,
           "nor is another piece");
    tap_ok(hvd_shared_map(ranks[0], 1, &nowhere, 1, &mapped) == HVD_ERR_SYS,
           "what lies in no piece is an error");
    hvd_shared_destroy(own);
    close(other);
}

/* A child that writes as rank 0, and says whether it may. */
static bool child_writes(void)
{
    pid_t pid = fork();
    int code = -1;

    if (pid == 0) {
        bool may = hvd_shared_begin_stores(ranks[0]);

        hvd_shared_end_stores(ranks[0]);
        _exit(may ? 0 : 1);
    }
    waitpid(pid, &code, 0);
    return code == 0;
}

static void test_hide(void)
{
    struct hvd_shm_line *line = hvd_shm_line_of(ranks[0], 0);

    tap_ok(child_writes() && line->writes_to == 0, "a rank may write to the others");
    line->writes_to = HVD_SHM_WRITES_TO_ALL; /* and does not go on */
    tap_ok(hvd_shm_hide(ranks[1]), "a rank hides from one that does not end its stores");
    line->writes_to = 0;
    tap_ok(hvd_shm_hide(ranks[1]) && !child_writes() && line->writes_to == 0,
           "to a rank that hides nobody writes");
}

int main(void)
{
    open_ranks();
    test_owner();
    test_peer();
    test_outside();
    test_freed();
    test_hide();
    close_ranks();
    return tap_done();
}
