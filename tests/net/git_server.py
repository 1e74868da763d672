#!/usr/bin/env python3
"""Git repositories on loopback, served by `git http-backend`, well or badly. Makes them in the folder given, prints the port, and serves
until its stdin ends, 300 s at most. FOLDER/facts then holds the ids by name, one "NAME ID" a line.

    git_server.py FOLDER

http://127.0.0.1:PORT/MODE/REPO.git; modes: plain; silent (accepts, says nothing); mute (answers the list of refs, then nothing);
cut (ends every pack after 3000 bytes); cutonce (the first pack only); status (503); slow (a pack byte a tenth of a second)
"""
import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ROOT = sys.argv[1]
ENV = dict(os.environ, GIT_CONFIG_NOSYSTEM="1", GIT_CONFIG_GLOBAL="/dev/null", HOME=ROOT, GIT_AUTHOR_NAME="a", GIT_AUTHOR_EMAIL="a@b",
           GIT_COMMITTER_NAME="a", GIT_COMMITTER_EMAIL="a@b", GIT_AUTHOR_DATE="1700000000 +0000", GIT_COMMITTER_DATE="1700000000 +0000")
CUT = set()


def git(*args, at=ROOT, data=None):
    return subprocess.run(["git", *args], cwd=at, env=ENV, input=data, check=True, stdout=subprocess.PIPE).stdout.decode().strip()


def commit(repo, files, parent=None):
    """One commit: {path: bytes | ("link", target) | ("sub", id) | ("exe", bytes)}."""
    git("read-tree", "--empty", at=repo)
    for path, what in files.items():
        kind, value = what if isinstance(what, tuple) else ("file", what)
        mode = {"file": "100644", "exe": "100755", "link": "120000", "sub": "160000"}[kind]
        if kind != "sub":
            value = git("hash-object", "-w", "--stdin", at=repo, data=value if isinstance(value, bytes) else value.encode())
        git("update-index", "--add", "--cacheinfo", f"{mode},{value},{path}", at=repo)
    tree = git("write-tree", at=repo)
    return git("commit-tree", tree, "-m", "x", *(["-p", parent] if parent else []), at=repo)


def init(name):
    repo = os.path.join(ROOT, name + ".git")
    git("init", "-q", "--bare", repo)
    return repo


def build():
    sub, main, open_, evil = init("sub"), init("main"), init("open"), init("evil")
    facts = {}
    noise = os.urandom(40000)
    facts["sub1"] = commit(sub, {"include/cutlass.h": b"one\n", "noise": noise})
    facts["sub2"] = commit(sub, {"include/cutlass.h": b"two\r\n"}, facts["sub1"])
    git("update-ref", "refs/heads/master", facts["sub2"], at=sub)
    modules = '[submodule "cutlass"]\n\tpath = csrc/cutlass\n\turl = ../sub.git\n[submodule "ck"]\n\tpath = csrc/ck\n\turl = file:///etc\n' \
              '[submodule "none"]\n\tpath = csrc/none\n'
    files = {"setup.py": b"a\r\nb\n", "run": ("exe", b"#!/bin/sh\n"), "csrc/cutlass": ("sub", facts["sub1"]), "csrc/ck": ("sub", facts["sub2"]),
             "csrc/none": ("sub", facts["sub2"]), ".gitmodules": modules.encode(), ".gitattributes": b"* text=auto eol=crlf\n",
             "docs/link": ("link", "../setup.py"), "noise": os.urandom(60000)}
    for repo in (main, open_):
        facts["v1"] = commit(repo, files)
        facts["v2"] = commit(repo, dict(files, **{"setup.py": b"v2\n"}), facts["v1"])
        facts["old"] = commit(repo, dict(files, **{"setup.py": b"old\n"}))
        git("update-ref", "refs/heads/master", facts["v2"], at=repo)
        git("update-ref", "refs/heads/side", facts["old"], at=repo)
        git("tag", "-a", "-m", "t", "v1", facts["v1"], at=repo)
        git("update-ref", "refs/tags/v2", facts["v2"], at=repo)
        with open(os.path.join(repo, "hooks", "post-checkout"), "w", encoding="ascii") as f:
            f.write("#!/bin/sh\ntouch /tmp/fa-hook-ran\n")
    git("config", "uploadpack.allowReachableSHA1InWant", "true", at=open_)
    for name, target in (("abs", "/etc/passwd"), ("up", "../../x")):
        facts[name] = commit(evil, {"a/l": ("link", target)})
        git("update-ref", f"refs/tags/{name}", facts[name], at=evil)
    with open(os.path.join(ROOT, "facts"), "w", encoding="ascii") as f:
        f.writelines(f"{k} {v}\n" for k, v in facts.items())


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        out = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            out += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return out

    def do_GET(self):
        self.answer(b"")

    def do_POST(self):
        self.answer(self.body())

    def answer(self, body):
        _, mode, rest = self.path.split("/", 2)
        path, _, query = rest.partition("?")
        pack = path.endswith("git-upload-pack") and body
        if mode == "silent" or (mode == "mute" and pack):
            time.sleep(60)
        if mode == "status":
            self.send_response(503)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        env = dict(ENV, GIT_PROJECT_ROOT=ROOT, GIT_HTTP_EXPORT_ALL="1", PATH_INFO="/" + path, QUERY_STRING=query, REQUEST_METHOD=self.command,
                   CONTENT_TYPE=self.headers.get("Content-Type", ""), CONTENT_LENGTH=str(len(body)), REMOTE_ADDR="127.0.0.1",
                   HTTP_CONTENT_ENCODING=self.headers.get("Content-Encoding", ""))
        out = subprocess.run(["git", "http-backend"], env=env, input=body, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
        head, _, data = out.partition(b"\r\n\r\n")
        fields = [line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line]
        status = next((v for k, v in fields if k == "Status"), "200")
        self.send_response(int(status.split()[0]))
        for key, value in fields:
            if key != "Status":
                self.send_header(key, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if pack and (mode == "cut" or (mode == "cutonce" and rest not in CUT)):
            CUT.add(rest)
            self.close_connection = True
            data = data[:3000]
        if mode == "slow" and pack:
            for i in range(len(data)):
                self.wfile.write(data[i : i + 1])
                time.sleep(0.1)
        else:
            self.wfile.write(data)


def main():
    build()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *args: None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    threading.Timer(300, lambda: os._exit(0)).start()
    sys.stdin.buffer.read()
    os._exit(0)


main()
