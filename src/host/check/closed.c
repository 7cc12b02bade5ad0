/* SPDX-License-Identifier: MIT */
#include "host/check/closed.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "host/base/page.h"
#include "host/file/maps.h"

static long protect(const struct fathom_tracee *t, pid_t tid, const struct fathom_closed_range *r,
		    uint32_t protection)
{
	return fathom_tracee_call(t, tid, SYS_mprotect,
				  (uint64_t[6]){ r->low, r->high - r->low, protection });
}

/* Sets whether @r is open. Pages that are gone, and a thread that has ended, are no failure. */
static void set_open(struct fathom_closed *c, struct fathom_closed_range *r,
		     const struct fathom_tracee *t, pid_t tid, bool is_open)
{
	/* Executable memory can be read, unless a protection key forbids it. */
	const uint32_t closed =
		r->key ? PROT_NONE : (r->protection & ~(uint32_t)PROT_EXEC) | PROT_READ;
	const long result = protect(t, tid, r, is_open ? r->protection : closed);

	r->is_open = is_open;
	c->failed |= result < 0 && result != -ESRCH && !(is_open && result == -ENOMEM);
}

/* Returns the protection of @m. */
static uint32_t protection_of(const struct fathom_mapping *m)
{
	return (m->readable ? PROT_READ : 0u) | (m->writable ? PROT_WRITE : 0u) |
	       (m->executable ? PROT_EXEC : 0u);
}

/*
 * Returns the protection key of the mapping of process @pid that begins at @start; 0 if it has
 * none, as on machines without protection keys (proc_pid_smaps(5)).
 */
static int protection_key(pid_t pid, uint64_t start)
{
	char path[64];
	char line[512];
	bool is_it = false;
	int key = 0;
	FILE *smaps;

	(void)snprintf(path, sizeof path, "/proc/%d/smaps", (int)pid);
	smaps = fopen(path, "re");
	/* The file is as long as the process has mappings. */
	while (smaps && fgets(line, sizeof line, smaps)) {
		uint64_t low, high;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &low, &high) == 2)
			is_it = low == start;
		else if (is_it && sscanf(line, "ProtectionKey: %d", &key) == 1)
			break;
	}
	if (smaps)
		(void)fclose(smaps);
	return key;
}

static int compare_starts(const void *a, const void *b)
{
	const struct fathom_claim *x = a;
	const struct fathom_claim *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Rounds @code out to pages, sorts it, and merges what touches. */
static void round_out(struct fathom_claim_array *code)
{
	const uint64_t page = fathom_page_size();
	struct fathom_claim *items = code->items;
	size_t n = 0;

	for (size_t i = 0; i < code->n; i++) {
		items[i].start &= ~(page - 1);
		items[i].end = (items[i].end + page - 1) & ~(page - 1);
	}
	if (code->n)
		qsort(items, code->n, sizeof *items, compare_starts);
	for (size_t i = 0; i < code->n; i++)
		if (!n || items[n - 1].end < items[i].start)
			items[n++] = items[i];
		else if (items[n - 1].end < items[i].end)
			items[n - 1].end = items[i].end;
	code->n = n;
}

/* Closes the part of mapping @m in [@low, @high). */
static fathom_err close_part(struct fathom_closed *c, const struct fathom_tracee *t, pid_t tid,
			     const struct fathom_mapping *m, uint64_t low, uint64_t high)
{
	struct fathom_closed_range r = { .low = low > m->start ? low : m->start,
					 .high = high < m->end ? high : m->end,
					 .protection = protection_of(m),
					 .is_open = true };

	if (r.low >= r.high || !m->executable || fathom_closed_at(c, r.low))
		return FATHOM_OK;
	if (r.protection == PROT_EXEC)
		r.key = protection_key(t->pid, m->start);
	if (!fathom_array_push(c, r))
		return FATHOM_E_MEMORY;
	set_open(c, &c->items[c->n - 1], t, tid, false);
	return FATHOM_OK;
}

/* Opens and forgets ranges of which nothing is in @code. */
static void drop(struct fathom_closed *c, const struct fathom_tracee *t, pid_t tid,
		 const struct fathom_claim_array *code)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++) {
		struct fathom_closed_range *r = &c->items[i];
		const size_t k = FATHOM_BISECT(code->n, at, code->items[at].end <= r->low);

		if (k < code->n && code->items[k].start < r->high)
			c->items[n++] = *r;
		else if (!r->is_open)
			set_open(c, r, t, tid, true);
	}
	c->n = n;
}

