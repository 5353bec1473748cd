/* SPDX-License-Identifier: Apache-2.0 */
/* Process sets that their members create, and sums in them, for tests that run as each
 * rank of a job. Bit N of `bits` stands for rank N of the job. A failure ends the
 * process. */
#ifndef HVD_TEST_SETS_H
#define HVD_TEST_SETS_H

#include <stdbool.h>

#include "collectives/hvd.h"

enum {
    SETS_ELEMENTS = 1000 /* elements of a tensor */
};

/* Starts the creation of a set; sets_finish waits for it and returns the set's number. */
struct hvd_request *sets_start(unsigned bits, const char *label);
int sets_finish(struct hvd_request *request);
void sets_remove(int id);

/* Starts a sum of values that differ between ranks; sets_finish_sum waits for it and
 * returns whether the sum is right. */
struct hvd_request *sets_start_sum(int id, const char *name, float *data);
bool sets_finish_sum(struct hvd_request *request, unsigned bits, const float *data);

#endif
