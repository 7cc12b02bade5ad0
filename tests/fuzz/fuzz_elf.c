/* SPDX-License-Identifier: MIT */
/* ELF headers, sections, symbols, relocations, dynamic tables, PLT. */
#include "fuzz.h"

#include <unistd.h>

#include "host/base/mapping.h"
#include "host/file/object.h"
#include "host/module/unwind_tables.h"
#include "host/symbol/plt.h"
#include "host/symbol/tables.h"

static void use_symbols(struct fathom_memory *m, struct fathom_object *o, uint64_t svma)
{
	struct fathom_unwind_tables unwind = { .bounds = { NULL, NULL } };
	struct fathom_symbol_set set = { .main = o, .bounds = &unwind.bounds };
	struct fathom_symbol_index *x;
	struct fathom_symbol_hit hit;
	uint32_t number;
	struct fathom_fde fde;
	uint64_t found;

	if (!fathom_unwind_tables_init(&unwind, o, NULL)) {
		fathom_unwind_tables_deinit(&unwind);
		return;
	}
	fathom_symbol_set_add(&set, o, FATHOM_SOURCE_SYMTAB);
	if (fathom_symbols_scan(&set, svma, NULL, &hit))
		fuzz_use_str(hit.name);
	if (fathom_plt_at(&set, NULL, svma, &hit))
		fuzz_use_str(hit.name);
	if (fathom_symbols_find(&set, "main", &found))
		fuzz_use(found);
	for (int rule = 0; rule <= FATHOM_ALIAS_LLVM; rule++) {
		x = fathom_symbol_index_create(m, &set, (enum fathom_alias)rule, 1);
		number = x ? fathom_symbol_index_at(x, svma) : FATHOM_NONE;
		if (number != FATHOM_NONE)
			fuzz_use_str(fathom_symbol_index_name(x, number));
		fathom_symbol_index_destroy(x);
	}
	if (!fathom_unwind_tables_find(&unwind, svma, &fde))
		fuzz_use(fde.low ^ fde.cie->code_alignment);
	fathom_unwind_tables_deinit(&unwind);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fathom_memory memory = { .budget = 1 << 24 };
	struct fathom_object *o;
	struct fathom_bytes bytes;
	char path[64];
	const int fd = fuzz_file(data, size, path);

	if (!fathom_object_open(&memory, path, &o, NULL)) {
		for (uint32_t i = 1; i < o->n_sections && i < 100; i++)
			if (!fathom_object_load(o, i, &bytes, NULL) && bytes.size)
				fuzz_use(bytes.data[bytes.size - 1]);
		use_symbols(&memory, o, o->image.entry);
		if (o->n_code)
			use_symbols(&memory, o, o->code[0].low);
		fathom_object_close(o);
	}
	fathom_mapping_deinit(&memory.mapped);
	close(fd);
	return 0;
}
