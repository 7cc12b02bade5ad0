/* SPDX-License-Identifier: MIT */
#include "host/jit/gdb_provider.h"

#include <stdlib.h>

#include "host/jit/gdb_symfile.h"
#include "host/jit/gdb_work.h"
#include "host/jit/registry_list.h"
#include "host/module/module.h"
#include "host/symbolize/batch.h"
#include "safe/base/limits.h"
#include "safe/base/sort.h"

/* Symbol files open while their answers are made and verified. */
#define ITEMS_AT_ONCE 256

void fathom_gdb_jit_init(struct fathom_gdb_jit *g, struct fathom_memory *m)
{
	g->memory = m;
	g->table.memory = m;
}

struct fathom_gdb_known *fathom_gdb_known_at(const struct fathom_gdb_jit *g, size_t i)
{
	return g->known.items + i;
}

static void forget(struct fathom_gdb_known *k)
{
	fathom_module_close(k->module);
	free(k->code);
}

void fathom_gdb_jit_deinit(struct fathom_gdb_jit *g)
{
	for (size_t i = 0; i < g->known.n; i++)
		forget(fathom_gdb_known_at(g, i));
	fathom_code_table_clear(&g->table);
	fathom_array_free(&g->lists);
	fathom_array_free(&g->items);
	fathom_array_free(&g->known);
}

/* Notes what is wrong with the JIT code of the process. */
static void note_in(const struct fathom_jit_process *p, fathom_err err, enum fathom_cause cause,
		    const char *what)
{
	struct fathom_errinfo info;

	(void)fathom_fail_by(&info, err, cause, what);
	fathom_errinfo_set_file(&info, "__jit_debug_descriptor");
	fathom_notes_add(p->notes, &info);
}

static void note(const struct fathom_gdb_asking *a, fathom_err err, const char *what)
{
	note_in(a->p, err, FATHOM_CAUSE_NONE, what);
}

/* State for finding the lists in the modules of a process. */
struct list_search {
	struct fathom_gdb_jit *g;
	const struct fathom_jit_process *p;
	bool failed; /* out of memory */
};

/* Adds the list of module @at, if any. */
static bool add_list(const struct fathom_module_at *at, void *data)
{
	struct list_search *s = data;
	struct fathom_gdb_jit *g = s->g;
	const struct fathom_image *image = &at->module->main->image;
	struct fathom_gdb_list *l;
	uint64_t registry = 0;
	uint64_t descriptor = 0;
	const bool has_registry = fathom_module_jit_registry(at->module, &registry);
	const bool has_descriptor = fathom_module_jit_descriptor(at->module, &descriptor);

	if (!has_registry && !has_descriptor)
		return true;
	if (g->lists.n == FATHOM_MAX_GDB_LISTS) {
		note_in(s->p, FATHOM_E_LIMIT, FATHOM_CAUSE_NONE,
			"more lists of JIT code than fathom reads");
		return true;
	}
	s->failed = !fathom_array_room(&g->lists, 1);
	if (s->failed)
		return false;
	l = g->lists.items + g->lists.n++;
	*l = (struct fathom_gdb_list){
		.layout = fathom_gdb_layout(image->is64, image->machine, image->swap),
		.descriptor = has_descriptor ? descriptor + at->bias : 0,
		/* The registry of a program of the other byte order is not read. */
		.registry = has_registry && !image->swap ? registry + at->bias : 0,
	};
	return true;
}

fathom_err fathom_gdb_jit_find(struct fathom_gdb_jit *g, const struct fathom_jit_process *p)
{
	struct list_search s = { .g = g, .p = p };

	g->lists.n = 0;
	FATHOM_TRY(p->ops->modules(p, add_list, &s));
	return s.failed ? FATHOM_E_MEMORY : FATHOM_OK;
}

fathom_err fathom_gdb_walk(const struct fathom_gdb_asking *a, const struct fathom_gdb_items *before,
			   struct fathom_gdb_items *items)
{
	const struct fathom_gdb_list *lists = a->g->lists.items;

	items->n = 0;
	for (size_t i = 0; i < a->g->lists.n; i++)
		FATHOM_TRY(fathom_gdb_list_walk(&a->p->memory, &lists[i], before, items));
	return FATHOM_OK;
}

