/* SPDX-License-Identifier: MIT */
/*
 * Reads what a program has in memory when it starts, as far as its file says: the contents of
 * segments or, in relocatable files, of sections.
 */
#include "host/file/object.h"

/* Returns whether @o is a debug file: it has headers of code, but not the bytes. */
static bool is_debug_file(const struct fathom_object *o)
{
	for (uint32_t i = 1; i < o->n_sections; i++) {
		const struct fathom_section *s = &o->sections[i].header;

		if (s->type == SHT_NOBITS && (s->flags & SHF_ALLOC) && (s->flags & SHF_EXECINSTR))
			return true;
	}
	return false;
}

/* Consecutive memory: bytes of the file, or zeros. */
struct piece {
	const uint8_t *data; /* NULL if zeros */
	uint64_t size;       /* 0 if nothing is there */
};

static struct piece piece_of_section(const struct fathom_object *o, uint64_t svma)
{
	const uint32_t i = fathom_object_section_at(o, svma);
	const struct fathom_object_section *s = &o->sections[i];
	struct fathom_bytes bytes;

	if (!i)
		return (struct piece){ NULL, 0 };
	if (s->header.type == SHT_NOBITS)
		return (struct piece){ NULL, s->header.size - (svma - s->base) };
	bytes = bytes_from(fathom_image_section_bytes(&o->image, &s->header), svma - s->base);
	return (struct piece){ bytes.data, bytes.size };
}

static struct piece piece_of_segment(const struct fathom_object *o, uint64_t svma)
{
	struct fathom_segment s;

	for (uint32_t i = 0; i < o->image.phnum; i++) {
		uint64_t off;
		struct fathom_bytes bytes;

		if (!fathom_image_segment(&o->image, i, &s) || s.type != PT_LOAD ||
		    svma < s.vaddr || svma - s.vaddr >= s.memsz)
			continue;
		off = svma - s.vaddr;
		if (off >= s.filesz)
			return (struct piece){ NULL, s.memsz - off };
		bytes = bytes_from(bytes_slice(o->image.bytes, s.off, s.filesz), off);
		return (struct piece){ bytes.data, bytes.size };
	}
	return (struct piece){ NULL, 0 };
}

static struct piece piece_at(const struct fathom_object *o, uint64_t svma, bool debug)
{
	const bool by_segments = o->image.phnum && o->image.type != ET_REL;
	const uint32_t i = fathom_object_section_at(o, svma);

	if (debug && (!i || o->sections[i].header.type == SHT_NOBITS))
		return (struct piece){ NULL, 0 };
	return by_segments && !debug ? piece_of_segment(o, svma) : piece_of_section(o, svma);
}

uint64_t fathom_object_read(const struct fathom_object *o, uint64_t svma, uint8_t *to,
			    uint64_t size)
{
	const bool debug = is_debug_file(o);
	uint64_t done = 0;

	while (done < size) {
		struct piece p = piece_at(o, svma + done, debug);

		if (!p.size)
			break;
		if (p.size > size - done)
			p.size = size - done;
		if (p.data)
			memcpy(to + done, p.data, (size_t)p.size);
		else
			memset(to + done, 0, (size_t)p.size);
		done += p.size;
		if (svma + done < svma)
			break;
	}
	return done;
}
