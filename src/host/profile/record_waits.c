/* SPDX-License-Identifier: MIT */
#include "host/profile/record_waits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/base/clock.h"
#include "host/base/proc_stat_read.h"
#include "host/profile/recording.h"
#include "host/profile/samples_format.h"
#include "host/stack/capture.h"
#include "host/stack/wait.h"

/* The shortest wait whose stack is read, in ns. */
#define LONG_WAIT 1000000

/* Waits of which nothing was seen are written so often, in ns. */
#define GATHER_NS 100000000

/* The most of the time that stacks may take, as one part of so many, and ns besides. */
#define READ_SHARE 100
#define READ_FREE  50000000

/*
 * The most of it that samples of switches may take, so that long waits are read yet: they say more;
 * and how much is to be left for some more samples.
 */
#define SAMPLE_SHARE   200
#define SAMPLE_FREE    10000000
#define SAMPLE_AT_ONCE 500000

/* How long a thread takes to leave its processor at most after it was sampled, in ns. */
#define LEAVE_NS 1000000

/* The longest that stacks are read without a look at the rings, in ns. */
#define READ_AT_ONCE 20000000

/* Processor time of a round besides reading, in ns. */
#define ROUND_NS 20000

/* Waits that go on are written so often, in ns: into a file, and to an observer. */
#define TELL_NS          1000000000
#define TELL_OBSERVER_NS 250000000

/* Texts of waits of which nothing was seen. */
#define NOT_SAMPLED  "[wait not sampled]"
#define NO_PROCESSOR "[waits for a processor]"

fathom_err fathom_record_reason(struct fathom_stack_table *table, const char *text, uint32_t *ret)
{
	const struct fathom_profile_module m = { .path = FATHOM_PROFILE_WAITS,
						 .kind = FATHOM_PROFILE_MODULE_WAITS };
	const struct fathom_profile_symbol s = { .name = { text, (uint32_t)strlen(text) } };
	struct fathom_profile_location l = { .module = fathom_table_module(table, &m) };
	const uint32_t symbol = fathom_table_symbol(table, &s);

	*ret = l.module == FATHOM_TABLE_NONE || symbol == FATHOM_TABLE_NONE
		       ? FATHOM_TABLE_NONE
		       : fathom_table_location(table, &l, symbol);
	return *ret == FATHOM_TABLE_NONE ? FATHOM_E_MEMORY : FATHOM_OK;
}

/* Puts the location @reason below @node, as its innermost frame. */
static fathom_err add_location(struct fathom_stack_table *table, uint32_t reason, uint32_t *node)
{
	*node = fathom_table_node(table, *node, reason);
	return *node ? FATHOM_OK : FATHOM_E_MEMORY;
}

/* Puts @text below @node, as its innermost frame. */
static fathom_err add_reason(struct fathom_stack_table *table, const char *text, uint32_t *node)
{
	uint32_t reason;

	FATHOM_TRY(fathom_record_reason(table, text, &reason));
	return add_location(table, reason, node);
}

/* Says what the thread of @copy waits for; with @is_disk for a disk. */
static void describe(const struct fathom_record_space *space, const struct fathom_live *live,
		     struct fathom_view *view, const struct fathom_thread_copy *copy, bool is_disk,
		     char *to, size_t size)
{
	char lock[FATHOM_SCRIPT_LOCK];
	const struct fathom_wait_source from = { .proc = live->proc,
						 .memory = &view->memory,
						 .machine = copy->registers.machine,
						 .has_no_times = true };
	struct fathom_wait wait;

	if (copy->state == 'T' || copy->state == 't') {
		(void)snprintf(to, size, "[stopped]");
	} else if (!copy->in_syscall) {
		(void)snprintf(to, size, "[page fault%s]", is_disk ? ": disk" : "");
	} else {
		(void)fathom_wait_describe(&from, copy, &wait);
		if (wait.syscall && !strcmp(wait.syscall, "futex") &&
		    fathom_record_space_lock(space, copy->tid, copy->arguments[0], lock))
			(void)snprintf(wait.text, sizeof wait.text, "%s", lock);
		(void)snprintf(to, size, "[%s%s%s%s%s]",
			       wait.syscall ? wait.syscall : "system call",
			       is_disk || wait.text[0] ? ": " : "", is_disk ? "disk" : "",
			       is_disk && wait.text[0] ? ", " : "", wait.text);
	}
}

