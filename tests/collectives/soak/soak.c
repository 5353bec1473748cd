/* SPDX-License-Identifier: Apache-2.0 */
/* A job that runs for a long time: soak LIVES, started as each rank of a job by
 * soak_test.sh. A life is one cycle of init and shutdown. Rank 0 prints TAP.
 * HVD_TEST_SEED repeats all random choices, but not the timing of the ranks. */
#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/collectives/calls.h"
#include "tests/collectives/soak/soak.h"
#include "tests/tap.h"

enum {
    SILENCE_S = 120, /* seconds; longer than any phase of a life takes */
    WARM_CYCLES = 3, /* number of lives before resources are compared */
};

/* The resources that a process uses between two lives. */
struct figures {
    long descriptors;
    long threads;
    long heap; /* bytes */
    long resident; /* bytes */
};

#ifdef __SANITIZE_ADDRESS__
static const bool is_sanitized = true;
#else
static const bool is_sanitized = false;
#endif

static char note[160]; /* current phase of the main thread, which the watchdog prints */
static unsigned seed;
static long cycle;
static int own_rank; /* rank of this process, which the watchdog prints */

void soak_fail(const struct soak *soak, const char *format, ...)
{
    char text[800];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fprintf(stderr, "# rank %d, seed %u, cycle %ld, %s: %s\n", soak->rank, seed, cycle,
            note, text);
    _exit(1);
}

void soak_note(const struct soak *soak, const char *what)
{
    if (soak->prefix[0] == '\0') {
        snprintf(note, sizeof(note), "after %ld calls: %s", soak->calls, what);
        alarm(SILENCE_S);
    }
}

static void on_alarm(int number)
{
    char text[300];
    int n = snprintf(text, sizeof(text),
                     "# rank %d makes no progress: seed %u, cycle %ld, %s\n", own_rank,
                     seed, cycle, note);

    (void)number;
    n = (int)write(STDERR_FILENO, text, (size_t)n);
    _exit(n > 0 ? 1 : 2);
}

static int64_t reduce(struct soak *soak, int64_t value, enum hvd_op op)
{
    struct hvd_tensor tensor =
        call_tensor("soak.number", HVD_INT64, NULL, 0, &value, &value);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    if (hvd_allreduce_start(&tensor, 1, op, 1, 1, 0, &request, &err) != 0 ||
        soak_end(soak, request, &err) != 0) {
        soak_fail(soak, "cannot compare a number: %s", err.text);
    }
    hvd_request_free(request);
    return value;
}

void soak_agree(struct soak *soak, int number)
{
    if (reduce(soak, number, HVD_MAX) != number ||
        reduce(soak, number, HVD_MIN) != number) {
        soak_fail(soak, "ranks have different numbers, this one %d", number);
    }
}

/* --- leaks --- */

static long count_entries(const char *path)
{
    DIR *dir = opendir(path);
    long count = 0;

    while (dir != NULL && readdir(dir) != NULL) {
        count++;
    }
    closedir(dir);
    return count;
}

static struct figures look(void)
{
    struct mallinfo2 heap = (malloc_trim(0), mallinfo2());
    struct figures now = {.descriptors = count_entries("/proc/self/fd"),
                          .threads = count_entries("/proc/self/task"),
                          .heap = (long)(heap.uordblks + heap.hblkhd)};
    FILE *file = fopen("/proc/self/statm", "re");
    long ignored;

    if (file != NULL && fscanf(file, "%ld %ld", &ignored, &now.resident) == 2) {
        now.resident *= sysconf(_SC_PAGESIZE);
    }
    fclose(file);
    return now;
}

/* Returns the largest increase of a number on any rank. All ranks call it together. */
static long most_more(struct soak *soak, long now, long before)
{
    return (long)reduce(soak, now - before, HVD_MAX);
}

/* Reports on rank 0 which resources have grown on any rank. All ranks call it
 * together. */
