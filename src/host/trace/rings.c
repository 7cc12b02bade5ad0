/* SPDX-License-Identifier: MIT */
#include "host/trace/rings.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/base/proc_stat_read.h"
#include "host/events/syscall_text.h"
#include "host/syscalls/syscall_record.h"
#include "host/trace/thread_stream.h"

/* Bytes of what is said of a flood. */
#define FLOOD_TEXT 256

/* Records of one ring that are taken before its room is given back. */
#define STRETCH (FATHOM_TRACE_RECORDS / 16)

/* Records of all rings that are taken before someone may ask for something else. */
#define SLICE (UINT64_C(1) << 20)

/* Of more threads, records are not spooled: those that end would keep their rings for long. */
#define MOST_SPOOLING 64

/* How far the events of two threads may be told out of order. */
#define MOST_DISORDER_NS 10000000

/* Looks without a record after which a thread may be asleep. */
#define IDLE_LOOKS 10

/* Looks after which a thread that was seen has its name: some get it from those who made them. */
#define LOOKS_TO_NAME 20

/* Of rings that keep the latest events: posts of each, and rings of threads that have ended. */
#define KEPT_POSTS ((size_t)4096)
#define KEPT_RINGS 64

struct fathom_rings {
	bool is_latest; /* rings keep the latest events, which are told when someone asks */
	bool is_behind; /* not all was taken that was recorded before until */
	bool is_asked;  /* control wants what is kept told */
	bool wants_to_leave;
	int (*control)(void *data);
	void (*rest)(void *data);
	void *data;
	struct fathom_timestamp_pair from; /* times in between are in proportion */
	struct fathom_timestamp_pair until;
	double ns_per_tick;   /* between them */
	pthread_mutex_t lock; /* of inbox */
	struct {
		FATHOM_ARRAY_OF(struct fathom_post);
	} inbox;
	struct {
		FATHOM_ARRAY_OF(struct fathom_stream *);
	} streams;
	struct fathom_stream *others; /* posts of threads that have no ring */
	struct fathom_spool spool;
	struct fathom_site_ranges spans;
	uint64_t zero_ns; /* when the program began; times are told from there */
	bool has_begun;
	uint64_t lost; /* events that were told to be */
	struct fathom_event_filter event_filter;
	struct fathom_rate_limit rate_limit;
	struct fathom_syscall_reporter teller;
	bool tells_entries; /* of system calls */
	bool may_miss;      /* what sites are not to record, beside what is lost */
	bool is_silent;
};

/*
 * Returns whether records may wait to be reported: what is asked of the system and the program at a
 * call cannot, nor can limits, and nobody may wait for what is reported.
 */
static bool may_wait(const struct fathom_trace_options *o)
{
	return !o->syscalls && !o->max_rate && !o->ended &&
	       !(o->flags & (FATHOM_TRACE_LATEST | FATHOM_TRACE_HOLD_ENDS));
}

fathom_err fathom_rings_create(const struct fathom_trace_options *options,
			       const struct fathom_timestamp_pair *begin, struct fathom_rings **ret)
{
	struct fathom_rings *r = calloc(1, sizeof *r);

	if (!r)
		return FATHOM_E_MEMORY;
	fathom_event_filter_init(&r->event_filter, options);
	fathom_syscall_reporter_init(&r->teller, options->syscalls);
	r->tells_entries = options->syscalls && options->syscalls->flags & FATHOM_SYSCALLS_ENTRIES;
	r->may_miss = options->max_rate || options->flags & FATHOM_TRACE_SCOPES;
	r->is_latest = options->flags & FATHOM_TRACE_LATEST;
	r->control = options->control;
	r->rest = options->rest;
	r->data = options->data;
	r->from = r->until = *begin;
	r->others = fathom_stream_create((struct fathom_ring_name){ NULL, 0 });
	if (!r->others || !fathom_array_push(&r->streams, r->others)) {
		if (r->others)
			fathom_stream_destroy(r->others);
		free(r);
		return FATHOM_E_MEMORY;
	}
	r->others->has_begun = true;
	pthread_mutex_init(&r->lock, NULL);
	fathom_spool_init(&r->spool, may_wait(options) ? options->spool : NULL,
			  options->spool_size);
	fathom_rate_limit_init(&r->rate_limit, options->max_rate);
	*ret = r;
	return FATHOM_OK;
}

