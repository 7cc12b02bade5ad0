/* SPDX-License-Identifier: MIT */
#include "cli/find_print.h"

#include <elf.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common.h"
#include "cli/json.h"
#include "cli/print.h"

void find_value_check(const char *type)
{
	struct fathom_errinfo info;
	char what[64];

	if (!fathom_value_check(type, &info))
		return;
	(void)snprintf(what, sizeof what, "--read: %.40s", type + info.offset);
	complain(*(type + info.offset) ? what : "--read", info.what,
		 "as in str, bytes:16, u32[4], ptr->str; see fathom-find(1)");
	exit(EXIT_USAGE);
}

/* Stores the value read at a match, or the reason for @err. */
static void take_value(struct find_value *v, const struct fathom_value *value, fathom_err err)
{
	if (err) {
		v->reason =
			err == FATHOM_E_OS ? FATHOM_REASON_NO_PERMISSION : FATHOM_REASON_UNMAPPED;
		return;
	}
	v->value = *value;
	v->reason = value->reason;
}

void find_values_read(struct find_value *values, struct fathom_target *target,
		      const struct fathom_matches *matches, size_t first, size_t n,
		      const char *type)
{
	uint64_t addresses[FIND_VALUES];
	struct fathom_value read[FIND_VALUES];
	struct fathom_target_info target_info;
	struct fathom_errinfo info;
	fathom_err err = FATHOM_OK;
	size_t n_addresses = 0;
	size_t next = 0;

	for (size_t i = 0; i < n; i++) {
		const struct fathom_match *m = fathom_matches_get(matches, first + i);

		if (m->flags & FATHOM_MATCH_ADDRESS)
			addresses[n_addresses++] = m->address;
	}
	if (n_addresses)
		err = fathom_values_read(target, type, addresses, n_addresses, read, &info);
	if (err) {
		/*
		 * A note says why the kernel's memory cannot be read: the cause is the same for
		 * all.
		 */
		fathom_target_get_info(target, &target_info);
		if (target_info.kind != FATHOM_TARGET_KERNEL)
			complain_error(&info);
	}
	for (size_t i = 0; i < n; i++) {
		const struct fathom_match *m = fathom_matches_get(matches, first + i);

		values[i] = (struct find_value){ .is_asked = true };
		if (m->flags & FATHOM_MATCH_ADDRESS)
			take_value(&values[i], &read[next++], err);
		else
			values[i].reason = m->reason ? m->reason : FATHOM_REASON_UNMAPPED;
	}
}

void find_value_deinit(struct find_value *v)
{
	fathom_value_free(&v->value);
}

static const char *type_name(const struct fathom_match *m)
{
	if (m->kind == FATHOM_MATCH_LINE)
		return "line";
	if (m->kind == FATHOM_MATCH_INLINED)
		return "inlined";
	switch (m->type) {
	case STT_OBJECT:
		return "object";
	case STT_FUNC:
		return "func";
	case STT_TLS:
		return "tls";
	case STT_GNU_IFUNC:
		return "ifunc";
	default:
		return "notype";
	}
}

static const char *binding_name(const struct fathom_match *m)
{
	if (m->kind != FATHOM_MATCH_SYMBOL)
		return NULL;
	switch (m->binding) {
	case STB_LOCAL:
		return "local";
	case STB_GLOBAL:
		return "global";
	case STB_WEAK:
		return "weak";
	case STB_GNU_UNIQUE:
		return "unique";
	default:
		return NULL;
	}
}

