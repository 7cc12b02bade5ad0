/* SPDX-License-Identifier: MIT */
/*
 * A program that has the runtime inside and patches itself: its functions are compiled with
 * -fpatchable-function-entry=18,16.
 */
#ifndef TESTS_CALLS_TRACED_H
#define TESTS_CALLS_TRACED_H

#define _GNU_SOURCE
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <asm/prctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "trace/copied.h"

enum { PREFIX = 16, HOOK_WORDS = 32 };

#define UNTRACED __attribute__((patchable_function_entry(0, 0)))

static int memory;
static struct fathom_trace_head *head;
static struct fathom_trace_process *process;
static unsigned char *hook; /* the copy */

extern unsigned char *__start___patchable_function_entries[];
extern unsigned char *__stop___patchable_function_entries[];

UNTRACED static void require(bool is_true, const char *what)
{
	if (is_true)
		return;
	(void)fprintf(stderr, "%s\n", what);
	_exit(1);
}

/* Puts a copy of the hook from @from to @to near this program's code. */
UNTRACED static void place_hook(const unsigned char *from, const unsigned char *to)
{
	const uint64_t words[FATHOM_TRACE_WORDS / 8] = {
		(uint64_t)(uintptr_t)process, (uint64_t)(uintptr_t)fathom_trace_slow_entry
	};
	const uintptr_t near = (uintptr_t)__start___patchable_function_entries[0] & ~UINT64_C(4095);
	unsigned char *page = MAP_FAILED;

	for (uintptr_t at = near - (1 << 24); page == MAP_FAILED; at -= 4096)
		page = mmap((void *)at, 4096, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	memcpy(page, words, sizeof words);
	memcpy(page + sizeof words, from, (size_t)(to - from));
	require(!mprotect(page, 4096, PROT_READ | PROT_EXEC), "mprotect");
	hook = page + sizeof words;
}

/* Maps @n rings. */
UNTRACED static void set_up(uint32_t n, enum fathom_trace_ring_full full)
{
	uint64_t off;
	const uint64_t size = fathom_trace_size(n, &off);

	memory = memfd_create("rings", 0);
	require(memory >= 0 && !ftruncate(memory, (off_t)size), "memfd");
	head = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	process = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	process->head = head;
	process->threads = mmap(NULL, n * sizeof(struct fathom_trace_thread),
				PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	require(!madvise(process->threads, n * sizeof(struct fathom_trace_thread), MADV_WIPEONFORK),
		"MADV_WIPEONFORK");
	process->nobody.owner = FATHOM_TRACE_NO_OWNER;
	process->first = 1;
	*head = (struct fathom_trace_head){ .magic = FATHOM_TRACE_MAGIC,
					    .version = FATHOM_TRACE_VERSION,
					    .n_rings = n,
					    .rings_off = off,
					    .wait_ticks = UINT64_C(10000000000),
					    .full = (uint32_t)full,
					    .reader = (uint32_t)getpid() };
	require(!syscall(SYS_arch_prctl, ARCH_SET_GS, &process->nobody), "arch_prctl");
}

/* Returns the slot of the function whose prefix is at @prefix. */
UNTRACED static unsigned char *slot_of(unsigned char *prefix)
{
	static const unsigned char endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	unsigned char *entry = prefix + PREFIX;

	return memcmp(entry, endbr64, sizeof endbr64) ? entry : entry + sizeof endbr64;
}

/* Has all functions with a prefix call the hook. */
UNTRACED static void patch(void)
{
	for (unsigned char **p = __start___patchable_function_entries;
	     p < __stop___patchable_function_entries; p++) {
		unsigned char *prefix = *p;
		unsigned char *slot = slot_of(prefix);
		const int32_t to_hook = (int32_t)(hook - (prefix + 5));
		void *page = (void *)((uintptr_t)prefix & ~UINT64_C(4095));

		require(!mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC), "mprotect");
		prefix[0] = 0xe8;
		memcpy(prefix + 1, &to_hook, sizeof to_hook);
		prefix[5] = 0xeb;
		prefix[6] = (unsigned char)(slot + 2 - (prefix + 7));
		slot[0] = 0xeb;
		slot[1] = (unsigned char)(prefix - (slot + 2));
	}
}

/* Returns the number that records have for the function @fn. */
UNTRACED static uint32_t site_of(const void *fn)
{
	uintptr_t at = (uintptr_t)fn;

	__asm__("" : "+r"(at));
	return (uint32_t)(at - PREFIX + 5);
}

#endif
