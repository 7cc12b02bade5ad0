// SPDX-License-Identifier: MIT
// promises NAME [N]: makes code, publishes it with <fathom/jit.h> and runs it. Prints "instructions N",
// how many of its instructions run, counted by hand from the text below, and "planted ADDRESS", where one
// breaks its description.
#include <atomic>
#include <csetjmp>
#include <pthread.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "making.h"

// Code is copied from here. It has the arguments (next, argument, other): it calls next(argument) and adds
// 1, where nothing else is said. NAME_planted is the instruction that breaks the description.
__asm__(R"(
	.pushsection made, "aw"
frame:	push %rbp
	mov %rsp, %rbp
frame_made:
	mov %rdi, %rax
	mov %rsi, %rdi
	call *%rax
	inc %rax
	pop %rbp
frame_left:
	ret
frame_end:

pushes:	push %rbx
pushes_1:
pushes_planted:
	sub $16, %rsp
pushes_2:
	mov %rdi, %rax
	mov %rsi, %rdi
	mov $7, %ebx
	call *%rax
	inc %rax
	add $16, %rsp
pushes_3:
	pop %rbx
pushes_4:
	ret
pushes_end:

clobbers:
	sub $8, %rsp
clobbers_1:
	mov %rdi, %rax
	mov %rsi, %rdi
clobbers_planted:
	mov $7, %ebx
	call *%rax
	inc %rax
	add $8, %rsp
clobbers_2:
	ret
clobbers_end:

saves:	sub $24, %rsp
saves_1:
saves_planted:
	mov %rbx, 8(%rsp)
saves_2:
	mov $7, %ebx
	mov %rdi, %rax
	mov %rsi, %rdi
	call *%rax
	mov 8(%rsp), %rbx
saves_3:
	inc %rax
	add $24, %rsp
saves_4:
	ret
saves_end:

popped:	mov %rdi, %rax
	mov %rsi, %rdi
popped_planted:
	pop %rcx
popped_1:
	nop
	push %rcx
popped_2:
	sub $8, %rsp
popped_3:
	call *%rax
	inc %rax
	add $8, %rsp
popped_4:
	ret
popped_end:

reserved:
	mov %rdi, %rax
	mov %rsi, %rdi
	call *%rax
	inc %rax
	ret
reserved_end:

takes:	push %rbp
	mov %rdi, %rax
	mov %rsi, %rdi
takes_planted:
	mov %rsi, %rbp
	call *%rax
	inc %rax
	pop %rbp
	ret
takes_end:

leaf:
leaf_planted:
	lea 1(%rsi), %rax
	ret
leaf_end:

# Entered with 16 bytes above the return address; leaves by a jump to %rdx.
deep:	lea 1(%rsi), %rax
	jmp *%rdx
deep_end:

# Changes where it returns to: to %rdx, which goes back.
returns:
	mov (%rsp), %rcx
returns_planted:
	mov %rdx, (%rsp)
	ret
returns_end:

# next(argument) as its last act, without a frame.
tail:	mov %rdi, %rax
	mov %rsi, %rdi
	jmp *%rax
tail_end:

# Calls itself, argument times; adds 1 each time.
recurses:
	sub $8, %rsp
recurses_1:
	mov %rsi, %rax
	test %rsi, %rsi
	jz 1f
	dec %rsi
	call recurses
	inc %rax
1:	add $8, %rsp
recurses_2:
	ret
recurses_end:

# Waits until the number at next is the argument, then counts it up.
waits:	pause
	cmp %rsi, (%rdi)
	jne waits
	lock incq (%rdi)
	ret
waits_end:

# Reads the word at next.
reads:	mov (%rdi), %rax
	inc %rax
	ret
reads_end:

# Keeps rbx, and writes where it is kept.
overwrites:
	push %rbx
overwrites_1:
overwrites_planted:
	movq $7, (%rsp)
	pop %rbx
overwrites_2:
	ret
overwrites_end:

# Switches stacks: keeps its own at next, takes that at argument.
switches:
	push %rbx
	push %rbp
	push %r12
	push %r13
	push %r14
	push %r15
	mov %rsp, (%rdi)
	mov (%rsi), %rsp
switches_pops:
	pop %r15
	pop %r14
	pop %r13
	pop %r12
	pop %rbp
	pop %rbx
	ret
switches_end:

# A breakpoint of its own.
traps:	int3
	lea 1(%rsi), %rax
	ret
traps_end:
	.popsection

	.text
# Calls next with 16 bytes on the stack: (next, argument).
shim_deep:
	sub $16, %rsp
	lea 1f(%rip), %rdx
	jmp *%rdi
1:	add $16, %rsp
	ret
shim_back:
	jmp *%rcx
)");

