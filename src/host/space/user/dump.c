/* SPDX-License-Identifier: MIT */
#include "host/space/user/dump.h"

#include <stdlib.h>

#define LEAST_PAGE   UINT64_C(4096)
#define LARGEST_PAGE (UINT64_C(1) << 20)

struct fathom_bytes fathom_dump_from(const struct fathom_dump *d, uint64_t avma)
{
	const size_t behind = FATHOM_BISECT(d->n_pieces, i, d->pieces[i].start <= avma);
	const struct fathom_dump_piece *p = behind ? &d->pieces[behind - 1] : NULL;

	if (!p || avma - p->start >= p->bytes.size)
		return (struct fathom_bytes){ NULL, 0 };
	return bytes_from(p->bytes, avma - p->start);
}

size_t fathom_dump_read(const struct fathom_dump *d, uint64_t avma, void *to, size_t size)
{
	size_t done = 0;

	/* Pieces may be adjacent. */
	while (done < size) {
		const struct fathom_bytes b = fathom_dump_from(d, avma + done);
		const size_t n = b.size < size - done ? (size_t)b.size : size - done;

		if (!n)
			break;
		memcpy((uint8_t *)to + done, b.data, n);
		done += n;
	}
	return done;
}

static size_t read_memory(void *data, uint64_t avma, void *to, size_t size)
{
	return fathom_dump_read(data, avma, to, size);
}

struct fathom_reader fathom_dump_reader(struct fathom_dump *d)
{
	return (struct fathom_reader){ read_memory, NULL, d };
}

const struct fathom_dump_code *fathom_dump_code_at(const struct fathom_dump *d, uint64_t avma)
{
	const size_t low = FATHOM_BISECT(d->n_code, i, d->code[i].end <= avma);

	return low < d->n_code && d->code[low].start <= avma ? &d->code[low] : NULL;
}

const struct fathom_dump_thread *fathom_dump_thread_of(const struct fathom_dump *d, int32_t tid)
{
	const size_t i = FATHOM_BISECT(d->n_threads, k, d->by_tid[k].key < (uint32_t)tid);

	return i < d->n_threads && d->by_tid[i].key == (uint32_t)tid
		       ? &d->threads[d->by_tid[i].value]
		       : NULL;
}

uint64_t fathom_dump_inode(struct fathom_str name)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

	for (uint32_t i = 0; i < name.size; i++)
		hash = (hash ^ (uint8_t)name.data[i]) * UINT64_C(0x100000001b3);
	return hash ? hash : 1;
}

uint64_t fathom_dump_page(uint64_t page)
{
	const bool is_one = page >= LEAST_PAGE && page <= LARGEST_PAGE && !(page & (page - 1));

	return is_one ? page : LEAST_PAGE;
}

void fathom_dump_deinit(struct fathom_dump *d)
{
	fathom_maps_deinit(&d->maps);
	free(d->pieces);
	free(d->files);
	free(d->code);
	free(d->threads);
	free(d->by_tid);
	free(d->kept);
	fathom_file_close(d->file);
}
