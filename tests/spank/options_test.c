/* SPDX-License-Identifier: Apache-2.0 */
/* The text of --hvd: every word, every refusal, and random texts. */
#include "spank/options.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "gpu_binding/plan.h"
#include "spank/admin.h"
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
    "nic=auto",
    "nic=off",
    "on,verbose,bind=cores,gpus=keep,tasks=keep,nic=off",
    "report",
    "report=late.txt",
    "report=/home/A-b_c/run+1@2:3=4.json",
    "timeline=T.json",
    "timeline-ranks=all",
    "timeline-ranks=0",
    "elastic",
    "elastic,min=1,max=1000000,resets=0,meet=/home/a/run.hvd",
    "min=3,elastic",
    "report=my run.txt",
    "timeline=/home/a b/T 1.json",
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
    "elastic,meet=",
    "min=1",
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

/* Nothing, or what may be printed and opened as it is. */
static bool is_name(const char *text)
{
    return strlen(text) <= HVD_OPTION_FILE_MAX &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                        "_=:.-/+@ ") == strlen(text);
}

static bool is_in_range(const struct hvd_options *options)
{
    const int flags[] = {options->is_on,      options->is_verbose, options->keep_gpus,
                         options->keep_tasks, options->keep_nic,   options->has_all_ranks,
                         options->is_elastic};

    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        if (flags[i] != 0 && flags[i] != 1) {
            return false;
        }
    }
    return options->bind >= HVD_BIND_AUTO && options->bind <= HVD_BIND_CORE &&
           is_name(options->report) && is_name(options->timeline);
}

/* What must hold for any text at all. */
static bool keeps_promises(const char *text)
{
    struct hvd_options untouched;
    struct hvd_options options;
    struct hvd_error err = {0};

    memset(&untouched, 0x5a, sizeof(untouched));
    options = untouched;
    if (hvd_options_parse(text, &options, &err) == 0) {
        return is_in_range(&options) && strlen(text) <= HVD_OPTION_TEXT_MAX;
    }
    return memcmp(&options, &untouched, sizeof(options)) == 0 &&
           err.status == HVD_ERR_ARG && is_ready_to_print(err.text);
}

static void test_words(void)
{
    struct hvd_options options;

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        tap_ok(hvd_options_parse(good[i], &options, NULL) == 0, "\"%s\" is taken",
               good[i]);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        tap_ok(hvd_options_parse(bad[i], &options, NULL) == HVD_ERR_ARG &&
                   keeps_promises(bad[i]),
               "bad text %zu is refused with a printable reason", i);
    }
}

static void test_meaning(void)
{
    struct hvd_options options = {0};

    tap_ok(hvd_options_parse(NULL, &options, NULL) == 0 && options.is_on,
           "no text means on");
    options.is_on = 0;
    tap_ok(hvd_options_parse("", &options, NULL) == 0 && options.is_on, "\"\" means on");
    options.is_on = 0;
    tap_ok(hvd_options_parse("(null)", &options, NULL) == 0 && options.is_on,
           "Slurm's \"(null)\" means on");
    tap_ok(hvd_options_parse("verbose", &options, NULL) == 0 && options.is_on &&
               options.is_verbose && options.bind == HVD_BIND_AUTO && !options.keep_gpus,
           "a word leaves the others at their defaults");
    tap_ok(hvd_options_parse("on", &options, NULL) == 0 && !options.is_verbose,
           "a second text does not remember the first");
    tap_ok(hvd_options_parse("off,on", &options, NULL) == 0 && options.is_on,
           "the last mention counts");
    tap_ok(hvd_options_parse("bind=cores", &options, NULL) == 0 &&
               options.bind == HVD_BIND_CORE,
           "bind=cores is the mode core");
}

/* A message shows all words, whatever was wrong. */
static void test_list(void)
{
    char list[HVD_OPTION_LIST_BYTES];
    char wrong[HVD_OPTION_TEXT_MAX];
    struct hvd_options options;
    struct hvd_error err;

    hvd_options_list(list);
    tap_ok(strcmp(list, "on, off, verbose, bind=socket|cores|none, gpus=all|keep, "
                        "tasks=auto|keep, nic=auto|off, timeline-ranks=all|0, elastic, "
                        "min=N, max=N, resets=N, report[=FILE], timeline=FILE, "
                        "meet=FILE") == 0,
           "the list has every word: %s", list);
    memset(wrong, 'x', sizeof(wrong) - 1);
    wrong[sizeof(wrong) - 1] = '\0';
    tap_ok(hvd_options_parse(wrong, &options, &err) == HVD_ERR_ARG &&
               strstr(err.text, list) != NULL,
           "and fits behind the longest wrong one");
}