extern "C" {
long shim_deep(void *code, long argument);
extern const char shim_back[];
}

CODE(frame);
CODE(pushes);
CODE(clobbers);
CODE(saves);
CODE(popped);
CODE(reserved);
CODE(takes);
CODE(leaf);
CODE(deep);
CODE(returns);
CODE(tail);
CODE(recurses);
CODE(waits);
CODE(reads);
CODE(overwrites);
CODE(switches);
CODE(traps);
LABEL(frame_made);
LABEL(frame_left);
LABEL(pushes_1);
LABEL(pushes_2);
LABEL(pushes_3);
LABEL(pushes_4);
LABEL(pushes_planted);
LABEL(clobbers_1);
LABEL(clobbers_2);
LABEL(clobbers_planted);
LABEL(saves_1);
LABEL(popped_1);
LABEL(popped_2);
LABEL(popped_3);
LABEL(popped_4);
LABEL(popped_planted);
LABEL(saves_2);
LABEL(saves_3);
LABEL(saves_4);
LABEL(saves_planted);
LABEL(takes_planted);
LABEL(leaf_planted);
LABEL(returns_planted);
LABEL(recurses_1);
LABEL(recurses_2);
LABEL(overwrites_1);
LABEL(overwrites_2);
LABEL(overwrites_planted);
LABEL(switches_pops);

// Instructions of a call, by hand.
enum {
	FRAME = 8,
	PUSHES = 10,
	CLOBBERS = 8,
	SAVES = 10,
	RESERVED = 5,
	TAKES = 8,
	LEAF = 2,
	DEEP = 2,
	RETURNS = 3,
	TAIL = 3,
	READS = 3,
	TRAPS = 3,
	// Those up to its call, and those of frame.
	FRAME_CALLS = 5,
	PUSHES_CALLS = 6,
};

static void plant(made *at, const unsigned char *label, const unsigned char *from)
{
	printf("planted %p\n", reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(at) +
							static_cast<uintptr_t>(label - from)));
}

static made *make_frame()
{
	fathom_jit_unwind u = rule(FATHOM_JIT_FRAME_POINTER);

	u.from = AT(frame_made, frame);
	u.until = AT(frame_left, frame);
	return MAKE(frame, u);
}

static const fathom_jit_event pushes_events[] = {
	{ AT(pushes_1, pushes), 0, RBX, FATHOM_JIT_PUSH, 0 },
	{ AT(pushes_2, pushes), 16, 0, FATHOM_JIT_SUB, 0 },
	{ AT(pushes_3, pushes), 16, 0, FATHOM_JIT_ADD, 0 },
	{ AT(pushes_4, pushes), 0, RBX, FATHOM_JIT_POP, 0 },
};

static made *make_pushes()
{
	return MAKE(pushes, rule_of(pushes_events, 4));
}

static made *make_recurses()
{
	const fathom_jit_event events[] = {
		{ AT(recurses_1, recurses), 8, 0, FATHOM_JIT_SUB, 0 },
		{ AT(recurses_2, recurses), 8, 0, FATHOM_JIT_ADD, 0 },
	};

	return MAKE(recurses, rule_of(events, 2));
}

// A function that makes a frame, and calls code that never writes the frame pointer.
__attribute__((noinline, optimize("no-omit-frame-pointer"))) static long shim(made *code, callback *next,
									      long argument)
{
	const long value = code(next, argument, nullptr);

	__asm__ volatile("" ::: "memory");
	return value;
}

// ---- each kind of description -----------------------------------------------------------------

static void run_frame()
{
	require(make_frame()(plain, 5, nullptr) == 6, "frame");
	expect(FRAME);
}

static void run_events()
{
	require(make_pushes()(plain, 5, nullptr) == 6, "pushes");
	expect(PUSHES);
}

