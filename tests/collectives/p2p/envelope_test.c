/* SPDX-License-Identifier: Apache-2.0 */
/* What another rank writes is not believed. */
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
           "small messages, also without bytes");
    tap_ok(check(with(HVD_ENVELOPE_OFFER, 0, INT64_MAX), own) == 0, "a large one");
    tap_ok(check(with(HVD_ENVELOPE_DATA, HVD_PIECE_BYTES, 0), own + HVD_PIECE_BYTES) == 0,
           "a piece");
}

static void test_bad(void)
{
    const size_t own = sizeof(eager);
    struct hvd_envelope strange = eager;

    strange.dtype = HVD_DTYPE_COUNT;
    tap_ok(check(eager, own + 7) == HVD_ERR_NET && check(eager, own + 9) == HVD_ERR_NET &&
               check(eager, 3) == HVD_ERR_NET,
           "cut off, or longer than it says");
    tap_ok(check(with((enum hvd_envelope_type)0, 0, 0), own) == HVD_ERR_NET &&
               check(with(HVD_ENVELOPE_TYPES, 0, 0), own) == HVD_ERR_NET,
           "of no type");
    tap_ok(check(strange, own + 8) == HVD_ERR_NET, "of no dtype");
    tap_ok(check(with(HVD_ENVELOPE_EAGER, 8, 16), own + 8) == HVD_ERR_NET,
           "a small message of which a part is missing");
    tap_ok(check(with(HVD_ENVELOPE_EAGER, HVD_EAGER_BYTES + 1, HVD_EAGER_BYTES + 1),
                 own + HVD_EAGER_BYTES + 1) == HVD_ERR_NET,
           "a large one as a small one");
    tap_ok(check(with(HVD_ENVELOPE_DATA, 0, 0), own) == HVD_ERR_NET, "an empty piece");
    tap_ok(check(with(HVD_ENVELOPE_OFFER, 8, 8), own + 8) == HVD_ERR_NET,
           "an offer with bytes");
    tap_ok(check(with(HVD_ENVELOPE_OFFER, 0, UINT64_MAX), own) == HVD_ERR_NET,
           "larger than the address space");
}

int main(void)
{
    test_good();
    test_bad();
    return tap_done();
}
