/* SPDX-License-Identifier: Apache-2.0 */
/* Process sets that their members create, and sums in them, for tests that run as each
 * rank of a job. A set's ranks are the bits of a number. What does not go well ends the
 * process. */
#ifndef HVD_TEST_SETS_H
#define HVD_TEST_SETS_H

#include <stdbool.h>

#include "collectives/hvd.h"

enum {
    SETS_ELEMENTS = 1000 /* of a tensor */
};

/* Creates a set; finish returns its number. */
struct hvd_request *sets_start(unsigned bits, const char *label);
int sets_finish(struct hvd_request *request);
void sets_remove(int id);

/* Adds up what differs from rank to rank; finish tells whether the sum is right. */
struct hvd_request *sets_start_sum(int id, const char *name, float *data);
bool sets_finish_sum(struct hvd_request *request, unsigned bits, const float *data);

#endif
