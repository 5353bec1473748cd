#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# exports.sh PLUGIN: the plugin exports what Slurm looks for and nothing else, and needs
# nothing but libc and hwloc: one process loads many plugins.
plugin=$1
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

check()
{
    if [ "$3" = "$4" ]; then
        echo "ok $1 - $2"
    else
        echo "not ok $1 - $2"
        printf '%s\n' "$3" | sed 's/^/# found: /'
        printf '%s\n' "$4" | sed 's/^/# expected: /'
    fi
}

symbols=$(nm -D --defined-only "$plugin" | awk '{print $3}' | sort)
check 1 'exports are exactly what Slurm looks for' "$symbols" "$expected"

needed=$(readelf -d "$plugin" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' |
    grep -Ev '^(libc|libm|libpthread|ld-linux[-a-z0-9_]*|libhwloc|libasan|libubsan|liblsan)\.so' | sort)
check 2 'needs nothing but libc and hwloc' "$needed" ''

foreign=$(nm -D --undefined-only "$plugin" | awk '{print $2}' | grep -E '^(spank_|slurm_)' |
    grep -Ev '^(spank_(context|get_item|getenv|setenv|unsetenv|option_register)|slurm_(error|info))$')
check 3 'of Slurm it needs the functions of the SPANK interface' "$foreign" ''
echo 1..3
