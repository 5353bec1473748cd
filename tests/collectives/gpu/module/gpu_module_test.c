/* SPDX-License-Identifier: Apache-2.0 */
/* Tests hvd_gpu.so by itself, on the stand-in: gpu_module_test MODULE. */
#include <string.h>
#include <time.h>

#include "tests/collectives/gpu/module/module_pass.h"
#include "tests/fake_gpu/fake_cuda.h"
#include "tests/tap.h"

enum {
    MOST_CALLS = 200
};

static void test_order(void)
{
    bool good = true;

    for (int i = 0; i < 100 && good; i++) {
        struct pass pass = {0};

        memset(pass_out, 0, sizeof(pass_out));
        pass_in[i] += 1.0f;
        good = pass_open(&pass) == 0 && pass_go_around(&pass) == 0 && pass_is_twice();
        pass_close(&pass);
    }
    tap_ok(good, "work waits for the events that it follows");
    tap_ok(!pass_has_left(), "no object is left");
}

/* Counts launches: 300 pieces of two bytes, with gaps between them, need few. */
static void test_launches(void)
{
    enum {
        STEPS = 300
    };
    struct hvd_gpu_step steps[STEPS];
    struct hvd_gpu_work work = {.queue = HVD_GPU_COLLECT, .steps = steps, .count = STEPS};
    struct pass pass = {0};
    long before;
    bool good = pass_open(&pass) == 0;

    for (int i = 0; i < STEPS; i++) {
        steps[i] = (struct hvd_gpu_step){.kind = HVD_GPU_MOVE,
                                         .from = (char *)pass.memory + 3 * i,
                                         .to = (char *)pass.memory + 2000 + 2 * i,
                                         .count = 2,
                                         .factor = 1.0};
    }
    before = fake_gpu_launches();
    good = good && pass_run(&pass, &work) == 0 && pass_await(&pass, pass.done) == 0;
    tap_ok(good && fake_gpu_launches() - before == (STEPS + 143) / 144,
           "%d pieces are %ld launches", STEPS, fake_gpu_launches() - before);
    pass_close(&pass);
}

/* Whether the failure may cause no error. This is so if the call ends an object, if it
 * allocates the flag of the kernel that poisons results (then they are not poisoned), or
 * if the launcher asks NCCL for errors (a later check returns the error). */
static bool may_go_unsaid(const char *failed, int status)
{
    return fake_gpu_failed_at_end() ||
           (status == 0 && (strcmp(failed, "cuMemHostAlloc") == 0 ||
                            strcmp(failed, "ncclCommGetAsyncError") == 0));
}

/* Makes the k-th call fail, for each k. No object may be left, even if the failed call
 * was to release it. */
static void test_faults(void)
{
    bool named = true, kept = true;
    long k = 0;
    const char *failed;

    do {
        struct pass pass = {0};
        int status;

        fake_gpu_fail_at(++k);
        status = pass_open(&pass);
        if (status == 0) {
            status = pass_go_around(&pass);
        }
        failed = fake_gpu_failed();
        if (failed != NULL && fake_gpu_failed_kernels()) {
            named = named && status == 0 &&
                    strstr(pass_module->no_kernels(pass.device), failed) != NULL;
        } else if (failed != NULL && !may_go_unsaid(failed, status) &&
                   (status >= 0 || strstr(pass.err.text, failed) == NULL)) {
            tap_note("call %ld, %s: %d %s", k, failed, status, pass.err.text);
            named = false;
        }
        if (failed != NULL && strncmp(failed, "nccl", 4) == 0 && status < 0 &&
            strstr(pass.err.text, "the last error, made up") == NULL) {
            tap_note("%s: %s", failed, pass.err.text);
            named = false;
        }
        fake_gpu_fail_at(0);
        pass_close(&pass);
        kept = kept && !pass_has_left();
    } while (failed != NULL && k < MOST_CALLS);
    tap_note("%ld calls", k);
    tap_ok(named && k > 20 && k < MOST_CALLS,
           "the error names the failed call, with NCCL's own text, and nothing hangs");
    tap_ok(kept, "no object is left");
}

