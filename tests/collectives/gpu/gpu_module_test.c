/* SPDX-License-Identifier: Apache-2.0 */
/* hvd_gpu.so by itself, on the stand-in: gpu_module_test MODULE. */
#include <dlfcn.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "collectives/gpu/gpu_module.h"
#include "tests/fake_gpu/fake_cuda.h"
#include "tests/tap.h"

enum {
    COUNT = 1000,
    BYTES = COUNT * (int)sizeof(float),
    MOST_CALLS = 200,
};

static const struct hvd_gpu_module *module;
static float host_in[COUNT], host_out[COUNT];

static void pause_ms(long ms)
{
    const struct timespec time = {.tv_nsec = ms * 1000000};

    nanosleep(&time, NULL);
}

static void ignore(void *context)
{
    (void)context;
}

/* What one pass has opened. */
struct pass {
    struct hvd_gpu_device *device;
    struct hvd_gpu_comm *comm;
    struct hvd_gpu_event *ready, *done;
    void *memory;
    struct hvd_error err;
};

static int open_all(struct pass *pass)
{
    struct hvd_gpu_card card;
    int status = module->open(0, ignore, NULL, &pass->device, &pass->err);

    status =
        status != 0 ? status : module->identify(pass->device, true, &card, &pass->err);
    status = status != 0 ? status
                         : module->comm_create(pass->device, card.id, 0, 1, &pass->comm,
                                               &pass->err);
    status = status != 0 ? status
                         : module->event_create(pass->device, &pass->ready, &pass->err);
    status = status != 0 ? status
                         : module->event_create(pass->device, &pass->done, &pass->err);
    return status != 0 ? status
                       : module->alloc(pass->device, HVD_GPU_DEVICE_MEMORY, BYTES,
                                       &pass->memory, &pass->err);
}

static int run_work(struct pass *pass, struct hvd_gpu_work *work)
{
    work->done = pass->done;
    module->submit(pass->device, work);
    while (atomic_load(&work->status) == HVD_INPROGRESS) {
        pause_ms(1);
    }
    if (atomic_load(&work->status) != 0) {
        pass->err = work->error;
    }
    return atomic_load(&work->status);
}

static int await_event(struct pass *pass, struct hvd_gpu_event *event)
{
    int status;

    while ((status = module->event_test(event, &pass->err)) == HVD_INPROGRESS) {
        pause_ms(1);
    }
    return status;
}

/* To the device on the default stream, twice the sum on the own one, there and back through a kernel
 * if there are kernels, and back on a third. */
static int go_around(struct pass *pass)
{
    bool has_kernels = module->no_kernels(pass->device) == NULL;
    struct hvd_gpu_step sum[] = {
        {.kind = HVD_GPU_FOLLOW, .event = pass->ready},
        {.kind = HVD_GPU_GROUP},
        {.kind = HVD_GPU_ALLREDUCE,
         .from = pass->memory,
         .to = pass->memory,
         .count = COUNT,
         .dtype = HVD_FLOAT32,
         .op = HVD_SUM,
         .factor = has_kernels ? 4.0 : 2.0},
        {.kind = HVD_GPU_GROUP_END},
        {.kind = HVD_GPU_MOVE,
         .from = pass->memory,
         .to = pass->memory,
         .count = COUNT,
         .dtype = HVD_FLOAT32,
         .to_dtype = HVD_FLOAT32,
         .factor = 0.5},
    };
    struct hvd_gpu_work work = {.queue = HVD_GPU_COLLECT,
                                .comm = pass->comm,
                                .steps = sum,
                                .count = has_kernels ? 5 : 4};
    struct hvd_gpu_step back[] = {
        {.kind = HVD_GPU_FOLLOW, .event = pass->done},
        {.kind = HVD_GPU_COPY, .from = pass->memory, .to = host_out, .count = BYTES}};
    struct hvd_gpu_work copy = {.queue = HVD_GPU_IN, .steps = back, .count = 2};
    int status =
        module->copy(pass->device, pass->memory, host_in, BYTES, NULL, &pass->err);

    status = status != 0 ? status : module->event_record(pass->ready, NULL, &pass->err);
    status = status != 0 ? status : run_work(pass, &work);
    /* The same event again: what follows it means the place it was recorded at last. */
    status = status != 0 ? status : run_work(pass, &copy);
    status = status != 0 ? status : await_event(pass, pass->done);
    return status != 0 ? status : module->comm_check(pass->comm, &pass->err);
}

