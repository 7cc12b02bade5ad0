# SPDX-License-Identifier: MIT
"""Rows answered from stores of indexes, without the files: beside fathom addr with the files; stores that fail, and that lie."""
import contextlib
import ctypes
import glob
import os
import random
import shutil
import struct
import subprocess

import tap
from ask import FATHOM, NOBODY, addr_stream, as_user, copy_for_all, execute, records_of, run
from building import build_id, build_text, debug_path, keep_debug
from index_server import Server
from running import in_namespaces, until
from suite import COLUMNS, Module, expected, read_tsv, resolve, rows_of, same, source, stats_of, test, without_null, world

HEADER = "<8sIIIIQQQIIQQQQQII64sQ"
HEADER_SIZE = struct.calcsize(HEADER)
PRIME = 0x9e3779b97f4a7c15
MASK = (1 << 64) - 1
PAGE = 4096
LIBC = "/lib/x86_64-linux-gnu/libc.so.6"


def store(*arguments, status=0, **more):
    """One run of fathom store: its output."""
    return execute(FATHOM, "store", *arguments, status=status, **more)


def from_store(place, rows, *more, columns=COLUMNS):
    """The rows (module, address) from a store alone: no path is told, no cache is read."""
    data = "".join(f"{m.build_id}\t{a}\n" for m, a in rows)
    return read_tsv(resolve("--no-cache", "--store", place, "--columns", ",".join(columns), *more, data=data), columns)


def wanted_of(rows, kind="exact"):
    return [without_null(expected(*row, kind)) | {"offset": str(row[1])} for row in rows]


def build_all(place, modules=None):
    for m in modules or world().modules:
        store("build", "--no-cache", *m.options, place, m.path)


def entry_of(place, build):
    """The file of an index in a directory."""
    return glob.glob(os.path.join(place, "*", build[:2], build[2:] + ".fathom"))[0]


def one(folder, name="program", number=90, flags=("-O2", "-g")):
    path = os.path.join(folder, name)
    build_text(path, source(number), flags=flags)
    return Module(path)