/* Work that follows failed work must not run: its input is missing, and other ranks would
 * take its output for a result. */
static void test_after_failure(void)
{
    struct pass pass = {0};
    struct hvd_error first;
    int status = pass_open(&pass);

    if (status == 0) {
        fake_gpu_fail_in("ncclAllReduce", 1);
        status = pass_go_around(&pass);
        fake_gpu_fail_at(0);
    }
    first = pass.err;
    pass.err = (struct hvd_error){0};
    tap_ok(status < 0 && pass_go_around(&pass) == status &&
               strcmp(pass.err.text, first.text) == 0,
           "work behind a failed one fails with the same error: %s", first.text);
    pass_close(&pass);
}

/* One of two ranks connects and waits for the other, which never comes. An abort ends
 * this wait; `fails`: the call of NCCL that aborts fails. */
static void test_give_up(bool fails)
{
    struct pass pass = {0};
    struct hvd_gpu_identity identity;
    struct hvd_gpu_step sum = {.kind = HVD_GPU_BROADCAST, .dtype = HVD_UINT8};
    struct hvd_gpu_work work = {.queue = HVD_GPU_COLLECT, .steps = &sum, .count = 1};
    bool good = pass_open(&pass) == 0 &&
                pass_module->identify(pass.device, true, &identity, &pass.err) == 0 &&
                pass_module->comm_create(pass.device, identity.id, 0, 2, &work.comm,
                                         &pass.err) == 0;

    work.done = pass.done;
    if (tap_ok(good, "one of two ranks creates a communicator")) {
        pass_module->submit(pass.device, &work);
        pass_pause_ms(50);
        tap_ok(atomic_load(&work.status) == HVD_INPROGRESS,
               "connecting waits for the other rank");
        fake_gpu_fail_in("ncclCommAbort", fails ? 1 : 0);
        pass_module->abort(pass.device);
        tap_ok(pass_module->stop(pass.device, 60000),
               "the launcher stops after an abort");
        tap_ok(atomic_load(&work.status) == HVD_ERR_STATE,
               "the work reports that the job has ended");
    }
    tap_ok((fake_gpu_failed() != NULL) == fails, "the abort of NCCL %s",
           fails ? "fails" : "succeeds");
    fake_gpu_fail_at(0);
    pass_close(&pass);
    tap_ok(!pass_has_left(), "no object is left");
}

static bool has_comm(void)
{
    struct fake_live live;

    fake_gpu_live(&live);
    return live.comms != 0;
}

/* Waits until the communicator is gone or a call has failed. After a failure, the
 * communicator may live as long as the device. */
static bool goes(void)
{
    long left_ms = 60000;

    while (has_comm() && fake_gpu_failed() == NULL && left_ms-- > 0) {
        pass_pause_ms(1);
    }
    return !has_comm() || fake_gpu_failed() != NULL;
}

/* Destroys a communicator before its device: at first no call fails, then the k-th call
 * fails, for each k. */
static void test_leave(void)
{
    bool good = true, kept = true, failed = true;
    long k = 0;

    for (; failed && k < MOST_CALLS; k++) {
        struct pass pass = {0};

        good = good && pass_open(&pass) == 0 && pass_go_around(&pass) == 0;
        fake_gpu_fail_at(k);
        pass_module->comm_destroy(pass.comm);
        good = good && goes();
        failed = k == 0 || fake_gpu_failed() != NULL;
        fake_gpu_fail_at(0);
        pass_close(&pass);
        kept = kept && !pass_has_left();
    }
    tap_note("%ld calls", k);
    tap_ok(good && k > 3 && k < MOST_CALLS, "a communicator can end before its device");
    tap_ok(kept, "no object is left, even if a call fails meanwhile");
}

static int version(void)
{
    const char *text = getenv("FAKE_NCCL_VERSION");

    return text != NULL ? atoi(text) : 21803;
}

