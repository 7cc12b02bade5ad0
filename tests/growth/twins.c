/* SPDX-License-Identifier: MIT */
/*
 * twins NUMBER MEMBER: makes so many frames in each of two parts, which differ in MEMBER alone
 * ("file", "function" or "discriminator"), and merges those that are equal. Prints how many frames
 * the answers have then.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/symbolize/answers.h"

/* Fills in frame @i; all texts have one size. */
static void fill(struct fathom_part *p, struct fathom_frame *f, size_t i, const char *member)
{
	const bool discriminator = strcmp(member, "discriminator") == 0;
	char text[32];

	(void)snprintf(text, sizeof text, "%08zx", i);
	memset(f, 0, sizeof *f);
	f->line = 1;
	f->discriminator = discriminator ? (uint32_t)i : 0;
	if (discriminator)
		return;
	if (strcmp(member, "file") == 0) {
		f->file = fathom_arena_strdup(&p->arena, (struct fathom_str){ text, 8 });
		f->file_size = 8;
	} else {
		f->function = fathom_arena_strdup(&p->arena, (struct fathom_str){ text, 8 });
		f->function_size = 8;
	}
}

/* Returns how many of the answers' frames differ from the same answer's in the first part. */
static size_t count_others(const struct fathom_answers *answers, size_t n)
{
	size_t others = 0;

	for (size_t i = 0; i < n; i++)
		others += answers->answers[n + i].frame != answers->answers[i].frame;
	return n + others;
}

int main(int argc, char **argv)
{
	const size_t n = argc == 3 ? strtoul(argv[1], NULL, 10) : 0;
	struct fathom_answers *answers = n ? fathom_answers_create(2 * n, 0) : NULL;

	if (!answers)
		return 1;
	answers->n_parts = 2;
	for (size_t i = 0; i < 2 * n; i++) {
		struct fathom_part *p = &answers->parts[i / n];
		struct fathom_frame *f;

		if (i % n == 0)
			fathom_part_begin(p, (unsigned)(i / n), 0, 0);
		f = fathom_items_add(&p->frames);
		if (!f)
			return 1;
		fill(p, f, i % n, argv[2]);
		answers->answers[i] = (struct fathom_answer){ .frame = f };
	}
	if (!fathom_answers_finish(answers))
		return 1;
	printf("%zu\n", count_others(answers, n));
	fathom_answers_free(answers);
	return 0;
}
