# SPDX-License-Identifier: Apache-2.0
"""Networks for the examples, in plain torch because torchvision may not be installed."""

import torch
from torch import nn


def convolution(inputs, outputs, size, stride=1):
    return [nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False),
            nn.BatchNorm2d(outputs)]


class Residual(nn.Module):
    """A block of ResNet: convolutions and a shortcut around them."""

    def __init__(self, inputs, outputs, stride, *layers):
        super().__init__()
        self.narrow = nn.Sequential(*layers)
        same = stride == 1 and inputs == outputs
        self.shortcut = nn.Sequential(*([] if same else convolution(inputs, outputs, 1, stride)))
        self.activation = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.activation(self.narrow(x) + self.shortcut(x))


def basic(inputs, width, stride):
    """Returns a block of two convolutions, and the number of its output channels."""
    return Residual(inputs, width, stride,
                    *convolution(inputs, width, 3, stride), nn.ReLU(inplace=True),
                    *convolution(width, width, 3)), width


def bottleneck(inputs, width, stride):
    """Returns a block of three convolutions, and the number of its output channels. The stride is
    in the 3 x 3 convolution."""
    outputs = 4 * width
    return Residual(inputs, outputs, stride,
                    *convolution(inputs, width, 1), nn.ReLU(inplace=True),
                    *convolution(width, width, 3, stride), nn.ReLU(inplace=True),
                    *convolution(width, outputs, 1)), outputs


def resnet(make_block, depths, classes):
    """Returns a ResNet. ``depths``: the number of blocks of each width."""
    layers = [*convolution(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for number, blocks in enumerate(depths):
        for block in range(blocks):
            layer, channels = make_block(channels, 64 << number, 2 if number and not block else 1)
            layers.append(layer)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(channels, classes))


def resnet18(classes=1000):
    """Returns ResNet-18; with 1000 classes it has 11.7 million parameters in 62 tensors."""
    return resnet(basic, (2, 2, 2, 2), classes)


def resnet50(classes=1000):
    """Returns ResNet-50; with 1000 classes it has 25.6 million parameters in 161 tensors."""
    return resnet(bottleneck, (3, 4, 6, 3), classes)


class DenseLayer(nn.Module):
    """A layer of DenseNet, which appends ``growth`` features to its input."""

    def __init__(self, inputs, growth):
        super().__init__()
        self.new = nn.Sequential(
            nn.BatchNorm2d(inputs), nn.ReLU(inplace=True),
            nn.Conv2d(inputs, 4 * growth, 1, bias=False),
            nn.BatchNorm2d(4 * growth), nn.ReLU(inplace=True),
            nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False))

    def forward(self, x):
        return torch.cat([x, self.new(x)], 1)


def densenet(classes, blocks=(6, 12, 24, 16), growth=32, channels=3):
    """Returns a DenseNet with these numbers of layers in its blocks; the default is
    DenseNet-121."""
    width = 2 * growth
    layers = [nn.Conv2d(channels, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width),
              nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    for index, count in enumerate(blocks):
        if index > 0:  # a transition halves the number of features and the side length
            layers += [nn.BatchNorm2d(width), nn.ReLU(inplace=True),
                       nn.Conv2d(width, width // 2, 1, bias=False), nn.AvgPool2d(2, 2)]
            width //= 2
        layers += [DenseLayer(width + growth * layer, growth) for layer in range(count)]
        width += growth * count
    return nn.Sequential(*layers, nn.BatchNorm2d(width), nn.ReLU(inplace=True),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes))


def tiny(classes=10):
    """Returns a small network of two convolutions, to try a script quickly."""
    return nn.Sequential(*convolution(3, 8, 3, 2), nn.ReLU(inplace=True),
                         *convolution(8, 16, 3, 2), nn.ReLU(inplace=True),
                         nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, classes))


def by_name(name, classes=1000):
    """Returns the network of this name, from this module or otherwise from torchvision. ValueError
    if neither has it."""
    own = {'resnet18': resnet18, 'resnet50': resnet50, 'densenet121': densenet, 'tiny': tiny}
    if name in own:
        return own[name](classes)
    try:
        import torchvision.models
        return getattr(torchvision.models, name)(num_classes=classes)
    except (ImportError, AttributeError):
        raise ValueError(f'no network {name}: {", ".join(own)}, or with torchvision one of '
                         'torchvision.models') from None
