/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix_boot/rendezvous/answers.h"

#include <stdlib.h>

static void finish_answer(const struct hvd_answer *answer)
{
    free(answer->data);
    free(answer->ranks);
    free(answer->numbers);
}

void hvd_answers_finish(struct hvd_answers *answers)
{
    for (int i = 0; i < answers->count; i++) {
        finish_answer(&answers->all[i]);
    }
    free(answers->all);
    *answers = (struct hvd_answers){0};
}

static bool have_common_rank(const struct hvd_answer *one, const struct hvd_answer *other)
{
    for (int i = 0; i < one->count; i++) {
        for (int k = 0; k < other->count; k++) {
            if (one->ranks[i] == other->ranks[k]) {
                return true;
            }
        }
    }
    return false;
}

void hvd_answers_keep(struct hvd_answers *answers, const struct hvd_answer *answer)
{
    struct hvd_answer *grown;

    for (int i = answers->count - 1; i >= 0; i--) {
        if (have_common_rank(answer, &answers->all[i])) {
            finish_answer(&answers->all[i]);
            answers->all[i] = answers->all[--answers->count];
        }
    }
    grown = realloc(answers->all, (size_t)(answers->count + 1) * sizeof(*grown));
    if (grown == NULL) {
        finish_answer(answer);
        return;
    }
    grown[answers->count++] = *answer;
    answers->all = grown;
}

const struct hvd_answer *hvd_answers_find(const struct hvd_answers *answers, int index,
                                          uint64_t number)
{
    for (int i = 0; i < answers->count; i++) {
        const struct hvd_answer *answer = &answers->all[i];

        if (index >= 0 && index < answer->count && answer->numbers[index] == number) {
            return answer;
        }
    }
    return NULL;
}
