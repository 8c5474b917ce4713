# SPDX-License-Identifier: Apache-2.0
"""Corners of operators that random cases do not meet or that no judge computes as
the standard says, and what comes out of them, worked out by hand.

A row is an operator, the version of its domain, inputs, attributes, outputs.  Each is run three
times: as it is, with shapes open and nodes around it, and with constants."""
import os
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), d) for d in (".", "../onnx")]
from tap import Points, scratch, skip_all

try:
    import numpy as np
    import fuzz
    from draw import NUMPY, SMALL, name_of
    from onnx import numpy_helper
    from recipes import Case
except ImportError as why:
    skip_all(f"{why}; PYTHON names an interpreter that has onnx and onnxruntime")

NAN = np.nan


def f32(*x):
    return np.asarray(x[0] if len(x) == 1 else x, np.float32)


def i64(*x):
    return np.asarray(x[0] if len(x) == 1 else x, np.int64)


def i32(*x):
    return np.asarray(x[0] if len(x) == 1 else x, np.int32)


def c64(*x):
    return np.asarray(x, np.complex64)


def made(x, kind):
    return numpy_helper.from_array(np.asarray(x, kind), "")


def text(*x):
    return np.asarray(x, np.object_)


CORNERS = [
    # A scalar has no place: 0 x n.
    ("NonZero", 13, [f32(5)], {}, [np.zeros((0, 1), np.int64)]),
    ("NonZero", 13, [f32(0)], {}, [np.zeros((0, 0), np.int64)]),
    ("NonZero", 13, [c64(-0.0, 1j, complex(0.0, -0.0))], {}, [i64([[1]])]),
    # More is cut off than there is: constants remain.
    ("Pad", 18, [f32([7]), i64(4, -2)], {}, [f32(0, 0, 0)]),
    ("Pad", 18, [f32([7, 8]), i64(-3, 5), f32(1)], {}, [f32(1, 1, 1, 1)]),
    ("Pad", 18, [f32([7]), i64(-2, 1)], {}, [f32([])]),
    # Complex numbers have a sum and a product.
    ("ScatterElements", 18, [c64(1j, 2), i64(0, 0, 1), c64(1j, 2, 3)], {"reduction": "mul"}, [c64(-2, 6)]),
    ("ScatterND", 18, [c64(1j, 2), i64([[1], [1]]), c64(1j, 2)], {"reduction": "add"}, [c64(1j, 4 + 1j)]),
    # What is not a number stays so.
    ("ScatterElements", 18, [f32(NAN, 1, 1), i64(0, 1, 2), f32(1, NAN, 2)], {"reduction": "max"}, [f32(NAN, NAN, 2)]),
    ("ScatterND", 18, [f32(NAN, 1, 1), i64([[0], [1], [2]]), f32(1, NAN, 2)], {"reduction": "min"}, [f32(NAN, NAN, 1)]),
    # In the locale C only letters of ASCII have cases.
    ("StringNormalizer", 10, [text("\u00e9T\u00c9")], {"case_change_action": "LOWER", "locale": "C"}, [text("\u00e9t\u00c9")]),
    ("StringNormalizer", 10, [text("\u00e9T\u00c9")], {"case_change_action": "LOWER"}, [text("\u00e9t\u00e9")]),
    # The middle of a window is one.
    ("BlackmanWindow", 17, [i64(9)], {"periodic": 0, "output_datatype": 6}, [np.asarray([0] * 4 + [1] + [0] * 4, np.int32)]),
    # The last of equal keys counts.
    ("ai.onnx.ml.LabelEncoder", 4, [i64([1, 2, 3])], {"keys_int64s": [1, 2, 1], "values_int64s": [10, 20, 30]}, [i64(30, 20, -1)]),
    ("ai.onnx.ml.CategoryMapper", 1, [text("a", "b")], {"cats_strings": ["a", "b", "a"], "cats_int64s": [1, 2, 3],
                                                        "default_int64": 0}, [i64(3, 2)]),
    # Of whole numbers, what is missing is -1, in a tensor too.
    ("ai.onnx.ml.LabelEncoder", 4, [text("a", "b")], {"keys_strings": ["a"], "values_tensor": made([7], np.int32)}, [i32(7, -1)]),
    ("ai.onnx.ml.LabelEncoder", 4, [text("a", "b")], {"keys_strings": ["a"], "values_tensor": made([7], np.int16)},
     [np.asarray([7, -1], np.int16)]),
    # One offset for all features, a scale for each.
    ("ai.onnx.ml.Scaler", 1, [f32([[2, 3]])], {"offset": [1.0], "scale": [2.0, 4.0]}, [f32([[2, 8]])]),
    # Values of another size than keys: 1 + 1 + 2 is no multiple of three.
    ("com.microsoft.Attention", 1, [f32([[[2]]]), f32([[1, 1, 3, 4]]), f32(0, 0, 1, 0)],
     {"num_heads": 1, "qkv_hidden_sizes": [1, 1, 2]}, [f32([[[7, 8]]])]),
    # The largest, not the farthest from zero.
    ("ai.onnx.ml.Normalizer", 1, [f32([[2, -4], [-2, -4]])], {"norm": "MAX"}, [f32([[1, -2], [1, 2]])]),
    # A class without votes does not win over one that has bad ones.
    ("ai.onnx.ml.TreeEnsembleClassifier", 1, [f32([[1]])],
     {"nodes_modes": ["LEAF"], "nodes_nodeids": [0], "nodes_treeids": [0], "nodes_featureids": [0], "nodes_truenodeids": [0],
      "nodes_falsenodeids": [0], "nodes_values": [0.0], "class_treeids": [0], "class_nodeids": [0], "class_ids": [1],
      "class_weights": [-2.0], "classlabels_int64s": [7, 8, 9]}, [i64([8]), f32([[0, -2, 0]])]),
    # Weights belong to what is looked for, not to where it is counted.
    ("TfIdfVectorizer", 9, [i64([7, 8, 8])], {"max_gram_length": 1, "min_gram_length": 1, "max_skip_count": 0, "mode": "TFIDF",
                                             "ngram_counts": [0], "ngram_indexes": [1, 0], "pool_int64s": [7, 8],
                                             "weights": [0.5, 4.0]}, [f32(8, 0.5)]),
    # What is no number is the largest, in every type, with indices and without.
    ("MaxPool", 12, [f32([[[1, NAN, 0, 2]]])], {"kernel_shape": [2]}, [f32([[[NAN, NAN, 2]]])]),
    ("MaxPool", 12, [f32([[[1, NAN, 0, 2]]])], {"kernel_shape": [2]}, [f32([[[NAN, NAN, 2]]]), i64([[[1, 1, 3]]])]),
    ("MaxPool", 12, [np.asarray([[[1, NAN, 0, 2]]])], {"kernel_shape": [2]}, [np.asarray([[[NAN, NAN, 2]]])]),
    # A ratio of 0 in eight bits.
    ("Dropout", 22, [f32(1, 2), np.asarray(0, NUMPY["float8e4m3fn"]), np.asarray(True)], {}, [f32(1, 2), np.asarray([True, True])]),
    # A list of one scale is one for all: no axis needs to be there.
    ("DequantizeLinear", 13, [np.asarray([1, -2], np.int32), f32([0.5])], {}, [f32(0.5, -1)]),
    ("QuantizeLinear", 13, [f32(1, 2), f32([0.5])], {}, [np.asarray([2, 4], np.uint8)]),
    # Rows of no elements have no mean.
    ("LayerNormalization", 17, [f32([[], []]), f32([])], {}, [f32([[], []]), f32([[NAN], [NAN]]), f32([[NAN], [NAN]])]),
    # More than one output says that it trains; running ones, then those of the batch.
    ("BatchNormalization", 9, [f32([[1], [3]]), f32([2]), f32([1]), f32([0]), f32([5])], {"epsilon": 0.0, "momentum": 0.5},
     [f32([[-1], [3]]), f32([1]), f32([3]), f32([2]), f32([1])]),
    ("BatchNormalization", 7, [f32([[[1, 2]], [[3, 6]]]), f32([[1, 2]]), f32([[0, 1]]), f32([[0, 0]]), f32([[1, 2]])],
     {"epsilon": 0.0, "momentum": 0.5, "spatial": 0},
     [f32([[[-1, -1]], [[1, 3]]]), f32([[1, 2]]), f32([[1, 3]]), f32([[2, 4]]), f32([[1, 4]])]),
    # In ceil mode a window may be larger than the image; all that is under it counts.
    ("MaxPool", 12, [f32([[[1, 3]]])], {"kernel_shape": [3], "strides": [2], "ceil_mode": 1}, [f32([[[3]]]), i64([[[1]]])]),
    ("AveragePool", 19, [f32([[[1, 3]]])], {"kernel_shape": [4], "strides": [3], "ceil_mode": 1}, [f32([[[2]]])]),
    ("AveragePool", 19, [f32([[[1, 3]]])], {"kernel_shape": [4], "strides": [3], "pads": [1, 0], "ceil_mode": 1,
                                            "count_include_pad": 1}, [f32([[[4 / 3]]])]),
]


def cases():
    for op, opset, ins, attrs, known in CORNERS:
        for k, way in enumerate(("", ", open", ", constant")):
            types = {f"y{n}": name_of(a) for n, a in enumerate(known)}
            c = Case(ins, outs=len(known), judge="recipe", known=known, out_types=types, **attrs)
            c.domain, _, c.op = op.rpartition(".")
            c.opset, c.version, c.ir = 21 if c.domain else opset, opset, 10
            c.const = set(range(len(ins))) if k == 2 else set()
            c.symbolic, c.around = k == 1, k == 1 and c.opset >= 9 and not any(name_of(a) in SMALL for a in ins if a is not None)
            yield op + way, fuzz.Model(c)


def main():
    t, bad, models = Points(), [], list(cases())
    with scratch() as folder:
        results = fuzz.run_ours([m for _, m in models], folder)
    for (name, m), result in zip(models, results):
        said = fuzz.judge(m, result, m.case.known, fuzz.RECIPE)
        if said:
            bad.append(f"{name}: {said}\n    {m.case}")
    t.point(not bad, f"{len(CORNERS)} corners", *bad)
    t.end()


if __name__ == "__main__":
    main()
