# SPDX-License-Identifier: MIT
"""Each verb, beside the command's JSON, nm and the source."""
import json
import os
import re
import shutil

from ask import FATHOM, fathom, records_of, run
from building import build_id, build_text, core_of, debug_path, keep_debug, nm
from running import Running, wait_for_state
from suite import TOP, program, python, test


def plain(value):
    """A value of the command's JSON as the module gives it: addresses are numbers."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return int(value, 16) if isinstance(value, str) and re.fullmatch(r"0x[0-9a-f]+", value) else value


def same(got, want, *renamed):
    """All that a row of the module has is what the command says."""
    for key in got:
        assert got[key] == plain(want[dict(renamed).get(key, key)]), (key, got, want)


@test("addr: what the command says, member by member; the function, lines and inlined call that the source has")
def _(folder):
    path = program(folder)
    start = nm(path)["twice"][0][0]
    addresses = [*range(start, start + 12), 1]
    out = python(folder, """
import json
target = fathom.open(sys.argv[1])
for answer in target.addr([int(a) for a in sys.argv[2:]]):
    print(json.dumps(answer.asdict()))
    assert target.addr(answer.address) == answer
""", path, *map(str, addresses))
    got = records_of(out)
    wanted = records_of(fathom("addr", "--json", path, *map(hex, addresses), status=1).stdout)
    assert len(got) == len(wanted) == 13
    for one, want in zip(got, wanted):
        same(one, want)
        assert set(want) - set(one) == {"input"}
    assert got[0]["symbol"] == "twice" and got[0]["frames"][-1]["line"] == 8 and got[0]["frames"][-1]["file"] == path + ".c"
    assert [f["function"] for g in got for f in g["frames"] if f["inlined"]].count("add") > 0
    assert got[12]["symbol"] is None and got[12]["reason"] and got[12]["frames"] == []


@test("find and address: what the command says, and nm; no match says why; a pattern, a library, a line")
def _(folder):
    path = program(folder)
    queries = ["twice", "counter", "t*e", "prog.c:8", "nothing_like_it"]
    out = python(folder, """
import json
target = fathom.open(sys.argv[1])
for match in target.find(*sys.argv[2:]):
    print(json.dumps(match._asdict()))
print(target.address("twice"), target.find("tw.c", regex=True)[0].name, target.find("add", inlined=True)[-1].inlined_into)
try:
    target.address("nothing_like_it")
except fathom.Error as e:
    assert e.code is fathom.ErrorCode.NOT_FOUND and str(e) == "nothing_like_it: no such symbol", e
else:
    raise AssertionError("nothing_like_it")
try:
    target.find("a\\0b")
except ValueError:
    pass
else:
    raise AssertionError("a NUL")
""", path, *queries).splitlines()
    wanted = records_of(fathom("find", "--json", path, *queries, status=1).stdout)
    assert len(wanted) == len(out) - 1 >= 5
    for one, want in zip(map(json.loads, out[:-1]), wanted):
        same(one, want)
    assert out[-1] == f"{nm(path)['twice'][0][0]} twice twice"


@test("disasm: what the command says; a function by its name, by an address in it, and a range")
def _(folder):
    path = program(folder)
    out = python(folder, """
import json
target = fathom.open(sys.argv[1])
code = target.disasm("main")
for i in code:
    print(json.dumps(i._asdict() | {"bytes": i.bytes.hex()}))
assert code[:] == target.disasm(code[1].address)[:] == target.disasm(code[0].address, code.next)[:]
assert len(target.disasm("main", limit=2)) == 2 and target.disasm("main", limit=2).next == code[2].address
assert "[" in "".join(i.text for i in target.disasm("main", intel=True))
assert b"".join(i.bytes for i in code) == target.read(code[0].address, code.next - code[0].address)
try:
    target.disasm(1)
except fathom.Error as e:
    assert e.code == fathom.ErrorCode.NOT_FOUND
else:
    raise AssertionError("no function")
