/* SPDX-License-Identifier: MIT */
/* The rule for the load bias. The numbers are those of real links, worked out by hand. */
#include "unit.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "host/file/bias.h"
#include "maps.h"

#define MAX_LOADS 4

struct load {
	uint64_t vaddr;
	uint64_t off;
	uint64_t filesz;
	uint64_t memsz;
	uint32_t flags;
};

struct file {
	Elf64_Ehdr header;
	Elf64_Phdr segments[MAX_LOADS];
};

static struct fathom_image make_image(struct file *f, const struct load *loads, uint16_t n)
{
	struct fathom_image image;

	memset(f, 0, sizeof *f);
	f->header = (Elf64_Ehdr){
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64,
			     __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB,
			     EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_phoff = sizeof f->header,
		.e_ehsize = sizeof f->header,
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = n,
	};
	for (uint16_t i = 0; i < n; i++)
		f->segments[i] = (Elf64_Phdr){ .p_type = PT_LOAD,
					       .p_flags = loads[i].flags,
					       .p_offset = loads[i].off,
					       .p_vaddr = loads[i].vaddr,
					       .p_filesz = loads[i].filesz,
					       .p_memsz = loads[i].memsz,
					       .p_align = 4096 };
	assert_int_equal(fathom_image_init((struct fathom_bytes){ (const uint8_t *)f, sizeof *f },
					   &image, NULL),
			 0);
	return image;
}

/* Asserts that each of the mappings from @first to before @end has this bias. */
static void have_bias(const struct fathom_image *image, const struct fathom_maps *maps,
		      size_t first, size_t end, uint64_t wanted)
{
	for (size_t i = first; i < end; i++) {
		uint64_t bias = UINT64_MAX;

		assert_true(fathom_bias_of_mapping(image, maps, i, 4096, NULL, &bias));
		assert_true(bias == wanted);
	}
}

/* ld.lld: vaddr and offset of code differ by a page, and so segments share pages of the file. */
static const struct load lld[] = {
	{ 0x0, 0x0, 0x734, 0x734, PF_R },
	{ 0x1740, 0x740, 0x300, 0x300, PF_R | PF_X },
	{ 0x2a40, 0xa40, 0x200, 0x200, PF_R | PF_W },
	{ 0x3c40, 0xc40, 0x100, 0x100900, PF_R | PF_W },
};

static void a_page_of_four_segments_is_told_apart_by_all_mappings(void **state)
{
	struct file f;
	const struct fathom_image image = make_image(&f, lld, 4);
	struct fathom_maps maps = parse("555555554000-555555555000 r--p 0 fe:00 9 /lld\n"
					"555555555000-555555556000 r-xp 0 fe:00 9 /lld\n"
					"555555556000-555555557000 r--p 0 fe:00 9 /lld\n"
					"555555557000-555555558000 rw-p 0 fe:00 9 /lld\n"
					"555555558000-555555659000 rw-p 0 00:00 0\n");

	(void)state;
	have_bias(&image, &maps, 0, 4, 0x555555554000);
	/* .bss has no file */
	assert_true(fathom_bias_covers(&image, 0x555555554000, 0x55555565853f));
	assert_false(fathom_bias_covers(&image, 0x555555554000, 0x555555658540));
	assert_false(fathom_bias_covers(&image, 0x555555554000, 0x555555553fff));
	fathom_maps_deinit(&maps);
}

static const struct load gnu[] = {
	{ 0x0, 0x0, 0x600, 0x600, PF_R },
	{ 0x1000, 0x1000, 0x2100, 0x2100, PF_R | PF_X },
	{ 0x5db0, 0x3db0, 0x280, 0x300, PF_R | PF_W },
};

static void each_load_of_a_file_has_its_own_bias(void **state)
{
	struct file f;
	const struct fathom_image image = make_image(&f, gnu, 3);
	struct fathom_maps maps = parse("10000-11000 r--p 0 fe:00 9 /gnu\n"
					"11000-14000 r-xp 1000 fe:00 9 /gnu\n"
					"15000-17000 rw-p 3000 fe:00 9 /gnu\n"
					"30000-31000 r--p 0 fe:00 9 /gnu\n"
					"31000-34000 r-xp 1000 fe:00 9 /gnu\n"
					"35000-37000 rw-p 3000 fe:00 9 /gnu\n");

	(void)state;
	have_bias(&image, &maps, 0, 3, 0x10000);
	have_bias(&image, &maps, 3, 6, 0x30000);
	fathom_maps_deinit(&maps);
}

