/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the variables of NCCL's files: which ones a rank gets, and that the user's own
 * ones stay. */
#include "gpu_binding/base/nccl_files.h"

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"
#include "tests/tap.h"

enum {
    VARIABLES = 16,
    BYTES = 2 * PATH_MAX + 128,
};

static char work[] = "/tmp/nccl_files.XXXXXX"; /* a new folder, also the current one */
static char names[VARIABLES][64];
static char values[VARIABLES][BYTES];
static int count;

static const char *find(const char *name)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            return values[i];
        }
    }
    return NULL;
}

static int set(void *context, const char *name, const char *value)
{
    int i = 0;

    (void)context;
    while (i < count && strcmp(names[i], name) != 0) {
        i++;
    }
    if (i == VARIABLES) {
        return -1;
    }
    count += i == count;
    snprintf(names[i], sizeof(names[i]), "%s", name);
    snprintf(values[i], sizeof(values[i]), "%s", value);
    return 0;
}

static bool get(void *context, const char *name, char *value, size_t bytes)
{
    const char *found = find(name);

    (void)context;
    snprintf(value, bytes, "%s", found != NULL ? found : "");
    return found != NULL;
}

static const struct hvd_nccl_environment environment = {.get = get, .set = set};

/* Runs a launch for HVD_NCCL_FILES; directory: its new value, or NULL. */
static int give(const char *directory, int rank, struct hvd_error *err)
{
    if (directory != NULL) {
        set(NULL, HVD_ENV_NCCL_FILES, directory);
    }
    return hvd_nccl_files_set(&environment, rank, err);
}

/* True if the variable has this value, in which @ stands for `work`; NULL: it is
 * unset. */
static bool is(const char *name, const char *value)
{
    char wanted[BYTES] = "";
    const char *found = find(name);
    size_t used = 0;

    for (; value != NULL && *value != '\0'; value++) {
        const char one[] = {*value, '\0'};

        used += (size_t)snprintf(wanted + used, sizeof(wanted) - used, "%s",
                                 *value == '@' ? work : one);
    }
    if (value == NULL ? found == NULL : found != NULL && strcmp(found, wanted) == 0) {
        return true;
    }
    tap_note("%s is %s, expected %s", name, found != NULL ? found : "unset",
             value != NULL ? wanted : "unset");
    return false;
}

static bool is_directory(const char *path)
{
    struct stat found;

    return stat(path, &found) == 0 && S_ISDIR(found.st_mode);
}

static void test_variables(void)
{
    count = 0;
    tap_ok(give(NULL, 0, NULL) == 0 && count == 0,
           "without HVD_NCCL_FILES, a rank gets none of the variables");
    set(NULL, HVD_ENV_NCCL_FILES, "");
    tap_ok(give(NULL, 0, NULL) == 0 && count == 1,
           "an empty HVD_NCCL_FILES is like none");
    count = 0;
    tap_ok(give("logs/of job", 7, NULL) == 0 && is(HVD_ENV_NCCL_FILES, "@/logs/of job") &&
               is("NCCL_DEBUG_FILE", "@/logs/of job/nccl.7.%h.%p") &&
               is("NCCL_DEBUG", "WARN") && is("NCCL_RAS_ENABLE", "1") &&
               is("NCCL_PROFILER_PLUGIN", NULL) && count == 5,
           "a rank gets the file, the level and RAS; the path becomes absolute");
    tap_ok(is_directory("logs/of job"),
           "a folder that is missing is made, and its parents");
    count = 0;
    set(NULL, HVD_ENV_NCCL_FILES, "logs/");
    tap_ok(give(NULL, HVD_NCCL_RANK_UNKNOWN, NULL) == 0 &&
               is(HVD_ENV_NCCL_FILES, "@/logs") &&
               is("NCCL_DEBUG_FILE", "@/logs/nccl.-.%h.%p"),
           "a process that starts ranks gets a file without a rank");
    count = 0;
    tap_ok(give("a%h", 1, NULL) == 0 && is_directory("a%h") &&
               is("NCCL_DEBUG_FILE", "@/a%%h/nccl.1.%h.%p"),
           "NCCL does not replace a percent sign of the folder");
}

static void test_choice_of_user(void)
{
    count = 0;
    set(NULL, "NCCL_DEBUG_FILE", "mine.%p");
    set(NULL, "NCCL_DEBUG", "INFO");
    set(NULL, "NCCL_RAS_ENABLE", "0");
    tap_ok(give("logs", 3, NULL) == 0 && is("NCCL_DEBUG_FILE", "mine.%p") &&
               is("NCCL_DEBUG", "INFO") && is("NCCL_RAS_ENABLE", "0"),
           "values that the user set stay");
    tap_ok(give("other", 4, NULL) == 0 && is("NCCL_DEBUG_FILE", "mine.%p") &&
               is("NCCL_DEBUG", "INFO"),
           "they also stay in a launch inside another one");
    count = 0;
    set(NULL, "NCCL_DEBUG_FILE", "");
    tap_ok(give("logs", 3, NULL) == 0 && is("NCCL_DEBUG_FILE", ""),
           "an empty NCCL_DEBUG_FILE of the user stays");
}