/* Says what the thread of @copy waits for, "" if that cannot be known. */
static void find_reason(struct fathom_record_space *space, const struct fathom_thread_copy *copy,
			bool is_disk, struct fathom_record_sight *sight, char *to, size_t size)
{
	struct fathom_view *view = fathom_record_space_view(space);
	struct fathom_live live;

	*to = '\0';
	if (!view || !fathom_view_live(view, &live))
		return;
	if (!is_disk && copy->state == 'D' && fathom_wait_is_disk(live.proc, copy->tid)) {
		is_disk = true;
		/* If the wait has ended meanwhile, that was another one. */
		sight->ns = (uint64_t)fathom_now_ns();
	}
	describe(space, &live, view, copy, is_disk, to, size);
}

/* A thread that is being looked at. */
struct looking {
	struct fathom_record_space *space;
	struct fathom_record_look look;
	struct fathom_thread_copy copy;
	uint64_t outside; /* as of the walk */
	bool is_again;    /* it is copied for the second time */
	bool wants_again;
	bool wants_script; /* to be copied with its frames, which were not looked for */
};

/* Walks the copy, and finds what the thread waits for if it sleeps. */
static fathom_err walk(struct looking *l, struct fathom_stack_table *table,
		       struct fathom_record_sight *ret)
{
	const struct fathom_record_copies copies = { .registers = &l->copy.registers,
						     .pieces = l->copy.pieces.items,
						     .n = l->copy.pieces.n,
						     .is_running = l->look.may_stop,
						     .is_watched = l->look.is_watched,
						     .is_again = l->is_again };
	char reason[FATHOM_PROFILE_REASON] = "";

	if (!l->look.may_stop)
		find_reason(l->space, &l->copy, l->look.is_disk, ret, reason, sizeof reason);
	FATHOM_TRY(fathom_record_space_walk_copies(l->space, &copies, table, &ret->stack,
						   &l->outside, &l->wants_again));
	l->wants_script = !l->wants_again && fathom_record_space_has_new_script(l->space);
	ret->has_stack = !l->wants_again && !l->wants_script;
	ret->bare = ret->stack.node;
	if (!*reason || !ret->has_stack)
		return FATHOM_OK;
	FATHOM_TRY(fathom_record_reason(table, reason, &ret->reason));
	return add_location(table, ret->reason, &ret->stack.node);
}

/* Copies the thread, and walks. */
static fathom_err look_once(struct looking *l, struct fathom_capture *capture,
			    struct fathom_stack_table *table, struct fathom_record_sight *ret)
{
	struct fathom_thread_copy *copy = &l->copy;

	if (l->look.may_stop)
		fathom_capture_stop(capture, copy, 1, false, false);
	else
		fathom_capture_peek(capture, copy);
	/* On a busy machine the next moment may be much later. */
	ret->ns = copy->stood_ns ? copy->stood_ns : (uint64_t)fathom_now_ns();
	if (copy->err)
		return FATHOM_OK;
	memcpy(ret->name, copy->name, sizeof ret->name);
	return walk(l, table, ret);
}

fathom_err fathom_record_look(struct fathom_record_space *space, int32_t tid,
			      struct fathom_record_look look, struct fathom_stack_table *table,
			      struct fathom_record_sight *ret)
{
	struct looking l = { .space = space, .look = look, .copy = { .tid = tid } };
	struct fathom_capture *capture;

	*ret = (struct fathom_record_sight){ .reason = FATHOM_TABLE_NONE };
	while ((capture = fathom_record_space_capture(space))) {
		struct fathom_thread_copy more = { .tid = tid };
		fathom_err err;

		l.outside = 0;
		l.wants_again = l.wants_script = false;
		err = look_once(&l, capture, table, ret);
		/* Another stack, below a signal's say, is copied the next time. */
		more.n_also = l.copy.n_also;
		memcpy(more.also, l.copy.also, sizeof more.also);
		fathom_thread_copy_deinit(&l.copy);
		if (err || (!l.wants_again && !l.wants_script &&
			    (!l.outside || more.n_also >= FATHOM_STACK_PIECES - 1)))
			return err;
		if (l.outside && !l.wants_again && !l.wants_script)
			more.also[more.n_also++] = l.outside;
		l.is_again |= l.wants_again;
		l.copy = more;
	}
	return FATHOM_OK;
}

