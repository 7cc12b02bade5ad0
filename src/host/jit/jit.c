/* SPDX-License-Identifier: MIT */
#include "host/jit/jit.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "host/base/array.h"
#include "host/file/file.h"
#include "host/jit/gdb_provider.h"
#include "host/jit/jitdump.h"
#include "host/jit/perf_map.h"
#include "host/jit/registered.h"
#include "host/jit/symbol_file.h"
#include "host/jit/trusted_file.h"
#include "host/module/module.h"
#include "host/symbolize/batch.h"
#include "safe/base/limits.h"
#include "safe/base/sort.h"

/* The identity of a file that was read; all zero: none. */
struct file_key {
	uint64_t device;
	uint64_t inode;
};

struct kept_map {
	struct file_key key;
	struct fathom_perf_map map;
};

struct kept_dump {
	struct file_key key;
	struct fathom_jitdump dump;
};

/* A process may have two perf maps: by the pid in its namespace and in ours. */
#define N_MAPS 2

struct fathom_jit {
	struct fathom_gdb_jit gdb;
	struct fathom_gdb_jit located; /* the same for locators, whose modules stay open */
	struct kept_map map[N_MAPS];
	struct kept_dump dump[FATHOM_MAX_JITDUMPS];
};

void fathom_jit_destroy(struct fathom_jit *jit)
{
	if (!jit)
		return;
	fathom_gdb_jit_deinit(&jit->gdb);
	fathom_gdb_jit_deinit(&jit->located);
	for (int i = 0; i < N_MAPS; i++)
		fathom_perf_map_clear(&jit->map[i].map);
	for (unsigned i = 0; i < FATHOM_MAX_JITDUMPS; i++)
		fathom_jitdump_clear(&jit->dump[i].dump);
	free(jit);
}

/* An address that was looked up, and what the files told of it: 0 if nothing. */
struct asked_code {
	uint64_t avma;
	uint64_t fingerprint;
};

/* Locator of the code of a view. */
struct fathom_jit_locator {
	struct fathom_jit *jit;         /* the view's until it ends */
	struct fathom_gdb_locator *gdb; /* NULL: no lists were read */
	struct fathom_jit_code_frames frames;
	struct fathom_registered registered;
	struct {
		FATHOM_ARRAY_OF(struct asked_code);
	} asked;
	bool is_fresh; /* the files of jit were read since the view began */
};

/* Takes the kept state for this batch alone, or makes one; NULL if out of memory. */
static struct fathom_jit *take_state(const struct fathom_jit_process *p)
{
	struct fathom_memory *m = &p->session->memory;
	struct fathom_jit *jit = p->locator ? p->locator->jit : atomic_exchange(p->kept, NULL);

	if (jit)
		return jit;
	jit = calloc(1, sizeof *jit);
	if (!jit)
		return NULL;
	fathom_gdb_jit_init(&jit->gdb, m);
	fathom_gdb_jit_init(&jit->located, m);
	for (int i = 0; i < N_MAPS; i++)
		fathom_perf_map_init(&jit->map[i].map, m);
	for (unsigned i = 0; i < FATHOM_MAX_JITDUMPS; i++)
		fathom_jitdump_init(&jit->dump[i].dump, m);
	return jit;
}

/* Keeps @jit for the next batch, unless another batch has already kept its own. */
static void give_back(const struct fathom_jit_process *p, struct fathom_jit *jit)
{
	struct fathom_jit *none = NULL;

	if (p->locator)
		return;
	if (!atomic_compare_exchange_strong(p->kept, &none, jit))
		fathom_jit_destroy(jit);
}

/* Notes why a file is not read, or not to its end; fails only with FATHOM_E_MEMORY. */
static fathom_err note_file(const struct fathom_jit_process *p, fathom_err err, const char *path,
			    uint64_t off, bool over_budget, const char *what)
{
	struct fathom_errinfo info;

	if (err == FATHOM_E_OS)
		(void)fathom_fail_os(&info, path);
	else
		(void)fathom_fail(&info, err, "", off, what);
	if (err == FATHOM_E_LIMIT && over_budget)
		info.cause = FATHOM_CAUSE_BUDGET;
	fathom_errinfo_set_file(&info, path);
	if (err && err != FATHOM_E_MEMORY)
		fathom_notes_add(p->notes, &info);
	return err == FATHOM_E_MEMORY ? err : FATHOM_OK;
}