static void run_saves()
{
	const fathom_jit_event events[] = {
		{ AT(saves_1, saves), 24, 0, FATHOM_JIT_SUB, 0 },
		{ AT(saves_2, saves), 8, RBX, FATHOM_JIT_SAVE, 0 },
		{ AT(saves_3, saves), 0, RBX, FATHOM_JIT_RESTORE, 0 },
		{ AT(saves_4, saves), 24, 0, FATHOM_JIT_ADD, 0 },
	};

	require(MAKE(saves, rule_of(events, 4))(plain, 5, nullptr) == 6, "saves");
	expect(SAVES);
}

static void run_reserved()
{
	require(shim(MAKE(reserved, rule(FATHOM_JIT_RESERVED)), plain, 5) == 6, "reserved");
	expect(RESERVED);
}

static void run_pushed()
{
	fathom_jit_unwind u = rule(FATHOM_JIT_PUSHED);

	require(MAKE(leaf, u)(nullptr, 5, nullptr) == 6, "leaf");
	u.frame = 16;
	require(shim_deep(reinterpret_cast<void *>(MAKE(deep, u)), 5) == 6, "deep");
	expect(LEAF + DEEP);
}

// ---- planted lies -----------------------------------------------------------------------------

static void lie_frame_size()
{
	fathom_jit_unwind u = rule(FATHOM_JIT_PUSHED);
	made *code;

	u.frame = 8;
	code = MAKE(leaf, u);
	plant(code, leaf_planted, leaf);
	code(nullptr, 5, nullptr);
}

static void lie_no_event()
{
	const fathom_jit_event events[] = { pushes_events[0], pushes_events[3] };
	made *code = MAKE(pushes, rule_of(events, 2));

	plant(code, pushes_planted, pushes);
	code(plain, 5, nullptr);
}

static void lie_late()
{
	fathom_jit_event events[4];
	made *code;

	memcpy(events, pushes_events, sizeof events);
	// Behind the instruction that follows: a mov of 3 bytes.
	events[1].offset += 3;
	code = MAKE(pushes, rule_of(events, 4));
	plant(code, pushes_planted, pushes);
	code(plain, 5, nullptr);
}

// The return address is in @reg for two instructions.
static made *make_popped(uint16_t reg)
{
	const fathom_jit_event events[] = {
		{ AT(popped_1, popped), 0, reg, FATHOM_JIT_POP_RETURN, 0 },
		{ AT(popped_2, popped), 0, reg, FATHOM_JIT_PUSH_RETURN, 0 },
		{ AT(popped_3, popped), 8, 0, FATHOM_JIT_SUB, 0 },
		{ AT(popped_4, popped), 8, 0, FATHOM_JIT_ADD, 0 },
	};

	return MAKE(popped, rule_of(events, 4));
}

static void run_popped()
{
	require(make_popped(FATHOM_JIT_RCX)(plain, 5, nullptr) == 6, "popped");
	expect(10);
}

static void lie_popped()
{
	made *code = make_popped(FATHOM_JIT_RDX);

	plant(code, popped_planted, popped);
	code(plain, 5, nullptr);
}

static void lie_clobber()
{
	const fathom_jit_event events[] = {
		{ AT(clobbers_1, clobbers), 8, 0, FATHOM_JIT_SUB, 0 },
		{ AT(clobbers_2, clobbers), 8, 0, FATHOM_JIT_ADD, 0 },
	};
	made *code = MAKE(clobbers, rule_of(events, 2));

	plant(code, clobbers_planted, clobbers);
	__asm__ volatile("mov $12345, %%rbx" ::: "rbx");
	code(plain, 5, nullptr);
	__asm__ volatile("" ::: "rbx");
}

static void lie_reserved()
{
	made *code = MAKE(takes, rule(FATHOM_JIT_RESERVED));

	plant(code, takes_planted, takes);
	shim(code, plain, 5);
}

static void lie_slot()
{
	const fathom_jit_event events[] = {
		{ AT(saves_1, saves), 24, 0, FATHOM_JIT_SUB, 0 },
		{ AT(saves_2, saves), 16, RBX, FATHOM_JIT_SAVE, 0 },
		{ AT(saves_3, saves), 0, RBX, FATHOM_JIT_RESTORE, 0 },
		{ AT(saves_4, saves), 24, 0, FATHOM_JIT_ADD, 0 },
	};
	made *code = MAKE(saves, rule_of(events, 4));

	plant(code, saves_planted, saves);
	code(plain, 5, nullptr);
}

