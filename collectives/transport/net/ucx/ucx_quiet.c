/* SPDX-License-Identifier: Apache-2.0 */
/* Undoes changes that UCX makes to the user's process. */
#include "collectives/transport/net/ucx/ucx_quiet.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <ucs/debug/debug.h>
#include <ucs/debug/log_def.h>

#include "gpu_binding/base/env.h"
#include "gpu_binding/base/attr.h"

static const void *library_of(const void *code)
{
    Dl_info info;

    return code != NULL && dladdr(code, &info) != 0 ? info.dli_fbase : NULL;
}

void hvd_ucx_restore_signals(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    const void *ucs = library_of((const void *)(uintptr_t)ucs_debug_disable_signal);

    if (getenv(HVD_ENV_UCX_HANDLE_ERRORS) != NULL || ucs == NULL) {
        return;
    }
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        struct sigaction now;

        if (sigaction(signals[i], NULL, &now) == 0 &&
            library_of((const void *)(uintptr_t)now.sa_sigaction) == ucs) {
            ucs_debug_disable_signal(signals[i]);
        }
    }
}

static void (*log_line)(const char *line);

HVD_PRINTF(6, 0)
static ucs_log_func_rc_t take_line(const char *file, unsigned line, const char *function,
                                   ucs_log_level_t level,
                                   const ucs_log_component_config_t *component,
                                   const char *format, va_list args)
{
    char text[512];

    (void)file;
    (void)line;
    (void)function;
    (void)component;
    if (level == UCS_LOG_LEVEL_FATAL) {
        return UCS_LOG_FUNC_RC_CONTINUE;
    }
    vsnprintf(text, sizeof(text), format, args);
    log_line(text);
    return UCS_LOG_FUNC_RC_STOP;
}

void hvd_ucx_quiet(void (*log)(const char *line))
{
    log_line = log;
    if (getenv(HVD_ENV_UCX_LOG_LEVEL) == NULL) {
        ucs_log_push_handler(take_line);
    }
}

void hvd_ucx_loud(void)
{
    if (getenv(HVD_ENV_UCX_LOG_LEVEL) == NULL) {
        ucs_log_pop_handler();
    }
}
