/* SPDX-License-Identifier: MIT */
#include "host/golang/pclntab.h"

/* First words of tables, and their layouts (internal/abi, src/debug/gosym). */
#define MAGIC_1_2  0xfffffffbu
#define MAGIC_1_16 0xfffffffau
#define MAGIC_1_18 0xfffffff0u
#define MAGIC_1_20 0xfffffff1u

/* Bytes before the first pointer: magic, two zeros, quantum and size of pointers. */
#define HEAD_SIZE 8

/* More functions than any program has. */
#define MOST_FUNCTIONS (UINT32_C(1) << 26)

/* Entries of the header from 1.16 on, in pointers; from 1.18 on the start of the text is one. */
enum { N_FUNCTIONS = 0, N_FILES, TEXT_START };

/* Lists and data of a function by number (internal/abi/symtab.go); the same since 1.16. */
#define PCDATA_INLINED       2
#define FUNCDATA_INLINE_TREE 3

/* Flag of functions that stacks begin with (since 1.17). */
#define FLAG_OUTERMOST 1u

/* Type of Go's notes (cmd/internal/buildid): the id of a build. */
#define NOTE_GO_BUILD_ID 4

static const char *const section_names[] = { ".gopclntab", ".data.rel.ro.gopclntab" };

/* Returns the number of @size bytes, 4 or 8, at @off of @bytes; 0: outside. */
static uint64_t number_at(const struct fathom_pclntab *t, struct fathom_bytes bytes, uint64_t off,
			  uint32_t size)
{
	struct fathom_cursor c = cur_init(bytes_slice(bytes, off, size), t->swap);

	return size == 8 ? cur_u64(&c) : cur_u32(&c);
}

/* Returns the pointer at @off of @bytes, as it is where the loader leaves it; 0: outside. */
static uint64_t pointer_at(struct fathom_pclntab *t, struct fathom_bytes bytes, uint64_t svma,
			   uint64_t off)
{
	struct fathom_fixup fixup;
	uint64_t value;
	size_t i = 0;

	if (!range_inside(off, t->pointer_size, bytes.size))
		return 0;
	value = number_at(t, bytes, off, t->pointer_size);
	if (value || t->object->image.type != ET_DYN)
		return value;
	if (!t->fixups)
		t->fixups = fathom_fixups_create(t->object);
	if (!t->fixups ||
	    !fathom_fixups_find(t->fixups, svma + off, svma + off + t->pointer_size, &i, &fixup) ||
	    fixup.kind != FATHOM_FIXUP_BASE || fixup.svma != svma + off)
		return 0;
	return fixup.addend;
}

static uint8_t layout_of(uint32_t magic)
{
	switch (magic) {
	case MAGIC_1_2:
		return FATHOM_GO_1_2;
	case MAGIC_1_16:
		return FATHOM_GO_1_16;
	case MAGIC_1_18:
		return FATHOM_GO_1_18;
	case MAGIC_1_20:
		return FATHOM_GO_1_20;
	default:
		return FATHOM_GO_NONE;
	}
}

/* Reads what all layouts begin with. */
static bool read_head(struct fathom_pclntab *t)
{
	struct fathom_cursor c = cur_init(t->bytes, t->swap);
	uint16_t zeros;

	t->layout = layout_of(cur_u32(&c));
	zeros = cur_u16(&c);
	t->quantum = cur_u8(&c);
	t->pointer_size = cur_u8(&c);
	return t->layout && !zeros && (t->quantum == 1 || t->quantum == 2 || t->quantum == 4) &&
	       (t->pointer_size == 4 || t->pointer_size == 8);
}

/* Returns entry @i of the header. */
static uint64_t header_entry(struct fathom_pclntab *t, uint32_t i)
{
	return pointer_at(t, t->bytes, t->svma, HEAD_SIZE + (uint64_t)i * t->pointer_size);
}

/* Bytes of one of the two numbers that an entry of the functions has. */
static uint32_t entry_size(const struct fathom_pclntab *t)
{
	return t->layout >= FATHOM_GO_1_18 ? 4 : t->pointer_size;
}

/* Returns number @i of the entries of functions; each has two, the last only one. */
static uint64_t entry_number(const struct fathom_pclntab *t, uint64_t i)
{
	const uint32_t size = entry_size(t);

	return number_at(t, t->functions, i * size, size);
}

