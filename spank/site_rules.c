/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the text of --hvd with the words that the site forbids or fixes. */
#include "spank/site_rules.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* --- lists of words --- */

struct word {
    const char *text;
    size_t length;
};

/* Takes the next word of a list, in the spelling of the table; false at its end. */
static bool next_word(const char **list, struct word *word)
{
    const char *spelling;

    if (*list == NULL || **list == '\0') {
        return false;
    }
    word->text = *list;
    word->length = strcspn(*list, ",");
    *list += word->length + ((*list)[word->length] == ',');
    spelling = hvd_spank_options_spelling(word->text, word->length);
    if (spelling != NULL) {
        *word = (struct word){spelling, strlen(spelling)};
    }
    return true;
}

static bool is_same(const struct word *word, const struct word *other)
{
    return word->length == other->length &&
           memcmp(word->text, other->text, word->length) == 0;
}

/* Returns the key of KEY=VALUE, or the whole word if it has no value. */
static struct word key_of(const struct word *word)
{
    const char *sign = memchr(word->text, '=', word->length);

    return (struct word){word->text,
                         sign != NULL ? (size_t)(sign - word->text) : word->length};
}

static bool has_word(const char *list, const char *text)
{
    const struct word wanted = {text, strlen(text)};
    struct word word;

    while (next_word(&list, &word)) {
        if (is_same(&word, &wanted)) {
            return true;
        }
    }
    return false;
}

/* --- for the administrator --- */

int hvd_spank_site_rules_check(const struct hvd_spank_site_rules *rules,
                               struct hvd_error *err)
{
    const char *list = rules->forbid;
    struct hvd_spank_options options;
    struct hvd_error wrong = {0};
    struct word word;

    while (next_word(&list, &word)) {
        if (!hvd_spank_options_know(word.text, word.length)) {
            return hvd_fail(err, HVD_ERR_ARG,
                            "plugstack.conf: forbid=%s: --hvd has no word \"%.*s\"",
                            rules->forbid, (int)word.length, word.text);
        }
    }
    if (has_word(rules->forbid, "on") || has_word(rules->fix, "on") ||
        has_word(rules->fix, "off")) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "plugstack.conf: forbid=on, fix=on and fix=off are not possible: "
                        "use default=on, or remove the plugin");
    }
    if (hvd_spank_options_parse(rules->fix, &options, &wrong) != 0) {
        return hvd_fail(err, HVD_ERR_ARG, "plugstack.conf: fix=%s: %s", rules->fix,
                        wrong.text);
    }
    return 0;
}

/* --- for the user --- */

/* True if the rule is this word, or its key. */
static bool is_forbidden(const struct word *word, const struct word *rule)
{
    const struct word key = key_of(word);

    return is_same(word, rule) || is_same(&key, rule);
}

/* True if the word has the key of the rule, but another value. */
static bool is_changed(const struct word *word, const struct word *rule)
{
    const struct word key = key_of(word);
    const struct word fixed = key_of(rule);

    return is_same(&key, &fixed) && !is_same(word, rule);
}

static int check_word(const struct hvd_spank_site_rules *rules, const struct word *word,
                      struct hvd_error *err)
{
    const char *forbid = rules->forbid;
    const char *fix = rules->fix;
    struct word rule;

    while (next_word(&forbid, &rule)) {
        if (is_forbidden(word, &rule)) {
            return hvd_fail(err, HVD_ERR_ARG,
                            "--hvd: this site does not allow %.*s (forbid= in its "
                            "plugstack.conf): leave it out",
                            (int)rule.length, rule.text);
        }
    }
    while (next_word(&fix, &rule)) {
        if (is_changed(word, &rule)) {
            const struct word key = key_of(word);

            return hvd_fail(err, HVD_ERR_ARG,
                            "--hvd: this site has set %.*s for all users (fix= in its "
                            "plugstack.conf): leave out %.*s",
                            (int)rule.length, rule.text, (int)key.length, key.text);
        }
    }
    return 0;
}

int hvd_spank_site_rules_apply(const struct hvd_spank_site_rules *rules, const char *text,
                               struct hvd_spank_options *options, struct hvd_error *err)
{
    struct hvd_error wrong = {0};
    struct word word;

    while (next_word(&text, &word)) {
        int status = check_word(rules, &word, err);

        if (status != 0) {
            return status;
        }
    }
    if (hvd_spank_options_add(rules->fix, options, &wrong) != 0) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "%s; this site has set %s for all users (fix= in its "
                        "plugstack.conf)",
                        wrong.text, rules->fix);
    }
    return 0;
}
