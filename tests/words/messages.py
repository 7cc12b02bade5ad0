# SPDX-License-Identifier: MIT
"""Messages say what is so: each situation is made for real, and the whole line is known."""
import os
import re
import subprocess

import building
import tap
from ask import FATHOM, as_user, copy_for_all, execute, fathom, run
from building import core_of
from counting import is_instrumented
from named import SUITE
from running import Asked, Running, mapping_of

test = SUITE.test

# Users without rights, and without names.
USER, OTHER = 54321, 54322

IDLE = """#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	char *at = NULL;

	if (strcmp(how, "hidden") == 0)
		prctl(PR_SET_DUMPABLE, 0);
	if (strcmp(how, "code") == 0) {
		at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	} else if (strcmp(how, "shared") == 0) {
		at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	} else if (strcmp(how, "sysv") == 0) {
		const int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0700);

		at = shmat(id, NULL, SHM_EXEC);
		shmctl(id, IPC_RMID, NULL);
	} else if (strcmp(how, "memfd") == 0) {
		const int fd = memfd_create("nothing", 0);

		(void)!ftruncate(fd, 4096);
		at = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	} else if (strcmp(how, "perf") == 0) {
		struct perf_event_attr a = { .type = PERF_TYPE_SOFTWARE, .size = sizeof a, .exclude_kernel = 1 };
		const int fd = (int)syscall(SYS_perf_event_open, &a, 0, -1, -1, 0);

		at = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	}
	printf("%p\\n", at == MAP_FAILED ? NULL : (void *)at);
	fflush(stdout);
	pause();
	return 0;
}
"""


def build(folder, name="idle"):
    """The program; its source stays beside it."""
    path = os.path.join(folder, name)
    with open(path + ".c", "w", encoding="utf-8") as f:
        f.write(IDLE)
    return building.build(path, path + ".c", flags=["-w"])


class Idle(Running):
    """A program that waits, and what it has told."""

    def __init__(self, path, how="", user=None, rights=()):
        command = [path, how]
        super().__init__(as_user(user, *command, rights=rights) if user else command, cwd="/")
        self.at = int(self.line().replace("(nil)", "0"), 16)


def asked(*command, status=2, user=None, env=None):
    """Standard error of a run; what it printed, and to where, is checked by its status."""
    done = execute(*command, status=status, user=user, cwd="/", env=env)
    assert status != 2 or not done.stdout, done
    return done.stderr


def in_namespace(script, *arguments):
    """Runs the shell script in mount namespaces of its own; its standard output and error together."""
    tap.need_mount_namespaces()
    return run("unshare", "-m", "sh", "-c", script, "sh", *arguments, status=None, stderr=subprocess.STDOUT)


# Processes.

@test("messages: a process that is not dumpable is not shown to its own user: run as root", needs_root=True)
def not_dumpable(folder):
    fathom = copy_for_all(folder)
    with Idle(build(folder), "hidden", USER) as program:
        for user in (USER, OTHER):
            for verb, argument in (("addr", "main"), ("find", "main"), ("disasm", "main"), ("snapshot", "/tmp/x")):
                assert asked(fathom, verb, program.pid, argument, user=user) == \
                    f"fathom: {program.pid}: is not dumpable: not even its own user may look at it (run as root)\n"
        assert asked(fathom, "addr", program.pid, "main", status=0) == ""


@test("messages: another user's process; one's own with more rights", needs_root=True)
def other_rights(folder):
    fathom, path = copy_for_all(folder), build(folder)
    with Idle(path, user=USER) as program:
        assert asked(fathom, "addr", program.pid, "main", user=OTHER) == \
            f"fathom: {program.pid}: belongs to another user (run as that user or as root)\n"
        assert asked(fathom, "addr", program.pid, "main", user=USER, status=0) == ""
        assert asked(fathom, "addr", "-p", program.pid, "main", user=OTHER).startswith(f"fathom: {program.pid}: belongs")
    with Idle(path, user=USER, rights=["net_raw"]) as program:
        # Such a program is dumpable: only its rights are in the way.
        assert asked(fathom, "addr", program.pid, "main", user=USER) == \
            f"fathom: {program.pid}: has rights that this user lacks, or a security module protects it (run as root)\n"


@test("messages: no such process; one that has ended meanwhile", needs_root=True)
def no_process(folder):
    remedy = "(write file:PATH or ./PATH for a file of that name)"
    assert asked(FATHOM, "addr", 4194305, "0") == f"fathom: 4194305: there is no such process {remedy}\n"
    assert asked(FATHOM, "addr", "-p", 4194305, "0") == "fathom: 4194305: there is no such process\n"
    fathom = copy_for_all(folder)
    assert asked(fathom, "addr", 4194305, "0", user=USER) == f"fathom: 4194305: there is no such process {remedy}\n"
    with Idle(build(folder)) as program, Asked(program.pid) as fathom:
        assert fathom.one("main")["symbol"] == "main"
        program.kill()
        status, _, complaint = fathom.last("main")
        assert status == 2 and complaint == f"fathom: /proc/{program.pid}/maps: the process has ended\n", complaint


