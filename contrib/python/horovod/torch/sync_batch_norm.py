# SPDX-License-Identifier: Apache-2.0
"""SyncBatchNorm: batch normalisation with the statistics of the batches of all ranks."""

import torch
import torch.nn.functional as F
from torch.autograd.function import once_differentiable

from horovod.common.basics import Sum
from horovod.common.process_sets import global_process_set
from horovod.common.requests import synchronize, tensor_name
from horovod.torch.collectives.allgather import allgather_async
from horovod.torch.collectives.allreduce import allreduce_
from horovod.torch.dynamo import keep_out


class SyncBatchNorm(torch.nn.modules.batchnorm._BatchNorm):
    """Batch normalisation in training with the statistics of all ranks: the result is that of
    torch's BatchNorm on one rank with the concatenated batch.

    The input has the shape [rows, num_features, ...], on any device, in any memory format and
    floating point type. Ranks may have different numbers of rows, also 0. In evaluation the ranks
    do not communicate. The arguments are those of torch's BatchNorm; process_set: the ranks whose
    batches are normalised together. ValueError if a feature has fewer than two values on all ranks
    together.

    On a GPU everything runs on the current stream. The host does not wait for the GPU if NCCL is
    used and this rank has at least two values of each feature.
    """

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True,
                 track_running_stats=True, process_set=global_process_set):
        super().__init__(num_features, eps, momentum, affine, track_running_stats)
        self.process_set = process_set
        self._label = tensor_name('sync_batch_norm', None, process_set)
        keep_out()

    def _check_input_dim(self, batch):
        if batch.dim() < 2 or batch.shape[1] != self.num_features:
            raise ValueError(f'SyncBatchNorm expects input of shape [rows, {self.num_features}, '
                             f'...], not {list(batch.shape)}')

    def forward(self, batch):
        self._check_input_dim(batch)
        if not self.training or self.process_set.size() == 1:
            return super().forward(batch)
        result, count, mean, variance = _Normalise.apply(
            batch, self.weight, self.bias, self.eps, self._label, self.process_set)
        if self.track_running_stats:
            self._follow(mean, variance * (count / (count - 1)))
        return result

    @torch.no_grad()
    def _follow(self, mean, variance):
        """Updates the running statistics with those of this batch."""
        self.num_batches_tracked.add_(1)
        for running, now in ((self.running_mean, mean), (self.running_var, variance)):
            momentum = self.momentum
            if momentum is None:  # cumulative average over all batches
                momentum = self.num_batches_tracked.to(running.dtype).reciprocal()
            running.lerp_(now.to(running.dtype), momentum)


class _Normalise(torch.autograd.Function):
    """Normalises a batch. Also returns the number of values per feature, their mean and their
    variance over all ranks.

    The gradient of the batch is the gradient of the sum of all ranks' losses, as with one batch on
    one rank. The gradients of weight and bias are this rank's share, which DistributedOptimizer
    reduces.
    """

    @staticmethod
    def forward(ctx, batch, weight, bias, eps, label, process_set):
        wide = _wide(batch)
        count, mean, variance = _combine(synchronize(
            allgather_async(_statistics(wide), f'{label}.forward', process_set)))
        # A rank with two values of its own need not check the count; on a GPU, reading it would
        # make the host wait.
        if batch.numel() < 2 * batch.shape[1] and count < 2:
            raise ValueError('SyncBatchNorm needs more than one value per feature on all ranks '
                             f'together in training, got {int(count)}: input of shape '
                             f'{list(batch.shape)} on this rank')
        mean, variance = mean.to(wide.dtype), variance.to(wide.dtype)
        ctx.save_for_backward(batch, weight, count, mean, (variance + eps).rsqrt())
        ctx.exchange = (label, process_set)
        ctx.mark_non_differentiable(count, mean, variance)
        result = F.batch_norm(wide, mean, variance, None if weight is None else weight.to(wide),
                              None if bias is None else bias.to(wide), eps=eps)
        return result.to(batch.dtype), count, mean, variance

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient, *_):
        batch, weight, count, mean, scale = ctx.saved_tensors
        label, process_set = ctx.exchange
        shape = [1, -1] + [1] * (batch.dim() - 2)
        gradient = gradient.to(mean.dtype)
        normal = (_wide(batch) - mean.view(shape)) * scale.view(shape)
        sums = torch.stack([_sum(gradient), _sum(gradient * normal)])
        of_weight, of_bias = (None, None) if weight is None else (
            sums[1].to(weight.dtype), sums[0].to(weight.dtype))
        if not ctx.needs_input_grad[0]:
            return None, of_weight, of_bias, None, None, None
        means = allreduce_(sums.clone(), name=f'{label}.backward', op=Sum,
                           process_set=process_set) / count
        if weight is not None:
            scale = scale * weight.to(scale)
        result = scale.view(shape) * (
            gradient - means[0].view(shape) - normal * means[1].view(shape))
        return result.to(batch.dtype), of_weight, of_bias, None, None, None


def _wide(batch):
    """Returns the batch in a type that is precise enough for sums: float32 or float64."""
    return batch if batch.dtype is torch.float64 else batch.float()


def _sum(values):
    """Sums over all dimensions except that of the features."""
    return values.sum([dim for dim in range(values.dim()) if dim != 1])


def _statistics(batch):
    """Returns one row with the number of values per feature, their means, and the sums of their
    squared distances from the means."""
    features = batch.shape[1]
    count = batch.numel() // features
    if count == 0:
        return torch.zeros(1, 1 + 2 * features, dtype=torch.float64, device=batch.device)
    variance, mean = torch.var_mean(
        batch, [dim for dim in range(batch.dim()) if dim != 1], unbiased=False)
    return torch.cat([mean.new_full((1,), count, dtype=torch.float64), mean.double(),
                      variance.double() * count])[None]


def _combine(rows):
    """Returns count, mean and variance over all ranks from the row of each rank."""
    counts, means, distances = rows.split([1, rows.shape[1] // 2, rows.shape[1] // 2], 1)
    count = counts.sum()
    mean = (counts * means).sum(0) / count
    return count, mean, (distances + counts * (means - mean).square()).sum(0) / count