void fathom_post_deinit(struct fathom_post *post)
{
	free(post->text);
	free(post->call);
	free(post->stack);
	fathom_site_range_destroy(post->span);
	post->text = NULL;
	post->call = NULL;
	post->stack = NULL;
	post->span = NULL;
}

static void discard(struct fathom_post *post)
{
	fathom_post_deinit(post);
	fathom_program_release(post->ring.program);
	fathom_program_release(post->begins.program);
}

void fathom_rings_destroy(struct fathom_rings *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->streams.n; i++)
		fathom_stream_destroy(r->streams.items[i]);
	fathom_array_free(&r->streams);
	fathom_spool_deinit(&r->spool);
	for (size_t i = 0; i < r->inbox.n; i++)
		discard(&r->inbox.items[i]);
	fathom_array_free(&r->inbox);
	fathom_site_ranges_deinit(&r->spans);
	fathom_rate_limit_deinit(&r->rate_limit);
	fathom_syscall_reporter_deinit(&r->teller);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

void fathom_rings_post(struct fathom_rings *r, const struct fathom_post *post)
{
	struct fathom_post copy = *post;

	if (copy.ring.program)
		fathom_program_acquire(copy.ring.program);
	if (copy.begins.program)
		fathom_program_acquire(copy.begins.program);
	pthread_mutex_lock(&r->lock);
	if (!fathom_array_push(&r->inbox, copy))
		discard(&copy);
	pthread_mutex_unlock(&r->lock);
}

/* Finds the stream of a ring that is in use. */
static struct fathom_stream *find_stream(struct fathom_rings *r, struct fathom_ring_name name)
{
	for (size_t i = r->streams.n; name.program && i--;) {
		struct fathom_stream *s = r->streams.items[i];

		if (s->name.program == name.program && s->name.number == name.number && !s->is_over)
			return s;
	}
	return r->others;
}

/* Finds the stream of a ring whose beginning was posted, and not told yet. */
static struct fathom_stream *find_beginning(const struct fathom_rings *r,
					    struct fathom_ring_name name)
{
	for (size_t i = r->streams.n; name.program && i--;) {
		struct fathom_stream *s = r->streams.items[i];

		if (s->name.program == name.program && s->name.number == name.number &&
		    !s->has_begun)
			return s;
	}
	return NULL;
}

/* Returns the nanoseconds of @ticks, since the run began. */
static uint64_t run_ns_of(const struct fathom_rings *r, uint64_t ticks)
{
	/* Told late, or by a program that writes what it likes. */
	if (ticks < r->from.ticks)
		return r->from.ns;
	return r->from.ns + (uint64_t)((double)(ticks - r->from.ticks) * r->ns_per_tick);
}

/*
 * Tells stream @s how its thread begins, by @post, at a time which may be the first of all. @maker
 * made it, or is NULL; @from is whose copy it is, or NULL.
 */
static void begin_thread(struct fathom_rings *r, struct fathom_stream *s,
			 const struct fathom_post *post, const struct fathom_stream *maker,
			 const struct fathom_stream *from)
{
	if (!r->has_begun)
		r->zero_ns = run_ns_of(r, post->ticks);
	r->has_begun = true;
	fathom_stream_read_name(s, maker);
	fathom_stream_begin(s, post->sp, post->ticks, from);
}

/* Adds a post to the ring in whose order it stands. */
static void sort_in(struct fathom_rings *r, struct fathom_post *post)
{
	struct fathom_stream *s = find_stream(r, post->ring);
	struct fathom_stream *begins;

	if (post->span)
		(void)fathom_site_ranges_add(&r->spans, post->span);
	post->span = NULL;
	if (post->begins.program) {
		begins = fathom_stream_create(post->begins);
		if (begins && fathom_array_push(&r->streams, begins)) {
			begins->tid = post->tid;
			begins->pid = post->pid;
			begins->is_silent = post->is_silent || r->is_silent;
			begins->is_overwritten = r->is_latest;
			if (r->is_latest)
				begin_thread(r, begins, post, s, NULL);
		} else if (begins) {
			fathom_stream_destroy(begins);
		}
	}
	if (post->is_release)
		post->cursor = fathom_stream_end(s);
	/* The program says how far it is; no ring holds more. */
	if (post->cursor - s->taken >
	    fathom_stream_ring_begin(s) - s->taken + FATHOM_TRACE_RECORDS + FATHOM_TRACE_SLACK)
		post->cursor = s->taken;
	s->is_over |= post->is_release && s->head;
	if (!fathom_array_push(&s->posts, *post))
		fathom_post_deinit(post);
	fathom_program_release(post->ring.program);
	fathom_program_release(post->begins.program);
}

