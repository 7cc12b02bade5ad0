# SPDX-License-Identifier: MIT
"""The files of builds: where they are found, how many stay open, what is remembered of those that are missing, and files that change."""
import glob
import os
import shutil
import subprocess

import tap
from ask import FATHOM, execute
from building import build_id, build_text, nm
from running import until
from suite import COLUMNS, WITH_MODULE, expected, options, read_tsv, resolve, rows_of, same, source, stats_of, test, tsv_rows, without_null, world
from workers import counts as counts_of
from workers import send, worker


def one_row(module):
    (main, _), = nm(module)["main"]
    return f"{build_id(module)}\t{main}"


@test("where a file is found: by its build-id, its path, below --sysroot, by its name in --module-dir; by its path alone without a build-id")
def places(folder):
    path = world().modules[0].path
    row = one_row(path)
    columns = ("--no-cache", "--columns", "function,path")
    by_id = os.path.join(folder, "ids", ".build-id", row[:2], row[2:40])
    other = os.path.join(folder, "other")
    root = os.path.join(folder, "root")
    for place in (by_id, os.path.join(other, "program"), os.path.join(root, "usr/program")):
        os.makedirs(os.path.dirname(place), exist_ok=True)
        shutil.copy(path, place)
    for where, module, found in (
            ((), path, path), (("--debug-dir", os.path.join(folder, "ids")), "", by_id), (("--module-dir", other), "program", f"{other}/program"),
            (("--module-dir", folder, "--module-dir", other), "/gone/program", f"{other}/program"),
            (("--sysroot", root), "/usr/program", f"{root}/usr/program"), ((), "/gone/program", ""), ((), "program", "")):
        out = resolve(*columns, *where, *WITH_MODULE, data=f"{row}\t{module}\n")
        assert out == (f"main\t{found}\n" if found else "\t\n"), (where, module, out)
    out = resolve(*columns, "--input-columns", "module,offset", data=f"{path}\t{row[41:]}\n/gone\t1\n")
    assert out == f"main\t{path}\n\t\n"
    # The right file is found although a wrong one is asked for by name.
    wrong = world().modules[1].path
    assert resolve(*columns, "--debug-dir", os.path.join(folder, "ids"), *WITH_MODULE, data=f"{row}\t{wrong}\n") == f"main\t{by_id}\n"
    assert resolve("--no-cache", "--columns", "function,reason", *WITH_MODULE, data=f"{row}\t{wrong}\n") == "\tbuild-id-mismatch\n"


@test("modules are bounded by --memory: with room for few they are closed and opened again, and the answers stay")
def evicted(_folder):
    rows = rows_of(4000)
    lines = tsv_rows(rows)
    data = "".join(f"100\n{''.join(lines[i:i + 100])}" for i in range(0, 4000, 100))
    done = execute(FATHOM, "resolve", *options(), *WITH_MODULE, "--chunks=in", "--memory", "100K", "--stats", input=data, status=0)
    same(read_tsv(done.stdout, COLUMNS), [without_null(expected(*row)) | {"offset": str(row[1])} for row in rows])
    counts = stats_of(done.stderr)
    assert counts["evicted"] > 100 and counts["opened"] == counts["evicted"] + counts["modules"], counts
    # In one block, too: more builds than there is room for.
    done = execute(FATHOM, "resolve", *options(), *WITH_MODULE, "--memory", "100K", "--stats", input="".join(lines), status=0)
    same(read_tsv(done.stdout, COLUMNS), [without_null(expected(*row)) | {"offset": str(row[1])} for row in rows])
    assert stats_of(done.stderr)["evicted"] > 0


def long_source():
    """A program that takes some time to decode."""
    return "".join(source(number).replace("int main(", f"int main{number}(").replace("static volatile int sink;", "static volatile int sink;" if not number else "")
                   for number in range(100)) + "int main(int n, char **v) { return main0(n, v); }\n"


