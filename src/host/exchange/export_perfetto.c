/* SPDX-License-Identifier: MIT */
/*
 * Profiles of Perfetto: a trace with a PerfSample for each sample, whose stack is interned with its
 * frames and modules, and a slice for each wait on its thread's track, whatever time is asked for.
 * Counts of samples are added up in them, as a counter of perf. Times are nanoseconds since
 * the recording began.
 *
 * A module is mapped at 0, so that addresses are those that files state. A gathered wait has no
 * beginning of its own: a slice begins where the one before it on its track has ended, at the
 * earliest, and says how long was waited. The format has no place for cgroups and columns.
 */
#include <stdlib.h>
#include <string.h>

#include "host/events/perfetto_packet.h"
#include "host/exchange/frame_stacks.h"
#include "safe/base/error.h"

/* profiling/profile_common.proto: Mapping */
enum { MAPPING_BUILD_ID = 2, MAPPING_END = 5, MAPPING_PATH_STRING_IDS = 7 };

/* profiling/profile_common.proto: Frame */
enum {
	FRAME_FUNCTION_NAME_ID = 2,
	FRAME_MAPPING_ID = 3,
	FRAME_REL_PC = 4,
	FRAME_SOURCE_PATH_IID = 5,
	FRAME_LINE_NUMBER = 6
};

/* profiling/profile_common.proto: Callstack */
enum { CALLSTACK_FRAME_IDS = 2 };

/* The mapping of what is in no module. */
#define NOWHERE 1

/* A thread of the profile. */
struct thread {
	uint64_t uuid;  /* of its track; 0: not described yet */
	uint64_t ended; /* ns, of its last wait */
};

struct perfetto {
	struct fathom_trace_writer w;
	struct fathom_perfetto_sequence packets;
	struct fathom_report_rows rows;
	struct fathom_frame_stacks stacks;
	struct thread *threads;          /* by row */
	struct fathom_key_map processes; /* uuids of tracks by pid */
	struct fathom_name_table texts;
	struct fathom_key_map known; /* entries that were written, by table and iid */
	struct fathom_bytes_array name;
	struct {
		FATHOM_ARRAY_OF(struct fathom_perfetto_number);
	} frames;          /* of the stack that is written */
	uint32_t n_tracks; /* the last uuid */
	uint64_t counted;  /* weight of all samples so far */
	uint64_t ns;       /* of the sample that is written */
};

static void put_packet(struct perfetto *p, struct fathom_perfetto_packet packet)
{
	packet.ns = p->ns;
	fathom_perfetto_put(&p->packets, packet);
	fathom_writer_pass_on(&p->w);
}

/* Returns whether entry @iid of @table has still to be written; it counts as written then. */
static bool is_new(struct perfetto *p, enum fathom_perfetto_table table, uint64_t iid)
{
	uint32_t *known = fathom_key_map_at(&p->known, (uint64_t)table << 40 | iid);

	p->w.no_memory |= !known;
	if (!known || *known != FATHOM_KEY_NEW)
		return false;
	*known = 0;
	return true;
}

/* Returns the iid in @table of @text. */
static uint64_t text_iid(struct perfetto *p, enum fathom_perfetto_table table, const char *text)
{
	const uint32_t number = fathom_name_table_add(&p->texts, text);
	struct fathom_perfetto_entry entry = { .table = table, .iid = (uint64_t)number + 1 };

	p->w.no_memory |= number == FATHOM_KEY_NEW;
	if (!p->w.no_memory && is_new(p, table, entry.iid)) {
		entry.bytes = fathom_perfetto_clean(&p->packets, text);
		entry.size = strlen(entry.bytes);
		put_packet(p, (struct fathom_perfetto_packet){ .entry = &entry });
	}
	return entry.iid;
}

/* Writes a mapping of @path, and of @build_id unless it is 0. */
static void put_mapping(struct perfetto *p, uint64_t iid, const char *path, uint64_t build_id)
{
	/* Readers put a slash before each part. */
	const uint64_t text = text_iid(p, FATHOM_PERFETTO_MAPPING_PATHS, path + (*path == '/'));
	const struct fathom_perfetto_number numbers[] = { { MAPPING_END, INT64_MAX },
							  { MAPPING_PATH_STRING_IDS, text },
							  { MAPPING_BUILD_ID, build_id } };
	const struct fathom_perfetto_entry entry = { .table = FATHOM_PERFETTO_MAPPINGS,
						     .iid = iid,
						     .numbers = numbers,
						     .n = build_id ? 3 : 2 };

	put_packet(p, (struct fathom_perfetto_packet){ .entry = &entry });
}

