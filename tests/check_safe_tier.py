#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The linker's word on the safe tier: what its archive imports beyond itself; and on both: no state at file scope."""
import glob
import re
import subprocess
import sys

ALLOWED = {"memcpy", "memmove", "memset", "memcmp", "_dl_find_object", "_GLOBAL_OFFSET_TABLE_"}
# Arithmetic on 64 bits, which a 32-bit compiler has in its own library: nothing but registers.
ALLOWED |= {"__udivdi3", "__umoddi3", "__udivmoddi4", "__divdi3", "__moddi3", "__divmoddi4", "__ctzdi2", "__clzdi2"}
# What instrumented builds add; the law is about the plain build.
INSTRUMENTED = ("__asan", "__ubsan", "__tsan", "__sanitizer", "__stack_chk", "__gcov")

build = sys.argv[1]
archive = glob.glob(f"{build}/src/libfathom-safe.a")
if not archive:
    print("not ok 1 - there is an archive of the safe tier")
    sys.exit(1)
symbols = subprocess.run(["nm", "-P", *archive], capture_output=True, text=True, check=True).stdout
defined, wanted = set(), set()
for line in symbols.splitlines():
    fields = line.split()
    if len(fields) >= 2 and len(fields[1]) == 1:
        (wanted if fields[1] in "Uw" else defined).add(fields[0])
foreign = sorted(n for n in wanted - defined - ALLOWED if not n.startswith(INSTRUMENTED))
print("1..4")
print(f"{'not ' if foreign else ''}ok 1 - the safe tier imports nothing but memory functions"
      + (f": {', '.join(foreign)}" if foreign else ""))
# The test can fail: an archive of the host tier must not pass it.
host = subprocess.run(["nm", "-u", *glob.glob(f"{build}/src/libfathom.a")], capture_output=True, text=True).stdout
print(f"{'' if 'malloc' in host else 'not '}ok 2 - the same look at the host tier finds malloc")
# What runs within the program's calls must keep its vectors, which the C library's memory functions use. Handlers of signals may:
# the kernel puts vectors back.
KEPT = "what runs within a program's calls calls no memory function"
called = set()
for line in subprocess.run(["nm", "-A", "-u", *glob.glob(f"{build}/src/libfathom-runtime.a"), *glob.glob(f"{build}/src/libfathom-within.a")],
                           capture_output=True, text=True).stdout.splitlines():
    match = re.search(r":(\S+\.o):.* (mem(?:set|cpy|move|cmp))$", line)
    if match and not re.search("program_signals|user_dispatch", match[1]):
        called.add(f"{match[1]}: {match[2]}")
if any(name in host for name in INSTRUMENTED[:3]):
    print(f"ok 3 - {KEPT} # SKIP an instrumented build calls more")
else:
    print(f"{'not ' if called else ''}ok 3 - {KEPT}" + (f": {', '.join(sorted(called))}" if called else ""))
# Objects in .data, .bss, .tdata and .tbss can be written to. One file has such, for the call that a thread makes; and the
# crash handler and what is published of JIT code have one struct each; beside it stand which consumers are on, read without
# its lock, the head of the registry, which its readers share, and the descriptor whose name GDB prescribes. A trace of
# the calling process has what its flags asked for, and its reader.
STATELESS = "no file has mutable state at its scope, but the one that calls libiberty, the crash handler, the JIT registry, the trace of oneself and its hooks"
ALLOWED = {"fathom_crash_state", "fathom_jit_registry", "fathom_jit_on", "fathom_registry_own", "__fathom_jit_published", "descriptor", "__jit_debug_descriptor"}
# Hooks of the process are one list; which a thread is in, it says itself.
ALLOWED |= {"fathom_trace_requested", "fathom_trace_self", "fathom_trace_self_inside", "fathom_hook_state", "fathom_hook_inside"}
# It has changed its own text, and what the hook knows of process and thread is linked into it.
ALLOWED |= {"fathom_trace_self_rewritten", "fathom_trace_self_made", "fathom_trace_self_process", "fathom_trace_self_thread"}
# So is what it is to record of system calls, and has recorded.
ALLOWED |= {"fathom_trace_self_syscalls", "fathom_trace_self_plans", "fathom_trace_self_rings", "fathom_trace_self_state", "fathom_trace_self_rewriting"}
# Where they are dispatched by SIGSYS, so is what the program has said of its signals, where the kernel looks whether it is to send that, and the
# signal stacks of threads.
ALLOWED |= {"fathom_trace_self_dispatch", "fathom_trace_self_selector", "fathom_trace_self_selectors", "fathom_trace_self_actions", "fathom_trace_self_is_silent",
            "fathom_trace_self_is_unarmed", "fathom_trace_self_task", "fathom_trace_self_tasks", "fathom_trace_self_pkru_off"}
# Where they are rewritten, so is where the hook runs.
ALLOWED |= {"fathom_hook_own_room", "fathom_hook_own_stack", "fathom_hook_first_stack", "fathom_hook_notes", "fathom_hook_pid"}
if any(name in host for name in INSTRUMENTED[:3]):
    print(f"ok 4 - {STATELESS} # SKIP an instrumented build has state of its own")
    sys.exit()
stateful, member = set(), ""
for line in subprocess.run(["objdump", "-t", *glob.glob(f"{build}/src/libfathom*.a")], capture_output=True, text=True).stdout.splitlines():
    member = line.split(":")[0] if "file format" in line else member
    match = re.search(r" O \.(?:data|bss|tdata|tbss)(?!\.rel\.ro)\S*\t\w+ +(?:\.hidden )?(\S+)$", line)
    if match:
        # clang splits a struct into its members, with numbers behind its name.
        stateful.add((member, re.sub(r"(\.\d+)+$", "", match[1])))
ALONE = "demangle_iberty.c.o"
foreign = sorted(name for file, name in stateful if not file.endswith(ALONE) and name not in ALLOWED and file.endswith(".c.o"))
seen = "iberty" not in host or any(file.endswith(ALONE) for file, _ in stateful)
print(f"{'not ' if foreign or not seen else ''}ok 4 - {STATELESS}"
      + (f": {', '.join(foreign)}" if foreign else ""))
