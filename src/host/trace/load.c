/* SPDX-License-Identifier: MIT */
#include "host/trace/load.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fathom/find.h"
#include "host/base/page.h"
#include "host/code/x86_64/x86_instructions.h"
#include "host/space/target.h"
#include "host/trace/syscall_rewriter.h"
#include "host/trace/plt_calls.h"
#include "host/trace/hook_image.h"
#include "host/sites/list.h"
#include "safe/base/nops.h"
#include "host/trace/site_stubs.h"
#include "host/trace/patch.h"
#include "host/trace/got_slots.h"

/* Words from a return address, where the stack pointer is recorded, to the CFA. */
#define ABOVE 1

/* How far numbers go. */
#define MOST_NUMBERS (UINT64_C(1) << 32)

/* x86-64: a jump of five bytes, a return, and the start of a function with a frame pointer. */
enum { JUMP_SIZE = FATHOM_X86_BRANCH_SIZE };
static const uint8_t frame_setup[] = { 0x55, 0x48, 0x89, 0xe5 };

/* One look. */
struct look {
	struct fathom_loader *loader;
	struct fathom_traced *process;
	struct fathom_sites *sites;
	bool heals; /* all sites and slots are to be what their files have */
	bool no_memory;
};

static uint64_t hash_name(const char *name)
{
	uint64_t h = UINT64_C(14695981039346656037);

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * UINT64_C(1099511628211);
	return h;
}

struct fathom_loaded_module *fathom_find_loaded(const struct fathom_traced *p, uint64_t bias,
						const char *path)
{
	const uint64_t name = hash_name(path);

	for (size_t i = 0; i < p->modules.n; i++)
		if (p->modules.items[i].bias == bias && p->modules.items[i].name == name)
			return &p->modules.items[i];
	return NULL;
}

/* Returns whether the sites of module @m are to be listed: it was not seen yet. */
static bool is_new(void *data, const struct fathom_module_at *m)
{
	struct look *look = data;
	struct fathom_loaded_module *known = fathom_find_loaded(look->process, m->bias, m->name);
	const struct fathom_loaded_module fresh = { .bias = m->bias,
						    .name = hash_name(m->name),
						    .is_seen = true };

	if (known)
		known->is_seen = true;
	else if (!fathom_array_push(&look->process->modules, fresh))
		look->no_memory = true;
	if (!known && look->loader->rewriter)
		fathom_syscalls_rewrite(look->loader->rewriter, look->process, m);
	return !known && !(look->loader->rewriter && look->loader->rewriter->is_only);
}

static void forget_module(struct fathom_traced *p, const struct fathom_loaded_module *m)
{
	if (m->slot)
		fathom_program_free_slot(p, m->slot);
	if (m->own_slot)
		fathom_program_free_slot(p, m->own_slot);
	fathom_text_plan_release(m->plan);
	fathom_hooked_release(m->hooked);
}

/* Forgets the modules that were not seen. */
static void forget(struct fathom_traced *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->modules.n; i++) {
		if (p->modules.items[i].is_seen)
			p->modules.items[n++] = p->modules.items[i];
		else
			forget_module(p, &p->modules.items[i]);
	}
	p->modules.n = n;
}

bool fathom_hooks_make(struct fathom_loader *l, struct fathom_traced *p, uint64_t low,
		       uint64_t high, struct fathom_hooks *ret)
{
	const uint64_t base = low - l->next;
	const struct fathom_hook_words words = { p->program->process, p->program->image, base };
	const uint64_t slot = fathom_program_slot(p, low, high);
	uint8_t bytes[FATHOM_HOOK_SLOT] = { 0 };
	uint32_t offs[FATHOM_HOOK_PLACES];

	*ret = (struct fathom_hooks){ .slot = 0 };
	if (!slot || l->next + (high - low) >= MOST_NUMBERS)
		return false;
	fathom_image_hook((enum fathom_trace_clock)l->options->clock, &words, bytes, offs);
	if (!fathom_tracee_write(&p->tracee, slot, bytes, sizeof bytes))
		return false;
	fathom_injected_code_add(l->insider.told, slot, FATHOM_HOOK_SLOT,
				 FATHOM_INJECTED_HOOK + l->options->clock);
	l->next += high - low + 1;
	ret->slot = slot;
	ret->base = base;
	for (size_t i = 0; i < FATHOM_HOOK_PLACES; i++)
		ret->at[i] = slot + offs[i];
	return true;
}

