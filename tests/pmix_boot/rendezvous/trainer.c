/* SPDX-License-Identifier: Apache-2.0 */
/* An elastic job in C: trainer STEPS [DEATH...]. Each step averages over the ranks and
 * adds one; a rank that loses a peer goes back to the last step that all have finished.
 * At the end each rank prints
 *
 *   slot S: rank R of N, steps STEPS, value V, begun G times
 *
 * where V is STEPS whatever died. A DEATH is SLOT:WHEN:STEP:MICROSECONDS[:stop]: that
 * slot is killed with signal 9, or stopped. WHEN:
 *   init        this long after hvd_init was called for the STEP-th time
 *   collective  this long after the allreduce of that step was started
 *   idle        before that step, while the others do something else
 *   late        the slot begins this much later, and does not die; STEP is 0
 * Variables:
 *   HVD_TRAINER_PAUSE_MS  makes each step longer
 *   HVD_TRAINER_HOLD=N    step 5 waits until there are N ranks
 *   HVD_TRAINER_GO=FILE   step 5 is repeated until the file exists
 *   HVD_TRAINER_FORK      each rank has a child that lives as long as the job
 * Ranks that wait print "slot S: waits at step 5". */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectives/hvd.h"

enum {
    VALUES = 50000,
    HOLD_STEP = 5
};

struct trainer {
    int slot;
    char **deaths;
    int death_count;
    int steps;
    int pause_ms;
    int begun; /* times that hvd_init was called */
    bool is_doomed; /* is going to die */
    bool has_waited; /* has printed that it waits, since hvd_init */
    double step; /* steps done; a double, because it is broadcast */
    double *values;
    double *kept; /* values after `step` steps; restored if a step fails */
};

struct death {
    unsigned microseconds;
    int signal;
};

static void *die_later(void *arg)
{
    struct death *death = arg;

    usleep(death->microseconds);
    kill(getpid(), death->signal);
    free(death);
    return NULL;
}

static void die(struct trainer *trainer, const struct death *death)
{
    struct death *own = malloc(sizeof(*own));
    pthread_t thread;

    if (death->microseconds == 0 || own == NULL) {
        /* a thread could be late on a busy machine, after the end of this step */
        kill(getpid(), death->signal);
    }
    trainer->is_doomed = true;
    if (own != NULL) {
        *own = *death;
        pthread_create(&thread, NULL, die_later, own);
        pthread_detach(thread);
    }
}

/* Dies, or begins late, if a DEATH says so for this slot and moment. */
static void maybe_die(struct trainer *trainer, const char *when, int step)
{
    for (int i = 0; i < trainer->death_count; i++) {
        struct death death = {0};
        char moment[16];
        char how[8] = "kill";
        int slot, at;

        if (sscanf(trainer->deaths[i], "%d:%15[a-z]:%d:%u:%7s", &slot, moment, &at,
                   &death.microseconds, how) < 4 ||
            slot != trainer->slot || at != step || strcmp(moment, when) != 0) {
            continue;
        }
        if (strcmp(when, "late") == 0) {
            usleep(death.microseconds);
            continue;
        }
        death.signal = strcmp(how, "stop") == 0 ? SIGSTOP : SIGKILL;
        die(trainer, &death);
    }
}

static int finish(struct hvd_request *request, int status, struct hvd_error *err)
{
    if (status == 0) {
        status = hvd_wait(request, err);
        hvd_request_free(request);
    }
    return status;
}

static struct hvd_tensor tensor(const char *name, double *values, const int64_t *count)
{
    return (struct hvd_tensor){.name = name,
                               .input = values,
                               .output = values,
                               .shape = count,
                               .ndim = 1,
                               .dtype = HVD_FLOAT64,
                               .device = HVD_DEVICE_CPU};
}

/* Takes over rank 0's state on all ranks. */
static int sync_state(struct trainer *trainer, struct hvd_error *err)
{
    const int64_t one = 1;
    const int64_t all = VALUES;
    struct hvd_tensor tensors[] = {tensor("step", &trainer->step, &one),
                                   tensor("values", trainer->values, &all)};
    int status = 0;

    for (int i = 0; i < 2 && status == 0; i++) {
        struct hvd_request *request = NULL;

        status = hvd_broadcast_start(&tensors[i], 0, HVD_SET_GLOBAL, &request, err);
        status = finish(request, status, err);
    }
    if (status == 0) {
        memcpy(trainer->kept, trainer->values, VALUES * sizeof(double));
        status = hvd_elastic_ready();
    }
    return status;
}

static void say_wait(struct trainer *trainer)
{
    if (!trainer->has_waited) {
        printf("slot %d: waits at step %d\n", trainer->slot, HOLD_STEP);
        fflush(stdout);
        trainer->has_waited = true;
    }
}

