/* SPDX-License-Identifier: MIT */
/* Threads of other processes, read asleep and stopped. */
#include "unit.h"

#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "victim.h"

#if defined(__x86_64__)
/* DWARF numbers of the registers of x86-64 that functions save, then of arguments, sp, pc. */
static const uint8_t saved[] = { 3, 6, 12, 13, 14, 15 };
static const uint8_t passed[] = { 5, 4, 1, 10, 8, 9 };
#define RSP 7
#define RIP 16

#define CONSTANTS                    \
	"movq $0x7fff0b0b1, %%rbx\n" \
	"movq $0x7fff0c0c2, %%r12\n" \
	"movq $0x7fff0d0d3, %%r13\n" \
	"movq $0x7fff0e0e4, %%r14\n" \
	"movq $0x7fff0f0f5, %%r15\n" \
	"movq $0x7fff0a0a6, %%rbp\n"

static const uint64_t constants[] = { 0x7fff0b0b1, 0x7fff0a0a6, 0x7fff0c0c2,
				      0x7fff0d0d3, 0x7fff0e0e4, 0x7fff0f0f5 };

__attribute__((noinline)) static void spin(const void *data)
{
	(void)data;
	__asm__ volatile("movq %%rsp, (%1)\n"
			 "leaq 1f(%%rip), %%rdx\n"
			 "movq %%rdx, (%2)\n" CONSTANTS "movl $1, (%0)\n"
			 "1: jmp 1b\n"
			 :
			 : "D"(&told->ready), "S"(&told->sp), "c"(&told->pc)
			 : "memory", "rbx", "rdx", "r12", "r13", "r14", "r15");
}

/* Waits for a futex by a call whose six arguments are known; 0x1234567 is on the stack. */
__attribute__((noinline)) static void sleep_raw(const void *data)
{
	(void)data;
	__asm__ volatile("pushq $0x1234567\n"
			 "movq %%rsp, (%1)\n"
			 "leaq 1f(%%rip), %%rdx\n"
			 "movq %%rdx, (%2)\n" CONSTANTS "movl $1, (%0)\n"
			 "movq %%rax, %%rdi\n"
			 "movq $0, %%rsi\n"
			 "movq $0, %%rdx\n"
			 "movq $0, %%r10\n"
			 "movq $0x5555, %%r8\n"
			 "movq $0x6666, %%r9\n"
			 "movl $202, %%eax\n"
			 "syscall\n"
			 "1: jmp 1b\n"
			 :
			 : "D"(&told->ready), "S"(&told->sp), "c"(&told->pc), "a"(&told->other)
			 : "memory", "rbx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
			   "r15");
}

static void check_saved(const struct fathom_registers *r)
{
	assert_int_equal(r->machine, EM_X86_64);
	for (size_t i = 0; i < sizeof saved; i++) {
		assert_true(fathom_register_known(r, saved[i]));
		assert_int_equal(r->value[saved[i]], constants[i]);
	}
	assert_int_equal(r->sp, told->sp);
	assert_int_equal(r->value[RSP], told->sp);
	assert_int_equal(r->pc, told->pc);
	assert_int_equal(r->value[RIP], told->pc);
}

static void registers_of_a_busy_thread(void **state)
{
	const pid_t pid = spawn(spin, NULL);
	struct fathom_thread_copy copy;
	struct watched w;

	(void)state;
	UNTIL(told->ready);
	watch(&w, pid);
	peek_at(w.capture, pid, &copy);
	/* It does not sleep while it waits for a processor, either. */
	assert_int_equal(copy.err, FATHOM_E_UNSUPPORTED);
	assert_int_equal(copy.registers.known, 0);
	assert_null(copy.stack);
	copy = stop_one(&w, false);
	assert_int_equal(copy.err, FATHOM_OK);
	assert_true(copy.was_stopped);
	assert_false(copy.in_syscall);
	assert_int_equal(copy.state, 'R');
	assert_true(copy.pause_ns > 0);
	check_saved(&copy.registers);
	fathom_thread_copy_deinit(&copy);
	assert_int_equal(state_of(pid), 'R');
	unwatch(&w);
	end(pid);
}

static void check_stack(const struct fathom_thread_copy *copy)
{
	uint64_t word;

	assert_non_null(copy->stack);
	assert_int_equal(copy->pieces.items[0].avma, told->sp - 128);
	memcpy(&word, copy->stack + 128, sizeof word);
	assert_int_equal(word, 0x1234567);
}

