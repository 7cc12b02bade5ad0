/* SPDX-License-Identifier: MIT */
/*
 * overlap NUMBER STYLE: lays so many claims to addresses over each other, which come in random
 * order and overlap: "none" does not, "much" has each in the way of some thousand others.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/base/claims.h"

static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

int main(int argc, char **argv)
{
	const size_t n = argc == 3 ? strtoul(argv[1], NULL, 10) : 0;
	const uint64_t longest = argc == 3 && strcmp(argv[2], "much") == 0 ? n * 8 : 64;
	struct fathom_claim *claims = malloc((n + 1) * sizeof *claims);
	uint64_t seed = 88172645463325252u;
	struct fathom_claim *flat;
	size_t n_flat;

	for (size_t i = 0; claims && i < n; i++) {
		claims[i].start = next_random(&seed) % (n * 64);
		claims[i].end = claims[i].start + 1 + next_random(&seed) % longest;
		claims[i].order = i + 1;
	}
	if (!claims || fathom_claims_flatten(claims, n, &flat, &n_flat))
		return 1;
	printf("%zu\n", n_flat);
	free(flat);
	free(claims);
	return 0;
}
