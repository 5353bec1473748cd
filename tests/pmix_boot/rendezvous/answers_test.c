/* SPDX-License-Identifier: Apache-2.0 */
/* Which answers a rank of a static job can get again. */
#include "pmix_boot/rendezvous/answers.h"

#include <string.h>

#include "tests/tap.h"

enum {
    MOST = 3
};

static struct hvd_answers answers;

/* Keeps an answer to the ranks in `ranks`, which ends with -1. The questions of the ranks
 * have the numbers first, first + 1, ... */
static void keep(const char *text, const int *ranks, uint64_t first)
{
    struct hvd_answer answer = {.data = strdup(text),
                                .bytes = strlen(text),
                                .ranks = calloc(MOST, sizeof(int32_t)),
                                .numbers = calloc(MOST, sizeof(uint64_t))};

    if (answer.data == NULL || answer.ranks == NULL || answer.numbers == NULL) {
        abort();
    }
    for (; ranks[answer.count] >= 0; answer.count++) {
        answer.ranks[answer.count] = ranks[answer.count];
        answer.numbers[answer.count] = first + (uint64_t)answer.count;
    }
    hvd_answers_keep(&answers, &answer);
}

static bool is(int index, uint64_t number, const char *text)
{
    const struct hvd_answer *answer = hvd_answers_find(&answers, index, number);

    return answer != NULL && strcmp(answer->data, text) == 0;
}

static bool is_none(int index, uint64_t number)
{
    return hvd_answers_find(&answers, index, number) == NULL;
}

int main(void)
{
    tap_ok(is_none(0, 10), "at first there is no answer");
    keep("a", (int[]){0, 2, -1}, 10);
    tap_ok(is(0, 10, "a") && is(1, 11, "a"), "each rank finds its answer");
    tap_ok(is_none(1, 10) && is_none(0, 12), "a rank with another question does not");
    tap_ok(is_none(-1, 10) && is_none(2, 12), "an index outside the list has no answer");
    keep("b", (int[]){1, 3, -1}, 20);
    keep("c", (int[]){4, -1}, 30);
    tap_ok(is(1, 11, "a") && is(0, 20, "b") && is(0, 30, "c"),
           "an answer stays while ranks of other lists begin");
    keep("d", (int[]){4, 3, -1}, 40);
    tap_ok(is_none(0, 20) && is_none(0, 30) && is(1, 41, "d") && is(0, 10, "a"),
           "answers to ranks that begin anew are forgotten, others are not");
    for (int i = 0; i < 1000; i++) {
        keep("e", (int[]){i % 3, -1}, 50);
    }
    tap_ok(answers.count <= 4, "answers do not accumulate");
    hvd_answers_finish(&answers);
    tap_ok(is_none(0, 50), "at the end there is none");
    return tap_done();
}
