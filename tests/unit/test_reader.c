/* SPDX-License-Identifier: MIT */
/* The caller's own reader of memory: a process image in an array, asked like any other target. */
#include "unit.h"

#include "image.h"

int known_function(int i);

__attribute__((noinline)) int known_function(int i)
{
	return i * 3 + image[i];
}

static size_t read_image(void *data, uint64_t address, void *to, size_t size)
{
	const uint64_t off = address - (uintptr_t)__ehdr_start;

	(void)data;
	if (off > sizeof image || size > sizeof image - off)
		return 0;
	memcpy(to, image + off, size);
	return size;
}

static void all_verbs(void **state)
{
	const struct fathom_address_space s = { sizeof s, read_image, NULL, segments, copy_image(),
						4096,     0,          0,    0,        { 0 } };
	const struct fathom_pc pc = { .address = (uintptr_t)known_function };
	const char *const name = "known_function";
	const struct fathom_answer *answer;
	struct fathom_matches *matches;
	struct fathom_disasm *code;
	struct fathom_target *t;
	struct fathom *session;

	(void)state;
	assert_int_equal(fathom_create(NULL, &session, NULL), FATHOM_OK);
	assert_int_equal(fathom_target_open_reader(session, &s, NULL, &t, NULL), 0);
	assert_int_equal(fathom_lookup(t, pc, NULL, &answer, NULL), FATHOM_OK);
	assert_string_equal(answer->symbol, name);
	assert_int_equal(fathom_find(t, NULL, &name, 1, &matches, NULL), FATHOM_OK);
	assert_int_equal(fathom_matches_get(matches, 0)->address, pc.address);
	assert_int_equal(fathom_disassemble(t, NULL, pc.address, pc.address + 16, &code, NULL), 0);
	assert_string_equal(fathom_disasm_get(code, 0)->frame->function, name);
	fathom_answer_free(answer);
	fathom_matches_free(matches);
	fathom_disasm_free(code);
	fathom_target_release(t);
	fathom_destroy(session);
}

/* A size without a build-id counts as none. */
static void a_build_id_without_bytes(void **state)
{
	const struct fathom_mapping_info gone = {
		(uintptr_t)__ehdr_start, (uintptr_t)__ehdr_start + 4096, 0, "/gone", NULL, 20, PF_R
	};
	const struct fathom_address_space s = {
		.size = sizeof s, .read = read_image, .mappings = &gone, .n_mappings = 1
	};
	struct fathom_target *t;
	struct fathom *session;

	(void)state;
	assert_int_equal(fathom_create(NULL, &session, NULL), FATHOM_OK);
	assert_int_equal(fathom_target_open_reader(session, &s, NULL, &t, NULL), 0);
	fathom_target_release(t);
	fathom_destroy(session);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(all_verbs),
					    cmocka_unit_test(a_build_id_without_bytes) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