""", path)
    got, wanted = records_of(out), records_of(fathom("disasm", "--json", path, "main", status=0).stdout)
    assert len(got) == len(wanted) > 5
    for one, want in zip(got, wanted):
        same(one, want)
    assert any(one["target_name"] == "twice" for one in got)


@test("values: numbers, arrays, texts and pointers that the source has; one that cannot be read says why")
def _(folder):
    path = program(folder)
    python(folder, """
target = fathom.open(sys.argv[1])
assert target.value("i32", "counter") == 42 and target.value("u16[3]", "table") == [1, 2, 3] and target.value("u16[1]", "table") == [1]
assert target.value("*str", "greeting") == "good day" and target.value("bytes:4", "counter") == bytes([42, 0, 0, 0])
assert target.value("*str:4", "greeting") == "good" and target.value("f32", "counter") < 1e-40
found = target.values("i32", [target.address("counter"), 1 << 60])
assert found[0] == (42, target.address("counter"), None, False) and found[1] == (None, 1 << 60, "unmapped", False), found
assert target.values("*str:4", [target.address("greeting")])[0].is_cut
for wrong in (lambda: target.value("i32", 1 << 60), lambda: target.value("i33", "counter"), lambda: target.read(1 << 60, 4)):
    try:
        wrong()
    except fathom.Error as e:
        assert e.code in (fathom.ErrorCode.NOT_FOUND, fathom.ErrorCode.ARGUMENT), e
    else:
        raise AssertionError("a value")
""", path)


@test("a process: its stack, values and names, beside the command and gdb's core; a snapshot names the same when it is gone")
def _(folder):
    path = program(folder)
    with Running([path]) as running:
        assert running.line() == "good day"
        # Both are asked while it waits.
        wait_for_state(running.pid, "S")
        out = python(folder, """
import json
with fathom.open(int(sys.argv[1])) as target:
    assert target.info.kind == "process" and target.info.pid == int(sys.argv[1]) and target.info.path == os.path.realpath(sys.argv[3])
    thread, = target.stack()
    print(json.dumps(thread._asdict() | {"frames": [f.asdict() for f in thread.frames]}))
    assert target.value("i32", "counter") == 42
    assert {f.kind for f in thread.frames} == {"native"} and {f.runtime for f in thread.frames} == {None}
    target.snapshot(sys.argv[2])
    target.snapshot(sys.argv[2] + "-stacks", stacks=True)
    assert target.stack([thread.tid], stop="never")[0].tid == thread.tid
""", str(running.process.pid), os.path.join(folder, "snapshot"), path)
        want, = records_of(fathom("stack", "--json", str(running.process.pid), status=0).stdout)
        core = core_of(running.process.pid, folder)
    got = json.loads(out)
    left = {"pause_us", "registers"}
    same({key: value for key, value in got.items() if key not in left | {"frames"}}, want)
    for one, frame in zip(got["frames"], want["frames"]):
        same(one, frame, ("is_signal_return", "signal_handler_called"))
    assert len(got["frames"]) == len(want["frames"]) and got["stop"] == "entry" and got["registers"]["rip"] == got["frames"][0]["pc"]
    assert "main" in [f["symbol"] for f in got["frames"]]
    python(folder, """
pcs = [int(pc) for pc in sys.argv[3:]]
names = None
for path, kind in ((sys.argv[1], "snapshot"), (sys.argv[1] + "-stacks", "snapshot"), (sys.argv[2], "core")):
    with fathom.open(path) as target:
        assert target.info.kind == kind
        found = list(target.addr(pcs).symbol)
        assert names in (None, found) and "main" in found
        names = found
        if path != sys.argv[1]:
            assert [f.pc for f in target.stack()[0].frames] == pcs
""", os.path.join(folder, "snapshot"), core, *(str(f["pc"]) for f in got["frames"]))


# Dies as its argument says, and waits in the handler, which tells what the kernel or the exception told it.
DYING = r"""
#include <cassert>
#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <unistd.h>
static void wait_in(int, siginfo_t *info, void *)
{
	std::printf("waits %d %p\n", info->si_signo, info->si_addr);
	std::fflush(stdout);
	for (;;)
		pause();
}
int main(int, char **argv)
{
	struct sigaction action = {};
	int *volatile nowhere = nullptr;
	action.sa_sigaction = wait_in;
	action.sa_flags = SA_SIGINFO;
	sigaction(SIGABRT, &action, nullptr);
	sigaction(SIGSEGV, &action, nullptr);
	if (argv[1][0] == 'a')
		assert(nowhere);
	if (argv[1][0] == 't')
		throw std::out_of_range("beyond");
	return nowhere[6];
}
"""


def death_of(folder, path, way):
    """What the module says of why it died, which is what the command says; what the program said."""
    with Running([path, way], stderr=-1) as running:
        said = running.line().split()
        out = python(folder, """
