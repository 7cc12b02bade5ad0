/* SPDX-License-Identifier: MIT */
/* Stands in for x86.c and x86_text.c in builds without Zydis. */
#include "host/disasm/code.h"

fathom_err fathom_x86_open(bool is64, bool intel, struct fathom_code_decoder **ret,
			   struct fathom_errinfo *reterr)
{
	(void)is64;
	(void)intel;
	(void)ret;
	return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
			   "this build cannot disassemble x86 code: it lacks Zydis");
}
