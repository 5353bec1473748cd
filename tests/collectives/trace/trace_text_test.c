/* SPDX-License-Identifier: Apache-2.0 */
/* The events of a timeline as lines of JSON. */
#include "collectives/trace/trace_text.h"

#include <stdlib.h>
#include <string.h>

#include "tests/collectives/trace/json_check.h"
#include "tests/tap.h"

static char line[HVD_TRACE_TEXT_BYTES + 1];

/* Returns the text of an event without '\n' if it is one line of valid JSON, else "". */
static const char *text_of(struct hvd_trace_event event, struct hvd_trace_frame *frame)
{
    size_t bytes = hvd_trace_text(&event, frame, line);

    line[bytes] = '\0';
    if (bytes == 0 || strchr(line, '\n') != line + bytes - 1 ||
        !json_is_good(line, bytes)) {
        printf("# %s\n", line);
        return "";
    }
    line[bytes - 1] = '\0';
    return line;
}

static void events_are_horovods(void)
{
    struct hvd_trace_frame frame = {.rank = -1, .shift_ns = -1000000};
    struct hvd_trace_event event = {.kind = HVD_TRACE_BEGIN,
                                    .row = 3,
                                    .at_ns = 1234567,
                                    .name = "NEGOTIATE_ALLREDUCE"};
    char args[] = "{\"dtype\": \"float32\", \"shape\": \"[3]\"}";

    tap_ok(strcmp(text_of(event, &frame),
                  "{\"ph\": \"B\", \"name\": \"NEGOTIATE_ALLREDUCE\", "
                  "\"ts\": 234, \"pid\": 3}") == 0,
           "a beginning has name, microseconds and the tensor as pid");
    event.kind = HVD_TRACE_END;
    tap_ok(strcmp(text_of(event, &frame), "{\"ph\": \"E\", \"ts\": 234, \"pid\": 3}") ==
               0,
           "an end has no name");
    event.text = args;
    tap_ok(strcmp(text_of(event, &frame),
                  "{\"ph\": \"E\", \"ts\": 234, \"pid\": 3, \"args\": {\"dtype\": "
                  "\"float32\", \"shape\": \"[3]\"}}") == 0,
           "the last end shows dtype and shape");
    event = (struct hvd_trace_event){
        .kind = HVD_TRACE_READY, .row = 3, .number = 17, .at_ns = 1500000};
    tap_ok(strcmp(text_of(event, &frame),
                  "{\"ph\": \"X\", \"name\": \"17\", \"ts\": 500, "
                  "\"pid\": 3, \"dur\": 0}") == 0,
           "a rank that has submitted is an event without duration");
    event = (struct hvd_trace_event){.kind = HVD_TRACE_CYCLE, .at_ns = 2000000};
    tap_ok(strcmp(text_of(event, &frame), "{\"ph\": \"i\", \"name\": \"CYCLE_START\", "
                                          "\"ts\": 1000, \"pid\": 0, \"s\": \"g\"}") == 0,
           "a cycle is a global instant");
    event.kind = HVD_TRACE_DROPPED;
    event.number = 12;
    tap_ok(strstr(text_of(event, &frame), "\"dropped 12 events\"") != NULL,
           "the number of missing events is shown");
}

static void ranks_are_processes(void)
{
    struct hvd_trace_frame frame = {.rank = 5};
    struct hvd_trace_event event = {.kind = HVD_TRACE_BEGIN, .row = 3, .name = "QUEUE"};
    size_t bytes;

    tap_ok(strstr(text_of(event, &frame), "\"pid\": 5, \"tid\": 3}") != NULL,
           "in the picture of all ranks, pid is the rank, and tid the tensor");
    bytes = hvd_trace_process(5, "node\"7", 0, line);
    line[bytes] = '\0';
    tap_ok(strstr(line, "\"rank 5 on node\\\"7\"") != NULL &&
               strstr(line, "start_time") == NULL,
           "a rank's process has its name and host");
    bytes = hvd_trace_exactness(5, 12, line);
    line[bytes] = '\0';
    tap_ok(json_is_good(line, bytes) && strstr(line, "\"clock within 12 us\"") != NULL,
           "a rank's process has a label that says how exact its times are");
    bytes = hvd_trace_process(0, NULL, 1234567890, line);
    line[bytes] = '\0';
    tap_ok(strstr(line, "\"args\": {\"start_time_since_epoch_in_micros\": 1234567890}") !=
               NULL,
           "the first process has the time when the timeline began");
}

