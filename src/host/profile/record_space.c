/* SPDX-License-Identifier: MIT */
#include "host/profile/record_space.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fathom/symbolize.h"
#include "host/base/clock.h"
#include "host/base/hash.h"
#include "host/base/path.h"
#include "host/file/file.h"
#include "host/file/maps.h"
#include "host/file/object.h"
#include "host/module/module.h"
#include "host/profile/perf_registers.h"
#include "host/profile/record_scripts.h"
#include "host/profile/samples_format.h"
#include "host/stack/capture.h"
#include "host/symbolize/answers.h"
#include "safe/base/pc.h"

/* The most frames of a stack; of longer ones the innermost are kept. */
#define MAX_FRAMES 4096

/* Bytes of a page, of which maps consist. */
#define PAGE UINT64_C(4096)

/* The most maps of code; the kernel permits a process some less (vm.max_map_count). */
#define MAX_MAPS 65536

/* Milliseconds for a thread to stop. */
#define DEADLINE_MS 100

/* How often code that nothing names is asked for again, in ns: JIT compilers write names late. */
#define ASK_AGAIN 100000000

/*
 * The most of the time that comparing maps may take, as one part of so many: of a process with
 * thousands of threads they are long. For a view that is older than CHECK_STALE ns, it may be more;
 * of threads that run, too, as few do so at a time.
 */
#define CHECK_SHARE      20
#define CHECK_STALE      10000000
#define CHECK_MOST_SHARE 5

/* The same where the kernel tells of each mapping, within a round. */
#define CHECK_WATCHED_SHARE 100

/* Maps that are equal to those of so many ns ago, and some more, have not changed meanwhile. */
#define MOST_CHECKED 30000000

/* Bytes that must be equal in the copy of a stack and in memory before more is read from there. */
#define EQUAL 256

/* The module of code that is of none. */
static const char unknown[] = "[memory]";

/* Bytes that are read beyond a copy: first few, then many. */
static const size_t beyond[] = { (size_t)1 << 16, (size_t)1 << 20 };

struct fathom_record_space {
	struct fathom *session;
	struct fathom_target *target;   /* NULL: not opened */
	struct fathom_view *view;       /* NULL: none */
	struct fathom_walker *walker;   /* of the view */
	uint64_t read;                  /* when its code was read, or before; 0: it was not */
	struct fathom_capture *capture; /* of the view, once it was asked for */
	int32_t pid;
	uint32_t users;
	bool is_past;      /* the process is of a file: its maps only are looked at */
	bool is_live;      /* of the target: the process, not its maps */
	bool has_all_maps; /* it was watched since exec() */
	int64_t used;      /* when it was asked for last */
	int64_t seen;      /* when the view began */
	int64_t looked;    /* when it was complete */
	int64_t checked;   /* when it was compared with the maps */
	bool is_old;       /* by then it was not equal to them */
	int64_t check_ns;  /* processor time that it took */
	int64_t useless;   /* when another view has not helped a stack to its end */
	int64_t asked;     /* when its JIT code was found unchanged, or it could not be opened */
	fathom_record_jit_fn find_jit; /* of a process of a file; NULL: nothing does */
	void *jit_data;                /* of find_jit */
	bool has_jit;                  /* some of its locations are of JIT code */
	uint64_t mapped;               /* when code was last mapped */
	bool has_more_maps;            /* than the target, of maps, was opened with */
	struct {
		FATHOM_ARRAY_OF(struct fathom_record_map);
	} maps;                               /* since exec() */
	struct fathom_key_map places;         /* location by pc, kind and trust, true of the view */
	struct fathom_record_scripts scripts; /* likewise */
	struct fathom_walk_frames frames;     /* scratch */
	uint8_t *outer;                       /* scratch: of a stack, what is beyond its copy */
};

struct fathom_record_space *fathom_record_space_create(struct fathom *session, int32_t pid,
						       bool has_all_maps)
{
	struct fathom_record_space *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->session = session;
	s->pid = pid;
	s->has_all_maps = has_all_maps;
	s->users = 1;
	return s;
}

void fathom_record_space_set_past(struct fathom_record_space *s)
{
	s->is_past = true;
}

void fathom_record_space_set_jit(struct fathom_record_space *s, fathom_record_jit_fn find,
				 void *data)
{
	s->find_jit = find;
	s->jit_data = data;
}

struct fathom_record_space *fathom_record_space_share(struct fathom_record_space *s)
{
	s->users++;
	return s;
}

bool fathom_record_space_is_shared(const struct fathom_record_space *s)
{
	return s->users > 1;
}

/* Forgets what is true of the view only. */
static void end_view(struct fathom_record_space *s)
{
	fathom_capture_destroy(s->capture);
	fathom_walker_destroy(s->walker);
	fathom_view_end(s->view);
	fathom_key_map_deinit(&s->places);
	fathom_record_scripts_end(&s->scripts);
	s->capture = NULL;
	s->walker = NULL;
	s->view = NULL;
	s->places = (struct fathom_key_map){ 0 };
	s->has_jit = false;
}

/* Returns how many bytes @m counts for. */
static size_t size_of(const struct fathom_record_map *m)
{
	return sizeof *m + strlen(m->path) + 1;
}

static void drop_map(struct fathom_record_space *s, const struct fathom_record_map *m)
{
	if (s->is_past)
		fathom_memory_uncount(&s->session->memory, size_of(m));
	free(m->path);
}

