/* SPDX-License-Identifier: MIT */
/* Hooks functions of its own, as its first word says, and prints what came of it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <fathom/fathom.h>

#include "../../lib/three_calls.h"

/* The tests' own functions have no site. */
#define PLAIN KEPT __attribute__((patchable_function_entry(0, 0), no_instrument_function))

static struct fathom *session;
static _Atomic long n_called;
static volatile int is_over;

PLAIN static struct fathom_hook *hook(fathom_hook_fn fn, void *data, uint32_t flags, const char *only)
{
	const struct fathom_hook_options o = { .size = sizeof o, .flags = flags, .only = &only, .n_only = only ? 1 : 0 };
	struct fathom_errinfo info = { 0 };
	struct fathom_hook *h = NULL;
	char text[256];

	if (!fathom_hook_add(session, fn, data, &o, &h, &info))
		return h;
	(void)fathom_errinfo_format(&info, text, sizeof text);
	printf("not: %s\n", text);
	return NULL;
}

PLAIN static void count(void *data, const struct fathom_hook_call *call)
{
	(void)call;
	atomic_fetch_add((_Atomic long *)data, 1);
}

/* "place name(first argument) < the caller's name", and whether the stack holds that address. */
PLAIN static void tell(void *data, const struct fathom_hook_call *call)
{
	Dl_info function = { 0 }, caller = { 0 };

	(void)data;
	(void)dladdr((void *)call->function, &function);
	(void)dladdr((void *)call->caller, &caller);
	printf("%u %s(%d) < %s %s\n", call->place, function.dli_sname, call->place ? (int)call->registers[0] : (int)call->registers[5],
	       caller.dli_sname, *(uint64_t *)call->stack == call->caller && function.dli_saddr == (void *)call->function ? "right" : "wrong");
}

/* Sums the text of the program: the file that is mapped first. */
PLAIN static unsigned long sum(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long all = 0, low, high;
	char line[512], rights[8], first[512] = "", path[512] = "";

	while (fgets(line, sizeof line, maps)) {
		*path = 0;
		(void)sscanf(line, "%lx-%lx %7s %*s %*s %*s %511s", &low, &high, rights, path);
		if (!*first)
			strcpy(first, path);
		if (rights[2] != 'x' || !*path || strcmp(path, first) != 0)
			continue;
		for (const unsigned char *p = (const unsigned char *)low; p < (const unsigned char *)high; p++)
			all = all * 31 + *p;
	}
	fclose(maps);
	return all;
}

PLAIN static void calls(uint32_t flags, const char *only)
{
	const unsigned long before = sum();
	struct fathom_hook *h = hook(tell, NULL, flags, only);
	unsigned long hooked;

	printf("%zu %zu\n", fathom_hook_count(h), fathom_hook_refused(h, FATHOM_TRACE_NO_ROOM));
	hooked = sum();
	printf("= %d\n", top(3));
	(void)fathom_hook_switch(h, 0, NULL);
	printf("= %d\n", top(3));
	(void)fathom_hook_switch(h, 1, NULL);
	printf("= %d\n", leaf(1));
	(void)fathom_hook_remove(h, NULL);
	printf("= %d %s %s\n", top(3), hooked != before ? "changed" : "same", sum() == before ? "same" : "changed");
}

/* Others call all the while; a pointer counts their calls. */
PLAIN static void *turn(void *data)
{
	long n = 0;

	while (!is_over) {
		n++;
		if (top(3) != 40)
			abort();
	}
	*(long *)data = n;
	return NULL;
}

/* Four threads call; a hook is added, switched and removed @n times. */
PLAIN static void toggle(long n)
{
	const unsigned long before = sum();
	pthread_t threads[4];
	long turns[4], all = 0;
	int n_wrong = 0;

	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, turn, &turns[i]);
	for (long i = 0; i < n; i++) {
		struct fathom_hook *h = hook(count, &n_called, FATHOM_HOOK_OFF, NULL);
		const long was = n_called;

		if (!h)
			break;
		n_wrong += fathom_hook_count(h) != 4 || fathom_hook_switch(h, 1, NULL);
		while (n_called < was + 5)
			;
		n_wrong += fathom_hook_switch(h, 0, NULL) || fathom_hook_switch(h, 1, NULL) || fathom_hook_remove(h, NULL);
		all = n_called;
		usleep(10);
		n_wrong += n_called != all || sum() != before;
	}
	is_over = 1;
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	printf("%d wrong\n", n_wrong);
}

