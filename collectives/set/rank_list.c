/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of ranks as text. */
#include "collectives/set/rank_list.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu_binding/base/hvd_status.h"

/* Returns how many ranks, from the first one on, have equal distances. */
static int run_length(const int *ranks, int count)
{
    int length = count > 1 ? 2 : 1;

    while (length < count && ranks[length] - ranks[length - 1] == ranks[1] - ranks[0]) {
        length++;
    }
    return length;
}

char *hvd_rank_list_write(const int *ranks, int count)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);

    for (int i = 0; out != NULL && i < count;) {
        int length = run_length(ranks + i, count - i);

        fprintf(out, "%s%d", i > 0 ? "," : "", ranks[i]);
        if (length > 2) {
            fprintf(out, "-%d", ranks[i + length - 1]);
        }
        if (length > 2 && ranks[i + 1] - ranks[i] > 1) {
            fprintf(out, ":%d", ranks[i + 1] - ranks[i]);
        }
        i += length > 2 ? length : 1;
    }
    return out != NULL && fclose(out) == 0 ? text : NULL;
}

/* Reads a number below `most`, without a sign. Returns -1 if there is none. */
static int read_number(const char **text, int most)
{
    int64_t number = 0;

    if (!isdigit((unsigned char)**text)) {
        return -1;
    }
    while (isdigit((unsigned char)**text) && number < most) {
        number = 10 * number + (**text - '0');
        (*text)++;
    }
    return number < most ? (int)number : -1;
}

/* Reads "3", "0-7" or "0-12:4", and stops at the character behind it. Writes the ranks
 * unless `ranks` is NULL, and the last one to *last. Returns how many ranks there are, or
 * 0 if the text is malformed. */
static int read_run(const char **text, int size, int *last, int *ranks)
{
    int first = read_number(text, size), end = first, step = 1, count = 0;

    if (first >= 0 && **text == '-') {
        (*text)++;
        end = read_number(text, size);
        if (**text == ':') {
            (*text)++;
            step = read_number(text, size);
        }
    }
    if (first <= *last || end < first || step < 1) {
        return 0;
    }
    for (int rank = first; rank <= end; rank += step) {
        *last = rank;
        if (ranks != NULL) {
            ranks[count] = rank;
        }
        count++;
    }
    return count;
}

/* Reads all runs of a list. Returns the number of ranks, or 0 if the list is
 * malformed. */
static int read_runs(const char *text, int size, int *ranks)
{
    int last = -1, count = 0;

    for (;;) {
        int run = read_run(&text, size, &last, ranks != NULL ? ranks + count : NULL);

        count += run;
        if (run == 0 || (*text != ',' && *text != '\0')) {
            return 0;
        }
        if (*text++ == '\0') {
            return count;
        }
    }
}

int hvd_rank_list_read(const char *text, int size, int **ranks, int *count)
{
    int found = read_runs(text, size, NULL);

    if (found == 0) {
        return HVD_ERR_ARG;
    }
    *ranks = malloc((size_t)found * sizeof((*ranks)[0]));
    if (*ranks == NULL) {
        return HVD_ERR_NOMEM;
    }
    *count = read_runs(text, size, *ranks);
    return 0;
}

int hvd_rank_list_index(const int *ranks, int count, int rank)
{
    int low = 0, high = count;

    if (rank >= 0 && rank < count && ranks[rank] == rank) {
        return rank; /* the usual case: in the global set, the index is the rank */
    }
    while (low < high) {
        int middle = low + (high - low) / 2;

        if (ranks[middle] == rank) {
            return middle;
        }
        if (ranks[middle] < rank) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return -1;
}
