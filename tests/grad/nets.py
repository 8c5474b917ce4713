# SPDX-License-Identifier: Apache-2.0
"""Convolutional nets as PyTorch exports them, with their loss: residuals, inverted residuals, and down and up again.

Each is (name, module of the samples x and t, samples, optimizers that it is trained with).  For a Python with PyTorch alone.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

OPTIMIZERS = ['sgd', 'momentum', 'adam', 'adamw']


def unit(a, b, k, stride=1, group=1, act=nn.ReLU):
    parts = [nn.Conv2d(a, b, k, stride, k // 2, groups=group, bias=False), nn.BatchNorm2d(b)]
    return nn.Sequential(*parts, *([act()] if act else []))


class Residual(nn.Module):
    def __init__(self, a, b, stride):
        super().__init__()
        self.body = nn.Sequential(unit(a, b, 3, stride), unit(b, b, 3, act=None))
        self.way = nn.Identity() if stride == 1 and a == b else unit(a, b, 1, stride, act=None)

    def forward(self, x):
        return F.relu(self.body(x) + self.way(x))


class Inverted(nn.Module):
    def __init__(self, a, b, stride, wide):
        super().__init__()
        n = a * wide
        self.adds = stride == 1 and a == b
        self.body = nn.Sequential(unit(a, n, 1, act=nn.ReLU6), unit(n, n, 3, stride, n, nn.ReLU6),
                                  unit(n, b, 1, act=None))

    def forward(self, x):
        return x + self.body(x) if self.adds else self.body(x)


class Classifier(nn.Module):
    def __init__(self, body, width):
        super().__init__()
        self.body, self.head = body, nn.Linear(width, 10)

    def forward(self, x, t):
        x = F.adaptive_avg_pool2d(self.body(x), 1).flatten(1)
        return F.cross_entropy(self.head(x), t)


class Segmenter(nn.Module):
    """Down by pooling, up by transposed convolution and by interpolation, group norms."""

    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.ReLU())
        self.b = nn.Sequential(nn.Conv2d(8, 12, 3, padding=1, bias=False), nn.InstanceNorm2d(12, affine=True), nn.Tanh())
        self.up = nn.ConvTranspose2d(12, 8, 2, 2)
        self.c = nn.Conv2d(16, 5, 3, padding=2, dilation=2)

    def forward(self, x, t):
        a = self.a(x)
        b = self.up(self.b(F.avg_pool2d(a, 2)))
        y = self.c(torch.cat([a, b], 1))
        y = F.interpolate(y[:, :, ::2, ::2], scale_factor=2, mode="bilinear", align_corners=False)
        return F.cross_entropy(y, t)


def residual():
    torch.manual_seed(1)
    stem = nn.Sequential(nn.Conv2d(3, 8, 5, 2, 2, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
    net = Classifier(nn.Sequential(stem, Residual(8, 8, 1), Residual(8, 16, 2)), 16)
    return 'residuals', net, torch.randn(4, 3, 32, 32), torch.tensor([1, 7, 3, 3]), OPTIMIZERS


# With two corners an element and an optimizer that makes all steps large, some element comes to a corner where rounding decides
# about its gradient: PyTorch's own steps in 32 and in 64 bits part by up to 0.4 there.  In this draw they agree to 1e-5.
def inverted():
    torch.manual_seed(3)
    net = Classifier(nn.Sequential(unit(3, 8, 3, 2, act=nn.ReLU6), Inverted(8, 8, 1, 2), Inverted(8, 12, 2, 4),
                                   Inverted(12, 12, 1, 4), unit(12, 32, 1, act=nn.ReLU6)), 32)
    return 'inverted', net, torch.randn(4, 3, 32, 32), torch.tensor([1, 7, 3, 3]), OPTIMIZERS


def segmenter():
    torch.manual_seed(1)
    return 'segmenter', Segmenter(), torch.randn(2, 3, 16, 16), torch.randint(0, 5, (2, 16, 16)), OPTIMIZERS


ALL = [residual, inverted, segmenter]


def export(net, x, t, path):
    torch.onnx.export(net, (x, t), path, opset_version=16, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
                      input_names=['x', 't'], output_names=['loss'], keep_initializers_as_inputs=False)
