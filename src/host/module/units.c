/* SPDX-License-Identifier: MIT */
#include "host/module/units.h"

#include <stdlib.h>

#include "host/file/file.h"
#include "host/module/worker.h"
#include "safe/base/sort.h"
#include "safe/dwarf/aranges.h"
#include "safe/dwarf/gdb_index.h"
#include "safe/dwarf/ranges.h"

/* Bytes of .debug_info for each bucket: small units are some hundred bytes. */
#define BYTES_PER_BUCKET 4096
#define MIN_BUCKETS      16
#define MAX_BUCKETS      65536

fathom_err fathom_units_init(struct fathom_units *u, const struct fathom_dwarf *dwarf,
			     const struct fathom_object *code, struct fathom_memory *m,
			     struct fathom_notes *notes, const struct fathom_file *file)
{
	const uint64_t wanted = dwarf->section[FATHOM_DEBUG_INFO].size / BYTES_PER_BUCKET;

	u->n_buckets = MIN_BUCKETS;
	while (u->n_buckets < wanted && u->n_buckets < MAX_BUCKETS)
		u->n_buckets *= 2;
	u->buckets = calloc(u->n_buckets, sizeof *u->buckets);
	if (!u->buckets)
		return FATHOM_E_MEMORY;
	u->dwarf = dwarf;
	u->code = code;
	u->memory = m;
	u->notes = notes;
	u->file = file;
	return FATHOM_OK;
}

static void free_map(struct fathom_memory *m, struct fathom_unit_map *map)
{
	if (!map)
		return;
	fathom_memory_uncount(m, map->n * sizeof *map->ranges);
	free(map->ranges);
	free(map);
}

static void free_list(struct fathom_memory *m, struct fathom_unit_list *list)
{
	if (!list)
		return;
	fathom_memory_uncount(m, list->n * sizeof *list->offs);
	free(list->offs);
	free(list);
}

void fathom_units_deinit(struct fathom_units *u,
			 void (*free_data)(struct fathom_unit_data *data, void *arg), void *arg)
{
	struct fathom_unit_node *node = atomic_load(&u->all);

	/* Not by bucket: most buckets are empty, and not even in memory. */
	while (node) {
		struct fathom_unit_node *next = node->next_of_all;

		free_data(atomic_load(&node->data), arg);
		free(node);
		node = next;
	}
	free(u->buckets);
	free_map(u->memory, atomic_load(&u->quick));
	free_map(u->memory, atomic_load(&u->full));
	free_list(u->memory, atomic_load(&u->list));
}

struct fathom_unit_node *fathom_units_node(struct fathom_units *u, uint64_t off)
{
	const uint64_t hash = off * UINT64_C(0x9e3779b97f4a7c15) >> 32;
	_Atomic(struct fathom_unit_node *) *bucket = &u->buckets[hash & (u->n_buckets - 1)];
	struct fathom_unit_node *head = atomic_load_explicit(bucket, memory_order_acquire);
	struct fathom_unit_node *fresh = NULL;

	for (;;) {
		for (struct fathom_unit_node *node = head; node; node = node->next) {
			if (node->off == off) {
				free(fresh);
				return node;
			}
		}
		if (!fresh)
			fresh = calloc(1, sizeof *fresh);
		if (!fresh)
			return NULL;
		fresh->off = off;
		fresh->next = head;
		/* On failure, head is the node that another thread pushed: look again. */
		if (atomic_compare_exchange_strong(bucket, &head, fresh))
			break;
	}
	fresh->next_of_all = atomic_load(&u->all);
	while (!atomic_compare_exchange_strong(&u->all, &fresh->next_of_all, fresh))
		;
	return fresh;
}

/* Takes [low, high) of the unit at @off; returns false to end the reading. */
typedef bool take_fn(const struct fathom_units *u, void *data, uint64_t low, uint64_t high,
		     uint64_t off);

struct unit_ranges {
	FATHOM_ARRAY_OF(struct fathom_unit_range);
};

/* Adds the range to an array, unless there is no code: a linker dropped it. */
static bool add_range(const struct fathom_units *u, void *data, uint64_t low, uint64_t high,
		      uint64_t off)
{
	struct unit_ranges *a = data;

	if (low >= high || !fathom_object_has_code(u->code, low))
		return true;
	return fathom_array_push(a, (struct fathom_unit_range){ low, high, off, high });
}

