#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# contrib/packaging/release.sh makes a release from a commit of a copy of this source, and refuses to make one that users
# could not trust. No package is built.
# usage: release_test.sh SOURCE_ROOT
root=$1
# shellcheck source=tests/tap.sh
. "$root/tests/tap.sh"
git -C "$root" rev-parse >/dev/null 2>&1 || tap_skip_all 'the source is not a git checkout'
tap_begin

copy=$work/copy
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
export GNUPGHOME=$work/gnupg GIT_CONFIG_GLOBAL=/dev/null
mkdir -m 700 "$GNUPGHOME"
mkdir "$copy"
git -C "$root" ls-files -z --cached --others --exclude-standard | tar -C "$root" -c --null --ignore-failed-read -T - 2>/dev/null |
    tar -C "$copy" -x
cd "$copy" || exit
version=$(sed -n "s/^project('hvd', 'c', version: '\([^']*\)'.*/\1/p" meson.build)
sed -i "s/^## $version, .*/## $version, not yet released/" contrib/docs/CHANGELOG.md
git init --quiet && git add . && git commit --quiet --message 'before the release'

# release OUT: makes a release without packages; its output is in $work/out
release()
{
    contrib/packaging/release.sh "$1" --source >"$work/out" 2>&1
}

# refuses REASON PROMISE: no release is made, and the error says so.
refuses()
{
    ! release "$work/refused" && grep -qF "$1" "$work/out" && [ -z "$(ls -A "$work/refused" 2>/dev/null)" ]
    report $? "$2"
}

refuses "says \"## $version, not yet released\"" 'a version without a date in CHANGELOG.md is refused'
sed -i "s/^\(## $version, \).*/\12026-01-31/" contrib/docs/CHANGELOG.md
refuses ' M contrib/docs/CHANGELOG.md' 'changes that are not committed are refused'
git commit --quiet --all --message 'the release'

release "$work/first" && (cd "$work/first" && sha256sum --quiet -c SHA256SUMS) >>"$work/out" 2>&1
report $? 'the files of a release match SHA256SUMS'
grep -q '^left out: SHA256SUMS.asc: .* no secret key' "$work/out" && grep -q '^left out: deb, rpm, wheel: --source' "$work/out"
report $? 'a release names what was left out, and why'
tar -tzf "$work/first/hvd-$version.tar.gz" >"$work/out" && grep -qx "hvd-$version/meson.build" "$work/out" &&
    ! grep -v "^hvd-$version/" "$work/out"
report $? 'the tarball has the source in one directory'
grep -q "$(cut -d ' ' -f 1 <(grep "tar.gz$" "$work/first/SHA256SUMS"))" "$work/first/hvd-$version-GCC"*.eb
report $? "the easyconfig has the tarball's checksum"

gpg --quiet --batch --passphrase '' --quick-generate-key test@localhost ed25519 sign never >"$work/out" 2>&1
(umask 077 && release "$work/second") && gpg --quiet --verify "$work/second/SHA256SUMS.asc" "$work/second/SHA256SUMS" >>"$work/out" 2>&1
report $? 'with a secret key, the checksums are signed'
diff "$work/first/SHA256SUMS" "$work/second/SHA256SUMS" >"$work/out"
report $? 'two releases of one commit are equal'

! release "$work/first" && grep -qF 'name an empty or new directory' "$work/out"
report $? 'files of another release are not mixed with these'
git tag "v$version"
refuses "the tag v$version exists" 'a version that has a tag is refused'
sed -i "s/^\(project('hvd', 'c', version: '\)[^']*/\19.9.9/" meson.build
git commit --quiet --all --message 'a version without a section'
refuses 'no section "## 9.9.9, YEAR-MONTH-DAY"' 'a version that CHANGELOG.md does not have is refused'
gpgconf --kill all 2>/dev/null
tap_done
