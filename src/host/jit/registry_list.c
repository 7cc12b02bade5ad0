/* SPDX-License-Identifier: MIT */
#include "host/jit/registry_list.h"

#include <elf.h>

#include "safe/base/limits.h"
#include "safe/base/sort.h"
#include "safe/elf/image.h"
#include "safe/jit/registry.h"

/* Offsets that all versions have. */
#define HEAD_SIZE  sizeof(struct fathom_registry_head)
#define TABLE_HEAD offsetof(struct fathom_registry_table, rows)

/* How often a table that goes away meanwhile is read. */
#define MAX_TRIES 16

/* Rows that are read in the first go: a publisher has no more. */
#define USUAL_ROWS 256

struct table_bytes {
	FATHOM_ARRAY_OF(uint8_t);
};

/* Reads the address of the table; 0 if there is none. */
static uint64_t read_head(const struct fathom_reader *r, uint64_t head)
{
	struct fathom_registry_head h;

	if (!fathom_reader_read(r, head, &h, HEAD_SIZE) || h.magic != FATHOM_REGISTRY_MAGIC ||
	    h.version != FATHOM_REGISTRY_VERSION || h.head_size != HEAD_SIZE ||
	    h.row_size != sizeof(struct fathom_registry_row))
		return 0;
	return atomic_load_explicit(&h.table, memory_order_relaxed);
}

static bool is_serial(const struct fathom_reader *r, uint64_t avma, uint64_t serial)
{
	uint64_t now;

	return serial && fathom_reader_read(r, avma, &now, sizeof now) && now == serial;
}

/* Reads the @size bytes at @avma after the @done that @to has already; FATHOM_E_CHANGED. */
static fathom_err read_rest(const struct fathom_reader *r, uint64_t avma, size_t done, size_t size,
			    struct table_bytes *to)
{
	to->n = 0;
	if (!fathom_array_room(to, size))
		return FATHOM_E_MEMORY;
	return done >= size || fathom_reader_read(r, avma + done, to->items + done, size - done)
		       ? FATHOM_OK
		       : FATHOM_E_CHANGED;
}

/* Reads the table at @avma; FATHOM_E_CHANGED if it went away meanwhile. */
static fathom_err read_table(const struct fathom_reader *r, uint64_t avma, struct table_bytes *to,
			     size_t *ret_n)
{
	const size_t usual = TABLE_HEAD + USUAL_ROWS * sizeof(struct fathom_registry_row);
	uint64_t head[3]; /* serial, check, n */
	size_t got;

	to->n = 0;
	if (!fathom_array_room(to, usual))
		return FATHOM_E_MEMORY;
	got = r->read(r->data, avma, to->items, usual);
	if (got < TABLE_HEAD)
		return FATHOM_E_CHANGED;
	memcpy(head, to->items, sizeof head);
	if (!head[0] || head[1] != (head[0] ^ avma ^ FATHOM_REGISTRY_MAGIC))
		return FATHOM_E_CHANGED;
	if (head[2] > FATHOM_MAX_GDB_ENTRIES)
		return is_serial(r, avma, head[0]) ? FATHOM_E_LIMIT : FATHOM_E_CHANGED;
	FATHOM_TRY(read_rest(r, avma, got,
			     TABLE_HEAD + (size_t)head[2] * sizeof(struct fathom_registry_row),
			     to));
	*ret_n = (size_t)head[2];
	return is_serial(r, avma, head[0]) ? FATHOM_OK : FATHOM_E_CHANGED;
}

static fathom_err append(uint64_t head, uint64_t table, const struct table_bytes *bytes, size_t n,
			 struct fathom_gdb_items *items)
{
	struct fathom_registry_row row;
	uint64_t end = 0;

	/* The limit holds for all lists together. */
	if (items->n > FATHOM_MAX_GDB_ENTRIES || n > FATHOM_MAX_GDB_ENTRIES - items->n)
		return FATHOM_E_LIMIT;
	if (!fathom_array_room(items, n))
		return FATHOM_E_MEMORY;
	for (size_t i = 0; i < n; i++) {
		memcpy(&row, bytes->items + TABLE_HEAD + i * sizeof row, sizeof row);
		if (row.low < end || row.high <= row.low || !row.file || !row.serial)
			return FATHOM_E_CORRUPT;
		end = row.high;
		items->items[items->n++] = (struct fathom_gdb_item){
			/* The only number that no two rows have in common. */
			.avma = row.low,      .before = table,
			.list = head,         .entry = { .symfile = row.file, .size = row.size },
			.low = row.low,       .high = row.high,
			.serial = row.serial,
		};
	}
	return FATHOM_OK;
}

fathom_err fathom_registry_walk(const struct fathom_reader *r, uint64_t head,
				struct fathom_gdb_items *items, bool *ret_is_on)
{
	struct table_bytes bytes = { 0 };
	fathom_err err = FATHOM_E_CHANGED;
	uint64_t table = 0;
	size_t n;

	*ret_is_on = true;
	for (int i = 0; i < MAX_TRIES && err == FATHOM_E_CHANGED; i++) {
		table = read_head(r, head);
		*ret_is_on = table != 0;
		err = table ? read_table(r, table, &bytes, &n) : FATHOM_OK;
	}
	if (!err && table)
		err = append(head, table, &bytes, n, items);
	fathom_array_free(&bytes);
	return err;
}

bool fathom_registry_stays(const struct fathom_reader *r, const struct fathom_gdb_item *item)
{
	return is_serial(r, item->entry.symfile - sizeof(uint64_t), item->serial);
}

uint64_t fathom_registry_since(struct fathom_bytes file, uint64_t avma)
{
	struct fathom_section symbols;
	struct fathom_section functions;
	struct fathom_bytes of_symbols;
	struct fathom_bytes of_functions;
	struct fathom_registry_function f;
	struct fathom_image image;
	Elf64_Sym sym;
	size_t n;

	if (fathom_image_init(file, &image, NULL) ||
	    !fathom_image_section(&image, FATHOM_REGISTRY_SYMBOLS, &symbols) ||
	    !fathom_image_section(&image, FATHOM_REGISTRY_FUNCTIONS, &functions))
		return 0;
	of_symbols = fathom_image_section_bytes(&image, &symbols);
	of_functions = fathom_image_section_bytes(&image, &functions);
	n = (size_t)(of_functions.size / sizeof f);
	/* The first symbol is none. */
	if (of_symbols.size / sizeof sym != n + 1)
		return 0;
	n = FATHOM_BISECT(n, i,
			  (memcpy(&sym, of_symbols.data + (i + 1) * sizeof sym, sizeof sym),
			   sym.st_value <= avma));
	if (!n)
		return 0;
	memcpy(&sym, of_symbols.data + n * sizeof sym, sizeof sym);
	memcpy(&f, of_functions.data + (n - 1) * sizeof f, sizeof f);
	return avma - sym.st_value < sym.st_size ? f.since : 0;
}