static fathom_err close_new(struct fathom_closed *c, const struct fathom_tracee *t, pid_t tid,
			    const struct fathom_claim_array *code)
{
	struct fathom_maps maps;
	char path[64];
	fathom_err err = FATHOM_OK;

	(void)snprintf(path, sizeof path, "/proc/%d/maps", (int)t->pid);
	/* A program that is ending has no map. */
	err = fathom_maps_read(path, &maps, NULL);
	if (err)
		return err == FATHOM_E_MEMORY ? err : FATHOM_OK;
	for (size_t i = 0; i < code->n && !err; i++) {
		const struct fathom_claim *r = &code->items[i];
		size_t m = FATHOM_BISECT(maps.n, k, maps.items[k].end <= r->start);

		for (; m < maps.n && maps.items[m].start < r->end && !err; m++)
			err = close_part(c, t, tid, &maps.items[m], r->start, r->end);
	}
	fathom_maps_deinit(&maps);
	return err;
}

fathom_err fathom_closed_update(struct fathom_closed *c, const struct fathom_tracee *t, pid_t tid,
				const struct fathom_published *p)
{
	struct fathom_claim_array code = { 0 };
	fathom_err err = fathom_published_ranges(p, &code);

	if (!err) {
		round_out(&code);
		drop(c, t, tid, &code);
		err = close_new(c, t, tid, &code);
	}
	fathom_array_free(&code);
	return err;
}

fathom_err fathom_closed_forget(struct fathom_closed *c, uint64_t low, uint64_t high)
{
	const size_t before = c->n;
	size_t n = 0;

	/* A range may fall into two parts. */
	if (!fathom_array_room(c, before))
		return FATHOM_E_MEMORY;
	for (size_t i = 0; i < before; i++) {
		struct fathom_closed_range r = c->items[i];

		if (r.low < low && r.high > high) {
			c->items[c->n] = r;
			c->items[c->n++].low = high;
		}
		if (r.low >= low && r.high > high && r.low < high)
			r.low = high;
		else if (r.low < low && r.high > low)
			r.high = low;
		if (r.high <= low || r.low >= high)
			c->items[n++] = r;
	}
	memmove(c->items + n, c->items + before, (c->n - before) * sizeof *c->items);
	c->n = n + (c->n - before);
	return FATHOM_OK;
}

void fathom_closed_restore_fault(const struct fathom_closed_range *r, pid_t tid, siginfo_t *info)
{
	if (r->is_open || !r->key)
		return;
	info->si_code = SEGV_PKUERR;
	info->si_pkey = (uint32_t)r->key;
	(void)ptrace(PTRACE_SETSIGINFO, tid, NULL, info);
}

struct fathom_closed_range *fathom_closed_at(const struct fathom_closed *c, uint64_t avma)
{
	for (size_t i = 0; i < c->n; i++)
		if (avma - c->items[i].low < c->items[i].high - c->items[i].low)
			return &c->items[i];
	return NULL;
}

void fathom_closed_open(struct fathom_closed *c, struct fathom_closed_range *r,
			const struct fathom_tracee *t, pid_t tid)
{
	set_open(c, r, t, tid, true);
}

void fathom_closed_close(struct fathom_closed *c, const struct fathom_tracee *t, pid_t tid)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->items[i].is_open)
			set_open(c, &c->items[i], t, tid, false);
}

void fathom_closed_release(const struct fathom_closed *c, const struct fathom_tracee *t, pid_t tid)
{
	for (size_t i = 0; i < c->n; i++)
		(void)protect(t, tid, &c->items[i], c->items[i].protection);
}
