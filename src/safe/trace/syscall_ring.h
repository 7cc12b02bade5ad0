/* SPDX-License-Identifier: MIT */
/*
 * System calls that the runtime records itself, and what its reader tells it of them.
 *
 * Such a call is two events, each of one or several records that follow each other in the ring: one
 * before the call, with its arguments and the memory that it is given, one after it. The first
 * record of an event is filled last; its `site` is one of the numbers below, and says what its
 * other words are. Each further record has FATHOM_TRACE_MORE in its first word, and 16 bytes of the
 * event:
 *
 * - before a call (FATHOM_TRACE_SYSCALL_BEGINS) `caller` is the number of records, `fp` is what
 *   fathom_trace_syscall_fp() makes. The further ones have struct fathom_trace_syscall_begin, the
 *   arguments, words of the stack, two in 8 bytes, and ranges of memory;
 * - after a call with memory (FATHOM_TRACE_SYSCALL_ENDS) `caller` is the number of records. The
 *   further ones have struct fathom_trace_syscall_end and ranges of memory;
 * - after a call without (FATHOM_TRACE_SYSCALL_RETURNS) there is one record: `sp` and `caller` are
 * the low and high half of the result, `fp` the low half of the number of the first record of the
 *   event before the call.
 *
 * Ranges of memory are as records of system calls have them: struct fathom_recorded_range and its
 * bytes, padded to 8.
 */
#ifndef FATHOM_TRACE_SYSCALL_RING_H
#define FATHOM_TRACE_SYSCALL_RING_H

#include "safe/trace/ring.h"

/* Numbers that no site has. */
#define FATHOM_TRACE_SYSCALL_BEGINS  UINT32_C(0xffffffff)
#define FATHOM_TRACE_SYSCALL_ENDS    UINT32_C(0xfffffffe)
#define FATHOM_TRACE_SYSCALL_RETURNS UINT32_C(0xfffffffd)
/* From this one on a site is a system call. */
#define FATHOM_TRACE_SYSCALL_SITES FATHOM_TRACE_SYSCALL_RETURNS

/* The most records of one event, and the bytes that are in them. */
#define FATHOM_TRACE_SYSCALL_RECORDS 640
#define FATHOM_TRACE_SYSCALL_BYTES   ((FATHOM_TRACE_SYSCALL_RECORDS - 1) * 16)

/*
 * Words that are recorded, by which the reader knows which calls of functions have returned: those
 * of the stack, from the stack pointer on, if flags say nothing else.
 */
#define FATHOM_TRACE_SYSCALL_WORDS 16

/*
 * Where the runtime and what its reader tells it are mapped in programs whose calls are rewritten:
 * a filter of system calls (seccomp(2)) that lets those of the runtime pass knows them by their
 * place. It is below what the kernel chooses for mappings, and above the program.
 */
#define FATHOM_TRACE_FIXED_IMAGE   UINT64_C(0x7e9000000000)
#define FATHOM_TRACE_FIXED_PROCESS UINT64_C(0x7e9000100000)
#define FATHOM_TRACE_FIXED_PLANS   UINT64_C(0x7e9000101000)

/* Numbers of system calls that have plans. */
#define FATHOM_TRACE_PLANS 512
/* Arguments of a call. */
#define FATHOM_TRACE_SYSCALL_ARGS 6
/* Room for the cases and the ranges of all plans. */
#define FATHOM_TRACE_CASES      512
#define FATHOM_TRACE_ALL_RANGES 512
/* The most ranges of memory that are recorded of one event. */
#define FATHOM_TRACE_RANGES 192

/* Where the address of a range comes from: an argument, below these, or: */
enum fathom_trace_from {
	FATHOM_TRACE_FROM_FIELD = 6,  /* the pointer at `at` of the outer element */
	FATHOM_TRACE_FROM_ELEMENT = 7 /* the outer element itself */
};

/* Where the number of a range's elements comes from: an argument, below these, or: */
enum fathom_trace_count {
	FATHOM_TRACE_COUNT_RESULT = 6,
	FATHOM_TRACE_COUNT_ONE = 7,
	FATHOM_TRACE_COUNT_FIELD = 8,  /* the number at `count_at` of the outer element */
	FATHOM_TRACE_COUNT_POINTED = 9 /* the number to which argument `count_at` points */
};

enum fathom_trace_when { FATHOM_TRACE_BEFORE, FATHOM_TRACE_AFTER_SUCCESS, FATHOM_TRACE_AFTER };

/* How a range is recorded: bits. */
enum fathom_trace_range_flags {
	FATHOM_TRACE_STRING = 1 << 0,  /* up to its NUL, or most */
	FATHOM_TRACE_BOUNDED = 1 << 1, /* as long as the buffers of the call are not used up */
	FATHOM_TRACE_ENTRIES = 1 << 2, /* of a directory: of each its length only */
	FATHOM_TRACE_WHOLE = 1 << 3    /* if it is longer than most, the tracer records the call */
};

/* Bounds of what a call has written to its buffers, of which BOUNDED ranges are a part. */
enum fathom_trace_bound {
	FATHOM_TRACE_BOUND_NOT, /* goes on with what is left */
	FATHOM_TRACE_BOUND_RESULT,
	FATHOM_TRACE_BOUND_FIELD /* the 4 bytes after the outer element's message */
};

/* Where a message of many (struct mmsghdr) has how many bytes were sent or received. */
#define FATHOM_TRACE_MESSAGE_LENGTH 56