/* Returns whether the function of @s has set the frame pointer before the site. */
static bool has_frame(const struct fathom_traced *p, const struct fathom_site *s)
{
	uint8_t code[FATHOM_LANDING + sizeof frame_setup];
	size_t off;

	if (!(s->flags & FATHOM_SITE_BEHIND_PROLOGUE))
		return false;
	/* Unwind rules say so (sites/exits.c). */
	if (s->place != FATHOM_SITE_ENTRY)
		return s->kind == FATHOM_SITE_CYG_PROFILE;
	if (!fathom_tracee_read(&p->tracee, s->function, code, sizeof code))
		return false;
	off = fathom_landing_size(false, (struct fathom_bytes){ code, sizeof code });
	return !memcmp(code + off, frame_setup, sizeof frame_setup);
}

/*
 * Returns whether site @s is a call of something of the program: of hooks that it has the compiler
 * call, or the profiler, whose own log is to be whole. What it calls is called after the hook.
 */
static bool leads_on(const struct fathom_site *s)
{
	return s->kind == FATHOM_SITE_CYG_PROFILE || s->content == FATHOM_SITE_CALL;
}

/* Returns whether site @s is to lead to a stub elsewhere. */
static bool wants_stub(const struct fathom_site *s)
{
	return leads_on(s) || fathom_patch_needs_stub(s);
}

/*
 * Reports the code outside of functions that site @s leads to, where the hook returns to @back:
 * a stub elsewhere if it @is_stub.
 */
static void tell(struct fathom_injected_code *told, const struct fathom_site *s, uint64_t back,
		 bool is_stub)
{
	if (is_stub)
		fathom_injected_code_add(told, back - FATHOM_SLOT_RETURN, FATHOM_STUB_SIZE,
					 FATHOM_INJECTED_STUB);
	else if (back <= s->function)
		fathom_injected_code_add(told, back - FATHOM_X86_BRANCH_SIZE,
					 s->function - back + FATHOM_X86_BRANCH_SIZE,
					 FATHOM_INJECTED_STUB);
}

/* Returns what the hook knows at site @s, where something is called after it if that @goes_on. */
static enum fathom_hook_place place_of(const struct fathom_traced *p, const struct fathom_site *s,
				       bool goes_on)
{
	const bool is_behind = has_frame(p, s);

	if (s->kind != FATHOM_SITE_CYG_PROFILE && is_behind)
		return FATHOM_HOOK_BEHIND_PROLOGUE;
	if (s->kind != FATHOM_SITE_CYG_PROFILE)
		return goes_on ? FATHOM_HOOK_AT_CALL : FATHOM_HOOK_AT_ENTRY;
	if (s->place == FATHOM_SITE_ENTRY)
		return is_behind ? FATHOM_HOOK_BEHIND_PROLOGUE : FATHOM_HOOK_AT_OWN_CALL;
	if (fathom_site_stubs_is_jump(s))
		return FATHOM_HOOK_AT_ENTRY;
	return is_behind ? FATHOM_HOOK_AT_OWN_CALL_BEHIND : FATHOM_HOOK_AT_OWN_CALL;
}