/*
 * Returns whether a file was read only in part. Such a file names nothing: the last record of an
 * address holds, and may be in the unread part.
 */
static bool is_read_in_part(fathom_err err)
{
	return err == FATHOM_E_LIMIT || err == FATHOM_E_OS;
}

static bool is_of(const struct file_key *key, const struct stat *st)
{
	return key->inode == st->st_ino && key->device == st->st_dev;
}

static struct file_key key_of(const struct stat *st)
{
	return (struct file_key){ st->st_dev, st->st_ino };
}

/* Notes why a file could not be used, if that is worth a note. */
static void note_refusal(const struct fathom_jit_process *p, fathom_err err,
			 const struct fathom_errinfo *info)
{
	if (err != FATHOM_E_NOT_FOUND)
		fathom_notes_add(p->notes, info);
}

/* Notes that names for a core come from a file beside it. */
static void note_kept(const struct fathom_jit_process *p, const struct fathom_jit_owner *o,
		      const char *path)
{
	if (o->ended)
		(void)note_file(p, FATHOM_E_NOT_FOUND, path, 0, false,
				"names of JIT code are from this file, which is still there: the "
				"core has none");
}

/* Returns whether the file of @st was written to within the last second. */
static bool is_being_written(const struct stat *st)
{
	struct timespec now;

	return clock_gettime(CLOCK_REALTIME, &now) < 0 || now.tv_sec - st->st_mtim.tv_sec < 2;
}

/* Updates @kept from the perf map of @pid below @root, if there is one. */
static fathom_err refresh_map(const struct fathom_jit_process *p, const struct fathom_jit_owner *o,
			      enum fathom_jit_root root, uint64_t pid, struct kept_map *kept)
{
	struct fathom_errinfo info;
	struct stat st;
	char path[64];
	fathom_err err;
	int fd;

	(void)snprintf(path, sizeof path, "/tmp/perf-%llu.map", (unsigned long long)pid);
	err = fathom_jit_file_open(p, o, root, path, &fd, &st, &info);
	if (err) {
		note_refusal(p, err, &info);
		fathom_perf_map_clear(&kept->map);
		kept->key = (struct file_key){ 0 };
		return FATHOM_OK;
	}
	if (!is_of(&kept->key, &st))
		fathom_perf_map_clear(&kept->map);
	kept->key = key_of(&st);
	err = fathom_perf_map_read(&kept->map, fd, (uint64_t)st.st_size);
	close(fd);
	if (!err && !is_being_written(&st))
		fathom_perf_map_end(&kept->map);
	if (!err)
		note_kept(p, o, path);
	if (is_read_in_part(err))
		fathom_perf_map_clear(&kept->map);
	return note_file(p, err, path, 0, true,
			 "does not fit the memory budget: its names are not used");
}

/*
 * Updates the perf maps: the one of the process's own pid below its root, where it would write it;
 * and, if its root is ours, the one of its pid here, where an outside agent writes it.
 */
static fathom_err refresh_maps(struct fathom_jit *jit, const struct fathom_jit_process *p,
			       const struct fathom_jit_owner *o)
{
	FATHOM_TRY(refresh_map(p, o, FATHOM_JIT_THEIRS, o->inner_pid, &jit->map[0]));
	if (o->pid == o->inner_pid || p->has_root)
		return FATHOM_OK;
	return refresh_map(p, o, FATHOM_JIT_OURS, o->pid, &jit->map[1]);
}

/*
 * Returns whether @m maps "…/jit-PID.dump", with the pid in the process's namespace or in ours. A
 * child of fork() has its parent's file mapped too: that is about the parent's code.
 */
static bool is_dump(const struct fathom_jit_owner *o, const struct fathom_mapping *m)
{
	const char *slash = m->executable && m->inode && m->name.size
				    ? memrchr(m->name.data, '/', m->name.size)
				    : NULL;
	const size_t size = slash ? (size_t)(m->name.data + m->name.size - slash) : 0;
	const uint64_t pids[] = { o->inner_pid, o->pid };
	char name[40];

	for (int i = 0; i < 2; i++)
		if ((size_t)snprintf(name, sizeof name, "/jit-%llu.dump",
				     (unsigned long long)pids[i]) == size &&
		    memcmp(name, slash, size) == 0)
			return true;
	return false;
}

/* Returns the slot of the file, old or new; NULL if there are too many files. */
static struct kept_dump *place_of(struct fathom_jit *jit, const struct stat *st)
{
	struct kept_dump *place = NULL;