static void take_posts(struct fathom_rings *r)
{
	struct fathom_post *posts;
	size_t n;

	pthread_mutex_lock(&r->lock);
	posts = r->inbox.items;
	n = r->inbox.n;
	r->inbox.items = NULL;
	r->inbox.n = r->inbox.cap = 0;
	pthread_mutex_unlock(&r->lock);
	for (size_t i = 0; i < n; i++)
		sort_in(r, &posts[i]);
	free(posts);
}

/* Returns the nanoseconds of @ticks, since the program began. */
static uint64_t ns_of(const struct fathom_rings *r, uint64_t ticks)
{
	const uint64_t ns = run_ns_of(r, ticks);

	return ns > r->zero_ns ? ns - r->zero_ns : 0;
}

/* Begins event @e of @type of the thread of @s, at @ns. */
static void begin_event(struct fathom_trace_event *e, const struct fathom_stream *s, uint64_t ns,
			uint8_t type)
{
	static const struct fathom_trace_event none;

	/* In place: a copy would wait for what was just written in smaller pieces. */
	*e = none;
	e->ns = ns;
	e->count = 1;
	e->thread = fathom_stream_name(s);
	e->pid = s->pid;
	e->tid = s->tid;
	e->type = type;
}

/* Sets where @e stands: at stack pointer @sp, below @depth calls. */
static void place_event(struct fathom_trace_event *e, const struct fathom_stream *s, uint32_t sp,
			uint32_t depth)
{
	e->depth = depth;
	e->stack = fathom_stream_stack(s, sp);
	e->stack_number = (uint8_t)s->lane;
}

/* Takes a return. */
static void leave(struct fathom_rings *r, struct fathom_stream *s,
		  const struct fathom_stream_item *item,
		  const struct fathom_site_range_found *found)
{
	uint64_t begin;
	bool is_known;
	const uint32_t depth = fathom_stream_leave(s, item->sp, &begin, &is_known);
	struct fathom_trace_event e;

	begin_event(&e, s, ns_of(r, item->ticks), FATHOM_TRACE_RETURN);
	e.function = found->function;
	place_event(&e, s, item->sp, depth);
	if (is_known && e.ns > begin)
		e.duration_ns = e.ns - begin;
	fathom_event_filter_take(&r->event_filter, &s->event_filter, &e, found->selection);
}

/* Reports that nothing more is told of the function at @e, and has its sites dealt with. */
static void stop_flood(struct fathom_rings *r, struct fathom_stream *s, uint32_t site,
		       const struct fathom_trace_event *e)
{
	char text[FLOOD_TEXT];
	struct fathom_trace_event note = *e;
	const struct fathom_site_range *span = fathom_site_ranges_of(&r->spans, site);

	(void)snprintf(text, sizeof text,
		       "not recorded any more: more than %llu calls in a second of %s",
		       (unsigned long long)r->rate_limit.max_rate, e->function->name);
	note.type = FATHOM_TRACE_NOTE;
	note.function = NULL;
	note.parent = FATHOM_TRACE_PARENT_UNKNOWN;
	note.text = text;
	fathom_event_filter_report(&r->event_filter, &s->event_filter, &note);
	/* The text is the caller's for this call only. */
	fathom_event_filter_flush(&r->event_filter, false);
	if (span && s->name.program)
		fathom_rate_limit_add(&r->rate_limit, span, site, s->name.program);
}