/* Makes a map of the ranges in @a, which it sorts by their starts and takes over. */
static struct fathom_unit_map *map_from(struct fathom_units *u, struct unit_ranges *a)
{
	struct fathom_unit_map *map = calloc(1, sizeof *map);
	struct fathom_keyed *keyed = malloc((2 * a->n + 1) * sizeof *keyed);
	struct fathom_unit_range *sorted = malloc((a->n + 1) * sizeof *sorted);
	const struct fathom_unit_range *from = a->items;

	if (map && keyed && sorted) {
		for (size_t i = 0; i < a->n; i++)
			keyed[i] = (struct fathom_keyed){ from[i].low, i };
		fathom_sort_keyed(keyed, keyed + a->n, a->n);
		for (size_t i = 0; i < a->n; i++) {
			sorted[i] = from[keyed[i].value];
			if (i && sorted[i - 1].max_high > sorted[i].max_high)
				sorted[i].max_high = sorted[i - 1].max_high;
		}
		map->ranges = sorted;
		map->n = a->n;
		fathom_memory_count(u->memory, a->n * sizeof *sorted);
	} else {
		free(map);
		free(sorted);
		map = NULL;
	}
	free(keyed);
	fathom_array_free(a);
	return map;
}

/* Publishes @map in @slot; frees it if another thread was first. */
static const struct fathom_unit_map *publish_map(struct fathom_units *u,
						 _Atomic(struct fathom_unit_map *) *slot,
						 struct fathom_unit_map *map)
{
	struct fathom_unit_map *expected = NULL;

	if (!map || atomic_compare_exchange_strong(slot, &expected, map))
		return map;
	free_map(u->memory, map);
	return expected;
}

static void note(struct fathom_units *u, struct fathom_errinfo *info)
{
	fathom_errinfo_set_file(info, u->file->path);
	fathom_notes_add(u->notes, info);
}

static bool read_aranges(struct fathom_units *u, take_fn *take, void *data)
{
	struct fathom_aranges a;
	struct fathom_errinfo info;
	uint64_t low;
	uint64_t size;
	uint64_t off;
	fathom_err err;

	fathom_file_will_read(u->file, u->dwarf->section[FATHOM_DEBUG_ARANGES]);
	fathom_aranges_init(&a, u->dwarf);
	while (!(err = fathom_aranges_next(&a, &low, &size, &off, &info)))
		if (!take(u, data, low, low + size, off))
			return false;
	if (err < 0)
		note(u, &info);
	return true;
}

static bool read_gdb_index(struct fathom_units *u, take_fn *take, void *data)
{
	struct fathom_gdb_index g;
	struct fathom_errinfo info;
	uint64_t low;
	uint64_t size;
	uint64_t off;
	fathom_err err = fathom_gdb_index_init(&g, u->dwarf, &info);

	if (!err)
		fathom_file_will_read(u->file,
				      (struct fathom_bytes){ g.ranges.p, cur_left(&g.ranges) });
	while (!err) {
		err = fathom_gdb_index_next(&g, &low, &size, &off, &info);
		if (!err && !take(u, data, low, low + size, off))
			return false;
	}
	if (err < 0)
		note(u, &info);
	return true;
}

/* Reads all ranges of .gdb_index or, without one, of .debug_aranges. */
static bool read_index(struct fathom_units *u, take_fn *take, void *data)
{
	return u->dwarf->section[FATHOM_GDB_INDEX].size ? read_gdb_index(u, take, data)
							: read_aranges(u, take, data);
}

const struct fathom_unit_map *fathom_units_quick(struct fathom_units *u)
{
	struct fathom_unit_map *map = atomic_load_explicit(&u->quick, memory_order_acquire);
	struct unit_ranges ranges = { 0 };

	if (map)
		return map;
	if (!read_index(u, add_range, &ranges)) {
		fathom_array_free(&ranges);
		return NULL;
	}
	return publish_map(u, &u->quick, map_from(u, &ranges));
}

