/* SPDX-License-Identifier: MIT */
/* What the programs of this suite share: they print what is wrong, and "done" at the end. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fathom/fathom.h>

static struct fathom *session;
static struct fathom_self *self;
static int n_wrong;

int main_code(int argc, char **argv);

#define expect(what)                                                             \
	do {                                                                     \
		if (!(what)) {                                                   \
			if (n_wrong++ < 10)                                      \
				printf("wrong, line %d: %s\n", __LINE__, #what); \
		}                                                                \
	} while (0)

static inline void start(uint32_t flags)
{
	const struct fathom_options options = { .size = sizeof options, .flags = FATHOM_NO_CACHE };
	const struct fathom_self_options how = { .size = sizeof how, .flags = flags };
	struct fathom_errinfo info;
	char text[400];

	if (fathom_create(&options, &session, &info) ||
	    fathom_self_prepare(session, &how, &self, &info)) {
		fathom_errinfo_format(&info, text, sizeof text);
		printf("wrong: %s\n", text);
		exit(1);
	}
}

static inline void print_notes(void)
{
	char text[400];

	for (size_t i = 0; fathom_self_note(self, i); i++) {
		fathom_errinfo_format(fathom_self_note(self, i), text, sizeof text);
		printf("note: %s\n", text);
	}
}

static inline int end(void)
{
	if (n_wrong)
		print_notes();
	fathom_self_destroy(self);
	fathom_destroy(session);
	if (!n_wrong)
		puts("done");
	return n_wrong != 0;
}

static inline void expect_name(uintptr_t at, const char *name, uint64_t offset)
{
	struct fathom_self_answer a;

	(void)fathom_self_lookup(self, at, 0, &a);
	if (a.function && strcmp(a.function, name) == 0 && a.offset == offset)
		return;
	printf("wrong: %s+%#llx is called %s+%#llx [%s] of %s\n", name, (unsigned long long)offset,
	       a.function ? a.function : "nothing", (unsigned long long)a.offset,
	       fathom_reason_name((enum fathom_reason)a.reason), a.module ? a.module : "nothing");
	n_wrong++;
}

#endif
