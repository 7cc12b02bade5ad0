/* SPDX-License-Identifier: MIT */
#include "safe/dwarf/cfi.h"

#include "safe/base/sort.h"

static const char *section_name(const struct fathom_cfi *cfi)
{
	return cfi->is_eh ? ".eh_frame" : ".debug_frame";
}

static uint64_t truncate_address(const struct fathom_cfi *cfi, uint64_t address)
{
	return cfi->address_size == 8 ? address
				      : address & ((UINT64_C(1) << (8 * cfi->address_size)) - 1);
}

/* The offset of @c in the section of @cfi. */
static uint64_t offset_of(const struct fathom_cursor *c, const struct fathom_cfi *cfi)
{
	return (uint64_t)(c->p - cfi->section.data);
}

/* Reads an encoded pointer without adding its base. */
static uint64_t read_value(struct fathom_cursor *c, const struct fathom_cfi *cfi, uint8_t encoding)
{
	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_signed: /* differs only in bits that no address has */
		return cur_uint(c, cfi->address_size);
	case DW_EH_PE_uleb128:
		return cur_uleb(c);
	case DW_EH_PE_udata2:
		return cur_u16(c);
	case DW_EH_PE_udata4:
		return cur_u32(c);
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return cur_u64(c);
	case DW_EH_PE_sleb128:
		return (uint64_t)cur_sleb(c);
	case DW_EH_PE_sdata2:
		return (uint64_t)(int16_t)cur_u16(c);
	case DW_EH_PE_sdata4:
		return (uint64_t)(int32_t)cur_u32(c);
	default:
		cur_fail(c);
		return 0;
	}
}

/* Reads an absolute pointer that stands at the next multiple of its size. */
static uint64_t read_aligned(struct fathom_cursor *c, const struct fathom_cfi *cfi)
{
	const uint64_t here = cfi->svma + offset_of(c, cfi);

	cur_skip(c, -here & (cfi->address_size - 1u));
	return cur_uint(c, cfi->address_size);
}

/*
 * Returns what is added to a pointer of @encoding at address @here, of the FDE of the function at
 * @function (0: of none). UINT64_MAX means that it is unknown.
 */
static uint64_t base_of(const struct fathom_cfi *cfi, uint8_t encoding, uint64_t here,
			uint64_t function)
{
	uint64_t base;

	switch (encoding & 0x70) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_aligned:
		return 0;
	case DW_EH_PE_pcrel:
		return here;
	case DW_EH_PE_textrel:
		base = cfi->text_svma;
		break;
	case DW_EH_PE_datarel:
		base = cfi->data_svma;
		break;
	case DW_EH_PE_funcrel:
		base = function;
		break;
	default:
		base = 0;
	}
	return base ? base : UINT64_MAX;
}

/* Returns whether the bounds of FDEs can be read with @encoding. */
static bool is_readable(const struct fathom_cfi *cfi, uint8_t encoding)
{
	const uint8_t format = encoding & 0x0f;

	/* A pointer to the bounds is in memory, not in the section. */
	return !(encoding & DW_EH_PE_indirect) &&
	       (format <= DW_EH_PE_udata8 ||
		(format >= DW_EH_PE_signed && format <= DW_EH_PE_sdata8)) &&
	       base_of(cfi, encoding, 0, 0) != UINT64_MAX;
}

/* An encoded pointer that was read. */
struct pointer {
	uint64_t address;
	bool is_null;    /* 0 before the base is added: it leads nowhere */
	bool is_unknown; /* its base is unknown */
};

static struct pointer read_pointer(struct fathom_cursor *c, const struct fathom_cfi *cfi,
				   uint8_t encoding, uint64_t function)
{
	const uint64_t here = cfi->svma + offset_of(c, cfi);
	const uint64_t base = base_of(cfi, encoding, here, function);
	const uint64_t value = (encoding & 0x70) == DW_EH_PE_aligned ? read_aligned(c, cfi)
								     : read_value(c, cfi, encoding);

	return (struct pointer){ .address = truncate_address(cfi, base + value),
				 .is_null = !value,
				 .is_unknown = base == UINT64_MAX };
}

