# SPDX-License-Identifier: MIT
"""Where names of the kernel are: kernels with their files and without, whose symbols nm and readelf
know where they were linked."""
import collections
import fnmatch
import re
import threading
import time

import tap

from ask import FATHOM, LLVM, NOBODY, run
from ask import find as find_in_file
from kernel import ask, at, find, test
from live import kallsyms, sampled
from root import KASLR, LINK, RELEASE, Root, SECTIONS, build_kernel, nm, section_of


def symbols_of(path):
    """{name: (value, size, type, binding)} by readelf."""
    found = {}
    for line in run("readelf", "-sW", path).splitlines():
        fields = line.split()
        if len(fields) == 8 and fields[6].isdigit() and fields[3] not in ("SECTION", "FILE"):
            found[fields[7]] = (int(fields[1], 16), int(fields[2], 0), fields[3].lower(), fields[4].lower())
    return found


def in_image(root):
    return {name: value + KASLR for value, _, name in nm(root.vmlinux) if value >= LINK}


@test("each name is where the kernel says, with the size that its address has")
def exact(folder):
    root = Root(folder)
    wanted = in_image(root)
    records, complaint = find(sorted(wanted), root=root.path)
    assert complaint == "" and {r["query"]: at(r) for r in records} == wanted
    kinds = {name: kind for _, kind, name in nm(root.vmlinux)}
    answers, _ = ask([at(r) for r in records], root=root.path, stream=True)
    for r, answer in zip(records, answers, strict=True):
        assert (r["module"], r["table"], r["source"], r["module_address"]) == ("[kernel]", "kallsyms", "kallsyms", None)
        assert r["binding"] == ("global" if kinds[r["name"]].isupper() else "local") and r["rank"] == 1, r
        # Of several names at one address, one answers for it.
        assert r["size"] == (answer["size"] if answer["symbol"] == r["name"] else r["size"]), f"{r} {answer}"
    by_name = {r["name"]: r for r in records}
    assert [by_name[n]["type"] for n in ("vfs_read", "helper", "jiffies", "zeroed", "_etext")] == \
        ["func", "func", "object", "object", "notype"]
    assert by_name["vfs_read"]["size"] == by_name["ksys"]["size"] == wanted["start_kernel"] - wanted["vfs_read"] \
        or by_name["vfs_read"]["size"] > 0
    assert not by_name["jiffies"]["size"]


@test("with the files, sizes and types are those that they state")
def with_files(folder):
    root = Root(folder)
    root.install()
    stated = symbols_of(root.vmlinux)
    wanted = in_image(root)
    records, complaint = find(sorted(wanted), root=root.path)
    assert complaint == "", complaint
    for r in records:
        value, size, kind, binding = stated[r["name"]]
        assert (at(r), int(r["module_address"], 16), r["size"] or 0) == (value + KASLR, value, size), r
        assert kind in ("notype", r["type"]) and r["binding"] == binding and r["table"] == "kallsyms", f"{r} {kind}"
    places, stated = section_of(root.module), symbols_of(root.module)
    wanted = {name: address for address, _, name in root.module_symbols()}
    records, complaint = find(sorted(wanted), root=root.path)
    assert complaint == "" and {r["name"]: at(r) for r in records} == wanted
    for r in records:
        value, size, kind, _ = stated[r["name"]]
        assert (int(r["module_address"], 16), r["size"] or 0) == (value, size), r
        assert kind in ("notype", r["type"]) and r["module"] == "[my_mod]" and places[r["name"]] in SECTIONS, r


@test("names with a module, with brackets and without")
def libraries(folder):
    root = Root(folder)
    root.add(SECTIONS[".text"] + 0x8000, "t", "vfs_read", "my_mod")
    root.add(SECTIONS[".text"] + 0x9000, "t", "bpf_prog_1", "bpf")
    root.save()
    image, module = in_image(root)["vfs_read"], SECTIONS[".text"] + 0x8000
    for query, wanted in (("vfs_read", [image, module]), ("[kernel]:vfs_read", [image]), ("kernel:vfs_read", [image]),
                          ("[my_mod]:vfs_read", [module]), ("my_mod:vfs_read", [module]), ("my_*:vfs_r*", [module]),
                          ("my_mod:/^vfs_r/", [module]), ("bpf:*", [SECTIONS[".text"] + 0x9000])):
        records, _ = find([query], root=root.path)
        assert [at(r) for r in records] == wanted, f"{query}: {records}"
    for query, reason in (("other:vfs_read", "no-file"), ("bpf:vfs_read", "no-such-symbol"), ("k:vfs_read", "no-file"),
                          ("vfs_rea", "no-such-symbol"), ("vfs_read@V1", "no-such-symbol"), ("my_mod:", "bad-address")):
        records, _ = find([query], root=root.path)
        assert [(r["reason"], r["address"]) for r in records] == [(reason, None)], records


