/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Publishing code that the calling process makes, a JIT compiler's: debuggers, unwinders and
 * profilers then know its names, its lines, and how stacks go through it.
 *
 * The consumers are found at run time, in every loaded object; nothing is linked against:
 *
 * - gdb: the interface of gdb and lldb, __jit_debug_descriptor; gdb's cores, `fathom addr`, `find`,
 *   `disasm` and `stack` read it, too
 * - libgcc, llvm, nongnu: the unwinders of the process: C++ exceptions, backtrace(),
 *   pthread_cancel(), unw_step()
 * - registry: the library's own list, which its handlers, other processes and cores are asked
 *   with: `fathom addr`, `find`, `disasm` and `stack` ask it first
 * - perf-map: the file /tmp/perf-PID.map
 * - jitdump: the file jit-PID.dump, for `perf inject --jit`
 *
 * All but the files are on; fathom_jit_arena_options.consumers says otherwise. The environment
 * variable FATHOM_JIT decides last: words between commas, in their order, each a consumer's,
 * `files`, `all` or `none`, switched off with a `-` before it: `perf-map,-gdb`. It is read when
 * the first arena is made, and not at all by a program that has more rights than its user
 * (set-user-ID and the like); a word that is none of these is a note. What a consumer cannot do
 * is a note (fathom_jit_note()), too; no commit fails for it. docs/jit.md says what each of them
 * can do.
 *
 * For code that is entered through a function that makes a frame, and that never writes the frame
 * pointer:
 * @code
 *	#include <fathom/jit.h>
 *
 *	// Publishes the code at @code, a part of @memory.
 *	int publish(const void *memory, size_t memory_size, const void *code, size_t size)
 *	{
 *		struct fathom_jit_unwind rule = { .size = sizeof rule,
 *						  .kind = FATHOM_JIT_RESERVED };
 *		struct fathom_jit_arena_options options = { .size = sizeof options,
 *							    .unwind = &rule };
 *		struct fathom_jit_function f = { .size = sizeof f, .code = code,
 *						 .code_size = size, .name = "loop" };
 *		struct fathom_jit_arena *arena;
 *
 *		if (fathom_jit_arena_create(memory, memory_size, &options, &arena, NULL))
 *			return -1;
 *		return fathom_jit_add(arena, &f, NULL);
 *	}
 * @endcode
 * fathom_jit_remove() takes it back before the memory is used for other code.
 */
#ifndef FATHOM_JIT_H
#define FATHOM_JIT_H

#include <fathom/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A range of memory in which code is made. Opaque. */
struct fathom_jit_arena;

/** Consumers of published code: bits of fathom_jit_arena_options.consumers. */
enum fathom_jit_consumer {
	FATHOM_JIT_GDB = 1u << 0,
	FATHOM_JIT_LIBGCC = 1u << 1,
	FATHOM_JIT_LLVM = 1u << 2,
	FATHOM_JIT_NONGNU = 1u << 3,
	FATHOM_JIT_PERF_MAP = 1u << 4,
	FATHOM_JIT_JITDUMP = 1u << 5,
	FATHOM_JIT_REGISTRY = 1u << 6,
	/** consumers is meant, though it is 0: nobody */
	FATHOM_JIT_NOBODY = 1u << 30
};

/** Bits of fathom_jit_arena_options.flags. */
enum fathom_jit_arena_flag {
	/**
	 * The memory is text of a loaded file, of which single places are published: jumps in
	 * padding. gdb learns how stacks go through them, and not their names: it would not find
	 * the file's own names any more.
	 */
	FATHOM_JIT_WITHIN_FILE = 1u << 0
};

/** How stacks go through code. */
enum fathom_jit_unwind_kind {
	/** Nothing is said. */
	FATHOM_JIT_NONE = 0,
	/**
	 * The function begins, maybe after an endbr64 or a bti, with `push %rbp; mov %rsp, %rbp`
	 * (on aarch64 with `stp x29, x30, [sp, #-frame]!; mov x29, sp`), which ends at the offset
	 * `from`. Its frame pointer is the caller's again at the offset `until`, where only the
	 * return is left.
	 */
	FATHOM_JIT_FRAME_POINTER = 1,
	/**
	 * No instruction of it writes the frame pointer, and it was entered through a function, the
	 * shim, that made a frame: code and shim are one frame, at every instruction. The CFA is
	 * `frame` bytes above the frame pointer; 0: 16, as on x86-64 always. It says nothing of
	 * other registers that the caller wants back: exceptions need code that never writes them.
	 */
	FATHOM_JIT_RESERVED = 2,
	/**
	 * No frame: `frame` bytes are on the stack above the return address, at every instruction.
	 */
	FATHOM_JIT_PUSHED = 3,
	/** As `events` say. */
	FATHOM_JIT_EVENTS = 4,
	/** As `eh_frame` says: bytes of a compiler, of a copy or of a stencil. */
	FATHOM_JIT_EH_FRAME = 5
};

