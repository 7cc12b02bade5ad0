/* SPDX-License-Identifier: MIT */
/*
 * Every bound that fathom puts on its input, by name. Input beyond a bound is FATHOM_E_LIMIT (or
 * the reason "limit" of a single answer), never a crash, a hang or unbounded memory.
 */
#ifndef FATHOM_BASE_LIMITS_H
#define FATHOM_BASE_LIMITS_H

#include <stdint.h>

/* Section headers of one ELF file; the kernel's largest modules have some 100,000. */
#define FATHOM_MAX_SECTIONS (1u << 24)
/* Longest name of a section: many sections may share one string. */
#define FATHOM_MAX_SECTION_NAME (1u << 14)
/* Symbol tables that the relocations of one section may refer to; usually one. */
#define FATHOM_MAX_RELOCATION_SYMTABS 16
/* Program headers of one ELF file: cores with PN_XNUM hold more than 65,535. */
#define FATHOM_MAX_SEGMENTS (1u << 24)
/* Mappings of a core or a snapshot: most systems allow 65,530, some a million. */
#define FATHOM_MAX_DUMP_MAPPINGS (1u << 21)
/* Ranges of a compressed core that are kept if all does not fit the memory budget. */
#define FATHOM_MAX_CORE_KEEPS (1u << 20)
/* Entries of the dynamic linker's link map. */
#define FATHOM_MAX_LINK_MAPS (1u << 16)
/* Abbreviations of one table. */
#define FATHOM_MAX_ABBREVS (1u << 20)
/* Attributes in one abbreviation table, after joining those that are only skipped. */
#define FATHOM_MAX_ABBREV_STEPS (1u << 22)
/* Depth of the tree of debugging entries. */
#define FATHOM_MAX_DIE_DEPTH 4096
/* Abstract origins and specifications followed from one entry to its name. */
#define FATHOM_MAX_ORIGIN_CHAIN 16
/* Inlined calls nested in one function, as served in one answer. */
#define FATHOM_MAX_INLINE_DEPTH 512
/*
 * Bytes of an entry that is read attribute by attribute, and bytes of its abbreviation's attribute
 * list: many entries may share one list, so reading it for each must stay cheap. Compilers stay
 * below 100.
 */
#define FATHOM_MAX_ENTRY_BYTES     4096
#define FATHOM_MAX_ATTRIBUTE_BYTES 256
/* DW_FORM_indirect that leads to another DW_FORM_indirect. */
#define FATHOM_MAX_INDIRECT 4
/* Entry formats, directories and files in one line table header. */
#define FATHOM_MAX_LINE_FORMATS 64
#define FATHOM_MAX_LINE_FILES   (1u << 20)
/* Entries of range lists read in one walk, plus one for each byte of their sections. */
#define FATHOM_MAX_RANGES (1u << 20)
/* Longest name that is demangled; longer ones are shown as they are. */
#define FATHOM_MAX_MANGLED 16384
/* Longest demangled name; beyond it the mangled one is shown. */
#define FATHOM_MAX_DEMANGLED (1u << 16)
/* Bytes that demangling one name may hold at a time: a few D texts in buffers twice their size. */
#define FATHOM_MAX_DEMANGLE_MEMORY (1u << 20)
/* Longest name of JIT code in a jitdump; bytes of line entries that are read for one function. */
#define FATHOM_MAX_JIT_NAME      (1u << 16)
#define FATHOM_MAX_JITDUMP_LINES (1u << 26)
/*
 * Call frame information of JIT code: bytes of .eh_frame of one function, or of what is between an
 * FDE and its CIE; sections that a program has registered, bytes of each and of all.
 */
#define FATHOM_MAX_JIT_FRAMES        (1u << 20)
#define FATHOM_MAX_REGISTERED        (1u << 18)
#define FATHOM_MAX_REGISTERED_FRAMES (1u << 26)
#define FATHOM_MAX_REGISTERED_BYTES  (UINT64_C(1) << 28)
/* Words of a library's code that may refer to where its lists start. */
#define FATHOM_MAX_CODE_REFERENCES 64
/* GDB's JIT interface: entries of one list, bytes of one symbol file, bytes of all symbol files. */
#define FATHOM_MAX_GDB_ENTRIES (1u << 18)
#define FATHOM_MAX_GDB_SYMFILE (UINT64_C(1) << 28)
#define FATHOM_MAX_GDB_BYTES   (UINT64_C(1) << 30)
/* GDB JIT lists in one process: each library may have one. */
#define FATHOM_MAX_GDB_LISTS 64
/* GDB JIT symbol files that stay open from batch to batch. */
#define FATHOM_MAX_GDB_MODULES 1024
/* How often answers about JIT code are made anew because the code changed meanwhile. */
#define FATHOM_MAX_JIT_ROUNDS 8
/* Jitdumps of one process: it writes one, and has it mapped. */
#define FATHOM_MAX_JITDUMPS 8
/*
 * Modules that a signal handler reads from this process's own memory: entries of the dynamic
 * section, symbols, program headers and notes.
 */
