# SPDX-License-Identifier: Apache-2.0
"""Elastic examples under hvdrun: a rank is killed, and the others finish the training with the
usual accuracy. Arguments: SLOT:SCRIPT..., the slot to kill for each script. Prints TAP; starts its
ranks itself."""

import sys

import launch
from elastic_example import train_example
from report import run_check


def check(report, slot, script):
    """Runs the script with and without a kill of the slot. One rank takes the same steps as
    several, so a run of one rank gives the expected accuracy."""
    alone, _, output = train_example(script, 1, {})
    report.line(alone is not None and alone > 0.93, f'{script} recognises 93 % of the digits',
                output)
    accuracy, ranks, output = train_example(script, 4, {2: slot})
    report.line(accuracy is not None and ranks == 3 and output.count(' restarts') == 3,
                f'{script} finishes on three ranks when slot {slot} of four is killed', output)
    report.line(None not in (accuracy, alone) and abs(accuracy - alone) <= 0.012,
                f'{script} ends with the same accuracy', f'{accuracy}, alone {alone}')


def main(report):
    for argument in sys.argv[1:]:
        slot, script = argument.split(':')
        check(report, int(slot), script)


if __name__ == '__main__':
    run_check(main, 4, f'{launch.NEEDS}, keras, sklearn', with_hvdrun=True)
