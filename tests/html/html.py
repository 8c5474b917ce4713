# SPDX-License-Identifier: Apache-2.0
"""The page of `report --html` in a headless Chromium: looked at, pointed at, searched.

    html.py MODELS [FOLDER]     with a FOLDER, screenshots are left in it
"""
import json
import os
import sys
import tempfile
import traceback

import chromium
from pages import large, page

MODELS = sys.argv[1]
SHOTS = sys.argv[2] if len(sys.argv) > 2 else None
os.chdir(tempfile.mkdtemp(prefix="onnxmem-html-"))
LARGE = 12000


# Branches in branches, in a loop.
NESTED = """program "nested" ir 8 opset 13
^main(%n: int64[], %x: float32[16,16], %c: bool[]) {
	%go = const bool[] {1}
	%z = Loop(%n, %go, %x) {body = ^body(%i: int64[], %on: bool[], %s: float32[16,16]) {
		%t = If(%c) {then_branch = ^t() {
			%u = If(%c) {then_branch = ^tt() {
				%a = MatMul(%s, %s)
				ret %a
			}, else_branch = ^te() {
				%b = Exp(%s)
				%b2 = MatMul(%b, %b)
				ret %b2
			}}
			ret %u
		}, else_branch = ^e() {
			%d = Neg(%s)
			ret %d
		}}
		%on2 = Identity(%on)
		ret %on2, %t
	}}
	%y = MatMul(%z, %x)
	ret %y
}
"""

# Two ops, and twenty that are folded between them.
FOLDED = "program \"folded\" ir 8 opset 17\n^folded(%x: float32[64]) {\n\t%k0 = const float32[1] {1}\n\t%a = Exp(%x)\n" \
    + "".join("\t%%k%d = Neg(%%k%d)\n" % (k, k - 1) for k in range(1, 21)) \
    + "\t%b = Mul(%a, %k20)\n\t%y = ReduceMax(%b) {axes = [0]}\n\tret %y\n}\n"

TESTS = []


def test(what):
    return lambda f: TESTS.append((what, f))


def box(b, name):
    at = b.eval("(() => { const b = onnxmem.boxes.find(b => b.name === %s); return {...onnxmem.place(b), kind: b.kind}; })()" % json.dumps(name))
    return at["x"], at["y"]


def view(b):
    return b.eval("({...onnxmem.view})")


def shot(b, name):
    if SHOTS:
        b.screenshot(os.path.join(SHOTS, name + ".png"))


@test("a small model: drawn, with its figures and its peak")
def _(b):
    b.open(page(MODELS + "/digits.onnx", "--all-strategies"))
    assert b.eval("document.title") == "digits.onnx - onnxmem"
    assert b.eval("onnxmem.boxes.length") == 9
    text = b.eval("document.body.innerText")
    assert "6.00 KiB" in text and "optimal" in text and "60.2 %" in text and "Live at the peak: step 4" in text, text
    x, y = box(b, "c3")
    pixel = b.eval("(() => { const m = document.getElementById('map'), r = m.getBoundingClientRect(); "
                   "return [...m.getContext('2d').getImageData(%f - r.left + 20, %f - r.top + 20, 1, 1).data]; })()" % (x, y))
    assert pixel == [0x44, 0x77, 0xaa, 255], pixel
    assert b.eval("document.querySelectorAll('tr[data-box]').length") == 3
    assert b.eval("[...document.querySelectorAll('h2')].some(h => h.textContent.startsWith('Strategies'))")
    table = b.eval("[...document.querySelectorAll('#tables table')[1].rows].map(r => [...r.cells].map(c => c.innerText))")
    assert table[0] == ["strategy", "original order", "schedule bfs", "schedule min-memory", "parallel-safe"], table
    assert table[1][0] == "naive" and table[-1][0] == "lower bound" and table[-1][3] == "6.00 KiB", table
    assert any(row[0] == "packer" and row[3].split() == ["6.00", "KiB", "optimal"] for row in table), table
    shot(b, "small")