@test("what was decoded is stored before a module is closed: it returns without decoding")
def returns(folder):
    large = build_text(os.path.join(folder, "large"), long_source(), flags=("-g", "-O0"))
    cache = os.path.join(folder, "cache")
    asked = "".join(f"{build_id(large)}\t{address}\t{large}\n" for name, ((address, _), *_) in sorted(nm(large).items()) if name.startswith("m"))
    n = asked.count("\n")
    others = "".join(tsv_rows([(m, m.text + 64) for m in world().modules]))
    with worker("--cache-dir", cache, "--memory", "1M", "--threads", "1", "--chunks=both", "--columns", "function,line", *WITH_MODULE) as process:
        first = block(process, asked, n)
        decoded = until(lambda: (c := counts_of(process))["rows"] == n and c, "its rows are not counted")["seconds"]["decode"]
        assert decoded > 0
        block(process, others, len(world().modules))
        assert glob.glob(f"{cache}/*"), "no index is stored"
        counts = until(lambda: (c := counts_of(process))["rows"] % n == len(world().modules) and c, "their rows are not counted")
        before, opened = counts["seconds"]["decode"], counts["opened"]
        assert block(process, asked, n) == first
        after = until(lambda: (c := counts_of(process))["rows"] == counts["rows"] + n and c, "its rows are not counted")
        assert after["opened"] > opened and after["evicted"], after
        assert after["seconds"]["decode"] - before < decoded / 4, (decoded, before, after)


def block(process, rows, n):
    send(process, f"{n}\n{rows}")
    assert process.stdout.readline() == f"{n}\n".encode()
    return b"".join(process.stdout.readline() for _ in range(n))


@test("a file that nobody has is remembered, and looked for again after --forget")
def remembered(folder):
    path = world().modules[0].path
    row = f"{one_row(path)}\tprogram\n"
    with worker("--no-cache", "--module-dir", folder, "--columns", "function", "--forget", "86400", *WITH_MODULE) as patient, \
            worker("--no-cache", "--module-dir", folder, "--columns", "function", "--forget", "0.001", *WITH_MODULE) as other:
        def ask(process):
            send(process, row)
            return process.stdout.readline()
        assert ask(patient) == ask(other) == b"\n"
        shutil.copy(path, os.path.join(folder, "program"))
        until(lambda: ask(other) == b"main\n", "it is not looked for again")
        assert ask(patient) == b"\n"
        counts = until(lambda: (c := counts_of(patient))["rows"] == 2 and c, "two rows are not counted")
        assert (counts["misses"], counts["known_missing"], counts["missing"]) == (1, 1, 1), counts


@test("a file that is overwritten by another build: its rows have no name of either")
def overwritten(folder):
    path = os.path.join(folder, "program")
    shutil.copy(world().modules[0].path, path)
    row = f"{one_row(path)}\t{path}\n"
    with worker("--no-cache", "--columns", "function,reason", *WITH_MODULE) as process:
        send(process, row)
        assert process.stdout.readline() == b"main\t\n"
        with open(world().modules[1].path, "rb") as source_file, open(path, "r+b") as f:
            f.truncate(0)
            f.write(source_file.read())
        send(process, row)
        assert process.stdout.readline() == b"\tbuild-id-mismatch\n"


@test("debuginfod: the debug file of a build comes from a server")
def from_server(folder):
    module = world().modules[3]
    if os.environ.get("WRAPPER"):
        raise tap.Skip("a build for another machine has no libdebuginfod")
    # A folder that is served as http://HOST/buildid/ID/debuginfo.
    place = os.path.join(folder, "www", "buildid", module.build_id)
    os.makedirs(place)
    shutil.copy(glob.glob(f"{world().debug_dir}/.build-id/*/*.debug")[0], os.path.join(place, "debuginfo"))
    server = subprocess.Popen(["python3", "-u", "-m", "http.server", "--bind", "127.0.0.1", "--directory", os.path.join(folder, "www"), "0"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        url = server.stdout.readline().split("(")[1].split(")")[0]
        row = next((m, a) for m, a in rows_of(4000) if m is module and expected(m, a)["line"])
        out = execute(FATHOM, "resolve", "--no-cache", "--columns", "function,line", f"--debuginfod={url}", input=f"{module.build_id}\t{row[1]}\n",
                      env=dict(os.environ, DEBUGINFOD_CACHE_PATH=os.path.join(folder, "cache")), status=0).stdout
        assert out == f"{expected(*row)['function']}\t{expected(*row)['line']}\n", out
    finally:
        server.kill()
        server.communicate()
