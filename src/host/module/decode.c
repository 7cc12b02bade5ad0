/* SPDX-License-Identifier: MIT */
#include "host/module/decode.h"

#include <stdlib.h>

#include "host/file/file.h"
#include "host/module/lines.h"
#include "host/module/module.h"
#include "host/module/origin.h"
#include "host/module/worker.h"
#include "safe/base/limits.h"
#include "safe/base/sort.h"
#include "safe/dwarf/ranges.h"

/* The most inlined calls of one function that may cover one address. */
#define MAX_ACTIVE 4096

/* One block being built. */
struct build {
	struct fathom_worker *w;
	struct fathom_debug *d;
	const struct fathom_open_unit *u;
	const struct fathom_unit_data *data;
	const struct fathom_want *want;
	uint64_t die_off;     /* of the function */
	uint64_t ranges_left; /* entries of range lists that may still be read */
	fathom_err lines_err; /* why rows may be missing */
};

#define NODES(w) ((w)->blocks.nodes.items)

void fathom_block_scratch_deinit(struct fathom_block_scratch *scratch)
{
	fathom_array_free(&scratch->intervals);
	fathom_array_free(&scratch->sorted);
	fathom_array_free(&scratch->active);
	fathom_array_free(&scratch->keyed);
	fathom_array_free(&scratch->calls);
	fathom_array_free(&scratch->nodes);
	fathom_array_free(&scratch->folded);
	fathom_array_free(&scratch->local_nodes);
	fathom_array_free(&scratch->local_names);
	fathom_array_free(&scratch->local_files);
	fathom_array_free(&scratch->out_rows);
	fathom_array_free(&scratch->out_functions);
	fathom_array_free(&scratch->out_declared);
	fathom_array_free(&scratch->out_files);
}

static uint32_t attr_u32(const struct fathom_die *die, enum fathom_slot slot)
{
	const struct fathom_attr *a = fathom_die_attr(die, slot);

	return a && a->value <= UINT32_MAX ? (uint32_t)a->value : 0;
}

/* Adds a node. Its call_file is one of the line table, its function one of the worker's names. */
static bool add_node(struct build *b, const struct fathom_die *die, uint32_t parent)
{
	struct fathom_worker *w = b->w;
	const uint32_t names = fathom_origin_names(w, b->d, &b->u->unit, die);
	struct fathom_block_node *node;

	if (names == FATHOM_NO_NAMES || w->blocks.nodes.n >= UINT32_MAX / 2 ||
	    !fathom_array_room(&w->blocks.nodes, 1))
		return false;
	node = NODES(w) + w->blocks.nodes.n++;
	*node = (struct fathom_block_node){
		.parent = parent,
		.function = names,
		.call_file = fathom_die_attr(die, FATHOM_AT_CALL_FILE)
				     ? attr_u32(die, FATHOM_AT_CALL_FILE)
				     : FATHOM_BLOCK_NONE,
		.call_line = attr_u32(die, FATHOM_AT_CALL_LINE),
		.call_column = attr_u32(die, FATHOM_AT_CALL_COLUMN),
		.discriminator = attr_u32(die, FATHOM_AT_DISCRIMINATOR),
		.start = UINT64_MAX,
	};
	return true;
}

static bool wants_declarations(const struct fathom_worker *w)
{
	return w->session->compat & FATHOM_DECLARATIONS;
}

/* Returns where @die says that its code starts, or FATHOM_BLOCK_NO_START. */
static uint64_t stated_start(const struct build *b, const struct fathom_die *die)
{
	uint64_t low;

	if (!fathom_unit_address(&b->u->unit, fathom_die_attr(die, FATHOM_AT_LOW_PC), &low))
		return FATHOM_BLOCK_NO_START;
	return fathom_dwarf_address(b->u->unit.skeleton, low) - b->want->low;
}

/*
 * Adds the parts of an inlined call that lie inside the want. Sets *@ret_outside if the call has
 * code, but none of it inside.
 */
