/* SPDX-License-Identifier: Apache-2.0 */
/* The timeline at its limits: a full queue, changes of the file, a full disk. */
#include "collectives/trace/timeline.h"

#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "collectives/trace/trace_file.h"
#include "gpu_binding/base/log.h"
#include "tests/collectives/trace/json_check.h"
#include "tests/collectives/trace/timeline_case.h"
#include "tests/tap.h"

static struct timeline_case test;
static _Atomic int warnings;
static _Atomic bool is_held;
static sem_t go_on;

/* The linker replaces hvd_trace_file_flush by this function, which stops the writing
 * thread while is_held is set. */
int __real_hvd_trace_file_flush(struct hvd_trace_file *file, struct hvd_error *err);
int __wrap_hvd_trace_file_flush(struct hvd_trace_file *file, struct hvd_error *err);
int __wrap_hvd_trace_file_flush(struct hvd_trace_file *file, struct hvd_error *err)
{
    if (is_held) {
        sem_wait(&go_on);
    }
    return __real_hvd_trace_file_flush(file, err);
}

static void hold_writer(void)
{
    is_held = true;
}

static void release_writer(void)
{
    is_held = false;
    sem_post(&go_on);
}

static void count_warning(enum hvd_log_level level, const char *line)
{
    warnings += level == HVD_LOG_WARN && strstr(line, "timeline") != NULL ? 1 : 0;
}

static bool is_nested(const char *text, int row)
{
    char *found = case_phases(text, row);
    bool is_good = found[0] != '\0';

    free(found);
    return is_good;
}

/* Records far more events than the queue holds, while nothing is written. */
static void overflow_is_counted(void)
{
    const char *dropped;
    long missing = 0;
    int bad = 0;
    char *text;

    case_begin(&test, false);
    hold_writer();
    for (int round = 0; round < 1000; round++) {
        for (int i = 0; i < 8; i++) {
            case_run(&test, &test.request->entries[i], false);
        }
    }
    release_writer();
    text = case_text(&test);
    for (int row = 1; row <= 8; row++) {
        bad += is_nested(text, row) ? 0 : 1;
    }
    for (dropped = text; (dropped = strstr(dropped, "\"dropped ")) != NULL; dropped++) {
        missing += atol(dropped + 9);
    }
    tap_note("%ld events dropped", missing);
    tap_ok(bad == 0 && missing > 0,
           "a full queue drops whole tensors, and the trace has their number");
    free(text);
}

static void files_come_and_go(void)
{
    char second[sizeof(test.path) + 8];
    struct hvd_entry *entry = &test.request->entries[0];
    struct hvd_error err = {0};

    snprintf(second, sizeof(second), "%s.second", test.path);
    hvd_timeline_create(&test.config, &test.timeline, NULL);
    case_run(&test, entry, false);
    hvd_timeline_begin(test.timeline, test.path, false, NULL);
    case_run(&test, entry, false);
    hvd_timeline_begin(test.timeline, test.path, false, NULL);
    case_run(&test, entry, false);
    tap_ok(hvd_timeline_records_to(test.timeline, test.path) &&
               !hvd_timeline_records_to(test.timeline, second),
           "the timeline knows which file it records to");
    hvd_timeline_begin(test.timeline, second, false, NULL);
    tap_ok(json_count_file(test.path) == 2 + 2 + 2 * 12,
           "beginning again with the same file continues; with another file, it closes "
           "the first");
    case_run(&test, entry, false);
    hvd_timeline_end(test.timeline);
    case_run(&test, entry, false);
    tap_ok(hvd_timeline_has_ended(test.timeline), "a single rank has ended at once");
    hvd_timeline_close(test.timeline);
    tap_ok(json_count_file(second) == 2 + 2 + 12, "nothing is recorded after the end");
    tap_ok(hvd_timeline_begin(test.timeline, "/nowhere/x", false, &err) == HVD_ERR_SYS &&
               strstr(err.text, "/nowhere/x") != NULL &&
               !hvd_timeline_records_to(test.timeline, "/nowhere/x"),
           "a file that cannot be written: %s", err.text);
    case_run(&test, entry, false);
    hvd_timeline_begin(test.timeline, test.path, false, NULL);
    hvd_timeline_destroy(test.timeline);
    tap_ok(json_count_file(test.path) == 2,
           "after a file that cannot be written, another one can");
    unlink(second);
    test.timeline = NULL;
}

/* All functions of the timeline but hvd_timeline_create accept NULL, and then do
 * nothing. */
static void none_does_nothing(void)
{
    struct hvd_entry *entry = &test.request->entries[0];
    struct hvd_uplink_event event = {0};
    struct hvd_trace_span span = {0};
    struct hvd_error err = {0};
    int before = json_count_file(test.path);

    test.timeline = NULL;
    tap_ok(hvd_timeline_begin(NULL, test.path, true, &err) == 0 && err.status == 0 &&
               !hvd_timeline_is_on(NULL) && !hvd_timeline_wants_marks(NULL) &&
               !hvd_timeline_records_to(NULL, test.path) && hvd_timeline_has_ended(NULL),
           "NULL begins without error, is off and has ended");
    case_run(&test, entry, false);
    hvd_timeline_device(NULL, entry, 0, &span, 1);
    hvd_timeline_cycle(NULL);
    hvd_timeline_expect(NULL);
    hvd_timeline_progress(NULL);
    hvd_timeline_leave(NULL);
    hvd_timeline_end(NULL);
    hvd_timeline_close(NULL);
    hvd_timeline_destroy(NULL);
    tap_ok(!hvd_timeline_on_message(NULL, &event) && json_count_file(test.path) == before,
           "NULL accepts all events, and writes nothing");
}

/* Simulates a full disk by a limit on the size of files: 2 MiB, twice the space that the
 * file reserves first. The writing thread blocks SIGXFSZ, which would end the process.
 * The queue has room for all events. */
static void full_disk_ends_it(void)
{
    struct rlimit before, low = {.rlim_cur = 2 << 20};
    int elements;

    getrlimit(RLIMIT_FSIZE, &before);
    low.rlim_max = before.rlim_max;
    case_begin(&test, false);
    hvd_log_to(count_warning, HVD_LOG_WARN);
    setrlimit(RLIMIT_FSIZE, &low);
    for (int i = 0; i < 2500; i++) {
        case_run(&test, &test.request->entries[0], false);
    }
    hvd_timeline_destroy(test.timeline);
    test.timeline = NULL;
    setrlimit(RLIMIT_FSIZE, &before);
    hvd_log_to(NULL, HVD_LOG_WARN);
    elements = json_count_file(test.path);
    tap_ok(warnings == 1 && elements > 8000 && elements < 2500 * 12,
           "a full disk causes one warning, and the %d events before it stay", elements);
}

int main(void)
{
    sem_init(&go_on, 0, 0);
    case_init(&test);
    for (int i = 0; i < 8; i++) {
        char name[16];

        snprintf(name, sizeof(name), "tensor %d", i);
        case_entry(&test, i, name, (enum hvd_kind)i);
    }
    overflow_is_counted();
    files_come_and_go();
    none_does_nothing();
    full_disk_ends_it();
    case_finish(&test);
    return tap_done();
}
