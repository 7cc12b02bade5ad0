/* SPDX-License-Identifier: MIT */
#include "host/fleet/resident.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/base/page.h"

uint64_t fathom_resident_file_bytes(void)
{
	const int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	char text[128];
	ssize_t size = -1;
	char *at = text;

	if (fd >= 0) {
		size = read(fd, text, sizeof text - 1);
		(void)close(fd);
	}
	if (size <= 0)
		return 0;
	text[size] = '\0';
	/* The third number: after the size and all resident pages, those of files. */
	(void)strtoull(at, &at, 10);
	(void)strtoull(at, &at, 10);
	return strtoull(at, NULL, 10) * fathom_page_size();
}
