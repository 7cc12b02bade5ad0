/* SPDX-License-Identifier: MIT */
#include "host/space/user/mapped_files.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Returns the head of the bucket for @hash; the newest file comes first. */
static struct fathom_space_file **bucket_of(struct fathom_space *s, uint64_t hash)
{
	return &s->bucket[hash % FATHOM_SPACE_BUCKETS];
}

/* Adds @f to the open files. The caller holds the lock. */
static void add_open(struct fathom_space *s, struct fathom_space_file *f)
{
	struct fathom_space_file **bucket = bucket_of(s, f->hash);

	f->next = s->files;
	s->files = f;
	f->in_bucket = *bucket;
	*bucket = f;
}

/* Moves *@link from the list of open files to @to. The caller holds the lock. */
static void move_open(struct fathom_space *s, struct fathom_space_file **link,
		      struct fathom_space_file **to)
{
	struct fathom_space_file *f = *link;
	struct fathom_space_file **in_bucket = bucket_of(s, f->hash);

	while (*in_bucket != f)
		in_bucket = &(*in_bucket)->in_bucket;
	*in_bucket = f->in_bucket;
	*link = f->next;
	f->next = *to;
	*to = f;
}

/* Finds the open file that fits mapping @m and begins a use of it; NULL if there is none. */
static struct fathom_space_file *find_open(struct fathom_space *s, const struct fathom_mapping *m)
{
	struct fathom_space_file *f;

	const uint64_t hash = fathom_mapping_hash_file(m);

	pthread_mutex_lock(&s->lock);
	for (f = *bucket_of(s, hash); f; f = f->in_bucket)
		if (!f->is_stale && f->module && fathom_space_file_fits(f, m))
			break;
	if (f)
		f->users++;
	pthread_mutex_unlock(&s->lock);
	return f;
}

/* Ends one use of @f; marks it if @stale. */
static void release(struct fathom_space *s, struct fathom_space_file *f, bool stale)
{
	pthread_mutex_lock(&s->lock);
	f->is_stale |= stale;
	f->users--;
	pthread_mutex_unlock(&s->lock);
}

/* Finds or opens the file of mapping @i and begins a use of it. */
static fathom_err acquire(struct fathom_space *s, const struct fathom_maps *maps, size_t i,
			  struct fathom_space_file **ret)
{
	struct fathom_space_file *f;

	while ((f = find_open(s, &maps->items[i])) != NULL) {
		*ret = f;
		if (maps->is_part && !f->is_file && f->inode)
			break;
		if (fathom_space_file_is_current(s, maps, i, f))
			return FATHOM_OK;
		release(s, f, true);
	}
	/* Its content identifies it, and this part of the map has too few mappings for that. */
	if (f) {
		release(s, f, false);
		return FATHOM_E_UNSUPPORTED;
	}
	FATHOM_TRY(fathom_space_file_open(s, maps, i, &f));
	/* If another thread has opened it too, both serve until they are unused. */
	f->users = 1;
	pthread_mutex_lock(&s->lock);
	add_open(s, f);
	pthread_mutex_unlock(&s->lock);
	*ret = f;
	return FATHOM_OK;
}

/* Finds the index of the file of mapping @i; each view looks it up once. */
static fathom_err use_file(struct fathom_space_view *v, size_t i, uint32_t *ret)
{
	uint32_t *opened = &v->of[v->maps.items[i].first].opened;
	struct fathom_used_file *f;
	fathom_err err;

	if (*opened) {
		*ret = *opened - 1;
		return FATHOM_OK;
	}
	f = calloc(1, sizeof *f);
	err = f && fathom_array_room(&v->files, 1) ? acquire(v->space, &v->maps, i, &f->file)
						   : FATHOM_E_MEMORY;
	if (err) {
		free(f);
		return err;
	}
	f->holder = (struct fathom_holder){ .module = f->file->module, .name = f->file->name };
	if (f->file->module)
		f->holder.build_id = f->file->module->main->build_id;
	*ret = (uint32_t)v->files.n;
	v->files.items[v->files.n++] = f;
	*opened = *ret + 1;
	return FATHOM_OK;
}

