/* SPDX-License-Identifier: MIT */
#include "safe/elf/image.h"

#include "safe/base/cursor.h"
#include "safe/base/limits.h"
#include "safe/elf/note.h"

/* Reads one field of a header: 8 bytes in 64-bit files, 4 in 32-bit ones. */
static uint64_t cur_word(struct fathom_cursor *c, bool is64)
{
	return is64 ? cur_u64(c) : cur_u32(c);
}

static bool host_is_big(void)
{
	return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
}

bool fathom_image_is_elf(struct fathom_bytes bytes)
{
	return bytes.size >= SELFMAG && memcmp(bytes.data, ELFMAG, SELFMAG) == 0;
}

/* Returns how many of the @wanted entries of @entsize bytes at @off the file really holds. */
static uint32_t entries_present(const struct fathom_image *image, uint64_t off, uint16_t entsize,
				uint64_t wanted, uint32_t limit)
{
	uint64_t present;

	if (!off || !entsize || off >= image->bytes.size)
		return 0;
	present = (image->bytes.size - off) / entsize;
	if (present > wanted)
		present = wanted;
	return present > limit ? limit : (uint32_t)present;
}

/*
 * Reads the counts that are too large for the ELF header from section header 0: sh_size is the
 * number of sections, sh_link the index of the name table, sh_info the number of segments.
 */
static void resolve_extended_counts(struct fathom_image *image, uint64_t *shnum, uint64_t *phnum)
{
	struct fathom_section first;
	const uint32_t saved = image->shnum;

	if (!image->shoff || !image->shentsize)
		return;
	image->shnum = 1;
	if (fathom_image_section(image, 0, &first)) {
		if (!*shnum)
			*shnum = first.size;
		if (image->shstrndx == SHN_XINDEX)
			image->shstrndx = first.link;
		if (*phnum == PN_XNUM && first.info)
			*phnum = first.info;
	}
	image->shnum = saved;
}

/* Returns whether @bytes are of an archive (System V and thin ones, ar(5)). */
static bool is_archive(struct fathom_bytes bytes)
{
	return bytes.size >= 8 &&
	       (memcmp(bytes.data, "!<arch>\n", 8) == 0 || memcmp(bytes.data, "!<thin>\n", 8) == 0);
}

fathom_err fathom_image_init(struct fathom_bytes bytes, struct fathom_image *ret,
			     struct fathom_errinfo *reterr)
{
	struct fathom_image image = { .bytes = bytes };
	struct fathom_cursor c;
	uint64_t shnum;
	uint64_t phnum;

	if (is_archive(bytes))
		return fathom_fail(reterr, FATHOM_E_FORMAT, "", 0,
				   "an archive, not an ELF file: ar x takes its members out");
	if (!fathom_image_is_elf(bytes))
		return fathom_fail(reterr, FATHOM_E_FORMAT, "", 0, "not an ELF file");
	if (bytes.size < EI_NIDENT)
		return fathom_fail(reterr, FATHOM_E_CORRUPT, "", bytes.size,
				   "the file ends inside the ELF header");
	if (bytes.data[EI_CLASS] != ELFCLASS32 && bytes.data[EI_CLASS] != ELFCLASS64)
		return fathom_fail(reterr, FATHOM_E_CORRUPT, "", EI_CLASS, "unknown ELF class");
	if (bytes.data[EI_DATA] != ELFDATA2LSB && bytes.data[EI_DATA] != ELFDATA2MSB)
		return fathom_fail(reterr, FATHOM_E_CORRUPT, "", EI_DATA, "unknown ELF byte order");
	image.is64 = bytes.data[EI_CLASS] == ELFCLASS64;
	image.swap = (bytes.data[EI_DATA] == ELFDATA2MSB) != host_is_big();