import json
with fathom.open(int(sys.argv[1])) as target:
    thread, = target.stack()
    died = thread.died
assert type(died).__name__ == "Death" and type(died).__module__ == "fathom"
parts = {name: part and part._asdict() for name, part in (("exception", died.exception), ("fault", died.fault))}
print(json.dumps(died._asdict() | parts))
print(json.dumps([thread.signal, thread.fault_address]))
""", str(running.process.pid))
        want, = records_of(fathom("stack", "--json", str(running.process.pid), status=0).stdout)
        running.process.kill()
        died, signal = map(json.loads, out.splitlines())
        assert set(died) == set(want["died"]), (died, want["died"])
        same(died, want["died"])
        return died, signal, said, running.process.stderr.read()


@test("died: what assert() wrote, the exception and its text, the fault, each as the program or the kernel told it")
def _(folder):
    path = build_text(os.path.join(folder, "dying"), DYING, compiler="g++", language="c++")
    nothing = {"abort_message": None, "abort_message_cut": False, "abort_message_why": None, "exception": None, "exception_why": None,
               "fault": None}
    died, signal, _, written = death_of(folder, path, "assert")
    assert written.endswith("failed.\n") and died == nothing | {"abort_message": written[:-1]} and signal == [None, None], died
    died, signal, _, written = death_of(folder, path, "throw")
    exception = {"type": "std::out_of_range", "what": "beyond", "what_cut": False, "uncaught": True}
    assert exception["type"] in written and f"what():  {exception['what']}\n" in written
    assert died == nothing | {"exception": exception} and signal == [None, None], died
    died, signal, said, _ = death_of(folder, path, "fault")
    assert said == ["waits", "11", "0x18"] and signal == [11, 0x18]
    fault = {"address": 0x18, "access": "read", "place": "null", "stack_tid": None, "file": None, "file_offset": None}
    assert died == nothing | {"fault": fault}, died


@test("what opens what: a number, digits and pid: a process, a path a file, also of digits, nothing this process, kernel the kernel")
def _(folder):
    path = program(folder)
    os.rename(path, os.path.join(folder, "1234567890123"))
    python(folder, """
import pathlib
pid = os.getpid()
for target in (pid, str(pid), f"pid:{pid}"):
    assert fathom.open(target).info[::4] == ("process", pid), target
for target in (pathlib.Path("1234567890123"), "./1234567890123", "file:1234567890123", b"1234567890123"):
    assert fathom.open(target).info.kind == "file", target
own = fathom.open()
assert own.info.kind == "self" and own.info.pid == pid
# Where it is itself: a function of the C library, which it has loaded.
address = own.find("getppid", exported=True)[0].address
assert own.addr(address).symbol == "getppid" and "libc" in own.addr(address).module
for wrong, error in (("1234567890123", (fathom.Error, OverflowError)), ("pid:x", ValueError), ("a\\0b", ValueError), (1.5, TypeError),
                     ("no such file", fathom.Error), (2 ** 31 - 1, fathom.Error)):
    try:
        fathom.open(wrong)
    except error:
        continue
    raise AssertionError(wrong)
try:
    kernel = fathom.open("kernel")
except fathom.Error as e:
    assert e.code in (fathom.ErrorCode.OS, fathom.ErrorCode.NOT_FOUND)
else:
    assert kernel.info.kind == "kernel" and repr(kernel) == "<Target kernel '[kernel]'>"
