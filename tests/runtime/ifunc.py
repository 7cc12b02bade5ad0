# SPDX-License-Identifier: MIT
"""Functions that are chosen when they are loaded (IFUNC): what the slots of their users hold."""
import os
import re

from ask import addr, find
from building import build_text, nm, strip_headers
from finding import address, asked, dynamic, library
from suite import test


@test("an IFUNC: what its slot holds; without a slot its resolver is not taken for it")
def ifunc(folder):
    versions = library(folder)
    value = {n: v[0][0] for n, v in nm(versions).items()}
    for binding in ("-Wl,-z,now", "-Wl,-z,lazy"):
        library(folder, "libversions.so", binding)
        with asked(folder, env={"LD_PRELOAD": versions}) as program:
            value = {n: v[0][0] for n, v in nm(versions).items()}
            bias = program.default("call_indirect") - value["call_indirect"]
            (record,), _ = find(program.pid, "indirect")
            if binding == "-Wl,-z,now":
                assert address(record) == program.default("indirect") == value["chosen_other"] + bias, record
            else:
                # Nobody has called it: its slot leads to a stub.
                assert address(record) in (None, program.default("indirect")), record
            assert int(record["resolver"], 16) == value["indirect"] + bias and record["type"] == "ifunc"
            (record,), _ = find(program.pid, "unused_indirect", status=(0, 1))
            assert address(record) in (None, value["chosen_other"] + bias), record
            assert record["address"] or record["reason"] == "unsupported", record


@test("an IFUNC without section headers: the way back to its own stub is not taken for it")
def ifunc_stub(folder):
    versions = library(folder, "libversions.so", "-Wl,-z,lazy")
    strip_headers(versions)
    with asked(folder, env={"LD_PRELOAD": versions}) as program:
        (record,), _ = find(program.pid, "indirect", status=(0, 1))
        assert address(record) in (None, program.default("indirect")), record
        # Called once, its slot holds it.
        program.tell("call call_indirect")
        (record,), _ = find(program.pid, "indirect")
        assert address(record) == program.default("indirect"), record


@test("an IFUNC of several versions: a reference without a version is to the oldest")
def ifunc_versions(folder):
    os.mkdir(os.path.join(folder, "stub"))
    stub = build_text(os.path.join(folder, "stub", "libc.so.6"),
                      "void copy(void) {} __asm__(\".globl memcpy; memcpy = copy; .type memcpy, @function\");",
                      "-shared", "-fPIC", "-nostdlib", "-Wl,-soname,libc.so.6")
    path = build_text(os.path.join(folder, "libuser.so"), "extern void *memcpy(); void *used = memcpy;",
                      "-shared", "-fPIC", "-nostdlib", "-fno-builtin", "-Wl,-z,now", stub)
    with asked(folder, env={"LD_PRELOAD": path}) as program:
        for version in ("GLIBC_2.2.5", "GLIBC_2.14"):
            want = program.tell(f"version memcpy {version}")["memcpy"]
            assert address(dynamic(program.pid, f"memcpy@{version}")) == want, version
        (record,), _ = find(program.pid, "used", "--read", "ptr")
        assert int(record["value"], 16) == program.tell("version memcpy GLIBC_2.2.5")["memcpy"], record


@test("memcpy of a process is the variant that this processor gets, as its slot says")
def memcpy_variant(folder):
    with asked(folder) as program:
        got = dynamic(program.pid, "memcpy")
        assert got["type"] == "ifunc" and address(got) == program.default("memcpy"), got
        if os.path.isdir("/usr/lib/debug/.build-id"):
            (back,), _ = addr(program.pid, [got["address"]], "--names-only")
            assert re.fullmatch(r"(__)?mem(cpy|move)_\w+", back["symbol"]), back
