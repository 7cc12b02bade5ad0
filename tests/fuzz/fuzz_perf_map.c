/* SPDX-License-Identifier: MIT */
/* Perf maps: read at once or as they grow, they say the same of every address. */
#include "fuzz.h"

#include <stdlib.h>
#include <unistd.h>

#include "host/jit/perf_map.h"

static struct fathom_memory memory = { .budget = UINT64_C(1) << 30 };

static void check_same(const struct fathom_perf_map *a, const struct fathom_perf_map *b,
		       uint64_t avma)
{
	struct fathom_perf_symbol x;
	struct fathom_perf_symbol y;
	const bool found = fathom_perf_map_at(a, avma, &x);

	if (found != fathom_perf_map_at(b, avma, &y))
		abort();
	if (!found)
		return;
	if (x.start != y.start || x.size != y.size || !str_equal(x.name, y.name) ||
	    avma < x.start || avma - x.start >= x.size)
		abort();
	fuzz_use_str(x.name);
}

/* Looks at both ends of all stretches, and beside them. */
static void check_all(const struct fathom_perf_map *a, const struct fathom_perf_map *b)
{
	for (unsigned l = 0; l < a->table.n_levels; l++)
		for (size_t i = 0; i < a->table.level[l].n; i++) {
			const struct fathom_claim *c = &a->table.level[l].claims[i];

			check_same(a, b, c->start - 1);
			check_same(a, b, c->start);
			check_same(a, b, c->end - 1);
			check_same(a, b, c->end);
		}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = fuzz_init(data, size);
	const uint64_t steps = fuzz_byte(&f) + UINT64_C(1);
	const struct fathom_bytes text = fuzz_rest(&f);
	struct fathom_perf_map whole = { 0 };
	struct fathom_perf_map grown = { 0 };
	char path[64];
	int fd;

	if (!text.size)
		return 0;
	fd = fuzz_file(text.data, (size_t)text.size, path);
	fathom_perf_map_init(&whole, &memory);
	fathom_perf_map_init(&grown, &memory);
	if (fathom_perf_map_read(&whole, fd, text.size))
		abort();
	for (uint64_t i = 1; i <= steps; i++)
		if (fathom_perf_map_read(&grown, fd, text.size * i / steps))
			abort();
	check_all(&whole, &grown);
	check_all(&grown, &whole);
	fathom_perf_map_clear(&whole);
	fathom_perf_map_clear(&grown);
	close(fd);
	if (memory.used)
		abort();
	return 0;
}
