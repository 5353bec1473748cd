#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the packages of contrib/packaging from the last commit, as debs and as rpms, and installs, uses and removes
# them in roots of this release of Debian.
#
# usage: packages.sh LOGS
# Needs root. debootstrap makes two roots, one with Slurm and PyTorch. They are kept as clean-NAME and cluster-NAME in
# ${XDG_CACHE_HOME:-~/.cache}/hvd-tests (2 GB); remove them to get newer ones. Prints TAP; outputs go to LOGS.
set -uo pipefail

checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
roots=${XDG_CACHE_HOME:-$HOME/.cache}/hvd-tests
name=$(. /etc/os-release && echo "${VERSION_CODENAME-}")
clean=$roots/clean-$name cluster=$roots/cluster-$name
logs=${1:?no directory for logs}
promises=0
. "$checkout/tests/roots.sh"

# promise TEXT COMMAND...: runs COMMAND and prints a line of TAP; a failure shows the end of the output.
promise()
{
    local text=$1 log
    shift
    promises=$((promises + 1))
    log=$logs/packages-$promises.log
    if "$@" >"$log" 2>&1; then
        echo "ok $promises - $text"
    else
        echo "not ok $promises - $text"
        tail -n 60 "$log" | sed 's/^/# /'
        return 1
    fi
}

# --- roots ---

make_clean_root()
{
    [ -d "$clean" ] || make_root "$clean" "$name" || return
    cp -L /etc/resolv.conf /etc/hosts "$clean/etc/" && in_root "$clean" apt-get update
}

make_cluster_root()
{
    [ ! -d "$cluster" ] || return 0
    rm -rf "$cluster.part"
    cp -a "$clean" "$cluster.part" && put_checkout "$cluster.part" &&
        in_root "$cluster.part" /hvd/contrib/packages.sh install cluster torch &&
        in_root "$cluster.part" apt-get install --yes --no-install-recommends libpmix-dev libucx0 libyaml-0-2 &&
        mv "$cluster.part" "$cluster"
}

# The scripts of the cluster, which are no part of the packages.
put_checkout()
{
    mkdir -p "$1/hvd/contrib"
    cp -a "$checkout"/contrib/{cluster,packages.sh} "$1/hvd/contrib/"
}