/* Reads the encoding of the personality routine and its address. */
static void read_personality(struct fathom_cursor *c, struct fathom_cie *cie)
{
	struct pointer p;

	cie->personality_encoding = cur_u8(c);
	if (cie->personality_encoding == DW_EH_PE_omit)
		return;
	p = read_pointer(c, &cie->cfi, cie->personality_encoding, 0);
	cie->is_unknown |= p.is_unknown;
	cie->personality = p.is_unknown ? 0 : p.address;
}

/*
 * Reads the augmentation data of @letters, up to an unknown one: the size of its data is unknown.
 * Returns false if the encoding of the bounds of FDEs stands after it.
 */
static bool read_augmentation(struct fathom_cursor *c, struct fathom_str letters,
			      struct fathom_cie *cie)
{
	for (uint32_t i = 0; i < letters.size && cur_ok(c); i++) {
		switch (letters.data[i]) {
		case 'L':
			cie->lsda_encoding = cur_u8(c);
			break;
		case 'R':
			cie->pointer_encoding = cur_u8(c);
			break;
		case 'P':
			read_personality(c, cie);
			break;
		case 'S':
			cie->is_signal_frame = true;
			break;
		case 'B':
			cie->uses_b_key = true;
			break;
		case 'G':
			cie->has_tagged_stack = true;
			break;
		default:
			cie->is_unknown = true;
			for (; i < letters.size; i++)
				if (letters.data[i] == 'R')
					return false;
		}
	}
	return true;
}

/* Reads the alignments and the return address register. */
static void read_factors(struct fathom_cursor *c, struct fathom_cie *cie)
{
	cie->code_alignment = cur_uleb(c);
	cie->data_alignment = cur_sleb(c);
	cie->return_register = cie->version == 1 ? cur_u8(c) : cur_uleb(c);
}

/* Reads the sizes that version 4 adds; returns false if no machine has them. */
static bool read_sizes(struct fathom_cursor *c, struct fathom_cie *cie)
{
	cie->cfi.address_size = cur_u8(c);
	cie->segment_size = cur_u8(c);
	return (cie->cfi.address_size == 8 || cie->cfi.address_size == 4 ||
		cie->cfi.address_size == 2) &&
	       cie->segment_size <= 8;
}

fathom_err fathom_cie_read(const struct fathom_cfi *cfi, uint64_t off, struct fathom_cie *ret)
{
	struct fathom_cfi_entry e;
	struct fathom_cursor data;
	struct fathom_str letters;
	bool known;

	if (fathom_cfi_at(cfi, off, &e) || !e.is_cie)
		return FATHOM_E_CORRUPT;
	*ret = (struct fathom_cie){ .cfi = *cfi,
				    .off = off,
				    .pointer_encoding = DW_EH_PE_absptr,
				    .lsda_encoding = DW_EH_PE_omit,
				    .personality_encoding = DW_EH_PE_omit };
	ret->version = cur_u8(&e.body);
	if (ret->version != 1 && ret->version != 3 && ret->version != 4)
		return FATHOM_E_UNSUPPORTED;
	ret->augmentation = letters = cur_str(&e.body);
	if (str_starts(letters, "eh")) { /* g++ 2 put a pointer to its own table here */
		cur_skip(&e.body, cfi->address_size);
		letters = (struct fathom_str){ letters.data + 2, letters.size - 2 };
	}
	if (ret->version == 4 && !read_sizes(&e.body, ret))
		return FATHOM_E_UNSUPPORTED;
	read_factors(&e.body, ret);
	ret->has_data = str_starts(letters, "z");
	if (ret->has_data) {
		data = cur_sub(&e.body, cur_uleb(&e.body));
		letters = (struct fathom_str){ letters.data + 1, letters.size - 1 };
		known = read_augmentation(&data, letters, ret);
		if (!cur_ok(&data))
			return FATHOM_E_CORRUPT;
	} else {
		known = read_augmentation(&e.body, letters, ret);
	}
	if (!cur_ok(&e.body))
		return FATHOM_E_CORRUPT;
	if (ret->has_data || !ret->is_unknown) /* else where they start is unknown */
		ret->instructions = (struct fathom_bytes){ e.body.p, cur_left(&e.body) };
	return known && is_readable(cfi, ret->pointer_encoding) ? FATHOM_OK : FATHOM_E_UNSUPPORTED;
}

