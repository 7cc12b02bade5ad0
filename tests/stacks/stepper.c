/* SPDX-License-Identifier: MIT */
/*
 * stepper [-a 1] [-b ADDRESS] [-m 1] [-p 1] [-f FIRST] [-n STEPS] [-k EVERY] [-s EVERY] [-v WRONG]
 * PROGRAM [ARGUMENT]...: runs PROGRAM one instruction at a time, from its entry on; with -a from
 * the dynamic linker's on, with -b from the first call of the function at ADDRESS on, as its file
 * states it. Then the frames outside of it are those of the first walk: a return to one that is
 * wrong loses the log. Notes each call, return and signal in a log, the shadow. After every k-th of
 * STEPS steps that follow the first FIRST ones, it walks the stack from the registers and compares:
 * each frame has to have the pc and sp that the shadow has. With -m it walks in code that the
 * program has made only, where it also follows the frame pointers (made_code.h). With -p it walks
 * from pc and sp alone, which /proc tells of threads that sleep. Sends a signal at
 * every s-th step, once PROGRAM has handlers for SIGUSR1 and SIGUSR2. Prints what it counted, as
 * "NAME NUMBER" lines, and up to WRONG walks that differ.
 *
 * Machine: x86-64. Not followed: threads, children.
 */
#include <elf.h>
#include <errno.h>
#include <fathom/fathom.h>
#include <fathom/stack.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/module/module.h"
#include "host/stack/walk.h"
#include "host/space/target.h"
#include "compared.h"
#include "../lib/made_code.h"

enum { MAX_DEPTH = 1 << 20, COPY = 1 << 14 };

struct stepper {
	int pid;
	struct user_regs_struct before, now;
	uint8_t code[16]; /* at before.rip */
	struct log log;
	struct fathom *session;
	struct fathom_target *target;
	struct fathom_view *view;
	struct fathom_walker *walker;
	uint64_t all, begin, first, steps, every, signal_every, few;
	struct made_code made;
	unsigned handlers; /* bits: SIGUSR1 and SIGUSR2 have handlers */
	struct compared count;
};

static void fail(const char *what)
{
	fprintf(stderr, "stepper: %s: %s\n", what, strerror(errno));
	exit(2);
}

static size_t read_memory(const struct stepper *s, uint64_t at, void *to, size_t size)
{
	const struct iovec local = { to, size };
	const struct iovec remote = { (void *)(uintptr_t)at, size }; /* NOLINT */
	const ssize_t n = process_vm_readv(s->pid, &local, 1, &remote, 1, 0);

	return n < 0 ? 0 : (size_t)n;
}

static uint64_t read_word(const void *data, uint64_t at)
{
	const struct stepper *s = data;
	uint64_t word = 0;

	(void)read_memory(s, at, &word, sizeof word);
	return word;
}

static void note_syscall(struct stepper *s)
{
	const uint64_t number = s->before.rax;

	if (number == SYS_rt_sigreturn) {
		while (s->log.n && !s->log.items[s->log.n - 1].is_interrupted)
			s->log.n--;
		log_pop(&s->log, s->now.rip, s->now.rsp);
	}
	if (number == SYS_rt_sigaction && s->before.rsi)
		s->handlers |= s->before.rdi == SIGUSR1 ? 1u : s->before.rdi == SIGUSR2 ? 2u : 0;
}

/* Returns whether the step that was made may have changed what is mapped where. */
static bool changes_map(const struct stepper *s)
{
	const uint64_t n = s->before.rax;

	return log_is_syscall(s->code) && (n == SYS_mmap || n == SYS_mprotect || n == SYS_munmap ||
					   n == SYS_brk || n == SYS_mremap || n == SYS_execve);
}

/*
 * Some virtual machines do not stop before rt_sigreturn(): then one step is that call, too. A frame
 * that a signal has interrupted goes on where it was.
 */
