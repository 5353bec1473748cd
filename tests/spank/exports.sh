#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# exports.sh PLUGIN: the plugin exports only the symbols that Slurm looks for, and needs only
# libc and hwloc, because one process loads many plugins.
plugin=$1
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
tap_begin
expected='plugin_name
plugin_type
plugin_version
slurm_spank_exit
slurm_spank_init
slurm_spank_init_post_opt
slurm_spank_local_user_init
slurm_spank_task_init
slurm_spank_user_init
spank_plugin_version'

# check PROMISE FOUND EXPECTED
check()
{
    printf 'found:\n%s\nexpected:\n%s\n' "$2" "$3" >"$work/out"
    [ "$2" = "$3" ]
    report $? "$1"
}

symbols=$(nm -D --defined-only "$plugin" | awk '{print $3}' | sort)
check 'the plugin exports exactly the symbols that Slurm looks for' "$symbols" "$expected"

needed=$(readelf -d "$plugin" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' |
    grep -Ev '^(libc|libm|libpthread|ld-linux[-a-z0-9_]*|libhwloc|libasan|libubsan|liblsan)\.so' | sort)
check 'the plugin needs no libraries but libc and hwloc' "$needed" ''

foreign=$(nm -D --undefined-only "$plugin" | awk '{print $2}' | grep -E '^(spank_|slurm_)' |
    grep -Ev '^(spank_(context|get_item|getenv|setenv|unsetenv|strerror|option_register)|slurm_(error|info))$')
check 'the plugin uses no functions of Slurm but those of the SPANK interface' "$foreign" ''
tap_done
