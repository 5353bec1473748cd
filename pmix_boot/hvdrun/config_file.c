/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over libyaml's document: a mapping of scalars and of mappings of scalars. */
#include "pmix_boot/hvdrun/config_file.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

#include "pmix_boot/hvdrun/option_table.h"

enum {
    NAME_BYTES = 128
};

static const struct {
    const char *name;
    const char *prefix; /* prefix of the names of the section's options */
} sections[] = {
    {"params", ""},           {"library_options", ""},        {"autotune", "autotune"},
    {"timeline", "timeline"}, {"stall_check", "stall-check"}, {"logging", "log"},
};

/* The file that is being read; `path` is for messages. */
struct reader {
    struct hvdrun_config *config;
    yaml_document_t *document;
    const char *path;
    struct hvd_error *err;
};

static const char *text_of(const yaml_node_t *node)
{
    return node != NULL && node->type == YAML_SCALAR_NODE
               ? (const char *)node->data.scalar.value
               : NULL;
}

static int fail_at(const struct reader *reader, const yaml_node_t *node, const char *why)
{
    return hvd_fail(reader->err, HVD_ERR_ARG, "%s line %zu: %s", reader->path,
                    node->start_mark.line + 1, why);
}

static bool is_word(const char *value, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (strcasecmp(value, *words) == 0) {
            return true;
        }
    }
    return false;
}

static int add_entry(const struct reader *reader, const char *name, const char *value,
                     size_t line)
{
    struct hvdrun_config *config = reader->config;
    struct hvdrun_config_entry *entries =
        realloc(config->entries, (size_t)(config->count + 1) * sizeof(entries[0]));
    struct hvdrun_config_entry entry = {.line = line};

    if (entries != NULL) {
        config->entries = entries;
        entry.name = strdup(name);
        entry.value = value != NULL ? strdup(value) : NULL;
        entries[config->count++] = entry;
    }
    return entries != NULL && entry.name != NULL && (value == NULL || entry.value != NULL)
               ? 0
               : hvd_fail(reader->err, HVD_ERR_NOMEM, "no memory to read %s",
                          reader->path);
}

/* Adds an option that takes no value: true adds `name`; false adds `no-name`, if there is
 * such an option. */
static int add_switch(const struct reader *reader, const char *name,
                      const yaml_node_t *node)
{
    static const char *const on[] = {"true", "yes", "on", "1", NULL};
    static const char *const off[] = {"false", "no", "off", "0", NULL};
    char opposite[NAME_BYTES + 3];
    const char *value = text_of(node);

    if (!is_word(value, on) && !is_word(value, off)) {
        return fail_at(reader, node, "expected true or false");
    }
    snprintf(opposite, sizeof(opposite), "no-%s", name);
    if (is_word(value, off) && hvdrun_option_find(opposite) == NULL) {
        return 0; /* off is the default */
    }
    return add_entry(reader, is_word(value, on) ? name : opposite, NULL,
                     node->start_mark.line + 1);
}

static int add_option(const struct reader *reader, const char *name,
                      const yaml_node_t *node)
{
    const struct hvdrun_option *option = hvdrun_option_find(name);

    if (text_of(node) == NULL) {
        return fail_at(reader, node, "expected one value");
    }
    if (option != NULL && option->argument == NULL) {
        return add_switch(reader, name, node);
    }
    return add_entry(reader, name, text_of(node), node->start_mark.line + 1);
}

/* Makes the name of an option: "warmup_samples" in autotune becomes
 * autotune-warmup-samples. */
static void name_option(const char *prefix, const char *key, char *name)
{
    if (strcmp(key, "enabled") == 0 && prefix[0] != '\0') {
        snprintf(name, NAME_BYTES, "%s", prefix);
    } else {
        snprintf(name, NAME_BYTES, "%s%s%s", prefix, prefix[0] != '\0' ? "-" : "", key);
    }
    for (char *c = name; *c != '\0'; c++) {
        *c = *c == '_' ? '-' : *c;
    }
}

