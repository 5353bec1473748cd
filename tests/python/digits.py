# SPDX-License-Identifier: Apache-2.0
"""TAP lines about trainings on the digits data set."""

import launch


def accurate(report, who, facts, output, least=0.95, measure='accuracy'):
    """Reports whether the last epoch recognises at least this fraction of the test images."""
    share = facts[-1][measure] if facts else 0
    report.line(share >= least, f'{who} recognise {least:.0%} of the held-out digits',
                f'accuracy {share}\n{output}')
    launch.comment(f'{who}: accuracy {share:.4f}')


def same_loss(report, promise, pairs, tolerance, output):
    """Reports whether two runs have the same loss in all of these pairs of epochs, of which there
    must be at least one."""
    worst = max((abs(a['loss'] / b['loss'] - 1) for a, b in pairs), default=1)
    report.line(worst < tolerance, f'{promise} within {tolerance:.0e}',
                f'relative difference {worst}\n{output}')
    launch.comment(f'largest relative difference of the loss: {worst:.2e}')
