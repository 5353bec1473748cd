/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a GPU is reused only when the last stream that uses it is done with it.
 * gpu_pool_test MODULE, on the stand-in. */
#include "collectives/gpu/gpu_pool.h"

#include <dlfcn.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "tests/collectives/gpu/gpu_memory.h"
#include "tests/fake_gpu/fake_cuda.h"
#include "tests/tap.h"

enum {
    BYTES = 100000,
    COUNT = BYTES / (int)sizeof(int),
};

static const struct hvd_gpu_module *module;
static struct hvd_gpu_device *device;
static struct hvd_gpu_pool *pool;
static void *stream, *other;
static sem_t gate; /* a stream waits for it */
static int values[COUNT];
static atomic_bool is_stuck; /* a stream waits until it is false */

static void ignore(void *context)
{
    (void)context;
}

static void stand(void *argument)
{
    sem_wait(argument);
}

/* Gives up after 60 s, for a caller that waits for the stream although it must not. */
static void stand_stuck(void *argument)
{
    const struct timespec moment = {.tv_nsec = 1000000};

    for (int left_ms = 60000; atomic_load(&is_stuck) && left_ms > 0; left_ms--) {
        nanosleep(&moment, NULL);
    }
    atomic_store(&is_stuck, false);
    (void)argument;
}

static void close_gate(void *at)
{
    fake_gpu_enqueue(at, stand, &gate);
}

static void open_gate(void *at)
{
    sem_post(&gate);
    gpu_finish(at);
}

static void must(bool good, const char *what)
{
    if (!good) {
        tap_ok(false, "%s", what);
        exit(1);
    }
}

static struct hvd_gpu_buffer *take(enum hvd_gpu_memory_kind memory_kind, size_t bytes)
{
    struct hvd_gpu_buffer *room = NULL;
    struct hvd_error err = {0};

    must(hvd_gpu_buffer_take(pool, memory_kind, bytes, &room, &err) == 0, err.text);
    return room;
}

static void use(struct hvd_gpu_buffer *room, void *on)
{
    struct hvd_error err = {0};

    must(hvd_gpu_buffer_used(room, on, &err) == 0, err.text);
}

static void drop(struct hvd_gpu_buffer *room)
{
    hvd_refcount_drop(&room->refcount);
}

/* Whether a new buffer of this size gets this memory. */
static bool is_given_again(const char *memory, enum hvd_gpu_memory_kind memory_kind)
{
    struct hvd_gpu_buffer *next = take(memory_kind, BYTES);
    bool is_same = next->memory == memory;

    drop(next);
    return is_same;
}

static struct fake_live live(void)
{
    struct fake_live now;

    fake_gpu_live(&now);
    return now;
}

static void test_reuse(enum hvd_gpu_memory_kind memory_kind, const char *what)
{
    struct hvd_gpu_buffer *room = take(memory_kind, BYTES);
    char *memory = room->memory;

    drop(room);
    tap_ok(is_given_again(memory, memory_kind), "%s that was returned is reused", what);
    room = take(memory_kind, BYTES);
    close_gate(stream);
    use(room, stream);
    drop(room);
    tap_ok(!is_given_again(memory, memory_kind),
           "memory is not reused while a stream uses it");
    open_gate(stream);
    room = take(memory_kind, BYTES); /* either of the two buffers that are free now */
    tap_ok(room->memory == memory || is_given_again(memory, memory_kind),
           "memory is reused when the stream is done");
    drop(room);
}

/* A buffer stays in use until its last use ends, even if that is on another stream. */
static void test_last_use(void)
{
    struct hvd_gpu_buffer *room = take(HVD_GPU_DEVICE_MEMORY, BYTES);
    char *memory = room->memory;
    bool was_busy;

    use(room, other);
    gpu_finish(other);
    close_gate(stream);
    use(room, stream);
    drop(room);
    was_busy = !is_given_again(memory, HVD_GPU_DEVICE_MEMORY);
    open_gate(stream);
    tap_ok(was_busy,
           "memory used by several streams is not reused before the last use ends");
}

