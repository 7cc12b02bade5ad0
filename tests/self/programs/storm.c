/* SPDX-License-Identifier: MIT */
/*
 * storm PLUGIN SECONDS: a timer interrupts malloc, dlopen and printf; the handler asks for names and
 * formats. A malloc inside a handler ends the program, as does a changed errno; how much stack is used
 * is measured on a stack painted before.
 */
#define _GNU_SOURCE
#include "check.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static __thread volatile bool in_handler;
static volatile uint64_t n_asked;
static volatile uint64_t n_named;
static volatile size_t deepest;
static __thread volatile unsigned n_handlers;
static volatile uintptr_t plugin_code;

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void __libc_free(void *p);

static void check_here(void)
{
	static const char text[] = "wrong: memory is allocated in a handler\n";

	if (!in_handler)
		return;
	(void)!write(1, text, sizeof text - 1);
	_exit(1);
}

void *malloc(size_t size)
{
	check_here();
	return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	check_here();
	return __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	check_here();
	return __libc_realloc(p, size);
}

void free(void *p)
{
	check_here();
	__libc_free(p);
}

#define PAINTED 24576
#define PAINT	0xa5

/* Fills what the next call's frames will use. */
static __attribute__((noinline)) void paint(void)
{
	volatile uint8_t area[PAINTED];

	for (size_t i = 0; i < sizeof area; i++)
		area[i] = PAINT;
}

/* How deep into that somebody has written since. */
static __attribute__((noinline)) size_t scan(void)
{
	volatile uint8_t area[PAINTED];
	size_t i = 0;

	while (i < sizeof area && area[i] == PAINT)
		i++;
	return sizeof area - i;
}

/* All that handlers may call, with what makes each take most stack. */
static __attribute__((noinline)) void ask(uintptr_t pc)
{
	static struct fathom_self_answer a;
	static char text[600];

	n_named += fathom_self_lookup(self, pc, 0, &a);
	(void)fathom_self_lookup(self, plugin_code, 0, &a);
	(void)fathom_self_lookup(self, n_asked * 0x1000 + 0x7f0000000000, 0, &a);
	(void)fathom_self_format(self, text, sizeof text, "%lt %30t %#s %s %'ld %.*hhs% m %G%n",
				 (void *)pc, (void *)plugin_code, (char *)pc, (char *)0x31337,
				 123456789L, 16, (char *)pc, ENOENT, SIGPROF);
	n_asked++;
}

static void on_timer(int number, siginfo_t *info, void *context)
{
	const ucontext_t *c = context;
	const int kept = errno;
	const bool is_nested = in_handler;
	const unsigned before = ++n_handlers;
	size_t depth;

	(void)number;
	(void)info;
	in_handler = true;
	errno = 4711;
	paint();
	ask((uintptr_t)c->uc_mcontext.gregs[REG_RIP]);
	depth = scan();
	/* The other timer's handler may have run on the same stack. */
	if (n_handlers == before)
		deepest = depth > deepest ? depth : deepest;
	if (errno != 4711) {
		static const char text[] = "wrong: errno was changed\n";

		(void)!write(1, text, sizeof text - 1);
		_exit(1);
	}
	errno = kept;
	in_handler = is_nested;
}

static volatile bool stop;

static void *churn(void *unused)
{
	while (!stop) {
		/* Volatile: compilers leave out what is freed at once. */
		void *volatile p = malloc(100 + (size_t)rand() % 10000);

		free(p);
	}
	return unused;
}

int main(int argc, char **argv)
{
	const struct sigaction action = { .sa_sigaction = on_timer,
					  .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK };
	const struct itimerval often = { { 0, 100 }, { 0, 100 } };
	const struct itimerval never = { { 0, 0 }, { 0, 0 } };
	const time_t until = time(NULL) + (argc > 2 ? atoi(argv[2]) : 2);
	static char stack[256 << 10];
	const stack_t alternate = { .ss_sp = stack, .ss_size = sizeof stack };
	FILE *null = fopen("/dev/null", "w");
	pthread_t thread;
	void *volatile kept;

	start(FATHOM_SELF_FULL);
	(void)sigaltstack(&alternate, NULL);
	(void)sigaction(SIGPROF, &action, NULL);
	(void)sigaction(SIGALRM, &action, NULL);
	(void)setitimer(ITIMER_PROF, &often, NULL);
	(void)setitimer(ITIMER_REAL, &often, NULL);
	(void)pthread_create(&thread, NULL, churn, NULL);
	while (time(NULL) < until) {
		void *handle = dlopen(argv[1], RTLD_NOW);

		plugin_code = handle ? (uintptr_t)dlsym(handle, "exported_by_one") : 0;
		for (int i = 0; i < 20; i++)
			fprintf(null, "%d %s %f %p\n", i, "some text", i / 3.0, (void *)&i);
		if (rand() % 4 == 0)
			(void)fathom_self_refresh(self, NULL);
		if (handle)
			dlclose(handle);
		kept = malloc((size_t)rand() % 100000);
		free(kept);
	}
	(void)setitimer(ITIMER_PROF, &never, NULL);
	(void)setitimer(ITIMER_REAL, &never, NULL);
	stop = true;
	(void)pthread_join(thread, NULL);
	printf("asked %llu named %llu deepest %zu\n", (unsigned long long)n_asked,
	       (unsigned long long)n_named, deepest);
	expect(n_asked > 100);
	expect(n_named > n_asked / 2);
	expect(deepest > 500 && deepest < 8192);
	return end();
}
