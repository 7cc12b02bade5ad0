#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "browser": pages in Debian's chromium without a network, by mouse, touch and keys. What they show is known from the file."""
import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), os.path.join(HERE, "..", "profile"), HERE]

import tap  # noqa: E402

from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.support.ui import Select  # noqa: E402

import pictures  # noqa: E402

from browser import boxes, browser, get, key, open_page, requests, resize, text  # noqa: E402
from made_profile import make, same  # noqa: E402
from page_file import write  # noqa: E402
from profile_writer import Writer  # noqa: E402
from made_samples import HOSTILE, lines_of, rows_by_model, samples_of, shown, tree_by_model  # noqa: E402
from annotated import header, listing, program  # noqa: E402
from sources import HOSTILE_LINES, hostile_program  # noqa: E402
from traces import page_of, trace  # noqa: E402

SUITE = tap.Suite("browser")
test = SUITE.test


# Functions of one thread a nanosecond each, so that all sums are seen at once.
STACKS = [("main;parse;read", 300), ("main;parse", 100), ("main;solve;step;read", 200), ("main;solve", 250), ("idle", 150)]
ALL = 1000


def simple(folder, stacks=STACKS, name="simple", module="/bin/demo"):
    lines = ["about unit ns", "about frequency 1000", "about command ./demo", "thread 7 7 main", "thread 8 8 other"]
    ns = 0
    for number, (stack, weight) in enumerate(stacks):
        ns += weight
        lines.append(f"sample {ns} {number % 2} 0 1 {weight} " + ";".join(f"{frame}@{module}" for frame in stack.split(";")))
    return make(folder, [*lines, f"end {ns}"], name)


def tree_of(stacks):
    return tree_by_model([(stack.split(";"), weight) for stack, weight in stacks])


def names_at(driver):
    """Weights of the boxes that are drawn, by path."""
    return dict(get(driver, "app.flame.boxes.filter((box) => box.node >= 0).map((box) => [pathNames(box.node), app.tree.a[box.node]])"
                .replace("pathNames(box.node)", """(() => { const names = []; for (let i = box.node; i; i = app.tree.parent[i])
                    names.push(app.model.functions.name[app.tree.fn[i]]); return names.reverse().join(";"); })()""")))


def rows(driver):
    """The table as it is shown: (name, self, total)."""
    return [(row["name"], row["self"], row["total"]) for row in driver.execute_script(
        """return Array.from(document.querySelectorAll("#table-body tr"), (row) => ({ name: row.querySelector(".name").textContent,
            self: row.querySelector(".self").textContent, total: row.querySelector(".total").textContent }))""")]


def click_box(driver, name):
    """Clicks the first box of this name in its middle."""
    x, y = next(((x0 + x1) / 2, depth * 20 + 10) for other, depth, x0, x1 in boxes(driver) if other == name)
    click_at(driver, "flame", x, y)


def click_at(driver, canvas, x, y, to=None):
    """Clicks, or drags to @to, at a place of a canvas from its upper left corner on."""
    found = driver.find_element("id", canvas)
    driver.execute_script("arguments[0].scrollIntoView({ block: 'center' })", found)
    size = found.size
    actions = ActionChains(driver).move_to_element_with_offset(found, round(x - size["width"] / 2), round(y - size["height"] / 2))
    if to is None:
        actions.click().perform()
        return
    actions.click_and_hold().move_by_offset(round(to - x), 0).release().perform()


@test("a page asks for nothing, says no error, and has no name as markup")
def nothing_else(folder):
    w = Writer()
    thread, module = w.thread(7, 7, HOSTILE[0]), w.module(HOSTILE[1])
    for number, name in enumerate(HOSTILE):
        w.sample(number, thread, w.node(0, w.location(module, number, w.symbol(name))), 10)
    path = write(folder, w.save(folder))
    with browser() as driver:
        requests(driver)
        for fragment in ("", "up=true", "fn=0", "search=script", "fn=6"):
            open_page(driver, path, fragment)
            key(driver, "?", "Escape", "g", "ArrowDown", "ArrowRight", "Enter")
        same(requests(driver), ([], []))
        same(driver.execute_script("return [document.images.length, document.scripts.length, document.querySelectorAll('[onerror]').length]"), [0, 1, 0])
        # A request would be refused, and said.
        driver.execute_script("fetch('https://example.org/').catch(() => 0); const i = new Image(); i.src = 'https://example.org/x.png';")
        assert any("Content Security Policy" in line for line in requests(driver)[1])


