/* SPDX-License-Identifier: MIT */
#include "host/module/index_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/base/path.h"
#include "host/file/file.h"
#include "safe/base/sort.h"

static void fail(struct fathom_index_writer *w, fathom_err err)
{
	if (!w->err) {
		w->err = err;
		w->os_errno = err == FATHOM_E_OS ? errno : 0;
	}
}

/* Copies @n bytes to memory at @off, which is at most its end. */
static void store_at(struct fathom_index_writer *w, const uint8_t *p, size_t n, uint64_t off)
{
	const size_t end = (size_t)off + n;

	if (w->err || !n)
		return;
	if (end > w->memory.n && !fathom_array_room(&w->memory, end - w->memory.n)) {
		fail(w, FATHOM_E_MEMORY);
		return;
	}
	memcpy(w->memory.items + off, p, n);
	w->memory.n = end > w->memory.n ? end : w->memory.n;
}

static void write_at(struct fathom_index_writer *w, const uint8_t *p, size_t n, uint64_t off)
{
	if (!w->path) {
		store_at(w, p, n, off);
		return;
	}
	if (!w->err && !fathom_file_write_at(w->fd, off, p, n))
		fail(w, FATHOM_E_OS);
}

static void flush_buffer(struct fathom_index_writer *w)
{
	write_at(w, w->buffer, w->n_buffer, w->off - w->in_page - w->n_buffer);
	w->n_buffer = 0;
}

/* Notes the checksum of a page, full or the last one, and moves it to the buffer. */
static void end_page(struct fathom_index_writer *w)
{
	const uint32_t check =
		w->has_no_checks ? 0 : (uint32_t)fathom_index_check(w->page, w->in_page);

	if (!w->has_no_checks && !fathom_array_push(&w->checks, check)) {
		fail(w, FATHOM_E_MEMORY);
		return;
	}
	if (w->n_buffer + w->in_page > sizeof w->buffer)
		flush_buffer(w);
	memcpy(w->buffer + w->n_buffer, w->page, w->in_page);
	w->n_buffer += w->in_page;
	w->in_page = 0;
}

static void append(struct fathom_index_writer *w, const void *data, uint64_t n)
{
	const uint8_t *p = data;

	while (n && !w->err) {
		const size_t room = sizeof w->page - w->in_page;
		const size_t now = n < room ? (size_t)n : room;

		memcpy(w->page + w->in_page, p, now);
		w->in_page += now;
		w->off += now;
		p += now;
		n -= now;
		if (w->in_page == sizeof w->page)
			end_page(w);
	}
}

static void align(struct fathom_index_writer *w)
{
	static const uint8_t zeros[8];

	append(w, zeros, (0 - w->off) & 7);
}

void fathom_index_writer_part(struct fathom_index_writer *w, const void *items, uint64_t n,
			      size_t size, struct fathom_index_part *ret)
{
	align(w);
	*ret = (struct fathom_index_part){ w->off, n };
	append(w, items, n * size);
}

static void open_file(struct fathom_index_writer *w, const char *path)
{
	const int number = fathom_path_make_dirs(path, 0700);

	w->path = strdup(path);
	if (!w->path || asprintf(&w->temporary, "%s.XXXXXX", path) < 0) {
		w->temporary = NULL;
		fail(w, FATHOM_E_MEMORY);
		return;
	}
	/* For this user only; with its own name, as other threads may store the same index. */
	w->fd = mkostemp(w->temporary, O_CLOEXEC);
	if (w->fd >= 0)
		return;
	/* The directory is missing: say why it could not be made. */
	if (errno == ENOENT && number)
		errno = number;
	fail(w, FATHOM_E_OS);
}

fathom_err fathom_index_writer_open(struct fathom_index_writer *w, const char *path)
{
	static const uint8_t zeros[FATHOM_INDEX_PAGE];
	static const uint32_t nothing;

	memset(w, 0, sizeof *w);
	w->fd = -1;
	if (path)
		open_file(w, path);
	append(w, zeros, sizeof zeros); /* the header's page, written last */
	w->header.blocks.off = w->off;
	/* Reference 0 means no string, so no string may start there. */
	if (!fathom_array_room(&w->pool, sizeof nothing))
		fail(w, FATHOM_E_MEMORY);
	else
		w->pool.n = sizeof nothing;
	if (w->pool.items)
		memset(w->pool.items, 0, sizeof nothing);
	return w->err;
}

