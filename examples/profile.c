/* SPDX-License-Identifier: MIT */
/*
 * profile: samples itself by SIGPROF and prints collapsed stacks, for flame graphs.
 *	cc -g -O2 -o profile profile.c $(pkg-config --cflags --libs fathom)
 */
#include <fathom/fathom.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/time.h>

#define MAX_SAMPLES 1000
#define MAX_FRAMES  64

static struct fathom_self *self;
static uint64_t pcs[MAX_SAMPLES][MAX_FRAMES];
static uint8_t kinds[MAX_SAMPLES][MAX_FRAMES];
static size_t n_frames[MAX_SAMPLES];
static atomic_size_t n_samples;

static void on_profile(int number, siginfo_t *info, void *context)
{
	const struct fathom_unwind_options options = { .size = sizeof options, .context = context };
	struct fathom_unwind_result result = { .size = sizeof result };
	const size_t i = atomic_fetch_add(&n_samples, 1);

	(void)number, (void)info;
	if (i < MAX_SAMPLES &&
	    !fathom_unwind(self, &options, pcs[i], kinds[i], MAX_FRAMES, &result))
		n_frames[i] = result.n;
}

/* Prints the outermost function first. */
static void print_sample(size_t i)
{
	for (size_t k = n_frames[i]; k--;) {
		const struct fathom_pc pc = { .address = pcs[i][k], .kind = kinds[i][k] };
		char buffer[FATHOM_SELF_BUFFER];
		const struct fathom_answer *a =
			fathom_self_lookup(self, pc, FATHOM_NAMES_ONLY, buffer, sizeof buffer);

		printf("%s%s", a->symbol ? a->symbol : "??", k ? ";" : " 1\n");
	}
}

static __attribute__((noinline)) unsigned work(unsigned n)
{
	volatile unsigned sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += i * i;
	return sum;
}

int main(void)
{
	const struct fathom_self_options options = { .size = sizeof options,
						     .flags = FATHOM_SELF_UNWIND };
	const struct itimerval timer = { { 0, 1000 }, { 0, 1000 } };
	const struct itimerval none = { 0 };
	struct sigaction action = { .sa_sigaction = on_profile,
				    .sa_flags = SA_SIGINFO | SA_RESTART };
	struct fathom *session;

	if (fathom_create(NULL, &session, NULL) ||
	    fathom_self_prepare(session, &options, &self, NULL))
		return 2;
	(void)sigaction(SIGPROF, &action, NULL);
	(void)setitimer(ITIMER_PROF, &timer, NULL);
	while (n_samples < 20)
		(void)work(100000);
	(void)setitimer(ITIMER_PROF, &none, NULL);
	for (size_t i = 0; i < n_samples && i < MAX_SAMPLES; i++)
		print_sample(i);
	return 0;
}
