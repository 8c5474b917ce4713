#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""More models for bench/run.py: networks of torchvision with the weights they start with, a tagger, quantized networks.

    python bench/extra.py [--cache DIR] [NAME...]

Writes CACHE/extra/NAME.onnx, where bench/run.py finds them.  The Python needs torch, torchvision and onnx for all but the quantized ones, which
need onnx and onnxruntime; what this Python cannot make is skipped with the reason."""
import argparse
import inspect
import os

import models

IMAGES = {"mnasnet1_0": 224, "densenet121": 224, "inception_v3": 299, "convnext_tiny": 224, "regnet_y_400mf": 224, "vit_b_16": 224,
          "swin_t": 224, "maxvit_t": 224, "s3d": None}
CLIP = (1, 3, 16, 224, 224)    # of s3d: 16 frames
OPSET = 17


def tagger():
    """A bidirectional LSTM over embedded words."""
    import torch

    class Tagger(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = torch.nn.Embedding(5000, 64)
            self.lstm = torch.nn.LSTM(64, 64, bidirectional=True, batch_first=True)
            self.out = torch.nn.Linear(128, 17)

        def forward(self, words):
            return self.out(self.lstm(self.embed(words))[0])

    return Tagger(), torch.ones((1, 32), dtype=torch.int64)


def network(name):
    import torch
    import torchvision
    if name == "bilstm_tagger":
        return tagger()
    make = torchvision.models.video.s3d if name == "s3d" else getattr(torchvision.models, name)
    side = IMAGES[name]
    options = {"weights": None, **({"init_weights": True} if "init_weights" in inspect.signature(make).parameters else {})}
    return make(**options), torch.zeros(CLIP if side is None else (1, 3, side, side))


def export(name, path):
    import torch
    torch.manual_seed(1)
    torch.backends.mha.set_fastpath_enabled(False)         # attention as nodes of ONNX
    net, x = network(name)
    net.eval()
    for p in net.parameters():
        if p.dim() > 1 and not p.any():        # a head that starts with zeros
            torch.nn.init.normal_(p, std=0.02)
    with torch.no_grad():
        torch.onnx.export(net, (x,), path, opset_version=OPSET, input_names=["input"], output_names=["output"], dynamo=False)


# By name: the graph, and whether QuantizeLinear and DequantizeLinear are around every node, or operators are quantized ones.
QUANTIZED = {"resnet50_int8": ("gen_resnet50", "QDQ"), "resnet50_int8_ops": ("gen_resnet50", "QOperator"),
             "mobilenet_v2_int8": ("gen_mobilenet_v2", "QDQ"), "mobilenet_v2_int8_ops": ("gen_mobilenet_v2", "QOperator")}


def quantize(name, path, cache):
    """Static, with unsigned activations and weights by channel, as is recommended for x86.  Constants are folded first, since
    biases have to be initializers."""
    import numpy as np
    import onnxruntime as ort
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Noise(CalibrationDataReader):
        def __init__(self, name, dims):
            rng = np.random.default_rng(5)
            self.rest = iter([{name: rng.standard_normal(dims).astype("f4")} for _ in range(4)])

        def get_next(self):
            return next(self.rest, None)

    base, form = QUANTIZED[name]
    model = models.known(cache=cache)[base]
    models.prepare(model)
    with np.load(model.inputs()) as x:
        (input_name, data), = x.items()
    o = ort.SessionOptions()
    o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    o.optimized_model_filepath = path + ".folded"
    ort.InferenceSession(model.path(), o, providers=["CPUExecutionProvider"])
    quantize_static(path + ".folded", path, Noise(input_name, data.shape), per_channel=True, quant_format=QuantFormat[form],
                    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("name", nargs="*")
    a.add_argument("--cache", default=models.CACHE)
    a = a.parse_args()
    folder = os.path.join(a.cache, "extra")
    os.makedirs(folder, exist_ok=True)
    for name in a.name or [*IMAGES, "bilstm_tagger", *QUANTIZED]:
        path = os.path.join(folder, name + ".onnx")
        if os.path.exists(path):
            continue
        try:
            models.replace(path, (lambda to: quantize(name, to, a.cache)) if name in QUANTIZED else lambda to: export(name, to))
            print(name)
        except Exception as e:                 # what one model cannot have must not end the others
            print(f"{name}: {type(e).__name__}: {str(e).strip().splitlines()[0][:300]}")


if __name__ == "__main__":
    main()
