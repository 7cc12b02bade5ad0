#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "schema": every form of JSON Lines, of real input, beside the schemas of docs/schema. A schema is true both ways: each line
keeps to it strictly, and each member that it names is printed by one of these runs."""
import copy
import ctypes
import functools
import glob
import json
import os
import re
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib")]

import schema  # noqa: E402
import tap  # noqa: E402

from ask import FATHOM, NOBODY, copy_for_all, execute, fathom, run  # noqa: E402
from building import build, plain  # noqa: E402
from running import Running, core_of_dying, wait_for_state  # noqa: E402

TOP = os.path.join(HERE, "..", "..")
LIBRARIES = os.path.join(os.environ["BUILD"], "src")
LIBRARY = os.path.join(LIBRARIES, "libfathom.so")
SUITE = tap.Suite("schema")
test = SUITE.test
KEPT = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
SITES = "-fpatchable-function-entry=18,16"
RETURNS = "-finstrument-functions"
# Members that no run here prints, and why.
NOT_PRINTED = {
    # Only if events were lost: not in each run. The suite "calls" has such runs.
    "trace-counts:lost.lost": '{"lost":3}',
    "trace-tree:lost.lost": '{"lost":3}',
    "trace-diff:lost.lost": '{"lost":{"a":3,"b":0}}',
    # Only of files that lie: the suite "trace" has them.
    "trace-sites:module.refused": '{"type":"module","module":"x","bias":"0x0","sites":1,"functions":1,"kinds":{"patchable":1},"refused":{"overlap":1},"flag":null}',
}
# The same, without a line of their own: the memory that lies is in the suite "died", stacks with guesses are in "stacks"; an image of
# the kernel is not everywhere.
NOT_PRINTED_HERE = {"stack:death.abort_message_why", "stack:death.exception_why", "stack:left_out.trust", "stack:kernel_frame.module_address",
                    "stack:kernel_frame.unverified",
                    # A debug file without its program: the suite "annotated" has one.
                    "report-annotate:code.reason"}
# Words of the schemas, and the functions of the library that have them.
TABLES = {
    ("addr", "reason"): "fathom_reason_name",
    ("addr", "source"): "fathom_source_name",
    ("addr", "source_origin"): "fathom_text_origin_name",
    ("stack", "source_origin"): "fathom_text_origin_name",
    ("filter", "source_origin"): "fathom_text_origin_name",
    ("disasm", "source_origin"): "fathom_text_origin_name",
    ("report-annotate", "source_origin"): "fathom_text_origin_name",
    ("stack", "trust"): "fathom_trust_name",
    ("stack", "", "stop"): "fathom_stop_name",
    ("trace", "stop"): "fathom_stop_name",
    ("stack", "fault", "access"): "fathom_access_name",
    ("stack", "fault", "place"): "fathom_fault_place_name",
    ("find", "", "table"): "fathom_table_name",
    ("filter", "", "kind"): "fathom_log_kind_name",
    ("filter", "", "base"): "fathom_log_base_name",
    ("trace", "method"): "fathom_syscall_method_name",
    ("trace-sites", "site", "kind"): "fathom_site_kind_name",
    ("trace-sites", "site", "place"): "fathom_site_place_name",
    ("trace-sites", "slot", "reason"): "fathom_slot_refusal_name",
}
RUNS = {}


def a_run(name, title):
    """Makes a run with lines of the schema @name of the function that follows, which returns them, or is what fathom is given."""
    def decorate(function):
        lock = threading.Lock()

        @functools.lru_cache(maxsize=None)
        def kept():
            with tempfile.TemporaryDirectory(dir=KEPT.name) as folder:
                return function(folder).splitlines()

        def lines():
            with lock:
                return kept()
        RUNS.setdefault(name, {})[title] = lines
        return function
    return decorate


def json_of(verb, *words, status=(0, 1), **more):
    return fathom(verb, "--json", "--no-cache", *words, status=status, **more).stdout


def arguments(name, title, verb, *words, **more):
    """A run with these arguments; "PROGRAM" stands for the program's path."""
    @a_run(name, title)
    def _(_folder):
        return json_of(verb, *(program() if word == "PROGRAM" else word for word in words), **more)


