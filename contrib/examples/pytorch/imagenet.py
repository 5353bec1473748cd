#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains an image classifier with the methods that are usual for ImageNet.

    srun --hvd python3 imagenet.py --data images.npz --epochs 90 --checkpoint-dir checkpoints

It uses large batches and a learning rate that warms up and then falls. It writes a checkpoint after
each epoch, from which a later job continues.

With sbatch --signal=USR1@120 the script also writes a checkpoint two minutes before the time limit.
The next job starts that epoch again, with the parameters reached so far.

images.npz has the arrays train_images [n, 3, side, side] (uint8), train_labels [n], test_images and
test_labels. Without --data the script generates images: a pattern for each class, with noise.
"""

import argparse
import os

import numpy
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import devices
import horovod.torch as hvd
import networks
from devices import say


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0],
                                     formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument('--data', metavar='FILE.npz', help='images and labels; see above')
    parser.add_argument('--images', type=int, default=2048, help='number of generated images')
    parser.add_argument('--image-size', type=int, default=64, help='side of generated images')
    parser.add_argument('--model', default='resnet50',
                        help='a network of networks.py or torchvision')
    parser.add_argument('--epochs', type=int, default=90)
    parser.add_argument('--batch-size', type=int, default=32, help='images per rank and pass')
    parser.add_argument('--batches-per-allreduce', type=int, default=1,
                        help='forward and backward passes of each rank per step')
    parser.add_argument('--base-lr', type=float, default=0.0125,
                        help='learning rate for one rank and one pass')
    parser.add_argument('--warmup-epochs', type=float, default=5)
    parser.add_argument('--momentum', type=float, default=0.9)
    parser.add_argument('--wd', type=float, default=5e-5, help='weight decay')
    parser.add_argument('--seed', type=int, default=42)
    parser.add_argument('--fp16-allreduce', action='store_true',
                        help='send gradients in half precision')
    parser.add_argument('--sync-batch-norm', action='store_true',
                        help='normalise over the batches of all ranks, if these are small')
    parser.add_argument('--checkpoint-dir', metavar='DIR',
                        help='save checkpoints here, and continue from the newest one')
    return parser.parse_args()


def generated(count, side, classes=10):
    """Generates images, the same on all ranks."""
    generator = torch.Generator().manual_seed(0)
    patterns = torch.rand(classes, 3, side, side, generator=generator)
    labels = torch.randint(classes, (count,), generator=generator)
    noise = torch.rand(count, 3, side, side, generator=generator)
    return TensorDataset(0.5 * patterns[labels] + 0.5 * noise, labels)


def load(arguments):
    """Returns the training set and the test set."""
    if arguments.data is None:
        everything = generated(arguments.images, arguments.image_size)
        return torch.utils.data.random_split(
            everything, [arguments.images * 3 // 4, arguments.images - arguments.images * 3 // 4],
            generator=torch.Generator().manual_seed(0))
    with numpy.load(arguments.data) as file:
        return [TensorDataset(torch.from_numpy(file[f'{part}_images']).float() / 255,
                              torch.from_numpy(file[f'{part}_labels']).long())
                for part in ('train', 'test')]


def loader_of(dataset, arguments, is_training):
    sampler = DistributedSampler(dataset, hvd.size(), hvd.rank(), shuffle=is_training,
                                 seed=arguments.seed)
    return DataLoader(dataset, arguments.batch_size, sampler=sampler)


def rate(epoch, arguments):
    """Returns the factor for the base learning rate at a (fractional) epoch. During the warm-up it
    grows from 1 to the number of batches that all ranks together use in a step. It is divided by
    ten after a third and after two thirds of the epochs."""
    full = hvd.size() * arguments.batches_per_allreduce
    if epoch < arguments.warmup_epochs:
        return 1 + (full - 1) * epoch / arguments.warmup_epochs
    return full * 0.1 ** sum(epoch >= arguments.epochs * third / 3 for third in (1, 2))


def train(model, optimizer, loader, epoch, arguments, device):
    """Trains one epoch. Returns the mean loss over all ranks, or None if the job has to stop."""
    model.train()
    loader.sampler.set_epoch(epoch)
    losses = torch.zeros(2)
    for number, (images, labels) in enumerate(loader):
        for group in optimizer.param_groups:
            group['lr'] = arguments.base_lr * rate(epoch + number / len(loader), arguments)
        loss = F.cross_entropy(model(images.to(device)), labels.to(device))
        (loss / arguments.batches_per_allreduce).backward()
        losses += torch.tensor([loss.item(), 1.0])
        if (number + 1) % arguments.batches_per_allreduce == 0 or number + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
            if hvd.should_stop():  # the same answer on all ranks
                return None
    total, count = hvd.allreduce(losses, op=hvd.Sum, name='losses').tolist()
    return total / count


@torch.no_grad()
def accuracy(model, loader, device):
    model.eval()
    right = torch.zeros(2)
    for images, labels in loader:
        answers = model(images.to(device)).argmax(1).cpu()
        right += torch.tensor([(answers == labels).sum().item(), float(len(labels))])
    good, count = hvd.allreduce(right, op=hvd.Sum, name='right').tolist()
    return good / count


def path_of(epoch, arguments):
    return os.path.join(arguments.checkpoint_dir, f'checkpoint-{epoch}.pt')


def resume(model, optimizer, arguments):
    """Loads the newest checkpoint, if there is one; returns the first epoch to train. Only rank 0
    reads the file, which other nodes may not see, and broadcasts its state."""
    epoch = 0
    if arguments.checkpoint_dir and hvd.rank() == 0:
        while os.path.exists(path_of(epoch + 1, arguments)):
            epoch += 1
        if os.path.exists(path_of(epoch, arguments)):
            saved = torch.load(path_of(epoch, arguments), map_location='cpu')
            model.load_state_dict(saved['model'])
            optimizer.load_state_dict(saved['optimizer'])
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    return hvd.broadcast_object(epoch, root_rank=0, name='epoch')


def save(model, optimizer, epoch, arguments):
    """Writes a new file and renames it, so that the checkpoint is always complete."""
    os.makedirs(arguments.checkpoint_dir, exist_ok=True)
    path = path_of(epoch, arguments)
    torch.save({'model': model.state_dict(), 'optimizer': optimizer.state_dict()}, path + '.new')
    os.replace(path + '.new', path)


def with_shared_statistics(model):
    """Replaces each BatchNorm of the model by a SyncBatchNorm; returns the model."""
    for name, child in model.named_children():
        if isinstance(child, torch.nn.modules.batchnorm._BatchNorm):
            setattr(model, name, hvd.SyncBatchNorm(child.num_features, child.eps, child.momentum))
        else:
            with_shared_statistics(child)
    return model


def main():
    arguments = parse_arguments()
    hvd.init()
    hvd.stop_on_signals()  # SIGTERM and SIGUSR1 make should_stop() true
    torch.manual_seed(arguments.seed)
    device = devices.choose()
    train_set, test_set = load(arguments)
    classes = max(label for _, label in train_set).item() + 1
    model = networks.by_name(arguments.model, classes)
    if arguments.sync_batch_norm:
        model = with_shared_statistics(model)
    model.to(device)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=arguments.base_lr, momentum=arguments.momentum,
                        weight_decay=arguments.wd),
        named_parameters=model.named_parameters(),
        compression=hvd.Compression.fp16 if arguments.fp16_allreduce else hvd.Compression.none,
        backward_passes_per_step=arguments.batches_per_allreduce)
    begin = resume(model, optimizer, arguments)
    train_loader = loader_of(train_set, arguments, True)
    test_loader = loader_of(test_set, arguments, False)
    for epoch in range(begin, arguments.epochs):
        loss = train(model, optimizer, train_loader, epoch, arguments, device)
        if loss is None:
            say(f'stopped by a signal in epoch {epoch + 1}')
            if arguments.checkpoint_dir and hvd.rank() == 0:
                save(model, optimizer, epoch, arguments)
            break
        share = accuracy(model, test_loader, device)
        say(f'epoch {epoch + 1:3d}  loss {loss:.4f}  accuracy {share:.4f}  '
            f'lr {optimizer.param_groups[0]["lr"]:.5f}')
        if arguments.checkpoint_dir and hvd.rank() == 0:
            save(model, optimizer, epoch + 1, arguments)


if __name__ == '__main__':
    main()
