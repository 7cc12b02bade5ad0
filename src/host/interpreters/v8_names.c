/* SPDX-License-Identifier: MIT */
/*
 * Names and files of V8's functions (objects/string.tq, objects/scope-info.tq, objects/script.tq).
 * A function that has run has its name in its ScopeInfo, whose parts depend on its flags:
 *
 *	flags, parameters, n; names of n variables, or a table of them if they are many; n words;
 *	a class's variable; the function's own name, 2; its inferred name; ...
 */
#include "host/interpreters/v8.h"
#include "safe/base/utf8.h"

/* Of strings: bits of the type, the length, characters or another string, and its offset. */
enum {
	TEXT_FORM = 7,
	TEXT_NARROW = 8,
	TEXT_UNCACHED = 16,
	TEXT_TYPES = 128,
	TEXT_LENGTH = 12,
	TEXT_CHARACTERS = 16,
	TEXT_OTHER = 16,
	TEXT_SECOND = 24,
	TEXT_OFFSET = 24,
	TEXT_DATA = 24,
};

/* Forms of strings: in one piece, of two, elsewhere, a part of another, the same as another. */
enum { FORM_FLAT = 0, FORM_CONS = 1, FORM_EXTERNAL = 2, FORM_SLICED = 3, FORM_THIN = 5 };

/* The most strings that one name has as parts. */
#define MOST_PARTS 64

/* Of ScopeInfo: members, and bits of the flags. */
enum {
	SCOPE_FLAGS = 8,
	SCOPE_VARIABLES = 24,
	SCOPE_REST = 32,
	SCOPE_TYPE = 15,
	SCOPE_MODULE = 3,
	SCOPE_RECEIVER = 3 << 7,
	SCOPE_RECEIVER_UNUSED = 3 << 7,
	SCOPE_CLASS_VARIABLE = 1 << 10,
	SCOPE_NAME = 3 << 12,
	SCOPE_INFERRED = 1 << 14,
};

/* The most variables of a scope. */
#define MOST_VARIABLES (1 << 22)

static const char nameless[] = "(anonymous)";

/* Returns the type of the string @tagged, or -1. */
static int text_type(const struct fathom_runtime_found *f, uint64_t tagged)
{
	const int type = fathom_v8_type(f, tagged);

	return type < TEXT_TYPES ? type : -1;
}

/* Finds the characters of @tagged, of @type, if it has them itself. */
static bool own_characters(const struct fathom_runtime_found *f, uint64_t tagged, int type,
			   struct fathom_v8_text *ret)
{
	ret->is_wide = !(type & TEXT_NARROW);
	if (!fathom_v8_u32(f, tagged, TEXT_LENGTH, &ret->length))
		return false;
	if ((type & TEXT_FORM) == FORM_FLAT) {
		ret->avma = tagged - V8_TAG + TEXT_CHARACTERS;
		return true;
	}
	return (type & TEXT_FORM) == FORM_EXTERNAL && !(type & TEXT_UNCACHED) &&
	       fathom_v8_member(f, tagged, TEXT_DATA, &ret->avma);
}

bool fathom_v8_flat_text(const struct fathom_runtime_found *f, uint64_t tagged,
			 struct fathom_v8_text *ret)
{
	uint32_t offset = 0;
	uint32_t length = UINT32_MAX;

	for (int i = 0; i < MOST_PARTS; i++) {
		const int type = text_type(f, tagged);
		const int form = type & TEXT_FORM;
		int32_t more = 0;
		uint32_t second = 0;
		uint64_t other;

		if (type < 0)
			return false;
		if (form == FORM_FLAT || form == FORM_EXTERNAL) {
			if (!own_characters(f, tagged, type, ret) || offset > ret->length)
				return false;
			ret->avma += (uint64_t)offset << ret->is_wide;
			ret->length -= offset;
			ret->length = length < ret->length ? length : ret->length;
			return true;
		}
		/* Of two parts that were made one the second is empty. */
		if (form == FORM_CONS &&
		    (!fathom_v8_member(f, tagged, TEXT_SECOND, &other) || text_type(f, other) < 0 ||
		     !fathom_v8_u32(f, other, TEXT_LENGTH, &second) || second))
			return false;
		if (form == FORM_SLICED) {
			if (!fathom_v8_smi(f, tagged, TEXT_OFFSET, &more) || more < 0 ||
			    (length == UINT32_MAX &&
			     !fathom_v8_u32(f, tagged, TEXT_LENGTH, &length)))
				return false;
			offset += (uint32_t)more;
		}
		if (!fathom_v8_member(f, tagged, TEXT_OTHER, &tagged))
			return false;
	}
	return false;
}

