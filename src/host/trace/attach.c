/* SPDX-License-Identifier: MIT */
#include "host/trace/attach.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "host/base/clock.h"
#include "host/base/proc_stat_read.h"
#include "host/code/x86_64/x86_instructions.h"
#include "host/file/process_status.h"
#include "host/trace/following.h"
#include "host/trace/stop_process.h"
#include "host/trace/hook_image.h"
#include "host/trace/referring.h"
#include "host/trace/scratch.h"

/* How often all threads of a process are stopped at most until all stand still at once. */
#define TRIES 200

/*
 * How long threads that are in the runtime are let go on in all until they have come out of it, and
 * the first and longest pause before they are stopped again: on a busy machine a thread that is
 * stopped again at once has had no processor.
 */
#define MOST_OUT_NS    INT64_C(10000000000)
#define FIRST_PAUSE_NS 10000
#define MOST_PAUSE_NS  INT64_C(2000000000)
#define NS_PER_S       INT64_C(1000000000)

/*
 * How often threads are let go on where a handler of a signal interrupts the runtime, and for how
 * long.
 */
#define MOST_SLOW_TURNS 100
#define TURN_NS         1000000

/* Returns whether a thread of @p does not stop. */
static bool is_stuck(const struct fathom_follow *f, const struct fathom_traced *p)
{
	for (size_t i = 0; i < f->tasks.n; i++)
		if (f->tasks.items[i].process == p && f->tasks.items[i].state == FATHOM_TASK_STUCK)
			return true;
	return false;
}

/* Stops all tasks of @p. */
static bool stop_all(struct fathom_follow *f, struct fathom_traced *p)
{
	for (int i = 0; i < TRIES; i++) {
		if (fathom_process_stop(f, p))
			return true;
		if (is_stuck(f, p))
			break;
		/* Threads were made, or have ended: that is handled first. */
		fathom_process_resume(f, p);
		fathom_follow_settle(f);
	}
	return false;
}

/* Counts the tasks of @p; writes their numbers to @tids, unless it is NULL. */
static size_t tids_of(const struct fathom_follow *f, const struct fathom_traced *p, pid_t *tids)
{
	size_t n = 0;

	for (size_t i = 0; i < f->tasks.n; i++) {
		if (f->tasks.items[i].process != p)
			continue;
		if (tids)
			tids[n] = f->tasks.items[i].tid;
		n++;
	}
	return n;
}

/* Returns why the threads of @p cannot be recorded; NULL: they can. Finds one to make calls by. */
static const char *look_at_threads(const struct fathom_follow *f, const struct fathom_traced *p,
				   const struct fathom_maps *maps, pid_t *ret_tid)
{
	struct user_regs_struct regs;
	int fitness = -1;

	*ret_tid = p->tracee.pid;
	for (size_t i = 0; i < f->tasks.n; i++) {
		const struct fathom_follow_task *task = &f->tasks.items[i];

		if (task->process != p || !fathom_tracee_get(task->tid, &regs))
			continue;
		if (regs.cs != FATHOM_CODE_64)
			return "it is a program of 32 bits";
		if ((regs.gs_base || regs.gs) && !p->was_traced)
			return "a thread uses the gs segment";
		if (fathom_scratch_fitness(task->tid, maps) > fitness) {
			fitness = fathom_scratch_fitness(task->tid, maps);
			*ret_tid = task->tid;
		}
	}
	return NULL;
}

/* Returns where the stack that @sp is on begins; @first is where that of the program does. */
static uint64_t stack_of(const struct fathom_maps *maps, uint64_t sp, uint64_t first)
{
	const size_t i = fathom_maps_at(maps, sp);

	if (i >= maps->n || sp < maps->items[i].start)
		return 0;
	return first >= sp && first < maps->items[i].end ? first : maps->items[i].end;
}

/* Gives each thread of @p its ring. */
static void begin_tasks(struct fathom_follow *f, const struct fathom_traced *p,
			const struct fathom_maps *maps)
{
	struct fathom_proc_stat stat = { .first_stack = 0 };
	struct user_regs_struct regs;

	(void)fathom_proc_stat_of(p->tracee.pid, &stat);
	for (size_t i = 0; i < f->tasks.n; i++) {
		struct fathom_follow_task *task = &f->tasks.items[i];

		if (task->process == p && fathom_tracee_get(task->tid, &regs))
			fathom_follow_begin_task(f, task, NULL, false,
						 stack_of(maps, regs.rsp, stat.first_stack), NULL);
	}
}

