/* SPDX-License-Identifier: MIT */
/* Evidence in the file of a module about the numbers that a log has of it: its code. */
#ifndef FATHOM_FILTER_LOG_EVIDENCE_H
#define FATHOM_FILTER_LOG_EVIDENCE_H

#include "host/filter/log_modules.h"
#include "safe/unwind/step.h"

/* The code of a module's file. */
struct fathom_log_code {
	const struct fathom_unwind_arch *arch; /* NULL: there is none that is known */
	struct fathom_reader reader;
	struct fathom_step_memory memory; /* reader */
};

/* Returns the ELF file of @m; NULL: it has none. */
const struct fathom_image *fathom_log_image_of(const struct fathom_log_module *m);

/* Makes the value of @n, of @module, an address as its target knows it. Returns a reason if not. */
enum fathom_reason fathom_log_address_of(const struct fathom_log_number *n,
					 const struct fathom_log_module *module, uint64_t *ret);

/* Makes @ret the code of @m. */
void fathom_log_code_of(const struct fathom_log_module *m, struct fathom_log_code *ret);

/* Returns whether there is code before @address, and no call ends there. */
bool fathom_log_is_after_other(const struct fathom_log_code *c, uint64_t address);

/*
 * Returns the return address that @address, of number @n, of code of @c, is or was before it was
 * lowered; that of another kind as it is.
 */
uint64_t fathom_log_raise(const struct fathom_log_number *n, const struct fathom_log_code *c,
			  uint64_t address);

/* Returns an address within the instruction that @n, whose address is @address, is about. */
uint64_t fathom_log_inside(const struct fathom_log_number *n, uint64_t address);

/* The call before a return address, and the frame that it should have made. */
enum fathom_log_link {
	FATHOM_LOG_LINK_UNKNOWN, /* the call is indirect, or by a stub */
	FATHOM_LOG_LINKED,       /* it leads to the function of the frame */
	FATHOM_LOG_NOT_LINKED    /* it leads to another function, which does not jump on */
};

/*
 * Returns how the call before @address, of code of @m, goes with the frame inside of it, in which
 * @inner is.
 */
enum fathom_log_link fathom_log_link(const struct fathom_log_module *m,
				     const struct fathom_log_code *c, uint64_t address,
				     uint64_t inner);

/* Returns whether @outer is the frame around @inner: the lines, or their numbers, say so. */
bool fathom_log_is_around(const struct fathom_log_number *inner,
			  const struct fathom_log_number *outer);

/*
 * Returns the end of the stack that begins with number @first of @s, of a format whose frames only
 * their stack can place; of another format, the next number.
 */
size_t fathom_log_stack_end(const struct fathom_log_scan *s, size_t first);

/*
 * Takes the place from all frames of a stack that other lines have placed in one module, if the
 * stack shows that it is not there. @of_numbers has the index of each number's module.
 */
void fathom_log_check_stacks(struct fathom_log_scan *s, struct fathom_log_modules *modules,
			     const uint32_t *of_numbers);

/*
 * Returns whether return address @address, of a log, shows that the file is not the log's: it is
 * after no call, or not in the file. One without code, as debug files are, shows little; nor does
 * the kernel, among whose return addresses are those of code that was interrupted. Nothing calls
 * the code to which a handler returns, or the function of makecontext().
 */
bool fathom_log_refutes(const struct fathom_log_module *m, const struct fathom_log_number *n,
			uint64_t address);

/*
 * Makes exact what a signal has interrupted: the number after that of the code by which handlers
 * return, of the same format as *@interrupted, which the next call gets again; NULL: there is none.
 * That code is called by nothing, either. @of_numbers has the index of each number's module.
 */
void fathom_log_mark_interrupted(struct fathom_log_scan *s,
				 const struct fathom_log_modules *modules,
				 const uint32_t *of_numbers, const char **interrupted);

#endif
