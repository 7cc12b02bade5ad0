/* SPDX-License-Identifier: MIT */
#include "host/trace/program_syscalls.h"

#include <errno.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/file/process_status.h"

bool fathom_program_is_error(long result)
{
	return result < 0 && result >= -4095;
}

fathom_err fathom_program_fail_syscall(struct fathom_errinfo *reterr, const char *what, long result)
{
	const fathom_err err = fathom_fail(reterr, FATHOM_E_OS, "", 0, what);

	if (reterr)
		reterr->os_errno = (int)-result;
	return err;
}

/* Returns how threads of @p are traced while the runtime is put into it. */
static long options_of(const struct fathom_traced *p)
{
	return (p->options ? p->options : FATHOM_TRACED_OPTIONS) |
	       (p->is_attached ? 0 : PTRACE_O_EXITKILL);
}

fathom_err fathom_program_suspend_filters(const struct fathom_traced *p, pid_t tid,
					  bool *ret_is_suspended, struct fathom_errinfo *reterr)
{
	const long options = options_of(p) | PTRACE_O_SUSPEND_SECCOMP;
	/* Ours stops at them, and lets them be made. */
	const int ours = options & PTRACE_O_TRACESECCOMP ? 1 : 0;
	const int n = fathom_status_filters(tid);

	*ret_is_suspended = false;
	if (n != INT_MAX && n <= fathom_status_filters(gettid()) + ours)
		return FATHOM_OK;
	*ret_is_suspended = !ptrace(PTRACE_SETOPTIONS, tid, NULL, options);
	if (*ret_is_suspended)
		return FATHOM_OK;
	return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
			   "its system calls are filtered (seccomp), which only root can suspend");
}

void fathom_program_resume_filters(const struct fathom_traced *p, pid_t tid, bool is_suspended)
{
	if (is_suspended)
		(void)ptrace(PTRACE_SETOPTIONS, tid, NULL, options_of(p));
}

long fathom_program_map(const struct fathom_tracee *t, pid_t tid, uint64_t at, uint64_t size,
			int protection)
{
	const uint64_t flags = MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED_NOREPLACE : 0);
	const long result = fathom_tracee_call(
		t, tid, SYS_mmap,
		(uint64_t[6]){ at, size, (uint64_t)protection, flags, UINT64_MAX });

	/* Kernels before 4.17 take the address for a hint. */
	if (at && !fathom_program_is_error(result) && (uint64_t)result != at) {
		(void)fathom_tracee_call(t, tid, SYS_munmap,
					 (uint64_t[6]){ (uint64_t)result, size });
		return -EEXIST;
	}
	return result;
}
