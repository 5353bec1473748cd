/* SPDX-License-Identifier: Apache-2.0 */
/* The service holds the other ends of two pipes. When the launcher ends in any way, its
 * ends close, and the service ends. */
#include "pmix_boot/rendezvous/start.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int spawn_service(const char *program, char *const *arguments, int input,
                         int output, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    int error;

    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setpgroup(&attributes, 0);
    error = posix_spawn(pid, program, &actions, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static int spawn_by_rules(const char *program, const struct hvd_rendezvous_rules *rules,
                          int input, int output, pid_t *pid)
{
    const int numbers[] = {rules->np,      rules->min,       rules->max,
                           rules->start_s, rules->timeout_s, rules->reset_limit};
    enum {
        NUMBERS = sizeof(numbers) / sizeof(numbers[0])
    };
    char texts[NUMBERS][16];
    char *arguments[NUMBERS + 3] = {(char *)program};

    for (int i = 0; i < NUMBERS; i++) {
        snprintf(texts[i], sizeof(texts[i]), "%d", numbers[i]);
        arguments[i + 1] = texts[i];
    }
    arguments[NUMBERS + 1] = rules->is_here ? "here" : "";
    if (!rules->is_here && rules->ports != NULL) {
        arguments[NUMBERS + 1] = (char *)rules->ports;
    }
    if (rules->path != NULL) {
        arguments[NUMBERS + 1] = (char *)rules->path;
    }
    return spawn_service(program, arguments, input, output, pid);
}

/* Reads "PORT KEY\n". */
static int read_address(int fd, char *address)
{
    char line[HVD_RENDEZVOUS_START_TEXT_BYTES];
    size_t length = 0;
    ssize_t bytes = 1;
    char *space;

    while (bytes > 0 && length < sizeof(line) - 1 &&
           (length == 0 || line[length - 1] != '\n')) {
        bytes = read(fd, line + length, sizeof(line) - 1 - length);
        if (bytes < 0 && errno == EINTR) {
            bytes = 1;
        } else if (bytes > 0) {
            length += (size_t)bytes;
        }
    }
    if (length == 0 || line[length - 1] != '\n') {
        return HVD_ERR_SYS;
    }
    line[length - 1] = '\0';
    space = strchr(line, ' ');
    if (space == NULL) {
        return HVD_ERR_SYS;
    }
    *space = ':';
    memcpy(address, line, length);
    return 0;
}

static void close_pair(const int ends[2])
{
    close(ends[0]);
    close(ends[1]);
}

int hvd_rendezvous_start(const char *program, const struct hvd_rendezvous_rules *rules,
                         struct hvd_rendezvous_service *out, struct hvd_error *err)
{
    struct hvd_rendezvous_service service = {0};
    int orders[2];
    int answer[2];
    int error;
    int status;

    if (pipe2(orders, O_CLOEXEC) != 0) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot open a pipe: %m");
    }
    if (pipe2(answer, O_CLOEXEC) != 0) {
        close_pair(orders);
        return hvd_fail(err, HVD_ERR_SYS, "cannot open a pipe: %m");
    }
    error = spawn_by_rules(program, rules, orders[0], answer[1], &service.pid);
    close(orders[0]);
    close(answer[1]);
    service.orders = orders[1];
    service.events = answer[0];
    status = error == 0 ? read_address(answer[0], service.address) : HVD_ERR_SYS;
    (void)fcntl(answer[0], F_SETFL, O_NONBLOCK);
    if (error != 0) {
        close(orders[1]);
        close(answer[0]);
        return hvd_fail(err, HVD_ERR_SYS, "cannot start %s: %s", program,
                        strerror(error));
    }
    if (status < 0) {
        hvd_rendezvous_stop(&service);
        return hvd_fail(err, HVD_ERR_SYS, "%s ended without printing its address",
                        program);
    }
    *out = service;
    return 0;
}

void hvd_rendezvous_expect(const struct hvd_rendezvous_service *service, int slot,
                           int ranks)
{
    if (service->pid > 0) {
        (void)dprintf(service->orders, "expect %d without %d\n", ranks, slot);
    }
}

void hvd_rendezvous_leave(const struct hvd_rendezvous_service *service, int slot)
{
    if (service->pid > 0) {
        (void)dprintf(service->orders, "leave %d\n", slot);
    }
}

void hvd_rendezvous_stay(const struct hvd_rendezvous_service *service, int slot)
{
    if (service->pid > 0) {
        (void)dprintf(service->orders, "stay %d\n", slot);
    }
}

void hvd_rendezvous_done(const struct hvd_rendezvous_service *service)
{
    if (service->pid > 0) {
        (void)dprintf(service->orders, "done\n");
    }
}

static bool parse_event(const char *line, enum hvd_rendezvous_event *event, int *slot)
{
    static const char *const words[] = {[HVD_RENDEZVOUS_BEGUN] = "begun",
                                        [HVD_RENDEZVOUS_DROPPED] = "drop",
                                        [HVD_RENDEZVOUS_OVER] = "over"};
    char word[16];

    if (sscanf(line, "%15s %d", word, slot) != 2) {
        return false;
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(word, words[i]) == 0) {
            *event = (enum hvd_rendezvous_event)i;
            return true;
        }
    }
    return false;
}

/* Reads the next event. The service writes each line with one write, shorter than
 * PIPE_BUF. */
int hvd_rendezvous_next_event(const struct hvd_rendezvous_service *service,
                              enum hvd_rendezvous_event *event, int *slot)
{
    char line[32];
    size_t length = 0;
    ssize_t bytes;

    while (length < sizeof(line) - 1 &&
           (bytes = read(service->events, line + length, 1)) != 0) {
        if (bytes < 0 && errno != EINTR) {
            return errno == EAGAIN ? HVD_INPROGRESS : HVD_ERR_NET;
        }
        if (bytes > 0 && line[length++] == '\n') {
            break;
        }
    }
    line[length] = '\0';
    return parse_event(line, event, slot) ? 0 : HVD_ERR_NET;
}

void hvd_rendezvous_ended(const struct hvd_rendezvous_service *service, int rank,
                          int wait_status)
{
    if (service->pid > 0) {
        (void)dprintf(service->orders, "ended %d %d\n", rank, wait_status);
    }
}

void hvd_rendezvous_stop(struct hvd_rendezvous_service *service)
{
    if (service->pid <= 0) {
        return;
    }
    close(service->orders);
    if (service->events >= 0) {
        close(service->events);
    }
    while (waitpid(service->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    *service = (struct hvd_rendezvous_service){0};
}
