/* SPDX-License-Identifier: MIT */
/*
 * The files of the running kernel: its image with symbols (vmlinux) and its modules (.ko), where
 * distributions and debug packages put them. A file that is not of the very build that runs is
 * never used; it becomes a note.
 */
#ifndef FATHOM_TARGET_KERNEL_VMLINUX_H
#define FATHOM_TARGET_KERNEL_VMLINUX_H

#include "host/base/context.h"
#include "host/base/notes.h"
#include "host/base/search_paths.h"
#include "host/file/object.h"

/* Build-ids are SHA-1 or a UUID; nothing longer is looked at. */
#define FATHOM_MAX_BUILD_ID 64

struct fathom_build_id {
	uint8_t data[FATHOM_MAX_BUILD_ID];
	uint32_t size; /* 0: not known */
};

/* Where files are looked for. */
struct fathom_kernel_place {
	struct fathom *session;
	const struct fathom_search_paths *paths;
	struct fathom_notes *notes;
	const char *root; /* what stands for "/", or "" */
	char release[72]; /* as uname -r has it */
};

/* Why a file was not found. */
struct fathom_kernel_miss {
	bool refused; /* one was, but it is of another build */
	bool timeout; /* debuginfod did not answer in time */
};

/* The image with @build_id; NULL when it is not found. */
struct fathom_object *fathom_kernel_find_image(const struct fathom_kernel_place *place,
					       struct fathom_bytes build_id,
					       struct fathom_kernel_miss *ret_miss);

/* The file of the module called @name. */
struct fathom_object *fathom_kernel_find_module(const struct fathom_kernel_place *place,
						struct fathom_str name,
						struct fathom_bytes build_id,
						struct fathom_kernel_miss *ret_miss);

/* Reads the build-id among the notes at @path (sysfs); size 0 when there is none. */
void fathom_kernel_read_build_id(const char *path, struct fathom_build_id *ret);

#endif
