# SPDX-License-Identifier: Apache-2.0
"""Nodes of a profile by class: convolutions by kind, products, pools, ...; their milliseconds, operations and bytes.

A node is a dict: `op`, `domain`, `in` and `out` (lists of dims; None: unknown or left out), `attr` (lists of integers by name),
`ms` of a run, and, of our profile, `flops` and `bytes`.  Lowered ops (domain org.onnxmem.cpu) may be channels-last and have packed
weights: their attributes are asked first, the shapes of weights only where there are none."""
import json
import math
import statistics

OURS = "org.onnxmem.cpu"
FEW = 4                        # channels of an image
WITH_BODIES = ("If", "Loop", "Scan")           # their time contains that of their bodies, which are counted

CURVES = "Sigmoid Tanh Erf Exp Log Gelu FastGelu BiasGelu QuickGelu GeluTanh HardSwish HardSigmoid Elu Selu Celu Softplus Softsign Mish Pow Sqrt \
Sin Cos Swish Silu Reciprocal SwiGLU"
ELEMENTWISE = "Add Sub Mul Div Relu LeakyRelu PRelu Clip Neg Abs Min Max Sum Mean Where Not And Or Xor Equal Less Greater LessOrEqual \
GreaterOrEqual Floor Ceil Round Sign Mod IsNaN IsInf ThresholdedRelu Chain Elementwise Fused"
NORM = "LayerNormalization SkipLayerNormalization EmbedLayerNormalization InstanceNormalization GroupNormalization BatchNormalization \
RMSNormalization SimplifiedLayerNormalization SkipSimplifiedLayerNormalization LpNormalization MeanVarianceNormalization LRN"
VIEWS = "Reshape Flatten Squeeze Unsqueeze Identity Shape Constant Dropout Size"
COPIES = "Transpose Slice Concat Split Pad Expand Tile Cast DepthToSpace SpaceToDepth ConstantOfShape CastLike Range Copy"
GATHER = "Gather GatherElements GatherND Scatter ScatterElements ScatterND OneHot NonZero Compress ArgMax ArgMin TopK EmbeddingBag \
NonMaxSuppression RotaryEmbedding CumSum Unique"
QUANTIZED = "QLinearConv QLinearMatMul ConvInteger MatMulInteger DynamicQuantizeMatMul MatMulIntegerToFloat QGemm MatMulNBits \
QuantizeLinear DequantizeLinear DynamicQuantizeLinear QLinearAdd QLinearMul QLinearGlobalAveragePool QLinearAveragePool QLinearConcat \
QLinearSigmoid QLinearLeakyRelu QLinearSoftmax QAttention DynamicQuantizeLSTM"
POOLS = "pools, reductions"   # a global pool is lowered to a reduction
BY_NAME = {name: kind for kind, names in {
    "curves": CURVES, "elementwise": ELEMENTWISE, "normalization": NORM, "views": VIEWS, "copies": COPIES, "gather, scatter": GATHER,
    "quantized": QUANTIZED, "softmax": "Softmax LogSoftmax BiasSoftmax Hardmax", "resize": "Resize Upsample GridSample AffineGrid RoiAlign",
    "recurrent": "LSTM GRU RNN", "Einsum": "Einsum", "layout": "ReorderInput ReorderOutput NchwToNhwc NhwcToNchw ToChannelsLast FromChannelsLast",
    "sequences": "SequenceInsert SequenceAt SequenceEmpty ConcatFromSequence SplitToSequence",
    "attention": "Attention MultiHeadAttention GroupQueryAttention QkvAttention",
}.items() for name in names.split()}


def dims_of(n, k, side="in"):
    return n[side][k] if k < len(n[side]) else None


def is_ours(n):
    return n["domain"] == OURS


# ---- Convolutions. ----

