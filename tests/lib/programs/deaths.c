/* SPDX-License-Identifier: MIT */
/*
 * Dies as its first argument says. With a second one, handlers of the signals wait for ever
 * instead; with "siginfo" they have SA_SIGINFO, and tell "signal NUMBER CODE ADDRESS" first. It
 * tells "fault ADDRESS" before a fault whose address it knows, and "waits" from a handler; libc's
 * messages go to stderr.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile int zero;
static sigjmp_buf back;
static pthread_barrier_t both;

static void tell(const volatile void *address)
{
	printf("fault %p\n", (const void *)address);
	fflush(stdout);
}

static void wait_for_ever(int number)
{
	(void)number;
	if (write(1, "waits\n", 6))
		for (;;)
			pause();
}

static void tell_and_wait(int number, siginfo_t *info, void *context)
{
	(void)context;
	printf("signal %d %d %p\n", number, info->si_code, info->si_addr);
	fflush(stdout);
	wait_for_ever(number);
}

static void jump_back(int number)
{
	(void)number;
	siglongjmp(back, 1);
}

static void way_assert(void)
{
	assert(zero == 1 && "so it is");
}

static void way_abort(void)
{
	abort();
}

/* A text that stays, though its abort() did not end the program. */
static void leave_text(void)
{
	signal(SIGABRT, jump_back);
	if (!sigsetjmp(back, 1))
		assert(zero == 2);
	signal(SIGABRT, SIG_DFL);
}

static void way_stale_abort(void)
{
	leave_text();
	abort();
}

static void way_null_read(void);

static void way_stale_fault(void)
{
	leave_text();
	way_null_read();
}

static void way_double_free(void)
{
	char *volatile p = malloc(40);

	free(p);
	free(p);
}

static void way_bad_free(void)
{
	char *volatile p = malloc(100);
	char *volatile inside = p + 16;

	free(inside);
}

static void way_corrupt_top(void)
{
	volatile size_t *volatile p = malloc(24);

	p[3] = 0x123456789;
	p = malloc(100000);
	*p = 1;
}

static void way_smash(void)
{
	char text[16];
	volatile char *p = text;

	for (int i = 0; i < 64 + zero; i++)
		p[i] = 'x';
}

static void way_fortify(void)
{
	char text[8];
	static char much[64] = "more than eight";

	memcpy(text, much, 32 + (size_t)zero);
	puts(text);
}

struct record {
	long a, b, c, d;
};

static void way_null_read(void)
{
	struct record *volatile r = NULL;

	tell(&r->d);
	zero = (int)r->d;
}

static void way_null_write(void)
{
	volatile struct record *volatile r = NULL;

	tell(&r->d);
	r->d = zero;
}

/* Reads and writes. */
static void way_null_add(void)
{
	struct record *volatile r = NULL;

	tell(&r->d);
#ifdef __x86_64__
	__asm__ volatile("addl $1, (%0)" : : "r"(&r->d) : "memory");
#endif
}

static void way_null_call(void)
{
	void (*volatile f)(void) = NULL;

	tell(NULL);
	f();
}

#ifdef __x86_64__
/* Compilers may not divide by what they know to be 0. */
static void way_divide(void)
{
	__asm__ volatile("divl %0" : : "r"(zero), "a"(1), "d"(0));
}

static void way_illegal(void)
{
	__asm__ volatile("ud2");
}
#endif

/* A signal that no instruction has raised. */
static void way_sent(void)
{
	raise(SIGSEGV);
}

/* Makes the handler of @number run on the alternate stack. */
static void install(int number, void (*handler)(int), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK | flags };

	sigaction(number, &action, NULL);
}

/* Leaves the siginfo_t of a fault where that of the next handler would be, which has none. */
static void way_stale_siginfo(void)
{
	install(SIGSEGV, jump_back, SA_SIGINFO);
	if (!sigsetjmp(back, 1))
		way_null_read();
	install(SIGUSR1, wait_for_ever, 0);
	raise(SIGUSR1);
}

static void way_unmapped(void)
{
	volatile char *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap((void *)p, 4096);
	tell(p + 5);
	zero = p[5];
}

static void way_no_access(void)
{
	volatile char *p = mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	tell(p + 4096);
	zero = p[4096];
}

static void way_constant(void)
{
	static const char text[4096] = "constant";
	volatile char *p = (volatile char *)text;

	tell(p);
	*p = 'C';
}

static void way_data_call(void)
{
	static char data[64];
	void (*volatile f)(void) = (void (*)(void))(uintptr_t)data;

	tell(data);
	f();
}

static void way_cut_file(void)
{
	const int fd = open("cut", O_RDWR | O_CREAT | O_TRUNC, 0600);
	volatile char *p;

	if (ftruncate(fd, 3 * 4096))
		return;
	p = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	p[8192] = 1;
	if (ftruncate(fd, 4096))
		return;
	tell(p + 8192 + 7);
	zero = p[8192 + 7];
}

#ifdef __x86_64__
static void way_not_canonical(void)
{
	volatile char *p = (volatile char *)0x1234567812345678;

	zero = *p;
}

/* An address that exists, but not for this instruction. */
static void way_misaligned(void)
{
	static char room[64] __attribute__((aligned(16)));

	__asm__ volatile("movaps (%0), %%xmm0" : : "r"(room + 1) : "xmm0", "memory");
}
#endif