static void registers_of_a_sleeping_thread(void **state)
{
	const pid_t pid = spawn(sleep_raw, NULL);
	const uint64_t arguments[6] = { (uintptr_t)&told->other, 0, 0, 0, 0x5555, 0x6666 };
	uint64_t known = UINT64_C(1) << RSP | UINT64_C(1) << RIP;
	struct fathom_thread_copy copy;
	const struct fathom_mapping *m;
	struct watched w;

	(void)state;
	UNTIL(told->ready && call_of(pid) == SYS_futex && state_of(pid) == 'S');
	watch(&w, pid);
	peek_at(w.capture, pid, &copy);
	assert_int_equal(copy.err, FATHOM_OK);
	assert_int_equal(copy.state, 'S');
	assert_string_equal(copy.name, "a victim) Z 1");
	assert_false(copy.was_stopped);
	assert_int_equal(copy.pause_ns, 0);
	assert_true(copy.in_syscall);
	assert_int_equal(copy.syscall, SYS_futex);
	assert_memory_equal(copy.arguments, arguments, sizeof arguments);
	for (size_t i = 0; i < 6; i++) {
		known |= UINT64_C(1) << passed[i];
		assert_int_equal(copy.registers.value[passed[i]], arguments[i]);
	}
	assert_int_equal(copy.registers.known, known);
	assert_int_equal(copy.registers.pc, told->pc);
	assert_int_equal(copy.registers.sp, told->sp);
	check_stack(&copy);
	/* To the end of its mapping. */
	m = &w.maps.items[fathom_maps_at(&w.maps, told->sp)];
	assert_int_equal(copy.pieces.items[0].avma + copy.pieces.items[0].bytes.size, m->end);
	fathom_thread_copy_deinit(&copy);

	copy = stop_one(&w, false);
	assert_int_equal(copy.err, FATHOM_OK);
	check_saved(&copy.registers);
	check_stack(&copy);
	assert_true(copy.in_syscall);
	assert_int_equal(copy.syscall, SYS_futex);
	assert_memory_equal(copy.arguments, arguments, sizeof arguments);
	assert_false(copy.was_interrupted);
	fathom_thread_copy_deinit(&copy);
	UNTIL(call_of(pid) == SYS_futex && state_of(pid) == 'S');
	unwatch(&w);
	end(pid);
}

/* Code of 32 bits: sets registers, calls pause() by int $0x80, and spins. */
static const uint8_t code32[] = {
	0xbb, 1,    0x10, 0x20, 0x70, /* mov $0x70201001, %ebx */
	0xb9, 2,    0x10, 0x20, 0x70, /* ecx */
	0xba, 3,    0x10, 0x20, 0x70, /* edx */
	0xbe, 4,    0x10, 0x20, 0x70, /* esi */
	0xbf, 5,    0x10, 0x20, 0x70, /* edi */
	0xbd, 6,    0x10, 0x20, 0x70, /* ebp */
	0xb8, 29,   0,    0,    0,    /* mov $29, %eax */
	0xcd, 0x80,                   /* int $0x80 */
	0xeb, 0xfe,                   /* jmp . */
};

/* Jumps to the code in a page below 4 GB, whose end is its stack, in the mode of @data's CS. */
static void run32(const void *data)
{
	uint8_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);

	if (page == MAP_FAILED)
		_exit(1);
	memcpy(page, code32, sizeof code32);
	told->sp = (uintptr_t)page + 4000;
	told->pc = (uintptr_t)page + 37;
	told->ready = 1;
	__asm__ volatile("movq %0, %%rsp\n"
			 "pushq %2\n"
			 "pushq %1\n"
			 "lretq\n"
			 :
			 : "r"(page + 4000), "r"(page), "r"((uint64_t)*(const int *)data)
			 : "memory");
}

/*
 * i386's registers in DWARF's order: ebx ecx edx esi edi ebp are 3 1 2 6 7 5; esp 4, eip 8, eax 0,
 * eflags 9.
 */