#define FIRST_STRINGS 1024

static struct fathom_str string_at(const struct fathom_index_writer *w, uint32_t reference)
{
	const char *p = w->pool.items + reference;
	uint32_t size;

	memcpy(&size, p, sizeof size);
	return (struct fathom_str){ p + sizeof size, size };
}

/* Returns the slot of @s in the table: it has the reference of @s, or 0 if @s is new. */
static uint32_t *string_place(struct fathom_index_writer *w, struct fathom_str s)
{
	size_t at = (size_t)fathom_index_check(s.data, s.size) & (w->strings_size - 1);

	while (w->strings[at] && !str_equal(string_at(w, w->strings[at]), s))
		at = (at + 1) & (w->strings_size - 1);
	return &w->strings[at];
}

static bool grow_strings(struct fathom_index_writer *w)
{
	const size_t old_size = w->strings_size;
	uint32_t *old = w->strings;

	if ((w->n_strings + 1) * 2 <= old_size)
		return true;
	w->strings_size = old_size ? old_size * 2 : FIRST_STRINGS;
	w->strings = calloc(w->strings_size, sizeof *w->strings);
	if (!w->strings) {
		w->strings = old;
		w->strings_size = old_size;
		return false;
	}
	for (size_t i = 0; i < old_size; i++)
		if (old[i])
			*string_place(w, string_at(w, old[i])) = old[i];
	free(old);
	return true;
}

uint32_t fathom_index_writer_string(struct fathom_index_writer *w, struct fathom_str s)
{
	const size_t need = sizeof s.size + (size_t)s.size + 1;
	uint32_t *place;
	char *p;

	if (!s.size || w->err)
		return 0;
	if (!grow_strings(w) || !fathom_array_room(&w->pool, need) ||
	    w->pool.n + need > UINT32_MAX) {
		fail(w, FATHOM_E_MEMORY);
		return 0;
	}
	place = string_place(w, s);
	if (*place)
		return *place;
	p = w->pool.items + w->pool.n;
	memcpy(p, &s.size, sizeof s.size);
	memcpy(p + sizeof s.size, s.data, s.size);
	p[sizeof s.size + s.size] = '\0';
	*place = (uint32_t)w->pool.n;
	w->pool.n += need;
	w->n_strings++;
	return *place;
}

/* A block, and the bounds of its unit. */
struct claiming {
	const struct fathom_block *block;
	uint64_t unit_off;
	const struct fathom_index_bound *bounds;
	size_t n_bounds;
};

static void claim(struct fathom_index_writer *w, const struct claiming *c, uint64_t from,
		  uint64_t to)
{
	const uint64_t low = c->block->low + from;
	const uint64_t high = c->block->low + to;

	for (size_t i = 0; i < c->n_bounds && c->bounds[i].low < high; i++) {
		const struct fathom_index_bound *b = &c->bounds[i];
		struct fathom_index_claim *out;

		if (b->high <= low)
			continue;
		if (!fathom_array_room(&w->claims, 1)) {
			fail(w, FATHOM_E_MEMORY);
			return;
		}
		out = w->claims.items + w->claims.n++;
		*out = (struct fathom_index_claim){ low > b->low ? low : b->low,
						    high < b->high ? high : b->high, w->off,
						    c->unit_off, c->block->n_nodes != 0 };
	}
}

/* Claims the addresses for which the block has a file or function; returns false if none. */
static bool claim_rows(struct fathom_index_writer *w, const struct claiming *c)
{
	const struct fathom_block *b = c->block;
	const size_t before = w->claims.n;
	uint64_t from = 0;
	bool open = false;

	for (uint32_t i = 0; i < b->n_rows; i++) {
		struct fathom_block_row row;
		bool known;

		fathom_block_get_row(b, i, &row);
		known = row.file != FATHOM_BLOCK_NONE || row.node != FATHOM_BLOCK_NONE;
		if (known == open)
			continue;
		if (open)
			claim(w, c, from, row.off);
		from = row.off;
		open = known;
	}
	if (open)
		claim(w, c, from, b->size);
	return w->claims.n != before;
}

