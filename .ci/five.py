# SPDX-License-Identifier: Apache-2.0
"""five.py MODEL PAGE: the report of a model, as a page with the picture."""
import pathlib, sys, onnxmem
report = onnxmem.report(sys.argv[1])
pathlib.Path(sys.argv[2]).write_text(report._repr_html_(), encoding="utf-8")
assert report.arena_bytes >= report.lower_bound > 0 and "canvas id=" in report._repr_html_()
print(report, pathlib.Path(sys.argv[2]).stat().st_size > 10000)
