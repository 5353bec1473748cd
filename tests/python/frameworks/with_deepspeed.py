# SPDX-License-Identifier: Apache-2.0
"""Trains with DeepSpeed's ZeRO, stage 2."""

import os

os.environ['DS_ACCELERATOR'] = 'cpu'  # DeepSpeed reads this variable on import

import deepspeed  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import tiny  # noqa: E402

deepspeed.init_distributed(dist_backend='hvd')
layer = tiny.layer()
engine, *_ = deepspeed.initialize(
    model=layer, optimizer=torch.optim.SGD(layer.parameters(), 0.01),
    config={'train_micro_batch_size_per_gpu': 8, 'zero_optimization': {'stage': 2},
            'zero_allow_untested_optimizer': True, 'zero_force_ds_cpu_optimizer': False})
for x, y in torch.utils.data.DataLoader(tiny.images(dist.get_rank()), 8):
    engine.backward(torch.nn.functional.mse_loss(engine(x), y))
    engine.step()
tiny.tell_torch(layer.weight)
dist.destroy_process_group()
