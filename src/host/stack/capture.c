/* SPDX-License-Identifier: MIT */
#include "host/stack/capture.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/base/array.h"
#include "host/base/proc_stat_read.h"
#include "host/base/thread_list.h"
#include "host/code/x86_64/x86_instructions.h"
#include "host/file/file.h"
#include "host/space/user/prstatus.h"
#include "host/stack/capture_work.h"
#include "host/stack/refusal.h"
#include "safe/base/limits.h"

/* Bytes below sp that a function may use without moving it (psABI of x86-64, 3.2.2). */
#define RED_ZONE 128
/* How often a thread that ran on is read again. */
#define PEEKS 3

struct tids {
	FATHOM_ARRAY_OF(int32_t);
};

void fathom_capture_fail(struct fathom_capture *c, struct fathom_thread_copy *copy, fathom_err err,
			 const char *what)
{
	char path[48];

	(void)snprintf(path, sizeof path, "/proc/%d/task/%d", c->options.pid, copy->tid);
	memset(&copy->failed, 0, sizeof copy->failed);
	copy->err = fathom_fail(&copy->failed, err, "", 0, what);
	fathom_errinfo_set_file(&copy->failed, path);
}

void fathom_capture_refuse(struct fathom_capture *c, struct fathom_thread_copy *copy,
			   struct fathom_task *task, int number)
{
	fathom_capture_fail(c, copy, FATHOM_E_OS, "may not be traced");
	copy->failed.os_errno = number;
	fathom_refusal_explain(task, &copy->failed);
}

void fathom_capture_fail_read(struct fathom_capture *c, struct fathom_thread_copy *copy,
			      struct fathom_task *task, int number)
{
	switch (number) {
	case EACCES:
	case EPERM:
		fathom_capture_refuse(c, copy, task, number);
		return;
	case ENOENT:
	case ESRCH:
		fathom_capture_fail(c, copy, FATHOM_E_NOT_FOUND, "has ended");
		return;
	case EMFILE:
	case ENFILE:
		fathom_capture_fail(c, copy, FATHOM_E_LIMIT, "too many files are open (ulimit -n)");
		break;
	default:
		fathom_capture_fail(c, copy, FATHOM_E_OS, "cannot be read");
	}
	copy->failed.os_errno = number;
}

/* Opens the memory of the program; of its threads, the first may have ended. */
static int open_memory(int proc, const struct tids *tids)
{
	int fd = -1;

	for (size_t i = 0; i < tids->n && fd < 0; i++) {
		char path[32];

		(void)snprintf(path, sizeof path, "task/%d/mem", tids->items[i]);
		fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	}
	return fd;
}

