/* SPDX-License-Identifier: MIT */
#include "lines.h"

#include <stdlib.h>

#include "../../safe/base/limits.h"

/* Rows are taken from the program in batches of this many. */
#define BATCH 64

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

/* Reads the directories and files; what is damaged ends the table. */
static fathom_err read_tables(struct fathom_worker *w, const struct fathom_line_program *p,
			      struct fathom_errinfo *reterr)
{
	struct fathom_line_tables t;
	struct fathom_line_entry entry;
	fathom_err err;

	w->files.n = 0;
	w->defined = false;
	w->dirs.n = 0;
	w->files_base = p->encoding.version >= 5 ? 0 : 1;
	fathom_line_tables_init(&t, p);
	while (!(err = fathom_line_tables_next(&t, &entry, reterr))) {
		if (entry.is_file) {
			if (!fathom_array_reserve(&w->files, sizeof entry, 1))
				return FATHOM_E_MEMORY;
			((struct fathom_line_entry *)w->files.data)[w->files.n++] = entry;
		} else {
			if (!fathom_array_reserve(&w->dirs, sizeof entry, 1))
				return FATHOM_E_MEMORY;
			((struct fathom_line_entry *)w->dirs.data)[w->dirs.n++] = entry;
		}
		if (w->files.n > FATHOM_MAX_LINE_FILES)
			return fathom_fail(reterr, FATHOM_E_LIMIT, ".debug_line", 0,
					   "too many files in a line table");
	}
	return err < 0 ? err : FATHOM_OK;
}

bool fathom_lines_define(struct fathom_worker *w, uint32_t file)
{
	struct fathom_cursor c = w->program.opcodes;
	struct fathom_line_entry entry;

	if (file <= w->files.n || w->defined || w->program.encoding.version >= 5)
		return true;
	w->defined = true;
	while (w->files.n < FATHOM_MAX_LINE_FILES &&
	       fathom_line_next_defined(&w->program, &c, &entry)) {
		if (!fathom_array_reserve(&w->files, sizeof entry, 1))
			return false;
		((struct fathom_line_entry *)w->files.data)[w->files.n++] = entry;
	}
	return true;
}

/*
 * Rows of wants that overlap are kept for each of them. Functions hardly ever overlap, so a program
 * of N bytes, which makes less than N rows, has to do with this many.
 */
static size_t max_rows(const struct fathom_line_program *p)
{
	return 65536 + 4 * (size_t)cur_left(&p->opcodes);
}

/* The state of one run over a program. */
struct run {
	struct fathom_worker *w;
	struct fathom_want *wants;
	size_t n;
	size_t first;   /* the first want that may still get rows of this sequence */
	size_t covered; /* wants that are done */
	uint64_t sequence_low;
	struct fathom_line_row prev;
	bool has_prev;
	bool dead; /* the sequence is of code that is not there */
};

