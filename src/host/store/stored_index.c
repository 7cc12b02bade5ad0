/* SPDX-License-Identifier: MIT */
/*
 * An index that stays in its store: pieces of it are read when they are first asked for. The more
 * were asked for, the more are read at a time.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "host/base/clock.h"
#include "host/file/object.h"
#include "host/module/cache_read.h"
#include "host/space/elf_file.h"
#include "host/store/piece_cache.h"
#include "host/store/indexes.h"

/* Bytes that are read first: the header, and the table of an index of 30 MB. */
#define FIRST_BYTES ((size_t)16 << 10)

/* Pieces that are read at a time: one more for each so many reads, at most MOST_PIECES. */
#define READS_ALONE 8
#define MOST_PIECES 64

struct stored_index {
	struct fathom_cache_pages pages; /* first */
	struct fathom_store *store;
	char key[FATHOM_CONTAINER_KEY];
	struct fathom_container_header h;
	struct fathom_container_piece *table;
	uint64_t *offs;      /* of the pieces in the file, and its end */
	uint8_t *image;      /* mapped; filled in piece by piece */
	uint64_t image_size; /* of the mapping */
	char *local;         /* pieces on local disk; NULL: none are kept */
	uint8_t *whole;      /* the file, of a store that has no ranges */
	pthread_mutex_t lock;
	_Atomic uint64_t *present; /* a bit for each piece; set under the lock */
	uint32_t n_reads;          /* under the lock, as all that follows */
	uint64_t n_bytes;          /* of the image, counted against the budget */
	_Atomic int err;           /* the first failure: nothing is read after it */
};

static bool is_present(const struct stored_index *x, uint32_t piece)
{
	return atomic_load_explicit(&x->present[piece / 64], memory_order_acquire) >> piece % 64 &
	       1;
}

static void set_present(struct stored_index *x, uint32_t piece)
{
	atomic_fetch_or_explicit(&x->present[piece / 64], UINT64_C(1) << piece % 64,
				 memory_order_release);
}

static int64_t deadline_of(const struct stored_index *x)
{
	return atomic_load_explicit(&x->store->deadline_ns, memory_order_relaxed);
}

/* Returns whether the pieces [@first, @first + @n) stand at @bytes as they were made. */
static bool are_sound(const struct stored_index *x, uint32_t first, uint32_t n,
		      const uint8_t *bytes)
{
	for (uint32_t i = first; i < first + n; i++)
		if (fathom_index_check(bytes + (x->offs[i] - x->offs[first]), x->table[i].size) !=
		    x->table[i].check)
			return false;
	return true;
}

/* Reads @size bytes at @off of the file; FATHOM_E_CORRUPT: there are fewer. */
static fathom_err read_exactly(struct stored_index *x, uint64_t off, void *to, size_t size,
			       struct fathom_errinfo *reterr)
{
	struct fathom_store_backend *b = x->store->backend;
	size_t got = 0;

	FATHOM_TRY(b->ops->read(b, x->key, off, to, size, deadline_of(x), &got, reterr));
	return got == size ? FATHOM_OK
			   : fathom_store_fail(b, x->key, FATHOM_E_CORRUPT,
					       "the index in the store is cut short", reterr);
}

/* Reads the whole file, once, of a store that cannot send a part of it. */
static fathom_err read_whole(struct stored_index *x)
{
	struct fathom_memory *m = &x->store->session->memory;
	fathom_err err;

	if (x->whole)
		return FATHOM_OK;
	if (!fathom_memory_fits(m, x->h.file_size))
		return FATHOM_E_LIMIT;
	x->whole = malloc((size_t)x->h.file_size);
	if (!x->whole)
		return FATHOM_E_MEMORY;
	err = read_exactly(x, 0, x->whole, (size_t)x->h.file_size, NULL);
	if (err) {
		free(x->whole);
		x->whole = NULL;
		return err;
	}
	fathom_memory_count(m, x->h.file_size);
	if (x->local)
		fathom_piece_cache_write(x->local, 0, x->whole, (size_t)x->h.file_size);
	return FATHOM_OK;
}

