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

/* Ranks that share a core: tiny sums, whose time is that of the turns that they take. */
static void test_turns(void)
{
    static const char *const tiny =
        "nodes=1,cores=1,patience=3us,switch=2us,step=1ns,sync=1ns,calls=50,gpus=";
    bool is_right = true;
    char text[128];

    for (int ranks = 1; ranks <= 4; ranks++) {
        double turns = (ranks - 1) * 5e-6;

        snprintf(text, sizeof(text), "%s%d", tiny, ranks);
        is_right =
            is_right && fabs(run(text, 8, true).seconds - turns) < 0.03 * turns + 0.1e-6;
    }
    tap_ok(is_right, "all others of the core look in vain once an allreduce");
    tap_ok(run("nodes=1,gpus=2,cores=2,patience=3us,switch=2us", 8, true).seconds < 2e-6,
           "a rank with a core of its own makes way for nobody");
}

static void test_cores(void)
{
    static const char *const free_turns = "nodes=1,patience=0us,switch=0us,sync=1ns,";
    double time[4];
    char text[128];

    for (int i = 0; i < 4; i++) {
        static const char *const cores[] = {"gpus=3,cores=3", "gpus=3,cores=2",
                                            "gpus=4,cores=4", "gpus=4,cores=2"};

        snprintf(text, sizeof(text), "%s%s,memory=1000GB", free_turns, cores[i]);
        time[i] = run(text, 64 << 10, true).seconds;
    }
    tap_ok(is_near(time[1], 2 * time[0], 0.05) && is_near(time[3], 2 * time[2], 0.05),
           "the core with the most ranks decides, however idle the others are");
}

/* Of two ranks each reads all that the other has packed. */
static void test_crossing(void)
{
    static const char *const machines[] = {"cores=2", "cores=2,cross=1GB",
                                           "cores=1,cross=1GB", "cores=1"};
    double bytes = 64 << 10, time[4];
    char text[128];

    for (int i = 0; i < 4; i++) {
        snprintf(text, sizeof(text), "nodes=1,gpus=2,memory=1000GB,%s", machines[i]);
        time[i] = run(text, bytes, true).seconds;
    }
    tap_ok(is_near(time[1] - time[0], bytes / 1e9, 1e-3) && time[2] == time[3],
           "bytes take longer from core to core, not within one");
}

/* What is added up on arrival takes its time there: both ranks pack, send, take and add. */
static void test_arrival(void)
{
    const char *slow = "nodes=2,gpus=1,link=1000GB,latency=0us,message=0us,step=0us,"
                       "pcie=10GB,out=10GB,sum=1GB";
    double bytes = 48 << 10;

    tap_ok(is_near(run(slow, bytes, true).seconds, bytes / 1e9 + 2 * bytes / 10e9, 0.01),
           "a message is added up once, after it has come");
}

static void test_calls(void)
{
    double once = run("nodes=2,gpus=2", 1 << 20, true).seconds;
    double often = run("nodes=2,gpus=2,calls=10", 1 << 20, true).seconds;

    tap_ok(is_near(often, once, 0.01), "one allreduce after the other: the mean of all");
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
}

/* Each is refused with a text that names the option and what was expected of it. */
static void test_refusals(void)
{
    static const struct {
        const char *text, *named, *expected;
    } cases[] = {
        {"link=10us", "link=10us", "a rate above 0"},
        {"link=0", "link=0", "a rate above 0"},
        {"link=inf", "link=inf", "a rate above 0"},
        {"out=-1GB", "out=-1GB", "or 0"},
        {"latency=nan", "latency=nan", "a time"},
        {"cycle=1e99s", "cycle=1e99s", "a time"},
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
        {"schedule=mpi", "schedule=mpi", "hvd or horovod"},
        {"device=h200", "device=h200", "p100 or v100"},
        {"device=p100-of-another-kind", "device=p100-of", "so long a name"},
        {"model=xx", "model=xx", "resnet50"},
        {"model=", "model=", "resnet50"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct simulate_options options = simulate_defaults(SIMULATE_HVD);
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
    test_turns();
    test_cores();
    test_crossing();
    test_arrival();
    test_calls();
    test_uneven();
    test_options();
    test_refusals();
    return tap_done();
}
