/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of tensors in flight: merged lists are equal to one list of all ranks, and they
 * stay short. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/agreement/stalled.h"
#include "tests/tap.h"

enum {
    RANKS = 200,
    TENSORS = 30,
    GROUPS = 7, /* nodes of the tree that merge the lists of their ranks */
    MANY = 20000
};

static struct hvd_key name_key(int number, int pad, char *name)
{
    int used = sprintf(name, "t%d.", number);

    memset(name + used, 'x', (size_t)pad);
    name[used + pad] = '\0';
    return hvd_key_make(number % 3, name);
}

static bool send(struct hvd_stalled *from, struct hvd_stalled *to, size_t *most)
{
    struct hvd_writer writer = {0};
    bool good;

    hvd_stalled_put(from, &writer);
    *most = writer.bytes > *most ? writer.bytes : *most;
    good = !writer.failed && hvd_stalled_merge(to, writer.data, writer.bytes) == 0;
    hvd_writer_finish(&writer);
    return good;
}

static bool same_holders(const struct hvd_stalled *list, bool held[TENSORS][RANKS])
{
    int seen = 0;

    for (const struct hvd_stalled_tensor *tensor = list->first; tensor != NULL;
         tensor = tensor->next) {
        int number = atoi(tensor->key.name + 1), oldest = 0;

        for (int rank = 0; rank < RANKS; rank++) {
            if (hvd_stalled_holds(tensor, rank) != held[number][rank]) {
                return false;
            }
            oldest = held[number][rank] ? rank : oldest;
        }
        if (tensor->age_ns != oldest || tensor->key.set != number % 3) {
            return false;
        }
        seen++;
    }
    return seen == TENSORS;
}

/* Merges lists of tensors that one rank, some ranks or nearly all ranks have in flight.
 * The age of a tensor on a rank is the rank's number. */
static bool merge_groups(void)
{
    static bool held[TENSORS][RANKS];
    struct hvd_stalled all, groups[GROUPS];
    bool good = true;
    size_t most = 0;

    hvd_stalled_init(&all, RANKS, 1);
    for (int i = 0; i < GROUPS; i++) {
        hvd_stalled_init(&groups[i], RANKS, 1);
    }
    for (int number = 0; number < TENSORS; number++) {
        int odds = 1 + rand() % 20;

        for (int rank = 0; rank < RANKS; rank++) {
            char name[64];
            struct hvd_key key = name_key(number, 0, name);

            held[number][rank] = rank == number || rand() % odds == 0;
            if (held[number][rank]) {
                good &= hvd_stalled_add(&groups[rank % GROUPS], &key, 0, rank, rank) == 0;
            }
        }
    }
    for (int i = 0; i < GROUPS; i++) {
        good &= send(&groups[i], &all, &most);
        hvd_stalled_finish(&groups[i]);
    }
    good &= same_holders(&all, held) && !hvd_stalled_is_short(&all);
    hvd_stalled_finish(&all);
    return good;
}

/* Two ranks have far too many tensors in flight, and nearly all of them in common. */
static bool shorten(uint64_t salt, size_t *most, char *first)
{
    struct hvd_stalled lists[2], all;
    int kept = 0;
    bool good = true;

    hvd_stalled_init(&all, RANKS, salt);
    for (int rank = 0; rank < 2; rank++) {
        hvd_stalled_init(&lists[rank], RANKS, salt);
        for (int i = 0; i < (rank == 0 ? MANY : MANY / 2); i++) {
            char name[1200];
            struct hvd_key key = name_key(i, 1000, name);

            good &= hvd_stalled_add(&lists[rank], &key, 0, rank, 5) == 0;
        }
        good &= send(&lists[rank], &all, most);
        hvd_stalled_finish(&lists[rank]);
    }
    for (const struct hvd_stalled_tensor *tensor = all.first; tensor != NULL;
         tensor = tensor->next, kept++) {
        good &= hvd_stalled_holds(tensor, 0) &&
                hvd_stalled_holds(tensor, 1) == (atoi(tensor->key.name + 1) < MANY / 2);
    }
    good &= kept > 100 && hvd_stalled_is_short(&all);
    strcpy(first, all.first != NULL ? all.first->key.name : "");
    hvd_stalled_finish(&all);
    return good;
}

int main(void)
{
    unsigned seed = tap_seed(17);
    char first[1200], second[1200];
    size_t most = 0;
    bool good;

    srand(seed);
    tap_ok(merge_groups(),
           "merged lists say which ranks have which tensors, and for how long");
    good = shorten(1, &most, first) && shorten(2, &most, second);
    tap_ok(good, "a shortened list is right about the tensors that are left");
    tap_ok(most <= 2 * (size_t)HVD_STALLED_BYTES,
           "a shortened list keeps to its limit: %zu", most);
    tap_ok(strcmp(first, second) != 0, "the next list leaves out other tensors");
    return tap_done();
}
