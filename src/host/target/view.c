/* SPDX-License-Identifier: MIT */
#include "host/target/view.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Where the newest of the files with this hash is found. */
static struct fathom_space_file **bucket_of(struct fathom_space *s, uint64_t hash)
{
	return &s->bucket[hash % FATHOM_SPACE_BUCKETS];
}

/* Adds @f to the open files. Under the lock. */
static void add_open(struct fathom_space *s, struct fathom_space_file *f)
{
	struct fathom_space_file **bucket = bucket_of(s, f->hash);

	f->next = s->files;
	s->files = f;
	f->in_bucket = *bucket;
	*bucket = f;
}

/* Takes *@link, in the list of open files, out, and puts it on @to. Under the lock. */
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

/* The open file that fits mapping @m, in use from now on; NULL when there is none. */
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

/* Ends one use of @f, which is @stale or not. */
static void release(struct fathom_space *s, struct fathom_space_file *f, bool stale)
{
	pthread_mutex_lock(&s->lock);
	f->is_stale |= stale;
	f->users--;
	pthread_mutex_unlock(&s->lock);
}

/* Finds the file of mapping @i, open and in use. */
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
	/* It is told by its content, which takes more mappings than there are. */
	if (f) {
		release(s, f, false);
		return FATHOM_E_UNSUPPORTED;
	}
	FATHOM_TRY(fathom_space_file_open(s, maps, i, &f));
	/* Another thread may have opened it, too: both are good, and closed when they are not used.
	 */
	f->users = 1;
	pthread_mutex_lock(&s->lock);
	add_open(s, f);
	pthread_mutex_unlock(&s->lock);
	*ret = f;
	return FATHOM_OK;
}

/* Finds the number of the file of mapping @i, which is looked at once for each batch. */
static fathom_err use_file(struct fathom_space_batch *b, size_t i, uint32_t *ret)
{
	uint32_t *opened = &b->of[b->maps.items[i].first].opened;
	struct fathom_batch_file *larger;

	if (*opened) {
		*ret = *opened - 1;
		return FATHOM_OK;
	}
	if (b->n_files == b->cap_files) {
		const uint32_t cap = 2 * b->cap_files + 8;

		larger = realloc(b->files, cap * sizeof *larger);
		if (!larger)
			return FATHOM_E_MEMORY;
		b->files = larger;
		b->cap_files = cap;
	}
	b->files[b->n_files] = (struct fathom_batch_file){ .info = NULL };
	FATHOM_TRY(acquire(b->space, &b->maps, i, &b->files[b->n_files].file));
	*ret = b->n_files++;
	*opened = b->n_files;
	return FATHOM_OK;
}

/* Notes for each mapping its nearest neighbours that have a file. */
static void find_neighbours(struct fathom_space_batch *b)
{
	const struct fathom_mapping *m = b->maps.items;
	const uint32_t none = (uint32_t)b->maps.n;

	for (uint32_t i = 0; i < none; i++)
		b->of[i].before = !i || m[i - 1].end != m[i].start ? none
				  : m[i - 1].inode                 ? i - 1
								   : b->of[i - 1].before;
	for (uint32_t i = none; i-- > 0;)
		b->of[i].behind = i + 1 == none || m[i].end != m[i + 1].start ? none
				  : m[i + 1].inode                            ? i + 1
									      : b->of[i + 1].behind;
}

