# SPDX-License-Identifier: Apache-2.0
"""`onnxmem fetch` against mirrors that behave in all ways that mirrors do.

Prints TAP.  Everything happens on the loopback device and in a folder of its own."""
import concurrent.futures
import hashlib
import io
import json
import os
import random
import re
import shutil
import signal
import ssl
import stat
import struct
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import traceback

import server

COMMAND = os.environ["ONNXMEM"]
inside = os.path.join(os.path.dirname(COMMAND), ".libs", "onnxmem")
if os.path.exists(inside):      # the program itself is quicker to start than its wrapper
    COMMAND = inside
    os.environ["LD_LIBRARY_PATH"] = os.path.dirname(inside)
ROOT = tempfile.mkdtemp(prefix="onnxmem-fetch-")
SIZE = 300000
rand = random.Random(7)


def sha(data):
    return hashlib.sha256(data).hexdigest()


MODEL = rand.randbytes(SIZE)
OLD = rand.randbytes(2000)
SMALL = rand.randbytes(500)

# ---- Archives, good ones and others. ----


def tar(*members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1, format=tarfile.PAX_FORMAT) as t:
        for name, what in members:
            info = tarfile.TarInfo(name)
            if isinstance(what, bytes):
                info.size = len(what)
                t.addfile(info, io.BytesIO(what))
            else:
                info.type, info.linkname = what
                t.addfile(info)
    return out.getvalue()


def sparse(name, size, *pieces):
    """An archive of one file, of which only the pieces are there."""
    numbers = [len(pieces)] + [n for at, data in pieces for n in (at, len(data))]
    body = "".join("%d\n" % n for n in numbers).encode().ljust(512, b"\0") + b"".join(data for _, data in pieces)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", format=tarfile.PAX_FORMAT) as t:
        info = tarfile.TarInfo("net/GNUSparseFile.0/x")
        info.size = len(body)
        info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": name,
                            "GNU.sparse.realsize": str(size)}
        t.addfile(info, io.BytesIO(body))
    return out.getvalue()


FOLDER = ("net", (tarfile.DIRTYPE, ""))
ARCHIVES = {
    "good": tar(("./net/", (tarfile.DIRTYPE, "")), ("./net/model.onnx", SMALL),
                ("./net/test_data_set_0/input_0.pb", b"in"), ("./net/test_data_set_0/output_0.pb", b"out")),
    "up": tar(("net/model.onnx", SMALL), ("net/../../../evil", b"x")),
    "root": tar(("/tmp/onnxmem-evil", b"x")),
    "symlink": tar(FOLDER, ("net/link", (tarfile.SYMTYPE, "/etc")), ("net/link/evil", b"x")),
    "hardlink": tar(FOLDER, ("net/a", b"x"), ("net/b", (tarfile.LNKTYPE, "net/a"))),
    "fifo": tar(FOLDER, ("net/pipe", (tarfile.FIFOTYPE, ""))),
    "twice": tar(("net/a", b"x"), ("net/a", b"y")),
    "bomb": tar(("net/zeros", bytes(65 << 20))),
    "many": tar(*(("net/%d" % k, b"") for k in range(5001))),
    "deep": tar(("/".join("d" * 20), b"x")),
    "hole": sparse("net/hole", 10 << 30),
    "holes": sparse("net/holes", 3000, (1000, b"hello")),
    "cut": tar(("net/model.onnx", rand.randbytes(40000)))[:-9000],
    "junk": rand.randbytes(3000),
}

# ---- The manifest and the mirrors. ----

FILES = {"dir/of/model.onnx": MODEL, "dir/model-7.onnx": OLD, "small.onnx": SMALL}
FILES.update({"org/repo/resolve/main/sub/net.onnx": MODEL, "org/repo/resolve/v1.0/sub/net.onnx": OLD,
              "org/repo/resolve/main/a@b/n et.onnx": SMALL})
FILES.update({"data/%s.tar.gz" % name: data for name, data in ARCHIVES.items()})


def entry(name, opset, path, tags=(), data=None):
    out = {"name": name, "opset": opset, "path": path, "bytes": len(FILES[path]), "sha256": sha(FILES[path]),
           "tags": list(tags)}
    if data:
        out["data"] = {"path": data, "bytes": len(FILES[data]), "sha256": sha(FILES[data])}
    return out


MANIFEST = [entry("Net", 7, "dir/model-7.onnx", ["vision", "old"]), entry("Net", 12, "dir/of/model.onnx", ["vision"]),
            entry("Small Net", 9, "small.onnx", ["text"])]
MANIFEST += [entry("a-" + name, 9, "small.onnx", ["archive"], "data/%s.tar.gz" % name) for name in ARCHIVES]
main, other = server.Mirror(FILES), server.Mirror(FILES)
main.other = other
main.sums = {path: sha(data) for path, data in FILES.items()}


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())


def read(path):
    with open(path, "rb") as f:
        return f.read()


write(ROOT + "/manifest.json", json.dumps({"schema": "onnxmem-manifest/1", "mirrors": [main.base("good")],
                                           "models": MANIFEST}))

# ---- One command in one cache. ----


