# SPDX-License-Identifier: MIT
"""
busy_script.py WHAT SECONDS: a script whose functions are recorded. "shares": so long, in processor time, hot() has three times as much
as cool(); the time of each is said at the end, as this process measures it. "pairs": outer_N() calls inner_N() only, by way of
sorted(); a hundred of them. "threads": two threads, each in a function of its own. "sleeps": waits in nap(). "forks": a child that
does the work.
"""
import os
import random
import sys
import threading
import time


def hot(ns):
    end = time.thread_time_ns() + ns
    n = 0
    while time.thread_time_ns() < end:
        n += 1
    return n


def cool(ns):
    end = time.thread_time_ns() + ns
    n = 0
    while time.thread_time_ns() < end:
        n += 1
    return n


def shares(seconds):
    spent = {"hot": 0, "cool": 0}
    while sum(spent.values()) < seconds * 1e9:
        for function, ns in ((hot, 1500000), (cool, 500000)):
            before = time.thread_time_ns()
            function(ns)
            spent[function.__name__] += time.thread_time_ns() - before
    print(spent["hot"], spent["cool"])


def pairs(end):
    names = {}
    for i in range(100):
        exec(f"def inner_{i}(x):\n    n = 0\n    for _ in range(300):\n        n += x\n    return n\n"  # pylint: disable=exec-used
             f"def outer_{i}():\n    return sorted(range(3), key=inner_{i})\n", names)
    functions = [names[f"outer_{i}"] for i in range(100)]
    while time.monotonic() < end:
        random.choice(functions)()


def first(end):
    while time.monotonic() < end:
        hot(1000000)


def second(end):
    while time.monotonic() < end:
        cool(1000000)


def threads(end):
    running = [threading.Thread(target=function, args=(end,)) for function in (first, second)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


def nap(end):
    time.sleep(max(end - time.monotonic(), 0))


def sleeps(end):
    print("nap", flush=True)
    nap(end)


def forks(seconds):
    pid = os.fork()
    if not pid:
        shares(seconds)
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(pid, 0)


SECONDS = float(sys.argv[2])
globals()[sys.argv[1]](SECONDS if sys.argv[1] in ("shares", "forks") else time.monotonic() + SECONDS)
