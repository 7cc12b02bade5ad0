/* SPDX-License-Identifier: MIT */
/*
 * Profiles of other programs: all that is told of them agrees, and rows and trees have the weight
 * of their samples. Opened within a memory budget of 64 MB.
 */
#include "fuzz.h"

#include <unistd.h>

#include "profile_checks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fathom *session = fuzz_session(NULL);
	struct fathom_profile *p = NULL;
	char path[64];
	const int fd = fuzz_file(data, size, path);

	if (!fathom_profile_open(session, path, &p, NULL))
		check_profile(p);
	fathom_profile_free(p);
	close(fd);
	fathom_destroy(session);
	return 0;
}
