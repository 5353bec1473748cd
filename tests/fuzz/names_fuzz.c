/* SPDX-License-Identifier: Apache-2.0 */
/* Names of tensors and hosts in timelines and reports. Whatever the names are, the output
 * must be JSON. */
#include <stdlib.h>
#include <string.h>

#include "collectives/trace/straggler_text.h"
#include "collectives/trace/trace_text.h"
#include "gpu_binding/base/json.h"
#include "tests/collectives/trace/json_check.h"
#include "tests/fuzz/fuzz.h"

static void check(const char *text, size_t bytes)
{
    if (!json_is_good(text, bytes)) {
        fprintf(stderr, "%.*s\n", (int)bytes, text);
        fuzz_fail("the output is JSON");
    }
}

static void escape(const char *name, size_t room)
{
    char *text = malloc(room + 2);
    size_t length;

    if (text == NULL) {
        abort();
    }
    text[0] = '"';
    length = hvd_json_escape(name, text + 1, room);
    if (length >= room || text[1 + length] != '\0') {
        fuzz_fail("an escaped text fits");
    }
    text[1 + length] = '"';
    check(text, length + 2);
    free(text);
}

/* Checks that each line of the event's text is a JSON object. */
static void trace(enum hvd_trace_kind kind, const char *name, int rank)
{
    static struct hvd_trace_frame frame;
    char *owned = strdup(name);
    struct hvd_trace_event event = {
        .kind = kind, .row = 3, .at_ns = 1234567, .name = "ALLREDUCE", .text = owned};
    char lines[HVD_TRACE_TEXT_BYTES];
    size_t bytes;

    frame.rank = rank;
    bytes = hvd_trace_text(&event, &frame, lines);
    for (size_t begin = 0; begin < bytes;) {
        const char *end = memchr(lines + begin, '\n', bytes - begin);
        size_t length = end != NULL ? (size_t)(end - lines) - begin : bytes - begin;

        /* a comma follows each object, because the file is an array */
        check(lines + begin,
              length > 0 && lines[begin + length - 1] == ',' ? length - 1 : length);
        begin += length + 1;
    }
    free(owned);
}

static void report(const char *host)
{
    static const struct hvd_straggler_rank ranks[2] = {{.last = 3, .late_us = 5},
                                                       {.last = 1}};
    const char *hosts[2] = {host, "n2"};
    const struct hvd_straggler_sums sums = {.size = 2, .compared = 4, .ranks = ranks};
    const struct hvd_straggler_job job = {.hosts = hosts, .elapsed_us = 1000};
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);

    if (out == NULL) {
        abort();
    }
    hvd_straggler_print_json(&sums, &job, out);
    fclose(out);
    check(text, bytes);
    free(text);
    hvd_straggler_print(&sums, &job, 2, fuzz_nowhere());
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    size_t room = 8 + fuzz_byte(&input);
    char *name = fuzz_text(&input, size);
    char process[HVD_TRACE_TEXT_BYTES];

    escape(name, room);
    trace(HVD_TRACE_ROW, name, -1);
    trace(HVD_TRACE_ROW, name, 1);
    trace(HVD_TRACE_DEVICE_ROW, name, 1);
    (void)hvd_trace_process(1, name, 0, process);
    report(name);
    free(name);
    return 0;
}