/** Bits of fathom_jit_unwind.flags. */
enum fathom_jit_unwind_flag {
	/** aarch64: the return address is signed where a frame has it (PAC) */
	FATHOM_JIT_SIGNED = 1u << 0,
	/** aarch64: signed with key B */
	FATHOM_JIT_B_KEY = 1u << 1,
	/** a frame that a signal has made: the pc of its caller is exact */
	FATHOM_JIT_SIGNAL_FRAME = 1u << 2,
	/**
	 * aarch64, FRAME_POINTER and SIGNED: the return itself authenticates (retaa); else the
	 * instruction before it does (autiasp)
	 */
	FATHOM_JIT_SIGNED_RETURN = 1u << 3
};

/** Effects of an instruction on the stack. */
enum fathom_jit_event_kind {
	FATHOM_JIT_PUSH = 1,      /**< `reg` was pushed */
	FATHOM_JIT_POP = 2,       /**< `reg` was popped */
	FATHOM_JIT_SUB = 3,       /**< `value` bytes were taken from the stack pointer */
	FATHOM_JIT_ADD = 4,       /**< `value` bytes were added to it */
	FATHOM_JIT_SAVE = 5,      /**< `reg` was stored at stack pointer + `value` */
	FATHOM_JIT_RESTORE = 6,   /**< `reg` has its caller's value again */
	FATHOM_JIT_SET_FRAME = 7, /**< the frame pointer was set to stack pointer + `value` */
	/**
	 * The stack pointer was set to frame pointer - `value`, and tells the place of the frame
	 * from now on: 0 for `mov %rbp, %rsp`, 16 for `lea -16(%rbp), %rsp`; less than 0 if it was
	 * set above the frame pointer. `leave` is this with 0, and a POP.
	 */
	FATHOM_JIT_END_FRAME = 8,
	/**
	 * Remembers what holds here. Up to 8 can be remembered, each recalled once, the last
	 * one first.
	 */
	FATHOM_JIT_REMEMBER = 9,
	/**
	 * Recalls what was remembered last, and forgets it: for code after a return or jump,
	 * which is entered by a jump from where it was remembered. REMEMBER stands before the
	 * events of the first way out, RECALL at the offset of the first instruction after it.
	 */
	FATHOM_JIT_RECALL = 10,
	FATHOM_JIT_SIGN = 11,         /**< aarch64: the return address was signed */
	FATHOM_JIT_AUTHENTICATE = 12, /**< aarch64: and is not any more */
	/**
	 * x86-64: the return address, which was on the top of the stack, was popped to `reg`, and
	 * is there until the function leaves, or PUSH_RETURN. The stack pointer may go further up,
	 * as where a function removes its arguments.
	 */
	FATHOM_JIT_POP_RETURN = 13,
	FATHOM_JIT_PUSH_RETURN = 14 /**< x86-64: and was pushed again */
};

/** One event. It holds from its offset on: that of the instruction after the one that did it. */
struct fathom_jit_event {
	/** from the start of the function, bytes; never less than the one before */
	uint32_t offset;
	int32_t value; /**< bytes */
	/**
	 * enum fathom_jit_register_x86_64 or fathom_jit_register_aarch64; FATHOM_JIT_NO_REGISTER: a
	 * value
	 */
	uint16_t reg;
	uint8_t kind; /**< enum fathom_jit_event_kind */
	uint8_t reserved;
};

/** Of a push or pop that saves no register of the caller's. */
#define FATHOM_JIT_NO_REGISTER 0xffff