def inside(module, n=40):
    """Addresses of a module, which fathom addr is asked for."""
    addresses = [module.text + i * max(module.text_size // n, 1) for i in range(n)]
    module.know(addresses)
    return [(module, a) for a in addresses]


def reasons(place, module, *more, **options):
    """The reasons that its rows have; none of them may have a name."""
    data = "".join(f"{module.build_id}\t{module.text + i}\n" for i in range(0, 64, 16))
    lines = resolve("--no-cache", "--store", place, "--columns", "function,reason", *more, data=data, **options).splitlines()
    assert len(lines) == 4 and all(line.startswith("\t") for line in lines), lines
    return {line.strip() for line in lines}


# What is there without the files.

@test("a store alone: 4,000 shuffled rows of 20 modules equal fathom addr with the files, row for row")
def truth(folder):
    place = os.path.join(folder, "store")
    rows = rows_of(4000)
    build_all(place)
    found = from_store(place, rows)
    same(found, wanted_of(rows))
    assert sum(len(row["inlines"]) == 2 for row in found) > 100
    same(from_store(place, rows_of(1000, 2, "return"), "--return-addresses"), wanted_of(rows_of(1000, 2, "return"), "return"))


def kinds_of_files(folder):
    """Files of many kinds, and the options by which fathom finds what belongs to them."""
    def made(name, *more, flags=("-O2", "-g"), **options):
        path = os.path.join(folder, name)
        build_text(path, source(77), *more, flags=flags, **options)
        return path

    yield made("plain"), ()
    yield made("fixed", "-no-pie"), ()
    yield made("static", "-static"), ()
    yield made("library", "-shared", "-fPIC"), ()
    yield made("compressed", "-gz"), ()
    yield made("no-debug", flags=("-O2",)), ()
    path = made("bare", flags=("-O2",))
    run("strip", path)
    yield path, ()
    path = made("split-off")
    debug = keep_debug(path)
    where = debug_path(os.path.join(folder, "ids"), build_id(path))
    shutil.move(debug, where)
    yield path, ("--debug-dir", os.path.join(folder, "ids"))
    yield where, ()  # the debug file alone
    path = made("object.o", "-c", "-ffunction-sections", flags=("-O2", "-g"))
    whole = os.path.join(folder, "module.ko")
    run("ld", "-r", "--build-id", "-o", whole, path)
    yield whole, ()
    path = os.path.join(folder, "of-cxx")
    build_text(path, "#include <map>\n#include <string>\nint main(int n, char **v) { std::map<std::string, int> m; for (int i = 0; i < n; i++) "
               "m[v[i]] += i; return m.size() + m.begin()->second; }\n", compiler="g++", language="c++", flags=("-O2", "-g"))
    yield path, ()
    yield LIBC, ()


@test("files of each kind (PIE and not, static, stripped, with a debug file, that file alone, .ko, C++, libc): each third byte of their code")
def kinds(folder):
    for i, (path, options) in enumerate(kinds_of_files(folder)):
        place = os.path.join(folder, f"store{i}")
        said = store("build", "--no-cache", *options, place, path).stdout
        assert said.startswith(f"{path}: stored, "), said
        number, addresses = build_id(path), []
        is_object = path.endswith(".ko")
        for line in run("readelf", "-SW", path).splitlines():
            words = line.replace("[ ", "[").split()
            if len(words) > 7 and " AX " in line and words[2] in ("PROGBITS", "NOBITS"):
                low, size = int(words[3], 16), int(words[5], 16)
                addresses += range(low - 2, low + size + 2, 3 if size < 20000 else 997)
        if is_object:
            # Their addresses are those of the layout, which the sections follow one another in.
            addresses = range(0x10000 - 4, 0x10000 + 3000, 3)
        data = "".join(f"{number}\t{a}\n" for a in addresses)
        columns = ("--columns", "offset,function,linkage_name,file,line,column,inlines,source,reason")
        with_file = resolve("--no-cache", *options, *columns, "--input-columns", "build_id,offset,module",
                            data="".join(f"{line}\t{path}\n" for line in data.splitlines()))
        assert resolve("--no-cache", "--store", place, *columns, data=data) == with_file, path
        if not is_object:
            told = addr_stream(path, list(addresses), *options)
            names = [line.split("\t")[1] for line in with_file.splitlines()]
            assert names == [(r["frames"][0]["function"] if r["frames"] else r["symbol"]) or "" for r in told], path


@test("offsets in the file come from the store, too; not from the index of a debug file alone")
def file_offsets(folder):
    place, debug_only = os.path.join(folder, "store"), os.path.join(folder, "debug-only")
    module = world().modules[3]  # has a separate debug file
    rows = inside(module)
    build_all(place, [module])
    by_offset = "".join(f"{module.build_id}\t{a - module.text + module.text_off}\n" for _, a in rows)
    columns = ("--columns", "function,line", "--file-offsets", "--no-cache")
    with_file = resolve("--store", place, *columns, data=by_offset)
    names = [line.split("\t")[0] for line in with_file.splitlines()]
    assert names == [expected(*row)["function"] or "" for row in rows] and any(names)
    store("build", "--no-cache", debug_only, debug_path(world().debug_dir, module.build_id))
    assert from_store(debug_only, rows, columns=["function"]) == [{"function": expected(*row)["function"] or ""} for row in rows]
    assert set(resolve("--store", debug_only, *columns, data=by_offset).splitlines()) == {"\t0"}


@test("the same file makes the same bytes: from a copy, on one thread or more, with a cache and without; and a copy is no new index")
def reproducible(folder):
    module = one(folder)
    made = []
    for i, options in enumerate((("--no-cache",), ("--no-cache", "--threads", "1"), (), (), ("--no-cache",))):
        path, place = os.path.join(folder, f"copy{i}"), os.path.join(folder, f"store{i}")
        shutil.copy(module.path, path)
        env = dict(os.environ, XDG_CACHE_HOME=os.path.join(folder, "cache"))
        store("build", *options, place, path, env=env)
        with open(entry_of(place, module.build_id), "rb") as f:
            made.append(f.read())
    assert len(set(made)) == 1
    assert len(glob.glob(os.path.join(folder, "cache", "fathom", "*.fidx"))) == 1
    # Of many units, which threads decode in any order.
    made = set()
    for i, options in enumerate((("--threads", "1"), ("--threads", "2"), ("--threads", "2"), ("--threads", "8"))):
        place = os.path.join(folder, f"libc{i}")
        store("build", "--no-cache", *options, place, LIBC)
        with open(entry_of(place, build_id(LIBC)), "rb") as f:
            made.add(f.read())
    assert len(made) == 1


@test("of two indexes of one build the more complete wins, in either order, and is never replaced by a lesser one")
def more_complete(folder):
    module = one(folder)
    bare, named = os.path.join(folder, "bare"), os.path.join(folder, "named")
    run("strip", "-o", bare, module.path)
    run("strip", "-g", "-o", named, module.path)
    by_level = [(bare, "exported symbols"), (named, "symbols"), (module.path, "lines")]
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1)):
        place, best = os.path.join(folder, "-".join(map(str, order))), -1
        for i in order:
            path, what = by_level[i]
            said = store("build", "--no-cache", place, path).stdout
            assert said.startswith(f"{path}: {'stored' if i > best else 'there already'}, {what}, "), said
            best = max(best, i)
        assert "lines" in store("check", place).stdout
        same(from_store(place, inside(module)), wanted_of(inside(module)))


