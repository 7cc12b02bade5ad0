/* SPDX-License-Identifier: MIT */
#include "host/space/user/memory_image.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "host/file/bias.h"
#include "safe/base/cursor.h"

/* Returns whether @m is readable and maps offset @off of its file. */
static bool holds_offset(const struct fathom_mapping *m, uint64_t off)
{
	return m->readable && off >= m->off && off - m->off < m->end - m->start;
}

/* Finds a readable mapping of offset @off of the file of mapping @i; maps->n: none. */
static size_t mapping_of_offset(const struct fathom_maps *maps, size_t i, uint64_t off)
{
	size_t found = maps->n;

	/* A file may be loaded more than once: prefer the last mapping at or before @i. */
	for (size_t k = maps->items[i].first; k < maps->n; k = maps->items[k].next)
		if (holds_offset(&maps->items[k], off) && (found == maps->n || k <= i))
			found = k;
	return found;
}

/* Compares @size bytes of the file at @off with the memory of mapping @k. */
static enum fathom_sameness compare_bytes(const struct fathom_space *s,
					  const struct fathom_mapping *m, struct fathom_bytes file,
					  uint64_t off, size_t size)
{
	const struct fathom_bytes there = bytes_slice(file, off, size);
	uint8_t *here;
	enum fathom_sameness same;

	if (!there.size)
		return FATHOM_DIFFERENT;
	here = malloc(size);
	if (!here || !fathom_reader_read(&s->memory, m->start + (off - m->off), here, size))
		same = FATHOM_UNREADABLE;
	else
		same = memcmp(here, there.data, size) == 0 ? FATHOM_SAME : FATHOM_DIFFERENT;
	free(here);
	return same;
}

/*
 * Compares with each mapping of those bytes: where data shares pages with read-only bytes, the
 * written mapping differs.
 */
static enum fathom_sameness compare_any(const struct fathom_space *s,
					const struct fathom_maps *maps, size_t i,
					struct fathom_bytes file, uint64_t off, size_t size)
{
	enum fathom_sameness found = FATHOM_UNREADABLE;

	for (size_t k = maps->items[i].first; k < maps->n && found != FATHOM_SAME;
	     k = maps->items[k].next) {
		enum fathom_sameness same;

		if (!holds_offset(&maps->items[k], off))
			continue;
		same = compare_bytes(s, &maps->items[k], file, off, size);
		if (same != FATHOM_UNREADABLE)
			found = same;
	}
	return found;
}

/* Compares first page and build-id. */
static enum fathom_sameness compare_identity(const struct fathom_space *s,
					     const struct fathom_maps *maps, size_t i,
					     const struct fathom_object *o)
{
	const struct fathom_bytes file = o->file->bytes;
	const size_t first = (size_t)(file.size < s->page ? file.size : s->page);
	enum fathom_sameness same;

	errno = 0;
	if (!o->build_id.size)
		return FATHOM_UNREADABLE;
	same = compare_any(s, maps, i, file, 0, first);
	if (same != FATHOM_SAME)
		return same;
	return compare_any(s, maps, i, file, (uint64_t)(o->build_id.data - file.data),
			   (size_t)o->build_id.size);
}

/* Code is compared in pieces of this size. */
#define COMPARE_STEP ((size_t)64 << 10)

/* Compares @file with the memory at @avma. */
static enum fathom_sameness compare_memory(const struct fathom_space *s, uint64_t avma,
					   struct fathom_bytes file, uint8_t *scratch)
{
	for (uint64_t done = 0; done < file.size; done += COMPARE_STEP) {
		const uint64_t left = file.size - done;
		const size_t size = left < COMPARE_STEP ? (size_t)left : COMPARE_STEP;

		if (!fathom_reader_read(&s->memory, avma + done, scratch, size))
			return FATHOM_UNREADABLE;
		if (memcmp(scratch, file.data + done, size) != 0)
			return FATHOM_DIFFERENT;
	}
	return FATHOM_SAME;
}

