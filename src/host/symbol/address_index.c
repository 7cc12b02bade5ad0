/* SPDX-License-Identifier: MIT */
/*
 * All symbols of a module by address. The rule of tables.h is applied once to every range of
 * addresses, which makes a list of starts, each with the symbol that holds from there on.
 *
 * The rules of the two personalities (gnu_rules.h, llvm_rules.h) are not rules about ranges: their
 * lists hold the distinct starts, each with the one of its symbols that is shown.
 */
#include <stdlib.h>

#include "host/base/progress.h"
#include "host/symbol/gnu_rules.h"
#include "host/symbol/llvm_rules.h"
#include "safe/base/sort.h"

/* A symbol that may name an address. The rest of it is read again when it is served. */
struct entry {
	uint64_t svma;
	uint64_t size;
	uint64_t region_high;
	uint32_t symbol;
	uint8_t table;
	bool code;
};

struct fathom_symbol_index {
	const struct fathom_symbol_set *set;
	struct fathom_memory *memory;
	enum fathom_alias rule;
	struct entry *entries; /* sorted by svma; equal ones in the tables' order */
	uint64_t *starts;
	uint32_t *winner;                    /* for each start: an entry, or FATHOM_NONE */
	uint32_t *bucket;                    /* number of starts before each bucket, and in all */
	uint32_t *files[FATHOM_MAX_SYMTABS]; /* by symbol: that of its file; not by our rule */
	uint64_t bucket_base;
	unsigned bucket_shift;
	uint32_t n_buckets;
	uint32_t n_entries;
	uint32_t n_starts;
	uint64_t bytes;
};

/* Three starts per symbol: its own, its end, and the end of what a sizeless one may name. */
#define STARTS_PER_ENTRY 3

/* The most whose starts have 32-bit numbers. */
#define MAX_ENTRIES (UINT32_MAX / (STARTS_PER_ENTRY + 1))

/* Symbols of a table that one task reads. */
#define SYMBOLS_PER_TASK 16384

/* Memory is fetched this many symbols ahead: they and their names are in no order. */
#define FETCH_AHEAD 12

/* Symbols between two questions where there are no tasks: some milliseconds. */
#define SYMBOLS_PER_QUESTION 65536

/* Contents of an index: a key for each symbol, whose value names the table and the symbol. */
struct collection {
	struct fathom_symbol_index *x;
	struct fathom_keyed *keyed; /* n of them, then as much room for sorting */
	size_t n;
	struct {
		size_t first; /* index in keyed */
		size_t n;     /* number of those found */
		uint32_t symbol;
		uint32_t end;
		uint8_t table;
	} *chunk;
	size_t n_chunks;
	const struct fathom_bounds_list *bounds;
	struct fathom_pace pace; /* of the loops over symbols */
};

static struct fathom_keyed make_key(uint64_t svma, uint8_t table, uint32_t symbol)
{
	return (struct fathom_keyed){ svma, (uint64_t)table << 32 | symbol };
}

/* For a set without bounds. */
static const struct fathom_bounds_list NO_BOUNDS;

/* Task 0 reads the unwind tables; each other task reads the symbols of a chunk. */
static void collect_chunk(void *arg, size_t task, unsigned thread)
{
	struct collection *c = arg;
	const struct fathom_symbol_set *set = c->x->set;
	const struct fathom_symbol_table *table;
	struct fathom_keyed *keyed;
	size_t n = 0;

	(void)thread;
	if (!task) {
		c->bounds = set->bounds ? set->bounds->all(set->bounds) : &NO_BOUNDS;
		return;
	}
	task--;
	table = &set->table[c->chunk[task].table];
	keyed = c->keyed + c->chunk[task].first;
	for (uint32_t i = c->chunk[task].symbol; i < c->chunk[task].end; i++) {
		struct fathom_symbol s;
		struct fathom_symbol_region region;
		uint64_t svma;

		fathom_symtab_fetch_name(&table->view, i + FETCH_AHEAD);
		fathom_symtab_get(&table->view, i, &s);
		if (fathom_symbol_place(table, &s, &svma, &region) &&
		    fathom_symbol_is_namable(&table->view, &s,
					     fathom_symtab_name_start(&table->view, &s)))
			keyed[n++] = make_key(svma, c->chunk[task].table, i);
	}
	c->chunk[task].n = n;
}

