/* SPDX-License-Identifier: Apache-2.0 */
/* Ascending lists of ranks, and their text, which is short where ranks follow each other
 * in equal steps: "0-7", "0-12:4,13". */
#ifndef HVD_RANK_LIST_H
#define HVD_RANK_LIST_H

/* Writes ascending ranks. Returns the text, which the caller frees; NULL without
 * memory. */
char *hvd_rank_list_write(const int *ranks, int count);

/* Reads a list of ranks of a job with `size` ranks: one at least, ascending. *ranks is
 * the caller's to free. Returns 0, HVD_ERR_NOMEM, or HVD_ERR_ARG for any other text. */
int hvd_rank_list_read(const char *text, int size, int **ranks, int *count);

/* The index of a rank among ascending ones, or -1. */
int hvd_rank_list_index(const int *ranks, int count, int rank);

#endif
