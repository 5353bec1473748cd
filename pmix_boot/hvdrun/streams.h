/* SPDX-License-Identifier: Apache-2.0 */
/* The pipes between a rank and hvdrun, and the files that get a copy of its output. */
#ifndef HVDRUN_STREAMS_H
#define HVDRUN_STREAMS_H

#include "pmix_boot/hvdrun/supervise.h"

struct hvdrun_options;

/* Opens the pipes of one rank and, with --output-filename, its files. The caller closes
 * rank_ends once the rank has started, and the rest with hvdrun_streams_close. */
int hvdrun_streams_open(const struct hvdrun_options *options, int rank,
                        struct hvdrun_stream streams[HVDRUN_STREAMS],
                        int rank_ends[HVDRUN_STREAMS], struct hvd_error *err);

/* Closes the open streams of one rank and frees its labels. In streams that were not
 * opened, fd and lines.copy are -1. */
void hvdrun_streams_close(struct hvdrun_stream streams[HVDRUN_STREAMS]);

/* Opens the standard input of a rank. Rank 0 gets hvdrun's own, unless that is a
 * terminal: ranks are not in its foreground process group and could not read it. In all
 * other cases a rank reads /dev/null. The caller closes the descriptor. */
int hvdrun_streams_input(int rank, struct hvd_error *err);

/* Checks that the files that the job will write can be written, as far as possible
 * without creating them. HVD_ERR_ARG names the option. */
int hvdrun_streams_check_files(const struct hvdrun_options *options,
                               struct hvd_error *err);

#endif