/* Takes a record. */
static void take_record(struct fathom_rings *r, struct fathom_stream *s,
			struct fathom_stream_item *item)
{
	const struct fathom_site_range_found *found =
		fathom_site_ranges_find(&r->spans, item->site);
	struct fathom_stream_call call;
	struct fathom_trace_event *e;
	uint32_t depth;
	uint8_t parent;

	if (!found) {
		/* It was loaded since the posts were taken. */
		take_posts(r);
		found = fathom_site_ranges_find(&r->spans, item->site);
		if (!found)
			return;
	}
	if (!s->n_looks) {
		s->n_looks = 1;
		fathom_stream_read_name(s, NULL);
	}
	item->sp += found->frame;
	item->has_fp = !found->has_no_fp;
	item->has_caller = !found->has_no_caller;
	if (found->place != FATHOM_SITE_ENTRY) {
		/* A function that was inlined reports itself. */
		if (found->has_no_fp && item->fp != (uint32_t)found->function->address)
			return;
		leave(r, s, item, found);
		return;
	}
	call = (struct fathom_stream_call){ .ns = ns_of(r, item->ticks),
					    .sp = item->sp,
					    .size = found->size,
					    .function = found->function->address,
					    .caller = item->caller,
					    .has_caller = item->has_caller,
					    .has_returns = found->has_returns && !r->may_miss,
					    .slot = found->is_slot ? found->function : NULL };
	if (!found->is_slot && r->spans.has_slots &&
	    fathom_stream_is_known(s, &call, found->function))
		return;
	depth = fathom_stream_enter(s, &call, item, &r->spans, &parent);
	e = fathom_event_filter_room(&s->event_filter);
	begin_event(e, s, call.ns, FATHOM_TRACE_CALL);
	e->function = found->function;
	place_event(e, s, item->sp, depth);
	e->parent = parent;
	e->parent_depth = depth - 1;
	switch (fathom_rate_limit_count(&r->rate_limit, found->function, e->ns)) {
	case FATHOM_RATE_REACHED:
		stop_flood(r, s, item->site, e);
		fathom_event_filter_pass_over(&s->event_filter, e);
		return;
	case FATHOM_RATE_ABOVE:
		fathom_event_filter_pass_over(&s->event_filter, e);
		return;
	default:
		break;
	}
	fathom_event_filter_take(&r->event_filter, &s->event_filter, e, found->selection);
}

/* Reports system call @call, which @is_within the calls of its depth for certain. */
static void tell_call(struct fathom_rings *r, const struct fathom_posted_syscall *call,
		      bool is_within, struct fathom_trace_event *e)
{
	struct fathom_trace_syscall *told =
		fathom_syscall_report(&r->teller, call->record, call->size);

	if (!told)
		return;
	e->function = fathom_syscall_function(&r->teller, told->machine, told->number);
	told->pc = call->pc;
	told->method = call->method;
	told->system_ns = call->system_ns;
	told->is_injected = call->is_injected;
	told->is_delayed = call->is_delayed;
	if (told->outcome == FATHOM_SYSCALL_HAS_ENDED)
		e->duration_ns = call->duration_ns < e->ns ? call->duration_ns : e->ns;
	e->syscall = told;
	if (is_within) {
		e->parent = FATHOM_TRACE_PARENT_DIRECT;
		e->parent_depth = e->depth - 1;
	}
}

/* Reports a system call of @s that the runtime has recorded, at @ticks, by @type. */
static void tell_ring_call(struct fathom_rings *r, struct fathom_stream *s,
			   const struct fathom_ring_syscall *call, uint64_t ticks, uint8_t type)
{
	const uint32_t sp = (uint32_t)(call->sp >> 3);
	bool is_within = false;
	struct fathom_trace_event e;

	begin_event(&e, s, ns_of(r, ticks), type);
	if (call->call->has_frames)
		is_within = fathom_stream_end_unseen(s, sp, call->call->words, call->call->n_words);
	else if (call->call->n_words)
		is_within =
			fathom_stream_end_returned(s, sp, call->call->words, call->call->n_words);
	place_event(&e, s, sp, fathom_stream_depth(s, sp));
	call->call->duration_ns = e.ns > call->ns ? e.ns - call->ns : 0;
	tell_call(r, call->call, is_within, &e);
	if (e.syscall && !s->is_silent)
		fathom_event_filter_report(&r->event_filter, &s->event_filter, &e);
}

