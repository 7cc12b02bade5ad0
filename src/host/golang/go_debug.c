/* SPDX-License-Identifier: MIT */
/*
 * The debug information of a Go program (DWARF 4), made of its table: units of some functions that
 * follow each other, so that one address reads little.
 */
#include "host/base/key_map.h"
#include "host/base/progress.h"
#include "host/golang/go_function.h"
#include "host/golang/go_made_file.h"
#include "host/golang/golang.h"
#include "safe/dwarf/dwarf.h"
#include "safe/dwarf/line_write.h"

/* Functions of a unit. */
#define UNIT_FUNCTIONS 256

/* Functions between two questions: some milliseconds. */
#define FUNCTIONS_PER_QUESTION 1024

/* Runs that are read at most, by far more than any program has. */
#define MOST_RUNS (UINT64_C(1) << 26)

enum { UNIT = 1, FUNCTION, INLINED, CALL, CALL_OF_RANGES };

/* The end of a list of attributes. */
#define END 0, 0

static const uint8_t abbrevs[] = {
	UNIT,
	DW_TAG_compile_unit,
	1,
	DW_AT_language,
	DW_FORM_data1,
	DW_AT_stmt_list,
	DW_FORM_sec_offset,
	DW_AT_low_pc,
	DW_FORM_addr,
	DW_AT_high_pc,
	DW_FORM_data4,
	END,
	FUNCTION,
	DW_TAG_subprogram,
	1,
	DW_AT_name,
	DW_FORM_string,
	DW_AT_low_pc,
	DW_FORM_addr,
	DW_AT_high_pc,
	DW_FORM_data4,
	DW_AT_decl_file,
	DW_FORM_udata,
	DW_AT_decl_line,
	DW_FORM_udata,
	END,
	INLINED,
	DW_TAG_subprogram,
	0,
	DW_AT_name,
	DW_FORM_string,
	DW_AT_inline,
	DW_FORM_data1,
	END,
	CALL,
	DW_TAG_inlined_subroutine,
	1,
	DW_AT_abstract_origin,
	DW_FORM_ref4,
	DW_AT_low_pc,
	DW_FORM_addr,
	DW_AT_high_pc,
	DW_FORM_data4,
	DW_AT_call_file,
	DW_FORM_udata,
	DW_AT_call_line,
	DW_FORM_udata,
	END,
	CALL_OF_RANGES,
	DW_TAG_inlined_subroutine,
	1,
	DW_AT_abstract_origin,
	DW_FORM_ref4,
	DW_AT_ranges,
	DW_FORM_sec_offset,
	DW_AT_call_file,
	DW_FORM_udata,
	DW_AT_call_line,
	DW_FORM_udata,
	END,
	0,
};

enum { INFO, ABBREV, LINE, RANGES, ARANGES, N_PARTS };

struct making {
	const struct fathom_pclntab *table;
	struct fathom_go_part parts[N_PARTS];
	struct fathom_go_decoded decoded;
	struct fathom_pace pace;
	/* Of the unit at hand. */
	size_t unit; /* offset in INFO */
	uint64_t low;
	uint64_t high;
	struct fathom_key_map files;   /* numbers in the line table, by number in the table */
	struct fathom_key_map origins; /* offsets from the unit, by offset of the name */
	uint32_t n_files;
	struct fathom_line_writer lines;
};

static void put_address(const struct making *m, struct fathom_out *o, uint64_t address)
{
	if (m->table->pointer_size == 8)
		fathom_out_u64(o, address);
	else
		fathom_out_u32(o, (uint32_t)address);
}

static void put_name(struct fathom_out *o, struct fathom_str name)
{
	fathom_out_bytes(o, name.data, name.size);
	fathom_out_u8(o, 0);
}

/* Returns the number of a file in the line table; 0: it has none. */
static uint32_t file_number(const struct making *m, const struct fathom_go_function *f,
			    int32_t number)
{
	const uint32_t found = fathom_key_map_find(&m->files, (uint64_t)f->cu + (uint32_t)number);

	return found == FATHOM_KEY_NEW ? 0 : found;
}

