# SPDX-License-Identifier: Apache-2.0
"""Just enough of a driver for a headless Chromium: its remote protocol over a
WebSocket, with the standard library alone."""
import base64
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find():
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


class Socket:
    """The client's side of a WebSocket, text only."""

    def __init__(self, url):
        at = urllib.parse.urlparse(url)
        self.s = socket.create_connection((at.hostname, at.port), timeout=60)
        self.rest = b""
        key = base64.b64encode(os.urandom(16)).decode()
        self.s.sendall(("GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        "Sec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\n\r\n" % (at.path, at.netloc, key)).encode())
        while b"\r\n\r\n" not in self.rest:
            self.rest += self.s.recv(4096)
        self.rest = self.rest.split(b"\r\n\r\n", 1)[1]

    def take(self, n):
        while len(self.rest) < n:
            piece = self.s.recv(1 << 16)
            if not piece:
                raise EOFError("the browser is gone")
            self.rest += piece
        out, self.rest = self.rest[:n], self.rest[n:]
        return out

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        size = bytes([0x80 | len(data)]) if len(data) < 126 else \
            b"\xfe" + struct.pack(">H", len(data)) if len(data) < 65536 else b"\xff" + struct.pack(">Q", len(data))
        self.s.sendall(b"\x81" + size + mask + bytes(b ^ mask[k & 3] for k, b in enumerate(data)))

    def receive(self):
        text = b""
        while True:
            head = self.take(2)
            size = head[1] & 127
            size = struct.unpack(">H", self.take(2))[0] if size == 126 else struct.unpack(">Q", self.take(8))[0] if size == 127 else size
            data = self.take(size)
            if head[0] & 15 in (0, 1):
                text += data
                if head[0] & 0x80:
                    return text.decode()


class Browser:
    def __init__(self, width=1400, height=1000):
        self.folder = tempfile.mkdtemp(prefix="onnxmem-chromium-")
        self.process = subprocess.Popen(
            [find(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
             "--disable-background-networking", "--user-data-dir=" + self.folder, "--remote-debugging-port=0",
             "--window-size=%d,%d" % (width, height), "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        port, until = self.folder + "/DevToolsActivePort", time.time() + 60
        while not (os.path.exists(port) and os.path.getsize(port) > 8):
            if time.time() > until or self.process.poll() is not None:
                raise RuntimeError("chromium does not start")
            time.sleep(0.05)
        with open(port) as f:
            base = "http://127.0.0.1:%s/json" % f.readline().strip()
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        page = next(p for p in json.load(opener.open(base, timeout=30)) if p["type"] == "page")
        self.socket, self.count, self.events = Socket(page["webSocketDebuggerUrl"]), 0, []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def call(self, method, **params):
        self.count += 1
        self.socket.send(json.dumps({"id": self.count, "method": method, "params": params}))
        while True:
            answer = json.loads(self.socket.receive())
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise RuntimeError("%s: %s" % (method, answer["error"]))
                return answer["result"]
            self.events.append(answer)

    def eval(self, code):
        out = self.call("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in out:
            raise RuntimeError(out["exceptionDetails"])
        return out["result"].get("value")

    def open(self, path):
        self.events = []
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        until = time.time() + 60
        while not self.eval("location.protocol === 'file:' && document.readyState === 'complete' && "
                            "'ready' in document.documentElement.dataset"):
            if time.time() > until:
                raise RuntimeError("%s does not get ready" % path)
            time.sleep(0.02)

    def frame(self):
        self.eval("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)
        self.frame()

    def click(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)

    def key(self, key):
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.frame()

    def type(self, text):
        self.call("Input.insertText", text=text)
        self.frame()

    def screenshot(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def complaints(self):
        """Errors, and whatever was asked of anything but the page itself."""
        out = []
        for e in self.events:
            p = e.get("params", {})
            if e["method"] == "Runtime.exceptionThrown" or (e["method"] == "Log.entryAdded" and p["entry"]["level"] == "error"):
                out.append(p)
            if e["method"] == "Network.requestWillBeSent" and not p["request"]["url"].startswith(("file:", "data:")):
                out.append(p["request"]["url"])
            if e["method"] == "Network.requestWillBeSent" and p["type"] != "Document":
                out.append(p["request"]["url"])
        return out

    def close(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
