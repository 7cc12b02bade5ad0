// SPDX-License-Identifier: MIT
// alike NAME [N]: makes code, runs it, and does what a tracer easily changes: it dies, runs another
// program, waits in system calls, reads its flags and its code. Prints as promises does.
#include <atomic>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "../../lib/programs/others_wait.h"
#include "making.h"

// Code is copied from here. It has the arguments (next, argument, other), where nothing else is said.
__asm__(R"(
	.pushsection made, "aw"
# Returns the argument and 1.
leaf:	lea 1(%rsi), %rax
	ret
leaf_end:

# Returns next(argument) and 1.
calls:	sub $8, %rsp
calls_1:
	mov %rdi, %rax
	mov %rsi, %rdi
	call *%rax
	inc %rax
	add $8, %rsp
calls_2:
	ret
calls_end:

# Returns the word at next.
reads:	mov (%rdi), %rax
	ret
reads_end:

# Returns the flags.
flags:	pushfq
flags_1:
	pop %rax
flags_2:
	ret
flags_end:

# Pushes the flags, and takes them back.
flags_back:
	pushfq
flags_back_1:
	lea 1(%rsi), %rax
	popfq
flags_back_2:
	ret
flags_back_end:

# Returns the flags that getpid() has left in %r11.
flags_of_call:
	mov $39, %eax
	syscall
	mov %r11, %rax
	ret
flags_of_call_end:

# read(next, argument, other), and 1.
takes:	xor %eax, %eax
	syscall
	inc %rax
	ret
takes_end:

# fork()
forks:	mov $57, %eax
	syscall
	ret
forks_end:

# Keeps rbx, and calls next with the address of where.
keeps:	push %rbx
keeps_1:
	mov %rdi, %rax
	mov %rsp, %rdi
	call *%rax
	pop %rbx
keeps_2:
	ret
keeps_end:

# Is called with the argument alone, and returns by a jump.
by_jump:
	pop %rcx
	lea 1(%rdi), %rax
	jmp *%rcx
by_jump_end:
	.popsection
)");

CODE(leaf);
CODE(calls);
CODE(reads);
CODE(flags);
CODE(flags_back);
CODE(flags_of_call);
CODE(takes);
CODE(forks);
CODE(keeps);
CODE(by_jump);
LABEL(calls_1);
LABEL(calls_2);
LABEL(flags_1);
LABEL(flags_2);
LABEL(flags_back_1);
LABEL(flags_back_2);
LABEL(keeps_1);
LABEL(keeps_2);

// Instructions of a call, by hand.
enum {
	LEAF = 2,
	CALLS = 7,
	FLAGS = 3,
	FLAGS_BACK = 4,
	FLAGS_OF_CALL = 4,
	TAKES = 4,
	FORKS = 3,
	KEEPS = 6,
	BY_JUMP = 3,
};

static made *make_leaf()
{
	return MAKE(leaf, rule(FATHOM_JIT_PUSHED));
}

static made *make_calls()
{
	const fathom_jit_event events[] = {
		{ AT(calls_1, calls), 8, 0, FATHOM_JIT_SUB, 0 },
		{ AT(calls_2, calls), 8, 0, FATHOM_JIT_ADD, 0 },
	};

	return MAKE(calls, rule_of(events, 2));
}

static pthread_t start(void *(*run)(void *))
{
	pthread_t thread;

	require(!pthread_create(&thread, nullptr, run, nullptr), "pthread_create");
	return thread;
}

// ---- ends -------------------------------------------------------------------------------------

static std::atomic<long> idle;

static void *wait_forever(void *)
{
	for (idle++;;)
		pause();
	return nullptr;
}

// Starts @n threads that do nothing.
static void start_idle()
{
	for (long i = 0; i < n; i++)
		start(wait_forever);
	while (idle < n)
		usleep(1000);
	// They are in the system call then.
	wait_for_others(nullptr, 0);
}

// The first thread dies in made code.
static void run_dies()
{
	made *code = MAKE(reads, rule(FATHOM_JIT_PUSHED));

	start_idle();
	code(nullptr, 0, nullptr);
}

