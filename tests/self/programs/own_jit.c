/* SPDX-License-Identifier: MIT */
/*
 * A program that makes code, tells perf and GDB of it, and asks for its name itself: by its number,
 * as another would. What fathom_self_lookup() says of such code is nothing, with the reason.
 */
#define _GNU_SOURCE
#include "check.h"

#include "../../jit/programs/gdb_jit.h"
#include "../../jit/programs/symfile.h"

#include <sys/mman.h>
#include <unistd.h>

static void ask(struct fathom_target *target, uint64_t at, const char *name, uint64_t offset,
		enum fathom_source source)
{
	struct fathom_answers *answers;
	const struct fathom_answer *a;

	if (fathom_symbolize(target, NULL, &at, NULL, 1, &answers, NULL)) {
		expect(!"it can be asked");
		return;
	}
	a = fathom_answers_get(answers, 0);
	if (!name)
		expect(!a->symbol);
	else
		expect(a->symbol && a->offset == offset && a->source == (uint32_t)source &&
		       strcmp(a->symbol, name) == 0);
	fathom_answers_free(answers);
}

/* What GDB is told of code counts before perf's map, until it is taken back. */
static void check_gdb_list(struct fathom_target *target, uint64_t at)
{
	static struct symfile files[2];
	static struct jit_code_entry entries[2];

	for (uint32_t i = 0; i < 2; i++) {
		make_symfile(&files[i], i + 1, at + i * CODE_SIZE);
		entries[i].symfile_addr = (const char *)&files[i];
		entries[i].symfile_size = sizeof files[i];
		register_entry(&entries[i]);
	}
	ask(target, at, "f0000001", 0, FATHOM_SOURCE_GDB_JIT);
	ask(target, at + 7, "f0000001", 7, FATHOM_SOURCE_GDB_JIT);
	ask(target, at + CODE_SIZE + 1, "f0000002", 1, FATHOM_SOURCE_GDB_JIT);
	ask(target, at + 2 * CODE_SIZE, NULL, 0, 0);
	unregister_entry(&entries[0]);
	ask(target, at + 7, "made later", 7, FATHOM_SOURCE_PERF_MAP);
	ask(target, at + CODE_SIZE + 1, "f0000002", 1, FATHOM_SOURCE_GDB_JIT);
	unregister_entry(&entries[1]);
	ask(target, at + CODE_SIZE + 1, NULL, 0, 0);
}

int main(void)
{
	uint8_t *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uintptr_t at = (uintptr_t)code;
	struct fathom_target *target;
	struct looked a;
	char path[64];
	FILE *map;

	memset(code, 0xc3, 4096);
	start(0);
	(void)snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
	map = fopen(path, "w");
	fprintf(map, "%lx 20 made here\n", (unsigned long)at);
	(void)fflush(map);
	expect(!fathom_target_open_process(session, getpid(), NULL, &target, NULL));
	ask(target, at + 7, "made here", 7, FATHOM_SOURCE_PERF_MAP);
	ask(target, at + 0x20, NULL, 0, 0);
	/* The last line holds. */
	fprintf(map, "%lx 10 made later\n", (unsigned long)at);
	(void)fclose(map);
	ask(target, at + 7, "made later", 7, FATHOM_SOURCE_PERF_MAP);
	check_gdb_list(target, at);
	/* Handlers know of no such files. */
	expect(!look_up(&a, at) && a.is->reason == FATHOM_REASON_NO_FILE);
	(void)munmap(code, 4096);
	ask(target, at + 7, NULL, 0, 0);
	fathom_target_release(target);
	(void)unlink(path);
	return end();
}
