#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""page.py FATHOM [SPEEDSCOPE]: how long pages take in headless chromium, beside speedscope (a folder of its release from npm) with the same
profile. A line for each program and profile, tab-separated; times are the least of some in milliseconds, as other programs may run, in the page, of
what it does for a click up to its picture.

A page's first picture is counted from the begin of the navigation up to what is drawn, and so is speedscope's.
"""
import base64
import os
import random
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "tests", "lib"), os.path.join(HERE, "..", "tests", "page")]

from browser import browser, open_page  # noqa: E402
from profile_writer import Writer  # noqa: E402
from running import until  # noqa: E402

RUNS = 5
# Stacks, and the new frames that each has on average.
PROFILES = {"100,000 stacks": (100_000, 3), "1,000,000 nodes": (330_000, 3)}
COLUMNS = ("program", "profile", "nodes", "bytes", "written", "first", "zoom", "search", "bottom-up", "range")


def made(folder, stacks, fresh):
    """A profile of so many different stacks, each of which has outer frames in common with the one before; its path and nodes."""
    rng, w = random.Random(1), Writer()
    threads = [w.thread(100, 100 + i, f"worker{i}") for i in range(8)]
    modules = [w.module(f"/usr/lib/lib{i}.so") for i in range(20)]
    words = ("parse", "make", "read", "Node", "Table", "visit", "emit", "Value", "insert", "lookup", "std::vector", "detail")
    locations = []
    for i in range(5000):
        name = "::".join(rng.choice(words) for _ in range(3)) + f"<{i}>(int, char const*)"
        locations.append(w.location(modules[i % 20], i * 64, w.symbol(name)))
    stack, children, nodes = [], {}, 0
    for number in range(stacks):
        del stack[rng.randint(max(len(stack) - 2 * fresh, 0), max(len(stack) - 1, 0)):]
        added = False
        while not added or (len(stack) < 40 and rng.random() < 1 - 1 / fresh):
            key = (stack[-1] if stack else 0, rng.choice(locations))
            if key not in children:
                children[key], nodes, added = w.node(*key), nodes + 1, True
            stack.append(children[key])
        w.sample(number * 100_000, threads[number % 8], stack[-1], rng.randint(90_000, 110_000))
    return w.save(folder, f"{stacks}.profile"), nodes


ACTIONS = {
    "zoom": "app.zoomed = !app.zoomed; app.change({ zoom: app.zoomed ? pathOf() : [] });",
    "search": "app.change({ search: app.view.search ? '' : 'lookup' });",
    "range": "app.change(app.view.from === null ? { from: app.model.duration / 4, to: app.model.duration / 2 } : { from: null, to: null });",
    "bottom-up": "app.change({ up: !app.view.up, zoom: [] });",
}


def timed(driver, action):
    """Milliseconds of an action, to its picture."""
    return driver.execute_script("""const app = window.fathom.app, pathOf = () => {
            const path = [], tree = app.tree;
            for (let i = app.flame.boxes.find((box) => box.depth === 5 && box.node > 0).node; i; i = tree.parent[i]) path.unshift(tree.fn[i]);
            return path; };
        const begin = performance.now();
        """ + action + """
        document.getElementById("flame").getContext("2d").getImageData(0, 0, 1, 1);
        return performance.now() - begin;""")


def measure_page(driver, path):
    values = {name: [] for name in ("first", *ACTIONS)}
    for _ in range(RUNS):
        open_page(driver, path)
        values["first"].append(driver.execute_script("return performance.getEntriesByName('drawn')[0].startTime"))
    for name, action in ACTIONS.items():
        for _ in range(2 * RUNS):
            values[name].append(timed(driver, action))
    return {name: round(min(list_)) for name, list_ in values.items()}


# Speedscope puts the profile's name into the title when it has made all of it, just before it draws.
WATCH = """new MutationObserver(() => { if (document.title.includes("x.collapsed") && !window.drawn) requestAnimationFrame(() =>
    setTimeout(() => { window.drawn = performance.now(); })); }).observe(document, { subtree: true, childList: true, characterData: true });"""


def measure_speedscope(driver, release, folder, collapsed):
    """Speedscope's first picture of the same stacks, as its own command has it open files from file://."""
    with open(collapsed, "rb") as source, open(os.path.join(folder, "x.js"), "w", encoding="ascii") as f:
        f.write(f'speedscope.loadFileFromBase64("x.collapsed", "{base64.b64encode(source.read()).decode()}")')
    driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
    values = []
    for _ in range(RUNS):
        driver.get("about:blank")
        driver.get(f"file://{release}/index.html#localProfilePath={folder}/x.js")
        until(lambda: driver.execute_script("return !!window.drawn"), "the picture of speedscope")
        values.append(driver.execute_script("return window.drawn"))
    return round(min(values))


def main():
    fathom = sys.argv[1]
    print("\t".join(COLUMNS))
    with tempfile.TemporaryDirectory() as folder, browser() as driver:
        for name, (stacks, fresh) in PROFILES.items():
            profile, nodes = made(folder, stacks, fresh)
            page, begin = os.path.join(folder, "page.html"), time.perf_counter()
            subprocess.run([fathom, "report", "-o", page, "--no-cache", profile], check=True)
            row = {"program": "fathom", "profile": name, "nodes": nodes, "bytes": os.path.getsize(page),
                   "written": round(1000 * (time.perf_counter() - begin))} | measure_page(driver, page)
            print("\t".join(str(row[column]) for column in COLUMNS), flush=True)
            if len(sys.argv) > 2:
                collapsed = os.path.join(folder, "x.collapsed")
                subprocess.run([fathom, "report", "--export", "collapsed", "-o", collapsed, "--no-cache", profile], check=True)
                row = {"program": "speedscope", "profile": name, "nodes": nodes, "bytes": os.path.getsize(collapsed),
                       "first": measure_speedscope(driver, os.path.abspath(sys.argv[2]), folder, collapsed)}
                print("\t".join(str(row.get(column, "")) for column in COLUMNS), flush=True)


if __name__ == "__main__":
    main()