static void close_all(struct pass *pass)
{
    if (pass->device == NULL) {
        return;
    }
    module->stop(pass->device, 5000);
    if (pass->memory != NULL) {
        module->free(pass->device, HVD_GPU_DEVICE_MEMORY, pass->memory);
    }
    module->event_destroy(pass->ready);
    module->close(pass->device);
    module->event_destroy(pass->done); /* events may outlive it */
}

static bool is_twice(void)
{
    for (int i = 0; i < COUNT; i++) {
        if (host_out[i] != 2 * host_in[i]) {
            tap_note("element %d is %g, not %g", i, (double)host_out[i],
                     2 * (double)host_in[i]);
            return false;
        }
    }
    return true;
}

static bool has_left(void)
{
    struct fake_live live;

    fake_gpu_live(&live);
    return fake_live_sum(&live) != 0;
}

static void test_order(void)
{
    bool good = true;

    for (int i = 0; i < 100 && good; i++) {
        struct pass pass = {0};

        memset(host_out, 0, sizeof(host_out));
        host_in[i] += 1.0f;
        good = open_all(&pass) == 0 && go_around(&pass) == 0 && is_twice();
        close_all(&pass);
    }
    tap_ok(good, "work waits for the events that it follows");
    tap_ok(!has_left(), "and nothing is left");
}

/* Two bytes out of every three, each a step. */
static void test_launches(void)
{
    enum {
        STEPS = 300
    };
    struct hvd_gpu_step steps[STEPS];
    struct hvd_gpu_work work = {.queue = HVD_GPU_COLLECT, .steps = steps, .count = STEPS};
    struct pass pass = {0};
    long before;
    bool good = open_all(&pass) == 0;

    for (int i = 0; i < STEPS; i++) {
        steps[i] = (struct hvd_gpu_step){.kind = HVD_GPU_MOVE,
                                         .from = (char *)pass.memory + 3 * i,
                                         .to = (char *)pass.memory + 2000 + 2 * i,
                                         .count = 2,
                                         .factor = 1.0};
    }
    before = fake_gpu_launches();
    good = good && run_work(&pass, &work) == 0 && await_event(&pass, pass.done) == 0;
    tap_ok(good && fake_gpu_launches() - before == (STEPS + 143) / 144,
           "%d pieces are %ld launches", STEPS, fake_gpu_launches() - before);
    close_all(&pass);
}

