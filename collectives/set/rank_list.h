/* SPDX-License-Identifier: Apache-2.0 */
/* Ascending lists of ranks, and their text, which is short for ranks in equal steps:
 * "0-7", "0-12:4,13". */
#ifndef HVD_RANK_LIST_H
#define HVD_RANK_LIST_H

/* Writes ascending ranks as text, which the caller frees. Returns NULL without memory. */
char *hvd_rank_list_write(const int *ranks, int count);

/* Reads a list of ascending ranks, at least one, of a job with `size` ranks. The caller
 * frees *ranks. Returns 0, HVD_ERR_NOMEM, or HVD_ERR_ARG for any other text. */
int hvd_rank_list_read(const char *text, int size, int **ranks, int *count);

/* Returns the index of a rank among ascending ranks, or -1. */
int hvd_rank_list_index(const int *ranks, int count, int rank);

#endif