	for (unsigned i = 0; i < FATHOM_MAX_JITDUMPS; i++) {
		if (is_of(&jit->dump[i].key, st))
			return &jit->dump[i];
		if (!jit->dump[i].key.inode && !place)
			place = &jit->dump[i];
	}
	return place;
}

static fathom_err refresh_dump(struct fathom_jit *jit, const struct fathom_jit_process *p,
			       const struct fathom_jit_owner *o, const struct fathom_mapping *m,
			       bool used[FATHOM_MAX_JITDUMPS])
{
	struct fathom_errinfo info;
	struct kept_dump *kept;
	uint64_t damage = 0;
	char path[PATH_MAX];
	struct stat st;
	fathom_err err;
	int fd;

	(void)snprintf(path, sizeof path, "%.*s", (int)m->name.size, m->name.data);
	err = fathom_jit_file_open_mapped(p, o, m, &fd, &st, &info);
	if (err) {
		note_refusal(p, err, &info);
		return FATHOM_OK;
	}
	kept = place_of(jit, &st);
	err = FATHOM_E_LIMIT;
	if (kept) {
		kept->key = key_of(&st);
		used[kept - jit->dump] = true;
		err = fathom_jitdump_read(&kept->dump, fd, (uint64_t)st.st_size, &damage);
		if (is_read_in_part(err))
			fathom_jitdump_clear(&kept->dump);
		else if (!err || err == FATHOM_E_CORRUPT)
			note_kept(p, o, path);
	}
	close(fd);
	return note_file(p, err, path, damage, kept != NULL,
			 !kept                    ? "more jitdumps than fathom reads"
			 : err == FATHOM_E_FORMAT ? "is no jitdump of version 1"
			 : err == FATHOM_E_LIMIT
				 ? "does not fit the memory budget: its names are not used"
				 : "is damaged: what is beyond has no names");
}

/* Updates the jitdumps, which their writers must have mapped. */
static fathom_err refresh_dumps(struct fathom_jit *jit, const struct fathom_jit_process *p,
				const struct fathom_jit_owner *o)
{
	const struct fathom_maps *maps = p->maps;
	bool used[FATHOM_MAX_JITDUMPS] = { false };

	for (size_t i = 0; i < maps->n; i++)
		if (is_dump(o, &maps->items[i]))
			FATHOM_TRY(refresh_dump(jit, p, o, &maps->items[i], used));
	for (unsigned i = 0; i < FATHOM_MAX_JITDUMPS; i++) {
		if (used[i])
			continue;
		fathom_jitdump_clear(&jit->dump[i].dump);
		jit->dump[i].key = (struct file_key){ 0 };
	}
	return FATHOM_OK;
}

static bool find_in_dumps(const struct fathom_jit *jit, uint64_t avma,
			  struct fathom_jitdump_hit *ret)
{
	for (unsigned i = 0; i < FATHOM_MAX_JITDUMPS; i++)
		if (jit->dump[i].key.inode && fathom_jitdump_at(&jit->dump[i].dump, avma, ret))
			return true;
	return false;
}

static bool is_of_32_bits(uint32_t machine)
{
	return machine == EM_386 || machine == EM_ARM;
}

/* Finds how the code at @avma is unwound; returns the jitdump that tells, or NULL. */
static const struct kept_dump *find_unwinding(const struct fathom_jit *jit, uint64_t avma,
					      struct fathom_jitdump_unwinding *ret)
{
	for (unsigned i = 0; i < FATHOM_MAX_JITDUMPS; i++)
		if (jit->dump[i].key.inode &&
		    fathom_jitdump_unwinding_at(&jit->dump[i].dump, avma, ret))
			return &jit->dump[i];
	return NULL;
}

/* Opens the file of @dump again; false if it is not there any more. */
static bool reopen(const struct fathom_jit_process *p, const struct kept_dump *dump, int *ret_fd)
{
	struct fathom_jit_owner owner;
	struct fathom_errinfo info;
	struct stat st;

	if (!p->ops->read_owner(p, &owner))
		return false;
	for (size_t i = 0; i < p->maps->n; i++) {
		const struct fathom_mapping *m = &p->maps->items[i];

		if (!is_dump(&owner, m) ||
		    fathom_jit_file_open_mapped(p, &owner, m, ret_fd, &st, &info))
			continue;
		if (is_of(&dump->key, &st))
			return true;
		close(*ret_fd);
	}
	return false;
}

