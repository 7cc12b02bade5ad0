/* SPDX-License-Identifier: MIT */
#include "host/code/aarch64/arm_stub.h"
#include "host/hook/hooked_site.h"

#include <string.h>

#include "host/trace/patch.h"

/* Offset in a stub of the branch back. */
enum { BACK_OFF = FATHOM_ARM_HOOK_CALL_WORDS * FATHOM_ARM_SIZE };

uint8_t fathom_hooked_site_check(const struct fathom_site *site)
{
	/* The program's own function is called there; or x30 is not the return address. */
	if (site->kind == FATHOM_SITE_CYG_PROFILE || site->content == FATHOM_SITE_CALL ||
	    site->flags & FATHOM_SITE_BEHIND_PROLOGUE || site->size < FATHOM_ARM_SIZE)
		return FATHOM_TRACE_NO_ROOM;
	if (memcmp((const void *)(uintptr_t)site->address, site->bytes, site->size) != 0)
		return FATHOM_TRACE_CHANGED;
	return FATHOM_PATCH_DONE;
}

/* Returns where the function of @site goes on: a sled is a branch over all of it. */
static uint64_t behind(const struct fathom_site *site)
{
	return site->address + (site->content == FATHOM_SITE_SLED ? site->size : FATHOM_ARM_SIZE);
}

bool fathom_hooked_site_reaches(const struct fathom_site *site, uint64_t stub)
{
	uint32_t op;

	return fathom_arm_jump(site->address, stub, &op) &&
	       fathom_arm_jump(stub + BACK_OFF, behind(site), &op);
}

/* Adds the write of the stub. */
static bool write_stub(const struct fathom_hooked_site *s, struct fathom_text_plan *to)
{
	const uint64_t self = (uintptr_t)s;
	uint32_t stub[FATHOM_HOOK_STUB_SIZE / FATHOM_ARM_SIZE];

	(void)fathom_arm_put_site_stub(s->stub.avma, s->stub.dispatch, FATHOM_HOOK_FRAME, s->back,
				       stub);
	memcpy(&stub[FATHOM_ARM_SITE_STUB_WORDS], &self, sizeof self);
	return fathom_text_plan_add(to, s->stub.avma, NULL, stub, sizeof stub, 0);
}

bool fathom_hooked_site_place(struct fathom_hooked_site *s, const struct fathom_site *site,
			      bool is_on, struct fathom_text_plan *stubs,
			      struct fathom_hook_plans *plans)
{
	uint32_t op;
	uint8_t on[FATHOM_ARM_SIZE];

	s->avma = site->address;
	s->function = site->function;
	s->place = site->place;
	s->back = behind(site);
	(void)fathom_arm_jump(s->avma, s->stub.avma, &op);
	memcpy(on, &op, sizeof on);
	return write_stub(s, stubs) && fathom_hooked_site_plan(plans, s->avma, site->bytes, on,
							       site->bytes, sizeof on, 0, is_on);
}
