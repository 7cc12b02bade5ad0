/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include <string.h>

static size_t read_memory(void *data, uint64_t avma, void *to, size_t size)
{
	struct fuzz_changing *m = data;
	const uint64_t off = avma - m->base;

	m->n_reads++;
	for (int i = 0; i < FUZZ_CHANGES; i++)
		if (m->change[i].when == m->n_reads && m->change[i].off < m->size)
			m->bytes[m->change[i].off] = m->change[i].value;
	if (avma < m->base || off >= m->size)
		return 0;
	if (size > m->size - off)
		size = (size_t)(m->size - off);
	memcpy(to, m->bytes + off, size);
	return size;
}

static size_t read_each(void *data, const struct fathom_reader_piece *pieces, size_t n, uint8_t *to)
{
	size_t i = 0;

	for (; i < n && read_memory(data, pieces[i].avma, to, pieces[i].size) == pieces[i].size;
	     i++)
		to += pieces[i].size;
	return i;
}

struct fathom_reader fuzz_changing_fill(struct fuzz_changing *m, uint64_t base, struct fuzz *f)
{
	struct fathom_bytes rest;

	m->base = base;
	m->n_reads = 0;
	for (int i = 0; i < FUZZ_CHANGES; i++) {
		m->change[i].when = fuzz_byte(f);
		m->change[i].off = (uint32_t)fuzz_byte(f) << 8 | fuzz_byte(f);
		m->change[i].value = fuzz_byte(f);
	}
	rest = fuzz_rest(f);
	m->size = rest.size < FUZZ_MEMORY ? (size_t)rest.size : FUZZ_MEMORY;
	if (m->size)
		memcpy(m->bytes, rest.data, m->size);
	return (struct fathom_reader){ read_memory, read_each, m };
}
