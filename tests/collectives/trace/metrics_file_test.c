/* SPDX-License-Identifier: Apache-2.0 */
/* The file of the metrics: how it is made and replaced, and what a file system that
 * refuses or hangs costs. The test takes the place of rename(), which can hang. */
#include "collectives/trace/metrics_file.h"

#include <dirent.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu_binding/base/log.h"
#include "tests/tap.h"

enum {
    TEXT_BYTES = 20000,
    TURNS = 2000,
};

static char folder[] = "/tmp/hvd-metrics-XXXXXX";
static char path[128];

/* --- rename --- */

static struct {
    _Atomic bool hangs;
    sem_t entered; /* posted by a call that hangs */
    sem_t let_go;
} renaming;

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);

int __wrap_rename(const char *from, const char *to)
{
    if (atomic_load(&renaming.hangs)) {
        sem_post(&renaming.entered);
        sem_wait(&renaming.let_go);
    }
    return __real_rename(from, to);
}

/* --- log --- */

static _Atomic int warnings;
static char last_warning[1024];

static void keep_line(enum hvd_log_level level, const char *line)
{
    (void)level;
    snprintf(last_warning, sizeof(last_warning), "%s", line);
    atomic_fetch_add(&warnings, 1);
}

/* --- helpers --- */

/* Reads a file of the folder; "none": there is no such file. The caller frees it. */
static char *content(const char *file)
{
    char *text = calloc(1, TEXT_BYTES + 2);
    FILE *in = fopen(file, "r");

    if (in == NULL) {
        memcpy(text, "none", sizeof("none"));
        return text;
    }
    text[fread(text, 1, TEXT_BYTES + 1, in)] = '\0';
    fclose(in);
    return text;
}

static bool contains(const char *file, const char *wanted)
{
    char *text = content(file);
    const bool is_same = strcmp(text, wanted) == 0;

    if (!is_same) {
        tap_note("%s has: %.200s", file, text);
    }
    free(text);
    return is_same;
}

static int count_files(const char *directory)
{
    DIR *open = opendir(directory);
    const struct dirent *entry;
    int count = 0;

    while (open != NULL && (entry = readdir(open)) != NULL) {
        count += entry->d_name[0] != '.' || strlen(entry->d_name) > 2;
    }
    if (open != NULL) {
        closedir(open);
    }
    return count;
}

/* --- one file --- */

static void test_replace(void)
{
    struct hvd_error err = {0};
    struct stat facts;
    mode_t before = umask(077);
    char deep[128];

    tap_ok(hvd_metrics_file_replace(folder, "a.prom", "one\n", &err) == 0 &&
               hvd_metrics_file_replace(folder, "a.prom", "two\n", &err) == 0 &&
               contains(path, "two\n") && count_files(folder) == 1,
           "a file is made and replaced, and no other file is left");
    tap_ok(stat(path, &facts) == 0 && (facts.st_mode & 0777) == 0644,
           "others may read it, whatever the umask is");
    umask(before);
    snprintf(deep, sizeof(deep), "%s/b/c", folder);
    tap_ok(hvd_metrics_file_replace(deep, "a.prom", "deep\n", &err) == 0 &&
               count_files(deep) == 1,
           "folders that are missing are made");
}

static void test_refusal(void)
{
    struct hvd_error err = {0};
    char taken[128];

    tap_ok(hvd_metrics_file_replace(path, "x.prom", "text\n", &err) == HVD_ERR_SYS &&
               strstr(err.text, "a.prom/x.prom: Not a directory") != NULL,
           "a folder that is a file is refused with its path: %s", err.text);
    snprintf(taken, sizeof(taken), "%s/taken", folder);
    mkdir(taken, 0777);
    tap_ok(hvd_metrics_file_replace(folder, "taken", "text\n", &err) == HVD_ERR_SYS &&
               strstr(err.text, "/taken: ") != NULL && count_files(folder) == 3,
           "if the file cannot take its place, nothing is left beside it: %s", err.text);
    rmdir(taken);
}

static void fill(char *text, char with)
{
    memset(text, with, TEXT_BYTES);
    text[TEXT_BYTES] = '\0';
}

static void *replace_often(void *arg)
{
    char text[TEXT_BYTES + 1];

    for (int i = 0; i < TURNS; i++) {
        fill(text, (char)('a' + i % 26));
        (void)hvd_metrics_file_replace(folder, "a.prom", text, NULL);
    }
    atomic_store((_Atomic bool *)arg, true);
    return NULL;
}

