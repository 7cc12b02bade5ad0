/* SPDX-License-Identifier: MIT */
/*
 * driver FILE...: runs a fuzz target on files, without libFuzzer: what was found once is tried
 * again by every test run, with any compiler. Prints TAP.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

static int run_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data = NULL;
	size_t size = 0;
	size_t got;
	uint8_t chunk[4096];

	if (!file)
		return 1;
	while ((got = fread(chunk, 1, sizeof chunk, file)) != 0) {
		data = realloc(data, size + got);
		if (!data)
			abort();
		memcpy(data + size, chunk, got);
		size += got;
	}
	(void)fclose(file);
	/* An empty input has no bytes to point to; targets get a pointer all the same. */
	if (!data)
		data = calloc(1, 1);
	(void)LLVMFuzzerTestOneInput(data, size);
	free(data);
	return 0;
}

int main(int argc, char **argv)
{
	int failed = 0;

	for (int i = 1; i < argc; i++)
		failed += run_file(argv[i]);
	printf("%sok 1 - %s: %d inputs\n", failed ? "not " : "", argv[0], argc - 1);
	return failed != 0;
}
