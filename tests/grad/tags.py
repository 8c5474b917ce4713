# SPDX-License-Identifier: Apache-2.0
"""What ONNX says can be differentiated, beside what has a gradient here.

The schemas of the onnx package tag inputs and outputs as differentiable or not, or say nothing.
`tests/ops/grads --parts` says of which inputs, through which outputs, the gradient was checked by
central differences.  What is tagged and was not checked has a reason here; a reason that is not needed
any more fails, too.  UPDATE=1 writes docs/gradients.md."""
import collections
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "onnx"))
from tap import SRC, Points, skip_all

try:
    import onnx
    from onnx.defs import OpSchema
except ImportError as e:
    skip_all(str(e))

BUILD = os.environ.get("abs_builddir", ".")
ONNXMEM = os.environ.get("ONNXMEM", os.path.join(BUILD, "onnxmem"))
UPDATE = os.environ.get("UPDATE") == "1"
TAGGED, UNTAGGED = OpSchema.DifferentiationCategory.Differentiable, OpSchema.DifferentiationCategory.Unknown
VARIADIC = OpSchema.FormalParameterOption.Variadic
FLOATING = ("float)", "double)", "float16)")

# Of inputs and outputs that are tagged: where their gradient is checked, or why there is none.
REASONS = {
    "Hardmax input": "zero: it is piecewise constant",
    "Hardmax output": "zero: it is piecewise constant",
}
BODIES = "checked by tests/unit/gradbodies.c and tests/fuzz/flowgrads"
SHAPE, DRAWN = "zero: the output depends on the shape of the input alone", "zero: samples are treated as constants"
REMARKS = {"Bernoulli": DRAWN, "EyeLike": SHAPE, "RandomNormalLike": SHAPE, "RandomUniformLike": SHAPE,
           "If": BODIES, "Loop": BODIES, "Scan": BODIES,
           "ConcatFromSequence": "of a sequence that a Loop appends to, along axis 0: checked by tests/unit/gradbodies.c"}
# Operators that appear differentiable but have no rule, and why.
WITHOUT = {
    "sequence": "gradients do not pass through sequences and optionals",
    "constant": "ONNX tags it as not differentiable",
    "DynamicQuantizeLinear": "it is piecewise constant",
}
WHOLE = "integer inputs and outputs: rounding is piecewise constant"
SCALES = "rounding is piecewise constant; a rule for the scales alone is not implemented"
# Operators of com.microsoft without a rule: why, by what their names begin with.
CONTRIB = {
    "QLinear": WHOLE, "QAttention": SCALES, "QGemm": SCALES, "QuantizeLinear": WHOLE, "NhwcMaxPool": WHOLE,
    "DynamicQuantizeMatMul": SCALES, "DynamicQuantizeLSTM": SCALES, "MatMulIntegerToFloat": SCALES, "DequantizeLinear": SCALES,
    "Nhwc": "not implemented: made by optimizers for inference, models for training have Conv",
}


def can_be_floating(schema, parameter):
    types = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    return any(f in t for f in FLOATING for t in types.get(parameter.type_str, [parameter.type_str]))


def newest():
    """The newest version of each operator of ai.onnx."""
    found = {}
    for s in onnx.defs.get_all_schemas_with_history():
        if not s.domain and (s.name not in found or s.since_version > found[s.name].since_version):
            found[s.name] = s
    return [found[n] for n in sorted(found) if not found[n].deprecated]


def checked():
    """By operator: version from which a row holds, checks of inputs, of outputs."""
    out = subprocess.run([os.path.join(BUILD, "tests/ops/grads"), "--parts"], capture_output=True, text=True).stdout
    table = collections.defaultdict(list)
    for line in out.splitlines():
        if line.startswith("# ai.onnx "):
            _, _, name, since, *parts = line.split()
            counts = dict(p.split("=") for p in parts)
            table[name].append((int(since), {int(k[2:]) for k in counts if k.startswith("in")},
                                {int(k[3:]) for k in counts if k.startswith("out")}))
    return table


def contrib():
    """Operators of com.microsoft without a rule, and why."""
    out = subprocess.run([ONNXMEM, "ops"], capture_output=True, text=True, check=True).stdout.splitlines()
    names = sorted({f[0] for f in map(str.split, out[1:]) if f[1] == "com.microsoft" and f[8] == "-"})
    return [(n, next((why for start, why in CONTRIB.items() if n.startswith(start)), "")) for n in names]