static void check32(const struct fathom_thread_copy *copy, uint64_t known)
{
	static const uint8_t numbers[] = { 3, 1, 2, 6, 7, 5 };

	assert_int_equal(copy->err, FATHOM_OK);
	assert_int_equal(copy->registers.machine, EM_386);
	assert_int_equal(copy->registers.known, known);
	assert_int_equal(copy->syscall, 29);
	for (uint32_t i = 0; i < 6; i++) {
		assert_int_equal(copy->registers.value[numbers[i]], 0x70201001 + i);
		assert_int_equal(copy->arguments[i], 0x70201001 + i);
	}
	assert_int_equal(copy->registers.sp, told->sp);
	assert_int_equal(copy->registers.pc, told->pc);
}

static void registers_of_i386(void **state)
{
	const int cs = 0x23;
	const pid_t pid = spawn(run32, &cs);
	struct fathom_thread_copy copy;
	struct fathom_capture_options o;
	struct fathom_capture *of_32;
	struct watched w;

	(void)state;
	UNTIL(told->ready && (call_of(pid) == 29 || state_of(pid) == 0 || state_of(pid) == 'Z'));
	if (call_of(pid) != 29) {
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		skip(); /* a kernel without 32-bit programs */
	}
	watch(&w, pid);
	o = (struct fathom_capture_options){ .pid = pid,
					     .proc = w.proc,
					     .memory = &w.reader,
					     .maps = &w.maps,
					     .machine = EM_386,
					     .deadline_ms = 10000 };
	assert_int_equal(fathom_capture_create(&o, &of_32, NULL), FATHOM_OK);
	peek_at(of_32, pid, &copy);
	check32(&copy, 0x1fe);
	fathom_thread_copy_deinit(&copy);
	copy = stop_one(&w, false);
	check32(&copy, 0x3ff);
	fathom_thread_copy_deinit(&copy);
	fathom_capture_destroy(of_32);
	/* It was stopped, and goes to sleep again. */
	UNTIL(call_of(pid) == 29);
	/* In a program of x86-64 only pc and sp are known: the call is not of that machine. */
	peek_at(w.capture, pid, &copy);
	assert_int_equal(copy.err, FATHOM_OK);
	assert_false(copy.in_syscall);
	assert_int_equal(copy.registers.known, UINT64_C(1) << RSP | UINT64_C(1) << RIP);
	fathom_thread_copy_deinit(&copy);
	unwatch(&w);
	end(pid);
}
#endif

static void rounds(const void *data)
{
	(void)data;
	told->ready = 1;
	for (;;)
		told->rounds++;
}

/* Returns whether it counts on. */
static bool is_counting(void)
{
	const uint64_t before = told->rounds;
	const time_t limit = time(NULL) + PATIENCE;

	while (told->rounds == before && time(NULL) < limit)
		nap();
	return told->rounds != before;
}

static void a_stopped_process_stays_stopped(void **state)
{
	const pid_t pid = spawn(rounds, NULL);
	struct fathom_thread_copy copy;
	struct watched w;
	uint64_t before;
	int status;

	(void)state;
	UNTIL(told->ready);
	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	watch(&w, pid);
	peek_at(w.capture, pid, &copy);
	assert_int_equal(copy.err, FATHOM_OK);
	assert_int_equal(copy.state, 'T');
	assert_false(copy.in_syscall);
	fathom_thread_copy_deinit(&copy);
	before = told->rounds;
	for (int i = 0; i < STOPS; i++) {
		copy = stop_one(&w, i % 2);
		assert_int_equal(copy.err, FATHOM_OK);
		assert_true(copy.registers.pc != 0);
		fathom_thread_copy_deinit(&copy);
		UNTIL(state_of(pid) == 'T');
	}
	assert_int_equal(told->rounds, before);
	kill(pid, SIGCONT);
	assert_true(is_counting());
	unwatch(&w);
	end(pid);
}

static void trace(const void *data)
{
	if (!ptrace(PTRACE_SEIZE, *(const pid_t *)data, NULL, NULL))
		told->child = 1;
	for (;;)
		pause();
}

