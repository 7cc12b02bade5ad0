/* SPDX-License-Identifier: MIT */
/*
 * SIGBUS: truncating a memory-mapped file raises it in the thread that reads the file. For a file
 * of the session, fathom_handle_sigbus() lets the reader continue, and its call returns
 * FATHOM_E_CHANGED with the file's name. Any other SIGBUS, for example from a truncated library,
 * ends the command here.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#include "cli/common.h"

/* Total wait for file systems whose server is gone: the command ends within two seconds. */
#define FILE_TIMEOUT_MS 1500

/* The session whose files are mapped, for the handler, which only gets the address. */
static _Atomic(struct fathom *) reading;

static void on_bus_error(int number, siginfo_t *info, void *context)
{
	static const char message[] =
		"fathom: a file was truncated while it was being read (run again)\n";
	struct fathom *session = atomic_load(&reading);

	(void)number;
	(void)context;
	if (session && fathom_handle_sigbus(session, info->si_addr))
		return;
	(void)!write(STDERR_FILENO, message, sizeof message - 1);
	_exit(EXIT_USAGE);
}

void fault_begin(void)
{
	struct sigaction action = { .sa_sigaction = on_bus_error };

	action.sa_flags = (int)(SA_SIGINFO | SA_RESTART);
	(void)sigaction(SIGBUS, &action, NULL);
}

fathom_err fault_create(const struct fathom_options *options, struct fathom **ret_session,
			struct fathom_errinfo *reterr)
{
	struct fathom_options all = *options;
	fathom_err err;

	if (!all.file_timeout_ms)
		all.file_timeout_ms = FILE_TIMEOUT_MS;
	err = fathom_create(&all, ret_session, reterr);

	if (!err)
		atomic_store(&reading, *ret_session);
	return err;
}

void fault_destroy(struct fathom *session)
{
	atomic_store(&reading, NULL);
	fathom_destroy(session);
}