/* Reads from the jitdumps how the code at @avma is unwound; *@ret stays as it is if none tells. */
static fathom_err read_unwinding(struct fathom_jit_locator *l, const struct fathom_jit_process *p,
				 uint64_t avma, const struct fathom_fde **ret)
{
	struct fathom_jitdump_unwinding u;
	const struct kept_dump *dump = find_unwinding(l->jit, avma, &u);
	struct fathom_jit_code_layout layout = { 0 };
	uint8_t *bytes;
	size_t size;
	fathom_err err;
	int fd;

	if (!dump || !reopen(p, dump, &fd))
		return FATHOM_OK;
	layout.swap = dump->dump.swap;
	layout.address_size = is_of_32_bits(fathom_jitdump_machine(&dump->dump)) ? 4 : 8;
	err = fathom_jitdump_read_unwinding(&dump->dump, fd, u.off, &bytes, &size);
	close(fd);
	if (!err)
		err = fathom_jit_code_frames_take(&l->frames, &layout, bytes, size, u.start, u.size,
						  ret);
	return err == FATHOM_E_MEMORY ? err : FATHOM_OK;
}

/* Finds @avma in the perf maps. */
static bool find_in_maps(const struct fathom_jit *jit, uint64_t avma, struct fathom_symbol_hit *ret)
{
	struct fathom_perf_symbol s;

	for (int i = 0; i < N_MAPS; i++) {
		if (!fathom_perf_map_at(&jit->map[i].map, avma, &s))
			continue;
		*ret = (struct fathom_symbol_hit){ .start = s.start,
						   .size = s.size,
						   .name = s.name,
						   .source = FATHOM_SOURCE_PERF_MAP };
		return true;
	}
	return false;
}

/* Finds @avma in the files; @ret_line may be NULL. */
static bool find_in_files(const struct fathom_jit *jit, uint64_t avma,
			  struct fathom_symbol_hit *ret, struct fathom_jitdump_hit *ret_line)
{
	struct fathom_jitdump_hit hit = { 0 };
	const bool found = find_in_dumps(jit, avma, &hit);

	if (found)
		*ret = (struct fathom_symbol_hit){ .start = hit.start,
						   .size = hit.size,
						   .name = hit.name,
						   .source = FATHOM_SOURCE_JITDUMP };
	if (ret_line)
		*ret_line = hit;
	return found || find_in_maps(jit, avma, ret);
}

/* Finds @avma in all sources but GDB's interface. */
static bool find_code(const struct fathom_jit *jit, const struct fathom_jit_process *p,
		      uint64_t avma, struct fathom_symbol_hit *ret,
		      struct fathom_jitdump_hit *ret_line)
{
	*ret_line = (struct fathom_jitdump_hit){ 0 };
	if (p->ops->find_code(p, avma, ret))
		return true;
	return find_in_files(jit, avma, ret, ret_line);
}

/* Completes the nameless answer at @place with @hit, whose name is @id. */
static void set_answer(struct fathom_part *p, struct fathom_answers *answers, uint32_t place,
		       const struct fathom_symbol_hit *hit, uint32_t id,
		       const struct fathom_jitdump_hit *line)
{
	const bool has_line = line->file.data && !(p->flags & FATHOM_NAMES_ONLY);
	struct fathom_answer *a = &answers->answers[place];

	a->offset = a->pc.address - hit->start;
	a->size = hit->size;
	fathom_part_name_answer(p, answers, a, id);
	a->source = (uint8_t)hit->source;
	a->reason = has_line || p->flags & FATHOM_NAMES_ONLY ? FATHOM_REASON_NONE
							     : FATHOM_REASON_NO_DEBUG_INFO;
	if (has_line)
		a->frame = fathom_part_place(p, id, line->file, line->line);
}

/*
 * Answers @rest from the files in address order, so that each name is made once. Inside modules,
 * only perf maps are used: the other sources describe memory that the program has written.
 */
