/* SPDX-License-Identifier: Apache-2.0 */
/* The network addresses of all ranks: each sends its own up the tree, rank 0 sends all down. */
#include <stdlib.h>
#include <string.h>

#include "collectives/engine/engine_state.h"

/* Network addresses of all ranks, as far as they have come. */
struct hvd_addresses {
    int missing;
    const void **data; /* [size] */
    size_t *bytes; /* [size] */
    void *message; /* what data points into, on ranks other than 0 */
    bool complete;
};

/* Rank 0 has all addresses: sends them down and keeps them. */
static void send_addresses(struct hvd_engine *engine)
{
    struct hvd_addresses *addresses = engine->addresses;
    struct hvd_writer writer = {0};

    for (int i = 0; i < engine->boot->size; i++) {
        hvd_put_int(&writer, (int64_t)addresses->bytes[i]);
        hvd_put(&writer, addresses->data[i], addresses->bytes[i]);
    }
    if (writer.failed || hvd_uplink_send_down(engine->uplink, HVD_MESSAGE_ADDRESSES,
                                              writer.data, writer.bytes) != 0) {
        hvd_engine_fail(engine, 0, HVD_ERR_NOMEM, "no memory for network addresses");
    }
    addresses->complete = true;
    hvd_writer_finish(&writer);
}

void hvd_addresses_on_one(struct hvd_engine *engine, const void *payload, size_t bytes)
{
    struct hvd_addresses *addresses = engine->addresses;
    struct hvd_reader reader = {.data = payload, .bytes = bytes};
    int64_t rank = hvd_take_int(&reader);
    void *copy;

    if (engine->boot->rank != 0) {
        hvd_uplink_send_up(engine->uplink, HVD_MESSAGE_ADDRESS, payload, bytes);
        return;
    }
    copy = malloc(reader.bytes);
    if (addresses == NULL || rank < 0 || rank >= engine->boot->size || copy == NULL ||
        addresses->data[rank] != NULL) {
        free(copy);
        hvd_engine_fail(engine, 0, HVD_ERR_NET, "unexpected network address of a rank");
        return;
    }
    memcpy(copy, reader.data, reader.bytes);
    addresses->data[rank] = copy;
    addresses->bytes[rank] = reader.bytes;
    addresses->missing--;
    if (addresses->missing == 0) {
        send_addresses(engine);
    }
}

void hvd_addresses_on_all(struct hvd_engine *engine, const void *payload, size_t bytes)
{
    struct hvd_addresses *addresses = engine->addresses;
    struct hvd_reader reader = {.bytes = bytes};

    if (addresses == NULL) {
        return; /* nobody waits for them */
    }
    hvd_uplink_send_down(engine->uplink, HVD_MESSAGE_ADDRESSES, payload, bytes);
    addresses->message = malloc(bytes);
    if (addresses->message == NULL) {
        hvd_engine_fail(engine, engine->boot->rank, HVD_ERR_NOMEM,
                        "no memory for addresses");
        return;
    }
    memcpy(addresses->message, payload, bytes);
    reader.data = addresses->message;
    for (int i = 0; i < engine->boot->size; i++) {
        addresses->bytes[i] = (size_t)hvd_take_int(&reader);
        addresses->data[i] = hvd_take(&reader, addresses->bytes[i]);
    }
    if (reader.failed) {
        hvd_engine_fail(engine, engine->boot->rank, HVD_ERR_NET,
                        "the network addresses of the ranks cannot be read: do all nodes "
                        "have the same version of hvd?");
    }
    addresses->complete = true;
}

static bool has_addresses(struct hvd_engine *engine, const void *arg)
{
    (void)arg;
    return engine->has_failed || engine->addresses->complete;
}

/* This rank's own address, on its way to rank 0. */
static void send_address(struct hvd_engine *engine)
{
    struct hvd_writer writer = {0};
    const void *address;
    size_t bytes;

    hvd_net_address(engine->net, &address, &bytes);
    hvd_put_int(&writer, engine->boot->rank);
    hvd_put(&writer, address, bytes);
    if (engine->boot->rank == 0 && !writer.failed) {
        hvd_addresses_on_one(engine, writer.data, writer.bytes);
    } else if (writer.failed || hvd_uplink_send_up(engine->uplink, HVD_MESSAGE_ADDRESS,
                                                   writer.data, writer.bytes) != 0) {
        hvd_engine_fail(engine, engine->boot->rank, HVD_ERR_NOMEM,
                        "no memory for addresses");
    }
    hvd_writer_finish(&writer);
}

static void addresses_finish(struct hvd_engine *engine)
{
    struct hvd_addresses *addresses = engine->addresses;

    for (int i = 0;
         engine->boot->rank == 0 && addresses->data != NULL && i < engine->boot->size;
         i++) {
        free((void *)addresses->data[i]);
    }
    free(addresses->data);
    free(addresses->bytes);
    free(addresses->message);
    engine->addresses = NULL;
}

static int exchange(struct hvd_engine *engine, int timeout_ms, struct hvd_error *err)
{
    int size = engine->boot->size;
    bool done;

    send_address(engine);
    done = hvd_engine_drive(engine, has_addresses, NULL, timeout_ms);
    if (engine->has_failed) {
        return hvd_fail(err, engine->refusal.status, "%s", engine->refusal.text);
    }
    if (!done) {
        return hvd_fail(err, HVD_ERR_TIMEOUT,
                        "network addresses of all %d ranks did not come within %d s",
                        size, timeout_ms / 1000);
    }
    return hvd_net_connect(engine->net, engine->boot->rank, size, engine->addresses->data,
                           engine->addresses->bytes, err);
}

int hvd_addresses_exchange(struct hvd_engine *engine, int timeout_ms,
                           struct hvd_error *err)
{
    size_t size = (size_t)engine->boot->size;
    struct hvd_addresses addresses = {.missing = (int)size};
    int status;

    addresses.data = calloc(size, sizeof(addresses.data[0]));
    addresses.bytes = calloc(size, sizeof(addresses.bytes[0]));
    engine->addresses = &addresses;
    if (addresses.data == NULL || addresses.bytes == NULL) {
        status = hvd_fail(err, HVD_ERR_NOMEM, "no memory for network addresses");
    } else {
        status = exchange(engine, timeout_ms, err);
    }
    addresses_finish(engine);
    return status;
}
