/* SPDX-License-Identifier: Apache-2.0 */
/* Several tracks of hvd_gpu.so by itself, on the stand-in: gpu_tracks_test MODULE. */
#include <semaphore.h>
#include <string.h>
#include <time.h>

#include "tests/collectives/gpu/module/module_pass.h"
#include "tests/fake_gpu/fake_cuda.h"
#include "tests/tap.h"

enum {
    TRACKS = 3,
    MOST_CALLS = 200,
};

struct tracks {
    struct pass pass;
    struct hvd_gpu_comm *comms[TRACKS];
    struct hvd_gpu_event *held; /* behind what holds the default stream */
    struct hvd_gpu_event *done[TRACKS];
};

static sem_t gate;

static void wait_for_gate(void *argument)
{
    (void)argument;
    sem_wait(&gate);
}

static int open_tracks(struct tracks *tracks)
{
    struct pass *pass = &tracks->pass;
    struct hvd_gpu_card card;
    int status = pass_open_device(pass, 0, TRACKS);

    for (int i = 0; i < TRACKS && status == 0; i++) {
        status = pass_module->identify(pass->device, true, &card, &pass->err);
        status = status != 0 ? status
                             : pass_module->comm_create(pass->device, card.id, 0, 1,
                                                        &tracks->comms[i], &pass->err);
        status = status != 0 ? status
                             : pass_module->event_create(pass->device, &tracks->done[i],
                                                         &pass->err);
    }
    status = status != 0
                 ? status
                 : pass_module->event_create(pass->device, &tracks->held, &pass->err);
    return status != 0
               ? status
               : pass_module->alloc(pass->device, HVD_GPU_DEVICE_MEMORY,
                                    TRACKS * PASS_BYTES, &pass->memory, &pass->err);
}

static void close_tracks(struct tracks *tracks)
{
    for (int i = 0; i < TRACKS; i++) {
        pass_module->event_destroy(tracks->done[i]);
    }
    pass_module->event_destroy(tracks->held);
    pass_close(&tracks->pass);
}

/* Submits steps on a track, and waits until they are there. */
static int put(struct tracks *tracks, int track, struct hvd_gpu_step *steps, int count)
{
    struct hvd_gpu_work work = {.queue = hvd_gpu_track_queue(track),
                                .comm = tracks->comms[track],
                                .steps = steps,
                                .count = count,
                                .done = tracks->done[track]};

    pass_module->submit(tracks->pass.device, &work);
    while (atomic_load(&work.status) == HVD_INPROGRESS) {
        pass_pause_ms(1);
    }
    if (atomic_load(&work.status) != 0) {
        tracks->pass.err = work.error;
    }
    return atomic_load(&work.status);
}

static bool is_done(const struct tracks *tracks, int track)
{
    return pass_module->event_test(tracks->done[track], NULL) == 0;
}

static struct hvd_gpu_step sum_on(const struct tracks *tracks, int track)
{
    char *memory = (char *)tracks->pass.memory + (ptrdiff_t)track * PASS_BYTES;

    return (struct hvd_gpu_step){.kind = HVD_GPU_ALLREDUCE,
                                 .from = memory,
                                 .to = memory,
                                 .count = PASS_COUNT,
                                 .dtype = HVD_FLOAT32,
                                 .op = HVD_SUM,
                                 .factor = 1.0};
}

static int hold(struct tracks *tracks)
{
    fake_gpu_enqueue(NULL, wait_for_gate, NULL);
    return pass_module->event_record(tracks->held, NULL, &tracks->pass.err);
}

static int await_all(struct tracks *tracks)
{
    int status = 0;

    for (int i = 0; i < TRACKS && status == 0; i++) {
        status = pass_await(&tracks->pass, tracks->done[i]);
    }
    return status;
}