/* Reads the mappings of @p, by a thread that lives: of one that has ended they are empty. */
static fathom_err read_maps(const struct fathom_traced *p, struct fathom_maps *ret,
			    struct fathom_errinfo *reterr)
{
	char path[64];

	(void)snprintf(path, sizeof path, "/proc/%d/maps",
		       fathom_status_live_thread(p->tracee.pid));
	return fathom_maps_read(path, ret, reterr);
}

/* Puts the runtime into @p, whose threads are stopped. */
static fathom_err put_in(struct fathom_follow *f, struct fathom_traced *p,
			 struct fathom_found_modules *found, struct fathom_errinfo *reterr)
{
	const size_t n = tids_of(f, p, NULL);
	pid_t *tids = calloc(n + 1, sizeof *tids);
	struct fathom_maps maps = { .n = 0 };
	const char *why;
	pid_t tid;
	fathom_err err;

	err = tids ? read_maps(p, &maps, reterr) : fathom_fail_memory(reterr);
	why = err ? NULL : look_at_threads(f, p, &maps, &tid);
	if (why)
		err = fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0, why);
	/* Of system calls alone nothing is put into it. */
	if (!err && f->calls && f->calls->is_all) {
		begin_tasks(f, p, &maps);
		goto out;
	}
	if (!err)
		err = fathom_program_attach(p, tid, p->number, &maps, &f->liveness, reterr);
	if (!err) {
		fathom_injected_code_add(f->loader.insider.told, p->program->image,
					 fathom_image_size(), FATHOM_INJECTED_IMAGE);
		fathom_follow_set_up(f, p);
		(void)tids_of(f, p, tids);
		begin_tasks(f, p, &maps);
		err = fathom_load_found(found, tids, n);
	}
out:
	fathom_maps_deinit(&maps);
	free(tids);
	return err;
}

/* Returns whether @t is a task of @p that has stopped. */
static bool is_held(const struct fathom_traced *p, const struct fathom_follow_task *t)
{
	return t->process == p && t->state && t->state != FATHOM_TASK_STUCK;
}

/* Returns whether a thread of @p is in code on list @m. */
static bool has_inside(const struct fathom_follow *f, const struct fathom_traced *p,
		       const struct fathom_runtime_maps *m)
{
	struct user_regs_struct regs;

	for (size_t i = 0; i < f->tasks.n; i++)
		if (is_held(p, &f->tasks.items[i]) &&
		    (!fathom_tracee_get(f->tasks.items[i].tid, &regs) ||
		     fathom_runtime_maps_has_code(m, regs.rip)))
			return true;
	return false;
}

/* Returns what the threads of @p come back to of list @m: FATHOM_REFERS_ bits. */
static int references_of(const struct fathom_follow *f, const struct fathom_traced *p,
			 const struct fathom_runtime_maps *m)
{
	struct fathom_references references;
	struct fathom_maps maps;
	int found = 0;

	if (has_inside(f, p, m))
		return FATHOM_REFERS_CODE;
	if (read_maps(p, &maps, NULL))
		return FATHOM_REFERS_CODE | FATHOM_REFERS_WORDS;
	fathom_references_init(&references, p, m, &maps);
	for (size_t i = 0; i < f->tasks.n; i++)
		if (is_held(p, &f->tasks.items[i]))
			found |= fathom_references_of(&references, f->tasks.items[i].tid);
	fathom_references_deinit(&references);
	fathom_maps_deinit(&maps);
	return found;
}

/* Returns whether @p is traced: processes end while their threads are being stopped. */
static bool is_there(const struct fathom_follow *f, const struct fathom_traced *p)
{
	for (size_t i = 0; i < f->processes.n; i++)
		if (f->processes.items[i] == p)
			return true;
	return false;
}

static void sleep_ns(int64_t ns)
{
	(void)nanosleep(&(struct timespec){ .tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S },
			NULL);
}

/*
 * Returns for how long threads are let go on after @pause, which was too short, and @took, in which
 * they have stopped: so long one may wait for a processor.
 */
