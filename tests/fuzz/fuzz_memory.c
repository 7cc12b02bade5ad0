/* SPDX-License-Identifier: MIT */
/*
 * A module as it stands in memory, read by a handler: the dynamic section, symbols, strings and
 * hash tables may say anything. Around it there is nothing that can be read.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "safe/self/unprepared.h"

#define ROOM (UINT64_C(1) << 17)
#define HOLE UINT64_C(65536)

static uint8_t *room(void)
{
	static uint8_t *pages;

	if (pages)
		return pages;
	pages = mmap(NULL, ROOM + 2 * HOLE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED || mprotect(pages + HOLE, ROOM, PROT_READ | PROT_WRITE))
		abort();
	pages += HOLE;
	return pages;
}

/* What a name has to be: text with an end, of a symbol that covers the address. */
static void check_name(const struct fathom_symbol *s, struct fathom_str name, uint64_t svma,
		       size_t cap)
{
	if (!name.size || name.size >= cap || name.data[name.size] || svma < s->value ||
	    svma - s->value >= (s->size ? s->size : 1))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = fuzz_init(data, size);
	const uint64_t dynamic = fuzz_number(&f) % ROOM;
	const uint64_t svma = fuzz_number(&f) % ROOM;
	const size_t cap = (size_t)fuzz_byte(&f) * 4 + 1;
	const struct fathom_bytes image = fuzz_rest(&f);
	const uint64_t used = image.size < ROOM ? image.size : ROOM;
	struct fathom_self_dynamic d;
	struct fathom_symbol s;
	struct fathom_str name;
	uint8_t *at = room();
	uintptr_t start;
	char buf[1024];

	/* The end of the image is the end of what can be read. */
	at += ROOM - used;
	if (used)
		memcpy(at, image.data, (size_t)used);
	start = (uintptr_t)at;
	if (!fathom_self_read_dynamic(start + (uintptr_t)dynamic, start, start + (uintptr_t)used,
				      start, &d))
		return 0;
	if (fathom_self_dynamic_symbol(&d, start + (uintptr_t)svma, buf, cap, &s, &name))
		check_name(&s, name, svma, cap);
	return 0;
}
