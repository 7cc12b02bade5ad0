/* SPDX-License-Identifier: MIT */
#include "safe/dwarf/line.h"

#include "safe/base/limits.h"

#define SECTION ".debug_line"

static fathom_err bad_header(uint64_t off, struct fathom_errinfo *reterr, const char *what)
{
	return fathom_fail(reterr, FATHOM_E_CORRUPT, SECTION, off, what);
}

fathom_err fathom_line_program_read(const struct fathom_dwarf *dwarf, uint64_t off,
				    uint8_t address_size, struct fathom_line_program *ret,
				    struct fathom_errinfo *reterr)
{
	const struct fathom_bytes section = dwarf->section[FATHOM_DEBUG_LINE];
	struct fathom_cursor c = cur_init(bytes_from(section, off), dwarf->swap);
	struct fathom_line_program p = { .dwarf = dwarf, .section = section.data };
	const uint64_t length = cur_initial_length(&c, &p.encoding.offset_size);
	uint64_t header_length;
	uint16_t version;

	c = cur_sub(&c, length);
	version = cur_u16(&c);
	if (!cur_ok(&c))
		return bad_header(off, reterr,
				  "the line table reaches past the end of the section");
	if (version < 2 || version > 5)
		return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, SECTION, off,
				   "line table of an unknown version");
	p.encoding.version = (uint8_t)version;
	p.encoding.address_size = address_size;
	if (version >= 5) {
		p.encoding.address_size = cur_u8(&c);
		if (cur_u8(&c)) /* segment_selector_size */
			cur_fail(&c);
	}
	header_length = cur_uint(&c, p.encoding.offset_size);
	p.tables = cur_sub(&c, header_length);
	p.opcodes = c;
	p.min_instruction_length = cur_u8(&p.tables);
	p.max_operations = version >= 4 ? cur_u8(&p.tables) : 1;
	p.default_is_stmt = cur_u8(&p.tables) != 0;
	p.line_base = (int8_t)cur_u8(&p.tables);
	p.line_range = cur_u8(&p.tables);
	p.opcode_base = cur_u8(&p.tables);
	p.operand_counts = cur_take(&p.tables, p.opcode_base ? p.opcode_base - 1u : 0);
	if (!cur_ok(&p.tables) || !cur_ok(&p.opcodes))
		return bad_header(off, reterr, "the line table ends inside its header");
	if (!p.line_range || !p.opcode_base)
		return bad_header(off, reterr, "line table with an impossible range of lines");
	if (!p.max_operations)
		p.max_operations = 1;
	*ret = p;
	return FATHOM_OK;
}

enum phase { PHASE_DIRECTORY_FORMAT, PHASE_DIRECTORIES, PHASE_FILE_FORMAT, PHASE_FILES, PHASE_END };

void fathom_line_tables_init(struct fathom_line_tables *t, const struct fathom_line_program *p)
{
	t->program = p;
	t->c = p->tables;
	t->left = 0;
	t->n_formats = 0;
	t->phase = p->encoding.version >= 5 ? PHASE_DIRECTORY_FORMAT : PHASE_DIRECTORIES;
}

/* Reads a name from @c; false if it is empty. */
static bool read_inline_name(struct fathom_cursor *c, const struct fathom_line_program *p,
			     struct fathom_attr *ret)
{
	const uint8_t *start = c->p;

	cur_skip_str(c);
	*ret = (struct fathom_attr){ (uint64_t)(start - p->section), DW_FORM_string };
	return c->p - start > 1;
}

/* Reads an entry of versions 2 to 4: a string, empty at the end; in files, then three numbers. */
static fathom_err next_old_entry(struct fathom_line_tables *t, struct fathom_line_entry *ret)
{
	while (t->phase != PHASE_END) {
		const bool named = read_inline_name(&t->c, t->program, &ret->name);

		ret->is_file = t->phase == PHASE_FILES;
		if (!cur_ok(&t->c))
			return FATHOM_E_CORRUPT;
		if (!named) {
			t->phase = ret->is_file ? PHASE_END : PHASE_FILES;
			continue;
		}
		if (ret->is_file) {
			ret->directory = cur_uleb(&t->c);
			cur_skip_leb(&t->c); /* time */
			cur_skip_leb(&t->c); /* length */
		}
		return cur_ok(&t->c) ? FATHOM_OK : FATHOM_E_CORRUPT;
	}
	return FATHOM_END;
}