""", cwd=folder)


@test("errors have a code, a text and where it is; every code of the headers has its name; they can be pickled")
def _(folder):
    with open(os.path.join(folder, "broken"), "wb") as f:
        f.write(b"\x7fELF\x02\x01\x01" + bytes(40))
    with open(os.path.join(TOP, "include/fathom/error.h"), encoding="utf-8") as f:
        codes = dict(re.findall(r"FATHOM_E_(\w+) = (-\d+)", f.read()))
    out = python(folder, """
import errno, json, pickle
print(json.dumps({code.name: str(code.value) for code in fathom.ErrorCode}))
for path, code, number in (("nope", fathom.ErrorCode.OS, errno.ENOENT), ("broken", fathom.ErrorCode.CORRUPT, 0), ("program.py",
                           fathom.ErrorCode.FORMAT, 0)):
    try:
        fathom.open(path)
    except fathom.Error as e:
        assert (e.code, e.detail.file, e.detail.errno) == (code, path, number) and str(e).startswith(path + ": "), (e, e.detail)
        other = pickle.loads(pickle.dumps(e))
        assert (str(other), other.code, other.detail) == (str(e), e.code, e.detail)
        print(str(e))
    else:
        raise AssertionError(path)
""", cwd=folder).splitlines()
    assert json.loads(out[0]) == codes, (out[0], codes)
    for text, name in zip(out[1:], ("nope", "broken", "program.py")):
        said = fathom("addr", name, "1", status=2, cwd=folder).stderr
        assert said.startswith(f"fathom: {text}"), (said, text)


@test("a note says what no answer tells: a debug file of another build")
def _(folder):
    path = program(folder)
    other = os.path.join(folder, "other")
    run("gcc", "-g", "-o", other, "-x", "c", "-", input="int main(void) { return 1; }\n")
    run("objcopy", "--only-keep-debug", other, os.path.join(folder, "prog.debug"))
    run("strip", path)
    # The checksum is that of the file beside it.
    run("objcopy", f"--add-gnu-debuglink={folder}/prog.debug", path)
    out = python(folder, """
target = fathom.open(sys.argv[1])
for note in target.notes:
    print(note.code.name, note)
""", path)
    assert re.fullmatch(r"MISMATCH .*prog\.debug: .*\n", out), out


@test("options of a session and of a target: directories of debug files, a budget of memory, no threads")
def _(folder):
    path = program(folder)
    number, twice = build_id(path), nm(path)["twice"][0][0]
    shutil.move(keep_debug(path), debug_path(folder, number))
    python(folder, """
path, folder, twice = sys.argv[1], sys.argv[2], int(sys.argv[3])
session = fathom.Session(cache=False, memory_budget=1 << 26, threads=1)
with session.open(path) as target:
    assert target.addr(twice).symbol is None or target.addr(twice).source == "fde"
with session.open(path, debug_dirs=["/nowhere", folder]) as target:
    assert target.addr(twice).frames[-1][:4] == ("twice", "twice", path + ".c", 8)
    assert target.info.debug_path.startswith(folder) and 0 < session.memory_used < 1 << 26
try:
    fathom.Session(threads=-1)
except OverflowError:
    pass
else:
    raise AssertionError("-1 threads")
""", path, folder, str(twice))


@test("the command's own functions, 500 of them: the same names as nm's, by a batch")
def _(folder):
    names = {name: places[0][0] for name, places in nm(FATHOM).items() if len(places) == 1 and places[0][1] in "Tt" and "." not in name}
    # Labels in assembly have no size; what is there belongs to the function around it.
    sized = {words[3] for words in map(str.split, run("nm", "-S", FATHOM).splitlines()) if len(words) == 4}
    chosen = sorted(sized & names.keys())
    chosen = chosen[::max(1, len(chosen) // 500)]
    out = python(folder, """
target = fathom.open(sys.argv[1])
print(*target.addr([int(a) for a in sys.stdin.read().split()], names_only=True).symbol)
""", FATHOM, input=" ".join(str(names[name]) for name in chosen))
    by_address = {}
    for name, address in names.items():
        by_address.setdefault(address, set()).add(name)
    wrong = [(name, got) for name, got in zip(chosen, out.split(), strict=True) if got not in by_address[names[name]]]
    assert not wrong, wrong
