/* SPDX-License-Identifier: MIT */
#include "host/symbolize/answers.h"

#include <stdlib.h>

#include "host/base/demangle.h"
#include "host/base/hash.h"
#include "host/module/module.h"
#include "host/module/place.h"
#include "safe/base/limits.h"
#include "safe/base/text.h"

#define FIRST_SET 256

/* Flags of a block's function that matter for its names. */
#define NAME_FLAGS ((uint32_t)(FATHOM_BLOCK_UNMANGLED | FATHOM_BLOCK_ADA))

/* Notes the first failure of the part; returns FATHOM_NONE. */
static uint32_t fail(struct fathom_part *p, fathom_err err)
{
	if (!p->err)
		p->err = err;
	return FATHOM_NONE;
}

/* Adds an item to a table whose items have ids; without room, notes a failure and returns NULL. */
static void *add_item(struct fathom_part *p, struct fathom_items *table)
{
	void *item = NULL;

	if (table->n >= FATHOM_MAX_ITEMS)
		fail(p, FATHOM_E_LIMIT);
	else if (!(item = fathom_items_add(table)))
		fail(p, FATHOM_E_MEMORY);
	return item;
}

static struct fathom_answer_function *function_at(const struct fathom_part *p, uint32_t id)
{
	return fathom_items_at(&p->functions, id);
}

static const struct fathom_frame *frame_at(const struct fathom_part *p, uint32_t id)
{
	return id == FATHOM_NONE ? NULL : fathom_items_at(&p->frames, id);
}

static uint64_t hash_str(uint64_t hash, struct fathom_str s)
{
	return fathom_hash_bytes(hash ^ s.size, s.data, s.size);
}

/*
 * Makes room for one more entry and keeps the table at most half full. It also gets items that were
 * added without interning, which is harmless.
 */
