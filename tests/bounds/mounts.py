# SPDX-License-Identifier: MIT
"""File systems whose server has stopped answering (programs/fuse.c): what is on them is left out, aloud, and every
run ends. Whoever touches such a file waits for ever, and cannot even be killed."""
import contextlib
import glob
import os
import re
import subprocess

import tap

from ask import FATHOM, HANG_SECONDS, as_user, records_of, run
from running import Asked, Running, Told, state_of
from suite import test

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
USER = 65534
LIBRARY = "const char far_data[1 << 20] = { 1 };\nint in_library(int x)\n{\n\treturn x + 1;\n}\n"
SILENT = "its file system does not answer (its server is gone or slow: allow more with --file-timeout)"


def compile_c(folder, name, *options, source=None):
    path = os.path.join(folder, name)
    if source:
        source_path = path + ".c"
        with open(source_path, "w", encoding="utf-8") as file:
            file.write(source)
    else:
        source_path = os.path.join(PROGRAMS, name + ".c")
    run("gcc", "-g", "-O1", "-Wl,--build-id", "-o", path, source_path, *options)
    return path


class Server(Running):
    """A file system that shows folder/NAME-files as folder/NAME, in a mount namespace of its own."""

    def __init__(self, folder, name="mnt", user=None, libraries=("lib.so",)):
        tap.need_mount_namespaces()
        if not os.path.exists("/dev/fuse"):
            raise tap.Skip("this kernel has no /dev/fuse")
        self.folder, self.mount = folder, os.path.join(folder, name)
        self.files = self.mount + "-files"
        os.mkdir(self.mount)
        os.mkdir(self.files)
        for library in libraries:
            compile_c(self.files, library, "-shared", "-fPIC", source=LIBRARY)
        if not os.path.exists(os.path.join(folder, "fuse")):
            compile_c(folder, "fuse")
        self.libraries = [os.path.join(self.mount, library) for library in libraries]
        super().__init__([os.path.join(folder, "fuse"), self.files, self.mount] + ([user] if user else []))
        assert self.line() == "ready"
        self.inside = ["nsenter", "-t", str(self.pid), "-m", "-r"]

    def silence(self):
        """Takes every request from now on, and answers none."""
        self.send("\n")
        assert self.line() == "silent"

    def ask(self, *command, inside=False, text=None, user=None):
        """(status, output, complaints) of a run that has to end; inside of the namespace or outside."""
        command = [*(self.inside if inside else []), *(as_user(user, *command) if user else command)]
        with Running(command, stderr=subprocess.PIPE) as asked:
            try:
                out, said = asked.process.communicate(text or "", timeout=HANG_SECONDS)
            except subprocess.TimeoutExpired:
                state = state_of(asked.pid)
                # While the server is there it cannot even be killed: then all who wait for it get an error.
                self.kill()
                raise AssertionError(f"{command}: it waits for ever, in state {state}") from None
            return asked.process.returncode, out, said


@contextlib.contextmanager
def user_of(server, *libraries, user=None):
    """A process in the server's namespace that has the libraries mapped, and what it tells."""
    path = os.path.join(server.folder, "user")
    if not os.path.exists(path):
        compile_c(server.folder, "user", "-ldl", "-pthread")
    command = [path, *(libraries or server.libraries)]
    with Told([*server.inside, *(as_user(user, *command) if user else command)]) as told:
        try:
            yield told
        finally:
            # Before that a process that waits for it cannot be ended.
            server.kill()


def helpers(folder):
    """The processes that were left behind by runs which named the folder: {pid: descriptors}."""
    found = {}
    for path in glob.glob("/proc/[0-9]*"):
        with contextlib.suppress(OSError):
            with open(path + "/comm", encoding="utf-8") as file:
                if file.read().strip() != "fathom-helper":
                    continue
            with open(path + "/cmdline", "rb") as file:
                if os.fsencode(folder) in file.read():
                    found[int(os.path.basename(path))] = sorted(os.listdir(path + "/fd"))
    return found