static void lie_kept()
{
	const fathom_jit_event events[] = {
		{ AT(overwrites_1, overwrites), 0, RBX, FATHOM_JIT_PUSH, 0 },
		{ AT(overwrites_2, overwrites), 0, RBX, FATHOM_JIT_POP, 0 },
	};
	made *code = MAKE(overwrites, rule_of(events, 2));

	plant(code, overwrites_planted, overwrites);
	__asm__ volatile("mov $12345, %%rbx" ::: "rbx");
	code(nullptr, 0, nullptr);
	__asm__ volatile("" ::: "rbx");
}

static void lie_early()
{
	// The frame pointer is set by the instruction behind the push.
	const fathom_jit_event events[] = {
		{ 1, 0, RBP, FATHOM_JIT_PUSH, 0 },
		{ 1, 0, 0, FATHOM_JIT_SET_FRAME, 0 },
		{ AT(frame_left, frame), 0, 0, FATHOM_JIT_END_FRAME, 0 },
		{ AT(frame_left, frame), 0, RBP, FATHOM_JIT_POP, 0 },
	};
	made *code = MAKE(frame, rule_of(events, 4));

	plant(code, frame, frame);
	code(plain, 5, nullptr);
}

static void lie_return()
{
	fathom_jit_unwind u = rule(FATHOM_JIT_PUSHED);
	made *code = MAKE(returns, u);

	plant(code, returns_planted, returns);
	code(nullptr, 0, shim_back);
}

static void run_undescribed()
{
	fathom_jit_unwind u = rule(FATHOM_JIT_NONE);
	made *code = MAKE(leaf, u);

	plant(code, leaf, leaf);
	code(nullptr, 5, nullptr);
	expect(0);
}

// ---- how programs go through made code --------------------------------------------------------

static void run_tail()
{
	made *last = MAKE(leaf, rule(FATHOM_JIT_PUSHED));
	made *first = MAKE(tail, rule(FATHOM_JIT_PUSHED));
	made *framed = make_frame();
	const long address = reinterpret_cast<long>(plain);

	for (long i = 0; i < 10; i++) {
		// To made code, which adds 1; to C; and from made code that has called it.
		require(first(as_callback(last), i, nullptr) == i + 1, "tail to made code");
		require(first(plain, i, nullptr) == i, "tail to C");
		require(framed(as_callback(first), address, nullptr) == address + 1, "tail of a callee");
	}
	expect(10 * (TAIL + LEAF + TAIL + FRAME + TAIL));
}

// The function that makes the frame is made code, too.
static void run_made_shim()
{
	made *code = MAKE(reserved, rule(FATHOM_JIT_RESERVED));
	made *framed = make_frame();
	const long address = reinterpret_cast<long>(plain);

	for (long i = 0; i < 10; i++)
		require(framed(as_callback(code), address, nullptr) == address + 2, "made shim");
	expect(10 * (FRAME + RESERVED));
}

static made *through_shim;

static long deeper(long depth)
{
	return depth ? shim(through_shim, deeper, depth - 1) : 0;
}

static void run_reserved_deep()
{
	through_shim = MAKE(reserved, rule(FATHOM_JIT_RESERVED));
	require(deeper(100) == 100, "deeper");
	require(shim(through_shim, deeper, 100) == 101, "deeper");
	expect(201 * RESERVED);
}

static void run_recursion()
{
	require(make_recurses()(nullptr, 1000, nullptr) == 1000, "recurses");
	// Of each but the last: sub mov test jz dec call inc add ret; of the last: sub mov test jz add ret.
	expect(1000 * 9 + 6);
}

static made *back[2];

static long down(long depth)
{
	const long value = depth ? back[depth & 1](down, depth - 1, nullptr) : 0;

	__asm__ volatile("" ::: "memory");
	return value;
}

static void run_callbacks()
{
	back[0] = make_frame();
	back[1] = make_pushes();
	require(down(2000) == 2000, "callbacks");
	expect(1000 * (FRAME + PUSHES));
}

static long throws(long depth)
{
	if (!depth)
		throw 7;
	return back[depth & 1](throws, depth - 1, nullptr);
}

static void run_exceptions()
{
	long caught = 0;

	back[0] = make_frame();
	back[1] = make_pushes();
	for (long i = 0; i < 50; i++)
		try {
			throws(10);
		} catch (int value) {
			caught += value;
		}
	require(caught == 350, "caught");
	expect(50 * 5 * (FRAME_CALLS + PUSHES_CALLS));
}

