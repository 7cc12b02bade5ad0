# SPDX-License-Identifier: MIT
"""Who may read what is written, and which links and files of others are followed."""
import os
import select
import stat

import building
import tap
from ask import FATHOM, execute, fathom
from placed import NOBODY, as_user, build, files_of, libraries, need_set_id, open_folder, run, test
from running import Running

# Another user than the one who runs the programs.
OTHER = 65533


def put(path, text, user=NOBODY, mode=0o666):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    os.chmod(path, mode)
    os.chown(path, user, user)
    return path


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


@test("a crash report: not into another user's file or pipe, not through a link, not into a file with a second name")
def _(folder):
    need_set_id(folder)
    path = building.build_text(os.path.join(folder, "crasher"), "int main(void) { *(volatile int *)16 = 1; return 0; }")
    library = os.path.join(libraries(folder), "libfathom-crash.so")
    out = open_folder(folder, "out")

    def crash(name):
        """What standard error got."""
        done = execute(*as_user(NOBODY, "env", f"LD_PRELOAD={library}", f"XDG_CACHE_HOME={out}/cache", f"FATHOM_CRASH=file={out}/{name}", path))
        assert done.returncode == -11, done
        return done.stderr

    # A file of the user, or of root, that is there; a new one.
    for name, user in ("own", NOBODY), ("roots", 0):
        assert not crash(os.path.basename(put(f"{out}/{name}", "old\n", user))), name
        assert read(f"{out}/{name}").startswith("old\n") and " main" in read(f"{out}/{name}"), name
    assert not crash("new") and " main" in read(f"{out}/new") and stat.S_IMODE(os.stat(f"{out}/new").st_mode) == 0o600
    put(f"{out}/others", "old\n", OTHER)
    put(f"{out}/first", "old\n")
    os.link(f"{out}/first", f"{out}/second")
    os.symlink(put(f"{out}/target", "old\n"), f"{out}/link")
    for name, target in ("others", "others"), ("second", "first"), ("link", "target"):
        err = crash(name)
        assert f"fathom: {out}/{name}: the report cannot be written there: " in err and " main" in err, (name, err)
        assert read(f"{out}/{target}") == "old\n", name
    for name, user, is_used in ("pipe", NOBODY, True), ("others-pipe", OTHER, False):
        os.mkfifo(f"{out}/{name}")
        os.chmod(f"{out}/{name}", 0o666)
        os.chown(f"{out}/{name}", user, user)
        reader = os.open(f"{out}/{name}", os.O_RDONLY | os.O_NONBLOCK)
        err = crash(name)
        assert (b" main" in os.read(reader, 1 << 16)) == is_used and (" main" in err) != is_used, (name, err)
        os.close(reader)


# Holds a lease of a file until its input ends.
HOLDER = """import fcntl, os, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
fd = os.open(sys.argv[1], os.O_RDWR)
fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("held", flush=True)
sys.stdin.read()"""


@test("perf's map: a file of another user, who holds a lease of it, is no wait and is not written to")
def _(folder):
    need_set_id(folder)
    path = build(folder, "outside.c", "fathom")
    command = as_user(NOBODY, "sh", "-c", 'echo $$; read x; FATHOM_JIT=perf-map exec "$0"', path)
    with Running(command) as program, files_of(f"/tmp/perf-{program.pid}.map"):
        map_ = put(f"/tmp/perf-{program.line()}.map", "", OTHER)
        with Running(["python3", "-c", HOLDER, map_]) as holder:
            assert holder.line() == "held"
            program.send("\n")
            # The kernel breaks a lease after 45 s (fs.lease-break-time).
            program.process.wait(timeout=30)
            assert program.process.returncode == 0 and not os.path.getsize(map_)


@test("a snapshot: a link of this user is followed, one that another user has put into a folder for all is not")
def _(folder):
    need_set_id(folder)
    out = open_folder(folder, "out")
    with Running(["sleep", "1000"]) as sleeping:
        for name, user in ("own", 0), ("planted", OTHER):
            target = put(f"{out}/{name}-target", "old\n", 0, 0o600)
            os.symlink(target, f"{out}/{name}")
            os.chown(f"{out}/{name}", user, user, follow_symlinks=False)
            done = execute(FATHOM, "snapshot", sleeping.pid, f"{out}/{name}")
            with open(target, "rb") as file:
                is_written = file.read() != b"old\n"
            assert is_written == (user == 0) == (done.returncode == 0), (name, done)
            assert os.path.islink(f"{out}/{name}")
        assert "Permission denied" in done.stderr, done


def met(program):
    """Whether the other process has met the tracer's memory."""
    return bool(select.select([program.process.stdout], [], [], 0)[0])


def end_of(program):
    """How often the other process took memory out."""
    program.send("\n")
    while (line := program.line().split())[0] != "end":
        assert line == ["met"], line
    return int(line[1])