/* libffi maps a page of its own code once more for each table of trampolines. */
static void a_page_mapped_once_more_does_not_move_the_others(void **state)
{
	struct file f;
	const struct fathom_image image = make_image(&f, gnu, 3);
	struct fathom_maps maps = parse("8000-9000 r-xp 2000 fe:00 9 /gnu\n"
					"10000-11000 r--p 0 fe:00 9 /gnu\n"
					"11000-12000 r-xp 1000 fe:00 9 /gnu\n"
					"12000-14000 r-xp 2000 fe:00 9 /gnu\n");

	(void)state;
	/* The memory has what the file has at 0x2000, so svma 0x2000. */
	have_bias(&image, &maps, 0, 1, 0x6000);
	have_bias(&image, &maps, 1, 4, 0x10000);
	fathom_maps_deinit(&maps);
}

static void code_mapped_in_parts_is_one(void **state)
{
	struct file f;
	const struct fathom_image image = make_image(&f, gnu, 3);
	/* mprotect() on a page in the middle */
	struct fathom_maps maps = parse("11000-12000 r-xp 1000 fe:00 9 /gnu\n"
					"12000-13000 rwxp 2000 fe:00 9 /gnu\n"
					"13000-14000 r-xp 3000 fe:00 9 /gnu\n");

	(void)state;
	have_bias(&image, &maps, 0, 3, 0x10000);
	fathom_maps_deinit(&maps);
}

static void what_no_segment_holds_has_none(void **state)
{
	struct file f;
	const struct fathom_image image = make_image(&f, gnu, 3);
	struct fathom_maps maps = parse("11000-12000 r--p 8000 fe:00 9 /gnu\n");
	uint64_t bias;

	(void)state;
	assert_false(fathom_bias_of_mapping(&image, &maps, 0, 4096, NULL, &bias));
	fathom_maps_deinit(&maps);
}

static const struct load debian_libc[] = {
	{ 0x0, 0x0, 0x25388, 0x25388, PF_R },
	{ 0x26000, 0x26000, 0x1550fc, 0x1550fc, PF_R | PF_X },
	{ 0x17c000, 0x17c000, 0x52c31, 0x52c31, PF_R },
	{ 0x1cf8d0, 0x1cf8d0, 0x4f98, 0x12680, PF_R | PF_W },
};

static void a_file_is_loaded_where_its_code_may_run(void **state)
{
	struct file f;
	const struct fathom_image image = make_image(&f, debian_libc, 4);
	/* Read from end to end; loaded; headers only; with a page that is being patched. */
	struct fathom_maps maps = parse("1000000-11d5000 r--p 0 fe:00 9 /libc\n"
					"11d5000-11e2000 rwxp 0 00:00 0\n"
					"2000000-2026000 r--p 0 fe:00 9 /libc\n"
					"2026000-217c000 r-xp 26000 fe:00 9 /libc\n"
					"217c000-21cf000 r--p 17c000 fe:00 9 /libc\n"
					"21cf000-21d5000 rw-p 1cf000 fe:00 9 /libc\n"
					"21d5000-21e2000 rw-p 0 00:00 0\n"
					"3000000-3001000 r--p 0 fe:00 9 /libc\n"
					"4000000-4026000 r--p 0 fe:00 9 /libc\n"
					"4026000-4027000 rw-p 26000 fe:00 9 /libc\n"
					"4027000-417c000 r-xp 27000 fe:00 9 /libc\n");

	(void)state;
	/* All of the first mapping could be the file's. */
	have_bias(&image, &maps, 0, 1, 0x1000000);
	assert_true(
		fathom_bias_holds(&image, 0x1000000, &maps.items[0], 0x1000000, 0x1000000, 4096));
	assert_true(
		fathom_bias_holds(&image, 0x1000000, &maps.items[0], 0x11d4fff, 0x11d4fff, 4096));
	assert_false(fathom_bias_is_loaded(&image, &maps, 0x1000000));
	assert_true(fathom_bias_is_loaded(&image, &maps, 0x2000000));
	assert_false(fathom_bias_is_loaded(&image, &maps, 0x3000000));
	assert_true(fathom_bias_is_loaded(&image, &maps, 0x4000000));
	fathom_maps_deinit(&maps);
}

static void a_file_without_code_is_loaded_anywhere(void **state)
{
	static const struct load data[] = { { 0x0, 0x0, 0x25388, 0x25388, PF_R } };
	struct file f;
	const struct fathom_image image = make_image(&f, data, 1);
	struct fathom_maps maps = parse("1000000-1026000 r--p 0 fe:00 9 /libicudata\n");

	(void)state;
	assert_true(fathom_bias_is_loaded(&image, &maps, 0x1000000));
	fathom_maps_deinit(&maps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_page_of_four_segments_is_told_apart_by_all_mappings),
		cmocka_unit_test(each_load_of_a_file_has_its_own_bias),
		cmocka_unit_test(a_page_mapped_once_more_does_not_move_the_others),
		cmocka_unit_test(code_mapped_in_parts_is_one),
		cmocka_unit_test(what_no_segment_holds_has_none),
		cmocka_unit_test(a_file_is_loaded_where_its_code_may_run),
		cmocka_unit_test(a_file_without_code_is_loaded_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
