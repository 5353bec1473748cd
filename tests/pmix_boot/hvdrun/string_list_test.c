/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of strings as environments. */
#include "pmix_boot/hvdrun/string_list.h"

#include <string.h>

#include "tests/tap.h"

static void test_environment(void)
{
    static const char *const items[] = {"A=1", "AB=50% %s", "C_X=3", "C_Y=4", NULL};
    struct hvdrun_string_list list = {0};

    tap_ok(hvdrun_string_list_add_all(&list, items, NULL) == 0 && list.count == 4 &&
               list.items[4] == NULL,
           "an environment is copied");
    hvdrun_string_list_set_variable(&list, "A", "new=x", true, NULL);
    hvdrun_string_list_set_variable(&list, "AB", "other", false, NULL);
    hvdrun_string_list_set_variable(&list, "D", "", false, NULL);
    tap_ok(strcmp(hvdrun_string_list_get_variable(&list, "A"), "new=x") == 0 &&
               strcmp(hvdrun_string_list_get_variable(&list, "AB"), "50% %s") == 0 &&
               strcmp(hvdrun_string_list_get_variable(&list, "D"), "") == 0 &&
               hvdrun_string_list_get_variable(&list, "E") == NULL,
           "set overwrites only if it is told to");
    hvdrun_string_list_remove_variables(&list, "C_");
    tap_ok(list.count == 3 && list.items[3] == NULL &&
               hvdrun_string_list_get_variable(&list, "C_X") == NULL &&
               hvdrun_string_list_get_variable(&list, "D") != NULL,
           "remove removes all variables with a prefix, and no others");
    hvdrun_string_list_finish(&list);
}

int main(void)
{
    test_environment();
    return tap_done();
}