@test("a program that shares its descriptors with another: what that puts in the place of the tracer's memory is not written to")
def _(folder):
    need_set_id(folder)
    tap.need_traced_programs()
    path = build(folder, "sharer.c", "fathom")
    victim = put(os.path.join(folder, "victim"), "old\n", 0, 0o644)
    with Running(as_user(NOBODY, path, "swap", victim)) as program:
        assert program.line() == "ready"
        for _ in range(2000):
            fathom("trace", "-p", program.pid, "--for", "0.02", "--log", "/dev/null")
            assert os.path.getsize(victim) == 4 and read(victim) == "old\n"
            if met(program):
                break
        else:
            raise AssertionError("it was never met")
        assert end_of(program) == 0


@test("a program that shares its descriptors with another: what that takes out of the tracer's memory does not end the tracer")
def _(folder):
    need_set_id(folder)
    tap.need_traced_programs()
    path = build(folder, "sharer.c", "fathom")
    with Running(as_user(NOBODY, path, "shrink")) as program:
        assert program.line() == "ready"
        # On a busy machine the program may have no processor for so long.
        is_met = is_counted = False
        for _ in range(200):
            done = fathom("trace", "-c", "-p", program.pid, "--for", "0.3")
            assert done.returncode == 0, done
            is_met |= met(program)
            is_counted |= "counted" in done.stderr
            if is_met and is_counted:
                break
        assert is_met and is_counted, (is_met, is_counted)
        assert end_of(program) == 0


@test("the index cache: none in the HOME of another user, whose links would be followed")
def _(folder):
    need_set_id(folder)
    path = building.build_text(os.path.join(folder, "program"), "int main(void) { return 0; }")
    target = open_folder(folder, "target")
    for user, is_used in (0, True), (OTHER, False):
        home = open_folder(folder, "home")
        os.makedirs(f"{home}/.cache")
        os.symlink(target, f"{home}/.cache/fathom")
        os.chown(home, user, user)
        done = execute("env", "-u", "XDG_CACHE_HOME", f"HOME={home}", FATHOM, "cache", "build", path)
        assert bool(os.listdir(target)) == is_used == (done.returncode == 0), (user, done)
        assert is_used or "the usual folder is another user's" in done.stderr, done
        open_folder(folder, "target")


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


# What each file may be to others before the umask.
LOG, PERF, OWN, FOLDER = 0o666, 0o644, 0o600, 0o700


@test("modes below any umask: logs as every program's, perf's files never for others to write, all else for its user alone")
def _(folder):
    need_set_id(folder)
    tap.need_traced_programs()
    words, published = build(folder, "words.c", "fathom-trace"), build(folder, "outside.c", "fathom")
    crasher = building.build_text(os.path.join(folder, "crasher"), "int main(void) { *(volatile int *)16 = 1; return 0; }")
    library = os.path.join(libraries(folder), "libfathom-crash.so")
    for umask in 0, 0o044, 0o133:
        out = open_folder(folder, "out")

        def under(*command, umask=umask):
            return execute("sh", "-c", f'umask {umask:o}; exec "$@"', "-", *command)

        with Running(["sleep", "1000"]) as sleeping:
            under(FATHOM, "snapshot", sleeping.pid, f"{out}/snapshot")
        under(FATHOM, "trace", "--log", f"{out}/log", "--", words)
        under(FATHOM, "trace", "-o", f"{out}/events", "--", words)
        under(FATHOM, "strace", "-o", f"{out}/strace", words)
        under("env", f"FATHOM_TRACE=--log {out}/own", words)
        under("env", f"STRACE=-o {out}/own-events", words)
        under("env", f"LD_PRELOAD={library}", f"FATHOM_CRASH=names,file={out}/crash", crasher)
        under(FATHOM, "cache", "--cache-dir", f"{out}/cache/deep", "build", words)
        said = dict(line.split(" ", 1) for line in under("env", "FATHOM_JIT=files", published).stdout.splitlines())
        index, = os.listdir(f"{out}/cache/deep")
        with files_of(f"/tmp/perf-{said['pid']}.map", f"/tmp/jit-{said['pid']}.dump") as find:
            dump, map_ = find()
            places = {f"{out}/{name}": LOG for name in ("log", "events", "strace", "own", "own-events")} | {dump: PERF, map_: PERF} | {
                f"{out}/{name}": OWN for name in ("snapshot", "crash", f"cache/deep/{index}")} | {
                f"{out}/{name}": FOLDER for name in ("cache", "cache/deep")}
            found = {path: oct(mode_of(path)) for path in places}
            expected = {path: oct(mode & ~umask) for path, mode in places.items()}
            assert found == expected, (oct(umask), found, expected)


@test("memory that a tracer and its program share: no descriptor of it stays in either")
def _(_):
    tap.need_traced_programs()
    with Running([FATHOM, "trace", "--log", "/dev/null", "--", "cat"]) as tracer:
        tracer.send("word\n")
        assert tracer.line() == "word"
        program, = run("pgrep", "-P", tracer.pid, "-x", "cat").split()
        shared = [line for line in read(f"/proc/{program}/maps").splitlines() if "/memfd:fathom-trace" in line]
        assert shared and all(line.split()[1] == "rw-s" for line in shared), shared
        for pid in tracer.pid, program:
            opened = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
            assert not [path for path in opened if "memfd:" in path], opened