PLAIN static void *some(void *data)
{
	for (long i = 0; i < *(long *)data; i++)
		top(3);
	return NULL;
}

/* @n_threads threads call top() @n times each: each call of the three counts. */
PLAIN static void sums(int n_threads, long n)
{
	struct fathom_hook *h = hook(count, &n_called, 0, NULL);
	pthread_t threads[100];

	for (int i = 0; i < n_threads; i++)
		pthread_create(&threads[i], NULL, some, &n);
	for (int i = 0; i < n_threads; i++)
		pthread_join(threads[i], NULL);
	(void)fathom_hook_remove(h, NULL);
	top(3);
	printf("%ld\n", n_called);
}

/* What registers hold before and after: general ones, flags, MXCSR, the x87 control word, vectors, masks. */
struct state {
	uint64_t general[16];
	uint64_t flags;
	uint32_t mxcsr;
	uint32_t control;
	_Alignas(64) uint8_t vectors[32 * 64];
	uint64_t masks[8];
	_Alignas(16) uint8_t x87[8 * 16];
};

_Static_assert(offsetof(struct state, vectors) == 192 && offsetof(struct state, masks) == 2240 && offsetof(struct state, x87) == 2304,
	       "as the instructions below have it");

extern void probe(struct state *before, struct state *after, int has_avx512);
extern int probed(void);
__asm__(".pushsection .text\n"
	/* A function with a slot, which keeps all. */
	".globl probed\n.type probed, @function\nprobed:\n.cfi_startproc\n1: .fill 8, 1, 0x90\nret\n.cfi_endproc\n.size probed, . - probed\n"
	".pushsection __patchable_function_entries, \"awo\", @progbits, .text\n.balign 8\n.quad 1b\n.popsection\n"
	".globl probe\n.type probe, @function\nprobe:\n.cfi_startproc\n"
	"push %rbx\npush %rbp\npush %r12\npush %r13\npush %r14\npush %r15\npush %rsi\npush %rdx\n"
	/* Load all. */
	"fldcw 140(%rdi)\nldmxcsr 136(%rdi)\n"
	".rept 8\nfldt 2304(%rdi)\n.endr\n"
	"test %edx, %edx\njz 2f\n"
	".irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31\n"
	"vmovdqu64 192+64*\\i(%rdi), %zmm\\i\n.endr\n"
	".irp i, 0, 1, 2, 3, 4, 5, 6, 7\nkmovq 2240+8*\\i(%rdi), %k\\i\n.endr\njmp 3f\n"
	"2:\n.irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\nmovdqu 192+64*\\i(%rdi), %xmm\\i\n.endr\n"
	"3:\npushq 128(%rdi)\npopfq\n"
	"mov (%rdi), %rax\nmov 8(%rdi), %rdx\nmov 16(%rdi), %rcx\nmov 24(%rdi), %rbx\nmov 32(%rdi), %rsi\nmov 48(%rdi), %rbp\n"
	".irp i, 8, 9, 10, 11, 12, 13, 14, 15\nmov 8*\\i(%rdi), %r\\i\n.endr\n"
	"mov 40(%rdi), %rdi\n"
	"call probed\n"
	/* Store all. */
	"push %rdi\nmov 16(%rsp), %rdi\n"
	"mov %rax, (%rdi)\nmov %rdx, 8(%rdi)\nmov %rcx, 16(%rdi)\nmov %rbx, 24(%rdi)\nmov %rsi, 32(%rdi)\nmov %rbp, 48(%rdi)\n"
	".irp i, 8, 9, 10, 11, 12, 13, 14, 15\nmov %r\\i, 8*\\i(%rdi)\n.endr\n"
	"pushfq\npopq 128(%rdi)\ncld\npopq 40(%rdi)\npop %rdx\n"
	"stmxcsr 136(%rdi)\nfnstcw 140(%rdi)\n"
	".set i, 0\n.rept 8\nfstpt 2304+16*i(%rdi)\n.set i, i + 1\n.endr\n"
	"test %edx, %edx\njz 2f\n"
	".irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31\n"
	"vmovdqu64 %zmm\\i, 192+64*\\i(%rdi)\n.endr\n"
	".irp i, 0, 1, 2, 3, 4, 5, 6, 7\nkmovq %k\\i, 2240+8*\\i(%rdi)\n.endr\nvzeroupper\njmp 3f\n"
	"2:\n.irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\nmovdqu %xmm\\i, 192+64*\\i(%rdi)\n.endr\n"
	"3:\nfninit\nmovl $0x1f80, -8(%rsp)\nldmxcsr -8(%rsp)\n"
	"pop %rsi\npop %r15\npop %r14\npop %r13\npop %r12\npop %rbp\npop %rbx\nret\n.cfi_endproc\n.size probe, . - probe\n"
	".popsection\n");

