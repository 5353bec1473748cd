/* SPDX-License-Identifier: Apache-2.0 */
/* Versions of programs that a node has beside hvd. */
#ifndef HVD_INFO_PROGRAMS_H
#define HVD_INFO_PROGRAMS_H

#include <stdio.h>

#include "contrib/info/job.h"

/* Prints a line with Slurm's release, in a job of Slurm, and one with the release of
 * Python and of its frameworks: of `python` in PATH, else of `python3`. A program that is
 * not there, or does not answer within a few seconds, has no line. */
void hvd_info_programs_print(hvd_info_lookup lookup, FILE *out);

#endif