/* Runs tasks; returns false if the call was given up: some have not run. */
static bool run_tasks(struct collection *c, unsigned threads, size_t n, fathom_task_fn *fn)
{
	struct fathom *session = c->pace.session;

	if (!session) {
		fathom_pool_run(threads, n, fn, c);
		return true;
	}
	fathom_run_asking(session, FATHOM_PHASE_INDEX, threads, n, fn, c);
	return !fathom_is_cancelled(session);
}

/* Collects by our own rule: the symbols of all tables, in chunks. */
static bool collect(struct collection *c, unsigned threads)
{
	const struct fathom_symbol_set *set = c->x->set;
	size_t first = 0;

	for (uint8_t t = 0; t < set->n_tables; t++)
		c->n_chunks += set->table[t].view.count / SYMBOLS_PER_TASK + 1;
	c->chunk = calloc(c->n_chunks + 1, sizeof *c->chunk);
	if (!c->chunk)
		return false;
	c->n_chunks = 0;
	for (uint8_t t = 0; t < set->n_tables; t++) {
		const struct fathom_symtab *view = &set->table[t].view;

		fathom_file_will_read(set->file[t], view->entries);
		fathom_file_will_read(set->file[t], view->strings);
		for (uint32_t i = 0; i < view->count; i += SYMBOLS_PER_TASK) {
			const uint32_t left = view->count - i;
			const uint32_t n = left < SYMBOLS_PER_TASK ? left : SYMBOLS_PER_TASK;

			c->chunk[c->n_chunks].first = first;
			c->chunk[c->n_chunks].symbol = i;
			c->chunk[c->n_chunks].end = i + n;
			c->chunk[c->n_chunks++].table = t;
			first += n;
		}
	}
	if (!run_tasks(c, c->n_chunks > 1 ? threads : 1, c->n_chunks + 1, collect_chunk))
		return false;
	for (size_t i = 0; i < c->n_chunks; i++) {
		memmove(c->keyed + c->n, c->keyed + c->chunk[i].first,
			c->chunk[i].n * sizeof *c->keyed);
		c->n += c->chunk[i].n;
	}
	return c->bounds != NULL;
}

/* Makes room for the source file of each symbol of @table. */
static bool begin_table(struct fathom_symbol_index *x, uint32_t table)
{
	const struct fathom_symtab *view = &x->set->table[table].view;
	const size_t bytes = view->count * sizeof *x->files[table];

	fathom_file_will_read(x->set->file[table], view->entries);
	x->files[table] = malloc(bytes + 1);
	x->bytes += bytes;
	return x->files[table] != NULL;
}

/*
 * Adds the symbols of @table that GNU's rule counts and that start before the limit of their
 * section. With @lower, sets these limits to the first start in each section.
 */
static bool collect_gnu_table(struct collection *c, uint8_t table, uint64_t *limits, bool lower)
{
	struct fathom_symbol_index *x = c->x;
	const struct fathom_symbol_table *t = &x->set->table[table];
	struct fathom_gnu_files files = { 0 };

	if (!begin_table(x, table))
		return false;
	for (uint32_t i = 1; i < t->view.count; i++) {
		struct fathom_symbol_region region;
		struct fathom_symbol s;
		uint64_t svma;

		if (!fathom_keeps_pace(&c->pace))
			return false;
		fathom_symtab_get(&t->view, i, &s);
		if (fathom_gnu_files_next(&files, i, &s) || !fathom_gnu_counts(&t->view, &s) ||
		    !fathom_gnu_place(x->set, table, &s, &svma, &region) ||
		    !fathom_gnu_same_section(x->set, table, s.section))
			continue;
		/* Files without section headers have one limit for all. */
		if (!t->object->n_sections)
			s.section = 0;
		if (!lower && svma >= limits[s.section])
			continue;
		if (lower && svma < limits[s.section])
			limits[s.section] = svma;
		x->files[table][i] = fathom_gnu_files_of(&files, &s);
		c->keyed[c->n++] = make_key(svma, table, i);
	}
	return true;
}