/* Changes whatever C may change. */
PLAIN static void spoil(void *data, const struct fathom_hook_call *call)
{
	(void)call;
	++*(int *)data;
	__asm__ volatile("fninit\n\tfld1\n\tfldpi\n\tstd\n\tcld\n\tmovl $0x3f80, -64(%%rsp)\n\tldmxcsr -64(%%rsp)\n\tpcmpeqd %%xmm0, %%xmm0\n\t"
			 "movdqa %%xmm0, %%xmm1\n\tmovdqa %%xmm0, %%xmm7\n\tmovdqa %%xmm0, %%xmm15\n\tmovl $0x1f80, -64(%%rsp)\n\t"
			 "ldmxcsr -64(%%rsp)\n\tfninit\n\t" ::: "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
			 "r14", "r15", "xmm0", "xmm1", "xmm7", "xmm15", "memory", "cc");
	if (__builtin_cpu_supports("avx512bw"))
		__asm__ volatile(".irp i, 0, 5, 16, 31\n\tvpternlogd $255, %%zmm\\i, %%zmm\\i, %%zmm\\i\n\t.endr\n\tkxnorq %%k1, %%k1, %%k1\n\t"
				 "kxnorq %%k7, %%k7, %%k7\n\tvzeroupper" ::: "memory");
}

PLAIN static void random_bytes(void *to, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((uint8_t *)to)[i] = (uint8_t)(random() >> 7);
}

PLAIN static void registers(int n)
{
	const int has_avx512 = __builtin_cpu_supports("avx512bw");
	struct fathom_hook *h;
	int n_spoiled = 0, n_wrong = 0;

	__builtin_cpu_init();
	h = hook(spoil, &n_spoiled, 0, "probed");
	for (int i = 0; i < n; i++) {
		static struct state before, after;

		memset(&before, 0, sizeof before);
		random_bytes(&before, sizeof before);
		/* CF, PF, AF, ZF, SF, OF, now and then DF; one bit is always there, interrupts are on */
		before.flags = (before.flags & 0xcd5) | 0x202;
		before.mxcsr = 0x1f80 | (before.mxcsr & 0x603f);
		before.control = 0x37f | (before.control & 0xc00);
		for (int k = 0; k < 8; k++)
			*(uint16_t *)(before.x87 + 16 * k + 8) = 0x3fff, before.x87[16 * k + 7] |= 0x80;
		memset(&after, 0x55, sizeof after);
		probe(&before, &after, has_avx512);
		n_wrong += memcmp(before.general, after.general, 7 * 8) || memcmp(before.general + 8, after.general + 8, 8 * 8);
		n_wrong += before.flags != after.flags || before.mxcsr != after.mxcsr || (before.control & 0xffff) != (after.control & 0xffff);
		for (int k = 0; k < (has_avx512 ? 32 : 16); k++)
			n_wrong += memcmp(before.vectors + 64 * k, after.vectors + 64 * k, has_avx512 ? 64 : 16) != 0;
		for (int k = 0; has_avx512 && k < 8; k++)
			n_wrong += before.masks[k] != after.masks[k];
		/* The first was loaded eight times. */
		for (int k = 0; k < 8; k++)
			n_wrong += memcmp(before.x87, after.x87 + 16 * k, 10) != 0;
	}
	(void)fathom_hook_remove(h, NULL);
	printf("%d wrong of %d\n", n_wrong, n_spoiled);
}

