/* SPDX-License-Identifier: Apache-2.0 */
/* hvd-info --slurm. Slurm rejects a plugin that was built for another release (the first
 * two numbers of a version). If its line in plugstack.conf says `required`, every srun
 * then fails and slurmd does not start; if it says `optional`, srun has no --hvd. Both
 * show only when the next job starts, as do wrong words after the path of hvd's plugin.
 * This check finds them before. */
#include "contrib/info/slurm/slurm.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "contrib/info/hostlist.h"
#include "contrib/info/slurm/plugin.h"
#include "contrib/info/slurm/plugstack.h"
#include "contrib/info/process.h"
#include "gpu_binding/base/env.h"
#include "spank/plugstack.h"

enum {
    LIMIT_MS = 10000,
    VERSION_BYTES = 32,
    /* exit statuses */
    IS_WRONG = 1,
    IS_UNKNOWN = 2,
};

#define OWN_PLUGIN "spank_hvd.so"
/* where slurmd and sackd keep the files that slurmctld sends */
#define SENT_DIR "/run/slurm/conf"
#define REBUILD                                                                          \
    "build hvd against the new release and install it: meson setup --wipe build && "     \
    "meson install -C build"

struct inspection {
    hvd_info_lookup lookup;
    bool is_wrong;
    bool is_unknown;
    char srun[VERSION_BYTES]; /* "22.05.8"; empty if not known */
    char slurmctld[VERSION_BYTES];
    char plugstack_path[PATH_MAX]; /* PlugStackConfig; empty if not known */
    char plugin_dir[PATH_MAX];
    char slurm_conf[PATH_MAX];
    int own_count; /* lines that load hvd's plugin */
    char own_line[PATH_MAX + 16]; /* FILE:NUMBER of the last of them */
    int own_release; /* 0: not known */
    bool is_own_required;
};

/* --- findings --- */

HVD_PRINTF(2, 3)
static void say_wrong(struct inspection *inspection, const char *format, ...)
{
    va_list args;

    inspection->is_wrong = true;
    printf("wrong: ");
    va_start(args, format);
    vfprintf(stdout, format, args);
    va_end(args);
    printf("\n");
}

HVD_PRINTF(2, 3)
static void say_unknown(struct inspection *inspection, const char *format, ...)
{
    va_list args;

    inspection->is_unknown = true;
    printf("unknown: ");
    va_start(args, format);
    vfprintf(stdout, format, args);
    va_end(args);
    printf("\n");
}

/* --- versions --- */

/* Returns the release of a version: 2205 for "22.05.8"; 0 for anything else. */
static int release_of(const char *version)
{
    int major, minor;

    return sscanf(version, "%2d.%2d", &major, &minor) == 2 && major > 0
               ? 100 * major + minor
               : 0;
}

/* Copies the version with which the text begins, up to a blank. */
static void copy_version(const char *text, char version[VERSION_BYTES])
{
    snprintf(version, VERSION_BYTES, "%.*s", (int)strcspn(text, " \t\n"), text);
    if (release_of(version) == 0) {
        version[0] = '\0';
    }
}

/* The output of a command of Slurm. */
struct answer {
    char *text; /* NULL if the command has failed; freed by the caller */
    bool is_missing; /* there is no such command */
    bool is_of_plugin; /* a plugin of plugstack.conf made it fail */
    char why[512]; /* why it failed */
};

/* Returns the line of the output that best explains a failure: the one about a plugin,
 * else the first. */
static const char *find_cause(const char *text)
{
    const char *spank = strstr(text, "spank");

    while (spank != NULL && spank > text && spank[-1] != '\n') {
        spank--;
    }
    return spank != NULL ? spank : text;
}