@test("messages: a /proc that hides processes says so; one that is not there, too", needs_root=True)
def hidden(folder):
    fathom = copy_for_all(folder)
    with Idle(build(folder), user=USER) as program:
        script = f"""mount -t proc -o hidepid=$1 proc /proc || exit 0
            {' '.join(as_user(OTHER, fathom))} addr {program.pid} main
            {' '.join(as_user(OTHER, fathom))} addr 4194305 0
            {' '.join(as_user(USER, fathom))} addr --names-only {program.pid} main | cut -d ' ' -f 2"""
        none = "fathom: 4194305: there is no such process (write file:PATH or ./PATH for a file of that name)\n"
        for way, complaint in (("1", "belongs to another user (run as that user or as root)"),
                               ("2", "is there, but /proc does not show it to this user (run as root, or mount /proc "
                                     "without hidepid)"),
                               ("4", "is there, but /proc does not show it to this user (run as root, or mount /proc "
                                     "without hidepid)")):
            out = in_namespace(script, way)
            # Kernels before 5.8 do not know the last, and some have no /proc to mount.
            if "mount:" in out:
                if way != "4":
                    raise tap.Skip(f"hidepid={way} cannot be mounted: {out.strip()}")
                continue
            assert out == f"fathom: {program.pid}: {complaint}\n{none}main+0x0\n", (way, out)
        if is_instrumented(FATHOM):
            raise tap.Skip("without /proc a sanitizer does not start")
        script = f"""umount -l /proc
            {FATHOM} addr {program.pid} main
            {FATHOM} addr 4194305 0
            {FATHOM} addr kernel 0
            {FATHOM} addr --names-only -e {folder}/idle main | cut -d ' ' -f 2"""
        remedy = "(mount -t proc proc /proc)"
        assert in_namespace(script) == \
            f"fathom: {program.pid}: /proc is not mounted: processes are seen only there {remedy}\n" \
            f"fathom: 4194305: /proc is not mounted: processes are seen only there {remedy}\n" \
            f"fathom: /proc/kallsyms: /proc is not mounted: the kernel's symbols are only there {remedy}\n" \
            "main+0x0\n"


@test("messages: a perf map that is refused: why, and what to do", needs_root=True)
def perf_map(folder):
    trust = "(if you trust it: chown it to the user of the process, and chmod go-w)"
    with Idle(build(folder), "code", USER) as program:
        path = f"/tmp/perf-{program.pid}.map"
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"{program.at:x} 10 made\n")

        def refused(why):
            assert asked(FATHOM, "addr", program.pid, hex(program.at), status=1) == \
                f"fathom: {path}: not used for names of JIT code: {why}\n"

        try:
            os.chown(path, OTHER, OTHER)
            refused(f"it belongs to another user than the process {trust}")
            os.chown(path, USER, USER)
            os.chmod(path, 0o666)
            refused(f"everybody may write to it {trust}")
            os.chmod(path, 0o644)
            assert asked(FATHOM, "addr", program.pid, hex(program.at), status=0) == ""
            os.rename(path, path + ".x")
            os.symlink(path + ".x", path)
            refused("it is a symbolic link")
            os.unlink(path)
            os.mkdir(path)
            refused("no regular file")
            os.rmdir(path)
        finally:
            for left in (path, path + ".x"):
                if os.path.lexists(left):
                    os.unlink(left)


@test("messages: memory without a file has none to look for, in a process, its core and its snapshot")
def no_file(folder):
    path = build(folder)
    for how, reason in (("shared", "no-file"), ("sysv", "no-file"), ("perf", "no-file"), ("code", "no-file")):
        with Idle(path, how) as program:
            if not program.at:
                assert how == "perf"
                continue
            core, shot = core_of(program.pid, folder), os.path.join(folder, "shot")
            run(FATHOM, "snapshot", program.pid, shot)
            for target in (program.pid, core, shot):
                done = fathom("addr", target, hex(program.at))
                assert (done.stdout, done.stderr) == (f"{program.at:#x} ?? ({reason})\n", ""), (how, target, done)
    # What memfd_create() makes may be a program: there is no path, and its start is looked at.
    with Idle(path, "memfd") as program:
        shot = os.path.join(folder, "shot")
        run(FATHOM, "snapshot", program.pid, shot)
        assert asked(FATHOM, "addr", shot, hex(program.at), status=1) == \
            "fathom: /memfd:nothing: the start of its image is not in memory\n"


