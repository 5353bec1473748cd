/* SPDX-License-Identifier: Apache-2.0 */
/* A table: which texts of --hvd the rules of a site allow, and what they add. */
#include "spank/site_rules.h"

#include <string.h>

#include "gpu_binding/plan.h"
#include "tests/tap.h"

struct rules_case {
    const char *forbid;
    const char *fix;
    const char *text; /* after --hvd= */
    const char *refusal; /* a part of the error; NULL: the text is allowed */
};

static const struct rules_case cases[] = {
    {"", "", "elastic,report=f,bind=none", NULL},
    {"elastic,report", "", "elastic", "does not allow elastic (forbid= in its plugstack"},
    {"elastic,report", "", "verbose,report", "does not allow report"},
    {"elastic,report", "", "report=file", "does not allow report"},
    {"nccl", "", "nccl=/x", "does not allow nccl"},
    {"", "nccl=/scratch/nccl", "nccl=/x", "has set nccl=/scratch/nccl"},
    {"elastic,report", "", "verbose,bind=cores", NULL},
    {"elastic,report", "", NULL, NULL},
    {"elastic,report", "", "(null)", NULL},
    {"timeline", "", "timeline-ranks=all", NULL},
    {"bind=none", "", "bind=none", "does not allow bind=none"},
    {"bind=none", "", "bind=cores", NULL},
    {"bind", "", "bind=cores", "does not allow bind"},
    {"off", "", "off", "does not allow off"},
    {"", "bind=cores,verbose", "bind=none",
     "has set bind=cores for all users (fix= in its plugstack.conf): leave out bind"},
    {"", "bind=cores,verbose", "bind=cores", NULL},
    {"", "bind=cores,verbose", "bind=core", NULL},
    {"", "bind=core", "bind=cores", NULL},
    {"bind=cores", "", "bind=core", "does not allow bind=cores"},
    {"bind=core", "", "bind=cores", "does not allow bind=cores"},
    {"", "bind=cores,verbose", "on", NULL},
    {"", "report=/var/log/hvd", "report", "has set report=/var/log/hvd"},
    {"metrics", "", "metrics=/home/me", "does not allow metrics"},
    {"", "metrics=/var/lib/hvd", "verbose", NULL},
    {"", "metrics=/var/lib/hvd", "metrics=/home/me", "has set metrics=/var/lib/hvd"},
    {"bind", "bind=cores", "verbose", NULL},
    {"", "tasks=node", "elastic",
     "tasks=node does not work with elastic, which needs one task for each rank: use "
     "torchrun --max-restarts instead; this site has set tasks=node"},
};

static void test_case(const struct rules_case *expected)
{
    struct hvd_spank_site_rules rules;
    struct hvd_spank_options options;
    struct hvd_error err = {0};
    int status;
    bool passed;

    snprintf(rules.forbid, sizeof(rules.forbid), "%s", expected->forbid);
    snprintf(rules.fix, sizeof(rules.fix), "%s", expected->fix);
    hvd_spank_options_parse(expected->text, &options, NULL);
    status = hvd_spank_site_rules_apply(&rules, expected->text, &options, &err);
    passed = status == (expected->refusal != NULL ? HVD_ERR_ARG : 0);
    if (passed && status != 0) {
        passed = strstr(err.text, expected->refusal) != NULL;
    }
    if (!tap_ok(passed, "forbid=%s fix=%s: --hvd=%s is %s", expected->forbid,
                expected->fix, expected->text != NULL ? expected->text : "",
                expected->refusal != NULL ? "refused" : "allowed")) {
        tap_note("status %d, text: %s", status, err.text);
    }
}

static void test_fixed(void)
{
    const struct hvd_spank_site_rules rules = {.fix = "bind=cores,verbose"};
    struct hvd_spank_options options;

    hvd_spank_options_parse("gpus=keep", &options, NULL);
    tap_ok(hvd_spank_site_rules_apply(&rules, "gpus=keep", &options, NULL) == 0 &&
               options.bind == HVD_BIND_CORES && options.is_verbose &&
               options.keep_gpus && options.is_on,
           "fixed words are added to those of the user");
    hvd_spank_options_parse("off", &options, NULL);
    tap_ok(hvd_spank_site_rules_apply(&rules, "off", &options, NULL) == 0 &&
               !options.is_on,
           "fixed words do not switch hvd on");
}

int main(void)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        test_case(&cases[i]);
    }
    test_fixed();
    return tap_done();
}
