/* SPDX-License-Identifier: MIT */
/*
 * arm_stepper [-n STEPS] [-k EVERY] [-v WRONG] SOCKET QEMU PROGRAM: runs PROGRAM, a static one of
 * aarch64, under QEMU (user mode), one instruction at a time, through the gdb stub at SOCKET. Notes
 * each call, return and signal in a log. At every k-th step it walks the stack from the registers
 * and compares, as stepper.c does. What it prints is the same.
 *
 * The protocol is that of gdb's manual, appendix E. Memory is read from QEMU itself: with -B 0 a
 * guest's addresses are its own.
 */
#include <elf.h>
#include <errno.h>
#include <fathom/fathom.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "compared.h"
#include "host/space/target.h"

enum {
	MAX_DEPTH = 1 << 16,
	COPY = 1 << 12,
	PACKET = 1 << 13,
	MAX_SEGMENTS = 16,
	MAX_HANDLERS = 8,
	MAX_EXCLUSIVE = 16, /* instructions */
	PAGE = 4096,
	LINK = 30, /* x30: the return address after a call */
	SP = 31,
	PC = 32
};

/* System calls of aarch64, include/uapi/asm-generic/unistd.h of Linux. */
enum { CALL_RT_SIGACTION = 134, CALL_RT_SIGRETURN = 139 };

struct stepper {
	int pid; /* of QEMU */
	int fd;  /* of the stub */
	const char *path;
	uint64_t before[PC + 1], now[PC + 1]; /* x0 to x30, sp, pc */
	uint32_t code;                        /* at before[PC] */
	struct log log;
	uint64_t handlers[MAX_HANDLERS];
	size_t n_handlers;
	uint64_t trampoline; /* where handlers return to; 0: none ran yet */
	struct fathom *session;
	struct fathom_target *target;
	struct fathom_view *view;
	struct fathom_walker *walker;
	uint64_t steps, every;
	struct compared count;
};

static void fail(const char *what)
{
	fprintf(stderr, "arm_stepper: %s: %s\n", what, strerror(errno));
	exit(2);
}

/* The gdb stub -------------------------------------------------------------------------------- */

static char read_byte(const struct stepper *s)
{
	static char bytes[PACKET];
	static size_t n, at;

	if (at == n) {
		const ssize_t got = read(s->fd, bytes, sizeof bytes);

		if (got <= 0)
			fail("the stub has gone");
		n = (size_t)got;
		at = 0;
	}
	return bytes[at++];
}

/* Sends @command and reads the answer into @ret. */
static void ask(const struct stepper *s, const char *command, char ret[PACKET])
{
	char packet[128];
	uint8_t sum = 0;
	size_t n = 0;
	char c;

	for (const char *p = command; *p; p++)
		sum = (uint8_t)(sum + *p);
	n = (size_t)snprintf(packet, sizeof packet, "$%s#%02x", command, sum);
	if (write(s->fd, packet, n) != (ssize_t)n)
		fail(command);
	while (read_byte(s) != '$')
		;
	for (n = 0; (c = read_byte(s)) != '#' && n < PACKET - 1;)
		ret[n++] = c;
	ret[n] = '\0';
	(void)read_byte(s);
	(void)read_byte(s);
	if (write(s->fd, "+", 1) != 1)
		fail(command);
}