static void print_signed(struct out *o, int64_t value)
{
	if (value < 0)
		out_char(o, '-');
	out_dec(o, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

/* Prints a double; JSON cannot express NaN and infinities as numbers. */
static void print_double(struct out *o, double value)
{
	char text[40];

	if (!isfinite(value)) {
		out_str(o, isnan(value) ? "\"nan\"" : value < 0 ? "\"-inf\"" : "\"inf\"");
		return;
	}
	(void)snprintf(text, sizeof text, "%.17g", value);
	out_str(o, text);
}

static void print_item(struct out *o, const struct fathom_value *v, uint32_t i, bool json)
{
	const uint64_t *items = v->items;
	double d;

	switch (v->kind) {
	case FATHOM_VALUE_SIGNED:
		print_signed(o, (int64_t)items[i]);
		break;
	case FATHOM_VALUE_FLOAT:
		memcpy(&d, &items[i], sizeof d);
		print_double(o, d);
		break;
	case FATHOM_VALUE_POINTER:
		if (json)
			out_char(o, '"');
		out_hex(o, items[i]);
		if (json)
			out_char(o, '"');
		break;
	default:
		out_dec(o, items[i]);
	}
}

static void print_bytes(struct out *o, const struct fathom_value *v, bool json)
{
	if (json)
		out_char(o, '"');
	out_hex_bytes(o, v->items, v->count, json ? "" : " ");
	if (json)
		out_char(o, '"');
}

/* Prints a value as JSON, which suits people, too. */
static void print_value(struct out *o, const struct fathom_value *v, bool json)
{
	if (v->kind == FATHOM_VALUE_TEXT) {
		out_json(o, v->items, v->count);
		if (v->is_cut && !json)
			out_str(o, "...");
		return;
	}
	if (v->kind == FATHOM_VALUE_BYTES) {
		print_bytes(o, v, json);
		return;
	}
	if (v->count > 1)
		out_char(o, '[');
	for (uint32_t i = 0; i < v->count; i++) {
		if (i)
			out_str(o, json ? "," : ", ");
		print_item(o, v, i, json);
	}
	if (v->count > 1)
		out_char(o, ']');
}

/* Pads to column @column, with at least one blank. */
static void pad_to(struct out *o, size_t *at, size_t column)
{
	do {
		out_char(o, ' ');
		++*at;
	} while (*at < column);
}

static void print_padded(struct out *o, size_t *at, const char *s)
{
	out_text(o, s, strlen(s));
	*at += strlen(s);
}

/* Prints a number right-aligned before column @column. */
static void print_right(struct out *o, size_t *at, uint64_t number, size_t column)
{
	char text[FATHOM_NUMBER_SIZE];
	const size_t n = fathom_format_dec(text, number);

	if (*at + n < column)
		pad_to(o, at, column - n);
	out_bytes(o, text, n);
	*at += n;
}

/* Start columns of an answer; the name comes last. */
enum { COLUMN_TYPE = 21, COLUMN_SIZE_END = 36, COLUMN_MODULE = 37, COLUMN_NAME = 57 };

static void print_address(struct out *o, size_t *at, const struct fathom_match *m)
{
	char text[FATHOM_NUMBER_SIZE];
	size_t n;

	/* The star marks the symbol that the dynamic linker binds. */
	out_str(o, m->rank ? "  " : "* ");
	*at = 2;
	if (!(m->flags & FATHOM_MATCH_ADDRESS)) {
		print_padded(o, at, "??");
		return;
	}
	n = fathom_format_hex(text, m->address);
	out_bytes(o, text, n);
	*at += n;
}

/* Returns the frame with @m's place in the source: for an inlined copy, the frame of the call. */
static const struct fathom_frame *place_of(const struct fathom_match *m)
{
	static const struct fathom_frame nowhere;

	if (!m->frame)
		return &nowhere;
	return m->kind == FATHOM_MATCH_INLINED ? m->frame->outer : m->frame;
}

/*
 * Returns the name of the function that @m is inlined into; NULL if it is not a copy or that is not
 * known.
 */
static const char *caller_of(const struct fathom_match *m)
{
	return m->kind == FATHOM_MATCH_INLINED ? place_of(m)->function : NULL;
}

static void print_place(struct out *o, const struct fathom_match *m)
{
	const struct fathom_frame *place = place_of(m);
	const char *caller = caller_of(m);

	if (caller) {
		out_str(o, " inlined into ");
		print_symbol(o, caller, strlen(caller));
	}
	if (!place->file)
		return;
	out_char(o, ' ');
	out_begin_part(o, OUT_FILE);
	out_text(o, place->file, place->file_size);
	out_char(o, ':');
	out_dec(o, place->line);
	out_end_part(o);
}

static void print_extras(struct out *o, const struct fathom_match *m)
{
	if (m->version) {
		out_str(o, m->flags & FATHOM_MATCH_DEFAULT_VERSION ? "@@" : "@");
		out_text(o, m->version, strlen(m->version));
	}
	if (m->tid) {
		out_str(o, " thread ");
		out_dec(o, (uint64_t)m->tid);
	}
	if (m->type == STT_TLS && !(m->flags & FATHOM_MATCH_ADDRESS)) {
		out_str(o, " offset ");
		out_hex(o, m->module_address);
	}
	if (m->flags & FATHOM_MATCH_RESOLVED || (m->resolver && m->reason)) {
		out_str(o, " resolver ");
		out_hex(o, m->resolver);
	}
}

void find_print_text(struct out *o, const char *query, const struct fathom_match *m,
		     const struct find_value *v)
{
	size_t at;

	if (m->rank == FATHOM_NO_RANK) {
		out_text(o, query, strlen(query));
		out_str(o, " ??");
		print_reason(o, m->reason);
		out_char(o, '\n');
		return;
	}
	print_address(o, &at, m);
	pad_to(o, &at, COLUMN_TYPE);
	print_padded(o, &at, type_name(m));
	print_right(o, &at, m->size, COLUMN_SIZE_END);
	pad_to(o, &at, COLUMN_MODULE);
	print_padded(o, &at, last_part(m->module));
	pad_to(o, &at, COLUMN_NAME);
	if (m->name)
		print_symbol(o, m->name, strlen(m->name));
	else
		out_str(o, "??");
	print_extras(o, m);
	print_place(o, m);
	if (m->reason)
		print_reason(o, m->reason);
	if (v->is_asked) {
		out_str(o, "\n    = ");
		if (v->reason)
			out_str(o, "??");
		else
			print_value(o, &v->value, false);
		if (v->reason)
			print_reason(o, v->reason);
	}
	out_char(o, '\n');
}

static void json_place(struct out *o, const struct fathom_match *m)
{
	json_string(o, "file", place_of(m)->file);
	out_char(o, ',');
	json_count(o, "line", place_of(m)->line);
	out_char(o, ',');
	json_string(o, "inlined_into", caller_of(m));
	out_char(o, ',');
	json_string(o, "source", fathom_source_name((enum fathom_source)m->source));
	out_char(o, ',');
}

/* Writes the version and whether it is the default version. */
static void json_version(struct out *o, const struct fathom_match *m)
{
	json_key(o, "version");
	if (!m->version) {
		out_str(o, "null,");
		return;
	}
	out_json(o, m->version, strlen(m->version));
	out_char(o, ',');
}

static void json_symbol(struct out *o, const struct fathom_match *m)
{
	const bool found = m->rank != FATHOM_NO_RANK;

	json_string(o, "name", m->name);
	out_char(o, ',');
	json_string(o, "linkage_name", m->linkage_name);
	out_char(o, ',');
	json_address_or_null(o, "address", m->flags & FATHOM_MATCH_ADDRESS, m->address);
	out_char(o, ',');
	json_string(o, "module", m->module);
	out_char(o, ',');
	json_address_or_null(o, "module_address", found && m->module_address != FATHOM_NO_ADDRESS,
			     m->module_address);
	out_char(o, ',');
	json_count(o, "size", m->size);
	out_char(o, ',');
	json_string(o, "type", found ? type_name(m) : NULL);
	out_char(o, ',');
	json_string(o, "binding", found ? binding_name(m) : NULL);
	out_char(o, ',');
	json_version(o, m);
	json_key(o, "default_version");
	out_str(o, !m->version                               ? "null,"
		   : m->flags & FATHOM_MATCH_DEFAULT_VERSION ? "true,"
							     : "false,");
	json_string(o, "table", fathom_table_name((enum fathom_table)m->table));
	out_char(o, ',');
	json_key(o, "rank");
	if (found)
		out_dec(o, m->rank);
	else
		out_str(o, "null");
	out_char(o, ',');
}

void find_print_json(struct out *o, const char *query, const struct fathom_match *m,
		     const struct find_value *v)
{
	out_char(o, '{');
	json_key(o, "query");
	out_json(o, query, strlen(query));
	out_char(o, ',');
	json_symbol(o, m);
	json_key(o, "value");
	if (v->is_asked && !v->reason)
		print_value(o, &v->value, true);
	else
		out_str(o, "null");
	out_char(o, ',');
	json_place(o, m);
	json_address_or_null(o, "resolver", m->resolver != 0, m->resolver);
	out_char(o, ',');
	json_count(o, "tid", (uint64_t)m->tid);
	out_char(o, ',');
	json_string(o, "reason",
		    fathom_reason_name((enum fathom_reason)(m->reason ? m->reason : v->reason)));
	out_str(o, "}\n");
}
