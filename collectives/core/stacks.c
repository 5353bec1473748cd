/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/core/stacks.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "collectives/core/card.h"
#include "collectives/core/job_state.h"
#include "collectives/stack/stack.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/base/log.h"
#include "gpu_binding/base/thread.h"
#include "pmix_boot/boot.h"

enum {
    END_S = 2, /* how long to wait for the end of the thread */
    MOST_PYTHON = 6, /* lines of a stack in a warning, beside one of the script */
    MOST_C = 6,
    MOST_BELOW_PYTHON = 1, /* lines of C below Python: the call that sleeps */
    MOST_UNWRITTEN = 1 << 20, /* bytes for the file, if it is slow */
};

struct hvd_stack_reader {
    pthread_t thread;
    struct hvd_live_page *page; /* borrowed */
    struct hvd_wakeup *wakeup; /* borrowed */
    _Atomic bool is_ending; /* the page and wakeup may vanish */
    _Atomic bool is_asked; /* by another rank: an answer must wake the driver */
    /* how often the thread was woken for the file: those of the page's stack_asked that
     * are no questions; raised first */
    _Atomic uint32_t wakes;
    char answer[HVD_LIVE_STACK]; /* to that question; progress lock */
    /* rank 0 */
    char *path; /* NULL: no file */
    pthread_mutex_t lock; /* protects unwritten */
    char *unwritten; /* text for the file */
    FILE *file;
};

