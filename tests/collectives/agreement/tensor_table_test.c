/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the table of names. For each name, it has the entry in flight, from its
 * submission to its end, and the cached tensor. */
#include "collectives/agreement/tensor_table.h"

#include <string.h>

#include "tests/tap.h"

static struct hvd_tensor_table table;
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
        request->entries[i].descriptor.set = set;
        request->entries[i].descriptor.name = strdup(names[i]);
    }
    return request;
}

static void test_names(void)
{
    struct hvd_request *first = make_request(0, (const char *[]){"a", "b"}, 2);
    struct hvd_request *second = make_request(0, (const char *[]){"c", "b"}, 2);
    struct hvd_request *other_set = make_request(1, (const char *[]){"b"}, 1);
    struct hvd_error err = {0};

    tap_ok(hvd_tensor_table_add(&table, first, NULL) == 0 &&
               hvd_tensor_table_add(&table, other_set, NULL) == 0,
           "two sets may have the same name in flight");
    tap_ok(hvd_tensor_table_add(&table, second, &err) == HVD_ERR_ARG &&
               strstr(err.text, "same name") != NULL,
           "one set may not have a name in flight twice");
    hvd_tensor_table_end(&table, &first->entries[1], 0, "");
    tap_ok(ends == 1 && hvd_tensor_table_add(&table, second, NULL) == 0,
           "a name can be used again when its entry has ended, and a refused request "
           "leaves nothing");
    hvd_tensor_table_end(&table, &first->entries[0], 0, "");
    hvd_tensor_table_end(&table, &second->entries[0], 0, "");
    hvd_tensor_table_end(&table, &second->entries[1], 0, "");
    hvd_tensor_table_end(&table, &other_set->entries[0], 0, "");
    tap_ok(ends == 5 && table.by_name.count == 0, "at the end, the table is empty");
    hvd_request_drop(first);
    hvd_request_drop(second);
    hvd_request_drop(other_set);
}

static void test_seen(void)
{
    struct hvd_request *request = make_request(0, (const char *[]){"a", "b", "c"}, 3);
    struct hvd_entry *a = &request->entries[0], *b = &request->entries[1],
                     *c = &request->entries[2];
    const struct hvd_key key = hvd_key_make(0, "b");

    hvd_tensor_table_add(&table, request, NULL);
    tap_ok(hvd_tensor_table_find(&table, &key)->entry == NULL && table.oldest == NULL,
           "an entry that the agreement has not seen is not found");
    hvd_tensor_table_enter(&table, a);
    hvd_tensor_table_enter(&table, b);
    hvd_tensor_table_enter(&table, c);
    tap_ok(hvd_tensor_table_find(&table, &key) == b->tensor && b->tensor->entry == b,
           "an entry that it has seen is found by its name");
    hvd_tensor_table_end(&table, b, 0, "");
    tap_ok(hvd_tensor_table_find(&table, &key) == NULL && table.oldest == a &&
               a->newer == c && c->older == a && table.newest == c,
           "an end in the middle leaves the others in order");
    hvd_tensor_table_end(&table, a, 0, "");
    hvd_tensor_table_end(&table, c, 0, "");
    tap_ok(table.oldest == NULL && table.newest == NULL,
           "after the last end, no entries are left");
    hvd_request_drop(request);
}

/* A name is in the table while its entry is in flight or its tensor is cached. */
static void test_cached(void)
{
    struct hvd_request *first = make_request(0, (const char *[]){"a"}, 1);
    struct hvd_request *second = make_request(0, (const char *[]){"a"}, 1);
    const struct hvd_key key = hvd_key_make(0, "a"), other = hvd_key_make(0, "z");
    /* only the address is used */
    struct hvd_cached_tensor *cached = (struct hvd_cached_tensor *)&ends;
    struct hvd_named_tensor *a, *z;

    hvd_tensor_table_add(&table, first, NULL);
    a = hvd_tensor_table_cache(&table, &key, cached);
    tap_ok(a == first->entries[0].tensor, "a name in flight gets into the cache");
    hvd_tensor_table_end(&table, &first->entries[0], 0, "");
    tap_ok(hvd_tensor_table_find(&table, &key) == a && a->cached == cached &&
               hvd_tensor_table_add(&table, second, NULL) == 0 &&
               second->entries[0].tensor == a,
           "the name stays in the table while it is cached, and its next submission "
           "finds it");
    hvd_tensor_table_uncache(&table, a);
    tap_ok(hvd_tensor_table_find(&table, &key) == a && a->cached == NULL,
           "an evicted name stays in the table while its entry is in flight");
    hvd_tensor_table_end(&table, &second->entries[0], 0, "");
    tap_ok(hvd_tensor_table_find(&table, &key) == NULL,
           "an evicted name is removed when its entry ends");
    z = hvd_tensor_table_cache(&table, &other, cached);
    tap_ok(hvd_tensor_table_find(&table, &other) == z,
           "a name that this rank has not submitted may be in the cache");
    hvd_tensor_table_uncache(&table, z);
    tap_ok(table.by_name.count == 0, "after its eviction, nothing is left");
    hvd_request_drop(first);
    hvd_request_drop(second);
}

static void start(struct hvd_request *request)
{
    hvd_tensor_table_add(&table, request, NULL);
    hvd_tensor_table_enter(&table, &request->entries[0]);
}

static void test_persistent(void)
{
    struct hvd_request *request = make_request(0, (const char *[]){"a"}, 1);
    struct hvd_request *other = make_request(0, (const char *[]){"b"}, 1);
    const struct hvd_key key = hvd_key_make(0, "a");
    struct hvd_named_tensor *tensor;

    request->is_persistent = true;
    start(request);
    tensor = request->entries[0].tensor;
    hvd_tensor_table_end(&table, &request->entries[0], 0, "");
    tap_ok(hvd_tensor_table_find(&table, &key) == tensor,
           "the name of a persistent request stays in the table between its starts");
    start(request);
    tap_ok(request->entries[0].tensor == tensor,
           "the next start of a persistent request uses the same name");
    hvd_tensor_table_end(&table, &request->entries[0], 0, "");
    hvd_tensor_table_let_go(&table, request);
    tap_ok(hvd_tensor_table_find(&table, &key) == tensor,
           "any thread may let go of the name while another one is using it");
    start(other);
    tap_ok(hvd_tensor_table_find(&table, &key) == NULL,
           "a name that was let go of is removed by the next submission");
    hvd_tensor_table_end(&table, &other->entries[0], 0, "");

    hvd_request_reset(request);
    start(request);
    hvd_tensor_table_end(&table, &request->entries[0], 0, "");
    hvd_tensor_table_let_go(&table, request);
    start(request);
    hvd_tensor_table_end(&table, &request->entries[0], 0, "");
    hvd_tensor_table_let_go(&table, request);
    start(other);
    hvd_tensor_table_end(&table, &other->entries[0], 0, "");
    tap_ok(table.by_name.count == 0,
           "a name that was taken again before its removal is removed at its end");
    hvd_request_drop(request);
    hvd_request_drop(other);
}

int main(void)
{
    hvd_tensor_table_init(&table, on_ended, NULL);
    test_names();
    test_seen();
    test_cached();
    test_persistent();
    hvd_tensor_table_finish(&table);
    return tap_done();
}