fathom_err fathom_gdb_check_size(struct fathom_gdb_asking *a, uint64_t size)
{
	if (!size)
		return FATHOM_E_NOT_FOUND;
	if (size > FATHOM_MAX_GDB_SYMFILE || size > FATHOM_MAX_GDB_BYTES - a->n_bytes ||
	    !fathom_memory_fits(a->g->memory, size)) {
		note(a, FATHOM_E_LIMIT, "its symbol files are larger than fathom reads");
		return FATHOM_E_LIMIT;
	}
	a->n_bytes += size;
	return FATHOM_OK;
}

/*
 * Reads the symbol file of @item into pages of its own. FATHOM_E_NOT_FOUND if it is unreadable;
 * FATHOM_E_LIMIT; FATHOM_E_MEMORY.
 */
static fathom_err read_symfile(struct fathom_gdb_asking *a, const struct fathom_gdb_item *item,
			       uint8_t **ret)
{
	const uint64_t size = item->entry.size;
	uint8_t *pages;

	FATHOM_TRY(fathom_gdb_check_size(a, size));
	pages = fathom_pages_alloc(size);
	if (!pages)
		return FATHOM_E_MEMORY;
	if (fathom_reader_read(&a->p->memory, item->entry.symfile, pages, (size_t)size)) {
		*ret = pages;
		return FATHOM_OK;
	}
	fathom_pages_free(pages, size);
	return FATHOM_E_NOT_FOUND;
}

/* Remembers where @image has code. */
static fathom_err keep_code(struct fathom_gdb_known *k, const struct fathom_image *image)
{
	struct fathom_gdb_code code = { 0 };

	if (!fathom_gdb_symfile_code(image, &code)) {
		fathom_array_free(&code);
		return FATHOM_E_MEMORY;
	}
	k->is_other =
		k->n_code != code.n ||
		(code.n && memcmp(code.items, k->code, code.n * sizeof(struct fathom_range)) != 0);
	free(k->code);
	/* Shrink: many files have only a range or two. */
	k->code = realloc(code.items, (code.n + 1) * sizeof *k->code);
	k->code = k->code ? k->code : code.items;
	k->n_code = (uint32_t)code.n;
	return FATHOM_OK;
}

/* Remembers where the row of a registry has code. */
static fathom_err keep_row(struct fathom_gdb_known *k)
{
	if (!k->code)
		k->code = malloc(2 * sizeof *k->code);
	if (!k->code)
		return FATHOM_E_MEMORY;
	*k->code = (struct fathom_range){ k->item.low, k->item.high };
	k->n_code = 1;
	return FATHOM_OK;
}

uint64_t fathom_gdb_sum_of(struct fathom_bytes bytes)
{
	uint64_t sum = bytes.size;

	for (uint64_t i = 0; i < bytes.size; i += 8) {
		uint8_t word[8] = { 0 };

		memcpy(word, bytes.data + i, bytes.size - i < 8 ? (size_t)(bytes.size - i) : 8);
		sum = (sum ^ load_u64(word, false)) * UINT64_C(0x9e3779b97f4a7c15);
		sum ^= sum >> 32;
	}
	return sum | 1;
}

fathom_err fathom_gdb_read_alone(struct fathom_gdb_asking *a, uint64_t avma,
				 struct fathom_bytes *bytes)
{
	if (!fathom_array_room(&a->scratch, (size_t)bytes->size))
		return FATHOM_E_MEMORY;
	bytes->data = (const uint8_t *)a->scratch.items;
	return fathom_reader_read(&a->p->memory, avma, a->scratch.items, (size_t)bytes->size)
		       ? FATHOM_OK
		       : FATHOM_E_NOT_FOUND;
}

fathom_err fathom_gdb_read_code(struct fathom_gdb_asking *a, struct fathom_gdb_known *k,
				const uint8_t *data)
{
	struct fathom_bytes bytes = { data, k->item.entry.size };
	struct fathom_image image;
	fathom_err err;

	k->is_read = true;
	if (k->item.serial)
		return keep_row(k);
	err = fathom_gdb_check_size(a, bytes.size);
	if (!err && !data)
		err = fathom_gdb_read_alone(a, k->item.entry.symfile, &bytes);
	if (err == FATHOM_E_MEMORY)
		return err;
	k->sum = err ? 0 : fathom_gdb_sum_of(bytes);
	if (!err)
		err = fathom_image_init(bytes, &image, NULL);
	if (!err)
		err = keep_code(k, &image);
	if (err)
		k->n_code = 0;
	k->is_other = false;
	return err == FATHOM_E_MEMORY ? err : FATHOM_OK;
}

