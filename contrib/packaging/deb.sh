#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the packages hvd and hvd-slurm-plugin for this release of Debian, and for the Slurm whose headers are
# installed: libslurm-dev of Debian or slurm-smd-dev of SchedMD.
#
# usage: deb.sh OUT [OPTION of dpkg-buildpackage]...
# OUT gets hvd_VERSION-1_ARCH.deb, hvd-slurm-plugin_VERSION-1+wlmRELEASE_ARCH.deb (for SchedMD's Slurm, +smdRELEASE), an
# SBOM in SPDX for each, and the report of lintian, whose errors fail the build.
# `contrib/packages.sh install build deb` installs what this needs.
# --build-profiles=pkg.hvd.cuda adds the GPU kernels, which need nvcc. DEBFULLNAME and DEBEMAIL name the maintainer.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/source.sh"

case $(dpkg-query --search /usr/include/slurm/slurm.h) in
slurm-smd-dev:*) slurm_package=slurm-smd slurm_packager=smd ;;
*) slurm_package=slurm-wlm-basic-plugins slurm_packager=wlm ;;
esac

# maintainer_script PACKAGE.NAME FILE: writes the script that dpkg runs.
maintainer_script()
{
    { printf '#!/bin/sh\nset -e\n#DEBHELPER#\n' && cat "$packaging/$2"; } >"$tree/debian/$1"
}

out=${1:?usage: deb.sh OUT [OPTION of dpkg-buildpackage]...}
shift
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
copy_source "$work"
tree=$work/hvd-$version
cp -r "$packaging/debian" "$tree/debian"
for file in control changelog rules; do
    fill_in "$packaging/debian/$file.in" >"$tree/debian/$file"
    rm "$tree/debian/$file.in"
done
chmod 755 "$tree/debian/rules"
maintainer_script hvd.postinst compile_python.sh
maintainer_script hvd.prerm remove_compiled.sh
maintainer_script hvd-slurm-plugin.postinst next_step.sh

(cd "$tree" && dpkg-buildpackage --build=binary --no-sign "$@")
for package in "$work"/*.deb; do
    "$packaging/sbom.py" "$package"
done
lintian --fail-on error "$work"/*.deb | tee "$out/lintian.txt"
mv "$work"/*.deb "$work"/*.spdx.json "$out"
