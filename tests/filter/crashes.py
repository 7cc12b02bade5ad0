# SPDX-License-Identifier: MIT
"""Crashes of clang, node and java: the names that they print themselves, by their own means, are those that fathom finds for
the numbers beside them."""
import os
import re
import shutil

import tap

from ask import execute
from suite import added, need_x86, test


def installed(command):
    """Where a program is, or Skip."""
    path = shutil.which(command)
    if not path:
        raise tap.Skip(f"{command} is not installed")
    return os.path.realpath(path)


def check_own_names(log, pattern, least, *options):
    """In each line that matches @pattern, its groups are the line's own name and offset, by its program: fathom's start with these.
    Lines that do not match have no names, but for those of the same kind without a name of their own."""
    found = 0
    for line, name in zip(log.splitlines(), added(log, *options)):
        m = re.fullmatch(pattern, line)
        if not m:
            continue
        function, offset = m.groups()
        assert name and name.startswith(f"{function}+{offset}" if offset else f"{function}+0x"), f"{line}\n{name}"
        found += 1
    assert found >= least, f"{found} lines\n{log[:3000]}"


@test("a crash of clang, in LLVM's own format: names are those of its llvm-symbolizer")
def clang(folder):
    need_x86()
    command = installed("clang")
    with open(f"{folder}/crash.c", "w", encoding="ascii") as file:
        file.write("#pragma clang __debug crash\n")
    done = execute(command, "-cc1", "crash.c", cwd=folder)
    if not re.search(r"^ #\d+ 0x\w{16} .* \(/.*\)$", done.stderr, re.M):
        raise tap.Skip(f"{command} has no symbolizer")
    check_own_names(done.stderr, r" #\d+ 0x\w{16} ([^ (/].*?) \(/[^() ]+\+0x\w+\)()", 5)


@test("a crash of clang, without its symbolizer: backtrace(3)")
def clang_backtrace(folder):
    need_x86()
    command = installed("clang")
    with open(f"{folder}/crash.c", "w", encoding="ascii") as file:
        file.write("#pragma clang __debug crash\n")
    done = execute(command, "-cc1", "crash.c", cwd=folder, env=dict(os.environ, LLVM_DISABLE_SYMBOLIZATION="1"))
    if "[0x" not in done.stderr:
        raise tap.Skip(f"{command} does not use backtrace(3)")
    # Of C++: in libc a name can be an alias.
    symbols = re.findall(r"\((_Z\w+)\+0x", done.stderr)
    plain = execute("c++filt", input="\n".join(symbols)).stdout.splitlines()
    names = [name for line, name in zip(done.stderr.splitlines(), added(done.stderr)) if re.search(r"\(_Z\w+\+0x", line)]
    offsets = re.findall(r"\(_Z\w+(\+0x\w+)\)", done.stderr)
    assert len(names) == len(plain) == len(offsets) > 3
    for name, function, offset in zip(names, plain, offsets):
        assert name and name.startswith(function + offset), (name, function, offset)


@test("a crash of node: names are its own")
def node(folder):
    command = installed("node")
    done = execute(command, "-e", "process.abort()", cwd=folder)
    if " 1: 0x" not in done.stderr:
        raise tap.Skip("this node prints no native stack")
    if "/libnode.so" in done.stderr:
        raise tap.Skip("the code of this node is in a library, and nothing in its report says where that is")
    base = os.path.basename(command)
    check_own_names(done.stderr, r" *\d+: 0x\w+ ([^ ].*?) \[[^\[\] ]+\]()", 1, "--module-dir", os.path.dirname(command))
    # All lines are of the program; those with a name of their own are in its dynamic symbols.
    count = len(re.findall(rf"^ *\d+: 0x\w+ .*\[(?:.*/)?{base}\]$", done.stderr, re.M))
    assert count >= 3 and sum(name is not None for name in added(done.stderr, "--module-dir", os.path.dirname(command))) == count


UNSAFE = """class Unsafe {
	public static void main(String[] words) throws Exception {
		var field = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
		field.setAccessible(true);
		((sun.misc.Unsafe) field.get(null)).putLong(8, 1);
	}
}
"""


@test("a crash of java, hs_err_pid.log: names and offsets are those of HotSpot, which reads symbols itself")
def java(folder):
    command = installed("java")
    with open(f"{folder}/Unsafe.java", "w", encoding="ascii") as file:
        file.write(UNSAFE)
    done = execute(command, "-XX:TieredStopAtLevel=1", "-XX:-CreateCoredumpOnCrash", f"-XX:ErrorFile={folder}/log", "Unsafe.java",
                   cwd=folder)
    if not os.path.exists(f"{folder}/log"):
        raise tap.Skip(f"java wrote no log: {done.stderr.splitlines()[:1]}")
    with open(f"{folder}/log", encoding="utf-8", errors="replace") as file:
        log = file.read()
    # The report's map tells where the libraries are: no option does.
    pattern = r"(?:# )?[CV]  \[lib\w+\.so\+0x\w+\]  (.+)\+(0x\w+)"
    check_own_names(log, pattern, 8)
    # Other lines have names only where they have addresses of code in memory; the program counter is that of the first frame.
    first = re.search(rf"^{pattern}$", log, re.M)
    for line, name in zip(log.splitlines(), added(log)):
        assert name is None or re.match(r"(# )?[CV]  \[", line) or re.search(r"0x[0-9a-f]{12,16}\b", line), line
        if re.search(r"\bpc=0x", line) and "SIGSEGV" in line:
            assert name and name.startswith(f"{first[1]}+{first[2]}"), (line, name)