/* Collects by GNU's rule: the table of the debug file, then from the file's own what is left. */
static bool collect_gnu(struct collection *c)
{
	const struct fathom_symbol_set *set = c->x->set;
	const struct fathom_gnu_tables tables = fathom_gnu_tables(set);
	const size_t n = (size_t)set->main->n_sections + 1;
	uint64_t *limits = malloc(n * sizeof *limits);
	bool done = limits != NULL;

	for (size_t i = 0; done && i < n; i++)
		limits[i] = UINT64_MAX;
	if (done && tables.separate != FATHOM_NONE)
		done = collect_gnu_table(c, (uint8_t)tables.separate, limits, true);
	if (done && tables.own != FATHOM_NONE)
		done = collect_gnu_table(c, (uint8_t)tables.own, limits, false);
	free(limits);
	return done;
}

/* Collects by LLVM's rule. */
static bool collect_llvm(struct collection *c)
{
	struct fathom_symbol_index *x = c->x;
	const uint32_t table = fathom_llvm_table(x->set);
	const struct fathom_symbol_table *t;
	uint32_t file = 0;

	if (table == FATHOM_NONE)
		return true;
	t = &x->set->table[table];
	if (!begin_table(x, table))
		return false;
	for (uint32_t i = 1; i < t->view.count; i++) {
		struct fathom_symbol s;
		uint64_t svma;

		if (!fathom_keeps_pace(&c->pace))
			return false;
		fathom_symtab_get(&t->view, i, &s);
		file = s.type == STT_FILE ? i : file;
		if (!fathom_llvm_counts(t, &s, &svma))
			continue;
		x->files[table][i] = s.bind == STB_LOCAL ? file : 0;
		c->keyed[c->n++] = make_key(svma, (uint8_t)table, i);
	}
	return true;
}

/* Reads the symbols of the sorted keys [task * SYMBOLS_PER_TASK, ...) into entries. */
static void read_entries(void *arg, size_t task, unsigned thread)
{
	struct collection *c = arg;
	struct fathom_symbol_index *x = c->x;
	const size_t first = task * SYMBOLS_PER_TASK;
	const size_t end = c->n - first < SYMBOLS_PER_TASK ? c->n : first + SYMBOLS_PER_TASK;

	(void)thread;
	for (size_t i = first; i < end; i++) {
		const uint8_t table = (uint8_t)(c->keyed[i].value >> 32);
		const struct fathom_symbol_table *t = &x->set->table[table];
		struct fathom_symbol_region region = { 0 };
		struct fathom_symbol s;
		uint64_t svma;

		if (i + FETCH_AHEAD < c->n)
			fathom_symtab_fetch(
				&x->set->table[c->keyed[i + FETCH_AHEAD].value >> 32].view,
				(uint32_t)c->keyed[i + FETCH_AHEAD].value);
		fathom_symtab_get(&t->view, (uint32_t)c->keyed[i].value, &s);
		/* LLVM's rule ignores regions. */
		if (x->rule == FATHOM_ALIAS_GNU)
			(void)fathom_gnu_place(x->set, table, &s, &svma, &region);
		else if (x->rule != FATHOM_ALIAS_LLVM)
			(void)fathom_symbol_place(t, &s, &svma, &region);
		x->entries[i] = (struct entry){
			.svma = c->keyed[i].key,
			.size = s.size,
			.region_high = region.high,
			.symbol = (uint32_t)c->keyed[i].value,
			.table = table,
			.code = region.code,
		};
	}
}

static bool alloc_keys(struct collection *c)
{
	const struct fathom_symbol_set *set = c->x->set;
	size_t n = 1;

	for (uint8_t t = 0; t < set->n_tables; t++)
		n += set->table[t].view.count;
	if (n >= MAX_ENTRIES)
		return false;
	c->keyed = malloc(2 * n * sizeof *c->keyed);
	return c->keyed != NULL;
}

