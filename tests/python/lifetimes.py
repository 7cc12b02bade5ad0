# SPDX-License-Identifier: MIT
"""What outlives what: targets, answers, threads, processes."""
import os

from ask import FATHOM, run
from suite import GROWTH, program, python, test


@test("answers, their rows and their columns stay when the target is closed and all else is forgotten")
def _(folder):
    python(folder, """
with fathom.open(sys.argv[1]) as target:
    answers = target.addr([target.address("twice")] * 1000)
    alone = [target.addr([target.address("twice")] * n).size for n in range(1, 1000)]
    code, found, one = target.disasm("twice"), target.find("twice"), target.addr(target.address("twice"))
assert target.closed and repr(target) == "<Target closed>"
row, offsets, symbols, frame = answers[999], answers.size, answers.symbol, answers[0].frames[-1]
size = one.size
del target, answers
gc.collect()
# It takes the memory that was freed.
junk = [b"x" * n for n in range(1, 100000, 100)]
assert all(list(column) == [size] * n for n, column in enumerate(alone, 1))
assert row.symbol == symbols[500] == found[0].name == frame.function == one.symbol == "twice"
assert list(offsets) == [size] * 1000 and code[0].address == row.address
""", program(folder))


@test("a closed target says so, whatever it is asked; closing it again is nothing")
def _(folder):
    python(folder, """
target = fathom.open(sys.argv[1])
target.close()
target.close()
for ask in (lambda: target.addr(1), lambda: target.addr([1]), lambda: target.find("main"), lambda: target.disasm("main"), target.stack,
            lambda: target.value("u8", 1), lambda: target.read(1, 1), lambda: target.snapshot("x"), lambda: target.info,
            lambda: target.notes, target.__enter__, lambda: target.address("main"), lambda: target.section_address(".text")):
    try:
        ask()
    except ValueError as e:
        assert str(e) == "the target is closed"
        continue
    raise AssertionError(ask)
""", program(folder))


@test("10 threads ask one target for the same, which one of them closes meanwhile: all that is answered is right")
def _(folder):
    python(folder, """
target = fathom.Session(cache=False).open(sys.argv[1])
start = max(0, target.address("main") - 100000)
addresses = array.array("Q", range(start, start + 200000, 101))
truth = list(fathom.Session(cache=False, threads=1).open(sys.argv[1]).addr(addresses).function)
begun, answered, refused = threading.Barrier(10), [], []


def ask(number):
    begun.wait()
    for i in itertools.count():
        try:
            answered.append(list(target.addr(addresses).function) == truth)
        except ValueError:
            refused.append(number)
            return
        if number == 0 and i == 3:
            target.close()


threads = [threading.Thread(target=ask, args=(i,)) for i in range(10)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert sorted(refused) == list(range(10)) and all(answered) and len(answered) >= 4, (refused, answered)
""", FATHOM)


SLOW = """#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
/* Functions of the library call each other. */
static _Thread_local int depth;
#define SLOW(name) \\
	int name(void *a, void *b, void *c, void *d, void *e, void *f, void *g) \\
	{ \\
		char byte; \\
		int result; \\
		void *library = dlopen("libfathom.so.0", RTLD_LAZY | RTLD_NOLOAD); \\
		int (*next)(void *, void *, void *, void *, void *, void *, void *) = dlsym(library, #name); \\
		if (!depth++ && read(atoi(getenv("SLOW_FD")), &byte, 1) != 1) \\
			abort(); \\
		result = next(a, b, c, d, e, f, g); \\
		depth--; \\
		return result; \\
	}
"""


def while_others_run(folder, functions, work, *arguments):
    """Runs @work in a thread; each of @functions of the library waits, within the call, for what only Python can write."""
    source = os.path.join(folder, "slow.c")
    with open(source, "w", encoding="utf-8") as f:
        f.write(SLOW + "".join(f"SLOW({name})\n" for name in functions))
    run("gcc", "-shared", "-fPIC", "-o", os.path.join(folder, "slow.so"), source, "-ldl")
    python(folder, """
if "SLOW_FD" not in os.environ:
    reader, writer = os.pipe()
    os.set_inheritable(reader, True)
    os.set_inheritable(writer, True)
    os.execve(sys.executable, [sys.executable, *sys.argv, str(writer)],
              os.environ | {"SLOW_FD": str(reader), "LD_PRELOAD": os.path.join(os.getcwd(), "slow.so")})
done = []


def work():
""" + work + f"""
thread = threading.Thread(target=work)
thread.start()
for _ in range({len(functions)}):
    os.write(int(sys.argv[-1]), b".")
thread.join()
assert done[-1] == "done", done
""", *arguments, cwd=folder)


