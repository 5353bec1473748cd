/* SPDX-License-Identifier: Apache-2.0 */
/* Which rank failed first, told to hvdrun: the rank that ends first is often one that has noticed
 * another's failure. HVD_CAUSE names a file in a directory that only the user may enter; who tells
 * first writes it. Without the variable nothing is told.
 *
 * Threads: any. */
#ifndef HVD_CAUSE_H
#define HVD_CAUSE_H

struct hvd_cause {
    int rank; /* that failed */
    int teller; /* which may be another */
    char text[256]; /* why, in one line; may be empty */
};

/* rank has failed. Only the first call in the job counts, until hvd_cause_forget. */
void hvd_cause_tell(int rank, int teller, const char *text);

/* The job begins anew: earlier failures are over. */
void hvd_cause_forget(void);

/* Returns 0, or HVD_ERR_SYS where nobody has told anything. */
int hvd_cause_read(const char *path, struct hvd_cause *out);

#endif