static fathom_err add_intervals(struct build *b, const struct fathom_die *die, uint32_t node,
				bool *ret_outside, struct fathom_errinfo *reterr)
{
	const struct fathom_want *want = b->want;
	struct fathom_worker *w = b->w;
	struct fathom_ranges r;
	uint64_t low;
	uint64_t high;
	fathom_err err;

	*ret_outside = false;
	if (!fathom_ranges_of_die(&r, &b->u->unit, die, &b->ranges_left))
		return FATHOM_OK;
	*ret_outside = true;
	while (!(err = fathom_ranges_next(&r, &low, &high, reterr))) {
		if (low < want->high && low >= want->low && low - want->low < NODES(w)[node].start)
			NODES(w)[node].start = low - want->low;
		low = low > want->from ? low : want->from;
		high = high < want->to ? high : want->to;
		if (low >= high)
			continue;
		*ret_outside = false;
		if (!fathom_array_push(&w->blocks.intervals,
				       (struct fathom_syscall_range){ low, high, node }))
			return FATHOM_E_MEMORY;
	}
	if (wants_declarations(w))
		NODES(w)[node].start = stated_start(b, die);
	/* The compiler moved this inlined call out of the function's own range. */
	else if (NODES(w)[node].start == UINT64_MAX)
		NODES(w)[node].start = 0;
	return err < 0 ? err : FATHOM_OK;
}

/* Returns whether a lexical block has code, but none of it inside the want. */
static bool is_outside(struct build *b, const struct fathom_die *die)
{
	struct fathom_ranges r;
	uint64_t low;
	uint64_t high;

	if (!fathom_ranges_of_die(&r, &b->u->unit, die, &b->ranges_left))
		return false;
	while (!fathom_ranges_next(&r, &low, &high, NULL))
		if (low < b->want->to && high > b->want->from)
			return false;
	return true;
}

/* Closes the calls at depth @lowest and deeper: the walk has left them. */
static void close_calls(struct fathom_worker *w, uint32_t lowest)
{
	const struct fathom_inlined_call *calls = w->blocks.calls.items;

	while (w->blocks.calls.n && calls[w->blocks.calls.n - 1].depth >= lowest)
		w->blocks.calls.n--;
}

/* Reads one inlined call, at @depth below the function. */
static fathom_err add_call(struct build *b, const struct fathom_die *die, uint32_t depth,
			   bool *ret_outside, struct fathom_errinfo *reterr)
{
	struct fathom_worker *w = b->w;
	const struct fathom_inlined_call *calls = w->blocks.calls.items;
	const uint32_t node = (uint32_t)w->blocks.nodes.n;
	const uint32_t parent = w->blocks.calls.n ? calls[w->blocks.calls.n - 1].node : 0;

	if (!add_node(b, die, parent) ||
	    !fathom_array_push(&w->blocks.calls, (struct fathom_inlined_call){ depth, node }))
		return FATHOM_E_MEMORY;
	return add_intervals(b, die, node, ret_outside, reterr);
}

/*
 * Reads the function at b->die_off as node 0, and the calls inlined into it. Skips the children of
 * an entry outside the want: their code is part of that entry's.
 */
static fathom_err read_function(struct build *b, struct fathom_errinfo *reterr)
{
	const uint32_t kinds = FATHOM_DIE_BIT(FATHOM_DIE_FUNCTION) |
			       FATHOM_DIE_BIT(FATHOM_DIE_INLINED) |
			       FATHOM_DIE_BIT(FATHOM_DIE_BLOCK);
	struct fathom_die_reader r;
	struct fathom_die die;
	struct fathom_block_node *own;
	uint32_t passed = UINT32_MAX; /* depth of the entry whose children are skipped */
	uint32_t depth;
	fathom_err err;

	b->w->blocks.nodes.n = 0;
	b->w->blocks.intervals.n = 0;
	b->w->blocks.calls.n = 0;
	fathom_die_reader_init(&r, &b->u->unit, b->die_off);
	r.passing = true;
	err = fathom_die_next(&r, kinds, &die, &depth, reterr);
	if (err || die.off != b->die_off)
		return err < 0 ? err : FATHOM_E_CORRUPT;
	if (!add_node(b, &die, FATHOM_BLOCK_NONE))
		return FATHOM_E_MEMORY;
	own = NODES(b->w);
	own->start = wants_declarations(b->w) ? stated_start(b, &die) : 0;
	while (!(err = fathom_die_next(&r, kinds, &die, &depth, reterr))) {
		bool pass = die.kind == FATHOM_DIE_FUNCTION;

		if (!fathom_keeps_pace(&b->w->pace))
			return FATHOM_E_CANCELLED;
		close_calls(b->w, r.lowest);
		if (r.lowest <= passed)
			passed = UINT32_MAX;
		if (passed != UINT32_MAX)
			continue;
		if (die.kind == FATHOM_DIE_INLINED)
			FATHOM_TRY(add_call(b, &die, depth, &pass, reterr));
		else if (die.kind == FATHOM_DIE_BLOCK)
			pass = is_outside(b, &die);
		if (pass && !fathom_die_skip_children(&r, &die))
			passed = depth;
	}
	return err < 0 ? err : FATHOM_OK;
}