/* Compares all code, as executable memory was not written to; there must be some. */
static enum fathom_sameness compare_code(const struct fathom_space *s,
					 const struct fathom_maps *maps, size_t i,
					 const struct fathom_object *o)
{
	enum fathom_sameness same = FATHOM_SAME;
	struct fathom_segment p;
	struct fathom_bytes code;
	uint64_t bias;
	uint64_t compared = 0;
	uint8_t *scratch;

	if (!fathom_bias_of_mapping(&o->image, maps, i, s->page, NULL, &bias))
		return FATHOM_DIFFERENT;
	scratch = malloc(COMPARE_STEP);
	for (uint32_t k = 0; k < o->image.phnum && scratch && same == FATHOM_SAME; k++) {
		if (!fathom_image_segment(&o->image, k, &p) || p.type != PT_LOAD ||
		    !(p.flags & PF_X))
			continue;
		code = bytes_slice(o->file->bytes, p.off, p.filesz);
		same = code.size != p.filesz ? FATHOM_DIFFERENT
					     : compare_memory(s, bias + p.vaddr, code, scratch);
		compared += p.filesz;
	}
	free(scratch);
	return same == FATHOM_SAME && !compared ? FATHOM_UNREADABLE : same;
}

/* Compares with the build-id that is known without reading memory. */
static enum fathom_sameness compare_known(const struct fathom_space *s,
					  const struct fathom_mapping *m,
					  const struct fathom_object *o)
{
	const struct fathom_bytes id =
		s->ops->build_id ? s->ops->build_id(s, m) : (struct fathom_bytes){ NULL, 0 };

	if (!id.size || !o->build_id.size)
		return FATHOM_UNREADABLE;
	return bytes_equal(id, o->build_id) ? FATHOM_SAME : FATHOM_DIFFERENT;
}

enum fathom_sameness fathom_space_compare(const struct fathom_space *s,
					  const struct fathom_maps *maps, size_t i,
					  const struct fathom_object *o)
{
	const enum fathom_sameness known = compare_known(s, &maps->items[i], o);
	const enum fathom_sameness same = compare_identity(s, maps, i, o);

	if (known == FATHOM_DIFFERENT)
		return known;
	if (same != FATHOM_UNREADABLE)
		return same;
	if (known == FATHOM_SAME || s->target.is_live)
		return known;
	return compare_code(s, maps, i, o);
}

/* The largest image accepted. */
#define MAX_IMAGE (UINT64_C(1) << 30)

/* Clears the section headers' fields in the ELF header. */
static void drop_sections(uint8_t *header, bool is64)
{
	if (is64) {
		memset(header + offsetof(Elf64_Ehdr, e_shoff), 0, sizeof(Elf64_Off));
		memset(header + offsetof(Elf64_Ehdr, e_shnum), 0, 2 * sizeof(Elf64_Half));
	} else {
		memset(header + offsetof(Elf32_Ehdr, e_shoff), 0, sizeof(Elf32_Off));
		memset(header + offsetof(Elf32_Ehdr, e_shnum), 0, 2 * sizeof(Elf32_Half));
	}
}

static bool is_pointer(uint64_t tag)
{
	switch (tag) {
	case DT_PLTGOT:
	case DT_HASH:
	case DT_STRTAB:
	case DT_SYMTAB:
	case DT_RELA:
	case DT_REL:
	case DT_JMPREL:
	case DT_GNU_HASH:
	case DT_VERSYM:
	case DT_VERDEF:
	case DT_VERNEED:
		return true;
	default:
		return false;
	}
}

static void store_word(uint8_t *to, uint8_t word, uint64_t value)
{
	const uint32_t half = (uint32_t)value;

	if (word == sizeof half)
		memcpy(to, &half, sizeof half);
	else
		memcpy(to, &value, sizeof value);
}

