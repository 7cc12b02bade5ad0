/* SPDX-License-Identifier: MIT */
/*
 * Jitdumps: read at once or as they grow, they say the same. What tells how to unwind code covers
 * that code.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <unistd.h>

#include "host/jit/jitdump.h"
#include "host/jit/code_frames.h"

static struct fathom_memory memory = { .budget = UINT64_C(1) << 28 };

static bool same_hit(const struct fathom_jitdump_hit *a, const struct fathom_jitdump_hit *b)
{
	return a->start == b->start && a->size == b->size && str_equal(a->name, b->name) &&
	       str_equal(a->file, b->file) && a->line == b->line;
}

static void check(const struct fathom_jitdump *a, const struct fathom_jitdump *b, uint64_t avma)
{
	struct fathom_jitdump_hit x = { 0 };
	struct fathom_jitdump_hit y = { 0 };
	const bool found = fathom_jitdump_at(a, avma, &x);

	if (found != fathom_jitdump_at(b, avma, &y) || (found && !same_hit(&x, &y)))
		abort();
	fuzz_use_str(x.name);
	fuzz_use_str(x.file);
}

static bool same_unwinding(const struct fathom_jitdump_unwinding *a,
			   const struct fathom_jitdump_unwinding *b)
{
	return a->start == b->start && a->size == b->size && a->off == b->off;
}

/* Reads how the code at @avma is unwound, as far as that is told. */
static void unwind(const struct fathom_jitdump *a, const struct fathom_jitdump *b, int fd,
		   uint64_t avma)
{
	const struct fathom_jit_code_layout layout = { .address_size = 8, .swap = a->swap };
	struct fathom_jit_code_frames frames = { .memory = &memory };
	struct fathom_jitdump_unwinding x = { 0 };
	struct fathom_jitdump_unwinding y = { 0 };
	const struct fathom_fde *fde;
	uint8_t *bytes;
	size_t size;
	const bool found = fathom_jitdump_unwinding_at(a, avma, &x);

	if (found != fathom_jitdump_unwinding_at(b, avma, &y) || !same_unwinding(&x, &y))
		abort();
	if (!found || fathom_jitdump_read_unwinding(a, fd, x.off, &bytes, &size))
		return;
	if (!fathom_jit_code_frames_take(&frames, &layout, bytes, size, x.start, x.size, &fde)) {
		if (avma - fde->low >= fde->high - fde->low)
			abort();
		for (uint64_t i = 0; i < fde->instructions.size; i++)
			fuzz_use(fde->instructions.data[i]);
	}
	fathom_jit_code_frames_clear(&frames);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = fuzz_init(data, size);
	const uint64_t half = fuzz_byte(&f) * UINT64_C(64);
	const struct fathom_bytes bytes = fuzz_rest(&f);
	struct fathom_jitdump whole = { 0 };
	struct fathom_jitdump grown = { 0 };
	uint64_t damage;
	char path[64];
	int fd;

	if (!bytes.size)
		return 0;
	fd = fuzz_file(bytes.data, (size_t)bytes.size, path);
	fathom_jitdump_init(&whole, &memory);
	fathom_jitdump_init(&grown, &memory);
	(void)fathom_jitdump_read(&whole, fd, bytes.size, &damage);
	(void)fathom_jitdump_read(&grown, fd, half < bytes.size ? half : bytes.size, &damage);
	(void)fathom_jitdump_read(&grown, fd, bytes.size, &damage);
	for (unsigned l = 0; l < whole.table.n_levels; l++)
		for (size_t i = 0; i < whole.table.level[l].n && i < 256; i++) {
			const struct fathom_claim *c = &whole.table.level[l].claims[i];

			check(&whole, &grown, c->start);
			check(&whole, &grown, c->end - 1);
			check(&whole, &grown, c->end);
			unwind(&whole, &grown, fd, c->start);
		}
	fathom_jitdump_clear(&whole);
	fathom_jitdump_clear(&grown);
	close(fd);
	if (memory.used)
		abort();
	return 0;
}
