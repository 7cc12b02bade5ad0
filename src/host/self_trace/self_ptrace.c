/* SPDX-License-Identifier: MIT */
/* A process that traces itself: the reader attaches to it, as to any other. */
#include <asm/prctl.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "host/self_trace/capture_method.h"
#include "host/trace/traced_run.h"
#include "safe/base/sys.h"
#include "trace/recorder.h"

/* AT_HWCAP2: programs may read the gs base (arch/x86/include/uapi/asm/hwcap2.h). */
#define HWCAP2_FSGSBASE 2

/* Shared by this process and its reader. */
static struct {
	struct fathom_self_trace_link insider;
	struct fathom_trampoline_cfi rows; /* of the reader's code */
} fathom_trace_self_inside;

/* Where the object that this code is in begins and ends: the linker's symbols. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

/* Finds where this library is, unless it is a part of the program. */
static void find_library(struct fathom_self_trace_link *insider)
{
	const ElfW(Ehdr) *header = (const void *)__ehdr_start;
	const uint64_t low = (uintptr_t)__ehdr_start;

	if (getauxval(AT_PHDR) == low + header->e_phoff)
		return;
	insider->low = low;
	insider->high = (uintptr_t)_end;
}

static fathom_err prepare(const struct fathom_trace_options *options, struct fathom_errinfo *reterr)
{
	(void)options;
	(void)reterr;
	fathom_trace_self_inside.insider.told = fathom_injected_code_create();
	find_library(&fathom_trace_self_inside.insider);
	return FATHOM_OK;
}

static fathom_err begin_attached(pid_t reader, struct fathom_errinfo *reterr)
{
	(void)reterr;
	/* Yama wants to be told; without it, this fails. */
	if (reader)
		(void)prctl(PR_SET_PTRACER, reader, 0, 0, 0);
	return FATHOM_OK;
}

/* Returns what is at the gs base of the calling thread; NULL: it has none, or it is unknown. */
static struct fathom_trace_thread *gs_base(void)
{
	struct fathom_trace_thread *t = NULL;

	if (getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE)
		__asm__ volatile("rdgsbase %0" : "=r"(t));
	else if (fathom_sys(SYS_arch_prctl, ARCH_GET_GS, (long)&t, 0, 0, 0, 0))
		return NULL;
	return t;
}

static int change_thread(int change)
{
	struct fathom_trace_thread *t = gs_base();

	/* Where there is no such block, the program uses gs itself, and is not traced. */
	if (!t || t->self != t)
		return 0;
	return fathom_trace_change(t, change);
}

static void begun(void)
{
	if (!fathom_trace_self_inside.insider.told)
		return;
	/* Calls of the unwinders are not the program's. */
	(void)change_thread(-1);
	fathom_injected_code_publish(fathom_trace_self_inside.insider.told,
				     &fathom_trace_self_inside.rows);
	(void)change_thread(1);
}

static fathom_err read(struct fathom *session, pid_t pid,
		       const struct fathom_trace_options *options,
		       struct fathom_self_trace_talk *talk, struct fathom_errinfo *reterr)
{
	struct fathom_trace_result result = { .size = sizeof result };

	/* It holds the process at its end (FATHOM_TRACE_HOLD_ENDS). */
	fathom_trace_self_inside.insider.busy = &talk->busy;
	return fathom_trace_attach_telling(session, pid, options, &fathom_trace_self_inside.insider,
					   &result, reterr);
}

static void forget(void)
{
	fathom_trampoline_cfi_withdraw(&fathom_trace_self_inside.rows);
	fathom_injected_code_destroy(fathom_trace_self_inside.insider.told);
	fathom_trace_self_inside.insider.told = NULL;
}

static fathom_err end(struct fathom_errinfo *reterr)
{
	(void)reterr;
	return FATHOM_OK;
}

const struct fathom_capture_method fathom_capture_by_ptrace = { .prepare = prepare,
								.begin = begin_attached,
								.begun = begun,
								.read = read,
								.end = end,
								.forget = forget,
								.change = change_thread };
