/* SPDX-License-Identifier: MIT */
/*
 * The unwinders in this process: libgcc, LLVM's and nongnu's libunwind. They are found in all
 * loaded objects by what they export, and called as they document it.
 */
#ifndef FATHOM_PUBLISH_UNWINDERS_H
#define FATHOM_PUBLISH_UNWINDERS_H

#include "host/publish/publish.h"

/* Objects that are loaded, and the unwinders that were found in them. Handles are counted. */
struct fathom_jit_found {
	struct fathom_jit_unwinder unwinders[FATHOM_JIT_MOST_UNWINDERS];
	size_t n;
	uint64_t loaded; /* as fathom_jit_registry.loaded */
	struct fathom_bytes_array paths;
};

/*
 * Loads libgcc, as glibc does at the first backtrace() or pthread_cancel(): afterwards nobody would
 * tell it of code that is there already.
 */
void fathom_jit_open_libgcc(void);

/*
 * Lists what is loaded; false if nothing has changed since the last time. Under the registry's
 * lock: fork() waits for it, and a child that was forked within dl_iterate_phdr() could never call
 * that again.
 */
bool fathom_jit_list_objects(const struct fathom_jit_registry *r, struct fathom_jit_found *found);

/*
 * Looks in these objects for unwinders of the consumers @on. Takes the dynamic linker's lock: the
 * registry's must not be held.
 */
void fathom_jit_find_unwinders(uint32_t on, struct fathom_jit_found *found);

/*
 * Keeps those of @found that are not known yet; the others stay in @found. Returns the number of
 * the first new one.
 */
size_t fathom_jit_keep_unwinders(struct fathom_jit_registry *r, struct fathom_jit_found *found);

/* Gives back what stayed in @found. Takes the dynamic linker's lock, as above. */
void fathom_jit_close_unwinders(struct fathom_jit_found *found);

/* Returns whether an unwinder is told of tables, of which each leaf has one. */
bool fathom_jit_wants_tables(const struct fathom_jit_registry *r);

/* Returns whether an unwinder is given the images of functions. */
bool fathom_jit_wants_images(const struct fathom_jit_registry *r);

/*
 * Make what unwinders from number @first on need to be told of a function, an arena or a leaf,
 * whose functions have images; false without memory.
 */
bool fathom_jit_entry_prepare(struct fathom_jit_registry *r, struct fathom_jit_entry *e,
			      size_t first);
bool fathom_jit_arena_prepare(struct fathom_jit_registry *r, struct fathom_jit_arena *arena,
			      size_t first);
bool fathom_jit_leaf_prepare(struct fathom_jit_registry *r, struct fathom_jit_leaf *leaf,
			     size_t first);

/*
 * Tells unwinders of @image, which may be NULL, or takes it back. It was prepared: nothing can
 * fail.
 */
void fathom_jit_image_tell(struct fathom_jit_registry *r, struct fathom_jit_image *image);
void fathom_jit_image_withdraw(struct fathom_jit_registry *r, struct fathom_jit_image *image);

/* Frees what unwinders needed of @image. None of them may know it. */
void fathom_jit_tokens_free(struct fathom_jit_registry *r, struct fathom_jit_image *image);

/* Makes unwinders forget what they have cached of [low, high). */
void fathom_jit_flush(struct fathom_jit_registry *r, uint64_t low, uint64_t high);

#endif
