/* SPDX-License-Identifier: Apache-2.0 */
/* Compares simulated allreduces with each other and with physical limits. */
#include "contrib/bench/simulate/collective.h"

#include <math.h>
#include <string.h>

#include "tests/tap.h"

static struct simulate_machine machine_of(const char *text)
{
    struct simulate_options options = simulate_defaults();
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

/* The simulator may simulate one node if all nodes do the same. The simulated time must
 * be the same as if it simulates all of them. */
static void test_mirror(void)
{
    static const char *const machines[] = {"nodes=2", "nodes=8", "nodes=32",
                                           "nodes=8,gpus=2,cards=2"};
    bool is_same = true;

    for (int i = 0; i < 4; i++) {
        for (double bytes = 16 << 10; bytes <= 2 << 20; bytes *= 128) {
            struct simulate_result one = run(machines[i], bytes, false);
            struct simulate_result all = run(machines[i], bytes, true);

            is_same = is_same && one.is_mirrored && !all.is_mirrored &&
                      is_near(one.seconds, all.seconds, 1e-6);
        }
    }
    tap_ok(is_same, "one node that stands for all takes as long as all nodes");
}

static void test_extrapolation(void)
{
    struct simulate_result some = run("nodes=2", 28 << 20, false);
    struct simulate_result all = run("nodes=2", 28 << 20, true);

    tap_ok(some.is_extrapolated && !all.is_extrapolated &&
               is_near(some.seconds, all.seconds, 0.01),
           "a few chunks predict the time of all");
}

/* A lower bound: each card carries (nodes - 1) / nodes of the bytes twice, in each
 * direction. */
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
    tap_ok(is_close, "and none is much slower, up to 256 nodes");
}

static void test_sharing(void)
{
    double one = run("nodes=4", 16 << 20, false).seconds;
    double four = run("nodes=4,cards=4", 16 << 20, false).seconds;
    double slow = run("nodes=4,cards=4,memory=11GB", 16 << 20, false).seconds;

    tap_ok(one > 1.5 * four, "four ranks share one card");
    tap_ok(slow > 2 * four, "and a memory as fast as one of them");
}

/* Both ranks pack, send, receive and add. The sum begins when the message has arrived. */
static void test_arrival(void)
{
    const char *slow = "nodes=2,gpus=1,link=1000GB,latency=0us,message=0us,step=0us,"
                       "pcie=10GB,sum=1GB";
    double bytes = 48 << 10;

    tap_ok(is_near(run(slow, bytes, true).seconds, bytes / 1e9 + 2 * bytes / 10e9, 0.01),
           "a message is added up once, after it has arrived");
}

static void test_options(void)
{
    struct simulate_options options = simulate_defaults();
    struct hvd_error err = {0};

    tap_ok(simulate_parse("link=10Gb,nodes=3,latency=3us", &options, &err) == 0 &&
               is_near(options.machine.link, 1.15e9, 1e-9) &&
               is_near(options.machine.latency, 3e-6, 1e-9) && options.machine.nodes == 3,
           "a line of 10 Gb carries 1.15 GB/s");
}

/* Each text is refused with an error that names the option and the expected value. */
static void test_refusals(void)
{
    static const struct {
        const char *text, *named, *expected;
    } cases[] = {
        {"link=10us", "link=10us", "a rate above 0"},
        {"link=0", "link=0", "a rate above 0"},
        {"link=inf", "link=inf", "a rate above 0"},
        {"netcopy=1GB", "netcopy", "--help"},
        {"latency=nan", "latency=nan", "a time"},
        {"sync=1e99s", "sync=1e99s", "a time"},
        {"lnk=10Gb", "lnk", "--help"},
        {"nodes=0", "nodes=0", "from 1 to"},
        {"nodes=-4", "nodes=-4", "from 1 to"},
        {"nodes=2.5", "nodes=2.5", "whole"},
        {"nodes=99999999999999999999", "nodes=9999", "from 1 to"},
        {"nodes=4096,gpus=4096", "nodes=4096,gpus=4096", "at most 1048576 ranks"},
        {"nodes=", "nodes=", "whole"},
        {"nodes", "\"nodes\"", "name=value"},
        {"", "\"\"", "name=value"},
        {"nodes=4,,gpus=2", "\"\"", "name=value"},
        {"batch=0", "batch=0", "above 0"},
        {"bytes=2000G", "bytes=2000G", "up to 1024G"},
        {"fusion=1T", "fusion=1T", "a size"},
        {"schedule=horovod", "schedule", "--help"},
        {"model=xx", "model=xx", "resnet50"},
        {"model=", "model=", "resnet50"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct simulate_options options = simulate_defaults();
        struct hvd_error err = {0};
        int status = simulate_parse(cases[i].text, &options, &err);

        if (!tap_ok(status == HVD_ERR_ARG && strstr(err.text, cases[i].named) != NULL &&
                        strstr(err.text, cases[i].expected) != NULL,
                    "\"%s\" is refused", cases[i].text)) {
            tap_note("status %d: %s", status, err.text);
        }
    }
}

int main(void)
{
    test_mirror();
    test_extrapolation();
    test_limit();
    test_sharing();
    test_arrival();
    test_options();
    test_refusals();
    return tap_done();
}
