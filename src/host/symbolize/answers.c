/* SPDX-License-Identifier: MIT */
#include "host/symbolize/answers.h"

#include <stdlib.h>

#include "host/base/demangle.h"
#include "safe/base/limits.h"
#include "safe/base/text.h"

#define FIRST_SET 256

/* Notes the first failure of the part; returns what stands for no id. */
static uint32_t fail(struct fathom_part *p, fathom_err err)
{
	if (!p->err)
		p->err = err;
	return FATHOM_NONE;
}

static uint32_t make_id(const struct fathom_part *p, size_t index)
{
	return p->number << FATHOM_PART_BITS | (uint32_t)index;
}

/* Makes room for one more item of a table whose items have ids; false when there is none. */
static bool reserve(struct fathom_part *p, struct fathom_array *table, size_t item)
{
	if (table->n >= (1u << FATHOM_PART_BITS) - 1)
		fail(p, FATHOM_E_LIMIT);
	else if (!fathom_array_reserve(table, item, 1))
		fail(p, FATHOM_E_MEMORY);
	return !p->err;
}

static uint32_t index_of(uint32_t id)
{
	return id & ((1u << FATHOM_PART_BITS) - 1);
}

static uint64_t hash_bytes(uint64_t hash, const char *data, size_t size)
{
	while (size >= 8) {
		hash = (hash ^ load_u64((const uint8_t *)data, false)) *
		       UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
		data += 8;
		size -= 8;
	}
	while (size--)
		hash = (hash ^ (uint8_t)*data++) * UINT64_C(0x100000001b3);
	return hash ^ hash >> 32;
}

static uint64_t hash_str(uint64_t hash, struct fathom_str s)
{
	return hash_bytes(hash ^ s.size, s.data, s.size);
}

/*
 * Makes room for one more entry: the table stays at most half full of the @n items. Items that were
 * added without looking for equal ones get in here, too, which does no harm.
 */
static bool grow_set(struct fathom_intern *set, size_t n,
		     uint64_t (*hash)(const void *items, uint32_t i), const void *items)
{
	size_t size = set->size ? set->size : FIRST_SET;
	uint32_t *table;

	while ((n + 1) * 2 > size)
		size *= 2;
	if (size == set->size)
		return true;
	table = calloc(size, sizeof *table);
	if (!table)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		size_t at = (size_t)hash(items, i) & (size - 1);

		while (table[at])
			at = (at + 1) & (size - 1);
		table[at] = i + 1;
	}
	free(set->table);
	set->table = table;
	set->size = size;
	return true;
}

static struct fathom_str str_of(const char *s)
{
	return (struct fathom_str){ s, s ? (uint32_t)strlen(s) : 0 };
}

static uint64_t hash_names(struct fathom_str linkage, struct fathom_str plain)
{
	return hash_str(hash_str(1, linkage), plain);
}

static uint64_t hash_function(const void *items, uint32_t i)
{
	const struct fathom_function *f = (const struct fathom_function *)items + i;

	return hash_names(str_of(f->linkage_name), str_of(f->plain_name));
}

static struct fathom_str path_of(const struct fathom_source_file *f)
{
	return (struct fathom_str){ f->path, f->path_size };
}

static uint64_t hash_file(const void *items, uint32_t i)
{
	return hash_str(1, path_of((const struct fathom_source_file *)items + i));
}

static uint32_t public_flags(uint32_t flags)
{
	return (flags & FATHOM_BLOCK_UNMANGLED ? FATHOM_FUNCTION_UNMANGLED : 0u) |
	       (flags & FATHOM_BLOCK_ADA ? FATHOM_FUNCTION_ADA : 0u);
}

static bool same_names(const struct fathom_function *f, struct fathom_str linkage,
		       struct fathom_str plain, uint32_t flags)
{
	return f->flags == public_flags(flags) && str_equal(str_of(f->linkage_name), linkage) &&
	       str_equal(str_of(f->plain_name), plain);
}

/* Fills in the name that people read. */
static bool set_name(struct fathom_part *p, struct fathom_function *f, struct fathom_str linkage,
		     struct fathom_str plain, uint32_t flags)
{
	const uint32_t suffix = fathom_clone_suffix(linkage);
	const bool ada = flags & FATHOM_BLOCK_ADA;
	/* GNAT states the mangled name as the plain one, unless the program chose another. */
	const struct fathom_str mangled = ada && !linkage.size ? plain : linkage;
	fathom_err err;