BUILD_LOCK = threading.Lock()


@functools.lru_cache(maxsize=None)
def built(name, *flags):
    path = os.path.join(KEPT.name, name)
    return build(path, os.path.join(HERE, "programs", "shown.cc"), "-pthread", compiler="g++", flags=("-O1", "-g", "-rdynamic", *flags))


def program(name="shown", *flags):
    with BUILD_LOCK:
        return built(name, *flags)


def native():
    plain(LIBRARY)
    return program()


def waiting(how, verb, *options, target=None, words=()):
    """The lines of a run on a program that waits."""
    with Running([native(), how]) as running:
        assert running.line() == "waits"
        wait_for_state(running.pid, "S")
        return json_of(verb, *options, target or str(running.pid), *words)


arguments("addr", "a file: functions, inlined ones, names, what is not there", "addr", "PROGRAM",
          "main", "main+5", "_ZN5shown6calledEi+4", "0x0", "0xffffffffffffffff", "inlined", "no_such", "12x", "+5", "gr\u00fc\u00df \u202e", *(f"main+{i:#x}" for i in range(0, 400, 3)))
arguments("addr", "standard input, with bytes that are not UTF-8", "addr", "PROGRAM", input="main\n\udcff\udc80 \"x\\\x01\n\n0x1\n",
          errors="surrogateescape")
arguments("find", "functions, variables, lines, copies, what is not there", "find", "PROGRAM",
          "main", "~shown", "inlined", "of_thread", "shown.cc:40", "*in*", "no_such", "!", "gr\u00fc\u00df")
for read_type, variable in (("str", "greeting"), ("str", "sink"), ("f64", "not_a_number"), ("f64[2]", "halves"), ("bytes:4", "raw"), ("i8[4]", "raw"), ("ptr", "pointer"), ("u32", "of_thread"), ("u32", "main")):
    arguments("find", f"a value: {read_type} of {variable}", "find", "--read", read_type, "PROGRAM", variable)
arguments("disasm", "functions, calls, what is not there", "disasm", "PROGRAM", "main", "_ZN5shown6calledEi", "inlined", "no_such", "0x0..0x4")
arguments("jit-check", "instructions of a file", "jit-check", "--register", "rbx", "PROGRAM", "main", "no_such", "main..0xfffff")
arguments("doctor", "this machine", "doctor")
arguments("doctor", "a file", "doctor", "PROGRAM")
arguments("stack-rules", "all of a file", "stack", "--rules", "PROGRAM")
arguments("stack-rules", "of addresses", "stack", "--rules", "PROGRAM", "main", "0x1", "no_such")
arguments("stack-merge", "a thread, whose stack is not whole, and a tree", "stack", "--merge", input="\n".join((
    '{"rank":3,"tid":1,"frames":[{"symbol":"f","module":"/lib/a.so","frames":[]},{"symbol":null,"module":null,"frames":[]}],"stop":"no-rule"}',
    '{"type":"ranks","ranks":[[0,1],[4,9]],"threads":3}', '{"type":"node","depth":1,"function":"g","module":null,"ranks":[[4,9]],"threads":2,"ends":1}')))
arguments("trace-sites", "what is not there, and a module without sites", "trace", "--sites", "-e", "PROGRAM", "no_such", "main")


def sources_of(folder, ask):
    """What @ask prints of a program with a long line of source, and when that file is gone."""
    path, source = os.path.join(folder, "long"), os.path.join(folder, "long.c")
    with open(source, "w", encoding="ascii") as file:
        file.write("int main(void) {" + " " * 5000 + "return 0; }\n")
    build(path, source)
    there = ask(path)
    os.unlink(source)
    return there + ask(path)


