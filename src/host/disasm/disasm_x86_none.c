/* SPDX-License-Identifier: MIT */
/* Stands in for disasm_x86.c and disasm_x86_text.c in builds without Zydis. */
#include "disasm_code.h"

fathom_err fathom_x86_open(bool is64, bool intel, struct fathom_decoder **ret,
			   struct fathom_errinfo *reterr)
{
	(void)is64;
	(void)intel;
	(void)ret;
	return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
			   "this build cannot disassemble x86 code: it lacks Zydis");
}
