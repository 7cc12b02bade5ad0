# SPDX-License-Identifier: MIT
"""Names that somebody has mistyped, and what it costs to look for many."""
import os
import shutil

from ask import FATHOM, addr, addr_stream, fathom, run
from building import core_of
from counting import instructions
from named import SUITE, many_symbols
from running import Running, mappings_of

test = SUITE.test


@test("names: many that begin alike cost no more than many that do not")
def alike(folder):
    def count(names):
        return instructions([FATHOM, "find", "--no-cache", "--threads", "1", many_symbols(folder, names)],
                            "".join(n + "\n" for n in names))

    same, other = count([f"prefixed_{i}" for i in range(4000)]), count([f"_{i}_suffixed" for i in range(4000)])
    assert same < 3 * other, (same, other)


def told(*arguments, data=""):
    """Standard output and error of a run, as lines."""
    done = fathom(*arguments, status=1, input=data)
    return done.stdout.splitlines(), done.stderr.splitlines()


def meant(name, other):
    return f"fathom: {name}: no such symbol (did you mean {other}?)"


def compile_text(folder, name, text, *options):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
        f.write(text)
    path = os.path.join(folder, name.replace(".", "-"))
    run("g++" if name.endswith("cc") else "gcc", "-o", path, f.name, *options)
    return path


C = """#include <unistd.h>
static int count_words(void) { return 1; }
int count_lines(void) { return count_words(); }
int open_file(void) { return 2; }
int openfile(void) { return 3; }
int main(void) { count_lines(); pause(); }
"""


@test("names: one that is not there: the nearest that is, from addr, find and disasm")
def near(folder):
    path = compile_text(folder, "near.c", C)
    for verb in (["addr"], ["addr", "--json"], ["find"], ["find", "--json"], ["find", "-F"], ["disasm"], ["disasm", "--json"]):
        out, err = told(*verb, "--no-cache", path, "count_word")
        assert err == [meant("count_word", "count_words")], (verb, err)
        assert len(out) == 1 and "no-such-symbol" in out[0], (verb, out)
    for name, other in (("cuont_lines", "count_lines"), ("count_line", "count_lines"), ("count_linse", "count_lines"),
                        # Of two as near, the exported one; then the first in byte order.
                        ("count_wines", "count_lines"), ("opennfile", "open_file"), ("opnfile", "openfile")):
        assert told("addr", path, name)[1] == [meant(name, other)], name
    # What stands behind the name is no part of it.
    assert told("addr", path, "count_word+10")[1] == [meant("count_word", "count_words")]
    for words_ in (["zzzzzzzz"], ["co"], ["mainn", "--json"]):
        assert told("addr", path, *words_)[1] == ([meant("mainn", "main")] if "mainn" in words_ else []), words_


@test("names: only of a name that was typed: not from a stream, not of patterns")
def near_typed(folder):
    path = compile_text(folder, "near.c", C)
    assert told("addr", path, data="count_word\n")[1] == []
    assert told("find", path, data="count_word\n")[1] == []
    for query in ("count_wor*d", "/count_word$/", "count_word@V", "libc:count_word", "near.c:999"):
        assert told("find", path, query)[1] == [], query
    assert told("find", "-E", path, "count_word$")[1] == []
    # A number, or what could be one, was not mistyped.
    assert told("addr", path, "1000x", "fadex")[1] == []
    # A few names only: each is a look at all symbols.
    _, err = told("addr", path, *(f"count_lines{c}" for c in "ghijklmn"))
    assert err == [meant(f"count_lines{c}", "count_lines") for c in "ghij"], err


CXX = """namespace shapes {
struct Circle { int radius(int x) { return x; } int area() const; };
int Circle::area() const { return 3; }
int draw(int, const char *) { return 4; }
}
int draw_all(double) { return 5; }
int main() { shapes::Circle c; return c.area() + c.radius(1); }
"""


@test("names: demangled ones, with parameters or without")
def near_demangled(folder):
    path = compile_text(folder, "near.cc", CXX)
    for name, other in (("shapes::Circle::aera", "shapes::Circle::area() const"), ("shapes::drw", "shapes::draw(int, char const*)"),
                        ("draw_al", "draw_all(double)"), ("shapes::draw(int,char const*", "shapes::draw(int, char const*)"),
                        ("_ZN6shapes6Circle4aeraEv", "_ZNK6shapes6Circle4areaEv")):
        out, err = told("addr", path, name)
        assert err == [meant(name, other)], (name, err)
        # What is said to be meant is there.
        assert run(FATHOM, "addr", path, other), out


