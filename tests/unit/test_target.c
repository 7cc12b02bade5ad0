/* SPDX-License-Identifier: MIT */
/* Targets: bytes at addresses of files and processes; address spaces that a caller reads. */
#include "unit.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fathom/fathom.h"
#include "image.h"

/* Found by these names in this program's file. */
extern const char fathom_test_constant[8];
const char fathom_test_constant[8] = "constant";
extern char fathom_test_zeros[100];
char fathom_test_zeros[100];

static struct fathom *new_session(void)
{
	const struct fathom_options options = { .size = sizeof options, .flags = FATHOM_NO_CACHE };
	struct fathom *session;

	assert_int_equal(fathom_create(&options, &session, NULL), 0);
	return session;
}

static void a_process_is_read_from_memory(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct fathom *session = new_session();
	struct fathom_target *target;
	struct fathom_errinfo info;
	char *pages =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char to[16];
	size_t got = 99;

	(void)state;
	assert_true(pages != MAP_FAILED);
	memcpy(pages + page - 4, "abcd", 4);
	assert_int_equal(munmap(pages + page, page), 0);
	assert_int_equal(fathom_target_open_process(session, getpid(), NULL, &target, NULL), 0);
	/* Memory ends after four bytes. */
	assert_int_equal(
		fathom_target_read(target, (uintptr_t)pages + page - 4, to, 16, &got, NULL), 0);
	assert_int_equal(got, 4);
	assert_memory_equal(to, "abcd", 4);
	assert_int_equal(fathom_target_read(target, (uintptr_t)pages + page, to, 16, &got, &info),
			 FATHOM_E_NOT_FOUND);
	assert_int_equal(info.offset, (uintptr_t)pages + page);
	assert_int_equal(got, 4);
	assert_int_equal(fathom_target_read(target, 0, to, 0, &got, NULL), 0);
	assert_int_equal(got, 0);
	fathom_target_release(target);
	fathom_destroy(session);
}

static void a_file_is_read_as_it_is_loaded(void **state)
{
	struct fathom *session = new_session();
	struct fathom_target *target;
	uint64_t address;
	char to[100];
	size_t got;

	(void)state;
	fathom_test_zeros[0] = 1; /* in memory, not in the file */
	assert_int_equal(fathom_target_open_file(session, "/proc/self/exe", NULL, &target, NULL),
			 0);
	assert_int_equal(fathom_target_find_symbol(target, "fathom_test_constant", &address), 0);
	assert_int_equal(fathom_target_read(target, address, to, 8, &got, NULL), 0);
	assert_int_equal(got, 8);
	assert_memory_equal(to, "constant", 8);
	assert_int_equal(fathom_target_find_symbol(target, "fathom_test_zeros", &address), 0);
	memset(to, 1, sizeof to);
	assert_int_equal(fathom_target_read(target, address, to, sizeof to, &got, NULL), 0);
	assert_int_equal(got, sizeof to);
	for (size_t i = 0; i < sizeof to; i++)
		assert_int_equal(to[i], 0);
	assert_int_equal(fathom_target_read(target, UINT64_MAX, to, 8, &got, NULL),
			 FATHOM_E_NOT_FOUND);
	fathom_target_release(target);
	fathom_destroy(session);
}

enum { TEXT = 1, BSS, NAMES, N_SECTIONS };

/* A file with four bytes of code and room for eight, as assemblers and objcopy leave it. */
struct small {
	Elf64_Ehdr header;
	Elf64_Shdr sections[N_SECTIONS];
	char text[4];
	char names[32];
};

static struct small make_small(uint16_t type)
{
	struct small f = { .text = "code", .names = "\0.text\0.bss" };