/* Returns the iid of the mapping of the module of @l, which may be NULL. */
static uint64_t mapping_iid(struct perfetto *p, const struct fathom_profile_location *l)
{
	const struct fathom_profile_module *m;
	struct fathom_perfetto_entry entry = { .table = FATHOM_PERFETTO_BUILD_IDS };

	if (!l || l->module == UINT32_MAX) {
		if (is_new(p, FATHOM_PERFETTO_MAPPINGS, NOWHERE))
			put_mapping(p, NOWHERE, "[unknown]", 0);
		return NOWHERE;
	}
	m = &p->rows.profile->modules[l->module];
	entry.iid = (uint64_t)l->module + NOWHERE + 1;
	if (!is_new(p, FATHOM_PERFETTO_MAPPINGS, entry.iid))
		return entry.iid;
	entry.bytes = m->build_id;
	entry.size = m->build_id_size;
	if (m->build_id_size)
		put_packet(p, (struct fathom_perfetto_packet){ .entry = &entry });
	put_mapping(p, entry.iid, m->path, m->build_id_size ? entry.iid : 0);
	return entry.iid;
}

/* Returns the iid of @frame. */
static uint64_t frame_iid(struct perfetto *p, uint32_t frame)
{
	const struct fathom_frame_facts f = fathom_frame_facts_of(&p->rows, frame);
	struct fathom_perfetto_number numbers[5];
	struct fathom_perfetto_entry entry = { .table = FATHOM_PERFETTO_FRAMES,
					       .iid = (uint64_t)frame + 1,
					       .numbers = numbers,
					       .n = 3 };

	if (!is_new(p, FATHOM_PERFETTO_FRAMES, entry.iid))
		return entry.iid;
	p->name.n = 0;
	p->w.no_memory |= !fathom_frame_spell(&p->name, f.row);
	if (p->w.no_memory)
		return entry.iid;
	numbers[0] = (struct fathom_perfetto_number){
		FRAME_FUNCTION_NAME_ID, text_iid(p, FATHOM_PERFETTO_FUNCTION_NAMES, p->name.items)
	};
	numbers[1] =
		(struct fathom_perfetto_number){ FRAME_MAPPING_ID, mapping_iid(p, f.location) };
	numbers[2] = (struct fathom_perfetto_number){ FRAME_REL_PC,
						      f.location ? fathom_pc_lookup(f.location->pc)
								 : 0 };
	if (f.debug && f.debug->file)
		numbers[entry.n++] =
			(struct fathom_perfetto_number){ FRAME_SOURCE_PATH_IID,
							 text_iid(p, FATHOM_PERFETTO_SOURCE_PATHS,
								  f.debug->file) };
	if (f.debug && f.debug->line)
		numbers[entry.n++] =
			(struct fathom_perfetto_number){ FRAME_LINE_NUMBER, f.debug->line };
	put_packet(p, (struct fathom_perfetto_packet){ .entry = &entry });
	return entry.iid;
}

/* Writes stack @i, the outermost frame first. */
static void put_stack(struct perfetto *p, uint32_t i)
{
	struct fathom_perfetto_entry entry = { .table = FATHOM_PERFETTO_CALLSTACKS, .iid = i };

	p->frames.n = 0;
	for (uint32_t at = i; at && !p->w.no_memory; at = p->stacks.items[at].caller) {
		const struct fathom_perfetto_number number = {
			CALLSTACK_FRAME_IDS, frame_iid(p, p->stacks.items[at].frame)
		};

		p->w.no_memory |= !fathom_array_push(&p->frames, number);
	}
	for (size_t k = 0; k < p->frames.n / 2; k++) {
		const struct fathom_perfetto_number other = p->frames.items[k];

		p->frames.items[k] = p->frames.items[p->frames.n - 1 - k];
		p->frames.items[p->frames.n - 1 - k] = other;
	}
	entry.numbers = p->frames.items;
	entry.n = p->frames.n;
	put_packet(p, (struct fathom_perfetto_packet){ .entry = &entry });
}

/* Describes the process of thread @t of the profile, unless it is known; returns its uuid. */
static uint64_t process_of(struct perfetto *p, const struct fathom_profile_thread *t)
{
	uint32_t *uuid = fathom_key_map_at(&p->processes, (uint32_t)t->pid);
	struct fathom_perfetto_track track = { .pid = t->pid };

	p->w.no_memory |= !uuid;
	if (!uuid)
		return 1;
	if (*uuid != FATHOM_KEY_NEW)
		return *uuid;
	*uuid = ++p->n_tracks;
	track.uuid = *uuid;
	track.name = fathom_perfetto_clean(&p->packets, t->process);
	put_packet(p, (struct fathom_perfetto_packet){ .track = &track });
	return track.uuid;
}

/* Describes @thread, which is @row and thread @t of the profile, unless it is known. */
static void put_thread(struct perfetto *p, struct thread *thread,
		       const struct fathom_report_row *row, const struct fathom_profile_thread *t)
{
	struct fathom_perfetto_track track = { .pid = t->pid, .tid = t->tid };

	if (thread->uuid)
		return;
	track.process = process_of(p, t);
	track.uuid = thread->uuid = ++p->n_tracks;
	track.name = fathom_perfetto_clean(&p->packets, row->name);
	put_packet(p, (struct fathom_perfetto_packet){ .track = &track });
}