void fathom_record_space_drop(struct fathom_record_space *s)
{
	if (!s || --s->users)
		return;
	end_view(s);
	fathom_target_release(s->target);
	for (size_t i = 0; i < s->maps.n; i++)
		drop_map(s, &s->maps.items[i]);
	fathom_array_free(&s->maps);
	fathom_array_free(&s->frames);
	free(s->outer);
	free(s);
}

/*
 * Appends a copy of @m. False without memory; of a file, which may state any number of maps, also
 * if the budget is used up.
 */
static bool add_map(struct fathom_record_space *s, struct fathom_record_map m)
{
	if (s->is_past && !fathom_memory_fits(&s->session->memory, size_of(&m)))
		return false;
	m.path = strdup(m.path);
	if (m.path && fathom_array_push(&s->maps, m)) {
		if (s->is_past)
			fathom_memory_count(&s->session->memory, size_of(&m));
		return true;
	}
	free(m.path);
	return false;
}

struct fathom_record_space *fathom_record_space_split(const struct fathom_record_space *s,
						      int32_t pid)
{
	struct fathom_record_space *split =
		fathom_record_space_create(s->session, pid, s->has_all_maps);

	/* All its maps are still to be looked at. */
	if (split)
		split->is_past = split->has_more_maps = s->is_past;
	if (split)
		fathom_record_space_set_jit(split, s->find_jit, s->jit_data);
	for (size_t i = 0; split && i < s->maps.n; i++)
		if (!add_map(split, s->maps.items[i])) {
			fathom_record_space_drop(split);
			return NULL;
		}
	return split;
}

/* Returns whether @image is of the build that @m states, if it states one. */
static bool is_build(const struct fathom_image *image, const struct fathom_record_map *m)
{
	const struct fathom_bytes stated = { m->build_id, m->build_id_size };

	return !stated.size || bytes_equal(fathom_image_build_id(image), stated);
}

/*
 * Cuts @m off where the segment of its file ends. The dynamic linker maps all of a file as code
 * first, and its data over that: maps of data are not reported.
 */
static void cut_to_segment(struct fathom_record_space *s, struct fathom_record_map *m)
{
	struct fathom_memory *memory = &s->session->memory;
	struct fathom_image image;
	struct fathom_segment segment;
	struct fathom_file *file;

	if (m->path[0] != '/' || fathom_file_reach(memory, m->path, NULL) ||
	    fathom_file_map(memory, m->path, &file, NULL))
		return;
	if (fathom_image_init(file->bytes, &image, NULL) || !is_build(&image, m))
		image.phnum = 0;
	for (uint32_t i = 0; i < image.phnum; i++) {
		uint64_t begin;
		uint64_t end;

		if (!fathom_image_segment(&image, i, &segment) || segment.type != PT_LOAD ||
		    !(segment.flags & PF_X))
			continue;
		begin = segment.off & ~(PAGE - 1);
		end = (segment.off + segment.filesz + PAGE - 1) & ~(PAGE - 1);
		if (m->offset >= begin && m->offset < end && m->end - m->start > end - m->offset)
			m->end = m->start + (end - m->offset);
	}
	fathom_file_close(file);
}

/* Returns whether @s has map @m, and nothing else there. */
static bool has_map(const struct fathom_record_space *s, const struct fathom_record_map *m)
{
	for (size_t i = 0; i < s->maps.n; i++) {
		const struct fathom_record_map *old = &s->maps.items[i];

		if (old->start < m->end && m->start < old->end)
			return old->start == m->start && old->end == m->end &&
			       old->offset == m->offset && strcmp(old->path, m->path) == 0 &&
			       old->build_id_size == m->build_id_size &&
			       !memcmp(old->build_id, m->build_id, m->build_id_size);
	}
	return false;
}

/* Adds what @m, which covers a part of @old, leaves of it. False without memory. */
static bool keep_rest(struct fathom_record_space *s, const struct fathom_record_map *old,
		      const struct fathom_record_map *m)
{
	struct fathom_record_map head = *old;
	struct fathom_record_map tail = *old;

	head.end = m->start;
	tail.start = m->end;
	tail.offset += m->end - old->start;
	return (old->start >= m->start || add_map(s, head)) &&
	       (old->end <= m->end || s->maps.n >= MAX_MAPS || add_map(s, tail));
}

/* Removes what @m covers. False without memory. */
static bool cover(struct fathom_record_space *s, const struct fathom_record_map *m)
{
	const size_t n = s->maps.n;
	bool is_kept = true;
	size_t kept = 0;

	/* The rest of some is appended, behind those that are looked at. */
	for (size_t i = 0; i < n; i++) {
		const struct fathom_record_map old = s->maps.items[i];

		if (old.start < m->end && m->start < old.end) {
			/* A process that goes on is looked at itself. */
			is_kept &= !s->is_past || keep_rest(s, &old, m);
			drop_map(s, &old);
		} else {
			s->maps.items[kept++] = old;
		}
	}
	memmove(s->maps.items + kept, s->maps.items + n, (s->maps.n - n) * sizeof *s->maps.items);
	s->maps.n -= n - kept;
	return is_kept;
}

