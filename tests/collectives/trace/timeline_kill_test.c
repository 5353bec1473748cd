/* SPDX-License-Identifier: Apache-2.0 */
/* A process writes its timeline as fast as it can and is killed (kill -9): the file is
 * valid JSON. */
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "collectives/trace/trace_file.h"
#include "tests/collectives/trace/json_check.h"
#include "tests/collectives/trace/timeline_case.h"
#include "tests/tap.h"

enum {
    ROUNDS = 60
};

static struct timeline_case test;
static int started[2]; /* a pipe by which the child reports that its file is open */

static void pause_us(long us)
{
    const struct timespec pause = {.tv_nsec = us * 1000};

    nanosleep(&pause, NULL);
}

static void say_started(void)
{
    if (write(started[1], "!", 1) != 1) {
        _exit(1);
    }
}

/* Records through the timeline's functions, queue and thread. */
static void run_for_ever(void)
{
    struct hvd_entry *entry = case_entry(&test, 0, "\"name\"", HVD_KIND_ALLREDUCE);

    case_begin(&test, false);
    say_started();
    for (;;) {
        case_run(&test, entry, false);
    }
}

/* Writes the file without a timeline, which is faster. */
static void write_for_ever(void)
{
    static const char line[] =
        "{\"ph\": \"B\", \"name\": \"ALLREDUCE\", \"ts\": 1, \"pid\": 1}\n";
    struct hvd_trace_file *file;

    if (hvd_trace_file_open(test.path, &file, NULL) != 0) {
        _exit(1);
    }
    say_started();
    while (hvd_trace_file_add(file, line, sizeof(line) - 1, NULL) == 0) {
    }
    _exit(1);
}

/* Kills the process after a random time of at most most_us. Returns the number of events
 * in the file, or -1 if it is not JSON. */
static int kill_one(void (*work)(void), int most_us)
{
    pid_t child;
    int status;
    char sign;

    unlink(test.path);
    child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(20);
        work();
    }
    if (child < 0 || read(started[0], &sign, 1) != 1) {
        printf("Bail out! no child\n");
        exit(1);
    }
    pause_us(rand() % most_us);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return json_count_file(test.path);
}

static void killed_at_any_time(void (*work)(void), int most_us, const char *what)
{
    int bad = 0;
    long events = 0;

    for (int round = 0; round < ROUNDS; round++) {
        int count = kill_one(work, most_us);

        bad += count < 0 ? 1 : 0;
        events += count > 0 ? count : 0;
    }
    tap_note("%ld events", events);
    tap_ok(bad == 0 && events > ROUNDS, "%s: killed %d times, valid JSON each time", what,
           ROUNDS);
}

int main(void)
{
    if (pipe(started) != 0) {
        return 1;
    }
    srand(tap_seed((unsigned)time(NULL)));
    case_init(&test);
    killed_at_any_time(run_for_ever, 20000, "a timeline");
    killed_at_any_time(write_for_ever, 2000, "a trace file");
    case_finish(&test);
    return tap_done();
}
