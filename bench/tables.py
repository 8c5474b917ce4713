# SPDX-License-Identifier: Apache-2.0
"""What bench/run.py prints and writes from its rows: lines, sums by group and class, the list of targets, the page."""
import math
import re

MIB = 2 ** 20
SMALL_MS = 0.3                 # below: models where the cost of an op counts more than its arithmetic
NAMES = {"ort": "ONNX Runtime", "ov": "OpenVINO"}

# Name of a family, its models, and how fast they must be, as a multiple of ONNX Runtime's speed.
FAMILIES = (
    ("ResNet-50", r"(gen|light)_resnet50(_bn)?$", 1.2), ("ResNet-18", r"gen_resnet18$", 1.5), ("VGG", r".*vgg\d+$", 1.8),
    ("U-Net", r"gen_unet(pp)?$", 1.8), ("DenseNet", r".*densenet", 1.3), ("GoogLeNet", r"gen_googlenet|light_inception_v1", 1.3),
    ("Inception", r".*inception_v3", 1.2), ("SqueezeNet", r".*squeezenet", 1.2), ("MobileNet", r".*mobilenet_v", 1.05),
    ("MNASNet", r".*mnasnet", 1.05), ("EfficientNet", r".*efficientnet", 1.15), ("ShuffleNet", r".*shufflenet", 1.15),
    ("BERT", r".*bert", 1.15), ("ViT", r"vit_b", 1.15), ("Swin", r".*swin", 1.15), ("MaxViT", r".*maxvit", 1.2),
    ("LSTM, GRU", r".*(lstm|gru)", 1.1), ("int8 ResNet-50", r".*resnet50_int8", 1.1),
)


def processor():
    """The name of the processor."""
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        return next((line.split(":")[1].strip() for line in f if line.startswith("model name")), "unknown")


# ---- Numbers of a row. ----

def executors(row):
    return [k for k, x in row.items() if isinstance(x, dict) and ("best" in x or "failed" in x)]


def ran(row, name):
    return "best" in row.get(name, {})


def ms(row, name, by):
    return row[name][{"best": "best", "least": "least", "cpu": "least_cpu"}[by]]


def peers(row):
    return [p for p in NAMES if ran(row, p)]


def ratio(row, name, peer, by):
    """How many times as fast as the peer; None without both."""
    if not ran(row, name) or not ran(row, peer):
        return None
    return ms(row, peer, by) / max(ms(row, name, by), 1e-6)


def of_better(row, name, by):
    found = [ratio(row, name, p, by) for p in peers(row)]
    return min(found) if found and found[0] is not None else None


def first(row, name, where):
    """Milliseconds to load and run once, without the start of the process."""
    return max(row[name]["least_first"] - where["start"].get(name, 0), 0)


def net_rss(row, name):
    return row[name]["rss"] - row[name]["base"]


def weight_bytes(row):
    """What the executor reports does not count weights that stay in the mapped file."""
    return max(row["om"]["weights"], row["work"][1] if row["work"] else 0)


def geometric(values):
    values = [v for v in values if v]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def text(value, digits=2):
    return "–" if value is None else f"{value:.{digits}f}"


def time_text(x):
    return f"{x:.4f}" if x < 0.1 else f"{x:.3f}" if x < 10 else f"{x:.1f}"


def error_text(e):
    return "–" if not e else f"{e[0]:.1e} / {e[1]:.1e}"


# ---- Lines for a terminal. ----

def line(row, by):
    if "failed" in row:
        return f"{row['model']:28} {row['failed']}"
    parts = [f"{row['model']:28}"]
    for name in executors(row):
        x = row[name]
        if "failed" in x:
            parts.append(f"{name}: {x['failed']}")
            continue
        others = [*peers(row), *(["om"] if name != "om" and ran(row, "om") else [])] if name.startswith("om") else []
        ratios = "".join(f" {text(ratio(row, name, p, by))} of {p}" for p in others)
        size = f" first {x['least_first']:.0f} rss {x['rss'] - x['base']:.0f}"
        parts.append(f"{name} {time_text(ms(row, name, by))} ms{ratios}{size}" + (f" error {x['error'][0]:.0e}" if x.get("error") else ""))
    return " | ".join(parts)


# ---- Groups and targets. ----

def usable(rows, peer="ort"):
    return [r for r in rows if ran(r, "om") and ran(r, peer)]


def is_small(row, by):
    return ms(row, "ort", by) < SMALL_MS


