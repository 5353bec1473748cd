/* SPDX-License-Identifier: Apache-2.0 */
#include "contrib/info/check/fold.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "contrib/info/hostlist.h"

/* --- nodes --- */

int hvd_info_nodes_init(struct hvd_info_nodes *nodes, const char *const *hosts, int ranks,
                        struct hvd_error *err)
{
    size_t room = (size_t)ranks;
    struct hvd_info_nodes made = {
        .ranks = ranks,
        .node_of = calloc(room, sizeof(*made.node_of)),
        .names = calloc(room, sizeof(*made.names)),
        .ranks_of = calloc(room, sizeof(*made.ranks_of)),
    };

    if (made.node_of == NULL || made.names == NULL || made.ranks_of == NULL) {
        hvd_info_nodes_finish(&made);
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the nodes of %d ranks", ranks);
    }
    memcpy(made.names, hosts, room * sizeof(*hosts));
    qsort(made.names, room, sizeof(*made.names), hvd_info_hostlist_compare);
    for (int i = 0; i < ranks; i++) {
        if (made.count == 0 || strcmp(made.names[made.count - 1], made.names[i]) != 0) {
            made.names[made.count++] = made.names[i];
        }
    }
    for (int rank = 0; rank < ranks; rank++) {
        const char **name = bsearch(&hosts[rank], made.names, (size_t)made.count,
                                    sizeof(*made.names), hvd_info_hostlist_compare);

        made.node_of[rank] = (int)(name - made.names);
        made.ranks_of[made.node_of[rank]]++;
    }
    *nodes = made;
    return 0;
}

void hvd_info_nodes_finish(struct hvd_info_nodes *nodes)
{
    free(nodes->node_of);
    free(nodes->names);
    free(nodes->ranks_of);
}

/* Prints sorted numbers as "0,8-9". */
static void print_ranks(const int *ranks, int count, FILE *out)
{
    for (int i = 0; i < count; i++) {
        int start = i;

        while (i + 1 < count && ranks[i + 1] == ranks[i] + 1) {
            i++;
        }
        fprintf(out, i > start ? "%s%d-%d" : "%s%d", start > 0 ? "," : "", ranks[start],
                ranks[i]);
    }
}

int hvd_info_nodes_print(const struct hvd_info_nodes *nodes, const int *ranks, int count,
                         FILE *out, struct hvd_error *err)
{
    int *found = calloc((size_t)nodes->count, sizeof(*found));
    const char **names = calloc((size_t)nodes->count, sizeof(*names));
    int named = 0;
    bool is_whole = true;
    int status = 0;

    if (found == NULL || names == NULL) {
        status = hvd_fail(err, HVD_ERR_NOMEM, "no memory for %d nodes", nodes->count);
        goto out;
    }
    for (int i = 0; i < count; i++) {
        found[nodes->node_of[ranks[i]]]++;
    }
    for (int node = 0; node < nodes->count; node++) {
        if (found[node] > 0) {
            names[named++] = nodes->names[node];
            is_whole = is_whole && found[node] == nodes->ranks_of[node];
        }
    }
    hvd_info_hostlist_print(names, named, out);
    if (!is_whole) {
        fprintf(out, " (rank%s ", count > 1 ? "s" : "");
        print_ranks(ranks, count, out);
        fputc(')', out);
    }
out:
    free(found);
    free(names);
    return status;
}

/* --- facts --- */

/* A fact of one rank. */
struct fact {
    const char *text; /* without the newline at its end; borrowed */
    int length;
    int rank;
    int position; /* among the facts of its rank */
};

/* Facts with the same text, of different ranks. */
struct group {
    const struct fact *first; /* the one of the lowest rank */
    int count;
    bool is_printed;
};

/* Returns the length of the fact at the start of text. */
static int measure_fact(const char *text)
{
    int length = (int)strcspn(text, "\n");

    while (text[length] == '\n' && text[length + 1] == ' ') {
        length += 1 + (int)strcspn(text + length + 1, "\n");
    }
    return length;
}