/* Returns the svma that function @i begins at, and for n the one that the last ends at. */
static uint64_t entry_of(const struct fathom_pclntab *t, uint32_t i)
{
	struct fathom_fixup fixup;
	uint64_t value = entry_number(t, 2 * (uint64_t)i);
	uint64_t at;
	size_t k = 0;

	if (t->layout >= FATHOM_GO_1_18)
		return t->text + value;
	if (value || !t->fixups)
		return value;
	at = t->svma + (uint64_t)(t->functions.data - t->bytes.data) +
	     2 * (uint64_t)i * t->pointer_size;
	if (fathom_fixups_find(t->fixups, at, at + 1, &k, &fixup) &&
	    fixup.kind == FATHOM_FIXUP_BASE)
		value = fixup.addend;
	return value;
}

static void read_parts_1_2(struct fathom_pclntab *t)
{
	const uint64_t start = HEAD_SIZE + (uint64_t)t->pointer_size;
	uint64_t off;

	t->functions = bytes_from(t->bytes, start);
	off = (2 * (uint64_t)t->n + 1) * t->pointer_size;
	t->files = bytes_from(t->bytes, number_at(t, t->functions, off, 4));
	t->names = t->values = t->bytes;
	/* Relocated pointers are zero in the file. */
	if (t->object->image.type == ET_DYN && !entry_number(t, 0))
		(void)pointer_at(t, t->bytes, t->svma, start);
}

static void read_parts(struct fathom_pclntab *t)
{
	const uint32_t first = t->layout >= FATHOM_GO_1_18 ? TEXT_START + 1 : TEXT_START;

	t->names = bytes_from(t->bytes, header_entry(t, first));
	t->cus = bytes_from(t->bytes, header_entry(t, first + 1));
	t->files = bytes_from(t->bytes, header_entry(t, first + 2));
	t->values = bytes_from(t->bytes, header_entry(t, first + 3));
	t->functions = bytes_from(t->bytes, header_entry(t, first + 4));
	if (t->layout >= FATHOM_GO_1_18)
		t->text = header_entry(t, TEXT_START);
	else if (t->object->image.type == ET_DYN && !entry_number(t, 0))
		(void)pointer_at(t, t->functions,
				 t->svma + (uint64_t)(t->functions.data - t->bytes.data), 0);
}

/*
 * Words of runtime.moduledata before function_data (runtime/symtab.go). Its first word leads to the
 * table, and the next ones to the parts of it, so that it cannot be taken for anything else.
 */
enum { MODULE_TABLE = 0, MODULE_NAMES = 1, MODULE_CUS = 4, MODULE_FILES = 7, MODULE_VALUES = 10 };
enum { MODULE_TEXT = 22, MODULE_DATA_1_18 = 38, MODULE_DATA_1_20 = 40, MODULE_WORDS = 44 };

/* Returns whether the words from @off of @bytes on are the module's data. */
static bool is_module_data(struct fathom_pclntab *t, struct fathom_bytes bytes, uint64_t svma,
			   uint64_t off)
{
	const struct {
		uint32_t word;
		struct fathom_bytes part;
	} parts[] = { { MODULE_TABLE, t->bytes },
		      { MODULE_NAMES, t->names },
		      { MODULE_CUS, t->cus },
		      { MODULE_FILES, t->files },
		      { MODULE_VALUES, t->values } };

	if (!range_inside(off, MODULE_WORDS * (uint64_t)t->pointer_size, bytes.size))
		return false;
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (!parts[i].part.data ||
		    pointer_at(t, bytes, svma, off + parts[i].word * t->pointer_size) !=
			    t->svma + (uint64_t)(parts[i].part.data - t->bytes.data))
			return false;
	return true;
}

/* Reads of the module's data what the table has not. */
static void read_module_data(struct fathom_pclntab *t, struct fathom_bytes bytes, uint64_t svma,
			     uint64_t off)
{
	const uint32_t word = t->layout >= FATHOM_GO_1_20 ? MODULE_DATA_1_20 : MODULE_DATA_1_18;
	const uint64_t text =
		pointer_at(t, bytes, svma, off + (uint64_t)MODULE_TEXT * t->pointer_size);
	const uint64_t data = pointer_at(t, bytes, svma, off + (uint64_t)word * t->pointer_size);

	if (!t->text)
		t->text = text;
	if (t->text == text && fathom_object_is_mapped(t->object, data) &&
	    !fathom_object_has_code(t->object, data))
		t->function_data = data;
}

