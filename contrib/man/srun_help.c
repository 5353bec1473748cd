/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what `srun --help` says about --hvd; the build makes spank_hvd(8) from it. */
#include <stdio.h>

#include "spank/options.h"

int main(void)
{
    char text[HVD_SPANK_OPTIONS_HELP_BYTES];

    hvd_spank_options_help(text);
    return puts(text) < 0;
}
