/* SPDX-License-Identifier: MIT */
#include "host/code/x86_64/x86_stub.h"
#include "host/hook/hooked_site.h"

#include <string.h>

#include "host/trace/patch.h"

enum { SHORT_SIZE = FATHOM_X86_SHORT_SIZE, LONG_SIZE = FATHOM_HOOK_JUMP_SIZE };

static bool is_short(const struct fathom_site *site)
{
	return site->size < LONG_SIZE;
}

/* Returns whether the slot begins with the function's return (XRay). */
static bool is_return(const struct fathom_site *site)
{
	return site->content == FATHOM_SITE_SLED && site->place == FATHOM_SITE_RETURN;
}

static uint64_t prefix_of(const struct fathom_site *site)
{
	return site->function - site->prefix_size;
}

/* Returns bytes of the calling process. */
static const uint8_t *bytes_at(uint64_t avma)
{
	return (const uint8_t *)(uintptr_t)avma;
}

/* Returns how far the short jump of @site leads back, or 0 if it cannot. */
static int to_prefix(const struct fathom_site *site)
{
	const int64_t distance = (int64_t)(prefix_of(site) - (site->address + SHORT_SIZE));

	return distance < INT8_MIN || distance >= 0 ? 0 : (int)distance;
}

uint8_t fathom_hooked_site_check(const struct fathom_site *site)
{
	/* The program's own function is called there. */
	if (site->kind == FATHOM_SITE_CYG_PROFILE)
		return FATHOM_TRACE_NO_ROOM;
	/* A nested function has pushed its static chain. */
	if (site->kind == FATHOM_SITE_NOP && site->flags & FATHOM_SITE_BEHIND_PROLOGUE)
		return FATHOM_TRACE_NO_FRAME;
	if (is_short(site) &&
	    (site->size < SHORT_SIZE || site->prefix_size < LONG_SIZE || !to_prefix(site)))
		return FATHOM_TRACE_NO_ROOM;
	if (memcmp(bytes_at(site->address), site->bytes, site->size) != 0 ||
	    (is_short(site) &&
	     memcmp(bytes_at(prefix_of(site)), site->prefix, site->prefix_size) != 0))
		return FATHOM_TRACE_CHANGED;
	return FATHOM_PATCH_DONE;
}

bool fathom_hooked_site_reaches(const struct fathom_site *site, uint64_t stub)
{
	const uint64_t from = is_short(site) ? prefix_of(site) : site->address;
	uint8_t past[LONG_SIZE], back[LONG_SIZE];
	uint8_t jump[LONG_SIZE];

	if (!fathom_x86_put_jump(from, stub, jump) ||
	    !fathom_x86_put_jump(from, stub + LONG_SIZE, past) ||
	    !fathom_x86_put_jump(stub + LONG_SIZE, site->address, back))
		return false;
	return is_short(site) || memcmp(jump + 2, past + 2, sizeof jump - 2) == 0;
}

/* Adds the write of the stub. */
static bool write_stub(const struct fathom_hooked_site *s, const struct fathom_site *site,
		       struct fathom_text_plan *to)
{
	const uint64_t self = (uintptr_t)s;
	uint8_t stub[FATHOM_HOOK_STUB_SIZE] = { 0 };

	(void)fathom_x86_put_site_stub(s->stub.avma, s->stub.dispatch,
				       is_return(site) ? 0 : s->back, stub);
	memcpy(stub + sizeof stub - sizeof self, &self, sizeof self);
	return fathom_text_plan_add(to, s->stub.avma, NULL, stub, sizeof stub, 0);
}

/* A short slot: switched by where its jump leads. */
static bool place_short(struct fathom_hooked_site *s, const struct fathom_site *site, bool is_on,
			struct fathom_hook_plans *plans)
{
	const uint8_t on[] = { FATHOM_X86_SHORT_JUMP, (uint8_t)to_prefix(site) };
	const uint8_t off[] = { FATHOM_X86_SHORT_JUMP, (uint8_t)(site->size - SHORT_SIZE) };
	uint8_t jump[LONG_SIZE];

	s->prefix = prefix_of(site);
	(void)fathom_x86_put_jump(s->prefix, s->stub.avma, jump);
	return fathom_text_plan_add(&plans->text, s->prefix, site->prefix, jump, sizeof jump, 0) &&
	       fathom_hooked_site_plan(plans, s->avma, site->bytes, on, off, sizeof on, s->back,
				       is_on);
}

static bool place_long(struct fathom_hooked_site *s, const struct fathom_site *site, bool is_on,
		       struct fathom_hook_plans *plans)
{
	uint8_t on[LONG_SIZE], off[LONG_SIZE];

	(void)fathom_x86_put_jump(s->avma, s->stub.avma, on);
	(void)fathom_x86_put_jump(s->avma, s->stub.avma + LONG_SIZE, off);
	s->prefix = 0;
	return fathom_hooked_site_plan(plans, s->avma, site->bytes, on, off, sizeof on, s->back,
				       is_on);
}

bool fathom_hooked_site_place(struct fathom_hooked_site *s, const struct fathom_site *site,
			      bool is_on, struct fathom_text_plan *stubs,
			      struct fathom_hook_plans *plans)
{
	s->avma = site->address;
	s->function = site->function;
	s->place = site->place;
	s->is_behind_prologue = (site->flags & FATHOM_SITE_BEHIND_PROLOGUE) != 0;
	s->back = site->address + (is_return(site) ? 1 : site->size);
	return write_stub(s, site, stubs) &&
	       (is_short(site) ? place_short : place_long)(s, site, is_on, plans);
}