@test("get writes what put takes, the same bytes; check reads all, also by a build-id; JSON has the numbers")
def moved(folder):
    first, second, index = (os.path.join(folder, name) for name in ("first", "second", "index"))
    module = one(folder)
    entry, = records_of(store("--json", "build", "--no-cache", first, module.path).stdout)
    assert entry["stored"] and entry["lines"] and entry["file"] and entry["symtab"] and entry["build_id"] == module.build_id, entry
    path = entry_of(first, module.build_id)
    assert entry["bytes"] == os.path.getsize(path)
    sizes = [int(line.replace("[ ", "[").split()[5], 16) for line in run("readelf", "-SW", module.path).splitlines() if " .debug_" in line]
    assert entry["debug_bytes"] == sum(sizes)
    store("get", first, module.build_id, index)
    assert store("put", second, index).stdout.startswith(f"{index}: stored, lines, ")
    assert store("put", second, index).stdout.startswith(f"{index}: there already, ")
    with open(path, "rb") as a, open(entry_of(second, module.build_id), "rb") as b:
        assert a.read() == b.read()
    for words in ((), (module.build_id,), (module.build_id.upper(),)):
        assert store("check", second, *words).stdout.startswith(f"{module.build_id}: sound, lines, ")
    missing = store("check", second, "00" * 20, status=1)
    assert "has no index of this build" in missing.stderr and not missing.stdout


# Directories.

def header_of(data):
    names = ("magic", "version", "order", "index_version", "codec", "file_size", "skeleton", "index", "piece", "n", "table_check",
             "image_check", "debug_size", "debug_check", "debug_info", "level", "id_size", "id", "check")
    return dict(zip(names, struct.unpack_from(HEADER, data)))


def checksum(data):
    """The checksum of the format (safe/index/index.c), computed here."""
    lanes, at, total = [1, 2, 3, 4], 0, len(data) * PRIME & MASK
    whole = len(data) // 32 * 32
    words = struct.unpack(f"<{whole // 8}Q", data[:whole])
    for at in range(0, len(words), 4):
        for i in range(4):
            lane = (lanes[i] ^ words[at + i]) * PRIME & MASK
            lanes[i] = (lane << 29 | lane >> 35) & MASK
    for lane in lanes:
        total = (total ^ lane) * PRIME & MASK
    for byte in data[whole:]:
        total = (total ^ byte) * PRIME & MASK
    return total ^ total >> 32


def pack_header(h):
    data = struct.pack(HEADER, *h.values())
    return data[:-8] + struct.pack("<Q", checksum(data[:-8]))