static bool grow_set(struct fathom_intern *set, const struct fathom_items *items,
		     uint64_t (*hash)(const void *item))
{
	const size_t n = items->n;
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
		size_t at = (size_t)hash(fathom_items_at(items, i)) & (size - 1);

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

static struct fathom_str linkage_of(const struct fathom_answer_function *f)
{
	return (struct fathom_str){ f->linkage_name, f->linkage_size };
}

static uint64_t hash_function(const void *item)
{
	const struct fathom_answer_function *f = item;

	return hash_names(linkage_of(f), str_of(f->plain_name));
}

static struct fathom_str path_of(const struct fathom_source_file *f)
{
	return (struct fathom_str){ f->path, f->path_size };
}

static uint64_t hash_file(const void *item)
{
	return hash_str(1, path_of(item));
}

static bool same_names(const struct fathom_answer_function *f, struct fathom_str linkage,
		       struct fathom_str plain, uint32_t flags)
{
	return f->flags == (flags & NAME_FLAGS) && str_equal(linkage_of(f), linkage) &&
	       str_equal(str_of(f->plain_name), plain);
}

/* Fills in the demangled name. */
static bool set_name(struct fathom_part *p, struct fathom_answer_function *f,
		     struct fathom_str linkage, struct fathom_str plain, uint32_t flags)
{
	const bool ada = flags & FATHOM_BLOCK_ADA;
	/* GNAT writes the mangled name as the plain one, unless the program chose another. */
	const struct fathom_str mangled = ada && !linkage.size ? plain : linkage;
	fathom_err err;

	f->name = linkage.size ? f->linkage_name : f->plain_name;
	f->name_size = linkage.size ? linkage.size : plain.size;
	p->text.n = 0;
	if (!mangled.size || (p->flags & FATHOM_NO_DEMANGLE))
		return true;
	err = fathom_demangle(mangled, ada, &p->text);
	if (err)
		return err == FATHOM_END;
	f->name_size = (uint32_t)p->text.n;
	f->name =
		fathom_arena_strdup(&p->arena, (struct fathom_str){ p->text.items, f->name_size });
	return f->name != NULL;
}

/* Adds a function with these names, at least one of which is not empty. */
static uint32_t add_function(struct fathom_part *p, struct fathom_str linkage,
			     struct fathom_str plain, uint32_t flags)
{
	struct fathom_answer_function f = { .flags = flags & NAME_FLAGS,
					    .linkage_size = linkage.size };
	struct fathom_answer_function *added;

	/* The texts come first: an item of the table has all of them. */
	if (linkage.size)
		f.linkage_name = fathom_arena_strdup(&p->arena, linkage);
	if (plain.size)
		f.plain_name = fathom_arena_strdup(&p->arena, plain);
	if ((linkage.size && !f.linkage_name) || (plain.size && !f.plain_name) ||
	    !set_name(p, &f, linkage, plain, flags))
		return fail(p, FATHOM_E_MEMORY);
	added = add_item(p, &p->functions);
	if (!added)
		return FATHOM_NONE;
	*added = f;
	return (uint32_t)p->functions.n - 1;
}

/* Interns the function with these names. */
static uint32_t intern_function(struct fathom_part *p, struct fathom_str linkage,
				struct fathom_str plain, uint32_t flags)
{
	uint32_t id;
	size_t at;

	if (!grow_set(&p->function_set, &p->functions, hash_function))
		return fail(p, FATHOM_E_MEMORY);
	for (at = (size_t)hash_names(linkage, plain) & (p->function_set.size - 1);
	     p->function_set.table[at]; at = (at + 1) & (p->function_set.size - 1))
		if (same_names(function_at(p, p->function_set.table[at] - 1), linkage, plain,
			       flags))
			return p->function_set.table[at] - 1;
	id = add_function(p, linkage, plain, flags);
	if (id != FATHOM_NONE)
		p->function_set.table[at] = (uint32_t)p->functions.n;
	return id;
}

static const struct fathom_source_file *intern_file(struct fathom_part *p, struct fathom_str path)
{
	struct fathom_source_file *f;
	const char *copy;
	size_t at;

	if (!grow_set(&p->file_set, &p->files, hash_file)) {
		fail(p, FATHOM_E_MEMORY);
		return NULL;
	}
	for (at = (size_t)hash_str(1, path) & (p->file_set.size - 1); p->file_set.table[at];
	     at = (at + 1) & (p->file_set.size - 1)) {
		f = fathom_items_at(&p->files, p->file_set.table[at] - 1);
		if (str_equal(path_of(f), path))
			return f;
	}
	copy = fathom_arena_strdup(&p->arena, path);
	if (!copy) {
		fail(p, FATHOM_E_MEMORY);
		return NULL;
	}
	f = add_item(p, &p->files);
	if (!f)
		return NULL;
	*f = (struct fathom_source_file){ copy, path.size, (uint32_t)p->files.n - 1 };
	p->file_set.table[at] = (uint32_t)p->files.n;
	return f;
}

const struct fathom_source_file *fathom_part_file(struct fathom_part *p, struct fathom_str path)
{
	return path.data ? intern_file(p, path) : NULL;
}

uint32_t fathom_part_symbol(struct fathom_part *p, const struct fathom_symbol_hit *hit)
{
	char buf[FATHOM_BOUNDS_NAME];
	struct fathom_str name = hit->name;

	if (hit->source == FATHOM_SOURCE_FDE) {
		name = fathom_symbol_bounds(hit, buf);
	} else if (hit->source == FATHOM_SOURCE_PLT) {
		p->text.n = 0;
		if (!fathom_array_room(&p->text, (size_t)name.size + 4))
			return fail(p, FATHOM_E_MEMORY);
		memcpy(p->text.items, name.data, name.size);
		memcpy(p->text.items + name.size, "@plt", 4);
		/* Demangling reuses the scratch buffer, so copy the name. */
		name.data = fathom_arena_strdup(
			&p->arena, (struct fathom_str){ p->text.items, name.size + 4 });
		if (!name.data)
			return fail(p, FATHOM_E_MEMORY);
		name.size += 4;
	}
	if (!name.size)
		return FATHOM_NONE;
	/* Callers ask once per symbol, so there is no equal name to find. */
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
	p->functions.item = sizeof(struct fathom_answer_function);
	p->files.item = sizeof(struct fathom_source_file);
	p->frames.item = flags & FATHOM_BATCH_COMPAT ? sizeof(struct fathom_compat_frame)
						     : sizeof(struct fathom_frame);
}

#define UNKNOWN (FATHOM_NONE - 1) /* in a plan: not cached yet */

/* Starts the plan of @p for block @b under @symbol. */
static bool enter_block(struct fathom_part *p, const struct fathom_block *b, uint32_t symbol)
{
	const size_t n = (size_t)b->n_functions + b->n_files + b->n_nodes + b->n_rows;

	if (p->block == b && p->block_symbol == symbol)
		return true;
	if (n > p->plan.n) {
		if (!fathom_array_room(&p->plan, n - p->plan.n)) {
			fail(p, FATHOM_E_MEMORY);
			return false;
		}
		memset(p->plan.items + p->plan.n, 0, (n - p->plan.n) * sizeof *p->plan.items);
		p->plan.n = n;
	}
	/* Ids of before are of another number: nothing is cleared, however large @b is. */
	if (!++p->plan_number) {
		memset(p->plan.items, 0, p->plan.n * sizeof *p->plan.items);
		p->plan_number = 1;
	}
	p->block = b;
	p->block_symbol = symbol;
	return true;
}

/* Returns where the id is cached that has index @i. */
static uint32_t *planned(const struct fathom_part *p, size_t i)
{
	struct fathom_planned *planned = &p->plan.items[i];

	if (planned->number != p->plan_number)
		*planned = (struct fathom_planned){ .number = p->plan_number, .id = UNKNOWN };
	return &planned->id;
}

static uint32_t *plan_function(const struct fathom_part *p, uint32_t i)
{
	return planned(p, i);
}

static uint32_t *plan_file(const struct fathom_part *p, uint32_t i)
{
	return planned(p, (size_t)p->block->n_functions + i);
}

static uint32_t *plan_node(const struct fathom_part *p, uint32_t i)
{
	return planned(p, (size_t)p->block->n_functions + p->block->n_files + i);
}

static uint32_t *plan_row(const struct fathom_part *p, uint32_t i)
{
	return planned(p,
		       (size_t)p->block->n_functions + p->block->n_files + p->block->n_nodes + i);
}
static const struct fathom_source_file *file_of(struct fathom_part *p,
						struct fathom_block_view view, uint32_t i)
{
	const struct fathom_source_file *f;
	uint32_t reference;
	uint32_t *known;

	if (!fathom_block_file(view.block, i, &reference))
		return NULL;
	known = plan_file(p, i);
	if (*known == FATHOM_NONE)
		return NULL;
	if (*known != UNKNOWN)
		return fathom_items_at(&p->files, *known);
	f = fathom_part_file(p, fathom_block_string(&view, reference));
	*known = f ? f->number : FATHOM_NONE;
	return f;
}

/* Adds a function with its declaration, not interned: one name may have many declarations. */
static uint32_t add_declared(struct fathom_part *p, struct fathom_block_view view,
			     const struct fathom_block_function *f,
			     const struct fathom_block_declaration *d)
{
	const struct fathom_str linkage = fathom_block_string(&view, f->linkage);
	const struct fathom_str name = fathom_block_string(&view, f->name);
	const struct fathom_source_file *file = file_of(p, view, d->file);
	const uint32_t id =
		linkage.size || name.size ? add_function(p, linkage, name, f->flags) : FATHOM_NONE;

	if (id != FATHOM_NONE) {
		function_at(p, id)->decl_file = file;
		function_at(p, id)->decl_line = d->line;
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

/* Adds @frame, of function @function, in @file. */
static uint32_t add_frame(struct fathom_part *p, struct fathom_frame *frame, uint32_t function,
			  const struct fathom_source_file *file)
{
	const struct fathom_answer_function *f = fathom_part_function(p, function);
	struct fathom_frame *added = add_item(p, &p->frames);

	if (!added)
		return FATHOM_NONE;
	if (f) {
		frame->function = f->name;
		frame->function_size = f->name_size;
		frame->linkage_name = f->linkage_name;
		frame->linkage_size = f->linkage_size;
	}
	if (file) {
		frame->file = file->path;
		frame->file_size = file->path_size;
	}
	*added = *frame;
	if (p->flags & FATHOM_BATCH_COMPAT)
		((struct fathom_compat_frame *)added)->function = f;
	return (uint32_t)p->frames.n - 1;
}

/* Returns the function to show for node @i: the symbol for the physical function. */
static uint32_t shown_function(struct fathom_part *p, struct fathom_block_view view,
			       const struct fathom_block_node *node)
{
	if (node->parent == FATHOM_BLOCK_NONE && p->block_symbol != FATHOM_NONE &&
	    !(p->flags & FATHOM_BATCH_DWARF_NAMES))
		return p->block_symbol;
	return function_id(p, view, node->function);
}

static uint64_t start_of(const struct fathom_part *p, struct fathom_block_view view,
			 const struct fathom_block_node *node)
{
	return node->start == FATHOM_BLOCK_NO_START ? 0 : p->bias + view.block->low + node->start;
}

/* Returns the caller's frame of node @i, an inlined call. */
static const struct fathom_frame *caller_frame(struct fathom_part *p, struct fathom_block_view view,
					       uint32_t i, unsigned depth)
{
	struct fathom_block_node node;
	struct fathom_block_node parent;
	struct fathom_frame frame = { 0 };
	uint32_t *known;

	/* Parents precede their children, which bounds the walk even in a damaged block. */
	if (depth > FATHOM_MAX_INLINE_DEPTH || !fathom_block_node(view.block, i, &node) ||
	    node.parent >= i || !fathom_block_node(view.block, node.parent, &parent))
		return NULL;
	known = plan_node(p, i);
	if (*known == UNKNOWN) {
		frame.start = start_of(p, view, &parent);
		frame.line = node.call_line;
		frame.column = node.call_column;
		frame.discriminator = node.discriminator;
		frame.outer = caller_frame(p, view, node.parent, depth + 1);
		*known = add_frame(p, &frame, shown_function(p, view, &parent),
				   file_of(p, view, node.call_file));
	}
	return frame_at(p, *known);
}

const struct fathom_frame *fathom_part_frame(struct fathom_part *p, struct fathom_block_view view,
					     const struct fathom_block_row *row, uint32_t index,
					     uint32_t symbol)
{
	struct fathom_frame frame = { .line = row->line,
				      .column = row->column,
				      .discriminator = row->discriminator };
	struct fathom_block_node node;
	uint32_t function = symbol;
	uint32_t *known;

	if (!enter_block(p, view.block, symbol))
		return NULL;
	known = plan_row(p, index);
	if (*known != UNKNOWN)
		return frame_at(p, *known);
	if (fathom_block_node(view.block, row->node, &node)) {
		frame.start = start_of(p, view, &node);
		frame.outer = caller_frame(p, view, row->node, 0);
		function = shown_function(p, view, &node);
	} else if (p->flags & FATHOM_BATCH_DWARF_NAMES) {
		function = FATHOM_NONE;
	}
	*known = add_frame(p, &frame, function, file_of(p, view, row->file));
	return frame_at(p, *known);
}

const struct fathom_frame *fathom_part_place(struct fathom_part *p, uint32_t symbol,
					     struct fathom_str path, uint32_t line)
{
	struct fathom_frame frame = { .line = line };

	return frame_at(p, add_frame(p, &frame, symbol, fathom_part_file(p, path)));
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
	struct fathom_block_function f;
	struct fathom_block_node node;

	if (!fathom_block_node(view.block, 0, &node) ||
	    !fathom_block_function(view.block, node.function, &f) || !(f.flags & FATHOM_BLOCK_ADA))
		return id;
	return intern_function(p, linkage_of(function_at(p, id)), (struct fathom_str){ NULL, 0 },
			       FATHOM_BLOCK_ADA);
}

/* Frees memory that is only needed while answers are made. */
static void free_scratch(struct fathom_part *p)
{
	fathom_array_free(&p->text);
	fathom_array_free(&p->plan);
	free(p->function_set.table);
	free(p->file_set.table);
	free(p->symbol_ids);
	free(p->nameless);
	p->function_set.table = NULL;
	p->file_set.table = NULL;
	p->symbol_ids = NULL;
	p->nameless = NULL;
}

void fathom_part_deinit(struct fathom_part *p)
{
	fathom_arena_deinit(&p->arena);
	fathom_items_deinit(&p->functions);
	fathom_items_deinit(&p->files);
	fathom_items_deinit(&p->frames);
	free_scratch(p);
}

/* Precedes the first answer and leads back to the whole, for a single answer. */
struct head {
	_Alignas(struct fathom_answer) struct fathom_answers *answers;
};

struct fathom_answers *fathom_answers_create(size_t n, uint32_t flags)
{
	struct fathom_answers *answers = fathom_alloc_apart(sizeof *answers);
	struct head *head = malloc(sizeof *head + (n + 1) * sizeof(struct fathom_answer));

	if (answers) {
		answers->n = n;
		answers->n_parts = 1; /* also holds the memory of modules */
		if (flags & FATHOM_BATCH_COMPAT)
			answers->extra = calloc(n + 1, sizeof *answers->extra);
	}
	if (!head || !answers || (flags & FATHOM_BATCH_COMPAT && !answers->extra)) {
		free(head);
		if (answers)
			free(answers->extra);
		free(answers);
		return NULL;
	}
	head->answers = answers;
	answers->answers = (struct fathom_answer *)(head + 1);
	return answers;
}

void fathom_part_name_answer(const struct fathom_part *p, struct fathom_answers *answers,
			     struct fathom_answer *a, uint32_t id)
{
	static const struct fathom_answer_function nameless;
	const struct fathom_answer_function *f = fathom_part_function(p, id);

	if (answers->extra)
		answers->extra[a - answers->answers] = (struct fathom_compat_extra){ f, NULL };
	if (!f)
		f = &nameless;
	a->symbol = f->name;
	a->symbol_size = f->name_size;
	a->linkage_name = f->linkage_name;
	a->linkage_size = f->linkage_size;
}

/*
 * The frames of all parts as a set: the part in the bits above PART_BITS, the frame in those below,
 * plus 1; 0: a free entry.
 */
struct frame_set {
	const struct fathom_answers *answers;
	uint32_t *table;
	size_t mask;
	bool any_twins;
};

#define PART_BITS 26

/* file_size of a duplicate frame, whose outer is the equal frame. */
#define TWIN UINT32_MAX

static const struct fathom_frame *in_set(const struct frame_set *set, uint32_t entry)
{
	entry--;
	return frame_at(&set->answers->parts[entry >> PART_BITS], entry & ((1u << PART_BITS) - 1));
}

/* Hashes numbers alone, which is cheap and tells nearly all frames apart. */
static uint64_t hash_numbers(const struct fathom_frame *f)
{
	uint64_t hash = f->start ^ (uint64_t)f->line << 40 ^ (uint64_t)f->column << 20 ^
			(uint64_t)f->discriminator << 10 ^ f->function_size ^
			(uint64_t)f->linkage_size << 48 ^ (uint64_t)f->file_size << 56 ^
			(uintptr_t)f->outer;

	hash *= UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 32;
}

/*
 * Hashes all that same_frame() compares. The linkage name stands for the function's, which is made
 * of it.
 */
static uint64_t hash_all(const struct fathom_frame *f)
{
	const struct fathom_str file = { f->file, f->file_size };
	const struct fathom_str function = { f->function, f->function_size };
	const struct fathom_str linkage = { f->linkage_name, f->linkage_size };
	const uint64_t hash = hash_numbers(f) ^ f->discriminator;

	return hash_str(hash_str(hash, file), linkage.size ? linkage : function);
}

static bool same_text(const char *a, uint32_t a_size, const char *b, uint32_t b_size)
{
	return a == b || (a && b && a_size == b_size && memcmp(a, b, a_size) == 0);
}

static bool same_frame(const struct fathom_frame *a, const struct fathom_frame *b)
{
	return a->start == b->start && a->line == b->line && a->column == b->column &&
	       a->outer == b->outer && a->discriminator == b->discriminator &&
	       same_text(a->function, a->function_size, b->function, b->function_size) &&
	       same_text(a->linkage_name, a->linkage_size, b->linkage_name, b->linkage_size) &&
	       same_text(a->file, a->file_size, b->file, b->file_size);
}

static const struct fathom_frame *not_twin(const struct fathom_frame *f)
{
	return f && f->file_size == TWIN ? f->outer : f;
}

/* Entries that a search by hash_numbers() tries before it goes on by hash_all(). */
#define TRIES_BY_NUMBERS 32

/*
 * Adds frame @i of part @part; marks it as a twin if the set has an equal frame. No entry is ever
 * freed, so the searches for equal frames take the same way.
 */
static void add_to_set(struct frame_set *set, uint32_t part, uint32_t i)
{
	struct fathom_frame *f = fathom_items_at(&set->answers->parts[part].frames, i);
	size_t at;

	f->outer = not_twin(f->outer);
	at = (size_t)hash_numbers(f) & set->mask;
	for (uint32_t tries = 1; set->table[at]; tries++) {
		if (same_frame(f, in_set(set, set->table[at]))) {
			f->outer = in_set(set, set->table[at]);
			f->file_size = TWIN;
			set->any_twins = true;
			return;
		}
		at = (tries == TRIES_BY_NUMBERS ? (size_t)hash_all(f) : at + 1) & set->mask;
	}
	set->table[at] = (part << PART_BITS | i) + 1;
}

bool fathom_answers_finish(struct fathom_answers *answers)
{
	struct frame_set set = { .answers = answers, .mask = FIRST_SET - 1 };
	size_t n = 0;

	for (uint32_t p = 0; p < answers->n_parts; p++) {
		free_scratch(&answers->parts[p]);
		n += answers->parts[p].frames.n;
	}
	/* Frames with compat details are not merged: they differ in more than they show. */
	if (n < 2 || answers->n < 2 || answers->extra)
		return true;
	while (n > set.mask / 4 * 3)
		set.mask = 2 * set.mask + 1;
	set.table = calloc(set.mask + 1, sizeof *set.table);
	if (!set.table)
		return false;
	/* In each part callers precede their inlined calls. */
	for (uint32_t p = 0; p < answers->n_parts; p++)
		for (uint32_t i = 0; i < answers->parts[p].frames.n; i++)
			add_to_set(&set, p, i);
	for (size_t i = 0; set.any_twins && i < answers->n; i++)
		answers->answers[i].frame = not_twin(answers->answers[i].frame);
	free(set.table);
	return true;
}

const struct fathom_module_info *fathom_answers_add_module(struct fathom_answers *answers,
							   const char *path,
							   struct fathom_bytes build_id,
							   bool is_unverified)
{
	struct fathom_arena *arena = &answers->parts[0].arena;
	struct fathom_module_info *info = fathom_arena_alloc(arena, sizeof *info);

	if (!info)
		return NULL;
	*info = (struct fathom_module_info){ .path = fathom_arena_strdup(arena, str_of(path)),
					     .build_id_size = (uint32_t)build_id.size,
					     .is_unverified = is_unverified };
	if (build_id.size)
		info->build_id = (const uint8_t *)fathom_arena_strdup(
			arena, (struct fathom_str){ (const char *)build_id.data,
						    (uint32_t)build_id.size });
	return info->path && (info->build_id || !build_id.size) ? info : NULL;
}

fathom_err fathom_answers_describe(struct fathom_answers *answers, struct fathom_holder *h)
{
	if (!h->info || h->serial != answers->serial)
		h->info = fathom_answers_add_module(answers, h->name, h->build_id,
						    h->module && h->module->is_unverified);
	h->serial = answers->serial;
	return h->info ? FATHOM_OK : FATHOM_E_MEMORY;
}

void fathom_answers_free(struct fathom_answers *answers)
{
	if (!answers)
		return;
	for (uint32_t i = 0; i < answers->n_parts; i++)
		fathom_part_deinit(&answers->parts[i]);
	free(answers->extra);
	free((struct head *)answers->answers - 1);
	free(answers);
}

void fathom_answer_free(const struct fathom_answer *answer)
{
	if (answer)
		fathom_answers_free(((const struct head *)answer - 1)->answers);
}

size_t fathom_answers_count(const struct fathom_answers *answers)
{
	return answers->n;
}

const struct fathom_answer *fathom_answers_get(const struct fathom_answers *answers, size_t i)
{
	return &answers->answers[i];
}

const struct fathom_answer *fathom_answers_array(const struct fathom_answers *answers,
						 size_t *ret_stride)
{
	*ret_stride = sizeof *answers->answers;
	return answers->answers;
}

/* Converts @f to the public struct. */
static int describe_name(const struct fathom_answer_function *f, struct fathom_compat_name *ret)
{
	uint32_t suffix;

	if (!f)
		return 0;
	*ret = (struct fathom_compat_name){
		.name = f->name,
		.linkage_name = f->linkage_name,
		.plain_name = f->plain_name,
		.decl_file = f->decl_file ? f->decl_file->path : NULL,
		.decl_line = f->decl_line,
		.name_size = f->name_size,
		.flags = (f->flags & FATHOM_BLOCK_UNMANGLED ? FATHOM_NAME_UNMANGLED : 0u) |
			 (f->flags & FATHOM_BLOCK_ADA ? FATHOM_NAME_ADA : 0u),
	};
	suffix = fathom_clone_suffix(linkage_of(f));
	if (suffix < f->linkage_size)
		ret->clone_suffix = f->linkage_name + suffix;
	return 1;
}

int fathom_compat_frame_name(const struct fathom_frame *frame, struct fathom_compat_name *ret)
{
	return describe_name(((const struct fathom_compat_frame *)frame)->function, ret);
}

int fathom_compat_symbol_name(const struct fathom_answers *answers, size_t i,
			      struct fathom_compat_name *ret)
{
	return describe_name(answers->extra[i].symbol, ret);
}

const char *fathom_compat_symbol_file(const struct fathom_answers *answers, size_t i)
{
	const struct fathom_source_file *file = answers->extra[i].file;

	return file ? file->path : NULL;
}
