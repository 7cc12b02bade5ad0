/* SPDX-License-Identifier: MIT */
/*
 * Leads the instructions of modules that call the kernel to the runtime, which makes and records
 * the calls (src/trace/syscall_hook.h).
 */
#ifndef FATHOM_TRACE_SYSCALL_REWRITER_H
#define FATHOM_TRACE_SYSCALL_REWRITER_H

#include "host/module/place.h"
#include "host/sites/syscall_insns.h"
#include "host/syscalls/syscall_format.h"
#include "host/trace/syscall_set.h"
#include "host/trace/program.h"

struct fathom_syscalls_of_file {
	struct fathom_file_id file;
	struct fathom_syscall_insns calls;
};

/* The choice of calls to rewrite, and how many were. */
struct fathom_syscall_rewriter {
	/* The instructions of files, which many processes may have. */
	struct {
		FATHOM_ARRAY_OF(struct fathom_syscalls_of_file);
	} memo;
	struct fathom_trace_plans plans;
	bool is_left_out[FATHOM_TRACE_PLANS]; /* calls that nobody wants */
	bool is_only;                         /* no functions are recorded */
};

/* Makes the plans of the calls in @set, but for those in @apart, which the tracer records. */
void fathom_syscall_rewriter_init(struct fathom_syscall_rewriter *r,
				  const struct fathom_syscall_set *set,
				  const struct fathom_syscall_set *apart,
				  const struct fathom_syscall_options *options, bool names_files);
void fathom_syscall_rewriter_deinit(struct fathom_syscall_rewriter *r);

/*
 * Rewrites those of @m in @p, none of whose threads runs code of @m yet. What cannot be rewritten
 * stays as it is: the tracer sees the calls then. A call stays, too, for which several instructions
 * would have to go while @p has other threads.
 */
void fathom_syscalls_rewrite(struct fathom_syscall_rewriter *r, struct fathom_traced *p,
			     const struct fathom_module_at *m);

/*
 * Returns where the program goes on after the call that thread stopped in, whose instruction ends
 * at @pc: for an instruction of a stub after the one that was rewritten.
 */
uint64_t fathom_syscalls_pc(const struct fathom_traced *p, uint64_t pc);
/* Returns the avma of the program's own instruction that the one of a stub at @pc stands for. */
uint64_t fathom_syscalls_own_pc(const struct fathom_traced *p, uint64_t pc);
/* Returns whether the instruction at @pc was moved to a stub. */
bool fathom_syscalls_is_moved(const struct fathom_traced *p, uint64_t pc);
/*
 * Returns whether it was, and nothing is left of it at its own place: it began inside the jump, and
 * can only go on in the stub.
 */
bool fathom_syscalls_is_gone(const struct fathom_traced *p, uint64_t pc);

#endif