class Case:
    def __init__(self):
        self.home = tempfile.mkdtemp(dir=ROOT)
        self.env = {k: v for k, v in os.environ.items()
                    if not re.search("(?i)proxy|XDG|ONNXMEM_(MIRRORS|MANIFEST|CONFIG)|SSL_CERT|CURL_CA", k)}
        self.env.update(HOME=self.home, ONNX_HOME=self.home + "/onnx", ONNXMEM_MANIFEST=ROOT + "/manifest.json")

    def path(self, path="dir/of/model.onnx"):
        dirs, _, name = path.rpartition("/")
        return os.path.join(self.home, "onnx/hub", dirs, sha(FILES[path]) + "_" + name)

    def start(self, *args, mirrors=(), before=None, delay="0.02"):
        words = [COMMAND, "fetch", "--timeout", "1", "--retry-delay", delay]
        for mirror in mirrors:
            words += ["--mirror", main.base(mirror) if "://" not in mirror else mirror]
        return subprocess.Popen(words + list(args), env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                preexec_fn=before, text=True)

    def run(self, *args, **how):
        process = self.start(*args, **how)
        self.out, self.err = process.communicate(timeout=60)
        self.status = process.returncode
        return self

    def good(self, path="dir/of/model.onnx"):
        assert self.status == 0, self
        assert self.out.splitlines()[-1].startswith("PASSED "), self
        assert self.out.splitlines()[0] == self.path(path), self
        assert read(self.path(path)) == FILES[path]
        assert not self.left(), self.left()
        return self

    def bad(self, words, status=6):
        assert self.status == status, self
        last = (self.out.splitlines() or [""])[-1]
        assert last.startswith("FAILED ") or status == 2, self
        assert re.search(words, last + self.err), self
        return self

    def left(self):
        """What lies in the cache and is no file with its name."""
        return [name for _, _, names in os.walk(self.home) for name in names if ".part" in name or ".new" in name]

    def __repr__(self):
        return "status %s\nout: %s\nerr: %s" % (self.status, self.out, self.err)


TESTS = []


def test(what):
    def add(f):
        TESTS.append((what, f))
        return f
    return add


def net(*words, **how):
    mirrors = words[:words.index("--retries")] if "--retries" in words else words
    return Case().run("net", *words[len(mirrors):], mirrors=mirrors, **how)


# ---- Names and the cache. ----

@test("a model by its name, in the layout of the ONNX Hub")
def _():
    case = Case().run("nEt").good()
    assert stat.S_IMODE(os.stat(case.path()).st_mode) == 0o644
    assert "PASSED 1 fetched, 0 from the cache" in case.out


@test("what is in the cache is compared and not asked for again")
def _():
    case = net("good-again").good()
    case.run("net", mirrors=["good-again"]).good()
    assert "PASSED 0 fetched, 1 from the cache" in case.out and len(main.asked("good-again")) == 1
    write(case.path(), MODEL[:-1] + b"x")
    case.run("net", "--offline").bad("has the SHA-256 .*without --offline")
    case.run("net", mirrors=["good-again"]).good()
    assert "damaged" in case.err and len(main.asked("good-again")) == 2
    write(case.path(), b"")
    case.run("net").good()


@test("the opset that is asked for, and the highest")
def _():
    case = Case().run("net", "--opset", "7").good("dir/model-7.onnx")
    case.run("net", "--opset", "8").bad("has net with opset 7, 12, not 8", 2)


@test("names that are not there")
def _():
    case = Case().run("netz").bad("no model called netz; there are Net, Small Net", 2)
    case.run().bad("requires the name of a model", 2)
    case.run("zzz").bad("--list", 2)


@test("several at once; one that fails does not keep the others")
def _():
    case = Case().run("net", "small net", mirrors=["good"])
    assert case.out.splitlines() == [case.path(), case.path("small.onnx"), "PASSED 2 fetched, 0 from the cache"], case
    case = Case().run("net", "nothing", "small net", "a-good", mirrors=["good"])
    assert case.status == 2 and case.path("small.onnx") in case.out and "no model called nothing" in case.err, case


@test("--offline uses the cache alone")
def _():
    case = Case().run("net", "--offline").bad("not in the cache .*--offline forbids downloads")
    case.run("net").good().run("net", "--offline").good()


@test("where the cache is")
def _():
    for name, folder in (("XDG_CACHE_HOME", "/onnx/hub"), ("HOME", "/.cache/onnx/hub")):
        case = Case()
        del case.env["ONNX_HOME"]
        case.env[name] = case.home + "/x"
        case.run("small net")
        assert case.out.startswith(case.home + "/x" + folder + "/" + sha(SMALL) + "_small.onnx"), case
    case = Case()
    case.run("small net", "--cache", case.home + "/here")
    assert case.out.startswith(case.home + "/here/"), case


# ---- Ranges. ----

def with_part(mirror, part, **how):
    case = Case()
    write(case.path() + ".part", part)
    return case.run("net", mirrors=[mirror], **how)


@test("a part is gone on with")
def _():
    with_part("good-range", MODEL[:100000]).good()
    assert main.asked("good-range")[0][2] == "bytes=100000-"


@test("a server without ranges sends all again")
def _():
    with_part("plain", MODEL[:100000]).good()


@test("a server that sends another part than the one asked for")
def _():
    with_part("shifted", MODEL[:100000]).good()


@test("a server that has nothing behind a part")
def _():
    with_part("nothing", MODEL[:100000]).good()


@test("a part that is all of it requires no transfer; one that is too long, or wrong, is nothing")
def _():
    with_part("good-whole", MODEL).good()
    assert not main.asked("good-whole")
    with_part("good-toolong", MODEL + b"x").good()
    with_part("good-wrongpart", b"x" * 5000).good()
    assert [r for _, _, r in main.asked("good-wrongpart")] == ["bytes=5000-", None]


@test("without Content-Length, in chunks")
def _():
    net("chunked").good()


# ---- Redirects. ----

@test("redirects: to another host and port, and below the same")
def _():
    net("redirect").good()
    net("relative").good()
    with_part("redirect", MODEL[:5]).good()
    assert other.log[-1][2] == "bytes=5-"


@test("redirects that have no end, or lead into this machine's files")
def _():
    net("circle").bad("redirect")
    net("local").bad("(?i)protocol")


# ---- Bodies. ----

@test("a line that is cut again and again brings a piece each time")
def _():
    net("drop").good()
    assert len(main.asked("drop")) == 4


@test("half a body each time, without ranges")
def _():
    case = net("half").bad("cannot be downloaded")
    assert len(main.asked("half")) == 5, main.asked("half")
    case.run("net").good()      # the half is of use


@test("Content-Length that lies: too short, too long")
def _():
    net("short").good()
    net("long").good()


@test("a body without end is stopped at the size of the manifest")
def _():
    case = net("bomb").bad("sends more than the 300000 bytes")
    assert all(os.path.getsize(os.path.join(d, f)) <= SIZE for d, _, names in os.walk(case.home) for f in names)
    case.run("net", mirrors=["bomb", "good"]).good()


