/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the text of --hvd: every word, every refusal, and random texts. */
#include "spank/options.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "gpu_binding/plan.h"
#include "spank/plugstack.h"
#include "tests/tap.h"

enum {
    MUTATIONS = 200000
};

static const char *const good[] = {
    "on",
    "off",
    "verbose",
    "bind=socket",
    "bind=cores",
    "bind=none",
    "gpus=all",
    "gpus=keep",
    "tasks=auto",
    "tasks=keep",
    "tasks=node",
    "nic=auto",
    "nic=off",
    "on,verbose,bind=cores,gpus=keep,tasks=keep,nic=off",
    "report",
    "report=late.txt",
    "report=/home/A-b_c/run+1@2:3=4.json",
    "timeline=T.json",
    "metrics=/var/lib/node_exporter",
    "metrics=here,report",
    "timeline-ranks=all",
    "timeline-ranks=0",
    "elastic",
    "elastic,min=1,max=1000000,resets=0,meet=/home/a/run.hvd",
    "elastic,min=4,spares=1",
    "min=3,elastic",
    "report=my run.txt",
    "timeline=/home/a b/T 1.json",
    "nccl=/home/a b/run-1",
};

static const char *const bad[] = {
    "ON",
    "bind",
    "bind=",
    "bind=numa",
    "bind=socket,",
    ",",
    ",on",
    "on,,off",
    "on off",
    "verbose=1",
    "on\n",
    "--hvd",
    "(null),on",
    "%s%n",
    "$(reboot)",
    "on;off",
    "../../etc",
    "timeout=5",
    "report=",
    "metrics",
    "metrics=",
    "metrics=$HOME",
    "nccl",
    "nccl=",
    "nccl=/x/%h",
    "reports",
    "timeline",
    "timeline=",
    "timeline-ranks",
    "report=~/x",
    "report=%j",
    "report=a\\b",
    "timeline=`x`",
    "timeline-ranks=1",
    "elastic=1",
    "elastic,min=0",
    "elastic,min=",
    "elastic,max=1000001",
    "elastic,max=99999999999999999999",
    "elastic,min=-1",
    "elastic,min=4,max=3",
    "elastic,spares=0",
    "elastic,max=4,spares=1",
    "elastic,meet=",
    "elastic,tasks=node",
    "min=1",
    "spares=1",
    "resets=0",
    "meet=file",
};

static bool is_ready_to_print(const char *text)
{
    size_t length = strlen(text);

    for (size_t i = 0; i < length; i++) {
        if (!isprint((unsigned char)text[i])) {
            return false;
        }
    }
    return length > 0 && length < sizeof(((struct hvd_error *)0)->text);
}

/* True for an empty text, and for a file name of harmless characters. */
static bool is_name(const char *text)
{
    return strlen(text) <= HVD_SPANK_FILE_MAX &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                        "_=:.-/+@ ") == strlen(text);
}

static bool is_in_range(const struct hvd_spank_options *options)
{
    const int flags[] = {options->is_on,      options->is_verbose, options->keep_gpus,
                         options->keep_nic,   options->is_elastic, options->has_all_ranks,
                         options->has_requeue};

    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        if (flags[i] != 0 && flags[i] != 1) {
            return false;
        }
    }
    return options->tasks >= HVD_SPANK_TASKS_AUTO &&
           options->tasks <= HVD_SPANK_TASKS_NODE && options->bind >= HVD_BIND_AUTO &&
           options->bind <= HVD_BIND_CORES && is_name(options->report) &&
           is_name(options->metrics) && is_name(options->timeline);
}

/* Checks what holds for any text: it is parsed into valid options, or it is refused with
 * a printable message and the options stay unchanged. */
static bool keeps_promises(const char *text)
{
    struct hvd_spank_options untouched;
    struct hvd_spank_options options;
    struct hvd_error err = {0};

    memset(&untouched, 0x5a, sizeof(untouched));
    options = untouched;
    if (hvd_spank_options_parse(text, &options, &err) == 0) {
        return is_in_range(&options) && strlen(text) <= HVD_SPANK_OPTIONS_TEXT_MAX;
    }
    return memcmp(&options, &untouched, sizeof(options)) == 0 &&
           err.status == HVD_ERR_ARG && is_ready_to_print(err.text);
}

static void test_words(void)
{
    struct hvd_spank_options options;

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        tap_ok(hvd_spank_options_parse(good[i], &options, NULL) == 0, "\"%s\" is taken",
               good[i]);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        tap_ok(hvd_spank_options_parse(bad[i], &options, NULL) == HVD_ERR_ARG &&
                   keeps_promises(bad[i]),
               "bad text %zu is refused with a printable reason", i);
    }
}