/* Looks for the module's data in the writable segments, where a pointer to the table stands. */
static void find_module_data(struct fathom_pclntab *t)
{
	const struct fathom_image *image = &t->object->image;
	struct fathom_segment s;
	bool is_relocated = false;

	for (uint32_t i = 0; fathom_image_segment(image, i, &s); i++) {
		const struct fathom_bytes bytes =
			s.type == PT_LOAD ? fathom_image_loaded_bytes(image, s.vaddr, s.filesz)
					  : (struct fathom_bytes){ NULL, 0 };

		if (!(s.flags & PF_W))
			continue;
		for (uint64_t off = 0; off + MODULE_WORDS * (uint64_t)t->pointer_size <= bytes.size;
		     off += t->pointer_size) {
			if (number_at(t, bytes, off, t->pointer_size) != t->svma ||
			    !is_module_data(t, bytes, s.vaddr, off))
				continue;
			read_module_data(t, bytes, s.vaddr, off);
			return;
		}
		is_relocated = image->type == ET_DYN;
	}
	if (!is_relocated)
		return;
	/* The loader writes the pointer. */
	if (!t->fixups)
		t->fixups = fathom_fixups_create(t->object);
	for (size_t k = 0; t->fixups;) {
		struct fathom_fixup fixup;
		struct fathom_bytes bytes;
		uint64_t start;

		if (!fathom_fixups_find(t->fixups, 0, UINT64_MAX, &k, &fixup))
			return;
		k++;
		if (fixup.kind != FATHOM_FIXUP_BASE || fixup.addend != t->svma)
			continue;
		bytes = fathom_image_loaded_at(image, fixup.svma, &start);
		if (!is_module_data(t, bytes, start, fixup.svma - start))
			continue;
		read_module_data(t, bytes, start, fixup.svma - start);
		return;
	}
}

/* Returns whether the first and the last function are in code, and in their order. */
static bool is_plausible(const struct fathom_pclntab *t)
{
	const uint64_t first = entry_of(t, 0);
	const uint64_t last = entry_of(t, t->n - 1);

	return first <= last && last < entry_of(t, t->n) &&
	       fathom_object_has_code(t->object, first) && fathom_object_has_code(t->object, last);
}

/* Reads the table at @svma, which @bytes begin with. */
static bool read_table(struct fathom_pclntab *t, struct fathom_bytes bytes, uint64_t svma)
{
	uint64_t n;

	t->bytes = bytes;
	t->svma = svma;
	t->text = 0;
	if (!read_head(t))
		return false;
	n = header_entry(t, N_FUNCTIONS);
	if (!n || n > MOST_FUNCTIONS || n > bytes.size / 8)
		return false;
	t->n = (uint32_t)n;
	if (t->layout == FATHOM_GO_1_2) {
		read_parts_1_2(t);
	} else {
		read_parts(t);
		if (t->layout >= FATHOM_GO_1_18)
			find_module_data(t);
	}
	return range_inside(0, (2 * n + 1) * entry_size(t), t->functions.size) && is_plausible(t);
}

static bool find_in_sections(struct fathom_pclntab *t)
{
	const struct fathom_object *o = t->object;

	for (size_t i = 0; i < sizeof section_names / sizeof *section_names; i++) {
		const uint32_t number = fathom_object_find(o, section_names[i]);

		if (number &&
		    read_table(t,
			       fathom_image_section_bytes(&o->image, &o->sections[number].header),
			       o->sections[number].base))
			return true;
	}
	return false;
}

/* Places that look like the start of a table, of which one may be it. */
#define MOST_CANDIDATES 64

