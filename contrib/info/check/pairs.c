/* SPDX-License-Identifier: Apache-2.0 */
#include "contrib/info/check/pairs.h"

int hvd_info_pairs_partner(int me, int count, int round)
{
    int far = (count + 1) / 2;
    int partner;

    if (round < 2) {
        partner = me % 2 == round ? me + 1 : me - 1;
    } else if (far > 1) {
        partner = me < count - far ? me + far : me >= far ? me - far : -1;
    } else {
        partner = -1;
    }
    return partner < count ? partner : -1;
}
