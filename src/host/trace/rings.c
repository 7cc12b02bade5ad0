/* SPDX-License-Identifier: MIT */
#include "host/trace/rings.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/trace/thread_stream.h"

/* Events that are passed on at once. */
#define BATCH 256

/* Records of one ring that are taken before its room is given back. */
#define STRETCH (FATHOM_TRACE_RECORDS / 16)

/* How far the events of two threads may be told out of order. */
#define MOST_DISORDER_NS 10000000

/* Looks without a record after which a thread may be asleep. */
#define IDLE_LOOKS 10

struct fathom_rings {
	const struct fathom_trace_options *options;
	struct fathom_trace_moment from; /* times in between are in proportion */
	struct fathom_trace_moment until;
	pthread_mutex_t lock; /* of inbox */
	struct {
		FATHOM_ARRAY_OF(struct fathom_post);
	} inbox;
	struct {
		FATHOM_ARRAY_OF(struct fathom_stream *);
	} streams;
	struct fathom_stream *others; /* posts of threads that have no ring */
	struct fathom_spans spans;
	uint64_t zero_ns; /* when the program began; times are told from there */
	bool has_begun;
	uint64_t lost; /* events that were told to be */
	bool is_over;
	size_t n_events;
	struct fathom_trace_event events[BATCH];
};

fathom_err fathom_rings_create(const struct fathom_trace_options *options,
			       const struct fathom_trace_moment *begin, struct fathom_rings **ret)
{
	struct fathom_rings *r = calloc(1, sizeof *r);

	if (!r)
		return FATHOM_E_MEMORY;
	r->options = options;
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
	*ret = r;
	return FATHOM_OK;
}

