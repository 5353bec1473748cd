/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives that the calling thread runs at once, on agreed buffers: for direct.h, which says
 * who may.
 *
 * From begin to end this thread drives (progress.h), but not between two calls: there the program
 * computes. */
#ifndef HVD_DIRECT_RUN_H
#define HVD_DIRECT_RUN_H

#include <stdbool.h>

#include "collectives/request/descriptor.h"
#include "gpu_binding/base/error.h"

struct hvd_algorithm_choices;
struct hvd_direct_run;
struct hvd_engine;
struct hvd_request;

void hvd_direct_begin(struct hvd_engine *engine);
void hvd_direct_end(struct hvd_engine *engine);

/* One collective of all entries of a request (borrowed until destroy), by these algorithms (NULL: by
 * the job's). word: how messages name it. The caller owns *out. */
int hvd_direct_run_create(struct hvd_engine *engine, enum hvd_kind kind, const char *word,
                          struct hvd_request *request,
                          const struct hvd_algorithm_choices *choices,
                          struct hvd_direct_run **out, struct hvd_error *err);

/* To its end, without sleeping; as often as wanted. */
int hvd_direct_run_go(struct hvd_direct_run *run, struct hvd_error *err);

/* NULL is fine. False: the job has failed, and another rank may still write to what the run had,
 * which stays for ever; so must the request. */
bool hvd_direct_run_destroy(struct hvd_direct_run *run);

#endif
