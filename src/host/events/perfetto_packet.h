/* SPDX-License-Identifier: MIT */
/*
 * Packets of Perfetto: protocol buffers, as protos/perfetto/trace/trace.proto of Perfetto and the
 * files it imports describe them. All packets are of one sequence. Not in builds without nanopb.
 */
#ifndef FATHOM_EVENTS_PERFETTO_PACKET_H
#define FATHOM_EVENTS_PERFETTO_PACKET_H

#include "host/events/writer.h"

/* interned_data/interned_data.proto: fields of InternedData */
enum fathom_perfetto_table {
	FATHOM_PERFETTO_EVENT_NAMES = 2,
	FATHOM_PERFETTO_FUNCTION_NAMES = 5,
	FATHOM_PERFETTO_FRAMES = 6,
	FATHOM_PERFETTO_CALLSTACKS = 7,
	FATHOM_PERFETTO_BUILD_IDS = 16,
	FATHOM_PERFETTO_MAPPING_PATHS = 17,
	FATHOM_PERFETTO_SOURCE_PATHS = 18,
	FATHOM_PERFETTO_MAPPINGS = 19
};

/* track_event/track_event.proto: TrackEvent.Type */
enum fathom_perfetto_type {
	FATHOM_PERFETTO_SLICE_BEGIN = 1,
	FATHOM_PERFETTO_SLICE_END = 2,
	FATHOM_PERFETTO_INSTANT = 3
};

/* A message that describes a process or a thread, and its track. */
struct fathom_perfetto_track {
	uint64_t uuid;
	uint64_t process; /* uuid of a thread's process; 0: a process */
	const char *name;
	int32_t pid;
	int32_t tid;
};

/* A message that is an event on a track. */
struct fathom_perfetto_event {
	uint64_t type; /* enum fathom_perfetto_type */
	uint64_t track;
	uint64_t iid;      /* of its name; 0: none */
	const char *name;  /* not interned, or NULL */
	const char *label; /* of a number that it has; NULL: none */
	uint64_t number;
};

/* A field that is a number. */
struct fathom_perfetto_number {
	uint32_t field;
	uint64_t value;
};

/* An entry of a table, to which later packets refer by its iid. */
struct fathom_perfetto_entry {
	enum fathom_perfetto_table table;
	uint64_t iid;
	const void *bytes; /* of a text or a build-id; NULL: it has numbers */
	size_t size;
	const struct fathom_perfetto_number *numbers;
	size_t n;
};

/* profiling/profile_packet.proto: PerfSample */
struct fathom_perfetto_sample {
	int32_t pid;
	int32_t tid;
	uint64_t callstack; /* iid */
	uint64_t counted;   /* of the event, up to this sample */
	uint64_t lost;      /* if not 0, it is no sample: so many were lost */
};

/* config/profiling/perf_event_config.proto: PerfEvents.Timebase, for the samples that follow. */
struct fathom_perfetto_timebase {
	const char *event;
	uint64_t frequency; /* 0: not known */
};

/* A packet: of the pointers, one is not NULL. */
struct fathom_perfetto_packet {
	uint64_t ns;
	const struct fathom_perfetto_track *track;
	const struct fathom_perfetto_event *event;
	const struct fathom_perfetto_entry *entry; /* also beside an event */
	const struct fathom_perfetto_sample *sample;
	const struct fathom_perfetto_timebase *timebase;
	uint64_t flags; /* set by fathom_perfetto_put() */
};

/* All zero but w. */
struct fathom_perfetto_sequence {
	struct fathom_trace_writer *w;
	bool has_packets;
	struct fathom_bytes_array text; /* in UTF-8 */
};

/* Writes @packet. */
void fathom_perfetto_put(struct fathom_perfetto_sequence *s, struct fathom_perfetto_packet packet);
/*
 * Returns @text in UTF-8, valid until the next call: what is not becomes U+FFFD. Returns "" without
 * memory.
 */
const char *fathom_perfetto_clean(struct fathom_perfetto_sequence *s, const char *text);
void fathom_perfetto_deinit(struct fathom_perfetto_sequence *s);

#endif
