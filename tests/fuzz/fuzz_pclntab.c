/* SPDX-License-Identifier: MIT */
/* Programs of Go whose .gopclntab, module's data and trees of inlined calls are any bytes. */
#include "fuzz.h"

#include <unistd.h>

/* Addresses that are asked for: of code, as tests/golang/table.py lays it out. */
#define N_ADDRESSES 64

static void use_text(const char *text, uint32_t size)
{
	for (uint32_t i = 0; text && i < size; i++)
		fuzz_use((uint8_t)text[i]);
}

static void use_answers(const struct fathom_answers *answers)
{
	for (size_t i = 0; i < N_ADDRESSES; i++) {
		const struct fathom_answer *a = fathom_answers_get(answers, i);

		use_text(a->symbol, a->symbol_size);
		for (const struct fathom_frame *f = a->frame; f; f = f->outer) {
			use_text(f->function, f->function_size);
			use_text(f->file, f->file_size);
			fuzz_use(f->line);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *dirs[] = { "/nonexistent", NULL };
	const struct fathom_target_options where = { .size = sizeof where, .debug_dirs = dirs };
	struct fathom *session = fuzz_session(NULL);
	struct fathom_target *target;
	struct fathom_answers *answers;
	uint64_t addresses[N_ADDRESSES];
	char path[64];
	const int fd = fuzz_file(data, size, path);

	for (uint64_t i = 0; i < N_ADDRESSES; i++)
		addresses[i] = 0x1000 + 4 * i;
	if (!fathom_target_open_file(session, path, &where, &target, NULL)) {
		if (!fathom_symbolize(target, NULL, addresses, NULL, N_ADDRESSES, &answers, NULL)) {
			use_answers(answers);
			fathom_answers_free(answers);
		}
		fathom_target_release(target);
	}
	fathom_destroy(session);
	close(fd);
	return 0;
}
