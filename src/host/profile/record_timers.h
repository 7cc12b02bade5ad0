/* SPDX-License-Identifier: MIT */
/*
 * CPU timers for the threads of a program that is started, where there are no perf events: each
 * thread has a timer of its own processor time (timer_create(2), CLOCK_THREAD_CPUTIME_ID), whose
 * signal is seen by us, who trace the program (ptrace(2)), and never by the program.
 */
#ifndef FATHOM_PROFILE_RECORD_TIMERS_H
#define FATHOM_PROFILE_RECORD_TIMERS_H

#include "host/profile/recording.h"

struct fathom_record_timers;

/*
 * Follows the program of @r, which is held before exec(), from now on; each thread is looked at in
 * turns with what else is done with @r, under its lock. FATHOM_E_UNSUPPORTED: not on this machine;
 * FATHOM_E_OS: it may not be traced; FATHOM_E_MEMORY.
 */
fathom_err fathom_record_timers_create(struct fathom_recording *r,
				       struct fathom_record_timers **ret,
				       struct fathom_errinfo *reterr);

/*
 * Asks for a sample of thread @tid, which has run for @ran_ns since the last one, if that is longer
 * than a timer takes: its timer is not there, or the thread blocks its signal. Called with the
 * lock.
 */
void fathom_record_timers_ask(struct fathom_record_timers *t, int32_t tid, uint64_t ran_ns);

/* Returns FATHOM_E_MEMORY if samples are missing. Called with the lock. */
fathom_err fathom_record_timers_failed(const struct fathom_record_timers *t);

/*
 * Leaves the program, without timers, and frees @t, which may be NULL; returns the processor time
 * that it has taken, in ns. Called without the lock.
 */
uint64_t fathom_record_timers_destroy(struct fathom_record_timers *t);

#endif