bool fathom_record_space_map(struct fathom_record_space *s, const struct fathom_perf_record *r)
{
	struct fathom_record_map m = { .start = r->map.start,
				       .end = r->map.start + r->map.size,
				       .offset = r->map.offset,
				       .path = (char *)(uintptr_t)r->map.path,
				       .build_id_size = (uint8_t)r->map.build_id.size };

	if (r->map.build_id.size)
		memcpy(m.build_id, r->map.build_id.data, m.build_id_size);
	if (s->is_past && m.start < m.end)
		cut_to_segment(s, &m);
	/* perf states a map of each thread, and maybe again. */
	if (s->is_past && has_map(s, &m))
		return true;
	s->mapped = r->ns;
	s->has_more_maps = true;
	if (s->maps.n && !cover(s, &m))
		return false;
	return m.start >= m.end || s->maps.n >= MAX_MAPS || add_map(s, m);
}

static int compare_maps(const void *a, const void *b)
{
	const struct fathom_mapping_info *s = a;
	const struct fathom_mapping_info *t = b;

	return s->start < t->start ? -1 : s->start > t->start;
}

/* Memory of a process that has ended. */
static size_t read_nothing(void *data, uint64_t address, void *to, size_t size)
{
	(void)data;
	(void)address;
	(void)to;
	(void)size;
	return 0;
}

/* Opens the maps that were reported, in place of the process. */
static fathom_err open_maps(struct fathom_record_space *s)
{
	struct fathom_address_space space = { .size = sizeof space, .read = read_nothing };
	/* Not each map of a file has a build-id: then its file is the one at its path. */
	const struct fathom_target_options o = {
		.size = sizeof o, .flags = s->is_past ? FATHOM_TARGET_UNVERIFIED_FILES : 0
	};
	struct fathom_mapping_info *maps = calloc(s->maps.n + 1, sizeof *maps);
	fathom_err err;

	if (!maps)
		return FATHOM_E_MEMORY;
	for (size_t i = 0; i < s->maps.n; i++) {
		const struct fathom_record_map *m = &s->maps.items[i];

		maps[i].start = m->start;
		maps[i].end = m->end;
		maps[i].offset = m->offset;
		maps[i].path = m->path;
		maps[i].build_id = m->build_id_size ? m->build_id : NULL;
		maps[i].build_id_size = m->build_id_size;
		maps[i].rights = PF_R | PF_X;
	}
	qsort(maps, s->maps.n, sizeof *maps, compare_maps);
	space.mappings = maps;
	space.n_mappings = s->maps.n;
	space.pid = s->pid;
	err = s->maps.n ? fathom_target_open_reader(s->session, &space, &o, &s->target, NULL)
			: FATHOM_E_NOT_FOUND;
	free(maps);
	return err;
}

/* Begins a view of the target, with a walker. */
static fathom_err begin_view(struct fathom_record_space *s)
{
	fathom_err err;

	s->seen = s->asked = fathom_now_ns();
	s->is_old = false;
	err = fathom_view_begin(s->target, FATHOM_VIEW_MEMORY, &s->view, NULL);
	s->looked = fathom_now_ns();
	if (err) {
		s->view = NULL;
		return err;
	}
	err = fathom_view_begin_code(s->view);
	err = err ? err : fathom_walker_create(s->view, &s->walker, NULL);
	/* Chains are of the process as it is: of maps alone they cannot be read. */
	if (!err && s->is_live)
		err = fathom_record_scripts_begin(&s->scripts, s->view);
	s->read = 0;
	if (err)
		end_view(s);
	return err;
}

static void close_space(struct fathom_record_space *s)
{
	end_view(s);
	fathom_target_release(s->target);
	s->target = NULL;
	s->is_live = false;
}

bool fathom_record_space_opened(const struct fathom_record_space *s)
{
	return s->is_live || (s->is_past && s->target);
}

int64_t fathom_record_space_used(const struct fathom_record_space *s)
{
	return s->used;
}

void fathom_record_space_close(struct fathom_record_space *s)
{
	close_space(s);
	s->asked = 0;
	s->has_more_maps |= s->is_past;
}

/* Opens the maps, and looks at them. */
static fathom_err look_at_maps(struct fathom_record_space *s)
{
	fathom_err err = open_maps(s);

	s->has_more_maps = false;
	err = err ? err : begin_view(s);
	if (err)
		close_space(s);
	return err;
}

/*
 * Returns whether the view is of the program that the maps are of: the process may run another one
 * by now. Its first map is the program, the second one the dynamic linker.
 */
static bool is_same_program(const struct fathom_record_space *s)
{
	for (size_t i = 0; s->has_all_maps && i < s->maps.n && i < 2; i++)
		if (!fathom_view_mapping_end(s->view, s->maps.items[i].start))
			return false;
	return true;
}

/* Returns the next mapping of code of @maps from number *@i on; NULL: there is none. */
static const struct fathom_mapping *next_code(const struct fathom_maps *maps, size_t *i)
{
	while (*i < maps->n && !maps->items[*i].executable)
		++*i;
	return *i < maps->n ? &maps->items[(*i)++] : NULL;
}

/* Returns how long the maps are not compared again, in ns. */
static int64_t check_pause(const struct fathom_record_space *s)
{
	const int64_t cheap = CHECK_SHARE * s->check_ns;
	const int64_t dear = CHECK_MOST_SHARE * s->check_ns;

	return cheap < CHECK_STALE ? cheap : dear > CHECK_STALE ? dear : CHECK_STALE;
}

static bool is_same_mapping(const struct fathom_mapping *a, const struct fathom_mapping *b)
{
	return a->start == b->start && a->end == b->end && a->off == b->off &&
	       fathom_mapping_same_file(a, b);
}

