/* SPDX-License-Identifier: MIT */
#include "host/trace/runtime_maps.h"

#include <string.h>
#include <sys/syscall.h>

#include "host/base/page.h"

bool fathom_runtime_maps_is_shared(const struct fathom_mapping *m)
{
	static const char name[] = FATHOM_TRACE_MAPPING_NAME;

	return m->name.size >= sizeof name - 1 && !memcmp(m->name.data, name, sizeof name - 1);
}

/*
 * Returns whether @start and @size can be those of a tracer's mapping: of no file, all of it there.
 */
static bool is_mapped(const struct fathom_maps *maps, uint64_t start, uint64_t size)
{
	const uint64_t page = fathom_page_size();
	uint64_t at = start;

	if (start % page || size % page || start + size < start)
		return false;
	for (size_t i = fathom_maps_at(maps, start); at < start + size; i++) {
		if (i >= maps->n || maps->items[i].start > at || maps->items[i].inode)
			return false;
		at = maps->items[i].end;
	}
	return true;
}

/* Reads the list that belongs to shared memory @m. */
static bool read_list(const struct fathom_tracee *t, const struct fathom_maps *maps,
		      const struct fathom_mapping *m, struct fathom_runtime_maps *ret)
{
	struct fathom_trace_head head;
	struct fathom_trace_mappings *list = &ret->list;

	if (!fathom_tracee_read(t, m->start, &head, sizeof head) ||
	    head.magic != FATHOM_TRACE_MAGIC || head.version != FATHOM_TRACE_VERSION)
		return false;
	ret->avma = head.mappings;
	ret->head_size = m->end - m->start;
	ret->is_free = false;
	list->head = m->start;
	list->n = list->n_places = 0;
	if (!head.mappings)
		return true;
	if (!fathom_tracee_read(t, head.mappings, list, sizeof *list) ||
	    list->magic != FATHOM_TRACE_MAPPINGS_MAGIC || list->head != m->start ||
	    list->n > FATHOM_TRACE_MAPPINGS)
		return false;
	for (size_t i = 0; i < list->n; i++)
		if (!is_mapped(maps, list->items[i].start, list->items[i].size))
			list->items[i].size = 0;
	return true;
}

void fathom_runtime_maps_find(const struct fathom_tracee *t, const struct fathom_maps *maps,
			      struct fathom_runtime_lists *ret)
{
	struct fathom_runtime_maps m;

	for (size_t i = 0; i < maps->n; i++)
		if (fathom_runtime_maps_is_shared(&maps->items[i]) &&
		    read_list(t, maps, &maps->items[i], &m) && !fathom_array_push(ret, m))
			return;
}

void fathom_runtime_maps_add(struct fathom_runtime_maps *m, uint64_t start, uint64_t size,
			     enum fathom_trace_mapped kind)
{
	struct fathom_trace_mappings *list = &m->list;

	if (list->n == FATHOM_TRACE_MAPPINGS)
		return;
	list->items[list->n].start = start;
	list->items[list->n].size = size;
	list->items[list->n++].kind = kind;
}

void fathom_runtime_maps_remove(struct fathom_runtime_maps *m, uint64_t start)
{
	for (size_t i = 0; i < m->list.n; i++)
		if (m->list.items[i].start == start)
			m->list.items[i].size = 0;
}

bool fathom_runtime_maps_write(const struct fathom_tracee *t, const struct fathom_runtime_maps *m)
{
	return fathom_tracee_write(t, m->avma, &m->list, sizeof m->list);
}

bool fathom_runtime_maps_has(const struct fathom_runtime_maps *m, uint64_t avma)
{
	for (size_t i = 0; i < m->list.n; i++)
		if (avma - m->list.items[i].start < m->list.items[i].size)
			return true;
	return false;
}

bool fathom_runtime_maps_has_code(const struct fathom_runtime_maps *m, uint64_t avma)
{
	for (size_t i = 0; i < m->list.n; i++)
		if (m->list.items[i].kind == FATHOM_TRACE_MAPPED_CODE &&
		    avma - m->list.items[i].start < m->list.items[i].size)
			return true;
	return false;
}

static void unmap(const struct fathom_tracee *t, pid_t tid, uint64_t start, uint64_t size)
{
	(void)fathom_tracee_call(t, tid, SYS_munmap, (uint64_t[6]){ start, size });
}

void fathom_runtime_maps_unmap(const struct fathom_tracee *t, pid_t tid,
			       struct fathom_runtime_maps *m, bool keeps_words)
{
	const uint64_t page = fathom_page_size();
	const uint64_t own = m->avma / page * page;
	const uint64_t head = m->list.head;

	for (size_t i = 0; i < m->list.n; i++) {
		const uint64_t start = m->list.items[i].start;
		const uint64_t size = m->list.items[i].size;

		if (!size || start == own || t->call_sp - start < size ||
		    (keeps_words && m->list.items[i].kind == FATHOM_TRACE_MAPPED_WORDS))
			continue;
		/* Whoever finds the list takes it at its word: the program may map there next. */
		m->list.items[i].size = 0;
		if (fathom_runtime_maps_write(t, m))
			unmap(t, tid, start, size);
	}
	if (own && !keeps_words)
		unmap(t, tid, own, page);
	if (head && keeps_words)
		unmap(t, tid, head + page, m->head_size - page);
	else if (head)
		unmap(t, tid, head, m->head_size);
}