def unsized(case, **more):
    """The manifest without the sizes of files."""
    models = [dict(m, **more) for m in MANIFEST]
    for m in models:
        del m["bytes"]
    write(case.home + "/unsized.json", json.dumps({"schema": "onnxmem-manifest/1", "models": models}))
    return ["net", "--manifest", case.home + "/unsized.json"]


@test("sizes are bounded without a size in the manifest, and where it is too large")
def _():
    case = Case()
    case.run(*unsized(case), mirrors=["good"]).good()
    case = Case()
    case.run(*unsized(case), "--size-limit", "1M", mirrors=["flood-net"]).bad("sends more than the limit of 1048576 bytes")
    assert not case.left() and len(main.asked("flood-net")) == 1, case
    case.run(*unsized(case), "--size-limit", "1M", mirrors=["flood", "good"]).good()
    case = Case().run("net", "--size-limit", "299999").bad("has 300000 bytes, which is more than the limit of 299999")
    assert not case.left()


@test("a manifest without end is stopped while it comes")
def _():
    case = Case().run("net", "--manifest", main.base("flood") + "/small.onnx").bad(
        "sends more than the limit of 67108864 bytes")
    assert not case.left()


@test("a wrong sum: nothing is kept")
def _():
    case = net("wrong").bad("SHA-256 mismatch: [0-9a-f]{64}, the manifest has " + sha(MODEL))
    assert not case.left() and not os.path.exists(case.path())
    assert len(main.asked("wrong")) == 1


@test("a Git LFS pointer in the place of the file is called that")
def _():
    case = net("pointer").bad("a Git LFS pointer to this very file, not the file itself")
    assert not case.left()
    Case().run("a-good", mirrors=["pointer"]).bad("Git LFS pointer")


@test("a web page in the place of the file is called that")
def _():
    net("page").bad("a web page, not the file")


# ---- Time and errors. ----

@test("a slow server is waited for, one that stands still is left and asked again")
def _():
    net("slow").good()
    net("stall").good()
    assert [r for _, _, r in main.asked("stall")] == [None, "bytes=150000-"]


@test("a server that sends some bytes now and then is left: the rate, and the time for a file")
def _():
    case = net("trickle", "good", "--retries", "2").good()
    assert len(main.asked("trickle")) == 2, case
    net("trickle", "--retries", "1").bad("slower than 1024 bytes per second, the least of --min-rate")
    Case().run("net", "--min-rate", "0", "--max-time", "0.5", mirrors=["trickle"]).bad("not complete in the time of --max-time")
    case.run("net", "--manifest", main.base("trickle") + "/small.onnx", "--retries", "1").bad("slower than 1024 bytes")


@test("a server that takes the request and says nothing")
def _():
    net("mute", "good", "--retries", "2").good()
    assert len(main.asked("mute")) == 2


@test("a server that is not there")
def _():
    net("http://127.0.0.1:1/").bad("cannot be downloaded; http://127.0.0.1:1/dir/of/model.onnx: .*connect")


@test("500 and 503, then success; 429 and the wait it asks for")
def _():
    net("flaky").good()
    begun = time.time()
    net("later").good()
    assert time.time() - begun >= 1


@test("500 for ever: as many tries as asked for")
def _():
    Case().run("net", "--retries", "3", mirrors=["status-500"]).bad("the server answered 500")
    assert len(main.asked("status-500")) == 3


@test("404 and 403 are not asked again, and say what to do")
def _():
    net("status-404").bad(r"not found \(404\); use another mirror with `--mirror URL`")
    net("status-403").bad(r"access denied \(403\): it may require a login")
    assert len(main.asked("status-404")) == len(main.asked("status-403")) == 1


# ---- Mirrors. ----

@test("mirrors in order: each gets its chance, all are named")
def _():
    net("status-410", "wrong-b", "pointer-b", "good-last").good()
    assert main.asked("status-410") and main.asked("wrong-b") and main.asked("pointer-b") and main.asked("good-last")
    case = net("status-410", "wrong-c").bad(r"/status-410/dir/of/model.onnx: .*; http.*/wrong-c/.*: SHA-256 mismatch")
    assert not case.left()


@test("mirrors of options, of the environment, of the configuration, of the manifest")
def _():
    case = Case()
    case.env["ONNXMEM_MIRRORS"] = main.base("good-env1") + " " + main.base("good-env2")
    write(case.home + "/.config/onnxmem/config", "# mine\nmirror = %s\n\n" % main.base("good-config"))
    case.run("net", mirrors=["good-option"]).good()
    os.unlink(case.path())
    case.run("net").good()
    assert main.asked("good-option") and main.asked("good-env1") and not main.asked("good-env2")
    os.unlink(case.path())
    del case.env["ONNXMEM_MIRRORS"]
    case.run("net").good()
    assert main.asked("good-config")
    write(case.home + "/.config/onnxmem/config", "mirrors: x\n")
    case.run("net").bad("config: line 1: expected `mirror = URL`", 1)
    case.run("net", "--mirror", "nonsense").bad("", 1)


@test("a folder as a mirror")
def _():
    folder = tempfile.mkdtemp(dir=ROOT)
    write(folder + "/dir/of/model.onnx", MODEL)
    net("file://" + folder).good()
    with_part("file://" + folder, MODEL[:99]).good()
    net("file://" + folder + "/no").bad("cannot be downloaded")


@test("passwords are not shown")
def _():
    address = main.base("status-401").replace("//", "//user:secret@") + "?token=hidden"
    case = Case().run("net", "-v", mirrors=[address]).bad(r"\(401\)")
    assert "secret" not in case.out + case.err and "hidden" not in case.out + case.err, case


@test("a proxy of the environment")
def _():
    case = Case()
    case.env["http_proxy"] = "http://127.0.0.1:%d" % main.server_address[1]
    case.run("net", mirrors=["http://models.invalid/good-proxy"]).good()
    assert main.asked("good-proxy")


# ---- Files that are named by their address. ----

