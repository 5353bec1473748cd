/* SPDX-License-Identifier: Apache-2.0 */
/* The compiler extensions that hvd uses, each spelled once. */
#ifndef HVD_ATTR_H
#define HVD_ATTR_H

#define HVD_PRINTF(text, first) __attribute__((format(printf, text, first)))
#define HVD_EXPORT __attribute__((visibility("default")))
#define HVD_UNUSED __attribute__((unused))
#define HVD_CONSTRUCTOR __attribute__((constructor)) /* runs when the library is loaded */
#define HVD_ALWAYS_INLINE inline __attribute__((always_inline))

/* Functions between these two are compiled for the given features of the CPU, such as
 * "avx2,f16c". Include headers before them. */
#define HVD_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define HVD_TARGET_BEGIN(features)                                                       \
    HVD_PRAGMA(                                                                          \
        clang attribute push(__attribute__((target(features))), apply_to = function))
#define HVD_TARGET_END HVD_PRAGMA(clang attribute pop)
#else
#define HVD_TARGET_BEGIN(features)                                                       \
    HVD_PRAGMA(GCC push_options)                                                         \
    HVD_PRAGMA(GCC target(features))
#define HVD_TARGET_END HVD_PRAGMA(GCC pop_options)
#endif

#endif
