/* SPDX-License-Identifier: MIT */
#include "host/code/aarch64/arm_stub.h"
#include "host/hook/hooked_site.h"

#include <string.h>
#include <unistd.h>

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
static bool write_stub(const struct fathom_hooked_site *s, struct fathom_text_writes *to)
{
	const uint64_t self = (uintptr_t)s;
	uint32_t stub[FATHOM_HOOK_STUB_SIZE / FATHOM_ARM_SIZE];

	(void)fathom_arm_put_hook_call(s->stub.avma, s->stub.dispatch, FATHOM_HOOK_FRAME, stub);
	(void)fathom_arm_jump(s->stub.avma + BACK_OFF, s->behind, &stub[3]);
	memcpy(&stub[4], &self, sizeof self);
	return fathom_text_writes_add(to, s->stub.avma, stub, sizeof stub, 0);
}

bool fathom_hooked_site_place(struct fathom_hooked_site *s, const struct fathom_site *site,
			      bool is_on, struct fathom_text_writes *stubs,
			      struct fathom_text_writes *to)
{
	uint32_t on;

	s->avma = s->toggle = site->address;
	s->function = site->function;
	s->place = site->place;
	s->behind = behind(site);
	s->toggle_size = FATHOM_ARM_SIZE;
	(void)fathom_arm_jump(s->avma, s->stub.avma, &on);
	memcpy(s->on, &on, sizeof s->on);
	memcpy(s->off, site->bytes, sizeof s->off);
	if (!write_stub(s, stubs))
		return false;
	return !is_on || fathom_text_writes_add(to, s->avma, s->on, sizeof s->on, 0);
}

bool fathom_hooked_site_is_there(const struct fathom_hooked_site *s, int memory)
{
	uint8_t code[FATHOM_ARM_SIZE];

	return pread(memory, code, sizeof code, (off_t)s->avma) == (ssize_t)sizeof code &&
	       (!memcmp(code, s->on, sizeof code) || !memcmp(code, s->off, sizeof code));
}

bool fathom_hooked_site_undo(const struct fathom_hooked_site *s, struct fathom_text_writes *to)
{
	return fathom_text_writes_add(to, s->avma, s->off, sizeof s->off, 0);
}
