/* SPDX-License-Identifier: Apache-2.0 */
/* Tests numbers in Slurm's texts. */
#include "spank/slurm_numbers.h"

#include "tests/tap.h"

static void test_number(void)
{
    tap_ok(hvd_spank_number_of("1") == 1 && hvd_spank_number_of("100000") == 100000,
           "numbers from 1 to 100,000 are read");
    tap_ok(hvd_spank_number_of("0") == 0 && hvd_spank_number_of("100001") == 0 &&
               hvd_spank_number_of("-1") == 0 && hvd_spank_number_of(" 1") == 0 &&
               hvd_spank_number_of("1x") == 0 && hvd_spank_number_of("") == 0,
           "any other text is 0");
}

static void test_least(void)
{
    tap_ok(hvd_spank_count_least("4") == 4, "the least number of one node is its own");
    tap_ok(hvd_spank_count_least("7,1") == 1, "the least of two numbers is found");
    tap_ok(hvd_spank_count_least("8(x3),2(x2),16") == 2,
           "the least number of runs of nodes is found");
    tap_ok(hvd_spank_count_least(NULL) == 0, "an unset variable gives 0");
    tap_ok(hvd_spank_count_least("") == 0, "an empty text gives 0");
    tap_ok(hvd_spank_count_least("4,") == 0 && hvd_spank_count_least("4(x") == 0 &&
               hvd_spank_count_least("-4") == 0 && hvd_spank_count_least("4(x2)3") == 0 &&
               hvd_spank_count_least("99999999999999999999") == 0,
           "a malformed text gives 0");
}

static void test_gpu_count(void)
{
    static const struct {
        const char *text;
        int count;
    } cases[] = {
        {"4", 4},          {"a100:4", 4}, {"gpu:4", 4},       {"gres:gpu:4", 4},
        {"gpu:a100:2", 2}, {"gpu", 1},    {"gres:gpu", 1},    {"gpu:2(S:0-1)", 2},
        {"none", 0},       {"", 0},       {"gpu:2,nic:1", 0}, {"gpu:4294967297", 0},
        {"gpu:-2", 0},     {"gpu:2x", 0}, {"tmpdisk", 0},     {"gpu:", 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tap_ok(hvd_spank_gres_count(cases[i].text) == cases[i].count, "\"%s\" is %d GPUs",
               cases[i].text, cases[i].count);
    }
}

int main(void)
{
    test_number();
    test_least();
    test_gpu_count();
    return tap_done();
}
