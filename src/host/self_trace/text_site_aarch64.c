/* SPDX-License-Identifier: MIT */
#include "host/self_trace/text_site.h"

#include <string.h>

#include "host/code/aarch64/arm_stub.h"

/* The hook records the stack pointer of the entry. */
const uint32_t fathom_text_site_above = 0;

enum fathom_patch_refusal fathom_text_site_check(const struct fathom_site *s,
						 struct fathom_stub_site *ret)
{
	if (fathom_text_site_lacks_frame(s))
		return FATHOM_PATCH_NO_FRAME;
	if (s->size < FATHOM_ARM_SIZE || s->address % FATHOM_ARM_SIZE)
		return FATHOM_PATCH_NO_ROOM;
	if (memcmp((const void *)(uintptr_t)s->address, s->bytes, s->size) != 0)
		return FATHOM_PATCH_CHANGED;
	*ret = (struct fathom_stub_site){
		.site = s->address,
		.from = s->address,
		/* A sled is a branch over all of it. */
		.back = s->address + (s->content == FATHOM_SITE_SLED ? s->size : FATHOM_ARM_SIZE),
	};
	return FATHOM_PATCH_DONE;
}

uint64_t fathom_text_site_add(const struct fathom_site *s, const struct fathom_stub_site *to,
			      struct fathom_text_plan *plan, bool *ret_is_far)
{
	uint32_t jump;

	*ret_is_far = !to->stub || !fathom_arm_jump(s->address, to->stub, &jump);
	return !*ret_is_far && fathom_text_plan_add(plan, s->address, s->bytes, &jump, sizeof jump,
						    0)
		       ? to->stub + FATHOM_ARM_HOOK_CALL_BACK
		       : 0;
}
