/* SPDX-License-Identifier: MIT */
/* A file in memory that a test writes one profile after another to, and the session that reads it.
 */
#ifndef FATHOM_UNIT_PROFILE_IN_MEMORY_H
#define FATHOM_UNIT_PROFILE_IN_MEMORY_H

#include "unit.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fathom/fathom.h"
#include "host/profile/samples_writer.h"

static struct fathom *session;
static int file = -1;
static char path[64];

static int set_up(void **state)
{
	const struct fathom_options options = { .size = sizeof options, .flags = FATHOM_NO_CACHE };

	(void)state;
	file = memfd_create("profile", MFD_CLOEXEC);
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	return file < 0 || fathom_create(&options, &session, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	fathom_destroy(session);
	return close(file);
}

static int append(void *data, const void *bytes, size_t n)
{
	(void)data;
	return write(file, bytes, n) == (ssize_t)n;
}

/* Begins a profile in place of the last one. */
static void begin_file(struct fathom_profile_writer *w)
{
	assert_int_equal(ftruncate(file, 0), 0);
	assert_int_equal(lseek(file, 0, SEEK_SET), 0);
	fathom_profile_writer_begin(w, append, NULL);
}

static void end_file(struct fathom_profile_writer *w)
{
	assert_true(fathom_profile_writer_flush(w));
	fathom_profile_writer_deinit(w);
}

#endif
