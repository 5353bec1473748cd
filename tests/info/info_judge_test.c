/* SPDX-License-Identifier: Apache-2.0 */
/* Tests which pairs hvd-info --check measures, and which it blames. */
#include "contrib/info/check/judge.h"

#include <math.h>
#include <string.h>

#include "contrib/info/check/pairs.h"
#include "tests/tap.h"

enum {
    MOST = 9,
    NODES = 4
};

/* Returns whether both members of each pair agree, no pair is in two rounds, and each
 * member has a partner if there are two members. */
static bool are_pairs_sound(int count)
{
    int met[MOST][MOST] = {0};
    bool is_sound = true;

    for (int me = 0; me < count; me++) {
        int partners = 0;

        for (int round = 0; round < HVD_INFO_ROUNDS; round++) {
            int other = hvd_info_pairs_partner(me, count, round);

            if (other >= 0) {
                is_sound = is_sound && other < count && other != me && !met[me][other] &&
                           hvd_info_pairs_partner(other, count, round) == me;
                met[me][other] = 1;
                partners++;
            }
        }
        is_sound = is_sound && (count == 1 || partners > 0);
    }
    return is_sound;
}

static void test_pairs(void)
{
    for (int count = 1; count <= MOST; count++) {
        tap_ok(are_pairs_sound(count), "%d members form pairs", count);
    }
}

/* The numbers of four nodes with a rank each, with 10 GB/s on each link. */
static void fill_values(double values[NODES][HVD_INFO_VALUES])
{
    for (int node = 0; node < NODES; node++) {
        for (int i = 0; i < HVD_INFO_VALUES; i++) {
            values[node][i] = NAN;
        }
        values[node][HVD_INFO_CORES] = 8;
        for (int round = 0; round < HVD_INFO_ROUNDS; round++) {
            values[node][HVD_INFO_LINK_GBS + round] = 10;
        }
    }
}

static void test_judge(void)
{
    const char *const hosts[] = {"n1", "n2", "n3", "n4"};
    const char *const texts[] = {
        "cpu governor: fast\nUCX: 1\n", "cpu governor: fast\nUCX: 2\n",
        "cpu governor: fast\nUCX: 1\n", "cpu governor: slow\nUCX: 1\n"};
    static const struct hvd_info_thresholds thresholds = {
        .count = 2,
        .items = {{"cpus", {1, true}, {NAN, false}}, {"link", {0.7, true}, {0.3, true}}}};
    double values[NODES][HVD_INFO_VALUES];
    struct hvd_info_findings findings = {0};
    struct hvd_info_nodes nodes = {0};

    fill_values(values);
    values[1][HVD_INFO_CORES] = 4;
    values[2][HVD_INFO_LINK_GBS] = 1;
    hvd_info_nodes_init(&nodes, hosts, NODES, NULL);
    tap_ok(hvd_info_judge(&nodes, values[0], texts, &thresholds, &findings, NULL) == 0 &&
               findings.count == 2,
           "two checks have a finding each");
    tap_ok(findings.items[0].level == HVD_INFO_YELLOW &&
               strcmp(findings.items[0].nodes, "n2") == 0,
           "a node with fewer cpus is a warning: %s", findings.items[0].nodes);
    tap_ok(findings.items[1].level == HVD_INFO_RED &&
               strcmp(findings.items[1].nodes, "n3 to n4") == 0 &&
               findings.items[1].median == 10,
           "a slow link is a fault: %s", findings.items[1].nodes);
    hvd_info_findings_finish(&findings);
    hvd_info_judge_texts(&nodes, texts, &findings, NULL);
    tap_ok(findings.count == 2 && strcmp(findings.items[0].nodes, "n4") == 0 &&
               strcmp(findings.items[0].check, "cpu governor") == 0,
           "a node with another governor is a warning");
    tap_ok(findings.count == 2 && strcmp(findings.items[1].nodes, "n2") == 0 &&
               strcmp(findings.items[1].check, "UCX") == 0,
           "a node with another fact is a warning");
    hvd_info_findings_finish(&findings);
    hvd_info_nodes_finish(&nodes);
}

