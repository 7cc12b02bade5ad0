# SPDX-License-Identifier: MIT
"""Reads what fathom exports for viewers, each format by its own description: files of speedscope, profiles of Firefox, traces of Perfetto,
pictures. Whatever refers to something is checked."""
import collections
import json
import re
import xml.etree.ElementTree as ET

from pprof_file import fields, packed

Sample = collections.namedtuple("Sample", "thread stack weight ns", defaults=(None,))
Wait = collections.namedtuple("Wait", "thread name begin end weight stack", defaults=(None,))
Frame = collections.namedtuple("Frame", "name module file line column address depth", defaults=(None,) * 6)
Box = collections.namedtuple("Box", "name title x y width kind text")

UNITS = {"bytes", "microseconds", "milliseconds", "nanoseconds", "none", "seconds"}


def strict(data):
    """Parses JSON in which no key is there twice."""
    def unique(pairs):
        found = dict(pairs)
        assert len(found) == len(pairs), [key for key, _ in pairs]
        return found
    return json.loads(data.decode("utf-8"), object_pairs_hook=unique)


class Speedscope:
    """By https://www.speedscope.app/file-format-schema.json: threads are names of profiles."""

    def __init__(self, data):
        file = strict(data)
        assert set(file) == {"$schema", "exporter", "name", "activeProfileIndex", "profiles", "shared"}, set(file)
        assert file["$schema"] == "https://www.speedscope.app/file-format-schema.json" and set(file["shared"]) == {"frames"}
        frames = [self.frame(frame) for frame in file["shared"]["frames"]]
        # Of a real kernel, two functions may have one name.
        self.is_each_frame_once = len(set(frames)) == len(frames)
        self.samples, self.units = [], set()
        for profile in file["profiles"]:
            assert set(profile) == {"type", "name", "unit", "startValue", "endValue", "samples", "weights"}, set(profile)
            assert profile["type"] == "sampled" and profile["unit"] in UNITS and profile["startValue"] == 0
            assert len(profile["samples"]) == len(profile["weights"]) and profile["endValue"] == sum(profile["weights"])
            self.units.add(profile["unit"])
            for stack, weight in zip(profile["samples"], profile["weights"]):
                assert all(isinstance(i, int) and 0 <= i < len(frames) for i in stack)
                self.samples.append(Sample(profile["name"], [frames[i] for i in stack], weight))

    @staticmethod
    def frame(frame):
        assert {"name"} <= set(frame) <= {"name", "file", "line", "col"}, frame
        assert isinstance(frame["name"], str) and all(isinstance(frame.get(key, 1), int) for key in ("line", "col"))
        return Frame(frame["name"], file=frame.get("file"), line=frame.get("line"), column=frame.get("col"))


