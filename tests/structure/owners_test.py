# SPDX-License-Identifier: Apache-2.0
"""Each part of struct hvd_job has one owner: only the pair of files that defines its struct, or its folder if that
is not core, reads and changes its fields. Other files call functions of the owner.

usage: owners_test.py SOURCE_ROOT"""

import os
import re
import sys

import sources

STATE = 'collectives/core/job_state.h'
CORE = os.path.dirname(STATE)

# Facts that do not change once the job is connected, and that every part may read.
FACTS = {
    'boot': 'ranks, nodes and hosts of the job',
    'settings': 'what the environment says, read once',
    'geometry': 'sizes of the shared memory, planned once',
}


def members(text):
    """{member of struct hvd_job: the struct that it is or points to}."""
    body = re.search(r'struct hvd_job \{(.*?)\n\};', text, re.S).group(1)
    return {name: struct for struct, name in re.findall(r'struct (\w+) \*?(\w+);', body)}


def definitions(texts):
    """{struct: the header that defines it}."""
    return {struct: file for file, text in texts.items() if file.endswith('.h')
            for struct in re.findall(r'^struct (\w+) \{', text, re.M)}


def owner(file):
    """The files that count as one owner: a pair in core, a folder elsewhere."""
    return os.path.splitext(file)[0] if os.path.dirname(file) == CORE else os.path.dirname(file)


def accesses(text, parts):
    """Yields (line, member, expression) for each access to a field of a part, through the job or through a pointer to
    the part that the text declares. Accesses through a variable of the struct itself are not found."""
    pointers = {name: part for part, struct in parts.items()
                for name in re.findall(rf'struct {struct} \*(?:const )?(\w+)\s*[,;=)]', text)}
    for number, line in enumerate(text.split('\n'), 1):
        for match in re.finditer(r'\bjob(?:->|\.)(\w+)(?:->|\.)\w+', line):
            if match.group(1) in parts:
                yield number, match.group(1), match.group()
        for match in re.finditer(r'(?<![\w.>])(\w+)->\w+', line):
            if match.group(1) in pointers and match.group(1) != 'job':
                yield number, pointers[match.group(1)], match.group()


def trespasses(texts):
    """Accesses to fields of a part from files that do not own it."""
    parts = {name: struct for name, struct in members(texts[STATE]).items() if name not in FACTS}
    defined = definitions(texts)
    # If only a .c file defines the struct, no other file can access its fields.
    owners = {name: owner(defined[struct]) for name, struct in parts.items() if struct in defined}
    found = []
    for file, text in texts.items():
        known = {name: struct for name, struct in parts.items() if name in owners and owners[name] != owner(file)}
        if os.path.basename(STATE) in text or os.path.dirname(file) == CORE:
            found += [f'{file}:{line}: {expression} belongs to {owners[name]}'
                      for line, name, expression in accesses(sources.strip(text), known)]
    return found


STATE_TEXT = """struct hvd_job {
    struct hvd_settings settings;
    struct hvd_bell bell; /* job->bell.rings */
    struct hvd_net *net;
};
"""
SMALL = {
    STATE: STATE_TEXT,
    CORE + '/bell.h': 'struct hvd_bell {\n    int rings;\n};\n',
    CORE + '/bell.c': 'bell->rings++; job->bell.rings++;',
    CORE + '/settings.h': 'struct hvd_settings {\n    int a;\n};\n',
    'collectives/net/net.h': 'struct hvd_net {\n    int fd;\n};\n',
    'collectives/net/other.c': 'static int of(struct hvd_net *net) { return net->fd; }',
    CORE + '/poll.c': 'static void f(const struct hvd_bell *b, struct hvd_job *job)\n'
                      '{\n    use(b->rings);\n    use(job->bell.rings);\n    use(job->net->fd);\n'
                      '    use(&job->bell, job->net, job->settings.a, "job->bell.rings");\n}\n',
}
EXPECTED = [f'{CORE}/poll.c:3: b->rings belongs to {CORE}/bell',
            f'{CORE}/poll.c:4: job->bell.rings belongs to {CORE}/bell',
            f'{CORE}/poll.c:5: job->net->fd belongs to collectives/net']


def main(root):
    tree = sources.Tree(root)
    texts = {file: tree.text(file) for file in tree.files if file.endswith(('.c', '.h'))}
    parts = members(texts[STATE])
    found = trespasses(texts)
    print(f'# {len(found)} accesses to {len(parts) - len(FACTS)} parts')
    return sources.report([
        ('an access to a field of another owner is found', sorted(set(trespasses(SMALL)) ^ set(EXPECTED))),
        ('all may read what is a fact of the job', sorted(FACTS.keys() - parts.keys())),
        ('only the owner of a part of the job reads and changes its fields', found),
    ])


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