/* Returns whether a symbol table begins at @svma: its first entry is all zeros. */
static bool begins_symbols(const struct fathom_image *image, uint64_t svma)
{
	const size_t size = image->is64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	const struct fathom_bytes b = fathom_image_loaded_bytes(image, svma, size);
	uint8_t any = 0;

	for (uint64_t i = 0; i < b.size; i++)
		any |= b.data[i];
	return b.size && !any;
}

/*
 * Returns whether the loader has added @bias to the addresses in @dynamic. With a small bias, both
 * readings of an address may be in the image; then the bytes there decide.
 */
static bool is_moved(const struct fathom_image *image, struct fathom_bytes dynamic, uint64_t bias)
{
	const uint8_t word = fathom_image_address_size(image);
	struct fathom_cursor c = cur_init(dynamic, image->swap);
	uint64_t tag = DT_HASH;
	uint64_t value = 0;

	while (cur_left(&c) && tag != DT_SYMTAB && tag != DT_NULL) {
		tag = cur_uint(&c, word);
		value = cur_uint(&c, word);
	}
	return tag == DT_SYMTAB && fathom_bias_covers(image, bias, value) &&
	       (!fathom_bias_covers(image, 0, value) ||
		(!begins_symbols(image, value) && begins_symbols(image, value - bias)));
}

/*
 * Subtracts the bias from the addresses in PT_DYNAMIC. glibc adds it there in place, if writable,
 * except to those of versions; other loaders do not.
 */
static void restore_dynamic(uint8_t *bytes, const struct fathom_image *image, uint64_t bias)
{
	const uint8_t word = fathom_image_address_size(image);
	struct fathom_segment s;
	struct fathom_cursor c;
	bool moved;

	for (uint32_t i = 0; i < image->phnum; i++) {
		if (!fathom_image_segment(image, i, &s) || s.type != PT_DYNAMIC)
			continue;
		c = cur_init(bytes_slice(image->bytes, s.off, s.filesz), image->swap);
		moved = is_moved(image, bytes_slice(image->bytes, s.off, s.filesz), bias);
		while (cur_left(&c)) {
			const uint64_t tag = cur_uint(&c, word);
			const uint64_t value = cur_uint(&c, word);

			if (!cur_ok(&c) || tag == DT_NULL)
				break;
			if (is_pointer(tag) && fathom_bias_covers(image, bias, value) &&
			    (!fathom_bias_covers(image, 0, value) ||
			     (moved && tag != DT_VERDEF && tag != DT_VERNEED)))
				store_word(bytes + (c.p - image->bytes.data) - word, word,
					   value - bias);
		}
	}
}

/* Makes an object of @pages and takes them over. */
static fathom_err object_from(struct fathom_memory *m, const struct fathom_mapping *mapping,
			      uint8_t *pages, uint64_t size, struct fathom_object **ret,
			      struct fathom_errinfo *reterr)
{
	char *name = strndup(mapping->name.data ? mapping->name.data : "", mapping->name.size);
	struct fathom_file *file;
	fathom_err err = FATHOM_E_MEMORY;

	if (name)
		err = fathom_file_wrap(m, name, pages, size, size, &file);
	free(name);
	if (err) {
		fathom_pages_free(pages, size);
		return fathom_fail(reterr, err, "", 0, "out of memory");
	}
	return fathom_object_create(m, file, ret, reterr);
}

/* Fails because memory cannot be read; errno says why. */
static fathom_err unreadable(struct fathom_errinfo *reterr)
{
	const int number = errno;

	if (!number)
		return fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", 0,
				   "the start of its image is not in memory");
	(void)fathom_fail(reterr, FATHOM_E_OS, "", 0, "its image in memory cannot be read");
	if (reterr)
		reterr->os_errno = number;
	return FATHOM_E_OS;
}

