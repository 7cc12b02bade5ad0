/* SPDX-License-Identifier: MIT */
/* What the programs of this suite share: they print what is wrong, and "done" at the end. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fathom/fathom.h>
#include <stdbool.h>

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

/* An answer, and the buffer that it is in. */
struct looked {
	const struct fathom_answer *is;
	char buffer[FATHOM_SELF_BUFFER];
};

/* Looks @pc up; whether it has a name. */
static inline bool look_up_pc(struct looked *l, struct fathom_pc pc)
{
	l->is = fathom_self_lookup(self, pc, 0, l->buffer, sizeof l->buffer);
	return l->is->symbol != NULL;
}

static inline bool look_up(struct looked *l, uint64_t at)
{
	return look_up_pc(l, (struct fathom_pc){ .address = at });
}

static inline bool look_up_call(struct looked *l, uint64_t at)
{
	return look_up_pc(l, (struct fathom_pc){ .address = at, .kind = FATHOM_PC_RETURN });
}

static inline bool look_up_now(struct looked *l, uint64_t at)
{
	const struct fathom_pc pc = { .address = at };

	l->is = fathom_self_lookup_now(self, pc, 0, l->buffer, sizeof l->buffer);
	return l->is->symbol != NULL;
}

static inline const char *path_of(const struct looked *l)
{
	return l->is->module ? l->is->module->path : NULL;
}

/* Whether @a names its code by the bounds of an FDE, which it is in. */
static inline bool is_by_bounds(const struct fathom_answer *a)
{
	unsigned long long low = 0;
	unsigned long long high = 0;

	return a->symbol && a->source == FATHOM_SOURCE_FDE && a->reason == FATHOM_REASON_NOT_PREPARED &&
	       sscanf(a->symbol, "func@[%llx..%llx]", &low, &high) == 2 && a->module_address >= low &&
	       a->module_address < high && a->size == high - low && a->offset == a->module_address - low;
}

static inline void expect_name(uintptr_t at, const char *name, uint64_t offset)
{
	struct looked a;

	(void)look_up(&a, at);
	if (a.is->symbol && strcmp(a.is->symbol, name) == 0 && a.is->offset == offset)
		return;
	printf("wrong: %s+%#llx is called %s+%#llx [%s] of %s\n", name, (unsigned long long)offset,
	       a.is->symbol ? a.is->symbol : "nothing", (unsigned long long)a.is->offset,
	       fathom_reason_name((enum fathom_reason)a.is->reason), path_of(&a) ? path_of(&a) : "nothing");
	n_wrong++;
}

#endif