static void a_traced_thread(void **state)
{
	const pid_t pid = spawn(rounds, NULL);
	struct fathom_thread_copy copy;
	struct watched w;
	char path[32];
	pid_t tracer;

	(void)state;
	tracer = fork();
	if (!tracer) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		trace(&pid);
	}
	UNTIL(told->child);
	watch(&w, pid);
	copy = stop_one(&w, true);
	assert_int_equal(copy.err, FATHOM_E_OS);
	assert_int_equal(copy.failed.os_errno, EPERM);
	assert_string_equal(copy.failed.what, "this process traces the thread already");
	(void)snprintf(path, sizeof path, "/proc/%d", tracer);
	assert_string_equal(copy.failed.file, path);
	end(tracer);
	UNTIL(!status_of(pid, "TracerPid:"));
	copy = stop_one(&w, true);
	assert_int_equal(copy.err, FATHOM_OK);
	fathom_thread_copy_deinit(&copy);
	unwatch(&w);
	end(pid);
}

static void an_ended_thread(void **state)
{
	const pid_t pid = spawn(rounds, NULL);
	struct fathom_thread_copy copy;
	struct watched w;
	int32_t *tids;
	size_t n;

	(void)state;
	watch(&w, pid);
	assert_int_equal(fathom_capture_list(w.capture, &tids, &n, NULL), FATHOM_OK);
	assert_int_equal(n, 1 + SANITIZER_THREADS);
	assert_int_equal(tids[0], pid);
	free(tids);
	kill(pid, SIGKILL);
	UNTIL(state_of(pid) == 'Z');
	peek_at(w.capture, pid, &copy);
	assert_int_equal(copy.err, FATHOM_E_NOT_FOUND);
	assert_int_equal(copy.state, 'Z');
	copy = stop_one(&w, true);
	assert_int_equal(copy.err, FATHOM_E_NOT_FOUND);
	assert_string_equal(copy.failed.what, "has ended, and is a zombie");
	end(pid);
	peek_at(w.capture, pid, &copy);
	assert_int_equal(copy.err, FATHOM_E_NOT_FOUND);
	copy = stop_one(&w, true);
	assert_int_equal(copy.err, FATHOM_E_NOT_FOUND);
	assert_string_equal(copy.failed.what, "has ended");
	assert_int_equal(fathom_capture_list(w.capture, &tids, &n, NULL), FATHOM_E_OS);
	unwatch(&w);
}

/* In a parent of vfork(): its child sleeps. */
static void vforks(const void *data)
{
	const pid_t child = vfork();

	(void)data;
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		told->child = (int)syscall(SYS_getpid);
		for (;;)
			syscall(SYS_pause);
	}
	told->ready = 1;
	for (;;)
		told->rounds++;
}

static void the_parent_of_a_vfork(void **state)
{
	const pid_t pid = spawn(vforks, NULL);
	struct fathom_thread_copy copy;
	struct watched w;

	(void)state;
	if (SANITIZER_THREADS)
		skip();
	UNTIL(told->child && state_of(pid) == 'D');
	stop_ms = 3000;
	watch(&w, pid);
	stop_ms = 1000 * PATIENCE;
	peek_at(w.capture, pid, &copy);
	assert_int_equal(copy.err, FATHOM_OK);
	assert_int_equal(copy.syscall, SYS_vfork);
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
	/* glibc keeps the return address in rdi (DWARF number 5). */
	assert_true(fathom_register_known(&copy.registers, 5));
	assert_true(copy.registers.value[5] - (uintptr_t)vforks < 4096);
#endif
	fathom_thread_copy_deinit(&copy);
	copy = stop_one(&w, true);
	assert_int_equal(copy.err, FATHOM_E_TIMEOUT);
	assert_null(copy.stack);
	UNTIL(!status_of(pid, "TracerPid:"));
	kill(told->child, SIGKILL);
	UNTIL(told->ready);
	assert_true(is_counting());
	unwatch(&w);
	end(pid);
}

/* Stops a victim again and again, until it is killed. */
static void tool(const void *data)
{
	struct watched w;

	watch(&w, *(const pid_t *)data);
	for (;;) {
		struct fathom_thread_copy copy = stop_one(&w, true);

		told->child += !copy.err;
		fathom_thread_copy_deinit(&copy);
	}
}

static void killing_us_leaves_nothing_stopped(void **state)
{
	const pid_t pid = spawn(rounds, NULL);

	(void)state;
	UNTIL(told->ready);
	for (int i = 0; i < STOPS; i++) {
		const pid_t ours = fork();

		if (!ours) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			tool(&pid);
		}
		told->child = 0;
		UNTIL(told->child > 3);
		end(ours);
		UNTIL(!status_of(pid, "TracerPid:"));
		assert_true(is_counting());
	}
	end(pid);
}

