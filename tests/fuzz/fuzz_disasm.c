/* SPDX-License-Identifier: MIT */
/* Disassembling: any bytes as code of each machine, and files whose relocations say anything. */
#include "fuzz.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fathom/fathom.h"

/* More code than this makes an input slow, not interesting. */
#define MOST 4096

/* Names every third page, so that there are addresses with a name and without. */
static int name_of(void *data, uint64_t address, char *to, size_t cap, uint64_t *ret_offset)
{
	(void)data;
	if ((address >> 12) % 3)
		return 0;
	(void)snprintf(to, cap, "page(%llx)", (unsigned long long)(address >> 12));
	*ret_offset = address & 0xfff;
	return 1;
}

static const struct fathom_instruction *check(const struct fathom_disasm *d, size_t i,
					      uint64_t address)
{
	const struct fathom_instruction *in = fathom_disasm_get(d, i);
	uint8_t sum = 0;

	if (in->address != address || !in->size || strlen(in->text) != in->text_size ||
	    in->code_size > in->text_size + 64u)
		abort();
	for (unsigned k = 0; k < in->size; k++)
		sum = (uint8_t)(sum + in->bytes[k]);
	fuzz_use(sum);
	if (in->target_name)
		fuzz_use(strlen(in->target_name));
	/* What is bad refers to nothing. */
	if ((in->flags & FATHOM_INSTRUCTION_BAD) && in->reference)
		abort();
	return in;
}

/* Instructions follow each other without gap, up to where the disassembly says it ends. */
static void check_all(const struct fathom_disasm *d, uint64_t start)
{
	uint64_t address = start;

	for (size_t i = 0; i < fathom_disasm_count(d); i++)
		address += check(d, i, address)->size;
	if (fathom_disasm_next(d) != address)
		abort();
}

static void disassemble_file(const uint8_t *data, size_t size,
			     const struct fathom_disasm_options *o)
{
	struct fathom_section_info s;
	struct fathom_target *target;
	struct fathom_disasm *d;
	struct fathom *session = fuzz_session(NULL);
	char path[64];
	const int fd = fuzz_file(data, size, path);

	if (!fathom_target_open_file(session, path, NULL, &target, NULL)) {
		for (size_t i = 1; i < 32 && !fathom_target_section(target, i, &s); i++) {
			const uint64_t most = s.size < MOST ? s.size : MOST;

			if (!fathom_disassemble(target, o, s.address, s.address + most, &d, NULL)) {
				check_all(d, s.address);
				fathom_disasm_free(d);
			}
		}
		fathom_target_release(target);
	}
	fathom_destroy(session);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t machines[] = { EM_X86_64, EM_386, EM_AARCH64, EM_NONE };
	struct fuzz f = fuzz_init(data, size);
	const uint8_t how = fuzz_byte(&f);
	const struct fathom_disasm_options o = {
		.size = sizeof o,
		.machine = machines[how & 3],
		.flags = how & 4 ? FATHOM_DISASM_INTEL : 0,
		.name = name_of,
	};
	const uint64_t address = how & 16 ? 0x400000 : fuzz_number(&f);
	const struct fathom_bytes rest = fuzz_rest(&f);
	struct fathom_disasm *d;

	if (how & 8) {
		disassemble_file(rest.data, (size_t)rest.size, &o);
		return 0;
	}
	if (fathom_disassemble_bytes(NULL, &o, rest.data,
				     (size_t)(rest.size < MOST ? rest.size : MOST), address, &d,
				     NULL))
		return 0;
	check_all(d, address);
	fathom_disasm_free(d);
	return 0;
}
