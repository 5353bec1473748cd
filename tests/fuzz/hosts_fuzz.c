/* SPDX-License-Identifier: Apache-2.0 */
/* The hosts of hvdrun: the values of -H, hostfiles, the output of a discovery script, and
 * the lists of batch systems. */
#include <stdlib.h>
#include <string.h>

#include "pmix_boot/hvdrun/batch_hosts.h"
#include "pmix_boot/hvdrun/discovery.h"
#include "pmix_boot/hvdrun/hosts.h"
#include "tests/fuzz/fuzz.h"

static void parse(const char *text)
{
    struct hvdrun_host *hosts = NULL;
    struct hvd_error err = {0};
    int count = hvdrun_hosts_parse(text, &hosts, &err);

    for (int i = 0; i < count; i++) {
        if (hosts[i].slots < 1 || hosts[i].name[0] == '\0') {
            fuzz_fail("a host has a name and ranks");
        }
        (void)hvdrun_host_is_local(hosts[i].name, "n1.cluster");
    }
    if (count >= 0) {
        free(hosts);
    } else if (err.text[0] == '\0') {
        fuzz_fail("hosts that are refused have a message");
    }
}

static void parse_allocation(const char *text, enum hvdrun_batch_form form)
{
    struct hvdrun_host *hosts = NULL;
    struct hvd_error err = {0};
    int count = hvdrun_batch_hosts_parse("PE_HOSTFILE", text, form, &hosts, &err);

    for (int i = 0; i < count; i++) {
        if (hosts[i].slots < 1 || hosts[i].slots > HVDRUN_MOST_SLOTS ||
            hosts[i].name[0] == '\0' || strpbrk(hosts[i].name, ":, \n") != NULL) {
            fuzz_fail("a host of a batch system has a name and slots that -H takes");
        }
    }
    if (count >= 0) {
        free(hosts);
    } else if (strstr(err.text, "PE_HOSTFILE") == NULL) {
        fuzz_fail("the error about a list names its variable");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    const char *path = fuzz_file(data, size);
    char *text = fuzz_text(&input, size);
    struct hvd_error err = {0};
    char *listed = NULL;

    parse(text);
    parse_allocation(text, HVDRUN_HOST_PER_SLOT);
    parse_allocation(text, HVDRUN_HOST_AND_SLOTS);
    parse_allocation(text, HVDRUN_HOST_SLOT_PAIRS);
    if (hvdrun_hostfile_read(path, &listed, &err) == 0) {
        parse(listed);
        free(listed);
    }
    if (hvdrun_discovery_read(text, "n1.cluster", 2, &err) < 0 && err.text[0] == '\0') {
        fuzz_fail("output of a script that is refused has a message");
    }
    free(text);
    return 0;
}