static void count_signal(int number)
{
	(void)number;
	told->handled++;
}

/* Counts signals, which come only while it waits: each ends the call with EINTR. */
static void count_interruptions(const void *data)
{
	const int fd = epoll_create1(0);
	struct sigaction a = { .sa_handler = count_signal };
	struct epoll_event e;
	sigset_t blocked;
	sigset_t none;

	(void)data;
	sigemptyset(&none);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	sigaction(SIGRTMIN, &a, NULL);
	told->ready = 1;
	for (;;)
		if (epoll_pwait(fd, &e, 1, -1, &none) < 0 && errno == EINTR)
			told->eintr++;
		else
			told->other++;
}

#define SIGNALS 2000

/* Sends signals, the next one when the one before has ended a call. */
static void send_signals(pid_t to)
{
	for (int i = 0; i < SIGNALS; i++) {
		kill(to, SIGRTMIN);
		while (told->eintr <= i)
			sched_yield();
	}
	_exit(0);
}

static void signals_arrive(void **state)
{
	const pid_t pid = spawn(count_interruptions, NULL);
	unsigned restarted = 0;
	unsigned stops = 0;
	struct watched w;
	pid_t sender;
	int status;

	(void)state;
	UNTIL(told->ready);
	watch(&w, pid);
	sender = fork();
	if (!sender) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		send_signals(pid);
	}
	/* A signal that was lost, or whose EINTR was, would leave the sender waiting. */
	for (const time_t limit = time(NULL) + 2 * PATIENCE; !waitpid(sender, &status, WNOHANG);) {
		struct fathom_thread_copy copy = stop_one(&w, false);

		assert_int_equal(copy.err, FATHOM_OK);
		stops++;
		restarted += copy.was_restarted;
		fathom_thread_copy_deinit(&copy);
		if (time(NULL) > limit)
			fail_msg("signal %d is lost, after %u stops", told->eintr, stops);
	}
	/* On a busy machine none may have fallen into a wait before. */
	for (const time_t limit = time(NULL) + PATIENCE; !restarted && time(NULL) < limit;) {
		struct fathom_thread_copy copy;

		(void)sleeps(pid);
		copy = stop_one(&w, false);
		restarted += copy.was_restarted;
		fathom_thread_copy_deinit(&copy);
	}
	(void)sleeps(pid);
	assert_int_equal(told->handled, SIGNALS);
	assert_int_equal(told->eintr, SIGNALS);
	assert_int_equal(told->other, 0);
	assert_true(restarted > 0);
	unwatch(&w);
	end(pid);
}

/* Returns whether the program @name runs in @pid. */
static bool is_called(pid_t pid, const char *name)
{
	char path[48];
	char comm[32] = "";
	int fd;

	(void)snprintf(path, sizeof path, "/proc/%d/comm", pid);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return false;
	if (read(fd, comm, sizeof comm - 1) < 0)
		comm[0] = '\0';
	close(fd);
	comm[strcspn(comm, "\n")] = '\0';
	return !strcmp(comm, name);
}

static void exec_later(const void *data)
{
	told->ready = 1;
	while (!told->child)
		nap();
	execl(data, data, "1000", NULL);
}

static void another_program(void **state)
{
	const pid_t pid = spawn(exec_later, "/bin/sleep");
	struct fathom_thread_copy copy;
	struct watched w;

	(void)state;
	UNTIL(told->ready);
	watch(&w, pid);
	told->child = 1;
	UNTIL(is_called(pid, "sleep") && call_of(pid) == SYS_clock_nanosleep &&
	      state_of(pid) == 'S');
	peek_at(w.capture, pid, &copy);
	assert_int_equal(copy.err, FATHOM_E_CHANGED);
	assert_int_equal(copy.registers.known, 0);
	copy = stop_one(&w, true);
	assert_int_equal(copy.err, FATHOM_E_CHANGED);
	assert_string_equal(copy.failed.what, "runs another program by now");
	assert_null(copy.stack);
	UNTIL(state_of(pid) == 'S');
	unwatch(&w);
	end(pid);
}

/* How long PTRACE_SEIZE computes before it seizes, as if it waited for a processor. */
static _Atomic int seize_computes_ms;
static _Atomic int n_seized;

long __real_fathom_stop_seize(pid_t tid, long options);
long __wrap_fathom_stop_seize(pid_t tid, long options);