/* Whether the text is of one letter, and complete. */
static bool is_whole(const char *text)
{
    return strlen(text) == TEXT_BYTES && text[0] == text[TEXT_BYTES - 1] &&
           strspn(text, (char[]){text[0], '\0'}) == TEXT_BYTES;
}

static void test_reader(void)
{
    _Atomic bool is_over = false;
    char text[TEXT_BYTES + 1];
    pthread_t writer;
    int reads = 0, parts = 0;

    fill(text, 'a');
    (void)hvd_metrics_file_replace(folder, "a.prom", text, NULL);
    pthread_create(&writer, NULL, replace_often, &is_over);
    while (!atomic_load(&is_over)) {
        char *seen = content(path);

        reads++;
        parts += is_whole(seen) ? 0 : 1;
        free(seen);
    }
    pthread_join(writer, NULL);
    tap_ok(parts == 0 && reads > 0,
           "a reader never sees a part of a file (%d reads, %d parts)", reads, parts);
}

/* --- the thread --- */

static struct {
    _Atomic int calls;
    _Atomic int last;
} made;

static char *make_text(void *context, bool is_last)
{
    (void)context;
    atomic_fetch_add(&made.calls, 1);
    atomic_fetch_add(&made.last, is_last ? 1 : 0);
    return strdup(is_last ? "last\n" : "more\n");
}

static struct hvd_metrics_file *open_file(const char *directory, int patience_ms)
{
    const struct hvd_metrics_file_config config = {
        .directory = directory,
        .name = "a.prom",
        .every_ms = 1,
        .patience_ms = patience_ms,
        .make_text = make_text,
    };
    struct hvd_metrics_file *file = NULL;
    struct hvd_error err = {0};

    atomic_store(&made.calls, 0);
    atomic_store(&made.last, 0);
    if (hvd_metrics_file_open(&config, &file, &err) != 0) {
        tap_note("%s", err.text);
    }
    return file;
}

static void wait_for_calls(int calls)
{
    while (atomic_load(&made.calls) < calls) {
        usleep(1000);
    }
}

static void test_thread(void)
{
    struct hvd_metrics_file *file = open_file(folder, 60000);

    wait_for_calls(3);
    hvd_metrics_file_close(file);
    tap_ok(atomic_load(&made.last) == 1 && contains(path, "last\n") &&
               atomic_load(&warnings) == 0,
           "the file is written again and again, and a last time at the end");
    hvd_metrics_file_close(NULL);
}

static void test_warning(void)
{
    char wrong[160];
    struct hvd_metrics_file *file;

    snprintf(wrong, sizeof(wrong), "%s/a.prom", folder);
    file = open_file(wrong, 60000);
    wait_for_calls(10);
    hvd_metrics_file_close(file);
    tap_ok(atomic_load(&warnings) == 1 &&
               strstr(last_warning, "cannot write the metrics to ") != NULL,
           "a folder that cannot be used is one warning, not ten");
}

/* The thread hangs in rename. Later it goes on, in a program that has closed the file: it
 * must neither ask for another text nor touch what has been freed. */
static void test_hang(void)
{
    struct hvd_metrics_file *file;
    int calls;

    sem_init(&renaming.entered, 0, 0);
    sem_init(&renaming.let_go, 0, 0);
    atomic_store(&warnings, 0);
    atomic_store(&renaming.hangs, true);
    file = open_file(folder, 50);
    sem_wait(&renaming.entered);
    hvd_metrics_file_close(file);
    tap_ok(atomic_load(&warnings) == 1 &&
               strstr(last_warning, "does its file system hang?") != NULL,
           "close returns although the file system hangs, with a warning");
    calls = atomic_load(&made.calls);
    atomic_store(&renaming.hangs, false);
    sem_post(&renaming.let_go);
    while (!contains(path, "more\n")) {
        usleep(1000);
    }
    usleep(20000);
    tap_ok(atomic_load(&made.calls) == calls && atomic_load(&made.last) == 0,
           "a thread that was left behind asks for no more texts");
}

int main(void)
{
    char command[160];

    if (mkdtemp(folder) == NULL) {
        perror(folder);
        return 1;
    }
    snprintf(path, sizeof(path), "%s/a.prom", folder);
    hvd_log_to(keep_line, HVD_LOG_WARN);
    test_replace();
    test_refusal();
    test_reader();
    test_thread();
    test_warning();
    test_hang();
    snprintf(command, sizeof(command), "rm -r %s", folder);
    if (system(command) != 0) {
        tap_note("%s is left", folder);
    }
    return tap_done();
}