/* Makes site @s call the hook, and adds that to @plan; adds it to @span. FATHOM_E_MEMORY. */
static fathom_err patch(struct look *look, struct fathom_tracee_text *text,
			struct fathom_text_plan *plan, const struct fathom_hooks *hooks,
			struct fathom_site_stubs *own, struct fathom_site_range *span,
			const struct fathom_site_module *m, const struct fathom_site *s)
{
	const bool is_own = s->kind == FATHOM_SITE_CYG_PROFILE || (wants_stub(s) && own->left);
	const enum fathom_hook_place place = place_of(look->process, s, is_own && leads_on(s));
	const uint64_t hook = hooks->at[place];
	struct fathom_loader *l = look->loader;
	struct fathom_site_range_site site = { .place = s->place };
	enum fathom_patch_refusal why = FATHOM_PATCH_CHANGED;
	const size_t first = plan->n;
	const bool is_clean = fathom_patch_is_clean(s, &text->memory);
	uint64_t back = 0;

	if (is_clean && is_own)
		why = fathom_site_stubs_patch(own, &look->process->tracee, s, place, plan, &back);
	else if (is_clean && fathom_patch_needs_stub(s))
		why = FATHOM_PATCH_NO_ROOM;
	else if (is_clean)
		why = hook ? fathom_patch_site(s, hook, plan, &back) : FATHOM_PATCH_TOO_FAR;
	if (why == FATHOM_PATCH_NO_MEMORY)
		return FATHOM_E_MEMORY;
	if (why == FATHOM_PATCH_DONE && !fathom_text_plan_put(plan, first, true, &text->memory))
		return FATHOM_E_OS;
	if (why != FATHOM_PATCH_DONE) {
		span->lacks_returns |= s->place != FATHOM_SITE_ENTRY;
		fathom_loader_refuse(l, why);
		return FATHOM_OK;
	}
	tell(l->insider.told, s, back, is_own);
	site.number = (uint32_t)(back - (is_own ? own->hooks.base : hooks->base));
	if (place == FATHOM_HOOK_AT_OWN_CALL)
		site.frame = (uint16_t)(s->frame / sizeof(uint64_t) + FATHOM_SITE_STUB_WORDS);
	/* The function is recorded, not the callee. */
	site.has_no_fp =
		place == FATHOM_HOOK_AT_OWN_CALL || place == FATHOM_HOOK_AT_OWN_CALL_BEHIND;
	site.has_no_caller = site.has_no_fp && s->flags & FATHOM_SITE_BARE;
	/* A nested function has its static chain above. */
	if (s->kind != FATHOM_SITE_CYG_PROFILE && place != FATHOM_HOOK_BEHIND_PROLOGUE &&
	    s->frame && s->frame != FATHOM_SITE_NO_FRAME) {
		site.frame = (uint16_t)(s->frame / sizeof(uint64_t));
		site.has_no_caller = true;
	}
	site.back = back;
	return fathom_loader_add(l, span, m, s, &site);
}

/*
 * Makes stubs for the wanted sites of @m from site @i on that lead to one; false if there is no
 * room.
 */
static bool make_site_stubs(const struct look *look, const struct fathom_site_module *m, size_t i,
			    struct fathom_site_stubs *ret)
{
	const struct fathom_site *last = fathom_sites_get(look->sites, m->first + m->count - 1);
	size_t n = 0;

	for (; i < m->first + m->count; i++) {
		const struct fathom_site *s = fathom_sites_get(look->sites, i);

		n += wants_stub(s) && fathom_loader_wants(look->loader, s);
	}
	return fathom_site_stubs_make(look->loader, look->process, n,
				      fathom_sites_get(look->sites, m->first)->function,
				      last->address + last->size, ret);
}

/* Makes the wanted sites of module @m call the hook. */
static fathom_err patch_module(struct look *look, struct fathom_tracee_text *text,
			       struct fathom_site_range *span, const struct fathom_site_module *m)
{
	struct fathom_loaded_module *known = fathom_find_loaded(look->process, m->bias, m->path);
	struct fathom_hooks hooks = { .slot = 0 };
	struct fathom_site_stubs own = { .left = 0 };
	fathom_err err = FATHOM_OK;
	const uint64_t n_before = look->loader->n_sites;
	uint64_t recorded = UINT64_MAX;
	bool is_first = true;
	bool may_own = true;
	bool is_direct;

	if (known && !known->plan)
		known->plan = fathom_text_plan_create();
	if (!known || !known->plan)
		return FATHOM_E_MEMORY;
	for (size_t i = m->first; i < m->first + m->count && !err; i++) {
		const struct fathom_site *s = fathom_sites_get(look->sites, i);
		const struct fathom_site *last =
			fathom_sites_get(look->sites, m->first + m->count - 1);
		const uint64_t before = look->loader->n_sites;

		/* A function that was built with several kinds of sites is entered once. */
		if (!fathom_loader_wants(look->loader, s) ||
		    (s->place == FATHOM_SITE_ENTRY && s->function == recorded))
			continue;
		if (wants_stub(s) && may_own && !own.left) {
			may_own = make_site_stubs(look, m, i, &own);
			if (may_own)
				known->own_slot = own.hooks.slot;
		}
		is_direct = s->kind != FATHOM_SITE_CYG_PROFILE && !(wants_stub(s) && own.left);
		if (is_direct && is_first &&
		    fathom_hooks_make(look->loader, look->process, s->function - s->prefix_size,
				      last->address + last->size, &hooks))
			known->slot = hooks.slot;
		is_first &= !is_direct;
		err = patch(look, text, known->plan, &hooks, &own, span, m, s);
		if (s->place == FATHOM_SITE_ENTRY && look->loader->n_sites > before)
			recorded = s->function;
	}
	if (!fathom_tracee_text_flush(text))
		err = FATHOM_E_OS;
	known->n_places += look->loader->n_sites - n_before;
	if (!err && m->count && !fathom_loader_add_code(look->sites, m, ABOVE, span))
		err = FATHOM_E_MEMORY;
	return err;
}

