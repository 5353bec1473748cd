# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # variables of the scripts that source this
# Gives the scripts of this folder the source of a package, and facts about it. Both depend on the commit alone, so that
# two builds of a package are equal. In an unpacked archive, meson.build has the date of the commit.
#
#   $packaging, $checkout      this folder, and the root of the source
#   $version                   of hvd
#   $SOURCE_DATE_EPOCH         seconds since 1970 of the last commit; exported
#   copy_source DIR            writes the source to DIR/hvd-VERSION
#   maintainer                 prints the maintainer of the package: NAME <ADDRESS>
#   slurm_release              prints the release of the installed headers of Slurm, and the first version that is too
#                              new for a plugin built with them: 22.05 22.06
#   fill_in FILE               prints FILE, with these facts in place of @WORDS@. The caller sets slurm_package, on which
#                              all parts of the installed Slurm depend, and slurm_packager, a word for its origin

packaging=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
checkout=$(cd "$packaging/../.." && pwd)
version=$(sed -n "s/^project('hvd', 'c', version: '\([^']*\)'.*/\1/p" "$checkout/meson.build")

is_git_checkout()
{
    [ -e "$checkout/.git" ]
}

if is_git_checkout; then
    SOURCE_DATE_EPOCH=$(git -C "$checkout" log -1 --format=%ct)
else
    SOURCE_DATE_EPOCH=$(stat -c %Y "$checkout/meson.build")
fi
export SOURCE_DATE_EPOCH

# Copies the last commit; from an unpacked archive, all files except build folders.
copy_source()
{
    if is_git_checkout; then
        [ -z "$(git -C "$checkout" status --porcelain)" ] ||
            echo "${0##*/}: the package gets the last commit, without the changes that \`git status\` shows" >&2
        git -C "$checkout" archive --prefix="hvd-$version/" HEAD | tar -x -C "$1"
    else
        tar -C "$checkout" -c --exclude='./build*' --transform "s|^\.|hvd-$version|" . | tar -x -C "$1"
    fi
}

# Prints DEBFULLNAME and DEBEMAIL, else the author of the last commit.
maintainer()
{
    if [ -n "${DEBFULLNAME-}" ] && [ -n "${DEBEMAIL-}" ]; then
        echo "$DEBFULLNAME <$DEBEMAIL>"
    elif is_git_checkout; then
        git -C "$checkout" log -1 --format='%an <%ae>'
    else
        echo "${0##*/}: set DEBFULLNAME and DEBEMAIL to the name and the mail address of the package's maintainer" >&2
        return 1
    fi
}

slurm_release()
{
    local number
    number=$(echo SLURM_VERSION_NUMBER | cpp -P -include slurm/slurm.h - | tail -n 1) || return
    printf '%d.%02d %d.%02d\n' $((number >> 16)) $((number >> 8 & 255)) $((number >> 16)) $(((number >> 8 & 255) + 1))
}

fill_in()
{
    local who release from until
    who=$(maintainer) || return
    release=$(slurm_release) || return
    read -r from until <<<"$release"
    sed -e "s/@VERSION@/$version/; s/@MAINTAINER@/$who/; s/@SLURM@/$from/g; s/@SLURM_UNTIL@/$until/g" \
        -e "s/@SLURM_PACKAGE@/$slurm_package/g; s/@SLURM_PACKAGER@/$slurm_packager/" \
        -e "s/@DATE_OF_DEB@/$(date -uRd "@$SOURCE_DATE_EPOCH")/" \
        -e "s/@DATE_OF_RPM@/$(LC_ALL=C date -ud "@$SOURCE_DATE_EPOCH" '+%a %b %d %Y')/" "$1"
}