static bool collect_by_rule(struct collection *c, unsigned threads)
{
	switch (c->x->rule) {
	case FATHOM_ALIAS_GNU:
		return collect_gnu(c);
	case FATHOM_ALIAS_LLVM:
		return collect_llvm(c);
	default:
		return collect(c, threads);
	}
}

/* Fills in the entries, sorted. */
static bool make_entries(struct collection *c, unsigned threads)
{
	struct fathom_symbol_index *x = c->x;

	if (!alloc_keys(c) || !collect_by_rule(c, threads))
		return false;
	x->n_entries = (uint32_t)c->n;
	x->bytes += c->n * sizeof *x->entries;
	x->entries = malloc((c->n + 1) * sizeof *x->entries);
	if (!x->entries)
		return false;
	fathom_sort_keyed(c->keyed, c->keyed + c->n, c->n);
	return run_tasks(c, c->n > SYMBOLS_PER_TASK ? threads : 1,
			 (c->n + SYMBOLS_PER_TASK - 1) / SYMBOLS_PER_TASK, read_entries);
}

static void contender_of(const struct fathom_symbol_index *x, const struct entry *e,
			 struct fathom_placed_contender *ret)
{
	struct fathom_symbol s;

	fathom_symtab_get(&x->set->table[e->table].view, e->symbol, &s);
	(void)fathom_symbol_contend(x->set, e->table, &s, e->svma, ret);
}

/* Orders a group: the longest first; those of one size in the tables' order. */
static int compare_sizes(const void *a, const void *b)
{
	const struct entry *x = a;
	const struct entry *y = b;

	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	if (x->table != y->table)
		return x->table < y->table ? -1 : 1;
	return x->symbol < y->symbol ? -1 : x->symbol > y->symbol;
}

/* Returns whether @a is preferred to @b; of two equal ones, the first of the tables is. */
static bool beats(const struct entry *a, const struct fathom_placed_contender *ka,
		  const struct entry *b, const struct fathom_placed_contender *kb)
{
	if (fathom_symbol_preferred(&ka->c, &kb->c))
		return true;
	return !fathom_symbol_preferred(&kb->c, &ka->c) &&
	       (a->table < b->table || (a->table == b->table && a->symbol < b->symbol));
}

/* Finds the preferred sizeless one of entries [first, end), or FATHOM_NONE. */
static uint32_t preferred_sizeless(const struct fathom_symbol_index *x, uint32_t first,
				   uint32_t end)
{
	struct fathom_placed_contender best;
	uint32_t winner = FATHOM_NONE;

	if (end - first == 1)
		return x->entries[first].size ? FATHOM_NONE : first;
	for (uint32_t i = first; i < end; i++) {
		struct fathom_placed_contender k;

		if (x->entries[i].size)
			continue;
		contender_of(x, &x->entries[i], &k);
		if (winner == FATHOM_NONE || fathom_symbol_preferred(&k.c, &best.c)) {
			winner = i;
			best = k;
		}
	}
	return winner;
}

/* Returns the end of what the sizeless symbol of @e may name, of which @next is the next start. */
static uint64_t sizeless_end(const struct fathom_symbol_set *set,
			     const struct fathom_bounds_list *bounds, const struct entry *e,
			     uint64_t next)
{
	uint64_t end;

	if (!e->code)
		return e->region_high;
	end = fathom_bounds_list_end(bounds, e->svma);
	end = end < e->region_high ? end : e->region_high;
	if (fathom_bounds_list_at(bounds, e->svma) < bounds->n)
		return end;
	return fathom_symbols_code_end(set, e->svma, end < next ? end : next);
}

/* The sweep over the entries by their starts. */
struct sweep {
	struct fathom_symbol_index *x;
	const struct fathom_bounds_list *bounds;
	struct {
		uint64_t end;
		uint32_t entry;
	} *open; /* symbols that cover the position; the last one names it */
	uint32_t n_open;
};

