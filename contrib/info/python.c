/* SPDX-License-Identifier: Apache-2.0 */
/* Runs scripts of hvd's package: neighbours.py, which looks for packages by Python's own
 * import system, and timeline_page.py. */
#include "contrib/info/python.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char neighbours[] = "neighbours.py";

/* Runs the script as `python -c` would, so that sys.path begins with the current
 * directory. For a script file, Python would put the directory of the file first. The
 * version is checked before the script is read, because older versions cannot parse the
 * script. */
static char run_script[] =
    "import sys\n"
    "if sys.version_info < (3, 8):\n"
    "    sys.exit('hvd-info: hvd needs Python 3.8 or newer, %s is '\n"
    "             '%d.%d' % ((sys.executable,) + sys.version_info[:2]))\n"
    "import runpy\n"
    "sys.argv = sys.argv[1:]\n"
    "runpy.run_path(sys.argv[0], run_name='__main__')\n";

/* Files of hvd that lie in one of three folders. */
struct place {
    const char *what;
    const char *folders[3];
};

/* Relative to the folder of this program: as installed, in a wheel, and in a build folder
 * of the source tree. */
static const struct place scripts = {"Python package",
                                     {"../lib/hvd/python/horovod/runner/",
                                      "../../runner/",
                                      "../../../contrib/python/horovod/runner/"}};
static const struct place pages = {"pages",
                                   {"../share/hvd/", "../../share/hvd/", "../page/"}};

static int find_file(const struct place *place, const char *name, char path[PATH_MAX],
                     struct hvd_error *err)
{
    char self[PATH_MAX];
    char file[2 * PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

    self[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (slash == NULL) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot read /proc/self/exe: %m");
    }
    *slash = '\0';
    for (int i = 0; i < 3; i++) {
        snprintf(file, sizeof(file), "%s/%s%s", self, place->folders[i], name);
        if (realpath(file, path) != NULL) {
            return 0;
        }
    }
    return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                    "cannot find hvd's %s at %.300s/%s%s: install all of hvd",
                    place->what, self, place->folders[0], name);
}

/* Runs the script by the interpreter; NULL: by python in PATH, else by python3. */
static int run_python(const char *python, const char *option, struct hvd_error *err)
{
    char script[PATH_MAX];
    char command[] = "-c";
    const char *names[] = {python != NULL ? python : "python",
                           python != NULL ? NULL : "python3"};
    int status = find_file(&scripts, neighbours, script, err);

    if (status < 0) {
        return status;
    }
    for (size_t i = 0; i < 2 && names[i] != NULL; i++) {
        char *arguments[] = {(char *)names[i], command,        run_script,
                             script,           (char *)option, NULL};

        execvp(names[i], arguments);
        if (errno != ENOENT) {
            return hvd_fail(err, HVD_ERR_SYS, "cannot run %.300s: %m", names[i]);
        }
    }
    return python != NULL
               ? hvd_fail(err, HVD_ERR_SYS, "cannot run %.300s: %m", python)
               : hvd_fail(err, HVD_ERR_SYS,
                          "there is neither python nor python3 in PATH: name one with "
                          "--python=PYTHON");
}

int hvd_info_python(const char *python, struct hvd_error *err)
{
    return run_python(python, "--python", err);
}

int hvd_info_python_report(struct hvd_error *err)
{
    return run_python(NULL, "--report", err);
}

/* Tells whether venv is a virtual environment or one of conda. */
static bool is_environment(const char *venv)
{
    static const char *const marks[] = {"pyvenv.cfg", "conda-meta"};
    char path[PATH_MAX];

    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        if (snprintf(path, sizeof(path), "%s/%s", venv, marks[i]) < (int)sizeof(path) &&
            access(path, F_OK) == 0) {
            return true;
        }
    }
    return false;
}

static int run_in_venv(const char *option, const char *venv, struct hvd_error *err)
{
    char script[PATH_MAX];
    char root[PATH_MAX];
    char python[PATH_MAX + 16];
    int status = find_file(&scripts, neighbours, script, err);

    if (status < 0) {
        return status;
    }
    if (!is_environment(venv) || realpath(venv, root) == NULL) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "%s: %.300s is no virtual environment, it has no pyvenv.cfg: "
                        "expected a folder that python -m venv made",
                        option, venv);
    }
    snprintf(python, sizeof(python), "%s/bin/python", root);
    char isolated[] = "-I";
    char command[] = "-c";
    char *arguments[] = {python, isolated,       command, run_script,
                         script, (char *)option, root,    NULL};

    execv(python, arguments);
    return hvd_fail(err, HVD_ERR_SYS, "cannot run %.300s: %m", python);
}

int hvd_info_into_venv(const char *venv, struct hvd_error *err)
{
    return run_in_venv("--into-venv", venv, err);
}

int hvd_info_out_of_venv(const char *venv, struct hvd_error *err)
{
    return run_in_venv("--out-of-venv", venv, err);
}

int hvd_info_timeline(const char *timeline, struct hvd_error *err)
{
    char script[PATH_MAX];
    char frame[PATH_MAX];
    char python[] = "python3";
    char command[] = "-c";
    char *arguments[] = {python, command,          run_script, script,
                         frame,  (char *)timeline, NULL};
    int status = find_file(&scripts, "timeline_page.py", script, err);

    if (status == 0) {
        status = find_file(&pages, "report.html", frame, err);
    }
    if (status < 0) {
        return status;
    }
    execvp(python, arguments);
    return hvd_fail(err, HVD_ERR_SYS, "--timeline needs python3 in PATH: %m");
}
