/* SPDX-License-Identifier: MIT */
/*
 * The text of the calling process, through /proc/self/mem: whatever its protection, and no page of
 * it becomes writable. While threads run, single stores change it: one byte on x86-64, one
 * instruction on aarch64 (own_words_aarch64.c). own_stopped_x86_64.c stops them.
 */
#ifndef FATHOM_PATCH_OWN_TEXT_H
#define FATHOM_PATCH_OWN_TEXT_H

#include "host/patch/text_plan.h"
#include "safe/base/error.h"

struct fathom_own_text {
	struct fathom_text_memory memory;
	int fd;
};

/* False with errno, and with fd -1. */
bool fathom_own_text_open(struct fathom_own_text *t);
void fathom_own_text_close(struct fathom_own_text *t);

/* Fails with FATHOM_E_OS. */
fathom_err fathom_text_fail(struct fathom_errinfo *reterr, int number, const char *what);

/* Returns whether the process has one thread only. */
bool fathom_text_is_alone(void);

/* Makes @plan in @m, or, unless @now, undoes it. FATHOM_E_OS: nothing has changed. */
fathom_err fathom_text_put(const struct fathom_text_plan *plan, bool now,
			   struct fathom_text_memory *m, struct fathom_errinfo *reterr);

/* Makes @plan, or, unless @now, undoes it, where nobody runs. FATHOM_E_OS: nothing has changed. */
fathom_err fathom_text_put_unused(const struct fathom_text_plan *plan, bool now,
				  struct fathom_errinfo *reterr);

/*
 * Makes @plan, or, unless @now, undoes it, while other threads run: each change is one store.
 * FATHOM_E_OS, FATHOM_E_UNSUPPORTED: nothing has changed.
 */
fathom_err fathom_text_put_running(const struct fathom_text_plan *plan, bool now,
				   struct fathom_errinfo *reterr);

/*
 * Makes @plan, or, unless @now, undoes it, while no other thread runs or stands in the midst of its
 * bytes; sorts it. On aarch64 they run: a change is one instruction there. FATHOM_E_OS,
 * FATHOM_E_TIMEOUT, FATHOM_E_MEMORY, FATHOM_E_UNSUPPORTED: nothing has changed.
 */
fathom_err fathom_text_put_stopped(struct fathom_text_plan *plan, bool now,
				   struct fathom_errinfo *reterr);

/* Makes the processors of other threads, which run, fetch the written instructions anew. */
bool fathom_text_synchronize(struct fathom_text_memory *m);

/* Two functions of this processor, which return 1 and 2, and differ in their first 4 bytes. */
extern const uint32_t fathom_text_probes[2][2];

/* Returns whether code that was run before is run as it is after a write of @m. */
bool fathom_text_is_seen(struct fathom_text_memory *m);

/* Maps a page that is executable, with @size bytes @code; NULL: it cannot be. */
void *fathom_text_map_code(const void *code, size_t size);

#endif
