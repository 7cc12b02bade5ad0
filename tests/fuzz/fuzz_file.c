/* SPDX-License-Identifier: MIT */
/* Whole files through the public interface: opening, names, lines, inlined calls. */
#include "fuzz.h"

#include <elf.h>
#include <fathom/fathom.h>
#include <unistd.h>

static void ask(struct fathom_target *target, const uint64_t *addresses, size_t n, uint32_t flags,
		enum fathom_alias alias)
{
	const struct fathom_symbolize_options options = { .size = sizeof options,
							  .flags = flags,
							  .alias = alias };
	struct fathom_answers *answers;

	if (fathom_symbolize(target, &options, addresses, n, &answers, NULL))
		return;
	for (size_t i = 0; i < n; i++) {
		const struct fathom_answer *a = fathom_answers_get(answers, i);
		const struct fathom_frame *frame = fathom_answers_frame(answers, a->frame);

		for (; frame; frame = fathom_answers_frame(answers, frame->outer))
			fuzz_use(frame->line);
		if (a->symbol != FATHOM_NONE)
			fuzz_use(fathom_answers_function(answers, a->symbol)->name_size);
	}
	fathom_answers_free(answers);
}

/* Where variables are declared, for the symbols of the file. */
static void ask_variables(struct fathom_target *target)
{
	struct fathom_symbol_info symbol;
	uint64_t addresses[64];
	size_t n = 0;

	for (size_t i = 1; n < 64 && !fathom_target_symbol(target, i, &symbol); i++)
		if (symbol.type == STT_OBJECT)
			addresses[n++] = symbol.value;
	ask(target, addresses, n, FATHOM_NAMES_ONLY | FATHOM_VARIABLES, FATHOM_ALIAS_LLVM);
	ask(target, addresses, n, FATHOM_VARIABLES, FATHOM_ALIAS_GNU);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fathom_target *target;
	struct fathom *session = fuzz_session(FATHOM_DECLARATIONS, NULL);
	uint64_t addresses[16];
	uint64_t text = 0;
	char path[64];
	const int fd = fuzz_file(data, size, path);

	if (!fathom_target_open_file(session, path, &target, NULL)) {
		(void)fathom_target_section_address(target, ".text", 0, &text);
		for (size_t i = 0; i < 16; i++)
			addresses[i] = text + 3 * i * i;
		ask(target, addresses, 2, 0, FATHOM_ALIAS_FATHOM);
		ask(target, addresses, 16, FATHOM_ONE_SHOT, FATHOM_ALIAS_FATHOM);
		ask(target, addresses, 16, FATHOM_NAMES_ONLY, FATHOM_ALIAS_FATHOM);
		ask_variables(target);
		fathom_target_release(target);
	}
	fathom_destroy(session);
	close(fd);
	return 0;
}
