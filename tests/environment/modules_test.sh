#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `module load hvd` gives a shell all of hvd, and `module unload hvd` removes all of it: with Environment Modules, and
# with Lmod. env.sh does the same without modules. hvd is installed into a directory of the test, so the prefix in these
# files is replaced.
# usage: modules_test.sh SOURCE_ROOT BUILD PREFIX
root=$1 build=$2 installed_prefix=$3
# shellcheck source=tests/tap.sh
. "$root/tests/tap.sh"
tap_begin

destination=$work/installed
DESTDIR=$destination meson install -C "$build" --no-rebuild --quiet >"$work/out" 2>&1 ||
    tap_skip_all "meson install failed: $(tail -n 1 "$work/out")"
prefix=$destination$installed_prefix
mkdir "$work/both" "$work/tcl"
mkdir "$work/both/usr" "$work/tcl/usr"
for file in both/hvd both/hvd.lua tcl/hvd; do
    sed "s|$installed_prefix/|$prefix/|g" "$prefix/share/modulefiles/${file#*/}" >"$work/$file"
    sed "s|$installed_prefix/|/usr/|g" "$prefix/share/modulefiles/${file#*/}" >"$work/${file%/*}/usr/${file#*/}"
done
sed "s|$installed_prefix/|$prefix/|g" "$prefix/share/hvd/env.sh" >"$work/env.sh"

# in_shell COMMAND: runs it in a shell without variables of this one, in which a line `module` works
in_shell()
{
    env -i PATH=/usr/local/bin:/usr/bin:/bin HOME="$work" MODULEPATH="$modulefiles" \
        bash --norc -c "module() { eval \"\$($modulecmd bash \"\$@\")\"; }
            $1" >"$work/out" 2>&1
}

# finds PROMISE COMMAND EXPECTED: the last line that the command prints is this.
finds()
{
    in_shell "$2"
    [ "$(tail -n 1 "$work/out")" = "$3" ]
    report $? "$system: $1"
}

# Prints variables, functions and completions of the shell, without those of the module system itself.
state='state() {
    { env; declare -F; complete -p; } |
        grep -vE "^(LMOD|__LMOD|_ModuleTable|LOADEDMODULES|_LMFILES_|__MODULES|MODULE|_=)" | sort
}'

# leaves_nothing PROMISE SETUP: the state before loading hvd is that after unloading it, also if completions were used.
leaves_nothing()
{
    in_shell "$state
        $2
        [ ! -e $completion ] || . $completion
        state >$work/before; module load hvd; state >$work/loaded; _hvdrun hvdrun --sp hvdrun
        module unload hvd; state >$work/after
        grep -q ^PATH=$prefix $work/loaded && diff $work/before $work/after"
    report $? "$system: $1"
}

completes()
{
    [ -e "$completion" ] ||
        { tap_skip "$system: bash completes options" 'no bash-completion: apt-get install bash-completion' && return; }
    finds 'bash completes options' ". $completion; module load hvd
        COMP_WORDS=(horovodrun --spa) COMP_CWORD=1 COMP_LINE='horovodrun --spa' COMP_POINT=16
        complete -p horovodrun | grep -o -- '-F _hvdrun'
        _hvdrun horovodrun --spa horovodrun # 124: bash looks for the completion once more
        [ \$? = 124 ] && _hvdrun horovodrun --spa horovodrun; echo \${COMPREPLY[*]}" --spares
}

shows_man_pages()
{
    local page=$prefix/share/man/man1/hvdrun.1
    [ -e "$page" ] && command -v man >/dev/null ||
        { tap_skip "$system: man finds the pages" 'not built, or no man: apt-get install scdoc man-db' && return; }
    finds 'man finds the pages' 'module load hvd; man -w hvdrun' "$page"
    finds 'man finds the pages beside those of MANPATH' \
        'export MANPATH=/usr/share/man; module load hvd; man -w hvdrun' "$page"
}

check()
{
    finds 'the programs are in PATH' 'module load hvd; command -v hvdrun' "$prefix/bin/hvdrun"
    finds 'hvdrun starts ranks' 'module load hvd; hvdrun -np 2 --bind none true && echo ended' ended
    finds 'Python imports horovod' 'module load hvd; python3 -c "import horovod.common; print(horovod.__path__[0])"' \
        "$prefix/lib/hvd/python/horovod"
    finds 'pkg-config knows the library' 'module load hvd; pkg-config --exists hvd && echo yes' yes
    shows_man_pages
    completes
    finds 'PATH keeps its order if hvd is installed in /usr' \
        'export PATH=/mine:$PATH; before=$PATH; module load usr/hvd; echo "${PATH#$before} $PYTHONPATH"' ' /usr/lib/hvd/python'
    leaves_nothing 'unloading leaves nothing' true
    leaves_nothing 'unloading leaves what was set before' \
        'export MANPATH=/usr/share/man PYTHONPATH=/mine PKG_CONFIG_PATH=/p'
}

completion=/usr/share/bash-completion/bash_completion
# gives PROMISE SETUP EXPECTED: after env.sh was read twice, MANPATH is this.
gives()
{
    env -i PATH=/usr/bin:/bin sh -u -c "$2 . $work/env.sh; . $work/env.sh
        echo \$PATH; echo \${MANPATH-unset}" >"$work/out" 2>&1
    [ "$(cat "$work/out")" = "$prefix/bin:/usr/bin:/bin
$3" ]
    report $? "env.sh: $1"
}

gives 'MANPATH stays unset' '' unset
gives 'the pages precede those of MANPATH' 'export MANPATH=/m;' "$prefix/share/man:/m"
modulefiles=$work/both system='Environment Modules'
modulecmd=$(ls /usr/lib/*/modulecmd.tcl /usr/share/Modules/libexec/modulecmd.tcl 2>/dev/null | head -n 1)
if [ -n "$modulecmd" ]; then
    check
else
    tap_skip "$system" 'not installed: apt-get install environment-modules'
fi
system=Lmod
if modulecmd=$("$root/tests/lmod_env.sh" 2>"$work/out"); then
    check
    modulefiles=$work/tcl system='Lmod with the modulefile in Tcl'
    check
else
    tap_skip "$system" "$(tail -n 1 "$work/out")"
fi
tap_done
