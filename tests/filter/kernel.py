# SPDX-License-Identifier: MIT
"""Symbols as the kernel prints them."""
import os
import shutil

import tap

from ask import run
from building import build_id, debug_path
from built import compiled, folder_for, link, steps
from formats import FUNCTION, NEXT
from running import Running, wait_for_state
from suite import address_of, check_names, expected, json_frames, names_of, objects, once, test


@once
def twins():
    folder = folder_for("twins")
    return link(os.path.join(folder, "twins"), compiled("twins_one.c", "-fno-pie"), compiled("twins_two.c", "-fno-pie"), "-no-pie")


def sized(path, name):
    """(address, size) of the functions of one name, sorted."""
    lines = (line.split() for line in run("nm", "-S", path).splitlines())
    return sorted((int(words[0], 16), int(words[1], 16)) for words in lines if len(words) == 4 and words[3] == name)


@test("kernel symbols: of two static functions with one name the size tells which; of one size they are both there")
def same_names(_):
    path = twins()
    (one, one_size), (two, two_size) = sized(path, "size")
    assert one_size != two_size
    check_names(f" size+0x8/{one_size:#x}\n size+0x8/{two_size:#x}\n? size+0x8/{two_size + 1:#x}\n",
                [expected(path, one + 8, one + 7), expected(path, two + 8, two + 7), None], path)
    (one, one_size), (two, two_size) = sized(path, "same")
    assert one_size == two_size
    check_names(f"RIP: 0010:same+0x8/{one_size:#x}\n", [f"{expected(path, one + 8)}; {expected(path, two + 8)}"], path)
    records = objects(f"RIP: 0010:same+0x8/{one_size:#x}\n", path)
    assert [int(r["address"], 16) for r in records] == [one + 8, two + 8], records
    assert len({json_frames(r)[0][1] for r in records}) == 2, records


@test("kernel symbols: after a call that ends its function: RIP is the next function, a trace is its caller")
def ends_with_a_call(_):
    path = twins()
    ((address, size),), ((after, after_size),) = sized(path, "ends"), sized(path, "after")
    assert address + size == after
    log = (f"RIP: 0010:after+0x0/{after_size:#x}\n"
           f" ends+{size:#x}/{size:#x}\n"
           f" ? ends+{size:#x}/{size:#x}\n"
           f"[<0>] ends+{size:#x}/{size:#x}\n"
           f"[<ffffffff81000000>] ends+{size:#x}/{size:#x}\n"
           f"pc : after+0x0/{after_size:#x}\n"
           f"lr : ends+{size:#x}/{size:#x}\n"
           f"PC is at after+0x0/{after_size:#x}\n"
           f"LR is at ends+{size:#x}/{size:#x}\n")
    exact, trace = expected(path, after), expected(path, after, after - 1)
    assert "ends" in trace and "after" in exact
    check_names(log, [exact, trace, trace, trace, trace, exact, trace, exact, trace], path)


@test("kernel symbols: several in one line are divided by ;")
def several_symbols(_):
    path = twins()
    ((after, size),), ((_, ends_size),) = sized(path, "after"), sized(path, "ends")
    line = f"BUG: scheduling while atomic: after+0x3/{size:#x} ends+{ends_size:#x}/{ends_size:#x} nothing+0x1/0x2"
    check_names(line + "\n", [f"{expected(path, after + 3, after + 2)}; {expected(path, after, after - 1)}"], path)


@test("kernel symbols: an offset behind the end of its function, as no kernel has it, is none of the function after it")
def behind_the_end(_):
    path = twins()
    ((_, size),) = sized(path, "after")
    for number in (size + 1, 0xffffffffffffffff):
        assert names_of(f" after+{number:#x}/{size:#x}\n", path) == [None], number


