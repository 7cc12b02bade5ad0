/* SPDX-License-Identifier: MIT */
/* Names one address from the prepared table. */
#include "safe/base/limits.h"
#include "safe/base/pc.h"
#include "safe/base/peek.h"
#include "safe/base/sort.h"
#include "safe/self/loader.h"
#include "safe/self/published_code.h"
#include "safe/self/table.h"
#include "safe/self/unprepared.h"

/* Linkers make no longer build-ids. Longer ones are not kept (prepared_names.c). */
#define MAX_BUILD_ID 64

/* A search gives up after this many generations: a reader never waits. */
#define MAX_TRIES 16

/*
 * Returns how many of the first @n lows of @t are <= @avma. All reads of a table are acquire loads:
 * the generation, which is read after them, is then at least as new.
 */
static uint32_t count_lows(const struct fathom_self_table *t, uint32_t n, uintptr_t avma)
{
	return (uint32_t)FATHOM_BISECT(
		n, i, atomic_load_explicit(&t->lows[i], memory_order_acquire) <= avma);
}

/* Copies @row word by word to @ret: a wider copy would wait for words just stored. */
static void read_row(const struct fathom_self_row *row, struct fathom_self_place *ret)
{
	char *to = (char *)ret;

#pragma GCC unroll 8
	for (size_t i = 0; i < FATHOM_SELF_WORDS; i++) {
		const uintptr_t word = atomic_load_explicit(&row->word[i], memory_order_acquire);

		memcpy(to + i * sizeof word, &word, sizeof word);
	}
}

/* Finds the place that holds @avma; false if there is none. */
static bool find_place(const struct fathom_self *self, uintptr_t avma,
		       struct fathom_self_place *ret)
{
	for (int i = 0; i < MAX_TRIES; i++) {
		/* Sequentially consistent: must not be read before the reader is counted. */
		const uint32_t generation = atomic_load(&self->generation);
		const struct fathom_self_table *t =
			atomic_load_explicit(&self->tables[generation & 1], memory_order_acquire);
		const uint32_t n = atomic_load_explicit(&t->n, memory_order_acquire);
		const uint32_t count = count_lows(t, n, avma);

		if (count)
			read_row(&t->rows[count - 1], ret);
		if (atomic_load_explicit(&self->generation, memory_order_acquire) != generation)
			continue;
		return count && avma >= ret->low && avma < ret->high;
	}
	return false;
}

/* Returns whether the module of @p is in memory where the table has it, at @avma. */
static bool is_there(const struct fathom_self_place *p, uintptr_t avma)
{
	const struct fathom_self_module *m = (const struct fathom_self_module *)p->module;
	struct fathom_self_object o;
	uint8_t id[MAX_BUILD_ID];

	if (p->flags & FATHOM_SELF_STAYS)
		return true;
	if (p->object && fathom_self_has_loader() &&
	    (!fathom_self_object_at(avma, &o) || o.start != p->object || o.end != p->object_end))
		return false;
	/* Without a build-id, any module may be there now. */
	return p->build_id && m->build_id_size && m->build_id_size <= sizeof id &&
	       fathom_peek(p->build_id, id, m->build_id_size) == m->build_id_size &&
	       memcmp(id, m->build_id, m->build_id_size) == 0;
}

/* Returns the symbol at @svma, or NULL. */
static const struct fathom_self_symbol *symbol_at(const struct fathom_self_module *m, uint64_t svma)
{
	uint64_t bucket = 0;
	uint32_t first;
	size_t n;

	if (svma >= m->base)
		bucket = ((svma - m->base) >> m->shift) + 1;
	bucket = bucket < m->n_buckets ? bucket : m->n_buckets - 1;
	first = m->buckets[bucket];
	n = first + (uint32_t)FATHOM_BISECT(m->buckets[bucket + 1] - first, i,
					    m->starts[first + i] <= svma);
	if (!n || m->winners[n - 1] == FATHOM_SELF_NONE)
		return NULL;
	return &m->symbols[m->winners[n - 1]];
}

