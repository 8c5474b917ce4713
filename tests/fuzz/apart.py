# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime in a process of its own: it ends itself at some loops of no iterations."""
import os

from command import Wrong


def apart(check, path):
    """Why ONNX Runtime does not take the model; None where it does.  `check` returns that, or raises `Wrong`; what it
    writes goes to a file beside `path`."""
    said = path + ".said"
    child = os.fork()
    if child == 0:
        with open(said, "w") as f, open(os.devnull, "w") as null:
            os.dup2(null.fileno(), 2)
            try:
                f.write("refused " + (check() or ""))
            except Exception as e:  # of the runtime, with classes of its own
                f.write(str(e))
            f.flush()
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if status:
        return f"it ends with status {status}"
    with open(said) as f:
        text = f.read()
    if not text.startswith("refused "):
        raise Wrong(text)
    return text[len("refused "):] or None