def named(case, path, data):
    """The file of a name, in the cache."""
    dirs, _, name = path.rpartition("/")
    return os.path.join(case.home, "onnx/hub", dirs, sha(data) + "_" + name)


def direct(case, path, data, *args, **how):
    """Fetched without a manifest."""
    case.env["ONNXMEM_MANIFEST"] = case.home + "/none.json"
    case.run(*args, **how)
    assert case.status == 0 and case.out.splitlines()[0] == named(case, path, data), case
    assert read(named(case, path, data)) == data and not case.left(), case.left()
    return case


def hf(mirror):
    return ["--hf-base", main.base(mirror)]


@test("an address with its checksum, in the fragment or as an option; again from the cache")
def _():
    url = main.base("good-url") + "/dir/of/model.onnx?key=secret"
    case = direct(Case(), "url/model.onnx", MODEL, url + "#sha256=" + sha(MODEL).upper())
    direct(case, "url/model.onnx", MODEL, url, "--sha256", sha(MODEL), "--offline")
    assert len(main.asked("good-url")) == 1 and "PASSED 0 fetched, 1 from the cache" in case.out, case
    case.run(url, "--sha256", sha(OLD), "--offline").bad("model.onnx is not in the cache .*--offline forbids")
    write(named(case, "url/model.onnx", MODEL), b"damaged")
    case.run(url, "--sha256", sha(MODEL), "--offline").bad("has the SHA-256 [0-9a-f]{64}, expected was " + sha(MODEL))
    direct(case, "url/model.onnx", MODEL, url, "--sha256", sha(MODEL))
    assert "damaged" in case.err


@test("an address: what is refused before anything is sent")
def _():
    url = main.base("good-refused") + "/small.onnx?key=secret"
    for words, what in ((["#sha256=12"], "64 hexadecimal digits, not 12"), (["#md5=12"], "expected #sha256=SUM"),
                        (["#sha256=" + sha(OLD), "--sha256", sha(MODEL)], "two different SHA-256"),
                        ([""], "small.onnx requires a checksum"), (["", "--sha256", sha(OLD), "net"], "for one name"),
                        (["", "--sha256", sha(OLD), "--with-data"], "for models of a manifest")):
        case = Case().run(url + words[0], *words[1:]).bad(what, 2)
        assert "secret" not in case.err.replace(words[0], "") or not words[0], case
    Case().run("net", "--sha256", sha(OLD)).bad("the manifest has the others", 2)
    Case().run("ftp://models.example.org/net.onnx#sha256=" + sha(MODEL)).bad("an address begins with https://, http:// or file://", 2)
    assert not main.asked("good-refused")


@test("an address: a wrong file, one that is too large, a line that is cut")
def _():
    case = Case().run(main.base("wrong-url") + "/dir/of/model.onnx#sha256=" + sha(MODEL)).bad(
        "SHA-256 mismatch: [0-9a-f]{64}, expected was " + sha(MODEL))
    assert not case.left()
    Case().run(main.base("flood-url") + "/dir/of/model.onnx#sha256=" + sha(MODEL), "--size-limit", "1M").bad(
        "sends more than the limit of 1048576 bytes")
    direct(Case(), "url/model.onnx", MODEL, main.base("drop-url") + "/dir/of/model.onnx#sha256=" + sha(MODEL))
    folder = tempfile.mkdtemp(dir=ROOT)
    write(folder + "/x y.onnx", SMALL)
    direct(Case(), "url/x_20y.onnx", SMALL, "file://" + folder + "/x%20y.onnx#sha256=" + sha(SMALL))


@test("hf: a file of a repository, its revisions, and names with @ and spaces")
def _():
    case = direct(Case(), "hf/org/repo/main/sub/net.onnx", MODEL, "hf:org/repo/sub/net.onnx#sha256=" + sha(MODEL), *hf("good-hf"))
    assert main.asked("good-hf")[0][1] == "org/repo/resolve/main/sub/net.onnx"
    direct(case, "hf/org/repo/v1.0/sub/net.onnx", OLD, "hf:org/repo/sub/net.onnx@v1.0", "--sha256", sha(OLD), *hf("good-hf"))
    case.run("hf:org/repo/a@b/n et.onnx", *hf("good-space"))
    assert main.asked("good-space")[0][1].replace("%20", " ").replace("%40", "@") == "org/repo/resolve/main/a@b/n et.onnx", main.log
    for name in ("hf:org/repo", "hf:org/repo/", "hf:/repo/file", "hf:org//file", "hf:org/repo/file@", "hf:org/repo/../file",
                 "hf:org/repo/file@..", "hf:../repo/file", "hf:"):
        Case().run(name, *hf("good-none")).bad("expected hf:ORG/REPO/FILE", 2)
    Case().run("hf:org/repo/x.onnx", "--hf-base", "nowhere").bad("the base of hf: is an address", 2)
    assert not main.asked("good-none")


@test("hf: the base address, by the environment and the configuration")
def _():
    case = Case()
    case.env["ONNXMEM_HF"] = main.base("good-env")
    direct(case, "hf/org/repo/main/sub/net.onnx", MODEL, "hf:org/repo/sub/net.onnx#sha256=" + sha(MODEL))
    assert main.asked("good-env")
    case = Case()
    write(case.home + "/.config/onnxmem/config", "hf = " + main.base("good-config") + "\n")
    direct(case, "hf/org/repo/main/sub/net.onnx", MODEL, "hf:org/repo/sub/net.onnx#sha256=" + sha(MODEL))
    assert main.asked("good-config")


@test("hf: without a checksum, that of the first download is recorded and holds from then on")
def _():
    name, path = "hf:org/repo/sub/net.onnx", "hf/org/repo/main/sub/net.onnx"
    case = Case().run(name, "--offline", *hf("good-first")).bad("is not in the cache .*--offline forbids")
    direct(case, path, MODEL, name, *hf("good-first"))
    assert "#sha256=" + sha(MODEL) in case.err and "PASSED 1 fetched" in case.out, case
    direct(case, path, MODEL, name, "--offline", *hf("good-first"))
    direct(case, path, MODEL, name, *hf("good-first"))
    assert len(main.asked("good-first")) == 1
    os.unlink(named(case, path, MODEL))
    case.run(name, *hf("wrong-first")).bad("SHA-256 mismatch: [0-9a-f]{64}, expected was " + sha(MODEL))
    write(case.home + "/onnx/hub/" + path + ".sha256", "damaged")
    direct(case, path, MODEL, name, *hf("good-first"))


