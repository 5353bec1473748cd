/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that take part in a modex together have the same key, whatever each of them did
 * before. */
#include "pmix_boot/modex_key.h"

#include "tests/tap.h"

static struct hvd_modex_key next(const int *ranks, int count)
{
    struct hvd_modex_key key = {0};

    if (hvd_modex_key_next(ranks, count, &key, NULL) != 0) {
        printf("Bail out! no memory\n");
        exit(99);
    }
    return key;
}

int main(void)
{
    static const int list[] = {0, 1, 2};
    static const int turned[] = {2, 1, 0};
    struct hvd_modex_key all = next(NULL, 0);
    struct hvd_modex_key two = next(list, 2);
    struct hvd_modex_key three = next(list, 3);

    tap_ok(all.is_first && !two.is_first && !three.is_first,
           "only_the_first_modex_of_a_process_is_marked_as_first");
    tap_ok(all.number == 1 && two.number == 1 && three.number == 1,
           "every_list_is_counted_from_one");
    tap_ok(all.list == 0 && two.list != 0 && two.list != three.list,
           "every_list_has_a_name");
    tap_ok(next(turned, 3).list != three.list, "another_order_is_another_list");
    tap_ok(next(list, 2).number == 2 && next(list, 2).number == 3 &&
               next(NULL, 0).number == 2 && next(list, 3).number == 2,
           "modexes_with_other_lists_do_not_count");
    tap_ok(next(list, 2).list == two.list, "a_list_keeps_its_name");
    return tap_done();
}