/* Makes the sites of all new modules call the hook. */
static fathom_err patch_all(struct look *look)
{
	struct fathom_tracee_text text;
	struct fathom_site_range *span = fathom_site_range_create();
	fathom_err err = FATHOM_OK;

	fathom_tracee_text_init(&text, &look->process->tracee);
	for (size_t i = 0; !err && span && i < fathom_sites_module_count(look->sites); i++)
		err = patch_module(look, &text, span, fathom_sites_module_get(look->sites, i));
	if (!span) {
		fathom_sites_free(look->sites);
		return FATHOM_E_MEMORY;
	}
	/* The names of functions stay with the sites. */
	span->sites = look->sites;
	fathom_site_range_finish(span);
	if (span->n)
		look->loader->loaded(look->loader->data, span);
	else
		fathom_site_range_destroy(span);
	return err;
}

/* Reads what the file has that is mapped at @avma of @p. */
static bool read_file(const struct fathom_traced *p, uint64_t avma, uint8_t *to, size_t size)
{
	struct fathom_maps maps;
	char path[PATH_MAX + 64];
	const struct fathom_mapping *m = NULL;
	ssize_t n = -1;
	int fd = -1;
	size_t i;

	(void)snprintf(path, sizeof path, "/proc/%d/maps", (int)p->tracee.pid);
	if (fathom_maps_read(path, &maps, NULL))
		return false;
	i = fathom_maps_at(&maps, avma);
	if (i < maps.n && maps.items[i].inode) {
		m = &maps.items[i];
		(void)snprintf(path, sizeof path, "/proc/%d/map_files/%llx-%llx",
			       (int)p->tracee.pid, (unsigned long long)m->start,
			       (unsigned long long)m->end);
		fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	if (fd >= 0) {
		n = pread(fd, to, size, (off_t)(m->off + (avma - m->start)));
		close(fd);
	}
	fathom_maps_deinit(&maps);
	return n == (ssize_t)size;
}

/* Takes a jump away that someone has left at @function. */
static void heal_watched(const struct fathom_loader *l, struct fathom_traced *p, uint64_t function)
{
	uint8_t now[16];
	uint8_t code[sizeof now];

	(void)l;
	if (fathom_tracee_read(&p->tracee, function, now, sizeof now) &&
	    read_file(p, function, code, sizeof code) && memcmp(now, code, sizeof now) != 0 &&
	    fathom_tracee_write(&p->tracee, function, code, sizeof code))
		p->n_healed++;
}

/* Leads @function, of the dynamic linker, which only returns, to the runtime. */
static void watch_at(const struct fathom_loader *l, struct fathom_traced *p, uint64_t function)
{
	const struct fathom_hook_words words = { p->program->process, p->program->image, 0 };
	const uint64_t slot = fathom_program_slot(p, function, function);
	uint8_t bytes[FATHOM_HOOK_SLOT] = { 0 };
	struct fathom_tracee_text text;
	uint8_t code[16], jump[JUMP_SIZE];
	struct fathom_bytes behind;
	uint32_t entry;
	size_t first, off;

	if (!p->watch)
		p->watch = fathom_text_plan_create();
	if (!slot || !p->watch || !fathom_tracee_read(&p->tracee, function, code, sizeof code))
		return;
	off = fathom_landing_size(false, (struct fathom_bytes){ code, sizeof code });
	if (code[off] != FATHOM_X86_RET)
		return;
	/* A jump is longer: after the return there must be nothing but padding. */
	behind = (struct fathom_bytes){ code + off + 1, sizeof code - off - 1 };
	if (fathom_nops_size(false, behind, behind.size) < JUMP_SIZE - 1)
		return;
	entry = fathom_image_loaded(&words, bytes);
	first = p->watch->n;
	fathom_injected_code_add(l->insider.told, slot, sizeof bytes, FATHOM_INJECTED_LOADED);
	fathom_tracee_text_init(&text, &p->tracee);
	if (!fathom_tracee_write(&p->tracee, slot, bytes, sizeof bytes) ||
	    !fathom_x86_put_jump(function + off, slot + entry, jump) ||
	    !fathom_text_plan_add(p->watch, function + off, code + off, jump, sizeof jump, 0) ||
	    !fathom_text_plan_put(p->watch, first, true, &text.memory) ||
	    !fathom_tracee_text_flush(&text))
		fathom_text_plan_cut(p->watch, first);
}

/*
 * Calls @fn for the empty function that the dynamic linker calls when it has loaded something:
 * debuggers have a breakpoint in it (glibc and musl, r_brk in <link.h>).
 */
static void find_watched(const struct fathom_loader *l, struct fathom_traced *p,
			 struct fathom_target *target,
			 void (*fn)(const struct fathom_loader *l, struct fathom_traced *p,
				    uint64_t function))
{
	static const char *const name[] = { "_dl_debug_state" };
	const struct fathom_find_options o = { .size = sizeof o, .flags = FATHOM_FIND_LINKED };
	struct fathom_matches *matches;

	if (fathom_find(target, &o, name, 1, &matches, NULL))
		return;
	for (size_t i = 0; i < fathom_matches_count(matches); i++)
		if (fathom_matches_get(matches, i)->flags & FATHOM_MATCH_ADDRESS)
			fn(l, p, fathom_matches_get(matches, i)->address);
	fathom_matches_free(matches);
}

/* Returns which slots of new modules are listed; the program itself is mapped first. */
static enum fathom_lists_slots wanted_slots(const struct look *look)
{
	const uint32_t flags = look->loader->options->flags;
	const struct fathom_traced *p = look->process;

	if (flags & (FATHOM_TRACE_CALLS | FATHOM_TRACE_NO_CALLS))
		return flags & FATHOM_TRACE_CALLS ? FATHOM_LISTS_SLOTS : FATHOM_LISTS_NO_SLOTS;
	if (p->has_looked)
		return p->wants_calls ? FATHOM_LISTS_SLOTS : FATHOM_LISTS_NO_SLOTS;
	return FATHOM_LISTS_SLOTS_WITHOUT_SITES;
}

/* Finds the sites of new modules in @target, and which of them are chosen. */
static fathom_err find_sites(struct look *look, struct fathom_target *target,
			     struct fathom_errinfo *reterr)
{
	struct fathom_sites_choice choice = {
		.wants = is_new,
		.data = look,
		.slots = look->heals ? FATHOM_LISTS_SLOTS : wanted_slots(look),
	};

	for (size_t i = 0; i < look->process->modules.n; i++)
		look->process->modules.items[i].is_seen = false;
	FATHOM_TRY(fathom_loader_list(look->loader, target, &choice, &look->sites, reterr));
	if (!look->no_memory)
		return FATHOM_OK;
	fathom_sites_free(look->sites);
	look->sites = NULL;
	return fathom_fail_memory(reterr);
}

/* Makes the library calls of new modules call the hook. */
static fathom_err hook_calls(struct look *look)
{
	const enum fathom_lists_slots wanted = wanted_slots(look);
	struct fathom_traced *p = look->process;
	fathom_err err = FATHOM_OK;

	if (!p->has_looked && fathom_sites_module_count(look->sites))
		p->wants_calls = !fathom_sites_module_get(look->sites, 0)->count;
	p->has_looked = true;
	if (wanted == FATHOM_LISTS_NO_SLOTS ||
	    (wanted == FATHOM_LISTS_SLOTS_WITHOUT_SITES && !p->wants_calls))
		return FATHOM_OK;
	for (size_t i = 0; !err && i < fathom_sites_module_count(look->sites); i++) {
		const struct fathom_site_module *m = fathom_sites_module_get(look->sites, i);

		err = fathom_plt_calls_hook(look->loader, p, look->sites, m);
	}
	return err;
}

/* Makes the sites that were found call the hook. */
static fathom_err patch_found(struct look *look)
{
	fathom_err err;

	forget(look->process);
	err = hook_calls(look);
	if (!err && fathom_sites_count(look->sites))
		err = patch_all(look);
	else
		fathom_sites_free(look->sites);
	fathom_program_note_places(look->process);
	return err;
}

fathom_err fathom_load_modules(struct fathom_loader *l, struct fathom_traced *p,
			       struct fathom_errinfo *reterr)
{
	struct look look = { .loader = l, .process = p };
	struct fathom_target *target;
	fathom_err err;

	FATHOM_TRY(fathom_target_open_process(l->session, p->tracee.pid, NULL, &target, reterr));
	if (!fathom_program_is_watched(p))
		find_watched(l, p, target, watch_at);
	err = find_sites(&look, target, reterr);
	if (!err)
		err = patch_found(&look);
	fathom_target_release(target);
	return err;
}

/* Returns whether @pc is within bytes that a change of @s replaces, behind the first of them. */
static bool is_amid(const struct fathom_site *s, uint64_t pc)
{
	uint64_t low, size;

	if (pc > s->address && pc < s->address + s->size)
		return true;
	return fathom_patch_stub(s, &low, &size) && pc > low && pc < low + size;
}

/*
 * Moves threads of the process out of slots that they stand in the middle of, and out of NOPs where
 * a stub is to be: one that comes back there from a tracer's hook, which has gone, runs through
 * them.
 */
static void move_out(const struct look *look, const pid_t *tids, size_t n)
{
	const size_t n_sites = fathom_sites_count(look->sites);

	for (size_t i = 0; i < n; i++) {
		struct user_regs_struct regs;
		const struct fathom_site *s;
		size_t k;

		if (!fathom_tracee_get(tids[i], &regs))
			continue;
		/* Those of one module are sorted; modules are not. */
		for (k = 0; k < n_sites; k++) {
			s = fathom_sites_get(look->sites, k);
			if (is_amid(s, regs.rip))
				break;
		}
		if (k == n_sites || s->content != FATHOM_SITE_NOPS)
			continue;
		regs.rip = s->address + s->size;
		(void)fathom_tracee_set(tids[i], &regs);
	}
}

struct fathom_found_modules {
	struct look look;
	struct fathom_target *target;
};

fathom_err fathom_load_find(struct fathom_loader *l, struct fathom_traced *p,
			    struct fathom_found_modules **ret, struct fathom_errinfo *reterr)
{
	struct fathom_found_modules *found = calloc(1, sizeof *found);
	fathom_err err;

	if (!found)
		return fathom_fail_memory(reterr);
	found->look = (struct look){ .loader = l, .process = p, .heals = p->was_traced };
	err = fathom_target_open_process(l->session, p->tracee.pid, NULL, &found->target, reterr);
	if (!err)
		err = find_sites(&found->look, found->target, reterr);
	if (err) {
		fathom_load_discard(found);
		return err;
	}
	*ret = found;
	return FATHOM_OK;
}

/* Makes the sites of @m what its file has. */
static void heal_module(struct look *look, struct fathom_tracee_text *text,
			const struct fathom_site_module *m)
{
	for (size_t i = m->first; i < m->first + m->count; i++)
		if (fathom_patch_heal(fathom_sites_get(look->sites, i), &text->memory))
			look->process->n_healed++;
	for (size_t i = m->first_slot; i < m->first_slot + m->slots; i++)
		if (fathom_got_slots_heal(look->process, fathom_sites_slot_get(look->sites, i),
					  m->bias))
			look->process->n_healed++;
}

void fathom_load_heal(struct fathom_found_modules *found)
{
	struct look *look = &found->look;
	struct fathom_tracee_text text;

	fathom_tracee_text_init(&text, &look->process->tracee);
	for (size_t i = 0; i < fathom_sites_module_count(look->sites); i++)
		heal_module(look, &text, fathom_sites_module_get(look->sites, i));
	(void)fathom_tracee_text_flush(&text);
	find_watched(look->loader, look->process, found->target, heal_watched);
}

fathom_err fathom_load_found(struct fathom_found_modules *found, const pid_t *tids, size_t n)
{
	struct look *look = &found->look;
	fathom_err err;

	find_watched(look->loader, look->process, found->target, watch_at);
	move_out(look, tids, n);
	err = patch_found(look);
	look->sites = NULL;
	return err;
}

void fathom_load_discard(struct fathom_found_modules *found)
{
	if (!found)
		return;
	fathom_sites_free(found->look.sites);
	fathom_target_release(found->target);
	free(found);
}

bool fathom_unload(struct fathom_traced *p, bool stands)
{
	struct fathom_tracee_text text;
	bool is_done = true;

	fathom_tracee_text_init(&text, &p->tracee);
	for (size_t i = 0; i < p->modules.n; i++) {
		const struct fathom_loaded_module *m = &p->modules.items[i];

		if (m->plan && !fathom_text_plan_put(m->plan, 0, false, &text.memory))
			is_done = false;
		/* Its slots may be in the same pages. */
		if (!fathom_tracee_text_flush(&text))
			is_done = false;
		if (m->hooked)
			fathom_got_slots_undo(&p->tracee, m->hooked, stands);
	}
	if (p->watch && !fathom_text_plan_put(p->watch, 0, false, &text.memory))
		is_done = false;
	return fathom_tracee_text_flush(&text) && is_done;
}
