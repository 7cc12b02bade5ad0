/* SPDX-License-Identifier: MIT */
/*
 * The running kernel: its image and its modules, at their current addresses.
 *
 * /proc/kallsyms says what is where. If the vmlinux with the kernel's build-id is found, its
 * symbols and lines answer, at the bias that KASLR gave it. A module's file (.ko) is relocatable:
 * each section has its own bias, from the address in /sys/module. Code without a file is named by
 * kallsyms alone.
 *
 * The image never changes while the kernel runs. Modules come and go: a view that looks up an
 * address outside the image reads kallsyms, build-ids and sections anew. Files stay open.
 */
#ifndef FATHOM_KERNEL_KERNEL_H
#define FATHOM_KERNEL_KERNEL_H

#include <pthread.h>

#include "host/space/kernel/kallsyms.h"
#include "host/space/kernel/kcore.h"
#include "host/space/kernel/vmlinux.h"
#include "host/space/target.h"

/* The image's file, or why there is none. */
struct fathom_kernel_image {
	struct fathom_module *module; /* NULL: none; all members but reason are then zero */
	uint64_t bias;
	uint64_t low; /* avma: the image from _text on */
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

/* A reading of kallsyms, with a reference count. */
struct fathom_kernel_table {
	struct fathom_kallsyms symbols;
	int64_t read_ns; /* when the reading began */
	uint32_t users;
};

struct fathom_kernel {
	struct fathom_target target;
	struct fathom_kernel_place place;
	struct fathom_build_id build_id;
	const char *start_name; /* name of the symbol at the start of the text */
	uint64_t start;         /* avma of that symbol; 0: addresses are hidden */
	_Atomic uint32_t parts; /* batches that read only a part of kallsyms */
	_Atomic(struct fathom_kernel_image *) image;
	_Atomic(struct fathom_kernel_module *) modules; /* grows only */
	_Atomic(struct fathom_kcore *) memory;
	pthread_mutex_t lock;              /* guards table and its users */
	struct fathom_kernel_table *table; /* the newest reading; NULL: none yet */
};

/* The operations of the kernel as a target: locate.c. */
extern const struct fathom_target_ops fathom_kernel_ops;

void fathom_kernel_free(struct fathom_target *t);
void fathom_kernel_each_open(const struct fathom_target *t,
			     void (*fn)(struct fathom_module *m, void *data), void *data);
void fathom_kernel_describe(const struct fathom_target *t, struct fathom_target_info *ret);

/*
 * Returns the kernel's memory in *@ret; the first call opens it. On failure also adds a note; fails
 * like fathom_kcore_open().
 */
fathom_err fathom_kernel_memory(struct fathom_kernel *k, const struct fathom_kcore **ret,
				struct fathom_errinfo *reterr);

/* Reads memory: the operation of targets (image_code.c). */
fathom_err fathom_kernel_read(struct fathom_target *t, uint64_t avma, void *to, size_t size,
			      size_t *ret_size, struct fathom_errinfo *reterr);
/*
 * Reads code of the image from code segments of its file. Notes that the running code may differ,
 * as the kernel patches itself, and that embedded addresses are as linked.
 */
fathom_err fathom_kernel_read_stated(struct fathom_target *t, fathom_err err, uint64_t avma,
				     void *to, size_t size, size_t *ret_size);

/* Returns the image; the first call looks for it. NULL if out of memory. */
const struct fathom_kernel_image *fathom_kernel_image(struct fathom_kernel *k);

/* Notes once that no file of the image was found. */
void fathom_kernel_note_no_image(const struct fathom_kernel *k);

/* Returns the file of the loaded module @name; NULL if out of memory. */
const struct fathom_kernel_module *fathom_kernel_module(struct fathom_kernel *k,
							struct fathom_str name);

/*
 * Returns a table read at @since_ns or later, reading it if need be; the caller gives it back. The
 * first time, @until may be below UINT64_MAX: see fathom_kallsyms_read().
 */
fathom_err fathom_kernel_take_table(struct fathom_kernel *k, int64_t since_ns, uint64_t until,
				    struct fathom_kernel_table **ret,
				    struct fathom_errinfo *reterr);
void fathom_kernel_give_table(struct fathom_kernel *k, struct fathom_kernel_table *table);

/* Returns whether @owner, a word in brackets, may be a module with a file. */
bool fathom_kernel_may_have_file(struct fathom_str owner);

/*
 * Reads the avma of each section of @o, the file of module @name; 0: not loaded. Returns false,
 * with a note, if all are hidden.
 */
bool fathom_kernel_read_sections(const struct fathom_kernel_place *place, struct fathom_str name,
				 const struct fathom_object *o, uint64_t *ret);

/*
 * Returns the section of @o at @avma, given the avma of each in @sections; 0 if there is none or
 * more than one.
 */
uint32_t fathom_kernel_section_at(const struct fathom_object *o, const uint64_t *sections,
				  uint64_t avma);

#endif