/* Sorts the intervals by their starts; equal ones stay in the order of their entries. */
static bool sort_intervals(struct fathom_worker *w)
{
	const size_t n = w->blocks.intervals.n;
	struct fathom_keyed *keyed;

	w->blocks.keyed.n = 0;
	w->blocks.sorted.n = 0;
	if (!fathom_array_room(&w->blocks.keyed, 2 * n) || !fathom_array_room(&w->blocks.sorted, n))
		return false;
	keyed = w->blocks.keyed.items;
	for (size_t i = 0; i < n; i++)
		keyed[i] = (struct fathom_keyed){ w->blocks.intervals.items[i].low, i };
	fathom_sort_keyed(keyed, keyed + n, n);
	for (size_t i = 0; i < n; i++)
		w->blocks.sorted.items[i] = w->blocks.intervals.items[keyed[i].value];
	w->blocks.sorted.n = n;
	return true;
}

/* The state of the sweep that lays inlined calls over rows. */
struct sweep {
	const struct fathom_want_row *rows;
	uint32_t n_rows;
	uint32_t row;    /* the last one that starts at or before pos */
	size_t interval; /* the first one that starts after pos */
	uint64_t pos;
	uint64_t end;
	uint32_t no_call; /* node where no call is: 0, or FATHOM_BLOCK_NONE */
};

/*
 * Updates the calls that cover the position and returns the one whose entry comes last: the
 * innermost one, where calls nest.
 */
static fathom_err update_calls(struct fathom_worker *w, struct sweep *s, uint32_t *ret_node)
{
	const struct fathom_syscall_range *sorted = w->blocks.sorted.items;
	struct fathom_syscall_range *active = w->blocks.active.items;
	size_t n = 0;

	for (size_t i = 0; i < w->blocks.active.n; i++)
		if (active[i].high > s->pos)
			active[n++] = active[i];
	w->blocks.active.n = n;
	for (; s->interval < w->blocks.sorted.n && sorted[s->interval].low <= s->pos;
	     s->interval++) {
		if (sorted[s->interval].high <= s->pos)
			continue;
		if (w->blocks.active.n >= MAX_ACTIVE)
			return FATHOM_E_LIMIT;
		if (!fathom_array_room(&w->blocks.active, 1))
			return FATHOM_E_MEMORY;
		active = w->blocks.active.items;
		active[w->blocks.active.n++] = sorted[s->interval];
	}
	*ret_node = s->no_call;
	for (size_t i = 0; i < w->blocks.active.n; i++)
		if (*ret_node == FATHOM_BLOCK_NONE || active[i].node > *ret_node)
			*ret_node = active[i].node;
	return FATHOM_OK;
}

/* Returns the row that covers the position, or NULL. */
static const struct fathom_want_row *update_row(struct sweep *s)
{
	while (s->row + 1 < s->n_rows && s->rows[s->row + 1].address <= s->pos)
		s->row++;
	if (s->row >= s->n_rows || s->rows[s->row].address > s->pos ||
	    s->rows[s->row].end <= s->pos)
		return NULL;
	return &s->rows[s->row];
}

static uint64_t min_beyond(uint64_t best, uint64_t candidate, uint64_t pos)
{
	return candidate > pos && candidate < best ? candidate : best;
}

/* Returns the next position where a row or a call starts or ends. */
static uint64_t next_position(const struct fathom_worker *w, const struct sweep *s)
{
	const struct fathom_syscall_range *active = w->blocks.active.items;
	uint64_t next = s->end;

	if (s->interval < w->blocks.sorted.n)
		next = min_beyond(next, w->blocks.sorted.items[s->interval].low, s->pos);
	for (size_t i = 0; i < w->blocks.active.n; i++)
		next = min_beyond(next, active[i].high, s->pos);
	if (s->row < s->n_rows) {
		next = min_beyond(next, s->rows[s->row].address, s->pos);
		next = min_beyond(next, s->rows[s->row].end, s->pos);
	}
	if (s->row + 1 < s->n_rows)
		next = min_beyond(next, s->rows[s->row + 1].address, s->pos);
	return next;
}

