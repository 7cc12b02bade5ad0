/* SPDX-License-Identifier: MIT */
/*
 * Sites of GCC's `-mrecord-mcount` (__mcount_loc) and `-mrecord-return` (__return_loc): each word
 * is the address of a call, or of a NOP of five bytes in its place. x86 only; `-mrecord-mcount` of
 * other machines has the same table.
 *
 * Not handled: sections that `-mfentry-section` names otherwise.
 */
#include "safe/base/nops.h"
#include "host/sites/site_work.h"

/* A NOP in the place of a call has five bytes. */
#define NOP_SIZE 5

/*
 * Finds what a slot at @svma holds, and its size; returns false if neither a call nor such a NOP.
 */
static bool find_slot(struct fathom_site_work *w, uint64_t svma, struct fathom_raw_site *ret,
		      enum fathom_hook_kind *ret_hook)
{
	uint8_t size = 0;

	*ret_hook = fathom_hook_called(w, svma, &size);
	ret->content = *ret_hook == FATHOM_HOOK_NONE ? FATHOM_SITE_NOPS : FATHOM_SITE_CALL;
	if (*ret_hook == FATHOM_HOOK_NONE) {
		size = fathom_nop_size(w->is_aarch64, fathom_site_code(w, svma));
		if (size != (w->is_aarch64 ? 4 : NOP_SIZE))
			return false;
	}
	ret->svma = svma;
	ret->size = size;
	return true;
}

/* Returns whether @svma is the first instruction of the function at @start, but for a mark. */
static bool is_first(struct fathom_site_work *w, uint64_t start, uint64_t svma)
{
	return svma - start == fathom_landing_size(w->is_aarch64, fathom_site_code(w, start));
}

/* Returns whether each way from @start leads through an instruction at @svma. */
static bool leads_to(struct fathom_site_work *w, uint64_t start, uint64_t svma)
{
	struct fathom_site_line line = fathom_site_line_init(start);

	if (is_first(w, start, svma))
		return true;
	while (line.svma < svma)
		if (!fathom_site_line_next(w, &line))
			return false;
	return line.svma == svma && line.joined <= svma;
}

static fathom_err take_entry(struct fathom_site_work *w, uint64_t word)
{
	const struct fathom_function *f = fathom_functions_holding(&w->functions, word);
	struct fathom_raw_site s = { .kind = FATHOM_SITE_MCOUNT_LOC };
	enum fathom_hook_kind hook;

	if (!fathom_site_code(w, word).size) {
		fathom_site_refuse(w, FATHOM_REFUSED_NOT_CODE);
	} else if (!f) {
		fathom_site_refuse(w, FATHOM_REFUSED_NO_FUNCTION);
	} else if (!find_slot(w, word, &s, &hook) ||
		   /* -mfentry-name: a hook of any name, at the start only. */
		   (hook == FATHOM_HOOK_OTHER && !is_first(w, f->svma, word))) {
		fathom_site_refuse(w, FATHOM_REFUSED_OTHER_CODE);
	} else if (!leads_to(w, f->svma, word)) {
		fathom_site_refuse(w, w->decoder || w->is_aarch64 ? FATHOM_REFUSED_OTHER_CODE
								  : FATHOM_REFUSED_NO_DECODER);
	} else {
		s.function = f->svma;
		s.is_behind = !is_first(w, f->svma, word);
		return fathom_site_add(w, &s);
	}
	return FATHOM_OK;
}

/* Returns where execution goes on after the instruction at @svma, as a place of a site. */
static bool find_place(struct fathom_site_work *w, uint64_t svma, uint8_t *ret)
{
	struct fathom_stack_code c;

	if (!fathom_site_decode(w, svma, &c) ||
	    (c.flow != FATHOM_FLOW_RETURN && c.flow != FATHOM_FLOW_JUMP))
		return false;
	*ret = c.flow == FATHOM_FLOW_RETURN ? FATHOM_SITE_RETURN : FATHOM_SITE_TAIL_CALL;
	return true;
}

static fathom_err take_return(struct fathom_site_work *w, struct fathom_site_line *line,
			      uint64_t word)
{
	const struct fathom_function *f = fathom_functions_holding(&w->functions, word);
	struct fathom_raw_site s = { .kind = FATHOM_SITE_RETURN_LOC };
	enum fathom_hook_kind hook;

	if (!fathom_site_code(w, word).size) {
		fathom_site_refuse(w, FATHOM_REFUSED_NOT_CODE);
	} else if (!f) {
		fathom_site_refuse(w, FATHOM_REFUSED_NO_FUNCTION);
	} else if (!w->decoder && !w->is_aarch64) {
		fathom_site_refuse(w, FATHOM_REFUSED_NO_DECODER);
	} else if (!find_slot(w, word, &s, &hook) || hook == FATHOM_HOOK_OTHER ||
		   !find_place(w, word + s.size, &s.place) ||
		   !fathom_site_is_instruction(w, line, word)) {
		fathom_site_refuse(w, FATHOM_REFUSED_OTHER_CODE);
	} else {
		s.function = f->svma;
		return fathom_site_add(w, &s);
	}
	return FATHOM_OK;
}

fathom_err fathom_site_find_locations(struct fathom_site_work *w)
{
	struct fathom_site_words entries = fathom_site_words_init(w, "__mcount_loc");
	struct fathom_site_words returns = fathom_site_words_init(w, "__return_loc");
	struct fathom_site_line line = { 0 };
	uint64_t word;

	while (fathom_site_words_next(&entries, &word))
		FATHOM_TRY(take_entry(w, word));
	while (fathom_site_words_next(&returns, &word))
		FATHOM_TRY(take_return(w, &line, word));
	return FATHOM_OK;
}
