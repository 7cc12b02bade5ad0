/* SPDX-License-Identifier: MIT */
#include "safe/base/peek.h"

#include <sys/syscall.h>

#include "safe/base/own_thread.h"

/* No single read crosses a page boundary: a page is readable as a whole or not at all. */
#define PAGE FATHOM_PEEK_PAGE

/* struct iovec */
struct piece {
	void *start;
	size_t size;
};

#define BAD_ADDRESS  14 /* EFAULT */
#define BAD_ARGUMENT 22 /* EINVAL */

/*
 * Returns whether the 8 bytes around @avma can be read. ~0 is no valid operation on the signal
 * mask, so the kernel reads the new mask there and then changes nothing.
 */
static bool probe(uintptr_t avma)
{
	const long got =
		fathom_sys(SYS_rt_sigprocmask, ~0L, (long)(avma & ~(uintptr_t)7), 0, 8, 0, 0);

	return got == -BAD_ARGUMENT;
}

__attribute__((no_sanitize("address", "thread", "undefined"))) static void copy_bytes(
	uintptr_t avma, uint8_t *to, size_t size)
{
	for (size_t i = 0; i < size; i++)
		to[i] = ((const volatile uint8_t *)avma)[i];
}

/* Reads the @n pieces at @remote to @to; returns the kernel's result. */
static long read_pieces(const struct piece *remote, size_t n, void *to, size_t size)
{
	const struct piece local = { to, size };
	/* Not kept: it changes at fork(). */
	const long pid = fathom_own_pid();

	return fathom_sys(SYS_process_vm_readv, pid, (long)(uintptr_t)&local, 1,
			  (long)(uintptr_t)remote, (long)n, 0);
}

/* Reads @size bytes of one page; false if they are not there. */
static bool read_piece(uintptr_t avma, void *to, size_t size)
{
	const struct piece remote = { (void *)avma, size };
	const long got = read_pieces(&remote, 1, to, size);

	if (got >= 0 || got == -BAD_ADDRESS)
		return got == (long)size;
	if (!probe(avma))
		return false;
	copy_bytes(avma, to, size);
	return true;
}

size_t fathom_peek(uint64_t avma, void *to, size_t size)
{
	size_t done = 0;

	while (done < size && avma + done <= UINTPTR_MAX) {
		const uintptr_t at = (uintptr_t)(avma + done);
		const size_t room = PAGE - at % PAGE;
		const size_t now = size - done < room ? size - done : room;

		if (!read_piece(at, (uint8_t *)to + done, now))
			break;
		done += now;
	}
	return done;
}

size_t fathom_peek_pages(uintptr_t avma, size_t n)
{
	struct piece remote[FATHOM_PEEK_PAGES] = { { NULL, 0 } };
	uint8_t bytes[FATHOM_PEEK_PAGES];
	size_t done = 0;
	long got;

	n = n < FATHOM_PEEK_PAGES ? n : FATHOM_PEEK_PAGES;
	avma -= avma % PAGE;
	for (size_t i = 0; i < n; i++)
		remote[i] = (struct piece){ (void *)(avma + i * PAGE), 1 };
	got = read_pieces(remote, n, bytes, n);
	if (got >= 0 || got == -BAD_ADDRESS)
		return got < 0 ? 0 : (size_t)got;
	while (done < n && probe(avma + done * PAGE))
		done++;
	return done;
}

#define STRING_PIECE 64

bool fathom_peek_str(uint64_t avma, char *to, size_t cap, struct fathom_str *ret)
{
	size_t size = 0;

	while (size < cap) {
		const size_t want = cap - size < STRING_PIECE ? cap - size : STRING_PIECE;
		const size_t got = fathom_peek(avma + size, to + size, want);

		for (size_t i = size; i < size + got; i++)
			if (!to[i]) {
				*ret = (struct fathom_str){ to, (uint32_t)i };
				return true;
			}
		if (got < want)
			return false;
		size += got;
	}
	return false;
}
