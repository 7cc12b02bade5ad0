/* SPDX-License-Identifier: MIT */
/*
 * Finds the system calls of x86-64 at which a C library cancels threads by where they are. In glibc
 * 2.41 and later (__syscall_cancel_arch) and musl (__syscall_cp_asm), the handler of the signal
 * that cancels acts if the thread stands between a look at its flag and the `syscall` instruction,
 * and at no other place. Earlier versions of glibc act wherever the thread is.
 */
#ifndef FATHOM_TRACE_CANCELLATION_POINT_H
#define FATHOM_TRACE_CANCELLATION_POINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Most bytes from the look at the flag to after the instruction. */
#define FATHOM_CANCELLATION_BYTES 64

/*
 * Returns whether the `syscall` instruction that ends the @n bytes of @code is at a cancellation
 * point: whether they have mov (%rdi), %eax, then testb $8, (%rdi) or test %eax, %eax, then jne.
 */
static inline bool fathom_is_cancellation_point(const uint8_t *code, size_t n)
{
	for (size_t i = 0; i + 6 < n; i++) {
		const uint8_t *c = code + i;
		const size_t test = c[2] == 0x85 && c[3] == 0xc0                   ? 2
				    : c[2] == 0xf6 && c[3] == 0x07 && c[4] == 0x08 ? 3
										   : 0;

		if (c[0] != 0x8b || c[1] != 0x07 || !test)
			continue;
		c += 2 + test;
		if (c[0] == 0x75 || (c[0] == 0x0f && c[1] == 0x85))
			return true;
	}
	return false;
}

#endif
