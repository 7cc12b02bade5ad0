/* SPDX-License-Identifier: MIT */
/*
 * crasher WAY [INSTALL...]: crashes in one of the ways below. With "install" the program installs the
 * handler itself, "names" without lines, "fd=N" to a descriptor, "path=P" to a file; otherwise libfathom-crash.so
 * was preloaded, or nothing was. An allocation inside the handler ends the program with status 99.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#ifdef WITH_LIBRARY
#include <fathom/fathom.h>
#endif

#include "../../lib/allocator.h"

static volatile int crash_in_malloc;
static volatile int is_crashing; /* memory must not be allocated any more */

static void check_here(void)
{
	static const char text[] = "memory is allocated in the handler\n";

	if (is_crashing) {
		(void)!write(2, text, sizeof text - 1);
		_exit(99);
	}
	if (crash_in_malloc) {
		is_crashing = 1;
		*(volatile int *)16 = 1;
	}
}

#define NOINLINE __attribute__((noinline, noclone))

static volatile int sink;

#ifdef CRASH_BEFORE_MAIN
NOINLINE __attribute__((constructor)) static void before_main(void)
{
	is_crashing = 1;
	*(volatile int *)0x50 = 1;
	sink++;
}
#endif

/* Nothing stands behind a call of it that the compiler could do without. */
NOINLINE static void innermost(volatile int *p)
{
	is_crashing = 1;
	*p = 1;
	sink++;
}

NOINLINE static void middle(volatile int *p)
{
	innermost(p);
	sink++;
}

static inline __attribute__((always_inline)) void inlined(volatile int *p)
{
	middle(p);
	sink++;
}

NOINLINE static void outer(volatile int *p)
{
	inlined(p);
	sink++;
}

NOINLINE static void way_segv(void)
{
	outer((int *)0x1234560);
	sink++;
}

#ifdef __x86_64__
/* With a known value in each register. */
NOINLINE static void way_registers(void)
{
	is_crashing = 1;
	__asm__ volatile("movq %%rbp, %%xmm0\n"
			 "mov $0x1111111111111111, %%rax\n"
			 "mov $0x2222222222222222, %%rbx\n"
			 "mov $0x3333333333333333, %%rcx\n"
			 "mov $0x4444444444444444, %%rdx\n"
			 "mov $0x5555555555555555, %%rsi\n"
			 "mov $0x6666666666666666, %%rdi\n"
			 "mov $0x7777777777777777, %%rbp\n"
			 "mov $0x8888888888888888, %%r8\n"
			 "mov $0x9999999999999999, %%r9\n"
			 "mov $0xaaaaaaaaaaaaaaaa, %%r10\n"
			 "mov $0xbbbbbbbbbbbbbbbb, %%r11\n"
			 "mov $0xcccccccccccccccc, %%r12\n"
			 "mov $0xdddddddddddddddd, %%r13\n"
			 "mov $0xeeeeeeeeeeeeeeee, %%r14\n"
			 "mov $0x1212121212121212, %%r15\n"
			 ".globl the_crash\n"
			 "the_crash: mov %%eax, 0x40\n"
			 "movq %%xmm0, %%rbp\n"
			 :
			 :
			 : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11",
			   "r12", "r13", "r14", "r15", "xmm0", "memory");
	sink++;
}

NOINLINE static void way_general_protection(void)
{
	outer((int *)0xdead000000000000);
	sink++;
}

NOINLINE static void way_trap(void)
{
	is_crashing = 1;
	__asm__ volatile("int3");
	sink++;
}

NOINLINE static void way_division(void)
{
	is_crashing = 1;
	__asm__ volatile("xor %%ecx, %%ecx\n idiv %%ecx" : : : "eax", "ecx", "edx");
	sink++;
}