@test("other threads run Python during a batch, a search and the opening of a file: these give up the GIL")
def _(folder):
    while_others_run(folder, ("fathom_symbolize", "fathom_find", "fathom_target_open_file"), """
    target = fathom.open(sys.argv[1])
    address = target.find("twice")[0].address
    assert list(target.addr([address]).symbol) == ["twice"]
    done.append("done")
""", program(folder))


# A batch that takes long enough to be asked about: lines of all code, on one thread.
LONG = """
def long_batch(**options):
    target = fathom.Session(cache=False, threads=1, **options).open(sys.argv[1])
    low = target.address("main") - 50000
    for _ in range(1000):
        target.addr(array.array("Q", range(low, low + 600000)))
    raise AssertionError("nobody asked")
"""


@test("Ctrl-C ends a batch, and so does what progress raises; then the target answers as before")
def _(folder):
    python(folder, LONG + """
class Enough(Exception):
    pass


seen = []


def progress(phase, done, total):
    seen.append((phase, done, total))
    raise Enough


try:
    long_batch(progress=progress)
except Enough:
    assert seen[0][0] in ("answer", "index", "open", "find"), seen
try:
    long_batch(progress=lambda *_: os.kill(os.getpid(), signal.SIGINT))
except KeyboardInterrupt:
    pass
# The default, which has no function: a signal that another thread sends.
target = fathom.Session(cache=False, threads=1).open(sys.argv[1])
low = target.address("main") - 50000
signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(Enough()))
try:
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    while True:
        target.addr(array.array("Q", range(low, low + 600000)))
except Enough:
    pass
assert target.addr(target.address("main")).symbol == "main"
""", FATHOM)


@test("an exception that is kept in a cycle with what was asked is collected like any other")
def _(folder):
    python(folder, """
def ask():
    target = fathom.open(sys.argv[1])
    for wrong in (lambda view: target.addr(view, return_addresses=b"\\7" * 1000), lambda view: target.values("i99", view),
                  lambda view: target.addr(view, return_addresses=b"")):
        view = memoryview(array.array("Q", range(1000)))
        try:
            wrong(view)
        except (fathom.Error, ValueError) as e:
            kept.append([e])
            kept[-1].append(kept[-1])
        else:
            raise AssertionError("it was answered")


for _ in range(100):
    kept = []
    ask()
    del kept
    gc.collect()
""", program(folder))


@test("after fork() a child cannot use its parent's targets, which say so; it opens its own; answers are both's")
def _(folder):
    python(folder, """
target = fathom.open(sys.argv[1])
own = fathom.open()
session = fathom.Session()
answers = target.addr([target.address("twice")])
going = True


def ask():
    while going:
        target.addr(list(range(1, 1000)))


threads = [threading.Thread(target=ask) for _ in range(3)]
for thread in threads:
    thread.start()
for _ in range(20):
    child = os.fork()
    if not child:
        status = 1
        try:
            for wrong in (lambda: target.addr(1), lambda: own.addr(1), lambda: session.open(sys.argv[1]), lambda: target.info):
                try:
                    wrong()
                except fathom.Error as e:
                    assert e.code == fathom.ErrorCode.ARGUMENT and "fork()" in str(e)
                else:
                    raise AssertionError("it was answered")
            assert answers[0].symbol == answers.symbol[0] == "twice"
            with fathom.open(sys.argv[1]) as again:
                assert again.addr(again.address("twice")).symbol == "twice"
            target.close()
            del answers, own, session
            gc.collect()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
going = False
for thread in threads:
    thread.join()
assert target.addr(target.address("twice")).symbol == "twice"
""", program(folder))


@test("10,000 files are opened, asked and closed: no descriptor, no mapping, no object and no memory stays")
def _(folder):
    python(folder, GROWTH + """
session = fathom.Session()


def work(n):
    for i in range(n):
        with session.open(sys.argv[1]) as target:
            assert target.addr(0x401000 + i).address == 0x401000 + i
            assert len(target.addr([1, 2]).symbol) == 2


work(2000)
before = counts()
work(10000)
# 50 bytes for each would be seen.
check_growth(before)
""", program(folder))
