/* SPDX-License-Identifier: Apache-2.0 */
/* Tests sums that read another rank's input in place when the memory of that input is no
 * longer accessible. The two ranks of a node are in one process. */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collectives/schedule/algorithm_table.h"
#include "collectives/run/run.h"
#include "collectives/transport/shm/shm_reach.h"
#include "tests/tap.h"

enum {
    RANKS = 2,
    BYTES = 1 << 20,
    TURNS = 1000, /* more turns than a run needs */
};

static const struct hvd_shm_sizes sizes = {
    .local_size = RANKS,
    .geometry = {.slots = 2,
                 .slot_bytes = 256 << 10,
                 .recv_bytes = 256 << 10,
                 .has_single_copy = true},
    .reaches = true,
};

/* Chooses cma_reduce on any processor; `single` is its former name. */
static const char algorithms[] = "[nodes=1 ranks=2]\nallreduce 0 single\n";

static const int both[] = {0, 1};
static const struct hvd_descriptor descriptor = {.name = "gone",
                                                 .op = HVD_SUM,
                                                 .dtype = HVD_UINT8,
                                                 .prescale = 1,
                                                 .postscale = 1,
                                                 .ndim = 1,
                                                 .shape = {BYTES}};

struct rank {
    struct hvd_shm *shm;
    struct hvd_team team;
    struct hvd_entry *entry; /* the rank owns it if it stands for zeros */
    struct hvd_run *run;
    int status; /* result of the last turn */
};

struct node {
    struct hvd_algorithm_table *algorithms;
    int file;
    int bells[RANKS];
    struct rank ranks[RANKS];
};

static void require(int status, const struct hvd_error *err)
{
    if (status < 0) {
        printf("Bail out! %s\n", err->text);
        exit(99);
    }
}

static void open_team(struct rank *rank, int number,
                      const struct hvd_algorithm_table *table)
{
    struct hvd_boot_peer peers[] = {{.host = "a"}, {.host = "a"}};
    const char *const hosts[] = {"a", "a"};
    struct hvd_boot boot = {.rank = number, .size = RANKS, .peers = peers};
    struct hvd_error err = {0};

    require(hvd_layout_init(&boot.layout, hosts, RANKS, &err), &err);
    require(hvd_shm_region_open(rank->shm, both, RANKS, &rank->team.region, &err), &err);
    rank->team.geometry = sizes.geometry;
    rank->team.algorithms = table;
    require(hvd_team_init(&rank->team, &boot, both, RANKS, &err), &err);
    hvd_layout_finish(&boot.layout);
}

