/* SPDX-License-Identifier: MIT */
#include "safe/jit/registry.h"

#include <elf.h>

#include "fathom/error.h"
#include "safe/base/sort.h"

struct fathom_registry_head fathom_registry_own = {
	.magic = FATHOM_REGISTRY_MAGIC,
	.version = FATHOM_REGISTRY_VERSION,
	.head_size = sizeof(struct fathom_registry_head),
	.row_size = sizeof(struct fathom_registry_row),
	.low = UINT64_MAX,
};

#if UINTPTR_MAX > UINT32_MAX
/* Exported whatever FATHOM_API is, by a name of its own: another object may publish, too. */
extern struct fathom_registry_head __fathom_jit_published
	__attribute__((alias("fathom_registry_own"), visibility("default")));

/* The note; its descriptor needs no relocation. */
__asm__(".pushsection .note.fathom, \"a\"\n"
	"\t.balign 4\n"
	"\t.long 7, 8, 1\n"
	"\t.asciz \"fathom\"\n"
	"\t.balign 4\n"
	"\t.quad fathom_registry_own - .\n"
	".popsection\n");
#endif

bool fathom_registry_enter(struct fathom_registry_head *h, uint64_t avma, uint32_t *ret_place)
{
	if (avma < atomic_load_explicit(&h->low, memory_order_relaxed) ||
	    avma >= atomic_load_explicit(&h->high, memory_order_relaxed))
		return false;
	*ret_place = atomic_load_explicit(&h->epoch, memory_order_relaxed) & 1;
	/* Sequentially consistent, as the load of the table and what frees it. */
	(void)atomic_fetch_add(&h->readers[*ret_place], 1);
	return true;
}

void fathom_registry_leave(struct fathom_registry_head *h, uint32_t place)
{
	(void)atomic_fetch_sub(&h->readers[place], 1);
}

/* Finds the function at @avma in the symbol file @file. */
static bool find_in(const uint8_t *file, uint64_t avma, struct fathom_registry_code *ret)
{
	const Elf64_Ehdr *e = (const void *)file;
	const Elf64_Shdr *s = (const void *)(file + e->e_shoff);
	/* The first symbol is none. */
	const Elf64_Sym *symbols =
		(const Elf64_Sym *)(const void *)(file + s[FATHOM_REGISTRY_SYMBOLS].sh_offset) + 1;
	const struct fathom_registry_function *functions =
		(const void *)(file + s[FATHOM_REGISTRY_FUNCTIONS].sh_offset);
	const uint64_t n = s[FATHOM_REGISTRY_SYMBOLS].sh_size / sizeof *symbols - 1;
	const uint64_t i = FATHOM_BISECT(n, k, symbols[k].st_value <= avma);
	const char *name;

	if (!i || avma - symbols[i - 1].st_value >= symbols[i - 1].st_size)
		return false;
	name = (const char *)file + s[FATHOM_REGISTRY_STRINGS].sh_offset + symbols[i - 1].st_name;
	*ret = (struct fathom_registry_code){
		.low = symbols[i - 1].st_value,
		.size = symbols[i - 1].st_size,
		.since = functions[i - 1].since,
		.name = { name, functions[i - 1].name_size },
		.frames = { file + s[FATHOM_REGISTRY_FRAMES].sh_offset,
			    s[FATHOM_REGISTRY_FRAMES].sh_size },
		.fde = functions[i - 1].fde,
	};
	return true;
}

bool fathom_registry_find(const struct fathom_registry_head *h, uint64_t avma,
			  struct fathom_registry_code *ret)
{
	/* Only the own process's: addresses are pointers. */
	const struct fathom_registry_table *t = (const void *)(uintptr_t)atomic_load(&h->table);
	uint64_t n;

	if (!t)
		return false;
	n = FATHOM_BISECT(t->n, i, t->rows[i].low <= avma);
	return n && avma < t->rows[n - 1].high &&
	       find_in((const void *)(uintptr_t)t->rows[n - 1].file, avma, ret);
}
