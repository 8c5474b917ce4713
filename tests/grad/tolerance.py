# SPDX-License-Identifier: Apache-2.0
"""How far numbers are from those that they should be, and ONNX Runtime's, for all tests of gradients here."""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'onnx'))
from tap import Points, call, skip_all  # noqa: E402, F401


def far(a, b, least=1e-12):
    """The largest difference, as a share of the largest element that is wanted, or of `least` where
    all of them are smaller: what is zero but for rounding has no digits to compare."""
    a, b = np.asarray(a, 'f8'), np.asarray(b, 'f8')
    if a.shape != b.shape or not np.isfinite(a).all():
        return float('inf')
    return float(np.max(np.abs(a - b), initial=0) / max(np.max(np.abs(b), initial=0), least))


def theirs(model, feeds):
    """What ONNX Runtime computes, by name; of the feeds, those that the model knows."""
    import onnxruntime as ort
    s = ort.InferenceSession(model.SerializeToString(), providers=['CPUExecutionProvider'])
    known = {i.name for i in s.get_inputs()} | {i.name for i in s.get_overridable_initializers()}
    return dict(zip([o.name for o in s.get_outputs()], s.run(None, {k: v for k, v in feeds.items() if k in known})))
