/* SPDX-License-Identifier: MIT */
/*
 * Makes the unwind rules of a file: fathom/unwind.h has the form.
 *
 * FDEs are walked by their first address. Of those that cover an address the one that starts last
 * holds, as in fathom_unwind_tables_find(): the others wait meanwhile, and go on after its end.
 * Not handled: an .eh_frame_hdr that leads to another one of them.
 */
#include "host/module/rule_table.h"

#include <stdlib.h>

#include "host/base/array.h"
#include "host/module/module.h"
#include "safe/base/limits.h"
#include "safe/unwind/rules.h"

struct row_at {
	uint64_t svma;
	uint16_t rule;
};

/* A range of code and where its rows are. */
struct ranges {
	FATHOM_ARRAY_OF(struct fathom_range);
};

struct rows {
	FATHOM_ARRAY_OF(struct row_at);
};

struct rules {
	FATHOM_ARRAY_OF(struct fathom_unwind_rule);
};

/* A power of two; a file has some hundred different rules. */
#define FIRST_BUCKETS 1024

/* An FDE whose rows are being read. */
struct open_fde {
	struct fathom_fde fde;
	struct fathom_row_reader reader;
	fathom_err err; /* no row follows */
};

/* A table being made. */
struct making {
	struct fathom_unwind_tables *tables;
	const struct fathom_unwind_arch *arch;
	/* FDEs that cover @at, or will be closed there: each ends before the one that it is in. */
	struct open_fde *open[FATHOM_MAX_FDE_OVERLAP]; /* allocated when first needed, then kept */
	size_t n_open;
	uint64_t at; /* up to where rows were added */
	struct rows rows;
	struct rows first; /* of the first kind of section, while those of the other are added */
	struct ranges
		ranges;  /* that the first kind of section has; sorted, apart from each other */
	size_t n_taken;  /* of them: nothing is added there any more */
	size_t at_range; /* the first of them that does not end before what is at hand */
	struct rules rules;
	uint32_t *buckets; /* a hash table of the rules: index + 1 */
	size_t n_buckets;
	fathom_err err;
};

static size_t hash_of(const struct fathom_unwind_rule *r)
{
	uint64_t low;
	uint32_t high;

	_Static_assert(sizeof *r == sizeof low + sizeof high, "a rule has no padding");
	memcpy(&low, r, sizeof low);
	memcpy(&high, (const char *)r + sizeof low, sizeof high);
	return (size_t)((low ^ (uint64_t)high << 29) * UINT64_C(0x9e3779b97f4a7c15) >> 20);
}

/* Puts rule @i into the hash table. */
static void enter_rule(struct making *m, uint32_t i)
{
	size_t at = hash_of(&m->rules.items[i]) & (m->n_buckets - 1);

	while (m->buckets[at])
		at = (at + 1) & (m->n_buckets - 1);
	m->buckets[at] = i + 1;
}

static bool grow_buckets(struct making *m)
{
	const size_t n = m->n_buckets ? 2 * m->n_buckets : FIRST_BUCKETS;

	free(m->buckets);
	m->buckets = calloc(n, sizeof *m->buckets);
	if (!m->buckets)
		return false;
	m->n_buckets = n;
	for (uint32_t i = 0; i < m->rules.n; i++)
		enter_rule(m, i);
	return true;
}

/* Finds or adds @rule; returns its number. Without memory m->err is set. */
static uint16_t intern(struct making *m, const struct fathom_unwind_rule *rule)
{
	size_t at;

	if (2 * m->rules.n >= m->n_buckets && !grow_buckets(m)) {
		m->err = FATHOM_E_MEMORY;
		return 0;
	}
	at = hash_of(rule) & (m->n_buckets - 1);
	for (; m->buckets[at]; at = (at + 1) & (m->n_buckets - 1))
		if (memcmp(&m->rules.items[m->buckets[at] - 1], rule, sizeof *rule) == 0)
			return (uint16_t)(m->buckets[at] - 1);
	if (m->rules.n > UINT16_MAX) /* rules[1] is FATHOM_UNWIND_OTHER */
		return 1;
	if (!fathom_array_push(&m->rules, *rule)) {
		m->err = FATHOM_E_MEMORY;
		return 0;
	}
	m->buckets[at] = (uint32_t)m->rules.n;
	return (uint16_t)(m->rules.n - 1);
}

/* Adds a row, unless the one before says the same. */
static void add_row(struct making *m, uint64_t svma, uint16_t rule)
{
	struct row_at *last = m->rows.n ? &m->rows.items[m->rows.n - 1] : NULL;

	if (last && last->svma == svma) {
		last->rule = rule;
		return;
	}
	if (last ? last->rule == rule : !rule)
		return;
	if (!fathom_array_push(&m->rows, (struct row_at){ svma, rule }))
		m->err = FATHOM_E_MEMORY;
}