static jmp_buf away;

static long jumps(long depth)
{
	if (!depth)
		longjmp(away, 1);
	return back[depth & 1](jumps, depth - 1, nullptr);
}

static void run_longjmp()
{
	static volatile long i;

	back[0] = make_frame();
	back[1] = make_pushes();
	for (i = 0; i < 50; i++)
		if (!setjmp(away))
			jumps(10);
	expect(50 * 5 * (FRAME_CALLS + PUSHES_CALLS));
}

static void *call_often(void *data)
{
	made *code = reinterpret_cast<made *>(data);
	long sum = 0;

	for (long i = 0; i < n; i++)
		sum += code(plain, i, nullptr);
	require(sum == n * (n - 1) / 2 + n, "sum of a thread");
	return nullptr;
}

static void run_threads()
{
	void *code[] = { reinterpret_cast<void *>(make_frame()), reinterpret_cast<void *>(make_pushes()) };
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], nullptr, call_often, code[i & 1]);
	for (pthread_t t : threads)
		pthread_join(t, nullptr);
	expect(2 * n * (FRAME + PUSHES));
}

static std::atomic<long> turn;
static made *waiting;

static void *take_turns(void *data)
{
	const long first = data != nullptr;

	for (long i = 0; i < 20; i++)
		waiting(reinterpret_cast<callback *>(&turn), 2 * i + first, nullptr);
	return nullptr;
}

// Two threads wait for each other within made code.
static void run_waiting()
{
	pthread_t other;

	waiting = MAKE(waits, rule(FATHOM_JIT_PUSHED));
	pthread_create(&other, nullptr, take_turns, &turn);
	take_turns(nullptr);
	pthread_join(other, nullptr);
	require(turn == 40, "turns");
}

static ucontext_t contexts[3];

// A step of coroutine @i, called by made code: lets the other one go on.
template <int i> static long resume(long argument)
{
	swapcontext(&contexts[i], &contexts[!i]);
	return argument;
}

template <int i> static void coroutine()
{
	for (long k = 0; k < 10; k++)
		require(back[i](resume<i>, k, nullptr) == k + 1, "coroutine");
}

// Two coroutines, each within made code of the same two functions.
static void run_coroutines()
{
	static char stacks[2][65536];

	back[0] = make_frame();
	back[1] = make_pushes();
	for (int i = 0; i < 2; i++) {
		getcontext(&contexts[i]);
		contexts[i].uc_stack.ss_sp = stacks[i];
		contexts[i].uc_stack.ss_size = sizeof stacks[i];
		contexts[i].uc_link = i ? &contexts[2] : &contexts[1];
		makecontext(&contexts[i], i ? coroutine<1> : coroutine<0>, 0);
	}
	swapcontext(&contexts[2], &contexts[0]);
	expect(10 * (FRAME + PUSHES));
}

static void *switched[2];
static made *switch_to;

static void run_on_other_stack()
{
	for (;;)
		switch_to(reinterpret_cast<callback *>(&switched[1]), reinterpret_cast<long>(&switched[0]),
			  nullptr);
}

// Made code that switches stacks: first to a new one, which no call has led to.
static void run_switch()
{
	static char stack[65536] __attribute__((aligned(16)));
	const uint32_t pops = AT(switches_pops, switches);
	const fathom_jit_event events[] = {
		{ 1, 0, RBX, FATHOM_JIT_PUSH, 0 },	{ 2, 0, RBP, FATHOM_JIT_PUSH, 0 },
		{ 4, 0, 12, FATHOM_JIT_PUSH, 0 },	{ 6, 0, 13, FATHOM_JIT_PUSH, 0 },
		{ 8, 0, 14, FATHOM_JIT_PUSH, 0 },	{ 10, 0, 15, FATHOM_JIT_PUSH, 0 },
		{ pops + 2, 0, 15, FATHOM_JIT_POP, 0 }, { pops + 4, 0, 14, FATHOM_JIT_POP, 0 },
		{ pops + 6, 0, 13, FATHOM_JIT_POP, 0 }, { pops + 8, 0, 12, FATHOM_JIT_POP, 0 },
		{ pops + 9, 0, RBP, FATHOM_JIT_POP, 0 }, { pops + 10, 0, RBX, FATHOM_JIT_POP, 0 },
	};
	void **top = reinterpret_cast<void **>(stack + sizeof stack) - 9;

	top[6] = reinterpret_cast<void *>(run_on_other_stack);
	switched[1] = top;
	switch_to = MAKE(switches, rule_of(events, 12));
	for (long i = 0; i < 10; i++)
		switch_to(reinterpret_cast<callback *>(&switched[0]), reinterpret_cast<long>(&switched[1]),
			  nullptr);
	// But for the seven behind the first switch, whose caller cannot be told.
	expect(2 * 10 * 15 - 7);
}