static void emit(struct fathom_symbol_index *x, uint64_t start, uint32_t entry)
{
	if (x->n_starts && x->starts[x->n_starts - 1] == start)
		x->n_starts--;
	if (x->n_starts && x->winner[x->n_starts - 1] == entry)
		return;
	x->starts[x->n_starts] = start;
	x->winner[x->n_starts++] = entry;
}

/* Closes the symbols that end up to @limit; after each, the one that was open before it holds. */
static void close_until(struct sweep *w, uint64_t limit)
{
	while (w->n_open && w->open[w->n_open - 1].end <= limit) {
		const uint64_t end = w->open[--w->n_open].end;

		while (w->n_open && w->open[w->n_open - 1].end <= end)
			w->n_open--;
		emit(w->x, end, w->n_open ? w->open[w->n_open - 1].entry : FATHOM_NONE);
	}
}

/* Opens the sized symbols of a group, the longest first, that are preferred to all longer ones. */
static void open_group(struct sweep *w, uint32_t first, uint32_t end)
{
	struct entry *e = w->x->entries;
	/* A single symbol is not compared: that would read its name. */
	const bool alone = end - first == 1;
	struct fathom_placed_contender best;
	uint32_t winner = first;

	if (!alone)
		qsort(e + first, end - first, sizeof *e, compare_sizes);
	for (uint32_t i = first; i < end && e[i].size; i++) {
		struct fathom_placed_contender k;

		if (!alone) {
			contender_of(w->x, &e[i], &k);
			if (i > first && !beats(&e[i], &k, &e[winner], &best))
				continue;
			winner = i;
			best = k;
		}
		w->open[w->n_open].entry = i;
		/* No symbol reaches beyond its section, whatever its size. */
		w->open[w->n_open++].end = e[i].size < e[i].region_high - e[i].svma
						   ? e[i].svma + e[i].size
						   : e[i].region_high;
	}
}

static void sweep_group(struct sweep *w, uint32_t first, uint32_t end)
{
	struct fathom_symbol_index *x = w->x;
	const struct entry *e = &x->entries[first];
	const uint64_t next = end < x->n_entries ? x->entries[end].svma : UINT64_MAX;
	uint32_t sizeless;

	close_until(w, e->svma);
	open_group(w, first, end);
	if (w->n_open) {
		emit(x, e->svma, w->open[w->n_open - 1].entry);
		return;
	}
	sizeless = preferred_sizeless(x, first, end);
	emit(x, e->svma, sizeless);
	if (sizeless != FATHOM_NONE)
		emit(x, sizeless_end(x->set, w->bounds, e, next), FATHOM_NONE);
}

static bool alloc_starts(struct fathom_symbol_index *x)
{
	const size_t n = (size_t)x->n_entries * STARTS_PER_ENTRY + 1;

	x->starts = malloc(n * sizeof *x->starts);
	x->winner = malloc(n * sizeof *x->winner);
	return x->starts && x->winner;
}

static uint32_t group_end(const struct fathom_symbol_index *x, uint32_t first)
{
	uint32_t end = first + 1;

	while (end < x->n_entries && x->entries[end].svma == x->entries[first].svma)
		end++;
	return end;
}

static bool build_stretches(struct collection *c)
{
	struct fathom_symbol_index *x = c->x;
	struct sweep w = { .x = x, .bounds = c->bounds };
	uint32_t end;

	w.open = malloc(((size_t)x->n_entries + 1) * sizeof *w.open);
	if (!w.open)
		return false;
	for (uint32_t first = 0; first < x->n_entries; first = end) {
		if (!fathom_keeps_pace(&c->pace)) {
			free(w.open);
			return false;
		}
		end = group_end(x, first);
		/* The end of a sizeless symbol may have been put beyond this start. */
		while (x->n_starts && x->starts[x->n_starts - 1] > x->entries[first].svma)
			x->n_starts--;
		sweep_group(&w, first, end);
	}
	close_until(&w, UINT64_MAX);
	free(w.open);
	return true;
}

/*
 * Divides the addresses evenly into about as many buckets as there are starts, so that a look-up
 * compares only a few starts. Ignores one start in a hundred at either end: a kernel has a few
 * symbols near 0 and all others at the other end of the address space.
 */