	memcpy(f.header.e_ident, ELFMAG, SELFMAG);
	f.header.e_ident[EI_CLASS] = ELFCLASS64;
	f.header.e_ident[EI_DATA] =
		__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
	f.header.e_ident[EI_VERSION] = EV_CURRENT;
	f.header.e_type = type;
	f.header.e_machine = EM_X86_64;
	f.header.e_version = EV_CURRENT;
	f.header.e_ehsize = sizeof f.header;
	f.header.e_shoff = offsetof(struct small, sections);
	f.header.e_shentsize = sizeof(Elf64_Shdr);
	f.header.e_shnum = N_SECTIONS;
	f.header.e_shstrndx = NAMES;
	f.sections[TEXT] = (Elf64_Shdr){ .sh_name = 1,
					 .sh_type = SHT_PROGBITS,
					 .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
					 .sh_offset = offsetof(struct small, text),
					 .sh_size = sizeof f.text };
	f.sections[BSS] = (Elf64_Shdr){
		.sh_name = 7, .sh_type = SHT_NOBITS, .sh_flags = SHF_ALLOC | SHF_WRITE, .sh_size = 8
	};
	f.sections[NAMES] = (Elf64_Shdr){ .sh_type = SHT_STRTAB,
					  .sh_offset = offsetof(struct small, names),
					  .sh_size = sizeof f.names };
	return f;
}

static struct fathom_target *open_small(struct fathom *session, const struct small *f)
{
	struct fathom_target *target;
	char path[64];
	const int fd = memfd_create("small", 0);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, f, sizeof *f), (ssize_t)sizeof *f);
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	assert_int_equal(fathom_target_open_file(session, path, NULL, &target, NULL), 0);
	(void)close(fd);
	return target;
}

static void sections_of_a_relocatable_file_are_read_one_by_one(void **state)
{
	const struct small f = make_small(ET_REL);
	struct fathom *session = new_session();
	struct fathom_target *target = open_small(session, &f);
	uint64_t address;
	char to[16];
	size_t got;

	(void)state;
	assert_int_equal(fathom_target_section_address(target, ".text", 1, &address), 0);
	assert_int_equal(fathom_target_read(target, address, to, sizeof to, &got, NULL), 0);
	assert_int_equal(got, 3);
	assert_memory_equal(to, "ode", 3);
	assert_int_equal(fathom_target_section_address(target, ".bss", 2, &address), 0);
	assert_int_equal(fathom_target_read(target, address, to, sizeof to, &got, NULL), 0);
	assert_int_equal(got, 6);
	assert_memory_equal(to, "\0\0\0\0\0\0", 6);
	fathom_target_release(target);
	fathom_destroy(session);
}

static void a_debug_file_has_no_code_of_zeros(void **state)
{
	struct small f = make_small(ET_EXEC);
	struct fathom *session = new_session();
	struct fathom_target *target;
	char to[4];
	size_t got;

	(void)state;
	f.sections[TEXT].sh_type = SHT_NOBITS;
	f.sections[TEXT].sh_addr = 0x401000;
	target = open_small(session, &f);
	assert_int_equal(fathom_target_read(target, 0x401000, to, sizeof to, &got, NULL),
			 FATHOM_E_NOT_FOUND);
	fathom_target_release(target);
	fathom_destroy(session);
}

/* Memory of which nothing is known; says that it has read more than was asked for. */
static size_t read_nothing(void *data, uint64_t address, void *to, size_t size)
{
	(void)address;
	(void)to;
	return data ? size + 1 : 0;
}

/* Opens what one field of a sound address space was changed in; returns the error. */
static fathom_err open_changed(struct fathom *session, size_t field, uint64_t value)
{
	struct fathom_mapping_info two[2] = { { 0x1000, 0x3000, 0, "/a", NULL, 0, PF_R },
					      { 0x3000, 0x4000, 0, NULL, NULL, 0, PF_R } };
	struct fathom_address_space s = {
		.size = sizeof s, .read = read_nothing, .mappings = two, .n_mappings = 2
	};
	struct fathom_target *target;
	fathom_err err;

	if (field < sizeof s)
		memcpy((uint8_t *)&s + field, &value, 4);
	else
		two[1].start = value;
	err = fathom_target_open_reader(session, &s, NULL, &target, NULL);
	if (!err)
		fathom_target_release(target);
	return err;
}

