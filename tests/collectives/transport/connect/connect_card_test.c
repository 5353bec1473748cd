/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank tells the others of its control sockets: addresses that the user chose. */
#include "collectives/transport/connect/connect_card.h"

#include <stdlib.h>

#include "collectives/transport/control/control.h"
#include "gpu_binding/base/env.h"
#include "tests/tap.h"

static void variable_is_obeyed(const char *variable)
{
    struct hvd_control *control = NULL;
    struct hvd_connect_card card;
    const void *address;
    size_t bytes;

    setenv(variable, "nosuch0", 1);
    tap_ok(hvd_control_create(&control, NULL) == HVD_ERR_ARG, "%s is checked", variable);
    setenv(variable, "lo", 1);
    if (tap_ok(hvd_control_create(&control, NULL) == 0, "%s=lo works", variable)) {
        hvd_control_address(control, &address, &bytes);
        tap_ok(hvd_connect_card_parse(&card, address, bytes) == 0 && card.count > 0 &&
                   card.addresses[0].version == 4 && card.addresses[0].bytes[0] == 127,
               "and goes into the card");
    }
    hvd_control_destroy(control, 0);
    unsetenv(variable);
}

static void cards_are_checked(void)
{
    struct hvd_connect_card card = {.count = 2};
    struct hvd_connect_card read;
    size_t bytes = hvd_connect_card_bytes(&card);

    tap_ok(hvd_connect_card_parse(&read, &card, bytes) == 0 && read.count == 2,
           "a card reads as it was written");
    tap_ok(hvd_connect_card_parse(&read, &card, bytes - 1) == HVD_ERR_ARG &&
               hvd_connect_card_parse(&read, &card, 0) == HVD_ERR_ARG,
           "a card that was cut is refused");
    card.count = HVD_CONNECT_CARD_ADDRESSES + 1;
    tap_ok(hvd_connect_card_parse(&read, &card, sizeof(card)) == HVD_ERR_ARG,
           "so is one with too many addresses");
}

int main(void)
{
    unsetenv(HVD_ENV_IFACE);
    unsetenv(HVD_ENV_GLOO_IFACE);
    variable_is_obeyed(HVD_ENV_IFACE);
    variable_is_obeyed(HVD_ENV_GLOO_IFACE);
    cards_are_checked();
    return tap_done();
}
