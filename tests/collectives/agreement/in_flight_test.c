/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank has in flight: one of each name, from its submission to its end. */
#include "collectives/agreement/in_flight.h"

#include <string.h>

#include "tests/tap.h"

static struct hvd_in_flight in_flight;
static int ends;

static void on_ended(void *context, struct hvd_entry *entry, int status, const char *text)
{
    (void)context, (void)entry, (void)status, (void)text;
    ends++;
}

static struct hvd_request *make_request(int set, const char *const *names, int count)
{
    struct hvd_request *request = hvd_request_create(count);

    for (int i = 0; i < count; i++) {
        request->entries[i].proposal.set = set;
        request->entries[i].proposal.name = strdup(names[i]);
    }
    return request;
}

static void test_names(void)
{
    struct hvd_request *first = make_request(0, (const char *[]){"a", "b"}, 2);
    struct hvd_request *second = make_request(0, (const char *[]){"c", "b"}, 2);
    struct hvd_request *other_set = make_request(1, (const char *[]){"b"}, 1);
    struct hvd_error err = {0};

    tap_ok(hvd_in_flight_add(&in_flight, first, NULL) == 0 &&
               hvd_in_flight_add(&in_flight, other_set, NULL) == 0,
           "two sets may have the same name in flight");
    tap_ok(hvd_in_flight_add(&in_flight, second, &err) == HVD_ERR_ARG &&
               strstr(err.text, "same name") != NULL,
           "one set may not");
    hvd_in_flight_end(&in_flight, &first->entries[1], 0, "");
    tap_ok(
        ends == 1 && hvd_in_flight_add(&in_flight, second, NULL) == 0,
        "a name may come again when it has ended, and what is refused has left nothing");
    hvd_in_flight_end(&in_flight, &first->entries[0], 0, "");
    hvd_in_flight_end(&in_flight, &second->entries[0], 0, "");
    hvd_in_flight_end(&in_flight, &second->entries[1], 0, "");
    hvd_in_flight_end(&in_flight, &other_set->entries[0], 0, "");
    tap_ok(ends == 5 && in_flight.by_key.count == 0, "in the end there is nothing");
    hvd_request_destroy(first);
    hvd_request_destroy(second);
    hvd_request_destroy(other_set);
}

static void test_seen(void)
{
    struct hvd_request *request = make_request(0, (const char *[]){"a", "b", "c"}, 3);
    struct hvd_entry *a = &request->entries[0], *b = &request->entries[1],
                     *c = &request->entries[2];
    struct hvd_cached_tensor cached = {0};

    hvd_in_flight_add(&in_flight, request, NULL);
    tap_ok(hvd_in_flight_find(&in_flight, NULL, &b->key) == NULL &&
               in_flight.oldest == NULL,
           "what the agreement has not seen is not found");
    hvd_in_flight_enter(&in_flight, a, NULL);
    hvd_in_flight_enter(&in_flight, b, &cached);
    hvd_in_flight_enter(&in_flight, c, NULL);
    tap_ok(hvd_in_flight_find(&in_flight, NULL, &a->key) == a && cached.mine == b &&
               hvd_in_flight_find(&in_flight, &cached, &b->key) == b,
           "what it has seen is found, by a tensor in the cache or by its key");
    hvd_in_flight_end(&in_flight, b, 0, "");
    tap_ok(cached.mine == NULL && in_flight.oldest == a && a->newer == c &&
               c->older == a && in_flight.newest == c,
           "an end in the middle leaves the others in order");
    hvd_in_flight_end(&in_flight, a, 0, "");
    hvd_in_flight_end(&in_flight, c, 0, "");
    tap_ok(in_flight.oldest == NULL && in_flight.newest == NULL, "and the last nothing");
    hvd_request_destroy(request);
}

int main(void)
{
    hvd_in_flight_init(&in_flight, on_ended, NULL);
    test_names();
    test_seen();
    hvd_in_flight_finish(&in_flight);
    return tap_done();
}
