/* SPDX-License-Identifier: Apache-2.0 */
/* hvd-bench-child LIBRARY [PATH]: one rank of a library that hvd-bench compares hvd with. Started
 * by hvd-bench, which speaks to it as child.h says. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "contrib/bench/hvd_bench/library_child/hub.h"
#include "contrib/bench/hvd_bench/options.h"
#include "gpu_binding/base/error.h"

enum {
    LINE_ROOM = 8192,
    LEAVE_SECONDS = 5
};

struct child {
    const struct bench_library *library;
    const char *path;
    struct bench_seat seat;
    struct bench_work work;
    int fd; /* where all meet, or -1 */
};

static int load(struct child *child, struct hvd_error *err)
{
    return child->library->load(child->path, err);
}

static int serve(struct child *child, const char *layout, int *port,
                 struct hvd_error *err)
{
    char greeting[BENCH_GREETING] = {0};
    struct bench_seat seat = {.size = 1, .local_size = atoi(layout)};
    int status =
        child->library->greet != NULL ? child->library->greet(&seat, greeting, err) : 0;

    return status < 0 ? status : bench_hub_start(layout, greeting, port, err);
}

static void set_number(const char *name, int number)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", number);
    setenv(name, text, 1);
}

static int join(struct child *child, const char *words, struct hvd_error *err)
{
    struct bench_seat *seat = &child->seat;
    char host[64], greeting[BENCH_GREETING];
    int port, status;

    if (sscanf(words, "%63s %d %d %d %d %d", host, &port, &seat->rank, &seat->size,
               &seat->local_rank, &seat->local_size) != 6) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED, "no meeting: %.80s", words);
    }
    status = bench_hub_join(host, port, greeting, &child->fd, err);
    if (status < 0) {
        return status;
    }
    set_number("PMI_FD", child->fd);
    set_number("PMI_RANK", seat->rank);
    set_number("PMI_SIZE", seat->size);
    return child->library->join(seat, greeting, err);
}

/* The counts of the tensors, as hvd-bench has made them. */
static int read_counts(struct bench_work *work, const char *words)
{
    char *end;

    for (work->tensors = 0; work->tensors < BENCH_MOST_TENSORS; work->tensors++) {
        work->counts[work->tensors] = strtoll(words, &end, 10);
        if (end == words) {
            return 0;
        }
        words = end;
    }
    return HVD_ERR_ARG;
}

static int make_work(struct child *child, const char *words, struct hvd_error *err)
{
    struct bench_work *work = &child->work;
    char collective[32], dtype[32], op[32];
    int in_place, used = 0, kind, type, operation, status;

    if (sscanf(words, "%31s %31s %31s %d%n", collective, dtype, op, &in_place, &used) !=
        4) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED, "no work: %.80s", words);
    }
    kind = bench_collective_find(collective);
    type = bench_dtype_find(dtype);
    operation = bench_op_find(op);
    bench_work_finish(work);
    *work = (struct bench_work){.collective = (enum bench_collective)kind,
                                .dtype = (enum hvd_dtype)type,
                                .op = (enum hvd_op)operation,
                                .is_in_place = in_place != 0,
                                .has_counts = true,
                                .rank = child->seat.rank,
                                .size = child->seat.size};
    if (kind < 0 || type < 0 || operation < 0 || read_counts(work, words + used) < 0) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED, "no such work: %.80s", words);
    }
    status = bench_work_init(work, err);
    return status < 0 ? status : child->library->prepare(work, err);
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int run(struct child *child, int calls, double *seconds, struct hvd_error *err)
{
    double start = now();

    for (int call = 0; call < calls; call++) {
        int result = child->library->run(&child->work);

        if (result != 0) {
            return hvd_fail(err, HVD_ERR_UNSUPPORTED, "its call failed with %d", result);
        }
    }
    *seconds = now() - start;
    return 0;
}

/* These libraries leave the output of a broadcast's root alone: it is its input. */
static int check(struct child *child, struct hvd_error *err)
{
    struct bench_work *work = &child->work;
    bool is_root = work->collective == BENCH_BROADCAST && work->rank == 0;
    double seconds;
    int status;

    bench_work_fill(work);
    status = run(child, 1, &seconds, err);
    return status < 0 ? status
                      : bench_work_check(work, is_root ? work->input : work->output,
                                         child->library->name, err);
}

/* What follows a word of the question, or NULL when it begins with another. */
static const char *after(const char *question, const char *word)
{
    size_t length = strlen(word);

    if (strncmp(question, word, length) != 0) {
        return NULL;
    }
    question += length;
    return question[0] == ' ' ? question + 1 : question[0] == '\0' ? question : NULL;
}

static int act(struct child *child, const char *question, char *answer, size_t room,
               struct hvd_error *err)
{
    const char *words;
    int status = 0, port = 0;
    double seconds = 0;

    snprintf(answer, room, "ok");
    if (after(question, "load") != NULL) {
        return load(child, err);
    }
    if ((words = after(question, "serve")) != NULL) {
        status = serve(child, words, &port, err);
        snprintf(answer, room, "at %d", port);
    } else if ((words = after(question, "join")) != NULL) {
        status = join(child, words, err);
    } else if ((words = after(question, "work")) != NULL) {
        status = make_work(child, words, err);
    } else if ((words = after(question, "run")) != NULL) {
        status = run(child, atoi(words), &seconds, err);
        snprintf(answer, room, "%.9f", seconds);
    } else if (after(question, "check") != NULL) {
        status = check(child, err);
    }
    return status;
}

static const struct bench_library *find_library(const char *name)
{
    static const struct bench_library *const all[] = {&bench_library_mpich,
                                                      &bench_library_oneccl};

    for (size_t i = 0; name != NULL && i < sizeof(all) / sizeof(all[0]); i++) {
        if (strcmp(all[i]->name, name) == 0) {
            return all[i];
        }
    }
    return NULL;
}

static void talk(struct child *child, FILE *answers)
{
    static char question[LINE_ROOM];

    while (fgets(question, sizeof(question), stdin) != NULL) {
        struct hvd_error err = {0};
        char answer[64];
        int status;

        question[strcspn(question, "\n")] = '\0';
        status = act(child, question, answer, sizeof(answer), &err);
        if (status < 0) {
            fprintf(answers, "%s %s\n", status == HVD_ERR_MISMATCH ? "wrong" : "no",
                    err.text);
        } else {
            fprintf(answers, "%s\n", answer);
        }
        fflush(answers);
    }
}

/* What a library prints goes to the standard error. One that is in a call does not see its parent
 * die, so the kernel has to tell. */
int main(int argc, char **argv)
{
    static struct child child = {.fd = -1};
    FILE *answers = fdopen(dup(STDOUT_FILENO), "w");

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    child.library = find_library(argv[argc > 1 ? 1 : 0]);
    child.path = argc > 2 ? argv[2] : NULL;
    if (answers == NULL || child.library == NULL ||
        dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        fprintf(stderr,
                "hvd-bench-child: started by hvd-bench, for --vs mpich or oneccl\n");
        return 2;
    }
    talk(&child, answers);
    alarm(LEAVE_SECONDS); /* not for ever, when another has died */
    child.library->leave();
    bench_hub_leave(child.fd);
    _exit(0);
}
