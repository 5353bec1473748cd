/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the hints in errors of CUDA and NCCL. */
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
    tap_ok(says(hvd_cuda_hint(2), "memory is full"),
           "out of memory: the hint says that the GPU's memory is full");
    tap_ok(says(hvd_cuda_hint(3), "fork"), "CUDA after a fork: the hint names the fork");
    tap_ok(says(hvd_cuda_hint(100), "CUDA_VISIBLE_DEVICES"),
           "no device: the hint names CUDA_VISIBLE_DEVICES");
    tap_ok(says(hvd_cuda_hint(802), "fabricmanager"),
           "no fabric manager: the hint names it");
    tap_ok(says(hvd_cuda_hint(700), "earlier kernel") &&
               says(hvd_cuda_hint(719), "compute-sanitizer"),
           "errors of kernels: the hint names compute-sanitizer");
    tap_ok(hvd_cuda_hint(1)[0] == '\0', "other errors of CUDA have no hint");
}

static void test_nccl(void)
{
    tap_ok(says(hvd_nccl_hint(5, "Duplicate GPU detected : rank 1 and rank 0"),
                "NCCL_HOSTID"),
           "ranks that share a GPU: the hint names NCCL_HOSTID");
    tap_ok(
        says(hvd_nccl_hint(5, "Multiple Ranks are using the same GPU/Partition. Set X"),
             "NCCL_MULTI_RANK_GPU_ENABLE=1 on all ranks") &&
            says(hvd_nccl_hint(5, "Multiple ranks detected using the same GPU on"),
                 "NCCL_MULTI_RANK_GPU_ENABLE=1 on all ranks"),
        "the same from NCCL 2.30 on: the hint names the variable that allows it");
    tap_ok(says(hvd_nccl_hint(1, "Cuda failure 2 'out of memory'"), "memory is full"),
           "the text of NCCL's error comes before its number");
    tap_ok(says(hvd_nccl_hint(2, "Error while creating shared memory segment "
                                 "/dev/shm/nccl-x (size 33030528)"),
                "--shm-size"),
           "/dev/shm is full: the hint names --shm-size");
    tap_ok(says(hvd_nccl_hint(2, "Call to ibv_reg_mr failed with error Cannot allocate "
                                 "memory"),
                "ulimit -l"),
           "a network card refuses memory: the hint names ulimit -l");
    tap_ok(says(hvd_nccl_hint(2, ""), "NCCL_SOCKET_IFNAME"),
           "an error without text has a hint, too");
    tap_ok(says(hvd_nccl_hint(6, ""), "another rank died"),
           "remote error: the hint says that another rank died");
    tap_ok(says(hvd_nccl_hint(3, ""), "NCCL_DEBUG=WARN"),
           "other errors of NCCL: the hint names NCCL_DEBUG=WARN");
}

int main(void)
{
    test_cuda();
    test_nccl();
    return tap_done();
}
