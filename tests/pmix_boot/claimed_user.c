/* SPDX-License-Identifier: Apache-2.0 */
/* Loaded before libc: a program claims to be the user and group of HVD_TEST_CLAIM, "UID:GID", as an
 * attacker's own PMIx client would. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

static unsigned claimed(int which)
{
    const char *text = getenv("HVD_TEST_CLAIM");
    unsigned ids[2] = {0, 0};

    (void)!(text != NULL && sscanf(text, "%u:%u", &ids[0], &ids[1]) == 2);
    return ids[which];
}

uid_t getuid(void)
{
    return claimed(0);
}

uid_t geteuid(void)
{
    return claimed(0);
}

gid_t getgid(void)
{
    return claimed(1);
}

gid_t getegid(void)
{
    return claimed(1);
}