static bool add_die_ranges(struct fathom_units *u, struct unit_ranges *ranges,
			   const struct fathom_unit *unit, const struct fathom_die *die,
			   uint64_t *left, bool *ret_any)
{
	struct fathom_ranges r;
	uint64_t low;
	uint64_t high;

	if (!fathom_ranges_of_die(&r, unit, die, left))
		return true;
	while (!fathom_ranges_next(&r, &low, &high, NULL)) {
		*ret_any = true;
		if (!add_range(u, ranges, low, high, unit->header.off))
			return false;
	}
	return true;
}

/* Adds the ranges of the unit's functions, as some producers leave the root without addresses. */
static bool add_function_ranges(struct fathom_units *u, struct fathom_worker *w,
				struct unit_ranges *ranges, uint64_t off, uint64_t *left)
{
	struct fathom_die_reader r;
	struct fathom_unit unit;
	struct fathom_die die;
	uint32_t depth;
	bool any;
	bool done = true;

	if (fathom_worker_open_unit(w, u->dwarf, off, &unit, &die, NULL))
		return true;
	fathom_die_reader_init(&r, &unit, unit.header.die_off);
	while (done &&
	       !fathom_die_next(&r, FATHOM_DIE_BIT(FATHOM_DIE_FUNCTION), &die, &depth, NULL))
		done = fathom_keeps_pace(&w->pace) &&
		       add_die_ranges(u, ranges, &unit, &die, left, &any);
	fathom_worker_close_unit(w, &unit);
	return done;
}

static bool has_code_units(const struct fathom_unit_header *h)
{
	return h->type != DW_UT_type && h->type != DW_UT_split_type;
}

/* Adds the ranges of the unit at @off; notes a damaged one and leaves it out. */
static bool add_unit_ranges(struct fathom_units *u, struct fathom_worker *w,
			    struct unit_ranges *ranges, uint64_t off, uint64_t *left)
{
	struct fathom_errinfo info;
	struct fathom_unit unit;
	struct fathom_die root;
	bool any = false;
	bool done;

	if (fathom_worker_open_root(w, u->dwarf, off, &unit, &root, &info)) {
		note(u, &info);
		return true;
	}
	done = add_die_ranges(u, ranges, &unit, &root, left, &any);
	fathom_worker_close_unit(w, &unit);
	if (done && !any && root.has_children && root.tag == DW_TAG_compile_unit)
		done = add_function_ranges(u, w, ranges, off, left);
	return done;
}

/* Bytes after which pages are given back: only roots of units are read, the kernel maps more. */
#define GIVE_BACK_BYTES (UINT64_C(16) << 20)

/* Units whose root is read between two questions: some milliseconds. */
#define ROOTS_PER_QUESTION 1024

static bool read_roots(struct fathom_units *u, struct fathom_worker *w, struct unit_ranges *ranges)
{
	const struct fathom_bytes section = u->dwarf->section[FATHOM_DEBUG_INFO];
	struct fathom_unit_header header;
	struct fathom_errinfo info;
	struct fathom_pace pace = fathom_pace_init(w->session, ROOTS_PER_QUESTION);
	uint64_t left = fathom_ranges_allowed(u->dwarf, u->dwarf);
	uint64_t kept = 0;

	for (uint64_t off = 0; off < section.size; off = header.end_off) {
		const fathom_err err = fathom_unit_header_read(u->dwarf, off, &header, &info);

		if (!fathom_keeps_pace(&pace))
			return false;
		if (err) {
			note(u, &info);
			/* A unit of an unknown version says nothing about the next ones. */
			if (err != FATHOM_E_UNSUPPORTED ||
			    !fathom_unit_end(u->dwarf, off, &header.end_off))
				return true;
		} else if (has_code_units(&header) && !add_unit_ranges(u, w, ranges, off, &left)) {
			return false;
		}
		if (off - kept >= GIVE_BACK_BYTES) {
			fathom_file_give_back(u->file, bytes_slice(section, kept, off - kept));
			kept = off;
		}
	}
	return true;
}