/* Two streams use the buffer; the use that was recorded first takes longer. */
static void test_both_uses(void)
{
    struct hvd_gpu_buffer *room = take(HVD_GPU_DEVICE_MEMORY, BYTES);
    const char *memory = room->memory;
    struct timespec moment = {.tv_nsec = 20000000};
    bool was_busy;

    close_gate(stream);
    use(room, stream);
    use(room, other);
    nanosleep(&moment, NULL);
    drop(room);
    was_busy = !is_given_again(memory, HVD_GPU_DEVICE_MEMORY);
    open_gate(stream);
    gpu_finish(other);
    tap_ok(was_busy, "memory in use by two streams is not reused before both are done");
}

/* A buffer is dropped and taken again while a copy from it is under way, as by
 * hvd_request_copy. The copy must not get the bytes that the new owner writes. */
static void test_data(char *copies)
{
    bool good = true;

    close_gate(other);
    for (int turn = 1; turn <= 2; turn++) {
        struct hvd_gpu_buffer *room = take(HVD_GPU_DEVICE_MEMORY, BYTES);

        for (int i = 0; i < COUNT; i++) {
            values[i] = turn;
        }
        gpu_copy(room->memory, values, BYTES, stream);
        gpu_finish(stream);
        if (turn == 1) {
            gpu_copy(copies, room->memory, BYTES, other);
            use(room, other);
        }
        drop(room);
    }
    open_gate(other);
    gpu_copy(values, copies, BYTES, other);
    gpu_finish(other);
    for (int i = 0; i < COUNT; i++) {
        good &= values[i] == 1;
    }
    tap_ok(good, "a late copy gets the data from before the reuse");
}

static void test_steady(void)
{
    int before = live().device_memory;

    for (int i = 0; i < 100; i++) {
        struct hvd_gpu_buffer *room = take(HVD_GPU_DEVICE_MEMORY, BYTES - i);

        use(room, stream);
        drop(room);
        gpu_finish(stream);
    }
    tap_ok(live().device_memory == before, "repeated use allocates no more memory");
}

static bool is_near(size_t bytes, enum hvd_gpu_memory_kind memory_kind)
{
    struct hvd_gpu_buffer *room = NULL;
    struct hvd_error err = {0};
    bool is_there;

    must(hvd_gpu_buffer_take_near(pool, bytes, &room, &err) == 0, err.text);
    is_there = room->memory_kind == memory_kind && room->bytes >= bytes;
    drop(room);
    return is_there;
}

/* Whether unused memory is freed for a new buffer, late if the machine is busy. */
static bool is_freed_for(size_t bytes)
{
    struct hvd_gpu_buffer *room = NULL;
    int status = hvd_gpu_buffer_take(pool, HVD_GPU_DEVICE_MEMORY, bytes, &room, NULL);

    if (status != 0 && module->await_retired(device, 60000)) {
        status = hvd_gpu_buffer_take(pool, HVD_GPU_DEVICE_MEMORY, bytes, &room, NULL);
    }
    hvd_gpu_buffer_drop(room);
    return status == 0;
}

/* The device has no free memory but a large buffer, which is in use at first and then
 * unused. */
static void test_full(void)
{
    struct hvd_gpu_buffer *large = take(HVD_GPU_DEVICE_MEMORY, 100 * BYTES), *room = NULL;
    struct hvd_error err = {0};

    fake_gpu_limit(1, 1);
    tap_ok(
        hvd_gpu_buffer_take(pool, HVD_GPU_DEVICE_MEMORY, 20 * BYTES, &room, &err) < 0 &&
            strstr(err.text, "the GPU's memory is full: hvd needs 2000000 bytes, but ") !=
                NULL,
        "the error for a full device names the size: %s", err.text);
    use(large, stream);
    drop(large);
    gpu_finish(stream);
    tap_ok(is_freed_for(20 * BYTES), "unused memory is freed for a new buffer");
    tap_ok(hvd_gpu_buffer_take_near(pool, 400 * BYTES, &room, &err) < 0 &&
               strstr(err.text, "not enough pinned host memory either") != NULL,
           "device and host are full: %s", err.text);
    fake_gpu_limit(1, 0);
    tap_ok(is_near(400 * BYTES, HVD_GPU_HOST_MEMORY),
           "pinned host memory is used instead of device memory");
    fake_gpu_limit(0, 0);
    tap_ok(is_near(400 * BYTES, HVD_GPU_DEVICE_MEMORY),
           "device memory is used again when there is some");
}

/* Memory is short, and the device has work that does not end, as if it waited for a rank
 * that has died: freeing unused memory would wait for it. */
