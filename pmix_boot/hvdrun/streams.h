/* SPDX-License-Identifier: Apache-2.0 */
/* The pipes between a rank and hvdrun, and the files that get a copy of its output. */
#ifndef HVDRUN_STREAMS_H
#define HVDRUN_STREAMS_H

#include "pmix_boot/hvdrun/supervise.h"

struct hvdrun_options;

/* Opens the pipes of one rank and its files where wanted. rank_ends are for the rank, to
 * be closed once it has started; the rest is in streams until hvdrun_streams_close. */
int hvdrun_streams_open(const struct hvdrun_options *options, int rank,
                        struct hvdrun_stream streams[HVDRUN_STREAMS],
                        int rank_ends[HVDRUN_STREAMS], struct hvd_error *err);

/* Closes the open streams of one rank and frees its labels; zeroed streams with fd -1 are
 * fine. */
void hvdrun_streams_close(struct hvdrun_stream streams[HVDRUN_STREAMS]);

/* The standard input of rank 0: hvdrun's own when that is a file or a pipe. Ranks are no
 * part of the terminal's foreground group, so it and the other ranks get an empty one.
 * The caller closes it. */
int hvdrun_streams_input(int rank, struct hvd_error *err);

/* Whether the files that the job will write can be written, as far as can be told without
 * making them. HVD_ERR_ARG names the option. */
int hvdrun_streams_check_files(const struct hvdrun_options *options,
                               struct hvd_error *err);

#endif