# copy_root ROOT COPY
copy_root()
{
    rm -rf "$2"
    cp -a "$1" "$2" && put_checkout "$2" && mkdir "$2/packages" && cp "$work"/deb-1/*.deb "$2/packages/"
}

files_of()
{
    (cd "$1" && find etc usr opt srv var root home -path var/lib/dpkg -prune -o -path var/cache -prune -o \
        -path var/log -prune -o -path var/lib/rpm -prune -o -print | sort)
}

# --- packages ---

# build KIND NUMBER
build()
{
    "$checkout/contrib/packaging/$1.sh" "$work/$1-$2"
}

# Builds again in another directory, in another time zone, and compares all packages and SBOMs.
builds_the_same()
{
    mkdir -p "$work/elsewhere"
    TMPDIR=$work/elsewhere TZ=Asia/Tokyo build "$1" 2 && sha256sum "$work/$1-2"/* &&
        diff --recursive --exclude='*.txt' "$work/$1-1" "$work/$1-2" # rpmlint reports the time that it took
}

# install_stand_in ROOT NAME VERSION: installs a package without files.
install_stand_in()
{
    local tree=$1/packages/$2
    mkdir -p "$tree/DEBIAN"
    printf '%s\n' "Package: $2" "Version: $3" 'Architecture: all' 'Maintainer: The Test <test@example.org>' \
        'Description: a stand-in' >"$tree/DEBIAN/control"
    in_root "$1" bash -c 'dpkg-deb --build "/packages/$0" && dpkg --install "/packages/$0.deb"' "$2"
    rm -rf "$tree" "$tree.deb"
}

# apt_refuses_beside NAME VERSION: apt neither installs the plugin nor removes that Slurm for it.
apt_refuses_beside()
{
    local root=$work/refusing
    copy_root "$clean" "$root" && install_stand_in "$root" "$1" "$2" || return
    in_root "$root" bash -c 'apt-get install --yes /packages/*.deb'
    [ $? = 100 ] && in_root "$root" dpkg --status "$1" && ! in_root "$root" dpkg --status hvd-slurm-plugin
}

install_debs()
{
    copy_root "$cluster" "$work/using" && files_of "$work/using" >"$work/before" &&
        in_root "$work/using" bash -c 'apt-get install --yes --no-install-recommends /packages/*.deb'
}

train()
{
    in_root "$work/using" hvdrun -np 2 python3 /usr/share/hvd/examples/digits/train.py --epochs 2
}

# Slurm reads the plugin's line where the package installs it.
train_under_slurm()
{
    in_root "$work/using" bash -euc '
        cluster=/hvd/contrib/cluster/cluster
        $cluster up 2 --gpus 0 --plugstack /etc/slurm/plugstack.conf.d
        trap "$cluster down" EXIT
        $cluster run srun --hvd -N2 -n4 python3 /usr/share/hvd/examples/digits/train.py --epochs 2'
}

# nothing_is_left ROOT: prints the files that came since $work/before.
nothing_is_left()
{
    files_of "$1" >"$work/after"
    ! comm -13 "$work/before" "$work/after" | grep .
}

purge_debs()
{
    in_root "$work/using" apt-get purge --yes hvd hvd-slurm-plugin && rm -r "$work/using/root" &&
        mkdir "$work/using/root" && nothing_is_left "$work/using"
}

# --- rpms, in the root that the debs have left: rpm knows none of its packages ---

# make_rpm NAME VERSION FIELD...: writes a package without files, $work/NAME.rpm.
make_rpm()
{
    local name=$1 release=$2
    shift 2
    printf '%s\n' "Name: $name" "Version: $release" 'Release: 1' 'Summary: a stand-in' 'License: Apache-2.0' \
        'BuildArch: noarch' "$@" '%description' 'A stand-in.' '%files' >"$work/$name.spec"
    rpmbuild -bb --quiet --define "_topdir $work/rpmbuild" --define "_rpmdir $work" \
        --define "_build_name_fmt $name.rpm" "$work/$name.spec"
}

rpm_in_root()
{
    rpm --root "$work/using" --nosignature "$@"
}

# Prints what the packages require of a distribution, as fields of a spec file.
provides_of_distribution()
{
    rpm --query --requires --package "$work"/rpm-1/*.rpm | grep -vE '^(rpmlib|config|hvd|slurm)' | sort -u |
        sed 's/^/Provides: /'
}

rpm_refuses_beside()
{
    local provides
    mapfile -t provides < <(provides_of_distribution)
    make_rpm distribution 1 "${provides[@]}" && make_rpm "$1" "$2" &&
        rpm_in_root --install "$work/distribution.rpm" "$work/$1.rpm" || return
    ! rpm_in_root --install "$work"/rpm-1/*.rpm && ! rpm_in_root --query hvd-slurm-plugin
}

# install_rpms NAME VERSION: beside this Slurm. The folders belong to packages for which the stand-ins stand.
install_rpms()
{
    mkdir -p "$work/using/usr/lib64/pkgconfig" "$work/using/usr/lib64/slurm"
    make_rpm "$1" "$2" && rpm_in_root --upgrade --oldpackage "$work/$1.rpm" && files_of "$work/using" >"$work/before" &&
        rpm_in_root --install "$work"/rpm-1/*.rpm && rpm_in_root --verify hvd hvd-slurm-plugin
}

train_with_rpms()
{
    in_root "$work/using" env LD_LIBRARY_PATH=/usr/lib64 \
        hvdrun -np 2 python3 /usr/share/hvd/examples/digits/train.py --epochs 2
}

erase_rpms()
{
    rpm_in_root --erase hvd hvd-slurm-plugin && nothing_is_left "$work/using"
}

# --- main ---

main()
{
    local reason release
    reason=$(obstacle)
    [ -n "$name" ] || reason='this machine is no Debian'
    [ -n "$reason" ] || reason=$("$checkout/contrib/packages.sh" install build deb rpm 2>&1 >/dev/null)
    if [ -n "$reason" ]; then
        echo "1..0 # SKIP $reason"
        return
    fi
    release=$(. "$checkout/contrib/packaging/source.sh" && slurm_release | cut -d ' ' -f 1)
    work=$(mktemp -d /var/tmp/hvd-packages.XXXXXX)
    trap 'rm -rf "$work"' EXIT
    promise 'deb.sh builds two packages, in which lintian finds no errors' build deb 1 &&
        promise 'built again elsewhere, the debs and their SBOMs have the same bits' builds_the_same deb
    promise 'rpm.sh builds two packages, in which rpmlint finds no errors' build rpm 1 &&
        promise 'built again elsewhere, the rpms and their SBOMs have the same bits' builds_the_same rpm
    promise 'there is a root of this release' make_clean_root && {
        promise 'apt refuses the plugin beside slurm-wlm-basic-plugins 99.05' \
            apt_refuses_beside slurm-wlm-basic-plugins 99.05.1-1
        promise 'there is a root with Slurm and PyTorch' make_cluster_root &&
            promise 'apt installs the debs' install_debs && {
            promise 'hvdrun trains with the installed packages' train
            promise 'srun --hvd trains on two nodes' train_under_slurm
            promise 'apt purges them, and no file is left' purge_debs
            promise 'rpm refuses the plugin beside slurm 99.05' rpm_refuses_beside slurm 99.05.1
            promise "rpm installs it beside slurm $release" install_rpms slurm "$release.9"
            promise 'hvdrun trains with the installed rpms' train_with_rpms
            promise 'rpm removes them, and no file is left' erase_rpms
        }
    }
    echo "1..$promises"
}

main