/* The most bytes of symbol files that are read in one call. */
#define BYTES_AT_ONCE (1 << 20)

/* Symbol files to read in one call. */
struct gathered {
	struct fathom_gdb_known *of[FATHOM_READER_EACH];
	struct fathom_reader_piece pieces[FATHOM_READER_EACH];
	size_t n;
	size_t size; /* bytes */
};

/* Reads where the files of @g have code, and empties it. */
static fathom_err read_gathered(struct fathom_gdb_asking *a, struct gathered *g)
{
	const struct fathom_reader *r = &a->p->memory;
	size_t got = 0;
	size_t at = 0;

	if (!g->n)
		return FATHOM_OK;
	if (!fathom_array_room(&a->scratch, g->size))
		return FATHOM_E_MEMORY;
	if (r->read_each)
		got = r->read_each(r->data, g->pieces, g->n, (uint8_t *)a->scratch.items);
	for (size_t i = 0; i < got; at += g->pieces[i++].size)
		FATHOM_TRY(
			fathom_gdb_read_code(a, g->of[i], (const uint8_t *)a->scratch.items + at));
	/* After one that cannot be read. */
	for (size_t i = got; i < g->n; i++)
		FATHOM_TRY(fathom_gdb_read_code(a, g->of[i], NULL));
	g->n = 0;
	g->size = 0;
	return FATHOM_OK;
}

/* Reads where the symbol file of @k has code, at the latest with read_gathered(). */
static fathom_err gather(struct fathom_gdb_asking *a, struct gathered *g,
			 struct fathom_gdb_known *k)
{
	const uint64_t size = k->item.entry.size;

	if (!size || size > BYTES_AT_ONCE || k->item.serial)
		return fathom_gdb_read_code(a, k, NULL);
	if (g->n == FATHOM_READER_EACH || g->size + size > BYTES_AT_ONCE)
		FATHOM_TRY(read_gathered(a, g));
	g->of[g->n] = k;
	g->pieces[g->n++] = (struct fathom_reader_piece){ k->item.entry.symfile, (size_t)size };
	g->size += (size_t)size;
	return FATHOM_OK;
}

/* Makes the table of all code; the newest entry wins. */
static fathom_err make_table(const struct fathom_gdb_asking *a)
{
	struct fathom_gdb_jit *g = a->g;
	struct fathom_claim_array claims = { 0 };
	fathom_err err = FATHOM_OK;

	fathom_code_table_clear(&g->table);
	for (size_t i = 0; i < g->known.n && !err; i++) {
		const struct fathom_gdb_known *k = fathom_gdb_known_at(g, i);

		if (!fathom_array_room(&claims, k->n_code))
			err = FATHOM_E_MEMORY;
		for (uint32_t c = 0; c < k->n_code && !err; c++)
			(claims.items)[claims.n++] =
				(struct fathom_claim){ k->code[c].low, k->code[c].high,
						       g->known.n - i };
	}
	if (!err && claims.n)
		err = fathom_code_table_add(&g->table, claims.items, claims.n);
	fathom_array_free(&claims);
	g->is_whole = !err;
	if (err == FATHOM_E_LIMIT)
		note_in(a->p, err, FATHOM_CAUSE_BUDGET,
			"its list of JIT code does not fit the memory budget");
	return err == FATHOM_E_MEMORY ? err : FATHOM_OK;
}

/* Copies what is known of one item, but not its module. */
static bool copy_known(struct fathom_gdb_known *to, const struct fathom_gdb_known *from)
{
	*to = (struct fathom_gdb_known){ .item = from->item, .sum = from->sum };
	if (!from->code)
		return true;
	to->code = malloc((from->n_code + 1) * sizeof *to->code);
	if (!to->code)
		return false;
	if (from->n_code)
		memcpy(to->code, from->code, from->n_code * sizeof *to->code);
	to->n_code = from->n_code;
	return true;
}

fathom_err fathom_gdb_jit_learn(struct fathom_gdb_jit *g, const struct fathom_gdb_jit *from,
				const struct fathom_jit_process *p)
{
	const struct fathom_gdb_asking a = { .g = g, .p = p };

	if (g->items.n || g->known.n || !from->known.n || from->known.n != from->items.n)
		return FATHOM_OK;
	if (!fathom_array_room(&g->items, from->items.n) ||
	    !fathom_array_room(&g->known, from->known.n))
		return FATHOM_E_MEMORY;
	memcpy(g->items.items, from->items.items, from->items.n * sizeof *g->items.items);
	g->items.n = from->items.n;
	for (size_t i = 0; i < from->known.n; i++)
		if (!copy_known(&g->known.items[g->known.n++], fathom_gdb_known_at(from, i)))
			return FATHOM_E_MEMORY;
	return make_table(&a);
}

