/* SPDX-License-Identifier: Apache-2.0 */
/* The straggler report as a page for a browser: the frame of contrib/page, with the data
 * of this job in it. */
#ifndef HVD_STRAGGLER_PAGE_H
#define HVD_STRAGGLER_PAGE_H

#include "collectives/trace/straggler_text.h"

/* Reads the frame of the page, which is installed beside libhvd. The caller frees it. */
int hvd_straggler_page_read(char **frame, struct hvd_error *err);

/* Prints the frame with the data in it. The sums must have a history and buckets. Returns
 * HVD_ERR_NOMEM if the data could not be prepared, and has printed nothing then. */
int hvd_straggler_page_print(const char *frame, const struct hvd_straggler_sums *sums,
                             const struct hvd_straggler_job *job, FILE *out);

/* Stores a time in a byte: three bits of the mantissa of us + 1 below its leading one,
 * and its exponent. The relative error is at most 1/8, and 0 stays 0. */
unsigned char hvd_straggler_page_code(uint32_t us);

#endif
