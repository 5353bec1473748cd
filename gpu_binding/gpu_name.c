/* SPDX-License-Identifier: Apache-2.0 */
/* Shortens the names of GPUs for people. */
#include "gpu_binding/gpu_name.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Families, which are left out: the model that follows says more. */
static const char *const families[] = {"NVIDIA", "Tesla", "GeForce", "Quadro"};

static size_t word_length(const char *at)
{
    return strcspn(at, " -]");
}

static const char *next_word(const char *at)
{
    at += word_length(at);
    return at + strspn(at, " -");
}

static bool is_family(const char *at)
{
    for (unsigned i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        size_t length = strlen(families[i]);

        if (word_length(at) == length && strncmp(at, families[i], length) == 0) {
            return true;
        }
    }
    return false;
}

/* Takes the first word, such as "V100" of "V100-SXM2-32GB". A word without digits, such
 * as "GTX" or "TITAN", needs the next word, too. */
void hvd_gpu_short_model(const char *name, char *text, size_t size)
{
    const char *bracket = strchr(name, '[');
    const char *at = bracket != NULL ? bracket + 1 : name;

    while (is_family(at) && word_length(next_word(at)) > 0) {
        at = next_word(at);
    }
    int length = (int)word_length(at);
    if (strcspn(at, "0123456789") >= (size_t)length) {
        const char *second = next_word(at);

        if (word_length(second) > 0) {
            length = (int)(second - at + (long)word_length(second));
        }
    }
    snprintf(text, size, "%.*s", length, at);
}

void hvd_gpu_short_bus(const char *bus, char *text, size_t size)
{
    static const char domain[] = "0000:";
    size_t length = strlen(bus);

    if (length >= 2 && strcmp(bus + length - 2, ".0") == 0) {
        length -= 2;
    }
    if (strncmp(bus, domain, sizeof(domain) - 1) == 0) {
        bus += sizeof(domain) - 1;
        length -= sizeof(domain) - 1;
    }
    snprintf(text, size, "%.*s", (int)length, bus);
}
