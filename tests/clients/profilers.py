# SPDX-License-Identifier: MIT
"""google-pprof and perf with fathom as their addr2line: the same profile is reported with GNU's
addr2line, with LLVM's, and with fathom.

GNU addr2line calls an inlined function, where it is the innermost, by the name of what it is inlined
into, and names a wrong file in libc (docs/reports/oracle-addr2line.md); LLVM's chooses another alias of a symbol
of libc. So ours must be what one of the two says, and in our own source what LLVM says."""
import collections
import itertools
import os
import re
import shutil
import subprocess

import ask
import tools

SOURCE = "busy.cc"


def folder_with(name, program):
    """A folder in which @program is called addr2line."""
    folder = os.path.join(tools.FOLDER, name)
    os.makedirs(folder, exist_ok=True)
    link = os.path.join(folder, "addr2line")
    if not os.path.lexists(link):
        os.symlink(program, link)
    return folder


def tool_folders():
    tools.need("addr2line", "llvm-addr2line")
    return {"gnu": folder_with("gnu-addr2line", shutil.which("addr2line")),
            "llvm": folder_with("llvm-addr2line", shutil.which("llvm-addr2line")),
            "own": folder_with("own-addr2line", os.path.abspath(ask.FATHOM))}


# google-pprof

def profiled():
    """A program and its profile."""
    tools.need("google-pprof")
    return tools.build_once(
        "pprof", ["g++", "-g", "-O2", "-o", "out", SOURCE, "-Wl,--no-as-needed", "-lprofiler"],
        ["env", "CPUPROFILE=profile", "CPUPROFILE_FREQUENCY=500", "./out"])


def pprof(folder, tool, *options):
    """The report; all tools but addr2line are the real ones."""
    return ask.run("google-pprof", "--nodefraction=0", *options, "out", "profile", cwd=folder,
                   env=tools.environment(PPROF_TOOLS=f"addr2line:{tool}/addr2line,/usr/bin/"))


def check_list():
    """The annotated source is the same, byte for byte."""
    folder, tool = profiled(), tool_folders()
    gnu, own = (pprof(folder, tool[t], r"--list=^(spin|twice)\b") for t in ("gnu", "own"))
    assert gnu.count("Total samples") == 2, f"no report: {gnu[:500]}"
    assert gnu == own, tools.first_difference(gnu.encode(), own.encode())


def flat_by_place(rows):
    """Samples of each place in our own source."""
    found = collections.Counter()
    for row in rows:
        if m := re.match(r"\s*(\d+) .*/busy\.cc:(\d+)$", row):
            found[m[2]] += int(m[1])
    return found


def check_rows(*options):
    """Each row is one of LLVM's; where that has another alias in libc, one of GNU's."""
    folder, tool = profiled(), tool_folders()
    gnu, llvm, own = (pprof(folder, tool[t], *options).splitlines() for t in ("gnu", "llvm", "own"))
    assert len(own) == len(llvm) > 4, f"{len(own)} rows, {len(llvm)} of LLVM"
    for row in own:
        ours_alone = re.search(r"busy\.cc|\b(?:spin|mix|twice|main)\b", row)
        assert row in llvm or (row in gnu and not ours_alone), f"{row!r} is neither in\n{llvm}\nnor in\n{gnu}"
    # Whatever GNU calls them, the lines have the same number of samples.
    assert flat_by_place(own) == flat_by_place(gnu)


def installed_tools():
    """A folder with the links that `meson install` puts into libexec/fathom, which lead to the command."""
    build = os.environ["BUILD"]
    root = os.path.join(tools.FOLDER, "installed")
    ask.run("meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", root)
    links = [os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names
             if folder.endswith("/libexec/fathom")]
    assert all(os.readlink(link).endswith("/bin/fathom") for link in links), links
    for link in links:
        tools.linked("tools", os.path.basename(link), os.path.abspath(ask.FATHOM))
    return os.path.join(tools.FOLDER, "tools")


def check_tools_folder():
    """PPROF_TOOLS as the README has it: all that google-pprof asks for is in the installed folder. The
    programs that are not ours are the system's, also where the folder itself comes first in the path."""
    tools.need("meson", "nm", "objdump", "c++filt")
    folder, own = profiled(), installed_tools()
    environment = tools.environment(PPROF_TOOLS=f"{own}/", PATH=f"{own}:{os.environ['PATH']}")
    # --list is compared with GNU's above.
    for options in (["--text", "--lines"], ["--disasm=^spin\\b"]):
        known = pprof(folder, tool_folders()["own"], *options)
        report = ask.run("google-pprof", "--nodefraction=0", *options, "out", "profile", cwd=folder, env=environment)
        assert "spin" in report and report == known, f"{options}: {len(report)} {len(known)}" + tools.first_difference(known.encode(), report.encode())
    for name in ("nm", "objdump", "c++filt"):
        real, ours = (ask.execute(program, "--version", text=False, env=environment)
                      for program in (shutil.which(name), os.path.join(own, name)))
        assert real.stdout == ours.stdout and real.returncode == ours.returncode == 0, (real, ours)