/* Returns false if the ranks may not read each other's memory on this machine. */
static bool node_open(struct node *node)
{
    struct hvd_error err = {0};

    *node = (struct node){.file = hvd_shm_open(&sizes, &err)};
    require(node->file, &err);
    require(hvd_algorithm_table_parse("this test", algorithms, &node->algorithms, &err),
            &err);
    for (int i = 0; i < RANKS; i++) {
        node->bells[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    }
    for (int i = 0; i < RANKS; i++) {
        require(hvd_shm_create(dup(node->file), i, &sizes, node->bells,
                               &node->ranks[i].shm, &err),
                &err);
    }
    for (int i = 0; i < 2 * RANKS; i++) {
        hvd_shm_settle(node->ranks[i % RANKS].shm);
    }
    for (int i = 0; i < RANKS; i++) {
        open_team(&node->ranks[i], i, node->algorithms);
    }
    return hvd_shm_can_reach(node->ranks[0].shm) && hvd_shm_can_reach(node->ranks[1].shm);
}

static void node_close(struct node *node)
{
    for (int i = 0; i < RANKS; i++) {
        struct rank *rank = &node->ranks[i];

        hvd_run_destroy(rank->run);
        if (rank->entry != NULL && rank->entry->is_zeros) {
            hvd_entry_free_zeros(rank->entry);
        }
        hvd_shm_region_close(rank->team.region);
        hvd_team_finish(&rank->team);
        hvd_shm_destroy(rank->shm);
        close(node->bells[i]);
    }
    close(node->file);
    hvd_algorithm_table_destroy(node->algorithms);
}

static void plan(struct rank *rank)
{
    const struct hvd_batch_header header = {.kind = HVD_KIND_ALLREDUCE, .count = 1};
    struct hvd_error err = {0};

    require(hvd_run_create(&rank->team, &header, &rank->entry, NULL, &rank->run, &err),
            &err);
    rank->status = HVD_INPROGRESS;
}

static void take_turn(struct rank *rank)
{
    int64_t work = INT64_MAX;
    bool moved = false;

    if (rank->status == HVD_INPROGRESS) {
        rank->status = hvd_run_progress(rank->run, &work, &moved);
    }
}

static struct hvd_entry *absent(bool is_cancelled)
{
    struct hvd_entry *entry = hvd_entry_create_zeros(&descriptor);

    if (entry == NULL) {
        printf("Bail out! out of memory\n");
        exit(99);
    }
    entry->is_cancelled = is_cancelled;
    return entry;
}

/* Starts a run of rank 0 with new memory. The test makes this memory inaccessible before
 * rank 1 reads it; the address stays reserved, so that nothing else is mapped there. */
static void *begin(struct node *node, struct hvd_entry *entry)
{
    void *data =
        mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (data == MAP_FAILED) {
        printf("Bail out! out of memory\n");
        exit(99);
    }
    *entry = (struct hvd_entry){.descriptor = descriptor, .input = data, .output = data};
    node->ranks[0].entry = entry;
    plan(&node->ranks[0]);
    take_turn(&node->ranks[0]); /* ends when rank 0 waits for rank 1 */
    return data;
}

static void end(struct node *node, bool is_cancelled)
{
    node->ranks[1].entry = absent(is_cancelled);
    plan(&node->ranks[1]);
    for (int i = 0; i < TURNS; i++) {
        take_turn(&node->ranks[1]);
        take_turn(&node->ranks[0]);
    }
}

/* Cancels a batch on rank 0, as when not all ranks have started a replayed batch; rank 0
 * then takes its memory back. Tests how the batch ends on rank 1, which has cancelled it,
 * too, or has not. */
static void test_void(bool is_cancelled)
{
    struct hvd_entry mine;
    struct node node;
    void *data;

    if (!node_open(&node)) {
        tap_skip("memory that is gone", "processes here cannot read each other's memory");
        node_close(&node);
        return;
    }
    data = begin(&node, &mine);
    node.ranks[0].entry = absent(true);
    hvd_run_cancel(node.ranks[0].run, &node.ranks[0].entry);
    mprotect(data, BYTES, PROT_NONE);
    end(&node, is_cancelled);
    if (is_cancelled) {
        tap_ok(node.ranks[0].status == 0 && node.ranks[1].status == 0,
               "a cancelled batch ends even if offered memory is gone");
    } else {
        tap_ok(node.ranks[1].status == HVD_ERR_SYS,
               "a batch that is not cancelled fails if offered memory is gone");
    }
    munmap(data, BYTES);
    node_close(&node);
}

static void test_hidden(void)
{
    struct hvd_entry mine;
    struct node node;
    void *data;

    if (node_open(&node)) {
        data = begin(&node, &mine);
        hvd_shm_hide(node.ranks[0].shm);
        hvd_run_forget(node.ranks[0].run);
        mprotect(data, BYTES, PROT_NONE);
        end(&node, false);
        tap_ok(node.ranks[1].status == HVD_INPROGRESS,
               "ranks that read from a rank that revoked access wait for the failure "
               "report");
        munmap(data, BYTES);
    }
    node_close(&node);
}

int main(void)
{
    test_void(true);
    test_void(false);
    test_hidden();
    return tap_done();
}
