#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# install_conf.sh NEW CONF: an install script of meson. Installs the plugin's line of plugstack.conf. An admin may have
# added words to an earlier one, which then stays; the new one lies beside it as CONF.new, which plugstack.conf does
# not include.
new=$1 conf=${DESTDIR-}$2
set -eu

mkdir -p "$(dirname "$conf")"
if [ ! -e "$conf" ] || cmp -s "$new" "$conf"; then
    rm -f "$conf.new"
else
    conf=$conf.new
fi
cp "$new" "$conf"
chmod 644 "$conf"