static int64_t longer_pause(int64_t pause, int64_t took)
{
	const int64_t least = pause * 2 > took ? pause * 2 : took;

	return least < MOST_PAUSE_NS ? least : MOST_PAUSE_NS;
}

/*
 * Lets threads of @p go on that come back to what is on list @m: nothing leads there any more. They
 * are not stepped: a step that is begun when fathom is killed would end the program. *@ret is what
 * some still come back to: a handler may take long. Returns whether all of @p has stopped again;
 * false, too, if it has ended or become another program meanwhile, which @m is not of.
 */
static bool let_out(struct fathom_follow *f, struct fathom_traced *p,
		    const struct fathom_runtime_maps *m, int *ret)
{
	const int64_t end = fathom_now_ns() + MOST_OUT_NS;
	const uint32_t before = p->n_ended;
	int64_t pause = FIRST_PAUSE_NS;
	int n_slow = 0;

	for (;;) {
		int64_t begin;
		bool is_inside;

		*ret = references_of(f, p, m);
		if (!*ret || n_slow == MOST_SLOW_TURNS || fathom_now_ns() >= end)
			return true;
		is_inside = has_inside(f, p, m);
		n_slow += !is_inside;
		fathom_process_resume(f, p);
		if (is_inside || n_slow > 1)
			sleep_ns(is_inside ? pause : TURN_NS);
		begin = fathom_now_ns();
		if (!stop_all(f, p) || !is_there(f, p) || p->n_ended != before)
			return false;
		pause = longer_pause(pause, fathom_now_ns() - begin);
	}
}

/* Finds what tracers have left in @p that were killed. */
static fathom_err find_others(struct fathom_traced *p, struct fathom_errinfo *reterr)
{
	struct fathom_maps maps;

	FATHOM_TRY(read_maps(p, &maps, reterr));
	p->was_traced = fathom_program_was_traced(&maps);
	fathom_runtime_maps_find(&p->tracee, &maps, &p->others);
	fathom_maps_deinit(&maps);
	return FATHOM_OK;
}

/* Takes blocks on list @m from the threads of @p. */
static void take_blocks(const struct fathom_follow *f, const struct fathom_traced *p,
			const struct fathom_runtime_maps *m)
{
	struct user_regs_struct regs;

	for (size_t i = 0; i < f->tasks.n; i++) {
		const struct fathom_follow_task *t = &f->tasks.items[i];

		if (!is_held(p, t) || !fathom_tracee_get(t->tid, &regs) ||
		    !fathom_runtime_maps_has(m, regs.gs_base))
			continue;
		regs.gs_base = 0;
		(void)fathom_tracee_set(t->tid, &regs);
	}
}

/*
 * Makes what others have changed in @p what it was, and finds out what of theirs can be unmapped.
 * Returns whether all threads are stopped, as before.
 */
static bool leave_for_others(struct fathom_follow *f, struct fathom_traced *p,
			     struct fathom_found_modules *found)
{
	uint64_t n = 0;
	int left;

	fathom_load_heal(found);
	for (size_t i = 0; i < p->others.n; i++)
		n += p->others.items[i].list.n_places;
	for (size_t i = 0; i < p->others.n; i++) {
		struct fathom_runtime_maps *other = &p->others.items[i];

		/* Not all that leads to it was found, if its module cannot be read any more. */
		if (p->n_healed < n)
			continue;
		other->list.n_places = 0;
		if (other->avma)
			(void)fathom_runtime_maps_write(&p->tracee, other);
		if (!let_out(f, p, other, &left))
			return false;
		other->is_free = !left;
		if (!left)
			take_blocks(f, p, other);
	}
	return true;
}

static fathom_err attach(struct fathom_follow *f, struct fathom_traced *p,
			 struct fathom_errinfo *reterr)
{
	struct fathom_found_modules *found = NULL;
	int64_t begin;
	const char *lack = fathom_status_lack(p->tracee.pid);
	fathom_err err;

