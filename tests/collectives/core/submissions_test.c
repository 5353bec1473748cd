/* SPDX-License-Identifier: Apache-2.0 */
/* Requests from their submission until the driver takes them, and until they end. Prints
 * TAP. */
#include "collectives/core/submissions.h"

#include <string.h>

#include "tests/tap.h"

static struct hvd_submissions submissions;

static void note_end(void *context, struct hvd_entry *entry, int status, const char *text)
{
    (void)context;
    (void)entry;
    (void)status;
    (void)text;
}

static void begin(void)
{
    memset(&submissions, 0, sizeof(submissions));
    hvd_submissions_init(&submissions, note_end, NULL);
}

/* Creates a request of two tensors. */
static struct hvd_request *request_of(const char *one, const char *other)
{
    struct hvd_request *request = hvd_request_create(2);

    request->entries[0].descriptor.name = strdup(one);
    request->entries[1].descriptor.name = strdup(other);
    return request;
}

static void test_order(void)
{
    struct hvd_request *first = request_of("a", "b"), *second = request_of("c", "d");
    const struct hvd_entry *entry;
    char names[8] = "";

    begin();
    tap_ok(!submissions.collectives.has_some &&
               hvd_submissions_take(&submissions) == NULL,
           "at first there are no entries");
    hvd_submissions_add(&submissions, first, NULL);
    hvd_submissions_add(&submissions, second, NULL);
    tap_ok(submissions.collectives.has_some, "added entries are there");
    for (entry = hvd_submissions_take(&submissions); entry != NULL; entry = entry->next) {
        strncat(names, entry->descriptor.name, 1);
    }
    tap_ok(strcmp(names, "abcd") == 0,
           "entries are taken in the order in which they were added");
    tap_ok(!submissions.collectives.has_some, "entries that were taken are gone");
    hvd_submissions_finish(&submissions);
    hvd_request_drop(first);
    hvd_request_drop(second);
}

static void test_names(void)
{
    struct hvd_request *first = request_of("a", "b"), *second = request_of("c", "b");
    struct hvd_request *third = request_of("c", "d");

    begin();
    hvd_submissions_add(&submissions, first, NULL);
    hvd_submissions_take(&submissions);
    tap_ok(hvd_submissions_add(&submissions, second, NULL) == HVD_ERR_ARG &&
               !submissions.collectives.has_some,
           "a name in flight is refused, and its whole request with it");
    tap_ok(hvd_submissions_add(&submissions, third, NULL) == 0,
           "no name of a refused request stays in flight");
    hvd_tensor_table_end(&submissions.tensors, &third->entries[0], 0, "");
    hvd_tensor_table_end(&submissions.tensors, &first->entries[1], 0, "");
    tap_ok(hvd_submissions_add(&submissions, second, NULL) == 0,
           "a name may be used again when its tensor has ended");
    hvd_submissions_finish(&submissions);
    hvd_request_drop(first);
    hvd_request_drop(second);
    hvd_request_drop(third);
}

static void test_refusal(void)
{
    struct hvd_request *request = request_of("a", "b");
    struct hvd_error err = {0};

    begin();
    hvd_submissions_refuse(&submissions, HVD_ERR_SHUTDOWN, "first");
    hvd_submissions_refuse(&submissions, HVD_ERR_PEER, "second");
    tap_ok(hvd_submissions_add(&submissions, request, &err) == HVD_ERR_SHUTDOWN &&
               strstr(err.text, "first. This rank was in allreduce 'a'.") == err.text &&
               !submissions.collectives.has_some,
           "the first refusal counts: %s", err.text);
    hvd_submissions_finish(&submissions);
    begin();
    hvd_submissions_refuse(&submissions, HVD_ERR_PEER, "rank 2 on n1 died");
    tap_ok(hvd_submissions_add(&submissions, request, &err) == HVD_ERR_PEER &&
               strcmp(err.text, "rank 2 on n1 died, before allreduce 'a'") == 0,
           "a refusal after a failure names the operation: %s", err.text);
    hvd_submissions_finish(&submissions);
    hvd_request_drop(request);
}

int main(void)
{
    test_order();
    test_names();
    test_refusal();
    return tap_done();
}