/* Finds for each mapping the nearest neighbours with a file. */
static void find_neighbours(struct fathom_space_view *v)
{
	const struct fathom_mapping *m = v->maps.items;
	const uint32_t none = (uint32_t)v->maps.n;

	for (uint32_t i = 0; i < none; i++)
		v->of[i].before = !i || m[i - 1].end != m[i].start ? none
				  : m[i - 1].inode                 ? i - 1
								   : v->of[i - 1].before;
	for (uint32_t i = none; i-- > 0;)
		v->of[i].behind = i + 1 == none || m[i].end != m[i + 1].start ? none
				  : m[i + 1].inode                            ? i + 1
									      : v->of[i + 1].behind;
}

/* Closes files that were truncated (mapped.h) in an earlier batch, to open them anew. */
static void drop_cut_files(struct fathom_space *s)
{
	struct fathom_space_file **link = &s->files;
	struct fathom_space_file *cut = NULL;

	if (!fathom_mapped_cuts(&s->target.session->memory.mapped))
		return;
	pthread_mutex_lock(&s->lock);
	while (*link) {
		struct fathom_space_file *f = *link;

		if (f->users || !f->module || !fathom_module_check(f->module, NULL))
			link = &f->next;
		else
			move_open(s, link, &cut);
	}
	pthread_mutex_unlock(&s->lock);
	fathom_space_files_close(cut);
}

static void view_free(struct fathom_space_view *v)
{
	for (size_t i = 0; i < v->files.n; i++) {
		fathom_bias_votes_deinit(&v->files.items[i]->votes);
		free(v->files.items[i]);
	}
	fathom_space_memory_close(&v->memory);
	fathom_maps_deinit(&v->maps);
	free(v->of);
	fathom_array_free(&v->files);
	free(v);
}

static size_t read_memory(void *data, uint64_t avma, void *to, size_t size)
{
	return fathom_space_view_read(data, avma, to, size);
}

static size_t read_each(void *data, const struct fathom_reader_piece *pieces, size_t n, uint8_t *to)
{
	const struct fathom_space_view *v = data;

	return v->raw.read_each(v->raw.data, pieces, n, to);
}

/* Makes a view without a map; returns NULL if out of memory. */
static struct fathom_space_view *view_new(struct fathom_space *s)
{
	struct fathom_space_view *v = calloc(1, sizeof *v);

	if (!v)
		return NULL;
	v->space = s;
	v->view.target = &s->target;
	v->raw = fathom_space_memory_init(&v->memory, s);
	v->view.memory =
		(struct fathom_reader){ read_memory, v->raw.read_each ? read_each : NULL, v };
	fathom_space_init_jit(v);
	return v;
}

/* Prepares @v for its map. */
static fathom_err take_map(struct fathom_space_view *v)
{
	v->of = calloc(v->maps.n + 1, sizeof *v->of);
	if (!v->of)
		return FATHOM_E_MEMORY;
	find_neighbours(v);
	drop_cut_files(v->space);
	return FATHOM_OK;
}

/* One view in this many reads the whole map. */
#define PARTS 64

/* Reads the part of the map that holds @avmas, if the space can. */
static fathom_err read_part(struct fathom_space *s, const uint64_t *avmas, size_t n,
			    struct fathom_maps *ret)
{

	/* Only a whole map shows which files are unused. */
	if (!s->ops->query_maps ||
	    atomic_fetch_add_explicit(&s->parts, 1, memory_order_relaxed) % PARTS == PARTS - 1)
		return FATHOM_E_UNSUPPORTED;
	return s->ops->query_maps(s, avmas, n, ret);
}

