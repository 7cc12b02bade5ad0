/* SPDX-License-Identifier: MIT */
/* Whole files through the public interface: opening, names, lines, inlined calls. */
#include "fuzz.h"

#include <elf.h>
#include <fathom/compat.h>
#include <fathom/fathom.h>
#include <unistd.h>

static void ask(struct fathom_target *target, const uint64_t *addresses, size_t n, uint32_t flags,
		const struct fathom_compat_symbolize *compat)
{
	const struct fathom_symbolize_options options = { .size = sizeof options,
							  .flags = flags,
							  .compat = compat };
	struct fathom_compat_name name;
	struct fathom_answers *answers;

	if (fathom_symbolize(target, &options, addresses, NULL, n, &answers, NULL))
		return;
	for (size_t i = 0; i < n; i++) {
		const struct fathom_answer *a = fathom_answers_get(answers, i);
		const struct fathom_frame *frame = a->frame;

		for (; frame; frame = frame->outer) {
			fuzz_use(frame->line);
			if (compat && fathom_compat_frame_name(frame, &name))
				fuzz_use(name.decl_line);
		}
		if (a->symbol)
			fuzz_use(a->symbol_size);
		if (compat && fathom_compat_symbol_name(answers, i, &name))
			fuzz_use(name.name_size);
	}
	fathom_answers_free(answers);
}

/* Where variables are declared, for the symbols of the file. */
static void ask_variables(struct fathom_target *target)
{
	struct fathom_compat_symbolize rules = { .size = sizeof rules,
						 .flags = FATHOM_VARIABLES,
						 .alias = FATHOM_ALIAS_LLVM };
	struct fathom_symbol_info symbol;
	uint64_t addresses[64];
	size_t n = 0;

	for (size_t i = 1; n < 64 && !fathom_target_symbol(target, i, &symbol); i++)
		if (symbol.type == STT_OBJECT)
			addresses[n++] = symbol.value;
	ask(target, addresses, n, FATHOM_NAMES_ONLY, &rules);
	rules.alias = FATHOM_ALIAS_GNU;
	ask(target, addresses, n, 0, &rules);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct fathom_compat_options rules = { .size = sizeof rules,
						     .flags = FATHOM_DECLARATIONS };
	struct fathom_target *target;
	struct fathom *session = fuzz_session(&rules);
	uint64_t addresses[16];
	uint64_t text = 0;
	char path[64];
	const int fd = fuzz_file(data, size, path);

	if (!fathom_target_open_file(session, path, NULL, &target, NULL)) {
		(void)fathom_target_section_address(target, ".text", 0, &text);
		for (size_t i = 0; i < 16; i++)
			addresses[i] = text + 3 * i * i;
		ask(target, addresses, 2, 0, NULL);
		ask(target, addresses, 16, FATHOM_ONE_SHOT, NULL);
		ask(target, addresses, 16, FATHOM_NAMES_ONLY, NULL);
		ask_variables(target);
		fathom_target_release(target);
	}
	fathom_destroy(session);
	close(fd);
	return 0;
}
