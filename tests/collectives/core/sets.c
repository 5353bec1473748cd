/* SPDX-License-Identifier: Apache-2.0 */
/* Process sets that their members create, and sums in them. */
#include "tests/collectives/core/sets.h"

#include "tests/collectives/calls.h"

enum {
    MOST_RANKS = 32
};

struct hvd_request *sets_start(unsigned bits, const char *label)
{
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int ranks[MOST_RANKS], count = 0;

    /* hvd_set_create_start takes the ranks in any order */
    for (int i = hvd_size() - 1; i >= 0; i--) {
        if (bits >> i & 1) {
            ranks[count++] = i;
        }
    }
    if (hvd_set_create_start(ranks, count, label, &request, &err) != 0) {
        call_finish(err.status, &request, &err);
    }
    return request;
}

int sets_finish(struct hvd_request *request)
{
    struct hvd_error err = {0};
    int id;

    call_finish(0, &request, &err);
    id = hvd_request_set(request);
    hvd_request_free(request);
    return id;
}

void sets_remove(int id)
{
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    call_finish(hvd_set_remove_start(id, &request, &err), &request, &err);
    hvd_request_free(request);
}

struct hvd_request *sets_start_sum(int id, const char *name, float *data)
{
    static const int64_t shape[] = {SETS_ELEMENTS};
    struct hvd_tensor tensor = call_tensor(name, HVD_FLOAT32, shape, 1, data, data);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    for (int i = 0; i < SETS_ELEMENTS; i++) {
        data[i] = (float)((hvd_rank() + 1) * (1 + i % 7));
    }
    if (hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, id, &request, &err) != 0) {
        call_finish(err.status, &request, &err);
    }
    return request;
}

bool sets_finish_sum(struct hvd_request *request, unsigned bits, const float *data)
{
    struct hvd_error err = {0};
    int sum = 0;
    bool good = true;

    call_finish(0, &request, &err);
    hvd_request_free(request);
    for (int i = 0; i < hvd_size(); i++) {
        sum += (bits >> i & 1) != 0 ? i + 1 : 0;
    }
    for (int i = 0; i < SETS_ELEMENTS; i++) {
        good &= data[i] == (float)(sum * (1 + i % 7));
    }
    return good;
}