/* The first track's input is late, the others' is there. */
static void test_line_up(void)
{
    struct tracks tracks = {0};
    bool good = open_tracks(&tracks) == 0 && hold(&tracks) == 0;
    struct hvd_gpu_step first[] = {{.kind = HVD_GPU_FOLLOW, .event = tracks.held},
                                   {.kind = HVD_GPU_GROUP},
                                   sum_on(&tracks, 0),
                                   {.kind = HVD_GPU_GROUP_END}};
    struct hvd_gpu_step other = sum_on(&tracks, 1), zero = sum_on(&tracks, 2);

    zero.kind = HVD_GPU_ZERO;
    good = good && put(&tracks, 0, first, 4) == 0 && put(&tracks, 1, &other, 1) == 0 &&
           put(&tracks, 2, &zero, 1) == 0 &&
           pass_await(&tracks.pass, tracks.done[2]) == 0;
    tap_ok(good, "what is no collective waits for no other track");
    pass_pause_ms(50);
    tap_ok(good && !is_done(&tracks, 0) && !is_done(&tracks, 1),
           "a collective waits until those launched before it could begin");
    sem_post(&gate);
    tap_ok(good && await_all(&tracks) == 0, "and then all come to their end");
    close_tracks(&tracks);
    tap_ok(!pass_has_left(), "and nothing is left");
}

static void test_overlap(void)
{
    struct tracks tracks = {0};
    bool good = open_tracks(&tracks) == 0;
    struct hvd_gpu_step first = sum_on(&tracks, 0), second = sum_on(&tracks, 1);
    long before = fake_gpu_overlaps();

    fake_gpu_hold_collectives(60);
    good = good && put(&tracks, 0, &first, 1) == 0 && put(&tracks, 1, &second, 1) == 0 &&
           pass_await(&tracks.pass, tracks.done[0]) == 0 &&
           pass_await(&tracks.pass, tracks.done[1]) == 0;
    tap_ok(good && fake_gpu_overlaps() > before,
           "collectives of two tracks are under way at once");
    close_tracks(&tracks);
}

static void test_follow(void)
{
    struct tracks tracks = {0};
    bool good = open_tracks(&tracks) == 0 && hold(&tracks) == 0;
    struct hvd_gpu_step late = {.kind = HVD_GPU_FOLLOW, .event = tracks.held};
    struct hvd_gpu_step all = {.kind = HVD_GPU_FOLLOW_TRACKS};
    struct hvd_gpu_step zero = sum_on(&tracks, 1);

    zero.kind = HVD_GPU_ZERO;
    good = good && put(&tracks, 2, &late, 1) == 0 && put(&tracks, 0, &all, 1) == 0 &&
           put(&tracks, 1, &zero, 1) == 0 &&
           pass_await(&tracks.pass, tracks.done[1]) == 0;
    pass_pause_ms(50);
    tap_ok(good && !is_done(&tracks, 0), "what follows all tracks waits for each");
    sem_post(&gate);
    tap_ok(good && await_all(&tracks) == 0, "and for nothing else");
    close_tracks(&tracks);
}

/* The k-th call fails, for each k. */
static void test_faults(void)
{
    const char *failed;
    bool named = true, kept = true;
    long k = 0;

    do {
        struct tracks tracks = {0};
        int status = 0;

        fake_gpu_fail_at(++k);
        status = open_tracks(&tracks);
        for (int i = 0; i < TRACKS && status == 0; i++) {
            struct hvd_gpu_step steps[] = {sum_on(&tracks, i),
                                           {.kind = HVD_GPU_FOLLOW_TRACKS}};

            status = put(&tracks, i, steps, 2);
        }
        failed = fake_gpu_failed();
        if (failed != NULL && !fake_gpu_failed_at_end() && !fake_gpu_failed_kernels() &&
            (status >= 0 || strstr(tracks.pass.err.text, failed) == NULL)) {
            tap_note("call %ld, %s: %d %s", k, failed, status, tracks.pass.err.text);
            named = false;
        }
        fake_gpu_fail_at(0);
        close_tracks(&tracks);
        kept = kept && !pass_has_left();
    } while (failed != NULL && k < MOST_CALLS);
    tap_note("%ld calls", k);
    tap_ok(named && k > 20 && k < MOST_CALLS, "each call that fails is named");
    tap_ok(kept, "and nothing is left");
}

int main(int argc, char **argv)
{
    char seed[16];

    snprintf(seed, sizeof(seed), "%u", tap_seed((unsigned)time(NULL)));
    setenv("FAKE_GPU_SEED", seed, 1);
    sem_init(&gate, 0, 0);
    if (tap_ok(argc == 2 && pass_load(argv[1]), "the module can be loaded")) {
        test_line_up();
        test_overlap();
        test_follow();
        test_faults();
    }
    return tap_done();
}
