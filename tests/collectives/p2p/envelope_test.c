/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that malformed envelopes, the headers of messages from other ranks, are
 * refused. */
#include "collectives/p2p/envelope.h"

#include <string.h>

#include "collectives/hvd.h"
#include "tests/tap.h"

static const struct hvd_envelope eager = {.type = HVD_ENVELOPE_EAGER,
                                          .payload = 8,
                                          .bytes = 8,
                                          .dtype = HVD_FLOAT64,
                                          .tag = -1};

static int check(struct hvd_envelope envelope, size_t there)
{
    struct hvd_error err = {0};
    int status = hvd_envelope_check(&envelope, there, &err);

    tap_note("%s", err.text);
    return status;
}

static struct hvd_envelope with(enum hvd_envelope_type type, uint32_t payload,
                                uint64_t bytes)
{
    struct hvd_envelope envelope = eager;

    envelope.type = type;
    envelope.payload = payload;
    envelope.bytes = bytes;
    return envelope;
}

static void test_good(void)
{
    const size_t own = sizeof(eager);

    tap_ok(check(eager, own + 8) == 0 && check(with(HVD_ENVELOPE_EAGER, 0, 0), own) == 0,
           "small messages are accepted, even without bytes");
    tap_ok(check(with(HVD_ENVELOPE_OFFER, 0, INT64_MAX), own) == 0,
           "a large message is accepted");
    tap_ok(check(with(HVD_ENVELOPE_DATA, HVD_PIECE_BYTES, 0), own + HVD_PIECE_BYTES) == 0,
           "a piece is accepted");
}

static void test_bad(void)
{
    const size_t own = sizeof(eager);
    struct hvd_envelope strange = eager;

    strange.dtype = HVD_DTYPE_COUNT;
    tap_ok(check(eager, own + 7) == HVD_ERR_NET && check(eager, own + 9) == HVD_ERR_NET &&
               check(eager, 3) == HVD_ERR_NET,
           "an envelope that is too short or too long is refused");
    tap_ok(check(with((enum hvd_envelope_type)0, 0, 0), own) == HVD_ERR_NET &&
               check(with(HVD_ENVELOPE_TYPES, 0, 0), own) == HVD_ERR_NET,
           "an unknown type is refused");
    tap_ok(check(strange, own + 8) == HVD_ERR_NET, "an unknown dtype is refused");
    tap_ok(check(with(HVD_ENVELOPE_EAGER, 8, 16), own + 8) == HVD_ERR_NET,
           "a small message with a part missing is refused");
    tap_ok(check(with(HVD_ENVELOPE_EAGER, HVD_EAGER_BYTES + 1, HVD_EAGER_BYTES + 1),
                 own + HVD_EAGER_BYTES + 1) == HVD_ERR_NET,
           "a large message sent as a small one is refused");
    tap_ok(check(with(HVD_ENVELOPE_DATA, 0, 0), own) == HVD_ERR_NET,
           "an empty piece is refused");
    tap_ok(check(with(HVD_ENVELOPE_OFFER, 8, 8), own + 8) == HVD_ERR_NET,
           "an offer that carries bytes is refused");
    tap_ok(check(with(HVD_ENVELOPE_OFFER, 0, UINT64_MAX), own) == HVD_ERR_NET,
           "a message larger than the address space is refused");
}

int main(void)
{
    test_good();
    test_bad();
    return tap_done();
}