/* Writes the wait @s of @thread as a slice. */
static void put_wait(struct perfetto *p, struct thread *thread,
		     const struct fathom_profile_sample *s)
{
	const uint64_t begin = s->ns > s->weight ? s->ns - s->weight : 0;
	const struct fathom_perfetto_event event = { .type = FATHOM_PERFETTO_SLICE_BEGIN,
						     .track = thread->uuid,
						     .iid = text_iid(p, FATHOM_PERFETTO_EVENT_NAMES,
								     fathom_export_reason(
									     p->rows.profile, s)),
						     .label = "waited_ns",
						     .number = s->weight };
	const struct fathom_perfetto_event end = { .type = FATHOM_PERFETTO_SLICE_END,
						   .track = thread->uuid };

	p->ns = begin > thread->ended ? begin : thread->ended;
	put_packet(p, (struct fathom_perfetto_packet){ .event = &event });
	p->ns = s->ns > p->ns ? s->ns : p->ns;
	put_packet(p, (struct fathom_perfetto_packet){ .event = &end });
	thread->ended = p->ns;
}

/* Writes the sample @s, whose stack is @stack. */
static void put_sample(struct perfetto *p, const struct fathom_profile_sample *s, uint32_t stack)
{
	const struct fathom_profile_thread *t = &p->rows.profile->threads[s->thread];
	const struct fathom_perfetto_sample sample = {
		.pid = t->pid, .tid = t->tid, .callstack = stack, .counted = p->counted += s->weight
	};

	if (is_new(p, FATHOM_PERFETTO_CALLSTACKS, stack))
		put_stack(p, stack);
	put_packet(p, (struct fathom_perfetto_packet){ .sample = &sample });
}

/* Takes a sample. Returns 1 to end. */
static int take_sample(void *data, const struct fathom_profile_sample *s)
{
	struct perfetto *p = data;
	const struct fathom_report_options *o = p->rows.options;
	const bool is_wait = fathom_profile_is_wait(s->part);
	struct fathom_report_leaf leaf;
	struct thread *thread;
	uint32_t stack;

	if (!fathom_report_is_within(o, s->ns) || (!is_wait && !fathom_report_is_asked(o, s->part)))
		return 0;
	p->stacks.is_cancelled |= !fathom_keeps_pace(&p->stacks.pace);
	fathom_report_leaf_of(&p->rows, s, &leaf);
	stack = fathom_frame_stacks_of(&p->stacks, &leaf);
	thread = &p->threads[leaf.group];
	p->ns = s->ns;
	if (stack) {
		put_thread(p, thread, &p->rows.items[leaf.group],
			   &p->rows.profile->threads[s->thread]);
		if (fathom_report_is_asked(o, s->part))
			put_sample(p, s, stack);
		if (is_wait)
			put_wait(p, thread, s);
	}
	return p->w.no_memory || p->w.has_failed || fathom_frame_stacks_failed(&p->stacks);
}

static fathom_err write_file(void *data, struct fathom_errinfo *reterr)
{
	struct perfetto *p = data;
	const struct fathom_profile_info *info = &p->rows.profile->info;
	const uint32_t time = p->rows.options->time;
	const char *event = time == FATHOM_REPORT_WAITING ? "waiting"
			    : time                        ? "wall"
			    : *info->event                ? info->event
							  : "weight";
	const struct fathom_perfetto_sample lost = { .lost = info->lost };
	struct fathom_perfetto_timebase timebase = { .frequency = info->frequency };

	p->threads = calloc(p->rows.n + 1, sizeof *p->threads);
	if (!p->threads)
		return fathom_fail_memory(reterr);
	timebase.event = fathom_perfetto_clean(&p->packets, event);
	put_packet(p, (struct fathom_perfetto_packet){ .timebase = &timebase });
	FATHOM_TRY(fathom_profile_each_sample(p->rows.profile, take_sample, p, reterr));
	p->ns = info->duration_ns;
	if (info->lost)
		put_packet(p, (struct fathom_perfetto_packet){ .sample = &lost });
	return fathom_frame_stacks_end(&p->stacks, reterr);
}

fathom_err fathom_export_perfetto(const struct fathom_export *e, struct fathom_errinfo *reterr)
{
	struct perfetto p = { .packets = { .w = &p.w } };
	const fathom_err err =
		fathom_export_threads(e, &p.w, &p.rows, &p.stacks, write_file, &p, reterr);

	fathom_perfetto_deinit(&p.packets);
	fathom_key_map_deinit(&p.processes);
	fathom_key_map_deinit(&p.known);
	fathom_name_table_deinit(&p.texts);
	fathom_array_free(&p.name);
	fathom_array_free(&p.frames);
	free(p.threads);
	return err;
}
