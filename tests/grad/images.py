"""Gradients of whole models, and where some steps of descent lead, beside PyTorch's.

The models are exported by PyTorch with their loss.  A gradient differs by at most 1e-4 of the
largest element of its tensor, or of a thousandth of the largest of all gradients: where one is
zero, as that of a bias in front of a normalisation, both are rounding.
"""
import os
import subprocess
import sys
import warnings

sys.path.insert(0, os.path.join(os.environ.get("srcdir", "."), "tests", "onnx"))
from tap import Points, scratch, skip_all

try:
    import numpy as np
    import torch
    import torch.nn as nn
    import torch.nn.functional as F
except ImportError as e:
    skip_all(f"no PyTorch here: {e}")

STEPS, RATE = 20, 0.02


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
        self.b = nn.Sequential(nn.Conv2d(8, 12, 3, padding=1), nn.InstanceNorm2d(12, affine=True), nn.Tanh())
        self.up = nn.ConvTranspose2d(12, 8, 2, 2)
        self.c = nn.Conv2d(16, 5, 3, padding=2, dilation=2)

    def forward(self, x, t):
        a = self.a(x)
        b = self.up(self.b(F.avg_pool2d(a, 2)))
        y = self.c(torch.cat([a, b], 1))
        y = F.interpolate(y[:, :, ::2, ::2], scale_factor=2, mode="bilinear", align_corners=False)
        return F.cross_entropy(y, t)


def residual():
    stem = nn.Sequential(nn.Conv2d(3, 8, 5, 2, 2, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
    return Classifier(nn.Sequential(stem, Residual(8, 8, 1), Residual(8, 16, 2)), 16)


def mobile():
    return Classifier(nn.Sequential(unit(3, 8, 3, 2, act=nn.ReLU6), Inverted(8, 8, 1, 2), Inverted(8, 12, 2, 4),
                                    Inverted(12, 12, 1, 4), unit(12, 32, 1, act=nn.ReLU6)), 32)


def apart(a, b, scale):
    return float(np.abs(a - b).max() / max(float(np.abs(b).max()), scale, 1e-12))


def compare(points, name, net, x, t):
    with scratch() as folder:
        model, data, out = (os.path.join(folder, f) for f in ("m.onnx", "in.npz", "out.npz"))
        net.train()
        weights = dict(net.named_parameters())
        torch.onnx.export(net, (x, t), model, opset_version=16, training=torch.onnx.TrainingMode.TRAINING,
                          do_constant_folding=False, input_names=["x", "t"], output_names=["loss"],
                          keep_initializers_as_inputs=True)
        np.savez(data, x=x.numpy(), t=t.numpy())
        p = subprocess.run([os.path.join("tests", "grad", "descend"), model, data, out, str(STEPS), str(RATE)],
                           capture_output=True, text=True)
        points.point(p.returncode == 0, f"{name}: runs", p.stderr)
        if p.returncode:
            return
        ours = dict(np.load(out))
    loss = net(x, t)
    loss.backward()
    grads = {k: w.grad.numpy().copy() for k, w in weights.items()}
    scale = 1e-3 * max(float(np.abs(v).max()) for v in grads.values())
    for _ in range(STEPS):
        with torch.no_grad():
            for w in weights.values():
                w -= RATE * w.grad
                w.grad = None
        after = net(x, t)
        after.backward()
    missing = [k for k in grads if "grad/" + k not in ours]
    worst = max((apart(ours["grad/" + k], v, scale), k) for k, v in grads.items() if k not in missing)
    moved = max((apart(ours["after/" + k], w.detach().numpy(), 0.01), k) for k, w in weights.items()
                if k not in missing)
    points.point(not missing, f"{name}: all {len(grads)} weights have gradients", missing)
    points.point(apart(ours["loss"], loss.detach().numpy(), 0) < 1e-5, f"{name}: the loss is PyTorch's",
                 ours["loss"], loss)
    points.point(worst[0] < 1e-4, f"{name}: so are the gradients", worst)
    points.point(apart(ours["loss_after"], after.detach().numpy(), 0) < 1e-3 and moved[0] < 1e-3,
                 f"{name}: so are loss and weights after {STEPS} steps", ours["loss_after"], after, moved)


def main():
    warnings.simplefilter("ignore")
    torch.manual_seed(1)
    torch.set_num_threads(1)
    points = Points()
    t = torch.tensor([1, 7, 3, 3])
    compare(points, "residuals and batch norms", residual(), torch.randn(4, 3, 32, 32), t)
    compare(points, "inverted residuals, depthwise", mobile(), torch.randn(4, 3, 32, 32), t)
    compare(points, "down and up again", Segmenter(), torch.randn(2, 3, 16, 16), torch.randint(0, 5, (2, 16, 16)))
    points.end()


main()
