/* SPDX-License-Identifier: MIT */
/*
 * A validated view of an ELF file's bytes: 32 or 64 bit, either byte order (System V gABI, chapters
 * 4 and 5).
 *
 * The view owns nothing and allocates nothing. Headers are read on demand, with their bounds
 * checked, into one form for both classes. Symbol tables, notes and unwind tables have readers of
 * their own.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_ELF_IMAGE_H
#define FATHOM_ELF_IMAGE_H

#include "safe/base/bytes.h"
#include "safe/base/error.h"
#include "safe/elf/constants.h"

struct fathom_image {
	struct fathom_bytes bytes;
	uint64_t entry;
	uint64_t phoff;
	uint64_t shoff;
	uint32_t phnum; /* PN_XNUM and extended section counts resolved */
	uint32_t shnum;
	uint32_t shstrndx;
	uint32_t flags; /* EF_ of the machine */
	uint16_t phentsize;
	uint16_t shentsize;
	uint16_t type;    /* ET_ */
	uint16_t machine; /* EM_ */
	bool is64;
	bool swap; /* the file's byte order is not this machine's */
};

struct fathom_section {
	struct fathom_str name; /* data is NULL if the name is damaged */
	uint64_t flags;
	uint64_t addr;
	uint64_t off;
	uint64_t size;
	uint64_t entsize;
	uint64_t align;
	uint32_t type;
	uint32_t link;
	uint32_t info;
};

struct fathom_segment {
	uint64_t off;
	uint64_t vaddr;
	uint64_t filesz;
	uint64_t memsz;
	uint64_t align;
	uint32_t type;
	uint32_t flags;
};

/* Returns whether @bytes start with the ELF magic. */
bool fathom_image_is_elf(struct fathom_bytes bytes);

/*
 * Reads the ELF header of @bytes into @ret. A header table that reaches past the end of the file is
 * cut to the entries that are there, so that these can still answer.
 */
fathom_err fathom_image_init(struct fathom_bytes bytes, struct fathom_image *ret,
			     struct fathom_errinfo *reterr);

/*
 * Reads section or segment header @i into @ret. Returns false if @i is out of range or the header
 * is not in the file.
 */
bool fathom_image_section(const struct fathom_image *image, uint32_t i, struct fathom_section *ret);
bool fathom_image_segment(const struct fathom_image *image, uint32_t i, struct fathom_segment *ret);

/* Returns the bytes of a section; none for SHT_NOBITS, or if they reach past the file's end. */
struct fathom_bytes fathom_image_section_bytes(const struct fathom_image *image,
					       const struct fathom_section *section);

/* Returns the file's bytes that are loaded at [@svma, @svma + @size), if all are there. */
struct fathom_bytes fathom_image_loaded_bytes(const struct fathom_image *image, uint64_t svma,
					      uint64_t size);

/*
 * Returns the file's bytes of the first loaded segment that has @svma in the file; *@ret_start is
 * the svma of the first byte. Empty if there is no such segment.
 */
struct fathom_bytes fathom_image_loaded_at(const struct fathom_image *image, uint64_t svma,
					   uint64_t *ret_start);

/* Returns the bytes from @svma to the end of its segment's part of the file, if there are any. */
struct fathom_bytes fathom_image_loaded_from(const struct fathom_image *image, uint64_t svma);

/*
 * Returns the GNU build-id (the description of the first NT_GNU_BUILD_ID note with owner "GNU" in
 * any PT_NOTE segment or SHT_NOTE section); empty if there is none.
 */
struct fathom_bytes fathom_image_build_id(const struct fathom_image *image);
/* Does the same for the first note of @type whose owner is @owner. */
struct fathom_bytes fathom_image_note(const struct fathom_image *image, uint32_t type,
				      const char *owner);
/* Finds the svma that the byte at @off of the file is loaded at; false if it is not loaded. */
bool fathom_image_svma(const struct fathom_image *image, uint64_t off, uint64_t *ret);

/* Returns the build-id among @notes, the bytes of a segment or section with that alignment. */
struct fathom_bytes fathom_notes_build_id(struct fathom_bytes notes, uint64_t align, bool swap);

/* Returns the bytes of an address field of this image's class: 4 or 8. */
static inline uint8_t fathom_image_address_size(const struct fathom_image *image)
{
	return image->is64 ? 8 : 4;
}

#endif