static void test_meaning(void)
{
    struct hvd_spank_options options = {0};

    tap_ok(hvd_spank_options_parse(NULL, &options, NULL) == 0 && options.is_on,
           "no text means on");
    options.is_on = 0;
    tap_ok(hvd_spank_options_parse("", &options, NULL) == 0 && options.is_on,
           "\"\" means on");
    options.is_on = 0;
    tap_ok(hvd_spank_options_parse("(null)", &options, NULL) == 0 && options.is_on,
           "Slurm's \"(null)\" means on");
    tap_ok(hvd_spank_options_parse("verbose", &options, NULL) == 0 && options.is_on &&
               options.is_verbose && options.bind == HVD_BIND_AUTO && !options.keep_gpus,
           "a word leaves other options at their defaults");
    tap_ok(hvd_spank_options_parse("on", &options, NULL) == 0 && !options.is_verbose,
           "a second text starts from the defaults again");
    tap_ok(hvd_spank_options_parse("off,on", &options, NULL) == 0 && options.is_on,
           "if a word occurs twice, the last one counts");
    tap_ok(hvd_spank_options_parse("bind=cores", &options, NULL) == 0 &&
               options.bind == HVD_BIND_CORES,
           "bind=cores selects the mode cores");
    tap_ok(hvd_spank_options_parse("bind=core", &options, NULL) == 0 &&
               options.bind == HVD_BIND_CORES &&
               hvd_spank_options_parse("bind=sockets", &options, NULL) == 0 &&
               options.bind == HVD_BIND_SOCKET,
           "singular and plural mean the same: bind=core, bind=sockets");
}

/* Checks that an error message has room for the list of all words, even after the longest
 * wrong word. */
static void test_list(void)
{
    char list[HVD_SPANK_OPTIONS_LIST_BYTES];
    char wrong[HVD_SPANK_OPTIONS_TEXT_MAX];
    struct hvd_spank_options options;
    struct hvd_error err;

    hvd_spank_options_list(list);
    tap_ok(strcmp(list,
                  "on, off, verbose, bind=socket|cores|none, gpus=all|keep, "
                  "tasks=auto|keep|node, nic=auto|off, report[=FILE], timeline=FILE, "
                  "timeline-ranks=all|0, metrics=DIR, nccl=DIR, requeue, elastic, min=N, "
                  "max=N, spares=N, resets=N, meet=FILE") == 0,
           "the list has every word: %s", list);
    memset(wrong, 'x', sizeof(wrong) - 1);
    wrong[sizeof(wrong) - 1] = '\0';
    tap_ok(hvd_spank_options_parse(wrong, &options, &err) == HVD_ERR_ARG &&
               strstr(err.text, list) != NULL,
           "the list of words fits behind the longest wrong word");
}

/* Returns the words of a list such as "a, b=c|d" one after the other; NULL at the end. */
static const char *next_word(char **cursor)
{
    char *word = *cursor;
    char *end = word != NULL ? strstr(word, ", ") : NULL;

    if (end != NULL) {
        *end = '\0';
        end += 2;
    }
    *cursor = end;
    return word;
}

static void test_help(void)
{
    char help[HVD_SPANK_OPTIONS_HELP_BYTES];

    hvd_spank_options_help(help);
    tap_ok(strstr(help, "words: on, off (switch hvd on or") != NULL &&
               strstr(help, "); bind=socket|cores|none (bind ") != NULL &&
               strstr(help, "); min=N, max=N (elastic: ") != NULL,
           "the help explains the words, and related words together");
    tap_ok(strcmp(help + strlen(help) - strlen(" one job)"), " one job)") == 0,
           "the help is complete up to the last word");
}

/* Checks that slurm.md, the page, has a row for each word of the list. */
static void test_page(const char *page, const char *list)
{
    char rest[HVD_SPANK_OPTIONS_LIST_BYTES];
    char quoted[HVD_SPANK_OPTIONS_LIST_BYTES + 2];
    char *cursor = rest;
    const char *word;

    snprintf(rest, sizeof(rest), "%s", list);
    while ((word = next_word(&cursor)) != NULL) {
        snprintf(quoted, sizeof(quoted), "`%s`", word);
        tap_ok(strstr(page, quoted) != NULL, "slurm.md explains %s", word);
    }
}

static bool is_listed(const char *word, size_t length, const char *list)
{
    char rest[HVD_SPANK_OPTIONS_LIST_BYTES];
    char *cursor = rest;
    const char *known;

    snprintf(rest, sizeof(rest), "%s", list);
    while ((known = next_word(&cursor)) != NULL) {
        if (strlen(known) == length && memcmp(known, word, length) == 0) {
            return true;
        }
    }
    return false;
}

/* Checks that slurm.md's tables of words, which begin with "| word", name only words of
 * the two lists. */
static void test_rows(const char *page, const char *options, const char *plugstack)
{
    const char *table = strstr(page, "\n| word ");
    int unknown = 0;
    int words = 0;

    for (const char *row = table; row != NULL; row = strstr(row + 1, "\n| ")) {
        const char *word = row + strlen("\n| ");

        if (strstr(table, "\n\n") < row) { /* the row belongs to another table */
            row = table = strstr(row, "\n| word ");
            if (row == NULL) {
                break;
            }
        }
        if (*word != '`') {
            continue;
        }
        do {
            size_t length = strcspn(++word, "`");

            words++;
            unknown +=
                !is_listed(word, length, options) && !is_listed(word, length, plugstack);
            word += length + 1;
            word += strncmp(word, ", `", 3) == 0 ? 2 : 0;
        } while (*word == '`');
    }
    tap_ok(words > 0 && unknown == 0,
           "slurm.md explains no other words (%d of %d are unknown)", unknown, words);
}

