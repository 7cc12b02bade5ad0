/* SPDX-License-Identifier: MIT */
#include "safe/dwarf/cfi.h"

enum {
	DW_EH_PE_absptr = 0x00,
	DW_EH_PE_uleb128 = 0x01,
	DW_EH_PE_udata2 = 0x02,
	DW_EH_PE_udata4 = 0x03,
	DW_EH_PE_udata8 = 0x04,
	DW_EH_PE_sleb128 = 0x09,
	DW_EH_PE_sdata2 = 0x0a,
	DW_EH_PE_sdata4 = 0x0b,
	DW_EH_PE_sdata8 = 0x0c,
	DW_EH_PE_pcrel = 0x10,
	DW_EH_PE_textrel = 0x20,
	DW_EH_PE_datarel = 0x30,
	DW_EH_PE_indirect = 0x80,
	DW_EH_PE_omit = 0xff,
};

/* Of an entry that describes no code. */
#define SKIPPED FATHOM_END

static const char *section_name(const struct fathom_cfi *cfi)
{
	return cfi->is_eh ? ".eh_frame" : ".debug_frame";
}

static uint64_t truncate_address(const struct fathom_cfi *cfi, uint64_t address)
{
	return cfi->address_size == 8 ? address
				      : address & ((UINT64_C(1) << (8 * cfi->address_size)) - 1);
}

/*
 * An encoded pointer. @data is the base of DW_EH_PE_datarel. Only its value part is read when
 * @relative is false: lengths are encoded like addresses but never relative to anything.
 */
static uint64_t read_pointer(struct fathom_cursor *c, const struct fathom_cfi *cfi,
			     struct fathom_bytes section, uint64_t svma, uint64_t data,
			     uint8_t encoding, bool relative)
{
	const uint64_t here = svma + (uint64_t)(c->p - section.data);
	uint64_t value;

	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
		value = cur_uint(c, cfi->address_size);
		break;
	case DW_EH_PE_uleb128:
		value = cur_uleb(c);
		break;
	case DW_EH_PE_udata2:
		value = cur_u16(c);
		break;
	case DW_EH_PE_udata4:
		value = cur_u32(c);
		break;
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		value = cur_u64(c);
		break;
	case DW_EH_PE_sleb128:
		value = (uint64_t)cur_sleb(c);
		break;
	case DW_EH_PE_sdata2:
		value = (uint64_t)(int16_t)cur_u16(c);
		break;
	case DW_EH_PE_sdata4:
		value = (uint64_t)(int32_t)cur_u32(c);
		break;
	default:
		cur_fail(c);
		return 0;
	}
	if (!relative)
		return value;
	switch (encoding & 0x70) {
	case 0:
		break;
	case DW_EH_PE_pcrel:
		value += here;
		break;
	case DW_EH_PE_textrel:
		value += cfi->text_svma;
		break;
	case DW_EH_PE_datarel:
		value += data;
		break;
	default:
		cur_fail(c);
	}
	return truncate_address(cfi, value);
}

/* What an FDE needs from its CIE to be read. */
struct cie {
	uint8_t address_size;
	uint8_t pointer_encoding;
};

/* Reads the "zPLR..." data; only the encoding of code pointers is kept. */
static void read_augmentation(struct fathom_cursor *c, const struct fathom_cfi *cfi,
			      struct fathom_str text, struct cie *ret)
{
	struct fathom_cursor data = cur_sub(c, cur_uleb(c));
	uint8_t encoding;

	for (uint32_t i = 1; i < text.size && cur_ok(&data); i++) {
		switch (text.data[i]) {
		case 'L':
			cur_skip(&data, 1);
			break;
		case 'R':
			ret->pointer_encoding = cur_u8(&data);
			break;
		case 'P':
			encoding = cur_u8(&data);
			(void)read_pointer(&data, cfi, cfi->section, cfi->svma, 0, encoding, false);
			break;
		default: /* 'S', 'B', 'G' have no data; what follows an unknown letter is unknown */
			break;
		}
	}
	if (!cur_ok(&data))
		cur_fail(c);
}

/* Reads the CIE at @off. */
static bool read_cie(const struct fathom_cfi *cfi, uint64_t off, struct cie *ret)
{
	struct fathom_cursor c = cur_init(bytes_from(cfi->section, off), cfi->swap);
	uint8_t offset_size;
	const uint64_t length = cur_initial_length(&c, &offset_size);
	struct fathom_str augmentation;
	uint64_t id;
	uint8_t version;

	c = cur_sub(&c, length);
	id = cfi->is_eh ? cur_u32(&c) : cur_uint(&c, offset_size);
	if (cfi->is_eh ? id != 0 : id != (offset_size == 8 ? UINT64_MAX : UINT32_MAX))
		return false;
	version = cur_u8(&c);
	augmentation = cur_str(&c);
	*ret = (struct cie){ cfi->address_size, DW_EH_PE_absptr };
	if (str_starts(augmentation, "eh"))
		cur_skip(&c, cfi->address_size);
	if (version >= 4) {
		ret->address_size = cur_u8(&c);
		cur_skip(&c, 1); /* segment_selector_size */
		if (ret->address_size != 8 && ret->address_size != 4 && ret->address_size != 2)
			return false;
	}
	cur_skip_leb(&c); /* code alignment */
	cur_skip_leb(&c); /* data alignment */
	if (version == 1)
		cur_skip(&c, 1);
	else
		cur_skip_leb(&c); /* return address register */
	if (str_starts(augmentation, "z"))
		read_augmentation(&c, cfi, augmentation, ret);
	return cur_ok(&c);
}

