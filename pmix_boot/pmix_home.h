/* SPDX-License-Identifier: Apache-2.0 */
/* A home directory for libpmix. */
#ifndef HVD_PMIX_HOME_H
#define HVD_PMIX_HOME_H

/* Sets HOME to "/", as container engines do, where neither HOME nor the user database has a
 * home directory: libpmix 4 crashes there. To be called before PMIx starts, while the process
 * has one thread. */
void hvd_pmix_need_home(void);

#endif