/* Returns whether @a and @b have the same code. */
static bool is_same_code(const struct fathom_maps *a, const struct fathom_maps *b)
{
	size_t i = 0;
	size_t k = 0;

	for (;;) {
		const struct fathom_mapping *x = next_code(a, &i);
		const struct fathom_mapping *y = next_code(b, &k);

		if (!x || !y)
			return x == y;
		if (!is_same_mapping(x, y))
			return false;
	}
}

/* Returns whether code in both is the same, though one may have been cut, or have grown. */
static bool is_same_place(const struct fathom_mapping *a, const struct fathom_mapping *b)
{
	return fathom_mapping_same_file(a, b) &&
	       (!a->inode || a->start - a->off == b->start - b->off);
}

/* Returns whether all frames of the walk are in mappings that @a and @b both have. */
static bool are_in_both(const struct fathom_record_space *s, const struct fathom_maps *a,
			const struct fathom_maps *b)
{
	for (size_t i = 0; i < s->frames.n; i++) {
		const struct fathom_walk_frame *f = &s->frames.items[i];
		const uint64_t pc = fathom_pc_subtract(f->pc, f->kind);
		const size_t x = fathom_maps_at(a, pc);
		const size_t y = fathom_maps_at(b, pc);

		if (x >= a->n || y >= b->n || !is_same_place(&a->items[x], &b->items[y]))
			return false;
	}
	return true;
}

/*
 * Returns whether the frames of the walk, whose stack was copied a moment ago, are of code that the
 * view had then, too. The process maps other code at any time: its maps are compared with those of
 * the view, unless they are so long that there is no time for it.
 */
static bool are_of_view(struct fathom_record_space *s, const struct fathom_record_copies *c)
{
	const int64_t before = s->checked > s->seen ? s->checked : s->seen;
	const int64_t pause = c->is_watched   ? CHECK_WATCHED_SHARE * s->check_ns
			      : c->is_running ? CHECK_MOST_SHARE * s->check_ns
					      : check_pause(s);
	struct fathom_maps maps;
	struct fathom_live live;
	bool is_certain;
	char path[32];
	int64_t used;

	if (!s->is_live || (!c->is_again && fathom_now_ns() - s->checked < pause))
		return true;
	used = fathom_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	(void)snprintf(path, sizeof path, "/proc/%d/maps", (int)s->pid);
	if (!fathom_view_live(s->view, &live) || fathom_maps_read(path, &maps, NULL))
		return true;
	s->is_old = !is_same_code(live.maps, &maps);
	/* In a long time a mapping may also have gone, and come again. */
	is_certain = s->is_old ? are_in_both(s, live.maps, &maps)
			       : fathom_now_ns() - before < MOST_CHECKED + 2 * pause;
	fathom_maps_deinit(&maps);
	s->check_ns = fathom_clock_ns(CLOCK_THREAD_CPUTIME_ID) - used;
	s->checked = fathom_now_ns();
	return is_certain;
}

/* Opens the target, and looks at it. */
static fathom_err open_space(struct fathom_record_space *s)
{
	fathom_err err = fathom_target_open_process(s->session, s->pid, NULL, &s->target, NULL);

	s->is_live = !err;
	err = err ? err : begin_view(s);
	if ((!err && is_same_program(s)) || err == FATHOM_E_MEMORY)
		return err;
	close_space(s);
	return look_at_maps(s);
}

/* Looks at the process anew; where it has ended, what was seen of it stays, or its maps serve. */
static fathom_err look_again(struct fathom_record_space *s)
{
	const struct fathom_record_space old = *s;
	struct fathom_key_map places = s->places;
	struct fathom_record_scripts scripts = s->scripts;
	fathom_err err;

	s->places = (struct fathom_key_map){ 0 };
	s->scripts = (struct fathom_record_scripts){ .interpreters = NULL };
	s->has_jit = false;
	s->walker = NULL;
	s->capture = NULL;
	err = begin_view(s);
	if (!err) {
		fathom_record_scripts_end(&scripts);
		fathom_capture_destroy(old.capture);
		fathom_walker_destroy(old.walker);
		fathom_view_end(old.view);
		fathom_key_map_deinit(&places);
		if (is_same_program(s))
			return FATHOM_OK;
		close_space(s);
		return look_at_maps(s);
	}
	s->view = old.view;
	s->walker = old.walker;
	s->capture = old.capture;
	s->places = old.places;
	s->scripts = scripts;
	s->has_jit = old.has_jit;
	if (err == FATHOM_E_MEMORY || !s->has_all_maps)
		return err == FATHOM_E_MEMORY ? err : FATHOM_OK;
	close_space(s);
	return look_at_maps(s);
}

/* Sees to it that the view is not older than what is known to have changed. */
static fathom_err keep_up(struct fathom_record_space *s)
{
	const int64_t now = fathom_now_ns();

	s->used = now;
	if (s->is_past) {
		if (!s->has_more_maps)
			return s->target ? FATHOM_OK : FATHOM_E_NOT_FOUND;
		close_space(s);
		return look_at_maps(s);
	}
	if (!s->target && now - s->asked < ASK_AGAIN && !s->has_more_maps)
		return FATHOM_E_NOT_FOUND;
	if (!s->target) {
		s->asked = now;
		return open_space(s);
	}
	if (!s->is_live && s->has_more_maps) {
		close_space(s);
		return look_at_maps(s);
	}
	if (!s->is_live)
		return FATHOM_OK;
	if (s->is_old || s->mapped > (uint64_t)s->seen)
		return look_again(s);
	if (!s->has_jit || now - s->asked < ASK_AGAIN)
		return FATHOM_OK;
	s->asked = now;
	return fathom_view_jit_stayed(s->view) ? FATHOM_OK : look_again(s);
}

