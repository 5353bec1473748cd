/* SPDX-License-Identifier: Apache-2.0 */
/* A job of real processes on this machine, for tests. */
#include "tests/collectives/job.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static char *cards[JOB_MAX_RANKS];
static size_t card_bytes[JOB_MAX_RANKS];

static void die(const char *what)
{
    printf("Bail out! %s: %s\n", what, strerror(errno));
    exit(99);
}

static void write_all(int fd, const void *data, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = send(fd, (const char *)data + done, bytes - done, MSG_NOSIGNAL);

        if (n < 0 && errno != EINTR) {
            die("cannot write to the other side of a test");
        }
        done += n > 0 ? (size_t)n : 0;
    }
}

static void read_all(int fd, void *data, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = read(fd, (char *)data + done, bytes - done);

        if (n == 0 || (n < 0 && errno != EINTR)) {
            die("cannot read from the other side of a test");
        }
        done += n > 0 ? (size_t)n : 0;
    }
}

static char *read_card(int fd, size_t *bytes)
{
    char *data;

    read_all(fd, bytes, sizeof(*bytes));
    data = malloc(*bytes + 1);
    if (data == NULL) {
        die("out of memory");
    }
    read_all(fd, data, *bytes);
    return data;
}

static void make_boot(struct hvd_boot *boot, int rank, int size, char **hosts)
{
    *boot = (struct hvd_boot){.rank = rank, .size = size};
    memset(boot->secret, 0x5a, sizeof(boot->secret));
    boot->peers = calloc((size_t)size, sizeof(*boot->peers));
    for (int i = 0; i < size; i++) {
        boot->peers[i].host = hosts[i];
    }
    if (hvd_layout_init(&boot->layout, (const char *const *)hosts, size, NULL) != 0) {
        die("cannot make a layout");
    }
}

static void finish_rank(struct job_rank *self)
{
    hvd_layout_finish(&self->boot.layout);
    free(self->boot.peers);
    for (int i = 0; i < self->boot.size; i++) {
        free((void *)(uintptr_t)self->addresses[i]);
    }
    close(self->fd);
}

static void be_rank(struct job *job, int rank, int fd, char **hosts, job_body body,
                    const void *argument)
{
    struct job_rank self = {.fd = fd};
    int code;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(JOB_LIMIT_S);
    for (int i = 0; i < rank; i++) {
        close(job->fds[i]);
    }
    make_boot(&self.boot, rank, job->size, hosts);
    code = body(&self, argument);
    finish_rank(&self);
    free(hosts[-1]);
    exit(code);
}

/* Splits text into words; result[-1] is the memory to free. */
static char **split(const char *text, int *count)
{
    static char *words[JOB_MAX_RANKS + 1];

    *count = 0;
    words[0] = strdup(text);
    for (char *word = strtok(words[0], " "); word != NULL; word = strtok(NULL, " ")) {
        words[++*count] = word;
    }
    return words + 1;
}

void job_start(struct job *job, const char *hosts, job_body body, const void *argument)
{
    char **words = split(hosts, &job->size);

    signal(SIGPIPE, SIG_IGN);
    alarm(JOB_LIMIT_S + 10);
    fflush(stdout);
    for (int rank = 0; rank < job->size; rank++) {
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
            die("socketpair");
        }
        job->fds[rank] = pair[0];
        job->pids[rank] = fork();
        if (job->pids[rank] == 0) {
            close(pair[0]);
            be_rank(job, rank, pair[1], words, body, argument);
        }
        close(pair[1]);
    }
    free(words[-1]);
}

void job_offer(struct job_rank *self, const void *card, size_t bytes)
{
    write_all(self->fd, &bytes, sizeof(bytes));
    write_all(self->fd, card, bytes);
}

void job_collect(struct job_rank *self)
{
    for (int i = 0; i < self->boot.size; i++) {
        free((void *)(uintptr_t)self->addresses[i]);
        self->addresses[i] = read_card(self->fd, &self->bytes[i]);
    }
}

void job_exchange(struct job_rank *self, const void *card, size_t bytes)
{
    job_offer(self, card, bytes);
    job_collect(self);
}

void job_serve_exchange(struct job *job)
{
    for (int i = 0; i < job->size; i++) {
        free(cards[i]);
        cards[i] = read_card(job->fds[i], &card_bytes[i]);
    }
    for (int i = 0; i < job->size; i++) {
        for (int j = 0; j < job->size; j++) {
            write_all(job->fds[i], &card_bytes[j], sizeof(card_bytes[j]));
            write_all(job->fds[i], cards[j], card_bytes[j]);
        }
    }
}

const void *job_card(int rank, size_t *bytes)
{
    *bytes = card_bytes[rank];
    return cards[rank];
}

void job_say(struct job_rank *self, const char *format, ...)
{
    char line[JOB_LINE_BYTES];
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(line, sizeof(line) - 1, format, args);
    va_end(args);
    n = n < (int)sizeof(line) - 1 ? n : (int)sizeof(line) - 2;
    line[n] = '\n';
    write_all(self->fd, line, (size_t)n + 1);
}

bool job_hear(struct job *job, int rank, int timeout_ms, char line[JOB_LINE_BYTES])
{
    struct pollfd fd = {.fd = job->fds[rank], .events = POLLIN};
    size_t length = 0;

    while (length + 1 < JOB_LINE_BYTES) {
        if (poll(&fd, 1, timeout_ms) <= 0 || read(fd.fd, line + length, 1) != 1) {
            line[length] = '\0';
            return false;
        }
        if (line[length] == '\n') {
            break;
        }
        length++;
    }
    line[length] = '\0';
    return true;
}

void job_await(struct job_rank *self)
{
    char sign;

    read_all(self->fd, &sign, 1);
}

void job_signal(struct job *job, int rank)
{
    write_all(job->fds[rank], "!", 1);
}

int job_wait(struct job *job, int rank)
{
    int status = 0;

    while (waitpid(job->pids[rank], &status, 0) < 0 && errno == EINTR) {
    }
    job->pids[rank] = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void job_kill(struct job *job, int rank)
{
    kill(job->pids[rank], SIGKILL);
    job_wait(job, rank);
}

bool job_finish(struct job *job)
{
    bool is_good = true;

    for (int i = 0; i < job->size; i++) {
        if (job->pids[i] != 0) {
            int code = job_wait(job, i);

            if (code != 0) {
                printf("# rank %d ended with %d\n", i, code);
                is_good = false;
            }
        }
    }
    for (int i = 0; i < job->size; i++) {
        close(job->fds[i]);
        free(cards[i]);
        cards[i] = NULL;
    }
    return is_good;
}
