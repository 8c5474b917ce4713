# SPDX-License-Identifier: Apache-2.0
"""Pages of `report --html`, in the current folder."""
import os
import subprocess

COMMAND = os.environ["ONNXMEM"]


def page(model, *options):
    out = os.path.splitext(os.path.basename(model))[0] + ".html"
    subprocess.run([COMMAND, "report", model, "--html", out, *options], check=True, stdout=subprocess.DEVNULL)
    return out


def large(n):
    """Layers of five ops, `n` in all, with a sum that reaches back."""
    lines, last, back = ['program "large" ir 8 opset 14', "^main(%x: float32[64,64]) {"], "x", "x"
    for k in range(n):
        text = ("Neg(%%%s)", "Exp(%%%s)", "MatMul(%%%s, %%%s)", "Relu(%%%s)", "Add(%%%s, %%%s)")[k % 5]
        name = "layer%d.%s" % (k // 5, "abcde"[k % 5])
        lines.append("\t%%%s = %s" % (name, text % ((last, back) if k % 5 in (2, 4) else last)))
        last = name
        back = name if k % 7 == 0 else back
    with open("large.ir", "w") as f:
        f.write("\n".join(lines + ["\t%%y = Softmax(%%%s)" % last, "\tret %y", "}", ""]))
    return page("large.ir", "--schedule", "original")
