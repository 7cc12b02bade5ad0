# SPDX-License-Identifier: MIT
"""stacks.py SHAPE: calls functions as SHAPE says. The innermost one prints the stack, as Python itself has it, and waits on the same
line. Each line is a thread: its native thread ID, and [function, file, line] of each frame, the innermost first."""
import builtins
import ctypes
import functools
import json
import operator
import os
import sys
import threading
import time

LOCK = threading.Lock()
# Before 3.11 code knows no more than the last part of its name.
NAME = operator.attrgetter("co_qualname" if sys.version_info >= (3, 11) else "co_name")


def stack_of(frame):
    frames = []
    while frame:
        frames.append([NAME(frame.f_code), frame.f_code.co_filename, frame.f_lineno])
        frame = frame.f_back
    return frames


def tell(wait=True):
    """Prints the stack of the caller; then waits for ever, in a function of C."""
    with LOCK:
        print(json.dumps([threading.get_native_id(), stack_of(sys._getframe(1))]), flush=True)
    return wait


def sleep():
    tell(), time.sleep(10000)  # pylint: disable=expression-not-assigned


def by_sorted():
    sorted([2, 1], key=lambda x: sleep())


def by_reduce():
    functools.reduce(lambda a, b: by_sorted(), [1, 2, 3])


def by_callback():
    ctypes.CFUNCTYPE(None)(sleep)()


class Deleted:
    def __del__(self):
        by_callback()


def by_del():
    x = Deleted()
    del x


def inner_generator():
    yield 1
    by_del()
    yield 2


def outer_generator():
    yield from inner_generator()


def by_generator():
    list(outer_generator())


async def third():
    by_generator()


async def second():
    await third()


async def first():
    await second()


def by_coroutine():
    first().send(None)


def by_exec():
    exec("def made():\n\n\n    by_coroutine()\nmade()", globals())  # pylint: disable=exec-used


def decorator(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        return function(*arguments)
    return wrapper


@decorator
@decorator
def by_decorators():
    by_exec()


class Class:
    class Inner:
        @staticmethod
        def static():
            return [by_decorators() for _ in range(1)]

        @property
        def value(self):
            return self.static()

    def __call__(self):
        with self:
            pass

    def __enter__(self):
        return self.Inner().value

    def __exit__(self, *_):
        pass


def by_class():
    try:
        raise ValueError
    except ValueError:
        Class()()


def recurse(n):
    if n:
        return recurse(n - 1)
    return by_class()


def mixed(n):
    """Each call is by a function of C: each has a loop of its own."""
    if n:
        return max([n], key=lambda x: mixed(n - 1))
    return recurse(3)


def größe_漢字_𝔘():
    mixed(10)


def long_lines():
    source = "\n" * 70000 + "def far(x):\n    return (x(),\n" + "\n" * 300 + "            x)\n"
    exec(compile(source, "long \udce9 name.py", "exec"), globals())  # pylint: disable=exec-used
    far(größe_漢字_𝔘)  # noqa: F821  # pylint: disable=undefined-variable


def importing():
    folder = sys.argv[2]
    with open(os.path.join(folder, "imported_module.py"), "w", encoding="ascii") as file:
        file.write("import __main__\n\n__main__.long_lines()\n")
    sys.path.insert(0, folder)
    import imported_module  # noqa: F401  # pylint: disable=import-error,import-outside-toplevel,unused-import


def deep():
    sys.setrecursionlimit(5000)
    recurse(900)


# A loop rarely does this: gcc has set apart the code for it.
def rare():
    builtins.__import__ = lambda *names: sleep()
    import absent  # noqa: F401  # pylint: disable=import-error,import-outside-toplevel,unused-import


def many():
    for _ in range(199):
        threading.Thread(target=recurse, args=(threading.active_count() % 7,)).start()
    sleep()


def forked():
    threading.Thread(target=time.sleep, args=(10000,), daemon=True).start()
    pid = os.fork()
    if not pid:
        sleep()
    os.waitpid(pid, 0)


def spin():
    tell()
    n = 0
    while True:
        n += 1


def busy():
    """One thread holds the GIL in a function of C, which does not let it go; the others wait for it."""
    for _ in range(3):
        threading.Thread(target=spin, daemon=True).start()
    time.sleep(0.5)
    print(json.dumps([threading.get_native_id(), []]), flush=True)
    # PyDLL keeps the GIL.
    ctypes.PyDLL(None).sleep(10000)


SHAPES = {f.__name__: f for f in (importing, deep, rare, many, forked, spin, busy)}
SHAPES[sys.argv[1]]()