static void ask(const char *const *argv, struct answer *answer)
{
    const struct hvd_info_process process = {
        .argv = argv, .limit_ms = LIMIT_MS, .most_bytes = HVD_INFO_PROCESS_LARGE_BYTES};
    struct hvd_info_output output = {0};
    struct hvd_error err = {0};

    memset(answer, 0, sizeof(*answer));
    if (hvd_info_process_run(&process, &output, &err) < 0) {
        snprintf(answer->why, sizeof(answer->why), "%s", err.text);
    } else if (output.is_cut) {
        snprintf(answer->why, sizeof(answer->why), "more than 16 megabytes of output");
    } else if (hvd_info_output_is_good(&output)) {
        answer->text = output.text;
        return;
    } else if (output.is_late) {
        snprintf(answer->why, sizeof(answer->why), "no answer within %d s",
                 LIMIT_MS / 1000);
    } else if (output.is_missing) {
        answer->is_missing = true;
        snprintf(answer->why, sizeof(answer->why), "not found in PATH");
    } else {
        const char *cause = find_cause(output.text);

        answer->is_of_plugin = strstr(cause, "spank") != NULL;
        snprintf(answer->why, sizeof(answer->why), "%.*s", (int)strcspn(cause, "\n"),
                 cause);
    }
    hvd_info_output_finish(&output);
}

/* Finds the version in the output of `srun --version`: "slurm 22.05.8", or "slurm-wlm
 * 22.05.8". Slurm may print warnings before. */
static void find_version(const char *text, char version[VERSION_BYTES])
{
    while (text != NULL && version[0] == '\0') {
        if (strncmp(text, "slurm", 5) == 0) {
            const char *blank = text + strcspn(text, " \n");

            copy_version(blank + strspn(blank, " "), version);
        }
        text = strchr(text, '\n');
        text = text != NULL ? text + 1 : NULL;
    }
}

/* Finds the version of srun. srun loads the plugins even to print its version; if that
 * fails, takes the version of scontrol, which loads none. Returns false if both are
 * missing. */
static bool ask_version(struct inspection *inspection)
{
    static const char *const argv[][3] = {{"srun", "--version", NULL},
                                          {"scontrol", "--version", NULL}};
    struct answer srun, scontrol;

    ask(argv[0], &srun);
    ask(argv[1], &scontrol);
    if (srun.is_missing && scontrol.is_missing) {
        return false;
    }
    if (srun.is_of_plugin) {
        say_wrong(inspection, "srun does not start: %s: see below", srun.why);
    } else if (srun.text == NULL) {
        say_unknown(inspection, "srun --version: %s: run this where users type srun",
                    srun.why);
    }
    find_version(srun.text != NULL ? srun.text : scontrol.text, inspection->srun);
    printf("srun: %s\n", inspection->srun[0] != '\0' ? inspection->srun : "unknown");
    free(srun.text);
    free(scontrol.text);
    return true;
}