	c = cur_init(bytes, image.swap);
	cur_skip(&c, EI_NIDENT);
	image.type = cur_u16(&c);
	image.machine = cur_u16(&c);
	cur_skip(&c, 4); /* e_version */
	image.entry = cur_word(&c, image.is64);
	image.phoff = cur_word(&c, image.is64);
	image.shoff = cur_word(&c, image.is64);
	image.flags = cur_u32(&c);
	cur_skip(&c, 2); /* e_ehsize */
	image.phentsize = cur_u16(&c);
	phnum = cur_u16(&c);
	image.shentsize = cur_u16(&c);
	shnum = cur_u16(&c);
	image.shstrndx = cur_u16(&c);
	if (!cur_ok(&c))
		return fathom_fail(reterr, FATHOM_E_CORRUPT, "", bytes.size,
				   "the file ends inside the ELF header");
	if (image.phentsize < (image.is64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr)))
		image.phentsize = 0;
	if (image.shentsize < (image.is64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr)))
		image.shentsize = 0;
	resolve_extended_counts(&image, &shnum, &phnum);
	image.phnum =
		entries_present(&image, image.phoff, image.phentsize, phnum, FATHOM_MAX_SEGMENTS);
	image.shnum =
		entries_present(&image, image.shoff, image.shentsize, shnum, FATHOM_MAX_SECTIONS);
	*ret = image;
	return FATHOM_OK;
}

/* Reads a section header. Its name is resolved through another section. */
static bool read_section(const struct fathom_image *image, uint32_t i, struct fathom_section *ret,
			 uint32_t *ret_name)
{
	struct fathom_cursor c;

	if (i >= image->shnum)
		return false;
	c = cur_init(bytes_slice(image->bytes, image->shoff + (uint64_t)i * image->shentsize,
				 image->shentsize),
		     image->swap);
	*ret_name = cur_u32(&c);
	ret->type = cur_u32(&c);
	ret->flags = cur_word(&c, image->is64);
	ret->addr = cur_word(&c, image->is64);
	ret->off = cur_word(&c, image->is64);
	ret->size = cur_word(&c, image->is64);
	ret->link = cur_u32(&c);
	ret->info = cur_u32(&c);
	ret->align = cur_word(&c, image->is64);
	ret->entsize = cur_word(&c, image->is64);
	return cur_ok(&c);
}

/* Returns the name at @off of the name table @names; none if it is damaged or too long. */
static struct fathom_str section_name(const struct fathom_image *image,
				      const struct fathom_section *names, uint32_t off)
{
	struct fathom_bytes rest = bytes_from(fathom_image_section_bytes(image, names), off);

	if (rest.size > FATHOM_MAX_SECTION_NAME)
		rest.size = FATHOM_MAX_SECTION_NAME;
	return fathom_bytes_str(rest, 0);
}

bool fathom_image_section(const struct fathom_image *image, uint32_t i, struct fathom_section *ret)
{
	struct fathom_section section = { 0 };
	struct fathom_section names = { 0 };
	uint32_t name;
	uint32_t unused;

	if (!read_section(image, i, &section, &name))
		return false;
	if (read_section(image, image->shstrndx, &names, &unused))
		section.name = section_name(image, &names, name);
	*ret = section;
	return true;
}

bool fathom_image_segment(const struct fathom_image *image, uint32_t i, struct fathom_segment *ret)
{
	struct fathom_segment s = { 0 };
	struct fathom_cursor c;

	if (i >= image->phnum)
		return false;
	c = cur_init(bytes_slice(image->bytes, image->phoff + (uint64_t)i * image->phentsize,
				 image->phentsize),
		     image->swap);
	s.type = cur_u32(&c);
	if (image->is64)
		s.flags = cur_u32(&c);
	s.off = cur_word(&c, image->is64);
	s.vaddr = cur_word(&c, image->is64);
	(void)cur_word(&c, image->is64); /* p_paddr */
	s.filesz = cur_word(&c, image->is64);
	s.memsz = cur_word(&c, image->is64);
	if (!image->is64)
		s.flags = cur_u32(&c);
	s.align = cur_word(&c, image->is64);
	if (!cur_ok(&c))
		return false;
	*ret = s;
	return true;
}

struct fathom_bytes fathom_image_section_bytes(const struct fathom_image *image,
					       const struct fathom_section *section)
{
	if (section->type == SHT_NOBITS || section->type == SHT_NULL)
		return (struct fathom_bytes){ NULL, 0 };
	return bytes_slice(image->bytes, section->off, section->size);
}

