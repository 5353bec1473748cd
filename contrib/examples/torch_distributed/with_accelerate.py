#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the network of ddp.py with Hugging Face Accelerate.

Start it alone, or with hvdrun, srun --hvd or torchrun; `accelerate launch` is not needed. The
script creates the process group, because on CPUs Accelerate itself would create one of Gloo.
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader

from ddp import Net, join_job, load_images


def accuracy(accelerator, model, loader):
    """Returns the fraction of correct predictions. gather_for_metrics drops the images that
    Accelerate adds to make the last batches equal."""
    model.eval()
    right = []
    for images, labels in loader:
        with torch.no_grad():
            found = model(images).argmax(1)
        right.append(accelerator.gather_for_metrics(found == labels))
    return torch.cat(right).float().mean().item()


def main():
    join_job('hvd')
    accelerator = Accelerator(cpu=True)
    set_seed(1)
    train_set, held_out = load_images()
    net = Net()
    model, optimizer, loader, test_loader = accelerator.prepare(
        net, torch.optim.SGD(net.parameters(), 0.02 * accelerator.num_processes, momentum=0.9),
        DataLoader(train_set, batch_size=16, shuffle=True, drop_last=True),
        DataLoader(held_out, batch_size=64))

    for epoch in range(8):
        model.train()
        for images, labels in loader:
            optimizer.zero_grad()
            accelerator.backward(F.cross_entropy(model(images), labels))
            optimizer.step()
        share = accuracy(accelerator, model, test_loader)
        if accelerator.is_main_process:
            print(f'epoch {epoch + 1:2d}  accuracy {share:.4f}', flush=True)
    dist.destroy_process_group()


if __name__ == '__main__':
    main()