/* Returns whether the call of @record makes its thread another program's, if it succeeds. */
static bool is_execution(const struct fathom_syscall_record *record)
{
	struct fathom_syscall_call call;
	const char *name;

	fathom_syscall_record_call(record, &call);
	name = fathom_syscall_name(call.machine, (int64_t)call.number);
	return name && (!strcmp(name, "execve") || !strcmp(name, "execveat"));
}

/* Returns whether @record says that its thread has become another program's. */
static bool has_executed(const struct fathom_syscall_record *record)
{
	struct fathom_syscall_call call;

	fathom_syscall_record_call(record, &call);
	return call.end == FATHOM_SYSCALL_RETURNED && !call.result && is_execution(record);
}

/*
 * Reports @call, which @s has not returned from, at @ticks; of exec() it does not, unless it
 * fails.
 */
static void tell_unreturned(struct fathom_rings *r, struct fathom_stream *s,
			    const struct fathom_ring_syscall *call, uint64_t ticks)
{
	struct fathom_syscall_record record = { .bytes = call->call->record,
						.n = call->call->size };

	fathom_syscall_record_end(
		&record, is_execution(&record) ? FATHOM_SYSCALL_RETURNED : FATHOM_SYSCALL_NEVER, 0);
	tell_ring_call(r, s, call, ticks, FATHOM_TRACE_SYSCALL);
}

/* Takes an event of a system call. */
static void take_ring_call(struct fathom_rings *r, struct fathom_stream *s,
			   const struct fathom_stream_item *item)
{
	struct fathom_ring_syscall call;

	/*
	 * Of those that a tracer has seen nothing is reported: it has brought the thread out of
	 * them.
	 */
	while (fathom_ring_syscalls_left(&s->system_calls, s->records, item->number, &call)) {
		if (call.nests)
			tell_unreturned(r, s, &call, item->ticks);
		free(call.call);
	}
	if (item->site == FATHOM_TRACE_SYSCALL_BEGINS) {
		if (!fathom_ring_syscall_read(s->records, item->number, &call))
			return;
		call.ns = ns_of(r, item->ticks);
		fathom_ring_syscall_complete(&call, &r->teller.options);
		if (r->tells_entries)
			tell_ring_call(r, s, &call, item->ticks, FATHOM_TRACE_SYSCALL_ENTRY);
		if (call.is_end)
			tell_unreturned(r, s, &call, item->ticks);
		if (call.is_end || !fathom_array_push(&s->system_calls, call))
			free(call.call);
		return;
	}
	if (!fathom_ring_syscalls_end(&s->system_calls, s->records, item->number, &call))
		return;
	fathom_ring_syscall_complete(&call, &r->teller.options);
	tell_ring_call(r, s, &call, item->ticks, FATHOM_TRACE_SYSCALL);
	free(call.call);
}

/* Reports the system calls that @s, whose thread has ended, has not returned from. */
static void end_ring_calls(struct fathom_rings *r, struct fathom_stream *s, uint64_t ticks)
{
	for (size_t i = 0; i < s->system_calls.n; i++)
		tell_unreturned(r, s, &s->system_calls.items[i], ticks);
	fathom_ring_syscalls_deinit(&s->system_calls);
}

