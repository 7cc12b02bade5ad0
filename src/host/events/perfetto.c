/* SPDX-License-Identifier: MIT */
/*
 * Traces of Perfetto. Each call is a slice of a thread's track, each event that is neither a call
 * nor a return an instant. Times are nanoseconds since the run began.
 */
#include <stdlib.h>

#include "host/events/instant.h"
#include "host/events/open_calls.h"
#include "host/events/perfetto_packet.h"

struct perfetto {
	struct fathom_trace_writer *w;
	struct fathom_perfetto_sequence packets;
	uint32_t n_tracks; /* the last uuid */
	struct fathom_open_calls open;
	struct fathom_key_map processes; /* uuids by pid */
	struct fathom_bytes_array instant;
};

/* Describes the process of @t, unless it is known; returns its uuid, or 0 without memory. */
static uint32_t process_of(struct perfetto *p, const struct fathom_open_thread *t)
{
	uint32_t *uuid = fathom_key_map_at(&p->processes, (uint32_t)t->pid);
	const bool is_known = uuid && *uuid != FATHOM_KEY_NEW;
	struct fathom_perfetto_track track = { .pid = t->pid };

	if (!uuid) {
		p->w->no_memory = true;
		return 0;
	}
	/* The main thread names its process; until it is known, any other one does. */
	if (is_known && t->pid != t->tid)
		return *uuid;
	if (!is_known || t->generation)
		*uuid = ++p->n_tracks;
	track.uuid = *uuid;
	track.name = fathom_perfetto_clean(&p->packets, t->name);
	fathom_perfetto_put(&p->packets,
			    (struct fathom_perfetto_packet){ .ns = t->ns, .track = &track });
	return *uuid;
}

static void begin_thread(void *data, struct fathom_open_thread *t)
{
	struct perfetto *p = data;
	struct fathom_perfetto_track track = { .process = process_of(p, t),
					       .pid = t->pid,
					       .tid = t->tid };

	/* Events of no thread go to the track of the process. */
	t->mark = t->tid ? ++p->n_tracks : (uint32_t)track.process;
	if (!t->tid)
		return;
	track.uuid = t->mark;
	track.name = fathom_perfetto_clean(&p->packets, t->name);
	fathom_perfetto_put(&p->packets,
			    (struct fathom_perfetto_packet){ .ns = t->ns, .track = &track });
}

static void begin_call(void *data, const struct fathom_open_thread *t, struct fathom_open_call *c,
		       const struct fathom_trace_event *e)
{
	struct perfetto *p = data;
	const struct fathom_perfetto_event event = { .type = FATHOM_PERFETTO_SLICE_BEGIN,
						     .track = t->mark,
						     .iid = (uint64_t)e->function->number + 1,
						     .label = e->count > 1 ? "count" : NULL,
						     .number = e->count };
	const struct fathom_perfetto_event unknown = { .type = FATHOM_PERFETTO_SLICE_BEGIN,
						       .track = t->mark,
						       .name = fathom_open_call_mark(c) };
	struct fathom_perfetto_packet packet = { .ns = c->ns, .event = &event };
	struct fathom_perfetto_entry entry;

	if (unknown.name)
		fathom_perfetto_put(&p->packets, (struct fathom_perfetto_packet){
							 .ns = c->ns, .event = &unknown });
	if (fathom_writer_name(p->w, e->function)) {
		const char *name = fathom_perfetto_clean(&p->packets, e->function->name);

		entry = (struct fathom_perfetto_entry){ .table = FATHOM_PERFETTO_EVENT_NAMES,
							.iid = event.iid,
							.bytes = name,
							.size = strlen(name) };
		packet.entry = &entry;
	}
	fathom_perfetto_put(&p->packets, packet);
}

static void end_call(void *data, const struct fathom_open_thread *t,
		     const struct fathom_open_call *c, uint64_t ns)
{
	struct perfetto *p = data;
	const struct fathom_perfetto_event event = { .type = FATHOM_PERFETTO_SLICE_END,
						     .track = t->mark };

	(void)ns;
	for (int n = fathom_open_call_mark(c) ? 2 : 1; n; n--)
		fathom_perfetto_put(&p->packets, (struct fathom_perfetto_packet){
							 .ns = t->ns, .event = &event });
}

static const struct fathom_open_calls_user user = { begin_thread, begin_call, end_call };

static void put_instant(struct perfetto *p, const struct fathom_open_thread *t,
			const struct fathom_trace_event *e)
{
	struct fathom_perfetto_event event = { .type = FATHOM_PERFETTO_INSTANT, .track = t->mark };

	if (!fathom_instant_name(e, &p->instant)) {
		p->w->no_memory = true;
		return;
	}
	event.name = fathom_perfetto_clean(&p->packets, p->instant.items);
	fathom_perfetto_put(&p->packets,
			    (struct fathom_perfetto_packet){ .ns = t->ns, .event = &event });
}

static void begin_perfetto(struct fathom_trace_writer *w)
{
	struct perfetto *p = calloc(1, sizeof *p);

	w->state = p;
	w->no_memory |= !p;
	if (!p)
		return;
	p->w = w;
	p->packets.w = w;
	p->open = (struct fathom_open_calls){ .user = &user, .data = p };
}

static void take_event(struct fathom_trace_writer *w, const struct fathom_trace_event *e)
{
	struct perfetto *p = w->state;
	const struct fathom_open_thread *t = fathom_open_calls_take(&p->open, e);

	w->no_memory |= !t;
	if (t && fathom_instant_is(e))
		put_instant(p, t, e);
}

static void end(struct fathom_trace_writer *w, const struct fathom_trace_result *result)
{
	struct perfetto *p = w->state;

	(void)result;
	fathom_open_calls_finish(&p->open);
}

static void free_state(struct fathom_trace_writer *w)
{
	struct perfetto *p = w->state;

	if (!p)
		return;
	fathom_open_calls_deinit(&p->open);
	fathom_key_map_deinit(&p->processes);
	fathom_perfetto_deinit(&p->packets);
	fathom_array_free(&p->instant);
	free(p);
}

const struct fathom_writer_format fathom_writer_perfetto = { begin_perfetto, take_event, end,
							     free_state, false };
