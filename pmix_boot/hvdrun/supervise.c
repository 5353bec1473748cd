/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a job:
 *
 *   running --a rank fails-----------> listening (the others may report and end)
 *      |  |                                  |  time is up
 *      |  +--a signal comes--------------> ending (ranks got SIGTERM)
 *      |                                     |  time is up
 *      | all ranks have ended                v
 *      +------> over <--all have ended---- killing (ranks got SIGKILL)
 *
 * In an elastic job, a failed rank ends the others only if too few are left (elastic.h).
 *
 * A rank that has ended stays a zombie until the job is over. Its pid is also the number
 * of its process group, and must not be used again before. */
#include "pmix_boot/hvdrun/supervise.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/error.h"
#include "gpu_binding/base/log.h"
#include "pmix_boot/cause.h"
#include "pmix_boot/hvdrun/elastic.h"
#include "pmix_boot/hvdrun/failure.h"
#include "pmix_boot/hvdrun/memory_kills.h"
#include "pmix_boot/rendezvous/start.h"

/* Time for ranks that got SIGTERM to report and to clean up, also on a busy machine. Most
 * end at once. */
#define GRACE_MS 5000
/* LISTEN_MS: after a failure, the other ranks go on for this time, to notice it and to
 * print why they end. Each rank that ends or prints starts the time anew, up to
 * LISTEN_MOST_MS in all.
 *
 * CULPRIT_MS: the limit instead of LISTEN_MOST_MS while the rank that is recorded as the
 * first to fail has not ended, because its exit code is that of the job.
 *
 * SAME_MOMENT_MS: a killed rank that is noticed up to this much later explains a rank
 * that exited with an error.
 *
 * KILL_GRACE_MS: time for the kernel to end a killed process. */
#define LISTEN_MS 500
#define LISTEN_MOST_MS 2000
#define CULPRIT_MS 5000
#define SAME_MOMENT_MS 100
#define KILL_GRACE_MS 10000

#define READ_BYTES 65536

/* Entries for signals and the service, before those of the ranks' streams. */
#define OWN_POLLS 2

enum phase {
    RUNNING,
    LISTENING,
    ENDING,
    KILLING,
    GIVEN_UP
};

struct state {
    struct hvdrun_watch *watch;
    enum phase phase;
    long long deadline_ms; /* when the phase ends; not used in RUNNING */
    long long failed_ms; /* when LISTENING began */
    struct hvdrun_failure first_failure;
    long memory_kills; /* counted when hvdrun began to watch the ranks */
    int copy_error; /* errno of a copy of output; logged once */
    int output_error; /* errno of hvdrun's own output; logged once */
};

static void signal_ranks(const struct state *state, int number)
{
    for (int rank = 0; rank < state->watch->count; rank++) {
        if (state->watch->ranks[rank].pid > 0) {
            kill(-state->watch->ranks[rank].pid, number);
        }
    }
}

static void start_killing(struct state *state)
{
    state->phase = KILLING;
    state->deadline_ms = hvd_clock_ms() + KILL_GRACE_MS;
    signal_ranks(state, SIGKILL);
}

static void start_listening(struct state *state)
{
    if (state->phase == RUNNING) {
        state->phase = LISTENING;
        state->failed_ms = hvd_clock_ms();
        state->deadline_ms = state->failed_ms + LISTEN_MS;
    }
}

/* Keeps listening after a rank has ended or printed something. */
static void listen_on(struct state *state)
{
    long long now_ms = hvd_clock_ms();

    if (state->phase == LISTENING && now_ms < state->failed_ms + LISTEN_MOST_MS) {
        state->deadline_ms = now_ms + LISTEN_MS;
    }
}

static void start_ending(struct state *state, int number)
{
    if (state->phase > LISTENING) {
        return;
    }
    state->phase = ENDING;
    state->deadline_ms = hvd_clock_ms() + GRACE_MS;
    signal_ranks(state, number);
    signal_ranks(state, SIGCONT); /* a stopped process could not end */
}