/* Takes a post, which stands in the order of @s. */
static void take_post(struct fathom_rings *r, struct fathom_stream *s,
		      const struct fathom_post *post)
{
	struct fathom_stream *begins = find_beginning(r, post->begins);
	bool is_within = false;
	struct fathom_trace_event e;

	if (post->ends)
		fathom_ring_syscalls_forget(&s->system_calls, post->ends - 1);
	if (post->is_release)
		end_ring_calls(r, s, post->ticks);
	/* The program begins with the first of its calls that is told. */
	if (post->call && !r->has_begun) {
		const uint64_t ns = run_ns_of(r, post->ticks);
		const uint64_t since =
			post->type == FATHOM_TRACE_SYSCALL ? post->call->duration_ns : 0;

		r->zero_ns = ns - (since < ns ? since : ns);
		r->has_begun = true;
	}
	if (post->call && post->call->n_words)
		is_within = fathom_stream_end_returned(s, (uint32_t)(post->sp >> 3),
						       post->call->words, post->call->n_words);
	if (begins)
		begin_thread(r, begins, post, s, post->is_copy ? s : NULL);
	begin_event(&e, begins ? begins : s, ns_of(r, post->ticks), post->type);
	e.pid = post->pid;
	e.tid = post->tid;
	e.text = post->text;
	e.status = post->status;
	e.call_stack = post->stack;
	if (post->type == FATHOM_TRACE_SIGNAL || post->call)
		place_event(&e, s, (uint32_t)(post->sp >> 3),
			    fathom_stream_depth(s, (uint32_t)(post->sp >> 3)));
	if (post->call)
		tell_call(r, post->call, is_within, &e);
	if ((post->text || e.syscall) && !s->is_silent)
		fathom_event_filter_report(&r->event_filter, &s->event_filter, &e);
	if (post->call && post->type == FATHOM_TRACE_SYSCALL) {
		const struct fathom_syscall_record record = { .bytes = post->call->record,
							      .n = post->call->size };

		if (has_executed(&record))
			fathom_stream_exec(s);
	}
}

/* Passes over one item of @s, and reports it. */
static void take_item(struct fathom_rings *r, struct fathom_stream *s,
		      struct fathom_stream_item *item)
{
	if (item->post) {
		take_post(r, s, item->post);
		fathom_stream_pass(s, item);
		return;
	}
	fathom_stream_pass(s, item);
	if (item->site >= FATHOM_TRACE_SYSCALL_SITES)
		take_ring_call(r, s, item);
	else if (!s->is_silent)
		take_record(r, s, item);
}

/* Returns the stream whose next item before @until is the earliest; NULL if there is none. */
static struct fathom_stream *earliest(struct fathom_rings *r, uint64_t until,
				      struct fathom_stream_item *ret, uint64_t *ret_next)
{
	struct fathom_stream_item item;
	struct fathom_stream *found = NULL;

	*ret_next = until;
	for (size_t i = 0; i < r->streams.n; i++) {
		struct fathom_stream *s = r->streams.items[i];

		if (!s->has_begun || !fathom_stream_peek(s, &item) || item.ticks >= until)
			continue;
		if (!found || item.ticks < ret->ticks) {
			if (found)
				*ret_next = ret->ticks;
			found = s;
			*ret = item;
		} else if (item.ticks < *ret_next) {
			*ret_next = item.ticks;
		}
	}
	return found;
}

/* Reports what was lost of @s since the last look. */
static void tell_lost(struct fathom_rings *r, struct fathom_stream *s)
{
	const uint64_t lost = fathom_stream_lost(s);
	struct fathom_trace_event e;

	if (lost == s->lost)
		return;
	begin_event(&e, s, ns_of(r, s->ticks), FATHOM_TRACE_LOST);
	e.count = lost - s->lost;
	e.text = "events";
	r->lost += e.count;
	s->lost = lost;
	fathom_event_filter_report(&r->event_filter, &s->event_filter, &e);
}

/* Reports what threads of the program of @s have lost that have no ring. */
static void tell_lost_without_ring(struct fathom_rings *r, const struct fathom_stream *s)
{
	struct fathom_program *pr = s->name.program;
	const uint64_t lost = pr ? atomic_load_explicit(&pr->head->lost, memory_order_relaxed) : 0;
	struct fathom_trace_event e;

	if (!pr || lost == pr->lost)
		return;
	begin_event(&e, s, ns_of(r, r->until.ticks), FATHOM_TRACE_LOST);
	e.text = "events of threads without a ring";
	e.thread = "";
	e.tid = 0;
	e.count = lost - pr->lost;
	r->lost += e.count;
	pr->lost = lost;
	fathom_event_filter_report(&r->event_filter, &r->others->event_filter, &e);
}

/* Returns whether thread @tid sleeps. */
static bool is_asleep(int32_t tid)
{
	struct fathom_proc_stat stat;

	return fathom_proc_stat_of(tid, &stat) && stat.state != 'R';
}

/*
 * Reports the last event of @s if it is not likely to be repeated: others have told of later ones,
 * or the thread sleeps.
 */
