/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the words after the plugin's path in plugstack.conf. */
#include "spank/plugstack.h"

#include <stddef.h>
#include <string.h>

#include "spank/word_table.h"

/* Time limits of PMIx. Slurm's default is 300 s; no start takes longer than an hour. */
enum {
    TIMEOUT_DEFAULT_S = 60,
    TIMEOUT_MAX_S = 3600
};

#define FIELD(name) offsetof(struct hvd_spank_plugstack, name)

static const struct hvd_spank_word words[] = {
    {"default=on", HVD_SPANK_WORD_CHOICE, FIELD(is_default_on), .number = 1},
    {"default=off", HVD_SPANK_WORD_CHOICE, FIELD(is_default_on), .number = 0},
    {"mpi=pmix", HVD_SPANK_WORD_CHOICE, FIELD(keep_mpi), .number = 0},
    {"mpi=keep", HVD_SPANK_WORD_CHOICE, FIELD(keep_mpi), .number = 1},
    {"timeout", HVD_SPANK_WORD_NUMBER, FIELD(timeout_s), .number = 1,
     .most = TIMEOUT_MAX_S, .value = "SECONDS"},
    {"pythonpath", HVD_SPANK_WORD_PATH, FIELD(python_dir), .value = "DIR"},
    {"topology", HVD_SPANK_WORD_PATH, FIELD(topology), .value = "FILE"},
    {"forbid", HVD_SPANK_WORD_LIST, FIELD(rules.forbid), .value = "WORD,..."},
    {"fix", HVD_SPANK_WORD_LIST, FIELD(rules.fix), .value = "WORD,..."},
};

static const struct hvd_spank_word_table table = {"plugstack.conf", words,
                                                  sizeof(words) / sizeof(words[0])};

void hvd_spank_plugstack_init(struct hvd_spank_plugstack *plugstack,
                              const char *python_dir)
{
    memset(plugstack, 0, sizeof(*plugstack));
    plugstack->timeout_s = TIMEOUT_DEFAULT_S;
    memcpy(plugstack->python_dir, python_dir,
           strnlen(python_dir, sizeof(plugstack->python_dir) - 1));
}

void hvd_spank_plugstack_list(char text[HVD_SPANK_PLUGSTACK_LIST_BYTES])
{
    hvd_spank_word_list(&table, text, HVD_SPANK_PLUGSTACK_LIST_BYTES);
}

int hvd_spank_plugstack_parse(const char *word, struct hvd_spank_plugstack *plugstack,
                              struct hvd_error *err)
{
    struct hvd_spank_plugstack parsed = *plugstack;
    int status = hvd_spank_word_parse(&table, word, strlen(word), &parsed, err);

    if (status == 0) {
        status = hvd_spank_site_rules_check(&parsed.rules, err);
    }
    if (status == 0) {
        *plugstack = parsed;
    }
    return status;
}