def check_left_out(folder, server, done, status=1):
    """What is said of the library: once, with its path and the remedy. Returns what else is said."""
    code, _, said = done
    assert code == status, done
    lines = said.splitlines()
    for library in server.libraries:
        told = [line for line in lines if line == f"fathom: {library}: {SILENT}"]
        assert len(told) == 1, f"{library}: {said}"
        lines.remove(told[0])
    return lines


def records(done):
    return records_of(done[1])


def place(told, name):
    return hex(told.places[name])


for where in ("outside of its mount namespace", "inside of it"):
    @test(f"addr of a process with a mapped file that does not answer, {where}", needs_root=True)
    def _(folder, inside=where == "inside of it"):
        with Server(folder) as server, user_of(server) as told:
            here = inside
            command = [FATHOM, "addr", "--json", f"--cache-dir={folder}/cache", str(told.pid),
                       place(told, "in_library1"), place(told, "main0")]
            alive = server.ask(*command, inside=here)
            assert [r["symbol"] for r in records(alive)] == ["in_library", "main"] and not alive[2], alive
            assert records(alive)[0]["frames"][0]["line"]
            assert not helpers(folder), "a helper of a run that is over"
            server.silence()
            done = server.ask(*command, inside=here)
            assert not check_left_out(folder, server, done), done
            assert [(r["symbol"], r["reason"]) for r in records(done)] == [(None, "timeout"), ("main", None)]
            left = helpers(folder)
            assert list(left.values()) == [["0"]], f"one helper, which has its socket only: {left}"


@test("one wait for all files of a file system, and one more for another", needs_root=True)
def _(folder):
    names = [f"lib{i}.so" for i in range(6)]
    with Server(folder, libraries=names) as server:
        other = os.path.join(folder, "other")
        os.mkdir(other)
        with Server(other, libraries=names[:2]) as second:
            # Both mounts are seen in the namespace of the second, if the first is made again there.
            with user_of(server) as told, user_of(second) as more:
                server.silence()
                second.silence()
                for process, of, n in ((told, server, 6), (more, second, 2)):
                    done = of.ask(FATHOM, "addr", "--json", f"--cache-dir={folder}/cache{n}", str(process.pid),
                               *[place(process, f"in_library{i + 1}") for i in range(n)], place(process, "main0"))
                    assert not check_left_out(folder, of, done), done
                    assert [r["reason"] for r in records(done)] == ["timeout"] * n + [None], done
                    left = [p for p in helpers(folder) if f"cache{n}".encode() in
                            open(f"/proc/{p}/cmdline", "rb").read()]
                    assert len(left) == 1, f"{len(left)} helpers of {n} files"


@test("a server that answers again is asked again, and a stream goes on", needs_root=True)
def _(folder):
    with Server(folder) as server, user_of(server) as told:
        with Asked(told.pid) as fathom:
            assert fathom.one(place(told, "in_library1"))["symbol"] == "in_library"
            server.silence()
            assert fathom.one(place(told, "in_library1"))["reason"] == "timeout"
            assert fathom.one(place(told, "main0"))["symbol"] == "main"
            assert fathom.one(place(told, "in_library1"))["reason"] == "timeout"
            _, out, said = fathom.last()
        assert said.count(SILENT) == 1, said
        assert not out


@test("a process of which a thread is stuck in such a file", needs_root=True)
def _(folder):
    with Server(folder) as server, user_of(server) as told:
        server.silence()
        told.tell("touch")
        done = server.ask(FATHOM, "addr", "--json", "--no-cache", str(told.pid), place(told, "in_library1"),
                          place(told, "main0"))
        assert not check_left_out(folder, server, done), done
        assert [r["symbol"] for r in records(done)] == [None, "main"]


