# SPDX-License-Identifier: Apache-2.0
"""A mirror on the loopback device that behaves as badly as it is asked to.

The first part of a path says how the rest is served: /stall/dir/model.onnx.
`log` keeps what was asked for: (behavior, path, Range or None)."""
import http.server
import re
import threading
import time

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n"


class Mirror(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, files, host="127.0.0.1", tls=None):
        super().__init__((host, 0), Handler)
        self.tls = tls                # an ssl.SSLContext, for https
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.files = files            # path: bytes
        self.sums = {}                # path: SHA-256
        self.other = None             # another Mirror, for redirects
        self.log = []
        self.count = {}               # (behavior, path): requests so far
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def base(self, behavior, host="127.0.0.1"):
        return "%s://%s:%d/%s" % ("https" if self.tls else "http", host, self.server_address[1], behavior)

    def asked(self, behavior):
        with self.lock:
            return [entry for entry in self.log if entry[0] == behavior]

    def handle_error(self, request, address):
        pass                          # clients that go away are part of the game


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        path = re.sub("^http://[^/]*|[?].*", "", self.path)
        behavior, _, name = path.lstrip("/").partition("/")
        kind, _, arg = behavior.partition("-")
        with self.server.lock:
            self.server.log.append((behavior, name, self.headers.get("Range")))
            self.turn = self.server.count[behavior, name] = self.server.count.get((behavior, name), 0) + 1
        self.behavior, self.name, self.arg = behavior, name, arg
        self.close_connection = True
        getattr(self, "serve_" + kind)(self.server.files.get(name))

    # ---- Pieces. ----

    def begin(self, code, length=None, **headers):
        self.send_response(code)
        if length is not None:
            self.send_header("Content-Length", str(length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Connection", "close")
        self.end_headers()

    def send(self, data):
        self.wfile.write(data)
        self.wfile.flush()

    def refuse(self, code, **headers):
        self.begin(code, 5, **headers)
        self.send(b"sorry")

    def start(self):
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")
        return int(asked.group(1)) if asked else 0

    def begin_part(self, data, more=0):
        """The headers of the part that was asked for; returns it."""
        at = self.start()
        if at >= len(data):
            self.refuse(416)
            return b""
        if at == 0:
            self.begin(200, len(data) + more)
        else:
            self.begin(206, len(data) - at + more, Content_Range="bytes %d-%d/%d" % (at, len(data) - 1, len(data)))
        return data[at:]

    # ---- Behaviors. ----

    def serve_good(self, data):
        if data is None:
            self.refuse(404)
        else:
            self.send(self.begin_part(data))

    def serve_plain(self, data):          # knows no ranges
        self.begin(200, len(data))
        self.send(data)

    def serve_chunked(self, data):
        self.begin(200, Transfer_Encoding="chunked")
        for at in range(0, len(data), 5000):
            piece = data[at:at + 5000]
            self.send(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.send(b"0\r\n\r\n")

    def serve_shifted(self, data):        # once, a part that was not asked for
        if self.turn > 1 or self.start() == 0:
            return self.serve_good(data)
        self.begin(206, len(data) - 7, Content_Range="bytes 7-%d/%d" % (len(data) - 1, len(data)))
        self.send(data[7:])

    def serve_nothing(self, data):        # 416 to every range
        if self.start():
            self.refuse(416)
        else:
            self.serve_good(data)

    def serve_redirect(self, data):       # to another name and port
        self.refuse(302, Location=self.server.other.base("good", "localhost") + "/" + self.name)

    def serve_relative(self, data):
        self.refuse(307, Location="/good/" + self.name)

    def serve_downgrade(self, data):      # from https to http
        self.refuse(302, Location=self.server.other.base("good") + "/" + self.name)

    def serve_circle(self, data):
        self.refuse(301, Location="/circle/" + self.name)

    def serve_local(self, data):
        self.refuse(302, Location="file:///etc/passwd")

    def serve_drop(self, data):           # a quarter each time, and the line is cut
        part = self.begin_part(data)
        self.send(part[:len(data) // 4 + 1])

    def serve_half(self, data):           # half of it, from the start, each time
        self.begin(200, len(data))
        self.send(data[:len(data) // 2])

    def serve_short(self, data):          # twice, Content-Length is that of half, so all seems well
        if self.turn > 2:
            return self.serve_good(data)
        part = self.begin_part_of(data, (len(data) - self.start() + 1) // 2)
        self.send(part)

    def begin_part_of(self, data, n):
        at = self.start()
        if at == 0:
            self.begin(200, n)
        else:
            self.begin(206, n, Content_Range="bytes %d-%d/%d" % (at, at + n - 1, at + n))
        return data[at:at + n]

    def serve_long(self, data):           # Content-Length promises more than there is
        self.send(self.begin_part(data, 1000))

    def serve_bomb(self, data):           # no end
        self.begin(200)
        for _ in range(4000):
            self.send(bytes(65536))

    def serve_flood(self, data):          # what is asked for, then zeros without end, until the client goes
        self.begin(200)
        self.send(data)
        while True:
            self.send(bytes(65536))

    def serve_trickle(self, data):        # some bytes now and then, without end
        self.begin(200)
        while True:
            self.send(b"x")
            time.sleep(0.1)

    def serve_wrong(self, data):          # as many bytes, others
        self.begin(200, len(data))
        self.send(data[:-1] + bytes([data[-1] ^ 1]))

    def serve_slow(self, data):           # slow, and never still for long
        part = self.begin_part(data)
        for at in range(0, len(part), len(data) // 8 + 1):
            self.send(part[at:at + len(data) // 8 + 1])
            time.sleep(0.15)

    def serve_stall(self, data):          # sends some, then nothing, and keeps the line
        part = self.begin_part(data)
        if self.turn > 1:
            return self.send(part)
        self.send(part[:len(part) // 2])
        time.sleep(20)

    def serve_mute(self, data):           # takes the request and says nothing
        time.sleep(20)

    def serve_flaky(self, data):          # an error twice
        if self.turn <= 2:
            self.refuse(500 if self.turn == 1 else 503, Retry_After="0")
        else:
            self.serve_good(data)

    def serve_later(self, data):          # asks for patience
        if self.turn == 1:
            self.refuse(429, Retry_After="1")
        else:
            self.serve_good(data)

    def serve_status(self, data):
        self.refuse(int(self.arg))

    def serve_pointer(self, data):
        text = (POINTER % (self.server.sums.get(self.name, "0" * 64), len(data))).encode()
        self.begin(200, len(text))
        self.send(text)

    def serve_page(self, data):
        self.begin(200, 40, Content_Type="text/html")
        self.send(b"<!DOCTYPE html><html>Please log in</html>"[:40])