static void test_outer_launch(void)
{
    count = 0;
    give("logs", 3, NULL);
    tap_ok(give("inner", 12, NULL) == 0 &&
               is("NCCL_DEBUG_FILE", "@/inner/nccl.12.%h.%p") &&
               is(HVD_ENV_NCCL_FILES, "@/inner"),
           "a launch inside another one replaces the outer folder and rank");
    tap_ok(give(NULL, 5, NULL) == 0 && is("NCCL_DEBUG_FILE", "@/inner/nccl.5.%h.%p"),
           "if it names no folder, its ranks use the outer one");
    give(NULL, HVD_NCCL_RANK_UNKNOWN, NULL);
    tap_ok(give(NULL, 2, NULL) == 0 && is("NCCL_DEBUG_FILE", "@/inner/nccl.2.%h.%p"),
           "a rank of torchrun gets its number");
    set(NULL, "NCCL_DEBUG_FILE", "/mine/nccl.1.%h.%p");
    tap_ok(give(NULL, 5, NULL) == 0 && is("NCCL_DEBUG_FILE", "/mine/nccl.1.%h.%p"),
           "a file that the user chose inside the outer launch stays");
}

static void test_inspector(void)
{
    char path[PATH_MAX];

    mkdir("lib", 0700);
    snprintf(path, sizeof(path), "/nowhere::%s/lib", work);
    count = 0;
    set(NULL, "LD_LIBRARY_PATH", path);
    tap_ok(give("logs", 0, NULL) == 0 && is("NCCL_PROFILER_PLUGIN", NULL) &&
               is("NCCL_INSPECTOR_ENABLE", NULL),
           "without the Inspector's library, its variables stay unset");
    close(open("lib/libnccl-profiler-inspector.so", O_CREAT | O_WRONLY, 0600));
    tap_ok(give("logs", 0, NULL) == 0 &&
               is("NCCL_PROFILER_PLUGIN", "@/lib/libnccl-profiler-inspector.so") &&
               is("NCCL_INSPECTOR_ENABLE", "1") &&
               is("NCCL_INSPECTOR_DUMP_DIR", "@/logs/inspector") &&
               is("NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS", "1000000"),
           "the Inspector is switched on if LD_LIBRARY_PATH has its library");
    tap_ok(give("inner", 0, NULL) == 0 &&
               is("NCCL_INSPECTOR_DUMP_DIR", "@/inner/inspector"),
           "a launch inside another one replaces the Inspector's folder");
    count = 0;
    set(NULL, "LD_LIBRARY_PATH", path);
    set(NULL, "NCCL_INSPECTOR_DUMP_DIR", "/mine");
    set(NULL, "NCCL_INSPECTOR_ENABLE", "0");
    tap_ok(give("logs", 0, NULL) == 0 && is("NCCL_INSPECTOR_DUMP_DIR", "/mine") &&
               is("NCCL_INSPECTOR_ENABLE", "0"),
           "settings of the Inspector that the user chose stay");
    count = 0;
    set(NULL, "LD_LIBRARY_PATH", path);
    set(NULL, "NCCL_PROFILER_PLUGIN", "none");
    tap_ok(give("logs", 0, NULL) == 0 && is("NCCL_PROFILER_PLUGIN", "none") &&
               is("NCCL_INSPECTOR_ENABLE", NULL),
           "another profiler that the user chose stays, without the Inspector");
}

static void test_refusals(void)
{
    char path[PATH_MAX + 1];
    struct hvd_error err = {0};

    close(open("file", O_CREAT | O_WRONLY, 0600));
    count = 0;
    tap_ok(give("file/logs", 0, &err) == HVD_ERR_SYS && count == 1 &&
               strstr(err.text, work) != NULL && strstr(err.text, "file/logs") != NULL &&
               strstr(err.text, "cannot make") != NULL,
           "a folder that cannot be made is an error that names it: %s", err.text);
    tap_ok(give("file", 0, &err) == HVD_ERR_SYS && strstr(err.text, "/file ") != NULL,
           "a file in place of the folder is an error: %s", err.text);
    memset(path, 'x', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    tap_ok(give(path, 0, &err) == HVD_ERR_SYS && strstr(err.text, "too long") != NULL,
           "a path that is too long is an error");
    mkdir("closed", 0500);
    if (access("closed", W_OK) == 0) {
        tap_skip("a folder that cannot be written is an error",
                 "root may write anywhere");
    } else {
        tap_ok(give("closed", 0, &err) == HVD_ERR_SYS &&
                   strstr(err.text, "cannot write to") != NULL,
               "a folder that cannot be written is an error: %s", err.text);
    }
}

static void test_advice(void)
{
    char line[64];

    tap_ok(hvd_nccl_files_advise("/x/logs", "ncclSend failed (NCCL 23004)", line,
                                 sizeof(line)) &&
               strstr(line, "hvd-info --nccl /x/logs") != NULL,
           "a failure of NCCL is followed by the command that explains it");
    tap_ok(!hvd_nccl_files_advise("/x/logs", "NCCL cannot be used", line, sizeof(line)) &&
               line[0] == '\0' &&
               !hvd_nccl_files_advise(NULL, "(NCCL ", line, sizeof(line)) &&
               !hvd_nccl_files_advise("", "(NCCL ", line, sizeof(line)),
           "other failures are not, nor without HVD_NCCL_FILES");
    tap_ok(!hvd_nccl_files_advise("/a/path/of/more/than/thirty/characters", "(NCCL ",
                                  line, sizeof(line)) &&
               line[0] == '\0',
           "half a command is never shown");
}

static int remove_one(const char *path, const struct stat *found, int kind,
                      struct FTW *where)
{
    (void)found;
    (void)kind;
    (void)where;
    return remove(path);
}

int main(void)
{
    if (mkdtemp(work) == NULL || chdir(work) != 0) {
        return 1;
    }
    test_variables();
    test_choice_of_user();
    test_outer_launch();
    test_inspector();
    test_refusals();
    test_advice();
    (void)nftw(work, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return tap_done();
}