void fathom_index_writer_block(struct fathom_index_writer *w, const struct fathom_block_view *view,
			       uint64_t unit_off, const struct fathom_index_bound *bounds, size_t n)
{
	const struct fathom_block *b = view->block;
	const struct claiming c = { b, unit_off, bounds, n };
	const uint64_t fixed =
		fathom_block_bytes(b->flags, b->n_rows, b->n_nodes, b->n_functions, b->n_files);
	const uint64_t bytes = (fixed + 7) & ~UINT64_C(7);
	struct fathom_block *out;

	align(w);
	if (w->err || !claim_rows(w, &c))
		return;
	w->out.n = 0;
	if (bytes > SIZE_MAX || !fathom_array_room(&w->out, (size_t)bytes)) {
		fail(w, FATHOM_E_MEMORY);
		return;
	}
	out = (void *)w->out.items;
	memset((char *)out + fixed, 0, (size_t)(bytes - fixed));
	memcpy(out, b, (size_t)fixed);
	out->bytes = bytes;
	out->pool_size = 0;
	for (uint32_t i = 0; i < b->n_functions; i++) {
		struct fathom_block_function *f = &fathom_block_functions(out)[i];

		f->name = fathom_index_writer_string(w, fathom_block_string(view, f->name));
		f->linkage = fathom_index_writer_string(w, fathom_block_string(view, f->linkage));
	}
	for (uint32_t i = 0; i < b->n_files; i++) {
		uint32_t *file = &fathom_block_files(out)[i];

		*file = fathom_index_writer_string(w, fathom_block_string(view, *file));
	}
	append(w, out, bytes);
}

/* The sweep that decides between overlapping claims. */
struct sweep {
	const struct fathom_index_claim *claims; /* sorted by low */
	size_t n;
	size_t next;
	struct fathom_size_array active; /* indexes of the claims that cover the position */
};

/*
 * Returns whether @a wins over @b: the first unit wins (units.h says why); in one unit a function
 * wins over code outside functions, then the function that starts last.
 */
static bool claim_wins(const struct fathom_index_claim *a, const struct fathom_index_claim *b)
{
	if (a->unit_off != b->unit_off)
		return a->unit_off < b->unit_off;
	if (a->function != b->function)
		return a->function;
	return a->low > b->low || (a->low == b->low && a->block > b->block);
}

/* Updates the active claims for @pos; returns the winner, or NULL. */
static const struct fathom_index_claim *update(struct sweep *s, uint64_t pos, bool *ret_failed)
{
	const struct fathom_index_claim *best = NULL;
	size_t *active = s->active.items;
	size_t n = 0;

	for (size_t i = 0; i < s->active.n; i++)
		if (s->claims[active[i]].high > pos)
			active[n++] = active[i];
	s->active.n = n;
	for (; s->next < s->n && s->claims[s->next].low <= pos; s->next++) {
		if (s->claims[s->next].high <= pos)
			continue;
		if (!fathom_array_room(&s->active, 1)) {
			*ret_failed = true;
			return NULL;
		}
		active = s->active.items;
		active[s->active.n++] = s->next;
	}
	for (size_t i = 0; i < s->active.n; i++)
		if (!best || claim_wins(&s->claims[active[i]], best))
			best = &s->claims[active[i]];
	return best;
}

/* Returns where the next claim starts or an active one ends; UINT64_MAX at the end. */
static uint64_t next_position(const struct sweep *s)
{
	const size_t *active = s->active.items;
	uint64_t next = s->next < s->n ? s->claims[s->next].low : UINT64_MAX;

	for (size_t i = 0; i < s->active.n; i++)
		if (s->claims[active[i]].high < next)
			next = s->claims[active[i]].high;
	return next;
}

struct segments {
	FATHOM_ARRAY_OF(struct fathom_index_segment);
};

static bool add_segment(struct segments *segments, uint64_t low, uint64_t high,
			const struct fathom_index_claim *c)
{
	struct fathom_index_segment *last = segments->n ? segments->items + segments->n - 1 : NULL;

	if (last && last->high == low && last->block == c->block) {
		last->high = high;
		return true;
	}
	return fathom_array_push(segments,
				 (struct fathom_index_segment){ low, high, c->block, c->unit_off });
}