/* Copies the value of a line "KEY = VALUE" of `scontrol show config`. */
static void find_setting(const char *text, const char *key, char *value, size_t bytes)
{
    const char *line = text;

    while (line != NULL && *line != '\0') {
        size_t length = strcspn(line, " =\n");

        if (length == strlen(key) && strncmp(line, key, length) == 0) {
            const char *found = line + length + strspn(line + length, " =");

            snprintf(value, bytes, "%.*s", (int)strcspn(found, " \n"), found);
            return;
        }
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
}

static void ask_slurmctld(struct inspection *inspection)
{
    static const char *const argv[] = {"scontrol", "show", "config", NULL};
    char version[64] = "";
    struct answer answer;

    ask(argv, &answer);
    if (answer.text == NULL) {
        say_unknown(inspection,
                    "slurmctld: scontrol show config: %s: run this again when slurmctld "
                    "answers",
                    answer.why);
        return;
    }
    find_setting(answer.text, "SLURM_VERSION", version, sizeof(version));
    find_setting(answer.text, "PlugStackConfig", inspection->plugstack_path, PATH_MAX);
    find_setting(answer.text, "PluginDir", inspection->plugin_dir, PATH_MAX);
    find_setting(answer.text, "SLURM_CONF", inspection->slurm_conf, PATH_MAX);
    free(answer.text);
    copy_version(version, inspection->slurmctld);
    printf("slurmctld: %s\n",
           inspection->slurmctld[0] != '\0' ? inspection->slurmctld : "unknown");
}

/* --- plugstack.conf --- */

/* Writes the path of the plugstack.conf that srun reads here, or "". On a configless
 * cluster, it is among the files that slurmctld sends. */
static void find_plugstack(const struct inspection *inspection, char path[PATH_MAX])
{
    const char *chosen = inspection->lookup(HVD_ENV_SLURM_CONF);
    bool has_own_conf = chosen != NULL || access(inspection->slurm_conf, F_OK) == 0;

    snprintf(path, PATH_MAX, "%s", inspection->plugstack_path);
    if (path[0] == '/' && (has_own_conf || access(SENT_DIR "/slurm.conf", F_OK) < 0)) {
        return;
    }
    if (chosen != NULL && strrchr(chosen, '/') != NULL) {
        snprintf(path, PATH_MAX, "%.*s/plugstack.conf",
                 (int)(strrchr(chosen, '/') - chosen), chosen);
        return;
    }
    snprintf(path, PATH_MAX, "%s",
             access(SENT_DIR "/slurm.conf", F_OK) == 0    ? SENT_DIR "/plugstack.conf"
             : access("/etc/slurm/slurm.conf", F_OK) == 0 ? "/etc/slurm/plugstack.conf"
                                                          : "");
}

/* Returns what users notice if the plugin cannot be loaded. */
static const char *effect_of(bool is_required, bool is_own)
{
    return is_required ? "every srun, sbatch and salloc fails, and slurmd does not start"
           : is_own    ? "srun has no --hvd"
                       : "Slurm goes on without it";
}

/* Compares the plugin's release with that of srun. */
static void check_release(struct inspection *inspection,
                          const struct hvd_info_plugstack_line *line, bool is_own,
                          int release)
{
    int expected = release_of(inspection->srun);

    if (expected == 0 || release == expected) {
        return;
    }
    say_wrong(
        inspection, "%s:%d: %s is for Slurm %d.%02d, but srun is %s, so %s: %s",
        line->file, line->number, line->text, release / 100, release % 100,
        inspection->srun, effect_of(line->kind == HVD_INFO_PLUGSTACK_REQUIRED, is_own),
        is_own ? REBUILD : "install the plugin for this release, or take the line out");
}

/* Checks the words after the path of hvd's plugin as the plugin does, which ignores those
 * that are wrong. */
static void check_words(struct inspection *inspection,
                        const struct hvd_info_plugstack_line *line)
{
    struct hvd_spank_plugstack parsed;
    struct hvd_error cause = {0};
    char *rest;

    hvd_spank_plugstack_init(&parsed, "");
    for (char *word = strtok_r(line->words, " \t", &rest); word != NULL;
         word = strtok_r(NULL, " \t", &rest)) {
        if (hvd_spank_plugstack_parse(word, &parsed, &cause) != 0) {
            say_wrong(inspection, "%s:%d: %s", line->file, line->number, cause.text);
        }
    }
}

static void check_plugin(struct inspection *inspection,
                         const struct hvd_info_plugstack_line *line)
{
    const char *slash = strrchr(line->text, '/');
    bool is_own = strcmp(slash != NULL ? slash + 1 : line->text, OWN_PLUGIN) == 0;
    bool is_required = line->kind == HVD_INFO_PLUGSTACK_REQUIRED;
    struct hvd_error cause = {0};
    int release = 0;
    int status = hvd_info_plugin_release(line->text, &release, &cause);

    printf("%s:%d: %s %s: ", line->file, line->number,
           is_required ? "required" : "optional", line->text);
    if (status == 0) {
        printf("for Slurm %d.%02d\n", release / 100, release % 100);
    } else {
        printf("cannot be loaded\n");
        say_wrong(inspection, "%s:%d: %s, so %s: %s", line->file, line->number,
                  cause.text, effect_of(is_required, is_own),
                  is_own ? "install hvd again, or correct the path"
                         : "install the plugin, or take the line out");
    }
    if (is_own) {
        inspection->own_count++;
        inspection->own_release = release;
        inspection->is_own_required = is_required;
        if (inspection->own_count > 1) {
            say_wrong(inspection,
                      "%s:%d loads hvd's plugin again, after %s, so --hvd is registered "
                      "twice: take one of the lines out",
                      line->file, line->number, inspection->own_line);
        }
        snprintf(inspection->own_line, sizeof(inspection->own_line), "%s:%d", line->file,
                 line->number);
        check_words(inspection, line);
    }
    if (status == 0) {
        check_release(inspection, line, is_own, release);
    }
}

static void check_line(void *context, const struct hvd_info_plugstack_line *line)
{
    struct inspection *inspection = context;

    switch (line->kind) {
    case HVD_INFO_PLUGSTACK_REQUIRED:
    case HVD_INFO_PLUGSTACK_OPTIONAL:
        check_plugin(inspection, line);
        break;
    case HVD_INFO_PLUGSTACK_EMPTY:
        printf("%s:%d: include %s: no such file\n", line->file, line->number, line->text);
        break;
    case HVD_INFO_PLUGSTACK_INVALID:
        say_wrong(inspection,
                  "%s:%d: Slurm ignores this line, which begins with '%.100s': expected "
                  "required, optional or include, and a path",
                  line->file, line->number, line->text);
        break;
    case HVD_INFO_PLUGSTACK_UNREADABLE:
        say_wrong(inspection,
                  "%s: %s, so every srun of this user fails: let all users read it",
                  line->file, line->text);
        break;
    }
}

static void check_plugstack(struct inspection *inspection)
{
    char path[PATH_MAX];

    find_plugstack(inspection, path);
    if (path[0] == '\0') {
        say_unknown(inspection,
                    "plugstack.conf: there is no slurm.conf here, and slurmctld has sent "
                    "none to " SENT_DIR ": run this on a machine that has one of them, "
                    "or set SLURM_CONF");
        return;
    }
    printf("plugstack.conf: %s%s\n", path,
           access(path, F_OK) == 0 ? "" : ", which does not exist");
    hvd_info_plugstack_read(path, inspection->plugin_dir, check_line, inspection);
    if (inspection->own_count == 0) {
        say_wrong(inspection,
                  "no line loads " OWN_PLUGIN ", so srun has no --hvd: add the line "
                  "`include " HVD_INFO_PLUGSTACK_DIR "/*.conf` to %s%s",
                  path,
                  strncmp(path, SENT_DIR "/", sizeof(SENT_DIR)) == 0
                      ? " on the machine of slurmctld, and type scontrol reconfigure"
                      : "");
    }
}

/* --- nodes --- */

struct node {
    char *name;
    char version[VERSION_BYTES]; /* of slurmd; empty if slurmctld does not know it */
};

/* Returns the value of a word KEY=VALUE in the line, or NULL. */
static const char *find_word(const char *line, const char *key)
{
    size_t bytes = strlen(key);

    while (*line != '\0' && *line != '\n') {
        if (strncmp(line, key, bytes) == 0 && line[bytes] == '=') {
            return line + bytes + 1;
        }
        line += strcspn(line, " \n");
        line += strspn(line, " ");
    }
    return NULL;
}

/* Orders nodes by version, and those of one version by name. */
static int compare_nodes(const void *left, const void *right)
{
    const struct node *a = left;
    const struct node *b = right;
    int order = strcmp(a->version, b->version);

    return order != 0 ? order : hvd_info_hostlist_compare(&a->name, &b->name);
}

/* Reads the nodes of `scontrol show nodes --oneliner`. */
static int read_nodes(const char *text, struct node *nodes)
{
    int count = 0;

    while (text != NULL && *text != '\0') {
        const char *name = find_word(text, "NodeName");
        const char *version = find_word(text, "Version");

        if (name != NULL) {
            nodes[count].name = strndup(name, strcspn(name, " \n"));
            nodes[count].version[0] = '\0';
            if (version != NULL) {
                copy_version(version, nodes[count].version);
            }
            count += nodes[count].name != NULL;
        }
        text = strchr(text, '\n');
        text = text != NULL ? text + 1 : NULL;
    }
    qsort(nodes, (size_t)count, sizeof(nodes[0]), compare_nodes);
    return count;
}

/* Checks a version of slurmd. where: the nodes that have it. */
static void check_slurmd(struct inspection *inspection, const char *version,
                         const char *where)
{
    int release = release_of(version);
    int own = inspection->own_release;

    if (release == 0) {
        printf("note: slurmctld does not know the slurmd on %s, which is down: look "
               "again when it is up\n",
               where);
        return;
    }
    printf("slurmd: %s on %s\n", version, where);
    if (inspection->slurmctld[0] != '\0' && release > release_of(inspection->slurmctld)) {
        say_wrong(inspection,
                  "slurmd on %s is %s, but slurmctld is %s: Slurm does not support a "
                  "slurmd that is newer than slurmctld: upgrade slurmctld",
                  where, version, inspection->slurmctld);
    }
    if (own != 0 && own != release) {
        say_wrong(inspection,
                  "%s is for Slurm %d.%02d, but slurmd on %s is %s, so %s: install "
                  "there an hvd that was built for that release, or bring slurmd to "
                  "%d.%02d. Ignore this if these nodes have such an hvd",
                  inspection->own_line, own / 100, own % 100, where, version,
                  inspection->is_own_required ? "slurmd does not start there"
                                              : "ranks start there without hvd",
                  own / 100, own % 100);
    }
}

/* Calls check_slurmd for each version, with the nodes that have it. */
static void check_nodes(struct inspection *inspection, const struct node *nodes,
                        int count)
{
    for (int first = 0, end; first < count; first = end) {
        const char **names = calloc((size_t)count, sizeof(*names));
        char *where = NULL;
        size_t bytes;
        FILE *out = open_memstream(&where, &bytes);

        for (end = first;
             end < count && strcmp(nodes[end].version, nodes[first].version) == 0;
             end++) {
            if (names != NULL) {
                names[end - first] = nodes[end].name;
            }
        }
        if (names != NULL && out != NULL) {
            hvd_info_hostlist_print(names, end - first, out);
            fflush(out);
            check_slurmd(inspection, nodes[first].version, where);
        }
        if (out != NULL) {
            fclose(out);
        }
        free(where);
        free(names);
    }
}

static void ask_nodes(struct inspection *inspection)
{
    static const char *const argv[] = {"scontrol", "--oneliner", "show", "nodes", NULL};
    struct answer answer;
    size_t most = 1;

    ask(argv, &answer);
    if (answer.text == NULL) {
        say_unknown(inspection, "slurmd: scontrol show nodes: %s", answer.why);
        return;
    }
    for (const char *each = answer.text; *each != '\0'; each++) {
        most += *each == '\n';
    }
    struct node *nodes = calloc(most, sizeof(*nodes));
    int count = nodes != NULL ? read_nodes(answer.text, nodes) : 0;
    if (count == 0) {
        say_unknown(inspection, "slurmd: scontrol show nodes lists no nodes");
    }
    check_nodes(inspection, nodes, count);
    for (int i = 0; i < count; i++) {
        free(nodes[i].name);
    }
    free(nodes);
    free(answer.text);
}

/* --- the whole --- */

/* Checks Slurm's own rule: no command may be newer than slurmctld. */
static void check_order(struct inspection *inspection)
{
    if (inspection->slurmctld[0] != '\0' &&
        release_of(inspection->srun) > release_of(inspection->slurmctld)) {
        say_wrong(inspection,
                  "srun is %s, but slurmctld is %s: Slurm does not support commands that "
                  "are newer than slurmctld: upgrade slurmctld first",
                  inspection->srun, inspection->slurmctld);
    }
}

int hvd_info_slurm(hvd_info_lookup lookup)
{
    struct inspection inspection = {.lookup = lookup};

    if (!ask_version(&inspection)) {
        printf("verdict: unknown, there is no Slurm here: neither srun nor scontrol is "
               "in PATH\n");
        return IS_UNKNOWN;
    }
    ask_slurmctld(&inspection);
    check_order(&inspection);
    check_plugstack(&inspection);
    if (inspection.slurmctld[0] != '\0') {
        ask_nodes(&inspection);
    }
    printf("verdict: %s\n", inspection.is_wrong     ? "wrong, see above"
                            : inspection.is_unknown ? "unknown, see above"
                                                    : "good");
    return inspection.is_wrong     ? IS_WRONG
           : inspection.is_unknown ? IS_UNKNOWN
                                   : EXIT_SUCCESS;
}