static bool may_not_go(const struct trainer *trainer)
{
    const char *file = getenv("HVD_TRAINER_GO");

    return file != NULL && (int)trainer->step == HOLD_STEP && access(file, F_OK) != 0;
}

/* Trains one step, or takes it back if a rank must wait for HVD_TRAINER_GO. *wants_in: a
 * rank knows of others that wait to join. */
static int train_step(struct trainer *trainer, bool *wants_in, struct hvd_error *err)
{
    const int64_t two = 2;
    const int64_t all = VALUES;
    double votes[] = {hvd_elastic_updates() > 0, may_not_go(trainer)};
    struct hvd_tensor tensors[] = {tensor("x", trainer->values, &all),
                                   tensor("votes", votes, &two)};
    int status = 0;

    maybe_die(trainer, "collective", (int)trainer->step);
    for (int i = 0; i < 2 && status == 0; i++) {
        struct hvd_request *request = NULL;

        status = hvd_allreduce_start(&tensors[i], 1, i == 0 ? HVD_AVERAGE : HVD_MAX, 1, 1,
                                     HVD_SET_GLOBAL, &request, err);
        status = finish(request, status, err);
    }
    if (status != 0 || votes[1] > 0) {
        memcpy(trainer->values, trainer->kept, VALUES * sizeof(double));
        *wants_in = status == 0 && votes[0] > 0;
        return status;
    }
    for (int i = 0; i < VALUES; i++) {
        trainer->values[i] += 1;
    }
    memcpy(trainer->kept, trainer->values, VALUES * sizeof(double));
    trainer->step += 1;
    *wants_in = votes[0] > 0;
    return 0;
}

/* Trains until the end, a failure, or until other ranks wait to join (HVD_INPROGRESS).
 * Returns 0 at the end. */
static int train(struct trainer *trainer, struct hvd_error *err)
{
    const char *hold = getenv("HVD_TRAINER_HOLD");
    int status = sync_state(trainer, err);
    bool wants_in = false;

    while (status == 0 && !wants_in && (int)trainer->step < trainer->steps) {
        if (hold != NULL && (int)trainer->step == HOLD_STEP && hvd_size() < atoi(hold) &&
            hvd_elastic_updates() <= 0) {
            say_wait(trainer);
            usleep(20000);
            continue;
        }
        maybe_die(trainer, "idle", (int)trainer->step);
        while (trainer->is_doomed && (int)trainer->step == trainer->steps - 1) {
            pause(); /* a death after the last step would fail the job */
        }
        usleep((useconds_t)trainer->pause_ms * 1000);
        status = train_step(trainer, &wants_in, err);
        if (status == 0 && may_not_go(trainer)) {
            say_wait(trainer);
        }
    }
    return status != 0 || !wants_in ? status : HVD_INPROGRESS;
}

/* Forks a child, as a data loader would. The child keeps the descriptors of its parent,
 * which must not affect the ranks. */
static void fork_child(const struct trainer *trainer)
{
    if (getenv("HVD_TRAINER_FORK") != NULL && trainer->begun == 1 && fork() == 0) {
        fclose(stdout);
        fclose(stderr);
        sleep(1000);
        _exit(0);
    }
}

int main(int argc, char **argv)
{
    const char *slot = getenv("HOROVOD_RANK");
    const char *pause = getenv("HVD_TRAINER_PAUSE_MS");
    struct hvd_error err = {0};
    struct trainer trainer = {
        .slot = slot != NULL ? atoi(slot) : 0,
        .deaths = argv + 2,
        .death_count = argc - 2,
        .steps = argc > 1 ? atoi(argv[1]) : 20,
        .pause_ms = pause != NULL ? atoi(pause) : 1,
        .values = calloc(VALUES, sizeof(double)),
        .kept = calloc(VALUES, sizeof(double)),
    };
    int status = HVD_INPROGRESS;

    maybe_die(&trainer, "late", 0);
    while (status != 0) {
        maybe_die(&trainer, "init", ++trainer.begun);
        trainer.has_waited = false;
        if (hvd_init(&err) != 0) {
            fprintf(stderr, "slot %d: init: %s\n", trainer.slot, err.text);
            return err.status == HVD_ERR_DISMISSED ? 0 : 1;
        }
        fork_child(&trainer);
        status = train(&trainer, &err);
        if (status < 0) {
            fprintf(stderr, "slot %d: step %d: %s\n", trainer.slot, (int)trainer.step,
                    err.text);
        }
        if (status == 0) {
            printf("slot %d: rank %d of %d, steps %d, value %g, begun %d times\n",
                   trainer.slot, hvd_rank(), hvd_size(), (int)trainer.step,
                   trainer.values[VALUES - 1], trainer.begun);
        }
        hvd_shutdown();
    }
    free(trainer.values);
    free(trainer.kept);
    return 0;
}