static bool same_symfile(const struct fathom_gdb_item *a, const struct fathom_gdb_item *b)
{
	return a->avma == b->avma && a->list == b->list && a->entry.symfile == b->entry.symfile &&
	       a->entry.size == b->entry.size && a->serial == b->serial;
}

size_t fathom_gdb_find_known(const struct fathom_gdb_jit *g, const struct fathom_keyed *sorted,
			     size_t n, const struct fathom_gdb_item *item)
{
	size_t i = FATHOM_BISECT(n, k, sorted[k].key < item->avma);

	while (i < n && sorted[i].key == item->avma &&
	       !same_symfile(&fathom_gdb_known_at(g, (size_t)sorted[i].value)->item, item))
		i++;
	return i < n && sorted[i].key == item->avma ? (size_t)sorted[i].value : n;
}

/* Moves what is known of items that are still there to @fresh. */
static void keep_known(struct fathom_gdb_jit *g, struct fathom_keyed *sorted,
		       struct fathom_gdb_known *fresh)
{
	const struct fathom_gdb_item *items = g->items.items;
	const size_t n = g->known.n;

	for (size_t i = 0; i < n; i++)
		sorted[i] = (struct fathom_keyed){ fathom_gdb_known_at(g, i)->item.avma, i };
	fathom_sort_keyed(sorted, sorted + n, n);
	for (size_t i = 0; i < g->items.n; i++) {
		const size_t k = fathom_gdb_find_known(g, sorted, n, &items[i]);

		if (k < n) {
			fresh[i] = *fathom_gdb_known_at(g, k);
			fathom_gdb_known_at(g, k)->code = NULL;
			fathom_gdb_known_at(g, k)->module = NULL;
			fathom_gdb_known_at(g, k)->n_code = 0;
		}
		fresh[i].item = items[i];
		/* The table is about to be made of them. */
		fresh[i].is_newer = false;
	}
	for (size_t i = 0; i < n; i++)
		forget(fathom_gdb_known_at(g, i));
}

/* Updates known to the items of the last walk, old and new. */
static fathom_err update_known(struct fathom_gdb_asking *a)
{
	struct fathom_gdb_jit *g = a->g;
	struct fathom_keyed *sorted = malloc((2 * g->known.n + 1) * sizeof *sorted);
	struct fathom_gdb_known *fresh = calloc(g->items.n + 1, sizeof *fresh);
	struct gathered gathered = { .n = 0 };

	if (!sorted || !fresh) {
		free(sorted);
		free(fresh);
		return FATHOM_E_MEMORY;
	}
	/* The table has indices of the old known: clear it until it is remade. */
	fathom_code_table_clear(&g->table);
	keep_known(g, sorted, fresh);
	free(sorted);
	fathom_array_free(&g->known);
	g->known = (struct fathom_gdb_known_array){ fresh, g->items.n, g->items.n + 1 };
	for (size_t i = 0; i < g->known.n; i++)
		if (!fresh[i].code)
			FATHOM_TRY(gather(a, &gathered, &fresh[i]));
	FATHOM_TRY(read_gathered(a, &gathered));
	return make_table(a);
}

static bool is_known(const struct fathom_gdb_jit *g)
{
	const struct fathom_gdb_item *items = g->items.items;

	if (g->known.n != g->items.n)
		return false;
	for (size_t i = 0; i < g->items.n; i++)
		if (!same_symfile(&fathom_gdb_known_at(g, i)->item, &items[i]))
			return false;
	return true;
}

size_t fathom_gdb_jit_number(const struct fathom_gdb_jit *g, uint64_t avma)
{
	const struct fathom_claim *c = fathom_code_table_at(&g->table, avma);

	return c ? g->known.n - (size_t)c->order : g->known.n;
}

