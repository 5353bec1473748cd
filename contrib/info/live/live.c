/* SPDX-License-Identifier: Apache-2.0 */
#include "contrib/info/live/live.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "contrib/info/live/stack.h"
#include "gpu_binding/base/clock.h"

enum {
    PATH_BYTES = 64,
    TRIES = 1000, /* to read a page while the rank writes it */
    MOST_RANKS = 1 << 20, /* of a job */
};

static const char line_mark[] = "hvd-rank";

/* --- ranks --- */

/* Replaces characters that can control a terminal; keeps newlines in a text of several
 * lines. Some of these characters are two bytes in UTF-8, and begin with 0xc2. */
static void clean_text(char *text, bool has_lines)
{
    for (unsigned char *at = (unsigned char *)text; *at != '\0'; at++) {
        if (*at == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0) {
            at[0] = at[1] = '?';
        } else if ((*at < ' ' && !(has_lines && *at == '\n')) || *at == 0x7f) {
            *at = '?';
        }
    }
}

static bool is_possible(const struct hvd_info_rank *rank)
{
    return rank->size > 0 && rank->size <= MOST_RANKS && rank->rank >= 0 &&
           rank->rank < rank->size && isalpha((unsigned char)rank->process);
}

int hvd_info_live_add(struct hvd_info_ranks *ranks, const struct hvd_info_rank *rank,
                      struct hvd_error *err)
{
    struct hvd_info_rank *grown;

    if (!is_possible(rank)) {
        return 0;
    }
    grown = realloc(ranks->all, ((size_t)ranks->count + 1) * sizeof(*grown));
    if (grown == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for %d ranks", ranks->count + 1);
    }
    ranks->all = grown;
    grown += ranks->count++;
    *grown = *rank;
    clean_text(grown->host, false);
    clean_text(grown->stack, true);
    for (int i = 0; i < grown->count; i++) {
        clean_text(grown->tensors[i].operation, false);
    }
    return 0;
}

/* --- processes --- */

/* Reads a file of /proc/PID. Returns false if it does not exist or may not be read. */
static bool read_file(int pid, const char *name, char *text, size_t bytes)
{
    char path[PATH_BYTES];
    ssize_t length = -1;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        length = read(fd, text, bytes - 1);
        close(fd);
    }
    text[length > 0 ? length : 0] = '\0';
    return length > 0;
}

/* Reads the state and the parent of a process. They follow its name, which may contain
 * any character and ends at the last parenthesis. */
static bool read_stat(int pid, char *state, int *parent)
{
    char text[1024];
    const char *end;

    if (!read_file(pid, "stat", text, sizeof(text))) {
        return false;
    }
    end = strrchr(text, ')');
    return end != NULL && sscanf(end + 1, " %c %d", state, parent) == 2;
}

/* Returns the pid that the process has in its own namespace. */
static int own_pid(int pid)
{
    char text[4096];
    const char *line;
    const char *last;

    if (!read_file(pid, "status", text, sizeof(text))) {
        return -1;
    }
    line = strstr(text, "\nNSpid:");
    if (line == NULL) {
        return pid;
    }
    line += strlen("\nNSpid:");
    last = line;
    for (const char *at = line; *at != '\0' && *at != '\n'; at++) {
        last = *at == '\t' || *at == ' ' ? at + 1 : last;
    }
    return (int)strtol(last, NULL, 10);
}

static bool descends_from(int pid, pid_t ancestor)
{
    char state;

    while (pid > 1 && pid != ancestor && read_stat(pid, &state, &pid)) {
    }
    return pid == ancestor;
}

/* --- pages --- */

/* Copies the page. Returns false if the file is not a page. If the rank was stopped while
 * it wrote the state, marks the copy of the state as outdated. */
static bool copy_page(int fd, struct hvd_live_page *copy)
{
    uint32_t turn;

    for (int i = 0; i < TRIES; i++) {
        if (pread(fd, copy, sizeof(*copy), 0) != (ssize_t)sizeof(*copy) ||
            copy->magic != HVD_LIVE_MAGIC || copy->bytes != sizeof(*copy)) {
            return false;
        }
        turn = copy->turn;
        if (turn % 2 == 0 &&
            pread(fd, (char *)copy + offsetof(struct hvd_live_page, turn), sizeof(turn),
                  offsetof(struct hvd_live_page, turn)) == (ssize_t)sizeof(turn) &&
            copy->turn == turn) {
            return true;
        }
    }
    copy->state.begun = copy->begun + 1;
    return true;
}