/* Closes files that were cut (mapped.h) in an earlier batch: what is there now is opened anew. */
static void drop_cut_files(struct fathom_space *s)
{
	struct fathom_space_file **link = &s->files;
	struct fathom_space_file *cut = NULL;

	if (!fathom_mapped_cuts(&s->session->memory.mapped))
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

/* Makes a batch of @maps, which it takes over. */
static fathom_err begin(struct fathom_space *s, const struct fathom_maps *maps,
			struct fathom_space_batch *ret)
{
	struct fathom_space_batch b = { .space = s, .maps = *maps };

	b.of = calloc(maps->n + 1, sizeof *b.of);
	if (!b.of) {
		fathom_maps_deinit(&b.maps);
		return FATHOM_E_MEMORY;
	}
	find_neighbours(&b);
	drop_cut_files(s);
	*ret = b;
	return FATHOM_OK;
}

fathom_err fathom_space_batch_begin(struct fathom_space *s, struct fathom_space_batch *ret,
				    struct fathom_errinfo *reterr)
{
	struct fathom_space_batch *idle = atomic_exchange(&s->idle, NULL);
	struct fathom_maps maps;

	if (idle) {
		*ret = *idle;
		free(idle);
		return FATHOM_OK;
	}
	FATHOM_TRY(s->ops->read_maps(s, &maps, reterr));
	return begin(s, &maps, ret) ? fathom_fail(reterr, FATHOM_E_MEMORY, "", 0, "out of memory")
				    : FATHOM_OK;
}

/* Of so many batches one has the whole map. */
#define PARTS 64

fathom_err fathom_space_batch_begin_part(struct fathom_space *s, const uint64_t *addresses,
					 size_t n, struct fathom_space_batch *ret)
{
	struct fathom_maps maps;

	/* Files that are of no use any more are found with a whole map. */
	if (!s->ops->query_maps || n > FATHOM_MAPS_QUERIES ||
	    atomic_fetch_add_explicit(&s->parts, 1, memory_order_relaxed) % PARTS == PARTS - 1)
		return FATHOM_E_UNSUPPORTED;
	FATHOM_TRY(s->ops->query_maps(s, addresses, n, &maps));
	return begin(s, &maps, ret);
}

/* Notes which open files @maps has mappings of. Under the lock. */
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

/* Whether @f may serve later batches, of which mark_used() has told what a map @is_part says. */
static bool is_wanted(const struct fathom_space *s, const struct fathom_space_file *f, bool is_part)
{
	/* An image of a file is made again: its memory may have become another file's. */
	if (f->is_stale || !f->module || (s->is_live && f->is_image && f->inode))
		return false;
	return f->use == FATHOM_FILE_USED || (is_part && f->use == FATHOM_FILE_UNUSED);
}

/* Gives all files back, and closes those that are of no more use. */
static void release_files(struct fathom_space_batch *b)
{
	struct fathom_space *s = b->space;
	struct fathom_space_file **link = &s->files;
	struct fathom_space_file *useless = NULL;

	pthread_mutex_lock(&s->lock);
	for (uint32_t i = 0; i < b->n_files; i++)
		b->files[i].file->users--;
	mark_used(s, &b->maps);
	while (*link) {
		struct fathom_space_file *f = *link;
		const bool keep = f->users || is_wanted(s, f, b->maps.is_part);

		f->use = FATHOM_FILE_UNUSED;
		if (keep)
			link = &f->next;
		else
			move_open(s, link, &useless);
	}
	pthread_mutex_unlock(&s->lock);
	fathom_space_files_close(useless);
	for (uint32_t i = 0; i < b->n_files; i++)
		fathom_bias_votes_deinit(&b->files[i].votes);
	b->n_files = 0;
}

/* What could not be had now, or was cut, may be had later: then all files are looked for again. */
static void forget_failures(struct fathom_space_batch *b)
{
	bool failed = false;

	for (uint32_t i = 0; i < b->n_files; i++) {
		b->files[i].info = NULL;
		failed |= !b->files[i].file->module ||
			  fathom_module_check(b->files[i].file->module, NULL);
	}
	if (!failed)
		return;
	release_files(b);
	for (size_t i = 0; i < b->maps.n; i++) {
		b->of[i].looked = false;
		b->of[i].opened = 0;
	}
}

/* Keeps @b for the next batch, unless another batch was there first. */
static bool keep(struct fathom_space_batch *b)
{
	struct fathom_space_batch *none = NULL;
	struct fathom_space_batch *idle = malloc(sizeof *idle);

	if (!idle)
		return false;
	forget_failures(b);
	*idle = *b;
	if (atomic_compare_exchange_strong(&b->space->idle, &none, idle))
		return true;
	free(idle);
	return false;
}

static void batch_deinit(struct fathom_space_batch *b)
{
	for (uint32_t i = 0; i < b->n_files; i++)
		fathom_bias_votes_deinit(&b->files[i].votes);
	fathom_maps_deinit(&b->maps);
	free(b->of);
	free(b->files);
}

void fathom_space_batch_end(struct fathom_space_batch *b)
{
	/* The map of what was stored stays what it is. */
	if (!b->space->is_live && keep(b))
		return;
	release_files(b);
	batch_deinit(b);
}

void fathom_space_batch_drop(struct fathom_space *s)
{
	struct fathom_space_batch *idle = atomic_load(&s->idle);

	if (!idle)
		return;
	batch_deinit(idle);
	free(idle);
}

struct fathom_batch_file *fathom_space_batch_file(const struct fathom_space_batch *b, size_t i)
{
	return &b->files[b->of[i].file];
}

static const struct fathom_image *image_of(const struct fathom_space_batch *b, size_t i)
{
	return &fathom_space_batch_file(b, i)->file->module->main->image;
}

/* Whether mapping @i has at @at what its file says of @avma. */
static bool holds(const struct fathom_space_batch *b, size_t i, uint64_t at, uint64_t avma)
{
	return !b->of[i].reason && fathom_bias_holds(image_of(b, i), b->of[i].bias,
						     &b->maps.items[i], at, avma, b->space->page);
}

/*
 * A mapping is of a module when segments fill it, and the module's code is there, too: who only
 * reads a file maps it otherwise.
 */
static fathom_err look_up(struct fathom_space_batch *b, size_t i)
{
	const struct fathom_mapping *m = &b->maps.items[i];
	struct fathom_batch_mapping *of = &b->of[i];

	of->file = FATHOM_NONE;
	of->reason = FATHOM_REASON_UNMAPPED;
	if (!fathom_mapping_is_usable(m))
		return FATHOM_OK;
	of->reason = FATHOM_REASON_NO_FILE;
	if (!fathom_space_may_be_file(b->space, m))
		return FATHOM_OK;
	FATHOM_TRY(use_file(b, i, &of->file));
	of->reason = b->files[of->file].file->reason;
	if (!b->files[of->file].file->module)
		return FATHOM_OK;
	if (b->maps.is_part && fathom_bias_is_disputed(image_of(b, i), m, b->space->page))
		return FATHOM_E_UNSUPPORTED;
	if (!fathom_bias_of_mapping(image_of(b, i), &b->maps, i, b->space->page,
				    &b->files[of->file].votes, &of->bias) ||
	    !holds(b, i, m->start, m->start) || !holds(b, i, m->end - 1, m->end - 1))
		of->reason = FATHOM_REASON_NO_SYMBOLS;
	if (of->reason || m->executable)
		return FATHOM_OK;
	if (b->maps.is_part)
		return FATHOM_E_UNSUPPORTED;
	if (!fathom_bias_is_loaded(image_of(b, i), &b->maps, of->bias))
		of->reason = FATHOM_REASON_NO_SYMBOLS;
	return FATHOM_OK;
}

fathom_err fathom_space_batch_look_up(struct fathom_space_batch *b, size_t i)
{
	const fathom_err err = b->of[i].looked ? FATHOM_OK : look_up(b, i);

	b->of[i].looked = !err;
	return err;
}

bool fathom_space_batch_is_one(const struct fathom_space_batch *b, size_t i, size_t k)
{
	return !b->of[i].reason && !b->of[k].reason && b->of[i].file == b->of[k].file &&
	       b->of[i].bias == b->of[k].bias;
}

/*
 * Memory without a file belongs to a module when it goes on with a segment of it: as .bss behind
 * .data, or as code that was copied to huge pages, with the module's own mappings around it.
 */
static fathom_err find_neighbour(struct fathom_space_batch *b, size_t at, uint64_t avma,
				 size_t *ret)
{
	const size_t before = b->of[at].before;
	const size_t behind = b->of[at].behind;
	const size_t none = b->maps.n;

	if (before < none)
		FATHOM_TRY(fathom_space_batch_look_up(b, before));
	if (behind < none)
		FATHOM_TRY(fathom_space_batch_look_up(b, behind));
	if (before < none && holds(b, before, b->maps.items[before].end - 1, avma))
		*ret = before;
	else if (behind < none && holds(b, behind, b->maps.items[behind].start, avma))
		*ret = behind;
	else if (before < none && behind < none && fathom_space_batch_is_one(b, before, behind) &&
		 fathom_bias_covers(image_of(b, before), b->of[before].bias, avma))
		*ret = before;
	return FATHOM_OK;
}

fathom_err fathom_space_batch_find(struct fathom_space_batch *b, uint64_t avma, size_t *ret,
				   enum fathom_reason *ret_reason)
{
	const size_t at = fathom_maps_at(&b->maps, avma);

	*ret = b->maps.n;
	*ret_reason = FATHOM_REASON_UNMAPPED;
	if (at == b->maps.n)
		return FATHOM_OK;
	FATHOM_TRY(fathom_space_batch_look_up(b, at));
	*ret_reason = b->of[at].reason;
	if (holds(b, at, avma, avma))
		*ret = at;
	else if (!b->maps.items[at].inode && b->of[at].reason == FATHOM_REASON_NO_FILE)
		return b->maps.is_part ? FATHOM_E_UNSUPPORTED : find_neighbour(b, at, avma, ret);
	return FATHOM_OK;
}
