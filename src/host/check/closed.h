/* SPDX-License-Identifier: MIT */
/*
 * Pages of published code that cannot be executed, so that whatever enters them faults. A page is
 * opened for the thread that is stepped through it.
 */
#ifndef FATHOM_CHECK_CLOSED_H
#define FATHOM_CHECK_CLOSED_H

#include <signal.h>

#include "host/check/published.h"

/* Pages that the program has made executable. */
struct fathom_closed_range {
	uint64_t low; /* avma */
	uint64_t high;
	uint32_t protection; /* as the program has set it, PROT_ */
	int key;      /* protection key that forbids to read what can only be executed; else 0 */
	bool is_open; /* it is so now; else without PROT_EXEC */
};

struct fathom_closed {
	FATHOM_ARRAY_OF(struct fathom_closed_range);
	bool failed; /* some page could not be protected */
};

/*
 * Closes all executable pages of the code in @p, and opens those that have none any more. Thread
 * @tid, which is stopped, makes the system calls. FATHOM_E_MEMORY.
 */
fathom_err fathom_closed_update(struct fathom_closed *c, const struct fathom_tracee *t, pid_t tid,
				const struct fathom_published *p);

/* Forgets what the program has mapped or protected anew in [@low, @high). FATHOM_E_MEMORY. */
fathom_err fathom_closed_forget(struct fathom_closed *c, uint64_t low, uint64_t high);

/*
 * Makes the fault that @info describes, of stopped thread @tid in the closed range @r, the fault of
 * a protection key that it would be without us. Changes nothing if no key forbids to read @r.
 */
void fathom_closed_restore_fault(const struct fathom_closed_range *r, pid_t tid, siginfo_t *info);

/* Returns the range that has @avma; NULL if none has. */
struct fathom_closed_range *fathom_closed_at(const struct fathom_closed *c, uint64_t avma);

/* Opens @r. */
void fathom_closed_open(struct fathom_closed *c, struct fathom_closed_range *r,
			const struct fathom_tracee *t, pid_t tid);
/* Closes all ranges that are open. */
void fathom_closed_close(struct fathom_closed *c, const struct fathom_tracee *t, pid_t tid);
/* Opens all pages of a child that has a copy of them, and whose stopped thread is @tid. */
void fathom_closed_release(const struct fathom_closed *c, const struct fathom_tracee *t, pid_t tid);

#endif
