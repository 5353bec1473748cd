/* SPDX-License-Identifier: Apache-2.0 */
/* What is said about errors of CUDA and NCCL, beyond their own words. */
#include <string.h>

#include "collectives/gpu/module/hints.h"
#include "tests/tap.h"

static bool says(const char *hint, const char *word)
{
    if (strstr(hint, word) == NULL) {
        tap_note("'%s' has no '%s'", hint, word);
        return false;
    }
    return true;
}

static void test_cuda(void)
{
    tap_ok(says(hvd_cuda_hint(2), "memory is full"), "a full GPU is told");
    tap_ok(says(hvd_cuda_hint(3), "fork"), "so is a fork");
    tap_ok(says(hvd_cuda_hint(100), "CUDA_VISIBLE_DEVICES"), "no device");
    tap_ok(says(hvd_cuda_hint(802), "fabricmanager"), "a node without its service");
    tap_ok(says(hvd_cuda_hint(700), "earlier kernel") &&
               says(hvd_cuda_hint(719), "compute-sanitizer"),
           "what a kernel did");
    tap_ok(hvd_cuda_hint(1)[0] == '\0', "where nothing is known, nothing is said");
}

static void test_nccl(void)
{
    tap_ok(says(hvd_nccl_hint(5, "Duplicate GPU detected : rank 1 and rank 0"),
                "NCCL_HOSTID"),
           "ranks that share a GPU are told what helps");
    tap_ok(says(hvd_nccl_hint(1, "Cuda failure 2 'out of memory'"), "memory is full"),
           "NCCL's words go before its number");
    tap_ok(says(hvd_nccl_hint(2, "Error while creating shared memory segment "
                                 "/dev/shm/nccl-x (size 33030528)"),
                "--shm-size"),
           "no room in /dev/shm");
    tap_ok(says(hvd_nccl_hint(2, "Call to ibv_reg_mr failed with error Cannot allocate "
                                 "memory"),
                "ulimit -l"),
           "a identity that refuses");
    tap_ok(says(hvd_nccl_hint(2, ""), "NCCL_SOCKET_IFNAME"), "by its number alone");
    tap_ok(says(hvd_nccl_hint(6, ""), "another rank died"), "a rank that died");
    tap_ok(says(hvd_nccl_hint(3, ""), "NCCL_DEBUG=WARN"), "and where to look for more");
}

int main(void)
{
    test_cuda();
    test_nccl();
    return tap_done();
}
