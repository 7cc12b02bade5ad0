/* SPDX-License-Identifier: MIT */
/*
 * Names of errors and signals. The system's headers give the numbers, which processors differ in.
 */
#include <errno.h>
#include <signal.h>

#include "fathom/stack.h"
#include "safe/self/output.h"

#define NAME(constant) [constant] = #constant

static const char *const errors[] = {
	NAME(EPERM),
	NAME(ENOENT),
	NAME(ESRCH),
	NAME(EINTR),
	NAME(EIO),
	NAME(ENXIO),
	NAME(E2BIG),
	NAME(ENOEXEC),
	NAME(EBADF),
	NAME(ECHILD),
	NAME(EAGAIN),
	NAME(ENOMEM),
	NAME(EACCES),
	NAME(EFAULT),
	NAME(ENOTBLK),
	NAME(EBUSY),
	NAME(EEXIST),
	NAME(EXDEV),
	NAME(ENODEV),
	NAME(ENOTDIR),
	NAME(EISDIR),
	NAME(EINVAL),
	NAME(ENFILE),
	NAME(EMFILE),
	NAME(ENOTTY),
	NAME(ETXTBSY),
	NAME(EFBIG),
	NAME(ENOSPC),
	NAME(ESPIPE),
	NAME(EROFS),
	NAME(EMLINK),
	NAME(EPIPE),
	NAME(EDOM),
	NAME(ERANGE),
	NAME(EDEADLK),
	NAME(ENAMETOOLONG),
	NAME(ENOLCK),
	NAME(ENOSYS),
	NAME(ENOTEMPTY),
	NAME(ELOOP),
	NAME(ENOMSG),
	NAME(EIDRM),
	NAME(ECHRNG),
	NAME(EL2NSYNC),
	NAME(EL3HLT),
	NAME(EL3RST),
	NAME(ELNRNG),
	NAME(EUNATCH),
	NAME(ENOCSI),
	NAME(EL2HLT),
	NAME(EBADE),
	NAME(EBADR),
	NAME(EXFULL),
	NAME(ENOANO),
	NAME(EBADRQC),
	NAME(EBADSLT),
	NAME(EBFONT),
	NAME(ENOSTR),
	NAME(ENODATA),
	NAME(ETIME),
	NAME(ENOSR),
	NAME(ENONET),
	NAME(ENOPKG),
	NAME(EREMOTE),
	NAME(ENOLINK),
	NAME(EADV),
	NAME(ESRMNT),
	NAME(ECOMM),
	NAME(EPROTO),
	NAME(EMULTIHOP),
	NAME(EDOTDOT),
	NAME(EBADMSG),
	NAME(EOVERFLOW),
	NAME(ENOTUNIQ),
	NAME(EBADFD),
	NAME(EREMCHG),
	NAME(ELIBACC),
	NAME(ELIBBAD),
	NAME(ELIBSCN),
	NAME(ELIBMAX),
	NAME(ELIBEXEC),
	NAME(EILSEQ),
	NAME(ERESTART),
	NAME(ESTRPIPE),
	NAME(EUSERS),
	NAME(ENOTSOCK),
	NAME(EDESTADDRREQ),
	NAME(EMSGSIZE),
	NAME(EPROTOTYPE),
	NAME(ENOPROTOOPT),
	NAME(EPROTONOSUPPORT),
	NAME(ESOCKTNOSUPPORT),
	NAME(EOPNOTSUPP),
	NAME(EPFNOSUPPORT),
	NAME(EAFNOSUPPORT),
	NAME(EADDRINUSE),
	NAME(EADDRNOTAVAIL),
	NAME(ENETDOWN),
	NAME(ENETUNREACH),
	NAME(ENETRESET),
	NAME(ECONNABORTED),
	NAME(ECONNRESET),
	NAME(ENOBUFS),
	NAME(EISCONN),
	NAME(ENOTCONN),
	NAME(ESHUTDOWN),
	NAME(ETOOMANYREFS),
	NAME(ETIMEDOUT),
	NAME(ECONNREFUSED),
	NAME(EHOSTDOWN),
	NAME(EHOSTUNREACH),
	NAME(EALREADY),
	NAME(EINPROGRESS),
	NAME(ESTALE),
	NAME(EUCLEAN),
	NAME(ENOTNAM),
	NAME(ENAVAIL),
	NAME(EISNAM),
	NAME(EREMOTEIO),
	NAME(EDQUOT),
	NAME(ENOMEDIUM),
	NAME(EMEDIUMTYPE),
	NAME(ECANCELED),
	NAME(ENOKEY),
	NAME(EKEYEXPIRED),
	NAME(EKEYREVOKED),
	NAME(EKEYREJECTED),
	NAME(EOWNERDEAD),
	NAME(ENOTRECOVERABLE),
	NAME(ERFKILL),
	NAME(EHWPOISON),
};

