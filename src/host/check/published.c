/* SPDX-License-Identifier: MIT */
#include "host/check/published.h"

#include <stdlib.h>

#include "host/jit/code_table.h"
#include "host/jit/gdb_symfile.h"
#include "host/module/module.h"
#include "host/space/target.h"
#include "safe/base/limits.h"

/* A registered symbol file. */
struct file {
	uint64_t entry; /* avma of its entry */
	uint64_t order; /* of its claims to code; later files have higher ones */
	struct fathom_module *module;
	struct fathom_gdb_code code;
};

/* Buckets of functions; a power of two. */
#define BUCKETS 4096

/* Entries of the cache of pcs; a power of two. */
#define CACHED_PCS 2048

struct cached_pc {
	uint64_t generation; /* it holds if this is that of the files */
	bool is_made;
	struct fathom_jit_code_pc made;
};

struct fathom_published {
	const struct fathom_tracee *tracee;
	struct fathom_target *target;
	struct {
		FATHOM_ARRAY_OF(struct file *);
	} files; /* sorted by order */
	struct fathom_code_table table;
	uint64_t orders;
	uint64_t generation;             /* increments with each change */
	struct fathom_row_reader reader; /* scratch */
	struct cached_pc cache[CACHED_PCS];
	struct fathom_jit_code_function *functions[BUCKETS];
};

static void file_destroy(struct file *f)
{
	fathom_array_free(&f->code);
	fathom_module_close(f->module);
	free(f);
}

fathom_err fathom_published_create(const struct fathom_tracee *t, struct fathom_target *target,
				   struct fathom_published **ret)
{
	struct fathom_published *p = calloc(1, sizeof *p);

	if (!p)
		return FATHOM_E_MEMORY;
	p->tracee = t;
	p->target = target;
	p->table.memory = &target->session->memory;
	p->generation = 1;
	*ret = p;
	return FATHOM_OK;
}

static void free_functions(struct fathom_jit_code_function *f)
{
	while (f) {
		struct fathom_jit_code_function *next = f->next;

		free(f->name);
		free(f);
		f = next;
	}
}

void fathom_published_destroy(struct fathom_published *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->files.n; i++)
		file_destroy(p->files.items[i]);
	for (size_t i = 0; i < BUCKETS; i++)
		free_functions(p->functions[i]);
	fathom_array_free(&p->files);
	fathom_code_table_clear(&p->table);
	free(p);
}

/* Reads the symbol file of @entry; FATHOM_E_NOT_FOUND if it cannot be read. */
static fathom_err read_symfile(const struct fathom_published *p,
			       const struct fathom_gdb_entry *entry, struct fathom_object **ret)
{
	uint8_t *pages;

	if (!entry->size || entry->size > FATHOM_MAX_GDB_SYMFILE)
		return FATHOM_E_NOT_FOUND;
	pages = fathom_pages_alloc(entry->size);
	if (!pages)
		return FATHOM_E_MEMORY;
	if (!fathom_tracee_read(p->tracee, entry->symfile, pages, (size_t)entry->size)) {
		fathom_pages_free(pages, entry->size);
		return FATHOM_E_NOT_FOUND;
	}
	return fathom_gdb_symfile_wrap(p->table.memory, entry, pages, ret);
}

/* Opens the module of @f. A file that is damaged has no code. */
static fathom_err open_file(const struct fathom_published *p, const struct fathom_gdb_entry *entry,
			    struct file *f)
{
	struct fathom_object *o;
	const fathom_err err = read_symfile(p, entry, &o);

	if (err)
		return err == FATHOM_E_MEMORY ? err : FATHOM_OK;
	if (!fathom_gdb_symfile_code(&o->image, &f->code)) {
		fathom_object_close(o);
		return FATHOM_E_MEMORY;
	}
	return fathom_module_create_alone(p->target->paths, o, &p->target->notes, &f->module);
}

/* Lays claim to the code of @f. */
static fathom_err claim(struct fathom_published *p, const struct file *f)
{
	struct fathom_claim_array claims = { 0 };
	fathom_err err = FATHOM_OK;

	if (!fathom_array_room(&claims, f->code.n))
		return FATHOM_E_MEMORY;
	for (size_t i = 0; i < f->code.n; i++)
		claims.items[claims.n++] =
			(struct fathom_claim){ f->code.items[i].low, f->code.items[i].high,
					       f->order + i };
	if (claims.n)
		err = fathom_code_table_add(&p->table, claims.items, claims.n);
	fathom_array_free(&claims);
	return err;
}

fathom_err fathom_published_add(struct fathom_published *p, uint64_t avma,
				const struct fathom_gdb_entry *entry)
{
	struct file *f;
	fathom_err err;

	FATHOM_TRY(fathom_published_remove(p, avma));
	f = calloc(1, sizeof *f);
	if (!f)
		return FATHOM_E_MEMORY;
	f->entry = avma;
	f->order = p->orders;
	err = open_file(p, entry, f);
	if (!err && !fathom_array_room(&p->files, 1))
		err = FATHOM_E_MEMORY;
	if (err) {
		file_destroy(f);
		return err;
	}
	p->orders += f->code.n + 1;
	p->files.items[p->files.n++] = f;
	p->generation++;
	return claim(p, f);
}

