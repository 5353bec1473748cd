/* SPDX-License-Identifier: Apache-2.0 */
#include "contrib/info/hostlist.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* More digits than a number of a node has: a longer row of digits counts as letters. */
#define MOST_DIGITS 9

/* "n07.site" is the prefix "n", the digits "07" and the suffix ".site". Without digits,
 * the whole name is the suffix. */
struct name {
    const char *text;
    int prefix; /* length */
    int digits; /* length; 0: the name has no number */
    long number;
    const char *suffix;
};

static struct name split_name(const char *text)
{
    struct name name = {.text = text, .suffix = text};
    int end = (int)strcspn(text, ".");
    int begin;

    while (end > 0 && !isdigit((unsigned char)text[end - 1])) {
        end--;
    }
    begin = end;
    while (begin > 0 && isdigit((unsigned char)text[begin - 1])) {
        begin--;
    }
    if (begin < end && end - begin <= MOST_DIGITS) {
        name.prefix = begin;
        name.digits = end - begin;
        name.number = strtol(text + begin, NULL, 10);
        name.suffix = text + end;
    }
    return name;
}

/* Compares two names without their numbers. */
static int compare_stems(const struct name *a, const struct name *b)
{
    int shorter = a->prefix < b->prefix ? a->prefix : b->prefix;
    int order = memcmp(a->text, b->text, (size_t)shorter);

    order = order != 0 ? order : a->prefix - b->prefix;
    return order != 0 ? order : strcmp(a->suffix, b->suffix);
}

int hvd_info_hostlist_compare(const void *left, const void *right)
{
    struct name a = split_name(*(const char *const *)left);
    struct name b = split_name(*(const char *const *)right);
    int order = compare_stems(&a, &b);

    order = order != 0 ? order : (a.number > b.number) - (a.number < b.number);
    return order != 0 ? order : a.digits - b.digits;
}

static bool is_foldable(const struct name *a, const struct name *b)
{
    return a->digits > 0 && b->digits > 0 && compare_stems(a, b) == 0;
}

/* Returns whether name b follows a in a range, whose numbers have as many digits as the
 * first one, or more without leading zeros. */
static bool is_next(const struct name *first, const struct name *a, const struct name *b)
{
    char digits[MOST_DIGITS + 2];

    snprintf(digits, sizeof(digits), "%0*ld", first->digits, a->number + 1);
    return strncmp(b->text + b->prefix, digits, (size_t)b->digits) == 0 &&
           digits[b->digits] == '\0';
}

/* Prints the numbers of count names with the same stem: "1-4,7". */
static void print_numbers(const char *const *names, int count, FILE *out)
{
    for (int i = 0; i < count; i++) {
        struct name first = split_name(names[i]);
        struct name last = first;
        struct name next;
        int start = i;

        while (i + 1 < count &&
               (next = split_name(names[i + 1]), is_next(&first, &last, &next))) {
            last = next;
            i++;
        }
        fprintf(out, "%s%.*s", start > 0 ? "," : "", first.digits,
                first.text + first.prefix);
        if (i > start) {
            fprintf(out, "-%.*s", last.digits, last.text + last.prefix);
        }
    }
}

void hvd_info_hostlist_print(const char *const *names, int count, FILE *out)
{
    for (int i = 0, more; i < count; i += more) {
        struct name first = split_name(names[i]);
        struct name next;

        more = 1;
        while (i + more < count &&
               (next = split_name(names[i + more]), is_foldable(&first, &next))) {
            more++;
        }
        fputs(i > 0 ? "," : "", out);
        if (more == 1) {
            fputs(names[i], out);
            continue;
        }
        fprintf(out, "%.*s[", first.prefix, first.text);
        print_numbers(names + i, more, out);
        fprintf(out, "]%s", first.suffix);
    }
}
