# SPDX-License-Identifier: Apache-2.0
"""Real models do on the command line what people use them for: planned once,
then run on digits, a picture, a line of text, speech, a noisy tone and files,
as often as the task needs, with states carried from run to run in files.
Beside what is to be seen in the numbers, each run gives those of ONNX Runtime.

`real.py NAME...` runs the tasks whose names contain one of the words."""
import os
import subprocess
import sys

from command import DATA, Wrong, bound_shapes, compare, index_rows, np, onnx, onnxmem, session
from tap import SRC, Points, scratch, skip_all

RATE = 16000


class Planned:
    """A model that was planned, and the one that ONNX Runtime has."""

    def __init__(self, stem, tmp):
        self.stem, self.tmp = stem, tmp
        path = os.path.join(DATA, "models", stem + ".onnx")
        self.planned = os.path.join(tmp, stem + ".onnx")
        self.runtime = session(path)
        dims = bound_shapes(index_rows()[stem])
        onnxmem("plan", path, self.planned, *(f"--input-shape={n}:{d}" for n, d in dims.items()))

    def run(self, feeds):
        """One run of the command; every tensor goes through a file."""
        args = []
        for k, (name, x) in enumerate(feeds.items()):
            file = os.path.join(self.tmp, f"{self.stem}_{k}.npy")
            np.save(file, x)
            args.append(f"--input={name}:{file}")
        out = os.path.join(self.tmp, self.stem)
        onnxmem("run", self.planned, *args, "--save", out)
        return [read_pb(os.path.join(out, f"output_{k}.pb")) for k in range(len(self.runtime.get_outputs()))]

    def run_reference(self, feeds):
        return self.runtime.run(None, feeds)


def read_pb(path):
    t = onnx.TensorProto()
    with open(path, "rb") as f:
        t.ParseFromString(f.read())
    return onnx.numpy_helper.to_array(t)


def vectors(m):
    """The test vector that came with a model: (what was said, outputs)."""
    data = os.path.join(DATA, "vectors", m.stem, "test_data_set_0")
    out = os.path.join(m.tmp, "vector")
    said = onnxmem("run", m.planned, "--data", data, "--expect", data, "--save", out).splitlines()[-1]
    if not said.startswith("PASSED"):
        raise Wrong(said)
    return said, read_pb(os.path.join(out, "output_0.pb")), read_pb(os.path.join(data, "output_0.pb"))


# ---- A digit; a picture. ----

def mnist(tmp):
    said, got, want = vectors(Planned("mnist_8", tmp))
    if got.argmax() != want.argmax():
        raise Wrong(f"the digit is {got.argmax()}, wanted {want.argmax()}")
    return f"the digit is {got.argmax()}; {said}"


def super_resolution(tmp):
    said, got, _ = vectors(Planned("super_resolution_10", tmp))
    return f"{'x'.join(map(str, got.shape[2:]))} pixels from 224x224; {said}"


# ---- A line of text. ----

# Each row of a glyph as a number of five bits, the leftmost pixel the highest.
GLYPHS = {
    "0": (0x0e, 0x11, 0x11, 0x11, 0x11, 0x11, 0x0e),
    "2": (0x0e, 0x11, 0x01, 0x02, 0x04, 0x08, 0x1f),
    "6": (0x06, 0x08, 0x10, 0x1e, 0x11, 0x11, 0x0e),
    "7": (0x1f, 0x01, 0x02, 0x04, 0x08, 0x08, 0x08),
    "E": (0x1f, 0x10, 0x10, 0x1e, 0x10, 0x10, 0x1f),
    "T": (0x1f, 0x04, 0x04, 0x04, 0x04, 0x04, 0x04),
    "X": (0x11, 0x11, 0x0a, 0x04, 0x0a, 0x11, 0x11),
}


def draw(text, height, width, scale):
    """Dark letters on light paper, in pixels 0 to 255."""
    page = np.full((height, width), 230.0)
    top, left = (height - 7 * scale) // 2, 2 * scale
    for c in text:
        bits = np.array([[row >> (4 - x) & 1 for x in range(5)] for row in GLYPHS[c]], bool)
        big = bits.repeat(scale, 0).repeat(scale, 1)
        page[top:top + 7 * scale, left:left + 5 * scale][big] = 25
        left += 6 * scale
    return page