/* Returns the size of a file that holds all segments of @image. */
static uint64_t size_of_segments(const struct fathom_image *image)
{
	struct fathom_segment s;
	uint64_t size = 0;

	for (uint32_t i = 0; i < image->phnum; i++) {
		uint64_t end;

		if (!fathom_image_segment(image, i, &s) || s.type != PT_LOAD)
			continue;
		if (__builtin_add_overflow(s.off, s.filesz, &end))
			return UINT64_MAX;
		size = end > size ? end : size;
	}
	return size;
}

/*
 * Reads the segments of @image, loaded at @bias, to their offsets in the file; notes which are
 * complete.
 */
static void read_segments(const struct fathom_space *s, const struct fathom_image *image,
			  uint64_t bias, uint8_t *to, bool *whole)
{
	struct fathom_segment p;

	for (uint32_t i = 0; i < image->phnum; i++)
		if (fathom_image_segment(image, i, &p) && p.type == PT_LOAD)
			whole[i] = fathom_reader_read(&s->memory, bias + p.vaddr, to + p.off,
						      (size_t)p.filesz);
}

/* Returns whether @svma is in the file's part of a completely read segment. */
static bool is_known(const struct fathom_image *image, const bool *whole, uint64_t svma)
{
	struct fathom_segment p;

	for (uint32_t i = 0; i < image->phnum; i++)
		if (whole[i] && fathom_image_segment(image, i, &p) && p.type == PT_LOAD &&
		    svma - p.vaddr < p.filesz)
			return true;
	return false;
}

/* Returns whether all tables that PT_DYNAMIC, segment @s, points to were read. */
static bool is_dynamic_known(const struct fathom_image *image, const bool *whole,
			     const struct fathom_segment *s)
{
	const uint8_t word = fathom_image_address_size(image);
	struct fathom_cursor c =
		cur_init(bytes_slice(image->bytes, s->off, s->filesz), image->swap);

	if (!is_known(image, whole, s->vaddr))
		return false;
	while (cur_left(&c)) {
		const uint64_t tag = cur_uint(&c, word);
		const uint64_t value = cur_uint(&c, word);

		if (!cur_ok(&c) || tag == DT_NULL)
			break;
		if (is_pointer(tag) && value && !is_known(image, whole, value))
			return false;
	}
	return true;
}

/*
 * Removes from @bytes, the image, the program headers whose tables were not read: a symbol table
 * with gaps would give wrong names. Returns whether no table of names or bounds is left.
 */
static bool hide_unknown(uint8_t *bytes, const struct fathom_image *image, const bool *whole)
{
	struct fathom_segment s;
	bool is_bare = true;

	for (uint32_t i = 0; i < image->phnum; i++) {
		if (!fathom_image_segment(image, i, &s) ||
		    (s.type != PT_DYNAMIC && s.type != PT_GNU_EH_FRAME))
			continue;
		if (s.type == PT_DYNAMIC ? is_dynamic_known(image, whole, &s)
					 : is_known(image, whole, s.vaddr))
			is_bare = false;
		else
			/* p_type comes first; PT_NULL is zero. */
			memset(bytes + image->phoff + (uint64_t)i * image->phentsize, 0,
			       sizeof(uint32_t));
	}
	return is_bare;
}

/* Makes a file in @pages by reading the segments there. */
static bool fill_image(const struct fathom_space *s, uint64_t bias,
		       const struct fathom_image *image, uint8_t *pages, uint64_t size,
		       bool *ret_bare)
{
	bool *whole = calloc((size_t)image->phnum + 1, sizeof *whole);
	struct fathom_image made;

	if (!whole)
		return false;
	read_segments(s, image, bias, pages, whole);
	drop_sections(pages, image->is64);
	*ret_bare = false;
	if (!fathom_image_init((struct fathom_bytes){ pages, size }, &made, NULL)) {
		made.phnum = made.phnum < image->phnum ? made.phnum : image->phnum;
		if (!made.swap)
			restore_dynamic(pages, &made, bias);
		*ret_bare = hide_unknown(pages, &made, whole);
	}
	free(whole);
	return true;
}