/* Reads the head of the entry at @c and moves @c past the entry. */
static fathom_err read_entry(const struct fathom_cfi *cfi, struct fathom_cursor *c,
			     struct fathom_cfi_entry *ret)
{
	const uint64_t off = offset_of(c, cfi);
	uint8_t offset_size;
	const uint64_t length = cur_initial_length(c, &offset_size);
	struct fathom_cursor body = cur_sub(c, length);
	const uint64_t here = offset_of(&body, cfi);
	uint64_t id;

	if (!cur_ok(c))
		return FATHOM_E_CORRUPT;
	if (!length) /* crtend.o ends .eh_frame with one, but more may follow */
		return FATHOM_END;
	id = cfi->is_eh ? cur_u32(&body) : cur_uint(&body, offset_size);
	if (!cur_ok(&body))
		return FATHOM_E_CORRUPT;
	ret->off = off;
	ret->is_cie = cfi->is_eh ? !id : id == (offset_size == 8 ? UINT64_MAX : UINT32_MAX);
	if (ret->is_cie)
		ret->cie_off = off;
	else /* in .eh_frame a distance, which is negative if the CIE comes later */
		ret->cie_off = cfi->is_eh ? here - (uint64_t)(int32_t)id : id;
	ret->body = body;
	return FATHOM_OK;
}

fathom_err fathom_cfi_at(const struct fathom_cfi *cfi, uint64_t off, struct fathom_cfi_entry *ret)
{
	struct fathom_cursor c = cur_init(cfi->section, cfi->swap);

	cur_skip(&c, off);
	return cur_ok(&c) ? read_entry(cfi, &c, ret) : FATHOM_E_CORRUPT;
}

void fathom_cfi_reader_init(struct fathom_cfi_reader *r, const struct fathom_cfi *cfi)
{
	r->cfi = cfi;
	r->c = cur_init(cfi->section, cfi->swap);
}

fathom_err fathom_cfi_next(struct fathom_cfi_reader *r, struct fathom_cfi_entry *ret,
			   struct fathom_errinfo *reterr)
{
	while (cur_left(&r->c)) {
		const uint64_t at = offset_of(&r->c, r->cfi);
		const fathom_err err = read_entry(r->cfi, &r->c, ret);

		if (err < 0) {
			cur_fail(&r->c);
			return fathom_fail(reterr, err, section_name(r->cfi), at,
					   "damaged call frame description");
		}
		if (err == FATHOM_OK)
			return err;
		if (r->cfi->is_open)
			r->c.p = r->c.end;
	}
	return FATHOM_END;
}

/* Reads the pointer to the LSDA of @fde from its augmentation data. */
static void read_lsda(struct fathom_cursor *c, const struct fathom_cie *cie, struct fathom_fde *fde)
{
	struct pointer p;

	if (cie->lsda_encoding == DW_EH_PE_omit || cie->is_unknown || !cur_left(c))
		return;
	p = read_pointer(c, &cie->cfi, cie->lsda_encoding, fde->low);
	if (p.is_unknown)
		cur_fail(c);
	fde->has_lsda = cur_ok(c) && !p.is_null;
	fde->lsda = fde->has_lsda ? p.address : 0;
}

fathom_err fathom_fde_read(const struct fathom_cfi_entry *e, const struct fathom_cie *cie,
			   struct fathom_fde *ret)
{
	struct fathom_cursor c = e->body;
	struct fathom_cursor data;

	ret->cie = cie;
	ret->off = e->off;
	ret->lsda = 0;
	ret->has_lsda = false;
	cur_skip(&c, cie->segment_size);
	ret->low = read_pointer(&c, &cie->cfi, cie->pointer_encoding, 0).address;
	/* Lengths are encoded like addresses, but have no base. */
	ret->high = ret->low + read_value(&c, &cie->cfi, cie->pointer_encoding);
	if (!cur_ok(&c))
		return FATHOM_E_CORRUPT;
	if (cie->has_data) {
		data = cur_sub(&c, cur_uleb(&c));
		read_lsda(&data, cie, ret);
		ret->is_damaged = !cur_ok(&data);
	} else {
		read_lsda(&c, cie, ret);
		ret->is_damaged = !cur_ok(&c);
	}
	ret->instructions = (struct fathom_bytes){ c.p, cur_left(&c) };
	return FATHOM_OK;
}