def rules():
    """Rows with a rule: {name: [(since, "yes" or "zero")]}."""
    out = subprocess.run([ONNXMEM, "ops"], capture_output=True, text=True, check=True).stdout.splitlines()
    table = collections.defaultdict(list)
    for line in out[1:]:
        name, domain, versions, _, _, _, _, _, grad = line.split()[:9]
        if domain == "ai.onnx" and grad != "-":
            table[name].append((int(versions.split("-")[0]), grad))
    return table


def at_version(rows, version):
    fits = [r for r in rows if r[0] <= version]
    return max(fits, key=lambda r: r[0]) if fits else None


def parts_of(schema, row):
    """(kind, parameter, was it checked) of inputs and outputs that may hold fractions."""
    for kind, params, seen in ("input", schema.inputs, row[1] if row else ()), ("output", schema.outputs, row[2] if row else ()):
        for k, p in enumerate(params):
            if can_be_floating(schema, p):
                many = p.option == VARIADIC
                yield kind, p, any(i >= k for i in seen) if many else k in seen


def reason_without(schema):
    if any(t.startswith(("seq(", "optional(")) for c in schema.type_constraints for t in c.allowed_type_strs):
        return WITHOUT["sequence"]
    if not any(p.differentiation_category in (TAGGED, UNTAGGED) for p in schema.inputs):
        return WITHOUT["constant"]
    return WITHOUT.get(schema.name)


def main():
    t, tested, made = Points(), checked(), rules()
    lines, without, bad, idle, tags = [], [], [], set(REASONS), 0
    for s in newest():
        row, rule = at_version(tested.get(s.name, []), s.since_version), at_version(made.get(s.name, []), s.since_version)
        parts = list(parts_of(s, row))
        tagged = [p for _, p, _ in parts if p.differentiation_category == TAGGED]
        tags += len(tagged)
        for kind, p, good in parts:
            at = f"{s.name} {p.name}"
            if p.differentiation_category == TAGGED and not good:
                idle.discard(at)
                if at not in REASONS:
                    bad.append(f"{s.name}-{s.since_version} {kind} {p.name} is differentiable, but its gradient was not checked")
        if rule:
            names = [p.name for kind, p, good in parts if kind == "input" and good]
            more = [p.name for kind, p, good in parts if good and kind == "input" and p.differentiation_category != TAGGED]
            left = [f"{p.name}: {REASONS[f'{s.name} {p.name}']}" for _, p, good in parts
                    if not good and f"{s.name} {p.name}" in REASONS]
            said = "; ".join(left) or REMARKS.get(s.name) or ("zero" if rule[1] == "zero" else "")
            lines.append(f"| {s.name} | {s.since_version} | {', '.join(n for n in names if n not in more)} | {', '.join(more)} | "
                         f"{said} |\n")
        elif any(k == "input" for k, _, _ in parts) and any(k == "output" for k, _, _ in parts):
            why = reason_without(s)
            without.append(f"| {s.name} | {why} |\n")
            if not why:
                bad.append(f"{s.name}-{s.since_version} has floating-point inputs and outputs, but no rule and no reason")
    others = contrib()
    bad += [f"com.microsoft's {name} has no rule and no reason" for name, why in others if not why]
    if UPDATE:
        write(lines, without, others, tags)
    t.point(tags > 100 and not bad, f"{tags} inputs and outputs that ONNX tags as differentiable have gradients", *bad)
    t.point(not idle, f"{len(REASONS)} are checked elsewhere, or have none for a reason", *sorted(idle))
    t.end()


def write(lines, without, others, tags):
    with open(os.path.join(SRC, "docs/gradients.md"), "w") as f:
        f.write("# Gradients\n\nWritten by `make check UPDATE=1 TESTS=tests/grad/tags.test`; do not edit.\n\n"
                f"The newest version of each operator of onnx {onnx.__version__} that has a gradient rule, and the inputs whose gradients\n"
                "`tests/ops/grads` checks by central differences: those that the schema tags as differentiable, and others that\n"
                f"it does not tag, or tags as not differentiable.   {tags} inputs and outputs are tagged.  Class weights of losses are\n"
                "tagged as not differentiable, and are not differentiated.\n\n"
                "| operator | version | tagged inputs | others | remarks |\n|---|---|---|---|---|\n")
        f.writelines(lines)
        f.write("\nThese have floating-point inputs and outputs, and no gradient:\n\n| operator | because |\n|---|---|\n")
        f.writelines(without)
        f.write("\nThese operators of com.microsoft have no gradient, and are refused by name if one must pass through; all others have one:\n\n"
                "| operator | because |\n|---|---|\n")
        f.writelines(f"| {name} | {why} |\n" for name, why in others)


if __name__ == "__main__":
    main()