/* Code that no table describes, with a frame pointer: push rbp; mov rsp, rbp; mov eax, 0x30. */
NOINLINE static void way_jit(void)
{
	static const uint8_t code[] = { 0x55, 0x48, 0x89, 0xe5, 0x89, 0x04, 0x25, 0x30,
					0,    0,    0,	  0x5d, 0xc3 };
	uint8_t *at = mmap((void *)0x10000000, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	memcpy(at, code, sizeof code);
	is_crashing = 1;
	((void (*)(void))(uintptr_t)at)();
	sink++;
}

/* Its own return address and frame are overwritten. */
NOINLINE static void way_corrupt(void)
{
	is_crashing = 1;
	__asm__ volatile("mov $0x4141414141414141, %%rax\n"
			 "mov %%rax, %%rbp\n"
			 "lea 4096(%%rax), %%rsp\n"
			 "movl $1, 0x20\n"
			 :
			 :
			 : "rax", "memory");
}

/* The stack consists of itself. */
NOINLINE static void way_cyclic(void)
{
	static uint64_t loop[64];
	uint64_t here;

	for (int i = 0; i < 64; i += 2) {
		loop[i] = (uint64_t)(uintptr_t)&loop[0];
		loop[i + 1] = (uint64_t)(uintptr_t)way_cyclic + 8;
	}
	here = (uint64_t)(uintptr_t)&loop[0];
	is_crashing = 1;
	__asm__ volatile("mov %0, %%rsp\n mov %0, %%rbp\n movl $1, 0x20" : : "r"(here) : "memory");
}
#endif

NOINLINE static void way_illegal(void)
{
	is_crashing = 1;
	__builtin_trap();
}

NOINLINE static void way_bus(void)
{
	FILE *f = tmpfile();
	char *at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fileno(f), 0);

	is_crashing = 1;
	sink += *(volatile char *)at;
}

NOINLINE static void way_call_0(void)
{
	void (*volatile f)(void) = NULL;

	is_crashing = 1;
	f();
	sink++;
}

NOINLINE static void way_abort(void)
{
	is_crashing = 1;
	abort();
}

NOINLINE static void way_assert(void)
{
	assert(sink == 4711);
}

NOINLINE static void way_kill(void)
{
	is_crashing = 1;
	kill(getpid(), SIGSEGV);
	sink++;
}

NOINLINE static void way_malloc(void)
{
	crash_in_malloc = 1;
	sink += malloc(100) != NULL;
}

/* The heap's own structures are damaged: libc aborts with its lock held. */
NOINLINE static void way_heap(void)
{
	void *p = __libc_malloc(5000);
	void *q = __libc_malloc(5000);

	memset(p, 0x41, 5100);
	__libc_free(q);
	__libc_free(p);
	sink++;
}

static int deep;

NOINLINE static int way_overflow_by(volatile char *p)
{
	volatile char room[200];

	room[0] = p[0];
	is_crashing = 1;
	deep++;
	return way_overflow_by(room) + room[1];
}

NOINLINE static void way_overflow(void)
{
	char c = 0;

	sink += way_overflow_by(&c);
}

NOINLINE static void way_sigsys(void)
{
	siginfo_t info = { .si_signo = SIGSYS, .si_code = 1 };

	info.si_syscall = 4711;
	is_crashing = 1;
	syscall(SYS_rt_tgsigqueueinfo, getpid(), getpid(), SIGSYS, &info);
	sink++;
}

NOINLINE static void way_fork(void)
{
	int status;
	const pid_t child = fork();

	if (!child)
		way_segv();
	waitpid(child, &status, 0);
	printf("child %d ended by %d\n", (int)child, WTERMSIG(status));
	fflush(stdout);
	way_segv();
}

NOINLINE static void way_vfork(void)
{
	int status;
	const pid_t child = vfork();

	if (!child) {
		way_segv();
		_exit(0);
	}
	is_crashing = 0;
	waitpid(child, &status, 0);
	printf("child %d ended by %d\n", (int)child, WTERMSIG(status));
	fflush(stdout);
	way_segv();
}

static pthread_barrier_t barrier;

