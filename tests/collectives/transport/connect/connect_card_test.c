/* SPDX-License-Identifier: Apache-2.0 */
/* Tests cards, in which ranks tell each other the addresses and ports of their control
 * sockets, and the environment variables with which users choose the addresses. */
#include "collectives/transport/connect/connect_card.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectives/transport/control/control.h"
#include "gpu_binding/base/env.h"
#include "pmix_boot/sock/socket.h"
#include "tests/tap.h"

static bool is_open(const char *host, uint16_t port)
{
    char text[16];
    int fd;

    snprintf(text, sizeof(text), "%u", (unsigned)port);
    fd = hvd_socket_connect_host(host, text, 0, NULL);
    if (fd >= 0) {
        close(fd);
    }
    return fd >= 0;
}

static void variable_is_obeyed(const char *variable)
{
    struct hvd_control *control = NULL;
    struct hvd_connect_card card;
    const void *address;
    size_t bytes;

    setenv(variable, "nosuch0", 1);
    tap_ok(hvd_control_create(&control, NULL) == HVD_ERR_ARG,
           "a wrong value of %s is an error", variable);
    setenv(variable, "lo", 1);
    if (tap_ok(hvd_control_create(&control, NULL) == 0, "%s=lo works", variable)) {
        hvd_control_address(control, &address, &bytes);
        tap_ok(hvd_connect_card_parse(&card, address, bytes) == 0 && card.count > 0 &&
                   card.addresses[0].version == 4 && card.addresses[0].bytes[0] == 127,
               "its address is in the card");
        tap_ok(is_open("127.0.0.1", card.port) && !is_open("127.0.0.2", card.port),
               "the rank listens at no other address");
    }
    hvd_control_destroy(control, 0);
    unsetenv(variable);
}

static void every_interface_of_a_list_is_listened_at(void)
{
    struct hvd_control *control = NULL;
    struct hvd_connect_card card = {0};
    char host[64];
    const void *address;
    size_t bytes;
    int open = 0;

    setenv(HVD_ENV_IFACE, "lo,lo", 1);
    if (tap_ok(hvd_control_create(&control, NULL) == 0, "several interfaces work")) {
        hvd_control_address(control, &address, &bytes);
        hvd_connect_card_parse(&card, address, bytes);
        for (int i = 0; i < card.count; i++) {
            inet_ntop(card.addresses[i].version == 4 ? AF_INET : AF_INET6,
                      card.addresses[i].bytes, host, sizeof(host));
            open += is_open(host, card.port) ? 1 : 0;
        }
        tap_ok(open > 0 && open == card.count,
               "a rank listens at each address of its card (%d of %d)", open, card.count);
        tap_ok(!is_open("127.0.0.2", card.port),
               "the rank listens at no other address than those of the list");
    }
    hvd_control_destroy(control, 0);
    unsetenv(HVD_ENV_IFACE);
}

static void cards_are_checked(void)
{
    struct hvd_connect_card card = {.count = 2};
    struct hvd_connect_card read;
    size_t bytes = hvd_connect_card_bytes(&card);

    tap_ok(hvd_connect_card_parse(&read, &card, bytes) == 0 && read.count == 2,
           "a card is read as it was written");
    tap_ok(hvd_connect_card_parse(&read, &card, bytes - 1) == HVD_ERR_ARG &&
               hvd_connect_card_parse(&read, &card, 0) == HVD_ERR_ARG,
           "a card that is cut short is refused");
    card.count = HVD_CONNECT_CARD_ADDRESSES + 1;
    tap_ok(hvd_connect_card_parse(&read, &card, sizeof(card)) == HVD_ERR_ARG,
           "a card with too many addresses is refused");
}

static bool has_address(const struct hvd_connect_card *card, const struct hvd_ip *ip)
{
    for (int i = 0; i < card->count; i++) {
        if (memcmp(&card->addresses[i], ip, sizeof(*ip)) == 0) {
            return true;
        }
    }
    return false;
}

/* The card of another host has two addresses, one of which this host has, too. */
static void own_addresses_are_dropped(void)
{
    static struct hvd_ip ours[] = {{.version = 4, .bytes = {172, 17, 0, 1}}};
    const struct hvd_interfaces_own own = {.list = ours, .count = 1};
    const struct hvd_ip theirs = {.version = 4, .bytes = {192, 0, 2, 7}};
    struct hvd_connect_card here = {0};
    struct hvd_connect_card card;

    tap_ok(hvd_connect_card_list(&here, NULL) == 0 && here.network != 0 &&
               here.machine != 0,
           "a card contains its network namespace and its machine");
    card = here;
    card.count = 2;
    card.addresses[0] = ours[0];
    card.addresses[1] = theirs;
    tap_ok(hvd_connect_card_drop_own(&card, &here, &own) == 0 && card.count == 2,
           "the addresses of a rank on this host are kept");
    card.network++;
    tap_ok(hvd_connect_card_drop_own(&card, &here, &own) == 1 && card.count == 1 &&
               has_address(&card, &theirs) && !has_address(&card, &ours[0]),
           "an address of this host is dropped from a card of another network namespace");
    card = here;
    card.count = 1;
    card.addresses[0] = ours[0];
    card.machine++;
    tap_ok(hvd_connect_card_drop_own(&card, &here, &own) == 1 && card.count == 0,
           "an address of this host is dropped from a card of another machine");
    here.network = 0;
    card = here;
    card.count = 1;
    card.addresses[0] = ours[0];
    tap_ok(hvd_connect_card_drop_own(&card, &here, &own) == 1,
           "an address of this host is dropped if the network namespace is unknown");
}

static void ports_are_obeyed(void)
{
    struct hvd_control *control = NULL;
    struct hvd_connect_card card;
    const void *address;
    size_t bytes;

    setenv(HVD_ENV_PORT_RANGE, "all", 1);
    tap_ok(hvd_control_create(&control, NULL) == HVD_ERR_ARG,
           "a wrong range of ports is an error");
    setenv(HVD_ENV_PORT_RANGE, "20001-29999", 1);
    if (tap_ok(hvd_control_create(&control, NULL) == 0,
               "a rank finds a port in the range")) {
        hvd_control_address(control, &address, &bytes);
        tap_ok(hvd_connect_card_parse(&card, address, bytes) == 0 && card.port > 20000 &&
                   card.port < 30000,
               "the port of the card is in the range");
    }
    hvd_control_destroy(control, 0);
    unsetenv(HVD_ENV_PORT_RANGE);
}

int main(void)
{
    unsetenv(HVD_ENV_IFACE);
    unsetenv(HVD_ENV_GLOO_IFACE);
    variable_is_obeyed(HVD_ENV_IFACE);
    variable_is_obeyed(HVD_ENV_GLOO_IFACE);
    every_interface_of_a_list_is_listened_at();
    unsetenv(HVD_ENV_GLOO_IFACE);
    ports_are_obeyed();
    cards_are_checked();
    own_addresses_are_dropped();
    return tap_done();
}