	if (lack)
		return fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", 0, lack);
	if (!fathom_tracee_open_memory(&p->tracee))
		return fathom_seize_fail(reterr, errno == ENOENT ? ESRCH : errno);
	FATHOM_TRY(find_others(p, reterr));
	FATHOM_TRY(fathom_load_find(&f->loader, p, &found, reterr));
	err = fathom_process_seize(f, p, reterr);
	begin = fathom_now_ns();
	if (!err && !stop_all(f, p))
		err = fathom_fail(reterr, FATHOM_E_OS, "", 0,
				  "a thread does not stop: it may wait for a child of vfork()");
	if (!err && !is_there(f, p))
		err = fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", 0, "it has ended");
	if (!err && p->was_traced && !leave_for_others(f, p, found))
		err = fathom_fail(reterr, FATHOM_E_OS, "", 0,
				  "a thread does not stop, or the process has ended");
	if (!err)
		err = put_in(f, p, found, reterr);
	fathom_process_resume(f, p);
	fathom_note_stop(f, begin);
	fathom_load_discard(found);
	return err;
}

void fathom_note_stop(struct fathom_follow *f, int64_t begin)
{
	const uint64_t ns = (uint64_t)(fathom_now_ns() - begin);

	if (ns > f->longest_stop_ns)
		f->longest_stop_ns = ns;
}

/* Says in @reterr which process could not be attached to, unless it names a file. */
static void name_process(struct fathom_errinfo *reterr, int32_t pid)
{
	char name[32];

	(void)snprintf(name, sizeof name, "process %d", (int)pid);
	if (reterr && !reterr->file[0])
		fathom_errinfo_set_file(reterr, name);
}

fathom_err fathom_follow_attach(struct fathom_follow *f, const int32_t *pids, size_t n,
				struct fathom_errinfo *reterr)
{
	fathom_err err = FATHOM_OK;

	fathom_tracee_init(&f->waiter, 0);
	fathom_follow_listen(f, &f->waiter);
	f->has_run = true;
	pthread_mutex_lock(&f->lock);
	for (size_t i = 0; i < n && !err; i++) {
		struct fathom_traced *p;

		if (fathom_follow_find(f, fathom_status_live_thread(pids[i])))
			continue;
		p = fathom_follow_add_process(f);
		if (!p) {
			err = fathom_fail_memory(reterr);
			break;
		}
		p->tracee.pid = fathom_status_live_thread(pids[i]);
		p->goes_by_thread = p->tracee.pid != pids[i];
		err = attach(f, p, reterr);
		if (err)
			name_process(reterr, pids[i]);
	}
	if (err)
		fathom_leave(f);
	else if (f->loader.options->ready)
		f->loader.options->ready(f->loader.options->data);
	pthread_mutex_unlock(&f->lock);
	if (!err)
		fathom_follow_all(f);
	return err;
}

/* Returns whether another process uses the memory of @p, until it runs a program of its own. */
static bool is_shared(const struct fathom_follow *f, const struct fathom_traced *p)
{
	for (size_t i = 0; i < f->processes.n; i++)
		if (f->processes.items[i]->shares == p->tracee.pid)
			return true;
	return p->shares != 0;
}

/*
 * Takes the runtime out of @p, whose threads are stopped, @is_whole: all of them. What cannot be
 * unmapped safely stays, and nobody uses it.
 */
static void take_out(struct fathom_follow *f, struct fathom_traced *p, bool is_whole)
{
	const uint32_t before = p->n_ended;
	struct fathom_maps maps;
	bool is_restored;
	size_t n = 0;
	pid_t *tids;
	int left;

	fathom_program_leave(p);
	/* If fathom is killed meanwhile, sites still call the hook, which needs the gs base. */
	is_restored = fathom_unload(p, is_whole && !is_shared(f, p));
	is_whole = is_whole && is_restored && let_out(f, p, &p->mapped, &left);
	if (!is_there(f, p))
		return;
	if (p->n_ended != before) {
		/* It has become another program, which has a runtime of its own. */
		is_whole = false;
		if (!p->program)
			return;
		fathom_program_leave(p);
		is_restored = fathom_unload(p, false);
	}
	tids = calloc(f->tasks.n + 1, sizeof *tids);
	if (tids && is_restored && !read_maps(p, &maps, NULL)) {
		for (size_t i = 0; i < f->tasks.n; i++)
			if (is_held(p, &f->tasks.items[i]))
				tids[n++] = f->tasks.items[i].tid;
		fathom_program_take_blocks(p, tids, n, &maps);
		if (is_whole && !(left & FATHOM_REFERS_CODE) && !is_shared(f, p))
			fathom_program_unmap(p, tids, n, &maps, left != 0);
		fathom_maps_deinit(&maps);
	}
	free(tids);
}

