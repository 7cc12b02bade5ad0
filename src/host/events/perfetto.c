/* SPDX-License-Identifier: MIT */
/*
 * Traces of Perfetto: protocol buffers (https://protobuf.dev/programming-guides/encoding/), as
 * protos/perfetto/trace/trace.proto of Perfetto and the files it imports describe them. nanopb
 * encodes what is in fields; which fields there are is said here.
 *
 * Each call is a slice of a thread's track, each event that is neither a call nor a return an
 * instant. All packets are of one sequence. Times are nanoseconds since the run began.
 *
 * The length of a message stands before it: each is encoded twice, the first time only to count its
 * bytes. Messages are nested three deep at most.
 */
/* The names that tools/nanopb gives them. */
#define pb_encode_string fathom_pb_encode_string
#define pb_encode_tag    fathom_pb_encode_tag
#define pb_encode_varint fathom_pb_encode_varint
#include FATHOM_NANOPB_HEADER
#include <stdlib.h>

#include "host/events/escape.h"
#include "host/events/instant.h"
#include "host/events/open_calls.h"
#include "host/events/writer.h"

/* trace.proto: Trace */
enum { TRACE_PACKET = 1 };

/* trace_packet.proto: TracePacket */
enum {
	PACKET_TIMESTAMP = 8,
	PACKET_TRUSTED_PACKET_SEQUENCE_ID = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_INTERNED_DATA = 12,
	PACKET_SEQUENCE_FLAGS = 13,
	PACKET_TRACK_DESCRIPTOR = 60
};

/* trace_packet.proto: TracePacket.SequenceFlags */
enum { SEQ_INCREMENTAL_STATE_CLEARED = 1, SEQ_NEEDS_INCREMENTAL_STATE = 2 };

/* interned_data/interned_data.proto: InternedData */
enum { INTERNED_EVENT_NAMES = 2 };

/* track_event/track_event.proto: EventName */
enum { EVENT_NAME_IID = 1, EVENT_NAME_NAME = 2 };

/* track_event/track_event.proto: TrackEvent */
enum {
	EVENT_DEBUG_ANNOTATIONS = 4,
	EVENT_TYPE = 9,
	EVENT_INTERNED_NAME = 10,
	EVENT_TRACK_UUID = 11,
	EVENT_NAME = 23
};

/* track_event/track_event.proto: TrackEvent.Type */
enum { TYPE_SLICE_BEGIN = 1, TYPE_SLICE_END = 2, TYPE_INSTANT = 3 };

/* track_event/debug_annotation.proto: DebugAnnotation */
enum { ANNOTATION_UINT_VALUE = 3, ANNOTATION_NAME = 10 };

/* track_event/track_descriptor.proto: TrackDescriptor */
enum { TRACK_UUID = 1, TRACK_PROCESS = 3, TRACK_THREAD = 4, TRACK_PARENT_UUID = 5 };

/* track_event/process_descriptor.proto: ProcessDescriptor */
enum { PROCESS_PID = 1, PROCESS_NAME = 6 };

/* track_event/thread_descriptor.proto: ThreadDescriptor */
enum { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };

/* The only sequence. */
#define SEQUENCE 1

/* A message that describes a process or a thread, and its track. */
struct track {
	uint64_t uuid;
	uint64_t process; /* uuid of a thread's process; 0: a process */
	const char *name;
	int32_t pid;
	int32_t tid;
};

/* A message that is an event on a track. */
struct event {
	uint64_t type;
	uint64_t track;
	uint64_t iid;     /* of its name; 0: none */
	const char *name; /* not interned, or NULL */
	uint64_t count;   /* of folded calls */
};

/* A packet. */
struct packet {
	uint64_t ns;
	uint64_t flags;
	const struct track *track; /* or NULL */
	const struct event *event; /* or NULL */
	uint64_t iid;              /* of a name that is made known; 0: none */
	const char *name;          /* this name */
};

struct perfetto {
	struct fathom_trace_writer *w;
	bool has_packets;
	uint32_t n_tracks; /* the last uuid */
	struct fathom_open_calls open;
	struct fathom_key_map processes; /* uuids by pid */
	struct fathom_bytes_array name;  /* in UTF-8 */
	struct fathom_bytes_array instant;
};

