/* SPDX-License-Identifier: MIT */
#include "host/stack/keep.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "safe/base/limits.h"
#include "safe/base/sort.h"

void fathom_keep_clear(struct fathom_keep *k)
{
	for (size_t i = 0; i < k->stacks.n; i++)
		free(k->stacks.items[i]);
	k->stacks.n = 0;
	k->threads.n = 0;
	k->pages.n = 0;
}

void fathom_keep_deinit(struct fathom_keep *k)
{
	fathom_keep_clear(k);
	fathom_array_free(&k->stacks);
	fathom_array_free(&k->threads);
	fathom_array_free(&k->pages);
}

/* Adds @page unless it was one of the last: a walk reads the same ones again and again. */
static void add_page(struct fathom_keep *k, uint64_t page)
{
	const size_t n = k->pages.n;

	for (size_t i = n; i && n - i < 16; i--)
		if (k->pages.items[i - 1] == page)
			return;
	if (n < FATHOM_MAX_KEPT_PAGES && !fathom_array_push(&k->pages, page))
		k->failed = true;
}

static size_t read_recorded(void *data, uint64_t avma, void *to, size_t size)
{
	struct fathom_keep *k = data;
	const size_t got = k->from.read(k->from.data, avma, to, size);
	const uint64_t first = avma & ~(uint64_t)(FATHOM_KEPT_PAGE - 1);

	for (uint64_t page = first; got && page - first < got + (avma - first);
	     page += FATHOM_KEPT_PAGE)
		add_page(k, page);
	return got;
}

void fathom_keep_record(struct fathom_keep *k, struct fathom_reader *memory)
{
	if (!k)
		return;
	k->from = *memory;
	k->recorded = memory;
	*memory = (struct fathom_reader){ read_recorded, NULL, k };
}

void fathom_keep_pause(struct fathom_keep *k)
{
	if (k)
		*k->recorded = k->from;
}

static struct fathom_str str_of(const char *text)
{
	return (struct fathom_str){ text, text ? (uint32_t)strlen(text) : 0 };
}

fathom_err fathom_keep_own(struct fathom_keep *k, uint8_t *stack)
{
	if (!stack || fathom_array_push(&k->stacks, stack))
		return FATHOM_OK;
	free(stack);
	return FATHOM_E_MEMORY;
}

fathom_err fathom_keep_thread(struct fathom_keep *k, const struct fathom_thread *thread,
			      const struct fathom_registers *r, uint64_t pac_mask,
			      const struct fathom_stack_pieces *stack)
{
	struct fathom_stored_thread t = {
		.name = str_of(thread->name),
		.syscall = str_of(thread->syscall),
		.waits_for = str_of(thread->waits_for),
		.failed = str_of(thread->failed),
		.registers = { .machine = EM_NONE },
		.stack = *stack,
		.fault_address = thread->fault_address,
		.pac_mask = pac_mask,
		.pause_ns = thread->pause_ns,
		.syscall_number = thread->syscall_number,
		.pid = thread->pid,
		.tid = thread->tid,
		.signal = thread->signal,
		.signal_code = thread->signal_code,
		.owner = thread->owner,
		.state = thread->state,
		.reason = thread->reason,
		.was_restarted = thread->was_restarted,
	};

	if (r)
		t.registers = *r;
	return fathom_array_push(&k->threads, t) ? FATHOM_OK : FATHOM_E_MEMORY;
}

fathom_err fathom_keep_finish(struct fathom_keep *k, struct fathom_stored_stacks *ret)
{
	const size_t n = k->pages.n;
	struct fathom_keyed *keyed = malloc((2 * n + 1) * sizeof *keyed);

	if (!keyed || k->failed) {
		free(keyed);
		return FATHOM_E_MEMORY;
	}
	for (size_t i = 0; i < n; i++)
		keyed[i] = (struct fathom_keyed){ k->pages.items[i], i };
	fathom_sort_keyed(keyed, keyed + n, n);
	k->pages.n = 0;
	for (size_t i = 0; i < n; i++)
		if (!i || keyed[i].key != keyed[i - 1].key)
			k->pages.items[k->pages.n++] = keyed[i].key;
	free(keyed);
	*ret = (struct fathom_stored_stacks){ k->threads.items, k->threads.n, k->pages.items,
					      k->pages.n };
	return FATHOM_OK;
}