static void drop_resumed(struct stepper *s)
{
	const struct log_entry *last = s->log.n ? &s->log.items[s->log.n - 1] : NULL;

	if (last && last->is_interrupted && last->pc == s->now.rip && last->sp == s->now.rsp)
		s->log.n--;
}

/* Notes what the instruction that was just made did. */
static void note(struct stepper *s)
{
	uint8_t now[16] = { 0 };
	struct log_step step = { .code = s->code,
				 .sp = s->before.rsp,
				 .fp = s->before.rbp,
				 .now_pc = s->now.rip,
				 .now_sp = s->now.rsp,
				 .now_counter = s->now.rcx,
				 .now_code = now };

	(void)read_memory(s, s->now.rip, now, sizeof now);
	if (log_is_call(s->code))
		step.top = read_word(s, s->now.rsp);
	if (log_throws(now))
		step.at_counter = read_word(s, s->now.rcx);
	if (log_is_syscall(s->code))
		note_syscall(s);
	else
		log_note(&s->log, &step);
	drop_resumed(s);
	made_note(&s->made, s->code);
}

/* Notes that a signal was delivered: its handler's first instruction is the next. */
static void note_signal(struct stepper *s)
{
	/*
	 * Above the return address is a ucontext_t: uc_mcontext is at 40, with rsp and rip at 120
	 * and 128.
	 */
	log_push(&s->log, s->before.rip, s->before.rsp, s->now.rsp + 8 + 40 + 128);
	log_push(&s->log, read_word(s, s->now.rsp), s->now.rsp + 8, 0);
	s->count.signals++;
}

static void end_view(struct stepper *s)
{
	fathom_walker_destroy(s->walker);
	fathom_view_end(s->view);
	s->walker = NULL;
	s->view = NULL;
	s->made.is_known = false;
}

static void begin_view(struct stepper *s)
{
	struct fathom_errinfo info;

	if (s->walker)
		return;
	if (!s->target && fathom_target_open_process(s->session, s->pid, NULL, &s->target, &info)) {
		fprintf(stderr, "stepper: %s\n", info.what);
		exit(2);
	}
	if (fathom_view_begin(s->target, FATHOM_VIEW_MEMORY, &s->view, &info) ||
	    fathom_walker_create(s->view, &s->walker, &info)) {
		fprintf(stderr, "stepper: %s\n", info.what);
		exit(2);
	}
}

static void take_registers(const struct user_regs_struct *u, struct fathom_registers *r)
{
	const uint64_t values[] = { u->rax, u->rdx, u->rcx, u->rbx, u->rsi, u->rdi,
				    u->rbp, u->rsp, u->r8,  u->r9,  u->r10, u->r11,
				    u->r12, u->r13, u->r14, u->r15, u->rip };

	*r = (struct fathom_registers){ .machine = EM_X86_64, .pc = u->rip, .sp = u->rsp };
	for (uint8_t i = 0; i < 17; i++)
		fathom_register_set(r, i, values[i]);
}

/* Walks the stack from the registers. */
static void walk(struct stepper *s, struct fathom_walk *w, struct fathom_registers *r,
		 struct fathom_stack_piece *piece)
{
	begin_view(s);
	take_registers(&s->now, r);
	if (s->few)
		r->known = UINT64_C(1) << 7 | UINT64_C(1) << 16;
	w->registers = r;
	w->max_frames = MAX_DEPTH;
	w->pieces = piece;
	w->n_pieces = 1;
	if (fathom_walker_run(s->walker, w))
		fail("walk");
}