	f->clone_suffix = suffix < linkage.size ? f->linkage_name + suffix : NULL;
	f->name = linkage.size ? f->linkage_name : f->plain_name;
	f->name_size = linkage.size ? linkage.size : plain.size;
	p->text.n = 0;
	if (!mangled.size || (p->flags & FATHOM_NO_DEMANGLE))
		return true;
	err = fathom_demangle(mangled, ada, &p->text);
	if (err)
		return err == FATHOM_END;
	f->name_size = (uint32_t)p->text.n;
	f->name = fathom_arena_strdup(&p->arena, (struct fathom_str){ p->text.data, f->name_size });
	return f->name != NULL;
}

/* Adds a function with these names, at least one of which is not empty. */
static uint32_t add_function(struct fathom_part *p, struct fathom_str linkage,
			     struct fathom_str plain, uint32_t flags)
{
	struct fathom_function f = { .flags = public_flags(flags), .decl_file = FATHOM_NONE };

	if (!reserve(p, &p->functions, sizeof f))
		return FATHOM_NONE;
	if (linkage.size)
		f.linkage_name = fathom_arena_strdup(&p->arena, linkage);
	if (plain.size)
		f.plain_name = fathom_arena_strdup(&p->arena, plain);
	if ((linkage.size && !f.linkage_name) || (plain.size && !f.plain_name) ||
	    !set_name(p, &f, linkage, plain, flags))
		return fail(p, FATHOM_E_MEMORY);
	((struct fathom_function *)p->functions.data)[p->functions.n++] = f;
	return make_id(p, p->functions.n - 1);
}

/* The function with these names, added if there is none yet. */
static uint32_t intern_function(struct fathom_part *p, struct fathom_str linkage,
				struct fathom_str plain, uint32_t flags)
{
	const struct fathom_function *f;
	uint32_t id;
	size_t at;

	if (!grow_set(&p->function_set, p->functions.n, hash_function, p->functions.data))
		return fail(p, FATHOM_E_MEMORY);
	f = p->functions.data;
	for (at = (size_t)hash_names(linkage, plain) & (p->function_set.size - 1);
	     p->function_set.table[at]; at = (at + 1) & (p->function_set.size - 1))
		if (same_names(&f[p->function_set.table[at] - 1], linkage, plain, flags))
			return make_id(p, p->function_set.table[at] - 1);
	id = add_function(p, linkage, plain, flags);
	if (id != FATHOM_NONE)
		p->function_set.table[at] = (uint32_t)p->functions.n;
	return id;
}

static uint32_t intern_file(struct fathom_part *p, struct fathom_str path)
{
	struct fathom_source_file *files;
	struct fathom_source_file fresh = { .path_size = path.size };
	size_t at;

	if (!reserve(p, &p->files, sizeof *files))
		return FATHOM_NONE;
	if (!grow_set(&p->file_set, p->files.n, hash_file, p->files.data))
		return fail(p, FATHOM_E_MEMORY);
	files = p->files.data;
	for (at = (size_t)hash_str(1, path) & (p->file_set.size - 1); p->file_set.table[at];
	     at = (at + 1) & (p->file_set.size - 1))
		if (str_equal(path_of(&files[p->file_set.table[at] - 1]), path))
			return make_id(p, p->file_set.table[at] - 1);
	fresh.path = fathom_arena_strdup(&p->arena, path);
	if (!fresh.path)
		return fail(p, FATHOM_E_MEMORY);
	files[p->files.n++] = fresh;
	p->file_set.table[at] = (uint32_t)p->files.n;
	return make_id(p, p->files.n - 1);
}

uint32_t fathom_part_file(struct fathom_part *p, struct fathom_str path)
{
	return path.data ? intern_file(p, path) : FATHOM_NONE;
}