static bool build_buckets(struct fathom_symbol_index *x)
{
	const uint32_t trim = x->n_starts / 100;
	uint64_t span;
	uint32_t start = 0;

	x->n_buckets = 64;
	while (x->n_buckets < x->n_starts)
		x->n_buckets *= 2;
	x->bucket = malloc((x->n_buckets + 1u) * sizeof *x->bucket);
	if (!x->bucket)
		return false;
	if (x->n_starts) {
		x->bucket_base = x->starts[trim];
		span = x->starts[x->n_starts - 1 - trim] - x->bucket_base;
		while (span >> x->bucket_shift > x->n_buckets - 2)
			x->bucket_shift++;
	}
	/* Bucket 0 is for addresses before the base, the last one for all after it. */
	x->bucket[0] = 0;
	for (uint32_t b = 1; b < x->n_buckets; b++) {
		/* Buckets that would start after the last address have no starts. */
		const bool behind = b - 1 > (UINT64_MAX - x->bucket_base) >> x->bucket_shift;
		const uint64_t low = x->bucket_base + ((uint64_t)(b - 1) << x->bucket_shift);

		while (start < x->n_starts && (behind || x->starts[start] < low))
			start++;
		x->bucket[b] = start;
	}
	x->bucket[x->n_buckets] = x->n_starts;
	return true;
}

/* Returns GNU addr2line's choice of symbols that start together: the longest, then the first. */
static uint32_t gnu_winner(const struct fathom_symbol_index *x, uint32_t first)
{
	const uint32_t end = group_end(x, first);
	uint32_t winner = first;

	for (uint32_t i = first + 1; i < end; i++)
		if (x->entries[i].size > (x->entries[winner].size ? x->entries[winner].size : 1))
			winner = i;
	return winner;
}

/* Returns llvm-symbolizer's choice of symbols that start together: the longest, then the last. */
static uint32_t llvm_winner(const struct fathom_symbol_index *x, uint32_t first)
{
	const uint32_t end = group_end(x, first);
	uint32_t winner = first;

	for (uint32_t i = first + 1; i < end; i++)
		if (x->entries[i].size >= x->entries[winner].size)
			winner = i;
	return winner;
}

static bool build_groups(struct collection *c)
{
	struct fathom_symbol_index *x = c->x;

	for (uint32_t first = 0; first < x->n_entries; first = group_end(x, first)) {
		if (!fathom_keeps_pace(&c->pace))
			return false;
		x->starts[x->n_starts] = x->entries[first].svma;
		x->winner[x->n_starts++] =
			x->rule == FATHOM_ALIAS_GNU ? gnu_winner(x, first) : llvm_winner(x, first);
	}
	return true;
}

struct fathom_symbol_index *fathom_symbol_index_create(struct fathom_memory *m,
						       const struct fathom_symbol_set *set,
						       enum fathom_alias rule, unsigned threads)
{
	struct fathom_symbol_index *x = calloc(1, sizeof *x);
	struct collection c = { .x = x,
				.pace = fathom_pace_init(m->session, SYMBOLS_PER_QUESTION) };
	bool done;

	if (!x)
		return NULL;
	x->set = set;
	x->rule = rule;
	x->memory = m;
	done = make_entries(&c, threads) && alloc_starts(x);
	if (done && rule == FATHOM_ALIAS_FATHOM)
		done = build_stretches(&c);
	else if (done)
		done = build_groups(&c);
	done = done && build_buckets(x);
	free(c.keyed);
	free(c.chunk);
	if (done) {
		void *starts = realloc(x->starts, (x->n_starts + 1u) * sizeof *x->starts);
		void *winner = realloc(x->winner, (x->n_starts + 1u) * sizeof *x->winner);

		x->starts = starts ? starts : x->starts;
		x->winner = winner ? winner : x->winner;
		x->bytes += x->n_starts * (sizeof *x->starts + sizeof *x->winner) +
			    x->n_buckets * sizeof *x->bucket;
		fathom_memory_count(m, x->bytes);
	} else {
		x->bytes = 0;
		fathom_symbol_index_destroy(x);
		x = NULL;
	}
	return x;
}

