/* SPDX-License-Identifier: MIT */
/*
 * The effect of a stop on the system call that a thread sleeps in (signal(7), "Interruption of
 * system calls and library functions by stop signals").
 *
 * Most calls return one of the kernel's ERESTART codes when they are interrupted, and the kernel
 * starts them anew. The calls listed here return EINTR, whatever interrupted them.
 *
 * Not handled: calls that return early because they have done a part of their work, such as a write
 * to a full pipe, recv() with MSG_WAITALL and recvmmsg(): nothing outside the kernel shows it.
 * Drivers whose ioctl() returns EINTR.
 */
#ifndef FATHOM_TRACER_BLOCKING_CALLS_H
#define FATHOM_TRACER_BLOCKING_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "safe/base/reader.h"

/* A system call that a thread sleeps in. */
struct fathom_blocking_call {
	uint32_t machine; /* EM_ of the program: EM_X86_64, EM_386, EM_AARCH64 */
	int64_t number;
	const uint64_t *arguments; /* 6 */
	int task;                  /* descriptor of the thread's directory below /proc */
	int process;               /* pidfd of its process; -1: none */
	const struct fathom_reader *memory;
};

/* The effect of a stop on a call. */
enum fathom_stop_effect {
	FATHOM_STOP_RESTARTS, /* nothing: the kernel starts the call anew */
	FATHOM_STOP_EINTR,    /* it ends with EINTR; it has no timeout, so it can be started anew */
	FATHOM_STOP_ENDS      /* it ends early; its timeout is unknown or has partly passed */
};

enum fathom_stop_effect fathom_blocking_call_effect(const struct fathom_blocking_call *c);

#endif
