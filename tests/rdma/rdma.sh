#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs jobs over UCX's rc_verbs in guests: emulated machines whose kernel has a soft-RoCE adapter (rdma_rxe). No
# InfiniBand, no KVM and no image of a disk is needed: a guest is Debian's kernel, an initramfs with a few modules, and
# /usr of this machine, read-only.
#
# usage: rdma.sh LOGS BUILD PREFIX
# BUILD: a build with tests. PREFIX: its installation. Needs Debian on x86-64; root only if packages are missing.
# apt-get downloads a kernel (70 MB), of which 11 MB stay in ${XDG_CACHE_HOME:-~/.cache}/hvd-tests. Prints TAP, and exits
# with 1 if a promise has failed; the consoles of the guests are files in LOGS.
#
# HVD_TEST_TIMES=N   multiplies the time limits, default 4
# HVD_TEST_CASE=CASE,...   runs only these cases of guest.sh, in one guest: collectives, bench, ...; or pair: two guests
set -uo pipefail
export PATH=$PATH:/usr/sbin:/sbin # depmod and modprobe, if the user is not root

checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
logs=$(realpath "${1:?no directory for logs}") build=$(realpath "${2:?no build}") prefix=$(realpath "${3:?no prefix}")
cache=${XDG_CACHE_HOME:-$HOME/.cache}/hvd-tests/rdma-kernel
times=${HVD_TEST_TIMES:-4}
guest_limit=$((60 * times)) # seconds

# Modules that a guest loads, with the modules that they need. rxe asks for crc32 when it makes an adapter.
modules='virtio_pci 9pnet_virtio 9p virtio_net dummy crc32_generic rdma_rxe'

# --- kernel and initramfs ---

# Prints why this machine cannot run guests, or nothing.
obstacle()
{
    local message
    if [ "$(uname -m)" != x86_64 ]; then
        echo "the guests are x86-64 machines, this one is $(uname -m)"
    elif ! command -v apt-get >/dev/null; then
        echo 'no apt-get, which downloads the kernel of the guests: this machine is no Debian'
    elif [ ! -x "$build/tests/rdma/rdma_rank" ]; then
        echo "no rdma_rank in $build: hvd was built without UCX; install libucx-dev and build again"
    elif ! message=$("$checkout/contrib/packages.sh" install rdma 2>&1); then
        tail -n 1 <<<"$message"
    elif ! message=$(get_kernel 2>&1); then
        echo "no kernel: $(tail -n 1 <<<"$message"); as root: apt-get update"
    fi
}