void fathom_symbol_index_destroy(struct fathom_symbol_index *x)
{
	if (!x)
		return;
	fathom_memory_uncount(x->memory, x->bytes);
	free(x->entries);
	free(x->starts);
	free(x->winner);
	free(x->bucket);
	for (int t = 0; t < FATHOM_MAX_SYMTABS; t++)
		free(x->files[t]);
	free(x);
}

static uint64_t bucket_of(const struct fathom_symbol_index *x, uint64_t svma)
{
	uint64_t b;

	if (svma < x->bucket_base)
		return 0;
	b = ((svma - x->bucket_base) >> x->bucket_shift) + 1;
	return b < x->n_buckets ? b : x->n_buckets - 1;
}

/* Returns the number of starts at or before @svma. */
static size_t count_starts(const struct fathom_symbol_index *x, uint64_t svma)
{
	const uint64_t b = bucket_of(x, svma);
	const uint32_t low = x->bucket[b];

	return low + FATHOM_BISECT(x->bucket[b + 1] - low, i, x->starts[low + i] <= svma);
}

uint32_t fathom_symbol_index_at(const struct fathom_symbol_index *x, uint64_t svma)
{
	const size_t n = count_starts(x, svma);
	const uint32_t winner = n ? x->winner[n - 1] : FATHOM_NONE;
	const struct entry *e;
	bool reached = true;

	if (winner == FATHOM_NONE)
		return FATHOM_NONE;
	e = &x->entries[winner];
	if (x->rule == FATHOM_ALIAS_GNU)
		reached = svma < e->region_high;
	else if (x->rule == FATHOM_ALIAS_LLVM)
		reached = !e->size || svma - e->svma < e->size;
	return reached ? winner : FATHOM_NONE;
}

bool fathom_symbol_index_has_others(const struct fathom_symbol_index *x, uint32_t number)
{
	const struct entry *e = &x->entries[number];

	return (number && e[-1].svma == e->svma) ||
	       (number + 1 < x->n_entries && e[1].svma == e->svma);
}

/* Returns the first of the entries that start where entry @number does. */
static uint32_t group_start(const struct fathom_symbol_index *x, uint32_t number)
{
	while (number && x->entries[number - 1].svma == x->entries[number].svma)
		number--;
	return number;
}

/* Returns whether entry @e competes for @svma with @winner, which starts where it does. */
static bool is_rival(const struct entry *e, const struct entry *winner, uint64_t svma)
{
	return winner->size ? svma - e->svma < e->size : !e->size;
}

bool fathom_symbol_index_is_folded(const struct fathom_symbol_index *x, uint32_t number)
{
	const struct entry *winner = &x->entries[number];
	struct fathom_placed_contender own;
	struct fathom_placed_contender k;
	uint32_t end;

	if (!fathom_symbol_index_has_others(x, number))
		return false;
	contender_of(x, winner, &own);
	number = group_start(x, number);
	end = group_end(x, number);
	for (uint32_t i = number; i < end; i++) {
		contender_of(x, &x->entries[i], &k);
		if (!x->entries[i].size == !winner->size &&
		    fathom_spelling_differs(own.c.name, k.c.name))
			return true;
	}
	return false;
}

uint32_t fathom_symbol_index_spelled(const struct fathom_symbol_index *x, uint32_t number,
				     uint64_t svma, const struct fathom_block_view *view)
{
	const uint32_t first = group_start(x, number);
	const uint32_t end = group_end(x, first);
	struct fathom_placed_contender best;
	struct fathom_placed_contender k;
	uint32_t found = FATHOM_NONE;

	if (x->entries[number].svma != view->block->low)
		return number;
	contender_of(x, &x->entries[number], &k);
	if (fathom_spelling_fits(view, k.c.name))
		return number;
	for (uint32_t i = first; i < end; i++) {
		const struct entry *e = &x->entries[i];

		if (!is_rival(e, &x->entries[number], svma))
			continue;
		contender_of(x, e, &k);
		if (!fathom_spelling_fits(view, k.c.name) ||
		    (found != FATHOM_NONE && !beats(e, &k, &x->entries[found], &best)))
			continue;
		found = i;
		best = k;
	}
	return found != FATHOM_NONE ? found : number;
}

