# SPDX-License-Identifier: MIT
"""Names in files: by their tables, their versions, patterns, and what people call functions."""
import fnmatch
import os
import random
import re
import shutil

import finding
from ask import FATHOM, addr, fathom, find, run
from building import add_link, add_minidebuginfo, build_text, keep_debug, nm, strip_headers
from counting import cost_of
from finding import LIBC, address, build, library, places
from suite import PROGRAMS, test


def names_of(records):
    return {r["linkage_name"] for r in records if r["rank"] is not None}


@test("a file: every exported name of libc is where nm says, by hash")
def libc_names(_):
    known = nm(LIBC, "-D")
    names = sorted(known)
    assert len(names) > 2000, len(names)
    records, _ = find(LIBC, names, "--literal", "--exported")
    got = {}
    for r in records:
        got.setdefault(r["query"], set()).add(int(r["module_address"] or "0", 16))
    # Versions have symbols of their own, at 0.
    wrong = {n: (got.get(n), known[n]) for n in names
             if got.get(n) != {value for value, kind in known[n] if kind != "A"} and known[n][0][1] != "A"}
    assert not wrong, f"{len(wrong)}: {list(wrong.items())[:5]}"


@test("a file: types, sizes, bindings and versions as readelf says")
def libc_details(_):
    words = {"FUNC": "func", "OBJECT": "object", "TLS": "tls", "IFUNC": "ifunc", "NOTYPE": "notype"}
    known = set()
    for line in run("readelf", "-W", "--dyn-syms", LIBC).splitlines():
        m = re.match(r"\s*\d+: ([0-9a-f]+)\s+(\d+|0x\w+) (\w+)\s+(\w+)\s+\w+\s+(\w+) ([^@ ]+)@(@?)(\S+)", line)
        if m and m[5] not in ("UND", "ABS"):
            known.add((m[6], int(m[1], 16), int(m[2], 0), words[m[3]], m[4].lower(), m[8], m[7] == "@"))
    assert len(known) > 2000
    records, _ = find(LIBC, "*", "--exported")
    got = {(r["name"], int(r["module_address"], 16), r["size"] or 0, r["type"], r["binding"], r["version"],
            r["default_version"]) for r in records if r["version"]}
    assert got == known, f"{list(known - got)[:5]} {list(got - known)[:5]}"


@test("a file whose debug section has no unit: nothing is sorted that is not there")
def no_units(folder):
    sorted_ = build(folder, "sorted.so", "-shared", "-fPIC", source=os.path.join(PROGRAMS, "sorted.c"))
    path = build(folder, "p", "-ldl", "-pthread", "-g0")
    run("objcopy", "--add-section", ".debug_info=/dev/null", "--add-section", ".debug_abbrev=/dev/null", path)
    env = dict(os.environ, LD_PRELOAD=sorted_, ASAN_OPTIONS="verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", ""))
    for query, *options in (["a.c:1"], ["main", "--inlined"]):
        assert find(path, query, *options, status=1, env=env)[0][0]["reason"] == "no-such-symbol"


@test("a file: static functions through .symtab, and all names of it as nm has them")
def symtab(folder):
    path = build(folder, "p", "-ldl", "-pthread")
    known = nm(path)
    for name, values in known.items():
        got = places(path, name, "--literal")[name]
        # Sections, files and mapping symbols are no names of anything; TLS has no address.
        want = sorted(v for v, kind in values)
        if name in ("thread_own", "thread_hidden"):
            records, _ = find(path, name, "--literal")
            assert [int(r["module_address"], 16) for r in records] == want, (name, records)
            assert records[0]["type"] == "tls" and records[0]["address"] is None, records
        else:
            assert sorted(got) == want, (name, got, want)
    assert "hidden_function" in known


