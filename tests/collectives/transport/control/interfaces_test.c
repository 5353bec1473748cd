/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses that a node offers, and those that it is told to offer. */
#include "collectives/transport/control/interfaces.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/transport/control/control.h"
#include "collectives/transport/control/control_card.h"
#include "gpu_binding/base/env.h"
#include "tests/tap.h"

enum {
    MAX = 16
};

static bool is_loopback(const struct hvd_ip *ip)
{
    static const unsigned char v6[16] = {[15] = 1};

    return ip->version == 4 ? ip->bytes[0] == 127 : memcmp(ip->bytes, v6, 16) == 0;
}

static void default_avoids_loopback(void)
{
    struct hvd_ip list[MAX];
    int count = 0;
    int loopbacks = 0;
    int status = hvd_interfaces_list(NULL, list, MAX, &count, NULL);

    for (int i = 0; i < count; i++) {
        loopbacks += is_loopback(&list[i]) ? 1 : 0;
    }
    tap_ok(status == 0 && count > 0, "a host has at least one address");
    tap_ok(loopbacks == 0 || loopbacks == count,
           "loopback only when there is nothing else");
}

static void names_restrict(void)
{
    struct hvd_ip list[MAX];
    int count = 0;
    bool is_good = hvd_interfaces_list("lo", list, MAX, &count, NULL) == 0 && count > 0;

    for (int i = 0; i < count; i++) {
        is_good = is_good && is_loopback(&list[i]);
    }
    tap_ok(is_good, "a named interface is the only one used, even loopback");
    tap_ok(hvd_interfaces_list("lo", list, 1, &count, NULL) == 0 && count == 1,
           "no more addresses than there is room for");
}

static void missing_interface_is_named(const char *names)
{
    struct hvd_error err = {0};
    struct hvd_ip list[MAX];
    int count = 5;
    int status = hvd_interfaces_list(names, list, MAX, &count, &err);

    tap_note("%s", err.text);
    tap_ok(status == HVD_ERR_ARG && strstr(err.text, "nosuch0 does not exist") != NULL &&
               strstr(err.text, "lo") != NULL && count == 5,
           "\"%s\": the text names the missing interface and those that there are",
           names);
}

static void variable_is_obeyed(const char *variable)
{
    struct hvd_control *control = NULL;
    struct hvd_control_card card;
    const void *address;
    size_t bytes;

    setenv(variable, "nosuch0", 1);
    tap_ok(hvd_control_create(&control, NULL) == HVD_ERR_ARG, "%s is checked", variable);
    setenv(variable, "lo", 1);
    if (tap_ok(hvd_control_create(&control, NULL) == 0, "%s=lo works", variable)) {
        hvd_control_address(control, &address, &bytes);
        tap_ok(hvd_control_card_parse(&card, address, bytes) == 0 && card.count > 0 &&
                   is_loopback(&card.addresses[0]),
               "and goes into the card");
    }
    hvd_control_destroy(control, 0);
    unsetenv(variable);
}

static void cards_are_checked(void)
{
    struct hvd_control_card card = {.count = 2};
    struct hvd_control_card read;
    size_t bytes = hvd_control_card_bytes(&card);

    tap_ok(hvd_control_card_parse(&read, &card, bytes) == 0 && read.count == 2,
           "a card reads as it was written");
    tap_ok(hvd_control_card_parse(&read, &card, bytes - 1) == HVD_ERR_ARG &&
               hvd_control_card_parse(&read, &card, 0) == HVD_ERR_ARG,
           "a card that was cut is refused");
    card.count = HVD_CONTROL_CARD_ADDRESSES + 1;
    tap_ok(hvd_control_card_parse(&read, &card, sizeof(card)) == HVD_ERR_ARG,
           "so is one with too many addresses");
}

int main(void)
{
    unsetenv(HVD_ENV_IFACE);
    unsetenv(HVD_ENV_GLOO_IFACE);
    default_avoids_loopback();
    names_restrict();
    missing_interface_is_named("nosuch0");
    missing_interface_is_named("lo,nosuch0");
    variable_is_obeyed(HVD_ENV_IFACE);
    variable_is_obeyed(HVD_ENV_GLOO_IFACE);
    cards_are_checked();
    return tap_done();
}
