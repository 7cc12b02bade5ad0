/* SPDX-License-Identifier: MIT */
/*
 * Runs a program under ptrace(2) and prints its system calls by capture, record and text: the lines
 * go to a file, in strace's dialect, with its `+++ exited` line. The record is written to other
 * memory and read back, as if it came from a file.
 *
 *	tracer [-v] [-x] [-xx] [-y] [-a] [-X raw|verbose] [-s N] -o FILE PROGRAM [ARGUMENT...]
 *
 * Follows one process without its children. With -a in the seed's dialect, with -j as parts.
 *
 *	tracer -l
 *
 * prints the table of calls: machine, number, name, classes as bits, then the arguments.
 */
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/ptrace.h>

#include "host/syscalls/syscall_capture.h"
#include "host/syscalls/syscall_table.h"
#include "fathom/stack.h"

#define DESCRIPTORS 64

struct tracer {
	struct fathom_syscall_options options;
	struct fathom_reader memory;
	FILE *out;
	pid_t pid;
	bool parts;
	char *names[DESCRIPTORS];
};

static void fail(const char *what)
{
	perror(what);
	exit(125);
}

static size_t read_memory(void *data, uint64_t avma, void *to, size_t size)
{
	const struct tracer *t = data;
	size_t n = 0;

	while (n < size) {
		const size_t in_page = 4096 - (size_t)((avma + n) & 4095);
		const size_t part = size - n < in_page ? size - n : in_page;
		struct iovec local = { (char *)to + n, part };
		struct iovec remote = { (void *)(uintptr_t)(avma + n), part };

		if (process_vm_readv(t->pid, &local, 1, &remote, 1, 0) != (ssize_t)part)
			break;
		n += part;
	}
	return n;
}

/* Reads what the link of a descriptor says; -1: the current folder. */
static bool read_link(const struct tracer *t, int32_t fd, char path[PATH_MAX])
{
	char link[64];
	ssize_t n;

	if (fd < 0)
		snprintf(link, sizeof link, "/proc/%d/cwd", t->pid);
	else
		snprintf(link, sizeof link, "/proc/%d/fd/%d", t->pid, fd);
	n = readlink(link, path, PATH_MAX - 1);
	if (n < 0)
		return false;
	path[n] = '\0';
	return true;
}

/* Keeps the names that descriptors have before the call, which may close them. */
static void note_descriptors(struct tracer *t)
{
	for (int i = 0; i < DESCRIPTORS; i++) {
		char path[PATH_MAX];

		free(t->names[i]);
		t->names[i] = read_link(t, i, path) ? strdup(path) : NULL;
	}
}

/* As strace -y has it. */
static bool name_fd(void *data, int32_t fd, bool after, struct fathom_fd_name *ret)
{
	const struct tracer *t = data;

	if (!after && fd >= 0 && fd < DESCRIPTORS && t->names[fd])
		fathom_copy_cstr(ret->path, sizeof ret->path, t->names[fd]);
	else if (!read_link(t, fd, ret->path))
		return false;
	ret->path_size = strlen(ret->path);
	ret->detail_size = 0;
	return true;
}

static void print_parts(const struct tracer *t, const char *text,
			const struct fathom_syscall_line *line)
{
	fprintf(t->out, "%s", line->name ? line->name : "?");
	for (unsigned i = 0; i < line->n; i++)
		fprintf(t->out, "\t%s=%.*s", line->args[i].name ? line->args[i].name : "?",
			(int)(line->args[i].end - line->args[i].begin), text + line->args[i].begin);
	fprintf(t->out, "\t%s\t%s\n", text + line->result, line->error ? line->error : "");
}

static void print(struct tracer *t, const struct fathom_syscall_record *made)
{
	struct fathom_text text = { 0 };
	struct fathom_syscall_record r;
	struct fathom_syscall_line line;
	uint8_t *copy = malloc(made->n);
	char *buf;

	memcpy(copy, made->bytes, made->n);
	if (!fathom_syscall_record_open(copy, made->n, &r))
		fail("the record that was made is not whole");
	/* Once for the size; names of descriptors come from outside. */
	fathom_syscall_format(&r, &t->options, &text, NULL);
	buf = malloc(text.len + 4096);
	text = text_init(buf, text.len + 4096);
	fathom_syscall_format(&r, &t->options, &text, &line);
	fathom_text_end(&text);
	if (t->parts)
		print_parts(t, buf, &line);
	else
		fprintf(t->out, "%s\n", buf);
	fflush(t->out);
	free(copy);
	free(buf);
}

static bool get_info(const struct tracer *t, struct ptrace_syscall_info *ret)
{
	return ptrace(PTRACE_GET_SYSCALL_INFO, t->pid, sizeof *ret, ret) > 0;
}

static uint32_t machine_of(uint32_t audit_arch)
{
	return audit_arch & 0xffff;
}

