/* SPDX-License-Identifier: MIT */
/*
 * Sites that no section records, at the start of each function that a symbol or an FDE shows:
 *
 *	0f 1f 44 00 00		-mnop-mcount
 *	67 0f 1f 04 00		the same, by older compilers
 *	66 0f 1f 44 00 00	an aligned one, by other tools
 *	41 52, then one of these	in gcc's nested functions
 *	e8, 67 e8, ff 15	-mfentry, and at the end of a prologue -pg; bl on aarch64
 *
 * Instructions are followed from the start as long as there is but one way, or as all ways come
 * together again. A call counts if it is the first, and leads to a hook by its symbol, stub or GOT
 * slot. A NOP counts as the first instruction. After a prologue that sets the frame pointer it
 * counts only in modules linked with -pg, and not where a branch shows it to be padding.
 *
 * Not handled: calls in stripped static programs, which do not name what they call; calls through
 * registers (-mcmodel=large, -fno-plt on aarch64).
 */
#include "host/base/progress.h"
#include "safe/base/nops.h"
#include "host/sites/site_work.h"

/* Most instructions before a call: those of a prologue, and moves of arguments. */
#define MAX_INSTRUCTIONS 256

/* After so many functions the caller is asked. */
#define ASK_EVERY 4096

/* Returns the size of the NOP that stands for a call at the start of @code; 0: there is none. */
static uint8_t call_nop_size(struct fathom_bytes code)
{
	static const struct {
		uint8_t size;
		uint8_t bytes[6];
	} nops[] = {
		{ 5, { 0x0f, 0x1f, 0x44, 0x00, 0x00 } },
		{ 5, { 0x67, 0x0f, 0x1f, 0x04, 0x00 } },
		{ 6, { 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00 } },
	};

	for (size_t i = 0; i < sizeof nops / sizeof *nops; i++)
		if (code.size >= nops[i].size &&
		    memcmp(code.data, nops[i].bytes, nops[i].size) == 0)
			return nops[i].size;
	return 0;
}

/* Returns the kind of a call of @hook; 0: it is no site. */
static uint8_t kind_of_call(enum fathom_hook_kind hook, bool is_first)
{
	if (hook == FATHOM_HOOK_MCOUNT)
		return is_first ? FATHOM_SITE_FENTRY : FATHOM_SITE_MCOUNT;
	return hook == FATHOM_HOOK_ENTER || hook == FATHOM_HOOK_EITHER || hook == FATHOM_HOOK_BARE
		       ? FATHOM_SITE_CYG_PROFILE
		       : 0;
}

/*
 * Returns whether a branch in the code of @f after @low leads there: compilers align what a loop
 * starts with by a NOP.
 */
static bool is_branched_to(struct fathom_site_work *w, const struct fathom_function *f,
			   uint64_t low)
{
	const uint64_t end = fathom_functions_end(&w->functions, f);
	struct fathom_stack_code c;

	for (uint64_t at = low; at < end && fathom_site_decode(w, at, &c); at += c.size)
		if (c.is_direct && c.target == low)
			return true;
	return false;
}

/* Takes the NOP after the prologue that ends at @svma, if there is one. */
static fathom_err take_nop_behind(struct fathom_site_work *w, const struct fathom_function *f,
				  uint64_t svma)
{
	const struct fathom_raw_site s = { .svma = svma,
					   .function = f->svma,
					   .size = call_nop_size(fathom_site_code(w, svma)),
					   .kind = FATHOM_SITE_MCOUNT_NOP,
					   .is_behind = true };

	if (!is_branched_to(w, f, svma + s.size))
		return fathom_site_add(w, &s);
	fathom_site_refuse(w, FATHOM_REFUSED_AMBIGUOUS);
	return FATHOM_OK;
}

/* Follows @f to its first call, or to a NOP after its prologue. */
static fathom_err follow(struct fathom_site_work *w, const struct fathom_function *f)
{
	struct fathom_site_line line = fathom_site_line_init(f->svma);
	const uint64_t first =
		f->svma + fathom_landing_size(w->is_aarch64, fathom_site_code(w, f->svma));
	struct fathom_raw_site s = { .function = f->svma, .content = FATHOM_SITE_CALL };

	for (unsigned i = 0; i < MAX_INSTRUCTIONS; i++) {
		uint8_t size = 0;
		const enum fathom_hook_kind hook = fathom_hook_called(w, line.svma, &size);

		if (hook != FATHOM_HOOK_NONE) {
			s.svma = line.svma;
			s.size = size;
			s.is_behind = s.svma != first;
			s.is_bare = hook == FATHOM_HOOK_BARE;
			s.kind = kind_of_call(hook, !s.is_behind);
			s.frame = line.is_lost || line.frame >= FATHOM_SITE_NO_FRAME
					  ? FATHOM_SITE_NO_FRAME
					  : (uint16_t)line.frame;
			return s.kind && line.joined <= s.svma ? fathom_site_add(w, &s) : FATHOM_OK;
		}
		if (!w->is_aarch64 && line.has_frame && line.is_prologue && w->hooks.is_profiled &&
		    call_nop_size(fathom_site_code(w, line.svma)))
			return take_nop_behind(w, f, line.svma);
		if (!fathom_site_line_next(w, &line))
			return FATHOM_OK;
	}
	return FATHOM_OK;
}

/* Returns the bytes of the instruction by which a nested function keeps its static chain (%r10). */
static uint64_t chain_size(struct fathom_bytes code)
{
	static const uint8_t push[] = { 0x41, 0x52 };

	return code.size >= sizeof push && !memcmp(code.data, push, sizeof push) ? sizeof push : 0;
}

static fathom_err take_function(struct fathom_site_work *w, const struct fathom_function *f)
{
	const uint64_t first =
		f->svma + fathom_landing_size(w->is_aarch64, fathom_site_code(w, f->svma));
	const uint64_t kept = w->is_aarch64 ? 0 : chain_size(fathom_site_code(w, first));
	const struct fathom_raw_site nop = {
		.svma = first + kept,
		.function = f->svma,
		.size = call_nop_size(fathom_site_code(w, first + kept)),
		.kind = FATHOM_SITE_NOP,
		.is_behind = kept != 0,
		.frame = kept ? sizeof(uint64_t) : 0,
	};

	if (!w->is_aarch64 && nop.size)
		return fathom_site_add(w, &nop);
	if (!w->hooks.has_calls && !w->hooks.is_profiled)
		return FATHOM_OK;
	return follow(w, f);
}

fathom_err fathom_site_find_entries(struct fathom_site_work *w)
{
	const size_t n = w->functions.n;

	for (size_t i = 0; i < n; i++) {
		if (i % ASK_EVERY == 0 &&
		    !fathom_goes_on(w->module->session, FATHOM_PHASE_FIND, i, n))
			return FATHOM_E_CANCELLED;
		FATHOM_TRY(take_function(w, &w->functions.items[i]));
	}
	return FATHOM_OK;
}