def groups(rows, by, name="om"):
    """Name of a group, number of models, geometric mean against each peer and the better one."""
    rows = [r for r in usable(rows) if ran(r, name)]
    for title, group in (("all", rows), (f"above {SMALL_MS} ms", [r for r in rows if not is_small(r, by)]),
                         (f"below {SMALL_MS} ms", [r for r in rows if is_small(r, by)]),
                         *((f, [r for r in rows if re.match(pattern, r["model"])]) for f, pattern, _ in FAMILIES)):
        if group:
            yield (title, len(group), *(geometric([ratio(r, name, p, by) for r in group]) for p in NAMES),
                   geometric([of_better(r, name, by) for r in group]))


def speed_targets(rows, by):
    large, small = [r for r in rows if not is_small(r, by)], [r for r in rows if is_small(r, by)]
    ort = lambda r: ratio(r, "om", "ort", by)
    if large:
        mean = geometric(map(ort, large))
        yield f"geometric mean above {SMALL_MS} ms", "at least 1.25", text(mean), mean >= 1.25
        yield ("each of the better peer", *each(large, lambda r: of_better(r, "om", by), 1.1))
    if small:
        mean = geometric(map(ort, small))
        yield f"geometric mean below {SMALL_MS} ms", "at least 1.3", text(mean), mean >= 1.3
    if rows:
        yield ("each of ONNX Runtime", *each(rows, ort, 0.95))
    for family, pattern, least in FAMILIES:
        group = [r for r in rows if re.match(pattern, r["model"])]
        if group:
            mean = geometric(map(ort, group))
            yield family, f"at least {least}", text(mean), mean >= least


def each(rows, value, bound, below=False):
    """The limit, what falls short of it, whether nothing does."""
    short = [(value(r), r["model"]) for r in rows if (value(r) > bound if below else value(r) < bound)]
    worst = ", ".join(f"{m} {v:.2f}" for v, m in sorted(short, reverse=below)[:5])
    return f"at {'most' if below else 'least'} {bound}", f"{len(short)} of {len(rows)} fall short: {worst}" if short else "all", not short


def memory_targets(rows, where):
    heavy = [r for r in rows if weight_bytes(r) > 5e6]
    extra = lambda r: (r["om"]["rss"] * MIB - weight_bytes(r) - r["om"]["arena"]) / 1e6
    if heavy:
        yield ("peak memory of ONNX Runtime's, above 5 MB of weights", *each(heavy, lambda r: r["om"]["rss"] / max(net_rss(r, "ort"), 1), 0.6, True))
    if rows:
        yield ("peak MB above arena and weights", *each(rows, extra, 12, True))
        yield ("load and first run, of ONNX Runtime's", *each(rows, lambda r: first(r, "om", where) / first(r, "ort", where), 0.5, True))


def targets(rows, where, by):
    """Name, limit, what is, whether it is met."""
    found = usable(rows)
    return [*speed_targets(found, by), *memory_targets(found, where)]


# ---- Classes. ----

def scaled(row, name, by):
    """Milliseconds by class, which add up to the time without the profiler."""
    sums = row.get("classes", {}).get(name) or {}
    whole = sum(s[0] for s in sums.values())
    return {k: s[0] * ms(row, name, by) / whole for k, s in sums.items()} if whole > 0 else None


def class_sums(rows, by):
    """Of each class: ms of ours and of ONNX Runtime, operations and bytes of the nodes as written, share of the logarithmic
    loss, worst models."""
    sums = {}
    for r in usable(rows):
        ours, theirs = scaled(r, "om", by), scaled(r, "ort", by)
        if not ours or not theirs:
            continue
        a, b = sum(ours.values()), sum(theirs.values())
        per_ms = math.log(a / b) / (a - b) if abs(a - b) > 1e-9 * b else 1 / b
        for kind in {*ours, *theirs}:
            x, y, work = ours.get(kind, 0), theirs.get(kind, 0), r.get("work_classes", {}).get(kind, [0, 0])
            s = sums.setdefault(kind, [0.0, 0.0, 0.0, 0.0, 0.0, []])
            for k, v in enumerate((x, y, *work, (x - y) * per_ms)):
                s[k] += v
            s[5].append(((x - y) * per_ms, r["model"], x, y))
    return dict(sorted(sums.items(), key=lambda item: -item[1][4]))


def rate(amount, own, theirs, digits=1):
    """In billions a second; of a class that others have absorbed there is none."""
    return f"{amount / own / 1e6:.{digits}f}" if own > 0.1 * theirs else "–"


def worst(entries, n=4):
    found = [e for e in sorted(entries, reverse=True)[:n] if e[0] > 0.001]
    return ", ".join(f"{m.removeprefix('gen_')} {time_text(x)}/{time_text(y)}" for _, m, x, y in found)


