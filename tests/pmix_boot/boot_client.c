/* SPDX-License-Identifier: Apache-2.0 */
/* A rank for the tests of boot; prints what it found in one line. A card is the record
 * that a rank publishes in a boot; a wrong one may be left from an earlier boot.
 *
 *   boot_client show [SECONDS]          this rank's numbers and the hosts of all ranks
 *   boot_client among LIST [SECONDS]    the same in a job of the ranks in LIST ("2,0,1")
 *   boot_client regroup N FILE          four ranks boot N times, in pairs or all together
 *   boot_client cycles N FILE [SECONDS]
 *                                       boots N times; prints how many cards were wrong
 *                                       and the growth of descriptors, threads, memory.
 *                                       All ranks of this machine name the same FILE,
 *                                       which is empty
 *   boot_client untouched               prints what boot has changed in this process
 *   boot_client reaping                 show, while a signal handler reaps children */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pmix_boot/boot.h"

/* Cycles before memory is measured, because the first ones may allocate for good. */
#define WARM_UP_CYCLES 5

struct card {
    int pid;
    int cycle;
    /* a card has (rank % 40) + 1 of these bytes, so that cards of ranks differ in
     * length */
    char tail[40];
};

/* --- show --------------------------------------------------------------------------- */

static double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static size_t card_bytes(int rank)
{
    return offsetof(struct card, tail) + (size_t)(rank % 40) + 1;
}

/* Returns this rank's number as the launcher gave it. Only the length of the card depends
 * on it. */
static int launched_rank(void)
{
    const char *pmix = getenv("PMIX_RANK");
    const char *rank = pmix != NULL ? pmix : getenv("HOROVOD_RANK");

    return rank != NULL ? atoi(rank) : 0;
}

/* Ranks of the launch that form the job; NULL: all. */
static int list[64];
static const int *ranks;
static int rank_count;

static void set_ranks(const char *text)
{
    char *end = (char *)text;

    ranks = list;
    for (rank_count = 0; *text != '\0' && rank_count < 64; rank_count++) {
        list[rank_count] = (int)strtol(text, &end, 10);
        text = *end == ',' ? end + 1 : end;
    }
}

static struct hvd_boot *create(int cycle, int timeout_ms)
{
    struct card card = {.pid = getpid(), .cycle = cycle, .tail = "card"};
    const struct hvd_boot_query query = {
        .card = &card,
        .card_bytes = card_bytes(launched_rank()),
        .ranks = ranks,
        .count = rank_count,
        .timeout_ms = timeout_ms,
    };
    struct hvd_error err = {0};
    struct hvd_boot *boot;

    if (hvd_boot_create(&query, &boot, &err) < 0) {
        printf("error %d: %s\n", err.status, err.text);
        exit(EXIT_FAILURE);
    }
    return boot;
}

/* Counts the ranks whose card is not the one that they published in this cycle. */
static int count_wrong(const struct hvd_boot *boot, int cycle)
{
    int wrong = 0;

    for (int rank = 0; rank < boot->size; rank++) {
        const struct hvd_boot_peer *peer = &boot->peers[rank];
        const struct card *card = peer->card;
        int launched = ranks != NULL ? ranks[rank] : rank;
        bool is_right = peer->card_bytes == card_bytes(launched) &&
                        card->cycle == cycle &&
                        (rank != boot->rank || card->pid == getpid());

        wrong += is_right ? 0 : 1;
    }
    return wrong;
}

static int show(int timeout_ms)
{
    double start = now_ms();
    struct hvd_boot *boot = create(0, timeout_ms);
    const struct hvd_layout *layout = &boot->layout;
    int rank = boot->rank;
    unsigned secret = 0;

    for (int i = 0; i < HVD_SECRET_BYTES; i++) {
        secret = secret * 31 + boot->secret[i];
    }
    printf(
        "rank %d/%d local %d/%d node %d/%d cross %d/%d wrong %d secret %08x ms %.1f on",
        rank, boot->size, layout->local_rank[rank],
        hvd_layout_local_size(layout, layout->node[rank]), layout->node[rank],
        layout->nodes, hvd_layout_cross_rank(layout, rank),
        hvd_layout_cross_size(layout, rank), count_wrong(boot, 0), secret,
        now_ms() - start);
    for (int i = 0; i < boot->size; i++) {
        printf(" %s", boot->peers[i].host);
    }
    printf("\n");
    hvd_boot_destroy(boot);
    return EXIT_SUCCESS;
}

/* --- cycles ------------------------------------------------------------------------- */

static int count_entries(const char *path)
{
    DIR *directory = opendir(path);
    int count = 0;

    while (directory != NULL && readdir(directory) != NULL) {
        count++;
    }
    if (directory != NULL) {
        closedir(directory);
    }
    return count;
}

static long memory_kb(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long pages = 0;

    if (file != NULL) {
        (void)!fscanf(file, "%*d %ld", &pages);
        fclose(file);
    }
    return pages * sysconf(_SC_PAGESIZE) / 1024;
}

/* Waits until boot has returned on every rank, because only then may it be called again.
 * A job of hvd does this through its connections; here it is a counter in a shared file.
 */
static void wait_for_all(_Atomic int *arrived, int size, int cycle)
{
    const struct timespec pause = {.tv_nsec = 200000};

    atomic_fetch_add(arrived, 1);
    while (atomic_load(arrived) < size * (cycle + 1)) {
        nanosleep(&pause, NULL);
    }
}

static _Atomic int *open_counter(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *memory;

    if (fd < 0 || ftruncate(fd, sizeof(int)) != 0) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    memory = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return memory;
}