void fathom_fde_reader_init(struct fathom_fde_reader *r, const struct fathom_cfi *cfi)
{
	r->cfi = cfi;
	r->c = cur_init(cfi->section, cfi->swap);
}

/* Reads the entry under the cursor: FATHOM_OK for an FDE, SKIPPED for anything else, or an error.
 */
static fathom_err read_entry(struct fathom_fde_reader *r, struct fathom_fde *ret)
{
	const struct fathom_cfi *cfi = r->cfi;
	const uint64_t off = (uint64_t)(r->c.p - cfi->section.data);
	uint8_t offset_size;
	const uint64_t length = cur_initial_length(&r->c, &offset_size);
	struct fathom_cursor c = cur_sub(&r->c, length);
	const uint64_t here = (uint64_t)(c.p - cfi->section.data);
	struct fathom_cfi view = *cfi;
	struct cie cie;
	uint64_t id;

	if (!cur_ok(&r->c))
		return FATHOM_E_CORRUPT;
	if (!length) /* a terminator; crtend.o ends .eh_frame with one, more may follow */
		return SKIPPED;
	id = cfi->is_eh ? cur_u32(&c) : cur_uint(&c, offset_size);
	if (!cur_ok(&c))
		return FATHOM_E_CORRUPT;
	if (cfi->is_eh ? id == 0 : id == (offset_size == 8 ? UINT64_MAX : UINT32_MAX))
		return SKIPPED;
	if (cfi->is_eh && id > here)
		return FATHOM_E_CORRUPT;
	if (!read_cie(cfi, cfi->is_eh ? here - id : id, &cie))
		return FATHOM_E_CORRUPT;
	view.address_size = cie.address_size;
	ret->off = off;
	ret->low = read_pointer(&c, &view, cfi->section, cfi->svma, cfi->data_svma,
				cie.pointer_encoding, true);
	ret->high = ret->low + read_pointer(&c, &view, cfi->section, cfi->svma, 0,
					    cie.pointer_encoding, false);
	if (!cur_ok(&c))
		return FATHOM_E_CORRUPT;
	return ret->low < ret->high ? FATHOM_OK : SKIPPED;
}

fathom_err fathom_fde_next(struct fathom_fde_reader *r, struct fathom_fde *ret,
			   struct fathom_errinfo *reterr)
{
	while (cur_left(&r->c)) {
		const uint64_t at = (uint64_t)(r->c.p - r->cfi->section.data);
		const fathom_err err = read_entry(r, ret);

		if (err < 0) {
			cur_fail(&r->c);
			return fathom_fail(reterr, err, section_name(r->cfi), at,
					   "damaged call frame description");
		}
		if (err == FATHOM_OK)
			return err;
	}
	return FATHOM_END;
}

/* Reads the description at @svma and says whether it covers @pc. */
static bool fde_at_covers(const struct fathom_cfi *cfi, uint64_t svma, uint64_t pc,
			  struct fathom_fde *ret)
{
	struct fathom_fde_reader r;

	if (svma < cfi->svma || svma - cfi->svma >= cfi->section.size)
		return false;
	fathom_fde_reader_init(&r, cfi);
	r.c.p += svma - cfi->svma;
	return read_entry(&r, ret) == FATHOM_OK && pc >= ret->low && pc < ret->high;
}

/* The sorted table: pairs of function and description, both sdata4 relative to the header. */
#define HEADER_SIZE    4
#define TABLE_ENCODING (DW_EH_PE_datarel | DW_EH_PE_sdata4)

fathom_err fathom_fde_find(const struct fathom_cfi *cfi, struct fathom_bytes header,
			   uint64_t header_svma, uint64_t pc, struct fathom_fde *ret)
{
	struct fathom_cursor c = cur_init(header, cfi->swap);
	const uint8_t *h = cur_take(&c, HEADER_SIZE);
	uint64_t count;
	uint64_t low = 0;
	uint64_t svma;
	const uint8_t *table;

	if (!h || h[0] != 1 || h[2] == DW_EH_PE_omit || h[3] != TABLE_ENCODING)
		return FATHOM_E_UNSUPPORTED;
	(void)read_pointer(&c, cfi, header, header_svma, header_svma, h[1], true);
	count = read_pointer(&c, cfi, header, header_svma, header_svma, h[2], true);
	if (!cur_ok(&c) || count > cur_left(&c) / 8)
		return FATHOM_E_CORRUPT;
	table = c.p;
	while (low < count) {
		const uint64_t mid = low + (count - low) / 2;
		const int32_t rel = (int32_t)load_u32(table + 8 * mid, cfi->swap);

		if (truncate_address(cfi, header_svma + (uint64_t)rel) <= pc)
			low = mid + 1;
		else
			count = mid;
	}
	if (!low)
		return FATHOM_END;
	svma = header_svma + (uint64_t)(int32_t)load_u32(table + 8 * (low - 1) + 4, cfi->swap);
	return fde_at_covers(cfi, truncate_address(cfi, svma), pc, ret) ? FATHOM_OK : FATHOM_END;
}
