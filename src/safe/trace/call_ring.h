/* SPDX-License-Identifier: MIT */
/*
 * System calls that the runtime records itself, and what its reader tells it of them.
 *
 * Such a call is two events, each of several records that follow each other in the ring: one before
 * the call, with its arguments and the memory that it is given, one behind it. The first record of
 * an event is filled last; its `site` is one of the numbers below, its `caller` how many records
 * the event has. Each further record has FATHOM_TRACE_MORE in its first word, and 16 bytes of the
 * event: one of the structs below, then pieces of memory as records of system calls have them
 * (struct fathom_syscall_piece and its bytes, padded to 8).
 */
#ifndef FATHOM_TRACE_CALL_RING_H
#define FATHOM_TRACE_CALL_RING_H

#include "safe/trace/ring.h"

/* Numbers that no site has. */
#define FATHOM_TRACE_CALL_BEGINS UINT32_C(0xffffffff)
#define FATHOM_TRACE_CALL_ENDS   UINT32_C(0xfffffffe)

/* The most records of one event, and the bytes that are in them. */
#define FATHOM_TRACE_CALL_RECORDS 640
#define FATHOM_TRACE_CALL_BYTES   ((FATHOM_TRACE_CALL_RECORDS - 1) * 16)

/* Words of the stack that are recorded, from the stack pointer on. */
#define FATHOM_TRACE_CALL_WORDS 16

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
#define FATHOM_TRACE_CALL_ARGS 6
/* The most pieces of memory that the plan of a call has. */
#define FATHOM_TRACE_PIECES 4

/* Where the number of a piece's elements comes from: an argument, below these, or: */
enum fathom_trace_count { FATHOM_TRACE_COUNT_RESULT = 6, FATHOM_TRACE_COUNT_ONE = 7 };

enum fathom_trace_when { FATHOM_TRACE_BEFORE, FATHOM_TRACE_AFTER_SUCCESS, FATHOM_TRACE_AFTER };

/* A piece of memory that an argument points to. */
struct fathom_trace_piece {
	uint8_t argument;
	uint8_t is_string; /* up to its NUL, or most */
	uint8_t is_whole;  /* if it is longer than most, the tracer records the call */
	uint8_t when;      /* enum fathom_trace_when */
	uint8_t count;     /* enum fathom_trace_count */
	uint16_t size;     /* bytes of an element */
	uint16_t most;     /* bytes that are recorded */
	uint64_t cases;    /* values of the selector for which it is recorded: bits; 0: always */
};

/*
 * What is recorded of the system calls of one number; all zero: the tracer records them. Where
 * there is no tracer, a call for which this does not provide is recorded with all its arguments,
 * and without memory.
 */
struct fathom_trace_plan {
	uint8_t is_recorded;
	uint8_t n;
	uint8_t n_args;      /* that are recorded */
	uint8_t is_left_out; /* nobody wants to know of it; only said where there is no tracer */
	uint8_t padding[2];
	/* 1 + an argument that must be 0, and 1 + one that selects; else the tracer records it */
	uint8_t zero;
	uint8_t selector;
	uint32_t mask;    /* of what selects */
	uint64_t allowed; /* its values: bits */
	struct fathom_trace_piece pieces[FATHOM_TRACE_PIECES];
};

struct fathom_trace_plans {
	uint64_t has_words; /* 1: words of the stack are recorded */
	struct fathom_trace_plan plans[FATHOM_TRACE_PLANS];
};

/* struct fathom_trace_call_begin.flags */
enum fathom_trace_call_flag {
	/* There is no tracer: calls of handlers lie within the call that a signal interrupts. */
	FATHOM_TRACE_CALL_NESTS = 1 << 0,
	/* It was dispatched by SIGSYS: no instruction was rewritten. */
	FATHOM_TRACE_CALL_DISPATCHED = 1 << 2
};

/*
 * What the event before a call begins with; its arguments follow, then words of the stack, two in 8
 * bytes.
 */
struct fathom_trace_call_begin {
	uint32_t number; /* of the system call */
	uint8_t n_args;
	uint8_t flags; /* enum fathom_trace_call_flag */
	uint16_t n_words;
	uint64_t pc; /* behind the instruction in the program that makes it */
	uint64_t sp;
};

/* What the event behind a call begins with. */
struct fathom_trace_call_end {
	uint64_t begin; /* number of the first record of the event before it */
	int64_t result;
};

#endif