/* Reads the map; if memory will be read, first opens it to pin its program. */
static fathom_err read_map(struct fathom_space_view *v, enum fathom_view_use use,
			   const uint64_t *avmas, size_t n, struct fathom_errinfo *reterr)
{
	struct fathom_space *s = v->space;
	struct fathom_space_facts facts;
	struct fathom_maps maps;

	if (use == FATHOM_VIEW_MEMORY && s->ops->open_memory) {
		fathom_space_describe(s, &facts);
		v->entry = facts.entry;
		fathom_space_memory_pin(&v->memory);
	}
	if (!avmas || read_part(s, avmas, n, &maps))
		FATHOM_TRY(s->ops->read_maps(s, &maps, reterr));
	v->maps = maps;
	return FATHOM_OK;
}

fathom_err fathom_space_begin(struct fathom_target *t, enum fathom_view_use use,
			      const uint64_t *avmas, size_t n, struct fathom_view **ret,
			      struct fathom_errinfo *reterr)
{
	struct fathom_space *s = (struct fathom_space *)t;
	struct fathom_space_view *v = atomic_exchange(&s->idle, NULL);
	fathom_err err;

	if (v) {
		*ret = &v->view;
		return FATHOM_OK;
	}
	v = view_new(s);
	if (!v)
		return fathom_fail_memory(reterr);
	err = read_map(v, use, avmas, n, reterr);
	if (!err && take_map(v))
		err = fathom_fail_memory(reterr);
	if (err)
		view_free(v);
	else
		*ret = &v->view;
	return err;
}

/* Marks the open files that @maps has mappings of. The caller holds the lock. */
static void mark_used(struct fathom_space *s, const struct fathom_maps *maps)
{
	for (size_t i = 0; i < maps->n; i++) {
		const struct fathom_mapping *m = &maps->items[i];
		enum fathom_file_use use = FATHOM_FILE_USED;

		if (m->first != i)
			continue;
		for (struct fathom_space_file *f = *bucket_of(s, fathom_mapping_hash_file(m)); f;
		     f = f->in_bucket)
			if (!f->is_stale && f->module && fathom_space_file_fits(f, m)) {
				f->use = use;
				use = FATHOM_FILE_SUPERSEDED;
			}
	}
}

/* Returns whether later batches may use @f, by what mark_used() found in a whole map or a part. */
static bool is_wanted(const struct fathom_space *s, const struct fathom_space_file *f, bool is_part)
{
	/* The image of a file is rebuilt each time: its memory may have become another file's. */
	if (f->is_stale || !f->module || (s->target.is_live && f->is_image && f->inode))
		return false;
	return f->use == FATHOM_FILE_USED || (is_part && f->use == FATHOM_FILE_UNUSED);
}

/* Ends the use of all files, and closes those that no later batch needs. */
static void release_files(struct fathom_space_view *v)
{
	struct fathom_space *s = v->space;
	struct fathom_space_file **link = &s->files;
	struct fathom_space_file *useless = NULL;

	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < v->files.n; i++)
		v->files.items[i]->file->users--;
	mark_used(s, &v->maps);
	while (*link) {
		struct fathom_space_file *f = *link;
		const bool keep = f->users || is_wanted(s, f, v->maps.is_part);

		f->use = FATHOM_FILE_UNUSED;
		if (keep)
			link = &f->next;
		else
			move_open(s, link, &useless);
	}
	pthread_mutex_unlock(&s->lock);
	fathom_space_files_close(useless);
}

/* Returns whether some file could not be opened or was truncated: it may work later. */
static bool has_failed(const struct fathom_space_view *v)
{
	for (size_t i = 0; i < v->files.n; i++)
		if (!v->files.items[i]->file->module ||
		    fathom_module_check(v->files.items[i]->file->module, NULL))
			return true;
	return false;
}

/* Keeps @v for later, unless another view was there first. */
static bool keep(struct fathom_space_view *v)
{
	struct fathom_space_view *none = NULL;

	for (size_t i = 0; i < v->files.n; i++)
		v->files.items[i]->holder.info = NULL;
	v->view.failed.err = FATHOM_OK;
	return atomic_compare_exchange_strong(&v->space->idle, &none, v);
}

void fathom_space_end(struct fathom_view *view)
{
	struct fathom_space_view *v = (struct fathom_space_view *)view;

	fathom_jit_locate_end(&v->jit);
	/* The map of a core or snapshot never changes, nor do its files once all are open. */
	if (!v->space->target.is_live && !has_failed(v) && keep(v))
		return;
	release_files(v);
	view_free(v);
}

