#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Static analysis of what a build compiles, tests left out: prints what is found.

usage: analysis.py clang-tidy|cppcheck|gcc BUILD    exit status 0: nothing; 1: something

A comment in the source suppresses a false report: NOLINTNEXTLINE(check) or cppcheck-suppress id.
`.clang-tidy` says which checks clang-tidy makes. error.c is left out, because it defines what analysis.h redefines.
"""

import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

_LEFT_OUT = ('tests/', 'build', 'gpu_binding/base/error.c')

_FIRST = ROOT / 'tests' / 'analysis.h'

# gcc 12 reports false leaks and nulls: it does not follow memory into structs that functions fill, nor
# loops that fill arrays. Clang's analyzer looks for the same faults.
_GCC = ['-O1', '-fanalyzer', '-Wno-analyzer-malloc-leak', '-Wno-analyzer-null-dereference',
        '-Wno-analyzer-null-argument', '-Wno-analyzer-use-of-uninitialized-value',
        '-Wno-unused-value', '-fdiagnostics-plain-output']

# The suppressions are for false reports of cppcheck 2.10: memory that a struct keeps, an index into an
# array behind a pointer, a number that hvd_fail has made negative. SPANK_PLUGIN is a macro of Slurm.
_CPPCHECK = ['cppcheck', '--quiet', '--enable=warning,performance', '--std=c11', '--inline-suppr',
             '--suppress=internalAstError', '--suppress=missingInclude', '--suppress=memleak',
             '--suppress=objectIndex:collectives/run/run_steps.c',
             '--suppress=zerodivcond:collectives/gpu/gpu_runtime.c', '-D_GNU_SOURCE',
             '-DSPANK_PLUGIN(name,version)=', f'--include={_FIRST}', '-I', str(ROOT),
             '-j', str(os.cpu_count())]


def compiled(build):
    """Returns the entry of each source in the build's list of commands."""
    sources = {}
    for entry in json.loads((build / 'compile_commands.json').read_text()):
        path = (pathlib.Path(entry['directory']) / entry['file']).resolve()
        if path.suffix == '.c' and path.is_relative_to(ROOT) and path.exists():
            name = str(path.relative_to(ROOT))
            if not name.startswith(_LEFT_OUT):
                sources.setdefault(name, entry)
    return sources


def output_of(command, directory=ROOT):
    run = subprocess.run(command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         universal_newlines=True)
    return run.stdout


def in_parallel(function, items):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return '\n'.join(filter(None, pool.map(function, items)))


def clang_tidy(build, sources):
    """Runs clang-tidy, which takes its checks from the file .clang-tidy above each source."""
    def look(name):
        text = output_of(['clang-tidy', '-p', str(build), '--quiet',
                          f'--extra-arg=-include{_FIRST}', name])
        return '\n'.join(line for line in text.splitlines() if ' generated.' not in line)

    return in_parallel(look, sources)


def gcc(build, sources):
    def look(entry):
        words = shlex.split(entry['command'])
        kept, skip = [], False
        for word in words[1:]:
            if skip:
                skip = False
            elif word in ('-MF', '-MQ', '-o'):
                skip = True
            elif word not in ('-MD', 'gcc', '-Werror'):
                kept.append(word)
        return output_of(['gcc', *kept, *_GCC, '-include', str(_FIRST), '-o', '/dev/null'],
                         entry['directory'])

    return in_parallel(look, sources.values())


def cppcheck(build, sources):
    return output_of(_CPPCHECK + list(sources))


def main():
    tools = {'clang-tidy': clang_tidy, 'gcc': gcc, 'cppcheck': cppcheck}
    if len(sys.argv) != 3 or sys.argv[1] not in tools:
        sys.exit(__doc__)
    build = pathlib.Path(sys.argv[2]).resolve()
    found = tools[sys.argv[1]](build, compiled(build)).strip()
    print(found)
    sys.exit(1 if 'warning:' in found or 'error:' in found else 0)


if __name__ == '__main__':
    main()