/* Gives the wait of @thread the stack of the sample that was taken as it began. */
static fathom_err take_leave(struct fathom_recording *r, struct fathom_record_thread *thread)
{
	struct fathom_record_wait *w = &thread->wait;

	w->leave = thread->leave;
	w->left = w->leave.stack;
	if (w->part == FATHOM_PROFILE_RUNNABLE)
		return add_reason(&r->table, NO_PROCESSOR, &w->left.node);
	return add_location(&r->table, w->leave.reason, &w->left.node);
}

fathom_err fathom_record_wait_begin(struct fathom_recording *r, struct fathom_record_thread *thread,
				    uint64_t ns, enum fathom_profile_part part)
{
	const struct fathom_record_sleeper s = { thread->pid, thread->tid, ns };

	/* The kernel's own threads wait for work. */
	if (thread->is_kernel)
		return FATHOM_OK;
	thread->wait =
		(struct fathom_record_wait){ .began = ns, .written = ns, .part = (uint8_t)part };
	if (thread->leave.ns && thread->leave.ns + LEAVE_NS > ns)
		FATHOM_TRY(take_leave(r, thread));
	thread->leave.ns = 0;
	return part != FATHOM_PROFILE_WAITING || fathom_array_push(&r->waits.queue, s)
		       ? FATHOM_OK
		       : FATHOM_E_MEMORY;
}

/* Writes the short waits of @thread, of which nothing was seen, as one of each kind. */
static fathom_err write_gathered(struct fathom_recording *r, struct fathom_record_thread *thread)
{
	static const struct {
		enum fathom_profile_part part;
		const char *text;
	} kinds[] = {
		{ FATHOM_PROFILE_WAITING, NOT_SAMPLED },
		{ FATHOM_PROFILE_RUNNABLE, NO_PROCESSOR },
	};
	struct fathom_record_stack stack = { .stop = FATHOM_STOP_NONE };

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		uint64_t *weight = &thread->gathered[kinds[i].part == FATHOM_PROFILE_RUNNABLE];

		if (!*weight)
			continue;
		stack.node = 0;
		FATHOM_TRY(add_reason(&r->table, kinds[i].text, &stack.node));
		fathom_recording_write(r, thread, thread->gathered_until, kinds[i].part, *weight,
				       &stack);
		*weight = 0;
	}
	thread->gathered_since = 0;
	return FATHOM_OK;
}

fathom_err fathom_record_wait_put(struct fathom_recording *r, struct fathom_record_thread *thread,
				  uint64_t ns, enum fathom_profile_part part, uint64_t weight,
				  const struct fathom_record_stack *stack)
{
	if (thread->gathered_since && ns - thread->gathered_since >= GATHER_NS)
		FATHOM_TRY(write_gathered(r, thread));
	if (stack) {
		fathom_recording_write(r, thread, ns, part, weight, stack);
	} else if (weight) {
		thread->gathered[part == FATHOM_PROFILE_RUNNABLE] += weight;
		if (!thread->gathered_since)
			thread->gathered_since = ns - weight;
		thread->gathered_until = ns;
	}
	return FATHOM_OK;
}

/* Writes a wait of which it is known who has ended it, or whether it @goes_on. */
static fathom_err put_ended(struct fathom_recording *r, struct fathom_record_thread *thread,
			    uint64_t ns, const struct fathom_record_stack *stack, bool goes_on)
{
	struct fathom_record_wait *w = &thread->wait;
	struct fathom_record_stack none = { .stop = FATHOM_STOP_NONE };

	/* Earlier waits are written first: the next one in the file ends this one. */
	FATHOM_TRY(write_gathered(r, thread));
	if (!stack)
		FATHOM_TRY(add_reason(&r->table, NOT_SAMPLED, &none.node));
	fathom_recording_write_wait(r, thread, ns, ns - w->written, stack ? stack : &none,
				    goes_on ? 0 : w->waker, goes_on);
	return FATHOM_OK;
}

/* Returns the stack of @w, which is written up to @ns; NULL: none is known. */
static const struct fathom_record_stack *stack_at(const struct fathom_record_wait *w, uint64_t ns)
{
	/* A stack that was read later is of another wait. */
	return w->is_read && w->read <= ns ? &w->stack : w->leave.ns ? &w->left : NULL;
}