def ctc(scores):
    """The likeliest index of each column, repeats once, without the blank."""
    best = scores.argmax(-1)
    return [int(b) for k, b in enumerate(best) if b and (k == 0 or b != best[k - 1])]


def ppocr(tmp):
    m = Planned("ppocr_v4_rec", tmp)
    said = []
    for text in ("TEXT", "720627"):
        page = (draw(text, 48, 320, 5) / 255 - 0.5) / 0.5
        feeds = {"x": np.repeat(page[None, None], 3, 1).astype(np.float32)}
        (got,), (want,) = m.run(feeds), m.run_reference(feeds)
        read = ctc(got[0])
        if read != ctc(want[0]):
            raise Wrong(f"{text} is read as {read}, by ONNX Runtime as {ctc(want[0])}")
        compare("scores", got, want, atol=1e-4)
        if [read.index(i) for i in read] != [text.index(c) for c in text]:
            raise Wrong(f"{text} is read as {read}: equal letters are not equal numbers")
        said.append(f"{text} is read as {' '.join(map(str, read))}")
    return "; ".join(said)


# ---- Speech. ----

def resonate(x, frequency, bandwidth):
    """A formant: a pair of poles, with a gain of one at 0 Hz."""
    r = np.exp(-np.pi * bandwidth / RATE)
    b, c = 2 * r * np.cos(2 * np.pi * frequency / RATE), -r * r
    y = np.zeros(len(x) + 2)
    for k, v in enumerate(x):
        y[k + 2] = (1 - b - c) * v + b * y[k + 1] + c * y[k]
    return y[2:]


def vowel(samples):
    """An "a": glottal pulses, their pitch gliding as a voice's does, and breath.
    Without breath the spectrum has bins of rounding alone, and Silero takes
    their logarithms: ONNX Runtime then moves its own states by 4e-3 when the
    samples change by 1e-8 of themselves."""
    t = np.arange(samples) / RATE
    phase = np.cumsum(125 + 15 * np.sin(2 * np.pi * 4 * t)) / RATE
    pulse = np.maximum(0, np.sin(2 * np.pi * phase)) ** 3
    x = np.diff(pulse, prepend=0)
    for frequency, bandwidth in ((730, 80), (1090, 90), (2440, 120)):
        x = resonate(x, frequency, bandwidth)
    return 0.4 * x / np.abs(x).max() + np.random.default_rng(1).normal(0, 1e-3, samples)


def probabilities(m, frames, states):
    """Frames streamed through the command and through ONNX Runtime, each with
    states of its own: what either says about each frame."""
    ours, theirs, said = dict(states), dict(states), []
    for k, x in enumerate(frames):
        frame = {"input": x[None].astype(np.float32), "sr": np.array(RATE, np.int64)}
        got, want = m.run(frame | ours), m.run_reference(frame | theirs)
        for name, g, w in zip(("probability", *states), got, want):
            compare(f"frame {k}: {name}", g, w)
        ours, theirs = dict(zip(states, got[1:])), dict(zip(states, want[1:]))
        said.append(float(got[0].reshape(-1)[0]))
    return said