/* Finds the rank that failed first by what ranks recorded; NULL: nothing is recorded. */
static struct hvdrun_rank *find_culprit(const struct state *state,
                                        struct hvd_cause *cause)
{
    if (state->watch->cause == NULL || hvd_cause_read(state->watch->cause, cause) < 0 ||
        cause->rank < 0 || cause->rank >= state->watch->count) {
        return NULL;
    }
    return &state->watch->ranks[cause->rank];
}

/* Returns whether to wait for the end of the rank that is recorded as the first to
 * fail. */
static bool awaits_culprit(const struct state *state)
{
    struct hvd_cause cause;
    const struct hvdrun_rank *culprit = find_culprit(state, &cause);

    return culprit != NULL && !culprit->is_over &&
           hvd_clock_ms() < state->failed_ms + CULPRIT_MS;
}

static void check_deadline(struct state *state)
{
    if (state->phase == RUNNING || hvd_clock_ms() < state->deadline_ms) {
        return;
    }
    if (state->phase == LISTENING && awaits_culprit(state)) {
        state->deadline_ms = hvd_clock_ms() + LISTEN_MS;
    } else if (state->phase == LISTENING) {
        start_ending(state, SIGTERM);
    } else if (state->phase == ENDING) {
        start_killing(state);
    } else {
        state->phase = GIVEN_UP;
    }
}

static void close_stream(struct hvdrun_stream *stream)
{
    (void)hvdrun_lines_end(&stream->lines);
    close(stream->fd);
    stream->fd = -1;
}

/* Logs a failed copy: once for a full disk, not once for each file on it. */
static void on_copy_error(struct state *state, const struct hvdrun_stream *stream)
{
    if (state->copy_error != stream->lines.copy_error) {
        state->copy_error = stream->lines.copy_error;
        hvd_log(
            HVD_LOG_WARN,
            "cannot write %s (--output-filename): %s; the job goes on without the rest "
            "of this copy",
            stream->copy_path != NULL ? stream->copy_path : "a copy",
            strerror(state->copy_error));
    }
}

/* Handles a failed write to hvdrun's output. If the output was closed, hvdrun ends the
 * job as after a signal. For another reason, such as a full disk, only the output is
 * lost. */
static void on_output_error(struct state *state, int error)
{
    if (error != EPIPE) {
        if (state->output_error != error) {
            state->output_error = error;
            hvd_log(HVD_LOG_WARN,
                    "cannot write the output of ranks: %s; the job goes on without it",
                    strerror(error));
        }
        return;
    }
    if (state->first_failure.kind == HVDRUN_FAILURE_NONE) {
        state->first_failure =
            (struct hvdrun_failure){.kind = HVDRUN_FAILURE_SIGNAL, .value = SIGPIPE};
    }
    start_ending(state, SIGTERM);
}

/* Reads once. Returns whether there may be more. */
static bool read_stream(struct state *state, struct hvdrun_stream *stream)
{
    char data[READ_BYTES];
    ssize_t bytes = read(stream->fd, data, sizeof(data));

    if (bytes > 0) {
        listen_on(state);
        if (hvdrun_lines_add(&stream->lines, data, (size_t)bytes) < 0) {
            on_output_error(state, errno);
        }
        if (stream->lines.copy_error != 0) {
            on_copy_error(state, stream);
        }
        return true;
    }
    if (bytes < 0 && errno == EINTR) {
        return true;
    }
    if (bytes == 0 || errno != EAGAIN) {
        close_stream(stream);
    }
    return false;
}

/* Explains why a rank was killed by signal 9, if the kernel has killed a process of the
 * cgroup for lack of memory since hvdrun began to watch. */
static void add_reason(const struct state *state, struct hvdrun_failure *failure)
{
    if (failure->kind == HVDRUN_FAILURE_KILLED && failure->value == SIGKILL &&
        hvdrun_memory_kills() > state->memory_kills) {
        snprintf(failure->text, sizeof(failure->text),
                 "memory ran out: the cgroup of this job has reached its limit, and the "
                 "kernel has killed one of its processes");
    }
}

