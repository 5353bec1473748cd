/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the text of a table of algorithms. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/schedule/algorithm_table.h"
#include "collectives/schedule/schedule_grid.h"
#include "gpu_binding/base/error.h"

enum {
    MOST_SECTIONS = 1000,
    LINE_BYTES = 512,
};

struct parser {
    struct hvd_algorithm_table *table;
    /* the section being parsed; NULL before the first */
    struct hvd_algorithm_section *section;
    int line;
    char *rest; /* rest of the line, for next_word */
    struct hvd_error *err;
};

/* Returns the next word of the line, or NULL at its end. */
static char *next_word(struct parser *parser)
{
    return strtok_r(NULL, " \t", &parser->rest);
}

static int fail_expected(const struct parser *parser, const char *what, const char *found)
{
    return hvd_fail(parser->err, HVD_ERR_ARG, "%s line %d: expected %s, found \"%.60s\"",
                    parser->table->name, parser->line, what,
                    found != NULL ? found : "the end of the line");
}

static int read_size(const char *text, int64_t *bytes)
{
    static const char units[] = "KMG";
    const char *unit;
    char *end;
    long long number;
    int shift = 0;

    errno = 0;
    number = text != NULL ? strtoll(text, &end, 10) : -1;
    if (number < 0 || end == text || errno != 0) {
        return -1;
    }
    if (*end != '\0') {
        unit = strchr(units, *end);
        if (unit == NULL || end[1] != '\0') {
            return -1;
        }
        shift = 10 * (int)(unit - units + 1);
    }
    if (number > INT64_MAX >> shift) {
        return -1;
    }
    *bytes = (int64_t)number << shift;
    return 0;
}

/* Returns the text after "name=", or NULL if the word does not begin with it. */
static const char *value_of(const char *word, const char *name)
{
    size_t length = strlen(name);

    return word != NULL && strncmp(word, name, length) == 0 && word[length] == '='
               ? word + length + 1
               : NULL;
}

/* Parses nodes=2 or nodes=2-16. */
static int read_range(struct parser *parser, const char *name, int *least, int *most)
{
    char *word = next_word(parser);
    const char *text = value_of(word, name);
    long first, last;
    char *end = NULL;

    first = last = text != NULL ? strtol(text, &end, 10) : 0;
    if (end != NULL && end != text && *end == '-') {
        text = end + 1;
        last = strtol(text, &end, 10);
    }
    if (end == NULL || end == text || *end != '\0' || first < 1 || last < first ||
        last > INT_MAX) {
        return fail_expected(parser,
                             strcmp(name, "nodes") == 0 ? "nodes=NUMBER or nodes=FROM-TO"
                                                        : "ranks=NUMBER or ranks=FROM-TO",
                             word);
    }
    *least = (int)first;
    *most = (int)last;
    return 0;
}

static int parse_head(struct parser *parser, char *line)
{
    struct hvd_algorithm_table *table = parser->table;
    struct hvd_algorithm_section *grown, *section;
    char *end = strchr(line, ']');
    int status;

    if (end == NULL || end[1] != '\0' || table->count == MOST_SECTIONS) {
        return fail_expected(parser, "[nodes=NUMBER ranks=NUMBER]", line);
    }
    *end = '\0';
    grown = realloc(table->sections, ((size_t)table->count + 1) * sizeof(grown[0]));
    if (grown == NULL) {
        return hvd_fail(parser->err, HVD_ERR_NOMEM, "no memory for %s", table->name);
    }
    table->sections = grown;
    parser->section = section = &grown[table->count++];
    *section = (struct hvd_algorithm_section){.line = parser->line};
    parser->rest = line + 1;
    status = read_range(parser, "nodes", &section->least.nodes, &section->most.nodes);
    if (status == 0) {
        status = read_range(parser, "ranks", &section->least.ranks, &section->most.ranks);
    }
    end = status == 0 ? next_word(parser) : NULL;
    return end == NULL ? status : fail_expected(parser, "]", end);
}

