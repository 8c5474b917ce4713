# SPDX-License-Identifier: Apache-2.0
"""How low the plans of real graphs get, against a study of what the same rules
can reach (limits.tsv of the shared data): no plan is above the study's figures
by more than alignment, in the order of the file and in the one that is planned.  Arenas of the
lowered program (target cpu), which have the scratch of the kernels, are below the study's figures with
fusion, but for a tenth, or for what LOWERED_ABOVE explains and bounds.

`limits.py --table` writes docs/plan-quality.md instead: what is planned, graph by graph."""
import csv
import json
import math
import os
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "onnx"))
from tap import DATA, Points, call, skip_all

FILE_ORDER = "inline,shapes,fold,prune,liveness,views,inplace,pack"
BODIES = "the study counts the values of the graph alone, we those in bodies, too"
UNKNOWN = "the study takes RequantShift, which is no standard operator, for one that works in place"
# Graphs whose figures cannot be compared.
NOT_COMPARED = {
    "deeploy_mlperf_ad_q": UNKNOWN, "deeploy_mlperf_vww_q": UNKNOWN, "gen_convlstm_loop": BODIES,
    "gen_script_nested_ctl": BODIES, "silero_vad_ifless": BODIES, "silero_vad_v4": BODIES,
    "silero_vad_v5": BODIES,
}
# Plans that are not always at their bound.
GAPS = {"gen_darts_cifar": "parts lie where they go, which leaves holes that the packer does not fill"}
# Arenas for the executor that are larger than 1.1 of the study's figure with fusion: at most so many times as large.
GATES = "the inputs of all steps of a recurrent layer are multiplied at once"
FEW_PIXELS = "scratch of a convolution of few pixels"
SCRATCH = "tiny values, beside which the scratch of a kernel is large"
HEADS = "keys, queries and values are live along with the scratch of attention"
ORDER = "chains of casts and comparisons are not fused"
LAYOUT = "a value is transposed for an operator that reads channels first"
PYRAMID = "images of a pyramid are live until they are concatenated"
IMAGE = "the input and the output of the first convolutions, and their scratch"
LOWERED_ABOVE = {
    "burn_mnist": (1.6, FEW_PIXELS), "deeploy_autoencoder1d": (1.4, LAYOUT), "deeploy_cct2": (1.2, FEW_PIXELS),
    "deeploy_cct2_op20": (1.3, HEADS), "deeploy_cct2_train_infer": (1.2, FEW_PIXELS), "deeploy_mlperf_ic_q": (5, FEW_PIXELS),
    "dtln_1": (2.4, SCRATCH), "gen_convlstm_unrolled": (1.5, LAYOUT), "gen_gru_seq2seq_unrolled": (2.1, GATES),
    "gen_lstm_lm": (2.6, GATES), "mnist_8": (2.2, FEW_PIXELS), "mnist_quantized": (9, FEW_PIXELS),
    "onnx2c_mnist_pytorch": (1.3, SCRATCH), "oww_embedding": (1.2, IMAGE), "ppocr_v4_det": (1.15, PYRAMID),
    "silero_vad_16k_op15": (1.45, SCRATCH), "silero_vad_half": (1.45, SCRATCH), "silero_vad_ov16k": (1.45, SCRATCH),
    "tract_byte_bilstm": (3.4, GATES), "tract_lgbm_classifier": (2.5, ORDER),
}
LOWERED = ("--target", "cpu", "--threads", "1")


def rows():
    path = os.path.join(DATA, "limits.tsv")
    if not os.path.exists(path):
        skip_all(f"there is no {path}")
    with open(path) as f:
        return list(csv.DictReader(f, delimiter="\t"))


def model(name):
    for folder in ("light", "models"):
        path = os.path.join(DATA, folder, name + ".onnx")
        if os.path.exists(path):
            return path
    return None


def report(path, *options):
    r = call("report", path, "-q", "--json", "-", *options, timeout=300)
    return json.loads(r.stdout) if r.returncode == 0 else {"error": r.stderr.strip()}


# The study's figures are without values whose size data decide, which have a place at their bounds in a plan.
EXACT = {"gen_ssdlite320": ["--exact-sizes"]}


def measure(row):
    path = model(row["name"])
    if not path:
        return None
    how = EXACT.get(row["name"], [])
    return report(path, "--passes", FILE_ORDER, *how), report(path, *how), report(path, *LOWERED, *how)


def measured(all_rows):
    with ThreadPoolExecutor(2) as pool:
        return [(row, m) for row, m in zip(all_rows, pool.map(measure, all_rows)) if m]


def limit(row, column, got):
    """The study's figure has three digits; every buffer at the peak is aligned."""
    size = int(row["file_order_bytes"])
    return size * (float(row[column]) + 0.0006) + 64 * (len(got["peak"]["live"]) + 1)


def check(points, row, got, column, gap):
    name = f"{row['name']}: {column.replace('_', ' ')}"
    if "error" in got:
        points.point(False, name, got["error"])
        return
    most = limit(row, column, got)
    size = got["lower_bound_bytes"] if gap else got["arena_bytes"]
    points.point(size <= most, name + (f", bound ({gap})" if gap else ""),
                 f"{size} bytes, the study has {row[column]} of {row['file_order_bytes']}")


