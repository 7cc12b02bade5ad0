/* SPDX-License-Identifier: MIT */
/*
 * holders TARGET: tells which module holds an address. TARGET is the number of a process or a file.
 * Reads lines from standard input, and answers each with one:
 *
 *	ADDRESS		HOLDER BIAS SOURCE SYMBOL LOW HIGH, with "-" for what is not there; the last
 *			two are the bounds of its FDE. Numbers are hexadecimal.
 *	stayed		whether all that was told of code without a file stayed: yes or no
 *	search		how many modules of JIT code a search by name in the same view has
 *	again		begins a new view, and says "done"
 */
#include <ctype.h>
#include <fathom/fathom.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/jit/jit.h"
#include "host/module/module.h"
#include "host/space/target.h"

static void print_module(const struct fathom_place *p, uint64_t avma)
{
	struct fathom_module *m = p->holder->module;
	struct fathom_symbol_hit hit;
	struct fathom_fde fde;

	if (fathom_symbols_scan(&m->symbols, avma - p->bias, NULL, &hit))
		printf(" %.*s", (int)hit.name.size, hit.name.data);
	else
		printf(" -");
	if (fathom_unwind_tables_find(&m->unwind, avma - p->bias, &fde))
		printf(" - -\n");
	else
		printf(" %" PRIx64 " %" PRIx64 "\n", fde.low + p->bias, fde.high + p->bias);
}

static void print_place(const struct fathom_place *p, uint64_t avma)
{
	const char *source = fathom_source_name(p->source);

	if (p->holder)
		printf("%s %" PRIx64, p->holder->name, p->bias);
	else
		printf("- -");
	printf(" %s", source[0] ? source : "-");
	if (p->holder)
		print_module(p, avma);
	else
		printf(" - - -\n");
}

/* Searches by name as well, which reads the same lists and files for itself. */
static fathom_err search(struct fathom_view *v)
{
	struct fathom_jit_search *s;

	FATHOM_TRY(fathom_jit_search_begin(v->target->ops->jit(v), &s));
	printf("%zu\n", fathom_jit_search_count(s));
	fathom_jit_search_end(s);
	return FATHOM_OK;
}

static fathom_err answer(struct fathom_target *t, struct fathom_view **v, const char *line)
{
	struct fathom_place p;
	uint64_t avma;

	if (strcmp(line, "again") == 0) {
		fathom_view_end(*v);
		*v = NULL;
		FATHOM_TRY(fathom_view_begin(t, FATHOM_VIEW_PLACES, v, NULL));
		printf("done\n");
	} else if (strcmp(line, "search") == 0) {
		FATHOM_TRY(search(*v));
	} else if (strcmp(line, "stayed") == 0) {
		printf("%s\n", fathom_view_jit_stayed(*v) ? "yes" : "no");
	} else {
		avma = strtoull(line, NULL, 16);
		FATHOM_TRY(fathom_view_locate_code(*v, avma, &p));
		print_place(&p, avma);
	}
	fflush(stdout);
	return FATHOM_OK;
}

static fathom_err answer_all(struct fathom_target *t)
{
	struct fathom_view *v;
	fathom_err err = fathom_view_begin(t, FATHOM_VIEW_PLACES, &v, NULL);
	char line[100];

	while (!err && fgets(line, sizeof line, stdin)) {
		line[strcspn(line, "\n")] = '\0';
		err = answer(t, &v, line);
	}
	fathom_view_end(v);
	return err;
}

int main(int argc, char **argv)
{
	const struct fathom_options options = { .size = sizeof options, .flags = FATHOM_NO_CACHE };
	struct fathom_target *t;
	struct fathom *session;
	fathom_err err;

	if (argc != 2 || fathom_create(&options, &session, NULL))
		return 2;
	err = isdigit((unsigned char)argv[1][0])
		      ? fathom_target_open_process(session, atoi(argv[1]), NULL, &t, NULL)
		      : fathom_target_open_file(session, argv[1], NULL, &t, NULL);
	if (!err) {
		err = answer_all(t);
		fathom_target_release(t);
	}
	fathom_destroy(session);
	return err != FATHOM_OK;
}