static std::atomic<long> ticks;

static void tick(int)
{
	if (back[0](plain, 5, nullptr) != 6)
		abort();
	ticks++;
}

static void storm(bool own_stack)
{
	struct sigaction sa = {};
	static char stack[65536];
	stack_t alternate = {};
	const itimerval often = { { 0, 2000 }, { 0, 2000 } };
	const itimerval never = {};
	long calls = 0;

	back[0] = make_frame();
	back[1] = make_pushes();
	sa.sa_handler = tick;
	sa.sa_flags = own_stack ? SA_ONSTACK : 0;
	alternate.ss_sp = stack;
	alternate.ss_size = sizeof stack;
	if (own_stack)
		sigaltstack(&alternate, nullptr);
	sigaction(SIGALRM, &sa, nullptr);
	setitimer(ITIMER_REAL, &often, nullptr);
	for (; ticks < n; calls++)
		require(back[1](plain, calls, nullptr) == calls + 1, "storm");
	setitimer(ITIMER_REAL, &never, nullptr);
	expect(calls * PUSHES + ticks * FRAME);
}

static void run_signals()
{
	storm(false);
}

static void run_signal_stack()
{
	storm(true);
}

static sigjmp_buf fault;
static volatile long faults;

static void on_fault(int, siginfo_t *info, void *)
{
	faults += info->si_addr == reinterpret_cast<void *>(16);
	siglongjmp(fault, 1);
}

static void run_fault()
{
	struct sigaction sa = {};
	made *code = MAKE(reads, rule(FATHOM_JIT_PUSHED));
	static long word = 41;
	static volatile long i;

	sa.sa_sigaction = on_fault;
	sa.sa_flags = SA_SIGINFO;
	sigaction(SIGSEGV, &sa, nullptr);
	for (i = 0; i < 10; i++)
		if (!sigsetjmp(fault, 1))
			code(reinterpret_cast<callback *>(16), 0, nullptr);
	require(faults == 10, "faults");
	require(code(reinterpret_cast<callback *>(&word), 0, nullptr) == 42, "word");
	// The one that faults is compared, too.
	expect(10 + READS);
}

static volatile long trapped;

static void on_trap(int)
{
	trapped++;
}

static void run_trap()
{
	made *code = MAKE(traps, rule(FATHOM_JIT_PUSHED));

	signal(SIGTRAP, on_trap);
	for (long i = 0; i < 10; i++)
		require(code(nullptr, i, nullptr) == i + 1, "trap");
	require(trapped == 10, "traps");
	expect(10 * TRAPS);
}

static bool has_handler(int number, void (*handler)(int))
{
	struct sigaction sa;

	return !sigaction(number, nullptr, &sa) && sa.sa_handler == handler;
}

static bool is_blocked(int number)
{
	sigset_t now;

	return !sigprocmask(SIG_BLOCK, nullptr, &now) && sigismember(&now, number);
}

// What signals do stays so, though code is made and runs while they are blocked or ignored.
static void run_blocked()
{
	static const int numbers[] = { SIGTRAP, SIGSEGV };
	made *code = make_frame();
	sigset_t set;

	sigemptyset(&set);
	for (int number : numbers) {
		signal(number, on_trap);
		sigaddset(&set, number);
	}
	sigprocmask(SIG_BLOCK, &set, nullptr);
	require(code(plain, 1, nullptr) == 2, "blocked");
	require(make_pushes()(plain, 1, nullptr) == 2, "blocked");
	for (int number : numbers)
		require(has_handler(number, on_trap) && is_blocked(number), "handlers stay");
	sigprocmask(SIG_UNBLOCK, &set, nullptr);
	for (int number : numbers)
		signal(number, SIG_IGN);
	require(code(plain, 1, nullptr) == 2, "ignored");
	require(make_recurses()(nullptr, 1, nullptr) == 1, "ignored");
	for (int number : numbers)
		require(has_handler(number, SIG_IGN) && !is_blocked(number), "they stay ignored");
	expect(2 * FRAME + PUSHES + 9 + 6);
}

