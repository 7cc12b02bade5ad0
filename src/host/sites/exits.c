/* SPDX-License-Identifier: MIT */
/*
 * Returns of functions that are built with -finstrument-functions: each call of
 * __cyg_profile_func_exit, and each jump to it at the end of a function (x86-64).
 *
 * Which function such a call reports its first argument says, at run time only: that of a function
 * that was inlined reports the inlined one. How far the stack pointer is from the function's
 * return address the unwind rules say.
 */
#include "host/module/rule_table.h"
#include "host/sites/site_work.h"

#define WORD 8

/* Returns the unwind rule at @svma; NULL: it is not known. */
static const struct fathom_unwind_rule *rule_at(struct fathom_site_work *w, uint64_t svma)
{
	if (!w->to->rules && fathom_rule_table_make(w->module, &w->to->rules))
		return NULL;
	return fathom_unwind_table_find(w->to->rules, svma);
}

/* Describes where the return address of @s lies, at a call or at a jump. */
static void find_frame(struct fathom_site_work *w, struct fathom_raw_site *s, bool is_jump)
{
	const struct fathom_unwind_rule *rule = rule_at(w, s->svma);
	const int64_t frame = rule ? rule->cfa_offset - WORD : -1;

	s->frame = FATHOM_SITE_NO_FRAME;
	if (!rule)
		return;
	s->is_behind = rule->kind == FATHOM_UNWIND_FP && frame == WORD && !is_jump;
	if (rule->kind == FATHOM_UNWIND_SP && frame >= 0 && frame < FATHOM_SITE_NO_FRAME &&
	    (!is_jump || !frame))
		s->frame = (uint16_t)frame;
}

/* Adds the exits of the function of @entry. */
static fathom_err find_exits(struct fathom_site_work *w, const struct fathom_raw_site *entry)
{
	const struct fathom_function *f = fathom_functions_at(&w->functions, entry->function);
	const uint64_t end = f ? fathom_functions_end(&w->functions, f) : 0;
	struct fathom_raw_site s = { .function = entry->function,
				     .kind = FATHOM_SITE_CYG_PROFILE,
				     .place = FATHOM_SITE_RETURN,
				     .content = FATHOM_SITE_CALL };
	struct fathom_stack_code c;

	for (s.svma = entry->svma + entry->size; s.svma < end; s.svma += c.size) {
		enum fathom_hook_kind hook;
		bool is_jump;

		if (!fathom_site_decode(w, s.svma, &c))
			break;
		hook = fathom_hook_left(w, s.svma, &s.size, &is_jump);
		if (hook != FATHOM_HOOK_EXIT && hook != FATHOM_HOOK_EITHER)
			continue;
		find_frame(w, &s, is_jump);
		FATHOM_TRY(fathom_site_add(w, &s));
	}
	return FATHOM_OK;
}

fathom_err fathom_site_find_exits(struct fathom_site_work *w)
{
	const size_t n = w->to->n;

	for (size_t i = 0; i < n && w->hooks.has_exits && !w->is_aarch64; i++) {
		const struct fathom_raw_site entry = w->to->items[i];

		if (entry.kind == FATHOM_SITE_CYG_PROFILE && !entry.is_bare)
			FATHOM_TRY(find_exits(w, &entry));
	}
	return FATHOM_OK;
}