static fathom_err read_image(const struct fathom_space *s, const struct fathom_mapping *first,
			     uint64_t bias, const struct fathom_image *image,
			     struct fathom_object **ret, bool *ret_bare,
			     struct fathom_errinfo *reterr)
{
	const uint64_t size = size_of_segments(image);
	const uint64_t least = image->is64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
	uint8_t *pages;

	if (size < least)
		return fathom_fail(reterr, FATHOM_E_CORRUPT, "", 0,
				   "its image in memory is damaged");
	if (size > MAX_IMAGE || !fathom_memory_fits(&s->target.session->memory, size))
		return fathom_fail_by(reterr, FATHOM_E_LIMIT, FATHOM_CAUSE_BUDGET,
				      "its image in memory does not fit the memory budget");
	pages = fathom_pages_alloc(size);
	if (!pages)
		return fathom_fail_memory(reterr);
	if (!fill_image(s, bias, image, pages, size, ret_bare)) {
		fathom_pages_free(pages, size);
		return fathom_fail_memory(reterr);
	}
	return object_from(&s->target.session->memory, first, pages, size, ret, reterr);
}

/* Reads [vdso]: the kernel maps it whole, section headers included. */
static fathom_err read_vdso(const struct fathom_space *s, const struct fathom_mapping *mapping,
			    struct fathom_object **ret, struct fathom_errinfo *reterr)
{
	const uint64_t size = mapping->end - mapping->start;
	uint8_t *pages = size <= MAX_IMAGE ? fathom_pages_alloc(size) : NULL;

	if (!pages)
		return fathom_fail_memory(reterr);
	if (!fathom_reader_read(&s->memory, mapping->start, pages, (size_t)size)) {
		const fathom_err err = unreadable(reterr);

		fathom_pages_free(pages, size);
		return err;
	}
	return object_from(&s->target.session->memory, mapping, pages, size, ret, reterr);
}

/*
 * Reads the first page of the file of mapping *@k from another mapping and sets *@k to that;
 * returns how much it read. Snapshots store that page once for each file.
 */
static size_t read_other_header(const struct fathom_space *s, const struct fathom_maps *maps,
				size_t *k, uint8_t *header)
{
	size_t got = 0;

	for (size_t i = maps->items[*k].first; i < maps->n && !got; i = maps->items[i].next) {
		if (i == *k || !holds_offset(&maps->items[i], 0))
			continue;
		got = s->memory.read(s->memory.data, maps->items[i].start, header, (size_t)s->page);
		if (got)
			*k = i;
	}
	return got;
}

fathom_err fathom_space_image(const struct fathom_space *s, const struct fathom_maps *maps,
			      size_t i, struct fathom_object **ret, bool *ret_bare,
			      struct fathom_errinfo *reterr)
{
	size_t k = mapping_of_offset(maps, i, 0);
	struct fathom_image image;
	uint8_t *header;
	uint64_t bias;
	size_t got;
	fathom_err err = FATHOM_OK;

	if (!maps->items[i].inode)
		return read_vdso(s, &maps->items[i], ret, reterr);
	if (k == maps->n)
		return fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", 0,
				   "the start of its image is not in memory");
	header = malloc((size_t)s->page);
	if (!header)
		return fathom_fail_memory(reterr);
	got = s->memory.read(s->memory.data, maps->items[k].start, header, (size_t)s->page);
	if (!got)
		got = read_other_header(s, maps, &k, header);
	if (!got) {
		err = unreadable(reterr);
	} else if (fathom_image_init((struct fathom_bytes){ header, got }, &image, NULL) ||
		   !fathom_bias_of_mapping(&image, maps, k, s->page, NULL, &bias)) {
		err = fathom_fail(reterr, FATHOM_E_FORMAT, "", 0, "what is mapped is no ELF file");
	}
	if (!err)
		err = read_image(s, &maps->items[k], bias, &image, ret, ret_bare, reterr);
	free(header);
	return err;
}