/** Registers of x86-64 by the numbers that DWARF gives them (psABI, figure 3.36). */
enum fathom_jit_register_x86_64 {
	FATHOM_JIT_RAX = 0,
	FATHOM_JIT_RDX = 1,
	FATHOM_JIT_RCX = 2,
	FATHOM_JIT_RBX = 3,
	FATHOM_JIT_RSI = 4,
	FATHOM_JIT_RDI = 5,
	FATHOM_JIT_RBP = 6,
	FATHOM_JIT_RSP = 7,
	FATHOM_JIT_R8 = 8,
	FATHOM_JIT_R9 = 9,
	FATHOM_JIT_R10 = 10,
	FATHOM_JIT_R11 = 11,
	FATHOM_JIT_R12 = 12,
	FATHOM_JIT_R13 = 13,
	FATHOM_JIT_R14 = 14,
	FATHOM_JIT_R15 = 15,
	FATHOM_JIT_XMM0 = 17,
	FATHOM_JIT_XMM1 = 18,
	FATHOM_JIT_XMM2 = 19,
	FATHOM_JIT_XMM3 = 20,
	FATHOM_JIT_XMM4 = 21,
	FATHOM_JIT_XMM5 = 22,
	FATHOM_JIT_XMM6 = 23,
	FATHOM_JIT_XMM7 = 24,
	FATHOM_JIT_XMM8 = 25,
	FATHOM_JIT_XMM9 = 26,
	FATHOM_JIT_XMM10 = 27,
	FATHOM_JIT_XMM11 = 28,
	FATHOM_JIT_XMM12 = 29,
	FATHOM_JIT_XMM13 = 30,
	FATHOM_JIT_XMM14 = 31,
	FATHOM_JIT_XMM15 = 32
};

/** Registers of aarch64 by the numbers that DWARF gives them (aadwarf64, 4.1); V: its low half. */
enum fathom_jit_register_aarch64 {
	FATHOM_JIT_X0 = 0,
	FATHOM_JIT_X1 = 1,
	FATHOM_JIT_X2 = 2,
	FATHOM_JIT_X3 = 3,
	FATHOM_JIT_X4 = 4,
	FATHOM_JIT_X5 = 5,
	FATHOM_JIT_X6 = 6,
	FATHOM_JIT_X7 = 7,
	FATHOM_JIT_X8 = 8,
	FATHOM_JIT_X9 = 9,
	FATHOM_JIT_X10 = 10,
	FATHOM_JIT_X11 = 11,
	FATHOM_JIT_X12 = 12,
	FATHOM_JIT_X13 = 13,
	FATHOM_JIT_X14 = 14,
	FATHOM_JIT_X15 = 15,
	FATHOM_JIT_X16 = 16,
	FATHOM_JIT_X17 = 17,
	FATHOM_JIT_X18 = 18,
	FATHOM_JIT_X19 = 19,
	FATHOM_JIT_X20 = 20,
	FATHOM_JIT_X21 = 21,
	FATHOM_JIT_X22 = 22,
	FATHOM_JIT_X23 = 23,
	FATHOM_JIT_X24 = 24,
	FATHOM_JIT_X25 = 25,
	FATHOM_JIT_X26 = 26,
	FATHOM_JIT_X27 = 27,
	FATHOM_JIT_X28 = 28,
	FATHOM_JIT_X29 = 29,
	FATHOM_JIT_X30 = 30,
	FATHOM_JIT_SP = 31,
	FATHOM_JIT_V0 = 64,
	FATHOM_JIT_V1 = 65,
	FATHOM_JIT_V2 = 66,
	FATHOM_JIT_V3 = 67,
	FATHOM_JIT_V4 = 68,
	FATHOM_JIT_V5 = 69,
	FATHOM_JIT_V6 = 70,
	FATHOM_JIT_V7 = 71,
	FATHOM_JIT_V8 = 72,
	FATHOM_JIT_V9 = 73,
	FATHOM_JIT_V10 = 74,
	FATHOM_JIT_V11 = 75,
	FATHOM_JIT_V12 = 76,
	FATHOM_JIT_V13 = 77,
	FATHOM_JIT_V14 = 78,
	FATHOM_JIT_V15 = 79,
	FATHOM_JIT_V16 = 80,
	FATHOM_JIT_V17 = 81,
	FATHOM_JIT_V18 = 82,
	FATHOM_JIT_V19 = 83,
	FATHOM_JIT_V20 = 84,
	FATHOM_JIT_V21 = 85,
	FATHOM_JIT_V22 = 86,
	FATHOM_JIT_V23 = 87,
	FATHOM_JIT_V24 = 88,
	FATHOM_JIT_V25 = 89,
	FATHOM_JIT_V26 = 90,
	FATHOM_JIT_V27 = 91,
	FATHOM_JIT_V28 = 92,
	FATHOM_JIT_V29 = 93,
	FATHOM_JIT_V30 = 94,
	FATHOM_JIT_V31 = 95
};

