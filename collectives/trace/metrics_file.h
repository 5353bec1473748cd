/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that writes a text into a file every few seconds. A file system that hangs
 * stops this thread alone. */
#ifndef HVD_METRICS_FILE_H
#define HVD_METRICS_FILE_H

#include <stdbool.h>

#include "gpu_binding/base/error.h"

struct hvd_metrics_file;

struct hvd_metrics_file_config {
    const char *directory; /* absolute; made if it is missing. Copied */
    const char *name; /* of the file. Copied */
    int every_ms; /* between two writes */
    int patience_ms; /* how long close waits for the last write */
    /* Returns the text, which is freed, or NULL without memory. is_last: close has been
     * called. Called by the thread, and never after close has returned. */
    char *(*make_text)(void *context, bool is_last);
    void *context;
};

/* Starts the thread, which writes the first text at once. If a text cannot be written, it
 * logs one warning, and tries again. The caller owns *out. */
int hvd_metrics_file_open(const struct hvd_metrics_file_config *config,
                          struct hvd_metrics_file **out, struct hvd_error *err);

/* Writes the last text, and ends the thread. If the file system hangs, it logs a warning
 * after patience_ms and leaves the thread behind. NULL is fine. */
void hvd_metrics_file_close(struct hvd_metrics_file *file);

/* Replaces directory/name by the text: a reader gets the old file or the new one, never a
 * part. Makes the directory, and those above it, if it is missing. Others may read the
 * file, whatever the umask is, because node_exporter has a user of its own. */
int hvd_metrics_file_replace(const char *directory, const char *name, const char *text,
                             struct hvd_error *err);

#endif