static fathom_err answer_by_files(const struct fathom_jit *jit, const struct fathom_jit_process *p,
				  const struct fathom_unresolved *rest, struct fathom_keyed *keyed)
{
	struct fathom_part *part = &rest->answers->parts[0];
	uint32_t id = FATHOM_NONE;
	const char *last = NULL;

	fathom_part_begin(part, 0, rest->options->flags, 0);
	for (size_t i = 0; i < rest->n; i++)
		keyed[i] = (struct fathom_keyed){ fathom_looked_up(rest->options, rest->addresses,
								   rest->places[i]),
						  rest->places[i] };
	fathom_sort_keyed(keyed, keyed + rest->n, rest->n);
	for (size_t i = 0; i < rest->n && !part->err; i++) {
		struct fathom_jitdump_hit line = { 0 };
		struct fathom_symbol_hit hit;

		if (rest->in_modules ? !find_in_maps(jit, keyed[i].key, &hit)
				     : !find_code(jit, p, keyed[i].key, &hit, &line))
			continue;
		if (hit.name.data != last)
			id = fathom_part_symbol(part, &hit);
		last = hit.name.data;
		set_answer(part, rest->answers, (uint32_t)keyed[i].value, &hit, id, &line);
	}
	return part->err;
}

/* Reads the files of the process, live or in a core; a snapshot needs none. */
static fathom_err refresh(struct fathom_jit *jit, const struct fathom_jit_process *p)
{
	struct fathom_jit_owner owner;

	if (!p->ops->read_owner(p, &owner))
		return FATHOM_OK;
	FATHOM_TRY(refresh_dumps(jit, p, &owner));
	return refresh_maps(jit, p, &owner);
}

/* Adds the starts and ends of the claims of @t to @bounds as keys; values are unused. */
static bool add_bounds(const struct fathom_code_table *t, struct fathom_keyed_array *bounds)
{
	for (unsigned l = 0; l < t->n_levels; l++) {
		struct fathom_keyed *to;

		if (!fathom_array_room(bounds, 2 * t->level[l].n))
			return false;
		to = bounds->items + bounds->n;
		for (size_t i = 0; i < t->level[l].n; i++) {
			*to++ = (struct fathom_keyed){ t->level[l].claims[i].start, 0 };
			*to++ = (struct fathom_keyed){ t->level[l].claims[i].end, 0 };
		}
		bounds->n += 2 * t->level[l].n;
	}
	return true;
}

/* Adds the bounds of the last line of @map, which is no claim. */
static bool add_tail_bounds(const struct fathom_perf_map *map, struct fathom_keyed_array *bounds)
{
	struct fathom_keyed *to;

	if (!map->tail.size)
		return true;
	if (!fathom_array_room(bounds, 2))
		return false;
	to = bounds->items + bounds->n;
	to[0] = (struct fathom_keyed){ map->tail.start, 0 };
	to[1] = (struct fathom_keyed){ map->tail.start + map->tail.size, 0 };
	bounds->n += 2;
	return true;
}

static bool add_all_bounds(const struct fathom_jit *jit, struct fathom_keyed_array *bounds)
{
	bool done = true;

	for (unsigned i = 0; i < FATHOM_MAX_JITDUMPS && done; i++)
		done = !jit->dump[i].key.inode || add_bounds(&jit->dump[i].dump.table, bounds);
	for (int i = 0; i < N_MAPS && done; i++)
		done = add_bounds(&jit->map[i].map.table, bounds) &&
		       add_tail_bounds(&jit->map[i].map, bounds);
	/* Room for sorting. */
	return done && fathom_array_room(bounds, bounds->n + 1);
}

/* Calls @fn for each code range: between two successive bounds, at most one symbol holds. */
static void each_between(const struct fathom_jit *jit, struct fathom_keyed_array *bounds,
			 fathom_code_fn fn, void *data)
{
	struct fathom_keyed *keyed = bounds->items;
	bool more = true;

	fathom_sort_keyed(keyed, keyed + bounds->n, bounds->n);
	for (size_t i = 1; i < bounds->n && more; i++) {
		struct fathom_symbol_hit hit;
		const struct fathom_jit_code code = { keyed[i - 1].key, keyed[i].key, &hit };

		if (code.start < code.end && find_in_files(jit, code.start, &hit, NULL))
			more = fn(&code, data);
	}
}

static fathom_err each_code(struct fathom_jit *jit, const struct fathom_jit_process *p,
			    fathom_code_fn fn, void *data)
{
	struct fathom_keyed_array bounds = { NULL, 0, 0 };
	fathom_err err;

	p->ops->each_code(p, fn, data);
	err = refresh(jit, p);
	if (!err && !add_all_bounds(jit, &bounds))
		err = FATHOM_E_MEMORY;
	if (!err)
		each_between(jit, &bounds, fn, data);
	fathom_array_free(&bounds);
	return err;
}

