/* SPDX-License-Identifier: Apache-2.0 */
/* Memory registered with NCCL, on the stand-in: by the module, and that the stand-in finds
 * what NCCL leaves undefined. Two devices of this process are two ranks.
 * gpu_register_test MODULE. */
#include <string.h>
#include <time.h>

#include "tests/collectives/gpu/module/module_pass.h"
#include "tests/fake_gpu/fake_cuda.h"
#include "tests/tap.h"

enum {
    RANKS = 2,
    BYTES = 1 << 16,
};

static struct pass passes[RANKS];
static struct hvd_gpu_comm *comms[RANKS];
static struct hvd_gpu_work works[RANKS];

/* A communicator of both, made anew: what has failed is not used again. */
static bool begin(void)
{
    struct hvd_gpu_card card;
    bool good = true;

    for (int i = 0; i < RANKS; i++) {
        passes[i] = (struct pass){0};
        good = good && pass_open(&passes[i]) == 0;
    }
    good =
        good && pass_module->identify(passes[0].device, true, &card, &passes[0].err) == 0;
    for (int i = 0; good && i < RANKS; i++) {
        good = pass_module->comm_create(passes[i].device, card.id, i, RANKS, &comms[i],
                                        &passes[i].err) == 0;
    }
    return good;
}

static void end(void)
{
    for (int i = 0; i < RANKS; i++) {
        pass_close(&passes[i]);
    }
}

/* A step of each rank, at once. Returns whether all are on their streams, and have come to their
 * end, and NCCL says nothing. */
static bool run(struct hvd_gpu_step *steps)
{
    bool good = true;

    for (int i = 0; i < RANKS; i++) {
        works[i] = (struct hvd_gpu_work){.queue = HVD_GPU_COLLECT,
                                         .comm = comms[i],
                                         .steps = &steps[i],
                                         .count = 1,
                                         .done = passes[i].done};
        pass_module->submit(passes[i].device, &works[i]);
    }
    for (int i = 0; i < RANKS; i++) {
        while (atomic_load(&works[i].status) == HVD_INPROGRESS) {
            pass_pause_ms(1);
        }
        good = good && atomic_load(&works[i].status) == 0;
    }
    for (int i = 0; good && i < RANKS; i++) {
        good = pass_await(&passes[i], passes[i].done) == 0;
    }
    for (int i = 0; good && i < RANKS; i++) {
        good = pass_module->comm_check(comms[i], &passes[i].err) == 0;
    }
    return good;
}

/* Registers memory of rank i where gets[i]. */
static bool get(char *memory[RANKS], const bool gets[RANKS])
{
    struct hvd_gpu_step steps[RANKS];
    bool good;

    for (int i = 0; i < RANKS; i++) {
        steps[i] = (struct hvd_gpu_step){
            .kind = gets[i] ? HVD_GPU_REGISTER : HVD_GPU_UNREGISTER, .count = BYTES};
    }
    good = run(steps);
    for (int i = 0; i < RANKS; i++) {
        memory[i] = steps[i].to;
        good = good && (memory[i] != NULL) == gets[i];
    }
    return good;
}

static bool add_up(char *const from[RANKS], char *const to[RANKS])
{
    struct hvd_gpu_step steps[RANKS];

    for (int i = 0; i < RANKS; i++) {
        steps[i] = (struct hvd_gpu_step){.kind = HVD_GPU_ALLREDUCE,
                                         .from = from[i],
                                         .to = to[i],
                                         .count = PASS_COUNT,
                                         .dtype = HVD_FLOAT32,
                                         .op = HVD_SUM,
                                         .factor = 1.0};
    }
    return run(steps);
}

static bool fill(char *to, float value)
{
    for (int i = 0; i < PASS_COUNT; i++) {
        pass_in[i] = value;
    }
    return pass_module->copy(passes[0].device, to, pass_in, PASS_BYTES, NULL,
                             &passes[0].err) == 0 &&
           pass_module->event_record(passes[0].ready, NULL, &passes[0].err) == 0 &&
           pass_await(&passes[0], passes[0].ready) == 0;
}

static bool holds(const char *from, float value)
{
    bool good = pass_module->copy(passes[0].device, pass_out, from, PASS_BYTES, NULL,
                                  &passes[0].err) == 0 &&
                pass_module->event_record(passes[0].ready, NULL, &passes[0].err) == 0 &&
                pass_await(&passes[0], passes[0].ready) == 0;

    for (int i = 0; i < PASS_COUNT && good; i++) {
        good = pass_out[i] == value;
    }
    return good;
}

