/* SPDX-License-Identifier: MIT */
/*
 * Profiles. All that a profile says of itself agrees; a profile that is cut is a part of the whole
 * one. Rows and trees of its reports have the weight of its samples; functions that are annotated
 * have that of their rows, and so have their lines together. Exports in all formats, of whatever
 * frames, are whole, and have no control characters where they are text.
 */
#include "fuzz.h"

#include <string.h>
#include <unistd.h>

#include "profile_checks.h"
#include "host/profile/samples_format.h"

/* Reads @size bytes as a profile, and shows @frames; returns its samples, 0 if it is none. */
static uint64_t read_bytes(struct fathom *session, const uint8_t *bytes, size_t size,
			   enum fathom_profile_frames frames, fathom_err *ret_err)
{
	struct fathom_profile *p = NULL;
	char path[64];
	const int fd = fuzz_file(bytes, size, path);
	uint64_t n = 0;

	*ret_err = fathom_profile_open(session, path, &p, NULL);
	if (!*ret_err) {
		check_profile(p);
		n = fathom_profile_get_info(p)->n_samples;
		check_shown(p, frames);
	}
	fathom_profile_free(p);
	close(fd);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = fuzz_init(data, size);
	const uint8_t cut = fuzz_byte(&f);
	const enum fathom_profile_frames frames = (enum fathom_profile_frames)(cut % 4);
	const size_t left = (size_t)(f.end - f.p);
	struct fathom *session = fuzz_session(NULL);
	fathom_err err;
	fathom_err cut_err;
	const uint64_t n = read_bytes(session, f.p, left, frames, &err);
	const uint64_t n_cut =
		read_bytes(session, f.p, left - (cut < left ? cut : left), frames, &cut_err);

	/* Files of other programs may need their ends. */
	if (left < FATHOM_PROFILE_MAGIC_SIZE || memcmp(f.p, FATHOM_PROFILE_MAGIC, 8) != 0)
		err = FATHOM_E_FORMAT;
	if (!err && (n_cut > n || (cut_err && cut_err != FATHOM_E_FORMAT)))
		abort();
	fathom_destroy(session);
	return 0;
}
