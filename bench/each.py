# SPDX-License-Identifier: Apache-2.0
"""Measuring models one after the other."""
import sys
import tempfile


def found_of(models, measure):
    """What measure(model, folder) returns for each model, with a temporary folder; a model that fails is named and left out."""
    found = []
    for model in models:
        with tempfile.TemporaryDirectory() as folder:
            try:
                found.append(measure(model, folder))
            except (RuntimeError, OSError, KeyError) as e:
                print("%s: %s" % (model, e), file=sys.stderr)
    return found
