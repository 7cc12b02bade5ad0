/* SPDX-License-Identifier: MIT */
/* Debian's libgcc asks glibc for the object that an address is in: _dl_find_object(3), for musl. */
#include <link.h>
#include <stdint.h>
#include <string.h>

struct found {
	unsigned long long flags;
	void *start;
	void *end;
	void *link_map;
	void *eh_frame; /* PT_GNU_EH_FRAME */
	unsigned long long reserved[7];
};

struct question {
	uintptr_t address;
	struct found *ret;
};

int _dl_find_object(void *address, struct found *ret);

static int look(struct dl_phdr_info *info, size_t size, void *data)
{
	const struct question *q = data;
	uintptr_t eh_frame = 0;
	int is_in = 0;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME)
			eh_frame = start;
		if (info->dlpi_phdr[i].p_type != PT_LOAD || q->address < start ||
		    q->address - start >= info->dlpi_phdr[i].p_memsz)
			continue;
		is_in = 1;
		q->ret->start = (void *)start;
		q->ret->end = (void *)(start + info->dlpi_phdr[i].p_memsz);
	}
	q->ret->eh_frame = (void *)eh_frame;
	return is_in && eh_frame;
}

int _dl_find_object(void *address, struct found *ret)
{
	struct question q = { (uintptr_t)address, ret };

	memset(ret, 0, sizeof *ret);
	return dl_iterate_phdr(look, &q) ? 0 : -1;
}
