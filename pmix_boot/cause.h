/* SPDX-License-Identifier: Apache-2.0 */
/* Which rank failed first, told to hvdrun: the rank that ends first is often one that has noticed
 * another's failure. HVD_CAUSE names a file in a directory that only the user may enter; each
 * process adds a line there when it joins a job and when it knows of a failure:
 *
 *   begin WHO
 *   failed WHO RANK TELLER TEXT        WHO: the launcher's number of the process
 *   missed WHO                         it still needed a rank that has left the job in good order
 *
 * The first failure of the last job counts: a process that joins its n-th job ends what was said
 * of earlier ones, but a rank that is late for the same job does not. Without the variable nothing
 * is told.
 *
 * Threads: any. */
#ifndef HVD_CAUSE_H
#define HVD_CAUSE_H

#include <stdbool.h>

struct hvd_cause {
    int rank; /* that failed */
    int teller; /* which may be another */
    char text[256]; /* why, in one line; may be empty */
    bool is_missed; /* other ranks still needed it */
};

/* rank has failed. A rank below 0 is this process, of which only the launcher's number is known. */
void hvd_cause_tell(int rank, int teller, const char *text);

/* A request of this process has failed because another rank has left. */
void hvd_cause_miss(void);

/* This process joins a job: failures of the one before are over. */
void hvd_cause_begin(void);

/* Returns 0, HVD_ERR_SYS where nobody has told anything, or HVD_ERR_NOMEM. */
int hvd_cause_read(const char *path, struct hvd_cause *out);

#endif