/* Returns what kind of module the code at @place, no JIT code, is in. */
static uint8_t kind_of(const struct fathom_place *place)
{
	return place->holder->name && place->holder->name[0] == '['
		       ? (uint8_t)FATHOM_PROFILE_MODULE_VDSO
		       : (uint8_t)FATHOM_PROFILE_MODULE_FILE;
}

/* Writes the symbol that the view has for the code at @f now. FATHOM_TABLE_NONE: there is none. */
static fathom_err name_now(struct fathom_record_space *s, const struct fathom_walk_frame *f,
			   struct fathom_stack_table *table, uint32_t *ret)
{
	const struct fathom_batch_options o = { .kinds = &f->kind };
	const struct fathom_answer *a;
	struct fathom_answers *answers;
	fathom_err err = fathom_view_answer(s->view, &o, &f->pc, 1, &answers, NULL);

	*ret = FATHOM_TABLE_NONE;
	if (err)
		return err == FATHOM_E_MEMORY ? err : FATHOM_OK;
	a = fathom_answers_get(answers, 0);
	if (a->symbol) {
		const struct fathom_frame *line = a->frame && !a->frame->outer ? a->frame : NULL;
		const struct fathom_profile_symbol symbol = {
			.name = { a->symbol, a->symbol_size },
			.linkage_name = { a->linkage_name, a->linkage_size },
			.file = { line ? line->file : NULL,
				  line && line->file ? line->file_size : 0 },
			.line = line ? line->line : 0,
			.source = a->source,
		};

		*ret = fathom_table_symbol(table, &symbol);
		err = *ret == FATHOM_TABLE_NONE ? FATHOM_E_MEMORY : FATHOM_OK;
	}
	fathom_answers_free(answers);
	return err;
}

/* Returns the map that held @pc when the last sample was taken; NULL: none was reported. */
static const struct fathom_record_map *map_at(const struct fathom_record_space *s, uint64_t pc)
{
	for (size_t i = 0; i < s->maps.n; i++)
		if (pc - s->maps.items[i].start < s->maps.items[i].end - s->maps.items[i].start)
			return &s->maps.items[i];
	return NULL;
}

/* Returns whether @path, of a map, is of code that a file has, or the kernel for all programs. */
static bool is_named(const char *path)
{
	static const char *const anonymous[] = { "//", "/memfd:", "/dev/zero", "/SYSV",
						 "/anon_hugepage" };

	for (size_t i = 0; i < sizeof anonymous / sizeof *anonymous; i++)
		if (strncmp(path, anonymous[i], strlen(anonymous[i])) == 0)
			return false;
	return path[0] == '/' || strcmp(path, "[vdso]") == 0 || strcmp(path, "[vsyscall]") == 0;
}

/* Returns the module at @pc of a process of a file, as its map states it; else that of no name. */
static struct fathom_profile_module stated_module(const struct fathom_record_space *s, uint64_t pc)
{
	const struct fathom_record_map *map = s->is_past ? map_at(s, pc) : NULL;
	struct fathom_profile_module m = { .path = unknown, .kind = FATHOM_PROFILE_MODULE_MEMORY };

	if (map && is_named(map->path)) {
		m.path = map->path;
		m.build_id = map->build_id_size ? map->build_id : NULL;
		m.build_id_size = map->build_id_size;
	}
	return m;
}

/* Returns the module of the JIT code of @s, whose name is in @text. */
static struct fathom_profile_module jit_module(const struct fathom_record_space *s, char text[32])
{
	(void)snprintf(text, 32, FATHOM_PROFILE_JIT "%d]", (int)s->pid);
	return (struct fathom_profile_module){ .path = text, .kind = FATHOM_PROFILE_MODULE_JIT };
}

/* Finds the location of @f; *@ret_is_new: it is code that nothing names yet. */
static fathom_err find_location(struct fathom_record_space *s, const struct fathom_walk_frame *f,
				struct fathom_stack_table *table, uint32_t *ret)
{
	struct fathom_profile_location l = { .pc = { .address = f->pc, .kind = f->kind },
					     .module = UINT32_MAX,
					     .trust = f->trust,
					     .is_signal_return = f->is_signal_return };
	const uint64_t code = fathom_pc_subtract(f->pc, f->kind);
	struct fathom_profile_module m = stated_module(s, code);
	uint32_t symbol = FATHOM_TABLE_NONE;
	struct fathom_place place;
	char jit[32];

	if (fathom_view_locate_code(s->view, code, &place))
		place = (struct fathom_place){ 0 };
	if (place.holder && place.holder->module && !place.source) {
		m.kind = kind_of(&place);
		m.path = place.holder->name ? place.holder->name : "";
		m.build_id = place.holder->build_id.data;
		m.build_id_size = (uint32_t)place.holder->build_id.size;
		if (!m.build_id_size && place.holder->module->main) {
			const struct fathom_file_id *id = &place.holder->module->main->file->id;

			m.file_size = id->size;
			m.changed = (uint64_t)id->mtime_ns;
		}
		l.pc.address -= place.bias;
	} else if (place.source || (place.is_code && m.path == unknown)) {
		m = jit_module(s, jit);
		s->has_jit = true;
	}
	if (m.kind != FATHOM_PROFILE_MODULE_FILE)
		FATHOM_TRY(name_now(s, f, table, &symbol));
	l.module = fathom_table_module(table, &m);
	*ret = fathom_table_location(table, &l, symbol);
	if (l.module == FATHOM_TABLE_NONE || *ret == FATHOM_TABLE_NONE)
		return FATHOM_E_MEMORY;
	return m.kind == FATHOM_PROFILE_MODULE_FILE
		       ? fathom_record_scripts_note(&s->scripts, &place, code - place.bias,
						    l.module, *ret)
		       : FATHOM_OK;
}