@test("hf: without a checksum, nothing is put behind what may be another file, and no page or pointer is taken")
def _():
    name, path = "hf:org/repo/sub/net.onnx", "hf/org/repo/main/sub/net.onnx"
    case = Case()
    write(case.home + "/onnx/hub/" + path + ".part", OLD)
    direct(case, path, MODEL, name, *hf("good-fresh"))
    assert [r for _, _, r in main.asked("good-fresh")] == [None]
    case = Case().run(name, "--retries", "2", *hf("drop-fresh")).bad("cannot be downloaded")
    assert all(r is None for _, _, r in main.asked("drop-fresh")), main.asked("drop-fresh")
    for mirror, what in (("page-hf", "a web page"), ("pointer-hf", "a Git LFS pointer, not"), ("status-404-hf", "404")):
        case = Case().run(name, *hf(mirror)).bad(what)
        assert not case.left() and not os.path.exists(case.home + "/onnx/hub/" + path + ".sha256"), case
    case = Case()
    case.env["ONNXMEM_MANIFEST"] = "none.json"
    both = [case.start(name, *hf("slow-two")) for _ in range(3)]
    ends = [p.communicate(timeout=60) + (p.returncode,) for p in both]
    assert all(e[2] == 0 for e in ends) and len(main.asked("slow-two")) == 1 and not case.left(), ends


@test("a suite fetches files by their address")
def _():
    folder = tempfile.mkdtemp(dir=ROOT)
    shutil.copy(of_the_tree() + "digits.onnx", folder + "/d.onnx")
    sum = sha(read(folder + "/d.onnx"))
    os.makedirs(folder + "/o/r/resolve/main")
    shutil.copy(folder + "/d.onnx", folder + "/o/r/resolve/main/d.onnx")
    case = Case()
    write(case.home + "/suite.json", json.dumps({"schema": "onnxmem-suite/1", "models": [
        {"fetch": "file://" + folder + "/d.onnx#sha256=" + sum}, {"fetch": "hf:o/r/d.onnx", "name": "hf"}]}))
    case.env["ONNXMEM_MANIFEST"] = "none.json"
    run = subprocess.run([COMMAND, "regress", case.home + "/suite.json", "--hf-base", "file://" + folder], env=case.env,
                         capture_output=True, text=True)
    assert run.returncode == 0 and run.stdout.count("\nok ") == 2, run


# ---- https. ----

class Authority:
    """Certificates of our own, by openssl: one for localhost, one for somebody else."""
    def __init__(self, folder):
        os.makedirs(folder)
        self.folder, self.file = folder, folder + "/ca.pem"
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                     "-subj", "/CN=onnxmem test authority", "-addext", "basicConstraints=critical,CA:TRUE",
                     "-keyout", folder + "/ca.key", "-out", self.file)

    @staticmethod
    def openssl(*words):
        subprocess.run(["openssl", *words], check=True, capture_output=True)

    def server(self, name, host):
        at = self.folder + "/" + name
        write(at + ".ext", "subjectAltName=" + host)
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=" + name,
                     "-keyout", at + ".key", "-out", at + ".csr")
        self.openssl("x509", "-req", "-in", at + ".csr", "-CA", self.file, "-CAkey", self.folder + "/ca.key", "-days", "1",
                     "-set_serial", str(len(name)), "-extfile", at + ".ext", "-out", at + ".pem")
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(at + ".pem", at + ".key")
        mirror = server.Mirror(FILES, tls=tls)
        mirror.other = main
        return mirror


made, making = [], threading.Lock()


def authority():
    """It, a mirror that is what it says, and one that is not."""
    with making:
        if not made:
            ours = Authority(ROOT + "/authority")
            made.extend((ours, ours.server("localhost", "DNS:localhost,IP:127.0.0.1"), ours.server("elsewhere", "DNS:models.invalid")))
    return made


def trusting(mirror, behavior="good", **env):
    case = Case()
    case.env.update(env)
    return case.run("net", "--retries", "2", "--timeout", "20", mirrors=[mirror.base(behavior, "localhost")])


if shutil.which("openssl"):
    @test("https: refused where nobody vouches for the server, and what to do; taken with CURL_CA_BUNDLE or SSL_CERT_FILE")
    def _():
        ca, mirror, _ = authority()
        trusting(mirror).bad("certificate.*CURL_CA_BUNDLE or SSL_CERT_FILE")
        assert not mirror.asked("good"), "nothing is asked of such a server"
        for name in "CURL_CA_BUNDLE", "SSL_CERT_FILE":
            trusting(mirror, **{name: ca.file}).good()
        trusting(mirror, CURL_CA_BUNDLE=ca.file, SSL_CERT_FILE="/none").good()
        assert len(mirror.asked("good")) == 3

    @test("https: a folder of certificates, by SSL_CERT_DIR")
    def _():
        ca, mirror, _ = authority()
        certs = ROOT + "/certs"
        os.makedirs(certs, exist_ok=True)
        name = subprocess.run(["openssl", "x509", "-hash", "-noout", "-in", ca.file], check=True, capture_output=True, text=True)
        shutil.copy(ca.file, certs + "/" + name.stdout.strip() + ".0")
        trusting(mirror, "chunked", SSL_CERT_DIR=certs).good()

    @test("https: a file of certificates that is none")
    def _():
        _, mirror, _ = authority()
        trusting(mirror, CURL_CA_BUNDLE="/no/such/file.pem").bad("/no/such/file.pem.*CURL_CA_BUNDLE or SSL_CERT_FILE")

    @test("https: a certificate of another host")
    def _():
        ca, _, elsewhere = authority()
        case = trusting(elsewhere, CURL_CA_BUNDLE=ca.file).bad("localhost")
        assert "CURL_CA_BUNDLE" not in case.out, case

    @test("https: not led to http; a part is gone on with, as by http")
    def _():
        ca, mirror, _ = authority()
        trusting(mirror, "downgrade", CURL_CA_BUNDLE=ca.file).bad("(?i)protocol")
        trusting(mirror, "drop", CURL_CA_BUNDLE=ca.file).good()
        assert [r for _, _, r in mirror.asked("drop")][1:] and mirror.asked("drop")[1][2].startswith("bytes=")


