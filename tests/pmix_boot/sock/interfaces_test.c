/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of this machine, and those of named interfaces. */
#include "pmix_boot/sock/interfaces.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

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
           "loopback is listed only if there is nothing else");
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
           "no more addresses are listed than fit");
}

static struct hvd_ip text_ip(int family, const char *text)
{
    struct hvd_ip ip = {.version = family == AF_INET ? 4 : 6};

    if (inet_pton(family, text, ip.bytes) != 1) {
        exit(98);
    }
    return ip;
}

static void own_addresses_are_known(void)
{
    static const char *const own_v4[] = {"127.0.0.1", "127.1.2.3", "0.0.0.0"};
    static const char *const own_v6[] = {"::1", "::", "::ffff:127.0.0.1"};
    struct hvd_interfaces_own own;
    struct hvd_ip list[MAX];
    struct hvd_ip ip;
    int count = 0;
    bool are_own = hvd_interfaces_own_init(&own, NULL) == 0 &&
                   hvd_interfaces_list(NULL, list, MAX, &count, NULL) == 0;

    for (int i = 0; i < count; i++) {
        are_own = are_own && hvd_interfaces_are_own(&own, &list[i]);
    }
    for (int i = 0; i < 3; i++) {
        ip = text_ip(AF_INET, own_v4[i]);
        are_own = are_own && hvd_interfaces_are_own(&own, &ip);
        ip = text_ip(AF_INET6, own_v6[i]);
        are_own = are_own && hvd_interfaces_are_own(&own, &ip);
    }
    tap_ok(
        are_own,
        "this host's addresses, loopback and the unspecified address lead to this host");
    ip = text_ip(AF_INET, "192.0.2.1");
    are_own = hvd_interfaces_are_own(&own, &ip);
    ip = text_ip(AF_INET6, "2001:db8::1");
    tap_ok(!are_own && !hvd_interfaces_are_own(&own, &ip), "other addresses do not");
    hvd_interfaces_own_finish(&own);
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
           "\"%s\": the error names the missing interface and the existing ones", names);
}

static void commas_name_none(void)
{
    struct hvd_error err = {0};
    struct hvd_ip list[MAX];
    int count = 0;

    tap_ok(hvd_interfaces_list(",", list, MAX, &count, &err) == HVD_ERR_ARG &&
               strstr(err.text, "',' names no network interface") != NULL,
           "a list of commas only is rejected");
}

static void words_are_names(void)
{
    tap_ok(hvd_interfaces_are("lo") && hvd_interfaces_are("lo,lo"), "lo is an interface");
    tap_ok(!hvd_interfaces_are("mlx5_0:1") && !hvd_interfaces_are("lo,mlx5_0:1") &&
               !hvd_interfaces_are("lo,,lo") &&
               !hvd_interfaces_are("a-name-that-is-too-long-for-an-interface"),
           "the port of a network card is not, nor is an empty name");
}

/* Prints the addresses, for fastest_test.sh. */
static int print_list(void)
{
    struct hvd_ip list[MAX];
    int count = 0;

    hvd_interfaces_list(NULL, list, MAX, &count, NULL);
    for (int i = 0; i < count; i++) {
        char text[64];

        hvd_ip_print(&list[i], 0, text);
        puts(text);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "list") == 0) {
        return print_list();
    }
    default_avoids_loopback();
    names_restrict();
    own_addresses_are_known();
    missing_interface_is_named("nosuch0");
    missing_interface_is_named("lo,nosuch0");
    commas_name_none();
    words_are_names();
    return tap_done();
}