static void wait_futex(_Atomic uint32_t *word, uint32_t value)
{
    syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

static void wake_futex(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* --- the thread --- */

/* Writes the answer. While it does, `told` is 0. */
static void answer_question(struct hvd_stack_reader *reader, uint32_t asked)
{
    struct hvd_live_page *page = reader->page;
    char text[HVD_LIVE_STACK] = "";

    hvd_stack_read(text, sizeof(text));
    if (atomic_load(&reader->is_ending)) {
        return;
    }
    atomic_store(&page->stack_told, 0);
    atomic_thread_fence(memory_order_seq_cst);
    memcpy(page->stack, text, sizeof(text));
    atomic_store(&page->stack_told, asked);
    wake_futex(&page->stack_told);
    if (atomic_load(&reader->is_asked)) {
        hvd_wakeup_notify(reader->wakeup);
        hvd_wakeup_notify_thread(reader->wakeup);
    }
}

/* Appends to the file what rank 0 has queued. Does not replace the file, because an
 * elastic job has a reader for each of its generations. */
static void write_file(struct hvd_stack_reader *reader)
{
    char *text;

    pthread_mutex_lock(&reader->lock);
    text = reader->unwritten;
    reader->unwritten = NULL;
    pthread_mutex_unlock(&reader->lock);
    if (text == NULL) {
        return;
    }
    if (reader->file == NULL) {
        reader->file = fopen(reader->path, "ae");
    }
    if (reader->file == NULL || fputs(text, reader->file) < 0 ||
        fflush(reader->file) != 0) {
        hvd_log(HVD_LOG_WARN, "cannot write " HVD_ENV_STACKS " to %.300s: %m",
                reader->path);
    }
    free(text);
}

static void *answer_questions(void *arg)
{
    struct hvd_stack_reader *reader = arg;
    struct hvd_live_page *page = reader->page;
    uint32_t answered = 0; /* questions */

    while (!atomic_load(&reader->is_ending)) {
        const uint32_t asked = atomic_load(&page->stack_asked);
        uint32_t questions;

        write_file(reader);
        questions = asked - atomic_load(&reader->wakes);
        if ((int32_t)(questions - answered) <= 0) {
            wait_futex(&page->stack_asked, asked);
        } else {
            answer_question(reader, asked);
            answered = questions;
        }
    }
    write_file(reader);
    return NULL;
}

/* Returns the path from the directory of hvd.init(), because a script may change it, or
 * NULL. */
static char *find_path(const char *name)
{
    char *directory = name[0] != '/' ? getcwd(NULL, 0) : NULL;
    char *path = NULL;

    if (asprintf(&path, "%s%s%s", directory != NULL ? directory : "",
                 directory != NULL ? "/" : "", name) < 0) {
        path = NULL;
    }
    free(directory);
    return path;
}

int hvd_stacks_open(struct hvd_job *job, struct hvd_error *err)
{
    struct hvd_stack_reader *reader;
    int error;

    if (!job->settings.reads_stacks) {
        return 0;
    }
    reader = calloc(1, sizeof(*reader));
    if (reader == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the reader of stacks");
    }
    pthread_mutex_init(&reader->lock, NULL);
    reader->page = hvd_live_page_of(&job->live);
    reader->wakeup = &job->wakeup;
    if (job->boot->rank == 0 && job->settings.stacks != NULL) {
        reader->path = find_path(job->settings.stacks);
    }
    error = hvd_thread_start(&reader->thread, answer_questions, reader);
    if (error != 0) {
        hvd_log(HVD_LOG_INFO, "hvd-info --stacks cannot ask this rank: %s",
                strerror(error));
        free(reader->path);
        free(reader);
        return 0;
    }
    job->stacks.reader = reader;
    return 0;
}

static uint32_t wake_reader(struct hvd_stack_reader *reader)
{
    const uint32_t asked = atomic_fetch_add(&reader->page->stack_asked, 1) + 1;

    wake_futex(&reader->page->stack_asked);
    return asked;
}

bool hvd_stacks_close(struct hvd_stacks *stacks)
{
    struct hvd_stack_reader *reader = stacks->reader;
    struct timespec end;

    for (int i = 0; i < HVD_STACKS_SHOWN; i++) {
        free(stacks->shown[i].text);
        stacks->shown[i].text = NULL;
    }
    if (reader == NULL) {
        return true;
    }
    stacks->reader = NULL;
    atomic_store(&reader->is_ending, true);
    wake_reader(reader);
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += END_S;
    if (pthread_timedjoin_np(reader->thread, NULL, &end) != 0) {
        pthread_detach(reader->thread);
        return false; /* the thread still uses the struct */
    }
    if (reader->file != NULL) {
        fclose(reader->file);
    }
    free(reader->unwritten);
    free(reader->path);
    pthread_mutex_destroy(&reader->lock);
    free(reader);
    return true;
}

/* --- questions of other ranks --- */

void hvd_stacks_ask(struct hvd_stacks *stacks)
{
    if (stacks->reader != NULL) {
        atomic_store(&stacks->reader->is_asked, true);
    }
    stacks->asked = stacks->reader != NULL ? wake_reader(stacks->reader) : 1;
}

bool hvd_stacks_take(struct hvd_stacks *stacks, const char **text)
{
    struct hvd_stack_reader *reader = stacks->reader;
    uint32_t told;

    if (stacks->asked == 0) {
        return false;
    }
    *text = "";
    if (reader != NULL) {
        told = atomic_load(&reader->page->stack_told);
        if (told == 0 || (int32_t)(told - stacks->asked) < 0) {
            return false;
        }
        memcpy(reader->answer, reader->page->stack, sizeof(reader->answer) - 1);
        atomic_thread_fence(memory_order_seq_cst);
        if (atomic_load(&reader->page->stack_told) != told) {
            return false; /* hvd-info has asked, too: another answer follows */
        }
        atomic_store(&reader->is_asked, false);
        *text = reader->answer;
    }
    stacks->asked = 0;
    return true;
}

/* --- rank 0 --- */

/* The lines of a stack that have been read so far. */
struct lines_seen {
    int python;
    int c;
    bool has_script; /* a line of Python outside of installed packages */
};

/* Whether a line of Python is in a package, not in the script of the user. */
static bool is_in_package(const char *line, int length)
{
    static const char *const signs[] = {"-packages/", "/python/horovod/", "/lib/python",
                                        "\"<frozen "};

    for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
        if (memmem(line, (size_t)length, signs[i], strlen(signs[i])) != NULL) {
            return true;
        }
    }
    return false;
}

/* Whether a line of the stack belongs in a warning. The innermost line of the script
 * does, however deep in packages the rank is. */
static bool is_shown(const char *line, int length, struct lines_seen *seen)
{
    if (strncmp(line, "File \"", strlen("File \"")) == 0) {
        const bool is_first_of_script = !seen->has_script && !is_in_package(line, length);

        seen->has_script = seen->has_script || is_first_of_script;
        return seen->python++ < MOST_PYTHON || is_first_of_script;
    }
    /* a function without a name tells a user nothing */
    return memmem(line, (size_t)length, " in ", strlen(" in ")) != NULL &&
           seen->c++ < (seen->python > 0 ? MOST_BELOW_PYTHON : MOST_C);
}

/* Writes the first lines of Python and of C, each on a line that is indented. path: the
 * file that has all of them, or NULL. */
static void put_first_lines(const char *text, const char *path, FILE *out)
{
    struct lines_seen seen = {.python = 0};
    int left = 0;

    while (*text != '\0') {
        const int length = (int)strcspn(text, "\n");

        if (is_shown(text, length, &seen)) {
            fprintf(out, "\n  %.*s", length, text);
        } else {
            left++;
        }
        text += length;
        text += *text == '\n';
    }
    if (left > 0 && path != NULL) {
        fprintf(out, "\n  and %d more, in %s", left, path);
    } else if (left > 0) {
        fprintf(out, "\n  and %d more: %s=FILE writes all of them", left, HVD_ENV_STACKS);
    }
}

/* Replaces characters that can control a terminal; the text comes from another rank. */
static void clean_text(char *text)
{
    for (; *text != '\0'; text++) {
        if (((unsigned char)*text < ' ' && *text != '\n') || *text == 0x7f) {
            *text = '?';
        }
    }
}

static void queue_text(struct hvd_stack_reader *reader, const char *text)
{
    size_t bytes = strlen(text) + 1;
    size_t before;
    char *grown;

    pthread_mutex_lock(&reader->lock);
    before = reader->unwritten != NULL ? strlen(reader->unwritten) : 0;
    if (before < MOST_UNWRITTEN) {
        grown = realloc(reader->unwritten, before + bytes);
        if (grown != NULL) {
            memcpy(grown + before, text, bytes);
            reader->unwritten = grown;
        }
    }
    pthread_mutex_unlock(&reader->lock);
    atomic_fetch_add(&reader->wakes, 1);
    wake_reader(reader);
}

/* Queues "2026-01-31 12:00:00 rank 5 on n2 (pid 4711)" and the stack for the file. */
static void queue_stack(struct hvd_stack_reader *reader, const char *title,
                        const char *stack)
{
    const time_t now = time(NULL);
    char stamp[32] = "", *text = NULL;
    struct tm parts;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    if (out == NULL) {
        return;
    }
    if (localtime_r(&now, &parts) != NULL) {
        strftime(stamp, sizeof(stamp), "%Y-%m-%d %H:%M:%S ", &parts);
    }
    fprintf(out, "%s%s\n%s\n", stamp, title, stack);
    if (fclose(out) == 0) {
        queue_text(reader, text);
    }
    free(text);
}

/* Remembers the stack, which it owns from now on. Returns whether it is that which was
 * shown last for the rank. */
static bool remember(struct hvd_stacks *stacks, int rank, char *stack)
{
    struct hvd_stack_answer *place = NULL;
    bool is_same;

    for (int i = 0; i < HVD_STACKS_SHOWN && place == NULL; i++) {
        if (stacks->shown[i].text == NULL || stacks->shown[i].rank == rank) {
            place = &stacks->shown[i];
        }
    }
    if (place == NULL) {
        place = &stacks->shown[stacks->replaced++ % HVD_STACKS_SHOWN];
    }
    is_same =
        place->text != NULL && place->rank == rank && strcmp(place->text, stack) == 0;
    free(place->text);
    *place = (struct hvd_stack_answer){stack, rank};
    return is_same;
}

static void show_lines(struct hvd_job *job, int rank, const char *stack)
{
    const struct hvd_boot_peer *peer = &job->boot->peers[rank];
    struct hvd_stack_reader *reader = job->stacks.reader;
    const char *path = reader != NULL ? reader->path : NULL;
    const int pid = hvd_card_pid(peer);
    char *lines = NULL, title[160];
    size_t bytes;
    FILE *out = open_memstream(&lines, &bytes);

    if (out == NULL) {
        return;
    }
    put_first_lines(stack, path, out);
    if (fclose(out) == 0) {
        hvd_log(HVD_LOG_WARN, "rank %d on %s (pid %d) holds others up; its stack:%s",
                rank, peer->host, pid, lines);
    }
    if (path != NULL) {
        snprintf(title, sizeof(title), "rank %d on %s (pid %d)", rank, peer->host, pid);
        queue_stack(reader, title, stack);
    }
    free(lines);
}

void hvd_stacks_show(struct hvd_job *job, int rank, const char *text)
{
    const struct hvd_boot_peer *peer = &job->boot->peers[rank];
    char *stack = strdup(text);

    if (stack == NULL) {
        return;
    }
    clean_text(stack);
    if (remember(&job->stacks, rank, stack)) {
        hvd_log(HVD_LOG_WARN,
                "rank %d on %s (pid %d) still holds others up; its stack has not changed",
                rank, peer->host, hvd_card_pid(peer));
    } else {
        show_lines(job, rank, stack);
    }
}