@test("widths of boxes are counts, to the pixel, in the picture as in what it is drawn from; on fine screens, too")
def widths(folder):
    samples = list(samples_of(5))
    path = write(folder, make(folder, lines_of(samples)))
    tree = tree_by_model(list(shown(samples)))
    with browser() as driver:
        for ratio in (1, 2):
            resize(driver, 1280, 900, ratio)
            open_page(driver, path)
            width = get(driver, "app.flame.width")
            for name, weight in names_at(driver).items():
                same(weight, tree[name])
            for name, depth, x0, x1 in boxes(driver):
                if name is None or x1 - x0 < 4:
                    continue
                # The last column of a box is of the paper; before it and after it are other colours.
                left, right, y = round(x0 * ratio), round(x1 * ratio), int((depth * 20 + 1) * ratio)
                line = driver.execute_script("""const draw = document.getElementById("flame").getContext("2d");
                    const colors = draw.getImageData(arguments[0], arguments[1], arguments[2], 1).data, list = [];
                    for (let i = 0; i < colors.length; i += 4) list.push(colors.slice(i, i + 3).join());
                    return list;""", left, y, right - left)
                same((len(set(line[:-1])), line[-1]), (1, "255,255,255"))
            total = sum(x1 - x0 for name, depth, x0, x1 in boxes(driver) if depth == 1)
            assert width - 3 < total <= width + 0.01, (total, width)


