/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int fuzz_file(const uint8_t *data, size_t size, char path[64])
{
	const int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	(void)snprintf(path, 64, "/proc/self/fd/%d", fd);
	return fd;
}

struct fathom *fuzz_session(const struct fathom_compat_options *compat)
{
	const struct fathom_options options = { .size = sizeof options,
						.flags = FATHOM_NO_CACHE,
						.compat = compat,
						.threads = 1,
						.memory_budget = 1 << 24 };
	struct fathom *session;

	if (fathom_create(&options, &session, NULL))
		abort();
	return session;
}