/* Keys the places left by the items that answer them; returns false if some place has none. */
static bool key_places(struct fathom_gdb_asking *a)
{
	a->n_keyed = 0;
	a->n_lost = 0;
	for (size_t i = 0; i < a->n_left; i++) {
		const uint64_t avma =
			fathom_looked_up(a->rest->options, a->rest->addresses, a->left[i]);
		const size_t number = fathom_gdb_jit_number(a->g, avma);

		if (number < a->g->known.n)
			a->keyed[a->n_keyed++] = (struct fathom_keyed){ number, a->left[i] };
		else
			a->lost[a->n_lost++] = a->left[i];
	}
	fathom_sort_keyed(a->keyed, a->keyed + a->n_keyed, a->n_keyed);
	return !a->n_lost;
}

fathom_err fathom_gdb_read_again(struct fathom_gdb_asking *a)
{
	struct gathered gathered = { .n = 0 };
	bool any = false;

	for (size_t i = 0; i < a->g->known.n; i++) {
		struct fathom_gdb_known *k = fathom_gdb_known_at(a->g, i);

		if (k->is_read)
			continue;
		any = true;
		FATHOM_TRY(gather(a, &gathered, k));
	}
	FATHOM_TRY(read_gathered(a, &gathered));
	return any ? make_table(a) : FATHOM_OK;
}

enum fathom_source fathom_gdb_source_of(const struct fathom_gdb_item *item)
{
	return item->serial ? FATHOM_SOURCE_REGISTERED : FATHOM_SOURCE_GDB_JIT;
}

fathom_err fathom_gdb_refresh_module(struct fathom_gdb_asking *a, struct fathom_gdb_known *k)
{
	const uint64_t size = k->item.entry.size;
	struct fathom_object *o;
	uint8_t *pages;
	fathom_err err;

	/* Entries of a registry do not change. */
	if (k->item.serial && k->module)
		return FATHOM_OK;
	err = read_symfile(a, &k->item, &pages);
	if (!err && k->item.serial && !fathom_registry_stays(&a->p->memory, &k->item)) {
		fathom_pages_free(pages, size);
		err = FATHOM_E_NOT_FOUND;
	}
	if (!err && k->module &&
	    memcmp(k->module->main->file->bytes.data, pages, (size_t)size) == 0) {
		fathom_pages_free(pages, size);
		return FATHOM_OK;
	}
	fathom_module_close(k->module);
	k->module = NULL;
	if (!err)
		err = fathom_gdb_symfile_wrap(a->g->memory, &k->item.entry, pages, &o);
	if (err)
		return err == FATHOM_E_MEMORY ? err : FATHOM_OK;
	err = k->item.serial ? keep_row(k) : keep_code(k, &o->image);
	if (err) {
		fathom_object_close(o);
		return err;
	}
	FATHOM_TRY(fathom_module_create_alone(a->p->paths, o, a->p->notes, &k->module));
	fathom_symbol_set_source(&k->module->symbols, fathom_gdb_source_of(&k->item));
	return FATHOM_OK;
}

/* Returns whether the symbol file of @k still equals the one its module was made of. */
static bool is_unchanged(const struct fathom_gdb_asking *a, const struct fathom_gdb_known *k)
{
	const struct fathom_bytes was = k->module->main->file->bytes;
	uint8_t piece[4096];
	uint64_t off = 0;

	while (off < was.size) {
		const size_t n =
			(size_t)(was.size - off < sizeof piece ? was.size - off : sizeof piece);

		if (!fathom_reader_read(&a->p->memory, k->item.entry.symfile + off, piece, n) ||
		    memcmp(piece, was.data + off, n) != 0)
			return false;
		off += n;
	}
	return true;
}

/* Replaces the answer at @place by one without a name. */
static void withdraw(const struct fathom_gdb_asking *a, uint32_t place, enum fathom_reason reason)
{
	*fathom_answers_renew(a->rest->answers, place) =
		fathom_answer_without_module(a->rest->addresses[place], reason);
}

/* Removes from the answer at @place what is not true of code outside files. */
static void finish_answer(const struct fathom_gdb_asking *a, uint32_t place,
			  enum fathom_source source)
{
	struct fathom_answer *answer = &a->rest->answers->answers[place];

	answer->module_address = FATHOM_NO_ADDRESS;
	if (!answer->symbol || answer->source == FATHOM_SOURCE_FDE ||
	    answer->source == FATHOM_SOURCE_PLT)
		withdraw(a, place, FATHOM_REASON_NO_FILE);
	else
		answer->source = (uint8_t)source;
}

static bool is_answered(const struct fathom_answer *a)
{
	return a->symbol || a->reason == FATHOM_REASON_CHANGED;
}