/** How stacks go through a function, or through all functions of an arena. */
struct fathom_jit_unwind {
	size_t size;    /**< sizeof(struct fathom_jit_unwind) */
	uint32_t kind;  /**< enum fathom_jit_unwind_kind */
	uint32_t flags; /**< enum fathom_jit_unwind_flag */
	uint32_t from;
	uint32_t until; /**< 0: to the end */
	uint32_t frame; /**< bytes */
	/** RESERVED on aarch64: where the frame record, x29 and x30, lies above x29; mostly 0 */
	uint32_t record;
	const struct fathom_jit_event *events;
	size_t n_events;
	/** An .eh_frame, with or without a terminator; the FDE of `eh_frame_code` is taken. */
	const void *eh_frame;
	size_t eh_frame_size;
	/** The address that eh_frame was linked for; 0: where it is. */
	uint64_t eh_frame_address;
	/** The address of the code that its FDE is of; 0: that of the function. */
	uint64_t eh_frame_code;
	/** The personality routine and its data for this function; 0: none, or eh_frame's. */
	uint64_t personality;
	uint64_t lsda;
	uint64_t reserved[4];
};

/** Where code comes from: holds from its offset to that of the next line. */
struct fathom_jit_line {
	/** from the start of the function, bytes; never less than the one before */
	uint32_t offset;
	uint32_t line;   /**< 0: from no line */
	uint32_t column; /**< 0: unknown */
	uint32_t reserved;
	const char *file; /**< NULL: the function's */
};

/** A call that was inlined. Callers come before those that are inlined into them. */
struct fathom_jit_inline {
	uint32_t begin;     /**< offset of its code, bytes */
	uint32_t end;       /**< after its last byte */
	uint32_t call_line; /**< line of the call, in call_file; 0: unknown */
	uint32_t reserved;
	const char *function;  /**< what was inlined */
	const char *call_file; /**< NULL: the function's */
};

/** A function. All texts and arrays are copied. */
struct fathom_jit_function {
	size_t size; /**< sizeof(struct fathom_jit_function) */
	/** Its first byte, within the arena. A jitdump has its bytes as they are now. */
	const void *code;
	size_t code_size; /**< bytes, not 0 */
	const char *name; /**< UTF-8; not NULL, not empty */
	/** How stacks go through it; NULL: as the arena says. It cannot have its own then. */
	const struct fathom_jit_unwind *unwind;
	const char *file; /**< its source; NULL: unknown */
	const struct fathom_jit_line *lines;
	size_t n_lines;
	const struct fathom_jit_inline *inlines;
	size_t n_inlines;
	uint64_t reserved[4];
};

/** Code that was copied to another place, with all that is known of it. */
struct fathom_jit_move {
	const void *from;
	const void *to; /**< within the arena; its bytes are there */
};

/**
 * Changes that become known together. Those that remove come first, then those that move, then
 * those that add: memory that is removed can be used again in the same commit.
 */
struct fathom_jit_changes {
	size_t size;               /**< sizeof(struct fathom_jit_changes) */
	const void *const *remove; /**< first bytes of functions */
	size_t n_remove;
	const struct fathom_jit_move *move;
	size_t n_move;
	/** One after the other, each functions[0].size bytes. */
	const struct fathom_jit_function *add;
	size_t n_add;
	uint64_t reserved[4];
};

/** Options of fathom_jit_arena_create(); as struct fathom_options. */
struct fathom_jit_arena_options {
	size_t size;
	/** enum fathom_jit_consumer, of the first arena; 0: all but files */
	uint32_t consumers;
	uint32_t flags; /**< enum fathom_jit_arena_flag */
	/**
	 * The rule for all of the arena, functions or not: RESERVED or PUSHED. NULL: each function
	 * has its own.
	 */
	const struct fathom_jit_unwind *unwind;
	/** Folder of the jitdump, of the first arena; NULL: /tmp. */
	const char *folder;
	uint64_t reserved[4];
};

