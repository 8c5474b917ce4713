# SPDX-License-Identifier: Apache-2.0
"""How many cases of the fuzzer each operator had, by version of its schema, and who
judged them: fuzz.tsv.

A first line says by which tools and how many; then a line for each version of an
operator.  A run of some operators replaces their lines, by the same tools."""
import os

from tap import SRC

JUDGES = "ONNX Runtime", "the reference", "its recipe", "no value"
UNSUPPORTED, WRONG = "unsupported", "wrong"
COLUMNS = JUDGES + (UNSUPPORTED, WRONG)
PATH = os.path.join(SRC, "tests/conformance/fuzz.tsv")


def read():
    """What was used, as text, and lines by operator."""
    if not os.path.exists(PATH):
        return None, {}
    with open(PATH) as f:
        used, *lines = f.read().splitlines()
    rows = {}
    for line in lines:
        domain, op = line.split("\t")[:2]
        rows.setdefault((domain, op), []).append(line)
    return used, rows


def write(used, found):
    """`found`: by (domain, operator) a count of each (version, column)."""
    used = "\t".join(f"{k} {v}" for k, v in used.items())
    before, rows = read()
    if before != used:
        rows = {}
    for (domain, op), by in found.items():
        domain = domain or "ai.onnx"
        rows[domain, op] = []
        for version in sorted({v for v, _ in by}):
            n = [by[version, c] for c in COLUMNS]
            rows[domain, op].append("\t".join(map(str, [domain, op, version, sum(n[:len(JUDGES)]), *n])))
    with open(PATH, "w") as f:
        f.write("\n".join([used] + [line for key in sorted(rows) for line in rows[key]]) + "\n")