/* Writes the files that function @f has positions in, if they are new to the unit. */
static fathom_err put_files(struct making *m, const struct fathom_go_function *f)
{
	struct fathom_go_runs r = fathom_go_runs_init(m->table, f, f->file);

	while (m->decoded.runs_left && fathom_go_runs_next(&r)) {
		uint32_t *number =
			fathom_key_map_at(&m->files, (uint64_t)f->cu + (uint32_t)r.value);
		struct fathom_str name;

		m->decoded.runs_left--;
		if (!number)
			return FATHOM_E_MEMORY;
		if (*number != FATHOM_KEY_NEW)
			continue;
		name = fathom_pclntab_file(m->table, f, r.value);
		*number = name.size ? ++m->n_files : 0;
		if (!name.size)
			continue;
		FATHOM_TRY(fathom_go_part_room(&m->parts[LINE], (size_t)name.size + 16));
		fathom_line_file(&m->lines, name.data, name.size);
	}
	return FATHOM_OK;
}

/* Writes the rows of the function at hand. */
static fathom_err put_rows(struct making *m)
{
	const struct fathom_go_positions *p = &m->decoded.positions;
	uint64_t end = 0;

	FATHOM_TRY(fathom_go_part_room(&m->parts[LINE],
				       p->n * (FATHOM_LINE_ROW_SIZE + FATHOM_LINE_SEQUENCE_SIZE)));
	for (size_t i = 0; i < p->n; i++) {
		const struct fathom_go_position *at = &p->items[i];
		const uint32_t file = file_number(m, &m->decoded.function, at->file);

		if (!file || at->line <= 0)
			continue;
		if (end && end != at->low)
			fathom_line_end_sequence(&m->lines, end);
		if (end != at->low)
			fathom_line_begin_sequence(&m->lines, at->low);
		fathom_line_row(&m->lines, at->low, file, (uint32_t)at->line, 0);
		end = at->high;
	}
	if (end)
		fathom_line_end_sequence(&m->lines, end);
	return FATHOM_OK;
}

/* Writes the functions whose calls were inlined, if they are new to the unit. */
static fathom_err put_origins(struct making *m)
{
	struct fathom_out *o = &m->parts[INFO].out;

	for (size_t i = 0; i < m->decoded.nodes.n; i++) {
		const uint32_t off = m->decoded.nodes.items[i].call.name_off;
		const struct fathom_str name = fathom_pclntab_name(m->table, off);
		uint32_t *origin = fathom_key_map_at(&m->origins, off);

		if (!origin)
			return FATHOM_E_MEMORY;
		if (*origin != FATHOM_KEY_NEW)
			continue;
		FATHOM_TRY(fathom_go_part_room(&m->parts[INFO], (size_t)name.size + 8));
		*origin = (uint32_t)(o->n - m->unit);
		fathom_out_u8(o, INLINED);
		put_name(o, name);
		fathom_out_u8(o, DW_INL_inlined);
	}
	return FATHOM_OK;
}

/* Bytes of an inlined call, and of the ends of all that it may lie in, at most. */
#define CALL_SIZE 128

static fathom_err put_call(struct making *m, const struct fathom_go_node *n)
{
	const struct fathom_range *r = m->decoded.ranges.items + n->first_range;
	const bool is_one = n->n_ranges == 1;
	struct fathom_out *o = &m->parts[INFO].out;
	struct fathom_out *ranges = &m->parts[RANGES].out;

	FATHOM_TRY(fathom_go_part_room(&m->parts[INFO], CALL_SIZE));
	FATHOM_TRY(fathom_go_part_room(&m->parts[RANGES], 16 * ((size_t)n->n_ranges + 1)));
	fathom_out_u8(o, is_one ? CALL : CALL_OF_RANGES);
	fathom_out_u32(o, fathom_key_map_find(&m->origins, n->call.name_off));
	if (is_one) {
		put_address(m, o, r->low);
		fathom_out_u32(o, (uint32_t)(r->high - r->low));
	} else {
		fathom_out_u32(o, (uint32_t)ranges->n);
		/* Addresses are distances from the unit's first. */
		for (uint32_t i = 0; i < n->n_ranges; i++) {
			put_address(m, ranges, r[i].low - m->low);
			put_address(m, ranges, r[i].high - m->low);
		}
		put_address(m, ranges, 0);
		put_address(m, ranges, 0);
	}
	fathom_out_uleb(o, file_number(m, &m->decoded.function, n->file));
	fathom_out_uleb(o, n->line > 0 ? (uint32_t)n->line : 0);
	return FATHOM_OK;
}