const char *fathom_errno_name(int number)
{
	return number > 0 && (size_t)number < sizeof errors / sizeof *errors ? errors[number]
									     : NULL;
}

const char *fathom_signal_name(int32_t number)
{
	static const char *const names[] = {
		NAME(SIGHUP),    NAME(SIGINT),  NAME(SIGQUIT),  NAME(SIGILL),  NAME(SIGTRAP),
		NAME(SIGABRT),   NAME(SIGBUS),  NAME(SIGFPE),   NAME(SIGKILL), NAME(SIGUSR1),
		NAME(SIGSEGV),   NAME(SIGUSR2), NAME(SIGPIPE),  NAME(SIGALRM), NAME(SIGTERM),
		NAME(SIGSTKFLT), NAME(SIGCHLD), NAME(SIGCONT),  NAME(SIGSTOP), NAME(SIGTSTP),
		NAME(SIGTTIN),   NAME(SIGTTOU), NAME(SIGURG),   NAME(SIGXCPU), NAME(SIGXFSZ),
		NAME(SIGVTALRM), NAME(SIGPROF), NAME(SIGWINCH), NAME(SIGIO),   NAME(SIGPWR),
		NAME(SIGSYS),
	};

	return number > 0 && (size_t)number < sizeof names / sizeof *names ? names[number] : NULL;
}

/* The names of the reasons of one signal, from code 1 on. */
struct codes {
	int32_t signal;
	uint32_t n;
	const char *const *names;
};

/* Numbers: Linux, include/uapi/asm-generic/siginfo.h. */
static const char *const ill_codes[] = { "ILL_ILLOPC", "ILL_ILLOPN", "ILL_ILLADR", "ILL_ILLTRP",
					 "ILL_PRVOPC", "ILL_PRVREG", "ILL_COPROC", "ILL_BADSTK" };
static const char *const fpe_codes[] = { "FPE_INTDIV", "FPE_INTOVF", "FPE_FLTDIV", "FPE_FLTOVF",
					 "FPE_FLTUND", "FPE_FLTRES", "FPE_FLTINV", "FPE_FLTSUB" };
static const char *const segv_codes[] = { "SEGV_MAPERR",  "SEGV_ACCERR",  "SEGV_BNDERR",
					  "SEGV_PKUERR",  "SEGV_ACCADI",  "SEGV_ADIDERR",
					  "SEGV_ADIPERR", "SEGV_MTEAERR", "SEGV_MTESERR",
					  "SEGV_CPERR" };
static const char *const bus_codes[] = { "BUS_ADRALN", "BUS_ADRERR", "BUS_OBJERR", "BUS_MCEERR_AR",
					 "BUS_MCEERR_AO" };
static const char *const trap_codes[] = { "TRAP_BRKPT",  "TRAP_TRACE", "TRAP_BRANCH",
					  "TRAP_HWBKPT", "TRAP_UNK",   "TRAP_PERF" };
static const char *const sys_codes[] = { "SYS_SECCOMP", "SYS_USER_DISPATCH" };

#define CODES(signal, names) { signal, sizeof(names) / sizeof *(names), names }

/* Returns the name of a code that any signal may have. */
static const char *general_code(int32_t code)
{
	/* From SI_TKILL, -6, to SI_USER, 0. */
	static const char *const senders[] = { "SI_TKILL", "SI_SIGIO", "SI_ASYNCIO", "SI_MESGQ",
					       "SI_TIMER", "SI_QUEUE", "SI_USER" };

	if (code >= -6 && code <= 0)
		return senders[code + 6];
	return code == 0x80 ? "SI_KERNEL" : NULL;
}

const char *fathom_signal_code_name(int32_t signal, int32_t code)
{
	static const struct codes codes[] = {
		CODES(SIGILL, ill_codes), CODES(SIGFPE, fpe_codes),   CODES(SIGSEGV, segv_codes),
		CODES(SIGBUS, bus_codes), CODES(SIGTRAP, trap_codes), CODES(SIGSYS, sys_codes)
	};

	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
		if (codes[i].signal == signal && code > 0 && (uint32_t)code <= codes[i].n)
			return codes[i].names[code - 1];
	return general_code(code);
}
