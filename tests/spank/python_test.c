/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that hvd's front end goes to the end of PYTHONPATH, and that other packages of
 * its name are found. */
#include "spank/python.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/tap.h"

static const char dir[] = "/opt/hvd/python";

static bool joins(const char *path, const char *expected)
{
    char joined[64] = "untouched";

    return hvd_spank_python_path(path, dir, joined, sizeof(joined)) &&
           strcmp(joined, expected) == 0;
}

static void test_join(void)
{
    char small[16] = "untouched";

    tap_ok(joins(NULL, "/opt/hvd/python"),
           "without PYTHONPATH, the directory becomes its only entry");
    tap_ok(joins("", "/opt/hvd/python"), "an empty PYTHONPATH gets no empty entry");
    tap_ok(joins("/a:/b", "/a:/b:/opt/hvd/python"), "the user's entries come first");
    tap_ok(joins("/opt/hvd/python:/b", "/opt/hvd/python:/b"),
           "a directory that is there already is not added again");
    tap_ok(joins("/opt/hvd/python3", "/opt/hvd/python3:/opt/hvd/python"),
           "a longer name is another directory");
    tap_ok(!hvd_spank_python_path("/a", dir, small, sizeof(small)) &&
               strcmp(small, "untouched") == 0,
           "a result that does not fit leaves PYTHONPATH alone");
}

static bool places(const char *plugin, const char *expected)
{
    char found[64];

    return hvd_spank_python_folder(plugin, "/usr/lib/slurm/hvd.so", "/usr/lib/hvd/python",
                                   found, sizeof(found)) &&
           strcmp(found, expected) == 0;
}

static bool drops(const char *path, const char *expected)
{
    char rest[64] = "";

    return hvd_spank_python_path_without(path, "/opt/hvd/python", rest, sizeof(rest)) &&
           strcmp(rest, expected) == 0;
}

static void test_drop(void)
{
    char small[8];

    tap_ok(drops("/opt/hvd/python", ""), "the only entry is dropped");
    tap_ok(drops("/a:/opt/hvd/python:/b", "/a:/b"), "an entry in the middle is dropped");
    tap_ok(drops("/opt/hvd/python:/b:/opt/hvd/python", "/b"),
           "all repeated entries are dropped");
    tap_ok(drops("/a:/opt/hvd/pythons", "/a:/opt/hvd/pythons"), "a longer name is kept");
    tap_ok(!hvd_spank_python_path_without("/a/long/path", "/a", small, sizeof(small)),
           "a buffer that is too small is left alone");
}

static void test_place(void)
{
    tap_ok(places("/usr/lib/slurm/hvd.so", "/usr/lib/hvd/python"),
           "the front end is found where it was installed");
    tap_ok(places("/image/usr/lib/slurm/hvd.so", "/image/usr/lib/hvd/python"),
           "the front end is found below another root");
    tap_ok(places("/build/hvd.so", "/usr/lib/hvd/python"),
           "a plugin that is not installed uses the built path");
}

static void make_package(const char *root, const char *below)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/%s", root, below);
    for (char *slash = path + strlen(root) + 1; *slash != '\0'; slash++) {
        if (*slash == '/') {
            *slash = '\0';
            mkdir(path, 0755);
            *slash = '/';
        }
    }
    fclose(fopen(path, "w"));
}

static void test_rivals(const char *root)
{
    char expected[300];
    char path[600];
    char other[300];
    bool wins = false;

    snprintf(path, sizeof(path), "%s/empty:%s/mine:%s", root, root, dir);
    tap_ok(!hvd_spank_python_find_other(path, dir, NULL, other, sizeof(other), &wins),
           "without another package, none is reported");
    make_package(root, "mine/horovod/__init__.py");
    snprintf(expected, sizeof(expected), "%s/mine", root);
    tap_ok(hvd_spank_python_find_other(path, dir, NULL, other, sizeof(other), &wins) &&
               wins && strcmp(other, expected) == 0,
           "a package on PYTHONPATH before hvd's is reported as the one that wins");
    snprintf(path, sizeof(path), "%s:%s/mine", dir, root);
    tap_ok(!hvd_spank_python_find_other(path, dir, NULL, other, sizeof(other), &wins),
           "a package on PYTHONPATH behind hvd's is not reported");
    make_package(root, "venv/lib/python3.11/site-packages/horovod/__init__.py");
    snprintf(path, sizeof(path), "%s/venv", root);
    snprintf(expected, sizeof(expected), "%s/venv/lib/python3.11/site-packages", root);
    tap_ok(hvd_spank_python_find_other(dir, dir, path, other, sizeof(other), &wins) &&
               !wins && strcmp(other, expected) == 0,
           "a package in a virtual environment is reported as the one that loses");
    tap_ok(
        !hvd_spank_python_find_other(dir, dir, "relative", other, sizeof(other), &wins),
        "an environment without absolute path is not looked at");
}

int main(void)
{
    char root[] = "/tmp/hvd-python-test.XXXXXX";
    char command[128];

    test_join();
    test_drop();
    test_place();
    if (mkdtemp(root) == NULL) {
        tap_ok(false, "temporary directory");
        return tap_done();
    }
    test_rivals(root);
    snprintf(command, sizeof(command), "rm -rf '%s'", root);
    tap_ok(system(command) == 0, "temporary directory removed");
    return tap_done();
}