/* Writes the calls of the function at hand, each within its caller. */
static fathom_err put_calls(struct making *m)
{
	const struct fathom_go_node *nodes = m->decoded.nodes.items;
	struct fathom_out *o = &m->parts[INFO].out;
	uint32_t at = m->decoded.first_node;

	while (at != FATHOM_NONE) {
		FATHOM_TRY(put_call(m, &nodes[at]));
		if (nodes[at].first_child != FATHOM_NONE) {
			at = nodes[at].first_child;
			continue;
		}
		fathom_out_u8(o, 0);
		while (nodes[at].next_sibling == FATHOM_NONE && nodes[at].parent != FATHOM_NONE) {
			fathom_out_u8(o, 0);
			at = nodes[at].parent;
		}
		at = nodes[at].next_sibling;
	}
	return FATHOM_OK;
}

static fathom_err put_function(struct making *m)
{
	const struct fathom_go_decoded *d = &m->decoded;
	const struct fathom_go_function *f = &d->function;
	struct fathom_out *o = &m->parts[INFO].out;
	/* Its first position is its own, unless a call begins there. */
	const bool is_own = d->positions.n && d->positions.items[0].call == FATHOM_NONE;

	FATHOM_TRY(put_origins(m));
	/* Ends of calls are at most as many as calls. */
	FATHOM_TRY(fathom_go_part_room(&m->parts[INFO], (size_t)f->name.size + CALL_SIZE));
	fathom_out_u8(o, FUNCTION);
	put_name(o, f->name);
	put_address(m, o, f->entry);
	fathom_out_u32(o, (uint32_t)(d->end - f->entry));
	fathom_out_uleb(o, is_own && f->first_line ? file_number(m, f, d->positions.items[0].file)
						   : 0);
	fathom_out_uleb(o, is_own ? f->first_line : 0);
	FATHOM_TRY(put_calls(m));
	FATHOM_TRY(fathom_go_part_room(&m->parts[INFO], 1));
	fathom_out_u8(o, 0);
	return put_rows(m);
}

/* Writes where the unit at hand is. */
static fathom_err put_aranges(struct making *m)
{
	struct fathom_out *o = &m->parts[ARANGES].out;
	const uint8_t size = m->table->pointer_size;
	const size_t from = o->n;

	FATHOM_TRY(fathom_go_part_room(&m->parts[ARANGES], 64));
	fathom_out_u32(o, 0);
	fathom_out_u16(o, 2);
	fathom_out_u32(o, (uint32_t)m->unit);
	fathom_out_u8(o, size);
	fathom_out_u8(o, 0);
	/* The first pair is aligned to the size of one. */
	while ((o->n - from) % (2 * (size_t)size))
		fathom_out_u8(o, 0);
	put_address(m, o, m->low);
	put_address(m, o, m->high - m->low);
	put_address(m, o, 0);
	put_address(m, o, 0);
	fathom_out_patch(o, from, (uint32_t)(o->n - from - 4));
	return FATHOM_OK;
}

