/* SPDX-License-Identifier: MIT */
/*
 * corners LATE: unwinds where stacks end or are damaged: on a stack that has overflowed, from calls
 * to no code, from registers that lead nowhere, through a library that was loaded after the tables
 * were prepared. The truth is what the program knows of itself, or glibc's backtrace().
 */
#define _GNU_SOURCE
#include "check.h"
#include "paint.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <elf.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#define MAX_FRAMES 60000
#define PAGE	   4096

static uint64_t pcs[MAX_FRAMES];
static uint8_t kinds[MAX_FRAMES];
static struct fathom_unwind_result found;

static void unwind(const void *context)
{
	const struct fathom_unwind_options o = { .size = sizeof o, .context = context };

	found = (struct fathom_unwind_result){ .size = sizeof found };
	expect(!fathom_unwind(self, &o, pcs, kinds, MAX_FRAMES, &found));
	expect(found.n >= 1);
}

/* Most bytes of stack that a call of fathom_unwind() has taken. */
static size_t deepest;

static __attribute__((noinline)) void measure(const void *context)
{
	size_t n;

	paint();
	unwind(context);
	n = scan();
	deepest = n > deepest ? n : deepest;
}

static bool is_in(uint64_t pc, const char *name)
{
	struct looked l;

	return look_up_call(&l, pc) && strcmp(l.is->symbol, name) == 0;
}

/* Signals ------------------------------------------------------------------------------------ */

static sigjmp_buf back;

static void on_fault(int number, siginfo_t *info, void *context)
{
	(void)number, (void)info;
	unwind(context);
	siglongjmp(back, 1);
}

static volatile unsigned depth;

#pragma GCC diagnostic ignored "-Winfinite-recursion"
static __attribute__((noinline)) unsigned overflow(unsigned n)
{
	volatile unsigned char room[40];

	depth = n;
	room[n % sizeof room] = 1;
	return overflow(n + 1) + room[n % sizeof room];
}

static void *overflow_stack(void *unused)
{
	static char room[65536];
	const stack_t alternate = { .ss_sp = room, .ss_size = sizeof room };

	expect(!sigaltstack(&alternate, NULL));
	if (!sigsetjmp(back, 1))
		(void)overflow(1);
	return unused;
}

static void check_overflow(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	size_t n = 0;

	expect(!pthread_attr_init(&attributes) && !pthread_attr_setstacksize(&attributes, 1 << 20));
	expect(!pthread_create(&thread, &attributes, overflow_stack, NULL) && !pthread_join(thread, NULL));
	while (n < found.n && is_in(pcs[n], "overflow"))
		n++;
	/* The last one may have faulted before it counted itself. */
	expect(depth > 5000 && (n == depth || n == depth + 1));
	expect(found.stop == FATHOM_STOP_ENTRY && is_in(pcs[n], "overflow_stack"));
	expect(found.n - n >= 3 && kinds[0] == FATHOM_PC_EXACT && kinds[1] == FATHOM_PC_RETURN);
}

static __attribute__((noinline)) int call_it(int (*volatile fn)(void))
{
	return fn() + 1;
}

static void check_bad_call(uintptr_t where)
{
	if (!sigsetjmp(back, 1))
		expect(call_it((int (*)(void))where) == 0);
	expect(pcs[0] == where && is_in(pcs[1], "call_it") && is_in(pcs[2], "check_bad_call"));
	expect(is_in(pcs[3], "main"));
	expect(found.stop == FATHOM_STOP_ENTRY && found.trust == FATHOM_TRUST_DECODED);
}

/* Registers ---------------------------------------------------------------------------------- */

/* Unwinds from @c with other values of some registers. */
static void unwind_from(const ucontext_t *c, uintptr_t pc, uintptr_t sp, uintptr_t fp)
{
	ucontext_t other = *c;

	other.uc_mcontext.gregs[REG_RIP] = (greg_t)pc;
	other.uc_mcontext.gregs[REG_RSP] = (greg_t)sp;
	other.uc_mcontext.gregs[REG_RBP] = (greg_t)fp;
	unwind(&other);
}