struct fathom_bytes fathom_image_loaded_at(const struct fathom_image *image, uint64_t svma,
					   uint64_t *ret_start)
{
	struct fathom_segment s;

	for (uint32_t i = 0; i < image->phnum; i++) {
		if (!fathom_image_segment(image, i, &s) || s.type != PT_LOAD)
			continue;
		/* Such a segment is invalid, and would lay the file's bytes over other segments. */
		if (s.filesz > s.memsz)
			continue;
		if (svma >= s.vaddr && svma - s.vaddr < s.filesz && s.off <= image->bytes.size) {
			const struct fathom_bytes file = bytes_from(image->bytes, s.off);

			*ret_start = s.vaddr;
			return (struct fathom_bytes){ file.data,
						      s.filesz < file.size ? s.filesz : file.size };
		}
	}
	return (struct fathom_bytes){ NULL, 0 };
}

struct fathom_bytes fathom_image_loaded_from(const struct fathom_image *image, uint64_t svma)
{
	uint64_t start = svma;
	const struct fathom_bytes loaded = fathom_image_loaded_at(image, svma, &start);

	return bytes_from(loaded, svma - start);
}

struct fathom_bytes fathom_image_loaded_bytes(const struct fathom_image *image, uint64_t svma,
					      uint64_t size)
{
	return bytes_slice(fathom_image_loaded_from(image, svma), 0, size);
}

/* Returns the descriptor of the first note of @type of @owner among @notes that has one. */
static struct fathom_bytes find_note(struct fathom_bytes notes, uint64_t align, bool swap,
				     uint32_t type, const char *owner)
{
	struct fathom_cursor c = cur_init(notes, swap);
	struct fathom_note note;

	while (fathom_note_next(&c, align, &note))
		if (fathom_note_is(&note, type, owner) && note.desc.size)
			return note.desc;
	return (struct fathom_bytes){ NULL, 0 };
}

struct fathom_bytes fathom_notes_build_id(struct fathom_bytes notes, uint64_t align, bool swap)
{
	return find_note(notes, align, swap, NT_GNU_BUILD_ID, "GNU");
}

/* Takes the size of @notes from *@left; returns none of them if they are larger. */
static struct fathom_bytes within(struct fathom_bytes notes, uint64_t *left)
{
	if (notes.size > *left)
		return (struct fathom_bytes){ NULL, 0 };
	*left -= notes.size;
	return notes;
}

struct fathom_bytes fathom_image_build_id(const struct fathom_image *image)
{
	return fathom_image_note(image, NT_GNU_BUILD_ID, "GNU");
}

struct fathom_bytes fathom_image_note(const struct fathom_image *image, uint32_t type,
				      const char *owner)
{
	/* Notes do not overlap: those of either table have at most the size of the file. */
	uint64_t of_segments = image->bytes.size;
	uint64_t of_sections = image->bytes.size;
	struct fathom_bytes found = { NULL, 0 };
	struct fathom_segment segment;
	struct fathom_section section;

	for (uint32_t i = 0; i < image->phnum && !found.size; i++)
		if (fathom_image_segment(image, i, &segment) && segment.type == PT_NOTE)
			found = find_note(
				within(bytes_slice(image->bytes, segment.off, segment.filesz),
				       &of_segments),
				segment.align, image->swap, type, owner);
	for (uint32_t i = 0; i < image->shnum && !found.size; i++)
		if (fathom_image_section(image, i, &section) && section.type == SHT_NOTE)
			found = find_note(
				within(fathom_image_section_bytes(image, &section), &of_sections),
				section.align, image->swap, type, owner);
	return found;
}

bool fathom_image_svma(const struct fathom_image *image, uint64_t off, uint64_t *ret)
{
	struct fathom_segment s;

	for (uint32_t i = 0; i < image->phnum; i++)
		if (fathom_image_segment(image, i, &s) && s.type == PT_LOAD && off >= s.off &&
		    off - s.off < s.filesz) {
			*ret = s.vaddr + (off - s.off);
			return true;
		}
	return false;
}