static bool same_row(const struct fathom_block_row *a, const struct fathom_block_row *b)
{
	return a->line == b->line && a->column == b->column && a->file == b->file &&
	       a->node == b->node && a->discriminator == b->discriminator;
}

static bool emit_row(struct fathom_worker *w, uint64_t off, const struct fathom_want_row *line,
		     uint32_t node)
{
	struct fathom_block_row row = { .off = off, .file = FATHOM_BLOCK_NONE, .node = node };
	struct fathom_block_row *out = w->blocks.out_rows.items;

	if (line) {
		row.file = line->file;
		row.line = line->line;
		row.column = line->column;
		row.discriminator = line->discriminator;
	}
	if (w->blocks.out_rows.n && same_row(&out[w->blocks.out_rows.n - 1], &row))
		return true;
	return fathom_array_push(&w->blocks.out_rows, row);
}

/*
 * Fills out_rows from @from to @to, with offsets from @low. Their files are still numbers of the
 * line table.
 */
static fathom_err lay_out(struct build *b, uint64_t low, uint64_t from, uint64_t to)
{
	struct fathom_worker *w = b->w;
	struct sweep s = {
		.rows = w->lines.row_order.items + b->want->first_row,
		.n_rows = b->want->n_rows,
		.pos = from,
		.end = to,
		.no_call = w->blocks.nodes.n ? 0 : FATHOM_BLOCK_NONE,
	};

	w->blocks.out_rows.n = 0;
	w->blocks.active.n = 0;
	if (!sort_intervals(w))
		return FATHOM_E_MEMORY;
	while (s.pos < s.end) {
		uint32_t node;

		if (!fathom_keeps_pace(&w->pace))
			return FATHOM_E_CANCELLED;
		FATHOM_TRY(update_calls(w, &s, &node));
		if (!emit_row(w, s.pos - low, update_row(&s), node))
			return FATHOM_E_MEMORY;
		s.pos = next_position(w, &s);
	}
	return FATHOM_OK;
}

/* Returns the first row with a line outside inlined calls; NULL if there is none. */
static const struct fathom_block_row *own_line(const struct fathom_block_row_array *rows)
{
	const struct fathom_block_row *row = rows->items;

	for (size_t i = 0; i < rows->n; i++)
		if (!row[i].node && row[i].line && row[i].file != FATHOM_BLOCK_NONE)
			return &row[i];
	return NULL;
}

/* Reads the entry at @off of the unit; returns false if it is damaged. */
static bool read_entry(const struct build *b, uint64_t off, struct fathom_die *ret)
{
	struct fathom_die_reader r;
	uint32_t depth;

	fathom_die_reader_init(&r, &b->u->unit, off);
	return fathom_die_next(&r, UINT32_MAX, ret, &depth, NULL) == FATHOM_OK;
}

/* Returns the line where function @off is declared, if that is in file @file; else 0. */
static uint32_t declared_in(const struct build *b, uint64_t off, uint32_t file)
{
	struct fathom_names names;
	struct fathom_die die;

	if (!read_entry(b, off, &die))
		return 0;
	fathom_origin_declaration(b->w, b->d, &b->u->unit, &die, &names);
	return names.decl_file == file ? names.decl_line : 0;
}

/*
 * Chooses among functions that were folded into one (ICF): the lines belong to the function whose
 * declaration is the last one before them in their file. If several remain, as for the aliases that
 * assemblers describe, sets b->die_off to the last one and notes the others. GNU's BFD always takes
 * the last.
 */
static bool choose_folded(struct build *b)
{
	const struct fathom_block_row *row = own_line(&b->w->blocks.out_rows);
	struct fathom_u64_array *folded = &b->w->blocks.folded;
	uint32_t best = 0;
	uint64_t off;

	for (uint32_t n = 0; row && fathom_unit_data_folded(b->data, b->want->slot, n, &off); n++) {
		const uint32_t line = declared_in(b, off, row->file);

		best = line <= row->line && line > best ? line : best;
	}
	for (uint32_t n = 0; fathom_unit_data_folded(b->data, b->want->slot, n, &off); n++) {
		if (best && declared_in(b, off, row->file) != best)
			continue;
		if (!fathom_array_push(folded, off))
			return false;
	}
	if (folded->n)
		b->die_off = folded->items[--folded->n];
	return true;
}