def check_tools_missing():
    """Without the system's tool, what is missing and the status of shells; never an endless chain of fathoms."""
    own = os.path.dirname(tools.linked("alone", "nm", os.path.abspath(ask.FATHOM)))
    other = os.path.dirname(tools.linked("another", "nm", "fathom"))
    shutil.copy(os.path.abspath(ask.FATHOM), os.path.join(other, "fathom"))
    for path in (own, f"{own}:{other}", "/nowhere", ""):
        done = ask.execute(os.path.join(own, "nm"), "x", text=False, env=tools.environment(PATH=path))
        assert (done.returncode, done.stdout) == (127, b""), done
        assert done.stderr == b"fathom: nm: no such program in $PATH (install binutils)\n", done


# perf

def recorded():
    tools.need("perf")
    folder = tools.build_once("perf", ["g++", "-g", "-O2", "-no-pie", "-o", "out", SOURCE])
    if not os.path.exists(os.path.join(folder, "perf.data")):
        done = ask.execute("perf", "record", "-q", "-e", "cpu-clock", "-F", "499", "--call-graph", "dwarf,1024", "-o",
                           "perf.data", "./out", cwd=folder, stdout=subprocess.DEVNULL)
        if "perf_event_paranoid" in done.stderr or "No permission" in done.stderr:
            raise tools.tap.Skip("perf may not record here: " + done.stderr.splitlines()[0])
        assert os.path.exists(os.path.join(folder, "perf.data")), done.stderr
    return folder


# Newer versions of perf print the types of arguments.
FRAME = re.compile(r"^\s+([0-9a-f]+) ([^\s(]+)(?:\([^/\[\n]*?\))?(?: \(([/\[].*)\))?\n  (.*)$", re.M)


def chains(folder, tool):
    """{(address in our own program, whether it was sampled itself): its frames, innermost first}, as
    perf shows them; a frame is (function, place)."""
    path = f"{tool}:{os.environ['PATH']}"
    text = ask.run("perf", "script", "-i", "perf.data", "-F", "ip,sym,dso,srcline", cwd=folder,
                   env=tools.environment(PATH=path))
    found = {}
    for sample in text.split("\n\n"):
        # Frames at one address are one call and what is inlined there; only the call has a module.
        for depth, (address, frames) in enumerate(itertools.groupby(FRAME.findall(sample), lambda f: f[0])):
            frames = list(frames)
            chain = [(name, place.removesuffix(" (inlined)")) for _, name, _, place in frames]
            if frames[-1][2].endswith("/out") and chain[-1][1] != "??:0":
                key = int(address, 16), depth == 0
                assert found.setdefault(key, chain) == chain, f"{key} has two answers"
    return found


def frames_by_llvm(path, address):
    out, _, _ = tools.run(tools.theirs(), ["--functions=short", "-s", "-e", path, hex(address)])
    lines = [line for line in out.decode().splitlines() if line]
    return [(name, place.rsplit(":", 1)[0]) for name, place in zip(lines[::2], lines[1::2])]


LINKED_TO = 0x400000


def check_perf():
    """What was sampled is what LLVM says, and everything is at the places that GNU says."""
    folder, tool = recorded(), tool_folders()
    gnu, own = (chains(folder, tool[t]) for t in ("gnu", "own"))
    assert any(len(c) > 1 for c in own.values()), f"nothing is inlined: {own}"
    assert own.keys() == gnu.keys()
    for (address, sampled), chain in own.items():
        others = gnu[address, sampled]
        assert [f[1] for f in chain] == [f[1] for f in others], f"{address:#x}: {chain}, GNU {others}"
        # Old versions of perf print the distance from where the program is mapped, which is linked to one place.
        expected = frames_by_llvm(os.path.join(folder, "out"), address if address >= LINKED_TO else address + LINKED_TO)
        assert not sampled or chain == expected, f"{address:#x}: {chain}, LLVM says {expected}"


CASES = [("google-pprof --list", check_list), ("perf script", check_perf),
         ("google-pprof with the installed tools", check_tools_folder),
         ("tools of the system that are missing", check_tools_missing)]
CASES += [(f"google-pprof {' '.join(o)}", lambda o=o: check_rows(*o))
          for o in (["--text", "--lines"], ["--text", "--cum"])]