@test("pointing at a tensor tells name, op, shape, bytes, life, and why it is not shared")
def _(b):
    b.open(page(MODELS + "/digits.onnx"))
    x, y = box(b, "c2")
    b.mouse("mouseMoved", x - 20, y)        # in its first step: in the second r2 lies over it
    tip = b.eval("document.getElementById('tip').innerText")
    assert not b.eval("document.getElementById('tip').hidden")
    for words in ("c2", "Conv", "float32[1,8,8,8]", "2.00 KiB", "steps 2 to 3", "storage of its own", "not over r1: Conv never computes over an input"):
        assert words in tip, tip
    b.mouse("mouseMoved", *box(b, "r2"))
    assert "computed over c2" in b.eval("document.getElementById('tip').innerText")
    b.mouse("mouseMoved", 5, 5)
    assert b.eval("document.getElementById('tip').hidden")


@test("a click keeps a tensor in the panel, and shows what shares its storage")
def _(b):
    b.open(page(MODELS + "/digits.onnx"))
    b.click(*box(b, "r1"))
    assert b.eval("onnxmem.state().selected") == "r1"
    side = b.eval("document.getElementById('side').innerText")
    assert "In the same storage" in side and "sum" in side and "Live at the peak." in side, side
    b.eval("document.querySelector('tr[data-box]').click()")
    assert b.eval("onnxmem.state().selected") == "c3"


@test("search, by names and operators; Enter goes on")
def _(b):
    b.open(page(MODELS + "/digits.onnx"))
    b.key("/")
    b.type("relu")
    assert b.eval("onnxmem.state().found") == 3 and b.eval("document.getElementById('found').textContent") == "3 of 9"
    b.key("Enter")
    b.key("Enter")
    assert b.eval("onnxmem.state().selected") == "r2"
    b.key("Escape")
    assert b.eval("onnxmem.state().found") is None and b.eval("onnxmem.state().selected") is None
    b.type("nothing like that")
    assert b.eval("onnxmem.state().found") == 0


@test("zoom by wheel and keys, drag, all of it, the peak")
def _(b):
    b.open(page(MODELS + "/digits.onnx"))
    whole = view(b)
    x, y = box(b, "c3")
    b.mouse("mouseWheel", x, y, deltaX=0, deltaY=-400)
    near = view(b)
    assert near["x1"] - near["x0"] < .8 * (whole["x1"] - whole["x0"]) and near["y1"] - near["y0"] < .8 * (whole["y1"] - whole["y0"]), near
    at = box(b, "c3")
    assert abs(at[0] - x) < 2 and abs(at[1] - y) < 2, (at, x, y)
    b.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)
    b.mouse("mouseMoved", x - 60, y + 30, button="left", buttons=1)
    b.mouse("mouseReleased", x - 60, y + 30, button="left", clickCount=1)
    moved = view(b)
    assert moved["x0"] > near["x0"] and moved["y0"] > near["y0"], (near, moved)
    assert b.eval("onnxmem.state().selected") is None, "a drag is no click"
    b.eval("document.activeElement.blur()")
    b.key("0")
    assert view(b) == whole
    b.key("+")
    assert view(b)["x1"] - view(b)["x0"] < whole["x1"] - whole["x0"]
    b.key("p")
    assert view(b)["x0"] <= 4 <= view(b)["x1"]


@test("before and after")
def _(b):
    b.open(page(MODELS + "/digits.onnx"))
    b.eval("document.getElementById('before').click()")
    assert b.eval("onnxmem.state().before") and view(b)["y1"] > 13000
    b.eval("document.getElementById('before').click()")
    assert not b.eval("onnxmem.state().before") and view(b)["y1"] < 7000


@test("a tiled program: regions with their bands, the peaks that were found, and the floor")
def _(b):
    b.open(page(MODELS + "/digits.onnx", "--tile"))
    bands = b.eval("onnxmem.D.bands")
    assert [text for _, _, text in bands] == ["region 1 (sum)", "band 1 of 2", "band 2 of 2"], bands
    first, last, _ = bands[0]
    assert all(first <= f <= l <= last for f, l, _ in bands) and bands[1][1] < bands[2][0], bands
    heads = b.eval("[...document.querySelectorAll('h2')].map(h => h.textContent)")
    assert "Tiled regions" in heads and "Peaks by tiling" in heads and "Highest steps outside of regions" in heads, heads
    text = b.eval("document.body.innerText")
    assert "Untiled, the arena is 6,144 bytes" in text and "needs even row by row" in text, text