/* A name being copied, as UTF-8. */
struct copy {
	const struct fathom_runtime_found *f;
	char *to;
	uint32_t size;
	uint32_t left;  /* characters that it may still have */
	uint16_t first; /* the first half of a pair; 0: there is none */
};

/* Appends the character @c, or a half of one. */
static void put(struct copy *c, uint16_t unit)
{
	const uint16_t first = c->first;

	c->first = 0;
	if (first && unit >= 0xdc00 && unit < 0xe000) {
		c->size += (uint32_t)utf8_encode(
			0x10000u + ((first & 0x3ffu) << 10) + (unit & 0x3ffu), c->to + c->size);
		return;
	}
	if (first)
		c->size += (uint32_t)utf8_encode(0xfffd, c->to + c->size);
	if (unit >= 0xd800 && unit < 0xdc00)
		c->first = unit;
	else
		c->size += (uint32_t)utf8_encode(!unit || (unit >= 0xdc00 && unit < 0xe000) ? 0xfffd
											    : unit,
						 c->to + c->size);
}

/* Appends the characters of @t. */
static bool copy_flat(struct copy *c, const struct fathom_v8_text *t)
{
	uint8_t bytes[256];
	const uint32_t most = (uint32_t)sizeof bytes >> t->is_wide;

	if (t->length > c->left)
		return false;
	c->left -= t->length;
	for (uint32_t i = 0; i < t->length; i += most) {
		const uint32_t n = t->length - i < most ? t->length - i : most;

		if (!fathom_runtime_constant(c->f, t->avma + ((uint64_t)i << t->is_wide), bytes,
					     (size_t)n << t->is_wide))
			return false;
		for (uint32_t k = 0; k < n; k++)
			put(c, t->is_wide ? load_u16(bytes + 2 * (size_t)k, c->f->swap) : bytes[k]);
	}
	return true;
}

/* Appends the string @tagged, and its parts. */
static bool copy_text(struct copy *c, uint64_t tagged)
{
	uint64_t waiting[MOST_PARTS] = { tagged };
	int n = 1;

	for (int i = 0; n && i < 2 * MOST_PARTS; i++) {
		const uint64_t at = waiting[--n];
		struct fathom_v8_text t;

		if (fathom_v8_flat_text(c->f, at, &t)) {
			if (!copy_flat(c, &t))
				return false;
			continue;
		}
		if (text_type(c->f, at) < 0 || (text_type(c->f, at) & TEXT_FORM) != FORM_CONS ||
		    n + 2 > MOST_PARTS || !fathom_v8_member(c->f, at, TEXT_SECOND, &waiting[n]) ||
		    !fathom_v8_member(c->f, at, TEXT_OTHER, &waiting[n + 1]))
			return false;
		n += 2;
	}
	return !n;
}

/* Reads the string @tagged. FATHOM_E_CHANGED: it is none, or too long; FATHOM_E_MEMORY. */
static fathom_err read_text(const struct fathom_runtime_found *f, uint64_t tagged,
			    struct fathom_arena *arena, struct fathom_str *ret)
{
	struct copy c = { .f = f, .left = FATHOM_SCRIPT_MAX_NAME };
	uint32_t length;

	if (text_type(f, tagged) < 0 || !fathom_v8_u32(f, tagged, TEXT_LENGTH, &length) ||
	    length > FATHOM_SCRIPT_MAX_NAME)
		return FATHOM_E_CHANGED;
	c.left = length;
	c.to = fathom_arena_alloc(arena, UTF8_MOST * ((size_t)length + 1) + 1);
	if (!c.to)
		return FATHOM_E_MEMORY;
	if (!copy_text(&c, tagged))
		return FATHOM_E_CHANGED;
	if (c.first)
		put(&c, 0xfffd);
	c.to[c.size] = '\0';
	*ret = (struct fathom_str){ c.to, c.size };
	return FATHOM_OK;
}

/* Reads string @tagged, unless it is none: then *@ret has no data. FATHOM_E_MEMORY. */
static fathom_err read_if_text(const struct fathom_runtime_found *f, uint64_t tagged,
			       struct fathom_arena *arena, struct fathom_str *ret)
{
	const fathom_err err = read_text(f, tagged, arena, ret);

	if (err)
		*ret = (struct fathom_str){ 0 };
	return err == FATHOM_E_MEMORY ? err : FATHOM_OK;
}

