/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that a failure keeps its reason, and that each status has a name. */
#include "gpu_binding/base/error.h"

#include <errno.h>
#include <string.h>

#include "tests/tap.h"

static void test_fail(void)
{
    struct hvd_error err = {0};
    int status;

    errno = ENOENT;
    status = hvd_fail(&err, HVD_ERR_SYS, "cannot read %s: %m", "a file");
    tap_ok(status == HVD_ERR_SYS && err.status == HVD_ERR_SYS &&
               strcmp(err.text, "cannot read a file: No such file or directory") == 0,
           "hvd_fail returns the status and writes it with the text");
    tap_ok(errno == ENOENT, "hvd_fail leaves errno alone");
    tap_ok(hvd_fail(NULL, HVD_ERR_ARG, "nowhere") == HVD_ERR_ARG,
           "hvd_fail works without a struct hvd_error");
    hvd_fail(&err, HVD_ERR_ARG, "%1500d", 1);
    tap_ok(strlen(err.text) == sizeof(err.text) - 1, "a text that is too long is cut");
}

static void test_names(void)
{
    const char *unknown = hvd_status_name(HVD_ERR_DISMISSED - 1);

    for (int status = HVD_ERR_DISMISSED; status <= HVD_INPROGRESS; status++) {
        const char *name = hvd_status_name(status);

        tap_ok(strcmp(name, unknown) != 0, "status %d has a name: %s", status, name);
    }
}

int main(void)
{
    test_fail();
    test_names();
    return tap_done();
}