@test("loops and branches: bands, and values that move")
def _(b):
    b.open(page(MODELS + "/loop.onnx"))
    assert b.eval("onnxmem.D.bands.length") >= 1
    moving = b.eval("onnxmem.D.moving.length")
    assert ("rotate buffers in a loop" in b.eval("document.body.innerText")) == (moving > 0)
    shot(b, "loop")


@test("labels of nested bodies are apart, each inside of its body")
def _(b):
    for model in ("nested.ir", MODELS + "/nnc_nested.onnx"):
        if model == "nested.ir":
            with open(model, "w") as f:
                f.write(NESTED)
        b.open(page(model))
        assert b.eval("onnxmem.D.bands.length") >= 2
        labels = b.eval("onnxmem.labels()")
        assert len(labels) >= 2, labels
        for k, one in enumerate(labels):
            assert one["right"] > one["left"] and one["text"], one
            for other in labels[:k]:
                apart = one["top"] >= other["top"] + 14 or other["top"] >= one["top"] + 14 or one["left"] >= other["right"] or other["left"] >= one["right"]
                assert apart, (one, other)
    shot(b, "nested")


@test("a color has one meaning")
def _(b):
    b.open(page(MODELS + "/digits.onnx"))
    colors = b.eval("[...document.querySelectorAll('#legend i')].map(i => getComputedStyle(i).backgroundColor)")
    assert len(colors) >= 5 and len(set(colors)) == len(colors), colors
    used = b.eval("""(() => { const c = document.getElementById("curve"), g = c.getContext("2d"), found = new Set();
        const d = g.getImageData(0, 0, c.width, c.height).data;
        for (let k = 0; k < d.length; k += 4) if (d[k + 3] === 255) found.add([d[k], d[k + 1], d[k + 2]].join());
        return [...found]; })()""")
    assert "68,119,170" not in used, "blue is storage of its own"


@test("steps are those of ops that run: no empty columns")
def _(b):
    with open("folded.ir", "w") as f:
        f.write(FOLDED)
    b.open(page("folded.ir"))
    assert b.eval("onnxmem.D.steps") == 4, b.eval("onnxmem.D.steps")
    assert b.eval("onnxmem.D.ops.map(o => [o[0], o[1], o[2]])") == [[0, 0, "Exp (node 0)"], [1, 1, "Mul (node 21)"], [2, 2, "ReduceMax (node 22)"]]
    assert b.eval("onnxmem.boxes.map(b => [b.name, b.first, b.last])") == [["a", 0, 1], ["b", 1, 2]]
    assert "Live at the peak: step 0, Exp (node 0)" in b.eval("document.body.innerText")


@test("rotating values at each of their locations in a loop")
def _(b):
    b.open(page(MODELS + "/nnc_lag.onnx"))
    rotating = b.eval("onnxmem.boxes.filter(b => b.regions.length).map(b => [b.name, b.placed, b.regions])")
    assert [name for name, placed, _ in rotating] == ["b4", "b1", "b2", "b3", "b0"], rotating
    assert [placed for _, placed, _ in rotating] == [True] * 4 + [False], "b0 is in the caller's memory first"
    taken = sorted((t["from"], t["to"], t["y"]) for _, _, regions in rotating for t in regions)
    assert len(taken) == len(set(taken)) == 20, "no two at one address in one iteration: %s" % taken
    assert len({y for _, _, y in taken}) == 4
    third = [t for name, _, regions in rotating if name == "b2" for t in regions][2]
    at = b.eval("(p => [p.x, p.y])(onnxmem.point(%f, %f))" % ((third["from"] + third["to"]) / 2, third["y"] + third["bytes"] / 2))
    b.mouse("mouseMoved", *at)
    tip = b.eval("document.getElementById('tip').innerText")
    assert tip.startswith("b2") and "here in iteration 2;" in tip and "rotates through 448, 896, 1344, x0, 0" in tip, tip
    shot(b, "rotation")


@test("several arenas, and a plan for every order")
def _(b):
    b.open(page(MODELS + "/digits.onnx", "--arena", "fast=4K", "--arena", "slow"))
    assert b.eval("onnxmem.D.arenas.length") == 2 and "slow" in b.eval("document.querySelector('#tables').innerText")
    b.open(page(MODELS + "/digits.onnx", "--parallel-safe"))
    assert b.eval("onnxmem.D.peak.step") is None and "Live at once in some order" in b.eval("document.body.innerText")


