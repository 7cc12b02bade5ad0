# SPDX-License-Identifier: MIT
"""Reads profiles of `fathom record`, from docs/profile-format.md alone: a reader beside the library's."""
import collections

MAGIC = b"\x7ffprof1\n"
ABOUT, THREAD, MODULE, SYMBOL, LOCATION, NODE, SAMPLE, LOST, THROTTLED, END, CGROUP = range(1, 12)
SAMPLED, KERNEL_HIDDEN, UNSAMPLED, WAITING, RUNNABLE = range(5)
STOP_ENTRY = 1
FILE, VDSO, JIT, KERNEL, MEMORY, WAITS = range(1, 7)

Thread = collections.namedtuple("Thread", "pid tid parent ns name cgroup")
Module = collections.namedtuple("Module", "kind path build_id")
Symbol = collections.namedtuple("Symbol", "source name linkage file line")
Location = collections.namedtuple("Location", "module address kind trust symbol")
# waker: an index of threads, INTERRUPT, or None; of a wait that goes on, that of the sample that ends it.
Sample = collections.namedtuple("Sample", "part stop ns thread node weight waker")
INTERRUPT = -1


class Payload:
    def __init__(self, data):
        self.data = data
        self.at = 0

    def number(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value

    def signed(self):
        value = self.number()
        return value >> 1 ^ -(value & 1)

    def bytes(self):
        size = self.number()
        self.at += size
        assert self.at <= len(self.data)
        return self.data[self.at - size:self.at]

    def text(self):
        return self.bytes().decode(errors="surrogateescape")


class Profile:
    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        assert data.startswith(MAGIC), "no profile"
        self.about, self.threads, self.modules, self.symbols, self.locations = {}, [], [], [], []
        self.cgroups = [None]
        self.nodes, self.samples, self.lost, self.throttled, self.end = [None], [], 0, 0, None
        self.size = len(data)
        all_of_it = Payload(data)
        all_of_it.at = len(MAGIC)
        ns = 0
        going_on = collections.defaultdict(list)
        while all_of_it.at < len(data):
            tag = all_of_it.number()
            p = Payload(all_of_it.bytes())
            if tag == ABOUT:
                key = p.text()
                self.about[key] = p.text()
            elif tag == THREAD:
                self.threads.append(Thread(p.number(), p.number(), p.number(), p.number(), p.text(), self.cgroups[p.number()]))
            elif tag == CGROUP:
                self.cgroups.append(p.text())
            elif tag == MODULE:
                self.modules.append(Module(p.number(), p.text(), p.bytes().hex()))
            elif tag == SYMBOL:
                self.symbols.append(Symbol(p.number(), p.text(), p.text(), p.text(), p.number()))
            elif tag == LOCATION:
                self.locations.append(Location(p.number() - 1, p.number(), p.number(), p.number(), p.number() - 1))
            elif tag == NODE:
                caller, location = p.number(), p.number()
                assert caller < len(self.nodes) and location < len(self.locations)
                self.nodes.append((caller, location))
            elif tag == SAMPLE:
                first = p.number()
                ns += p.signed()
                s = Sample(first & 15, first >> 4, ns, p.number(), p.number(), p.number(), None)
                assert s.thread < len(self.threads) and s.node < len(self.nodes)
                ended = p.number() if p.at < len(p.data) else 0
                if s.part == WAITING and ended == 1:
                    going_on[s.thread].append(len(self.samples))
                else:
                    waker = INTERRUPT if ended == 2 else ended - 3 if ended > 2 else None
                    assert s.part == WAITING or waker is None
                    assert waker is None or waker < len(self.threads)
                    for i in going_on.pop(s.thread, ()):
                        self.samples[i] = self.samples[i]._replace(waker=waker)
                    s = s._replace(waker=waker)
                self.samples.append(s)
            elif tag == LOST:
                p.number()
                self.lost += p.number()
            elif tag == THROTTLED:
                self.throttled += 1
            elif tag == END:
                self.end = p.number()

    def stack(self, node):
        """Returns the locations of a stack, the innermost first."""
        found = []
        while node:
            node, location = self.nodes[node]
            found.append(self.locations[location])
        return found

    def waits_for(self, sample):
        """Returns what a sample's thread waited for, or None."""
        stack = self.stack(sample.node)
        return self.symbols[stack[0].symbol].name if stack and self.modules[stack[0].module].kind == WAITS else None

    def name_of(self, location, symbols):
        """Names a location: its own symbol, or of {basename of a module: function(address) -> name}."""
        if location.symbol >= 0:
            return self.symbols[location.symbol].name
        if location.module < 0:
            return None
        find = symbols.get(self.modules[location.module].path.rsplit("/", 1)[-1])
        return find(location.address - (location.kind == 1)) if find else None