@test("patterns and expressions, as Python understands them")
def patterns(folder):
    root = Root(folder)
    names = set(in_image(root)) | {name for _, _, name in root.module_symbols()}
    for pattern in ("*", "*sys*", "vfs_?ead", "[a-k]*", "mod_*", "__*"):
        found = {r["name"] for r in find([pattern], root=root.path)[0]}
        assert found == {n for n in names if fnmatch.fnmatchcase(n, pattern)}, f"{pattern}: {found}"
    for text in ("sys", "^_", "read$", "^(vfs|mod)_[rw]", "[0-9]"):
        found = {r["name"] for r in find([f"/{text}/"], root=root.path)[0]} - {None}
        assert found == {n for n in names if re.search(text, n)}, f"{text}: {found}"
        assert found == {r["name"] for r in find([text], "--regex", root=root.path)[0]} - {None}
    exported = {r["name"] for r in find(["*"], "--exported", root=root.path)[0]}
    assert exported == {name for _, kind, name in nm(root.vmlinux) + nm(root.module)
                        if kind.isupper() and kind != "U" and name in names}


@test("all copies of a name, the image's first; of each exported ones, then weak ones, then by address")
def copies(folder):
    root = Root(folder)
    start = max(in_image(root).values()) + 0x1000
    for i, (kind, owner) in enumerate([("t", None), ("W", None), ("t", None), ("T", None), ("t", "my_mod"),
                                       ("T", "my_mod"), ("t", None), ("t", None)]):
        root.add(start + 64 * i, kind, "copied", owner)
    root.add(start + 64 * 7, "t", "copied")
    root.save()
    records, _ = find(["copied", "cop*", "vfs_read"], root=root.path)
    wanted = [3, 1, 0, 2, 6, 7, 5, 4]
    for query in ("copied", "cop*"):
        mine = [r for r in records if r["query"] == query]
        assert [(at(r) - start) // 64 for r in mine] == wanted, mine
        assert [r["rank"] for r in mine] == list(range(1, 9))
    assert [r["query"] for r in records] == ["copied"] * 8 + ["cop*"] * 8 + ["vfs_read"]
    text = run(FATHOM, "find", "--limit", "2", "--sysroot", root.path, "kernel", "copied")
    assert [line.split()[0] for line in text.splitlines()] == [hex(start + 192), hex(start + 64)], text


@test("one address for a name: addr and find --first, with the files and without, and kallsyms read only if need be")
def one_address(folder):
    root = Root(folder)
    wanted = in_image(root)
    # A module has a static function and an exported one that are called as functions of the image are.
    start = max(wanted.values()) + 0x10000
    root.add(start, "t", "helper", "my_mod")
    root.add(start + 64, "T", "vfs_read", "my_mod")
    root.save()
    names = sorted({*wanted, *(name for _, _, name in root.module_symbols()), "no_such_name"})
    for files in (False, True):
        if files:
            root.install()
        found = {r["query"]: r for r in find(names, "--first", root=root.path)[0]}
        asked = {r["input"]: r for r in ask(names, "--names-only", root=root.path, stream=True)[0]}
        assert {n: r["address"] for n, r in asked.items()} == {n: found[n]["address"] for n in names}, files
        assert at(asked["helper"]) == wanted["helper"] and at(asked["vfs_read"]) == wanted["vfs_read"], files
    # With the files, functions of the image are found without the rest of kallsyms, which the kernel writes in 50 ms.
    root.save("".join(f"{wanted[name]:016x} T {name}\n" for name in ("_stext", "_text") if name in wanted))
    (record,), _ = ask(["vfs_read"], "--names-only", root=root.path)
    assert at(record) == wanted["vfs_read"], record


@test("what only the image's file knows is found there")
def beside_kallsyms(folder):
    root = Root(folder)
    wanted = in_image(root)
    gone = ("jiffies", "zeroed", "banner", "helper")
    root.lines = [line for line in root.lines if line.split()[2] not in gone]
    root.save()
    queries = [*gone, "vfs_read", "jiff*", "this_cpu"]
    assert [r["reason"] for r in find(queries, root=root.path)[0]] == ["no-such-symbol"] * 4 + [None] + \
        ["no-such-symbol"] * 2
    root.install()
    records, _ = find(queries, root=root.path)
    assert [(r["query"], at(r)) for r in records[:6]] == [(n, wanted[n]) for n in (*gone, "vfs_read")] + \
        [("jiff*", wanted["jiffies"])], records
    assert [r["table"] for r in records] == ["symtab"] * 4 + ["kallsyms", "symtab", None], records
    # A template of per-CPU memory is nowhere.
    assert records[6]["reason"] == "no-such-symbol" and len(records) == 7, records


@test("hidden addresses: no permission, and what helps")
def hidden(folder):
    root = Root(folder)
    root.install()
    root.save("".join(f"{0:016x} {line.split(' ', 1)[1]}\n" for line in root.lines))
    records, complaint = find(["vfs_read", "mod_*", "kernel.c:20", "other:x"], root=root.path)
    assert [r["reason"] for r in records] == ["no-permission"] * 4, records
    assert "kptr_restrict" in complaint and "CAP_SYSLOG" in complaint


def lines_of(path):
    """The lines that rows of a file's line tables have, by readelf."""
    text = run("readelf", "--debug-dump=decodedline", path)
    return sorted({int(line.split()[1]) for line in text.splitlines()
                   if len(line.split()) > 2 and line.endswith("x") and line.split()[1].isdigit()})


def file_find(path, queries, *options):
    records = collections.defaultdict(set)
    for r in find_in_file(path, queries, *options)[0]:
        if r["address"]:
            records[r["query"]].add((r["name"], at(r), r["size"], r["inlined_into"], r["line"]))
    return records


@test("code of lines and inlined copies, where KASLR has put the image")
def image_debug(folder):
    root = Root(folder)
    root.install()
    queries = [f"kernel.c:{line}" for line in lines_of(root.vmlinux)]
    assert len(queries) > 15, queries
    for asked, options in ((queries, ()), (["twice", "four_*", "/./"], ("--inlined",))):
        wanted = file_find(root.vmlinux, asked, *options)
        found = collections.defaultdict(set)
        records, complaint = find(asked, *options, root=root.path)
        assert complaint == "", complaint
        for r in records:
            if r["address"] and r["module"] == "[kernel]":
                found[r["query"]].add((r["name"], at(r) - KASLR, r["size"], r["inlined_into"], r["line"]))
                assert int(r["module_address"], 16) == at(r) - KASLR and r["rank"] >= 1, r
        assert found == wanted and sum(map(len, found.values())) > 5, f"{found} {wanted}"
    out = run(LLVM, "--obj=" + root.vmlinux, "--inlines",
              input="".join(f"{at(r) - KASLR:#x}\n" for r in find(queries, root=root.path)[0] if r["size"]))
    peers = [block.splitlines()[1].rsplit(":", 2)[1] for block in out.strip().split("\n\n")]
    mine = [r["query"].split(":")[1] for r in find(queries, root=root.path)[0] if r["size"]]
    assert len(mine) > 10 and mine == peers, f"{mine} {peers}"


@test("code of lines and inlined copies in each section of a module")
def module_debug(folder):
    root = Root(folder)
    root.install(vmlinux=False)
    records, complaint = find([f"module.c:{line}" for line in lines_of(root.module)], root=root.path)
    assert "no vmlinux" in complaint
    seen = set()
    for r in records:
        if not r["size"]:
            continue
        section, start = max(((s, a) for s, a in SECTIONS.items() if a <= at(r)), key=lambda item: item[1])
        offset = at(r) - start
        assert int(r["module_address"], 16) == offset and r["module"] == "[my_mod]", r
        peer = run("addr2line", "-j", section, "-e", root.module, hex(offset)).split(" (")[0].strip()
        assert peer.endswith(":" + r["query"].split(":")[1]), f"{r} {peer}"
        seen.add(section)
    # What is freed once it has run is nowhere.
    assert seen == {".text", ".text.unlikely", ".exit.text"}, seen
    records, _ = find(["my_mod:mixed"], "--inlined", root=root.path)
    assert len(records) >= 5 and {r["inlined_into"] for r in records} == {"mod_work", "mod_helper", "mod_rare", "mod_stop"}
    assert [r["reason"] for r in find(["kernel:twice"], "--inlined", root=root.path)[0]] == ["no-debug-info"]


@test("an image of another build has no lines for us, and no sizes")
def other_build(folder):
    root = Root(folder)
    root.place(build_kernel(folder, "-O1", name="other"), f"usr/lib/debug/boot/vmlinux-{RELEASE}")
    records, complaint = find(["vfs_read", "kernel:kernel.c:20", "kernel.c:20"], root=root.path)
    assert [r["reason"] for r in records] == [None, "build-id-mismatch", "build-id-mismatch"], records
    assert records[0]["module_address"] is None and "build-id is another" in complaint


@test("damaged lists, and more modules than there can be")
def damaged(folder):
    root = Root(folder)
    text = "\n".join(root.lines)
    for damage in ("\n\n", "x\ty\n", f"{LINK:016x} t \t[]\n", f"{LINK:016x} t name\t[unclosed\n", "\0" * 100 + "\n",
                   f"{LINK + 1:016x} t {'n' * 5000}\n", f"{2 ** 64 - 1:016x} t last\n"):
        root.save(damage + text + "\n" + damage)
        assert [at(r) for r in find(["vfs_read"], root=root.path)[0]] == [in_image(root)["vfs_read"]], damage
        find(["*", "/./", "n*"], root=root.path)
    root.save(text + "\n" + "".join(f"{SECTIONS['.text'] + 16 * i:016x} t same\t[mod{i % 5000}]\n" for i in range(20000)))
    records, complaint = find(["same", "mod1:same", "mod4999:same"], root=root.path, processor_seconds=20)
    assert "more than 4,096 modules" in complaint
    assert sum(r["query"] == "mod1:same" for r in records) == 4 and records[-1]["reason"] == "no-file", records[-1]


@test("many queries at once, the same as one by one")
def many(folder):
    root = Root(folder)
    root.install()
    queries = ["vfs_read", "mod_*", "/sys/", "nothing", "kernel.c:20", "my_mod:counter", "jiffies", "vfs_read@@", "helper"]
    together, _ = find(queries, root=root.path)
    alone = [r for q in queries for r in find([q], root=root.path)[0]]
    assert together == alone, f"{together} {alone}"


@test("a module that is loaded while it is waited for")
def waited(folder):
    root = Root(folder)
    everything = root.lines
    root.lines = everything[:-len(root.module_symbols())]
    root.save()
    assert find(["mod_work"], root=root.path)[0][0]["reason"] == "no-such-symbol"

    def load():
        time.sleep(0.5)
        root.lines = everything
        root.save()
    thread = threading.Thread(target=load)
    thread.start()
    records, _ = find(["mod_work"], "--wait", "60", root=root.path)
    thread.join()
    assert at(records[0]) == SECTIONS[".text"], records


@test("this kernel's own names: thousands of exact ones, and patterns")
def live(_):
    places = collections.defaultdict(set)
    for address, kind, name, owner in kallsyms():
        if kind not in "AaUNn" and address and not re.match(r"\$|\.L", name):
            places[name].add((address, f"[{owner or 'kernel'}]"))
    names = [n for n in sampled(sorted(places)) if re.fullmatch(r"\w+", n)]
    records, _ = find(names)
    found = collections.defaultdict(set)
    for r in records:
        found[r["query"]].add((at(r), r["module"]))
    assert found == {n: places[n] for n in names}
    for pattern in ("vfs_*", "*_lock", "tcp_?[a-m]*"):
        records, _ = find([pattern])
        assert {(r["linkage_name"], at(r), r["module"]) for r in records} == \
            {(n, *p) for n in places if fnmatch.fnmatchcase(n, pattern) for p in places[n]}, pattern


@test("nobody is told where names are, but why not", needs_root=True)
def live_hidden(_):
    with open("/proc/kallsyms", encoding="ascii") as f:
        if run("head", "-1", "/proc/kallsyms", user=NOBODY) == f.readline():
            raise tap.Skip("this kernel hides nothing")
    records, complaint = find(["vfs_read"], user=NOBODY)
    assert records[0]["reason"] == "no-permission" and "CAP_SYSLOG" in complaint, records
