/* SPDX-License-Identifier: MIT */
/*
 * Threads that are looked at from outside. Where programs have CPU timers (record_timers.h), they
 * say when a thread is to be sampled; all else is as without them.
 */
#ifndef FATHOM_PROFILE_RECORD_POLL_H
#define FATHOM_PROFILE_RECORD_POLL_H

#include "host/profile/recording.h"

/*
 * Samples thread @tid of process @pid, which the calling thread traces and which has stopped.
 * Called with the lock. FATHOM_E_MEMORY.
 */
fathom_err fathom_record_poll_stopped(struct fathom_recording *r, int32_t pid, int32_t tid);

/* Writes what thread @tid of process @pid, which is about to end, has run since its last sample. */
fathom_err fathom_record_poll_ending(struct fathom_recording *r, int32_t pid, int32_t tid);

#endif