/* Writes the wait of @thread up to @ns; with @goes_on it is not over. */
static fathom_err write_piece(struct fathom_recording *r, struct fathom_record_thread *thread,
			      uint64_t ns, bool goes_on)
{
	struct fathom_record_wait *w = &thread->wait;
	const struct fathom_record_stack *stack = stack_at(w, ns);
	const bool is_ended = w->part == FATHOM_PROFILE_WAITING && (w->waker || goes_on);

	if (ns <= w->written)
		return FATHOM_OK;
	if (is_ended && r->has_wakers)
		FATHOM_TRY(put_ended(r, thread, ns, stack, goes_on));
	else
		FATHOM_TRY(fathom_record_wait_put(r, thread, ns, (enum fathom_profile_part)w->part,
						  ns - w->written, stack));
	w->written = ns;
	return FATHOM_OK;
}

/* Makes the wait of @thread, which was woken, one for a processor, where the thread stands. */
static fathom_err begin_ready(struct fathom_recording *r, struct fathom_record_thread *thread)
{
	struct fathom_record_wait *w = &thread->wait;

	w->part = FATHOM_PROFILE_RUNNABLE;
	w->woken = 0;
	if (w->is_read) {
		w->stack.node = w->bare;
		FATHOM_TRY(add_reason(&r->table, NO_PROCESSOR, &w->stack.node));
	}
	if (w->leave.ns) {
		w->left.node = w->leave.stack.node;
		FATHOM_TRY(add_reason(&r->table, NO_PROCESSOR, &w->left.node));
	}
	return FATHOM_OK;
}

/* Writes the wait of @thread up to @ns; with @goes_on it is not over. */
static fathom_err write_up_to(struct fathom_recording *r, struct fathom_record_thread *thread,
			      uint64_t ns, bool goes_on)
{
	struct fathom_record_wait *w = &thread->wait;

	if (!w->began || ns <= w->written)
		return FATHOM_OK;
	if (w->woken && w->woken <= ns) {
		FATHOM_TRY(write_piece(r, thread, w->woken, false));
		FATHOM_TRY(begin_ready(r, thread));
	}
	return write_piece(r, thread, ns, goes_on);
}

bool fathom_record_wait_is_open(const struct fathom_record_thread *thread, uint64_t ns)
{
	const struct fathom_record_wait *w = &thread->wait;

	return w->began && ns >= w->written && !w->is_assumed && !w->woken &&
	       w->part == FATHOM_PROFILE_WAITING;
}

void fathom_record_wait_woken(struct fathom_record_thread *thread, uint64_t ns, uint32_t waker)
{
	thread->wait.woken = ns;
	thread->wait.waker = waker;
}

fathom_err fathom_record_wait_end(struct fathom_recording *r, struct fathom_record_thread *thread,
				  uint64_t ns)
{
	const fathom_err err = write_up_to(r, thread, ns, false);

	thread->wait.began = 0;
	return err;
}

fathom_err fathom_record_wait_last(struct fathom_recording *r, struct fathom_record_thread *thread,
				   uint64_t ns)
{
	FATHOM_TRY(fathom_record_wait_end(r, thread, ns));
	return write_gathered(r, thread);
}

bool fathom_record_is_asleep(const struct fathom_record_thread *thread)
{
	struct fathom_proc_stat stat;

	return fathom_proc_stat_of(thread->tid, &stat) && stat.state != 'R';
}

/* Returns whether @thread is still there. */
static bool is_there(const struct fathom_record_thread *thread)
{
	return syscall(SYS_tgkill, thread->pid, thread->tid, 0) == 0 || errno != ESRCH;
}

/* Reads the stack of @thread, which waits. */
static fathom_err read_stack(struct fathom_recording *r, struct fathom_record_thread *thread)
{
	struct fathom_record_space *space = fathom_record_threads_space(&r->threads, thread->pid);
	struct fathom_record_wait *w = &thread->wait;
	const struct fathom_record_look look = { .is_disk = w->leave.ns && w->leave.is_disk };
	struct fathom_record_sight sight;

	/* Memory is that of the process, not of its parent. */
	if (space && !fathom_record_space_is_of(space, thread->pid))
		space = fathom_record_threads_own_space(&r->threads, thread->pid);
	if (!space)
		return FATHOM_E_MEMORY;
	FATHOM_TRY(fathom_record_look(space, thread->tid, look, &r->table, &sight));
	w->is_read = sight.has_stack;
	/* It may have had a processor all the time. */
	if (w->is_assumed && !sight.has_stack && !fathom_record_is_asleep(thread))
		w->began = 0;
	w->is_assumed = false;
	w->stack = sight.stack;
	w->bare = sight.bare;
	w->read = sight.ns;
	/* The look knows better what for; the sample knows where, as it has all registers. */
	if (!sight.has_stack || sight.reason == FATHOM_TABLE_NONE || !w->leave.ns ||
	    sight.stack.stop == FATHOM_STOP_ENTRY || w->leave.stack.stop != FATHOM_STOP_ENTRY)
		return FATHOM_OK;
	w->stack = w->leave.stack;
	w->bare = w->stack.node;
	return add_location(&r->table, sight.reason, &w->stack.node);
}

