/* SPDX-License-Identifier: MIT */
/* Fields of packets are those that Perfetto's files name; nanopb encodes what is in them. */
#include "host/events/perfetto_packet.h"

#include "host/base/proto_fields.h"
#include "host/events/escape.h"

/* trace.proto: Trace */
enum { TRACE_PACKET = 1 };

/* trace_packet.proto: TracePacket */
enum {
	PACKET_TIMESTAMP = 8,
	PACKET_TRUSTED_PACKET_SEQUENCE_ID = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_INTERNED_DATA = 12,
	PACKET_SEQUENCE_FLAGS = 13,
	PACKET_TRACE_PACKET_DEFAULTS = 59,
	PACKET_TRACK_DESCRIPTOR = 60,
	PACKET_PERF_SAMPLE = 66
};

/* trace_packet.proto: TracePacket.SequenceFlags */
enum { SEQ_INCREMENTAL_STATE_CLEARED = 1, SEQ_NEEDS_INCREMENTAL_STATE = 2 };

/* Messages of all tables of InternedData */
enum { ENTRY_IID = 1, ENTRY_TEXT = 2 };

/* track_event/track_event.proto: TrackEvent */
enum {
	EVENT_DEBUG_ANNOTATIONS = 4,
	EVENT_TYPE = 9,
	EVENT_INTERNED_NAME = 10,
	EVENT_TRACK_UUID = 11,
	EVENT_NAME = 23
};

/* track_event/debug_annotation.proto: DebugAnnotation */
enum { ANNOTATION_UINT_VALUE = 3, ANNOTATION_NAME = 10 };

/* track_event/track_descriptor.proto: TrackDescriptor */
enum { TRACK_UUID = 1, TRACK_PROCESS = 3, TRACK_THREAD = 4, TRACK_PARENT_UUID = 5 };

/* track_event/process_descriptor.proto: ProcessDescriptor */
enum { PROCESS_PID = 1, PROCESS_NAME = 6 };

/* track_event/thread_descriptor.proto: ThreadDescriptor */
enum { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };

/* profiling/profile_packet.proto: PerfSample */
enum {
	SAMPLE_PID = 2,
	SAMPLE_TID = 3,
	SAMPLE_CALLSTACK_IID = 4,
	SAMPLE_TIMEBASE_COUNT = 6,
	SAMPLE_KERNEL_RECORDS_LOST = 17
};

/* trace_packet_defaults.proto: TracePacketDefaults, PerfSampleDefaults */
enum { DEFAULTS_PERF_SAMPLE = 12, PERF_SAMPLE_TIMEBASE = 1 };

/* perf_events.proto: PerfEvents.Timebase */
enum { TIMEBASE_FREQUENCY = 2, TIMEBASE_NAME = 10 };

/* The only sequence. */
#define SEQUENCE 1

static bool put_process(pb_ostream_t *to, const void *message)
{
	const struct fathom_perfetto_track *track = message;

	return fathom_proto_number(to, PROCESS_PID, fathom_proto_signed(track->pid)) &&
	       fathom_proto_string(to, PROCESS_NAME, track->name);
}

static bool put_thread(pb_ostream_t *to, const void *message)
{
	const struct fathom_perfetto_track *track = message;

	return fathom_proto_number(to, THREAD_PID, fathom_proto_signed(track->pid)) &&
	       fathom_proto_number(to, THREAD_TID, fathom_proto_signed(track->tid)) &&
	       fathom_proto_string(to, THREAD_NAME, track->name);
}

static bool put_track(pb_ostream_t *to, const void *message)
{
	const struct fathom_perfetto_track *track = message;

	if (!fathom_proto_number(to, TRACK_UUID, track->uuid))
		return false;
	if (!track->process)
		return fathom_proto_message(to, TRACK_PROCESS, put_process, track);
	return fathom_proto_number(to, TRACK_PARENT_UUID, track->process) &&
	       fathom_proto_message(to, TRACK_THREAD, put_thread, track);
}

static bool put_annotation(pb_ostream_t *to, const void *message)
{
	const struct fathom_perfetto_event *event = message;

	return fathom_proto_string(to, ANNOTATION_NAME, event->label) &&
	       fathom_proto_number(to, ANNOTATION_UINT_VALUE, event->number);
}

static bool put_event(pb_ostream_t *to, const void *message)
{
	const struct fathom_perfetto_event *event = message;

	return fathom_proto_number(to, EVENT_TYPE, event->type) &&
	       fathom_proto_number(to, EVENT_TRACK_UUID, event->track) &&
	       (!event->iid || fathom_proto_number(to, EVENT_INTERNED_NAME, event->iid)) &&
	       (!event->name || fathom_proto_string(to, EVENT_NAME, event->name)) &&
	       (!event->label ||
		fathom_proto_message(to, EVENT_DEBUG_ANNOTATIONS, put_annotation, event));
}