/* Says why a piece is not what the table says: FATHOM_E_CHANGED if there is another file now. */
static fathom_err why_unsound(struct stored_index *x)
{
	struct fathom_container_header now;
	bool is_there;

	FATHOM_TRY(fathom_store_read_header(x->store->backend, x->key, deadline_of(x), &now,
					    &is_there, NULL));
	return is_there && now.check == x->h.check ? FATHOM_E_CORRUPT : FATHOM_E_CHANGED;
}

/* Reads the pieces [@first, @first + @n) to @to, from local disk or the store. */
static fathom_err read_pieces(struct stored_index *x, uint32_t first, uint32_t n, uint8_t *to)
{
	const uint64_t off = x->offs[first];
	const size_t size = (size_t)(x->offs[first + n] - off);
	fathom_err err = FATHOM_OK;

	if (x->local && fathom_piece_cache_read(x->local, off, to, size) == size &&
	    are_sound(x, first, n, to))
		return FATHOM_OK;
	if (x->store->backend->has_no_ranges)
		err = read_whole(x);
	if (!err && x->whole)
		memcpy(to, x->whole + off, size);
	else if (!err)
		err = read_exactly(x, off, to, size, NULL);
	/* Another host may have replaced or removed it. */
	if (err == FATHOM_E_NOT_FOUND)
		return FATHOM_E_CHANGED;
	if (err == FATHOM_E_CORRUPT || (!err && !are_sound(x, first, n, to)))
		return why_unsound(x);
	if (!err && x->local && !x->whole)
		fathom_piece_cache_write(x->local, off, to, size);
	return err;
}

/* Returns how many pieces from @first on are worth reading now. */
static uint32_t run_of(const struct stored_index *x, uint32_t first)
{
	const uint32_t most = 1 + x->n_reads / READS_ALONE;
	uint32_t n = 1;

	while (n < most && n < MOST_PIECES && first + n < x->h.n_pieces &&
	       !is_present(x, first + n))
		n++;
	return n;
}

/* Fills pieces in from @first on. The lock is held. */
static fathom_err fill_pieces(struct stored_index *x, uint32_t first)
{
	struct fathom_memory *m = &x->store->session->memory;
	const uint32_t n = run_of(x, first);
	const uint64_t added = (uint64_t)n * x->h.piece_size;
	uint8_t *bytes;
	fathom_err err;

	if (!fathom_memory_fits(m, added))
		return FATHOM_E_LIMIT;
	bytes = malloc((size_t)(x->offs[first + n] - x->offs[first]));
	err = bytes ? read_pieces(x, first, n, bytes) : FATHOM_E_MEMORY;
	for (uint32_t i = first; i < first + n && !err; i++) {
		const struct fathom_bytes piece = { bytes + (x->offs[i] - x->offs[first]),
						    x->table[i].size };

		err = fathom_container_unpack(m, &x->h, &x->table[i], i, piece,
					      x->image + (uint64_t)i * x->h.piece_size);
		if (!err)
			set_present(x, i);
	}
	free(bytes);
	if (!err) {
		x->n_reads++;
		x->n_bytes += added;
		fathom_memory_count(m, added);
	}
	return err;
}

/* Fills in the piece with the byte at @off of the image. */
static bool fill_at(struct stored_index *x, uint64_t off)
{
	const uint32_t piece = (uint32_t)(off / x->h.piece_size);
	fathom_err err = FATHOM_OK;

	if (is_present(x, piece))
		return true;
	(void)pthread_mutex_lock(&x->lock);
	if (!is_present(x, piece)) {
		err = atomic_load(&x->err);
		if (!err)
			err = fill_pieces(x, piece);
		if (err)
			atomic_store(&x->err, err);
	}
	(void)pthread_mutex_unlock(&x->lock);
	return !err;
}

