/* SPDX-License-Identifier: MIT */
/*
 * crash: says in its own signal handler where it has crashed.
 *	cc -g -O2 -o crash crash.c $(pkg-config --cflags --libs fathom)
 */
#include <fathom/fathom.h>
#include <signal.h>
#include <unistd.h>

static struct fathom_self *self;

static void on_signal(int number, siginfo_t *info, void *context)
{
	const struct fathom_pc pc = { .address = (uintptr_t)info->si_addr };
	char buffer[FATHOM_SELF_BUFFER], text[4096];
	const struct fathom_answer *a = fathom_self_lookup(self, pc, 0, buffer, sizeof buffer);
	size_t n = fathom_self_format(self, text, sizeof text, "%G at %t\n", number, info->si_addr);

	(void)context;
	for (const struct fathom_frame *f = a->frame; f && n < sizeof text; f = f->outer)
		n += fathom_self_format(self, text + n, sizeof text - n, "  %s %s:%u\n",
					f->function, f->file, f->line);
	_exit(write(STDERR_FILENO, text, n < sizeof text ? n : sizeof text) > 0 ? 1 : 2);
}

int main(void)
{
	const struct fathom_self_options options = { .size = sizeof options,
						     .flags = FATHOM_SELF_FULL };
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	struct fathom *session;

	if (fathom_create(NULL, &session, NULL) ||
	    fathom_self_prepare(session, &options, &self, NULL))
		return 2;
	sigaction(SIGILL, &action, NULL);
	sigaction(SIGTRAP, &action, NULL);
	__builtin_trap();
}