/* Reads a page without its backslashes, which Markdown tables need before '|'. */
static void read_page(const char *name, char *page, size_t bytes)
{
    FILE *file = fopen(name, "r");
    size_t used = 0;

    for (int c = 0; file != NULL && (c = fgetc(file)) != EOF && used < bytes - 1;) {
        if (c != '\\') {
            page[used++] = (char)c;
        }
    }
    page[used] = '\0';
    if (file != NULL) {
        fclose(file);
    }
}

static void test_pages(const char *name)
{
    static char page[65536];
    char options[HVD_SPANK_OPTIONS_LIST_BYTES];
    char plugstack[HVD_SPANK_PLUGSTACK_LIST_BYTES];

    read_page(name, page, sizeof(page));
    hvd_spank_options_list(options);
    test_page(page, options);
    hvd_spank_plugstack_list(plugstack);
    test_page(page, plugstack);
    test_rows(page, options, plugstack);
}

static void test_files(void)
{
    struct hvd_spank_options options;
    char text[HVD_SPANK_FILE_MAX + 64] = "report=";
    size_t key = strlen(text);

    tap_ok(hvd_spank_options_parse("timeline=/x/T.json,report=late,timeline-ranks=all",
                                   &options, NULL) == 0 &&
               strcmp(options.timeline, "/x/T.json") == 0 &&
               strcmp(options.report, "late") == 0 && options.has_all_ranks,
           "file names are kept as they are typed");
    tap_ok(hvd_spank_options_parse("report=long,report", &options, NULL) == 0 &&
               strcmp(options.report, "1") == 0 && options.timeline[0] == '\0',
           "report without a file goes to the terminal");
    memset(text + key, 'x', HVD_SPANK_FILE_MAX);
    tap_ok(hvd_spank_options_parse(text, &options, NULL) == 0 &&
               strlen(options.report) == HVD_SPANK_FILE_MAX,
           "%d characters of a name are taken", HVD_SPANK_FILE_MAX);
    text[key + HVD_SPANK_FILE_MAX] = 'x';
    tap_ok(hvd_spank_options_parse(text, &options, NULL) == HVD_ERR_ARG &&
               keeps_promises(text),
           "a file name with one character more is refused");
}

static void test_length(void)
{
    char text[HVD_SPANK_OPTIONS_TEXT_MAX + 2];
    struct hvd_spank_options options;

    memset(text, 0, sizeof(text));
    for (size_t i = 0; i < HVD_SPANK_OPTIONS_TEXT_MAX - 1; i += 3) {
        memcpy(text + i, "on,", 3);
    }
    text[HVD_SPANK_OPTIONS_TEXT_MAX - 2] = '\0';
    tap_ok(hvd_spank_options_parse(text, &options, NULL) == 0, "%zu characters are taken",
           strlen(text));
    memset(text, 'a', HVD_SPANK_OPTIONS_TEXT_MAX + 1);
    tap_ok(hvd_spank_options_parse(text, &options, NULL) == HVD_ERR_ARG &&
               keeps_promises(text),
           "%zu characters are refused", strlen(text));
}

static unsigned next_random(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Makes a random text: joins valid words, then replaces up to three characters. */
static void make_text(unsigned *state, char *text, size_t bytes)
{
    unsigned words = next_random(state) % 60;
    unsigned damages = next_random(state) % 4;
    size_t used = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < words && used + 64 < bytes; i++) {
        const char *word = good[next_random(state) % (sizeof(good) / sizeof(good[0]))];

        used +=
            (size_t)snprintf(text + used, bytes - used, "%s%s", i > 0 ? "," : "", word);
    }
    for (unsigned i = 0; i < damages && used > 0; i++) {
        text[next_random(state) % used] = (char)(next_random(state) % 256);
    }
}

static void test_random_texts(unsigned seed)
{
    unsigned state = seed;
    unsigned taken = 0;
    unsigned broken = 0;

    for (int i = 0; i < MUTATIONS; i++) {
        struct hvd_spank_options options;
        char text[1400];

        make_text(&state, text, sizeof(text));
        broken += keeps_promises(text) ? 0 : 1;
        taken += hvd_spank_options_parse(text, &options, NULL) == 0 ? 1 : 0;
    }
    tap_ok(broken == 0, "%d random texts are taken whole or refused whole", MUTATIONS);
    tap_ok(taken > MUTATIONS / 20 && taken < MUTATIONS - MUTATIONS / 20,
           "random texts reach both outcomes (%u taken)", taken);
}

int main(int count, char **arguments)
{
    test_words();
    test_list();
    test_help();
    test_pages(count > 1 ? arguments[1] : "");
    test_meaning();
    test_files();
    test_length();
    test_random_texts(tap_seed(20261121));
    return tap_done();
}
