/* SPDX-License-Identifier: MIT */
/*
 * The running kernel: its image and its modules, at the addresses that they have now.
 *
 * What stands where is said by /proc/kallsyms. When the very vmlinux is found, by build-id, its
 * symbols and lines answer, at the bias by which KASLR moved it. A module's file (.ko) is a
 * relocatable one: each of its sections has a bias of its own, by the address that /sys/module
 * states. What has no file is named by kallsyms alone.
 *
 * The image stays as it is while the kernel runs. Modules come and go: a view that is asked for
 * addresses outside the image reads kallsyms, build-ids and sections anew. Files stay open.
 */
#ifndef FATHOM_TARGET_KERNEL_KERNEL_H
#define FATHOM_TARGET_KERNEL_KERNEL_H

#include <pthread.h>

#include "host/target/kernel/kallsyms.h"
#include "host/target/kernel/kcore.h"
#include "host/target/kernel/vmlinux.h"
#include "host/target/target.h"

/* The image's file, or why there is none. */
struct fathom_kernel_image {
	struct fathom_module *module; /* NULL: none; then all but reason are zero */
	uint64_t bias;
	uint64_t low; /* avma: where it is, from _text on */
	uint64_t high;
	enum fathom_reason reason; /* why there are no lines */
};

/* The file of one build of one module, or why there is none. */
struct fathom_kernel_module {
	struct fathom_kernel_module *next;
	char *name;
	struct fathom_build_id build_id;
	struct fathom_module *module; /* or NULL */
	enum fathom_reason reason;
};

/* kallsyms as it was at some time; counted. */
struct fathom_kernel_table {
	struct fathom_kallsyms symbols;
	int64_t read_ns; /* when reading began */
	uint32_t users;
};

struct fathom_kernel {
	struct fathom_target target;
	struct fathom_kernel_place place;
	struct fathom_build_id build_id;
	const char *start_name; /* of the symbol where the text starts, */
	uint64_t start;         /* and its avma; 0: addresses are hidden */
	_Atomic uint32_t parts; /* batches that have read a part of kallsyms */
	_Atomic(struct fathom_kernel_image *) image;
	_Atomic(struct fathom_kernel_module *) modules; /* only added to */
	_Atomic(struct fathom_kcore *) memory;
	pthread_mutex_t lock;              /* of what follows and of users in it */
	struct fathom_kernel_table *table; /* the newest; NULL: none yet */
};

/* The operations of the kernel as a target: locate.c. */
extern const struct fathom_target_ops fathom_kernel_ops;

void fathom_kernel_free(struct fathom_target *t);
void fathom_kernel_each_open(const struct fathom_target *t,
			     void (*fn)(struct fathom_module *m, void *data), void *data);
void fathom_kernel_describe(const struct fathom_target *t, struct fathom_target_info *ret);

/*
 * Finds its memory, opened when first asked for. Why there is none is also noted: FATHOM_E_OS with
 * what helps, or what fathom_kcore_open() returns.
 */
fathom_err fathom_kernel_memory(struct fathom_kernel *k, const struct fathom_kcore **ret,
				struct fathom_errinfo *reterr);

/* Reads memory, as the operation of targets does (image_code.c). */
fathom_err fathom_kernel_read(struct fathom_target *t, uint64_t avma, void *to, size_t size,
			      size_t *ret_size, struct fathom_errinfo *reterr);
/*
 * Reads code of the image from its file, as far as segments go that are code. The kernel changes
 * its own code, which a note says: what runs may differ, and numbers that state addresses are as
 * they were linked.
 */
fathom_err fathom_kernel_read_stated(struct fathom_target *t, fathom_err err, uint64_t avma,
				     void *to, size_t size, size_t *ret_size);

/* The image, looked for when first asked for; NULL without memory. */
const struct fathom_kernel_image *fathom_kernel_image(struct fathom_kernel *k);

/* Says once that no file of the image was found. */
void fathom_kernel_note_no_image(const struct fathom_kernel *k);

/* The file of the module called @name that is loaded now; NULL without memory. */
const struct fathom_kernel_module *fathom_kernel_module(struct fathom_kernel *k,
							struct fathom_str name);

/*
 * Takes a table that was read at @since_ns or later, reading it if need be; to be given back. The
 * first time @until may be below UINT64_MAX, see fathom_kallsyms_read().
 */
fathom_err fathom_kernel_take_table(struct fathom_kernel *k, int64_t since_ns, uint64_t until,
				    struct fathom_kernel_table **ret,
				    struct fathom_errinfo *reterr);
void fathom_kernel_give_table(struct fathom_kernel *k, struct fathom_kernel_table *table);

/* Whether @owner, a word in brackets, may be a module that has a file. */
bool fathom_kernel_may_have_file(struct fathom_str owner);

/*
 * Where the sections of @o, the file of module @name, are: for each its avma, 0 where it is not
 * loaded. False when nothing is shown, which is noted.
 */
bool fathom_kernel_read_sections(const struct fathom_kernel_place *place, struct fathom_str name,
				 const struct fathom_object *o, uint64_t *ret);

/* The section at @avma of @o, whose sections are there; 0 for none, or more than one. */
uint32_t fathom_kernel_section_at(const struct fathom_object *o, const uint64_t *sections,
				  uint64_t avma);

#endif