class Firefox:
    """By src/types/profile.js of version 47, see docs-developer/CHANGELOG-formats.md: threads are (name, process, pid, tid)."""

    TABLES = {"stackTable": "frame prefix category subcategory",
              "frameTable": "address inlineDepth category subcategory func nativeSymbol innerWindowID implementation line column",
              "funcTable": "name isJS relevantForJS resource fileName lineNumber columnNumber", "resourceTable": "lib name host type",
              "nativeSymbols": "libIndex address name functionSize", "markers": "name startTime endTime phase category data"}

    def __init__(self, data):
        self.file = strict(data)
        meta = self.meta = self.file["meta"]
        assert meta["preprocessedProfileVersion"] == 47 and meta["categories"][0]["color"] == "grey"
        self.libs = self.file["libs"]
        assert all(set(lib) == {"arch", "name", "path", "debugName", "debugPath", "breakpadId", "codeId"} for lib in self.libs)
        assert all(re.fullmatch("[0-9A-F]{32}0", lib["breakpadId"]) for lib in self.libs)
        self.samples, self.waits, self.threads, self.cpu_deltas = [], [], [], []
        for thread in self.file["threads"]:
            self.read(thread)

    def read(self, thread):
        strings = thread["stringArray"]
        tables = [thread[name] for name in self.TABLES]
        assert len(set(strings)) == len(strings)
        for name, columns in self.TABLES.items():
            table = thread[name]
            assert set(table) == {*columns.split(), "length"}, (name, set(table))
            assert all(len(table[column]) == table["length"] for column in columns.split()), name
        stacks, frames, functions, resources, symbols, markers = tables

        def check(column, table, none=None):
            assert all(i == none or 0 <= i < table for i in column), (column, table)
        n_categories = len(self.meta["categories"])
        check(stacks["frame"], frames["length"], "no")
        check(stacks["category"] + frames["category"] + markers["category"], n_categories, "no")
        assert all(caller is None or caller < i for i, caller in enumerate(stacks["prefix"]))
        check(frames["func"], functions["length"], "no")
        check(frames["nativeSymbol"], symbols["length"])
        check(functions["name"] + resources["name"] + symbols["name"] + markers["name"], len(strings), "no")
        check(functions["fileName"], len(strings))
        check(functions["resource"], resources["length"], -1)
        check(resources["lib"], len(self.libs))
        check(symbols["libIndex"], len(self.libs), "no")

        def frame(i):
            function = frames["func"][i]
            resource, file = functions["resource"][function], functions["fileName"][function]
            return Frame(strings[functions["name"][function]], None if resource < 0 else strings[resources["name"][resource]],
                         None if file is None else strings[file], frames["line"][i], frames["column"][i],
                         None if frames["address"][i] < 0 else frames["address"][i], frames["inlineDepth"][i])
        decoded = []
        for i, caller in enumerate(stacks["prefix"]):
            decoded.append((decoded[caller] if caller is not None else []) + [frame(stacks["frame"][i])])
        samples, key = thread["samples"], (thread["name"], thread["processName"], thread["pid"], thread["tid"])
        assert isinstance(thread["pid"], str) and thread["isMainThread"] == (thread["pid"] == thread["tid"])
        columns = [samples[name] for name in ("stack", "weight", "time")]
        assert all(len(column) == samples["length"] for column in columns) and samples["time"] == sorted(samples["time"])
        assert set(samples) - {"threadCPUDelta"} == {"stack", "weight", "weightType", "time", "length"}
        check(samples["stack"], len(decoded), "no")
        factor = {"tracing-ms": 10**6, "samples": 1}[samples["weightType"]]
        self.threads.append(key)
        self.samples += [Sample(key, decoded[stack], round(weight * factor), round(time * 10**6)) for stack, weight, time in zip(*columns)]
        self.cpu_deltas.append(samples.get("threadCPUDelta"))
        assert ("sampleUnits" in self.meta) == ("threadCPUDelta" in samples)
        assert len(samples.get("threadCPUDelta", samples["stack"])) == samples["length"]
        for name, begin, end, phase, data in zip(*(markers[c] for c in ("name", "startTime", "endTime", "phase", "data"))):
            assert phase == 1 and set(data) == {"type", "waited", "cause"} and data["type"] == "wait" and data["cause"]["time"] == begin
            self.waits.append(Wait(key, strings[name], round(begin * 10**6), round(end * 10**6), data["waited"],
                                   decoded[data["cause"]["stack"]]))


