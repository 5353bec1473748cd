/* SPDX-License-Identifier: Apache-2.0 */
/* Tests which command lines are those of launchers, such as torchrun, that start the
 * ranks of their node. */
#include "spank/launcher.h"

#include <stdio.h>
#include <string.h>

#include "tests/tap.h"

enum {
    WORDS_MAX = 8
};

/* Splits a text at spaces. Returns the number of words. */
static int split(const char *text, char *copy, size_t bytes, char *words[WORDS_MAX])
{
    char *save = NULL;
    int count = 0;

    snprintf(copy, bytes, "%s", text);
    for (char *word = strtok_r(copy, " ", &save); word != NULL && count < WORDS_MAX;
         word = strtok_r(NULL, " ", &save)) {
        words[count++] = word;
    }
    return count;
}

static void test_names(void)
{
    static const struct {
        const char *command;
        const char *name;
    } cases[] = {
        {"torchrun train.py", "torchrun"},
        {"/opt/venv/bin/torchrun", "torchrun"},
        {"python3 -m torch.distributed.run train.py", "torchrun"},
        {"/usr/bin/python3.11 -u -m torch.distributed.launch train.py", "torchrun"},
        {"ft_launcher train.py", "ft_launcher"},
        {"deepspeed train.py", "deepspeed"},
        {"ray symmetric-run train.py", "ray"},
        {"accelerate launch train.py", "accelerate launch"},
        {"python -m accelerate.commands.launch train.py", "accelerate launch"},
        {"accelerate env", NULL},
        {"accelerate", NULL},
        {"python train.py", NULL},
        {"python train.py -m torch.distributed.run", NULL},
        {"python -m", NULL},
        {"python -m train", NULL},
        {"./my_torchrun", NULL},
        {"torchrun/train", NULL},
        {"", NULL},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char copy[128];
        char *words[WORDS_MAX];
        int count = split(cases[i].command, copy, sizeof(copy), words);
        const char *name = hvd_spank_launcher_of(count, words);

        tap_ok(cases[i].name == NULL ? name == NULL
                                     : name != NULL && strcmp(name, cases[i].name) == 0,
               "\"%s\" %s", cases[i].command,
               cases[i].name != NULL ? "starts ranks itself" : "is a rank");
    }
}

static void test_options(void)
{
    static const struct {
        const char *command;
        bool is_alone;
        int ranks;
    } cases[] = {
        {"torchrun train.py", false, 0},
        {"torchrun --nproc-per-node 4 train.py", false, 4},
        {"torchrun --nproc_per_node=4 train.py", false, 4},
        {"torchrun --standalone --nproc-per-node=gpu train.py", true, -1},
        {"torchrun --nproc-per-node", false, -1},
        {"torchrun --nproc-per-nodes=4 --standalones", false, 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char copy[128];
        char *words[WORDS_MAX];
        int count = split(cases[i].command, copy, sizeof(copy), words);

        tap_ok(hvd_spank_launcher_is_alone(count, words) == cases[i].is_alone &&
                   hvd_spank_launcher_ranks(count, words) == cases[i].ranks,
               "\"%s\" asks for %d ranks", cases[i].command, cases[i].ranks);
    }
}

int main(void)
{
    test_names();
    test_options();
    return tap_done();
}