/*
 * Finds the location of @f in JIT code that had its name when the sample was taken.
 * FATHOM_TABLE_NONE: it is none.
 */
static fathom_err find_jit(struct fathom_record_space *s, const struct fathom_walk_frame *f,
			   struct fathom_stack_table *table, uint32_t *ret)
{
	struct fathom_profile_location l = { .pc = { .address = f->pc, .kind = f->kind },
					     .trust = f->trust,
					     .is_signal_return = f->is_signal_return };
	const uint64_t code = fathom_pc_subtract(f->pc, f->kind);
	struct fathom_profile_symbol symbol;
	struct fathom_profile_module m;
	uint32_t number;
	char text[32];

	*ret = FATHOM_TABLE_NONE;
	/* Code of files has its names from there. */
	if (!s->find_jit || !s->find_jit(s->jit_data, code, &symbol) ||
	    stated_module(s, code).path != unknown)
		return FATHOM_OK;
	m = jit_module(s, text);
	l.module = fathom_table_module(table, &m);
	number = fathom_table_symbol(table, &symbol);
	if (l.module == FATHOM_TABLE_NONE || number == FATHOM_TABLE_NONE)
		return FATHOM_E_MEMORY;
	*ret = fathom_table_location(table, &l, number);
	return *ret == FATHOM_TABLE_NONE ? FATHOM_E_MEMORY : FATHOM_OK;
}

/* Returns the location of @f, from the view's cache if it was seen before. */
static fathom_err location_of(struct fathom_record_space *s, const struct fathom_walk_frame *f,
			      struct fathom_stack_table *table, uint32_t *ret)
{
	/* Addresses of programs have at most 57 bits. */
	const uint64_t key = f->pc ^ ((uint64_t)f->trust << 61 | (uint64_t)f->kind << 60 |
				      (uint64_t)f->is_signal_return << 59);
	uint32_t *number;

	FATHOM_TRY(find_jit(s, f, table, ret));
	if (*ret != FATHOM_TABLE_NONE)
		return FATHOM_OK;
	number = fathom_key_map_at(&s->places, key);
	if (!number)
		return FATHOM_E_MEMORY;
	if (*number == FATHOM_KEY_NEW) {
		uint32_t found;

		FATHOM_TRY(find_location(s, f, table, &found));
		*number = found;
	}
	*ret = *number;
	return FATHOM_OK;
}

/* Writes the frames of a walk as nodes, and those of the script that were read with its stack. */
static fathom_err write_frames(struct fathom_record_space *s, struct fathom_stack_table *table,
			       struct fathom_record_stack *ret)
{
	ret->node = 0;
	ret->shape = 0;
	ret->has_runtime = false;
	FATHOM_TRY(fathom_record_scripts_place(&s->scripts, &s->frames));
	for (size_t i = s->frames.n; i-- > 0;) {
		const struct fathom_walk_frame *f = &s->frames.items[i];
		const uint64_t place[] = { f->pc, f->sp };
		uint32_t location;

		FATHOM_TRY(fathom_record_scripts_locate(&s->scripts, i, f, table, &location));
		if (location == FATHOM_TABLE_NONE)
			FATHOM_TRY(location_of(s, f, table, &location));
		ret->node = fathom_table_node(table, ret->node, location);
		if (!ret->node)
			return FATHOM_E_MEMORY;
		if (!fathom_record_scripts_any(&s->scripts))
			continue;
		ret->shape = fathom_hash_bytes(ret->shape, (const char *)place, sizeof place);
		ret->has_runtime |= fathom_record_scripts_executes(&s->scripts, location);
		FATHOM_TRY(fathom_record_scripts_put(&s->scripts, i, f->trust, table, &ret->node));
	}
	ret->has_script = s->scripts.frames.n != 0;
	return FATHOM_OK;
}

/*
 * Reads what is beyond @copy, of a stack, from the process: *@ret is empty unless the end of the
 * copy is still what it was.
 */
static fathom_err read_beyond(struct fathom_record_space *s, const struct fathom_stack_piece *copy,
			      size_t size, struct fathom_stack_piece *ret)
{
	const size_t equal = copy->bytes.size < EQUAL ? (size_t)copy->bytes.size : EQUAL;
	const uint64_t end = copy->avma + copy->bytes.size;
	size_t n;

	*ret = (struct fathom_stack_piece){ .avma = end };
	if (!equal)
		return FATHOM_OK;
	if (!s->outer)
		s->outer = malloc(EQUAL + beyond[sizeof beyond / sizeof *beyond - 1]);
	if (!s->outer)
		return FATHOM_E_MEMORY;
	n = fathom_view_read(s->view, end - equal, s->outer, equal + size);
	if (n > equal && !memcmp(s->outer, copy->bytes.data + copy->bytes.size - equal, equal))
		ret->bytes = (struct fathom_bytes){ s->outer + equal, n - equal };
	return FATHOM_OK;
}

/*
 * Walks from @registers, as they were at @ns, with @copy of the stack and, if the memory of the
 * space @is_own of the thread, what is beyond it as far as needed. Code is read once for all
 * samples that were there before.
 */
