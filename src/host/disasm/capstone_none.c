/* SPDX-License-Identifier: MIT */
/* Stands in for capstone.c in builds without Capstone. */
#include "host/disasm/capstone.h"

fathom_err fathom_capstone_open(struct fathom_capstone **ret, struct fathom_errinfo *reterr)
{
	(void)ret;
	return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
			   "this build cannot disassemble aarch64 code: it lacks Capstone");
}

void fathom_capstone_close(struct fathom_capstone *c)
{
	(void)c;
}

bool fathom_capstone_decode(struct fathom_capstone *c, const uint8_t bytes[4], uint64_t address,
			    struct fathom_capstone_insn *ret)
{
	(void)c;
	(void)bytes;
	(void)address;
	(void)ret;
	return false;
}
