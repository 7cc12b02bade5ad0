/* SPDX-License-Identifier: MIT */
/*
 * symbolize FILE ADDRESS...: what a crash reporter does with the library.
 *
 *	cc -o symbolize symbolize.c $(pkg-config --cflags --libs fathom)
 */
#include <fathom/fathom.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static int complain(const struct fathom_errinfo *info)
{
	char text[512];

	fathom_errinfo_format(info, text, sizeof text);
	fprintf(stderr, "%s\n", text);
	return 2;
}

static void print_frames(const struct fathom_answers *answers, uint32_t id)
{
	const struct fathom_frame *frame;

	for (; (frame = fathom_answers_frame(answers, id)) != NULL; id = frame->outer) {
		const struct fathom_function *f = fathom_answers_function(answers, frame->function);
		const struct fathom_source_file *file = fathom_answers_file(answers, frame->file);

		printf("\t%s at %s:%" PRIu32 "%s\n", f ? f->name : "??", file ? file->path : "??",
		       frame->line, frame->outer == FATHOM_NONE ? "" : ", inlined into");
	}
}

static void print_answer(const struct fathom_answers *answers, const struct fathom_answer *a)
{
	const struct fathom_function *f = fathom_answers_function(answers, a->symbol);

	printf("0x%" PRIx64 " ", a->address);
	if (f)
		printf("%s+0x%" PRIx64 "\n", f->name, a->offset);
	else
		printf("?? (%s)\n", fathom_reason_name((enum fathom_reason)a->reason));
	print_frames(answers, a->frame);
}

int main(int argc, char **argv)
{
	const size_t n = argc > 2 ? (size_t)argc - 2 : 0;
	uint64_t *addresses = calloc(n + 1, sizeof *addresses);
	struct fathom_answers *answers;
	struct fathom_target *target;
	struct fathom_errinfo info;
	struct fathom *session;

	if (!n || !addresses) {
		fputs("Usage: symbolize FILE ADDRESS...\n", stderr);
		return 2;
	}
	for (size_t i = 0; i < n; i++)
		addresses[i] = strtoull(argv[i + 2], NULL, 16);
	if (fathom_create(NULL, &session, &info) ||
	    fathom_target_open_file(session, argv[1], &target, &info) ||
	    fathom_symbolize(target, NULL, addresses, n, &answers, &info))
		return complain(&info);
	for (size_t i = 0; i < n; i++)
		print_answer(answers, fathom_answers_get(answers, i));
	fathom_answers_free(answers);
	fathom_target_release(target);
	fathom_destroy(session);
	free(addresses);
	return 0;
}