/* Writes the head of the unit of functions [@first, @end), and its files. */
static fathom_err begin_unit(struct making *m, uint32_t first, uint32_t end)
{
	struct fathom_out *o = &m->parts[INFO].out;
	struct fathom_go_function f;

	fathom_key_map_deinit(&m->files);
	fathom_key_map_deinit(&m->origins);
	m->files = m->origins = (struct fathom_key_map){ 0 };
	m->n_files = 0;
	m->unit = o->n;
	m->low = UINT64_MAX;
	m->high = 0;
	FATHOM_TRY(fathom_go_part_room(&m->parts[LINE], 64));
	FATHOM_TRY(fathom_go_part_room(&m->parts[INFO], 64));
	fathom_out_u32(o, 0);
	fathom_out_u16(o, 4);
	fathom_out_u32(o, 0); /* of .debug_abbrev */
	fathom_out_u8(o, m->table->pointer_size);
	fathom_out_u8(o, UNIT);
	fathom_out_u8(o, DW_LANG_Go);
	fathom_out_u32(o, (uint32_t)m->parts[LINE].out.n);
	fathom_line_begin(&m->lines, &m->parts[LINE].out, m->table->pointer_size);
	for (uint32_t i = first; i < end; i++) {
		if (!fathom_pclntab_function(m->table, i, &f))
			continue;
		m->low = f.entry < m->low ? f.entry : m->low;
		m->high = f.limit > m->high ? f.limit : m->high;
		FATHOM_TRY(put_files(m, &f));
	}
	FATHOM_TRY(fathom_go_part_room(&m->parts[LINE], 64));
	fathom_line_end_files(&m->lines);
	m->low = m->low < m->high ? m->low : m->high;
	put_address(m, o, m->low);
	fathom_out_u32(o, (uint32_t)(m->high - m->low));
	return FATHOM_OK;
}

/* Writes a unit of functions [@first, @end). */
static fathom_err put_unit(struct making *m, uint32_t first, uint32_t end)
{
	struct fathom_out *o = &m->parts[INFO].out;

	FATHOM_TRY(begin_unit(m, first, end));
	for (uint32_t i = first; i < end; i++) {
		const fathom_err err = fathom_go_decode(&m->decoded, m->table, i);

		if (!fathom_keeps_pace(&m->pace))
			return FATHOM_E_CANCELLED;
		if (err < 0)
			return err;
		if (!err)
			FATHOM_TRY(put_function(m));
		/* Offsets have 32 bits. */
		if (o->n > INT32_MAX || m->parts[LINE].out.n > INT32_MAX)
			return FATHOM_E_LIMIT;
	}
	FATHOM_TRY(fathom_go_part_room(&m->parts[INFO], 1));
	fathom_out_u8(o, 0);
	fathom_out_patch(o, m->unit, (uint32_t)(o->n - m->unit - 4));
	fathom_line_end(&m->lines);
	return put_aranges(m);
}

static fathom_err put_units(struct making *m)
{
	FATHOM_TRY(fathom_go_part_room(&m->parts[ABBREV], sizeof abbrevs));
	fathom_out_bytes(&m->parts[ABBREV].out, abbrevs, sizeof abbrevs);
	for (uint32_t first = 0; first < m->table->n; first += UNIT_FUNCTIONS) {
		const uint32_t left = m->table->n - first;

		FATHOM_TRY(put_unit(m, first,
				    first + (left < UNIT_FUNCTIONS ? left : UNIT_FUNCTIONS)));
	}
	return FATHOM_OK;
}

fathom_err fathom_go_debug(struct fathom *session, const struct fathom_object *main,
			   struct fathom_object **ret)
{
	static const char *const names[N_PARTS] = { ".debug_info", ".debug_abbrev", ".debug_line",
						    ".debug_ranges", ".debug_aranges" };
	struct fathom_pclntab t;
	struct making m = { .table = &t,
			    .decoded = { .runs_left = MOST_RUNS },
			    .pace = fathom_pace_init(session, FUNCTIONS_PER_QUESTION) };
	struct fathom_go_section sections[N_PARTS];
	fathom_err err;

	FATHOM_TRY(fathom_pclntab_open(&t, main));
	for (size_t i = 0; i < N_PARTS; i++) {
		m.parts[i].memory = &session->memory;
		sections[i] = (struct fathom_go_section){
			names[i], { .sh_type = SHT_PROGBITS, .sh_addralign = 1 }, &m.parts[i]
		};
	}
	err = put_units(&m);
	if (!err)
		err = fathom_go_file(&session->memory, main, sections, N_PARTS, ret);
	for (size_t i = 0; i < N_PARTS; i++)
		fathom_go_part_free(&m.parts[i]);
	fathom_go_decoded_deinit(&m.decoded);
	fathom_key_map_deinit(&m.files);
	fathom_key_map_deinit(&m.origins);
	fathom_pclntab_close(&t);
	return err;
}
