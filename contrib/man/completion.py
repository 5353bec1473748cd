# SPDX-License-Identifier: Apache-2.0
"""Writes the completion of programs of hvd for a shell, from what they print for --help.

usage: completion.py bash|zsh PROGRAM

`hvdrun` also completes the command behind its options.
"""

import os
import re
import sys

import help_text

FILES = ('FILE', 'YAML', 'PYTHON')
DIRECTORIES = ('DIR',)
STARTERS = {'hvdrun': 'horovodrun'}  # programs that start a command, and their second name


def options_of(program):
    """Returns [(names, argument, explanation)]; argument is '' if the option has none."""
    found = {}
    for section in help_text.of(program)[1]:
        for part in section.parts:
            if isinstance(part, help_text.Entry) and part.is_option():
                for name, argument in part.names():
                    argument = '' if argument.startswith('--') else argument
                    found.setdefault(name, (argument, ' '.join(part.text)))
    return [(name, argument, text) for name, (argument, text) in found.items()]


def choices(argument):
    return argument.split('|') if re.fullmatch(r'[\w-]+(\|[\w-]+)+', argument) else []


# --- bash ---

def bash_case(options):
    """Returns the lines that complete the argument of the option before the word."""
    groups = {}
    for name, argument, _ in options:
        if argument in FILES:
            groups.setdefault('_filedir', []).append(name)
        elif argument in DIRECTORIES:
            groups.setdefault('_filedir -d', []).append(name)
        elif choices(argument):
            groups.setdefault(f'COMPREPLY=($(compgen -W "{" ".join(choices(argument))}" -- "$cur"))', []).append(name)
        elif argument:
            groups.setdefault(':', []).append(name)
    for action, names in sorted(groups.items()):
        yield f'    {" | ".join(names)})\n        {action}\n        return\n        ;;'


def bash(name, options):
    words = ' '.join(option for option, _, _ in options)
    with_argument = '|'.join(option for option, argument, _ in options if argument)
    command = '' if name not in STARTERS else f'''
    local word=1
    while ((word < cword)); do
        case ${{words[word]}} in
        {with_argument}) ((word += 2)) ;;
        -*) ((word += 1)) ;;
        *) _command_offset $word && return ;;
        esac
    done
    if [[ $cur != -* ]]; then
        COMPREPLY=($(compgen -c -- "$cur"))
        return
    fi'''
    cases = '\n'.join(bash_case(options))
    return f'''_{name.replace('-', '_')}()
{{
    local cur prev words cword
    _init_completion -n = || return
    case $prev in
{cases}
    esac{command}
    COMPREPLY=($(compgen -W "{words}" -- "$cur"))
}}
complete -F _{name.replace('-', '_')} {name} {STARTERS.get(name, '')}'''.rstrip()


# --- zsh ---

def zsh_spec(name, argument, text):
    quoted = re.sub(r"([\[\]:\\])", r'\\\1', text).replace("'", "'\\''")
    action = '_files' if argument in FILES else '_files -/' if argument in DIRECTORIES else f'({" ".join(choices(argument))})'
    tail = f':{argument.replace(":", chr(92) + ":")}:{action if action != "()" else " "}' if argument else ''
    return f"    '{name}[{quoted}]{tail}'"


def zsh(name, options):
    specs = [zsh_spec(*option) for option in options]
    if name in STARTERS:
        specs += ["    '(-)1:command:_command_names -e'", "    '*::arguments:_normal'"]
    return f'#compdef {name} {STARTERS.get(name, "")}'.rstrip() + '\n_arguments \\\n' + ' \\\n'.join(specs)


def main():
    shell, program = sys.argv[1:]
    name = os.path.basename(program)
    print({'bash': bash, 'zsh': zsh}[shell](name, options_of(program)))


if __name__ == '__main__':
    main()
