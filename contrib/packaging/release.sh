#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the files of a release from the last commit. Prints which files it left out, and what to do next.
#
# usage: release.sh OUT [--source]
# OUT, an empty or new folder, gets hvd-VERSION.tar.gz and its SBOM; the easyconfigs, with the tarball's checksum; debs,
# rpms and the wheel, if the tools are installed (none with --source); SHA256SUMS; and SHA256SUMS.asc if gpg has a
# secret key. Two runs on the same commit give the same tarball, SBOM and easyconfigs.
set -euo pipefail
# shellcheck source=contrib/packaging/source.sh
. "$(dirname "${BASH_SOURCE[0]}")/source.sh"

changelog=contrib/docs/CHANGELOG.md
easyconfigs=contrib/packaging/easybuild
left_out=()

refuse()
{
    echo "release.sh: $*" >&2
    exit 1
}

# Refuses a release that exists already, that is not one commit, or whose changes are not written down.
check()
{
    local changes heading
    is_git_checkout || refuse "$checkout is not a git checkout, and a release is made from a commit"
    changes=$(git status --porcelain)
    [ -z "$changes" ] || refuse "commit or remove these changes first:"$'\n'"$changes"
    ! git rev-parse --quiet --verify "refs/tags/v$version" >/dev/null ||
        refuse "the tag v$version exists already: raise the version in meson.build"
    heading=$(grep -x "## ${version//./\\.}, .*" $changelog) ||
        refuse "$changelog has no section \"## $version, YEAR-MONTH-DAY\": write down what users notice of this version"
    [[ $heading =~ ', '[0-9]{4}-[0-9]{2}-[0-9]{2}$ ]] ||
        refuse "$changelog says \"$heading\": replace the words after the comma by the date, YEAR-MONTH-DAY"
    compgen -G "$easyconfigs/hvd-$version*.eb" >/dev/null ||
        refuse "$easyconfigs has no hvd-$version*.eb: rename the easyconfigs of the last version, and adapt them"
    mkdir -p "$out"
    # SHA256SUMS lists all files of the folder.
    [ -z "$(ls -A "$out")" ] || refuse "$out has files: name an empty or new directory"
}

make_tarball()
{
    git -c tar.umask=0022 archive --prefix="hvd-$version/" HEAD | gzip --no-name --best >"$tarball"
}

fill_in_easyconfigs()
{
    local checksum file
    checksum=$(sha256sum "$tarball" | cut -d ' ' -f 1)
    for file in "$easyconfigs"/hvd-"$version"*.eb; do
        sed "s/^checksums = \[None\].*/checksums = ['$checksum']/" "$file" >"$out/${file##*/}"
    done
}

# build KIND TOOL...: runs KIND.sh, if the tools are installed.
build()
{
    local kind=$1 tool
    for tool in "$packaging/$kind.sh" "${@:2}"; do
        command -v "$tool" >/dev/null ||
            { left_out+=("$kind: there is no $tool; contrib/packages.sh install build $kind") && return; }
    done
    "$packaging/$kind.sh" "$out" || refuse "$kind.sh failed, as its last lines say: $out is no complete release"
}

build_packages()
{
    if [ "$1" = --source ]; then
        left_out+=('deb, rpm, wheel: --source was given')
        return
    fi
    build deb dpkg-buildpackage dh lintian
    build rpm rpmbuild rpmlint
    build wheel apt-get autoreconf libtoolize patch
}

# Writes the SBOMs of the tarball and the wheel. deb.sh and rpm.sh have written those of their packages.
write_sboms()
{
    local file
    for file in "$tarball" "$out"/*.whl; do
        [ ! -e "$file" ] || "$packaging/sbom.py" "$file"
    done
}

sign()
{
    if gpg --list-secret-keys --with-colons 2>/dev/null | grep -q '^sec:'; then
        gpg --quiet --armor --detach-sign SHA256SUMS
    else
        left_out+=('SHA256SUMS.asc: gpg is not installed or has no secret key, so the release is not signed')
    fi
}

[[ ${1--} != -* && ${2---source} = --source ]] || refuse 'usage: release.sh OUT [--source]'
out=$(realpath -m "$1")
tarball=$out/hvd-$version.tar.gz
cd "$checkout"
check
make_tarball
fill_in_easyconfigs
build_packages "${2-}"
write_sboms
cd "$out"
sums=$(sha256sum -- *)
echo "$sums" >SHA256SUMS
sign
printf 'hvd %s is in %s:\n' "$version" "$out"
ls
[ ${#left_out[@]} = 0 ] || printf 'left out: %s\n' "${left_out[@]}"
printf 'next: git tag -a v%s -m "hvd %s" %s, then publish the tag and these files\n' "$version" "$version" \
    "$(git -C "$checkout" rev-parse --short HEAD)"
