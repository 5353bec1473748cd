/* SPDX-License-Identifier: Apache-2.0 */
/* Tells hvdrun which rank failed first, because the rank that ends first has often only
 * noticed the failure of another. HVD_CAUSE names a file in a directory that only the
 * user may enter. Each process adds a line there when it joins a job and when it learns
 * of a failure:
 *
 *   begin WHO
 *   failed WHO RANK TELLER TEXT
 *   missed WHO OPERATION   it was in OPERATION when a rank left the job in good order
 *
 * WHO is the launcher's number of the process, TELLER the rank that reports the failure.
 * A process's n-th "begin" means that it joins job n. hvd_cause_read returns the first
 * failure in the job with the highest number; reports of earlier jobs do not count.
 * Without the variable nothing is written.
 *
 * Threads: any. */
#ifndef HVD_CAUSE_H
#define HVD_CAUSE_H

#include <stdbool.h>

struct hvd_cause {
    int rank; /* the rank that failed */
    int teller; /* the rank that reported it */
    char text[256]; /* the reason, in one line; may be empty */
    /* another rank reported the failure, or had a request fail because of it */
    bool is_missed;
    /* The first rank that was in an operation when `rank` left the job, and that
     * operation; "": none was. */
    int waiter;
    char operation[160];
};

/* Reports that `rank` has failed, and that rank `teller` noticed it. A negative rank
 * means this process, if only its launcher's number is known. */
void hvd_cause_tell(int rank, int teller, const char *text);

/* Reports that a request of this process failed because another rank has left. operation:
 * the request in words, such as "allreduce 'x'". */
void hvd_cause_miss(const char *operation);

/* Reports that this process joins a job: failures of the previous job no longer count. */
void hvd_cause_begin(void);

/* Reads the first failure. Returns 0, HVD_ERR_SYS if nothing has been reported, or
 * HVD_ERR_NOMEM. */
int hvd_cause_read(const char *path, struct hvd_cause *out);

#endif