fathom_err fathom_published_remove(struct fathom_published *p, uint64_t avma)
{
	fathom_err err = FATHOM_OK;
	size_t i = p->files.n;

	while (i && p->files.items[i - 1]->entry != avma)
		i--;
	if (!i)
		return FATHOM_OK;
	file_destroy(p->files.items[i - 1]);
	p->files.n--;
	memmove(p->files.items + i - 1, p->files.items + i,
		(p->files.n - (i - 1)) * sizeof *p->files.items);
	p->generation++;
	/* Older files may have code below that of the one that left. */
	fathom_code_table_clear(&p->table);
	for (i = 0; i < p->files.n && !err; i++)
		err = claim(p, p->files.items[i]);
	return err;
}

fathom_err fathom_published_ranges(const struct fathom_published *p, struct fathom_claim_array *ret)
{
	for (size_t i = 0; i < p->files.n; i++) {
		const struct file *f = p->files.items[i];

		for (size_t c = 0; c < f->code.n; c++)
			if (!fathom_array_push(ret, (struct fathom_claim){ f->code.items[c].low,
									   f->code.items[c].high,
									   f->order + c }))
				return FATHOM_E_MEMORY;
	}
	return FATHOM_OK;
}

/* Returns the file that has code at @pc; NULL if none has. */
static struct file *file_at(const struct fathom_published *p, uint64_t pc)
{
	const struct fathom_claim *c = fathom_code_table_at(&p->table, pc);
	size_t i;

	if (!c)
		return NULL;
	i = FATHOM_BISECT(p->files.n, k, p->files.items[k]->order <= c->order);
	return p->files.items[i - 1];
}

/*
 * Returns the function @name from @low to @high, made when it is first asked for. JIT compilers
 * register again what stays when something beside it changes.
 */
static struct fathom_jit_code_function *function_of(struct fathom_published *p, uint64_t low,
						    uint64_t high, struct fathom_str name)
{
	struct fathom_jit_code_function **bucket =
		&p->functions[low * UINT64_C(0x9e3779b97f4a7c15) >> 52 & (BUCKETS - 1)];
	struct fathom_jit_code_function *f = *bucket;

	while (f && (f->low != low || f->high != high || strlen(f->name) != name.size ||
		     memcmp(f->name, name.size ? name.data : "", name.size) != 0))
		f = f->next;
	if (f)
		return f;
	f = calloc(1, sizeof *f);
	if (!f)
		return NULL;
	f->name = strndup(name.size ? name.data : "", name.size);
	if (!f->name) {
		free(f);
		return NULL;
	}
	f->low = low;
	f->high = high;
	f->next = *bucket;
	*bucket = f;
	return f;
}

/* Finds the row of @pc in the FDE @fde. */
static bool find_row(struct fathom_published *p, const struct fathom_fde *fde, uint64_t pc,
		     struct fathom_row *ret)
{
	struct fathom_row_reader *r = &p->reader;

	if (fathom_row_reader_init(r, fde, &fathom_unwind_x86_64) || fathom_row_find(r, pc) ||
	    r->now.cfa.kind == FATHOM_RULE_UNSPECIFIED)
		return false;
	*ret = r->now;
	return true;
}

/* Finds function and row of @pc; false if it is in neither a symbol nor an FDE. */
static bool find_in_file(struct fathom_published *p, struct file *f, uint64_t pc,
			 struct fathom_jit_code_pc *ret)
{
	struct fathom_symbol_hit hit = { 0 };
	struct fathom_fde fde;
	const bool has_fde = !fathom_unwind_tables_find(&f->module->unwind, pc, &fde);

	if (!fathom_symbols_scan(&f->module->symbols, pc, NULL, &hit)) {
		if (!has_fde)
			return false;
		hit = (struct fathom_symbol_hit){ .start = fde.low, .size = fde.high - fde.low };
	}
	if (!hit.size)
		hit.size = (has_fde && fde.low <= hit.start ? fde.high : pc + 1) - hit.start;
	ret->pc = pc;
	ret->function = function_of(p, hit.start, hit.start + hit.size, hit.name);
	ret->has_row = has_fde && find_row(p, &fde, pc, &ret->row);
	return ret->function != NULL;
}

const struct fathom_jit_code_pc *fathom_published_at(struct fathom_published *p, uint64_t pc)
{
	struct cached_pc *c = &p->cache[pc * UINT64_C(0x9e3779b97f4a7c15) >> 53];
	struct file *f;

	if (c->generation != p->generation || c->made.pc != pc) {
		c->generation = p->generation;
		c->made.pc = pc;
		f = file_at(p, pc);
		c->is_made = f && f->module && find_in_file(p, f, pc, &c->made);
	}
	return c->is_made ? &c->made : NULL;
}