fathom_err fathom_cie_pointer(const struct fathom_cie *cie, struct fathom_cursor *c,
			      uint64_t *ret_svma)
{
	const struct pointer p = read_pointer(c, &cie->cfi, cie->pointer_encoding, 0);

	if (!cur_ok(c))
		return FATHOM_E_CORRUPT;
	*ret_svma = p.address;
	return FATHOM_OK;
}

/* The sorted table: pairs of a function and its FDE, both sdata4 relative to the header. */
#define HEADER_SIZE    4
#define TABLE_ENCODING (DW_EH_PE_datarel | DW_EH_PE_sdata4)

/* The parts of .eh_frame_hdr before its table. */
struct header {
	struct fathom_cursor c; /* what is after them */
	uint64_t section;       /* svma of .eh_frame */
	uint64_t count;         /* of the table's pairs */
	uint8_t table_encoding;
	bool has_count;
};

/* Reads the head of @bytes, .eh_frame_hdr at @svma of the kind of file that @cfi is in. */
static fathom_err read_header(const struct fathom_cfi *cfi, struct fathom_bytes bytes,
			      uint64_t svma, struct header *ret)
{
	struct fathom_cfi view = *cfi;
	struct pointer section;
	const uint8_t *h;

	ret->c = cur_init(bytes, cfi->swap);
	h = cur_take(&ret->c, HEADER_SIZE);
	if (!h || h[0] != 1 || h[1] & DW_EH_PE_indirect)
		return FATHOM_E_UNSUPPORTED;
	view.section = bytes;
	view.svma = view.data_svma = svma;
	section = read_pointer(&ret->c, &view, h[1], 0);
	if (!cur_ok(&ret->c) || section.is_unknown)
		return FATHOM_E_CORRUPT;
	ret->section = section.address;
	ret->table_encoding = h[3];
	ret->has_count = h[2] != DW_EH_PE_omit;
	ret->count = ret->has_count ? read_value(&ret->c, &view, h[2]) : 0;
	return FATHOM_OK;
}

fathom_err fathom_cfi_section(const struct fathom_cfi *cfi, struct fathom_bytes header,
			      uint64_t header_svma, uint64_t *ret_svma)
{
	struct header h;

	FATHOM_TRY(read_header(cfi, header, header_svma, &h));
	*ret_svma = h.section;
	return FATHOM_OK;
}

/* A word is a distance from the header. */
uint64_t fathom_cfi_table_word(const struct fathom_cfi *cfi, const uint8_t *table,
			       uint64_t header_svma, uint64_t i)
{
	const int32_t distance = (int32_t)load_u32(table + 4 * i, cfi->swap);

	return truncate_address(cfi, header_svma + (uint64_t)distance);
}

fathom_err fathom_cfi_find_table(const struct fathom_cfi *cfi, struct fathom_bytes header,
				 uint64_t header_svma, struct fathom_cfi_table *ret)
{
	struct header h;

	FATHOM_TRY(read_header(cfi, header, header_svma, &h));
	if (!h.has_count || h.table_encoding != TABLE_ENCODING)
		return FATHOM_E_UNSUPPORTED;
	if (!cur_ok(&h.c))
		return FATHOM_E_CORRUPT;
	*ret = (struct fathom_cfi_table){ (uint64_t)(h.c.p - header.data), h.count };
	return FATHOM_OK;
}

fathom_err fathom_cfi_search(const struct fathom_cfi *cfi, struct fathom_bytes header,
			     uint64_t header_svma, uint64_t pc, uint64_t *ret_off)
{
	struct header h;
	uint64_t upto;
	uint64_t svma;

	FATHOM_TRY(read_header(cfi, header, header_svma, &h));
	if (!h.has_count || h.table_encoding != TABLE_ENCODING)
		return FATHOM_E_UNSUPPORTED;
	if (!cur_ok(&h.c) || h.section != cfi->svma || h.count > cur_left(&h.c) / 8)
		return FATHOM_E_CORRUPT;
	upto = FATHOM_BISECT(h.count, i,
			     fathom_cfi_table_word(cfi, h.c.p, header_svma, 2 * i) <= pc);
	if (!upto)
		return FATHOM_END;
	svma = fathom_cfi_table_word(cfi, h.c.p, header_svma, 2 * upto - 1);
	if (svma < cfi->svma || svma - cfi->svma >= cfi->section.size)
		return FATHOM_END;
	*ret_off = svma - cfi->svma;
	return FATHOM_OK;
}