void fathom_space_drop_idle(struct fathom_space *s)
{
	struct fathom_space_view *idle = atomic_load(&s->idle);

	if (idle)
		view_free(idle);
}

static const struct fathom_image *image_of(const struct fathom_space_view *v, size_t i)
{
	return &fathom_space_used_file(v, i)->file->module->main->image;
}

/* Returns whether mapping @i, at @at, has what its file states for @avma. */
static bool holds(const struct fathom_space_view *v, size_t i, uint64_t at, uint64_t avma)
{
	return !v->of[i].reason && fathom_bias_holds(image_of(v, i), v->of[i].bias,
						     &v->maps.items[i], at, avma, v->space->page);
}

/*
 * Looks up mapping @i. It belongs to a module if segments fill it and the module's code is mapped
 * too: a file mapped only to be read looks different.
 */
static fathom_err look_up(struct fathom_space_view *v, size_t i)
{
	const struct fathom_mapping *m = &v->maps.items[i];
	struct fathom_known_mapping *of = &v->of[i];

	of->file = FATHOM_NONE;
	of->reason = FATHOM_REASON_UNMAPPED;
	if (!fathom_mapping_is_usable(m))
		return FATHOM_OK;
	of->reason = FATHOM_REASON_NO_FILE;
	if (!fathom_space_may_be_file(v->space, m))
		return FATHOM_OK;
	FATHOM_TRY(use_file(v, i, &of->file));
	of->reason = v->files.items[of->file]->file->reason;
	if (!v->files.items[of->file]->file->module)
		return FATHOM_OK;
	if (v->maps.is_part && fathom_bias_is_disputed(image_of(v, i), m, v->space->page))
		return FATHOM_E_UNSUPPORTED;
	if (!fathom_bias_of_mapping(image_of(v, i), &v->maps, i, v->space->page,
				    &v->files.items[of->file]->votes, &of->bias) ||
	    !holds(v, i, m->start, m->start) || !holds(v, i, m->end - 1, m->end - 1))
		of->reason = FATHOM_REASON_NO_SYMBOLS;
	if (of->reason || m->executable)
		return FATHOM_OK;
	if (v->maps.is_part)
		return FATHOM_E_UNSUPPORTED;
	if (!fathom_bias_is_loaded(image_of(v, i), &v->maps, of->bias))
		of->reason = FATHOM_REASON_NO_SYMBOLS;
	return FATHOM_OK;
}

fathom_err fathom_space_look_up(struct fathom_space_view *v, size_t i)
{
	const fathom_err err = v->of[i].looked ? FATHOM_OK : look_up(v, i);

	v->of[i].looked = !err;
	return err;
}

/* Returns whether mappings @i and @k are of one module. */
static bool is_one(const struct fathom_space_view *v, size_t i, size_t k)
{
	return !v->of[i].reason && !v->of[k].reason && v->of[i].file == v->of[k].file &&
	       v->of[i].bias == v->of[k].bias;
}

/*
 * Finds the neighbour whose module memory without a file belongs to: memory that continues one of
 * its segments, such as .bss after .data, or code copied to huge pages between the module's own
 * mappings.
 */
static fathom_err find_neighbour(struct fathom_space_view *v, size_t at, uint64_t avma, size_t *ret)
{
	const size_t before = v->of[at].before;
	const size_t behind = v->of[at].behind;
	const size_t none = v->maps.n;

	if (before < none)
		FATHOM_TRY(fathom_space_look_up(v, before));
	if (behind < none)
		FATHOM_TRY(fathom_space_look_up(v, behind));
	if (before < none && holds(v, before, v->maps.items[before].end - 1, avma))
		*ret = before;
	else if (behind < none && holds(v, behind, v->maps.items[behind].start, avma))
		*ret = behind;
	else if (before < none && behind < none && is_one(v, before, behind) &&
		 fathom_bias_covers(image_of(v, before), v->of[before].bias, avma))
		*ret = before;
	return FATHOM_OK;
}

