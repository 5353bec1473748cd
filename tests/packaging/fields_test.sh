#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The fields of hvd-slurm-plugin in contrib/packaging: dpkg and rpm install it only beside the release of Slurm that it
# was built for, whoever packaged Slurm. Packages without files, with these fields, stand in for the real ones;
# `tests/run.sh packages` builds and installs the real ones.
# usage: fields_test.sh SOURCE_ROOT
root=$1
# shellcheck source=tests/tap.sh
. "$root/tests/tap.sh"
tap_begin
export DEBFULLNAME='The Test' DEBEMAIL=test@example.org
# shellcheck source=contrib/packaging/source.sh
. "$root/contrib/packaging/source.sh"

slurm_packager='test'

slurm_release()
{
    echo "$built_for"
}

# --- deb ---

# make_deb NAME FIELD...: writes $work/NAME.deb.
make_deb()
{
    local name=$1 tree=$work/tree-$1
    shift
    mkdir -p "$tree/DEBIAN"
    printf '%s\n' "Package: $name" 'Architecture: all' 'Maintainer: The Test <test@example.org>' "$@" \
        'Description: a stand-in' >"$tree/DEBIAN/control"
    dpkg-deb --root-owner-group --build "$tree" "$work/$name.deb" >"$work/out" 2>&1
}

# Prints Depends of the plugin, without what debhelper adds.
fields_of_deb()
{
    fill_in "$packaging/debian/control.in" | grep -v '^#' | sed -n '/^Package: hvd-slurm-plugin/,/^$/p' |
        sed -n '/^Depends:/,/[^,]$/p' | sed "s/\${source:Version}/$version-1/; s/\${\(shlibs\|misc\):Depends}, //g"
}

# Begins with an empty system that has only the package hvd.
begin_dpkg()
{
    rm -rf "$work/system"
    mkdir -p "$work/system/var/lib/dpkg/info" "$work/system/var/lib/dpkg/updates"
    touch "$work/system/var/lib/dpkg/status" "$work/system/var/lib/dpkg/available"
    install_deb hvd
}

install_deb()
{
    dpkg --root="$work/system" --force-not-root --force-unsafe-io --force-script-chrootless --log="$work/dpkg.log" \
        --install "$work/$1.deb" >"$work/out" 2>&1
}

# system_of_debs NAME VERSION: a system with hvd and this Slurm.
system_of_debs()
{
    begin_dpkg && make_deb "$1" "Version: $2-1" && install_deb "$1"
}

# --- rpm ---

# make_rpm NAME VERSION FIELD...: writes $work/NAME.rpm.
make_rpm()
{
    local name=$1 release=$2
    shift 2
    printf '%s\n' "Name: $name" "Version: $release" 'Release: 1' 'Summary: a stand-in' 'License: Apache-2.0' \
        'BuildArch: noarch' "$@" '%description' 'A stand-in.' '%files' >"$work/$name.spec"
    rpmbuild -bb --quiet --define "_topdir $work/rpmbuild" --define "_rpmdir $work" \
        --define "_build_name_fmt $name.rpm" "$work/$name.spec" >"$work/out" 2>&1
}

fields_of_rpm()
{
    fill_in "$packaging/hvd.spec.in" | sed -n '/^%package slurm-plugin/,/^%description/p' | grep '^Requires:' |
        sed 's/%{version}/'"$version"'/; s/%{?dist}//'
}

install_rpm()
{
    rpm --root "$work/rpm" --install --justdb --nosignature "$work/$1.rpm" >"$work/out" 2>&1
}

system_of_rpms()
{
    rm -rf "$work/rpm"
    mkdir "$work/rpm"
    install_rpm hvd && make_rpm "$1" "$2" && install_rpm "$1"
}

# --- promises ---

# compare KIND NAME: tries the plugin beside each version of that Slurm.
compare()
{
    local kind=$1 package=$2 number accepted=()
    for number in 24.05.99 24.11.0 24.11.5 25.05.0; do
        "system_of_${kind}s" "$package" "$number" || { report 1 "$kind: $package $number is installed" && return; }
        ! "install_$kind" hvd-slurm-plugin || accepted+=("$number")
    done
    [ "${accepted[*]}" = '24.11.0 24.11.5' ]
    report $? "$kind: the plugin for $package 24.11 is accepted beside it, and refused beside 24.05 and 25.05"
}

# Reads the fields of a template for one packager into the array fields.
read_fields()
{
    slurm_package=$1
    mapfile -t fields < <(fields_of_$2)
}

built_for='24.11 24.12'

if command -v dpkg-deb >/dev/null; then
    make_deb hvd "Version: $version-1"
    for package in slurm-wlm-basic-plugins slurm-smd; do
        read_fields "$package" deb
        make_deb hvd-slurm-plugin "Version: $version-1" "${fields[@]}"
        report $? "deb: a package with the fields for $package is built"
        compare deb "$package"
        ! { begin_dpkg && install_deb hvd-slurm-plugin; }
        report $? "deb: the plugin is refused without $package"
    done
else
    tap_skip 'the plugin as a deb is refused beside a wrong Slurm' 'no dpkg-deb here'
fi

if command -v rpmbuild >/dev/null; then
    make_rpm hvd "$version"
    for package in slurm slurm-ohpc; do
        read_fields "$package" rpm
        make_rpm hvd-slurm-plugin "$version" "${fields[@]}"
        report $? "rpm: a package with the requirements for $package is built"
        compare rpm "$package"
    done
else
    tap_skip 'the plugin as an rpm is refused beside a wrong Slurm' 'no rpmbuild here'
fi

for template in "$packaging"/debian/*.in "$packaging/hvd.spec.in"; do
    fill_in "$template"
done | grep -v '^#' >"$work/filled"
! grep -E '@[A-Z_]+@' "$work/filled" >"$work/out"
report $? 'no word of a template stays'
tap_done