static uint8_t nibble(char c)
{
	return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static void read_registers(struct stepper *s)
{
	char answer[PACKET];

	ask(s, "g", answer);
	if (strlen(answer) < sizeof s->now * 2)
		fail(answer);
	for (size_t i = 0; i <= PC; i++) {
		s->now[i] = 0;
		for (size_t j = 8; j-- > 0;)
			s->now[i] = s->now[i] << 8 | (uint64_t)nibble(answer[i * 16 + j * 2]) << 4 |
				    nibble(answer[i * 16 + j * 2 + 1]);
	}
}

/* Resumes by @command. Returns the signal that it stops by, SIGTRAP after a step; -1: it ended. */
static int resume(struct stepper *s, const char *command)
{
	char answer[PACKET];

	ask(s, command, answer);
	if (*answer != 'T' && *answer != 'S')
		return -1;
	read_registers(s);
	return nibble(answer[1]) << 4 | nibble(answer[2]);
}

/* The program --------------------------------------------------------------------------------- */

static size_t read_memory(void *data, uint64_t at, void *to, size_t size)
{
	const struct stepper *s = data;
	const struct iovec local = { to, size };
	const struct iovec remote = { (void *)(uintptr_t)at, size }; /* NOLINT */
	const ssize_t n = process_vm_readv(s->pid, &local, 1, &remote, 1, 0);

	return n < 0 ? 0 : (size_t)n;
}

static uint64_t read_word(const void *data, uint64_t at)
{
	uint64_t word = 0;

	(void)read_memory((void *)(uintptr_t)data, at, &word, sizeof word);
	return word;
}

/* Bits of instructions: Arm Architecture Reference Manual, C4.1.66 (unconditional branches). */
static bool is_call(uint32_t code)
{
	return (code & 0xfc000000) == 0x94000000 /* bl */ ||
	       (code & 0xfffffc1f) == 0xd63f0000 /* blr */ ||
	       (code & 0xfffff800) == 0xd73f0800 /* blraa, blrab */ ||
	       (code & 0xfffff81f) == 0xd63f081f /* blraaz, blrabz */;
}

static bool is_return(uint32_t code)
{
	return (code & 0xfffffc1f) == 0xd65f0000 /* ret */ ||
	       (code | 0x400) == 0xd65f0fff /* retaa, retab */;
}

static bool is_syscall(uint32_t code)
{
	return code == 0xd4000001;
}

/* Notes what @code did, with the stack pointer @sp before it. */
static void note_instruction(struct stepper *s, uint32_t code, uint64_t sp)
{
	const struct log_entry *last = s->log.n ? &s->log.items[s->log.n - 1] : NULL;

	if (is_call(code)) {
		if (last && last->sp < sp)
			log_drop_left(&s->log, sp - 1);
		log_push(&s->log, s->now[LINK], sp, 0);
		s->log.calls++;
	} else if (is_return(code)) {
		log_pop(&s->log, s->now[PC], s->now[SP]);
		s->log.returns++;
	}
}

/* Notes a system call and, if @is_done, the instruction behind it: QEMU makes them in one step. */
static void note_syscall(struct stepper *s, bool is_done)
{
	const uint64_t number = s->before[8];
	const uint64_t action = s->before[1];
	uint64_t pc = s->before[PC] + 4, sp = s->before[SP];
	uint32_t code = 0;

	if (number == CALL_RT_SIGRETURN) {
		const struct log_entry *e;

		while (s->log.n && !s->log.items[s->log.n - 1].is_interrupted)
			s->log.n--;
		s->log.is_lost |= !s->log.n;
		if (s->log.is_lost)
			return;
		e = &s->log.items[--s->log.n];
		pc = read_word(s, e->saved);
		sp = read_word(s, e->saved - 8);
	}
	if (number == CALL_RT_SIGACTION && action && s->n_handlers < MAX_HANDLERS)
		s->handlers[s->n_handlers++] = read_word(s, action);
	(void)read_memory(s, pc, &code, sizeof code);
	if (is_done)
		note_instruction(s, code, sp);
}

/* Sets (@how 'Z') or removes ('z') a breakpoint at @at. */
static void set_breakpoint(struct stepper *s, char how, uint64_t at)
{
	char answer[PACKET];
	char command[64];

	(void)snprintf(command, sizeof command, "%c0,%" PRIx64 ",4", how, at);
	ask(s, command, answer);
}

static void set_breakpoints(struct stepper *s, char how)
{
	for (size_t i = 0; i < s->n_handlers; i++)
		if (s->handlers[i] > 1) /* SIG_DFL, SIG_IGN */
			set_breakpoint(s, how, s->handlers[i]);
}

/* Returns whether @code loads (or, with @stores, stores) exclusively. */
static bool is_exclusive(uint32_t code, bool stores)
{
	return (code & 0x3fc00000) == (stores ? 0x08000000u : 0x08400000u);
}

/*
 * Makes the instructions from a load to a store that are exclusive: between two stops the store
 * never succeeds. Such code makes no call. Returns as resume() does.
 */
static int make_exclusive(struct stepper *s)
{
	uint64_t ends[MAX_EXCLUSIVE];
	uint64_t at = s->now[PC];
	uint32_t code = s->code;
	size_t n = 0;
	int stopped;

	for (int i = 0; i < MAX_EXCLUSIVE - 1 && !is_exclusive(code, true); i++) {
		(void)read_memory(s, at += 4, &code, sizeof code);
		if ((code & 0xff000010) == 0x54000000 || (code & 0x7e000000) == 0x34000000)
			ends[n++] = at + (uint64_t)((int64_t)(int32_t)(code << 8) >> 13) * 4;
	}
	ends[n++] = at + 4;
	for (size_t i = 0; i < n; i++)
		set_breakpoint(s, 'Z', ends[i]);
	stopped = resume(s, "c");
	for (size_t i = 0; i < n; i++)
		set_breakpoint(s, 'z', ends[i]);
	return stopped;
}

/* Delivers @number, for which there is a handler, whose first instruction is the next. */
static bool deliver(struct stepper *s, int number)
{
	const uint64_t pc = s->now[PC], sp = s->now[SP];
	char command[32];

	(void)snprintf(command, sizeof command, "vCont;C%02x", (unsigned)number);
	set_breakpoints(s, 'Z');
	if (resume(s, command) != SIGTRAP)
		return false;
	set_breakpoints(s, 'z');
	/*
	 * struct rt_sigframe of Linux, arch/arm64/kernel/signal.c: 128 bytes of siginfo, then
	 * ucontext_t, of whose mcontext the registers begin at 176: the address of a fault, x0 to
	 * x30, sp, pc.
	 */
	log_push(&s->log, pc, sp, s->now[SP] + 128 + 176 + 8 + PC * 8);
	log_push(&s->log, s->now[LINK], s->now[SP], 0);
	s->count.signals++;
	return true;
}

/* Where walks begin --------------------------------------------------------------------------- */

static void end_view(struct stepper *s)
{
	fathom_walker_destroy(s->walker);
	fathom_view_end(s->view);
	if (s->target)
		fathom_target_release(s->target);
	s->walker = NULL;
	s->view = NULL;
	s->target = NULL;
}

/* Reads the segments of the program, and its entry; returns how many there are. */
static size_t read_segments(const struct stepper *s, struct fathom_mapping_info *to,
			    uint64_t *ret_entry)
{
	const int fd = open(s->path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	const Elf64_Ehdr *e;
	const Elf64_Phdr *p;
	size_t n = 0;

	if (fd < 0 || fstat(fd, &st))
		fail(s->path);
	e = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (e == MAP_FAILED || e->e_machine != EM_AARCH64)
		fail(s->path);
	*ret_entry = e->e_entry;
	p = (const void *)((const char *)e + e->e_phoff);
	for (size_t i = 0; i < e->e_phnum && n < MAX_SEGMENTS; i++)
		if (p[i].p_type == PT_LOAD) {
			const uint64_t end = p[i].p_vaddr + p[i].p_memsz;
			const uint64_t start = p[i].p_vaddr & ~(uint64_t)(PAGE - 1);

			to[n++] = (struct fathom_mapping_info){
				.start = start,
				.end = (end + PAGE - 1) & ~(uint64_t)(PAGE - 1),
				.offset = p[i].p_offset & ~(uint64_t)(PAGE - 1),
				.path = s->path,
				.rights = p[i].p_flags
			};
		}
	(void)munmap((void *)(uintptr_t)e, (size_t)st.st_size);
	(void)close(fd);
	return n;
}

static int by_start(const void *a, const void *b)
{
	const struct fathom_mapping_info *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void begin_view(struct stepper *s)
{
	struct fathom_mapping_info m[MAX_SEGMENTS + 2] = { 0 };
	struct fathom_address_space space = { .size = sizeof space,
					      .read = read_memory,
					      .data = s,
					      .mappings = m,
					      .page_size = PAGE };
	struct fathom_errinfo info;
	const uint64_t stack = s->now[SP] & ~(uint64_t)(PAGE - 1);

	if (s->walker)
		return;
	space.n_mappings = read_segments(s, m, &space.entry);
	m[space.n_mappings++] = (struct fathom_mapping_info){ .start = stack - 64 * (uint64_t)PAGE,
							      .end = stack + PAGE,
							      .rights = PF_R | PF_W };
	if (s->trampoline)
		m[space.n_mappings++] =
			(struct fathom_mapping_info){ .start =
							      s->trampoline & ~(uint64_t)(PAGE - 1),
						      .end = (s->trampoline | (PAGE - 1)) + 1,
						      .rights = PF_R | PF_X };
	qsort(m, space.n_mappings, sizeof *m, by_start);
	if (fathom_target_open_reader(s->session, &space, NULL, &s->target, &info) ||
	    fathom_view_begin(s->target, FATHOM_VIEW_MEMORY, &s->view, &info) ||
	    fathom_walker_create(s->view, &s->walker, &info)) {
		fprintf(stderr, "arm_stepper: %s\n", info.what);
		exit(2);
	}
}

static void check(struct stepper *s)
{
	static uint8_t copy[COPY];
	struct fathom_walk_frames frames = { 0 };
	struct fathom_registers r = { .machine = EM_AARCH64, .pc = s->now[PC], .sp = s->now[SP] };
	struct fathom_stack_piece piece = { .avma = r.sp - 256 };
	struct fathom_walk w = { .registers = &r,
				 .pieces = &piece,
				 .n_pieces = 1,
				 .max_frames = MAX_DEPTH,
				 .frames = &frames };

	if (!take_changes(&s->log, read_word, s))
		return;
	begin_view(s);
	for (uint8_t i = 0; i <= PC; i++)
		fathom_register_set(&r, i, s->now[i]);
	piece.bytes = (struct fathom_bytes){ copy, read_memory(s, piece.avma, copy, sizeof copy) };
	if (fathom_walker_run(s->walker, &w))
		fail("walk");
	compare(&s->count, &s->log, &w, s->now[PC], s->now[SP]);
	fathom_array_free(&frames);
}

/* Makes one step, or takes a signal; false if the program has ended. */
static bool step(struct stepper *s)
{
	int stopped;

	s->code = 0;
	(void)read_memory(s, s->now[PC], &s->code, sizeof s->code);
	memcpy(s->before, s->now, sizeof s->now);
	stopped = is_exclusive(s->code, false) ? make_exclusive(s) : resume(s, "s");
	if (stopped < 0)
		return false;
	if (is_syscall(s->code))
		note_syscall(s, stopped == SIGTRAP);
	else if (stopped == SIGTRAP || s->now[PC] != s->before[PC])
		note_instruction(s, s->code, s->before[SP]);
	if (stopped == SIGTRAP)
		return true;
	/* gdb's numbers of signals are others: include/gdb/signals.def */
	if (!deliver(s, stopped))
		return false;
	if (!s->trampoline) {
		s->trampoline = s->now[LINK];
		end_view(s);
	}
	return true;
}

static void run(struct stepper *s)
{
	while (!s->log.is_lost && s->count.steps < s->steps) {
		if (s->count.steps % s->every == 0)
			check(s);
		if (!step(s))
			return;
		s->count.steps++;
	}
	printf("# not run to its end\n");
}

static void start(struct stepper *s, const char *socket_path, const char *qemu)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const struct timespec t = { .tv_nsec = 1000000 };
	char answer[PACKET];
	int out;

	(void)snprintf(address.sun_path, sizeof address.sun_path, "%s", socket_path);
	(void)unlink(socket_path);
	s->pid = fork();
	if (s->pid == 0) {
		out = open("/dev/null", O_WRONLY | O_CLOEXEC);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)dup2(out, 1);
		(void)execlp(qemu, qemu, "-B", "0", "-g", socket_path, s->path, NULL);
		_exit(127);
	}
	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	for (int i = 0; connect(s->fd, (const struct sockaddr *)&address, sizeof address); i++) {
		if (i == 10000 || waitpid(s->pid, NULL, WNOHANG))
			fail(qemu);
		(void)nanosleep(&t, NULL);
	}
	ask(s, "?", answer);
	read_registers(s);
}

int main(int argc, char **argv)
{
	struct stepper s = { .every = 1, .steps = 1000000 };
	int option;

	while ((option = getopt(argc, argv, "+n:k:v:")) != -1) {
		uint64_t *const to = option == 'n'   ? &s.steps
				     : option == 'k' ? &s.every
				     : option == 'v' ? &s.count.to_show
						     : NULL;

		if (!to)
			return 2;
		*to = strtoull(optarg, NULL, 0);
	}
	s.log = (struct log){ .items = malloc(MAX_DEPTH * sizeof *s.log.items), .cap = MAX_DEPTH };
	if (optind + 3 != argc || !s.every || !s.log.items || fathom_create(NULL, &s.session, NULL))
		return 2;
	s.path = argv[optind + 2];
	start(&s, argv[optind], argv[optind + 1]);
	run(&s);
	print_compared(&s.count, &s.log);
	end_view(&s);
	fathom_destroy(s.session);
	(void)kill(s.pid, SIGKILL);
	free(s.log.items);
	return 0;
}