static void test_stuck(void)
{
    struct hvd_gpu_buffer *unused[] = {take(HVD_GPU_DEVICE_MEMORY, 50 * BYTES),
                                       take(HVD_GPU_DEVICE_MEMORY, 50 * BYTES)};
    bool is_there = true;

    atomic_store(&is_stuck, true);
    fake_gpu_enqueue(other, stand_stuck, NULL);
    fake_gpu_limit(1, 0);
    for (int i = 0; i < 2 && is_there; i++) { /* waits only once */
        drop(unused[i]);
        is_there = is_near(100 * BYTES, HVD_GPU_HOST_MEMORY);
    }
    tap_ok(is_there && atomic_load(&is_stuck),
           "if memory cannot be freed because the device is stuck, the caller goes on");
    atomic_store(&is_stuck, false);
    gpu_finish(other);
    tap_ok(is_freed_for(40 * BYTES), "it is freed later");
    fake_gpu_limit(0, 0);
}

static void stand_long(void *argument)
{
    const struct timespec pause = {.tv_sec = 4};

    nanosleep(&pause, NULL);
    (void)argument;
}

/* Memory is short, and the device has work for longer than callers with a substitute
 * wait. */
static void test_busy(void)
{
    struct hvd_gpu_buffer *unused[] = {take(HVD_GPU_DEVICE_MEMORY, 50 * BYTES),
                                       take(HVD_GPU_DEVICE_MEMORY, 50 * BYTES)};
    struct hvd_gpu_buffer *room = NULL;

    fake_gpu_enqueue(other, stand_long, NULL);
    fake_gpu_limit(1, 0);
    drop(unused[0]);
    drop(unused[1]);
    tap_ok(hvd_gpu_buffer_take(pool, HVD_GPU_DEVICE_MEMORY, 80 * BYTES, &room, NULL) == 0,
           "a caller without a substitute waits while the device works");
    hvd_gpu_buffer_drop(room);
    fake_gpu_limit(0, 0);
}

/* Makes the k-th call fail, for each k. The error names the failed function, and the
 * caller still owns the buffer. */
static void test_faults(void)
{
    bool named = true;
    long k = 0;
    const char *failed;

    do {
        struct hvd_gpu_buffer *room = take(HVD_GPU_DEVICE_MEMORY, 8 * BYTES);
        struct hvd_error err = {0};
        int status;

        fake_gpu_fail_at(++k);
        status = hvd_gpu_buffer_used(room, stream, &err);
        failed = fake_gpu_failed();
        named = named && (failed == NULL || fake_gpu_failed_at_end() ||
                          fake_gpu_failed_dispensable() ||
                          (status < 0 && strstr(err.text, failed) != NULL));
        fake_gpu_fail_at(0);
        drop(room);
        gpu_finish(stream);
    } while (failed != NULL && k < 20);
    tap_note("%ld calls", k);
    tap_ok(named && k > 1 && k < 20, "the error names the failed call");
}

static bool load(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW);

    module = handle != NULL ? dlsym(handle, HVD_GPU_MODULE_SYMBOL) : NULL;
    return module != NULL;
}

int main(int argc, char **argv)
{
    const struct hvd_gpu_opening opening = {.wake = ignore};
    struct hvd_error err = {0};
    struct fake_live before, after;
    char *copies;

    must(argc == 2 && load(argv[1]) && gpu_open(), "there is a module and a GPU");
    sem_init(&gate, 0, 0);
    stream = gpu_stream();
    other = gpu_stream();
    copies = gpu_memory(BYTES);
    before = live();
    must(module->open(&opening, &device, &err) == 0, err.text);
    must(hvd_gpu_pool_create(module, device, &pool, &err) == 0, err.text);
    test_reuse(HVD_GPU_DEVICE_MEMORY, "device memory");
    test_reuse(HVD_GPU_HOST_MEMORY, "pinned host memory");
    test_last_use();
    test_both_uses();
    test_data(copies);
    test_steady();
    test_full();
    test_stuck();
    test_busy();
    test_faults();
    module->stop(device, 5000);
    hvd_refcount_drop(&pool->refcount);
    after = live();
    tap_ok(memcmp(&before, &after, sizeof(before)) == 0, "no object is left");
    return tap_done();
}