static fathom_err walk_copy(struct fathom_record_space *s, const struct fathom_registers *registers,
			    const struct fathom_stack_piece *copy, bool is_own, uint64_t ns,
			    enum fathom_stop *ret_stop)
{
	struct fathom_stack_piece pieces[2] = { *copy };
	struct fathom_walk walk = { .registers = registers,
				    .pieces = pieces,
				    .n_pieces = 1,
				    .is_past = true,
				    .keeps_code = ns <= s->read,
				    .max_frames = MAX_FRAMES,
				    .frames = &s->frames };

	if (!walk.keeps_code)
		s->read = (uint64_t)fathom_now_ns();
	s->frames.n = 0;
	FATHOM_TRY(fathom_walker_run(s->walker, &walk));
	for (size_t i = 0;
	     i < sizeof beyond / sizeof *beyond && is_own && walk.stop == FATHOM_STOP_UNREADABLE;
	     i++) {
		struct fathom_walk longer = walk;

		FATHOM_TRY(read_beyond(s, copy, beyond[i], &pieces[1]));
		if (!pieces[1].bytes.size)
			break;
		longer.n_pieces = 2;
		longer.keeps_code = true;
		longer.outside = 0;
		s->frames.n = 0;
		FATHOM_TRY(fathom_walker_run(s->walker, &longer));
		walk.stop = longer.stop;
	}
	*ret_stop = walk.stop;
	return FATHOM_OK;
}

/* Makes a stack of the pc alone. */
static fathom_err write_pc(const struct fathom_record_space *s,
			   const struct fathom_registers *registers,
			   struct fathom_stack_table *table, struct fathom_record_stack *ret)
{
	const struct fathom_profile_module m = stated_module(s, registers->pc);
	const struct fathom_profile_location l = { .pc = { .address = registers->pc },
						   .module = fathom_table_module(table, &m) };
	const uint32_t location = fathom_table_location(table, &l, FATHOM_TABLE_NONE);

	ret->stop = FATHOM_STOP_UNREADABLE;
	ret->node = location == FATHOM_TABLE_NONE ? 0 : fathom_table_node(table, 0, location);
	return ret->node ? FATHOM_OK : FATHOM_E_MEMORY;
}

/* Returns the length of the file name @name, without that it is deleted. */
static size_t name_length(const char *name)
{
	static const char suffix[] = " (deleted)";
	const size_t n = strlen(name);
	const size_t m = sizeof suffix - 1;

	return n > m && strcmp(name + n - m, suffix) == 0 ? n - m : n;
}

/* Returns whether @then and @now are paths of one name. */
static bool is_same_name(const char *then, const char *now)
{
	const char *a = fathom_path_last_part(then);
	const char *b = fathom_path_last_part(now);

	return name_length(a) == name_length(b) && strncmp(a, b, name_length(a)) == 0;
}

/* Returns whether the view has at @f what was there when the sample was taken. */
static bool is_of_then(const struct fathom_record_space *s, const struct fathom_walk_frame *f)
{
	const uint64_t pc = fathom_pc_subtract(f->pc, f->kind);
	const struct fathom_record_map *m = map_at(s, pc);
	const struct fathom_bytes *id;
	struct fathom_place place;

	if (!m || fathom_view_locate_code(s->view, pc, &place) || !place.holder || place.source)
		return true;
	/* A view of a process that goes on may have the name of one file, and another's id. */
	id = &place.holder->build_id;
	if (m->build_id_size && id->size &&
	    (m->build_id_size != id->size || memcmp(m->build_id, id->data, m->build_id_size) != 0))
		return false;
	return !place.holder->name || is_same_name(m->path, place.holder->name);
}

/*
 * Returns whether all frames are of the code that was there at @ns. The view may be later: by then
 * other code may have been mapped where code was.
 */
static bool are_of_then(const struct fathom_record_space *s, uint64_t ns)
{
	for (size_t i = 0; i < s->frames.n && s->is_live && (uint64_t)s->looked > ns; i++)
		if (!is_of_then(s, &s->frames.items[i]))
			return false;
	return true;
}

/*
 * Returns whether sample @r is of a thread in exec(), which has lost its old memory already: its
 * stack is in the kernel alone.
 */
static bool is_in_exec(const struct fathom_record_space *s, const struct fathom_perf_record *r,
		       uint64_t pc)
{
	if (!s->has_all_maps || !r->sample.n_kernel || r->sample.stack.size)
		return false;
	return !map_at(s, pc);
}

fathom_err fathom_record_space_walk(struct fathom_record_space *s,
				    const struct fathom_perf_record *r,
				    struct fathom_stack_table *table,
				    struct fathom_record_stack *ret)
{
	struct fathom_stack_piece copy = { .bytes = r->sample.stack };
	enum fathom_stop stop = FATHOM_STOP_UNREADABLE;
	struct fathom_registers registers;
	fathom_err err;

