/* SPDX-License-Identifier: MIT */
#include "host/events/stack_frames.h"

#include <stdlib.h>
#include <string.h>

void fathom_stack_frames_deinit(struct fathom_stack_frames *f)
{
	fathom_arena_deinit(&f->arena);
	fathom_key_map_deinit(&f->numbers);
	fathom_array_free(&f->modules);
	fathom_array_free(f);
}

/* Adds @n bytes to a hash (FNV-1a). */
static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
	const uint8_t *at = bytes;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static uint64_t hash_text(uint64_t hash, const char *text, size_t n)
{
	return hash_bytes(hash_bytes(hash, &n, sizeof n), text, text ? n : 0);
}

static uint64_t hash_inlined(uint64_t hash, const struct fathom_frame *frame)
{
	const uint32_t place[] = { frame->line, frame->column, frame->discriminator };

	hash = hash_text(hash, frame->function, frame->function_size);
	hash = hash_text(hash, frame->linkage_name, frame->linkage_size);
	hash = hash_text(hash, frame->file, frame->file_size);
	return hash_bytes(hash, place, sizeof place);
}

static uint64_t hash_answer(const struct fathom_answer *a, uint64_t file_offset)
{
	const uint64_t numbers[] = { a->pc.address, a->pc.kind, a->module_address, a->offset,
				     a->size,       a->source,  a->reason,         file_offset };
	const char *path = a->module ? a->module->path : "";
	uint64_t hash = hash_bytes(UINT64_C(0xcbf29ce484222325), numbers, sizeof numbers);

	hash = hash_text(hash, path, strlen(path));
	if (a->module)
		hash = hash_text(hash, (const char *)a->module->build_id, a->module->build_id_size);
	hash = hash_text(hash, a->symbol, a->symbol_size);
	hash = hash_text(hash, a->linkage_name, a->linkage_size);
	for (const struct fathom_frame *frame = a->frame; frame; frame = frame->outer)
		hash = hash_inlined(hash, frame);
	return hash;
}

/* Copies @n bytes of @text; sets *@ret_ok to false without memory. */
static const char *copy_text(struct fathom_stack_frames *f, const char *text, size_t n,
			     bool *ret_ok)
{
	const char *copy;

	if (!text)
		return NULL;
	copy = fathom_arena_strdup(&f->arena, (struct fathom_str){ text, (uint32_t)n });
	*ret_ok &= copy != NULL;
	return copy;
}

static bool is_module(const struct fathom_module_info *a, const struct fathom_module_info *b)
{
	return a->build_id_size == b->build_id_size && !strcmp(a->path, b->path) &&
	       !memcmp(a->build_id ? a->build_id : (const uint8_t *)"",
		       b->build_id ? b->build_id : (const uint8_t *)"", a->build_id_size);
}

static const struct fathom_module_info *copy_module(struct fathom_stack_frames *f,
						    const struct fathom_module_info *from,
						    bool *ret_ok)
{
	struct fathom_module_info *m;

	for (size_t i = 0; i < f->modules.n; i++)
		if (is_module(f->modules.items[i], from))
			return f->modules.items[i];
	m = fathom_arena_alloc(&f->arena, sizeof *m);
	if (!m || !fathom_array_push(&f->modules, m)) {
		*ret_ok = false;
		return NULL;
	}
	*m = *from;
	m->path = copy_text(f, from->path, strlen(from->path), ret_ok);
	m->build_id = (const uint8_t *)copy_text(f, (const char *)from->build_id,
						 from->build_id_size, ret_ok);
	if (!*ret_ok)
		f->modules.n--;
	return m;
}

