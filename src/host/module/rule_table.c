/* SPDX-License-Identifier: MIT */
/* Makes the unwind rules of a file: fathom/unwind.h has the form. */
#include "host/module/rule_table.h"

#include <stdlib.h>

#include "host/base/array.h"
#include "host/module/module.h"
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

/* A table being made. */
struct making {
	struct fathom_unwind_tables *tables;
	const struct fathom_unwind_arch *arch;
	struct fathom_row_reader reader;
	struct ranges
		ranges; /* that the first kind of section has, sorted; while the rest is read */
	struct rows rows;
	struct rules rules;
	uint32_t *buckets; /* a hash table of the rules: index + 1 */
	size_t n_buckets;
	size_t at_range; /* the first of ranges that does not end before the FDE at hand */
	uint64_t end;    /* of the last FDE */
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

/* Ends the FDE before: what lies between it and @svma has no rule. */
static void add_gap(struct making *m, uint64_t svma)
{
	if (m->end && m->end < svma)
		add_row(m, m->end, 0);
}

/* Adds the rows of @fde from @low on. */
static void add_rows(struct making *m, const struct fathom_fde *fde, uint64_t low)
{
	fathom_err err = fathom_row_reader_init(&m->reader, fde, m->arch);
	uint64_t at = low;

	while (!err && !m->err && !(err = fathom_row_next(&m->reader))) {
		const struct fathom_row *row = &m->reader.now;
		struct fathom_unwind_rule rule;

		if (row->high <= low)
			continue;
		rule = fathom_rule_of_row(row, m->arch, fde->cie->is_signal_frame);
		add_row(m, row->low < low ? low : row->low, intern(m, &rule));
		at = row->high;
	}
	/* Instructions that cannot be read end the rows: what is behind has no rule. */
	if (at < fde->high)
		add_row(m, at, 0);
}

/* Returns whether a range of the first kind of section overlaps @fde. */
static bool is_taken(struct making *m, const struct fathom_fde *fde)
{
	while (m->at_range < m->ranges.n && m->ranges.items[m->at_range].high <= fde->low)
		m->at_range++;
	return m->at_range < m->ranges.n && m->ranges.items[m->at_range].low < fde->high;
}

static bool add_fde(const struct fathom_fde *fde, void *data)
{
	struct making *m = data;
	const uint64_t low = fde->low > m->end ? fde->low : m->end;

	if (low >= fde->high)
		return true;
	add_gap(m, low);
	add_rows(m, fde, low);
	m->end = fde->high;
	return !m->err;
}

static bool add_range(const struct fathom_fde *fde, void *data)
{
	struct making *m = data;

	if (!fathom_array_push(&m->ranges, (struct fathom_range){ fde->low, fde->high }))
		m->err = FATHOM_E_MEMORY;
	return !m->err;
}

static bool add_rest(const struct fathom_fde *fde, void *data)
{
	struct making *m = data;

	return is_taken(m, fde) || add_fde(fde, m);
}

static int compare_rows(const void *a, const void *b)
{
	const struct row_at *x = a;
	const struct row_at *y = b;

	return x->svma < y->svma ? -1 : x->svma > y->svma;
}

/*
 * Adds the rows of the sections that do not bound functions, where the others have none. A gap of
 * one kind can hide a row of the other at the same address, so rows of gaps go first.
 */
static fathom_err add_other_sections(struct making *m)
{
	struct rows first = m->rows;
	size_t n = 0;

	if (m->tables->n_sections == m->tables->n_bounding)
		return FATHOM_OK;
	FATHOM_TRY(fathom_unwind_tables_walk(m->tables, false, add_range, m));
	m->rows = (struct rows){ 0 };
	m->end = 0;
	FATHOM_TRY(m->err);
	FATHOM_TRY(fathom_unwind_tables_walk(m->tables, true, add_rest, m));
	if (m->end)
		add_row(m, m->end, 0);
	if (!m->err && !fathom_array_room(&m->rows, first.n))
		m->err = FATHOM_E_MEMORY;
	if (!m->err && first.n) {
		memcpy(m->rows.items + m->rows.n, first.items, first.n * sizeof *first.items);
		m->rows.n += first.n;
		qsort(m->rows.items, m->rows.n, sizeof *m->rows.items, compare_rows);
		/* Of two rows at one address the one with a rule holds. */
		for (size_t i = 0; i < m->rows.n; i++) {
			const struct row_at r = m->rows.items[i];

			if (n && m->rows.items[n - 1].svma == r.svma)
				m->rows.items[n - 1].rule |= r.rule;
			else
				m->rows.items[n++] = r;
		}
		m->rows.n = n;
	}
	fathom_array_free(&first);
	return m->err;
}

static fathom_err read_rows(struct making *m)
{
	static const struct fathom_unwind_rule other = { .kind = FATHOM_UNWIND_OTHER };
	static const struct fathom_unwind_rule none = { .kind = FATHOM_UNWIND_NONE };

	(void)intern(m, &none);
	(void)intern(m, &other);
	FATHOM_TRY(m->err);
	FATHOM_TRY(fathom_unwind_tables_walk(m->tables, false, add_fde, m));
	FATHOM_TRY(m->err);
	if (m->end)
		add_row(m, m->end, 0);
	FATHOM_TRY(m->err);
	return add_other_sections(m);
}

/* Returns @n rounded up to what all arrays are aligned to. */
static size_t aligned(size_t n)
{
	return (n + 7) & ~(size_t)7;
}

/* Most pages of a table: 4 GiB of code. */
#define MAX_PAGES 65536

/* Lays the table out in one allocation; NULL without memory. Rows outside its pages are left out.
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
	fathom_array_free(&m.ranges);
	fathom_array_free(&m.rows);
	fathom_array_free(&m.rules);
	free(m.buckets);
	return err;
}