# Downloads the current kernel of this release, unless it is in the cache, and keeps what a guest needs of it: vmlinuz,
# the modules, and their order.
get_kernel()
{
    local package part=$cache.part version
    package=$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: \(linux-image-[^ ]*\).*/\1/p' | head -n 1)
    [ -n "$package" ] || { echo 'apt knows no linux-image-amd64' && return 1; }
    [ "$(cat "$cache/package" 2>/dev/null)" != "$package" ] || return 0
    echo "# downloads $package" >&3
    rm -rf "$part" && mkdir -p "$part/modules" || return
    (cd "$part" && apt-get download --quiet=2 "$package" && dpkg-deb --extract "$package"_*.deb tree) || return
    version=$(ls "$part"/tree/lib/modules 2>/dev/null || ls "$part"/tree/usr/lib/modules) || return
    [ -d "$part/tree/lib" ] || ln -s usr/lib "$part/tree/lib"
    cp "$part"/tree/boot/vmlinuz-* "$part/vmlinuz" && take_modules "$part" "$version" || return
    rm -rf "$part/tree" "$part"/*.deb
    echo "$package" >"$part/package"
    rm -rf "$cache" && mv "$part" "$cache"
}

# take_modules PART VERSION
take_modules()
{
    local module file
    depmod --basedir "$1/tree" "$2" || return
    for module in $modules; do
        modprobe --dirname "$1/tree" --set-version "$2" --show-depends "$module" || return
    done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' | while read -r file; do
        case $file in
        *.xz) xz -dc "$file" >"$1/modules/$(basename "$file" .xz)" ;;
        *.zst) zstd -qdc "$file" >"$1/modules/$(basename "$file" .zst)" ;;
        *) cp "$file" "$1/modules/" ;;
        esac || return
        file=$(basename "$file")
        echo "${file%.ko*}.ko" >>"$1/modules/order"
    done
}

make_initramfs()
{
    local root=$work/root
    mkdir -p "$root"/{bin,etc,proc,sys,dev,tmp,run,root,var/tmp} "$work/share" || return
    cp "$(command -v busybox)" "$root/bin/busybox"
    cp "$checkout/tests/rdma/init" "$checkout/tests/rdma/guest.sh" "$root/"
    cp -r "$cache/modules" "$root/"
    # The programs in /usr need these files.
    cp -r /etc/ld.so.cache /etc/passwd /etc/group /etc/libibverbs.d /etc/alternatives "$root/etc/"
    printf '%s\n' "usr /usr cache=loose" "build $build cache=loose" "prefix $prefix cache=loose" "share /share cache=none" \
        >"$root/mounts"
    printf '%s\n' "programs=$build/tests" "prefix=$prefix" "times=$times" >"$root/settings"
    chmod +x "$root/init"
    (cd "$root" && find . | busybox cpio -o -H newc | gzip -1) >"$work/initramfs"
}

# --- guests ---

# start_guest NAME GUEST MODE CASES [OPTION...]: starts qemu in the background; sets $pid. Its console is LOGS/NAME.log.
start_guest()
{
    local name=$1 guest=$2 mode=$3 cases=$4 options=() folder
    shift 4
    for folder in usr=/usr build="$build" prefix="$prefix"; do
        options+=(-fsdev "local,id=${folder%%=*},path=${folder#*=},security_model=none,readonly=on,multidevs=remap"
            -device "virtio-9p-pci,fsdev=${folder%%=*},mount_tag=${folder%%=*}")
    done
    timeout --kill-after=5 "$guest_limit" qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m 2G \
        -nographic -no-reboot -nodefaults -serial stdio -kernel "$cache/vmlinuz" -initrd "$work/initramfs" \
        -append "console=ttyS0 loglevel=1 mitigations=off panic=1 net.ifnames=0 hvd.guest=$guest hvd.mode=$mode hvd.cases=$cases" \
        "${options[@]}" -fsdev "local,id=share,path=$work/share,security_model=none" \
        -device virtio-9p-pci,fsdev=share,mount_tag=share "$@" </dev/null >"$logs/$name.log" 2>&1 &
    pid=$!
    pids+=("$pid")
}

# follow_guest NAME PID: passes on the results of a guest while it runs, until it ends.
follow_guest()
{
    tail --pid="$2" --sleep-interval=0.5 --lines=+1 -f "$logs/$1.log" |
        sed -un 's/\r$//; /^TAP end$/d; s/^TAP //p' & # in the background, because a signal interrupts only `wait`
    wait $!
    wait "$2"
    if grep -q '^TAP end' "$logs/$1.log"; then
        echo "ok - $1 turns itself off in time"
    else
        echo "not ok - $1 turns itself off within $guest_limit s; $logs/$1.log ends with:"
        tail -n 20 "$logs/$1.log" | tr -d '\r' | sed 's/^/# /'
    fi
}

# run_guest NAME CASES: runs these cases on one guest.
run_guest()
{
    start_guest "$1" 1 alone "$2"
    follow_guest "$1" "$pid"
}

# Both guests are on one network, a socket that only this user can open.
run_pair()
{
    local first second
    start_guest guest-1 1 pair - -netdev "stream,id=n,server=on,addr.type=unix,addr.path=$work/network" \
        -device virtio-net-pci,netdev=n,romfile=,mac=52:54:00:00:00:01
    first=$pid
    until [ -S "$work/network" ] || ! kill -0 "$first" 2>/dev/null; do sleep 0.1; done
    start_guest guest-2 2 pair - -netdev "stream,id=n,server=off,addr.type=unix,addr.path=$work/network" \
        -device virtio-net-pci,netdev=n,romfile=,mac=52:54:00:00:00:02
    second=$pid
    follow_guest guest-1 "$first"
    follow_guest guest-2 "$second"
}

# --- main ---

# Numbers the results, and prints the plan. Fails if a promise has failed.
number()
{
    local line count=0 failed=0
    while IFS= read -r line; do
        case $line in
        'ok - '* | 'not ok - '*)
            count=$((count + 1))
            [ "${line%% - *}" = ok ] || failed=$((failed + 1))
            echo "${line%% - *} $count - ${line#* - }"
            ;;
        *) echo "$line" ;;
        esac
    done
    echo "1..$count"
    [ "$failed" = 0 ]
}

run_cases()
{
    local cases=${HVD_TEST_CASE-}
    if [ -n "$cases" ]; then
        [ "$cases" = pair ] || run_guest guest "$cases"
    else
        run_guest guest-a collectives,bench,death
        run_guest guest-b messages,forged
        run_guest guest-c forks,memlock
    fi
    case $cases in
    '' | pair) run_pair ;;
    esac
}

clean_up()
{
    [ ${#pids[@]} = 0 ] || { kill "${pids[@]}"; wait "${pids[@]}"; } 2>/dev/null
    rm -rf "$work"
}

main()
{
    local reason numbering
    exec 3>&1
    reason=$(obstacle)
    if [ -n "$reason" ]; then
        echo "1..0 # SKIP $reason"
        return
    fi
    mkdir -p "$logs"
    work=$(mktemp -d /var/tmp/hvd-rdma.XXXXXX)
    pids=()
    trap clean_up EXIT
    trap 'exit 143' TERM HUP INT
    make_initramfs || { echo 'not ok 1 - the initramfs of the guests can be made' && echo 1..1 && return 1; }
    # run_cases is not part of a pipeline, because clean_up needs its `pids`.
    exec 4> >(number)
    numbering=$!
    run_cases >&4 4>&-
    exec 4>&-
    wait "$numbering"
}

main
