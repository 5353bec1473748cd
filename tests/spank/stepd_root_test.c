/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the callbacks that slurmstepd calls as root: they use no files, sockets,
 * processes or variables, and hostile texts do no harm. */
#include <sys/wait.h>
#include <unistd.h>

#include "tests/spank/stepd_side.h"
#include "tests/spank/watched_calls.h"
#include "tests/tap.h"

enum {
    HOSTILE_ROUNDS = 20000
};

/* Runs all callbacks of slurmstepd that run as root, with good and bad texts. */
static void test_root_calls(void)
{
    static const char *const texts[] = {NULL, "on,verbose", "off", "rubbish"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct fake_plugin plugin;
        const char *call;

        side_enter_step();
        side_load(&plugin);
        watch_start();
        plugin.init(NULL, 0, NULL);
        fake_registered->cb(fake_registered->val, texts[i], 1);
        plugin.init_post_opt(NULL, 0, NULL);
        plugin.exit(NULL, 0, NULL);
        call = watch_stop();
        tap_ok(call == NULL, "as root no file, socket, process or variable is used (%s)",
               call != NULL ? call : "option text");
        fake_unload(&plugin);
    }
}

/* Watches user_init for the same calls. It must not use hwloc, which would load plugins
 * and read the whole node. */
static void test_user_init(void)
{
    struct fake_plugin plugin;
    const char *call;

    side_enter_step();
    side_start(&plugin, "on");
    watch_start();
    plugin.user_init(NULL, 0, NULL);
    call = watch_stop();
    tap_ok(
        call == NULL,
        "while the real user is root, no file, socket, process or variable is used (%s)",
        call != NULL ? call : "user_init");
    side_finish(&plugin);
}

/* Checks that the watch works: it must see that a task reads files. */
static void test_watch(void)
{
    struct fake_plugin plugin;
    int status = 0;
    pid_t child;

    side_enter_step();
    side_start(&plugin, "on");
    plugin.user_init(NULL, 0, NULL);
    child = fork();
    if (child == 0) {
        watch_start();
        plugin.task_init(NULL, 0, NULL);
        _exit(watch_stop() != NULL ? 0 : 2);
    }
    waitpid(child, &status, 0);
    tap_ok(WIFEXITED(status) && WEXITSTATUS(status) == 0,
           "the watch sees a task read files");
    side_finish(&plugin);
}

/* Feeds random bytes to the root side, in the option and in the variables that a user can
 * set for the step. */
static void test_hostile(unsigned seed)
{
    static const char *const names[] = {"SLURM_STEP_GPUS", "CUDA_VISIBLE_DEVICES",
                                        "SLURM_CPU_BIND_TYPE",
                                        "SLURM_STEP_TASKS_PER_NODE"};
    unsigned state = seed;
    struct fake_plugin plugin;
    char text[6000];

    side_enter_step();
    side_start(&plugin, "on");
    for (int i = 0; i < HOSTILE_ROUNDS; i++) {
        size_t length;

        state = state * 1664525u + 1013904223u;
        length = (state >> 8) % (i % 50 == 0 ? sizeof(text) : 64);
        for (size_t at = 0; at < length; at++) {
            state = state * 1664525u + 1013904223u;
            text[at] = (char)(1 + (state >> 8) % 255);
        }
        text[length] = '\0';
        fake_step_setenv(names[i % 4], text);
        fake_registered->cb(fake_registered->val, text, 1);
        plugin.init_post_opt(NULL, 0, NULL);
    }
    tap_ok(fake_messages[0] == '\0',
           "%d hostile texts as root cause no crash and no message", HOSTILE_ROUNDS);
    plugin.user_init(NULL, 0, NULL);
    side_finish(&plugin);
}

int main(int count, char **arguments)
{
    side_begin(count > 1 ? arguments[1] : "");
    test_root_calls();
    test_user_init();
    test_watch();
    test_hostile(tap_seed(20261121));
    return tap_done();
}