/* Reads the formats of the entries that follow, and their number. */
static fathom_err read_formats(struct fathom_line_tables *t)
{
	t->n_formats = cur_u8(&t->c);
	if (t->n_formats > FATHOM_MAX_LINE_FORMATS)
		return FATHOM_E_LIMIT;
	for (uint32_t i = 0; i < t->n_formats; i++) {
		const uint64_t type = cur_uleb(&t->c);
		const uint64_t form = cur_uleb(&t->c);

		t->types[i] = type <= UINT16_MAX ? (uint16_t)type : 0;
		t->forms[i] = form <= UINT16_MAX ? (uint16_t)form : 0;
	}
	t->left = cur_uleb(&t->c);
	/* Entries without content take no bytes: nothing else bounds their number. */
	if (t->left > FATHOM_MAX_LINE_FILES)
		return FATHOM_E_LIMIT;
	return cur_ok(&t->c) ? FATHOM_OK : FATHOM_E_CORRUPT;
}

/* Returns the string of attribute @a of @p's tables; @unit resolves indexed strings. */
static struct fathom_str table_string(const struct fathom_line_program *p,
				      const struct fathom_unit *unit, const struct fathom_attr *a)
{
	struct fathom_unit view = *unit;

	if (a->form == DW_FORM_string)
		return fathom_bytes_str(p->dwarf->section[FATHOM_DEBUG_LINE], a->value);
	view.dwarf = p->dwarf;
	view.header.encoding.offset_size = p->encoding.offset_size;
	return fathom_unit_string(&view, a);
}

struct fathom_str fathom_line_entry_name(const struct fathom_line_program *p,
					 const struct fathom_unit *unit,
					 const struct fathom_line_entry *entry)
{
	return table_string(p, unit, &entry->name);
}

struct fathom_str fathom_line_tables_source(const struct fathom_line_tables *t,
					    const struct fathom_unit *unit)
{
	return table_string(t->program, unit, &t->source);
}

const uint8_t *fathom_line_tables_md5(const struct fathom_line_tables *t)
{
	static const uint8_t unset[16];
	const uint8_t *md5 = t->program->section + t->md5.value;

	/* Assemblers write zeros for files without one. */
	return t->md5.form == DW_FORM_data16 && memcmp(md5, unset, sizeof unset) ? md5 : NULL;
}

static fathom_err next_new_entry(struct fathom_line_tables *t, struct fathom_line_entry *ret)
{
	const struct fathom_line_program *p = t->program;
	struct fathom_attr a;

	while (!t->left && t->phase != PHASE_END) {
		if (t->phase == PHASE_DIRECTORY_FORMAT || t->phase == PHASE_FILE_FORMAT)
			FATHOM_TRY(read_formats(t));
		t->phase++;
	}
	if (t->phase == PHASE_END)
		return FATHOM_END;
	t->left--;
	ret->is_file = t->phase == PHASE_FILES;
	for (uint32_t i = 0; i < t->n_formats; i++) {
		switch (t->types[i]) {
		case DW_LNCT_path:
			fathom_form_read(&t->c, t->forms[i], p->encoding, p->section, &ret->name);
			break;
		case DW_LNCT_directory_index:
			fathom_form_read(&t->c, t->forms[i], p->encoding, p->section, &a);
			ret->directory = a.value;
			break;
		case DW_LNCT_MD5:
			fathom_form_read(&t->c, t->forms[i], p->encoding, p->section, &t->md5);
			break;
		case DW_LNCT_LLVM_source:
			fathom_form_read(&t->c, t->forms[i], p->encoding, p->section, &t->source);
			break;
		default:
			fathom_form_skip(&t->c, t->forms[i], p->encoding);
		}
	}
	return cur_ok(&t->c) ? FATHOM_OK : FATHOM_E_CORRUPT;
}

