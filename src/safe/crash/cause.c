/* SPDX-License-Identifier: MIT */
/* Codes: include/uapi/asm-generic/siginfo.h of Linux; sigaction(2). */
#define _GNU_SOURCE
#include "safe/crash/cause.h"

#include <stddef.h>

struct cause {
	int number; /* of the signal; 0: any */
	int code;
	const char *name;
};

#define CAUSE(number, code) { number, code, #code }
/* Names that headers of old C libraries lack. */
#define NEWER(number, code, name) { number, code, name }

static const struct cause causes[] = {
	CAUSE(SIGSEGV, SEGV_MAPERR),
	CAUSE(SIGSEGV, SEGV_ACCERR),
	NEWER(SIGSEGV, 3, "SEGV_BNDERR"),
	NEWER(SIGSEGV, 4, "SEGV_PKUERR"),
	NEWER(SIGSEGV, 8, "SEGV_MTEAERR"),
	NEWER(SIGSEGV, 9, "SEGV_MTESERR"),
	NEWER(SIGSEGV, 10, "SEGV_CPERR"),
	CAUSE(SIGBUS, BUS_ADRALN),
	CAUSE(SIGBUS, BUS_ADRERR),
	CAUSE(SIGBUS, BUS_OBJERR),
	NEWER(SIGBUS, 4, "BUS_MCEERR_AR"),
	NEWER(SIGBUS, 5, "BUS_MCEERR_AO"),
	CAUSE(SIGILL, ILL_ILLOPC),
	CAUSE(SIGILL, ILL_ILLOPN),
	CAUSE(SIGILL, ILL_ILLADR),
	CAUSE(SIGILL, ILL_ILLTRP),
	CAUSE(SIGILL, ILL_PRVOPC),
	CAUSE(SIGILL, ILL_PRVREG),
	CAUSE(SIGILL, ILL_COPROC),
	CAUSE(SIGILL, ILL_BADSTK),
	CAUSE(SIGFPE, FPE_INTDIV),
	CAUSE(SIGFPE, FPE_INTOVF),
	CAUSE(SIGFPE, FPE_FLTDIV),
	CAUSE(SIGFPE, FPE_FLTOVF),
	CAUSE(SIGFPE, FPE_FLTUND),
	CAUSE(SIGFPE, FPE_FLTRES),
	CAUSE(SIGFPE, FPE_FLTINV),
	CAUSE(SIGFPE, FPE_FLTSUB),
	CAUSE(SIGTRAP, TRAP_BRKPT),
	CAUSE(SIGTRAP, TRAP_TRACE),
	NEWER(SIGTRAP, 3, "TRAP_BRANCH"),
	NEWER(SIGTRAP, 4, "TRAP_HWBKPT"),
	NEWER(SIGTRAP, 6, "TRAP_PERF"),
	NEWER(SIGSYS, 1, "SYS_SECCOMP"),
	CAUSE(0, SI_USER),
	CAUSE(0, SI_KERNEL),
	CAUSE(0, SI_QUEUE),
	CAUSE(0, SI_TIMER),
	CAUSE(0, SI_TKILL),
};

const char *fathom_cause_name(int number, int code)
{
	for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
		if (causes[i].code == code && (!causes[i].number || causes[i].number == number))
			return causes[i].name;
	return NULL;
}

bool fathom_cause_is_fault(int number, int code)
{
	/* SI_KERNEL: on x86 an access that the processor gives no address of. */
	return code > 0 && code != SI_KERNEL &&
	       (number == SIGSEGV || number == SIGBUS || number == SIGILL || number == SIGFPE ||
		number == SIGTRAP || number == SIGSYS);
}

bool fathom_cause_is_sent(int code)
{
	return code == SI_USER || code == SI_QUEUE || code == SI_TKILL;
}