static void tell_idle(struct fathom_rings *r, struct fathom_stream *s)
{
	if (!fathom_event_filter_kept(&s->event_filter)->count || ++s->idle < IDLE_LOOKS)
		return;
	s->idle = 0;
	if (is_asleep(s->tid))
		fathom_event_filter_report_kept(&r->event_filter, &s->event_filter);
}

/* Looks after @s, of which nothing more is to be taken for now. */
static void look_after_one(struct fathom_rings *r, struct fathom_stream *s, bool is_end)
{
	const struct fathom_trace_event *kept = fathom_event_filter_kept(&s->event_filter);

	tell_lost(r, s);
	tell_lost_without_ring(r, s);
	if (is_end || (kept->count && kept->ns + r->zero_ns + MOST_DISORDER_NS < r->from.ns &&
		       r->streams.n > 2))
		fathom_event_filter_report_kept(&r->event_filter, &s->event_filter);
	tell_idle(r, s);
	if (s->n_looks && ++s->n_looks == LOOKS_TO_NAME)
		fathom_stream_read_name(s, NULL);
	fathom_stream_give_back(s);
}

/* Looks after all streams; not all was taken if the reader is behind. */
static void look_after(struct fathom_rings *r, bool is_end)
{
	size_t n = 0;

	for (size_t i = 0; i < r->streams.n; i++) {
		struct fathom_stream *s = r->streams.items[i];
		const bool has_ended = s->is_over && !s->posts.n;

		if (!r->is_behind || has_ended)
			look_after_one(r, s, is_end);
		if (!has_ended) {
			r->streams.items[n++] = s;
			continue;
		}
		fathom_event_filter_report_kept(&r->event_filter, &s->event_filter);
		/* Events have the name of its thread. */
		fathom_event_filter_flush(&r->event_filter, false);
		fathom_stream_free_ring(s);
		fathom_stream_destroy(s);
	}
	r->streams.n = n;
}

/*
 * Reads the name of the thread of @s, of which nothing was taken yet: it may be gone before its
 * turn. Many give themselves a name soon.
 */
static void look_at_name(struct fathom_stream *s)
{
	if (s->is_over || s->n_early_looks == LOOKS_TO_NAME)
		return;
	s->n_early_looks++;
	fathom_stream_read_name(s, NULL);
}

/*
 * Gives room back in all rings; of those that fill, records wait elsewhere. Programs see that there
 * is a reader, which may be at other records than theirs.
 */
static void make_room(struct fathom_rings *r)
{
	const uint64_t n = r->streams.n - 1; /* without the one of no ring */
	const uint64_t most = n && n <= MOST_SPOOLING ? r->spool.most / n : 0;
	const struct fathom_program *shown = NULL;

	if (r->spool.most)
		take_posts(r);
	for (size_t i = 0; i < r->streams.n; i++) {
		struct fathom_stream *s = r->streams.items[i];

		if (most)
			fathom_stream_spool(s, &r->spool, most);
		if (r->spool.most)
			look_at_name(s);
		fathom_stream_give_back(s);
		fathom_stream_let_sleep(s);
		if (s->name.program != shown)
			fathom_stream_show_reader(s);
		shown = s->name.program;
	}
}

/*
 * Takes what is there and was recorded before @until: all of it, or a slice if records are spooled.
 * Returns how much that was.
 */
static uint64_t take_all(struct fathom_rings *r, uint64_t until)
{
	const uint64_t most = r->spool.most ? SLICE : UINT64_MAX;
	struct fathom_stream_item item;
	struct fathom_stream *s = NULL;
	uint64_t next;
	uint64_t n = 0;

	while (n < most && (s = earliest(r, until, &item, &next))) {
		/* A stretch of one stream, up to the next item of another. */
		s->idle = 0;
		do {
			const bool is_post = item.post != NULL;

			take_item(r, s, &item);
			n++;
			if (is_post)
				break;
		} while (n % STRETCH && fathom_stream_peek(s, &item) && item.ticks < next);
		if (!(n % STRETCH) && !r->is_latest)
			make_room(r);
	}
	r->is_behind = s != NULL;
	return n;
}

