/* SPDX-License-Identifier: MIT */
/* Snapshots: the input is the body, the header is made to fit it. */
#include "fuzz.h"

#include <fathom/fathom.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/base/crc32.h"
#include "host/space/user/snapshot_format.h"

/* The header of a snapshot with that body. */
static void make_header(uint8_t header[FATHOM_SNAPSHOT_HEADER], struct fathom_bytes body)
{
	const uint32_t words[2] = { FATHOM_SNAPSHOT_VERSION, fathom_crc32(body) };

	memcpy(header, FATHOM_SNAPSHOT_MAGIC, 8);
	memcpy(header + 8, words, sizeof words);
	memcpy(header + 16, &body.size, sizeof body.size);
}

static void ask(struct fathom_target *target)
{
	struct fathom_answers *answers;
	uint64_t addresses[8];

	for (size_t i = 0; i < 8; i++)
		addresses[i] = 0x400000 + i * 0x800;
	if (!fathom_symbolize(target, NULL, addresses, NULL, 8, &answers, NULL))
		fathom_answers_free(answers);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *whole = malloc(FATHOM_SNAPSHOT_HEADER + size);
	struct fathom_target *target;
	struct fathom *session;
	char path[64];
	int fd;

	if (!whole)
		return 0;
	session = fuzz_session(NULL);
	make_header(whole, (struct fathom_bytes){ data, size });
	if (size)
		memcpy(whole + FATHOM_SNAPSHOT_HEADER, data, size);
	fd = fuzz_file(whole, FATHOM_SNAPSHOT_HEADER + size, path);
	free(whole);
	if (!fathom_target_open_file(session, path, NULL, &target, NULL)) {
		ask(target);
		fathom_target_release(target);
	}
	fathom_destroy(session);
	close(fd);
	return 0;
}
