# SPDX-License-Identifier: MIT
"""Exports in the trace viewer of Chrome, which Go's sources bring along, in a headless Chromium."""
import collections
import contextlib
import functools
import glob
import http.server
import json
import os
import shutil
import subprocess
import threading

from ask import fathom, run

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "calls", "programs")
SITES = "-fpatchable-function-entry=18,16"
RETURNS = ("-minstrument-return=nop5", "-mrecord-return", "-pg", "-mfentry", "-mnop-mcount", "-fno-pie", "-no-pie")

PAGE = '<script src="webcomponents.min.js"></script><link rel="import" href="trace_viewer_full.html">'
# Whatever the viewer has made of a trace: each thread's slices, with how many they lie within, and what it has found wrong.
LOAD = """
(async () => {
    while (typeof tr === "undefined" || !tr.Model || !tr.importer || !tr.importer.Import)
        await new Promise(done => setTimeout(done, 50));
    const model = new tr.Model(), text = await (await fetch("NAME")).text();
    new tr.importer.Import(model).importTraces([text]);
    const depth = slice => slice.parentSlice ? depth(slice.parentSlice) + 1 : 0;
    const threads = model.getAllThreads().map(t => [t.tid, t.sliceGroup.slices.map(s => [s.title, s.start, s.duration, depth(s)])]);
    return JSON.stringify([threads, model.importWarnings.map(w => w.message)]);
})()"""


class Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Chromium:
    """A browser that is spoken to over two pipes, its descriptors 3 and 4."""

    def __init__(self, folder):
        (theirs, self.to), (self.back, ours) = os.pipe(), os.pipe()
        for end in theirs, ours:
            os.set_inheritable(end, True)
        words = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", f"--user-data-dir={folder}", "--remote-debugging-pipe"]
        self.process = subprocess.Popen(["sh", "-c", f'exec "$@" 3<&{theirs} 4>&{ours}', "sh", *words], close_fds=False,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs)
        os.close(ours)
        self.number, self.pending, self.events = 0, b"", []

    def ask(self, method, session=None, **params):
        self.number += 1
        question = {"id": self.number, "method": method, "params": params} | ({"sessionId": session} if session else {})
        os.write(self.to, json.dumps(question).encode() + b"\0")
        while True:
            answer = self.hear()
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer.get("method"))

    def hear(self):
        while b"\0" not in self.pending:
            piece = os.read(self.back, 1 << 16)
            assert piece, "chromium has ended"
            self.pending += piece
        line, self.pending = self.pending.split(b"\0", 1)
        return json.loads(line)

    def wait_for(self, event):
        while event not in self.events:
            self.events.append(self.hear().get("method"))

    def close(self):
        self.ask("Browser.close")
        self.process.wait(timeout=30)
        os.close(self.to)
        os.close(self.back)


@contextlib.contextmanager
def viewer(folder):
    """Asks the viewer what it has made of a file in @folder."""
    (page,) = glob.glob("/usr/share/go-*/src/cmd/trace/static/trace_viewer_full.html")
    for name in page, os.path.join(os.path.dirname(page), "webcomponents.min.js"):
        shutil.copy(name, folder)
    with open(os.path.join(folder, "index.html"), "w", encoding="utf-8") as f:
        f.write(PAGE)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Silent, directory=folder))
    threading.Thread(target=server.serve_forever).start()
    browser = Chromium(os.path.join(folder, "profile"))
    try:
        target = browser.ask("Target.createTarget", url="about:blank")["targetId"]
        session = browser.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        # What is evaluated before the page is there is lost with the empty one.
        browser.ask("Page.enable", session)
        browser.ask("Page.navigate", session, url=f"http://127.0.0.1:{server.server_port}/index.html")
        browser.wait_for("Page.loadEventFired")

        def load(name):
            said = browser.ask("Runtime.evaluate", session, expression=LOAD.replace("NAME", name), returnByValue=True, awaitPromise=True)
            assert "value" in said["result"], said
            return json.loads(said["result"]["value"])
        yield load
    finally:
        browser.close()
        server.shutdown()
        server.server_close()


def loads(folder):
    """Each call is a slice of its thread, in order, within its caller's; recorded returns end them."""
    builds = (("shapes", "shapes.c", ("-O1", SITES), ()), ("returns", "shapes.c", ("-O1", *RETURNS), ("--exits",)),
              ("threads", "twin.c", ("-O1", SITES, "-pthread"), ()))
    with viewer(folder) as load:
        for name, source, flags, options in builds:
            path, trace = os.path.join(folder, name), os.path.join(folder, name + ".trace")
            run("gcc", *flags, "-o", path, os.path.join(PROGRAMS, source))
            fathom("trace", "--no-fold", *options, "-o", trace, "--", path, status=0)
            fathom("trace", "--read", trace, "--export", "chrome", "-o", os.path.join(folder, name + ".json"), status=0)
            threads, warnings = load(name + ".json")
            assert not warnings, (name, warnings)
            expected, durations = collections.defaultdict(list), collections.defaultdict(list)
            first = None
            for line in fathom("trace", "--read", trace, "--no-fold", "--json", status=0).stdout.splitlines():
                e = json.loads(line)
                if e["type"] == "call":
                    first = e["ns"] if first is None else first
                    expected[e["tid"]].append((e["function"], e["ns"], e["depth"]))
                elif e["type"] == "return":
                    durations[e["tid"]].append((e["function"], e["duration_ns"] or 0))
            assert sum(map(len, expected.values())) >= 9, name
            for tid, slices in threads:
                # Other events than calls, as the end, have no duration.
                calls = [s for s in slices if s[0] in {f for f, *_ in expected[tid]}]
                origin = calls[0][1] - (expected[tid][0][1] - first) / 1e6
                # The viewer puts a slice without duration into the one that ends there.
                same = [s[0] == f and (s[3] == depth or round(s[2], 6) == 0) for s, (f, _, depth) in zip(calls, expected[tid])]
                assert len(calls) == len(expected[tid]) and all(same), (name, tid, len(calls), len(expected[tid]), same.count(False))
                assert sum(round(s[2], 6) > 0 for s in calls) > len(calls) / 2, (name, tid)
                assert all(abs(s[1] - origin - (ns - first) / 1e6) < 2e-6 for s, (_, ns, _) in zip(calls, expected[tid])), (name, tid)
                ended = sorted((f, round(duration / 1e6, 6)) for f, duration in durations[tid])
                assert not ended or sorted((s[0], round(s[2], 6)) for s in calls) == ended, (name, tid)
            assert {tid for tid, _ in threads} >= set(expected), name


TESTS = [("Chrome's trace viewer, in Chromium: each exported call is a slice of its thread, within its caller's", loads)]
