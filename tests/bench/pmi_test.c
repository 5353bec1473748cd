/* SPDX-License-Identifier: Apache-2.0 */
/* What a process of MPICH is told. */
#include "contrib/bench/hvd_bench/library_child/pmi.h"

#include <string.h>

#include "tests/tap.h"

static char answer[BENCH_PMI_LINE];

static bool says(struct bench_pmi *pmi, const char *line, const char *expected)
{
    return bench_pmi_answer(pmi, line, answer) == BENCH_PMI_SENDER &&
           strcmp(answer, expected) == 0;
}

static void layouts(void)
{
    static const char *const wrong[] = {"", "0", "2,", "two", "2;2", "-1"};
    struct bench_pmi *pmi = bench_pmi_create("2,1");

    tap_ok(pmi != NULL && bench_pmi_size(pmi) == 3,
           "a layout has all ranks of its nodes");
    tap_ok(says(pmi, "cmd=get kvsname=hvd-bench key=PMI_process_mapping",
                "cmd=get_result rc=0 msg=success value=(vector,(0,1,2),(1,1,1))"),
           "who shares a node is told");
    bench_pmi_destroy(pmi);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        tap_ok(bench_pmi_create(wrong[i]) == NULL, "\"%s\" is no layout", wrong[i]);
    }
}

static void values(void)
{
    struct bench_pmi *pmi = bench_pmi_create("2");

    tap_ok(says(pmi, "cmd=init pmi_version=1 pmi_subversion=1",
                "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"),
           "the version is agreed");
    tap_ok(says(pmi, "cmd=get kvsname=hvd-bench key=card-1",
                "cmd=get_result rc=-1 msg=not_found value=none"),
           "what nobody has put is not there");
    tap_ok(says(pmi, "cmd=put kvsname=hvd-bench key=card-1 value=a=b#c",
                "cmd=put_result rc=0 msg=success"),
           "a value is taken");
    tap_ok(says(pmi, "cmd=get kvsname=hvd-bench key=card-1",
                "cmd=get_result rc=0 msg=success value=a=b#c"),
           "and given as it was");
    says(pmi, "cmd=put kvsname=hvd-bench key=card-1 value=later", "");
    tap_ok(says(pmi, "cmd=get kvsname=hvd-bench key=card-1",
                "cmd=get_result rc=0 msg=success value=later"),
           "the later value of a key counts");
    tap_ok(says(pmi, "cmd=spawn nprocs=1", "cmd=spawn rc=-1 msg=unknown"),
           "what is not served is refused");
    bench_pmi_destroy(pmi);
}

static void barriers(void)
{
    struct bench_pmi *pmi = bench_pmi_create("1,1");

    for (int round = 0; round < 2; round++) {
        tap_ok(bench_pmi_answer(pmi, "cmd=barrier_in", answer) == BENCH_PMI_NOBODY,
               "the first in the barrier waits");
        tap_ok(bench_pmi_answer(pmi, "cmd=barrier_in", answer) == BENCH_PMI_ALL &&
                   strcmp(answer, "cmd=barrier_out rc=0") == 0,
               "the last one frees all");
    }
    bench_pmi_destroy(pmi);
}

int main(void)
{
    layouts();
    values();
    barriers();
    return tap_done();
}
