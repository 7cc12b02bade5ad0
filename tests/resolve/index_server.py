# SPDX-License-Identifier: MIT
"""An HTTP server that keeps files: GET with ranges, HEAD, PUT with If-Match; and ways to be a bad one."""
import http.server
import os
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def path_of(self):
        return os.path.join(self.server.root, self.path.lstrip("/"))

    def content(self):
        try:
            with open(self.path_of(), "rb") as file:
                return file.read()
        except OSError:
            return None

    def answer(self, status, body=b"", headers=(), length=None):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.server.bytes_out += len(body)

    def do_GET(self):
        server = self.server
        server.requests.append((self.command, self.path, self.headers.get("Range")))
        with server.lock:
            server.active += 1
            server.most_active = max(server.active, server.most_active)
        try:
            server.released.wait(server.delay)
            return self.get()
        finally:
            with server.lock:
                server.active -= 1

    def get(self):
        fault = self.server.fault
        body = self.content()
        if fault == "html":
            return self.answer(200, b"<!DOCTYPE html><title>Welcome</title>" * 100)
        if fault == "circle":
            return self.answer(302, headers=[("Location", self.path)])
        if fault == "error":
            return self.answer(503, b"busy")
        if fault == "refuse":
            return self.answer(403, b"no")
        if fault == "silent":
            self.server.released.wait(60)
            return None
        if body is None:
            return self.answer(404, b"none")
        status, headers = 200, [("ETag", f'"{hash(body) & 0xffffffff:x}"')]
        text = self.headers.get("Range")
        if text and fault != "whole":
            first, last = (int(n) for n in text.removeprefix("bytes=").split("-"))
            if first >= len(body):
                return self.answer(416, b"")
            headers.append(("Content-Range", f"bytes {first}-{min(last, len(body) - 1)}/{len(body)}"))
            body, status = body[first:last + 1], 206
        if fault == "half":
            self.close_connection = True
            return self.answer(status, body[:len(body) // 2], headers, len(body))
        if fault == "short":
            return self.answer(status, body[:len(body) // 2], headers)
        if fault == "slow":
            self.close_connection = True
            self.answer(status, b"", headers, len(body))
            for i in range(len(body)):
                self.wfile.write(body[i:i + 1])
                self.wfile.flush()
                if self.server.released.wait(1):
                    return None
        return self.answer(status, body, headers)

    do_HEAD = do_GET

    def do_PUT(self):
        self.server.requests.append((self.command, self.path, None))
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.lock:
            now = self.content()
            if self.server.fault == "no-put":
                return self.answer(405, b"no")
            if self.headers.get("If-None-Match") == "*" and now is not None:
                return self.answer(412, b"")
            match = self.headers.get("If-Match")
            if match and (now is None or match != f'"{hash(now) & 0xffffffff:x}"'):
                return self.answer(412, b"")
            os.makedirs(os.path.dirname(self.path_of()), exist_ok=True)
            with open(self.path_of() + ".new", "wb") as file:
                file.write(body)
            os.rename(self.path_of() + ".new", self.path_of())
        return self.answer(201, b"")


class Server(http.server.ThreadingHTTPServer):
    """Runs until close(). @fault: how it is bad. Answers to GET come after delay seconds."""
    daemon_threads = True

    def __init__(self, root, fault=""):
        super().__init__(("127.0.0.1", 0), Handler)
        self.root, self.fault, self.requests, self.bytes_out = root, fault, [], 0
        self.delay = self.active = self.most_active = 0
        self.lock, self.released = threading.Lock(), threading.Event()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        pass

    def close(self):
        self.released.set()
        self.shutdown()
        self.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
