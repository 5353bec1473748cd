/* SPDX-License-Identifier: Apache-2.0 */
/* The network addresses of all ranks, while connecting. */
#include "collectives/core/addresses.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/agreement/codec.h"
#include "collectives/transport/control/uplink.h"

const void *const *hvd_addresses_all(const struct hvd_addresses *addresses)
{
    return addresses->data;
}

const size_t *hvd_addresses_bytes(const struct hvd_addresses *addresses)
{
    return addresses->bytes;
}

void hvd_addresses_init(struct hvd_addresses *addresses, struct hvd_uplink *uplink,
                        int rank, int size)
{
    *addresses = (struct hvd_addresses){
        .uplink = uplink, .rank = rank, .size = size, .missing = size};
}

/* On rank 0, which has all addresses now: sends them down the tree. */
static int send_all(struct hvd_addresses *addresses, struct hvd_error *err)
{
    struct hvd_writer writer = {0};
    int status = 0;

    for (int i = 0; i < addresses->size; i++) {
        hvd_put_int(&writer, (int64_t)addresses->bytes[i]);
        hvd_put(&writer, addresses->data[i], addresses->bytes[i]);
    }
    if (writer.failed || hvd_uplink_send_down(addresses->uplink, HVD_MESSAGE_ADDRESSES,
                                              writer.data, writer.bytes) != 0) {
        status = hvd_fail(err, HVD_ERR_NOMEM, "no memory for network addresses");
    }
    addresses->are_complete = true;
    hvd_writer_finish(&writer);
    return status;
}

int hvd_addresses_on_one(struct hvd_addresses *addresses, const void *payload,
                         size_t bytes, struct hvd_error *err)
{
    struct hvd_reader reader = {.data = payload, .bytes = bytes};
    int64_t rank = hvd_take_int(&reader);
    void *copy;

    if (addresses->rank != 0) {
        hvd_uplink_send_up(addresses->uplink, HVD_MESSAGE_ADDRESS, payload, bytes);
        return 0;
    }
    copy = malloc(reader.bytes);
    if (!addresses->are_wanted || rank < 0 || rank >= addresses->size || copy == NULL ||
        addresses->data[rank] != NULL) {
        free(copy);
        return hvd_fail(err, HVD_ERR_NET, "unexpected network address of a rank");
    }
    memcpy(copy, reader.data, reader.bytes);
    addresses->data[rank] = copy;
    addresses->bytes[rank] = reader.bytes;
    addresses->missing--;
    return addresses->missing == 0 ? send_all(addresses, err) : 0;
}

int hvd_addresses_on_all(struct hvd_addresses *addresses, const void *payload,
                         size_t bytes, struct hvd_error *err)
{
    struct hvd_reader reader = {.bytes = bytes};

    if (!addresses->are_wanted) {
        return 0; /* not between begin and end: ignore the message */
    }
    hvd_uplink_send_down(addresses->uplink, HVD_MESSAGE_ADDRESSES, payload, bytes);
    addresses->message = malloc(bytes);
    if (addresses->message == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for addresses");
    }
    memcpy(addresses->message, payload, bytes);
    reader.data = addresses->message;
    for (int i = 0; i < addresses->size; i++) {
        addresses->bytes[i] = (size_t)hvd_take_int(&reader);
        addresses->data[i] = hvd_take(&reader, addresses->bytes[i]);
    }
    if (reader.failed) {
        return hvd_fail(
            err, HVD_ERR_NET,
            "the network addresses of the ranks cannot be read: do all nodes have the "
            "same version of hvd?");
    }
    addresses->are_complete = true;
    return 0;
}

/* Sends this rank's own address towards rank 0. */
static int send_own(struct hvd_addresses *addresses, const void *address, size_t bytes,
                    struct hvd_error *err)
{
    struct hvd_writer writer = {0};
    int status = 0;

    hvd_put_int(&writer, addresses->rank);
    hvd_put(&writer, address, bytes);
    if (addresses->rank == 0 && !writer.failed) {
        status = hvd_addresses_on_one(addresses, writer.data, writer.bytes, err);
    } else if (writer.failed || hvd_uplink_send_up(addresses->uplink, HVD_MESSAGE_ADDRESS,
                                                   writer.data, writer.bytes) != 0) {
        status = hvd_fail(err, HVD_ERR_NOMEM, "no memory for addresses");
    }
    hvd_writer_finish(&writer);
    return status;
}

int hvd_addresses_begin(struct hvd_addresses *addresses, const void *address,
                        size_t bytes, struct hvd_error *err)
{
    size_t size = (size_t)addresses->size;

    addresses->are_wanted = true;
    addresses->data = calloc(size, sizeof(addresses->data[0]));
    addresses->bytes = calloc(size, sizeof(addresses->bytes[0]));
    if (addresses->data == NULL || addresses->bytes == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for network addresses");
    }
    return send_own(addresses, address, bytes, err);
}

void hvd_addresses_end(struct hvd_addresses *addresses)
{
    for (int i = 0;
         addresses->rank == 0 && addresses->data != NULL && i < addresses->size; i++) {
        free((void *)addresses->data[i]);
    }
    free(addresses->data);
    free(addresses->bytes);
    free(addresses->message);
    addresses->are_wanted = false;
}