/* Parses chunk=64K, window=512K or lanes=one. */
static int parse_column(struct parser *parser, const char *word,
                        struct hvd_algorithm_row *row)
{
    const char *chunk = value_of(word, "chunk"), *window = value_of(word, "window");
    bool has_slices =
        row->algorithm == HVD_ALGORITHM_LINEAR || row->algorithm == HVD_ALGORITHM_DIRECT;
    int64_t bytes = 0;

    if (has_slices && strcmp(word, "lanes=one") == 0) {
        row->has_one_slice = true;
        return 0;
    }
    if (row->algorithm == HVD_ALGORITHM_CMA_REDUCE ||
        row->algorithm == HVD_ALGORITHM_CMA_READ ||
        row->algorithm == HVD_ALGORITHM_CMA_WRITE) {
        return fail_expected(parser, "the end of the line", word);
    }
    if ((chunk == NULL || row->algorithm == HVD_ALGORITHM_PAIR) &&
        (window == NULL || row->algorithm != HVD_ALGORITHM_PAIR)) {
        return fail_expected(parser,
                             row->algorithm == HVD_ALGORITHM_PAIR ? "window=BYTES"
                             : has_slices ? "chunk=BYTES or lanes=one"
                                          : "chunk=BYTES",
                             word);
    }
    if (read_size(chunk != NULL ? chunk : window, &bytes) != 0 || bytes == 0) {
        return fail_expected(parser, "a size in bytes, such as 4096 or 64K", word);
    }
    *(chunk != NULL ? &row->chunk_bytes : &row->window_bytes) = (size_t)bytes;
    return 0;
}

/* Lists the algorithms that rows of a collective may choose. */
static const char *names_for(enum hvd_collective collective, char text[LINE_BYTES])
{
    const char *comma = "";
    size_t used = 0;

    for (int i = 0; i < HVD_ALGORITHMS; i++) {
        if (hvd_algorithm_is_for((enum hvd_algorithm)i, collective)) {
            used += (size_t)snprintf(text + used, LINE_BYTES - used, "%s%s", comma,
                                     hvd_algorithm_name((enum hvd_algorithm)i));
            comma = ", ";
        }
    }
    return text;
}

static int parse_row(struct parser *parser, enum hvd_collective collective)
{
    struct hvd_algorithm_rows *list = &parser->section->choices.of[collective];
    struct hvd_algorithm_row row = {.line = parser->line};
    char *size = next_word(parser), *algorithm = next_word(parser), *word;
    int number = algorithm != NULL ? hvd_algorithm_find(algorithm, collective) : -1;
    char names[LINE_BYTES];

    if (read_size(size, &row.from) != 0) {
        return fail_expected(parser, "a size in bytes, such as 4096 or 64K", size);
    }
    if (list->count == HVD_ALGORITHM_ROWS) {
        return fail_expected(parser, "at most 12 rows of a collective", size);
    }
    if (list->count == 0 && row.from != 0) {
        return fail_expected(parser, "0 in the first row of a collective", size);
    }
    if (list->count > 0 && row.from <= list->rows[list->count - 1].from) {
        return fail_expected(parser, "a larger size than in the row before", size);
    }
    if (number < 0) {
        return fail_expected(parser, names_for(collective, names), algorithm);
    }
    row.algorithm = (enum hvd_algorithm)number;
    while ((word = next_word(parser)) != NULL) {
        int status = parse_column(parser, word, &row);

        if (status != 0) {
            return status;
        }
    }
    list->rows[list->count++] = row;
    return 0;
}

static int parse_levels(struct parser *parser)
{
    char *word = next_word(parser);
    const char *levels = value_of(word, "levels");

    if (levels == NULL || levels[0] < '1' || levels[0] > '0' + HVD_GRID_LEVELS ||
        levels[1] != '\0') {
        return fail_expected(parser, "levels=1, levels=2 or levels=3", word);
    }
    parser->section->choices.grid_levels = levels[0] - '0';
    return 0;
}