/* Looks for the table in the loaded segments: the sections have no names. */
static bool find_in_segments(struct fathom_pclntab *t)
{
	const struct fathom_image *image = &t->object->image;
	struct fathom_segment s;
	unsigned n = 0;

	for (uint32_t i = 0; fathom_image_segment(image, i, &s); i++) {
		const struct fathom_bytes bytes =
			s.type == PT_LOAD && !(s.flags & PF_X)
				? fathom_image_loaded_bytes(image, s.vaddr, s.filesz)
				: (struct fathom_bytes){ NULL, 0 };

		/* It is aligned as pointers are. */
		for (uint64_t off = (0 - s.vaddr) & 7; off + HEAD_SIZE < bytes.size; off += 8) {
			if (!layout_of((uint32_t)number_at(t, bytes, off, 4)))
				continue;
			if (n++ == MOST_CANDIDATES)
				return false;
			if (read_table(t, bytes_from(bytes, off), s.vaddr + off))
				return true;
		}
	}
	return false;
}

bool fathom_pclntab_is_go(const struct fathom_object *o)
{
	return fathom_object_find(o, ".go.buildinfo") || fathom_object_find(o, section_names[0]) ||
	       fathom_object_find(o, section_names[1]) ||
	       fathom_image_note(&o->image, NOTE_GO_BUILD_ID, "Go").size;
}

fathom_err fathom_pclntab_open(struct fathom_pclntab *t, const struct fathom_object *o)
{
	*t = (struct fathom_pclntab){ .object = o, .swap = o->image.swap };
	if (find_in_sections(t) || find_in_segments(t))
		return FATHOM_OK;
	fathom_pclntab_close(t);
	return FATHOM_E_NOT_FOUND;
}

void fathom_pclntab_close(struct fathom_pclntab *t)
{
	fathom_fixups_destroy(t->fixups);
	t->fixups = NULL;
}

struct fathom_str fathom_pclntab_name(const struct fathom_pclntab *t, uint32_t off)
{
	/* In 1.2 they stand among all else. */
	if (t->layout != FATHOM_GO_1_2 && off && off <= t->names.size && t->names.data[off - 1])
		return (struct fathom_str){ NULL, 0 };
	return fathom_bytes_str(t->names, off);
}

/* Finds the tree of inlined calls by what function @f says of its data. */
static void read_inline_tree(const struct fathom_pclntab *t, struct fathom_go_function *f,
			     struct fathom_cursor c, uint32_t n_lists, uint8_t n_data)
{
	const bool is_distance = t->layout >= FATHOM_GO_1_18;
	uint64_t data;

	if (n_lists <= PCDATA_INLINED || n_data <= FUNCDATA_INLINE_TREE)
		return;
	cur_skip(&c, PCDATA_INLINED * sizeof(uint32_t));
	f->inlined = cur_u32(&c);
	cur_skip(&c, (n_lists - PCDATA_INLINED - 1) * sizeof(uint32_t));
	if (!is_distance && t->pointer_size == 8)
		cur_skip(&c, (0 - (t->svma + (uint64_t)(c.p - t->bytes.data))) & 7);
	cur_skip(&c, FUNCDATA_INLINE_TREE * (is_distance ? 4u : t->pointer_size));
	data = is_distance || t->pointer_size == 4 ? cur_u32(&c) : cur_u64(&c);
	if (!cur_ok(&c) || f->inlined == FATHOM_GO_NO_VALUES)
		return;
	if (is_distance && data != UINT32_MAX && t->function_data)
		f->inline_tree = t->function_data + data;
	else if (!is_distance)
		f->inline_tree = data;
	f->has_unknown_tree = !f->inline_tree;
}

bool fathom_pclntab_function(const struct fathom_pclntab *t, uint32_t i,
			     struct fathom_go_function *ret)
{
	const bool is_old = t->layout == FATHOM_GO_1_2;
	const uint64_t off = entry_number(t, 2 * (uint64_t)i + 1);
	struct fathom_cursor c =
		cur_init(bytes_from(is_old ? t->bytes : t->functions, off), t->swap);
	uint32_t n_lists;
	uint8_t n_data;