/* Finds the page of a process, and copies it. Forked children may have their parent's
 * page open. Returns the descriptor of the page, or -1. access: O_RDONLY or O_RDWR. */
static int open_page(int pid, int access, struct hvd_live_page *page)
{
    char path[PATH_BYTES];
    int found = -1;
    struct dirent *entry;
    DIR *files;

    snprintf(path, sizeof(path), "/proc/%d/fd", pid);
    files = opendir(path);
    while (files != NULL && found < 0 && (entry = readdir(files)) != NULL) {
        char target[PATH_BYTES];
        ssize_t length =
            readlinkat(dirfd(files), entry->d_name, target, sizeof(target) - 1);

        target[length > 0 ? length : 0] = '\0';
        if (strncmp(target, "/memfd:" HVD_LIVE_PAGE_FILE " ",
                    strlen("/memfd:" HVD_LIVE_PAGE_FILE " ")) == 0) {
            /* O_NONBLOCK: opening a pipe of that name would block */
            const int fd = openat(dirfd(files), entry->d_name,
                                  access | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

            if (fd >= 0 && copy_page(fd, page) && page->pid == own_pid(pid)) {
                found = fd;
            } else if (fd >= 0) {
                close(fd);
            }
        }
    }
    if (files != NULL) {
        closedir(files);
    }
    return found;
}

static double seconds_since(int64_t then_ns, int64_t now_ns)
{
    return now_ns > then_ns ? (double)(now_ns - then_ns) / 1e9 : 0;
}

static void take_state(const struct hvd_live_page *page, int64_t now_ns,
                       struct hvd_info_rank *rank)
{
    const struct hvd_live_record *state = &page->state;

    rank->is_current = state->begun == page->begun && state->ended == page->ended &&
                       state->written_ns != 0;
    rank->age_s = seconds_since(state->written_ns, now_ns);
    rank->is_waiting = state->waiting > 0;
    rank->has_messages = state->messages > 0;
    for (int i = 0; i < state->count && i < HVD_LIVE_TENSORS; i++) {
        struct hvd_info_tensor *tensor = &rank->tensors[rank->count++];

        tensor->age_s = seconds_since(state->tensors[i].submitted_ns, now_ns);
        tensor->set = state->tensors[i].set;
        snprintf(tensor->operation, sizeof(tensor->operation), "%.*s", HVD_LIVE_TEXT - 1,
                 state->tensors[i].operation);
    }
}

/* Copies what the page says. Another program may have written it; hvd_info_live_add
 * checks the values. */
static void take_page(const struct hvd_live_page *page, int64_t now_ns,
                      struct hvd_info_rank *rank)
{
    rank->job = page->slurm_job;
    rank->step = page->slurm_step;
    rank->number = page->number;
    rank->rank = page->rank;
    rank->size = page->size;
    snprintf(rank->host, sizeof(rank->host), "%.*s", (int)sizeof(page->host) - 1,
             page->host);
    rank->phase = (enum hvd_live_phase)page->phase;
    rank->steps = page->steps;
    rank->ended = page->ended;
    rank->in_flight = page->begun > page->ended ? (int)(page->begun - page->ended) : 0;
    take_state(page, now_ns, rank);
}

static bool is_asked_for(const struct hvd_info_selection *which,
                         const struct hvd_info_rank *rank)
{
    return (which->job == 0 || rank->job == which->job) &&
           (which->step < 0 || rank->step == which->step) &&
           (which->pid == 0 || descends_from(rank->pid, which->pid));
}

/* Reads the rank that a process is. Returns whether it is one that is asked for. */
static bool read_rank(const struct hvd_info_selection *which, pid_t pid,
                      struct hvd_info_rank *rank)
{
    struct hvd_live_page page;
    const int fd = open_page(pid, which->has_stacks ? O_RDWR : O_RDONLY, &page);
    bool is_wanted = false;
    int parent;

    *rank = (struct hvd_info_rank){.pid = pid};
    if (fd >= 0 && read_stat(pid, &rank->process, &parent)) {
        take_page(&page, hvd_clock_ns(), rank);
        is_wanted = is_asked_for(which, rank);
    }
    if (is_wanted && which->has_stacks && rank->process != 'T') {
        hvd_info_stack_read(fd, rank->stack, sizeof(rank->stack));
    }
    if (fd >= 0) {
        close(fd);
    }
    return is_wanted;
}

int hvd_info_live_find(const struct hvd_info_selection *which,
                       struct hvd_info_ranks *ranks, struct hvd_error *err)
{
    DIR *processes = opendir("/proc");
    struct dirent *entry;
    int status = 0;

    if (processes == NULL) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot read /proc: %m");
    }
    while (status == 0 && (entry = readdir(processes)) != NULL) {
        const pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        struct hvd_info_rank rank;

        if (pid > 0 && read_rank(which, pid, &rank)) {
            status = hvd_info_live_add(ranks, &rank, err);
        }
    }
    closedir(processes);
    return status;
}