/* Adds the rows of @o from @low up to @high, which it covers. */
static void add_rows(struct making *m, struct open_fde *o, uint64_t low, uint64_t high)
{
	const struct fathom_row *row = &o->reader.now;

	while (low < high && !m->err) {
		struct fathom_unwind_rule rule;

		while (!o->err && row->high <= low)
			o->err = fathom_row_next(&o->reader);
		/* Instructions that cannot be read end the rows: what is after has no rule. */
		if (o->err) {
			add_row(m, low, 0);
			return;
		}
		rule = fathom_rule_of_row(row, m->arch, o->fde.cie->is_signal_frame);
		add_row(m, low, intern(m, &rule));
		low = row->high;
	}
}

/* Does as add_rows(), but where the first kind of section has said it. */
static void add_untaken(struct making *m, struct open_fde *o, uint64_t low, uint64_t high)
{
	while (low < high && !m->err) {
		const struct fathom_range *taken = m->ranges.items + m->at_range;
		const bool is_left = m->at_range < m->n_taken;

		if (is_left && taken->high <= low) {
			m->at_range++;
		} else if (is_left && taken->low <= low) {
			add_row(m, low, 0);
			low = taken->high;
		} else if (is_left && taken->low < high) {
			add_rows(m, o, low, taken->low);
			low = taken->low;
		} else {
			add_rows(m, o, low, high);
			low = high;
		}
	}
}

/* Adds what the open FDEs say up to @svma, and closes those that end there. */
static void advance(struct making *m, uint64_t svma)
{
	while (m->n_open && m->at < svma) {
		struct open_fde *o = m->open[m->n_open - 1];
		const uint64_t high = o->fde.high < svma ? o->fde.high : svma;

		add_untaken(m, o, m->at, high);
		m->at = high;
		if (o->fde.high == high)
			m->n_open--;
	}
}

/* Opens @fde, which starts at m->at; false without memory. */
static bool open_fde(struct making *m, const struct fathom_fde *fde)
{
	struct open_fde *outermost = m->open[0];
	struct open_fde *o;

	/* More than are looked at for one address: after the others the outermost has no rule. */
	if (m->n_open == FATHOM_MAX_FDE_OVERLAP) {
		memmove(m->open, m->open + 1, (m->n_open - 1) * sizeof(struct open_fde *));
		m->open[--m->n_open] = outermost;
	}
	o = m->open[m->n_open];
	o = m->open[m->n_open] = o ? o : malloc(sizeof *o);
	if (!o)
		return false;
	m->n_open++;
	o->fde = *fde;
	o->err = fathom_row_reader_init(&o->reader, &o->fde, m->arch);
	o->reader.now.high = fde->low;
	return true;
}

static bool add_fde(const struct fathom_fde *fde, void *data)
{
	struct making *m = data;

	advance(m, fde->low);
	if (m->at < fde->low) /* a gap */
		add_row(m, m->at, 0);
	m->at = fde->low;
	/* Open FDEs that end in it hold nowhere any more. */
	while (m->n_open && m->open[m->n_open - 1]->fde.high <= fde->high)
		m->n_open--;
	if (!m->err && !open_fde(m, fde))
		m->err = FATHOM_E_MEMORY;
	return !m->err;
}

/* Adds @fde, of the first kind of section, and notes its range for the other. */
static bool add_first(const struct fathom_fde *fde, void *data)
{
	struct making *m = data;
	struct fathom_range *last = m->ranges.n ? &m->ranges.items[m->ranges.n - 1] : NULL;

	if (last && fde->low <= last->high)
		last->high = fde->high > last->high ? fde->high : last->high;
	else if (!fathom_array_push(&m->ranges, (struct fathom_range){ fde->low, fde->high }))
		m->err = FATHOM_E_MEMORY;
	return !m->err && add_fde(fde, m);
}

/* Adds all FDEs of one kind of section to m->rows, which is empty. */
static fathom_err add_sections(struct making *m, bool rest,
			       bool (*add)(const struct fathom_fde *fde, void *data))
{
	m->at = 0;
	FATHOM_TRY(fathom_unwind_tables_walk(m->tables, rest, add, m));
	if (!m->err)
		advance(m, UINT64_MAX);
	if (!m->err)
		add_row(m, m->at, 0);
	return m->err;
}

static int compare_rows(const void *a, const void *b)
{
	const struct row_at *x = a;
	const struct row_at *y = b;

	return x->svma < y->svma ? -1 : x->svma > y->svma;
}

/*
 * Adds the rows of m->first to those of the other sections. A gap of one kind can hide a row of the
 * other at the same address, where the one with a rule holds.
 */
