/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated allreduces against each other and against what no machine can beat. */
#include "contrib/bench/simulate/collective.h"

#include <math.h>
#include <string.h>

#include "tests/tap.h"

static struct simulate_machine machine_of(const char *text)
{
    struct simulate_options options = simulate_defaults(SIMULATE_HVD);
    struct hvd_error err = {0};

    if (simulate_parse(text, &options, &err) != 0) {
        tap_note("%s", err.text);
        exit(1);
    }
    return options.machine;
}

static struct simulate_result run(const char *text, double bytes, bool is_whole)
{
    struct simulate_machine machine = machine_of(text);
    struct simulate_result result = {0};
    struct hvd_error err = {0};

    if (simulate_allreduce(&machine, bytes, is_whole, &result, &err) != 0) {
        tap_note("%s", err.text);
        exit(1);
    }
    return result;
}

static bool is_near(double a, double b, double share)
{
    if (fabs(a - b) > share * b) {
        tap_note("%g s, expected %g s", a, b);
        return false;
    }
    return true;
}

/* One node stands for all. */
static void test_mirror(void)
{
    static const char *const machines[] = {"nodes=2", "nodes=8", "nodes=32",
                                           "nodes=8,gpus=2,cards=2,netcopy=5GB"};
    bool is_same = true;

    for (int i = 0; i < 4; i++) {
        for (double bytes = 16 << 10; bytes <= 2 << 20; bytes *= 128) {
            struct simulate_result one = run(machines[i], bytes, false);
            struct simulate_result all = run(machines[i], bytes, true);

            is_same = is_same && one.is_mirrored && !all.is_mirrored &&
                      is_near(one.seconds, all.seconds, 1e-6);
        }
    }
    tap_ok(is_same, "one node takes as long as all together");
}

static void test_extrapolation(void)
{
    struct simulate_result some = run("nodes=2", 28 << 20, false);
    struct simulate_result all = run("nodes=2", 28 << 20, true);

    tap_ok(some.is_extrapolated && !all.is_extrapolated &&
               is_near(some.seconds, all.seconds, 0.01),
           "some chunks tell how long all take");
}

/* Each card carries (nodes - 1) / nodes of the bytes twice, in each direction. */
static void test_limit(void)
{
    static const int nodes[] = {4, 16, 24, 32, 64, 128, 256};
    bool is_above = true, is_close = true;
    char text[32];

    for (int i = 0; i < 7; i++) {
        double bytes = 64 << 20, limit;

        snprintf(text, sizeof(text), "nodes=%d,link=2.5GB", nodes[i]);
        limit = 2 * bytes * (nodes[i] - 1) / nodes[i] / 2.5e9;
        is_above = is_above && run(text, bytes, false).seconds >= limit;
        is_close = is_close && run(text, bytes, false).seconds <= 1.1 * limit;
    }
    tap_ok(is_above, "no allreduce is faster than its bytes on the card");
    tap_ok(is_close, "nor much slower, up to 256 nodes");
}

static void test_sharing(void)
{
    double one = run("nodes=4", 16 << 20, false).seconds;
    double four = run("nodes=4,cards=4", 16 << 20, false).seconds;
    double slow = run("nodes=4,cards=4,memory=11GB", 16 << 20, false).seconds;

    tap_ok(one > 1.5 * four, "four ranks wait for one card");
    tap_ok(slow > 2 * four, "and for a memory as fast as one of them");
}

static void test_uneven(void)
{
    static const char *const hosts[] = {"a", "a", "a", "b", "c"};
    struct simulate_machine machine = machine_of("nodes=3");
    struct simulate_result result = {0};
    struct hvd_layout layout;

    tap_ok(hvd_layout_init(&layout, hosts, 5, NULL) == 0 &&
               simulate_on_layout(&machine, &layout, 1 << 20, &result, NULL) == 0 &&
               result.seconds > 0 && strcmp(result.algorithm, "direct") == 0,
           "nodes may differ");
    hvd_layout_finish(&layout);
}

static void test_options(void)
{
    struct simulate_options options = simulate_defaults(SIMULATE_HVD);
    struct hvd_error err = {0};

    tap_ok(simulate_parse("link=10Gb,nodes=3,latency=3us", &options, &err) == 0 &&
               is_near(options.machine.link, 1.15e9, 1e-9) &&
               is_near(options.machine.latency, 3e-6, 1e-9) && options.machine.nodes == 3,
           "a line of 10 Gb carries 1.15 GB/s");
    tap_ok(simulate_parse("link=10us", &options, &err) == HVD_ERR_ARG &&
               strstr(err.text, "link") != NULL,
           "a wrong unit is refused");
    tap_ok(simulate_parse("lnk=10Gb", &options, &err) == HVD_ERR_ARG &&
               strstr(err.text, "lnk") != NULL,
           "so is an option that does not exist");
    tap_ok(simulate_parse("nodes=0", &options, &err) == HVD_ERR_ARG, "and no node");
}

int main(void)
{
    test_mirror();
    test_extrapolation();
    test_limit();
    test_sharing();
    test_uneven();
    test_options();
    return tap_done();
}
