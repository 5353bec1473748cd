/* SPDX-License-Identifier: Apache-2.0 */
/* Tests how a task asks the rendezvous service for rank 0's address, by a program that it
 * runs. Each failure of the program gives a reason. */
#include "spank/service_question.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/tap.h"

static char directory[] = "/tmp/hvd-test-XXXXXX";
static char program[sizeof(directory) + sizeof("/program")];

static void write_program(const char *lines)
{
    FILE *file = fopen(program, "w");

    if (file == NULL || fprintf(file, "#!/bin/sh\n%s\n", lines) < 0 ||
        fclose(file) != 0 || chmod(program, 0700) != 0) {
        printf("Bail out! cannot write %s\n", program);
        exit(1);
    }
}

static int ask(char place[HVD_SPANK_ADDRESS_BYTES], struct hvd_error *err)
{
    const struct hvd_spank_service_question question = {
        .program = program, .service = "here:1:key", .rank = 3, .timeout_ms = 2000};

    *err = (struct hvd_error){0};
    return hvd_spank_service_question_ask(&question, place, err);
}

static void test_reason(const char *lines, const char *reason)
{
    char place[HVD_SPANK_ADDRESS_BYTES] = "";
    struct hvd_error err;

    write_program(lines);
    if (!tap_ok(ask(place, &err) < 0 && strstr(err.text, reason) != NULL &&
                    place[0] == '\0',
                "the error says '%s'", reason)) {
        tap_note("'%s', '%s'", err.text, place);
    }
}

static void test_answers(void)
{
    char place[HVD_SPANK_ADDRESS_BYTES] = "";
    struct hvd_error err;

    write_program("echo at 10.0.0.1 4711");
    tap_ok(ask(place, &err) == 0 && strcmp(place, "10.0.0.1 4711") == 0,
           "a task learns rank 0's address");
    write_program("echo \"at $1 $2 $3 $HVD_RENDEZVOUS\"");
    tap_ok(ask(place, &err) == 0 && strcmp(place, "post 3 10.0.0.1 4711 here:1:key") == 0,
           "rank 0 publishes its address through the service of the step");
}

/* Leaves descriptors open, as slurmstepd does. */
static void test_descriptors(void)
{
    char place[HVD_SPANK_ADDRESS_BYTES] = "";
    struct hvd_error err;
    int low = open("/dev/null", O_RDONLY);
    int high = fcntl(low, F_DUPFD, 500);

    write_program("for fd in 3 4 5 6 7 500; do\n"
                  "    [ ! -e /proc/$$/fd/$fd ] || found=\"$found "
                  "$(readlink /proc/$$/fd/$fd)\"\ndone\necho \"at${found:- nothing}\"");
    /* The shell itself has the script open, on descriptor 10 or higher. */
    if (!tap_ok(ask(place, &err) == 0 && strcmp(place, "nothing") == 0,
                "the program inherits no descriptor of the process that starts it")) {
        tap_note("'%s', '%s'", err.text, place);
    }
    close(low);
    close(high);
}

static void test_no_program(void)
{
    char place[HVD_SPANK_ADDRESS_BYTES] = "";
    struct hvd_error err;

    tap_ok(ask(place, &err) < 0 &&
               strstr(err.text, "cannot start /tmp/hvd-test-") != NULL &&
               strstr(err.text, "No such file") != NULL,
           "the error names the program that cannot be started, and the reason");
}

int main(void)
{
    if (mkdtemp(directory) == NULL) {
        printf("Bail out! no directory\n");
        return 1;
    }
    snprintf(program, sizeof(program), "%s/program", directory);
    test_answers();
    test_descriptors();
    test_reason("echo no rank 0 has not told its address within 10 s",
                "rank 0 has not told");
    test_reason("exit 1", "ended without an answer");
    test_reason("kill -KILL $$", "was ended by signal 9 (Killed); if Slurm is ending the "
                                 "step, see its other messages");
    test_reason("kill -TERM $$", "was ended by signal 15 (Terminated); ");
    test_reason("exec sleep 60", "did not answer within 2 s");
    test_reason("echo 10.0.0.1 4711", "answered '10.0.0.1 4711'");
    unlink(program);
    test_no_program();
    rmdir(directory);
    return tap_done();
}