static int recurse(int n)
{
	volatile char room[1000];

	room[n % 1000] = (char)n;
	return recurse(n + 1) + room[zero];
}

static void way_overflow(void)
{
	recurse(0);
}

static void *in_thread(void *way)
{
	((void (*)(void))(uintptr_t)way)();
	return NULL;
}

static void run_thread(void (*way)(void))
{
	pthread_t t;

	pthread_create(&t, NULL, in_thread, (void *)(uintptr_t)way);
	pthread_join(t, NULL);
}

static void way_thread_overflow(void)
{
	run_thread(way_overflow);
}

static void way_thread_assert(void)
{
	run_thread(way_assert);
}

#ifdef SYS_pause
#define PAUSE SYS_pause
#else
#define PAUSE SYS_ppoll
#endif

static _Atomic long sleeper;

static void *sleep_on_stack(void *unused)
{
	char here;

	(void)unused;
	sleeper = syscall(SYS_gettid);
	printf("stack %p\n", (void *)&here);
	fflush(stdout);
	pthread_barrier_wait(&both);
	for (;;)
		pause();
}

/* Waits until the thread of sleep_on_stack() sleeps: then its stack pointer is known. */
static void wait_for_sleeper(void)
{
	char path[48];
	long number = -1;

	(void)snprintf(path, sizeof path, "/proc/self/task/%ld/syscall", sleeper);
	while (number != PAUSE) {
		FILE *file = fopen(path, "re");

		number = -1;
		if (file && fscanf(file, "%ld", &number) != 1)
			number = -1;
		if (file)
			fclose(file);
		usleep(1000);
	}
}

/* Writes to the guard of another thread's stack. */
static void way_other_guard(void)
{
	const size_t size = 256 << 10;
	pthread_attr_t attributes;
	volatile char *low;
	void *stack;
	size_t bytes;
	pthread_t t;

	pthread_barrier_init(&both, NULL, 2);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, size);
	pthread_create(&t, &attributes, sleep_on_stack, NULL);
	pthread_barrier_wait(&both);
	pthread_getattr_np(t, &attributes);
	pthread_attr_getstack(&attributes, &stack, &bytes);
	low = stack;
	wait_for_sleeper();
	tell(low - 8);
	low[-8] = 1;
}

static void *assert_later(void *unused)
{
	(void)unused;
	assert(zero == 3);
	return NULL;
}

/* Two threads abort, if a handler waits: libc has the text of one. */
static void way_both(void)
{
	pthread_t t;

	pthread_create(&t, NULL, assert_later, NULL);
	sleep(1);
	assert(zero == 4);
}

/* Tells where glibc has the pointer to its text, which it exports to debuggers only. */
static void way_told(void)
{
	printf("pointer %p\n", dlsym(RTLD_DEFAULT, "__abort_msg"));
	fflush(stdout);
	way_assert();
}

static const struct {
	const char *name;
	void (*run)(void);
} ways[] = {
	{ "assert", way_assert },
	{ "abort", way_abort },
	{ "stale-abort", way_stale_abort },
	{ "stale-fault", way_stale_fault },
	{ "double-free", way_double_free },
	{ "bad-free", way_bad_free },
	{ "corrupt-top", way_corrupt_top },
	{ "smash", way_smash },
	{ "fortify", way_fortify },
	{ "null-read", way_null_read },
	{ "null-write", way_null_write },
	{ "null-add", way_null_add },
	{ "null-call", way_null_call },
#ifdef __x86_64__
	{ "divide", way_divide },
	{ "illegal", way_illegal },
#endif
	{ "sent", way_sent },
	{ "stale-siginfo", way_stale_siginfo },
	{ "unmapped", way_unmapped },
	{ "no-access", way_no_access },
	{ "constant", way_constant },
	{ "data-call", way_data_call },
	{ "cut-file", way_cut_file },
#ifdef __x86_64__
	{ "not-canonical", way_not_canonical },
	{ "misaligned", way_misaligned },
#endif
	{ "overflow", way_overflow },
	{ "thread-overflow", way_thread_overflow },
	{ "thread-assert", way_thread_assert },
	{ "other-guard", way_other_guard },
	{ "both", way_both },
	{ "told", way_told },
};

/* Makes the signals of faults tell what they are, also if the stack is full. */
static void install_telling(void)
{
	static const int faults[] = { SIGBUS, SIGFPE, SIGILL, SIGSEGV };
	static char room[1 << 16];
	const stack_t stack = { .ss_sp = room, .ss_size = sizeof room };
	struct sigaction action = { .sa_sigaction = tell_and_wait,
				    .sa_flags = SA_SIGINFO | SA_ONSTACK };

	sigaltstack(&stack, NULL);
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
		sigaction(faults[i], &action, NULL);
}

int main(int argc, char **argv)
{
	if (argc > 2 && strcmp(argv[2], "siginfo") == 0) {
		install_telling();
	} else if (argc > 2) {
		signal(SIGABRT, wait_for_ever);
		signal(SIGSEGV, wait_for_ever);
	}
	for (size_t i = 0; argc > 1 && i < sizeof ways / sizeof *ways; i++)
		if (strcmp(ways[i].name, argv[1]) == 0)
			ways[i].run();
	return 0;
}
