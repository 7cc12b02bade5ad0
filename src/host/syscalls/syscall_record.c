/* SPDX-License-Identifier: MIT */
#include "host/syscalls/syscall_record.h"

#include "safe/base/cursor.h"

#define HEAD (sizeof(uint64_t) + sizeof(struct fathom_syscall_call))

static size_t padded(size_t size)
{
	return (size + 7) & ~(size_t)7;
}

bool fathom_syscall_record_begin(struct fathom_syscall_record *r, uint8_t *bytes, size_t cap,
				 const struct fathom_syscall_call *call)
{
	const uint64_t magic = FATHOM_SYSCALL_MAGIC;

	if (cap < HEAD)
		return false;
	*r = (struct fathom_syscall_record){ .bytes = bytes, .n = HEAD, .cap = cap };
	memcpy(bytes, &magic, sizeof magic);
	memcpy(bytes + sizeof magic, call, sizeof *call);
	return true;
}

void fathom_syscall_record_end(struct fathom_syscall_record *r, enum fathom_syscall_end end,
			       int64_t result)
{
	struct fathom_syscall_call call;

	fathom_syscall_record_call(r, &call);
	call.end = (uint16_t)end;
	call.result = result;
	memcpy(r->bytes + sizeof(uint64_t), &call, sizeof call);
}

void fathom_syscall_record_add(struct fathom_syscall_record *r, uint64_t avma, bool at_exit,
			       const void *bytes, size_t size)
{
	const struct fathom_recorded_range range = { avma, (uint32_t)size, at_exit };
	uint8_t *to = r->bytes + r->n;

	if (size > FATHOM_SYSCALL_RECORD_MAX || sizeof range + padded(size) > r->cap - r->n) {
		r->is_cut = true;
		return;
	}
	memcpy(to, &range, sizeof range);
	memcpy(to + sizeof range, bytes, size);
	memset(to + sizeof range + size, 0, padded(size) - size);
	r->n += sizeof range + padded(size);
}

void fathom_syscall_record_call(const struct fathom_syscall_record *r,
				struct fathom_syscall_call *ret)
{
	memcpy(ret, r->bytes + sizeof(uint64_t), sizeof *ret);
}

/* Takes the next range and its bytes; false at the end, or if it is not whole. */
static bool take_range(struct fathom_cursor *c, struct fathom_recorded_range *ret,
		       const uint8_t **ret_bytes)
{
	const uint8_t *head = cur_left(c) ? cur_take(c, sizeof *ret) : NULL;

	if (!head)
		return false;
	memcpy(ret, head, sizeof *ret);
	*ret_bytes = cur_take(c, padded(ret->size));
	return *ret_bytes != NULL;
}

static struct fathom_cursor ranges_of(const struct fathom_syscall_record *r)
{
	return cur_init((struct fathom_bytes){ r->bytes + HEAD, r->n - HEAD }, false);
}

bool fathom_syscall_record_open(const void *bytes, size_t n, struct fathom_syscall_record *ret)
{
	/* It is only read. */
	const struct fathom_syscall_record r = { .bytes = (uint8_t *)(uintptr_t)bytes,
						 .n = n,
						 .cap = n };
	struct fathom_recorded_range range;
	const uint8_t *data;
	struct fathom_cursor c;
	uint64_t magic;

	if (n < HEAD || n > FATHOM_SYSCALL_RECORD_MAX)
		return false;
	memcpy(&magic, bytes, sizeof magic);
	if (magic != FATHOM_SYSCALL_MAGIC)
		return false;
	c = ranges_of(&r);
	while (take_range(&c, &range, &data))
		;
	if (!cur_ok(&c))
		return false;
	*ret = r;
	return true;
}

/*
 * Looks at the ranges in [@from, @end) for one that has more than @best of the bytes; returns how
 * many are now in @to.
 */
static size_t look_for(struct fathom_syscall_record *r, size_t from, size_t end, uint64_t avma,
		       bool at_exit, uint8_t *to, size_t size, size_t best)
{
	struct fathom_cursor c =
		cur_init((struct fathom_bytes){ r->bytes + from, r->n - from }, false);
	struct fathom_recorded_range range;
	const uint8_t *bytes;

	while (best < size && c.p < r->bytes + end) {
		const size_t at = (size_t)(c.p - r->bytes);
		uint64_t off;
		size_t n;

		if (!take_range(&c, &range, &bytes))
			break;
		off = avma - range.avma;
		if (range.at_exit != at_exit || off >= range.size)
			continue;
		n = range.size - (size_t)off < size ? range.size - (size_t)off : size;
		if (n > best) {
			memcpy(to, bytes + off, n);
			best = n;
			r->hint = at;
		}
	}
	return best;
}

size_t fathom_syscall_record_read(struct fathom_syscall_record *r, uint64_t avma, bool at_exit,
				  void *to, size_t size)
{
	const size_t hint = r->hint > HEAD ? r->hint : HEAD;
	const size_t best = look_for(r, hint, r->n, avma, at_exit, to, size, 0);

	return look_for(r, HEAD, hint, avma, at_exit, to, size, best);
}