static void time_never_goes_back(void)
{
    struct hvd_trace_frame frame = {.rank = 1, .shift_ns = 5000};
    struct hvd_trace_event event = {.kind = HVD_TRACE_END, .row = 1, .at_ns = 10000};
    bool is_good = strstr(text_of(event, &frame), "\"ts\": 15,") != NULL;

    frame.shift_ns = 0;
    event.at_ns = 11000;
    is_good = is_good && strstr(text_of(event, &frame), "\"ts\": 15,") != NULL;
    event.at_ns = 16000;
    is_good = is_good && strstr(text_of(event, &frame), "\"ts\": 16,") != NULL;
    tap_ok(is_good,
           "when the clock is corrected, time stands still, but never goes back");
}

/* Does the same for several lines, each of which must be valid JSON. */
static const char *lines_of(struct hvd_trace_event event, struct hvd_trace_frame *frame)
{
    size_t bytes = hvd_trace_text(&event, frame, line);

    line[bytes] = '\0';
    for (const char *at = line; *at != '\0';) {
        size_t length = strcspn(at, "\n") + 1;

        if (!json_is_good(at, length)) {
            return "";
        }
        at += length;
    }
    return line;
}

/* Tests the lines for a tensor in row 3 whose spans were measured on a device. The inner
 * spans stay within the outer one, even if the clock is corrected. */
static void devices_have_their_half(void)
{
    static struct hvd_trace_frame one = {.rank = -1, .shift_ns = -1000},
                                  all = {.rank = 5};
    static struct hvd_trace_span spans[] = {
        {"ALLREDUCE", 5000, 9000}, {"QUEUE", 5000, 7000}, {"NCCL_ALLREDUCE", 7000, 9000}};
    struct hvd_trace_event event = {
        .kind = HVD_TRACE_DEVICE, .row = 3, .number = 3, .text = (char *)spans};

    tap_ok(
        strcmp(lines_of(event, &one),
               "{\"ph\": \"B\", \"name\": \"ALLREDUCE\", \"ts\": 4, \"pid\": 3, \"tid\": "
               "1}\n"
               "{\"ph\": \"B\", \"name\": \"QUEUE\", \"ts\": 4, \"pid\": 3, \"tid\": 1}\n"
               "{\"ph\": \"E\", \"ts\": 6, \"pid\": 3, \"tid\": 1}\n"
               "{\"ph\": \"B\", \"name\": \"NCCL_ALLREDUCE\", \"ts\": 6, \"pid\": 3, "
               "\"tid\": "
               "1}\n"
               "{\"ph\": \"E\", \"ts\": 8, \"pid\": 3, \"tid\": 1}\n"
               "{\"ph\": \"E\", \"ts\": 8, \"pid\": 3, \"tid\": 1}\n") == 0,
        "a device's spans are in a thread of their own, with the device's times");
    one.shift_ns = -3500;
    tap_ok(strstr(lines_of(event, &one), "\"ALLREDUCE\", \"ts\": 8,") != NULL,
           "a device's time does not go back either");
    tap_ok(strstr(lines_of(event, &all), "\"pid\": 5, \"tid\": 1000003}") != NULL,
           "in the picture of all ranks, a device has its own tid");
    event = (struct hvd_trace_event){
        .kind = HVD_TRACE_DEVICE_ROW, .row = 3, .text = "grad (GPU)"};
    tap_ok(strstr(lines_of(event, &all), "\"args\": {\"name\": \"grad (GPU)\"}") !=
                   NULL &&
               strstr(lines_of(event, &one), "\"args\": {\"name\": \"GPU\"}") != NULL,
           "the row of a device has a name");
}

static bool row_is_good(const char *name)
{
    struct hvd_trace_frame frame = {.rank = 1};
    struct hvd_trace_event event = {
        .kind = HVD_TRACE_ROW, .row = 1, .text = (char *)name};
    size_t bytes = hvd_trace_text(&event, &frame, line);
    size_t first;

    line[bytes] = '\0';
    first = strcspn(line, "\n") + 1;
    return bytes < HVD_TRACE_TEXT_BYTES && first < bytes && json_is_good(line, first) &&
           json_is_good(line + first, bytes - first);
}

static void any_name_is_good_json(void)
{
    unsigned seed = tap_seed(20260801);
    char name[3000];
    int bad = 0;

    srand(seed);
    for (int round = 0; round < 5000; round++) {
        size_t bytes = (size_t)rand() % (sizeof(name) - 1);

        for (size_t i = 0; i < bytes; i++) {
            name[i] = (char)(1 + rand() % 255);
        }
        name[bytes] = '\0';
        bad += row_is_good(name) ? 0 : 1;
    }
    tap_ok(bad == 0, "any name, of any length, makes two lines of valid JSON");
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    row_is_good(name);
    tap_ok(strstr(line, "xxx...\"") != NULL, "a name that was cut ends in dots");
}

int main(void)
{
    events_are_horovods();
    ranks_are_processes();
    time_never_goes_back();
    devices_have_their_half();
    any_name_is_good_json();
    return tap_done();
}