/* The names of the callers, by libgcc's unwinder. */
PLAIN static int print_stack(void **pcs, int n, const char *wanted)
{
	char names[512] = "";

	for (int i = 0; i < n; i++) {
		Dl_info info = { 0 };

		if (dladdr((char *)pcs[i] - 1, &info) && info.dli_sname)
			strcat(strcat(names, info.dli_sname), " ");
		if (info.dli_sname && !strcmp(info.dli_sname, "main"))
			break;
	}
	if (!wanted)
		printf("%s\n", names);
	return wanted && strstr(names, wanted) != NULL;
}

PLAIN static void unwind(void *data, const struct fathom_hook_call *call)
{
	void *pcs[64];
	int n = backtrace(pcs, 64), from = 0;

	(void)data;
	/* From the hooked function on: what is below is the library's. */
	while (from < n && ((uint64_t)pcs[from] <= call->function || (uint64_t)pcs[from] > call->function + 64))
		from++;
	print_stack(pcs + from, n - from, NULL);
}

static struct fathom_self *self;
static int n_steps, n_lost, n_lost_own;

/* At each instruction between the entry of leaf() and its end: the callers are the same. */
PLAIN static void step(int number, siginfo_t *info, void *context)
{
	const struct fathom_unwind_options o = { .size = sizeof o, .context = context };
	ucontext_t *u = context;
	struct fathom_unwind_result result = { .size = sizeof result };
	uint64_t own[64];
	uint8_t kinds[64];
	void *pcs[64];
	int n = backtrace(pcs, 64);

	(void)number;
	(void)info;
	n_steps++;
	if (!print_stack(pcs, n, "walk stepped steps main") && ++n_lost && getenv("SHOW"))
		fprintf(stderr, "libgcc %llx\n", u->uc_mcontext.gregs[REG_RIP]);
	(void)fathom_unwind(self, &o, own, kinds, 64, &result);
	for (int i = 0; i < 64; i++)
		pcs[i] = (char *)own[i] + (i == 0);
	if (!print_stack(pcs, (int)result.n, "walk stepped steps main")) {
		Dl_info at = { 0 };

		dladdr((void *)u->uc_mcontext.gregs[REG_RIP], &at);
		if (n_lost_own++ < 9 && getenv("SHOW"))
			fprintf(stderr, "%p %s+%lx n %zu stop %d\n", (void *)u->uc_mcontext.gregs[REG_RIP], at.dli_sname, (long)u->uc_mcontext.gregs[REG_RIP] - (long)at.dli_saddr, result.n, result.stop);
	}
	if (is_over)
		u->uc_mcontext.gregs[REG_EFL] &= ~0x100l;
	else
		u->uc_mcontext.gregs[REG_EFL] |= 0x100;
}

PLAIN static void nothing(void *data, const struct fathom_hook_call *call)
{
	(void)data;
	(void)call;
}

/* Steps through a call of leaf(). */
PLAIN int walk(int n)
{
	__asm__ volatile("pushfq\n\torq $0x100, (%%rsp)\n\tpopfq" ::: "memory", "cc");
	n = leaf(n);
	__asm__ volatile("" : "+r"(n));
	is_over = 1;
	return n + 1;
}

PLAIN int stepped(int n)
{
	return walk(n) + 1;
}

PLAIN void steps(void)
{
	const struct fathom_self_options o = { .size = sizeof o, .flags = FATHOM_SELF_UNWIND };
	struct sigaction act = { .sa_sigaction = step, .sa_flags = SA_SIGINFO };
	struct fathom_hook *h = hook(nothing, NULL, 0, "leaf");
	void *pcs[1];
	int n;

	(void)backtrace(pcs, 1);
	(void)fathom_self_prepare(session, &o, &self, NULL);
	sigaction(SIGTRAP, &act, NULL);
	n = stepped(3);
	printf("%d %d %d %s\n", n, n_lost, n_lost_own, n_steps > 100 ? "stepped" : "not stepped");
	(void)fathom_hook_remove(h, NULL);
}

