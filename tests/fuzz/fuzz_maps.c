/* SPDX-License-Identifier: MIT */
/* Memory maps: lines as a kernel would never write them, and what a file says of its mappings. */
#include "fuzz.h"

#include <stdlib.h>

#include "host/file/bias.h"

/* What has to be true of any map: mappings are in order, and each is found by its addresses. */
static void check_order(const struct fathom_maps *maps)
{
	for (size_t i = 0; i < maps->n; i++) {
		const struct fathom_mapping *m = &maps->items[i];

		if (m->start >= m->end || (i && maps->items[i - 1].end > m->start) ||
		    fathom_maps_at(maps, m->start) != i || fathom_maps_at(maps, m->end - 1) != i ||
		    fathom_maps_at(maps, m->end) == i)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = fuzz_init(data, size);
	const struct fathom_bytes elf = fuzz_section(&f);
	const struct fathom_bytes rest = fuzz_rest(&f);
	struct fathom_image image;
	struct fathom_maps maps;
	char *text = malloc((size_t)rest.size + 1);
	uint64_t bias;

	if (!text)
		return 0;
	if (rest.size)
		memcpy(text, rest.data, (size_t)rest.size);
	if (fathom_maps_parse(text, (size_t)rest.size, &maps))
		return 0;
	check_order(&maps);
	/* Each mapping is compared with all others. */
	if (maps.n < 256 && !fathom_image_init(elf, &image, NULL) && image.phnum < 64)
		for (size_t i = 0; i < maps.n; i++)
			if (fathom_bias_of_mapping(&image, &maps, i, 4096, NULL, &bias))
				(void)fathom_bias_covers(&image, bias, maps.items[i].start);
	fathom_maps_deinit(&maps);
	return 0;
}