def told(command, target, address, user=None):
    """What addr says on standard error, whether it knows a name or not."""
    return execute(command, "addr", target, address, user=user).stderr


@test("messages: a file that was mapped and is no more, or is another", needs_root=True)
def mapped(folder):
    fathom, path = copy_for_all(folder), build(folder)
    elsewhere = "(if it is elsewhere, name the directory above it with --sysroot)"
    # Stripped, so that memory has no name for it.
    gone = os.path.join(folder, "gone")
    run("strip", "-o", gone, path)
    with Idle(gone, user=USER) as program:
        core = core_of(program.pid, folder)
        entry = re.search(r"Entry point address:\s+(\w+)", run("readelf", "-h", gone))[1]
        at = hex(mapping_of(program.pid, gone).start + int(entry, 16))
        os.unlink(gone)
        assert told(fathom, program.pid, at, user=USER) == \
            f"fathom: {gone}: has been deleted or replaced (run as root, who may still read what is mapped)\n"
        assert asked(fathom, "addr", program.pid, at, status=0) == ""
    assert told(FATHOM, core, at).startswith(f"fathom: {gone}: No such file or directory {elsewhere}\n")
    run("strip", "-o", gone, os.path.realpath("/bin/true"))
    assert told(FATHOM, core, at).startswith(f"fathom: {gone}: is not the file that was mapped {elsewhere}\n")


@test("messages: an archive is told from other files, and what helps")
def archive(folder):
    path = build(folder)
    for options in ("rc", "rcT"):
        run("ar", options, f"{folder}/lib{options}.a", path)
        for command in (("addr",), ("find",), ("disasm",), ("stack",)):
            said = execute(FATHOM, *command, f"{folder}/lib{options}.a", *(("main",) if command != ("stack",) else ()), status=2).stderr
            assert f"lib{options}.a: an archive, not an ELF file: ar x takes its members out" in said, said


# What is written.

@test("messages: a snapshot that cannot be written: where it was to go, why, and what helps", needs_root=True)
def unwritable_snapshot(folder):
    fathom = copy_for_all(folder)
    with Idle(build(folder), user=USER) as program:
        os.makedirs(os.path.join(folder, "closed"))
        os.chmod(os.path.join(folder, "closed"), 0o700)
        for where, why, remedy in ((f"{folder}/none/shot", "No such file or directory", "make the directory first, or check the path"),
                                   (f"{folder}/closed/shot", "Permission denied", "name a place that this user may write to"),
                                   (f"{folder}/idle.c/shot", "Not a directory", "make the directory first, or check the path"),
                                   (f"{folder}/closed", "Is a directory", "name a file in it"),
                                   ("/dev/full", "No space left on device", "make room there, or name another place")):
            assert asked(fathom, "snapshot", program.pid, where, user=USER) == f"fathom: {where}: {why} ({remedy})\n"
        out = in_namespace(f"mount -t tmpfs -o size=8k tmpfs /mnt && {FATHOM} snapshot {program.pid} /mnt/shot; ls /mnt; "
                           f"mount -o remount,ro /mnt; {FATHOM} snapshot {program.pid} /mnt/shot")
        assert out == "fathom: /mnt/shot: No space left on device (make room there, or name another place)\n" \
                      "fathom: /mnt/shot: Read-only file system (name a place that this user may write to)\n", out


@test("messages: a cache directory that cannot be written: the directory, why, and the option", needs_root=True)
def unwritable_cache(folder):
    path, remedy = build(folder), "(name another directory with --cache-dir)"
    cache = f"{FATHOM} cache --cache-dir"
    out = in_namespace(f"mount -t tmpfs tmpfs /mnt; {cache} /mnt/c build {path} >/dev/null; mount -o remount,ro /mnt; "
                       f"touch -d '1 day ago' {path}; {cache} /mnt/d build {path}; {cache} /mnt/c clear; echo $?; "
                       f"{FATHOM} addr --cache=build --cache-dir /mnt/d {path} main | cut -d ' ' -f 2; "
                       f"{FATHOM} addr --cache-dir /mnt/d {path} main | cut -d ' ' -f 2")
    complaints = [f"fathom: {d}: Read-only file system {remedy}" for d in ("/mnt/d", "/mnt/c", "/mnt/d")]
    # Answers go through a pipe, and may come behind the complaint about what was to be stored.
    assert sorted(out.splitlines()) == sorted([*complaints, "2", "main+0x0", "main+0x0"]), out
    out = in_namespace(f"mount -t tmpfs -o size=4k tmpfs /mnt; {cache} /mnt/c build {path}; ls /mnt/c")
    assert out == f"fathom: /mnt/c: No space left on device {remedy}\n", out
    for arguments, complaint in ((["--cache-dir", path, "build", path], f"fathom: {path}: Not a directory {remedy}\n"),
                                 (["--cache-dir", path, "clear"], f"fathom: {path}: Not a directory (check --cache-dir)\n"),
                                 (["--no-cache", "build", path],
                                  "fathom: cache: there is no directory for it (leave out --no-cache)\n")):
        assert asked(FATHOM, "cache", *arguments) == complaint, arguments
    homeless = {k: v for k, v in os.environ.items() if k not in ("HOME", "XDG_CACHE_HOME")}
    for what in (["build", path], ["clear"], ["path"]):
        assert asked(FATHOM, "cache", *what, env=homeless) == \
            "fathom: cache: there is no directory for it (set HOME or XDG_CACHE_HOME, or give --cache-dir)\n", what


