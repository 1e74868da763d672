#!/usr/bin/env python3
"""A web server on loopback that misbehaves as the query of each request says. Prints "PORT [TLS_PORT]" and serves until its stdin
ends, 300 s at most.

    bad_server.py [CERT.pem]     with a certificate also over TLS, and as a CONNECT proxy

/NAME?size=N          N bytes of the pattern (below), with ETag, ranges and If-Range honoured
  &cut=K              closes after K bytes of every answer
  &nolength           no Content-Length, no ranges: the end of the connection is the end
  &norange            answers 200 with everything whatever is asked
  &change             another file, with another ETag, at every request
  &short=K            Content-Length says K, K bytes come
  &extra=K            K bytes more than size, no Content-Length
  &wrong              the right length, other bytes
  &shift              answers 206 with another start than asked for
  &status=S           only this status; with &times=T for the first T requests of this id
  &after=A            Retry-After: A
  &to=URL             a redirect
  &slow               33 bytes a second
  &silent             nothing at all
  &id=X               what requests are counted by (else the path)
  &page=json|html     an index page (see INDEX)
/count?id=X           how many requests had this id so far, and of them with Range, with If-Range, with Authorization
"""
import os
import socket
import ssl
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

BLOCKS = [bytes((j * 131 + k * 7) & 255 for j in range(4096)) for k in range(256)]
COUNTS = {}
LOCK = threading.Lock()
FILES = {}


def pattern(size, salt=0):
    out = b"".join(BLOCKS[(k + salt) & 255] for k in range((size + 4095) // 4096))
    return out[:size]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_CONNECT(self):
        host, port = self.path.rsplit(":", 1)
        self.count("proxy")
        with socket.create_connection((host, int(port)), 10) as far:
            self.send_response(200, "Connection established")
            self.end_headers()
            pumps = [threading.Thread(target=pump, args=pair, daemon=True) for pair in ((self.connection, far), (far, self.connection))]
            for p in pumps:
                p.start()
            for p in pumps:
                p.join(60)
        self.close_connection = True

    def count(self, key):
        with LOCK:
            row = COUNTS.setdefault(key, [0, 0, 0, 0])
            row[0] += 1
            for i, name in enumerate(("Range", "If-Range", "Authorization")):
                row[i + 1] += name in self.headers
            return row[0]

    def send(self, status, body=b"", headers=(), length=None, cut=None, slow=False):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if length is not False:
            self.send_header("Content-Length", str(len(body) if length is None else length))
        else:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        if slow:
            for i in range(len(body)):
                self.wfile.write(body[i : i + 1])
                self.wfile.flush()
                time.sleep(0.03)
        self.wfile.write(body if cut is None else body[:cut])
        if cut is not None and cut < len(body):
            self.wfile.flush()
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

    def do_GET(self):
        try:
            self.answer()
        except (BrokenPipeError, ConnectionResetError, OSError):
            self.close_connection = True

    def answer(self):
        url = urlsplit(self.path)
        q = {k: v[0] for k, v in parse_qs(url.query, keep_blank_values=True).items()}
        key = q.get("id", url.path)
        if url.path == "/count":
            return self.send(200, " ".join(map(str, COUNTS.get(key, [0, 0, 0, 0]))).encode())
        if url.path in FILES:
            kind, body = FILES[url.path]
            return self.send(200, body, [("Content-Type", kind)])
        n = self.count(key)
        if "silent" in q:
            time.sleep(60)
            self.close_connection = True
            return None
        if "status" in q and n <= int(q.get("times", "1000000")):
            return self.send(int(q["status"]), b"no", [("Retry-After", q["after"])] if "after" in q else [])
        if "to" in q:
            return self.send(302, b"elsewhere", [("Location", q["to"])])
        return self.file(q, n)

    def file(self, q, n):
        size = int(q.get("size", "1000"))
        change = n if "change" in q else 0
        body = pattern(size, 1 if "wrong" in q else change)
        etag = f'"e{change}"'
        headers = [("ETag", etag), ("Accept-Ranges", "bytes")]
        cut = int(q["cut"]) if "cut" in q else None
        if "nolength" in q:
            return self.send(200, body[:cut], [], False)
        if "short" in q:
            return self.send(200, body[: int(q["short"])], headers)
        if "extra" in q:
            return self.send(200, body + bytes(int(q["extra"])), headers, False)
        asked = self.headers.get("Range")
        if asked and "norange" not in q and self.headers.get("If-Range", etag) == etag:
            start = int(asked.removeprefix("bytes=").rstrip("-"))
            if start >= size:
                return self.send(416, b"", [("Content-Range", f"bytes */{size}")])
            start -= 1 if "shift" in q else 0
            headers.append(("Content-Range", f"bytes {start}-{size - 1}/{size}"))
            return self.send(206, body[start:], headers, cut=cut, slow="slow" in q)
        return self.send(200, body, headers, cut=cut, slow="slow" in q)


def pump(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def serve(cert=None):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *args: None  # clients that go away are the point here
    if cert:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def load(folder):
    """Files of a folder, served as they are: NAME.json and NAME.html as index pages at /simple/NAME/."""
    kinds = {".json": "application/vnd.pypi.simple.v1+json", ".html": "text/html"}
    for name in os.listdir(folder):
        stem, end = os.path.splitext(name)
        if end in kinds:
            with open(os.path.join(folder, name), "rb") as f:
                FILES[f"/simple/{stem}/"] = (kinds[end], f.read())


def main():
    for argument in sys.argv[1:]:
        if os.path.isdir(argument):
            load(argument)
    certs = [a for a in sys.argv[1:] if a.endswith(".pem")]
    ports = [serve()] + [serve(c) for c in certs]
    print(*ports, flush=True)
    threading.Timer(300, lambda: os._exit(0)).start()
    sys.stdin.buffer.read()
    os._exit(0)


main()