static int cycles(int count, const char *path, int timeout_ms)
{
    _Atomic int *arrived = open_counter(path);
    int descriptors = 0;
    int threads = 0;
    long memory = 0;
    int wrong = 0;
    double start = now_ms();

    for (int cycle = 0; cycle < count; cycle++) {
        struct hvd_boot *boot = create(cycle, timeout_ms);
        int size = boot->size;

        wrong += count_wrong(boot, cycle);
        hvd_boot_destroy(boot);
        if (cycle == WARM_UP_CYCLES) {
            descriptors = count_entries("/proc/self/fd");
            threads = count_entries("/proc/self/task");
            memory = memory_kb();
        }
        wait_for_all(arrived, size, cycle);
    }
    printf("cycles %d wrong %d descriptors %+d threads %+d memory %+ld kB ms %.1f\n",
           count, wrong, count_entries("/proc/self/fd") - descriptors,
           count_entries("/proc/self/task") - threads, memory_kb() - memory,
           (now_ms() - start) / count);
    return EXIT_SUCCESS;
}

/* --- regroup ------------------------------------------------------------------------ */

/* Boots in cycles of four: three times in several jobs, each with some of the ranks, then
 * in one job of all. A rank does not wait for ranks of other jobs. */
static int regroup(int count, const char *path)
{
    static const char *const lists[3][4] = {
        {"0,1", "0,1", "2,3", "2,3"},
        {"2,0", "1,3", "2,0", "1,3"},
        {"0", "2,1", "2,1", "3"},
    };
    _Atomic int *arrived = open_counter(path);
    int me = launched_rank();
    double start = now_ms();
    int wrong = 0;

    for (int cycle = 0; cycle < count; cycle++) {
        struct hvd_boot *boot;

        ranks = NULL;
        if (cycle % 4 < 3) {
            set_ranks(lists[cycle % 4][me]);
        }
        boot = create(cycle, 20000);
        wrong += count_wrong(boot, cycle);
        wrong += boot->size != (ranks == NULL ? 4 : rank_count);
        hvd_boot_destroy(boot);
        if (cycle % 4 == 3) {
            wait_for_all(arrived, 4, cycle / 4);
        }
    }
    printf("regrouped %d wrong %d ms %.1f\n", count, wrong, (now_ms() - start) / count);
    return EXIT_SUCCESS;
}

/* --- untouched ---------------------------------------------------------------------- */

struct footprint {
    void (*handlers[NSIG])(int);
    sigset_t mask;
    int threads;
    int descriptors;
    unsigned long environment;
};

static void take_footprint(struct footprint *footprint)
{
    memset(footprint, 0, sizeof(*footprint));
    for (int number = 1; number < NSIG; number++) {
        struct sigaction action = {.sa_handler = SIG_DFL};

        (void)sigaction(number, NULL, &action);
        footprint->handlers[number] = action.sa_handler;
    }
    sigprocmask(SIG_SETMASK, NULL, &footprint->mask);
    footprint->threads = count_entries("/proc/self/task");
    footprint->descriptors = count_entries("/proc/self/fd");
    for (char **item = environ; *item != NULL; item++) {
        for (const char *c = *item; *c != '\0'; c++) {
            footprint->environment = footprint->environment * 31 + (unsigned char)*c;
        }
    }
}

static const char *compare(const void *before, const void *after, size_t bytes)
{
    return memcmp(before, after, bytes) == 0 ? "same" : "changed";
}

static int untouched(void)
{
    static struct footprint before;
    static struct footprint after;

    take_footprint(&before);
    hvd_boot_destroy(create(0, 20000));
    take_footprint(&after);
    printf("signals %s mask %s threads %s descriptors %s environment %s children %s\n",
           compare(before.handlers, after.handlers, sizeof(before.handlers)),
           compare(&before.mask, &after.mask, sizeof(before.mask)),
           compare(&before.threads, &after.threads, sizeof(before.threads)),
           compare(&before.descriptors, &after.descriptors, sizeof(before.descriptors)),
           compare(&before.environment, &after.environment, sizeof(before.environment)),
           waitpid(-1, NULL, WNOHANG) < 0 ? "none" : "left");
    return EXIT_SUCCESS;
}

/* --- reaping ------------------------------------------------------------------------ */

static void reap_all(int number)
{
    int error = errno;

    (void)number;
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
    errno = error;
}

static int reaping(void)
{
    const struct sigaction action = {.sa_handler = reap_all};

    sigaction(SIGCHLD, &action, NULL);
    return show(20000);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";

    if (strcmp(mode, "show") == 0) {
        return show(argc > 2 ? (int)(atof(argv[2]) * 1000) : 20000);
    }
    if (strcmp(mode, "among") == 0 && argc > 2) {
        set_ranks(argv[2]);
        return show(argc > 3 ? (int)(atof(argv[3]) * 1000) : 20000);
    }
    if (strcmp(mode, "regroup") == 0 && argc > 3) {
        return regroup(atoi(argv[2]), argv[3]);
    }
    if (strcmp(mode, "cycles") == 0 && argc > 3) {
        return cycles(atoi(argv[2]), argv[3],
                      argc > 4 ? (int)(atof(argv[4]) * 1000) : 20000);
    }
    if (strcmp(mode, "untouched") == 0) {
        return untouched();
    }
    if (strcmp(mode, "reaping") == 0) {
        return reaping();
    }
    fprintf(stderr, "boot_client: no mode %s\n", mode);
    return EXIT_FAILURE;
}