static void test_use(void)
{
    const bool all[RANKS] = {true, true};
    char *memory[RANKS] = {NULL};
    struct fake_live with, without;
    struct hvd_gpu_step back[RANKS];
    long before = fake_gpu_registered();
    bool good = begin() && get(memory, all);

    tap_ok(good, "memory is registered");
    good = good && fill(memory[0], 3) && fill(memory[1], 4) && add_up(memory, memory);
    tap_ok(good && holds(memory[0], 7) && holds(memory[1], 7) &&
               fake_gpu_registered() - before == RANKS,
           "and NCCL adds up in it");
    fake_gpu_live(&with);
    for (int i = 0; i < RANKS; i++) {
        back[i] = (struct hvd_gpu_step){.kind = HVD_GPU_UNREGISTER, .from = memory[i]};
    }
    good = good && run(back);
    fake_gpu_live(&without);
    tap_ok(good && with.device_memory - without.device_memory == RANKS,
           "it is given back");
    good = good && get(memory, all);
    end();
    tap_ok(good && !pass_has_left(), "or goes with the communicator");
}

/* What the ranks must not do, and hvd does not. */
static void test_rules(void)
{
    const bool all[RANKS] = {true, true}, one[RANKS] = {true, false};
    char *memory[RANKS] = {NULL}, *moved[RANKS], *plain[RANKS];
    bool good = begin() && get(memory, all);

    moved[0] = memory[0];
    moved[1] = memory[1] + 256;
    tap_ok(good && !add_up(moved, moved), "another offset is found");
    end();
    good = begin() && get(memory, one);
    plain[0] = memory[0];
    plain[1] = passes[1].memory;
    tap_ok(good && !add_up(plain, plain),
           "so is a rank that has not registered its memory");
    end();
    good = begin() && get(memory, all);
    for (int i = 0; i < RANKS; i++) {
        plain[i] = passes[i].memory;
    }
    tap_ok(good && !add_up(plain, memory),
           "and an input that is not, with an output that is");
    end();
    tap_ok(!pass_has_left(), "nothing is left of all that");
}

/* Returns whether rank 0's reason, where it gets none, has these words. */
static bool is_told(const char *words)
{
    struct hvd_gpu_step steps[RANKS] = {{.kind = HVD_GPU_REGISTER, .count = BYTES},
                                        {.kind = HVD_GPU_UNREGISTER}};
    bool good = begin() && run(steps) && steps[0].to == NULL &&
                strstr(works[0].error.text, words) != NULL;

    if (!good) {
        tap_note("%s", works[0].error.text);
    }
    end();
    return good && !pass_has_left();
}

static void test_refusal(void)
{
    setenv("FAKE_NCCL_REGISTERS_NOTHING", "1", 1);
    tap_ok(is_told("NCCL_LOCAL_REGISTER=0"), "an NCCL that registers nothing is told");
    unsetenv("FAKE_NCCL_REGISTERS_NOTHING");
    setenv("FAKE_NCCL_VERSION", "21903", 1);
    fake_gpu_fail_in("ncclMemAlloc", 1);
    tap_ok(is_told("ncclMemAlloc failed"), "so is that there is no memory");
    fake_gpu_fail_in("ncclCommRegister", 1);
    tap_ok(is_told("the last error, made up"), "and NCCL's own reason");
    fake_gpu_fail_in(NULL, 0);
}

/* When it cannot be ended as it should: it goes with the communicator. */
static void test_late(const char *function)
{
    const bool all[RANKS] = {true, true};
    char *memory[RANKS] = {NULL};
    struct hvd_gpu_step back[RANKS];
    bool good = begin() && get(memory, all);

    for (int i = 0; i < RANKS; i++) {
        back[i] = (struct hvd_gpu_step){.kind = HVD_GPU_UNREGISTER, .from = memory[i]};
    }
    fake_gpu_fail_in(function, 1);
    good = good && run(back) && fake_gpu_failed() != NULL;
    fake_gpu_fail_in(NULL, 0);
    end();
    tap_ok(good && !pass_has_left(),
           "memory stays when %s fails, until the communicator goes", function);
}

int main(int argc, char **argv)
{
    char seed[16];

    snprintf(seed, sizeof(seed), "%u", tap_seed((unsigned)time(NULL)));
    setenv("FAKE_GPU_SEED", seed, 1);
    setenv("FAKE_GPU_COUNT", "2", 1);
    if (tap_ok(argc == 2 && pass_load(argv[1]), "the module can be loaded")) {
        test_use();
        test_rules();
        test_refusal();
        test_late("ncclCommDeregister");
        test_late("ncclMemFree");
    }
    return tap_done();
}
