# SPDX-License-Identifier: Apache-2.0
"""Makes torch's GradScaler work with distributed optimizers.

GradScaler divides the gradients by its scale, and skips the step if one of them is not finite. It
does so before it calls the optimizer's step(), so it must wait for the reduced gradients first.
"""

import functools
import warnings

import torch


def teach_scalers():
    """Makes GradScaler call the method ``_unscale_together`` of an optimizer that has one, with
    GradScaler's own check as the argument. Further calls have no effect."""
    kind = next((kind for kind in torch.cuda.amp.GradScaler.__mro__
                 if '_unscale_grads_' in vars(kind)), None)
    if kind is None:
        warnings.warn('hvd does not know the GradScaler of this torch: call '
                      'optimizer.synchronize() before scaler.unscale_(optimizer), and '
                      'scaler.step(optimizer) within optimizer.skip_synchronize()')
    elif not hasattr(kind._unscale_grads_, 'asks_optimizer'):
        kind._unscale_grads_ = _asking(kind._unscale_grads_)


def _asking(unscale_gradients):
    @functools.wraps(unscale_gradients)
    def unscale(scaler, optimizer, *arguments, **options):
        look = functools.partial(unscale_gradients, scaler, optimizer, *arguments, **options)
        together = getattr(optimizer, '_unscale_together', None)
        return look() if together is None else together(look)

    unscale.asks_optimizer = True
    return unscale