uint32_t fathom_symbol_index_group(const struct fathom_symbol_index *x, uint32_t number,
				   uint32_t *group, uint32_t cap)
{
	const uint32_t first = group_start(x, number);
	const uint32_t end = group_end(x, first);
	uint32_t n = 0;

	for (uint32_t i = first; i < end && n < cap; i++) {
		struct fathom_placed_contender k;
		struct fathom_placed_contender other;
		uint32_t at = n++;

		contender_of(x, &x->entries[i], &k);
		for (; at; at--) {
			const struct entry *before = &x->entries[group[at - 1]];

			contender_of(x, before, &other);
			if (!beats(&x->entries[i], &k, before, &other))
				break;
			group[at] = group[at - 1];
		}
		group[at] = i;
	}
	return n;
}

void fathom_symbol_index_fetch_bucket(const struct fathom_symbol_index *x, uint64_t svma)
{
	__builtin_prefetch(&x->bucket[bucket_of(x, svma)]);
}

void fathom_symbol_index_fetch_starts(const struct fathom_symbol_index *x, uint64_t svma)
{
	const uint32_t first = x->bucket[bucket_of(x, svma)];

	__builtin_prefetch(&x->starts[first]);
	__builtin_prefetch(&x->winner[first]);
}

uint32_t fathom_symbol_index_fetch_symbol(const struct fathom_symbol_index *x, uint64_t svma)
{
	const uint32_t number = fathom_symbol_index_at(x, svma);

	if (number != FATHOM_NONE)
		__builtin_prefetch(&x->entries[number]);
	return number;
}

void fathom_symbol_index_fetch_entry(const struct fathom_symbol_index *x, uint32_t number)
{
	const struct entry *e = &x->entries[number];

	fathom_symtab_fetch(&x->set->table[e->table].view, e->symbol);
}

void fathom_symbol_index_fetch_name(const struct fathom_symbol_index *x, uint32_t number)
{
	const struct entry *e = &x->entries[number];

	fathom_symtab_fetch_name(&x->set->table[e->table].view, e->symbol);
}

uint32_t fathom_symbol_index_count(const struct fathom_symbol_index *x)
{
	return x->n_entries;
}

void fathom_symbol_index_place(const struct fathom_symbol_index *x, uint32_t number,
			       struct fathom_symbol_hit *ret)
{
	const struct entry *e = &x->entries[number];

	*ret = (struct fathom_symbol_hit){ .start = e->svma,
					   .size = e->size,
					   .source = x->set->table[e->table].view.source };
}

struct fathom_str fathom_symbol_index_name(const struct fathom_symbol_index *x, uint32_t number)
{
	const struct entry *e = &x->entries[number];
	struct fathom_placed_contender k;
	struct fathom_symbol s;

	if (x->rule != FATHOM_ALIAS_FATHOM) {
		/* The other tools leave the version in the name. */
		fathom_symtab_get(&x->set->table[e->table].view, e->symbol, &s);
		return fathom_symtab_name(&x->set->table[e->table].view, &s);
	}
	contender_of(x, e, &k);
	return k.c.name;
}

struct fathom_str fathom_symbol_index_file(const struct fathom_symbol_index *x, uint32_t number)
{
	const struct entry *e = &x->entries[number];
	const uint32_t *files = x->files[e->table];

	if (!files)
		return (struct fathom_str){ NULL, 0 };
	return fathom_gnu_name(&x->set->table[e->table].view, files[e->symbol]);
}

uint32_t fathom_symbol_index_starts(const struct fathom_symbol_index *x,
				    const uint64_t **ret_starts, const uint32_t **ret_winners)
{
	*ret_starts = x->starts;
	*ret_winners = x->winner;
	return x->n_starts;
}