@test("a file: what is not there has a reason, each one of its own")
def reasons(folder):
    path = build(folder, "p", "-ldl", "-pthread")
    stripped = os.path.join(folder, "static")
    build_text(stripped, "int main(void){return 0;}", "-static", "-s")
    for target, query, reason in [(path, "nothing_like_it", "no-such-symbol"),
                                  (path, "libother.so:main", "no-file"),
                                  (path, "asked.c:9999", "no-such-symbol"),
                                  (LIBC, "/(/", "bad-address"),
                                  (path, "main@V_9", "no-such-symbol"),
                                  (stripped, "main", "no-symbols"),
                                  (stripped, "main.c:1", "no-debug-info")]:
        records, errors = find(target, query, status=(1,))
        assert [(r["reason"], r["address"], r["rank"]) for r in records] == [(reason, None, None)], records
        assert (reason == "bad-address") == ("expression" in errors), errors


@test("patterns and expressions find what grep finds among nm's names")
def patterns(_):
    names = set(nm(LIBC, "-D"))
    versions = {n for n, values in nm(LIBC, "-D").items() if values[0][1] == "A"}
    for pattern in ["str*", "*cpy", "mem?cpy", "pthread_[a-m]*", "[!_a-w]*", "__*_chk", "*"]:
        records, _ = find(LIBC, pattern, "--exported")
        want = {n for n in names - versions if fnmatch.fnmatchcase(n, pattern)}
        assert names_of(records) - versions == want and want, (pattern, names_of(records) ^ want)
    for pattern in ["^str.*n", "cpy$", "^(mem|str)r?chr", "64", "^[a-c][^_]+_?r$", "s{2}", "x|y{1,3}n"]:
        records, _ = find(LIBC, f"/{pattern}/", "--exported")
        want = {n for n in names - versions if re.search(pattern, n)}
        assert names_of(records) - versions == want and want, (pattern, names_of(records) ^ want)
        same, _ = find(LIBC, pattern, "--exported", "--regex")
        assert [r["linkage_name"] for r in same] == [r["linkage_name"] for r in records]


@test("an expression that repeats too much is refused at once")
def bombs(_):
    for expression in ["((((a{1,255}){1,255}){1,255}){1,255})", "(" * 4000 + "a" + ")" * 4000,
                       "a{1,255}{1,255}{1,255}",
                       "(" + "x" * 1000 + "){1,32767}", "(" * 40 + "a" + "+)" * 40]:
        records, _ = find(LIBC, f"/{expression[:4000]}/", status=(1,), processor_seconds=5)
        assert len(records) == 1, expression[:40]


MANGLED = {
    "jit::Runtime::get": ["_ZN3jit7Runtime3getEv", "_ZN3jit7Runtime3getEi"],
    "jit::Runtime::get()": ["_ZN3jit7Runtime3getEv"],
    "jit::Runtime::get( int )": ["_ZN3jit7Runtime3getEi"],
    "_ZN3jit7Runtime3getEi": ["_ZN3jit7Runtime3getEi"],
    "jit::Runtime::value": ["_ZNK3jit7Runtime5valueEPKcm"],
    "jit::Runtime::value(char const*, unsigned long) const": ["_ZNK3jit7Runtime5valueEPKcm"],
    "jit::Runtime::operator()": ["_ZNK3jit7RuntimeclEi"],
    "jit::Runtime::operator()(int) const": ["_ZNK3jit7RuntimeclEi"],
    "jit::Runtime::operator<": ["_ZNK3jit7RuntimeltERKS0_"],
    "jit::Runtime::convert<int>": ["_ZN3jit7Runtime7convertIiEET_S2_"],
    "int jit::Runtime::convert<int>(int)": ["_ZN3jit7Runtime7convertIiEET_S2_"],
    "jit::Runtime::convert<double>(double)": ["_ZN3jit7Runtime7convertIdEET_S2_"],
    "(anonymous namespace)::anonymous_code": ["_ZN12_GLOBAL__N_1L14anonymous_codeEi",
                                              "_ZN12_GLOBAL__N_114anonymous_codeEi"],
    "alone": ["_Z5alonei"],
    "alone(int)": ["_Z5alonei"],
    "jit::Runtime::c*": ["_ZN3jit7Runtime7convertIdEET_S2_", "_ZN3jit7Runtime7convertIiEET_S2_"],
    "/Runtime::get\\(/": ["_ZN3jit7Runtime3getEv", "_ZN3jit7Runtime3getEi"],
    "get": [],
}


