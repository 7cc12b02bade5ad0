/* SPDX-License-Identifier: MIT */
#include "host/disasm/capstone.h"

#include <capstone/capstone.h>
#include <stdio.h>
#include <stdlib.h>

#include "host/base/library.h"
#include "host/file/file.h"

struct fathom_capstone {
	csh handle;
	cs_insn *insn;
	cs_err (*open)(cs_arch arch, cs_mode mode, csh *handle);
	cs_err (*close)(csh *handle);
	cs_err (*option)(csh handle, cs_opt_type type, size_t value);
	cs_insn *(*malloc)(csh handle);
	void (*free)(cs_insn *insn, size_t count);
	bool (*iterate)(csh handle, const uint8_t **code, size_t *size, uint64_t *address,
			cs_insn *insn);
	cs_err (*registers)(csh handle, const cs_insn *insn, cs_regs read, uint8_t *n_read,
			    cs_regs written, uint8_t *n_written);
};

/* Names the library whose structures the headers of this build describe. */
static void format_soname(char *name, size_t cap)
{
	(void)snprintf(name, cap, "libcapstone.so.%d", CS_API_MAJOR);
}

static const struct fathom_library_symbol symbols[] = {
	{ "cs_open", offsetof(struct fathom_capstone, open) },
	{ "cs_close", offsetof(struct fathom_capstone, close) },
	{ "cs_option", offsetof(struct fathom_capstone, option) },
	{ "cs_malloc", offsetof(struct fathom_capstone, malloc) },
	{ "cs_free", offsetof(struct fathom_capstone, free) },
	{ "cs_disasm_iter", offsetof(struct fathom_capstone, iterate) },
	{ "cs_regs_access", offsetof(struct fathom_capstone, registers) },
};

static bool open_library(struct fathom_capstone *c)
{
	char name[32];

	format_soname(name, sizeof name);
	return fathom_library_open(name, symbols, sizeof symbols / sizeof *symbols, c);
}

fathom_err fathom_capstone_open(struct fathom_capstone **ret, struct fathom_errinfo *reterr)
{
	struct fathom_capstone *c = calloc(1, sizeof *c);
	char name[32];

	if (!c)
		return fathom_fail_memory(reterr);
	if (!open_library(c)) {
		free(c);
		format_soname(name, sizeof name);
		(void)fathom_fail_by(reterr, FATHOM_E_UNSUPPORTED, FATHOM_CAUSE_NOT_INSTALLED,
				     "aarch64 code is decoded by Capstone, which is not installed");
		fathom_errinfo_set_file(reterr, name);
		return FATHOM_E_UNSUPPORTED;
	}
	if (c->open(CS_ARCH_ARM64, CS_MODE_ARM, &c->handle) == CS_ERR_OK) {
		(void)c->option(c->handle, CS_OPT_DETAIL, CS_OPT_ON);
		c->insn = c->malloc(c->handle);
		if (c->insn) {
			*ret = c;
			return FATHOM_OK;
		}
		(void)c->close(&c->handle);
	}
	free(c);
	return fathom_fail_memory(reterr);
}

void fathom_capstone_close(struct fathom_capstone *c)
{
	if (!c)
		return;
	c->free(c->insn, 1);
	(void)c->close(&c->handle);
	free(c);
}

static uint32_t bit_of(uint16_t reg)
{
	if (reg >= ARM64_REG_X0 && reg <= ARM64_REG_X28)
		return UINT32_C(1) << (reg - ARM64_REG_X0);
	if (reg >= ARM64_REG_W0 && reg <= ARM64_REG_W30)
		return UINT32_C(1) << (reg - ARM64_REG_W0);
	return reg == ARM64_REG_X29   ? UINT32_C(1) << 29
	       : reg == ARM64_REG_X30 ? UINT32_C(1) << 30
				      : 0;
}

bool fathom_capstone_decode(struct fathom_capstone *c, const uint8_t bytes[4], uint64_t address,
			    struct fathom_capstone_insn *ret)
{
	const uint8_t *code = bytes;
	size_t size = 4;
	cs_regs read;
	cs_regs written;
	uint8_t n_read = 0;
	uint8_t n_written = 0;

	if (!c->iterate(c->handle, &code, &size, &address, c->insn))
		return false;
	*ret = (struct fathom_capstone_insn){ c->insn->mnemonic, c->insn->op_str, 0 };
	if (c->registers(c->handle, c->insn, read, &n_read, written, &n_written) == CS_ERR_OK)
		for (unsigned i = 0; i < n_written; i++)
			ret->writes |= bit_of(written[i]);
	return true;
}
