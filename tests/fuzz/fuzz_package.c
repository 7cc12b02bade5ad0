/* SPDX-License-Identifier: MIT */
/*
 * Package files of split DWARF: a program whose only unit is a skeleton stands in a folder, and
 * beside it the input as its .dwp.
 */
#include "fuzz.h"

#include <elf.h>
#include <fathom/fathom.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* One skeleton unit of DWARF 5: low_pc 0x1000, high_pc 16, dwo_name "x", id 0x1122334455667788. */
static const uint8_t info[] = { 0x1f, 0,    0,    0,    5,    0,    4,    8,    0, 0,   0, 0,
				0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 1, 'x', 0, 0,
				0x10, 0,    0,    0,    0,    0,    0,    16,   0, 0,   0 };
static const uint8_t abbrev[] = { 1, 0x4a, 0, 0x76, 8, 0x11, 1, 0x12, 6, 0, 0, 0 };
static const char names[] = "\0.text\0.debug_info\0.debug_abbrev\0";

static void write_file(const char *path, const void *data, size_t size)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	close(fd);
}

struct program {
	Elf64_Ehdr header;
	Elf64_Shdr section[5];
	uint8_t info[sizeof info];
	uint8_t abbrev[sizeof abbrev];
	char names[sizeof names];
};

static void write_program(const char *path)
{
	struct program file = { .header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64,
							 ELFDATA2LSB, 1 },
					    .e_type = ET_DYN,
					    .e_machine = EM_X86_64,
					    .e_shoff = sizeof(Elf64_Ehdr),
					    .e_shentsize = sizeof(Elf64_Shdr),
					    .e_shnum = 5,
					    .e_shstrndx = 4 } };

	file.section[1] = (Elf64_Shdr){ .sh_name = 1,
					.sh_type = SHT_NOBITS,
					.sh_flags = SHF_ALLOC | SHF_EXECINSTR,
					.sh_addr = 0x1000,
					.sh_size = 16 };
	file.section[2] = (Elf64_Shdr){ .sh_name = 7,
					.sh_type = SHT_PROGBITS,
					.sh_offset = offsetof(struct program, info),
					.sh_size = sizeof info };
	file.section[3] = (Elf64_Shdr){ .sh_name = 19,
					.sh_type = SHT_PROGBITS,
					.sh_offset = offsetof(struct program, abbrev),
					.sh_size = sizeof abbrev };
	file.section[4] = (Elf64_Shdr){ .sh_type = SHT_STRTAB,
					.sh_offset = offsetof(struct program, names),
					.sh_size = sizeof names };
	memcpy(file.info, info, sizeof info);
	memcpy(file.abbrev, abbrev, sizeof abbrev);
	memcpy(file.names, names, sizeof names);
	write_file(path, &file, sizeof file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint64_t address = 0x1004;
	struct fathom_answers *answers;
	struct fathom_target *target;
	struct fathom *session = fuzz_session(NULL);
	char program[64];
	char package[80];

	(void)snprintf(program, sizeof program, "/dev/shm/fathom-fuzz-%d", getpid());
	(void)snprintf(package, sizeof package, "%s.dwp", program);
	write_program(program);
	write_file(package, data, size);
	if (!fathom_target_open_file(session, program, NULL, &target, NULL)) {
		if (!fathom_symbolize(target, NULL, &address, NULL, 1, &answers, NULL))
			fathom_answers_free(answers);
		fathom_target_release(target);
	}
	fathom_destroy(session);
	(void)unlink(program);
	(void)unlink(package);
	return 0;
}