/* Returns whether @err says that nothing can be answered, not that a part is damaged. */
static bool is_final(fathom_err err)
{
	return err == FATHOM_E_MEMORY || err == FATHOM_E_CANCELLED;
}

/* Reads the function of the want and lays its inlined calls over its rows. */
static fathom_err lay_out_function(struct build *b, fathom_err *ret_read,
				   struct fathom_errinfo *reterr)
{
	const struct fathom_want *want = b->want;
	const uint64_t first = b->die_off;

	*ret_read = read_function(b, reterr);
	if (is_final(*ret_read))
		return *ret_read;
	FATHOM_TRY(lay_out(b, want->low, want->from, want->to));
	if (want->folded && !(b->w->session->compat & FATHOM_GNU_PATHS) && !choose_folded(b))
		return FATHOM_E_MEMORY;
	if (b->die_off == first)
		return FATHOM_OK;
	*ret_read = read_function(b, reterr);
	if (is_final(*ret_read))
		return *ret_read;
	return lay_out(b, want->low, want->from, want->to);
}

/* Starts a string in the pool. The caller appends the text and calls end_string(). */
static bool begin_string(struct fathom_bytes_array *pool, size_t *ret_at)
{
	if (!fathom_array_room(pool, sizeof(uint32_t)))
		return false;
	*ret_at = pool->n;
	pool->n += sizeof(uint32_t);
	return true;
}

static bool end_string(struct fathom_bytes_array *pool, size_t at, uint32_t *ret_reference)
{
	const size_t size = pool->n - at - sizeof(uint32_t);
	const uint32_t length = (uint32_t)size;

	if (pool->n > UINT32_MAX || !fathom_array_room(pool, 1))
		return false;
	memcpy(pool->items + at, &length, sizeof length);
	pool->items[pool->n++] = '\0';
	*ret_reference = (uint32_t)at;
	return true;
}

static bool add_string(struct fathom_bytes_array *pool, struct fathom_str s,
		       uint32_t *ret_reference)
{
	size_t at;

	*ret_reference = 0;
	if (!s.size)
		return true;
	if (!begin_string(pool, &at) || !fathom_array_room(pool, s.size))
		return false;
	memcpy(pool->items + pool->n, s.data, s.size);
	pool->n += s.size;
	return end_string(pool, at, ret_reference);
}

/* Returns the entry for number @i of @table, which grows as needed; NULL if out of memory. */
static struct fathom_local *local_of(struct fathom_locals *table, uint32_t i)
{
	if (i >= table->n) {
		const size_t more = (size_t)i + 1 - table->n;

		if (!fathom_array_room(table, more))
			return NULL;
		memset(table->items + table->n, 0, more * sizeof(struct fathom_local));
		table->n = (size_t)i + 1;
	}
	return table->items + i;
}

/* Finds the block's number for @file of the line table; FATHOM_BLOCK_NONE if it has no name. */
static bool local_file(struct build *b, uint32_t file, uint32_t *ret)
{
	struct fathom_worker *w = b->w;
	struct fathom_local *local;
	uint32_t reference;
	size_t at;

	*ret = FATHOM_BLOCK_NONE;
	if (file == FATHOM_BLOCK_NONE)
		return true;
	if (!fathom_lines_define(w, file))
		return false;
	/* All numbers beyond the table count as one. */
	if (file > w->lines.files.n + w->lines.files_base)
		file = (uint32_t)w->lines.files.n + w->lines.files_base;
	local = local_of(&w->blocks.local_files, file);
	if (!local)
		return false;
	if (local->stamp != w->blocks.stamp) {
		local->stamp = w->blocks.stamp;
		local->number = FATHOM_BLOCK_NONE;
		if (!begin_string(&w->pool, &at))
			return false;
		if (!fathom_lines_path(w, &b->u->unit, b->u->comp_dir, file, &w->pool)) {
			w->pool.n = at;
			return true;
		}
		if (!end_string(&w->pool, at, &reference) ||
		    !fathom_array_room(&w->blocks.out_files, 1))
			return false;
		local->number = (uint32_t)w->blocks.out_files.n;
		w->blocks.out_files.items[w->blocks.out_files.n++] = reference;
	}
	*ret = local->number;
	return true;
}