NOINLINE static void *crash_together(void *data)
{
	pthread_barrier_wait(&barrier);
	way_segv();
	return data;
}

NOINLINE static void way_together(void)
{
	pthread_t threads[8];

	pthread_barrier_init(&barrier, NULL, 8);
	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, crash_together, NULL);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
}

NOINLINE static void *thread_without(void *data)
{
	pthread_setname_np(pthread_self(), "second one");
	way_segv();
	return data;
}

static void run_thread(void *(*f)(void *))
{
	pthread_t thread;

	pthread_create(&thread, NULL, f, NULL);
	pthread_join(thread, NULL);
}

NOINLINE static void way_thread(void)
{
	run_thread(thread_without);
}

NOINLINE static void *overflow_without(void *data)
{
	way_overflow();
	return data;
}

NOINLINE static void way_other_overflow(void)
{
	run_thread(overflow_without);
}

/* In sigsuspend(), where the thread returns to with the signal blocked. */
NOINLINE static void way_blocked(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(SIGSEGV);
	sigemptyset(&set);
	is_crashing = 1;
	sigsuspend(&set);
	sink++;
}

/* The program's own small stack for signals. */
NOINLINE static void way_own_stack(void)
{
	static char guarded[3][8192] __attribute__((aligned(4096)));
	const stack_t stack = { .ss_sp = guarded[1], .ss_size = sizeof guarded[1] };

	mprotect(guarded[0], sizeof guarded[0], PROT_NONE);
	sigaltstack(&stack, NULL);
	way_overflow();
}

/* Its constructor, or what chooses its function, crashes while the dynamic linker holds its lock. */
NOINLINE static void way_dlopen(void)
{
	dlopen(getenv("CRASHING_LIBRARY"), RTLD_NOW);
}


static sigjmp_buf back;
static volatile int n_handled;

static void old_plain(int number)
{
	(void)!write(1, "old plain\n", 10);
	_exit(40 + number);
}

static void old_info(int number, siginfo_t *info, void *context)
{
	sigset_t now;

	is_crashing = 0;
	sigprocmask(SIG_SETMASK, NULL, &now);
	printf("old %d at %p, context %d, blocked %d %d %d\n", number, info->si_addr, context != NULL,
	       sigismember(&now, SIGSEGV), sigismember(&now, SIGUSR1), sigismember(&now, SIGUSR2));
	fflush(stdout);
	_exit(50 + number);
}

static void old_jump(int number)
{
	n_handled++;
	is_crashing = 0;
	siglongjmp(back, number);
}