const struct fathom_unit_map *fathom_units_full(struct fathom_units *u, struct fathom_worker *w)
{
	struct fathom_unit_map *map = atomic_load_explicit(&u->full, memory_order_acquire);
	struct unit_ranges ranges = { 0 };

	if (map)
		return map;
	if (!read_roots(u, w, &ranges)) {
		fathom_array_free(&ranges);
		return NULL;
	}
	return publish_map(u, &u->full, map_from(u, &ranges));
}

/* Returns the number of ranges that start at or before @svma. */
static size_t ranges_from(const struct fathom_unit_map *map, uint64_t svma)
{
	return FATHOM_BISECT(map->n, i, map->ranges[i].low <= svma);
}

/* Inserts @off in the @n sorted @offs; returns their new number. */
static size_t insert_candidate(uint64_t offs[FATHOM_UNIT_CANDIDATES], size_t n, uint64_t off)
{
	size_t at = n;

	while (at && offs[at - 1] > off)
		at--;
	if ((at && offs[at - 1] == off) || at == FATHOM_UNIT_CANDIDATES)
		return n;
	n = n < FATHOM_UNIT_CANDIDATES ? n + 1 : n;
	memmove(&offs[at + 1], &offs[at], (n - at - 1) * sizeof *offs);
	offs[at] = off;
	return n;
}

size_t fathom_unit_candidates(const struct fathom_unit_map *map, uint64_t svma,
			      uint64_t offs[FATHOM_UNIT_CANDIDATES])
{
	size_t n = 0;

	for (size_t i = ranges_from(map, svma); i && map->ranges[i - 1].max_high > svma; i--)
		if (map->ranges[i - 1].high > svma)
			n = insert_candidate(offs, n, map->ranges[i - 1].unit_off);
	return n;
}

/* The candidates for svma found so far. */
struct search {
	uint64_t svma;
	uint64_t *offs;
	size_t n;
};

static bool take_candidate(const struct fathom_units *u, void *data, uint64_t low, uint64_t high,
			   uint64_t off)
{
	struct search *s = data;

	if (low <= s->svma && s->svma < high && fathom_object_has_code(u->code, low))
		s->n = insert_candidate(s->offs, s->n, off);
	return true;
}

size_t fathom_units_scan(struct fathom_units *u, uint64_t svma,
			 uint64_t offs[FATHOM_UNIT_CANDIDATES])
{
	struct search s = { svma, offs, 0 };

	(void)read_index(u, take_candidate, &s);
	return s.n;
}

/* Reads the offsets of all units from their headers. */
static struct fathom_unit_list *read_list(struct fathom_units *u)
{
	const uint64_t size = u->dwarf->section[FATHOM_DEBUG_INFO].size;
	struct fathom_unit_list *list = calloc(1, sizeof *list);
	struct fathom_u64_array offs = { 0 };
	struct fathom_unit_header header;

	if (!list)
		return NULL;
	for (uint64_t off = 0; off < size; off = header.end_off) {
		const fathom_err err = fathom_unit_header_read(u->dwarf, off, &header, NULL);

		if (err && (err != FATHOM_E_UNSUPPORTED ||
			    !fathom_unit_end(u->dwarf, off, &header.end_off)))
			break;
		if (!fathom_array_room(&offs, 1)) {
			fathom_array_free(&offs);
			free(list);
			return NULL;
		}
		offs.items[offs.n++] = off;
	}
	list->offs = offs.items;
	list->n = offs.n;
	fathom_memory_count(u->memory, list->n * sizeof *list->offs);
	return list;
}

bool fathom_units_containing(struct fathom_units *u, uint64_t die_off, uint64_t *ret_unit_off)
{
	struct fathom_unit_list *list = atomic_load_explicit(&u->list, memory_order_acquire);
	struct fathom_unit_list *expected = NULL;
	size_t i;

	if (!list) {
		list = read_list(u);
		if (list && !atomic_compare_exchange_strong(&u->list, &expected, list)) {
			free_list(u->memory, list);
			list = expected;
		}
	}
	if (!list || die_off >= u->dwarf->section[FATHOM_DEBUG_INFO].size)
		return false;
	i = FATHOM_BISECT(list->n, k, list->offs[k] <= die_off);
	if (!i)
		return false;
	*ret_unit_off = list->offs[i - 1];
	return true;
}