static void check(struct stepper *s)
{
	static uint8_t copy[COPY];
	struct fathom_walk_frames frames = { 0 };
	struct fathom_registers r;
	struct fathom_stack_piece piece = { .avma = s->now.rsp - 256 };
	struct fathom_walk w = { .frames = &frames };
	const struct log *log = &s->log;

	if (s->made.is_wanted && !made_has(&s->made, s->pid, s->now.rip))
		return;
	if (!take_changes(&s->log, read_word, s))
		return;
	piece.bytes = (struct fathom_bytes){ copy, read_memory(s, piece.avma, copy, sizeof copy) };
	if (!log_holds(log, &(struct log_stack){ piece.avma, copy, piece.bytes.size },
		       s->now.rsp)) {
		s->count.overwritten++;
		return;
	}
	if (s->made.is_wanted)
		log = made_frames(&s->made, log, s->now.rbp, (uint8_t)read_word(s, s->now.rip),
				  read_word, s);
	walk(s, &w, &r, &piece);
	compare(&s->count, log, &w, s->now.rip, s->now.rsp);
	fathom_array_free(&frames);
}

/*
 * Makes one step, or delivers @signal. Returns the signal that stopped it, 0: the step is done, -1:
 * it ended.
 */
static int resume(struct stepper *s, int signal)
{
	int status = 0;

	s->before = s->now;
	if (ptrace(PTRACE_SINGLESTEP, s->pid, NULL, signal) || waitpid(s->pid, &status, 0) < 0)
		fail("step");
	if (!WIFSTOPPED(status)) {
		if (WIFSIGNALED(status))
			printf("# killed by signal %d\n", WTERMSIG(status));
		return -1;
	}
	if (ptrace(PTRACE_GETREGS, s->pid, NULL, &s->now))
		fail("registers");
	return WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
}

/* Returns the signal to send now; 0: none. */
static int signal_to_send(struct stepper *s)
{
	if (!s->signal_every || s->handlers != 3 || s->count.steps % s->signal_every)
		return 0;
	return s->count.steps / s->signal_every % 2 ? SIGUSR1 : SIGUSR2;
}

/* Makes one step; false if the program has ended. */
static bool step(struct stepper *s)
{
	const int own = signal_to_send(s);
	int stopped;

	(void)read_memory(s, s->now.rip, s->code, sizeof s->code);
	if (own) {
		/*
		 * Blocked while its handler runs: then an instruction is made, and it arrives
		 * later.
		 */
		if (syscall(SYS_tgkill, s->pid, s->pid, own))
			fail("signal");
	}
	stopped = resume(s, 0);
	if (stopped < 0)
		return false;
	if (!stopped || s->now.rip != s->before.rip || s->now.rsp != s->before.rsp) {
		note(s);
		if (changes_map(s))
			end_view(s);
	}
	for (int i = 0; stopped && i < 16; i++) {
		const int delivered = stopped;

		stopped = resume(s, delivered);
		if (stopped < 0)
			return false;
		if (s->now.rsp < s->before.rsp - 400 || s->now.rsp - s->before.rsp > 1 << 12)
			note_signal(s);
	}
	return true;
}

/* Begins the log with the frames outside of the function that begins here. */
static void begin_log(struct stepper *s)
{
	static uint8_t copy[COPY];
	struct fathom_walk_frames frames = { 0 };
	struct fathom_registers r;
	struct fathom_stack_piece piece = { .avma = s->now.rsp };
	struct fathom_walk w = { .frames = &frames };

	piece.bytes = (struct fathom_bytes){ copy, read_memory(s, piece.avma, copy, sizeof copy) };
	walk(s, &w, &r, &piece);
	for (size_t i = frames.n; --i;)
		log_push(&s->log, frames.items[i].pc, frames.items[i].sp, 0);
	made_begin(&s->made, s->log.n - 1);
	fathom_array_free(&frames);
}

static void run(struct stepper *s)
{
	const uint64_t end = s->first + s->steps;

	while (!s->log.is_lost && s->count.steps < end) {
		if (s->count.steps >= s->first && s->count.steps % s->every == 0)
			check(s);
		if (!step(s))
			return;
		s->count.steps++;
	}
	printf("# not run to its end\n");
}