@test("kernel symbols: those of a module are in NAME.ko of a module directory, or below its build-id")
def kernel_module(folder):
    library = steps("usual")
    shutil.copy(library, f"{folder}/some.ko")
    shutil.copy(library, debug_path(folder, build_id(library)))
    first, next = address_of(library, FUNCTION), address_of(library, NEXT)
    size = next - first
    log = (f"RIP: 0010:{FUNCTION}+0x0/{size:#x} [some]\n"
           f" {FUNCTION}+{size:#x}/{size:#x} [some]\n"
           f" ? {FUNCTION}+{size:#x}/{size:#x} [other {build_id(library)}]\n"
           f" {FUNCTION}+{size:#x}/{size:#x} [missing]\n")
    check_names(log, [expected(library, first, by_path=True), expected(library, next, next - 1, by_path=True),
                      expected(library, next, next - 1), None], "--module-dir", folder, "--debug-dir", folder)


@test("kernel symbols of the running kernel: addresses are those of /proc/kallsyms")
def running_kernel(_):
    places = {}
    with open("/proc/kallsyms", encoding="ascii") as file:
        for address, _, name in (line.split()[:3] for line in file):
            places.setdefault(name, []).append(int(address, 16))
    if not any(address for found in places.values() for address in found):
        raise tap.Skip("this user may not read where the kernel is")
    with Running(["cat"]) as process:
        # It has read what was there, and waits for more.
        process.send("ready\n")
        assert process.line() == "ready"
        wait_for_state(process.pid, "S")
        try:
            with open(f"/proc/{process.pid}/stack", encoding="ascii") as file:
                log = file.read()
        except OSError as error:
            raise tap.Skip(f"the kernel's stack cannot be read: {error}") from None
    records = objects(log, "kernel")
    lines = log.splitlines()
    assert len(records) == len(lines) > 2, log
    for line, record in zip(lines, records):
        name, _, rest = line.split()[1].partition("+")
        offset, size = (int(number, 16) for number in rest.split("/"))
        assert len(places[name]) > 1 or record["address"] == hex(places[name][0] + offset), (line, record)
        assert (record["symbol"], record["offset"], record["size"]) == (name, offset, size), (line, record)