def check_lowered(points, row, got):
    name = f"{row['name']}: lowered"
    if "error" in got:
        points.point(False, name, got["error"])
        return
    times, why = LOWERED_ABOVE.get(row["name"], (1.1, ""))
    most = limit(row, "with_fusion_and_order", got) * times
    points.point(got["arena_bytes"] <= most, name + (f" ({why})" if why else ""),
                 f"{got['arena_bytes']} bytes, the study has {row['with_fusion_and_order']} of {row['file_order_bytes']}")


def test():
    points = Points()
    for row, (in_file_order, planned, lowered) in measured(rows()):
        if row["name"] in NOT_COMPARED:
            points.point(True, f"{row['name']} # SKIP {NOT_COMPARED[row['name']]}")
            continue
        check(points, row, in_file_order, "in_place_and_views", GAPS.get(row["name"]))
        check(points, row, planned, "in_place_and_views", None)
        check(points, row, planned, "in_place_and_order", GAPS.get(row["name"]))
        check_lowered(points, row, lowered)
    points.end()


# ---- The table. ----

HEAD = """# How low the plans get

Made by `tests/models/limits.py --table` over the graphs of the shared data. *file* is what is live at once in the order of the file, nothing in place, no views, with
the values in bodies; the other columns are ratios to it. *views*: the arena in the order of the file, with everything that is computed in place, viewed, or computed
where it goes; *order*: the arena as it is planned by default, in the better order. A star marks arenas above their lower bound. *proven*: no other order takes less, under the
same rules. *study* is what a study of the same graphs found for the same rules, relative to its own count; figures below it are bold. *lowered*: the arena for the bundled
executor (target cpu, one thread), with the scratch of its kernels; the *study* beside it fuses operators and counts no scratch.

| graph | file | views | study | order | study | proven | lowered | study |
|---|---:|---:|---:|---:|---:|---|---:|---:|
"""

ABOVE = """
Where arenas for the executor are more than a tenth above the study's figures:

"""

WHY = """
Where a figure is below the study's, it is by one of two rules. A value over which a result of the graph is computed, or that is joined into one, lies in the result's
memory, to any depth of parts and operands. And bytes of a buffer that no op reads any more are free for others, while its other bytes are still needed. The tests
run plans with both, poisoned and without any reuse, and compare the numbers bit by bit.

Not to be compared:

"""


def cell(got, study, base, comparable):
    ratio = got["arena_bytes"] / base if base else 0.0
    text = f"{ratio:.3f}" + ("" if got["arena_bytes"] == got["lower_bound_bytes"] else "*")
    if comparable and got["arena_bytes"] < study - 64 * (len(got["peak"]["live"]) + 1):
        return f"**{text}**"
    return text


def table_row(row, in_file_order, planned, lowered):
    comparable = row["name"] not in NOT_COMPARED
    base, size = planned["original_order_bytes"], int(row["file_order_bytes"])
    best = min(float(row["in_place_and_order"]), float(row["in_place_and_views"]))
    views = cell(in_file_order, size * (float(row["in_place_and_views"]) - 0.0006), base, comparable)
    order = cell(planned, size * (best - 0.0006), base, comparable)
    study = (row["in_place_and_views"], f"{best:.3f}") if comparable else ("–", "–")
    proven = "yes" if planned.get("schedule_is_proven") else "no"
    fused = cell(lowered, size * (float(row["with_fusion_and_order"]) - 0.0006), base, comparable)
    fused_study = row["with_fusion_and_order"] if comparable else "–"
    return (f"| {row['name']} | {base:,} | {views} | {study[0]} | {order} | {study[1]} | {proven} | {fused} | "
            f"{fused_study} |\n")


def mean(ratios):
    ratios = [r for r in ratios if r > 0]
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else 0.0


def table(path):
    good = [(r, m) for r, m in measured(rows()) if not any("error" in x for x in m)]
    large = [m for _, m in good if m[1]["values"] >= 50]
    with open(path, "w") as f:
        f.write(HEAD)
        for row, m in good:
            f.write(table_row(row, *m))
        views = mean([m[0]["arena_bytes"] / m[1]["original_order_bytes"] for m in large])
        order = mean([m[1]["arena_bytes"] / m[1]["original_order_bytes"] for m in large])
        fused = mean([m[2]["arena_bytes"] / m[1]["original_order_bytes"] for m in large])
        study = mean([float(r["with_fusion_and_order"]) for r, m in good if m[1]["values"] >= 50])
        f.write(f"| geometric mean of the {len(large)} graphs with at least 50 values | | {views:.3f} | | {order:.3f} | | | "
                f"{fused:.3f} | {study:.3f} |\n")
        f.write(ABOVE)
        for name, (_, why) in sorted(LOWERED_ABOVE.items()):
            f.write(f"* {name}: {why}.\n")
        f.write(WHY)
        for name, why in sorted(NOT_COMPARED.items()):
            f.write(f"* {name}: {why}.\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--table"]:
        table(sys.argv[2] if len(sys.argv) > 2 else "docs/plan-quality.md")
    else:
        test()
