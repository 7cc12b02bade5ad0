/* SPDX-License-Identifier: MIT */
#include "host/module/cache_key.h"

#include "host/module/module.h"

/* At most COMPARED bytes of a section are compared, in pieces of PIECE bytes. */
#define COMPARED (UINT64_C(1) << 20)
#define PIECE    (UINT64_C(64) << 10)
#define N_PIECES (COMPARED / PIECE)

static uint64_t mix(uint64_t sum, uint64_t value)
{
	const uint64_t both[2] = { sum, value };

	return fathom_index_check(both, sizeof both);
}

static uint64_t mix_bytes(uint64_t sum, struct fathom_bytes bytes)
{
	return mix(sum, fathom_index_check(bytes.data, (size_t)bytes.size));
}

/* Returns the checksum of the build-id and of the headers, which say where everything is. */
static uint64_t layout_of(const struct fathom_object *o)
{
	const struct fathom_image *image = &o->image;
	uint64_t sum = mix_bytes(image->entry, o->build_id);

	sum = mix_bytes(sum, bytes_slice(image->bytes, image->phoff,
					 (uint64_t)image->phnum * image->phentsize));
	sum = mix_bytes(sum, bytes_slice(image->bytes, image->shoff,
					 (uint64_t)image->shnum * image->shentsize));
	return sum ? sum : 1;
}

static struct fathom_index_source source_of(const struct fathom_object *o)
{
	const struct fathom_file_id *id = &o->file->id;

	if (o->build_id.size)
		return (struct fathom_index_source){ .size = o->image.bytes.size,
						     .layout = layout_of(o) };
	return (struct fathom_index_source){
		.size = id->size, .mtime_ns = id->mtime_ns, .device = id->device, .inode = id->inode
	};
}

/* Collects the objects that answers come from; returns how many. */
static uint32_t objects_of(const struct fathom_module *m,
			   const struct fathom_object *o[FATHOM_INDEX_SOURCES])
{
	uint32_t n = 0;

	o[n++] = m->main;
	if (m->debug && m->debug != m->main)
		o[n++] = m->debug;
	return n;
}

uint32_t fathom_cache_sources(const struct fathom_module *m,
			      struct fathom_index_source source[FATHOM_INDEX_SOURCES])
{
	const struct fathom_object *o[FATHOM_INDEX_SOURCES];
	const uint32_t n = objects_of(m, o);

	for (uint32_t i = 0; i < n; i++)
		source[i] = source_of(o[i]);
	return n;
}

static bool is_table(const struct fathom_section *s)
{
	return s->type == SHT_SYMTAB || s->type == SHT_DYNSYM || s->type == SHT_STRTAB;
}

/*
 * Returns whether answers can depend on @s: on any section that is not loaded; of the loaded ones,
 * on symbol tables, relocations and .eh_frame.
 */
static bool is_compared(const struct fathom_section *s)
{
	return s->type != SHT_NOBITS && s->type != SHT_NULL &&
	       (!(s->flags & SHF_ALLOC) || is_table(s) || s->type == SHT_RELA ||
		s->type == SHT_REL || (s->name.data && str_starts(s->name, ".eh_frame")));
}

/* The comparison of one object. With announces it only starts readahead. */
struct comparison {
	const struct fathom_object *o;
	bool announces;
	uint64_t left; /* bytes that may still be read: sections of a hostile file may overlap */
	uint64_t sum;
};

static void compare_bytes(struct comparison *c, struct fathom_bytes bytes)
{
	bytes.size = bytes.size < c->left ? bytes.size : c->left;
	c->left -= bytes.size;
	if (c->announces) {
		fathom_file_will_read(c->o->file, bytes);
	} else {
		c->sum = mix(c->sum, fathom_index_check(bytes.data, (size_t)bytes.size));
		fathom_file_give_back(c->o->file, bytes);
	}
}

/* Compares pieces of @bytes, both ends among them. */
static void compare_pieces(struct comparison *c, struct fathom_bytes bytes)
{
	const uint64_t step = (bytes.size - PIECE) / (N_PIECES - 1);

	for (uint64_t i = 0; i + 1 < N_PIECES; i++)
		compare_bytes(c, bytes_slice(bytes, i * step, PIECE));
	compare_bytes(c, bytes_slice(bytes, bytes.size - PIECE, PIECE));
}

static void compare_object(struct comparison *c)
{
	for (uint32_t i = 0; i < c->o->n_sections && c->left; i++) {
		const struct fathom_section *s = &c->o->sections[i].header;
		const struct fathom_bytes bytes = fathom_image_section_bytes(&c->o->image, s);

		if (!is_compared(s) || !bytes.size)
			continue;
		if (is_table(s) || bytes.size <= COMPARED)
			compare_bytes(c, bytes);
		else
			compare_pieces(c, bytes);
	}
	/* Without sections, the segments say where the symbols are. */
	if (!c->o->n_sections && c->left > COMPARED)
		compare_pieces(c, c->o->image.bytes);
	else if (!c->o->n_sections)
		compare_bytes(c, c->o->image.bytes);
}

uint64_t fathom_cache_content(const struct fathom_module *m)
{
	const struct fathom_object *o[FATHOM_INDEX_SOURCES];
	const uint32_t n = objects_of(m, o);
	uint64_t sum = 0;

	/* The first round starts all readahead, the second one reads. */
	for (uint32_t i = 0; i < 2 * n; i++) {
		struct comparison c = { .o = o[i % n], .announces = i < n, .sum = sum };

		c.left = c.o->image.bytes.size;
		if (c.o->build_id.size)
			compare_object(&c);
		sum = c.sum;
	}
	return sum;
}

uint64_t fathom_cache_identity(const struct fathom_module *m)
{
	const struct fathom_object *o[FATHOM_INDEX_SOURCES];
	const uint32_t n = objects_of(m, o);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct fathom_file_id *id = &o[i]->file->id;

		sum = mix(mix(sum, id->device), id->inode);
		sum = mix(mix(sum, id->size), (uint64_t)id->mtime_ns);
	}
	return sum ? sum : 1;
}
