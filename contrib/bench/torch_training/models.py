# SPDX-License-Identifier: Apache-2.0
"""The models of the benchmark, with plain torch: Debian has no torchvision.

resnet50 computes long for its 25.6 million parameters (161 tensors, 102 MB); mlp has 10.5 million
(6 tensors, 42 MB), whose gradients take longer to exchange than to compute; wide is an mlp of 50.2
million (8 tensors, 201 MB).
"""

import os
import sys

from torch import nn

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'examples',
                             'pytorch'))
import networks  # noqa: E402

CLASSES = 1000


def resnet50(_):
    return networks.resnet50(CLASSES)


def layers(pixels, width, count):
    """So many hidden layers."""
    sizes = [3 * pixels * pixels, *[width] * count]
    hidden = [each for pair in zip(sizes, sizes[1:]) for each in (nn.Linear(*pair), nn.ReLU())]
    return nn.Sequential(nn.Flatten(), *hidden, nn.Linear(width, CLASSES))


def mlp(pixels):
    return layers(pixels, 2048, 2)


def wide(pixels):
    return layers(pixels, 4096, 3)


# name: (function of the picture's side, default side, default batch of a rank)
MODELS = {'mlp': (mlp, 32, 2), 'wide': (wide, 32, 2), 'resnet50': (resnet50, 64, 32)}
