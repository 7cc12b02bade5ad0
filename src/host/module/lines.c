/* SPDX-License-Identifier: MIT */
#include "host/module/lines.h"

#include <stdlib.h>

#include "host/base/claims.h"
#include "host/module/worker.h"
#include "safe/base/limits.h"
#include "safe/base/sort.h"

/* Rows taken from the program at a time. */
#define BATCH 64

void fathom_lines_deinit(struct fathom_lines *lines)
{
	fathom_array_free(&lines->files);
	fathom_array_free(&lines->dirs);
	fathom_array_free(&lines->sequences);
	fathom_array_free(&lines->rows);
	fathom_array_free(&lines->row_order);
}

static int compare_wants(const void *a, const void *b)
{
	const struct fathom_want *x = a;
	const struct fathom_want *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

void fathom_lines_sort_wants(struct fathom_want *wants, size_t n)
{
	if (n > 1)
		qsort(wants, n, sizeof *wants, compare_wants);
}

/* Reads the directories and files; damage ends the table. */
static fathom_err read_tables(struct fathom_worker *w, const struct fathom_line_program *p,
			      struct fathom_errinfo *reterr)
{
	struct fathom_line_tables t;
	struct fathom_line_entry entry;
	fathom_err err;

	w->lines.files.n = 0;
	w->lines.defined = false;
	w->lines.dirs.n = 0;
	w->lines.files_base = p->encoding.version >= 5 ? 0 : 1;
	fathom_line_tables_init(&t, p);
	while (!(err = fathom_line_tables_next(&t, &entry, reterr))) {
		if (entry.is_file) {
			if (!fathom_array_push(&w->lines.files, entry))
				return FATHOM_E_MEMORY;
		} else {
			if (!fathom_array_push(&w->lines.dirs, entry))
				return FATHOM_E_MEMORY;
		}
		if (w->lines.files.n > FATHOM_MAX_LINE_FILES)
			return fathom_fail(reterr, FATHOM_E_LIMIT, ".debug_line", 0,
					   "too many files in a line table");
	}
	return err < 0 ? err : FATHOM_OK;
}

bool fathom_lines_define(struct fathom_worker *w, uint32_t file)
{
	struct fathom_cursor c = w->lines.program.opcodes;
	struct fathom_line_entry entry;

	if (file <= w->lines.files.n || w->lines.defined || w->lines.program.encoding.version >= 5)
		return true;
	w->lines.defined = true;
	while (w->lines.files.n < FATHOM_MAX_LINE_FILES &&
	       fathom_line_next_defined(&w->lines.program, &c, &entry)) {
		if (!fathom_array_push(&w->lines.files, entry))
			return false;
	}
	return true;
}

/*
 * A row is kept once for each want that it overlaps. Functions hardly ever overlap, so this is
 * enough for a program of N bytes, which makes less than N rows.
 */
static size_t max_rows(const struct fathom_line_program *p)
{
	return 65536 + 4 * (size_t)cur_left(&p->opcodes);
}

/* Sets where rows stop to matter: they must show whether one sequence holds a whole function. */
static void set_ends(struct fathom_want *wants, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct fathom_want *w = &wants[i];

		w->end = w->die_off == FATHOM_NO_DIE || w->to > w->high ? w->to : w->high;
		w->max_end = i && w[-1].max_end > w->end ? w[-1].max_end : w->end;
	}
}

/* The state of one run over a program. */
struct run {
	struct fathom_worker *w;
	struct fathom_want *wants;
	size_t n;
	size_t first;   /* the first want that may still get rows of this sequence */
	size_t covered; /* number of wants that are covered */
	uint64_t sequence_low;
	struct fathom_line_row prev;
	bool has_prev;
	bool has_rows; /* the sequence is in the worker's sequences, as the last one */
	bool dead;     /* the code of the sequence is not in the module */
	bool gnu;      /* ranks sequences as GNU's BFD does */
};

/* Returns the first want that reaches beyond @address. */
static size_t first_want(const struct run *run, uint64_t address)
{
	return FATHOM_BISECT(run->n, i, run->wants[i].max_end <= address);
}

/*
 * Notes that the sequence holds all of @want's function, if the range that ends at @end is its last
 * one: rows are sorted. At address 0, where linkers leave what they dropped, that proves nothing.
 */
static void note_covered(struct run *run, struct fathom_want *want, uint64_t end)
{
	if (want->end > end || want->low < run->sequence_low || want->die_off == FATHOM_NO_DIE ||
	    !run->sequence_low || run->gnu)
		return;
	want->covered = true;
	run->covered++;
}