/* Adds the declaration of the function that is added next. */
static bool add_declaration(struct build *b, const struct fathom_names *names)
{
	struct fathom_worker *w = b->w;
	struct fathom_block_declaration d = { .line = names->decl_line };

	if (!local_file(b, names->decl_file, &d.file) ||
	    !fathom_array_push(&w->blocks.out_declared, d))
		return false;
	return true;
}

/* Finds the block's number for names @i; adds the function if it is new. */
static bool local_function(struct build *b, uint32_t i, uint32_t *ret)
{
	struct fathom_worker *w = b->w;
	const struct fathom_names *names = w->origins.names.items + i;
	struct fathom_local *local = local_of(&w->blocks.local_names, i);
	struct fathom_block_function f = { 0 };

	if (!local)
		return false;
	if (local->stamp != w->blocks.stamp) {
		if (!add_string(&w->pool, names->name, &f.name) ||
		    !add_string(&w->pool, names->linkage, &f.linkage) ||
		    !fathom_array_room(&w->blocks.out_functions, 1))
			return false;
		if (wants_declarations(w) && !add_declaration(b, names))
			return false;
		f.flags = names->flags;
		local->stamp = w->blocks.stamp;
		local->number = (uint32_t)w->blocks.out_functions.n;
		w->blocks.out_functions.items[w->blocks.out_functions.n++] = f;
	}
	*ret = local->number;
	return true;
}

#define UNUSED UINT32_MAX

/* Numbers the nodes that rows need, and their parents; drops the others. */
static bool number_nodes(struct fathom_worker *w, uint32_t *ret_n)
{
	const struct fathom_block_row *rows = w->blocks.out_rows.items;
	uint32_t *local;
	uint32_t n = 0;

	w->blocks.local_nodes.n = 0;
	if (!fathom_array_room(&w->blocks.local_nodes, w->blocks.nodes.n))
		return false;
	local = w->blocks.local_nodes.items;
	memset(local, 0xff, w->blocks.nodes.n * sizeof *local);
	for (size_t i = 0; i < w->blocks.out_rows.n; i++)
		for (uint32_t node = rows[i].node;
		     node != FATHOM_BLOCK_NONE && local[node] == UNUSED;
		     node = NODES(w)[node].parent)
			local[node] = 0;
	for (size_t i = 0; i < w->blocks.nodes.n; i++)
		if (local[i] != UNUSED)
			local[i] = n++;
	*ret_n = n;
	return true;
}

/* Adds the names of the functions that were folded with that of node 0, after its own. */
static bool localize_folded(struct build *b)
{
	struct fathom_worker *w = b->w;

	for (size_t i = 0; i < w->blocks.folded.n; i++) {
		struct fathom_die die;
		uint32_t names;
		uint32_t number;

		if (!read_entry(b, w->blocks.folded.items[i], &die))
			continue;
		names = fathom_origin_names(w, b->d, &b->u->unit, &die);
		if (names == FATHOM_NO_NAMES || !local_function(b, names, &number))
			return false;
		if (number)
			w->blocks.out_functions.items[number].flags |= FATHOM_BLOCK_FOLDED;
	}
	return true;
}

/* Replaces the references of rows and nodes by numbers of the block. */
static bool localize(struct build *b)
{
	struct fathom_worker *w = b->w;
	struct fathom_block_row *rows = w->blocks.out_rows.items;
	const uint32_t *local = w->blocks.local_nodes.items;

	for (size_t i = 0; i < w->blocks.nodes.n; i++) {
		struct fathom_block_node *node = &NODES(w)[i];

		if (local[i] == UNUSED)
			continue;
		if (node->parent != FATHOM_BLOCK_NONE)
			node->parent = local[node->parent];
		if (!local_function(b, node->function, &node->function) ||
		    !local_file(b, node->call_file, &node->call_file) ||
		    (!i && !localize_folded(b)))
			return false;
	}
	for (size_t i = 0; i < w->blocks.out_rows.n; i++) {
		if (rows[i].file != FATHOM_BLOCK_NONE &&
		    !local_file(b, rows[i].file, &rows[i].file))
			return false;
		if (rows[i].node != FATHOM_BLOCK_NONE)
			rows[i].node = local[rows[i].node];
	}
	return true;
}

/* Returns whether all numbers of the rows fit the narrow form. */
static bool is_narrow(const struct fathom_worker *w, uint32_t n_nodes)
{
	const struct fathom_block_row *rows = w->blocks.out_rows.items;

	if (n_nodes >= UINT16_MAX || w->blocks.out_files.n >= UINT16_MAX)
		return false;
	for (size_t i = 0; i < w->blocks.out_rows.n; i++)
		if (rows[i].off > UINT32_MAX ||
		    (rows[i].column | rows[i].discriminator) > UINT16_MAX)
			return false;
	return true;
}