fathom_err fathom_jit_each(const struct fathom_jit_process *p, fathom_code_fn fn, void *data)
{
	struct fathom_jit *jit = take_state(p);
	fathom_err err;

	if (!jit)
		return FATHOM_E_MEMORY;
	err = each_code(jit, p, fn, data);
	give_back(p, jit);
	return err;
}

enum { FILE_JITDUMP, FILE_PERF_MAP, N_FILES };

static const enum fathom_source source_of_file[N_FILES] = { FATHOM_SOURCE_JITDUMP,
							    FATHOM_SOURCE_PERF_MAP };

struct made_symbols {
	FATHOM_ARRAY_OF(struct fathom_jit_code_symbol);
};

struct fathom_jit_search {
	const struct fathom_jit_process *process;
	struct fathom_jit *jit;
	size_t n_listed; /* symbol files in GDB's lists */
	struct fathom_module *file[N_FILES];
	struct made_symbols symbols[N_FILES];
	bool has_changed;
	bool failed; /* out of memory */
};

/* Takes the symbol of @code, unless its start now holds something else, or no code. */
static bool take_symbol(const struct fathom_jit_code *code, void *data)
{
	const struct fathom_symbol_hit *hit = code->symbol;
	struct fathom_jit_search *s = data;
	const size_t kind = hit->source == FATHOM_SOURCE_PERF_MAP ? FILE_PERF_MAP : FILE_JITDUMP;
	struct made_symbols *to = &s->symbols[kind];

	if (hit->start != code->start ||
	    !fathom_jit_search_holds(s, s->n_listed + kind, hit->start))
		return true;
	s->failed = !fathom_array_room(to, 1);
	if (!s->failed)
		(to->items)[to->n++] =
			(struct fathom_jit_code_symbol){ hit->start, hit->size, hit->name };
	return !s->failed;
}

/* Makes the module of the symbols taken from the files of kind @i. */
static fathom_err make_file(struct fathom_jit_search *s, int i)
{
	const struct made_symbols *symbols = &s->symbols[i];
	struct fathom_object *o;
	fathom_err err;

	if (!symbols->n)
		return FATHOM_OK;
	err = fathom_symbol_file_make(&s->process->session->memory, "[jit]", symbols->items,
				      symbols->n, &o);
	if (err == FATHOM_E_LIMIT)
		return note_file(s->process, err, "[jit]", 0, true,
				 "does not fit the memory budget: its names are not found");
	if (err)
		return err;
	FATHOM_TRY(
		fathom_module_create_alone(s->process->paths, o, s->process->notes, &s->file[i]));
	fathom_symbol_set_source(&s->file[i]->symbols, source_of_file[i]);
	return FATHOM_OK;
}

static fathom_err open_files(struct fathom_jit_search *s)
{
	FATHOM_TRY(fathom_gdb_jit_find(&s->jit->gdb, s->process));
	FATHOM_TRY(fathom_gdb_jit_open(&s->jit->gdb, s->process, &s->n_listed, &s->has_changed));
	FATHOM_TRY(each_code(s->jit, s->process, take_symbol, s));
	for (int i = 0; i < N_FILES && !s->failed; i++)
		FATHOM_TRY(make_file(s, i));
	return s->failed ? FATHOM_E_MEMORY : FATHOM_OK;
}

fathom_err fathom_jit_search_begin(const struct fathom_jit_process *p,
				   struct fathom_jit_search **ret)
{
	struct fathom_jit_search *s = calloc(1, sizeof *s);
	fathom_err err;

	if (!s)
		return FATHOM_E_MEMORY;
	s->process = p;
	s->jit = take_state(p);
	err = s->jit ? open_files(s) : FATHOM_E_MEMORY;
	if (err)
		fathom_jit_search_end(s);
	else
		*ret = s;
	return err;
}

void fathom_jit_search_end(struct fathom_jit_search *s)
{
	if (!s)
		return;
	for (int i = 0; i < N_FILES; i++) {
		fathom_module_close(s->file[i]);
		fathom_array_free(&s->symbols[i]);
	}
	if (s->jit) {
		fathom_gdb_jit_trim(&s->jit->gdb);
		give_back(s->process, s->jit);
	}
	free(s);
}

size_t fathom_jit_search_count(const struct fathom_jit_search *s)
{
	return s->n_listed + N_FILES;
}

struct fathom_module *fathom_jit_search_module(const struct fathom_jit_search *s, size_t i)
{
	const size_t n = s->n_listed;

	return i < n ? fathom_gdb_jit_module(&s->jit->gdb, i) : s->file[i - n];
}

