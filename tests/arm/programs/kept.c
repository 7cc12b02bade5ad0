/* SPDX-License-Identifier: MIT */
/*
 * kept N FROM [hooked]: calls a function that has a site N times, each time with random registers, flags and vectors, and
 * looks what is left of them. From call FROM on the calls are made below a handler of a signal, on another stack. hooked:
 * it has a hook, which spoils what a function may. With CALLS the function calls the kernel: getppid().
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fathom/fathom.h>

/* As call_with() has it. */
struct state {
	uint64_t x[31]; /* of x18 and x30, what is left */
	uint64_t nzcv;
	uint64_t fpcr;
	uint64_t fpsr;
	uint64_t q[32][2];
	uint64_t sp;
};

/* Sets all from @in, calls plain(), and stores all to @out. */
void call_with(const struct state *in, struct state *out);
void plain(void);

#ifdef CALLS
#define SLOT "svc #0"
#else
#define SLOT "nop"
#endif

__asm__(".text\n"
	".balign 4\n"
	".globl plain\n"
	".type plain, %function\n"
	"plain:\n"
	"	hint #34\n"
	"1:	" SLOT "\n"
	"	ret\n"
	".size plain, . - plain\n"
	".section __patchable_function_entries, \"awo\", %progbits, plain\n"
	".balign 8\n"
	".quad 1b\n"
	".text\n"
	".globl call_with\n"
	".type call_with, %function\n"
	"call_with:\n"
	"	stp x29, x30, [sp, #-176]!\n"
	"	stp x19, x20, [sp, #16]\n"
	"	stp x21, x22, [sp, #32]\n"
	"	stp x23, x24, [sp, #48]\n"
	"	stp x25, x26, [sp, #64]\n"
	"	stp x27, x28, [sp, #80]\n"
	"	stp d8, d9, [sp, #96]\n"
	"	stp d10, d11, [sp, #112]\n"
	"	stp d12, d13, [sp, #128]\n"
	"	stp d14, d15, [sp, #144]\n"
	"	str x1, [sp, #160]\n"
	"	mov x2, sp\n"
	"	str x2, [x1, #784]\n"
	"	ldp x2, x3, [x0, #248]\n"
	"	msr nzcv, x2\n"
	"	msr fpcr, x3\n"
	"	ldr x2, [x0, #264]\n"
	"	msr fpsr, x2\n"
	"	add x1, x0, #272\n"
#define LOAD_Q(a, b) "	ldp q" #a ", q" #b ", [x1, #" #a " * 16]\n"
	LOAD_Q(0, 1) LOAD_Q(2, 3) LOAD_Q(4, 5) LOAD_Q(6, 7) LOAD_Q(8, 9) LOAD_Q(10, 11) LOAD_Q(12, 13) LOAD_Q(14, 15)
	LOAD_Q(16, 17) LOAD_Q(18, 19) LOAD_Q(20, 21) LOAD_Q(22, 23) LOAD_Q(24, 25) LOAD_Q(26, 27) LOAD_Q(28, 29) LOAD_Q(30, 31)
#define LOAD_X(a, b) "	ldp x" #a ", x" #b ", [x0, #" #a " * 8]\n"
	LOAD_X(2, 3) LOAD_X(4, 5) LOAD_X(6, 7) LOAD_X(8, 9) LOAD_X(10, 11) LOAD_X(12, 13) LOAD_X(14, 15) LOAD_X(16, 17)
	LOAD_X(19, 20) LOAD_X(21, 22) LOAD_X(23, 24) LOAD_X(25, 26) LOAD_X(27, 28)
	"	ldr x29, [x0, #232]\n"
	"	ldp x0, x1, [x0]\n"
	"	bl plain\n"
	"	str x0, [sp, #168]\n"
	"	ldr x0, [sp, #160]\n"
#define STORE_X(a, b) "	stp x" #a ", x" #b ", [x0, #" #a " * 8]\n"
	STORE_X(1, 2) STORE_X(3, 4) STORE_X(5, 6) STORE_X(7, 8) STORE_X(9, 10) STORE_X(11, 12) STORE_X(13, 14) STORE_X(15, 16)
	STORE_X(19, 20) STORE_X(21, 22) STORE_X(23, 24) STORE_X(25, 26) STORE_X(27, 28)
	"	str x17, [x0, #136]\n"
	"	str x29, [x0, #232]\n"
	"	ldr x1, [sp, #168]\n"
	"	str x1, [x0]\n"
	"	mrs x1, nzcv\n"
	"	mrs x2, fpcr\n"
	"	stp x1, x2, [x0, #248]\n"
	"	mrs x1, fpsr\n"
	"	str x1, [x0, #264]\n"
	"	ldr x1, [x0, #784]\n"
	"	mov x2, sp\n"
	"	sub x1, x1, x2\n"
	"	str x1, [x0, #784]\n"
	"	add x1, x0, #272\n"
#define STORE_Q(a, b) "	stp q" #a ", q" #b ", [x1, #" #a " * 16]\n"
	STORE_Q(0, 1) STORE_Q(2, 3) STORE_Q(4, 5) STORE_Q(6, 7) STORE_Q(8, 9) STORE_Q(10, 11) STORE_Q(12, 13) STORE_Q(14, 15)
	STORE_Q(16, 17) STORE_Q(18, 19) STORE_Q(20, 21) STORE_Q(22, 23) STORE_Q(24, 25) STORE_Q(26, 27) STORE_Q(28, 29) STORE_Q(30, 31)
	"	msr fpcr, xzr\n"
	"	msr fpsr, xzr\n"
	"	ldp d8, d9, [sp, #96]\n"
	"	ldp d10, d11, [sp, #112]\n"
	"	ldp d12, d13, [sp, #128]\n"
	"	ldp d14, d15, [sp, #144]\n"
	"	ldp x19, x20, [sp, #16]\n"
	"	ldp x21, x22, [sp, #32]\n"
	"	ldp x23, x24, [sp, #48]\n"
	"	ldp x25, x26, [sp, #64]\n"
	"	ldp x27, x28, [sp, #80]\n"
	"	ldp x29, x30, [sp], #176\n"
	"	ret\n"
	".size call_with, . - call_with\n");

