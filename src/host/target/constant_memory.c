/* SPDX-License-Identifier: MIT */
/*
 * Memory as it was, also where it was not stored: cores leave out what has been mapped from files
 * and was not written to (core(5), coredump_filter); a snapshot leaves out all. There the file has
 * it, which is known to be the one that was mapped.
 */
#include <unistd.h>

#include "host/target/view.h"

void fathom_space_memory_open(struct fathom_space_memory *m, const struct fathom_space *s)
{
	*m = (struct fathom_space_memory){ s, s->ops->open_memory ? s->ops->open_memory(s) : -1 };
}

size_t fathom_space_memory_read(const struct fathom_space_memory *m, uint64_t avma, void *to,
				size_t size)
{
	bool gone = false;

	return m->fd < 0 ? fathom_space_read(m->space, avma, to, size)
			 : m->space->ops->read_open(m->space, m->fd, avma, to, size, &gone);
}

void fathom_space_memory_close(struct fathom_space_memory *m)
{
	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
}

/* Whether @svma is in a segment that programs do not write to, nor the dynamic linker (RELRO). */
static bool is_constant(const struct fathom_image *image, uint64_t svma)
{
	struct fathom_segment s;

	for (uint32_t i = 0; i < image->phnum; i++)
		if (fathom_image_segment(image, i, &s) && s.type == PT_LOAD &&
		    svma - s.vaddr < s.filesz)
			return !(s.flags & PF_W);
	return false;
}

/* Reads from the file at @avma, as far as its mapping goes; returns how much. */
static size_t read_mapped(struct fathom_space_batch *b, uint64_t avma, uint8_t *to, size_t size)
{
	const size_t at = fathom_maps_at(&b->maps, avma);
	const struct fathom_space_file *f;
	uint64_t left;
	uint64_t svma;

	if (at == b->maps.n || !b->maps.items[at].inode || fathom_space_batch_look_up(b, at) ||
	    b->of[at].reason)
		return 0;
	f = fathom_space_batch_file(b, at)->file;
	svma = avma - b->of[at].bias;
	/* An image was made of the same memory, and has zeros where that had nothing. */
	if (f->is_image || !is_constant(&f->module->main->image, svma))
		return 0;
	left = b->maps.items[at].end - avma;
	return (size_t)fathom_object_read(f->module->main, svma, to, left < size ? left : size);
}

/* Reads what is behind the first @done of @size bytes at @avma; returns how many there are then. */
static size_t read_rest(struct fathom_space_batch *b, uint64_t avma, uint8_t *to, size_t size,
			size_t done)
{
	size_t got = 1;

	/* What was stored and what was not may take turns. */
	while (done < size && got) {
		got = read_mapped(b, avma + done, to + done, size - done);
		done += got;
		if (done < size)
			done += fathom_space_read(b->space, avma + done, to + done, size - done);
	}
	return done;
}

size_t fathom_space_batch_read(struct fathom_space_batch *b, uint64_t avma, void *to, size_t size)
{
	const size_t done = fathom_space_read(b->space, avma, to, size);

	return done == size || b->space->is_live ? done : read_rest(b, avma, to, size, done);
}

size_t fathom_space_read_mapped(struct fathom_space *s, uint64_t avma, void *to, size_t size)
{
	struct fathom_space_batch b;
	size_t done = fathom_space_read(s, avma, to, size);

	if (done == size || s->is_live || fathom_space_batch_begin(s, &b, NULL))
		return done;
	done = read_rest(&b, avma, to, size, done);
	fathom_space_batch_end(&b);
	return done;
}