# ---- Several processes, and their end. ----

@test("eight processes fetch one file: one asks for it, all have it")
def _():
    case = Case()
    running = [case.start("net", mirrors=["slow-many"]) for _ in range(8)]
    outs = [p.communicate(timeout=60)[0] for p in running]
    assert all(p.returncode == 0 for p in running), outs
    assert sum("PASSED 1 fetched" in out for out in outs) == 1, outs
    assert len(main.asked("slow-many")) == 1 and read(case.path()) == MODEL and not case.left()


@test("kill -9 in the middle; the next one goes on")
def _():
    case = Case()
    process = case.start("net", mirrors=["slow-kill"])
    part = case.path() + ".part"
    until = time.time() + 20
    while time.time() < until and not (os.path.exists(part) and os.path.getsize(part) > 50000):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    size = os.path.getsize(part)
    assert 50000 < size < SIZE and not os.path.exists(case.path())
    case.run("net", mirrors=["good-kill"]).good()
    assert main.asked("good-kill")[0][2] == "bytes=%d-" % size


@test("kill -9 of who holds the lock; those that wait go on")
def _():
    case = Case()
    first = case.start("net", mirrors=["slow-lock"])
    until = time.time() + 20
    while time.time() < until and not main.asked("slow-lock"):
        time.sleep(0.01)
    others = [case.start("net", mirrors=["slow-lock"]) for _ in range(3)]
    time.sleep(0.3)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    assert all(p.communicate(timeout=60) and p.returncode == 0 for p in others)
    assert read(case.path()) == MODEL


def small_files():
    import resource
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))


@test("no room for it: status 1, and what to do")
def _():
    case = net("good", before=small_files).bad("cannot write: .*free disk space, or set ONNX_HOME", 1)
    case.run("net").good()


@test("a cache that cannot be made")
def _():
    case = Case()
    write(case.home + "/onnx", b"a file")
    case.run("net").bad("ONNX_HOME may name another folder", 1)


# ---- Data. ----

@test("an archive is unpacked, compared, and unpacked again when it is damaged")
def _():
    case = Case().run("a-good", "--with-data", mirrors=["good-data"])
    folder = case.out.splitlines()[0]
    assert case.status == 0 and folder == case.path("data/good.tar.gz")[:-len(".tar.gz")], case
    assert read(folder + "/net/model.onnx") == SMALL and read(folder + "/net/test_data_set_0/output_0.pb") == b"out"
    case.run("a-good", "--with-data", "--offline")
    assert case.status == 0 and not case.err, case
    for damage in (lambda: write(folder + "/net/model.onnx", b"x"), lambda: os.unlink(folder + "/net/model.onnx"),
                   lambda: os.unlink(folder + ".sums"), lambda: shutil.rmtree(folder)):
        damage()
        case.run("a-good", "--with-data", "--offline")
        assert case.status == 0 and read(folder + "/net/model.onnx") == SMALL, case
    assert len(main.asked("good-data")) == 1 and not case.left()
    case.run("net", "--with-data").bad("has no data for net", 2)


def archive(name, words, *more):
    case = Case().run("a-" + name, "--with-data", *more).bad(words)
    assert not os.path.exists(case.path("data/%s.tar.gz" % name)[:-len(".tar.gz")]) and not case.left()
    names = [f for _, dirs, files in os.walk(case.home) for f in dirs + files]
    assert sorted(names) == sorted(["onnx", "hub", "data", sha(ARCHIVES[name]) + "_" + name + ".tar.gz"]), names


@test("archives that would leave their folder")
def _():
    archive("up", "net/../../../evil: not a safe relative path")
    archive("root", "onnxmem-evil: not a safe")
    archive("deep", "not a safe")
    assert not os.path.exists("/tmp/onnxmem-evil")


@test("archives with links, pipes, and names that are there twice")
def _():
    archive("symlink", "net/link: a link")
    archive("hardlink", "net/b: a link")
    archive("fifo", "net/pipe: neither a file nor a folder")
    archive("twice", "net/a: duplicate name")


@test("archives that are bombs")
def _():
    archive("bomb", "exceeds 67108864 bytes; `--unpack-limit SIZE`")
    archive("many", "more than 5000 entries")
    archive("hole", "net/hole: the unpacked size exceeds 67108864 bytes")
    archive("holes", "exceeds 2999 bytes", "--unpack-limit", "2999")
    case = Case().run("a-holes", "--with-data")
    assert case.status == 0 and read(case.out.splitlines()[0] + "/net/holes") == bytes(1000) + b"hello" + bytes(1995)
    archive("good", "exceeds 100 bytes", "--unpack-limit", "100")


@test("archives that are damaged, or none")
def _():
    archive("cut", "nothing was kept")
    archive("junk", "nothing was kept")


@test("several processes unpack one archive")
def _():
    case = Case()
    running = [case.start("a-good", "--with-data", mirrors=["slow"]) for _ in range(5)]
    assert all(p.communicate(timeout=60) and p.returncode == 0 for p in running)
    assert read(case.path("data/good.tar.gz")[:-7] + "/net/model.onnx") == SMALL


# ---- Memory. ----

STARVE = os.path.join("tests", "hub", ".libs", "starve.so")     # in the build folder


def starved(n):
    """A fetch, with its archive unpacked, whose allocation number n fails."""
    case = Case()
    case.env.update(LD_PRELOAD=os.path.abspath(STARVE), STARVE=str(n))
    case.run("a-good", "--with-data", "--retries", "1", mirrors=["good"])
    return case


