# SPDX-License-Identifier: MIT
"""Samples that tests of pages make, and a model of what a page shows of them."""
import collections
import random

WHOLE = 1
SAMPLED, HIDDEN, UNSAMPLED, WAITING, RUNNABLE = range(5)
TIMES = {"cpu": (SAMPLED, HIDDEN, UNSAMPLED), "waiting": (WAITING, RUNNABLE), "wall": range(5)}
OWN = {HIDDEN: "[kernel, stack not permitted]", UNSAMPLED: "[not sampled]"}
THREADS = ((7, 7, "main"), (7, 8, "worker"), (9, 9, "other"))
REASONS = ("[futex: mutex 0x10 owned by 7]", "[read: /tmp/a b (fd 3)]")

Sample = collections.namedtuple("Sample", "ns thread part weight stack")


def samples_of(seed, n=150):
    """Samples of all parts, of three threads, in the order of time."""
    rng = random.Random(seed)
    ns = 0
    for _ in range(n):
        ns += rng.randint(0, 900)
        part = rng.choice((SAMPLED, SAMPLED, HIDDEN, UNSAMPLED, WAITING, RUNNABLE))
        stack = [] if part == UNSAMPLED else [rng.choice("abcdef") for _ in range(rng.randint(1, 7))]
        if part == WAITING:
            stack.append(rng.choice(REASONS))
        yield Sample(ns, rng.randrange(len(THREADS)), part, rng.randint(1, 1000), stack)


def lines_of(samples, about=("unit ns", "frequency 1000")):
    yield from (f"about {text}" for text in about)
    yield from (f"thread {pid} {tid} {name}" for pid, tid, name in THREADS)
    for s in samples:
        frames = ";".join(f"{name}@{'[waits]' if name.startswith('[') else '/bin/demo'}" for name in s.stack)
        yield f"sample {s.ns} {s.thread} {s.part} {WHOLE} {s.weight} {frames}"
    yield "end 200000000"


def shown(samples, time="cpu", pid=None, tid=None, between=None):
    """(stack, weight) of what a page shows: of waits, as much as is within a range."""
    for s in samples:
        if s.part not in TIMES[time] or (pid and THREADS[s.thread][0] != pid) or (tid and THREADS[s.thread][1] != tid):
            continue
        weight = s.weight
        if between and s.part in TIMES["waiting"]:
            weight = min(s.ns, between[1]) - max(s.ns - s.weight, between[0])
        elif between and not between[0] <= s.ns < between[1]:
            continue
        if weight > 0:
            yield [*s.stack, *([OWN[s.part]] if s.part in OWN else [])], weight


def rows_by_model(stacks):
    own, total = collections.Counter(), collections.Counter()
    for stack, weight in stacks:
        own[stack[-1]] += weight
        for name in set(stack):
            total[name] += weight
    return {name: [own[name], total[name]] for name in total}


def tree_by_model(stacks):
    tree = collections.Counter()
    for stack, weight in stacks:
        for end in range(len(stack) + 1):
            tree[";".join(stack[:end])] += weight
    return dict(tree)


# Names that would be markup, or cannot be seen, or are words of the language.
HOSTILE = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "\"'`&amp;<!--", "\u202eabc\u202c", "\u05e9\u05dc\u05d5\u05dd", "tab\there\x01\x1b[31m\x7f",
           "x" * 10000, "\u200bzero\ufeff", "\U0001f600", "constructor", "__proto__", "toString"]
