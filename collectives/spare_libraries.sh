#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# spare_libraries.sh LIBDIR: an install script of meson. Copies the libraries that libhvd.so needs beside
# the C library to LIBDIR/hvd/spare, for containers that have none: the front ends load them there if the
# system has none of that name.
set -eu
libdir=$MESON_INSTALL_DESTDIR_PREFIX/$1
mkdir -p "$libdir/hvd/spare"
ldd "$libdir/libhvd.so" | sed -n 's/.* => \(\/.*\/libsodium[^ ]*\).*/\1/p' | while read -r library; do
    install -m 644 "$library" "$libdir/hvd/spare/"
done