def summary(rows, where, by):
    out = [""]
    builds = [k for k in where["builds"]]
    for name in builds:
        out.append(f"{name}: models, geometric mean of ONNX Runtime, of OpenVINO, of the better")
        out += [f"  {t:18} {n:3}  " + "  ".join(text(v, 3) for v in means) for t, n, *means in groups(rows, by, name)]
        if name != "om":
            same = geometric([ratio(r, name, "om", by) for r in rows if ran(r, name) and ran(r, "om")])
            out.append(f"  {name} is {text(same, 3)} times as fast as om")
    sums = class_sums(rows, by)
    out.append("class: ms ours, ms ONNX Runtime, lost ms, share of ln(ours / ONNX Runtime) in hundredths; ours/theirs of the worst models")
    out += [f"  {k:26} {s[0]:9.2f} {s[1]:9.2f} {s[0] - s[1]:+9.2f} {100 * s[4]:+8.1f}  {worst(s[5])}" for k, s in sums.items()]
    out += [f"  {'met' if ok else 'not met':8} {name}: {limit}; {what}" for name, limit, what, ok in targets(rows, where, by)]
    out += [f"  start of {k}: {v:.1f} ms" for k, v in where["start"].items()]
    out += [f"  peak: {k} {v:.1f}" for k, v in where["peak"].items()]
    return "\n".join(out)


def write_tsv(path, rows, where):
    """A line for each model and executor."""
    head = ["model", "executor", "ms", "least_ms", "cpu_ms", "first_ms", "rss_mib", "base_mib", "arena_bytes", "weight_bytes",
            "error_max", "error_mean", "difference_max", "failed"]
    with open(path, "w") as f:
        f.write("\t".join(head) + "\n")
        for r in rows:
            for name in executors(r):
                x = r[name]
                error, difference = x.get("error") or ["", ""], x.get("difference") or ["", ""]
                cells = [x.get(k, "") for k in ("best", "least", "cpu", "least_first", "rss", "base", "arena", "weights")]
                cells = [f"{c:.6g}" if isinstance(c, float) else str(c) for c in (*cells, *error, difference[0])]
                f.write("\t".join([r["model"], name, *cells, x.get("failed", "")]) + "\n")
            if "failed" in r:
                f.write("\t".join([r["model"], "", *[""] * (len(head) - 3), r["failed"]]) + "\n")


# ---- The page. ----

PAGE = """# The executor beside others

Made by `make bench-run` (`bench/run.py`), on {time}.

| | |
|---|---|
| processor | {cpu}, processors {cpus}, {threads} thread(s), instruction set {isa} |
| peak, measured by `bench/peak` | {peaks} |
| onnxmem | {commit}, build {builds} |
| peers | {versions} |
| method | {rounds} rounds, each executor in a process of its own, interleaved; {by}; batch 1, the same inputs |

## How to read it

*ms*: time of a run. *of ORT*, *of better*: how many times as fast as ONNX Runtime, and as the better of the two peers; above 1 is faster. *first*: from loading the file to
the first output, in milliseconds: for onnxmem a whole process less one of `onnxmem --version`, which takes {start} ms; for the peers without Python and the import of their module. *RSS*: peak resident
MiB, for the peers less that of Python with the inputs. *arena*, *weights*: MiB that the executor reports. *GFLOP/s* counts the operations of the model as the file has it, so
an algorithm that needs fewer (Winograd) exceeds the peak; *of peak* is their share of the measured peak of the instruction set; *GB/s* is the file and the inputs, read once
a run. Weights of graphs without weights are random.

"""
PROFILE = """
## Where the time is lost

Nodes of both profiles by class, scaled to the times without a profiler. *lost*: milliseconds over all models, positive where onnxmem is slower. *share*: the part of the class in the
logarithm of the ratio of times, each model weighing alike, in hundredths. *GFLOP/s* and *GB/s* are ours. An op fused into another counts with that one.

"""
ACCURACY = """
## Accuracy

Largest and mean difference from the outputs in float64 (largest / mean), relative to the largest element of each output. The float64 outputs are computed by the reference kernels from the same model in
float64, or by the onnx package's reference; random weights make some networks ill-conditioned for every executor alike.

"""


def table(head, rows):
    yield "| " + " | ".join(head) + " |"
    yield "|---|" + "---:|" * (len(head) - 1)
    yield from ("| " + " | ".join(map(str, row)) + " |" for row in rows)


def peak_flops(where):
    found = [v for k, v in where["peak"].items() if k in ("generic", "avx2", "avx512")]
    return where["peak"].get(where["isa"]) or max(found)


