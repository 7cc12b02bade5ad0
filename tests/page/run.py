#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "page": the data of pages, and what their scripts make of them, below node; beside a model that has the samples of the file.
browsed.py looks at pages in a browser."""
import base64
import collections
import hashlib
import os
import random
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), os.path.join(HERE, "..", "profile"), HERE]

from ask import FATHOM, execute  # noqa: E402
from made_profile import make, report, same  # noqa: E402
from made_samples import HOSTILE, TIMES, WAITING, WHOLE, lines_of, rows_by_model, samples_of, shown, tree_by_model  # noqa: E402
from page_file import ask, ask_model, data_of, read, write  # noqa: E402
from profile_writer import Writer  # noqa: E402
from suite import SUITE, test  # noqa: E402

ROWS = "Object.fromEntries(byFunction(model, sums).map((row) => [name(row.fn), [row.self[0], row.total[0]]]))"
MANY_VIEWS = """const model = decode(bytes), name = (fn) => (fn < 0 ? "" : model.functions.name[fn]);
const weights = (tree) => {
    const paths = {};
    for (let i = 0; i < tree.n; i++)
        if (tree.a[i]) paths[pathOf(tree, i).map(name).join(";")] = tree.a[i];
    return paths; };
return given.map((change) => {
    const view = { ...defaultView(model), ...change }, sums = weigh(model, view);
    return [""" + ROWS + """, weights(topDown(model, sums, "a")), weights(bottomUp(model, sums, "a", []))]; });"""


@test("functions and trees are those of a model: of each time, thread, process and range, down and up")
def beside_model(folder):
    for seed in range(3):
        samples = list(samples_of(seed))
        path = write(folder, make(folder, lines_of(samples)))
        views = ({}, {"time": "waiting"}, {"time": "wall"}, {"time": "wall", "pid": "7"}, {"time": "wall", "pid": "7", "tid": "8"},
                     {"time": "wall", "from": 9000, "to": 40000}, {"time": "cpu", "from": 1, "to": 30000, "pid": "9"},
                     {"time": "waiting", "from": 20000, "to": 20500})
        for view, (rows, down, up) in zip(views, ask(path, MANY_VIEWS, views)):
            between = (view["from"], view["to"]) if "from" in view else None
            chosen = {key: int(view[key]) for key in ("pid", "tid") if key in view}
            stacks = list(shown(samples, view.get("time", "cpu"), between=between, **chosen))
            same(rows, rows_by_model(stacks))
            same(down, tree_by_model(stacks) if stacks else {})
            callers = tree_by_model([(stack[::-1], weight) for stack, weight in stacks])
            # What is below a box of a 5,000th is not followed.
            heavy = {name: weight for name, weight in callers.items() if callers[name.rpartition(";")[0]] * 5000 >= callers[""]}
            same(up, heavy if stacks else {})


@test("ranges that are next to each other have what their union has; a wait counts in each for as much as is in it")
def ranges(folder):
    samples = list(samples_of(11))
    path = write(folder, make(folder, lines_of(samples)))
    end = samples[-1].ns + 1
    for time in TIMES:
        for cuts in ([0, end], [0, 777, 778, 30000, 30001, end]):
            parts = ask(path, """const model = decode(bytes);
                return given.cuts.slice(1).map((to, i) => weigh(model, { ...defaultView(model), time: given.time, from: given.cuts[i], to }).all[0]);""",
                        {"cuts": cuts, "time": time})
            begun = sum(max(s.weight - s.ns, 0) for s in samples if s.part in TIMES[time] and s.part >= WAITING)
            same(sum(parts), sum(weight for _, weight in shown(samples, time)) - begun)


@test("without a range, a page has the sums of the report, for each filter and time")
def beside_report(folder):
    path = make(folder, lines_of(s._replace(ns=s.ns * 1000, weight=s.weight * 1000) for s in samples_of(3)))
    for words in ((), ("--only", "a", "--only", "b"), ("--not", "[cd]"), ("--under", "e"), ("--from", "9ms", "--to", "40ms"), ("--under", "b", "--not", "c")):
        for time in TIMES:
            rows = {row["name"]: [row["self"], row["total"]] for row in report(path, *words, "--time", time)["row"]}
            page = write(folder, *words, "--time", time, path)
            same(ask_model(page, ROWS), rows)
            same(ask_model(page, "view.time"), time)
    same(ask_model(write(folder, "--not", "b", "--from", "1ms", path), "model.facts[0].get('filter')"),
         ["not b", "from 0.001000000 s"])


@test("widths are counts: boxes of each node, next to each other; what is too small is one box, not left out")
def widths(folder):
    samples = list(samples_of(5))
    path = write(folder, make(folder, lines_of(samples)))
    for pixels in (40, 333, 3840):
        found = ask_model(path, """(() => { const tree = topDown(model, sums, "a");
            return layOut(tree, 0, given).map((box) => [box.node < 0 ? null : pathOf(tree, box.node).map(name).join(";"), box.depth, box.x0, box.x1, box.n || 0]); })()""", pixels)
        tree = tree_by_model(list(shown(samples)))
        scale = pixels / tree[""]
        drawn = {name: (depth, x1 - x0) for name, depth, x0, x1, _ in found if name is not None}
        same(set(drawn), {name for name, weight in tree.items() if weight * scale >= 0.5})
        for name, (depth, width) in drawn.items():
            assert abs(width - tree[name] * scale) < 1e-6 and depth == (len(name.split(";")) if name else 0), (name, width)
        # All of a level is drawn, but runs of small boxes that are no half pixel together.
        for name, weight in tree.items():
            depth = len(name.split(";")) if name else 0
            inside = [path for path in tree if path and path.rpartition(";")[0] == name and path != name]
            if name not in drawn or not inside:
                continue
            left = next(x0 for other, _, x0, _, _ in found if other == name)
            right = left + weight * scale
            # A run of small boxes may go on above the next caller.
            level = sum(max(min(x1, right) - max(x0, left), 0) for _, level, x0, x1, _ in found if level == depth + 1)
            expected = sum(tree[path] for path in inside) * scale
            runs = 1 + len([path for path in inside if path in drawn])
            assert expected - 0.5 * runs <= level <= expected + 1e-6, (name, level, expected)


@test("a search has the share of the stacks with a function that matches, each counted once")
def search(folder):
    samples = list(samples_of(6))
    path = write(folder, make(folder, lines_of(samples)))
    for text, matches in (("a", lambda name: "a" in name.lower()), ("/^[bc]$/", lambda name: name in "bc"), ("FUTEX", lambda name: "futex" in name), ("zz", lambda name: False)):
        stacks = list(shown(samples, "wall"))
        found = ask_model(path, "(({ n, weights }) => [n, weights[0]])(searchFor(model, sums, given))", text, time="wall")
        names = {name for stack, _ in shown(samples, "wall") for name in stack}
        same(found, [sum(map(matches, names)), sum(weight for stack, weight in stacks if any(map(matches, stack)))])
    same(ask_model(path, "[searchFor(model, sums, ''), searchFor(model, sums, '/(/')]"), [None, None])


@test("two profiles: sums of each, functions of other versions of a library are one, reasons without numbers of a run")
def diff(folder):
    one, other = list(samples_of(7)), [s._replace(stack=["f", *s.stack[1:]] if s.stack else []) for s in samples_of(8)]
    pages = []
    for number, samples in enumerate((one, other)):
        lines = [line.replace("/bin/demo", f"/opt/{number}/libdemo.so.{number}").replace("0x10", f"0x1{number}") for line in lines_of(samples)]
        pages.append(make(folder, lines, f"profile{number}"))
    path = write(folder, "--diff", *pages)
    for time in TIMES:
        expected = {}
        for side, samples in enumerate((one, other)):
            for name, (own, total) in rows_by_model(list(shown(samples, time))).items():
                name = name.replace("0x10 owned by 7", "* owned by *").replace("(fd 3)", "(fd *)")
                expected.setdefault(name, [[0, 0], [0, 0]])[side] = [own, total]
        found = ask_model(path, "Object.fromEntries(byFunction(model, sums).map((row) => [name(row.fn), [0, 1].map((side) => [row.self[side], row.total[side]])]))", time=time)
        same(found, expected)
        all_weight = [sum(weight for _, weight in shown(samples, time)) for samples in (one, other)]
        same(ask_model(path, "sums.all", time=time), all_weight)
        if time != "cpu":
            continue
        for show, width in (("a", lambda a, b: a), ("b", lambda a, b: b), ("difference", lambda a, b: a / all_weight[0] / 2 + b / all_weight[1] / 2)):
            trees = [tree_by_model(list(shown(samples, time))) for samples in (one, other)]
            found = ask_model(path, """(() => { const tree = given.up ? bottomUp(model, sums, given.show, []) : topDown(model, sums, given.show);
                return Array.from(tree.width, (width, i) => [pathOf(tree, i).map(name).join(";"), width, changeOf(sums, tree.a[i], tree.b[i])]); })()""",
                              {"show": show, "up": False}, time=time)
            for name, value, change in found:
                a, b = (tree.get(name, 0) for tree in trees)
                x, y = a / all_weight[0], b / all_weight[1]
                assert abs(value - width(a, b)) < 1e-9 and (not a + b or abs(change - (y - x) / max(x, y)) < 1e-9), (name, value, a, b, change)
    done = execute(FATHOM, "report", "--diff", "-o", os.path.join(folder, "x.html"), "--per", "3", *pages, status=2)
    assert "no page" in done.stderr, done.stderr
    plain = make(folder, ["about unit cycles", *lines_of(one, ())], "cycles")
    assert "different units" in execute(FATHOM, "report", "--diff", "-o", os.path.join(folder, "x.html"), pages[0], plain, status=2).stderr


@test("the fragment of the address says the view: each is read back; one that lies, or is of another file, is passed over")
def fragment(folder):
    path = write(folder, make(folder, lines_of(samples_of(9))))
    rng = random.Random(4)
    views = []
    for _ in range(40):
        begin = rng.randint(0, 10 ** 15)
        views.append({"time": rng.choice(list(TIMES)), "up": rng.random() < 0.5, "zoom": [rng.randrange(6) for _ in range(rng.randint(0, 40))],
                      "search": rng.choice(("", "a b&c=#%", "/^x$/", "\u202e\u05d0", "</script>")), "from": begin, "to": begin + rng.randint(1, 10 ** 10),
                      "pid": rng.choice(("", "7")), "tid": rng.choice(("", "8")), "sort": rng.choice(("self", "total", "name", "module")),
                      "reversed": rng.random() < 0.5, "show": rng.choice(("difference", "a", "b")), "fn": rng.choice((None, 0, 3)), "source": rng.choice(("lines", "instructions", "none")),
                      "theme": rng.choice(("", "light", "dark")), **(rng.choice(({"t0": None, "t1": None}, {"t0": begin, "t1": begin + 5})))})
    back = ask(path, "const model = decode(bytes); return given.map((view) => viewOf(fragmentOf(view, model), model));", views)
    for view, other in zip(views, back):
        same(other, view)
    usual = ask(path, "const model = decode(bytes); return [fragmentOf(defaultView(model), model), defaultView(model)];")
    same(usual[0], "")
    lies = ["time=x&up=1&zoom=zzzzzz&from=5&to=4&pid=-1&tid=a&sort=self;&reversed=yes&show=c&fn=99999&source=all&theme=red", "from=3", "t0=4", "t0=5&t1=5", "zoom=..&fn=", "%ff&&&===", "x" * 100000]
    for view in ask(path, "const model = decode(bytes); return given.map((text) => viewOf(text, model));", lies):
        same(view, usual[1])


@test("names are data: each is read back as it is, and nothing of the page is made of one")
def names(folder):
    w = Writer()
    thread = w.thread(7, 7, HOSTILE[0])
    module = w.module(HOSTILE[1])
    for number, name in enumerate(HOSTILE):
        w.sample(number, thread, w.node(0, w.location(module, number, w.symbol(name, name))), number + 1)
    path = write(folder, w.save(folder))
    found = ask_model(path, "byFunction(model, sums).map((row) => [name(row.fn), row.self[0]])")
    same(sorted(map(tuple, found)), sorted((name, number + 1) for number, name in enumerate(HOSTILE)))
    same(ask_model(path, "[model.threads.name[0], model.functions.module[0]]"), [HOSTILE[0], HOSTILE[1]])
    html = read(path)
    other = read(write(folder, make(folder, lines_of(samples_of(1)), "other"), name="other.html"))
    strip = re.compile(r'(id="data">)[A-Za-z0-9+/=]*(</script>)')
    same(strip.sub(r"\1\2", html), strip.sub(r"\1\2", other))
    # What is not seen is written out, wherever names are shown.
    shown_names = ask_model(path, "given.map(shown)", HOSTILE)
    assert not any(re.search(r"[\x00-\x1f\x7f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]", name) for name in shown_names), shown_names
    assert "\\u202eabc" in shown_names[3] and len(shown_names[6]) < 500


@test("a page may run and show nothing but its own parts: hashes of the policy, no address, no handler in the markup")
def policy(folder):
    html = read(write(folder, make(folder, lines_of(samples_of(1)))))
    rules = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)[1]
    parts = {kind: re.search(pattern, html, re.S)[1] for kind, pattern in
             (("style", r"<style>(.*?)</style>"), ("script", r"<script>(.*?)</script>"))}
    hashes = {kind: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for kind, text in parts.items()}
    same(rules, f"default-src 'none'; script-src 'sha256-{hashes['script']}'; style-src 'sha256-{hashes['style']}'; base-uri 'none'; form-action 'none'")
    same((html.count("<script"), html.count("<style")), (2, 1))
    markup = html.replace(parts["script"], "").replace(parts["style"], "")
    assert not re.search(r"https?:|//|\bon\w+=|\bstyle=|\bsrc=|<link|<iframe|url\(", re.sub(r'id="data">[^<]*', "", markup)), markup
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|fetch\(|XMLHttpRequest|import\(|https?:", parts["script"])
    assert "url(" not in parts["style"] and "@import" not in parts["style"]


@test("data that are cut or damaged: an error that says so, and an end")
def damaged(folder):
    path = write(folder, make(folder, lines_of(samples_of(2, 30))))
    size = len(data_of(path))
    outcome = ask(path, """const errors = []; let ok = 0;
        for (let i = 0; i < bytes.length; i++) {
            try { decode(bytes.subarray(0, i)); ok++; } catch (error) { errors.push(error.message); }
        }
        let state = 1;
        for (let i = 0; i < 3000; i++) {
            const copy = bytes.slice();
            for (let k = 0; k < 3; k++) { state = (state * 48271) % 2147483647; copy[state % copy.length] = state >> 8; }
            try { weigh(decode(copy), { time: "wall", pid: "", tid: "", from: null, to: null }); } catch (error) { errors.push(error.message); }
        }
        return [ok, errors.length, bytes.length];""")
    same(outcome[0], 0)
    same(outcome[2], size)
    assert outcome[1] >= size


@test("a page of uncompressed data, as builds without zlib write it, is the same")
def uncompressed(folder):
    path = write(folder, make(folder, lines_of(samples_of(2))))
    plain = os.path.join(folder, "plain.html")
    with open(plain, "w", encoding="utf-8") as f:
        f.write(re.sub(r'(id="data">)[^<]*', lambda m: m[1] + base64.b64encode(data_of(path)).decode(), read(path)))
    same(ask_model(plain, ROWS), ask_model(path, ROWS))


@test("lines of source that a function was in itself have the weights of their samples")
def source_lines(folder):
    lines = ["about unit ns", "thread 7 7 demo"]
    rng, expected = random.Random(3), collections.Counter()
    for number in range(100):
        line, weight, outer = rng.randint(1, 5), rng.randint(1, 50), rng.choice("fg")
        lines.append(f"sample {number} 0 0 {WHOLE} {weight} {outer}@/bin/x!/src/a.c:{line};h@/bin/x!/src/b.c:{line + 10}")
        expected[line + 10] += weight
    lines.append(f"sample 200 0 0 {WHOLE} 7 f@/bin/x!/src/a.c:1;h@/bin/x")
    path = write(folder, make(folder, [*lines, "end 1000"]))
    for number in ("0", "-1"):
        found = ask_model(path, f'weighSource(model, {{ ...view, fn: model.functions.name.indexOf("h") }}, 0, {number})')
        same({line["line"]: line["weight"] for line in found if line["weight"]}, dict(expected) | {0: 7})
        same({line["file"] for line in found}, {"/src/b.c", ""})
        same(ask_model(path, f'weighSource(model, {{ ...view, fn: model.functions.name.indexOf("f") }}, 0, -1)'), [])


@test("what was lost, throttled, hidden, cut and has no names is in the page, with the method")
def facts(folder):
    about = ("unit ns", "frequency 997", "event task-clock", "method perf-events", "kernel-hidden 1", "command ./x y")
    lines = [*lines_of(list(samples_of(1)), about)][:-1] + ["lost 5 12", "throttled 6"]
    found = ask(write(folder, make(folder, [line for line in lines if not line.startswith("end")])),
                "const model = decode(bytes); return [factsOf(model.facts[0]), warningsOf(model.facts[0])];",
                scripts=("data.js", "sums.js", "calls.js", "text.js", "view.js", "facts.js"))
    words, warnings = dict(found[0]), " ".join(found[1])
    same((words["command"], words["method"], words["event"]), ("./x y", "perf-events", "task-clock, 997 a second were asked for"))
    for part in ("12 samples were lost", "1 times (throttled)", "kernel's stacks were not permitted", "ends before the recording did"):
        assert part in warnings, warnings


@test("more samples than a page has are added up within slices of time, and the page says so: no weight is lost")
def many(folder):
    n = 2_200_000
    lines = ["about unit ns", "thread 7 7 demo", "thread 7 8 other", f"sample 0 0 0 {WHOLE} 3 a@/bin/x;b@/bin/x", f"times {n}",
             f"sample {n} 1 0 {WHOLE} 5 a@/bin/x", "times 1000", f"end {n + 2000}"]
    path = write(folder, make(folder, lines))
    rows, counts, slice_ns, left = ask_model(path, f"[{ROWS}, sums.counts[0], Number(model.facts[0].get('slice')), model.samples.ns.length]")
    same(rows, {"a": [5005, 5005 + 3 * (n + 1)], "b": [3 * (n + 1)] * 2})
    same(counts, n + 1 + 1001)
    assert slice_ns and left < n, (slice_ns, left)
    # Of a range as long as many slices, what is off is less than two of them have.
    got = ask_model(path, "sums.all[0]", **{"from": 500_000, "to": 1_500_000})
    assert abs(got - 3_000_000) <= 3 * 2 * slice_ns, (got, slice_ns)


@test("a file that ends in .html or .htm is a page; other forms are refused with it, and so are folders and full disks")
def command(folder):
    profile = make(folder, lines_of(samples_of(1)))
    for name in ("a.html", "b.HTM"):
        assert read(write(folder, profile, name=name)).startswith("<!doctype html>")
    same(execute(FATHOM, "report", "--no-cache", "--export", "page", profile, status=0).stdout, read(os.path.join(folder, "a.html")))
    page = os.path.join(folder, "c.html")
    for words, part in ((("--json",), "--json"), (("--top", "3"), "--top"), (("--by", "line"), "--by"), (("--bottom-up",), "trees")):
        assert part in execute(FATHOM, "report", "-o", page, *words, profile, status=2).stderr
    assert "no function" in execute(FATHOM, "report", "-o", page, "--only", "nobody", profile, status=1).stderr
    execute(FATHOM, "report", "-o", os.path.join(folder, "no", "x.html"), profile, status=2)
    assert "No space left" in execute("sh", "-c", f"exec {FATHOM} report --export page {profile} >/dev/full", status=2).stderr


if __name__ == "__main__":
    import sources  # noqa: F401  These tests come after those of profiles.
    import traces  # noqa: F401
    sys.exit(SUITE.run())
