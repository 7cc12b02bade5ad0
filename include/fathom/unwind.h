/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Unwinding in the calling process, from any thread and any signal handler; and unwind rules as
 * plain tables, for programs that unwind elsewhere (in eBPF, in an emulator).
 */
#ifndef FATHOM_UNWIND_H
#define FATHOM_UNWIND_H

#include <fathom/answer.h>
#include <fathom/self.h>
#include <fathom/target.h>
#include <fathom/trust.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How the CFA, the stack pointer of the caller, is found. */
enum fathom_unwind_kind {
	FATHOM_UNWIND_NONE = 0,     /**< nothing is known of this code */
	FATHOM_UNWIND_SP = 1,       /**< sp + cfa_offset */
	FATHOM_UNWIND_FP = 2,       /**< frame pointer + cfa_offset */
	FATHOM_UNWIND_REGISTER = 3, /**< another register + cfa_offset */
	FATHOM_UNWIND_AT_FP = 4,    /**< what memory has at frame pointer + cfa_offset */
	/** sp + cfa_offset, and a word more where (pc & 15) >= number: a PLT of x86-64 */
	FATHOM_UNWIND_PLT = 5,
	FATHOM_UNWIND_SIGNAL = 6, /**< a signal frame: all registers are in it */
	FATHOM_UNWIND_END = 7,    /**< there is no caller */
	FATHOM_UNWIND_OTHER = 8   /**< only the call frame instructions can say it */
};

/** Bits of fathom_unwind_rule.flags. */
enum fathom_unwind_flag {
	FATHOM_UNWIND_FP_LOST = 1u << 0,   /**< the caller's frame pointer cannot be told */
	FATHOM_UNWIND_FP_BY_FP = 1u << 1,  /**< fp_offset counts from the frame pointer */
	FATHOM_UNWIND_RA_SIGNED = 1u << 2, /**< aarch64: the return address is signed */
	FATHOM_UNWIND_FP_SAVED = 1u << 3   /**< fp_offset says where; else it keeps its value */
};

/** One rule. The caller's pc, sp and frame pointer follow from those of the frame. */
struct fathom_unwind_rule {
	int32_t cfa_offset; /**< bytes */
	int16_t fp_offset;  /**< of the saved frame pointer from the CFA, in words */
	int16_t ra_offset;  /**< of the return address, likewise; 0: in the link register */
	uint8_t kind;       /**< enum fathom_unwind_kind */
	uint8_t number;     /**< DWARF number of the register; of a PLT see there */
	uint8_t flags;      /**< enum fathom_unwind_flag */
	uint8_t reserved;
};

/**
 * The rules of a file. Row i holds from its address to that of row i + 1. Addresses are svma. The
 * rows of page p, the 65,536 bytes from base + 65,536 p, are pages[p] to pages[p + 1] - 1; low[i]
 * has the low 16 bits of the address of row i. Bytes before the first row of a page are the last
 * row's of the pages before. Four bytes for each row, and four for each page.
 */
struct fathom_unwind_table {
	uint64_t base;         /**< a multiple of 65,536 */
	const uint32_t *pages; /**< n_pages + 1 */
	const uint16_t *low;
	const uint16_t *rule; /**< index in rules */
	const struct fathom_unwind_rule *rules;
	uint32_t n_pages;
	uint32_t n_rows;
	uint32_t n_rules; /**< at most 65,536; rules[0] is FATHOM_UNWIND_NONE */
	uint32_t machine; /**< EM_ of elf.h */
};

/**
 * Makes the unwind rules of the file @target from its .eh_frame and .debug_frame.
 *
 * Safety: mt-safe
 * Memory: *@ret_table is the caller's, to be freed with fathom_unwind_table_free(); it outlives
 *	@target
 * Returns: FATHOM_OK; FATHOM_E_ARGUMENT if @target is no file; FATHOM_E_UNSUPPORTED for a machine
 *	other than x86-64, i386 and aarch64; FATHOM_E_LIMIT if the table does not fit the memory
 *	budget; FATHOM_E_MEMORY
 */
