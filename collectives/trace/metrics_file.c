/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the metrics of a node. */
#include "collectives/trace/metrics_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/log.h"
#include "gpu_binding/base/thread.h"

struct hvd_metrics_file {
    struct hvd_metrics_file_config config;
    pthread_t thread;
    bool has_warned; /* used by the thread only */

    pthread_mutex_t lock; /* protects the members below */
    pthread_cond_t changed;
    bool is_ending; /* the next text is the last one */
    bool is_done; /* the thread has written the last text, or has failed to */
    bool is_left; /* close has not waited: the thread frees the struct */
};

/* --- one file --- */

/* Makes the directories of a path up to its last slash; those that exist are fine. */
static void make_directories(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0777);
        *slash = '/';
    }
}

/* Creates a file of its own for this process: in a folder that all users share, nobody
 * can put a link in its place. The name hides it from node_exporter, which reads *.prom.
 */
static int create_beside(char *path)
{
    int fd = mkostemp(path, O_CLOEXEC);

    if (fd < 0 && errno == ENOENT) {
        make_directories(path);
        memset(path + strlen(path) - 6, 'X', 6);
        fd = mkostemp(path, O_CLOEXEC);
    }
    return fd;
}

/* Returns whether all has been written; errno says why not. */
static bool write_text(int fd, const char *text)
{
    size_t left = strlen(text);

    while (left > 0) {
        ssize_t wrote = write(fd, text, left);

        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote <= 0) {
            return false;
        }
        text += wrote;
        left -= (size_t)wrote;
    }
    return true;
}

/* Fills the new file, and gives it its name. */
static bool finish_file(int fd, const char *text, const char *from, const char *to)
{
    bool is_written = write_text(fd, text) && fchmod(fd, 0644) == 0;
    int error = errno;

    if (close(fd) != 0 && is_written) {
        is_written = false;
        error = errno;
    }
    if (is_written && rename(from, to) != 0) {
        is_written = false;
        error = errno;
    }
    if (!is_written) {
        (void)unlink(from);
        errno = error;
    }
    return is_written;
}

int hvd_metrics_file_replace(const char *directory, const char *name, const char *text,
                             struct hvd_error *err)
{
    char *to = NULL;
    char *from = NULL;
    int status = HVD_ERR_NOMEM;
    int fd;

    if (asprintf(&to, "%s/%s", directory, name) < 0) {
        to = NULL;
    } else if (asprintf(&from, "%s/.%s.XXXXXX", directory, name) < 0) {
        from = NULL;
    }
    if (to == NULL || from == NULL) {
        free(to);
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the metrics");
    }
    fd = create_beside(from);
    if (fd >= 0 && finish_file(fd, text, from, to)) {
        status = 0;
    } else {
        status =
            hvd_fail(err, HVD_ERR_SYS,
                     "cannot write the metrics to %s: %m; the job runs on, and tries "
                     "again: HVD_METRICS needs a folder in which you may make files",
                     to);
    }
    free(from);
    free(to);
    return status;
}

/* --- the thread --- */

static void free_file(struct hvd_metrics_file *file)
{
    free((char *)file->config.directory);
    free((char *)file->config.name);
    pthread_mutex_destroy(&file->lock);
    pthread_cond_destroy(&file->changed);
    free(file);
}

static struct timespec time_after(int ms)
{
    const int64_t at_ns = hvd_clock_ns() + (int64_t)ms * 1000000;

    return (struct timespec){at_ns / 1000000000, at_ns % 1000000000};
}

/* Writes the text without the lock, because the file system may hang. */
static void write_file(struct hvd_metrics_file *file, char *text)
{
    struct hvd_error err = {.text = "no memory for the metrics"};
    int status = HVD_ERR_NOMEM;

    pthread_mutex_unlock(&file->lock);
    if (text != NULL) {
        status = hvd_metrics_file_replace(file->config.directory, file->config.name, text,
                                          &err);
    }
    if (status != 0 && !file->has_warned) {
        file->has_warned = true;
        hvd_log(HVD_LOG_WARN, "%s", err.text);
    }
    free(text);
    pthread_mutex_lock(&file->lock);
}

static void *run_file(void *arg)
{
    struct hvd_metrics_file *file = arg;
    bool is_last = false;
    bool is_left;

    pthread_mutex_lock(&file->lock);
    while (!is_last && !file->is_left) {
        struct timespec until;
        int error = 0;

        is_last = file->is_ending;
        write_file(file, file->config.make_text(file->config.context, is_last));
        until = time_after(file->config.every_ms);
        while (!file->is_ending && error == 0) {
            error = pthread_cond_timedwait(&file->changed, &file->lock, &until);
        }
    }
    file->is_done = true;
    is_left = file->is_left;
    pthread_cond_signal(&file->changed);
    pthread_mutex_unlock(&file->lock);
    if (is_left) {
        free_file(file);
    }
    return NULL;
}

static int start_file(struct hvd_metrics_file *file, struct hvd_error *err)
{
    pthread_condattr_t monotonic;
    int error;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&file->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&file->lock, NULL);
    error = hvd_thread_start(&file->thread, run_file, file);
    if (error != 0) {
        errno = error;
        return hvd_fail(err, HVD_ERR_SYS,
                        "cannot start the thread that writes the metrics: %m; none are "
                        "written");
    }
    return 0;
}

int hvd_metrics_file_open(const struct hvd_metrics_file_config *config,
                          struct hvd_metrics_file **out, struct hvd_error *err)
{
    struct hvd_metrics_file *file = calloc(1, sizeof(*file));
    int status;

    if (file == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the metrics");
    }
    file->config = *config;
    file->config.directory = strdup(config->directory);
    file->config.name = strdup(config->name);
    if (file->config.directory == NULL || file->config.name == NULL) {
        free((char *)file->config.directory);
        free((char *)file->config.name);
        free(file);
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the metrics");
    }
    status = start_file(file, err);
    if (status != 0) {
        free_file(file);
        return status;
    }
    *out = file;
    return 0;
}

void hvd_metrics_file_close(struct hvd_metrics_file *file)
{
    struct timespec until;
    int error = 0;

    if (file == NULL) {
        return;
    }
    until = time_after(file->config.patience_ms);
    pthread_mutex_lock(&file->lock);
    file->is_ending = true;
    pthread_cond_signal(&file->changed);
    while (!file->is_done && error == 0) {
        error = pthread_cond_timedwait(&file->changed, &file->lock, &until);
    }
    if (file->is_done) {
        pthread_mutex_unlock(&file->lock);
        pthread_join(file->thread, NULL);
        free_file(file);
        return;
    }
    file->is_left = true;
    pthread_detach(file->thread);
    hvd_log(HVD_LOG_WARN,
            "%s/%s has not been written within %d s: does its file system hang? The last "
            "metrics of this node are lost",
            file->config.directory, file->config.name, file->config.patience_ms / 1000);
    pthread_mutex_unlock(&file->lock);
}