long __wrap_fathom_stop_seize(pid_t tid, long options)
{
	struct timespec now = { 0 };
	int64_t until = 0;

	n_seized++;
	while (!clock_gettime(CLOCK_MONOTONIC, &now)) {
		const int64_t ms = now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;

		until = until ? until : ms + seize_computes_ms;
		if (ms >= until)
			break;
	}
	return __real_fathom_stop_seize(tid, options);
}

static void a_tracer_without_a_processor(void **state)
{
	const pid_t pid = spawn(rounds, NULL);
	struct fathom_thread_copy copy;
	struct watched w;

	(void)state;
	watch(&w, pid);
	seize_computes_ms = 300;
	n_seized = 0;
	copy = stop_one(&w, true);
	seize_computes_ms = 0;
	assert_int_equal(n_seized, 1);
	assert_int_equal(copy.err, FATHOM_OK);
	assert_true(copy.was_stopped);
	fathom_thread_copy_deinit(&copy);
	unwatch(&w);
	end(pid);
}

static void *sleeping_thread(void *data)
{
	told->child = (int)syscall(SYS_gettid);
	for (;;)
		pause();
	return data;
}

/*
 * Runs another program once its second thread is traced: exec() waits for the tracer to reap that.
 */
static void exec_of_two(const void *data)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, sleeping_thread, NULL))
		_exit(3);
	while (!told->ready)
		nap();
	execl(data, data, "1000", NULL);
}

static void within_exec(void **state)
{
	const pid_t pid = spawn(exec_of_two, "/bin/sleep");
	struct fathom_thread_copy copy;
	struct watched w;
	pid_t tracer;

	(void)state;
	UNTIL(told->child);
	tracer = fork();
	if (!tracer) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		told->ready = !ptrace(PTRACE_SEIZE, told->child, NULL, NULL);
		for (;;)
			pause();
	}
	UNTIL(told->ready && call_of(pid) == SYS_execve);
	stop_ms = 3000;
	watch(&w, pid);
	stop_ms = 1000 * PATIENCE;
	copy = stop_one(&w, true);
	assert_int_equal(copy.err, FATHOM_E_TIMEOUT);
	assert_string_equal(copy.failed.what,
			    "cannot be traced while its process is within exec()");
	end(tracer);
	UNTIL(is_called(pid, "sleep") && state_of(pid) == 'S');
	unwatch(&w);
	end(pid);
}

static void *short_thread(void *data)
{
	const struct timespec t = { .tv_nsec = (long)(intptr_t)data };

	nanosleep(&t, NULL);
	told->rounds++;
	return NULL;
}

/* Threads that come and go, four at a time. */
static void churn(const void *data)
{
	pthread_attr_t small;

	(void)data;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	told->ready = 1;
	for (intptr_t i = 0;; i++) {
		pthread_t threads[4];

		for (intptr_t k = 0; k < 4; k++)
			if (pthread_create(&threads[k], &small, short_thread,
					   (void *)((i * 7 + k * 13) % 50 * 10000)))
				_exit(3);
		for (int k = 0; k < 4; k++)
			pthread_join(threads[k], NULL);
	}
}

static bool is_plausible(const struct fathom_thread_copy *copy)
{
	switch (copy->err) {
	case FATHOM_OK:
		return copy->registers.sp && copy->stack &&
		       copy->pieces.items[0].avma + copy->pieces.items[0].bytes.size >
			       copy->registers.sp;
	case FATHOM_E_NOT_FOUND:
	case FATHOM_E_CHANGED:
		return true;
	case FATHOM_E_UNSUPPORTED:
		return !copy->was_stopped;
	default:
		return false;
	}
}

/* Reads thread @tid in two ways. */
static void read_both(struct watched *w, int32_t tid, unsigned *stopped)
{
	struct fathom_thread_copy copy;

	peek_at(w->capture, tid, &copy);
	if (!is_plausible(&copy))
		fail_msg("peek of %d: %d %s", tid, copy.err, copy.failed.what);
	fathom_thread_copy_deinit(&copy);
	copy = (struct fathom_thread_copy){ .tid = tid };
	fathom_capture_stop(w->capture, &copy, 1, false, true);
	if (!is_plausible(&copy) || copy.err == FATHOM_E_UNSUPPORTED)
		fail_msg("stop of %d: %d %s", tid, copy.err,
			 copy.failed.what ? copy.failed.what : "");
	*stopped += copy.was_stopped;
	fathom_thread_copy_deinit(&copy);
}