static fathom_err join_rows(struct making *m)
{
	struct rows *all = &m->rows;
	size_t n = 0;

	if (!fathom_array_room(all, m->first.n))
		return FATHOM_E_MEMORY;
	if (m->first.n)
		memcpy(all->items + all->n, m->first.items, m->first.n * sizeof *m->first.items);
	all->n += m->first.n;
	if (all->n)
		qsort(all->items, all->n, sizeof *all->items, compare_rows);
	for (size_t i = 0; i < all->n; i++) {
		const struct row_at r = all->items[i];

		if (n && all->items[n - 1].svma == r.svma)
			all->items[n - 1].rule |= r.rule;
		else
			all->items[n++] = r;
	}
	all->n = n;
	return FATHOM_OK;
}

static fathom_err read_rows(struct making *m)
{
	static const struct fathom_unwind_rule other = { .kind = FATHOM_UNWIND_OTHER };
	static const struct fathom_unwind_rule none = { .kind = FATHOM_UNWIND_NONE };
	const bool has_rest = m->tables->n_sections > m->tables->n_bounding;

	(void)intern(m, &none);
	(void)intern(m, &other);
	FATHOM_TRY(m->err);
	FATHOM_TRY(add_sections(m, false, has_rest ? add_first : add_fde));
	if (!has_rest)
		return FATHOM_OK;
	m->first = m->rows;
	m->rows = (struct rows){ 0 };
	m->n_taken = m->ranges.n;
	FATHOM_TRY(add_sections(m, true, add_fde));
	return join_rows(m);
}

/* Returns @n rounded up to what all arrays are aligned to. */
static size_t aligned(size_t n)
{
	return (n + 7) & ~(size_t)7;
}

/* Most pages of a table: 4 GiB of code. */
#define MAX_PAGES 65536

/*
 * Lays the table out in one allocation; NULL without memory. Rows outside its pages are left out.
 */
static struct fathom_unwind_table *lay_out(const struct making *m)
{
	const uint64_t base = m->rows.n ? m->rows.items[0].svma & ~UINT64_C(0xffff) : 0;
	const uint64_t last = m->rows.n ? m->rows.items[m->rows.n - 1].svma : 0;
	const uint64_t wanted = m->rows.n ? ((last - base) >> 16) + 1 : 0;
	const uint32_t n_pages = wanted < MAX_PAGES ? (uint32_t)wanted : MAX_PAGES;
	const size_t rules = aligned(m->rules.n * sizeof(struct fathom_unwind_rule));
	const size_t pages = aligned((n_pages + (size_t)1) * sizeof(uint32_t));
	const size_t lows = aligned(m->rows.n * sizeof(uint16_t));
	struct fathom_unwind_table *t = calloc(1, sizeof *t + rules + pages + 2 * lows);
	char *at = (char *)(t + 1);
	uint32_t *page = (uint32_t *)(void *)(at + rules);
	uint16_t *low = (uint16_t *)(void *)(at + rules + pages);
	uint16_t *rule = (uint16_t *)(void *)(at + rules + pages + lows);
	uint32_t n = 0;
	uint32_t p = 0;

	if (!t)
		return NULL;
	memcpy(at, m->rules.items, m->rules.n * sizeof *m->rules.items);
	for (; n < m->rows.n && (m->rows.items[n].svma - base) >> 16 < n_pages; n++) {
		while (p <= (m->rows.items[n].svma - base) >> 16)
			page[p++] = n;
		low[n] = (uint16_t)m->rows.items[n].svma;
		rule[n] = m->rows.items[n].rule;
	}
	while (p <= n_pages)
		page[p++] = n;
	*t = (struct fathom_unwind_table){ .base = base,
					   .pages = page,
					   .low = low,
					   .rule = rule,
					   .rules = (const void *)at,
					   .n_pages = n_pages,
					   .n_rows = n,
					   .n_rules = (uint32_t)m->rules.n,
					   .machine = m->arch->machine };
	return t;
}

fathom_err fathom_rule_table_make(struct fathom_module *module, struct fathom_unwind_table **ret)
{
	struct making m = { .tables = &module->unwind,
			    .arch = fathom_unwind_arch(module->main->image.machine) };
	fathom_err err = m.arch ? FATHOM_OK : FATHOM_E_UNSUPPORTED;

	if (!err && !fathom_memory_fits(module->main->memory, module->unwind.bytes))
		err = FATHOM_E_LIMIT;
	if (!err)
		err = read_rows(&m);
	if (!err) {
		*ret = lay_out(&m);
		err = *ret ? FATHOM_OK : FATHOM_E_MEMORY;
	}
	for (size_t i = 0; i < FATHOM_MAX_FDE_OVERLAP; i++)
		free(m.open[i]);
	fathom_array_free(&m.ranges);
	fathom_array_free(&m.first);
	fathom_array_free(&m.rows);
	fathom_array_free(&m.rules);
	free(m.buckets);
	return err;
}