uint32_t fathom_part_symbol(struct fathom_part *p, const struct fathom_symbol_hit *hit)
{
	char buf[FATHOM_BOUNDS_NAME];
	struct fathom_str name = hit->name;

	if (hit->source == FATHOM_SOURCE_FDE) {
		name = fathom_symbol_bounds(hit, buf);
	} else if (hit->source == FATHOM_SOURCE_PLT) {
		p->text.n = 0;
		if (!fathom_array_reserve(&p->text, 1, (size_t)name.size + 4))
			return fail(p, FATHOM_E_MEMORY);
		memcpy(p->text.data, name.data, name.size);
		memcpy((char *)p->text.data + name.size, "@plt", 4);
		/* The scratch is used again for demangling: the name is copied out of it. */
		name.data = fathom_arena_strdup(&p->arena,
						(struct fathom_str){ p->text.data, name.size + 4 });
		if (!name.data)
			return fail(p, FATHOM_E_MEMORY);
		name.size += 4;
	}
	if (!name.size)
		return FATHOM_NONE;
	/* Callers ask once for each symbol: looking for an equal name would find none. */
	return add_function(p, name, (struct fathom_str){ NULL, 0 }, 0);
}

void fathom_part_leave_block(struct fathom_part *p)
{
	p->block = NULL;
	p->named.block = NULL;
}

void fathom_part_begin(struct fathom_part *p, unsigned number, uint32_t flags, uint64_t bias)
{
	fathom_part_leave_block(p);
	free(p->symbol_ids);
	p->symbol_ids = NULL;
	free(p->nameless);
	p->nameless = NULL;
	p->last_nameless.size = 0;
	p->number = number;
	p->flags = flags;
	p->bias = bias;
}

#define UNKNOWN (FATHOM_NONE - 1) /* in a plan: not asked for yet */

/* Makes @p remember what is made for @b under @symbol. */
static bool enter_block(struct fathom_part *p, const struct fathom_block *b, uint32_t symbol)
{
	const size_t n = (size_t)b->n_functions + b->n_files + b->n_nodes + b->n_rows;

	if (p->block == b && p->block_symbol == symbol)
		return true;
	p->plan.n = 0;
	if (!fathom_array_reserve(&p->plan, sizeof(uint32_t), n)) {
		fail(p, FATHOM_E_MEMORY);
		return false;
	}
	p->plan.n = n;
	for (size_t i = 0; i < n; i++)
		((uint32_t *)p->plan.data)[i] = UNKNOWN;
	p->block = b;
	p->block_symbol = symbol;
	return true;
}

static uint32_t *plan_function(const struct fathom_part *p, uint32_t i)
{
	return (uint32_t *)p->plan.data + i;
}

static uint32_t *plan_file(const struct fathom_part *p, uint32_t i)
{
	return plan_function(p, p->block->n_functions) + i;
}

static uint32_t *plan_node(const struct fathom_part *p, uint32_t i)
{
	return plan_file(p, p->block->n_files) + i;
}

static uint32_t *plan_row(const struct fathom_part *p, uint32_t i)
{
	return plan_node(p, p->block->n_nodes) + i;
}

static uint32_t file_id(struct fathom_part *p, struct fathom_block_view view, uint32_t i)
{
	struct fathom_str path;
	uint32_t reference;
	uint32_t *known;

	if (!fathom_block_file(view.block, i, &reference))
		return FATHOM_NONE;
	known = plan_file(p, i);
	if (*known == UNKNOWN) {
		path = fathom_block_string(&view, reference);
		*known = fathom_part_file(p, path);
	}
	return *known;
}

/* Functions of one name may be declared in many places: they are not looked for. */
static uint32_t add_declared(struct fathom_part *p, struct fathom_block_view view,
			     const struct fathom_block_function *f,
			     const struct fathom_block_declaration *d)
{
	const struct fathom_str linkage = fathom_block_string(&view, f->linkage);
	const struct fathom_str name = fathom_block_string(&view, f->name);
	const uint32_t file = file_id(p, view, d->file);
	const uint32_t id =
		linkage.size || name.size ? add_function(p, linkage, name, f->flags) : FATHOM_NONE;
	struct fathom_function *added = p->functions.data;

	if (id != FATHOM_NONE) {
		added[index_of(id)].decl_file = file;
		added[index_of(id)].decl_line = d->line;
	}
	return id;
}

static uint32_t function_id(struct fathom_part *p, struct fathom_block_view view, uint32_t i)
{
	struct fathom_block_declaration d;
	struct fathom_block_function f;
	struct fathom_str linkage;
	struct fathom_str name;
	uint32_t *known;

	if (!fathom_block_function(view.block, i, &f))
		return FATHOM_NONE;
	known = plan_function(p, i);
	if (*known == UNKNOWN && fathom_block_declaration(view.block, i, &d)) {
		*known = add_declared(p, view, &f, &d);
	} else if (*known == UNKNOWN) {
		linkage = fathom_block_string(&view, f.linkage);
		name = fathom_block_string(&view, f.name);
		*known = linkage.size || name.size ? intern_function(p, linkage, name, f.flags)
						   : FATHOM_NONE;
	}
	return *known;
}

