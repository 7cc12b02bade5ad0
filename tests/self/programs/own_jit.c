/* SPDX-License-Identifier: MIT */
/* A program that makes code, writes of it what perf reads, and asks for its name itself. */
#define _GNU_SOURCE
#include "check.h"

#include <sys/mman.h>
#include <unistd.h>

static void ask(struct fathom_target *target, uint64_t at, const char *name, uint64_t offset)
{
	struct fathom_answers *answers;
	const struct fathom_answer *a;

	if (fathom_symbolize(target, NULL, &at, 1, &answers, NULL)) {
		expect(!"it can be asked");
		return;
	}
	a = fathom_answers_get(answers, 0);
	if (!name)
		expect(a->symbol == FATHOM_NONE);
	else
		expect(a->symbol != FATHOM_NONE && a->offset == offset &&
		       a->source == FATHOM_SOURCE_PERF_MAP &&
		       strcmp(fathom_answers_function(answers, a->symbol)->name, name) == 0);
	fathom_answers_free(answers);
}

int main(void)
{
	uint8_t *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uintptr_t at = (uintptr_t)code;
	struct fathom_target *target;
	struct fathom_self_answer a;
	char path[64];
	FILE *map;

	memset(code, 0xc3, 4096);
	start(0);
	(void)snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
	map = fopen(path, "w");
	fprintf(map, "%lx 20 made here\n", (unsigned long)at);
	(void)fflush(map);
	expect(!fathom_target_open_process(session, getpid(), &target, NULL));
	ask(target, at + 7, "made here", 7);
	ask(target, at + 0x20, NULL, 0);
	/* The last line holds. */
	fprintf(map, "%lx 10 made later\n", (unsigned long)at);
	(void)fclose(map);
	ask(target, at + 7, "made later", 7);
	/* Handlers know of no such files. */
	expect(!fathom_self_lookup(self, at, 0, &a) && a.reason == FATHOM_REASON_NO_FILE);
	(void)munmap(code, 4096);
	ask(target, at + 7, NULL, 0);
	fathom_target_release(target);
	(void)unlink(path);
	return end();
}
