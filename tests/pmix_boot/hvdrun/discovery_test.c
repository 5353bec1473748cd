/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of a discovery script that fail, print too much or hang. The clock is the
 * test's own. */
#include "pmix_boot/hvdrun/discovery.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_binding/base/log.h"
#include "tests/tap.h"

enum {
    EVERY_MS = 1000,
    LONGEST_MS = 60000,
    PATIENCE_S = 60, /* real time, until a command must have ended */
};

static char folder[] = "/tmp/hvd-discovery-XXXXXX";
static char logged[1024];
static int log_count;

static void keep_line(enum hvd_log_level level, const char *line)
{
    (void)level;
    log_count++;
    snprintf(logged, sizeof(logged), "%s", line);
}

static void write_file(const char *name, const char *text, size_t times)
{
    char path[128];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "w");
    if (file == NULL) {
        printf("Bail out! cannot write %s\n", path);
        exit(EXIT_FAILURE);
    }
    for (size_t i = 0; i < times; i++) {
        fputs(text, file);
    }
    fclose(file);
}

static void remove_file(const char *name)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    unlink(path);
}

static pid_t read_pid(void)
{
    char path[128];
    int pid = 0;
    FILE *file;

    snprintf(path, sizeof(path), "%s/pid", folder);
    file = fopen(path, "r");
    if (file != NULL) {
        (void)!fscanf(file, "%d", &pid);
        fclose(file);
    }
    return pid;
}

static struct hvdrun_discovery *create(const char *command)
{
    struct hvdrun_discovery *discovery = NULL;
    struct hvd_error err;

    if (hvdrun_discovery_create(command, 0, &discovery, &err) != 0) {
        printf("Bail out! %s\n", err.text);
        exit(EXIT_FAILURE);
    }
    return discovery;
}

/* Runs the command to its end while the clock shows *now_ms, then sets *now_ms to the
 * time of the next run. Returns whether there is a new answer. */
static bool run_once(struct hvdrun_discovery *discovery, long long *now_ms)
{
    bool is_answered = false;

    for (int i = 0; i < PATIENCE_S * 200 && !is_answered; i++) {
        is_answered = hvdrun_discovery_progress(discovery, *now_ms);
        if (hvdrun_discovery_next_ms(discovery) == *now_ms + EVERY_MS) {
            break;
        }
        usleep(5000);
    }
    *now_ms += EVERY_MS;
    return is_answered;
}

static void test_amount(void)
{
    char command[128];
    struct hvdrun_discovery *discovery;
    long long now_ms = 1000;

    snprintf(command, sizeof(command), "cat %s/hosts", folder);
    discovery = create(command);
    log_count = 0;
    write_file("hosts", "localhost:3\n", 1);
    tap_ok(run_once(discovery, &now_ms) && hvdrun_discovery_slots(discovery) == 3,
           "the slots that the script prints are counted");
    write_file("hosts", "localhost:1\n", 20000);
    tap_ok(!run_once(discovery, &now_ms) && hvdrun_discovery_slots(discovery) == 3,
           "a script that prints 240 KB fails, and the last answer stays");
    tap_ok(log_count == 1 && strstr(logged, command) != NULL &&
               strstr(logged, "printed 64 KiB or more") != NULL,
           "a warning names the script and the reason");
    write_file("hosts", "localhost:1234\n\n", 4096);
    tap_ok(!run_once(discovery, &now_ms) && hvdrun_discovery_slots(discovery) == 3,
           "a script that prints 64 KiB and ends also fails");
    write_file("hosts", "localhost:1\n", 5461);
    tap_ok(run_once(discovery, &now_ms) && hvdrun_discovery_slots(discovery) == 5461,
           "a script may print a little less than 64 KiB");
    hvdrun_discovery_destroy(discovery);
}

static void test_time(void)
{
    char command[512];
    struct hvdrun_discovery *discovery;
    long long now_ms = 1000;
    long long began_ms;
    pid_t pid = 0;

    snprintf(command, sizeof(command),
             "cat %s/hosts; if [ -e %s/slow ]; then echo $$ >%s/new; mv %s/new %s/pid; "
             "sleep 1000; fi",
             folder, folder, folder, folder, folder);
    discovery = create(command);
    log_count = 0;
    write_file("hosts", "localhost:2\n", 1);
    tap_ok(run_once(discovery, &now_ms) && hvdrun_discovery_slots(discovery) == 2,
           "a script that ends at once has an answer");
    write_file("slow", "", 1);
    write_file("hosts", "localhost:4\n", 1);
    began_ms = now_ms;
    for (int i = 0; i < PATIENCE_S * 200 && (pid = read_pid()) == 0; i++) {
        (void)hvdrun_discovery_progress(discovery, now_ms);
        usleep(5000);
    }
    now_ms = began_ms + LONGEST_MS - 1;
    (void)hvdrun_discovery_progress(discovery, now_ms);
    tap_ok(pid > 0 && kill(pid, 0) == 0 && log_count == 0,
           "a script may run for almost 60 s");
    now_ms = began_ms + LONGEST_MS;
    tap_ok(!run_once(discovery, &now_ms) && hvdrun_discovery_slots(discovery) == 2,
           "a script that runs for 60 s fails, and the last answer stays");
    tap_ok(kill(pid, 0) != 0 && errno == ESRCH, "it is killed");
    tap_ok(log_count == 1 && strstr(logged, "ran for 60 s") != NULL,
           "a warning tells the reason");
    remove_file("slow");
    tap_ok(run_once(discovery, &now_ms) && hvdrun_discovery_slots(discovery) == 4,
           "the script runs again, and its answer counts");
    hvdrun_discovery_destroy(discovery);
}

/* hvdrun must not wait for the background process. */
static void test_background(void)
{
    char command[128];
    struct hvdrun_discovery *discovery;
    long long now_ms = 1000;

    snprintf(command, sizeof(command), "sleep 1000 & echo $! >%s/pid; echo localhost:2",
             folder);
    discovery = create(command);
    remove_file("pid");
    log_count = 0;
    for (int i = 0; i < PATIENCE_S * 200 && read_pid() == 0; i++) {
        (void)hvdrun_discovery_progress(discovery, now_ms);
        usleep(5000);
    }
    now_ms += LONGEST_MS;
    tap_ok(!run_once(discovery, &now_ms) && log_count == 1,
           "a script that leaves a process with its output open fails after 60 s");
    hvdrun_discovery_destroy(discovery);
}

int main(void)
{
    if (mkdtemp(folder) == NULL) {
        printf("Bail out! cannot create %s\n", folder);
        return EXIT_FAILURE;
    }
    hvd_log_to(keep_line, HVD_LOG_WARN);
    test_amount();
    test_time();
    test_background();
    remove_file("hosts");
    remove_file("pid");
    rmdir(folder);
    return tap_done();
}