@test("names: in a process those of all its files, in the kernel those of kallsyms")
def near_elsewhere(folder):
    path = compile_text(folder, "near.c", C)
    with Running([path]) as program:
        while os.readlink(f"/proc/{program.pid}/exe") != os.path.realpath(path):
            pass
        # The loader maps libc before main() begins.
        while not any("libc" in m.path for m in mappings_of(program.pid)):
            pass
        _, err = told("addr", program.pid, "count_word", "getenvv")
        assert err == [meant("count_word", "count_words"), meant("getenvv", "getenv")], err
    os.makedirs(os.path.join(folder, "root", "proc"))
    with open(os.path.join(folder, "root", "proc", "kallsyms"), "w", encoding="utf-8") as f:
        f.write("ffffffff81000000 T _text\nffffffff81001000 T do_sys_openat2\nffffffff81002000 t vfs_read\n"
                "ffffffffa0000000 t nf_hook\t[nf_tables]\n")
    for name, other in (("do_sys_opneat2", "do_sys_openat2"), ("vfs_raed", "vfs_read"), ("nfhook", "nf_hook")):
        _, err = told("addr", "--sysroot", os.path.join(folder, "root"), "kernel", name)
        assert meant(name, other) in err, err


# Three files, each with a static function "helper", one of which has a global "both", too.
HELPERS = """static int helper(int x) {{ return x + {0}; }}
int use{0}(int x) {{ return helper(x); }}
{1} int both(int x) {{ return x - {0}; }}
int also{0}(int x) {{ return both(x); }}
"""
ASK_HELPERS = """#include <stdio.h>
int use1(int), use2(int), use3(int), also1(int), also2(int), also3(int);
int main(void) { puts("done"); fflush(stdout);
return getchar() + use1(1) + use2(1) + use3(1) + also1(1) + also2(1) + also3(1); }
"""


def helpers(folder):
    """The program, and {name: its addresses as stated in the file}."""
    path, sources = os.path.join(folder, "helpers"), []
    for number in (1, 2, 3):
        sources.append(os.path.join(folder, f"h{number}.c"))
        with open(sources[-1], "w", encoding="utf-8") as f:
            f.write(HELPERS.format(number, "" if number == 2 else "static"))
    sources.append(os.path.join(folder, "h.c"))
    with open(sources[-1], "w", encoding="utf-8") as f:
        f.write(ASK_HELPERS)
    run("gcc", "-g", "-O0", "-o", path, *sources)
    places = {}
    for line in run("nm", "-n", path).splitlines():
        fields = line.split()
        if len(fields) == 3:
            places.setdefault(fields[2], []).append((int(fields[0], 16), fields[1]))
    assert [t for _, t in places["helper"]] == ["t"] * 3 and sorted(t for _, t in places["both"]) == ["T", "t", "t"]
    return path, {name: [a for a, t in some if name != "both" or t == "T"] for name, some in places.items()}


@test("a name of several static functions is answered for each of them")
def several_locals(folder):
    path, places = helpers(folder)

    def answers(target, *words):
        records, _ = addr(target, words)
        return [(r["input"], int(r["module_address"], 16), r["symbol"]) for r in records if r["symbol"]]

    words = ["main", "helper", "both", "nothing", "helper+2", "use2"]
    wanted = [(w, a + (2 if "+" in w else 0), w.partition("+")[0]) for w in words
              for a in places.get(w.partition("+")[0], [])]
    assert len(wanted) == 9
    assert answers(path, *words) == wanted
    debug = os.path.join(folder, "debug")
    shutil.copy(path, debug)
    run("objcopy", "--only-keep-debug", path, debug + ".debug")
    run("strip", "--strip-debug", f"--add-section=.gnu_debuglink={debug}.debug", debug, status=None)
    assert answers(debug, *words) == wanted
    with Running([path]) as process:
        assert process.line() == "done"
        assert answers(process.pid, *words) == wanted
        core = core_of(process.pid, folder)
    assert answers(core, *words) == wanted


@test("of standard input each line has one answer: of several addresses as text, as JSON the first")
def several_locals_stream(folder):
    path, places = helpers(folder)
    words = ["helper", "main", "nothing", "helper+1"]
    text = run(FATHOM, "addr", "--no-cache", path, input="".join(w + "\n" for w in words), status=(0, 1))
    answers = text.split("\n\n")
    assert answers.pop() == "" and len(answers) == len(words), text
    assert [line.split()[0] for line in answers[0].splitlines()] == [hex(a) for a in places["helper"]], text
    assert [line.split()[0] for line in answers[3].splitlines()] == [hex(a + 1) for a in places["helper"]], text
    records = addr_stream(path, words)
    assert [r["input"] for r in records] == words, records
    assert int(records[0]["address"], 16) in places["helper"] and records[3]["offset"] == 1, records
