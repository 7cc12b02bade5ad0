/* SPDX-License-Identifier: MIT */
/*
 * Reads memory as it was, even if it was not stored. Cores omit file mappings that were never
 * written to (core(5), coredump_filter); snapshots omit all memory. Such memory is read from the
 * file, once that is known to be the mapped one.
 */
#include <unistd.h>

#include "host/space/user/mapped_files.h"

void fathom_space_memory_pin(struct fathom_space_memory *m)
{
	const struct fathom_space_ops *ops = m->space->ops;

	m->fd = ops->open_memory ? ops->open_memory(m->space) : -1;
	m->is_opened = true;
	m->is_pinned = ops->open_memory != NULL;
}

static size_t read_memory(void *data, uint64_t avma, void *to, size_t size)
{
	struct fathom_space_memory *m = data;

	if (!m->is_opened) {
		fathom_space_memory_pin(m);
		m->is_pinned = false;
	}
	if (m->fd >= 0)
		return m->space->ops->read_open(m->space, m->fd, avma, to, size, &m->is_gone);
	return m->is_pinned ? 0 : m->space->ops->read(m->space, avma, to, size);
}

static size_t read_each(void *data, const struct fathom_reader_piece *pieces, size_t n, uint8_t *to)
{
	const struct fathom_space_memory *m = data;

	return m->fd < 0 ? 0 : m->space->ops->read_each(m->space, pieces, n, to);
}

struct fathom_reader fathom_space_memory_init(struct fathom_space_memory *m,
					      const struct fathom_space *s)
{
	*m = (struct fathom_space_memory){ .space = s, .fd = -1 };
	return (struct fathom_reader){ read_memory, s->ops->read_each ? read_each : NULL, m };
}

void fathom_space_memory_close(struct fathom_space_memory *m)
{
	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
}

/*
 * Returns whether @svma is in a segment that neither the program nor the dynamic linker (RELRO)
 * writes to.
 */
static bool is_constant(const struct fathom_image *image, uint64_t svma)
{
	struct fathom_segment s;

	for (uint32_t i = 0; i < image->phnum; i++)
		if (fathom_image_segment(image, i, &s) && s.type == PT_LOAD &&
		    svma - s.vaddr < s.filesz)
			return !(s.flags & PF_W);
	return false;
}

/* Reads from the file mapped at @avma, up to the end of the mapping; returns how much. */
static size_t read_mapped(struct fathom_space_view *v, uint64_t avma, uint8_t *to, size_t size)
{
	const size_t at = fathom_maps_at(&v->maps, avma);
	const struct fathom_space_file *f;
	uint64_t left;
	uint64_t svma;

	if (at == v->maps.n || !v->maps.items[at].inode || fathom_space_look_up(v, at) ||
	    v->of[at].reason)
		return 0;
	f = fathom_space_used_file(v, at)->file;
	svma = avma - v->of[at].bias;
	/* An image comes from the same memory, with zeros where that was missing. */
	if (f->is_image || !is_constant(&f->module->main->image, svma))
		return 0;
	left = v->maps.items[at].end - avma;
	return (size_t)fathom_object_read(f->module->main, svma, to, left < size ? left : size);
}

/* Reads the bytes after the first @done of @size at @avma; returns how many there are now. */
static size_t read_rest(struct fathom_space_view *v, uint64_t avma, uint8_t *to, size_t size,
			size_t done)
{
	size_t got = 1;

	/* Stored and missing parts may alternate. */
	while (done < size && got) {
		got = read_mapped(v, avma + done, to + done, size - done);
		done += got;
		if (done < size)
			done += v->raw.read(v->raw.data, avma + done, to + done, size - done);
	}
	return done;
}

size_t fathom_space_view_read(struct fathom_space_view *v, uint64_t avma, void *to, size_t size)
{
	const size_t done = v->raw.read(v->raw.data, avma, to, size);

	return done == size || v->space->target.is_live ? done : read_rest(v, avma, to, size, done);
}