/* One stop at a system call; *@ret_open says whether a call is going on in @r. */
static void take_stop(struct tracer *t, struct fathom_syscall_record *r, uint8_t *bytes, bool *open)
{
	struct ptrace_syscall_info info;
	struct fathom_syscall_call call = { 0 };

	if (!get_info(t, &info))
		return;
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
		call.machine = machine_of(info.arch);
		call.number = info.entry.nr;
		call.sp = info.stack_pointer;
		memcpy(call.args, info.entry.args, sizeof call.args);
		if (t->options.name_fd)
			note_descriptors(t);
		*open = fathom_syscall_capture_entry(&call, &t->options, &t->memory, bytes,
						     FATHOM_SYSCALL_RECORD_MAX, r);
	} else if (info.op == PTRACE_SYSCALL_INFO_EXIT && *open) {
		fathom_syscall_capture_exit(r, info.exit.rval, &t->options, &t->memory);
		print(t, r);
		*open = false;
	}
}

static int follow(struct tracer *t)
{
	static uint8_t bytes[FATHOM_SYSCALL_RECORD_MAX] __attribute__((aligned(8)));
	struct fathom_syscall_record r;
	bool open = false;
	int status;
	int signal = 0;

	for (;;) {
		if (ptrace(PTRACE_SYSCALL, t->pid, 0, signal) && errno != ESRCH)
			fail("PTRACE_SYSCALL");
		if (waitpid(t->pid, &status, __WALL) < 0)
			fail("waitpid");
		if (WIFEXITED(status) || WIFSIGNALED(status))
			break;
		signal = 0;
		if (WSTOPSIG(status) == (SIGTRAP | 0x80))
			take_stop(t, &r, bytes, &open);
		else if (status >> 16 == 0)
			signal = WSTOPSIG(status);
	}
	if (open) {
		fathom_syscall_record_end(&r, FATHOM_SYSCALL_NEVER, 0);
		print(t, &r);
	}
	for (int i = 0; i < DESCRIPTORS; i++)
		free(t->names[i]);
	if (WIFEXITED(status))
		fprintf(t->out, "+++ exited with %d +++\n", WEXITSTATUS(status));
	else
		fprintf(t->out, "+++ killed by %s +++\n", fathom_signal_name(WTERMSIG(status)));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void start(struct tracer *t, char **argv)
{
	int status;

	t->pid = fork();
	if (t->pid < 0)
		fail("fork");
	if (!t->pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		execvp(argv[0], argv);
		fail(argv[0]);
	}
	if (waitpid(t->pid, &status, 0) < 0 || !WIFSTOPPED(status))
		fail("waitpid");
	if (ptrace(PTRACE_SETOPTIONS, t->pid, 0,
		   PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL | PTRACE_O_TRACEEXEC))
		fail("PTRACE_SETOPTIONS");
}

static void print_call(uint32_t machine, uint32_t number)
{
	const struct fathom_syscall *call = fathom_syscall_find(machine, number);

	if (!call)
		return;
	printf("%u\t%u\t%s\t%x", machine, number, fathom_syscall_name(machine, number),
	       call->classes);
	for (unsigned i = 0; i < call->n_arguments; i++)
		printf("\t%s|%s", fathom_syscall_argument_type(call, i),
		       fathom_syscall_argument_name(call, i));
	putchar('\n');
}

static int print_table(void)
{
	for (size_t i = 0; i < FATHOM_SYSCALL_TABLES; i++)
		for (uint32_t k = 0; k < fathom_syscall_tables[i].n; k++)
			print_call(fathom_syscall_tables[i].machine, k);
	return 0;
}

int main(int argc, char **argv)
{
	struct tracer t = { .options = { .string_limit = FATHOM_SYSCALL_STRING_LIMIT } };
	int option;

	t.out = stderr;
	while ((option = getopt(argc, argv, "+vxyajls:o:X:")) != -1)
		switch (option) {
		case 'v':
			t.options.is_verbose = true;
			break;
		case 'x':
			t.options.hex++;
			break;
		case 'y':
			t.options.name_fd = name_fd;
			break;
		case 'a':
			t.options.dialect = FATHOM_SYSCALL_ARROW;
			break;
		case 'j':
			t.parts = true;
			break;
		case 'X':
			t.options.constants =
				*optarg == 'r' ? FATHOM_SYSCALL_RAW : FATHOM_SYSCALL_BOTH;
			break;
		case 'l':
			return print_table();
		case 's':
			t.options.string_limit = (uint32_t)strtoul(optarg, NULL, 10);
			break;
		case 'o':
			t.out = fopen(optarg, "we");
			break;
		default:
			return 125;
		}
	if (!t.out || optind == argc)
		fail("usage");
	t.options.data = &t;
	t.memory = (struct fathom_reader){ .read = read_memory, .data = &t };
	start(&t, argv + optind);
	return follow(&t);
}
