/* SPDX-License-Identifier: MIT */
/* MD5 of the texts of RFC 1321, A.5, and of texts about as long as a block, by md5sum(1). */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "host/base/md5.h"

static void assert_md5(const char *text, size_t size, const char *wanted)
{
	uint8_t md5[FATHOM_MD5_SIZE];
	char hex[2 * FATHOM_MD5_SIZE + 1];

	fathom_md5((struct fathom_bytes){ (const uint8_t *)text, size }, md5);
	for (size_t i = 0; i < sizeof md5; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", md5[i]);
	assert_string_equal(hex, wanted);
}

static void texts_of_the_rfc(void **state)
{
	static const char *const texts[][2] = {
		{ "", "d41d8cd98f00b204e9800998ecf8427e" },
		{ "a", "0cc175b9c0f1b6a831c399e269772661" },
		{ "abc", "900150983cd24fb0d6963f7d28e17f72" },
		{ "message digest", "f96b697d7cb7938d525a2f31aaf161d0" },
		{ "abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b" },
		{ "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
		  "d174ab98d277d9f5a5611c2c9f419d9f" },
		{ "123456789012345678901234567890123456789012345678901234567890123456789012345678"
		  "90",
		  "57edf4a22be3c955ac49da2e2107b67a" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		assert_md5(texts[i][0], strlen(texts[i][0]), texts[i][1]);
}

static void texts_as_long_as_blocks(void **state)
{
	static const struct {
		size_t size;
		const char *md5;
	} texts[] = {
		{ 55, "ef1772b6dff9a122358552954ad0df65" },
		{ 56, "3b0c8ac703f828b04c6c197006d17218" },
		{ 63, "b06521f39153d618550606be297466d5" },
		{ 64, "014842d480b571495a4a0363793f7367" },
		{ 65, "c743a45e0d2e6a95cb859adae0248435" },
		{ 119, "8a7bd0732ed6a28ce75f6dabc90e1613" },
		{ 120, "5f61c0ccad4cac44c75ff505e1f1e537" },
		{ 128, "e510683b3f5ffe4093d021808bc6ff70" },
	};
	char text[128];

	(void)state;
	memset(text, 'a', sizeof text);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		assert_md5(text, texts[i].size, texts[i].md5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_of_the_rfc),
		cmocka_unit_test(texts_as_long_as_blocks),
	};

	return cmocka_run_group_tests_name("md5", tests, NULL, NULL);
}