@a_run("addr", "lines of source, one of them long, and a file that is gone")
def _(folder):
    return sources_of(folder, lambda path: json_of("addr", "--source", path, "main"))


@a_run("disasm", "lines of source, one of them long, and a file that is gone")
def _(folder):
    return sources_of(folder, lambda path: json_of("disasm", "--source", path, "main"))


@a_run("filter", "lines of source, one of them long, and a file that is gone")
def _(folder):
    return sources_of(folder, lambda path: json_of("filter", "--source", path, input=f"{json.loads(json_of('find', path, 'main'))['module_address']}\n"))


@a_run("stack", "lines of source, one of them long, and a file that is gone")
def _(folder):
    path, source = os.path.join(folder, "long"), os.path.join(folder, "long.c")
    with open(source, "w", encoding="ascii") as file:
        file.write("#include <unistd.h>\nint main(void) {" + " " * 5000 + 'write(1, "waits\\n", 6); return read(0, "", 1) != 0; }\n')
    build(path, source)
    plain(LIBRARY)
    with Running([path]) as running:
        assert running.line() == "waits"
        wait_for_state(running.pid, "S")
        there = json_of("stack", "--rank", "0", "--source", str(running.pid))
        os.unlink(source)
        return there + json_of("stack", "--source", str(running.pid))


@a_run("addr", "a process")
def _(_folder):
    return waiting("wait", "addr", words=("main", "printf+1", "0x10", "[vdso]"))


@a_run("find", "a process: libraries, copies of threads, resolvers")
def _(_folder):
    return waiting("alike", "find", words=("memcpy", "of_thread", "malloc", "errno", "*!nothing"))


@a_run("disasm", "a process")
def _(_folder):
    return waiting("wait", "disasm", words=("main", "0x10"))


@a_run("doctor", "a process")
def _(_folder):
    return waiting("wait", "doctor")


def wait_in(how, title, *options):
    @a_run("stack", title)
    def _(_folder):
        return waiting(how, "stack", *options)


wait_in("wait", "a process")
wait_in("alike", "threads that are alike", "--fold")
wait_in("locked", "a thread that waits for another")
wait_in("deep", "a stack with frames left out")
wait_in("handler", "within a signal handler")
wait_in("wait", "with frames in the kernel", "--kernel")


def of_kernel(*words):
    done = fathom(words[0], "--json", "--no-cache", *words[1:])
    if done.returncode == 2 or not done.stdout:
        raise tap.Skip(f"the kernel cannot be read here: {done.stderr.strip()}")
    return done.stdout


@a_run("addr", "the kernel")
def _(_folder):
    return of_kernel("addr", "kernel", "schedule+4", "0x10")


@a_run("find", "the kernel")
def _(_folder):
    return of_kernel("find", "kernel", "schedule", "jiffies")


@a_run("stack", "a thread of the kernel")
def _(_folder):
    return of_kernel("stack", "--kernel", "2")


@a_run("stack", "a program that runs, and is not stopped")
def _(_folder):
    with Running([native(), "spins"]) as running:
        assert running.line() == "spins"
        return json_of("stack", "--stop=never", str(running.pid))


