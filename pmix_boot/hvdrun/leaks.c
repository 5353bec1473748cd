/* SPDX-License-Identifier: Apache-2.0 */
/* Only in builds with AddressSanitizer: libpmix 4.2.2 keeps 220 bytes of a server that it has
 * finalized, and 5 KiB of each client that has come and gone; not for hvdrun to free. */
#include "gpu_binding/base/attr.h"

/* The hooks by which LeakSanitizer asks a program what not to count, and what not to say. */
HVD_EXPORT const char *__lsan_default_suppressions(void);
HVD_EXPORT const char *__lsan_default_options(void);

const char *__lsan_default_suppressions(void)
{
    return "leak:libpmix.so";
}

const char *__lsan_default_options(void)
{
    return "print_suppressions=0";
}