/* Parses a line whose comment, leading and trailing blanks are removed. */
static int parse_line(struct parser *parser, char *line)
{
    static const char what[] = "a collective, multilevel, measured or [nodes=...]";
    char *word;
    int collective;

    if (line[0] == '\0') {
        return 0;
    }
    if (line[0] == '[') {
        return parse_head(parser, line);
    }
    word = strtok_r(line, " \t", &parser->rest);
    if (parser->section == NULL) {
        return fail_expected(parser, "[nodes=NUMBER ranks=NUMBER] first", word);
    }
    collective = hvd_collective_find(word);
    if (collective >= 0) {
        return parse_row(parser, (enum hvd_collective)collective);
    }
    if (strcmp(word, "multilevel") == 0 || strcmp(word, "grid") == 0) {
        return parse_levels(parser);
    }
    if (strcmp(word, "measured") != 0) {
        return fail_expected(parser, what, word);
    }
    snprintf(parser->section->measured, sizeof(parser->section->measured), "%s",
             parser->rest + strspn(parser->rest, " \t"));
    return 0;
}

static int check_row(struct parser *parser, enum hvd_collective collective, int row)
{
    const struct hvd_algorithm_section *section = parser->section;
    const struct hvd_algorithm_rows *list = &section->choices.of[collective];
    const struct hvd_algorithm_row *choice = &list->rows[row];
    int64_t most = row + 1 < list->count ? list->rows[row + 1].from - 1 : INT64_MAX;
    const char *least_why =
        hvd_algorithm_misfit(choice, collective, section->least, most);
    const char *why = hvd_algorithm_misfit(choice, collective, section->most, most);

    why = why != NULL ? why : least_why;
    return why == NULL ? 0
                       : hvd_fail(parser->err, HVD_ERR_ARG,
                                  "%s line %d: \"%s\" cannot be chosen here: %s",
                                  parser->table->name, choice->line,
                                  hvd_algorithm_name(choice->algorithm), why);
}

static int check_sections(struct parser *parser)
{
    for (int i = 0; i < parser->table->count; i++) {
        parser->section = &parser->table->sections[i];
        for (int k = 0; k < HVD_COLLECTIVES; k++) {
            for (int row = 0; row < parser->section->choices.of[k].count; row++) {
                int status = check_row(parser, (enum hvd_collective)k, row);

                if (status != 0) {
                    return status;
                }
            }
        }
    }
    return 0;
}

/* Copies a line without its comment, leading and trailing blanks. */
static int trim_line(struct parser *parser, const char *begin, const char *end,
                     char line[LINE_BYTES])
{
    const char *comment = memchr(begin, '#', (size_t)(end - begin));

    end = comment != NULL ? comment : end;
    begin += strspn(begin, " \t");
    while (end > begin && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r')) {
        end--;
    }
    if (end - begin >= LINE_BYTES) {
        return fail_expected(parser, "a line of fewer than 512 bytes", "more");
    }
    snprintf(line, LINE_BYTES, "%.*s", end > begin ? (int)(end - begin) : 0, begin);
    return 0;
}

static int parse_text(struct parser *parser, const char *text)
{
    int status = 0;

    while (*text != '\0' && status == 0) {
        const char *end = text + strcspn(text, "\n");
        char line[LINE_BYTES];

        parser->line++;
        status = trim_line(parser, text, end, line);
        if (status == 0) {
            status = parse_line(parser, line);
        }
        text = *end == '\n' ? end + 1 : end;
    }
    return status == 0 ? check_sections(parser) : status;
}

int hvd_algorithm_table_parse(const char *name, const char *text,
                              struct hvd_algorithm_table **out, struct hvd_error *err)
{
    struct parser parser = {.table = calloc(1, sizeof(*parser.table)), .err = err};
    int status;

    if (parser.table == NULL || (parser.table->name = strdup(name)) == NULL) {
        hvd_algorithm_table_destroy(parser.table);
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for %s", name);
    }
    status = parse_text(&parser, text);
    if (status != 0) {
        hvd_algorithm_table_destroy(parser.table);
        return status;
    }
    *out = parser.table;
    return 0;
}