/* Sorts the claims by their starts; returns false if out of memory. */
static bool sort_claims(struct fathom_index_writer *w, struct fathom_index_claim *sorted)
{
	const struct fathom_index_claim *claims = w->claims.items;
	const size_t n = w->claims.n;
	struct fathom_keyed *keyed = malloc((2 * n + 1) * sizeof *keyed);

	if (!keyed)
		return false;
	for (size_t i = 0; i < n; i++)
		keyed[i] = (struct fathom_keyed){ claims[i].low, i };
	fathom_sort_keyed(keyed, keyed + n, n);
	for (size_t i = 0; i < n; i++)
		sorted[i] = claims[keyed[i].value];
	free(keyed);
	return true;
}

/* Turns the claims into segments without overlap, and writes them. */
static void write_segments(struct fathom_index_writer *w)
{
	struct fathom_index_claim *sorted = malloc((w->claims.n + 1) * sizeof *sorted);
	struct sweep s = { .claims = sorted, .n = w->claims.n };
	struct segments segments = { 0 };
	bool failed = !sorted || !sort_claims(w, sorted);
	uint64_t pos = failed ? UINT64_MAX : next_position(&s);

	while (pos != UINT64_MAX && !failed) {
		const struct fathom_index_claim *winner = update(&s, pos, &failed);
		const uint64_t next = next_position(&s);

		if (winner && !add_segment(&segments, pos, next, winner))
			failed = true;
		pos = next;
	}
	if (failed)
		fail(w, FATHOM_E_MEMORY);
	fathom_index_writer_part(w, segments.items, segments.n, sizeof(struct fathom_index_segment),
				 &w->header.segments);
	fathom_array_free(&segments);
	fathom_array_free(&s.active);
	free(sorted);
}

static void free_writer(struct fathom_index_writer *w)
{
	if (w->fd >= 0)
		close(w->fd);
	free(w->path);
	free(w->temporary);
	free(w->strings);
	fathom_array_free(&w->checks);
	fathom_array_free(&w->pool);
	fathom_array_free(&w->claims);
	fathom_array_free(&w->out);
	fathom_array_free(&w->memory);
}

void fathom_index_writer_abort(struct fathom_index_writer *w)
{
	if (w->fd >= 0)
		(void)unlink(w->temporary);
	free_writer(w);
}

/* Writes the remaining parts, and the header last. */
static void write_rest(struct fathom_index_writer *w)
{
	struct fathom_index_header *h = &w->header;

	write_segments(w);
	if (!h->nameless.off)
		h->nameless.off = w->off; /* none are there */
	fathom_index_writer_part(w, w->pool.items, w->pool.n, 1, &h->pool);
	align(w);
	if (w->in_page)
		end_page(w);
	h->checks = (struct fathom_index_part){ w->off, w->checks.n };
	flush_buffer(w);
	write_at(w, (const void *)w->checks.items, w->checks.n * sizeof(uint32_t), w->off);
	memcpy(h->magic, FATHOM_INDEX_MAGIC, sizeof h->magic);
	h->version = FATHOM_INDEX_VERSION;
	h->byte_order = 0x01020304;
	h->file_size = w->off + w->checks.n * sizeof(uint32_t);
	h->check = fathom_index_check(h, offsetof(struct fathom_index_header, check));
	write_at(w, (const uint8_t *)h, sizeof *h, 0);
	write_at(w, (const uint8_t *)&w->seen, sizeof w->seen, FATHOM_INDEX_SEEN_OFF);
}

fathom_err fathom_index_writer_close_memory(struct fathom_index_writer *w, struct fathom_bytes *ret)
{
	fathom_err err;

	write_rest(w);
	err = w->err;
	if (!err) {
		*ret = (struct fathom_bytes){ (const void *)w->memory.items, w->memory.n };
		w->memory = (struct fathom_bytes_array){ NULL, 0, 0 };
	}
	free_writer(w);
	return err;
}

fathom_err fathom_index_writer_close(struct fathom_index_writer *w)
{
	fathom_err err;

	write_rest(w);
	if (!w->err && rename(w->temporary, w->path))
		fail(w, FATHOM_E_OS);
	err = w->err;
	if (err) {
		fathom_index_writer_abort(w);
		return err;
	}
	free_writer(w);
	return FATHOM_OK;
}