static void run_reuse()
{
	fathom_errinfo info;

	for (long i = 0; i < 20; i++) {
		used = 0;
		made *code = i & 1 ? make_frame() : make_pushes();

		require(code(plain, i, nullptr) == i + 1, "reuse");
		check(fathom_jit_remove(arena, reinterpret_cast<void *>(code), &info), info);
	}
	expect(10 * (FRAME + PUSHES));
}

// Code that was removed may run on; it is not judged.
static void run_removed()
{
	made *kept = make_frame();
	made *code = make_pushes();
	fathom_errinfo info;

	require(code(plain, 1, nullptr) == 2, "removed");
	check(fathom_jit_remove(arena, reinterpret_cast<void *>(code), &info), info);
	require(code(plain, 1, nullptr) == 2, "removed");
	require(kept(plain, 1, nullptr) == 2, "kept");
	expect(PUSHES + FRAME);
}

static void run_toggle()
{
	for (long i = 0; i < 20; i++) {
		require(!mprotect(memory, 1 << 16, PROT_READ | PROT_WRITE), "mprotect");
		made *code = i & 1 ? make_frame() : make_pushes();

		require(!mprotect(memory, 1 << 16, PROT_READ | PROT_EXEC), "mprotect");
		require(code(plain, i, nullptr) == i + 1, "toggle");
	}
	expect(10 * (FRAME + PUSHES));
}

static void run_remap()
{
	for (long i = 0; i < 5; i++) {
		fathom_errinfo info;
		used = 0;
		made *code = make_frame();

		require(code(plain, i, nullptr) == i + 1, "remap");
		check(fathom_jit_remove(arena, reinterpret_cast<void *>(code), &info), info);
		require(mmap(memory, 1 << 16, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == memory,
			"mmap");
	}
	expect(5 * FRAME);
}

static void run_fork()
{
	made *code = make_frame();
	int status;

	for (long i = 0; i < 3; i++) {
		require(code(plain, i, nullptr) == i + 1, "parent");
		if (!fork()) {
			// Its own copy, and a registration that nobody waits for.
			made *own = make_pushes();

			_exit(code(plain, i, nullptr) == i + 1 && own(plain, i, nullptr) == i + 1 ? 5 : 6);
		}
		require(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 5, "child");
		require(system("true") == 0, "system");
	}
	expect(3 * FRAME);
}

static void run_status()
{
	make_frame()(plain, 5, nullptr);
	exit(static_cast<int>(n));
}

static void run_dies()
{
	make_frame()(plain, 5, nullptr);
	raise(SIGTERM);
}

static const struct named runs[] = {
	{ "frame", run_frame },
	{ "events", run_events },
	{ "saves", run_saves },
	{ "reserved", run_reserved },
	{ "pushed", run_pushed },
	{ "lie-frame-size", lie_frame_size },
	{ "lie-no-event", lie_no_event },
	{ "lie-late", lie_late },
	{ "popped", run_popped },
	{ "lie-popped", lie_popped },
	{ "lie-clobber", lie_clobber },
	{ "lie-reserved", lie_reserved },
	{ "lie-slot", lie_slot },
	{ "lie-kept", lie_kept },
	{ "lie-early", lie_early },
	{ "lie-return", lie_return },
	{ "undescribed", run_undescribed },
	{ "tail", run_tail },
	{ "made-shim", run_made_shim },
	{ "reserved-deep", run_reserved_deep },
	{ "recursion", run_recursion },
	{ "callbacks", run_callbacks },
	{ "exceptions", run_exceptions },
	{ "longjmp", run_longjmp },
	{ "threads", run_threads },
	{ "waiting", run_waiting },
	{ "coroutines", run_coroutines },
	{ "switch", run_switch },
	{ "signals", run_signals },
	{ "signal-stack", run_signal_stack },
	{ "fault", run_fault },
	{ "trap", run_trap },
	{ "blocked", run_blocked },
	{ "reuse", run_reuse },
	{ "removed", run_removed },
	{ "toggle", run_toggle },
	{ "remap", run_remap },
	{ "fork", run_fork },
	{ "status", run_status },
	{ "dies", run_dies },
};

int main(int argc, char **argv)
{
	return choose(runs, argc, argv);
}
