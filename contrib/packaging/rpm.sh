#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the packages hvd and hvd-slurm-plugin as rpm, for the Slurm whose headers are installed and for the libraries
# of this machine.
#
# usage: rpm.sh OUT [OPTION of rpmbuild]...
# OUT gets hvd-VERSION-1.ARCH.rpm, hvd-slurm-plugin-VERSION-1.slurmRELEASE.ARCH.rpm (for OpenHPC's Slurm, .ohpcRELEASE),
# an SBOM in SPDX for each, and the report of rpmlint, whose errors fail the build.
# `--with cuda` adds the GPU kernels, which need nvcc. DEBFULLNAME and DEBEMAIL name the packager.
# On Debian, `contrib/packages.sh install build rpm` installs what this needs. rpm does not know Debian's packages, so
# it does not check there what the build requires.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/source.sh"

case $(rpm --query --file /usr/include/slurm/slurm.h 2>/dev/null) in
*-ohpc-*) slurm_package=slurm-ohpc slurm_packager=ohpc ;;
*) slurm_package=slurm slurm_packager=slurm ;;
esac

out=${1:?usage: rpm.sh OUT [OPTION of rpmbuild]...}
shift
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
copy_source "$work"
tar -C "$work" -czf "$work/hvd-$version.tar.gz" "hvd-$version"
fill_in "$packaging/hvd.spec.in" >"$work/hvd.spec"
[ ! -e /etc/debian_version ] || set -- --nodeps "$@"

rpmbuild -bb --define "_topdir $work/rpmbuild" --define "_sourcedir $work" --define "_rpmdir $work" \
    --define '_build_name_fmt %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm' "$@" "$work/hvd.spec"
for package in "$work"/*.rpm; do
    "$packaging/sbom.py" "$package"
done
rpmlint --rpmlintrc "$packaging/hvd.rpmlintrc" "$work"/*.rpm | tee "$out/rpmlint.txt"
mv "$work"/*.rpm "$work"/*.spdx.json "$out"
