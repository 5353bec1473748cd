/* SPDX-License-Identifier: Apache-2.0 */
/* Reads plugstack.conf and the files that it includes, as Slurm does. */
#include "contrib/info/slurm/plugstack.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    /* of includes. Slurm has no limit: it never ends if a file includes itself */
    MOST_LEVELS = 16,
};

struct reader {
    const char *plugin_dir;
    void (*take)(void *context, const struct hvd_info_plugstack_line *line);
    void *context;
    int level;
};

static void read_file(struct reader *reader, const char *file);

static void give(const struct reader *reader, struct hvd_info_plugstack_line *line,
                 enum hvd_info_plugstack_kind kind, const char *text)
{
    line->kind = kind;
    snprintf(line->text, sizeof(line->text), "%s", text);
    reader->take(reader->context, line);
}

/* Makes the path of an include, which may be relative to the file that contains it. */
static void make_pattern(const char *file, const char *word, char pattern[PATH_MAX])
{
    const char *slash = strrchr(file, '/');

    if (word[0] == '/' || slash == NULL) {
        snprintf(pattern, PATH_MAX, "%s", word);
    } else {
        snprintf(pattern, PATH_MAX, "%.*s/%s", (int)(slash - file), file, word);
    }
}

static void include(struct reader *reader, struct hvd_info_plugstack_line *line,
                    const char *word)
{
    char pattern[PATH_MAX];
    glob_t found;

    make_pattern(line->file, word, pattern);
    if (glob(pattern, 0, NULL, &found) != 0) {
        give(reader, line, HVD_INFO_PLUGSTACK_EMPTY, pattern);
        return;
    }
    reader->level++;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        read_file(reader, found.gl_pathv[i]);
    }
    reader->level--;
    globfree(&found);
}

/* Looks in PluginDir for a plugin without a path. Copies the name if it is not there. */
static void find_plugin(const char *plugin_dir, const char *word, char path[PATH_MAX])
{
    while (word[0] != '/' && *plugin_dir != '\0') {
        size_t bytes = strcspn(plugin_dir, ":");

        snprintf(path, PATH_MAX, "%.*s/%s", (int)bytes, plugin_dir, word);
        if (access(path, F_OK) == 0) {
            return;
        }
        plugin_dir += bytes + (plugin_dir[bytes] == ':');
    }
    snprintf(path, PATH_MAX, "%s", word);
}

static void read_line(struct reader *reader, struct hvd_info_plugstack_line *line,
                      char *text)
{
    char plugin[PATH_MAX];
    char *rest;

    text[strcspn(text, "#\n")] = '\0';
    char *keyword = strtok_r(text, " \t", &rest);
    char *word = keyword != NULL ? strtok_r(NULL, " \t", &rest) : NULL;
    if (keyword == NULL) {
        return;
    }
    bool is_required = strcmp(keyword, "required") == 0;
    bool is_include = strcmp(keyword, "include") == 0;
    if (word == NULL ||
        (!is_required && !is_include && strcmp(keyword, "optional") != 0)) {
        give(reader, line, HVD_INFO_PLUGSTACK_INVALID, keyword);
    } else if (is_include) {
        include(reader, line, word);
    } else {
        find_plugin(reader->plugin_dir, word, plugin);
        line->words = rest;
        give(reader, line,
             is_required ? HVD_INFO_PLUGSTACK_REQUIRED : HVD_INFO_PLUGSTACK_OPTIONAL,
             plugin);
    }
}

static void read_file(struct reader *reader, const char *file)
{
    struct hvd_info_plugstack_line line = {.number = 0};
    char text[4096]; /* as in Slurm, which cuts longer lines */

    snprintf(line.file, sizeof(line.file), "%s", file);
    if (reader->level > MOST_LEVELS) {
        give(reader, &line, HVD_INFO_PLUGSTACK_UNREADABLE, "files include each other");
        return;
    }
    FILE *in = fopen(file, "re");
    if (in == NULL) {
        if (errno != ENOENT) {
            give(reader, &line, HVD_INFO_PLUGSTACK_UNREADABLE, strerror(errno));
        }
        return;
    }
    while (fgets(text, sizeof(text), in) != NULL) {
        line.number++;
        read_line(reader, &line, text);
    }
    fclose(in);
}

void hvd_info_plugstack_read(const char *file, const char *plugin_dir,
                             void (*take)(void *context,
                                          const struct hvd_info_plugstack_line *line),
                             void *context)
{
    struct reader reader = {plugin_dir, take, context, 0};

    read_file(&reader, file);
}
