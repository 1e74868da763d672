#!/usr/bin/env python3
"""A loopback server for tests/matrix/run: serves a folder and prints its port. /slow/NAME stops after the first kilobyte until it is
hung up on. It ends with its standard input."""
import http.server
import os
import sys
import threading
import time

FOLDER = sys.argv[1]


class Handler(http.server.SimpleHTTPRequestHandler):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, directory=FOLDER, **kwargs)

    def log_message(self, *args):
        pass

    def do_GET(self):
        if not self.path.startswith("/slow/"):
            return super().do_GET()
        with open(os.path.join(FOLDER, self.path[len("/slow/"):]), "rb") as f:
            data = f.read()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[:1024])
        self.wfile.flush()
        open(os.path.join(FOLDER, "begun"), "w").close()
        time.sleep(60)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
server.serve_forever()