static void *loop(void *code)
{
	for (long i = 0;; i++)
		require(reinterpret_cast<made *>(code)(plain, i, nullptr) == i + 1, "loop");
	return nullptr;
}

// Runs made code until somebody kills it.
static void run_loops()
{
	made *code = make_calls();

	start_idle();
	code(plain, 0, nullptr);
	printf("pid %d\n", getpid());
	loop(reinterpret_cast<void *>(code));
}

static made *looping;

static void *loop_in_thread(void *)
{
	return loop(reinterpret_cast<void *>(looping));
}

// Becomes another program after @n microseconds: a shell, or this one anew.
static void *replace(void *)
{
	usleep(static_cast<useconds_t>(n));
	if (n & 1)
		execl("/proc/self/exe", "alike", "status", "7", nullptr);
	else
		execl("/bin/sh", "sh", "-c", "exit 7", nullptr);
	require(false, "exec");
	return nullptr;
}

static void run_replaced_by_other()
{
	looping = make_calls();
	start(replace);
	loop_in_thread(nullptr);
}

static void run_replaced_by_first()
{
	looping = make_calls();
	start(loop_in_thread);
	replace(nullptr);
}

static void run_status()
{
	require(make_calls()(plain, 5, nullptr) == 6, "calls");
	exit(static_cast<int>(n));
}

// ---- memory -----------------------------------------------------------------------------------

// Sizes of mprotect() that end within a page: the kernel takes all of it.
static void run_unrounded()
{
	static const size_t sizes[] = { 1, 100, 4095, 4097, 4100 };
	made *first = make_leaf();

	start_idle();
	for (long i = 0; i < 10; i++) {
		require(!mprotect(memory, sizes[i % 5], PROT_READ | PROT_WRITE), "mprotect");
		made *code = make_leaf();

		require(!mprotect(memory, sizes[i % 5], PROT_READ | PROT_EXEC), "mprotect");
		require(code(nullptr, i, nullptr) == i + 1, "new code");
		require(first(nullptr, i, nullptr) == i + 1, "old code");
	}
	expect(10 * 2 * LEAF);
}

static sigjmp_buf after_fault;

static void fault(int, siginfo_t *info, void *)
{
	printf("fault: code %d, at %#tx, key %#x\n", info->si_code, static_cast<unsigned char *>(info->si_addr) - memory,
	       info->si_code == SEGV_PKUERR ? info->si_pkey : 0);
	siglongjmp(after_fault, 1);
}

// Reads code that can be executed, and nothing else: where the processor has protection keys, that faults.
static void run_execute_only()
{
	made *code = make_leaf();
	struct sigaction action = {};

	action.sa_sigaction = fault;
	action.sa_flags = SA_SIGINFO;
	require(!sigaction(SIGSEGV, &action, nullptr), "sigaction");
	require(!mprotect(memory, 4096, PROT_EXEC), "mprotect");
	require(code(nullptr, 1, nullptr) == 2, "code");
	if (!sigsetjmp(after_fault, 1))
		printf("byte %#x\n", *const_cast<volatile unsigned char *>(memory));
	require(code(nullptr, 2, nullptr) == 3, "code");
	expect(2 * LEAF);
}

// The same of the last of three such pages of code, of which the one between is data by now.
static void run_execute_only_parts()
{
	enum { PAGE = 4096 };
	const fathom_jit_unwind pushed = rule(FATHOM_JIT_PUSHED);
	struct sigaction action = {};
	made *code[2];

	for (size_t i = 0; i < 2; i++)
		code[i] = reinterpret_cast<made *>(memcpy(memory + 2 * PAGE * i, leaf, leaf_end - leaf));
	publish("three pages", memory, 3 * PAGE, &pushed);
	action.sa_sigaction = fault;
	action.sa_flags = SA_SIGINFO;
	require(!sigaction(SIGSEGV, &action, nullptr), "sigaction");
	require(!mprotect(memory, 3 * PAGE, PROT_EXEC), "mprotect");
	require(code[0](nullptr, 1, nullptr) == 2, "code");
	require(!mprotect(memory + PAGE, PAGE, PROT_READ | PROT_WRITE), "mprotect");
	memory[PAGE] = 1;
	for (size_t i = 0; i < 2; i++) {
		if (!sigsetjmp(after_fault, 1))
			printf("byte %#x\n", *const_cast<volatile unsigned char *>(memory + 2 * PAGE * i));
		require(code[i](nullptr, 2, nullptr) == 3, "code");
	}
	expect(3 * LEAF);
}