static const char *string_of(const struct fathom_self_module *m, uint32_t off)
{
	return off ? m->strings + off : NULL;
}

/* The entry of @m for the demangled name of what the index of lines calls @linkage, or NULL. */
static const struct fathom_self_demangled *demangled(const struct fathom_self_module *m,
						     uint32_t linkage)
{
	const uint32_t low =
		(uint32_t)FATHOM_BISECT(m->n_demangled, i, m->demangled[i].linkage < linkage);

	return low < m->n_demangled && m->demangled[low].linkage == linkage ? &m->demangled[low]
									    : NULL;
}

/* One look-up under way. */
struct look {
	const struct fathom_self_module *module;
	struct fathom_block_view view; /* block is NULL: no lines are known */
	uint64_t bias;
	uint32_t flags;
	struct fathom_self_room *room;
	struct fathom_frame *last; /* the outermost so far, or NULL */
};

/* Sets the names of @f to those of function @function of the block. */
static void name_function(const struct look *l, uint32_t function, struct fathom_frame *f)
{
	const struct fathom_self_demangled *shown = NULL;
	struct fathom_block_function names;
	struct fathom_str linkage;
	struct fathom_str name;

	if (!fathom_block_function(l->view.block, function, &names))
		return;
	/* All strings of an index end with a NUL. */
	linkage = fathom_block_string(&l->view, names.linkage);
	name = linkage.data ? linkage : fathom_block_string(&l->view, names.name);
	if (names.linkage && !(l->flags & FATHOM_NO_DEMANGLE))
		shown = demangled(l->module, names.linkage);
	f->linkage_name = linkage.data;
	f->linkage_size = linkage.size;
	f->function = shown ? string_of(l->module, shown->name) : name.data;
	f->function_size = shown ? shown->size : name.size;
}

static void set_file(const struct look *l, uint32_t file, struct fathom_frame *f)
{
	struct fathom_str path;
	uint32_t reference;

	if (!fathom_block_file(l->view.block, file, &reference))
		return;
	path = fathom_block_string(&l->view, reference);
	f->file = path.data;
	f->file_size = path.size;
}

/* Adds a frame. If there is no room, it replaces the last one. */
static struct fathom_frame *add_frame(struct look *l)
{
	struct fathom_self_room *r = l->room;
	struct fathom_frame *f = l->last;

	if (r->left >= sizeof *f) {
		f = (void *)r->at;
		r->at += sizeof *f;
		r->left -= sizeof *f;
		if (l->last)
			l->last->outer = f;
		else
			r->answer->frame = f;
	} else {
		r->answer->reason = FATHOM_REASON_LIMIT;
	}
	l->last = f;
	if (f)
		*f = (struct fathom_frame){ .outer = NULL };
	return f;
}

static uint64_t start_of(const struct look *l, const struct fathom_block_node *node)
{
	return node->start == FATHOM_BLOCK_NO_START ? 0
						    : l->bias + l->view.block->low + node->start;
}

/* Sets the frames of @row, innermost first. The outermost gets the answer's name. */
static void set_frames(struct look *l, const struct fathom_block_row *row)
{
	const struct fathom_answer *a = l->room->answer;
	struct fathom_frame *f = add_frame(l);
	struct fathom_block_node node;
	uint32_t i = row->node;

	if (!f)
		return;
	set_file(l, row->file, f);
	f->line = row->line;
	f->column = row->column;
	f->discriminator = row->discriminator;
	for (unsigned depth = 0; depth < FATHOM_MAX_INLINE_DEPTH; depth++) {
		if (!fathom_block_node(l->view.block, i, &node))
			break;
		name_function(l, node.function, f);
		f->start = start_of(l, &node);
		if (node.parent == FATHOM_BLOCK_NONE || node.parent >= i)
			break;
		f = add_frame(l);
		set_file(l, node.call_file, f);
		f->line = node.call_line;
		f->column = node.call_column;
		f->discriminator = node.discriminator;
		i = node.parent;
	}
	if (a->symbol) {
		f->function = a->symbol;
		f->function_size = a->symbol_size;
		f->linkage_name = a->linkage_name;
		f->linkage_size = a->linkage_size;
	}
}