# What is typed.

@test("messages: directories and files of options that are not there; the answers come all the same")
def option_paths(folder):
    path = build(folder)
    nowhere = os.path.join(folder, "nowhere")
    for option, kind in (("--debug-dir", "Not a directory"), ("--sysroot", "Not a directory")):
        assert asked(FATHOM, "addr", option, nowhere, path, "main", status=0) == \
            f"fathom: {option}: {nowhere}: No such file or directory (check the path)\n"
        assert asked(FATHOM, "addr", option, path + ".c", path, "main", status=0) == \
            f"fathom: {option}: {path}.c: {kind} (check the path)\n"
        assert asked(FATHOM, "addr", option, folder, path, "main", status=0) == ""
    assert asked(FATHOM, "addr", "--exe", nowhere, path, "main", status=0) == \
        f"fathom: --exe: {nowhere}: No such file or directory (check the path)\n"
    assert asked(FATHOM, "find", "--debug-dir", nowhere, path, "main", status=0).startswith("fathom: --debug-dir: ")


@test("messages: an expression that is none says what is wrong with it")
def expressions(folder):
    path = build(folder)
    for query, fault in (("/(/", "a parenthesis in the expression has no counterpart"),
                         ("libc:/(/", "a parenthesis in the expression has no counterpart"),
                         ("/[a/", "a [ in the expression has no ]"), ("/a{2/", "a { in the expression has no }"),
                         ("/a{x}/", "what stands in braces in the expression is no number of repetitions"),
                         ("/*a/", "in the expression nothing stands before a *, + or ? that it could repeat"),
                         ("/[z-a]/", "a range in the expression ends before it starts"),
                         ("/[[:foo:]]/", "the expression names a class of characters that there is not"),
                         ("/[[.foo.]]/", "the expression names a character that there is not"),
                         ("/a\\/", "the expression ends with a backslash"),
                         ("", "a query without a name")):
        done = fathom("find", path, query)
        assert done.returncode == 1 and done.stdout == f"{query} ?? (bad-address)\n", done
        name = query or "''"
        assert done.stderr == f"fathom: {name}: {fault}\n", done
    assert asked(FATHOM, "find", "-E", path, "(", status=1) == \
        "fathom: (: a parenthesis in the expression has no counterpart\n"


@test("messages: an address where the target belongs")
def address_first(_):
    assert asked(FATHOM, "addr", "0x1139") == \
        "fathom: 0x1139: No such file or directory (the TARGET is named before addresses, or by -p or -e)\n"
    assert asked(FATHOM, "addr", "no-such-file", "0") == "fathom: no-such-file: No such file or directory (check the path)\n"


@test("messages: a debug file of another build, and a memory budget: their own remedies")
def remedies(folder):
    one, two = build(folder, "one"), build(folder, "two")
    run("gcc", "-w", "-g", "-o", two, two + ".c", "-DOTHER=1", "-Wl,--build-id=0x1234")
    run("gcc", "-w", "-g", "-o", one, one + ".c", "-Wl,--build-id=0x5678")
    run("objcopy", "--only-keep-debug", two, os.path.join(folder, "one.debug"))
    run("objcopy", "--strip-debug", "--add-gnu-debuglink=" + os.path.join(folder, "one.debug"), one)
    complaint = asked(FATHOM, "addr", "--no-cache", one, "main", status=0)
    assert complaint.startswith(f"fathom: {folder}/one.debug: ") and \
        complaint.endswith(" (install the debug package of exactly this version)\n") and complaint.count("\n") == 1, complaint
    run("gzip", "-k", two)
    assert asked(FATHOM, "addr", "--memory", "1K", two + ".gz", "main") == \
        f"fathom: {two}.gz: decompressed, it does not fit the memory budget (raise the limit with --memory)\n"


