/* SPDX-License-Identifier: MIT */
/* Cores: what they say of memory and files, and what is answered about it. */
#include "fuzz.h"

#include <fathom/fathom.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/space/user/core.h"

/* What has to be true of any dump: both lists are in order, and nothing is read but pieces. */
static void check_order(const struct fathom_dump *d)
{
	uint8_t bytes[64];

	for (size_t i = 0; i < d->maps.n; i++) {
		const struct fathom_mapping *m = &d->maps.items[i];

		if (m->start >= m->end || (i && d->maps.items[i - 1].end > m->start))
			abort();
		fuzz_use_str(m->name);
		fuzz_use(fathom_dump_read(d, m->end - 32, bytes, sizeof bytes));
	}
	for (size_t i = 0; i < d->n_pieces; i++) {
		const struct fathom_dump_piece *p = &d->pieces[i];

		if (!p->bytes.size || fathom_dump_from(d, p->start).data != p->bytes.data ||
		    (i && p->start - p[-1].start < p[-1].bytes.size))
			abort();
		fuzz_use(p->bytes.data[0] + p->bytes.data[p->bytes.size - 1]);
	}
}

static void read_alone(const uint8_t *data, size_t size)
{
	struct fathom_memory memory = { .budget = UINT64_MAX };
	struct fathom_notes notes = { 0 };
	struct fathom_dump dump;
	struct fathom_file *file;
	uint8_t *pages = fathom_pages_alloc(size);

	if (!pages || fathom_file_wrap(&memory, "core", pages, size, size, &file)) {
		fathom_pages_free(pages, size);
		return;
	}
	memcpy(pages, data, size);
	if (!fathom_core_file_read(file, &notes, &dump, NULL)) {
		check_order(&dump);
		fathom_dump_deinit(&dump);
	}
	fathom_notes_deinit(&notes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fathom_target *target;
	struct fathom_answers *answers;
	struct fathom *session;
	uint64_t addresses[8];
	char path[64];
	int fd;

	if (!size)
		return 0;
	session = fuzz_session(NULL);
	if (fathom_core_file_is((struct fathom_bytes){ data, size }))
		read_alone(data, size);
	fd = fuzz_file(data, size, path);
	if (!fathom_target_open_file(session, path, NULL, &target, NULL)) {
		for (size_t i = 0; i < 8; i++)
			addresses[i] = 0x400000 + i * 0x800;
		if (!fathom_symbolize(target, NULL, addresses, NULL, 8, &answers, NULL))
			fathom_answers_free(answers);
		fathom_target_release(target);
	}
	fathom_destroy(session);
	close(fd);
	return 0;
}