/**
 * Makes an arena of the @size bytes at @memory, which need not be mapped yet. An arena with a rule
 * for all of it overlaps no other.
 *
 * Safety: mt-safe
 * Memory: *@ret_arena is the caller's, to be freed with fathom_jit_arena_destroy()
 * Returns: FATHOM_OK; FATHOM_E_ARGUMENT for a range that is empty or overlaps an arena, where one
 *	of the two has a rule, for a rule that contradicts itself, and for options that this version
 *	does not know; FATHOM_E_UNSUPPORTED on machines other than x86-64 and aarch64;
 *	FATHOM_E_MEMORY
 */
FATHOM_API fathom_err fathom_jit_arena_create(const void *memory, size_t size,
					      const struct fathom_jit_arena_options *options,
					      struct fathom_jit_arena **ret_arena,
					      struct fathom_errinfo *reterr);

/**
 * Removes all functions of @arena, which may be NULL, as a commit does, and frees it. Without
 * memory for that, its functions stay known and it is not freed; a note says so.
 *
 * Safety: mt-safe per object
 * Memory: frees @arena
 * Returns: nothing
 */
FATHOM_API void fathom_jit_arena_destroy(struct fathom_jit_arena *arena);

/**
 * Makes all of @changes known to all consumers, or none of them. When it has returned, memory of
 * functions that were removed can be used again: no consumer says anything of it (later lines of
 * perf's files win over earlier ones). A function that is neither removed nor moved is known at
 * every moment, so threads can unwind through it meanwhile.
 *
 * With all consumers off it returns at once: nothing is checked or kept. Without changes, @changes
 * NULL, it tells unwinders that were loaded since then of all code.
 *
 * Safety: mt-safe; not in signal handlers
 * Memory: copies what it keeps
 * Returns: FATHOM_OK; FATHOM_E_ARGUMENT for a function that overlaps another, is outside of the
 *	arena, is to be removed or moved but not there, has no name, or has a rule that contradicts
 *	itself, its arena's or its code; FATHOM_E_CORRUPT for an eh_frame that cannot be read;
 *	FATHOM_E_LIMIT for a function of 2 GiB or a name of 64 KiB; FATHOM_E_MEMORY. @reterr says
 *	by its cause that offset is the number of the change in its array, and part that of the
 *	event, line or inlined call that is wrong
 */
FATHOM_API fathom_err fathom_jit_commit(struct fathom_jit_arena *arena,
					const struct fathom_jit_changes *changes,
					struct fathom_errinfo *reterr);

/**
 * Commits one function.
 *
 * Safety: mt-safe; not in signal handlers
 * Memory: as fathom_jit_commit()
 * Returns: as fathom_jit_commit()
 */
FATHOM_API fathom_err fathom_jit_add(struct fathom_jit_arena *arena,
				     const struct fathom_jit_function *function,
				     struct fathom_errinfo *reterr);

/**
 * Commits that the function at @code is gone.
 *
 * Safety: mt-safe; not in signal handlers
 * Memory: as fathom_jit_commit()
 * Returns: as fathom_jit_commit()
 */
FATHOM_API fathom_err fathom_jit_remove(struct fathom_jit_arena *arena, const void *code,
					struct fathom_errinfo *reterr);

/**
 * Commits that all functions of @arena are gone that have code in the @size bytes at @low: before
 * that memory is used again, or unmapped. It is no error if there are none.
 *
 * Safety: mt-safe; not in signal handlers
 * Memory: as fathom_jit_commit()
 * Returns: FATHOM_OK; FATHOM_E_MEMORY
 */
FATHOM_API fathom_err fathom_jit_remove_range(struct fathom_jit_arena *arena, const void *low,
					      size_t size, struct fathom_errinfo *reterr);

/**
 * Returns what a consumer could not do, such as "perf-map: the file belongs to somebody else", and
 * which words of FATHOM_JIT are unknown. The same is said once.
 *
 * Safety: mt-safe
 * Memory: the text is static
 * Returns: note number @i, counted from 0; NULL after the last one
 */
FATHOM_API const char *fathom_jit_note(size_t i);

/**
 * Returns which consumers are notified of code now: those that are on and have been found.
 *
 * Safety: mt-safe
 * Memory: none
 * Returns: bits of enum fathom_jit_consumer
 */
FATHOM_API uint32_t fathom_jit_consumers(void);

#ifdef __cplusplus
}
#endif

#endif