static void old_fix(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)context;
	n_handled++;
	is_crashing = 0;
	if (n_handled < 5)
		return;
	mmap((void *)((uintptr_t)info->si_addr & ~(uintptr_t)4095), 4096, PROT_READ | PROT_WRITE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

/* Returns whether the kernel says that this runs on the alternate stack. */
static int is_on_stack(void)
{
	stack_t now;

	return !sigaltstack(NULL, &now) && now.ss_flags & SS_ONSTACK;
}

#ifdef __x86_64__
/* Leaves nothing of what stands on the top of the alternate stack. */
static void spoil_stack(int number)
{
	volatile char room[6000];

	memset((char *)room, number, sizeof room);
	n_handled += is_on_stack();
}

/* Changes a register and memory of the interrupted function, and vector registers of its own. */
static void old_where(int number, siginfo_t *info, void *context)
{
	static const uint64_t garbage[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	struct sigaction spoil = { .sa_handler = spoil_stack, .sa_flags = SA_ONSTACK };
	ucontext_t *c = context;
	const uintptr_t sp = (uintptr_t)c->uc_mcontext.gregs[REG_RSP];
	volatile char here = 0;

	(void)number;
	is_crashing = 0;
	sigaction(SIGUSR1, &spoil, NULL);
	raise(SIGUSR1);
	printf("on the alternate stack %d, near the crash %d, at %p, spoiled %d\n", is_on_stack(),
	       (uintptr_t)&here < sp - 128 && sp - (uintptr_t)&here < 65536, info->si_addr, n_handled);
	fflush(stdout);
	__asm__ volatile("movdqu %0, %%xmm9" : : "m"(garbage[0]) : "xmm9");
	c->uc_mcontext.gregs[REG_RBX] = 4711;
	mmap((void *)((uintptr_t)info->si_addr & ~(uintptr_t)4095), 4096, PROT_READ | PROT_WRITE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

/* What is in the red zone and in vector registers is there again when the handler has returned. */
static void way_old_where(void)
{
	static const uint64_t given[2] = { 0x1111111111111111, 0x2222222222222222 };
	uint64_t vector[2];
	uint64_t below;
	uint64_t changed;
	sigset_t now;

	is_crashing = 1;
	__asm__ volatile("movdqu %3, %%xmm9\n"
			 "movq $4712, -120(%%rsp)\n"
			 "movl $1, 0x1234560\n"
			 "movq -120(%%rsp), %0\n"
			 "movq %%rbx, %1\n"
			 "movdqu %%xmm9, %2\n"
			 : "=&r"(below), "=&r"(changed), "=m"(vector)
			 : "m"(given)
			 : "rbx", "xmm9", "memory");
	sigprocmask(SIG_SETMASK, NULL, &now);
	printf("vector %d, below %d, changed %d, blocked %d, on the alternate stack %d\n",
	       memcmp(vector, given, sizeof given) == 0, (int)below, (int)changed,
	       sigismember(&now, SIGSEGV), is_on_stack());
	exit(0);
}
#endif

/* Crashes itself, by another signal. */
static void old_abort(int number)
{
	(void)number;
	abort();
}

/* The handlers of two threads wait for each other. */
static volatile int n_waiting;

static void old_wait(int number)
{
	(void)number;
	__atomic_fetch_add(&n_waiting, 1, __ATOMIC_SEQ_CST);
	is_crashing = 0;
	for (int i = 0; n_waiting < 2 && i < 400; i++)
		usleep(10000);
	if (n_waiting < 2)
		(void)!write(1, "alone\n", 6);
	pthread_exit(NULL);
}

NOINLINE static void *crash_at(void *address)
{
	pthread_barrier_wait(&barrier);
	outer(address);
	return NULL;
}

static void way_old_wait(void)
{
	pthread_t threads[2];

	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&threads[0], NULL, crash_at, (void *)0x1234560);
	pthread_create(&threads[1], NULL, crash_at, (void *)0x2345670);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("handled %d\n", n_waiting);
	exit(0);
}

/* Handlers that were there before ours. */
static void install_old(const char *way)
{
	struct sigaction action = { .sa_handler = SIG_DFL };

	sigemptyset(&action.sa_mask);
	sigaddset(&action.sa_mask, SIGUSR2);
	if (strcmp(way, "old_plain") == 0 || strcmp(way, "old_together") == 0)
		action.sa_handler = old_plain;
	else if (strcmp(way, "old_jump") == 0)
		action.sa_handler = old_jump;
	else if (strcmp(way, "old_abort") == 0)
		action.sa_handler = old_abort;
	else if (strcmp(way, "old_wait") == 0)
		action.sa_handler = old_wait;
	else if (strcmp(way, "old_overflow") == 0)
		action.sa_handler = old_plain;
	else if (strcmp(way, "old_overflow_on") == 0) {
		action.sa_handler = old_plain;
		action.sa_flags = SA_ONSTACK;
	}
#ifdef __x86_64__
	else if (strcmp(way, "old_where") == 0) {
		action.sa_sigaction = old_where;
		action.sa_flags = SA_SIGINFO;
	}
#endif
	else if (strcmp(way, "old_ignored") == 0)
		action.sa_handler = SIG_IGN;
	else if (strcmp(way, "old_info") == 0 || strncmp(way, "old_fix", 7) == 0) {
		action.sa_sigaction = strcmp(way, "old_info") == 0 ? old_info : old_fix;
		action.sa_flags = SA_SIGINFO;
	} else {
		return;
	}
	sigaction(SIGSEGV, &action, NULL);
}

static void way_old_jump(void)
{
	if (!sigsetjmp(back, 1))
		way_segv();
	if (n_handled < 2)
		outer((int *)0x2345670);
	printf("handled %d\n", n_handled);
	exit(0);
}

/* Nobody reads the report, and a SIGPIPE of the program's own is there already, or not. */
static void write_to_nobody(int raises)
{
	sigset_t set;
	sigset_t pending;
	int ends[2];

	if (pipe(ends) || dup2(ends[1], 2) != 2)
		exit(3);
	close(ends[0]);
	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	if (raises) {
		sigprocmask(SIG_BLOCK, &set, NULL);
		raise(SIGPIPE);
	}
	way_segv();
	sigpending(&pending);
	printf("handled %d, pending %d\n", n_handled, sigismember(&pending, SIGPIPE));
	exit(0);
}

static void way_old_fix_unread(void)
{
	write_to_nobody(0);
}

static void way_old_fix_pending(void)
{
	write_to_nobody(1);
}

static void way_old_fix(void)
{
	way_segv();
	printf("handled %d\n", n_handled);
	exit(0);
}

static void way_old_ignored(void)
{
	kill(getpid(), SIGSEGV);
	puts("ignored");
	fflush(stdout);
	way_segv();
}

#ifdef WITH_LIBRARY
NOINLINE static void *overflow_with(void *data)
{
	fathom_crash_thread_stack(NULL);
	way_overflow();
	return data;
}

NOINLINE static void way_thread_overflow(void)
{
	run_thread(overflow_with);
}

static int count_mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	int n = 0;
	int c;

	while ((c = getc(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return n;
}

static void *take_stack(void *data)
{
	stack_t now;

	fathom_crash_thread_stack(NULL);
	fathom_crash_thread_stack(NULL);
	sigaltstack(NULL, &now);
	if (now.ss_flags & SS_DISABLE || now.ss_size < 16384)
		puts("no stack");
	if (data) {
		fathom_crash_thread_stack_free();
		sigaltstack(NULL, &now);
		if (!(now.ss_flags & SS_DISABLE))
			puts("still a stack");
	}
	return NULL;
}

/* The stacks of threads do not pile up. */
static void way_stacks(void)
{
	static int yes;
	int before = 0;

	for (int i = 0; i < 200; i++) {
		pthread_t thread;

		if (i == 10)
			before = count_mappings();
		pthread_create(&thread, NULL, take_stack, i % 2 ? &yes : NULL);
		pthread_join(thread, NULL);
	}
	printf("%d\n", count_mappings() - before < 10);
	exit(0);
}

static void way_uninstalled(void)
{
	fathom_crash_uninstall();
	fathom_crash_uninstall();
	way_segv();
}

/* What the program has installed since stays. */
static void way_replaced(void)
{
	signal(SIGSEGV, old_plain);
	fathom_crash_uninstall();
	way_segv();
}

static void way_twice(void)
{
	const struct fathom_crash_options o = { .size = sizeof o, .flags = FATHOM_CRASH_NAMES_ONLY };

	if (fathom_crash_install(NULL, &o, NULL))
		exit(3);
	way_segv();
}

static void way_refused(void)
{
	/* Those that cannot be handled, and those that end no program. */
	static const int bad[] = { SIGKILL, SIGSTOP, SIGCHLD, SIGCONT, SIGURG, SIGTSTP, SIGTTIN, SIGTTOU, SIGWINCH, 0, 32 };
	struct fathom_crash_options o = { .size = sizeof o, .n_signals = 2 };
	int n_refused = 0;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		o.signals = (const int[]){ SIGSEGV, bad[i] };
		n_refused += fathom_crash_install(NULL, &o, NULL) == FATHOM_E_ARGUMENT;
	}
	printf("%d ", n_refused);
	o = (struct fathom_crash_options){ .size = sizeof o, .flags = 64 };
	printf("%d", fathom_crash_install(NULL, &o, NULL) == FATHOM_E_ARGUMENT);
	o = (struct fathom_crash_options){ .size = sizeof o, .fd = -1 };
	printf("%d\n", fathom_crash_install(NULL, &o, NULL) == FATHOM_E_ARGUMENT);
	fflush(stdout);
	way_segv();
}

static void crash_in_handler(int number)
{
	(void)number;
	way_segv();
	asm volatile("");
}

static void way_in_handler(void)
{
	signal(SIGUSR1, crash_in_handler);
	raise(SIGUSR1);
	asm volatile("");
}

/* What the handler itself needs is gone. */
static void way_nested(void)
{
	void *at = NULL;
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long low, high;
	char line[512];

	/* The 2.6 MB that the handler keeps frames in: the largest mapping that is anonymous. */
	while (fgets(line, sizeof line, f))
		if (sscanf(line, "%lx-%lx", &low, &high) == 2 && !strchr(line, '/') &&
		    !strchr(line, '[') && high - low > 2600000 && high - low < 2900000)
			at = (void *)high;
	fclose(f);
	/* Its last pages but one have the trust of frames: the first of them is written first. */
	mprotect((char *)at - 64 * 4096 - 4096, 65 * 4096, PROT_READ);
	way_segv();
}

static void install(int argc, char **argv)
{
	struct fathom_crash_options o = { .size = sizeof o };
	struct fathom_errinfo info;

	for (int i = 2; i < argc; i++) {
		if (strcmp(argv[i], "names") == 0)
			o.flags = FATHOM_CRASH_NAMES_ONLY;
		if (strncmp(argv[i], "fd=", 3) == 0)
			o.fd = atoi(argv[i] + 3);
		if (strncmp(argv[i], "path=", 5) == 0)
			o.path = argv[i] + 5;
	}
	if (argc > 2 && fathom_crash_install(NULL, &o, &info)) {
		fathom_errinfo_format(&info, (char[200]){ 0 }, 200);
		exit(98);
	}
}
#endif

static const struct {
	const char *name;
	void (*go)(void);
} ways[] = {
#define WAY(name) { #name, way_##name }
	WAY(segv),   WAY(illegal), WAY(bus),	WAY(call_0),	 WAY(abort),	WAY(assert),
	WAY(kill),   WAY(malloc),  WAY(heap),	WAY(overflow),	 WAY(sigsys),	WAY(fork),
	WAY(vfork),  WAY(together), WAY(thread), WAY(own_stack), WAY(old_jump), WAY(old_fix),
	WAY(dlopen), WAY(old_ignored), WAY(old_fix_unread), WAY(old_fix_pending), WAY(other_overflow), WAY(blocked),
	{ "old_together", way_together }, { "old_plain", way_segv }, { "old_info", way_segv },
	{ "old_abort", way_segv }, { "old_overflow", way_overflow }, { "old_overflow_on", way_overflow }, WAY(old_wait),
#ifdef __x86_64__
	WAY(old_where),
	WAY(registers), WAY(general_protection), WAY(trap), WAY(division), WAY(jit), WAY(corrupt),
	WAY(cyclic),
#endif
#ifdef WITH_LIBRARY
	WAY(thread_overflow), WAY(stacks), WAY(uninstalled), WAY(replaced), WAY(twice), WAY(refused), WAY(nested), WAY(in_handler),
#endif
};

int main(int argc, char **argv)
{
	/* Cores only where they are asked for. */
	const struct rlimit none = { 0, 0 };

	if (!getenv("WANT_CORE"))
		setrlimit(RLIMIT_CORE, &none);
	install_old(argv[1]);
#ifdef WITH_LIBRARY
	install(argc, argv);
#endif
	(void)argc;
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
		if (strcmp(ways[i].name, argv[1]) == 0)
			ways[i].go();
	return 97;
}