/* Reads the name in @scope, of a function; without one, that which V8 has inferred. */
static fathom_err read_scope(const struct fathom_runtime_found *f, uint64_t scope,
			     struct fathom_arena *arena, struct fathom_str *ret)
{
	const struct fathom_v8_offsets *o = &((const struct fathom_v8 *)f->own)->offsets;
	uint64_t at = SCOPE_REST;
	uint64_t name;
	int32_t flags;
	int32_t receiver;
	int32_t n;

	if (!fathom_v8_smi(f, scope, SCOPE_FLAGS, &flags) ||
	    !fathom_v8_smi(f, scope, SCOPE_VARIABLES, &n) || n < 0 || n > MOST_VARIABLES)
		return FATHOM_E_CHANGED;
	if ((flags & SCOPE_TYPE) == SCOPE_MODULE)
		return FATHOM_OK;
	at += 8 * ((uint64_t)n + (n < o->scope_inlined ? (uint64_t)n : 1));
	at += flags & SCOPE_CLASS_VARIABLE ? 8 : 0;
	receiver = flags & SCOPE_RECEIVER;
	at += o->scope_receiver && receiver && receiver != SCOPE_RECEIVER_UNUSED ? 8 : 0;
	if (flags & SCOPE_NAME) {
		if (!fathom_v8_member(f, scope, at, &name))
			return FATHOM_E_CHANGED;
		FATHOM_TRY(read_if_text(f, name, arena, ret));
		at += 16;
	}
	if (ret->size || !(flags & SCOPE_INFERRED) || !fathom_v8_member(f, scope, at, &name))
		return FATHOM_OK;
	return read_if_text(f, name, arena, ret);
}

/* Returns whether @script is what eval() or a constructor of functions was given. */
static bool is_eval(const struct fathom_runtime_found *f, uint64_t script)
{
	const struct fathom_v8 *v = f->own;
	uint64_t from;

	return fathom_v8_member(f, script, SCRIPT_EVAL_FROM, &from) &&
	       fathom_v8_type(f, from) == v->offsets.type_shared;
}

/* Reads the name of the function @shared, of @script, which is 0 for built-ins. */
static fathom_err read_function(const struct fathom_runtime_found *f, uint64_t shared,
				uint64_t script, struct fathom_arena *arena, struct fathom_str *ret)
{
	const struct fathom_v8 *v = f->own;
	uint64_t name;
	fathom_err err = FATHOM_OK;

	if (!fathom_v8_member(f, shared, SHARED_NAME, &name))
		return FATHOM_E_CHANGED;
	if (fathom_v8_type(f, name) == v->offsets.type_scope)
		err = read_scope(f, name, arena, ret);
	else if ((name & V8_TAG_MASK) == V8_TAG)
		err = read_text(f, name, arena, ret);
	if (err || ret->size)
		return err;
	/* A built-in without a name is a part of V8's own. */
	if (!script)
		return FATHOM_E_CHANGED;
	*ret = is_eval(f, script) ? (struct fathom_str){ "eval", 4 }
				  : (struct fathom_str){ nameless, sizeof nameless - 1 };
	return FATHOM_OK;
}

uint64_t fathom_v8_mark(const struct fathom_runtime_found *f, uint64_t shared)
{
	static const uint16_t members[] = { SHARED_NAME, SHARED_SCRIPT };
	uint64_t mark = 0;

	for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
		uint64_t word = 0;

		(void)fathom_v8_member(f, shared + V8_TAG, members[i], &word);
		/* Multiplied by a fraction of the golden ratio. */
		mark = (mark ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	}
	return mark;
}

fathom_err fathom_v8_name(struct fathom_runtime_found *f, const struct fathom_script_frame *frame,
			  struct fathom_arena *arena, struct fathom_script_name *ret)
{
	struct fathom_v8 *v = f->own;
	const uint64_t shared = frame->code + V8_TAG;
	uint64_t script;
	uint64_t file;

	fathom_runtime_forget(v->pages);
	if (fathom_v8_type(f, shared) != v->offsets.type_shared ||
	    fathom_v8_mark(f, frame->code) != frame->mark ||
	    !fathom_v8_member(f, shared, SHARED_SCRIPT, &script))
		return FATHOM_E_CHANGED;
	if (fathom_v8_type(f, script) != v->offsets.type_script)
		script = 0;
	FATHOM_TRY(read_function(f, shared, script, arena, &ret->function));
	if (!script || !fathom_v8_member(f, script, SCRIPT_NAME, &file))
		return FATHOM_OK;
	FATHOM_TRY(read_if_text(f, file, arena, &ret->file));
	return ret->file.size ? fathom_v8_line(f, frame, script, &ret->line) : FATHOM_OK;
}
