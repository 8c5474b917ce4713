# SPDX-License-Identifier: Apache-2.0
"""The table of operators says what the schemas of the onnx package say: every
operator in every version, how many inputs and outputs it takes, its attributes
with their kinds and defaults.  What is not there, on purpose, is listed here
with the reason; a line of that list that is not needed any more fails, too."""
import collections
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tap import Points, skip_all

try:
    import onnx
except ImportError as e:
    skip_all(str(e))

ONNXMEM = os.environ.get("ONNXMEM", os.path.join(os.environ.get("abs_builddir", "."), "onnxmem"))
NEWEST = 28  # of ai.onnx, that the rows were written for
MOST = 2147483647

LEFT_OUT = {
    "ai.onnx.preview.FlexAttention-1": "its scores go through bodies of its own; its function, expanded, runs",
    "ai.onnx.preview.training.Gradient-1": "names values of the graph around it: it is a pass, not a row",
    "ai.onnx.Scatter-11": "taken back by the standard in this version: ScatterElements",
    "ai.onnx.Upsample-10": "taken back by the standard in this version: Resize",
}
# Rows that take or say something else than the schema, with the reason.
WIDER = {
    "ai.onnx.Loop-1": "nothing to carry, as from 11 on, was meant before",
    "ai.onnx.Resize-11": "inputs may be left out as from 13 on, which tools write in 11, too",
    "ai.onnx.GRU-1": "the schema's default is misspelt, and its outputs are optional in the text",
}
# Attributes that say how to compute, or nothing at all, and change no result.
IGNORED = {"consumed_inputs"}

EXCUSES = LEFT_OUT | WIDER

KINDS = {
    "FLOAT": "float", "INT": "int", "STRING": "string", "TENSOR": "tensor", "GRAPH": "graph",
    "FLOATS": "floats", "INTS": "ints", "STRINGS": "strings", "TENSORS": "tensors", "GRAPHS": "graphs",
    "SPARSE_TENSOR": "sparse tensor", "SPARSE_TENSORS": "sparse tensors", "TYPE_PROTO": "type",
    "TYPE_PROTOS": "types",
}


class Row:
    def __init__(self, first, last):
        self.first, self.last = first, last
        self.attrs = {}


def span(text):
    low, dash, high = text.partition("-")
    return int(low), int(high) if high else MOST if dash else int(low)


def rows():
    """Every row, as `onnxmem ops NAME...` shows it, by domain and name."""
    def call(*args):
        return subprocess.run([ONNXMEM, "ops", *args], capture_output=True, text=True, check=True).stdout
    names = sorted({line.split()[0] for line in call().splitlines()[1:]})
    table, row = collections.defaultdict(list), None
    for line in call(*names).splitlines():
        if not line.startswith(" "):
            domain, name, rest = line.split(None, 2)
            row = Row(*span(rest.split()[1].rstrip(":")))
            table[domain, name.rstrip(",")].append(row)
        elif line.startswith("  inputs ") and ", outputs " in line:
            row.inputs, row.outputs = (span(part.split()[1]) for part in line.strip().split(", "))
        elif line.startswith("  ") and not line.startswith("  view "):
            name, said = line.split(None, 1)
            row.attrs[name] = said.split(", ", 1)
    return table


def default_of(a):
    """As `onnxmem ops` writes it; None: there is none, or it says nothing."""
    kind = KINDS[a.type.name]
    value = onnx.helper.get_attribute_value(a.default_value) if a.default_value.type else None
    if a.required:
        return "required"
    if value is None or kind not in ("float", "int", "string"):
        return None
    if kind == "string":
        return f'"{value.decode()}"' if value else None
    return "%g" % value if kind == "float" else str(value)


def attributes(schema, row):
    for name, a in schema.attributes.items():
        if name in IGNORED:
            continue
        if name not in row.attrs:
            yield f"attribute {name} is not known"
            continue
        kind, *said = row.attrs[name]
        if kind != KINDS[a.type.name]:
            yield f"attribute {name} is {kind}, not {KINDS[a.type.name]}"
        want, got = default_of(a), said[0] if said else None
        if want is None and got != "required":
            continue  # without a default anything may stand for nothing
        if want != got:
            yield f"attribute {name}: {got}, the standard says {want}"


def differences(schema, found):
    fits = [r for r in found if r.first <= schema.since_version <= r.last]
    if not fits:
        return ["is not there"]
    row = fits[0]
    why = []
    if row.inputs != (schema.min_input, schema.max_input):
        why.append(f"takes {row.inputs} inputs, the standard says {schema.min_input, schema.max_input}")
    if row.outputs != (schema.min_output, schema.max_output):
        why.append(f"gives {row.outputs} outputs, the standard says {schema.min_output, schema.max_output}")
    return why + list(attributes(schema, row))


def main():
    t, table = Points(), rows()
    by_domain, excused = collections.defaultdict(list), set()
    for schema in onnx.defs.get_all_schemas_with_history():
        domain = schema.domain or "ai.onnx"
        label = f"{domain}.{schema.name}-{schema.since_version}"
        why = differences(schema, table.get((domain, schema.name), []))
        if label in EXCUSES and why:
            excused.add(label)
            why = []
        if domain == "ai.onnx" and schema.since_version > NEWEST:
            continue
        by_domain[domain].append((label, why))
    for domain, list_of in sorted(by_domain.items()):
        bad = [f"{label}: {line}" for label, why in list_of for line in why]
        t.point(not bad, f"{domain}: {len(list_of)} schemas", *bad)
    idle = set(EXCUSES) - excused
    t.point(not idle, f"{len(EXCUSES)} differ with a reason", *(f"{x} does not differ" for x in sorted(idle)))
    t.end()


main()
