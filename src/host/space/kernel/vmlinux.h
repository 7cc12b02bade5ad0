/* SPDX-License-Identifier: MIT */
/*
 * The files of the running kernel: its image with symbols (vmlinux) and its modules (.ko), where
 * distributions and debug packages put them. A file of another build is never used, only noted.
 */
#ifndef FATHOM_KERNEL_VMLINUX_H
#define FATHOM_KERNEL_VMLINUX_H

#include "host/base/context.h"
#include "host/base/notes.h"
#include "host/base/search_paths.h"
#include "host/file/object.h"

/* Build-ids are SHA-1 or a UUID; longer ones are ignored. */
#define FATHOM_MAX_BUILD_ID 64

struct fathom_build_id {
	uint8_t data[FATHOM_MAX_BUILD_ID];
	uint32_t size; /* 0: unknown */
};

/* Where to look for files. */
struct fathom_kernel_place {
	struct fathom *session;
	const struct fathom_search_paths *paths;
	struct fathom_notes *notes;
	const char *root; /* replaces "/", or "" */
	char release[72]; /* from uname -r */
};

/* Why a file was not found. */
struct fathom_kernel_miss {
	bool refused; /* a file was found, but of another build */
	bool timeout; /* debuginfod did not answer in time */
};

/* Opens the image with @build_id; returns NULL if it is not found. */
struct fathom_object *fathom_kernel_find_image(const struct fathom_kernel_place *place,
					       struct fathom_bytes build_id,
					       struct fathom_kernel_miss *ret_miss);

/* Opens the file of the module @name; returns NULL if it is not found. */
struct fathom_object *fathom_kernel_find_module(const struct fathom_kernel_place *place,
						struct fathom_str name,
						struct fathom_bytes build_id,
						struct fathom_kernel_miss *ret_miss);

/* Reads the build-id from the notes at @path (sysfs); size 0 if there is none. */
void fathom_kernel_read_build_id(const char *path, struct fathom_build_id *ret);

#endif
