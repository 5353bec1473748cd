/* SPDX-License-Identifier: Apache-2.0 */
/* Closes descriptors that a process has inherited from the program that started it. */
#ifndef HVD_INHERITED_H
#define HVD_INHERITED_H

/* Closes all descriptors except standard input, output and error. Call this before the
 * process opens any of its own. A child may call it between fork and exec. */
void hvd_inherited_close(void);

#endif
