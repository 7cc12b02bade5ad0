# SPDX-License-Identifier: MIT
"""Servers on the loopback interface: Debian's debuginfod, and ones that misbehave in a stated way."""
import contextlib
import http.server
import os
import socket
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request

from ask import HANG_SECONDS


def _free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def refusing():
    """The address of a port that refuses connections: somebody has it, who does not listen."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{s.getsockname()[1]}"


def _is_served(url, build_id):
    try:
        with urllib.request.urlopen(f"{url}/buildid/{build_id}/debuginfo", timeout=10):
            return True
    except (urllib.error.URLError, OSError):
        return False


@contextlib.contextmanager
def debuginfod(folder, build_ids):
    """Debian's server over @folder: its address, once it has found all of @build_ids."""
    with tempfile.TemporaryDirectory() as scratch:
        log, until = os.path.join(scratch, "log"), time.monotonic() + HANG_SECONDS

        def start():
            port = _free_port()
            with open(log, "wb") as out:
                server = subprocess.Popen(
                    ["debuginfod", "-F", "-d", ":memory:", "-p", str(port), "-t", "1", "-g", "0", folder],
                    stdout=out, stderr=out, env={**os.environ, "HOME": scratch, "DEBUGINFOD_URLS": ""})
            return server, f"http://127.0.0.1:{port}"

        server, url = start()
        try:
            starts = 1
            while not all(_is_served(url, i) for i in build_ids):
                # Another one may have got the port meanwhile.
                if server.poll() is not None and starts < 5:
                    server, url = start()
                    starts += 1
                assert server.poll() is None and time.monotonic() < until, \
                    f"debuginfod does not serve {build_ids}:\n{open(log, encoding='utf-8').read()}"
                time.sleep(0.1)
            yield url
        finally:
            server.terminate()
            server.wait()


class Recording:
    """A server that notes the paths it is asked for, and answers by @files, {path: bytes}."""

    def __init__(self, files=None):
        self.asked, self.files = [], files or {}
        recording = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                recording.asked.append(self.path)
                data = recording.files.get(self.path)
                self.send_response(404 if data is None else 200)
                self.send_header("Content-Length", str(len(data or b"")))
                # The client may have what it wants to know by now.
                with contextlib.suppress(BrokenPipeError):
                    self.end_headers()
                    self.wfile.write(data or b"")

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class Stalling:
    """A server that accepts, reads the request, sends @first, and then never again anything."""

    def __init__(self, first=b""):
        self.asked, self.first, self.open = [], first, []
        self.arrived = threading.Event()
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listening.getsockname()[1]}"

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listening.accept()
                self.open.append(connection)
                line = connection.recv(65536).partition(b"\r\n")[0].decode()
                self.asked.append(line.split(" ")[1] if " " in line else line)
                self.arrived.set()
                # Who has asked may have given up.
                with contextlib.suppress(OSError):
                    connection.sendall(self.first)

    def __enter__(self):
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        # A thread that waits in accept() is woken by this, not by closing.
        self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()
        for connection in self.open:
            connection.close()