/* Copies @from and all that it is inlined into. */
static const struct fathom_frame *copy_inlined(struct fathom_stack_frames *f,
					       const struct fathom_frame *from, bool *ret_ok)
{
	struct fathom_frame *first = NULL;
	const struct fathom_frame **end = (const struct fathom_frame **)&first;

	for (; from && *ret_ok; from = from->outer) {
		struct fathom_frame *frame = fathom_arena_alloc(&f->arena, sizeof *frame);

		*ret_ok &= frame != NULL;
		if (!frame)
			break;
		*frame = *from;
		frame->outer = NULL;
		frame->function = copy_text(f, from->function, from->function_size, ret_ok);
		frame->linkage_name = copy_text(f, from->linkage_name, from->linkage_size, ret_ok);
		frame->file = copy_text(f, from->file, from->file_size, ret_ok);
		*end = frame;
		end = &frame->outer;
	}
	return first;
}

/* Copies @from with what it points to; NULL without memory. */
static struct fathom_answer *copy_answer(struct fathom_stack_frames *f,
					 const struct fathom_answer *from)
{
	struct fathom_answer *a = fathom_arena_alloc(&f->arena, sizeof *a);
	bool is_ok = a != NULL;

	if (!a)
		return NULL;
	*a = *from;
	a->module = from->module ? copy_module(f, from->module, &is_ok) : NULL;
	a->symbol = copy_text(f, from->symbol, from->symbol_size, &is_ok);
	a->linkage_name = copy_text(f, from->linkage_name, from->linkage_size, &is_ok);
	a->frame = copy_inlined(f, from->frame, &is_ok);
	return is_ok ? a : NULL;
}

const struct fathom_trace_frame *fathom_stack_frames_add(struct fathom_stack_frames *f,
							 const struct fathom_answer *answer,
							 uint64_t file_offset)
{
	uint32_t *number;
	struct fathom_trace_frame *frame;

	if (f->n >= FATHOM_KEY_NEW || !fathom_array_room(f, 1))
		return NULL;
	number = fathom_key_map_at(&f->numbers, hash_answer(answer, file_offset));
	if (!number)
		return NULL;
	if (*number != FATHOM_KEY_NEW)
		return f->items[*number];
	frame = fathom_arena_alloc(&f->arena, sizeof *frame);
	if (!frame)
		return NULL;
	*frame = (struct fathom_trace_frame){ .frame = { .pc = answer->pc,
							 .sp = FATHOM_NO_ADDRESS,
							 .answer = copy_answer(f, answer) },
					      .file_offset = file_offset,
					      .number = (uint32_t)f->n };
	if (!frame->frame.answer)
		return NULL;
	*number = frame->number;
	f->items[f->n++] = frame;
	return frame;
}

struct fathom_trace_stack *fathom_trace_stack_create(size_t n, uint8_t stop)
{
	struct fathom_trace_stack *s = malloc(sizeof *s + n * sizeof *s->frames);

	if (s)
		*s = (struct fathom_trace_stack){ .frames = (struct fathom_trace_frame *)(s + 1),
						  .n_frames = n,
						  .stop = stop };
	return s;
}

struct fathom_trace_frame *fathom_trace_stack_frames(struct fathom_trace_stack *s)
{
	return (struct fathom_trace_frame *)(s + 1);
}

struct fathom_trace_stack *fathom_stack_frames_copy(struct fathom_stack_frames *f,
						    const struct fathom_trace_stack *from)
{
	struct fathom_trace_stack *s = fathom_trace_stack_create(from->n_frames, from->stop);

	for (size_t i = 0; s && i < from->n_frames; i++) {
		const struct fathom_stack_frame *of = &from->frames[i].frame;
		const struct fathom_trace_frame *frame =
			fathom_stack_frames_add(f, of->answer, from->frames[i].file_offset);
		struct fathom_trace_frame *to = &fathom_trace_stack_frames(s)[i];

		if (!frame) {
			free(s);
			return NULL;
		}
		*to = *frame;
		to->frame.sp = of->sp;
		to->frame.trust = of->trust;
		to->frame.is_signal_return = of->is_signal_return;
	}
	return s;
}