/* --- lines --- */

/* Replaces newlines, because a rank is one line. */
static const char line_break = '\v';

/* Writes a text, which clean_text has cleaned, as the next field of the line. */
static void write_text(const char *text, FILE *out)
{
    fputc('\t', out);
    for (; *text != '\0'; text++) {
        fputc(*text == '\n' ? line_break : *text, out);
    }
}

void hvd_info_live_write(const struct hvd_info_rank *rank, FILE *out)
{
    fprintf(out,
            "%s %" PRIu32 " %" PRIu32 " %" PRIx64 " %d %d %d %c %d %" PRIu64 " %" PRIu64
            " %d %d %.3f %d %d %d",
            line_mark, rank->job, rank->step, rank->number, rank->rank, rank->size,
            (int)rank->pid, rank->process, (int)rank->phase, rank->steps, rank->ended,
            rank->in_flight, rank->is_current, rank->age_s, rank->is_waiting,
            rank->has_messages, rank->count);
    write_text(rank->host, out);
    for (int i = 0; i < rank->count; i++) {
        fprintf(out, "\t%d %.3f", rank->tensors[i].set, rank->tensors[i].age_s);
        write_text(rank->tensors[i].operation, out);
    }
    write_text(rank->stack, out);
    fputc('\n', out);
}

/* Reads the text field that begins here. Returns the rest of the line, or NULL if there
 * is no such field. */
static const char *take_text(const char *line, char *text, size_t bytes)
{
    size_t length;

    if (line == NULL || *line != '\t') {
        return NULL;
    }
    length = strcspn(line + 1, "\t\n");
    snprintf(text, bytes, "%.*s", (int)length, line + 1);
    for (char *at = text; (at = strchr(at, line_break)) != NULL;) {
        *at = '\n';
    }
    return line + 1 + length;
}

bool hvd_info_live_parse(const char *line, struct hvd_info_rank *rank)
{
    int pid, phase, is_current, is_waiting, has_messages, used = 0;
    char numbers[64];

    *rank = (struct hvd_info_rank){0};
    if (strncmp(line, line_mark, strlen(line_mark)) != 0 ||
        sscanf(line + strlen(line_mark),
               " %" SCNu32 " %" SCNu32 " %" SCNx64 " %d %d %d %c %d %" SCNu64 " %" SCNu64
               " %d %d %lf %d %d %d%n",
               &rank->job, &rank->step, &rank->number, &rank->rank, &rank->size, &pid,
               &rank->process, &phase, &rank->steps, &rank->ended, &rank->in_flight,
               &is_current, &rank->age_s, &is_waiting, &has_messages, &rank->count,
               &used) != 16 ||
        rank->count < 0 || rank->count > HVD_LIVE_TENSORS) {
        return false;
    }
    rank->pid = pid;
    rank->phase = (enum hvd_live_phase)phase;
    rank->is_current = is_current != 0;
    rank->is_waiting = is_waiting != 0;
    rank->has_messages = has_messages != 0;
    line = take_text(line + strlen(line_mark) + used, rank->host, sizeof(rank->host));
    for (int i = 0; i < rank->count && line != NULL; i++) {
        struct hvd_info_tensor *tensor = &rank->tensors[i];

        line = take_text(line, numbers, sizeof(numbers));
        line = take_text(line, tensor->operation, sizeof(tensor->operation));
        if (line != NULL &&
            sscanf(numbers, "%d %lf", &tensor->set, &tensor->age_s) != 2) {
            line = NULL;
        }
    }
    return take_text(line, rank->stack, sizeof(rank->stack)) != NULL;
}