static struct fathom_line_sequence *last_sequence(const struct run *run)
{
	return run->w->lines.sequences.items + run->w->lines.sequences.n - 1;
}

/* Adds the sequence to those that have rows, unless it is there; returns false if out of memory. */
static bool begin_rows(struct run *run)
{
	struct fathom_line_sequences *a = &run->w->lines.sequences;
	const struct fathom_line_sequence s = { run->sequence_low, UINT64_MAX, 0 };

	if (run->has_rows)
		return true;
	if (a->n >= UINT32_MAX || !fathom_array_push(a, s))
		return false;
	run->has_rows = true;
	return true;
}

static bool add_row(struct run *run, size_t i, uint64_t end)
{
	const struct fathom_want *want = &run->wants[i];
	const struct fathom_line_row *row = &run->prev;
	struct fathom_want_row *out;

	if (!fathom_array_room(&run->w->lines.rows, 1))
		return false;
	out = run->w->lines.rows.items + run->w->lines.rows.n++;
	*out = (struct fathom_want_row){
		.address = row->address > want->from ? row->address : want->from,
		.end = end < want->to ? end : want->to,
		.line = row->line,
		.column = row->column,
		.discriminator = row->discriminator,
		.file = row->file,
		.want = (uint32_t)i,
		.sequence = (uint32_t)run->w->lines.sequences.n - 1,
	};
	return true;
}

/* Adds the range from the previous row to @end to each want that it overlaps. */
static bool add_stretch(struct run *run, uint64_t end)
{
	const struct fathom_line_row *row = &run->prev;

	while (run->first < run->n && run->wants[run->first].max_end <= row->address)
		run->first++;
	for (size_t i = run->first; i < run->n && run->wants[i].from < end; i++) {
		struct fathom_want *want = &run->wants[i];

		if (want->covered || want->end <= row->address)
			continue;
		if (want->to > row->address && !(begin_rows(run) && add_row(run, i, end)))
			return false;
		note_covered(run, want, end);
	}
	return true;
}

static bool take_row(struct run *run, const struct fathom_object *code,
		     const struct fathom_line_row *row)
{
	if (!run->has_prev) {
		run->sequence_low = row->address;
		run->has_rows = false;
		run->dead = !fathom_object_has_code(code, row->address);
		run->first = run->dead ? run->n : first_want(run, row->address);
	} else if (!run->dead && row->address > run->prev.address) {
		if (run->first < run->n && run->wants[run->first].from < row->address &&
		    !add_stretch(run, row->address))
			return false;
	} else if (!run->dead && row->address < run->prev.address) {
		/* DWARF demands sorted rows; these are not: look again from here. */
		run->first = first_want(run, row->address);
	}
	run->prev = *row;
	run->has_prev = !row->end_sequence;
	if (row->end_sequence && run->has_rows)
		last_sequence(run)->high = row->address;
	return true;
}