static char *map(size_t size, int protection)
{
	char *p = mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	expect(p != MAP_FAILED);
	return p;
}

static void check_registers(void)
{
	/* A page of stack between two that are not there, and code without any rule, which calls. */
	char *const area = map(3 * PAGE, PROT_NONE);
	uintptr_t *const stack = (uintptr_t *)(void *)(area + PAGE);
	uint8_t *const code = (uint8_t *)map(PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
	const uintptr_t pc = (uintptr_t)code + 64;
	const uintptr_t here = (uintptr_t)overflow; /* its rule: the return address is on top */
	const size_t n = PAGE / sizeof *stack;
	ucontext_t c;

	expect(!mprotect(area + PAGE, PAGE, PROT_READ | PROT_WRITE) && !getcontext(&c));
	memset(code, 0x90, PAGE);
	memcpy(code + 59, (const uint8_t[]){ 0xe8, 0, 0, 0, 0 }, 5); /* pc is behind a call */

	unwind_from(&c, here, (uintptr_t)area + PAGE - 8, 0);
	expect(found.n == 1 && found.stop == FATHOM_STOP_UNREADABLE);
	unwind_from(&c, here, (uintptr_t)area + 2 * PAGE - 4, 0);
	expect(found.n == 1 && found.stop == FATHOM_STOP_UNREADABLE);
	unwind_from(&c, here, 0, 0);
	expect(found.n == 1 && found.stop == FATHOM_STOP_UNREADABLE);
	unwind_from(&c, here, UINTPTR_MAX - 7, 0);
	expect(found.n == 1 && found.stop);
	unwind_from(&c, here, (uintptr_t)stack + 4, 0);
	expect(found.n <= 2 && found.stop);

	/* The stack ends in the middle of the frames. */
	stack[n - 1] = here + 1;
	unwind_from(&c, here, (uintptr_t)&stack[n - 1], 0);
	expect(found.n == 2 && pcs[1] == here + 1 && found.stop == FATHOM_STOP_UNREADABLE);

	/* A chain of frame pointers: to zeros; one that points to itself; back; nowhere; not aligned. */
	stack[0] = (uintptr_t)&stack[4];
	stack[1] = pc;
	stack[4] = (uintptr_t)&stack[8];
	stack[5] = pc;
	stack[8] = 0;
	stack[9] = 0;
	unwind_from(&c, pc, (uintptr_t)stack, (uintptr_t)stack);
	expect(found.n == 3 && found.stop == FATHOM_STOP_NO_RULE && found.trust == FATHOM_TRUST_FRAME_POINTER);
	/* Zeros end a stack in its last words only. */
	stack[4] = (uintptr_t)&stack[n - 2];
	stack[n - 2] = 0;
	stack[n - 1] = 0;
	unwind_from(&c, pc, (uintptr_t)stack, (uintptr_t)stack);
	expect(found.n == 3 && found.stop == FATHOM_STOP_ENTRY && found.trust == FATHOM_TRUST_FRAME_POINTER);
	stack[4] = (uintptr_t)&stack[4];
	unwind_from(&c, pc, (uintptr_t)stack, (uintptr_t)stack);
	expect(found.n == 2 && found.stop == FATHOM_STOP_NO_RULE);
	stack[4] = (uintptr_t)&stack[0];
	unwind_from(&c, pc, (uintptr_t)stack, (uintptr_t)stack);
	expect(found.n == 2 && found.stop == FATHOM_STOP_NO_RULE);
	stack[4] = (uintptr_t)area + 2 * PAGE;
	unwind_from(&c, pc, (uintptr_t)stack, (uintptr_t)stack);
	expect(found.n == 3 && found.stop == FATHOM_STOP_UNREADABLE);
	stack[4] = (uintptr_t)&stack[8] + 1;
	unwind_from(&c, pc, (uintptr_t)stack, (uintptr_t)stack);
	expect(found.n == 2 && found.stop == FATHOM_STOP_NO_RULE);
	/* A return address that is behind no call. */
	stack[0] = (uintptr_t)&stack[4];
	stack[1] = pc + 8;
	unwind_from(&c, pc, (uintptr_t)stack, (uintptr_t)stack);
	expect(found.n == 1 && found.stop == FATHOM_STOP_NO_RULE);
	(void)munmap(area, 3 * PAGE);
	(void)munmap(code, PAGE);
}

/* A stack of signal frames that lead to each other, each with the code by which handlers return. */
static void check_signal_frames(void)
{
	enum { RSP = 5 + 15, RIP = 5 + 16 }; /* words from sp on */
	static const uint8_t returns[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	uintptr_t *const stack = (uintptr_t *)(void *)map(PAGE, PROT_READ | PROT_WRITE);
	uint8_t *const code = (uint8_t *)map(PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
	ucontext_t c;

	expect(!getcontext(&c));
	memcpy(code + 64, returns, sizeof returns);
	for (int n = 1; n <= 3; n++) {
		for (int i = 0; i < n; i++) {
			stack[64 * i + RSP] = (uintptr_t)&stack[64 * ((i + 1) % n)];
			stack[64 * i + RIP] = (uintptr_t)code + 64;
		}
		unwind_from(&c, (uintptr_t)code + 64, (uintptr_t)stack, 0);
		expect(found.stop == FATHOM_STOP_LOOP && found.n > (size_t)n && found.n < 20);
		expect(found.trust == FATHOM_TRUST_SIGNAL && kinds[1] == FATHOM_PC_EXACT);
	}
	(void)munmap(stack, PAGE);
	(void)munmap(code, PAGE);
}

/*
 * Rules of the frame pointer, one function inside the other: by_fp needs it, save_fp has saved it,
 * lose_fp cannot tell it and has another value there, and read_fp has it where it leads itself.
 */
int by_fp(int (*next)(int (*)(void)), int (*fn)(void));
int save_fp(int (*fn)(void));
int read_fp(int (*fn)(void));
int lose_fp(int (*fn)(void));

__asm__(".text\n"
	".globl by_fp\n"
	".type by_fp,@function\n"
	"by_fp:\n"
	".cfi_startproc\n"
	"push %rbp\n"
	".cfi_adjust_cfa_offset 8\n"
	".cfi_offset rbp,-16\n"
	"mov %rsp,%rbp\n"
	".cfi_def_cfa_register rbp\n"
	"mov %rdi,%rax\n"
	"mov %rsi,%rdi\n"
	"call *%rax\n"
	"leave\n"
	".cfi_def_cfa rsp,8\n"
	"ret\n"
	".cfi_endproc\n"
	".size by_fp,.-by_fp\n"
	".globl save_fp\n"
	".type save_fp,@function\n"
	"save_fp:\n"
	".cfi_startproc\n"
	"push %rbp\n"
	".cfi_adjust_cfa_offset 8\n"
	".cfi_offset rbp,-16\n"
	"call lose_fp\n"
	"pop %rbp\n"
	".cfi_adjust_cfa_offset -8\n"
	"ret\n"
	".cfi_endproc\n"
	".size save_fp,.-save_fp\n"
	".globl read_fp\n"
	".type read_fp,@function\n"
	"read_fp:\n"
	".cfi_startproc\n"
	".cfi_escape 0x10,6,2,0x76,8\n" /* rbp is saved at rbp + 8 */
	"push %rbx\n"
	".cfi_adjust_cfa_offset 8\n"
	"call lose_fp\n"
	"pop %rbx\n"
	".cfi_adjust_cfa_offset -8\n"
	"ret\n"
	".cfi_endproc\n"
	".size read_fp,.-read_fp\n"
	".globl lose_fp\n"
	".type lose_fp,@function\n"
	"lose_fp:\n"
	".cfi_startproc\n"
	".cfi_undefined rbp\n"
	"push %rbp\n"
	".cfi_adjust_cfa_offset 8\n"
	"mov $16,%ebp\n"
	"call *%rdi\n"
	"pop %rbp\n"
	".cfi_adjust_cfa_offset -8\n"
	"ret\n"
	".cfi_endproc\n"
	".size lose_fp,.-lose_fp\n");

static __attribute__((noinline)) int called_by_lost(void)
{
	unwind(NULL);
	return (int)depth;
}

static __attribute__((noinline)) void check_frame_pointers(void)
{
	/* The second time the rules are in the cache. */
	for (int i = 0; i < 2; i++) {
		(void)by_fp(save_fp, called_by_lost);
		expect(found.stop == FATHOM_STOP_ENTRY && found.trust == FATHOM_TRUST_CFI);
		expect(is_in(pcs[2], "lose_fp") && is_in(pcs[3], "save_fp") && is_in(pcs[4], "by_fp"));
		expect(is_in(pcs[5], "check_frame_pointers") && is_in(pcs[6], "main"));
		/* Its value is not known where it would be needed. */
		(void)by_fp(read_fp, called_by_lost);
		expect(found.stop == FATHOM_STOP_REGISTER && found.n == 5);
		expect(is_in(pcs[3], "read_fp") && is_in(pcs[4], "by_fp"));
	}
}

/* A library that was not prepared ------------------------------------------------------------ */

static unsigned n_compared;
static bool is_context;

static void compare_with_backtrace(void)
{
	static void *theirs[64];
	const int n = backtrace(theirs, 64);

	unwind(NULL);
	expect(found.stop == FATHOM_STOP_ENTRY && found.trust == FATHOM_TRUST_CFI);
	/* The innermost is this function, at two places; so is the next, which called both. */
	expect((size_t)n == found.n - 1);
	for (int i = 1; i < n; i++)
		expect((uintptr_t)theirs[i] == pcs[i + 1]);
	n_compared++;
}

/* The last signal's registers, a copy of the stack from there on, and the frames that were found. */
static struct {
	uint64_t registers[17];
	unsigned char stack[16384];
	size_t size;
	uint64_t pcs[64];
	size_t n;
} sample;

static void take_sample(const ucontext_t *c)
{
	static const int order[] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
				     REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP };
	const struct iovec to = { sample.stack, sizeof sample.stack };
	struct iovec from = { NULL, sizeof sample.stack };
	ssize_t n;

	for (int i = 0; i < 17; i++)
		sample.registers[i] = (uint64_t)c->uc_mcontext.gregs[order[i]];
	from.iov_base = (void *)(uintptr_t)sample.registers[7];
	n = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
	sample.size = n > 0 ? (size_t)n : 0;
	sample.n = found.n < 64 ? found.n : 64;
	memcpy(sample.pcs, pcs, sample.n * sizeof *pcs);
}

/* A sample of this process, long after it was taken, has the frames that were found then. */
static void check_sample(size_t size, size_t least, uint8_t stop)
{
	const struct fathom_stack_sample s[2] = {
		{ .size = sizeof *s,
		  .registers = { .value = sample.registers, .known = 0x1ffff, .n = 17, .machine = EM_X86_64 },
		  .stack = sample.stack,
		  .stack_address = sample.registers[7],
		  .stack_size = size,
		  .tid = 7 },
		{ .size = sizeof *s, .registers = { .machine = EM_X86_64 } },
	};
	struct fathom_target *target;
	struct fathom_stacks *stacks;
	const struct fathom_thread *t;

	expect(!fathom_target_open_process(session, getpid(), NULL, &target, NULL));
	expect(fathom_stacks_unwind_samples(target, NULL, s, 2, &stacks, NULL) == FATHOM_E_ARGUMENT);
	expect(!fathom_stacks_unwind_samples(target, NULL, s, 1, &stacks, NULL));
	expect(fathom_stacks_count(stacks) == 1);
	t = fathom_stacks_get(stacks, 0);
	expect(t->tid == 7 && t->stop == stop && t->n_frames >= least && t->n_frames <= sample.n);
	for (size_t i = 0; i < t->n_frames; i++)
		expect(t->frames[i].pc.address == sample.pcs[i]);
	fathom_stacks_free(stacks);
	fathom_target_release(target);
}

static void on_user(int number, siginfo_t *info, void *context)
{
	static void *theirs[64];
	const int n = backtrace(theirs, 64);
	size_t at = 0;

	(void)number, (void)info;
	unwind(context);
	expect(found.stop == FATHOM_STOP_ENTRY && found.trust <= FATHOM_TRUST_SIGNAL);
	while (at < (size_t)n && (uintptr_t)theirs[at] != pcs[0])
		at++;
	expect((size_t)n - at == found.n);
	for (size_t i = 0; at + i < (size_t)n; i++)
		expect((uintptr_t)theirs[at + i] == pcs[i]);
	measure(context);
	take_sample(context);
	n_compared++;
}

static __attribute__((noinline)) int called_back(void)
{
	if (is_context)
		(void)raise(SIGUSR1);
	else
		compare_with_backtrace();
	return 1;
}

static bool is_prepared;
static bool is_cut;

/* Behind the part of an FDE that is read nothing may be invented. */
static int called_twice(void)
{
	unwind(NULL);
	expect(is_in(pcs[0], "unwind") && is_in(pcs[1], "called_twice"));
	if (!is_cut)
		expect(found.stop == FATHOM_STOP_ENTRY && found.trust == FATHOM_TRUST_CFI);
	else
		expect(found.stop == FATHOM_STOP_NO_RULE || found.trust >= FATHOM_TRUST_DECODED);
	is_cut = !is_prepared;
	return 1;
}

static void check_late(void *late)
{
	int (*const plain)(int (*)(void)) = (int (*)(int (*)(void)))dlsym(late, "late_plain");
	int (*const room)(int (*)(void), unsigned) = (int (*)(int (*)(void), unsigned))dlsym(late, "late_alloca");
	int (*const aligned)(int (*)(void), unsigned) = (int (*)(int (*)(void), unsigned))dlsym(late, "late_aligned");
	int (*const by_rbx)(int (*)(void)) = (int (*)(int (*)(void)))dlsym(late, "late_by_rbx");
	int (*const is_long)(int (*)(void)) = (int (*)(int (*)(void)))dlsym(late, "late_long");

	for (unsigned n = 1; n < 300; n += 37) {
		expect(plain(called_back) == 2);
		expect(room(called_back, n) == 3);
		expect(aligned(called_back, n) == 4);
	}
	is_context = true;
	expect(plain(called_back) == 2 && room(called_back, 9) == 3 && aligned(called_back, 9) == 4);
	/* The interrupted frame's registers are all known. */
	expect(by_rbx(called_back) == 1);
	is_context = false;
	expect(n_compared == 31);
	expect(is_long(called_twice) == 1);
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	void *late;

	if (argc < 2)
		return 2;
	start(FATHOM_SELF_UNWIND);
	(void)sigaction(SIGSEGV, &action, NULL);
	(void)sigaction(SIGBUS, &action, NULL);
	check_overflow();
	check_bad_call(0);
	check_bad_call(0x1000);
	check_bad_call(UINT64_C(0x7fff00000000) + 1);
	check_registers();
	check_signal_frames();
	check_frame_pointers();
	late = dlopen(argv[1], RTLD_NOW);
	action.sa_sigaction = on_user;
	(void)sigaction(SIGUSR1, &action, NULL);
	expect(late);
	if (late)
		check_late(late);
	/* The same, prepared: rules that cannot say it are taken from what is in memory. */
	expect(!fathom_self_refresh(self, NULL));
	n_compared = 0;
	is_prepared = true;
	is_cut = false;
	if (late)
		check_late(late);
	/* Whole; cut off in the middle; nothing of the stack. */
	check_sample(sample.size, sample.n, FATHOM_STOP_ENTRY);
	check_sample(64, 1, FATHOM_STOP_UNREADABLE);
	check_sample(0, 1, FATHOM_STOP_UNREADABLE);
	expect(deepest > 2048 && deepest < 8192);
	printf("stack %zu\n", deepest);
	return end();
}