static bool put_entry(pb_ostream_t *to, const void *message)
{
	const struct fathom_perfetto_entry *entry = message;
	bool is_done =
		fathom_proto_number(to, ENTRY_IID, entry->iid) &&
		(!entry->bytes || fathom_proto_bytes(to, ENTRY_TEXT, entry->bytes, entry->size));

	for (size_t i = 0; i < entry->n && is_done; i++)
		is_done = fathom_proto_number(to, entry->numbers[i].field, entry->numbers[i].value);
	return is_done;
}

static bool put_interned(pb_ostream_t *to, const void *message)
{
	const struct fathom_perfetto_entry *entry = message;

	return fathom_proto_message(to, (uint32_t)entry->table, put_entry, entry);
}

static bool put_sample(pb_ostream_t *to, const void *message)
{
	const struct fathom_perfetto_sample *s = message;

	if (s->lost)
		return fathom_proto_number(to, SAMPLE_KERNEL_RECORDS_LOST, s->lost);
	return fathom_proto_number(to, SAMPLE_PID, fathom_proto_signed(s->pid)) &&
	       fathom_proto_number(to, SAMPLE_TID, fathom_proto_signed(s->tid)) &&
	       fathom_proto_number(to, SAMPLE_CALLSTACK_IID, s->callstack) &&
	       fathom_proto_number(to, SAMPLE_TIMEBASE_COUNT, s->counted);
}

static bool put_timebase(pb_ostream_t *to, const void *message)
{
	const struct fathom_perfetto_timebase *t = message;

	return (!t->frequency || fathom_proto_number(to, TIMEBASE_FREQUENCY, t->frequency)) &&
	       fathom_proto_string(to, TIMEBASE_NAME, t->event);
}

static bool put_sample_defaults(pb_ostream_t *to, const void *message)
{
	return fathom_proto_message(to, PERF_SAMPLE_TIMEBASE, put_timebase, message);
}

static bool put_defaults(pb_ostream_t *to, const void *message)
{
	return fathom_proto_message(to, DEFAULTS_PERF_SAMPLE, put_sample_defaults, message);
}

/* Appends @message as a field unless it is NULL. */
static bool put_part(pb_ostream_t *to, uint32_t field, fathom_proto_body *body, const void *message)
{
	return !message || fathom_proto_message(to, field, body, message);
}

static bool put_packet(pb_ostream_t *to, const void *message)
{
	const struct fathom_perfetto_packet *packet = message;

	return fathom_proto_number(to, PACKET_TIMESTAMP, packet->ns) &&
	       fathom_proto_number(to, PACKET_TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE) &&
	       fathom_proto_number(to, PACKET_SEQUENCE_FLAGS, packet->flags) &&
	       put_part(to, PACKET_TRACE_PACKET_DEFAULTS, put_defaults, packet->timebase) &&
	       put_part(to, PACKET_INTERNED_DATA, put_interned, packet->entry) &&
	       put_part(to, PACKET_TRACK_DESCRIPTOR, put_track, packet->track) &&
	       put_part(to, PACKET_TRACK_EVENT, put_event, packet->event) &&
	       put_part(to, PACKET_PERF_SAMPLE, put_sample, packet->sample);
}

/* Takes bytes from nanopb. */
static bool collect(pb_ostream_t *to, const pb_byte_t *bytes, size_t n)
{
	struct fathom_trace_writer *w = to->state;

	fathom_writer_bytes(w, bytes, n);
	return !w->no_memory;
}

void fathom_perfetto_put(struct fathom_perfetto_sequence *s, struct fathom_perfetto_packet packet)
{
	pb_ostream_t to = { .callback = collect, .state = s->w, .max_size = SIZE_MAX };

	packet.flags = s->has_packets ? SEQ_NEEDS_INCREMENTAL_STATE : SEQ_INCREMENTAL_STATE_CLEARED;
	s->has_packets = true;
	s->w->no_memory |= !fathom_proto_message(&to, TRACE_PACKET, put_packet, &packet);
}

const char *fathom_perfetto_clean(struct fathom_perfetto_sequence *s, const char *text)
{
	const bool is_done = fathom_escape_utf8(&s->text, text);

	s->w->no_memory |= !is_done;
	return is_done ? s->text.items : "";
}

void fathom_perfetto_deinit(struct fathom_perfetto_sequence *s)
{
	fathom_array_free(&s->text);
}