@test("find, disasm and snapshot of such a process", needs_root=True)
def _(folder):
    with Server(folder) as server, user_of(server) as told:
        server.silence()
        pid = str(told.pid)
        done = server.ask(FATHOM, "find", "--json", "--no-cache", pid, "main", "in_library")
        assert not check_left_out(folder, server, done), done
        assert [int(r["address"], 16) for r in records(done) if r["address"]] == [told.places["main0"]], done
        for read, name, value in (("i32", "own_data", 42), ("*i8", "far_pointer", None)):
            done = server.ask(FATHOM, "find", "--json", "--no-cache", "--read", read, pid, name)
            assert not check_left_out(folder, server, done, status=int(value is None)), done
            assert [r["value"] for r in records(done)] == [value], done
            assert [r["reason"] for r in records(done)] == [None if value else "timeout"], done
        done = server.ask(FATHOM, "disasm", "--json", "--no-cache", pid, "main")
        assert done[0] == 0 and records(done)[0]["text"], done
        done = server.ask(FATHOM, "disasm", "--no-cache", pid, place(told, "far1"))
        assert not check_left_out(folder, server, done, status=2), done
        snapshot = os.path.join(folder, "snapshot")
        done = server.ask(FATHOM, "snapshot", pid, snapshot)
        assert not check_left_out(folder, server, done, status=0), done
        done = server.ask(FATHOM, "addr", "--json", "--no-cache", snapshot, place(told, "main0"))
        assert records(done)[0]["symbol"] == "main", done


@test("a core of a process that had such a file mapped", needs_root=True)
def _(folder):
    with Server(folder) as server, user_of(server) as told:
        run(*server.inside, "gcore", "-o", os.path.join(folder, "core"), str(told.pid))
        core = os.path.join(folder, f"core.{told.pid}")
        questions = [place(told, "in_library1"), place(told, "main0")]
        command = [FATHOM, "addr", "--json", "--no-cache", core, *questions]
        assert [r["symbol"] for r in records(server.ask(*command, inside=True))] == ["in_library", "main"]
        server.silence()
        done = server.ask(*command, inside=True)
        # What gcore has stored of the library's memory still names it.
        assert not check_left_out(folder, server, done, status=0), done
        assert [(r["symbol"], r["reason"]) for r in records(done)] == [("in_library", "no-debug-info"), ("main", None)]


@test("the file itself", needs_root=True)
def _(folder):
    with Server(folder) as server:
        library = server.libraries[0]
        link = os.path.join(folder, "link")
        os.symlink(server.mount, link)
        server.silence()
        for command in (["addr", library, "0x10"], ["find", library, "main"], ["disasm", library, "main"],
                        ["addr", f"file:{library}", "0x10"], ["addr", "-e", library, "0x10"]):
            done = server.ask(FATHOM, *command, inside=True)
            assert not check_left_out(folder, server, done, status=2), done
            assert not done[1], done
        for path in (f"{link}/lib.so", f"{folder}/mnt/../mnt/lib.so", f"/proc/self/root{library}"):
            done = server.ask(FATHOM, "addr", path, "0x10", inside=True)
            assert done[0] == 2 and done[2] == f"fathom: {path}: {SILENT}\n", done
        done = server.ask(FATHOM, "cache", "build", library, inside=True)
        assert done[0] == 2 and f"fathom: {library}: {SILENT}\n" in done[2], done
        done = server.ask(FATHOM, "addr2line", "-e", library, "0x10", inside=True)
        assert done[0] == 1 and "its file system does not answer" in done[2], done
        for options, text in ((["--obj=" + library, "0x10"], ""), ([], f"{library} 0x10\n")):
            done = server.ask(FATHOM, "llvm-symbolizer", *options, inside=True, text=text)
            assert f"'{library}': its file system does not answer" in done[2], done


@test("debug files, a sysroot and a cache there do not stop the answers", needs_root=True)
def _(folder):
    with Server(folder) as server:
        own = compile_c(folder, "user", "-ldl", "-pthread")
        run("strip", "-g", own)
        link = os.path.join(folder, "link")
        os.symlink(server.mount, link)
        for option in ("--debug-dir", "--sysroot", "--cache-dir"):
            alive = server.ask(FATHOM, "addr", "--json", option, server.mount, own, "main", inside=True)
            assert records(alive)[0]["symbol"] == "main" and not alive[2], alive
        server.silence()
        for option in ("--debug-dir", "--sysroot", "--cache-dir"):
            for path in (server.mount, link):
                done = server.ask(FATHOM, "addr", "--json", option, path, own, "main", inside=True)
                assert records(done)[0]["symbol"] == "main" and done[0] == 0, done
                assert "its file system does not answer" in done[2], (option, done)


