/* SPDX-License-Identifier: MIT */
/* CRC-32 of the check value that its catalogues state, and of texts of all lengths, by the division
 * of its definition. */
#include "unit.h"

#include <string.h>

#include "host/base/crc32.h"

/* Divides bit by bit: ISO 3309, with the polynomial and all bytes bit-reversed. */
static uint32_t divided(const uint8_t *bytes, size_t size)
{
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < 8 * size; i++) {
		const uint32_t bit = (crc ^ (uint32_t)bytes[i / 8] >> i % 8) & 1;

		crc = (crc >> 1) ^ (bit ? UINT32_C(0xedb88320) : 0);
	}
	return ~crc;
}

static void check_values(void **state)
{
	static const struct {
		const char *text;
		uint32_t crc;
	} rows[] = {
		{ "", 0 },
		{ "a", UINT32_C(0xe8b7be43) },
		{ "123456789", UINT32_C(0xcbf43926) },
		{ "The quick brown fox jumps over the lazy dog", UINT32_C(0x414fa339) },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_int_equal(fathom_crc32((struct fathom_bytes){ (const uint8_t *)rows[i].text,
								     strlen(rows[i].text) }),
				 rows[i].crc);
	assert_int_equal(fathom_crc32((struct fathom_bytes){ NULL, 0 }), 0);
}

static void every_length_and_start(void **state)
{
	uint8_t bytes[300];
	uint32_t random = 1;

	(void)state;
	for (size_t i = 0; i < sizeof bytes; i++) {
		random = random * UINT32_C(1103515245) + 12345;
		bytes[i] = (uint8_t)(random >> 16);
	}
	for (size_t start = 0; start < 9; start++)
		for (size_t size = 0; start + size <= sizeof bytes; size++)
			assert_int_equal(fathom_crc32((struct fathom_bytes){ bytes + start, size }),
					 divided(bytes + start, size));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_values),
		cmocka_unit_test(every_length_and_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