static uint32_t add_frame(struct fathom_part *p, const struct fathom_frame *frame)
{
	if (!reserve(p, &p->frames, sizeof *frame))
		return FATHOM_NONE;
	((struct fathom_frame *)p->frames.data)[p->frames.n++] = *frame;
	return make_id(p, p->frames.n - 1);
}

/* The function to show for node @i: the symbol for the physical one. */
static uint32_t shown_function(struct fathom_part *p, struct fathom_block_view view,
			       const struct fathom_block_node *node)
{
	if (node->parent == FATHOM_BLOCK_NONE && p->block_symbol != FATHOM_NONE &&
	    !(p->flags & FATHOM_DWARF_NAMES))
		return p->block_symbol;
	return function_id(p, view, node->function);
}

static uint64_t start_of(const struct fathom_part *p, struct fathom_block_view view,
			 const struct fathom_block_node *node)
{
	return node->start == FATHOM_BLOCK_NO_START ? 0 : p->bias + view.block->low + node->start;
}

/* The frame that node @i, an inlined call, was called from. */
static uint32_t caller_frame(struct fathom_part *p, struct fathom_block_view view, uint32_t i,
			     unsigned depth)
{
	struct fathom_block_node node;
	struct fathom_block_node parent;
	struct fathom_frame frame = { .outer = FATHOM_NONE };
	uint32_t *known;

	/* Parents come first: that bounds the walk, also in a damaged block. */
	if (depth > FATHOM_MAX_INLINE_DEPTH || !fathom_block_node(view.block, i, &node) ||
	    node.parent >= i || !fathom_block_node(view.block, node.parent, &parent))
		return FATHOM_NONE;
	known = plan_node(p, i);
	if (*known != UNKNOWN)
		return *known;
	frame.start = start_of(p, view, &parent);
	frame.function = shown_function(p, view, &parent);
	frame.file = file_id(p, view, node.call_file);
	frame.line = node.call_line;
	frame.column = node.call_column;
	frame.discriminator = node.discriminator;
	frame.outer = caller_frame(p, view, node.parent, depth + 1);
	*known = add_frame(p, &frame);
	return *known;
}

uint32_t fathom_part_frame(struct fathom_part *p, struct fathom_block_view view,
			   const struct fathom_block_row *row, uint32_t index, uint32_t symbol)
{
	struct fathom_frame frame = { .outer = FATHOM_NONE, .function = symbol };
	struct fathom_block_node node;
	uint32_t *known;

	if (!enter_block(p, view.block, symbol))
		return FATHOM_NONE;
	known = plan_row(p, index);
	if (*known != UNKNOWN)
		return *known;
	frame.file = file_id(p, view, row->file);
	frame.line = row->line;
	frame.column = row->column;
	frame.discriminator = row->discriminator;
	if (fathom_block_node(view.block, row->node, &node)) {
		frame.start = start_of(p, view, &node);
		frame.function = shown_function(p, view, &node);
		frame.outer = caller_frame(p, view, row->node, 0);
	} else if (p->flags & FATHOM_DWARF_NAMES) {
		frame.function = FATHOM_NONE;
	}
	*known = add_frame(p, &frame);
	return *known;
}

uint32_t fathom_part_place(struct fathom_part *p, uint32_t symbol, struct fathom_str path,
			   uint32_t line)
{
	const struct fathom_frame frame = { .function = symbol,
					    .file = fathom_part_file(p, path),
					    .line = line,
					    .outer = FATHOM_NONE };

	return add_frame(p, &frame);
}

uint32_t fathom_part_physical(struct fathom_part *p, struct fathom_block_view view)
{
	struct fathom_block_node node;

	if (!enter_block(p, view.block, FATHOM_NONE) || !fathom_block_node(view.block, 0, &node))
		return FATHOM_NONE;
	return function_id(p, view, node.function);
}