/* Names the answer after the block's function. */
static void name_by_block(const struct look *l, uint64_t svma)
{
	struct fathom_answer *a = l->room->answer;
	struct fathom_frame f = { 0 };
	struct fathom_block_node node;

	if (!fathom_block_node(l->view.block, 0, &node))
		return;
	name_function(l, node.function, &f);
	a->symbol = f.function;
	a->symbol_size = f.function_size;
	a->linkage_name = f.linkage_name;
	a->linkage_size = f.linkage_size;
	a->source = FATHOM_SOURCE_DWARF;
	a->size = l->view.block->size;
	a->offset = svma - l->view.block->low;
}

static void name_by_symbol(const struct look *l, const struct fathom_self_symbol *s, uint64_t svma)
{
	const bool plain = l->flags & FATHOM_NO_DEMANGLE;
	struct fathom_answer *a = l->room->answer;

	a->linkage_name = string_of(l->module, s->linkage);
	a->linkage_size = s->linkage_size;
	a->symbol = plain ? a->linkage_name : string_of(l->module, s->name);
	a->symbol_size = plain ? s->linkage_size : s->name_size;
	a->source = (uint8_t)s->source;
	a->size = s->size;
	a->offset = svma - s->start;
}

/* Returns whether the block's function is a better name than the symbol. */
static bool block_names_better(const struct look *l, const struct fathom_self_symbol *s)
{
	return l->view.block && l->view.block->n_nodes &&
	       (!s || (!s->size && l->view.block->low > s->start));
}

static void answer_from(struct look *l, uint64_t svma)
{
	const struct fathom_self_module *m = l->module;
	const struct fathom_self_symbol *s = symbol_at(m, svma);
	struct fathom_answer *a = l->room->answer;
	struct fathom_block_row row;
	uint32_t index;

	if (block_names_better(l, s))
		name_by_block(l, svma);
	else if (s)
		name_by_symbol(l, s, svma);
	/* A return address was looked up as the byte before it: add that byte again. */
	if (a->symbol)
		a->offset += a->module_address - svma;
	if (l->view.block && fathom_block_find(l->view.block, svma, &row, &index))
		set_frames(l, &row);
	/* The chain is cut: no other reason says so. */
	if (a->reason)
		return;
	if (l->view.block && l->view.block->flags & FATHOM_BLOCK_DAMAGED)
		a->reason = FATHOM_REASON_CORRUPT;
	else if (!a->symbol && (l->flags & FATHOM_NAMES_ONLY ||
				m->no_lines == FATHOM_REASON_NO_DEBUG_INFO || !m->no_lines))
		a->reason = FATHOM_REASON_NO_SYMBOLS;
	else if (!(l->flags & FATHOM_NAMES_ONLY) && (!a->frame || !a->frame->file))
		a->reason = m->no_lines;
}

/* Answers for @pc from the module at @place. */
static void answer_at(const struct fathom_self_place *place, uint64_t pc, uint32_t flags,
		      struct fathom_self_room *room)
{
	struct look l = { .flags = flags, .bias = place->bias, .room = room };
	/* The bias may be above the address: addresses wrap at the size of a pointer. */
	const uint64_t svma = (uintptr_t)(pc - place->bias);

	l.module = (const struct fathom_self_module *)place->module;
	*room->module = (struct fathom_module_info){
		l.module->path, l.module->build_id, l.module->build_id_size, 0, { 0 }
	};
	room->answer->module = room->module;
	room->answer->module_address = (uintptr_t)(room->answer->pc.address - place->bias);
	if (l.module->lines && !(flags & FATHOM_NAMES_ONLY) &&
	    !fathom_index_find_block(l.module->lines, svma, &l.view))
		l.view.block = NULL;
	answer_from(&l, svma);
}