/* Breaks: for code that was changed. */
PLAIN static void broken(int number, siginfo_t *info, void *context)
{
	Dl_info at = { 0 };

	(void)info;
	(void)dladdr((char *)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] - 1, &at);
	printf("%s at %s\n", number == SIGTRAP ? "trap" : "?", at.dli_sname);
	fflush(stdout);
	_exit(7);
}

PLAIN static void morph(void)
{
	const struct sigaction act = { .sa_sigaction = broken, .sa_flags = SA_SIGINFO };
	const uint8_t breakpoint[] = { 0xcc };
	pthread_t thread;
	long turns;

	pthread_create(&thread, NULL, turn, &turns);
	sigaction(SIGTRAP, &act, NULL);
	printf("%d\n", fathom_code_write((void *)exit, breakpoint, sizeof breakpoint, NULL));
	exit(3);
}

/* leaf() becomes `lea 2(%rdi), %eax; ret`, @n times and back, while a thread calls it. */
PLAIN static void *either(void *data)
{
	long n_wrong = 0;

	while (!is_over) {
		const int n = leaf(1);

		n_wrong += n != 2 && n != 3;
	}
	*(long *)data = n_wrong;
	return NULL;
}

PLAIN static void rewrite(int n)
{
	static const uint8_t code[] = { 0x8d, 0x47, 0x02, 0xc3 };
	uint8_t was[sizeof code];
	pthread_t threads[3];
	long wrong[3], n_wrong = 0;

	memcpy(was, (void *)leaf, sizeof was);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, either, &wrong[i]);
	for (int i = 0; i < n; i++) {
		n_wrong += fathom_code_write((void *)leaf, code, sizeof code, NULL) || leaf(1) != 3;
		n_wrong += fathom_code_write((void *)leaf, was, sizeof was, NULL) || leaf(1) != 2;
	}
	is_over = 1;
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], NULL);
		n_wrong += wrong[i];
	}
	printf("%ld wrong\n", n_wrong);
}

static struct fathom_hook *inner;

PLAIN static void nest(void *data, const struct fathom_hook_call *call)
{
	(void)call;
	n_called++;
	*(int *)data += top(3) == 40;
	*(int *)data += fathom_hook_remove(inner, NULL) == FATHOM_E_ARGUMENT;
}

/* A hook function calls what is hooked; a second hook finds the sites taken; both are over in a child. */
PLAIN static void corners(void)
{
	int n_right = 0, status;
	struct fathom_hook *second;
	pid_t pid;

	inner = hook(nest, &n_right, 0, "leaf");
	leaf(1);
	second = hook(nest, &n_right, 0, NULL);
	printf("%ld %d %zu %zu\n", n_called, n_right, fathom_hook_count(second), fathom_hook_refused(second, FATHOM_TRACE_CHANGED));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		leaf(1);
		printf("%ld %d", n_called, fathom_hook_remove(inner, NULL));
		leaf(1);
		printf(" %ld\n", n_called);
		fflush(stdout);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	leaf(1);
	printf("%ld %d %d", n_called, fathom_hook_remove(second, NULL), fathom_hook_remove(inner, NULL));
	leaf(1);
	top(3);
	printf(" %ld\n", n_called);
}

PLAIN int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	const long n = argc > 2 ? atol(argv[2]) : 0;

	setvbuf(stdout, NULL, _IOLBF, 4096);
	if (fathom_create(NULL, &session, NULL))
		return 1;
	if (!strcmp(what, "calls"))
		calls((uint32_t)n, argc > 3 ? argv[3] : NULL);
	else if (!strcmp(what, "toggle"))
		toggle(n);
	else if (!strcmp(what, "sums"))
		sums((int)n, atol(argv[3]));
	else if (!strcmp(what, "registers"))
		registers((int)n);
	else if (!strcmp(what, "stack")) {
		struct fathom_hook *h = hook(unwind, NULL, (uint32_t)n, argv[3]);

		top(3);
		(void)fathom_hook_remove(h, NULL);
	} else if (!strcmp(what, "steps"))
		steps();
	else if (!strcmp(what, "morph"))
		morph();
	else if (!strcmp(what, "rewrite"))
		rewrite((int)n);
	else if (!strcmp(what, "corners"))
		corners();
	return 0;
}