/* Returns a value of the auxiliary vector of the program; 0: it has none. */
static uint64_t auxiliary(const struct stepper *s, uint64_t type)
{
	uint64_t pair[2] = { 0 };
	char path[64];
	FILE *f;

	(void)snprintf(path, sizeof path, "/proc/%d/auxv", s->pid);
	f = fopen(path, "r");
	if (!f)
		fail(path);
	while (pair[0] != type && fread(pair, sizeof pair, 1, f) == 1)
		;
	(void)fclose(f);
	return pair[0] == type ? pair[1] : 0;
}

/* Lets the program run, up to @avma. */
static void run_to(struct stepper *s, uint64_t avma)
{
	const long word = ptrace(PTRACE_PEEKTEXT, s->pid, avma, NULL);
	int status;

	if (s->now.rip == avma)
		return;
	if (ptrace(PTRACE_POKETEXT, s->pid, avma, (word & ~0xffL) | 0xcc) ||
	    ptrace(PTRACE_CONT, s->pid, NULL, NULL) || waitpid(s->pid, &status, 0) < 0 ||
	    !WIFSTOPPED(status) || ptrace(PTRACE_GETREGS, s->pid, NULL, &s->now) ||
	    s->now.rip != avma + 1 || ptrace(PTRACE_POKETEXT, s->pid, avma, word))
		fail("where the steps begin");
	s->now.rip = avma;
	if (ptrace(PTRACE_SETREGS, s->pid, NULL, &s->now))
		fail("registers");
}

/* Has the program run on this processor, too: switching to it is several times as fast. */
static void stay_here(void)
{
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET((size_t)sched_getcpu(), &here);
	(void)sched_setaffinity(0, sizeof here, &here);
}

static void start(struct stepper *s, char **command)
{
	int status;

	stay_here();

	s->pid = fork();
	if (s->pid == 0) {
		(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		(void)execvp(*command, command);
		_exit(127);
	}
	if (s->pid < 0 || waitpid(s->pid, &status, 0) < 0 || !WIFSTOPPED(status))
		fail(*command);
	if (ptrace(PTRACE_SETOPTIONS, s->pid, NULL, PTRACE_O_EXITKILL) ||
	    ptrace(PTRACE_GETREGS, s->pid, NULL, &s->now))
		fail(*command);
	if (!s->all)
		run_to(s, auxiliary(s, AT_ENTRY));
	if (s->begin) {
		/* The program headers are at this address of their file. */
		run_to(s, s->begin + auxiliary(s, AT_PHDR) - sizeof(Elf64_Ehdr));
		begin_log(s);
	}
}

int main(int argc, char **argv)
{
	struct stepper s = { .every = 1, .steps = 1000000 };
	int option;

	while ((option = getopt(argc, argv, "+a:b:m:p:f:n:k:s:v:")) != -1) {
		uint64_t *const to = option == 'a'   ? &s.all
				     : option == 'b' ? &s.begin
				     : option == 'm' ? &s.made.is_wanted
				     : option == 'p' ? &s.few
				     : option == 'f' ? &s.first
				     : option == 'n' ? &s.steps
				     : option == 'k' ? &s.every
				     : option == 's' ? &s.signal_every
				     : option == 'v' ? &s.count.to_show
						     : NULL;

		if (!to)
			return 2;
		*to = strtoull(optarg, NULL, 0);
	}
	s.log = (struct log){ .items = malloc(MAX_DEPTH * sizeof *s.log.items), .cap = MAX_DEPTH };
	if (optind == argc || !s.every || !s.log.items || fathom_create(NULL, &s.session, NULL))
		return 2;
	start(&s, argv + optind);
	run(&s);
	print_compared(&s.count, &s.log);
	made_print(&s.made);
	end_view(&s);
	if (s.target)
		fathom_target_release(s.target);
	fathom_destroy(s.session);
	(void)kill(s.pid, SIGKILL);
	free(s.log.items);
	return 0;
}
