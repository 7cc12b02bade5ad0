/* SPDX-License-Identifier: MIT */
/* Which packages have installed files: by the lists that dpkg keeps in /var/lib/dpkg/info. */
#ifndef FATHOM_CLI_PACKAGES_H
#define FATHOM_CLI_PACKAGES_H

#include <stddef.h>

/* A file, and its package. */
struct packaged {
	const char *path;
	char package[64]; /* "": none is known */
};

/* Sorts @files by their paths, and fills in their packages; reads each list once. */
void packages_find(struct packaged *files, size_t n);

#endif
