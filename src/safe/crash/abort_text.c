/* SPDX-License-Identifier: MIT */
/*
 * glibc, assert/assert.c and sysdeps/posix/libc_fatal.c: __abort_msg points to pages of their own,
 * which have their number of bytes, an unsigned int, and then the text.
 */
#include "safe/crash/abort_text.h"

#include "safe/base/bytes.h"
#include "safe/base/peek.h"

/* The smallest page size. */
#define PAGE 4096

bool fathom_abort_text_read(uint64_t avma, char to[FATHOM_CRASH_TEXT], size_t *ret_size,
			    bool *ret_cut)
{
	uintptr_t pages;
	unsigned size;
	size_t most;
	size_t end;

	if (fathom_peek(avma, &pages, sizeof pages) != sizeof pages || !pages || pages % PAGE ||
	    fathom_peek(pages, &size, sizeof size) != sizeof size || !size || size % PAGE)
		return false;
	most = size - sizeof size < FATHOM_CRASH_TEXT ? size - sizeof size : FATHOM_CRASH_TEXT;
	most = fathom_peek(pages + sizeof size, to, most);
	end = fathom_str_find((struct fathom_str){ to, (uint32_t)most }, 0, '\0');
	if (end == most && most != FATHOM_CRASH_TEXT)
		return false;
	*ret_cut = end == most;
	*ret_size = end;
	*ret_size -= *ret_size && to[*ret_size - 1] == '\n';
	return true;
}
