#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads and writes the inputs of a target. Files in corpus/TARGET were written by people or have found
a fault. Lines of corpus/TARGET.grown were added by fuzzing: each is an input in base64.

usage: corpus.py unpack CORPUS DIRECTORY    write all inputs as files
       corpus.py pack CORPUS DIRECTORY      write the files that are not in CORPUS as lines
"""

import base64
import hashlib
import pathlib
import sys

_MOST_BYTES = 1024  # limit for an input that is kept
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