/* Answers the @n places of @keyed, all of one item, by its current symbol file. */
static fathom_err answer_item(struct fathom_gdb_asking *a, const struct fathom_keyed *keyed,
			      size_t n, uint32_t *places)
{
	struct fathom_gdb_known *k = fathom_gdb_known_at(a->g, (size_t)keyed->key);
	struct fathom_module_group group = { .addresses = a->rest->addresses,
					     .places = places,
					     .n = n };

	FATHOM_TRY(fathom_gdb_refresh_module(a, k));
	group.module = k->module;
	for (size_t i = 0; i < n; i++)
		places[i] = (uint32_t)keyed[i].value;
	if (!k->module)
		return FATHOM_OK;
	FATHOM_TRY(fathom_symbolize_group(&group, a->rest->options, a->rest->answers));
	for (size_t i = 0; i < n; i++)
		finish_answer(a, places[i], fathom_gdb_source_of(&k->item));
	return FATHOM_OK;
}

/* Returns how many places from @first on are of one item. */
static size_t count_of_item(const struct fathom_gdb_asking *a, size_t first)
{
	size_t n = 1;

	while (first + n < a->n_keyed && a->keyed[first + n].key == a->keyed[first].key)
		n++;
	return n;
}

/* Answers the places keyed from @first to @end. */
static fathom_err answer_items(struct fathom_gdb_asking *a, size_t first, size_t end)
{
	size_t n;

	for (size_t i = first; i < end; i += n) {
		n = count_of_item(a, i);
		FATHOM_TRY(answer_item(a, a->keyed + i, n, a->left + i));
	}
	return FATHOM_OK;
}

bool fathom_gdb_has_stayed(const struct fathom_gdb_asking *a, size_t number,
			   const struct fathom_gdb_pair *walks)
{
	struct fathom_gdb_known *k = fathom_gdb_known_at(a->g, number);

	/* It was verified when it was read, and what it says does not change. */
	if (k->item.serial)
		return k->module != NULL;
	if (!k->is_other && fathom_gdb_item_stayed(walks, number) &&
	    (!k->module || is_unchanged(a, k)))
		return true;
	k->is_read = false;
	return false;
}

static bool is_of_registry(const struct fathom_gdb_asking *a, uint64_t number)
{
	return fathom_gdb_known_at(a->g, (size_t)number)->item.serial != 0;
}

/* Walks the lists again into @now, to compare with the known items. */
static fathom_err walk_over(const struct fathom_gdb_asking *a, struct fathom_gdb_items *now,
			    struct fathom_gdb_pair *ret_walks)
{
	FATHOM_TRY(fathom_gdb_walk(a, &a->g->items, now));
	return fathom_gdb_pair_init(ret_walks, &a->g->items, now) ? FATHOM_OK : FATHOM_E_MEMORY;
}

/* Verifies the answers keyed from @first to @end; puts those that may be wrong into left. */
static fathom_err verify_items(struct fathom_gdb_asking *a, size_t first, size_t end)
{
	struct fathom_gdb_items now = { 0 };
	struct fathom_gdb_pair walks = { 0 };
	const fathom_err err = walk_over(a, &now, &walks);
	size_t n;

	for (size_t i = first; i < end; i += n) {
		n = count_of_item(a, i);
		if ((!err || is_of_registry(a, a->keyed[i].key)) &&
		    fathom_gdb_has_stayed(a, (size_t)a->keyed[i].key, &walks))
			continue;
		for (size_t p = i; p < i + n; p++) {
			withdraw(a, (uint32_t)a->keyed[p].value, FATHOM_REASON_CHANGED);
			a->left[a->n_left++] = (uint32_t)a->keyed[p].value;
		}
	}
	fathom_gdb_pair_deinit(&walks);
	fathom_array_free(&now);
	return err == FATHOM_E_MEMORY ? err : FATHOM_OK;
}

struct fathom_module *fathom_gdb_jit_module(const struct fathom_gdb_jit *g, size_t i)
{
	return fathom_gdb_known_at(g, i)->module;
}

void fathom_gdb_jit_trim(struct fathom_gdb_jit *g)
{
	size_t n = 0;

	for (size_t i = 0; i < g->known.n; i++)
		n += fathom_gdb_known_at(g, i)->module != NULL;
	for (size_t i = 0; i < g->known.n && n > FATHOM_MAX_GDB_MODULES; i++) {
		fathom_module_close(fathom_gdb_known_at(g, i)->module);
		fathom_gdb_known_at(g, i)->module = NULL;
	}
}