/* Returns a pidfd of the process; -1 if the number is of another process by now. */
static int open_process(const struct fathom_capture_options *o)
{
	int fd = o->pid > 0 ? (int)syscall(SYS_pidfd_open, o->pid, 0) : -1;

	if (fd >= 0 && faccessat(o->proc, "stat", F_OK, 0)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static int compare(const void *a, const void *b)
{
	const int32_t x = *(const int32_t *)a;
	const int32_t y = *(const int32_t *)b;

	return (x > y) - (x < y);
}

static bool add_tid(void *data, pid_t tid)
{
	struct tids *tids = data;

	return tids->n < FATHOM_MAX_THREADS_LISTED && fathom_array_push(tids, (int32_t)tid);
}

/* Lists the threads in the folder @tasks, in no order. */
static fathom_err read_tids(int tasks, struct tids *ret, struct fathom_errinfo *reterr)
{
	const int err = fathom_threads_each(tasks, add_tid, ret);

	errno = -err;
	if (err < 0)
		return fathom_fail_os(reterr, "/proc");
	return !err || ret->n == FATHOM_MAX_THREADS_LISTED ? FATHOM_OK : fathom_fail_memory(reterr);
}

/* Moves the main thread, whose number is in /proc/PID/stat, to the front. */
static void put_main_first(int proc, struct tids *tids)
{
	struct fathom_proc_stat stat;
	size_t i = 0;

	if (!fathom_proc_stat_read(proc, "stat", &stat))
		return;
	while (i < tids->n && tids->items[i] != stat.pid)
		i++;
	if (i == tids->n)
		return;
	memmove(tids->items + 1, tids->items, i * sizeof *tids->items);
	tids->items[0] = stat.pid;
}

fathom_err fathom_capture_list(struct fathom_capture *c, int32_t **ret_tids, size_t *ret_n,
			       struct fathom_errinfo *reterr)
{
	struct tids tids = { 0 };
	const fathom_err err = read_tids(c->tasks, &tids, reterr);

	if (err) {
		fathom_array_free(&tids);
		return err;
	}
	if (tids.n)
		qsort(tids.items, tids.n, sizeof *tids.items, compare);
	put_main_first(c->options.proc, &tids);
	*ret_tids = tids.items;
	*ret_n = tids.n;
	return FATHOM_OK;
}

fathom_err fathom_capture_create(const struct fathom_capture_options *options,
				 struct fathom_capture **ret, struct fathom_errinfo *reterr)
{
	struct fathom_capture *c = calloc(1, sizeof *c);
	struct tids tids = { 0 };
	fathom_err err;

	if (!c)
		return fathom_fail_memory(reterr);
	c->options = *options;
	c->memory = -1;
	c->process = -1;
	c->tasks = openat(options->proc, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	err = c->tasks < 0 ? fathom_fail_os(reterr, "/proc") : read_tids(c->tasks, &tids, reterr);
	if (err) {
		fathom_capture_destroy(c);
	} else {
		c->memory = open_memory(options->proc, &tids);
		c->process = open_process(options);
		*ret = c;
	}
	fathom_array_free(&tids);
	return err;
}

void fathom_capture_destroy(struct fathom_capture *c)
{
	if (!c)
		return;
	if (c->memory >= 0)
		close(c->memory);
	if (c->process >= 0)
		close(c->process);
	if (c->tasks >= 0)
		close(c->tasks);
	free(c->scratch);
	free(c);
}

void fathom_thread_copy_deinit(struct fathom_thread_copy *copy)
{
	free(copy->stack);
	copy->stack = NULL;
	copy->pieces.n = 0;
}

bool fathom_capture_is_gone(const struct fathom_capture *c)
{
	uint8_t byte;

	/* Memory that no program has any more reads as 0 bytes without an error. */
	return c->memory >= 0 && !fathom_file_read_at(c->memory, 0, &byte, 1) && !errno;
}

bool fathom_capture_open(struct fathom_capture *c, struct fathom_thread_copy *copy,
			 struct fathom_task *ret)
{
	const bool is_open = fathom_task_open(ret, c->options.proc, copy->tid);
	struct fathom_task_stat stat;

	if (is_open && fathom_task_stat(ret, &stat)) {
		memcpy(copy->name, stat.name, sizeof copy->name);
		copy->state = stat.state;
		copy->is_kernel_worker = stat.is_kernel_worker;
		if (copy->is_kernel_worker)
			fathom_capture_fail(c, copy, FATHOM_E_UNSUPPORTED,
					    "kernel worker, no user stack");
		else if (copy->state != 'Z' && copy->state != 'X')
			return true;
		else
			fathom_capture_fail(c, copy, FATHOM_E_NOT_FOUND,
					    "has ended, and is a zombie");
	} else {
		fathom_capture_fail_read(c, copy, ret, errno);
	}
	return false;
}

/* Makes room for @more bytes after the first @used; false without memory. */
static bool enlarge_scratch(struct fathom_capture *c, size_t used, size_t more)
{
	uint8_t *scratch;

	if (more <= c->scratch_size - used)
		return true;
	scratch = realloc(c->scratch, used + more);
	if (!scratch)
		return false;
	c->scratch = scratch;
	c->scratch_size = used + more;
	return true;
}

/* Reads the stack from below @sp to its end, after the first @used bytes of the scratch. */
static size_t read_piece(struct fathom_capture *c, uint64_t sp, size_t used, uint64_t *ret_avma)
{
	const struct fathom_maps *maps = c->options.maps;
	const size_t i = fathom_maps_at(maps, sp);
	const bool is_mapped = i < maps->n;
	uint64_t from = sp > RED_ZONE ? sp - RED_ZONE : 0;
	uint64_t size = FATHOM_MAX_STACK_GUESS;

	/* Without a mapping the thread or its mapping is younger than the map. */
	if (is_mapped) {
		if (from < maps->items[i].start)
			from = maps->items[i].start;
		size = maps->items[i].end - from;
	}
	if (size > FATHOM_MAX_STACK_COPY)
		size = FATHOM_MAX_STACK_COPY;
	*ret_avma = from;
	if (!enlarge_scratch(c, used, (size_t)size))
		return 0;
	return c->options.memory->read(c->options.memory->data, from, c->scratch + used,
				       (size_t)size);
}

struct fathom_scratch_pieces fathom_capture_read_stack(struct fathom_capture *c,
						       const struct fathom_thread_copy *copy)
{
	struct fathom_scratch_pieces p = { .n = (uint8_t)(copy->n_also + 1u) };
	size_t used = 0;

	for (uint8_t i = 0; i < p.n; i++) {
		p.size[i] =
			read_piece(c, i ? copy->also[i - 1] : copy->registers.sp, used, &p.avma[i]);
		used += p.size[i];
	}
	if (c->options.read_more)
		c->options.read_more(c->options.read_more_data, copy);
	return p;
}

void fathom_capture_keep_stack(struct fathom_capture *c, struct fathom_thread_copy *copy,
			       const struct fathom_scratch_pieces *pieces)
{
	size_t size = 0;

	for (uint8_t i = 0; i < pieces->n; i++)
		size += pieces->size[i];
	if (!pieces->size[0] || pieces->avma[0] + pieces->size[0] <= copy->registers.sp)
		return;
	copy->stack = malloc(size);
	if (!copy->stack) {
		fathom_capture_fail(c, copy, FATHOM_E_MEMORY, "out of memory");
		return;
	}
	memcpy(copy->stack, c->scratch, size);
	size = 0;
	for (uint8_t i = 0; i < pieces->n; i++) {
		copy->pieces.items[copy->pieces.n++] =
			(struct fathom_stack_piece){ pieces->avma[i],
						     { copy->stack + size, pieces->size[i] } };
		size += pieces->size[i];
	}
}

/*
 * Returns whether a thread is still in the system call that @copy says. The pc is after the call,
 * or before it if the kernel is about to restart it (aarch64 goes back before the stop).
 */
static bool is_in_call(const struct fathom_regset_call *c, const struct fathom_thread_copy *copy)
{
	return copy->in_syscall && c->sp == copy->registers.sp &&
	       (c->pc == copy->registers.pc || c->pc + c->size == copy->registers.pc) &&
	       !memcmp(c->arguments + 1, copy->arguments + 1, 5 * sizeof *c->arguments);
}

bool fathom_capture_take_registers(const struct fathom_regset *r, struct fathom_thread_copy *copy)
{
	const struct fathom_regset_call c = fathom_regset_call(r);

	if (!c.machine)
		return false;
	if (c.has_number) {
		copy->syscall = c.number;
		copy->in_syscall = c.number >= 0;
		memcpy(copy->arguments, c.arguments, sizeof copy->arguments);
	} else {
		copy->in_syscall = is_in_call(&c, copy);
	}
	if (!copy->in_syscall) {
		copy->syscall = -1;
		memset(copy->arguments, 0, sizeof copy->arguments);
	}
	return fathom_prstatus_general(c.machine, false, (struct fathom_bytes){ r->bytes, r->size },
				       &copy->registers);
}

struct fathom_blocking_call fathom_capture_call(struct fathom_capture *c,
						const struct fathom_thread_copy *copy,
						const struct fathom_task *task)
{
	return (struct fathom_blocking_call){ .machine = copy->registers.machine,
					      .number = copy->syscall,
					      .arguments = copy->arguments,
					      .task = task->dir,
					      .process = c->process,
					      .memory = c->options.memory };
}

/*
 * DWARF numbers of a machine's pc, sp and arguments of system calls, by its psABI and syscall(2).
 */
struct known {
	uint32_t machine;
	uint8_t pc;
	uint8_t sp;
	uint8_t first; /* index of the first argument whose register the call leaves alone */
	uint8_t arguments[6];
};

static const struct known machines[] = {
	/* rdi rsi rdx r10 r8 r9 */
	{ EM_X86_64, 16, 7, 0, { 5, 4, 1, 10, 8, 9 } },
	/*
	 * ebx ecx edx esi edi ebp. By int $0x80 these are the registers. By sysenter or syscall in
	 * the vDSO, ebp or ecx are not, but the kernel shows what the vDSO has saved of them, and
	 * the pc that it shows is after an int $0x80 where they are about to be restored.
	 */
	{ EM_386, 8, 4, 0, { 3, 1, 2, 6, 7, 5 } },
	/* x0 to x5; the call's result will replace x0 */
	{ EM_AARCH64, 32, 31, 1, { 0, 1, 2, 3, 4, 5 } },
};

static const struct known *find_machine(uint32_t machine)
{
	for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
		if (machines[i].machine == machine)
			return &machines[i];
	return NULL;
}

/*
 * Returns whether the call before @pc was made in the usual way of @machine. A program of x86-64
 * may use int $0x80, too, with the numbers and the registers of i386.
 */
static bool is_usual_call(struct fathom_capture *c, uint32_t machine, uint64_t pc)
{
	uint8_t bytes[FATHOM_X86_SYSCALL_SIZE];

	return machine != EM_X86_64 ||
	       (fathom_reader_read(c->options.memory, pc - sizeof bytes, bytes, sizeof bytes) &&
		fathom_x86_is_syscall(bytes));
}

void fathom_capture_check_call(struct fathom_capture *c, struct fathom_thread_copy *copy)
{
	if (is_usual_call(c, copy->registers.machine, copy->registers.pc))
		return;
	copy->in_syscall = false;
	copy->syscall = -1;
	memset(copy->arguments, 0, sizeof copy->arguments);
}

void fathom_capture_take_syscall(struct fathom_capture *c, struct fathom_thread_copy *copy,
				 const struct fathom_task_syscall *s)
{
	const struct known *m = find_machine(c->options.machine);
	struct fathom_registers *r = &copy->registers;

	memset(r, 0, sizeof *r);
	r->machine = c->options.machine;
	r->pc = s->pc;
	r->sp = s->sp;
	copy->in_syscall = s->in_syscall && is_usual_call(c, r->machine, s->pc);
	copy->syscall = copy->in_syscall ? s->number : -1;
	memset(copy->arguments, 0, sizeof copy->arguments);
	if (!m)
		return;
	fathom_register_set(r, m->pc, s->pc);
	fathom_register_set(r, m->sp, s->sp);
	if (!copy->in_syscall)
		return;
	memcpy(copy->arguments, s->arguments, sizeof copy->arguments);
	for (uint8_t i = m->first; i < 6; i++)
		fathom_register_set(r, m->arguments[i], s->arguments[i]);
}

/* The state that must not change while a thread is read. */
struct task_state {
	struct fathom_task_status status;
	struct fathom_task_syscall syscall;
};

static bool is_same(const struct task_state *a, const struct task_state *b)
{
	const struct fathom_task_syscall *x = &a->syscall;
	const struct fathom_task_syscall *y = &b->syscall;

	return a->status.voluntary == b->status.voluntary && a->status.forced == b->status.forced &&
	       !y->runs && x->number == y->number && x->sp == y->sp && x->pc == y->pc &&
	       !memcmp(x->arguments, y->arguments, sizeof x->arguments);
}

/* Reads the thread of @task once; copy->err is FATHOM_E_CHANGED if it ran on. */
static void peek_once(struct fathom_capture *c, struct fathom_task *task,
		      struct fathom_thread_copy *copy)
{
	struct task_state before;
	struct task_state after;
	struct fathom_scratch_pieces pieces;

	if (!fathom_task_status(task, &before.status) ||
	    !fathom_task_syscall(task, &before.syscall)) {
		fathom_capture_fail_read(c, copy, task, errno);
		return;
	}
	if (before.syscall.runs) {
		fathom_capture_fail(c, copy, FATHOM_E_UNSUPPORTED, "runs, and was not stopped");
		return;
	}
	copy->err = FATHOM_OK;
	fathom_capture_take_syscall(c, copy, &before.syscall);
	pieces = fathom_capture_read_stack(c, copy);
	if (!fathom_task_syscall(task, &after.syscall) ||
	    !fathom_task_status(task, &after.status) || !is_same(&before, &after))
		fathom_capture_fail(c, copy, FATHOM_E_CHANGED, "ran on while it was read");
	else if (fathom_capture_is_gone(c))
		fathom_capture_fail(c, copy, FATHOM_E_CHANGED, "runs another program by now");
	else if (!before.syscall.sp)
		/* The kernel has no stack of it any more. */
		fathom_capture_fail(c, copy, FATHOM_E_NOT_FOUND, "has ended");
	else
		fathom_capture_keep_stack(c, copy, &pieces);
}

void fathom_capture_peek(struct fathom_capture *c, struct fathom_thread_copy *copy)
{
	struct fathom_task task;

	copy->syscall = -1;
	if (fathom_capture_open(c, copy, &task)) {
		copy->err = FATHOM_E_CHANGED;
		for (int i = 0; i < PEEKS && copy->err == FATHOM_E_CHANGED; i++)
			peek_once(c, &task, copy);
	}
	if (copy->err) {
		memset(&copy->registers, 0, sizeof copy->registers);
		copy->in_syscall = false;
		copy->syscall = -1;
	}
	fathom_task_close(&task);
}
