/* SPDX-License-Identifier: Apache-2.0 */
/* The compiler extensions that hvd uses, each spelled once. */
#ifndef HVD_ATTR_H
#define HVD_ATTR_H

#define HVD_PRINTF(text, first) __attribute__((format(printf, text, first)))
#define HVD_EXPORT __attribute__((visibility("default")))
#define HVD_UNUSED __attribute__((unused))
#define HVD_ALWAYS_INLINE inline __attribute__((always_inline))

#endif