/* Forgets what is too much to be kept. */
static void forget(struct fathom_rings *r)
{
	size_t n_over = 0;
	size_t n = 0;

	for (size_t i = 0; i < r->streams.n; i++)
		n_over += r->streams.items[i]->is_over;
	for (size_t i = 0; i < r->streams.n; i++) {
		struct fathom_stream *s = r->streams.items[i];

		fathom_stream_forget_posts(s, KEPT_POSTS);
		if (s->is_over && n_over > KEPT_RINGS) {
			n_over--;
			fathom_stream_free_ring(s);
			fathom_stream_destroy(s);
			continue;
		}
		r->streams.items[n++] = s;
	}
	r->streams.n = n;
}

/* Reports the latest events, at the end, or when someone asks for them. */
static uint64_t tell_latest(struct fathom_rings *r, bool is_end, bool is_asked)
{
	uint64_t n = 0;

	forget(r);
	if (is_end || is_asked) {
		for (size_t i = 0; i < r->streams.n; i++) {
			fathom_stream_rewind(r->streams.items[i]);
			fathom_event_filter_thread_deinit(&r->streams.items[i]->event_filter);
		}
		/* It was copied after the look had begun. */
		n = take_all(r, UINT64_MAX);
		for (size_t i = 0; i < r->streams.n; i++)
			fathom_event_filter_report_kept(&r->event_filter,
							&r->streams.items[i]->event_filter);
	}
	fathom_event_filter_flush(&r->event_filter, true);
	return n;
}

void fathom_rings_ask(struct fathom_rings *r)
{
	const int wants = r->control ? r->control(r->data) : FATHOM_TRACE_GO_ON;

	r->is_asked |= wants == FATHOM_TRACE_TELL;
	r->wants_to_leave |= wants == FATHOM_TRACE_LEAVE;
}

/* Goes on to the interval of time that ends with @until. */
static void go_on(struct fathom_rings *r, const struct fathom_timestamp_pair *until)
{
	uint64_t ticks;

	/* Of what is reported late, the times are in proportion over all of the run. */
	if (!r->is_latest)
		r->from = r->until;
	r->until = *until;
	ticks = r->until.ticks - r->from.ticks;
	r->ns_per_tick = ticks ? (double)(r->until.ns - r->from.ns) / (double)ticks : 0;
}

/* Takes a slice of what was recorded before r->until. */
static uint64_t take_slice(struct fathom_rings *r)
{
	take_posts(r);
	for (size_t i = 0; i < r->streams.n; i++)
		fathom_stream_let_sleep(r->streams.items[i]);
	return take_all(r, r->until.ticks);
}

/* Takes the rest of what was recorded before r->until, at the end of the trace. */
static uint64_t take_rest(struct fathom_rings *r)
{
	uint64_t n = 0;

	if (r->is_behind && r->rest)
		r->rest(r->data);
	r->rest = NULL;
	while (r->is_behind && !r->event_filter.is_over)
		n += take_slice(r);
	return n;
}

uint64_t fathom_rings_take(struct fathom_rings *r, const struct fathom_timestamp_pair *until,
			   bool is_end)
{
	const bool is_asked = r->is_asked;
	uint64_t n = 0;

	r->is_asked = false;
	if (r->is_latest) {
		go_on(r, until);
		take_posts(r);
		return tell_latest(r, is_end, is_asked);
	}
	if (is_end)
		n += take_rest(r);
	if (!r->is_behind)
		go_on(r, until);
	n += take_slice(r);
	if (is_end)
		n += take_rest(r);
	look_after(r, is_end);
	fathom_event_filter_flush(&r->event_filter, true);
	return n;
}

void fathom_rings_silence(struct fathom_rings *r)
{
	r->is_silent = true;
	for (size_t i = 0; i < r->streams.n; i++)
		r->streams.items[i]->is_silent = true;
}

uint64_t fathom_rings_lost(const struct fathom_rings *r)
{
	return r->lost;
}

bool fathom_rings_is_over(const struct fathom_rings *r)
{
	return r->event_filter.is_over;
}

bool fathom_rings_wants_to_leave(const struct fathom_rings *r)
{
	return r->wants_to_leave;
}

struct fathom_rate_limit *fathom_rings_rate_limit(struct fathom_rings *r)
{
	return &r->rate_limit;
}