static void write_rows(const struct fathom_worker *w, struct fathom_block *block)
{
	const struct fathom_block_row *rows = w->blocks.out_rows.items;
	struct fathom_block_narrow *narrow = fathom_block_rows(block);

	if (block->flags & FATHOM_BLOCK_WIDE) {
		memcpy(fathom_block_rows(block), rows, w->blocks.out_rows.n * sizeof *rows);
		return;
	}
	for (size_t i = 0; i < w->blocks.out_rows.n; i++)
		narrow[i] = (struct fathom_block_narrow){
			.off = (uint32_t)rows[i].off,
			.line = rows[i].line,
			.column = (uint16_t)rows[i].column,
			.discriminator = (uint16_t)rows[i].discriminator,
			.file = (uint16_t)rows[i].file, /* none becomes 0xffff */
			.node = (uint16_t)rows[i].node,
		};
}

static void write_nodes(const struct fathom_worker *w, struct fathom_block *block)
{
	const uint32_t *local = w->blocks.local_nodes.items;
	struct fathom_block_node *out = fathom_block_nodes(block);

	for (size_t i = 0; i < w->blocks.nodes.n; i++)
		if (local[i] != UNUSED)
			out[local[i]] = NODES(w)[i];
}

/* Copies the items of an array. */
#define COPY_ITEMS(to, a) \
	((a)->n ? (void)memcpy((to), (a)->items, (a)->n * sizeof *(a)->items) : (void)0)

/* Assembles the block; returns NULL if out of memory. */
static struct fathom_block *write_block(const struct fathom_worker *w, uint64_t low, uint64_t high,
					uint32_t n_nodes, bool damaged)
{
	const uint32_t flags = (is_narrow(w, n_nodes) ? 0 : FATHOM_BLOCK_WIDE) |
			       (damaged ? FATHOM_BLOCK_DAMAGED : 0) |
			       (wants_declarations(w) ? FATHOM_BLOCK_DECLARED : 0);
	const uint64_t fixed = fathom_block_bytes(flags, w->blocks.out_rows.n, n_nodes,
						  w->blocks.out_functions.n, w->blocks.out_files.n);
	const uint64_t bytes = (fixed + w->pool.n + 7) & ~UINT64_C(7);
	struct fathom_block *block = fixed && bytes <= SIZE_MAX ? malloc((size_t)bytes) : NULL;

	if (!block)
		return NULL;
	*block = (struct fathom_block){
		.low = low,
		.size = high - low,
		.bytes = bytes,
		.flags = flags,
		.n_rows = (uint32_t)w->blocks.out_rows.n,
		.n_nodes = n_nodes,
		.n_functions = (uint32_t)w->blocks.out_functions.n,
		.n_files = (uint32_t)w->blocks.out_files.n,
		.pool_size = (uint32_t)w->pool.n,
	};
	write_rows(w, block);
	write_nodes(w, block);
	COPY_ITEMS(fathom_block_functions(block), &w->blocks.out_functions);
	COPY_ITEMS(fathom_block_files(block), &w->blocks.out_files);
	COPY_ITEMS(fathom_block_declarations(block), &w->blocks.out_declared);
	COPY_ITEMS(fathom_block_pool(block), &w->pool);
	memset((char *)block + fixed + w->pool.n, 0, (size_t)(bytes - fixed - w->pool.n));
	return block;
}

/* Finds the range of a block of code outside functions: from its first row to its last. */
static void clip_to_rows(const struct build *b, uint64_t *low, uint64_t *high)
{
	const struct fathom_want_row *rows = b->w->lines.row_order.items + b->want->first_row;

	*high = 0;
	*low = b->want->n_rows ? rows[0].address : 0;
	for (uint32_t i = 0; i < b->want->n_rows; i++)
		*high = rows[i].end > *high ? rows[i].end : *high;
}

/* Makes the block of one want. */
static fathom_err build_block(struct build *b, struct fathom_block **ret,
			      struct fathom_errinfo *reterr)
{
	struct fathom_worker *w = b->w;
	uint64_t low = b->want->low;
	uint64_t high = b->want->high;
	uint32_t n_nodes;
	fathom_err read_err = FATHOM_OK;
	fathom_err err;