static void compare(struct soak *soak, const struct figures *before,
                    const struct figures *now)
{
    const struct {
        const char *word;
        long more;
        long limit;
        bool is_memory;
    } rows[] = {
        {"descriptors", most_more(soak, now->descriptors, before->descriptors), 0, false},
        {"threads", most_more(soak, now->threads, before->threads), 0, false},
        {"bytes of heap", most_more(soak, now->heap, before->heap), 4096, true},
        {"bytes of memory", most_more(soak, now->resident, before->resident), 2 << 20,
         true},
    };

    for (size_t i = 0; soak->rank == 0 && i < sizeof(rows) / sizeof(rows[0]); i++) {
        char promise[80];

        snprintf(promise, sizeof(promise), "no rank uses more %s after %ld lives",
                 rows[i].word, cycle);
        if (is_sanitized && rows[i].is_memory) {
            tap_skip(promise, "sanitizers keep freed memory");
        } else {
            tap_ok(rows[i].more <= rows[i].limit, "%s (%ld)", promise, rows[i].more);
        }
    }
}

/* --- lives --- */

/* Makes calls in a second thread, beside those of the main thread. */
static void *work_beside(void *argument)
{
    struct soak *soak = argument;
    int count = 1 + (int)soak_pick(&soak->shared, 3);

    for (int i = 0; i < count; i++) {
        soak_steady(soak);
    }
    return NULL;
}

/* Runs one random phase of a life. is_alone: no second thread makes calls, so this rank
 * may join. */
static void play(struct soak *soak, bool is_alone)
{
    switch (soak_pick(&soak->shared, 9)) {
    case 0:
    case 1:
    case 2:
        soak_round(soak);
        break;
    case 3:
    case 4:
        soak_steady(soak);
        break;
    case 5:
        is_alone ? soak_uneven(soak) : soak_round(soak);
        break;
    case 6:
    case 7:
        soak_add_set(soak);
        break;
    default:
        soak_remove_set(soak);
        break;
    }
}

/* Runs one life, between hvd_init and hvd_shutdown. */
static void live(struct soak *soak)
{
    struct soak helper;
    int phases = 1 + (int)soak_pick(&soak->shared, 12);
    bool has_helper = soak_chance(&soak->shared, 3);
    pthread_t thread;

    soak_sets_begin(soak);
    helper = *soak;
    helper.prefix = "beside.";
    helper.calls = 0;
    helper.faults = 0;
    helper.shared = soak_seeded(seed, 1000000u + (unsigned)cycle);
    helper.own = soak_seeded(soak_pick(&soak->own, UINT32_MAX), 1);
    if (has_helper && pthread_create(&thread, NULL, work_beside, &helper) != 0) {
        soak_fail(soak, "cannot create a thread");
    }
    for (int i = 0; i < phases; i++) {
        play(soak, !has_helper);
    }
    if (has_helper) {
        pthread_join(thread, NULL);
        soak->calls += helper.calls;
        soak->faults += helper.faults;
    }
    soak_agree(soak, (int)cycle); /* no rank leaves while others are at work */
}

static void init(struct soak *soak)
{
    struct hvd_error err = {0};

    soak_note(soak, "init");
    if (hvd_init(&err) != 0) {
        soak_fail(soak, "init failed: %s", err.text);
    }
    soak->rank = hvd_rank();
    soak->size = hvd_size();
    own_rank = soak->rank;
}

static void share_seed(struct soak *soak)
{
    seed = soak->rank == 0 ? tap_seed((unsigned)time(NULL)) : 0;
    seed = (unsigned)reduce(soak, seed, HVD_MAX);
    soak->own = soak_seeded(seed, 500u + (unsigned)soak->rank);
}

/* Runs all lives. Returns the resources in use after the first WARM_CYCLES lives. */
static struct figures live_often(struct soak *soak, long lives)
{
    struct figures before = {0};

    for (; cycle < lives; cycle++) {
        init(soak);
        if (cycle == 0) {
            share_seed(soak);
        }
        soak->shared = soak_seeded(seed, (uint64_t)cycle);
        live(soak);
        soak_leave(soak);
        if (cycle < WARM_CYCLES) {
            before = look();
        }
    }
    return before;
}

int main(int argc, char **argv)
{
    long lives = argc > 1 ? atol(argv[1]) : 10;
    struct soak soak = {.prefix = ""};
    struct figures before, now;

    signal(SIGALRM, on_alarm);
    before = live_often(&soak, lives);
    now = look();
    init(&soak);
    if (soak.rank == 0) {
        tap_ok(true,
               "%ld calls in %ld lives, %ld of them wrong on purpose, end as expected",
               soak.calls, cycle, soak.faults);
    }
    compare(&soak, &before, &now);
    hvd_shutdown();
    return soak.rank == 0 ? tap_done() : 0;
}