def may_starve():
    """Sanitizers have allocators of their own; in a static build there is no library."""
    libraries = subprocess.run(["ldd", COMMAND], capture_output=True, text=True).stdout
    return "asan" not in libraries and "tsan" not in libraries and os.path.exists(STARVE)


@test("without memory: an error, and files that are whole or absent" + ("" if may_starve() else " # SKIP no allocator to preload"))
def _():
    if not may_starve():
        return
    case = starved(0)
    count = int(re.search("allocations: ([0-9]+)", case.err)[1])
    assert case.status == 0 and count > 50, case
    folder = case.path("data/good.tar.gz")[:-7]
    n, failed = 1, 0
    while n <= count:
        case = starved(n)
        failed += case.status != 0
        assert case.status in (0, 1, 6), (n, case)
        assert case.status == 0 or re.search("onnxmem: .|FAILED .", case.err + case.out), (n, case)
        folder = case.path("data/good.tar.gz")[:-7]
        assert not os.path.exists(folder) or read(folder + "/net/model.onnx") == SMALL, (n, case)
        assert case.status != 0 or os.path.exists(folder), (n, case)
        assert not os.path.exists(folder + ".tar.gz") or read(folder + ".tar.gz") == ARCHIVES["good"], (n, case)
        del case.env["LD_PRELOAD"]
        if n % 8 == 0:
            case.run("a-good", "--with-data", mirrors=["good"])
            assert case.status == 0 and read(folder + "/net/model.onnx") == SMALL, (n, case)
        shutil.rmtree(case.home)
        n += 1 + n // 16
    assert failed > 20, failed


# ---- Manifests. ----

def hub_entry(path, **more):
    meta = {"model_sha": sha(FILES[path]).upper(), "model_bytes": len(FILES[path]), "tags": ["x"]}
    meta.update(more)
    return {"model": "Hubby", "model_path": path, "onnx_version": "1.9", "opset_version": 11, "metadata": meta}


@test("a manifest of the ONNX Hub, by path and by address, and from the cache when it cannot be had")
def _():
    FILES["hub.json"] = json.dumps([hub_entry("small.onnx", model_with_data_path="data/good.tar.gz",
                                              model_with_data_bytes=len(ARCHIVES["good"]),
                                              model_with_data_sha=sha(ARCHIVES["good"]))]).encode()
    case = Case()
    write(case.home + "/hub.json", FILES["hub.json"])
    case.run("hubby", "--manifest", case.home + "/hub.json", mirrors=["good"]).good("small.onnx")
    case.run("hubby", "--with-data", "--manifest", case.home + "/hub.json", mirrors=["good"])
    assert case.status == 0, case
    case = Case()
    case.run("hubby", "--manifest", main.base("flaky") + "/hub.json", mirrors=["good"]).good("small.onnx")
    case.run("hubby", "--offline", "--manifest", main.base("flaky") + "/hub.json").good("small.onnx")
    case.run("hubby", "--offline", "--manifest", main.base("status-404") + "/hub.json").bad("not in the cache")
    case.run("hubby", "--manifest", main.base("status-404") + "/hub.json").bad("manifest .* cannot be downloaded")
    moved = main.base("later") + "/hub.json"
    case.run("hubby", "--manifest", moved).good("small.onnx")
    FILES["hub.json"] = b"broken"
    case.run("hubby", "--manifest", moved).good("small.onnx")
    assert "the cached one is used" in case.err, case


@test("manifests that are wrong, or lead out of the cache")
def _():
    case = Case()
    for text, words in (
            ("{", "line 1"), ("{}", "neither a manifest"), ('{"schema": "onnxmem-manifest/2"}', "neither a manifest"),
            (json.dumps([{"model_path": "x"}]), "has no name"),
            (json.dumps([dict(hub_entry("small.onnx"), model_path="../../evil")]), "its path is missing"),
            (json.dumps([dict(hub_entry("small.onnx"), model_path="/etc/passwd")]), "its path is missing"),
            (json.dumps([dict(hub_entry("small.onnx"), model_path="a//b")]), "its path is missing"),
            (json.dumps([hub_entry("small.onnx", model_sha="../../x")]), "not 64 hexadecimal digits"),
            (json.dumps([hub_entry("small.onnx", model_bytes=-1)]), "not a number of bytes"),
            (json.dumps([dict(hub_entry("small.onnx"), opset_version="9")]), "opset is missing")):
        write(case.home + "/m.json", text)
        case.run("hubby", "--manifest", case.home + "/m.json").bad(words, 1)
    case.run("hubby", "--manifest", case.home + "/none.json").bad("none.json: No such file", 1)


@test("names that control a terminal are cleaned")
def _():
    case = Case()
    names = "net\x1b[31mred", "net\nPASSED forged", "net\u009b31mred"
    models = [dict(MANIFEST[0], name=name, tags=["\x1b]0;tag\x07"]) for name in names]
    write(case.home + "/m.json", json.dumps({"schema": "onnxmem-manifest/1", "models": models}))
    for words in (["netx"], ["--list"], [names[0], "--opset", "8"], [names[1], "--mirror", "http://127.0.0.1:1"]):
        case.run(*words, "--manifest", case.home + "/m.json", "--retries", "1")
        text = case.out + case.err
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", text) and "\nPASSED forged" not in text, repr(text)
    case.run("netx", "--manifest", case.home + "/m.json").bad("there are net.\\[31mred, net.PASSED forged", 2)


@test("the list, and what of it is shown")
def _():
    case = Case()

    def names(*args):
        case.run("--list", *args)
        assert case.status == 0, case
        return [line.split("  ")[0].strip() for line in case.out.splitlines()[1:-1]]
    assert len(names()) == len(MANIFEST)
    assert names("--tag", "VISION") == ["Net", "Net"]
    assert names("--tag", "vision", "--tag", "old") == ["Net"]
    assert names("--max-size", "1K", "--tag", "text") == ["Small Net"]
    assert names("--min-size", "100K") == ["Net"]
    assert names("--opset", "12") == ["Net"]
    assert names("small", "up") == ["Small Net", "a-up"]
    case.run("--list", "--json", "-", "--tag", "old")
    assert json.loads(case.out)[0]["model"]["sha256"] == sha(OLD)