def speech(tmp, stem, size, context, states, voiced):
    """A second of silence, then a vowel."""
    silent = -(-RATE // size)
    sound = np.concatenate((np.zeros(context + silent * size), vowel(voiced * size)))
    frames = [sound[k * size:k * size + context + size] for k in range(silent + voiced)]
    said = probabilities(Planned(stem, tmp), frames, states)
    quiet, loud = max(said[:silent]), max(said[silent:])
    if quiet >= 0.5:
        raise Wrong(f"silence is speech with a probability of {quiet:.3f}")
    if loud < 0.5:
        raise Wrong(f"a vowel is speech with a probability of {loud:.3f} only")
    return f"{len(frames)} frames; speech in silence {quiet:.3f}, in a vowel {loud:.3f}"


def silero_v5(tmp):
    return speech(tmp, "silero_vad_v5", 512, 64, {"state": np.zeros((2, 1, 128), np.float32)}, 12)


def silero_v4(tmp):
    return speech(tmp, "silero_vad_v4", 1536, 0,
                  {s: np.zeros((2, 1, 64), np.float32) for s in ("h", "c")}, 8)


# ---- A noisy tone. ----

def enhance(run, sound, count):
    """Frames of 512 samples, 128 further each time: the first net masks their
    spectrum, the second one what came out of that."""
    states = [np.zeros((1, 2, 128, 2), np.float32)] * 2
    frames = []
    for k in range(count):
        spectrum = np.fft.rfft(sound[128 * k:128 * k + 512])
        magnitude = np.abs(spectrum).reshape(1, 1, -1).astype(np.float32)
        mask, states[0] = run[0]({"input_2": magnitude, "input_3": states[0]})
        clean = np.fft.irfft(spectrum * mask.reshape(-1)).reshape(1, 1, -1).astype(np.float32)
        frame, states[1] = run[1]({"input_4": clean, "input_5": states[1]})
        frames.append(frame.reshape(-1))
    return np.stack(frames)


def dtln(tmp):
    count = 6
    nets = [Planned("dtln_1", tmp), Planned("dtln_2", tmp)]
    t = np.arange(512 + 128 * count) / RATE
    sound = 0.3 * np.sin(2 * np.pi * 440 * t) + np.random.default_rng(1).normal(0, 0.05, t.size)
    got = enhance([n.run for n in nets], sound, count)
    compare("enhanced frames", got, enhance([n.run_reference for n in nets], sound, count))
    return f"{count} frames; loudness {np.sqrt((sound ** 2).mean()):.3f}, then {np.sqrt((got ** 2).mean()):.3f}"


# ---- Files. ----

PADDING = 256
FILES = ("README.md", "src/ir/builder.c", "docs/digits.svg", "tests/models/real.py")


def features(path, size):
    """Half from the start, half from the end, both without blanks outside, and
    padded away from the file's edges."""
    with open(path, "rb") as f:
        data = f.read()
    start, end = data.lstrip()[:size // 2], data.rstrip()[-(size // 2):]
    row = np.full(size, PADDING, np.int32)
    row[:len(start)] = list(start)
    row[size - len(end):] = list(end)
    return row


def magika(tmp, stem):
    m = Planned(stem, tmp)
    size = m.runtime.get_inputs()[0].shape[1]
    said = []
    for name in FILES:
        feeds = {"bytes": features(os.path.join(SRC, name), size)[None]}
        (got,), (want,) = m.run(feeds), m.run_reference(feeds)
        compare(name, got, want)
        if got.argmax() != want.argmax():
            raise Wrong(f"{name} is of kind {got.argmax()}, for ONNX Runtime {want.argmax()}")
        said.append((int(got.argmax()), f"{name} {got.argmax()} ({got.max():.2f})"))
    if len({kind for kind, _ in said}) < len(said):
        raise Wrong("files of different kinds are of one kind: " + ", ".join(text for _, text in said))
    return "kinds: " + ", ".join(text for _, text in said)


TASKS = {
    "mnist_8": mnist, "super_resolution_10": super_resolution, "ppocr_v4_rec": ppocr,
    "silero_vad_v5": silero_v5, "silero_vad_v4": silero_v4, "dtln_1, dtln_2": dtln,
    "magika_v3_3": lambda tmp: magika(tmp, "magika_v3_3"),
    "magika_v2_1": lambda tmp: magika(tmp, "magika_v2_1"),
}


def main():
    if not os.path.exists(os.path.join(DATA, "index.tsv")):
        skip_all("the shared data are not there")
    t = Points()
    words = sys.argv[1:]
    for name, task in TASKS.items():
        if words and not any(w in name for w in words):
            continue
        try:
            with scratch() as tmp:
                good, said = True, task(tmp)
        except (Wrong, OSError, subprocess.TimeoutExpired) as e:
            good, said = False, str(e)
        t.point(good, name + (": " + said if good else ""), said)
    t.end()


main()