	*ret = (struct fathom_record_stack){ .stop = FATHOM_STOP_UNREADABLE };
	/* While exec() makes a program of it, the thread has none. */
	if (!fathom_perf_registers_read(r->sample.registers, r->sample.missing, r->sample.abi,
					&registers) ||
	    (!registers.pc && r->sample.n_kernel)) {
		ret->stop = r->sample.n_kernel ? FATHOM_STOP_ENTRY : FATHOM_STOP_UNREADABLE;
		return FATHOM_OK;
	}
	copy.avma = registers.sp;
	fathom_record_scripts_drop(&s->scripts);
	err = keep_up(s);
	if (err == FATHOM_E_MEMORY)
		return err;
	if (is_in_exec(s, r, registers.pc)) {
		ret->stop = FATHOM_STOP_ENTRY;
		return FATHOM_OK;
	}
	if (err || fathom_walker_machine(s->walker) != registers.machine)
		return write_pc(s, &registers, table, ret);
	FATHOM_TRY(walk_copy(s, &registers, &copy, s->is_live && r->pid == s->pid, r->ns, &stop));
	if (!are_of_then(s, r->ns))
		return write_pc(s, &registers, table, ret);
	ret->stop = (uint8_t)stop;
	return write_frames(s, table, ret);
}

bool fathom_record_space_is_of(const struct fathom_record_space *s, int32_t pid)
{
	return s->pid == pid;
}

struct fathom_view *fathom_record_space_view(struct fathom_record_space *s)
{
	return s->is_live ? s->view : NULL;
}

bool fathom_record_space_has_gone(const struct fathom_record_space *s)
{
	return s->capture && fathom_capture_is_gone(s->capture);
}

bool fathom_record_space_lock(const struct fathom_record_space *s, int32_t tid, uint64_t avma,
			      char to[FATHOM_SCRIPT_LOCK])
{
	const char *name;
	int32_t owner;

	if (!s->is_live || !fathom_record_scripts_lock(&s->scripts, avma, &name, &owner))
		return false;
	/* In another PID namespace it has another number. */
	if (owner == tid || syscall(SYS_tgkill, s->pid, owner, 0))
		owner = 0;
	fathom_interpreters_lock_text(name, owner, to);
	return true;
}

struct fathom_capture *fathom_record_space_capture(struct fathom_record_space *s)
{
	struct fathom_live live;

	if (keep_up(s) || !s->is_live)
		return NULL;
	fathom_record_scripts_drop(&s->scripts);
	if (!s->capture && fathom_view_live(s->view, &live)) {
		const struct fathom_capture_options o = {
			.pid = live.pid,
			.proc = live.proc,
			.memory = &s->view->memory,
			.maps = live.maps,
			.machine = fathom_walker_machine(s->walker),
			.deadline_ms = DEADLINE_MS,
			.read_more = fathom_record_scripts_read,
			.read_more_data = &s->scripts,
		};

		if (fathom_capture_create(&o, &s->capture, NULL))
			s->capture = NULL;
	}
	return s->capture;
}

/* Returns whether another view may help a stack that ended for @stop. */
static bool is_worth_another(const struct fathom_record_space *s, enum fathom_stop stop)
{
	return stop != FATHOM_STOP_ENTRY && s->is_live && fathom_now_ns() - s->useless >= ASK_AGAIN;
}

fathom_err fathom_record_space_walk_copies(struct fathom_record_space *s,
					   const struct fathom_record_copies *copies,
					   struct fathom_stack_table *table,
					   struct fathom_record_stack *ret, uint64_t *ret_outside,
					   bool *ret_again)
{
	struct fathom_walk walk = { .registers = copies->registers,
				    .pieces = copies->pieces,
				    .n_pieces = copies->n,
				    .is_past = true,
				    .max_frames = MAX_FRAMES,
				    .frames = &s->frames };
	bool is_certain;

	if (fathom_walker_machine(s->walker) != copies->registers->machine)
		return write_pc(s, copies->registers, table, ret);
	s->frames.n = 0;
	FATHOM_TRY(fathom_walker_run(s->walker, &walk));
	*ret_outside = walk.outside;
	is_certain = are_of_view(s, copies);
	/* It may have loaded code since, or run another program. */
	if (!walk.outside && (!is_certain || is_worth_another(s, walk.stop))) {
		*ret_again = !copies->is_again;
		if (*ret_again) {
			s->is_old = true;
			return FATHOM_OK;
		}
		s->useless = fathom_now_ns();
	}
	if (!is_certain)
		return write_pc(s, copies->registers, table, ret);
	ret->stop = (uint8_t)walk.stop;
	return write_frames(s, table, ret);
}

bool fathom_record_space_has_new_script(const struct fathom_record_space *s)
{
	return s->scripts.is_new;
}

fathom_err fathom_record_space_locate(struct fathom_record_space *s, uint64_t pc, uint8_t kind,
				      uint8_t trust, struct fathom_stack_table *table,
				      uint32_t *ret)
{
	const struct fathom_walk_frame f = { .pc = pc, .kind = kind, .trust = trust };
	struct fathom_profile_location l = { .pc = { .address = pc, .kind = kind },
					     .trust = trust };
	struct fathom_profile_module m;
	fathom_err err = keep_up(s);

	if (err == FATHOM_E_MEMORY)
		return err;
	if (!err)
		return location_of(s, &f, table, ret);
	FATHOM_TRY(find_jit(s, &f, table, ret));
	if (*ret != FATHOM_TABLE_NONE)
		return FATHOM_OK;
	m = stated_module(s, fathom_pc_subtract(pc, kind));
	l.module = fathom_table_module(table, &m);
	*ret = fathom_table_location(table, &l, FATHOM_TABLE_NONE);
	return *ret == FATHOM_TABLE_NONE ? FATHOM_E_MEMORY : FATHOM_OK;
}

bool fathom_record_space_is_outermost(const struct fathom_record_space *s, uint64_t pc,
				      uint8_t kind)
{
	return s->walker && fathom_walker_is_outermost(s->walker, fathom_pc_subtract(pc, kind));
}