@test("demangled names: with and without parameters and return type, patterns, fallback")
def demangled(folder):
    path = build(folder, "inlined", source=os.path.join(PROGRAMS, "inlined.cc"), compiler="g++")
    known = nm(path)
    for query, want in MANGLED.items():
        records, _ = find(path, query)
        got = {n for n in names_of(records) if not n.startswith("_ZZ") and not n.startswith("_ZGV")}
        assert got == {w for w in want if w in known}, (query, records)
        assert not want or got, query
        for r in records if got else []:
            assert r["name"] == run("c++filt", r["linkage_name"]).strip(), r


@test("tags of the ABI: names are found as they are printed; [vdso] is the name of a library")
def tags(folder):
    path = os.path.join(folder, "libtags.so")
    build_text(path, '__attribute__((abi_tag("v1"))) int f(int a) { return a; }'
                     'namespace n { struct [[gnu::abi_tag("zz")]] T { int x; }; T g(T t) { return t; } }',
               "-shared", "-fPIC", compiler="g++", language="c++", flags=())
    for query, want in [("f[abi:v1]", "_Z1fB2v1i"), ("f[abi:v1](int)", "_Z1fB2v1i"), ("libtags*:f[abi:v1]", "_Z1fB2v1i"),
                        ("n::g(n::T[abi:zz])", "_ZN1n1gENS_1TB2zzE"), ("n::g", "_ZN1n1gENS_1TB2zzE"),
                        ("f[a]", None)]:
        for options in [[], ["-F"]] if not query.startswith("lib") else [[]]:
            assert find(path, query, *options)[0][0]["linkage_name"] == want, (query, options)
    (record, *_), _ = find(os.getpid(), "[vdso]:clock_gettime")
    assert record["module"] == "[vdso]", record


@test("thousands of names, of which nothing is linked as: as each alone, and not a pass for each")
def many_names(folder):
    path = os.path.join(folder, "libplain.so")
    functions = "".join(f"int plain_{i}(int a) {{ return a; }} " for i in range(40))
    build_text(path, functions + "struct S { int x; }; S operator+(S a, S) { return a; } void *operator new[](unsigned long) { return 0; }"
              "template<class T> T of_type(T a) { return a; } template int of_type(int); namespace n { int plain_1() { return 1; } }",
               "-shared", "-fPIC", compiler="g++", language="c++", flags=())
    names = [f"plain_{i}" for i in range(45)] + ["operator+", "operatornew[]", "of_type", "of_type<int>", "n::plain_1", "S"]
    together = find(path, names)[0]
    assert together == [r for name in names for r in find(path, name)[0]], together
    linked = {r["query"]: r["linkage_name"] for r in together}
    assert [linked[q] for q in ("plain_1", "operator+", "plain_44")] == ["_Z7plain_1i", "_Zpl1SS_", None], linked
    status, seconds, _ = cost_of(FATHOM, "find", "--no-cache", shutil.which("node") or LIBC,
                                 *(f"no_such_name_{i}" for i in range(3000)))
    assert status == 1 and seconds < 10, (status, seconds)