/* How often threads that come and go are stopped. */
#define CHURN_STOPS 3000

static void threads_come_and_go(void **state)
{
	const pid_t pid = spawn(churn, NULL);
	unsigned stopped = 0;
	struct watched w;

	(void)state;
	UNTIL(told->ready && told->rounds > 100);
	while (stopped < CHURN_STOPS) {
		int32_t *tids;
		size_t n;

		/* The deadline is of all that one capture waits for. */
		watch(&w, pid);
		assert_int_equal(fathom_capture_list(w.capture, &tids, &n, NULL), FATHOM_OK);
		assert_int_equal(tids[0], pid);
		for (size_t i = 0; i < n; i++)
			read_both(&w, tids[i], &stopped);
		free(tids);
		unwatch(&w);
	}
	assert_true(is_counting());
	assert_int_equal(status_of(pid, "TracerPid:"), 0);
	end(pid);
}

static void all_at_one_moment(void **state)
{
	const pid_t pid = spawn(churn, NULL);
	size_t most = 0;
	struct watched w;

	(void)state;
	UNTIL(told->ready && told->rounds > 100);
	watch(&w, pid);
	for (int i = 0; i < 300 || most < 5; i++) {
		struct fathom_thread_copy *copies;
		size_t n_stopped = 0;
		size_t n;

		assert_int_equal(fathom_capture_stop_all(w.capture, true, &copies, &n, NULL),
				 FATHOM_OK);
		assert_true(n > 0);
		assert_int_equal(copies[0].tid, pid);
		assert_int_equal(copies[0].err, FATHOM_OK);
		for (size_t k = 0; k < n; k++) {
			if (!is_plausible(&copies[k]) || copies[k].err == FATHOM_E_CHANGED)
				fail_msg("%d: %d %s", copies[k].tid, copies[k].err,
					 copies[k].failed.what);
			n_stopped += copies[k].was_stopped;
			fathom_thread_copy_deinit(&copies[k]);
		}
		most = n_stopped > most ? n_stopped : most;
		free(copies);
	}
	/* The main thread and the four that it starts. */
	assert_int_equal(most, 5 + SANITIZER_THREADS);
	assert_true(is_counting());
	unwatch(&w);
	end(pid);
}

/* A process that is killed while it is stopped: its parent, which we are, has its status. */
static void killed_meanwhile(void **state)
{
	(void)state;
	for (int i = 0; i < STOPS; i++) {
		const pid_t pid = spawn(churn, NULL);
		struct fathom_thread_copy *copies;
		struct watched w;
		pid_t killer;
		size_t n;

		UNTIL(told->ready);
		watch(&w, pid);
		killer = fork();
		if (!killer) {
			for (volatile int k = 0; k < i * 20000; k++)
				;
			kill(pid, SIGKILL);
			_exit(0);
		}
		while (!fathom_capture_stop_all(w.capture, true, &copies, &n, NULL)) {
			for (size_t k = 0; k < n; k++)
				fathom_thread_copy_deinit(&copies[k]);
			free(copies);
			if (state_of(pid) == 'Z')
				break;
		}
		unwatch(&w);
		end(pid);
		assert_int_equal(waitpid(killer, NULL, 0), killer);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#if defined(__x86_64__)
		cmocka_unit_test(registers_of_a_busy_thread),
		cmocka_unit_test(registers_of_a_sleeping_thread),
		cmocka_unit_test(registers_of_i386),
#endif
		cmocka_unit_test(a_stopped_process_stays_stopped),
		cmocka_unit_test(a_traced_thread),
		cmocka_unit_test(an_ended_thread),
		cmocka_unit_test(the_parent_of_a_vfork),
		cmocka_unit_test(killing_us_leaves_nothing_stopped),
		cmocka_unit_test(signals_arrive),
		cmocka_unit_test(another_program),
		cmocka_unit_test(a_tracer_without_a_processor),
		cmocka_unit_test(within_exec),
		cmocka_unit_test(threads_come_and_go),
		cmocka_unit_test(all_at_one_moment),
		cmocka_unit_test(killed_meanwhile),
	};

	if (!make_told())
		return 1;
	return cmocka_run_group_tests_name("capture", tests, NULL, NULL);
}
