# SPDX-License-Identifier: Apache-2.0
"""Prints the findings of probes as lines, which device.sh puts into its summary."""

import os

RANK = int(os.environ.get('HOROVOD_RANK', 0))


class Findings:
    """Prints lines that begin with "ok", "BAD" for a defect, or "fig" for a figure. Every rank prints its
    defects; only rank 0 prints the rest."""

    def __init__(self):
        self.defects = 0

    def _say(self, kind, text):
        if RANK == 0 or kind == 'BAD':
            print(f'{kind:3} {text}' + (f' (rank {RANK})' if RANK else ''), flush=True)

    def check(self, is_good, promise, detail=''):
        """Prints whether a promise is kept; ``detail`` says what was found instead."""
        self.defects += not is_good
        self._say('ok' if is_good else 'BAD',
                  promise if is_good or not detail else f'{promise}: {detail}')

    def figure(self, text):
        """Prints a figure."""
        self._say('fig', text)

    def check_call(self, promise, function):
        """Calls a function that must not raise."""
        try:
            function()
            self.check(True, promise)
        except Exception as error:  # pylint: disable=broad-except
            self.check(False, promise, first_line(error))


def first_line(error):
    """Returns the exception in one line."""
    return f'{type(error).__name__}: {(str(error) or "no text").splitlines()[0][:300]}'
