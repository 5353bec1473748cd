/* SPDX-License-Identifier: Apache-2.0 */
/* The shared memory of a node, as two ranks see it. Both are in this process. */
#include "collectives/transport/shm/shm.h"

#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collectives/transport/shm/shm_reach.h"
#include "collectives/transport/shm/shm_region.h"
#include "collectives/transport/shm/shm_state.h"
#include "tests/tap.h"

enum {
    RANKS = 2,
    EXTRA_BYTES = 10000,
    RESERVED_BYTES = 64 << 20,
    MAPPED_BYTES = 64 << 10,
};

static const struct hvd_shm_sizes sizes = {
    .local_size = RANKS,
    .extra_bytes = EXTRA_BYTES,
    .reserved_bytes = RESERVED_BYTES,
    .geometry = {.slots = 2, .slot_bytes = 4096, .recv_bytes = 4096},
    .reaches = true,
};

static const int both[] = {0, 1};

struct node {
    int file;
    int bells[RANKS];
    struct hvd_shm *shm[RANKS];
};

static void node_open(struct node *node)
{
    struct hvd_error err = {0};
    int status = 0;

    node->file = hvd_shm_open(&sizes, &err);
    for (int i = 0; i < RANKS; i++) {
        node->bells[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    }
    for (int i = 0; i < RANKS && node->file >= 0 && status == 0; i++) {
        status =
            hvd_shm_create(dup(node->file), i, &sizes, node->bells, &node->shm[i], &err);
    }
    if (node->file < 0 || status != 0) {
        printf("Bail out! %s\n", err.text);
        exit(99);
    }
}

static void node_close(struct node *node)
{
    for (int i = 0; i < RANKS; i++) {
        hvd_shm_destroy(node->shm[i]);
        close(node->bells[i]);
    }
    close(node->file);
}

static struct hvd_shm_region *open_region(struct node *node, int local_rank,
                                          const int *members, int count)
{
    struct hvd_shm_region *region = NULL;
    struct hvd_error err = {0};

    if (hvd_shm_region_open(node->shm[local_rank], members, count, &region, &err) != 0) {
        printf("Bail out! %s\n", err.text);
        exit(99);
    }
    return region;
}

static bool was_rung(const struct node *node, int local_rank)
{
    uint64_t value;

    return read(node->bells[local_rank], &value, sizeof(value)) == sizeof(value);
}

static void test_extra(void)
{
    struct node node;
    char *mine;

    node_open(&node);
    mine = hvd_shm_extra(node.shm[0]);
    mine[EXTRA_BYTES - 1] = 7;
    tap_ok(mine[0] == 0 && hvd_shm_extra(node.shm[1])[EXTRA_BYTES - 1] == 7,
           "the extra bytes are zero and shared");
    node_close(&node);
}

static char *map_reserved(struct hvd_shm *shm, size_t at)
{
    struct hvd_error err = {0};
    char *memory = NULL;

    if (hvd_shm_map_reserved(shm, at, MAPPED_BYTES, &memory, &err) != 0) {
        printf("Bail out! %s\n", err.text);
        exit(99);
    }
    return memory;
}

static void test_reserved(void)
{
    const size_t last = RESERVED_BYTES - MAPPED_BYTES;
    struct hvd_shm_region *regions[RANKS];
    struct node node;
    struct stat stat;
    char *memory[RANKS];

    node_open(&node);
    tap_ok(fstat(node.file, &stat) == 0 && stat.st_blocks * 512 < RESERVED_BYTES / 2,
           "reserved bytes take no memory");
    for (int i = 0; i < RANKS; i++) {
        memory[i] = map_reserved(node.shm[i], last);
    }
    memset(memory[0], 7, MAPPED_BYTES);
    for (int i = 0; i < RANKS; i++) {
        regions[i] = open_region(&node, i, both, RANKS);
    }
    memset(hvd_shm_region_slot(regions[0], HVD_LOCATION_IN, 0, 0), 8, 4096);
    tap_ok(memory[1][0] == 7 && memory[1][MAPPED_BYTES - 1] == 7,
           "mapped reserved bytes are shared, and regions are elsewhere");
    for (int i = 0; i < RANKS; i++) {
        hvd_shm_region_close(regions[i]);
        munmap(memory[i], MAPPED_BYTES);
    }
    node_close(&node);
}

static void test_sleep(void)
{
    struct node node;
    bool awake_is_left_alone;
    bool sleeper_is_rung_once;

    node_open(&node);
    hvd_shm_ring(node.shm[0], 1);
    awake_is_left_alone = !was_rung(&node, 1);
    hvd_shm_set_asleep(node.shm[1], true);
    hvd_shm_ring(node.shm[0], 1);
    sleeper_is_rung_once = was_rung(&node, 1);
    hvd_shm_ring(node.shm[0], 1);
    sleeper_is_rung_once = sleeper_is_rung_once && !was_rung(&node, 1);
    tap_ok(awake_is_left_alone, "a rank that is awake is not rung");
    tap_ok(sleeper_is_rung_once, "a rank that sleeps is rung, and only once");
    tap_ok(hvd_shm_set_asleep(node.shm[1], false),
           "a rank that was rung learns that when it wakes");
    hvd_shm_set_asleep(node.shm[1], true);
    tap_ok(!hvd_shm_set_asleep(node.shm[1], false),
           "a rank that was not rung learns that when it wakes");
    tap_ok(!hvd_shm_set_asleep(node.shm[1], false), "a rank that was awake was not rung");
    node_close(&node);
}

static void test_signals(void)
{
    struct node node;
    struct hvd_shm_region *regions[RANKS];
    bool only_mine;
    uint64_t base;

    node_open(&node);
    for (int i = 0; i < RANKS; i++) {
        regions[i] = open_region(&node, i, both, RANKS);
    }
    base = hvd_shm_region_base(regions[0]);
    hvd_shm_set_asleep(node.shm[1], true);
    strcpy(hvd_shm_region_slot(regions[0], HVD_LOCATION_OUT, 0, 1), "there");
    hvd_shm_region_signal(regions[0]);
    hvd_shm_region_ring(regions[0]);
    only_mine = hvd_shm_region_counter(regions[1], 0) == base + 1 &&
                hvd_shm_region_counter(regions[1], 1) == base;
    tap_ok(only_mine, "a signal counts for the rank that gave it");
    tap_ok(was_rung(&node, 1), "a ring after a signal wakes a sleeping member");
    tap_ok(strcmp(hvd_shm_region_slot(regions[1], HVD_LOCATION_OUT, 0, 1), "there") == 0,
           "the member that was woken finds the data written before");
    hvd_shm_set_asleep(node.shm[1], true);
    hvd_shm_region_ring(regions[0]);
    tap_ok(!was_rung(&node, 1), "a ring without a new signal does not wake");
    hvd_shm_region_signal(regions[0]);
    hvd_shm_region_close(regions[0]);
    tap_ok(was_rung(&node, 1), "closing the region wakes for a signal without a ring");
    hvd_shm_region_close(regions[1]);
    node_close(&node);
}

/* A rank may open a region again while another rank is still in the previous use. */
static void test_reuse(void)
{
    struct node node;
    struct hvd_shm_region *fast, *slow;
    uint64_t awaited;

    node_open(&node);
    fast = open_region(&node, 0, both, RANKS);
    tap_ok(!hvd_shm_region_is_ready(fast),
           "a region is not ready while a rank of the node has not opened it");
    slow = open_region(&node, 1, both, RANKS);
    tap_ok(hvd_shm_region_is_ready(fast) && hvd_shm_region_is_ready(slow),
           "a region is ready when all ranks of the node have opened it");
    hvd_shm_region_signal(fast);
    awaited = hvd_shm_region_base(slow) + 1;
    hvd_shm_region_close(fast);
    fast = open_region(&node, 0, both, 1);
    tap_ok(hvd_shm_region_counter(slow, 0) >= awaited,
           "a rank that still waits in a use that others have left gets its signal");
    tap_ok(!hvd_shm_region_is_ready(fast),
           "slots that a rank of the last use may still read are not reused");
    hvd_shm_region_close(slow);
    slow = open_region(&node, 1, both, 1);
    tap_ok(hvd_shm_region_is_ready(fast) &&
               hvd_shm_region_base(fast) == hvd_shm_region_base(slow),
           "the new use begins when a rank that is not a member opens it, too");
    hvd_shm_region_close(fast);
    hvd_shm_region_close(slow);
    node_close(&node);
}

/* The upper 20 bits of a counter count the uses of its part of the memory. */
static void test_last_use(void)
{
    struct node node;
    struct hvd_shm_region *regions[RANKS];
    uint64_t last = 0;
    bool is_good = true;

    node_open(&node);
    for (int use = 0; use < 3; use++) {
        for (int i = 0; i < RANKS; i++) {
            regions[i] = open_region(&node, i, both, RANKS);
            is_good = is_good && hvd_shm_region_is_ready(regions[0]) == (i == 1);
        }
        hvd_shm_region_signal(regions[1]);
        is_good = is_good && hvd_shm_region_await(regions[0], 1,
                                                  hvd_shm_region_base(regions[0]) + 1, 1);
        last = use == 1 ? hvd_shm_region_base(regions[0]) : last;
        for (int i = 0; i < RANKS; i++) {
            is_good = is_good && (use < 2 || hvd_shm_region_base(regions[i]) < last);
            hvd_shm_region_close(regions[i]);
            node.shm[i]->extents[0].uses = (1 << 20) - (use == 0 ? 2 : 1);
        }
    }
    tap_ok(is_good && node.shm[0]->extent_count == 2 && node.shm[1]->extent_count == 2,
           "when the number of uses has reached its end, others follow elsewhere");
    node_close(&node);
}

static long long backed_bytes(int file)
{
    struct stat status = {0};

    fstat(file, &status);
    return (long long)status.st_blocks * 512;
}

static void test_growth(void)
{
    struct node node;
    struct hvd_shm_region *first, *second;
    long long after_two = 0;

    node_open(&node);
    for (int i = 0; i < 1000; i++) {
        first = open_region(&node, 0, both, RANKS);
        second = open_region(&node, 0, both, RANKS);
        after_two = i == 0 ? backed_bytes(node.file) : after_two;
        hvd_shm_region_close(i % 2 == 0 ? first : second);
        hvd_shm_region_close(i % 2 == 0 ? second : first);
    }
    tap_ok(backed_bytes(node.file) == after_two,
           "two regions opened and closed a thousand times take no more memory");
    node_close(&node);
}

/* Limits the size of files, as if memory had run out. */
static void test_no_memory(void)
{
    struct node node;
    struct hvd_shm_region *region = NULL;
    struct hvd_error err = {0};
    struct rlimit before, limit;
    int status;

    node_open(&node);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    limit = before;
    limit.rlim_cur = 16384;
    setrlimit(RLIMIT_FSIZE, &limit);
    status = hvd_shm_region_open(node.shm[0], both, RANKS, &region, &err);
    setrlimit(RLIMIT_FSIZE, &before);
    tap_ok(status == HVD_ERR_NOMEM && err.status == status &&
               strstr(err.text, "of shared memory for this rank") != NULL &&
               strstr(err.text, "ask for more memory for the job") != NULL,
           "a region without memory is an error when it is opened: \"%s\"", err.text);
    node_close(&node);
}

static void test_fork(void)
{
    struct node node;
    struct stat status;
    int file;
    int code = 1;
    pid_t pid;

    node_open(&node);
    file = dup(node.file);
    hvd_shm_destroy(node.shm[0]);
    hvd_shm_create(file, 0, &sizes, node.bells, &node.shm[0], NULL);
    pid = fork();
    if (pid == 0) {
        _exit(fstat(file, &status) == 0 && S_ISCHR(status.st_mode) ? 0 : 1);
    }
    waitpid(pid, &code, 0);
    tap_ok(code == 0, "a forked child does not keep the descriptor");
    node_close(&node);
}

static bool settles(struct node *node)
{
    hvd_shm_settle(node->shm[0]);
    return hvd_shm_settle(node->shm[1]) && hvd_shm_settle(node->shm[0]);
}

static bool can_reach(const struct node *node)
{
    return hvd_shm_can_reach(node->shm[0]) && hvd_shm_can_reach(node->shm[1]);
}

static void test_reach(void)
{
    char mine[] = "mine", yours[] = "....";
    uint64_t address = (uint64_t)(uintptr_t)mine;
    struct node node;

    node_open(&node);
    tap_ok(!hvd_shm_settle(node.shm[0]) && !hvd_shm_can_reach(node.shm[0]),
           "no memory can be reached before every rank has tried");
    if (!settles(&node) || !can_reach(&node)) {
        tap_skip("a rank reads another rank's memory", "this machine does not allow it");
        node_close(&node);
        return;
    }
    tap_ok(hvd_shm_read(node.shm[0], 1, address, yours, sizeof(mine)) == 0 &&
               strcmp(yours, "mine") == 0,
           "a rank reads another rank's memory");
    tap_ok(hvd_shm_write(node.shm[1], 0, address, "ours", sizeof(mine)) == 0 &&
               strcmp(mine, "ours") == 0,
           "a rank writes another rank's memory");
    tap_ok(hvd_shm_read(node.shm[0], 1, 64, yours, sizeof(yours)) == HVD_ERR_ARG,
           "reading unmapped memory is an error");
    hvd_shm_hide(node.shm[1]);
    tap_ok(hvd_shm_read(node.shm[0], 1, address, yours, sizeof(mine)) == HVD_INPROGRESS &&
               hvd_shm_read(node.shm[0], 1, 64, yours, sizeof(yours)) == HVD_INPROGRESS,
           "memory of a rank that hides is not read");
    node_close(&node);
}

static void test_no_reach(void)
{
    struct hvd_shm_sizes shy = sizes;
    struct node node;

    shy.reaches = false;
    node_open(&node);
    hvd_shm_destroy(node.shm[1]);
    hvd_shm_create(dup(node.file), 1, &shy, node.bells, &node.shm[1], NULL);
    tap_ok(settles(&node) && !can_reach(&node),
           "if one rank does not want it, no rank reaches another's memory");
    node_close(&node);
}

/* Rank 1 is a process that registered and then ended. */
static void test_dead(void)
{
    char mine[] = "mine";
    struct node node;
    int code;
    pid_t pid;

    node_open(&node);
    pid = fork();
    if (pid == 0) {
        hvd_shm_destroy(node.shm[1]);
        hvd_shm_create(dup(node.file), 1, &sizes, node.bells, &node.shm[1], NULL);
        _exit(0);
    }
    waitpid(pid, &code, 0);
    tap_ok(settles(&node) && !can_reach(&node),
           "if one rank cannot be reached, no rank reaches another's memory");
    tap_ok(hvd_shm_read(node.shm[0], 1, (uint64_t)(uintptr_t)mine, mine, 1) ==
                   HVD_INPROGRESS &&
               hvd_shm_write(node.shm[0], 1, (uint64_t)(uintptr_t)mine, mine, 1) ==
                   HVD_INPROGRESS,
           "memory of a rank that has died is not read or written");
    node_close(&node);
}

/* After a rank has died, its pid may belong to another process, which has memory at the
 * same address. */
static void test_other_process(void)
{
    struct node node;
    uint64_t secret = 1;
    char mine[] = "mine", yours[] = "....";
    uint64_t address = (uint64_t)(uintptr_t)mine;

    node_open(&node);
    node.shm[1]->secret ^= 1;
    secret = node.shm[1]->lines[1].secret;
    tap_ok(settles(&node) && !can_reach(&node) && secret != node.shm[1]->secret,
           "if another process has the pid, no rank reaches another's memory");
    tap_ok(hvd_shm_read(node.shm[0], 1, address, yours, sizeof(mine)) == HVD_INPROGRESS &&
               hvd_shm_write(node.shm[0], 1, address, yours, sizeof(mine)) ==
                   HVD_INPROGRESS &&
               strcmp(mine, "mine") == 0,
           "memory of another process with the same pid is neither read nor written");
    node_close(&node);
}

int main(void)
{
    test_extra();
    test_reserved();
    test_sleep();
    test_signals();
    test_reuse();
    test_last_use();
    test_growth();
    test_no_memory();
    test_fork();
    test_reach();
    test_no_reach();
    test_dead();
    test_other_process();
    return tap_done();
}
