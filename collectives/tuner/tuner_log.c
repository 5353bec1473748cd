/* SPDX-License-Identifier: Apache-2.0 */
/* The autotuner's log, in Horovod's format. */
#include "collectives/tuner/tuner_log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/log.h"

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

struct column {
    const char *name;
    double value; /* where there is no such knob */
    double unit;
};

/* hvd always takes the ways within a node first, and always remembers tensors. */
static const struct column columns[] = {
    {"hierarchical_allreduce", 1, 1}, {"hierarchical_allgather", 1, 1},
    {"torus_allreduce", 0, 1},        {"cache_enabled", 1, 1},
    {"cycle_time_ms", 1, 1},          {"tensor_fusion_threshold", 128, 1024 * 1024},
};

struct hvd_tuner_log {
    FILE *file;
    char *path;
    const struct hvd_knob *knobs;
    int count;
};

static int find_knob(const struct hvd_tuner_log *log, const char *name)
{
    for (int i = 0; i < log->count; i++) {
        if (strcmp(log->knobs[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

static bool is_column(const char *name)
{
    for (int i = 0; i < LENGTH(columns); i++) {
        if (strcmp(columns[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Warns once: a disk that is full stays full. */
static void flush_or_give_up(struct hvd_tuner_log *log)
{
    if (fflush(log->file) != 0) {
        hvd_log(HVD_LOG_WARN, "cannot write the autotuner's log %s: %s; tuning goes on",
                log->path, strerror(errno));
        fclose(log->file);
        log->file = NULL;
    }
}

static void write_names(struct hvd_tuner_log *log)
{
    for (int i = 0; i < LENGTH(columns); i++) {
        fprintf(log->file, "%s,", columns[i].name);
    }
    fputs("score", log->file);
    for (int i = 0; i < log->count; i++) {
        if (!is_column(log->knobs[i].name)) {
            fprintf(log->file, ",%s", log->knobs[i].name);
        }
    }
    fputc('\n', log->file);
    flush_or_give_up(log);
}

struct hvd_tuner_log *hvd_tuner_log_open(const char *path, const struct hvd_knob *knobs,
                                         int count)
{
    struct hvd_tuner_log *log = calloc(1, sizeof(*log));

    if (log == NULL) {
        return NULL;
    }
    log->knobs = knobs;
    log->count = count;
    log->path = strdup(path);
    log->file = log->path != NULL ? fopen(path, "we") : NULL;
    if (log->file == NULL) {
        hvd_log(HVD_LOG_WARN, "cannot write the autotuner's log %s: %s; tuning goes on",
                path, strerror(errno));
        hvd_tuner_log_close(log);
        return NULL;
    }
    write_names(log);
    return log;
}

void hvd_tuner_log_close(struct hvd_tuner_log *log)
{
    if (log == NULL) {
        return;
    }
    if (log->file != NULL) {
        fclose(log->file);
    }
    free(log->path);
    free(log);
}

void hvd_tuner_log_write(struct hvd_tuner_log *log,
                         const struct hvd_tuner_setting *setting, double score)
{
    if (log == NULL || log->file == NULL) {
        return;
    }
    for (int i = 0; i < LENGTH(columns); i++) {
        int knob = find_knob(log, columns[i].name);
        double value = columns[i].value;

        if (knob >= 0) {
            value = log->knobs[knob].values[setting->index[knob]] / columns[i].unit;
        }
        fprintf(log->file, "%g,", value);
    }
    fprintf(log->file, "%g", score);
    for (int i = 0; i < log->count; i++) {
        if (!is_column(log->knobs[i].name)) {
            fprintf(log->file, ",%g", log->knobs[i].values[setting->index[i]]);
        }
    }
    fputc('\n', log->file);
    flush_or_give_up(log);
}