/* Finds the mapping of a module's file that tells what is at @avma, inside mapping @at. */
static fathom_err find_mapping(struct fathom_space_view *v, size_t at, uint64_t avma, size_t *ret)
{
	*ret = v->maps.n;
	FATHOM_TRY(fathom_space_look_up(v, at));
	if (holds(v, at, avma, avma))
		*ret = at;
	else if (!v->maps.items[at].inode && v->of[at].reason == FATHOM_REASON_NO_FILE)
		return v->maps.is_part ? FATHOM_E_UNSUPPORTED : find_neighbour(v, at, avma, ret);
	return FATHOM_OK;
}

fathom_err fathom_space_locate(struct fathom_view *view, uint64_t avma, struct fathom_place *ret)
{
	struct fathom_space_view *v = (struct fathom_space_view *)view;
	const size_t at = fathom_maps_at(&v->maps, avma);
	bool is_code;
	size_t i;

	if (at == v->maps.n) {
		*ret = (struct fathom_place){ .reason = FATHOM_REASON_UNMAPPED };
		return FATHOM_OK;
	}
	is_code = v->maps.items[at].executable;
	FATHOM_TRY(find_mapping(v, at, avma, &i));
	if (i < v->maps.n) {
		*ret = (struct fathom_place){ .holder = &fathom_space_used_file(v, i)->holder,
					      .bias = v->of[i].bias,
					      .key = i,
					      .is_code = is_code };
		return FATHOM_OK;
	}
	*ret = (struct fathom_place){ .reason = v->of[at].reason, .is_code = is_code };
	/* Any module may describe code outside all modules. */
	return v->maps.is_part && is_code ? FATHOM_E_UNSUPPORTED : FATHOM_OK;
}

/* A hash table of modules by file and bias: index of a mapping + 1; 0: free. */
struct seen {
	uint32_t *table;
	size_t mask;
};

static bool seen_init(struct seen *s, size_t n)
{
	s->mask = 15;
	while (s->mask < 2 * n)
		s->mask = 2 * s->mask + 1;
	s->table = calloc(s->mask + 1, sizeof *s->table);
	return s->table != NULL;
}

/* Returns whether no mapping before @i is of the same module. */
static bool is_first(const struct fathom_space_view *v, struct seen *s, size_t i)
{
	const struct fathom_known_mapping *of = &v->of[i];
	const uint64_t hash = (of->bias ^ of->file) * UINT64_C(0x9e3779b97f4a7c15);
	size_t at = (size_t)(hash >> 32) & s->mask;

	while (s->table[at] && !is_one(v, s->table[at] - 1, i))
		at = (at + 1) & s->mask;
	if (s->table[at])
		return false;
	s->table[at] = (uint32_t)i + 1;
	return true;
}

fathom_err fathom_space_walk(struct fathom_space_view *v, bool code, fathom_module_fn fn,
			     void *data)
{
	struct seen seen;
	fathom_err err = FATHOM_OK;
	bool more = true;

	if (!seen_init(&seen, v->maps.n))
		return FATHOM_E_MEMORY;
	for (size_t i = 0; i < v->maps.n && more && !err; i++) {
		const struct fathom_mapping *m = &v->maps.items[i];
		const struct fathom_space_file *file;

		if (code && (!m->executable || !m->inode))
			continue;
		err = fathom_space_look_up(v, i);
		if (err || v->of[i].reason || !is_first(v, &seen, i))
			continue;
		file = fathom_space_used_file(v, i)->file;
		more = fn(&(struct fathom_module_at){ .module = file->module,
						      .name = file->name,
						      .bias = v->of[i].bias,
						      .start = m->start,
						      .no_file = file->no_file,
						      .is_deleted = v->space->target.is_live &&
								    m->deleted },
			  data);
	}
	free(seen.table);
	return err;
}

fathom_err fathom_space_modules(struct fathom_view *v, fathom_module_fn fn, void *data)
{
	return fathom_space_walk((struct fathom_space_view *)v, false, fn, data);
}