@test("zoom, search, bottom-up, table, range and threads show the numbers of the file, by the mouse and by keys")
def numbers(folder):
    path = write(folder, simple(folder))
    with browser() as driver:
        open_page(driver, path)
        same(names_at(driver), tree_of(STACKS))
        click_box(driver, "parse")
        width = get(driver, "app.flame.width")
        same([round(x1 - x0) for name, _, x0, x1 in boxes(driver) if name in ("main", "parse")], [round(width)] * 2)
        same([round(x1 - x0) for name, _, x0, x1 in boxes(driver) if name == "read"], [round(width * 300 / 400)])
        assert "400 ns, 40.00 %" in text(driver, "details"), text(driver, "details")
        key(driver, "0")
        same(get(driver, "app.view.zoom"), [])
        # By keys: main, solve, its callee; then out by one box.
        key(driver, "g", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowDown", "ArrowDown", "ArrowRight", "Enter")
        assert text(driver, "details").startswith("parse · 400 ns, 40.00 %, self 100 ns, 10.00 %"), text(driver, "details")
        same(get(driver, "app.view.zoom.length"), 2)
        key(driver, "Backspace")
        same(get(driver, "app.view.zoom.length"), 1)
        key(driver, "Escape")
        same(get(driver, "app.view.zoom.length"), 0)
        # Search.
        key(driver, "/")
        driver.switch_to.active_element.send_keys("read")
        same(text(driver, "found"), "1 function, 500 ns, 50.00 %")
        same([row[0] for row in rows(driver)], ["read"])
        key(driver, "Escape", "Escape")
        same(text(driver, "found"), "")
        # Table, by all columns and both orders.
        model = rows_by_model([(stack.split(";"), weight) for stack, weight in STACKS])
        same({name: (int(own.split()[0]), int(total.split()[0])) for name, own, total in rows(driver)}, {name: tuple(pair) for name, pair in model.items()})
        orders = {"self": lambda row: (-model[row][0], -model[row][1]), "total": lambda row: (-model[row][1], -model[row][0]), "name": lambda row: row}
        for sort, order in orders.items():
            while get(driver, "app.view.sort") != sort:
                key(driver, "s")
            found = [row[0] for row in rows(driver)]
            same([order(row)[0] for row in found], [order(row)[0] for row in sorted(model, key=order)])
            key(driver, "S")
            same([row[0] for row in rows(driver)], found[::-1])
        driver.find_element("css selector", "[data-sort=self]").click()
        same(driver.find_element("css selector", "th.self").get_attribute("aria-sort"), "descending")
        # Bottom-up.
        key(driver, "u")
        same(names_at(driver), tree_of([(";".join(stack.split(";")[::-1]), weight) for stack, weight in STACKS]))
        click_box(driver, "read")
        same({name: weight for name, weight in names_at(driver).items() if name.count(";") == 1}, {"read;parse": 300, "read;step": 200})
        key(driver, "u")
        # Range: the first 400 ns.
        timeline = get(driver, "app.timeline.width")
        click_at(driver, "timeline", 0, 10, timeline * 0.4 + 1)
        same(names_at(driver), tree_of(STACKS[:2][:1] + STACKS[1:2] if get(driver, "app.view.to") > 400 else STACKS[:1]))
        key(driver, "r")
        same(names_at(driver)[""], ALL)
        key(driver, "l", "ArrowRight", "ArrowRight")
        same(get(driver, "[app.view.from, app.view.to]"), [20, 40])
        driver.execute_script("arguments[0].dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', shiftKey: true, bubbles: true }))", driver.switch_to.active_element)
        same(get(driver, "[app.view.from, app.view.to]"), [20, 60])
        key(driver, "Escape")
        # Threads and processes.
        for press, kept in (("]", 0), ("]", 1), ("]", None), ("[", 1), ("[", 0), ("[", None)):
            key(driver, press)
            lanes = get(driver, "app.timeline.all")
            chosen = STACKS if kept is None else STACKS[lanes[kept]::2]
            same(names_at(driver), tree_of(chosen))
        Select(driver.find_element("id", "process")).select_by_value("8")
        same(names_at(driver), tree_of(STACKS[1::2]))
        key(driver, "Escape")
        driver.find_element("id", "theme").click()
        same(get(driver, "app.view.theme"), "light")
        key(driver, "d")
        same(driver.execute_script("return document.documentElement.dataset.theme"), "dark")
        driver.find_element("xpath", "//button[contains(@class,'function')][.='solve']").click()
        assert "self 250 ns 25.00 %, total 450 ns 45.00 %" in text(driver, "function-box"), text(driver, "function-box")
        same(requests(driver)[1], [])


@test("waits: the times switch by a key, and each has its lane and its sums")
def times(folder):
    samples = list(samples_of(4))
    path = write(folder, make(folder, lines_of(samples)))
    with browser() as driver:
        open_page(driver, path)
        for time in ("cpu", "waiting", "wall", "cpu"):
            same(get(driver, "app.view.time"), time)
            same(names_at(driver), {name: weight for name, weight in tree_by_model(list(shown(samples, time))).items() if name in names_at(driver)})
            same(get(driver, "app.sums.all[0]"), sum(weight for _, weight in shown(samples, time)))
            key(driver, "w")
        # All of the time that is in samples is in a lane, once.
        lanes = get(driver, "app.timeline.filled.map((lane) => lane.reduce((sum, value) => sum + value, 0))")
        order = get(driver, "app.timeline.all")
        for lane, thread in enumerate(order):
            weight = sum(min(s.weight, s.ns) for s in samples if s.thread == thread and s.part != 2)
            assert abs(lanes[lane] - weight) < 1 + weight * 1e-4, (lanes[lane], weight)


def source_rows(driver):
    """Lines of source as they are shown: (weight, percent, number, text), and the number of instructions below each."""
    return [tuple(row) for row in driver.execute_script("""
        return Array.from(document.querySelectorAll("#source > .line, #source > details"), (one) => {
            const { children } = one.tagName === "DETAILS" ? one.firstElementChild : one;
            return [...Array.from(children, (part) => part.textContent), one.querySelectorAll("div.line").length]; });""")]


@test("source: a key and a click show lines with weights, the hottest one in sight, and instructions; as the fragment says")
def source(folder):
    binary = program()
    with open(binary + ".c", encoding="utf-8") as f:
        file = f.read().split("\n")
    addresses = list(listing(binary, "work"))
    division = next(address for address, words in listing(binary, "work").items() if words.startswith("div"))
    weights = [5000 if address == division else 10 for address in addresses]
    lines = [f"sample {n * 1000} 0 0 1 {weight} {address:#x}@{binary}"
             for n, (address, weight) in enumerate(zip(addresses, weights))]
    path = write(folder, make(folder, [*header(binary), *lines, f"end {1000 * len(addresses)}"]))
    hot = next(number for number, words in enumerate(file, 1) if "i / (sum" in words)
    with browser(1280, 300) as driver:
        open_page(driver, path)
        same(driver.find_element("id", "source-box").is_displayed(), False)
        key(driver, "c")
        same(get(driver, "app.model.functions.name[app.view.fn]"), "work")
        found = source_rows(driver)
        shown_ = {int(number): weight for weight, _, number, _, _ in found if number}
        assert shown_[hot].startswith("5.0"), shown_
        same(next(share for _, share, number, _, _ in found if number == str(hot)).split()[1], "%")
        assert all(words == file[int(number) - 1].replace("\t", "        ") for _, _, number, words, _ in found if number), found
        same(get(driver, "app.sums.all[0]"), sum(weights))
        # The hottest line is in sight, in a box that is lower than all of them.
        place = driver.execute_script("""
            const source = document.getElementById("source"), hottest = source.querySelectorAll(".hot");
            const box = source.getBoundingClientRect(), hot = hottest[0].getBoundingClientRect();
            return [hot.top >= box.top, hot.bottom <= box.bottom, source.scrollTop > 0, hottest.length];""")
        same(place, [True, True, True, 1])
        # Instructions of one line, by the pointer and by a key.
        same({count for *_, count in found}, {0})
        summary = driver.find_element("css selector", "#source summary.hot")
        summary.click()
        opened = next(row for row in source_rows(driver) if row[2] == str(hot))
        assert opened[4] > 1, opened
        same(driver.execute_script("""return Array.from(document.querySelectorAll("#source details[open] div.line"),
            ({ children }) => [children[2].textContent, children[0].textContent])
            .filter(([, weight]) => weight.startsWith("5.0"))"""),
             [[f"{division:x}", "5.000 µs"]])
        # It stays open when a range is chosen.
        at = addresses.index(division) * 1000
        driver.execute_script(f"window.fathom.app.change({{ from: {at}, to: {at + 1} }})")
        same([row[:3] for row in source_rows(driver) if row[0]], [("5.000 µs", "100.00 %", str(hot))])
        assert next(row for row in source_rows(driver) if row[2] == str(hot))[4] > 1
        key(driver, "r", "c")
        same(get(driver, "app.view.source"), "instructions")
        count = sum(count for *_, count in source_rows(driver))
        same(count, len(addresses))
        heads = driver.execute_script("return Array.from(document.querySelectorAll('#source .head'), (one) => one.textContent)")
        assert any(head.startswith("mix (hot_lines.c:") for head in heads), heads
        fragment_ = driver.execute_script("return location.hash.slice(1)")
        key(driver, "c")
        same(driver.find_element("id", "source").is_displayed(), False)
        same(driver.find_element("id", "source-button").text, "lines of source")
        driver.find_element("id", "source-button").click()
        same((driver.find_element("id", "source").is_displayed(), source_rows(driver)), (True, found))
        open_page(driver, path, fragment_)
        same(sum(count for *_, count in source_rows(driver)), len(addresses))
        driver.find_element("xpath", "//button[contains(@class,'function')][.='work']").click()
        same(driver.find_element("id", "source-box").is_displayed(), False)
        same(requests(driver)[1], [])


@test("source: hostile lines are text, and a page without files says why there is none")
def hostile_source(folder):
    _, profile = hostile_program(folder)
    path = write(folder, profile)
    with browser() as driver:
        requests(driver)
        open_page(driver, path, "fn=0&source=instructions")
        found = {int(number): words for _, _, number, words, _ in source_rows(driver)}
        same(found[5], HOSTILE_LINES[0])
        assert "\\u202e" in found[6] and "\\x1b[31m" in found[8] and len(found[7]) < 500, found
        same(visible_problems(driver), [[], False])
        same(driver.execute_script("return [document.images.length, document.scripts.length, document.querySelectorAll('[onerror]').length]"), [0, 1, 0])
        same(requests(driver), ([], []))
        gone = shutil.copy(program(), os.path.join(folder, "gone"))
        lines = [f"sample {n} 0 0 1 10 {address:#x}@{gone}" for n, address in enumerate(listing(gone, "work"))]
        moved = make(folder, [*header(gone), *lines, "end 1000"], "moved")
        os.remove(gone)
        open_page(driver, write(folder, moved, name="gone.html"), "fn=0")
        assert text(driver, "source").startswith("the file is not there"), text(driver, "source")
        open_page(driver, write(folder, "--no-source", simple(folder), name="without.html"), "fn=0")
        assert "were not asked for" in text(driver, "source"), text(driver, "source")


@test("traces: a call is told and chosen by the pointer, the timeline shows the range by a key; range, search and fragment go with it")
def calls(folder):
    path = page_of(folder, trace(folder, "--exits", "--syscalls=getppid"))
    with browser() as driver:
        open_page(driver, path)

        def place(name):
            return get(driver, """(() => { const { timeline, model } = app, { ns, weight, more, node } = model.samples;
                for (const [at, lane] of timeline.filled.entries())
                    for (const { i, row, x0, x1 } of lane.boxes)
                        if (model.functions.name[model.nodes.fn[node[i]]] === "NAME")
                            return { x: (x0 + x1) / 2, y: timeline.tops[at] + (row + 0.5) * timeline.lane, from: ns[i] - weight[i] - more[i], to: ns[i], width: x1 - x0 };
                return null; })()""".replace("NAME", name))

        for name, counted in (("main", {"main": "1, 1 without a return", "getppid": "3"}), ("asks", {"asks": "1", "getppid": "3"})):
            at = place(name)
            click_at(driver, "timeline", at["x"], at["y"])
            same(get(driver, "[app.view.from, app.view.to]"), [at["from"], at["to"]])
            assert text(driver, "call").startswith(name + " · page_calls "), text(driver, "call")
            same("never returned" in text(driver, "call"), name == "main")
            found = driver.execute_script("""return Object.fromEntries(Array.from(document.querySelectorAll("#table-body tr"),
                (row) => [row.querySelector(".name").textContent, row.querySelector(".calls").textContent]))""")
            same({name: found[name] for name in counted}, counted)
            key(driver, "z")
            same(get(driver, "[app.view.t0, app.view.t1]"), [at["from"], at["to"]])
            assert abs(place(name)["width"] - get(driver, "app.timeline.width")) < 1.5
        key(driver, "/")
        driver.switch_to.active_element.send_keys("getppid")
        assert text(driver, "found").startswith("1 function, "), text(driver, "found")
        state = "[app.view, app.sums.all, app.timeline.span, app.table.rows.length]"
        seen, fragment_ = get(driver, state), driver.execute_script("return location.hash.slice(1)")
        key(driver, "Escape", "Escape", "Escape")
        same(get(driver, "[app.view.search, app.view.from, app.view.t0]"), ["", None, None])
        key(driver, "w")
        same(get(driver, "[app.view.time, app.sums.all[0] === app.sums.counts[0]]"), ["calls", True])
        open_page(driver, path, fragment_)
        same(get(driver, state), seen)
        same(requests(driver)[1], [])


@test("two profiles: each box has the colour of its change, and A and B can be shown alone")
def diff(folder):
    other = [("main;parse;read", 100), ("main;parse", 100), ("main;solve;step;read", 500), ("main;solve", 250), ("new", 50)]
    path = write(folder, "--diff", simple(folder), simple(folder, other, "other"))
    with browser() as driver:
        open_page(driver, path)
        change = {row[0]: row[1] for row in driver.execute_script("""return Array.from(document.querySelectorAll("#table-body tr"),
            (row) => [row.querySelector(".name").textContent, row.querySelector(".change").textContent])""")}
        same(change, {"read": "+10.00 %", "idle": "−15.00 %", "new": "+5.00 %", "parse": "0.00 %", "solve": "0.00 %", "step": "0.00 %", "main": "0.00 %"})
        colors = dict(get(driver, "app.flame.boxes.map((box) => [app.tree.fn[box.node] < 0 ? '' : app.model.functions.name[app.tree.fn[box.node]], app.flame.colorOf(box)])"))
        red, _, blue = (int(colors["new"][at:at + 2], 16) for at in (1, 3, 5))
        assert red > blue, colors
        red, _, blue = (int(colors["idle"][at:at + 2], 16) for at in (1, 3, 5))
        assert blue > red, colors
        for show, stacks, column in (("a", STACKS, "a"), ("b", other, "b")):
            key(driver, "v")
            same(get(driver, "app.view.show"), show)
            drawn = get(driver, f"app.flame.boxes.map((box) => app.tree.{column}[box.node]).sort((x, y) => x - y)")
            same(drawn, sorted(weight for name, weight in tree_of(stacks).items()))
        key(driver, "v")
        assert "A 400 ns, 40.00 %" in hovered(driver, "parse") and "B 200 ns, 20.00 %" in hovered(driver, "parse"), hovered(driver, "parse")


def hovered(driver, name):
    """What is said of the first box of this name when the pointer is on it."""
    x, y = next(((x0 + x1) / 2, depth * 20 + 10) for other, depth, x0, x1 in boxes(driver) if other == name)
    found = driver.find_element("id", "flame")
    driver.execute_script("arguments[0].scrollIntoView({ block: 'center' })", found)
    ActionChains(driver).move_to_element_with_offset(found, round(x - found.size["width"] / 2), round(y - found.size["height"] / 2)).perform()
    return text(driver, "details")


@test("a link shows what was seen: the fragment of each state opens the same view")
def fragment(folder):
    path = write(folder, make(folder, lines_of(samples_of(9))))
    state = "[app.view, app.sums.all, app.flame.boxes.length, app.table.rows.length, document.getElementById('details').textContent, document.getElementById('found').textContent]"
    with browser() as driver:
        open_page(driver, path)
        seen = []
        for keys in (["w"], ["g", "ArrowDown", "Enter"], ["u"], ["g", "ArrowDown", "Enter"], ["]"], ["s"], ["S"], ["d"], ["l", "ArrowRight", "ArrowRight"]):
            key(driver, *keys)
            seen.append((driver.execute_script("return location.hash.slice(1)"), get(driver, state)))
        assert len({fragment for fragment, _ in seen}) == len(seen), [fragment for fragment, _ in seen]
        for fragment, expected in seen:
            open_page(driver, path, fragment)
            found = get(driver, state)
            same(found, expected)
        # An address that is typed into the open page is followed.
        driver.execute_script("location.hash = arguments[0]", seen[0][0])
        same(get(driver, "app.view.time"), "waiting")


def visible_problems(driver):
    """Elements that are wider than the page, and texts that lie on each other."""
    return driver.execute_script("""const wide = [], width = document.documentElement.clientWidth;
        for (const one of document.querySelectorAll("body *")) {
            const box = one.getBoundingClientRect();
            if (box.width && box.right > width + 1 && !one.closest(".wide") && !one.closest(".lane")) wide.push(one.tagName + "#" + one.id + "." + one.className);
        }
        return [wide, document.documentElement.scrollWidth > width];""")


@test("it fits on a phone, a screen and a very wide one; nothing is wider than the page; touch zooms and chooses a range")
def sizes(folder):
    w = Writer()
    thread, module = w.thread(7, 7, "x" * 300), w.module("/usr/lib/" + "long/" * 60 + "lib.so")
    for number, name in enumerate([*HOSTILE, "main"]):
        w.sample((number + 1) * 10, thread, w.node(0, w.location(module, number, w.symbol(name))), 10)
    paths = [write(folder, w.save(folder), name="long.html"), write(folder, make(folder, lines_of(samples_of(4)))),
             write(folder, hostile_program(folder)[1], name="source.html")]
    with browser() as driver:
        for width, height in ((360, 740), (1280, 900), (3840, 2160)):
            resize(driver, width, height)
            for path in paths:
                for fragment in ("", "fn=6&theme=dark", "fn=0&source=instructions"):
                    open_page(driver, path, fragment)
                    same(visible_problems(driver), [[], False])
                    same(get(driver, "app.flame.width"), get(driver, "document.getElementById('flame-scroller').clientWidth"))
        resize(driver, 360, 740)
        open_page(driver, paths[1])
        driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
        found = driver.find_element("id", "flame")
        driver.execute_script("arguments[0].scrollIntoView({ block: 'center' })", found)
        name, depth, x0, x1 = max((box for box in boxes(driver) if box[1] == 1 and box[0]), key=lambda box: box[3] - box[2])
        place = driver.execute_script("const box = document.getElementById('flame').getBoundingClientRect(); return [box.left, box.top]")
        point = [{"x": place[0] + (x0 + x1) / 2, "y": place[1] + depth * 20 + 10}]
        driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": point})
        driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        same(get(driver, "app.view.zoom.map((fn) => app.model.functions.name[fn])"), [name])


# Pages that pictures are kept of, at a quarter of their size: (width, height).
PICTURES = ((360, 2600), (1280, 1700), (3840, 2160))
# Widths of ten letters in the fonts of those pictures, DejaVu Sans and DejaVu Sans Mono, of 14 pixels.
LETTERS = [136.4, 84.3]


def picture(driver, width, height, path, fragment):
    resize(driver, width, height, 0.25)
    open_page(driver, path, fragment)
    return pictures.decode(driver.get_screenshot_as_png())


@test("pages look as the kept pictures, at three widths in two themes; a picture of another theme, width or view is told apart")
def looks(folder):
    path = write(folder, make(folder, lines_of(samples_of(4))))
    with browser() as driver:
        open_page(driver, path)
        letters = driver.execute_script("""const draw = document.createElement("canvas").getContext("2d");
            return ["system-ui, sans-serif", "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"].map((font) => {
                draw.font = "14px " + font; return Math.round(draw.measureText("mmmmmmmmmm").width * 10) / 10; });""")
        if letters != LETTERS:
            raise tap.Skip(f"other fonts than those of the kept pictures: ten letters are {letters} wide")
        for width, height in PICTURES:
            seen = {}
            for theme in ("light", "dark"):
                name = f"{width}-{theme}"
                seen[theme] = picture(driver, width, height, path, f"time=wall&fn=0&theme={theme}")
                if os.environ.get("KEEP_PICTURES"):
                    pictures.keep(name, seen[theme])
                mean, others = pictures.difference(seen[theme], pictures.kept(name))
                assert mean < 1 and others < 0.005, f"{name}: colours are {mean:.2f} off, {others:.2%} of the blocks are others"
            other = picture(driver, width, height, path, "time=cpu&fn=0&theme=light")
            for changed in (seen["dark"], other):
                mean, others = pictures.difference(changed, pictures.kept(f"{width}-light"))
                assert mean > 1 or others > 0.005, (width, mean, others)


@test("contrast: words on their ground have 4.5 to 1 in both themes, also in the boxes")
def contrast(folder):
    path = write(folder, "--diff", simple(folder), simple(folder, STACKS[:3] + [("new", 100)], "other"))
    plain = write(folder, simple(folder), name="plain.html")
    source_page = write(folder, hostile_program(folder)[1], name="source.html")
    with browser() as driver:
        for page in (path, plain, source_page):
            for theme in ("light", "dark"):
                open_page(driver, page, f"theme={theme}&search=read")
                open_page(driver, page, f"theme={theme}&fn=0&source=instructions")
                bad = driver.execute_script("""
                    const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
                    const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
                        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
                    const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), bad = [];
                    for (const one of document.querySelectorAll("body *")) {
                        if (!one.offsetParent || one.disabled || !Array.from(one.childNodes).some((node) => node.nodeType === 3 && node.data.trim())) continue;
                        let ground = one;
                        while (ground && parse(getComputedStyle(ground).backgroundColor)[3] === 0) ground = ground.parentElement;
                        const value = ratio(light(parse(getComputedStyle(one).color)), light(parse(getComputedStyle(ground || document.body).backgroundColor)));
                        if (value < 4.5) bad.push([one.tagName, one.className, one.textContent.slice(0, 30), value]);
                    }
                    return bad;""")
                same(bad, [])


if __name__ == "__main__":
    sys.exit(SUITE.run())