/* Returns whether there is time to read one more stack at @ns. */
static bool has_time(const struct fathom_recording *r, uint64_t ns)
{
	return r->waits.spent < fathom_recording_since(r, ns) / READ_SHARE + READ_FREE;
}

bool fathom_record_waits_may_sample(const struct fathom_recording *r, uint64_t ns,
				    bool was_sampling)
{
	const uint64_t most = fathom_recording_since(r, ns) / SAMPLE_SHARE + SAMPLE_FREE;

	return r->waits.sampled + (was_sampling ? 0 : SAMPLE_AT_ONCE) < most;
}

void fathom_record_waits_have_sampled(struct fathom_recording *r, uint64_t ns)
{
	r->waits.sampled += ns;
	r->waits.spent += ns;
}

int fathom_record_waits_due_ms(const struct fathom_recording *r, int most)
{
	const struct fathom_record_waits *w = &r->waits;
	const uint64_t now = (uint64_t)fathom_now_ns();
	uint64_t due;

	/* They are in the order in which they began. */
	if (!w->queue.n || !has_time(r, now))
		return most;
	due = w->queue.items[0].began + LONG_WAIT;
	return due <= now                             ? 1
	       : due - now < (uint64_t)most * 1000000 ? (int)((due - now) / 1000000) + 1
						      : most;
}

/* Reads the stacks of waits that have taken a while at @ns; those of shorter ones stay queued. */
static fathom_err read_queue(struct fathom_recording *r, uint64_t ns)
{
	struct fathom_record_waits *w = &r->waits;
	const size_t n = w->queue.n;
	const uint64_t start = (uint64_t)fathom_now_ns();
	uint64_t before = start;
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		const struct fathom_record_sleeper s = w->queue.items[i];
		struct fathom_record_thread *thread =
			fathom_record_thread_find(&r->threads, s.pid, s.tid);

		if (!thread || thread->wait.began != s.began || thread->ended)
			continue;
		/* The rings are to be read meanwhile. */
		if (ns < s.began + LONG_WAIT || before > start + READ_AT_ONCE ||
		    (!thread->wait.is_assumed && !has_time(r, ns))) {
			w->queue.items[kept++] = s;
			continue;
		}
		FATHOM_TRY(read_stack(r, thread));
		w->spent += (uint64_t)fathom_now_ns() - before;
		before = (uint64_t)fathom_now_ns();
	}
	w->queue.n = kept;
	w->spent += n ? ROUND_NS : 0;
	return FATHOM_OK;
}

uint64_t fathom_record_waits_tell_ns(const struct fathom_recording *r)
{
	return r->observer.sample ? TELL_OBSERVER_NS : TELL_NS;
}

fathom_err fathom_record_waits_keep_up(struct fathom_recording *r, uint64_t ns)
{
	const uint64_t tell_ns = fathom_record_waits_tell_ns(r);

	FATHOM_TRY(read_queue(r, ns));
	if (ns - r->waits.told < tell_ns)
		return FATHOM_OK;
	r->waits.told = ns;
	for (size_t i = 0; i < r->threads.threads.n; i++) {
		struct fathom_record_thread *thread = &r->threads.threads.items[i];

		if (!thread->wait.began || thread->ended || thread->wait.written + tell_ns > ns)
			continue;
		/* Its end may have been lost. */
		if (is_there(thread))
			FATHOM_TRY(write_up_to(r, thread, ns, true));
		else
			thread->wait.began = 0;
	}
	return FATHOM_OK;
}

fathom_err fathom_record_waits_finish(struct fathom_recording *r, uint64_t ns)
{
	for (size_t i = 0; i < r->threads.threads.n; i++) {
		struct fathom_record_thread *thread = &r->threads.threads.items[i];

		/* The waits of a thread end with it. */
		if (thread->wait.is_assumed || thread->ended)
			thread->wait.began = 0;
		FATHOM_TRY(fathom_record_wait_last(r, thread, ns));
	}
	return FATHOM_OK;
}

void fathom_record_waits_deinit(struct fathom_record_waits *w)
{
	fathom_array_free(&w->queue);
}
