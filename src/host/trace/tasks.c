/* SPDX-License-Identifier: MIT */
#include "host/trace/tasks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <x86intrin.h>

#include "host/trace/syscall_stops.h"

int fathom_follow_options(const struct fathom_follow *f)
{
	const bool is_filtered = f->calls && f->calls->filter;
	/*
	 * Children that nothing is reported of may be traced by their parents, where nothing is in
	 * them.
	 */
	const bool leaves_children =
		f->calls && f->calls->is_all && !is_filtered && f->flags & FATHOM_TRACE_NO_CHILDREN;

	return (FATHOM_TRACED_OPTIONS & ~(leaves_children ? FATHOM_CHILD_OPTIONS : 0)) |
	       (is_filtered ? PTRACE_O_TRACESECCOMP | PTRACE_O_EXITKILL : 0) |
	       (f->flags & FATHOM_TRACE_HOLD_ENDS ? PTRACE_O_TRACEEXIT : 0);
}

struct fathom_follow_task *fathom_follow_find(const struct fathom_follow *f, pid_t tid)
{
	for (size_t i = f->tasks.n; i--;)
		if (f->tasks.items[i].tid == tid)
			return &f->tasks.items[i];
	return NULL;
}

struct fathom_traced *fathom_follow_add_process(struct fathom_follow *f)
{
	struct fathom_traced *p = calloc(1, sizeof *p);

	if (!p || !fathom_array_push(&f->processes, p)) {
		free(p);
		return NULL;
	}
	fathom_tracee_init(&p->tracee, 0);
	fathom_follow_listen(f, &p->tracee);
	p->number = ++f->n_numbers;
	return p;
}

void fathom_follow_listen(struct fathom_follow *f, struct fathom_tracee *t)
{
	t->note = fathom_follow_note_event;
	t->data = f;
}

/* Takes back what @p has asked: nobody waits for the answer. */
static void forget_question(const struct fathom_traced *p)
{
	struct fathom_trace_head *head = p->program ? p->program->head : NULL;

	if (head && atomic_load(&head->asker) == p->number)
		atomic_store(&head->mail, FATHOM_TRACE_MAIL_FREE);
}

void fathom_follow_remove_process(struct fathom_follow *f, struct fathom_traced *p)
{
	forget_question(p);
	for (size_t i = 0; i < f->processes.n; i++)
		if (f->processes.items[i] == p) {
			f->processes.items[i] = f->processes.items[--f->processes.n];
			break;
		}
	fathom_syscall_stacks_forget(p);
	fathom_program_end(p);
	fathom_tracee_deinit(&p->tracee);
	free(p);
}

/* Returns the ring of @task. */
static struct fathom_ring_name ring_of(const struct fathom_follow_task *task)
{
	if (!task || task->ring == FATHOM_NO_RING || !task->process->program)
		return (struct fathom_ring_name){ NULL, 0 };
	return (struct fathom_ring_name){ task->process->program, task->ring };
}

/* Begins a post in the order of @task, whose thread is stopped. */
struct fathom_post fathom_follow_post_at(const struct fathom_follow_task *task, uint8_t type,
					 const char *text)
{
	struct fathom_post post = { .ring = ring_of(task),
				    .ticks = __rdtsc(),
				    .pid = task->process->tracee.pid,
				    .tid = task->tid,
				    .type = type };

	if (text && !task->process->is_silent)
		post.text = strdup(text);
	if (post.ring.program)
		post.cursor = fathom_program_cursor(task->process, task->ring);
	return post;
}

/* Posts that the ring of @task is not used any more, and that it has ended if there is a @text. */
void fathom_follow_release_ring(struct fathom_follow *f, struct fathom_follow_task *task,
				const char *text, int status)
{
	struct fathom_post post = { .ring = ring_of(task),
				    .ticks = __rdtsc(),
				    .pid = task->process->tracee.pid,
				    .tid = task->tid,
				    .status = status,
				    .type = FATHOM_TRACE_EXIT,
				    .is_release = true };

	if (text && !task->process->is_silent)
		post.text = strdup(text);
	fathom_rings_post(f->rings, &post);
	task->ring = FATHOM_NO_RING;
}

/* Posts that @task's program is not recorded, and why. */
void fathom_follow_note(struct fathom_follow *f, const struct fathom_follow_task *task,
			const char *why)
{
	char line[FATHOM_FOLLOW_TEXT + 32];
	struct fathom_post post;

	(void)snprintf(line, sizeof line, "not recorded: %s", why);
	post = fathom_follow_post_at(task, FATHOM_TRACE_NOTE, line);
	fathom_rings_post(f->rings, &post);
}

/*
 * Gives @task, whose thread is stopped before its first instruction, a ring, and posts its
 * beginning, in the order of @parent, as @text.
 */
void fathom_follow_begin_task(struct fathom_follow *f, struct fathom_follow_task *task,
			      const struct fathom_follow_task *parent, bool is_copy, uint64_t stack,
			      const char *text)
{
	struct user_regs_struct regs = { .rsp = 0 };
	struct fathom_post post;

	if (task->process->program)
		task->ring = fathom_program_give_ring(task->process, task->tid);
	(void)fathom_tracee_get(task->tid, &regs);
	post = fathom_follow_post_at(parent ? parent : task, FATHOM_TRACE_START,
				     task->process->is_silent ? NULL : text);
	if (!parent) {
		post.ring = (struct fathom_ring_name){ NULL, 0 };
		post.cursor = 0;
	}
	post.pid = task->process->tracee.pid;
	post.tid = task->tid;
	post.begins = ring_of(task);
	post.sp = stack ? stack : regs.rsp;
	post.is_copy = is_copy;
	post.is_silent = task->process->is_silent;
	fathom_rings_post(f->rings, &post);
}

void fathom_follow_note_event(void *data, pid_t tid, int status)
{
	struct fathom_follow *f = data;

	(void)fathom_array_push(&f->events, (struct fathom_follow_event){ tid, status });
}

/* Frees what @task has beside its call and its ring. */
static void free_task(struct fathom_follow *f, struct fathom_follow_task *task)
{
	free(task->n_injected);
	f->n_delayed -= task->resumes_at != 0;
}

void fathom_follow_forget_task(struct fathom_follow *f, struct fathom_follow_task *task)
{
	free_task(f, task);
	*task = f->tasks.items[--f->tasks.n];
}

void fathom_follow_forget_tasks(struct fathom_follow *f, const struct fathom_traced *p)
{
	size_t n = 0;

	for (size_t i = 0; i < f->tasks.n; i++) {
		struct fathom_follow_task *task = &f->tasks.items[i];

		if (task->process == p) {
			fathom_follow_end_syscall(f, task);
			fathom_follow_release_ring(f, task, NULL, 0);
			free_task(f, task);
		} else {
			f->tasks.items[n++] = *task;
		}
	}
	f->tasks.n = n;
}

void fathom_follow_set_up(const struct fathom_follow *f, struct fathom_traced *p)
{
	p->program->first = f->flags & FATHOM_TRACE_SCOPES ? 0 : 1;
	p->program->head->wait_ticks = f->wait_ticks;
	p->program->head->full = f->flags & FATHOM_TRACE_LATEST  ? FATHOM_TRACE_OVERWRITE
				 : f->flags & FATHOM_TRACE_LOSSY ? FATHOM_TRACE_LOSE
								 : FATHOM_TRACE_WAIT;
}
