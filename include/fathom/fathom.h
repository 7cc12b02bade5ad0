/* SPDX-License-Identifier: MIT */
/**
 * @file
 * fathom: names for addresses, and addresses for names.
 *
 * Every function of every header keeps this contract:
 *
 * Errors. A function that can fail returns a fathom_err: 0, or a negative class. Out parameters
 * come last. Those called ret_ are written on success only, reterr on failure only; reterr may be
 * NULL. Long calls can be cancelled (fathom_options.progress): FATHOM_E_CANCELLED. The library
 * never prints, never exits, and does not change signal handlers or environment, unless it is asked
 * to (<fathom/crash.h>).
 *
 * Threads and signals. The line "Safety:" says which of these holds:
 *   as-safe                may be called from a signal handler
 *   mt-safe                one object may be used by many threads at the same time
 *   mt-safe per object     different objects may be used at the same time
 *   neither
 *
 * Compatibility. Option structs start with their size and end in zeros; lists of constants only
 * grow; functions keep their meaning within one soname.
 *
 * In ten lines:
 * @code
 *	struct fathom *session;
 *	struct fathom_target *target;
 *	const struct fathom_answer *a;
 *	struct fathom_pc pc = { 0x1139, FATHOM_PC_EXACT };
 *
 *	fathom_create(NULL, &session, NULL);
 *	fathom_target_open_file(session, "/bin/true", NULL, &target, NULL);
 *	fathom_lookup(target, pc, NULL, &a, NULL);
 *	if (a->symbol)
 *		puts(a->symbol);
 *	fathom_answer_free(a);
 * @endcode
 */
#ifndef FATHOM_FATHOM_H
#define FATHOM_FATHOM_H

#include <fathom/answer.h>
#include <fathom/cache.h>
#include <fathom/crash.h>
#include <fathom/death.h>
#include <fathom/disasm.h>
#include <fathom/error.h>
#include <fathom/filter.h>
#include <fathom/find.h>
#include <fathom/hook.h>
#include <fathom/format.h>
#include <fathom/jit.h>
#include <fathom/jit_check.h>
#include <fathom/limits.h>
#include <fathom/near.h>
#include <fathom/profile.h>
#include <fathom/resolve.h>
#include <fathom/self.h>
#include <fathom/session.h>
#include <fathom/snapshot.h>
#include <fathom/source.h>
#include <fathom/stack.h>
#include <fathom/stack_merge.h>
#include <fathom/store.h>
#include <fathom/symbolize.h>
#include <fathom/target.h>
#include <fathom/trace.h>
#include <fathom/trust.h>
#include <fathom/unwind.h>
#include <fathom/value.h>
#include <fathom/version.h>

#endif