/* Leaves @p as it was. */
static void leave(struct fathom_follow *f, struct fathom_traced *p)
{
	const int64_t begin = fathom_now_ns();

	const bool is_whole = stop_all(f, p);

	if (is_there(f, p) && p->program)
		take_out(f, p, is_whole);
	for (size_t i = 0; i < f->tasks.n; i++)
		if (f->tasks.items[i].process == p)
			(void)ptrace(PTRACE_DETACH, f->tasks.items[i].tid, NULL, NULL);
	fathom_note_stop(f, begin);
	if (!is_there(f, p))
		return;
	fathom_follow_forget_tasks(f, p);
	fathom_follow_remove_process(f, p);
}

void fathom_leave(struct fathom_follow *f)
{
	/* Calls at which a filter stops fail without a tracer: nothing more is told of them. */
	for (size_t i = 0; f->calls && f->calls->filter && i < f->processes.n; i++) {
		f->processes.items[i]->is_silent = true;
		fathom_program_record_no_calls(f->processes.items[i]);
	}
	if (f->calls && f->calls->filter)
		return;
	while (f->processes.n)
		leave(f, f->processes.items[f->processes.n - 1]);
}

/* Returns the plan of @p that changes the text at @avma; NULL: none does. */
static struct fathom_text_plan *plan_of(const struct fathom_traced *p, uint64_t avma)
{
	for (size_t i = 0; i < p->modules.n; i++) {
		struct fathom_text_plan *plan = p->modules.items[i].plan;

		for (size_t k = 0; plan && k < plan->n; k++)
			if (avma - plan->items[k].avma < plan->items[k].size)
				return plan;
	}
	return NULL;
}

/*
 * Replaces call @c, in @p, whose threads are stopped, by a NOP. That is undone before the change by
 * which the site calls, in a copy of @p, too, which may still have the call.
 */
static void silence(const struct fathom_flooding_call *c, const struct fathom_traced *p)
{
	struct fathom_text_plan fresh = { 0 };
	struct fathom_text_plan *known = plan_of(p, c->avma);
	struct fathom_text_plan *plan = known ? known : &fresh;
	const size_t first = plan->n;
	uint8_t now[sizeof fathom_x86_long_nop];
	struct fathom_tracee_text text;

	fathom_tracee_text_init(&text, &p->tracee);
	/* The module may be gone. What the site is besides stays as it is. */
	if (fathom_tracee_read(&p->tracee, c->avma, now, sizeof now) && now[0] == FATHOM_X86_CALL &&
	    fathom_text_plan_add(plan, c->avma, now, fathom_x86_long_nop, sizeof now, 0))
		(void)fathom_text_plan_put(plan, first, true, &text.memory);
	(void)fathom_tracee_text_flush(&text);
	fathom_text_plan_clear(&fresh);
}

/* Silences those of @calls that are in @p, whose memory no other process uses. */
static void silence_all(struct fathom_follow *f, struct fathom_traced *p,
			struct fathom_flooding_calls *calls)
{
	const int64_t begin = fathom_now_ns();
	const bool is_held = stop_all(f, p);

	for (size_t i = 0; is_held && i < calls->n; i++)
		if (calls->items[i].program == p->program)
			silence(&calls->items[i], p);
	fathom_process_resume(f, p);
	fathom_note_stop(f, begin);
}

void fathom_remove_flooding(struct fathom_follow *f)
{
	struct fathom_rate_limit *rate_limit = fathom_rings_rate_limit(f->rings);
	struct fathom_flooding_calls calls;
	bool is_put_off = false;

	fathom_rate_limit_take(rate_limit, &calls);
	for (size_t i = 0; i < f->processes.n; i++) {
		struct fathom_traced *p = f->processes.items[i];
		size_t k = 0;

		while (k < calls.n && calls.items[k].program != p->program)
			k++;
		if (k == calls.n)
			continue;
		/* A child of vfork() runs the same text. */
		if (is_shared(f, p))
			is_put_off = true;
		else
			silence_all(f, p, &calls);
	}
	if (is_put_off)
		fathom_rate_limit_give_back(rate_limit, &calls);
	else
		fathom_flooding_calls_free(&calls);
}