/* fathom_index.fill */
static bool fill_page(void *data, uint64_t off)
{
	struct stored_index *x = data;

	return fill_at(x, fathom_container_index_off(&x->h) + off);
}

static fathom_err failure_of(const struct fathom_cache_pages *pages)
{
	return atomic_load(&((const struct stored_index *)pages)->err);
}

static void free_index(struct fathom_cache_pages *pages)
{
	struct stored_index *x = (struct stored_index *)pages;
	struct fathom_memory *m = &x->store->session->memory;

	fathom_memory_uncount(m, x->n_bytes);
	if (x->whole)
		fathom_memory_uncount(m, x->h.file_size);
	if (x->image)
		(void)munmap(x->image, (size_t)x->image_size);
	(void)pthread_mutex_destroy(&x->lock);
	free((void *)x->present);
	free(x->whole);
	free(x->local);
	free(x->table);
	free(x->offs);
	free(x);
}

/* Opening. */

/* Reads the table, of which @first has the first bytes of the file, @n of them. */
static fathom_err read_table(struct stored_index *x, const uint8_t *first, size_t n,
			     struct fathom_errinfo *reterr)
{
	const size_t size = (size_t)x->h.n_pieces * sizeof *x->table;
	const size_t known = n - sizeof x->h < size ? n - sizeof x->h : size;

	x->table = malloc(size);
	x->offs = malloc(((size_t)x->h.n_pieces + 1) * sizeof *x->offs);
	if (!x->table || !x->offs)
		return fathom_fail_memory(reterr);
	memcpy(x->table, first + sizeof x->h, known);
	if (known < size && x->local)
		(void)fathom_piece_cache_read(x->local, sizeof x->h + known,
					      (uint8_t *)x->table + known, size - known);
	if (known == size || x->local) {
		if (fathom_container_check_table(&x->h, x->table, x->offs))
			return FATHOM_OK;
	}
	if (known < size) {
		FATHOM_TRY(read_exactly(x, sizeof x->h + known, (uint8_t *)x->table + known,
					size - known, reterr));
		if (fathom_container_check_table(&x->h, x->table, x->offs)) {
			if (x->local)
				fathom_piece_cache_write(x->local, sizeof x->h, x->table, size);
			return FATHOM_OK;
		}
	}
	return fathom_store_fail(x->store->backend, x->key, FATHOM_E_CORRUPT,
				 "the index in the store is damaged", reterr);
}