@test("a file system that is mounted no more, or was made for another user", needs_root=True)
def _(folder):
    with Server(folder) as server, user_of(server) as told:
        run(*server.inside, "umount", "-l", server.mount)
        command = [FATHOM, "addr", "--json", "--no-cache", str(told.pid), place(told, "in_library1"),
                   place(told, "main0")]
        assert [r["symbol"] for r in records(server.ask(*command))] == ["in_library", "main"]
        server.silence()
        done = server.ask(*command)
        assert done[2].count(SILENT) == 1, done
        assert [(r["symbol"], r["reason"]) for r in records(done)] == [(None, "timeout"), ("main", None)]


@test("a file system that only its user may look at", needs_root=True)
def _(folder):
    with Server(folder, user=USER) as server, user_of(server, user=USER) as told:
        command = [FATHOM, "addr", "--json", "--no-cache", str(told.pid), place(told, "in_library1"),
                   place(told, "main0")]
        # Root is no such user: the file's name comes from memory, and no line.
        assert [r["symbol"] for r in records(server.ask(*command))] == ["in_library", "main"]
        by_user = server.ask(*command, inside=True, user=USER)
        assert [r["symbol"] for r in records(by_user)] == ["in_library", "main"], by_user
        assert records(by_user)[0]["frames"][0]["line"]
        server.silence()
        for user, here in ((None, False), (None, True), (USER, True)):
            done = server.ask(*command, inside=here, user=user)
            assert [r["symbol"] for r in records(done)] in ([None, "main"], ["in_library", "main"]), done
            assert user is None or SILENT in done[2], done


@test("a jitdump there", needs_root=True)
def _(folder):
    with Server(folder) as server, user_of(server) as told:
        name = f"jit-{told.pid}.dump"
        with open(os.path.join(server.files, name), "wb") as file:
            file.write(b"\0" * 4096)
        places = told.tell(f"map {server.mount}/{name}")
        server.silence()
        done = server.ask(FATHOM, "addr", "--json", "--no-cache", str(told.pid), hex(places["made0"]), place(told, "main0"))
        assert [r["symbol"] for r in records(done)] == [None, "main"], done
        assert f"fathom: {server.mount}/{name}: {SILENT}" in done[2], done


@test("where every file system answers no process is made, and the list of mounts is read once", needs_root=True)
def _(folder):
    own = compile_c(folder, "user", "-ldl", "-pthread")
    log = os.path.join(folder, "log")
    with Told([own]) as told:
        for target in (own, str(told.pid)):
            # LeakSanitizer does not work under ptrace.
            run("env", "ASAN_OPTIONS=detect_leaks=0", "strace", "-f", "-o", log, "-e", "trace=openat,openat2,clone,clone3,fork,vfork", FATHOM, "addr",
                "--threads=1", "--no-cache", target, "main")
            with open(log, encoding="utf-8") as file:
                calls = file.read()
            assert calls.count("mountinfo") == 1, calls
            assert not re.search(r"\b(clone3?|v?fork|openat2)\(", calls), calls


@test("the library leaves a program's children and signals alone, and waits only where it is told to",
      needs_root=True)
def _(folder):
    with Server(folder) as server, user_of(server) as told:
        client = os.path.join(os.environ["BUILD"], "tests", "reach")
        arguments = [str(told.pid), place(told, "in_library1"), place(told, "main0")]
        assert server.ask(client, "300", *arguments) == (0, "in_library main\n", "")
        server.silence()
        assert server.ask(client, "300", *arguments) == (0, "timeout main\n", "")