def of_the_tree():
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../models/")


@test("the manifest of the tree is that of the public zoo")
def _():
    zoo = of_the_tree() + "../../shared/data/zoo/ONNX_HUB_MANIFEST.json"
    case = Case().run("--list", "--manifest", of_the_tree() + "manifest.json", "mnist")
    assert case.status == 0 and "MNIST-12-int8" in case.out and case.out.endswith("5 of 184 models\n"), case
    if os.path.exists(zoo):
        made = subprocess.run([sys.executable, of_the_tree() + "manifest.py", zoo], capture_output=True, check=True)
        assert made.stdout == read(of_the_tree() + "manifest.json") and not made.stderr


@test("no address of a mirror but that of the manifest")
def _():
    case = Case()
    write(case.home + "/m.json", json.dumps([hub_entry("small.onnx")]))
    case.run("hubby", "--manifest", case.home + "/m.json").bad("no mirror is known; add one with `--mirror URL`")


# ---- Suites of models that are fetched. ----

def npy(shape, numbers):
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % (shape,)
    return b"\x93NUMPY\x01\x00\x76\x00" + head.ljust(117).encode() + b"\n" + struct.pack("<%df" % len(numbers), *numbers)


@test("a suite of models that are fetched, with their data; wrong data; models that are not there")
def _():
    case = Case()
    digits = read(of_the_tree() + "digits.onnx")
    numbers = [2 * ((k + 1) * 0.6180339887498949 % 1) - 1 for k in range(64)]
    write(case.home + "/in/input_0.npy", npy((1, 1, 8, 8), numbers))
    subprocess.run([COMMAND, "run", of_the_tree() + "digits.onnx", "--data", case.home + "/in", "--save",
                    case.home + "/out"], check=True, capture_output=True)
    output = read(case.home + "/out/output_0.pb")
    wrong = output[:-1] + bytes([output[-1] ^ 0x40])
    models = []
    for name, data in (("right", output), ("wrong", wrong)):
        path = "suite/%s.tar.gz" % name
        FILES[path] = tar(("net/model.onnx", digits), ("net/test_data_set_0/input_0.npy", read(case.home + "/in/input_0.npy")),
                          ("net/test_data_set_0/output_0.pb", data))
        FILES["suite/digits.onnx"] = digits
        models.append(entry(name, 13, "suite/digits.onnx", [], path))
    FILES["suite/gone.onnx"] = b"gone"
    models.append(entry("gone", 13, "suite/gone.onnx"))
    del FILES["suite/gone.onnx"]
    write(case.home + "/m.json", json.dumps({"schema": "onnxmem-manifest/1", "mirrors": [main.base("good")], "models": models}))
    write(case.home + "/suite.json", json.dumps({"schema": "onnxmem-suite/1", "models": [
        {"fetch": "RIGHT"}, {"fetch": "right", "with_data": True, "name": "with data"}, {"fetch": "wrong", "with_data": True},
        {"fetch": "gone"}, {"fetch": "nobody"}]}))
    words = [COMMAND, "regress", case.home + "/suite.json", "--manifest", case.home + "/m.json", "-j", "3"]
    run = subprocess.run(words, env=case.env, capture_output=True, text=True)
    lines = run.stdout.splitlines()
    assert run.returncode == 1 and lines[1] == "ok 1 - RIGHT (6144 bytes, optimal)", run
    assert lines[2] == "ok 2 - with data (6144 bytes, optimal, 1 data set)", run
    assert lines[3].startswith("not ok 3 - wrong") and "expected was" in lines[4], run
    assert lines[5] == "not ok 4 - gone" and "not found (404)" in lines[6], run
    assert lines[7] == "not ok 5 - nobody" and "no model called nobody" in lines[8], run
    run = subprocess.run(words + ["--skip-missing", "RIGHT", "with data", "gone"], env=case.env, capture_output=True, text=True)
    assert run.returncode == 0 and "ok 3 - gone # SKIP" in run.stdout, run


@test("two models of the public zoo, from a folder that is laid out like its mirror")
def _():
    shared = of_the_tree() + "../../shared/data/"
    case, found = Case(), []
    for name, file in (("MNIST", "mnist_8"), ("Super_Resolution", "super_resolution_10")):
        for model in json.loads(read(of_the_tree() + "manifest.json"))["models"]:
            if model["name"] == name and os.path.exists(shared + "models/" + file + ".onnx") and \
                    sha(read(shared + "models/" + file + ".onnx")) == model["sha256"]:
                write(case.home + "/zoo/" + model["path"], read(shared + "models/" + file + ".onnx"))
                found.append({"fetch": name, "opset": model["opset"],
                              "data": [os.path.abspath(shared + "vectors/" + file + "/test_data_set_0")]})
    write(case.home + "/suite.json", json.dumps({"schema": "onnxmem-suite/1", "models": found}))
    if not found:
        return
    run = subprocess.run([COMMAND, "regress", case.home + "/suite.json", "--manifest", of_the_tree() + "manifest.json",
                          "--mirror", "file://" + case.home + "/zoo"], env=case.env, capture_output=True, text=True)
    assert run.returncode == 0 and run.stdout.count("1 data set)") == len(found), run


def attempt(f):
    try:
        f()
        return None
    except Exception:
        return traceback.format_exc()


def run():
    words = sys.argv[1:]
    chosen = [(what, f) for what, f in TESTS if all(word in what for word in words)]
    print("1..%d" % len(chosen))
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        ends = list(pool.map(attempt, [f for _, f in chosen]))
    for k, ((what, _), end) in enumerate(zip(chosen, ends), 1):
        print("%s %d - %s" % ("not ok" if end else "ok", k, what))
        if end:
            print("# " + end.rstrip().replace("\n", "\n# "))
    shutil.rmtree(ROOT)


run()