def hung_log(after, ends, size, user):
    """Messages about hung tasks, by the kernels that print them so, and which of their lines have an address: of a trace."""
    call, maybe, exact = f"after+0x3/{after:#x}", f"? ends+{ends:#x}/{ends:#x}", f"size+0x8/{size:#x}"
    x86 = ["RSP: 002b:00007ffc2c3a6f48 EFLAGS: 00000246 ORIG_RAX: 0000000000000001",
           "RAX: ffffffffffffffda RBX: 0000000000000002 RCX: 00007f2b1b5b11b4"]
    return {
        # kernel/hung_task.c, sched_show_task() of kernel/sched/core.c, and dump_stack_lvl() of each release
        "4.9": ["INFO: task cat:1234 blocked for more than 120 seconds.", "      Not tainted 4.9.0-13-amd64 #1 Debian 4.9.228-1",
                '"echo 0 > /proc/sys/kernel/hung_task_timeout_secs" disables this message.',
                "cat             D    0  1234   1200 0x00000104", " ffff9a8b3c5d2000 0000000000000000 ffff9a8b3d6d8000 ffff9a8b3fc18240",
                "Call Trace:", f" [<ffffffff81001234>] {call}", f" [<ffffffff81001240>] {maybe}"],
        "5.4": ["INFO: task cat:1234 blocked for more than 120 seconds.", "      Tainted: G        W  OE     5.4.0-42-generic #46-Ubuntu",
                '"echo 0 > /proc/sys/kernel/hung_task_timeout_secs" disables this message.',
                "cat             D    0  1234   1200 0x80004002", "Call Trace:", f" {call}", f" {maybe}",
                f"RIP: 0033:{user}", "Code: Bad RIP value.", *x86],
        "5.10": ["INFO: task kworker/u8:2:77 blocked for more than 120 seconds.", "      Not tainted 5.10.0-8-amd64 #1 Debian 5.10.46-4",
                 '"echo 0 > /proc/sys/kernel/hung_task_timeout_secs" disables this message.',
                 "task:kworker/u8:2    state:D stack:    0 pid:   77 ppid:     2 flags:0x00004000",
                 "Workqueue: writeback wb_workfn (flush-8:0)", "Call Trace:", f" {call}", f" {maybe}"],
        "6.1": ["INFO: task cat:1234 blocked for more than 241 seconds.", "      Not tainted 6.1.0-13-amd64 #1 Debian 6.1.55-1",
                '"echo 0 > /proc/sys/kernel/hung_task_timeout_secs" disables this message.',
                "task:cat             state:D stack:0     pid:1234  ppid:1200   flags:0x00004002", "Call Trace:", " <TASK>", f" {call}",
                f" {maybe}", f"RIP: 0033:{user}", *x86, "Code: Unable to access opcode bytes at 0x7f2b1b5b118a.", " </TASK>"],
        "6.16": ["INFO: task cat:1234 blocked for more than 122 seconds.", "      Not tainted 6.16.0 #3 PREEMPT(voluntary)",
                 '"echo 0 > /proc/sys/kernel/hung_task_timeout_secs" disables this message.',
                 "task:cat             state:D stack:13432 pid:1234  tgid:1234  ppid:1200   task_flags:0x400000 flags:0x00004002",
                 "Call Trace:", " <TASK>", f" {call}", " </TASK>", "INFO: task cat:1234 is blocked on a mutex likely owned by task dd:1233.",
                 "task:dd              state:S stack:13432 pid:1233  tgid:1233  ppid:1200   task_flags:0x400000 flags:0x00004002",
                 "Call Trace:", " <TASK>", f" {maybe}", " </TASK>"],
        "6.12 of arm64": ["INFO: task cat:1234 blocked for more than 120 seconds.", "      Not tainted 6.12.0 #1",
                          '"echo 0 > /proc/sys/kernel/hung_task_timeout_secs" disables this message.',
                          "task:cat             state:D stack:0     pid:1234  tgid:1234  ppid:1200   flags:0x00000004",
                          "Call trace:", f" {call} (T)", f" {maybe}"],
        "6.1 with lockdep": ["INFO: task cat:1234 blocked for more than 120 seconds.", "      Not tainted 6.1.0 #1",
                             '"echo 0 > /proc/sys/kernel/hung_task_timeout_secs" disables this message.',
                             "task:cat             state:D stack:0     pid:1234  ppid:1200   flags:0x00004002", "Call Trace:", " <TASK>", f" {call}",
                             " </TASK>", "", "Showing all locks held in the system:", "1 lock held by khungtaskd/35:",
                             f" #0: ffffffff82d6a900 (rcu_read_lock){{....}}-{{1:3}}, at: {exact}",
                             "1 lock held by cat/1234:", f" #0: ffff888104b8a0e8 (&p->lock){{+.+.}}-{{3:3}}, at: {exact}", "",
                             "============================================="],
    }


@test("kernel symbols: the message about a hung task, and the stack that follows it, of each form that kernels print")
def hung_tasks(_):
    path = twins()
    ((after, after_size),), ((_, ends_size),) = sized(path, "after"), sized(path, "ends")
    (size, size_size), _ = sized(path, "size")
    names = {"after+0x3": expected(path, after + 3, after + 2), "ends+": expected(path, after, after - 1),
             "size+0x8": expected(path, size + 8, size + 7)}
    for release, lines in hung_log(after_size, ends_size, size_size, "0x7f2b1b5b11b4").items():
        for head in ("", "[  363.482561] ", "Nov 29 02:40:01 host kernel: [  363.482561][   T35] "):
            log = "".join(f"{head}{line}\n" for line in lines)
            wanted = [next((name for word, name in names.items() if word in line), None) for line in lines]
            assert sum(name is not None for name in wanted) >= 2, release
            check_names(log, wanted, path)
            # Lines about the user's own code, of which the file of the kernel knows nothing, are the only others with an address.
            others = sum("RIP: 0033" in line or "opcode bytes at" in line for line in lines)
            assert len(objects(log, path)) == sum(name is not None for name in wanted) + others, release
