/* SPDX-License-Identifier: Apache-2.0 */
/* hvd-simulate: see simulate.h. */
#include "contrib/bench/simulate/simulate.h"

int main(int argc, char **argv)
{
    return hvd_simulate(argc, argv);
}
