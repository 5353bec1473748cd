#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The inputs of a target: files in corpus/TARGET, which people have written or which had found a
fault, and lines of corpus/TARGET.grown, which fuzzing has added, one input each, in base64.

usage: corpus.py unpack CORPUS DIRECTORY    write all inputs as files
       corpus.py pack CORPUS DIRECTORY      keep the files that are not in CORPUS as lines
"""

import base64
import hashlib
import pathlib
import sys

_MOST_BYTES = 1024  # of an input that is kept
_MOST_LINES = 400


def named(corpus):
    return [path.read_bytes() for path in sorted(corpus.glob('*'))]


def grown(corpus):
    file = corpus.with_suffix('.grown')
    return [base64.b64decode(line) for line in file.read_text().split()] if file.exists() else []


def unpack(corpus, directory):
    directory.mkdir(parents=True, exist_ok=True)
    for data in named(corpus) + grown(corpus):
        (directory / hashlib.sha1(data).hexdigest()).write_bytes(data)


def pack(corpus, directory):
    known = set(named(corpus))
    found = {path.read_bytes() for path in directory.iterdir()} - known
    kept = sorted((data for data in found if len(data) <= _MOST_BYTES),
                  key=lambda data: (len(data), data))[:_MOST_LINES]
    corpus.with_suffix('.grown').write_text(
        ''.join(base64.b64encode(data).decode() + '\n' for data in kept if data))


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in ('unpack', 'pack'):
        sys.exit(__doc__)
    command = unpack if sys.argv[1] == 'unpack' else pack
    command(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))


main()