def unpacked(data):
    """The header of a file, and its image."""
    h = header_of(data)
    zstd = ctypes.CDLL("libzstd.so.1")
    zstd.ZSTD_decompress.restype = ctypes.c_size_t
    total = (h["skeleton"] + PAGE - 1) // PAGE * PAGE + h["index"]
    image, at = b"", HEADER_SIZE + 16 * h["n"]
    for i in range(h["n"]):
        size = struct.unpack_from("<QII", data, HEADER_SIZE + 16 * i)[1]
        room = min(h["piece"], total - len(image))
        piece = data[at:at + size]
        at += size
        if size < room:
            out = ctypes.create_string_buffer(room)
            assert zstd.ZSTD_decompress(out, ctypes.c_size_t(room), piece, ctypes.c_size_t(size)) == room
            piece = out.raw
        image += piece
    return h, image


def packed(h, image):
    """A file of an image, not compressed, with right checksums."""
    h = dict(h, codec=0)
    pieces = [image[i:i + h["piece"]] for i in range(0, len(image), h["piece"])]
    table = b"".join(struct.pack("<QII", checksum(piece), len(piece), 0) for piece in pieces)
    h["image_check"] = 0
    for piece in pieces:
        h["image_check"] = checksum(struct.pack("<QQ", h["image_check"], checksum(piece)))
    h["file_size"], h["table_check"] = HEADER_SIZE + len(table) + len(image), checksum(table)
    return pack_header(h) + table + image


