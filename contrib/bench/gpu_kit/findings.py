# SPDX-License-Identifier: Apache-2.0
"""Lines about what probes find. device.sh puts them into its summary."""

import os

RANK = int(os.environ.get('HOROVOD_RANK', 0))


class Findings:
    """Prints "ok", "BAD" for a defect, and "fig" for a figure; on rank 0, and defects on every
    rank."""

    def __init__(self):
        self.defects = 0

    def _say(self, kind, text):
        if RANK == 0 or kind == 'BAD':
            print(f'{kind:3} {text}' + (f' (rank {RANK})' if RANK else ''), flush=True)

    def check(self, is_good, promise, detail=''):
        """A promise that is kept or not; ``detail`` says what was found instead."""
        self.defects += not is_good
        self._say('ok' if is_good else 'BAD',
                  promise if is_good or not detail else f'{promise}: {detail}')

    def figure(self, text):
        """Something measured."""
        self._say('fig', text)

    def check_call(self, promise, function):
        """A function that must not raise."""
        try:
            function()
            self.check(True, promise)
        except Exception as error:  # pylint: disable=broad-except
            self.check(False, promise, first_line(error))


def first_line(error):
    """The exception in one line."""
    return f'{type(error).__name__}: {(str(error) or "no text").splitlines()[0][:300]}'
