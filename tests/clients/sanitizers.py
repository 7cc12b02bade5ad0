# SPDX-License-Identifier: MIT
"""Reports of sanitizers: made twice, once with the llvm-symbolizer that belongs to the compiler and
once with fathom under that name, and compared line by line."""
import os
import re
import subprocess

import ask
import toolchain
import tools

# Name, sanitizer, sources, what the report must hold. Sources in pairs: the second is a library.
PROGRAMS = [
    ("a use of freed memory", "address", ["freed.cc"], "heap-use-after-free"),
    ("an overflow of a variable", "address", ["global.c"], "global-buffer-overflow"),
    ("an overflow on the stack", "address", ["stack.c"], "stack-buffer-overflow"),
    ("a double free in a library", "address", ["caller.cc", "library.cc"], "double-free"),
    ("undefined behaviour", "undefined", ["undefined.cc"], "shift exponent"),
    ("a race", "thread", ["race.cc"], "data race"),
    ("memory that was never written", "memory", ["uninitialised.cc"], "use-of-uninitialized-value"),
    ("lost memory", "leak", ["leak.c"], "detected memory leaks"),
]


def compile_with(compiler, sanitizer, sources, folder):
    flags = ["-g", "-O1", f"-fsanitize={sanitizer}"]
    flags += ["-fsanitize-memory-track-origins"] if sanitizer == "memory" else []
    if len(sources) > 1:
        ask.run(compiler, *flags, "-shared", "-fPIC", "-o", "libpart.so", sources[1], cwd=folder)
        flags += ["-L.", "-Wl,-rpath,$ORIGIN"]
        sources = [sources[0], "-lpart"]
    ask.run(compiler, *flags, "-o", "out", *sources, cwd=folder)


def report(folder, symbolizer):
    """What the program writes while it fails; the sanitizer asks @symbolizer."""
    options = f"external_symbolizer_path={symbolizer}:print_stacktrace=1" if symbolizer else "symbolize=0"
    names = ["ASAN", "UBSAN", "TSAN", "MSAN", "LSAN"]
    done = ask.execute("./out", text=False, cwd=folder, stderr=subprocess.STDOUT,
                       env=tools.environment(**{f"{n}_OPTIONS": options for n in names}))
    return done.stdout.decode(), done.returncode


def normalised(text):
    """@text without what differs from run to run: addresses in memory, numbers of processes, and the
    dump of what is near those addresses."""
    text = re.sub(r"^(=>|  )0x[0-9a-f]+:.*\n", "", text, flags=re.M)
    text = re.sub(r"0x[0-9a-f]{8,}", "0xADDRESS", text)
    return re.sub(r"==\d+==|\b[pt]id=\d+", "ID", text)


def real_symbolizer(suffix):
    """That of the compiler whose name ends in @suffix."""
    path = toolchain.oldest_llvm("bin", "llvm-symbolizer") if suffix else tools.REAL
    tools.need(path)
    return path


def lines_in(text, sources):
    """The places in our own sources that @text names."""
    names = "|".join(map(re.escape, sources))
    return re.findall(rf"/(?:{names}):\d+:\d+", text)


def check_report(suffix, sanitizer, sources, kind):
    compiler = ("clang" if sources[0].endswith(".c") else "clang++") + suffix
    tools.need(compiler)
    folder = tools.build(f"{sanitizer}{suffix}-{sources[0]}")
    compile_with(compiler, sanitizer, sources, folder)
    real, status = report(folder, real_symbolizer(suffix))
    own, own_status = report(folder, tools.OURS)
    raw, _ = report(folder, None)
    assert kind in real, f"no report: {real[:800]}"
    # Only a symbolizer knows the columns of calls.
    assert len(lines_in(real, sources)) > len(lines_in(raw, sources)), f"not symbolized: {real[:800]}"
    assert status == own_status, f"status {status} and {own_status}"
    real, own = normalised(real), normalised(own)
    # Before LLVM 15, ">" stands apart from ">".
    if "> >" in real:
        assert real.count("> >") == own.count(">>")
        real = real.replace("> >", ">>")
    assert real == own, tools.first_difference(real.encode(), own.encode())


def marked(source):
    """{function: (file, line)} of lines marked "/* at: FUNCTION */" or "// at: FUNCTION"."""
    found = {}
    with open(os.path.join(tools.PROGRAMS, source), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if m := re.search(r"(?://|/\*) at: ([\w:]+)", line):
                found[m[1]] = (source, number)
    return found


def names_by_llvm(frames):
    """Asks fathom llvm-symbolizer; [(function, file, line)], innermost first."""
    text = "".join(f'CODE "{module}" {offset}\n' for module, offset in frames).encode()
    out = tools.run(tools.OURS, ["--no-demangle"], text)[0].decode()
    lines = [line for line in out.splitlines() if line]
    return [(name, *place.split(":")[:2]) for name, place in zip(lines[::2], lines[1::2])]


def names_by_addr(frames):
    """The same by fathom addr."""
    return [(frame[0], frame[1], str(frame[2])) for module, offset in frames
            for frame in ask.answers(module, [int(offset, 16)])[0].frames]


# Access, release and allocation of what is read when it is free, as the source has it.
CHAINS = {"freed.cc": ("heap-use-after-free", ["Node::read", "peek", "use", "main"]),
          "global.c": ("global-buffer-overflow", ["at", "main"])}


def check_gcc(source):
    """gcc's runtime never starts a symbolizer: its report without names is what fathom is given."""
    compiler = "gcc" if source.endswith(".c") else "g++"
    kind, chain = CHAINS[source]
    folder = tools.build(f"gcc-{source}")
    ask.run(compiler, "-g", "-O1", "-fno-optimize-sibling-calls", "-fsanitize=address", "-o", "out", source,
            cwd=folder)
    text, _ = report(folder, None)
    assert kind in text, f"no report: {text[:800]}"
    access = text.split("\n\n")[0]
    frames = [f for f in re.findall(r"#\d+ 0x\w+ +\((.+)\+(0x\w+)\)", access) if f[0].endswith("/out")]
    places = marked(source)
    for names in names_by_llvm(frames), names_by_addr(frames):
        own = [(os.path.basename(file), int(line)) for _, file, line in names if file and file.endswith(source)]
        assert own == [places[f] for f in chain], f"{names} instead of {chain} at {places}"
        for function, (name, _, _) in zip(chain, names):
            # As linked, or as the source has it where a function is not linked.
            assert function.split("::")[-1] in name, f"{names} instead of {chain}"


CASES = [(f"clang{suffix}: {name}", lambda a=(suffix, sanitizer, sources, kind): check_report(*a))
         for suffix in ("", "-oldest") for name, sanitizer, sources, kind in PROGRAMS]
CASES += [(f"gcc: frames of {source} without names", lambda s=source: check_gcc(s)) for source in CHAINS]
