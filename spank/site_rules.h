/* SPDX-License-Identifier: Apache-2.0 */
/* The words of --hvd that the administrator forbids or fixes for all users, in
 * plugstack.conf. Pure. */
#ifndef HVD_SPANK_SITE_RULES_H
#define HVD_SPANK_SITE_RULES_H

#include "gpu_binding/base/error.h"
#include "spank/options.h"
#include "spank/word_table.h"

/* Lists of words, separated by commas; empty: none. */
struct hvd_spank_site_rules {
    /* Words that a user may not write. A key, such as "bind", stands for all its
     * values. */
    char forbid[HVD_SPANK_LIST_MAX + 1];
    /* Words that each step with --hvd has. A user may not write other values of their
     * keys. */
    char fix[HVD_SPANK_LIST_MAX + 1];
};

/* Checks that the lists consist of words of --hvd. Returns HVD_ERR_ARG with a message for
 * the administrator. */
int hvd_spank_site_rules_check(const struct hvd_spank_site_rules *rules,
                               struct hvd_error *err);

/* Checks the text of a --hvd, which was parsed into options, against the rules, and adds
 * the words that are fixed. Returns 0; or HVD_ERR_ARG with a message for the user, who
 * learns that plugstack.conf has the rule, and leaves *options unchanged. */
int hvd_spank_site_rules_apply(const struct hvd_spank_site_rules *rules, const char *text,
                               struct hvd_spank_options *options, struct hvd_error *err);

#endif
