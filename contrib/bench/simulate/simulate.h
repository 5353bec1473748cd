/* SPDX-License-Identifier: Apache-2.0 */
/* Predicts how hvd scales on a machine that is not at hand. */
#ifndef HVD_SIMULATE_H
#define HVD_SIMULATE_H

/* Runs the simulation with the arguments after the program's name (argv[0] is ignored).
 * Returns the exit status.
 *
 *   OPTIONS              nodes=128,gpus=4,link=25Gb,model=resnet101,...: a training step
 *   OPTIONS,bytes=64M    one allreduce
 *   --tables             the tables of README.md
 *   --help               all options with their defaults */
int hvd_simulate(int argc, char **argv);

#endif
