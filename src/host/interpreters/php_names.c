/* SPDX-License-Identifier: MIT */
/*
 * Names, files and lines of PHP's functions, as its own traces have them: Class->method,
 * Class::method, function, {closure}; of a file that is included, by what.
 */
#include <string.h>

#include "host/interpreters/php.h"
#include "host/interpreters/script_text.h"

/* clang-format off */
static const struct fathom_php_offsets rows[] = {
	{ .api = 20190902,
	  .major = 7,
	  .minor = 4,
	  .bailout = 416,
	  .current = 488,
	  .before_exception = 880,
	  .op_codes = 64,
	  .op_number = 60,
	  .file = 136,
	  .generator_frame = 64,
	  .generator_parent = 160,
	  .generator_fake = 200 },
	{ .api = 20210902,
	  .major = 8,
	  .minor = 1,
	  .bailout = 416,
	  .current = 488,
	  .before_exception = 880,
	  .op_codes = 72,
	  .op_number = 68,
	  .file = 144,
	  .generator_frame = 56,
	  .generator_parent = 152,
	  .generator_fake = 184 },
	{ .api = 20220829,
	  .major = 8,
	  .minor = 2,
	  .bailout = 416,
	  .current = 488,
	  .before_exception = 880,
	  .op_codes = 88,
	  .op_number = 80,
	  .file = 152,
	  .generator_frame = 56,
	  .generator_parent = 152,
	  .generator_fake = 184 },
	{ .api = 20230831,
	  .major = 8,
	  .minor = 3,
	  .bailout = 416,
	  .current = 488,
	  .before_exception = 880,
	  .op_codes = 80,
	  .op_number = 76,
	  .file = 144,
	  .generator_frame = 56,
	  .generator_parent = 152,
	  .generator_fake = 184 },
	{ .api = 20240924,
	  .major = 8,
	  .minor = 4,
	  .bailout = 416,
	  .current = 488,
	  .before_exception = 952,
	  .op_codes = 104,
	  .op_number = 96,
	  .file = 168,
	  .generator_frame = 56,
	  .generator_parent = 152,
	  .generator_fake = 184 },
};
/* clang-format on */

/* Of zend_string and zend_class_entry. */
enum { STRING_SIZE = 16, STRING_TEXT = 24, CLASS_NAME = 8 };

const struct fathom_php_offsets *fathom_php_find_offsets(uint32_t api)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].api == api)
			return &rows[i];
	return NULL;
}

bool fathom_php_read_function(const struct fathom_runtime_found *f, uint64_t avma,
			      struct fathom_php_function *ret)
{
	struct fathom_php *p = f->own;
	const struct fathom_php_offsets *o = p->offsets;
	const uint8_t *bytes;

	if (!avma || avma % 8)
		return false;
	*ret = (struct fathom_php_function){ .kind = 0 };
	/* One of C is smaller: it may end where nothing is readable any more. */
	bytes = fathom_runtime_part(f, &p->functions, avma, PHP_FUNCTION_SCOPE + 8);
	if (!bytes)
		return false;
	ret->kind = bytes[0];
	ret->name = load_u64(bytes + PHP_FUNCTION_NAME, f->swap);
	ret->scope = load_u64(bytes + PHP_FUNCTION_SCOPE, f->swap);
	if (ret->kind == PHP_INTERNAL)
		return true;
	bytes = fathom_runtime_part(f, &p->functions, avma, o->file + 8u);
	if (!bytes || (ret->kind != PHP_USER && ret->kind != PHP_EVAL))
		return false;
	ret->file = load_u64(bytes + o->file, f->swap);
	ret->op_codes = load_u64(bytes + o->op_codes, f->swap);
	ret->op_number = load_u32(bytes + o->op_number, f->swap);
	return ret->file != 0;
}

uint64_t fathom_php_mark(const struct fathom_php_function *function)
{
	const uint64_t words[] = { function->name, function->scope, function->file,
				   function->op_codes };
	uint64_t mark = 0;

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		/* Multiplied by a fraction of the golden ratio. */
		mark = (mark ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
	return mark;
}

/* Appends the zend_string at @avma, up to a NUL: what is behind it, PHP itself does not show. */
static bool put_string(const struct fathom_runtime_found *f, struct fathom_script_text *t,
		       uint64_t avma)
{
	char bytes[FATHOM_SCRIPT_MAX_NAME];
	uint64_t size;

	if (!avma || avma % 8 || !fathom_runtime_number(f, avma + STRING_SIZE, 8, &size) ||
	    size > sizeof bytes ||
	    !fathom_reader_read(f->memory, avma + STRING_TEXT, bytes, (size_t)size))
		return false;
	fathom_script_text_put(t, bytes, strnlen(bytes, (size_t)size));
	return !t->bad;
}

static void put_words(struct fathom_script_text *t, const char *words)
{
	fathom_script_text_put(t, words, strlen(words));
}

/* Appends what code without a name is called: the script itself, or a file by what includes it. */
static void put_file_words(struct fathom_script_text *t, uint64_t how)
{
	switch (how) {
	case PHP_BY_EVAL:
		put_words(t, "eval");
		break;
	case PHP_BY_INCLUDE:
		put_words(t, "include");
		break;
	case PHP_BY_INCLUDE_ONCE:
		put_words(t, "include_once");
		break;
	case PHP_BY_REQUIRE:
		put_words(t, "require");
		break;
	case PHP_BY_REQUIRE_ONCE:
		put_words(t, "require_once");
		break;
	default:
		put_words(t, "{main}");
	}
}

/* Appends the name of @function, which is called as @how says. */
static bool put_name(const struct fathom_runtime_found *f, struct fathom_script_text *t,
		     const struct fathom_php_function *function, uint64_t how)
{
	uint64_t name;

	if (!function->name) {
		put_file_words(t, how);
		return true;
	}
	if (function->scope) {
		if (function->scope % 8 ||
		    !fathom_runtime_number(f, function->scope + CLASS_NAME, 8, &name) ||
		    !put_string(f, t, name))
			return false;
		put_words(t, how == PHP_OF_OBJECT ? "->" : "::");
	}
	return put_string(f, t, function->name) && !t->bad;
}

fathom_err fathom_php_name(struct fathom_runtime_found *f, const struct fathom_script_frame *frame,
			   struct fathom_arena *arena, struct fathom_script_name *ret)
{
	struct fathom_php *p = f->own;
	struct fathom_script_text text = { .n = 0 };
	struct fathom_php_function function;
	uint64_t line;

	p->functions.size = 0;
	if (!fathom_php_read_function(f, frame->code, &function) ||
	    (fathom_php_mark(&function) ^ frame->method) != frame->mark ||
	    !put_name(f, &text, &function, frame->method))
		return FATHOM_E_CHANGED;
	FATHOM_TRY(fathom_script_text_copy(&text, arena, &ret->function));
	text.n = 0;
	if (function.file && put_string(f, &text, function.file))
		FATHOM_TRY(fathom_script_text_copy(&text, arena, &ret->file));
	if (fathom_php_has_op(&function, frame->pc) &&
	    fathom_runtime_number(f, frame->pc + PHP_OP_LINE, 4, &line))
		ret->line = (uint32_t)line;
	return FATHOM_OK;
}