/* Returns whether the file at @p has no name for its code at @avma. */
static bool is_nameless(const struct fathom_place *p, uint64_t avma)
{
	struct fathom_symbol_hit hit;

	return !fathom_symbols_scan(&p->holder->module->symbols, avma - p->bias, NULL, &hit);
}

bool fathom_jit_search_holds(const struct fathom_jit_search *s, size_t i, uint64_t avma)
{
	const struct fathom_maps *maps = s->process->maps;
	const size_t n = s->n_listed;
	const size_t owner = n ? fathom_gdb_jit_number(&s->jit->gdb, avma) : n;
	const size_t at = fathom_maps_at(maps, avma);
	struct fathom_place place;

	/* It is unknown which code is newer. */
	if (i < n && !s->jit->gdb.is_whole)
		return false;
	/* GDB's interface takes precedence over files; data is no code. */
	if (at == maps->n || (owner < n && owner != i) ||
	    (owner == n && i >= n && !maps->items[at].executable))
		return false;
	if (s->process->ops->locate(s->process, avma, &place))
		return false;
	/* Only perf maps name code in files. */
	return !place.holder || (i == n + FILE_PERF_MAP && is_nameless(&place, avma));
}

bool fathom_jit_search_has_changed(const struct fathom_jit_search *s)
{
	return s->has_changed;
}

static fathom_err ask_files(struct fathom_jit *jit, const struct fathom_jit_process *p,
			    const struct fathom_unresolved *rest)
{
	struct fathom_jit_owner owner;
	struct fathom_keyed *keyed;
	fathom_err err;

	if (!rest->n)
		return FATHOM_OK;
	if (!rest->in_modules)
		FATHOM_TRY(refresh(jit, p));
	else if (p->ops->read_owner(p, &owner))
		FATHOM_TRY(refresh_maps(jit, p, &owner));
	keyed = malloc((2 * rest->n + 1) * sizeof *keyed);
	if (!keyed)
		return FATHOM_E_MEMORY;
	err = answer_by_files(jit, p, rest, keyed);
	free(keyed);
	return err;
}

fathom_err fathom_jit_answer(const struct fathom_jit_process *p,
			     const struct fathom_unresolved *rest)
{
	struct fathom_unresolved left = *rest;
	struct fathom_jit *jit = take_state(p);
	fathom_err err = FATHOM_OK;

	if (!jit)
		return FATHOM_E_MEMORY;
	/* This removes from left what GDB's lists know. */
	if (!left.in_modules)
		err = fathom_gdb_jit_find(&jit->gdb, p);
	if (!err && !left.in_modules && p->locator)
		err = fathom_gdb_jit_learn(&jit->gdb, &jit->located, p);
	if (!err && !left.in_modules)
		err = fathom_gdb_jit_answer(&jit->gdb, p, &left);
	if (!err)
		err = ask_files(jit, p, &left);
	give_back(p, jit);
	return err;
}

/* Finds the lists and begins to locate code in them. */
static fathom_err begin_gdb(const struct fathom_jit_process *p, struct fathom_jit_locator *l)
{
	FATHOM_TRY(fathom_gdb_jit_find(&l->jit->located, p));
	return fathom_gdb_locator_create(&l->jit->located, p, &l->gdb);
}

/* Frees @l and gives back what it took. */
static void end(const struct fathom_jit_process *p, struct fathom_jit_locator *l)
{
	fathom_gdb_locator_destroy(l->gdb);
	fathom_registered_deinit(&l->registered);
	fathom_jit_code_frames_clear(&l->frames);
	fathom_array_free(&l->asked);
	if (l->jit)
		give_back(p, l->jit);
	free(l);
}

/* Begins to locate code, once in a view. */
static fathom_err begin_locating(struct fathom_jit_process *p)
{
	struct fathom_jit_locator *l;
	fathom_err err;

	if (p->locator)
		return FATHOM_OK;
	l = calloc(1, sizeof *l);
	if (!l)
		return FATHOM_E_MEMORY;
	l->frames.memory = &p->session->memory;
	fathom_registered_init(&l->registered, &l->frames);
	l->jit = take_state(p);
	err = l->jit ? begin_gdb(p, l) : FATHOM_E_MEMORY;
	if (err)
		end(p, l);
	else
		p->locator = l;
	return err;
}

