# SPDX-License-Identifier: Apache-2.0
"""Milliseconds until the page of `report --html` is ready in a headless Chromium, by number of tensors.

    ONNXMEM=/PATH/TO/onnxmem bench/page.py
"""
import os
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "html"))
import chromium  # noqa: E402
import pages  # noqa: E402

os.chdir(tempfile.mkdtemp(prefix="onnxmem-page-"))
b = chromium.Browser()
print("tensors,ms")
for n in (1500, 3000, 6000, 12000, 24000):
    b.open(pages.large(n))
    print("%d,%d" % (n, b.eval("Number(document.documentElement.dataset.ready)")), flush=True)
b.close()