	w->blocks.nodes.n = 0;
	w->blocks.intervals.n = 0;
	w->blocks.folded.n = 0;
	w->blocks.out_functions.n = 0;
	w->blocks.out_declared.n = 0;
	w->blocks.out_files.n = 0;
	w->pool.n = 0;
	w->blocks.stamp++;
	if (b->want->die_off == FATHOM_NO_DIE) {
		clip_to_rows(b, &low, &high);
		err = lay_out(b, low, low, high);
	} else {
		err = lay_out_function(b, &read_err, reterr);
	}
	if (err == FATHOM_E_LIMIT)
		(void)fathom_fail(reterr, err, ".debug_info", b->want->die_off,
				  "too many inlined calls cover one address");
	FATHOM_TRY(err);
	/* Reference 0 means no string, so no string may start there. */
	if (!fathom_array_room(&w->pool, sizeof(uint32_t)))
		return FATHOM_E_MEMORY;
	memset(w->pool.items, 0, sizeof(uint32_t));
	w->pool.n = sizeof(uint32_t);
	if (!number_nodes(w, &n_nodes) || !localize(b))
		return FATHOM_E_MEMORY;
	*ret = write_block(w, low, high, n_nodes, read_err || (b->lines_err && !b->want->covered));
	return *ret ? read_err : FATHOM_E_MEMORY;
}

/* Publishes @block in its slot; frees it if another thread was first. */
static void publish(struct fathom_debug *d, struct fathom_unit_data *data, uint32_t slot,
		    struct fathom_block *block)
{
	struct fathom_block *expected = NULL;

	if (!atomic_compare_exchange_strong(&data->blocks[slot], &expected, block)) {
		free(block);
		return;
	}
	atomic_fetch_add(&data->bytes, block->bytes);
	fathom_memory_count(&d->module->session->memory, block->bytes);
}

/* Line tables above this many bytes are read ahead whole: one request instead of page faults. */
#define LARGE_LINES 16384

/* Starts readahead of the line table at @off if it is large. */
static void expect_lines(const struct fathom_debug *d, const struct fathom_unit *unit, uint64_t off)
{
	const struct fathom_bytes lines =
		bytes_from(unit->skeleton->section[FATHOM_DEBUG_LINE], off);
	struct fathom_cursor c = cur_init(lines, unit->skeleton->swap);
	uint8_t offset_size;
	const uint64_t length = cur_initial_length(&c, &offset_size);

	if (length > LARGE_LINES && length <= cur_left(&c))
		fathom_file_will_read(d->object->file, bytes_slice(lines, 0, length));
}

fathom_err fathom_decode(struct fathom_worker *w, struct fathom_debug *d,
			 const struct fathom_open_unit *u, struct fathom_unit_data *data,
			 struct fathom_errinfo *reterr)
{
	struct fathom_want *wants = w->wants.items;
	const size_t n = w->wants.n;
	fathom_err lines_err = FATHOM_OK;
	fathom_err worst;

	for (size_t i = 0; i < n; i++) {
		wants[i].covered = false;
		wants[i].n_rows = 0;
	}
	w->lines.files.n = 0;
	w->lines.files_base = 1;
	/* Wants without rows point at the start of row_order. */
	if (!fathom_array_room(&w->lines.row_order, 1))
		return FATHOM_E_MEMORY;
	w->lines.defined = true;
	if (data->line_off != FATHOM_NO_LINES) {
		expect_lines(d, &u->unit, data->line_off);
		lines_err = fathom_lines_collect(w, &u->unit, d->module->main, data->line_off,
						 wants, n, reterr);
	}
	if (is_final(lines_err))
		return lines_err;
	worst = lines_err;
	fathom_origin_reset(w);
	for (size_t i = 0; i < n; i++) {
		struct build b = {
			.w = w,
			.d = d,
			.u = u,
			.data = data,
			.want = &wants[i],
			.die_off = wants[i].die_off,
			.ranges_left = fathom_ranges_allowed(u->unit.dwarf, u->unit.skeleton),
			.lines_err = lines_err,
		};
		struct fathom_block *block = NULL;
		const fathom_err err = build_block(&b, &block, reterr);

		worst = err ? err : worst;
		if (is_final(err))
			return err;
		if (block)
			publish(d, data, wants[i].slot, block);
	}
	return worst;
}
