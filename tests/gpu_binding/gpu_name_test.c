/* SPDX-License-Identifier: Apache-2.0 */
/* Tests gpu_name.h with names from the PCI database and the driver. */
#include "gpu_binding/gpu_name.h"

#include <string.h>

#include "tests/tap.h"

static void is_called(const char *name, const char *expected)
{
    char text[24];

    hvd_gpu_short_model(name, text, sizeof(text));
    tap_ok(strcmp(text, expected) == 0, "'%s' is called '%s', not '%s'", name, expected,
           text);
}

static void is_at(const char *bus, const char *expected)
{
    char text[24];

    hvd_gpu_short_bus(bus, text, sizeof(text));
    tap_ok(strcmp(text, expected) == 0, "%s is at %s, not %s", bus, expected, text);
}

int main(void)
{
    char small[4];

    is_called("GV100GL [Tesla V100 SXM2 32GB]", "V100");
    is_called("Tesla V100-SXM2-32GB", "V100");
    is_called("GP100GL [Tesla P100 PCIe 16GB]", "P100");
    is_called("TU104GL [Tesla T4]", "T4");
    is_called("NVIDIA A100-SXM4-80GB", "A100");
    is_called("NVIDIA H100 80GB HBM3", "H100");
    is_called("GH100 [H100 SXM5 80GB]", "H100");
    is_called("GP104 [GeForce GTX 1070]", "GTX 1070");
    is_called("NVIDIA GeForce RTX 3090", "RTX 3090");
    is_called("Quadro RTX 6000/8000", "RTX 6000/8000");
    is_called("NVIDIA TITAN V", "TITAN V");
    is_called("TITAN ", "TITAN");
    is_called("NVIDIA", "NVIDIA");
    is_called("Tesla [", "");
    is_called("", "");
    hvd_gpu_short_model("NVIDIA GeForce RTX 3090", small, sizeof(small));
    tap_ok(strcmp(small, "RTX") == 0, "name_is_cut_to_size");
    is_at("0000:18:00.0", "18:00");
    is_at("0004:04:00.0", "0004:04:00");
    is_at("0000:03:00.1", "03:00.1");
    is_at("10000:01:00.0", "10000:01:00");
    is_at("", "");
    return tap_done();
}
