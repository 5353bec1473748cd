# SPDX-License-Identifier: Apache-2.0
"""Elastic examples under hvdrun: a rank is killed, and the training of the others ends as one that
nobody disturbed. elastic_examples_check.py SLOT:SCRIPT... says which to kill. Prints TAP; starts
its ranks itself."""

import sys

import launch
from elastic_example import train_example
from report import run_check


def check(report, slot, script):
    """Kills the slot. One rank alone takes the same steps as many, so it shows what is right."""
    alone, _, output = train_example(script, 1, {})
    report.line(alone is not None and alone > 0.93, f'{script} recognises 93 % of the digits',
                output)
    accuracy, ranks, output = train_example(script, 4, {2: slot})
    report.line(accuracy is not None and ranks == 3 and output.count('begins anew') == 3,
                f'{script} ends on three ranks when slot {slot} of four is killed', output)
    report.line(None not in (accuracy, alone) and abs(accuracy - alone) <= 0.012,
                f'{script} ends with the same accuracy', f'{accuracy}, alone {alone}')


def main(report):
    for argument in sys.argv[1:]:
        slot, script = argument.split(':')
        check(report, int(slot), script)


if __name__ == '__main__':
    run_check(main, 4, f'{launch.NEEDS}, keras, sklearn', with_hvdrun=True)