/* A range of memory, or as many as the outer range has elements. */
struct fathom_capture_range {
	uint8_t from;    /* enum fathom_trace_from */
	uint8_t when;    /* enum fathom_trace_when */
	uint8_t flags;   /* enum fathom_trace_range_flags */
	uint8_t count;   /* enum fathom_trace_count */
	uint8_t width;   /* of the number that counts, in bytes */
	uint8_t shift;   /* elements are so many bits of it, rounded up */
	uint8_t at_most; /* 1 + an argument that bounds the number of elements */
	uint8_t n_inner; /* ranges that follow, for each element of this one */
	uint8_t bound;   /* enum fathom_trace_bound, from here on */
	uint8_t plus;    /* bytes from the address to the first element */
	uint16_t at;     /* of the pointer in the outer element */
	uint16_t count_at;
	uint16_t size; /* bytes of an element */
	uint16_t most; /* bytes that are recorded */
};

/* A run of ranges. */
struct fathom_trace_run {
	uint16_t first;
	uint8_t n; /* with those that are inner to others */
	uint8_t is_recorded;
	/* 1: one event may lack room for all; whether it does is found out before the call */
	uint8_t is_large;
	uint8_t has_before; /* ranges that are read before the call */
	uint8_t has_after;
	uint8_t padding;
};

/* The ranges for one value of the argument that selects. */
struct fathom_trace_case {
	uint32_t value;
	struct fathom_trace_run run;
};

/*
 * The plan of what to record of the system calls of one number; all zero: the tracer records them.
 * Where there is no tracer, a call for which this does not provide is recorded with all its
 * arguments, and without memory.
 */
struct fathom_trace_plan {
	struct fathom_trace_run run; /* for all values that are no case */
	uint8_t n_args;              /* that are recorded */
	uint8_t selector;            /* 1 + the argument that selects a case */
	uint16_t first_case;         /* sorted by value */
	uint16_t n_cases;
	/*
	 * Nobody wants to know of it, 2: of that of i386; only said where there is no tracer: bits
	 */
	uint16_t is_left_out;
	uint32_t mask; /* of what selects */
};

struct fathom_trace_plans {
	uint32_t has_words; /* 1: words of the stack are recorded */
	/* 1: so are calls without plans; only said where there is no tracer */
	uint32_t has_unknown;
	uint32_t n_cases;
	uint32_t n_ranges;
	struct fathom_trace_plan plans[FATHOM_TRACE_PLANS];
	struct fathom_trace_case cases[FATHOM_TRACE_CASES];
	struct fathom_capture_range ranges[FATHOM_TRACE_ALL_RANGES];
	/*
	 * Whether a call may have a plan, by the low bits of its number. The hook asks here first,
	 * without a comparison, which would change flags. What is after the plans is 0.
	 */
	uint8_t may_be_recorded[FATHOM_TRACE_PLANS];
};

/* Bytes of the plans as they are mapped: numbers of 16 bits may be asked for. */
#define FATHOM_TRACE_PLANS_SIZE \
	(offsetof(struct fathom_trace_plans, may_be_recorded) + (UINT64_C(1) << 16))

/*
 * The range of an event that has lengths of entries of a directory, 2 bytes each: its size has this
 * bit. FATHOM_TRACE_ENTRY_LENGTH is where an entry has its length.
 */
#define FATHOM_TRACE_ENTRIES_BIT (UINT32_C(1) << 31)
/* The most bytes of entries whose lengths are recorded, and bytes of the smallest one. */
#define FATHOM_TRACE_ENTRIES_MOST 65536
#define FATHOM_TRACE_ENTRY_MIN    20
#define FATHOM_TRACE_ENTRY_LENGTH 16

/* Head of the event before a call. */
struct fathom_trace_syscall_begin {
	uint64_t pc; /* after the instruction in the program that makes it */
	uint64_t sp;
};

/* Flags of an event before a call: 4 bits. */
enum fathom_trace_syscall_flag {
	/* There is no tracer: calls of handlers lie within the call that a signal interrupts. */
	FATHOM_TRACE_SYSCALL_NESTS = 1 << 0,
	/*
	 * The words are those of frame records: the stack address, / 8, below which all records
	 * were seen; the link register; then for each record its stack address, / 8, and the return
	 * address that it has.
	 */
	FATHOM_TRACE_SYSCALL_FRAMES = 1 << 1,
	/* It was dispatched by SIGSYS: no instruction was rewritten. */
	FATHOM_TRACE_SYSCALL_DISPATCHED = 1 << 2,
	/* It is one of i386 (`int $0x80`). */
	FATHOM_TRACE_SYSCALL_I386 = 1 << 3
};

/*
 * Returns what an event before system call @number says of it, with so many arguments and words.
 * With one argument more than a call has, the last is the number, which may have more than 16 bits.
 */
static inline uint32_t fathom_trace_syscall_fp(uint32_t number, uint32_t n_args, uint32_t flags,
					       uint32_t n_words)
{
	return (number & 0xffff) | n_args << 16 | flags << 20 | n_words << 24;
}

static inline uint32_t fathom_trace_syscall_number(uint32_t fp)
{
	return fp & 0xffff;
}

static inline uint32_t fathom_trace_syscall_args(uint32_t fp)
{
	return fp >> 16 & 0xf;
}

static inline uint32_t fathom_trace_syscall_flags(uint32_t fp)
{
	return fp >> 20 & 0xf;
}

static inline uint32_t fathom_trace_syscall_words(uint32_t fp)
{
	return fp >> 24;
}

/* Head of the event after a call. */
struct fathom_trace_syscall_end {
	uint64_t begin; /* number of the first record of the event before it */
	int64_t result;
};

#endif
