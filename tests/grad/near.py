"""How far numbers are from those that they should be, for all tests of gradients here."""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'onnx'))
from tap import Points, skip_all  # noqa: E402, F401


def far(a, b, least=1e-12):
    """The largest difference, as a share of the largest element that is wanted, or of `least` where
    all of them are smaller: what is zero but for rounding has no digits to compare."""
    a, b = np.asarray(a, 'f8'), np.asarray(b, 'f8')
    if a.shape != b.shape or not np.isfinite(a).all():
        return float('inf')
    return float(np.max(np.abs(a - b), initial=0) / max(np.max(np.abs(b), initial=0), least))
