/* SPDX-License-Identifier: MIT */
/*
 * Columns of answers, for programs that want many answers as arrays.
 *
 * Dictionary encoding: answers of one part share their texts, so most values are found by their
 * pointer. A pointer that is seen first is searched by its bytes, because different parts, and
 * different functions of one name, have texts of their own.
 */
#include <string.h>

#include "host/base/hash.h"
#include "host/base/key_map.h"
#include "host/symbolize/answers.h"
#include "safe/base/error.h"

/* A value of a column: its identity, and the bytes that make it equal to others. */
struct column_value {
	const void *identity; /* NULL: none */
	struct fathom_str text;
	struct fathom_str build_id; /* of a module */
};

struct encoder {
	const struct fathom_answers *answers;
	enum fathom_column column;
	struct fathom_key_map by_identity;
	struct fathom_key_map by_hash;
	uint32_t *first; /* the answer that brought each value */
	uint32_t n;
};

static struct column_value text_value(const char *text, uint32_t size)
{
	return (struct column_value){ .identity = text, .text = { text, size } };
}

static struct column_value module_value(const struct fathom_module_info *m)
{
	if (!m)
		return (struct column_value){ .identity = NULL };
	return (struct column_value){ .identity = m,
				      .text = { m->path, (uint32_t)strlen(m->path) },
				      .build_id = { (const char *)m->build_id, m->build_id_size } };
}

static struct column_value value_at(const struct encoder *e, uint32_t i)
{
	const struct fathom_answer *a = &e->answers->answers[i];
	const struct fathom_frame *f = a->frame;

	switch (e->column) {
	case FATHOM_COLUMN_LINKAGE_NAME:
		return text_value(a->linkage_name, a->linkage_size);
	case FATHOM_COLUMN_MODULE:
		return module_value(a->module);
	case FATHOM_COLUMN_FILE:
		return f ? text_value(f->file, f->file_size) : text_value(NULL, 0);
	case FATHOM_COLUMN_FUNCTION:
		return f ? text_value(f->function, f->function_size)
			 : text_value(a->symbol, a->symbol_size);
	case FATHOM_COLUMN_SYMBOL:
	default:
		return text_value(a->symbol, a->symbol_size);
	}
}

static bool same_value(const struct column_value *a, const struct column_value *b)
{
	return str_equal(a->text, b->text) && str_equal(a->build_id, b->build_id);
}

/*
 * Returns the code of @v, which answer @i has, by its bytes; FATHOM_NO_CODE without memory. A hash
 * that another value has leads to another hash, which depends on the bytes again: as many tries as
 * there are values at most.
 */
static uint32_t code_by_bytes(struct encoder *e, const struct column_value *v, uint32_t i)
{
	for (uint64_t hash = 1;;) {
		struct column_value other;
		uint32_t *code;

		hash = fathom_hash_bytes(hash ^ v->text.size, v->text.data, v->text.size);
		hash = fathom_hash_bytes(hash, v->build_id.data, v->build_id.size);
		code = fathom_key_map_at(&e->by_hash, hash);
		if (!code)
			return FATHOM_NO_CODE;
		if (*code == FATHOM_KEY_NEW) {
			e->first[e->n] = i;
			return *code = e->n++;
		}
		other = value_at(e, e->first[*code]);
		if (same_value(v, &other))
			return *code;
	}
}

static fathom_err encode(struct encoder *e, uint32_t *codes)
{
	const void *last = NULL;
	uint32_t last_code = FATHOM_NO_CODE;

	for (uint32_t i = 0; i < e->answers->n; i++) {
		const struct column_value v = value_at(e, i);
		uint32_t *code;

		if (v.identity == last || !v.identity) {
			codes[i] = v.identity ? last_code : FATHOM_NO_CODE;
			continue;
		}
		code = fathom_key_map_at(&e->by_identity, (uintptr_t)v.identity);
		if (code && *code == FATHOM_KEY_NEW)
			*code = code_by_bytes(e, &v, i);
		if (!code || *code == FATHOM_NO_CODE)
			return FATHOM_E_MEMORY;
		last = v.identity;
		last_code = codes[i] = *code;
	}
	return FATHOM_OK;
}

fathom_err fathom_answers_encode(const struct fathom_answers *answers, enum fathom_column column,
				 uint32_t *ret_codes, uint32_t *ret_first, size_t *ret_n,
				 struct fathom_errinfo *reterr)
{
	struct encoder e = { .answers = answers, .column = column, .first = ret_first };
	fathom_err err;

	if ((unsigned)column > FATHOM_COLUMN_FILE)
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0, "no such column of answers");
	err = encode(&e, ret_codes);
	fathom_key_map_deinit(&e.by_identity);
	fathom_key_map_deinit(&e.by_hash);
	if (err)
		return fathom_fail_memory(reterr);
	*ret_n = e.n;
	return FATHOM_OK;
}

void fathom_answers_lines(const struct fathom_answers *answers, uint32_t *ret_lines,
			  uint32_t *ret_columns)
{
	for (size_t i = 0; i < answers->n; i++) {
		const struct fathom_frame *f = answers->answers[i].frame;

		if (ret_lines)
			ret_lines[i] = f ? f->line : 0;
		if (ret_columns)
			ret_columns[i] = f ? f->column : 0;
	}
}
