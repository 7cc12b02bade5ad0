/* SPDX-License-Identifier: MIT */
/*
 * many MILLISECONDS ADDRESS FILE...: asks one session, which may ask debuginfod for so long, for
 * the address in each file. Prints the reason of each answer.
 */
#include <fathom/fathom.h>
#include <stdio.h>
#include <stdlib.h>

static const char *ask(struct fathom *session, const char *path, uint64_t address)
{
	struct fathom_target *target;
	struct fathom_answers *answers;
	const char *reason;

	if (fathom_target_open_file(session, path, NULL, &target, NULL))
		return "failed";
	if (fathom_symbolize(target, NULL, &address, NULL, 1, &answers, NULL)) {
		fathom_target_release(target);
		return "failed";
	}
	reason = fathom_reason_name(fathom_answers_get(answers, 0)->reason);
	fathom_answers_free(answers);
	fathom_target_release(target);
	return reason;
}

int main(int argc, char **argv)
{
	struct fathom_options options = { .size = sizeof options,
					  .flags = FATHOM_NO_CACHE | FATHOM_DEBUGINFOD };
	struct fathom *session;

	if (argc < 4)
		return 2;
	options.debuginfod_timeout_ms = (uint32_t)strtoul(argv[1], NULL, 10);
	if (fathom_create(&options, &session, NULL))
		return 1;
	for (int i = 3; i < argc; i++)
		printf("%s\n", ask(session, argv[i], strtoull(argv[2], NULL, 16)));
	fathom_destroy(session);
	return 0;
}
