#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The suite "syscalls": programs under strace, and under a tracer that prints by the library's capture, record and text. The lines
are equal, but for what differs from run to run, and for the classes that EXPLAINED lists."""
import glob
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib")]

import strace_versions  # noqa: E402
import tap  # noqa: E402

from ask import FATHOM, execute, run  # noqa: E402
from building import need_32_bit  # noqa: E402

BUILD = os.environ.get("BUILD", "build")
TRACER = os.path.join(BUILD, "tests", "syscall_tracer")
SUITE = tap.Suite("syscalls")
test = SUITE.test
X86_64, I386, AARCH64 = 62, 3, 183

# What differs from run to run, whoever prints it.
CHANGING = [
    (r"0x[0-9a-f]{5,16}\b", "ADDR"),
    (r"(si_[us]time|tms_c?[us]time)=\d+(?: /\* \d+\.\d\d s \*/)?", r"\1=N"),
    # Other programs make folders there.
    (r'("/tmp", \{.*?st_nlink=)\d+(.*?st_size=)\d+', r"\1N\2N"),
    (r"(tv_[un]?sec|(?:st|shm|msg)_[a-z]time(?:_nsec)?|(?:st|stx)_ino|ru_\w+|stx_mnt_id)=-?\d+", r"\1=N"),
    (r" /\* \d{4}-[-0-9T:.+]+ \*/", ""),
    (r"htons\((?!80\))\d{4,5}\)", "htons(PORT)"),
    (r'sin_port="(?!\\x00\\x50)[^"]*"', 'sin_port="PORT"'),
    (r"(socket|pipe):\[\d+\]", r"\1:[N]"),
    (r'getrandom\("[^"]*"', "getrandom(BYTES"),
    (r"^(shmget|semget|msgget|times|time)\((.*) = \d+$", r"\1(\2 = N"),
    (r"^(shmat|shmctl|semop|semtimedop|semctl|msgsnd|msgrcv|msgctl)\(\d+", r"\1(N"),
    (r"(IPC_INFO, .*) = \d+$", r"\1 = N"),
    (r"(sem_[oc]time)=\d+", r"\1=N"),
    (r"^((?:keyctl|add_key)\(.*)", lambda m: re.sub(r"\b\d{6,}\b", "KEY", m[1])),
    (r'(KEYCTL_READ, [^"]*)"(?:[^"\\]|\\.)*"', r"\1IDS"),
    (r"loads=\[[^]]*\]", "loads=[N]"),
    (r"(getcpu\(|totalram=|freeram=|sharedram=|bufferram=|uptime=|procs=|f_b?free=|fe_physical=|f_bavail=|f_ffree=)[^,)]*", r"\1N"),
    (r"((?:shm|msg)_[cl][sr]?pid)=\d+", r"\1=PID"),
    # Of a structure in its old form, which strace takes for the new one, too: half of it is a number of the system's.
    (r"(_perm=\{uid=0, gid=0, mode)=\d+(, key=0, cuid)=\d+(, cgid=4096\})", r"\1=N\2=N\3"),
    (r"(d_ino|d_off)=\d+", r"\1=N"),
    (r"^getppid\(\).*", "getppid() = N"),
    (r" +(= [^=]*)$", r" \1"),
]

# Lines that may differ, and why; what differs by strace's version only, and can be computed, is in tests/lib/strace_versions.py.
# This one holds below strace 6.13 only.
OLD = "strace 6.1 does not know these constants or calls"
EXPLAINED = [
    (r"^restart_syscall\(", "strace says which call it had seen before"),
    (r"LANDLOCK_RULE_NET_PORT|RWF_(NOAPPEND|ATOMIC)|MSG_SOCK_DEVMEM|MFD_NOEXEC_SEAL|"
     r"STATX_(MNT_ID_UNIQUE|SUBVOL|WRITE_ATOMIC)|IORING_ENTER_ABS_TIMER|MOVE_MOUNT_BENEATH|PIDFD_THREAD|MAP_DROPPABLE|"
     r"UFFD_FEATURE_(WP_UNPOPULATED|POISON|WP_ASYNC|MOVE)|F_[GS]ET_RW_HINT|^(fchmodat2|cachestat|uretprobe)\(", OLD),
    (r"KEXEC_UPDATE_ELFCOREHDR|IORING_FEAT_", "strace 6.1 lacks some of these; strace 6.13 has those of kernels that the tables are not of"),
    (r"MSG_(NO_SHARED_FRAGS|BATCH|SENDPAGE_(DECRYPTED|NOTLAST))", "strace has the names of later kernels, or of earlier ones, of MSG_ flags"),
    (r"LO_FLAGS_USE_AOPS", "strace has a flag of earlier kernels"),
    (r"FAN_DIR_MODIFY|FAN_EVENT_ON_CHILD|PKEY_DISABLE_", "strace has constants that no UAPI header for x86 has"),
    (r"^(ipc|semop)\(\d, ADDR|^msgrcv\(", "i386: strace knows no version of ipc(), and shows what a message had room for"),
]

OPTIONS = {"plain": [], "all of it": ["-v"], "long strings": ["-s", "200"], "short strings": ["-v", "-s", "5"], "hexadecimal": ["-xx"],
           "hexadecimal where it must be": ["-x"], "descriptors": ["-y"]}

REAL = {"ls": ["/usr/bin/ls", "-la", "/etc"], "cat": ["/usr/bin/cat", "/etc/passwd"], "cp": ["/usr/bin/cp", "-a", "/etc/alternatives", "copy"],
        "tar": ["/usr/bin/tar", "cf", "archive", "/etc/apt"], "python3": ["/usr/bin/python3", "-c", "import json, socket; print(1)"],
        "sqlite3": ["/usr/bin/sqlite3", "base", "select count(*) from t"],
        "lua": ["/usr/bin/lua5.4", "-e", 'print(#io.open("/etc/passwd"):read("a"))'],
        "bash": ["/bin/bash", "-c", "echo hi >file; cd /; [ -f /etc/passwd ]"]}

FAMILIES = ("files", "descriptors", "data", "memory", "addresses", "options", "messages", "signals", "timers", "processes",
            "schedulers", "identities", "controls", "futexes", "waiting", "system_v", "rare", "heads", "programs", "requests", "keys", "tracing", "events", "filters", "interfaces")

# Marker arguments: small numbers, none, bad pointers with all bits or some.
MARKERS = {64: ["1 2 3 4 5 6", "0 0 0 0 0 0", "-1 -1 -1 -1 -1 -1", "2 3 1 1 1 1", "10 4096 8 16 32 64",
                "0x1111222233334444 0x2111222233334444 0x3111222233334444 0x4111222233334444 0x5111222233334444 0x6111222233334444"],
           32: ["1 2 3 4 5 6", "10 4096 8 16 32 64", "0x11112222 0x21112222 0x31112222 0x41112222 0x51112222 0x61112222"]}
# The last calls that strace 6.1 knows.
LAST = {64: 450, 32: 450}


REWRITTEN = (FATHOM, "strace", "--way=rewrite")


def need():
    if os.environ.get("WRAPPER"):
        raise tap.Skip("the programs of this suite run by themselves")
    if os.uname().machine != "x86_64":
        raise tap.Skip("the programs of this suite are for x86-64")
    done = execute("strace", "-qq", "-o", "/dev/null", "true")
    if done.returncode:
        raise tap.Skip(f"strace may not trace here: {done.stderr.strip()}")


class Line:
    """A line without what changes, and the numbers of processes, which may look like sizes."""

    def __init__(self, line, pids):
        for pattern, instead in CHANGING:
            line = re.sub(pattern, instead, line)
        self.text, self.pids = line, pids

    def without(self, pids):
        return re.sub(r"\b(0x[0-9a-f]+|\d{2,})\b", lambda m: "PID" if int(m[0], 0 if m[0][:2] == "0x" else 10) in pids else m[0], self.text)

    def same(self, other):
        pids = self.pids | other.pids
        return self.text == other.text or self.without(pids) == other.without(pids)


def lines_of(path, folder, as_other):
    """The lines of a log without those of signals; processes are those that this one tells of itself and of its children."""
    with open(path, encoding="latin-1") as file:
        text = "\n".join(map(as_other, file.read().replace(folder, "FOLDER").splitlines()))
    own = re.search(r"^set_tid_address\(.*= (\d+)$", text, re.M)
    pids = {int(own[1])} if own else set()
    pids |= {int(n) for n in re.findall(r"^(?:clone|clone3|fork|vfork)\(.*= (\d+)$", text, re.M)}
    return [Line(line, pids) for line in text.splitlines() if not line.startswith(("--- ", "[ Process", "strace: "))]


def is_explained(ours, theirs):
    is_old = strace_versions.installed() < strace_versions.NEWER
    return any(re.search(pattern, line) for pattern, why in EXPLAINED if is_old or why != OLD for line in (ours, theirs))


def both(folder, options, command, tracer=(TRACER,)):
    """Runs the command under both, in folders of one name; returns both logs."""
    logs = []
    for who in ("strace",), tracer:
        work = os.path.join(folder, "work")
        run("rm", "-rf", work)
        os.mkdir(work)
        run("sqlite3", os.path.join(work, "base"), "create table t(a); insert into t values(1)")
        log = os.path.join(folder, os.path.basename(who[0]) + ".log")
        # Without random addresses, brk() and mmap() take turns as before.
        execute("setarch", "-R", *who, *options, "-o", log, *command, cwd=work, env={"TZ": "UTC", "PATH": "/usr/bin:/bin", "LC_ALL": "C"})
        logs.append(lines_of(log, work, strace_versions.as_fathom if who == ("strace",) else strace_versions.as_strace))
    return logs


def compare(folder, options, command, at_least, tracer=(TRACER,)):
    theirs, ours = both(folder, options, command, tracer)
    assert len(theirs) >= at_least, f"strace has only {len(theirs)} lines"
    wrong = [(t.text, o.text) for t, o in zip(theirs, ours) if not t.same(o) and not is_explained(o.text, t.text)]
    shown = "\n".join(f"strace: {t[:600]}\nours:   {o[:600]}" for t, o in wrong[:20])
    assert not wrong, f"{len(wrong)} of {len(theirs)} lines differ:\n{shown}"
    assert len(theirs) == len(ours), f"{len(theirs)} lines, ours {len(ours)}: {theirs[-1].text}, {ours[-1].text}"


def made(folder):
    """The program that makes calls with chosen arguments."""
    path = os.path.join(folder, "made")
    run("gcc", "-D_GNU_SOURCE", "-O1", "-w", "-o", path, *sorted(glob.glob(os.path.join(HERE, "programs", "*.c"))), "-lrt")
    return path


def markers(folder):
    path = os.path.join(folder, "markers")
    run("gcc", "-O1", "-w", "-o", path, os.path.join(HERE, "markers.c"))
    return path


def add_real(name, command, how):
    def compared(folder):
        need()
        compare(folder, OPTIONS[how], command, 40)
    SUITE.add(f"{name}, {how}: each line is strace's", compared)


def add_family(name):
    """One way after the other: addresses and queues that the program makes have names."""
    def compared(folder):
        need()
        for how in ("plain", "short strings", "hexadecimal"):
            compare(folder, OPTIONS[how], [made(folder), name], 30)
        # The processes of this one trace each other; whoever traces all of them keeps them from that.
        if name != "tracing":
            compare(folder, [], [made(folder), name], 30, REWRITTEN)
    SUITE.add(f"calls of the family {name}, as they are, with -v and with -xx: each line is strace's", compared)


def add_numbers(*names):
    def compared(folder):
        need()
        for name in names:
            for how in NUMBERS:
                compare(folder, OPTIONS[how], [made(folder), name], 30)
    SUITE.add(f"calls of the families {', '.join(names)} as numbers, and as numbers with names: each line is strace's", compared)


def add_markers(bits, arguments):
    def compared(folder):
        need()
        if bits == 32:
            need_32_bit()
        if bits == 64 and arguments == MARKERS[64][0]:
            compare(folder, [], [markers(folder), str(bits), str(LAST[bits]), *arguments.split()], 400, REWRITTEN)
        compare(folder, [], [markers(folder), str(bits), str(LAST[bits]), *arguments.split()], 400)
    SUITE.add(f"each call of {bits} bits with {arguments}: name and arguments are strace's", compared)


@test("calls of i386 that stand for others, as they are, with -v and with -xx: each line is strace's")
def i386(folder):
    need()
    need_32_bit()
    path = os.path.join(folder, "made32")
    run("i686-linux-gnu-gcc", "-static", "-O1", "-w", "-o", path, os.path.join(HERE, "programs32", "made.c"))
    for how in ("plain", "short strings", "hexadecimal"):
        compare(folder, OPTIONS[how], [path], 70)


# What strace makes of numbers is not followed everywhere: in these it is.
NUMBERS = {"numbers": ["-Xraw"], "numbers and names": ["-Xverbose"]}
OPTIONS |= NUMBERS

for program, of in REAL.items():
    for option in OPTIONS:
        if option in NUMBERS:
            if program in ("cat", "lua", "sqlite3"):
                add_real(program, of, option)
        elif option != "all of it" or program in ("ls", "tar"):
            add_real(program, of, option)
for family in FAMILIES:
    add_family(family)
add_numbers("addresses", "interfaces")
for width, lists in MARKERS.items():
    for list_of in lists:
        add_markers(width, list_of)


def table():
    """{machine: {number: (name, classes, arguments)}} as the library has it."""
    found = {}
    for line in run(TRACER, "-l").splitlines():
        machine, number, name, classes, *arguments = line.split("\t")
        found.setdefault(int(machine), {})[int(number)] = (name, int(classes, 16), arguments)
    return found


CLASSES = ("file", "desc", "memory", "network", "process", "signal", "ipc", "creds", "clock", "pure", "stat", "lstat", "fstat", "%stat",
           "statfs", "fstatfs", "%statfs")


@test("classes: strace's own filter lets the same calls through, by each class")
def classes(folder):
    need()
    ours, program = table()[X86_64], markers(folder)
    for bit, name in enumerate(CLASSES):
        done = execute("strace", "-qq", "-e", f"trace=%{name}", "-e", "signal=none", program, "64", str(LAST[64]), *"123456")
        theirs = {call for call in re.findall(r"^(\w+)\(", done.stderr, re.M) if not call.startswith("syscall_")} - {"exit_group"}
        same = {row[0] for number, row in ours.items() if number <= LAST[64] and row[1] >> bit & 1} - {"exit_group"}
        assert theirs == same, f"%{name}: strace's alone {sorted(theirs - same)}, ours alone {sorted(same - theirs)}"


@test("numbers and names are those of the headers of linux-libc-dev, on all machines")
def headers(_folder):
    ours = table()
    for machine, path in ((X86_64, "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), (I386, "/usr/include/x86_64-linux-gnu/asm/unistd_32.h"),
                          (AARCH64, "/usr/aarch64-linux-gnu/include/asm/unistd.h")):
        text = run("cc", "-E", "-dM", "-nostdinc", "-I", "/usr/aarch64-linux-gnu/include" if machine == AARCH64 else "/usr/include/x86_64-linux-gnu",
                   "-I", "/usr/include", "-include", path, "-", input="")
        macros = dict(re.findall(r"^#define (__NR\w+) (\S+)$", text, re.M))
        numbers = {}
        for name, value in macros.items():
            while value in macros:
                value = macros[value]
            if name.startswith("__NR_") and name not in ("__NR_syscalls", "__NR_arch_specific_syscall"):
                numbers[int(value)] = name[5:]
        assert len(numbers) > 250, f"{path}: {len(numbers)} numbers"
        wrong = {n: (name, ours[machine].get(n)) for n, name in numbers.items() if ours[machine].get(n, ("",))[0] != name}
        assert not wrong, f"{path}: {wrong}"


@test("arguments have the names and types of the manual and of the kernel's sources")
def arguments(_folder):
    ours = {row[0]: row[2] for row in table()[X86_64].values()}
    for name, wanted in {"openat": ["int|dfd", "const char *|filename", "int|flags", "umode_t|mode"], "close": ["unsigned int|fd"],
                         "fsync": ["unsigned int|fd"], "gettid": []}.items():
        assert ours[name] == wanted, (name, ours[name])
    assert [a.split("|")[-1] for a in ours["clone"]] == ["clone_flags", "newsp", "parent_tidptr", "child_tidptr", "tls"], ours["clone"]


@test("a program that syncs a file, with arrows: openat() by its flags, data by its bytes, sizes in groups")
def arrows(folder):
    need()
    source = ('#include <fcntl.h>\n#include <unistd.h>\nstatic char data[131072] = "\\x7f\\x45LF\\2\\1\\1\\t";\n'
              'int main(void)\n{\n\tint fd = creat("foo", 0644);\n\twrite(fd, data, sizeof data);\n\tfsync(fd);\n\tclose(fd);\n\tclose(99);\n}\n')
    program = os.path.join(folder, "syncs")
    run("gcc", "-x", "c", "-o", program, "-", input=source)
    log = os.path.join(folder, "log")
    execute(TRACER, "-a", "-o", log, program, cwd=folder)
    with open(log, encoding="utf-8") as file:
        lines = file.read().splitlines()
    begun = next(i for i, line in enumerate(lines) if "foo" in line)
    assert re.fullmatch(r'(creat\("foo"|openat\(AT_FDCWD, "foo", O_WRONLY\|O_CREAT\|O_TRUNC), 0644\) → 3', lines[begun]), lines[begun]
    # Code page 437, of which 0 is blank; 32 bytes are shown.
    blank = "\u00a0" * 24
    assert lines[begun + 1] == f'write(3, u"⌂ELF☻☺☺○{blank}"..., 131\'072) → 131\'072', lines[begun + 1]
    assert lines[begun + 2:begun + 5] == ["fsync(3) → 0", "close(3) → 0", "close(99) → -1 EBADF"], lines[begun + 2:begun + 5]
    assert lines[begun + 5] == "exit_group(0) → ?", lines[begun + 5]


@test("times in ticks of a clock, of times() and in a child's SIGCHLD: what they are in seconds, unless they are 0")
def ticks(folder):
    need()
    source = ("#include <stdio.h>\n#include <sys/times.h>\n#include <sys/wait.h>\n#include <time.h>\n#include <unistd.h>\n"
              "static void use(void)\n{\n\twhile (clock() < CLOCKS_PER_SEC / 20)\n\t\t;\n}\n"
              "int main(void)\n{\n\tstruct tms t;\n\tsiginfo_t ended;\n\tuse();\n\tif (!fork()) {\n\t\tuse();\n\t\t_exit(0);\n\t}\n"
              "\twaitid(P_ALL, 0, &ended, WEXITED);\n\ttimes(&t);\n"
              '\tprintf("%ld %ld %ld %ld %ld %ld\\n", t.tms_utime, t.tms_stime, t.tms_cutime, t.tms_cstime, ended.si_utime, ended.si_stime);\n}\n')
    program = os.path.join(folder, "uses")
    run("gcc", "-x", "c", "-o", program, "-", input=source)
    log = os.path.join(folder, "log")
    numbers = [int(word) for word in execute(TRACER, "-o", log, program).stdout.split()]
    assert len(numbers) == 6 and sum(numbers[:2]) and sum(numbers[2:4]), numbers
    shown = [f"{n} /* {n // 100}.{n % 100:02} s */" if n else "0" for n in numbers]
    with open(log, encoding="utf-8") as file:
        text = file.read()
    members = "times({" + ", ".join(f"tms_{name}={n}" for name, n in zip(("utime", "stime", "cutime", "cstime"), shown)) + "})"
    assert members in text, (members, text)
    assert f"si_utime={shown[4]}, si_stime={shown[5]}}}" in text, (shown, text)


@test("parts of a call: each argument with its name, the result, the error")
def parts(folder):
    need()
    log = os.path.join(folder, "log")
    execute(TRACER, "-j", "-o", log, "/usr/bin/cat", "/nonexistent")
    with open(log, encoding="utf-8") as file:
        found = [line.rstrip("\n").split("\t") for line in file if "nonexistent" in line and line.startswith("openat")]
    assert found == [["openat", "dfd=AT_FDCWD", 'filename="/nonexistent"', "flags=O_RDONLY", "-1 ENOENT (No such file or directory)", "ENOENT"]], found


if __name__ == "__main__":
    sys.exit(SUITE.run())
