#!/usr/bin/env python3
"""The places that the end-to-end test installs from, on loopback, until stdin ends (40 minutes at most).

    origin.py FOLDER SDIST|TREE

Makes FOLDER/git/flash-attention.git of the source archive, or of a folder of sources, csrc/cutlass in a repository of its own beside it (a submodule with a
relative address), serves both over smart HTTP (git http-backend) under /git/, and the files of FOLDER/files under /files/.
Prints "PORT COMMIT".
"""
import os
import shutil
import subprocess
import sys
import tarfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ROOT = os.path.abspath(sys.argv[1])
GIT = os.path.join(ROOT, "git")
ENV = dict(os.environ, GIT_CONFIG_NOSYSTEM="1", GIT_CONFIG_GLOBAL="/dev/null", HOME=ROOT, GIT_AUTHOR_NAME="a",
           GIT_AUTHOR_EMAIL="a@b", GIT_COMMITTER_NAME="a", GIT_COMMITTER_EMAIL="a@b",
           GIT_AUTHOR_DATE="1700000000 +0000", GIT_COMMITTER_DATE="1700000000 +0000", GIT_CONFIG_COUNT="2",
           GIT_CONFIG_KEY_0="safe.directory", GIT_CONFIG_VALUE_0="*",
           GIT_CONFIG_KEY_1="uploadpack.allowAnySHA1InWant", GIT_CONFIG_VALUE_1="true")


def git(*args, at):
    return subprocess.run(["git", *args], cwd=at, env=ENV, check=True, stdout=subprocess.PIPE).stdout.decode().strip()


def repository(tree, name):
    """Everything in a folder as one commit on a bare repository; its id."""
    if not os.path.isdir(os.path.join(tree, ".git")):
        git("init", "-q", "-b", "main", ".", at=tree)
    git("add", "-A", "-f", ".", at=tree)
    git("commit", "-q", "-m", "from the source archive", at=tree)
    git("clone", "-q", "--bare", ".", os.path.join(GIT, name), at=tree)
    return git("rev-parse", "HEAD", at=tree)


def make(sdist):
    work = os.path.join(ROOT, "work")
    if os.path.isdir(sdist):
        shutil.copytree(sdist, os.path.join(work, "tree"), symlinks=True)
    else:
        with tarfile.open(sdist) as t:
            t.extractall(work)
    tree = os.path.join(work, os.listdir(work)[0])
    cutlass = os.path.join(ROOT, "cutlass")
    os.rename(os.path.join(tree, "csrc/cutlass"), cutlass)
    sub = repository(cutlass, "cutlass.git")
    with open(os.path.join(tree, ".gitmodules"), "w", encoding="ascii") as f:
        f.write('[submodule "csrc/cutlass"]\n\tpath = csrc/cutlass\n\turl = ../cutlass.git\n')
    git("init", "-q", "-b", "main", ".", at=tree)
    git("add", "-A", "-f", ".", at=tree)
    git("update-index", "--add", "--cacheinfo", "160000," + sub + ",csrc/cutlass", at=tree)
    git("commit", "-q", "-m", "from the source archive", at=tree)
    git("clone", "-q", "--bare", ".", os.path.join(GIT, "flash-attention.git"), at=tree)
    return git("rev-parse", "HEAD", at=tree)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def git(self, path, query, body):
        env = dict(ENV, GIT_PROJECT_ROOT=GIT, GIT_HTTP_EXPORT_ALL="1", PATH_INFO=path, QUERY_STRING=query,
                   REQUEST_METHOD=self.command, CONTENT_TYPE=self.headers.get("Content-Type", ""),
                   CONTENT_LENGTH=str(len(body)), GIT_PROTOCOL=self.headers.get("Git-Protocol", ""))
        if self.headers.get("Content-Encoding"):
            env["HTTP_CONTENT_ENCODING"] = self.headers["Content-Encoding"]
        out = subprocess.run(["git", "http-backend"], env=env, input=body, stdout=subprocess.PIPE, check=False).stdout
        head, _, rest = out.partition(b"\r\n\r\n")
        status, fields = 200, []
        for line in head.decode().split("\r\n"):
            name, _, value = line.partition(": ")
            if name == "Status":
                status = int(value.split()[0])
            elif name:
                fields.append((name, value))
        self.answer(status, fields, rest)

    def answer(self, status, fields, body):
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def body(self):
        """A large request of git comes in chunks."""
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while True:
            size = int(self.rfile.readline().split(b";")[0], 16)
            parts.append(self.rfile.read(size))
            self.rfile.readline()
            if not size:
                return b"".join(parts)

    def do_GET(self):
        body = self.body()
        path, _, query = self.path.partition("?")
        if path.startswith("/git/"):
            self.git(path[4:], query, body)
            return
        file = os.path.join(ROOT, "files", os.path.basename(path).replace("%2B", "+"))
        if os.path.isfile(file):
            with open(file, "rb") as f:
                self.answer(200, [("Content-Type", "application/octet-stream")], f.read())
        else:
            self.answer(404, [], b"")

    do_POST = do_HEAD = do_GET


def main():
    os.makedirs(GIT)
    os.makedirs(os.path.join(ROOT, "files"), exist_ok=True)
    commit = make(sys.argv[2])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    threading.Thread(target=lambda: (time.sleep(2400), os._exit(0)), daemon=True).start()
    print(server.server_address[1], commit, flush=True)
    sys.stdin.read()


main()