uint32_t fathom_part_ada_symbol(struct fathom_part *p, struct fathom_block_view view, uint32_t id)
{
	const struct fathom_function *functions = p->functions.data;
	struct fathom_block_function f;
	struct fathom_block_node node;

	if (!fathom_block_node(view.block, 0, &node) ||
	    !fathom_block_function(view.block, node.function, &f) || !(f.flags & FATHOM_BLOCK_ADA))
		return id;
	return intern_function(p, str_of(functions[index_of(id)].linkage_name),
			       (struct fathom_str){ NULL, 0 }, FATHOM_BLOCK_ADA);
}

void fathom_part_deinit(struct fathom_part *p)
{
	fathom_arena_deinit(&p->arena);
	fathom_array_deinit(&p->functions);
	fathom_array_deinit(&p->files);
	fathom_array_deinit(&p->frames);
	fathom_array_deinit(&p->text);
	fathom_array_deinit(&p->plan);
	free(p->function_set.table);
	free(p->file_set.table);
	free(p->symbol_ids);
	free(p->nameless);
}

struct fathom_answers *fathom_answers_create(size_t n)
{
	struct fathom_answers *answers = fathom_alloc_apart(sizeof *answers);

	if (!answers)
		return NULL;
	answers->n = n;
	answers->n_parts = 1; /* has the memory of modules, too */
	answers->answers = malloc((n + 1) * sizeof *answers->answers);
	if (!answers->answers) {
		free(answers);
		return NULL;
	}
	return answers;
}

fathom_err fathom_answers_add_module(struct fathom_answers *answers, const char *path,
				     struct fathom_bytes build_id, uint16_t *ret)
{
	struct fathom_arena *arena = &answers->parts[0].arena;
	struct fathom_module_info info = { .build_id_size = (uint32_t)build_id.size };
	void *modules;

	if (answers->n_modules == FATHOM_NO_MODULE)
		return FATHOM_E_LIMIT;
	modules = realloc(answers->modules, (answers->n_modules + 1u) * sizeof info);
	if (!modules)
		return FATHOM_E_MEMORY;
	answers->modules = modules;
	info.path = fathom_arena_strdup(arena, str_of(path));
	if (build_id.size)
		info.build_id = (const uint8_t *)fathom_arena_strdup(
			arena, (struct fathom_str){ (const char *)build_id.data,
						    (uint32_t)build_id.size });
	if (!info.path || (build_id.size && !info.build_id))
		return FATHOM_E_MEMORY;
	*ret = answers->n_modules;
	answers->modules[answers->n_modules++] = info;
	return FATHOM_OK;
}

void fathom_answers_free(struct fathom_answers *answers)
{
	if (!answers)
		return;
	for (uint32_t i = 0; i < answers->n_parts; i++)
		fathom_part_deinit(&answers->parts[i]);
	free(answers->modules);
	free(answers->answers);
	free(answers);
}

size_t fathom_answers_count(const struct fathom_answers *answers)
{
	return answers->n;
}

const struct fathom_answer *fathom_answers_get(const struct fathom_answers *answers, size_t i)
{
	return &answers->answers[i];
}

/* The part that @id belongs to, or NULL when it stands for nothing there. */
static const struct fathom_part *part_of(const struct fathom_answers *answers, uint32_t id)
{
	const uint32_t number = id >> FATHOM_PART_BITS;

	return id != FATHOM_NONE && number < answers->n_parts ? &answers->parts[number] : NULL;
}

const struct fathom_frame *fathom_answers_frame(const struct fathom_answers *answers, uint32_t id)
{
	const struct fathom_part *p = part_of(answers, id);

	return p && index_of(id) < p->frames.n
		       ? (const struct fathom_frame *)p->frames.data + index_of(id)
		       : NULL;
}

const struct fathom_function *fathom_answers_function(const struct fathom_answers *answers,
						      uint32_t id)
{
	const struct fathom_part *p = part_of(answers, id);

	return p && index_of(id) < p->functions.n
		       ? (const struct fathom_function *)p->functions.data + index_of(id)
		       : NULL;
}

const struct fathom_source_file *fathom_answers_file(const struct fathom_answers *answers,
						     uint32_t id)
{
	const struct fathom_part *p = part_of(answers, id);

	return p && index_of(id) < p->files.n
		       ? (const struct fathom_source_file *)p->files.data + index_of(id)
		       : NULL;
}

const struct fathom_module_info *fathom_answers_module(const struct fathom_answers *answers,
						       uint16_t number)
{
	return number < answers->n_modules ? &answers->modules[number] : NULL;
}