@test("names that are no friends of pages")
def _(b):
    with open("names.ir", "w") as f:
        f.write('program "names" ir 8 opset 14\n^main(%x: float32[8,8]) {\n'
                '\t%"</script><script>document.title=1</script>" = Neg(%x) as "<img src=x onerror=document.title=2>"\n'
                '\t%"<b>&amp;" = Exp(%"</script><script>document.title=1</script>")\n'
                '\t%y = MatMul(%"<b>&amp;", %"</script><script>document.title=1</script>")\n\tret %y\n}\n')
    b.open(page("names.ir"))
    assert b.eval("document.title") == "names.ir - onnxmem"
    assert b.eval("onnxmem.boxes[0].name") == "</script><script>document.title=1</script>"
    b.mouse("mouseMoved", *box(b, "<b>&amp;"))
    assert "<b>&amp;" in b.eval("document.getElementById('tip').innerText")


@test("nothing in the arena")
def _(b):
    b.open(page(MODELS + "/function.onnx"))
    assert b.eval("onnxmem.boxes.length") == 0


# Counts the elements that loops and methods of arrays visit, what is drawn, and the nodes that are made.
COUNTING = """(() => {
    window.visited = 0;
    const count = (on, name) => { const was = on[name]; on[name] = function (...a) { window.visited++; return was.apply(this, a); }; };
    const steps = Object.getPrototypeOf([][Symbol.iterator]());
    for (const [on, names] of [[steps, ["next"]], [Document.prototype, ["createElement", "createElementNS"]], [Math, ["min", "max"]],
            [CanvasRenderingContext2D.prototype, ["fillRect", "strokeRect", "fillText", "lineTo", "moveTo", "stroke", "fill"]]])
        names.forEach(name => count(on, name));
    for (const name of ["forEach", "map", "filter", "find", "findIndex", "some", "every", "reduce", "sort", "flatMap"]) {
        const was = Array.prototype[name];
        Array.prototype[name] = function (f, ...rest) {
            return was.call(this, f && function (...a) { window.visited++; return f.apply(this, a); }, ...rest);
        };
    }
})()"""


def work(b, path):
    """What the page visits, draws and makes until it is drawn, and its nodes."""
    script = b.call("Page.addScriptToEvaluateOnNewDocument", source=COUNTING)["identifier"]
    b.open(path)
    b.frame()
    b.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)
    return b.eval("visited"), b.eval("document.getElementsByTagName('*').length")


@test("%d tensors: as much work for each as of a quarter, no node for any, found" % LARGE)
def _(b):
    few, few_nodes = work(b, large(LARGE // 4))
    many, many_nodes = work(b, large(LARGE))
    print("# %d and %d steps, %d and %d nodes" % (few, many, few_nodes, many_nodes))
    assert few > LARGE // 4
    assert many < 5 * few, (few, many)       # what is sorted is read a little more often
    assert abs(many_nodes - few_nodes) < 100, (few_nodes, many_nodes)
    assert b.eval("onnxmem.boxes.length") > LARGE - 20     # the last ones lie where the output does
    shot(b, "large")
    b.key("/")
    b.type("layer1500 matmul")
    assert b.eval("onnxmem.state().found") == 1
    b.key("Enter")
    assert b.eval("onnxmem.state().selected") == "layer1500.c"
    b.mouse("mouseMoved", *box(b, "layer1500.c"))
    assert "layer1500.c" in b.eval("document.getElementById('tip').innerText")
    shot(b, "large-found")


@test("in the dark, and on a small screen")
def _(b):
    b.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    b.call("Emulation.setDeviceMetricsOverride", width=420, height=800, deviceScaleFactor=2, mobile=True)
    b.open(page(MODELS + "/digits.onnx"))
    assert b.eval("document.documentElement.scrollWidth") <= 421, b.eval("document.documentElement.scrollWidth")
    shot(b, "dark")


def main():
    b = chromium.Browser()
    print("1..%d" % len(TESTS))
    for k, (what, f) in enumerate(TESTS, 1):
        try:
            f(b)
            assert not b.complaints(), b.complaints()
            print("ok %d - %s" % (k, what), flush=True)
        except Exception:
            print("not ok %d - %s\n# %s" % (k, what, traceback.format_exc().rstrip().replace("\n", "\n# ")), flush=True)
    b.close()


main()