FATHOM_API fathom_err fathom_unwind_table_make(struct fathom_target *target,
					       const struct fathom_unwind_table **ret_table,
					       struct fathom_errinfo *reterr);

/**
 * Frees @table, which may be NULL.
 *
 * Safety: mt-safe per object
 * Memory: frees @table and its arrays
 * Returns: nothing
 */
FATHOM_API void fathom_unwind_table_free(const struct fathom_unwind_table *table);

/**
 * Finds the rule of the code at @svma.
 *
 * Safety: as-safe
 * Memory: the rule belongs to @table
 * Returns: the rule; never NULL
 */
FATHOM_API const struct fathom_unwind_rule *fathom_unwind_table_find(
	const struct fathom_unwind_table *table, uint64_t svma);

/** The part of its stack that a thread has been found to have. Zero-fill it; one per thread. */
struct fathom_unwind_stack {
	uint64_t low;  /**< of memory that can be read */
	uint64_t high; /**< after its last byte */
};

/** Options of fathom_unwind(); as struct fathom_options. */
struct fathom_unwind_options {
	size_t size;
	uint32_t flags; /**< none yet: 0 */
	uint32_t skip;  /**< innermost frames to leave out */
	/** The ucontext_t that a signal handler was given; NULL: unwind from the caller. */
	const void *context;
	/**
	 * Facts about the thread's stack, updated by the call. Memory between low and high
	 * must stay readable. NULL: each call finds it out, which costs one system call or more.
	 */
	struct fathom_unwind_stack *stack;
	/**
	 * The thread whose stack is unwound, by its number (gettid(2)); 0: the calling one. It is
	 * held in the handler of fathom_self_options.signal meanwhile. A system call that it sleeps
	 * in goes on afterwards, unless it is one that each handler ends (signal(7)).
	 */
	int32_t tid;
	uint32_t deadline_ms; /**< how long to wait for another thread to be held; 0: 50 */
	uint64_t reserved[3];
};

/** Result of fathom_unwind(). */
struct fathom_unwind_result {
	size_t size;  /**< sizeof(struct fathom_unwind_result) */
	size_t n;     /**< frames stored */
	uint8_t stop; /**< enum fathom_stop */
	/** enum fathom_trust, of the least reliable frame */
	uint8_t trust;
	uint8_t reserved[6];
};

/**
 * Unwinds the calling thread, or another one: stores the pc of each frame in @pcs, the
 * innermost first, and what it is in @kinds: both can go to fathom_symbolize(). The rules are
 * those that fathom_self_prepare() has made. For modules that were not prepared, and where a
 * rule cannot say it, the call frame information that the module has in memory is read, which
 * takes some 10 system calls a frame; that needs _dl_find_object() (glibc 2.35). Code that the
 * process has published with <fathom/jit.h> has the rules that it was published with. Other code
 * ends the walk, unless its last instructions or a frame pointer lead on.
 *
 * Memory is read only where it was found to be readable: by the kernel, once for each part of the
 * stack.
 *
 * Safety: as-safe; takes less than 8 KB of stack, preserves errno
 * Memory: writes at most @cap elements to @pcs and to @kinds, which may be NULL
 * Returns: FATHOM_OK, also if the stack ends early; FATHOM_E_ARGUMENT for options that this
 *	version does not know, or a context with another thread; FATHOM_E_UNSUPPORTED on
 *	machines other than x86-64 and aarch64, or for another thread without a signal; of
 *	another thread also FATHOM_E_NOT_FOUND: there is none of this number; FATHOM_E_TIMEOUT:
 *	it was not held before the deadline, because it blocks the signal, sleeps
 *	uninterruptibly or has no processor; FATHOM_E_LIMIT: 32 threads are held already;
 *	FATHOM_E_OS: the signal cannot be sent
 */
FATHOM_API fathom_err fathom_unwind(const struct fathom_self *self,
				    const struct fathom_unwind_options *options, uint64_t *pcs,
				    uint8_t *kinds, size_t cap,
				    struct fathom_unwind_result *ret_result);

#ifdef __cplusplus
}
#endif

#endif
