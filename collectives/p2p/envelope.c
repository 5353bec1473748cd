/* SPDX-License-Identifier: Apache-2.0 */
/* Checks envelopes. */
#include "collectives/p2p/envelope.h"

#include <stdbool.h>

#include "collectives/hvd.h"

/* Bytes of the window (HVD_EAGER_WINDOW) that a stored message uses in addition to its
 * length. */
static const uint64_t least_cost = 128;

_Static_assert(sizeof(struct hvd_envelope) == 64, "one cache line");

uint64_t hvd_envelope_cost(uint64_t bytes)
{
    return bytes + least_cost;
}

static bool describes_message(const struct hvd_envelope *envelope)
{
    return envelope->type == HVD_ENVELOPE_EAGER || envelope->type == HVD_ENVELOPE_OFFER ||
           envelope->type == HVD_ENVELOPE_REFUSED;
}

/* Whether an envelope of this type may carry its number of payload bytes. */
static bool may_carry(const struct hvd_envelope *envelope)
{
    switch (envelope->type) {
    case HVD_ENVELOPE_EAGER:
        return envelope->payload == envelope->bytes &&
               envelope->payload <= HVD_EAGER_BYTES;
    case HVD_ENVELOPE_DATA:
        return envelope->payload > 0 && envelope->payload <= HVD_PIECE_BYTES;
    default:
        return envelope->payload == 0;
    }
}

int hvd_envelope_check(const struct hvd_envelope *envelope, size_t there,
                       struct hvd_error *err)
{
    if (there < sizeof(*envelope) ||
        there - sizeof(*envelope) != (size_t)envelope->payload) {
        return hvd_fail(err, HVD_ERR_NET, "an envelope of %zu bytes is truncated", there);
    }
    if (envelope->type == 0 || envelope->type >= HVD_ENVELOPE_TYPES) {
        return hvd_fail(err, HVD_ERR_NET, "unknown envelope type %u", envelope->type);
    }
    if (!may_carry(envelope)) {
        return hvd_fail(err, HVD_ERR_NET,
                        "an envelope of type %u carries %u bytes of a message of %llu",
                        envelope->type, envelope->payload,
                        (unsigned long long)envelope->bytes);
    }
    if (describes_message(envelope) &&
        (envelope->dtype >= HVD_DTYPE_COUNT || envelope->bytes > INT64_MAX)) {
        return hvd_fail(err, HVD_ERR_NET,
                        "an envelope announces an invalid message: %llu bytes, dtype %u",
                        (unsigned long long)envelope->bytes, envelope->dtype);
    }
    return 0;
}
