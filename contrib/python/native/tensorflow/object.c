/* SPDX-License-Identifier: Apache-2.0 */
/* Reads C++ objects of TensorFlow. */
#include "contrib/python/native/tensorflow/object.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    MOST_NAME = 64,
    /* How many words of each object to search. The pointer to the parameters is word 2 of
     * the context in TensorFlow 2.12 to 2.15 and word 3 in 2.21; the pointer to the
     * device is word 6 or 5 of the parameters. */
    CONTEXT_WORDS = 6,
    PARAMETER_WORDS = 10,
};

static bool read_memory(const void *address, void *to, size_t bytes)
{
    struct iovec local = {.iov_base = to, .iov_len = bytes};
    struct iovec remote = {.iov_base = (void *)address, .iov_len = bytes};

    return address != NULL &&
           process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)bytes;
}

/* Reads the word at this index as a pointer. Returns NULL if it cannot be read. */
static void *word_at(const void *address, int index)
{
    const uintptr_t at = (uintptr_t)address + (uintptr_t)(index * (int)sizeof(void *));
    void *word = NULL;

    return address != NULL && read_memory((const void *)at, &word, sizeof(word)) ? word
                                                                                 : NULL;
}

bool hvd_tf_object_is(const void *address, const char *type)
{
    const void *table = word_at(address, 0);
    const void *information = table == NULL ? NULL : word_at(table, -1);
    size_t bytes = strlen(type) + 1;
    char name[MOST_NAME];

    return information != NULL && bytes <= sizeof(name) &&
           read_memory(word_at(information, 1), name, bytes) &&
           memcmp(name, type, bytes) == 0;
}

/* Reads the device at the given place, which is i * PARAMETER_WORDS + j: word i of the
 * context points to the parameters, and word j of the parameters points to the device.
 * Returns NULL if there is no object of this type. */
static void *device_at(const void *context, int place, const char *type)
{
    const void *parameters = word_at(context, place / PARAMETER_WORDS);
    void *device = word_at(parameters, place % PARAMETER_WORDS);

    return hvd_tf_object_is(device, type) ? device : NULL;
}

void *hvd_tf_object_device(const struct TF_OpKernelContext *context, const char *type)
{
    /* the device's place, the same in all contexts of one version of TensorFlow */
    static _Atomic int known;
    void *device = device_at(context, atomic_load(&known), type);

    for (int place = 0; device == NULL && place < CONTEXT_WORDS * PARAMETER_WORDS;
         place++) {
        device = device_at(context, place, type);
        if (device != NULL) {
            atomic_store(&known, place);
        }
    }
    return device;
}