/* This must be the first test: once known, the versions are not asked for again. */
static void test_unknown_version(void)
{
    struct hvd_gpu_facts facts;

    fake_gpu_fail_in("ncclGetVersion", 1);
    pass_module->probe(NULL, &facts);
    tap_ok(strstr(facts.nccl.problem, "ncclGetVersion returned") != NULL,
           "an NCCL of unknown version is not used");
    fake_gpu_fail_in("cuDriverGetVersion", 1);
    pass_module->probe(NULL, &facts);
    fake_gpu_fail_at(0);
}

static enum hvd_gpu_link link_when(const char *failing,
                                   const struct hvd_gpu_identity *cards)
{
    enum hvd_gpu_link found;

    fake_gpu_fail_in(failing, failing != NULL ? 1 : 0);
    found = pass_module->link(cards[0].uuid, cards[1].uuid);
    fake_gpu_fail_at(0);
    return found;
}

static void test_links(void)
{
    static const char *const functions[] = {"cuDeviceGetCount", "cuDeviceGet",
                                            "cuDeviceGetUuid", "cuDeviceCanAccessPeer"};
    struct hvd_gpu_identity cards[2];
    bool good = true, unknown = true;

    setenv("FAKE_GPU_COUNT", "2", 1);
    setenv("FAKE_GPU_P2P", "0-1:nvlink", 1);
    for (int i = 0; i < 2 && good; i++) {
        struct pass pass = {0};

        good = pass_open_device(&pass, i) == 0 &&
               pass_module->identify(pass.device, false, &cards[i], &pass.err) == 0;
        pass_module->stop(pass.device, 60000);
        pass_module->close(pass.device);
    }
    tap_ok(good && link_when(NULL, cards) == HVD_GPU_LINK_NVLINK,
           "two GPUs are linked by NVLink");
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        unknown &= link_when(functions[i], cards) == HVD_GPU_LINK_UNKNOWN;
    }
    tap_ok(unknown, "the link is unknown if CUDA fails to answer");
    tap_ok(link_when("cuDeviceGetP2PAttribute", cards) == HVD_GPU_LINK_PCIE,
           "the link counts as PCIe if only the P2P attribute is missing");
    unsetenv("FAKE_GPU_P2P");
    unsetenv("FAKE_GPU_COUNT");
}

static bool facts_have_kernels(void)
{
    struct hvd_gpu_facts facts;

    pass_module->probe(NULL, &facts);
    return facts.has_kernels;
}

static void test_facts(void)
{
    struct hvd_gpu_facts facts;
    struct pass pass = {0};

    pass_module->probe(NULL, &facts);
    tap_ok(facts.cuda.version == 12040 && facts.nccl.version == version(),
           "the versions of CUDA and NCCL are reported");
    tap_ok(strstr(facts.cuda.file, "libcuda.so.1") != NULL &&
               strstr(facts.nccl.file, "libnccl.so.2") != NULL,
           "the files they were loaded from are reported");
    tap_ok(pass_module->count(&pass.err) == 1, "the number of devices is reported");
    tap_ok(facts.kernels[0] != '\0', "kernels: %s", facts.kernels);
    tap_ok(pass_open_device(&pass, 7) == HVD_ERR_ARG &&
               strstr(pass.err.text, "no GPU 7: this process sees 1") != NULL,
           "the error names a device that does not exist");
}

int main(int argc, char **argv)
{
    char seed[16];

    snprintf(seed, sizeof(seed), "%u", tap_seed((unsigned)time(NULL)));
    setenv("FAKE_GPU_SEED", seed, 1);
    for (int i = 0; i < PASS_COUNT; i++) {
        pass_in[i] = (float)i;
    }
    if (tap_ok(argc == 2 && pass_load(argv[1]), "the module can be loaded")) {
        test_unknown_version();
        test_facts();
        test_links();
        test_order();
        if (getenv("FAKE_GPU_KERNELS") == NULL && facts_have_kernels()) {
            test_launches();
        }
        test_faults();
        test_after_failure();
        test_leave();
        /* NCCL before 2.14 cannot be aborted while it connects */
        if (version() >= 21400) {
            test_give_up(false);
            test_give_up(true);
        }
    }
    return tap_done();
}