static int compare_rows(const void *a, const void *b)
{
	const struct fathom_want_row *x = a;
	const struct fathom_want_row *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

/* BFD's order of overlapping sequences: the last one of these counts. */
static int compare_gnu(const void *a, const void *b)
{
	const struct fathom_line_sequence *x = a;
	const struct fathom_line_sequence *y = b;

	if (x->low != y->low)
		return x->low > y->low ? -1 : 1;
	if (x->high != y->high)
		return x->high < y->high ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

/* Ranks the sequences: the first one in the table counts most, or BFD's order decides. */
static bool order_sequences(struct fathom_worker *w)
{
	struct fathom_line_sequence *s = w->lines.sequences.items;
	const uint32_t n = (uint32_t)w->lines.sequences.n;
	struct fathom_line_sequence *sorted;

	if (w->lines.sequences_ordered)
		return true;
	for (uint32_t i = 0; i < n; i++)
		s[i].order = n - 1 - i;
	w->lines.sequences_ordered = true;
	if (!(w->session->compat & FATHOM_GNU_PATHS))
		return true;
	sorted = malloc(n * sizeof *sorted);
	if (!sorted)
		return false;
	memcpy(sorted, s, n * sizeof *sorted);
	for (uint32_t i = 0; i < n; i++)
		sorted[i].order = i;
	qsort(sorted, n, sizeof *sorted, compare_gnu);
	for (uint32_t i = 0; i < n; i++)
		s[sorted[i].order].order = i;
	free(sorted);
	return true;
}

/* Returns how much @s counts for @want; among equals the order of the sequences decides. */
static uint64_t fit(const struct fathom_worker *w, const struct fathom_want *want,
		    const struct fathom_line_sequence *s)
{
	if (w->session->compat & FATHOM_GNU_PATHS || want->die_off == FATHOM_NO_DIE ||
	    s->low > want->low || s->high < want->high)
		return 0;
	return s->low || s->high == want->high ? 2 : 1;
}

/* Fills in @keyed and @claims: the rows of @want, ranked by how much they count. */
static void rank_rows(const struct fathom_worker *w, const struct fathom_want *want,
		      const struct fathom_want_row *rows, struct fathom_keyed *keyed,
		      struct fathom_claim *claims)
{
	const struct fathom_line_sequence *sequences = w->lines.sequences.items;
	const uint32_t n = want->n_rows;

	for (uint32_t i = 0; i < n; i++) {
		const struct fathom_line_sequence *s = &sequences[rows[i].sequence];

		keyed[i] = (struct fathom_keyed){ fit(w, want, s) << 32 | s->order, i };
	}
	fathom_sort_keyed(keyed, keyed + n, n);
	for (uint32_t i = 0; i < n; i++) {
		const struct fathom_want_row *row = &rows[keyed[i].value];

		claims[i] = (struct fathom_claim){ row->address, row->end, i };
	}
}

/* Removes the overlaps between the rows of @want; appends what remains to row_order. */
static bool lay_over(struct fathom_worker *w, struct fathom_want *want)
{
	const size_t n = want->n_rows;
	struct fathom_keyed *keyed = malloc(2 * n * sizeof *keyed);
	struct fathom_claim *claims = malloc(n * sizeof *claims);
	struct fathom_claim *left = NULL;
	struct fathom_want_row *out;
	size_t n_left = 0;
	bool done = keyed && claims && order_sequences(w) &&
		    fathom_array_room(&w->lines.row_order, 2 * n);

	if (done) {
		const struct fathom_want_row *rows = w->lines.row_order.items + want->first_row;

		rank_rows(w, want, rows, keyed, claims);
		done = fathom_claims_flatten(claims, n, &left, &n_left) == FATHOM_OK;
		out = w->lines.row_order.items + w->lines.row_order.n;
		for (size_t i = 0; i < n_left; i++) {
			out[i] = rows[keyed[left[i].order].value];
			out[i].address = left[i].start;
			out[i].end = left[i].end;
		}
	}
	if (done) {
		want->first_row = (uint32_t)w->lines.row_order.n;
		want->n_rows = (uint32_t)n_left;
		w->lines.row_order.n += n_left;
	}
	free(keyed);
	free(claims);
	free(left);
	return done;
}

/* Sorts the rows of @want by address and removes their overlaps. */
static bool sort_rows(struct fathom_worker *w, struct fathom_want *want)
{
	struct fathom_want_row *own = w->lines.row_order.items + want->first_row;
	bool apart = true;

	/* Nearly always they are sorted already. */
	for (uint32_t r = 1; r < want->n_rows; r++)
		apart &= own[r - 1].end <= own[r].address;
	if (apart)
		return true;
	qsort(own, want->n_rows, sizeof *own, compare_rows);
	apart = true;
	for (uint32_t r = 1; r < want->n_rows; r++)
		apart &= own[r - 1].end <= own[r].address;
	return apart || lay_over(w, want);
}

/* Groups the rows by want, sorted by address. */
static bool group_rows(struct fathom_worker *w, struct fathom_want *wants, size_t n)
{
	const struct fathom_want_row *rows = w->lines.rows.items;
	struct fathom_want_row *ordered;
	uint32_t sum = 0;

	for (size_t i = 0; i < n; i++)
		wants[i].n_rows = 0;
	for (size_t i = 0; i < w->lines.rows.n; i++)
		wants[rows[i].want].n_rows++;
	for (size_t i = 0; i < n; i++) {
		wants[i].first_row = sum;
		sum += wants[i].n_rows;
		wants[i].n_rows = 0;
	}
	w->lines.row_order.n = 0;
	if (!fathom_array_room(&w->lines.row_order, w->lines.rows.n + 1))
		return false;
	ordered = w->lines.row_order.items;
	for (size_t i = 0; i < w->lines.rows.n; i++) {
		struct fathom_want *want = &wants[rows[i].want];

		ordered[want->first_row + want->n_rows++] = rows[i];
	}
	w->lines.row_order.n = w->lines.rows.n;
	for (size_t i = 0; i < n; i++)
		if (!sort_rows(w, &wants[i]))
			return false;
	return true;
}

fathom_err fathom_lines_collect(struct fathom_worker *w, const struct fathom_unit *unit,
				const struct fathom_object *code, uint64_t line_off,
				struct fathom_want *wants, size_t n, struct fathom_errinfo *reterr)
{
	struct fathom_line_row batch[BATCH];
	struct run run = {
		.w = w, .wants = wants, .n = n, .gnu = (w->session->compat & FATHOM_GNU_PATHS) != 0
	};
	fathom_err err;
	size_t got;

	w->lines.rows.n = 0;
	w->lines.sequences.n = 0;
	w->lines.sequences_ordered = false;
	set_ends(wants, n);
	FATHOM_TRY(fathom_line_program_read(unit->skeleton, line_off,
					    unit->header.encoding.address_size, &w->lines.program,
					    reterr));
	err = read_tables(w, &w->lines.program, reterr);
	fathom_line_reader_init(&w->lines.reader, &w->lines.program);
	while (run.covered < n) {
		/* Of the rows before the next want only the last one matters. */
		w->lines.reader.dull = run.has_prev && run.first < n ? wants[run.first].from : 0;
		if (run.has_prev && run.dead)
			w->lines.reader.dull = UINT64_MAX;
		got = fathom_line_reader_rows(&w->lines.reader, batch, BATCH);
		if (!got)
			break;
		for (size_t i = 0; i < got; i++)
			if (!take_row(&run, code, &batch[i]))
				return fathom_fail_memory(reterr);
		if (!fathom_keeps_pace(&w->pace))
			return FATHOM_E_CANCELLED;
		if (w->lines.rows.n > max_rows(&w->lines.program))
			return fathom_fail(reterr, FATHOM_E_LIMIT, ".debug_line", line_off,
					   "too many functions overlap");
	}
	if (run.has_prev && run.has_rows)
		last_sequence(&run)->high = run.prev.address;
	if (!group_rows(w, wants, n))
		return fathom_fail_memory(reterr);
	return err ? err : fathom_line_reader_error(&w->lines.reader, reterr);
}

static bool append(struct fathom_bytes_array *pool, const char *text, size_t size)
{
	if (!fathom_array_room(pool, size))
		return false;
	if (size)
		memcpy(pool->items + pool->n, text, size);
	pool->n += size;
	return true;
}

/* Appends a directory and a slash; nothing if it is empty. */
static bool append_dir(struct fathom_bytes_array *pool, struct fathom_str dir)
{
	if (!dir.size)
		return true;
	return append(pool, dir.data, dir.size) &&
	       (dir.data[dir.size - 1] == '/' || append(pool, "/", 1));
}

static bool is_absolute(struct fathom_str path)
{
	return path.size && path.data[0] == '/';
}

/* Returns directory @i. Before version 5, 0 is the compilation directory and not in the table. */
static struct fathom_str directory(const struct fathom_worker *w, const struct fathom_unit *unit,
				   uint64_t i)
{
	const uint64_t index = i - w->lines.files_base;

	if (index >= w->lines.dirs.n)
		return (struct fathom_str){ NULL, 0 };
	return fathom_line_entry_name(&w->lines.program, unit, w->lines.dirs.items + index);
}

/*
 * Composes the path as GNU's BFD does. BFD takes a relative directory 0 of version 5, which is the
 * compilation directory, for one below it; so Debian's files come out as
 * "./malloc/./malloc/malloc.c".
 */
static bool append_gnu_path(struct fathom_worker *w, const struct fathom_unit *unit,
			    struct fathom_str comp_dir, uint32_t file,
			    struct fathom_bytes_array *pool)
{
	const uint32_t index = file - w->lines.files_base;
	struct fathom_line_entry entry = { 0 };
	struct fathom_str name = { NULL, 0 };
	struct fathom_str dir;

	if (index < w->lines.files.n) {
		entry = w->lines.files.items[index];
		name = fathom_line_entry_name(&w->lines.program, unit, &entry);
	}
	if (!name.size)
		return append(pool, "<unknown>", sizeof "<unknown>" - 1);
	if (is_absolute(name))
		return append(pool, name.data, name.size);
	dir = directory(w, unit, entry.directory);
	if (comp_dir.size && !is_absolute(dir) &&
	    (!append(pool, comp_dir.data, comp_dir.size) || !append(pool, "/", 1)))
		return false;
	if (dir.size && (!append(pool, dir.data, dir.size) || !append(pool, "/", 1)))
		return false;
	return append(pool, name.data, name.size);
}

static bool append_path(struct fathom_worker *w, const struct fathom_unit *unit,
			struct fathom_str comp_dir, uint32_t file, bool is_relative,
			struct fathom_bytes_array *pool)
{
	const uint32_t index = file - w->lines.files_base;
	struct fathom_line_entry entry;
	struct fathom_str name;
	struct fathom_str dir;
	bool is_comp_dir;

	if (w->session->compat & FATHOM_GNU_PATHS)
		return append_gnu_path(w, unit, comp_dir, file, pool);
	if (index >= w->lines.files.n)
		return false;
	entry = w->lines.files.items[index];
	name = fathom_line_entry_name(&w->lines.program, unit, &entry);
	if (!name.data)
		return false;
	if (is_absolute(name))
		return append(pool, name.data, name.size);
	dir = directory(w, unit, entry.directory);
	/* In version 5, directory 0 is the compilation directory itself. */
	is_comp_dir = w->lines.files_base == 0 && entry.directory == 0 && dir.size;
	if (is_relative)
		return (is_comp_dir || append_dir(pool, dir)) && append(pool, name.data, name.size);
	if (!is_absolute(dir) && !is_comp_dir && !append_dir(pool, comp_dir))
		return false;
	return append_dir(pool, dir) && append(pool, name.data, name.size);
}

bool fathom_lines_path(struct fathom_worker *w, const struct fathom_unit *unit,
		       struct fathom_str comp_dir, uint32_t file, struct fathom_bytes_array *pool)
{
	return append_path(w, unit, comp_dir, file,
			   (w->session->compat & FATHOM_RELATIVE_PATHS) != 0, pool);
}

bool fathom_lines_whole_path(struct fathom_worker *w, const struct fathom_unit *unit,
			     struct fathom_str comp_dir, uint32_t file,
			     struct fathom_bytes_array *pool)
{
	return append_path(w, unit, comp_dir, file, false, pool);
}

/* Returns whether @p states texts or MD5s of its files: the first entry shows it for all. */
static bool has_texts(const struct fathom_line_program *p)
{
	struct fathom_line_tables t;
	struct fathom_line_entry entry;

	fathom_line_tables_init(&t, p);
	while (!fathom_line_tables_next(&t, &entry, NULL))
		if (entry.is_file)
			return t.source.form || t.md5.form;
	return false;
}

/* Returns whether @entry, number @file of the table read last, has the path @path. */
static bool has_path(struct fathom_worker *w, const struct fathom_unit *unit,
		     struct fathom_str comp_dir, const struct fathom_line_entry *entry,
		     uint32_t file, struct fathom_str path)
{
	const struct fathom_str name = fathom_line_entry_name(&w->lines.program, unit, entry);
	const struct fathom_bytes_array *pool = &w->pool;

	/* Every path ends with the name. */
	if (!name.size || name.size > path.size ||
	    memcmp(path.data + path.size - name.size, name.data, name.size) != 0)
		return false;
	w->pool.n = 0;
	return fathom_lines_path(w, unit, comp_dir, file, &w->pool) && pool->n == path.size &&
	       memcmp(pool->items, path.data, path.size) == 0;
}

fathom_err fathom_lines_source(struct fathom_worker *w, const struct fathom_unit *unit,
			       struct fathom_str comp_dir, uint64_t line_off,
			       struct fathom_str path, struct fathom_line_text *ret)
{
	struct fathom_line_text text = { .md5 = NULL };
	struct fathom_line_tables t;
	struct fathom_line_entry entry;
	uint32_t file;

	if (fathom_line_program_read(unit->skeleton, line_off, unit->header.encoding.address_size,
				     &w->lines.program, NULL) ||
	    !has_texts(&w->lines.program))
		return FATHOM_END;
	if (read_tables(w, &w->lines.program, NULL) == FATHOM_E_MEMORY)
		return FATHOM_E_MEMORY;
	file = w->lines.files_base;
	fathom_line_tables_init(&t, &w->lines.program);
	while (!fathom_line_tables_next(&t, &entry, NULL)) {
		if (!entry.is_file)
			continue;
		if (!has_path(w, unit, comp_dir, &entry, file++, path))
			continue;
		text.embedded = fathom_line_tables_source(&t, unit);
		text.md5 = text.md5 ? text.md5 : fathom_line_tables_md5(&t);
		if (text.embedded.size || !t.source.form)
			break;
	}
	*ret = text;
	return text.embedded.size || text.md5 ? FATHOM_OK : FATHOM_END;
}