/* Handles the end of a rank of an elastic job. */
static void end_elastic(struct state *state, int rank, const siginfo_t *info)
{
    struct hvdrun_failure end = {0};
    bool must_end;

    hvdrun_failure_add_end(&end, rank, state->watch->ranks[rank].pid,
                           info->si_code != CLD_EXITED, info->si_status);
    add_reason(state, &end);
    hvdrun_elastic_on_end(state->watch->elastic, rank, &end, hvd_clock_ms(),
                          &state->first_failure, &must_end);
    if (must_end) {
        start_ending(state, SIGTERM);
    }
}

/* Handles the end of a rank of a job that is not elastic; hvdrun did not end the rank. */
static void end_rank(struct state *state, int rank, const siginfo_t *info)
{
    struct hvdrun_rank *ended = &state->watch->ranks[rank];

    ended->is_killed = info->si_code != CLD_EXITED;
    ended->value = info->si_status;
    ended->has_ended = true;
    hvd_rendezvous_ended(state->watch->service, rank,
                         ended->is_killed ? ended->value : W_EXITCODE(ended->value, 0));
    listen_on(state);
    if (state->phase == RUNNING || hvd_clock_ms() - state->failed_ms < SAME_MOMENT_MS) {
        hvdrun_failure_add_end(&state->first_failure, rank, ended->pid, ended->is_killed,
                               ended->value);
    }
}

/* Acts on events of the service. Must run before hvdrun handles ended ranks, because the
 * events may explain why they ended. */
static void follow_service(struct state *state)
{
    struct hvdrun_watch *watch = state->watch;
    enum hvdrun_elastic_order order;
    int slot;

    while (watch->elastic != NULL && state->phase == RUNNING &&
           hvdrun_elastic_next_order(watch->elastic, &order, &slot)) {
        if (order == HVDRUN_ELASTIC_END) {
            start_ending(state, SIGTERM);
        } else if (watch->ranks[slot].pid > 0) {
            kill(-watch->ranks[slot].pid, SIGKILL);
        }
    }
}

