/* SPDX-License-Identifier: MIT */
#include "host/stack/code_pages.h"

#include <string.h>

void fathom_code_pages_init(struct fathom_code_pages *p, const struct fathom_reader *memory)
{
	p->memory = memory;
	p->age = 1;
}

void fathom_code_pages_forget(struct fathom_code_pages *p)
{
	p->age++;
}

/* Returns the page that begins at @avma, as it was read. */
static const struct fathom_code_page *get_page(struct fathom_code_pages *p, uint64_t avma)
{
	struct fathom_code_page *page = &p->items[avma / FATHOM_CODE_PAGE % FATHOM_CODE_PAGES];

	if (page->age == p->age && page->avma == avma)
		return page;
	page->avma = avma;
	page->age = p->age;
	page->size =
		(uint32_t)p->memory->read(p->memory->data, avma, page->bytes, sizeof page->bytes);
	return page;
}

static size_t read_pages(void *data, uint64_t avma, void *to, size_t size)
{
	struct fathom_code_pages *p = data;
	size_t done = 0;

	while (done < size) {
		const uint64_t off = (avma + done) % FATHOM_CODE_PAGE;
		const struct fathom_code_page *page = get_page(p, avma + done - off);
		size_t n = FATHOM_CODE_PAGE - (size_t)off;

		n = n < size - done ? n : size - done;
		/* Pieces of memory that was stored may begin or end within a page. */
		if (off + n > page->size)
			return p->memory->read(p->memory->data, avma, to, size);
		memcpy((uint8_t *)to + done, page->bytes + off, n);
		done += n;
	}
	return done;
}

struct fathom_reader fathom_code_pages_reader(struct fathom_code_pages *p)
{
	return (struct fathom_reader){ .read = read_pages, .data = p };
}