fathom_err fathom_line_tables_next(struct fathom_line_tables *t, struct fathom_line_entry *ret,
				   struct fathom_errinfo *reterr)
{
	const uint8_t *at = t->c.p;
	fathom_err err;

	ret->name = (struct fathom_attr){ 0, 0 };
	ret->directory = 0;
	t->source = (struct fathom_attr){ 0, 0 };
	t->md5 = (struct fathom_attr){ 0, 0 };
	err = t->program->encoding.version >= 5 ? next_new_entry(t, ret) : next_old_entry(t, ret);
	if (err < 0) {
		t->phase = PHASE_END;
		t->left = 0;
		return fathom_fail(reterr, err, SECTION, (uint64_t)(at - t->program->section),
				   err == FATHOM_E_LIMIT ? "too many files in a line table"
							 : "damaged table of files");
	}
	return err;
}

static void build_specials(struct fathom_line_specials *s, const struct fathom_line_program *p)
{
	if (s->line_range == p->line_range && s->line_base == p->line_base &&
	    s->opcode_base == p->opcode_base)
		return;
	s->line_range = p->line_range;
	s->line_base = p->line_base;
	s->opcode_base = p->opcode_base;
	for (unsigned op = p->opcode_base; op < 256; op++) {
		const unsigned adjusted = op - p->opcode_base;

		s->advance[op] = (uint8_t)(adjusted / p->line_range);
		s->line[op] = (uint32_t)(p->line_base + (int)(adjusted % p->line_range));
	}
}

static void reset_registers(struct fathom_line_row *row, const struct fathom_line_program *p)
{
	*row = (struct fathom_line_row){ .file = 1, .line = 1, .is_stmt = p->default_is_stmt };
}

void fathom_line_reader_init(struct fathom_line_reader *r, const struct fathom_line_program *p)
{
	r->program = p;
	r->c = p->opcodes;
	r->dull = 0;
	build_specials(&r->specials, p);
	reset_registers(&r->row, p);
}

/* Advances by @operations. An instruction of a VLIW machine holds several of them. */
static inline void advance(struct fathom_line_row *row, const struct fathom_line_program *p,
			   uint64_t operations)
{
	if (p->max_operations == 1) {
		row->address += operations * p->min_instruction_length;
	} else {
		const uint64_t total = row->op_index + operations;

		row->address += total / p->max_operations * p->min_instruction_length;
		row->op_index = (uint8_t)(total % p->max_operations);
	}
}

/* The effect of an extended opcode. */
struct extended {
	uint64_t value;
	uint8_t opcode; /* 0 if it changes no register */
};

/*
 * Reads an extended opcode, which starts with its length. Those that define files or that vendors
 * add change no register.
 */
static struct extended read_extended(struct fathom_cursor *c)
{
	const uint64_t length = cur_uleb(c);
	struct fathom_cursor sub = cur_sub(c, length);
	struct extended e = { 0, length ? cur_u8(&sub) : 0 };

	switch (e.opcode) {
	case DW_LNE_set_address:
		e.value = cur_uint(&sub, (unsigned)(length - 1 < 9 ? length - 1 : 9));
		break;
	case DW_LNE_set_discriminator:
		e.value = cur_uleb(&sub);
		break;
	default:
		break;
	}
	if (!cur_ok(&sub))
		cur_fail(c);
	return e;
}

/* Skips the operands of a standard opcode that changes no register. */
static void skip_operands(struct fathom_cursor *c, const struct fathom_line_program *p, uint8_t op)
{
	for (uint8_t i = 0; i < p->operand_counts[op - 1]; i++)
		cur_skip_leb(c);
}