static void check_leader(struct state *state, int rank)
{
    struct hvdrun_rank *watched = &state->watch->ranks[rank];
    siginfo_t info = {0};

    if (watched->is_over || watched->pid == 0 ||
        waitid(P_PID, (id_t)watched->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0) {
        return;
    }
    watched->is_over = true;
    if (state->phase == RUNNING && state->watch->elastic != NULL) {
        end_elastic(state, rank, &info);
    } else if (state->phase <= LISTENING) {
        end_rank(state, rank, &info);
    }
}

static void on_children(struct state *state)
{
    follow_service(state);
    for (int rank = 0; rank < state->watch->count; rank++) {
        check_leader(state, rank);
    }
    if (state->first_failure.kind != HVDRUN_FAILURE_NONE &&
        state->watch->elastic == NULL) {
        start_listening(state);
    }
}

static void on_stop(const struct state *state)
{
    signal_ranks(state, SIGTSTP);
    raise(SIGSTOP);
    signal_ranks(state, SIGCONT);
}

/* Passes on the first request to end. A second one kills the ranks at once. */
static void on_end_request(struct state *state, int number)
{
    if (state->phase > LISTENING) {
        start_killing(state);
        return;
    }
    if (state->phase == RUNNING) {
        state->first_failure =
            (struct hvdrun_failure){.kind = HVDRUN_FAILURE_SIGNAL, .value = number};
    }
    start_ending(state, number);
}

static void on_signal(struct state *state, int number)
{
    switch (number) {
    case SIGCHLD:
        on_children(state);
        break;
    case SIGTSTP:
        on_stop(state);
        break;
    case SIGUSR1:
    case SIGUSR2:
        signal_ranks(state, number);
        break;
    default:
        on_end_request(state, number);
        break;
    }
}

static void read_signals(struct state *state)
{
    struct signalfd_siginfo info;

    while (read(state->watch->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        on_signal(state, (int)info.ssi_signo);
    }
}

static bool are_leaders_over(const struct state *state)
{
    for (int rank = 0; rank < state->watch->count; rank++) {
        if (state->watch->ranks[rank].pid > 0 && !state->watch->ranks[rank].is_over) {
            return false;
        }
    }
    return state->phase != RUNNING || state->watch->elastic == NULL ||
           !hvdrun_elastic_is_pending(state->watch->elastic);
}

/* Fills polls with all descriptors to wait for. Closed streams have fd -1, which poll
 * ignores. */
static size_t fill_polls(const struct state *state, struct pollfd *polls, bool *has_open)
{
    size_t count = 0;

    *has_open = false;
    polls[count++] = (struct pollfd){.fd = state->watch->signal_fd, .events = POLLIN};
    polls[count++] = (struct pollfd){
        .fd = state->watch->elastic != NULL ? state->watch->elastic->service.events : -1,
        .events = POLLIN};
    for (int rank = 0; rank < state->watch->count; rank++) {
        for (int i = 0; i < HVDRUN_STREAMS; i++) {
            int fd = state->watch->ranks[rank].streams[i].fd;

            polls[count++] = (struct pollfd){.fd = fd, .events = POLLIN};
            *has_open = *has_open || fd >= 0;
        }
    }
    return count;
}

static void wait_and_handle(struct state *state, struct pollfd *polls, size_t count)
{
    long long until = -1;
    int timeout_ms = -1;

    if (state->phase != RUNNING) {
        until = state->deadline_ms;
    } else if (state->watch->elastic != NULL) {
        until = hvdrun_elastic_next_ms(state->watch->elastic);
    }
    if (until >= 0) {
        long long left = until - hvd_clock_ms();

        timeout_ms = left > 0 ? (int)left : 0;
    }
    if (poll(polls, count, timeout_ms) < 0) {
        return; /* interrupted: the next round sees why */
    }
    /* Reads stderr first, so that a progress bar is erased before the result that follows
     * it on stdout. */
    for (int rank = 0; rank < state->watch->count; rank++) {
        for (int i = HVDRUN_STREAMS - 1; i >= 0; i--) {
            if (polls[OWN_POLLS + rank * HVDRUN_STREAMS + i].revents != 0) {
                read_stream(state, &state->watch->ranks[rank].streams[i]);
            }
        }
    }
    if (polls[0].revents != 0) {
        read_signals(state);
    }
}

/* Reads what is left in the pipe, then closes it. A process that still holds the other
 * end has left the job. */
static void drain(struct state *state, struct hvdrun_stream *stream)
{
    while (stream->fd >= 0 && read_stream(state, stream)) {
    }
    if (stream->fd >= 0) {
        close_stream(stream);
    }
}

/* Kills processes that ranks left in their groups, and reaps the ranks. */
static void clear(struct state *state)
{
    signal_ranks(state, SIGKILL);
    for (int rank = 0; rank < state->watch->count; rank++) {
        struct hvdrun_rank *ended = &state->watch->ranks[rank];

        if (ended->pid > 0 && ended->is_over) {
            (void)waitpid(ended->pid, NULL, 0);
        } else if (ended->pid > 0) {
            hvd_log(HVD_LOG_ERROR, "rank %d (pid %d) was killed but does not end", rank,
                    (int)ended->pid);
        }
        for (int i = 0; i < HVDRUN_STREAMS; i++) {
            drain(state, &ended->streams[i]);
        }
    }
}

static void supervise_ranks(struct state *state, struct pollfd *polls)
{
    bool has_open;

    on_children(state); /* some may have ended already */
    for (;;) {
        size_t count = fill_polls(state, polls, &has_open);
        bool is_over = are_leaders_over(state);

        if (state->phase == GIVEN_UP ||
            (is_over && (!has_open || state->phase == KILLING))) {
            break;
        }
        if (is_over) {
            start_ending(state, SIGTERM);
        }
        wait_and_handle(state, polls, count);
        check_deadline(state);
        follow_service(state);
        if (state->phase == RUNNING && state->watch->elastic != NULL) {
            hvdrun_elastic_progress(state->watch->elastic, hvd_clock_ms());
        }
    }
    clear(state);
}

static int supervise(struct state *state, struct hvd_error *err)
{
    size_t count = OWN_POLLS + (size_t)state->watch->count * HVDRUN_STREAMS;
    struct pollfd *polls = calloc(count, sizeof(*polls));

    if (polls == NULL) {
        signal_ranks(state, SIGKILL);
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory to supervise %d ranks",
                        state->watch->count);
    }
    supervise_ranks(state, polls);
    free(polls);
    return 0;
}

/* Whether the rank that is recorded as the first to fail left the job in good order. */
static bool left_well(const struct hvd_cause *cause)
{
    return cause->teller == cause->rank && cause->text[0] == '\0';
}

/* Corrects the first failure by what ranks recorded, because the rank that ended first
 * may only have noticed that another rank failed. If that other rank exited with 0 or
 * never ended, it is to blame only if ranks reported it missing. */
static void blame(struct state *state)
{
    struct hvdrun_failure *failure = &state->first_failure;
    const int exit_code = hvdrun_failure_exit_code(failure);
    const bool may_notice = failure->kind == HVDRUN_FAILURE_EXIT;
    struct hvd_cause cause;
    const struct hvdrun_rank *culprit = find_culprit(state, &cause);

    if (culprit == NULL || (!may_notice && failure->kind != HVDRUN_FAILURE_KILLED)) {
        return;
    }
    if (culprit->has_ended && culprit->value != 0) {
        *failure = (struct hvdrun_failure){0};
        hvdrun_failure_add_end(failure, cause.rank, culprit->pid, culprit->is_killed,
                               culprit->value);
    } else if (may_notice && cause.is_missed) {
        *failure =
            (struct hvdrun_failure){.kind = culprit->has_ended  ? HVDRUN_FAILURE_EARLY
                                            : left_well(&cause) ? HVDRUN_FAILURE_LEFT
                                                                : HVDRUN_FAILURE_STUCK,
                                    .value = exit_code,
                                    .rank = cause.rank,
                                    .pid = culprit->pid};
    } else {
        return;
    }
    if (left_well(&cause)) {
        failure->waiter = cause.waiter;
        memcpy(failure->operation, cause.operation, sizeof(failure->operation));
    }
    if (cause.teller == cause.rank || failure->kind == HVDRUN_FAILURE_STUCK) {
        memcpy(failure->text, cause.text, sizeof(failure->text));
    }
}

int hvdrun_supervise(struct hvdrun_watch *watch, struct hvd_error *cause)
{
    struct state state = {.watch = watch, .memory_kills = hvdrun_memory_kills()};

    if (supervise(&state, cause) < 0) {
        return EXIT_FAILURE;
    }
    blame(&state);
    add_reason(&state, &state.first_failure);
    hvdrun_failure_describe(&state.first_failure, watch->count, cause);
    return hvdrun_failure_exit_code(&state.first_failure);
}

void hvdrun_supervise_end(struct hvdrun_watch *watch)
{
    struct state state = {.watch = watch};

    start_ending(&state, SIGTERM);
    (void)supervise(&state, NULL);
}

/* --- signals ------------------------------------------------------------------------ */

static const int handled[] = {SIGCHLD, SIGINT,  SIGTERM, SIGHUP,
                              SIGQUIT, SIGTSTP, SIGUSR1, SIGUSR2};

static bool is_ignored(int number)
{
    struct sigaction action;

    return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

int hvdrun_supervise_signals(sigset_t *before, struct hvd_error *err)
{
    sigset_t set;
    int fd;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(handled) / sizeof(handled[0]); i++) {
        if (handled[i] == SIGCHLD || !is_ignored(handled[i])) {
            sigaddset(&set, handled[i]);
        }
    }
    /* If SIGCHLD is ignored, the exit status of ranks is lost. */
    signal(SIGCHLD, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    sigprocmask(SIG_BLOCK, &set, before);
    fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd >= 0 ? fd : hvd_fail(err, HVD_ERR_SYS, "cannot receive signals: %m");
}
