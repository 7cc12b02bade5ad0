/* SPDX-License-Identifier: MIT */
/*
 * For a program built with -finstrument-functions: writes the address of each function that is entered to the file that
 * ENTERED names, as 8 bytes, after that of main(). For one thread.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define UNSEEN __attribute__((no_instrument_function))

int main(int argc, char **argv);

static uint64_t entered[65536];
static size_t n_entered;
static int log_file = -1;

void UNSEEN __cyg_profile_func_enter(void *function, void *from);
void UNSEEN __cyg_profile_func_exit(void *function, void *from);

static void UNSEEN flush(void)
{
	if (write(log_file, entered, n_entered * sizeof *entered) != (ssize_t)(n_entered * sizeof *entered))
		abort();
	n_entered = 0;
}

void __cyg_profile_func_enter(void *function, void *from)
{
	(void)from;
	if (log_file < 0) {
		log_file = open(getenv("ENTERED"), O_WRONLY | O_CREAT | O_TRUNC, 0644);
		entered[n_entered++] = (uintptr_t)main;
		atexit(flush);
	}
	if (n_entered == sizeof entered / sizeof *entered)
		flush();
	entered[n_entered++] = (uintptr_t)function;
}

void __cyg_profile_func_exit(void *function, void *from)
{
	(void)function;
	(void)from;
}
