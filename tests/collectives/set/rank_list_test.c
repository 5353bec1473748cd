/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of ranks as text: written and read again, and texts that are no list. */
#include "collectives/set/rank_list.h"

#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/hvd_status.h"
#include "tests/tap.h"

enum {
    SIZE = 40,
    ROUNDS = 2000
};

static bool is_written(const int *ranks, int count, const char *wanted)
{
    char *text = hvd_rank_list_write(ranks, count);
    bool good = text != NULL && strcmp(text, wanted) == 0;

    if (!good) {
        tap_note("%s is not %s", text != NULL ? text : "nothing", wanted);
    }
    free(text);
    return good;
}

/* Writes a random list of ranks below SIZE, with long or short runs of equal steps, and
 * reads it again. Returns whether it has stayed the same. */
static bool survives(void)
{
    int ranks[SIZE], count = 0, *read = NULL, read_count = 0;
    int step = 1 + rand() % 4;
    char *text;
    bool good;

    for (int rank = rand() % SIZE; rank < SIZE;
         rank += rand() % 6 == 0 ? 1 + rand() % 9 : step) {
        ranks[count++] = rank;
    }
    text = hvd_rank_list_write(ranks, count);
    good = hvd_rank_list_read(text, SIZE, &read, &read_count) == 0 &&
           read_count == count &&
           memcmp(ranks, read, (size_t)count * sizeof(ranks[0])) == 0;
    free(text);
    free(read);
    return good;
}

static bool is_no_list(const char *text)
{
    int *ranks = NULL, count = 0;
    bool good = hvd_rank_list_read(text, SIZE, &ranks, &count) == HVD_ERR_ARG;

    free(ranks);
    return good;
}

static bool are_refused(void)
{
    static const char *const others[] = {"",
                                         ",",
                                         "a",
                                         "-1",
                                         "3,2",
                                         "3,3",
                                         "0-40",
                                         "40",
                                         "7-3",
                                         "0-7,7",
                                         "0-7:0",
                                         "0-7:",
                                         "0-",
                                         "0,",
                                         "0 ,1",
                                         "0-7:-1",
                                         "0x1",
                                         "0-3-5",
                                         "0:2",
                                         "1e1",
                                         "0-7:40",
                                         "4294967297",
                                         "99999999999999999999"};
    bool good = true;

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        bool is_refused = is_no_list(others[i]);

        if (!is_refused) {
            tap_note("'%s'", others[i]);
        }
        good &= is_refused;
    }
    return good;
}

int main(void)
{
    bool good = true;

    srand(tap_seed(3));
    tap_ok(is_written((const int[]){3}, 1, "3") &&
               is_written((const int[]){3, 5}, 2, "3,5") &&
               is_written((const int[]){0, 1, 2, 3}, 4, "0-3") &&
               is_written((const int[]){0, 4, 8, 12, 13}, 5, "0-12:4,13") &&
               is_written((const int[]){0, 1, 3, 5, 7}, 5, "0,1-7:2"),
           "ranks in equal steps have a short text");
    for (int i = 0; i < ROUNDS && good; i++) {
        good = survives();
    }
    tap_ok(good, "a list that was written is read back unchanged");
    tap_ok(are_refused(), "other texts are refused");
    return tap_done();
}
