#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# contrib/packages.sh chooses the names of packages that this release has. Stand-ins for dpkg-query and apt-cache,
# which read two lists, act as different releases.
# usage: packages_test.sh SOURCE_ROOT
root=$1
# shellcheck source=tests/tap.sh
. "$root/tests/tap.sh"
tap_begin

mkdir "$work/bin"
# dpkg-query -Wf FORMAT NAME
cat >"$work/bin/dpkg-query" <<'SH'
#!/bin/sh
if grep -qx "$3" "$RELEASE/installed"; then printf installed; else exit 1; fi
SH
# apt-cache show NAME
cat >"$work/bin/apt-cache" <<'SH'
#!/bin/sh
grep -qx "$2" "$RELEASE/known"
SH
chmod +x "$work/bin/dpkg-query" "$work/bin/apt-cache"

# release KNOWN INSTALLED: sets both lists; names are separated by spaces
release()
{
    printf '%s\n' $1 >"$work/known"
    printf '%s\n' $2 >"$work/installed"
}

# misses EXPECTED: packages.sh names EXPECTED as the missing runtime library of clang.
misses()
{
    RELEASE=$work PATH=$work/bin:$PATH bash "$root/contrib/packages.sh" missing test >"$work/out" 2>&1
    [ "$(grep libclang-rt "$work/out")" = "$1" ]
}

release 'libclang-rt-dev libclang-rt-14-dev' ''
misses libclang-rt-dev
report $? 'of two names, the first that the release has is printed as missing'

release libclang-rt-14-dev ''
misses libclang-rt-14-dev
report $? 'the second name is printed if the release has only that'

release '' ''
misses libclang-rt-14-dev
report $? 'if the release has neither, the last name is printed'

release 'libclang-rt-dev libclang-rt-14-dev' libclang-rt-14-dev
misses ''
report $? 'nothing is missing if either is installed'

tap_done
