/* SPDX-License-Identifier: MIT */
/* The words of public enumerations, and the version: static texts, usable anywhere. */
#include <elf.h>

#include "fathom/answer.h"
#include "fathom/stack.h"
#include "fathom/version.h"
#include "safe/base/pc.h"

#define TEXT(x)                      #x
#define VERSION(major, minor, patch) TEXT(major) "." TEXT(minor) "." TEXT(patch)

const char *fathom_version(void)
{
	return VERSION(FATHOM_VERSION_MAJOR, FATHOM_VERSION_MINOR, FATHOM_VERSION_PATCH);
}

const char *fathom_source_name(enum fathom_source source)
{
	static const char *const names[] = {
		"",        "symtab",  "dynsym",      "minidebuginfo", "dwarf",
		"fde",     "plt",     "vdso",        "kallsyms",      "perf-map",
		"jitdump", "gdb-jit", "interpreter", "registered",    "gopclntab"
	};

	return (size_t)source < sizeof names / sizeof *names ? names[source] : "";
}

uint64_t fathom_pc_lookup(struct fathom_pc pc)
{
	return fathom_pc_subtract(pc.address, pc.kind);
}

const char *fathom_reason_name(enum fathom_reason reason)
{
	static const char *const names[] = {
		"",
		"unmapped",
		"build-id-mismatch",
		"no-symbols",
		"no-debug-info",
		"no-such-symbol",
		"bad-address",
		"timeout",
		"unsupported",
		"corrupt",
		"limit",
		"no-file",
		"no-permission",
		"changed",
		"not-prepared",
		"no-base",
	};

	return (size_t)reason < sizeof names / sizeof *names ? names[reason] : "";
}

const char *fathom_trust_name(enum fathom_trust trust)
{
	static const char *const names[] = { "registers", "cfi",           "jit-cfi", "signal",
					     "decoded",   "frame-pointer", "scan" };

	return (size_t)trust < sizeof names / sizeof *names ? names[trust] : "";
}

const char *fathom_stop_name(enum fathom_stop stop)
{
	static const char *const names[] = { "",           "entry",   "no-rule", "register",
					     "unreadable", "changed", "loop",    "limit" };

	return (size_t)stop < sizeof names / sizeof *names ? names[stop] : "";
}

const char *fathom_stop_text(enum fathom_stop stop)
{
	static const char *const texts[] = {
		"",
		"the stack is whole",
		"nothing says how to go on from here",
		"the caller's frame is found by a register that is not known",
		"the stack, or the code here, cannot be read",
		"the thread ran on meanwhile",
		"the next frame would not be further out",
		"more frames than were asked for",
	};

	return (size_t)stop < sizeof texts / sizeof *texts ? texts[stop] : "";
}

const char *fathom_register_name(uint32_t machine, uint32_t number)
{
	static const char *const of_x86_64[] = { "rax", "rdx", "rcx", "rbx", "rsi", "rdi",
						 "rbp", "rsp", "r8",  "r9",  "r10", "r11",
						 "r12", "r13", "r14", "r15", "rip" };
	static const char *const of_i386[] = { "eax", "ecx", "edx", "ebx", "esp",
					       "ebp", "esi", "edi", "eip", "eflags" };
	static const char *const of_aarch64[] = { "x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",
						  "x7",  "x8",  "x9",  "x10", "x11", "x12", "x13",
						  "x14", "x15", "x16", "x17", "x18", "x19", "x20",
						  "x21", "x22", "x23", "x24", "x25", "x26", "x27",
						  "x28", "x29", "x30", "sp",  "pc" };

	switch (machine) {
	case EM_X86_64:
		return number < sizeof of_x86_64 / sizeof *of_x86_64 ? of_x86_64[number] : NULL;
	case EM_386:
		return number < sizeof of_i386 / sizeof *of_i386 ? of_i386[number] : NULL;
	case EM_AARCH64:
		return number < sizeof of_aarch64 / sizeof *of_aarch64 ? of_aarch64[number] : NULL;
	default:
		return NULL;
	}
}
