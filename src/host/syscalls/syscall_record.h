/* SPDX-License-Identifier: MIT */
/*
 * The record of one system call: numbers, and those ranges of the program's memory that its text
 * needs. It is one run of bytes without pointers, so it can be stored in a file. A reader need
 * not trust it: fathom_syscall_record_open() checks where each range ends.
 *
 * Layout, in the byte order of the machine: struct fathom_syscall_call after a magic number, then
 * the ranges, each a struct fathom_recorded_range and its bytes, padded to 8.
 */
#ifndef FATHOM_SYSCALLS_SYSCALL_RECORD_H
#define FATHOM_SYSCALLS_SYSCALL_RECORD_H

#include "safe/base/bytes.h"

/* Most bytes of a record. What does not fit is left out, and its address is shown instead. */
#define FATHOM_SYSCALL_RECORD_MAX (1u << 22)
/*
 * Room for strings of any limit and for the lengths of a directory's entries, but not for all that
 * a call reads and writes.
 */
#define FATHOM_SYSCALL_RECORD_LONG (1u << 18)
/* Room that is enough for each call without strings and data above the default limit. */
#define FATHOM_SYSCALL_RECORD_USUAL (1u << 14)

#define FATHOM_SYSCALL_MAGIC UINT64_C(0x31306c6163737973)

/* How a call has ended so far. */
enum fathom_syscall_end {
	FATHOM_SYSCALL_NOT_YET,
	FATHOM_SYSCALL_RETURNED,
	FATHOM_SYSCALL_NEVER, /* the thread has ended in it */
};

/* How a call is shown, whatever is said of others: bits. */
enum fathom_syscall_format {
	FATHOM_SYSCALL_IN_NUMBERS = 1 << 0,  /* its arguments as they are in registers */
	FATHOM_SYSCALL_BY_ADDRESS = 1 << 1,  /* structs and arrays by their addresses */
	FATHOM_SYSCALL_WHOLE = 1 << 2,       /* structs and arrays are not abbreviated */
	FATHOM_SYSCALL_ABBREVIATED = 1 << 3, /* they are */
	FATHOM_SYSCALL_DUMPED = 1 << 4       /* with the bytes that it reads or writes */
};

/* A system call: what was called, and how it ended. */
struct fathom_syscall_call {
	uint32_t machine; /* EM_ constant of the calling convention */
	uint16_t end;     /* enum fathom_syscall_end */
	uint16_t format;  /* enum fathom_syscall_format */
	uint64_t number;
	uint64_t sp;      /* stack pointer at the call, which rt_sigreturn() reads; 0: unknown */
	uint64_t args[6]; /* of i386: 32 bits, without sign */
	int64_t result;   /* as the kernel has it: -4095 to -1 are errors */
};

struct fathom_recorded_range {
	uint64_t avma;
	uint32_t size;
	uint32_t at_exit; /* 0: read before the call; 1: after it */
};

/* A record that is being made, in the memory of the caller, or read. */
struct fathom_syscall_record {
	uint8_t *bytes;
	size_t n;
	size_t cap;
	size_t hint; /* offset of the range that was read last: most are read in their order */
	bool is_cut; /* a range did not fit */
};

/* Makes the record of @call in @cap bytes at @bytes, aligned to 8; false if that is too few. */
bool fathom_syscall_record_begin(struct fathom_syscall_record *r, uint8_t *bytes, size_t cap,
				 const struct fathom_syscall_call *call);

/* Stores how the call has ended; @result counts if it has returned. */
void fathom_syscall_record_end(struct fathom_syscall_record *r, enum fathom_syscall_end end,
			       int64_t result);

/* Appends @size bytes that are at @avma. */
void fathom_syscall_record_add(struct fathom_syscall_record *r, uint64_t avma, bool at_exit,
			       const void *bytes, size_t size);

/* Makes @ret read the @n bytes at @bytes, of any alignment; false if they are no whole record. */
bool fathom_syscall_record_open(const void *bytes, size_t n, struct fathom_syscall_record *ret);

/* Copies the call out of a record that was begun or opened. */
void fathom_syscall_record_call(const struct fathom_syscall_record *r,
				struct fathom_syscall_call *ret);

/* Copies up to @size bytes at @avma to @to; returns how many there are, from the first on. */
size_t fathom_syscall_record_read(struct fathom_syscall_record *r, uint64_t avma, bool at_exit,
				  void *to, size_t size);

#endif
