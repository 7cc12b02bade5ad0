/* SPDX-License-Identifier: MIT */
/*
 * The running kernel: its image and its modules, at the addresses that they have now.
 *
 * What stands where is said by /proc/kallsyms. When the very vmlinux is found, by build-id, its
 * symbols and lines answer: the image is one share of the batch, whose bias is what KASLR moved it
 * by. A module's file (.ko) is a relocatable one: each of its sections is a share of its own, with
 * the address that /sys/module states. What has no file is named by kallsyms alone.
 *
 * The image stays as it is while the kernel runs. Modules come and go: a batch with addresses
 * outside the image reads kallsyms, build-ids and sections anew. Files stay open.
 */
#ifndef FATHOM_TARGET_KERNEL_KERNEL_H
#define FATHOM_TARGET_KERNEL_KERNEL_H

#include <pthread.h>

#include "fathom/symbolize.h"
#include "host/target/kernel/kallsyms.h"
#include "host/target/kernel/kcore.h"
#include "host/target/kernel/vmlinux.h"

struct fathom_batch_options;
struct fathom_module;
struct fathom_kernel;
struct fathom_name_search;

/* Opens the kernel below @options->root, which must be readable; what goes wrong later is noted. */
fathom_err fathom_kernel_open(struct fathom *session, const struct fathom_kernel_options *options,
			      struct fathom_notes *notes, struct fathom_kernel **ret,
			      struct fathom_errinfo *reterr);
/* @k may be NULL. */
void fathom_kernel_close(struct fathom_kernel *k);

/* Answers @n @addresses (avma) into @answers. */
fathom_err fathom_kernel_symbolize(struct fathom_kernel *k,
				   const struct fathom_batch_options *options,
				   const uint64_t *addresses, size_t n,
				   struct fathom_answers *answers, struct fathom_errinfo *reterr);

/* Looks for names as linked: in the image, then in kallsyms, which has those of modules. */
fathom_err fathom_kernel_search(struct fathom_kernel *k, struct fathom_name_search *s,
				struct fathom_errinfo *reterr);

/* Whether the kernel shows no addresses to us: then no name has one. */
bool fathom_kernel_is_hidden(const struct fathom_kernel *k);

/* Calls @fn for each module that is open. */
void fathom_kernel_each_open(struct fathom_kernel *k,
			     void (*fn)(struct fathom_module *m, void *data), void *data);

/*
 * Its memory, opened when first asked for. Why there is none is also noted: FATHOM_E_OS with what
 * helps, or what fathom_kcore_open() returns.
 */
fathom_err fathom_kernel_memory(struct fathom_kernel *k, const struct fathom_kcore **ret,
				struct fathom_errinfo *reterr);

/*
 * Reads code of the image from its file, as far as segments go that are code; returns how much. The
 * kernel changes its own code, which a note says: what runs may differ, and numbers that state
 * addresses are as they were linked.
 */
size_t fathom_kernel_read_file(struct fathom_kernel *k, uint64_t avma, void *to, size_t size);

/* What is known of the image. */
void fathom_kernel_info(const struct fathom_kernel *k, struct fathom_target_info *ret);

/* What the parts of the kernel share: kernel.c, shares.c, kernel_search.c. */

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
