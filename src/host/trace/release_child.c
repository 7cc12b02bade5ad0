/* SPDX-License-Identifier: MIT */
#include "host/trace/release_child.h"

#include <linux/kcmp.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/trace/load.h"
#include "host/trace/referring.h"
#include "trace/recorder.h"

bool fathom_releases_children(const struct fathom_follow *f)
{
	/* Calls at which a filter stops fail without a tracer. */
	return f->flags & FATHOM_TRACE_NO_CHILDREN && !(f->calls && f->calls->filter);
}

/* Returns whether process @tid, made by @event of thread @parent_tid, uses the memory of that. */
static bool shares_memory(pid_t parent_tid, pid_t tid, int event)
{
	/* Where the kernel does not say, only vfork() and its like do. */
	return event == PTRACE_EVENT_VFORK ||
	       syscall(SYS_kcmp, parent_tid, tid, KCMP_VM, 0, 0) == 0;
}

/* Gives thread @tid block @gs_base. */
static void give_block(pid_t tid, uint64_t gs_base)
{
	struct user_regs_struct regs;

	if (!fathom_tracee_get(tid, &regs))
		return;
	regs.gs_base = gs_base;
	(void)fathom_tracee_set(tid, &regs);
}

/* Takes the runtime out of @p, a process of one thread whose memory is its own. */
static void take_out(struct fathom_traced *p, pid_t tid)
{
	const uint64_t silent = p->program->process + offsetof(struct fathom_trace_process, silent);
	struct fathom_references references;
	struct fathom_maps maps;
	char path[64];
	int left;

	(void)snprintf(path, sizeof path, "/proc/%d/maps", (int)tid);
	if (!fathom_unload(p, true) || fathom_maps_read(path, &maps, NULL)) {
		give_block(tid, silent);
		return;
	}
	fathom_references_init(&references, p, &p->mapped, &maps);
	left = fathom_references_of(&references, tid);
	fathom_references_deinit(&references);
	/* It may have been made by a handler that interrupts the hook. */
	give_block(tid, left & FATHOM_REFERS_CODE ? silent : 0);
	if (!(left & FATHOM_REFERS_CODE))
		fathom_program_unmap(p, &tid, 1, &maps, left != 0);
	fathom_maps_deinit(&maps);
}

bool fathom_release_child(const struct fathom_follow_task *maker, pid_t tid, int event)
{
	const struct fathom_traced *parent = maker->process;
	struct fathom_traced child;

	if (!parent->program)
		return !ptrace(PTRACE_DETACH, tid, NULL, NULL);
	if (shares_memory(maker->tid, tid, event)) {
		give_block(tid, parent->program->process +
					offsetof(struct fathom_trace_process, silent));
		return !ptrace(PTRACE_DETACH, tid, NULL, NULL);
	}
	if (fathom_program_fork(parent, tid, parent->number, false, &child))
		return false;
	take_out(&child, tid);
	fathom_program_end(&child);
	fathom_tracee_deinit(&child.tracee);
	return !ptrace(PTRACE_DETACH, tid, NULL, NULL);
}