static fathom_err reserve(struct stored_index *x, struct fathom_errinfo *reterr)
{
	void *map;

	x->image_size = (uint64_t)x->h.n_pieces * x->h.piece_size;
	if (x->image_size > SIZE_MAX / 2)
		return fathom_fail_memory(reterr);
	map = mmap(NULL, (size_t)x->image_size, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	x->present = calloc(x->h.n_pieces / 64 + 1u, sizeof *x->present);
	x->image = map == MAP_FAILED ? NULL : map;
	return x->image && x->present ? FATHOM_OK : fathom_fail_memory(reterr);
}

/* Reads what is needed before the first look-up. */
static fathom_err begin(struct stored_index *x, struct fathom_bytes build_id,
			struct fathom_errinfo *reterr)
{
	struct fathom_store_backend *b = x->store->backend;
	uint8_t *first = malloc(FIRST_BYTES);
	fathom_err err = first ? FATHOM_OK : fathom_fail_memory(reterr);
	size_t n = 0;

	if (!err)
		err = b->ops->read(b, x->key, 0, first, FIRST_BYTES, deadline_of(x), &n, reterr);
	if (!err)
		err = fathom_container_read_header((struct fathom_bytes){ first, n }, build_id,
						   &x->h, reterr);
	if (err == FATHOM_E_CORRUPT && reterr)
		(void)fathom_store_fail(b, x->key, err, reterr->what, reterr);
	if (!err && b->is_remote)
		x->local = fathom_piece_cache_path(x->store->session, &x->h);
	if (!err)
		err = read_table(x, first, n, reterr);
	if (!err)
		err = reserve(x, reterr);
	free(first);
	return err;
}

/* Opens the skeleton as an object. */
static fathom_err open_skeleton(struct stored_index *x, struct fathom_object **ret,
				struct fathom_errinfo *reterr)
{
	struct fathom_memory *m = &x->store->session->memory;
	const uint64_t size = x->h.skeleton_size;
	struct fathom_file *file;
	uint8_t *pages;
	char *name = NULL;
	fathom_err err;

	for (uint64_t off = 0; off < size; off += x->h.piece_size)
		if (!fill_at(x, off))
			return fathom_store_fail(x->store->backend, x->key, atomic_load(&x->err),
						 "the index in the store cannot be read", reterr);
	pages = fathom_pages_alloc(size);
	if (!pages || asprintf(&name, "%s/%s", x->store->backend->place, x->key) < 0) {
		fathom_pages_free(pages, size);
		return fathom_fail_memory(reterr);
	}
	memcpy(pages, x->image, (size_t)size);
	err = fathom_file_wrap(m, name, pages, size, size, &file);
	free(name);
	if (err) {
		fathom_pages_free(pages, size);
		return fathom_fail_memory(reterr);
	}
	return fathom_object_create(m, file, ret, reterr);
}

/* Makes the index that answers for @main, which it takes over, of @x, which it takes over, too. */
static fathom_err open_target(struct stored_index *x, struct fathom_object *main,
			      struct fathom_search_paths *paths, struct fathom_target **ret,
			      struct fathom_errinfo *reterr)
{
	const struct fathom_bytes file = { x->image + fathom_container_index_off(&x->h),
					   x->h.index_size };
	struct fathom_cache_file *c = calloc(1, sizeof *c);
	_Atomic uint64_t *checked =
		calloc((size_t)fathom_index_checked_words(file.size), sizeof *checked);
	const struct fathom_index_header *h = (const void *)file.data;
	fathom_err err = c && checked ? FATHOM_OK : fathom_fail_memory(reterr);

	if (!err && (!fill_page(x, 0) ||
		     !fathom_index_init_filled(&c->index, file, checked, fill_page, x) ||
		     h->build_id_size != x->h.build_id_size ||
		     memcmp(h->build_id, x->h.build_id, h->build_id_size) != 0)) {
		err = atomic_load(&x->err);
		err = fathom_store_fail(x->store->backend, x->key, err ? err : FATHOM_E_CORRUPT,
					"the index in the store is damaged", reterr);
	}
	if (err) {
		fathom_object_close(main);
		free((void *)checked);
		free(c);
		free_index(&x->pages);
		return err;
	}
	main->build_id = (struct fathom_bytes){ x->h.build_id, x->h.build_id_size };
	x->pages.has_file = x->h.level & FATHOM_STORE_HAS_FILE;
	c->pages = &x->pages;
	return fathom_elf_stored_open(paths, main, c, ret, reterr);
}

fathom_err fathom_stored_index_open(struct fathom_store *s, struct fathom_search_paths *paths,
				    struct fathom_bytes build_id, struct fathom_target **ret,
				    struct fathom_errinfo *reterr)
{
	struct stored_index *x = calloc(1, sizeof *x);
	struct fathom_object *main;
	fathom_err err;

	if (!x)
		return fathom_fail_memory(reterr);
	x->pages = (struct fathom_cache_pages){ .free = free_index, .failure = failure_of };
	x->store = s;
	(void)pthread_mutex_init(&x->lock, NULL);
	err = fathom_container_key(build_id, x->key) ? begin(x, build_id, reterr)
						     : FATHOM_E_NOT_FOUND;
	if (!err)
		err = open_skeleton(x, &main, reterr);
	if (!err)
		return open_target(x, main, paths, ret, reterr);
	free_index(&x->pages);
	return err;
}