#define UNSEEN __attribute__((patchable_function_entry(0, 0)))

static struct state in, out;
static unsigned long n_wrong;
static long left;

UNSEEN static void randomize(struct state *s)
{
	static uint64_t random = UINT64_C(0x9e3779b97f4a7c15);
	uint64_t *words = (uint64_t *)s;

	/* Marsaglia's xorshift. */
	for (size_t i = 0; i < sizeof *s / sizeof *words; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		words[i] = random;
	}
	s->nzcv &= UINT64_C(0xf0000000);
	s->fpcr &= UINT64_C(0x07c00000); /* AHP, DN, FZ, RMode */
	s->fpsr &= UINT64_C(0x0800009f);
	s->x[18] = s->x[30] = s->sp = 0;
}

UNSEEN static void check(void)
{
	randomize(&in);
#ifdef CALLS
	in.x[8] = SYS_getppid;
#endif
	memset(&out, 0, sizeof out);
	call_with(&in, &out);
#ifdef CALLS
	in.x[0] = (uint64_t)getppid();
#endif
	n_wrong += memcmp(&in, &out, sizeof in) != 0;
}

static long n_hooked;

UNSEEN static void spoil(void *data, const struct fathom_hook_call *call)
{
	(void)data;
	n_hooked += call->function == (uint64_t)plain && call->registers[5] == in.x[5] && call->registers[16] == in.x[16] &&
		    call->registers[28] == in.x[28];
	__asm__ volatile("	movi v0.16b, #1\n	movi v1.16b, #2\n	movi v7.16b, #3\n	movi v8.16b, #4\n"
			 "	movi v15.16b, #5\n	movi v16.16b, #6\n	movi v30.16b, #7\n	movi v31.16b, #8\n"
			 "	mov x0, #0\n	mov x17, #17\n	mov x18, #18\n	msr fpsr, x17\n	cmp x0, x17\n"
			 :
			 :
			 : "v0", "v1", "v7", "v8", "v15", "v16", "v30", "v31", "x0", "x17", "cc");
}

UNSEEN static void add_hook(void)
{
	const struct fathom_options one = { .size = sizeof one, .threads = 1 };
	const char *const only[] = { "plain" };
	const struct fathom_hook_options o = { .size = sizeof o, .only = only, .n_only = 1 };
	struct fathom_hook *hook;
	struct fathom *session;

	if (fathom_create(&one, &session, NULL) || fathom_hook_add(session, spoil, NULL, &o, &hook, NULL))
		exit(1);
}

UNSEEN static void handle(int number)
{
	(void)number;
	while (left-- > 0)
		check();
}

UNSEEN int main(int argc, char **argv)
{
	const long n = atol(argv[1]);
	const long from = atol(argv[2]);
	const stack_t stack = { .ss_sp = malloc(1 << 16), .ss_size = 1 << 16 };
	const struct sigaction action = { .sa_handler = handle, .sa_flags = SA_ONSTACK };

	if (argc > 3)
		add_hook();
	for (long i = 0; i < from; i++)
		check();
	left = n - from;
	(void)sigaltstack(&stack, NULL);
	(void)sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	printf("%lu wrong of %ld, %ld hooked\n", n_wrong, n, n_hooked);
	return 0;
}
