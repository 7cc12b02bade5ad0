/* SPDX-License-Identifier: MIT */
/*
 * Writes to the text of the calling process while its other threads are stopped; on aarch64 while
 * they run, as single instructions (stop_none.c).
 *
 * A child that shares its memory (clone(2), CLONE_VM and CLONE_VFORK) traces them, writes, and lets
 * them go; the calling thread sleeps meanwhile. The child allocates nothing and takes no lock: a
 * stopped thread may hold any. It has no signal for its end, so no wait() of the program sees it.
 * If it is killed, the kernel lets all threads run on.
 */
#ifndef FATHOM_HOOK_STOP_OTHERS_H
#define FATHOM_HOOK_STOP_OTHERS_H

#include "host/patch/own_text.h"

/*
 * Makes @plan, or, unless @now, undoes it, while no other thread runs or stands in the midst of its
 * bytes; sorts it. FATHOM_E_OS, FATHOM_E_TIMEOUT, FATHOM_E_MEMORY, FATHOM_E_UNSUPPORTED: then
 * nothing has changed.
 */
fathom_err fathom_text_put_stopped(struct fathom_text_plan *plan, bool now,
				   struct fathom_errinfo *reterr);

#endif
