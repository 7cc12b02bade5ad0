/* SPDX-License-Identifier: MIT */
/*
 * follow ONE TWO: two libraries of the same shape come and go at the same address. They are called by
 * their own names, also in handlers, and what is gone by none.
 */
#define _GNU_SOURCE
#include "check.h"

#include <dlfcn.h>
#include <signal.h>

static struct {
	uint64_t at;
	struct looked answer;
} asked;

static void on_signal(int number)
{
	(void)number;
	(void)look_up(&asked.answer, asked.at);
}

/* What a handler is told. */
static const char *in_handler(uintptr_t at)
{
	asked.at = at;
	(void)raise(SIGUSR1);
	return asked.answer.is->symbol;
}

static const char *now(uintptr_t at, struct looked *a)
{
	(void)look_up_now(a, at);
	return a->is->symbol;
}

static bool is(const char *name, const char *expected)
{
	return expected ? name && strcmp(name, expected) == 0 : !name;
}

struct library {
	void *handle;
	uintptr_t hidden;
	uintptr_t exported;
};

static struct library load(const char *path)
{
	struct library l = { .handle = dlopen(path, RTLD_NOW | RTLD_LOCAL) };

	if (!l.handle) {
		printf("wrong: %s\n", dlerror());
		exit(1);
	}
	l.hidden = (uintptr_t)((void *(*)(void))dlsym(l.handle, "where_hidden"))();
	l.exported = (uintptr_t)((void *(*)(void))dlsym(l.handle, "where_exported"))();
	return l;
}

int main(int argc, char **argv)
{
	static const char *const hidden[] = { "hidden_in_one", "hidden_in_two" };
	static const char *const exported[] = { "exported_by_one", "exported_by_two" };
	const bool has_ids = argc > 3 && strcmp(argv[3], "build-ids") == 0;
	struct looked a;
	uintptr_t last = 0;
	int n_same = 0;

	(void)signal(SIGUSR1, on_signal);
	start(FATHOM_SELF_FULL);
	for (int turn = 0; turn < 200; turn++) {
		const int which = turn % 2;
		struct library l = load(argv[1 + which]);

		n_same += l.hidden == last;
		last = l.hidden;
		/* Not prepared yet: what it exports is told by its own memory. */
		expect(is(in_handler(l.exported), exported[which]));
		expect(asked.answer.is->reason == FATHOM_REASON_NOT_PREPARED);
		expect(path_of(&asked.answer) && strstr(path_of(&asked.answer), argv[1 + which]));
		expect((asked.answer.is->module->build_id != NULL) == has_ids);
		/* And the bounds of what it does not. */
		(void)in_handler(l.hidden);
		expect(is_by_bounds(asked.answer.is));
		/* A miss that becomes a hit. */
		expect(is(now(l.hidden, &a), hidden[which]) && !a.is->reason);
		expect(a.is->frame && !a.is->frame->outer && strstr(a.is->frame->file, "plugin.c"));
		/* The function's own line, or its statement's where that needs no instructions. */
		expect(a.is->frame->line == 9 || a.is->frame->line == 10);
		expect(is(now(l.exported + 1, &a), exported[which]) && a.is->offset == 1);
		/* A handler believes what can be told from something else. */
		(void)in_handler(l.hidden);
		expect(has_ids ? is(asked.answer.is->symbol, hidden[which]) : is_by_bounds(asked.answer.is));
		expect(is(in_handler(l.exported), exported[which]));
		dlclose(l.handle);
		if (turn % 3) {
			/* Nobody has refreshed: it is gone all the same. */
			expect(is(in_handler(l.hidden), NULL));
			expect(is(in_handler(l.exported), NULL));
		}
		if (turn % 5 == 0) {
			expect(is(now(l.hidden, &a), NULL));
			expect(a.is->reason == FATHOM_REASON_UNMAPPED);
		}
	}
	if (n_same < 100)
		printf("wrong: only %d of 200 came to the same address\n", n_same);
	/* What was there all the time is not touched by all this. */
	expect(is(in_handler((uintptr_t)load), "load"));
	return end();
}
