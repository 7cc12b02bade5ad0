/* SPDX-License-Identifier: MIT */
/*
 * Single mappings from the kernel, by the ioctl PROCMAP_QUERY on /proc/PID/maps (Linux 6.11,
 * include/uapi/linux/fs.h): microseconds, however many mappings there are.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/file/maps.h"

/* struct procmap_query; the names are the kernel's. */
struct procmap_query {
	uint64_t size;
	uint64_t query_flags;
	uint64_t query_addr;
	uint64_t vma_start;
	uint64_t vma_end;
	uint64_t vma_flags;
	uint64_t vma_page_size;
	uint64_t vma_offset;
	uint64_t inode;
	uint32_t dev_major;
	uint32_t dev_minor;
	uint32_t vma_name_size; /* in: what there is room for; out: with the NUL, 0 for no name */
	uint32_t build_id_size;
	uint64_t vma_name_addr;
	uint64_t build_id_addr;
};

#define PROCMAP_QUERY _IOWR('f', 17, struct procmap_query)

enum { VMA_READABLE = 1, VMA_WRITABLE = 2, VMA_EXECUTABLE = 4 };

/* "start-end rights off major:minor inode name", the longest. */
#define MAX_LINE (PATH_MAX + 128)

/* Questions about one process. */
struct questions {
	int fd; /* of its map */
	char *text;
	size_t size;
	uint64_t end; /* of the last mapping in the text */
};

/* Adds the mapping as a line of the map: so there is one way to read both. */
static bool add_line(struct questions *to, const struct procmap_query *q, const char *name)
{
	/* One that the text has, or another by now. A newline would be written as "\012". */
	if (q->vma_start < to->end || strchr(name, '\n'))
		return q->vma_end == to->end;
	to->size += (size_t)snprintf(
		to->text + to->size, MAX_LINE, "%llx-%llx %c%c%cp %llx %x:%x %llu %s\n",
		(unsigned long long)q->vma_start, (unsigned long long)q->vma_end,
		q->vma_flags & VMA_READABLE ? 'r' : '-', q->vma_flags & VMA_WRITABLE ? 'w' : '-',
		q->vma_flags & VMA_EXECUTABLE ? 'x' : '-', (unsigned long long)q->vma_offset,
		q->dev_major, q->dev_minor, (unsigned long long)q->inode, name);
	to->end = q->vma_end;
	return true;
}

/* Asks for the mapping that holds @avma; false when the answer cannot be had or told. */
static bool ask(struct questions *to, uint64_t avma)
{
	char name[PATH_MAX] = "";
	struct procmap_query q = { .size = sizeof q,
				   .query_addr = avma,
				   .vma_name_size = sizeof name,
				   .vma_name_addr = (uintptr_t)name };

	/* [vsyscall], in the kernel's half, is in the map but not to be asked for. */
	if (avma > INT64_MAX)
		return false;
	/* Of some C libraries ioctl() takes an int, which has no room for the number. */
	if (syscall(SYS_ioctl, to->fd, PROCMAP_QUERY, &q))
		return errno == ENOENT;
	return add_line(to, &q, name);
}

static void sort_addresses(uint64_t *items, const uint64_t *from, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t at = i;

		for (; at && items[at - 1] > from[i]; at--)
			items[at] = items[at - 1];
		items[at] = from[i];
	}
}

fathom_err fathom_maps_query(const char *path, const uint64_t *addresses, size_t n,
			     struct fathom_maps *ret)
{
	struct questions to = { .fd = open(path, O_RDONLY | O_CLOEXEC) };
	uint64_t sorted[FATHOM_MAPS_QUERIES];
	fathom_err err = FATHOM_E_UNSUPPORTED;
	size_t i = 0;

	if (to.fd < 0)
		return FATHOM_E_OS;
	sort_addresses(sorted, addresses, n);
	to.text = malloc(n * MAX_LINE);
	while (to.text && i < n && ask(&to, sorted[i]))
		i++;
	close(to.fd);
	if (i == n)
		err = fathom_maps_parse(to.text, to.size, ret);
	else
		free(to.text);
	if (!err)
		ret->is_part = true;
	return err;
}