/* Returns a number that differs, in all likelihood, where the files tell of other code at @avma. */
static uint64_t fingerprint_at(const struct fathom_jit_locator *l, uint64_t avma,
			       struct fathom_symbol_hit *ret)
{
	const uint64_t prime = UINT64_C(0x100000001b3);
	struct fathom_jitdump_unwinding u = { 0 };
	struct fathom_jitdump_hit line;
	uint64_t sum;

	*ret = (struct fathom_symbol_hit){ 0 };
	if (!find_in_files(l->jit, avma, ret, &line) && !find_unwinding(l->jit, avma, &u))
		return 0;
	(void)find_unwinding(l->jit, avma, &u);
	sum = (ret->start ^ u.off) * prime + ret->size;
	for (uint32_t i = 0; i < ret->name.size; i++)
		sum = (sum ^ (uint8_t)ret->name.data[i]) * prime;
	return sum | 1;
}

/* Reads the files, once in a view, and remembers what they tell of @avma. */
static fathom_err ask_once(struct fathom_jit_locator *l, const struct fathom_jit_process *p,
			   uint64_t avma, struct fathom_symbol_hit *ret)
{
	if (!l->is_fresh)
		FATHOM_TRY(refresh(l->jit, p));
	l->is_fresh = true;
	if (!fathom_array_push(&l->asked,
			       (struct asked_code){ avma, fingerprint_at(l, avma, ret) }))
		return FATHOM_E_MEMORY;
	return FATHOM_OK;
}

/* Returns whether the symbol file at @place tells how to unwind the code at @avma. */
static bool tells_unwinding(const struct fathom_place *place, uint64_t avma)
{
	struct fathom_fde fde;

	return place->holder &&
	       !fathom_unwind_tables_find(&place->holder->module->unwind, avma - place->bias, &fde);
}

fathom_err fathom_jit_locate(struct fathom_jit_process *p, uint64_t avma, struct fathom_place *ret)
{
	struct fathom_jit_locator *l;
	struct fathom_symbol_hit hit;

	FATHOM_TRY(begin_locating(p));
	l = p->locator;
	FATHOM_TRY(fathom_gdb_locator_find(l->gdb, avma, ret));
	if (tells_unwinding(ret, avma))
		return FATHOM_OK;
	FATHOM_TRY(ask_once(l, p, avma, &hit));
	if (!ret->holder && (hit.name.data || p->ops->find_code(p, avma, &hit)))
		ret->source = hit.source;
	FATHOM_TRY(read_unwinding(l, p, avma, &ret->fde));
	return ret->fde ? FATHOM_OK : fathom_registered_find(&l->registered, p, avma, &ret->fde);
}

/* Returns whether @m may hold code that the program makes: of no file, or of one without a name. */
static bool is_made(const struct fathom_mapping *m)
{
	return m->executable && m->readable &&
	       (!m->inode ? !m->name.size || m->name.data[0] != '[' || str_starts(m->name, "[anon")
			  : str_starts(m->name, "/memfd:") || str_starts(m->name, "/dev/"));
}

fathom_err fathom_jit_locate_begin(struct fathom_jit_process *p)
{
	struct fathom_symbol_hit none;
	size_t i = 0;

	while (i < p->maps->n && !is_made(&p->maps->items[i]))
		i++;
	if (!p->is_live || i == p->maps->n)
		return FATHOM_OK;
	FATHOM_TRY(begin_locating(p));
	FATHOM_TRY(fathom_gdb_locator_begin(p->locator->gdb));
	FATHOM_TRY(fathom_registered_read(&p->locator->registered, p));
	return ask_once(p->locator, p, 0, &none);
}

/* Returns whether the files tell of each address what they told. */
static bool files_stayed(struct fathom_jit_locator *l, const struct fathom_jit_process *p)
{
	struct fathom_symbol_hit hit;

	if (!l->is_fresh || !p->is_live)
		return true;
	if (refresh(l->jit, p))
		return false;
	for (size_t i = 0; i < l->asked.n; i++)
		if (fingerprint_at(l, l->asked.items[i].avma, &hit) !=
		    l->asked.items[i].fingerprint)
			return false;
	return true;
}

bool fathom_jit_stayed(const struct fathom_jit_process *p)
{
	struct fathom_jit_locator *l = p->locator;

	return !l || (fathom_gdb_locator_stayed(l->gdb) && files_stayed(l, p) &&
		      fathom_registered_stayed(&l->registered, p));
}

void fathom_jit_locate_end(struct fathom_jit_process *p)
{
	struct fathom_jit_locator *l = p->locator;

	p->locator = NULL;
	if (l)
		end(p, l);
}