// ---- flags ------------------------------------------------------------------------------------

enum { TRAP_FLAG = 1 << 8 };

static void run_flags()
{
	const fathom_jit_event events[] = {
		{ AT(flags_1, flags), 8, 0, FATHOM_JIT_SUB, 0 },
		{ AT(flags_2, flags), 8, 0, FATHOM_JIT_ADD, 0 },
	};
	made *code = MAKE(flags, rule_of(events, 2));

	for (long i = 0; i < 10; i++)
		printf("trap flag %ld\n", code(nullptr, 0, nullptr) & TRAP_FLAG);
	expect(10 * FLAGS);
}

static void run_flags_back()
{
	const fathom_jit_event events[] = {
		{ AT(flags_back_1, flags_back), 8, 0, FATHOM_JIT_SUB, 0 },
		{ AT(flags_back_2, flags_back), 8, 0, FATHOM_JIT_ADD, 0 },
	};
	made *code = MAKE(flags_back, rule_of(events, 2));

	for (long i = 0; i < 10; i++)
		require(code(nullptr, i, nullptr) == i + 1, "flags");
	expect(10 * FLAGS_BACK);
}

static void run_flags_of_call()
{
	made *code = MAKE(flags_of_call, rule(FATHOM_JIT_PUSHED));

	for (long i = 0; i < 10; i++)
		printf("trap flag %ld\n", code(nullptr, 0, nullptr) & TRAP_FLAG);
	expect(10 * FLAGS_OF_CALL);
}

// ---- system calls of made code ----------------------------------------------------------------

using reading = long(int fd, void *to, size_t size);

static int ends[2];
static made *before_writing;

static reading *make_reading()
{
	require(!pipe(ends), "pipe");
	return reinterpret_cast<reading *>(
		reinterpret_cast<uintptr_t>(MAKE(takes, rule(FATHOM_JIT_PUSHED))));
}

static void write_letter()
{
	require(write(ends[1], "x", 1) == 1, "write");
}

// Writes after 300 ms, and calls made code @n times before.
static void *write_late(void *)
{
	usleep(300000);
	for (long i = 0; i < n; i++)
		require(before_writing(plain, i, nullptr) == i + 1, "before writing");
	write_letter();
	return nullptr;
}

static void run_waits()
{
	reading *code = make_reading();
	char letter = 0;
	pthread_t writer;

	before_writing = make_calls();
	writer = start(write_late);
	require(code(ends[0], &letter, 1) == 2 && letter == 'x', "letter");
	require(!pthread_join(writer, nullptr), "join");
	expect(n * CALLS + TAKES);
}

static void on_alarm(int)
{
	write_letter();
}

// The handler of a signal that interrupts the system call writes what it waits for.
static void run_interrupted()
{
	const itimerval once = { {}, { 0, 100000 } };
	reading *code = make_reading();
	struct sigaction sa = {};
	char letter = 0;

	sa.sa_handler = on_alarm;
	sa.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &sa, nullptr);
	setitimer(ITIMER_REAL, &once, nullptr);
	require(code(ends[0], &letter, 1) == 2 && letter == 'x', "letter");
}

// Made code makes a child, which runs made code.
static void run_forks()
{
	made *child = MAKE(forks, rule(FATHOM_JIT_PUSHED));
	made *code = make_leaf();
	int status;

	for (long i = 0; i < 3; i++) {
		if (!child(nullptr, 0, nullptr))
			_exit(code(nullptr, i, nullptr) == i + 1 ? 5 : 6);
		require(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 5, "child");
		require(code(nullptr, i, nullptr) == i + 1, "parent");
	}
	expect(3 * (FORKS + LEAF));
}

