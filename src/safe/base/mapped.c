/* SPDX-License-Identifier: MIT */
#include "safe/base/mapped.h"

#include <sys/syscall.h>

#include "fathom/session.h"
#include "safe/base/sys.h"

/* 32-bit processors have mmap2, which takes its arguments as mmap does elsewhere. */
#ifdef SYS_mmap2
#define MAP_CALL SYS_mmap2
#else
#define MAP_CALL SYS_mmap
#endif

/* Equal on every processor that sys.h knows. This tier must not use <sys/mman.h>: it has calls. */
#define READ      1
#define PRIVATE   0x02
#define FIXED     0x10
#define ANONYMOUS 0x20
#define NORESERVE 0x4000

/* Returns whether @m holds @address and is not being changed; sets *@ret_end to its end. */
static bool holds(struct fathom_mapped *m, uintptr_t address, uintptr_t *ret_end)
{
	const uint32_t turn = atomic_load(&m->turn);
	const uintptr_t start = atomic_load(&m->start);

	*ret_end = atomic_load(&m->end);
	return turn % 2 == 0 && start && address >= start && address < *ret_end &&
	       atomic_load(&m->turn) == turn;
}

/* Maps zeros over [page of @address, @end). */
static bool put_zeros(uintptr_t page_size, uintptr_t address, uintptr_t end)
{
	const uintptr_t page = address & ~(page_size - 1);
	const long got = fathom_sys(MAP_CALL, (long)page, (long)(end - page), READ,
				    PRIVATE | ANONYMOUS | FIXED | NORESERVE, -1, 0);

	return got == (long)page;
}

bool fathom_mapped_cut(struct fathom_mapped_table *t, uintptr_t address)
{
	for (uint32_t i = 0; i < FATHOM_MAPPED_PIECES; i++) {
		struct fathom_mapped *piece = atomic_load(&t->piece[i]);
		uintptr_t end;

		for (uint32_t k = 0; piece && k < fathom_mapped_piece_size(i); k++) {
			if (!holds(&piece[k], address, &end))
				continue;
			/* Marks before mapping: nobody may read a zero and find no mark. */
			if (!atomic_exchange(&piece[k].is_cut, true))
				atomic_fetch_add(&t->n_cut, 1);
			return put_zeros(atomic_load(&t->page), address, end);
		}
	}
	return false;
}

/* The table is the session's first member (context.c). */
int fathom_handle_sigbus(struct fathom *session, const void *address)
{
	return fathom_mapped_cut((struct fathom_mapped_table *)(void *)session, (uintptr_t)address);
}