	*ret = (struct fathom_go_function){ .entry = entry_of(t, i), .limit = entry_of(t, i + 1) };
	cur_skip(&c, t->layout >= FATHOM_GO_1_18 ? 4 : t->pointer_size);
	ret->name_off = cur_u32(&c);
	cur_skip(&c,
		 8); /* bytes of arguments; the call of deferred functions, or the frame's size */
	ret->sp = cur_u32(&c);
	ret->file = cur_u32(&c);
	ret->line = cur_u32(&c);
	n_lists = cur_u32(&c);
	if (!is_old)
		ret->cu = cur_u32(&c);
	if (t->layout >= FATHOM_GO_1_20)
		ret->first_line = cur_u32(&c);
	cur_skip(&c, 1); /* which of the runtime's own functions it is */
	ret->is_outermost = cur_u8(&c) & FLAG_OUTERMOST && !is_old;
	cur_skip(&c, 1);
	n_data = cur_u8(&c);
	ret->name = fathom_pclntab_name(t, ret->name_off);
	if (!cur_ok(&c) || !ret->name.size || ret->limit <= ret->entry ||
	    !fathom_object_has_code(t->object, ret->entry))
		return false;
	/* Numbers of lists and data, and calls, were others in each version before 1.16. */
	if (is_old)
		ret->has_unknown_tree = n_lists > 1;
	else
		read_inline_tree(t, ret, c, n_lists, n_data);
	return true;
}

struct fathom_go_runs fathom_go_runs_init(const struct fathom_pclntab *t,
					  const struct fathom_go_function *f, uint32_t off)
{
	const struct fathom_bytes list = off == FATHOM_GO_NO_VALUES
						 ? (struct fathom_bytes){ NULL, 0 }
						 : bytes_from(t->values, off);

	return (struct fathom_go_runs){ .cursor = cur_init(list, t->swap),
					.low = f->entry,
					.high = f->entry,
					.value = -1,
					.quantum = t->quantum };
}

bool fathom_go_runs_next(struct fathom_go_runs *r)
{
	const uint64_t change = cur_uleb(&r->cursor);
	const uint64_t pcs = cur_uleb(&r->cursor);

	/* The first difference may be 0: the value is -1 there. */
	if ((!change && r->is_begun) || !cur_ok(&r->cursor) || !pcs || pcs > UINT32_MAX)
		return false;
	r->is_begun = true;
	r->value = (int32_t)((uint32_t)r->value +
			     (uint32_t)(change & 1 ? ~(change >> 1) : change >> 1));
	r->low = r->high;
	r->high += pcs * r->quantum;
	return r->high > r->low;
}

uint64_t fathom_pclntab_end(const struct fathom_pclntab *t, const struct fathom_go_function *f)
{
	struct fathom_go_runs r = fathom_go_runs_init(t, f, f->sp);

	while (fathom_go_runs_next(&r) && r.high < f->limit)
		;
	return r.high > f->entry && r.high < f->limit ? r.high : f->limit;
}

struct fathom_str fathom_pclntab_file(const struct fathom_pclntab *t,
				      const struct fathom_go_function *f, int32_t number)
{
	const bool is_old = t->layout == FATHOM_GO_1_2;
	const struct fathom_bytes numbers = is_old ? t->files : t->cus;
	const uint64_t at = 4 * ((uint64_t)f->cu + (uint32_t)number);
	uint32_t off;

	/* Files of 1.2 begin with their number, which no file has. */
	if (number < (is_old ? 1 : 0) || !range_inside(at, 4, numbers.size))
		return (struct fathom_str){ NULL, 0 };
	off = (uint32_t)number_at(t, numbers, at, 4);
	if (off == UINT32_MAX)
		return (struct fathom_str){ NULL, 0 };
	return fathom_bytes_str(is_old ? t->bytes : t->files, off);
}

bool fathom_pclntab_call(const struct fathom_pclntab *t, const struct fathom_go_function *f,
			 int32_t i, struct fathom_go_call *ret)
{
	/* Since 1.20: function's kind, name, position; before also its parent, file and line. */
	const bool is_short = t->layout >= FATHOM_GO_1_20;
	const uint32_t size = is_short ? 16 : 20;
	const struct fathom_bytes bytes =
		i < 0 ? (struct fathom_bytes){ NULL, 0 }
		      : fathom_image_loaded_bytes(&t->object->image,
						  f->inline_tree + (uint64_t)i * size, size);
	struct fathom_cursor c = cur_init(bytes, t->swap);

	cur_skip(&c, is_short ? 4 : 12);
	ret->name_off = cur_u32(&c);
	ret->parent_pc = f->entry + cur_u32(&c);
	ret->first_line = is_short ? cur_u32(&c) : 0;
	return cur_ok(&c) && ret->parent_pc < f->limit &&
	       fathom_pclntab_name(t, ret->name_off).size;
}
