# SPDX-License-Identifier: Apache-2.0
"""Which element types every operator computes, beside those that the newest
version of its schema allows.

    elements.py [OPERATOR...]

For every type parameter, and every type that the schema allows for it, random
cases of the fuzzer run; what they give is right or wrong in fuzz.py.  A type is
refused when one case is.  UPDATE=1 writes docs/element-types.md.  CASES=N draws N
cases a type."""
import os
import sys
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fuzz
from fuzz import draw, onnx, recipes
from tap import SRC, Points, scratch

UPDATE = os.environ.get("UPDATE") == "1"
MANY = 12
CASES = int(os.environ.get("CASES") or (MANY if UPDATE else 2))
RUNS, REFUSED, NO_CASE = "runs", "refused", "no case"

# Types that are refused, with the reason: a line that is not needed any more fails, too.
PACKED = ("float4e2m1", "uint4", "int4", "uint2", "int2")
REASONS = {
    "Col2Im T string": "texts cannot be added up",
    **{f"Loop V {k}": "what rounds give cannot be put together: it may begin within a byte" for k in PACKED},
    **{f"Scan V {k}": "what a round takes may begin within a byte" for k in PACKED},
}
NOTES = """*Resize* and *Upsample* of truths, texts and complex numbers take the nearest element; between
two of them there is none: the other modes are refused.  *GridSample* likewise for texts.
"""


def kinds(constraint):
    """Elements that a type parameter may have: also in sequences and optionals."""
    found = []
    for text in constraint.allowed_type_strs:
        kind = text[text.rfind("(") + 1:].rstrip(")")
        if kind in draw.NUMPY and kind not in found:
            found.append(kind)
    return sorted(found, key=list(draw.NUMPY).index)


def has(case, schema, param, kind):
    """Has what belongs to the parameter that type?  None: that shows in the outputs alone."""
    for k, p in enumerate(schema.inputs):
        many = p.option == onnx.defs.OpSchema.FormalParameterOption.Variadic
        for a in case.ins[k:] if many else case.ins[k:k + 1]:
            if p.type_str == param and a is not None:
                return draw.NAME.get(a.dtype) == kind
    return None


def cases(key, schema, param, kind):
    for k in range(10 * CASES):  # some recipes give up some of their draws
        r = draw.Draw([zlib.crc32(f"{key} {param} {kind}".encode()), k])
        try:
            case = recipes.case(key, r, schema, {param: kind})
        except Exception:  # it cannot make elements of that type
            case = None
        if case and has(case, schema, param, kind) is not False:
            case.around = False
            yield case


def drawn(key, schema, todo):
    models, owner = [], []
    for at in todo:
        for _, case in zip(range(CASES), cases(key, schema, *at)):
            models.append(fuzz.Model(case))
            owner.append(at)
    return models, owner


def outcomes(schema, todo, models, owner, results):
    """By parameter and type: what became of it, and the sentence of a refusal."""
    found = {at: (NO_CASE, "") for at in todo}
    for at, m, (status, said, got) in zip(owner, models, results):
        shown = has(m.case, schema, *at)
        outs = [k for k, p in enumerate(schema.outputs) if p.type_str == at[0] and k < len(got)]
        if shown is None and status == 0 and not any(draw.NAME.get(got[k].dtype) == at[1] for k in outs):
            continue
        if status == fuzz.UNSUPPORTED and (shown or shown is None):
            found[at] = REFUSED, said
        elif status == 0 and found[at][0] != REFUSED:
            found[at] = RUNS, ""
    return found


def newest():
    for key in sys.argv[1:] or recipes.operators():
        rows = recipes.SCHEMAS.get(recipes.RECIPES[key][1:3])
        if rows:
            yield key, rows[-1]


def look():
    """(operator, schema, parameter, {type: (what became of it, sentence)}); one run of ours for all."""
    every = []
    for key, schema in newest():
        todo = [(c.type_param_str, k) for c in schema.type_constraints for k in kinds(c)]
        every.append((key, schema, todo, *drawn(key, schema, todo)))
    with scratch() as folder:
        results = iter(fuzz.run_ours([m for e in every for m in e[3]], folder))
    for key, schema, todo, models, owner in every:
        found = outcomes(schema, todo, models, owner, [next(results) for _ in models])
        for c in schema.type_constraints:
            if kinds(c):
                yield key, schema, c.type_param_str, {k: found[c.type_param_str, k] for k in kinds(c)}


def write(lines, runs, total):
    with open(os.path.join(SRC, "docs/element-types.md"), "w") as f:
        f.write("# Element types\n\n"
                "Written by `make check UPDATE=1 TESTS=tests/conformance/elements.test`; do not edit.\n\n"
                f"The newest version of each operator of onnx {onnx.__version__} that the fuzzer draws, its type parameters, and\n"
                f"for how many of the types that the schema allows random cases run: {runs} of {total}.\n\n"
                + NOTES + "\n| operator | version | parameter | types | refused |\n|---|---|---|---|---|\n")
        f.writelines(lines)


def main():
    t, lines, bad, idle, total, runs = Points(), [], [], set(REASONS), 0, 0
    for key, schema, param, found in look():
        at = {k: f"{key} {param} {k}" for k in found}
        refused = [k for k in found if found[k][0] != RUNS]
        total, runs = total + len(found), runs + len(found) - len(refused)
        idle -= {at[k] for k in refused}
        # Few draws may leave out a type that only shows in what comes out.
        bad += [f"{at[k]}: {': '.join(found[k])}" for k in refused
                if at[k] not in REASONS and (found[k][0] == REFUSED or CASES >= MANY)]
        said = ", ".join(f"{k}: {REASONS.get(at[k], found[k][1] or NO_CASE)}" for k in refused)
        lines.append(f"| {key} | {schema.since_version} | {param} | {len(found) - len(refused)} of {len(found)} | {said} |\n")
    if UPDATE:
        write(lines, runs, total)
    t.point(not bad, f"{runs} of {total} types run", *bad)
    if not sys.argv[1:]:
        t.point(not idle, f"{len(REASONS)} are refused with a reason", *sorted(idle))
    t.end()


if __name__ == "__main__":
    main()
