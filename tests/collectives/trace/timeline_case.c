/* SPDX-License-Identifier: Apache-2.0 */
/* A timeline of one rank, which a test feeds with events and then reads. */
#include "tests/collectives/trace/timeline_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectives/trace/trace_text.h"
#include "tests/collectives/trace/json_check.h"

static struct hvd_boot boot = {.rank = 0, .size = CASE_RANKS};

static void bail_out(const char *why)
{
    printf("Bail out! %s\n", why);
    exit(1);
}

void case_init(struct timeline_case *test)
{
    *test = (struct timeline_case){.path = "/tmp/hvd-timeline-XXXXXX",
                                   .config = {.boot = &boot},
                                   .request = hvd_request_create(CASE_ENTRIES)};
    if (test->request == NULL) {
        bail_out("no memory");
    }
    close(mkstemp(test->path));
}

void case_finish(struct timeline_case *test)
{
    hvd_request_drop(test->request);
    unlink(test->path);
}

struct hvd_entry *case_entry(struct timeline_case *test, int i, const char *name,
                             enum hvd_kind kind)
{
    struct hvd_entry *entry = &test->request->entries[i];

    free((char *)entry->descriptor.name);
    entry->descriptor = (struct hvd_descriptor){
        .kind = kind, .dtype = HVD_FLOAT32, .ndim = 2, .name = strdup(name)};
    entry->descriptor.shape[0] = 3;
    entry->descriptor.shape[1] = 4;
    return entry;
}

void case_begin(struct timeline_case *test, bool marks_cycles)
{
    struct hvd_error err = {0};

    if (hvd_timeline_create(&test->config, &test->timeline, &err) != 0 ||
        hvd_timeline_begin(test->timeline, test->path, marks_cycles, &err) != 0) {
        bail_out(err.text);
    }
}

char *case_text(struct timeline_case *test)
{
    size_t bytes;
    char *text;

    hvd_timeline_destroy(test->timeline);
    test->timeline = NULL;
    text = json_read_file(test->path, &bytes);
    if (text == NULL) {
        bail_out("the timeline cannot be read");
    }
    if (json_count(text, bytes) < 0) {
        text[0] = '\0';
    }
    return text;
}

void case_agree(struct timeline_case *test, struct hvd_entry *entry)
{
    const struct hvd_batch batch = {.header = {.count = 1}, .entries = &entry};

    hvd_timeline_agreed(test->timeline, &batch);
}

void case_start(struct timeline_case *test, struct hvd_entry *entry, bool crosses_nodes)
{
    const struct hvd_batch batch = {.header = {.count = 1}, .entries = &entry};

    hvd_timeline_started(test->timeline, &batch, crosses_nodes);
}

void case_run(struct timeline_case *test, struct hvd_entry *entry, bool crosses_nodes)
{
    hvd_timeline_proposed(test->timeline, entry);
    for (int rank = 1; rank < CASE_RANKS; rank++) {
        hvd_timeline_ready(test->timeline, &entry->descriptor, rank);
    }
    case_agree(test, entry);
    case_start(test, entry, crosses_nodes);
    hvd_timeline_ended(test->timeline, entry, 0);
}

/* An event in a row of the timeline. */
struct event {
    char phase;
    char name[64];
    long us;
};

/* Reads an event from a line; returns false if it has no time or belongs to another
 * row. */
static bool read_event(const char *line, size_t bytes, int row, struct event *event)
{
    char copy[HVD_TRACE_TEXT_BYTES], pid[32];
    const char *mine, *when;

    bytes = bytes < sizeof(copy) - 1 ? bytes : sizeof(copy) - 1;
    memcpy(copy, line, bytes);
    copy[bytes] = '\0';
    snprintf(pid, sizeof(pid), "\"pid\": %d", row);
    mine = strstr(copy, pid);
    when = strstr(copy, "\"ts\": ");
    event->name[0] = '\0';
    if (mine == NULL || when == NULL || strchr(",}", mine[strlen(pid)]) == NULL) {
        return false;
    }
    event->us = atol(when + 6);
    return sscanf(copy, "{\"ph\": \"%c\", \"name\": \"%63[^\"]\"", &event->phase,
                  event->name) >= 1;
}

char *case_phases(const char *text, int row)
{
    size_t capacity = strlen(text) + 1;
    char *out = malloc(capacity);
    struct event event;
    long last = -1;
    int depth = 0;
    size_t used = 0;

    out[0] = '\0';
    for (const char *end = text + capacity - 1; text < end;) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        size_t bytes = (size_t)((stop != NULL ? stop : end) - text);

        if (read_event(text, bytes, row, &event)) {
            const char *sign = event.phase == 'B' ? "+" : event.phase == 'E' ? "-" : "";

            depth += event.phase == 'B' ? 1 : event.phase == 'E' ? -1 : 0;
            used += (size_t)snprintf(out + used, capacity - used, "%s%s%s",
                                     used > 0 ? " " : "", sign, event.name);
            if (depth < 0 || event.us < last) {
                out[0] = '\0';
                return out;
            }
            last = event.us;
        }
        text += bytes + 1;
    }
    out[depth == 0 ? used : 0] = '\0';
    return out;
}