/* Writes the facts of a rank to facts, unless it is NULL, and returns their number. */
static int split_text(const char *text, int rank, struct fact *facts)
{
    int count = 0;

    while (*text != '\0') {
        int length = measure_fact(text);

        if (facts != NULL) {
            facts[count] = (struct fact){text, length, rank, count};
        }
        count++;
        text += length + (text[length] == '\n');
    }
    return count;
}

static int compare_texts(const struct fact *a, const struct fact *b)
{
    int shorter = a->length < b->length ? a->length : b->length;
    int order = memcmp(a->text, b->text, (size_t)shorter);

    return order != 0 ? order : a->length - b->length;
}

static int compare_places(const struct fact *a, const struct fact *b)
{
    return a->rank != b->rank ? a->rank - b->rank : a->position - b->position;
}

static int compare_facts(const void *left, const void *right)
{
    int order = compare_texts(left, right);

    return order != 0 ? order : compare_places(left, right);
}

static int compare_groups(const void *left, const void *right)
{
    return compare_places(((const struct group *)left)->first,
                          ((const struct group *)right)->first);
}

/* Puts sorted facts into groups, and sorts these by their first facts. Returns the number
 * of groups. */
static int group_facts(const struct fact *facts, int count, struct group *groups)
{
    int found = 0;

    for (int i = 0; i < count; i++) {
        if (found == 0 || compare_texts(groups[found - 1].first, &facts[i]) != 0) {
            groups[found++] = (struct group){.first = &facts[i]};
        }
        groups[found - 1].count++;
    }
    qsort(groups, (size_t)found, sizeof(*groups), compare_groups);
    return found;
}

static bool is_same_subject(const struct fact *a, const struct fact *b)
{
    const char *end = memchr(a->text, ':', (size_t)a->length);
    int length = end != NULL ? (int)(end - a->text) + 1 : a->length;

    return b->length >= length && memcmp(a->text, b->text, (size_t)length) == 0;
}

/* Prints a group as "NODES: FACT"; ranks has room for all ranks. */
static int print_group(const struct hvd_info_nodes *nodes, struct group *group,
                       int *ranks, FILE *out, struct hvd_error *err)
{
    const struct fact *fact = group->first;
    int count = 0;
    int status;

    for (int i = 0; i < group->count; i++) {
        if (count == 0 || ranks[count - 1] != fact[i].rank) {
            ranks[count++] = fact[i].rank;
        }
    }
    status = hvd_info_nodes_print(nodes, ranks, count, out, err);
    fprintf(out, ": %.*s\n", fact->length, fact->text);
    group->is_printed = true;
    return status;
}

/* Prints all groups, those about one subject together. */
static int print_groups(const struct hvd_info_nodes *nodes, struct group *groups,
                        int count, FILE *out, struct hvd_error *err)
{
    int *ranks = calloc((size_t)nodes->ranks, sizeof(*ranks));
    int status = 0;

    if (ranks == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for %d ranks", nodes->ranks);
    }
    for (int i = 0; i < count; i++) {
        bool is_new = !groups[i].is_printed;

        for (int j = i; j < count && is_new && status == 0; j++) {
            if (!groups[j].is_printed &&
                is_same_subject(groups[i].first, groups[j].first)) {
                status = print_group(nodes, &groups[j], ranks, out, err);
            }
        }
    }
    free(ranks);
    return status;
}

int hvd_info_fold_print(const struct hvd_info_nodes *nodes, const char *const *texts,
                        FILE *out, struct hvd_error *err)
{
    struct fact *facts;
    struct group *groups;
    int count = 0;
    int status;

    for (int rank = 0; rank < nodes->ranks; rank++) {
        count += split_text(texts[rank], rank, NULL);
    }
    facts = calloc((size_t)count + 1, sizeof(*facts));
    groups = calloc((size_t)count + 1, sizeof(*groups));
    if (facts == NULL || groups == NULL) {
        status = hvd_fail(err, HVD_ERR_NOMEM, "no memory for %d facts", count);
        goto out;
    }
    for (int rank = 0, at = 0; rank < nodes->ranks; rank++) {
        at += split_text(texts[rank], rank, &facts[at]);
    }
    qsort(facts, (size_t)count, sizeof(*facts), compare_facts);
    status = print_groups(nodes, groups, group_facts(facts, count, groups), out, err);
out:
    free(facts);
    free(groups);
    return status;
}