/*
 * One loop with its registers in local variables: the line program takes half the time of a large
 * batch. DWARF 5, 6.2.5 describes the opcodes.
 */
size_t fathom_line_reader_rows(struct fathom_line_reader *r, struct fathom_line_row *rows,
			       size_t cap)
{
	const struct fathom_line_program *p = r->program;
	const uint8_t opcode_base = p->opcode_base;
	struct fathom_line_row row = r->row;
	struct fathom_cursor c = r->c;
	size_t n = 0;

	while (n < cap && c.p < c.end) {
		const uint8_t op = *c.p++;
		struct extended e;

		if (op >= opcode_base) {
			advance(&row, p, r->specials.advance[op]);
			row.line += r->specials.line[op];
		} else {
			switch (op) {
			case DW_LNS_extended_op:
				e = read_extended(&c);
				if (e.opcode == DW_LNE_set_discriminator) {
					row.discriminator = (uint32_t)e.value;
				} else if (e.opcode == DW_LNE_set_address) {
					row.address = fathom_dwarf_address(p->dwarf, e.value);
					row.op_index = 0;
				} else if (e.opcode == DW_LNE_end_sequence && cur_ok(&c)) {
					row.end_sequence = true;
					rows[n++] = row;
					reset_registers(&row, p);
					r->dull = 0;
				}
				continue;
			case DW_LNS_copy:
				break;
			case DW_LNS_advance_pc:
				advance(&row, p, cur_uleb(&c));
				continue;
			case DW_LNS_advance_line:
				row.line += (uint32_t)cur_sleb(&c);
				continue;
			case DW_LNS_set_file:
				row.file = (uint32_t)cur_uleb(&c);
				continue;
			case DW_LNS_set_column:
				row.column = (uint32_t)cur_uleb(&c);
				continue;
			case DW_LNS_negate_stmt:
				row.is_stmt = !row.is_stmt;
				continue;
			case DW_LNS_const_add_pc:
				advance(&row, p, r->specials.advance[255]);
				continue;
			case DW_LNS_fixed_advance_pc:
				row.address += cur_u16(&c);
				row.op_index = 0;
				continue;
			case DW_LNS_set_basic_block:
			case DW_LNS_set_prologue_end:
			case DW_LNS_set_epilogue_begin:
				continue;
			default: /* DW_LNS_set_isa, and opcodes of later versions */
				skip_operands(&c, p, op);
				continue;
			}
		}
		/* Appends a row, or replaces the previous one if this one is still dull. */
		if (row.address <= r->dull && n && rows[n - 1].address <= row.address)
			n--;
		rows[n++] = row;
		row.discriminator = 0;
	}
	r->row = row;
	r->c = c;
	return n;
}

fathom_err fathom_line_reader_error(const struct fathom_line_reader *r,
				    struct fathom_errinfo *reterr)
{
	if (cur_ok(&r->c))
		return FATHOM_OK;
	return fathom_fail(reterr, FATHOM_E_CORRUPT, SECTION,
			   (uint64_t)(r->c.bad - r->program->section), "damaged line program");
}

bool fathom_line_next_defined(const struct fathom_line_program *p, struct fathom_cursor *c,
			      struct fathom_line_entry *ret)
{
	while (c->p < c->end) {
		const uint8_t op = cur_u8(c);
		struct fathom_cursor sub;

		if (op >= p->opcode_base)
			continue;
		if (op == DW_LNS_fixed_advance_pc) {
			cur_skip(c, 2);
		} else if (op != DW_LNS_extended_op) {
			for (uint8_t i = 0; i < p->operand_counts[op - 1]; i++)
				cur_skip_leb(c);
		} else {
			sub = cur_sub(c, cur_uleb(c));
			if (cur_u8(&sub) != DW_LNE_define_file)
				continue;
			(void)read_inline_name(&sub, p, &ret->name);
			ret->directory = cur_uleb(&sub);
			ret->is_file = true;
			return cur_ok(&sub);
		}
	}
	return false;
}
