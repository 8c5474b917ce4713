#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans of two builds side by side: arena, lower bound, status and planning time of every model.

    compare.py BASE NEW MODEL.onnx... [-- REPORT OPTIONS]

BASE and NEW are two commands `onnxmem`, alternated on every model.  Exits with 1 where NEW has a larger arena
or refuses what BASE plans.  Models whose symbolic dims are open get 1 for them.
"""
import json
import os
import subprocess
import sys
import tempfile


def plan(command, model, options, folder):
    out = os.path.join(folder, "report.json")
    r = subprocess.run([command, "report", "-q", "--json", out, "--default-dim", "1", *options, model],
                       capture_output=True, text=True)
    if r.returncode:
        return None
    with open(out) as f:
        return json.load(f)


def main():
    words = sys.argv[1:]
    options = words[words.index("--") + 1:] if "--" in words else []
    words = words[:words.index("--")] if "--" in words else words
    if len(words) < 3:
        sys.exit(__doc__)
    same = smaller = larger = refused = 0
    ms = [0.0, 0.0]
    with tempfile.TemporaryDirectory() as folder:
        for model in words[2:]:
            base, new = (plan(c, model, options, folder) for c in words[:2])
            if not base or not new:
                refused += 1
                if base and not new:
                    larger += 1
                    print(f"{os.path.basename(model)}: refused by {words[1]} only")
                continue
            ms = [ms[0] + base["plan_ms"], ms[1] + new["plan_ms"]]
            a, b = ([x[k] for k in ("arena_bytes", "lower_bound_bytes", "status")] for x in (base, new))
            same += a == b
            smaller += a != b and b[0] <= a[0]
            larger += b[0] > a[0]
            if a != b:
                print(f"{os.path.basename(model)}: {a[0]} {a[1]} {a[2]} -> {b[0]} {b[1]} {b[2]}")
    print(f"{same} same, {smaller} smaller or better proven, {larger} worse, {refused} refused; "
          f"planning {ms[0]:.0f} ms -> {ms[1]:.0f} ms")
    return larger > 0


if __name__ == "__main__":
    sys.exit(main())