typedef bool put_body(pb_ostream_t *to, const void *message);

static bool put_number(pb_ostream_t *to, uint32_t field, uint64_t value)
{
	return pb_encode_tag(to, PB_WT_VARINT, field) && pb_encode_varint(to, value);
}

static bool put_string(pb_ostream_t *to, uint32_t field, const char *s)
{
	return pb_encode_tag(to, PB_WT_STRING, field) &&
	       pb_encode_string(to, (const pb_byte_t *)s, strlen(s));
}

/* Appends @message, which @body encodes, as a field. */
static bool put_message(pb_ostream_t *to, uint32_t field, put_body *body, const void *message)
{
	pb_ostream_t size = PB_OSTREAM_SIZING;

	return body(&size, message) && pb_encode_tag(to, PB_WT_STRING, field) &&
	       pb_encode_varint(to, size.bytes_written) && body(to, message);
}

/* A negative int32 is encoded as an int64. */
static uint64_t signed_number(int32_t value)
{
	return (uint64_t)(int64_t)value;
}

static bool put_process(pb_ostream_t *to, const void *message)
{
	const struct track *track = message;

	return put_number(to, PROCESS_PID, signed_number(track->pid)) &&
	       put_string(to, PROCESS_NAME, track->name);
}

static bool put_thread(pb_ostream_t *to, const void *message)
{
	const struct track *track = message;

	return put_number(to, THREAD_PID, signed_number(track->pid)) &&
	       put_number(to, THREAD_TID, signed_number(track->tid)) &&
	       put_string(to, THREAD_NAME, track->name);
}

static bool put_track(pb_ostream_t *to, const void *message)
{
	const struct track *track = message;

	if (!put_number(to, TRACK_UUID, track->uuid))
		return false;
	if (!track->process)
		return put_message(to, TRACK_PROCESS, put_process, track);
	return put_number(to, TRACK_PARENT_UUID, track->process) &&
	       put_message(to, TRACK_THREAD, put_thread, track);
}

static bool put_count(pb_ostream_t *to, const void *message)
{
	const struct event *event = message;

	return put_string(to, ANNOTATION_NAME, "count") &&
	       put_number(to, ANNOTATION_UINT_VALUE, event->count);
}

static bool put_event(pb_ostream_t *to, const void *message)
{
	const struct event *event = message;

	return put_number(to, EVENT_TYPE, event->type) &&
	       put_number(to, EVENT_TRACK_UUID, event->track) &&
	       (!event->iid || put_number(to, EVENT_INTERNED_NAME, event->iid)) &&
	       (!event->name || put_string(to, EVENT_NAME, event->name)) &&
	       (event->count < 2 || put_message(to, EVENT_DEBUG_ANNOTATIONS, put_count, event));
}

static bool put_event_name(pb_ostream_t *to, const void *message)
{
	const struct packet *packet = message;

	return put_number(to, EVENT_NAME_IID, packet->iid) &&
	       put_string(to, EVENT_NAME_NAME, packet->name);
}

static bool put_interned(pb_ostream_t *to, const void *message)
{
	return put_message(to, INTERNED_EVENT_NAMES, put_event_name, message);
}

static bool put_packet(pb_ostream_t *to, const void *message)
{
	const struct packet *packet = message;

	return put_number(to, PACKET_TIMESTAMP, packet->ns) &&
	       put_number(to, PACKET_TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE) &&
	       put_number(to, PACKET_SEQUENCE_FLAGS, packet->flags) &&
	       (!packet->iid || put_message(to, PACKET_INTERNED_DATA, put_interned, packet)) &&
	       (!packet->track ||
		put_message(to, PACKET_TRACK_DESCRIPTOR, put_track, packet->track)) &&
	       (!packet->event || put_message(to, PACKET_TRACK_EVENT, put_event, packet->event));
}

/* Takes bytes from nanopb. */
static bool collect(pb_ostream_t *to, const pb_byte_t *bytes, size_t n)
{
	struct fathom_trace_writer *w = to->state;

	fathom_writer_bytes(w, bytes, n);
	return !w->no_memory;
}

