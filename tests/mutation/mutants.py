# SPDX-License-Identifier: Apache-2.0
"""The lists of mutants, *.mutants in this folder. Each block of a list is a mutant:

    collectives/run/op_queue.c: at most as many operations as it has room for
    -    if (queue->count == queue->room) {
    +    if (queue->count > queue->room) {

The source, the promise of its header that the mutant breaks, and the change as a diff shows it: lines
that are removed, lines that are added, and lines that stay, which begin with a space. The lines that are
removed or stay must occur in the source exactly once, one after the other. Empty lines and lines that begin with # end a block.
"""

import collections

Mutant = collections.namedtuple('Mutant', 'source promise old new')
Mutant.__doc__ = """old and new: whole lines of the source, the last one with its newline."""


class ListError(Exception):
    """A list of mutants has a mistake, which the text describes."""


def blocks(lines):
    """Yields the blocks of a list, each as (number of its first line, its lines)."""
    block, first = [], 0
    for number, line in enumerate(lines, 1):
        if line == '\n' or line.startswith('#'):
            if block:
                yield first, block
            block = []
            continue
        if not block:
            first = number
        block.append(line)
    if block:
        yield first, block


def side(lines, signs):
    return ''.join(line[1:] for line in lines if line[0] in signs)


def mutant_of(block, place):
    source, colon, promise = block[0].strip().partition(': ')
    wrong = [line for line in block[1:] if line[0] not in '-+ ']
    if not colon or wrong or not side(block[1:], '- '):
        raise ListError(f'{place}: expected "SOURCE: PROMISE" and lines that begin with -, + or a '
                        f'space, found "{(wrong or block)[0].rstrip()}"')
    return Mutant(source, promise, side(block[1:], '- '), side(block[1:], '+ '))


def read(path):
    """Returns the mutants of a list; raises ListError."""
    with open(path) as lines:
        return [mutant_of(block, f'{path}:{first}') for first, block in blocks(lines)]


def mutated(text, mutant):
    """Returns the text of the source with the mutant; raises ListError."""
    count = ('\n' + text).count('\n' + mutant.old)
    if count != 1:
        raise ListError(f'its lines occur {count} times in {mutant.source}, expected once')
    return ('\n' + text).replace('\n' + mutant.old, '\n' + mutant.new)[1:]