/* Four ranks with GPUs of these models, all of which reach 20 GB/s. */
static void test_nvlink(void)
{
    const char *const hosts[] = {"n1", "n1", "n1", "n1"};
    const char *const texts[] = {"GPU model: NVIDIA A100-SXM4-40GB\n",
                                 "GPU model: NVIDIA A100-PCIE-40GB\n",
                                 "GPU model: NVIDIA H100 80GB HBM3\n", "kernel: 6\n"};
    static const struct hvd_info_thresholds thresholds = {
        .count = 3,
        .items = {{"gpu_pair_NVIDIA_A", {1, false}, {NAN, false}},
                  {"gpu_pair_NVIDIA_A100-SXM", {150, false}, {30, false}},
                  {"gpu_pair_NVIDIA_H100_80GB", {200, false}, {NAN, false}}}};
    double values[NODES][HVD_INFO_VALUES];
    struct hvd_info_findings findings = {0};
    struct hvd_info_nodes nodes = {0};

    for (int rank = 0; rank < NODES; rank++) {
        for (int i = 0; i < HVD_INFO_VALUES; i++) {
            values[rank][i] = i == HVD_INFO_GPU_PAIR_GBS ? 20 : NAN;
        }
    }
    hvd_info_nodes_init(&nodes, hosts, NODES, NULL);
    tap_ok(hvd_info_judge(&nodes, values[0], texts, &thresholds, &findings, NULL) == 0 &&
               findings.count == 2,
           "GPUs are compared with the limits of their own model");
    tap_ok(findings.items[0].level == HVD_INFO_RED && findings.items[0].limit == 30 &&
               strcmp(findings.items[0].nodes, "n1 (rank 0)") == 0,
           "the longest name that matches a model counts: %s", findings.items[0].nodes);
    tap_ok(findings.items[1].level == HVD_INFO_YELLOW && findings.items[1].limit == 200 &&
               strcmp(findings.items[1].nodes, "n1 (rank 2)") == 0,
           "_ stands for a space: %s", findings.items[1].nodes);
    hvd_info_findings_finish(&findings);
    hvd_info_nodes_finish(&nodes);
}

/* Checks the links with some rates of 1 GB/s instead of 10. Returns the findings that are
 * not green, such as "n1 to n2; n3; ". */
static const char *judge_links(const int slow[NODES][HVD_INFO_ROUNDS])
{
    static const struct hvd_info_thresholds thresholds = {
        .count = 1, .items = {{"link", {7, false}, {3, false}}}};
    static char text[200];
    const char *const hosts[] = {"n1", "n2", "n3", "n4"};
    double values[NODES][HVD_INFO_VALUES];
    struct hvd_info_findings findings = {0};
    struct hvd_info_nodes nodes = {0};

    fill_values(values);
    for (int node = 0; node < NODES; node++) {
        for (int round = 0; round < HVD_INFO_ROUNDS; round++) {
            if (slow[node][round]) {
                values[node][HVD_INFO_LINK_GBS + round] = slow[node][round];
            }
        }
    }
    hvd_info_nodes_init(&nodes, hosts, NODES, NULL);
    hvd_info_judge(&nodes, values[0], NULL, &thresholds, &findings, NULL);
    text[0] = '\0';
    for (int i = 0; i < findings.count; i++) {
        if (findings.items[i].level != HVD_INFO_GREEN) {
            strcat(strcat(text, findings.items[i].nodes), "; ");
        }
    }
    hvd_info_findings_finish(&findings);
    hvd_info_nodes_finish(&nodes);
    return text;
}

/* In round 0 the pairs are n1-n2 and n3-n4; in round 1 n2-n3; in round 2 n1-n3, n2-n4. */
static void test_links(void)
{
    const int sends[NODES][HVD_INFO_ROUNDS] = {{0}, {1, 5, 1}};
    const int receives[NODES][HVD_INFO_ROUNDS] = {{1, 0, 0}, {0}, {0, 1, 0}, {0, 0, 1}};
    const int both[NODES][HVD_INFO_ROUNDS] = {{1, 0, 0}, {1, 1, 1}, {0, 1, 0}, {0, 0, 1}};
    const int some[NODES][HVD_INFO_ROUNDS] = {{0}, {1, 1, 0}};

    tap_ok(strcmp(judge_links(sends), "n2 to all others; ") == 0,
           "a node that sends slowly to all is one finding: %s", judge_links(sends));
    tap_ok(strcmp(judge_links(receives), "all others to n2; ") == 0,
           "a node that receives slowly from all is one finding: %s",
           judge_links(receives));
    tap_ok(strcmp(judge_links(both), "n2; ") == 0,
           "a node with slow links in both directions is one finding: %s",
           judge_links(both));
    tap_ok(strcmp(judge_links(some), "n2 to n1; n2 to n3; ") == 0,
           "if one of its links is good, the others are a finding each: %s",
           judge_links(some));
}

int main(void)
{
    test_pairs();
    test_links();
    test_judge();
    test_nvlink();
    return tap_done();
}