/* Writes a packet, of which @packet says all but the flags. */
static void write_packet(struct perfetto *p, struct packet packet)
{
	pb_ostream_t to = { .callback = collect, .state = p->w, .max_size = SIZE_MAX };

	packet.flags = p->has_packets ? SEQ_NEEDS_INCREMENTAL_STATE : SEQ_INCREMENTAL_STATE_CLEARED;
	p->has_packets = true;
	p->w->no_memory |= !put_message(&to, TRACE_PACKET, put_packet, &packet);
}

/*
 * Returns @s in UTF-8, valid until the next call: what is not becomes U+FFFD. Returns "" without
 * memory.
 */
static const char *clean(struct perfetto *p, const char *s)
{
	const bool is_done = fathom_escape_utf8(&p->name, s);

	p->w->no_memory |= !is_done;
	return is_done ? p->name.items : "";
}

/* Describes the process of @t, unless it is known; returns its uuid, or 0 without memory. */
static uint32_t process_of(struct perfetto *p, const struct fathom_open_thread *t)
{
	uint32_t *uuid = fathom_key_map_at(&p->processes, (uint32_t)t->pid);
	const bool is_known = uuid && *uuid != FATHOM_KEY_NEW;
	struct track track = { .pid = t->pid };

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
	track.name = clean(p, t->name);
	write_packet(p, (struct packet){ .ns = t->ns, .track = &track });
	return *uuid;
}

static void begin_thread(void *data, struct fathom_open_thread *t)
{
	struct perfetto *p = data;
	struct track track = { .process = process_of(p, t), .pid = t->pid, .tid = t->tid };

	/* Events of no thread go to the track of the process. */
	t->mark = t->tid ? ++p->n_tracks : (uint32_t)track.process;
	if (!t->tid)
		return;
	track.uuid = t->mark;
	track.name = clean(p, t->name);
	write_packet(p, (struct packet){ .ns = t->ns, .track = &track });
}

static void begin_call(void *data, const struct fathom_open_thread *t, struct fathom_open_call *c,
		       const struct fathom_trace_event *e)
{
	struct perfetto *p = data;
	const struct event event = { .type = TYPE_SLICE_BEGIN,
				     .track = t->mark,
				     .iid = (uint64_t)e->function->number + 1,
				     .count = e->count };
	const struct event unknown = { .type = TYPE_SLICE_BEGIN,
				       .track = t->mark,
				       .name = fathom_open_call_mark(c) };
	struct packet packet = { .ns = c->ns, .event = &event };

	if (unknown.name)
		write_packet(p, (struct packet){ .ns = c->ns, .event = &unknown });
	if (fathom_writer_name(p->w, e->function)) {
		packet.iid = event.iid;
		packet.name = clean(p, e->function->name);
	}
	write_packet(p, packet);
}

static void end_call(void *data, const struct fathom_open_thread *t,
		     const struct fathom_open_call *c, uint64_t ns)
{
	const struct event event = { .type = TYPE_SLICE_END, .track = t->mark };

	(void)ns;
	for (int n = fathom_open_call_mark(c) ? 2 : 1; n; n--)
		write_packet(data, (struct packet){ .ns = t->ns, .event = &event });
}

static const struct fathom_open_calls_user user = { begin_thread, begin_call, end_call };

static void put_instant(struct perfetto *p, const struct fathom_open_thread *t,
			const struct fathom_trace_event *e)
{
	struct event event = { .type = TYPE_INSTANT, .track = t->mark };

	if (!fathom_instant_name(e, &p->instant)) {
		p->w->no_memory = true;
		return;
	}
	event.name = clean(p, p->instant.items);
	write_packet(p, (struct packet){ .ns = t->ns, .event = &event });
}

static void begin_perfetto(struct fathom_trace_writer *w)
{
	struct perfetto *p = calloc(1, sizeof *p);

	w->state = p;
	w->no_memory |= !p;
	if (!p)
		return;
	p->w = w;
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
	fathom_array_free(&p->name);
	fathom_array_free(&p->instant);
	free(p);
}

const struct fathom_writer_format fathom_writer_perfetto = { begin_perfetto, take_event, end,
							     free_state, false };