@test("cut, flipped and foreign files in a store: a reason for each row, and no name; check says so; putting repairs")
def damaged(folder):
    place = os.path.join(folder, "store")
    module, other = one(folder), one(folder, "other", 91)
    build_all(place, [module, other])
    path = entry_of(place, module.build_id)
    with open(path, "rb") as f:
        whole = f.read()
    with open(entry_of(place, other.build_id), "rb") as f:
        foreign = f.read()
    choose = random.Random(3)
    cases = [("empty", b""), ("html", b"<html><body>no</body></html>" * 1000), ("of another build", foreign), ("header only", whole[:HEADER_SIZE])]
    cases += [(f"cut at {n}", whole[:n]) for n in (1, 100, HEADER_SIZE + 8, len(whole) // 2, len(whole) - 1)]
    cases += [("too long", whole + b"x")]
    for n in [choose.randrange(len(whole)) for _ in range(30)]:
        cases.append((f"bit at {n}", whole[:n] + bytes([whole[n] ^ 1 << choose.randrange(8)]) + whole[n + 1:]))
    good = wanted_of(inside(module))
    for what, data in cases:
        with open(path, "wb") as f:
            f.write(data)
        found = from_store(place, inside(module))
        # A lookup may read nothing of what is damaged.
        if found != good:
            assert {row["reason"] for row in found} == {"corrupt"} and not any(row["function"] or row["file"] for row in found), (what, found[0])
        checked = store("check", place, module.build_id, status=None)
        assert checked.returncode == 1 and len(checked.stderr.splitlines()) == 1, (what, checked)
    store("build", "--no-cache", place, module.path)
    # Only what nobody can read is replaced; the last case was read by its header.
    os.unlink(path)
    store("build", "--no-cache", place, module.path)
    same(from_store(place, inside(module)), good)
    os.unlink(path)
    os.mkdir(path)
    assert reasons(place, module) == {"corrupt"}
    os.rmdir(path)
    os.symlink(entry_of(place, other.build_id), path)
    assert reasons(place, module) == {"no-file"}


@test("an index with right checksums and flipped bits: no crash, no hang, and one row for each")
def flipped(folder):
    place = os.path.join(folder, "store")
    module = one(folder)
    build_all(place, [module])
    path = entry_of(place, module.build_id)
    with open(path, "rb") as f:
        h, image = unpacked(f.read())
    assert packed(h, image)[:HEADER_SIZE] != pack_header(h)
    choose = random.Random(11)
    index = (h["skeleton"] + PAGE - 1) // PAGE * PAGE
    head = struct.calcsize("<8sIIQII") + 4 * 40 + 64 + 16
    rows = "".join(f"{module.build_id}\t{a}\n" for a in range(0, module.text + module.text_size + 4000, 32))
    n = 0
    for i in range(200):
        changed = bytearray(image)
        for _ in range(choose.choice((1, 1, 2, 8))):
            # A third in the skeleton, in the index's header, and elsewhere.
            low, high = ((0, h["skeleton"]), (index, index + head + 8 * 16 + 8), (index + PAGE, len(image)))[i % 3]
            changed[choose.randrange(low, high)] = choose.choice((0, 1, 0x7f, 0x80, 0xff, choose.randrange(256)))
        # The index's header has a checksum of its own.
        size = head + 8 * 16
        changed[index + size:index + size + 8] = struct.pack("<Q", checksum(bytes(changed[index:index + size])))
        with open(path, "wb") as f:
            f.write(packed(h, bytes(changed)))
        done = execute(FATHOM, "resolve", "--no-cache", "--memory", "64M", "--store", place, "--columns", "function,reason",
                       input=rows.encode(), text=False, processor_seconds=20, status=0)
        assert done.stdout.count(b"\n") == rows.count("\n"), i
        n += b"\tcorrupt\n" in done.stdout
    assert n > 10, n


@test("two writers at once, ten times, and a reader: the more complete one stays, and no name is wrong")
def two_writers(folder):
    module = one(folder)
    bare = os.path.join(folder, "bare")
    run("strip", "-o", bare, module.path)
    rows = inside(module)
    names = [expected(*row)["function"] for row in rows]
    for i in range(10):
        place = os.path.join(folder, f"store{i}")
        writers = [subprocess.Popen([FATHOM, "store", "build", "--no-cache", place, path], stdout=subprocess.DEVNULL)
                   for path in (bare, module.path, bare, module.path)]
        while any(w.poll() is None for w in writers):
            for row, name in zip(from_store(place, rows), names):
                assert row["function"] in (name, "") or row["source"] in ("fde", "dynsym"), (row, name)
        assert [w.returncode for w in writers] == [0] * 4
        same(from_store(place, rows), wanted_of(rows))
        assert not glob.glob(os.path.join(place, "*", "*", "*.tmp"))


@test("a writer that is killed at any time leaves nothing that is read, and the next one is not in its way")
def killed(folder):
    tap.need_traced_programs()
    module = one(folder)
    rows = inside(module)
    place = os.path.join(folder, "store")
    n = 0
    for calls, most in (("mkdir,?mkdirat", 4), ("pwrite64", 1), ("fsync", 1), ("?link,linkat", 1), ("?unlink,unlinkat", 1), ("getrandom", 2)):
        for number in range(1, most + 1):
            done = execute("strace", "-f", "-o", "/dev/null", "-e", f"trace={calls}", "-e", f"inject={calls}:signal=KILL:when={number}",
                           FATHOM, "store", "build", "--no-cache", place, module.path, status=None)
            n += done.returncode != 0
            found = from_store(place, rows)
            assert found == wanted_of(rows) or {row["reason"] for row in found} == {"no-file"}, (calls, number, found[0])
            shutil.rmtree(place, ignore_errors=True)
    assert n >= 5, n
    # By time, too: whatever it does then.
    for i in range(20):
        with subprocess.Popen([FATHOM, "store", "build", "--no-cache", place, module.path], stdout=subprocess.DEVNULL) as process:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.002 * i)
            process.kill()
        found = from_store(place, rows)
        assert found == wanted_of(rows) or {row["reason"] for row in found} == {"no-file"}, i
    store("build", "--no-cache", place, module.path)
    same(from_store(place, rows), wanted_of(rows))


@test("a store that is full: one line says so, nothing is left, and what was there answers")
def full(folder):
    module, other = one(folder), one(folder, "other", 91)
    disk = os.path.join(folder, "disk")
    os.mkdir(disk)
    tap.need_mount_namespaces()
    script = (f"set -e; mount -t tmpfs -o size=128k none {disk}; {FATHOM} store build --no-cache {disk}/s {module.path}; "
              f"head -c 1M /dev/zero > {disk}/rest 2>/dev/null || true; "
              f"{FATHOM} store build --no-cache {disk}/s {other.path} && exit 7 || [ $? = 2 ]; find {disk} -name '*.tmp'; "
              f"printf '{module.build_id}\\t{module.text + 8}\\n' | {FATHOM} resolve --no-cache --store {disk}/s --columns function")
    done = execute(*in_namespaces("-m", then=script), status=0)
    assert "No space left on device" in done.stderr and len(done.stderr.splitlines()) == 1, done
    lines = done.stdout.splitlines()
    assert len(lines) == 2 and "stored" in lines[0] and lines[1], lines


@test("a store that others own: read, not written")
def read_only(folder):
    if os.geteuid():
        raise tap.Skip("only root can run the command as another user")
    module, other = one(folder), one(folder, "other", 91)
    place = os.path.join(folder, "store")
    build_all(place, [module])
    command = copy_for_all(folder)
    for where, folders, _ in os.walk(place):
        os.chmod(where, 0o755)
    os.chmod(folder, 0o755)
    refused = execute(*as_user(NOBODY, command, "store", "build", "--no-cache", place, other.path), status=2)
    assert "Permission denied" in refused.stderr and len(refused.stderr.splitlines()) == 1, refused
    data = f"{module.build_id}\t{module.text + 8}\n"
    found = execute(*as_user(NOBODY, command, "resolve", "--no-cache", "--store", place, "--columns", "function"), input=data, status=0).stdout
    module.know([module.text + 8])
    assert found == (expected(module, module.text + 8)["function"] or "") + "\n"
    os.chmod(entry_of(place, module.build_id), 0)
    found = execute(*as_user(NOBODY, command, "resolve", "--no-cache", "--store", place, "--columns", "function,reason"), input=data, status=0).stdout
    assert found == "\tno-permission\n"


@test("a store that is removed, and one whose index is replaced, while a worker reads it: a reason, then names again")
def removed_while_read(folder):
    module = one(folder, number=93)
    place = os.path.join(folder, "store")
    build_all(place, [module])
    rows = inside(module, 200)
    ask = [FATHOM, "resolve", "--no-cache", "--store", place, "--columns", "function,reason", "--forget", "0.001"]
    with subprocess.Popen(ask, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        def answers(some):
            worker.stdin.write("".join(f"{m.build_id}\t{a}\n" for m, a in some))
            worker.stdin.flush()
            return [worker.stdout.readline().rstrip("\n").split("\t") for _ in some]

        wanted = [[expected(*row)["function"] or "", expected(*row)["reason"] or ""] for row in rows]
        assert answers(rows[:1]) == wanted[:1]
        shutil.move(place, place + ".gone")
        found = answers(rows)
        assert found == wanted or all(not name and reason for name, reason in found), found
        shutil.move(place + ".gone", place)
        until(lambda: answers(rows) == wanted, "names again")
        # A lesser one takes its place, not by a writer's rules.
        bare = os.path.join(folder, "bare")
        run("strip", "-o", bare, module.path)
        store("build", "--no-cache", place + "2", bare)
        shutil.copy(entry_of(place + "2", module.build_id), entry_of(place, module.build_id))
        for name, reason in answers(rows):
            assert name in ("", *(w[0] for w in wanted)) or name.startswith("func@") or reason, (name, reason)
        worker.stdin.close()
        assert worker.wait() == 0


# Servers.

@test("an HTTP server: built, checked, and 4,000 rows of 20 modules equal fathom addr; the second worker on the host reads headers only")
def http(folder):
    env = dict(os.environ, XDG_CACHE_HOME=os.path.join(folder, "cache"))
    rows = rows_of(4000)
    data = "".join(f"{m.build_id}\t{a}\n" for m, a in rows)
    with Server(folder) as server:
        for m in world().modules:
            assert ": stored, " in store("build", *m.options, server.url, m.path, env=env).stdout
        assert "sound" in store("check", server.url, world().modules[0].build_id).stdout
        refused = store("check", server.url, status=2).stderr
        assert "only a directory can tell" in refused, refused
        for more in (True, False):
            server.requests.clear()
            done = execute(FATHOM, "resolve", "--stats", "--store", server.url, "--columns", ",".join(COLUMNS), input=data, env=env, status=0)
            same(read_tsv(done.stdout, COLUMNS), wanted_of(rows))
            counts = stats_of(done.stderr)
            assert counts["from_stores"] == counts["opened"] == len(world().modules), counts
            assert all(method == "GET" for method, _, _ in server.requests)
            assert (len(server.requests) > len(world().modules)) == more, len(server.requests)
        # A server without ranges: the same rows.
        server.fault = "whole"
        same(from_store(server.url, rows), wanted_of(rows))


@test("one row of libc costs some kilobytes of its index, and at most 20 requests")
def few_bytes(folder):
    libc = Module(LIBC)
    address = libc.text + libc.text_size // 2
    libc.know([address])
    with Server(folder) as server:
        entry, = records_of(store("--json", "build", "--no-cache", server.url, LIBC).stdout)
        server.requests.clear()
        server.bytes_out = 0
        out = resolve("--no-cache", "--store", server.url, "--columns", "function", data=f"{libc.build_id}\t{address}\n")
        assert out.strip() == expected(libc, address)["function"] and len(server.requests) <= 20 and server.bytes_out < entry["bytes"] / 2, (out, len(server.requests), server.bytes_out)


@test("servers that answer with HTML, half a body, too few bytes, redirects in a circle, errors, one byte a second, nothing: a reason, in time")
def bad_servers(folder):
    module = one(folder)
    build_all(folder, [module])
    for fault, reason in (("html", "corrupt"), ("half", "corrupt"), ("short", "corrupt"), ("circle", "no-file"), ("error", "no-file"),
                          ("refuse", "no-permission"), ("slow", "timeout"), ("silent", "timeout")):
        with Server(folder, fault) as server:
            assert reasons(server.url, module, "--store-timeout", "0.5", timeout=30) == {reason}, fault
            done = store("check", "--store-timeout", "0.5", server.url, module.build_id, status=None, timeout=30)
            assert done.returncode in (1, 2) and len(done.stderr.splitlines()) == 1, (fault, done)
            if fault in ("slow", "silent"):
                # The block's own deadline counts, too.
                assert reasons(server.url, module, "--deadline", "0.3", timeout=30) == {reason}, fault
    with Server(folder) as server:
        server.fault = "no-put"
        done = store("build", "--no-cache", server.url, one(folder, "other", 91).path, status=2)
        assert "takes no PUT" in done.stderr
    assert reasons("http://127.0.0.1:9", module) == {"no-file"}


@test("a server that has another build's index under a key: no name")
def wrong_build(folder):
    module, other = one(folder), one(folder, "other", 91)
    build_all(folder, [module, other])
    shutil.copy(entry_of(folder, other.build_id), entry_of(folder, module.build_id))
    with Server(folder) as server:
        assert reasons(server.url, module) == {"corrupt"}
        assert "another build" in store("check", server.url, module.build_id, status=1).stderr


@test("two hosts put an index at once on a server that compares tags: the more complete one stays")
def put_at_once(folder):
    module = one(folder)
    bare = os.path.join(folder, "bare")
    run("strip", "-o", bare, module.path)
    with Server(folder) as server:
        for _ in range(5):
            writers = [subprocess.Popen([FATHOM, "store", "build", "--no-cache", server.url, path], stdout=subprocess.DEVNULL)
                       for path in (bare, module.path, bare)]
            assert [w.wait() for w in writers] == [0, 0, 0]
            assert ": sound, lines, " in store("check", server.url, module.build_id).stdout
            os.unlink(entry_of(folder, module.build_id))


# Commands.

SCRIPT = """#!/bin/sh
dir=$1
case $2 in
get) [ -f "$dir/$3" ] || exit 1; tail -c +$(($4 + 1)) "$dir/$3" | head -c $5 ;;
put) mkdir -p "$dir/$(dirname "$3")" && cat > "$dir/$3.new" && mv "$dir/$3.new" "$dir/$3" ;;
*) exit 2 ;;
esac
"""


@test("a command as a store: put, got, and 400 rows equal fathom addr; one that fails, hangs, or writes too much: a reason")
def command(folder):
    script = os.path.join(folder, "client")
    with open(script, "w", encoding="ascii") as f:
        f.write(SCRIPT)
    os.chmod(script, 0o755)
    place = f"!{script} '{folder}/with a blank'"
    modules = world().modules[:4]
    for m in modules:
        assert ": stored, " in store("build", "--no-cache", *m.options, place, m.path).stdout
        assert ": there already, " in store("build", "--no-cache", *m.options, place, m.path).stdout
    rows = [row for m in modules for row in inside(m, 100)]
    same(from_store(place, rows), wanted_of(rows))
    missing = one(folder)
    assert reasons(place, missing) == {"no-file"}
    for script, reason in (("exit 3 #", "no-file"), ("sleep 600 #", "timeout"), ("exec yes #", "timeout"), ("echo no #", "corrupt"),
                           ("kill -9 $$ #", "no-file"), ("(sleep 600 & sleep 600) #", "timeout"), ("/no/such/program #", "no-file")):
        assert reasons(f"!{script}", modules[0], "--store-timeout", "0.5", timeout=30) == {reason}, script


# Misses.

@test("--store-put: what no store has is made whole of the file that is found, and the next worker needs no file")
def put_on_miss(folder):
    module = world().modules[3]
    place = os.path.join(folder, "store")
    rows = inside(module)
    data = "".join(f"{m.build_id}\t{a}\t{m.path}\n" for m, a in rows)
    words = ("--no-cache", "--columns", ",".join(COLUMNS), "--store", place)
    done = execute(FATHOM, "resolve", *words, "--debug-dir", world().debug_dir, "--input-columns", "build_id,offset,module", input=data, status=0)
    assert not os.path.exists(place)
    done = execute(FATHOM, "resolve", *words, "--stats", "--store-put", "--debug-dir", world().debug_dir, "--input-columns", "build_id,offset,module",
                   input=data, status=0)
    same(read_tsv(done.stdout, COLUMNS), wanted_of(rows))
    counts = stats_of(done.stderr)
    assert counts["put"] == 1 and counts["from_stores"] == 1, counts
    same(from_store(place, rows), wanted_of(rows))
    # A store that cannot be written to costs nothing but time.
    done = execute(FATHOM, "resolve", "--no-cache", "--columns", ",".join(COLUMNS), "--store", "/proc/nowhere", "--store-put", "--debug-dir",
                   world().debug_dir, "--input-columns", "build_id,offset,module", input=data, status=0)
    same(read_tsv(done.stdout, COLUMNS), wanted_of(rows))
    assert "needs a --store" in execute(FATHOM, "resolve", "--store-put", status=2).stderr


@test("--debuginfod and --store-put: three workers of one host that miss a build at once download it once, one after the other")
def one_download(folder):
    if os.environ.get("WRAPPER"):
        raise tap.Skip("a build for another machine has no libdebuginfod")
    module = world().modules[3]
    place = os.path.join(folder, "store")
    served = os.path.join(folder, "www", "buildid", module.build_id, "debuginfo")
    os.makedirs(os.path.dirname(served))
    shutil.copy(debug_path(world().debug_dir, module.build_id), served)
    row = next(row for row in inside(module) if expected(*row)["line"])
    data = f"{module.build_id}\t{row[1]}\n"
    with Server(os.path.join(folder, "www")) as server:
        server.delay = 0.3
        workers = [subprocess.Popen([FATHOM, "resolve", "--store", place, "--store-put", f"--debuginfod={server.url}", "--columns", "function,line"],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                    env=dict(os.environ, XDG_CACHE_HOME=os.path.join(folder, "cache"),
                                             DEBUGINFOD_CACHE_PATH=os.path.join(folder, f"cache{i}"))) for i in range(3)]
        for worker in workers:
            worker.stdin.write(data)
            worker.stdin.close()
        for worker in workers:
            assert worker.stdout.read() == f"{expected(*row)['function']}\t{expected(*row)['line']}\n"
            assert worker.wait() == 0
        assert server.most_active == 1 and sum(path.endswith("/debuginfo") for _, path, _ in server.requests) == 1, server.requests
    assert "lines" in store("check", place).stdout