/* The k-th call fails, for each k. What is left then, where ending it was what failed? */
static void test_faults(void)
{
    bool named = true, kept = true;
    long k = 0;
    const char *failed;

    do {
        struct pass pass = {0};
        int status;

        fake_gpu_fail_at(++k);
        status = open_all(&pass);
        status = status != 0 ? status : go_around(&pass);
        failed = fake_gpu_failed();
        if (failed != NULL && fake_gpu_failed_kernels()) {
            named = named && status == 0 &&
                    strstr(module->no_kernels(pass.device), failed) != NULL;
        } else if (failed != NULL && !fake_gpu_failed_at_end() &&
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
        close_all(&pass);
        kept = kept && !has_left();
    } while (failed != NULL && k < MOST_CALLS);
    tap_note("%ld calls", k);
    tap_ok(named && k > 20 && k < MOST_CALLS,
           "each call that fails is named, with NCCL's own words, and nothing waits");
    tap_ok(kept, "and nothing is left");
}

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool follow_each_other(const struct hvd_gpu_span *spans, int count,
                              int64_t begin_ns, int64_t end_ns)
{
    const int64_t slack_ns = 500000000; /* a loaded machine; an older anchor is worse */

    for (int i = 0; i < count; i++) {
        if (spans[i].begin_ns < begin_ns - slack_ns ||
            spans[i].end_ns > end_ns + slack_ns || spans[i].end_ns < spans[i].begin_ns ||
            (i > 0 && spans[i].kind != HVD_GPU_AWAITS &&
             spans[i].begin_ns != spans[i - 1].end_ns)) {
            tap_note("span %d: %" PRId64 " us to %" PRId64 " us of %" PRId64 " us", i,
                     (spans[i].begin_ns - begin_ns) / 1000,
                     (spans[i].end_ns - begin_ns) / 1000, (end_ns - begin_ns) / 1000);
            return false;
        }
    }
    return true;
}

/* One work with a timing. Returns how many spans there are. */
static int measure(struct pass *pass, struct hvd_gpu_span *spans)
{
    struct hvd_gpu_step steps[] = {
        {.kind = HVD_GPU_FOLLOW, .event = pass->ready},
        {.kind = HVD_GPU_COPY, .from = pass->memory, .to = pass->memory, .count = BYTES},
        {.kind = HVD_GPU_GROUP},
        {.kind = HVD_GPU_BROADCAST,
         .from = pass->memory,
         .to = pass->memory,
         .count = BYTES,
         .dtype = HVD_UINT8},
        {.kind = HVD_GPU_GROUP_END},
        {.kind = HVD_GPU_ZERO, .to = pass->memory, .count = BYTES},
    };
    struct hvd_gpu_work work = {
        .queue = HVD_GPU_COLLECT, .comm = pass->comm, .steps = steps, .count = 6};
    struct hvd_gpu_timing *timing = NULL;
    int count = 0;

    if (module->timing_create(pass->device, &timing, &pass->err) == 0) {
        work.timing = timing;
        count = run_work(pass, &work) == 0 && await_event(pass, pass->done) == 0
                    ? module->timing_read(timing, spans)
                    : 0;
        module->timing_destroy(timing);
    }
    return count;
}

static void test_times(void)
{
    static const enum hvd_gpu_span_kind kinds[] = {
        HVD_GPU_CONNECTS, HVD_GPU_AWAITS, HVD_GPU_MOVES, HVD_GPU_COLLECTS, HVD_GPU_MOVES};
    struct hvd_gpu_span spans[HVD_GPU_MOST_SPANS] = {{0}};
    struct pass pass = {0};
    int64_t begin_ns = now_ns();
    bool good = open_all(&pass) == 0 && measure(&pass, spans) == 5;

    for (int i = 0; i < 5 && good; i++) {
        good = spans[i].kind == kinds[i];
    }
    tap_ok(good && spans[3].step == HVD_GPU_BROADCAST, "a work says what it did");
    tap_ok(good && follow_each_other(spans, 5, begin_ns, now_ns()),
           "and when, by the host's clock, though the device has another");
    pause_ms(999);
    pause_ms(101);
    begin_ns = now_ns();
    tap_ok(measure(&pass, spans) == 4 && follow_each_other(spans, 4, begin_ns, now_ns()),
           "also later, though that clock drifts");
    close_all(&pass);
    tap_ok(!has_left(), "and nothing is left");
}

/* What measuring needs fails: the work does not. */
static void test_times_missing(void)
{
    bool good = true;
    int missing = 0;

    for (long k = 1; k < 30; k++) {
        struct hvd_gpu_span spans[HVD_GPU_MOST_SPANS];
        struct pass pass = {0};
        const char *failed;
        int count;

        good = good && open_all(&pass) == 0 && go_around(&pass) == 0;
        fake_gpu_fail_at(k);
        count = measure(&pass, spans);
        failed = fake_gpu_failed();
        fake_gpu_fail_at(0);
        missing += count == 0;
        if (failed != NULL && strcmp(failed, "cuEventElapsedTime") == 0) {
            good = good && count == 0 && pass.err.text[0] == '\0';
        }
        close_all(&pass);
    }
    tap_ok(good && missing > 5, "what cannot be measured runs all the same (%d times)",
           missing);
    tap_ok(!has_left(), "and nothing is left");
}

/* The other rank never comes: abort ends what waits for it. */
static void test_give_up(void)
{
    struct pass pass = {0};
    struct hvd_gpu_card card;
    struct hvd_gpu_step sum = {.kind = HVD_GPU_BROADCAST, .dtype = HVD_UINT8};
    struct hvd_gpu_work work = {.queue = HVD_GPU_COLLECT, .steps = &sum, .count = 1};
    bool good =
        open_all(&pass) == 0 &&
        module->identify(pass.device, true, &card, &pass.err) == 0 &&
        module->comm_create(pass.device, card.id, 0, 2, &work.comm, &pass.err) == 0;

    work.done = pass.done;
    if (tap_ok(good, "a communicator of two ranks is made by one")) {
        module->submit(pass.device, &work);
        pause_ms(50);
        tap_ok(atomic_load(&work.status) == HVD_INPROGRESS, "it waits for the other one");
        module->abort(pass.device);
        tap_ok(module->stop(pass.device, 5000), "until abort, then the launcher stops");
        tap_ok(atomic_load(&work.status) == HVD_ERR_STATE,
               "and says that the job has ended");
    }
    close_all(&pass);
    tap_ok(!has_left(), "and nothing is left");
}

static int version(void)
{
    const char *text = getenv("FAKE_NCCL_VERSION");

    return text != NULL ? atoi(text) : 21803;
}

static bool facts_have_kernels(void)
{
    struct hvd_gpu_facts facts;

    module->probe(NULL, &facts);
    return facts.has_kernels;
}

static void test_facts(void)
{
    struct hvd_gpu_facts facts;
    struct hvd_gpu_device *device = NULL;
    struct hvd_error err = {0};

    module->probe(NULL, &facts);
    tap_ok(facts.cuda.version == 12040 && facts.nccl.version == version(),
           "versions are told");
    tap_ok(strstr(facts.cuda.file, "libcuda.so.1") != NULL &&
               strstr(facts.nccl.file, "libnccl.so.2") != NULL,
           "and from which files");
    tap_ok(module->count(&err) == 1, "so is the number of devices");
    tap_ok(facts.kernels[0] != '\0', "kernels: %s", facts.kernels);
    tap_ok(module->open(7, ignore, NULL, &device, &err) == HVD_ERR_ARG &&
               strstr(err.text, "no GPU 7: this process sees 1") != NULL,
           "a device that is not there is named");
}

static bool load(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW);

    module = handle != NULL ? dlsym(handle, HVD_GPU_MODULE_SYMBOL) : NULL;
    if (module == NULL) {
        tap_note("%s", dlerror());
    }
    return module != NULL;
}

int main(int argc, char **argv)
{
    char seed[16];

    snprintf(seed, sizeof(seed), "%u", tap_seed((unsigned)time(NULL)));
    setenv("FAKE_GPU_SEED", seed, 1);
    setenv("FAKE_GPU_DRIFT", "1000000", 1); /* twice as fast */
    for (int i = 0; i < COUNT; i++) {
        host_in[i] = (float)i;
    }
    if (tap_ok(argc == 2 && load(argv[1]), "the module can be loaded")) {
        test_facts();
        test_order();
        if (getenv("FAKE_GPU_KERNELS") == NULL && facts_have_kernels()) {
            test_launches();
        }
        test_faults();
        test_times();
        test_times_missing();
        if (version() >= 21400) { /* before, NCCL does not let go */
            test_give_up();
        }
    }
    return tap_done();
}