class Window:
    """What the class of a convolution depends on, from attributes and shapes."""

    def __init__(self, n):
        x, w, y = dims_of(n, 0) or [], dims_of(n, 1) or [], dims_of(n, 0, "out") or []
        self.rank = max(len(y) - 2, 1)
        last = is_ours(n) and n["attr"].get("channels_last", n["attr"].get("nhwc", [1]))[0]
        place = slice(1, -1) if last else slice(2, None)
        self.x, self.y = x[place], y[place]
        channel = -1 if last else 1
        self.ci = x[channel] if len(x) > 2 else 0
        if last and len(x) == 4 and x[1] <= FEW < x[-1]:
            self.ci = x[1]                     # an image that is read as it comes
        self.kernel = n["attr"].get("kernel_shape") or (w[2:] if len(w) == len(y) else [])
        self.stride = n["attr"].get("strides") or self.strides()
        self.group = n["attr"].get("group", [0])[0] or self.groups(w, n)

    def strides(self):
        """What the sizes say; ONNX Runtime's profile has no attributes."""
        return [max(1, round(i / o)) if o and i else 1 for i, o in zip(self.x, self.y)]

    def groups(self, w, n):
        packed = is_ours(n) or len(w) < 3 or not w[1] or not self.ci
        return 1 if packed else max(1, self.ci // w[1])


def conv_class(n):
    w = Window(n)
    if "Transpose" in n["op"]:
        return "ConvTranspose"
    if w.group > 1:
        return "depthwise" if w.ci in (0, w.group) or "epthwise" in n["op"] else "grouped"
    if "epthwise" in n["op"] or "rouped" in n["op"]:
        return "depthwise" if "epthwise" in n["op"] else "grouped"
    if w.rank != 2:
        return f"{w.rank}-D convolution"
    if not w.kernel:
        return "convolution of unknown size"
    if set(w.kernel) == {1}:
        return "1x1"
    if 0 < w.ci <= FEW:
        return "first layer"
    return ("3x3 stride 1" if set(w.stride) == {1} else "3x3 stride 2") if list(w.kernel) == [3, 3] else "other KxK"


# ---- Products. ----

def product_class(n):
    a, b, y = dims_of(n, 0), dims_of(n, 1), dims_of(n, 0, "out")
    if not y:
        return "MatMul"
    if a and b and len(a) > 2 and len(b) > 2 and math.prod(b[:-2]) > 1:
        return "batched MatMul"
    return "matrix by vector" if math.prod(y[:-1]) == 1 else "MatMul"


def class_of(n):
    op = n["op"]
    if op in BY_NAME:
        return BY_NAME[op]
    if "Conv" in op:
        return conv_class(n)
    if op in ("MatMul", "Gemm", "FusedMatMul", "FusedGemm", "TransposeMatMul") or "MatMul" in op or "Gemm" in op:
        return product_class(n)
    for part, kind in (("Pool", POOLS), ("Reduce", POOLS), ("LSTM", "recurrent"), ("GRU", "recurrent"), ("RNN", "recurrent"),
                       ("Attention", "attention"), ("Norm", "normalization"), ("Softmax", "softmax"), ("Resize", "resize"),
                       ("Transpose", "copies"), ("Winograd", "3x3 stride 1"), ("Gelu", "curves"), ("Activation", "elementwise")):
        if part in op:
            return kind
    return "other"


# ---- Operations and bytes. ----

def einsum_flops(equation, ins):
    """A product and a sum for every combination of indices."""
    terms = equation.replace(" ", "").split("->")[0].split(",")
    sizes = {}
    for term, dims in zip(terms, ins):
        if dims is None or "." in term or len(term) != len(dims):
            return 0
        sizes.update(zip(term, dims))
    return 2 * math.prod(sizes.values())


def count(dims):
    return math.prod(dims) if dims else int(dims is not None)


def flops_of(n):
    """Two for a product with its sum; one per element of the output for everything else."""
    op, y = n["op"], count(dims_of(n, 0, "out"))
    a, b = dims_of(n, 0), dims_of(n, 1)
    weights = dims_of(n, 3) if op in ("QLinearConv", "QLinearMatMul") else b
    if op == "Einsum":
        return einsum_flops(n.get("equation", ""), n["in"])
    if "ConvTranspose" in op and a and b:
        return 2 * count(a) * math.prod(b[1:])
    if "Conv" in op and weights and len(weights) > 2:
        return 2 * y * math.prod(weights[1:])
    if op == "MatMulNBits" and a:
        return 2 * y * a[-1]
    if "MatMul" in op and a:
        return 2 * y * a[-1]
    if "Gemm" in op and a and dims_of(n, 0, "out"):
        return 2 * y * count(a) // max(1, dims_of(n, 0, "out")[0])
    if op in ("LSTM", "GRU", "RNN") and a and b and dims_of(n, 2):
        return 2 * a[0] * a[1] * (count(b) + count(dims_of(n, 2)))
    return y


def bytes_of(n):
    return 4 * sum(map(count, n["in"] + n["out"]))


def finished(n):
    n["class"] = class_of(n)
    return {k: n[k] for k in ("op", "class", "ms", "flops", "bytes")}


# ---- Profiles. ----

def equations(model):
    """Of the Einsum nodes of a file, by name."""
    import onnx
    found = {}
    graphs = [onnx.load(model, load_external_data=False).graph] if model else []
    for g in graphs:
        for n in g.node:
            graphs += [a.g for a in n.attribute if a.HasField("g")]
            if n.op_type == "Einsum":
                found[n.name] = next(a.s.decode() for a in n.attribute if a.name == "equation")
    return found


def of_ort(events, model=None):
    """Nodes of ONNX Runtime's profile of several runs; `model`: the file, for what the profile does not say."""
    runs = max(1, sum(e.get("name") == "model_run" for e in events))
    text, by_node = equations(model), {}
    for e in events:
        if e.get("cat") == "Node" and e["name"].endswith("_kernel_time") and e["args"]["op_name"] not in WITH_BODIES:
            by_node.setdefault((e["name"], e["args"].get("node_index")), []).append(e)
    nodes = []
    for (name, _), calls in by_node.items():
        args = calls[-1]["args"]
        n = {"op": args["op_name"], "domain": "", "attr": {}, "equation": text.get(name.removesuffix("_kernel_time"), ""),
             "in": [list(t.values())[0] for t in args.get("input_type_shape", [])],
             "out": [list(t.values())[0] for t in args.get("output_type_shape", [])]}
        per_run = len(calls) / runs
        n["ms"] = statistics.median(c["dur"] for c in calls) * per_run / 1e3
        n["flops"], n["bytes"] = flops_of(n) * per_run, bytes_of(n) * per_run
        nodes.append(finished(n))
    return nodes


def dims_from(text):
    """"[1,3,224]" as a list, None where a dim is not known."""
    parts = text.strip("[]").split(",") if text else ["?"]
    return None if not all(p.lstrip("-").isdigit() for p in parts if p) else [int(p) for p in parts if p]


def of_ours(path):
    """Nodes of the file that `onnxmem run --profile` wrote."""
    with open(path) as f:
        events = json.load(f)["traceEvents"]
    nodes = []
    for e in (e for e in events if e["ph"] == "X"):
        args = e["args"]
        n = {"op": args["type"], "domain": args.get("domain", ""), "attr": args.get("attributes", {}), "ms": e["dur"] / 1e3,
             "in": [dims_from(t) for t in args.get("inputs", [])], "out": [dims_from(t) for t in args.get("outputs", [])],
             "flops": args["flops"], "bytes": args["bytes"]}
        if n["op"] not in WITH_BODIES:
            nodes.append(finished(n))
    return nodes


def by_class(nodes):
    """Milliseconds, operations and bytes of every class."""
    sums = {}
    for n in nodes:
        s = sums.setdefault(n["class"], [0.0, 0.0, 0.0])
        for k, key in enumerate(("ms", "flops", "bytes")):
            s[k] += n[key]
    return sums