class Perfetto:
    """By protos/perfetto/trace of Perfetto: threads are (name, process, pid, tid)."""

    def __init__(self, data):
        self.tables = collections.defaultdict(dict)
        self.processes, self.tracks, self.by_tid, self.open = {}, {}, {}, {}
        self.samples, self.waits, self.lost, self.timebase, counted = [], [], 0, None, 0
        top = fields(data)
        assert set(top) == {1}
        for number, packet in enumerate(map(fields, top[1])):
            ns, sequence, flags = packet[8][0], packet[10][0], packet[13][0]
            assert sequence == 1 and flags == (2 if number else 1), flags
            for defaults in packet[59]:
                timebase = fields(fields(fields(defaults)[12][0])[1][0])
                self.timebase = timebase[10][0].decode(), timebase[2][0] if timebase[2] else None
            for interned in packet[12]:
                self.intern(fields(interned))
            for track in packet[60]:
                self.track(fields(track))
            for event in packet[11]:
                self.event(ns, fields(event))
            for sample in map(fields, packet[66]):
                if sample[17]:
                    self.lost += sample[17][0]
                    continue
                thread = self.by_tid[sample[2][0], sample[3][0]]
                self.samples.append(Sample(thread, self.stack(sample[4][0]), sample[6][0] - counted, ns))
                counted = sample[6][0]
        assert not any(self.open.values())

    def intern(self, message):
        for table, entries in message.items():
            for entry in map(fields, entries):
                iid, = entry[1]
                assert iid and iid not in self.tables[table]
                self.tables[table][iid] = entry

    def text(self, table, iid):
        return self.tables[table][iid][2][0].decode()

    def track(self, track):
        uuid, = track[1]
        assert uuid not in self.tracks and uuid not in self.processes
        if track[3]:
            process = fields(track[3][0])
            self.processes[uuid] = process[6][0].decode(), process[1][0]
        else:
            thread = fields(track[4][0])
            process, pid = self.processes[track[5][0]]
            assert pid == thread[1][0]
            self.tracks[uuid] = self.by_tid[pid, thread[2][0]] = thread[5][0].decode(), process, pid, thread[2][0]

    def event(self, ns, event):
        thread = self.tracks[event[11][0]]
        if event[9] == [1]:
            annotation = fields(event[4][0])
            assert annotation[10] == [b"waited_ns"] and not self.open.get(thread)
            self.open[thread] = self.text(2, event[10][0]), ns, annotation[3][0]
        else:
            assert event[9] == [2]
            name, begin, weight = self.open.pop(thread)
            self.waits.append(Wait(thread, name, begin, ns, weight))

    def mapping(self, iid):
        entry = self.tables[19][iid]
        build_id = self.tables[16][entry[2][0]][2][0].hex() if entry[2] else None
        return "/" + "/".join(self.text(17, part) for part in packed(entry[7])), build_id

    def stack(self, iid):
        found = []
        for number in packed(self.tables[7][iid][2]):
            frame = self.tables[6][number]
            path, _ = self.mapping(frame[3][0])
            found.append(Frame(self.text(5, frame[2][0]), None if path == "/[unknown]" else path.rsplit("/", 1)[-1],
                               self.text(18, frame[5][0]) if frame[5] else None, frame[6][0] if frame[6] else None, None, frame[4][0]))
        return found


SVG = "{http://www.w3.org/2000/svg}"


class Picture:
    """A picture: its boxes, its other texts, and its styles."""

    def __init__(self, data):
        root = ET.fromstring(data)
        assert root.tag == SVG + "svg"
        self.width, self.height = float(root.get("width")), float(root.get("height"))
        tags = {element.tag.removeprefix(SVG) for element in root.iter()}
        assert tags <= {"svg", "title", "style", "g", "rect", "text"}, tags
        names = {name for element in root.iter() for name in element.attrib}
        assert names <= {"width", "height", "viewBox", "role", "class", "x", "y"}, names
        self.style, = (element.text for element in root.iter(SVG + "style"))
        assert not re.search(r"url|@import|expression|javascript", self.style), self.style
        self.title = root.find(SVG + "title").text
        self.texts = [element.text for element in root.iter(SVG + "text")]
        self.boxes = [self.box(g) for g in root.iter(SVG + "g") if g.find(SVG + "title") is not None]

    def box(self, g):
        rect, = g.findall(SVG + "rect")
        title, = (element.text for element in g.findall(SVG + "title"))
        x, y, width, height = (float(rect.get(name)) for name in ("x", "y", "width", "height"))
        assert x >= 0 and y >= 0 and x + width <= self.width + .01 and y + height <= self.height
        kind = re.fullmatch(r"b k(\d)( s)?", rect.get("class"))[1]
        return Box(title.split("\n")[0], title, x, y, width, int(kind), [text.text for text in g.findall(SVG + "text")])

    def colours(self):
        """{theme: {selector: declarations}}"""
        light, dark = self.style.split("@media(prefers-color-scheme:dark){")
        themes = {}
        for theme, rules in (("light", light), ("dark", light + dark)):
            found = themes[theme] = {}
            for selector, declarations in re.findall(r"([a-z.][a-z0-9]*)\{([^{}]*)\}", rules):
                found.setdefault(selector, {}).update(part.split(":", 1) for part in declarations.split(";") if part)
        return themes