static void discard(const struct fathom_post *post)
{
	free(post->text);
	fathom_span_destroy(post->span);
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
	for (size_t i = 0; i < r->inbox.n; i++)
		discard(&r->inbox.items[i]);
	fathom_array_free(&r->inbox);
	fathom_spans_deinit(&r->spans);
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
static struct fathom_stream *find(struct fathom_rings *r, struct fathom_ring_name name)
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

/* Adds a post to the ring in whose order it stands. */
static void sort_in(struct fathom_rings *r, struct fathom_post *post)
{
	struct fathom_stream *s = find(r, post->ring);
	struct fathom_stream *begins;

	if (post->span)
		(void)fathom_spans_add(&r->spans, post->span);
	post->span = NULL;
	if (post->begins.program) {
		begins = fathom_stream_create(post->begins);
		if (begins && fathom_array_push(&r->streams, begins)) {
			begins->tid = post->tid;
			begins->pid = post->pid;
			begins->is_silent = post->is_silent;
		} else if (begins) {
			fathom_stream_destroy(begins);
		}
	}
	if (post->is_release)
		post->cursor = fathom_stream_end(s);
	/* The program says how far it is; no ring holds more. */
	if (post->cursor - s->taken > FATHOM_TRACE_RECORDS + FATHOM_TRACE_SLACK)
		post->cursor = s->taken;
	s->is_over |= post->is_release && s->head;
	if (!fathom_array_push(&s->posts, *post))
		free(post->text);
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

static void flush(struct fathom_rings *r)
{
	if (r->n_events && !r->is_over)
		r->is_over = !r->options->events(r->options->data, r->events, r->n_events);
	r->n_events = 0;
}

static void tell(struct fathom_rings *r, const struct fathom_trace_event *e)
{
	r->events[r->n_events++] = *e;
	/* A text is gone soon. */
	if (r->n_events == BATCH || e->text)
		flush(r);
}

/* Tells what was kept of @s because it might be repeated. */
static void tell_last(struct fathom_rings *r, struct fathom_stream *s)
{
	if (s->last.count)
		tell(r, &s->last);
	s->last.count = 0;
}

/* Returns the nanoseconds of @ticks, since the run began. */
static uint64_t run_ns_of(const struct fathom_rings *r, uint64_t ticks)
{
	const uint64_t span = r->until.ticks - r->from.ticks;
	const double part = span ? (double)(r->until.ns - r->from.ns) / (double)span : 0;

	/* Told late, or by a program that writes what it likes. */
	if (ticks < r->from.ticks)
		return r->from.ns;
	return r->from.ns + (uint64_t)((double)(ticks - r->from.ticks) * part);
}

/* Returns the nanoseconds of @ticks, since the program began. */
static uint64_t ns_of(const struct fathom_rings *r, uint64_t ticks)
{
	const uint64_t ns = run_ns_of(r, ticks);

	return ns > r->zero_ns ? ns - r->zero_ns : 0;
}

/* Returns whether an event at @sp, @depth, is to be told. */
static bool is_wanted(const struct fathom_rings *r, struct fathom_stream *s, uint32_t sp,
		      uint32_t depth, bool is_under)
{
	if (r->options->n_under) {
		if (s->is_under && s->lane == s->under_lane && (int32_t)(sp - s->under_sp) >= 0)
			s->is_under = false;
		if (!s->is_under && is_under) {
			s->is_under = true;
			s->under_sp = sp;
			s->under_lane = s->lane;
		}
		if (!s->is_under)
			return false;
	}
	return !r->options->depth || depth < r->options->depth;
}

/* Tells of a return. */
static void leave(struct fathom_rings *r, struct fathom_stream *s,
		  const struct fathom_stream_item *item, const struct fathom_span_found *found)
{
	uint64_t begin;
	bool is_known;
	const uint32_t depth = fathom_stream_leave(s, item->sp, &begin, &is_known);
	const bool was_under = s->is_under;
	struct fathom_trace_event e = { .ns = ns_of(r, item->ticks),
					.count = 1,
					.stack = fathom_stream_stack(s, item->sp),
					.function = found->function,
					.pid = s->pid,
					.tid = s->tid,
					.depth = depth,
					.type = FATHOM_TRACE_RETURN };
	const bool is_wanted_now = is_wanted(r, s, item->sp, depth, found->is_under);

	/* The return of the function whose calls are wanted is the end of them. */
	s->is_under =
		was_under && (s->lane != s->under_lane || (int32_t)(item->sp - s->under_sp) < 0);
	if (!is_wanted_now)
		return;
	tell_last(r, s);
	if (is_known && e.ns > begin)
		e.duration_ns = e.ns - begin;
	tell(r, &e);
}

/* Takes a record. */
static void take_record(struct fathom_rings *r, struct fathom_stream *s,
			const struct fathom_stream_item *item)
{
	const struct fathom_span_found *found = fathom_spans_find(&r->spans, item->site);
	uint32_t depth;
	uint64_t ns;

	if (!found) {
		/* It was loaded since the posts were taken. */
		take_posts(r);
		found = fathom_spans_find(&r->spans, item->site);
		if (!found)
			return;
	}
	if (found->place != FATHOM_SITE_ENTRY) {
		leave(r, s, item, found);
		return;
	}
	ns = ns_of(r, item->ticks);
	depth = fathom_stream_enter(s, item->sp, ns);
	if (!is_wanted(r, s, item->sp, depth, found->is_under))
		return;
	if (s->last.count && s->last_site == item->site && s->last_sp == item->sp &&
	    !(r->options->flags & FATHOM_TRACE_NO_FOLD)) {
		s->last.count++;
		return;
	}
	tell_last(r, s);
	s->last_site = item->site;
	s->last_sp = item->sp;
	s->last = (struct fathom_trace_event){ .ns = ns,
					       .count = 1,
					       .stack = fathom_stream_stack(s, item->sp),
					       .function = found->function,
					       .pid = s->pid,
					       .tid = s->tid,
					       .depth = depth,
					       .type = FATHOM_TRACE_CALL };
}

/* Takes a post, which stands in the order of @s. */
static void take_post(struct fathom_rings *r, struct fathom_stream *s,
		      const struct fathom_post *post)
{
	struct fathom_stream *begins = find_beginning(r, post->begins);
	struct fathom_trace_event e = { .count = 1,
					.text = post->text,
					.pid = post->pid,
					.tid = post->tid,
					.type = post->type };

	if (begins && !r->has_begun) {
		r->has_begun = true;
		r->zero_ns = run_ns_of(r, post->ticks);
	}
	e.ns = ns_of(r, post->ticks);
	tell_last(r, s);
	if (post->type == FATHOM_TRACE_SIGNAL) {
		e.depth = fathom_stream_depth(s, (uint32_t)(post->sp >> 3));
		e.stack = fathom_stream_stack(s, (uint32_t)(post->sp >> 3));
	}
	if (post->text && !s->is_silent)
		tell(r, &e);
	if (begins)
		fathom_stream_begin(begins, post->sp, post->ticks, post->is_copy ? s : NULL);
}

/* Passes over one item of @s, and tells of it. */
static void take(struct fathom_rings *r, struct fathom_stream *s,
		 const struct fathom_stream_item *item)
{
	if (item->post) {
		take_post(r, s, item->post);
		fathom_stream_pass(s, item);
		return;
	}
	fathom_stream_pass(s, item);
	if (!s->is_silent)
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

/* Tells what was lost of @s since the last look. */
static void tell_lost(struct fathom_rings *r, struct fathom_stream *s)
{
	const uint64_t lost = fathom_stream_lost(s);
	struct fathom_trace_event e = { .ns = ns_of(r, s->ticks),
					.count = lost - s->lost,
					.text = "events",
					.pid = s->pid,
					.tid = s->tid,
					.type = FATHOM_TRACE_LOST };

	if (lost == s->lost)
		return;
	tell_last(r, s);
	r->lost += e.count;
	s->lost = lost;
	tell(r, &e);
}

/* Tells what threads of the program of @s have lost that have no ring. */
static void tell_lost_without_ring(struct fathom_rings *r, const struct fathom_stream *s)
{
	struct fathom_program *pr = s->name.program;
	const uint64_t lost = pr ? atomic_load_explicit(&pr->head->lost, memory_order_relaxed) : 0;
	struct fathom_trace_event e = { .ns = ns_of(r, r->until.ticks),
					.text = "events of threads without a ring",
					.pid = s->pid,
					.type = FATHOM_TRACE_LOST };

	if (!pr || lost == pr->lost)
		return;
	e.count = lost - pr->lost;
	r->lost += e.count;
	pr->lost = lost;
	tell(r, &e);
}

/* Returns whether thread @tid sleeps. */
static bool is_asleep(int32_t tid)
{
	char path[64];
	char text[512];
	const char *state;
	size_t n = 0;
	FILE *f;

	(void)snprintf(path, sizeof path, "/proc/%d/stat", tid);
	f = fopen(path, "re");
	if (f) {
		n = fread(text, 1, sizeof text - 1, f);
		(void)fclose(f);
	}
	text[n] = '\0';
	/* Behind the name, in parentheses (proc_pid_stat(5)). */
	state = strrchr(text, ')');
	return state && state[1] && state[2] != 'R';
}

/*
 * Tells the last event of @s if it is not likely to be repeated: others have told of later ones, or
 * the thread sleeps.
 */
static void tell_idle(struct fathom_rings *r, struct fathom_stream *s)
{
	if (!s->last.count || ++s->idle < IDLE_LOOKS)
		return;
	s->idle = 0;
	if (is_asleep(s->tid))
		tell_last(r, s);
}

/* Looks after all streams when there is nothing more to take. */
static void look_after(struct fathom_rings *r, bool is_end)
{
	size_t n = 0;

	for (size_t i = 0; i < r->streams.n; i++) {
		struct fathom_stream *s = r->streams.items[i];

		tell_lost(r, s);
		tell_lost_without_ring(r, s);
		if (is_end ||
		    (s->last.count && s->last.ns + r->zero_ns + MOST_DISORDER_NS < r->from.ns &&
		     r->streams.n > 2))
			tell_last(r, s);
		tell_idle(r, s);
		fathom_stream_give_back(s);
		if (!s->is_over || s->posts.n) {
			r->streams.items[n++] = s;
			continue;
		}
		tell_last(r, s);
		fathom_stream_free_ring(s);
		fathom_stream_destroy(s);
	}
	r->streams.n = n;
}

uint64_t fathom_rings_take(struct fathom_rings *r, const struct fathom_trace_moment *until,
			   bool is_end)
{
	struct fathom_stream_item item;
	struct fathom_stream *s;
	uint64_t next;
	uint64_t n = 0;

	take_posts(r);
	r->from = r->until;
	r->until = *until;
	for (size_t i = 0; i < r->streams.n; i++)
		fathom_stream_let_sleep(r->streams.items[i]);
	while ((s = earliest(r, until->ticks, &item, &next))) {
		/* A stretch of one stream, up to the next item of another. */
		s->idle = 0;
		do {
			const bool is_post = item.post != NULL;

			take(r, s, &item);
			n++;
			if (is_post)
				break;
		} while (n % STRETCH && fathom_stream_peek(s, &item) && item.ticks < next);
		if (!(n % STRETCH))
			fathom_stream_give_back(s);
	}
	look_after(r, is_end);
	flush(r);
	return n;
}

uint64_t fathom_rings_lost(const struct fathom_rings *r)
{
	return r->lost;
}

bool fathom_rings_is_over(const struct fathom_rings *r)
{
	return r->is_over;
}