// ---- frames -----------------------------------------------------------------------------------

// What a collector does that moves the object which is kept at @slot.
static long move(long slot)
{
	*reinterpret_cast<volatile long *>(slot) += 0x1111;
	return 0;
}

static void run_moves()
{
	const fathom_jit_event events[] = {
		{ AT(keeps_1, keeps), 0, RBX, FATHOM_JIT_PUSH, 0 },
		{ AT(keeps_2, keeps), 0, RBX, FATHOM_JIT_POP, 0 },
	};
	made *code = MAKE(keeps, rule_of(events, 2));

	for (long i = 0; i < 10; i++) {
		long object = i;
		callback *next = move;

		// Below the red zone of this function.
		__asm__ volatile("mov %1, %%rbx\n\t"
				 "sub $128, %%rsp\n\t"
				 "call *%2\n\t"
				 "add $128, %%rsp\n\t"
				 "mov %%rbx, %1"
				 : "+D"(next), "+r"(object)
				 : "r"(code)
				 : "rax", "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory",
				   "cc");
		require(object == i + 0x1111, "moved");
	}
	expect(10 * KEEPS);
}

// Publishes by_jump by call frame information (DWARF 5, 6.4.2), made by hand.
static made *make_by_jump()
{
	// As of LSB 5.0, 10.6.1. Of x86-64, rcx is register 2, rsp 7, and 16 is the return address.
	unsigned char frames[] = {
		// CIE: size, id, version, "zR", code by 1, data by -8, return address, absolute addresses
		20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0,
		// DW_CFA_def_cfa rsp+8; DW_CFA_offset: the return address at CFA-8; padding
		0x0c, 7, 8, 0x90, 1, 0, 0,
		// FDE: size, distance of the CIE, address and size of the code, no augmentation
		28, 0, 0, 0, 28, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		// DW_CFA_advance_loc 1; DW_CFA_def_cfa_offset 0; DW_CFA_register: 16 is in rcx; padding
		0x41, 0x0e, 0, 0x09, 16, 2, 0
	};
	enum { ADDRESS = 32, SIZE = 40 };
	unsigned char *at = copy(by_jump, by_jump_end);
	const uint64_t size = AT(by_jump_end, by_jump);
	fathom_jit_unwind u = rule(FATHOM_JIT_EH_FRAME);

	memcpy(frames + ADDRESS, &at, sizeof at);
	memcpy(frames + SIZE, &size, sizeof size);
	u.eh_frame = frames;
	u.eh_frame_size = sizeof frames;
	publish("by_jump", at, size, &u);
	return reinterpret_cast<made *>(at);
}

static void run_returns_by_jump()
{
	callback *code = as_callback(make_by_jump());
	made *caller = make_calls();

	// To made code, and to C.
	for (long i = 0; i < 10; i++) {
		require(caller(code, i, nullptr) == i + 2, "to made code");
		require(code(i) == i + 1, "to C");
	}
	expect(10 * (CALLS + 2 * BY_JUMP));
}

static const struct named runs[] = {
	{ "dies", run_dies },
	{ "loops", run_loops },
	{ "replaced-by-other", run_replaced_by_other },
	{ "replaced-by-first", run_replaced_by_first },
	{ "status", run_status },
	{ "unrounded", run_unrounded },
	{ "execute-only", run_execute_only },
	{ "execute-only-parts", run_execute_only_parts },
	{ "flags", run_flags },
	{ "flags-back", run_flags_back },
	{ "flags-of-call", run_flags_of_call },
	{ "waits", run_waits },
	{ "interrupted", run_interrupted },
	{ "forks", run_forks },
	{ "moves", run_moves },
	{ "returns-by-jump", run_returns_by_jump },
};

int main(int argc, char **argv)
{
	return choose(runs, argc, argv);
}