@test("a library with versions: default, hidden, both, and what is only hidden")
def versions(folder):
    path = library(folder)
    value = {n: v[0][0] for n, v in nm(path).items()}
    both, _ = find(path, "versioned")
    assert [(address(r), r["version"], r["default_version"], r["rank"]) for r in both] == \
        [(value["versioned_new"], "V_2", True, 0), (value["versioned_old"], "V_1", False, 1)], both
    for query, want in [("versioned@V_1", ["versioned_old"]), ("versioned@V_2", ["versioned_new"]),
                        ("versioned@@V_2", ["versioned_new"]), ("versioned@@V_1", []),
                        ("versioned@@", ["versioned_new"]), ("versioned@V_*", ["versioned_new", "versioned_old"]),
                        ("retired@V_1", ["retired_code"])]:
        assert places(path, query)[query] == ([value[w] for w in want] or [None]), query
    # dlsym() does not find what has only a hidden version; dlvsym() does.
    assert [r["rank"] for r in find(path, "retired")[0]] == [1]
    assert [r["rank"] for r in find(path, "retired@V_1")[0]] == [0]


@test("without section headers, with DT_HASH only and with both: the same answers")
def hash_styles(folder):
    answers = []
    for style in ("gnu", "sysv", "both"):
        path = library(folder, f"lib{style}.so", f"-Wl,--hash-style={style}")
        for headers in (True, False):
            if not headers:
                strip_headers(path)
            records, _ = find(path, ["versioned", "indirect", "call_indirect", "nothing"], "--exported")
            answers.append([(r["query"], r["version"], r["type"], r["rank"], r["reason"]) for r in records])
    assert all(a == answers[0] for a in answers), answers
    assert [a[0] for a in answers[0]] == ["versioned", "versioned", "indirect", "call_indirect", "nothing"]


@test("debug files and MiniDebugInfo: static functions, and which table says so")
def debug_tables(folder):
    path = build(folder, "p", "-ldl", "-pthread")
    want = nm(path)["hidden_function"][0][0]
    debug = keep_debug(path)
    assert places(path, "hidden_function")["hidden_function"] == [None]
    add_link(path, debug)
    records, _ = find(path, "hidden_function")
    assert [(address(r), r["table"], r["source"]) for r in records] == [(want, "debug", "symtab")], records
    run("objcopy", "--remove-section=.gnu_debuglink", path)
    add_minidebuginfo(path, debug)
    records, _ = find(path, "hidden_function")
    assert [(address(r), r["table"], r["source"]) for r in records] == \
        [(want, "minidebuginfo", "minidebuginfo")], records


@test("relocatable files: the address that addr takes, and the offset in the section")
def relocatable(folder):
    path = os.path.join(folder, "o.o")
    run("gcc", "-c", "-g", "-ffunction-sections", "-o", path, os.path.join(finding.PROGRAMS, "over.c"))
    records, _ = find(path, ["malloc", "free", "used"])
    assert [int(r["module_address"], 16) for r in records][:2] == [0, 0], records
    (back,), _ = addr(path, ["0"], "-j", ".text.free")
    assert (back["symbol"], back["address"]) == ("free", records[1]["address"]), (records, back)


@test("damaged tables: every byte of hash, versions and dynamic section changed, and nothing hangs")
def damaged(folder):
    path = library(folder)
    sections = re.findall(r"\] (\.gnu\.hash|\.gnu\.version\S*|\.dynamic|\.dynsym)\s+\w+\s+\w+ (\w+) (\w+)",
                          run("readelf", "-W", "-S", path))
    assert len(sections) >= 4, sections
    data = open(path, "rb").read()
    rng = random.Random(3)
    bad = os.path.join(folder, "bad.so")
    for name, off, size in sections:
        off, size = int(off, 16), int(size, 16)
        for at in range(off, off + size, 1 if size < 400 else 7):
            changed = bytearray(data)
            changed[at] = rng.choice([0, 1, 0x7f, 0x80, 0xff])
            with open(bad, "wb") as f:
                f.write(changed)
            done = fathom("find", "--no-cache", bad, "versioned", "retired@V_1", "v*", processor_seconds=20)
            assert done.returncode in (0, 1, 2), (name, at - off, done)