/* The first want that reaches beyond @address. */
static size_t first_want(const struct run *run, uint64_t address)
{
	size_t low = 0;
	size_t high = run->n;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (run->wants[mid].max_to <= address)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Gives the stretch from the previous row to @end to the wants it meets. */
static bool add_stretch(struct run *run, uint64_t end)
{
	const struct fathom_line_row *row = &run->prev;

	while (run->first < run->n && run->wants[run->first].max_to <= row->address)
		run->first++;
	for (size_t i = run->first; i < run->n && run->wants[i].from < end; i++) {
		struct fathom_want *want = &run->wants[i];
		struct fathom_want_row *out;

		if (want->to <= row->address)
			continue;
		/*
		 * A want that one sequence holds from its start to its end is done: the stretch
		 * that reaches its end comes last, as rows are sorted.
		 */
		if (!want->covered && want->to <= end && want->from >= run->sequence_low &&
		    want->die_off != FATHOM_NO_DIE) {
			want->covered = true;
			run->covered++;
		}
		if (!fathom_array_reserve(&run->w->rows, sizeof *out, 1))
			return false;
		out = (struct fathom_want_row *)run->w->rows.data + run->w->rows.n++;
		*out = (struct fathom_want_row){
			.address = row->address > want->from ? row->address : want->from,
			.end = end < want->to ? end : want->to,
			.line = row->line,
			.column = row->column,
			.discriminator = row->discriminator,
			.file = row->file,
			.want = (uint32_t)i,
		};
	}
	return true;
}

static bool take_row(struct run *run, const struct fathom_object *code,
		     const struct fathom_line_row *row)
{
	if (!run->has_prev) {
		run->sequence_low = row->address;
		run->dead = !fathom_object_has_code(code, row->address);
		run->first = run->dead ? run->n : first_want(run, row->address);
	} else if (!run->dead && row->address > run->prev.address) {
		if (run->first < run->n && run->wants[run->first].from < row->address &&
		    !add_stretch(run, row->address))
			return false;
	} else if (!run->dead && row->address < run->prev.address) {
		/* Not sorted, as DWARF demands: look again from here. */
		run->first = first_want(run, row->address);
	}
	run->prev = *row;
	run->has_prev = !row->end_sequence;
	return true;
}

static int compare_rows(const void *a, const void *b)
{
	const struct fathom_want_row *x = a;
	const struct fathom_want_row *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

/* Brings the rows of each want together, in the order of their addresses. */
static bool group_rows(struct fathom_worker *w, struct fathom_want *wants, size_t n)
{
	const struct fathom_want_row *rows = w->rows.data;
	struct fathom_want_row *ordered;
	uint32_t sum = 0;

	for (size_t i = 0; i < n; i++)
		wants[i].n_rows = 0;
	for (size_t i = 0; i < w->rows.n; i++)
		wants[rows[i].want].n_rows++;
	for (size_t i = 0; i < n; i++) {
		wants[i].first_row = sum;
		sum += wants[i].n_rows;
		wants[i].n_rows = 0;
	}
	w->row_order.n = 0;
	if (!fathom_array_reserve(&w->row_order, sizeof *ordered, w->rows.n + 1))
		return false;
	ordered = w->row_order.data;
	for (size_t i = 0; i < w->rows.n; i++) {
		struct fathom_want *want = &wants[rows[i].want];

		ordered[want->first_row + want->n_rows++] = rows[i];
	}
	for (size_t i = 0; i < n; i++) {
		struct fathom_want_row *own = ordered + wants[i].first_row;
		bool sorted = true;

		for (uint32_t r = 1; r < wants[i].n_rows; r++)
			sorted &= own[r - 1].address <= own[r].address;
		if (!sorted)
			qsort(own, wants[i].n_rows, sizeof *own, compare_rows);
	}
	return true;
}

fathom_err fathom_lines_collect(struct fathom_worker *w, const struct fathom_unit *unit,
				const struct fathom_object *code, uint64_t line_off,
				struct fathom_want *wants, size_t n, struct fathom_errinfo *reterr)
{
	struct fathom_line_row batch[BATCH];
	struct run run = { .w = w, .wants = wants, .n = n };
	fathom_err err;
	size_t got;

	w->rows.n = 0;
	FATHOM_TRY(fathom_line_program_read(
		unit->skeleton, line_off, unit->header.encoding.address_size, &w->program, reterr));
	err = read_tables(w, &w->program, reterr);
	fathom_line_reader_init(&w->line_reader, &w->program);
	while (run.covered < n) {
		/* Rows before the next want matter only as the one that comes last of them. */
		w->line_reader.dull = run.has_prev && run.first < n ? wants[run.first].from : 0;
		if (run.has_prev && run.dead)
			w->line_reader.dull = UINT64_MAX;
		got = fathom_line_reader_rows(&w->line_reader, batch, BATCH);
		if (!got)
			break;
		for (size_t i = 0; i < got; i++)
			if (!take_row(&run, code, &batch[i]))
				return fathom_fail(reterr, FATHOM_E_MEMORY, "", 0, "out of memory");
		if (w->rows.n > max_rows(&w->program))
			return fathom_fail(reterr, FATHOM_E_LIMIT, ".debug_line", line_off,
					   "too many functions overlap");
	}
	if (!group_rows(w, wants, n))
		return fathom_fail(reterr, FATHOM_E_MEMORY, "", 0, "out of memory");
	return err ? err : fathom_line_reader_error(&w->line_reader, reterr);
}

static bool append(struct fathom_array *pool, const char *text, size_t size)
{
	if (!fathom_array_reserve(pool, 1, size))
		return false;
	if (size)
		memcpy((char *)pool->data + pool->n, text, size);
	pool->n += size;
	return true;
}

/* Appends a directory and a slash; nothing for an empty one. */
static bool append_dir(struct fathom_array *pool, struct fathom_str dir)
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

/* Directory @i as the version counts: before version 5, 0 is the compilation directory. */
static struct fathom_str directory(const struct fathom_worker *w, const struct fathom_unit *unit,
				   uint64_t i)
{
	const uint64_t index = i - w->files_base;

	if (index >= w->dirs.n)
		return (struct fathom_str){ NULL, 0 };
	return fathom_line_entry_name(&w->program, unit,
				      (const struct fathom_line_entry *)w->dirs.data + index);
}

/*
 * The same as GNU's BFD composes it. It takes directory 0 of version 5, which is the compilation
 * directory, for one below it when it is relative; so Debian's files come out as
 * "./malloc/./malloc/malloc.c".
 */
static bool append_gnu_path(struct fathom_worker *w, const struct fathom_unit *unit,
			    struct fathom_str comp_dir, uint32_t file, struct fathom_array *pool)
{
	const uint32_t index = file - w->files_base;
	struct fathom_line_entry entry = { 0 };
	struct fathom_str name = { NULL, 0 };
	struct fathom_str dir;

	if (index < w->files.n) {
		entry = ((const struct fathom_line_entry *)w->files.data)[index];
		name = fathom_line_entry_name(&w->program, unit, &entry);
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

bool fathom_lines_path(struct fathom_worker *w, const struct fathom_unit *unit,
		       struct fathom_str comp_dir, uint32_t file, struct fathom_array *pool)
{
	const uint32_t index = file - w->files_base;
	struct fathom_line_entry entry;
	struct fathom_str name;
	struct fathom_str dir;
	bool is_comp_dir;

	if (w->session->flags & FATHOM_GNU_PATHS)
		return append_gnu_path(w, unit, comp_dir, file, pool);
	if (index >= w->files.n)
		return false;
	entry = ((const struct fathom_line_entry *)w->files.data)[index];
	name = fathom_line_entry_name(&w->program, unit, &entry);
	if (!name.data)
		return false;
	if (is_absolute(name))
		return append(pool, name.data, name.size);
	dir = directory(w, unit, entry.directory);
	/* In version 5, directory 0 is the compilation directory itself. */
	is_comp_dir = w->files_base == 0 && entry.directory == 0 && dir.size;
	if (w->session->flags & FATHOM_RELATIVE_PATHS)
		return (is_comp_dir || append_dir(pool, dir)) && append(pool, name.data, name.size);
	if (!is_absolute(dir) && !is_comp_dir && !append_dir(pool, comp_dir))
		return false;
	return append_dir(pool, dir) && append(pool, name.data, name.size);
}