/* The page has a row for each word of a list: "a, b=c|d". */
static void test_page(const char *page, const char *list)
{
    char rest[HVD_OPTION_LIST_BYTES];
    char quoted[HVD_OPTION_LIST_BYTES + 2];
    char *cursor = rest;

    snprintf(rest, sizeof(rest), "%s", list);
    while (cursor != NULL) {
        char *word = cursor;

        cursor = strstr(word, ", ");
        if (cursor != NULL) {
            *cursor = '\0';
            cursor += 2;
        }
        snprintf(quoted, sizeof(quoted), "`%s`", word);
        tap_ok(strstr(page, quoted) != NULL, "slurm.md explains %s", word);
    }
}

/* The file, without the '\\' before '|' that tables need. */
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
    char options[HVD_OPTION_LIST_BYTES];
    char admin[HVD_ADMIN_LIST_BYTES];

    read_page(name, page, sizeof(page));
    hvd_options_list(options);
    test_page(page, options);
    hvd_admin_list(admin);
    test_page(page, admin);
}

static void test_files(void)
{
    struct hvd_options options;
    char text[HVD_OPTION_FILE_MAX + 64] = "report=";
    size_t key = strlen(text);

    tap_ok(hvd_options_parse("timeline=/x/T.json,report=late,timeline-ranks=all",
                             &options, NULL) == 0 &&
               strcmp(options.timeline, "/x/T.json") == 0 &&
               strcmp(options.report, "late") == 0 && options.has_all_ranks,
           "files are kept as they are typed");
    tap_ok(hvd_options_parse("report=long,report", &options, NULL) == 0 &&
               strcmp(options.report, "1") == 0 && options.timeline[0] == '\0',
           "report without a file is one for the terminal");
    memset(text + key, 'x', HVD_OPTION_FILE_MAX);
    tap_ok(hvd_options_parse(text, &options, NULL) == 0 &&
               strlen(options.report) == HVD_OPTION_FILE_MAX,
           "%d characters of a name are taken", HVD_OPTION_FILE_MAX);
    text[key + HVD_OPTION_FILE_MAX] = 'x';
    tap_ok(hvd_options_parse(text, &options, NULL) == HVD_ERR_ARG && keeps_promises(text),
           "one more is refused");
}

static void test_length(void)
{
    char text[HVD_OPTION_TEXT_MAX + 2];
    struct hvd_options options;

    memset(text, 0, sizeof(text));
    for (size_t i = 0; i < HVD_OPTION_TEXT_MAX - 1; i += 3) {
        memcpy(text + i, "on,", 3);
    }
    text[HVD_OPTION_TEXT_MAX - 2] = '\0';
    tap_ok(hvd_options_parse(text, &options, NULL) == 0, "%zu characters are taken",
           strlen(text));
    memset(text, 'a', HVD_OPTION_TEXT_MAX + 1);
    tap_ok(hvd_options_parse(text, &options, NULL) == HVD_ERR_ARG && keeps_promises(text),
           "%zu characters are refused", strlen(text));
}

static unsigned next_random(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Joins good words, then damages some characters. */
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
        struct hvd_options options;
        char text[1400];

        make_text(&state, text, sizeof(text));
        broken += keeps_promises(text) ? 0 : 1;
        taken += hvd_options_parse(text, &options, NULL) == 0 ? 1 : 0;
    }
    tap_ok(broken == 0, "%d random texts are taken whole or refused whole", MUTATIONS);
    tap_ok(taken > MUTATIONS / 20 && taken < MUTATIONS - MUTATIONS / 20,
           "random texts reach both outcomes (%u taken)", taken);
}

int main(int count, char **arguments)
{
    test_words();
    test_list();
    test_pages(count > 1 ? arguments[1] : "");
    test_meaning();
    test_files();
    test_length();
    test_random_texts(tap_seed(20261121));
    return tap_done();
}
