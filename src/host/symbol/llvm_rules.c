/* SPDX-License-Identifier: MIT */
#include "host/symbol/llvm_rules.h"

#include "host/symbol/gnu_rules.h"

uint32_t fathom_llvm_table(const struct fathom_symbol_set *set)
{
	return fathom_gnu_tables(set).own;
}

static bool is_namable_type(uint8_t type)
{
	return type == STT_NOTYPE || type == STT_OBJECT || type == STT_FUNC ||
	       type == STT_GNU_IFUNC;
}

bool fathom_llvm_counts(const struct fathom_symbol_table *t, const struct fathom_symbol *s,
			uint64_t *ret_svma)
{
	const struct fathom_object *o = t->object;
	struct fathom_symbol_region region;

	if (!is_namable_type(s->type) || !s->name || fathom_symbol_is_mapping(&t->view, s) ||
	    fathom_symbol_is_fake(&t->view, s))
		return false;
	if (!o->n_sections)
		return fathom_symbol_place(t, s, ret_svma, &region);
	if (!s->section || s->section >= o->n_sections ||
	    !(o->sections[s->section].header.flags & SHF_ALLOC))
		return false;
	*ret_svma = s->value + (o->image.type == ET_REL ? o->sections[s->section].base : 0);
	(void)fathom_symbol_follow(t, *ret_svma, ret_svma, &region);
	return true;
}

bool fathom_llvm_scan(const struct fathom_symbol_set *set, uint64_t svma,
		      struct fathom_symbol_hit *ret)
{
	const uint32_t table = fathom_llvm_table(set);
	const struct fathom_symbol_table *t;
	struct fathom_symbol best = { 0 };
	struct fathom_symbol s;
	uint32_t file = 0;
	uint32_t best_file = 0;
	bool found = false;

	if (table == FATHOM_NONE)
		return false;
	t = &set->table[table];
	ret->start = 0;
	for (uint32_t i = 1; i < t->view.count; i++) {
		uint64_t start;

		fathom_symtab_get(&t->view, i, &s);
		file = s.type == STT_FILE ? i : file;
		if (!fathom_llvm_counts(t, &s, &start) || start > svma || start < ret->start ||
		    (found && start == ret->start && s.size < best.size))
			continue;
		ret->start = start;
		best = s;
		best_file = s.bind == STB_LOCAL ? file : 0;
		found = true;
	}
	if (!found || (best.size && svma - ret->start >= best.size))
		return false;
	ret->size = best.size;
	ret->source = t->view.source;
	ret->name = fathom_symtab_name(&t->view, &best);
	ret->file = (struct fathom_str){ NULL, 0 };
	if (best_file) {
		fathom_symtab_get(&t->view, best_file, &s);
		ret->file = fathom_symtab_name(&t->view, &s);
	}
	return true;
}