/* Answers the keyed places, some items at a time. */
static fathom_err answer_keyed(struct fathom_gdb_asking *a)
{
	size_t end;

	a->n_left = 0;
	for (size_t first = 0; first < a->n_keyed; first = end) {
		end = first;
		for (int i = 0; i < ITEMS_AT_ONCE && end < a->n_keyed; i++)
			end += count_of_item(a, end);
		FATHOM_TRY(answer_items(a, first, end));
		if (a->p->is_live)
			FATHOM_TRY(verify_items(a, first, end));
		fathom_gdb_jit_trim(a->g);
	}
	return FATHOM_OK;
}

fathom_err fathom_gdb_refresh(struct fathom_gdb_asking *a)
{
	bool any = false;

	for (size_t i = 0; i < a->g->known.n; i++) {
		any |= fathom_gdb_known_at(a->g, i)->is_other;
		fathom_gdb_known_at(a->g, i)->is_other = false;
	}
	if (!is_known(a->g))
		return update_known(a);
	return any ? make_table(a) : FATHOM_OK;
}

bool fathom_gdb_is_whole(const struct fathom_gdb_asking *a, const struct fathom_gdb_items *before,
			 const struct fathom_gdb_items *now)
{
	return !a->p->is_live || fathom_gdb_items_linked(now) ||
	       (before && fathom_gdb_items_same(before, now));
}

bool fathom_gdb_may_pass(fathom_err err)
{
	return err == FATHOM_E_CORRUPT || err == FATHOM_E_CHANGED;
}

fathom_err fathom_gdb_walk_again(struct fathom_gdb_asking *a)
{
	fathom_err err = FATHOM_E_CORRUPT;

	a->is_whole = false;
	a->is_astray = false;
	for (int i = 0; i < FATHOM_GDB_MAX_WALKS && !a->is_whole; i++) {
		const bool again = !err;
		struct fathom_gdb_items now = { 0 };

		err = fathom_gdb_walk(a, &a->g->items, &now);
		a->is_whole = !err && fathom_gdb_is_whole(a, again ? &a->g->items : NULL, &now);
		a->is_astray = err == FATHOM_E_CORRUPT && fathom_gdb_items_same(&a->g->items, &now);
		fathom_array_free(&a->g->items);
		a->g->items = now;
		if (err && (!fathom_gdb_may_pass(err) || !a->p->is_live))
			break;
	}
	return err;
}

bool fathom_gdb_is_changing(const struct fathom_gdb_asking *a)
{
	return fathom_gdb_may_pass(a->walked) && a->p->is_live && !a->is_astray;
}

/* Ends the places without an item; puts them into left if an item may have been missed. */
static void end_lost(struct fathom_gdb_asking *a)
{
	for (size_t i = 0; i < a->n_lost; i++) {
		const uint32_t place = a->lost[i];

		if (!a->is_whole) {
			withdraw(a, place, FATHOM_REASON_CHANGED);
			a->left[a->n_left++] = place;
		} else if (a->rest->answers->answers[place].reason == FATHOM_REASON_CHANGED) {
			/* An earlier round found an item for it. */
			withdraw(a, place, FATHOM_REASON_NO_FILE);
		}
	}
}

/* Answers the places left, once; those that changed meanwhile stay left. */
static fathom_err run_round(struct fathom_gdb_asking *a)
{
	/* A changing list may have bad pointers: the next round walks it again. */
	a->walked = fathom_gdb_walk_again(a);
	if (a->walked)
		return fathom_gdb_may_pass(a->walked) ? FATHOM_OK : a->walked;
	FATHOM_TRY(fathom_gdb_refresh(a));
	if (!key_places(a)) {
		FATHOM_TRY(fathom_gdb_read_again(a));
		(void)key_places(a);
	}
	FATHOM_TRY(answer_keyed(a));
	end_lost(a);
	return FATHOM_OK;
}

/* Removes the answered places from the batch. */
static void drop_answered(struct fathom_unresolved *rest)
{
	size_t n = 0;

	for (size_t i = 0; i < rest->n; i++)
		if (!is_answered(&rest->answers->answers[rest->places[i]]))
			rest->places[n++] = rest->places[i];
	rest->n = n;
}

void fathom_gdb_note_walk(const struct fathom_gdb_asking *a, fathom_err err)
{
	if (err == FATHOM_E_LIMIT)
		note(a, err, "its list of JIT code is longer than fathom reads");
	else if (a->walked == FATHOM_E_CORRUPT && (a->is_astray || !a->p->is_live))
		note(a, a->walked, "its list of JIT code leads astray");
}

