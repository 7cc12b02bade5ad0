/* SPDX-License-Identifier: MIT */
/*
 * The format of trace files: eight bytes of magic, then items up to the end. Each prefix that
 * ends after an item is a trace file. An item is a tag, whose lowest three bits are its kind,
 * and numbers: LEB128 (DWARF 5, section 7.6) without sign; zigzag(x) is 2x, or -2x - 1 if x is
 * negative.
 *
 *	kind	 tag's upper five bits	then
 *	DEFINE	 what			by what: see below
 *	CALL	 depth			time, function, stack
 *	CALLS	 depth			time, function, stack, count
 *	RETURN	 depth			time, function, stack, duration in ns
 *	RETURNS	 depth			time; the rest is as at the last call of that depth: one of
 *					less than 65,536, and at most 8 above all before it
 *	OTHER	 depth			time, stack, type, count, function + 1 or 0, text
 *	THREAD	 number			none: of this thread are the items that follow
 *	STACK	 number			none: on this stack of the thread are they
 *
 * Of a system call (types 9 and 10) count is its duration in ns and text its record
 * (host/syscalls/syscall_record.h). After it follow two numbers: enum fathom_syscall_method, and
 * pc.
 *
 * The upper bits of a tag are a number up to 30; 31: the number follows. depth is zigzag of the
 * difference from the last item of the thread with a depth; time is zigzag of the difference in
 * ns from the last item; stack is 2 * zigzag(d / 8), d the difference in bytes from the last item
 * of the thread, or 2 * zigzag(d) + 1 if d is no multiple of 8. At first all of them are 0. A
 * text is its size and its bytes.
 *
 *	what		then
 *	BEGIN		version; nanoseconds since 1970 at time 0, or 0
 *	MODULE		path; it is number 0, 1 ...
 *	FUNCTION	module, name, linkage name or "", address, address as stated in
 *			the file; it is number 0, 1 ...
 *	THREAD		pid, tid, name; it is number 0, 1 ...
 *	END		status of the program, sites, lost events, number of refusals and
 *			each of them
 *	FRAME		pc, kind, module + 1 or 0, build-id, address as stated in the file
 *			+ 1 or 0, offset in the file + 1 or 0, symbol, linkage name, offset
 *			in the symbol, size of the symbol, source, reason, number of
 *			functions and each of them; it is number 0, 1 ...
 *	UNKNOWN		nothing
 *	GAP		depth less parent_depth less 1 of the next item
 *	FRAMES		enum fathom_stop, number of frames and of each of them: its number,
 *			sp + 1 or 0, enum fathom_trust, with FATHOM_FILE_SIGNAL_RETURN of a
 *			signal trampoline
 *
 * UNKNOWN and GAP are of the next call or system call: they say what is its parent, enum
 * fathom_trace_parent. Without them a call at depth 0 has none, and others are DIRECT, of the depth
 * before theirs. Files of version 1 have neither: they do not say of which calls the caller is
 * not known.
 *
 * FRAMES are the stack of the item of kind OTHER that follows. Functions of a frame are those that
 * are inlined there, the innermost first, and the one that the code belongs to: name, linkage name,
 * file, line, column, discriminator, address where it begins.
 *
 * pid, tid and status are zigzag. What is not known here is an error.
 */
#ifndef FATHOM_EVENTS_FILE_FORMAT_H
#define FATHOM_EVENTS_FILE_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#include "fathom/trace.h"
#include "host/base/array.h"
#include "host/base/leb.h"

#define FATHOM_TRACE_FILE_MAGIC \
	"\x7f"                  \
	"ftrace\n"
#define FATHOM_TRACE_FILE_VERSION 2

/* A bit beside a trust. */
#define FATHOM_FILE_SIGNAL_RETURN 0x80u

enum {
	FATHOM_ITEM_DEFINE = 0,
	FATHOM_ITEM_CALL = 1,
	FATHOM_ITEM_CALLS = 2,
	FATHOM_ITEM_RETURN = 3,
	FATHOM_ITEM_RETURNS = 4,
	FATHOM_ITEM_OTHER = 5,
	FATHOM_ITEM_THREAD = 6,
	FATHOM_ITEM_STACK = 7
};

enum {
	FATHOM_DEFINE_BEGIN = 0,
	FATHOM_DEFINE_MODULE = 1,
	FATHOM_DEFINE_FUNCTION = 2,
	FATHOM_DEFINE_THREAD = 3,
	FATHOM_DEFINE_END = 4,
	FATHOM_DEFINE_FRAME = 5,
	FATHOM_DEFINE_FRAMES = 6,
	FATHOM_DEFINE_UNKNOWN = 7,
	FATHOM_DEFINE_GAP = 8
};

/* The upper bits of a tag: a number that follows. */
#define FATHOM_ITEM_FOLLOWS 31

/* The longest text. */
#define FATHOM_FILE_TEXT ((size_t)1 << 20)

/* The most functions of a frame. */
#define FATHOM_FILE_INLINED 1024

/* The deepest call that a return may be of without naming it. */
#define FATHOM_FILE_DEPTH ((size_t)1 << 16)
/* How much deeper than those before it a call may be for that. */
#define FATHOM_FILE_DEEPER 8

/* A call that a thread is in. */
struct fathom_file_call {
	uint64_t ns;
	uint64_t stack;
	uint32_t function; /* number; UINT32_MAX: none */
};

/* The state of a thread, of which writer and reader have the same. All zero at first. */
struct fathom_file_thread {
	uint64_t stack;
	uint32_t depth;
	uint8_t stack_number;
	struct {
		FATHOM_ARRAY_OF(struct fathom_file_call);
	} calls; /* by depth */
};

/* Notes a call of @function, unless it is too deep. False without memory. */
bool fathom_file_call(struct fathom_file_thread *t, const struct fathom_trace_event *e,
		      uint32_t function);

#endif
