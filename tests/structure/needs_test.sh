#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs_test.sh LIBHVD: the libraries that libhvd.so needs, which every container would have to have.
needed=$(LC_ALL=C readelf --dynamic --wide "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
more=$(echo "$needed" | grep -Ev '^(lib(c|m|dl|rt|pthread)|ld-linux.*|libsodium)\.so')
[ -n "$needed" ] && [ -z "$more" ] || printf 'not '
echo 'ok 1 - libhvd.so needs the C library and libsodium, and nothing else'
[ -z "$more" ] || echo "$more" | sed 's/^/# /'
echo 1..1