/*
 * Answers for @pc from a module that may be unloaded; returns false if it is not loaded. Counts a
 * reader first and searches again: the place found before may be about to be freed.
 */
static bool answer_guarded(const struct fathom_self *self, uint64_t pc, uint32_t flags,
			   bool is_current, struct fathom_self_room *room)
{
	struct fathom_self_place place;
	bool there;

	(void)atomic_fetch_add(self->readers, 1);
	there = find_place(self, (uintptr_t)pc, &place) &&
		((is_current && place.flags & FATHOM_SELF_OURS) || is_there(&place, (uintptr_t)pc));
	if (there)
		answer_at(&place, pc, flags, room);
	(void)atomic_fetch_sub(self->readers, 1);
	return there;
}

struct fathom_unwind_rule fathom_self_find_rule(const struct fathom_self *self, uintptr_t avma,
						bool *ret_stays)
{
	struct fathom_unwind_rule rule = { .kind = FATHOM_UNWIND_NONE };
	const struct fathom_self_module *m;
	struct fathom_self_place place;
	bool there;

	*ret_stays = false;
	/* Counted as a reader first: the place may be about to be freed. */
	(void)atomic_fetch_add(self->readers, 1);
	there = find_place(self, avma, &place) && is_there(&place, avma);
	if (there) {
		m = (const struct fathom_self_module *)place.module;
		*ret_stays = place.flags & FATHOM_SELF_STAYS;
		if (m->rules)
			rule = *fathom_unwind_table_find(m->rules, avma - place.bias);
	}
	(void)atomic_fetch_sub(self->readers, 1);
	return rule;
}

/* Divides @buffer; false when it is too small. */
static bool make_room(struct fathom_pc pc, void *buffer, size_t size, struct fathom_self_room *ret)
{
	const size_t skip = -(uintptr_t)buffer & (_Alignof(struct fathom_answer) - 1);
	const size_t head = skip + sizeof *ret->answer + sizeof *ret->module;

	_Static_assert(
		sizeof *ret->answer + sizeof *ret->module + sizeof(struct fathom_frame) + 8 <= 256,
		"the least size that the header states has room for one frame");
	if (size < 256)
		return false;
	ret->answer = (void *)((char *)buffer + skip);
	ret->module = (struct fathom_module_info *)(ret->answer + 1);
	ret->at = (char *)(ret->module + 1);
	ret->left = size - head;
	/* Field by field: a copy of what was just spilled from registers would wait for it. */
	memset(ret->answer, 0, sizeof *ret->answer);
	ret->answer->pc.address = pc.address;
	ret->answer->pc.kind = pc.kind;
	ret->answer->module_address = FATHOM_NO_ADDRESS;
	return true;
}

const struct fathom_answer *fathom_self_answer(const struct fathom_self *self, struct fathom_pc pc,
					       uint32_t flags, bool is_current, void *buffer,
					       size_t size)
{
	const uint64_t at = fathom_pc_subtract(pc.address, pc.kind);
	struct fathom_self_place place;
	struct fathom_self_room room;

	if (!make_room(pc, buffer, size, &room))
		return NULL;
	if (at > UINTPTR_MAX)
		room.answer->reason = FATHOM_REASON_UNMAPPED;
	else if (fathom_self_answer_made(self, at, &room))
		return room.answer;
	else if (!find_place(self, (uintptr_t)at, &place))
		fathom_self_answer_from_memory((uintptr_t)at, &room);
	else if (place.flags & FATHOM_SELF_STAYS)
		answer_at(&place, at, flags, &room);
	else if (!answer_guarded(self, at, flags, is_current, &room))
		fathom_self_answer_from_memory((uintptr_t)at, &room);
	return room.answer;
}

const struct fathom_answer *fathom_self_lookup(const struct fathom_self *self, struct fathom_pc pc,
					       uint32_t flags, void *buffer, size_t size)
{
	return fathom_self_answer(self, pc, flags, false, buffer, size);
}