static fathom_err ask(struct fathom_gdb_asking *a)
{
	fathom_err err = FATHOM_OK;

	for (size_t i = 0; i < a->g->known.n; i++)
		fathom_gdb_known_at(a->g, i)->is_read = false;
	memcpy(a->left, a->rest->places, a->rest->n * sizeof *a->left);
	a->n_left = a->rest->n;
	for (int i = 0; i < FATHOM_MAX_JIT_ROUNDS && !err && a->n_left && a->g->lists.n; i++)
		err = run_round(a);
	for (size_t i = 0; i < a->n_left && !err && fathom_gdb_is_changing(a); i++)
		withdraw(a, a->left[i], FATHOM_REASON_CHANGED);
	fathom_gdb_note_walk(a, err);
	return err == FATHOM_E_LIMIT ? FATHOM_OK : err;
}

fathom_err fathom_gdb_jit_answer(struct fathom_gdb_jit *g, const struct fathom_jit_process *p,
				 struct fathom_unresolved *rest)
{
	struct fathom_gdb_asking a = { .g = g, .p = p, .rest = rest };
	fathom_err err = FATHOM_E_MEMORY;

	a.keyed = malloc((2 * rest->n + 1) * sizeof *a.keyed);
	a.left = malloc((rest->n + 1) * sizeof *a.left);
	a.lost = malloc((rest->n + 1) * sizeof *a.lost);
	if (a.keyed && a.left && a.lost)
		err = ask(&a);
	free(a.keyed);
	free(a.left);
	free(a.lost);
	fathom_array_free(&a.scratch);
	if (!err)
		drop_answered(rest);
	return err;
}

/*
 * Closes the modules of items that have changed. Returns false if an item that was there all the
 * time may be missing: the walk was not whole, or the table differs from the symbol files.
 */
static bool verify_modules(struct fathom_gdb_asking *a)
{
	struct fathom_gdb_items now = { 0 };
	struct fathom_gdb_pair walks = { 0 };
	const fathom_err err = walk_over(a, &now, &walks);
	bool all = !err && fathom_gdb_is_whole(a, &a->g->items, &now);

	for (size_t i = 0; i < a->g->known.n; i++) {
		struct fathom_gdb_known *k = fathom_gdb_known_at(a->g, i);

		/* All that a registry had at the moment of the walk, or all is asked again. */
		all &= !k->is_other && (!k->item.serial || k->module);
		if (!k->module || k->item.serial || (!err && fathom_gdb_has_stayed(a, i, &walks)))
			continue;
		fathom_module_close(k->module);
		k->module = NULL;
	}
	fathom_gdb_pair_deinit(&walks);
	fathom_array_free(&now);
	return all;
}

/* Makes all modules once; *@ret_done: none that was in the lists all the time is missing. */
static fathom_err open_once(struct fathom_gdb_asking *a, bool *ret_done)
{
	a->walked = fathom_gdb_walk_again(a);
	if (a->walked)
		return fathom_gdb_may_pass(a->walked) ? FATHOM_OK : a->walked;
	FATHOM_TRY(fathom_gdb_refresh(a));
	a->n_bytes = 0;
	for (size_t i = 0; i < a->g->known.n; i++)
		FATHOM_TRY(fathom_gdb_refresh_module(a, fathom_gdb_known_at(a->g, i)));
	*ret_done = !a->p->is_live || (verify_modules(a) && a->is_whole);
	return FATHOM_OK;
}

fathom_err fathom_gdb_jit_open(struct fathom_gdb_jit *g, const struct fathom_jit_process *p,
			       size_t *ret_n, bool *ret_changed)
{
	struct fathom_gdb_asking a = { .g = g, .p = p };
	bool done = !g->lists.n;
	fathom_err err = FATHOM_OK;

	for (int i = 0; i < FATHOM_MAX_JIT_ROUNDS && !err && !done; i++)
		err = open_once(&a, &done);
	fathom_array_free(&a.scratch);
	/* After a failed walk, known is of an earlier walk and out of date. */
	*ret_n = g->lists.n && !err && !a.walked ? g->known.n : 0;
	*ret_changed = !done && (!a.walked || fathom_gdb_is_changing(&a));
	fathom_gdb_note_walk(&a, err);
	return err == FATHOM_E_LIMIT ? FATHOM_OK : err;
}