#define FATHOM_MAX_DYNAMIC         1024
#define FATHOM_MAX_DYNAMIC_SYMBOLS (1u << 22)
#define FATHOM_MAX_MEMORY_SEGMENTS 256
#define FATHOM_MAX_MEMORY_NOTES    64
/* Objects of this process that have a registry of published code of their own. */
#define FATHOM_MAX_REGISTRIES 32
/* Overlapping FDEs that are looked at for one address. */
#define FATHOM_MAX_FDE_OVERLAP 64
/*
 * Call frame instructions: states of one FDE that are kept at a time, the CIE's included, and rules
 * of registers in them. Compilers keep two, and at most 12 rules in each.
 */
#define FATHOM_ROW_STATES      8
#define FATHOM_ROW_SAVED_RULES 96
/* One expression of call frame information: operations that are run, and values on its stack. */
#define FATHOM_EXPRESSION_STEPS 1000
#define FATHOM_EXPRESSION_DEPTH 64
/*
 * Call frame information that is read from this process's own memory: bytes of a CIE and of an FDE,
 * in which larger ones are cut off; rows of a table of FDEs; frames that are walked again because a
 * rule needs a register that rules do not follow.
 */
#define FATHOM_MAX_OWN_CIE     256
#define FATHOM_MAX_OWN_FDE     1024
#define FATHOM_MAX_TABLE_ROWS  (1u << 26)
#define FATHOM_MAX_WALKED_ANEW 64
/* Times that a walk may go to another stack below, as fibers and signal stacks do. */
#define FATHOM_MAX_STACK_FALLS 64
/* Code units (bytes, or wider) that one directive of the signal-safe formatter reads. */
#define FATHOM_MAX_FORMAT_TEXT (1u << 16)
/*
 * Limits on finding what threads wait for: threads and children of one process, bytes of a table of
 * sockets, bytes of what the kernel says of an epoll descriptor, descriptors of a call of poll() or
 * select().
 */
#define FATHOM_MAX_WAIT_TASKS       (1u << 16)
#define FATHOM_MAX_SOCKET_TEXT      (1u << 24)
#define FATHOM_MAX_EPOLL_TEXT       (1u << 22)
#define FATHOM_MAX_WAIT_DESCRIPTORS (1u << 16)
/* Bytes of /proc/PID/task/TID/status: a process may be in 65,536 groups. */
#define FATHOM_MAX_TASK_STATUS (1 << 20)
/* Threads of one process: the kernel's own limit of PIDs. */
#define FATHOM_MAX_THREADS_LISTED (1u << 22)
/* How often the threads of a process are listed to stop those that appeared meanwhile. */
#define FATHOM_MAX_LISTINGS 16
/* Frames of all threads of one core; after them each thread has one. */
#define FATHOM_MAX_STORED_FRAMES (1u << 22)
/* Pages that a snapshot keeps because walks have read them; their bytes. */
#define FATHOM_MAX_KEPT_PAGES (1u << 14)
#define FATHOM_KEPT_PAGE      4096
/* Bytes of a stack that are copied by default, and if no mapping tells where it ends. */
#define FATHOM_MAX_STACK_COPY  (UINT64_C(1) << 24)
#define FATHOM_MAX_STACK_GUESS (UINT64_C(1) << 18)
/*
 * Code that is followed to its return: different instructions; steps, as one is followed again when
 * less is known of its registers; ways that were not followed yet; words that were stored on
 * the ways; looks at these words. Bytes of stack in which saved registers are believed to be.
 */
#define FATHOM_MAX_FOLLOWED       2000
#define FATHOM_MAX_FOLLOW_STEPS   4000
#define FATHOM_MAX_FOLLOW_PENDING 256
#define FATHOM_MAX_FOLLOW_STORES  8000
#define FATHOM_MAX_FOLLOW_LOOKS   (1u << 20)
#define FATHOM_MAX_FOLLOW_FRAME   (1u << 24)
/* The same for one stack: steps, and looks of which FATHOM_FOLLOW_LOOKS_PER_STEP cost as one. */
#define FATHOM_MAX_FOLLOW_COST       (1u << 20)
#define FATHOM_FOLLOW_LOOKS_PER_STEP 64
/*
 * A crash: frames that are walked, and of these printed, bytes of the map, reports of one process.
 */
#define FATHOM_MAX_CRASH_FRAMES  (1u << 18)
#define FATHOM_MAX_CRASH_PRINTED 512
#define FATHOM_MAX_CRASH_MAPS    (1u << 22)
#define FATHOM_MAX_CRASH_REPORTS 16
/* Bytes of what glibc wrote before abort(), and of the text of a C++ exception. */
#define FATHOM_MAX_DEATH_TEXT (1u << 16)

/* Frames of an interpreter that replace one run of native frames. */
#define FATHOM_MAX_INTERPRETER_FRAMES (1u << 20)

#endif