static void only_sound_address_spaces_are_opened(void **state)
{
	const size_t none = sizeof(struct fathom_address_space);
	struct fathom *session = new_session();

	(void)state;
	assert_int_equal(open_changed(session, none, 0x3000), 0);
	assert_int_equal(open_changed(session, none, 0x2fff), FATHOM_E_ARGUMENT);
	assert_int_equal(open_changed(session, none, 0x4000), FATHOM_E_ARGUMENT);
	assert_int_equal(
		open_changed(session, offsetof(struct fathom_address_space, n_mappings), 0),
		FATHOM_E_ARGUMENT);
	assert_int_equal(
		open_changed(session, offsetof(struct fathom_address_space, page_size), 4095),
		FATHOM_E_ARGUMENT);
	assert_int_equal(
		open_changed(session, offsetof(struct fathom_address_space, page_size), 65536), 0);
	assert_int_equal(open_changed(session, offsetof(struct fathom_address_space, flags), 1),
			 FATHOM_E_ARGUMENT);
	assert_int_equal(open_changed(session, offsetof(struct fathom_address_space, reserved), 1),
			 FATHOM_E_ARGUMENT);
	fathom_destroy(session);
}

/* Asks for a constant of this program where nothing but maps and a build-id are known. */
static void check_by_build_id(struct fathom *session, const uint8_t *build_id, uint32_t size,
			      const char *name, enum fathom_reason reason)
{
	const struct fathom_pc pc = { .address = (uintptr_t)fathom_test_constant };
	struct fathom_address_space s = { .size = sizeof s,
					  .read = read_nothing,
					  .mappings = segments,
					  .n_mappings = copy_image() };
	const struct fathom_answer *answer;
	struct fathom_target *target;
	char to[8];
	size_t got;

	for (size_t i = 0; i < s.n_mappings; i++) {
		segments[i].path = "/proc/self/exe";
		segments[i].build_id = build_id;
		segments[i].build_id_size = size;
	}
	assert_int_equal(fathom_target_open_reader(session, &s, NULL, &target, NULL), 0);
	assert_int_equal(fathom_lookup(target, pc, NULL, &answer, NULL), 0);
	if (name)
		assert_string_equal(answer->symbol, name);
	else
		assert_null(answer->symbol);
	assert_int_equal(answer->reason == reason, name == NULL);
	fathom_answer_free(answer);
	/* What memory lacks of a constant segment, the file has, once it is known to be the one. */
	assert_int_equal(fathom_target_read(target, pc.address, to, sizeof to, &got, NULL),
			 name ? FATHOM_OK : FATHOM_E_NOT_FOUND);
	if (name)
		assert_memory_equal(to, "constant", sizeof to);
	fathom_target_release(target);
	/* A reader that claims more than it was asked for is believed what it was asked for. */
	s.data = &s;
	assert_int_equal(fathom_target_open_reader(session, &s, NULL, &target, NULL), 0);
	assert_int_equal(fathom_target_read(target, pc.address, to, sizeof to, &got, NULL), 0);
	assert_int_equal(got, sizeof to);
	fathom_target_release(target);
}

static void a_build_id_tells_what_memory_cannot(void **state)
{
	struct fathom *session = new_session();
	struct fathom_target_info info;
	struct fathom_target *self;

	(void)state;
	assert_int_equal(fathom_target_open_file(session, "/proc/self/exe", NULL, &self, NULL), 0);
	fathom_target_get_info(self, &info);
	assert_true(info.build_id_size > 4);
	check_by_build_id(session, info.build_id, info.build_id_size, "fathom_test_constant",
			  FATHOM_REASON_NONE);
	check_by_build_id(session, (const uint8_t *)"another", 7, NULL,
			  FATHOM_REASON_BUILD_ID_MISMATCH);
	check_by_build_id(session, NULL, 0, NULL, FATHOM_REASON_NO_FILE);
	fathom_target_release(self);
	fathom_destroy(session);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_is_read_from_memory),
		cmocka_unit_test(a_file_is_read_as_it_is_loaded),
		cmocka_unit_test(sections_of_a_relocatable_file_are_read_one_by_one),
		cmocka_unit_test(a_debug_file_has_no_code_of_zeros),
		cmocka_unit_test(only_sound_address_spaces_are_opened),
		cmocka_unit_test(a_build_id_tells_what_memory_cannot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