static int read_pair(const struct reader *reader, const char *prefix,
                     const yaml_node_pair_t *pair)
{
    const yaml_node_t *key = yaml_document_get_node(reader->document, pair->key);
    const yaml_node_t *value = yaml_document_get_node(reader->document, pair->value);
    char name[NAME_BYTES];

    if (text_of(key) == NULL || value == NULL) {
        return fail_at(reader, key, "expected `name: value`");
    }
    if (prefix[0] == '\0' && strcmp(text_of(key), "controller") == 0 &&
        text_of(value) != NULL) {
        return add_option(reader, text_of(value),
                          &(yaml_node_t){
                              .type = YAML_SCALAR_NODE,
                              .data.scalar.value = (yaml_char_t *)"true",
                              .start_mark = value->start_mark,
                          });
    }
    name_option(prefix, text_of(key), name);
    return add_option(reader, name, value);
}

static const char *find_prefix(const char *section)
{
    for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
        if (section != NULL && strcmp(sections[i].name, section) == 0) {
            return sections[i].prefix;
        }
    }
    return NULL;
}

static int read_section(const struct reader *reader, const yaml_node_t *key,
                        const yaml_node_t *section)
{
    const char *prefix = find_prefix(text_of(key));

    if (prefix == NULL) {
        return fail_at(reader, key,
                       "expected params, autotune, timeline, stall_check, "
                       "library_options or logging");
    }
    for (const yaml_node_pair_t *pair = section->data.mapping.pairs.start;
         pair < section->data.mapping.pairs.top; pair++) {
        int status = read_pair(reader, prefix, pair);

        if (status < 0) {
            return status;
        }
    }
    return 0;
}

static int read_document(const struct reader *reader)
{
    const yaml_node_t *root = yaml_document_get_root_node(reader->document);

    if (root == NULL) {
        return 0; /* an empty file */
    }
    if (root->type != YAML_MAPPING_NODE) {
        return fail_at(reader, root, "expected `section:` or `name: value`");
    }
    for (const yaml_node_pair_t *pair = root->data.mapping.pairs.start;
         pair < root->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = yaml_document_get_node(reader->document, pair->key);
        const yaml_node_t *value = yaml_document_get_node(reader->document, pair->value);
        int status = value != NULL && value->type == YAML_MAPPING_NODE
                         ? read_section(reader, key, value)
                         : read_pair(reader, "", pair);

        if (status < 0) {
            return status;
        }
    }
    return 0;
}

static int parse_file(struct hvdrun_config *config, const char *path, FILE *file,
                      struct hvd_error *err)
{
    yaml_parser_t parser;
    yaml_document_t document;
    struct reader reader = {config, &document, path, err};
    int status;

    if (!yaml_parser_initialize(&parser)) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory to read %s", path);
    }
    yaml_parser_set_input_file(&parser, file);
    if (yaml_parser_load(&parser, &document)) {
        status = read_document(&reader);
        yaml_document_delete(&document);
    } else {
        status = hvd_fail(err, HVD_ERR_ARG, "%s line %zu: not YAML: %s", path,
                          parser.problem_mark.line + 1,
                          parser.problem != NULL ? parser.problem : "unreadable");
    }
    yaml_parser_delete(&parser);
    return status;
}

int hvdrun_config_read(const char *path, struct hvdrun_config *config,
                       struct hvd_error *err)
{
    FILE *file = fopen(path, "re");
    int status;

    if (file == NULL) {
        return hvd_fail(err, HVD_ERR_ARG, "cannot read --config-file %s: %m", path);
    }
    status = parse_file(config, path, file, err);
    fclose(file);
    return status;
}

void hvdrun_config_finish(struct hvdrun_config *config)
{
    for (int i = 0; i < config->count; i++) {
        free(config->entries[i].name);
        free(config->entries[i].value);
    }
    free(config->entries);
    *config = (struct hvdrun_config){0};
}
