/* SPDX-License-Identifier: MIT */
/*
 * The threads of this process, and the signals that the calling one takes.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_BASE_OWN_THREAD_H
#define FATHOM_BASE_OWN_THREAD_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "safe/base/sys.h"

/* Bytes of the kernel's set of signals. */
#define FATHOM_SIGNAL_SET 8

static inline long fathom_own_pid(void)
{
	return fathom_sys(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

static inline int32_t fathom_own_tid(void)
{
	return (int32_t)fathom_sys(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

/* Returns whether this process has no thread @tid, any more. */
static inline bool fathom_own_thread_is_gone(int32_t tid)
{
	return fathom_sys(SYS_tgkill, fathom_own_pid(), tid, 0, 0, 0, 0) == -ESRCH;
}

/* Returns the bit of signal @number in the kernel's set. */
static inline uint64_t fathom_signal_bit(int number)
{
	return UINT64_C(1) << (number - 1);
}

/* Changes the signals that are blocked; @how: SIG_BLOCK or another. Returns those before. */
static inline uint64_t fathom_signal_mask(int how, uint64_t set)
{
	uint64_t before = 0;

	(void)fathom_sys(SYS_rt_sigprocmask, how, (long)(uintptr_t)&set, (long)(uintptr_t)&before,
			 FATHOM_SIGNAL_SET, 0, 0);
	return before;
}

#endif