def speed_cells(row, where, by):
    own, weights = ms(row, "om", by), row["om"]["weights"]
    flops, size = row["work"] or (0, 0)
    rate = flops / own / 1e6
    cell = lambda p: time_text(ms(row, p, by)) if ran(row, p) else "–"
    return [row["model"], time_text(own), *map(cell, NAMES), text(ratio(row, "om", "ort", by)), text(of_better(row, "om", by)),
            f"{first(row, 'om', where):.0f}", f"{first(row, 'ort', where):.0f}" if ran(row, "ort") else "–",
            f"{row['om']['rss']:.0f}", f"{net_rss(row, 'ort'):.0f}" if ran(row, "ort") else "–",
            f"{row['om']['arena'] / MIB:.2f}", f"{weights / MIB:.1f}", f"{rate:.0f}", f"{100 * rate / peak_flops(where):.0f} %",
            f"{size / own / 1e6:.1f}"]


def failures(rows):
    for r in rows:
        if "failed" in r:
            yield f"* {r['model']}: {r['failed']}"
        for name in (k for k, x in r.items() if isinstance(x, dict)):
            for what in ("failed", "no_outputs", "no_profile"):
                if what in r.get(name, {}):
                    yield f"* {r['model']}, {NAMES.get(name, 'onnxmem' + name[2:])}: {r[name][what]}"
        if "compared" not in r and "failed" not in r:
            yield f"* {r['model']}: its outputs were not compared (--no-accuracy)"
        if "no_double" in r:
            yield f"* {r['model']}, float64: {r['no_double']}"


def accuracy_cells(row):
    return [row["model"], *(error_text(row.get(n, {}).get("error")) for n in ("om", *NAMES)), error_text(row["om"].get("difference"))]


def body(rows, where, by):
    done = sorted((r for r in rows if ran(r, "om")), key=lambda r: ratio(r, "om", "ort", by) or math.inf)
    yield from table(["model", "ms", "ORT ms", "OpenVINO ms", "of ORT", "of better", "first", "ORT first", "RSS", "ORT RSS", "arena", "weights",
                      "GFLOP/s", "of peak", "GB/s"], (speed_cells(r, where, by) for r in done))
    for name in where["builds"]:
        yield "\n## Geometric means" + (f" of {name}" if name != "om" else "") + "\n"
        yield from table(["group", "models", "of ORT", "of OpenVINO", "of better"],
                         ([t, n, *(text(v) for v in means)] for t, n, *means in groups(rows, by, name)))
    yield "\n## Targets\n"
    yield from table(["what", "target", "measured", "met"],
                     ([name, limit, what, "yes" if ok else "**no**"] for name, limit, what, ok in targets(rows, where, by)))
    yield PROFILE.rstrip("\n") + "\n"
    sums = class_sums(rows, by)
    peak = peak_flops(where)
    yield from table(["class", "ms", "ORT ms", "lost", "share", "GFLOP/s", "% of peak", "GB/s", "models that lose most (ms / ORT ms)"],
                     ([k, f"{s[0]:.2f}", f"{s[1]:.2f}", f"{s[0] - s[1]:+.2f}", f"{100 * s[4]:+.1f}", rate(s[2], *s[:2]),
                       rate(100 * s[2] / peak, *s[:2], 0), rate(s[3], *s[:2]), worst(s[5]) or "–"] for k, s in sums.items()))
    yield ACCURACY.rstrip("\n") + "\n"
    yield from table(["model", "onnxmem", *NAMES.values(), "onnxmem from ONNX Runtime"], map(accuracy_cells, sorted(done, key=lambda r: r["model"])))
    lines = [re.sub(r"/\S*/", "", line) for line in failures(rows)]          # without folders of this machine
    yield "\n## What did not run\n"
    yield "\n".join(lines) if lines else "Nothing."


def page(rows, where, by):
    words = dict(where)
    words["by"] = {"best": "a round counts with its best run, the result is the median of the rounds", "least": "the least time of all runs",
                   "cpu": "the least processor time of a run, as the machine had other work"}[by]
    words["start"] = ", ".join(f"{v:.0f}" for v in where["start"].values())
    words["peaks"] = ", ".join(f"{k} {v:.0f} {'GB/s' if k in ('read', 'copy') else 'GFLOP/s'}" for k, v in where["peak"].items())
    words["builds"] = ", ".join(where["builds"].values())
    words["versions"] = ", ".join(f"{n} {where[k]}" for k, n in (("onnxruntime", "ONNX Runtime"), ("openvino", "OpenVINO")) if k in where)
    words["cpus"] = ", ".join(map(str, where["cpus"]))
    return PAGE.format(**words) + "\n".join(body(rows, where, by)) + "\n"