@a_run("stack", "frames in the kernel, by a user who may not read them")
def _(folder):
    if os.geteuid():
        raise tap.Skip("only root can run programs as other users")
    os.chmod(folder, 0o755)
    os.chmod(KEPT.name, 0o755)
    with Running(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", native(), "wait"]) as running:
        assert running.line() == "waits"
        wait_for_state(running.pid, "S")
        return execute(copy_for_all(folder), "stack", "--json", "--kernel", running.pid, user=NOBODY, status=(0, 1)).stdout


@a_run("stack", "frames of a script, and of one that no native frame holds")
def _(folder):
    source = os.path.join(HERE, "..", "interpreters", "programs", "planted.c")
    planted = build(os.path.join(folder, "planted"), source, "-rdynamic")
    with Running([planted, "anchor"]) as running:
        assert running.line() == "ready"
        return json_of("stack", str(running.pid))


def die(how):
    @a_run("stack", f"a core: {how}")
    def _(folder):
        return json_of("stack", core_of_dying(folder, native(), how))


for way in ("throws", "asserts", "null", "text", "overflows"):
    die(way)


@a_run("addr", "a core, of which no file is proven")
def _(folder):
    unproven = program("unproven", "-Wl,--build-id=none")
    native()
    return json_of("addr", "--exe", unproven, core_of_dying(folder, unproven, "null"), "main")


@a_run("stack", "a core, of which no file is proven")
def _(folder):
    unproven = program("unproven", "-Wl,--build-id=none")
    native()
    return json_of("stack", "--exe", unproven, core_of_dying(folder, unproven, "null"))


@a_run("filter", "of a core, of which no file is proven")
def _(folder):
    unproven = program("unproven", "-Wl,--build-id=none")
    native()
    core = core_of_dying(folder, unproven, "null")
    (main,) = (json.loads(line)["address"] for line in json_of("find", "--exe", unproven, core, "main").splitlines())
    return json_of("filter", "--exe", unproven, core, input=f"at {main} and 0x1\n")


@a_run("cache", "build, clear and path")
def _(folder):
    def cache(*words):
        return fathom("cache", "--json", "--cache-dir", f"{folder}/index", *words, status=0).stdout
    return cache("build", program()) + cache("build", program()) + cache("path") + cache("clear")


@a_run("top", "a program that ends")
def _(_folder):
    with Running(["sleep", "1000"]) as running, \
            Running([FATHOM, "top", "--json", "--no-cache", "--interval=0.2", "--names-only", running.pid]) as top:
        first = top.process.stdout.readline()
        running.kill()
        return first + top.process.stdout.read()


@a_run("top", "a program that waits, and one that runs")
def _(_folder):
    with Running([native(), "waits"]) as running, Running(["sh", "-c", "while :; do :; done"]) as busy:
        assert running.line() == "waits"
        return json_of("top", "--count=2", "--interval=0.5", "--names-only", str(running.pid), str(busy.pid))


arguments("top", "a program that is started, and its status", "top", "--names-only", "--", "sh", "-c", "exit 3", status=3)


@a_run("report", "a profile, by each key and as each tree")
def _(folder):
    path = os.path.join(folder, "profile")
    called, main = (json.loads(line) for line in json_of("addr", program(), "_ZN5shown6calledEi", "main").splitlines())
    text = ("about command demo\nabout event task-clock\nabout unit ns\nabout method perf-events\nabout machine x86_64\nabout kernel 6.1\n"
            "about host box\nabout frequency 997\nabout started 1700000000\ncgroup /a\nthread 7 7 demo\nfile /no/such/library abcd\n"
            "sample 10 0 0 1 500 main@/bin/demo;work@/bin/demo!demo.c:7\nsample 20 0 0 2 300 work@/bin/demo!demo.c:8;0x40@/no/such/library\n"
            "sample 30 0 1 1 100 main@/bin/demo\nsample 35 0 3 1 10 main@/bin/demo;[futex]@[waits]\nsample 40 0 2 0 100\n"
            f"file {called['module']} {called['build_id'] or ''}\nsample 50 0 0 1 50 {called['module_address']}@{called['module']}\n"
            f"sample 60 0 0 1 50 {main['module_address']}@{main['module']}\nend 1000\n")
    with open(path, "wb") as f:
        f.write(execute(os.path.join(os.environ["BUILD"], "tests", "make_profile"), input=text.encode(), text=False).stdout)
    return "".join(json_of("report", *words, path) for words in (
        (), ("--diff", path), ("--diff", "--per", "wall", path), ("--diff", "--time", "waiting", path),
        ("--bottom-up", "--min", "20"), ("--by", "line"), ("--by", "module"), ("--by", "thread"), ("--by", "process", "--callers", "work"), ("--by", "reason", "--time", "wall"), ("--by", "cgroup"),
        ("--callees", "main")))


@a_run("report-annotate", "functions of a file, inlined ones, of another build, and JIT code")
def _(folder):
    path = os.path.join(folder, "profile")
    called, main = (json.loads(line) for line in json_of("addr", program(), "_ZN5shown6calledEi", "main").splitlines())
    text = ("about event task-clock\nabout unit ns\nthread 7 7 demo\nsample 10 0 0 1 500 main@/bin/demo;work@/bin/demo!demo.c:7\n"
            f"file {called['module']} {called['build_id'] or ''}\nsample 50 0 0 1 50 {called['module_address']}@{called['module']}\n"
            f"sample 60 0 0 1 50 {main['module_address']}@{main['module']}\nend 1000\n")
    with open(path, "wb") as f:
        f.write(execute(os.path.join(os.environ["BUILD"], "tests", "make_profile"), input=text.encode(), text=False).stdout)
    return "".join(json_of("report", "--annotate", "/./", *words, path) for words in ((), ("--names-only",)))


@a_run("filter", "lines of several formats")
def _(_folder):
    path = program()
    (main,) = (json.loads(line)["module_address"] for line in json_of("find", path, "main").splitlines())
    log = (f"    #0 0x55d0c0de1234 in main ({path}+{main})\n"
           f"{path}(main+0x4) [0x55d0c0de1234]\n"
           f"shown[12]: segfault at 0 ip 000055d0c0de1234 sp 00007ffc00000000 error 4 in shown[55d0c0de1000+1000]\n"
           f"    #1 0x1234 in gr\u00fc\u00df (/not/there+0x1234)\n"
           f"  #02 pc {int(main, 16):016x}  {path} (main+4)\n"
           f"   0: 0x{int(main, 16):x} - main\n")
    log += f"    #0 0x{int(main, 16) + 4:x} in main ({path}+0x{int(main, 16) + 4:x}) (BuildId: 0123456789abcdef0123456789abcdef01234567)\n"
    return json_of("filter", "--module-dir", os.path.dirname(path), input=log) + json_of("filter", path, input="".join(f"at {int(main, 16) + i:#x} and 0x1\n" for i in range(0, 400, 3)))


def rows_of_json(options=(), stream="stdout"):
    """fathom resolve, of an address with inlined calls if there is one, and rows without an answer."""
    path = program()
    (main,) = (int(json.loads(line)["module_address"], 16) for line in json_of("find", path, "main").splitlines())
    rows = [{"module": path, "offset": str(main + i), "kind": "exact", "count": "3"} for i in range(0, 200, 3)]
    rows += [{"build_id": "0123456789abcdef0123456789abcdef01234567", "offset": 1, "kind": 1, "count": 2}, {}]
    return getattr(fathom("resolve", "--format", "json", *options, status=0, input="".join(json.dumps(row) + "\n" for row in rows)), stream)


@a_run("resolve", "all columns, as lists and joined")
def _(_folder):
    columns = ("--json", "--no-cache", "--columns", "build_id,offset,module,kind,count,function,linkage_name,file,line,column,inlines,functions,files,lines,"
               "address,path,source,reason")
    return rows_of_json(columns) + rows_of_json((*columns, "--join", ";"))


@a_run("resolve-stats", "at the end")
def _(_folder):
    return rows_of_json(("--stats", "--no-cache"), "stderr")


@a_run("store", "built, built again, and damaged")
def _(folder):
    place = os.path.join(folder, "store")
    said = [fathom("store", "build", "--json", place, program(), status=0).stdout for _ in range(2)]
    (path,) = glob.glob(f"{place}/*/*/*.fathom")
    with open(path, "r+b") as file:
        file.seek(300)
        file.write(b"damaged")
    return "".join(said) + fathom("store", "check", "--json", place, status=1).stdout


def traced(folder, *options, how="calls", log=True):
    """The log of a traced program, or the trace file that is made of it."""
    tap.need_traced_programs()
    native()
    path = os.path.join(folder, "log")
    traced_program = program() if "--no-functions" in options or "--calls" in options else \
        program("returns", RETURNS) if "--exits" in options else program("sites", SITES)
    fathom("trace", *options, "--log" if log else "-o", path, "--", traced_program, how, status=None)
    if not log:
        return path
    with open(path, encoding="utf-8") as f:
        return f.read()


def trace(name, title, *options, **more):
    @a_run(name, title)
    def _(folder):
        return traced(folder, "--json", *options, **more)


trace("trace", "calls and returns", "--exits")
trace("trace", "calls and returns, unfolded", "--exits", "--no-fold")
trace("trace", "calls of libraries", "--calls", "always")
trace("trace", "system calls", "--syscalls", "--no-functions")
trace("trace", "system calls with stacks", "--syscalls", "--stacks")
trace("trace", "at a call: those it is within", "--at", "_ZN5shown6calledEi:stack", "--no-fold")
trace("trace", "the last calls of a program that fails", "--last", "3", how="calls!")
trace("trace", "a program that dies", "--last", "3", how="null")
trace("trace-counts", "calls", "-c")
trace("trace-counts", "calls and returns", "-c", "--exits")
trace("trace-counts", "system calls", "-c", "--syscalls", "--no-functions")


@a_run("trace-counts", "a file")
def _(folder):
    return fathom("trace", "-c", "--json", "--read", traced(folder, "--exits", "--syscalls", log=False), status=0).stdout


@a_run("trace", "a file")
def _(folder):
    return fathom("trace", "--json", "--read", traced(folder, "--exits", "--syscalls", log=False), status=0).stdout


@a_run("trace-tree", "calls")
def _(folder):
    return fathom("trace", "--tree", "--json", "--read", traced(folder, log=False), status=0).stdout


@a_run("trace-tree", "calls and returns")
def _(folder):
    return fathom("trace", "--tree", "--json", "--read", traced(folder, "--exits", log=False), status=0).stdout


@a_run("trace-diff", "two runs that part")
def _(folder):
    files = [traced(os.path.join(folder, how), log=False, how=how) for how in ("calls", "calls+") if not os.mkdir(os.path.join(folder, how))]
    return fathom("trace", "--diff", "--json", *files, status=1).stdout + fathom("trace", "--diff", "--json", *reversed(files), status=1).stdout


@a_run("trace-sites", "sites and slots")
def _(_folder):
    path = program("sites", SITES)
    return json_of("trace", "--sites", "-e", path, "main") + json_of("trace", "--sites", "--calls", "always", "-e", path)


@a_run("jit-check", "a program whose code is described wrongly")
def _(folder):
    native()
    if "cannot be traced" in execute(FATHOM, "jit-check", "--", "true").stderr:
        raise tap.Skip("programs cannot be traced here")
    path, log = os.path.join(folder, "promises"), os.path.join(folder, "log")
    run("g++", "-O2", "-g", "-fcf-protection=none", os.path.join(HERE, "..", "check", "programs", "promises.cc"), "-o", path,
        "-I", os.path.join(TOP, "include"), "-L", LIBRARIES, "-lfathom", f"-Wl,-rpath,{LIBRARIES}", "-pthread")
    text = ""
    for how in ("lie-clobber", "lie-frame-size"):
        fathom("jit-check", "--json", "--log", log, "--", path, how, status=None)
        with open(log, encoding="utf-8") as f:
            text += f.read()
    fathom("jit-check", "--json", "--log", log, "--", "sh", "-c", "kill -9 $$", status=None)
    with open(log, encoding="utf-8") as f:
        return text + f.read()


def record_of(line):
    """A line without what is far behind in its lists: stacks of thousands of frames have the same members again and again."""
    return {key: value[:200] if isinstance(value, list) else value for key, value in json.loads(line).items()}


def need_validator():
    if not schema.jsonschema:
        raise tap.Skip("python3-jsonschema is not installed")


def add_run(name, title, lines):
    @test(f"{name}: {title}")
    def _(_folder):
        need_validator()
        found = lines()
        assert found, "nothing was printed"
        open_validator = schema.jsonschema.Draft202012Validator(schema.load(name))
        for line in found:
            record = record_of(line)
            problem = schema.wrong(name, record)
            assert not problem, f"{problem}\n{line[:3000]}"
        # As users have it: with references, and open.
        for line in found[:schema.FIRST]:
            open_validator.validate(record_of(line) | {"new_member": 1})


for schema_name, runs in RUNS.items():
    for run_title, run_lines in runs.items():
        add_run(schema_name, run_title, run_lines)


@test("each schema is one, and is about one form")
def _(_folder):
    need_validator()
    assert schema.names() == sorted(RUNS)
    for name in schema.names():
        schema.jsonschema.Draft202012Validator.check_schema(schema.load(name))
        assert schema.load(name)["$id"] == f"urn:fathom:schema:{name}:@VERSION@", name


def objects(name):
    """(name of the definition, its schema) of each object of a schema."""
    top = schema.load(name)
    return [(key, part) for key, part in (("", top), *top.get("$defs", {}).items()) if "properties" in part]


@test("each member says what it is")
def _(_folder):
    for name in schema.names():
        for key, part in objects(name):
            for member, of_member in part["properties"].items():
                silent = {"const", "enum"} & set(of_member) and member == "type" or of_member == {"type": "null"}
                assert silent or "description" in of_member or "$ref" in of_member, (name, key, member)


@test("what several schemas define is the same in all")
def _(_folder):
    known = {}
    for name in schema.names():
        for key, part in schema.load(name).get("$defs", {}).items():
            # Of the verbs' own objects only the names are the same.
            if key in ("missing", "lost", "function", "call", "stack_frame"):
                continue
            assert known.setdefault(key, part) == part, (name, key)


@functools.lru_cache(maxsize=None)
def branch_validator(name, branch):
    return schema.jsonschema.Draft202012Validator(schema.resolved(schema.strict(json.loads(branch)), schema.strict(schema.load(name))))


def note(name, part, value, found, where=""):
    """Notes in @found the members of @value that @part, a piece of the schema @name, knows: as (definition, member)."""
    top = schema.load(name)
    if "$ref" in part:
        key = part["$ref"].removeprefix("#/$defs/")
        note(name, top["$defs"][key], value, found, key)
    for branch in part.get("oneOf", ()):
        if "required" in branch:
            continue
        if branch_validator(name, json.dumps(branch)).is_valid(value):
            note(name, branch, value, found, where)
    if isinstance(value, list) and "items" in part:
        for item in value:
            note(name, part["items"], item, found, where)
    if isinstance(value, dict):
        for member, of_member in part.get("properties", {}).items():
            if member in value:
                if value[member] not in (None, [], {}, "") or of_member == {"type": "null"}:
                    found.add((where, member))
                note(name, of_member, value[member], found, f"{where}.{member}" if "properties" in of_member else where)


def add_members(name):
    @test(f"{name}: each member is printed, and not as null alone")
    def _(_folder):
        need_validator()
        found, skipped = set(), None
        for lines in RUNS[name].values():
            try:
                for line in lines()[:3000]:
                    note(name, schema.load(name), record_of(line), found)
            except tap.Skip as skip:
                skipped = skip
        named = {(key, member) for key, part in objects(name) for member in part["properties"]}
        missing = {f"{name}:{key}.{member}".replace(":.", ":") for key, member in named - found} - set(NOT_PRINTED) - NOT_PRINTED_HERE
        if missing and skipped:
            raise skipped
        assert not missing, sorted(missing)


for schema_name in RUNS:
    add_members(schema_name)


@test("words are those of the library")
def _(_folder):
    plain(LIBRARY)
    library = ctypes.CDLL(LIBRARY)
    for (name, key, *member), function in TABLES.items():
        call = getattr(library, function)
        call.restype = ctypes.c_char_p
        words = {word.decode() for i in range(64) if (word := call(i))}
        top = schema.load(name)
        part = top["$defs"][key] if key else top
        listed = part["properties"][member[0]]["enum"] if member else part["enum"]
        assert words and set(listed) - {None} == words, (name, key, function, set(listed) ^ words)


@test("words of events, formats and checks are those of the source")
def _(_folder):
    def source(path):
        with open(os.path.join(TOP, path), encoding="utf-8") as f:
            return f.read()
    formats = re.findall(r'^\t\{ "([\w-]+)", fathom_log_read', source("src/host/filter/formats/format_table.c"), re.M)
    # Bytes of code are no address.
    formats.remove("code")
    assert formats and schema.load("filter")["properties"]["format"]["enum"] == formats
    checks = re.findall(r"^\.It Li ([\w-]+)$", source("docs/man/fathom-doctor.1"), re.M)
    assert checks[:3] == ["ok", "limited", "off"] and set(schema.load("doctor")["properties"]["check"]["enum"]) == set(checks[3:])
    types = re.search(r"fathom_trace_type_name\(.*?words\[\] = \{(.*?)\};", source("src/host/sites/list.c"), re.S)[1]
    known = schema.load("trace")["$defs"]
    listed = {known[key]["properties"]["type"]["const"] for key in ("call", "return", "syscall", "signal", "caller")} | set(known["other"]["properties"]["type"]["enum"])
    # Its begin is no line.
    assert listed == set(re.findall(r'"([\w-]+)"', types)) - {"syscall-entry"}, types


@test("lines that no run prints each time are right, too")
def _(_folder):
    need_validator()
    for member, line in NOT_PRINTED.items():
        name = member.split(":")[0]
        assert not schema.wrong(name, json.loads(line)), (member, schema.wrong(name, json.loads(line)))


@test("a wrong line of any suite's run is seen; what is no line of fathom's is left alone")
def _(folder):
    need_validator()
    log = os.path.join(folder, "log")
    with open(log, "w", encoding="utf-8") as f:
        f.write('{"type":"call"}\n')
    wrong = '{"input":"x"}\n'
    for command, text in ((["fathom", "addr", "--json", "x"], wrong), (["env", "A=1", "/x/fathom", "find", "--json", "x"], wrong),
                          (["fathom", "trace", "--json", "--read", "x"], wrong), (["fathom", "disasm", "x", "--json"], wrong.encode()),
                          (["fathom", "trace", "--json", f"--log={log}", "--", "x"], ""), (["fathom", "trace", "--json", "--log", "log", "-p", "1"], "")):
        try:
            schema.check_run(command, text, folder)
        except AssertionError:
            continue
        raise AssertionError(command)
    for command in (["fathom", "addr", "x"], ["fathom", "trace", "--json", "--", "x"], ["fathom", "trace", "--export", "chrome", "--json", "--read", "x"],
                    ["jq", "--json", "addr"], ["fathom", "addr", "--", "--json"]):
        schema.check_run(command, wrong, folder)


def add_planted(name):
    @test(f"{name}: lines that are wrong are refused")
    def _(_folder):
        need_validator()
        lines = next(iter(RUNS[name].values()))()
        record = json.loads(lines[0])
        wrongs = [record | {"not_known": 1}, [record], {}]
        for member, value in record.items():
            less = copy.deepcopy(record)
            less.pop(member)
            wrongs += [less, record | {member: {"x": 1}}]
            if isinstance(value, int):
                wrongs += [record | {member: value + .5}, record | {member: str(value)}]
            elif isinstance(value, str) and value.startswith("0x") and member not in ("input", "text"):
                wrongs += [record | {member: value + "G"}, record | {member: int(value, 16)}]
        optional = set(schema.load(name).get("properties", ())) - set(schema.load(name).get("required", ()))
        for planted in wrongs:
            if isinstance(planted, dict) and set(record) - set(planted) <= optional and set(record) - set(planted):
                continue
            assert schema.wrong(name, planted), planted


for schema_name in RUNS:
    add_planted(schema_name)

sys.exit(SUITE.run())
